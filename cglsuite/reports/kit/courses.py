"""A performance matrix over the steps of a task-free stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from cglsuite.reports.kit.figure_parts import (
    ANNOTATED_TASKS,
    RASTER_DPI,
    headline,
    plain_axes,
    wrapped,
)
from cglsuite.reports.kit.marks import mark_grid
from cglsuite.reports.kit.statistical import heat_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from cglsuite.reports.kit.pictures import Theme


__all__ = ["Course", "course_figure"]


@dataclass(frozen=True)
class Course:
    """The time axis of a curve: ``steps`` made at each evaluation (float64 [E + 1]), and for every latent task from which step to
    which the middle nine tenths of its items arrive (float64 [K, 2], NaN where none do)."""

    steps: NDArray[np.float64]
    arrival: NDArray[np.float64]

    @classmethod
    def of(cls, stream: Mapping[str, Any], rows: int) -> Course:
        """From the stream facts of a record; evaluations beyond ``rows`` are left out."""
        steps = np.asarray(stream["evaluations"], dtype=np.float64)[:rows]
        delivered = np.asarray(stream["delivered"], dtype=np.float64)[:rows]
        arrival = np.full((delivered.shape[1], 2), np.nan)
        for k, total in enumerate(delivered[-1]):
            if total > 0:
                arrival[k] = [_reached(delivered[:, k], steps, share * total) for share in (0.05, 0.95)]
        return cls(steps, arrival)


def course_figure(
    matrix: NDArray[np.float64], course: Course, title: str, theme: Theme, *, percent: bool = True, bounds: tuple[float, float] = (0.0, 1.0)
) -> Figure:
    """Performance on every latent task along the stream: a row per latent task, a column per evaluation, starting with the untrained model.

    A line below a row spans the steps in which the middle nine tenths of the latent task's items arrive.

    Args:
        matrix: float64 [E + 1, K]; NaN is left blank with a dash where values are written out. bounds: of the colour scale.
    """
    n_rows, n_tasks = matrix.shape
    annotated = n_rows <= 8 and n_tasks <= ANNOTATED_TASKS
    cell = (0.33, 0.32) if annotated else (max(0.04, min(0.28, 2.6 / n_rows)), max(0.1, min(0.3, 3.4 / n_tasks)))
    inner = (cell[0] * n_rows, cell[1] * n_tasks)
    left, right, below, above = 0.62, 0.14 if annotated else 0.6, 0.46, 0.36
    lines = wrapped(title, max(inner[0] + right + 0.5, 2.2), 9.5)
    width, height = max(inner[0] + left + right, 2.4), inner[1] + below + above + 0.17 * (len(lines) - 1)
    figure = Figure(figsize=(width, height), dpi=RASTER_DPI)
    axes = figure.add_axes((left / width, below / height, inner[0] / width, inner[1] / height))
    scale = ((left + inner[0] + 0.12) / width, below / height, 0.12 / width, inner[1] / height)
    heat_map(axes, matrix.T, theme, bounds=bounds, percent=percent, bar=None if annotated else scale, middle=0.47)
    if not annotated:
        moments = ["before training", *(f"after step {step:.0f}" for step in course.steps[1:])]
        mark_grid(axes, matrix.T, [f"latent task {k + 1}" for k in range(n_tasks)], moments, percent=percent)
    _course_ticks(axes, course, n_tasks, cell[0], theme)
    _arrivals(axes, course, theme)
    headline(figure, lines, theme, points=9.5, left=0.06)
    return figure


def _reached(delivered: NDArray[np.float64], steps: NDArray[np.float64], amount: float) -> float:
    """The step by which a positive amount had been delivered, interpolated linearly between two evaluations."""
    after = int((delivered >= amount).argmax())
    return float(np.interp(amount, delivered[after - 1 : after + 1], steps[after - 1 : after + 1]))


def _course_ticks(axes: Axes, course: Course, n_tasks: int, cell: float, theme: Theme) -> None:
    n_rows = len(course.steps)
    names = ["start", *(f"{step:.0f}" for step in course.steps[1:])]
    room = 0.085 * max(map(len, names)) + 0.08
    step = max(1, int(np.ceil(room / cell)))
    shown = [i for i in range(0, n_rows, step) if i == 0 or n_rows - 1 - i >= step or i == n_rows - 1]
    shown += [n_rows - 1] if n_rows - 1 not in shown else []
    axes.set_xticks([i + 0.5 for i in shown], [names[i] for i in shown])
    every = max(1, int(np.ceil(n_tasks / ANNOTATED_TASKS)))
    axes.set_yticks([k + 0.5 for k in range(0, n_tasks, every)], [str(k + 1) for k in range(0, n_tasks, every)])
    axes.set_xlabel("after step")
    axes.set_ylabel("latent task")
    plain_axes(axes, theme)


def _arrivals(axes: Axes, course: Course, theme: Theme) -> None:
    """Map step s to the column axis: a column is an evaluation and covers the steps before it."""
    columns = np.arange(len(course.steps), dtype=np.float64) + 1.0
    for k, (begin, end) in enumerate(course.arrival):
        if np.isfinite(begin):
            x = np.interp([begin, end], course.steps, columns)
            for colour, size in ((theme.ground, 4.0), (theme.lines[1], 2.2)):
                axes.plot(x, [k + 0.95, k + 0.95], color=colour, linewidth=size, solid_capstyle="butt", clip_on=False)
