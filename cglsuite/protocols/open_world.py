"""Open-world versions of class-incremental presets (Galke et al. 2023). Importing it does not import torch."""

from __future__ import annotations

import dataclasses

from cglsuite.specs import MEASURES, ScenarioSpec
from cglsuite.specs.plugins import GALKE

__all__ = ["open_preset"]


def open_preset(parent: ScenarioSpec) -> ScenarioSpec:
    """Return the preset ``@open-1`` of a class-IL preset with single labels: training is the parent's, queries are those of an open world.

    Raises:
        SpecError: the parent is not class-IL, or its level has no classes.
    """
    return dataclasses.replace(
        parent,
        name=f"{parent.dataset}/{parent.setting}@open-1",
        summary=f"{parent.name}, with items of the next task's classes among the queries, which should be rejected",
        citation=(*parent.citations, GALKE),
        protocol="open-1",
        builder="cglsuite.streams.open_world:build_open_stream",
        labels="open",
        performance=MEASURES["open"][0],
        search_scope="first-tasks(2)",
        note=f"Training is that of {parent.name}; only the queries and the measure differ. {parent.note}".strip(),
    )
