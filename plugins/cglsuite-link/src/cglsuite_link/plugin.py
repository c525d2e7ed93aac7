"""The link-level datasets and presets of this package."""

from __future__ import annotations

from cglsuite import DatasetSpec, ScenarioSpec, hookimpl


@hookimpl
def cglsuite_datasets() -> tuple[DatasetSpec, ...]:
    """Embedded synthetic links, and public links that are read offline from a data root or downloaded and verified by checksum."""
    from cglsuite_link.datasets.specs import DATASETS

    return DATASETS


@hookimpl
def cglsuite_scenarios() -> list[ScenarioSpec]:
    """Link classification and link prediction under the protocols of BeGin and AGALE."""
    from cglsuite_link.protocols import agale_presets, link_presets, open_presets

    return link_presets() + agale_presets() + open_presets()
