"""Leaderboards as data: one board per scenario and protocol, one row per method and setting. A mean has a spread, an interval and records.

Pure functions of results. A mean is over the records of a group, as in :func:`cglsuite.reports.results.tables.summary`; its interval is
over the factors of the design: orders, splits, seeds, or orders crossed with seeds (see :mod:`cglsuite.stats.replication`). Values have the
records' units: fractions, seconds, bytes. Rows are sorted by the first column's means: learners with every repetition have ranks,
incomplete ones follow, and references (:data:`cglsuite.reports.results.results.REFERENCE`) stand beside them. :class:`Verdict` says which
differences are significant.

The settings of one method are a sweep (:class:`Family`). The best of them by test performance was selected on test data, so only the one
that validation chose is compared with other methods.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cglsuite.base.errors import UnknownNameError
from cglsuite.base.markup import Fragment, element
from cglsuite.cells.records.record import Record
from cglsuite.host import Catalogue
from cglsuite.reports.kit.sentences import p_text, rank_level
from cglsuite.reports.kit.tables import as_rows, exact_cell, group_title, head_cell, number_cell, number_text, row_head, table
from cglsuite.reports.results.measures import is_fraction, metric_bounds, performance_names
from cglsuite.reports.results.results import (
    Group,
    Results,
    axis_order,
    axis_values,
    best_on_validation,
    families_of,
    missing_repetitions,
)
from cglsuite.reports.results.summary import ordered_metrics
from cglsuite.reports.results.variants import UNTUNED, orders_in_all, place_of, split_overlap, tuned_tasks, value_as_text
from cglsuite.specs import NO_PRETRAINING
from cglsuite.specs.metric import DIRECTIONS
from cglsuite.stats import Layout, Refused, compare_methods, condition_of, layout, layout_interval

LEVEL = 0.95
"""Confidence level of the intervals and of the comparison families."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a leaderboard: its definition, its heading, its number format and the computation of its values.

    Args:
        name: a metric (which carries its definition) or a column of :func:`cglsuite.cells.results_frame`.
        label: the papers' label. formula, summary: the definition. better: the better direction; empty if neither is.
        unit, scale, digits: how a value is shown: times ``scale``.
        bounds: of the scale. metric: true for metrics, false for resources, which have no interval.
        value: from the frame to its values, for a column that the frame does not have: one record per row, NaN where there is none.
        shown_first: whether a campaign's index shows it by default.
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
    value: Callable[[pd.DataFrame], pd.Series] | None = None
    shown_first: bool = False

    @property
    def sign(self) -> float:
        """1 if higher values are better, else -1."""
        return 1.0 if self.better == "up" else -1.0

    @property
    def gap_unit(self) -> str:
        """The unit in which differences are shown, such as points for percentages."""
        return "points" if self.unit == "%" else self.unit

    def amount(self, difference: float) -> str:
        """Format a difference with its unit."""
        return f"{number_text(difference * self.scale, self.digits)} {self.gap_unit}".rstrip()

    def text(self, score: Score) -> str:
        """Format a mean, with its standard deviation if there is one."""
        mean, std = (number_text(value * self.scale, self.digits) for value in (score.mean, score.std))
        return mean if math.isnan(score.std) else f"{mean} ± {std}"

    @property
    def heading(self) -> str:
        """The label, the unit and the arrow, as in ``AP (AA), % ↑``."""
        return self.headed(f", {self.unit}" if self.unit else "")

    def headed(self, unit: str) -> str:
        """Join the label and the arrow around a ``unit`` that is formatted separately."""
        return f"{self.label}{unit}{f' {DIRECTIONS[self.better].arrow}' if self.better else ''}"


RESOURCES = (
    Column(
        name="total_s", label="time", unit="s", better="down", metric=False, shown_first=True,
        summary="wall-clock time of a cell, including evaluation",
    ),
    Column(name="peak_bytes", label="peak memory", unit="MB", scale=1e-6, digits=0, better="down", metric=False, summary="of the process"),
    Column(
        name="memory_bytes", label="memory used", unit="kB", scale=1e-3, better="down", metric=False,
        summary="final size of the method's metered memory",
    ),
    Column(name="memory_items", label="items kept", digits=0, better="down", metric=False, summary="items in the method's metered memory"),
)  # fmt: skip
"""The columns after the metrics, on every board, index, hosted board and download. Columns without a value are left out."""

TRIALS = Column(
    name="trials", label="trials", digits=0, metric=False, summary="hyperparameter settings tried for the method in this campaign"
)


@dataclass(frozen=True, kw_only=True)
class Score:
    """One entry of a board: the mean, the sample standard deviation (NaN for one record) and the number of records with a value.

    ``low`` and ``high`` are the ends of the mean's interval (``kind``: ``t``, ``BCa`` or ``quasi-F``) over ``units`` values of the design
    ``over``; they are NaN, with the reason in ``refusal``, if there is no interval.
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
    """The test of a row against the best learner in the first column, Holm-adjusted over all pairs of the board.

    ``significant`` is ``None`` if no test is possible. ``test`` is the test's name, ``summary`` one line: the test with its adjusted p
    value, or the refusal.
    """

    significant: bool | None
    best: str
    test: str
    summary: str


SECTIONS = ("", "Incomplete: not ranked, because repetitions are missing", "References: not ranked")
"""The sections of a board's rows, with their titles: learners, incomplete learners, references."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a board, which is a group of records of one method that differ only in their seeds.

    Args:
        verdict: ``None`` for the best row and for rows that are not compared. pretraining: the scheme. settings: the values that
            distinguish it from other rows of its family, by dotted key. validation: mean validation performance; NaN if a record lacks it.
        reference: whether it is a reference rather than a competitor. missing: number of repetitions that most rows with its backbone have
        and this row lacks.
    """

    group: Group
    category: str
    scores: Mapping[str, Score]
    verdict: Verdict | None = None
    pretraining: str = NO_PRETRAINING
    settings: Mapping[str, Any] = field(default_factory=dict)
    validation: float = math.nan
    reference: bool = False
    missing: int = 0

    @property
    def method(self) -> str:
        """The method's name."""
        return self.group.method

    @property
    def section(self) -> int:
        """The row's section of the board, one of :data:`SECTIONS`."""
        return 2 if self.reference else int(self.missing > 0)

    @property
    def texts(self) -> dict[str, str]:
        """The row's text cells, by column."""
        return {"category": self.category, "backbone": self.group.backbone, "pretraining": self.pretraining}

    @property
    def records(self) -> list[Record]:
        """The row's finished records."""
        return self.group.records


@dataclass(frozen=True, kw_only=True)
class Family:
    """The rows of one method with one backbone and pre-training scheme: a single row, or the settings of a sweep in the order of its axes.

    ``numbers``: the positions of the rows on their board.
    """

    rows: tuple[Row, ...]
    numbers: tuple[int, ...]

    @property
    def method(self) -> str:
        """The method's name."""
        return self.rows[0].method

    @property
    def name(self) -> str:
        """The method's name, followed by its pre-training scheme if it has one."""
        if not self.swept:
            return self.rows[0].group.label
        pretraining = self.rows[0].pretraining
        return self.method if pretraining == NO_PRETRAINING else f"{self.method} ({pretraining})"

    @property
    def swept(self) -> bool:
        """Whether the family has several settings."""
        return len(self.rows) > 1

    @property
    def axes(self) -> list[str]:
        """The settings in which the family's rows differ, as dotted keys."""
        return list(self.rows[0].settings)

    @property
    def selected(self) -> Row | None:
        """The row chosen without test data: the only row or the best on validation, or ``None`` if validation was not recorded."""
        if not self.swept:
            return self.rows[0]
        place = best_on_validation([row.validation for row in self.rows])
        return None if place is None else self.rows[place]

    @property
    def section(self) -> int:
        """The section of the row that represents the family."""
        return (self.selected or self.rows[0]).section

    def best(self, column: Column) -> Row | None:
        """Return the row with the best mean on test data, or ``None`` if no row has a value."""
        scored = [row for row in self.rows if column.name in row.scores]
        return max(scored, key=lambda row: column.sign * row.scores[column.name].mean, default=None)

    def range(self, column: Column) -> tuple[float, float] | None:
        """Return the smallest and the largest mean of the family's rows, or ``None`` if no row has a value."""
        means = [row.scores[column.name].mean for row in self.rows if column.name in row.scores]
        return (min(means), max(means)) if means else None

    def place(self, column: Column) -> float | None:
        """Return the family's sort key: the mean of the selected row, or the middle of the range if no row was selected."""
        if self.selected is not None:
            return self.selected.scores[column.name].mean if column.name in self.selected.scores else None
        ends = self.range(column)
        return (ends[0] + ends[1]) / 2 if ends is not None else None


@dataclass(frozen=True, kw_only=True)
class Board:
    """The leaderboard of one preset.

    Args:
        preset: its name, which ends in a hash if switches were overridden. title: display name. scenario: the preset's own name.
        dataset, setting: of the scenario.
        design: the design of intervals and tests, as text (see :attr:`cglsuite.stats.Layout.description`), or empty if methods differ.
        performance: name of the measure.
        machines: number of machine classes on which the records were produced. Times from different classes are not comparable.
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
        """The distinct backbones of the board's rows."""
        return list(dict.fromkeys(row.group.backbone for row in self.rows))

    @property
    def texts(self) -> list[str]:
        """The text columns next to the method. Pre-training is included only if a row has it."""
        pretrained = any(row.pretraining != NO_PRETRAINING for row in self.rows)
        return ["category", "backbone", *(["pretraining"] if pretrained else [])]

    @cached_property
    def families(self) -> list[Family]:
        """The board's rows grouped by method, backbone and pre-training. Sections stay together, and the best family comes first."""
        members: dict[tuple[str, str, str], list[int]] = {}
        for number, row in enumerate(self.rows):
            members.setdefault((row.method, row.group.backbone, row.pretraining), []).append(number)
        families = []
        for numbers in members.values():
            along = sorted(numbers, key=lambda number: [axis_order(value) for value in self.rows[number].settings.values()])
            families.append(Family(rows=tuple(self.rows[number] for number in along), numbers=tuple(along)))
        places = {id(family): family.place(self.first) for family in families}

        def place_of_family(family: Family) -> tuple[int, float]:
            place = places[id(family)]
            return family.section, math.inf if place is None else -self.first.sign * place

        return sorted(families, key=place_of_family)

    @property
    def compared(self) -> tuple[Row, ...]:
        """The rows that can be compared across methods, best first. None of them was selected on test data."""
        selected = {id(family.selected) for family in self.families}
        return tuple(row for row in self.rows if id(row) in selected)

    @property
    def ranked(self) -> tuple[Row, ...]:
        """The compared learners with all repetitions and a value in the first column, best first."""
        return tuple(row for row in self.compared if row.section == 0 and self.first.name in row.scores)

    @cached_property
    def ranks(self) -> dict[int, int]:
        """The rank of each ranked row, keyed by its position on the board. The best rank is 1, and equal means share the smallest of their
        ranks.
        """
        places = {id(row): number for number, row in enumerate(self.rows)}
        levels = [rank_level(row.scores[self.first.name].mean) for row in self.ranked]
        return {places[id(row)]: levels.index(level) + 1 for row, level in zip(self.ranked, levels, strict=True)}

    @property
    def axes(self) -> list[str]:
        """The settings in which rows of one method differ, as dotted keys."""
        return list(dict.fromkeys(name for family in self.families for name in family.axes))

    def name_of(self, row: Row) -> str:
        """Return the name that identifies a row in the board's tests."""
        return row_name(row, len(self.backbones) > 1)

    @property
    def first(self) -> Column:
        """The column by which rows are initially sorted."""
        return self.columns[0]

    def column(self, name: str) -> Column:
        """Return the column with the given name.

        Raises:
            UnknownNameError: if there is no such column.
        """
        known = {column.name: column for column in self.columns}
        if name not in known:
            raise UnknownNameError("column of the leaderboard", name, known)
        return known[name]


def boards(results: Results, catalogue: Catalogue, *, first: bool = False) -> list[Board]:
    """Build one board for each preset with a finished record, in campaign order. If ``first`` is set, boards have only the first column."""
    presets = list(dict.fromkeys(group.preset for group in results.groups))
    return [_board(results, catalogue, preset, first) for preset in presets]


def board_frame(board: Board) -> pd.DataFrame:
    """Return a board as a data frame with one row per method and setting, ``records``, and the unrounded numbers of every column.

    Returns:
        Columns rank (empty where a row has none), preset, method, backbone, variant, one per axis of a sweep (its dotted key), category,
        pretraining (if a row has some), records, missing (repetitions), and ``<column>_mean``, ``_std``, ``_n``; for metrics also ``_low``,
        ``_high`` (of the mean, at :data:`LEVEL`) and ``_units`` (replicates of the interval). NaN if there is no value.
    """
    rows = []
    for number, row in enumerate(board.rows):
        identity: dict[str, Any] = {
            "rank": board.ranks.get(number, ""),
            "preset": board.preset,
            "method": row.method,
            "backbone": row.group.backbone,
            "variant": row.group.variant,
        }
        identity |= {name: axis_value(row, name) for name in board.axes}
        numbers: dict[str, Any] = {name: row.texts[name] for name in board.texts if name != "backbone"}
        numbers |= {"records": len(row.records), "missing": row.missing}
        for column in board.columns:
            score = row.scores.get(column.name)
            for part in ("mean", "std", "n", *(("low", "high", "units") if column.metric else ())):
                numbers[f"{column.name}_{part}"] = getattr(score, part) if score else 0 if part in ("n", "units") else math.nan
        rows.append(identity | numbers)
    return pd.DataFrame(rows)


def axis_value(row: Row, axis: str) -> float | int | str:
    """Return a row's value on an axis as a number or as text. It is empty if the method does not vary on this axis."""
    value = row.settings.get(axis, "")
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else value_as_text(value)


def _board(results: Results, catalogue: Catalogue, preset: str, first: bool) -> Board:
    groups = [group for group in results.groups if group.preset == preset]
    records = [record for group in groups for record in group.records]
    frame = results.frame.assign(**{column.name: column.value for column in RESOURCES if column.value})
    columns = tuple(_columns(results, groups, frame)[: 1 if first else None])
    designs: dict[tuple[tuple[str, ...], ...], _Designs] = {}
    n_possible_orders = orders_in_all(records)
    by_key = frame.set_index("key")
    settings = _settings(groups)
    missing: dict[int, int] = {}
    for backbone in dict.fromkeys(group.backbone for group in groups):
        missing |= missing_repetitions([group for group in groups if group.backbone == backbone])
    rows = [
        Row(
            group=group,
            category=_category(catalogue, group.method),
            scores=_scores(by_key, group, columns, _designs(designs, group, n_possible_orders)),
            pretraining=group.pretraining,
            settings=settings[id(group)],
            validation=float(np.mean([results.validation[record.key] for record in group.records])),
            reference=group.method in results.references,
            missing=missing[id(group)],
        )
        for group in groups
    ]
    board = Board(
        preset=preset,
        title=results.preset_title(preset),
        scenario=str(records[0].cell["scenario"]),
        dataset=str(records[0].cell["scenario"]).partition("/")[0],
        setting=str(records[0].scenario.get("setting") or ""),
        performance=performance_names(records),
        design=_design(_designs(designs, group, n_possible_orders) for group in groups),
        machines=len({(r.cell["device"], r.cell["threads"], r.environment.get("cpu")) for r in records}),
        columns=columns,
        rows=tuple(_sorted(rows, columns[0])),
    )
    verdicts = _verdicts(board, by_key, n_possible_orders)
    return replace(board, rows=tuple(replace(row, verdict=verdicts.get(id(row))) for row in board.rows))


def _settings(groups: Sequence[Group]) -> dict[int, dict[str, Any]]:
    """By the id of a group, the values in which it differs from others of its family."""
    return {
        id(group): values
        for family in families_of(groups)
        for group, values in zip(family, axis_values([group.records[0] for group in family]), strict=True)
    }


def _columns(results: Results, groups: Sequence[Group], frame: pd.DataFrame) -> list[Column]:
    """The metrics that have a value for at least one group, then the resources."""
    records = [record for group in groups for record in group.records]
    frame = frame[frame["key"].isin([record.key for record in records])]
    share = all(is_fraction(group.records[0]) for group in groups)
    columns, quantities = [], set[str]()
    for name in ordered_metrics(results.metrics):
        spec = results.metrics[name]
        if name not in frame or frame[name].isna().all():
            continue
        percent, first_of_its_kind = share and not spec.unit, spec.quantity not in quantities
        quantities.add(spec.quantity)
        columns.append(
            Column(
                name=name,
                label=spec.title,
                summary=spec.summary,
                formula=spec.formula,
                better=spec.direction,
                unit="%" if percent else spec.unit,
                scale=100.0 if percent else 1.0,
                digits=1 if percent or spec.unit else 4,
                bounds=metric_bounds(spec, records),
                shown_first=first_of_its_kind and spec.quantity in ("forgetting", "intransigence"),
            )
        )
    columns[1:1] = [*([TRIALS] if results.searches else []), *_without_tuned(results, groups, frame, share)]
    return columns + [column for column in RESOURCES if column.name in frame and not frame[column.name].isna().all()]


def _without_tuned(results: Results, groups: Sequence[Group], frame: pd.DataFrame, share: bool) -> list[Column]:
    """The column of performance on tasks that the search did not use, if it used only the first ones."""
    tasks = tuned_tasks(results.searches, str(groups[0].records[0].cell["scenario"]))
    if tasks is None or UNTUNED not in frame or frame[UNTUNED].isna().all():
        return []
    summary = f"mean performance after the last task over the tasks after the first {tasks}, which the hyperparameter search saw"
    scale: dict[str, Any] = {"unit": "%", "scale": 100.0, "bounds": (0.0, 1.0)} if share else {"digits": 4}
    label, formula = f"AP, tasks after {tasks}", f"mean_{{j>{tasks}}} M[T,j]"
    return [Column(name=UNTUNED, label=label, summary=summary, formula=formula, better="up", metric=False, **scale)]


def _designs(known: dict[tuple[tuple[str, ...], ...], _Designs], group: Group, n_possible_orders: int | None) -> _Designs:
    """The designs of a group's columns, shared by groups whose records have the same orders, splits and seeds."""
    places = [place_of(record) for record in group.records]
    name = tuple(tuple(place.values()) for place in places)
    return known.get(name) or known.setdefault(name, _Designs(pd.DataFrame(places), n_possible_orders))


def _design(designs: Iterable[_Designs]) -> str:
    """The design that all methods share, in words; empty if there is none."""
    settings = set()
    for setting in {id(design): design for design in designs}.values():
        try:
            settings.add(setting.of(np.zeros(len(setting.places))).description)
        except Refused as refusal:
            settings.add(str(refusal))
    return settings.pop() if len(settings) == 1 else ""


def _scores(by_key: pd.DataFrame, group: Group, columns: Sequence[Column], designs: _Designs) -> dict[str, Score]:
    frame = by_key.loc[[record.key for record in group.records]]
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
    """The designs of a group's columns; columns with values for the same records share one.

    Args:
        places: of the records, as :func:`cglsuite.stats.layout` takes them.
        n_possible_orders: the number of orders that there are, if it is known.
    """

    def __init__(self, places: pd.DataFrame, n_possible_orders: int | None) -> None:
        self.places, self.n_possible_orders = places, n_possible_orders
        self._places_of: dict[bytes, Layout | Refused] = {}

    def of(self, values: NDArray[np.float64]) -> Layout:
        """Return the design of a column, given its values (float64 [number of records], NaN for records without a value).

        Raises:
            Refused: as :func:`cglsuite.stats.layout`.
        """
        known = ~np.isnan(values)
        arrangement = self._places_of.get(known.tobytes())
        if arrangement is None:
            try:
                arrangement = layout(self.places[known].assign(value=np.flatnonzero(known).astype(np.float64)), self.n_possible_orders)
            except Refused as refusal:
                arrangement = refusal
            self._places_of[known.tobytes()] = arrangement
        if isinstance(arrangement, Refused):
            raise arrangement
        if arrangement.averaged == 1:  # its values are the places of records
            return replace(arrangement, values=values[arrangement.values.astype(np.int64)])
        return layout(self.places[known].assign(value=values[known]), self.n_possible_orders)


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
    """Section by section, best mean first, rows without a value last, ties in campaign order."""

    def place(row: Row) -> tuple[int, bool, float]:
        score = row.scores.get(column.name)
        return row.section, score is None, 0.0 if score is None else -column.sign * rank_level(score.mean)

    return sorted(rows, key=place)


def _verdicts(board: Board, by_key: pd.DataFrame, n_possible_orders: int | None) -> dict[int, Verdict]:
    """By the id of a compared row, whether it differs from the first one, which has no entry."""
    rows, column = board.compared, board.first
    if len(rows) < 2 or not column.metric:
        return {}
    best, *others = map(board.name_of, rows)
    comparisons = pairs_of(rows, by_key, column, n_possible_orders, len(board.backbones) > 1)
    against = {(set(pair) - {best}).pop(): row for row in as_rows(comparisons) if best in (pair := (row["first"], row["second"]))}
    return {id(row): _verdict(against[name], best, column) for name, row in zip(others, rows[1:], strict=True)}


def pairs_of(rows: Sequence[Row], by_key: pd.DataFrame, column: Column, n_possible_orders: int | None, several: bool) -> pd.DataFrame:
    """Test all pairs of rows on ``column`` with :func:`cglsuite.stats.compare_methods` and Holm's adjustment.

    Args:
        by_key: the records' frame, indexed by key. n_possible_orders: the number of orders that there are, if it is known.
        several: whether the rows have several backbones, which their names then include.

    Raises:
        Refused: fewer than two rows.
    """
    cells = [
        {"method": row_name(row, several), "value": by_key.at[record.key, column.name], **place_of(record)}
        for row in rows
        for record in row.records
    ]
    how: dict[str, Any] = {"orders_in_all": n_possible_orders, "overlap": split_overlap(record for row in rows for record in row.records)}
    return compare_methods(pd.DataFrame(cells), higher_is_better=column.better == "up", alpha=1.0 - LEVEL, **how)


def row_name(row: Row, several: bool) -> str:
    """Return the name that identifies a row in tests and tables."""
    return f"{row.group.label} × {row.group.backbone}" if several else row.group.label


def _verdict(test: Mapping[str, Any], best: str, column: Column) -> Verdict:
    if test["refused"]:
        return Verdict(significant=None, best=best, test="", summary=f"no test against {best}: {test['refused']}")
    significant = bool(test["p_adjusted"] <= 1.0 - LEVEL)
    over = ", ".join(filter(None, (test["replicates"], test["population"], condition_of(test["given"]))))
    worse = column.sign * (1.0 if test["first"] == best else -1.0) * test["estimate"]
    apart = f"{column.amount(abs(test['estimate']))} {'below' if worse >= 0.0 else 'above'} {best}"
    verdict = apart if significant else f"no significant difference from {best}, {apart}"
    tested = f"{test['test']} over {over}, {p_text(test['p_adjusted'])} (Holm, all pairs)"
    return Verdict(significant=significant, best=best, test=str(test["test"]), summary=f"{verdict}: {tested}")


# Methods across scenarios: who is best where, and each method's mean rank. Scores of different scenarios are never averaged.

SHADES = 5
"""The number of shades, from the worst (0) to the best score of a scenario."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The ranks of one method in all scenarios.

    Args:
        name: the method, with its backbone if any scenario has several. families: its rows by the board's preset.
        ranks: by preset, in the scenarios that all ranked methods share (:func:`shared_scenarios`); 1 is the best, ties share their mean
            rank. Empty for references, and for methods that lack one of these scenarios or a repetition there.
    """

    name: str
    families: Mapping[str, Family]
    ranks: Mapping[str, float]

    @property
    def method(self) -> str:
        """The method's name."""
        return next(iter(self.families.values())).method

    @property
    def reference(self) -> bool:
        """Whether the method is a reference, which is shown next to the boards and has no rank."""
        return next(iter(self.families.values())).rows[0].reference

    @property
    def mean_rank(self) -> float:
        """The mean rank over the shared scenarios. It is infinite if the method has no ranks."""
        return sum(self.ranks.values()) / len(self.ranks) if self.ranks else math.inf


def standings(boards: Sequence[Board]) -> list[Standing]:
    """Return all methods with a score: ranked methods by mean rank, then methods without a rank (most scenarios first), then references."""
    several = any(len(board.backbones) > 1 for board in boards)
    families: dict[str, dict[str, Family]] = {}
    scores: dict[str, dict[str, float]] = {}
    for board in boards:
        ranked = {id(row) for row in board.ranked}
        for family in board.families:
            if family.range(board.first) is None:
                continue
            name = f"{family.name} × {family.rows[0].group.backbone}" if several else family.name
            families.setdefault(name, {})[board.preset] = family
            if (row := family.selected) is not None and id(row) in ranked:
                scores.setdefault(name, {})[board.preset] = board.first.sign * rank_level(row.scores[board.first.name].mean)
    shared = shared_scenarios(scores, least=min(2, len(boards)))
    ranks: dict[str, dict[str, float]] = {name: {} for name in families}
    core = [name for name in scores if set(shared) <= scores[name].keys()]
    for preset in shared:
        values = [scores[name][preset] for name in core]
        for name, value in zip(core, values, strict=True):
            ranks[name][preset] = 0.5 + sum(other > value for other in values) + 0.5 * values.count(value)
    every = [Standing(name=name, families=families[name], ranks=ranks[name]) for name in families]
    return sorted(every, key=lambda standing: (standing.reference, standing.mean_rank, -len(standing.families)))


def shared_scenarios(scores: Mapping[str, Mapping[str, Any]], least: int = 2) -> list[str]:
    """Return the scenarios in which every method has a score. As few methods as possible are left out to get ``least`` scenarios.

    Methods with the fewest scenarios are left out first.

    Args:
        scores: by method and scenario.

    Example:
        >>> shared_scenarios({"ewc": {"a": 1, "b": 2, "c": 3}, "er": {"a": 3, "b": 1}, "new": {"c": 9}})
        ['a', 'b']
    """
    left = sorted(scores.values(), key=len)
    while left:
        shared = [name for name in left[-1] if all(name in mine for mine in left)]
        if len(shared) >= least:
            return shared
        del left[0]
    return []


def across(boards: Sequence[Board], *, heading: bool = True) -> Fragment | None:
    """Build a table of methods by scenarios, shaded within each scenario, or return ``None`` for fewer than two scenarios or methods.

    With ``heading``, the table is a separate section.
    """
    ranked = standings(boards)
    if len(boards) < 2 or len(ranked) < 2:
        return None
    shared = {preset for standing in ranked for preset in standing.ranks}
    head = [head_cell("method", "name"), head_cell("mean rank ↓", "number")]
    head += [
        head_cell(f"{board.title}, {board.first.label}{f' {board.first.unit}' if board.first.unit else ''}", "number") for board in boards
    ]
    rows: list[list[Fragment]] = []
    for standing in ranked:
        if standing.reference and not any(len(row) == 1 for row in rows):
            rows.append([group_title(SECTIONS[2], len(head))])
        rank = exact_cell(number_text(standing.mean_rank, 1), value=standing.mean_rank) if standing.ranks else number_cell(None)
        rows.append([row_head(standing.name), rank, *(_score(board, standing.families.get(board.preset)) for board in boards)])
    over = "all scenarios" if len(shared) == len(boards) else f"the {len(shared)} of {len(boards)} scenarios that these methods share"
    about = (
        f"Mean ranks are over {over}. Methods without a result or with a missing repetition in one of them have none. " if shared else ""
    )
    about += "Scores of different scenarios are not comparable and are never averaged. Darker is better within a column."
    if any(family.swept for board in boards for family in board.families):
        about += (
            " In a sweep, the setting chosen by validation is ranked (v). If validation performance was not recorded, the range over the "
        )
        about += "settings is shown without a rank."
    if not heading:
        return element("div", table(head, rows, about), class_="across")
    title = element("h3", "Across scenarios", id="across-title")
    return element("section", title, table(head, rows, about), class_="across", aria_labelledby="across-title")


def _score(board: Board, family: Family | None) -> Fragment:
    if family is None:
        return number_cell(None)
    column = board.first
    if family.selected is None or column.name not in family.selected.scores:
        low, high = family.range(column) or (math.nan, math.nan)
        ends = " to ".join(number_text(end * column.scale, column.digits) for end in (low, high))
        return exact_cell(ends, low=low, high=high)
    mean = family.selected.scores[column.name].mean
    text = f"{number_text(mean * column.scale, column.digits)}{' v' if family.swept else ''}"
    return element("td", text, class_=f"number shade-{_shade(board, mean)}", data_value=repr(mean))


def _shade(board: Board, mean: float) -> int:
    """A shade from 0 for the scenario's worst score to ``SHADES - 1`` for the best."""
    means = [row.scores[board.first.name].mean for row in board.compared if board.first.name in row.scores]
    low, high = (min(means), max(means)) if board.first.better == "up" else (max(means), min(means))
    share = (mean - low) / (high - low) if high != low else 0.5
    return min(SHADES - 1, int(share * SHADES))
