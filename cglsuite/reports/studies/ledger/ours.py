"""Our side of a ledger's row: the records of a campaign or of a search's choice on one kind of device, and the value that they give."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cglsuite.campaigns.order_designs import order_designs
from cglsuite.campaigns.reference.values import LEAST_RUNS
from cglsuite.cells.records.frame import UPPER_BOUND
from cglsuite.reports.results.results import CampaignResults
from cglsuite.reports.studies.ledger.tuned import Choice
from cglsuite.reports.studies.orders.compute import repeat_totals
from cglsuite.reports.studies.orders.pooling import pool

if TYPE_CHECKING:
    from cglsuite.campaigns.reference.matching import Recipe
    from cglsuite.reports.results.results import ReportedCell

__all__ = ["Ours", "Value", "repetition", "side_of", "without_result"]


@dataclass(frozen=True, kw_only=True)
class Value:
    """Our value of a row: one per repetition, in stored units, with the repetitions' seeds, and keys; or a reason.

    ``verdict``: of a row without a value.
    """

    values: tuple[float, ...] = ()
    units: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    reason: str = ""
    verdict: str = "not run"

    @property
    def n(self) -> int:
        """The number of repetitions."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """The mean over repetitions."""
        return float(np.mean(self.values)) if self.values else math.nan

    @property
    def std(self) -> float:
        """The sample standard deviation over repetitions, NaN for one."""
        return float(np.std(self.values, ddof=1)) if self.n > 1 else math.nan


class Ours:
    """The results of one campaign on one kind of device, for the rows that it serves."""

    def __init__(self, results: CampaignResults, choice: Choice | None = None) -> None:
        """``choice``: of the search whose settings these are; the runs that it was made on are no repetitions."""
        if choice is not None:
            results = replace(results, cells=tuple(c for c in results.cells if c.planned.request.seeds not in choice.tuned_on))
        self.results, self.choice = results, choice
        self._values: dict[Recipe, Value] = {}

    @property
    def device(self) -> str:
        """The kind of device of the cells."""
        return self.results.cells[0].planned.request.device

    def cells(self, recipe: Recipe) -> list[ReportedCell]:
        """The cells that a recipe's value is computed from, except joint training."""
        mine = [cell for cell in self.results.cells if cell.planned.request.method == recipe.method]
        if not recipe.orders:
            return mine
        rules = {design.rule for design in order_designs(list(recipe.orders))}
        return [cell for cell in mine if cell.planned.cell is None or cell.planned.cell.scenario.class_order in rules]

    def keys(self, recipe: Recipe) -> set[str | None]:
        """Of the cells of the recipe's method."""
        return {cell.planned.key for cell in self.cells(recipe)}

    def value(self, recipe: Recipe) -> Value:
        """The mean of a metric over records, or of a spread over orders over repetitions."""
        if recipe not in self._values:
            self._values[recipe] = self._value(recipe, self.cells(recipe))
        return self._values[recipe]

    def _value(self, recipe: Recipe, cells: Sequence[ReportedCell]) -> Value:
        if not any(cell.done for cell in cells):
            return _why_none(cells)
        return self._spread(recipe, cells) if recipe.orders else self._mean(recipe)

    def _mean(self, recipe: Recipe) -> Value:
        """Of a metric that compares with joint training: over the records that have their counterpart."""
        frame = self.results.frame
        own = frame[frame["method"] == recipe.method]
        measured = own[own[recipe.metric].notna()] if recipe.metric in own.columns else own.iloc[:0]
        if measured.empty:
            return self._undefined(recipe)
        seeds = ["order_seed", "split_seed", "init_seed"]
        keys = list(measured["key"])
        if recipe.needs_joint:
            keys += list(frame[frame["method"] == UPPER_BOUND].merge(measured[seeds], on=seeds)["key"])
        units = tuple("/".join(map(str, place)) for place in measured[seeds].itertuples(index=False))
        return Value(values=tuple(map(float, measured[recipe.metric])), units=units, records=tuple(dict.fromkeys(keys)))

    def _undefined(self, recipe: Recipe) -> Value:
        """The reason why a metric has no value although the method has records."""
        if not recipe.needs_joint:
            return Value(reason=f"{recipe.metric} is undefined", verdict="failed")
        if any(cell.done for cell in self.joint):
            return Value(reason=f"{recipe.metric} compares with joint training, but no joint record has the same seeds")
        why = _why_none(self.joint)
        return replace(why, reason=f"{recipe.metric} compares with joint training: {why.reason}")

    def _spread(self, recipe: Recipe, cells: Sequence[ReportedCell]) -> Value:
        """Over the repetitions in which every order was run: a maximum over fewer orders is another quantity."""
        whole = {repetition(recipe, cell) for cell in cells} - {repetition(recipe, cell) for cell in cells if not cell.done}
        if not whole:
            return Value(reason=f"{sum(cell.done for cell in cells)} of its {len(cells)} cells are done: no repetition has all orders")
        table, unit = self._repeats, "task" if len(recipe.orders) == 1 else "class"
        rows = table[(table["unit"] == unit) & (table["method"] == recipe.method)]
        if rows.empty or rows["refused"].iloc[0]:
            return Value(reason=rows["refused"].iloc[0] if len(rows) else f"no {unit} was scored in every order")
        keys = tuple(c.record.key for c in cells if c.record is not None and repetition(recipe, c) in whole)
        return Value(values=tuple(map(float, rows[recipe.metric])), units=tuple(map(str, rows["seed"])), records=keys)

    @cached_property
    def joint(self) -> list[ReportedCell]:
        """The cells of joint training."""
        return [cell for cell in self.results.cells if cell.planned.request.method == UPPER_BOUND]

    @cached_property
    def _repeats(self) -> pd.DataFrame:
        return repeat_totals(pool([self.results]))


def side_of(recipe: Recipe, devices: Sequence[Ours], tuned: Callable[[tuple[Any, ...], str], Sequence[Ours]]) -> Ours:
    """Where a row's value is taken from: what a search chose, as printed values are tuned; the preset's own settings, on the first of
    ``devices`` with most repetitions, if the choice has too few runs and they have more.

    A search that chose the preset's own settings has been made on some of their runs, which are no repetitions of either.
    """
    own = devices[0] if len(devices) == 1 else max(devices, key=lambda side: side.value(recipe).n)
    chosen = tuned(recipe.design, recipe.method)
    own = next((side for side in chosen if side.keys(recipe) <= own.keys(recipe)), own)
    enough = [side for side in chosen if side.value(recipe).n >= LEAST_RUNS]
    return max(enough or (own, *chosen), key=lambda side: side.value(recipe).n)


def _why_none(cells: Sequence[ReportedCell]) -> Value:
    """The fate of cells without any result."""
    ended = any(cell.record is not None for cell in cells)
    reason = f"none of its {len(cells)} cells has a result: {_ends(cells)}" if ended else f"none of its {len(cells)} cells has been run"
    return Value(reason=reason, verdict="failed" if ended else "not run")


def repetition(recipe: Recipe, cell: ReportedCell) -> Any:
    """What a mean is over: cells, or, for a spread over orders, seeds with which all orders are run."""
    seeds = cell.planned.request.seeds
    return (seeds.split, seeds.init) if recipe.orders else seeds


def without_result(cells: Sequence[ReportedCell]) -> str:
    """The cells missing from a mean, with reasons; empty if none are missing."""
    without = [cell for cell in cells if not cell.done]
    return f"{len(without)} of {len(cells)} cells have no result: {_ends(without)}" if without else ""


def _ends(cells: Sequence[ReportedCell]) -> str:
    """The distinct reasons why cells have no result, most frequent first."""
    ways = Counter("not run" if cell.state == "missing" else f"{cell.state}: {cell.reason}" for cell in cells)
    return "; ".join(f"{n} {way}" for way, n in ways.most_common())
