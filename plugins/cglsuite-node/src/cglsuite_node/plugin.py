"""The node-level datasets and presets of this package: all published protocols on its datasets, and examples."""

from __future__ import annotations

from cglsuite import DatasetSpec, ScenarioSpec, hookimpl
from cglsuite_node.protocols.agale import agale_presets
from cglsuite_node.protocols.asked_globally import few_shot_presets, global_presets, open_presets
from cglsuite_node.protocols.begin import begin_presets
from cglsuite_node.protocols.cglb import cglb_presets
from cglsuite_node.protocols.example import example_presets
from cglsuite_node.protocols.text import text_presets


@hookimpl
def cglsuite_datasets() -> tuple[DatasetSpec, ...]:
    """Embedded synthetic graphs, and public graphs that are read offline from a data root or downloaded and verified by checksum."""
    from cglsuite_node.datasets.specs import DATASETS

    return DATASETS


@hookimpl
def cglsuite_scenarios() -> list[ScenarioSpec]:
    """Task-IL and class-IL under the protocols of BeGin and CGLB."""
    return presets()


def presets() -> list[ScenarioSpec]:
    """Return all presets of this package."""
    published = [*cglb_presets(), *begin_presets(), *agale_presets()]
    return [*published, *global_presets(), *few_shot_presets(), *open_presets(), *text_presets(), *example_presets()]
