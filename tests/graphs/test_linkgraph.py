"""The message graph of link prediction: degrees, hidden targets, unions."""

from __future__ import annotations

import pickle

import pytest
import torch

from cglsuite.graphs import MessageGraph
from cglsuite.graphs.linkgraph import DEGREE_FEATURES, LinkGraph, degree_features

EDGES = torch.tensor([[0, 1, 1, 2, 0, 3], [1, 0, 2, 1, 3, 0]])


def graph(**options: object) -> LinkGraph:
    given: dict[str, object] = {
        "x": degree_features(EDGES, 5, "degrees"),
        "edge_index": EDGES,
        "types": torch.zeros(5, dtype=torch.int64),
        "counted": torch.ones(5, dtype=torch.bool),
    }
    return LinkGraph(**(given | options))  # type: ignore[arg-type]


def test_degrees_are_counted_in_and_out() -> None:
    edges = torch.tensor([[0, 0, 1], [1, 2, 2]])
    counts = torch.tensor([[0.0, 2], [1, 1], [2, 0], [0, 0]])
    assert torch.equal(degree_features(edges, 4, "degrees"), counts)
    logarithms = degree_features(edges, 4, "log-degrees")
    assert torch.equal(logarithms, torch.cat([torch.ones(4, 1), counts.log1p()], dim=1))
    assert {kind: degree_features(edges, 4, kind).shape[1] for kind in DEGREE_FEATURES} == DEGREE_FEATURES


@pytest.mark.parametrize("kind", DEGREE_FEATURES)
@pytest.mark.parametrize("undirected", [True, False])
def test_hidden_targets_carry_no_messages_and_are_not_counted(undirected: bool, kind: str) -> None:
    whole = graph(hides_targets=True, undirected=undirected, x=degree_features(EDGES, 5, kind), kind=kind)
    seen = whole.in_step(torch.tensor([[1, 0], [4, 2]]))
    kept = {(int(a), int(b)) for a, b in seen.edge_index.T}
    assert kept == {(1, 2), (2, 1), (0, 3), (3, 0)} | (set() if undirected else {(0, 1)})
    assert torch.equal(seen.features, degree_features(seen.edge_index, 5, kind))
    assert torch.equal(whole.edge_index, EDGES)
    h = torch.arange(5.0).unsqueeze(1)
    assert torch.equal(seen.propagate("sum", h), MessageGraph(h, seen.edge_index).propagate("sum", h))


def test_targets_that_are_not_hidden_change_nothing() -> None:
    whole = graph()
    assert whole.in_step(torch.tensor([[1, 0]])) is whole


def test_a_union_keeps_destinations_within_its_parts() -> None:
    one = graph(types=torch.tensor([0, 1, 0, 1, 1]), hides_targets=True)
    kept = LinkGraph(torch.rand(2, 2), torch.empty(2, 0, dtype=torch.int64), types=torch.tensor([0, 1]))
    union = MessageGraph(torch.cat([one.features, kept.features]), EDGES)
    joined = LinkGraph.joined(union, [one, kept])
    assert joined.types.tolist() == [0, 1, 0, 1, 1, 2, 3]
    generator = torch.Generator().manual_seed(0)
    drawn = joined.destinations(torch.tensor([4, 0, 6]).repeat(200), generator).view(-1, 3)
    assert [sorted(set(column.tolist())) for column in drawn.T] == [[1, 3, 4], [0, 2], [6]]
    seen = joined.in_step(torch.tensor([[0, 1], [5, 6]]))
    assert torch.equal(seen.features[5:], kept.features), "features that were kept are no degrees here"
    assert torch.equal(seen.features[:5], degree_features(seen.edge_index, 7, "degrees")[:5])


@pytest.mark.parametrize("kind", DEGREE_FEATURES)
def test_a_union_counts_as_those_of_its_parts_do_that_count(kind: str) -> None:
    """Whichever part comes first: kept pairs, whose features are as they were, say nothing of the kind."""
    counting = graph(hides_targets=True, x=degree_features(EDGES, 5, kind), kind=kind)
    kept = LinkGraph(torch.rand(2, DEGREE_FEATURES[kind]), torch.empty(2, 0, dtype=torch.int64), types=torch.tensor([0, 1]))
    union = MessageGraph(torch.cat([kept.features, counting.features]), EDGES + 2)  # type: ignore[list-item]
    seen = LinkGraph.joined(union, [kept, counting]).in_step(torch.tensor([[2, 3]]))
    assert torch.equal(seen.features[2:], degree_features(seen.edge_index, 7, kind)[2:])


def test_it_can_be_sent_to_another_process() -> None:
    again = pickle.loads(pickle.dumps(graph(hides_targets=True)))
    target = torch.tensor([[0, 1]])
    assert torch.equal(again.in_step(target).edge_index, graph(hides_targets=True).in_step(target).edge_index)
