"""The line graph by hand, against networkx, and what it refuses."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import Tensor

from cglsuite.base.errors import DataError
from cglsuite.graphs import NodeData
from cglsuite.graphs.linegraph import line_graph
from cglsuite.graphs.splits.partition import symmetrised


def graph(pairs: list[tuple[int, int]] | Tensor, x: Tensor | None = None, n_nodes: int = 5) -> NodeData:
    edges = pairs if isinstance(pairs, Tensor) else torch.tensor(pairs, dtype=torch.int64).view(-1, 2).T
    x = torch.randn(n_nodes, 3, generator=torch.Generator().manual_seed(0)) if x is None else x
    return NodeData(x=x, edge_index=edges, y=torch.zeros(x.shape[0], dtype=torch.int64), n_classes=1, name="g")


def test_by_hand() -> None:
    """A triangle 0-1-2 with a tail 2-3: edges 01, 02, 12, 23; 01 does not meet 23."""
    x = torch.tensor([[0.0, 1], [2, 1], [5, -4], [1, 1]])
    made = line_graph(graph([(1, 0), (0, 2), (2, 3), (1, 2)], x), torch.tensor([2, 0, 1, -1]))
    assert torch.stack([made.keys["u"], made.keys["v"]]).T.tolist() == [[0, 1], [0, 2], [1, 2], [2, 3]]
    assert made.y.tolist() == [2, 0, -1, 1]
    assert (made.n_classes, made.name) == (3, "g-line-graph")
    assert made.edge_index.T.tolist() == [[0, 1], [0, 2], [1, 0], [1, 2], [1, 3], [2, 0], [2, 1], [2, 3], [3, 1], [3, 2]]
    assert made.x.tolist() == [[2, 2, 2, 0], [5, -3, 5, 5], [7, -3, 3, 5], [6, -3, 4, 5]]


@hypothesis_settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda p: p[0] != p[1]), max_size=16))
def test_equals_networkx(pairs: list[tuple[int, int]]) -> None:
    reference = nx.Graph([tuple(sorted(p)) for p in pairs])
    expected = {frozenset((tuple(sorted(a)), tuple(sorted(b)))) for a, b in nx.line_graph(reference).edges}
    made = line_graph(graph(pairs, n_nodes=8), torch.zeros(len(pairs), dtype=torch.int64), n_classes=2)
    nodes = [tuple(p) for p in torch.stack([made.keys["u"], made.keys["v"]]).T.tolist()]
    assert nodes == sorted({tuple(sorted(p)) for p in pairs})
    source, target = made.edge_index
    assert {frozenset((nodes[a], nodes[b])) for a, b in zip(source.tolist(), target.tolist(), strict=True)} == expected
    assert torch.equal(symmetrised(made.edge_index, made.n_nodes), made.edge_index)


@hypothesis_settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda p: p[0] != p[1]), min_size=1, max_size=16), st.data())
def test_the_order_and_direction_of_the_listing_change_nothing(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    once = sorted({(min(p), max(p)) for p in pairs})
    labels = {p: i % 3 for i, p in enumerate(once)}
    listed = data.draw(st.permutations(once + [(b, a) for a, b in once]))

    def made(listing: list[tuple[int, int]]) -> NodeData:
        return line_graph(graph(listing, n_nodes=8), torch.tensor([labels[min(p), max(p)] for p in listing]), n_classes=3)

    assert made(once).content_hash == made(listed).content_hash


def test_sparse_features_as_dense_ones() -> None:
    g = torch.Generator().manual_seed(1)
    x = torch.randn(6, 5, generator=g) * (torch.rand(6, 5, generator=g) < 0.4)
    x[3] = x[2]  # equal ends: the differences vanish and are not stored
    pairs = [(0, 1), (2, 3), (1, 4), (4, 5)]
    dense = line_graph(graph(pairs, x), torch.arange(4))
    sparse = line_graph(graph(pairs, x.to_sparse_csr()), torch.arange(4))
    assert sparse.x.layout == torch.sparse_csr
    assert torch.equal(sparse.x.to_dense(), dense.x)
    assert (sparse.x.values() != 0).all()
    assert torch.equal(sparse.edge_index, dense.edge_index)


def test_several_labels_per_edge() -> None:
    y = torch.tensor([[True, False], [True, True], [True, False]])
    made = line_graph(graph([(0, 1), (1, 2), (1, 0)]), y)
    assert made.multi_label
    assert made.y.tolist() == [[True, False], [True, True]]
    assert made.n_classes == 2


def test_no_edges() -> None:
    made = line_graph(graph([]), torch.empty(0, dtype=torch.int64))
    assert (made.n_nodes, made.n_features, made.n_classes, made.edge_index.tolist()) == (0, 6, 0, [[], []])


def test_a_star_is_refused_beyond_the_limit_and_built_within_it() -> None:
    """40 edges at one hub: 40² + 40 entries, 40·39 adjacencies."""
    star = graph([(0, leaf) for leaf in range(1, 41)], n_nodes=41)
    y = torch.zeros(40, dtype=torch.int64)
    named = r"g: the line graph of 40 edges has 1640 entries .*; node 0 alone has 40 edges\), above the limit of 1639; .* raise max_entries"
    with pytest.raises(DataError, match=named):
        line_graph(star, y, max_entries=1639)
    assert line_graph(star, y, max_entries=1640).edge_index.shape == (2, 40 * 39)


@pytest.mark.parametrize(
    ("pairs", "edge_y", "message"),
    [
        ([(0, 1), (2, 2)], torch.tensor([0, 0]), "g: node 2 has a self-loop; every edge must join two different nodes"),
        ([(0, 1), (1, 2), (1, 0)], torch.tensor([0, 0, 1]), r"g: the edge \{1, 0\} has different labels in columns 0 and 2 of edge_index"),
        ([(0, 1), (0, 1)], torch.tensor([[True], [False]]), r"g: the edge \{0, 1\} has different labels"),
        ([(0, 1)], torch.tensor([0, 0]), r"g: edge_y is torch.int64 \[2\]; expected int64 \[1\], or bool \[1, C\]"),
        ([(0, 1)], torch.tensor([0.0]), r"g: edge_y is torch.float32 \[1\]"),
        ([(0, 1)], torch.tensor([3]), r"labels range over 3..3; expected -1..1"),
    ],
)
def test_what_is_refused(pairs: list[tuple[int, int]], edge_y: Tensor, message: str) -> None:
    with pytest.raises(DataError, match=message):
        line_graph(graph(pairs), edge_y, n_classes=2)
