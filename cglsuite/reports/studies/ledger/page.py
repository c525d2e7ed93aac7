"""The page of the reproduction ledger. It formats what :mod:`cglsuite.reports.studies.ledger.compute` computes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from cglsuite import stats
from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.campaigns.reference.values import UNITS
from cglsuite.reports.kit.htmltable import empty, exact_cell, head_cell, mean_std_cell, number_cell, number_text, row_head, table
from cglsuite.reports.kit.notices import Notes, key_box, notice, tile, verdict_badge
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.results.runs import Facts
from cglsuite.reports.studies.ledger.judging import JUDGED, RULE, VERDICTS

if TYPE_CHECKING:
    from cglsuite.reports.results.results import CampaignResults
    from cglsuite.reports.studies.ledger.compute import Ledger

__all__ = [
    "count_cell",
    "failed",
    "interval_cell",
    "judged",
    "not_run",
    "not_runnable",
    "offset_table",
    "offsets",
    "overview",
    "p_cell",
    "printed_cell",
    "provenance",
    "provenance_of",
    "totals",
    "unit_digits",
    "unreached",
    "verdict_cell",
    "waiting",
]

_KEYS_SHOWN = 30
_KEY_LENGTH = 12


def overview(ledger: Ledger) -> Fragment:
    """The selection, the number of rows per verdict, the rule, and warnings to read before the numbers."""
    paper, rows = ledger.reproduction.paper, ledger.rows
    tiles = [tile(len(rows), "published values"), *(tile(n, verdict) for verdict, n in ledger.counts.items())]
    published = f"{paper.repeats} repetitions" if paper.repeats else "an unstated number of repetitions"
    about = f"{paper.name} prints means over {published}. {paper.seeds_note}".strip()
    about += f" Its standard deviations are taken as over {paper.spread}."
    if repeats := ledger.reproduction.selection.repeats:
        about += f" This ledger uses the first {repeats} of the protocol's {paper.most_repeats} repetitions."
    if ledger.reproduction.unprinted:
        about += f" {ledger.reproduction.unprinted} further cells of its tables hold no value (N/A, out of memory, out of time)."
    parts: list[Content] = [element("p", element("strong", ledger.title), class_="lead")]
    parts += [_message(ledger), element("ul", *tiles, class_="tiles"), element("p", _sentence(RULE)), element("p", about)]
    return join([*parts, *_notices(ledger)])


def _message(ledger: Ledger) -> Fragment | None:
    """Key results: per data set and setting how many compared values have which verdict, and the largest difference."""
    lines = []
    for (paper, dataset, setting), part in _parts(_judged(ledger)):
        counts = part["verdict"].value_counts()
        said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in JUDGED if verdict in counts)
        tested = part[part["verdict"].isin(stats.AGREEMENTS) & part["points"].notna()]
        if len(tested):
            row = tested.loc[tested["points"].abs().idxmax()]
            size = number_text(row["points"], 1, plus=True)
            said += f"; the largest difference is {size} points ({row['method']}, {row['metric']}: {row['verdict']})"
        values = f"{len(part)} compared value{'s' * (len(part) != 1)}"
        lines.append(element("li", element("strong", f"{paper}, {dataset} in {setting}"), f": of {values} {said}."))
    return key_box(lines) if lines else None


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _notices(ledger: Ledger) -> Iterable[Fragment]:
    judged = _judged(ledger)
    partial = judged[judged["our_n"] < judged["planned_n"]]
    if len(partial):
        yield notice(
            f"{len(partial)} of {len(judged)} compared means are over fewer records than planned; our n is their number, and the verdicts "
            "refer to them."
        )
    stale = judged[judged["stale"] != ""]
    if len(stale):
        reasons = list(dict.fromkeys(stale["stale"]))
        more = [f"and {len(reasons) - 3} more differences"] if len(reasons) > 3 else []
        yield notice(f"{len(stale)} rows use records made by different code or on another class of machine:", *reasons[:3], *more)


def _judged(ledger: Ledger) -> pd.DataFrame:
    return ledger.rows[ledger.rows["verdict"].isin(JUDGED)]


def totals(ledger: Ledger) -> Fragment:
    """The number of rows per verdict, by data set and setting."""
    if ledger.rows.empty:
        return empty("There are no published values to reproduce here.")
    shown = [verdict for verdict in VERDICTS if verdict in ledger.counts]
    rows = []
    parts: Any = ledger.rows.groupby(["dataset", "setting"], sort=False)
    for (dataset, setting), part in parts:
        counts = [int((part["verdict"] == verdict).sum()) for verdict in shown]
        cells = [element("td", setting), number_cell(len(part), 0), *(number_cell(n or None, 0) for n in counts)]
        rows.append([row_head(dataset), *cells])
    head = [head_cell("data set", "name"), head_cell("setting"), head_cell("values", "number"), *(head_cell(v, "number") for v in shown)]
    return table(head, rows)


# --- compared rows ---------------------------------------------------------------------------------------------------------------


def judged(ledger: Ledger) -> Fragment:
    """A table per data set and setting: published and ours, the difference, the verdict, the records."""
    rows = _judged(ledger)
    if rows.empty:
        return empty("No row has been compared: no cell has a result.")
    return join(_table(f"{paper}, {dataset} in {setting}", part) for (paper, dataset, setting), part in _parts(rows))


def _parts(rows: pd.DataFrame) -> Any:
    return rows.groupby(["paper", "dataset", "setting"], sort=False)


def _table(title: str, part: pd.DataFrame) -> Fragment:
    numbers = ("published", "published n", "ours", "our n", "trials", "difference", "90 % interval", "margin", "smallest margin", "p, Holm")
    head = [head_cell("method", "name"), head_cell("verdict"), head_cell("metric"), *(head_cell(text, "number") for text in numbers)]
    head += [head_cell(text) for text in ("unit", "table", "records")]
    presets = ", ".join(dict.fromkeys(part["preset"]))
    about = f"preset {presets}; difference = ours − published, in the unit of the row; smallest margin: with which it would be equivalent; "
    about += "trials: from how many settings ours were chosen"
    notes = Notes()
    shown = table(head, [_cells(row, notes) for row in as_rows(part)], join([element("strong", title), f" – {about}"]))
    return join([shown, notes.listed()])


def _cells(row: Mapping[str, Any], notes: Notes) -> list[Fragment]:
    digits, verdict = unit_digits(row["unit"]), verdict_cell(row, notes)
    metric = element("td", f"{row['metric']} ", element("br"), element("code", row["metric_here"]), class_="name")
    where = [element("td", row["unit"]), element("td", row["table"], element("br"), element("span", row["variant"], class_="quiet"))]
    ours = mean_std_cell(row["our_mean"], row["our_std"], scale=1.0, digits=digits)
    numbers = [printed_cell(row, notes), number_cell(_known(row["published_n"]), 0), ours, count_cell(row, notes)]
    numbers.append(number_cell(_known(row["our_trials"]), 0))
    numbers += [number_cell(row["difference"], digits, plus=True), interval_cell(row, digits)]
    numbers += [number_cell(row[name], digits) for name in ("margin", "smallest_margin")]
    numbers.append(p_cell(row["p_holm"]))
    same = str(row["method_here"]).replace("-", "").lower() == str(row["method"]).replace("-", "").lower()
    backbone = row["backbone"] if row["backbone"] != "GCN" else ""
    head = row_head(row["method"], "" if same else f"here {row['method_here']}", backbone, row["overrides"])
    return [head, verdict, metric, *numbers, *where, _keys(row["records"])]


def verdict_cell(row: Mapping[str, Any], notes: Notes) -> Fragment:
    """The verdict, with a note on its reason."""
    return element("td", *notes.mark(verdict_badge(row["verdict"]), row["reason"]), class_="nowrap")


def printed_cell(row: Mapping[str, Any], notes: Notes) -> Fragment:
    """The published value as it is printed, with a note on what is known of it."""
    text = row["shown"].replace("-", "−")
    known = "; ".join(filter(None, (row["remark"], row["unit_note"])))
    return element("td", *notes.mark(text, known), class_="number nowrap", data_value=repr(float(row["published_mean"])))


def count_cell(row: Mapping[str, Any], notes: Notes) -> Fragment:
    """Number of records or repetitions, and the planned number if some are missing, with a note on why, or on their settings."""
    n, planned = int(row["our_n"]), int(row["planned_n"])
    text = str(n) if n == planned else f"{n} of {planned}"
    return element("td", *notes.mark(text, row["lacking"]), class_="number nowrap", data_value=repr(float(n)))


def interval_cell(row: Mapping[str, Any], digits: int) -> Fragment:
    """``low`` to ``high`` of a row."""
    low, high = row["low"], row["high"]
    if math.isnan(low):
        return number_cell(None)
    text = f"{number_text(low, digits, plus=True)} to {number_text(high, digits, plus=True)}"
    return exact_cell(text, low=low, high=high)


def p_cell(value: float) -> Fragment:
    """A p value to three digits."""
    if math.isnan(value):
        return number_cell(None)
    return element("td", "< 0.001" if value < 0.001 else f"{value:.3f}", class_="number", data_value=repr(float(value)))


def unit_digits(unit: str) -> int:
    """Number of digits, as in papers: one for units of the order of 100, three for units of the order of 1."""
    return 1 if UNITS[unit].scale > 1 else 3


def _known(value: Any) -> Any:
    return None if pd.isna(value) else int(value)


def _keys(records: str) -> Fragment:
    """Number of records, with the first digits of their keys folded below."""
    keys = records.split()
    listed = " ".join(key[:_KEY_LENGTH] for key in keys[:_KEYS_SHOWN])
    more = f" and {len(keys) - _KEYS_SHOWN} more, in ledger.csv" if len(keys) > _KEYS_SHOWN else ""
    return element("td", element("details", element("summary", f"{len(keys)}"), element("code", listed), more or None), class_="mono")


# --- tables as a whole -----------------------------------------------------------------------------------------------------------


def offsets(ledger: Ledger) -> Fragment:
    """By table and metric: the mean difference over its rows, with an interval from a joint bootstrap of orders."""
    return offset_table(ledger.offsets)


def offset_table(frame: pd.DataFrame) -> Fragment:
    """The same of what :func:`cglsuite.reports.studies.ledger.judging.offsets` returns, of one ledger or several."""
    if frame.empty:
        return empty("No row has been compared: there is no offset.")
    rows = []
    for row in as_rows(frame):
        digits = unit_digits(row["unit"])
        cells = [row_head(f"{row['paper']}, table {row['table']}"), element("td", row["metric"]), element("td", row["unit"])]
        cells += [number_cell(row["rows"], 0), number_cell(row["higher"], 0), number_cell(row["mean"], digits, plus=True)]
        cells.append(element("td", row["reason"], class_="quiet long") if row["reason"] else interval_cell(row, digits))
        rows.append(cells)
    head = [head_cell("table", "name"), head_cell("metric"), head_cell("unit")]
    head += [head_cell(text, "number") for text in ("rows", "ours higher", "mean difference", "95 % interval")]
    about = "Ours − published, over the rows of a table that have a verdict. Rows of a preset share orders, splits and seeds: these are "
    about += "drawn jointly, and published errors are taken as fully correlated. How many rows are higher is a description, not a test."
    return table(head, rows, about)


# --- the others ------------------------------------------------------------------------------------------------------------------


def not_run(ledger: Ledger) -> Fragment:
    """By preset and method: how many published values wait for cells."""
    rows = ledger.rows[ledger.rows["verdict"] == "not run"]
    return waiting(rows) if len(rows) else empty("Every row that can be run here has been run.")


def failed(ledger: Ledger) -> Fragment:
    """By preset and method: how many published values have cells that were run and gave no result, and why."""
    rows = ledger.rows[ledger.rows["verdict"] == "failed"]
    return waiting(rows) if len(rows) else empty("No row lacks a value because of failed cells.")


def waiting(rows: pd.DataFrame) -> Fragment:
    """By preset, method and reason: rows that have no value yet."""
    shown = []
    parts: Any = rows.groupby(["preset", "method", "reason"], sort=False)
    for (preset, method, reason), part in parts:
        metrics = ", ".join(dict.fromkeys(part["metric"]))
        cells = [element("td", preset, class_="name"), number_cell(len(part), 0), element("td", metrics)]
        shown.append([row_head(method), *cells, element("td", reason, class_="long")])
    head = [head_cell("method", "name"), head_cell("preset", "name"), head_cell("values", "number"), head_cell("metrics"), head_cell("why")]
    return table(head, shown)


def not_runnable(ledger: Ledger) -> Fragment:
    """By reason: what cannot be run here, the most frequent first."""
    return unreached(ledger.rows)


def unreached(rows: pd.DataFrame) -> Fragment:
    """The same of the rows of one ledger or several."""
    rows = rows[rows["verdict"] == "not runnable here"]
    if rows.empty:
        return empty("Every row can be run here.")
    shown = []
    parts: Any = rows.groupby("reason", sort=False)
    for reason, part in sorted(parts, key=lambda one: -len(one[1])):
        where = ", ".join(dict.fromkeys(f"{row['dataset']} {row['setting']}" for row in as_rows(part)))
        methods = ", ".join(dict.fromkeys(part["method"]))
        numbers = [number_cell(len(part), 0), element("td", where, class_="long"), element("td", methods, class_="long")]
        shown.append([element("th", reason, scope="row", class_="long"), *numbers])
    return table([head_cell("why"), head_cell("values", "number"), head_cell("data sets"), head_cell("methods")], shown)


def provenance(ledger: Ledger) -> Facts:
    """Code that made the records behind the rows, with lines for the page footer."""
    return provenance_of(ledger.title, len(ledger.rows), ledger.results)


def provenance_of(title: str, published: int, results: Sequence[CampaignResults]) -> Facts:
    """The same of several ledgers: the title of all, how many published values they have, and their campaigns' results."""
    from cglsuite import __version__
    from cglsuite.reports.results.tables import sources

    used = [one for one in results if one.used]
    frames = [sources(one) for one in used]
    rows = []
    if frames:
        kinds = pd.concat(frames).groupby(["distribution", "version", "source"], sort=True)["records"].sum().reset_index()
        for row in as_rows(kinds):
            source = element("td", element("code", row["source"][:_KEY_LENGTH]), title=row["source"])
            rows.append([row_head(row["distribution"]), element("td", row["version"]), source, number_cell(row["records"], 0)])
    head = [head_cell("distribution", "name"), head_cell("version"), head_cell("source"), head_cell("records", "number")]
    about = "Code that made the records; source: first digits of the SHA-256 of its files."
    cells = sum(len(one.used) for one in results)
    footer = (f"{title}: {published} published values, {cells} records.", f"cglsuite {__version__}.")
    return Facts(table(head, rows, about) if rows else empty("No cell of these rows has a result yet."), footer)
