"""The anatomy of streams and data sets: numbers by hand and by simulation, published statistics beside them, tables and figures."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from page_elements import texts
from report_lab import EVIL, Tables, page_with
from tiny_graphs import tiny_molecules

from cglsuite.base.errors import UnknownNameError
from cglsuite.graphs import LinkData, NodeData
from cglsuite.reports.kit.figures import Panel, cumulative_figure
from cglsuite.reports.kit.pictures import LIGHT, Gallery, legend_columns
from cglsuite.reports.rendering.page import sanitize
from cglsuite.reports.studies.anatomy import page as show
from cglsuite.reports.studies.anatomy.compute import (
    THEOREM_1,
    WHOLE,
    Anatomies,
    Anatomy,
    Grouping,
    _by_attribute,
    anatomies,
    anatomy_of,
    dissect,
    distinct_neighbours,
    mean_drift,
)
from cglsuite.reports.studies.anatomy.published import published_beside

# A triangle 0-1-2 (1 and 2 share both directions), a link 3-4, a bridge 2-3, and 5 alone with a self-loop.
EDGES = torch.tensor([[0, 1, 2, 2, 3, 2, 5], [1, 2, 1, 0, 4, 3, 5]])
FIRST, SECOND = torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5])


def nodes(**changes: Any) -> NodeData:
    given = {
        "x": torch.tensor([[0.0], [0.0], [3.0], [4.0], [4.0], [4.0]]),
        "edge_index": EDGES,
        "y": torch.tensor([0, 0, 1, 1, 1, 2]),
        "n_classes": 4,
        "name": "tiny",
    }
    return NodeData(**(given | changes))


def anatomy(data: Any = None, setting: str = "class-il", name: str = "tiny/class-il@mine-1", **changes: Any) -> Anatomy:
    grouping = Grouping(what="task", names=["1: a", "2: b"], members=[FIRST, SECOND])
    made = dissect(data or nodes(), grouping, name=name, dataset=name.partition("/")[0], setting=setting, level="NC")
    return dataclasses.replace(made, **changes)


def test_sizes_by_hand() -> None:
    """Edges as listed, distinct pairs without self-loops, distinct neighbours, and the edges that lead out of a group."""
    made = anatomy()
    first, second = made.groups.to_dict(orient="records")
    assert (first["nodes"], first["edges"], first["pairs"], first["mean_degree"]) == (3, 4, 3, 2.0)
    assert (second["nodes"], second["edges"], second["pairs"], second["mean_degree"]) == (3, 2, 1, pytest.approx(2 / 3))
    assert (first["cut"], second["cut"]) == (pytest.approx(1 / 5), pytest.approx(1 / 3))
    assert first["homophily"] == pytest.approx(1 / 4)  # 0-1 of one class; 1-2, 2-1 and 2-0 of two
    assert (first["classes"], second["classes"], made.whole["classes"]) == (2, 2, 3)
    assert (made.whole["nodes"], made.whole["edges"], made.whole["pairs"], made.whole["loops"]) == (6, 7, 5, 1)
    assert list(made.degrees[WHOLE]) == [2, 2, 3, 2, 1, 0]
    assert list(made.degrees["2: b"]) == [1, 1, 0]


def test_growth_by_hand() -> None:
    """What each group adds: the bridge 2-3 comes with the second group; BeGin's Figure 2, a to c."""
    made = anatomy()
    assert made.growth[["nodes", "edges", "classes"]].to_numpy().tolist() == [[3, 4, 2], [6, 7, 3]]
    links = LinkData(links=torch.tensor([[0, 1, 2, 0], [1, 2, 3, 1]]), y=torch.tensor([0, 1, 1, 0]), n_classes=2, n_nodes=5, name="t")
    grouping = Grouping(what="task", names=["a", "b"], members=[torch.tensor([0, 3]), torch.tensor([1, 2])])
    grown = dissect(links, grouping, name="t", dataset="t", setting="", level="LC").growth
    assert grown[["nodes", "edges", "classes"]].to_numpy().tolist() == [[2, 2, 1], [4, 4, 2]]
    molecules = tiny_molecules()
    halves = Grouping(what="task", names=["a", "b"], members=list(torch.arange(molecules.n_items).split(-(-molecules.n_items // 2))))
    graphs = dissect(molecules, halves, name="t", dataset="t", setting="", level="GC")
    assert graphs.growth["nodes"].to_list() == graphs.groups["nodes"].cumsum().to_list()
    assert graphs.growth["edges"].iloc[-1] == graphs.whole["edges"]


def test_growth_is_drawn_where_groups_have_an_order() -> None:
    gallery = show.growth(Anatomies((anatomy(), anatomy(in_order=False))))
    assert isinstance(gallery, Gallery)
    (made,) = gallery.pictures
    assert made.alt.endswith("nodes 3, 6; edges 4, 7; classes 2, 3")
    for words in ("(a) nodes", "(b) edges", "(c) classes", "of the task", "of all so far"):
        assert words in made.light
    assert "the groups have no order" in str(show.growth(Anatomies((anatomy(in_order=False),))))


def test_labels_that_count() -> None:
    """Labels outside the group's outputs are as if they were not there."""
    outputs = torch.tensor([[True, False, False, False], [True, True, True, False]])
    grouping = Grouping(what="task", names=["a", "b"], members=[FIRST, SECOND], outputs=outputs)
    made = dissect(nodes(), grouping, name="t", dataset="t", setting="", level="NC")
    assert made.groups["homophily"].iloc[0] == pytest.approx(1 / 4)
    both = torch.tensor([[True, False], [True, True], [False, True], [False, False], [True, False], [False, False]])
    many = dissect(nodes(y=both, n_classes=2), dataclasses.replace(grouping, outputs=None), name="t", dataset="t", setting="", level="NC")
    assert many.whole["labels"] == pytest.approx(5 / 4)  # of the four nodes that have one
    np.testing.assert_allclose(many.shares, [[0.5, 0.5], [1.0, 0.0]])


def test_classes_and_labels_are_those_of_the_task() -> None:
    """A task of two of four labels has two classes, however many others its nodes have; homophily may count more of them."""
    y = torch.tensor([[1, 1, 1, 0], [1, 0, 1, 1], [0, 1, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 0, 0]], dtype=torch.bool)
    own = torch.tensor([[True, True, False, False], [False, False, False, True]])
    grouping = Grouping(what="task", names=["a", "b"], members=[FIRST, SECOND], own=own, outputs=own.long().cumsum(0) > 0)
    made = dissect(nodes(y=y), grouping, name="t", dataset="t", setting="class-il", level="NC")
    assert made.groups[["classes", "labels"]].to_numpy().tolist() == [[2, pytest.approx(4 / 3)], [1, 1]]
    np.testing.assert_allclose(made.shares, [[0.5, 0.5, 0, 0], [0, 0, 0, 1]])
    assert (made.whole["classes"], made.whole["labels"]) == (4, pytest.approx(13 / 5))
    one = dissect(nodes(), grouping, name="t", dataset="t", setting="class-il", level="NC")
    assert one.groups[["classes", "labels"]].to_numpy().tolist() == [[2, 1], [0, 0]]


def _several_labels() -> Anatomy:
    """An edge 0-1 between {1, 2, 3} and {1, 2}, one 1-2 to {1}; the task has the labels 1 and 3."""
    y = torch.zeros(6, 5, dtype=torch.bool)
    for node, labels in enumerate([[1, 2, 3], [1, 2], [1], [4], [4], []]):
        y[node, labels] = True
    own = torch.tensor([[False, True, False, True, False], [False, False, False, False, True]])
    grouping = Grouping(what="task", names=["1: classes 1, 3", "2: class 4"], members=[FIRST, SECOND], own=own, outputs=own)
    data = nodes(y=y, n_classes=5, edge_index=torch.tensor([[0, 1, 3], [1, 2, 4]]))
    return dissect(data, grouping, name="tiny/task-il@mine-1", dataset="tiny", setting="task-il", level="NC")


def test_theorem_1_by_hand() -> None:
    """Of {1, 2, 3} and {1, 2} the labels 1 and 3 leave 1/2 of 2/3, where 8/9 is claimed; the edge to {1} goes from 1/2 to 1."""
    first, second = _several_labels().groups[THEOREM_1].to_numpy()
    assert first.tolist() == [1.0, 1.0, 1.0, 0.0, pytest.approx(8 / 9)]
    assert second[:3].tolist() == [1.0, 1.0, 0.0]
    assert np.isnan(second[3:]).all()
    cells = texts(str(show.theorem(Anatomies((_several_labels(),)))), "td")
    assert cells[:5] == ["1", "100.0", "1", "0.0", "88.9"]
    assert "in tasks" in str(show.theorem(Anatomies((anatomy(),))))


@pytest.mark.realdata
@pytest.mark.plugins
def test_labels_of_a_task_of_proteins() -> None:
    """Each node of the task of classes 2 and 10 has 1.05 of the two, and 3.46 labels in all."""
    from cglsuite.host import load_catalogue

    made = anatomy_of(load_catalogue(), "pcg/task-il@agale-1")
    (task,) = (k for k, name in enumerate(made.names) if "2, 10" in name or "10, 2" in name)
    assert made.groups.loc[task, "classes"] == 2
    assert made.groups.loc[task, "labels"] == pytest.approx(1.05, abs=0.005)
    assert (made.groups["single_kept"] == 1.0).all()


def test_class_shares() -> None:
    """Every class of the data set has a column, also one without an item; unlabelled items are in none; a yes or no has two columns."""
    np.testing.assert_allclose(anatomy().shares, [[2 / 3, 1 / 3, 0, 0], [0, 2 / 3, 1 / 3, 0]])
    np.testing.assert_allclose(anatomy(nodes(y=torch.tensor([0, -1, -1, 1, 1, 2]))).shares, [[1, 0, 0, 0], [0, 2 / 3, 1 / 3, 0]])
    yes = torch.tensor([[True], [False], [False], [True], [True], [False]])
    np.testing.assert_allclose(anatomy(nodes(y=yes, n_classes=1)).shares, [[2 / 3, 1 / 3], [1 / 3, 2 / 3]])


def test_neighbours_against_counting() -> None:
    """A random graph with double edges and self-loops."""
    draw = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 20, (2, 90), generator=draw)
    near = [
        {b for a, b in zip(*edges.tolist(), strict=True) if a == v} | {a for a, b in zip(*edges.tolist(), strict=True) if b == v}
        for v in range(20)
    ]
    degrees, pairs, loops = distinct_neighbours(edges, 20)
    assert list(degrees) == [len(found - {v}) for v, found in enumerate(near)]
    assert pairs == degrees.sum() / 2
    assert loops == int((edges[0] == edges[1]).sum())


def test_drift_by_hand() -> None:
    """Distances in units of the spread of all items; one component for two groups holds all variance."""
    made = anatomy().drift
    assert made is not None
    spread = float(np.std([0, 0, 3, 4, 4, 4]))
    np.testing.assert_allclose(made.shift, [0, 3 / spread])
    np.testing.assert_allclose(made.chance, [0, math.sqrt(2 / 3)])
    np.testing.assert_allclose(np.abs(made.places), [[1.5], [1.5]])
    np.testing.assert_allclose(made.explained, [1.0])
    assert mean_drift([np.ones((3, 2))], "features", 1) is None
    still = mean_drift([np.ones((3, 2)), np.ones((2, 2))], "features", 2)
    assert still is not None
    assert list(still.shift) == [0, 0]


def test_components_are_exact_and_draw_nothing() -> None:
    """The means of 600 groups with 600 features, for which scikit-learn would draw a sketch: the components of NumPy's decomposition."""
    draw = np.random.default_rng(0)
    means = draw.normal(size=(600, 600))
    made = mean_drift(list(means[:, None]), "features", 600)
    assert made is not None
    left, singular, _ = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(made.places), np.abs(left * singular)[:, :2], atol=1e-8)
    np.testing.assert_allclose(made.explained, (singular**2 / (singular**2).sum())[:2])


def test_chance_is_what_a_random_deal_gives() -> None:
    """The root mean square over deals of independent items; sparse features give the same as dense ones."""
    draw = np.random.default_rng(0)
    sizes, found = (30, 90), []
    for _ in range(300):
        parts = [draw.normal(size=(n, 5)) for n in sizes]
        drift = mean_drift(parts, "features", 2)
        assert drift is not None
        found.append(drift.shift[1])
    assert np.sqrt(np.mean(np.square(found))) == pytest.approx(math.sqrt(1 / 30 + 1 / 90), rel=0.1)
    sparse = mean_drift([scipy.sparse.csr_matrix(part) for part in parts], "features", 2)
    assert sparse is not None
    assert drift is not None
    np.testing.assert_allclose(sparse.shift, drift.shift)
    np.testing.assert_allclose(np.abs(sparse.places), np.abs(drift.places))


def test_links_and_whole_graphs() -> None:
    """A task of links is the graph of its links; a task of graphs the union of its graphs, whose edges are counted in both directions."""
    links = LinkData(links=EDGES, y=torch.tensor([0, 0, 1, 1, 0, 1, 1]), n_classes=2, n_nodes=6, name="links")
    made = dissect(
        links,
        Grouping(what="task", names=["a", "b"], members=[torch.arange(4), torch.arange(4, 7)]),
        name="links",
        dataset="links",
        setting="",
        level="LC",
    )
    assert list(made.groups["nodes"]) == [3, 4]
    assert list(made.groups["pairs"]) == [3, 2]
    assert made.groups["homophily"].isna().all()
    assert made.drift is not None
    assert made.drift.of == "nodes by degree, in powers of two"

    molecules = tiny_molecules(targets="label")
    parts = [torch.arange(0, 90, 2), torch.arange(1, 90, 2)]
    chemistry = dissect(
        molecules, Grouping(what="task", names=["even", "odd"], members=parts), name="m", dataset="m", setting="", level="GC"
    )
    assert chemistry.groups["nodes"].sum() == chemistry.whole["nodes"]
    assert chemistry.groups["edges"].sum() == chemistry.whole["edges"] == 2 * chemistry.whole["pairs"]
    assert chemistry.whole["graphs"] == 90
    assert chemistry.drift is not None


def test_published_statistics() -> None:
    """AGALE's rows of PCG in this setting: thousands are rounded or cut; that it counts an edge once is a cause that holds."""
    whole = {"nodes": 3233.0, "edges": 74702.0, "pairs": 37351.0, "labels": 1.928, "homophily": 0.174, "mean_degree": 23.1}
    table = published_beside(anatomy(name="pcg/task-il@agale-2", setting="task-il", whole=whole)).set_index("quantity")
    assert set(table["setting"]) == {"task-IL"}
    assert table.loc[["nodes", "labels per node", "label homophily, full graph"], "equal"].all()
    assert (table.loc[["nodes", "labels per node"], "cause"] == "").all()
    assert list(table.loc["edges", ["ours", "equal", "cause", "check"]]) == [74702.0, False, "counts each undirected edge once", "holds"]
    assert list(table.loc["tasks", ["equal", "cause", "check"]]) == [False, "not known", "open"]
    assert table.loc["nodes per task", "published"] == 808
    assert table.loc["nodes per task", ["cause", "check"]].to_list() == ["a mean over 3 orders of classes; ours is of 1", "not checked"]
    alone = published_beside(anatomy(name="pcg", setting="", whole=whole))
    assert "tasks" not in set(alone["quantity"])
    assert published_beside(anatomy(name="pcg/task-il@cglb-1", setting="task-il", whole=whole)).empty
    assert published_beside(anatomy()).empty


def _scored(made: Anatomy) -> Anatomy:
    rows = [{"label": label, "task": k, "mean": 0.4 + 0.1 * k, "std": 0.01, "n": 2} for label in ("bare", EVIL) for k in (0, 1)]
    return dataclasses.replace(made, scores=pd.DataFrame(rows), measure="accuracy")


def test_tables_and_the_message() -> None:
    """Names are text; the key results hold the range of sizes, and whatever is left out gives its reason."""
    found = Anatomies((_scored(anatomy(name=f"{EVIL}/class-il@mine-1")),), {"far/class-il@mine-1": f"no file {EVIL}"})
    for made in (show.message(found), show.sizes(found), show.scores(found), show.published(found)):
        assert EVIL not in sanitize(str(made))
        assert "<script" not in sanitize(str(made))
    said = " ".join(texts(str(show.message(found)), "li"))
    assert "2 tasks of 3 nodes" in said
    assert "Label homophily rises from 0.57 in the full graph to 0.62 within tasks" in said
    assert "far/class-il@mine-1 is left out" in str(show.message(found))
    rows = Tables(str(show.sizes(found))).tables[0]
    assert rows[1][0][0] == WHOLE
    assert rows[2][0][0] == "1: a"
    assert "There are no records." in str(show.scores(Anatomies((anatomy(),))))


def _graphs() -> Anatomy:
    molecules = tiny_molecules(targets="label")
    grouping = Grouping(what="domain", names=["even", "odd"], members=[torch.arange(0, 90, 2), torch.arange(1, 90, 2)], in_order=False)
    return dissect(molecules, grouping, name="molecules", dataset="molecules", setting="", level="GC")


def _year_by_year() -> Anatomy:
    members = [torch.tensor([k % 6, (k + 2) % 6]) for k in range(14)]
    grouping = Grouping(what="year", names=[str(2000 + k) for k in range(14)], members=members)
    return dissect(nodes(), grouping, name="tiny", dataset="tiny", setting="", level="NC")


PCG = {"nodes": 3233.0, "edges": 74702.0, "pairs": 37351.0, "labels": 1.928, "homophily": 0.174, "mean_degree": 23.1}
SHOWN: dict[str, Callable[[], Anatomies]] = {
    "tasks with scores": lambda: Anatomies((_scored(anatomy()),), {"far/class-il@mine-1": "no file far.npz"}),
    "errors of one method": lambda: Anatomies(
        (dataclasses.replace(_scored(anatomy()), percent=False, scores=_scored(anatomy()).scores[2:].assign(n=1)),)
    ),
    "a mean over orders": lambda: Anatomies((anatomy(orders=[3, 0], whole={**anatomy().whole, "mean_nodes": 2.5, "mean_homophily": 0.5}),)),
    "whole graphs": lambda: Anatomies((_graphs(),)),
    "many years": lambda: Anatomies((_year_by_year(),)),
    "published statistics": lambda: Anatomies((anatomy(name="pcg/task-il@agale-2", setting="task-il", whole=PCG), anatomy())),
    "several labels": lambda: Anatomies((_several_labels(),)),
    "nothing": lambda: Anatomies(()),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SHOWN)
def test_every_section(name: str) -> None:
    """Tables, figures and texts of tasks, of graphs and of years, with scores in percent or not, means over orders, or nothing at all."""
    page_with(*(getattr(show, section)(SHOWN[name]()) for section in show.__all__ if section != "statistics_table"))


def test_attributes_of_many_values_are_binned() -> None:
    """Up to 24 values are a group each; 25 fall into a dozen bins of about equally many items, named by their ends."""

    def grouped(values: list[int], key: str = "") -> Grouping:
        keys = {"year": torch.tensor(values)}
        data = nodes(x=torch.zeros(len(values), 1), y=torch.zeros(len(values), dtype=torch.int64), edge_index=EDGES[:, :0], keys=keys)
        return _by_attribute(data, key)

    few = grouped([5, 7, 5, *range(100, 122)])
    assert (few.what, len(few.names), few.names[:3]) == ("year", 24, ["5", "7", "100"])
    assert [m.tolist() for m in few.members[:2]] == [[0, 2], [1]]
    many = grouped(list(range(1900, 1925)))
    assert many.names[:3] == ["1900 to 1902", "1903 to 1904", "1905 to 1906"]
    assert (many.names[-1], len(many.names)) == ("1923 to 1924", 12)
    assert sorted(i for m in many.members for i in m.tolist()) == list(range(25))
    one = grouped([5, 7], "class")
    assert (one.what, one.names, one.in_order) == ("class", ["0"], False)


def test_figures() -> None:
    """Every figure is drawn in both themes; methods' scores are lines that can be hidden, and the alternative text has the values."""
    found = Anatomies((_scored(anatomy()),))
    for made in (show.shares(found), show.drift(found), show.homophily(found), show.degrees(found)):
        assert isinstance(made, Gallery)
        (one,) = made.pictures
        assert one.light != one.dark
        assert "class-IL · mine 1" in one.light
    (bars,) = show.homophily(found).pictures
    assert "full graph 0.57" in bars.alt
    assert "homophily; accuracy (%)" in bars.light
    assert bars.light.count("data-series") >= 2
    assert "There is a single group" in str(show.drift(Anatomies((anatomy(drift=None),))))


def test_legends_stay_inside_the_figure() -> None:
    """As many columns as the widest label allows, so that no name is cut off."""
    names = [WHOLE, "1: classes 4, 1", "3: classes 3, 9", "5: classes 6, 2"]
    assert legend_columns(names, 5.0) == 2
    assert legend_columns(["a", "b"], 5.0) == 2
    assert legend_columns(["x" * 200], 5.0) == 1
    assert legend_columns([], 5.0) == 1
    curve = (np.array([1.0, 2.0]), np.array([0.5, 1.0]))
    panels = [Panel("degree", dict.fromkeys(names, curve), (0.0, 3.0)) for _ in range(2)]
    figure = cumulative_figure(panels, LIGHT, title="Degrees", order=names)
    figure.canvas.draw()
    (legend,) = figure.legends
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    assert legend.get_window_extent().y1 < min(axes.get_tightbbox().y0 for axes in figure.axes)


@pytest.mark.plugins
def test_subjects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenarios by tasks, data sets by an attribute or by class; means over orders; absent data have a reason."""
    from cglsuite.host import load_catalogue

    catalogue = load_catalogue()
    small = {"dataset.n_nodes": 120, "dataset.n_classes": 4}
    made = anatomy_of(catalogue, "synthetic-csbm/class-il@begin-1", orders=[0, 1], overrides=small)
    assert (made.what, len(made.groups), made.whole["nodes"]) == ("task", 2, 120)
    assert made.whole["mean_nodes"] == 60
    later = made.groups["homophily"].iloc[1]
    alone = anatomy_of(catalogue, "synthetic-csbm/task-il@begin-1", overrides=small)
    assert alone.whole["homophily"] == made.whole["homophily"]
    assert 0 < later <= 1
    by_class = anatomy_of(catalogue, "synthetic-csbm", overrides=small)
    assert (by_class.what, len(by_class.groups), by_class.in_order) == ("class", 4, False)
    assert by_class.groups["homophily"].dropna().eq(1.0).all()
    by_domain = anatomy_of(catalogue, "synthetic-motifs", key="domain")
    assert (by_domain.what, len(by_domain.groups)) == ("domain", 5)
    with pytest.raises(UnknownNameError, match="yaer"):
        anatomy_of(catalogue, "synthetic-motifs", key="yaer")
    monkeypatch.setenv("CGLSUITE_DATA", str(tmp_path))
    found = anatomies(catalogue, ["pcg", "synthetic-temporal-links"])
    assert list(found.absent) == ["pcg"]
    assert [one.what for one in found.shown] == ["step"]
