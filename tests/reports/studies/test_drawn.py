"""What figures draw: every mark at its value, in its row and colour, on axes that hold it; by hand from tables of a few rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cglsuite.reports.kit.figures import Panel, box_figure, cumulative_figure, curve_figure, legend_figure, matrix_figure
from cglsuite.reports.kit.pictures import DARK, LIGHT, ink_on
from cglsuite.reports.studies.categories import RankedPanel, rank_boxes
from cglsuite.reports.studies.comparison.page import difference_figure, rank_figure
from cglsuite.reports.studies.orders.page import Spread, bound_figure, component_figure, range_figure, spread_figure, win_figure
from cglsuite.reports.studies.sweep import sweep_figure
from cglsuite.reports.studies.task_free.page import exposure_figure, overlap_figure, progress_figure, stream_figure
from cglsuite.stats.ranking import Friedman

BLUE, ORANGE, GREEN = LIGHT.lines[:3]  # of bare, ewc and er-gnn
GREY = LIGHT.lines[6]
NAN = float("nan")


def segments(axes: Axes) -> list[tuple[str, list[list[float]]]]:
    """Straight strokes: colour, and [[x, y], [x, y]] of each, in the order of drawing."""
    found = []
    for part in axes.collections:
        if isinstance(part, LineCollection):
            found += [(to_hex(part.get_color()[0]), np.round(s, 6).tolist()) for s in part.get_segments()]
    return found


def lines(axes: Axes) -> list[tuple[str, list[float], list[float]]]:
    """Lines and rows of points: colour, x, y."""
    return [
        (to_hex(cast("str", line.get_color())), np.round(line.get_xdata(), 6).tolist(), np.round(line.get_ydata(), 6).tolist())
        for line in axes.lines
    ]


def bars(axes: Axes) -> list[tuple[str, float, float, float, float]]:
    """Bars: colour, left, bottom, width, height."""
    return [
        (to_hex(b.get_facecolor()), *(round(v, 6) for v in (b.get_x(), b.get_y(), b.get_width(), b.get_height()))) for b in axes.patches
    ]


def areas(axes: Axes) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Filled areas: colour, and the box around each (left, right, bottom, top)."""
    found = []
    for part in axes.collections:
        if not isinstance(part, LineCollection | PathCollection | QuadMesh):
            points = np.concatenate([path.vertices for path in part.get_paths()]) if part.get_paths() else np.empty((0, 2))
            if len(points):
                (left, bottom), (right, top) = points.min(axis=0), points.max(axis=0)
                box = tuple(round(float(v), 6) for v in (left, right, bottom, top))
                found.append((to_hex(part.get_facecolor()[0]), cast("tuple[float, float, float, float]", box)))
    return found


def filled(axes: Axes, x: float, y: float) -> str:
    """The colour of the uppermost area that holds a point."""
    parts = [p for p in axes.collections if not isinstance(p, LineCollection | PathCollection | QuadMesh)]
    found = [to_hex(p.get_facecolor()[0]) for p in parts if any(path.contains_point((x, y)) for path in p.get_paths())]
    return found[-1] if found else ""


def points(axes: Axes) -> list[tuple[str, list[float], list[float]]]:
    """Rows of points: colour, x, y."""
    return [
        (to_hex(cast("str", line.get_color())), np.round(line.get_xdata(), 6).tolist(), np.round(line.get_ydata(), 6).tolist())
        for line in axes.lines
        if line.get_linestyle() == "None" and len(cast("Any", line.get_xdata()))
    ]


def boxes(axes: Axes) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Empty boxes over quartiles: colour, and left, right, bottom, top."""
    found = []
    for line in axes.lines:
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        if len(x) == 5 and line.get_linestyle() != "None":
            ends = tuple(round(float(v), 6) for v in (x.min(), x.max(), y.min(), y.max()))
            found.append((to_hex(cast("str", line.get_color())), cast("tuple[float, float, float, float]", ends)))
    return found


def words(axes: Axes) -> list[tuple[str, float, float]]:
    return [(t.get_text(), *(round(float(v), 6) for v in t.get_position())) for t in axes.texts]


def ticks(axes: Axes, which: str) -> dict[str, float]:
    """Labels to the places where they stand."""
    side = axes.xaxis if which == "x" else axes.yaxis
    return {label.get_text(): round(float(at), 6) for at, label in zip(side.get_ticklocs(), side.get_ticklabels(), strict=True)}


def legend_of(figure: Figure) -> list[tuple[str, str]]:
    """Names and colours of the legend."""
    (legend,) = figure.legends
    handles = [h.get_color() if isinstance(h, Line2D) else h.get_facecolor() for h in legend.legend_handles]
    return [(text.get_text(), to_hex(colour)) for text, colour in zip(legend.get_texts(), handles, strict=True)]


def spines(axes: Axes) -> list[str]:
    return [side for side, spine in axes.spines.items() if spine.get_visible()]


# --- matrices and curves ---------------------------------------------------------------------------------------------------------


def test_a_matrix_puts_every_value_into_its_cell() -> None:
    matrix = np.array([[0.25, 0.0, NAN], [0.9, 0.1, 0.2], [0.6, 0.8, 0.3], [0.5, 0.7, 1.0]])
    (axes,) = matrix_figure(matrix, "ewc", LIGHT).axes
    numbers = [("25", "0", "–"), ("90", "10", "20"), ("60", "80", "30"), ("50", "70", "100")]
    assert words(axes) == [(text, c + 0.5, r + 0.5) for r, row in enumerate(numbers) for c, text in enumerate(row)]
    (mesh,) = [c for c in axes.collections if isinstance(c, QuadMesh)]
    assert mesh.get_clim() == (0.0, 1.0)
    np.testing.assert_array_equal(np.ma.filled(mesh.get_array(), NAN), matrix)
    assert axes.get_ylim() == (4.0, 0.0)  # the first row on top
    assert axes.get_xlim() == (0.0, 3.0)
    assert ticks(axes, "x") == {"1": 0.5, "2": 1.5, "3": 2.5}
    assert ticks(axes, "y") == {"start": 0.5, "1": 1.5, "2": 2.5, "3": 3.5}
    frames = [(round(p.get_x(), 6), round(p.get_y(), 6), p.get_fill()) for p in axes.patches]
    assert frames == [(0.04, 1.05, False), (1.04, 2.05, False), (2.04, 3.05, False)]  # the task just learnt
    dark, bright = axes.texts[1], axes.texts[11]
    assert (to_hex(dark.get_color()), to_hex(bright.get_color())) == ("#ffffff", "#000000")
    assert spines(axes) == []


def test_a_matrix_in_other_units() -> None:
    (axes,) = matrix_figure(np.array([[0.123], [1.987]]), "t", LIGHT, percent=False, bounds=(0.0, 2.0)).axes
    assert [text for text, *_ in words(axes)] == ["0.12", "2"]
    assert cast("QuadMesh", axes.collections[0]).get_clim() == (0.0, 2.0)


@pytest.mark.parametrize(("n_tasks", "step"), [(12, 1), (13, 2), (24, 2), (25, 3)])
def test_ticks_of_a_large_matrix(n_tasks: int, step: int) -> None:
    """Up to twelve tasks have values and a tick each; more have a scale in percent and every second or third tick."""
    figure = matrix_figure(np.full((n_tasks + 1, n_tasks), 0.5), "t", LIGHT)
    axes = figure.axes[0]
    shown = range(0, n_tasks, step)
    assert ticks(axes, "x") == {str(i + 1): i + 0.5 for i in shown}
    assert ticks(axes, "y") == {"start": 0.5} | {str(i + 1): i + 1.5 for i in shown}
    assert (len(figure.axes), bool(axes.texts), bool(axes.patches)) == ((1, True, True) if n_tasks == 12 else (2, False, False))
    if n_tasks > 12:
        assert [figure.axes[1].yaxis.get_major_formatter()(v, 0) for v in (0.0, 0.25, 1.0)] == ["0", "25", "100"]


@pytest.mark.parametrize(("grey", "ink"), [(0.0, "#ffffff"), (0.03, "#ffffff"), (0.45, "#ffffff"), (0.47, "#000000"), (1.0, "#000000")])
def test_ink_stands_out_from_its_ground(grey: float, ink: str) -> None:
    """Equal contrast to black and white is at luminance 0.179, a grey of 0.4602."""
    assert ink_on((grey, grey, grey)) == ink


@pytest.mark.parametrize(
    ("colour", "ink"), [((0.7, 0.0, 0.0), "#ffffff"), ((0.0, 0.6, 0.0), "#000000"), ((0.0, 0.0, 1.0), "#ffffff"), ((1.0, 0, 0), "#000000")]
)
def test_channels_count_as_the_eye_does(colour: tuple[float, float, float], ink: str) -> None:
    assert ink_on(colour) == ink


def curves(n_tasks: int) -> pd.DataFrame:
    rows = [("ewc", t, 0.1 * t / n_tasks, 0.02) for t in range(n_tasks, 0, -1)]
    return pd.DataFrame(rows + [("bare", t, 0.5, NAN) for t in range(1, n_tasks + 1)], columns=["label", "task", "mean", "std"])


def test_curves_with_bars_side_by_side() -> None:
    """Percent, sorted by task, in the colours of the whole order; bars of one standard deviation, none where there is none."""
    figure = curve_figure(curves(2), LIGHT, title="t", ylabel="AP", order=["other", "bare", "ewc"])
    (axes,) = figure.axes
    shift = 0.017 * 2 / 2
    zero, bare, ewc = lines(axes)
    assert (zero[0], zero[2]) == (LIGHT.rule, [0.0, 0.0])
    assert bare == (BLUE, [1 - shift, 2 - shift], [50.0, 50.0])
    assert ewc == (ORANGE, [1 + shift, 2 + shift], [5.0, 10.0])
    upright = segments(axes)
    assert [s for s in upright if s[0] == ORANGE] == [(ORANGE, [[t + shift, y - 2], [t + shift, y + 2]]) for t, y in ((1, 5.0), (2, 10.0))]
    assert [s for s in upright if s[0] == BLUE] == [(BLUE, [[t - shift, 50.0], [t - shift, 50.0]]) for t in (1, 2)]
    assert axes.get_xlim() == (0.5, 2.5)
    assert axes.get_xticks().tolist() == [1, 2]
    assert (axes.get_xlabel(), axes.get_ylabel(), spines(axes)) == ("tasks learnt", "AP", ["bottom"])
    assert legend_of(figure) == [("bare", BLUE), ("ewc", ORANGE)]


def test_bars_of_many_methods_stay_within_their_task() -> None:
    names = [f"m{i}" for i in range(12)]
    frame = pd.DataFrame([(name, t, 0.5, 0.1) for name in names for t in range(1, 16)], columns=["label", "task", "mean", "std"])
    (axes,) = curve_figure(frame, LIGHT, title="t", ylabel="AP", order=names).axes
    first = [x[0] for _, x, _ in lines(axes)[1:]]
    assert np.allclose(np.diff(first), 0.6 / 12)
    assert np.isclose(np.mean(first), 1.0)


def test_bands_where_there_are_many_tasks() -> None:
    """Sixteen tasks: a band instead of bars, nothing shifted; ticks thin out from twenty on. Not in percent: as it is."""
    (axes,) = curve_figure(curves(16), LIGHT, title="t", ylabel="loss", order=["ewc", "bare"], percent=False).axes
    assert segments(axes) == []
    assert lines(axes)[1] == (ORANGE, [float(t) for t in range(1, 17)], [round(0.1 * t / 16, 6) for t in range(1, 17)])
    assert areas(axes)[0] == (ORANGE, (1.0, 16.0, round(0.1 / 16 - 0.02, 6), 0.12))
    assert axes.get_xticks().tolist() == list(range(1, 17))
    (many,) = curve_figure(curves(20), LIGHT, title="t", ylabel="loss", order=["ewc", "bare"]).axes
    assert many.get_xticks().tolist() == list(range(1, 21, 2))
    (fifteen,) = curve_figure(curves(15), LIGHT, title="t", ylabel="loss", order=["ewc", "bare"]).axes
    assert len(segments(fifteen)) == 30


# --- distributions ---------------------------------------------------------------------------------------------------------------


def test_distributions_step_at_their_values() -> None:
    """From the lower bound at 0 to the upper at the last share; only the first panel names the shares; unused labels have no entry."""
    share = Panel("homophily", {"better": (np.array([0.2, 0.6]), np.array([0.5, 1.0]))}, (0.0, 1.0))
    count = Panel("degree", {"worse": (np.array([3.0]), np.array([1.0]))}, (0.0, 60.0), logarithmic=True)
    figure = cumulative_figure([share, count], LIGHT, title="t", order=["better", "unused", "worse"], unit="nodes")
    left, right = figure.axes
    assert lines(left) == [(BLUE, [0.0, 0.2, 0.6, 1.0], [0.0, 0.5, 1.0, 1.0])]
    assert lines(right) == [(GREEN, [0.0, 3.0, 60.0], [0.0, 1.0, 1.0])]
    assert {line.get_drawstyle() for axes in figure.axes for line in axes.lines} == {"steps-post"}
    assert (left.get_xlim(), left.get_ylim()) == ((0.0, 1.0), (0.0, 1.02))
    assert (left.get_ylabel(), right.get_ylabel()) == ("share of nodes, %", "")
    assert (left.get_xlabel(), right.get_xlabel()) == ("homophily", "degree, log scale")
    assert [t.get_text() for t in right.get_yticklabels()] == [""] * 5
    assert ticks(right, "x") == {"0": 0.0, "1": 1.0, "2": 2.0, "5": 5.0, "10": 10.0, "20": 20.0, "50": 50.0}
    assert (left.get_xscale(), right.get_xscale()) == ("linear", "symlog")
    assert legend_of(figure) == [("better", BLUE), ("worse", GREEN)]


def test_ticks_of_counts() -> None:
    """Above 60 only powers of ten stand at a logarithmic axis, with thin spaces; counts have no ticks between whole numbers."""
    panel = Panel("degree", {"a": (np.array([3.0]), np.array([1.0]))}, (0.0, 20_000.0), logarithmic=True)
    (axes,) = cumulative_figure([panel], LIGHT, title="t", order=["a"]).axes
    assert ticks(axes, "x") == {"0": 0, "1": 1, "10": 10, "100": 100, "1,000": 1000, "10,000": 10_000}
    assert axes.get_xticks(minor=True).tolist() == []
    plain = Panel("hops", {"a": (np.array([1.0]), np.array([1.0]))}, (0.0, 3.0))
    (axes,) = cumulative_figure([plain], LIGHT, title="t", order=["a"]).axes
    assert all(float(t).is_integer() for t in axes.get_xticks())


# --- orders ----------------------------------------------------------------------------------------------------------------------


def ranges(**columns: Any) -> pd.DataFrame:
    base = {"item": ["a", "b", "c"], "opd": [0.4, 0.2, 0.1], "std": [NAN] * 3, "null": [NAN] * 3, "opd_k": [NAN] * 3}
    return pd.DataFrame(base | columns)


def test_ranges_are_bars_from_the_top_with_their_nulls() -> None:
    frame = ranges(std=[0.05, NAN, 0.95], null=[NAN, 0.15, 0.08], opd_k=[0.3, NAN, 0.2])
    (axes,) = range_figure(frame, LIGHT, title="ewc", unit="class", method="ewc", percent=True).axes
    widths = [(ORANGE, 0.0, round(y - 0.31, 6), width, 0.62) for y, width in ((2, 40.0), (1, 20.0), (0, 10.0))]
    equal = [(ORANGE, 0.0, round(y - 0.31, 6), width, 0.62) for y, width in ((2, 30.0), (1, 20.0), (0, 10.0))]
    assert bars(axes) == widths + equal  # what equally many runs give is never longer than the whole
    assert [p.get_alpha() for p in axes.patches] == [0.4] * 3 + [None] * 3
    ink = [s for c, s in segments(axes) if c == LIGHT.ink]
    assert ink[:3] == [[[35.0, 2.0], [45.0, 2.0]], [[20.0, 1.0], [20.0, 1.0]], [[-85.0, 0.0], [100.0, 0.0]]]
    nulls = [[[15.0, 0.58], [15.0, 1.42]], [[8.0, -0.42], [8.0, 0.42]]]
    assert ink[3:] == nulls
    assert [s for c, s in segments(axes) if c == LIGHT.ground] == nulls
    assert words(axes) == [("40", 103.0, 2.0), ("20", 103.0, 1.0), ("10", 103.0, 0.0)]
    assert ticks(axes, "y") == {"a": 2.0, "b": 1.0, "c": 0.0}
    assert (axes.get_xlim(), axes.get_ylim()) == ((0.0, 100.0), (-0.6, 2.6))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("OPD, points", "class")


def test_ranges_in_other_units_end_beyond_the_longest() -> None:
    """No percent: the axis ends a twentieth beyond the longest bar with its spread; without spreads none are drawn."""
    (axes,) = range_figure(ranges(std=[0.1, 0.0, 0.0]), LIGHT, title="t", unit="task", method="bare", percent=False).axes
    assert axes.get_xlim() == (0.0, pytest.approx(0.525))
    assert [text for text, *_ in words(axes)] == ["0.4", "0.2", "0.1"]
    assert axes.get_xlabel() == "OPD"
    (bare,) = range_figure(ranges(), LIGHT, title="t", unit="task", method="bare", percent=False).axes
    assert segments(bare) == []


def test_the_bound_of_forgetting() -> None:
    """AF_max can be at most k / (k - 1) (1 - AA): the line from there to (100, 0), shaded above; a point per cell."""
    frame = pd.DataFrame({"label": ["ewc", "bare", "ewc"], "aa": [0.2, 0.5, 0.3], "af": [0.6, 0.4, -0.1]})
    figure = bound_figure(frame, LIGHT, title="t", k=5, order=["bare", "x", "ewc"])
    (axes,) = figure.axes
    from cglsuite.stats import af_bound

    top = float(100 * af_bound(np.array([0.0]), 5)[0])
    assert lines(axes) == [
        (LIGHT.ink, [0.0, 100.0], [round(top, 6), 0.0]),
        (BLUE, [50.0], [40.0]),
        (ORANGE, [20.0, 30.0], [60.0, -10.0]),
    ]
    assert areas(axes) == [(LIGHT.rule, (0.0, 100.0, 0.0, 200.0))]
    assert (axes.get_xlim(), axes.get_ylim()) == ((0.0, 100.0), (pytest.approx(-13.0), 104.0))
    assert legend_of(figure) == [("bound", LIGHT.ink), ("bare", BLUE), ("ewc", ORANGE)]
    assert [line.get_linestyle() for line in axes.lines[1:]] == ["None", "None"]
    (positive,) = bound_figure(frame[frame["af"] > 0], LIGHT, title="t", k=5, order=["bare", "ewc"]).axes
    assert positive.get_ylim()[0] == -5.0


@pytest.mark.parametrize(("n", "image"), [(1500, False), (1501, True)])
def test_very_many_points_are_an_image(n: int, image: bool) -> None:
    frame = pd.DataFrame({"label": "bare", "aa": np.full(n, 0.5), "af": np.full(n, 0.1)})
    (axes,) = bound_figure(frame, LIGHT, title="t", k=5, order=["bare"]).axes
    assert axes.lines[1].get_rasterized() is image
    (strip,) = spread_figure([Spread("bare", np.full(n, 0.5), np.empty(0))], LIGHT, title="t", order=["bare"]).axes
    assert strip.lines[-1].get_rasterized() is image


def test_spreads_over_orders_and_seeds() -> None:
    """From the top: points by order with quartiles and mean, seeds of one order below them, quieter and without a box."""
    first = Spread("ewc", np.array([0.1, 0.2, 0.3, 0.6]), np.array([0.25, 0.35]))
    second = Spread("bare", np.array([0.5, 0.7, 0.9]), np.empty(0))
    figure = spread_figure([first, second], LIGHT, title="t", order=["bare", "ewc"])
    (axes,) = figure.axes
    golden = 0.618033988749895
    jitter = (np.arange(4) * golden % 1 - 0.5) * 0.34
    orders, seeds, alone = points(axes)
    assert orders == (ORANGE, [10.0, 20.0, 30.0, 60.0], np.round(1.14 + jitter, 6).tolist())
    assert seeds == (LIGHT.quiet, [25.0, 35.0], np.round(1 - 0.27 + (np.arange(2) * golden % 1 - 0.5) * 0.16, 6).tolist())
    assert alone == (BLUE, [50.0, 70.0, 90.0], np.round(0.14 + jitter[:3], 6).tolist())
    assert boxes(axes) == [(ORANGE, (17.5, 37.5, 0.92, 1.36))]  # quartiles want four values
    (median,) = [line for line in axes.lines if line.get_linewidth() == 2.2]
    assert np.asarray(median.get_xdata()).tolist() == [25.0, 25.0]
    assert segments(axes) == [(LIGHT.ink, [[30.0, 0.88], [30.0, 1.4]]), (LIGHT.ink, [[70.0, -0.12], [70.0, 0.4]])]
    assert ticks(axes, "y") == {"ewc": 1.0, "bare": 0.0}
    assert (axes.get_ylim(), axes.get_xlabel()) == ((-0.55, 1.55), "AA after the last task, %")
    assert [name for name, _ in legend_of(figure)] == ["an order", "a seed of a single order"]


def test_spreads_without_seeds() -> None:
    figure = spread_figure([Spread("ewc", np.array([1.5, 2.5]), np.empty(0))], LIGHT, title="t", order=["ewc"], percent=False)
    (axes,) = figure.axes
    assert lines(axes)[0][1] == [1.5, 2.5]
    assert segments(axes) == [(LIGHT.ink, [[2.0, -0.26], [2.0, 0.26]])]
    assert (axes.get_xlabel(), figure.legends) == ("AA after the last task", [])


def test_boxes_of_values_with_their_points() -> None:
    """A row per name from the top, a box from four values on, every point in its row, the mean across."""
    rows = [("ewc", np.array([1.0, 2.0, 3.0, 6.0])), ("bare", np.array([4.0, 5.0]))]
    (axes,) = box_figure(rows, LIGHT, title="t", xlabel="AP, %", order=["bare", "ewc"]).axes
    assert ticks(axes, "y") == {"ewc": 1.0, "bare": 0.0}
    assert boxes(axes) == [(ORANGE, (1.75, 3.75, 0.72, 1.28))]
    assert [(colour, x) for colour, x, _ in points(axes)] == [(ORANGE, [1.0, 2.0, 3.0, 6.0]), (BLUE, [4.0, 5.0])]
    assert all(abs(y - place) < 0.2 for place, (_, _, ys) in zip((1, 0), points(axes), strict=True) for y in ys)
    assert [s[0][0] for _, (s) in segments(axes)] == [3.0, 4.5]
    assert (axes.get_xlabel(), axes.get_ylim()) == ("AP, %", (-0.5, 1.5))


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_wins_are_coloured_by_who_wins(theme: Any) -> None:
    """Row over column: blue above one half, orange below, the ground at one half and where there is nothing."""
    shares = pd.DataFrame([[NAN, 1.0, 0.5], [0.0, NAN, 0.25], [0.5, 0.75, NAN]], index=["a", "b", "c"], columns=["a", "b", "c"])
    (axes,) = win_figure(shares, theme, title="t").axes
    assert words(axes) == [
        ("100", 1.5, 0.5), ("50", 2.5, 0.5), ("0", 0.5, 1.5), ("25", 2.5, 1.5), ("50", 0.5, 2.5), ("75", 1.5, 2.5)
    ]  # fmt: skip
    (mesh,) = [c for c in axes.collections if isinstance(c, QuadMesh)]
    colour = [[to_hex(mesh.cmap(mesh.norm(v))) for v in row] for row in np.reshape(mesh.get_array(), (3, 3))]
    assert (colour[0][1], colour[1][0]) == (theme.lines[0], theme.lines[1])
    assert [colour[i][i] for i in range(3)] == [colour[0][2]] * 3
    halfway = np.array([int(colour[0][2][i : i + 2], 16) for i in (1, 3, 5)])
    assert np.abs(halfway - [int(theme.ground[i : i + 2], 16) for i in (1, 3, 5)]).max() <= 2
    assert axes.get_ylim() == (3.0, 0.0)
    assert axes.xaxis.get_ticks_position() == "top"
    assert ticks(axes, "x") == ticks(axes, "y") == {"a": 0.5, "b": 1.5, "c": 2.5}
    assert {to_hex(t.get_color()) for t in axes.get_xticklabels()} == {theme.ink}


def test_components_add_up_along_their_bar() -> None:
    shares = {"first": {"order": 0.7, "method_order": 0.05, "rest": 0.25}, "second": {"rest": 0.94, "order": 0.06}}
    figure = component_figure(shares, LIGHT)
    (axes,) = figure.axes
    assert bars(axes) == [
        (BLUE, 0.0, 0.7, 70.0, 0.6), (ORANGE, 70.0, 0.7, 5.0, 0.6), (GREY, 75.0, 0.7, 25.0, 0.6),
        (GREY, 0.0, -0.3, 94.0, 0.6), (BLUE, 94.0, -0.3, 6.0, 0.6),
    ]  # fmt: skip
    assert words(axes) == [("70", 35.0, 1.0), ("25", 87.5, 1.0), ("first", 0.0, 1.36), ("94", 47.0, 0.0), ("second", 0.0, 0.36)]
    assert (axes.get_xlim(), axes.get_ylim(), axes.get_yticks().tolist()) == ((0.0, 100.0), (-0.4, 1.4), [])
    names = ["order", "method × order", "seed", "method × seed", "order × seed", "rest"]
    assert legend_of(figure) == list(zip(names, [*LIGHT.lines[:5], GREY], strict=True))
    assert [t.get_color() for t in axes.texts if t.get_text() in ("70", "25")] == [
        ink_on(tuple(int(c[i : i + 2], 16) / 255 for i in (1, 3, 5))) for c in (BLUE, GREY)
    ]


# --- comparisons -----------------------------------------------------------------------------------------------------------------


def test_differences_are_filled_where_they_are_significant() -> None:
    frame = pd.DataFrame(
        [("a", "b", 0.10, 0.04, 0.16, True), ("a", "c", -0.01, -0.05, 0.03, False), ("b", "c", NAN, NAN, NAN, False)],
        columns=["first", "second", "estimate", "low", "high", "significant"],
    )
    figure = difference_figure(frame, LIGHT, title="t", xlabel="points", scale=100.0, smallest=2.0)
    (axes,) = figure.axes
    assert segments(axes) == [(BLUE, [[4.0, 2.0], [16.0, 2.0]]), (LIGHT.quiet, [[-5.0, 1.0], [3.0, 1.0]])]
    zero, apart, together = axes.lines
    assert (zero.get_xdata(), to_hex(cast("str", zero.get_color()))) == ([0, 0], LIGHT.quiet)
    assert lines(axes)[1:] == [(BLUE, [10.0], [2.0]), (LIGHT.quiet, [-1.0], [1.0])]
    assert (apart.get_markerfacecolor(), apart.get_marker()) == (BLUE, "o")
    assert (together.get_markerfacecolor(), together.get_marker()) == (LIGHT.ground, "s")
    assert words(axes) == [("refused", 0.0, 0.0)]
    span = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert (span.x0, span.x1) == (pytest.approx(-2.0), pytest.approx(2.0))
    assert axes.get_xlim() == (pytest.approx(-5 - 0.05 * 21), pytest.approx(16 + 0.05 * 21))
    assert axes.get_ylim() == (-0.6, 2.6)
    assert ticks(axes, "y") == {"a − b": 2.0, "a − c": 1.0, "b − c": 0.0}
    assert axes.get_xlabel() == "points"
    assert legend_of(figure) == [("significant", BLUE), ("not significant", LIGHT.quiet)]


def test_differences_near_zero_leave_room_for_the_smallest_that_matters() -> None:
    frame = pd.DataFrame([("a", "b", 0.001, -0.001, 0.002, False)], columns=["first", "second", "estimate", "low", "high", "significant"])
    (axes,) = difference_figure(frame, LIGHT, title="t", xlabel="points", scale=100.0, smallest=5.0).axes
    assert axes.get_xlim() == (pytest.approx(-8.8), pytest.approx(8.8))


def friedman(*, separates: bool) -> Friedman:
    ranks = pd.Series({"er-gnn": 1.2, "ewc": 1.9, "bare": 2.9})
    p = pd.DataFrame([[1.0, 0.4, 0.01], [0.4, 1.0, 0.03], [0.01, 0.03, 1.0]], index=ranks.index, columns=ranks.index)
    parts = {"average_ranks": ranks, "nemenyi": p, "separates": separates, "alpha": 0.05, "critical_difference": 0.8}
    return cast("Friedman", SimpleNamespace(**parts))


def test_ranks_and_the_bars_that_join_them() -> None:
    """A bar joins er-gnn and ewc, which Nemenyi's test does not separate; the critical difference is drawn to the scale of the ranks."""
    figure = rank_figure(friedman(separates=True), LIGHT, title="t", order=["bare", "ewc", "er-gnn"])
    (axes,) = figure.axes
    joined = [x for c, x, y in lines(axes) if c == LIGHT.ink and y[0] == y[1]]
    assert joined == [[1.2, 1.9]]
    marks = {to_hex(p.get_facecolor()[0]): p.get_offsets()[0, 0] for p in axes.collections if isinstance(p, PathCollection)}
    assert marks == {GREEN: 1.2, ORANGE: 1.9, BLUE: 2.9}
    assert sorted(t.get_text().strip() for t in axes.texts) == ["(2.90) bare", "er-gnn (1.20)", "ewc (1.90)"] or sorted(
        t.get_text().strip() for t in axes.texts
    ) == ["(1.90) ewc", "(2.90) bare", "er-gnn (1.20)"]
    assert axes.get_xlim() == (1.0, 3.0)
    assert axes.get_ylim() == (-(1 + 2 + 1.2), 0.0)
    assert all(float(t).is_integer() for t in axes.get_xticks())
    length, *ends = [artist for artist in figure.artists if isinstance(artist, Line2D)]
    place = axes.get_position()
    x = np.asarray(length.get_xdata(), dtype=float)
    assert x[0] == pytest.approx(place.x0)
    assert np.ptp(x) / place.width == pytest.approx(0.8 / 2)  # ranks 1 to 3 span the axes
    assert [np.asarray(end.get_xdata(), dtype=float).tolist() for end in ends] == [[v, v] for v in x]
    assert np.asarray(length.get_ydata(), dtype=float).tolist() == [np.mean(np.asarray(ends[0].get_ydata(), dtype=float))] * 2
    assert x[0] > 0
    assert place.y1 < length.get_ydata()[0] < 1
    (label,) = [t for t in figure.texts if "CD" in t.get_text()]
    assert label.get_text() == "CD = 0.80"
    assert label.get_position()[0] > x[1]


def test_ranks_that_do_not_differ_are_joined_by_one_bar() -> None:
    figure = rank_figure(friedman(separates=False), LIGHT, title="t", order=["bare", "ewc", "er-gnn"])
    (axes,) = figure.axes
    assert [x for c, x, y in lines(axes) if c == LIGHT.ink and y[0] == y[1]] == [[1.2, 1.9, 2.9]]
    assert not [t for t in figure.texts if "CD" in t.get_text()]
    assert not [artist for artist in figure.artists if isinstance(artist, Line2D)]


def test_boxes_of_ranks() -> None:
    """Quartiles, median, extremes and mean of each category; equal ranks stand side by side; the last panel names the axis."""
    ranks = pd.DataFrame({"category": ["x"] * 5 + ["y"], "rank": [1.0, 2.0, 2.0, 3.0, 7.0, 4.0]})
    panels = [SimpleNamespace(categories=["x", "y"], ranks=ranks, setting=name) for name in ("Task-IL", "Class-IL")]
    figure = rank_boxes(cast("list[RankedPanel]", panels), LIGHT, title="t", order=["y", "x"])
    upper, lower = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Task-IL", "Class-IL"]
    assert upper.get_position().y0 > lower.get_position().y1
    assert points(upper) == [
        (ORANGE, [1.0, 2.0, 2.0, 3.0, 7.0], [1.0, 0.955, 1.045, 1.0, 1.0]),
        (BLUE, [4.0], [0.0]),
    ]
    assert boxes(upper) == [(ORANGE, (2.0, 3.0, 0.69, 1.31))]  # quartiles want four values
    medians = [line for line in upper.lines if line.get_linewidth() == 2.2]
    assert [(to_hex(cast("str", m.get_color())), np.mean(m.get_xdata())) for m in medians] == [(ORANGE, 2.0)]
    whiskers = [line for line in upper.lines if line.get_linewidth() == 1.2 and len(cast("Any", line.get_xdata())) == 2]
    ends = {(to_hex(cast("str", line.get_color())), *np.asarray(line.get_xdata()).tolist()) for line in whiskers}
    assert ends == {(ORANGE, 2.0, 1.0), (ORANGE, 3.0, 7.0), (ORANGE, 1.0, 1.0), (ORANGE, 7.0, 7.0)}
    assert segments(upper) == [(LIGHT.ink, [[3.0, 0.65], [3.0, 1.35]]), (LIGHT.ink, [[4.0, -0.35], [4.0, 0.35]])]
    assert ticks(upper, "y") == {"x": 1.0, "y": 0.0}
    assert [axes.get_xlim() for axes in figure.axes] == [(0.4, 7.6)] * 2
    assert upper.get_ylim() == (-0.5, 1.5)
    assert (upper.get_xlabel(), lower.get_xlabel()) == ("", "rank within a scenario, 1 = best")
    assert {t.get_text() for t in upper.get_xticklabels()} <= {""}
    assert any(t.get_text() for t in lower.get_xticklabels())


# --- sweeps and streams ----------------------------------------------------------------------------------------------------------


def test_sweeps_stand_at_the_places_of_their_values() -> None:
    rows = [("ewc", 1, "1e-3", 0.4, 0.3, 0.5), ("ewc", 0, "off", 0.2, NAN, NAN), ("bare", 0, "off", 0.6, 0.5, 0.7)]
    frame = pd.DataFrame(rows, columns=["label", "place", "value", "mean", "low", "high"])
    words_of = {"title": "t", "xlabel": "strength", "ylabel": "AP, %"}
    figure = sweep_figure(frame, LIGHT, order=["bare", "x", "ewc"], percent=True, bounds=(0.1, 0.8), **words_of)
    (axes,) = figure.axes
    assert lines(axes) == [(BLUE, [-0.025], [60.0]), (ORANGE, [0.025, 1.025], [20.0, 40.0])]
    assert [s for s in segments(axes) if s[1]] == [
        (BLUE, [[-0.025, 50.0], [-0.025, 70.0]]),
        (ORANGE, [[1.025, 30.0], [1.025, 50.0]]),
    ]
    assert ticks(axes, "x") == {"off": 0.0, "1e-3": 1.0}
    assert (axes.get_ylim(), axes.get_xlim()) == ((10.0, 80.0), (-0.4, 1.4))
    assert (axes.get_xlabel(), axes.get_ylabel(), legend_of(figure)) == ("strength", "AP, %", [("bare", BLUE), ("ewc", ORANGE)])
    (many,) = sweep_figure(
        pd.concat([frame.assign(label=f"m{i}") for i in range(20)]),
        LIGHT, order=[f"m{i}" for i in range(20)], percent=False, bounds=(0.0, 1.0), **words_of,
    ).axes  # fmt: skip
    firsts = [x[0] for _, x, _ in lines(many)]
    assert np.allclose(np.diff(firsts), 0.025)
    assert np.isclose(np.mean(firsts), 0.0)


def test_performance_against_overlap() -> None:
    """Sorted by overlap, then entropy; methods side by side; intervals where there are any."""
    rows = [
        ("ewc", 0.5, 0.2, 0.3, 0.2, 0.4),
        ("ewc", 0.5, 0.1, 0.5, NAN, NAN),
        ("ewc", 0.0, 0.9, 0.1, 0.05, 0.2),
        ("bare", 1.0, 0.0, 0.7, 0.6, 0.9),
    ]
    frame = pd.DataFrame(rows, columns=["label", "overlap", "entropy", "mean", "low", "high"])
    figure = overlap_figure(frame, LIGHT, title="t", ylabel="AP", order=["ewc", "bare"], percent=True)
    (axes,) = figure.axes
    assert lines(axes) == [(ORANGE, [-0.003, 0.497, 0.497], [10.0, 50.0, 30.0]), (BLUE, [1.003], [70.0])]
    assert [s for s in segments(axes) if s[1]] == [
        (ORANGE, [[-0.003, 5.0], [-0.003, 20.0]]),
        (ORANGE, [[0.497, 20.0], [0.497, 40.0]]),
        (BLUE, [[1.003, 60.0], [1.003, 90.0]]),
    ]
    assert (axes.get_xlim(), axes.get_ylabel()) == ((-0.04, 1.04), "AP")
    (plain,) = overlap_figure(frame, LIGHT, title="t", ylabel="AP", order=["ewc", "bare"], percent=False).axes
    assert lines(plain)[1][2] == [0.7]


def test_exposure_adds_up_per_task() -> None:
    rows = [
        (k, name, share)
        for k, parts in ((1, (0.1, 0.6, 0.3, 0.0)), (2, (0.0, 0.5, 0.25, 0.25)))
        for name, share in zip(("0", "1", "2", "3 or more"), parts, strict=True)
    ]
    figure = exposure_figure(pd.DataFrame(rows, columns=["task", "times", "share"]), LIGHT, title="t")
    (axes,) = figure.axes
    found = [(round(left + 0.43, 6), bottom, height) for _, left, bottom, _, height in bars(axes)]
    assert found == [(1.0, 0.0, 10.0), (1.0, 10.0, 60.0), (2.0, 0.0, 50.0), (1.0, 70.0, 30.0), (2.0, 50.0, 25.0), (2.0, 75.0, 25.0)]
    colours = [colour for colour, *_ in bars(axes)]
    assert (colours[0], colours[1] == colours[2], len(set(colours))) == (ORANGE, True, 4)
    assert [name for name, _ in legend_of(figure)] == ["never", "once", "twice", "more often"]
    assert [colour for _, colour in legend_of(figure)] == list(dict.fromkeys(colours))
    assert (axes.get_xlim(), axes.get_ylim(), axes.get_yticks().tolist()) == ((0.4, 2.6), (0.0, 100.0), [0, 25, 50, 75, 100])


def test_progress_along_a_stream() -> None:
    rows = [("ewc", 20, 0.5, 0.4, 0.6), ("ewc", 0, 0.1, NAN, NAN), ("ewc", 10, 0.3, 0.2, 0.4), ("bare", 20, 0.2, NAN, NAN)]
    frame = pd.DataFrame(rows, columns=["label", "step", "mean", "low", "high"])
    shares = np.zeros((20, 2))
    shares[:10, 0], shares[10:, 1] = 1.0, 1.0
    figure = progress_figure(frame, LIGHT, title="t", ylabel="AP, %", order=["bare", "ewc"], percent=True, mixture=shares)
    axes, ribbon = figure.axes
    assert lines(axes) == [(BLUE, [20.0], [20.0]), (ORANGE, [0.0, 10.0, 20.0], [10.0, 30.0, 50.0])]
    assert areas(axes) == [(ORANGE, (10.0, 20.0, 20.0, 60.0))]
    assert (axes.get_xlim(), axes.get_ylim()) == ((0.0, 20.0), (0.0, pytest.approx(64.8)))
    assert (axes.get_xlabel(), axes.get_ylabel(), legend_of(figure)) == ("step", "AP, %", [("bare", BLUE), ("ewc", ORANGE)])
    assert (ribbon.get_xlim(), ribbon.get_ylim(), ribbon.axison) == ((0.0, 20.0), (0.0, 1.0), False)
    early, late = (colour for colour, _ in areas(ribbon))
    assert (filled(ribbon, 5.0, 0.5), filled(ribbon, 15.0, 0.5)) == (early, late)
    full = progress_figure(frame.assign(high=0.99), LIGHT, title="t", ylabel="", order=["ewc"], percent=True, mixture=None)
    assert [axes.get_ylim() for axes in full.axes] == [(0.0, 100.0)]
    (raw,) = progress_figure(frame, LIGHT, title="t", ylabel="", order=["bare"], percent=False, mixture=None).axes
    assert lines(raw)[0][2] == [0.2]


def test_an_offline_model_is_a_dashed_bound_along_the_stream() -> None:
    """At the value of the last step with its interval, whatever it had while fewer classes competed; the axis is not for those values."""
    rows = [("joint", 0, 0.9, 0.8, 0.95), ("joint", 20, 0.5, 0.4, 0.6), ("ewc", 0, 0.1, NAN, NAN), ("ewc", 20, 0.3, NAN, NAN)]
    frame = pd.DataFrame(rows, columns=["label", "step", "mean", "low", "high"])
    words_of: dict[str, Any] = {"title": "t", "ylabel": "AP, %", "order": ["ewc", "joint"], "percent": True, "mixture": None}
    figure = progress_figure(frame, LIGHT, bounds=["joint"], **words_of)
    (axes,) = figure.axes
    assert lines(axes) == [(ORANGE, [0.0, 20.0], [10.0, 30.0]), (GREY, [0.0, 20.0], [50.0, 50.0])]
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--"]
    assert areas(axes) == [(GREY, (0.0, 20.0, 40.0, 60.0))]
    assert axes.get_ylim() == (0.0, pytest.approx(1.08 * 60))
    (through,) = progress_figure(frame, LIGHT, **words_of).axes
    assert lines(through)[1] == (GREY, [0.0, 20.0], [90.0, 50.0])


def test_a_legend_of_its_own_shows_bounds_dashed_and_chance_dotted() -> None:
    """In the order of all labels; a bound has no points."""
    figure = legend_figure(["joint", "ewc"], LIGHT, order=["ewc", "si", "joint"], bounds=["joint"], chance=True)
    assert legend_of(figure) == [("ewc", ORANGE), ("joint", GREY), ("chance", LIGHT.quiet)]
    (legend,) = figure.legends
    handles = [cast("Line2D", handle) for handle in legend.legend_handles]
    assert [(h.get_linestyle(), h.get_marker()) for h in handles] == [("-", "s"), ("--", ""), (":", "None")]
    with_own = {"title": "t", "ylabel": "AP", "order": ["bare"]}
    frame = pd.DataFrame([{"label": "bare", "task": t, "mean": 0.5, "std": 0.1} for t in (1, 2, 3)])
    own, none = (curve_figure(frame, LIGHT, with_legend=with_legend, **with_own) for with_legend in (True, False))  # type: ignore[arg-type]
    assert (len(own.legends), len(none.legends)) == (1, 0)
    assert none.get_size_inches()[1] < own.get_size_inches()[1]


def test_chance_is_a_quiet_dotted_line_of_its_own() -> None:
    frame = pd.DataFrame([{"label": "bare", "task": t, "mean": 0.5, "std": 0.1} for t in (1, 2, 3)])
    figure = curve_figure(frame, LIGHT, title="t", ylabel="AP", order=["bare"], chance=np.array([0.5, NAN, 0.2]))
    _, own, chance = figure.axes[0].lines
    assert (np.asarray(own.get_ydata()).tolist(), np.asarray(chance.get_ydata()).tolist()) == ([50.0] * 3, [50.0, 20.0])
    assert (np.asarray(chance.get_xdata()).tolist(), chance.get_linestyle(), chance.get_color()) == ([1, 3], ":", LIGHT.quiet)
    assert legend_of(figure) == [("bare", BLUE), ("chance", LIGHT.quiet)]
    without = curve_figure(frame, LIGHT, title="t", ylabel="AP", order=["bare"])
    assert (len(without.axes[0].lines), legend_of(without)) == (2, [("bare", BLUE)])


def test_a_stream_as_scheduled_and_as_it_arrives() -> None:
    """Three panels over the same steps: shares one upon the other, arrivals, and what has arrived of each latent task."""
    mixture = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.0, 1.0]])
    counts = np.array([[4, 0], [1, 3], [0, 4], [0, 4]])
    figure = stream_figure(mixture, counts, np.array([10, 11]), LIGHT, title="t", threshold=0.8)
    arrived, arriving, scheduled, key = figure.axes
    assert [axes.get_title(loc="left") for axes in (scheduled, arriving, arrived)] == [
        "scheduled share of each latent task, %", "share that arrives, %", "arrived so far, % of its items"
    ]  # fmt: skip
    assert [axes.get_xlim() for axes in figure.axes[:3]] == [(0.0, 4.0)] * 3
    early, late, mixed = areas(scheduled)
    assert (early[1][0], early[1][2:], late[1][1], late[1][2:]) == (0.0, (0.0, 1.0), 4.0, (0.0, 1.0))
    assert mixed[0] == LIGHT.ink
    assert mixed[1][2:] == (-0.075, -0.03)
    first, second = (colour for colour, _ in areas(key))
    for axes, share in ((scheduled, 0.5), (arriving, 0.25)):  # of the first task in the second step
        assert (filled(axes, 0.3, 0.99), filled(axes, 3.5, 0.01)) == (first, second)
        assert (filled(axes, 1.5, share - 0.02), filled(axes, 1.5, share + 0.02)) == (first, second)
    assert (filled(arriving, 1.02, 0.3), filled(arriving, 0.98, 0.3)) == (second, first)  # stairs, not slopes
    assert [(x, y) for _, x, y in lines(arrived)[:2]] == [
        ([0, 1, 2, 3, 4], [0.0, 40.0, 50.0, 50.0, 50.0]),
        ([0, 1, 2, 3, 4], [0.0, 0.0, 27.272727, 63.636364, 100.0]),
    ]
    assert (
        [colour for colour, *_ in lines(arrived)[:2]] == [colour for colour, _ in areas(arriving)] == [colour for colour, _ in areas(key)]
    )
    assert lines(arrived)[2][::2] == (LIGHT.rule, [100.0, 100.0])
    assert ([axes.get_ylim() for axes in (scheduled, arriving, arrived)], arrived.get_yticks().tolist()) == (
        [(0.0, 1.0), (0.0, 1.0), (0.0, 105.0)],
        [0, 50, 100],
    )
    assert ticks(scheduled, "y") == ticks(arriving, "y") == {"0": 0.0, "50": 0.5, "100": 1.0}
    assert arrived.get_xlabel() == "step"
    assert [{t.get_text() for t in axes.get_xticklabels()} for axes in (scheduled, arriving)] == [{""}, {""}]
    assert [box for _, box in areas(key)] == [(0.0, 1.0, 0.0, 1.0), (0.0, 1.0, 1.0, 2.0)]
    assert ticks(key, "y") == {"1": 0.5, "2": 1.5}
    heights = [axes.get_position().y0 for axes in (scheduled, arriving, arrived)]
    assert heights == sorted(heights, reverse=True)


def test_a_long_stream_is_drawn_in_bins_and_smoothed() -> None:
    """480 steps on 240 places, arrivals as means over 8 steps; what arrives several times goes beyond 100%."""
    n = 480
    mixture = np.full((n, 2), 0.5)
    counts = np.full((n, 2), 5)
    figure = stream_figure(mixture, counts, np.array([800, 1200]), DARK, title="t", threshold=0.5)
    arrived, arriving, scheduled, _ = figure.axes
    assert arriving.get_title(loc="left") == "share that arrives, mean over 8 steps, %"
    assert len(areas(scheduled)) == 2  # shares that reach the threshold are not mixed
    first, second = areas(arriving)
    assert (first[1], second[1]) == ((0.0, 480.0, 0.0, 0.5), (0.0, 480.0, 0.5, 1.0))
    assert [len(x) for _, x, _ in lines(arrived)[:2]] == [241, 241]
    assert [y[-1] for _, _, y in lines(arrived)[:2]] == [300.0, 200.0]
    assert arrived.get_ylim() == (0.0, 312.0)
    assert arrived.get_yticks().tolist() == [0, 100, 200, 300]


def test_ranks_have_ticks_at_whole_numbers() -> None:
    """Between ranks 1 and 2.5 a free choice of ticks would name halves."""
    rows = [("ewc", np.array([1.0, 1.5, 2.0])), ("bare", np.array([2.0, 2.5]))]
    for whole in (True, False):
        figure = box_figure(rows, LIGHT, title="t", xlabel="rank", order=["bare", "ewc"], is_count=whole)
        assert all(float(t).is_integer() for t in figure.axes[0].get_xticks()) == whole
