"""Declares an argument that the hook does not have."""

from __future__ import annotations

from typing import Any

from cglsuite import hookimpl


@hookimpl
def cglsuite_methods(catalogue: Any) -> list[Any]:
    return []
