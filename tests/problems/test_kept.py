"""What kept items count: edges and bytes of every form in which a method may keep them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch

from cglsuite.base.errors import SpecError, UsageError
from cglsuite.graphs.pack import Pack
from cglsuite.problems import MemoryItems

IDS, TASKS = torch.tensor([4, 7]), torch.tensor([0, 1])


def items(x: Any, **changes: Any) -> MemoryItems:
    return MemoryItems(**({"ids": IDS, "y": torch.tensor([0, 3]), "tasks": TASKS, "x": x} | changes))


def pack(sparse: bool = False) -> Pack:
    """Two surroundings: three nodes with four edges, two nodes with one; five features, of which one per node is not zero."""
    x = torch.eye(5)
    return Pack(
        x=x.to_sparse_csr() if sparse else x,
        edge_index=torch.tensor([[0, 1, 0, 2, 3], [1, 0, 2, 0, 4]]),
        node_start=torch.tensor([0, 3, 5]),
        edge_start=torch.tensor([0, 4, 5]),
    )


#: Two ids, two labels and two tasks of 8 bytes each.
OWN = 2 * 3 * 8


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (items(None), OWN),
        (items(torch.zeros(2, 5)), OWN + 2 * 5 * 4),
        (items(torch.eye(2, 5).to_sparse_csr()), OWN + 2 * (4 + 8) + 3 * 8),
        (items(pack()), OWN + 5 * 5 * 4 + 5 * 2 * 8 + 2 * 3 * 8),
        (items(pack(sparse=True)), OWN + 5 * (4 + 8) + 6 * 8 + 5 * 2 * 8 + 2 * 3 * 8),
        (items(None, ids=torch.tensor([[4, 7], [1, 2]])), OWN + 2 * 8),
        (items(None, y=torch.zeros(2, 6, dtype=torch.bool)), OWN - 2 * 8 + 2 * 6),
    ],
    ids=["by reference", "features", "sparse features", "surroundings", "sparse surroundings", "pairs", "several labels"],
)
def test_bytes_by_hand(kept: MemoryItems, expected: int) -> None:
    """Features are float32, everything else 64-bit, labels as they come."""
    assert kept.bytes() == expected


def test_bytes_of_surroundings_are_those_of_their_tensors() -> None:
    kept = pack()
    parts = (kept.x, kept.edge_index, kept.node_start, kept.edge_start)
    assert items(kept).bytes() == OWN + sum(p.numel() * p.element_size() for p in parts)


def test_sizes_and_edges() -> None:
    """In a budget an item counts one, with its surroundings as many as these have nodes; edges count in each direction."""
    assert items(None).sizes.tolist() == [1, 1]
    assert items(None).edges == 0
    assert items(pack()).sizes.tolist() == [3, 2]
    assert items(pack()).edges == 5
    taken = items(pack()).take(torch.tensor([1]))
    assert (taken.sizes.tolist(), taken.edges, taken.ids.tolist()) == ([2], 1, [7])
    joined = MemoryItems.joined([items(pack()), taken])
    assert (joined.sizes.tolist(), joined.edges) == ([3, 2, 2], 6)


# --- extras -----------------------------------------------------------------------------------------------------------------------

LOGITS = {"logits": torch.tensor([[0.5, -1.0, 2.0], [4.0, 0.0, 1.0]]), "allowed": torch.tensor([[True, True, False], [True, True, True]])}


def test_extras_are_taken_joined_and_metered_with_the_items() -> None:
    """Two rows of three float32 and of three bools."""
    kept = items(torch.zeros(2, 5), extra=LOGITS)
    assert kept.extra_bytes == 2 * 3 * 4 + 2 * 3
    assert kept.bytes() == items(torch.zeros(2, 5)).bytes() + kept.extra_bytes
    turned = kept.take(torch.tensor([1, 0]))
    assert turned.extra["logits"].tolist() == [[4.0, 0.0, 1.0], [0.5, -1.0, 2.0]]
    joined = MemoryItems.joined([turned, kept.take(torch.tensor([0]))])
    assert joined.ids.tolist() == [7, 4, 4]
    assert joined.extra["logits"][:, 0].tolist() == [4.0, 0.5, 0.5]
    assert joined.extra["allowed"][:, 2].tolist() == [True, False, False]
    assert len(kept.take(torch.empty(0, dtype=torch.int64)).extra["logits"]) == 0


def test_a_draw_is_without_replacement_and_keeps_rows_together() -> None:
    ids = torch.arange(9)
    kept = items(None, ids=ids, y=ids, tasks=ids, extra={"number": ids})
    drawn = [kept.draw(4, torch.Generator().manual_seed(seed)) for seed in range(5)]
    assert all(len(set(one.ids.tolist())) == 4 and one.extra["number"].tolist() == one.ids.tolist() for one in drawn)
    assert len({tuple(one.ids.tolist()) for one in drawn}) > 1
    assert sorted(kept.draw(20, torch.Generator()).ids.tolist()) == ids.tolist()


def test_state_brings_extras_back_and_is_what_it_was_without() -> None:
    kept = items(torch.zeros(2, 5), extra={"logits": LOGITS["logits"].clone().requires_grad_(True)})
    state = kept.state()
    assert not state["extra"]["logits"].requires_grad
    again = MemoryItems.from_state(state, torch.device("meta"))
    assert again.extra["logits"].device.type == again.ids.device.type == "meta"
    assert set(items(None).state()) == {"ids", "y", "tasks", "x"}
    assert dict(MemoryItems.from_state(items(None).state(), torch.device("cpu")).extra) == {}


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"logits": torch.zeros(3, 4)}, r"extra 'logits' of memory items has shape \[3, 4\]; expected one row per item: \[2, \.\.\.\]"),
        ({"weight": torch.tensor(0.5)}, r"extra 'weight' of memory items has shape \[\]; expected one row per item"),
        ({"logits": [[1.0], [2.0]]}, "extra 'logits' of memory items is a list; expected a dense tensor with one row per item"),
        ({"x": torch.eye(2).to_sparse_csr()}, r"extra 'x' of memory items is a tensor of layout torch\.sparse_csr; expected a dense"),
        (torch.zeros(2, 4), "extra of memory items is a Tensor; expected a mapping from names to tensors"),
    ],
)
def test_extras_that_do_not_fit_are_refused(extra: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        items(None, extra=extra)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({}, "memory items with different extras cannot be joined: 'logits' and none; expected the same names in all of them"),
        ({"logits": torch.zeros(2, 4)}, r"because their extra 'logits' differs: torch\.float32 \[n, 3\] and torch\.float32 \[n, 4\]"),
        ({"logits": torch.zeros(2, 3).long()}, r"torch\.float32 \[n, 3\] and torch\.int64 \[n, 3\]"),
    ],
)
def test_extras_that_differ_are_not_joined(other: Mapping[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        MemoryItems.joined([items(None, extra={"logits": LOGITS["logits"]}), items(None, extra=other)])


def test_an_unknown_extra_is_named_with_what_there_is() -> None:
    kept = items(None, extra=LOGITS)
    with pytest.raises(UsageError, match=r"memory items have no extra 'logit': did you mean 'logits'\?"):
        kept.extra["logit"]
    with pytest.raises(UsageError, match="no extra 'weight': they have 'allowed', 'logits'"):
        kept.extra["weight"]
    with pytest.raises(UsageError, match=r"no extra 'z': they have none\. Keep it with the items: extra=\{'z'"):
        items(None).extra["z"]
    assert "weight" not in kept.extra
    assert kept.extra.get("weight") is None


def test_extras_are_read_only_and_replaced_as_a_whole() -> None:
    kept = items(None, extra=LOGITS)
    with pytest.raises(TypeError):
        kept.extra["more"] = torch.zeros(2)  # type: ignore[index]
    assert set(replace(kept, extra={"more": torch.zeros(2)}).extra) == {"more"}
    assert repr(kept.extra) == "{'logits': ['float32', 2, 3], 'allowed': ['bool', 2, 3]}"
