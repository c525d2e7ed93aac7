"""A small campaign over the fake catalogue, and its plan."""

from __future__ import annotations

import tomllib
from typing import Any

import fake_cells

from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.plan import PlannedCell

__all__ = ["BASE", "CATALOGUE", "campaign", "plan", "rate"]

CATALOGUE: Any = fake_cells.FakeCatalogue()


BASE = """
name = "x"
[grid]
scenarios = ["toy/task-il@begin-1", "toy/class-il@begin-1"]
methods = ["bare", "ewc"]
"""


def campaign(text: str = "", base: str = BASE) -> Campaign:
    return Campaign.parse(tomllib.loads(base + text))


def plan(text: str = "", overrides: Any = None, **more: Any) -> list[PlannedCell]:
    return plan_campaign(campaign(text), CATALOGUE, overrides, **more)


def rate(cell: PlannedCell) -> float:
    return float(cell.cell.backbone_hyperparameters["_lr"])  # type: ignore[union-attr, arg-type]
