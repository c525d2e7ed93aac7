"""Figures for papers: every kind at a column's width, without a title, with names at their lines and TrueType fonts."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from made_records import made_results
from matplotlib.figure import Figure

from cglsuite.base.errors import UsageError
from cglsuite.reports.kit.pictures import ShownFigure
from cglsuite.reports.results.results import CampaignResults
from cglsuite.reports.studies.figure import KINDS, study_figure

SCENARIO = "toy/class-il@cglb-1"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> CampaignResults:
    """Four scenarios, each with several methods over several orders."""
    return made_results(tmp_path_factory.mktemp("store"))[0]


def figure_of(results: CampaignResults, kind: str, **more: object) -> ShownFigure:
    given = {"style": "paper", "width": 3.3, "scenario": SCENARIO, "metric": "average_performance", **more}
    return study_figure(results, kind, **given)  # type: ignore[arg-type]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(match=lambda artist: hasattr(artist, "get_text"))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [3.3, 6.8])
def test_every_kind_has_the_width_of_a_column(made: CampaignResults, kind: str, width: float) -> None:
    """All in text of 8 points, without a title; the same methods as on the page."""
    figure = figure_of(made, kind, width=width)
    assert figure.get_size_inches()[0] == pytest.approx(width)
    shown = texts(figure)
    assert not any("CGLB" in text for text in shown)
    assert {"bare", "er-gnn"} <= {word for text in shown for word in text.split()}
    sizes = {text.get_fontsize() for axes in figure.axes for text in axes.get_xticklabels() if text.get_text()}
    assert sizes <= {8.0}
    assert figure._repr_png_()[1]["width"] == round(96 * width)


def test_a_page_s_style_has_the_title(made: CampaignResults) -> None:
    figure = figure_of(made, "curves", style="page")
    assert any("CGLB" in text for text in texts(figure))
    assert len(figure.legends) == 1


def test_names_are_at_the_ends_of_their_lines_and_never_overlap(made: CampaignResults) -> None:
    figure = figure_of(made, "curves")
    (axes,) = figure.axes
    lines = {str(line.get_label()): line for line in axes.lines}
    named = {text.get_text(): text for text in axes.texts}
    assert not figure.legends
    assert set(named) == {name for name in lines if not name.startswith("_")}
    assert all(text.get_color() == lines[name].get_color() for name, text in named.items())
    figure.draw_without_rendering()
    boxes = sorted(((box := text.get_window_extent()).y0, box.y1) for text in named.values())
    assert all(below[1] <= above[0] + 2 for below, above in itertools.pairwise(boxes))
    assert all(text.get_window_extent().x1 <= figure.bbox.x1 for text in named.values())


def test_files_hold_text_as_text(made: CampaignResults, tmp_path: Path) -> None:
    """Type 42 in PDF, and no fonts of Type 3, which conferences refuse; text elements in SVG."""
    figure = figure_of(made, "curves")
    figure.savefig(tmp_path / "x.pdf")
    figure.savefig(tmp_path / "x.svg")
    pdf = (tmp_path / "x.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert "<text" in (tmp_path / "x.svg").read_text()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "curve"}, "unknown kind of figure 'curve'; expected one of curves, matrix, orders, forgetting, ranks"),
        ({"style": "poster"}, "style = 'poster': expected one of paper, page"),
        ({"width": 0.0}, "width = 0.0: expected a width from 1 to 40 inches"),
        ({"scenario": ""}, "scenario = '': expected one of cora/task-il@begin-1, cora/task-il@begin-1+"),
        ({"metric": "bwt"}, "there are no curves of 'bwt'; expected one of average_performance, "),
        ({"kind": "orders", "metric": "bwt"}, "this figure always shows the same metrics"),
    ],
)
def test_what_is_unknown_is_refused_with_what_is_known(made: CampaignResults, given: dict[str, object], message: str) -> None:
    kind = str(given.pop("kind", "curves"))
    with pytest.raises(UsageError) as refused:
        figure_of(made, kind, **given)
    assert message in str(refused.value)
