"""Draw one figure of a campaign for a paper or a notebook, as on the report pages but with a given width in inches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cglsuite import stats
from cglsuite.base.errors import UsageError
from cglsuite.base.inputs import quoted
from cglsuite.reports.kit.figures import matrices_figure
from cglsuite.reports.kit.pictures import LIGHT, Gallery, ShownFigure, Theme, shown_figure
from cglsuite.reports.results import tables
from cglsuite.reports.results.summary import in_percent
from cglsuite.reports.studies import campaign
from cglsuite.reports.studies.comparison import compute as comparison
from cglsuite.reports.studies.comparison import page as comparison_page
from cglsuite.reports.studies.orders import page as orders_page
from cglsuite.reports.studies.orders.compute import pool

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cglsuite.base.markup import Fragment
    from cglsuite.reports.results.results import CampaignResults


STYLES = ("paper", "page")
_AP = "average_performance"


def study_figure(results: CampaignResults, kind: str, *, style: str, width: float, scenario: str, metric: str) -> ShownFigure:
    """Draw a figure of one scenario of a campaign (see :meth:`cglsuite.Study.figure`).

    Raises:
        UsageError: if the kind, style, scenario or metric is unknown, or there is nothing to draw; the message has the reason.
    """
    if kind not in KINDS:
        raise UsageError(f"unknown kind of figure {quoted(kind)}; expected one of {', '.join(KINDS)}")
    if style not in STYLES:
        raise UsageError(f"style = {quoted(style)}: expected one of {', '.join(STYLES)}")
    if not 1.0 <= width <= 40.0:
        raise UsageError(f"width = {width}: expected a width from 1 to 40 inches; a column of a paper is about 3.3 inches wide")
    presets = {group.preset: str(group.records[0].cell["scenario"]) for group in results.groups}
    wanted = [scenario] if scenario in presets else [preset for preset, base in presets.items() if scenario in ("", base)]
    if len(wanted) != 1:
        names = list(presets.values()) if len(set(presets.values())) == len(presets) else list(presets)
        raise UsageError(f"scenario = {quoted(scenario)}: expected one of {', '.join(names)}")
    if len(presets) > 1:
        cells = tuple(cell for group in results.groups if group.preset == wanted[0] for cell in group.cells)
        results = dataclasses.replace(results, cells=cells)
    return shown_figure(KINDS[kind](results, metric), dataclasses.replace(LIGHT, width=width) if style == "paper" else LIGHT)


def _curves(results: CampaignResults, metric: str) -> Callable[[Theme], Figure]:
    if metric not in tables.CURVES:
        raise UsageError(f"there are no curves of {quoted(metric)}; expected one of {', '.join(tables.CURVES)}")
    return _only(campaign.curves(results, metric))


def _matrix(results: CampaignResults, metric: str) -> Callable[[Theme], Figure]:
    _only_average(metric)
    matrices = [(group.label, values) for group, values in tables.mean_matrices(results)]
    percent = in_percent(results, results.groups[0].preset)
    finite = np.concatenate([values[np.isfinite(values)] for _, values in matrices])
    bounds = (0.0, 1.0) if percent or not finite.size else (float(finite.min()), float(finite.max()))
    return partial(matrices_figure, matrices, percent=percent, bounds=bounds)


def _orders(results: CampaignResults, metric: str) -> Callable[[Theme], Figure]:
    _only_average(metric)
    return _only(orders_page.spreads(pool([results])))


def _forgetting(results: CampaignResults, metric: str) -> Callable[[Theme], Figure]:
    _only_average(metric)
    return _only(orders_page.forgetting(pool([results])))


def _ranks(results: CampaignResults, metric: str) -> Callable[[Theme], Figure]:
    study = comparison.study(results, comparison.Question(metric=metric))
    for compared in study.comparisons:
        try:
            comparison.friedman(compared)
        except stats.Refused as error:
            raise UsageError(f"ranks in {compared.name}: {error}") from error
    return _only(comparison_page.rank_diagrams(study))


KINDS: dict[str, Callable[[CampaignResults, str], Callable[[Theme], Figure]]] = {
    "curves": _curves,
    "matrix": _matrix,
    "orders": _orders,
    "forgetting": _forgetting,
    "ranks": _ranks,
}
"""The kinds of figures: what draws each from results and a metric."""


def _only(shown: Gallery | Fragment) -> Callable[[Theme], Figure]:
    """The drawing of a gallery of one picture."""
    if not isinstance(shown, Gallery):
        raise UsageError(shown.text)
    drawings = [picture.draw for picture in shown.pictures if picture.draw is not None]
    if len(drawings) != 1:
        raise UsageError(f"this scenario has {len(drawings)} figures, one per backbone: run only one backbone, or write a report")
    return drawings[0]


def _only_average(metric: str) -> None:
    if metric != _AP:
        raise UsageError(f"metric = {quoted(metric)}, but this figure always shows the same metrics; leave metric out")
