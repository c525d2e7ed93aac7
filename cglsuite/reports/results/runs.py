"""Page sections about the runs behind the numbers: cells without a result, time and memory, configurations, and provenance.

Formats what :mod:`cglsuite.reports.results.tables` computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import pandas as pd

from cglsuite.base.markup import Fragment, element, join
from cglsuite.reports.kit.figures import curve_figure, trials_figure
from cglsuite.reports.kit.pictures import FACTS, Gallery, picture
from cglsuite.reports.kit.tables import (
    Column,
    as_rows,
    definition_list,
    empty,
    exact_cell,
    folded,
    framed,
    label,
    mean_std_cell,
    number,
    number_cell,
    words,
)
from cglsuite.reports.kit.text import badge, value_text
from cglsuite.reports.results import tables, variants
from cglsuite.reports.results.results import Results, drawn
from cglsuite.reports.results.summary import NOTHING_DONE, preset_caption

_STATES = {"done": "good", "failed": "bad", "diverged": "bad", "timeout": "bad", "oom": "bad", "unclean": "bad"}


@dataclass(frozen=True)
class Facts:
    """A fragment with lines for the page's footer."""

    body: Fragment
    footer: tuple[str, ...]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {FACTS: {"footer": list(self.footer)}, "text/html": self.body.source, "text/plain": "\n".join(self.footer)}


class Study(Protocol):
    """The interface of a study of the results of one or several campaigns."""

    @property
    def results(self) -> Results | tuple[Results, ...]: ...


def problems(of: Results | Study) -> Fragment:
    """List every cell without a result and the reason. The lists of several campaigns have their titles."""
    return join(part for heading, result in _campaigns(of) for part in (heading, _problems(result)))


def _campaigns(of: Results | Study) -> list[tuple[Fragment | None, Results]]:
    """The results of every campaign, by title if there are several."""
    campaigns = of if isinstance(of, Results) else of.results
    every = [campaigns] if isinstance(campaigns, Results) else campaigns
    return [(element("p", element("strong", result.title)) if len(every) > 1 else None, result) for result in every]


def _problems(results: Results) -> Fragment:
    columns = [
        label("method"),
        words("scenario", lambda row: results.preset_title(row["preset"]), "name"),
        words("state", lambda row: badge(row["state"], _STATES.get(row["state"], "note"))),
        *(words("reason", class_="long"), words("seeds (order/split/init)", "seeds", "mono")),
    ]
    return framed(tables.problems(results), [replace(column, kind=None) for column in columns], none="Every planned cell has a result.")


def resources(results: Results) -> Fragment:
    """Tabulate the mean time and memory per group."""
    columns = [
        *(label("method", "method", "variant"), number("n"), number("total, s", "total_s", 1)),
        *(number(f"{part}, %", partial(_share, part=part), 1) for part in ("training", "method", "evaluation", "framework")),
        *(number("peak memory, MB", lambda row: row["peak_bytes"] / 1e6), number("kept items", "memory_items")),
        *(number("kept, kB", lambda row: row["memory_bytes"] / 1e3, 1), number("extra parameters", "method_parameters")),
    ]
    results, said = drawn(results)
    about = f"Means per cell. Kept: the final content of the method's metered memory. {said}".rstrip()
    return framed(tables.resources(results), columns, about, none=NOTHING_DONE, by=lambda row: results.preset_title(row["preset"]))


def _share(row: Mapping[str, Any], part: str) -> float | None:
    return 100 * row[f"{part}_s"] / row["total_s"] if row["total_s"] else None


def searches(results: Results) -> Fragment:
    """Return a table of the values chosen by the campaign's hyperparameter searches, with their validation scores."""

    def trials(row: Mapping[str, Any]) -> Fragment:
        drawn = str(row["trials"]) if row["trials"] == row["points"] else f"{row['trials']} of {row['points']}"
        drawn += {"sobol": ", Sobol", "random": ", random"}.get(row["drawn"], "")
        return exact_cell(drawn, value=row["trials"])

    def lead(row: Mapping[str, Any]) -> Fragment:
        return mean_std_cell(row["lead"], row["lead_error"], scale=100, digits=1) if row["lead"] == row["lead"] else number_cell(None)

    columns = [
        *(label("method", "method", "backbone"), words("scenario", class_="name", kind="name"), Column("trials", trials)),
        *(number("seeds"), words("scope", class_="nowrap"), words("chosen", lambda row: element("code", row["chosen"]), "long")),
        *(number("validation, %", lambda row: 100 * row["score"], 1), Column("lead, points", lead)),
    ]
    about = "Selected by mean validation performance over the search's seeds: after the last task, or, with scope first-tasks(k), of the "
    about += "first k tasks after task k. Lead: over the next best trial, ± standard error of the differences by seed; a lead within its "
    about += "error may be due to chance."
    return framed(tables.searches(results), columns, about, none=_NO_SEARCH)


_NO_SEARCH = "This campaign has no finished hyperparameter search."


def trials(results: Results) -> Gallery:
    """Plot every trial's validation score against each searched setting, one figure per scenario and setting."""
    frame = variants.trial_values(results.searches)
    order = list(dict.fromkeys(frame["label"]))
    parts = frame.groupby(["scenario", "axis"], sort=False)
    return Gallery(tuple(_trials_picture(results.preset_title(str(s)), str(axis), part, order) for (s, axis), part in parts))


def _trials_picture(scenario: str, axis: str, part: pd.DataFrame, order: list[str]) -> Any:
    selected = as_rows(part[part["chosen"]])
    ends = "; ".join(f"{row['label']} chose {value_text(row['value'])} ({100 * row['mean']:.1f})" for row in selected)
    below = "Mean and standard deviation of each trial over the search's seeds. A ring marks the choice. Other settings may also differ"
    alt = f"Validation score of the trials against {axis} in {scenario}: {ends or 'none chosen'}."
    return picture(partial(trials_figure, part, xlabel=axis, order=order), alt, below, scenario)


def best_of_n(results: Results) -> Gallery | Fragment:
    """Plot the expected best validation score of n trials, one figure per searched scenario and one line per method."""
    frame = variants.best_of_n(results.searches)
    return best_pictures(frame) if len(frame) else empty(_NO_SEARCH)


def best_pictures(frame: pd.DataFrame) -> Gallery:
    """Plot the rows of :func:`cglsuite.reports.results.variants.best_of_n`, one figure per scenario."""
    order = list(dict.fromkeys(frame["label"]))
    return Gallery(tuple(_best_picture(str(scenario), part, order) for scenario, part in frame.groupby("scenario", sort=False)))


def _best_picture(scenario: str, part: pd.DataFrame, order: list[str]) -> Any:
    heads: dict[str, Any] = {"title": f"{scenario}: best of n trials", "xlabel": "trials (n)", "ylabel": "expected best on validation, %"}
    draw = partial(curve_figure, part.rename(columns={"n": "task"}), order=order, **heads)
    last = part[part["n"] == part.groupby("label")["n"].transform("max")]
    ends = "; ".join(f"{row['label']} {100 * row['mean']:.1f} with {row['n']}" for row in as_rows(last))
    excluded = int(part.groupby("label")["excluded"].first().sum())
    below = "Mean and standard deviation over all subsets of n trials. A curve that is still rising needs more trials"
    below += f". {excluded} trials that did not finish are left out" if excluded else ""
    return picture(draw, f"Expected best validation score by number of trials in {scenario}: {ends}.", below)


def configurations(results: Results) -> Fragment:
    """List, collapsed by preset, the settings in which methods differ, followed by the settings that they share."""
    results, said = drawn(results)
    frame = tables.configurations(results)
    if frame.empty:
        return empty(NOTHING_DONE)
    parts = [element("p", said)] if said else []
    for preset, part in frame.groupby("preset", sort=False):
        several = part["backbone"].nunique() > 1
        columns = [
            label("method", "method", "variant", *(["backbone"] if several else [])),
            words("values of its own", _settings_cell, "long"),
        ]
        shared = tables.common_configuration(results, str(preset))
        values = {name: value_text(value) or "none" for name, value in shared.items()}
        listed = folded(f"{len(shared)} shared values", _facts(values, code=True))
        caption = preset_caption(str(preset), results.overrides_of(str(preset)))
        parts.append(folded(results.preset_title(str(preset)), join([framed(part, columns, caption), listed])))
    return join(parts)


def _settings_cell(row: Mapping[str, Any]) -> Fragment:
    settings = [f"{name} = {value_text(value)}" for name, value in row.items() if "." in name and value is not None]
    return (
        join(x for text in settings for x in (element("code", text), element("br")))
        if settings
        else element("span", "none", class_="quiet")
    )


SOURCES = [
    *(label("distribution"), words("version")),
    Column("source", lambda row: element("td", element("code", row["source"][:12]), title=row["source"]), None),
    *(number("records"), words("provides", class_="long")),
]
"""The columns of a table of the code that produced records."""


def provenance(of: Results | Study) -> Facts:
    """Show the code, the environment and the seeds of the records, with lines for the page footer. Several campaigns are shown under their
    titles.
    """
    shown = [(heading, _provenance(result)) for heading, result in _campaigns(of)]
    body = join(part for heading, facts in shown for part in (heading, facts.body))
    return Facts(body, tuple(dict.fromkeys(line for _, facts in shown for line in facts.footer)))


def _provenance(results: Results) -> Facts:
    from cglsuite import __version__

    about = "The code that produced the records. Source: the first digits of the SHA-256 hash of its files."
    plugins = ", ".join(f"{name} {version}" for name, version in results.plugins if name != "cglsuite")
    footer = (
        results.extent,
        f"cglsuite {__version__}" + (f" with {plugins}." if plugins else "."),
    )
    shown = framed(tables.sources(results), SOURCES, about, none=NOTHING_DONE)
    facts = _facts(tables.conditions(results))
    body = folded("Code and environment of the records", shown, facts) if results.used else join([shown, facts])
    return Facts(body, footer)


def _facts(pairs: Mapping[str, str], code: bool = False) -> Fragment:
    return definition_list((element("code", name) if code else name, text) for name, text in pairs.items() if text)
