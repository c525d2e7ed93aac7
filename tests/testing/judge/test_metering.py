"""What a method carries, measured: storages, long integers, texts, and training items in disguise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cglsuite.cells.border import size_of
from cglsuite.testing.judge.session import JudgeSession, _loose_nodes, _sizes_of_extras, compact_copy, count_verbatim_rows, digest_of

WORD = 8
SHAPE = 3 * WORD


def test_a_view_counts_with_all_that_is_behind_it_once() -> None:
    whole = torch.zeros(100)
    assert size_of(whole[:1]) == 400 + SHAPE
    assert size_of([whole[:1], whole[50:]]) == 400 + 2 * SHAPE + WORD
    assert size_of(compact_copy([whole[:1], whole[50:]])) == 4 + 200 + 2 * SHAPE + WORD


def test_numbers_and_texts_count_what_they_take() -> None:
    assert size_of(3) == size_of(0.5) == size_of(None) == 8
    assert size_of(2**800) == 101
    assert size_of({"ab": ["xyz", True]}) == 2 + 3 + 8 + 2 * WORD


@pytest.mark.parametrize(
    "hide",
    [
        lambda b: [torch.empty(0, v) for v in b],
        lambda b: [torch.zeros(1).as_strided((1,), (v,)) for v in b],
        lambda b: torch.zeros(1).as_strided((1,) * len(b), tuple(b)),
        lambda b: [[[]] * v for v in b],
        lambda b: {"_extra_state": bytes(b)},
        lambda b: {bytes(b).decode("latin-1"): torch.empty(0)},
        lambda b: "".join(chr(0xD800 + v) for v in b),
    ],
    ids=["shapes", "strides", "dimensions", "nesting", "extra state", "names", "surrogates"],
)
def test_bytes_that_are_hidden_beside_values_weigh_what_they_hold(hide: Any) -> None:
    """Some for each of them, as in a checkpoint."""
    few, many = bytes(range(1, 51)), bytes(range(1, 51)) * 4
    assert size_of(hide(many)) - size_of(hide(few)) >= 150


def test_a_digest_sees_every_bit_and_the_kind() -> None:
    one = {"a": torch.tensor([0.0, 1.0]), "b": 1}
    assert digest_of(one) == digest_of({"b": 1, "a": torch.tensor([0.0, 1.0])})
    assert digest_of(one) != digest_of({"a": torch.tensor([-0.0, 1.0]), "b": 1})
    assert digest_of(one) != digest_of({"a": torch.tensor([0.0, 1.0]), "b": True})
    assert digest_of(torch.zeros(2, 3)) != digest_of(torch.zeros(3, 2))


def test_items_are_found_wherever_they_are() -> None:
    rows = torch.rand(5, 8)
    assert count_verbatim_rows({"x": [rows[1:3].clone()]}, rows) == 2
    assert count_verbatim_rows(torch.cat([torch.zeros(7), rows.flatten()])[:1], rows) == 5
    assert count_verbatim_rows(int.from_bytes(rows[0].numpy().tobytes(), "little"), rows) == 1
    assert count_verbatim_rows(rows.mean(dim=0), rows) == 0


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
    assert JudgeSession._oversized(hearing, {"shelves": {"kept": shelf | change}}) == beyond


def test_surroundings_have_the_rows_and_columns_of_their_nodes() -> None:
    """A pack of 2 graphs with 3 nodes in all: neither a fourth row nor a fourth feature belongs to it."""
    hearing: Any = SimpleNamespace(stream=SimpleNamespace(n_features=3, n_outputs=2), scorer=SimpleNamespace(like=None))
    two = torch.zeros(2, dtype=torch.int64)
    for x, beyond in ((torch.zeros(3, 3), 0), (torch.zeros(4, 3), 3), (torch.zeros(3, 4), 3)):
        shelf = {"x": {"x": x, "node_start": torch.tensor([0, 2, 3])}, "ids": two, "y": two, "tasks": two}
        assert JudgeSession._oversized(hearing, {"shelves": {"kept": shelf}}) == beyond


@pytest.mark.parametrize(
    ("edges", "free", "pairs", "loose"),
    [
        ([[0, 1], [1, 2], [3, 4]], ["kept"], False, 0),
        ([[0, 1], [3, 4]], ["kept"], False, 1),
        ([[1, 2], [3, 4]], ["kept"], False, 2),  # joined to each other
        ([], ["kept"], False, 3),
        ([], ["kept"], True, 1),  # the first two nodes are the ends of a pair
        ([], [], False, 0),  # every node counts against the budget
    ],
)
def test_nodes_that_no_edges_join_to_their_item(edges: list[list[int]], free: list[str], pairs: bool, loose: int) -> None:
    """Two surroundings, of three nodes and of two."""
    pack = {
        "x": torch.zeros(5, 3),
        "edge_index": torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T,
        "node_start": torch.tensor([0, 3, 5]),
        "edge_start": torch.tensor([0, 0, 0]),
    }
    ids = torch.zeros(2, 2, dtype=torch.int64) if pairs else torch.zeros(2, dtype=torch.int64)
    assert _loose_nodes({"shelves": {"kept": {"ids": ids, "x": pack}}, "free": free}) == loose


def test_the_bytes_of_extras() -> None:
    """Two items with 8 and one with 24 bytes."""
    shelves = {
        "a": {"ids": torch.zeros(2), "extra": {"x": torch.zeros(2, 2)}},
        "b": {"ids": torch.zeros(1), "extra": {"x": torch.zeros(1, 6)}},
    }
    assert _sizes_of_extras({"shelves": shelves | {"c": {"ids": torch.zeros(4)}}}) == {"items": 7, "extras": 40, "row": 24}
