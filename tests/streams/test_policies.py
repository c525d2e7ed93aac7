"""Edge policies × settings on node streams: which nodes and edges a task's views and queries hold, counted from the data alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_links import link_variant
from tiny_streams import node_numbers, tiny_data, tiny_stream
from torch import Tensor

from cglsuite.base.errors import SpecError
from cglsuite.graphs import NodeData
from cglsuite.specs.scenario import EDGE_POLICIES
from cglsuite.streams import TaskStream

YEARS = [2001, 2002, 2004]
SETTINGS: dict[str, dict[str, Any]] = {
    "class-il": {},
    "task-il": {},
    "class-il, several labels": {"setting": "class-il", "labels": "multi"},
    "task-il, several labels": {"setting": "task-il", "labels": "multi", "split": "node-consistent"},
    "domain-il": {"task_key": "year", "class_order": "native"},
    "domain-il, several labels": {"setting": "domain-il", "labels": "multi", "split": "random", "task_key": "year"},
    "time-il": {"task_key": "year"},
    "time-il, two steps": {"setting": "time-il", "task_key": "year", "n_tasks": 2},
}
POLICIES = list(EDGE_POLICIES)


def case(setting: str, policy: str, undirected: bool = True) -> tuple[NodeData, TaskStream]:
    switches = {"setting": setting} | SETTINGS[setting]
    several = switches.get("labels") == "multi"
    data = tiny_data(per_class=15, multi_label=several, keys={"year": YEARS})
    if not several:  # a node without a label is an item of no task, but a part of the graph
        data = replace(data, y=data.y.clone().index_fill(0, torch.arange(0, data.n_nodes, 11), -1))
    return data, tiny_stream(data, edge_policy=policy, undirected=undirected, **switches)


def members(data: NodeData, setting: str, k: int) -> Tensor:
    """bool [N]: the items that come with task ``k``: two classes a task, or the nodes of a year."""
    if "task_key" in SETTINGS[setting]:
        return (data.keys["year"] == YEARS[k]) & (data.y.any(dim=1) if data.multi_label else data.y >= 0)
    classes = torch.tensor([2 * k, 2 * k + 1])
    return data.y[:, classes].any(dim=1) if data.multi_label else torch.isin(data.y, classes)


def expected_nodes(data: NodeData, setting: str, policy: str, k: int) -> set[int]:
    """What the policy's definition gives task ``k``."""
    if policy == "full":
        return set(range(data.n_nodes))
    if policy == "snapshot":
        return set((data.keys["year"] <= YEARS[k]).nonzero().flatten().tolist())
    first = k if policy == "none" else 0
    return {i for j in range(first, k + 1) for i in members(data, setting, j).nonzero().flatten().tolist()}


def expected_edges(data: NodeData, nodes: set[int], undirected: bool) -> set[tuple[int, int]]:
    """Those among the nodes; both ways they are without self-loops, which backbones add themselves."""
    pairs = {(a, b) for a, b in data.edge_index.T.tolist() if a in nodes and b in nodes}
    return {pair for a, b in pairs if a != b for pair in ((a, b), (b, a))} if undirected else pairs


def edges_of(graph: Any) -> set[tuple[int, int]]:
    number = node_numbers(graph)
    return {(number[a], number[b]) for a, b in graph.edge_index.T.tolist()}


def fits(setting: str, policy: str) -> bool:
    return EDGE_POLICIES[policy].allows("NC", setting.partition(",")[0])


CASES = [(s, p) for s in SETTINGS for p in POLICIES if fits(s, p)]


@pytest.mark.parametrize("undirected", [True, False], ids=["both ways", "one way"])
@pytest.mark.parametrize(("setting", "policy"), CASES)
def test_a_task_is_learnt_in_the_graph_of_its_policy(setting: str, policy: str, undirected: bool) -> None:
    """Its nodes, its edges, its items where they stand in it, and for an upper bound the earlier tasks in the same graph."""
    data, stream = case(setting, policy, undirected)
    for k in range(len(stream)):
        view = stream.view(k)
        nodes = expected_nodes(data, setting, policy, k)
        assert sorted(node_numbers(view.train.graph)) == sorted(nodes)
        assert edges_of(view.train.graph) == expected_edges(data, nodes, undirected)
        for batch, part in ((view.train, "train"), (view.validation, "validation")):
            assert sorted(node_numbers(batch.graph, batch.ids)) == sorted(stream.members(k, part).tolist())
            assert set(stream.members(k, part).tolist()) <= set(members(data, setting, k).nonzero().flatten().tolist())
        for j in range(k):
            earlier = stream.view(j, k).train
            of_graph = expected_nodes(data, setting, policy, j if policy == "none" else k)
            assert set(node_numbers(earlier.graph)) == of_graph
            assert sorted(node_numbers(earlier.graph, earlier.ids)) == sorted(stream.members(j, "train").tolist())
        stream.forget()


@pytest.mark.parametrize(("setting", "policy"), CASES)
def test_a_query_is_asked_in_the_graph_of_its_policy(setting: str, policy: str) -> None:
    """After every task: each task's own graph under `none`, the one that has grown so far, or the whole; unseen tasks only in the whole."""
    data, stream = case(setting, policy)
    n = len(stream)
    for learnt in range(n + 1):
        groups = stream.make_queries(learnt)
        asked: dict[int, set[int]] = {k: set() for k in range(n)}
        for group in groups:
            graph, ids = group.query.graph, group.query.ids
            stage = group.tasks[0] if policy == "none" else max(learnt - 1, 0)
            assert set(node_numbers(graph)) == expected_nodes(data, setting, policy, stage)
            facts = stream.asked(group.token)
            assert node_numbers(graph, ids) == facts.ids.tolist()
            assert node_numbers(graph) == facts.nodes.tolist()
            for k in group.tasks:
                asked[k] |= set(facts.ids[(facts.tasks == k) & facts.test].tolist())
        for k in range(n):
            there = k < learnt or policy == "full"
            assert asked[k] == (set(stream.members(k, "test").tolist()) if there else set())


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("setting", SETTINGS)
def test_edges_of_a_task_apart_keep_the_order_of_all_edges(setting: str, undirected: bool) -> None:
    """Divided in one pass where tasks have no node in common, else chosen task by task."""
    data, stream = case(setting, "none", undirected)
    nodes = [members(data, setting, k).nonzero().flatten() for k in range(len(stream))]
    shared = len(torch.cat(nodes).unique()) < sum(map(len, nodes))
    assert (stream._edges_by_task is None) == shared  # type: ignore[attr-defined]
    for k, mine in enumerate(nodes):
        edges = stream.edges  # type: ignore[attr-defined]
        expected = edges[:, torch.isin(edges, mine).all(dim=0)]
        assert torch.equal(stream._edges_among(k), expected)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("setting", "policy"), CASES)
def test_nodes_keep_their_places_while_a_graph_grows(setting: str, policy: str) -> None:
    """Ids of earlier views are those of the same nodes wherever the stream says so; under `none` it does not say so."""
    _, stream = case(setting, policy)
    numbers = [node_numbers(stream.view(k).train.graph) for k in range(len(stream))]
    for before, after in itertools.pairwise(numbers):
        assert stream.view(1).keeps_nodes == (policy != "none")
        assert (after[: len(before)] == before) == (policy != "none")


@pytest.mark.parametrize("setting", [s for s in SETTINGS if not fits(s, "snapshot")])
def test_snapshots_need_time(setting: str) -> None:
    with pytest.raises(SpecError, match="has no time steps; expected none, inter-task or full"):
        case(setting, "snapshot")


KINDS: dict[str, tuple[Callable[..., TaskStream], str, str]] = {
    "nodes": (tiny_stream, "NC", "class-il"),
    "nodes over time": (lambda **changes: case("time-il", changes["edge_policy"])[1], "NC", "time-il"),
    "links": (lambda **changes: link_variant("LC class-il", **changes), "LC", "class-il"),
    "pairs": (lambda **changes: link_variant("LP domain-il", **changes), "LP", "domain-il"),
}


@pytest.mark.parametrize("items", KINDS)
def test_no_edge_policy_is_read_as_another(items: str) -> None:
    """A builder refuses what the policy's entry does not allow, and the graphs of two policies are never the same throughout."""
    made, *kind = KINDS[items]
    graphs: dict[tuple[tuple[int, int], ...], str] = {}
    for policy in EDGE_POLICIES:
        try:
            stream = made(edge_policy=policy)
        except SpecError:
            continue
        views = [stream.view(k) for k in range(3)]
        sizes = tuple((int(view.graph.n_nodes), view.graph.n_edges) for view in views)
        assert sizes not in graphs, f"{policy} is read as {graphs[sizes]}: implement it for {items}, or refuse it"
        graphs[sizes] = policy
    assert list(graphs.values()) == [policy.name for policy in EDGE_POLICIES.values() if policy.allows(*kind)]
