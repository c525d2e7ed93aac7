"""Pairs without a link: none is a link in any direction, types are kept, draws are uniform and follow from their seed."""

from __future__ import annotations

import random
from itertools import combinations, permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from cglsuite.base.errors import DataError
from cglsuite.graphs.splits.negatives import _shares, draw_negatives, oriented, pair_keys, random_destinations

LINKS = torch.tensor([[0, 3, 2, 4], [1, 0, 3, 1]])


def as_set(pairs: Tensor) -> set[tuple[int, int]]:
    return {(int(u), int(v)) for u, v in pairs.T}


def test_all_free_pairs_of_a_small_graph_are_found() -> None:
    """Of ten pairs of five nodes four are links."""
    linked = {frozenset(p) for p in as_set(LINKS)}
    free = {p for p in combinations(range(5), 2) if frozenset(p) not in linked}
    assert as_set(draw_negatives(LINKS, 6, 5, seed=0)) == free
    directed = {p for p in permutations(range(5), 2) if p not in as_set(LINKS)}
    assert as_set(draw_negatives(LINKS, 16, 5, seed=0, undirected=False)) == directed
    others = torch.tensor([[2], [0]])
    assert as_set(draw_negatives(LINKS, 5, 5, seed=0, others=others)) == free - {(0, 2)}


def test_a_graph_without_free_pairs_is_refused() -> None:
    complete = torch.combinations(torch.arange(5)).T
    with pytest.raises(DataError, match="whole: 1 negatives are needed, but only 0 node pairs have no link"):
        draw_negatives(complete, 1, 5, seed=0, name="whole")
    with pytest.raises(DataError, match="7 negatives are needed, but only 6 node pairs have no link"):
        draw_negatives(LINKS, 7, 5, seed=0)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_whatever_is_drawn_is_free_and_of_the_links_types(data: st.DataObject) -> None:
    n = data.draw(st.integers(6, 14))
    undirected, typed = data.draw(st.booleans()), data.draw(st.booleans())
    types = torch.tensor(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))) if typed else None
    every = torch.tensor(list(permutations(range(n), 2)))
    chosen = every[torch.randperm(len(every), generator=torch.Generator().manual_seed(data.draw(st.integers(0, 99))))]
    links, others = chosen[:8].T, chosen[8:10].T
    seed, count = data.draw(st.integers(0, 99)), data.draw(st.integers(1, 6))
    try:
        drawn = draw_negatives(links, count, n, seed=seed, others=others, types=types, undirected=undirected)
    except DataError:
        return  # some combination of types has too few free pairs
    assert drawn.shape == (2, count)
    assert len(as_set(drawn)) == count
    assert bool((drawn[0] != drawn[1]).all())
    taken = torch.cat([links, others], dim=1)
    assert not torch.isin(pair_keys(drawn, n, undirected), pair_keys(taken, n, undirected)).any()
    if undirected:
        assert bool((drawn[0] < drawn[1]).all())
    if types is not None:
        kinds = as_set(oriented(types[links], undirected))
        assert as_set(oriented(types[drawn], undirected)) <= kinds


def test_types_come_in_the_links_proportions() -> None:
    """Three of four links lead from type 0 to type 1, one within type 1."""
    types = torch.tensor([0, 1]).repeat(20)
    links = torch.tensor([[0, 2, 4, 1], [1, 3, 5, 3]])
    drawn = draw_negatives(links, 40, 40, seed=1, types=types, undirected=False)
    assert torch.bincount(types[drawn[0]] * 2 + types[drawn[1]], minlength=4).tolist() == [0, 30, 0, 10]


def test_a_draw_follows_from_its_seed_alone() -> None:
    random.seed(7)
    state = random.getstate()
    one = draw_negatives(LINKS, 40, 50, seed=3)
    assert random.getstate() == state
    random.seed(8)
    torch.manual_seed(8)
    assert torch.equal(draw_negatives(LINKS, 40, 50, seed=3), one)
    assert not torch.equal(draw_negatives(LINKS, 40, 50, seed=4), one)


@pytest.mark.parametrize("count", [2, 30])
def test_every_free_pair_is_as_likely(count: int) -> None:
    """Where few are asked for, and where almost all are: of 41 free pairs each is drawn in count / 41 of the draws."""
    links = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    drawn = torch.cat([draw_negatives(links, count, 10, seed=s) for s in range(600)], dim=1)
    counts = torch.bincount(pair_keys(drawn, 10, True), minlength=100)
    counts = counts[counts > 0].double()
    assert len(counts) == 41
    expected = 600 * count / 41
    assert float((counts - expected).abs().max()) < 5 * expected**0.5


def test_random_destinations_are_uniform_within_a_type() -> None:
    types = torch.tensor([0, 2, 0, 2, 2, 0])
    generator = torch.Generator().manual_seed(0)
    drawn = random_destinations(torch.tensor([1, 0]).repeat(6000), types, generator).view(-1, 2)
    for column, nodes in ((0, [1, 3, 4]), (1, [0, 2, 5])):
        counts = torch.bincount(drawn[:, column], minlength=6)
        assert counts.nonzero().flatten().tolist() == nodes
        assert float((counts[nodes] - 2000).abs().max()) < 200


@pytest.mark.parametrize("n", [3, 40])
def test_equal_remainders_go_to_the_first(n: int) -> None:
    """Many of them, too, where a sort that is not stable would choose others."""
    shares = _shares(torch.ones(n, dtype=torch.int64), n + n // 2)
    assert shares == [2] * (n // 2) + [1] * (n - n // 2)
    assert sum(_shares(torch.tensor([5, 1, 1]), 10)) == 10
    assert _shares(torch.tensor([5, 1, 1]), 10) == [7, 2, 1]
