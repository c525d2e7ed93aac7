"""Figures: what they show is in them as text, they do not change from one time to the next, and names are not mathematics."""

from __future__ import annotations

import warnings
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from cglsuite.reports.kit import figures, pictures
from cglsuite.reports.kit.figures import StreamAxis
from cglsuite.reports.results.results import CampaignResults
from cglsuite.reports.studies import campaign as show


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def draw(matrix: np.ndarray, title: str = "ewc") -> pictures.Picture:
    return pictures.picture(lambda theme: figures.matrix_figure(matrix, title, theme), "alt")


def test_a_small_matrix_has_its_values_written_out() -> None:
    """Percent without decimals, a dash where no query could be asked, the first row named."""
    found = texts(draw(np.array([[0.5, np.nan], [0.914, 0.3], [0.7, 0.8]])).light)
    assert [t for t in found if t in {"50", "–", "91", "30", "70", "80"}] == ["50", "–", "91", "30", "70", "80"]
    assert "start" in found


def test_a_large_matrix_has_a_scale_instead() -> None:
    """35 tasks: no text in cells, few ticks, a colour bar, and a small file."""
    picture = draw(np.random.default_rng(0).random((36, 35)))
    assert "100" in texts(picture.light)
    assert len(picture.light) < 60_000


def test_figures_are_the_same_at_any_time() -> None:
    """No dates, no random identifiers."""
    matrix = np.array([[0.5], [0.9]])
    assert draw(matrix) == draw(matrix)


@pytest.mark.parametrize("title", ["$x_{", "<script>&", "a" * 200, "synthetic-csbm/task-il@begin-1+16179d3d"])
def test_titles_are_text_whatever_they_hold(title: str) -> None:
    """A dollar sign starts no formula, and everything is well-formed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = draw(np.array([[0.5], [0.9]]), title)
    for version in (picture.light, picture.dark):
        assert "".join(texts(version)[-title.count("") :]).replace(" ", "").endswith(title.replace(" ", "")[-5:])


def test_many_methods_are_told_apart() -> None:
    """Colours come again after seven methods, with another dash and marker."""
    labels = [f"m{i}" for i in range(12)]
    frame = pd.DataFrame([{"label": name, "task": t, "mean": 0.5, "std": np.nan} for name in labels for t in (1, 2)])
    picture = pictures.picture(lambda theme: figures.curve_figure(frame, theme, title="t", ylabel="AP", order=labels), "alt")
    assert [t for t in texts(picture.light) if t in labels] == labels
    assert picture.light != picture.dark


@pytest.mark.nightly
def test_galleries_of_results(results: CampaignResults) -> None:
    """One curve figure per preset under one legend, one matrix per group, each with a description that has its numbers."""
    curves, matrices = show.curves(results), show.matrices(results)
    assert isinstance(curves, pictures.Gallery)
    assert isinstance(matrices, pictures.Gallery)
    assert len(curves.pictures) == 3
    assert (curves.pictures[0].alt, curves.pictures[0].wide) == ("Legend: bare, ewc, joint, packnet", True)
    assert texts(curves.pictures[0].light) == ["bare", "ewc", "joint", "packnet"]
    assert not {"bare", "ewc"} & set(texts(curves.pictures[1].light))
    assert len(matrices.pictures) == len(results.groups)
    assert matrices.pictures[0].alt.endswith("After the last task: 71.0, 81.0, 91.0")
    assert "bare 81.0" in curves.pictures[1].alt


def test_course_of_a_stream() -> None:
    """Between which steps the middle nine tenths arrive: by linear interpolation between evaluations."""
    stream = {"evaluations": [0, 10, 20, 30], "delivered": [[0, 0, 0], [100, 0, 0], [100, 50, 0], [100, 100, 0]]}
    stream_axis = StreamAxis.of(stream, 4)
    np.testing.assert_allclose(stream_axis.arrival[0], [0.5, 9.5])
    np.testing.assert_allclose(stream_axis.arrival[1], [11.0, 29.0])
    assert np.isnan(stream_axis.arrival[2]).all()


def test_ticks_of_distributions_stand_where_their_numbers_say() -> None:
    """Percent of items from 0 to 100, each at its share."""
    panel = figures.Panel(quantity="degree", curves={"better": (np.array([1.0, 2.0]), np.array([0.5, 1.0]))}, bounds=(0.0, 3.0))
    figure = figures.cumulative_figure([panel], pictures.LIGHT, title="t", order=["better"])
    (axes,) = figure.axes
    assert [(round(100 * place), label.get_text()) for place, label in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)] == [
        (share, str(share)) for share in (0, 25, 50, 75, 100)
    ]


def test_curves_have_room_for_half_a_task_on_either_side() -> None:
    frame = pd.DataFrame([{"label": "bare", "task": t, "mean": 0.5, "std": 0.1} for t in (1, 2, 3)])
    (axes, *_) = figures.curve_figure(frame, pictures.LIGHT, title="t", ylabel="AP", order=["bare"]).axes
    assert axes.get_xlim() == (0.5, 3.5)
