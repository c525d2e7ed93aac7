"""Pseudo-labels: of which items, from what; condensed items that hear them; and a model from scratch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cglsuite_methods.rehearsal.puma import class_means, confident, unlabelled
from tiny_links import link_variant
from tiny_streams import catalogue_runner, tiny_data, tiny_stream

from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Batch

pytestmark = pytest.mark.plugins


def test_confident_items_by_hand() -> None:
    """Softmax outputs 3/4 and 1/4, 1/2 and 1/2, 1/10 and 9/10; the last output would win but does not compete."""
    outputs = torch.tensor([[0.75, 0.25, 9.0], [0.5, 0.5, 9.0], [0.1, 0.9, 9.0]]).log()
    allowed = torch.tensor([True, True, False])
    chosen, labels = confident(outputs, allowed, 0.7)
    assert (chosen.tolist(), labels.tolist()) == ([0, 2], [0, 1])
    assert confident(outputs, allowed, 0.95)[0].tolist() == []
    assert confident(outputs, allowed, 0.0)[0].tolist() == [0, 1, 2]


def test_class_means_by_hand() -> None:
    """Of rows (3, 4), (0, 2) and (5, -1), whose negative part vanishes: (0.6, 0.8), (0, 1) and (1, 0)."""
    averages = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    rows = torch.tensor([[3.0, 4.0], [0.0, 2.0], [5.0, -1.0]])
    torch.testing.assert_close(class_means(averages, rows, torch.eye(2)), torch.tensor([[0.3, 0.9], [1.0, 0.0]]))


def test_unlabelled_items_are_all_but_the_training_nodes() -> None:
    view = tiny_stream(tiny_data(per_class=15), setting="class-il").view(1)
    query = unlabelled(view)
    assert query.y is None
    both = torch.cat([query.ids, view.train.ids])
    assert both.sort().values.tolist() == list(range(view.graph.n_nodes))
    assert set(view.validation.ids.tolist()) <= set(query.ids.tolist())


def test_unlabelled_pairs_are_those_of_validation() -> None:
    view = link_variant("LC class-il", training={"epochs": 1}).view(0)
    query = unlabelled(view)
    assert query.y is None
    assert torch.equal(query.ids, view.validation.ids)


def made(setting: str = "class-il", epochs: int = 4, **hyperparameters: Any) -> TaskRunner:
    stream = tiny_stream(tiny_data(per_class=15), setting=setting, training={"epochs": epochs, "lr": 0.05})
    given = {"per_task": 6, "encoders": 4, "steps": 5, "width": 32, "feature_lr": 0.05} | hyperparameters
    return catalogue_runner(stream, "puma", given)


@pytest.mark.parametrize(("setting", "answer", "expected"), [("class-il", 3, 3), ("class-il", 1, None), ("task-il", 1, 2)])
def test_pseudo_labels_are_the_models_answers_and_nothing_else(setting: str, answer: int, expected: int | None) -> None:
    """Whatever the items are: a model that answers one class labels all of them so. Items of another task's class are left out; where the
    task is known another class cannot be answered."""
    runner = made(setting)
    method: Any = runner.method
    for k in range(2):
        method.problem.arrive(runner.stream.view(k))
    view = runner.stream.view(1)
    assert view.classes.tolist() == [2, 3]
    asked = list[Batch]()

    def answered(query: Batch) -> torch.Tensor:
        asked.append(query)
        return torch.zeros(len(query), 6).index_fill(1, torch.tensor([answer]), 5.0)

    method.forward = answered
    found, labels = method._pseudo_labelled(view)
    assert [query.y for query in (*asked, found)] == [None, None]
    assert not set(found.ids.tolist()) & set(view.train.ids.tolist())
    if expected is None:
        assert len(found) == len(labels) == 0
    else:
        assert labels.tolist() == [expected] * (view.graph.n_nodes - len(view.train))


def test_unlabelled_items_change_what_is_condensed() -> None:
    """And are all left out where confidence is asked that nobody has: then there is one condensation and one training."""
    with_them, without = made("task-il"), made("task-il", confidence=1.0)
    lengths = [[len(curve["loss"]) for curve in runner.run().curves] for runner in (with_them, without)]
    assert lengths == [[48, 48, 48], [24, 24, 24]]
    a: Any = with_them.method.memory["task-0"]
    b: Any = without.method.memory["task-0"]
    assert torch.equal(a.ids, b.ids)
    assert not torch.allclose(a.x, b.x, atol=1e-3)


def test_condensed_items_keep_their_length_and_come_nearer() -> None:
    runner = made(encoders=10, epochs=2)
    result = runner.run()
    assert result.memory["items"] == 18
    assert result.memory["bytes"] == 18 * (4 * 8 + 8 + 8 + 8)  # features, id, task and label
    for k, items in enumerate(runner.method.memory.all()):
        x: Any = items.x
        assert items.tasks.tolist() == [k] * 6
        real = runner.stream.view(k).graph.dense[items.ids]
        torch.testing.assert_close(x.norm(dim=1), real.norm(dim=1))
        assert not torch.allclose(x, real, atol=1e-2)
        distances = result.curves[k]["loss"][52:102]
        assert sum(distances[-10:]) < 0.9 * sum(distances[:10])


def test_models_are_new_and_learn_from_condensed_items_alone() -> None:
    """Two models per task; every step is on items without edges."""
    runner = made("task-il")
    method: Any = runner.method
    models, trained = list[Any](), list[tuple[int, int]]()
    of_loss, forward = method.loss, method.forward

    def noted_loss(batch: Batch) -> Any:
        if not any(m is method.model for m in models):
            models.append(method.model)
        method.forward = noted_forward
        loss = of_loss(batch)
        method.forward = forward
        return loss

    def noted_forward(batch: Batch) -> Any:
        trained.append((len(batch), batch.graph.n_edges))
        return forward(batch)

    method.loss = noted_loss
    runner.run()
    assert len(models) == 6
    assert set(trained) == {(6, 0), (12, 0), (18, 0)}


def test_a_budget_is_shared_by_the_tasks() -> None:
    stream = tiny_stream(tiny_data(per_class=15), setting="class-il", training={"epochs": 2, "lr": 0.05}, memory_budget=12)
    runner = catalogue_runner(stream, "puma", {"encoders": 2, "steps": 2, "width": 8})
    assert runner.run().memory["items"] == 12
    assert [len(items) for items in runner.method.memory.all()] == [4, 4, 4]
