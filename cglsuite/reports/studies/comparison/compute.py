"""Compute the comparison of methods: tests, effect sizes, ranks, variance components and power, per scenario and backbone.

A :class:`Question` (metric, family of pairs, test, adjustment, level) is declared before the numbers are seen and shown with them.
Values have the records' units. :mod:`cglsuite.reports.studies.comparison.page` formats the results.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from cglsuite import stats
from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.base.hashing import digest as digest_of
from cglsuite.base.markup import Fragment, element, several
from cglsuite.cells.records.record import Record
from cglsuite.reports.kit.sentences import Gap, best_text, incomplete_text, rank_level
from cglsuite.reports.kit.tables import amount_cell, as_rows, number_text, titled
from cglsuite.reports.kit.text import key_box, metric_name, notice
from cglsuite.reports.results.guards import least_collapse
from cglsuite.reports.results.measures import is_fraction, metric_bounds, performance_names, why_absent
from cglsuite.reports.results.results import (
    Group,
    Results,
    at_equal_settings,
    chosen_by_validation,
    families_of,
    missing_repetitions,
    swept,
)
from cglsuite.reports.results.tables import mean_std
from cglsuite.reports.results.variants import orders_in_all, place_of, split_overlap
from cglsuite.specs import MetricSpec, metric_named

SEEDS_PLANNED = (3, 4, 5, 10, 20)
"""Numbers of seeds, crossed with orders, that sample-size plans consider."""
_METRICS = {False: "average_performance", True: "a_auc"}
"""The default metric for comparing methods, for task streams and for task-free ones."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """The hypothesis test declared for every scenario.

    Only the declared test gives verdicts. Pages show Welch's test next to it, or the design's test if Welch's is declared. The digest of
    the question on the page shows whether a test was declared beforehand or chosen afterwards.

    Args:
        metric: name of its definition; empty for average performance, or for A_AUC where all streams are task-free.
        methods: methods to compare, one name or several; empty for all. against: compare all others with this one; empty for all pairs.
        test: one of :data:`cglsuite.stats.TESTS`. adjustment: one of :data:`cglsuite.stats.ADJUSTMENTS`, over the pairs of a scenario.
        alpha: level of the family. smallest: the smallest interesting difference, in page units (points for fractions).
        wanted: the power of a plan.

    Raises:
        UsageError: if a number is out of range. UnknownNameError: if the test or adjustment is unknown.
    """

    metric: str = ""
    methods: str | Sequence[str] = ()
    against: str = ""
    test: str = "t"
    adjustment: str = "holm"
    alpha: float = 0.05
    smallest: float = 1.0
    wanted: float = 0.8

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", (self.methods,) if isinstance(self.methods, str) and self.methods else tuple(self.methods))
        for name in ("alpha", "smallest", "wanted"):
            if isinstance(value := getattr(self, name), bool) or not isinstance(value, int | float):
                raise UsageError(f"{name} = {value!r}: expected a number")
            object.__setattr__(self, name, float(value))
        for name in ("alpha", "wanted"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise UsageError(f"{name} = {getattr(self, name)}: expected a number between 0 and 1")
        if not self.smallest > 0.0:
            raise UsageError(f"smallest interesting difference {self.smallest:g}: expected a positive number")
        for kind, name, known in (("test", self.test, stats.TESTS), ("adjustment", self.adjustment, stats.ADJUSTMENTS)):
            if name not in known:
                raise UnknownNameError(kind, name, known)

    @property
    def digest(self) -> str:
        """A 12-digit hash of everything that the question declares."""
        return digest_of(asdict(self))[:12]

    @property
    def beside(self) -> str:
        """The second test, which is shown for comparison only and gives no verdict."""
        return "t" if self.test == "welch" else "welch"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The methods of one scenario with one backbone, their values and their tests.

    Args:
        preset: its name, which ends in a hash if switches were overridden. title: display name. performance: name of the measure.
        percent: whether values are fractions, shown in percent. bounds: of the values, where intervals of means are cut.
        higher_is_better: the metric's direction.
        cells: one row per record with a value: method, order, split, seed, value, key. lacking: by method, records without a value.
        orders_in_all: the number of possible orders, if the scenario runs all orders of its tasks.
        overlap: the number of test items over training items, for random splits.
        absent: why the metric has no value, if no record has one.
        groups: whose records these are, one per label in ``method``. chosen: the labels that validation chose among the settings of a
            method. validation: final validation performance by key. references: methods that are not learners and never count as best.
    """

    preset: str
    title: str
    backbone: str
    performance: str
    percent: bool
    question: Question
    higher_is_better: bool
    cells: pd.DataFrame
    lacking: dict[str, int]
    orders_in_all: int | None = None
    overlap: float = 0.0
    absent: str = ""
    bounds: tuple[float, float] | None = None
    groups: tuple[Group, ...] = ()
    chosen: tuple[str, ...] = ()
    validation: Mapping[str, float] = field(default_factory=dict)
    references: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The display name of the comparison."""
        return f"{self.title} × {self.backbone}"

    @property
    def methods(self) -> list[str]:
        """The methods that have a value, in campaign order."""
        return list(dict.fromkeys(self.cells["method"]))

    @property
    def scale(self) -> float:
        """The factor from stored to displayed values."""
        return 100.0 if self.percent else 1.0

    @cached_property
    def design(self) -> stats.Layout | stats.Refused:
        """The design of the first method, or the reason why it has none. Pairs with a method that has other cells are refused."""
        try:
            return self.by_method[self.methods[0]].layout if self.methods else stats.Refused(self.no_value)
        except stats.Refused as refusal:
            return refusal

    @cached_property
    def by_method(self) -> dict[str, stats.Cells]:
        """The cells of every method with a value, by method name."""
        return {str(name): stats.Cells(part, self.orders_in_all, self.overlap) for name, part in self.cells.groupby("method", sort=False)}

    @cached_property
    def by_repetition(self) -> pd.DataFrame:
        """Values by repetition (rows: order, split, seed) and method. The sign is flipped for metrics whose lower values are better."""
        sign = 1.0 if self.higher_is_better else -1.0
        cells = self.cells.assign(value=sign * self.cells["value"])
        return cells.pivot_table(index=["order", "split", "seed"], columns="method", values="value")

    @property
    def unit(self) -> str:
        """The unit of replication for tests: ``order``, ``seed`` or ``order × seed``."""
        return self.block if isinstance(self.design, stats.Refused) else self.design.unit

    @property
    def block(self) -> str:
        """The unit of a one-factor design; otherwise the outermost of order, split and seed that varies among the records."""
        if isinstance(self.design, stats.Layout) and len(self.design.factors) == 1:
            return self.design.factors[0]
        return next((level for level in stats.LEVELS if self.cells[level].nunique() > 1), stats.LEVELS[-1])

    @property
    def no_value(self) -> str:
        """A sentence that states that no method has a value, and why."""
        return f"no method has a value: {self.question.metric} {self.absent}" if self.absent else "no method has a value"

    @cached_property
    def tests(self) -> pd.DataFrame:
        """The declared family of tests, as rows of :func:`cglsuite.stats.compare_methods`.

        Raises:
            Refused: if fewer than two methods have a value, or the reference method has none.
        """
        return self._family(self.question.test)

    @cached_property
    def beside(self) -> pd.DataFrame:
        """The same pairs with the test that gives no verdict (:attr:`Question.beside`). Raises the same errors as :attr:`tests`."""
        return self._family(self.question.beside)

    @property
    def both(self) -> pd.DataFrame:
        """:attr:`tests` joined with :attr:`beside` (with the column prefix ``beside_``). Raises the same errors as :attr:`tests`."""
        return self.tests.join(self.beside.add_prefix("beside_"))

    def _family(self, test: str) -> pd.DataFrame:
        question, n = self.question, len(self.methods)
        if n < 2:
            raise stats.Refused("only one method has a value, but a comparison needs at least two" if n else self.no_value)
        if question.against and question.against not in self.methods:
            raise stats.Refused(f"{question.against} is the reference method, but has no value here")
        how: dict[str, Any] = {"test": test, "adjustment": question.adjustment, "alpha": question.alpha}
        how |= {"orders_in_all": self.orders_in_all, "overlap": self.overlap, "against": question.against or None}
        if self.axes and not question.against:
            how["pairs"] = self._at_equal_settings
            if not how["pairs"]:
                raise stats.Refused(f"no two methods were run with the same settings of {', '.join(self.axes)}")
        return stats.compare_methods(self.cells, higher_is_better=self.higher_is_better, **how)

    @cached_property
    def axes(self) -> list[str]:
        """The settings in which the variants of one method differ. The variants form a sweep and do not compete."""
        return swept([group for group in self.groups if group.label in self.methods])

    @cached_property
    def families(self) -> list[list[Group]]:
        """The groups that have a value, by method."""
        return families_of(group for group in self.groups if group.label in self.methods)

    @property
    def representatives(self) -> list[str]:
        """One label per method, selected without test data: its only variant, or the setting chosen by validation.

        Raises:
            Refused: if validation performance was not recorded for the settings of a method.
        """
        if unchosen := [family[0].method for family in self.families if not self._chosen(family)]:
            raise stats.Refused(
                f"{', '.join(unchosen)} {'has' if len(unchosen) == 1 else 'have'} several settings, and validation performance was not "
                "recorded to choose one: name one setting per method in methods"
            )
        return [label for family in self.families for label in self._chosen(family)]

    def _chosen(self, family: Sequence[Group]) -> list[str]:
        return [group.label for group in family if len(family) == 1 or group.label in self.chosen]

    @cached_property
    def _at_equal_settings(self) -> list[tuple[str, str]]:
        """Pairs of labels of different methods that agree on the axes which both have."""
        groups = {group.label: group for group in self.groups}
        pairs = [(groups[a], groups[b]) for a, b in itertools.combinations(self.methods, 2)]
        return [(a.label, b.label) for a, b in pairs if a.method != b.method and at_equal_settings(a, b, self.axes)]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A question and its comparisons. ``methods`` determines the order, and therefore the colours, of the methods on all pages."""

    results: Results
    question: Question
    spec: MetricSpec
    comparisons: tuple[Comparison, ...]

    @property
    def methods(self) -> list[str]:
        """All methods, each listed once."""
        return list(dict.fromkeys(method for comparison in self.comparisons for method in comparison.methods))


def study(results: Results, question: Question | None = None) -> Study:
    """Build the comparisons of a campaign, one per preset and backbone that has a finished record.

    Raises:
        UnknownNameError: if no plugin provides the metric, or a method has no result.
    """
    question = question or Question()
    if not question.metric:
        question = replace(question, metric=_METRICS[bool(results.groups) and all(group.task_free for group in results.groups)])
    question = replace(question, metric=metric_named(question.metric, results.metrics).name)
    known = dict.fromkeys(group.label for group in results.groups)
    for name in (*question.methods, *([question.against] if question.against else [])):
        if known and name not in known:
            raise UnknownNameError("method of this campaign", name, known)
    wanted = set(question.methods or known) | {question.against}
    values = results.frame.set_index("key")[question.metric] if question.metric in results.frame else pd.Series(dtype="float64")
    designs: dict[tuple[str, str], list[Group]] = {}
    for group in results.groups:
        if group.label in wanted:
            designs.setdefault((group.preset, group.backbone), []).append(group)
    comparisons = tuple(_comparison(results, question, preset, groups, values) for (preset, _), groups in designs.items())
    return Study(results=results, question=question, spec=results.metrics[question.metric], comparisons=comparisons)


def _comparison(results: Results, question: Question, preset: str, groups: Sequence[Group], values: pd.Series) -> Comparison:
    every = [
        {"method": group.label, **_place(record), "value": float(values.get(record.key, math.nan)), "key": record.key}
        for group in groups
        for record in group.records
    ]
    frame = pd.DataFrame(every, columns=["method", "order", "split", "seed", "value", "key"])
    known = np.isfinite(frame["value"].astype("float64"))
    records = [record for group in groups for record in group.records]
    return Comparison(
        preset=preset,
        title=results.preset_title(preset),
        backbone=groups[0].backbone,
        performance=performance_names(records),
        percent=all(is_fraction(record) for record in records) and not results.metrics[question.metric].unit,
        question=question,
        higher_is_better=results.metrics[question.metric].direction == "up",
        cells=frame[known].reset_index(drop=True),
        lacking={str(method): int(n) for method, n in frame[~known].groupby("method", sort=False).size().items()},
        orders_in_all=orders_in_all(records),
        overlap=split_overlap(records),
        bounds=metric_bounds(results.metrics[question.metric], records),
        groups=tuple(groups),
        references=results.references,
        chosen=tuple(
            comparison.label for family in families_of(groups) if (comparison := chosen_by_validation(family, results)) is not None
        ),
        validation=results.validation,
        absent="" if known.any() else why_absent(results.metrics[question.metric], records[0]),
    )


def _place(record: Record) -> dict[str, str]:
    """:func:`place_of`, with the seed of a task-free stream labelled as a seed."""
    place = place_of(record)
    return place | {"order": f"seed {place['order']}"} if record.stream else place


# --- per method ------------------------------------------------------------------------------------------------------------------


def means(comparison: Comparison) -> pd.DataFrame:
    """Compute every method's mean over its design, with its spread and interval.

    Returns:
        Columns method, unit, n (values), replicates (as text), cells, collapsed (of these cells), mean, std (of a value over the design,
        NaN for one), low, high, interval (kind, or why it is missing).
    """
    rows = []
    for method in comparison.methods:
        part = comparison.cells[comparison.cells["method"] == method]
        row: dict[str, Any] = {"method": method, "unit": comparison.unit, "cells": len(part), "mean": float(part["value"].mean())}
        row["collapsed"] = int(_collapsed(comparison, part["value"].to_numpy(dtype=np.float64)).sum())
        try:
            layout = comparison.by_method[method].layout
            row |= {"n": layout.values.size, "replicates": layout.text, "mean": float(layout.values.mean()), "std": _spread(layout)}
            interval = stats.layout_interval(layout, level=1.0 - comparison.question.alpha, bounds=comparison.bounds)
            row |= {"low": interval.low, "high": interval.high, "interval": interval.method}
        except stats.Refused as refusal:
            row |= {"interval": str(refusal)}
        rows.append(row)
    frame = pd.DataFrame(
        rows, columns=["method", "unit", "n", "replicates", "cells", "collapsed", "mean", "std", "low", "high", "interval"]
    )
    numbers = dict.fromkeys(("n", "mean", "std", "low", "high"), "float64")
    return frame.astype(numbers).fillna({"replicates": ""})


def _collapsed(comparison: Comparison, values: np.ndarray) -> np.ndarray:
    return stats.collapsed(values, higher_is_better=comparison.higher_is_better, least=least_collapse(values, comparison.percent))


def _spread(layout: stats.Layout) -> float:
    """The standard deviation of one value over a design; over crossed factors, of all of them together."""
    if layout.values.ndim == 1:
        return float(mean_std(layout.values)["std"])
    with suppress(stats.Refused):
        return layout.estimate.spread
    return math.nan


def selection(comparison: Comparison, family: Sequence[Group]) -> stats.Selected:
    """Return the setting of a method that was chosen by validation. Its interval repeats the choice in every bootstrap draw of units.

    Raises:
        Refused: if the settings have different units, or as :func:`cglsuite.stats.selected`.
    """
    labels = [group.label for group in family]
    units = comparison.by_method[labels[0]].layout.factors
    cells = comparison.cells[comparison.cells["method"].isin(labels)]
    parts = cells.assign(validation=cells["key"].map(comparison.validation)).groupby(["method", *units], sort=False)
    table = parts[["value", "validation"]].mean()
    index = pd.MultiIndex.from_product([labels, *(cells[unit].drop_duplicates() for unit in units)])
    if len(index) != len(table):
        raise stats.Refused(f"settings were run over different {' or '.join(f'{unit}s' for unit in units)}")
    shape, table = tuple(map(len, index.levels)), table.reindex(index)
    values, validation = (table[name].to_numpy(dtype=np.float64).reshape(shape) for name in ("value", "validation"))
    return stats.selected(values, validation, level=1.0 - comparison.question.alpha)


# --- pairs of methods --------------------------------------------------------------------------------------------------------------


def pairs(comparison: Comparison) -> pd.DataFrame:
    """Return :attr:`Comparison.both`, with a BCa interval of the difference between means if there are enough units.

    Returns:
        The columns of both tests, then boot_low, boot_high (NaN with fewer than ten units, or with crossed factors).

    Raises:
        Refused: as :attr:`Comparison.tests`.
    """
    tests = comparison.both
    booted = [_bootstrapped(comparison, row, 1.0 - comparison.question.alpha) for row in as_rows(tests)]
    return tests.assign(boot_low=[low for low, _ in booted], boot_high=[high for _, high in booted])


def _bootstrapped(comparison: Comparison, row: dict[str, Any], level: float) -> tuple[float, float]:
    if not row["refused"] and row["interval"] == "t":
        units = _units(comparison, row["first"], row["second"])
        if len(units.factors) == 1 and not units.overlap:
            with suppress(stats.Refused):
                interval = stats.difference_interval(units.first, units.second, paired=units.paired, level=level, unit=f"{units.unit}s")
                return interval.low, interval.high
    return math.nan, math.nan


def _units(comparison: Comparison, first: str, second: str) -> stats.Replicates:
    apart = comparison.question.test == "welch"
    return stats.replicates(comparison.by_method[first], comparison.by_method[second], apart=apart)


# --- all methods at once -----------------------------------------------------------------------------------------------------------


def friedman(comparison: Comparison) -> stats.Friedman:
    """Run Friedman's test of the methods within the orders (or splits, or seeds) of one data set, and Nemenyi's comparisons.

    Both assume independent blocks. Blocks that share seeds are not independent: a seed has the same effect on a method in all of them.

    Raises:
        Refused: as :func:`cglsuite.stats.friedman`; or if blocks have different numbers of cells, or share seeds.
    """
    test, cells, block = _ranked(comparison), comparison.cells, comparison.block
    if block != "seed" and cells.groupby("seed")[block].nunique().max() > 1:
        size = stats.error_rate("ranks", "4 methods, 10 blocks")["any pair, one seed in all blocks"]
        raise stats.Refused(
            f"{block}s share seeds, so they are not independent: with no true difference, the test would find one in "
            f"{size:.0f}% of cases. To rank methods, run every {block} with its own seeds"
        )
    return test


def _ranked(comparison: Comparison) -> stats.Friedman:
    return stats.friedman(_by_block(comparison), higher_is_better=comparison.higher_is_better, alpha=comparison.question.alpha)


def block_ranks(comparison: Comparison) -> pd.DataFrame:
    """Rank every method (rows) within each block (columns). Rank 1 is the best. Ranks describe the cells even if blocks share seeds.

    Raises:
        Refused: as :func:`cglsuite.stats.friedman`; different numbers of cells per block.
    """
    _ranked(comparison)
    return stats.ranks(_by_block(comparison), higher_is_better=comparison.higher_is_better).T


def _by_block(comparison: Comparison) -> pd.DataFrame:
    shown = comparison.cells[comparison.cells["method"].isin(comparison.representatives)]
    cells = shown.groupby(["method", comparison.block], sort=False)["value"]
    counts = cells.size()
    if len(counts) and counts.min() != counts.max():
        raise stats.Refused(
            f"there are {counts.min()} to {counts.max()} cells per method and {comparison.block}; expected the same number for all"
        )
    return cells.mean().reset_index().rename(columns={comparison.block: "order"})


def components(comparison: Comparison) -> stats.VarianceComponents:
    """Fit the variance model to the complete block of the cells. Methods are fixed effects; orders and seeds are crossed random effects.

    Raises:
        Refused: as :func:`cglsuite.stats.variance_components`; or if every order has its own seeds.
    """
    frame = comparison.cells.assign(seed=comparison.cells["split"] + "/" + comparison.cells["seed"])
    if frame["order"].nunique() > 1 and frame.groupby("seed")["order"].nunique().max() == 1:
        raise stats.Refused("every order has its own seed, so order and seed effects cannot be separated")
    block, _ = stats.complete_block(frame)
    return stats.variance_components(block[["method", "order", "seed", "value"]])


# --- power -------------------------------------------------------------------------------------------------------------------------


def needs(comparison: Comparison, *, numbers: bool = True) -> pd.DataFrame:
    """Compute, for each pair, the detectable difference and the number of replicates needed for the smallest interesting difference.

    The level of each test is the family's level divided by the number of pairs (Holm's first step), so plans are conservative. Where orders
    are crossed with seeds, the numbers needed are orders with as many seeds as there are.

    Args:
        numbers: whether to compute the numbers needed, which take longest; otherwise they are NaN.

    Returns:
        Columns first, second, unit, paired, n (the smaller number of values), std (of differences where paired, else within methods),
        std_bound (80% upper bound of it, NaN where crossed), detectable (difference found with the power wanted), needed (for the smallest
        interesting difference), needed_bound (with ``std_bound``), refused.

    Raises:
        Refused: as :attr:`Comparison.tests`.
    """
    family = comparison.tests
    rows = []
    for row in as_rows(family):
        need: dict[str, Any] = {"first": row["first"], "second": row["second"], "refused": ""}
        try:
            units = _units(comparison, row["first"], row["second"])
            need |= {"unit": units.unit, "paired": units.paired, "n": min(units.first.size, units.second.size)}
            how = {"alpha": comparison.question.alpha / len(family), "wanted": comparison.question.wanted}
            for part in (_crossed_needs if len(units.factors) == 2 else _needs)(
                units, comparison.question.smallest / comparison.scale, how
            ):
                need |= part
                if "detectable" in part and not numbers:
                    break
        except stats.Refused as refusal:
            need["refused"] = str(refusal)
        rows.append(need)
    columns = ["first", "second", "unit", "paired", "n", "std", "std_bound", "detectable", "needed", "needed_bound", "refused"]
    floats = dict.fromkeys(("n", "std", "std_bound", "detectable", "needed", "needed_bound"), "float64")
    return pd.DataFrame(rows, columns=columns).astype(floats)


def _needs(units: stats.Replicates, smallest: float, how: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Compute the replicates needed over one factor. Values computed before a refusal are returned, too."""
    std = stats.observed_std(units.first, units.second, paired=units.paired, unit=f"{units.unit}s")
    n = min(units.first.size, units.second.size)
    bound = stats.std_bound(std, n)
    how |= {"paired": units.paired, "overlap": units.overlap}
    yield {"std": std, "std_bound": bound}
    yield {"detectable": stats.detectable_difference(n, std, **how)}
    yield {"needed": stats.units_needed(smallest, std, **how)}
    yield {"needed_bound": stats.units_needed(smallest, bound, **how)}


def _crossed_needs(units: stats.Replicates, smallest: float, how: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Over crossed factors: more of the first with as many of the second."""
    estimate = units.difference
    yield {"std": estimate.spread}
    yield {"detectable": estimate.error * stats.detectable_error(estimate.df, **how)}
    if not units.paired:
        raise stats.Refused(
            "the number of repetitions needed cannot be computed, because the factors are crossed and the methods were run separately"
        )
    if units.overlap:
        raise stats.Refused("random splits share items, so no number of orders or seeds is sufficient on its own")
    differences = units.first - units.second
    yield {"needed": stats.orders_needed(stats.DifferenceVariances.observed(differences), differences.shape[1], smallest, **how)}


def plans(comparison: Comparison) -> pd.DataFrame:
    """Compute from the variance components how many orders are needed for the smallest interesting difference, by number of seeds.

    If all of the scenario's orders are run, they are the population, and the plan gives the number of seeds.

    Returns:
        Columns seeds, std (of the difference of two methods in one cell), orders, cells (per method: orders × seeds), refused.

    Raises:
        Refused: as :func:`components` and :attr:`Comparison.tests`, or if there is only one method.
    """
    fitted, family, question = stats.DifferenceVariances.of(components(comparison)), comparison.tests, comparison.question
    smallest = question.smallest / comparison.scale
    how: dict[str, Any] = {"alpha": question.alpha / len(family), "wanted": question.wanted}
    std = math.sqrt(fitted.order + fitted.seed + fitted.rest)
    columns = ["seeds", "std", "orders", "cells", "refused"]
    if comparison.orders_in_all is not None:
        over_seeds = math.sqrt(fitted.seed + fitted.rest / comparison.orders_in_all)
        seeds = stats.units_needed(smallest, over_seeds, **how)
        row = {
            "seeds": seeds,
            "std": over_seeds,
            "orders": comparison.orders_in_all,
            "cells": seeds * comparison.orders_in_all,
            "refused": "",
        }
        return pd.DataFrame([row], columns=columns)
    rows = []
    for n_seeds in SEEDS_PLANNED:
        row = {"seeds": n_seeds, "std": std, "refused": ""}
        try:
            orders = stats.orders_needed(fitted, n_seeds, smallest, **how)
            row |= {"orders": orders, "cells": orders * n_seeds}
        except stats.Refused as refusal:
            row["refused"] = str(refusal)
        rows.append(row)
    return pd.DataFrame(rows, columns=columns)


# Shared cells, captions and refusals of a comparison of methods: values in the metric's unit, with exact ones behind them.


def amount_text(value: float, percent: bool) -> str:
    """Format a difference in the unit shown on pages."""
    return f"{value:g} point{'' if value == 1 else 's'}" if percent else f"{value:g}"


def unit(comparison: Comparison, digits: int = 1) -> tuple[int, float]:
    """Return the number of digits and the scale of the metric. Real-valued metrics have three more digits."""
    return digits if comparison.percent else digits + 3, comparison.scale


def unit_text(comparison: Comparison, value: float, digits: int = 1, plus: bool = False) -> str:
    """Format a value in the metric's unit."""
    return number_text(comparison.scale * value, unit(comparison, digits)[0], plus)


def percent_text(share: float) -> str:
    """Format a share in percent.

    Example:
        >>> percent_text(0.95)
        '95%'
    """
    return f"{100 * share:g}%"


def range_text(comparison: Comparison, low: float, high: float) -> str:
    """Format both ends of the interval of a difference."""
    return f"{unit_text(comparison, low, plus=True)} to {unit_text(comparison, high, plus=True)}"


def showable(comparison: Comparison, value: float) -> bool:
    """Return whether a difference is possible. Two fractions are at most 100 points apart."""
    return not (comparison.percent and value > 1.0)


def detectable_cell(comparison: Comparison, value: float) -> Fragment:
    """Format the smallest difference that a test can detect, unless such a difference is impossible."""
    if not showable(comparison, value):
        return element("td", "cannot be shown", class_="quiet")
    return amount_cell(value, *unit(comparison))


def caption(comparison: Comparison, about: str) -> Fragment:
    """Return a table caption with the scenario and a description."""
    return titled(comparison.name, f" – {about}")


def refused(comparison: Comparison, reason: str) -> Fragment:
    """Show a notice in place of a table for which the data are insufficient."""
    return notice(f"{comparison.name}: refused: {reason}.")


# Key results of a comparison: what its declared tests found, in one sentence or two per scenario.

_MAX_NAMED = 6
ADJUSTED = {"holm": "Holm", "benjamini-hochberg": "Benjamini-Hochberg"}
"""Display names of the adjustments."""


def key_results(study: Study) -> Fragment | None:
    """Render a box with the message of every comparison that has a value, or return ``None`` if none has a value."""
    lines = [
        element("li", element("strong", comparison.name), ": ", " ".join(sentences(comparison)))
        for comparison in study.comparisons
        if comparison.methods
    ]
    return key_box((), lines) if lines else None


def sentences(comparison: Comparison) -> Iterator[str]:
    """State the result of a comparison as plain text: the best method, its lead, the number of pairs that differ, and any caveats."""
    try:
        frame = comparison.tests
    except stats.Refused as refusal:
        yield f"Nothing is tested ({refusal})."
        return
    tested = [row for row in as_rows(frame) if not row["refused"]]
    if not tested:
        yield f"Nothing is tested ({next(str(row['refused']) for row in as_rows(frame))})."
        return
    significant = [row for row in tested if row["better"]]
    how = f"{ADJUSTED[comparison.question.adjustment]}, α = {comparison.question.alpha:g}"
    if comparison.axes:
        largest = sorted(significant, key=lambda row: -abs(float(row["estimate"])))
        named = "; ".join(_better(comparison, row) for row in largest[:_MAX_NAMED])
        more = f"; and {len(largest) - _MAX_NAMED} more" if len(largest) > _MAX_NAMED else ""
        how = f"at equal settings of {', '.join(comparison.axes)}; {how}"
        of = f"{len(significant) or 'None'} of {several(len(tested), 'pair')} of methods {'differs' if len(significant) < 2 else 'differ'}"
        yield f"{of}{f': {named}{more}' if significant else ''} [{how}]."
    else:
        yield from _standing(comparison, frame, how)
        if len(tested) > 1 and not comparison.question.against:
            count = f"{len(significant) or 'None'} of {len(tested):,} pairs of methods"
            yield f"{count} {'differs' if len(significant) < 2 else 'differ'}."
    if refused := len(frame) - len(tested):
        yield f"{refused} {'pair was' if refused == 1 else 'pairs were'} refused."
    if condition := next((str(row["given"]) for row in tested if row["given"]), ""):
        yield f"This holds {stats.condition_of(condition)} only."


def _standing(comparison: Comparison, frame: pd.DataFrame, how: str) -> Iterator[str]:
    """The best learner against all methods, or where all are compared with one method, that one."""
    means_of = {str(row["method"]): float(row["mean"]) for row in as_rows(means(comparison))}
    sign, against = (1.0 if comparison.higher_is_better else -1.0), comparison.question.against
    learners = [group for group in comparison.groups if group.label in means_of and group.method not in comparison.references]
    missing = missing_repetitions([group for group in comparison.groups if group.label in means_of])
    ranked = [g for g in learners if not missing[id(g)]] or learners or [g for g in comparison.groups if g.label in means_of]
    levels = {group.label: sign * rank_level(means_of[group.label]) for group in ranked}
    best = [against] if against else [name for name, level in levels.items() if level == max(levels.values())]
    gaps = []
    for row in as_rows(frame):
        if best[0] in (row["first"], row["second"]):
            first = row["first"] == best[0]
            name = str(row["second"] if first else row["first"])
            apart = means_of[best[0]] - means_of[name] if row["refused"] else float(row["estimate"]) * (1.0 if first else -1.0)
            p = math.nan if row["refused"] else float(row["p_adjusted"])
            gaps += [] if name in best else [Gap(name=name, size=sign * comparison.scale * apart, p=p)]
    said = best_text(
        best,
        1 if against else len(ranked),
        f"{metric_name(comparison.question.metric)} {unit_text(comparison, means_of[best[0]])}{'%' * comparison.percent}",
        gaps,
        unit="points" if comparison.percent else "",
        digits=unit(comparison)[0],
        alpha=comparison.question.alpha,
    )
    yield f"{said} [{how}]."
    if lacking := incomplete_text([(g.label, len(g.records), missing[id(g)]) for g in learners if missing[id(g)]]):
        yield lacking


def summary(comparison: Comparison) -> Iterator[str]:
    """Describe a comparison in lines of text: its name, the results of its tests, and the mean of every method with its interval."""
    yield f"{comparison.name}: {' '.join(sentences(comparison))}"
    rows = as_rows(means(comparison))
    yield f"  {comparison.question.metric.replace('_', ' ')}{', %' if comparison.percent else ''}"
    if comparison.axes:
        yield from _ranges(comparison, rows)
        return
    width = max(len(str(row["method"])) for row in rows)
    for row in rows:
        low, high = float(row["low"]), float(row["high"])
        ends = f"{1.0 - comparison.question.alpha:.0%} interval {unit_text(comparison, low)} to {unit_text(comparison, high)}"
        interval = "no interval" if low != low else ends
        over = row["replicates"] or f"n = {row['cells']}"
        yield f"  {row['method']:<{width}}  {unit_text(comparison, float(row['mean'])):>6}  ({interval}, {over})"


def _ranges(comparison: Comparison, rows: list[dict[str, Any]]) -> Iterator[str]:
    """A line per method: the range of its variants, and the one that validation chose, or else the best for what it is."""
    means_of = {str(row["method"]): float(row["mean"]) for row in rows}
    by_method: dict[str, list[str]] = {}
    for group in comparison.groups:
        if group.label in means_of:
            by_method.setdefault(group.method, []).append(group.label)
    for method, labels in by_method.items():
        labels = sorted(labels, key=lambda label: means_of[label])
        ends = " to ".join(unit_text(comparison, means_of[label]) for label in dict.fromkeys((labels[0], labels[-1])))
        best = labels[-1] if comparison.higher_is_better else labels[0]
        validated = next((label for label in labels if label in comparison.chosen), None)
        selected = f"best of {len(labels)} by test performance (optimistic): {best}"
        if validated is not None:
            selected = f"of {len(labels)} chosen by validation: {validated} with {unit_text(comparison, means_of[validated])}"
        selected = f"  ({selected})" if len(labels) > 1 else ""
        yield f"  {method:<{max(map(len, by_method))}}  {ends}{selected}"


def _better(comparison: Comparison, row: Mapping[str, Any]) -> str:
    """A significant pair: the better method first, and by how much."""
    better, worse = row["better"], row["second"] if row["better"] == row["first"] else row["first"]
    by = unit_text(comparison, abs(float(row["estimate"])))
    return f"{better} beats {worse} by {by}{' points' if comparison.percent else ''}"
