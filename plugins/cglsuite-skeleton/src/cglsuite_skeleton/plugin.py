"""The skeleton datasets, the ST-GCN backbone and the presets of this package."""

from __future__ import annotations

from cglsuite import BackboneSpec, DatasetSpec, ScenarioSpec, hookimpl


@hookimpl
def cglsuite_backbones() -> list[BackboneSpec]:
    """ST-GCN, with two blocks up to the full ten."""
    from cglsuite_skeleton.backbones import backbones

    return backbones()


@hookimpl
def cglsuite_datasets() -> tuple[DatasetSpec, ...]:
    """N-UCLA and NTU RGB+D, which are read from a data root, and embedded motions."""
    from cglsuite_skeleton.datasets.specs import DATASETS

    return DATASETS


@hookimpl
def cglsuite_scenarios() -> list[ScenarioSpec]:
    """Class-IL under the protocol of the skeleton benchmark."""
    from cglsuite_skeleton.protocols import skeleton_presets

    return skeleton_presets()
