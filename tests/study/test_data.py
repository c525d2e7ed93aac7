"""Data in memory become files: what each form of data leaves in the file, under which name, and when two are the same file."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from cglsuite.base.errors import DataError, UsageError
from cglsuite.graphs import GraphData, GraphSet, NodeData, PackedSource
from cglsuite.graphs.files.tables import read_arrays
from cglsuite.study import data as study_data
from cglsuite.study.data import as_data_file

X = np.array([[1.0, 0], [0, 2], [3, 0]], dtype=np.float32)
ARRAYS: dict[str, Any] = {"x": X, "edge_index": np.array([[0, 1], [1, 2]]), "y": np.array([0, 1, 1])}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def graph(**more: Any) -> Data:
    return Data(**{name: torch.from_numpy(values) for name, values in ARRAYS.items()}, **more)


def stored(path: Path) -> dict[str, Any]:
    """What is in the file, by its own names."""
    with np.load(path, allow_pickle=False) as opened:
        return {name: opened[name].tolist() for name in opened.files}


PLAIN = {name: values.tolist() for name, values in ARRAYS.items()}


def test_arrays_and_tensors(cache: Path) -> None:
    """Values as they are; tensors with gradients and sparse matrices too."""
    given = {**ARRAYS, "x": torch.from_numpy(X).requires_grad_(), "y": [0, 1, 1], 7: np.float32(2.5)}
    path = as_data_file(given)
    assert stored(path) == {**PLAIN, "7": 2.5}
    assert path.name == "data.npz"
    assert path.parents[1] == cache / "given"
    assert re.fullmatch("[0-9a-f]{16}", path.parent.name)
    assert [p.name for p in path.parent.iterdir()] == ["data.npz"]
    sparse = as_data_file({**ARRAYS, "x": scipy.sparse.coo_matrix(X)}, "mine")
    assert sparse.name == "mine.npz"
    assert sorted(stored(sparse)) == ["edge_index", "x_data", "x_indices", "x_indptr", "x_shape", "y"]
    np.testing.assert_array_equal(read_arrays(sparse)["x"].toarray(), X)


OBJECTS: list[tuple[list[Any], list[Any]]] = [
    (["a", None, "b"], ["a", "", "b"]),
    (["a", float("nan"), "b"], ["a", "", "b"]),
    ([datetime.date(2021, 3, 5), datetime.date(2021, 3, 6), None], ["2021-03-05", "2021-03-06", ""]),
    ([datetime.datetime(2021, 3, 5, 10, 30, tzinfo=datetime.UTC)] * 3, ["2021-03-05T10:30:00+00:00"] * 3),
    ([pd.Timestamp("2021-03-05"), pd.NaT, pd.Timestamp("2021-03-06")], ["2021-03-05T00:00:00", "", "2021-03-06T00:00:00"]),
    ([0, 1, 2], [0, 1, 2]),
]


@pytest.mark.parametrize(("cells", "read"), OBJECTS)
def test_arrays_of_objects_are_what_they_hold(cells: list[Any], read: list[Any]) -> None:
    """Text, dates and numbers, with what pandas writes for nothing."""
    assert stored(as_data_file({"y": np.array(cells, dtype=object)})) == {"y": read}
    assert stored(as_data_file({"y": pd.Series(cells, dtype=object)})) == {"y": read}


def test_numbers_beside_nothing() -> None:
    masked = np.ma.masked_array([0, 1, 2], mask=[False, True, False])
    assert stored(as_data_file({"y": np.ma.masked_array([0, 1])})) == {"y": [0, 1]}
    np.testing.assert_array_equal(stored(as_data_file({"y": masked}))["y"], [0, np.nan, 2])
    for cells in ([0, None, 2], [0.0, pd.NA, 2.0], [np.int64(0), float("nan"), 2]):
        np.testing.assert_array_equal(stored(as_data_file({"y": np.array(cells, dtype=object)}))["y"], [0, np.nan, 2])


def test_names_that_no_file_takes_are_not_used() -> None:
    assert stored(as_data_file({**ARRAYS, "file": [1, 2, 3], "allow_pickle": [1, 2, 3]})) == {**PLAIN, "not used": ["allow_pickle", "file"]}


def test_the_name_of_the_file_is_that_of_the_content() -> None:
    """Names, types, shapes and values count; the order of names and where arrays lie in memory do not."""
    first = as_data_file(ARRAYS)
    written = first.stat().st_mtime_ns
    assert as_data_file(dict(reversed(ARRAYS.items()))) == first
    assert as_data_file({**ARRAYS, "x": np.asfortranarray(X)}) == first
    assert as_data_file(graph()) == first
    assert first.stat().st_mtime_ns == written  # it was not written again
    others = [
        {**ARRAYS, "x": X + 1},
        {**ARRAYS, "x": X.astype(np.float64)},
        {**ARRAYS, "x": X.reshape(2, 3)},
        {**ARRAYS, "z": np.array([0])},
        {("edges" if name == "edge_index" else name): value for name, value in ARRAYS.items()},
    ]
    assert len({first.parent.name, *(as_data_file(other).parent.name for other in others)}) == 6
    assert as_data_file(ARRAYS, "other").parent == first.parent


def test_a_graph_with_training_nodes_only_has_no_split() -> None:
    """As KarateClub; with all three masks they stay."""
    masks = {name: torch.tensor([k == n for k in range(3)]) for n, name in enumerate(("train_mask", "val_mask", "test_mask"))}
    alone = as_data_file(graph(train_mask=masks["train_mask"]))
    assert stored(alone) == {**PLAIN, "not used": ["train_mask"]}
    assert read_arrays(alone)["train"] is None  # so that whoever reads the file says what it is without
    two = {name: masks[name] for name in ("train_mask", "val_mask")}
    assert sorted(stored(as_data_file(graph(**two)))) == ["edge_index", "train_mask", "val_mask", "x", "y"]  # refused where it is read
    whole = stored(as_data_file(graph(**masks)))
    assert {name: whole[name] for name in masks} == {name: mask.tolist() for name, mask in masks.items()}
    # What the user gives as arrays is taken as it is.
    assert "train_mask" in stored(as_data_file({**ARRAYS, "train_mask": np.array([True, False, False])}))


def test_a_list_of_graphs_is_their_union() -> None:
    whole = Data(**{**graph().to_dict(), "y": torch.tensor([1])}, domain=torch.tensor([2]), time=3)
    made = stored(as_data_file([whole, whole], "mine"))
    assert (made["y"], made["domain"], made["time"]) == ([[1], [1]], [2, 2], [3, 3])
    assert made["graph"] == [0, 0, 0, 1, 1, 1]
    assert made["edge_index"] == [[0, 1, 3, 4], [1, 2, 4, 5]]
    assert made["x"] == PLAIN["x"] * 2
    assert stored(as_data_file((whole,)))["graph"] == [0, 0, 0]
    # One graph with labels of its nodes, as list(KarateClub()).
    assert stored(as_data_file([graph()])) == PLAIN
    with pytest.raises(DataError, match="^mine: graph 1 has no y; expected"):
        as_data_file([whole, Data(x=torch.eye(2), edge_index=torch.zeros(2, 0))], "mine")
    with pytest.raises(DataError, match="^data: graph 0 has no y; expected"):
        as_data_file([Data(x=torch.eye(2), edge_index=torch.zeros(2, 0))])


@pytest.mark.parametrize(
    ("given", "kind"),
    [(3, "int"), (None, "NoneType"), ([], "list"), ([graph(), 3], "list"), ([3, graph()], "list"), (X, "ndarray"), (set(), "set")],
)
def test_data_of_another_form(given: Any, kind: str) -> None:
    with pytest.raises(UsageError, match=f"^data is a {kind}; expected the name of a data set, a path to a data file, pyg:<class>/<name>"):
        as_data_file(given)


def test_paths_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert as_data_file("a/b.npz") == as_data_file(Path("a/b.npz"), "x") == tmp_path / "a" / "b.npz"
    assert as_data_file("~/b.npz") == tmp_path / "home" / "b.npz"


@pytest.mark.parametrize("sparse", [False, True])
def test_node_data(sparse: bool) -> None:
    """Features of either layout, the official split as masks, and further attributes."""
    x = torch.from_numpy(X)
    given = NodeData(
        x=x.to_sparse_csr() if sparse else x,
        edge_index=torch.tensor([[0, 1], [1, 2]]),
        y=torch.tensor([0, 1, 1]),
        n_classes=2,
        official_split=torch.tensor([0, 2, -1], dtype=torch.int8),
        keys={"year": torch.tensor([3, 4, 5])},
        name="papers",
    )
    path = as_data_file(given)
    assert path.name == "papers.npz"
    assert as_data_file(given, "mine").name == "mine.npz"
    made = stored(path)
    assert {name: made[name] for name in ("train", "validation", "test", "year")} == {
        "train": [True, False, False],
        "validation": [False, False, False],
        "test": [False, True, False],
        "year": [3, 4, 5],
    }
    read = read_arrays(path)["x"]
    np.testing.assert_array_equal(read.toarray() if sparse else read, X)
    assert (made["edge_index"], made["y"]) == (PLAIN["edge_index"], PLAIN["y"])
    bare = NodeData(x=x, edge_index=given.edge_index, y=given.y, n_classes=2)
    said = {"n_classes": 2, "known": [True, True, True]}
    assert (stored(as_data_file(bare)), as_data_file(bare).name) == (PLAIN | said, "graph.npz")


def test_data_of_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the library's name, unless another is given."""
    asked: list[str] = []

    def load(reference: str) -> tuple[Any, str]:
        asked.append(reference)
        return graph(), "club"

    monkeypatch.setattr(study_data, "load_from_library", load)
    assert [as_data_file(f"{library}:x", name).name for library in ("pyg", "ogb") for name in ("", "mine")] == ["club.npz", "mine.npz"] * 2
    assert asked == ["pyg:x", "pyg:x", "ogb:x", "ogb:x"]
    assert as_data_file("pygx").name == "pygx"
    assert len(asked) == 4


class Drawn:
    """Graphs that are made when they are asked for."""

    def __init__(self, source: PackedSource) -> None:
        self.source = source
        self.n_features, self.content_hash = source.n_features, "none"

    def __len__(self) -> int:
        return len(self.source)

    def training(self, ids: torch.Tensor, seed: int, device: str) -> GraphSet:
        raise AssertionError("training graphs may be augmented")

    def queries(self, ids: torch.Tensor, device: str) -> GraphSet:
        return self.source.queries(ids, device)


@pytest.mark.parametrize("edge_attr", [None, torch.tensor([[1.0], [2.0], [3.0]])])
def test_graphs_of_any_source(edge_attr: torch.Tensor | None) -> None:
    """One by one, as queries show them."""
    edges, sizes = torch.tensor([[0, 2, 4], [1, 3, 3]]), torch.tensor([2, 3, 1])
    packed = PackedSource(torch.arange(12.0).reshape(6, 2), edges, sizes, edge_attr=edge_attr)
    made = [
        stored(as_data_file(GraphData(items=items, y=torch.tensor([0, 1, -1]), n_classes=2, keys={"subject": torch.tensor([5, 6, 7])})))
        for items in (packed, Drawn(packed))
    ]
    assert made[0] == made[1]
    assert (made[1]["subject"], made[1]["edge_index"], made[1].get("edge_attr")) == (
        [5, 6, 7],
        edges.tolist(),
        None if edge_attr is None else edge_attr.tolist(),
    )
