"""The embedded graphs: the same bits everywhere, motifs that are there, targets that are the stated function."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
import torch
from cglsuite_graph.datasets.synthetic import (
    BOND_WEIGHTS,
    KIND_VALUES,
    MOTIFS,
    sample_motifs,
    sample_regression,
    synthetic_graph_regression,
    synthetic_motifs,
)

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import SpecError, UnknownNameError

NOWHERE = DataRoot(None, None, offline=True)


def test_the_same_bits_everywhere() -> None:
    assert synthetic_motifs(NOWHERE).content_hash == "ef80bdf69e1a56244ef06f04b3f0204ac75a349ed0520827e9d88f39c8ea87e4"
    assert synthetic_graph_regression(NOWHERE).content_hash == "bc07cc3bce2ba0e3fb298872af7d85e4fe6a6f8f68db5bb327bad02a4db8c57a"
    yearly = {"years": 5, "drift": 0.5}
    assert synthetic_motifs(NOWHERE, **yearly).content_hash == "694d9ac0a0a5480a6a7333767e140ab037dbe2016e9fefc10769f87cb1b893fb"
    assert synthetic_graph_regression(NOWHERE, **yearly).content_hash == "03ea817051e3c6d369950ef7debfad4e563b495da77003f26fe03fa29a54b12e"


def graphs_of(arrays: dict[str, np.ndarray]) -> list[networkx.Graph]:
    """One networkx graph per sample, nodes numbered over all of them."""
    of = np.repeat(np.arange(len(arrays["sizes"])), arrays["sizes"])
    graphs = [networkx.Graph() for _ in arrays["sizes"]]
    for node, i in enumerate(of):
        graphs[i].add_node(node)
    for (a, b), kind in zip(arrays["pairs"].T.tolist(), arrays["kinds"].tolist(), strict=True):
        assert of[a] == of[b]
        assert not graphs[of[a]].has_edge(a, b)
        graphs[of[a]].add_edge(a, b, kind=kind)
    return graphs


@pytest.mark.nightly
def test_motifs_are_planted_in_trees() -> None:
    """Each graph is connected, and has the edges of a tree and those that its motifs close cycles with."""
    arrays = sample_motifs(per_class=10, copies=2, signal=1.0, seed=3)
    for graph, y, domain in zip(graphs_of(arrays), arrays["y"], arrays["domain"], strict=True):
        motif = networkx.Graph(MOTIFS[y])
        assert networkx.is_connected(graph)
        assert len(graph) == 6 + 3 * domain + 2 * len(motif)
        assert graph.number_of_edges() - len(graph) + 1 == 2 * (motif.number_of_edges() - len(motif) + 1)
        in_cycles = graph.edge_subgraph([e for e in graph.edges if e not in set(networkx.bridges(graph))])
        if networkx.cycle_basis(motif):
            parts = [in_cycles.subgraph(part) for part in networkx.connected_components(in_cycles)]
            whole = motif.edge_subgraph([e for e in motif.edges if e not in set(networkx.bridges(motif))])
            assert len(parts) == 2
            assert all(networkx.is_isomorphic(part, whole) for part in parts)
            assert {kind for *_, kind in in_cycles.edges(data="kind")} == {y % 3}


def test_signal_decides_how_often_edges_tell_the_class() -> None:
    arrays = sample_motifs(per_class=40, copies=2, signal=0.0, seed=0)
    assert np.bincount(arrays["kinds"]).min() > 0.3 * len(arrays["kinds"])


@pytest.mark.parametrize("seed", [0, 1])
def test_the_target_is_the_stated_function(seed: int) -> None:
    arrays = sample_regression(n_graphs=25, noise=0.0, seed=seed)
    value = KIND_VALUES[arrays["nodes"]]
    for graph, y, domain in zip(graphs_of(arrays), arrays["y"], arrays["domain"], strict=True):
        assert networkx.is_connected(graph)
        assert 6 + 3 * domain <= len(graph) <= 8 + 3 * domain
        total = sum(value[v] for v in graph) + sum(BOND_WEIGHTS[k] * value[a] * value[b] for a, b, k in graph.edges(data="kind"))
        assert y == pytest.approx(total / len(graph))


def test_noise_moves_targets_by_at_most_itself() -> None:
    plain, noisy = (sample_regression(n_graphs=50, noise=noise, seed=0) for noise in (0.0, 0.25))
    moved = np.abs(plain["y"] - noisy["y"])
    assert 0 < moved.max() <= 0.25
    assert np.array_equal(plain["pairs"], noisy["pairs"])


def test_kinds_of_motif_edges_move_over_the_years() -> None:
    """With drift 1, all of them in the last year, a quarter of that in the second of five, none in the first."""
    arrays = sample_motifs(per_class=200, copies=2, signal=1.0, seed=0, years=5, drift=1.0)
    still = sample_motifs(per_class=200, copies=2, signal=1.0, seed=0)
    assert np.array_equal(arrays["pairs"], still["pairs"])
    year = np.repeat(arrays["year"], arrays["sizes"])[arrays["pairs"][0]]
    motif = int(sum(2 * 200 * len(m) for m in MOTIFS))
    own = still["kinds"][:motif]
    moved = arrays["kinds"][:motif] == (own + 1) % 3
    assert np.array_equal(own + moved, np.where(moved, own + 1, arrays["kinds"][:motif]))
    shares = [moved[year[:motif] == t].mean() for t in range(5)]
    assert shares == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0], abs=0.03)
    assert np.bincount(arrays["year"]) == pytest.approx(np.full(5, 400), rel=0.15)


def test_the_weight_of_edges_in_the_target_falls_over_the_years() -> None:
    first, last = (sample_regression(n_graphs=200, noise=0.0, seed=0, years=5, drift=drift) for drift in (0.0, 1.0))
    plain = sample_regression(n_graphs=200, noise=0.0, seed=0)
    assert np.array_equal(first["y"], plain["y"])
    of_nodes = np.bincount(np.repeat(np.arange(200), plain["sizes"]), weights=KIND_VALUES[plain["nodes"]]) / plain["sizes"]
    weight = 1 - first["year"] / 2
    assert last["y"] == pytest.approx(of_nodes + weight * (plain["y"] - of_nodes))


def test_features_are_degrees_and_kinds() -> None:
    data = synthetic_motifs(NOWHERE, per_class=10)
    graphs = data.items.queries(torch.arange(data.n_items), "cpu")
    degree = graphs.edges_with_loops[1, : graphs.n_edges].bincount(minlength=graphs.n_nodes)
    assert torch.equal(graphs.features.argmax(dim=1), degree.clamp(max=7))
    assert (data.n_classes, data.n_items, graphs.n_edge_features) == (10, 100, 3)
    assert data.keys["domain"].bincount().tolist() == [20] * 5


@pytest.mark.parametrize(
    ("given", "error", "message"), [({"per_clas": 3}, UnknownNameError, "per_clas"), ({"per_class": 2}, SpecError, "per_class")]
)
def test_parameters_are_checked(given: dict[str, int], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        synthetic_motifs(NOWHERE, **given)
