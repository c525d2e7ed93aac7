"""Every method on graphs with edge features, real targets and a single label: one implementation each, no level in any of them."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from covering import covering
from installed import installed
from tiny_graphs import GRAPH_VARIANTS, graph_runner, graph_variant
from tiny_streams import BusyMethod

from cglsuite.graphs import GraphData
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Oracle, QueryGroup, TaskStream, TaskView
from cglsuite.testing.judge.audited import path_to

pytestmark = pytest.mark.plugins
METHODS = [
    "bare",
    "joint",
    "replay",
    "ewc",
    "lwf",
    "mas",
    "twp",
    "er-gnn",
    "gem",
    "continual-gnn",
    "der++",
    "pi-gnn",
    "si",
    "gdumb",
    "joint-budgeted",
]
#: Memories smaller than a task, so that there is something to choose, and penalties that do not blow up a large error's gradient.
SETTINGS: dict[str, dict[str, Any]] = {
    "continual-gnn": {"memory": 12, "replayed": 6},
    "der++": {"memory": 12},
    "gdumb": {"memory": 12},
    "gem": {"per_task": 5},
    "er-gnn": {"per_class": 2},
    "ewc": {"lambda": 1.0},
    "twp": {"lambda_l": 1.0, "lambda_t": 1.0},
}
#: Whose monitored items are the task's alone.
TASK_ALONE = ("bare", "lwf", "ewc", "mas", "twp")
TRAINING = {"lr": 1e-3, "epochs": 2, "monitor": "validation-loss", "restore_best": True}
FORBIDDEN = (Oracle, GraphData, TaskStream, QueryGroup, TaskRunner)


def runner_of(method: Any, variant: str, hyperparameters: dict[str, Any] | None = None, **training: Any) -> TaskRunner:
    stream = graph_variant(variant, training=TRAINING | training)
    return graph_runner(stream, variant, method, SETTINGS.get(method, {}) | (hyperparameters or {}) if isinstance(method, str) else None)


def test_the_methods_of_the_package_are_for_graph_regression() -> None:
    """All but EvolveGCN, whose cells replace convolutions over nodes, ER-ACE, CaT, iCaRL and NCM, which need classes, SSRM and the
    guesser, which are for nodes, PackNet, Piggyback and HAT, which are for task-IL alone, and those for streams without tasks."""
    mine = [e for e in installed().entries("method") if e.record.distribution == "cglsuite-methods"]
    specs: list[Any] = [e.spec for e in mine]
    assert [s.name for s in specs if "GR" in s.levels and set(s.settings) != {"task-il"}] == sorted(METHODS)


@pytest.mark.parametrize("variant", GRAPH_VARIANTS)
@pytest.mark.parametrize("method", METHODS)
def test_test_answers_change_scores_and_nothing_else(method: str, variant: str) -> None:
    plain, other = runner_of(method, variant), runner_of(method, variant)
    for learnt in range(len(other.stream) + 1):
        other.stream.make_queries(learnt)
    for sheet in other.stream.oracle._sheets.values():
        asked = sheet.test.nonzero().flatten()
        sheet.y[asked] = sheet.y[asked.roll(1)]
    one, two = plain.run(), other.run()
    assert two.fingerprints == one.fingerprints
    assert two.curves == one.curves
    assert two.memory == one.memory
    assert two.validation_matrix == one.validation_matrix
    assert two.matrix != one.matrix


@pytest.mark.parametrize("variant", GRAPH_VARIANTS)
def test_a_method_at_work_cannot_reach_the_answers(variant: str) -> None:
    class Watched(BusyMethod):
        def before_task(self, view: TaskView) -> None:
            super().before_task(view)
            assert path_to(FORBIDDEN, self, view) is None

        def after_task(self, view: TaskView) -> None:
            super().after_task(view)
            assert path_to(FORBIDDEN, self, view) is None

        def predict(self, query: Any) -> torch.Tensor:
            assert path_to(FORBIDDEN, self, query) is None
            return super().predict(query)

    runner_of(Watched, variant).run()


IN_BATCHES = covering(
    [(m, variant) for m in METHODS for variant in GRAPH_VARIANTS], lambda row: {row, *row} if row[0] in TASK_ALONE else set(row)
)


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("method", "variant"), IN_BATCHES)
def test_mini_batches_and_the_validation_performance_as_monitor(method: str, variant: str) -> None:
    made = runner_of(method, variant, batch_size=7, monitor="validation-performance").run()
    assert all(math.isfinite(v) for row in made.matrix for v in row)
    best = [min(curve["monitor"]) for curve in made.curves]
    if method in TASK_ALONE:
        assert best == pytest.approx([-made.validation_matrix[k + 1][k] for k in range(3)])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("variant", ["regression domain-il", "one label domain-il"])
def test_a_single_output_is_distilled(variant: str) -> None:
    """A softmax over one output is constant, and would make this fine-tuning: the larger λ, the closer the model stays to its teacher."""
    change = []
    for weight in (0.0, 10.0, 1000.0):
        runner = runner_of("lwf", variant, {"lambda": weight}, monitor="none", restore_best=False, epochs=20, lr=1e-2)
        teachers: list[Any] = []
        original = runner.method.before_task

        def noted(view: TaskView, original: Any = original, runner: TaskRunner = runner, teachers: list[Any] = teachers) -> None:
            original(view)
            teachers.append(copy.deepcopy(runner.method.model))

        runner.method.before_task = noted  # type: ignore[method-assign]
        runner.run()
        batch = runner.stream.view(2).train
        with torch.no_grad():
            before, after = (runner.problem.forward(model.eval(), batch) for model in (teachers[2], runner.method.model))
        change.append(float((before - after).abs().mean()))
    assert change[0] > change[1] > change[2]


@pytest.mark.parametrize("method", ["replay", "gem", "er-gnn", "continual-gnn"])
def test_memories_hold_whole_graphs_with_their_edges(method: str) -> None:
    runner = runner_of(method, "regression domain-il")
    made = runner.run()
    assert made.memory["items"] > 0
    for items in runner.method.memory.all():
        assert len(items.x) == len(items)
        assert items.x.n_edge_features == 3
        assert items.y.dtype == torch.float32
        assert items.edges == items.x.n_edges > 0
    if method == "er-gnn":  # all items of a task are of one class where there are none
        assert {len(items) for items in runner.method.memory.all()} == {2}
