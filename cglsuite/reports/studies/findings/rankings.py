"""How a change of the protocol changes rankings: Kendall's tau between two presets, beside that between repetitions of one.

Two presets of one data set and setting rank the same methods in the same repetitions (order, split and init seed). A tau of 1 says that
they rank alike. Rankings also change between two repetitions of one preset, which is what a change of the protocol has to be compared with.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cglsuite import stats

if TYPE_CHECKING:
    from cglsuite.reports.studies.comparison.compute import Comparison

__all__ = ["CHANGES", "RANKINGS", "changes", "rankings"]

RANKINGS = ["first", "second", "kind", "methods", "n", "tau", "low", "high", "within", "reason"]
CHANGES = ["first", "second", "kind", "method", "n", "effect", "low", "high", "p", "p_adjusted", "different", "rank_first", "rank_second"]
_LEAST_METHODS = 3
_LEAST_REPETITIONS = 2


def rankings(comparisons: Sequence[Comparison], facts: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """A row per pair of presets that share at least three methods and two repetitions.

    Returns:
        Columns :data:`RANKINGS`: first, second (presets), kind (what differs), methods and n (shared), tau (the mean over repetitions of
        Kendall's tau-b between both rankings of the same repetition) with its 95 % interval (Student's t over repetitions), within (the
        mean tau between two repetitions of one preset), reason (why there is no interval).
    """
    rows = []
    for one, other, first, second in _shared(comparisons, facts):
        taus = np.array([tau for a, b in zip(first, second, strict=True) if math.isfinite(tau := _tau(a, b))])
        inner = [_tau(a, b) for table in (first, second) for a, b in itertools.combinations(table, 2)]
        within = [tau for tau in inner if math.isfinite(tau)]
        row: dict[str, Any] = {"first": one.preset, "second": other.preset, "kind": _kind(one, other, facts), "reason": ""}
        row |= {"methods": first.shape[1], "n": first.shape[0], "tau": float(taus.mean()) if taus.size else math.nan}
        row |= {"within": float(np.mean(within)) if within else math.nan, "low": math.nan, "high": math.nan}
        try:
            interval = stats.mean_interval(taus, bounds=(-1.0, 1.0), unit="repetitions")
            row |= {"low": interval.low, "high": interval.high}
        except stats.Refused as refusal:
            row["reason"] = str(refusal)
        rows.append(row)
    return pd.DataFrame(rows, columns=RANKINGS)


def changes(comparisons: Sequence[Comparison], facts: Mapping[str, Mapping[str, Any]], *, alpha: float = 0.05) -> pd.DataFrame:
    """What the second preset of a pair does to each method: a paired test over repetitions, adjusted over the pair's methods.

    Returns:
        Columns :data:`CHANGES`: effect (second - first, in the metric's unit) with its 95 % interval, p, p_adjusted (Holm), different,
        rank_first and rank_second (mean rank among the shared methods, 1 = best).
    """
    frames = []
    for one, other, first, second in _shared(comparisons, facts):
        methods = _methods(one, other)
        ranks = [pd.DataFrame(-table).rank(axis=1).mean().to_numpy() for table in (first, second)]
        rows = []
        for place, method in enumerate(methods):
            row: dict[str, Any] = {"first": one.preset, "second": other.preset, "kind": _kind(one, other, facts), "method": method}
            row |= {"n": first.shape[0], "effect": float((second[:, place] - first[:, place]).mean())}
            row |= {"rank_first": ranks[0][place], "rank_second": ranks[1][place], "low": math.nan, "high": math.nan, "p": math.nan}
            try:
                found = stats.paired_t(second[:, place], first[:, place], unit="repetitions")
                row |= {"low": found.low, "high": found.high, "p": found.p}
            except stats.Refused:
                pass
            rows.append(row)
        frame = pd.DataFrame(rows, columns=CHANGES)
        frame["p_adjusted"] = stats.adjust(frame["p"].astype(float), "holm")
        frames.append(frame.assign(different=frame["p_adjusted"] <= alpha))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=CHANGES)


def _shared(comparisons: Sequence[Comparison], facts: Mapping[str, Mapping[str, Any]]) -> list[tuple[Comparison, Comparison, Any, Any]]:
    """Pairs of comparisons with the values of the shared methods (columns) in the shared repetitions (rows)."""
    found = []
    for one, other in itertools.combinations(sorted(comparisons, key=lambda c: c.preset), 2):
        a, b = facts[one.preset], facts[other.preset]
        if any(a[name] != b[name] for name in ("dataset", "setting", "level")) or one.backbone != other.backbone:
            continue
        methods = _methods(one, other)
        if len(methods) < _LEAST_METHODS:
            continue
        tables = [c.by_repetition[methods].dropna() for c in (one, other)]
        places = tables[0].index.intersection(tables[1].index)
        if len(places) >= _LEAST_REPETITIONS:
            first, second = (table.loc[places].to_numpy(dtype=np.float64) for table in tables)
            found.append((one, other, first, second))
    return found


def _methods(one: Comparison, other: Comparison) -> list[str]:
    return [method for method in one.methods if method in other.methods]


def _tau(a: Any, b: Any) -> float:
    """Kendall's tau-b of two rankings of the same methods; NaN where all are tied."""
    from scipy import stats as scipy_stats

    return float(scipy_stats.kendalltau(np.round(a, 12), np.round(b, 12)).statistic)


def _kind(one: Comparison, other: Comparison, facts: Mapping[str, Mapping[str, Any]]) -> str:
    """What differs between two presets, in words."""
    a, b = facts[one.preset], facts[other.preset]
    if a["modified"] or b["modified"]:
        return "overridden switches"
    first, second = a["protocol"], b["protocol"]
    family, _, version = first.rpartition("-")
    if family == second.rpartition("-")[0]:
        return f"version {version} to {second.rpartition('-')[2]}"
    return "task by task to global" if second.startswith("global") else f"{first} to {second}"
