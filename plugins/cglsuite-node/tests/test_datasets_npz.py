"""The npz datasets (CoraFull and its family, Amazon-Clothing) from tiny files with the true keys."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from cglsuite_node.datasets import arrays, citation_full
from cglsuite_node.datasets.amazon_clothing import amazon_clothing20

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError

N, F = 30, 60
#: loader, file, whether word counts are kept (PyG makes them 0 and 1)
LOADERS = {
    "corafull": (citation_full.corafull, "CitationFull/cora/raw/cora.npz", False),
    "citationfull-cora-ml": (citation_full.cora_ml, "CitationFull/cora_ml/raw/cora_ml.npz", False),
    "citationfull-citeseer": (citation_full.citeseer, "CitationFull/citeseer/raw/citeseer.npz", False),
    "citationfull-dblp": (citation_full.dblp, "CitationFull/dblp/raw/dblp.npz", False),
    "amazon-clothing20": (amazon_clothing20, "AmazonClothing20/amazon_clothing20.npz", True),
}
# One direction only, as CoraFull's file has citations.
EDGES = np.array([[0, 1, 5, 7, 2], [3, 0, 9, 2, 7]])


def contents() -> dict[str, Any]:
    generator = np.random.default_rng(0)
    x = scipy.sparse.random(N, F, density=0.03, format="csr", dtype=np.float32, rng=generator)
    x.data = generator.integers(1, 5, x.nnz).astype(np.float32)
    adjacency = scipy.sparse.csr_matrix((np.ones(EDGES.shape[1], dtype=np.float32), (EDGES[0], EDGES[1])), (N, N))
    made: dict[str, Any] = {"labels": generator.integers(0, 4, N)}
    for kind, matrix in (("adj", adjacency), ("attr", x)):
        made |= {f"{kind}_data": matrix.data, f"{kind}_indices": matrix.indices, f"{kind}_indptr": matrix.indptr}
        made[f"{kind}_shape"] = np.array(matrix.shape)
    return made


def write(root: Path, relative: str, made: dict[str, Any]) -> Path:
    path = root / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **made)
    return path


def lenient(tmp_path: Path) -> DataRoot:
    return DataRoot(tmp_path / "data", tmp_path / "cache", offline=True, verify=False)


@pytest.mark.parametrize("name", LOADERS)
def test_npz_files(tmp_path: Path, name: str) -> None:
    loader, relative, keeps_counts = LOADERS[name]
    made = contents()
    write(tmp_path / "data", relative, made)
    data = loader(lenient(tmp_path))
    x = scipy.sparse.csr_matrix((made["attr_data"], made["attr_indices"], made["attr_indptr"]), made["attr_shape"]).toarray()
    assert data.x.layout == torch.sparse_csr
    np.testing.assert_array_equal(data.x.to_dense().numpy(), x if keeps_counts else x > 0)
    assert (data.x.col_indices().diff()[torch.repeat_interleave(torch.arange(N), data.x.crow_indices().diff()).diff() == 0] > 0).all()
    pairs = set(map(tuple, EDGES.T.tolist()))
    # PyG makes citation graphs undirected; Amazon-Clothing's file is read as it is.
    expected = pairs if keeps_counts else pairs | {(v, u) for u, v in pairs}
    assert data.edge_index.T.tolist() == [list(pair) for pair in sorted(expected)]
    np.testing.assert_array_equal(data.y.numpy(), made["labels"])
    assert data.official_split is None
    assert data.name == name
    assert loader(lenient(tmp_path)).content_hash == data.content_hash
    assert [p.name for p in (tmp_path / "data").rglob("*") if p.is_file()] == [Path(relative).name]


def test_corafull_takes_the_begin_split_on_request(tmp_path: Path) -> None:
    _, relative, _ = LOADERS["corafull"]
    write(tmp_path / "data", relative, contents())
    residues = (np.arange(N) * 7 % 10).astype(np.uint8)
    path = write(tmp_path / "data", "begin-splits/corafull_metadata_allIL.npz", {"inner_tvt_splits": residues})
    assert citation_full.corafull(lenient(tmp_path)).official_split is None
    split = citation_full.corafull(lenient(tmp_path), split_source="begin").official_split
    assert split is not None
    assert split.tolist() == [0 if r < 6 else 1 if r < 8 else 2 for r in residues.tolist()]
    # A split of another graph, and none.
    write(tmp_path / "data", "begin-splits/corafull_metadata_allIL.npz", {"inner_tvt_splits": residues[:-1]})
    with pytest.raises(
        DataError, match=r"corafull: the split in begin-splits/corafull_metadata_allIL\.npz has 29 items, but the dataset has 30"
    ):
        citation_full.corafull(lenient(tmp_path), split_source="begin")
    path.unlink()
    with pytest.raises(DataError, match=rf"(?s){path}.*with sha256 faf50beb"):
        citation_full.corafull(lenient(tmp_path), split_source="begin")


@pytest.mark.parametrize("name", ["corafull", "amazon-clothing20"])
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_truncated_npz_is_named(tmp_path: Path, name: str, kept: float) -> None:
    loader, relative, _ = LOADERS[name]
    path = write(tmp_path / "data", relative, contents())
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(DataError, match=rf"{name} cannot be read .*damaged: {path}"):
        loader(lenient(tmp_path))


@pytest.mark.parametrize("name", ["citationfull-dblp", "amazon-clothing20"])
def test_absent_key_is_an_error(tmp_path: Path, name: str) -> None:
    loader, relative, _ = LOADERS[name]
    made = contents()
    del made["attr_indptr"]
    write(tmp_path / "data", relative, made)
    with pytest.raises(DataError, match=rf"{name} cannot be read .*attr_indptr"):
        loader(lenient(tmp_path))


@pytest.mark.parametrize("name", ["corafull", "amazon-clothing20"])
def test_nan_features_are_counted(tmp_path: Path, name: str) -> None:
    loader, relative, _ = LOADERS[name]
    made = contents()
    place = int(made["attr_indptr"][12])
    made["attr_data"][[place, place + 1]] = np.nan
    write(tmp_path / "data", relative, made)
    node = int(np.searchsorted(made["attr_indptr"], place, side="right")) - 1
    with pytest.raises(DataError, match=rf"{name}: 2 feature values are NaN or infinite, the first at node {node}; .*read from .*npz"):
        loader(lenient(tmp_path))


@pytest.mark.parametrize(("name", "label"), [("amazon-clothing20", 20), ("corafull", 70), ("citationfull-dblp", -2)])
def test_label_out_of_range(tmp_path: Path, name: str, label: int) -> None:
    loader, relative, _ = LOADERS[name]
    made = contents()
    made["labels"][4] = label
    write(tmp_path / "data", relative, made)
    with pytest.raises(DataError, match=rf"{name}: labels range over .*{label}"):
        loader(lenient(tmp_path))


def test_edge_out_of_range(tmp_path: Path) -> None:
    loader, relative, _ = LOADERS["amazon-clothing20"]
    made = contents()
    made["adj_indices"][0] = N + 3
    write(tmp_path / "data", relative, made)
    with pytest.raises(DataError, match="amazon-clothing20"):
        loader(lenient(tmp_path))


def test_amazon_clothing_that_is_absent_says_how_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no public home.*(?s:.)*with sha256 02e610c2(?s:.)*GPN_Graph-Few-shot"):
        amazon_clothing20(DataRoot(tmp_path, tmp_path / "cache"))


def test_wrong_checksum_of_amazon_clothing(tmp_path: Path) -> None:
    write(tmp_path / "data", LOADERS["amazon-clothing20"][1], contents())
    with pytest.raises(DataError, match=r"amazon_clothing20\.npz has the wrong checksum: found sha256 .* expected 02e610c2"):
        amazon_clothing20(DataRoot(tmp_path / "data", tmp_path / "cache"))


def test_which_of_several_files_is_damaged(tmp_path: Path) -> None:
    """Those that are whole are not named; of an archive the part is."""
    whole, spoilt, zipped, cut, other = (tmp_path / name for name in ("whole.npz", "spoilt.npz", "whole.gz", "cut.gz", "a.csv"))
    for path in (whole, spoilt):
        np.savez(path, x=np.arange(100))
    content = bytearray(spoilt.read_bytes())
    content[200] ^= 1
    spoilt.write_bytes(content)
    zipped.write_bytes(gzip.compress(b"x" * 5000))
    cut.write_bytes(zipped.read_bytes()[:-12])
    other.write_text("anything")
    assert [arrays._damage(path) for path in (whole, zipped, other)] == [None] * 3
    assert arrays._damage(spoilt) == "bad checksum of x.npy"
    assert "end-of-stream" in str(arrays._damage(cut))
    assert arrays._damage(tmp_path / "absent.npz")
    said = arrays._unreadable("a", {"one": whole, "two": spoilt, "three": cut}, ValueError("boom"))
    assert said.startswith(f"a cannot be read (ValueError: boom); damaged: {spoilt} (bad checksum of x.npy); {cut} (")
    assert "whole" not in said
    assert f"among {whole}, {zipped}. Replace" in arrays._unreadable("a", {"one": whole, "two": zipped}, ValueError("boom"))
