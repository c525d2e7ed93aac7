"""Edge weights in message graphs: the operators of PyG, in every graph that a stream makes, and refusals where weights would be lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from own_data_lab import nodes, own_data
from torch import Tensor

from cglsuite import Catalogue
from cglsuite.base.errors import NotApplicable
from cglsuite.cells.keys import cell_key, references
from cglsuite.cells.run import build_stream, make_runner, run_cell
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.cells.storage.store import Store
from cglsuite.graphs import MessageGraph, SparseMatrix
from cglsuite.graphs.message import Operator
from cglsuite.problems.weighted import WeightedMessageGraph, unite_weights

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3], [1, 0, 2, 2, 0, 1]])  # node 2 has a loop, node 4 no edge
WEIGHTS = torch.tensor([2.0, 0.5, 3.0, 4.0, 0.0, 0.25])
LOOPS = torch.tensor([1.0, 1.0, 4.0, 1.0, 1.0])
SHORT = {"training.epochs": 2, "scenario.undirected": True}
ON = {**SHORT, "backbone.edge_weight": True}
PROTOCOLS = ["class-il@cglb-1", "class-il@begin-2", "domain-il@begin-2", "time-il@begin-2", "boundary-local@drift-2"]


def data(**changes: Any) -> dict[str, Any]:
    graph = nodes(n=960, domain=np.arange(960) // 6 % 3, time=np.arange(960) // 18 % 3)
    return graph | {"edge_weight": np.random.default_rng(1).uniform(0, 3, graph["edge_index"].shape[1])} | changes


def cell(catalogue: Catalogue, protocol: str, method: str = "bare", backbone: str | None = None, **overrides: Any) -> CellSpec:
    short = {**ON, **overrides, **({"training.epochs": 1, "training.fan_out": "()"} if "drift" in protocol else {})}
    return resolve_cell(catalogue, f"mine/{protocol}", method, backbone, overrides=short)


def dense(operator: SparseMatrix | None) -> Tensor:
    assert operator is not None
    return operator.csr.to_dense()


def normalised(edges: Tensor, weights: Tensor, n: int) -> Tensor:
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    (source, target), values = gcn_norm(edges, weights, n)
    return torch.zeros(n, n).index_put((target, source), values, accumulate=True)


def test_the_operators_are_those_of_pyg() -> None:
    graph = WeightedMessageGraph.of(MessageGraph(torch.eye(5), EDGES), WEIGHTS, LOOPS)
    torch.testing.assert_close(dense(graph.prepared("sym")), normalised(EDGES, WEIGHTS, 5))
    proper = torch.tensor([[0, 0.5, 0, 0, 0], [2, 0, 0, 0.25, 0], [0, 3, 0, 0, 0], [0] * 5, [0] * 5])
    assert torch.equal(dense(graph.prepared("sum")), proper)
    assert torch.equal(dense(graph.prepared("sum-self")), proper + torch.diag(LOOPS))
    assert torch.equal(graph.propagate("sum-self", torch.ones(5, 1)).flatten(), proper.sum(1) + LOOPS)


@pytest.mark.parametrize("kind", ["sum", "sum-self", "sym"])
def test_weights_of_one_change_nothing(kind: Operator) -> None:
    plain = MessageGraph(torch.eye(5), EDGES)
    graph = WeightedMessageGraph.of(plain, torch.ones(6), torch.ones(5))
    torch.testing.assert_close(dense(graph.prepared(kind)), dense(plain.prepared(kind)))


def test_no_edge_and_no_weight() -> None:
    alone = WeightedMessageGraph.of(MessageGraph(torch.eye(2), EDGES[:, :0]), torch.ones(0), torch.tensor([1.0, 0.0]))
    assert alone.prepared("sum") is None
    assert torch.equal(dense(alone.prepared("sym")), torch.tensor([[1.0, 0.0], [0.0, 0.0]]))


@pytest.mark.plugins
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_graph_of_a_stream_has_the_weights_of_its_edges(protocol: str) -> None:
    """Compared with the weights of the file, by the features of the ends; each edge has the larger of its two directions."""
    file = data()
    with own_data(file) as catalogue:
        stream: Any = build_stream(cell(catalogue, protocol, **{"scenario.feature_normalisation": "none"}), catalogue)
    batches = [stream.make_batch(0)] if "drift" in protocol else [stream.view(k).train for k in range(len(stream))]
    batches += [group.query for group in stream.make_queries(1 if "drift" in protocol else len(stream))]
    both = np.zeros((960, 960), np.float32)
    np.add.at(both, tuple(file["edge_index"]), file["edge_weight"].astype(np.float32))
    both = np.maximum(both, both.T)
    of_node = {row.tobytes(): number for number, row in enumerate(np.float32(file["x"]))}
    for graph in (batch.graph for batch in batches):
        assert isinstance(graph, WeightedMessageGraph)
        places = [of_node[row.tobytes()] for row in graph.dense.numpy()]
        expected = torch.from_numpy(both[np.ix_(places, places)])
        links = dense(graph.operator("sum", "cpu")) if graph.n_edges else torch.zeros_like(expected)
        if protocol != "boundary-local@drift-2":  # its queries have edges within tasks alone
            torch.testing.assert_close(links, expected.clone().fill_diagonal_(0))
        whole = links + torch.diag(expected.diag())
        ends = whole.T.nonzero().T
        torch.testing.assert_close(dense(graph.prepared("sym")), normalised(ends, whole.T[tuple(ends)], graph.n_nodes))


@pytest.mark.plugins
@pytest.mark.parametrize("backbone", ["gcn", "gin"])
@pytest.mark.parametrize("method", ["joint", "replay"])
def test_weights_decide(method: str, backbone: str, tmp_path: Path) -> None:
    """Only edges within a class have a weight that counts, and features are noise: with weights neighbours tell the class."""
    rng, n = np.random.default_rng(0), 120
    y, ends = np.arange(n) % 4, rng.integers(0, n, (2, 2400))
    x = np.eye(4)[y] + 2 * rng.normal(size=(n, 4))
    weight = np.where(y[ends[0]] == y[ends[1]], 1.0, 1e-6)
    overrides = {"training.epochs": 15, "training.lr": 0.01}
    scores = []
    with own_data({"x": x, "edge_index": ends, "y": y, "edge_weight": weight}) as catalogue:
        for on in (True, False):
            made = cell(catalogue, "task-il@cglb-1", method, backbone, **overrides, **{"backbone.edge_weight": on})
            record = run_cell(made, catalogue, Store(tmp_path / str(on)))
            assert record.done, record.reason
            assert any("weights of edges" in said for said in record.warnings) is not on
            scores.append(record.metrics["average_performance"] or 0.0)
    assert scores[0] > scores[1]


@pytest.mark.plugins
def test_off_is_a_cell_without_weights() -> None:
    """Configuration, code and bits are those of the same file without weights; on, the module counts."""
    with own_data(data()) as catalogue:
        off, on = (cell(catalogue, "class-il@cglb-1", **{"backbone.edge_weight": value}) for value in (False, True))
        unset = resolve_cell(catalogue, "mine/class-il@cglb-1", "bare", overrides=SHORT)
        assert cell_key(off, catalogue) == cell_key(unset, catalogue) != cell_key(on, catalogue)
        assert "backbone.edge_weight" not in off.configuration
        assert on.configuration["backbone.edge_weight"] is True
        modules = [[root for roots in references(made, catalogue).values() for root in roots] for made in (off, on)]
        assert set(modules[1]) - set(modules[0]) == {"cglsuite.problems.weighted:use_weights"}
        weighted = make_runner(off, catalogue, build_stream(off, catalogue)).run()
    with own_data({name: values for name, values in data().items() if name != "edge_weight"}) as catalogue:
        off = cell(catalogue, "class-il@cglb-1", **{"backbone.edge_weight": False})
        plain = make_runner(off, catalogue, build_stream(off, catalogue)).run()
    assert [prints["state"] for prints in weighted.fingerprints] == [prints["state"] for prints in plain.fingerprints]
    assert weighted.matrix == plain.matrix


@pytest.mark.plugins
@pytest.mark.parametrize(
    ("changes", "overrides", "reason"),
    [
        ({"edge_weight": None}, {}, "edges of 'mine' have no weights; for your own data, use array edge_weight"),
        ({"edge_weight": -np.ones(2880)}, {}, "an edge of 'mine' has the weight -1; expected 0 or more, since degrees are sums"),
        ({}, {"training.batch_size": 8, "training.fan_out": "5,5"}, "sampled neighbours cannot have weights; set training.fan_out = ()"),
        ({}, {"scenario.replicas": 2}, "copies of a graph cannot have weights; set scenario.replicas = 1"),
    ],
)
def test_what_cannot_have_weights_is_refused(changes: dict[str, Any], overrides: dict[str, Any], reason: str) -> None:
    with own_data(data(**changes)) as catalogue, pytest.raises(NotApplicable) as refusal:
        cell(catalogue, "class-il@cglb-1", **overrides)
    assert str(refusal.value).startswith(f"backbone.edge_weight = true: {reason}")


@pytest.mark.plugins
@pytest.mark.parametrize("name", ["edge_weight", "backbone.edge_weight"])
def test_a_backbone_without_weights_is_named(name: str) -> None:
    with own_data(data()) as catalogue, pytest.raises(NotApplicable, match=r"^backbone 'gat' cannot use edge weights \(backbone\.edge_w"):
        resolve_cell(catalogue, "mine/class-il@cglb-1", "bare", "gat", overrides={name: True})


@pytest.mark.plugins
@pytest.mark.parametrize("method", ["ssm", "twp"])
def test_methods_that_read_edges_are_skipped(method: str, tmp_path: Path) -> None:
    with own_data(data()) as catalogue:
        protocol = "boundary-local@drift-2" if method == "ssm" else "class-il@begin-2"
        record = run_cell(cell(catalogue, protocol, method), catalogue, Store(tmp_path))
    assert record.status == "skipped"
    assert str(record.reason).startswith("backbone.edge_weight = true: edge weights are not supported by attention")


def test_a_union_with_a_stored_neighbourhood_is_refused() -> None:
    class Adapter:
        @staticmethod
        def _union(graphs: list[MessageGraph]) -> tuple[MessageGraph, list[int]]:
            return graphs[0], [graph.n_nodes for graph in graphs]

    adapter: Any = Adapter()
    unite_weights(adapter)
    graph = WeightedMessageGraph.of(MessageGraph(torch.eye(5), EDGES), WEIGHTS, LOOPS)
    with pytest.raises(NotApplicable, match="stored neighbourhoods have no edge weights"):
        adapter._union([graph, MessageGraph(torch.eye(5), EDGES)])
    united, _ = adapter._union([graph, MessageGraph(torch.eye(2), EDGES[:, :0])])
    assert united.weights.tolist() == WEIGHTS.tolist()
    assert united.loops.tolist() == [*LOOPS.tolist(), 1, 1]
