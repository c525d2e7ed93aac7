"""Splits that keep groups together, beside a loop over the same rule."""

from __future__ import annotations

import numpy as np
import pytest
from cglsuite_node.datasets.grouped import grouped_split

SHARES = (0.6, 0.2, 0.2)


def looped(y: list[int], group: list[int], seed: int) -> list[int]:
    """The rule of the docstring, in plain Python on the same draws."""
    draws = np.random.Generator(np.random.PCG64(seed)).random(max(group) + 1)
    members = {g: [y[i] for i in range(len(y)) if group[i] == g] for g in set(group)}
    home = {g: min(set(classes), key=lambda c: (-classes.count(c), c)) for g, classes in members.items()}
    part = {}
    for c in set(home.values()):
        line = sorted((g for g in home if home[g] == c), key=lambda g: draws[g])
        total, before = sum(len(members[g]) for g in line), 0
        for g in line:
            middle = (before + len(members[g]) / 2) / total
            part[g] = (middle >= SHARES[0]) + (middle >= SHARES[0] + SHARES[1])
            before += len(members[g])
    return [part[g] for g in group]


@pytest.mark.parametrize("seed", range(5))
def test_the_rule(seed: int) -> None:
    draws = np.random.default_rng(seed)
    group = np.unique(draws.integers(0, 40, 120), return_inverse=True)[1]
    y = draws.integers(0, 4, 120)
    split = grouped_split(y, group, SHARES, seed)
    assert split.dtype == np.int8
    assert split.tolist() == looped(y.tolist(), group.tolist(), seed)
    assert all(len(set(split[group == g])) == 1 for g in range(group.max() + 1))
    assert grouped_split(y, group, SHARES, seed).tolist() == split.tolist()


def test_single_items_have_the_shares_of_every_class() -> None:
    y = np.repeat([0, 1, 3], [10, 5, 20])
    split = grouped_split(y, np.arange(35), SHARES, seed=3)
    assert [np.bincount(split[y == c]).tolist() for c in (0, 1, 3)] == [[6, 2, 2], [3, 1, 1], [12, 4, 4]]
    assert grouped_split(y, np.arange(35), SHARES, seed=4).tolist() != split.tolist()


def test_a_group_with_equally_many_items_of_two_classes_belongs_to_the_first() -> None:
    """Class 1 has only the group of items 0 and 1, if that belonged to it; in class 0 the group is one of eleven."""
    y, group = np.array([1, 0] + [0] * 10), np.array([0, 0, *range(1, 11)])
    draws = np.random.Generator(np.random.PCG64(0)).random(11)
    last = int(np.argsort(draws)[-1])
    assert grouped_split(y, group, SHARES, 0)[group == last].tolist() == [2] * int((group == last).sum())
