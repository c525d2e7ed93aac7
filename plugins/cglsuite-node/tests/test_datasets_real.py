"""The real files, where ``CGLSUITE_DATA`` has them: counts as published and as PyG's own classes give them."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
import torch
from cglsuite_node.datasets.specs import DATASETS, SIZES

from cglsuite.datafiles import DataRoot
from cglsuite.graphs import NodeData

pytestmark = pytest.mark.realdata


def load(name: str, cache: Path) -> NodeData:
    (spec,) = (spec for spec in DATASETS if spec.name == name)
    module, _, factory = spec.factory.partition(":")
    root = DataRoot(DataRoot.from_environment().root, cache, offline=True)
    data: NodeData = getattr(importlib.import_module(module), factory)(root)
    return data


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "classes"),
    [
        ("cora", 2_708, 10_556, 1_433, 7),
        ("citeseer", 3_327, 9_104, 3_703, 6),
        ("citationfull-cora-ml", 2_995, 16_316, 2_879, 7),
        ("citationfull-citeseer", 4_230, 10_674, 602, 6),
        ("citationfull-dblp", 17_716, 105_734, 1_639, 4),
        ("amazon-clothing20", 9_360, 58_154, 9_034, 20),
    ],
)
def test_counts(cache: Path, name: str, nodes: int, edges: int, features: int, classes: int) -> None:
    data = load(name, cache)
    assert (data.n_nodes, data.edge_index.shape[1], data.n_features, data.n_classes) == (nodes, edges, features, classes)
    assert SIZES[name] == (nodes, edges, features, classes)
    assert data.x.layout == torch.sparse_csr
    assert data.y[data.y >= 0].unique().numel() == classes
    source, target = data.edge_index
    assert (source != target).all()
    key = source * nodes + target
    assert (key.diff() > 0).all()
    assert torch.equal(key, (target * nodes + source).sort().values)
    assert load(name, cache).content_hash == data.content_hash


@pytest.mark.parametrize(("name", "split"), [("cora", (140, 500, 1000)), ("citeseer", (120, 500, 1000))])
def test_planetoid_split(cache: Path, name: str, split: tuple[int, int, int]) -> None:
    data = load(name, cache)
    assert data.official_split is not None
    assert tuple(int((data.official_split == code).sum()) for code in range(3)) == split
    assert (data.y[data.official_split == 0].bincount() == 20).all()


def test_citeseer_nodes_without_label_and_without_edges(cache: Path) -> None:
    data = load("citeseer", cache)
    unlabelled = (data.y < 0).nonzero().flatten()
    degree = data.edge_index[0].bincount(minlength=data.n_nodes)
    assert unlabelled.numel() == 15
    assert not data.x.to_dense()[unlabelled].any()
    assert int((degree == 0).sum()) == 48


def test_amazon_clothing_class_sizes_and_homophily(cache: Path) -> None:
    data = load("amazon-clothing20", cache)
    sizes = data.y.bincount()
    source, target = data.edge_index
    assert (int(sizes.min()), int(sizes.max())) == (104, 1_039)
    assert float((data.y[source] == data.y[target]).float().mean()) == pytest.approx(0.926, abs=5e-4)
    assert int((source.bincount(minlength=data.n_nodes) == 0).sum()) == 802


@pytest.mark.parametrize(("name", "folder", "title"), [("cora", "Planetoid", "Cora"), ("citationfull-dblp", "CitationFull", "dblp")])
def test_as_pyg_reads_them(cache: Path, tmp_path: Path, name: str, folder: str, title: str) -> None:
    import torch_geometric.datasets

    files = DataRoot.from_environment()
    assert files.root is not None
    raw = {str(path.relative_to(files.root)): path for path in (files.root / folder / title / "raw").iterdir()}
    with DataRoot(files.root, tmp_path).stage(raw) as stage, pytest.MonkeyPatch.context() as patch:
        # Old pickles make NumPy warn.
        patch.setattr("warnings.warn", lambda *args, **kwargs: None)
        theirs = getattr(torch_geometric.datasets, folder)(str(stage / folder), title)[0]
    ours = load(name, cache)
    np.testing.assert_array_equal(ours.x.to_dense().numpy(), theirs.x.numpy())
    assert torch.equal(ours.y, theirs.y)
    assert set(map(tuple, ours.edge_index.T.tolist())) == set(map(tuple, theirs.edge_index.T.tolist()))


def test_begin_split_of_corafull_has_its_shares() -> None:
    from cglsuite_node.datasets.citation_full import _BEGIN_SHA256, _BEGIN_SPLIT, _begin_split

    path = DataRoot.from_environment().find(_BEGIN_SPLIT, sha256=_BEGIN_SHA256)
    assert path is not None
    split = _begin_split(path)
    assert len(split) == SIZES["corafull"].nodes
    assert np.bincount(split) / len(split) == pytest.approx([0.6, 0.2, 0.2], abs=0.01)
