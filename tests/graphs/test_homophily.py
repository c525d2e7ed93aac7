"""Label homophily against brute force over Python sets, its conventions, and AGALE's Theorem 1."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import Tensor

from cglsuite.base.errors import DataError
from cglsuite.graphs import homophily
from cglsuite.graphs.homophily import edge_homophily, graph_homophily, node_homophily
from cglsuite.graphs.splits.multilabel import label_matrix, task_members
from cglsuite.graphs.splits.partition import induced_subgraph, split_into_tasks, symmetrised

# 0 {0,1,2}, 1 {0,1}, 2 {2}, 3 {}, 4 {}, 5 {3}: a path with a chord, node 5 without an edge.
SETS = [{0, 1, 2}, {0, 1}, {2}, set(), set(), {3}]
EDGES = torch.tensor([[0, 1, 0, 2, 3], [1, 2, 2, 3, 4]])
NAN = float("nan")


def matrix(sets: list[set[int]], n_classes: int) -> Tensor:
    return torch.tensor([[c in s for c in range(n_classes)] for s in sets], dtype=torch.bool).view(len(sets), n_classes)


def chosen(classes: set[int], n_classes: int) -> Tensor:
    return torch.tensor([c in classes for c in range(n_classes)], dtype=torch.bool)


@st.composite
def labelled_graphs(draw: st.DrawFn, max_nodes: int = 9) -> tuple[list[set[int]], int, list[tuple[int, int]]]:
    n_classes = draw(st.sampled_from([1, 3, 8, 9, 64, 65, 130]))
    sets = draw(st.lists(st.sets(st.integers(0, n_classes - 1), max_size=4), min_size=1, max_size=max_nodes))
    node = st.integers(0, len(sets) - 1)
    return sets, n_classes, draw(st.lists(st.tuples(node, node), max_size=20))


# --- values -----------------------------------------------------------------------------------------------------------------------


def test_by_hand() -> None:
    y = matrix(SETS, 4)
    assert edge_homophily(y, EDGES).tolist() == pytest.approx([2 / 3, 0, 1 / 3, 0, NAN], nan_ok=True)
    assert graph_homophily(y, EDGES) == pytest.approx((2 / 3 + 0 + 1 / 3 + 0) / 4)
    assert node_homophily(y, EDGES).tolist() == pytest.approx([(2 / 3 + 1 / 3) / 2, (2 / 3) / 2, (1 / 3) / 3, 0, NAN, NAN], nan_ok=True)


def test_only_the_outputs_count() -> None:
    y = matrix(SETS, 4)
    assert edge_homophily(y, EDGES, chosen({0, 2}, 4)).tolist() == pytest.approx([1 / 2, 0, 1 / 2, 0, NAN], nan_ok=True)
    assert edge_homophily(y, EDGES, chosen({0, 1}, 4)).tolist() == pytest.approx([1, 0, 0, NAN, NAN], nan_ok=True)
    nothing = edge_homophily(y, EDGES, chosen(set(), 4))
    assert nothing.dtype == torch.float64
    assert nothing.isnan().all()
    assert graph_homophily(y, EDGES, chosen(set(), 4)) != graph_homophily(y, EDGES, chosen(set(), 4))


@hypothesis_settings(max_examples=80, deadline=None)
@given(labelled_graphs(), st.data())
def test_equals_python_sets(graph: tuple[list[set[int]], int, list[tuple[int, int]]], data: st.DataObject) -> None:
    sets, n_classes, pairs = graph
    counting = data.draw(st.none() | st.sets(st.integers(0, n_classes - 1)))
    seen = sets if counting is None else [s & counting for s in sets]
    expected = [len(seen[a] & seen[b]) / len(seen[a] | seen[b]) if seen[a] | seen[b] else NAN for a, b in pairs]
    y, outputs = matrix(sets, n_classes), None if counting is None else chosen(counting, n_classes)
    edges = torch.tensor(pairs, dtype=torch.int64).view(-1, 2).T
    assert edge_homophily(y, edges, outputs).tolist() == pytest.approx(expected, nan_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(homophily, "_CHUNK_EDGES", 3)
        assert edge_homophily(y, edges, outputs).tolist() == pytest.approx(expected, nan_ok=True)
    valued = [v for v in expected if v == v]
    assert graph_homophily(y, edges, outputs) == pytest.approx(sum(valued) / len(valued) if valued else NAN, nan_ok=True)
    for node, value in enumerate(node_homophily(y, edges, outputs).tolist()):
        here = [v for (a, b), v in zip(pairs, expected, strict=True) for end in (a, b) if end == node and v == v]
        assert value == pytest.approx(sum(here) / len(here) if here else NAN, nan_ok=True)


@hypothesis_settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-1, 4), min_size=1, max_size=9), st.data())
def test_one_label_per_node_is_a_set_of_one(labels: list[int], data: st.DataObject) -> None:
    y = torch.tensor(labels)
    node = st.integers(0, len(labels) - 1)
    edges = torch.tensor(data.draw(st.lists(st.tuples(node, node), max_size=12)), dtype=torch.int64).view(-1, 2).T
    outputs = data.draw(st.none() | st.lists(st.booleans(), min_size=5, max_size=5).map(torch.tensor))
    sets = label_matrix(y, 5)
    torch.testing.assert_close(edge_homophily(y, edges, outputs), edge_homophily(sets, edges, outputs), equal_nan=True)
    torch.testing.assert_close(node_homophily(y, edges, outputs), node_homophily(sets, edges, outputs), equal_nan=True)


@hypothesis_settings(max_examples=40, deadline=None)
@given(labelled_graphs())
def test_one_direction_or_both(graph: tuple[list[set[int]], int, list[tuple[int, int]]]) -> None:
    """A graph without repetitions has the same homophily listed in one direction as in both."""
    sets, n_classes, pairs = graph
    once = torch.tensor(sorted({(min(p), max(p)) for p in pairs if p[0] != p[1]}), dtype=torch.int64).view(-1, 2).T
    y, both = matrix(sets, n_classes), symmetrised(once, len(sets))
    assert graph_homophily(y, both) == pytest.approx(graph_homophily(y, once), nan_ok=True)
    torch.testing.assert_close(node_homophily(y, both), node_homophily(y, once), equal_nan=True)


def test_an_edge_counts_as_often_as_it_is_listed() -> None:
    y = matrix([{0}, {0}, {1}], 2)
    assert graph_homophily(y, torch.tensor([[0, 0, 0], [1, 1, 2]])) == pytest.approx(2 / 3)


def test_as_pyg_counts_edges_of_one_label() -> None:
    from torch_geometric.utils import homophily as pyg

    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, 3, (40,), generator=g)
    edges = symmetrised(torch.randint(0, 40, (2, 120), generator=g), 40)
    assert graph_homophily(y, edges) == pytest.approx(pyg(edges, y, method="edge"))
    linked = edges[0].bincount(minlength=40) > 0  # PyG counts an isolated node as 0, here it has no value
    assert float(node_homophily(y, edges)[linked].mean()) * float(linked.float().mean()) == pytest.approx(pyg(edges, y, method="node"))


@pytest.mark.parametrize(
    ("y", "outputs", "message"),
    [
        (torch.zeros(3), None, r"y is torch.float32 \[3\]; expected int64 \[N\], or bool \[N, C\]"),
        (torch.zeros(3, 2, dtype=torch.int64), None, r"y is torch.int64 \[3, 2\]"),
        (torch.zeros(3, 2, dtype=torch.bool), torch.tensor([0, 1]), r"outputs is torch.int64 \[2\]; expected bool \[2\]"),
        (torch.zeros(3, 2, dtype=torch.bool), torch.tensor([True]), r"outputs is torch.bool \[1\]; expected bool \[2\]"),
        (torch.tensor([0, 2, 1]), torch.tensor([True, True]), r"y contains label 2, but outputs covers only labels 0\.\.1"),
    ],
)
def test_what_does_not_fit_is_named(y: Tensor, outputs: Tensor | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        edge_homophily(y, torch.tensor([[0], [1]]), outputs)


# --- Theorem 1 --------------------------------------------------------------------------------------------------------------------


@hypothesis_settings(max_examples=100, deadline=None)
@given(labelled_graphs(), st.data())
def test_theorem_1_part_1(graph: tuple[list[set[int]], int, list[tuple[int, int]]], data: st.DataObject) -> None:
    """An edge with a one-label end is at least as homophilous in every subgraph it appears in as in the static graph.

    Let end u have the single label c. The edge is in the subgraph of a task only if c is among the labels L that count there. If the
    other end has c too, ``h = 1 / |Y_v|`` becomes ``1 / |Y_v ∩ L|``, which is no smaller; if not, h is 0 in both. Equality holds when
    both ends have a single label. L is the task's labels (task-incremental) or all labels seen so far (class-incremental).
    """
    sets, n_classes, pairs = graph
    task = data.draw(st.sets(st.integers(0, n_classes - 1), min_size=1))
    earlier = data.draw(st.sets(st.integers(0, n_classes - 1)))
    y, edges = matrix(sets, n_classes), torch.tensor(pairs, dtype=torch.int64).view(-1, 2).T
    members = task_members(y, torch.tensor(sorted(task)))
    inside = torch.isin(edges, members).all(dim=0)
    subgraph = induced_subgraph(edges, members, len(sets))
    static = edge_homophily(y, edges[:, inside])
    one_label, two_one_label = (test((y.sum(dim=1) == 1)[edges[:, inside]], dim=0) for test in (torch.any, torch.all))
    for counting in (task, task | earlier):
        now = edge_homophily(y[members], subgraph, chosen(counting, n_classes))
        assert (now >= static)[one_label].all()
        assert torch.equal(now[two_one_label], static[two_one_label])


def test_theorem_1_part_2_is_false_as_printed() -> None:
    """Two several-label ends: the printed bound on ``P(h in the subgraph ≥ h)`` does not hold.

    Four classes in tasks of K = 2, label sets {1, 2, 3} and {1, 2}: h = 2/3, for which 0.889 is claimed (``1 - (1 - h)^K`` = 8/9).
    Here all 24 class orders are cut into their two tasks, and the 48 tasks are counted in which both ends are. With {1, 2}, {1, 4} or
    {2, 4} the homophily rises to 1; with {1, 3} or {2, 3} it falls to 1/2; with {3, 4} the second end is not in the subgraph. That is 3
    of 5, each as likely as the other: 0.60.
    """
    y, edge = matrix([{1, 2, 3}, {1, 2}], 5), torch.tensor([[0], [1]])
    static = edge_homophily(y, edge).item()
    assert static == pytest.approx(2 / 3)
    seen: dict[frozenset[int], float] = {}
    present = kept = 0
    for order in permutations([1, 2, 3, 4]):
        for task in split_into_tasks(torch.tensor(order), 2, "join-last", None):
            if task_members(y, task).tolist() != [0, 1]:
                assert set(task.tolist()) == {3, 4}
                continue
            now = edge_homophily(y, edge, chosen(set(task.tolist()), 5)).item()
            seen[frozenset(task.tolist())] = now
            present, kept = present + 1, kept + (now >= static)
    assert {tuple(sorted(k)): v for k, v in seen.items()} == {(1, 2): 1, (1, 3): 0.5, (1, 4): 1, (2, 3): 0.5, (2, 4): 1}
    assert present == 40
    assert Fraction(kept, present) == Fraction(3, 5)
    assert kept / present < 1 - (1 - static) ** 2 == pytest.approx(0.889, abs=5e-4)
