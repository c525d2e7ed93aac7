"""Each field of a form from arrays, at both sides of every rule, and the words of what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from cglsuite.base.errors import DataError
from cglsuite.graphs.files.forms import Form, form_of_arrays

PATH = Path("/data/photo.npz")
X = np.array([[1.0, 0], [0, 2], [3, 0], [0, 4]])
EDGES = np.array([[0, 1, 2, 2], [1, 2, 3, 0]])
Y = np.array([0, 1, 1, 0])
NODES: dict[str, Any] = {"x": X, "edge_index": EDGES, "y": Y}
GRAPHS: dict[str, Any] = {"x": X, "edge_index": EDGES[:, [0, 2]], "graph": np.array([0, 0, 1, 1]), "y": np.array([0, 1])}
LINKS: dict[str, Any] = {"links": EDGES}
WORDS = np.array([["a"], ["b"], ["c"], ["d"]])


def form(**arrays: Any) -> Form:
    return form_of_arrays(PATH, arrays)


def message(**arrays: Any) -> str:
    with pytest.raises(DataError) as error:
        form(**arrays)
    return str(error.value)


@pytest.mark.parametrize(
    ("arrays", "level", "labels", "n_nodes", "n_classes"),
    [
        (NODES, "NC", "single", 4, 2),
        ({**NODES, "y": np.array([0, 2, 1, -1])}, "NC", "single", 4, 3),
        ({**NODES, "y": Y[:, None]}, "NC", "single", 4, 2),
        ({**NODES, "y": np.array([[0, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 0]])}, "NC", "multi", 4, 3),
        ({**NODES, "n_nodes": np.array(4)}, "NC", "single", 4, 2),
        (LINKS, "LP", "multi", 4, 1),
        ({**LINKS, "n_nodes": np.array(9)}, "LP", "multi", 9, 1),
        ({**LINKS, "y": Y}, "LC", "single", 4, 2),
        ({**LINKS, "x": np.ones((6, 3)), "y": np.eye(4, 2)}, "LC", "multi", 6, 2),
        (GRAPHS, "GC", "single", 4, 2),
        ({**GRAPHS, "y": np.array([[0.0], [1.0]])}, "GC", "single", 4, 2),
        ({**GRAPHS, "y": np.array([[0, 1, 0], [1, 0, 0]])}, "GC", "multi", 4, 3),
        ({**GRAPHS, "y": np.array([0.5, 1.0])}, "GR", "real", 4, 1),
        ({**GRAPHS, "y": np.array([[0.5], [1.0]])}, "GR", "real", 4, 1),
        ({**GRAPHS, "y": np.array([[0.0, 2.0], [1.0, 3.0]])}, "GR", "real", 4, 2),
    ],
)
def test_what_arrays_amount_to(arrays: dict[str, Any], level: str, labels: str, n_nodes: int, n_classes: int) -> None:
    made = form(**arrays)
    assert (made.level, made.labels, made.n_nodes, made.n_classes) == (level, labels, n_nodes, n_classes)
    assert (made.x is None) == ("x" not in arrays)
    assert (made.graph is None) == (level not in ("GC", "GR"))
    assert (made.y is None) == (level == "LP")
    assert made.split is None
    assert (dict(made.keys), made.ignored) == ({}, ())
    np.testing.assert_array_equal(made.edges, arrays.get("links", arrays.get("edge_index")))
    assert made.edges.dtype == np.int64
    assert made.edges.flags["C_CONTIGUOUS"]
    if made.y is not None:
        assert made.y.dtype == {"single": np.int64, "multi": np.bool_, "real": np.float32}[labels]
        np.testing.assert_array_equal(np.asarray(made.y, dtype=float).ravel(), np.asarray(arrays["y"], dtype=float).ravel())
        assert made.y.ndim == (1 if labels == "single" else 2)


def test_an_empty_graph_of_links_has_no_nodes() -> None:
    made = form(links=np.empty((2, 0), dtype=np.int64))
    assert (made.n_nodes, made.edges.shape, made.level) == (0, (2, 0), "LP")


@pytest.mark.parametrize(
    ("y", "read"),
    [
        (np.array([0.0, np.nan, 1.0, 2.0]), [0, -1, 1, 2]),
        (np.array([True, False, True, False]), [1, 0, 1, 0]),
        (np.array([0, 2, 0, 2]), [0, 2, 0, 2]),
        (np.array([2, np.nan, 2, 2]), [2, -1, 2, 2]),  # 1 of 3 numbers: the least that is taken
        (np.array(["NA", "", "a", "NA"]), [0, -1, 1, 0]),
        (np.array([0, 5, 0, 5]), [0, 5, 0, 5]),  # 2 of 6
    ],
)
def test_class_numbers_as_they_come(y: Any, read: list[int]) -> None:
    assert form(**{**NODES, "y": y}).y.tolist() == read


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"x": X, "y": Y}, "has no array 'edge_index'; it has x, y; expected x [N, F], edge_index [2, E] and y [N] for nodes"),
        ({}, "has no array 'x'; it has nothing"),
        ({**LINKS, "graph": Y}, "contains both 'links' and 'graph'"),
        ({**NODES, "x": X[0]}, "x has shape [2]; expected [N, F], one row per node"),
        (
            {**NODES, "edge_index": EDGES[:, :3].T},
            "edge_index has shape [3, 2]; expected [2, E], with sources in row 0 and targets in row 1; give edge_index.T",
        ),
        (
            {**NODES, "edge_index": EDGES.reshape(-1)},
            "edge_index has shape [8]; expected [2, E], with sources in row 0 and targets in row 1",
        ),
        (
            {**NODES, "edge_index": EDGES[[0, 1, 1]]},
            "edge_index has shape [3, 4]; expected [2, E], with sources in row 0 and targets in row 1",
        ),
        ({"links": EDGES.T}, "links has shape [4, 2]; expected [2, E], with sources in row 0 and targets in row 1; give links.T"),
        ({**NODES, "edge_index": EDGES + 1}, "edges refer to nodes 1 to 4; expected 0 to 3, the rows of x (counted from 1? subtract 1)"),
        ({**NODES, "edge_index": EDGES + 2}, "edges refer to nodes 2 to 5; expected 0 to 3, the rows of x"),
        ({**NODES, "edge_index": EDGES - 1}, "edges refer to nodes -1 to 2; expected 0 to 3, the rows of x"),
        ({**NODES, "edge_index": EDGES + np.array([[1], [2]])}, "edges refer to nodes 1 to 5; expected 0 to 3, the rows of x"),
        ({**NODES, "edge_index": EDGES.astype(str)}, "edge_index has dtype <U21; expected whole numbers"),
        ({**NODES, "edge_index": EDGES + np.inf}, "edge_index has dtype float64; expected whole numbers"),
        ({**NODES, "x": WORDS}, "x has dtype <U1; expected a numeric array"),
        (
            {**NODES, "x": np.where(X > 2, np.inf, X)},
            "x contains 2 NaN or infinite values, the first at node 2; impute them before saving the file",
        ),
        (
            {**NODES, "x": scipy.sparse.csr_matrix(np.where(X > 2, np.nan, X))},
            "x contains 2 NaN or infinite values; impute them before saving the file",
        ),
        ({**NODES, "y": Y[:3]}, "y has shape [3]; expected [4] (one class per item) or [4, L] (L labels per item)"),
        ({**NODES, "y": Y.reshape(4, 1, 1)}, "y has shape [4, 1, 1]; expected [4]"),
        (
            {**NODES, "y": np.array([0, 1j, 0, 1])},
            "y has dtype complex128; expected whole numbers from 0 (with -1 for no label), or class names",
        ),
        ({**NODES, "y": Y + 0.5}, "y contains 0.5; expected class numbers (only whole graphs can have real targets)"),
        ({**NODES, "y": np.array([0, 1.5, 1, 2])}, "y contains 1.5; expected class numbers"),
        ({**NODES, "y": np.eye(4, 2) * 2}, "y contains 2.0; expected 0 and 1 (only whole graphs can have real targets)"),
        ({**NODES, "y": np.array([[0, 1], [0.25, 1], [0, 1], [1, 1]])}, "y contains 0.25; expected 0 and 1"),
        (
            {**NODES, "y": np.array([0, 1, -2, -1])},
            "y holds -2; expected classes from 0, and -1 where there is no label; where every value is a class: say unlabelled = none",
        ),
        (
            {**NODES, "y": WORDS[:, [0, 0]]},
            "y contains words in 2 columns; expected one class name per item, or a column of 0 and 1 per label",
        ),
        ({**NODES, "y": np.full(4, -1)}, "y has no labels: every entry is -1"),
        ({**NODES, "y": np.array([3, 3, 3, 3])}, "y has 1 classes with numbers up to 3; expected numbers from 0 to 0"),
        ({**NODES, "y": np.array([0, 6, 0, 6])}, "y has 2 classes with numbers up to 6; expected numbers from 0 to 1"),
        ({**GRAPHS, "graph": np.array([0, 0, 1])}, "graph has 3 entries; expected one per node, 4"),
        (
            {**GRAPHS, "graph": np.array([1, 1, 2, 2])},
            "expected graph to number the graphs consecutively from 0, as in 0, 0, 1, 1, 1, 2, ...",
        ),
        (
            {**GRAPHS, "graph": np.array([0, 0, 2, 2])},
            "expected graph to number the graphs consecutively from 0, as in 0, 0, 1, 1, 1, 2, ...",
        ),
        (
            {**GRAPHS, "graph": np.array([0, 1, 0, 1])},
            "expected graph to number the graphs consecutively from 0, as in 0, 0, 1, 1, 1, 2, ...",
        ),
        ({**GRAPHS, "edge_index": np.array([[0, 1], [1, 2]])}, "edge 1 connects nodes of two different graphs"),
        ({**GRAPHS, "y": Y}, "y has shape [4]; expected [2] (one class per item)"),
        ({**GRAPHS, "y": np.array([[0.5, 2.0], [1.0, np.nan]])}, "graph 1 has no target; remove graphs without a target"),
        ({**NODES, "x": X[:, :0]}, "x has no columns; expected at least one feature, such as numpy.ones((N, 1))"),
        ({**NODES, "x": np.ones((4, 2)) * 1e-320}, "which float32 cannot distinguish from 0; scale the features"),
        ({**NODES, "n_nodes": np.array(5)}, "n_nodes is 5, but x has 4 rows; expected one row per node: remove n_nodes, or fix x"),
        (
            {**NODES, "time": np.arange(4).astype("datetime64[as]")},
            "times have dtype datetime64[as]; expected a resolution of nanoseconds or coarser",
        ),
        ({**NODES, "x": X * 1e39}, "x contains 1e+39, which float32 cannot represent; scale the features"),
        ({**LINKS, "n_nodes": np.arange(3)}, "n_nodes is int64 [3]; expected a single whole number"),
        ({**LINKS, "n_nodes": np.array("many")}, "n_nodes is 'many'; expected a single whole number"),
        ({**LINKS, "n_nodes": np.array(np.nan)}, "n_nodes is nan; expected a finite whole number"),
        ({**NODES, "time": np.full(4, 1e300)}, "the time of item 0 is 1e+300; expected whole numbers up to 2^53, or dates"),
        ({**NODES, "time": np.array([1, np.nan, 2, 3])}, "the time of item 1 is nan; every item needs a time"),
        (
            {**NODES, "time": np.array(["2020-01-01", "2020-01-02", "NaT", "NaT"], dtype="datetime64[D]")},
            "the time of item 2 is NaT (2 in all); every item needs a time",
        ),
        ({**GRAPHS, "edge_attr": np.array([1.0, np.nan])}, "edge_attr of edge 1 contains nan; expected finite float32 values"),
    ],
)
def test_what_is_refused_and_how(arrays: dict[str, Any], says: str) -> None:
    found = message(**arrays)
    assert str(PATH) in found
    assert says in found
    if says.endswith(("targets", "of x")):
        assert found.endswith(says)


def test_edges_between_all_nodes_are_within_their_range() -> None:
    made = form(**{**NODES, "edge_index": np.array([[0, 3], [3, 0]], dtype=np.float32)})
    assert made.edges.tolist() == [[0, 3], [3, 0]]
    assert form(**{**NODES, "edge_index": np.empty((2, 0))}).edges.shape == (2, 0)
    assert form(**{**GRAPHS, "edge_index": np.empty((2, 0), dtype=int)}).graph.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.uint8, np.float16, np.float64])
def test_features_are_kept_as_they_are(kind: Any) -> None:
    """Of any number type; sparse ones stay sparse."""
    made = form(**{**NODES, "x": X.astype(kind)})
    assert made.x.dtype == kind
    sparse = form(**{**NODES, "x": scipy.sparse.csr_matrix(X)})
    assert scipy.sparse.issparse(sparse.x)
    np.testing.assert_array_equal(sparse.x.toarray(), X)


SPLIT = {"train": np.array([1, 0, 0, 1]), "validation": np.array([0, 1, 0, 0]), "test": np.array([0, 0, 1, 0])}


@pytest.mark.parametrize(
    ("change", "split"),
    [
        ({}, [0, 1, 2, 0]),
        ({"train": np.array([True, False, False, False])}, [0, 1, 2, -1]),
        ({"train": np.array([0, 3])}, [0, 1, 2, 0]),
        ({"test": np.array([2], dtype=np.uint8)}, [0, 1, 2, 0]),
        ({"test": np.array([0.0, 0.0, 1.0, 0.0])}, [0, 1, 2, 0]),
    ],
)
def test_masks_and_positions(change: dict[str, Any], split: list[int]) -> None:
    made = form(**NODES, **{**SPLIT, **change})
    assert made.split is not None
    assert (made.split.tolist(), made.split.dtype) == (split, np.int8)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"validation": None}, "has train and test but no validation; expected either all of train, validation, test or none of them"),
        ({"train": None, "validation": None}, "has test but no train; expected either all of"),
        ({"test": np.array([0, 1, 1, 0])}, "item 1 is in both validation and test; expected disjoint masks"),
        ({"test": np.array([3])}, "item 3 is in both train and test; expected disjoint masks"),
        ({"test": np.array([1, 1, 2, 2])}, "item 1 is in both validation and test; expected disjoint masks"),  # positions, as many as items
        ({"test": np.zeros(4)}, "test is empty; expected at least one item"),
        ({"test": np.array([], dtype=int)}, "test is empty; expected at least one item"),
        ({"test": np.array([4])}, "test is int64 [1]; expected a bool mask [4], or item positions below 4"),
        ({"test": np.array([-1])}, "test is int64 [1]; expected a bool mask [4], or item positions below 4"),
        ({"test": np.array([2.0])}, "test is float64 [1]; expected a bool mask [4], or item positions below 4"),
        ({"test": np.array([[2]])}, "test is int64 [1, 1]; expected a bool mask [4], or item positions below 4"),
        ({"test": np.array([True, False])}, "test is bool [2]; expected a bool mask [4], or item positions below 4"),
    ],
)
def test_masks_that_make_no_split(change: dict[str, Any], says: str) -> None:
    masks = {name: mask for name, mask in {**SPLIT, **change}.items() if mask is not None}
    assert says in message(**NODES, **masks)


def test_attributes_and_what_is_not_used() -> None:
    """Whole numbers and days, one per item, are attributes; all else is listed, sorted."""
    made = form(
        **NODES,
        edge_attr=np.ones(4),
        time=np.array(["1970-01-02", "1970-01-01", "1971-01-01", "1970-01-02"], dtype="datetime64[s]"),
        column=np.array([[3], [1], [2], [1]]),
        flag=np.array([True, False, False, True]),
        whole=np.array([1.0, 2.0, 3.0, -4.0]),
        half=np.array([1.0, 2.0, 3.5, 4.0]),
        short=np.array([1, 2, 3]),
        wide=np.ones((4, 2)),
        words=np.array(list("abcd")),
        domain=np.array(list("cabc")),
        matrix=scipy.sparse.csr_matrix(X),
    )
    assert {name: values.tolist() for name, values in made.keys.items()} == {
        "column": [3, 1, 2, 1],
        "domain": [2, 0, 1, 2],
        "flag": [1, 0, 0, 1],
        "time": [1, 0, 365, 1],
        "whole": [1, 2, 3, -4],
    }
    assert {values.dtype for values in made.keys.values()} == {np.dtype(np.int64)}
    assert made.ignored == ("edge_attr", "half", "matrix", "short", "wide", "words")


@pytest.mark.parametrize("time", [np.array([1j, 2, 3, 4]), np.array([1, 2, 3]), np.ones((4, 2))])
def test_time_must_be_one_number_per_item(time: Any) -> None:
    says = f"time is {time.dtype} {list(time.shape)}; expected whole numbers or dates, one per item [4]"
    assert re.search(re.escape(says), message(**NODES, time=time))


def test_attributes_are_of_items_and_not_of_nodes() -> None:
    """Of links and of graphs there are as many as of these."""
    of_links = form(links=EDGES[:, :3], kind=np.array([5, 6, 7]), of_nodes=np.array([1, 2, 3, 4]))
    assert ({k: v.tolist() for k, v in of_links.keys.items()}, of_links.ignored) == ({"kind": [5, 6, 7]}, ("of_nodes",))
    typed = form(links=EDGES[:, :3], node_type=np.array(["user", "item", "user", "item"]), note=None)
    assert (typed.node_types.tolist(), typed.ignored) == ([1, 0, 1, 0], ("note",))
    of_graphs = form(**GRAPHS, kind=np.array([5, 6]), of_nodes=np.array([1, 2, 3, 4]))
    assert ({k: v.tolist() for k, v in of_graphs.keys.items()}, of_graphs.ignored) == ({"kind": [5, 6]}, ("of_nodes",))
