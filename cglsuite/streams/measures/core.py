"""The core's measures by name. Not part of a key: the function of a cell's measure is one of the key's roots."""

from __future__ import annotations

from cglsuite.base.errors import SpecError
from cglsuite.specs import CORE_MEASURES


def core_measure(name: str) -> str:
    """Return the ``"module:function"`` path of a built-in measure.

    Raises:
        SpecError: the core has no such measure; plugins' measures are resolved through the catalogue.
    """
    known: dict[str, str] = {spec.name: spec.factory for spec in CORE_MEASURES}
    if name not in known:
        raise SpecError(f"scenario.performance = {name!r} was not resolved: resolve the scenario through the catalogue first")
    return known[name]
