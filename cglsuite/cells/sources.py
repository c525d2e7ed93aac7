"""Which source files the numbers of a cell depend on: what a module imports, followed through its own package and our numerical rooms.

A record's key carries a hash of these files, so that a change in any of them makes the cell anew, and a new method beside them does not.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from cglsuite.hashing import digest, source_digest

__all__ = ["NUMERICAL_ROOMS", "closure", "closure_digest"]

NUMERICAL_ROOMS = ("graphs", "streams", "backbones", "problems", "learning")


@lru_cache(maxsize=256)
def closure_digest(module: str) -> str:
    """SHA-256 (hex) over the names and contents of :func:`closure`."""
    return digest([[name, source_digest(path)] for name, path in closure(module)])


def closure(module: str) -> list[tuple[str, Path]]:
    """``module`` and what it imports, directly or not, from its own top-level package and from the numerical rooms; sorted by name.

    Imports inside functions count, those made by name at run time cannot be seen. Other libraries are not followed: of them a key
    carries torch's version only.
    """
    home = module.partition(".")[0]
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or not _followed(name, home) or (path := _file(name)) is None:
            continue
        found[name] = path
        waiting += [name.rpartition(".")[0]] if "." in name else []
        waiting += _imports(name, path)
    return sorted(found.items())


def _followed(name: str, home: str) -> bool:
    parts = name.split(".")
    if parts[0] == "cglsuite":
        return len(parts) > 1 and parts[1] in NUMERICAL_ROOMS
    return parts[0] == home


def _file(name: str) -> Path | None:
    """The source of a module, found without importing anything."""
    top, *rest = name.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None
    for folder in spec.submodule_search_locations or ():
        place = Path(folder, *rest)
        for path in (place / "__init__.py", place.with_suffix(".py")):
            if path.is_file():
                return path
    return None  # "from package import function": the last part is no module


def _imports(name: str, path: Path) -> tuple[str, ...]:
    return _imported(name if path.name == "__init__.py" else name.rpartition(".")[0], path.read_bytes())


@lru_cache(maxsize=1024)  # by content: the closures of a campaign's parts share most of their files
def _imported(package: str, source: bytes) -> tuple[str, ...]:
    return tuple(_named(package, ast.parse(source)))


def _named(package: str, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
