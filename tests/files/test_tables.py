"""Files to arrays by name: aliases, CSV folders of every level, sparse parts, saved graphs, and the words of what is refused."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from cglsuite.base.errors import DataError, UsageError
from cglsuite.graphs.files.named import data_files, named, naming, plugin_files
from cglsuite.graphs.files.tables import arrays_of, read_arrays, together


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CGLSUITE_DATA_FILES", "CGLSUITE_DATA_OPTIONS", "CGLSUITE_PLUGIN_FILES"):
        monkeypatch.delenv(name, raising=False)


def folder(path: Path, **tables: str) -> Path:
    path.mkdir(exist_ok=True)
    for name, text in tables.items():
        (path / f"{name}.csv").write_text("\n".join(text.split()) + "\n")
    return path


def plain(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(values).tolist() for name, values in arrays.items()}


def message(path: Path) -> str:
    with pytest.raises(DataError) as error:
        read_arrays(path)
    return str(error.value)


ALIASES = {
    "features": "x",
    "attr": "x",
    "edges": "edge_index",
    "label": "y",
    "labels": "y",
    "train_mask": "train",
    "val": "validation",
    "valid": "validation",
    "val_mask": "validation",
    "valid_mask": "validation",
    "validation_mask": "validation",
    "test_mask": "test",
    "train_idx": "train",
    "val_idx": "validation",
    "valid_idx": "validation",
    "test_idx": "test",
    "batch": "graph",
    "num_nodes": "n_nodes",
}


@pytest.mark.parametrize(("name", "known"), sorted(ALIASES.items()))
def test_names_that_other_tools_give(tmp_path: Path, name: str, known: str) -> None:
    np.savez(tmp_path / "a.npz", **{name: np.arange(3), "other": np.arange(2)})
    assert plain(read_arrays(tmp_path / "a.npz")) == {known: [0, 1, 2], "other": [0, 1]}
    np.savez(tmp_path / "b.npz", **{name: np.arange(3), known: np.arange(3)})
    assert f"has two arrays for {known!r}, one of them named" in message(tmp_path / "b.npz")


def test_sparse_matrices_in_parts(tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_matrix(np.array([[0, 2.0], [3, 0], [0, 0]]))
    for prefix in ("x", "attr", "adj"):
        parts = {f"{prefix}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
        np.savez(tmp_path / "a.npz", **parts, y=np.arange(3))
        read = read_arrays(tmp_path / "a.npz")
        if prefix == "adj":
            assert plain(read) == {"edge_index": [[0, 1], [1, 0]], "y": [0, 1, 2], "edge_weight": [2, 3]}
        else:
            assert sorted(read) == ["x", "y"]
            np.testing.assert_array_equal(read["x"].toarray(), matrix.toarray())
        for absent in parts:
            np.savez(tmp_path / "b.npz", **{name: value for name, value in parts.items() if name != absent})
            there = ", ".join(name for name in parts if name != absent)
            assert f"has {there} but not {absent}; a SciPy CSR matrix needs all of its parts" in message(tmp_path / "b.npz")
    broken = {**parts, "adj_indices": np.array([0, 9])}
    np.savez(tmp_path / "b.npz", **broken)
    assert "adj_data, _indices, _indptr and _shape do not form a valid CSR matrix" in message(tmp_path / "b.npz")


NODES = "id,a,b,y p,1,0,cat q,0,2,dog r,3,0,dog"


def test_a_folder_of_nodes(tmp_path: Path) -> None:
    """Words stay words; ids may be anything; what is no label, mask or time is a feature; columns of edges that are not used are named."""
    read = read_arrays(folder(tmp_path / "a", nodes=NODES, edges="target,source,w q,p,1 r,q,1"))
    words = ["cat", "dog", "dog"]
    assert plain(read) == {"x": [[1, 0], [0, 2], [3, 0]], "y": words, "edge_index": [[0, 1], [1, 2]], "edges.csv: w": None}
    assert read["x"].dtype == np.float64
    numbered = folder(tmp_path / "b", nodes="a,label 1,7 0,3", edges="source,target 0,1")
    assert plain(read_arrays(numbered)) == {"x": [[1], [0]], "y": [7, 3], "edge_index": [[0], [1]]}
    by_number = folder(tmp_path / "c", nodes="id,a,y 10,1,0 20,0,1", edges="source,target 20,10")
    assert plain(read_arrays(by_number))["edge_index"] == [[1], [0]]


def test_masks_times_and_labels_of_a_folder(tmp_path: Path) -> None:
    """One column of words or one per mask; several labels as columns ``y_...``; an empty cell is no class."""
    nodes = "y,split,time 1,train,5 0,val,6 1,valid,7 0,validation,8 0,test,9 1,none,1 1,,2"
    read = plain(read_arrays(folder(tmp_path / "a", nodes=nodes, edges="source,target 0,1")))
    assert read["train"] == [True] + 6 * [False]
    assert read["validation"] == [False, True, True, True, False, False, False]
    assert read["test"] == [False, False, False, False, True, False, False]
    assert read["time"] == [5, 6, 7, 8, 9, 1, 2]
    assert "x" not in read
    masks = folder(tmp_path / "b", nodes="y,train_mask,val,test,a 1,1,0,0,5 0,0,1,1,6", edges="source,target 0,1")
    assert plain(read_arrays(masks)) == {
        "y": [1, 0],
        "train": [1, 0],
        "validation": [0, 1],
        "test": [0, 1],
        "x": [[5], [6]],
        "edge_index": [[0], [1]],
    }
    several = folder(tmp_path / "c", nodes="y_a,y_b,yes 1,0,4 0,1,5", edges="source,target 0,1")
    assert plain(read_arrays(several)) == {"y": [[1, 0], [0, 1]], "x": [[4], [5]], "edge_index": [[0], [1]]}
    (tmp_path / "c" / "nodes.csv").write_text("y,a\ncat,1\n,2\nant,3\n")
    assert plain(read_arrays(tmp_path / "c"))["y"] == ["cat", "", "ant"]


def test_links_and_graphs_of_a_folder(tmp_path: Path) -> None:
    """Items are rows of links.csv or graphs.csv; nodes then have features only, or are counted."""
    links = folder(tmp_path / "a", nodes="id,a p,1 q,2 r,3", links="source,target,y,time p,r,1,7 q,p,0,8", edges="source,target p,q")
    assert plain(read_arrays(links)) == {"links": [[0, 1], [2, 0]], "y": [1, 0], "time": [7, 8], "x": [[1], [2], [3]], "n_nodes": 3}
    bare = folder(tmp_path / "b", nodes="id p q r", links="source,target p,r")
    assert plain(read_arrays(bare)) == {"links": [[0], [2]], "n_nodes": 3}
    graphs = folder(tmp_path / "c", nodes="graph,a 0,1 0,2 1,3", edges="source,target 0,1", graphs="y,split 1,train 0,test")
    read = plain(read_arrays(graphs))
    assert read == {
        "y": [1, 0],
        "train": [True, False],
        "test": [False, True],
        "n_nodes": 3,
        "x": [[1], [2], [3]],
        "edge_index": [[0], [1]],
        "graph": [0, 0, 1],
    }


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ({"nodes": NODES}, "edges.csv does not exist: a data folder must contain nodes.csv and either edges.csv or links.csv"),
        ({"edges": "source,target"}, "nodes.csv does not exist: a data folder must contain"),
        ({"nodes": "id,y p,0 p,1", "edges": "source,target"}, "nodes.csv, row 3, column 'id': duplicate id: row 2 also has 'p'"),
        (
            {"nodes": NODES, "edges": "source,to p,q"},
            "edges.csv has no column 'target'; it has source, to, but source and target are required",
        ),
        ({"nodes": NODES, "edges": "from,to p,q"}, "edges.csv has no column 'source'; it has from, to, but source and target are required"),
        ({"nodes": NODES, "edges": "source,target p,q r,z"}, "edges.csv, row 3, column 'target': target 'z' is not an id in nodes.csv"),
        ({"nodes": NODES, "edges": "source,target z,q"}, "edges.csv, row 2, column 'source': source 'z' is not an id in nodes.csv"),
        (
            {"nodes": "a,y 1,0", "edges": "source,target", "graphs": "y 0"},
            "nodes.csv: column 'graph' is missing; it must contain the row number in graphs.csv",
        ),
        (
            {"nodes": "a,y x,0 1,1", "edges": "source,target 0,1"},
            "nodes.csv, row 2, column 'a': 'x' is not a number; expected numbers: encode the column, name it in the option keys, "
            "or leave it out",
        ),
        (
            {"nodes": "a,y,y_b 1,0,1", "edges": "source,target 0,0"},
            "nodes.csv has both a y column and y_* columns; expected either y (one class per row)",
        ),
        (
            {"nodes": "a,y,split 1,0,dev", "edges": "source,target 0,0"},
            "nodes.csv, row 2, column 'split': 'dev' is not a valid part; expected train, validation, test",
        ),
        (
            {"nodes": NODES, "links": "source,to p,q"},
            "links.csv has no column 'target'; it has source, to, but source and target are required",
        ),
        ({"nodes": NODES, "links": "source,target p,z"}, "links.csv, row 2, column 'target': target 'z' is not an id in nodes.csv"),
    ],
)
def test_folders_that_are_refused(tmp_path: Path, tables: dict[str, str], says: str) -> None:
    path = folder(tmp_path / "photos", **tables)
    found = message(path)
    assert found.startswith(str(path))
    assert says in found


def test_an_empty_table_has_no_header(tmp_path: Path) -> None:
    path = folder(tmp_path / "photos", edges="source,target")
    (path / "nodes.csv").write_bytes(b"")
    assert "nodes.csv is empty; expected a CSV table with a header" in message(path)


def saved(path: Path, value: Any) -> Path:
    torch.save(value, path)
    return path


def test_reading_a_pyg_file_leaves_torch_trusting_what_it_trusted(tmp_path: Path) -> None:
    """PyG registers its containers as safe when it is imported; its own datasets are read with them."""
    before = set(torch.serialization.get_safe_globals())
    assert Data in before
    read_arrays(saved(tmp_path / "a.pt", Data(x=torch.zeros(2, 1))))
    assert set(torch.serialization.get_safe_globals()) == before


def test_saved_graphs(tmp_path: Path) -> None:
    """Tensors only, whatever the extension; sparse ones as SciPy matrices; a list as its disjoint union."""
    graph = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([1, 0]), name="n", n_nodes=3)
    for name in ("a.pt", "a.pth", "a.PT"):
        read = plain(read_arrays(saved(tmp_path / name, graph)))
        assert read == {"x": [[1, 0], [0, 1]], "edge_index": [[0], [1]], "y": [1, 0], "n_nodes": 3, "name": "n"}
    other = Data(x=torch.zeros(3, 2), edge_index=torch.tensor([[2, 0], [1, 2]]), y=torch.tensor([0, 1]))
    union = plain(read_arrays(saved(tmp_path / "b.pt", [graph, other, graph])))
    assert union == {
        "x": [[1, 0], [0, 1], [0, 0], [0, 0], [0, 0], [1, 0], [0, 1]],
        "edge_index": [[0, 4, 2, 5], [1, 3, 4, 6]],
        "graph": [0, 0, 1, 1, 1, 2, 2],
        "y": [[1, 0], [0, 1], [1, 0]],
        "name": None,
    }
    sparse = Data(x=torch.tensor([[0.0, 2.0]]).to_sparse(), z=torch.tensor([[0.0, 3.0]], requires_grad=True))
    arrays = arrays_of(sparse, "d")
    assert scipy.sparse.issparse(arrays["x"])
    assert (arrays["x"].toarray().tolist(), arrays["z"].tolist()) == ([[0, 2]], [[0, 3]])


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "contains a list; expected a torch_geometric.data.Data, or a list of them if the items are whole graphs"),
        ([Data(x=torch.eye(2)), 3], "contains a list; expected"),
        ({"x": torch.eye(2)}, "contains a dict; expected"),
        (
            [Data(x=torch.eye(1), edge_index=torch.zeros(2, 0), y=torch.ones(1)), Data(x=torch.eye(2))],
            "graph 1 has no edge_index; expected x,",
        ),
    ],
)
def test_saved_files_without_a_graph(tmp_path: Path, value: Any, says: str) -> None:
    assert says in message(saved(tmp_path / "a.pt", value))


def test_each_graph_of_a_union_has_all_arrays() -> None:
    whole = {"x": np.eye(1), "edge_index": np.zeros((2, 0), int), "y": np.array(3)}
    assert plain(together(Path("d"), [whole])) == {"x": [[1]], "edge_index": [[], []], "graph": [0], "y": [[3]]}
    for name in whole:
        with pytest.raises(DataError, match=f"^d: graph 0 has no {name}; expected x, edge_index and y in every graph"):
            together(Path("d"), [{key: value for key, value in whole.items() if key != name}])


def test_files_that_are_not_there_or_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "photo.npz").write_bytes(b"no zip")
    (tmp_path / "photo.txt").write_text("x")
    (tmp_path / "torn.pt").write_bytes(b"PK\x03\x04")
    assert message(tmp_path / "phot.npz") == f"the data file {tmp_path / 'phot.npz'} does not exist; did you mean photo.npz?"
    assert message(tmp_path / "zzzzzzzz") == f"the data file {tmp_path / 'zzzzzzzz'} does not exist"
    assert message(tmp_path / "no" / "a.npz") == f"the data file {tmp_path / 'no' / 'a.npz'} does not exist"
    assert "photo.npz is damaged or not an npz file (it is not a zip archive)" in message(tmp_path / "photo.npz")
    with (tmp_path / "one.npz").open("wb") as stream:
        np.save(stream, np.arange(3))  # a single array under the wrong name
    assert "one.npz is damaged or not an npz file (it is not a zip archive): write it again with numpy.savez" in message(
        tmp_path / "one.npz"
    )
    assert "torn.pt cannot be read as PyG Data without running code from the file" in message(tmp_path / "torn.pt")
    assert message(tmp_path / "photo.txt").startswith(f"{tmp_path / 'photo.txt'}: unsupported format; expected an .npz file, a folder with")
    np.savez(tmp_path / "objects.npz", y=np.array([{}], dtype=object))
    assert "objects.npz contains Python objects, which cannot be read without running code" in message(tmp_path / "objects.npz")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: torch.zeros(1, 1).expand(4, 2**40), "but only 4 bytes are stored because it is an expanded view"),
        (
            lambda: torch.eye(4).to_sparse_bsr((2, 2)),
            "is a tensor with layout sparse_bsr; expected a dense tensor, or a sparse matrix in COO",
        ),
    ],
    ids=["expanded", "blocks"],
)
@pytest.mark.filterwarnings("ignore:Sparse BSR")
def test_tensors_that_no_array_stands_for(tmp_path: Path, make: Callable[[], torch.Tensor], says: str) -> None:
    torch.save(Data(x=make(), edge_index=torch.zeros(2, 0, dtype=torch.int64), y=torch.arange(4)), tmp_path / "a.pt")
    assert says in message(tmp_path / "a.pt")


def test_a_negated_view_is_its_values(tmp_path: Path) -> None:
    torch.save(Data(x=torch._neg_view(torch.ones(4, 2)), edge_index=torch.zeros(2, 0, dtype=torch.int64)), tmp_path / "a.pt")
    np.testing.assert_array_equal(read_arrays(tmp_path / "a.pt")["x"], -np.ones((4, 2)))


def test_an_npz_whose_header_has_no_shape(tmp_path: Path) -> None:
    header = repr({"descr": "<f4", "fortran_order": False, "shape": (True, 6)}).encode() + b"\n"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as packed:
        packed.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(24))
    assert "a.npz is damaged or not an npz file" in message(tmp_path / "a.npz")


# --- which files were named ---------------------------------------------------------------------------------------------------------


def test_files_are_named_for_this_process_and_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absolute, in order, each once; blank words are none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    a, b, c = (tmp_path / name for name in ("a.npz", "b.npz", "own.py"))
    for path in (a, b, c):
        path.write_text("")
    assert data_files() == plugin_files() == []
    with named(data=["b.npz", a], plugins=["~/own.py"]):
        assert (data_files(), plugin_files()) == ([b, a], [c])
        with named(data=[a, "b.npz"]):
            assert data_files() == [b, a]
        assert os.environ["CGLSUITE_DATA_FILES"] == os.pathsep.join(map(str, [b, a]))
        assert os.environ["CGLSUITE_PLUGIN_FILES"] == str(c)
    assert not {"CGLSUITE_DATA_FILES", "CGLSUITE_PLUGIN_FILES"} & set(os.environ)
    monkeypatch.setenv("CGLSUITE_DATA_FILES", os.pathsep.join([" ", "a.npz", "", str(a)]))
    assert data_files() == [a]
    with named(data=[b]):
        assert data_files() == [a, b]
    assert os.environ["CGLSUITE_DATA_FILES"] == os.pathsep.join([" ", "a.npz", "", str(a)])
    naming()
    assert "CGLSUITE_PLUGIN_FILES" not in os.environ


def test_files_that_cannot_be_named(tmp_path: Path) -> None:
    """Of a plugin the name must be one that can be imported; and nothing stays named after a refusal."""
    colon, dash, module, table = (tmp_path / name for name in ("a:b.npz", "my-own.py", "own.py", "own.txt"))
    for path in (colon, dash, module, table):
        path.write_text("")
    refused: list[tuple[str, Path, str]] = [
        ("data", tmp_path / "none.npz", f"no such file in {tmp_path}"),
        ("plugins", tmp_path / "none.py", f"no such file in {tmp_path}"),
        ("plugins", dash, "a plugin file must be a Python module with an importable name, such as my_method.py"),
        ("plugins", table, "a plugin file must be a Python module with an importable name, such as my_method.py"),
        ("data", colon, "the path must not contain ':', which is the separator between paths"),
    ]
    for kind, path, says in refused:
        with pytest.raises(UsageError) as error, named(**{"plugins": [module], kind: [path]}):
            pytest.fail("it was named")
        assert str(error.value) == f"{path}: {says}"
        assert not {"CGLSUITE_DATA_FILES", "CGLSUITE_PLUGIN_FILES"} & set(os.environ)
    with named(data=[dash, table]):
        assert data_files() == [dash, table]
