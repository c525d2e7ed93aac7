"""What a view holds under every edge policy, against brute force over the dataset: nodes, edges, labels, outputs."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from tiny_streams import node_numbers, tiny_data, tiny_stream

from cglsuite import Seeds
from cglsuite.base.errors import DataError, SpecError
from cglsuite.graphs import NodeData, SparseMatrix
from cglsuite.graphs.splits.partition import per_class_split
from cglsuite.specs.scenario import EDGE_POLICIES
from cglsuite.streams import TaskStream, TaskView

POLICIES = [policy.name for policy in EDGE_POLICIES.values() if policy.allows("NC", "class-il")]
ORDER = "4,1,0,5,2,3"
TASKS = [[4, 1], [0, 5], [2, 3]]


@pytest.fixture(scope="module")
def data() -> NodeData:
    return tiny_data()


def nodes_of(data: NodeData, classes: list[int]) -> list[int]:
    return [i for i in range(data.n_nodes) if int(data.y[i]) in classes]


def nodes_in_graph(data: NodeData, policy: str, stage: int) -> list[int]:
    """Which nodes of the dataset the message graph of a task holds."""
    if policy == "full":
        return list(range(data.n_nodes))
    return nodes_of(data, TASKS[stage] if policy == "none" else sum(TASKS[: stage + 1], []))


def edges_in_graph(view: TaskView) -> set[tuple[int, int]]:
    numbers = node_numbers(view.graph)
    return {(numbers[a], numbers[b]) for a, b in view.graph.edge_index.T.tolist()}


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("policy", POLICIES)
def test_message_graphs_hold_the_nodes_and_edges_of_the_policy(data: NodeData, policy: str, undirected: bool) -> None:
    stream = tiny_stream(data, class_order=ORDER, edge_policy=policy, undirected=undirected)
    edges = {(a, b) for a, b in data.edge_index.T.tolist()}
    if undirected:
        edges = {(a, b) for a, b in edges | {(b, a) for a, b in edges} if a != b}
    for k in range(3):
        view = stream.view(k)
        inside = set(nodes_in_graph(data, policy, k))
        assert sorted(node_numbers(view.graph)) == sorted(inside)
        assert edges_in_graph(view) == {(a, b) for a, b in edges if a in inside and b in inside}
        assert view.graph.n_edges == len(edges_in_graph(view))
        assert view.keeps_nodes is (policy != "none")
        features = view.graph.features
        assert isinstance(features, torch.Tensor)
        assert torch.equal(features, data.x[node_numbers(view.graph)])


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize("policy", POLICIES)
def test_views_hold_the_right_items_labels_and_outputs(data: NodeData, policy: str, setting: str) -> None:
    stream = tiny_stream(data, class_order=ORDER, edge_policy=policy, setting=setting, seeds=Seeds(split=3))
    split = per_class_split(data.y, torch.arange(6), (0.6, 0.2, 0.2), 3)
    for k in range(3):
        view = stream.view(k)
        own, seen = TASKS[k], sum(TASKS[: k + 1], [])
        assert (view.position, view.n_tasks, view.n_outputs, view.first) == (k, 3, 6, k == 0)
        assert view.classes.tolist() == own
        assert view.past == ()
        assert view.task_outputs.nonzero().flatten().tolist() == sorted(own)
        assert view.seen_outputs.nonzero().flatten().tolist() == sorted(seen)
        assert view.train.allowed.nonzero().flatten().tolist() == sorted(own if setting == "task-il" else seen)
        expected = [[i for i in nodes_of(data, own) if split[i] == part] for part in (0, 1)]
        for batch, ids in zip((view.train, view.validation), expected, strict=True):
            assert node_numbers(batch.graph, batch.ids) == ids
            assert batch.graph is view.graph
            assert batch.tasks is not None
            assert batch.tasks.tolist() == [k] * len(ids)
            assert len(batch) == len(ids)
        assert view.train.y is not None
        assert view.train.y.tolist() == data.y[expected[0]].tolist()
        assert view.validation.y is None


@pytest.mark.parametrize(("rule", "expected"), [("task", [0, 5]), ("seen", [0, 1, 4, 5]), ("all", [0, 1, 2, 3, 4, 5])])
def test_which_outputs_compete_in_training_is_a_switch(data: NodeData, rule: str, expected: list[int]) -> None:
    view = tiny_stream(data, class_order=ORDER, train_outputs=rule).view(1)
    assert view.train.allowed.nonzero().flatten().tolist() == expected


def test_nodes_keep_their_positions_while_the_graph_grows(data: NodeData) -> None:
    """Under `inter-task` a memory of node ids stays valid."""
    stream = tiny_stream(data, class_order=ORDER, edge_policy="inter-task")
    grown = [node_numbers(stream.view(k).graph) for k in range(3)]
    assert grown[1][: len(grown[0])] == grown[0]
    assert grown[2][: len(grown[1])] == grown[1]


@pytest.mark.parametrize("policy", POLICIES)
def test_an_earlier_task_may_be_seen_in_a_later_graph(data: NodeData, policy: str) -> None:
    """What an upper bound trains on: the same items and labels, in the current graph where the policy lets them meet."""
    stream = tiny_stream(data, class_order=ORDER, edge_policy=policy)
    current, past, then = stream.view(2), stream.view(0, 2), stream.view(0)
    assert node_numbers(past.graph, past.train.ids) == node_numbers(then.graph, then.train.ids)
    assert past.train.y is not None
    assert then.train.y is not None
    assert past.train.y.tolist() == then.train.y.tolist()
    assert past.seen_outputs.all()
    assert (past.graph is current.graph) is (policy != "none")


def test_views_are_made_once_and_forgotten_on_demand(data: NodeData) -> None:
    stream = tiny_stream(data)
    view = stream.view(1)
    assert stream.view(1) is view
    stream.forget()
    again = stream.view(1)
    assert again is not view
    assert again.train.ids.tolist() == view.train.ids.tolist()


def test_sparse_and_dense_features_give_the_same_stream() -> None:
    for policy in POLICIES:
        one, other = (tiny_stream(tiny_data(sparse=s), edge_policy=policy) for s in (True, False))
        for k in range(3):
            sparse, dense = one.view(k).graph.features, other.view(k).graph.features
            assert isinstance(sparse, SparseMatrix)
            assert torch.equal(sparse.csr.to_dense(), dense)
            assert torch.equal(one.view(k).train.ids, other.view(k).train.ids)


@pytest.mark.parametrize("sparse", [True, False])
def test_row_normalisation_by_hand(sparse: bool) -> None:
    """Every row sums to 1; a row of zeros stays one."""
    x = torch.tensor([[1.0, 3.0], [0.0, 0.0], [5.0, 0.0], [0.5, 0.5]]).repeat(5, 1)
    y = torch.arange(20) % 2
    plain = NodeData(x=x.to_sparse_csr() if sparse else x, edge_index=torch.empty(2, 0, dtype=torch.int64), y=y, n_classes=2)
    features = tiny_stream(plain, feature_normalisation="row").view(0).graph.features
    rows = features.csr.to_dense() if isinstance(features, SparseMatrix) else features
    np.testing.assert_allclose(rows[:4].numpy(), [[0.25, 0.75], [0, 0], [1, 0], [0.5, 0.5]])
    assert torch.equal((plain.x.to_dense() if sparse else plain.x), x)  # the dataset itself is left as it was


def test_unlabelled_nodes_and_removed_classes_carry_messages_only() -> None:
    """Nodes without a label, or of a class that no task holds, are in the graph under `full` and in no part of any task."""
    data = tiny_data()
    y = data.y.clone()
    y[data.y == 3] = -1
    y[(data.y == 5).nonzero().flatten()[3:]] = -1  # class 5 keeps three members: too few
    fewer = NodeData(x=data.x, edge_index=data.edge_index, y=y, n_classes=6)
    stream = tiny_stream(fewer, min_class_size=5)
    assert [t.classes for t in stream.tasks] == [(0, 1), (2, 4)]
    asked = {n for g in stream.make_queries(2) for n in node_numbers(g.query.graph, g.query.ids)}
    trained = {n for k in range(2) for n in node_numbers(stream.view(k).graph, stream.view(k).train.ids)}
    assert asked | trained == set((torch.isin(y, torch.tensor([0, 1, 2, 4]))).nonzero().flatten().tolist())
    assert stream.view(0).graph.n_nodes == 60
    inter = tiny_stream(fewer, min_class_size=5, edge_policy="inter-task")
    assert inter.view(1).graph.n_nodes == 40


def test_facts_of_tasks(data: NodeData) -> None:
    stream = tiny_stream(data, class_order=ORDER)
    assert len(stream) == 3
    assert [(t.classes, t.n_train, t.n_validation, t.n_test) for t in stream.tasks] == [(tuple(c), 12, 4, 4) for c in TASKS]
    assert stream.task_outputs.sum(dim=1).tolist() == [2, 2, 2]
    assert stream.data_hash == data.content_hash


def contents(data: NodeData, **changes: Any) -> list[str]:
    return [t.content for t in tiny_stream(data, **changes).tasks]


def test_a_tasks_content_is_the_same_in_every_order_and_changes_with_its_items(data: NodeData) -> None:
    first = contents(data, class_order="0,1,2,3,4,5")
    assert len(set(first)) == 3
    assert contents(data, class_order="4,5,0,1,2,3") == [first[2], first[0], first[1]]
    assert contents(data, class_order="0,1,2,3,4,5", edge_policy="none") == first
    assert contents(data, class_order="0,2,1,3,4,5")[2] == first[2]
    assert not set(contents(data, seeds=Seeds(split=1))) & set(first)


def test_the_order_seed_permutes_and_the_split_seed_splits(data: NodeData) -> None:
    def arrangement(seeds: Seeds) -> tuple[list[tuple[int, ...]], list[int]]:
        stream = tiny_stream(data, class_order="random", seeds=seeds)
        return [t.classes for t in stream.tasks], sorted(i for k in range(3) for i in stream.view(k).train.ids.tolist())

    classes, trained = arrangement(Seeds())
    other_order = arrangement(Seeds(order=1))
    assert other_order[0] != classes
    assert other_order[1] == trained  # a class is split in the same way wherever it arrives
    other_split = arrangement(Seeds(split=1))
    assert other_split[0] == classes
    assert other_split[1] != trained
    assert arrangement(Seeds(init=1)) == (classes, trained)


def test_an_official_split_is_taken_as_it_is() -> None:
    data = tiny_data(official=True)
    assert data.official_split is not None
    view = tiny_stream(data, split="official").view(0)
    assert view.train.ids.tolist() == (torch.isin(data.y, torch.tensor([0, 1])) & (data.official_split == 0)).nonzero().flatten().tolist()


def test_errors_when_building(data: NodeData) -> None:
    with pytest.raises(SpecError, match="the dataset 'tiny' has no official split"):
        tiny_stream(data, split="official")
    with pytest.raises(SpecError, match="9 is not a class of this scenario"):
        tiny_stream(data, class_order="9,1,2,3,4,5")
    with pytest.raises(SpecError, match=r"scenario\.n_tasks = 4"):
        tiny_stream(data, n_tasks=4)
    with pytest.raises(DataError, match="class 0 has 10 items, too few for a "):
        tiny_stream(data, split_ratio=(0.05, 0.05, 0.9))


@pytest.mark.parametrize(("part", "name"), [(0, "train"), (1, "validation"), (2, "test")])
def test_a_task_without_items_in_a_part_is_named(part: int, name: str) -> None:
    data = tiny_data(official=True)
    assert data.official_split is not None
    split = torch.where(torch.isin(data.y, torch.tensor([2, 3])) & (data.official_split == part), -1, data.official_split).to(torch.int8)
    broken = NodeData(x=data.x, edge_index=data.edge_index, y=data.y, n_classes=6, official_split=split)
    with pytest.raises(DataError, match=rf"scenario 'tiny/class-il@test-1': task 2 \(classes 2, 3\) has no {name} items"):
        tiny_stream(broken, split="official")


def test_a_view_is_what_the_seeds_and_the_spec_say_and_nothing_else(data: NodeData) -> None:
    """Two streams, asked in different orders, hold the same."""

    def described(stream: TaskStream, k: int) -> list[Any]:
        view = stream.view(k)
        return [view.train.ids.tolist(), view.train.y, view.validation.ids.tolist(), view.graph.edge_index.tolist()]

    for policy in POLICIES:
        one, other = (tiny_stream(data, class_order="random", edge_policy=policy) for _ in range(2))
        forwards = [described(one, k) for k in range(3)]
        torch.manual_seed(99)
        other.make_queries(3)
        backwards = [described(other, k) for k in reversed(range(3))][::-1]
        for mine, theirs in zip(forwards, backwards, strict=True):
            assert torch.equal(mine.pop(1), theirs.pop(1))
            assert mine == theirs


@pytest.mark.sampled(1)
@pytest.mark.parametrize("policy", ["inter-task", "none"])
def test_the_graph_of_an_earlier_task_is_released_before_the_next_is_made(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two large graphs at once may be more than there is memory for."""
    stream: Any = tiny_stream(edge_policy=policy)
    earlier = weakref.ref(stream.view(0).graph)
    stream.make_queries(1)
    stream.forget()
    assert earlier() is not None  # kept for another look at the same task
    make, made = stream.graph, list[int]()

    def watched(*given: Any) -> Any:
        gc.collect()
        assert earlier() is None
        made.append(1)
        return make(*given)

    monkeypatch.setattr(stream, "graph", watched)
    stream.view(1)
    assert made
