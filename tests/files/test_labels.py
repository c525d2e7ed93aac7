"""What labels mean: one reading is taken, several are asked for, and what is unknown is never a target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cglsuite.base.errors import DataError
from cglsuite.graphs.files.labels import Items, Labels, read_labels
from cglsuite.graphs.files.options import FileOptions

NAN = np.nan
ASKED = (
    "where -1 could be a class or mark items without a label: say unlabelled = none or unlabelled = -1 (--data-option mail.unlabelled=none"
)


def labels(y: Any, of: Items = "nodes", known: Any = None, n_classes: int | None = None, **options: Any) -> Labels:
    said = FileOptions.of(options, "options")
    return read_labels("mail.npz", "mail", np.array(y), len(y), of, said, known, n_classes)


@pytest.mark.parametrize(
    ("y", "options", "read", "classes"),
    [
        ([1, -1, 1, -1], {"unlabelled": "none"}, [1, 0, 1, 0], ("-1", "1")),
        ([1, -1, 1, -1], {"unlabelled": -1}, [1, -1, 1, -1], ()),
        ([-1, 0, 1, 0], {"unlabelled": "none"}, [0, 1, 2, 1], ("-1", "0", "1")),
        ([-1, 0, 1, 0], {"unlabelled": -1.0}, [-1, 0, 1, 0], ()),
        ([-1, 0, 1, 2], {}, [-1, 0, 1, 2], ()),
        ([2, 0, 3, 1, -1], {}, [2, 0, 3, 1, -1], ()),
        ([-5, 3, -1, 0], {"unlabelled": "none", "labels": "single"}, [0, 3, 1, 2], ("-5", "-1", "0", "3")),
        ([0, 1, 99, 2], {"unlabelled": 99}, [0, 1, -1, 2], ()),
        ([0.0, NAN, 1.0, 0.0], {}, [0, -1, 1, 0], ()),
        (["b", "?", "a", "b"], {"unlabelled": "?"}, [1, -1, 0, 1], ("a", "b")),
        ([10, 20, 10, 30], {"labels": "single"}, [0, 1, 0, 2], ("10", "20", "30")),
        ([[1], [0], [1], [1]], {}, [1, 0, 1, 1], ()),
        ([[True], [False], [True], [True]], {}, [1, 0, 1, 1], ()),
    ],
)
@pytest.mark.parametrize("of", ["nodes", "links", "graphs"])
def test_classes(y: Any, options: dict[str, Any], read: list[int], classes: tuple[str, ...], of: Items) -> None:
    made = labels(y, of, **options)
    assert (made.kind, made.y.tolist(), made.classes, made.known) == ("single", read, classes, None)
    assert made.y.dtype == np.int64


@pytest.mark.parametrize("y", [[1, -1, 1], [-1, 0, 1], [-1, 0, 0], [-1, 1, 2], [-1, 2, 2], [-1, 0, 2], [0, 1, 3, -1], [-1.0, 1.0, 1.0]])
@pytest.mark.parametrize("of", ["nodes", "links", "graphs"])
def test_what_minus_one_means_is_asked(y: Any, of: Items) -> None:
    with pytest.raises(DataError, match=r"^mail\.npz: y contains -1, ") as error:
        labels(y, of)
    assert ASKED in str(error.value)


@pytest.mark.parametrize(("of", "known"), [("nodes", None), ("links", [[True, True]] * 3), ("graphs", [[True, True]] * 3)])
def test_labels_of_which_an_item_has_several(of: Items, known: Any) -> None:
    made = labels([[1, 0], [0, 0], [1, 1]], of)
    assert (made.kind, made.y.tolist()) == ("multi", [[True, False], [False, False], [True, True]])
    assert (None if made.known is None else made.known.tolist()) == known


@pytest.mark.parametrize("of", ["links", "graphs"])
@pytest.mark.parametrize(("unknown", "options"), [(NAN, {}), (-1, {"unlabelled": -1}), (9, {"unlabelled": 9})])
def test_unknown_labels_go_to_known(of: Items, unknown: float, options: dict[str, Any]) -> None:
    made = labels([[1, unknown], [0, 1], [unknown, unknown]], of, **options)
    assert (made.kind, made.y.tolist()) == ("multi", [[True, False], [False, True], [False, False]])
    assert made.known is not None
    assert made.known.tolist() == [[True, False], [True, True], [False, False]]


def test_a_false_label_of_a_link_is_known() -> None:
    """One label per link: with ``labels = multi`` false is known to be false, and without it is a class."""
    for y, unlabelled in (([[True], [False], [False]], None), ([1, 0, 0], None), ([1, -1, -1], "none"), (["yes", "no", "no"], None)):
        made = labels(y, "links", labels="multi", **({} if unlabelled is None else {"unlabelled": unlabelled}))
        assert made.known is not None
        assert (made.y.tolist(), made.known.tolist()) == ([[True], [False], [False]], [[True]] * 3)


@pytest.mark.parametrize(
    ("y", "options", "read"),
    [
        ([0.5, 1.5], {}, [[0.5], [1.5]]),
        ([[0.0, 2.0], [1.0, 3.0]], {}, [[0, 2], [1, 3]]),
        ([3, 40], {"labels": "real"}, [[3], [40]]),
        ([[0, 1], [1, 1]], {"labels": "real"}, [[0, 1], [1, 1]]),
    ],
)
def test_targets(y: Any, options: dict[str, Any], read: Any) -> None:
    made = labels(y, "graphs", **options)
    assert (made.kind, made.y.tolist(), made.y.dtype) == ("real", read, np.float32)


@pytest.mark.parametrize("y", [[0.0, 1.0, 2.0], [3, 40, 3], [-3, 0, 1], list(range(30))])
def test_whole_numbers_of_graphs_that_may_be_targets_are_asked(y: Any) -> None:
    with pytest.raises(DataError, match=r"which could be classes or real targets: say labels = single or labels = real"):
        labels(y, "graphs")
    assert labels(y, "graphs", labels="single").kind == "single"
    assert labels(y, "graphs", labels="real").y.tolist() == [[value] for value in y]


def test_what_a_data_set_itself_says() -> None:
    """``known`` and ``n_classes``, as NodeData, LinkData and GraphData are written."""
    assert labels([-1, 0, 1], known=np.array([False, True, True]), n_classes=4).y.tolist() == [-1, 0, 1]
    assert labels(np.array([1, 2], dtype=np.float32), "graphs", n_classes=1).kind == "real"
    one = labels([[True], [False]], "links", known=np.array([[True], [True]]), n_classes=1)
    assert (one.kind, one.y.tolist(), one.known.tolist()) == ("multi", [[True], [False]], [[True], [True]])  # type: ignore[union-attr]
    with pytest.raises(DataError, match="known is bool \\[2\\]; expected bool \\[3\\], the shape of y"):
        labels([-1, 0, 1], known=np.array([False, True]))
    with pytest.raises(DataError, match="y contains class 5; expected 0 to 3, since n_classes is 4"):
        labels([0, 1, 5], n_classes=4)


@pytest.mark.parametrize(
    ("y", "of", "options", "says"),
    [
        ([[1, -1], [0, 1]], "graphs", {}, "y contains -1, 0 and 1: -1 may mark unknown labels: say unlabelled = -1"),
        ([[1, -1], [-1, 1]], "nodes", {}, "y contains -1 and 1: write 0 for -1 where it is false; it may also mark unknown labels"),
        ([[1, -1], [0, 1]], "graphs", {"unlabelled": "none"}, "y contains -1, but unlabelled = none; expected 0 or 1"),
        ([[1, NAN], [0, 1]], "nodes", {}, "node 0 has both known and unknown labels"),
        ([0.5, NAN], "graphs", {}, "graph 1 has no target; remove graphs without a target"),
        ([0, 1], "nodes", {"labels": "real"}, "labels = real, but the items are nodes; only whole graphs"),
        (["a", "b"], "graphs", {"labels": "real"}, "labels = real, but y contains 'a'; expected numbers"),
        ([0, 1, 2], "links", {"labels": "multi"}, "labels = multi, but y has 3 classes; expected one column of 0 and 1 per label"),
        ([0, 1, 1], "nodes", {"labels": "multi"}, "labels = multi, but nodes have one class each"),
        ([[0, 1], [1, 0]], "nodes", {"labels": "single"}, "labels = single, but y has shape [2, 2]; expected [2], one class per item"),
        ([0, 1], "nodes", {"unlabelled": "?"}, "unlabelled = '?', but y contains numbers; expected a number or 'none'"),
        ([0, 1, 2, 3], "nodes", {"unlabelled": "\u0663"}, "but y contains numbers; expected a number or 'none'"),
        ([0.0, np.inf], "graphs", {}, "y contains inf; expected finite numbers"),
        ([NAN, NAN], "nodes", {}, "y has no labels"),
        ([1e39, 0.5], "graphs", {}, "y contains 1e+39, which float32 cannot represent; scale the targets"),
    ],
)
def test_labels_that_fit_no_kind(y: Any, of: Items, options: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError) as error:
        labels(y, of, **options)
    assert says in str(error.value)
