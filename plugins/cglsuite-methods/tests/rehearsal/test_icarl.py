"""iCaRL: herding and the nearest mean by hand, what a loss consists of, and a memory that classes share."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
import torch
from cglsuite_methods.rehearsal.icarl import ICaRL, herded
from tiny_streams import catalogue_runner, node_numbers, tiny_data, tiny_runner, tiny_stream, variant_stream
from torch import Tensor
from torch.nn import functional

from cglsuite.base.errors import BudgetError, NotApplicable
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Batch, TaskView

pytestmark = pytest.mark.plugins


# --- herding ------------------------------------------------------------------------------------------------------------------------


def at(*degrees: float) -> Tensor:
    """Points of the unit circle."""
    angles = torch.tensor([math.radians(v) for v in degrees])
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def test_herding_by_hand() -> None:
    """The centre points to 0°, and 10° is nearest. With it -20° has its mean at -5°, 30° at 20°, 90° at 50°; then 30° at 7°, 90° at 23°."""
    points = at(90, -20, 10, 30)
    centre = torch.tensor([3.0, 0.0])  # of any length
    assert herded(points, centre, 4).tolist() == [2, 1, 3, 0]
    assert herded(points, centre, 2).tolist() == [2, 1]
    assert herded(points, centre, 9).tolist() == [2, 1, 3, 0]
    assert herded(points, centre, 0).tolist() == []


def test_ties_go_to_the_lower_position_and_nothing_is_chosen_twice() -> None:
    assert herded(at(0, 0, 0), torch.tensor([1.0, 0.0]), 3).tolist() == [0, 1, 2]
    assert herded(torch.zeros(2, 2), torch.zeros(2), 2).tolist() == [0, 1]


def test_herding_equals_brute_force() -> None:
    """Against the definition: the candidate whose mean with those chosen, scaled to unit length, is nearest to the centre."""
    for seed in range(20):
        points = functional.normalize(torch.randn(15, 4, generator=torch.Generator().manual_seed(seed)).double(), dim=1)
        centre = functional.normalize(points.mean(dim=0), dim=0)
        chosen: list[int] = []
        for _ in range(6):
            gaps = {
                i: float((centre - functional.normalize(points[[*chosen, i]].mean(dim=0), dim=0)).norm())
                for i in range(15)
                if i not in chosen
            }
            chosen.append(min(gaps, key=lambda i: gaps[i]))
        assert herded(points, points.mean(dim=0), 6).tolist() == chosen


# --- the memory ---------------------------------------------------------------------------------------------------------------------


def made(memory: int = 13, **changes: Any) -> TaskRunner:
    asked = {"setting": "class-il", "edge_policy": "full", "training": {"epochs": 3, "lr": 0.05}} | changes
    return catalogue_runner(tiny_stream(tiny_data(per_class=15), **asked), "icarl", {"memory": memory})


def numbers(runner: TaskRunner) -> dict[int, list[int]]:
    """The numbers of the exemplars in the order in which they are kept, by class."""
    out: dict[int, list[int]] = {}
    for c in range(6):
        if f"class-{c}" in runner.method.memory:
            x: Any = runner.method.memory[f"class-{c}"].x
            out[c] = [round(float(v) * 1024) for v in x[:, 0]]
    return out


def test_classes_share_the_memory_and_lose_their_last_exemplars() -> None:
    """Thirteen places: six, three and two per class; what stays is the beginning of what was there."""
    runner = made()
    seen = list[dict[int, list[int]]]()
    runner.on_task = lambda k: seen.append(numbers(runner)) if k else None
    result = runner.run()
    assert [{len(own) for own in kept.values()} for kept in seen] == [{6}, {3}, {2}]
    assert [sorted(kept) for kept in seen] == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4, 5]]
    for before, after in pairwise(seen):
        for c, own in before.items():
            assert after[c] == own[: len(after[c])]
    assert result.memory["items"] == 12
    y = tiny_data(per_class=15).y
    assert all({int(y[n]) for n in own} == {c} for c, own in seen[-1].items())


def test_exemplars_are_those_that_herding_chooses_in_the_graph_of_the_task() -> None:
    chosen = dict[int, list[int]]()

    class Watched(ICaRL):
        def after_task(self, view: TaskView) -> None:
            with torch.no_grad():
                hidden = functional.normalize(self.model.encode(view.graph), dim=1)
            y = self.problem.labels(view.train)
            for c in view.classes.tolist():
                ids = view.train.ids[y == c]
                order = herded(hidden[ids], hidden[ids].mean(dim=0), 2)
                chosen[c] = node_numbers(view.graph, ids[order])
            super().after_task(view)

    stream = tiny_stream(tiny_data(per_class=15), setting="class-il", edge_policy="full", training={"epochs": 3, "lr": 0.05})
    runner = tiny_runner(stream, Watched, {"memory": 13, "neighbourhood": False})
    runner.run()
    assert numbers(runner) == chosen


def test_a_class_that_returns_stays_one_class() -> None:
    """Its exemplars come from all tasks, and count as much as the items that they stand for."""
    stream = variant_stream("domain-il", data={"per_class": 30}, training={"epochs": 2, "lr": 0.05})
    runner = catalogue_runner(stream, "icarl", {"memory": 60})
    seen = list[Any]()
    runner.on_task = lambda k: seen.append((sorted(runner.method.memory), runner.method.memory["class-0"].tasks.tolist())) if k else None
    runner.run()
    method: Any = runner.method
    assert all(shelves == [f"class-{c}" for c in range(6)] for shelves, _ in seen)
    assert set(seen[0][1]) == {0}
    assert len(set(seen[-1][1])) > 1
    assert all(len(tasks) <= 10 for _, tasks in seen)
    every = torch.cat([runner.problem.labels(stream.view(k).train) for k in range(3)])
    assert method.counts.tolist() == torch.bincount(every, minlength=6).tolist()


def test_a_budget_is_the_capacity() -> None:
    assert made(memory=200, memory_budget=9).run().memory["items"] == 8  # one of each of six classes; four of two before
    with pytest.raises(BudgetError, match="scenario.memory_budget = 5 is less than one exemplar for each of 6 classes"):
        made(memory_budget=5)
    with pytest.raises(BudgetError, match=r"method\.memory = 5"):
        made(memory=5)


def test_several_labels_are_refused() -> None:
    with pytest.raises(
        NotApplicable,
        match="icarl keeps exemplars of classes and needs exactly one label per item, but the items of this stream are multi-label",
    ):
        catalogue_runner(variant_stream("multi class-il"), "icarl")


# --- answers and the loss -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbourhood", [False, True])
def test_answers_are_the_nearest_means_of_exemplars(neighbourhood: bool) -> None:
    """In the current graph or without edges, of unit length, under the model as it is after the task."""
    stream = tiny_stream(tiny_data(per_class=15), setting="class-il", edge_policy="full", training={"epochs": 3, "lr": 0.05})
    runner = catalogue_runner(stream, "icarl", {"memory": 18, "neighbourhood": neighbourhood})
    runner.run()
    method, view = runner.method, runner.stream.view(2)
    method.model.eval()
    with torch.no_grad():
        hidden = functional.normalize(method.model.encode(view.graph), dim=1)
        means = []
        for c in range(6):
            items = method.memory[f"class-{c}"]
            assert len(items) == 3
            kept = runner.problem.recall(items, view)
            assert (kept.graph is view.graph) == neighbourhood
            own = functional.normalize(method.model.encode(kept.graph)[kept.ids], dim=1)
            means.append(functional.normalize(own.mean(dim=0), dim=0))
        outputs = method.predict(Batch(graph=view.graph, ids=view.train.ids, allowed=view.seen_outputs))
    expected = -torch.cdist(hidden[view.train.ids], torch.stack(means)).square()
    torch.testing.assert_close(outputs, expected, rtol=1e-3, atol=1e-5)


def moment(setting: str, balanced: bool = False) -> tuple[ICaRL, TaskRunner, Batch]:
    """The method in evaluation mode before the second of three tasks, and the batch on which it trains."""
    training = {"epochs": 3, "lr": 0.05, "class_balanced": balanced}
    runner = made(memory=12, setting=setting, training=training)
    method = runner.method
    assert isinstance(method, ICaRL)
    first, second = runner.stream.view(0), runner.stream.view(1)
    runner.problem.arrive(first)
    method.model.eval()
    method.before_task(first)
    method.after_task(first)
    with torch.no_grad():
        for p in method.model.parameters():  # the teacher is another model
            p.add_(0.1)
    runner.problem.arrive(second)
    method.before_task(second)
    return method, runner, runner.problem.batch(method.training_views(second))


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("setting", ["class-il", "task-il"])
def test_the_loss_by_hand(setting: str, balanced: bool) -> None:
    """New outputs are learnt from labels, old ones from the old model, by all items: twelve exemplars and eighteen new ones."""
    method, runner, batch = moment(setting, balanced)
    y = runner.problem.labels(batch)
    assert Counter(y.tolist()) == {0: 6, 1: 6, 2: 9, 3: 9}
    assert method.teacher is not None
    with torch.no_grad():
        z, old = method.forward(batch).sigmoid().double(), runner.problem.forward(method.teacher, batch).sigmoid().double()
        found = method.loss(batch)
    losses = []
    for i, c in enumerate(y.tolist()):
        new = (2, 3) if setting == "class-il" or c in (2, 3) else ()  # in task-IL a past task's item has no say in the others' outputs
        learnt = [math.log(z[i, j] if j == c else 1 - z[i, j]) for j in new]
        distilled = [old[i, j] * math.log(z[i, j]) + (1 - old[i, j]) * math.log(1 - z[i, j]) for j in (0, 1)]
        losses.append(-sum(float(v) for v in (*learnt, *distilled)))
    weights = [1 / (6 if c < 2 else 9) if balanced else 1.0 for c in y.tolist()]
    expected: float = sum(w * v for w, v in zip(weights, losses, strict=True)) / sum(weights)
    assert float(found) == pytest.approx(expected, rel=1e-4)


def test_classes_that_return_are_learnt_from_labels() -> None:
    runner = catalogue_runner(variant_stream("domain-il"), "icarl", {"memory": 12})
    method: Any = runner.method
    for k in (0, 1):
        view = runner.stream.view(k)
        runner.problem.arrive(view)
        method.model.eval()
        method.before_task(view)
        assert method._learnt.all()
        assert not method._distilled.any()
        method.after_task(view)


def test_it_forgets_less_than_fine_tuning() -> None:
    stream = tiny_stream(tiny_data(per_class=30), setting="class-il", edge_policy="full", training={"epochs": 40, "lr": 0.02})
    options: dict[str, Any] = {"backbone": {"dropout": 0.0, "width": 16}}
    mine = catalogue_runner(stream, "icarl", {"memory": 54, "neighbourhood": True}, **options).run().matrix
    bare = catalogue_runner(stream, "bare", **options).run().matrix
    assert mine[3][0] > bare[3][0] + 0.2
