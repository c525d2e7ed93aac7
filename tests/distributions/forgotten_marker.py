"""Implements one hook and forgets the marker of another."""

from __future__ import annotations

from typing import Any

from cglsuite import hookimpl


@hookimpl
def cglsuite_datasets() -> list[Any]:
    return []


def cglsuite_methods() -> list[Any]:
    return []
