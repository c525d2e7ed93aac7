"""What a method carries, measured: storages, long integers, texts, and training items in disguise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cglsuite.testing.judge.hearing import Hearing, compacted, digest_of, size_of, verbatim


def test_a_view_counts_with_all_that_is_behind_it_once() -> None:
    whole = torch.zeros(100)
    assert size_of(whole[:1]) == 400
    assert size_of([whole[:1], whole[50:]]) == 400
    assert size_of(compacted([whole[:1], whole[50:]])) == 4 + 200


def test_numbers_and_texts_count_what_they_take() -> None:
    assert size_of(3) == size_of(0.5) == size_of(None) == 8
    assert size_of(2**800) == 101
    assert size_of({"ab": ["xyz", True]}) == 2 + 3 + 8


def test_a_digest_sees_every_bit_and_the_kind() -> None:
    one = {"a": torch.tensor([0.0, 1.0]), "b": 1}
    assert digest_of(one) == digest_of({"b": 1, "a": torch.tensor([0.0, 1.0])})
    assert digest_of(one) != digest_of({"a": torch.tensor([-0.0, 1.0]), "b": 1})
    assert digest_of(one) != digest_of({"a": torch.tensor([0.0, 1.0]), "b": True})
    assert digest_of(torch.zeros(2, 3)) != digest_of(torch.zeros(3, 2))


def test_items_are_found_wherever_they_are() -> None:
    rows = torch.rand(5, 8)
    assert verbatim({"x": [rows[1:3].clone()]}, rows) == 2
    assert verbatim(torch.cat([torch.zeros(7), rows.flatten()])[:1], rows) == 5
    assert verbatim(int.from_bytes(rows[0].numpy().tobytes(), "little"), rows) == 1
    assert verbatim(rows.mean(dim=0), rows) == 0


@pytest.mark.parametrize(
    ("change", "beyond"),
    [
        ({}, 0),
        ({"x": torch.zeros(4, 5)}, 4 * 5 - 4 * 3),
        ({"tasks": torch.zeros(9, dtype=torch.int64)}, 5),
        ({"y": torch.zeros(4, 2, dtype=torch.bool)}, 0),
        ({"y": torch.zeros(4, 7, dtype=torch.bool)}, 4 * 7 - 4 * 2),  # labels are no place for features either
    ],
)
def test_values_in_memory_items_beyond_what_items_have(change: dict[str, torch.Tensor], beyond: int) -> None:
    """Of 4 nodes with 3 features and a label, or one for each of 2 outputs."""
    four = torch.zeros(4, dtype=torch.int64)
    shelf = {"x": torch.zeros(4, 3), "ids": four, "y": four, "tasks": four}
    hearing: Any = SimpleNamespace(stream=SimpleNamespace(n_features=3, n_outputs=2))
    assert Hearing._oversized(hearing, {"shelves": {"kept": shelf | change}}) == beyond
