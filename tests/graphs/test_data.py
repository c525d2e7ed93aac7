"""A dataset is checked once, and its hash is of what it holds."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from cglsuite.base.errors import DataError
from cglsuite.graphs import NodeData

PINNED = "1f16e13fd0fb845039699505a4e0b5afcb792d612d96395beda47efa02ae06b5"
PINNED_SPARSE = "d2896dec77cbee6dbd4374408847f679645a6d313b41be42ca872a41e110e3aa"


def parts(**changes: Any) -> dict[str, Any]:
    return {
        "x": torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0], [0.0, 0.0]]),
        "edge_index": torch.tensor([[0, 1, 2], [1, 0, 2]]),
        "y": torch.tensor([0, 1, -1, 1]),
        "n_classes": 2,
        "official_split": torch.tensor([0, 1, -1, 2], dtype=torch.int8),
        "keys": {"year": torch.tensor([1999, 2000, 2001, 2002])},
        "name": "four",
    } | changes


def test_sizes() -> None:
    data = NodeData(**parts())
    assert (data.n_nodes, data.n_features, data.n_classes) == (4, 2, 2)
    assert NodeData(**parts(x=parts()["x"].to_sparse_csr())).n_features == 2


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_features_that_are_not_finite_name_count_and_first_node(sparse: bool, value: float) -> None:
    x = parts()["x"].clone()
    x[1, 1] = x[2, 0] = x[2, 1] = value
    with pytest.raises(DataError, match=r"^four: 3 feature values are NaN or infinite, the first at node 1;"):
        NodeData(**parts(x=x.to_sparse_csr() if sparse else x))


def test_the_first_bad_node_behind_empty_rows() -> None:
    x = torch.zeros(4, 2)
    x[3, 0] = float("nan")
    for given in (x, x.to_sparse_csr()):
        with pytest.raises(DataError, match="1 feature values are NaN or infinite, the first at node 3"):
            NodeData(**parts(x=given))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": torch.tensor([0, 1, -1, 2])}, r"four: labels range over -1\.\.2; expected -1\.\.1"),
        ({"y": torch.tensor([0, 1, -2, 1])}, r"four: labels range over -2\.\.1; expected -1\.\.1"),
        ({"y": torch.tensor([0.0, 1, 1, 1])}, r"four: y is torch\.float32 \[4\]; expected int64 \[N\]"),
        ({"y": torch.tensor([[0, 1, 1, 1]])}, r"four: y is torch\.int64 \[1, 4\]; expected int64 \[N\]"),
        ({"x": torch.zeros(3, 2)}, r"four: x is torch\.float32 \[3, 2\]; expected float32 \[4, F\]"),
        ({"x": torch.zeros(4, 2, dtype=torch.float64)}, r"four: x is torch\.float64 \[4, 2\]; expected float32 \[4, F\]"),
        ({"x": torch.zeros(4)}, r"four: x is torch\.float32 \[4\]; expected float32 \[4, F\]"),
        ({"x": torch.eye(4).to_sparse_coo()}, r"four: x has layout torch\.sparse_coo; expected dense or sparse CSR"),
        ({"edge_index": torch.tensor([[0, 1]])}, r"four: edge_index is torch\.int64 \[1, 2\]; expected int64 \[2, E\]"),
        (
            {"edge_index": torch.tensor([[0], [1]], dtype=torch.int32)},
            r"four: edge_index is torch\.int32 \[2, 1\]; expected int64 \[2, E\]",
        ),
        ({"edge_index": torch.tensor([[0, 4], [1, 0]])}, r"four: an edge refers to a node outside 0\.\.3"),
        ({"edge_index": torch.tensor([[0, -1], [1, 0]])}, r"four: an edge refers to a node outside 0\.\.3"),
        ({"official_split": torch.zeros(3, dtype=torch.int8)}, r"four: official_split has shape \[3\]; expected \[4\]"),
        ({"keys": {"year": torch.zeros(5, dtype=torch.int64)}}, r"four: year has shape \[5\]; expected \[4\]"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        NodeData(**parts(**changes))


def test_a_graph_may_have_no_edges_and_no_labels() -> None:
    data = NodeData(**parts(edge_index=torch.empty(2, 0, dtype=torch.int64), y=torch.full((4,), -1)))
    assert len(data.content_hash) == 64


def test_the_hash_is_pinned() -> None:
    """Stored results name it: equal data have this hash on every machine and in every version."""
    assert NodeData(**parts()).content_hash == PINNED
    assert NodeData(**parts(x=parts()["x"].to_sparse_csr())).content_hash == PINNED_SPARSE


def test_the_hash_does_not_depend_on_names_copies_or_memory_order() -> None:
    transposed = parts()["x"].T.contiguous().T
    assert not transposed.is_contiguous()
    assert NodeData(**parts(x=transposed, name="other")).content_hash == PINNED


@pytest.mark.parametrize(
    "changes",
    [
        {"x": torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0], [0.0, 1e-45]])},
        {"edge_index": torch.tensor([[0, 1, 2], [1, 0, 3]])},
        {"edge_index": torch.tensor([[0, 1], [1, 0]])},
        {"y": torch.tensor([0, 1, -1, 0])},
        {"n_classes": 3},
        {"official_split": torch.tensor([0, 1, -1, 1], dtype=torch.int8)},
        {"official_split": None},
        {"keys": {"year": torch.tensor([1999, 2000, 2001, 2003])}},
        {"keys": {"month": torch.tensor([1999, 2000, 2001, 2002])}},
        {"keys": {}},
    ],
    ids=["a feature", "an edge", "one edge less", "a label", "number of classes", "a split", "no split", "a key", "a key's name", "no key"],
)
def test_the_hash_notices_every_change(changes: dict[str, Any]) -> None:
    assert NodeData(**parts(**changes)).content_hash != PINNED
