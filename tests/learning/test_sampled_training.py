"""Runs that train on mini-batches with sampled neighbours: the same bits every time, resumed or not, with every way to use a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tiny_streams import BusyMethod, KeptCheckpoints, assert_same_run, tiny_data, tiny_runner, tiny_stream, without_steps
from torch import Tensor

from cglsuite import Method
from cglsuite.base.errors import SpecError
from cglsuite.streams import Batch, TaskStream, TaskView

SAMPLED = {"batch_size": 5, "fan_out": (2, 3)}


def sampled(policy: str = "inter-task", **changes: Any) -> TaskStream:
    return tiny_stream(edge_policy=policy, training=SAMPLED | changes)


class Noting(Method):
    """Notes what it is shown."""

    def setup(self) -> None:
        self.shown: list[tuple[list[int], list[list[int]]]] = []

    def loss(self, batch: Batch) -> Tensor:
        self.shown.append((batch.ids.tolist(), batch.graph.edge_index.tolist()))
        return super().loss(batch)


class Wasteful(Noting):
    """Draws from every global source at every step."""

    def loss(self, batch: Batch) -> Tensor:
        torch.rand(7)
        return super().loss(batch)


class Recalling(Method):
    """Replays nodes by reference, in the whole graph of the view, and distils from logits taken once per task."""

    def setup(self) -> None:
        self.replay: Batch | None = None

    def before_task(self, view: TaskView) -> None:
        items = self.memory.all()
        self.replay = self.problem.recall(self.problem.join(items), view) if items else None

    def loss(self, batch: Batch) -> Tensor:
        loss = super().loss(batch)
        if self.replay is None:
            return loss
        assert self.replay.graph is not batch.graph
        return loss + self.problem.loss(self.forward(self.replay), self.replay)

    def after_task(self, view: TaskView) -> None:
        batch = self.problem.batch([view])
        self.memory.put(f"task-{view.position}", self.problem.sample(batch, torch.tensor([0, 3]), "reference"))


class All(Method):
    """Learns all tasks so far at once."""

    def training_views(self, view: TaskView) -> tuple[TaskView, ...]:
        return (*view.past, view)


def test_every_epoch_makes_all_steps() -> None:
    runner = tiny_runner(sampled(epochs=3), Noting)
    result = runner.run()
    assert [len(ids) for ids, _ in runner.method.shown] == [5, 5, 2] * 3 * 3  # type: ignore[attr-defined]
    assert [len(c["loss"]) for c in result.curves] == [3, 3, 3]


def test_the_same_seed_gives_the_same_run() -> None:
    one, again, other = (tiny_runner(sampled(), BusyMethod, init_seed=s).run() for s in (1, 1, 2))
    assert_same_run(one, again)
    assert one.fingerprints != other.fingerprints


def test_sampling_makes_a_difference() -> None:
    one, other = tiny_runner(sampled()).run(), tiny_runner(sampled(fan_out=())).run()
    assert one.fingerprints != other.fingerprints


def test_all_methods_meet_the_same_batches() -> None:
    runners = [tiny_runner(sampled(), method) for method in (Noting, Wasteful)]
    for runner in runners:
        runner.run()
    assert runners[0].method.shown == runners[1].method.shown  # type: ignore[attr-defined]


@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
def test_resumed_runs_are_the_same(policy: str) -> None:
    def stopped(after: int) -> Callable[[int], None]:
        def on_task(learnt: int) -> None:
            if learnt == after:
                raise KeyboardInterrupt

        return on_task

    whole = tiny_runner(sampled(policy), BusyMethod).run()
    for after in (1, 2):
        kept = KeptCheckpoints()
        with pytest.raises(KeyboardInterrupt):
            tiny_runner(sampled(policy), BusyMethod, on_task=stopped(after)).run(kept)
        resumed = tiny_runner(sampled(policy), BusyMethod).run(kept)
        assert resumed.resumed_from_task == after
        assert_same_run(resumed, whole)


@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
@pytest.mark.parametrize("sparse", [False, True])
def test_joint_training_on_mini_batches(policy: str, sparse: bool) -> None:
    stream = tiny_stream(tiny_data(sparse=sparse), edge_policy=policy, training=SAMPLED | {"epochs": 2, "monitor": "validation-loss"})
    result = tiny_runner(stream, All, past_views=True).run()
    assert [len(c["monitor"]) for c in result.curves] == [2, 2, 2]


@pytest.mark.parametrize("policy", ["inter-task", "full"])
def test_memory_by_reference_is_read_in_the_whole_graph(policy: str) -> None:
    result = tiny_runner(sampled(policy), Recalling).run()
    assert result.memory["items"] == 6


def test_predictions_take_the_whole_graph() -> None:
    """With no step to take, sampled and full-batch training leave the same model, and it must score the same."""
    one, other = (tiny_runner(without_steps(tiny_stream(training=more))).run() for more in ({}, SAMPLED))
    assert_same_run(one, other)


def test_a_fan_out_must_fit_the_backbone() -> None:
    with pytest.raises(SpecError, match=r"training.fan_out = \(2, 3\): the backbone passes messages over 3 hops; expected 3 numbers"):
        tiny_runner(sampled(), backbone={"layers": 3})
    tiny_runner(sampled(fan_out=(2, 2, 3)), backbone={"layers": 3})
    tiny_runner(sampled(), backbone={"layers": 2, "head": "convolution"})
