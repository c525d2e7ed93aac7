"""Joint training with the compute of fine-tuning: how many passes over items it makes, over which, and from which weights."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from cglsuite_methods.baselines.joint_budgeted import JointBudgeted
from tiny_streams import node_numbers, tiny_data, tiny_runner, tiny_stream

from cglsuite.streams import Batch, TaskView

pytestmark = pytest.mark.plugins


def watched() -> tuple[type[JointBudgeted], list[dict[str, Any]]]:
    """The method, and per task the size of the task, the items of each epoch, and the weights before and after."""
    tasks: list[dict[str, Any]] = []

    class Watched(JointBudgeted):
        def before_task(self, view: TaskView) -> None:
            tasks.append({"own": len(view.train), "epochs": [], "before": self.weights()})

        def loss(self, batch: Batch) -> Any:
            tasks[-1]["epochs"].append(sorted(node_numbers(batch.graph, batch.ids)))
            return super().loss(batch)

        def after_task(self, view: TaskView) -> None:
            tasks[-1]["after"] = self.weights()

        def weights(self) -> list[torch.Tensor]:
            return [p.detach().clone() for p in self.model.parameters()]

    return Watched, tasks


@pytest.mark.parametrize("epochs", [7, 10])
def test_each_task_is_worth_its_own_passes_over_items(epochs: int) -> None:
    """E n_t passes for task t, up to one epoch on the union more."""
    method, tasks = watched()
    tiny_runner(tiny_stream(tiny_data(), training={"epochs": epochs}), method, past_views=True).run()
    so_far = 0
    for task in tasks:
        so_far += task["own"]
        passes = sum(len(items) for items in task["epochs"])
        assert all(len(items) == so_far for items in task["epochs"]), "an epoch is over all items so far"
        assert epochs * task["own"] <= passes < epochs * task["own"] + so_far
    assert [len(task["epochs"]) for task in tasks] == [epochs, math.ceil(epochs / 2), math.ceil(epochs / 3)]


def test_floating_point_adds_no_epoch() -> None:
    """A seventh of 7 epochs is one, for every number of tasks and epochs that divide."""
    from cglsuite_methods.baselines.joint_budgeted import _ROUNDING

    for tasks in range(1, 60):
        for each in range(1, 60):
            assert math.ceil(each * 3 / (each * 3 * tasks) * (1 - _ROUNDING) * (tasks * each)) == each


def test_it_goes_on_from_the_weights_of_the_task_before() -> None:
    method, tasks = watched()
    tiny_runner(tiny_stream(tiny_data(), training={"epochs": 4}), method, past_views=True).run()
    for before, after in pairwise(tasks):
        assert all(torch.equal(a, b) for a, b in zip(before["after"], after["before"], strict=True))
