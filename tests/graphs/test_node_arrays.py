"""Arrays of node-level loaders in canonical form: dense or sparse by the share of non-zeros, sorted edges, labels as they are hashed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from cglsuite.base.errors import DataError
from cglsuite.graphs.loading.node_arrays import SPARSE_BELOW, node_arrays, node_data

EDGES = np.array([[2, 0, 1, 0, 2, 1], [0, 1, 1, 2, 0, 1]])
Y = np.array([0, 1, 1])


def arrays(**changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"x": np.eye(3), "edge_index": EDGES, "y": Y, **changes}
    return node_arrays(**given)


def features(non_zeros: int, rows: int = 10, columns: int = 10) -> np.ndarray[Any, Any]:
    x = np.zeros(rows * columns)
    x[np.arange(non_zeros) * 7 % x.size] = np.arange(1, non_zeros + 1)
    return x.reshape(rows, columns)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.coo_matrix, scipy.sparse.csc_matrix])
@pytest.mark.parametrize(("non_zeros", "dense"), [(0, False), (4, False), (5, True), (6, True), (100, True)])
def test_features_are_sparse_below_a_share(form: Any, non_zeros: int, dense: bool) -> None:
    """Fewer than 5% non-zero; the same arrays, whatever form they came in, and the same features again."""
    assert SPARSE_BELOW == 0.05
    x = features(non_zeros)
    made = arrays(x=form(x), edge_index=np.empty((2, 0), int), y=np.zeros(10, int))
    kept = {name: values for name, values in made.items() if name.startswith("x")}
    if dense:
        assert kept.keys() == {"x"}
        assert kept["x"].dtype == np.float32
        assert kept["x"].flags["C_CONTIGUOUS"]
        np.testing.assert_array_equal(kept["x"], x)
    else:
        csr = scipy.sparse.csr_matrix(x)
        assert kept.keys() == {"x_indptr", "x_indices", "x_values", "x_shape"}
        np.testing.assert_array_equal(kept["x_indptr"], csr.indptr)
        np.testing.assert_array_equal(kept["x_indices"], csr.indices)
        np.testing.assert_array_equal(kept["x_values"], csr.data)
        assert kept["x_values"].dtype == np.float32
        assert kept["x_shape"].tolist() == [10, 10]
    data = node_data("n", made, 1)
    assert (data.x.layout == torch.sparse_csr) is not dense
    np.testing.assert_array_equal((data.x if dense else data.x.to_dense()).numpy(), x)


def test_sparse_features_have_one_form() -> None:
    """Sums of repeated entries, no stored zeros, sorted columns."""
    rows, columns, values = [0, 0, 0, 1, 1, 2], [7, 2, 7, 3, 1, 4], [1.0, 5.0, 2.0, 0.0, 6.0, 7.0]
    x = scipy.sparse.coo_matrix((values, (rows, columns)), shape=(30, 10))
    made = arrays(x=x, edge_index=np.empty((2, 0), int), y=np.zeros(30, int))
    assert made["x_indices"].tolist() == [2, 7, 1, 4]
    assert made["x_values"].tolist() == [5.0, 3.0, 6.0, 7.0]
    assert made["x_indptr"].tolist()[:5] == [0, 2, 3, 4, 4]
    # A stored zero is no feature: without it there are fewer than 5%.
    stored = scipy.sparse.csr_matrix((np.array([0.0] * 5), (np.arange(5), np.arange(5))), shape=(10, 10))
    assert arrays(x=stored, edge_index=np.empty((2, 0), int), y=np.zeros(10, int))["x_values"].size == 0


def test_edges_are_sorted_without_repetition() -> None:
    """By source, then by target; self-loops stay; direction counts."""
    made = arrays()["edge_index"]
    assert made.tolist() == [[0, 0, 1, 2], [1, 2, 1, 0]]
    assert made.dtype == np.int64
    assert arrays(edge_index=np.empty((2, 0)))["edge_index"].shape == (2, 0)
    for least, most, says in ((-1, 2, "-1..2"), (0, 3, "0..3")):
        with pytest.raises(DataError, match=f"^edges refer to nodes {says}; expected 0..2$"):
            arrays(edge_index=np.array([[least], [most]]))


@pytest.mark.parametrize(
    ("y", "read"),
    [
        (np.array([0, 5, -1]), [0, 5, -1]),
        (np.array([[0], [5], [-1]]), [0, 5, -1]),
        (np.array([0.0, np.nan, 2.0]), [0, -1, 2]),
        (np.array([0, 1, 2], dtype=np.uint8), [0, 1, 2]),
        (np.array([True, False, True]), [1, 0, 1]),
    ],
)
def test_labels_are_whole_numbers(y: Any, read: list[int]) -> None:
    made = arrays(y=y)["y"]
    assert (made.tolist(), made.dtype) == (read, np.int64)


def test_several_labels_stay_as_they_are() -> None:
    y = np.array([[True, False], [False, False], [True, True]])
    assert arrays(y=y)["y"] is y
    data = node_data("n", arrays(y=y), 2)
    assert (data.y.dtype, data.y.tolist()) == (torch.bool, y.tolist())
    with pytest.raises(DataError, match="^the label of node 1 is not an integer$"):
        arrays(y=np.array([0.0, 1.5, 2.5]))


def test_split_and_attributes() -> None:
    """Small integers for parts, whole numbers by name; absent where none is given."""
    assert arrays().keys() == {"x", "edge_index", "y"}
    made = arrays(split=np.array([0, 2, -1]), keys={"year": np.array([[3], [4], [5]]), "area": np.array([True, False, True])})
    assert (made["split"].tolist(), made["split"].dtype) == ([0, 2, -1], np.int8)
    assert {name: made[name].tolist() for name in made if name.startswith("key.")} == {"key.year": [3, 4, 5], "key.area": [1, 0, 1]}
    assert made["key.area"].dtype == np.int64
    data = node_data("papers", made, 2)
    assert (data.name, data.n_classes) == ("papers", 2)
    assert data.official_split is not None
    assert data.official_split.tolist() == [0, 2, -1]
    assert {name: values.tolist() for name, values in data.keys.items()} == {"year": [3, 4, 5], "area": [1, 0, 1]}
    assert (data.edge_index.dtype, data.y.dtype) == (torch.int64, torch.int64)
    plain = node_data("papers", arrays(), 2)
    assert (plain.official_split, dict(plain.keys)) == (None, {})
