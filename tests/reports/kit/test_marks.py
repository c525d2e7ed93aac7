"""Marks of figures: what belongs to a method, and what stands at its points, as attributes of the SVG."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from cglsuite.reports.kit import figures, pictures
from cglsuite.reports.kit.pictures import mark_series, point_texts

SERIES, POINTS, LEGEND, GRID = (f"data-{name}" for name in ("series", "points", "legend", "grid"))
ODD = """a "b" <c> & 'd' 0.123456"""


def curve(labels: list[str], chance: np.ndarray | None = None) -> str:
    frame = pd.DataFrame([{"label": n, "task": t, "mean": 0.5 + 0.1 * t, "std": 0.02} for n in labels for t in (1, 2)])
    draw = pictures.picture(lambda theme: figures.curve_figure(frame, theme, title="t", ylabel="AP", order=labels, chance=chance), "alt")
    return draw.light


def found(svg: str, attribute: str) -> list[str]:
    return [value for element in ElementTree.fromstring(svg).iter() if (value := element.get(attribute)) is not None]


def test_every_part_of_a_method_is_marked() -> None:
    """Its bars, its line with the values, and both parts of its legend entry; chance likewise."""
    svg = curve(["bare", "ewc"], np.array([0.5, 0.25]))
    assert sorted(found(svg, SERIES)) == ["bare", "bare", "chance", "ewc", "ewc"]
    assert sorted(found(svg, LEGEND)) == ["bare", "bare", "chance", "chance", "ewc", "ewc"]
    points = [json.loads(text) for text in found(svg, POINTS)]
    assert points == [["after task 1: 50.0", "after task 2: 25.0"], *[["after task 1: 60.0 ± 2.0", "after task 2: 70.0 ± 2.0"]] * 2]


def test_a_marked_line_has_a_place_for_every_text() -> None:
    """As many markers as texts, points without a value left out of both."""
    frame = pd.DataFrame([{"label": "m", "task": t, "mean": value, "std": 0.0} for t, value in ((1, 0.1), (2, np.nan), (3, 0.3))])
    svg = pictures.picture(lambda theme: figures.curve_figure(frame, theme, title="t", ylabel="", order=["m"]), "").light
    (group,) = [element for element in ElementTree.fromstring(svg).iter() if element.get(POINTS)]
    assert json.loads(group.get(POINTS) or "") == ["after task 1: 10.0 ± 0.0", "after task 3: 30.0 ± 0.0"]
    assert len(list(group.iter("{http://www.w3.org/2000/svg}use"))) == 2


def test_labels_are_kept_to_the_letter() -> None:
    """Whatever a plugin calls itself, and with all digits."""
    svg = curve([ODD])
    assert set(found(svg, SERIES)) == set(found(svg, LEGEND)) == {ODD}
    assert [element.text for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")][-1] == ODD


def test_numbers_in_words_keep_their_digits() -> None:
    """Coordinates are shortened to save space; a number in a title is not a coordinate."""
    svg = pictures.picture(lambda theme: figures.matrix_figure(np.array([[0.5], [0.9]]), "sigma = 0.00125", theme), "alt").light
    assert "sigma = 0.00125" in svg


def test_only_cells_without_their_values_are_marked() -> None:
    """A small matrix has them written out."""
    values = np.random.default_rng(0).random((14, 13))
    values[0, 4] = np.nan
    large = pictures.picture(lambda theme: figures.matrix_figure(values, "m", theme), "alt").light
    (cells,) = [json.loads(text) for text in found(large, GRID)]
    assert cells["rows"] == ["before training", *(f"after task {k}" for k in range(1, 14))]
    assert cells["columns"] == [f"task {k}" for k in range(1, 14)]
    assert cells["cells"] == [[f"{100 * value:.1f}" if np.isfinite(value) else "" for value in row] for row in values]
    assert not found(pictures.picture(lambda theme: figures.matrix_figure(values[:3, :2], "m", theme), "alt").light, GRID)


def test_a_figure_without_marks_has_no_identifiers_of_theirs() -> None:
    figure = Figure(figsize=(1, 1))
    figure.add_axes((0, 0, 1, 1)).plot([0, 1])
    assert "data-" not in pictures.svg(figure)


@pytest.mark.parametrize(("percent", "text"), [(True, "here: −12.5 ± 1.0"), (False, "here: −0.1250 ± 0.0100")])
def test_texts_of_points(percent: bool, text: str) -> None:
    """In the page's digits and signs; no spread without a number."""
    assert point_texts(["here"], [-0.125], [0.01], percent=percent) == [text]
    assert point_texts(["here"], [-0.125], [np.nan], percent=percent) == [text.partition(" ±")[0]]


def test_a_series_without_texts_is_only_hidden() -> None:
    figure = Figure(figsize=(1, 1))
    (line,) = figure.add_axes((0, 0, 1, 1)).plot([0, 1])
    mark_series("m", line)
    svg = pictures.svg(figure)
    assert (found(svg, SERIES), found(svg, POINTS)) == (["m"], [])
