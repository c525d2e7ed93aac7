"""What a named data file declares to the catalogue, and which file a cell's content means."""

from __future__ import annotations

import hashlib
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cglsuite.base.errors import DataError
from cglsuite.graphs.files.given import READER, content_of, data_spec, file_with_content
from cglsuite.graphs.files.named import named
from cglsuite.specs import DatasetSpec

X = np.array([[1.0, 0], [0, 2], [3, 0], [0, 4]])
EDGES = np.array([[0, 1, 2], [1, 2, 3]])
NODES: dict[str, Any] = {"x": X, "edge_index": EDGES, "y": np.array([0, 1, 1, 0])}
GRAPHS: dict[str, Any] = {"x": X, "edge_index": EDGES[:, [0, 2]], "graph": np.array([0, 0, 1, 1]), "y": np.array([0, 1])}
SPLIT = {"train": np.array([0]), "val": np.array([1]), "test": np.array([2])}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CGLSUITE_DATA_FILES", raising=False)


def npz(folder: Path, name: str = "photo.npz", **arrays: Any) -> Path:
    np.savez(folder / name, **arrays)
    return folder / name


@pytest.mark.parametrize(
    ("arrays", "level", "labels", "keys", "split", "size"),
    [
        (NODES, "NC", "single", (), False, "4 nodes, 3 edges, 2 features, 2 classes"),
        (
            {**NODES, **SPLIT, "z": np.arange(4), "a": np.arange(4)},
            "NC",
            "single",
            ("a", "z"),
            True,
            "4 nodes, 3 edges, 2 features, 2 classes",
        ),
        ({**NODES, "y": np.eye(4, 3)}, "NC", "multi", (), False, "4 nodes, 3 edges, 2 features, 3 labels"),
        (
            {"links": EDGES, "y": np.array([0, 1, 2])},
            "LC",
            "single",
            (),
            False,
            "3 links to be classified, 4 nodes, no features, 3 classes",
        ),
        ({"links": EDGES, "x": X}, "LP", "multi", (), False, "3 links to be predicted, 4 nodes, 2 features, 1 labels"),
        (GRAPHS, "GC", "single", (), False, "2 graphs, 4 nodes, 2 edges, 2 features, 2 classes"),
        ({**GRAPHS, "y": np.array([[0.5, 2], [1, 1]])}, "GR", "real", (), False, "2 graphs, 4 nodes, 2 edges, 2 features, 2 targets"),
        (
            {"x": np.zeros((12345, 1)), "edge_index": np.zeros((2, 1000), int), "y": np.zeros(12345, int)},
            *("NC", "single", (), False, "12,345 nodes, 1,000 edges, 1 features, 1 classes"),
        ),
    ],
)
def test_every_field_of_the_spec(
    tmp_path: Path, arrays: dict[str, Any], level: str, labels: str, keys: tuple[str, ...], split: bool, size: str
) -> None:
    path = npz(tmp_path, **arrays)
    spec = data_spec(path)
    values = {h.name: h.default for h in spec.hyperparameters}
    assert values == {"content": hashlib.sha256(path.read_bytes()).hexdigest(), "options": "{}", "reader": READER}
    declared = DatasetSpec(
        name="photo",
        summary=f"photo.npz: {size}",
        factory="cglsuite.graphs.loading.given:given_data",
        levels=(level,),
        labels=labels,
        keys=keys,
        official_split=split,
        embedded=True,
        hyperparameters=spec.hyperparameters,
    )
    assert [getattr(spec, field.name) for field in fields(DatasetSpec)] == [getattr(declared, field.name) for field in fields(DatasetSpec)]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("Photo.npz", "photo"),
        ("my photo  2.npz", "my-photo-2"),
        ("a.b_c+d-e.npz", "a.b_c+d-e"),
        ("-_ä.x.npz", "x"),
        ("..y--.npz", "y"),
    ],
)
def test_a_data_set_is_named_after_its_file(tmp_path: Path, file: str, name: str) -> None:
    path = npz(tmp_path, file, **NODES)
    assert data_spec(path).name == name
    folder = tmp_path / file
    folder.unlink()
    folder.mkdir()
    (folder / "nodes.csv").write_text("a,y\n1,0\n2,1\n")
    (folder / "edges.csv").write_text("source,target\n0,1\n")
    # Of a folder the whole name counts: a dot in it begins no extension.
    assert data_spec(folder).name == re.sub(r"[^a-z0-9._+-]+", "-", file.lower()).strip("-._+")
    assert data_spec(folder).summary.startswith(f"{file}: 2 nodes, 1 edges, 1 features, 2 classes")


def test_a_file_without_a_letter_has_no_name(tmp_path: Path) -> None:
    path = npz(tmp_path, "ä-.npz", **NODES)
    with pytest.raises(
        DataError,
        match=f"^{re.escape(str(path))}: the file name must contain a letter or digit, since the data set is named after the file$",
    ):
        data_spec(path)


def test_the_content_of_a_folder(tmp_path: Path) -> None:
    """Names and contents of its tables, whatever else lies there and wherever it is."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        (folder / "nodes.csv").write_text("a\n1\n")
        (folder / "edges.csv").write_text("source,target\n0,0\n")
    (two / "notes.txt").write_text("x")
    parts = [(name, hashlib.sha256((one / name).read_bytes()).hexdigest()) for name in ("edges.csv", "nodes.csv")]
    assert content_of(one) == hashlib.sha256("".join(f"{n}\0{c}\n" for n, c in parts).encode()).hexdigest()
    assert content_of(one) == content_of(two)
    (two / "edges.csv").rename(two / "links.csv")
    assert content_of(one) != content_of(two)
    (one / "nodes.csv").write_text("a\n12\n")
    assert content_of(one) != hashlib.sha256("".join(f"{n}\0{c}\n" for n, c in parts).encode()).hexdigest()


def test_the_file_with_a_content(tmp_path: Path) -> None:
    """The first of those named that has it and is there."""
    (tmp_path / "sub").mkdir()
    first, second = npz(tmp_path, **NODES), npz(tmp_path / "sub", **NODES)
    other = npz(tmp_path, "other.npz", **GRAPHS)
    content = content_of(first)
    with named(data=[other, first, second]):
        assert file_with_content(content) == first
        assert file_with_content(content_of(other)) == other
        first.unlink()
        assert file_with_content(content) == second
        second.unlink()
        with pytest.raises(DataError) as error:
            file_with_content(content)
    listed = ", ".join(map(str, (other, first, second)))
    said = (
        f"none of the data files passed with --data ({listed}) has SHA-256 {content[:12]}...; the file may have changed since it was passed"
    )
    assert str(error.value) == said
    with pytest.raises(DataError, match=r"passed with --data \(none\)"):
        file_with_content(content)
