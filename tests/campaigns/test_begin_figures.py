"""The campaigns of BeGin's Figures 11 and 12: which cells they plan, and that nothing but the axis varies along a curve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cglsuite.campaigns.campaign import load_campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.host import load_catalogue

REPORTS = Path(__file__).resolve().parents[2] / "reports" / "begin"
pytestmark = pytest.mark.plugins
#: By file: the method, the axis, its values, and the scheme of pre-training.
FIGURES = {
    "begin-figure-11": ("packnet", "method.keep", [None, 0.1, 0.25, 0.5, 0.75, 0.9], "none"),
    "begin-figure-11-piggyback": ("piggyback", "method.threshold", [1e-3, 5e-3, 1e-2, 5e-2, 0.1], "dgi"),
    "begin-figure-12": ("hat", "method.s_max", [25.0, 100.0, 400.0, 800.0], "none"),
    "begin-figure-12-sparsity": ("hat", "method.c", [0.1, 0.25, 0.75, 1.5, 4.0], "none"),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_planned_along_its_axis_alone(name: str) -> None:
    method, axis, values, scheme = FIGURES[name]
    planned = list(plan_campaign(load_campaign(REPORTS / f"{name}.toml"), load_catalogue()))
    cells: list[Any] = [p.cell for p in planned]
    assert all(cell is not None for cell in cells), [p.reason for p in planned if p.cell is None]
    assert len(cells) == len({p.key for p in planned}) == 2 * 5 * len(values)
    assert {cell.method for cell in cells} == {method}
    assert {cell.pretraining for cell in cells} == {scheme}
    for dataset in ("cora", "citeseer"):
        mine = [cell for cell in cells if cell.scenario.dataset == dataset]
        assert {cell.configuration[axis] for cell in mine} == set(values)
        rest = {repr({k: v for k, v in cell.configuration.items() if k not in (axis, "scenario.class_order")}) for cell in mine}
        assert len(rest) == 1, "one cause per curve"
        assert {cell.seeds.order for cell in mine} == {0, 1000, 2000, 3000, 4000}


def test_hat_is_that_of_its_paper_in_both_of_its_campaigns() -> None:
    """In BeGin's form its gates are not trained, so that the sparsity could change nothing."""
    for name in ("begin-figure-12", "begin-figure-12-sparsity"):
        cells: list[Any] = [p.cell for p in plan_campaign(load_campaign(REPORTS / f"{name}.toml"), load_catalogue())]
        assert {(c.configuration["method.as_begin"], c.configuration["training.norm_statistics"]) for c in cells} == {(False, "per-task")}


def test_each_page_shows_both_of_its_campaigns_as_sensitivity() -> None:
    for name, other in (("begin-figure-11", "begin-figure-11-piggyback"), ("begin-figure-12", "begin-figure-12-sparsity")):
        (report,) = load_campaign(REPORTS / f"{name}.toml").reports
        assert report.notebook == "sensitivity"
        assert report.parameters == {"also": [f"{other}.toml"]}
        assert (REPORTS / f"{other}.toml").is_file()
