"""Nodes with real targets: what is checked, what is hashed, and that targets are no label sets."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from cglsuite.base.errors import DataError
from cglsuite.graphs import NodeData, NodeTargetData


def parts(**changes: Any) -> dict[str, Any]:
    return {
        "x": torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]),
        "edge_index": torch.tensor([[0, 1, 2], [1, 0, 2]]),
        "y": torch.tensor([[0.5, 1.0], [-1.0, 2.0], [0.0, 3.0]]),
        "n_classes": 2,
        "keys": {"year": torch.tensor([1999, 2000, 2001])},
        "name": "three",
    } | changes


def test_targets_are_not_label_sets() -> None:
    data = NodeTargetData(**parts())
    assert isinstance(data, NodeData)
    assert not data.multi_label
    assert (data.n_nodes, data.n_items, data.n_classes) == (3, 3, 2)
    assert repr(data) == "<NodeTargetData three: 3 nodes, 3 edges, 2 features, 2 targets, keys year>"


def test_every_target_counts_in_the_hash() -> None:
    one, same = NodeTargetData(**parts()).content_hash, NodeTargetData(**parts()).content_hash
    y = parts()["y"].clone()
    y[2, 1] = 3.0000002
    assert one == same != NodeTargetData(**parts(y=y)).content_hash


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": torch.tensor([[0.5, 1.0], [float("nan"), 2.0], [0.0, 3.0]])}, "three: 1 targets are NaN or infinite, the first at item 1"),
        ({"y": torch.tensor([0.5, 1.0, 2.0])}, r"y is torch.float32 \[3\]; expected .* float32 \[N, C\] for real targets"),
        ({"n_classes": 3}, "three: y has 2 columns; expected one per target, 3"),
        ({"x": torch.zeros(2, 2)}, r"three: x is torch.float32 \[2, 2\]; expected float32 \[3, F\]"),
        ({"edge_index": torch.tensor([[0], [3]])}, r"three: an edge .* 0..2"),
        ({"keys": {"year": torch.tensor([1])}}, r"three: year has shape \[1\]; expected \[3\]"),
    ],
)
def test_what_is_inconsistent_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        NodeTargetData(**parts(**changes))


def test_node_data_does_not_take_targets() -> None:
    with pytest.raises(DataError, match=r"expected int64 \[N\], or bool \[N, C\]"):
        NodeData(**parts())
