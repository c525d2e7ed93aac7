"""The page of the reproduction ledger. It formats the results of :mod:`cglsuite.reports.studies.ledger.compute`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cglsuite import stats
from cglsuite.base.markup import Content, Fragment, element, join, several
from cglsuite.campaigns.reference.values import UNITS
from cglsuite.reports.kit.figures import grid_picture
from cglsuite.reports.kit.pictures import DASHES, Gallery, Theme, legend, mark_series, picture, plain_axes, titled_figure
from cglsuite.reports.kit.tables import (
    Column,
    amount,
    amount_cell,
    empty,
    exact_cell,
    framed,
    interval,
    interval_cell,
    label,
    mean_std,
    number,
    number_cell,
    number_text,
    p_cell,
    row_head,
    titled,
    words,
)
from cglsuite.reports.kit.text import Notes, key_box, notice, tile, verdict_badge
from cglsuite.reports.results.results import CampaignResults
from cglsuite.reports.results.runs import SOURCES, Facts, best_pictures
from cglsuite.reports.results.variants import best_of_n as expected_bests
from cglsuite.reports.studies.anatomy.page import statistics_table
from cglsuite.reports.studies.ledger.compute import JUDGED, MARGINS_TRIED, RULE, VERDICTS, Ledger, survivors
from cglsuite.reports.studies.ledger.compute import margins as margins_of
from cglsuite.reports.studies.ledger.ratios import KINDS, RATIO_RULE, ratio_counts, statistic_counts

_KEYS_SHOWN = 30
_KEY_LENGTH = 12


def overview(ledger: Ledger) -> Fragment:
    """Show the selection, the number of rows with each verdict, the rule for verdicts, and warnings about the numbers."""
    paper, rows = ledger.reproduction.paper, ledger.rows
    tiles = [tile(len(rows), "published values"), *(tile(n, verdict) for verdict, n in ledger.counts.items())]
    published = f"{paper.repeats} repetitions" if paper.repeats else "an unstated number of repetitions"
    about = f"{paper.name} prints means over {published}. {paper.seeds_note}".strip()
    about += f" Its standard deviations are assumed to be over {paper.spread}."
    if repeats := ledger.reproduction.selection.repeats:
        about += f" This ledger uses the first {repeats} of the protocol's {paper.max_repeats} repetitions."
    if ledger.reproduction.unprinted:
        about += f" {ledger.reproduction.unprinted} further cells of its tables hold no value (N/A, out of memory, out of time)."
    parts: list[Content] = [element("p", element("strong", ledger.title), class_="lead")]
    parts += [_message(ledger), element("ul", *tiles, class_="tiles"), element("p", _sentence(RULE)), element("p", about)]
    return join([*parts, *_notices(ledger)])


def grid(rows: pd.DataFrame) -> Gallery | None:
    """Plot our values minus the printed ones in one or several ledgers as a heat map, or return ``None`` if no row is compared."""
    compared = _judged(rows)
    compared = compared[compared["points"].notna()]
    if compared.empty:
        return None
    printed_at: Any = compared["paper"] + " " + compared["table"].astype(str) + " · " if compared["paper"].nunique() > 1 else ""
    place = printed_at + compared["dataset"] + " · " + compared["setting"] + " · " + compared["metric"]
    means: Any = compared.groupby([compared["method"], place], sort=False)["points"].mean().items()
    cells = {(str(method), str(column)): float(value) for (method, column), value in means}
    what, about = (
        "Ours − published, points",
        "One cell per method and printed column. Colours end at 20 points. Empty cells were not compared",
    )
    look: dict[str, Any] = {"percent": False, "bounds": (-20.0, 20.0), "colours": "coolwarm"}
    return Gallery((grid_picture(cells, title=what, what=what, caption=about, **look),))


def _message(ledger: Ledger) -> Fragment | None:
    """Summarise, for every data set and setting, the number of compared values with each verdict and the largest difference."""
    lines = []
    for title, part in _parts(_judged(ledger.rows)):
        counts, tested = part["verdict"].value_counts(), part[part["verdict"].isin(stats.AGREEMENTS)]
        equivalent, different = (int(counts.get(verdict, 0)) for verdict in ("equivalent", "different"))
        said = f"{equivalent or 'none'} of {several(len(tested), 'tested value')} {'is' if equivalent < 2 else 'are'} equivalent to "
        said += f"the printed ones, {different or 'none'} {'differs' if different < 2 else 'differ'} "
        said += f"and {counts.get('undecided', 0)} are undecided"
        said = said if len(tested) else "no value could be tested"
        known = tested[tested["points"].notna()]
        if len(known):
            row = known.loc[known["points"].abs().idxmax()]
            size, where = number_text(abs(row["points"]), 1), "above" if row["points"] > 0 else "below"
            said += f". The largest difference: {row['method']} is {size} points {where} the printed value "
            said += f"in {row['metric']} ({row['verdict']})"
        notes = [f"{survivors(part)} equivalent after Holm over the table"] if equivalent else []
        notes += [f"{n} {verdict}" for verdict in JUDGED if verdict not in stats.AGREEMENTS and (n := counts.get(verdict, 0))]
        about = f" [{', '.join(notes)}]" if notes else ""
        lines.append(element("li", element("strong", title), f": {said}{about}."))
    return key_box(lines) if lines else None


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _notices(ledger: Ledger) -> Iterable[Fragment]:
    judged = _judged(ledger.rows)
    partial = judged[judged["our_n"] < judged["planned_n"]]
    if len(partial):
        yield notice(
            f"{len(partial)} of {len(judged)} compared means are based on fewer records than planned. Our n counts the available records, "
            "which determine the verdicts."
        )
    stale = judged[judged["stale"] != ""]
    if len(stale):
        reasons = list(dict.fromkeys(stale["stale"]))
        more = [f"and {len(reasons) - 3} more differences"] if len(reasons) > 3 else []
        yield notice(f"{len(stale):,} rows use records produced by different code or on another class of machine:", *reasons[:3], *more)


def _judged(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["verdict"].isin(JUDGED)]


def totals(ledger: Ledger) -> Fragment:
    """Tabulate the number of rows with each verdict, by data set and setting."""
    if ledger.rows.empty:
        return empty("There are no published values to reproduce here.")
    parts: Any = ledger.rows.groupby(["dataset", "setting"], sort=False)["verdict"]
    none = dict.fromkeys(VERDICTS, 0)
    rows = [none | {"dataset": of, "setting": where, "values": len(part), **part.value_counts()} for (of, where), part in parts]
    counts = [number(verdict, zero=False) for verdict in VERDICTS if verdict in ledger.counts]
    return framed(rows, [label("data set", "dataset"), words("setting"), number("values"), *counts])


# --- compared rows ---------------------------------------------------------------------------------------------------------------


def judged(ledger: Ledger) -> Fragment:
    """Tabulate published values next to ours, with the difference, the verdict and the records, per data set and setting."""
    return by_dataset(ledger.rows, _table)


def by_dataset(rows: pd.DataFrame, shown: Callable[[str, pd.DataFrame], Fragment]) -> Fragment:
    """Tabulate the compared rows of one or several ledgers, with one titled table per paper, data set and setting."""
    compared = _judged(rows)
    if compared.empty:
        return empty("No row has been compared: no cell has a result.")
    return join(shown(title, part) for title, part in _parts(compared))


def counted(part: pd.DataFrame) -> str:
    """Return the number of rows with each verdict as text."""
    counts = part["verdict"].value_counts()
    held = f" ({survivors(part)} after Holm's adjustment)" if counts.get("equivalent") else ""
    return ", ".join(f"{counts[verdict]} {verdict}{held if verdict == 'equivalent' else ''}" for verdict in JUDGED if verdict in counts)


def _parts(rows: pd.DataFrame) -> Iterator[tuple[str, Any]]:
    for (paper, dataset, setting), part in rows.groupby(["paper", "dataset", "setting"], sort=False):
        yield f"{paper}, {dataset} in {setting}", part


def _table(title: str, part: pd.DataFrame) -> Fragment:
    notes = Notes()
    columns = [
        Column("method", _method, "name"),
        verdict(notes),
        words("metric", lambda row: join([f"{row['metric']} ", element("br"), element("code", row["metric_here"])]), "name"),
        *(printed(notes), number("published n", lambda row: _known(row["published_n"])), OURS, count("our n", notes)),
        number("trials", lambda row: _known(row["our_trials"])),
        *(DIFFERENCE, interval("90% interval", unit, plus=True), number("margin", digits=digits)),
        *(number("smallest margin", "smallest_margin", digits), Column("equivalent, p, Holm", _survives), P_HOLM, words("unit")),
        words("table", lambda row: join([row["table"], element("br"), element("span", row["variant"], class_="quiet")])),
        Column("records", lambda row: _keys(row["records"]), None),
    ]
    if (part["orders_verdict"] != "").any():
        columns.insert(3, words("on these orders", _on_orders, "nowrap"))
    presets = ", ".join(dict.fromkeys(part["preset"]))
    about = f"preset {presets}; difference = ours − published, in the unit of the row; smallest margin: at which the row is equivalent; "
    about += "equivalent, p, Holm: of its two one-sided tests, adjusted over the table; trials: the settings from which ours was chosen"
    if (part["orders_verdict"] != "").any():
        about += "; on these orders: the printed mean is over the same orders, so their effects cancel; the claim is limited to them"
    return join([framed(part, columns, titled(title, f" – {about}")), notes.listed()])


def _on_orders(row: Mapping[str, Any]) -> Content:
    """The verdict that is conditional on the orders, with the interval of the difference and the number of init seeds in each."""
    if not row["orders_verdict"]:
        return "–"
    ends = " to ".join(number_text(row[end], digits(row), plus=True) for end in ("orders_low", "orders_high"))
    detail = element("span", f"{ends}, {int(row['orders_seeds'])} seeds each", class_="quiet")
    return join([verdict_badge(row["orders_verdict"]), element("br"), detail])


def _survives(row: Mapping[str, Any]) -> Fragment:
    """Of an equivalent row, whether its tests survive the adjustment over the table."""
    return p_cell(row["p_equivalent_holm"]) if row["verdict"] == "equivalent" else number_cell(None)


def _method(row: Mapping[str, Any]) -> Fragment:
    same = str(row["method_here"]).replace("-", "").lower() == str(row["method"]).replace("-", "").lower()
    backbone = row["backbone"] if row["backbone"] != "GCN" else ""
    return row_head(row["method"], "" if same else f"here {row['method_here']}", backbone, row["overrides"])


def verdict(notes: Notes) -> Column:
    """Return the column of verdicts, with notes on the reasons."""
    return words("verdict", lambda row: join(notes.mark(verdict_badge(row["verdict"]), row["reason"])), "nowrap")


def printed(notes: Notes) -> Column:
    """Return the column of published values, as printed and with notes."""

    def cell(row: Mapping[str, Any]) -> Fragment:
        known = "; ".join(filter(None, (row["remark"], row["unit_note"])))
        return exact_cell(*notes.mark(row["shown"].replace("-", "−"), known), value=row["published_mean"])

    return Column("published", cell)


def count(head: str, notes: Notes) -> Column:
    """Return the column with the number of records or repetitions. If some are missing, a note and the planned number are added."""

    def cell(row: Mapping[str, Any]) -> Fragment:
        n, planned = int(row["our_n"]), int(row["planned_n"])
        return exact_cell(*notes.mark(str(n) if n == planned else f"{n} of {planned}", row["lacking"]), value=n)

    return Column(head, cell)


def unit_digits(unit: str) -> int:
    """Return the number of digits used in papers: one for values up to about 100, three for values up to about 1."""
    return 1 if UNITS[unit].scale > 1 else 3


def digits(row: Mapping[str, Any]) -> int:
    """Return the number of digits for the values of a row in the printed unit."""
    return unit_digits(row["unit"])


def unit(row: Mapping[str, Any]) -> tuple[int, float]:
    """Return the number of digits and the scale of a row's means and intervals."""
    return digits(row), 1.0


OURS = mean_std("ours", unit, "our_mean", "our_std")
DIFFERENCE = number("difference", "difference", digits, plus=True)
P_HOLM = Column("p, Holm", lambda row: p_cell(row["p_holm"]))


def _known(value: Any) -> Any:
    return None if pd.isna(value) else int(value)


def _keys(records: str) -> Fragment:
    """Show the number of records and, collapsed, the first digits of their keys."""
    keys = records.split()
    listed = " ".join(key[:_KEY_LENGTH] for key in keys[:_KEYS_SHOWN])
    more = f" and {len(keys) - _KEYS_SHOWN} more, in ledger.csv" if len(keys) > _KEYS_SHOWN else ""
    return element("td", element("details", element("summary", f"{len(keys)}"), element("code", listed), more or None), class_="mono")


# --- tables as a whole -----------------------------------------------------------------------------------------------------------


def offsets(ledger: Ledger) -> Fragment:
    """Tabulate the mean difference over the rows of each table and metric, with an interval from a joint bootstrap of orders."""
    return offset_table(ledger.offsets)


def offset_table(frame: pd.DataFrame) -> Fragment:
    """Render the results of :func:`cglsuite.reports.studies.ledger.compute.offsets` for one or several ledgers as a table."""

    def interval_of(row: Mapping[str, Any]) -> Fragment:
        if row["reason"]:
            return element("td", row["reason"], class_="quiet long")
        return interval_cell(row["low"], row["high"], digits(row), plus=True)

    columns = [
        *(label("table", lambda row: f"{row['paper']}, table {row['table']}"), words("metric"), words("unit"), number("rows")),
        *(number("ours higher", "higher"), number("mean difference", "mean", digits, plus=True), Column("95% interval", interval_of)),
    ]
    about = "Ours − published, over the rows of a table that have a verdict. Rows of a preset share orders, splits and seeds, which are "
    about += "therefore drawn jointly, and published errors are treated as fully correlated. The number of higher rows is not a test."
    return framed(frame, columns, about, none="No row has been compared, so there is no offset.")


def share_table(frame: pd.DataFrame) -> Fragment:
    """Render the results of :func:`cglsuite.reports.studies.ledger.compute.shares` for one or several ledgers as a table."""

    def interval_of(row: Mapping[str, Any]) -> Fragment:
        if row["reason"]:
            return element("td", row["reason"], class_="quiet long")
        return interval_cell(row["low"], row["high"], 0, 100.0)

    columns = [
        *(label("table", lambda row: f"{row['paper']}, table {row['table']}"), words("metric"), number("rows")),
        *(number("equivalent one by one", "equivalent"), number("prior scale", "scale")),
        *(amount("share within the margin, %", "mean", (0, 100.0)), Column("95% interval", interval_of)),
    ]
    about = (
        "From a hierarchical model: the difference of a row is the sum of an offset of its table, an offset of its preset, and a term with "
    )
    about += (
        "Student's t distribution with 4 degrees of freedom. Errors within a preset are correlated, and the correlation is integrated out. "
    )
    about += "The share describes the table under priors of three scales (points) and is not a verdict on a row."
    return framed(frame, columns, about, none="No row has been compared, so there is no share.")


def margins(ledger: Ledger) -> Fragment:
    """Tabulate, for each table and metric, the margin, the gap between methods, and the share of equivalent rows at several margins."""
    return margin_table(margins_of(ledger.rows))


def equivalence(ledger: Ledger) -> Gallery | Fragment:
    """Draw the share of equivalent rows against the margin."""
    return equivalence_curves(margins_of(ledger.rows))


def margin_table(frame: pd.DataFrame) -> Fragment:
    """Render the results of :func:`cglsuite.reports.studies.ledger.compute.margins` for one or several ledgers as a table."""
    columns = [
        *(label("table", lambda row: f"{row['paper']}, table {row['table']}"), words("metric"), number("rows"), number("margin", digits=1)),
        *(number("median gap between neighbours", "gap", 1), number("equivalent"), number("survive Holm", "survive")),
        *(
            replace(amount(f"{tried:g}", f"within {tried:g}", (0, 100.0)), group="% of rows equivalent with a margin of")
            for tried in MARGINS_TRIED
        ),
    ]
    about = "In points. The gap is between neighbours in a ranking of printed means: a larger margin makes methods equivalent that the "
    about += "paper ranks. Survive Holm: equivalent rows that also pass their tests after the adjustment over the table."
    return framed(frame, columns, about, none="No row has been compared, so there are no margins.")


def equivalence_curves(frame: pd.DataFrame) -> Gallery | Fragment:
    """Plot the share of equivalent rows against the margin, with one line per paper over all of its tables."""
    if frame.empty:
        return empty("No row has been compared, so there is no curve.")
    names, curves = [f"within {margin:g}" for margin in MARGINS_TRIED], {}
    for paper, part in frame.groupby("paper", sort=False):
        curves[str(paper)] = 100.0 * np.average(part[names].to_numpy(dtype=np.float64), axis=0, weights=part["rows"])
    said = "; ".join(f"{paper} {', '.join(f'{share:.0f}' for share in shares)}" for paper, shares in curves.items())
    alt = f"Share of rows equivalent, in %, with margins of {', '.join(f'{margin:g}' for margin in MARGINS_TRIED)} points: {said}"
    below = "Dashed: the fixed margins of 2 points (3 for differences)."
    return Gallery((picture(partial(equivalence_figure, curves), alt, below),))


def equivalence_figure(curves: Mapping[str, NDArray[np.float64]], theme: Theme) -> Figure:
    """Plot the percentage of rows that would be equivalent against the margin (points, logarithmic), with one line per paper."""
    figure, axes = titled_figure("Verdicts by margin", theme, 4.7, 2.45, rows=int(np.ceil(len(curves) / 2)))
    for index, (name, shares) in enumerate(curves.items()):
        look: dict[str, Any] = {"color": theme.lines[index % len(theme.lines)], "linestyle": DASHES[index % len(DASHES)], "marker": "o"}
        (line,) = axes.plot(MARGINS_TRIED, shares, label=name, markersize=4.5, linewidth=1.6, **look)
        mark_series(name, line, points=[f"{margin:g} points: {share:.0f}%" for margin, share in zip(MARGINS_TRIED, shares, strict=True)])
    for margin in (2.0, 3.0):
        axes.axvline(margin, color=theme.quiet, linewidth=1.0, linestyle="--")
    axes.set_xscale("log")
    axes.set_xticks(MARGINS_TRIED, [f"{margin:g}" for margin in MARGINS_TRIED])
    axes.set_xticks([], minor=True)
    axes.set_ylim(0, 102)
    axes.set_xlabel("margin, points, log scale")
    axes.set_ylabel("rows equivalent, %")
    plain_axes(axes, theme, "both")
    legend(figure, 2, hides=list(curves))
    return figure


# --- the others ------------------------------------------------------------------------------------------------------------------


def not_run(ledger: Ledger) -> Fragment:
    """Tabulate the number of published values that wait for cells to be run, by preset and method."""
    return _waiting(ledger, "not run", "Every row that can be run here has been run.")


def failed(ledger: Ledger) -> Fragment:
    """Tabulate the published values with failed cells, with the reason, by preset and method."""
    return _waiting(ledger, "failed", "No row lacks a value because of failed cells.")


def _waiting(ledger: Ledger, verdict: str, none: str) -> Fragment:
    """Rows with a verdict that means "no value yet", by preset, method and reason."""
    parts: Any = ledger.rows[ledger.rows["verdict"] == verdict].groupby(["preset", "method", "reason"], sort=False)["metric"]
    columns = [label("method"), words("preset", class_="name", kind="name"), number("values"), words("metrics")]
    columns.append(words("why", "reason", "long"))
    return framed(parts.agg(values="size", metrics=_listed).reset_index(), columns, none=none)


def _listed(texts: pd.Series) -> str:
    return ", ".join(dict.fromkeys(texts))


def not_runnable(ledger: Ledger) -> Fragment:
    """Tabulate the values that cannot be run here by reason, most frequent first."""
    return unreached(ledger.rows)


def unreached(rows: pd.DataFrame) -> Fragment:
    """Tabulate the rows of one or several ledgers that cannot be run here, by reason."""
    rows = rows[rows["verdict"] == "not runnable here"]
    parts: Any = rows.assign(where=rows["dataset"] + " " + rows["setting"]).groupby("reason", sort=False)
    shown = parts.agg(values=("method", "size"), where=("where", _listed), methods=("method", _listed)).reset_index()
    columns = [
        Column("why", lambda row: element("th", row["reason"], scope="row", class_="long"), None),
        *(number("values"), words("data sets", "where", "long"), words("methods", class_="long")),
    ]
    return framed(shown.sort_values("values", ascending=False, kind="stable"), columns, none="Every row can be run here.")


def provenance(ledger: Ledger) -> Facts:
    """Show the code that produced the records of the rows, with lines for the page footer."""
    return provenance_of(ledger.title, len(ledger.rows), ledger.results)


def provenance_of(title: str, published: int, results: Sequence[CampaignResults]) -> Facts:
    """Show the code that produced the records of several ledgers, with lines for the page footer."""
    from cglsuite import __version__
    from cglsuite.reports.results.tables import promises, sources

    frames = [sources(result) for result in results if result.used]
    counts: Any = (
        pd.concat(frames).groupby(["distribution", "version", "source"], sort=True)["records"].sum().reset_index() if frames else ()
    )
    about = "The code that produced the records. Source: the first digits of the SHA-256 hash of its files."
    cells = sum(len(result.used) for result in results)
    footer = (f"{title}: {published:,} published values, {cells:,} records.", f"cglsuite {__version__}.")
    shown = framed(counts, SOURCES[:-1], about, none="No cell of these rows has a result yet.")
    bits = promises(record for result in results for record in result.used)
    return Facts(join([shown, element("p", f"The same bits: {bits}.") if bits else None]), footer)


# Sections in addition to the compared values: tuning, running times as ratios, and statistics of the data sets.


_KINDS = dict(zip(KINDS, ("seconds / Bare's", "framework"), strict=True))
_RATIO, _SHARE = (2, 1.0), (2, 100.0)
_UNITS = dict(zip(KINDS, (_RATIO, _SHARE), strict=True))
_CLOCKS = (
    "Times on different machines are compared only as ratios. Our ratios are between records with the same scenario, backbone, seeds and "
    "machine, over the whole stream without saving checkpoints. A ratio also depends on when training stops, on the hardware, and on what "
    "else ran on the machine."
)


def running_times(ledger: Ledger) -> Fragment:
    """Compare printed running times with ours as ratios, and show the ratios of all our methods."""
    shown = list(filter(None, (_printed(ledger.ratios), _ours(ledger.times))))
    return join(shown) if shown else empty("No running time is printed for these rows, and no record contains one.")


def _printed(ratios: pd.DataFrame) -> Fragment | None:
    if ratios.empty:
        return None
    columns = [
        label("method", "method", lambda row: row["variant"].partition("; ")[0].removeprefix("size=")),
        *(words("verdict", lambda row: verdict_badge(row["verdict"])), words("ratio", lambda row: _KINDS[row["kind"]], "nowrap")),
        number("printed seconds", "seconds", lambda row: 0 if row["seconds"] >= 1000 else 1),
        *(_ratio("published"), _ratio("ours")),
        interval("95% interval", lambda row: _UNITS[row["kind"]]),
        number("n", lambda row: _known(row["our_n"])),
        *(amount("ours / published", "factor", _RATIO), interval("90% interval", _RATIO, "factor_low", "factor_high")),
        *(number("p, Holm", "p_holm", 3), words("why", "reason", "quiet long")),
    ]
    counts = ", ".join(f"{n} {verdict}" for verdict, n in ratio_counts(ratios).items())
    about = f" – {counts}. {RATIO_RULE[0].upper()}{RATIO_RULE[1:]}. {_CLOCKS}"
    return framed(
        ratios, columns, titled("Printed running times", about), by=lambda row: f"{row['paper']}, {row['dataset']} in {row['setting']}"
    )


def _ratio(head: str) -> Column:
    """A column of ratios; shares are in percent."""
    return Column(head, lambda row: amount_cell(row[head], *_UNITS[row["kind"]], unit="%" if row["kind"] == KINDS[1] else ""))


def _ours(times: pd.DataFrame) -> Fragment | None:
    """A row per method: its seconds relative to Bare's, and the framework's share."""
    known = times[times["n"] > 0]
    if known.empty:
        return None
    columns = [
        *(label("method"), number("n"), amount("seconds / Bare's", "ratio", _RATIO), interval("95% interval", _RATIO)),
        number("framework, %", lambda row: 100 * row["share"], 2),
        interval("95% interval, %", _SHARE, "share_low", "share_high"),
        *([words("why", "reason", "quiet long")] if (known["reason"] != "").any() else []),
    ]
    said = (
        " – geometric means over repetitions; intervals for three or more repetitions. Framework: the share of the time in which neither "
        "the method nor training nor evaluation runs."
    )
    about = titled("Our running times", said, f" {_CLOCKS}")
    return framed(known, columns, about, by=lambda row: ", ".join(filter(None, (row["preset"], row["backbone"], row["overrides"]))))


# --- tuning ----------------------------------------------------------------------------------------------------------------------


def trials(ledger: Ledger) -> Fragment:
    """Tabulate the number of settings from which ours were chosen, per method and preset, and the number that the paper reports."""
    frame = ledger.rows[ledger.rows["our_trials"].notna()]
    if frame.empty:
        return empty("No row has been compared, so there are no trials.")
    distinct = frame[["preset", "method_here", "our_trials"]].drop_duplicates()
    presets = list(dict.fromkeys(distinct["preset"]))
    counts = distinct.groupby(["method_here", "preset"], sort=False)["our_trials"].last().unstack(sort=False).reset_index()
    columns = [label("method", "method_here"), *(number(preset) for preset in presets)]
    paper = ledger.reproduction.paper
    theirs = f"{paper.name}: {paper.trials}" if paper.trials else f"{paper.name} does not report how many it tried"
    unequal = " Methods with unequal numbers of trials were not tuned equally." if distinct["our_trials"].nunique() > 1 else ""
    about = f"Number of settings from which our hyperparameters were chosen on validation data; 1: not tuned. {theirs}.{unequal}"
    return framed(counts, columns, about)


def best_of_n(ledger: Ledger) -> Gallery | Fragment:
    """Plot the expected best validation score of n trials, one figure per scenario with a search that chose values of a row."""
    frame = expected_bests(ledger.searches)
    if frame.empty:
        return empty("No search in this store chose these values, so there is no curve of the best of n trials.")
    return best_pictures(frame)


# --- statistics ------------------------------------------------------------------------------------------------------------------


def statistics(ledger: Ledger) -> Fragment:
    """Compare the paper's statistics of these data sets with our counts, and give the reasons for missing counts."""
    frame = ledger.statistics
    if frame.empty:
        return empty("No paper prints statistics of these data sets.")
    counts = ", ".join(f"{n} {name}" for name, n in statistic_counts(frame).items())
    parts: list[Content] = [element("p", f"Of {len(frame)} printed numbers: {counts}.")]
    parts.append(statistics_table(_together(frame)))
    reasons: Any = frame[frame["reason"] != ""].groupby("reason", sort=False)
    lines = [element("li", f"{', '.join(dict.fromkeys(part['dataset']))}: {reason}") for reason, part in reasons]
    if lines:
        parts += [element("p", "Not counted:", class_="quiet"), element("ul", *lines, class_="quiet")]
    return join(parts)


def _together(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The statistics by title; settings of a data set with equal numbers are combined."""
    groups: dict[tuple[str, str, str], tuple[list[str], pd.DataFrame]] = {}
    parts: Any = frame.groupby(["paper", "dataset", "setting"], sort=False)
    for (paper, dataset, setting), part in parts:
        same = part.drop(columns=["setting", "preset"]).to_csv(index=False)
        groups.setdefault((paper, dataset, same), ([], part))[0].append(setting)
    return {f"{dataset} in {' and '.join(settings)}": part for (_, dataset, _), (settings, part) in groups.items()}
