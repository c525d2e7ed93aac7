"""Packages that import their public names on first access."""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def lazily(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package that imports its public names on first access.

    Args:
        file: the package's ``__init__.py``. The names that it imports in ``if`` blocks (that is, ``TYPE_CHECKING``) become available.
    """
    blocks = [node.body for node in ast.parse(Path(file).read_bytes()).body if isinstance(node, ast.If)]
    imports = [node for body in blocks for node in body if isinstance(node, ast.ImportFrom)]
    places = {alias.name: f"{node.module}:{alias.name}" for node in imports for alias in node.names}

    def fetch(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return pkgutil.resolve_name(places[name])

    return fetch, lambda: sorted(sys.modules[package].__all__)
