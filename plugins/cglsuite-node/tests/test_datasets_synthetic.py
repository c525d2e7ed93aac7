"""The embedded stochastic block model: the same bits everywhere, and the properties that its parameters promise."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_node.datasets.specs import CSBM_HYPERPARAMETERS
from cglsuite_node.datasets.synthetic import sample_csbm, synthetic_csbm

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import SpecError, UnknownNameError
from cglsuite.graphs import NodeData

DEFAULTS: dict[str, Any] = {h.name: h.default for h in CSBM_HYPERPARAMETERS}


def make(**parameters: Any) -> NodeData:
    return synthetic_csbm(DataRoot(None, Path("never-made"), offline=True), **parameters)


def dense(data: NodeData) -> torch.Tensor:
    return data.x.to_dense() if data.x.layout == torch.sparse_csr else data.x


def fingerprint(arrays: dict[str, Any]) -> str:
    total = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        total.update(f"{name}{array.shape}".encode())
        total.update(np.ascontiguousarray(array, dtype=np.float64 if array.dtype.kind == "f" else np.int64).tobytes())
    return total.hexdigest()


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, "fb1bf9ac6f945b1c740232367ff1fec668f4435c381aa381aad36fa64c115212"),
        (
            {"features": "gaussian", "n_features": 16, "imbalance": 4.0, "n_nodes": 300, "seed": 3},
            "1abb20548b7cb957dfbe38d6be6b31e2c2660fbd39d483aed968340b7f6776c9",
        ),
        (
            {"n_nodes": 1000, "n_classes": 35, "words": 2.5, "avg_degree": 3.3, "signal": 1.0},
            "ff1055f826502d72bc084e214805e70983302e3962c97c3c859cb1aa176d9821",
        ),
    ],
)
def test_content_is_pinned(parameters: dict[str, Any], expected: str) -> None:
    """Published results rest on these bits: a change here needs a new dataset name."""
    assert fingerprint(sample_csbm(**{**DEFAULTS, **parameters})) == expected


def test_default_dataset() -> None:
    data = make()
    assert (data.n_nodes, data.n_features, data.n_classes, data.edge_index.shape) == (2000, 500, 10, (2, 16000))
    assert data.x.layout == torch.sparse_csr
    assert data.official_split is None
    assert data.content_hash == make().content_hash != make(seed=1).content_hash
    assert not Path("never-made").exists()


@pytest.mark.parametrize("homophily", [0.0, 0.35, 1.0])
@pytest.mark.parametrize("imbalance", [1.0, 5.0])
def test_edges(homophily: float, imbalance: float) -> None:
    data = make(n_nodes=700, n_classes=7, avg_degree=6.4, homophily=homophily, imbalance=imbalance)
    source, target = data.edge_index
    pairs = set(zip(source.tolist(), target.tolist(), strict=True))
    assert len(pairs) == source.numel() == 2 * round(700 * 6.4 / 2)
    assert pairs == {(v, u) for u, v in pairs}
    assert all(u != v for u, v in pairs)
    same = int((data.y[source] == data.y[target]).sum()) / 2
    assert same == round(homophily * round(700 * 6.4 / 2))
    sizes = data.y.bincount()
    assert sizes.max() / sizes.min() == pytest.approx(imbalance, rel=0.1)
    # Within-class edges are as many per node in small classes as in large ones.
    if homophily == 1.0:
        degrees = [float((data.y[source] == c).sum() / sizes[c]) for c in range(7)]
        assert min(degrees) > 0.7 * max(degrees)


def test_partners_are_uniform() -> None:
    """Every pair is as likely as any other of its kind: two classes of 8, one edge within and one between, over many seeds."""
    counts: dict[tuple[int, int], int] = {}
    for seed in range(600):
        arrays = sample_csbm(**{**DEFAULTS, "n_nodes": 16, "n_classes": 2, "avg_degree": 0.25, "homophily": 0.5, "seed": seed})
        order = np.argsort(arrays["y"], kind="stable")
        place = np.argsort(order)
        for u, v in place[arrays["edge_index"]].T:
            if u < v:
                counts[int(u), int(v)] = counts.get((int(u), int(v)), 0) + 1
    within = [counts.get((u, v), 0) for u in range(16) for v in range(u + 1, 16) if (u < 8) == (v < 8)]
    between = [counts.get((u, v), 0) for u in range(8) for v in range(8, 16)]
    assert (len(within), sum(within), len(between), sum(between)) == (56, 600, 64, 600)
    for observed in (within, between):
        expected = 600 / len(observed)
        chi2 = sum((o - expected) ** 2 / expected for o in observed)
        assert chi2 < len(observed) + 4 * (2 * len(observed)) ** 0.5


def test_words_are_distinct_sparse_and_tell_the_class() -> None:
    data = make(n_nodes=900, n_classes=3, n_features=600, words=12.25, signal=0.5)
    per_node = data.x.crow_indices().diff()
    assert set(per_node.tolist()) == {12, 13}
    assert float(per_node.float().mean()) == pytest.approx(12.25, abs=0.1)
    assert data.x.values().eq(1).all()
    columns = data.x.col_indices()
    rows = torch.repeat_interleave(torch.arange(900), per_node)
    assert (columns.diff()[rows.diff() == 0] > 0).all()
    x = data.x.to_dense()
    means = torch.stack([x[data.y == c].mean(0) for c in range(3)])
    assert ((x @ means.T).argmax(1) == data.y).float().mean() > 0.95
    x = make(n_nodes=900, n_classes=3, n_features=600, words=12.25, signal=0.0).x.to_dense()
    assert float(torch.stack([x[data.y == c].mean(0) for c in range(3)]).std(0).mean()) < 0.02


def test_dense_where_words_are_many() -> None:
    assert make(n_features=100, words=20).x.layout == torch.strided
    assert make(words=0).x.values().numel() == 0


def test_gaussian_features() -> None:
    data = make(features="gaussian", n_features=32, signal=0.5, n_nodes=4000, n_classes=4)
    means = torch.stack([data.x[data.y == c].mean(0) for c in range(4)])
    assert float((means.abs() - 0.5).abs().max()) < 0.15
    noise = data.x - means[data.y]
    assert float(noise.std()) == pytest.approx(1, abs=0.01)
    assert float((noise**4).mean()) == pytest.approx(2.9, abs=0.1)  # twelve uniforms: 3 - 6 / (5 · 12)


def test_a_graph_of_corafull_size() -> None:
    data = make(n_nodes=19_793, n_classes=70, n_features=8_710, avg_degree=126_842 / 19_793, words=1.1e6 / 19_793, imbalance=60)
    assert data.edge_index.shape == (2, 126_842)
    assert data.x.layout == torch.sparse_csr
    assert data.x.values().numel() == pytest.approx(1.1e6, rel=1e-3)
    source, target = data.edge_index
    assert float((data.y[source] == data.y[target]).float().mean()) == pytest.approx(0.60, abs=1e-4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_nodes": 15, "n_classes": 10}, "too few for 10 classes"),
        ({"n_nodes": 40, "avg_degree": 30.0}, "within classes, but 40 nodes with a smallest class of 4 have room for only 30;"),
        ({"n_classes": 1}, "between classes"),
        ({"n_classes": 1, "homophily": 1.0, "avg_degree": 1500.0}, "within classes"),
        ({"words": 300.0}, "at most half of n_features = 500"),
        ({"homophily": 1.5}, "at most 1"),
        ({"features": "audio"}, "binary, gaussian"),
    ],
)
def test_impossible_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make(**parameters)


def test_unknown_parameter_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="'homophily'"):
        make(homofily=0.5)


def test_edge_cases() -> None:
    assert make(avg_degree=0).edge_index.shape == (2, 0)
    assert make(n_classes=1, homophily=1.0).y.unique().tolist() == [0]
    assert make(n_nodes=20, n_classes=10, avg_degree=1, homophily=0).y.bincount().tolist() == [2] * 10
    assert dense(make(n_features=4, words=2, n_nodes=8, n_classes=2, avg_degree=1)).sum(1).eq(2).all()
