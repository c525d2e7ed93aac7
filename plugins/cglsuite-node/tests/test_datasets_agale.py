"""The multi-label graphs of AGALE from tiny files in the raw formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import torch
from cglsuite_node.datasets import agale
from cglsuite_node.datasets.specs import AGALE_ORDERS, SIZES
from cglsuite_node.datasets.structural import structural_features

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError, UnknownNameError
from cglsuite.graphs import NodeData

N = 9
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5)).round(4)
# Node 4 has no label; 2 - 2 is a self-loop.
PAIRS = [(0, 1), (0, 7), (2, 2), (3, 8)]
BOTH = sorted({*PAIRS, *((v, u) for u, v in PAIRS)})


def labels(name: str) -> np.ndarray:
    y = np.random.default_rng(1).random((N, SIZES[name].classes)) < 0.3
    y[4] = False
    return y


def csv(rows: object, separator: str = ",", header: str = "") -> str:
    return header + "".join(separator.join(map(str, row)) + "\n" for row in np.asarray(rows).tolist())


def write_csv(folder: Path, name: str, edges: str, content: str) -> None:
    folder.mkdir(parents=True)
    (folder / edges).write_text(content)
    (folder / "features.csv").write_text(csv(X))
    (folder / "labels.csv").write_text(csv(labels(name).astype(float)))


def write_pcg(root: Path) -> None:
    write_csv(root / "PCG", "pcg", "edges_undir.csv", csv(BOTH))


def write_humango(root: Path) -> None:
    # One pair in both directions, as in the true file; further columns are kinds of interaction.
    rows = [(float(u), float(v), 0.5, 0.0) for u, v in [*PAIRS, (1, 0)]]
    write_csv(root / "HumanGo", "humango", "edge_list.csv", csv(rows, header="prot1,prot2,direct interaction,association\n"))


def write_dblp(root: Path) -> None:
    folder = root / "DBLPMultiLabel"
    folder.mkdir(parents=True)
    (folder / "dblp.edgelist").write_text(csv(PAIRS, "\t"))
    np.savetxt(folder / "labels.txt", labels("dblp-multilabel"), delimiter=",")


def write_blogcatalog(root: Path) -> None:
    (root / "BlogCatalog").mkdir(parents=True)
    source, target = np.array(BOTH).T
    network = scipy.sparse.csc_matrix((np.ones(len(BOTH)), (source, target)), (N, N))
    group = scipy.sparse.csc_matrix(labels("blogcatalog").astype(float))
    scipy.io.savemat(root / "BlogCatalog/blogcatalog.mat", {"network": network, "group": group})


#: loader, what writes its files, whether the files have features, the files
SETS: dict[str, tuple[Callable[[DataRoot], NodeData], Callable[[Path], None], bool, list[str]]] = {
    "pcg": (agale.pcg, write_pcg, True, ["PCG/edges_undir.csv", "PCG/features.csv", "PCG/labels.csv"]),
    "humango": (agale.humango, write_humango, True, ["HumanGo/edge_list.csv", "HumanGo/features.csv", "HumanGo/labels.csv"]),
    "dblp-multilabel": (agale.dblp, write_dblp, False, ["DBLPMultiLabel/dblp.edgelist", "DBLPMultiLabel/labels.txt"]),
    "blogcatalog": (agale.blogcatalog, write_blogcatalog, False, ["BlogCatalog/blogcatalog.mat"]),
}


def lenient(tmp_path: Path) -> DataRoot:
    return DataRoot(tmp_path / "data", tmp_path / "cache", offline=True, verify=False)


@pytest.mark.parametrize("name", SETS)
def test_raw_files(tmp_path: Path, name: str) -> None:
    loader, write, has_features, files = SETS[name]
    write(tmp_path / "data")
    data = loader(lenient(tmp_path))
    assert data.edge_index.T.tolist() == [list(pair) for pair in BOTH]
    assert data.multi_label
    assert data.y.dtype == torch.bool
    np.testing.assert_array_equal(data.y.numpy(), labels(name))
    assert not data.y[4].any()
    expected = X.astype(np.float32) if has_features else structural_features(np.array(PAIRS).T, N)
    np.testing.assert_array_equal(data.x.to_dense().numpy(), expected)
    assert (data.name, data.n_classes) == (name, SIZES[name].classes)
    assert data.official_split is None
    again = loader(lenient(tmp_path))  # from the cache
    assert again.content_hash == data.content_hash
    assert again.y.dtype == torch.bool
    assert sorted(p.relative_to(tmp_path / "data").as_posix() for p in (tmp_path / "data").rglob("*") if p.is_file()) == sorted(files)


@pytest.mark.parametrize(("name", "file"), [(name, file) for name in SETS for file in SETS[name][3]])
def test_absent_file_says_where_it_goes(tmp_path: Path, name: str, file: str) -> None:
    loader, write, _, _ = SETS[name]
    write(tmp_path / "data")
    (tmp_path / "data" / file).unlink()
    with pytest.raises(DataError) as error:
        loader(lenient(tmp_path))
    assert f"{tmp_path}/data/{file}" in str(error.value)
    assert "https://github.com/Tianqi-py/MLGNC" in str(error.value)
    assert "with sha256" in str(error.value)


@pytest.mark.parametrize(("name", "file"), [(name, SETS[name][3][-1]) for name in SETS])
def test_truncated_labels(tmp_path: Path, name: str, file: str) -> None:
    loader, write, _, _ = SETS[name]
    write(tmp_path / "data")
    path = tmp_path / "data" / file
    for kept in (0.0, 0.5):
        path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
        with pytest.raises(DataError, match=rf"{name}.*{path}"):
            loader(lenient(tmp_path))


@pytest.mark.parametrize("name", SETS)
def test_other_files_than_the_published_ones(tmp_path: Path, name: str) -> None:
    loader, write, _, _ = SETS[name]
    write(tmp_path / "data")
    with pytest.raises(DataError, match="has the wrong checksum"):
        loader(DataRoot(tmp_path / "data", tmp_path / "cache", offline=True))


def test_nan_features_are_counted(tmp_path: Path) -> None:
    write_pcg(tmp_path / "data")
    x = X.copy()
    x[[3, 5], 2] = np.nan
    (tmp_path / "data/PCG/features.csv").write_text(csv(x))
    with pytest.raises(DataError, match=r"pcg: 2 feature values are NaN or infinite, the first at node 3; .*read from .*features\.csv"):
        agale.pcg(lenient(tmp_path))


@pytest.mark.parametrize(("value", "shown"), [(2, "2"), (-1, "-1"), (np.nan, "nan"), (0.5, "0.5")])
def test_label_that_is_neither_zero_nor_one(tmp_path: Path, value: float, shown: str) -> None:
    write_pcg(tmp_path / "data")
    y = labels("pcg").astype(float)
    y[6, 3] = value
    (tmp_path / "data/PCG/labels.csv").write_text(csv(y))
    with pytest.raises(DataError, match=rf"pcg: the label row of node 6 has the value {shown}.*; expected 0 or 1.*labels\.csv"):
        agale.pcg(lenient(tmp_path))


@pytest.mark.parametrize(
    ("write", "loader", "file", "content", "message"),
    [
        (write_pcg, agale.pcg, "PCG/edges_undir.csv", "0,1\n1,9\n", r"edges refer to nodes 0\.\.9; expected 0\.\.8"),
        (write_pcg, agale.pcg, "PCG/edges_undir.csv", "0,1\n1,\n", r"edge 1 connects \[1\.0, nan\]; expected the ids of two nodes"),
        (write_pcg, agale.pcg, "PCG/edges_undir.csv", "0,x\n", "pcg cannot be read"),
        (write_pcg, agale.pcg, "PCG/features.csv", csv(X[:-1]), r"edges refer to nodes 0\.\.8; expected 0\.\.7"),
        (
            write_pcg,
            agale.pcg,
            "PCG/labels.csv",
            csv(labels("pcg")[:-1].astype(int)),
            r"x is torch.float32 \[9, 5\]; expected float32 \[8, F\]",
        ),
        (write_pcg, agale.pcg, "PCG/labels.csv", csv(labels("pcg")[:, 1:].astype(int)), "y has 14 columns; expected one per label, 15"),
        (write_dblp, agale.dblp, "DBLPMultiLabel/dblp.edgelist", "0\t1\n2\t9\n", r"edges refer to nodes 0\.\.9; expected 0\.\.8"),
        (write_dblp, agale.dblp, "DBLPMultiLabel/dblp.edgelist", "0\t1\t2\n", "has 3 columns"),
    ],
)
def test_bad_content(
    tmp_path: Path, write: Callable[[Path], None], loader: Callable[[DataRoot], NodeData], file: str, content: str, message: str
) -> None:
    write(tmp_path / "data")
    (tmp_path / "data" / file).write_text(content)
    with pytest.raises(DataError, match=rf"(?s){message}.*{tmp_path}/data/{file}"):
        loader(lenient(tmp_path))


def test_blogcatalog_matrices_that_do_not_fit(tmp_path: Path) -> None:
    write_blogcatalog(tmp_path / "data")
    group = scipy.sparse.csc_matrix(labels("blogcatalog")[:-1].astype(float))
    scipy.io.savemat(tmp_path / "data/BlogCatalog/blogcatalog.mat", {"network": scipy.sparse.eye(N, format="csc"), "group": group})
    with pytest.raises(DataError, match=r"blogcatalog: network has shape \[9, 9\] and group \[8, 39\]"):
        agale.blogcatalog(lenient(tmp_path))
    scipy.io.savemat(tmp_path / "data/BlogCatalog/blogcatalog.mat", {"group": group})
    with pytest.raises(DataError, match="blogcatalog cannot be read .*network"):
        agale.blogcatalog(lenient(tmp_path))


# Class orders


def write_orders(tmp_path: Path, content: str) -> None:
    (tmp_path / "data/DBLPMultiLabel").mkdir(parents=True, exist_ok=True)
    (tmp_path / "data/DBLPMultiLabel/agale_class_orders.json").write_text(content)


def test_class_orders(tmp_path: Path) -> None:
    write_orders(tmp_path, json.dumps({"orders": [[[3, 0], [1, 2]], [[0, 1, 2, 3]]], "description": ""}))
    assert agale.agale_orders(lenient(tmp_path), "dblp-multilabel") == [[3, 0, 1, 2], [0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"orders": [[[3, 0], [1]]]}', r"the order \[3, 0, 1\] is not a permutation of the classes 0\.\.3"),
        ('{"orders": [[3, 0, 1, 2]]}', "cannot be read .TypeError"),
        ('{"tasks": []}', "cannot be read .KeyError: 'orders'"),
        ('{"orders": [[[3,', "cannot be read .JSONDecodeError"),
    ],
)
def test_bad_class_orders(tmp_path: Path, content: str, message: str) -> None:
    write_orders(tmp_path, content)
    with pytest.raises(DataError, match=rf"agale_class_orders\.json.*{message}"):
        agale.agale_orders(lenient(tmp_path), "dblp-multilabel")


def test_class_orders_that_are_absent_or_unknown(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"PCG/agale_class_orders\.json"):
        agale.agale_orders(lenient(tmp_path), "pcg")
    with pytest.raises(UnknownNameError, match="class orders of AGALE 'humango'"):
        agale.agale_orders(lenient(tmp_path), "humango")


def test_embedded_orders_are_permutations() -> None:
    for name, orders in AGALE_ORDERS.items():
        assert len(set(orders)) == 3
        assert all(sorted(order) == list(range(SIZES[name].classes)) for order in orders)
