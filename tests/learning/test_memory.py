"""Every item and byte is counted, and the budget holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from cglsuite.base.errors import BudgetError
from cglsuite.graphs.pack import Pack
from cglsuite.learning.memory import MeteredMemory
from cglsuite.problems import MemoryItems


def items(n: int, features: int = 0, task: int = 0) -> MemoryItems:
    x = torch.ones(n, features) if features else None
    return MemoryItems(ids=torch.arange(n), y=torch.zeros(n, dtype=torch.int64), tasks=torch.full((n,), task), x=x)


def test_items_and_bytes_by_hand() -> None:
    """24 bytes an item by reference, 4 more for each dense feature."""
    memory = MeteredMemory()
    assert memory.usage() == {"items": 0, "edges": 0, "bytes": 0, "budget_items": None}
    memory.put("a", items(3))
    memory.put("b", items(2, features=5))
    assert len(memory) == 5
    assert memory.bytes() == 3 * 24 + 2 * (24 + 20)
    assert memory.usage() == {"items": 5, "edges": 0, "bytes": 160, "budget_items": None}


def test_usage_is_the_peak() -> None:
    memory = MeteredMemory(10)
    memory.put("a", items(8))
    memory.drop("a")
    assert (len(memory), memory.bytes()) == (0, 0)
    memory.put("a", items(2))
    assert memory.usage() == {"items": 8, "edges": 0, "bytes": 8 * 24, "budget_items": 10}


def test_shelves() -> None:
    memory = MeteredMemory()
    first, second = items(1), items(2)
    memory.put("b", first)
    memory.put("a", second)
    assert memory["b"] is first
    assert "a" in memory
    assert "c" not in memory
    assert list(memory) == ["b", "a"]
    assert memory.all() == [first, second]
    replaced = items(4)
    memory.put("b", replaced)
    assert memory.all() == [replaced, second]
    memory.drop("nothing there")
    with pytest.raises(KeyError):
        memory["c"]


def test_the_budget_holds_and_a_refused_item_changes_nothing() -> None:
    memory = MeteredMemory(5)
    memory.put("a", items(3))
    memory.put("b", items(2))
    with pytest.raises(BudgetError, match=r"would hold 6 items; the scenario's budget is 5 \(scenario\.memory_budget\): keep fewer"):
        memory.put("c", items(1))
    with pytest.raises(BudgetError, match="would hold 7 items"):
        memory.put("b", items(4))
    assert list(memory) == ["a", "b"]
    assert len(memory) == memory.usage()["items"] == 5
    memory.put("a", items(1))  # replacing counts only what is new
    memory.put("c", items(2))
    assert len(memory) == 5


def test_an_empty_budget_allows_nothing_but_empty_shelves() -> None:
    memory = MeteredMemory(0)
    memory.put("a", items(0))
    with pytest.raises(BudgetError):
        memory.put("a", items(1))


def test_state_brings_back_shelves_in_order_and_the_peak() -> None:
    memory = MeteredMemory(9)
    memory.put("z", items(8))
    memory.put("z", items(2, features=3, task=1))
    memory.put("a", items(4))
    again = MeteredMemory(9)
    again.put("old", items(1))
    again.load_state(memory.state(), torch.device("cpu"))
    assert list(again) == ["z", "a"]
    assert again.usage() == memory.usage()
    assert again["z"].tasks.tolist() == [1, 1]
    assert again["z"].x is not None
    assert again["z"].x.tolist() == [[1.0] * 3] * 2


def surroundings() -> MemoryItems:
    """Two centres: one with two neighbours and two edges, one alone; two features."""
    pack = Pack(
        x=torch.ones(4, 2),
        edge_index=torch.tensor([[1, 2], [0, 0]]),
        node_start=torch.tensor([0, 3, 4]),
        edge_start=torch.tensor([0, 2, 2]),
    )
    return MemoryItems(ids=torch.arange(2), y=torch.zeros(2, dtype=torch.int64), tasks=torch.zeros(2, dtype=torch.int64), x=pack)


def test_kept_surroundings_count_their_nodes_and_their_edges() -> None:
    memory = MeteredMemory(4)
    memory.put("a", surroundings())
    assert len(memory) == 2
    assert memory.usage() == {"items": 4, "edges": 2, "bytes": 2 * 24 + 4 * 2 * 4 + 2 * 16 + 2 * 3 * 8, "budget_items": 4}
    with pytest.raises(BudgetError, match="would hold 5 items"):
        memory.put("b", items(1))
    memory.put("a", surroundings().take(torch.tensor([1])))
    memory.put("b", items(3))
    assert memory.usage()["edges"] == 2, "the peak"


def test_a_budget_may_leave_surroundings_out_and_the_meter_counts_them() -> None:
    memory = MeteredMemory(3)
    memory.put("a", surroundings(), surroundings_free=True)
    memory.put("b", items(1))
    assert memory.usage()["items"] == 5
    again = MeteredMemory(3)
    again.load_state(memory.state(), torch.device("cpu"))
    with pytest.raises(BudgetError, match="would hold 4 items"):
        again.put("c", items(1))
    again.put("b", items(0))
    again.put("c", items(1))
    assert isinstance(again["a"].x, Pack)
    assert again["a"].edges == 2
    with pytest.raises(BudgetError, match="would hold 5 items"):
        again.put("a", surroundings())


def test_surroundings_are_taken_and_joined() -> None:
    joined = MemoryItems.joined([surroundings().take(torch.tensor([1])), surroundings()])
    assert joined.sizes.tolist() == [1, 3, 1]
    assert joined.edges == 2
    assert items(3).sizes.tolist() == [1, 1, 1]


def test_extras_cost_bytes_and_no_budget() -> None:
    """Four float32 a row; their share of the bytes is told where there are any."""
    memory = MeteredMemory(3)
    memory.put("a", replace(items(3), extra={"logits": torch.ones(3, 4)}))
    assert memory.usage() == {"items": 3, "edges": 0, "bytes": 3 * (24 + 16), "budget_items": 3, "extra_bytes": 3 * 16}
    memory.put("a", items(1))
    assert memory.usage()["extra_bytes"] == 3 * 16, "the peak"
    again = MeteredMemory(3)
    again.load_state(memory.state(), torch.device("cpu"))
    assert again.usage() == memory.usage()
    assert "extra_bytes" not in MeteredMemory().usage()
    assert len(MeteredMemory().state()["peak"]) == 3
