"""The policy for batch norm's running statistics, alone and over a run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_streams import KeptCheckpoints, assert_same_run, tiny_graphs, tiny_runner, tiny_stream
from torch import nn

from cglsuite import Method
from cglsuite.base.errors import UnknownNameError
from cglsuite.learning.norms import NormStatistics
from cglsuite.streams import TaskView


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Sequential(nn.BatchNorm1d(3, track_running_stats=False)))


def passed(m: nn.Module, norms: NormStatistics, shift: float) -> torch.Tensor:
    norms.train(m)
    m(torch.randn(8, 2) + shift)
    return m[1].running_mean.clone()  # type: ignore[index, no-any-return]


def test_shared_statistics_follow_every_task() -> None:
    m, norms = model(), NormStatistics("shared")
    norms.begin(m)
    first = passed(m, norms, 0.0)
    norms.end(0, m)
    norms.begin(m)
    assert not torch.equal(passed(m, norms, 5.0), first)
    assert norms.state() == {}


def test_frozen_statistics_are_those_of_the_first_task_and_are_used_in_training() -> None:
    m, norms = model(), NormStatistics("frozen")
    norms.begin(m)
    first = passed(m, norms, 0.0)
    norms.begin(m)
    assert torch.equal(passed(m, norms, 5.0), first)
    assert m.training
    assert not m[1].training  # type: ignore[index]


def test_a_model_without_statistics_of_its_own_is_not_frozen() -> None:
    """Joint training draws a new model for every task."""
    norms, old = NormStatistics("frozen"), model()
    norms.begin(old)
    passed(old, norms, 0.0)
    new = model()
    norms.begin(new)
    assert bool(passed(new, norms, 5.0).any())


def test_per_task_statistics_begin_anew_and_are_kept() -> None:
    m, norms = model(), NormStatistics("per-task")
    norms.begin(m)
    first = passed(m, norms, 0.0)
    norms.end(0, m)
    norms.begin(m)
    assert not m[1].running_mean.any()  # type: ignore[index]
    latest = passed(m, norms, 5.0)
    norms.end(1, m)
    for position, expected in ((0, first), (1, latest), (7, latest)):
        with norms.used(position, m):
            assert torch.equal(m[1].running_mean, expected)  # type: ignore[index]
        assert torch.equal(m[1].running_mean, latest)  # type: ignore[index]
    again = NormStatistics("per-task")
    again.restore(norms.state(), torch.device("cpu"))
    with again.used(0, m):
        assert torch.equal(m[1].running_mean, first)  # type: ignore[index]


class Watches(Method):
    """Notes the first norm's running mean when a task begins and ends."""

    state = ("begun", "ended")

    def setup(self) -> None:
        """Nothing seen."""
        self.begun: list[Any] = []
        self.ended: list[Any] = []

    def _mean(self) -> Any:
        return next(m for m in self.model.modules() if isinstance(m, nn.BatchNorm1d)).running_mean.clone()  # type: ignore[union-attr]

    def before_epoch(self, epoch: int) -> None:
        """The first epoch is the beginning."""
        if epoch == 0:
            self.begun.append(self._mean())

    def after_task(self, view: TaskView) -> None:
        """The end."""
        self.ended.append(self._mean())


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize("policy", ["shared", "frozen", "per-task"])
def test_over_a_run(policy: str, setting: str, graphs: bool) -> None:
    stream = tiny_stream(tiny_graphs() if graphs else None, setting=setting, training={"norm_statistics": policy})
    kept = KeptCheckpoints()
    runner = tiny_runner(stream, Watches)
    whole = runner.run(kept)
    begun, ended = runner.method.begun, runner.method.ended  # type: ignore[attr-defined]
    assert torch.equal(ended[0], ended[2]) == (policy == "frozen")
    assert torch.equal(begun[1], ended[0]) == (policy in ("shared", "frozen"))
    assert bool(begun[2].any()) == (policy != "per-task")
    assert torch.equal(runner.method._mean(), ended[2])  # type: ignore[attr-defined]
    assert_same_run(tiny_runner(stream, Watches).run(kept), whole)


def test_queries_that_name_their_task_are_normalised_with_its_statistics() -> None:
    options: dict[str, Any] = {"setting": "task-il"}
    own = tiny_runner(tiny_stream(**options, training={"norm_statistics": "per-task"}))
    own.run()
    view = own.stream.view(0)
    shifted = [f for f in own.answers() if 0 in f[0].tasks]
    with torch.no_grad(), own.norms.used(0, own.method.model):
        for group, given in shifted:
            mine = group.query.tasks == 0
            expected = own.problem.decode(own.method.predict(group.query), group.query.allowed)
            assert torch.equal(given[mine], expected[mine])
    assert view.position == 0


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="norm_statistics"):
        tiny_stream(training={"norm_statistics": "frosen"})
