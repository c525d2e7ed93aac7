"""The node-level presets: every published protocol on this package's datasets, and examples."""

from __future__ import annotations

from cglsuite import ScenarioSpec
from cglsuite_node.protocols.agale import agale_presets
from cglsuite_node.protocols.asked_globally import few_shot_presets, global_presets
from cglsuite_node.protocols.begin import begin_presets
from cglsuite_node.protocols.cglb import cglb_presets
from cglsuite_node.protocols.example import example_presets

__all__ = ["presets"]


def presets() -> list[ScenarioSpec]:
    """All presets of this package."""
    return [*cglb_presets(), *begin_presets(), *agale_presets(), *global_presets(), *few_shot_presets(), *example_presets()]
