"""The real files, where ``CGLSUITE_DATA`` has them: counts as published and as PyG's own classes give them."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
import torch
from cglsuite_node.datasets.agale import agale_orders
from cglsuite_node.datasets.specs import AGALE_ORDERS, DATASETS, SIZES

from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs import NodeData
from cglsuite.protocols.begin.splits import BEGIN_FILES, begin_array, begin_split

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


@pytest.mark.parametrize(
    ("name", "nodes", "pairs", "features", "classes", "per_node"),
    [
        ("pcg", 3_233, 37_351, 32, 15, 1.928),
        ("dblp-multilabel", 28_702, 68_335, 33, 4, 1.180),
        # 18,496 rows; 1,988 pairs stand there in both directions.
        ("humango", 3_106, 18_496 - 1_988, 32, 14, 1.185),
        ("blogcatalog", 10_312, 333_983, 33, 39, 1.404),
    ],
)
def test_multi_label_counts(cache: Path, name: str, nodes: int, pairs: int, features: int, classes: int, per_node: float) -> None:
    data = load(name, cache)
    source, target = data.edge_index
    assert (data.n_nodes, data.n_features, data.n_classes) == (nodes, features, classes)
    assert int((source <= target).sum()) == pairs
    assert data.y.dtype == torch.bool
    assert float(data.y.sum() / nodes) == pytest.approx(per_node, abs=5e-4)
    assert data.y.any(dim=1).all()
    assert data.y.any(dim=0).all()
    key = source * nodes + target
    assert (key.diff() > 0).all()
    assert torch.equal(key, (target * nodes + source).sort().values)
    assert load(name, cache).content_hash == data.content_hash


def test_rows_of_humango() -> None:
    path = DataRoot.from_environment().find("HumanGo/edge_list.csv")
    assert path is not None
    ends = np.loadtxt(path, delimiter=",", skiprows=1, usecols=(0, 1))
    assert len(ends) == len(np.unique(ends, axis=0)) == 18_496
    assert len(np.unique(np.sort(ends, axis=1), axis=0)) == 18_496 - 1_988


@pytest.mark.parametrize(("name", "loops", "homophily"), [("pcg", 0, 0.17396), ("dblp-multilabel", 1_503, 0.76058)])
def test_label_homophily(cache: Path, name: str, loops: int, homophily: float) -> None:
    data = load(name, cache)
    source, target = data.edge_index
    assert int((source == target).sum()) == loops
    source, target = data.edge_index[:, source <= target]  # every edge once, self-loops too
    shared, either = (data.y[source] & data.y[target]).sum(dim=1), (data.y[source] | data.y[target]).sum(dim=1)
    assert float((shared / either).double().mean()) == pytest.approx(homophily, abs=5e-6)


def test_smallest_class_of_blogcatalog(cache: Path) -> None:
    assert int(load("blogcatalog", cache).y.sum(dim=0).min()) == 8


@pytest.mark.parametrize("name", AGALE_ORDERS)
def test_class_orders_of_agale(name: str) -> None:
    orders = agale_orders(DataRoot.from_environment(), name)
    assert orders == [list(order) for order in AGALE_ORDERS[name]]


def test_musae_twitch_domains(cache: Path) -> None:
    data = load("twitch-musae", cache)
    domain = data.keys["domain"]
    source, target = data.edge_index
    assert domain.bincount().tolist() == [9_498, 7_126, 4_648, 6_549, 1_912, 4_385, 2_772]
    assert torch.equal(domain[source], domain[target])
    one_way = domain[source[source < target]]
    assert one_way.bincount().tolist() == [153_138, 35_324, 59_382, 112_666, 31_299, 37_304, 63_462]
    assert one_way.numel() * 2 == source.numel()
    assert data.x.layout == torch.sparse_csr
    assert data.n_features == 3_170
    assert (data.x.values() == 1).all()
    assert data.y.unique().tolist() == [0, 1]
    assert load("twitch-musae", cache).content_hash == data.content_hash


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("corafull", (0.6, 0.2, 0.2)),
        ("ogbn-arxiv", (0.4, 0.1, 0.5)),
        ("twitch-gamers", (0.4, 0.1, 0.5)),
        ("ogbn-proteins", (0.4, 0.1, 0.5)),
        ("bitcoin-otc", (0.8, 0.1, 0.1)),
        ("ogbg-molhiv", (0.8, 0.1, 0.1)),
        ("aromaticity", (0.6, 0.2, 0.2)),
        ("nyctaxi", (0.6, 0.2, 0.2)),
        ("ogbg-ppa", (0.8, 0.1, 0.1)),
    ],
)
def test_splits_of_begin(name: str, shares: tuple[float, float, float]) -> None:
    split = begin_split(DataRoot.from_environment(), name)
    assert len(split) == BEGIN_FILES[name].items
    assert np.bincount(split) / len(split) == pytest.approx(shares, abs=0.01)


def test_time_splits_of_arxiv() -> None:
    years = begin_array(DataRoot.from_environment(), "ogbn-arxiv", "time_splits")
    assert years.tolist() == [1971, *range(2011, 2022)]
