"""Calls itself without end inside a hook."""

from __future__ import annotations

from cglsuite import MethodSpec, hookimpl


@hookimpl
def cglsuite_methods() -> list[MethodSpec]:
    return cglsuite_methods()
