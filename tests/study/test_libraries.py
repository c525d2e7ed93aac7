"""References to data sets of PyG and OGB: what the library is asked for, what comes back, and the words of what it cannot give."""

from __future__ import annotations

import socket
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch_geometric.datasets

from cglsuite.base.errors import DataError, UsageError
from cglsuite.study.data import load_from_library

ASKED: list[Any] = []


class WithName(list):  # type: ignore[type-arg]
    def __init__(self, root: str, name: str) -> None:
        ASKED.append((root, name))
        super().__init__(["one"] if name != "Many" else ["one", "two"])


class WithoutRoot(list):  # type: ignore[type-arg]
    def __init__(self) -> None:
        super().__init__(["club"])


class Broken:
    def __init__(self, root: str) -> None:
        raise OSError("no network")


@pytest.fixture(autouse=True)
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ASKED.clear()
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path))
    for made in (WithName, WithoutRoot, Broken):
        monkeypatch.setattr(torch_geometric.datasets, made.__name__, made, raising=False)


@pytest.mark.parametrize(
    ("reference", "loaded", "name", "asked"),
    [
        ("pyg:WithName/Cora", "one", "cora", ("pyg/WithName", "Cora")),
        ("pyg:WithName/Many", ["one", "two"], "many", ("pyg/WithName", "Many")),
        ("pyg:WithName/a/b", "one", "a/b", ("pyg/WithName", "a/b")),
        ("pyg:WithoutRoot", "club", "withoutroot", None),
    ],
)
def test_data_sets_of_pyg(tmp_path: Path, reference: str, loaded: Any, name: str, asked: tuple[str, str] | None) -> None:
    """One graph by itself, several as a list; kept in the cache, where the library takes a folder."""
    assert load_from_library(reference) == (loaded, name)
    assert [(root, of) for root, of in ASKED] == ([] if asked is None else [(str(tmp_path / asked[0]), asked[1])])


@pytest.mark.parametrize(
    ("reference", "error", "says"),
    [
        ("pyg:KarateClob", UsageError, "pyg:KarateClob: torch_geometric.datasets has no KarateClob; did you mean KarateClub?"),
        ("pyg:WithName/../x", UsageError, "pyg:WithName/../x: expected pyg:CLASS, pyg:CLASS/NAME or ogb:NAME"),
        ("pyg:Zzzzzzzzzz", UsageError, "pyg:Zzzzzzzzzz: torch_geometric.datasets has no Zzzzzzzzzz"),
        ("pyg:__class__/x", UsageError, "pyg:__class__/x: torch_geometric.datasets has no __class__"),
        ("pyg:__loader__", UsageError, "pyg:__loader__: torch_geometric.datasets has no __loader__"),
        ("pyg:karate", UsageError, "pyg:karate: torch_geometric.datasets has no karate; did you mean KarateClub?"),
        (
            "pyg:WithoutRoot/x",
            UsageError,
            "pyg:WithoutRoot/x: WithoutRoot is a single data set, which takes no name: expected pyg:WithoutRoot",
        ),
        ("pyg:Broken", DataError, "pyg:Broken: PyG could not load it (OSError: no network)"),
        ("pyg:WithName", UsageError, "pyg:WithName: WithName has several data sets: expected pyg:WithName/NAME"),
        (
            "pyg:WebKB/Cora",
            DataError,
            "pyg:WebKB/Cora: PyG could not load it (AssertionError, without a message: check the name of the data set)",
        ),
    ],
)
def test_what_pyg_cannot_give(reference: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as raised:
        load_from_library(reference)
    assert str(raised.value).startswith(says)
    assert str(raised.value) == says


@pytest.mark.parametrize("year", [None, np.array([[3], [4]])])
def test_data_sets_of_ogb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, year: Any) -> None:
    """Features, edges, labels, the official split by our names, and the year as time."""

    class NodePropPredDataset:
        def __init__(self, name: str, root: str) -> None:
            if name == "none":
                raise SystemExit("no such")
            ASKED.append((name, root))

        def __getitem__(self, position: int) -> Any:
            assert position == 0
            return {"node_feat": "X", "edge_index": "E", **({} if year is None else {"node_year": year})}, "Y"

        def get_idx_split(self) -> Any:
            return {"train": [0], "valid": [1], "test": [2]}

    fake = types.ModuleType("ogb.nodeproppred")
    fake.NodePropPredDataset = NodePropPredDataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ogb", types.ModuleType("ogb"))
    monkeypatch.setitem(sys.modules, "ogb.nodeproppred", fake)
    loaded, name = load_from_library("ogb:ogbn-Arxiv")
    assert (name, ASKED) == ("ogbn-arxiv", [("ogbn-Arxiv", str(tmp_path / "ogb" / "ogbn-Arxiv"))])
    plain = {key: value.tolist() if hasattr(value, "tolist") else value for key, value in loaded.items()}
    split = {"train": [0], "validation": [1], "test": [2]}
    assert plain == {"x": "X", "edge_index": "E", "y": "Y", **split, **({} if year is None else {"time": [3, 4]})}
    with pytest.raises(DataError, match=r"^ogb:none: OGB could not load it \(SystemExit: no such\)$"):
        load_from_library("ogb:none")


class Connecting(list):  # type: ignore[type-arg]
    """As a data set of PyG: it downloads where its raw file is not there."""

    def __init__(self, root: str, name: str) -> None:
        raw = Path(root) / name / "raw" / "x.txt"
        if not raw.exists():
            socket.create_connection(("127.0.0.1", 9))
        super().__init__([raw.read_text()])


def test_offline_no_connection_is_opened_and_files_here_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_geometric.datasets, "Connecting", Connecting, raising=False)
    monkeypatch.setenv("CGLSUITE_OFFLINE", "1")
    before = socket.socket.connect
    for reference, layout in (("pyg:Connecting/Cora", "Connecting/Cora"), ("pyg:Connecting/Other", "Connecting/Other")):
        with pytest.raises(
            DataError, match=f"^{reference}: CGLSUITE_OFFLINE forbids the download; put its files into {layout}/ in a folder"
        ):
            load_from_library(reference)
    assert socket.socket.connect is before
    raw = tmp_path / "here" / "Connecting" / "Cora" / "raw"
    raw.mkdir(parents=True)
    (raw / "x.txt").write_text("from here")
    (raw.parent / "processed").mkdir()
    (raw.parent / "processed" / "y.pt").write_text("made by another version")
    monkeypatch.setenv("CGLSUITE_DATA", str(tmp_path / "here"))
    assert load_from_library("pyg:Connecting/Cora") == ("from here", "cora")
    assert not (tmp_path / "pyg" / "Connecting" / "Cora" / "processed").exists()
