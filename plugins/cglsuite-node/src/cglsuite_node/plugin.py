"""The package's node-level datasets and presets."""

from __future__ import annotations

from cglsuite import DatasetSpec, ScenarioSpec, hookimpl

__all__ = ["cglsuite_datasets", "cglsuite_scenarios"]


@hookimpl
def cglsuite_datasets() -> tuple[DatasetSpec, ...]:
    """Embedded synthetic graphs, and public ones read offline from a data root or fetched with checksums."""
    from cglsuite_node.datasets.specs import DATASETS

    return DATASETS


@hookimpl
def cglsuite_scenarios() -> list[ScenarioSpec]:
    """Task-IL and class-IL under BeGin's and CGLB's protocols."""
    from cglsuite_node.presets import presets

    return presets()
