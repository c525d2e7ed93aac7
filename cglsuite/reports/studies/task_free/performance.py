"""Methods on task-free streams: performance along the stream, falls and recoveries, performance against overlap.

Tables of a :class:`~cglsuite.reports.studies.task_free.pooling.TaskFreeStudy`, formatted by
:mod:`cglsuite.reports.studies.task_free.page`. Values are fractions.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cglsuite import stats
from cglsuite.base.hashing import canonical
from cglsuite.reports.results.measures import TASK_FREE_MEASURES, stream_facts
from cglsuite.reports.results.performance import is_fraction, performance_bounds, performance_name
from cglsuite.reports.results.tables import mean_matrices
from cglsuite.stats import metrics
from cglsuite.streams.mixing import mixing_entropy, overlap_index

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cglsuite.reports.results.results import Group
    from cglsuite.reports.studies.task_free.pooling import TaskFreeStudy

__all__ = ["courses", "overlap_points", "performance", "recoveries"]


def performance(study: TaskFreeStudy) -> pd.DataFrame:
    """The mean over latent tasks at every evaluation, over seeds.

    Returns:
        Columns preset, backbone, label, step (steps made), mean, std, low, high (NaN: no interval), n, interval (kind, or why it is
        missing), percent.
    """
    rows = []
    for group in study.groups:
        evaluations, stack = _alike(group)
        values = stack.mean(axis=2)
        percent = is_fraction(group.records[0])
        identity = {"preset": group.preset, "backbone": group.backbone, "label": group.label, "percent": percent}
        for i, step in enumerate(evaluations):
            rows.append(identity | {"step": step} | _mean(values[:, i], performance_bounds(group.records[0])))
    return pd.DataFrame(rows, columns=["preset", "backbone", "label", "percent", "step", "mean", "std", "low", "high", "interval", "n"])


def _alike(group: Group) -> tuple[list[int], NDArray[np.float64]]:
    """The most frequent list of evaluations among the records, and their matrices: float64 [n, E + 1, K]."""
    lists = [tuple(record.stream["evaluations"]) for record in group.records]
    usual, _ = Counter(lists).most_common(1)[0]
    kept = [r.performance() for r, own in zip(group.records, lists, strict=True) if own == usual]
    shape = Counter(m.shape for m in kept).most_common(1)[0][0]
    return list(usual), np.stack([m for m in kept if m.shape == shape])


def _mean(values: NDArray[np.float64], bounds: tuple[float, float] | None) -> dict[str, Any]:
    known = values[np.isfinite(values)]
    row = {"mean": float(known.mean()) if known.size else np.nan, "std": np.nan, "low": np.nan, "high": np.nan, "n": int(known.size)}
    if known.size > 1:
        row["std"] = float(known.std(ddof=1))
    try:
        interval = stats.mean_interval(known, unit="seeds", bounds=bounds)
    except stats.Refused as refusal:
        return row | {"interval": str(refusal)}
    return row | {"low": interval.low, "high": interval.high, "interval": interval.method}


def courses(study: TaskFreeStudy) -> list[tuple[Group, NDArray[np.float64]]]:
    """Each group with the mean of its matrices, float64 [E + 1, K]; the methods of a preset one after the other."""
    presets = list(dict.fromkeys(group.preset for group in study.groups))
    return sorted(mean_matrices(study.pooled), key=lambda pair: presets.index(pair[0].preset))


def recoveries(study: TaskFreeStudy) -> pd.DataFrame:
    """Falls below 90 % of the best and the time to recover, over all latent tasks and seeds.

    Returns:
        Columns preset, backbone, label, percent, n (records), dips (per record), recovered (share of all dips), steps (median over dips,
        infinite if they last; inf: half or more last, NaN: no dips), depth (mean loss at the lowest point).
    """
    rows = []
    for group in study.groups:
        dips = [dip for record in group.records for dip in metrics.dips(record.performance(), stream_facts(record))]
        rows.append(
            {
                "preset": group.preset,
                "backbone": group.backbone,
                "label": group.label,
                "percent": is_fraction(group.records[0]),
                "n": len(group.records),
                "dips": len(dips) / len(group.records),
                "recovered": float(np.mean([dip.end is not None for dip in dips])) if dips else np.nan,
                "steps": float(np.median([dip.steps for dip in dips])) if dips else np.nan,
                "depth": float(np.mean([dip.best - dip.least for dip in dips])) if dips else np.nan,
            }
        )
    return pd.DataFrame(rows, columns=["preset", "backbone", "label", "percent", "n", "dips", "recovered", "steps", "depth"])


def overlap_points(study: TaskFreeStudy, measure: str = "a_auc") -> pd.DataFrame:
    """A metric against the overlap index of the stream, among streams that differ only in their schedule.

    Returns:
        Columns key, family (what they share, as text), percent, label, preset, title, schedule, overlap, entropy, mean, std, low, high,
        interval, n; families of a single overlap index have no rows.
    """
    function = TASK_FREE_MEASURES[measure]
    rows = []
    for group in study.groups:
        stream = study.streams.get(group.preset)
        if stream is None:
            continue
        values = np.array([function.of(record) for record in group.records])
        percent = is_fraction(group.records[0])
        shown: dict[str, Any] = {
            "title": stream.title,
            "schedule": stream.schedule_text,
            "overlap": overlap_index(stream.mixture, study.threshold),
        }
        shown["entropy"] = mixing_entropy(stream.mixture)
        identity = {"key": _family(group), "family": _family_title(group), "percent": percent, "label": group.label, "preset": group.preset}
        rows.append(identity | shown | _mean(values, performance_bounds(group.records[0]) if function.share else None))
    columns = [
        "key",
        "family",
        "percent",
        "label",
        "preset",
        "title",
        "schedule",
        "overlap",
        "entropy",
        "mean",
        "std",
        "low",
        "high",
        "interval",
        "n",
    ]
    frame = pd.DataFrame(rows, columns=columns)
    several = frame.groupby("key")["overlap"].nunique()
    return frame[frame["key"].isin(several[several > 1].index)].reset_index(drop=True)


def _family(group: Group) -> str:
    """All values that define learning and evaluation, except the schedule."""
    configuration = group.records[0].cell["configuration"]
    kept = {n: v for n, v in configuration.items() if not n.startswith(("schedule.", "method.", "training.")) and n != "stream.schedule"}
    return canonical([kept, configuration.get("training.batch_size"), group.backbone])


def _family_title(group: Group) -> str:
    scenario, configuration = group.records[0].scenario, group.records[0].cell["configuration"]
    shared = [
        f"mask {configuration.get('stream.mask')}",
        f"{configuration.get('training.batch_size')} items per step",
        str(configuration.get("stream.draw")),
    ]
    return f"{scenario.get('dataset')} × {group.backbone}, {', '.join(shared)} – {performance_name(scenario)}"
