"""Orders of classes and tasks: drawn, written out, counted through and balanced, against brute force and by hand."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations
from math import factorial

import pytest
import torch
from torch import Tensor

from cglsuite.base.errors import SpecError
from cglsuite.graphs.splits.orders import class_order, foreseen, latin_row, nth_permutation, ordered_tasks, row
from cglsuite.graphs.splits.partition import split_into_tasks
from cglsuite.specs import ScenarioSpec, order_count

CLASSES = torch.tensor([0, 2, 3, 7])


# --- classes ----------------------------------------------------------------------------------------------------------------------


def test_native_order_keeps_ascending_ids() -> None:
    assert class_order("native", CLASSES, 5).tolist() == [0, 2, 3, 7]


@pytest.mark.parametrize("seed", [0, 1, 17])
def test_random_order_is_torchs_permutation_under_the_seed(seed: int) -> None:
    expected = CLASSES[torch.randperm(4, generator=torch.Generator().manual_seed(seed))]
    with torch.random.fork_rng():
        torch.manual_seed(seed)  # as BeGin draws its orders
        assert expected.tolist() == CLASSES[torch.randperm(4)].tolist()
    state = torch.get_rng_state()
    assert class_order("random", CLASSES, seed).tolist() == expected.tolist()
    assert torch.equal(torch.get_rng_state(), state)


def test_random_orders_differ_between_seeds() -> None:
    assert len({tuple(class_order("random", CLASSES, seed).tolist()) for seed in range(20)}) > 5


def test_every_explicit_permutation_is_taken() -> None:
    for order in permutations([0, 2, 3, 7]):
        assert class_order(",".join(map(str, order)), CLASSES, 0).tolist() == list(order)
    assert class_order(" 7, 0 ,3,2", CLASSES, 0).tolist() == [7, 0, 3, 2]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("7,0,3,1", r"scenario\.class_order: 1 is not a class of this scenario; expected a permutation of \[0, 2, 3, 7\]"),
        ("7,0,3,2,9", "scenario.class_order: 9 is not a class of this scenario"),
        ("7,0,3,-2", "scenario.class_order: -2 is not a class of this scenario"),
        ("7,0,3,7", "scenario.class_order: 7 appears twice; expected a permutation of"),
        ("7,0,2,3,0", "scenario.class_order: 0 appears twice"),
        ("7,0,2", "scenario.class_order: class 3 is missing; expected a permutation of"),
        ("7", "scenario.class_order: class 0 is missing"),
        (
            "nativ",
            "scenario.class_order = 'nativ': expected one of native, random, all-tasks, .*, latin-classes, or class ids",
        ),
        ("7,0,2.5,3", "scenario.class_order = '7,0,2.5,3': expected one of native, .*, or class ids"),
        ("", "scenario.class_order = '': expected one of native, .*, or class ids"),
        ("7,,0,2,3", "scenario.class_order = '7,,0,2,3': expected one of native, .*, or class ids"),
    ],
)
def test_an_order_that_is_no_permutation_names_the_offending_element(rule: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        class_order(rule, CLASSES, 0)


# --- designs ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_all_permutations_in_lexicographic_order(n: int) -> None:
    assert [nth_permutation(n, i) for i in range(factorial(n))] == [list(p) for p in permutations(range(n))]


def test_a_permutation_far_out_needs_no_list_of_all() -> None:
    assert nth_permutation(20, factorial(20) - 1) == list(range(19, -1, -1))
    assert nth_permutation(20, factorial(19)) == [1, 0, *range(2, 20)]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 10, 35])
def test_latin_rows_are_balanced(n: int) -> None:
    """Each item as often at each place, and each ordered pair of neighbours equally often: once for even n, twice for odd n."""
    rows = [latin_row(n, i) for i in range(order_count("latin-tasks", n) or 0)]
    times = 1 if n % 2 == 0 else 2
    assert len(rows) == times * n
    assert all(sorted(r) == list(range(n)) for r in rows)
    places = Counter((place, item) for r in rows for place, item in enumerate(r))
    assert {places[place, item] for place in range(n) for item in range(n)} == {times}
    neighbours = Counter(pair for r in rows for pair in pairwise(r))
    assert {neighbours[a, b] for a in range(n) for b in range(n) if a != b} == {times}


def test_the_first_rows_by_hand() -> None:
    assert [latin_row(4, i) for i in range(4)] == [[0, 1, 3, 2], [1, 2, 0, 3], [2, 3, 1, 0], [3, 0, 2, 1]]
    assert [latin_row(3, i) for i in range(6)] == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0], [0, 2, 1], [1, 0, 2]]


def test_random_tasks_are_torchs_permutation_under_the_seed() -> None:
    for seed in (0, 3, 10**6):
        assert row("random-tasks", 5, seed) == torch.randperm(5, generator=torch.Generator().manual_seed(seed)).tolist()


@pytest.mark.parametrize(
    ("rule", "seed", "message"),
    [
        ("all-tasks", 6, r"seeds\.order = 6: scenario\.class_order = all-tasks has only 6 orders of 3 tasks; expected 0 to 5"),
        ("all-tasks", -1, r"seeds\.order = -1: .* expected 0 to 5"),
        ("latin-tasks", 6, r"seeds\.order = 6: scenario\.class_order = latin-tasks has only 6 orders of 3 tasks; expected 0 to 5"),
        (
            "latin-classes",
            14,
            r"seeds\.order = 14: scenario\.class_order = latin-classes has only 14 orders of 7 classes; expected 0 to 13",
        ),
    ],
)
def test_a_seed_beyond_the_last_order_is_refused_with_their_number(rule: str, seed: int, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        arranged(rule, seed)


def arranged(rule: str, seed: int, leftover: str = "drop", classes: int = 7) -> list[list[int]]:
    def split(order: Tensor) -> list[Tensor]:
        return split_into_tasks(order, 2, leftover, None, drop_last=True)

    return [task.tolist() for task in ordered_tasks(rule, torch.arange(classes), seed, split)]


@pytest.mark.parametrize(
    ("rule", "seed", "leftover", "expected"),
    [
        ("native", 9, "drop", [[0, 1], [2, 3], [4, 5]]),
        ("all-tasks", 0, "drop", [[0, 1], [2, 3], [4, 5]]),
        ("all-tasks", 3, "drop", [[2, 3], [4, 5], [0, 1]]),
        ("all-tasks", 5, "drop", [[4, 5], [2, 3], [0, 1]]),
        ("all-tasks", 5, "join-last", [[4, 5, 6], [2, 3], [0, 1]]),
        ("latin-tasks", 3, "join-last", [[4, 5, 6], [2, 3], [0, 1]]),
        ("latin-classes", 0, "drop", [[0, 1], [6, 2], [5, 3]]),
        ("latin-classes", 0, "join-last", [[0, 1], [6, 2], [5, 3, 4]]),
    ],
)
def test_tasks_keep_their_classes_and_leftover_ones_stay_with_the_natively_last(
    rule: str, seed: int, leftover: str, expected: list[list[int]]
) -> None:
    """The last two of seven classes are joined to task 3, wherever it comes, or left out everywhere."""
    assert arranged(rule, seed, leftover) == expected


def test_all_task_orders_are_different_and_of_the_same_tasks() -> None:
    orders = [arranged("all-tasks", seed) for seed in range(6)]
    assert {frozenset(map(tuple, tasks)) for tasks in orders} == {frozenset({(0, 1), (2, 3), (4, 5)})}
    assert len({tuple(map(tuple, tasks)) for tasks in orders}) == 6


# --- what is known without data ---------------------------------------------------------------------------------------------------


def spec(class_order: str, n_tasks: int | None = 3, **changes: object) -> ScenarioSpec:
    given: dict[str, object] = {"name": "toy/class-il@x-1", "summary": "toy", "dataset": "toy", "setting": "class-il"}
    return ScenarioSpec(**(given | {"class_order": class_order, "n_tasks": n_tasks} | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "seed", "expected"),
    [
        (spec("native"), 4, ("0", "1", "2")),
        (spec("all-tasks"), 3, ("1", "2", "0")),
        (spec("latin-tasks"), 4, ("0", "2", "1")),
        (spec("random-tasks"), 1, tuple(map(str, row("random-tasks", 3, 1)))),
        (spec("all-tasks", None), 3, None),
        (spec("all-tasks"), 6, None),
        (spec("random"), 0, None),
        (spec("latin-classes"), 0, None),
        (spec("3,1,2,0,5,4 | 0,1,2,3,4,5"), 1, ("0,1", "2,3", "4,5")),
        (spec("3,1,2,0,5,4", None), 7, ("3,1", "2,0", "5,4")),
        (spec("3,1,2,0,5,4", 2, classes_per_task=None), 0, ("3,1,2", "0,5,4")),
        (spec("3,1,2", None, setting="domain-il"), 0, ("3", "1", "2")),
    ],
)
def test_tasks_foreseen_without_data(given: ScenarioSpec, seed: int, expected: tuple[str, ...] | None) -> None:
    assert foreseen(given, seed) == expected


def test_an_order_that_means_nothing_is_refused_by_the_scenario() -> None:
    with pytest.raises(SpecError, match="scenario.class_order = 'nonsense': expected native, random"):
        spec("nonsense")
