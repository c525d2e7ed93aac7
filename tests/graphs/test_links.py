"""A dataset of links is checked once, and its hash is of what it holds."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from cglsuite.base.errors import DataError
from cglsuite.graphs import LinkData

PINNED = "de012f350a1fc8d38d9db3b683e60ffcac7fcf798869881457f478b205872fa9"
PINNED_BARE = "c530761ec1c8cf1661995d529133427980c4c397916a14d70d76f19732c1672c"


def parts(**changes: Any) -> dict[str, Any]:
    return {
        "links": torch.tensor([[0, 1, 2], [1, 2, 3]]),
        "y": torch.tensor([0, 1, -1]),
        "n_classes": 2,
        "n_nodes": 5,
        "x": torch.arange(10.0).view(5, 2),
        "base_edges": torch.tensor([[0], [4]]),
        "node_types": torch.tensor([0, 1, 0, 1, 1]),
        "official_split": torch.tensor([0, 1, 2], dtype=torch.int8),
        "keys": {"time": torch.tensor([3, 1, 2])},
        "name": "three",
    } | changes


def test_sizes() -> None:
    data = LinkData(**parts())
    assert (data.n_items, data.n_nodes, data.n_features, data.multi_label) == (3, 5, 2, False)
    signs = LinkData(**parts(y=torch.tensor([[True], [False], [False]]), n_classes=1, known=torch.ones(3, 1, dtype=torch.bool), x=None))
    assert (signs.n_features, signs.multi_label) == (None, True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"links": torch.tensor([[0, 1, 5], [1, 2, 3]])},
            r"three: links contains a node outside 0\.\.4, the first at position 2 \(\[5, 3\]\)",
        ),
        (
            {"links": torch.tensor([[0, 1, 2], [1, -1, 3]])},
            r"three: links contains a node outside 0\.\.4, the first at position 1 \(\[1, -1\]\)",
        ),
        (
            {"base_edges": torch.tensor([[0], [9]])},
            r"three: base_edges contains a node outside 0\.\.4, the first at position 0 \(\[0, 9\]\)",
        ),
        ({"links": torch.tensor([[0, 1, 2]])}, r"three: links is torch\.int64 \[1, 3\]; expected int64 \[2, M\]"),
        ({"links": torch.zeros(2, 3)}, r"three: links is torch\.float32 \[2, 3\]; expected int64 \[2, M\]"),
        ({"links": torch.tensor([[0, 1], [1, 2]])}, r"three: links has 2 entries; expected one per link, 3"),
        ({"y": torch.empty(0, dtype=torch.int64)}, r"three: the dataset has no links; expected at least one"),
        ({"y": torch.tensor([0, 1, 2])}, r"three: labels range over 0\.\.2; expected -1\.\.1"),
        ({"y": torch.zeros(3)}, r"three: y is torch\.float32 \[3\]; expected int64 \[N\], or bool"),
        ({"y": torch.ones(3, 1, dtype=torch.bool)}, r"three: y has 1 columns; expected one per label, 2"),
        ({"x": torch.zeros(4, 2)}, r"three: x is torch\.float32 \[4, 2\]; expected float32 \[5, F\]"),
        ({"x": torch.eye(5).to_sparse_coo()}, r"three: x has layout torch\.sparse_coo; expected dense or sparse CSR"),
        ({"node_types": torch.zeros(3, dtype=torch.int64)}, r"three: node_types has shape \[3\]; expected \[5\]"),
        ({"official_split": torch.zeros(2, dtype=torch.int8)}, r"three: official_split has 2 entries; expected one per link, 3"),
        ({"known": torch.ones(1, 2, dtype=torch.bool)}, r"three: known has 1 entries; expected one per link, 3"),
        ({"keys": {"time": torch.zeros(4, dtype=torch.int64)}}, r"three: time has 4 entries; expected one per link, 3"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        LinkData(**parts(**changes))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_features_that_are_not_finite_are_refused(sparse: bool, value: float) -> None:
    x = torch.arange(10.0).view(5, 2)
    x[3, 1] = value
    with pytest.raises(DataError, match="^three: feature values are NaN or infinite; fix the file, or impute the values in the loader"):
        LinkData(**parts(x=x.to_sparse_csr() if sparse else x))


def test_the_hash_is_of_everything() -> None:
    changed: list[dict[str, Any]] = [
        {"links": torch.tensor([[0, 1, 2], [1, 2, 4]])},
        {"y": torch.tensor([0, 1, 1])},
        {"x": torch.ones(5, 2)},
        {"x": None},
        {"x": parts()["x"].to_sparse_csr()},
        {"base_edges": torch.tensor([[1], [4]])},
        {"node_types": None},
        {"official_split": None},
        {"keys": {"year": torch.tensor([3, 1, 2])}},
        {"known": torch.ones(3, 2, dtype=torch.bool)},
        {"n_nodes": 5, "n_classes": 3},
    ]
    hashes = {LinkData(**parts(**changes)).content_hash for changes in changed}
    assert len(hashes | {LinkData(**parts()).content_hash}) == len(changed) + 1
    assert LinkData(**parts(name="other")).content_hash == LinkData(**parts()).content_hash


def test_the_hash_is_the_same_on_every_machine() -> None:
    assert LinkData(**parts()).content_hash == PINNED
    bare = {"x": None, "base_edges": torch.empty(2, 0, dtype=torch.int64), "node_types": None, "official_split": None, "keys": {}}
    assert LinkData(**parts(**bare)).content_hash == PINNED_BARE
