"""Sets of packed graphs: what they say of their graphs, whatever set they stand in."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_streams import node_numbers, tiny_graphs

from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData, MessageGraph, SparseMatrix
from cglsuite.graphs.packed import PackedGraphs, PackedSource

SIZES = [3, 1, 4, 2]
NO_EDGES = torch.empty(2, 0, dtype=torch.int64)


def source() -> PackedSource:
    """Four graphs: a path, a single node, a cycle, a directed pair; feature 0 of a node is its number."""
    x = torch.arange(10.0)[:, None] * torch.tensor([1.0, -0.5])
    edges = [(0, 1), (1, 0), (1, 2), (2, 1), (4, 5), (5, 6), (6, 7), (7, 4), (8, 9)]
    return PackedSource(x, torch.tensor(edges).T[:, torch.randperm(9, generator=torch.Generator().manual_seed(1))], torch.tensor(SIZES))


def of(*ids: int) -> PackedGraphs:
    return source().queries(torch.tensor(ids), "cpu")


def bonded(*ids: int) -> PackedGraphs:
    """The same graphs with sparse features, a self-loop at node 5, and edges whose feature 0 is ten times the source plus the target."""
    edges = torch.cat([source()._pack.edge_index, torch.tensor([[5], [5]])], dim=1)
    edges = edges[:, torch.randperm(10, generator=torch.Generator().manual_seed(2))]
    x = torch.diag(torch.arange(1.0, 11))[:, :9].to_sparse_csr()
    attr = torch.stack([10.0 * edges[0] + edges[1], torch.ones(10)], dim=1)
    return PackedSource(x, edges, torch.tensor(SIZES), edge_attr=attr).queries(torch.tensor(ids), "cpu")


def test_a_set_holds_the_nodes_and_edges_of_its_graphs_and_no_others() -> None:
    graphs = of(2, 0)
    assert (len(graphs), graphs.n_nodes, graphs.n_features, graphs.n_edges) == (2, 7, 2, 8)
    assert graphs.features[:, 0].tolist() == [4, 5, 6, 7, 0, 1, 2]
    proper = graphs.edges_with_loops[:, : graphs.n_edges].T.tolist()
    assert sorted(map(tuple, proper)) == [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 4), (5, 6), (6, 5)]
    assert graphs.features.untyped_storage().nbytes() == 7 * 2 * 4


@pytest.mark.parametrize("kind", ["sum", "sum-self", "sym"])
def test_messages_pass_as_in_each_graph_alone(kind: Any) -> None:
    hidden = torch.randn(10, 3)
    together = of(0, 1, 2, 3).propagate(kind, hidden)
    alone = [of(i).propagate(kind, hidden[sum(SIZES[:i]) : sum(SIZES[: i + 1])]) for i in range(4)]
    assert torch.equal(together, torch.cat(alone))
    pair = MessageGraph(torch.zeros(2, 1), torch.tensor([[0], [1]])).propagate(kind, hidden[8:])
    assert torch.equal(together[8:], pair)


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_pooling_is_over_the_nodes_of_each_graph(how: Any) -> None:
    hidden = torch.randn(10, 3, dtype=torch.float32)
    pooled = of(0, 1, 2, 3).pool(hidden, how)
    for i, part in enumerate(hidden.split(SIZES)):
        expected = {"sum": part.sum(0), "mean": part.mean(0), "max": part.max(0).values}[how]
        torch.testing.assert_close(pooled[i], expected)


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_pooling_has_gradients(how: Any) -> None:
    graphs = of(0, 2)
    hidden = torch.randn(7, 2, dtype=torch.float64, requires_grad=True)
    if how == "max":
        assert torch.autograd.gradcheck(lambda h: graphs.pool(h, how), (hidden,))
    else:
        (gradient,) = torch.autograd.grad(graphs.pool(hidden.float(), how).sum(), hidden)
        torch.testing.assert_close(gradient.sum(), torch.tensor(14.0 if how == "sum" else 4.0, dtype=torch.float64))


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.data())
def test_sets_of_sets(ids: list[int], data: st.DataObject) -> None:
    """Taking, merging, and a round through a memory's payload give the graphs that they say, in their order."""
    graphs = of(*ids)
    chosen = data.draw(st.lists(st.integers(0, len(ids) - 1), min_size=1, max_size=5))
    same(graphs.take(torch.tensor(chosen)), of(*[ids[i] for i in chosen]))
    same(graphs.merged([of(1), of(3, 0)]), of(*ids, 1, 3, 0))
    same(of(2).rebuilt({k: v.clone() for k, v in graphs.payload().items()}), graphs)
    assert graphs.bytes() == sum(v.numel() * v.element_size() for v in graphs.payload().values())
    assert graphs.epoch(3) is graphs


def same(one: PackedGraphs, other: PackedGraphs) -> None:
    assert len(one) == len(other)
    mine, theirs = (g.features.csr.to_dense() if isinstance(g.features, SparseMatrix) else g.features for g in (one, other))
    assert torch.equal(mine, theirs)
    assert torch.equal(one.edges_with_loops, other.edges_with_loops)
    assert (one.edge_features is None) is (other.edge_features is None)
    if one.edge_features is not None:
        assert torch.equal(one.edge_features, other.edge_features)


def test_edges_keep_their_features_whatever_their_order() -> None:
    """A self-loop is no proper edge; ids are those of the dataset, shifted to the set."""
    graphs = bonded(2, 0)
    shift = torch.tensor([4, 4, 4, 4, -4, -4, -4])  # nodes of graph 2 are 4..7, those of graph 0 come after four nodes
    source_, target = (graphs.edges_with_loops[:, : graphs.n_edges] + shift[graphs.edges_with_loops[:, : graphs.n_edges]]).unbind()
    assert graphs.n_edges == 8
    assert graphs.edge_features.tolist() == [[10.0 * s + t, 1.0] for s, t in zip(source_.tolist(), target.tolist(), strict=True)]
    assert (graphs.n_edge_features, of(0).n_edge_features, of(0).edge_features) == (2, 0, None)


def test_sparse_features_stay_sparse() -> None:
    graphs = bonded(3, 0)
    assert isinstance(graphs.features, SparseMatrix)
    assert graphs.features.csr.to_dense()[:, [8, 0, 1, 2]].tolist() == [[9, 0, 0, 0], [0] * 4, [0, 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, 3]]
    assert graphs.n_features == 9
    torch.testing.assert_close(graphs.mean_features(), graphs.pool(graphs.features.csr.to_dense(), "mean"))
    torch.testing.assert_close(of(2, 0).mean_features(), of(2, 0).pool(of(2, 0).features, "mean"))  # type: ignore[arg-type]


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.data())
def test_sets_of_sets_with_features_of_edges(ids: list[int], data: st.DataObject) -> None:
    graphs = bonded(*ids)
    chosen = data.draw(st.lists(st.integers(0, len(ids) - 1), min_size=1, max_size=5))
    same(graphs.take(torch.tensor(chosen)), bonded(*[ids[i] for i in chosen]))
    same(graphs.merged([bonded(1), bonded(3, 0)]), bonded(*ids, 1, 3, 0))
    same(bonded(2).rebuilt({k: v.clone() for k, v in graphs.payload().items()}), graphs)


@pytest.mark.parametrize("make", [of, bonded])
@pytest.mark.parametrize("way", [lambda g: pickle.loads(pickle.dumps(g)), copy.copy], ids=["pickled", "copied"])
def test_a_set_travels_with_its_graphs_alone(make: Any, way: Any) -> None:
    """Whatever was prepared of it: what arrives is as new, and does what the set did."""
    graphs = make(0, 2, 3)
    hidden = torch.randn(graphs.n_nodes, 2, generator=torch.Generator().manual_seed(0))
    fresh = pickle.dumps(graphs)
    expected = graphs.propagate("sym", hidden)
    for _ in range(3):  # from the second epoch on operators are cut out of the whole set's
        graphs.take(torch.tensor([2, 0, 1])).propagate("sym", hidden[[*range(7, 9), *range(7)]])
    arrived = way(graphs)
    assert type(arrived) is PackedGraphs
    assert pickle.dumps(graphs) == fresh
    same(arrived, graphs)
    assert torch.equal(arrived.propagate("sym", hidden), expected)
    same(arrived.take(torch.tensor([1])), make(2))


@pytest.mark.parametrize("kind", ["sum", "sum-self", "sym"])
def test_operators_of_mini_batches_are_made_once_for_the_whole_set(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first epoch batch by batch; then once for the set, and no more however many epochs follow; results are the same bits."""
    made: list[int] = []
    original = MessageGraph.operator

    def noted(self: MessageGraph, kind: Any, device: Any) -> Any:
        made.append(self.n_nodes)
        return original(self, kind, device)

    monkeypatch.setattr(MessageGraph, "operator", noted)
    graphs = of(0, 1, 2, 3)
    hidden = torch.randn(10, 3, generator=torch.Generator().manual_seed(0))
    nodes = [range(3), range(3, 4), range(4, 8), range(8, 10)]
    passed: dict[tuple[int, ...], list[torch.Tensor]] = {}
    counted = []
    for _ in range(4):
        for ids in ((3, 0), (2, 1)):
            rows = [v for i in ids for v in nodes[i]]
            passed.setdefault(ids, []).append(graphs.take(torch.tensor(ids)).propagate(kind, hidden[rows]))
        counted.append(len(made))
    assert counted == [2, 3, 3, 3]
    assert made == [5, 5, 10]
    for results in passed.values():
        assert all(torch.equal(r, results[0]) for r in results)


REFUSED: dict[str, tuple[Any, str]] = {
    "an empty graph": (lambda: PackedSource(torch.ones(3, 1), torch.empty(2, 0).long(), torch.tensor([3, 0])), "graph 1 has no nodes"),
    "rows that are no nodes": (
        lambda: PackedSource(torch.ones(3, 1), torch.empty(2, 0).long(), torch.tensor([2])),
        r"expected float32 \[2",
    ),
    "NaN": (
        lambda: PackedSource(torch.tensor([[1.0], [torch.nan]]), torch.empty(2, 0).long(), torch.tensor([1, 1])),
        "graph 1 has a NaN",
    ),
    "an edge to nowhere": (lambda: PackedSource(torch.ones(2, 1), torch.tensor([[0], [2]]), torch.tensor([2])), r"outside 0\.\.1"),
    "an edge between graphs": (
        lambda: PackedSource(torch.ones(3, 1), torch.tensor([[0], [2]]), torch.tensor([2, 1])),
        "connects graph 0 to graph 1",
    ),
    "NaN in sparse features": (
        lambda: PackedSource(torch.tensor([[1.0], [torch.nan]]).to_sparse_csr(), NO_EDGES, torch.tensor([1, 1])),
        "graph 1 has a NaN",
    ),
    "too few features of edges": (
        lambda: PackedSource(torch.ones(2, 1), torch.tensor([[0, 1], [1, 0]]), torch.tensor([2]), "pair", edge_attr=torch.ones(1, 3)),
        r"pair: edge_attr is torch.float32 \[1, 3\]; expected dense float32 \[2, D\], one row per edge",
    ),
    "whole numbers as features of edges": (
        lambda: PackedSource(torch.ones(2, 1), torch.tensor([[0], [1]]), torch.tensor([2]), edge_attr=torch.ones(1, 3).long()),
        "edge_attr is torch.int64",
    ),
    "NaN in a feature of an edge": (
        lambda: PackedSource(
            torch.ones(3, 1), torch.tensor([[1, 2], [2, 1]]), torch.tensor([1, 2]), edge_attr=torch.tensor([[0.0], [torch.inf]])
        ),
        "an edge of graph 1 has a NaN or infinite feature",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what: str) -> None:
    build, message = REFUSED[what]
    with pytest.raises(DataError, match=message):
        build()


def test_datasets_of_graphs_are_checked() -> None:
    items, y = source(), torch.tensor([0, 1, 1, 0])
    assert GraphData(items=items, y=y, n_classes=2).n_items == 4
    for changes, message in (
        ({"y": torch.tensor([0, 1, 2, 0])}, r"labels range over 0\.\.2; expected -1\.\.1"),
        ({"y": torch.tensor([0, 1])}, r"y has shape \[2\]; expected \[4\], one entry per graph"),
        ({"y": torch.ones(4)}, "float32"),
        (
            {"y": torch.tensor([[1.0, 0], [2, 0], [torch.nan, 1], [torch.inf, 0]])},
            "2 targets are NaN or infinite, the first at item 2; remove",
        ),
        ({"known": torch.ones(4, 2, dtype=torch.bool)}, r"known is torch.bool \[4, 2\]; expected bool with the shape of y"),
        ({"y": torch.ones(4, 2, dtype=torch.bool), "known": torch.ones(4, 1, dtype=torch.bool)}, r"known is torch.bool \[4, 1\]"),
        ({"y": torch.ones(4, 3, dtype=torch.bool)}, "3 columns"),
        ({"keys": {"size": torch.ones(3).long()}}, r"size has shape \[3\]"),
    ):
        with pytest.raises(DataError, match=message):
            GraphData(**({"items": items, "y": y, "n_classes": 2} | changes))  # type: ignore[arg-type]


def test_content_hashes_see_everything() -> None:
    base = GraphData(items=source(), y=torch.tensor([0, 1, 1, 0]), n_classes=2)
    again = GraphData(items=source(), y=torch.tensor([0, 1, 1, 0]), n_classes=2)
    assert base.content_hash == again.content_hash
    others = [
        GraphData(items=source(), y=torch.tensor([0, 1, 0, 0]), n_classes=2),
        GraphData(items=source(), y=torch.tensor([0, 1, 1, 0]), n_classes=3),
        GraphData(items=source(), y=torch.tensor([0, 1, 1, 0]), n_classes=2, keys={"a": torch.zeros(4).long()}),
        GraphData(items=source(), y=torch.tensor([0, 1, 1, 0]), n_classes=2, keys={"b": torch.zeros(4).long()}),
    ]
    assert len({base.content_hash, *(o.content_hash for o in others)}) == 5


def test_the_tools_know_which_graph_is_which() -> None:
    data = tiny_graphs()
    assert node_numbers(data.items.queries(torch.tensor([7, 3, 58]), "cpu")) == [7, 3, 58]  # type: ignore[arg-type]
