"""Leaderboards as data: one per scenario and protocol, one row per method, each mean with its spread, interval and records.

Pure functions of results. A mean is over the records of a group, as in :func:`cglsuite.reports.results.tables.summary`; its interval is
over the factors of the design: orders, splits, seeds, or orders crossed with seeds (see :mod:`cglsuite.stats.replication`). Values have the
records' units: fractions, seconds, bytes. Rows are sorted by the first column's means for reading only; :class:`Verdict` says which
differences are significant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from cglsuite.base.errors import UnknownNameError
from cglsuite.base.markup import Fragment, element
from cglsuite.reports.kit.tables import as_rows, exact_cell, head_cell, number_cell, number_text, row_head, table
from cglsuite.reports.results.measures import is_fraction, metric_bounds, performance_names
from cglsuite.reports.results.summary import ordered_metrics
from cglsuite.reports.results.variants import UNTUNED, orders_in_all, place_of, tuned_tasks
from cglsuite.specs import NO_PRETRAINING
from cglsuite.stats import Layout, Refused, compare_methods, condition_of, layout, layout_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cglsuite.cells.records.record import Record
    from cglsuite.host import Catalogue
    from cglsuite.reports.results.results import CampaignResults, Group

__all__ = [
    "LEVEL",
    "RESOURCES",
    "SHADES",
    "Board",
    "Column",
    "Row",
    "Score",
    "Standing",
    "Verdict",
    "across",
    "board_frame",
    "boards",
    "pairs_of",
    "row_name",
    "standings",
]

LEVEL = 0.95
"""Confidence level of the intervals and of the comparison families."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """The definition of a column.

    Args:
        name: of a metric (which carries its definition) or of a column of :func:`cglsuite.cells.results_frame`.
        label: the papers' label. formula, summary: the definition. better: the better direction; empty if neither is.
        unit, scale, digits: how a value is shown: times ``scale``.
        bounds: of the scale. metric: true for metrics, false for resources, which have no interval.
    """

    name: str
    label: str
    summary: str
    formula: str = ""
    better: Literal["up", "down", ""] = ""
    unit: str = ""
    scale: float = 1.0
    digits: int = 1
    bounds: tuple[float, float] | None = None
    metric: bool = True


RESOURCES = (
    Column(name="total_s", label="time", unit="s", better="down", metric=False, summary="wall-clock time of a cell, including evaluation"),
    Column(name="peak_bytes", label="peak memory", unit="MB", scale=1e-6, digits=0, better="down", metric=False, summary="of the process"),
    Column(
        name="memory_bytes", label="memory used", unit="kB", scale=1e-3, better="down", metric=False,
        summary="final size of the method's metered memory",
    ),
    Column(name="memory_items", label="items kept", digits=0, better="down", metric=False, summary="items in the method's metered memory"),
)  # fmt: skip

TRIALS = Column(
    name="trials", label="trials", digits=0, metric=False, summary="hyper-parameter settings tried for the method in this campaign"
)


@dataclass(frozen=True, kw_only=True)
class Score:
    """One entry: mean, sample standard deviation (NaN for one record) and number of records with a value.

    ``low`` and ``high`` bound the mean (``kind``: ``t``, ``BCa`` or ``quasi-F``) over ``units`` values of the design ``over``; NaN with the
    reason in ``refusal``.
    """

    mean: float
    std: float
    n: int
    low: float = math.nan
    high: float = math.nan
    units: int = 0
    over: str = ""
    kind: str = ""
    refusal: str = ""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether a row differs significantly from the best one in the first column (family: all pairs of the board, Holm).

    ``significant`` is ``None`` if no test is possible. ``test`` is the test's name, ``summary`` one line: the test with its adjusted p
    value, or the refusal.
    """

    significant: bool | None
    best: str
    test: str
    summary: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method on a board: a group of records that differ only in their seeds. ``verdict`` is None for the best row."""

    group: Group
    category: str
    scores: Mapping[str, Score]
    verdict: Verdict | None = None

    @property
    def method(self) -> str:
        """The method's name."""
        return self.group.method

    @property
    def texts(self) -> dict[str, str]:
        """What a row says of its method in words, by column."""
        return {"category": self.category, "backbone": self.group.backbone, "pretraining": self.group.pretraining}

    @property
    def records(self) -> list[Record]:
        """Its finished records."""
        return self.group.records


@dataclass(frozen=True, kw_only=True)
class Board:
    """The standings in one preset; each preset has its own board.

    Args:
        preset: ends in a hash if switches were overridden. title: display name. scenario: the preset's own name.
        dataset, setting: of the scenario.
        design: what intervals and tests are over, as text (see :attr:`cglsuite.stats.Layout.description`); empty if methods differ in it.
        performance: name of the measure.
        machines: number of machine classes that made the records; times from different classes are not comparable.
    """

    preset: str
    title: str
    scenario: str
    dataset: str
    setting: str
    performance: str
    design: str
    machines: int
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def backbones(self) -> list[str]:
        """The distinct backbones of its rows."""
        return list(dict.fromkeys(row.group.backbone for row in self.rows))

    @property
    def texts(self) -> list[str]:
        """The columns of text, beside the method: pre-training only where one of its rows has some."""
        pretrained = any(row.group.pretraining != NO_PRETRAINING for row in self.rows)
        return ["category", "backbone", *(["pretraining"] if pretrained else [])]

    def name_of(self, row: Row) -> str:
        """A row's name in the board's family of tests."""
        return row_name(row, len(self.backbones) > 1)

    @property
    def first(self) -> Column:
        """The column that sorts the rows initially."""
        return self.columns[0]

    def column(self, name: str) -> Column:
        """The column of that name.

        Raises:
            UnknownNameError: there is no such column.
        """
        known = {column.name: column for column in self.columns}
        if name not in known:
            raise UnknownNameError("column of the leaderboard", name, known)
        return known[name]


def boards(results: CampaignResults, catalogue: Catalogue) -> list[Board]:
    """One board per preset with a finished record, in campaign order."""
    presets = list(dict.fromkeys(group.preset for group in results.groups))
    return [_board(results, catalogue, preset) for preset in presets]


def board_frame(board: Board) -> pd.DataFrame:
    """A board as a table, one row per method: identity, ``records``, and the unrounded mean, std, n and interval of every column.

    Returns:
        Columns preset, method, backbone, variant, category, pretraining (if a row has some), records, and ``<column>_mean``, ``_std``,
        ``_n``; for metrics also ``_low``, ``_high`` (of the mean, at :data:`LEVEL`) and ``_units`` (replicates behind the interval). NaN
        if there is no value.
    """
    rows = []
    for row in board.rows:
        identity = {"preset": board.preset, "method": row.method, "backbone": row.group.backbone, "variant": row.group.variant}
        numbers: dict[str, Any] = {name: row.texts[name] for name in board.texts if name != "backbone"} | {"records": len(row.records)}
        for column in board.columns:
            score = row.scores.get(column.name)
            for part in ("mean", "std", "n", *(("low", "high", "units") if column.metric else ())):
                numbers[f"{column.name}_{part}"] = getattr(score, part) if score else 0 if part in ("n", "units") else math.nan
        rows.append(identity | numbers)
    return pd.DataFrame(rows)


def _board(results: CampaignResults, catalogue: Catalogue, preset: str) -> Board:
    groups = [group for group in results.groups if group.preset == preset]
    records = [record for group in groups for record in group.records]
    columns = tuple(_columns(results, groups))
    in_all = orders_in_all(records)
    by_key = results.frame.set_index("key")
    rows = [
        Row(group=group, category=_category(catalogue, group.method), scores=_scores(by_key, group, columns, in_all)) for group in groups
    ]
    return Board(
        preset=preset,
        title=results.preset_title(preset),
        scenario=str(records[0].cell["scenario"]),
        dataset=str(records[0].cell["scenario"]).partition("/")[0],
        setting=str(records[0].scenario.get("setting") or ""),
        performance=performance_names(records),
        design=_design(groups, in_all),
        machines=len({(r.cell["device"], r.cell["threads"], r.environment.get("cpu")) for r in records}),
        columns=columns,
        rows=tuple(_judged(_sorted(rows, columns[0]), by_key, columns[0], in_all, several=len({g.backbone for g in groups}) > 1)),
    )


def _columns(results: CampaignResults, groups: Sequence[Group]) -> list[Column]:
    """The metrics with a value for at least one group, then the resources."""
    frame, records = results.frame, [record for group in groups for record in group.records]
    frame = frame[frame["key"].isin([record.key for record in records])]
    share = all(is_fraction(group.records[0]) for group in groups)
    columns = []
    for name in ordered_metrics(results.metrics):
        spec = results.metrics[name]
        if name not in frame or frame[name].isna().all():
            continue
        percent = share and not spec.unit
        columns.append(
            Column(
                name=name,
                label=spec.label or name,
                summary=spec.summary,
                formula=spec.formula,
                better=spec.direction,
                unit="%" if percent else spec.unit,
                scale=100.0 if percent else 1.0,
                digits=1 if percent or spec.unit else 4,
                bounds=metric_bounds(spec, records),
            )
        )
    columns[1:1] = [*([TRIALS] if results.searches else []), *_without_tuned(results, groups, frame, share)]
    return columns + [column for column in RESOURCES if column.name in frame and not frame[column.name].isna().all()]


def _without_tuned(results: CampaignResults, groups: Sequence[Group], frame: pd.DataFrame, share: bool) -> list[Column]:
    """The column of the tasks that the search did not see, if it saw the first ones alone."""
    tasks = tuned_tasks(results.searches, str(groups[0].records[0].cell["scenario"]))
    if tasks is None or UNTUNED not in frame or frame[UNTUNED].isna().all():
        return []
    summary = f"mean performance after the last task over the tasks after the first {tasks}, which the hyper-parameter search saw"
    scale: dict[str, Any] = {"unit": "%", "scale": 100.0, "bounds": (0.0, 1.0)} if share else {"digits": 4}
    label, formula = f"AP, tasks after {tasks}", f"mean_{{j>{tasks}}} M[T,j]"
    return [Column(name=UNTUNED, label=label, summary=summary, formula=formula, better="up", metric=False, **scale)]


def _design(groups: Sequence[Group], in_all: int | None) -> str:
    """The design that all methods share, in words; empty if there is none."""
    found = set()
    for group in groups:
        try:
            found.add(layout(pd.DataFrame([place_of(record) | {"value": 0.0} for record in group.records]), in_all).description)
        except Refused as refusal:
            found.add(str(refusal))
    return found.pop() if len(found) == 1 else ""


def _scores(by_key: pd.DataFrame, group: Group, columns: Sequence[Column], in_all: int | None) -> dict[str, Score]:
    frame = by_key.loc[[record.key for record in group.records]]
    designs = _Designs(pd.DataFrame([place_of(record) for record in group.records]), in_all)
    scores = {}
    for column in columns:
        values: NDArray[np.float64] = np.asarray(frame[column.name].astype("float64"), dtype=np.float64)
        known = values[~np.isnan(values)]
        if known.size:
            std = float(known.std(ddof=1)) if known.size > 1 else math.nan
            interval = _interval(designs, values, column) if column.metric else {}
            scores[column.name] = Score(mean=float(known.mean()), std=std, n=int(known.size), **interval)
    return scores


class _Designs:
    """The layouts of a group's columns. Columns with values for the same records have the same design, which is made once.

    Args:
        places: of the records, as :func:`cglsuite.stats.layout` takes them. in_all: the number of orders that there are, if it is known.
    """

    def __init__(self, places: pd.DataFrame, in_all: int | None) -> None:
        self.places, self.in_all = places, in_all
        self._places_of: dict[bytes, Layout | Refused] = {}

    def of(self, values: NDArray[np.float64]) -> Layout:
        """The layout of a column, float64 [number of records] with NaN where a record has no value.

        Raises:
            Refused: as :func:`cglsuite.stats.layout`.
        """
        known = ~np.isnan(values)
        arrangement = self._places_of.get(known.tobytes())
        if arrangement is None:
            try:
                arrangement = layout(self.places[known].assign(value=np.flatnonzero(known).astype(np.float64)), self.in_all)
            except Refused as refusal:
                arrangement = refusal
            self._places_of[known.tobytes()] = arrangement
        if isinstance(arrangement, Refused):
            raise arrangement
        if arrangement.averaged == 1:  # its values are the places of records
            return replace(arrangement, values=values[arrangement.values.astype(np.int64)])
        return layout(self.places[known].assign(value=values[known]), self.in_all)


def _interval(designs: _Designs, values: NDArray[np.float64], column: Column) -> dict[str, Any]:
    units: dict[str, Any] = {}
    try:
        design = designs.of(values)
        units = {"units": design.values.size, "over": design.description}
        interval = layout_interval(design, level=LEVEL, bounds=column.bounds)
    except Refused as refusal:
        return units | {"refusal": str(refusal)}
    return units | {"low": interval.low, "high": interval.high, "kind": interval.method}


def _category(catalogue: Catalogue, method: str) -> str:
    return catalogue.method(method).category if method in catalogue.names("method") else "not installed"


def _sorted(rows: Sequence[Row], column: Column) -> list[Row]:
    """Best mean first, rows without a value last, ties in campaign order."""
    sign = -1.0 if column.better == "up" else 1.0
    missing = [row for row in rows if column.name not in row.scores]
    return sorted((row for row in rows if column.name in row.scores), key=lambda row: sign * row.scores[column.name].mean) + missing


def _judged(rows: Sequence[Row], by_key: pd.DataFrame, column: Column, in_all: int | None, several: bool) -> list[Row]:
    """The rows with their verdicts on ``column``; the first row has the best mean. Of a sweep that row was selected: it is no reference."""
    names = [row_name(row, several) for row in rows]
    sweep = len({(row.method, row.group.backbone) for row in rows}) < len(rows)
    if len(rows) < 2 or not column.metric or sweep:
        return list(rows)
    comparisons = pairs_of(rows, by_key, column, in_all, several)
    against = {(set(pair) - {names[0]}).pop(): row for row in as_rows(comparisons) if names[0] in (pair := (row["first"], row["second"]))}
    return [rows[0], *(replace(row, verdict=_verdict(against[name], names[0])) for name, row in zip(names[1:], rows[1:], strict=True))]


def pairs_of(rows: Sequence[Row], by_key: pd.DataFrame, column: Column, in_all: int | None, several: bool) -> pd.DataFrame:
    """Tests of all pairs of rows on ``column``: :func:`cglsuite.stats.compare_methods`, with Holm's adjustment.

    Args:
        by_key: the records' frame, indexed by key. in_all: the number of orders that there are, if it is known.
        several: whether the rows have several backbones, which their names then include.

    Raises:
        Refused: fewer than two rows.
    """
    cells = [
        {"method": row_name(row, several), "value": by_key.at[record.key, column.name], **place_of(record)}
        for row in rows
        for record in row.records
    ]
    return compare_methods(pd.DataFrame(cells), higher_is_better=column.better == "up", alpha=1.0 - LEVEL, orders_in_all=in_all)


def row_name(row: Row, several: bool) -> str:
    """A row's name in a family of tests."""
    return f"{row.group.label} × {row.group.backbone}" if several else row.group.label


def _verdict(test: Mapping[str, Any], best: str) -> Verdict:
    if test["refused"]:
        return Verdict(significant=None, best=best, test="", summary=f"no test against {best}: {test['refused']}")
    significant = bool(test["p_adjusted"] <= 1.0 - LEVEL)
    over = ", ".join(filter(None, (test["replicates"], test["population"], condition_of(test["given"]))))
    verdict = f"differs significantly from {best}" if significant else f"no significant difference from {best}"
    tested = f"{test['test']} over {over}, p = {test['p_adjusted']:.3g} (Holm, all pairs)"
    return Verdict(significant=significant, best=best, test=str(test["test"]), summary=f"{verdict}: {tested}")


# Methods across scenarios: who is best where, and each method's mean rank. Scores of different scenarios are never averaged.

SHADES = 5
"""Steps of the shading, from the worst (0) to the best score of a scenario."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One method in all scenarios.

    Args:
        name: the method, with its backbone if any scenario has several. rows: by the board's preset. ranks: by preset; 1 is the best, ties
            share their mean rank.
    """

    name: str
    rows: Mapping[str, Row]
    ranks: Mapping[str, float]

    @property
    def mean_rank(self) -> float:
        """Over the scenarios in which it has a score."""
        return sum(self.ranks.values()) / len(self.ranks)


def standings(boards: Sequence[Board]) -> list[Standing]:
    """All methods with a score, best mean rank first; those that were run in more scenarios come before equals."""
    several = any(len(board.backbones) > 1 for board in boards)
    rows: dict[str, dict[str, Row]] = {}
    ranks: dict[str, dict[str, float]] = {}
    for board in boards:
        scored = [row for row in board.rows if board.first.name in row.scores]
        for row in scored:
            name = f"{row.group.label} × {row.group.backbone}" if several else row.group.label
            rows.setdefault(name, {})[board.preset] = row
            ranks.setdefault(name, {})[board.preset] = _rank(board, row, scored)
    found = [Standing(name=name, rows=rows[name], ranks=ranks[name]) for name in rows]
    return sorted(found, key=lambda one: (one.mean_rank, -len(one.ranks)))


def across(boards: Sequence[Board], *, heading: bool = True) -> Fragment | None:
    """A table of methods against scenarios, shaded within each scenario; ``None`` with fewer than two scenarios or methods.

    ``heading``: as a section of its own.
    """
    found = standings(boards)
    if len(boards) < 2 or len(found) < 2:
        return None
    head = [head_cell("method", "name"), head_cell("mean rank ↓", "number")]
    head += [
        head_cell(f"{board.title}, {board.first.label}{f' {board.first.unit}' if board.first.unit else ''}", "number") for board in boards
    ]
    rows = []
    for one in found:
        lacking = f" ({len(one.ranks)} of {len(boards)})" if len(one.ranks) < len(boards) else ""
        rank = exact_cell(f"{number_text(one.mean_rank, 1)}{lacking}", value=one.mean_rank)
        rows.append([row_head(one.name), rank, *(_score(board, one.rows.get(board.preset)) for board in boards)])
    about = "Ranks compare methods within a scenario; scores of different scenarios are not comparable and are never averaged. Darker is "
    about += "better within a column. Methods that were run in more scenarios have more ranks in their mean."
    if not heading:
        return element("div", table(head, rows, about), class_="across")
    title = element("h3", "Across scenarios", id="across-title")
    return element("section", title, table(head, rows, about), class_="across", aria_labelledby="across-title")


def _rank(board: Board, row: Row, scored: Sequence[Row]) -> float:
    sign = 1.0 if board.first.better == "up" else -1.0
    own = sign * row.scores[board.first.name].mean
    others = [sign * other.scores[board.first.name].mean for other in scored if other is not row]
    return 1.0 + sum(value > own for value in others) + 0.5 * sum(value == own for value in others)


def _score(board: Board, row: Row | None) -> Fragment:
    if row is None:
        return number_cell(None)
    column = board.first
    mean = row.scores[column.name].mean
    text = number_text(mean * column.scale, column.digits)
    return element("td", text, class_=f"number shade-{_shade(board, mean)}", data_value=repr(mean))


def _shade(board: Board, mean: float) -> int:
    """From 0, the worst score of the scenario, to ``SHADES - 1``, the best."""
    means = [row.scores[board.first.name].mean for row in board.rows if board.first.name in row.scores]
    low, high = (min(means), max(means)) if board.first.better == "up" else (max(means), min(means))
    share = (mean - low) / (high - low) if high != low else 0.5
    return min(SHADES - 1, int(share * SHADES))
