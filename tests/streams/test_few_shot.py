"""Few-shot class-IL: a first task of its own size, then few training items per class."""

from __future__ import annotations

import pytest
import torch
from tiny_streams import node_numbers, tiny_data, tiny_spec, tiny_stream

from cglsuite.base.errors import SpecError
from cglsuite.graphs.splits.orders import foreseen
from cglsuite.graphs.splits.partition import few_shots, with_base

DATA = tiny_data(per_class=15)
ORDER = "4,1,0,5,2,3"


def trained(stream: object, k: int) -> dict[int, set[int]]:
    """By class, the global numbers of the training items of task k."""
    view = stream.view(k, k).train  # type: ignore[attr-defined]
    numbers = torch.tensor(node_numbers(view.graph, view.ids))
    return {int(c): set(numbers[DATA.y[numbers] == c].tolist()) for c in DATA.y[numbers].unique()}


def test_the_first_task_is_larger_and_the_others_have_few_items() -> None:
    few = tiny_stream(DATA, class_order=ORDER, base_classes=2, classes_per_task=2, shots=3)
    whole = tiny_stream(DATA, class_order=ORDER, base_classes=2, classes_per_task=2)
    assert [sorted(t.classes) for t in few.tasks] == [[1, 4], [0, 5], [2, 3]]
    assert trained(few, 0) == trained(whole, 0)
    for k in (1, 2):
        mine, all_of_them = trained(few, k), trained(whole, k)
        assert {c: len(items) for c, items in mine.items()} == dict.fromkeys(all_of_them, 3)
        assert all(items < all_of_them[c] for c, items in mine.items())
    for k, (mine, theirs) in enumerate(zip(few.tasks, whole.tasks, strict=True)):
        assert (mine.n_validation, mine.n_test) == (theirs.n_validation, theirs.n_test), k


def test_items_without_a_label_stay_in_the_graph() -> None:
    for policy in ("none", "full"):
        few = tiny_stream(DATA, class_order=ORDER, edge_policy=policy, base_classes=2, shots=1)
        whole = tiny_stream(DATA, class_order=ORDER, edge_policy=policy, base_classes=2)
        for k in range(3):
            assert few.view(k, k).train.graph.n_nodes == whole.view(k, k).train.graph.n_nodes
            assert few.view(k, k).train.graph.n_edges == whole.view(k, k).train.graph.n_edges


def test_a_base_of_another_size() -> None:
    stream = tiny_stream(DATA, class_order=ORDER, base_classes=4, classes_per_task=1)
    assert [len(t.classes) for t in stream.tasks] == [4, 1, 1]
    assert [len(t.classes) for t in tiny_stream(DATA, class_order=ORDER, base_classes=4, classes_per_task=1, n_tasks=2).tasks] == [4, 1]
    assert [
        len(t.classes) for t in tiny_stream(DATA, class_order=ORDER, base_classes=3, classes_per_task=2, leftover="join-last").tasks
    ] == [3, 3]


def test_foreseen_names_are_those_of_the_tasks() -> None:
    spec = tiny_spec(class_order=ORDER, base_classes=4, classes_per_task=1)
    assert foreseen(spec, 0) == ("4,1,0,5", "2", "3")
    assert foreseen(tiny_spec(class_order=ORDER), 0) == ("4,1", "0,5", "2,3")


def test_draws_depend_on_the_class_and_the_split_seed_alone() -> None:
    y = torch.arange(4).repeat_interleave(30)
    split = torch.zeros(120, dtype=torch.int8)
    split[::3] = 2
    one, other = few_shots(split, y, torch.tensor([1, 3]), 4, 0), few_shots(split, y, torch.tensor([3]), 4, 0)
    assert ((one == 0) & (y == 3)).equal((other == 0) & (y == 3))
    assert not one.equal(few_shots(split, y, torch.tensor([1, 3]), 4, 1))
    assert [int(((one == 0) & (y == c)).sum()) for c in range(4)] == [20, 4, 20, 4]
    assert (one == 2).equal(split == 2)
    assert few_shots(split, y, torch.tensor([1]), 1000, 0).equal(split)


def test_no_class_is_left() -> None:
    with pytest.raises(SpecError, match="base_classes = 6 leaves none of the 6 classes for a second task"):
        with_base(torch.arange(6), 6, lambda order: [order])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"setting": "domain-il", "task_key": "part", "shots": 2}, "setting is domain-il"),
        ({"base_classes": 2, "classes_per_task": None, "n_tasks": 3}, "classes_per_task is none"),
        ({"shots": 2, "class_order": "all-tasks"}, "moves the first task"),
        ({"shots": 2, "split": "task-wise"}, "split is task-wise"),
        ({"shots": 2, "labels": "multi", "performance": "roc-auc"}, "labels are multi"),
    ],
)
def test_streams_without_a_base_task_refuse_it(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        tiny_spec(**changes)  # type: ignore[arg-type]
