"""SEM: curvatures against known values and brute force, and which edges a memory keeps."""

from __future__ import annotations

import itertools
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_methods.rehearsal.task_free import curvature
from cglsuite_methods.rehearsal.task_free.memory import MEMORY
from cglsuite_methods.rehearsal.task_free.sem import SEM
from scipy.optimize import linprog
from scipy.sparse.csgraph import shortest_path
from tiny_task_free import task_free_runner, tiny_task_free_stream

from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import MessageGraph

SETTINGS: dict[str, Any] = {"memory": 40, "fan_out": 1, "hops": 2, "curvature": "forman", "centres_only": False}


def graph_of(edges: list[tuple[int, int]], n: int) -> MessageGraph:
    """With every edge one way only: curvature does not mind."""
    return MessageGraph(torch.ones(n, 1), torch.tensor(edges).T)


def values(kind: str, graph: MessageGraph) -> list[float]:
    source, target = graph.edge_index.numpy()
    found: list[float] = getattr(curvature, kind)(graph.neighbourhood, source, target).tolist()
    return found


COMPLETE = graph_of(list(itertools.combinations(range(4), 2)), 4)
CYCLE = {n: graph_of([(i, (i + 1) % n) for i in range(n)], n) for n in (4, 5, 7)}
#: Two triangles joined by an edge (the last one), and a leaf.
BARBELL = graph_of([(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (5, 6), (2, 3)], 7)


def test_forman_by_hand() -> None:
    assert values("forman", COMPLETE) == [4 - 3 - 3 + 3 * 2] * 6
    assert values("forman", CYCLE[5]) == [0.0] * 5
    assert values("forman", BARBELL) == [3.0, 2.0, 2.0, 2.0, 1.0, 2.0, 0.0, -2.0]


def test_overlap_by_hand() -> None:
    assert values("overlap", COMPLETE) == [pytest.approx(2 / 4)] * 6
    assert values("overlap", BARBELL) == [pytest.approx(v) for v in (1 / 3, 1 / 4, 1 / 4, 1 / 4, 1 / 5, 1 / 4, 0, 0)]


def test_overlap_with_the_larger_neighbourhood_by_hand() -> None:
    """Of DRIFT's code: one more in numerator and denominator, so edges without common neighbours are told apart by degree."""
    assert values("overlap_with_larger", COMPLETE) == [pytest.approx(3 / 4)] * 6
    assert values("overlap_with_larger", BARBELL) == [pytest.approx(v) for v in (2 / 3, 1 / 2, 1 / 2, 1 / 2, 1 / 2, 1 / 2, 1 / 4, 1 / 4)]


def test_loops_and_parallel_edges_change_nothing() -> None:
    doubled = MessageGraph(torch.ones(7, 1), torch.cat([BARBELL.edge_index, BARBELL.edge_index.flip(0), torch.tensor([[3], [3]])], dim=1))
    assert values("forman", doubled)[:8] == values("forman", BARBELL)


def emd2(here: Any, there: Any, cost: Any) -> float:
    """The cost of the cheapest transport, by a linear program."""
    a, b = len(here), len(there)
    sums = np.vstack([np.kron(np.eye(a), np.ones(b)), np.kron(np.ones(a), np.eye(b))])
    return float(linprog(cost.ravel(), A_eq=sums, b_eq=np.concatenate([here, there])).fun)


@pytest.fixture(params=["program", "pot"])
def solver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library POT where it is installed, and a linear program everywhere."""
    if request.param == "pot":
        pytest.importorskip("ot")
    else:
        monkeypatch.setattr(curvature, "transport_solver", lambda: SimpleNamespace(emd2=emd2))


@pytest.mark.usefixtures("solver")
def test_ollivier_of_known_graphs() -> None:
    """Half of Lin, Lu and Yau's: n / (n - 1) for the complete graph, 1, 1/2 and 0 for cycles of 4, 5 and at least 6."""
    assert values("ollivier", COMPLETE) == [pytest.approx(2 / 3)] * 6
    for n, expected in ((4, 0.5), (5, 0.25), (7, 0.0)):
        assert values("ollivier", CYCLE[n]) == [pytest.approx(expected, abs=1e-12)] * n


@pytest.mark.usefixtures("solver")
def test_ollivier_against_a_linear_program_over_all_nodes() -> None:
    generator = np.random.default_rng(0)
    edges = [(i, j) for i, j in itertools.combinations(range(12), 2) if generator.random() < 0.3]
    graph = graph_of(edges, 12)
    adjacency = graph.neighbourhood
    hops = shortest_path(adjacency, unweighted=True)
    hops[np.isinf(hops)] = 99.0
    walk = adjacency.toarray() / np.maximum(adjacency.sum(axis=1), 1)
    mass = 0.5 * np.eye(12) + 0.5 * np.asarray(walk)
    sums = np.vstack([np.kron(np.eye(12), np.ones(12)), np.kron(np.ones(12), np.eye(12))])
    expected = [1 - linprog(hops.ravel(), A_eq=sums, b_eq=np.concatenate([mass[u], mass[v]])).fun for u, v in edges]
    np.testing.assert_allclose(values("ollivier", graph), expected, atol=1e-7)


def test_without_the_solver_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(NotApplicable, match=r"cglsuite-methods\[curvature\]"):
        task_free_runner(tiny_task_free_stream(), SEM, SETTINGS | {"curvature": "ollivier"})


@pytest.mark.parametrize("kind", ["forman", "overlap", "overlap-with-larger", "ollivier"])
def test_the_edges_of_highest_curvature_are_kept(kind: str) -> None:
    """Node 3 hears 2, 4 and 5: never the bridge to 2."""
    if kind == "ollivier":
        pytest.importorskip("ot")
    both = torch.cat([BARBELL.edge_index, BARBELL.edge_index.flip(0)], dim=1)
    graph = MessageGraph(torch.arange(7.0).unsqueeze(1), both)
    runner = task_free_runner(tiny_task_free_stream(), SEM, SETTINGS | {"curvature": kind})
    method: Any = runner.method
    pack = method._surroundings(graph, torch.tensor([3, 6]))
    assert pack.take(torch.tensor([0])).x[:, 0].tolist()[:2] == [3.0, 4.0]
    assert pack.take(torch.tensor([1])).x[:, 0].tolist()[:2] == [6.0, 5.0]


def test_a_run_keeps_subgraphs_within_its_budget() -> None:
    runner = task_free_runner(tiny_task_free_stream(memory_budget=20), SEM, SETTINGS)
    usage = runner.run().memory
    assert 0 < (usage["items"] or 0) <= 20
    assert (usage["edges"] or 0) > 0
    assert int(runner.method.memory[MEMORY].sizes.max()) <= 3
