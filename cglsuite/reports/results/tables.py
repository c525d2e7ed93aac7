"""Compute the numbers of a report as data frames. All functions are pure, so every number can be recomputed without Jupyter.

Means are over the seeds of a group. ``std`` is the sample standard deviation (``ddof=1``), which is NaN for a single record. All
performance values are fractions here; pages multiply them by 100 to show percentages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cglsuite import stats
from cglsuite.base.hashing import canonical
from cglsuite.cells.records.comparison import promise
from cglsuite.cells.records.record import Matrix, Record, as_array
from cglsuite.reports.kit.text import value_text
from cglsuite.reports.results.results import Group, Results
from cglsuite.reports.results.variants import lead
from cglsuite.specs import METRICS
from cglsuite.stats import metrics as matrix_metrics

IDENTITY = ["preset", "method", "backbone", "variant"]
CURVES: dict[str, Callable[..., float]] = {
    "average_performance": matrix_metrics.average_performance,
    "forgetting_from_diagonal": matrix_metrics.forgetting_from_diagonal,
    "excess_forgetting": matrix_metrics.excess_forgetting,
}
"""Metrics that are shown after every task, each computed from the performance matrix up to that task."""


def summary(results: Results) -> pd.DataFrame:
    """Summarise each metric over the records of each group.

    Returns:
        One row per group and metric, with columns preset, method, backbone, variant, metric, mean, std, n (records with a value) and
        records (finished records of the group). If a metric has no value in a group, its row is missing.
    """
    rows = []
    by_key = results.frame.set_index("key")
    for group in results.groups:
        frame = by_key.loc[[r.key for r in group.records]]
        for name in results.metrics:
            values = frame[name].dropna().to_numpy(dtype=np.float64) if name in frame else np.empty(0)
            if values.size:
                rows.append({**_identity(group), "metric": name, **mean_std(values), "records": len(frame)})
    return pd.DataFrame(rows, columns=[*IDENTITY, "metric", "mean", "std", "n", "records"])


def curves(results: Results, metric: str = "average_performance", *, all_results: Results | None = None) -> pd.DataFrame:
    """Compute a metric after every task k from rows 0 to k and the first k columns of the performance matrix.

    Task-free streams have no rows in the result.

    Args:
        all_results: results in which to look up the records of the metric's reference method; default ``results``.

    Returns:
        Columns preset, method, backbone, variant, task (1-based), mean, std, n. Tasks at which the metric is undefined have no row.
    """
    rows, reference = [], METRICS[metric].reference
    compared = (all_results or results).matrices_of(reference) if reference else {}
    for group in results.groups:
        if group.task_free:
            continue
        values = _columns([timeline(record.performance(), metric, compared.get(record.key)) for record in group.records])
        for task, column in enumerate(values, start=1):
            if column.size:
                rows.append({**_identity(group), "task": task, **mean_std(column)})
    return pd.DataFrame(rows, columns=[*IDENTITY, "task", "mean", "std", "n"])


def timeline(matrix: NDArray[np.float64], metric: str, reference: Matrix | None = None) -> NDArray[np.float64]:
    """Compute ``metric`` after each task from a performance matrix ``[T + 1, T]`` and the matrix of the metric's reference method.

    Returns:
        float64 ``[T]``; NaN where the metric is undefined.

    Example:
        >>> timeline(np.array([[0.5, 0.5], [0.9, 0.5], [0.7, 0.8]]), "average_performance").round(2).tolist()
        [0.9, 0.75]
    """
    function, other = CURVES[metric], None if reference is None else as_array(reference)
    return np.array(
        [function(matrix[: k + 1, :k], joint=None if other is None else other[: k + 1, :k]) for k in range(1, matrix.shape[1] + 1)]
    )


def mean_matrices(results: Results) -> list[tuple[Group, NDArray[np.float64]]]:
    """Compute the mean performance matrix of each group.

    If the records of a group differ in the number of tasks (or evaluations), only those with the most frequent number are averaged.

    Returns:
        Pairs of a group and its matrix, float64 ``[T + 1, T]`` (``[E + 1, K]`` for task-free streams); NaN where values are missing.
    """
    matrices = []
    for group in results.groups:
        stack = [record.performance() for record in group.records]
        shapes = [m.shape for m in stack]
        shape = max(shapes, key=shapes.count)
        alike = np.stack([m for m in stack if m.shape == shape])
        known = np.isfinite(alike)
        totals = np.where(known, alike, 0.0).sum(axis=0)
        counts = known.sum(axis=0)
        matrices.append((group, np.divide(totals, counts, out=np.full(shape, np.nan), where=counts > 0)))
    return matrices


def problems(results: Results) -> pd.DataFrame:
    """List the cells without a result, grouped by reason. Columns: state, preset, method, backbone, seeds, reason."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for cell in results.cells:
        if cell.done:
            continue
        request = cell.planned.request
        preset = cell.planned.cell.preset if cell.planned.cell is not None else request.scenario
        key = (cell.state, preset, request.method, cell.planned.backbone, cell.reason)
        rows.setdefault(key, []).append(f"{request.seeds.order}/{request.seeds.split}/{request.seeds.init}")
    listed = [(*key[:4], "; ".join(seeds), key[4]) for key, seeds in rows.items()]
    return pd.DataFrame(listed, columns=["state", "preset", "method", "backbone", "seeds", "reason"])


def configurations(results: Results) -> pd.DataFrame:
    """List the settings in which a preset's groups differ.

    Returns:
        One row per group and one column per dotted key. The value is missing if a method does not have that setting.
    """
    records = [(group, group.records[0].cell["configuration"]) for group in results.groups]
    by_preset: dict[str, list[dict[str, Any]]] = {}
    for group, values in records:
        by_preset.setdefault(group.preset, []).append(values)
    names = sorted({name for rows in by_preset.values() for name in _differing(rows)}, key=_setting_order)
    rows = [{**_identity(group), **{name: values.get(name) for name in names}} for group, values in records]
    return pd.DataFrame(rows, columns=[*IDENTITY, *names], dtype=object)


def common_configuration(results: Results, preset: str) -> dict[str, Any]:
    """Return the settings that all groups of a preset share, by dotted key."""
    rows = [group.records[0].cell["configuration"] for group in results.groups if group.preset == preset]
    differing = set(_differing(rows))
    return {name: rows[0][name] for name in sorted(rows[0], key=_setting_order) if name not in differing} if rows else {}


def resources(results: Results) -> pd.DataFrame:
    """Compute the mean resources per group: seconds (total and by part), peak memory, memory items and bytes, and extra parameters."""
    columns = [*(f"{part}_s" for part in ("total", "training", "method", "evaluation", "framework")), "peak_bytes"]
    columns += ["memory_items", "memory_bytes", "method_parameters"]
    by_key = results.frame.set_index("key").reindex(columns=columns).astype("float64")
    rows = []
    for group in results.groups:
        frame = by_key.loc[[r.key for r in group.records]]
        means = {name: mean_std(frame[name].dropna().to_numpy())["mean"] for name in columns}
        rows.append({**_identity(group), "n": len(frame), **means})
    return pd.DataFrame(rows, columns=[*IDENTITY, "n", *columns])


def searches(results: Results) -> pd.DataFrame:
    """List the hyperparameter searches.

    Returns:
        One row per search, with columns scenario, method, backbone, trials, points (the size of the search space), drawn (how values were
        drawn from ranges), seeds, scope, chosen, score (mean over the search's seeds), and lead and lead_error (lead over the next best
        candidate and its standard error).
    """
    rows = []
    for outcome in results.searches:
        candidates, selected = outcome["candidates"], outcome["chosen"]
        best = candidates[selected] if selected is not None else None
        rows.append(
            {
                "scenario": outcome["scenario"],
                "method": outcome["method"],
                "backbone": outcome["backbone"] or "",
                "trials": len(candidates),
                "points": outcome.get("points", len(candidates)),
                "drawn": outcome.get("drawn", ""),
                "seeds": len(candidates[0]["scores"]) if candidates else 0,
                "scope": outcome.get("scope", "all"),
                "chosen": _settings_text(best["overrides"]) if best else "no candidate finished on every seed",
                "score": best["mean"] if best else np.nan,
                **dict(zip(("lead", "lead_error"), lead(outcome), strict=True)),
            }
        )
    columns = ["scenario", "method", "backbone", "trials", "points", "drawn", "seeds", "scope", "chosen", "score", "lead", "lead_error"]
    return pd.DataFrame(rows, columns=columns)


def _settings_text(configurations: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value_text(value)}" for name, value in configurations.items())


def sources(results: Results) -> pd.DataFrame:
    """List the code that produced the records.

    Returns:
        Columns distribution, version, source (hash), provides, and records (the number of records that used it).
    """
    counted: dict[tuple[str, str, str], tuple[set[str], int]] = {}
    for record in results.used:
        for key, names in _parts_of(record).items():
            known, count = counted.get(key, (set(), 0))
            counted[key] = (known | names, count + 1)
    rows = [(*key, ", ".join(sorted(names)), count) for key, (names, count) in sorted(counted.items())]
    return pd.DataFrame(rows, columns=["distribution", "version", "source", "provides", "records"])


def conditions(results: Results) -> dict[str, str]:
    """Describe the conditions under which the records were produced.

    Returns:
        Texts by subject: seeds, device, machine, GPU, versions, data, and the conditions for bit-identical results. The texts are empty if
        there is no record.
    """
    used = results.used
    seeds = (record.cell["seeds"] for record in used)
    gpus = _unique(_gpu(r.environment) for r in used if r.environment.get("gpu"))
    return {
        "seeds (order/split/init)": _unique((f"{s['order']}/{s['split']}/{s['init']}" for s in seeds), _SEEDS_SHOWN),
        "device": _unique(f"{r.cell['device']}, threads {r.cell['threads']}, {r.cell['dtype']}" for r in used),
        "machine": _unique(f"{r.environment.get('cpu')}, {r.environment.get('platform')}" for r in used),
        **({"GPU": gpus} if gpus else {}),
        "Python and torch": _unique(f"Python {r.environment.get('python')}, torch {r.environment.get('torch')}" for r in used),
        "data (content hash)": _unique(f"{r.scenario.get('dataset')} {str(r.provenance.get('data') or 'unknown')[:12]}" for r in used),
        "the same bits": promises(used),
    }


def promises(records: Iterable[Record]) -> str:
    """Describe on which machines the cells of these records can be reproduced bit for bit."""
    return _unique(map(promise, records))


_SEEDS_SHOWN = 30


def _gpu(environment: Mapping[str, Any]) -> str:
    parts = int(environment.get("cudnn") or 0)
    version = ".".join(map(str, (parts // 10_000, parts // 100 % 100, parts % 100))) if parts else "unknown"
    return f"{environment['gpu']}, CUDA {environment.get('cuda')}, cuDNN {version}"


def _unique(texts: Iterable[str], max_texts: int | None = None) -> str:
    distinct = list(dict.fromkeys(texts))
    more = f" and {len(distinct) - max_texts} more" if max_texts is not None and len(distinct) > max_texts else ""
    return "; ".join(distinct[:max_texts]) + more


def _parts_of(record: Record) -> dict[tuple[str, str, str], set[str]]:
    parts: dict[tuple[str, str, str], set[str]] = {}
    for part in record.makers:
        key = (str(part.get("distribution", "unknown")), str(part["version"]), str(part["source"]))
        role, name = part.get("role", "plugin"), part.get("name", "")
        parts.setdefault(key, set()).add(f"{role} {name}".strip() if name != role else role)
    return parts


def _identity(group: Group) -> dict[str, Any]:
    return {"preset": group.preset, "method": group.method, "backbone": group.backbone, "variant": group.variant}


def mean_std(values: NDArray[np.float64]) -> dict[str, Any]:
    """Compute ``mean``, ``std`` (the sample standard deviation, NaN for a single value) and ``n``. The mean of no values is NaN."""
    mean = float(values.mean()) if values.size else np.nan
    return {"mean": mean, "std": float(values.std(ddof=1)) if values.size > 1 else np.nan, "n": int(values.size)}


def mean_interval(values: Any, **how: Any) -> dict[str, Any]:
    """Compute the interval of a mean: its ends ``low`` and ``high`` and the name of its method (``interval``).

    If the interval is refused, the ends are NaN and ``interval`` is the reason.

    Args:
        how: keyword arguments for :func:`cglsuite.stats.mean_interval`.
    """
    try:
        interval = stats.mean_interval(values, **how)
    except stats.Refused as refusal:
        return {"low": np.nan, "high": np.nan, "interval": str(refusal)}
    return {"low": interval.low, "high": interval.high, "interval": interval.method}


def _columns(rows: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Return the finite values at each position over rows that may differ in length."""
    longest = max((len(r) for r in rows), default=0)
    return [np.array([r[i] for r in rows if i < len(r) and np.isfinite(r[i])]) for i in range(longest)]


def _differing(rows: Sequence[dict[str, Any]]) -> list[str]:
    names = {name for row in rows for name in row}
    return [name for name in names if len({canonical(row.get(name)) for row in rows}) > 1]


_SECTIONS = ("scenario", "stream", "schedule", "dataset", "training", "backbone", "method", "pretraining")


def _setting_order(name: str) -> tuple[int, str]:
    section = name.partition(".")[0]
    return _SECTIONS.index(section) if section in _SECTIONS else len(_SECTIONS), name
