"""Measure how much final accuracy depends on the order of tasks or classes, compared with how much it depends on the seed alone.

OPD, the order-normalised performance disparity of an item (a task or a class), is the largest minus the smallest final accuracy over orders
(Yoon et al., ICLR 2020). AOPD is its mean over items, and MOPD is its maximum. Wei et al. (arXiv:2401.18054) report both over all task
orders and over class orders, which include the task orders, since every task order is also a class order.

A range grows with the number of values, and attributes initialisation noise to the order. Every OPD is therefore reported with a null: the
range over the same number of seeds for one fixed order. If there are fewer seeds than orders, :func:`expected_range` computes both for the
same number of draws.

Frames have one row per cell and item, with the columns ``order``, ``seed``, ``item``, ``value`` (a fraction).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.errors import UsageError
from cglsuite.stats.refusal import Refused, require_complete, require_frame

_DRAWS = 2000
_AT_ONCE = 250


def opd(frame: pd.DataFrame) -> pd.DataFrame:
    """Compute ``OPD_i = max_o a_i(o) - min_o a_i(o)`` for each seed and item.

    Args:
        frame: columns order, seed, item, value. Every order of a seed must have every item.

    Returns:
        One row per seed and item: columns seed, item, opd, lowest, highest, lowest_order, highest_order (the first in case of ties),
            n_orders.

    Raises:
        Refused: a value is NaN, a cell occurs twice, an order lacks an item, or a seed has only one order.

    Example:
        >>> rows = [("a", 0, "t", 0.9), ("b", 0, "t", 0.2), ("c", 0, "t", 0.5)]
        >>> round(opd(pd.DataFrame(rows, columns=["order", "seed", "item", "value"]))["opd"].iloc[0], 3)
        0.7
    """
    rows = []
    for seed, table in _tables(frame):
        if len(table) < 2:
            raise Refused(f"seed {seed} has only one order ({table.index[0]}), but the spread over orders needs at least 2")
        for item in table.columns:
            column = table[item]
            low, high = float(column.min()), float(column.max())
            extremes = {
                "opd": high - low,
                "lowest": low,
                "highest": high,
                "lowest_order": column.idxmin(),
                "highest_order": column.idxmax(),
            }
            rows.append({"seed": seed, "item": item, **extremes, "n_orders": len(table)})
    return pd.DataFrame(rows, columns=["seed", "item", "opd", "lowest", "highest", "lowest_order", "highest_order", "n_orders"])


def _tables(frame: pd.DataFrame) -> list[tuple[Any, pd.DataFrame]]:
    """Return a complete table for each seed, with one row per order and one column per item."""
    require_frame(frame, ["order", "seed", "item"])
    items = frame["item"].drop_duplicates()
    tables: list[tuple[Any, pd.DataFrame]] = []
    for seed, part in frame.groupby("seed", sort=False):
        table = part.pivot(index="order", columns="item", values="value")
        table = table.reindex(index=part["order"].drop_duplicates(), columns=items)
        require_complete(table, f"values (order × item) of seed {seed}")
        tables.append((seed, table))
    return tables


def opd_totals(ranges: pd.DataFrame) -> pd.DataFrame:
    """Compute ``AOPD = mean_i OPD_i`` and ``MOPD = max_i OPD_i`` for each seed.

    Args:
        ranges: the result of :func:`opd`.

    Returns:
        One row per seed: columns seed, aopd, mopd, mopd_item, n_items, n_orders.
    """
    rows = []
    for seed, part in ranges.groupby("seed", sort=False):
        values = part["opd"].to_numpy(dtype=np.float64)
        worst = part["item"].iloc[int(values.argmax())]
        counts = {"n_items": len(part), "n_orders": int(part["n_orders"].min())}
        rows.append({"seed": seed, "aopd": float(values.mean()), "mopd": float(values.max()), "mopd_item": worst, **counts})
    return pd.DataFrame(rows, columns=["seed", "aopd", "mopd", "mopd_item", "n_items", "n_orders"])


def expected_range(values: ArrayLike, n: int) -> float:
    """Compute the exact expected ``max - min`` of ``n`` values drawn without replacement.

    With ``x_(1) ≤ ... ≤ x_(N)``, ``E[max] = Σ_i x_(i) C(i-1, n-1) / C(N, n)`` and ``E[min] = Σ_i x_(i) C(N-i, n-1) / C(N, n)``: the largest
    draw is ``x_(i)`` if the other n-1 draws are below it.

    Args:
        values: float64 ``[N]``. n: 1 to N; with ``n = N`` this is the plain range.

    Raises:
        Refused: a value is NaN, or ``n`` is not between 1 and N.

    Example:
        >>> round(expected_range([0.0, 1.0, 2.0], 2), 6)  # (1 + 1 + 2) / 3
        1.333333
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64).ravel())
    total = ordered.size
    if not 1 <= n <= total:
        raise Refused(f"cannot compute the range of {n} of {total} values; expected a number from 1 to {total}")
    if not np.isfinite(ordered).all():
        raise Refused(f"{int((~np.isfinite(ordered)).sum())} of {total} values are not finite")
    return max(0.0, math.fsum(w * float(x) for w, x in zip(_range_weights(total, n), ordered, strict=True)))


@lru_cache(maxsize=32)
def _range_weights(total: int, n: int) -> tuple[float, ...]:
    """Return the weights of the sorted values in the expected range."""
    ways = math.comb(total, n)
    return tuple((math.comb(i, n - 1) - math.comb(total - 1 - i, n - 1)) / ways for i in range(total))


def expected_opd(frame: pd.DataFrame, n: int) -> pd.DataFrame:
    """Compute the expected OPD over ``n`` orders, averaged over all possible choices of ``n`` orders.

    Returns:
        One row per seed and item: columns seed, item, opd.

    Raises:
        Refused: as in :func:`opd`, or a seed has fewer than ``n`` orders.
    """
    rows = [{"seed": seed, "item": item, "opd": expected_range(table[item], n)} for seed, table in _tables(frame) for item in table.columns]
    return pd.DataFrame(rows, columns=["seed", "item", "opd"])


def subset_opd(frame: pd.DataFrame, n: int, draws: int = _DRAWS, random_seed: int = 0) -> pd.DataFrame:
    """Compute AOPD and MOPD, averaged over seeds, on random subsets of ``n`` orders drawn without replacement.

    The expectation of a maximum over items has no closed form, so MOPD at ``n`` orders is the mean over these subsets. The quantiles for
    half of the orders show how much the results depend on which orders were run.

    Returns:
        ``draws`` rows: columns aopd, mopd.

    Raises:
        Refused: as in :func:`opd`, or a seed has fewer than ``n`` orders.
    """
    generator = np.random.default_rng(random_seed)
    tables = [(seed, table.to_numpy(dtype=np.float64)) for seed, table in _tables(frame)]
    totals = np.zeros((2, draws))
    for seed, values in tables:
        ranges = _subset_ranges(values, n, draws, generator, f"orders of seed {seed}")
        totals += np.stack([ranges.mean(axis=1), ranges.max(axis=1)]) / len(tables)
    return pd.DataFrame({"aopd": totals[0], "mopd": totals[1]})


def _subset_ranges(values: NDArray[np.float64], n: int, draws: int, generator: np.random.Generator, item_name: str) -> NDArray[np.float64]:
    """Return the ranges over random subsets of ``n`` rows of ``values [rows, items]``, shape ``[draws, items]``."""
    if not 2 <= n <= len(values):
        raise Refused(f"cannot draw subsets of {n} of {len(values)} {item_name}; expected a number from 2 to {len(values)}")
    parts = []
    for begin in range(0, draws, _AT_ONCE):
        keys = generator.random((min(_AT_ONCE, draws - begin), len(values)))
        drawn = values[np.argpartition(keys, n - 1, axis=1)[:, :n]]
        parts.append(drawn.max(axis=1) - drawn.min(axis=1))
    return np.concatenate(parts)


@dataclass(frozen=True, kw_only=True)
class Null:
    """The OPD expected from seeds alone, without an effect of the order.

    Args:
        items: columns item, opd: the expected range over ``n`` seeds of the same order, averaged over ``orders``.
        aopd: mean of ``opd`` over items. mopd: mean over orders of the expected maximum over items.
        n: number of draws per range. n_seeds: number of seeds per order. orders: the orders used.
    """

    items: pd.DataFrame
    aopd: float
    mopd: float
    n: int
    n_seeds: int
    orders: tuple[str, ...]


def null_opd(frame: pd.DataFrame, n: int | None = None, draws: int = _DRAWS, random_seed: int = 0) -> Null:
    """Compute the null of an OPD: how much the accuracy of an item varies if the order is fixed and only the seed changes.

    The results are averaged over the orders with the most seeds. The null of an OPD over N orders is a range over N seeds. If there are
    fewer seeds, compare it with :func:`expected_opd` over a number of orders equal to the number of seeds.

    Args:
        frame: columns order, seed, item, value. n: number of draws per range; by default the number of seeds.

    Raises:
        Refused: no order has two seeds; ``n`` exceeds the number of seeds; a value is NaN; a cell occurs twice or lacks an item.
    """
    require_frame(frame, ["order", "seed", "item"])
    counts = frame[["order", "seed"]].drop_duplicates().groupby("order", sort=False).size()
    n_seeds = int(counts.max()) if len(counts) else 0
    if n_seeds < 2:
        raise Refused("no order was run with more than one seed, but the null needs an order with at least 2 seeds")
    size = n_seeds if n is None else n
    if not 2 <= size <= n_seeds:
        raise Refused(f"cannot compute a null of {size} draws from {n_seeds} seeds; expected a number from 2 to {n_seeds}")
    orders = [str(order) for order in counts.index[counts == n_seeds]]
    items = list(frame["item"].drop_duplicates())
    generator = np.random.default_rng(random_seed)
    ranges, largest = [], []
    for values in _by_order_and_seed(frame, orders, items):
        ranges.append([expected_range(values[:, i], size) for i in range(len(items))])
        whole = size == n_seeds
        largest.append(max(ranges[-1]) if whole else float(_subset_ranges(values, size, draws, generator, "seeds").max(axis=1).mean()))
    means = np.mean(ranges, axis=0)
    return Null(
        items=pd.DataFrame({"item": items, "opd": means}),
        aopd=float(means.mean()),
        mopd=float(np.mean(largest)),
        n=size,
        n_seeds=n_seeds,
        orders=tuple(orders),
    )


def _by_order_and_seed(frame: pd.DataFrame, orders: list[str], items: list[Any]) -> NDArray[np.float64]:
    """Return an array ``[orders, seeds, items]`` for orders with the same number of seeds. The seeds may differ between orders."""
    rows = frame[frame["order"].isin(orders)]
    table = rows.pivot(index=["order", "seed"], columns="item", values="value").reindex(columns=items)
    if table.isna().to_numpy().any():
        for order in orders:
            require_complete(table.loc[[order]].droplevel("order"), f"values (seed × item) of order {order}")
    values = table.to_numpy(dtype=np.float64).reshape(len(orders), -1, len(items))
    of_rows = table.index.get_level_values("order")[:: values.shape[1]]
    return np.asarray(values[pd.Index(of_rows).get_indexer(pd.Index(orders))])


def task_orders(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Select the orders that arrange the same set of tasks, so that tasks can be compared across orders.

    Every task order is also a class order, so per-class accuracies can be pooled over all orders. Per-task accuracies are comparable only
    if the tasks consist of the same classes.

    Args:
        frame: columns order, partition (a string that is equal for orders of the same tasks), and others.

    Returns:
        The rows of the partition shared by the most orders (the alphabetically first in case of ties), and that partition.

    Raises:
        Refused: no two orders consist of the same tasks.
    """
    counts = frame[["order", "partition"]].drop_duplicates().groupby("partition").size()
    if not len(counts) or int(counts.max()) < 2:
        raise Refused(f"an OPD per task needs orders with the same tasks, but no two of the {len(counts)} orders have the same tasks")
    most = str(counts.index[int(counts.to_numpy().argmax())])
    return frame[frame["partition"] == most], most


# An upper bound on average forgetting from average accuracy.
# With accuracies between 0 and 1, ``AF_max = 1/(k-1) Σ_{j<k} (max_l M[l, j] - M[k, j]) ≤ 1/(k-1) Σ_{j<k} (1 - M[k, j])``, and the sum of
# the final accuracies of the first k - 1 tasks is at least ``k·AA - 1``: hence ``AF ≤ 1 - k/(k-1)·AA + 1/(k-1)`` (Wei et al.,
# arXiv:2401.18054). The bound holds for forgetting from the diagonal too, which is never larger.

_TOLERANCE = 1e-9


def af_bound(aa: ArrayLike, k: int) -> NDArray[np.float64]:
    """Compute ``1 - k/(k-1)·AA + 1/(k-1)``, the largest possible average forgetting at a given average accuracy.

    Args:
        aa: average accuracies after the last task, as fractions. k: number of tasks.

    Raises:
        Refused: there is only one task, so nothing can be forgotten.

    Example:
        >>> af_bound([0.2, 1.0], 5).round(3).tolist()
        [1.0, 0.0]
    """
    if k < 2:
        raise Refused(f"forgetting requires at least 2 tasks, but there is only {k}")
    return np.asarray(1.0 - k / (k - 1) * np.asarray(aa, dtype=np.float64) + 1.0 / (k - 1))


def check_bound(frame: pd.DataFrame) -> pd.DataFrame:
    """Check whether each cell satisfies the bound on forgetting.

    Args:
        frame: columns aa, af, n_tasks; fractions.

    Returns:
        The frame with columns bound, slack (bound - af), obeys (True, False, or None if there is nothing to check) and reason (why there is
        nothing to check, or empty).

    Raises:
        UsageError: a column is missing.
    """
    absent = [name for name in ("aa", "af", "n_tasks") if name not in frame]
    if absent:
        raise UsageError(f"the frame lacks {', '.join(absent)}; expected the columns aa, af and n_tasks")
    rows = [_checked(float(aa), float(af), int(k)) for aa, af, k in zip(frame["aa"], frame["af"], frame["n_tasks"], strict=True)]
    checks = pd.DataFrame(rows, columns=["bound", "slack", "obeys", "reason"], index=frame.index)
    return frame.assign(bound=checks["bound"], slack=checks["slack"], obeys=checks["obeys"].astype(object), reason=checks["reason"])


def _checked(aa: float, af: float, k: int) -> tuple[float, float, bool | None, str]:
    nan = float("nan")
    if k < 2:
        return nan, nan, None, "a single task"
    if not (np.isfinite(aa) and np.isfinite(af)):
        return nan, nan, None, "AA or AF is undefined"
    bound = float(af_bound(aa, k))
    return bound, bound - af, bool(af <= bound + _TOLERANCE), ""
