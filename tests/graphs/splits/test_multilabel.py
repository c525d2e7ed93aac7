"""AGALE's tasks and splits: by hand, and what must hold for any label sets."""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, reject
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import Tensor

from cglsuite.base.errors import DataError
from cglsuite.graphs.splits.multilabel import _fill, label_matrix, node_consistent_split, task_members, task_split
from cglsuite.graphs.splits.orders import class_order
from cglsuite.graphs.splits.partition import keep_classes, split_into_tasks

AGALE_RATIO = (0.6, 0.1, 0.3)
RATIOS = st.sampled_from([AGALE_RATIO, (0.6, 0.2, 0.2), (0.5, 0.25, 0.25), (0.7, 0.0, 0.3)])
PINNED_SPLIT = [2, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 2, 1, 0, 2, 0, 0, 0, 0, 2, 0, 2, 0, 0]


@st.composite
def label_sets(draw: st.DrawFn) -> Tensor:
    """bool [N, C]: several hundred nodes with none, one or several labels, classes of unlike sizes, at least 30 nodes in each."""
    n, c, seed = draw(st.integers(120, 300)), draw(st.integers(2, 7)), draw(st.integers(0, 2**20))
    g = torch.Generator().manual_seed(seed)
    y = torch.rand(n, c, generator=g) < torch.linspace(0.15, draw(st.sampled_from([0.2, 0.6])), c)
    y[:, torch.randperm(c, generator=g)] = y.clone()
    assume(int(y.sum(dim=0).min()) >= 12)
    return y


def quotas(n: int, ratio: tuple[float, float, float]) -> list[int]:
    train = int(n * ratio[0] + 1e-9)
    validation = int((n - train) * ratio[1] / (ratio[1] + ratio[2]) + 1e-9)
    return [train, validation, n - train - validation]


def counts(split: Tensor, has: Tensor) -> list[int]:
    return split[has & (split >= 0)].long().bincount(minlength=3).tolist()


def drawn(y: Tensor, classes: Tensor, members: Tensor, ratio: tuple[float, float, float], seed: int) -> Tensor:
    """``task_split``, without the rare draws in which smaller classes use up all items of a larger one."""
    try:
        return task_split(y, classes, members, ratio, seed)
    except DataError as error:
        if "smaller classes that share them left none" not in str(error):
            raise
        reject()


# --- tasks ------------------------------------------------------------------------------------------------------------------------


def test_members_have_at_least_one_of_the_classes() -> None:
    y = torch.tensor([[1, 1, 0], [0, 0, 1], [0, 0, 0], [0, 1, 1]], dtype=torch.bool)
    assert task_members(y, torch.tensor([0, 1])).tolist() == [0, 3]
    assert task_members(y, torch.tensor([2])).tolist() == [1, 3]
    assert task_members(torch.tensor([2, 0, -1, 1]), torch.tensor([1, 2])).tolist() == [0, 3]
    assert label_matrix(torch.tensor([1, -1]), 2).tolist() == [[False, True], [False, False]]
    assert label_matrix(y, 3) is y


@hypothesis_settings(max_examples=30, deadline=None)
@given(label_sets(), st.integers(0, 100))
def test_algorithm_1(y: Tensor, seed: int) -> None:
    """Small classes go, an odd last class joins the last task, and every node of a kept class is in some task."""
    delta = int(y.sum(dim=0).median())
    kept = keep_classes(y, y.shape[1], delta)
    assert kept.tolist() == [c for c in range(y.shape[1]) if int(y[:, c].sum()) >= delta]
    assume(kept.numel() >= 2)
    tasks = split_into_tasks(class_order("random", kept, seed), 2, "join-last", None)
    assert [t.numel() for t in tasks] == [2] * (len(tasks) - 1) + [2 + kept.numel() % 2]
    everywhere = torch.cat([task_members(y, t) for t in tasks]).unique()
    assert torch.equal(everywhere, task_members(y, kept))


# --- Algorithm 2 by hand ----------------------------------------------------------------------------------------------------------


def test_the_smaller_class_first_and_its_items_count_for_the_larger() -> None:
    """Class 1: 10 nodes, 6/1/3. Class 0: 20 nodes, 12/2/6, among them the 10 of class 1: the other 10 are split 6/1/3 as well."""
    y = torch.zeros(20, 2, dtype=torch.bool)
    y[:, 0], y[5:15, 1] = True, True
    split = task_split(y, torch.tensor([0, 1]), torch.arange(20), AGALE_RATIO, 0)
    assert counts(split, y[:, 1]) == [6, 1, 3]
    assert counts(split, y[:, 0]) == [12, 2, 6]
    alone = task_split(y, torch.tensor([1]), torch.arange(5, 15), AGALE_RATIO, 0)
    assert torch.equal(alone[5:15], split[5:15])


@pytest.mark.parametrize(("n", "expected"), [(53, [31, 5, 17]), (246, [147, 24, 75]), (320, [192, 32, 96]), (610, [366, 61, 183])])
def test_sizes_as_in_the_published_splits(n: int, expected: list[int]) -> None:
    """0.6 n to train, a quarter of the rest to validate: the counts that the authors' preparation of BlogCatalog prints."""
    split = task_split(torch.zeros(n, dtype=torch.int64), torch.tensor([0]), torch.arange(n), AGALE_RATIO, 1)
    assert counts(split, torch.ones(n, dtype=torch.bool)) == expected


@pytest.mark.parametrize(
    ("quota", "placed", "free", "expected"),
    [
        ([6, 1, 3], [0, 0, 0], 10, [6, 1, 3]),
        ([6, 1, 3], [3, 0, 1], 6, [3, 1, 2]),
        ([6, 1, 3], [0, 3, 0], 7, [5, 0, 2]),  # 2 validation items too many: 6 and 3 are lacking, 7 are free
        ([6, 1, 3], [8, 0, 0], 2, [0, 1, 1]),  # an empty part first
        ([6, 1, 3], [9, 0, 0], 1, [0, 0, 1]),  # one item for two empty parts: the larger one has it
        ([6, 1, 3], [6, 4, 0], 0, [0, 0, 0]),
    ],
)
def test_overfilled_parts(quota: list[int], placed: list[int], free: int, expected: list[int]) -> None:
    assert _fill(quota, placed, free) == expected


def test_a_split_is_pinned() -> None:
    """Stored results rest on these draws."""
    y = torch.zeros(24, 2, dtype=torch.bool)
    y[:14, 0], y[10:, 1] = True, True
    assert task_split(y, torch.tensor([0, 1]), torch.arange(24), AGALE_RATIO, 0).tolist() == PINNED_SPLIT


# --- Algorithm 2 in general -------------------------------------------------------------------------------------------------------


@hypothesis_settings(max_examples=60, deadline=None)
@given(label_sets(), RATIOS, st.integers(0, 2**40))
def test_each_member_is_in_one_part_and_no_other_node_in_any(y: Tensor, ratio: tuple[float, float, float], seed: int) -> None:
    for task in split_into_tasks(torch.arange(y.shape[1]), 2, "join-last", None):
        members = task_members(y, task)
        split = drawn(y, task, members, ratio, seed)
        assert split.dtype == torch.int8
        assert torch.equal((split >= 0).nonzero().flatten(), members)
        parts = [set((split == code).nonzero().flatten().tolist()) for code in range(3)]
        assert set().union(*parts) == set(members.tolist())
        assert sum(map(len, parts)) == members.numel()
        for c in task.tolist():
            assert all(n > 0 or share == 0 for n, share in zip(counts(split, y[:, c]), ratio, strict=True))
        assert torch.equal(task_split(y, task.flip(0), members, ratio, seed), split)


@hypothesis_settings(max_examples=60, deadline=None)
@given(label_sets(), RATIOS, st.integers(0, 2**40))
def test_shares(y: Tensor, ratio: tuple[float, float, float], seed: int) -> None:
    """The smallest class has its quotas exactly, within two items of the ratio; a larger one unless a smaller one overfilled a part."""
    task = torch.arange(y.shape[1])
    split = drawn(y, task, task_members(y, task), ratio, seed)
    order = sorted(task.tolist(), key=lambda c: (int(y[:, c].sum()), c))
    placed = torch.zeros(y.shape[0], dtype=torch.bool)
    for c in order:
        n, got = int(y[:, c].sum()), counts(split, y[:, c])
        before = counts(split, y[:, c] & placed)
        wanted = quotas(n, ratio)
        if all(b <= w for b, w in zip(before, wanted, strict=True)):
            assert got == wanted
            assert all(abs(g - n * share) < 2 for g, share in zip(got, ratio, strict=True))
        else:  # overfilled parts take nothing more, the others do not come to exceed their quota
            assert all(g == b if b >= w else b <= g <= w for g, b, w in zip(got, before, wanted, strict=True))
        placed |= y[:, c]
    smallest = order[0]
    assert counts(split, y[:, smallest]) == quotas(int(y[:, smallest].sum()), ratio)


@hypothesis_settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(10, 40), min_size=2, max_size=6), RATIOS, st.integers(0, 2**40))
def test_one_label_per_node(sizes: list[int], ratio: tuple[float, float, float], seed: int) -> None:
    """The same split as one-label sets, every class at its quotas, each class as if it were alone."""
    y = torch.cat([torch.full((n,), c) for c, n in enumerate(sizes)] + [torch.full((5,), -1)])
    y = y[torch.randperm(y.numel(), generator=torch.Generator().manual_seed(seed % 1000))]
    classes = torch.arange(len(sizes))
    members = task_members(y, classes)
    split = task_split(y, classes, members, ratio, seed)
    assert torch.equal(task_split(label_matrix(y, len(sizes)), classes, members, ratio, seed), split)
    assert torch.equal(node_consistent_split(y, classes, ratio, seed), split)
    for c, n in enumerate(sizes):
        assert counts(split, y == c) == quotas(n, ratio)
        only = torch.tensor([c])
        assert torch.equal(task_split(y, only, task_members(y, only), ratio, seed)[y == c], split[y == c])
    assert (split[y < 0] == -1).all()


def test_draws_differ_between_seeds_and_leave_the_global_state_alone() -> None:
    y = torch.zeros(40, dtype=torch.int64)
    state = torch.get_rng_state()
    splits = {tuple(task_split(y, torch.tensor([0]), torch.arange(40), AGALE_RATIO, seed).tolist()) for seed in range(5)}
    assert len(splits) == 5
    assert torch.equal(torch.get_rng_state(), state)


# --- the split that holds across tasks --------------------------------------------------------------------------------------------


@hypothesis_settings(max_examples=60, deadline=None)
@given(label_sets(), RATIOS, st.integers(0, 2**40))
def test_no_node_is_test_data_of_one_task_and_training_data_of_another(y: Tensor, ratio: tuple[float, float, float], seed: int) -> None:
    classes = torch.arange(y.shape[1])
    everywhere = drawn(y, classes, task_members(y, classes), ratio, seed)
    assert torch.equal(node_consistent_split(y, classes, ratio, seed), everywhere)
    assert torch.equal((everywhere >= 0).nonzero().flatten(), task_members(y, classes))
    assert torch.equal(node_consistent_split(y, classes.flip(0), ratio, seed), everywhere)
    parts: dict[int, set[int]] = {}
    for task in split_into_tasks(class_order("random", classes, seed % 1000), 2, "join-last", None):
        for node in task_members(y, task).tolist():
            parts.setdefault(node, set()).add(int(everywhere[node]))
        for c in task.tolist():
            assert all(n > 0 or share == 0 for n, share in zip(counts(everywhere, y[:, c]), ratio, strict=True))
    assert all(len(found) == 1 and found <= {0, 1, 2} for found in parts.values())


def test_per_task_splits_do_leak() -> None:
    """Why the option exists: with Algorithm 2 task by task, nodes are training data here and test data there."""
    y = torch.rand(300, 4, generator=torch.Generator().manual_seed(0)) < 0.5
    first, second = (task_split(y, c, task_members(y, c), AGALE_RATIO, 0) for c in torch.arange(4).split(2))
    assert int(((first == 0) & (second == 2)).sum()) > 10


# --- errors -----------------------------------------------------------------------------------------------------------------------


def test_a_class_too_small_is_named() -> None:
    y = torch.cat([torch.zeros(20, dtype=torch.int64), torch.full((4,), 3)])
    named = (
        "class 3 has 4 items, too few for a 0.6/0.1/0.3 split with an item in every part: raise scenario.min_class_size above 4 .* "
        "or change"
    )
    for split in (lambda c: task_split(y, c, task_members(y, c), AGALE_RATIO, 0), lambda c: node_consistent_split(y, c, AGALE_RATIO, 0)):
        with pytest.raises(DataError, match=named):
            split(torch.tensor([0, 3]))
    with pytest.raises(DataError, match="class 1 has 0 items"):
        node_consistent_split(y, torch.tensor([0, 1]), AGALE_RATIO, 0)


def test_a_class_whose_items_smaller_classes_used_up_is_named() -> None:
    """Class 2 is made of the 6 training items each of classes 0 and 1, so that nothing is left to validate and to test it."""
    y = torch.zeros(20, 3, dtype=torch.bool)
    y[:10, 0], y[10:, 1] = True, True
    y[:, 2] = node_consistent_split(y, torch.tensor([0, 1]), AGALE_RATIO, 0) == 0
    with pytest.raises(DataError, match=r"class 2 has 12 items, but smaller classes that share them left none for validation: raise .* 12"):
        node_consistent_split(y, torch.arange(3), AGALE_RATIO, 0)


def test_a_stray_member_is_named() -> None:
    with pytest.raises(DataError, match=r"node 2 has none of the task's classes \[0\]; get the members from task_members"):
        task_split(torch.tensor([0, 0, 1]), torch.tensor([0]), torch.arange(3), AGALE_RATIO, 0)
