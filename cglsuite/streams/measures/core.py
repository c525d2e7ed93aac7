"""Look up built-in measures by name. Keys do not cover this module, because the measure's own function is a root of the key."""

from __future__ import annotations

from cglsuite.base.errors import SpecError
from cglsuite.specs import CORE_MEASURES


def core_measure(name: str) -> str:
    """Return the ``"module:function"`` path of a built-in measure.

    Raises:
        SpecError: if there is no built-in measure of that name. The catalogue resolves the measures of plugins.
    """
    known: dict[str, str] = {spec.name: spec.factory for spec in CORE_MEASURES}
    if name not in known:
        raise SpecError(f"scenario.performance = {name!r} was not resolved: resolve the scenario through the catalogue first")
    return known[name]
