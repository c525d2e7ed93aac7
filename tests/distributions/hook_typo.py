"""Misspells the name of a hook."""

from __future__ import annotations

from typing import Any

from cglsuite import hookimpl


@hookimpl
def cglsuite_method() -> list[Any]:
    return []
