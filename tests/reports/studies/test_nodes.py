"""Better and worse answered nodes: numbers by hand, figures in both themes, and what may be asked for."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from page_elements import text_of, texts
from report_lab import EVIL, Tables, assert_harmless

from cglsuite.base.errors import NotApplicable, UsageError
from cglsuite.reports.kit.pictures import DARK, LIGHT, Gallery
from cglsuite.reports.rendering.page import sanitize
from cglsuite.reports.studies import nodes as show_nodes
from cglsuite.reports.studies.nodes import ALL, NodeItems, cumulative, group_summary, node_items, plane


def frame(method: str = "bare", **changes: Any) -> pd.DataFrame:
    """Five items: two better, two worse (one without neighbours), one at the mean."""
    given = {
        "method": method,
        "order": 0,
        "split": 0,
        "init": 0,
        "task": 1,
        "node": range(5),
        "labels": [1, 3, 2, 2, 1],
        "degree": [4, 10, 0, 2, 7],
        "homophily": [0.5, 1.0, math.nan, 0.25, 0.75],
        "score": [1.0, 0.9, 0.1, 0.0, 0.5],
        "better": [True, True, False, False, False],
        "worse": [False, False, True, True, False],
    }
    return pd.DataFrame(given | changes)


def items(*frames: pd.DataFrame, several: bool = True) -> NodeItems:
    return NodeItems(pd.concat(frames, ignore_index=True), "toy/class-il@mine-1", several)


def test_groups_by_hand() -> None:
    """Sizes, shares, means and deviations; an item without neighbours has no homophily, and one at the mean is in no group."""
    better, worse = group_summary(frame()).to_dict(orient="records")
    assert (better["method"], better["group"], better["n"], better["share"]) == ("bare", "better", 2, 0.4)
    assert (better["homophily_mean"], better["homophily_std"]) == (0.75, pytest.approx(math.sqrt(0.125)))
    assert (better["labels_mean"], better["degree_mean"], better["degree_std"]) == (2.0, 7.0, pytest.approx(math.sqrt(18)))
    assert (worse["n"], worse["homophily_n"], worse["homophily_mean"]) == (2, 1, 0.25)
    assert math.isnan(worse["homophily_std"])


def test_several_methods_have_a_row_for_all() -> None:
    """In the order given; the last rows pool them."""
    other = frame("ewc", better=[True] * 5, worse=[False] * 5)
    table = group_summary(pd.concat([frame(), other], ignore_index=True))
    assert list(table["method"]) == ["bare", "bare", "ewc", "ewc", ALL, ALL]
    assert list(table["n"]) == [2, 2, 5, 0, 7, 2]
    assert math.isnan(table["degree_mean"].iloc[3])


def test_cumulative_distribution_against_counting() -> None:
    """At every value the share of values that are at most as large; few points are enough for many values."""
    draw = np.random.default_rng(0)
    few = draw.integers(0, 9, 50).astype(float)
    for value, share in zip(*cumulative(np.append(few, np.nan)), strict=True):
        assert share == pytest.approx(float((few <= value).mean()))
    many = draw.random(5000)
    values, shares = cumulative(many)
    assert values.size <= 402
    assert (values[0], values[-1], shares[-1]) == (many.min(), many.max(), 1.0)
    assert all(share == pytest.approx(float((many <= value).mean())) for value, share in zip(values, shares, strict=True))
    assert float(np.diff(shares).max()) < 0.01
    assert cumulative(np.array([np.nan]))[0].size == 0


def test_the_table_holds_the_computed_numbers() -> None:
    """Every mean with its exact value; names are only text."""
    shown = items(frame(EVIL), frame("ewc"))
    page = str(show_nodes.node_groups(shown))
    assert page.index(">method<") < page.index(">answered<") < page.index(">items<") < page.index(">share, %<")
    assert_harmless(f"<style></style>{sanitize(page)}")
    (table,) = Tables(page).tables
    computed = group_summary(shown.frame)
    assert len(table) == 1 + len(computed)
    for cells, row in zip(table[1:], computed.to_dict(orient="records"), strict=True):
        assert [cells[2][1], cells[4][1], cells[5][1], cells[6][1]] == [
            row[f"{n}"] for n in ("n", "homophily_mean", "labels_mean", "degree_mean")
        ]
    assert "(n=1)" in table[2][4][0]
    assert "an item's score: F1 of the predicted set of labels;" in text_of(page, "figure.table > figcaption", "item's score")
    assert "F1" not in str(show_nodes.node_groups(items(frame(), several=False)))


def test_a_figure_per_method_in_both_themes() -> None:
    """Number of labels has a panel only where it varies; an empty group draws nothing."""
    gallery = show_nodes.node_distributions(items(frame(), frame("ewc", better=False, worse=False)))
    assert isinstance(gallery, Gallery)
    (first,) = gallery.pictures  # EWC has no groups
    alike = show_nodes.node_distributions(items(frame(better=False, worse=False)))
    assert "Every method predicts all items of a task equally well." in str(alike)
    assert first.light != first.dark
    for svg in (first.light, first.dark):
        for text in ("label homophily", "number of labels", "degree", "better than the mean", "worse than the mean", "share of items, %"):
            assert text in svg
    assert "2 better, 2 worse" in first.alt
    assert "label homophily: better 0.75, worse 0.25" in first.alt
    (lopsided,) = show_nodes.node_distributions(items(frame(better=False))).pictures  # type: ignore[union-attr]
    assert "better than the mean" not in lopsided.light
    assert LIGHT.lines[0] not in lopsided.light  # the colour of the other group stays free
    assert LIGHT.lines[1] in lopsided.light
    assert DARK.lines[1] in lopsided.dark
    (alone,) = show_nodes.node_distributions(items(frame(labels=1), several=False)).pictures  # type: ignore[union-attr]
    assert "number of labels" not in alone.light


def embedded(labels: int = 3, n: int = 24) -> tuple[pd.DataFrame, np.ndarray]:
    """Two tasks of separate clusters in eight dimensions, a class each or ``labels`` of them; -1: no single class."""
    where = np.arange(n) % 2
    frame = pd.DataFrame({"task": 1 + where, "item": range(n), "label": -1 if labels < 0 else np.arange(n) % labels})
    return frame, (20.0 * where[:, None] + np.random.default_rng(0).normal(size=(n, 8))).astype(np.float32)


def test_embeddings_in_the_plane() -> None:
    """Neighbours stay together, and the same vectors get the same places."""
    frame, vectors = embedded()
    places = plane(vectors)
    assert places.shape == (24, 2)
    np.testing.assert_array_equal(places, plane(vectors))
    near = np.linalg.norm(places[:, None] - places[None], axis=2) + np.diag(np.full(24, np.inf))
    assert (frame["task"].to_numpy()[near.argmin(axis=1)] == frame["task"]).all()


@pytest.mark.parametrize(("labels", "colours"), [(3, LIGHT.lines[:3]), (-1, LIGHT.lines[:2]), (12, ())])
def test_a_figure_of_embeddings_per_method(labels: int, colours: tuple[str, ...]) -> None:
    """A colour per class and a marker per task; of several labels a colour per task, and of many classes colours of a scale."""
    shown = dataclasses.replace(items(frame()), embeddings={"bare": embedded(labels), "ewc": embedded(labels, n=4)})
    gallery = show_nodes.node_embeddings(shown)
    assert isinstance(gallery, Gallery)
    (made,) = gallery.pictures  # of four items there is no figure
    assert made.alt.startswith("t-SNE of the embeddings of 24 test items of 2 tasks by bare")
    assert "are not meaningful" in made.alt
    assert all(colour in made.light for colour in colours)
    assert "task 2" in made.light
    assert ("class 0" in made.light) == (labels > 0)


def test_embeddings_that_are_all_alike_have_no_figure() -> None:
    alike, vectors = embedded()
    shown = dataclasses.replace(items(frame()), embeddings={"bare": (alike, np.ones_like(vectors))})
    assert "all have the same embedding" in str(show_nodes.node_embeddings(shown))


@pytest.mark.plugins
def test_items_of_cells(tmp_path: Path) -> None:
    """Methods and seeds side by side; settings of one method do not trouble the others; what cannot be asked for says so."""
    from cglsuite.host import load_catalogue

    catalogue, scenario = load_catalogue(), "synthetic-csbm/class-il@begin-1"
    tiny = {"dataset.n_nodes": 72, "dataset.n_classes": 4, "dataset.n_features": 40, "dataset.words": 5, "backbone.width": 6}
    overrides = tiny | {"training.epochs": 2, "method.lambda": 2.0}
    found = node_items(catalogue, scenario, ["bare", "ewc"], overrides, {"init": [0, 1]}, tmp_path / "store")
    assert list(found.frame.columns[:4]) == ["method", "order", "split", "init"]
    assert found.frame.groupby(["method", "init"]).size().nunique() == 1
    assert set(found.frame["method"]) == {"bare", "ewc"}
    assert found.preset.startswith(f"{scenario}+")
    assert not found.several_labels
    assert set(found.embeddings) == {"bare", "ewc"}
    one = node_items(catalogue, scenario, "ewc", overrides, {"init": [0]}, tmp_path / "store")  # as papermill's `-p methods ewc` gives it
    assert set(one.frame["method"]) == {"ewc"}
    masked = {"backbone.width": 6, "training.epochs": 1} | {key: value for key, value in tiny.items() if key.startswith("dataset.")}
    assert set(node_items(catalogue, "synthetic-csbm/task-il@cglb-1", "piggyback", masked, {}, tmp_path / "store").embeddings) == {
        "piggyback"
    }
    with pytest.raises(NotApplicable, match="only in node classification"):
        node_items(catalogue, "synthetic-motifs/class-il@begin-2", "bare", {}, {}, tmp_path / "store")
    with pytest.raises(UsageError, match="lambdo"):
        node_items(catalogue, scenario, ["ewc"], tiny | {"method.lambdo": 1.0}, store=tmp_path / "store")
    with pytest.raises(UsageError, match="warp"):
        node_items(catalogue, scenario, ["warp"], tiny, store=tmp_path / "store")


def test_key_results_compare_the_two_groups() -> None:
    """Per method the sizes and means of both groups; what both groups share, or one lacks, is left out."""
    (line,) = texts(str(show_nodes.message(items(frame()))), "li")
    assert line == (
        "bare: nodes above their task's mean score have a higher label homophily (0.75 against 0.25) and a higher degree "
        "(7.00 against 1.00) [2 nodes above, 2 below]."
    )
    (alone,) = texts(str(show_nodes.message(items(frame(better=False)))), "li")
    assert alone == "bare: no node is above its task's mean score [0 nodes above, 2 below]."
