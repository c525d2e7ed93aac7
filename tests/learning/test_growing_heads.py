"""Runs with ``head = growing``: outputs are drawn when their task arrives, and are trained from then on."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_streams import BusyMethod, KeptCheckpoints, assert_same_run, tiny_data, tiny_model, tiny_runner, tiny_stream, variant_stream
from torch import Tensor

from cglsuite import Method
from cglsuite.backbones.convolutional import gat
from cglsuite.base.errors import NotApplicable
from cglsuite.learning.reproducibility.randomness import scope
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import TaskStream, TaskView

DATA = tiny_data()
DECAY = {"weight_decay": 0.5, "epochs": 6}


class Watching(Method):
    """Notes the head's weights (float32 [C, d + 1], bias last) before and after every task."""

    def setup(self) -> None:
        self.before: list[Tensor] = []
        self.after: list[Tensor] = []

    def weights(self) -> Tensor:
        head: Any = self.model.head
        return torch.cat([head.weight.detach(), head.bias.detach().unsqueeze(1)], dim=1).clone()

    def before_task(self, view: TaskView) -> None:
        self.before.append(self.weights())

    def after_task(self, view: TaskView) -> None:
        self.after.append(self.weights())


def stream_of(head: str = "growing", **changes: Any) -> TaskStream:
    return tiny_stream(DATA, head=head, **changes)


def watched(head: str = "growing", *, init_seed: int = 0, backbone: dict[str, Any] | None = None, **changes: Any) -> Watching:
    runner = tiny_runner(stream_of(head, **changes), Watching, init_seed=init_seed, backbone=backbone)
    runner.run()
    method = runner.method
    assert isinstance(method, Watching)
    return method


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_outputs_are_drawn_when_their_task_arrives(setting: str) -> None:
    """Whatever weight decay has done to them by then; with a fixed head it shows."""
    plain, decayed, fixed = (watched(h, setting=setting, training=t) for h, t in (("growing", {}), ("growing", DECAY), ("fixed", DECAY)))
    for k in (1, 2):
        arriving = slice(2 * k, 2 * k + 2)
        assert torch.equal(plain.before[k][arriving], decayed.before[k][arriving])
        assert not torch.equal(decayed.before[k][arriving], decayed.after[k - 1][arriving])
        assert torch.equal(fixed.before[k], fixed.after[k - 1])
        assert fixed.before[k][arriving].abs().mean() < 0.9 * decayed.before[k][arriving].abs().mean()


@pytest.mark.parametrize("training", [{}, DECAY, {"carry_optimizer": True}])
def test_outputs_that_were_there_are_left_alone(training: dict[str, Any]) -> None:
    method = watched(training=training)
    for k in (1, 2):
        assert torch.equal(method.before[k][: 2 * k], method.after[k - 1][: 2 * k])
    assert torch.equal(method.before[0], watched("fixed", training=training).before[0])  # the first task has nothing to draw


def test_the_draw_has_a_name_and_is_a_whole_model() -> None:
    """Init seed and tasks so far; stored results rest on it."""
    stream = stream_of()
    runner = tiny_runner(stream, Watching, init_seed=3)
    runner.run()
    method: Any = runner.method
    for k in (1, 2):
        with scope(3, "head", runner.draw_names[k + 1]):
            head: Any = tiny_model(stream)().head
        expected = torch.cat([head.weight, head.bias.unsqueeze(1)], dim=1).detach()
        assert torch.equal(method.before[k][2 * k : 2 * k + 2], expected[2 * k : 2 * k + 2])
    other = watched(init_seed=4)
    assert not torch.equal(other.before[1][2:4], method.before[1][2:4])


def test_outputs_differ_with_the_tasks_before_them() -> None:
    """Else classes in the same places of two orders would start alike."""
    one, other = watched(), watched(class_order="4,5,2,3,0,1")
    assert not torch.equal(one.before[1][2:4], other.before[1][2:4])


@pytest.mark.parametrize("carry", [False, True])
@pytest.mark.parametrize("head", ["linear", "convolution"])
def test_the_optimiser_trains_new_outputs(carry: bool, head: str) -> None:
    class Shapes(Watching):
        def weights(self) -> Tensor:
            weight: Tensor = self.model.head.linear.weight if head == "convolution" else self.model.head.weight.T  # type: ignore[assignment, union-attr, operator]
            return weight.detach().T.clone()

    runner = tiny_runner(stream_of(training={"carry_optimizer": carry}), Shapes, backbone={"head": head})
    runner.run()
    method: Any = runner.method
    for k in range(3):
        moved = (method.after[k] != method.before[k]).any(dim=1)
        assert moved[: 2 * k + 2].all()  # class-IL: all that were seen compete
        if not carry:
            assert not moved[2 * k + 2 :].any()


def test_a_carried_optimiser_meets_new_outputs_without_a_past() -> None:
    """Weight decay moves outputs before they arrive, and Adam remembers; what it remembers is gone when they are drawn."""
    seen: list[dict[str, Tensor]] = []
    runner: TaskRunner

    class Looking(Method):
        def before_task(self, view: TaskView) -> None:
            if view.position:
                assert runner.optimizer is not None
                seen.append({n: v.clone() for n, v in runner.optimizer.state[self.model.head.weight].items()})  # type: ignore[index]

    runner = tiny_runner(stream_of(training=DECAY | {"carry_optimizer": True}), Looking)
    runner.run()
    for k, state in enumerate(seen, start=1):
        for moment in ("exp_avg", "exp_avg_sq"):
            assert not state[moment][2 * k : 2 * k + 2].any()
            assert state[moment][: 2 * k].any(dim=1).all()


@pytest.mark.parametrize("carry", [False, True])
@pytest.mark.parametrize("method", [Method, BusyMethod])
def test_resuming_gives_the_same_to_the_bit(method: type[Method], carry: bool) -> None:
    def stream() -> TaskStream:
        return stream_of(training=DECAY | {"carry_optimizer": carry, "monitor": "validation-loss", "restore_best": True})

    kept = KeptCheckpoints()
    whole = tiny_runner(stream(), method).run(kept, keep=99)
    assert_same_run(tiny_runner(stream(), method).run(), whole)
    for learnt, prefix in enumerate(kept.saved, start=1):
        only = KeptCheckpoints()
        only.files[prefix] = kept.files[prefix]
        resumed = tiny_runner(stream(), method).run(only)
        assert_same_run(resumed, whole)
        assert resumed.trained_tasks == 3 - learnt


def test_label_sets_grow_too_and_domains_have_nothing_to_draw() -> None:
    growing, fixed = (tiny_runner(variant_stream("multi class-il", head=h)).run() for h in ("growing", "fixed"))
    assert growing.matrix[1] != growing.matrix[2]
    assert growing.curves[0] == fixed.curves[0]
    assert growing.curves[1] != fixed.curves[1]
    growing, fixed = (tiny_runner(variant_stream("domain-il", head=h)).run() for h in ("growing", "fixed"))
    assert_same_run(growing, fixed)


def test_a_head_that_cannot_grow_is_refused_before_anything_is_learnt() -> None:
    stream = stream_of()

    def build() -> Any:
        return gat(stream.n_features, 6, layers=2, width=2, heads=2, dropout=0.0, attention_dropout=0.0, head="convolution")

    with pytest.raises(NotApplicable, match="a GATConv head cannot initialise outputs one by one; expected 'fixed'"):
        TaskRunner(stream, Method, build, hyperparameters={}, training=stream.spec.training, init_seed=0, identity="tiny")
