"""Packages that import what they offer when it is first asked for."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["lazily"]


def lazily(package: str, homes: Mapping[str, tuple[str, ...]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package.

    Args:
        homes: by module below the package the public names that are defined there; ``__all__`` lists them too.
    """
    places = {name: f"{package}.{module}:{name}" for module, names in homes.items() for name in names}

    def fetch(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return pkgutil.resolve_name(places[name])

    return fetch, lambda: sorted(sys.modules[package].__all__)
