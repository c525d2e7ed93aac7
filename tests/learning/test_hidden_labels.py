"""Hidden labels are out of a method's reach, and they do not matter: permuting the test answers changes scores and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from installed import installed
from short_methods import SHORT
from tiny_streams import VARIANTS, BusyMethod, tiny_data, tiny_graphs, tiny_runner, tiny_stream, variant_stream
from tiny_streams import catalogue_runner as runner_over
from tiny_task_free import catalogue_task_free_runner, tiny_task_free_stream
from torch import Tensor

from cglsuite import Method, Seeds
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import GraphData, NodeData
from cglsuite.learning.result import RunResult
from cglsuite.learning.task_free_runner import TaskFreeRunner
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.specs import ScenarioSpec
from cglsuite.streams import Oracle, QueryGroup, TaskFreeStream, TaskStream, TaskView
from cglsuite.streams.assembly import Assembly
from cglsuite.testing.judge.audited import path_to, reachable, whole_storage

FORBIDDEN = (Oracle, NodeData, TaskStream, QueryGroup, TaskRunner)
POLICIES = ("none", "inter-task", "full")
ENTRIES: list[Any] = installed().entries("method")  # type: ignore[assignment]
METHODS = [e.name for e in ENTRIES if set(e.spec.settings) - {"task-free"}]
TASK_FREE = [e.name for e in ENTRIES if "task-free" in e.spec.settings]
PRESETS = [
    f"synthetic-csbm/{setting}@{protocol}" for setting in ("task-il", "class-il") for protocol in ("begin-1", "cglb-1", "cglb-inter-1")
]
TINY = {
    "dataset.n_nodes": 72,
    "dataset.n_classes": 6,
    "dataset.n_features": 40,
    "dataset.words": 5,
    "dataset.avg_degree": 4,
    "training.epochs": 3,
    "backbone.width": 4,
}


FEW_SHOT = {"scenario.base_classes": 4, "scenario.classes_per_task": 1}
"""A base session and sessions of one class: the streams of methods that need them."""
SESSIONS = {"teen": FEW_SHOT}


def catalogue_runner(preset: str, method: str) -> TaskRunner:
    """The runner of a cell of the catalogue, as ``run_cell`` makes it.

    Raises:
        NotApplicable: the method is not for this preset.
    """
    from cglsuite.cells.run import build_stream, make_runner
    from cglsuite.cells.spec import resolve_cell

    catalogue = installed()
    overrides = {**TINY, **SHORT.get(method, {}), **SESSIONS.get(method, {})}
    cell = resolve_cell(catalogue, preset, method, overrides=overrides, seeds=Seeds(order=1))
    return make_runner(cell, catalogue, build_stream(cell, catalogue))


# --- out of reach -----------------------------------------------------------------------------------------------------------------


def assert_out_of_reach(runner: TaskRunner) -> None:
    """Nothing that leads to an answer can be reached from the method: its context, its problem, its model, its memory."""
    assert path_to(FORBIDDEN, runner.method) is None
    table = runner.stream.task_outputs
    for path, obj in reachable(runner.method):
        if isinstance(obj, Tensor) and obj.dtype == torch.bool and obj.layout == torch.strided and obj.numel():
            assert not torch.equal(whole_storage(obj)[: table.numel()], table.flatten()), f"{path}: which classes come when"


@pytest.mark.parametrize("method", [Method, BusyMethod])
def test_a_new_method_cannot_reach_the_answers(method: type[Method]) -> None:
    assert_out_of_reach(tiny_runner(tiny_stream(), method))


@pytest.mark.parametrize("kind", [*POLICIES, *VARIANTS])
def test_a_method_at_work_cannot_reach_the_answers(kind: str) -> None:
    """At every moment at which the method is called."""
    runner: TaskRunner

    class Watched(BusyMethod):
        def before_task(self, view: TaskView) -> None:
            super().before_task(view)
            assert path_to(FORBIDDEN, self, view) is None

        def after_task(self, view: TaskView) -> None:
            super().after_task(view)
            assert path_to(FORBIDDEN, self, view) is None

        def predict(self, query: Any) -> Tensor:
            assert path_to(FORBIDDEN, self, query) is None
            return super().predict(query)

    training = {"monitor": "validation-loss", "epochs": 2}
    stream = variant_stream(kind, training=training) if kind in VARIANTS else tiny_stream(edge_policy=kind, training=training)
    runner = tiny_runner(stream, Watched)
    runner.run()


@pytest.mark.plugins
@pytest.mark.parametrize("method", METHODS)
def test_a_method_of_the_catalogue_cannot_reach_the_answers(method: str) -> None:
    """As the cell's runner makes it, with what ``build_model`` closes over."""
    for preset in PRESETS:
        try:
            runner = catalogue_runner(preset, method)
        except NotApplicable:
            continue
        assert_out_of_reach(runner)


# --- without effect ---------------------------------------------------------------------------------------------------------------


def permute_answers(stream: TaskStream | TaskFreeStream, seed: int = 0) -> None:
    """Deposit all answers, then shuffle those of the test items within each sheet; validation answers stay."""
    for learnt in range(len(stream) + 1) if isinstance(stream, TaskStream) else stream.evaluations:
        stream.make_queries(learnt)
    generator = torch.Generator().manual_seed(seed)
    for sheet in stream.oracle._sheets.values():
        asked = sheet.test.nonzero().flatten()
        sheet.y[asked] = sheet.y[asked[torch.randperm(asked.numel(), generator=generator)]]


def outcome(runner: TaskRunner | TaskFreeRunner, *, permuted: bool) -> RunResult:
    if permuted:
        permute_answers(runner.stream)
    return runner.run()


def assert_indifferent(plain: RunResult, permuted: RunResult) -> bool:
    """No weight, state, answer, loss or validation score differs; whether any test score does."""
    assert permuted.fingerprints == plain.fingerprints
    assert permuted.curves == plain.curves
    assert permuted.memory == plain.memory
    assert repr(permuted.validation_matrix) == repr(plain.validation_matrix)
    return repr(permuted.matrix) != repr(plain.matrix)


@pytest.mark.plugins
@pytest.mark.parametrize("method", METHODS)
def test_test_answers_change_scores_and_nothing_else(method: str) -> None:
    """For every method that is installed, built-in or not, in every preset family that it is applicable to."""
    differs = []
    for preset in PRESETS:
        try:
            runners = [catalogue_runner(preset, method) for _ in range(2)]
        except NotApplicable:
            continue
        differs.append(assert_indifferent(outcome(runners[0], permuted=False), outcome(runners[1], permuted=True)))
    assert any(differs), "the answers were not permuted, or the method runs nowhere"


@pytest.mark.parametrize("policy", POLICIES)
def test_the_base_class_is_indifferent_too(policy: str) -> None:
    for setting in ("task-il", "class-il"):
        training = {"monitor": "validation-loss", "restore_best": True}
        runners = [
            tiny_runner(tiny_stream(tiny_data(per_class=15), edge_policy=policy, setting=setting, training=training), BusyMethod)
            for _ in range(2)
        ]
        assert_indifferent(outcome(runners[0], permuted=False), outcome(runners[1], permuted=True))


@pytest.mark.parametrize("name", VARIANTS)
def test_so_it_is_where_domains_time_steps_or_label_sets_arrive(name: str) -> None:
    training = {"monitor": "validation-loss", "restore_best": True, "epochs": 3}
    runners = [tiny_runner(variant_stream(name, training=training), BusyMethod) for _ in range(2)]
    assert assert_indifferent(outcome(runners[0], permuted=False), outcome(runners[1], permuted=True))


@pytest.mark.plugins
@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("task-guesser", *SESSIONS)])  # the presets above have them
def test_so_is_every_method_there(method: str) -> None:
    """Every installed method in every kind of stream that it is applicable to."""
    differs = []
    short = {name.removeprefix("method."): value for name, value in SHORT.get(method, {}).items()}
    for name in VARIANTS:
        try:
            runners = [runner_over(variant_stream(name, training={"lr": 1e-3, "epochs": 2}), method, short) for _ in range(2)]
            differs.append(assert_indifferent(outcome(runners[0], permuted=False), outcome(runners[1], permuted=True)))
        except NotApplicable:
            continue
    assert any(differs), "the answers were not permuted, or the method runs nowhere"


@pytest.mark.plugins
@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("method", TASK_FREE)
def test_so_is_every_method_on_a_task_free_stream(method: str, graphs: bool) -> None:
    """Nor does a method's way lead to the answers there."""
    try:
        runners = [
            catalogue_task_free_runner(tiny_task_free_stream(tiny_graphs(per_class=20) if graphs else None), method) for _ in range(2)
        ]
    except NotApplicable as reason:
        pytest.skip(str(reason))
    assert assert_indifferent(outcome(runners[0], permuted=False), outcome(runners[1], permuted=True))
    assert path_to((Oracle, NodeData, GraphData, TaskFreeStream, ScenarioSpec, Assembly), runners[0].method) is None


@pytest.mark.parametrize("cheats", ["with the answers", "with nothing"])
def test_a_method_that_reads_the_answers_is_noticed(cheats: str) -> None:
    """The check has power: one look at a test answer, wherever it is put, shows."""
    results = []
    for permuted in (False, True):
        stream = tiny_stream(tiny_data(per_class=15))
        if permuted:
            permute_answers(stream)
        stream.make_queries(3)
        # What a leak would give.
        labels = torch.cat([s.y[s.test] for s in stream.oracle._sheets.values()]).float()

        class Cheat(Method):
            def after_task(self, view: TaskView, leaked: Tensor = labels) -> None:
                if cheats == "with the answers":
                    with torch.no_grad():
                        next(self.model.parameters()).add_(1e-3 * (leaked * torch.arange(len(leaked))).sum())

        results.append(tiny_runner(stream, Cheat).run())
    if cheats == "with nothing":
        assert_indifferent(*results)
    else:
        with pytest.raises(AssertionError):
            assert_indifferent(*results)
