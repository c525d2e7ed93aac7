"""Items that are learnt by their gradients: how many, from what, at which rate; and a loss that knows how rare a class is."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from cglsuite_methods.rehearsal.condensed import adam_step, equal_places, optimised, propagated
from cglsuite_methods.rehearsal.delome import class_gradients, log_prior
from tiny_streams import catalogue_runner, tiny_data, tiny_stream
from torch import nn
from torch.nn import functional

from cglsuite.base.errors import BudgetError, NotApplicable
from cglsuite.graphs import MessageGraph
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Batch

pytestmark = pytest.mark.plugins
NO_EDGES = torch.empty(2, 0, dtype=torch.int64)


def labelled(y: list[int], n_outputs: int, allowed: list[int] | None = None) -> Batch:
    competing = torch.ones(n_outputs, dtype=torch.bool)
    if allowed is not None:
        competing = torch.zeros(n_outputs, dtype=torch.bool).index_fill(0, torch.tensor(allowed), True)
    graph = MessageGraph(torch.zeros(len(y), 1), NO_EDGES)
    return Batch(graph=graph, ids=torch.arange(len(y)), y=torch.tensor(y), allowed=competing)


@pytest.mark.parametrize(
    ("counts", "room", "most", "expected"),
    [
        ([9, 9], None, 4, [4, 4]),
        ([9, 2], None, 4, [4, 2]),
        ([9, 2, 9], 9, 60, [4, 2, 3]),  # what a class lacks goes to the others, the rest to the first of equal size
        ([3, 5, 4], 2, 60, [0, 1, 1]),  # fewer places than classes
        ([3, 5], 99, 60, [3, 5]),
    ],
)
def test_classes_share_the_places_equally(counts: list[int], room: int | None, most: int, expected: list[int]) -> None:
    assert equal_places(counts, room, most) == expected


@pytest.mark.parametrize("sparse", [False, True])
def test_propagation_of_a_graph_of_three_nodes(sparse: bool) -> None:
    """Nodes 0 and 1 hear each other, so S is 1/2 everywhere between them; node 2 is alone."""
    x = torch.tensor([[2.0, 0.0], [4.0, 2.0], [0.0, 5.0]])
    features: Any = x
    if sparse:
        import scipy.sparse

        features = scipy.sparse.csr_matrix(x.numpy())
    graph = MessageGraph(features, torch.tensor([[0, 1], [1, 0]]))
    nodes = Batch(graph=graph, ids=torch.tensor([2, 0]), allowed=torch.ones(1, dtype=torch.bool))
    assert propagated(nodes, 0).tolist() == [[0.0, 5.0], [2.0, 0.0]]
    torch.testing.assert_close(propagated(nodes, 2), torch.tensor([[0.0, 5.0], [3.0, 1.0]]))
    pairs = Batch(graph=graph, ids=torch.tensor([[2, 0]]), allowed=nodes.allowed)
    torch.testing.assert_close(propagated(pairs, 1), torch.tensor([[0.0, 5.0, 3.0, 1.0]]))


def test_gradients_of_a_linear_model_by_hand() -> None:
    """With W = 0 both outputs are 1/2, so a class's gradient is its mean feature times (1/2 - onehot)."""
    x = torch.tensor([[2.0], [6.0], [10.0]])
    (found,) = class_gradients(x, labelled([0, 0, 1], 2), [torch.tensor([0, 1]), torch.tensor([2])], [torch.zeros(1, 2)])
    torch.testing.assert_close(found, torch.tensor([[[-2.0, 2.0]], [[5.0, -5.0]]]))


@pytest.mark.parametrize("hidden", [0, 5])
def test_gradients_are_those_of_automatic_differentiation(hidden: int) -> None:
    """Of each class's mean cross-entropy among the outputs that compete."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(7, 3, generator=generator)
    batch = labelled([0, 2, 2, 0, 3, 3, 3], 4, [0, 2, 3])
    widths = [3, *([hidden] if hidden else []), 4]
    weights = [torch.randn(a, b, generator=generator).requires_grad_() for a, b in pairwise(widths)]
    y: Any = batch.y
    members = [(y == c).nonzero().flatten() for c in (0, 2, 3)]
    found = class_gradients(x, batch, members, weights)
    for k, own in enumerate(members):
        outputs = functional.relu(x[own] @ weights[0]) @ weights[1] if hidden else x[own] @ weights[0]
        loss = functional.cross_entropy(outputs.masked_fill(~batch.allowed, -torch.inf), y[own])
        for given, expected in zip(found, torch.autograd.grad(loss, weights), strict=True):
            torch.testing.assert_close(given[k], expected)


def test_matched_gradients_of_a_linear_model_are_the_class_mean() -> None:
    """With W = 0 the gradient says nothing but the mean, and one item that matches it is the mean."""
    real, x = torch.tensor([[1.0, 3.0], [3.0, 5.0]]), nn.Parameter(torch.tensor([[1.0, 3.0]]))
    zero, own = [torch.zeros(2, 2)], [torch.tensor([0, 1])]
    (wanted,) = class_gradients(real, labelled([1, 1], 2), own, zero)

    def distance(_: int) -> torch.Tensor:
        return (wanted - class_gradients(x, labelled([1], 2), [torch.tensor([0])], zero)[0]).square().sum()

    phase = optimised(x, distance, lr=0.05, steps=300, epochs=300)
    for _ in range(300):
        phase.loss(labelled([1], 2)).backward()  # type: ignore[misc]
    torch.testing.assert_close(x.detach(), torch.tensor([[2.0, 4.0]]), atol=1e-3, rtol=0.0)


def test_steps_are_counted_and_have_their_own_rate() -> None:
    """A first step of Adam has the length of the rate; no gradient is left to the phase's optimiser, and no step is made too many."""
    x = nn.Parameter(torch.zeros(2))
    phase = optimised(x, lambda taken: (taken + 1.0) * x.sum(), lr=0.125, steps=2, epochs=4)
    assert phase.share == 0.5
    losses = []
    for _ in range(4):
        loss: Any = phase.loss(None)  # type: ignore[misc, arg-type]
        losses.append(loss.item())
        loss.backward()
        assert x.grad is None
        if len(losses) == 1:
            torch.testing.assert_close(x.detach(), torch.tensor([-0.125, -0.125]))
            assert not phase.stop(0, {})  # type: ignore[misc]
    after = x.detach().clone()
    assert losses == pytest.approx([0.0, -0.5, 0.0, 0.0])
    assert phase.stop(0, {})  # type: ignore[misc]
    assert after[0].item() == pytest.approx(-0.25, abs=0.01)


def test_steps_are_those_of_adam() -> None:
    generator = torch.Generator().manual_seed(0)
    x = nn.Parameter(torch.randn(4, 3, generator=generator))
    own, mean, square = x.detach().clone(), torch.zeros(4, 3), torch.zeros(4, 3)
    optimizer = torch.optim.Adam([x], lr=0.03)
    for t in range(1, 20):
        x.grad = torch.randn(4, 3, generator=generator) * 10.0 ** (t % 5 - 3)
        adam_step(own, x.grad, mean, square, lr=0.03, t=t)
        optimizer.step()
        torch.testing.assert_close(own, x.detach())


def test_moments_start_anew() -> None:
    """With a restart after every step each step has the length of the rate, whatever came before."""
    x = nn.Parameter(torch.zeros(1))
    phase = optimised(x, lambda taken: (100.0 if taken == 0 else -1.0) * x.sum(), lr=0.5, steps=2, epochs=2, restart=1)
    for _ in range(2):
        phase.loss(None).backward()  # type: ignore[misc, arg-type]
    torch.testing.assert_close(x.detach(), torch.zeros(1))


def test_log_prior_by_hand() -> None:
    found = log_prior(torch.tensor([6, 2, 0]))
    assert found.tolist() == pytest.approx([math.log(0.75), math.log(0.25), math.log(1e-12)])


def made(setting: str = "class-il", hyperparameters: dict[str, Any] | None = None, **changes: Any) -> TaskRunner:
    given = {"per_class": 3, "draws": 40, "feature_lr": 0.01, "hidden": 8} | (hyperparameters or {})
    stream = tiny_stream(tiny_data(per_class=15), setting=setting, training={"epochs": 4, "lr": 0.05}, **changes)
    return catalogue_runner(stream, "delome", given)


def test_the_loss_has_the_prior_of_task_and_memory_by_hand() -> None:
    """Outputs of zero: an item of class c costs -log of c's share among all classes so far; the earlier task counts as much as this one."""
    runner = made()
    runner.run()
    method: Any = runner.method
    view = runner.stream.view(1)
    kept = method.memory["task-0"]
    for shelf in ("task-1", "task-2"):
        method.memory.drop(shelf)
    method.problem.arrive(view)
    method.before_task(view)
    method.forward = lambda batch: torch.zeros(len(batch), method.problem.n_outputs)
    y: Any = view.train.y
    everything = torch.cat([y, kept.y])
    shares = torch.bincount(everything, minlength=method.problem.n_outputs) / len(everything)
    expected = -shares[y].log().mean() - shares[kept.y].log().mean()
    torch.testing.assert_close(method.loss(view.train), expected)


def test_memory_is_metered_and_learnt_by_the_stated_steps() -> None:
    runner = made()
    result = runner.run()
    assert result.memory["items"] == 18
    assert result.memory["bytes"] == 18 * (4 * 8 + 8 + 8 + 8)  # features, id, task and label
    assert [len(curve["loss"]) for curve in result.curves] == [44, 44, 44]
    for curve in result.curves:
        assert sum(curve["loss"][30:40]) < sum(curve["loss"][:10])
    for k, items in enumerate(runner.method.memory.all()):
        x: Any = items.x
        assert items.tasks.tolist() == [k] * 6
        assert torch.bincount(items.y).max() == 3
        moved = (x - runner.stream.view(k).graph.dense[items.ids]).abs().amax(dim=1)
        assert (moved > 0).all()
        assert (moved <= 40 * 0.01).all()


def test_without_a_rate_real_items_are_replayed() -> None:
    runner = made(hyperparameters={"feature_lr": 0.0})
    runner.run()
    items: Any = runner.method.memory["task-1"]
    assert torch.equal(items.x, runner.stream.view(1).graph.dense[items.ids])


def test_mini_batches_change_the_number_of_epochs_only() -> None:
    """Of two batches per epoch each is a step; as many steps are made as without."""
    runner = made(hyperparameters={"draws": 5})
    stream = tiny_stream(tiny_data(per_class=15), setting="class-il", training={"epochs": 4, "lr": 0.05, "batch_size": 12})
    batches = catalogue_runner(stream, "delome", {"per_class": 3, "draws": 5, "feature_lr": 0.01, "hidden": 8})
    whole, parts = runner.run(), batches.run()
    assert [len(curve["loss"]) for curve in whole.curves] == [9, 9, 9]
    assert len(parts.curves[0]["loss"]) < 9
    first: Any = runner.method.memory["task-0"].x
    torch.testing.assert_close(batches.method.memory["task-0"].x, first)


def test_a_budget_is_shared_by_tasks_and_classes() -> None:
    runner = made(memory_budget=13)
    assert runner.run().memory["items"] == 12
    assert [len(items) for items in runner.method.memory.all()] == [4, 4, 4]
    assert runner.method.memory["task-2"].y.unique(return_counts=True)[1].tolist() == [2, 2]
    with pytest.raises(BudgetError, match="is less than one for each of 3 tasks; expected at least 3"):
        made(memory_budget=2)


def test_items_with_several_labels_are_refused() -> None:
    stream = tiny_stream(tiny_data(multi_label=True), setting="task-il", labels="multi")
    for name in ("delome", "puma"):
        with pytest.raises(
            NotApplicable,
            match=f"{name} condenses class by class and needs exactly one label per item, but the items of this stream are multi-label",
        ):
            catalogue_runner(stream, name, {})
