"""A node of several tasks is asked once, in one graph, and its answer is scored in every task of which it is an item."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_streams import VARIANTS, node_numbers, tiny_data, tiny_spec
from torch import Tensor

from cglsuite.base.errors import LeakError, SpecError
from cglsuite.specs import ScenarioSpec, Seeds
from cglsuite.streams import QueryGroup, TaskStream
from cglsuite.streams.asked_once import build_asked_once
from cglsuite.streams.build import build_task_stream

DATA = tiny_data(per_class=40, multi_label=True)
MULTI = VARIANTS["multi class-il"][1] | {"edge_policy": "none"}
ONCE = {"query_grouping": "pooled", "query_edges": "seen", "builder": "cglsuite.streams.asked_once:build_asked_once"}


def spec_of(**changes: Any) -> ScenarioSpec:
    return tiny_spec(**{**MULTI, **changes})


@pytest.fixture(params=["task-wise", "node-consistent"])
def streams(request: pytest.FixtureRequest) -> tuple[TaskStream, TaskStream]:
    """The same tasks, asked task by task and asked once."""
    seeds, split = Seeds(order=0, split=0), {"split": request.param}
    return build_task_stream(spec_of(**split), DATA, seeds), build_asked_once(spec_of(**split, **ONCE), DATA, seeds)


def numbers(group: QueryGroup) -> list[int]:
    return node_numbers(group.query.graph, group.query.ids)


def answers_of(group: QueryGroup) -> Tensor:
    """Scores that depend on the node alone: float32 [n, C]."""
    drawn = torch.rand(DATA.n_nodes, DATA.n_classes, generator=torch.Generator().manual_seed(5))
    return drawn[torch.tensor(numbers(group))]


def scores(stream: TaskStream, learnt: int) -> Any:
    groups = stream.make_queries(learnt)
    given, allowed = {g.token: answers_of(g) for g in groups}, {g.token: g.query.allowed for g in groups}
    return stream.oracle.grade(given, allowed)


def test_every_node_is_asked_once(streams: tuple[TaskStream, TaskStream]) -> None:
    apart, once = streams
    for learnt in range(1, len(once) + 1):
        (group,), by_task = once.make_queries(learnt), apart.make_queries(learnt)
        asked = [number for part in by_task for number in numbers(part)]
        assert (len(set(asked)) < len(asked)) == (learnt > 1)  # some nodes have items in several tasks
        assert sorted(numbers(group)) == sorted(set(asked))
        assert group.tasks == tuple(range(learnt))
        assert group.query.tasks is None


def test_items_and_parts_are_those_of_the_tasks(streams: tuple[TaskStream, TaskStream]) -> None:
    apart, once = streams
    group = once.make_queries(3)[0]
    found = once.asked(group.token)
    expected = [apart.asked(part.token) for part in apart.make_queries(3)]
    rows = [set(zip(a.ids.tolist(), a.tasks.tolist(), a.test.tolist(), strict=True)) for a in (found, *expected)]
    assert rows[0] == set.union(*rows[1:])
    assert len(found.ids) == sum(len(a.ids) for a in expected)
    assert torch.equal(found.y, DATA.y[found.ids])


def test_the_graph_is_that_of_all_edges_among_the_nodes_seen(streams: tuple[TaskStream, TaskStream]) -> None:
    once = streams[1]
    group = once.make_queries(2)[0]
    graph, asked = group.query.graph, once.asked(group.token)
    there = node_numbers(graph, torch.arange(graph.n_nodes))
    assert there == asked.nodes.tolist()
    classes = torch.cat([torch.tensor(task.classes) for task in once.tasks[:2]])
    assert sorted(there) == DATA.y[:, classes].any(dim=1).nonzero().flatten().tolist()
    source, target = DATA.edge_index.tolist()
    linked = {(s, t) for s, t in zip(source, target, strict=True)} | {(t, s) for s, t in zip(source, target, strict=True)}
    inside = {(s, t) for s, t in linked if {s, t} <= set(there) and s != t}
    edges = torch.tensor(there)[graph.edge_index]
    assert {(s, t) for s, t in edges.t().tolist() if s != t} == inside


@pytest.mark.parametrize("learnt", [1, 2, 3])
def test_an_answer_counts_in_every_task_of_its_node(streams: tuple[TaskStream, TaskStream], learnt: int) -> None:
    """Answers that depend on the node alone score as they do task by task."""
    for by_task, pooled in zip(*(scores(stream, learnt) for stream in streams), strict=True):
        assert by_task.keys() == pooled.keys()
        for k, score in by_task.items():
            assert pooled[k].performance == pytest.approx(score.performance, abs=1e-12)
            assert torch.allclose(pooled[k].hits, score.hits)


def test_one_answer_per_item_is_too_many(streams: tuple[TaskStream, TaskStream]) -> None:
    once = streams[1]
    group = once.make_queries(3)[0]
    given = answers_of(group)
    for wrong in (given[:-1], torch.cat([given, given[:1]])):
        with pytest.raises(LeakError, match="must return one per query"):
            once.oracle.grade({group.token: wrong}, {group.token: group.query.allowed})


@pytest.mark.parametrize("left", ["query_grouping", "query_edges", "builder"])
def test_all_of_it_or_nothing(left: str) -> None:
    with pytest.raises(SpecError, match="asked once only with both switches"):
        spec_of(**{name: value for name, value in ONCE.items() if name != left})


def test_the_builder_is_for_pooled_queries() -> None:
    spec = spec_of(builder=ONCE["builder"])
    with pytest.raises(SpecError, match="expected query_grouping = 'pooled' and query_edges = 'seen'"):
        build_asked_once(spec, DATA, Seeds())
