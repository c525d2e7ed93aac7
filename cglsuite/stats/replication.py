"""Determine the design of a comparison: the factors of replication, what is averaged first, and the conditions of a claim.

Orders, splits and seeds are random factors. A factor is *nested* in another factor if each of its values occurs with only one value of the
other. Seeds that differ between orders are nested. They are averaged before orders are compared, because they share the order's effect on a
method. Two factors are *crossed* if every value of one occurs with every value of the other, as with seeds that are used in every order. A
seed then has the same effect on a method in all orders, and the test must account for both factors (:mod:`cglsuite.stats.crossed`). A
factor with a single value is *given*, and the claim is limited to that order or seed. If every possible order was run, the orders are the
whole population, and only seeds are replicates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cglsuite.base.markup import several
from cglsuite.stats.crossed import MeanEstimate, mean_estimate
from cglsuite.stats.refusal import Refused, require_frame

LEVELS = ("order", "split", "seed")
"""The levels of replication, outermost first; frames need not have all of them."""
_CONDITIONS = {"order": "in one order", "seed": "with one seed"}
_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The design of one method's cells.

    Args:
        factors: one or two of :data:`LEVELS`. values: float64, one axis per factor. labels: the labels of each axis.
        averaged: number of cells per value.
        given: maps ``order`` and ``seed`` to their value if they have only one.
        population: ``all 120 orders``, for example, if the orders are the whole population; otherwise empty.
        overlap: for random splits, the ratio of test items to training items; 0 if splits are not a factor.
    """

    factors: tuple[str, ...]
    values: NDArray[np.float64]
    labels: tuple[tuple[Any, ...], ...]
    averaged: int
    given: Mapping[str, str] = field(default_factory=dict)
    population: str = ""
    overlap: float = 0.0

    @property
    def unit(self) -> str:
        """The unit of replication: ``order``, or ``order × seed`` if these are crossed."""
        return " × ".join(self.factors)

    @property
    def estimate(self) -> MeanEstimate:
        """Estimate the mean over the design. Raises the same errors as :func:`cglsuite.stats.mean_estimate`."""
        return mean_estimate(self.values, self.factors, overlap=self.overlap)

    @property
    def text(self) -> str:
        """The numbers of replicates, as in ``5 orders × 3 seeds``."""
        return " × ".join(several(n, name) for n, name in zip(self.values.shape, self.factors, strict=True))

    @property
    def description(self) -> str:
        """The whole design, as in ``5 orders × 3 seeds, crossed``, ``3 seeds, over all 120 orders`` or ``5 orders, with one seed``."""
        parts = [self.text]
        if len(self.factors) == 2:
            parts.append("crossed")
        if self.population:
            parts.append(f"over {self.population}")
        elif self.averaged > 1:
            parts.append(f"{self.averaged} cells each")
        parts += [_CONDITIONS[name] for name in self.given if name not in self.factors]
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Replicates:
    """The values of two methods in the same design.

    Args:
        factors: one or two of :data:`LEVELS`. paired: whether both methods were run in the same units, so that their values are aligned.
        first, second: float64, one axis per factor. averaged: number of cells per value, for each method.
        given, population, overlap: see :class:`Layout`.
    """

    factors: tuple[str, ...]
    paired: bool
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    averaged: tuple[int, int]
    given: Mapping[str, str] = field(default_factory=dict)
    population: str = ""
    overlap: float = 0.0

    @property
    def unit(self) -> str:
        """The unit of replication: ``order``, or ``order × seed`` if these are crossed."""
        return " × ".join(self.factors)

    @property
    def difference(self) -> MeanEstimate:
        """Estimate first minus second.

        The estimate uses the differences in the cells if the methods are paired, and otherwise two means, each with the error of its own
        design.

        Raises:
            Refused: as in :func:`cglsuite.stats.mean_estimate`.
        """
        if self.paired:
            return mean_estimate(self.first - self.second, self.factors, overlap=self.overlap)
        return self.estimates[0].minus(self.estimates[1])

    @property
    def estimates(self) -> tuple[MeanEstimate, MeanEstimate]:
        """Estimate the mean of each method separately. Raises the same errors as :attr:`difference`."""
        first, second = (mean_estimate(values, self.factors, overlap=self.overlap) for values in (self.first, self.second))
        return first, second

    @property
    def text(self) -> str:
        """The numbers of replicates, as in ``5 orders × 3 seeds`` or ``5 and 10 orders``."""
        sizes = zip(self.first.shape, self.second.shape, self.factors, strict=True)
        return " × ".join(several(n, name) if n == m else f"{n} and {m} {name}s" for n, m, name in sizes)


def layout(frame: pd.DataFrame, orders_in_all: int | None = None, overlap: float = 0.0) -> Layout:
    """Determine the design of the cells and average their values within it.

    Args:
        frame: one row per cell: a column ``value`` and at least one of :data:`LEVELS`.
        orders_in_all: the total number of possible orders, if it is small and known.
        overlap: for random splits, the ratio of test items to training items.

    Raises:
        Refused: there are no cells, a value is NaN, a cell occurs twice, or cells are missing; there are three crossed factors; or all
            possible orders were run with only one seed.
    """
    levels = [name for name in LEVELS if name in frame]
    require_frame(frame, levels or LEVELS)
    if frame.empty:
        raise Refused("a method has no finished cell")
    factors = _factors(frame, levels)
    conditions = {name: str(frame[name].iloc[0]) for name in levels if name in _CONDITIONS and frame[name].nunique() == 1}
    population = ""
    if orders_in_all is not None and "order" in factors and frame["order"].nunique() == orders_in_all:
        everything = f"all {several(orders_in_all, 'order')}"
        if len(factors) == 2:
            _require_crossed(frame, factors)
            factors, population = tuple(name for name in factors if name != "order"), everything
        elif "seed" in conditions:
            raise Refused(
                f"{everything} were run with one seed; since these orders are the whole population, only additional seeds can be replicates"
            )
    if len(factors) == 2:
        _require_crossed(frame, factors)
    means = frame.groupby(list(factors), sort=False)["value"].mean()
    labels = tuple(tuple(frame[name].drop_duplicates()) for name in factors)
    values: NDArray[np.float64]
    if len(factors) == 1:
        values = means.reindex(list(labels[0])).to_numpy(dtype=np.float64)
    else:
        values = means.unstack().reindex(index=list(labels[0]), columns=list(labels[1])).to_numpy(dtype=np.float64)
    return Layout(
        factors=factors,
        values=values,
        labels=labels,
        averaged=_averaged(frame, factors),
        given=conditions,
        population=population,
        overlap=overlap if "split" in factors else 0.0,
    )


def _factors(frame: pd.DataFrame, levels: Sequence[str]) -> tuple[str, ...]:
    """Return the factors that vary, without nested factors, and only the outer one of two factors that vary together."""
    varying = [name for name in levels if frame[name].nunique() > 1]
    for inner in reversed(list(varying)):
        if any(bool((frame.groupby(inner)[outer].nunique() == 1).all()) for outer in varying if outer != inner):
            varying.remove(inner)
    if len(varying) > 2:
        crossed = " × ".join(f"{frame[name].nunique()} {name}s" for name in varying)
        raise Refused(
            f"{crossed}, crossed: tests support at most two crossed factors; use a separate split for every seed, or a single split"
        )
    return tuple(varying) or (levels[-1],)


def _require_crossed(frame: pd.DataFrame, factors: Sequence[str]) -> None:
    outer, inner = factors
    counts = frame.groupby([outer, inner], sort=False).size().unstack()
    gaps: Any = counts.isna().stack()
    missing = [f"{outer} {a} with {inner} {b}" for a, b in gaps[gaps].index]
    if missing:
        raise Refused(f"missing cells: {len(missing)} of {counts.size} ({outer} × {inner}): {_listed(missing)}")


def _averaged(frame: pd.DataFrame, factors: Sequence[str]) -> int:
    counts = set(frame.groupby(list(factors), sort=False).size())
    if len(counts) > 1:
        unit = " × ".join(factors)
        raise Refused(
            f"there are {min(counts)} to {max(counts)} cells per {unit}, so the {unit} means are not equally precise; run the missing cells"
        )
    return int(counts.pop())


@dataclass(frozen=True)
class Cells:
    """The cells of one method. Their design is computed once for all comparisons.

    Args:
        frame: one row per cell: a column ``value`` and at least one of :data:`LEVELS`.
        orders_in_all, overlap: see :func:`layout`.
    """

    frame: pd.DataFrame
    orders_in_all: int | None = None
    overlap: float = 0.0

    @cached_property
    def levels(self) -> list[str]:
        """The :data:`LEVELS` that are columns of the frame."""
        return [name for name in LEVELS if name in self.frame]

    @cached_property
    def layout(self) -> Layout:
        """The design of the cells. Raises the same errors as :func:`layout`."""
        return layout(self.frame[[*self.levels, "value"]], self.orders_in_all, self.overlap)

    @cached_property
    def places(self) -> dict[str, list[Any]]:
        """The values of all cells, by level."""
        return {name: self.frame[name].tolist() for name in self.levels}

    @cached_property
    def _units(self) -> dict[tuple[str, ...], dict[object, set[tuple[object, ...]]]]:
        return {}

    def units(self, unit: str, inner: Sequence[str]) -> dict[object, set[tuple[object, ...]]]:
        """Return the cells of each unit, identified by the values of the inner levels."""
        units = self._units.get((unit, *inner))
        if units is None:
            units = self._units[unit, *inner] = {}
            for key, *place in zip(*(self.places[name] for name in (unit, *inner)), strict=True):
                units.setdefault(key, set()).add(tuple(place))
        return units

    def over(self, levels: list[str]) -> Cells:
        """Return the cells with only these levels."""
        return self if levels == self.levels else replace(self, frame=self.frame[[*levels, "value"]])


def replicates(
    first: pd.DataFrame | Cells, second: pd.DataFrame | Cells, orders_in_all: int | None = None, *, apart: bool = False
) -> Replicates:
    """Determine the common design of two methods and their values in it.

    Methods with the same cells are paired. Methods that share their units but have different nested seeds are paired by unit. Methods that
    share no units are independent samples. Anything in between counts as missing cells.

    Args:
        first, second: one row per cell: a column ``value`` and at least one of :data:`LEVELS`.
        orders_in_all: see :func:`layout`; ignored for :class:`Cells`, which store it.
        apart: treat each method as if the other had not been run. The methods need not share any cells.

    Raises:
        Refused: as in :func:`layout`; only one method has cells; or the methods do not share the crossed factors.
    """
    mine, theirs = (cells if isinstance(cells, Cells) else Cells(cells, orders_in_all) for cells in (first, second))
    levels = [name for name in mine.levels if name in theirs.levels]
    if mine.frame.empty or theirs.frame.empty:
        raise Refused("a method has no finished cell")
    if not apart:
        _require_same_units(mine, theirs, levels)
    x, two = (cells.over(levels).layout for cells in (mine, theirs))
    for name in x.given.keys() & two.given.keys():
        if x.given[name] != two.given[name]:
            raise Refused(f"one method was run only with {name} {x.given[name]}, the other only with {name} {two.given[name]}")
    if x.factors != two.factors:
        raise Refused(f"one method is replicated over {x.unit}, the other over {two.unit}; run both in the same cells")
    paired = not apart and all(set(a) == set(b) for a, b in zip(x.labels, two.labels, strict=True))
    if len(x.factors) == 2 and not paired and not apart:
        raise Refused(f"{x.unit} are crossed, but the methods do not share them; run both in the same cells")
    return Replicates(
        factors=x.factors,
        paired=paired,
        first=x.values,
        second=_aligned(two, x.labels) if paired else two.values,
        averaged=(x.averaged, two.averaged),
        given=x.given,
        population=x.population,
        overlap=x.overlap,
    )


def _aligned(crossed: Layout, labels: Sequence[Sequence[Any]]) -> NDArray[np.float64]:
    places = [[mine.index(label) for label in wanted] for mine, wanted in zip(crossed.labels, labels, strict=True)]
    return crossed.values[np.ix_(*places)]


def _require_same_units(first: Cells, second: Cells, levels: Sequence[str]) -> None:
    """Check that two methods share all or none of their outermost units, and likewise the cells within them."""
    unit = next((name for name in levels if len({*first.places[name], *second.places[name]}) > 1), levels[-1])
    inner = levels[levels.index(unit) + 1 :]
    mine, theirs = (cells.units(unit, inner) for cells in (first, second))
    shared = mine.keys() & theirs.keys()
    lacking = [key for key in dict.fromkeys([*mine, *theirs]) if key not in shared]
    if shared and lacking:
        raise Refused(
            f"missing cells: {len(lacking)} of {len(mine.keys() | theirs.keys())} {unit}s were run with only one of the methods "
            f"({_listed(lacking)}); run the rest, or compare over the {len(shared)} shared ones"
        )
    different = [key for key in mine if key in shared and mine[key] != theirs[key] and mine[key] & theirs[key]]
    if different:
        listed = _listed(different)
        raise Refused(f"some cells are missing: not every method has a result in {len(different)} of {len(shared)} {unit}s ({listed})")


def _listed(keys: Sequence[object]) -> str:
    return "; ".join(map(str, keys[:_NAMED])) + (f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else "")


# Complete blocks of cells from an unfinished or pooled design, with a list of what they leave out.
# Campaigns have gaps, and pooled campaigns are unbalanced on purpose (all orders with one seed, one order with many seeds). These functions
# return a complete block for statistics that need one, and a second frame with the unused rows and the reason.

UNSHARED = "own seed per order"
"""The name of the single repeat in a design where every order has its own seed."""


def repeats(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Select the repetitions of an experiment over orders, which are the seeds for which every order was run.

    A range grows with the number of orders, so only the seeds with the largest number of orders are comparable. If every seed was used for
    only one order, order and seed are confounded, and all cells form one repeat called :data:`UNSHARED`.

    Args:
        frame: columns order, seed and others; a cell may have several rows.

    Returns:
        The rows of the complete repeats, and one row per excluded seed with the columns seed, n_orders, reason.

    Raises:
        Refused: there are fewer than two orders.
    """
    cells = frame[["order", "seed"]].drop_duplicates()
    n_orders = cells["order"].nunique()
    if n_orders < 2:
        raise Refused(f"the spread over orders needs at least 2 orders, but there is {n_orders}")
    counts = cells.groupby("seed", sort=False)["order"].nunique()
    most = int(counts.max())
    if most < 2:
        return frame.assign(seed=UNSHARED), pd.DataFrame(columns=["seed", "n_orders", "reason"])
    partial = counts[counts < most]
    rows = [{"seed": seed, "n_orders": int(n), "reason": f"{n} of {most} orders"} for seed, n in partial.items()]
    repeated = frame[frame["seed"].isin(counts.index[counts == most])]
    return repeated, pd.DataFrame(rows, columns=["seed", "n_orders", "reason"])


def common_items(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Select the items (tasks or classes) that were scored in every order and with every seed.

    Some orders may leave out classes, whose accuracy is then undefined.

    Args:
        frame: columns order, seed, item, value.

    Returns:
        The rows of these items, and one row per excluded item with the columns item, n_undefined, reason.
    """
    cells = frame[["order", "seed"]].drop_duplicates().shape[0]
    known = frame.dropna(subset="value").groupby("item", sort=False)["value"].size()
    known = known.reindex(frame["item"].drop_duplicates(), fill_value=0)
    partial = known[known < cells]
    rows = [{"item": item, "n_undefined": cells - int(n), "reason": f"scored in {n} of {cells} cells"} for item, n in partial.items()]
    shared = frame[~frame["item"].isin(partial.index)]
    return shared, pd.DataFrame(rows, columns=["item", "n_undefined", "reason"])


def complete_block(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Select a block in which every method was run in every order with every seed.

    Seeds with fewer than half as many cells as the seed with the most cells are dropped first (they belong to a null, or to a repeat that
    has only just started). Then orders that lack a cell for one of the remaining seeds are dropped.

    Args:
        frame: columns method, order, seed, value.

    Returns:
        The rows of the block, and the excluded rows with a column ``reason``.

    Raises:
        Refused: a value is NaN, a cell occurs twice, or no order is complete.
    """
    require_frame(frame, ["method", "order", "seed"])
    per_seed = frame.groupby("seed", sort=False).size()
    seeds = per_seed.index[2 * per_seed >= per_seed.max()]
    shared = frame["seed"].isin(seeds)
    wanted = frame["method"].nunique() * len(seeds)
    per_order = frame[shared].groupby("order", sort=False).size()
    orders = per_order.index[per_order == wanted]
    if not len(orders):
        raise Refused(f"no order has all {wanted} cells ({frame['method'].nunique()} methods × {len(seeds)} seeds)")
    block = shared & frame["order"].isin(orders)
    reason = shared.map({True: "its order lacks a cell", False: "its seed was run with few orders"})
    return frame[block], frame[~block].assign(reason=reason[~block])
