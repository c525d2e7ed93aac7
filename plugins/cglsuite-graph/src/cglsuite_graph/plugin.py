"""The graph-level datasets and presets of this package."""

from __future__ import annotations

from cglsuite import DatasetSpec, ScenarioSpec, hookimpl


@hookimpl
def cglsuite_datasets() -> tuple[DatasetSpec, ...]:
    """Molecules, superpixels, taxi trips, posts and protein neighbourhoods, which are read from a data root, and embedded graphs."""
    from cglsuite_graph.datasets.specs import DATASETS

    return DATASETS


@hookimpl
def cglsuite_scenarios() -> list[ScenarioSpec]:
    """Graph classification and regression under the protocols of BeGin, CGLB and AGALE."""
    from cglsuite_graph.protocols import agale_presets, begin_presets, cglb_presets, open_presets

    return begin_presets() + cglb_presets() + agale_presets() + open_presets()
