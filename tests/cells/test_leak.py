"""The leak by grouping: present where groups have one task, absent where groups are pooled."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from tiny_streams import tiny_data, tiny_stream

from cglsuite.cells.leak import Leak, measure_leak
from cglsuite.errors import SpecError

PLAIN = tiny_data(per_class=60)
# Classes differ little between single items and clearly between means of many.
NOISE = torch.randn(PLAIN.n_nodes, 4, generator=torch.Generator().manual_seed(3))
DATA = dataclasses.replace(PLAIN, x=NOISE + 0.5 * (PLAIN.y // 2).unsqueeze(1))


def leak_of(**switches: str) -> Leak:
    stream = tiny_stream(DATA, class_order="native", **{"edge_policy": "none", **switches})
    return measure_leak(stream, repetitions=20, permutations=19)


def test_groups_of_one_task_reveal_it() -> None:
    leak = leak_of()
    assert leak.by_task
    assert leak.leak > 0.1
    assert leak.interval[0] > 0
    assert leak.p == pytest.approx(1 / 20)
    assert leak.chance == pytest.approx(1 / 3)
    assert leak.grouped == pytest.approx(leak.alone + leak.leak)


@pytest.mark.parametrize(
    "switches", [{"query_grouping": "pooled"}, {"query_grouping": "pooled", "query_edges": "seen"}, {"edge_policy": "full"}]
)
def test_pooled_groups_reveal_nothing(switches: dict[str, str]) -> None:
    leak = leak_of(**switches)
    assert not leak.by_task
    assert abs(leak.leak) < 0.06
    assert leak.interval[0] < 0.02
    assert leak.p > 0.05


def test_where_the_task_is_given_there_is_nothing_to_measure() -> None:
    with pytest.raises(SpecError, match="setting = task-il"):
        leak_of(setting="task-il")
