"""The package's link-level datasets and presets."""

from __future__ import annotations

from cglsuite import DatasetSpec, ScenarioSpec, hookimpl


@hookimpl
def cglsuite_datasets() -> tuple[DatasetSpec, ...]:
    """Embedded synthetic links, and public ones read offline from a data root or fetched with checksums."""
    from cglsuite_link.datasets.specs import DATASETS

    return DATASETS


@hookimpl
def cglsuite_scenarios() -> list[ScenarioSpec]:
    """Link classification and link prediction under BeGin's protocol."""
    from cglsuite_link.protocols import link_presets

    return link_presets()
