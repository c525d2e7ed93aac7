"""Orders, tasks, splits and subgraphs against brute force, and the errors that name what is wrong."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from cglsuite.base.errors import DataError, SpecError
from cglsuite.graphs import sparse
from cglsuite.graphs.sparse import sorted_csr
from cglsuite.graphs.splits import partition
from cglsuite.graphs.splits.partition import (
    induced_subgraph,
    keep_classes,
    official_split,
    per_class_split,
    split_into_tasks,
    symmetrised,
)

PINNED_SPLIT = [0, 0, 0, 0, 1, 2, 2, 0, 1, 0, 2, 0, 1, 0, 0, 2, 0, 1, 0, 0]


def labels(*counts: int, seed: int = 0) -> Tensor:
    """Shuffled labels with ``counts[c]`` items of class c, and three items without a label."""
    y = torch.cat([torch.full((n,), c) for c, n in enumerate(counts)] + [torch.full((3,), -1)])
    return y[torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))]


# --- classes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("minimum", "kept"), [(0, [0, 1, 3]), (1, [0, 1, 3]), (2, [0, 3]), (5, [0, 3]), (6, [3]), (9, [])])
def test_small_classes_are_removed_and_empty_ones_always(minimum: int, kept: list[int]) -> None:
    assert keep_classes(labels(5, 1, 0, 8), 4, minimum).tolist() == kept


# --- tasks ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("per_task", "leftover", "n_tasks", "expected"),
    [
        (2, "drop", None, [[6, 5], [4, 3], [2, 1]]),
        (2, "join-last", None, [[6, 5], [4, 3], [2, 1, 0]]),
        (3, "drop", None, [[6, 5, 4], [3, 2, 1]]),
        (3, "join-last", None, [[6, 5, 4], [3, 2, 1, 0]]),
        (5, "join-last", None, [[6, 5, 4, 3, 2, 1, 0]]),
        (7, "drop", None, [[6, 5, 4, 3, 2, 1, 0]]),
        (7, "join-last", None, [[6, 5, 4, 3, 2, 1, 0]]),
        (1, "drop", None, [[6], [5], [4], [3], [2], [1], [0]]),
        (2, "drop", 2, [[6, 5], [4, 3]]),
        (2, "join-last", 2, [[6, 5], [4, 3]]),
        (2, "join-last", 3, [[6, 5], [4, 3], [2, 1, 0]]),
    ],
)
def test_tasks_by_hand(per_task: int, leftover: str, n_tasks: int | None, expected: list[list[int]]) -> None:
    order = torch.tensor([6, 5, 4, 3, 2, 1, 0])
    assert [t.tolist() for t in split_into_tasks(order, per_task, leftover, n_tasks, drop_last=True)] == expected


@pytest.mark.parametrize(
    ("classes", "per_task", "n_tasks", "says"),
    [
        (10, 7, None, r"scenario\.classes_per_task = 7: of 10 classes 3 would fill no task .* a divisor of 10 \(1, 2, 5, 10\)"),
        (7, 2, None, r"scenario\.classes_per_task = 2: of 7 classes 1 would fill no task .* \(1, 7\)"),
        (10, None, 4, r"scenario\.n_tasks = 4: of 10 classes 2 would fill no task"),
    ],
)
def test_no_class_is_dropped_in_silence(classes: int, per_task: int | None, n_tasks: int | None, says: str) -> None:
    """The message says how many, and what to do: both ways are open, and give the tasks that they always gave."""
    order = torch.arange(classes)
    with pytest.raises(SpecError, match=says + r".* scenario\.drop_last=true .* scenario\.leftover=join-last"):
        split_into_tasks(order, per_task, "drop", n_tasks)
    kept = split_into_tasks(order, per_task, "drop", n_tasks, drop_last=True)
    joined = split_into_tasks(order, per_task, "join-last", n_tasks)
    assert torch.cat(joined).tolist() == order.tolist()
    assert [t.tolist() for t in kept[:-1]] == [t.tolist() for t in joined[:-1]]


def test_classes_beyond_the_tasks_that_were_asked_for_are_not_dropped_in_silence() -> None:
    """Two tasks of three say that six classes are wanted."""
    assert [t.tolist() for t in split_into_tasks(torch.arange(7), 3, "drop", 2)] == [[0, 1, 2], [3, 4, 5]]


def test_too_few_classes_for_the_tasks() -> None:
    with pytest.raises(SpecError, match="3 classes are too few for a task with 4 classes: lower scenario.classes_per_task"):
        split_into_tasks(torch.arange(3), 4, "join-last", None)
    with pytest.raises(SpecError, match="scenario.n_tasks = 4, but 7 classes form at most 3 tasks of 2"):
        split_into_tasks(torch.arange(7), 2, "drop", 4)


# --- splits -----------------------------------------------------------------------------------------------------------------------


def test_sizes_by_hand() -> None:
    """floor(n·0.6), floor(n·0.2) and the rest: 6/2/2 of ten, 4/1/2 of seven, 3/1/1 of five."""
    y = labels(10, 7, 5)
    split = per_class_split(y, torch.tensor([0, 1, 2]), (0.6, 0.2, 0.2), 0)
    sizes = [[int(((y == c) & (split == part)).sum()) for part in (0, 1, 2)] for c in range(3)]
    assert sizes == [[6, 2, 2], [4, 1, 2], [3, 1, 1]]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(5, 30), min_size=1, max_size=5), st.integers(0, 2**40), st.sampled_from([(0.6, 0.2, 0.2), (0.5, 0.25, 0.25)]))
def test_parts_are_disjoint_and_cover_the_chosen_classes_only(counts: list[int], seed: int, ratio: tuple[float, float, float]) -> None:
    y = labels(*counts, seed=seed % 1000)
    chosen = torch.arange(0, len(counts), 2)
    split = per_class_split(y, chosen, ratio, seed)
    assert split.dtype == torch.int8
    assert (split[~torch.isin(y, chosen)] == -1).all()
    for c in chosen.tolist():
        parts = Counter(split[y == c].tolist())
        n = counts[c]
        assert parts[-1] == 0
        assert (parts[0], parts[1]) == (int(n * ratio[0] + 1e-9), int(n * ratio[1] + 1e-9))
        assert sum(parts.values()) == n


def test_a_class_splits_the_same_whatever_else_is_there() -> None:
    """Only its own members, the ratio and the seed matter: more classes, or classes removed, change nothing for the others."""
    y = labels(10, 12, 20, 9)
    everything = per_class_split(y, torch.tensor([0, 1, 2, 3]), (0.6, 0.2, 0.2), 3)
    for chosen in ([2], [3, 2], [0, 2, 3]):
        alone = per_class_split(y, torch.tensor(chosen), (0.6, 0.2, 0.2), 3)
        members = torch.isin(y, torch.tensor(chosen))
        assert torch.equal(alone[members], everything[members])
    relabelled = torch.where(y == 0, -1, y)  # class 0 is gone from the data too
    assert torch.equal(per_class_split(relabelled, torch.tensor([2]), (0.6, 0.2, 0.2), 3)[y == 2], everything[y == 2])


def test_splits_differ_between_seeds_and_classes_but_not_between_calls() -> None:
    y = torch.arange(2).repeat_interleave(20)
    classes = torch.tensor([0, 1])
    one = per_class_split(y, classes, (0.5, 0.25, 0.25), 1)
    state = torch.get_rng_state()
    assert torch.equal(per_class_split(y, classes, (0.5, 0.25, 0.25), 1), one)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(per_class_split(y, classes, (0.5, 0.25, 0.25), 2), one)
    assert not torch.equal(one[:20], one[20:])


def test_a_split_is_pinned() -> None:
    """Stored results rest on these draws."""
    split = per_class_split(torch.arange(2).repeat_interleave(10), torch.tensor([0, 1]), (0.6, 0.2, 0.2), 0)
    assert split.tolist() == PINNED_SPLIT


@pytest.mark.parametrize(
    ("counts", "ratio", "named"),
    [
        ((10, 4), (0.6, 0.2, 0.2), "class 1 has 4 items, too few for a 0.6/0.2/0.2 split with an item in every part: raise .* above 4"),
        ((1, 10), (0.6, 0.2, 0.2), "class 0 has 1 items, too few"),
        ((10, 1), (0.5, 0.0, 0.5), "class 1 has 1 items, too few"),
    ],
)
def test_a_class_too_small_is_named(counts: tuple[int, ...], ratio: tuple[float, float, float], named: str) -> None:
    with pytest.raises(DataError, match=named):
        per_class_split(labels(*counts), torch.arange(len(counts)), ratio, 0)


def test_a_part_without_a_share_may_be_empty() -> None:
    y = labels(4)
    split = per_class_split(y, torch.tensor([0]), (0.5, 0.0, 0.5), 0)
    assert Counter(split[y == 0].tolist()) == {0: 2, 2: 2}


def test_the_official_split_is_the_datasets_own_or_an_error() -> None:
    split = torch.tensor([0, 1, 2, -1], dtype=torch.int8)
    assert official_split(split, "cora") is split
    with pytest.raises(SpecError, match="scenario.split = official, but the dataset 'cora' has no official split"):
        official_split(None, "cora")


# --- edges ------------------------------------------------------------------------------------------------------------------------


def test_symmetrised_by_hand() -> None:
    """Both directions once each, sorted; self-loops and repetitions gone."""
    edges = torch.tensor([[2, 0, 1, 1, 0, 2], [0, 1, 0, 1, 1, 3]])
    assert symmetrised(edges, 4).tolist() == [[0, 0, 1, 2, 2, 3], [1, 2, 0, 0, 3, 2]]
    assert symmetrised(torch.empty(2, 0, dtype=torch.int64), 4).tolist() == [[], []]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=25),
    st.lists(st.integers(0, 7), unique=True, max_size=8),
)
def test_edges_equal_brute_force(pairs: list[tuple[int, int]], nodes: list[int]) -> None:
    edges = torch.tensor(pairs, dtype=torch.int64).view(-1, 2).T
    both = sorted({(a, b) for a, b in pairs if a != b} | {(b, a) for a, b in pairs if a != b})
    assert symmetrised(edges, 8).T.tolist() == [list(p) for p in both]
    kept = [[nodes.index(a), nodes.index(b)] for a, b in pairs if a in nodes and b in nodes]
    assert induced_subgraph(edges, torch.tensor(nodes, dtype=torch.int64), 8).T.tolist() == kept


def test_symmetric_edges_are_given_back_as_they_are() -> None:
    """No copy of a large graph whose edges are in order already; any other order is mended."""
    edges = torch.tensor([[0, 0, 1, 2], [1, 2, 0, 0]])
    assert symmetrised(edges, 3) is edges
    assert symmetrised(edges[:, [1, 0, 2, 3]], 3).tolist() == edges.tolist()
    assert symmetrised(edges[:, :3], 3).tolist() == edges.tolist()  # sorted, but one direction is missing


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20), st.integers(1, 4))
def test_edges_do_not_depend_on_the_size_of_pieces(pairs: list[tuple[int, int]], piece: int) -> None:
    nodes = torch.tensor([4, 1, 0, 3])
    given_edges = torch.tensor(pairs, dtype=torch.int64).view(-1, 2).T
    for edges in (given_edges, given_edges.unique(dim=1) if pairs else given_edges):
        expected = symmetrised(edges, 6), induced_subgraph(edges, nodes, 6), sorted_csr(edges, 6)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(partition, "_PIECE", piece)
            patch.setattr(sparse, "_PIECE", piece)
            assert torch.equal(symmetrised(edges, 6), expected[0])
            assert torch.equal(induced_subgraph(edges, nodes, 6), expected[1])
            found = sorted_csr(edges, 6)
        ascending = all(a < b for a, b in pairwise(edges.T.tolist())) and not (edges[0] == edges[1]).any()
        assert (found is None) == (expected[2] is None) == (not ascending)
        if found is not None:
            assert found.has_canonical_format
            assert torch.from_numpy(np.stack(found.nonzero())).tolist() == edges.tolist()
