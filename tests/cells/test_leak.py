"""The leak by grouping: present where groups have one task, absent where groups are pooled."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny_streams import tiny_data, tiny_stream

from cglsuite.base.errors import SpecError
from cglsuite.cells.diagnostics import Leak, _balanced_accuracies, _Groups, _neighbourhood_features, measure_leak
from cglsuite.graphs import MessageGraph
from cglsuite.streams import Batch

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


def test_an_items_own_view_by_hand() -> None:
    """A path 0 - 1 - 2: features, means over itself and its neighbours once and twice, and the logarithm of how many they are."""
    graph = MessageGraph(torch.tensor([[0.0], [3.0], [6.0]]), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    batch = Batch(graph=graph, ids=torch.tensor([2, 0]), allowed=torch.ones(2, dtype=torch.bool))
    # Over one hop 1.5, 3 and 4.5, over two 2.25, 3 and 3.75.
    expected = [[6.0, 4.5, 3.75, np.log(2)], [0.0, 1.5, 2.25, np.log(2)]]
    np.testing.assert_allclose(_neighbourhood_features(batch, 2), expected, rtol=1e-6)
    np.testing.assert_allclose(_neighbourhood_features(batch, 0), [[6.0, np.log(2)], [0.0, np.log(2)]], rtol=1e-6)
    for n_features, width in ((64, 64), (65, 64)):  # wider features are projected
        wide = Batch(graph=MessageGraph(torch.ones(3, n_features), graph.edge_index), ids=batch.ids, allowed=batch.allowed)
        views = _neighbourhood_features(wide, 1)
        assert views.shape == (2, 2 * width + 1)
        assert bool((views[:, :64] == 1.0).all()) is (n_features == 64)


X, TASKS = np.arange(8.0, dtype=np.float32)[:, None], np.array([0, 0, 0, 1, 1, 1, 1, 1])


def test_groups_of_one_task_each() -> None:
    """In turn, as many as there are repetitions of all tasks, with the mean of the whole group beside at most twenty of its items."""
    drawn = _Groups(X, TASKS, 2, 30, True, 3, np.random.default_rng(0))
    assert [ids.tolist() for ids in drawn.members] == [[0, 1, 2], [3, 4, 5, 6, 7]]
    assert drawn.items.shape == drawn.means.shape == (6 * 20, 1)
    assert drawn.tasks.reshape(6, 20).tolist() == [[0] * 20, [1] * 20] * 3
    assert drawn.repetition.reshape(3, 40).tolist() == [[0] * 40, [1] * 40, [2] * 40]
    assert len(np.unique(drawn.means.reshape(6, 20), axis=1)[0]) == 1
    assert all(drawn.means.reshape(6, 20)[0] <= 2.0)
    assert all(drawn.means.reshape(6, 20)[1] >= 3.0)
    moved = drawn.exchanged(np.random.default_rng(1)).reshape(6, 20)[:, 0]
    assert sorted(moved) == sorted(drawn.means.reshape(6, 20)[:, 0])
    assert moved.tolist() != drawn.means.reshape(6, 20)[:, 0].tolist()


def test_groups_of_all_tasks() -> None:
    """Every task is as likely in them, however many items it has: three of eight items make up half."""
    drawn = _Groups(X, TASKS, 2, 20, False, 100, np.random.default_rng(0))
    assert drawn.tasks.mean() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(4000))
    assert drawn.means.mean() == pytest.approx((1.0 + 5.0) / 2, abs=0.2)


def test_balanced_accuracy_by_hand() -> None:
    """A probe that splits at 2.5: in the first repetition 2 of 2 and 1 of 2 are right, in the second there is one task alone."""
    x, tasks = np.array([[0.0], [1.0], [4.0], [5.0]], dtype=np.float32), np.array([0, 0, 1, 1])
    test = SimpleNamespace(members=[None, None], tasks=np.array([0, 0, 1, 1, 0, 0, 0]), repetition=np.array([0, 0, 0, 0, 1, 1, 1]))
    seen = np.array([[0.0], [2.0], [5.0], [1.0], [9.0], [0.0], [1.0]], dtype=np.float32)
    found = _balanced_accuracies(x, tasks, seen, test)  # type: ignore[arg-type]
    np.testing.assert_allclose(found, [(1.0 + 0.5) / 2, 2 / 3])


def test_tasks_are_read_in_the_graph_of_the_last_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training items of every task as they are after the last one, which is where queries are asked."""
    stream = tiny_stream(DATA, class_order="native", edge_policy="full")
    asked: list[tuple[int, int]] = []
    plain = stream.view

    def view(k: int, stage: int) -> object:
        asked.append((k, stage))
        return plain(k, stage)

    monkeypatch.setattr(stream, "view", view)
    measure_leak(stream, repetitions=1, permutations=1)
    assert asked == [(0, 2), (1, 2), (2, 2)]
