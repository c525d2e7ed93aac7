"""Overrides the method ``same`` of the distribution clash-a on purpose."""

from __future__ import annotations

from cglsuite import MethodSpec, hookimpl


@hookimpl
def cglsuite_methods() -> list[MethodSpec]:
    return [MethodSpec(name="same", summary="a better one", factory="overrides:build", replaces="Clash_A")]
