"""Returns a number among the specs."""

from __future__ import annotations

from typing import Any

from cglsuite import MethodSpec, hookimpl


@hookimpl
def cglsuite_methods() -> list[Any]:
    return [MethodSpec(name="fine", summary="must not be in the catalogue", factory="rubbish:build"), 42]
