"""What a file's user is told: values to look at twice, and what is not used and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from cglsuite.graphs.files.forms import form_of_arrays
from cglsuite.graphs.files.understood import facts_of, warnings_of

N = 12
X = np.arange(N * 2, dtype=np.float64).reshape(N, 2) % 5
NODES: dict[str, Any] = {"x": X, "edge_index": np.array([[0, 1, 1], [1, 0, 1]]), "y": np.arange(N) % 3}
GRAPHS = {**NODES, "edge_index": np.array([[0, 2], [1, 3]]), "graph": np.arange(N) // 2, "y": np.arange(N // 2) % 2}
WIDE = np.concatenate([X, np.ones((N, 100))], axis=1)


def warned(**arrays: Any) -> tuple[str, ...]:
    return warnings_of(form_of_arrays(Path("/data/photo.npz"), arrays))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"x": X * 1e20},
            "features are as large as 4e+20, and float32 cannot hold their squares: nothing can be learnt from them; scale them",
        ),
        ({"x": scipy.sparse.csr_matrix(X * -1e20)}, "features are as large as 4e+20, and float32 cannot hold their squares"),
        ({"x": WIDE}, "100 of 102 features are the same for every node"),
        ({"x": scipy.sparse.csr_matrix(WIDE * (np.arange(102) < 2))}, "100 of 102 features are the same for every node"),
        ({"x": X * 0}, "2 of 2 features are the same for every node"),
        ({"x": np.concatenate([X, np.arange(N)[:, None] + 7], axis=1)}, "feature 2 counts the nodes, as an index does"),
        ({"y": NODES["y"] * 0}, "all labels are of one class: every method scores 100%"),
        ({"y": NODES["y"] + 1}, "1 class without an item: 0; are the classes counted from 1?"),
        ({"y": np.array([0, 2] * 6)}, "1 class without an item: 1"),
        ({"edge_weight": np.ones(2)}, "not used: edge_weight (weights of edges: one finite number per edge, between nodes as items"),
        ({"edge_weight": np.array([1, np.nan, 2])}, "not used: edge_weight (weights of edges"),
        ({"edge_attr": np.ones(3)}, "not used: edge_attr (features of edges: only whole graphs have them)"),
        ({**GRAPHS, "edge_attr": None}, "not used: edge_attr (features of edges: every graph needs them, and as many in each)"),
        ({"train": None}, "not used: train (training nodes alone are no split: a split is drawn)"),
        ({"position": X}, "not used: position"),
        ({"y": np.stack([np.arange(N) % 2, np.ones(N), np.zeros(N)], axis=1)}, "2 labels of 3 the same for every item: 1, 2"),
        ({**GRAPHS, "y": np.where(np.eye(N // 2)[:, :2], np.nan, [[0, 1]])}, "2 labels of 2 the same for every item: 0, 1"),
        ({**GRAPHS, "y": np.full(N // 2, 0.5)}, "1 target of 1 the same for every graph: 0"),
        ({**GRAPHS, "y": X[: N // 2] * 1e30}, "targets are as large as 4e+30, and float32 cannot hold their squares, the loss: scale them"),
    ],
)
def test_what_is_warned_of(change: dict[str, Any], says: str) -> None:
    made = warned(**{**NODES, **change})
    assert len(made) == 1
    assert made[0].startswith(says)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"x": X * 4e18},
        {"x": WIDE[:, :101]},
        {"x": scipy.sparse.csr_matrix(WIDE)},  # what is stored is there for a reason
        {"x": np.arange(N, dtype=np.float32)[::-1, None]},
        {"x": np.eye(N)},
    ],
)
def test_what_is_not(change: dict[str, Any]) -> None:
    assert warned(**{**NODES, **change}) == ()


def test_three_nodes_may_count_by_chance() -> None:
    rows = slice(0, 3)
    assert warned(x=np.arange(3.0)[:, None], edge_index=NODES["edge_index"], y=NODES["y"][rows]) == ()


def test_a_split_that_tests_what_it_does_not_train() -> None:
    train, test = np.arange(N) % 3 == 0, np.arange(N) % 3 == 2
    said = warned(**NODES, train=train, validation=~train & ~test, test=test)
    assert said == ("the official split has no training item of 1 class that it tests: 2",)


def test_facts() -> None:
    facts = dict(facts_of(form_of_arrays(Path("/data/photo.npz"), {**NODES, "time": np.arange(N) // 4, "other": None})))
    assert facts == {
        "nodes": "12, 2 features",
        "edges": "3, in both directions, not weighted, 1 self-loop, 0 duplicates",
        "labelled": "12 of 12",
        "classes": "3: 0 (4), 1 (4), 2 (4)",
        "times": "3 distinct, 0 to 2",
        "not used": "other",
    }
