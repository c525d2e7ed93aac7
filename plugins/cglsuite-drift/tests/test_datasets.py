"""The datasets from tiny files in the true raw formats, and what is known of the real ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from cglsuite_drift.datasets.actor import actor
from cglsuite_drift.datasets.roman_empire import roman_empire
from cglsuite_drift.datasets.specs import SIZES
from cglsuite_drift.datasets.uai2010 import uai2010

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import NodeData

ROMAN = "HeterophilousGraphDataset/roman_empire/raw/roman_empire.npz"
UAI = "UAI2010/uai2010.npz"
ACTOR = "Actor/raw"


def lenient(tmp_path: Path) -> DataRoot:
    return DataRoot(tmp_path / "data", tmp_path / "cache", offline=True, verify=False)


def write(tmp_path: Path, relative: str, made: dict[str, Any]) -> Path:
    path = tmp_path / "data" / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **made)
    return path


# --- Roman-empire --------------------------------------------------------------------------------------------------------------


def roman(n: int = 12) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    part = np.stack([generator.permutation(n) for _ in range(10)]) % 3  # of every node in every split
    return {
        "node_features": generator.normal(size=(n, 5)).astype(np.float32),
        "node_labels": np.arange(n) % 4,
        "edges": np.array([[0, 1], [1, 2], [5, 3], [11, 0]]),
        **{f"{name}_masks": part == code for code, name in enumerate(("train", "val", "test"))},
    }


def test_roman_empire(tmp_path: Path) -> None:
    made = roman()
    write(tmp_path, ROMAN, made)
    data = roman_empire(lenient(tmp_path))
    np.testing.assert_array_equal(data.x.numpy(), made["node_features"])
    assert data.y.tolist() == made["node_labels"].tolist()
    assert data.edge_index.T.tolist() == [[0, 1], [0, 11], [1, 0], [1, 2], [2, 1], [3, 5], [5, 3], [11, 0]]
    assert (data.n_classes, data.name) == (18, "roman-empire")
    for number in (0, 9):
        split = roman_empire(lenient(tmp_path), split_number=number).official_split
        assert split is not None
        for code, name in enumerate(("train", "val", "test")):
            np.testing.assert_array_equal(split.numpy() == code, made[f"{name}_masks"][number])
    assert roman_empire(lenient(tmp_path)).content_hash == data.content_hash
    assert [p.name for p in (tmp_path / "data").rglob("*") if p.is_file()] == ["roman_empire.npz"], "nothing is written beside raw files"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("edges"), "roman-empire cannot be read .*edges"),
        (lambda m: m.update(node_labels=m["node_labels"] + 18), "labels range over 18..21; expected -1..17"),
        (lambda m: m.update(edges=m["edges"] + 5), "edges refer to nodes 5..16; expected 0..11"),
        (lambda m: m.update(val_masks=m["train_masks"]), "node .* is in more than one part of the split"),
        (lambda m: m.update(val_masks=m["val_masks"][:3]), r"the masks have shapes .*\(3, 12\).*; expected \(10, 12\)"),
        (lambda m: m["node_features"].__setitem__((3, 1), np.nan), "1 feature values are NaN or infinite, the first at node 3"),
    ],
)
def test_roman_empire_that_is_not_in_order(tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str) -> None:
    made = roman()
    change(made)
    path = write(tmp_path, ROMAN, made)
    with pytest.raises(DataError, match=message) as caught:
        roman_empire(lenient(tmp_path))
    assert str(path) in str(caught.value)


# --- UAI2010 -------------------------------------------------------------------------------------------------------------------


def uai(n: int = 10, words: int = 6) -> dict[str, Any]:
    generator = np.random.default_rng(1)
    adjacency = scipy.sparse.csr_matrix((np.ones(5, dtype=np.float32), ([0, 1, 4, 4, 7], [1, 0, 4, 2, 8])), (n, n))
    attributes = scipy.sparse.csr_matrix((generator.random((n, words)) < 0.4).astype(np.float32) * 3)
    made: dict[str, Any] = {"labels": np.arange(n) % 3}
    for kind, matrix in (("adj", adjacency), ("attr", attributes)):
        made |= {f"{kind}_data": matrix.data, f"{kind}_indices": matrix.indices, f"{kind}_indptr": matrix.indptr}
        made[f"{kind}_shape"] = np.array(matrix.shape)
    return made


def test_uai2010(tmp_path: Path) -> None:
    made = uai()
    write(tmp_path, UAI, made)
    data = uai2010(lenient(tmp_path))
    x = scipy.sparse.csr_matrix((made["attr_data"], made["attr_indices"], made["attr_indptr"]), made["attr_shape"]).toarray()
    np.testing.assert_array_equal(data.x.numpy(), x > 0)
    assert data.edge_index.T.tolist() == [[0, 1], [1, 0], [2, 4], [4, 2], [7, 8], [8, 7]], "both ways, without the self-loop of node 4"
    assert (data.n_classes, data.official_split) == (19, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(attr_indptr=m["attr_indptr"][:-1]), r"uai2010 cannot be read .*attr_\*"),
        (lambda m: m.update(adj_indptr=m["adj_indptr"] + 1), r"uai2010 cannot be read .*adj_\*"),
        (lambda m: m["attr_data"].__setitem__(0, np.nan), "attr_data contains 1 NaN or infinite values"),
        (
            lambda m: m.update(labels=m["labels"][:-1]),
            r"sizes do not match: 9 labels, an adjacency matrix of shape \(10, 10\), and features for 10 nodes",
        ),
        (lambda m: m["labels"].__setitem__(0, 19), "labels range over 0..19; expected -1..18"),
        (lambda m: m["attr_indices"].__setitem__(0, 77), "uai2010 cannot be read .*IndexError"),
    ],
)
def test_uai2010_that_is_not_in_order(tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str) -> None:
    made = uai()
    change(made)
    path = write(tmp_path, UAI, made)
    with pytest.raises(DataError, match=message) as caught:
        uai2010(lenient(tmp_path))
    assert str(path) in str(caught.value)


# --- Actor ---------------------------------------------------------------------------------------------------------------------

NODES = [(2, "0,3", 1), (0, "5", 0), (1, "1,3,4", 4), (3, "2", 2)]
EDGES = [(2, 0), (0, 2), (3, 3), (2, 0), (1, 3)]


def write_actor(tmp_path: Path, nodes: list[tuple[int, str, int]], edges: list[tuple[int, int]], **masks: list[int]) -> Path:
    folder = tmp_path / "data" / ACTOR
    folder.mkdir(parents=True)
    table = ["node_id\tfeature(feature_amount:931)\tlabel", *("\t".join(map(str, row)) for row in nodes)]
    (folder / "out1_node_feature_label.txt").write_text("\n".join(table) + "\n", encoding="utf-8")
    table = ["node_id\tnode_id", *("\t".join(map(str, row)) for row in edges)]
    (folder / "out1_graph_edges.txt").write_text("\n".join(table) + "\n", encoding="utf-8")
    parts = {"train_mask": [1, 0, 0, 0], "val_mask": [0, 1, 0, 0], "test_mask": [0, 0, 1, 0]} | masks
    for number in range(10):
        turned = {name: np.roll(np.array(mask, dtype=np.uint8), number) for name, mask in parts.items()}
        np.savez(folder / f"film_split_0.6_0.2_{number}.npz", **turned)
    return folder


def test_actor(tmp_path: Path) -> None:
    write_actor(tmp_path, NODES, EDGES)
    data = actor(lenient(tmp_path))
    expected = np.zeros((4, 6))
    expected[[2, 2, 0, 1, 1, 1, 3], [0, 3, 5, 1, 3, 4, 2]] = 1
    np.testing.assert_array_equal(data.x.to_dense().numpy(), expected)
    assert data.y.tolist() == [0, 4, 1, 2]
    assert data.edge_index.T.tolist() == [[0, 2], [1, 3], [2, 0], [3, 3]], "as the source directs them, each once"
    assert data.official_split is not None
    assert data.official_split.tolist() == [0, 1, 2, -1]
    again = actor(lenient(tmp_path), split_number=2).official_split
    assert again is not None
    assert again.tolist() == [2, -1, 0, 1]


@pytest.mark.parametrize(
    ("nodes", "edges", "masks", "message"),
    [
        ([*NODES[:3], (4, "2", 2)], EDGES, {}, r"found 4 nodes whose ids are not 0\.\.3"),
        ([*NODES[:3], (3, "", 2)], EDGES, {}, "actor cannot be read .*ValueError"),
        ([*NODES[:3], (3, "-1", 2)], EDGES, {}, "found a keyword with id -1; expected ids of at least 0"),
        ([*NODES[:3], (3, "2", 5)], EDGES, {}, "labels range over 0..5; expected -1..4"),
        (NODES, [*EDGES, (0, 4)], {}, "edges refer to nodes 0..4; expected 0..3"),
        (NODES, EDGES, {"val_mask": [1, 0, 0, 0]}, "node 0 is in more than one part of the split"),
    ],
)
def test_actor_that_is_not_in_order(
    tmp_path: Path, nodes: list[tuple[int, str, int]], edges: list[tuple[int, int]], masks: dict[str, list[int]], message: str
) -> None:
    folder = write_actor(tmp_path, nodes, edges, **masks)
    with pytest.raises(DataError, match=message) as caught:
        actor(lenient(tmp_path))
    assert str(folder) in str(caught.value)


# --- all of them ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loader", "relative", "made"), [(roman_empire, ROMAN, roman()), (uai2010, UAI, uai())])
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_truncated_files_are_named(
    tmp_path: Path, loader: Callable[[DataRoot], NodeData], relative: str, made: dict[str, Any], kept: float
) -> None:
    path = write(tmp_path, relative, made)
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(DataError, match=rf"cannot be read .*{path}"):
        loader(lenient(tmp_path))


def test_a_truncated_split_of_actor_is_named(tmp_path: Path) -> None:
    path = write_actor(tmp_path, NODES, EDGES) / "film_split_0.6_0.2_0.npz"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match=rf"actor cannot be read .*{path}"):
        actor(lenient(tmp_path))


@pytest.mark.parametrize(("loader", "words"), [(roman_empire, "heterophilous-graphs"), (uai2010, "GraphData"), (actor, "geom-gcn")])
def test_absent_files_say_where_they_come_from(tmp_path: Path, loader: Callable[[DataRoot], NodeData], words: str) -> None:
    with pytest.raises(DataError, match=rf"(?s){words}"):
        loader(DataRoot(tmp_path, tmp_path / "cache", offline=True))


def test_other_files_of_the_same_format_are_refused(tmp_path: Path) -> None:
    write(tmp_path, ROMAN, roman())
    with pytest.raises(DataError, match="roman-empire: found 12 nodes, 8 directed edges, 5 features, 18 classes; expected 22,662 nodes"):
        roman_empire(DataRoot(tmp_path / "data", tmp_path / "cache", offline=True))
    write(tmp_path, UAI, uai())
    with pytest.raises(DataError, match=r"uai2010\.npz has the wrong checksum: found sha256 .* expected 4165f285"):
        uai2010(DataRoot(tmp_path / "data", tmp_path / "cache", offline=True))


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("loader", "relative", "homophily", "smallest"),
    [
        (actor, f"{ACTOR}/out1_graph_edges.txt", 0.219, 853),
        (uai2010, UAI, 0.364, 9),
        (roman_empire, ROMAN, 0.047, None),
    ],
)
def test_the_real_data(
    tmp_path: Path, loader: Callable[[DataRoot], NodeData], relative: str, homophily: float, smallest: int | None
) -> None:
    files = DataRoot.from_environment()
    if files.root is None or not (files.root / relative).is_file():
        pytest.skip(f"needs {relative}")
    data = loader(DataRoot(files.root, tmp_path, offline=True))
    assert (data.n_nodes, data.edge_index.shape[1], data.n_features, data.n_classes) == SIZES[data.name]
    source, target = data.edge_index
    assert ((source * data.n_nodes + target).diff() > 0).all()
    sizes = data.y.bincount()
    assert len(sizes) == data.n_classes
    assert smallest is None or int(sizes.min()) == smallest
    assert float((data.y[source] == data.y[target]).float().mean()) == pytest.approx(homophily, abs=1e-3)
    if data.official_split is not None:
        shares = torch.bincount(data.official_split.long(), minlength=3) / data.n_nodes
        expected = (0.48, 0.32, 0.20) if data.name == "actor" else (0.5, 0.25, 0.25)
        assert shares.tolist() == pytest.approx(expected, abs=0.001)
    assert loader(DataRoot(files.root, tmp_path, offline=True)).content_hash == data.content_hash
