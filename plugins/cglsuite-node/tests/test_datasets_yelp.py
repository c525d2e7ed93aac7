"""Yelp from tiny files in GraphSAINT's layout, beside what PyG's class makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from cglsuite_node.datasets.yelp import yelp

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError

N = 8
RNG = np.random.default_rng(0)
X = RNG.normal(2, 3, size=(N, 4))
X[:, 3] = 7  # constant
Y = (RNG.random((N, 100)) < 0.1).astype(int)
EDGES = [(0, 1), (1, 0), (2, 5), (5, 2), (6, 6)]
ROLE = {"tr": [0, 2, 5], "va": [1], "te": [3, 4]}


def write(tmp_path: Path, **changed: Any) -> Path:
    folder = tmp_path / "data/Yelp/raw"
    folder.mkdir(parents=True, exist_ok=True)
    source, target = np.array(EDGES).T
    adjacency = scipy.sparse.csr_matrix((np.ones(len(EDGES)), (source, target)), (N, N))
    np.savez(
        folder / "adj_full.npz",
        data=adjacency.data,
        indices=changed.get("indices", adjacency.indices),
        indptr=adjacency.indptr,
        shape=adjacency.shape,
    )
    np.save(folder / "feats.npy", changed.get("x", X))
    (folder / "class_map.json").write_text(json.dumps(changed.get("class_map", {str(i): row for i, row in enumerate(Y.tolist())})))
    (folder / "role.json").write_text(json.dumps(changed.get("role", ROLE)))
    return folder


def lenient(tmp_path: Path) -> DataRoot:
    return DataRoot(tmp_path / "data", tmp_path / "cache", offline=True, verify=False)


def test_without_any_label_the_classes_are_those_of_yelp(tmp_path: Path) -> None:
    write(tmp_path, class_map={})
    y = yelp(lenient(tmp_path)).y
    assert y.shape == (N, 100)
    assert not y.any()


def test_as_pyg_reads_it(tmp_path: Path) -> None:
    from torch_geometric.datasets import Yelp

    folder = write(tmp_path)
    data = yelp(lenient(tmp_path))
    with DataRoot(cache=tmp_path / "theirs").stage({f"raw/{path.name}": path for path in folder.iterdir()}) as stage:
        theirs = Yelp(str(stage))[0]
    assert torch.equal(data.x, theirs.x)
    assert torch.equal(data.y, theirs.y.bool())
    assert torch.equal(data.edge_index, theirs.edge_index)
    assert data.official_split is not None
    for code, mask in enumerate((theirs.train_mask, theirs.val_mask, theirs.test_mask)):
        assert torch.equal(data.official_split == code, mask)
    assert (data.official_split == -1).nonzero().flatten().tolist() == [6, 7]
    assert data.n_classes == 100
    assert yelp(lenient(tmp_path)).content_hash == data.content_hash


def test_features_standardised_over_the_training_nodes(tmp_path: Path) -> None:
    write(tmp_path)
    plain, scaled = yelp(lenient(tmp_path)).x, yelp(lenient(tmp_path), standardise="train").x
    train = X[ROLE["tr"]]
    deviation = np.where(train.std(axis=0) > 0, train.std(axis=0), 1)
    np.testing.assert_allclose(scaled.numpy(), (X - train.mean(axis=0)) / deviation, rtol=1e-5, atol=1e-6)
    assert not scaled[:, 3].any()
    np.testing.assert_allclose(plain.numpy(), X, rtol=1e-6)


def test_node_without_labels(tmp_path: Path) -> None:
    write(tmp_path, class_map={str(i): Y[i].tolist() for i in range(N) if i != 3})
    data = yelp(lenient(tmp_path))
    assert not data.y[3].any()
    np.testing.assert_array_equal(data.y[4].numpy(), Y[4] > 0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"class_map": {"0": [1] * 99, "1": [0] * 99}}, "y has 99 columns; expected one per label, 100"),
        ({"class_map": {"0": [0] * 100, "1": [0] * 99}}, "labels of node 1 are not 100 zeros and ones"),
        ({"class_map": {"0": [2] * 100}}, "labels of node 0 are not 100 zeros and ones"),
        ({"class_map": {"8": [0] * 100}}, r"class_map.json contains node 8; expected 0\.\.7"),
        ({"class_map": []}, "class_map.json holds a list"),
        ({"role": {"tr": [0], "va": [8], "te": []}}, r"role.json: va lists a node outside 0\.\.7"),
        ({"role": {"tr": [0, 1], "va": [2], "te": [1]}}, "role.json: te lists node 1, which is also in another part"),
        ({"role": {"tr": [0]}}, "yelp cannot be read .KeyError: 'va'"),
        ({"x": X[:-1]}, r"adj_full.npz has shape \[8, 8\] and feats.npy has 7 rows"),
        ({"x": np.where(np.arange(N)[:, None] == 2, np.nan, X)}, "yelp: 4 feature values are NaN or infinite, the first at node 2"),
        ({"indices": np.array([1, 0, 5, 2, 8])}, r"edges refer to nodes 0\.\.8; expected 0\.\.7|yelp cannot be read"),
        ({"x": np.array([{}] * N)}, "yelp cannot be read .*allow_pickle"),
    ],
)
def test_bad_content(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    write(tmp_path, **changed)
    with pytest.raises(DataError, match=rf"{message}.*|(?s:.*){tmp_path}/data/Yelp/raw/") as error:
        yelp(lenient(tmp_path))
    assert "Yelp/raw/adj_full.npz" in str(error.value)


def test_no_training_node_to_standardise_over(tmp_path: Path) -> None:
    write(tmp_path, role={"tr": [], "va": [0], "te": [1]})
    with pytest.raises(DataError, match="tr is empty"):
        yelp(lenient(tmp_path), standardise="train")


@pytest.mark.parametrize("file", ["adj_full.npz", "feats.npy", "class_map.json", "role.json"])
def test_absent_or_truncated_file(tmp_path: Path, file: str) -> None:
    path = write(tmp_path) / file
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match=rf"yelp cannot be read .*{path}"):
        yelp(lenient(tmp_path))
    path.unlink()
    with pytest.raises(DataError, match=rf"(?s){path}.*GraphSAINT's Yelp"):
        yelp(lenient(tmp_path))


def test_other_sizes_than_the_published_ones(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(DataError, match="yelp: found 8 nodes, 4 features, 100 classes; expected 716,847 nodes"):
        yelp(DataRoot(tmp_path / "data", tmp_path / "cache", offline=True))
