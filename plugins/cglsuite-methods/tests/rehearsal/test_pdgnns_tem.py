"""PDGNNs-TEM: APPNP's features by hand, what is drawn into the memory and how often, and what each step replays."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cglsuite_methods.rehearsal.pdgnns_tem import coverage
from tiny_streams import catalogue_runner, tiny_data, tiny_stream, variant_stream
from torch import Tensor
from torch.nn import functional

from cglsuite.base.errors import BudgetError, NotApplicable
from cglsuite.graphs import MessageGraph
from cglsuite.learning.task_runner import TaskRunner

pytestmark = pytest.mark.plugins


def made(setting: str = "class-il", /, memory_budget: int | None = None, **hyperparameters: Any) -> TaskRunner:
    policy = {"class-il": "inter-task", "task-il": "none"}[setting]
    training = {"epochs": 3, "lr": 0.05}
    stream = tiny_stream(tiny_data(per_class=15), setting=setting, edge_policy=policy, training=training, memory_budget=memory_budget)
    return catalogue_runner(stream, "pdgnns-tem", {"per_class": 3} | hyperparameters)


def symmetric(graph: MessageGraph) -> Tensor:
    source, target = graph.edges_with_loops
    adjacency = torch.zeros(graph.n_nodes, graph.n_nodes)
    adjacency.index_put_((target, source), torch.ones(len(source)), accumulate=True)
    scale = adjacency.sum(dim=1).rsqrt()
    return scale[:, None] * adjacency * scale


def test_features_are_appnps() -> None:
    runner = made()
    method: Any = runner.method
    batch = runner.stream.view(0).train
    operator, x = symmetric(batch.graph), batch.graph.dense
    hidden = x
    for _ in range(2):
        hidden = 0.95 * operator @ hidden + 0.05 * x
    torch.testing.assert_close(method._rows(batch), hidden[batch.ids], rtol=1e-4, atol=1e-6)


def test_outputs_are_those_of_two_layers_without_biases() -> None:
    runner = made()
    runner.run()
    method: Any = runner.method
    batch = runner.stream.view(2).train
    first, second = method.weights
    assert (first.shape, second.shape) == ((runner.stream.n_features, 256), (256, 6))
    torch.testing.assert_close(method.forward(batch), functional.relu(method._rows(batch) @ first) @ second)


@pytest.mark.parametrize("sampler", ["degree", "coverage", "uniform"])
def test_rows_are_stored_class_by_class_without_replacement(sampler: str) -> None:
    runner = made(sampler=sampler)
    result = runner.run()
    assert result.memory["items"] == 3 * 6
    for k, items in enumerate(runner.method.memory.all()):
        view = runner.stream.view(k)
        assert torch.bincount(items.y, minlength=6).tolist() == [3 if c in view.classes.tolist() else 0 for c in range(6)]
        assert len(items.ids.unique()) == 6
        place = [(view.train.ids == i).nonzero().item() for i in items.ids]
        method: Any = runner.method
        method._known = None
        torch.testing.assert_close(items.x, method._rows(view.train)[place])
    width = runner.stream.n_features
    assert result.memory["bytes"] == 18 * (4 * width + 3 * 8)


def test_a_row_is_drawn_in_proportion_to_the_degree_with_its_self_loop() -> None:
    """Single draws from one class, many times: shares are those of degrees, within five standard errors."""
    runner = made(per_class=1)
    method: Any = runner.method
    view = runner.stream.view(0)
    y = runner.problem.labels(view.train)
    members = (y == view.classes[0]).nonzero().flatten()
    degrees = torch.bincount(view.graph.edges_with_loops[1], minlength=view.graph.n_nodes)[view.train.ids].float()
    assert torch.equal(method._weight(view.train), degrees)
    draws = torch.stack([method._chosen(view)[0] for _ in range(1000)])
    shares = (draws[:, None] == members).float().mean(dim=0)
    expected = degrees[members] / degrees[members].sum()
    assert ((shares - expected).abs() < 5 * (expected * (1 - expected) / 1000).sqrt()).all()


def test_coverage_counts_the_nodes_within_k_hops() -> None:
    """A path 0 → 1 → 2 → 3: a node hears from itself and from those up to two before it."""
    graph = MessageGraph(torch.eye(4), torch.tensor([[0, 1, 2], [1, 2, 3]]))
    assert coverage(graph, 1).tolist() == [1, 2, 2, 2]
    assert coverage(graph, 2).tolist() == [1, 2, 3, 3]


@pytest.mark.parametrize("as_authors", [False, True])
def test_in_class_il_all_rows_share_one_mean(as_authors: bool) -> None:
    """The current task's rows count from the second epoch, and only as the authors have it."""
    runner = made(as_authors=as_authors)
    method: Any = runner.method
    seen = list[tuple[int, int, float, float]]()
    loss = method.loss

    def watched(batch: Any) -> Tensor:
        found: Tensor = loss(batch)
        items = [*method._earlier, *([method._own] if as_authors and method._epoch else [])]
        rows = torch.cat([method._rows(batch), *(part.x for part in items)])
        y = torch.cat([batch.y, *(part.y for part in items)])
        outputs = functional.relu(rows @ method.weights[0]) @ method.weights[1]
        expected = functional.cross_entropy(outputs.masked_fill(~batch.allowed, -torch.inf), y)
        seen.append((method._epoch, len(y) - len(batch), float(found.detach()), float(expected.detach())))
        return found

    method.loss = watched
    runner.run()
    assert [n for _, n, _, _ in seen] == [6 * (k + (as_authors and epoch > 0)) for k in range(3) for epoch in range(3)]
    for _, _, found, expected in seen:
        assert found == pytest.approx(expected, rel=1e-5)


def test_in_task_il_every_task_has_its_own_mean_and_outputs() -> None:
    runner = made("task-il", as_authors=True)
    method: Any = runner.method
    found = list[tuple[float, float]]()
    loss = method.loss

    def watched(batch: Any) -> Tensor:
        value: Tensor = loss(batch)
        expected = 0.0
        parts = [(method._rows(batch), batch.y), *((items.x, items.y) for items in method._earlier)]
        for rows, y in parts:
            outputs = functional.relu(rows @ method.weights[0]) @ method.weights[1]
            own = method.problem.task_outputs[(method.problem.task_outputs[:, y[0]]).nonzero().flatten()[0]]
            expected += float(functional.cross_entropy(outputs.masked_fill(~own, -torch.inf), y).detach())
        found.append((float(value.detach()), expected))
        return value

    method.loss = watched
    runner.run()
    assert len(found) == 9
    for value, expected in found:
        assert value == pytest.approx(expected, rel=1e-5)


def test_tasks_have_equal_shares_of_a_budget() -> None:
    runner = made(memory_budget=12, per_class=400)
    assert runner.run().memory["items"] == 12
    assert [len(items) for items in runner.method.memory.all()] == [4, 4, 4]
    with pytest.raises(BudgetError, match="a budget of 2 items"):
        made(memory_budget=2)


def test_it_is_refused_where_items_have_several_labels() -> None:
    with pytest.raises(
        NotApplicable,
        match="pdgnns-tem stores rows class by class and needs exactly one label per item, but the items of this stream are multi-label",
    ):
        catalogue_runner(variant_stream("multi class-il"), "pdgnns-tem")
