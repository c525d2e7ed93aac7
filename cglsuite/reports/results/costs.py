"""Plot performance against cost (seconds and stored bytes), and learning accuracy against forgetting, with one point per method."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from cglsuite.base.markup import Fragment
from cglsuite.cells.records.record import Record
from cglsuite.reports.kit.figures import PointAxis, legend_picture, point_figure
from cglsuite.reports.kit.pictures import Gallery, Picture, picture
from cglsuite.reports.kit.tables import as_rows, empty
from cglsuite.reports.results.measures import TASK_MEASURES, is_fraction, measures_of, value_of
from cglsuite.reports.results.results import Group, Results, drawn
from cglsuite.reports.results.summary import NOTHING_DONE
from cglsuite.reports.results.tables import mean_std

QUANTITIES = ("performance", "seconds", "memory_bytes", "learning_accuracy", "forgetting")
_BYTES_PER_PARAMETER = 4


def learning_accuracy(record: Record) -> float:
    """Compute the learning accuracy ``1/T sum_j M[j,j]``, the mean performance on each task right after it was learnt.

    It shows how well a method learns new tasks, regardless of forgetting: a method that learns nothing also forgets nothing. It is NaN for
    task-free streams, in which no task ends at a defined step.
    """
    if record.stream or not record.matrix:
        return math.nan
    diagonal = np.diag(record.performance()[1:])
    known = diagonal[np.isfinite(diagonal)]
    return float(known.mean()) if known.size else math.nan


def memory_bytes(record: Record) -> float:
    """Return the bytes that a method stores in addition to the model at the end of the stream: its metered memory and its extra parameters.

    If a record does not include the parameters' size in bytes, 4 bytes per parameter are assumed.
    """
    bytes_of_method = record.parameters.get("method_bytes")
    if bytes_of_method is None:
        bytes_of_method = _BYTES_PER_PARAMETER * (record.parameters.get("method") or 0)
    return float((record.memory.get("bytes") or 0) + bytes_of_method)


def machine_of(record: Record) -> tuple[Any, ...]:
    """Return the properties of the machine. Times of two records are comparable only if these properties are equal."""
    environment = [record.environment.get(name) for name in ("cpu", "cuda", "platform", "torch")]
    return (*map(str, environment), record.cell.get("device"), record.cell.get("threads"))


def costs(results: Results) -> pd.DataFrame:
    """Compute the mean costs of each group.

    Performance is measured at the end of the stream. Forgetting is maximum forgetting, and NaN for a task-free stream.

    Returns:
        One row per group, with columns preset, label, backbone, percent, n, and the mean and sample standard deviation of each of
        :data:`QUANTITIES`.
    """
    rows = []
    for group in results.groups:
        facts = {"preset": group.preset, "label": group.label, "backbone": group.backbone, "n": len(group.records)}
        rows.append(facts | {"percent": is_fraction(group.records[0])} | _numbers(group))
    return pd.DataFrame(rows)


def _numbers(group: Group) -> dict[str, float]:
    measures = measures_of(group.records)
    columns = {
        "performance": [value_of(measures["aa"], record) for record in group.records],
        "seconds": [float(record.timings_s.get("total") or math.nan) for record in group.records],
        "memory_bytes": [memory_bytes(record) for record in group.records],
        "learning_accuracy": [learning_accuracy(record) for record in group.records],
        "forgetting": [math.nan if record.stream else value_of(measures["af"], record) for record in group.records],
    }
    summaries = {name: mean_std(np.array([value for value in values if math.isfinite(value)])) for name, values in columns.items()}
    return {f"{name}_{what}": numbers[what] for name, numbers in summaries.items() for what in ("mean", "std")}


def cost_figures(results: Results) -> Gallery | Fragment:
    """Plot performance against seconds and stored bytes, and learning accuracy against forgetting, for each scenario and backbone."""
    results, _ = drawn(results)
    frame = costs(results)
    if frame.empty:
        return empty(NOTHING_DONE)
    order = list(dict.fromkeys(frame["label"]))
    pictures: list[Picture] = []
    several = frame["backbone"].nunique() > 1
    for (preset, backbone), part in frame.groupby(["preset", "backbone"], sort=False):
        title = results.preset_title(str(preset)) + (f" × {backbone}" if several else "")
        pictures += _pictures(title, part, order)
    if pictures:
        pictures.insert(0, legend_picture(order, order=order, lines=False))
    return Gallery(tuple(pictures))


def _pictures(title: str, part: pd.DataFrame, order: list[str]) -> list[Picture]:
    percent = bool(part["percent"].all())
    scale, unit = (100.0, ", %") if percent else (1.0, "")
    performance = PointAxis("performance", f"performance at the end{unit}", scale)
    learnt = PointAxis("learning_accuracy", f"learning accuracy{unit}", scale)
    lost = TASK_MEASURES["af"]
    less = f"{lost.symbol}, {'←' if lost.direction == 'down' else '→'} less"
    axes = [
        (PointAxis("seconds", "seconds per cell", 1.0, logarithmic=True), performance),
        (PointAxis("memory_bytes", "kept, kB", 1e-3, logarithmic=True), performance),
        (PointAxis("forgetting", f"forgetting{', points' if percent else ''} ({less})", scale), learnt),
    ]
    return [_picture(title, part, order, x, y) for x, y in axes if _drawable(part, x, y)]


def _drawable(part: pd.DataFrame, x: PointAxis, y: PointAxis) -> bool:
    return bool((part[f"{x.name}_mean"].notna() & part[f"{y.name}_mean"].notna()).any())


def _picture(title: str, part: pd.DataFrame, order: list[str], x: PointAxis, y: PointAxis) -> Picture:
    points = "; ".join(
        f"{row['label']} {y.scale * row[f'{y.name}_mean']:.3g} at {x.scale * row[f'{x.name}_mean']:.3g}" for row in as_rows(part)
    )
    below = "mean and one standard deviation over records"
    below += "; kept in addition to the model: metered memory and the method's parameters" if x.name == "memory_bytes" else ""
    below += "; learning accuracy: mean performance on each task right after it was learnt" if x.name == "forgetting" else ""
    draw = partial(point_figure, part, title=title, x=x, y=y, order=order, with_legend=False)
    return picture(draw, f"{y.label} against {x.label} in {title}: {points}.", below)
