"""Neighbour sampling: which neighbours are kept, how likely each is, and that a sample wide enough changes no output."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cglsuite.backbones.convolutional import gcn
from cglsuite.graphs import MessageGraph, SparseMatrix
from cglsuite.graphs.sampling import distinct_ranks, sample_neighbours
from cglsuite.graphs.sparse import spans

# 0 → 1 → 2 → 3, 4 → 2, 5 → 2, a self-loop at 3, 2 → 2 as well, and 6 alone.
EDGES = torch.tensor([[0, 1, 2, 4, 5, 3, 2], [1, 2, 3, 2, 2, 3, 2]])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def graph(edges: torch.Tensor = EDGES, n: int = 7) -> MessageGraph:
    """Feature 0 of a node is its number."""
    return MessageGraph(torch.arange(n, dtype=torch.float32)[:, None], edges)


def random_graph(n: int, m: int, seed: int, sparse: bool = False) -> MessageGraph:
    draws = generator(seed)
    edges = torch.randint(0, n, (2, m), generator=draws).unique(dim=1)
    x = torch.randn(n, 5, generator=draws) * (torch.rand(n, 5, generator=draws) < 0.5)
    return MessageGraph(scipy.sparse.csr_matrix(x.numpy()) if sparse else x, edges)


def numbers(sampled: MessageGraph) -> list[int]:
    assert isinstance(sampled.features, torch.Tensor)
    return [int(v) for v in sampled.features[:, 0]]


def arcs(sampled: MessageGraph) -> list[tuple[int, int]]:
    """The sampled edges by the numbers of the whole graph."""
    of = numbers(sampled)
    return sorted((of[a], of[b]) for a, b in sampled.edge_index.T.tolist())


# --- in-neighbours ----------------------------------------------------------------------------------------------------------------


def test_in_neighbours_by_hand() -> None:
    pointers, sources = graph().in_neighbours
    assert pointers.tolist() == [0, 0, 1, 4, 5, 5, 5, 5]
    assert sources.tolist() == [0, 1, 4, 5, 2]
    assert sources.dtype == np.int32


def test_in_neighbours_keep_parallel_edges_and_do_not_depend_on_the_order_of_edges() -> None:
    edges = torch.tensor([[1, 0, 1, 2], [2, 2, 2, 0]])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        pointers, sources = graph(edges[:, order], 3).in_neighbours
        assert pointers.tolist() == [0, 1, 1, 4]
        assert sources.tolist() == [2, 0, 1, 1]


def test_in_neighbours_are_prepared_once_and_counted() -> None:
    made = graph()
    before = made.bytes()
    first = made.in_neighbours
    assert made.in_neighbours is first
    assert made.bytes() == before + 8 * 8 + 4 * 5


def test_the_neighbourhood_forgets_directions_loops_and_repetitions_and_is_counted() -> None:
    made = graph(torch.tensor([[0, 2, 0, 1, 1], [1, 0, 1, 0, 1]]), 4)
    before = made.bytes()
    assert made.neighbourhood.toarray().tolist() == [[0, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert made.neighbourhood is made.neighbourhood
    assert made.bytes() == before + 4 * 4 + 4 * 4 + 5 * 4


def test_spans_by_hand() -> None:
    assert spans(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]
    assert spans(np.array([], dtype=np.int64), np.array([], dtype=np.int64)).tolist() == []


# --- ranks ------------------------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 12), max_size=8), st.integers(1, 6), st.integers(0, 1000))
def test_ranks_are_distinct_and_in_range(more: list[int], k: int, seed: int) -> None:
    sizes = np.array([k + m for m in more], dtype=np.int64)
    ranks = distinct_ranks(sizes, k, generator(seed))
    assert ranks.shape == (len(sizes), k)
    for size, row in zip(sizes.tolist(), ranks.tolist(), strict=True):
        assert len(set(row)) == k
        assert set(row) <= set(range(size))


@pytest.mark.parametrize(("size", "k"), [(5, 2), (6, 3), (4, 3), (3, 1), (4, 4)])
def test_every_subset_is_as_likely(size: int, k: int) -> None:
    """Chi-squared over all subsets of 20,000 draws with a fixed seed; one seed in ten thousand would fail."""
    draws = 20_000
    ranks = distinct_ranks(np.full(draws, size), k, generator())
    counts = Counter(tuple(sorted(row)) for row in ranks.tolist())
    subsets = list(combinations(range(size), k))
    assert set(counts) <= set(subsets)
    if len(subsets) > 1:
        assert scipy.stats.chisquare([counts[s] for s in subsets]).pvalue > 1e-4


# --- samples ----------------------------------------------------------------------------------------------------------------------


def test_one_hop_by_hand() -> None:
    sampled, positions = sample_neighbours(graph(), torch.tensor([3, 2]), [5], generator())
    assert positions.tolist() == [0, 1]
    assert numbers(sampled) == [3, 2, 1, 4, 5]
    assert arcs(sampled) == [(1, 2), (2, 3), (4, 2), (5, 2)]


def test_two_hops_by_hand() -> None:
    """The edge 2 → 3 is there once, though 2 is both an item and a neighbour; 2 is not expanded twice."""
    sampled, positions = sample_neighbours(graph(), torch.tensor([3, 2]), [5, 5], generator())
    assert positions.tolist() == [0, 1]
    assert numbers(sampled) == [3, 2, 1, 4, 5, 0]
    assert arcs(sampled) == [(0, 1), (1, 2), (2, 3), (4, 2), (5, 2)]


def test_the_last_number_is_that_of_the_items() -> None:
    star = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 8], [0, 0, 0, 0, 1, 1, 1, 1]])
    sampled, _ = sample_neighbours(graph(star, 9), torch.tensor([0, 1]), [1, 3], generator())
    into = Counter(b for _, b in arcs(sampled))
    assert into == {0: 3, 1: 3}
    sampled, _ = sample_neighbours(graph(star, 9), torch.tensor([0]), [2, 4], generator())
    assert Counter(b for _, b in arcs(sampled)) == {0: 4, 1: 2}


def test_repeated_items_share_a_node() -> None:
    sampled, positions = sample_neighbours(graph(), torch.tensor([2, 6, 2, 1]), [9], generator())
    assert positions.tolist() == [0, 1, 0, 2]
    assert numbers(sampled)[:3] == [2, 6, 1]
    assert len(numbers(sampled)) == len(set(numbers(sampled)))


@pytest.mark.parametrize("edges", [EDGES, torch.empty(2, 0, dtype=torch.int64)], ids=["edges", "no edges"])
def test_isolated_items(edges: torch.Tensor) -> None:
    sampled, positions = sample_neighbours(graph(edges), torch.tensor([6, 0]), [10, 25], generator())
    assert (numbers(sampled), sampled.n_edges, positions.tolist()) == ([6, 0], 0, [0, 1])
    torch.testing.assert_close(sampled.propagate("sum-self", torch.ones(2, 3)), torch.ones(2, 3))


def test_no_items_make_an_empty_graph() -> None:
    sampled, positions = sample_neighbours(graph(), torch.tensor([], dtype=torch.int64), [10, 25], generator())
    assert (sampled.n_nodes, sampled.n_edges, positions.tolist()) == (0, 0, [])


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(0, 150), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(0, 1000))
def test_a_sample_obeys_its_rules(n: int, m: int, fan_out: list[int], seed: int) -> None:
    """Edges of the graph, none twice, no self-loop; a node reached before the last hop hears min(degree, k) neighbours, others nobody."""
    whole = graph(random_graph(n, m, seed).edge_index, n)
    pairs = {(a, b) for a, b in whole.edge_index.T.tolist() if a != b}
    ids = torch.randperm(n, generator=generator(seed))[: max(1, n // 3)]
    sampled, positions = sample_neighbours(whole, ids, fan_out, generator(seed))
    of, found = numbers(sampled), arcs(sampled)
    assert [of[i] for i in positions.tolist()] == ids.tolist()
    assert positions.tolist() == list(range(len(ids)))
    assert len(set(of)) == len(of)
    assert len(set(found)) == len(found)
    assert set(found) <= pairs
    degree, heard = Counter(b for _, b in pairs), Counter(b for _, b in found)
    reached = frontier = set(ids.tolist())
    for k in reversed(fan_out):
        for node in frontier:
            assert heard[node] == min(k, degree[node])
        following = {a for a, b in found if b in frontier} - reached
        reached, frontier = reached | following, following
    assert reached == set(of)
    assert not any(heard[node] for node in frontier)


def sampled_as_before(whole: MessageGraph, ids: torch.Tensor, fan_out: list[int], draws: torch.Generator) -> tuple[Any, Any]:
    """The sample in the plainest form: positions by a dictionary, one node at a time. Nodes of the sample, and its edges."""
    pointers, sources = whole.in_neighbours
    frontier = list(dict.fromkeys(ids.tolist()))
    place = {node: i for i, node in enumerate(frontier)}
    edges = list[tuple[int, int]]()
    for k in reversed(fan_out):
        starts, degrees = pointers[frontier], np.diff(pointers)[frontier]
        many = [i for i in range(len(frontier)) if degrees[i] > k]
        ranks = distinct_ranks(degrees[many], k, draws)
        few = [(sources[starts[i] + j], frontier[i]) for i in range(len(frontier)) if degrees[i] <= k for j in range(degrees[i])]
        drawn = [(sources[starts[i] + j], frontier[i]) for i, row in zip(many, ranks.tolist(), strict=True) for j in row]
        edges += few + drawn
        frontier = sorted({int(a) for a, _ in few + drawn} - place.keys())
        place |= {node: len(place) + i for i, node in enumerate(frontier)}
    return list(place), [(place[int(a)], place[b]) for a, b in edges]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(0, 200), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(0, 1000))
def test_samples_are_those_of_the_plainest_form(n: int, m: int, fan_out: list[int], seed: int) -> None:
    """Nodes, edges and their order; several batches from one graph, whose working memory must come back clean."""
    whole = graph(random_graph(n, m, seed).edge_index, n)
    one, other = generator(seed), generator(seed)
    for _ in range(3):
        ids = torch.randint(0, n, (max(1, n // 3),), generator=generator(seed))
        sampled, _ = sample_neighbours(whole, ids, fan_out, one)
        nodes, edges = sampled_as_before(whole, ids, fan_out, other)
        assert numbers(sampled) == nodes
        assert [tuple(edge) for edge in sampled.edge_index.T.tolist()] == edges
        assert torch.equal(one.get_state(), other.get_state())


def test_a_batch_touches_only_what_it_reaches() -> None:
    """Of a ring with a million nodes a batch of three writes to at most nine places of the working memory, and makes no other array of
    that length."""
    n = 1_000_000
    ring = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
    whole = MessageGraph(torch.zeros(n, 1), ring)
    sample_neighbours(whole, torch.tensor([5]), (2, 2), generator())
    tracemalloc.start()
    try:
        sampled, _ = sample_neighbours(whole, torch.tensor([7, 500_000, 7]), (2, 2), generator())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sampled.n_nodes == 6
    assert peak < 200_000  # bytes; an array of one byte per node would take 1,000,000
    with whole.scratch() as memory:
        assert (memory == -1).all()


def test_working_memory_is_not_shared_and_not_reused_after_an_error() -> None:
    whole = graph()
    with whole.scratch() as one, whole.scratch() as other:
        assert one is not other
    with whole.scratch() as again:
        assert again is one or again is other
        kept = again

    def spoil() -> None:
        with whole.scratch() as memory:
            memory[0] = 7
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        spoil()
    with whole.scratch() as memory, whole.scratch() as more:
        assert memory is not kept or more is not kept
        assert (memory == -1).all()
        assert (more == -1).all()


def test_threads_sample_as_one_after_the_other() -> None:
    whole = random_graph(400, 6000, 1)
    ids = [torch.randperm(400, generator=generator(i))[:40] for i in range(24)]

    def drawn(i: int) -> list[list[int]]:
        sampled, _ = sample_neighbours(whole, ids[i], (3, 5), generator(i))
        return [list(edge) for edge in sampled.edge_index.tolist()]

    alone = [drawn(i) for i in range(24)]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(drawn, range(24))) == alone


def test_equal_generators_give_equal_samples() -> None:
    whole, ids = random_graph(50, 900, 0), torch.arange(0, 50, 5)
    one, again, other = (sample_neighbours(whole, ids, (3, 4), generator(s))[0] for s in (7, 7, 8))
    assert torch.equal(one.edge_index, again.edge_index)
    assert torch.equal(one.features, again.features)  # type: ignore[arg-type]
    assert one.edge_index.shape != other.edge_index.shape or not torch.equal(one.edge_index, other.edge_index)
    stream = generator(7)
    following = [sample_neighbours(whole, ids, (3, 4), stream)[0].edge_index for _ in range(2)]
    assert torch.equal(following[0], one.edge_index)
    assert following[1].shape != one.edge_index.shape or not torch.equal(following[1], one.edge_index)


def test_the_global_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    sample_neighbours(random_graph(50, 900, 0), torch.arange(9), (3, 4), generator())
    assert torch.equal(torch.get_rng_state(), before)


def test_every_neighbour_is_as_likely() -> None:
    """40 neighbours, 10 of them 2,000 times: each about 500 times, give or take five standard deviations."""
    star = torch.stack([torch.arange(1, 41), torch.zeros(40, dtype=torch.int64)])
    whole, draws = graph(star, 41), generator()
    counts = Counter(a for _ in range(2000) for a, _ in arcs(sample_neighbours(whole, torch.tensor([0]), [10], draws)[0]))
    assert sum(counts.values()) == 20_000
    assert all(abs(counts[i] - 500) < 5 * (2000 * 0.25 * 0.75) ** 0.5 for i in range(1, 41))


# --- outputs ----------------------------------------------------------------------------------------------------------------------


def model(layers: int, head: str, in_features: int = 5) -> torch.nn.Module:
    torch.manual_seed(0)
    return gcn(
        in_features,
        3,
        layers=layers,
        width=6,
        normalisation="none",
        bias=True,
        batch_norm=False,
        dropout=0.0,
        input_dropout=0.0,
        head=head,
    )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("layers", "head"), [(2, "convolution"), (2, "linear"), (3, "convolution")])
def test_wide_samples_change_no_output(layers: int, head: str, sparse: bool) -> None:
    whole = random_graph(60, 240, 3, sparse)
    ids = torch.tensor([4, 59, 17, 4])
    sampled, positions = sample_neighbours(whole, ids, [60] * layers, generator())
    assert sampled.n_nodes < 60 or layers > 2
    assert isinstance(sampled.features, SparseMatrix) is sparse
    made = model(layers, head)
    torch.testing.assert_close(made(sampled, positions), made(whole, ids))


def test_sampled_sums_are_those_of_the_sampled_edges() -> None:
    whole = random_graph(60, 2000, 4)
    sampled, positions = sample_neighbours(whole, torch.arange(10), [2, 3], generator())
    dense = torch.eye(sampled.n_nodes)
    for a, b in sampled.edge_index.T.tolist():
        dense[b, a] += 1
    assert isinstance(sampled.features, torch.Tensor)
    torch.testing.assert_close(sampled.propagate("sum-self", sampled.features), dense @ sampled.features)
    assert dense[positions].sum(dim=1).tolist() == [4.0] * 10


@pytest.mark.parametrize("sparse", [False, True])
def test_features_are_those_of_the_nodes(sparse: bool) -> None:
    whole = random_graph(60, 500, 5, sparse)
    ids = torch.tensor([33, 2])
    sampled, positions = sample_neighbours(whole, ids, [2], generator())

    def rows(g: MessageGraph, at: torch.Tensor) -> np.ndarray:  # type: ignore[type-arg]
        found = g.rows(at)
        return found.numpy() if isinstance(found, torch.Tensor) else found.toarray()

    np.testing.assert_array_equal(rows(sampled, positions), rows(whole, ids))
