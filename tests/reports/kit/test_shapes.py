"""Every figure in every shape that changes its layout: few and many rows, one and several panels, costs of 0, values that are missing.

Each is compared with its approved drawing (see ``tests/tools/approved.py``). ``tests/reports/studies/test_drawn.py`` says by hand what the
main ones draw.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from report_lab import page_with

from cglsuite.reports.kit.figures import (
    Panel,
    PointAxis,
    StreamAxis,
    box_figure,
    cumulative_figure,
    curve_figure,
    legend_figure,
    matrix_figure,
    point_figure,
    stream_matrix_figure,
)
from cglsuite.reports.kit.pictures import DARK, LIGHT, Gallery, Picture, Theme, house_style, svg
from cglsuite.reports.studies.anatomy.page import drift_figure, homophily_figure, share_figure
from cglsuite.reports.studies.categories import rank_boxes
from cglsuite.reports.studies.comparison.page import difference_figure, rank_figure
from cglsuite.reports.studies.orders.page import Spread, bound_figure, component_figure, range_figure, spread_figure, win_figure
from cglsuite.reports.studies.sweep import sweep_figure
from cglsuite.reports.studies.task_free.page import exposure_figure, overlap_figure, progress_figure, stream_figure

NAN = float("nan")
LONG = "synthetic-csbm/task-il@begin-1, backbone.width = 128, a title that needs several lines on any of these figures"
Draw = Callable[[Theme], Figure]


def values(*shape: int, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Numbers between ``low`` and ``high`` in no order, the same at any time."""
    return low + (high - low) * (np.arange(np.prod(shape)) * 0.618033988749895 % 1.0).reshape(shape)


def names(n: int) -> list[str]:
    return ["bare", "ewc", "a method with a long name", "mas", "lwf", "twp", "gem", "er-gnn", "ssm", "cat", "packnet", "hat"][:n]


def matrices() -> Iterator[Draw]:
    for n in (1, 5, 12, 13, 40):
        yield lambda theme, n=n: matrix_figure(values(n + 1, n), "ewc", theme)
    holes = np.where(values(4, 3) < 0.3, NAN, values(4, 3, low=-2.0, high=2.0))
    yield lambda theme: matrix_figure(holes, LONG, theme, percent=False, bounds=(-2.0, 2.0))
    yield lambda theme: matrix_figure(values(26, 25, high=3.0), LONG, theme, percent=False, bounds=(0.0, 3.0))


def courses() -> Iterator[Draw]:
    """Eight evaluations of twelve latent tasks are written out, more are not; one latent task never arrives."""
    for rows, tasks in ((8, 12), (9, 12), (8, 13), (60, 4), (30, 30)):
        steps = np.linspace(0, 40 * (rows - 1), rows)
        middle = np.linspace(0, steps[-1], tasks + 2)
        arrival = np.stack([middle[:-2], middle[2:]], axis=1)
        arrival[-1] = NAN
        matrix, stream_axis = values(rows, tasks), StreamAxis(steps, arrival)
        yield lambda theme, m=matrix, c=stream_axis: stream_matrix_figure(m, c, "ewc", theme)
    stream_axis = StreamAxis(np.array([0.0, 10.0, 100.0]), np.array([[0.5, 9.5], [11.0, 99.0]]))
    yield lambda theme: stream_matrix_figure(values(3, 2, low=-1.0), stream_axis, LONG, theme, percent=False, bounds=(-1.0, 1.0))


def curves() -> Iterator[Draw]:
    for methods, tasks, more in (
        (1, 1, {}),
        (3, 4, {"chance": np.array([0.5, NAN, 0.25, 0.2])}),
        (12, 15, {"xlabel": "step"}),
        (2, 16, {"with_legend": False}),
        (2, 35, {"percent": False, "title": LONG}),
    ):
        numbers = values(methods, tasks, 2) * [1.0, 0.1]
        rows = [(name, t + 1, *two) for name, own in zip(names(methods), numbers, strict=True) for t, two in enumerate(own)]
        frame = pd.DataFrame(rows, columns=["label", "task", "mean", "std"])
        words: dict[str, Any] = {"title": "t", "ylabel": "AP", "order": ["joint", *names(12)]} | more
        yield lambda theme, f=frame, w=words: curve_figure(f, theme, **w)


def legends() -> Iterator[Draw]:
    asked: list[tuple[int, Any]] = [(1, {}), (2, {"chance": True}), (3, {"lines": False}), (12, {"bounds": ["ewc", "hat"]})]
    for n, more in asked:
        yield lambda theme, n=n, m=more: legend_figure(names(n), theme, order=names(12), **m)


def points() -> Iterator[Draw]:
    """Costs on a logarithmic axis: over a decade and over five, with a method that costs nothing, and where none costs anything."""
    for costs, more in (
        ([1.0, 3.0, 9.0], {}),
        ([0.02, 40.0, 3000.0], {"with_legend": False}),
        ([0.0, 3.0, 4000.0], {"title": LONG}),
        ([0.0, 0.0, 0.0], {}),
        ([5.0, NAN, 7.0], {}),
    ):
        frame = pd.DataFrame({"label": names(3), "s_mean": costs, "s_std": [NAN, 0.5, 100.0], "p_mean": [0.3, 0.5, 0.7], "p_std": 0.02})
        x, y = PointAxis("s", "seconds", 1.0, logarithmic=True), PointAxis("p", "performance, %", 100.0)
        words = {"title": "t", "order": ["joint", *names(3)]} | cast("dict[str, Any]", more)
        yield lambda theme, f=frame, w=words, x=x, y=y: point_figure(f, theme, x=x, y=y, **w)
        if not more:
            yield lambda theme, f=frame, w=words, x=x, y=y: point_figure(f, theme, x=y, y=x, **w)


def distributions() -> Iterator[Draw]:
    share = Panel("homophily", {"better": (values(5).cumsum() / 3, np.linspace(0.2, 1, 5))}, (0.0, 1.0))
    few = Panel("degree", {"worse": (np.array([0.0, 3.0]), np.array([0.5, 1.0]))}, (0.0, 60.0), logarithmic=True)
    many = Panel("degree", few.curves, (0.0, 70_000.0), logarithmic=True)
    hops = Panel("hops", {"better": (np.array([1.0]), np.array([1.0])), "worse": (np.array([2.0]), np.array([1.0]))}, (0.0, 3.0))
    for panels in ([share], [few, many], [share, few, hops]):
        yield lambda theme, p=panels: cumulative_figure(p, theme, title=LONG, order=["better", "unused", "worse"], unit="nodes")


def spreads() -> Iterator[Draw]:
    rows = [(name, values(n, low=10.0, high=90.0)) for name, n in zip(names(3), (3, 21, 1501), strict=True)]
    yield lambda theme: box_figure(rows, theme, title="t", xlabel="AP, %", order=names(4))
    yield lambda theme: box_figure(rows[:2], theme, title=LONG, xlabel="rank", order=names(2), is_count=True)
    seeds = [Spread("bare", values(3), np.empty(0)), Spread("a method with a long name", values(30), values(5, high=0.5))]
    yield lambda theme: spread_figure(seeds, theme, title=LONG, order=names(3))
    yield lambda theme: spread_figure(seeds[:1], theme, title="t", order=names(1), percent=False)
    panels = [
        SimpleNamespace(categories=list(c), ranks=pd.DataFrame({"category": list(c), "rank": values(len(c), high=7.0).round()}), setting=s)
        for s, c in (("Task-IL", ("replay", "replay", "replay", "replay", "none")), ("Class-IL", ("none", "regularisation")))
    ]
    for panel in panels:
        panel.categories = list(dict.fromkeys(panel.categories))
    yield lambda theme: rank_boxes(cast("Any", panels), theme, title=LONG, order=["regularisation", "none", "replay"])


def orders() -> Iterator[Draw]:
    frame = pd.DataFrame(
        {"item": ["1", "class 22", "3"], "opd": [0.4, 0.2, 0.9], "std": NAN, "null": [NAN, 0.3, 0.1], "opd_k": [0.3, NAN, 1]}
    )
    yield lambda theme: range_figure(frame, theme, title=LONG, unit="class", method="mine")
    yield lambda theme: range_figure(frame.assign(std=[0.1, NAN, 0.2]), theme, title="t", unit="task", method="bare", percent=False)
    cells = pd.DataFrame({"label": names(4) * 3, "aa": values(12), "af": values(12, low=-0.3, high=0.8)})
    yield lambda theme: bound_figure(cells, theme, title=LONG, k=3, order=names(4))
    yield lambda theme: bound_figure(cells[cells["af"] > 0], theme, title="t", k=10, order=["joint", *names(4)])
    for n in (2, 6):
        shares = pd.DataFrame(values(n, n), index=names(n), columns=names(n))
        yield lambda theme, s=shares: win_figure(s, theme, title=LONG)
    shares = pd.DataFrame([[NAN, 0.5], [0.5, NAN]], index=["bare", "ewc"], columns=["bare", "ewc"])
    yield lambda theme: win_figure(shares, theme, title="t")
    parts = {"toy": {"order": 0.5, "method_order": 0.061, "seed": 0.06, "method_seed": 0.2, "order_seed": 0.05, "rest": 0.129}}
    yield lambda theme: component_figure(parts, theme)
    yield lambda theme: component_figure(parts | {"another": {"rest": 1.0}}, theme)


def comparisons() -> Iterator[Draw]:
    pairs = pd.DataFrame([("a", "b", 0.1, 0.04, 0.16, True), ("a", "c", -0.01, -0.05, 0.03, False), ("b", "c", NAN, NAN, NAN, False)])
    pairs.columns = pd.Index(["first", "second", "estimate", "low", "high", "significant"])
    words: dict[str, Any] = {"xlabel": "difference, points", "scale": 100.0, "smallest": 2.0}
    yield lambda theme: difference_figure(pairs, theme, title="t", **words)
    yield lambda theme: difference_figure(pairs[2:].reset_index(drop=True), theme, title=LONG, **words)
    for n, separates in ((3, True), (4, True), (6, False)):
        ranks = pd.Series(dict(zip(names(n), 1.0 + np.arange(n) * 0.9, strict=True)))
        apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        p = pd.DataFrame(np.where(apart > 1, 0.01, 0.4), index=ranks.index, columns=ranks.index)
        test = SimpleNamespace(average_ranks=ranks, nemenyi=p, separates=separates, alpha=0.05, critical_difference=1.2)
        yield lambda theme, t=test, n=n: rank_figure(cast("Any", t), theme, title=LONG, order=names(n)[::-1])


def sweeps() -> Iterator[Draw]:
    for n, percent in ((1, False), (12, True)):
        rows = [(name, place, f"1e-{place}", *sorted(three)) for name in names(n) for place, three in enumerate(values(3, 3))]
        frame = pd.DataFrame(rows, columns=["label", "place", "value", "low", "mean", "high"])
        words: dict[str, Any] = {"xlabel": "lambda", "ylabel": "AP", "order": names(12), "percent": percent, "bounds": (0.0, 1.05)}
        yield lambda theme, f=frame, w=words: sweep_figure(f, theme, title=LONG, **w)
    rows = [(name, x, 0.1, *sorted(three)) for name in names(3) for x, three in zip((0.0, 0.5, 1.0), values(3, 3), strict=True)]
    overlaps = pd.DataFrame(rows, columns=["label", "overlap", "entropy", "low", "mean", "high"])
    yield lambda theme: overlap_figure(overlaps, theme, title=LONG, ylabel="AP", order=names(4), percent=True)
    yield lambda theme: overlap_figure(overlaps[:3], theme, title="t", ylabel="loss", order=names(1), percent=False)


def streams() -> Iterator[Draw]:
    """Short ones as stairs, long ones in bins; above twelve latent tasks areas are an image; items that arrive several times."""
    for steps, tasks, per_item in ((4, 2, 1), (89, 3, 1), (480, 13, 4)):
        centres = np.linspace(0, steps, tasks)
        weights = np.exp(-(((np.arange(steps)[:, None] - centres) / (0.3 * steps)) ** 2))
        mixture = weights / weights.sum(axis=1, keepdims=True)
        counts = np.floor(10 * mixture).astype(np.int64)
        counts[:, 0] += 10 - counts.sum(axis=1)
        sizes = np.ceil(np.maximum(counts.sum(axis=0), 1) / per_item).astype(np.int64)
        made: dict[str, Any] = {"mixture": mixture, "counts": counts, "sizes": sizes, "title": LONG, "threshold": 0.6}
        yield lambda theme, m=made: stream_figure(theme=theme, **m)
        rows = [(name, step, *sorted(three)) for name in names(4) for step, three in zip((0, steps // 2, steps), values(3, 3), strict=True)]
        frame = pd.DataFrame(rows, columns=["label", "step", "low", "mean", "high"])
        words: dict[str, Any] = {"ylabel": "AP, %", "order": ["joint", *names(4)], "percent": tasks > 2, "with_legend": tasks < 13}
        words |= {"mixture": mixture if tasks > 2 else None, "bounds": ["ewc"]}
        yield lambda theme, f=frame, w=words: progress_figure(f, theme, title="t", **w)
        exposed = [(k + 1, *part) for k in range(tasks) for part in (("0", 0.1), ("1", 0.6), ("2", 0.3), ("3 or more", 0.0))]
        yield lambda theme, e=exposed: exposure_figure(pd.DataFrame(e, columns=["task", "times", "share"]), theme, title=LONG)


def anatomies() -> Iterator[Draw]:
    for groups, classes in ((1, 2), (12, 24), (13, 24), (12, 25), (70, 40)):
        shares, what = values(groups, classes, high=0.4), [str(c) for c in range(classes)]
        yield lambda theme, s=shares, c=what: share_figure(s, c, theme, title="two\nlines", item_name="year")
    for n, components in ((3, 2), (41, 2), (2, 1)):
        drift = SimpleNamespace(
            shift=values(n), chance=values(n, high=0.2), places=values(n, components, low=-1.0), explained=values(components, high=0.6)
        )
        yield lambda theme, d=drift, c=components: drift_figure(cast("Any", d), theme, title=LONG, item_name="task", in_order=c > 1)
    scores = pd.DataFrame(
        [(name, k, mean, NAN) for name, own in zip(names(2), values(2, 3), strict=True) for k, mean in enumerate(own)],
        columns=["label", "task", "mean", "std"],
    )
    for part in (scores[:0], scores, scores.assign(mean=scores["mean"] - 0.5)):
        yield lambda theme, s=part: homophily_figure(
            values(3), 0.6, s, theme, title=LONG, item_name="task", order=names(3), ylabel="accuracy"
        )


SHAPES = (matrices, courses, curves, legends, points, distributions, spreads, orders, comparisons, sweeps, streams, anatomies)


def drawn(makers: Iterable[Draw], theme: Theme) -> Gallery:
    with mpl.rc_context(house_style(theme)):
        made = [svg(draw(theme)) for draw in makers]
    return Gallery(tuple(Picture(one, one, f"shape {n}") for n, one in enumerate(made)))


@pytest.mark.parametrize("shapes", SHAPES, ids=[one.__name__ for one in SHAPES])
def test_every_shape_of_a_figure(shapes: Callable[[], Iterator[Draw]]) -> None:
    page_with(drawn(shapes(), LIGHT))


def test_dark_figures_differ_in_colours_alone() -> None:
    """The same words and lines at the same places."""
    colours = re.compile(r"#[0-9a-f]{6}|[mp][0-9a-f]{10}|<image[^>]*>")
    for make in (matrices, curves, streams):
        light, dark = (drawn([next(make())], theme).pictures[0].light for theme in (LIGHT, DARK))
        assert light != dark
        assert colours.sub("", light) == colours.sub("", dark)
