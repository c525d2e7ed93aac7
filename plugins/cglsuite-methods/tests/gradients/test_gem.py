"""GEM: the quadratic program against brute force, the projection against its definition, and what memory and failures cost."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_methods.gradients import gem
from cglsuite_methods.gradients.gem import GEM, solve_dual
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from tiny_streams import (
    VARIANTS,
    KeptCheckpoints,
    assert_same_run,
    catalogue_runner,
    node_numbers,
    tiny_data,
    tiny_runner,
    tiny_stream,
    variant_stream,
)
from torch import Tensor

from cglsuite import Method
from cglsuite.base.errors import BudgetError, NotApplicable
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import TaskView

SETTINGS: dict[str, Any] = {"per_task": 5, "fraction": None, "margin": 0.5, "neighbourhood": False}
DATA = tiny_data()
CLEAR: dict[str, Any] = {"dropout": 0.0}


def runner_of(
    method: type[Method] = GEM,
    /,
    *,
    stream: dict[str, Any] | None = None,
    backbone: dict[str, Any] | None = None,
    **changes: Any,
) -> TaskRunner:
    return tiny_runner(tiny_stream(DATA, **(stream or {})), method, SETTINGS | changes, backbone=backbone)


def learn(runner: TaskRunner, k: int = 2) -> tuple[GEM, TaskView]:
    """The method in evaluation mode in the middle of task ``k``, with the memories of earlier tasks laid out and the task's gradient."""
    method = runner.method
    assert isinstance(method, GEM)
    method.model.eval()
    for j in range(k + 1):
        view = runner.stream.view(j)
        runner.problem.arrive(view)
        method.before_task(view)
        if j < k:
            method.after_task(view)
    method.loss(view.train).backward()
    return method, view


def flat(method: Method, gradients: Any) -> Tensor:
    pieces = [torch.zeros(p.numel()) if g is None else g.flatten() for p, g in zip(method.model.parameters(), gradients, strict=True)]
    return torch.cat(pieces)


def own_gradient(method: Method) -> Tensor:
    return flat(method, [p.grad for p in method.model.parameters()])


def memory_gradients(method: GEM, view: TaskView) -> Tensor:
    """One row per past task, each by a pass of its own."""
    rows = []
    for shelf in method.memory:
        batch = method.problem.recall(method.memory[shelf], view)
        loss = method.problem.loss(method.forward(batch), batch)
        rows.append(flat(method, torch.autograd.grad(loss, list(method.model.parameters()), allow_unused=True)))
    return torch.stack(rows)


def oppose(method: GEM, view: TaskView, shelf: int = 0) -> None:
    """Turn the task's gradient against a memory's, so that a step must be projected."""
    against = -10 * memory_gradients(method, view)[shelf] + own_gradient(method)
    for p, piece in zip(method.model.parameters(), against.split([p.numel() for p in method.model.parameters()]), strict=True):
        p.grad = piece.view_as(p).clone()


# --- the quadratic program --------------------------------------------------------------------------------------------------------


def test_one_memory_by_hand() -> None:
    """v = max(margin, -<g, g_1> / (‖g_1‖² + ε))."""
    for product, margin, expected in ((-8.0, 0.5, 8.0 / 4.001), (-8.0, 3.0, 3.0), (-0.1, 0.5, 0.5), (-0.1, 0.0, 0.1 / 4.001)):
        solution, failures = solve_dual(torch.tensor([[4.0]]), torch.tensor([product]), margin)
        assert solution is not None
        assert failures == 0
        assert solution.tolist() == pytest.approx([expected], rel=1e-5)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10_000), st.sampled_from([0.0, 0.05, 0.5, 5.0]))
def test_the_program_equals_a_general_solver(t: int, seed: int, margin: float) -> None:
    rng = np.random.default_rng(seed)
    past, current = rng.standard_normal((t, 7)), rng.standard_normal(7)
    solution, failures = solve_dual(torch.tensor(past @ past.T), torch.tensor(past @ current), margin)
    assert solution is not None
    assert failures == 0
    quadratic, linear = past @ past.T + 1e-3 * np.eye(t), past @ current

    def value(v: Any) -> float:
        return float(0.5 * v @ quadratic @ v + linear @ v)

    found = minimize(
        value,
        np.full(t, margin + 1.0),
        jac=lambda v: quadratic @ v + linear,
        bounds=[(margin, None)] * t,
        method="L-BFGS-B",
        options={"ftol": 1e-14, "gtol": 1e-10, "maxiter": 5000},
    )
    assert (solution.numpy() >= margin - 1e-9).all()
    assert value(solution.numpy()) <= found.fun + 1e-6 * (1 + abs(found.fun))


def test_a_failure_is_counted_and_repeated_with_a_larger_ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    """An indefinite matrix with eigenvalue -0.05: ε = 1e-3 and 1e-2 fail, 0.1 succeeds."""
    tried: list[float] = []
    original = gem.bounded_minimum

    def watched(quadratic: Any, *rest: Any) -> Any:
        tried.append(float(quadratic[0, 0] - 1.0))
        return original(quadratic, *rest)

    monkeypatch.setattr(gem, "bounded_minimum", watched)
    solution, failures = solve_dual(torch.tensor([[1.0, 0.0], [0.0, -0.05]]), torch.tensor([-1.0, 0.0]), 0.5)
    assert failures == 2
    assert tried == pytest.approx([1e-3, 1e-2, 1e-1])
    assert solution is not None
    assert solution.tolist() == pytest.approx([1 / 1.1, 0.5])


def test_it_gives_up_after_ten_attempts() -> None:
    assert solve_dual(torch.tensor([[-1e12]]), torch.tensor([-1.0]), 0.5) == (None, 10)


@pytest.mark.parametrize("bad", [torch.inf, torch.nan])
def test_what_is_not_finite_is_a_failure_at_once(bad: float) -> None:
    assert solve_dual(torch.tensor([[bad]]), torch.tensor([-1.0]), 0.5) == (None, 1)
    assert solve_dual(torch.tensor([[1.0]]), torch.tensor([bad]), 0.5) == (None, 1)
    assert solve_dual(torch.tensor([[1.0, bad], [bad, 1.0]]), torch.tensor([-1.0, -1.0]), 0.5) == (None, 1), "one entry of many"
    assert solve_dual(torch.eye(2), torch.tensor([-1.0, bad]), 0.5) == (None, 1), "one product of many"


# --- the projection ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbourhood", [False, True])
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_the_rows_are_the_gradients_of_each_tasks_memory(setting: str, neighbourhood: bool) -> None:
    method, view = learn(runner_of(neighbourhood=neighbourhood, stream={"setting": setting}))
    past = method._remember(method._parameters())
    assert past.shape == (2, sum(p.numel() for p in method.model.parameters()))
    torch.testing.assert_close(past, memory_gradients(method, view), rtol=1e-4, atol=1e-6)
    assert past.abs().sum(dim=1).min() > 0


@pytest.mark.parametrize("neighbourhood", [False, True])
@pytest.mark.parametrize("margin", [0.0, 0.5, 5.0])
def test_a_step_against_a_memory_is_projected(margin: float, neighbourhood: bool) -> None:
    """The gradient becomes g + Gᵀv with the v of the program, and no longer points against any memory."""
    method, view = learn(runner_of(margin=margin, neighbourhood=neighbourhood))
    oppose(method, view)
    before, past = own_gradient(method), memory_gradients(method, view)
    assert float((past @ before).min()) < 0
    weights, _ = solve_dual(past @ past.T, past @ before, margin)
    assert weights is not None
    method.before_step()
    after = own_gradient(method)
    torch.testing.assert_close(after, before + past.T @ weights, rtol=1e-3, atol=1e-5)
    assert float((past @ after).min()) > -1e-2 * float((past @ before).abs().max())
    assert (method.qp_failures, method.unprojected) == (0, 0)


def test_a_step_that_no_memory_objects_to_stays_to_the_bit() -> None:
    method, view = learn(runner_of())
    total = memory_gradients(method, view).sum(dim=0)
    for p, piece in zip(method.model.parameters(), total.split([p.numel() for p in method.model.parameters()]), strict=True):
        p.grad = piece.view_as(p).clone()
    before = own_gradient(method)
    assert float((memory_gradients(method, view) @ before).min()) >= 0
    method.before_step()
    assert torch.equal(own_gradient(method), before)


def test_gradients_are_changed_in_place() -> None:
    method, view = learn(runner_of())
    oppose(method, view)
    held = [p.grad for p in method.model.parameters()]
    method.before_step()
    assert all(p.grad is g for p, g in zip(method.model.parameters(), held, strict=True))


def test_a_parameter_without_gradient_counts_as_zeros() -> None:
    """It stays without where no memory depends on it either; else it takes part in the projected step."""
    method, view = learn(runner_of())
    idle = torch.nn.Parameter(torch.ones(3))
    method.model.register_parameter("idle", idle)
    method.before_task(view)
    oppose_all = memory_gradients(method, view)
    bias = method.model.head.bias
    assert isinstance(bias, torch.nn.Parameter)
    for p, piece in zip(method.model.parameters(), oppose_all[0].split([p.numel() for p in method.model.parameters()]), strict=True):
        p.grad = None if p is idle or p is bias else -piece.view_as(p).clone()
    method.before_step()
    assert idle.grad is None
    assert bias.grad is not None
    assert bias.grad.shape == bias.shape


def test_storage_is_made_once_and_belongs_to_no_checkpoint() -> None:
    """One row per past task and one for the current gradient, written in place at every step."""
    places: set[int] = set()

    class Watched(GEM):
        def after_step(self) -> None:
            if self._memories:
                places.add(self._rows.data_ptr())
                assert self._rows.is_contiguous()

    runner = runner_of(Watched)
    result = runner.run()
    method = runner.method
    assert isinstance(method, GEM)
    assert len(places) == 1
    assert method._rows.shape == (3, result.parameters["model"])
    assert result.parameters["method"] == 0


def test_memories_are_laid_out_once_per_task(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_of()
    laid_out: list[int] = []
    original = runner.problem.recall
    monkeypatch.setattr(runner.problem, "recall", lambda items, view: (laid_out.append(len(items)), original(items, view))[1])
    runner.run()
    assert laid_out == [5, 5, 5]


@pytest.mark.parametrize(("neighbourhood", "passes"), [(True, 1), (False, 2)])
def test_memories_in_one_graph_share_one_forward_pass(neighbourhood: bool, passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    method, view = learn(runner_of(neighbourhood=neighbourhood))
    graphs: list[Any] = []
    original = method.model.encode
    monkeypatch.setattr(method.model, "encode", lambda graph: (graphs.append(graph), original(graph))[1])
    method.before_step()
    assert len(graphs) == passes
    assert all((graph is view.graph) == neighbourhood for graph in graphs)


def test_memory_is_read_in_training_mode() -> None:
    """As published: batch norm's running statistics take note of the memory."""
    method, _ = learn(runner_of())
    method.model.train()
    before = {k: v.clone() for k, v in method.model.state_dict().items()}
    method.before_step()
    assert method.model.training
    changed = {k for k, v in method.model.state_dict().items() if not torch.equal(v, before[k])}
    assert changed
    assert all("norms" in k for k in changed)


def test_projected_steps_raise_no_memorys_loss() -> None:
    """The purpose of it all: a small step of plain descent along the projected gradient."""
    for projected in (False, True):
        method, view = learn(runner_of(backbone=CLEAR, margin=0.0))
        oppose(method, view)
        if projected:
            method.before_step()

        def losses(method: GEM = method, view: TaskView = view) -> Tensor:
            batches = [method.problem.recall(method.memory[s], view) for s in method.memory]
            with torch.no_grad():
                return torch.stack([method.problem.loss(method.forward(b), b) for b in batches])

        before = losses()
        with torch.no_grad():
            for p in method.model.parameters():
                assert p.grad is not None
                p -= 1e-4 * p.grad
        assert bool((losses() <= before + 1e-5).all()) == projected


# --- failures ---------------------------------------------------------------------------------------------------------------------


def test_failures_are_counted_reported_and_the_step_is_taken(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    method, view = learn(runner_of())
    oppose(method, view)
    before = own_gradient(method)

    def never(*_: Any) -> Any:
        raise np.linalg.LinAlgError("not positive definite")

    monkeypatch.setattr(gem, "bounded_minimum", never)
    method.before_step()
    assert (method.qp_failures, method.unprojected) == (10, 1)
    assert torch.equal(own_gradient(method), before)
    with caplog.at_level(logging.WARNING):
        method.after_task(view)
    assert "10 attempts to solve a projection failed in task 3 (10 so far)" in caplog.text
    assert "1 steps so far were not projected" in caplog.text


def test_nothing_is_reported_where_nothing_failed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        runner_of().run()
    assert "gem" not in caplog.text


def test_counts_survive_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    original = gem.bounded_minimum
    calls = [0]

    def sometimes(*given: Any) -> Any:
        calls[0] += 1
        if calls[0] % 2:
            raise np.linalg.LinAlgError("not positive definite")
        return original(*given)

    monkeypatch.setattr(gem, "bounded_minimum", sometimes)
    kept = KeptCheckpoints()
    runner = runner_of()
    runner.run(kept)
    assert isinstance(runner.method, GEM)
    assert runner.method.qp_failures > 0
    assert runner.method.counters() == {"qp_failures": runner.method.qp_failures, "unprojected": runner.method.unprojected}
    resumed = runner_of()
    resumed.run(kept)
    assert isinstance(resumed.method, GEM)
    assert resumed.method.qp_failures == runner.method.qp_failures


# --- memory -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
def test_memory_holds_training_items_of_every_task(policy: str) -> None:
    seen: list[set[int]] = []

    class Watched(GEM):
        def after_task(self, view: TaskView) -> None:
            seen.append(set(node_numbers(view.graph, view.train.ids)))
            super().after_task(view)

    runner = runner_of(Watched, stream={"edge_policy": policy})
    runner.run()
    for k, training in enumerate(seen):
        x = runner.method.memory[f"task-{k}"].x
        assert x is not None
        numbers = [round(float(v) * 1024) for v in x[:, 0]]
        assert len(set(numbers)) == 5  # without replacement
        assert set(numbers) <= training


@pytest.mark.parametrize(
    ("per_task", "budget", "expected"), [(5, None, 15), (100, None, 36), (5, 9, 9), (5, 100, 15), (2, 9, 6), (5, 11, 9)]
)
def test_every_task_has_an_equal_share_of_the_budget(per_task: int, budget: int | None, expected: int) -> None:
    result = runner_of(per_task=per_task, stream={"memory_budget": budget}).run()
    assert (result.memory["items"], result.memory["budget_items"]) == (expected, budget)


def test_a_budget_of_less_than_an_item_per_task_is_refused() -> None:
    with pytest.raises(BudgetError, match="is less than one for each of 3 tasks"):
        runner_of(stream={"memory_budget": 2}).run()


def test_a_neighbourhood_cannot_be_read_where_old_nodes_are_gone() -> None:
    with pytest.raises(NotApplicable, match="edge policy `none`.*method.neighbourhood=false"):
        runner_of(neighbourhood=True, stream={"edge_policy": "none"}).run()


def test_the_first_task_is_fine_tuning() -> None:
    one, bare = runner_of().run(), tiny_runner(tiny_stream(DATA), Method).run()
    assert one.curves[0] == bare.curves[0]
    assert one.matrix[1] == bare.matrix[1]
    assert one.curves[1] != bare.curves[1]


def test_it_forgets_less() -> None:
    stream = tiny_stream(tiny_data(per_class=30), training={"epochs": 40})
    options: dict[str, Any] = {"backbone": {"dropout": 0.0, "width": 16}}
    kept = tiny_runner(stream, GEM, SETTINGS | {"per_task": 20, "neighbourhood": True}, **options).run().matrix
    bare = tiny_runner(stream, Method, **options).run().matrix
    assert kept[3][0] > bare[3][0] + 0.2


@pytest.mark.parametrize("neighbourhood", [False, True])
def test_resumption(neighbourhood: bool) -> None:
    kept = KeptCheckpoints()
    whole = runner_of(neighbourhood=neighbourhood).run(kept, keep=99)
    for prefix in kept.saved:
        only = KeptCheckpoints()
        only.files[prefix] = kept.files[prefix]
        assert_same_run(runner_of(neighbourhood=neighbourhood).run(only), whole)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("variant", VARIANTS)
def test_domains_time_steps_and_several_labels(variant: str) -> None:
    """The same code in every setting; a run that is taken up in the middle ends where an uninterrupted one does."""

    def runner() -> TaskRunner:
        return tiny_runner(variant_stream(variant), GEM, SETTINGS)

    kept = KeptCheckpoints()
    whole = runner().run(kept, keep=99)
    bare = tiny_runner(variant_stream(variant), Method).run()
    assert len(whole.curves) == len(bare.curves) > 1
    assert whole.curves[0] == bare.curves[0]
    assert all(whole.curves[k]["loss"] != bare.curves[k]["loss"] for k in range(1, len(bare.curves)))
    middle = KeptCheckpoints()
    middle.files[kept.saved[1]] = kept.files[kept.saved[1]]
    assert_same_run(runner().run(middle), whole)


@pytest.mark.parametrize("neighbourhood", [False, True])
@pytest.mark.parametrize("variant", ["domain-il", "time-il", "multi class-il", "multi class-il consistent", "multi domain-il"])
def test_rows_in_other_settings(variant: str, neighbourhood: bool) -> None:
    method, view = learn(tiny_runner(variant_stream(variant), GEM, SETTINGS | {"neighbourhood": neighbourhood}))
    past = method._remember(method._parameters())
    torch.testing.assert_close(past, memory_gradients(method, view), rtol=1e-4, atol=1e-6)


# --- as benchmarked -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["class-il", "task-il"])
def test_a_memory_competes_among_the_outputs_that_its_task_had_seen(setting: str) -> None:
    """Two classes a task: the loss on the memory of task k is the cross-entropy among the first 2 (k + 1) outputs (task-IL: its own)."""
    method, view = learn(runner_of(memory_outputs="until-task", stream={"setting": setting}, backbone=CLEAR))
    found = method._remember(list(method.problem.parameters(method.model).values()))
    rows = []
    for k, shelf in enumerate(method.memory):
        batch = method.problem.recall(method.memory[shelf], view)
        first = 2 * k if setting == "task-il" else 0
        assert batch.y is not None
        loss = torch.nn.functional.cross_entropy(method.forward(batch)[:, first : 2 * (k + 1)], batch.y - first)
        rows.append(flat(method, torch.autograd.grad(loss, list(method.model.parameters()), allow_unused=True)))
    torch.testing.assert_close(found, torch.stack(rows))
    plain = memory_gradients(method, view)
    assert torch.allclose(found, plain) == (setting == "task-il")


def test_memory_outputs_are_a_choice_of_the_spec() -> None:
    runner = catalogue_runner(tiny_stream(DATA), "gem", SETTINGS)
    assert "memory_outputs" not in runner.method.hyperparameters  # today's cells keep their keys
    changed = catalogue_runner(tiny_stream(DATA), "gem", SETTINGS | {"memory_outputs": "until-task"})
    assert changed.method.hyperparameters.memory_outputs == "until-task"
