"""Queries asked task by task or all at once, among the edges of their task or of all tasks seen."""

from __future__ import annotations

import pytest
import torch
from tiny_streams import VARIANTS, node_numbers, tiny_data, tiny_spec, tiny_stream

from cglsuite import ScenarioSpec
from cglsuite.base.errors import SpecError
from cglsuite.graphs import MessageGraph
from cglsuite.specs.switch import switches
from cglsuite.streams import TaskStream

ORDER = "4,1,0,5,2,3"
DATA = tiny_data(per_class=15)
TASK_OF_CLASS = torch.tensor([1, 0, 2, 2, 0, 1])
TASK_OF = TASK_OF_CLASS[DATA.y]


def stream_of(grouping: str, edges: str) -> TaskStream:
    return tiny_stream(DATA, class_order=ORDER, edge_policy="none", query_grouping=grouping, query_edges=edges)


def neighbours(graph: MessageGraph) -> dict[int, list[int]]:
    """By global number of a node, those of its in-neighbours in the order in which messages are summed."""
    number = node_numbers(graph, torch.arange(graph.n_nodes))
    pointers, sources = graph.in_neighbours
    return {number[i]: [number[j] for j in sources[pointers[i] : pointers[i + 1]].tolist()] for i in range(graph.n_nodes)}


@pytest.mark.parametrize(("grouping", "edges"), [("task", "own"), ("task", "seen"), ("pooled", "own"), ("pooled", "seen")])
def test_items_and_neighbours_of_each_group(grouping: str, edges: str) -> None:
    stream, apart = stream_of(grouping, edges), stream_of("task", "own")
    source, target = DATA.edge_index
    linked = set(zip(source.tolist(), target.tolist(), strict=True)) | set(zip(target.tolist(), source.tolist(), strict=True))
    for learnt in (1, 2, 3):
        groups = stream.make_queries(learnt)
        assert [g.tasks for g in groups] == ([tuple(range(learnt))] if grouping == "pooled" else [(k,) for k in range(learnt)])
        numbers = [node_numbers(g.query.graph, g.query.ids) for g in groups]
        expected = [node_numbers(g.query.graph, g.query.ids) for g in apart.make_queries(learnt)]
        assert sorted(sum(numbers, [])) == sorted(sum(expected, []))
        for group in groups:
            there = neighbours(group.query.graph)
            tasks = range(learnt) if grouping == "pooled" or edges == "seen" else group.tasks
            assert set(there) == {n for n in range(DATA.n_nodes) if int(TASK_OF[n]) in tasks}
            for n, found in there.items():
                others = (m for m in there if m != n and (m, n) in linked)
                assert set(found) == {m for m in others if edges == "seen" or TASK_OF[m] == TASK_OF[n]}
            assert group.query.tasks is None
            asked = stream.asked(group.token)
            assert torch.equal(TASK_OF[asked.ids], asked.tasks)
            assert [node_numbers(group.query.graph, torch.arange(group.query.graph.n_nodes))] == [asked.nodes.tolist()]


def test_pooled_neighbours_are_summed_in_the_same_order() -> None:
    pooled = neighbours(stream_of("pooled", "own").make_queries(3)[0].query.graph)
    for group in stream_of("task", "own").make_queries(3):
        for n, found in neighbours(group.query.graph).items():
            assert pooled[n] == found


def test_pooled_items_and_nodes_are_shuffled_over_tasks() -> None:
    stream = stream_of("pooled", "own")
    group = stream.make_queries(3)[0]
    asked = stream.asked(group.token)
    for tasks in (asked.tasks, TASK_OF[asked.nodes]):
        changes = int((tasks[1:] != tasks[:-1]).sum())
        assert changes > len(tasks) / 3  # three tasks in blocks change twice


def test_defaults_are_left_out_of_what_is_keyed() -> None:
    spec = stream_of("task", "own").spec
    assert not {"query_grouping", "query_edges", "base_classes", "shots", "reject_below", "features"} & switches(spec).keys()
    defaults = {
        "query_grouping": "task",
        "query_edges": "own",
        "base_classes": None,
        "shots": None,
        "reject_below": 0.5,
        "features": "given",
    }
    assert switches(spec, implicit=True) == switches(spec) | defaults
    assert switches(stream_of("pooled", "own").spec) == switches(spec) | {"query_grouping": "pooled"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"setting": "task-il"}, "a query of task-IL names its task"),
        ({"edge_policy": "full"}, "queries of all tasks share a graph already"),
        ({"edge_policy": "inter-task"}, "queries of all tasks share a graph already"),
        (VARIANTS["multi class-il"][1] | {"edge_policy": "none"}, "labels are multi"),
        ({"level": "GC", "edge_policy": "full"}, "level is GC"),
    ],
    ids=["task-il", "full", "inter-task", "multi", "graphs"],
)
@pytest.mark.parametrize("switch", [{"query_grouping": "pooled"}, {"query_edges": "seen"}], ids=["grouping", "edges"])
def test_where_grouping_means_nothing_it_is_refused(changes: dict[str, str], reason: str, switch: dict[str, str]) -> None:
    with pytest.raises(SpecError, match=reason):
        tiny_spec(**{"edge_policy": "none", **changes, **switch})
    assert isinstance(tiny_spec(**{"edge_policy": "none", **changes}), ScenarioSpec)
