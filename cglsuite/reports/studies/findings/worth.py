"""What memory and seconds buy: the gain of every method over fine-tuning beside its cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cglsuite.cells.records.frame import UPPER_BOUND
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.results.costs import kept_bytes

if TYPE_CHECKING:
    from cglsuite.reports.results.results import CampaignResults
    from cglsuite.reports.studies.comparison.compute import Comparison

__all__ = ["WORTH", "competes", "worth"]

WORTH = ["scenario", "preset", "method", "n", "gain", "low", "high", "p_adjusted", "better", "seconds", "bytes", "frontier", "percent"]
_REFERENCE = "bare"


def worth(results: CampaignResults, comparisons: Sequence[Comparison], differences: pd.DataFrame) -> pd.DataFrame:
    """A row per scenario and method beside fine-tuning.

    Args:
        differences: :attr:`cglsuite.reports.studies.findings.compute.Findings.differences`.

    Returns:
        Columns :data:`WORTH`: gain over fine-tuning in the metric's unit with its 95 % interval, p_adjusted (Holm, over the pairs of the
        scenario), better (whether it is significantly), seconds (over fine-tuning's, geometric mean over shared repetitions on the same
        class of machine), bytes (kept beyond the model, the mean), frontier (no method of the scenario gains more for no more seconds and
        bytes; joint training keeps all data and is left out of it), percent (whether the unit is a fraction).
    """
    records = {record.key: record for record in results.used}
    frames = []
    for one in comparisons:
        mine = {str(method): part for method, part in one.cells.groupby("method", sort=False)}
        if _REFERENCE not in mine:
            continue
        pairs = differences[differences["scenario"] == one.name]
        rows = []
        for row in as_rows(pairs):
            if _REFERENCE not in (row["first"], row["second"]):
                continue
            method = row["second"] if row["first"] == _REFERENCE else row["first"]
            sign = (1.0 if one.higher_is_better else -1.0) * (-1.0 if row["first"] == _REFERENCE else 1.0)
            low, high = sorted((sign * row["low"], sign * row["high"]))
            facts = {"scenario": one.name, "preset": one.preset, "method": method, "n": row["n"], "percent": one.percent}
            facts |= {
                "gain": _gain(sign * row["estimate"], one, mine[method], mine[_REFERENCE]),
                "low": low,
                "high": high,
                "p_adjusted": row["p_adjusted"],
            }
            facts |= {"better": row["better"] == method, "seconds": _seconds(records, mine[method], mine[_REFERENCE])}
            facts["bytes"] = float(np.mean([kept_bytes(records[key]) for key in mine[method]["key"] if key in records]))
            rows.append(facts)
        frame = pd.DataFrame(rows, columns=WORTH)
        frames.append(frame.assign(frontier=[_efficient(row, as_rows(frame)) for row in as_rows(frame)]))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=WORTH)


def method_of(label: str) -> str:
    """The method of a label that may name its settings too: ``ewc (lr=0.01)``."""
    return label.partition(" (")[0]


def competes(label: str) -> bool:
    """Whether a method, with or without its variant, is another than joint training, which has all data."""
    return method_of(label) != UPPER_BOUND


def _gain(tested: float, one: Comparison, method: pd.DataFrame, reference: pd.DataFrame) -> float:
    """The difference that was tested, over shared repetitions; that of the means where there is no test."""
    if tested == tested:
        return float(tested)
    difference = float(method["value"].mean() - reference["value"].mean())
    return difference if one.higher_is_better else -difference


def _seconds(records: Any, method: pd.DataFrame, reference: pd.DataFrame) -> float:
    places = ["order", "split", "seed"]
    shared = method.merge(reference, on=places, suffixes=("", "_reference"))
    logs = []
    for row in as_rows(shared):
        mine, theirs = records.get(row["key"]), records.get(row["key_reference"])
        if mine is None or theirs is None or _machine(mine) != _machine(theirs):
            continue
        a, b = mine.timings_s.get("total"), theirs.timings_s.get("total")
        if a and b:
            logs.append(math.log(a / b))
    return math.exp(float(np.mean(logs))) if logs else math.nan


def _machine(record: Any) -> tuple[Any, ...]:
    environment = [record.environment.get(name) for name in ("cpu", "cuda", "platform", "torch")]
    return (*map(str, environment), record.cell.get("device"), record.cell.get("threads"))


def _efficient(row: dict[str, Any], others: list[dict[str, Any]]) -> bool:
    """Whether nothing but joint training is as good in gain, seconds and bytes and better in one; fine-tuning is 0, 1, 0."""
    if not competes(row["method"]):
        return False
    mine = _point(row)
    rivals = [_point(other) for other in others if other["method"] != row["method"] and competes(other["method"])]
    return not any(all(r >= m for r, m in zip(rival, mine, strict=True)) and rival != mine for rival in [*rivals, (0.0, -1.0, 0.0)])


def _point(row: dict[str, Any]) -> tuple[float, float, float]:
    """Gain, minus seconds, minus bytes; unknown seconds are infinite."""
    seconds = row["seconds"] if row["seconds"] == row["seconds"] else math.inf
    return row["gain"], -seconds, -row["bytes"]
