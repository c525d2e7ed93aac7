"""A campaign over tiny task-free streams: its catalogue, its records, and curves that are known."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from report_lab import EVIL, record_of
from tiny_streams import tiny_data

from cglsuite.base.hashing import plain
from cglsuite.cells.plan import PlannedCell
from cglsuite.graphs import NodeData
from cglsuite.specs import DatasetSpec, Hyperparameter, MethodSpec, MetricSpec, ScenarioSpec, ScheduleSpec, TaskFreeSpec, TrainingSpec
from cglsuite.stats import metrics
from cglsuite.streams.build_task_free import build_task_free_stream

__all__ = ["EXTRA", "METHODS", "NAME", "WIDTHS", "curve", "load", "recorded"]

NAME = "tiny/gaussian@drift-1"
TASK_FREE = TaskFreeSpec(schedule="blended", schedule_hyperparameters=(("width", 2.0),), evaluate_every=3)
SPEC = ScenarioSpec(
    name=NAME,
    summary=EVIL,
    dataset="tiny",
    setting="task-free",
    builder="cglsuite.streams.build_task_free:build_task_free_stream",
    split="per-class",
    edge_policy="full",
    task_free=TASK_FREE,
    training=TrainingSpec(batch_size=4, epochs=1),
)
WIDTH = Hyperparameter(name="width", default=2.0, minimum=0, doc="width")
EXTRA = (
    ("dataset", DatasetSpec(name="tiny", summary="tiny", factory=f"{__name__}:load")),
    ("schedule", ScheduleSpec(name="blended", summary=EVIL, factory="tiny_task_free:blended", hyperparameters=(WIDTH,))),
    ("scenario", SPEC),
    *(("method", MethodSpec(name=name, summary=name, factory="json:loads", settings=("task-free",))) for name in ("steady", "restless")),
    *(
        ("metric", MetricSpec(name=name, summary=name, formula="f(A)", label=label, direction="up", settings=("task-free",), **more))
        for name, label, factory, unit in (("a_auc", "A_AUC", "a_auc", ""), ("time_to_recover", "time", "time_to_recover", "steps"))
        for more in [{"factory": f"cglsuite.stats.metrics:{factory}", "unit": unit}]
    ),
)
METHODS = ["steady", "restless"]
WIDTHS = [0.5, 2.0, 6.0]


def load(root: Any, **_: Any) -> NodeData:
    """The tiny graph as a dataset."""
    return tiny_data(per_class=20)


def curve(method: str, rows: int, seed: int) -> np.ndarray[Any, Any]:
    """Three latent tasks: one method rises to the end, the other has fallen by then."""
    line = np.linspace(0.2, 0.8, rows)[:, None] + 0.02 * np.arange(3) + 0.01 * seed
    if method == "restless":
        line[-1] -= 0.3
    return np.asarray(line)


def recorded(planned: PlannedCell, tampered: bool) -> Any:
    """The record of a cell; ``tampered``: as if another stream had been dealt."""
    cell = planned.cell
    assert cell is not None
    stream = build_task_free_stream(cell.scenario, load(None), cell.seeds)
    matrix = curve(planned.request.method, len(stream.evaluations), planned.request.seeds.init)
    tasks = [plain(facts) for facts in stream.tasks]
    facts = {"evaluations": list(stream.evaluations), "delivered": stream.delivered()}
    content = "f" * 64 if tampered else stream.content
    given = {"a_auc": metrics.a_auc(matrix), "time_to_recover": 6.0 if planned.request.method == "restless" else None}
    base = record_of(planned, matrix=np.ones((4, 3)))
    provenance = {**base.provenance, "stream": facts | {"content": content}}
    return dataclasses.replace(base, matrix=matrix, tasks=tasks, metrics=given, provenance=provenance)
