"""Joint training: fresh weights for every task, and all items so far, under every edge policy."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cglsuite_methods.baselines.joint import Joint
from tiny_streams import node_numbers, tiny_data, tiny_runner, tiny_stream
from torch import Tensor

from cglsuite import Method
from cglsuite.graphs.splits.partition import per_class_split
from cglsuite.streams import Batch, TaskView

POLICIES = ("none", "inter-task", "full")
DATA = tiny_data()
SPLIT = per_class_split(DATA.y, torch.arange(6), (0.6, 0.2, 0.2), 0)


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_task_is_learnt_with_all_items_so_far(policy: str, setting: str) -> None:
    seen: list[list[int]] = []
    outputs: list[list[list[int]]] = []

    class Watched(Joint):
        def loss(self, batch: Batch) -> Any:
            seen.append(sorted(node_numbers(batch.graph, batch.ids)))
            allowed = batch.allowed if batch.allowed.dim() == 2 else batch.allowed.expand(len(batch), -1)
            outputs.append([row.nonzero().flatten().tolist() for row in allowed])
            assert batch.y is not None
            assert batch.y.tolist() == DATA.y[node_numbers(batch.graph, batch.ids)].tolist()
            return super().loss(batch)

    tiny_runner(tiny_stream(DATA, edge_policy=policy, setting=setting, training={"epochs": 1}), Watched, past_views=True).run()
    assert len(seen) == 3  # one full batch a task
    for k in range(3):
        expected = [n for n in range(DATA.n_nodes) if int(DATA.y[n]) < 2 * (k + 1) and int(SPLIT[n]) == 0]
        assert seen[k] == expected
        if setting == "class-il":
            assert outputs[k] == [list(range(2 * (k + 1)))] * len(expected)
        else:
            assert sorted(outputs[k]) == sorted([int(DATA.y[n]) // 2 * 2, int(DATA.y[n]) // 2 * 2 + 1] for n in expected)


@pytest.mark.parametrize("policy", POLICIES)
def test_weights_and_optimiser_are_fresh_for_every_task(policy: str) -> None:
    """The model of task 3 is what training on the union from new weights gives: nothing of tasks 1 and 2 is left in it."""
    starts: list[list[torch.Tensor]] = []
    optimisers: list[Any] = []

    class Watched(Joint):
        def before_epoch(self, epoch: int) -> None:
            if epoch == 0:
                starts.append([v.clone() for v in self.model.state_dict().values()])

        def after_task(self, view: TaskView) -> None:
            optimisers.append(runner.optimizer)

    runner = tiny_runner(tiny_stream(DATA, edge_policy=policy, training={"carry_optimizer": True}), Watched, past_views=True)
    runner.run()
    assert len(starts) == 3
    names = list(runner.method.model.state_dict())
    for start in starts:
        values = dict(zip(names, start, strict=True))
        assert not values["body.0.bias"].any()  # as initialised
        assert not values["norms.0.running_mean"].any()
        assert float(values["norms.0.num_batches_tracked"]) == 0
    assert not torch.equal(starts[1][names.index("head.weight")], starts[0][names.index("head.weight")])
    assert not torch.equal(starts[2][names.index("head.weight")], starts[1][names.index("head.weight")])
    assert len({id(o) for o in optimisers}) == 3


def test_the_first_task_is_fine_tuning() -> None:
    joint = tiny_runner(tiny_stream(DATA), Joint, past_views=True).run()
    bare = tiny_runner(tiny_stream(DATA), Method).run()
    assert joint.curves[0] == bare.curves[0]
    assert joint.matrix[1] == bare.matrix[1]
    assert joint.fingerprints[0] == bare.fingerprints[0]


def test_joint_training_does_not_forget() -> None:
    stream = tiny_stream(tiny_data(per_class=30), training={"epochs": 60})
    options: dict[str, Any] = {"backbone": {"dropout": 0.0, "width": 16}}
    joint = tiny_runner(stream, Joint, past_views=True, **options).run().matrix
    bare = tiny_runner(stream, Method, **options).run().matrix
    assert sum(joint[3]) / 3 > sum(bare[3]) / 3 + 0.1
    assert joint[3][0] > 0.4 > bare[3][0]


def test_the_monitored_loss_is_of_all_tasks_so_far() -> None:
    """Its validation items are those of every task that is trained on."""
    counts: list[int] = []
    stream = tiny_stream(DATA, training={"epochs": 1, "monitor": "validation-loss"})
    original = stream.oracle.monitor
    stream.oracle.monitor = lambda tokens, criterion: (counts.append(len(tokens)), original(tokens, criterion))[1]  # type: ignore[method-assign]
    tiny_runner(stream, Joint, past_views=True).run()
    assert counts == [1, 2, 3]


def test_only_last_learns_once_and_ends_as_every_prefix_does() -> None:
    stream = {"setting": "class-il", "training": {"epochs": 3}}
    whole = tiny_runner(tiny_stream(DATA, **stream), Joint, past_views=True, hyperparameters={"only_last": False}).run()
    last = tiny_runner(tiny_stream(DATA, **stream), Joint, past_views=True, hyperparameters={"only_last": True}).run()
    assert [len(curve["loss"]) for curve in last.curves] == [0, 0, 3]
    assert all(v != v for row in last.matrix[1:-1] for v in row)  # NaN
    assert all(v == v for v in last.matrix[-1])
    assert len(whole.matrix) == len(last.matrix)


@pytest.mark.parametrize("warm", [False, True])
def test_a_warm_start_goes_on_with_the_model_of_the_tasks_before(warm: bool) -> None:
    """Before each task: the weights that the task before left, or others."""
    left: list[dict[str, Tensor]] = []
    kept: list[bool] = []

    class Watched(Joint):
        def before_task(self, view: TaskView) -> None:
            super().before_task(view)
            if left:
                kept.append(all(torch.equal(v, left[-1][n]) for n, v in self.model.state_dict().items()))

        def after_task(self, view: TaskView) -> None:
            super().after_task(view)
            left.append({n: v.clone() for n, v in self.model.state_dict().items()})

    stream = tiny_stream(DATA, setting="class-il", training={"epochs": 2})
    tiny_runner(stream, Watched, past_views=True, hyperparameters={"warm_start": warm}).run()
    assert kept == [warm] * 2
