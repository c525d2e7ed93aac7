"""Degenerate data: every form is refused with what was given and what is expected, or runs and says what is odd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_data_lab import graphs, links, nodes, outcome, own_data

from cglsuite.base.errors import DataError
from cglsuite.graphs.files.given import data_spec
from cglsuite.graphs.files.named import named
from cglsuite.study.data import as_data_file

NONE = np.empty((2, 0), dtype=int)
N, M, G = np.arange(240), np.arange(300), np.arange(90)
RING = np.stack([N, (N + 1) % 240])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))


# --- refused where the file is read ---------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no node": (nodes(0, edge_index=NONE), "y has no labels"),
    "no feature": (nodes(x=np.empty((240, 0))), "x has no columns; expected at least one feature, such as numpy.ones((N, 1))"),
    "no label": (nodes(y=np.full(240, -1)), "y has no labels: every entry is -1"),
    "labels that are NaN": (nodes(y=np.full(240, np.nan)), "y has no labels: every entry is empty or NaN"),
    "one labelled node": (nodes(y=np.where(N, -1, 0)), "y contains -1, 0, where -1 could be a class or mark items without a label"),
    "no label of any node": (
        nodes(y=np.zeros((240, 3), int)),
        "y is 0 everywhere, so no node has a label; expected 1",
    ),
    "classes 10 and 20": (nodes(y=N % 2 * 10 + 10), "y has 2 classes with numbers up to 20; expected numbers from 0 to 1"),
    "one class of number 3": (nodes(y=np.full(240, 3)), "y has 1 classes with numbers up to 3; expected numbers from 0 to 0"),
    "classes with a fraction": (nodes(y=N % 3 + 0.5), "y contains 0.5; expected class numbers (only whole graphs can have real targets)"),
    "an infinite label": (nodes(y=np.where(N, 0, np.inf)), "y contains inf; expected finite numbers"),
    "NaN in features": (nodes(x=np.where(N[:, None], 1, np.nan)), "x contains 1 NaN or infinite values, the first at node 0"),
    "features of 1e300": (nodes(x=np.full((240, 1), 1e300)), "x contains 1e+300, which float32 cannot represent; scale the features"),
    "features of 1e-320": (nodes(x=np.full((240, 1), 1e-320)), "which float32 cannot distinguish from 0; scale the features"),
    "features of one row": (nodes(x=np.ones(240)), "x has shape [240]; expected [N, F], one row per node"),
    "an edge to nowhere": (
        nodes(edge_index=RING + 1),
        "edges refer to nodes 1 to 240; expected 0 to 239, the rows of x (counted from 1? subtract 1)",
    ),
    "an edge from -1": (nodes(edge_index=RING - 1), "edges refer to nodes -1 to 238; expected 0 to 239"),
    "half an edge": (nodes(edge_index=RING + 0.5), "edge_index has dtype float64; expected whole numbers"),
    "edges as rows": (
        nodes(edge_index=RING.T),
        "edge_index has shape [240, 2]; expected [2, E], with sources in row 0 and targets in row 1; give edge_index.T",
    ),
    "a time that is NaN": (nodes(time=np.where(N, 1, np.nan)), "the time of item 0 is nan; every item needs a time"),
    "a time that is NaT": (nodes(time=np.full(240, "NaT", "datetime64[s]")), "the time of item 0 is NaT (240 in all)"),
    "a time of 1e300": (nodes(time=np.full(240, 1e300)), "the time of item 0 is 1e+300; expected whole numbers up to 2^53, or dates"),
    "an empty part of the split": (nodes(train=N < 99, validation=N < 0, test=N >= 99), "validation is empty; expected at least one item"),
    "a node in two parts": (
        nodes(train=N < 99, validation=N == 98, test=N >= 99),
        "item 98 is in both train and validation; expected disjoint",
    ),
    "one part of the split": (nodes(test=N < 99), "has test but no train; expected either all of train, validation, test or none of them"),
    "links without ends": (
        links(links=np.empty((0, 0))),
        "links has shape [0, 0]; expected [2, E], with sources in row 0 and targets in row 1",
    ),
    "types of fewer nodes": (links(node_types=np.zeros(3, int)), "node_types has 3 entries; expected one per node, 40"),
    "graphs with a gap": (
        graphs(graph=np.arange(360) // 4 * 2),
        "expected graph to number the graphs consecutively from 0, as in 0, 0, 1, 1, 1, 2, ...",
    ),
    "graphs mixed": (
        graphs(graph=np.arange(360) % 90),
        "expected graph to number the graphs consecutively from 0, as in 0, 0, 1, 1, 1, 2, ...",
    ),
    "an edge between graphs": (graphs(edge_index=np.array([[0], [359]])), "edge 0 connects nodes of two different graphs"),
    "an unknown target": (graphs(y=np.where(G, 0.5, np.nan)), "graph 0 has no target; remove graphs without a target"),
    "targets of 1e300": (graphs(y=np.full(90, 1e300)), "y contains 1e+300, which float32 cannot represent; scale the targets"),
    "targets or classes": (graphs(y=G), "y contains 90 distinct whole numbers from 0 to 89, which could be classes or real targets"),
    "edge features that are NaN": (
        graphs(edge_attr=np.full((360, 1), np.nan)),
        "edge_attr of edge 0 contains nan; expected finite float32 values",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_file_may_hold(case: str) -> None:
    arrays, says = REFUSED[case]
    path = as_data_file(arrays, "mine")
    with named(data=[path]), pytest.raises(DataError) as error:
        data_spec(path)
    assert "mine.npz" in str(error.value)
    assert says in str(error.value)


# --- read, and run or refused where tasks are formed ----------------------------------------------------------------------------

TWO_SIDES = {"links": np.stack([np.repeat(np.arange(20), 7), 20 + np.tile(np.arange(7), 20)]), "node_types": np.arange(27) // 20}
RUNS = "done"
CELLS: dict[str, tuple[dict[str, Any], str, str]] = {
    "one node": (
        nodes(1, edge_index=NONE),
        "class-il@begin-1",
        "1 classes are too few for a task with 2 classes: lower scenario.classes_per_task",
    ),
    "two nodes": (
        nodes(2, edge_index=NONE),
        "class-il@begin-1",
        "class 0 has 1 items, too few for a 0.6/0.2/0.2 split with an item in every",
    ),
    "one class": (nodes(classes=1), "task-il@cglb-1", "1 classes are too few for a task with 2 classes"),
    "one task": (nodes(classes=2), "class-il@begin-1", RUNS),
    "three classes": (nodes(classes=3), "class-il@cglb-1", RUNS),
    "five classes": (nodes(classes=5), "task-il@begin-1", RUNS),
    "1,000 classes of two": (nodes(2000, 1000), "class-il@begin-1", "class 0 has 2 items, too few for a "),
    "1,000 classes of one": (
        nodes(1000, 1000),
        "class-il@cglb-1",
        "0 classes are too few for a task with 2 classes: lower scenario.classes_per_task or scenario.min",
    ),
    "a class of one node": (nodes(y=np.where(N, N % 6, 6)), "class-il@begin-1", "class 6 has 1 items, too few for a "),
    "no edge": (nodes(edge_index=NONE), "class-il@begin-1", RUNS),
    "self-loops alone": (nodes(edge_index=np.stack([N, N])), "class-il@begin-1", RUNS),
    "one edge 500 times": (nodes(edge_index=np.repeat([[0], [1]], 500, axis=1)), "class-il@begin-1", RUNS),
    "all nodes joined": (nodes(60, edge_index=np.stack(np.nonzero(np.ones((60, 60))))), "task-il@cglb-1", RUNS),
    "a star": (nodes(edge_index=np.stack([N * 0, N])), "class-il@begin-1", RUNS),
    "one feature": (nodes(x=np.ones((240, 1)) * N[:, None] % 5), "class-il@begin-1", RUNS),
    "features of zero": (nodes(x=np.zeros((240, 3))), "class-il@cglb-1", RUNS),
    "features of zero, begun": (nodes(x=np.zeros((240, 3))), "class-il@begin-1", RUNS),
    "features of zero in a stream without tasks": (nodes(x=np.zeros((240, 3))), "gaussian@drift-1", RUNS),
    "features that sum to less than zero": (nodes(x=-np.ones((240, 3)) * N[:, None]), "class-il@begin-1", RUNS),
    "features of 1e-30": (nodes(x=nodes()["x"] * 1e-30), "class-il@begin-1", RUNS),
    "one time": (nodes(time=N * 0), "time-il@begin-2", RUNS),
    "times below zero": (nodes(time=N // 6 % 3 - 5), "time-il@begin-2", RUNS),
    "a time of one node": (
        nodes(time=np.where(N, N // 6 % 3 + 1, 0)),
        "time-il@begin-2",
        "task 1 (time 0) has no train items; change scenario.split",
    ),
    "a time for each node": (
        nodes(time=N),
        "time-il@begin-2",
        "240 values, and each would become a task; use bins, such as the deciles",
    ),
    "a time that is the class": (nodes(time=N % 6), "time-il@begin-2", RUNS),
    "one domain": (nodes(domain=N * 0), "domain-il@begin-2", RUNS),
    "all labels of all nodes": (nodes(y=np.ones((240, 3), int), domain=N % 3), "domain-il@begin-2", RUNS),
    "a split of one": (
        nodes(train=N < 238, validation=N == 238, test=N == 239),
        "class-il@begin-1",
        "has no validation items; change scenario.split",
    ),
    "no link": (links(links=NONE, time=N[:0]), "time-il@begin-1", "the dataset has no links; expected at least one"),
    "one link": (links(links=np.array([[0], [1]]), time=N[:1]), "time-il@begin-1", "task 1 (time 0) has no train items"),
    "loops as links": (
        links(links=np.stack([M % 40, M % 40])),
        "time-il@begin-1",
        "connects node 0 to itself (300 self-loops in total); links must",
    ),
    "one link 300 times": (
        links(links=np.repeat([[0], [1]], 300, axis=1)),
        "time-il@begin-1",
        "is also a validation or test link",
    ),
    "all pairs linked": (
        links(20, 190, links=np.stack(np.triu_indices(20, 1))),
        "time-il@begin-1",
        "2 negatives are needed, but only 0 node pairs have no link",
    ),
    "all of two sides linked": (
        links(27, 140, **TWO_SIDES),
        "time-il@begin-1",
        "2 negatives are needed, but only 0 node pairs have no link",
    ),
    "links that are all true": (
        links(y=np.ones((300, 1), bool)),
        "time-il@begin-1",
        "no negative validation links, so its ROC-AUC is undefined",
    ),
    "links of one class": (links(y=M * 0), "class-il@begin-1", "1 classes are too few for a task with 2 classes"),
    "links of three classes": (links(y=M % 3), "class-il@begin-1", RUNS),
    "signed links with times": (links(y=M // 3 % 2), "time-il@begin-1", RUNS),
    "links between nodes without features": ({k: v for k, v in links().items() if k != "x"}, "time-il@begin-1", RUNS),
    "one graph": (graphs(1, domain=N[:1], y=N[:1]), "class-il@begin-1", "1 classes are too few for a task with 2 classes"),
    "graphs of one node": (graphs(size=1, edge_index=NONE), "class-il@cglb-1", RUNS),
    "graphs of 45 classes": (graphs(y=G % 45), "class-il@skeleton-1", "class 0 has 2 items, too few for a 0.8/0.1/0.1 split"),
    "graphs of one class": (graphs(y=G * 0), "domain-il@begin-1", RUNS),
    "one target": (graphs(y=np.full(90, 0.5)), "domain-il@begin-1", RUNS),
    "a label that nobody knows": (graphs(y=np.c_[G % 2, G * np.nan]), "domain-il@begin-1", RUNS),
    "features of zero in graphs": (graphs(x=np.zeros((360, 3)), y=G // 3 % 2), "task-il@cglb-1", RUNS),
}


@pytest.mark.plugins
@pytest.mark.parametrize("case", CELLS)
def test_what_becomes_of_a_cell(case: str) -> None:
    arrays, protocol, says = CELLS[case]
    with own_data(arrays) as catalogue:
        made = outcome(catalogue, protocol)
    if says == RUNS:
        assert made == RUNS
    else:
        assert made != RUNS
        assert says in made
