"""Figures: what they show is in them as text, they do not change from one time to the next, and names are not mathematics."""

from __future__ import annotations

import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from made_records import made_results
from matplotlib.colors import to_rgb
from page_looks import contrast

from cglsuite.host import load_catalogue
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


@pytest.mark.parametrize("n_tasks", [3, 35])
def test_the_lowest_value_differs_from_a_dark_page(n_tasks: int) -> None:
    """By a contrast of 1.5 at least: a cell of 0% is not taken for one without a value."""
    figure = figures.matrix_figure(np.zeros((n_tasks + 1, n_tasks)), "ewc", pictures.DARK)
    (cells,) = figure.axes[0].collections
    lowest, ground = cells.to_rgba(0.0)[:3], to_rgb(pictures.DARK.ground)
    assert contrast([255 * c for c in lowest], [255 * c for c in ground]) > 1.5


def test_a_large_matrix_has_a_scale_instead() -> None:
    """35 tasks: no text in cells, few ticks, a colour bar, and a small file."""
    picture = draw(np.random.default_rng(0).random((36, 35)))
    assert "100" in texts(picture.light)
    assert len(picture.light) < 60_000


def test_a_grid_names_methods_and_scenarios_the_highest_first() -> None:
    """Few scenarios are rows with written values; many are columns with a scale; empty cells stay empty."""
    few = {("bare", "a"): 0.2, ("ewc", "a"): 0.4, ("ewc", "b"): 0.8, ("bare", "c"): 0.1}
    shown = figures.grid_picture(few, title="AP, %", what="AP")
    found = texts(shown.light)
    assert [text for text in found if text in {"ewc", "bare", "a", "b", "c"}] == ["ewc", "bare", "a", "b", "c"]
    assert [text for text in found if text in {"20", "40", "80", "10", "–"}] == ["40", "20", "80", "–", "–", "10"]
    assert shown.alt == "AP of 2 methods in 3 scenarios: 10.0% to 80.0%. From the highest to the lowest: ewc, bare."
    many = figures.grid_picture({(m, f"s{n}"): 0.5 for m in ("bare", "ewc") for n in range(60)}, title="AP, %", what="AP")
    assert {"bare", "s59", "AP, %", "100"} <= {*texts(many.light)}
    assert "data-grid" in many.light


def test_a_grid_of_differences_is_signed() -> None:
    shown = figures.grid_picture({("Bare", "x"): -10.8, ("EWC", "x"): 6.4}, title="d", what="d", percent=False, bounds=(-20.0, 20.0))
    assert {"−11", "6"} <= {*texts(shown.light)}
    assert "−10.8 to 6.4" in shown.alt


def test_the_overview_of_a_campaign_has_its_means(results: CampaignResults, tmp_path: Path) -> None:
    """Every method and scenario with a value in percent; nothing for two scenarios, which tables show."""
    assert show.grid(results) is None
    results, _ = made_results(tmp_path)
    gallery = show.grid(results)
    assert gallery is not None
    (picture,) = gallery.pictures
    methods, scenarios = ({getattr(group, name) for group in results.groups} for name in ("method", "preset"))
    assert picture.alt.startswith(f"Average performance of {len(methods)} methods in {len(scenarios)} scenarios: ")
    assert methods <= {*texts(picture.light)}


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
    """Every method has a place in the legend."""
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


# --- the look of a method --------------------------------------------------------------------------------------------------------


def look(label: str, *others: str) -> tuple[str, str, str, bool]:
    """Colour, marker, dash, and whether the marker is hollow."""
    found = pictures.style_of(label, [*others, label], pictures.LIGHT)
    return found["color"], found["marker"], str(found["linestyle"]), "markerfacecolor" in found


@pytest.mark.plugins
def test_methods_of_the_suite_look_the_same_everywhere_and_never_alike() -> None:
    """Whichever other methods a figure has. Learners never have the grey of the bounds."""
    names = [entry.name for entry in load_catalogue().entries("method") if entry.provider.startswith("cglsuite-methods")]
    looks = {name: look(name) for name in names}
    assert len(names) > 30
    assert len({(colour, marker) for colour, marker, *_ in looks.values()}) == len(names), "a method without a place of its own"
    assert not any(hollow for *_, hollow in looks.values())
    assert all(look(name, "other", "mine x") == looks[name] for name in names)
    grey = {name for name, (colour, *_) in looks.items() if colour == look("joint")[0]}
    assert grey == {"joint", "joint-budgeted", "frozen-ncm", "task-guesser"}
    assert len({look(name)[0] for name in ("bare", "ewc", "er-gnn", "lwf", "mas", "gem", "twp", "joint")}) == 8


def test_methods_from_elsewhere_look_the_same_everywhere_and_unlike_those_of_the_suite() -> None:
    assert look("mine") == look("mine", "bare", "theirs")
    assert look("mine")[2:] == (str(pictures.DASHES[1]), True)
    assert look("mine") != look("theirs")


def test_labels_of_a_method_share_its_colour() -> None:
    """Backbones of a method differ in marker and dash, for as many as there are markers."""
    labels = [f"ewc, backbone-{n}" for n in range(8)]
    looks = [look(label, *labels[:n]) for n, label in enumerate(labels)]
    assert {colour for colour, *_ in looks} == {look("ewc")[0]}
    assert len(set(looks)) == 8
    assert look("bare", *labels) == look("bare")


# Machado, Oliveira and Fernandes (2009): what full protanopia and deuteranopia leave of linear RGB.
SEEN = {
    "all": np.eye(3),
    "protan": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deutan": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}


@pytest.mark.parametrize("theme", [pictures.LIGHT, pictures.DARK], ids=["light", "dark"])
@pytest.mark.parametrize("seen", SEEN)
def test_colours_differ_for_colour_blind_readers(theme: pictures.Theme, seen: str) -> None:
    """Every pair differs by a tenth of the range in one of the three channels."""
    channels = np.array([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for colour in theme.lines])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    left = np.clip(linear @ SEEN[seen].T, 0, 1) ** (1 / 2.4)
    apart = np.abs(left[:, None] - left[None]).max(axis=2)[np.triu_indices(len(left), 1)]
    assert apart.min() > 0.1


def test_scales_have_names_and_several_ticks() -> None:
    """A colour bar says what it shows, a logarithmic axis that it is one; values within a factor of two have ticks as well."""
    large = figures.matrix_figure(np.random.default_rng(0).random((36, 35)), "t", pictures.LIGHT)
    assert [axes.get_ylabel() for axes in large.axes] == ["after task", "performance, %"]
    frame = pd.DataFrame([{"label": "ewc", "s_mean": 3.1, "s_std": 0.1, "p_mean": 0.5, "p_std": 0.1}])
    frame.loc[1] = ["bare", 3.3, 0.1, 0.6, 0.1]
    x, y = figures.PointAxis("s", "seconds", logarithmic=True), figures.PointAxis("p", "AP", 100.0)
    (axes,) = figures.point_figure(frame, pictures.LIGHT, title="t", x=x, y=y, order=["bare", "ewc"]).axes
    low, high = axes.get_xlim()
    assert axes.get_xlabel() == "seconds, log scale"
    assert len([tick for tick in axes.get_xticks() if low <= tick <= high]) >= 3
