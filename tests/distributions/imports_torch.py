"""Imports torch where the hooks are, so that every listing pays for it."""

from __future__ import annotations

import torch  # noqa: F401

from cglsuite import MethodSpec, hookimpl


@hookimpl
def cglsuite_methods() -> list[MethodSpec]:
    return [MethodSpec(name="heavy", summary="costs every listing seconds", factory="imports_torch:build")]
