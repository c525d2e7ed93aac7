"""The runs behind the numbers, formatted for the page: cells without a result, time and memory, configurations, provenance.

Formats what :mod:`cglsuite.reports.results.tables` computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cglsuite.base.markup import Fragment, element, join
from cglsuite.reports.kit.figures import curve_figure
from cglsuite.reports.kit.htmltable import (
    definition_list,
    empty,
    exact_cell,
    group_title,
    head_cell,
    mean_std_cell,
    number_cell,
    row_head,
    table,
)
from cglsuite.reports.kit.mime import FACTS
from cglsuite.reports.kit.pictures import Gallery, Theme, picture
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.kit.text import value_text
from cglsuite.reports.results.overview import NOTHING_DONE, preset_caption

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.reports.results.results import CampaignResults

__all__ = [
    "Facts",
    "best_of_n",
    "best_pictures",
    "configurations",
    "each_problems",
    "each_provenance",
    "problems",
    "provenance",
    "resources",
    "searches",
]

_STATES = {"done": "good", "failed": "bad", "diverged": "bad", "timeout": "bad", "oom": "bad", "unclean": "bad"}


@dataclass(frozen=True)
class Facts:
    """A fragment and lines for the page footer."""

    body: Fragment
    footer: tuple[str, ...]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {FACTS: {"footer": list(self.footer)}, "text/html": self.body.source, "text/plain": "\n".join(self.footer)}


def problems(results: CampaignResults) -> Fragment:
    """Every cell without a result, with its reason."""
    from cglsuite.reports.results.tables import problems as compute

    frame = compute(results)
    if frame.empty:
        return empty("Every planned cell has a result.")
    rows = []
    for row in as_rows(frame):
        badge = element("span", row["state"], class_=f"badge {_STATES.get(row['state'], 'note')}")
        cells = [
            element("td", results.preset_title(row["preset"]), class_="name"),
            element("td", badge),
            element("td", row["reason"], class_="long"),
        ]
        rows.append([row_head(row["method"]), *cells, element("td", row["seeds"], class_="mono")])
    return table([head_cell(t) for t in ("method", "scenario", "state", "reason", "seeds (order/split/init)")], rows)


def each_problems(results: Sequence[CampaignResults]) -> Fragment:
    """:func:`problems` of several campaigns, each under its title."""
    return join(part for one in results for part in (_heading(results, one), problems(one)))


def resources(results: CampaignResults) -> Fragment:
    """Time and memory per group, means over its records."""
    from cglsuite.reports.results.tables import resources as compute

    frame = compute(results)
    if frame.empty:
        return empty(NOTHING_DONE)
    parts = ("training", "method", "evaluation", "framework")
    numbers = ["n", "total, s", *(f"{name}, %" for name in parts), "peak memory, MB", "kept items", "kept, kB", "extra parameters"]
    rows: list[list[Fragment]] = []
    for preset, part in frame.groupby("preset", sort=False):
        rows.append([group_title(results.preset_title(str(preset)), len(numbers) + 1)])
        for row in as_rows(part):
            cells = [number_cell(row["n"], 0), number_cell(row["total_s"], 1)]
            cells += [number_cell(100 * row[f"{name}_s"] / row["total_s"] if row["total_s"] else None, 1) for name in parts]
            cells += [number_cell(row["peak_bytes"] / 1e6, 0), number_cell(row["memory_items"], 0)]
            cells += [number_cell(row["memory_bytes"] / 1e3, 1), number_cell(row["method_parameters"], 0)]
            rows.append([row_head(row["method"], row["variant"]), *cells])
    head = [head_cell("method", "name"), *(head_cell(text, "number") for text in numbers)]
    return table(head, rows, "Means per cell. Kept: the final content of the method's metered memory.")


def searches(results: CampaignResults) -> Fragment:
    """The values chosen by the campaign's hyper-parameter searches, and their scores."""
    from cglsuite.reports.results.tables import searches as compute

    frame = compute(results)
    if frame.empty:
        return empty("This campaign has no finished hyper-parameter search.")
    rows = []
    for row in as_rows(frame):
        drawn = str(row["trials"]) if row["trials"] == row["points"] else f"{row['trials']} of {row['points']}"
        counts = [exact_cell(drawn, value=row["trials"]), number_cell(row["seeds"], 0), element("td", row["scope"], class_="nowrap")]
        chosen = [element("td", element("code", row["chosen"]), class_="long"), number_cell(100 * row["score"], 1)]
        led = row["lead"] == row["lead"]
        chosen.append(mean_std_cell(row["lead"], row["lead_error"], scale=100, digits=1) if led else number_cell(None))
        rows.append([row_head(row["method"], row["backbone"]), element("td", row["scenario"], class_="name"), *counts, *chosen])
    head = [head_cell("method", "name"), head_cell("scenario", "name"), head_cell("trials", "number"), head_cell("seeds", "number")]
    head += [head_cell("scope"), head_cell("chosen"), head_cell("validation, %", "number"), head_cell("lead, points", "number")]
    about = "Selected by mean validation performance over the search's seeds: after the last task, or, with scope first-tasks(k), of the "
    about += "first k tasks after task k. Lead: over the next best trial, ± standard error of the differences by seed; a lead within its "
    about += "error is a choice by chance."
    return table(head, rows, about)


def best_of_n(results: CampaignResults) -> Gallery | Fragment:
    """One figure per scenario with a search: the expected best validation score of n trials, a line per method."""
    from cglsuite.reports.results.tuning import best_of_n as compute

    frame = compute(results.searches)
    return best_pictures(frame) if len(frame) else empty("This campaign has no finished hyper-parameter search.")


def best_pictures(frame: pd.DataFrame) -> Gallery:
    """The figures of :func:`best_of_n`, from the rows of :func:`cglsuite.reports.results.tuning.best_of_n`."""
    order = list(dict.fromkeys(frame["label"]))
    return Gallery(tuple(_best_picture(str(scenario), part, order) for scenario, part in frame.groupby("scenario", sort=False)))


def _best_picture(scenario: str, part: pd.DataFrame, order: list[str]) -> Any:
    def draw(theme: Theme) -> Any:
        table = part.rename(columns={"n": "task"})
        ylabel = "expected best on validation, %"
        return curve_figure(table, theme, title=f"{scenario}: best of n trials", order=order, xlabel="trials (n)", ylabel=ylabel)

    last = part[part["n"] == part.groupby("label")["n"].transform("max")]
    ends = "; ".join(f"{row['label']} {100 * row['mean']:.1f} with {row['n']}" for row in as_rows(last))
    excluded = int(part.groupby("label")["excluded"].first().sum())
    below = "Mean and standard deviation over all subsets of n trials; a curve that still rises had too few"
    below += f". {excluded} trials that did not finish are left out" if excluded else ""
    return picture(draw, f"Expected best validation score by number of trials in {scenario}: {ends}.", below)


def configurations(results: CampaignResults) -> Fragment:
    """Per preset: the values in which methods differ, then the shared ones in a folded list."""
    from cglsuite.reports.results.tables import common_configuration
    from cglsuite.reports.results.tables import configurations as compute

    frame = compute(results)
    if frame.empty:
        return empty(NOTHING_DONE)
    parts = []
    for preset, part in frame.groupby("preset", sort=False):
        several = part["backbone"].nunique() > 1
        rows = []
        for row in as_rows(part):
            own = [f"{name} = {value_text(value)}" for name, value in row.items() if "." in name and value is not None]
            listed = (
                join(x for text in own for x in (element("code", text), element("br"))) if own else element("span", "none", class_="quiet")
            )
            rows.append([row_head(row["method"], row["variant"], row["backbone"] if several else ""), element("td", listed, class_="long")])
        shared = common_configuration(results, str(preset))
        folded = element("summary", f"{len(shared)} shared values")
        parts.append(
            table(
                [head_cell("method", "name"), head_cell("values of its own")],
                rows,
                preset_caption(str(preset), results.overrides_of(str(preset))),
            )
        )
        parts.append(element("details", folded, _facts({name: value_text(value) or "none" for name, value in shared.items()}, code=True)))
    return join(parts)


def provenance(results: CampaignResults) -> Facts:
    """Code, environment and seeds of the records, with lines for the page footer."""
    from cglsuite import __version__
    from cglsuite.reports.results.tables import conditions, sources

    rows = []
    for row in as_rows(sources(results)):
        source = element("td", element("code", row["source"][:12]), title=row["source"])
        counted = [number_cell(row["records"], 0), element("td", row["provides"], class_="long")]
        rows.append([row_head(row["distribution"]), element("td", row["version"]), source, *counted])
    head = [
        head_cell("distribution", "name"),
        head_cell("version"),
        head_cell("source"),
        head_cell("records", "number"),
        head_cell("provides"),
    ]
    about = "Code that made the records; source: first digits of the SHA-256 of its files."
    plugins = ", ".join(f"{name} {version}" for name, version in results.plugins if name != "cglsuite")
    footer = (
        f"Campaign {results.campaign.name}: {len(results.used)} records of {len(results.cells)} planned cells.",
        f"cglsuite {__version__}" + (f" with {plugins}." if plugins else "."),
    )
    return Facts(join([table(head, rows, about) if rows else empty(NOTHING_DONE), _facts(conditions(results))]), footer)


def each_provenance(results: Sequence[CampaignResults]) -> Facts:
    """:func:`provenance` of several campaigns, each under its title; each line appears once in the footer."""
    shown = [(one, provenance(one)) for one in results]
    body = join(part for one, facts in shown for part in (_heading(results, one), facts.body))
    return Facts(body, tuple(dict.fromkeys(line for _, facts in shown for line in facts.footer)))


def _heading(results: Sequence[CampaignResults], one: CampaignResults) -> Fragment | None:
    return element("p", element("strong", one.title)) if len(results) > 1 else None


def _facts(pairs: Mapping[str, str], code: bool = False) -> Fragment:
    return definition_list((element("code", name) if code else name, text) for name, text in pairs.items() if text)
