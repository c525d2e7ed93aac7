"""REPLAY: one mean loss over current and kept items, what is kept, and the scenario's budget."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cglsuite_methods.baselines.replay import Replay
from tiny_streams import (
    VARIANTS,
    KeptCheckpoints,
    assert_same_run,
    node_numbers,
    tiny_data,
    tiny_runner,
    tiny_stream,
    variant_stream,
    without_steps,
)

from cglsuite import Method
from cglsuite.base.errors import BudgetError, NotApplicable
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Batch, TaskView

SETTINGS: dict[str, Any] = {"fraction": 0.25, "neighbourhood": False}
DATA = tiny_data()


def runner_of(method: type[Method] = Replay, /, *, stream: dict[str, Any] | None = None, **changes: Any) -> TaskRunner:
    return tiny_runner(tiny_stream(DATA, **(stream or {})), method, SETTINGS | changes)


def kept_nodes(method: Method) -> dict[str, list[int]]:
    """The numbers of the nodes in memory (kept with their features), by shelf."""
    out: dict[str, list[int]] = {}
    for shelf in method.memory:
        x = method.memory[shelf].x
        assert x is not None
        out[shelf] = [round(float(v) * 1024) for v in (x if x.layout == torch.strided else x.to_dense())[:, 0]]
    return out


def moment(runner: TaskRunner, past: int = 2) -> tuple[Replay, TaskView, Batch]:
    """The method in evaluation mode when some tasks are past, the view of the next, and the one batch it is learnt from."""
    method = runner.method
    assert isinstance(method, Replay)
    method.model.eval()
    for k in range(past + 1):
        view = runner.stream.view(k)
        runner.problem.arrive(view)
        method.before_task(view)
        views = method.training_views(view)
        if k < past:
            method.after_task(view)
    batch = runner.problem.batch(views)
    return method, view, batch


# --- what is kept -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
def test_a_fraction_of_the_training_items_of_every_task_is_kept(policy: str, sparse: bool) -> None:
    seen: list[set[int]] = []

    class Watched(Replay):
        def after_task(self, view: TaskView) -> None:
            seen.append(set(node_numbers(view.graph, view.train.ids)))
            super().after_task(view)

    runner = tiny_runner(tiny_stream(tiny_data(sparse=sparse), edge_policy=policy), Watched, SETTINGS)
    result = runner.run()
    kept = kept_nodes(runner.method)
    assert list(kept) == ["task-0", "task-1", "task-2"]
    for numbers, training in zip(kept.values(), seen, strict=True):
        assert len(set(numbers)) == 3  # a quarter of twelve
        assert set(numbers) <= training
    assert result.memory["items"] == 9


@pytest.mark.parametrize(("fraction", "expected"), [(0.0, 1), (0.01, 1), (0.1, 1), (0.5, 6), (1.0, 12)])
def test_at_least_one_item_is_kept(fraction: float, expected: int) -> None:
    runner = runner_of(fraction=fraction)
    runner.run()
    assert [len(set(n)) for n in kept_nodes(runner.method).values()] == [expected] * 3


def test_items_follow_the_init_seed_only() -> None:
    def kept(**options: Any) -> dict[str, list[int]]:
        runner = tiny_runner(tiny_stream(DATA), Replay, SETTINGS, **options)
        with torch.random.fork_rng():
            torch.manual_seed(len(options))
            runner.run()
        return kept_nodes(runner.method)

    assert kept() == kept()
    assert kept(init_seed=1) != kept()


def test_draws_are_uniform_over_all_training_items() -> None:
    """Neither the first ones nor one class: over many seeds every item comes up, and about equally often."""
    counts: dict[int, int] = {}
    for seed in range(60):
        runner = tiny_runner(without_steps(tiny_stream(DATA, n_tasks=1)), Replay, SETTINGS, init_seed=seed)
        runner.run()
        for number in kept_nodes(runner.method)["task-0"]:
            counts[number] = counts.get(number, 0) + 1
    assert len(counts) == 12
    assert max(counts.values()) <= 30  # 15 expected, with a deviation of 3.4


# --- the budget -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "expected"), [(100, 3), (9, 3), (8, 2), (3, 1)])
def test_every_task_has_an_equal_share_of_the_budget(budget: int, expected: int) -> None:
    result = runner_of(stream={"memory_budget": budget}).run()
    assert result.memory["items"] == 3 * expected
    assert result.memory["budget_items"] == budget


def test_a_budget_of_less_than_an_item_per_task_is_refused() -> None:
    with pytest.raises(BudgetError, match="a budget of 2 items .* is less than one for each of 3 tasks; expected at least 3"):
        runner_of(stream={"memory_budget": 2}).run()


def test_memory_is_metered() -> None:
    assert runner_of(neighbourhood=True).run().memory == {"items": 9, "edges": 0, "bytes": 9 * 24, "budget_items": None}
    assert runner_of().run().memory == {"items": 9, "edges": 0, "bytes": 9 * (24 + 8 * 4), "budget_items": None}


# --- the loss ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbourhood", [False, True])
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_one_mean_over_current_and_kept_items(setting: str, neighbourhood: bool) -> None:
    """Twelve current items and three of each of two past tasks: the mean of eighteen losses, each among the outputs that compete."""
    method, view, batch = moment(runner_of(neighbourhood=neighbourhood, stream={"setting": setting}))
    replayed = method.problem.recall(method.problem.join(method.memory.all()), view)
    assert (len(view.train), len(replayed), len(batch)) == (12, 6, 18)
    each = [method.problem.loss(method.forward(b), b, reduction="none") for b in (view.train, replayed)]
    torch.testing.assert_close(method.loss(batch), torch.cat(each).mean())
    competing = [[4, 5]] * 12 + [[0, 1] if t == 0 else [2, 3] for t in replayed.tasks.tolist()]  # type: ignore[union-attr]
    if setting == "class-il":
        competing = [[0, 1, 2, 3, 4, 5]] * 18
    allowed = batch.allowed.expand(18, -1)
    assert [row.nonzero().flatten().tolist() for row in allowed] == competing


def test_class_weights_count_the_union() -> None:
    """A class-balanced scenario weighs by 1 / (items of the class) among current and kept items together."""
    runner = runner_of(stream={"training": {"class_balanced": True}})
    method, _, batch = moment(runner)
    assert batch.y is not None
    plain = torch.nn.functional.cross_entropy(method.forward(batch), batch.y, reduction="none")
    weights = 1.0 / torch.bincount(batch.y, minlength=6)[batch.y]
    torch.testing.assert_close(method.loss(batch), (plain * weights).sum() / weights.sum())


@pytest.mark.parametrize("neighbourhood", [False, True])
@pytest.mark.parametrize("policy", ["inter-task", "full"])
def test_one_forward_pass_serves_all(policy: str, neighbourhood: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    method, view, batch = moment(runner_of(neighbourhood=neighbourhood, stream={"edge_policy": policy}))
    passes: list[Any] = []
    original = method.model.encode
    monkeypatch.setattr(method.model, "encode", lambda graph: (passes.append(graph), original(graph))[1])
    method.loss(batch)
    assert len(passes) == 1
    assert (passes[0] is view.graph) == neighbourhood
    if not neighbourhood:
        assert passes[0].n_nodes == view.graph.n_nodes + 6
        assert passes[0].n_edges == view.graph.n_edges


def test_the_union_is_laid_out_once_per_task(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_of()
    laid_out: list[int] = []
    original = runner.problem.recall
    monkeypatch.setattr(runner.problem, "recall", lambda items, view: (laid_out.append(len(items)), original(items, view))[1])
    runner.run()
    assert laid_out == [3, 6]


def test_validation_is_that_of_the_task() -> None:
    """Kept items steer no schedule: the views of a task have its own validation items, once."""
    method, view, _ = moment(runner_of())
    (replaced,) = method.training_views(view)
    assert replaced.validation is view.validation
    assert replaced.position == view.position
    result = runner_of(stream={"training": {"monitor": "validation-loss", "plateau_patience": 2, "restore_best": True}}).run()
    assert all(len(curve["monitor"]) == len(curve["loss"]) > 0 for curve in result.curves)


def test_a_neighbourhood_cannot_be_read_where_old_nodes_are_gone() -> None:
    with pytest.raises(NotApplicable, match="edge policy `none`.*method.neighbourhood=false"):
        runner_of(neighbourhood=True, stream={"edge_policy": "none"}).run()


def test_the_first_task_is_fine_tuning() -> None:
    one, bare = runner_of().run(), tiny_runner(tiny_stream(DATA), Method).run()
    assert one.curves[0] == bare.curves[0]
    assert one.matrix[1] == bare.matrix[1]
    assert one.curves[1] != bare.curves[1]


def test_replay_forgets_less() -> None:
    stream = tiny_stream(tiny_data(per_class=30), training={"epochs": 40})
    options: dict[str, Any] = {"backbone": {"dropout": 0.0, "width": 16}}
    replay = tiny_runner(stream, Replay, {"fraction": 0.5, "neighbourhood": True}, **options).run().matrix
    bare = tiny_runner(stream, Method, **options).run().matrix
    assert replay[3][0] > bare[3][0] + 0.2


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("neighbourhood", [False, True])
def test_resumption(neighbourhood: bool, sparse: bool) -> None:
    def runner() -> TaskRunner:
        return tiny_runner(tiny_stream(tiny_data(sparse=sparse)), Replay, SETTINGS | {"neighbourhood": neighbourhood})

    kept = KeptCheckpoints()
    whole = runner().run(kept, keep=99)
    for prefix in kept.saved:
        only = KeptCheckpoints()
        only.files[prefix] = kept.files[prefix]
        assert_same_run(runner().run(only), whole)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("variant", VARIANTS)
def test_domains_time_steps_and_several_labels(variant: str) -> None:
    """The same code in every setting; a run that is taken up in the middle ends where an uninterrupted one does."""

    def runner() -> TaskRunner:
        return tiny_runner(variant_stream(variant), Replay, SETTINGS)

    kept = KeptCheckpoints()
    whole = runner().run(kept, keep=99)
    bare = tiny_runner(variant_stream(variant), Method).run()
    assert len(whole.curves) == len(bare.curves) > 1
    assert whole.curves[0] == bare.curves[0]
    assert all(whole.curves[k]["loss"] != bare.curves[k]["loss"] for k in range(1, len(bare.curves)))
    middle = KeptCheckpoints()
    middle.files[kept.saved[1]] = kept.files[kept.saved[1]]
    assert_same_run(runner().run(middle), whole)


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name not in ("domain-il apart", "multi task-il")])
def test_the_neighbourhood_in_every_graph_that_keeps_its_nodes(variant: str) -> None:
    result = tiny_runner(variant_stream(variant), Replay, SETTINGS | {"neighbourhood": True}).run()
    assert result.memory["items"]
