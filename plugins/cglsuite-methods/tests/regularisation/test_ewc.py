"""EWC against brute force: Fisher information item by item, and one explicit penalty per past task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from cglsuite_methods.regularisation.ewc import EWC
from tiny_streams import assert_same_run, tiny_data, tiny_runner, tiny_stream
from torch import Tensor

from cglsuite import Method
from cglsuite.base.errors import DivergenceError
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Batch, TaskStream, TaskView

SETTINGS: dict[str, Any] = {"lambda": 3.0, "fisher": "items", "chunk": 16}


def runner_of(
    hyperparameters: dict[str, Any] | None = None, method: type[EWC] = EWC, stream: TaskStream | None = None, **changes: Any
) -> TaskRunner:
    changes.setdefault("data", tiny_data(sparse=changes.pop("sparse", False)))
    return tiny_runner(stream or tiny_stream(**changes), method, SETTINGS | (hyperparameters or {}))


def learn_one(runner: TaskRunner) -> tuple[EWC, TaskView]:
    """The method in evaluation mode after the first task, and the view of it."""
    view = runner.stream.view(0)
    runner.problem.arrive(view)
    method = runner.method
    assert isinstance(method, EWC)
    method.model.train()
    with torch.random.fork_rng():
        torch.manual_seed(0)  # dropout alike in every method that a test compares
        for _ in range(3):  # leave the point of initialisation, and give the norms statistics
            method.loss(view.train).backward()
            with torch.no_grad():
                for p in method.model.parameters():
                    if p.grad is not None:
                        p -= 0.05 * p.grad
                    p.grad = None
    method.model.eval()
    return method, view


def item_batches(batch: Batch) -> list[Batch]:
    assert batch.y is not None
    allowed = batch.allowed if batch.allowed.dim() == 2 else batch.allowed.expand(len(batch), -1)
    return [replace(batch, ids=batch.ids[[i]], y=batch.y[[i]], allowed=allowed[[i]], tasks=None, cache={}) for i in range(len(batch))]


def gradients(method: EWC, batch: Batch) -> dict[str, Tensor]:
    parameters = dict(method.model.named_parameters())
    loss = method.problem.loss(method.forward(batch), batch)
    found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    return {n: torch.zeros_like(p) if g is None else g for (n, p), g in zip(parameters.items(), found, strict=True)}


def step_gradients(method: EWC, batch: Batch) -> list[Tensor]:
    """What the optimiser gets to see: the gradient of the loss and what the method adds to it."""
    method.model.zero_grad()
    method.loss(batch).backward()
    method.before_step()
    found = [p.grad for p in method.model.parameters() if p.grad is not None]
    method.model.zero_grad()
    return found


@pytest.mark.parametrize("chunk", [1, 5, 100])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_fisher_of_items_equals_a_loop_of_backward_passes(setting: str, sparse: bool, chunk: int) -> None:
    method, view = learn_one(runner_of({"chunk": chunk}, setting=setting, sparse=sparse))
    method.after_task(view)
    items = item_batches(view.train)
    expected = {n: torch.zeros_like(p) for n, p in method.model.named_parameters()}
    for item in items:
        for name, gradient in gradients(method, item).items():
            expected[name] += gradient.pow(2) / len(items)
    assert max(float(v.max()) for v in expected.values()) > 0
    for name, value in expected.items():
        torch.testing.assert_close(method.fisher[name], value, rtol=1e-4, atol=1e-8)


def test_fisher_of_the_batch_is_the_squared_gradient_of_the_mean() -> None:
    method, view = learn_one(runner_of({"fisher": "batch"}))
    method.after_task(view)
    for name, gradient in gradients(method, view.train).items():
        torch.testing.assert_close(method.fisher[name], gradient.pow(2))


def test_the_two_definitions_differ() -> None:
    """Jensen: the square of a mean is at most the mean of squares."""
    (items, view), (batch, _) = learn_one(runner_of()), learn_one(runner_of({"fisher": "batch"}))
    items.after_task(view)
    batch.after_task(view)
    for name in items.fisher:
        assert (batch.fisher[name] <= items.fisher[name] + 1e-9).all()
    assert sum(float(f.sum()) for f in items.fisher.values()) > 1.5 * sum(float(f.sum()) for f in batch.fisher.values())


def test_fisher_is_taken_in_evaluation_mode_and_leaves_nothing_behind() -> None:
    """No gradient stays in the parameters, and running statistics are not moved."""
    method, view = learn_one(runner_of())
    before = {k: v.clone() for k, v in method.model.state_dict().items()}
    method.after_task(view)
    assert all(p.grad is None for p in method.model.parameters())
    assert all(torch.equal(v, before[k]) for k, v in method.model.state_dict().items())


@pytest.mark.parametrize("fisher", ["items", "batch"])
def test_running_sums_give_the_gradient_of_one_penalty_per_task(fisher: str) -> None:
    """Three tasks: what is kept is two tensors per parameter; the gradient is that of λ Σ_s Σ F_s (θ - θ*_s)²."""
    kept: list[tuple[dict[str, Tensor], dict[str, Tensor]]] = []
    checked: list[float] = []

    class Explicit(EWC):
        """Keeps what the sums stand for beside them."""

        def after_task(self, view: TaskView) -> None:
            of_task = self._batch_fisher(view) if fisher == "batch" else self._item_fisher(view)
            kept.append((of_task, {n: p.detach().clone() for n, p in self.model.named_parameters()}))
            super().after_task(view)

        def before_epoch(self, epoch: int) -> None:
            if not kept or epoch != 2:
                return
            with torch.random.fork_rng():
                parameters = dict(self.model.named_parameters())
                batch = self._batch
                torch.manual_seed(0)
                mine = step_gradients(self, batch)
                torch.manual_seed(0)
                penalty = sum((f[n] * (p - anchor[n]).pow(2)).sum() for f, anchor in kept for n, p in parameters.items())
                explicit = torch.autograd.grad(Method.loss(self, batch) + 3.0 * penalty, list(parameters.values()))
                torch.manual_seed(0)
                plain = torch.autograd.grad(Method.loss(self, batch), list(parameters.values()))
            for a, b in zip(mine, explicit, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
            checked.append(max(float((a - b).abs().max()) for a, b in zip(explicit, plain, strict=True)))

        def loss(self, batch: Batch) -> Tensor:
            self._batch = batch
            return super().loss(batch)

    result = runner_of({"fisher": fisher}, Explicit).run()
    assert len(kept) == 3
    assert len(checked) == 2
    assert min(checked) > 1e-4  # the penalty pulls
    assert result.parameters["method"] == 2 * result.parameters["model"]


@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
def test_without_weight_it_is_fine_tuning_to_the_bit(policy: str) -> None:
    stream = tiny_stream(edge_policy=policy)
    ewc = tiny_runner(stream, EWC, SETTINGS | {"lambda": 0.0})
    bare = tiny_runner(stream, Method)
    one, other = ewc.run(), bare.run()
    assert repr(one.matrix) == repr(other.matrix)
    assert one.curves == other.curves
    assert [f["answers"] for f in one.fingerprints] == [f["answers"] for f in other.fingerprints]
    for name, value in ewc.method.model.state_dict().items():
        assert torch.equal(value, bare.method.model.state_dict()[name])


def test_the_first_task_is_fine_tuning_whatever_the_weight() -> None:
    one = runner_of({"lambda": 1e6}).run()
    other = tiny_runner(tiny_stream(), Method).run()
    assert one.curves[0] == other.curves[0]
    assert one.matrix[1] == other.matrix[1]
    assert one.curves[1] != other.curves[1]


def test_weights_stay_where_the_penalty_holds_them() -> None:
    """With a large weight (and small steps) what mattered to the first task moves less than without."""

    def moved(weight: float) -> float:
        start: dict[str, Tensor] = {}
        fisher: dict[str, Tensor] = {}

        class Watched(EWC):
            def after_task(self, view: TaskView) -> None:
                super().after_task(view)
                if view.first:
                    start.update({n: p.detach().clone() for n, p in self.model.named_parameters()})
                    fisher.update({n: f.clone() for n, f in self.fisher.items()})

        runner = runner_of({"lambda": weight}, Watched, n_tasks=2, training={"lr": 0.01, "epochs": 30})
        runner.run()
        return sum((fisher[n] * (p - start[n]).pow(2)).sum().item() for n, p in runner.method.model.named_parameters())

    assert moved(1e4) < 0.2 * moved(0.0)


@pytest.mark.parametrize("fisher", ["items", "last-step"])
def test_state_and_resumption(fisher: str) -> None:
    """What the penalty needs is in the state that a checkpoint keeps."""
    from tiny_streams import KeptCheckpoints

    kept = KeptCheckpoints()
    whole = runner_of({"fisher": fisher}).run(kept, keep=99)
    for prefix in kept.saved:
        only = KeptCheckpoints()
        only.files[prefix] = kept.files[prefix]
        assert_same_run(runner_of({"fisher": fisher}).run(only), whole)


def test_frozen_parameters_are_left_out() -> None:
    runner = runner_of()
    runner.method.model.head.bias.requires_grad_(False)  # type: ignore[union-attr]
    method, view = learn_one(runner)
    method.after_task(view)
    assert "head.bias" not in method.fisher
    assert "head.weight" in method.fisher
    assert len(step_gradients(method, view.train)) == len(method.fisher)


def test_the_penalty_by_hand() -> None:
    """λ F (θ - θ*)²: nothing at the anchor, and half a unit away in one weight λ F for that one; the loss is the task's alone."""
    method, view = learn_one(runner_of())
    method.after_task(view)
    for shift in (0.0, 0.5):
        with torch.no_grad():
            method.model.head.weight[0, 0] += shift  # type: ignore[index, union-attr]
        assert torch.equal(method.loss(view.train), Method.loss(method, view.train))
        method.model.zero_grad()
        method.before_step()
        for name, parameter in method.model.named_parameters():
            expected = torch.zeros_like(parameter)
            if name == "head.weight":
                expected[0, 0] = 2 * 3.0 * shift * method.fisher[name][0, 0]
                assert shift == 0 or expected[0, 0] > 1e-5
            torch.testing.assert_close(parameter.grad, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("weight", [1e3, 1e30])
def test_a_penalty_that_diverges_is_noticed(weight: float) -> None:
    """Its value is not in the loss, but the weights that it drives away are."""
    with pytest.raises(DivergenceError, match="the loss became nan"):
        runner_of({"lambda": weight, "fisher": "batch"}, training={"optimizer": "sgd", "epochs": 20}).run()


def test_fisher_of_the_last_step_is_its_squared_gradient_at_the_weights_after_it() -> None:
    """AGALE's form: what the optimiser was given last, penalty included, and where it led, not the weights restored afterwards."""
    method, view = learn_one(runner_of({"fisher": "last-step"}))
    parameters = dict(method.model.named_parameters())
    optimizer = torch.optim.SGD(parameters.values(), lr=0.05)
    for task in range(2):
        anchors_before = {n: v.clone() for n, v in method.weighted.items()}
        fisher_before = {n: v.clone() for n, v in method.fisher.items()}
        for _ in range(2):
            optimizer.zero_grad()
            method.loss(view.train).backward()
            method.before_step()
            optimizer.step()
            method.after_step()
        taken = {n: torch.zeros_like(p) if p.grad is None else p.grad.clone() for n, p in parameters.items()}
        reached = {n: p.detach().clone() for n, p in parameters.items()}
        with torch.no_grad():
            for p in parameters.values():  # as the best weights are restored
                p += 0.1
                p.grad = None
        method.after_task(view)
        assert any(g.any() for g in taken.values())
        for name, gradient in taken.items():
            torch.testing.assert_close(method.fisher[name] - fisher_before.get(name, 0.0), gradient.pow(2), rtol=1e-3, atol=1e-6)
            added = method.weighted[name] - anchors_before.get(name, 0.0)
            torch.testing.assert_close(added, gradient.pow(2) * reached[name], rtol=1e-3, atol=1e-6)
        assert task == 0 or fisher_before


def test_without_a_step_nothing_is_protected() -> None:
    method, view = learn_one(runner_of({"fisher": "last-step"}))
    method.after_task(view)
    assert method.fisher == {}
