"""Was made for a later version of the plugin interface."""

from __future__ import annotations

from cglsuite import MethodSpec, hookimpl


@hookimpl
def cglsuite_methods() -> list[MethodSpec]:
    return [MethodSpec(name="futuristic", summary="from the future", factory="too_new:build", api_version=99)]
