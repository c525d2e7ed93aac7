"""MAS against brute force: importance item by item, and the penalty around the latest anchor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from cglsuite_methods.regularisation.mas import MAS
from tiny_streams import VARIANTS, KeptCheckpoints, assert_same_run, tiny_data, tiny_runner, tiny_stream, variant_stream
from torch import Tensor

from cglsuite import Method
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Batch, TaskView

SETTINGS: dict[str, Any] = {"lambda": 3.0, "importance": "items", "chunk": 16}
KINDS = ("items", "batch", "batch-squared")


def runner_of(method: type[Method] = MAS, /, *, stream: dict[str, Any] | None = None, sparse: bool = False, **changes: Any) -> TaskRunner:
    return tiny_runner(tiny_stream(tiny_data(sparse=sparse), **(stream or {})), method, SETTINGS | changes)


def at_task(runner: TaskRunner, k: int) -> tuple[MAS, TaskView]:
    """The method in evaluation mode at some weights, and the view of task ``k`` that it has learnt."""
    method = runner.method
    assert isinstance(method, MAS)
    for j in range(k + 1):
        view = runner.stream.view(j)
        runner.problem.arrive(view)
    generator = torch.Generator().manual_seed(k)
    method.model.train()
    with torch.random.fork_rng():
        torch.manual_seed(k)
        method.forward(view.train)  # gives the norms statistics
    method.model.eval()
    with torch.no_grad():
        for p in method.model.parameters():
            p += 0.1 * torch.randn(p.shape, generator=generator)
    return method, view


def norms(method: MAS, batch: Batch) -> Tensor:
    """``‖z‖²`` of the outputs that compete, written out: float32 [n]."""
    z = method.forward(batch)
    allowed = batch.allowed.expand(len(batch), -1)
    return torch.stack([row[mask].pow(2).sum() for row, mask in zip(z, allowed, strict=True)])


def gradient(method: MAS, value: Tensor) -> dict[str, Tensor]:
    parameters = dict(method.model.named_parameters())
    found = torch.autograd.grad(value, list(parameters.values()), allow_unused=True, retain_graph=True)
    return {n: torch.zeros_like(p) if g is None else g for (n, p), g in zip(parameters.items(), found, strict=True)}


def brute_force(method: MAS, batch: Batch, kind: str) -> dict[str, Tensor]:
    """A task's importance by one backward pass per item, or by the one of the mean."""
    values = norms(method, batch)
    if kind == "batch":
        return {n: g.abs() for n, g in gradient(method, values.mean()).items()}
    if kind == "batch-squared":
        allowed = batch.allowed.expand(len(batch), -1)
        return {n: g.pow(2) for n, g in gradient(method, values.sum() / allowed.sum()).items()}
    each = [gradient(method, value) for value in values]
    return {n: sum((g[n].abs() for g in each), torch.zeros(())) / len(each) for n in each[0]}


@pytest.mark.parametrize("chunk", [1, 5, 100])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_importance_of_items_equals_a_loop_of_backward_passes(setting: str, sparse: bool, chunk: int) -> None:
    method, view = at_task(runner_of(chunk=chunk, sparse=sparse, stream={"setting": setting}), 1)
    method.after_task(view)
    expected = brute_force(method, view.train, "items")
    assert max(float(v.max()) for v in expected.values()) > 0
    for name, value in expected.items():
        torch.testing.assert_close(method.omega[name], value, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("kind", ["batch", "batch-squared"])
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_importance_as_benchmarked(setting: str, kind: str) -> None:
    method, view = at_task(runner_of(importance=kind, stream={"setting": setting}), 1)
    method.after_task(view)
    for name, value in brute_force(method, view.train, kind).items():
        torch.testing.assert_close(method.omega[name], value, rtol=1e-4, atol=1e-9)


def test_outputs_that_do_not_compete_are_left_out() -> None:
    """task-IL, first task: no weight that leads to the outputs 2..5 only is of importance."""
    method, view = at_task(runner_of(stream={"setting": "task-il"}), 0)
    method.after_task(view)
    assert (method.omega["head.weight"][2:] == 0).all()
    assert (method.omega["head.weight"][:2] > 0).any()


def test_labels_play_no_part() -> None:
    (one, view), (other, _) = at_task(runner_of(), 0), at_task(runner_of(), 0)
    one.after_task(view)
    assert view.train.y is not None
    other.after_task(replace(view, train=replace(view.train, y=view.train.y.flip(0), cache={})))
    assert all(torch.equal(one.omega[n], other.omega[n]) for n in one.omega)


def test_gradients_of_items_cancel_in_the_mean() -> None:
    """The triangle inequality: |mean| is at most the mean of absolute values, and here well below it."""
    (items, view), (batch, _) = at_task(runner_of(), 0), at_task(runner_of(importance="batch"), 0)
    items.after_task(view)
    batch.after_task(view)
    assert all((batch.omega[n] <= items.omega[n] + 1e-6).all() for n in items.omega)
    assert sum(float(v.sum()) for v in items.omega.values()) > 1.05 * sum(float(v.sum()) for v in batch.omega.values())


@pytest.mark.parametrize("kind", KINDS)
def test_importance_accumulates_and_the_anchor_moves(kind: str) -> None:
    """Two tasks of different sizes: a sum, or (batch-squared) a mean weighted by items; the anchor is where the last one ended."""
    method, first = at_task(runner_of(importance=kind), 0)
    smaller = replace(first.train, ids=first.train.ids[:4], y=None if first.train.y is None else first.train.y[:4], tasks=None, cache={})
    first = replace(first, train=smaller)
    one = brute_force(method, smaller, kind)
    method.after_task(first)
    _, second = at_task(method_runner(method), 1)
    two = brute_force(method, second.train, kind)
    method.after_task(second)
    assert (len(smaller), len(second.train)) == (4, 12)
    for name, parameter in method.model.named_parameters():
        expected = (4 * one[name] + 12 * two[name]) / 16 if kind == "batch-squared" else one[name] + two[name]
        torch.testing.assert_close(method.omega[name], expected, rtol=1e-4, atol=1e-7)
        torch.testing.assert_close(method.weighted[name], method.omega[name] * parameter)
    assert method.items == 16


def method_runner(method: MAS) -> TaskRunner:
    """A runner of the same stream around a method that is under way."""
    runner = runner_of()
    runner.method, method.problem = method, runner.problem
    return runner


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_that_of_the_penalty_around_the_latest_anchor(kind: str) -> None:
    """``λ Σ Ω (θ - θ*)²`` by autograd, after two tasks and some steps away from the anchor."""
    checked: list[float] = []

    class Explicit(MAS):
        """Keeps the anchor beside what stands for it."""

        def after_task(self, view: TaskView) -> None:
            super().after_task(view)
            self.anchor = {n: p.detach().clone() for n, p in self.model.named_parameters()}

        def before_epoch(self, epoch: int) -> None:
            if self.omega and epoch == 2:
                parameters = dict(self.model.named_parameters())
                self.model.zero_grad()
                self.before_step()
                mine = [p.grad for p in parameters.values()]
                penalty = sum((self.omega[n] * (p - self.anchor[n]).pow(2)).sum() for n, p in parameters.items())
                explicit = torch.autograd.grad(3.0 * penalty, list(parameters.values()))
                for a, b in zip(mine, explicit, strict=True):
                    torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)
                checked.append(max(float(g.abs().max()) for g in explicit))

    result = runner_of(Explicit, importance=kind, **({"lambda": 3.0})).run()
    assert len(checked) == 2
    assert min(checked) > 1e-5
    assert result.parameters["method"] == 2 * result.parameters["model"]


def test_importance_is_taken_in_evaluation_mode_and_leaves_nothing_behind() -> None:
    for kind in KINDS:
        method, view = at_task(runner_of(importance=kind), 0)
        before = {k: v.clone() for k, v in method.model.state_dict().items()}
        method.after_task(view)
        assert all(p.grad is None for p in method.model.parameters())
        assert all(torch.equal(v, before[k]) for k, v in method.model.state_dict().items())


@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
def test_without_weight_it_is_fine_tuning_to_the_bit(policy: str) -> None:
    mas = runner_of(stream={"edge_policy": policy}, **{"lambda": 0.0})
    bare = tiny_runner(tiny_stream(edge_policy=policy), Method)
    one, other = mas.run(), bare.run()
    assert repr(one.matrix) == repr(other.matrix)
    assert one.curves == other.curves
    for name, value in mas.method.model.state_dict().items():
        assert torch.equal(value, bare.method.model.state_dict()[name])


def test_weights_stay_where_the_penalty_holds_them() -> None:
    def moved(weight: float) -> float:
        start: dict[str, Tensor] = {}
        omega: dict[str, Tensor] = {}

        class Watched(MAS):
            def after_task(self, view: TaskView) -> None:
                super().after_task(view)
                if view.first:
                    start.update({n: p.detach().clone() for n, p in self.model.named_parameters()})
                    omega.update({n: f.clone() for n, f in self.omega.items()})

        runner = runner_of(Watched, stream={"n_tasks": 2, "training": {"lr": 0.01, "epochs": 30}}, **{"lambda": weight})
        runner.run()
        return sum((omega[n] * (p - start[n]).pow(2)).sum().item() for n, p in runner.method.model.named_parameters())

    assert moved(100.0) < 0.2 * moved(0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_resumption(kind: str) -> None:
    kept = KeptCheckpoints()
    whole = runner_of(importance=kind).run(kept, keep=99)
    for prefix in kept.saved:
        only = KeptCheckpoints()
        only.files[prefix] = kept.files[prefix]
        assert_same_run(runner_of(importance=kind).run(only), whole)


def test_frozen_parameters_are_left_out() -> None:
    runner = runner_of()
    runner.method.model.head.bias.requires_grad_(False)  # type: ignore[union-attr]
    method, view = at_task(runner, 0)
    method.after_task(view)
    assert "head.bias" not in method.omega
    assert "head.weight" in method.omega
    method.before_step()
    assert {n for n, p in method.model.named_parameters() if p.grad is not None} == set(method.omega)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("variant", VARIANTS)
def test_domains_time_steps_and_several_labels(variant: str) -> None:
    """The same code in every setting; a run that is taken up in the middle ends where an uninterrupted one does."""

    def runner() -> TaskRunner:
        return tiny_runner(variant_stream(variant), MAS, SETTINGS)

    kept = KeptCheckpoints()
    whole = runner().run(kept, keep=99)
    bare = tiny_runner(variant_stream(variant), Method).run()
    assert len(whole.curves) == len(bare.curves) > 1
    assert whole.curves[0] == bare.curves[0]
    assert all(whole.curves[k]["loss"] != bare.curves[k]["loss"] for k in range(1, len(bare.curves)))
    middle = KeptCheckpoints()
    middle.files[kept.saved[1]] = kept.files[kept.saved[1]]
    assert_same_run(runner().run(middle), whole)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", ["multi task-il", "multi class-il"])
def test_importance_with_several_labels(variant: str, kind: str) -> None:
    method, view = at_task(tiny_runner(variant_stream(variant), MAS, SETTINGS | {"importance": kind}), 1)
    method.after_task(view)
    for name, value in brute_force(method, view.train, kind).items():
        torch.testing.assert_close(method.omega[name], value, rtol=1e-4, atol=1e-7)
