"""Data files become data sets: npz, CSV folders and saved PyG graphs of all levels; what does not fit is named with the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData, LinkData, NodeData
from cglsuite.graphs.files.forms import form_of_arrays
from cglsuite.graphs.files.given import content_of, data_spec
from cglsuite.graphs.files.named import named
from cglsuite.graphs.files.tables import read_arrays
from cglsuite.graphs.loading.given import given_data

X = np.array([[1.0, 0], [0, 2], [3, 0], [0, 4]])
EDGES = np.array([[0, 1, 2, 2], [1, 2, 3, 0]])
Y = np.array([0, 1, 1, 0])
NODES = {"x": X, "edge_index": EDGES, "y": Y}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))


def npz(folder: Path, name: str = "photo.npz", **arrays: Any) -> Path:
    np.savez(folder / name, **arrays)
    return folder / name


def loaded(path: Path) -> NodeData | LinkData | GraphData:
    with named(data=[path]):
        return given_data(DataRoot(cache=path.parent / "cache"), content=content_of(path))


def dense(data: NodeData) -> torch.Tensor:
    return data.x.to_dense() if data.x.layout == torch.sparse_csr else data.x


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.int64, np.float64])
def test_nodes_of_an_npz(tmp_path: Path, kind: Any) -> None:
    path = npz(tmp_path, x=X, edge_index=EDGES.astype(kind), y=Y.astype(kind), time=np.array([3, 1, 2, 1]))
    data = loaded(path)
    assert isinstance(data, NodeData)
    assert torch.equal(dense(data), torch.tensor(X, dtype=torch.float32))
    assert data.edge_index.tolist() == [[0, 1, 2, 2], [1, 2, 0, 3]]  # sorted by (source, target)
    assert (data.y.tolist(), data.n_classes, data.official_split) == ([0, 1, 1, 0], 2, None)
    assert data.keys["time"].tolist() == [3, 1, 2, 1]


def test_masks_become_the_official_split(tmp_path: Path) -> None:
    path = npz(tmp_path, **NODES, train_mask=Y == 1, val=np.array([1, 0, 0, 0]), test=np.array([3]))
    data = loaded(path)
    assert isinstance(data, NodeData)
    assert data.official_split is not None
    assert data.official_split.tolist() == [1, 0, 0, 2]
    spec = data_spec(path)
    assert (spec.name, spec.levels, spec.labels, spec.official_split, spec.keys) == ("photo", ("NC",), "single", True, ())


def test_sparse_parts_and_the_names_of_other_tools(tmp_path: Path) -> None:
    """The layout in which the Amazon graphs are published: attributes and adjacency as parts of CSR matrices, and ``labels``."""
    attr, adj = scipy.sparse.csr_matrix(X), scipy.sparse.csr_matrix((np.ones(4), EDGES), shape=(4, 4))
    parts = {f"{n}_{p}": getattr(m, p) for n, m in (("attr", attr), ("adj", adj)) for p in ("data", "indices", "indptr", "shape")}
    data, plain = loaded(npz(tmp_path, labels=Y, **parts)), loaded(npz(tmp_path, "plain.npz", **NODES))
    assert isinstance(data, NodeData)
    assert data.content_hash == plain.content_hash


def test_a_folder_of_tables(tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    rows = ["id,a,b,y,split,time", "p,1,0,cat,train,3", "q,0,2,dog,val,1", "r,3,0,dog,test,2", "s,0,4,cat,,1"]
    (folder / "nodes.csv").write_text("\n".join(rows))
    (folder / "edges.csv").write_text("source,target\np,q\nq,r\nr,s\nr,p\n")
    data = loaded(folder)
    assert isinstance(data, NodeData)
    assert data.official_split is not None
    assert torch.equal(dense(data), torch.tensor(X, dtype=torch.float32))
    assert (data.y.tolist(), data.official_split.tolist(), data.keys["time"].tolist()) == ([0, 1, 1, 0], [0, 1, 2, -1], [3, 1, 2, 1])
    assert data.edge_index.tolist() == [[0, 1, 2, 2], [1, 2, 0, 3]]


def test_a_saved_pyg_graph_is_read_without_its_code(tmp_path: Path) -> None:
    graph = Data(x=torch.tensor(X, dtype=torch.float32), edge_index=torch.from_numpy(EDGES), y=torch.from_numpy(Y))
    torch.save(graph, tmp_path / "g.pt")
    data, plain = loaded(tmp_path / "g.pt"), loaded(npz(tmp_path, "plain.npz", **NODES))
    assert data.content_hash == plain.content_hash

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (open, (str(tmp_path / "written"), "w"))

    torch.save({"x": Evil()}, tmp_path / "evil.pt")
    with pytest.raises(DataError, match=r"evil\.pt cannot be read as PyG Data without running code from the file"):
        data_spec(tmp_path / "evil.pt")
    assert not (tmp_path / "written").exists()


def test_links_and_whole_graphs(tmp_path: Path) -> None:
    labelled = loaded(npz(tmp_path, "signs.npz", links=EDGES, x=X, y=Y))
    assert isinstance(labelled, LinkData)
    assert (labelled.n_items, labelled.n_classes, labelled.n_nodes) == (4, 2, 4)
    assert data_spec(npz(tmp_path, "signs.npz", links=EDGES, x=X, y=Y)).levels == ("LC",)
    predicted = npz(tmp_path, "friends.npz", links=EDGES)
    assert data_spec(predicted).levels == ("LP",)
    links = loaded(predicted)
    assert isinstance(links, LinkData)
    assert (links.y.tolist(), links.n_nodes, links.n_features) == ([[True]] * 4, 4, None)
    graphs = {"x": X, "edge_index": EDGES[:, [0, 2]], "graph": np.array([0, 0, 1, 1])}
    assert data_spec(npz(tmp_path, "a.npz", **graphs, y=np.array([0, 1]))).levels == ("GC",)
    assert data_spec(npz(tmp_path, "b.npz", **graphs, y=np.array([0.5, 1.2]))).levels == ("GR",)
    whole = loaded(tmp_path / "a.npz")
    assert isinstance(whole, GraphData)
    assert (whole.n_items, whole.y.tolist()) == (2, [0, 1])
    saved = [Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([k])) for k in range(2)]
    torch.save(saved, tmp_path / "list.pt")
    assert data_spec(tmp_path / "list.pt").levels == ("GC",)


def test_the_same_content_has_the_same_name_wherever_it_lies(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    first, second = npz(tmp_path, **NODES), npz(tmp_path / "sub", **NODES)
    changed = npz(tmp_path, "other.npz", **{**NODES, "x": X + 1})
    assert content_of(first) == content_of(second) != content_of(changed)
    with named(data=[second]), pytest.raises(DataError, match="none of the data files passed with --data"):
        given_data(DataRoot(cache=tmp_path / "cache"), content=content_of(changed))


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no y": ({"x": X, "edge_index": EDGES}, r"has no array 'y'; it has edge_index, x"),
    "transposed": ({**NODES, "edge_index": EDGES[:, :3].T}, r"edge_index has shape \[3, 2\]; expected \[2, E\].*give edge_index\.T"),
    "from one": ({**NODES, "edge_index": EDGES + 1}, r"refer to nodes 1 to 4; expected 0 to 3.*subtract 1"),
    "fraction of an edge": ({**NODES, "edge_index": EDGES + 0.5}, r"edge_index has dtype float64; expected whole numbers"),
    "length": ({**NODES, "y": Y[:3]}, r"y has shape \[3\]; expected \[4\]"),
    "nan": ({**NODES, "x": np.where(X == 3, np.nan, X)}, r"1 NaN or infinite values, the first at node 2"),
    "text": ({**NODES, "x": X.astype(str)}, r"x has dtype <U\d+; expected a numeric array"),
    "real y": ({**NODES, "y": Y + 0.5}, r"y contains 0\.5; expected class numbers"),
    "sparse classes": ({**NODES, "y": Y * 40}, r"has 2 classes with numbers up to 40.*return_inverse"),
    "negative class": ({**NODES, "y": Y - 3}, r"y holds -3; expected classes from 0"),
    "no label": ({**NODES, "y": np.full(4, -1)}, r"no labels"),
    "one mask": ({**NODES, "train": Y == 1}, r"has train but no validation"),
    "overlap": ({**NODES, "train": Y == 1, "val": Y == 1, "test": Y == 0}, r"item 1 is in both train and validation"),
    "empty mask": ({**NODES, "train": Y == 1, "val": Y == 5, "test": Y == 0}, r"validation is empty"),
    "twice": ({**NODES, "labels": Y}, r"two arrays for 'y'"),
    "parts": ({"edge_index": EDGES, "y": Y, "x_data": X[0]}, r"x_data but not x_indices, x_indptr, x_shape"),
    "time": ({**NODES, "time": np.array([1.5, 2, 3, 4])}, r"the time of item 0 is 1\.5; expected whole numbers up to 2\^53, or dates"),
    "both": ({**NODES, "links": EDGES, "graph": Y}, r"contains both 'links' and 'graph'"),
    "graphs mixed": (
        {**NODES, "graph": np.array([0, 1, 0, 1])},
        r"expected graph to number the graphs consecutively from 0, as in 0, 0, 1, 1",
    ),
    "edge between graphs": ({**NODES, "graph": np.array([0, 0, 1, 1]), "y": np.array([0, 1])}, r"edge 1 connects nodes of two different"),
    "objects": ({**NODES, "y": np.array([{}, 1, 2, 3], dtype=object)}, r"contains Python objects"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit_is_named(tmp_path: Path, case: str) -> None:
    arrays, message = BAD[case]
    path = npz(tmp_path, **arrays)
    with pytest.raises(DataError, match=message) as error:
        form_of_arrays(path, read_arrays(path))
    assert str(path) in str(error.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "photo.npz").write_bytes(b"PK\x03\x04 torn")
    (tmp_path / "photo.txt").write_text("x")
    for name, message in (
        ("photo.npz", "is damaged or not an npz"),
        ("photo.txt", "expected an .npz"),
        ("phot.npz", "did you mean"),
    ):
        with pytest.raises(DataError, match=message):
            read_arrays(tmp_path / name)
