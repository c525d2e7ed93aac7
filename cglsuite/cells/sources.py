"""Which source files the numbers of a cell depend on: what a module imports, followed through its own package and our numerical rooms.

A record's key carries a hash of these files, so that a change in any of them makes the cell anew, and a new method beside them does not.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.metadata
import importlib.util
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from cglsuite.hashing import digest, source_digest

__all__ = ["NUMERICAL_ROOMS", "closure", "closure_digest"]

NUMERICAL_ROOMS = ("graphs", "streams", "backbones", "problems", "learning")
_ENDINGS = (".py", *importlib.machinery.EXTENSION_SUFFIXES)


@lru_cache(maxsize=256)
def closure_digest(module: str, rooms: tuple[str, ...] = NUMERICAL_ROOMS) -> str:
    """SHA-256 (hex) over the names and contents of :func:`closure`; over the providers' versions where no file is to be had."""
    files: list[Any] = [[name, source_digest(path)] for name, path in closure(module, rooms)]
    if not files and module.partition(".")[0] != "cglsuite":  # of which the runner's own closure holds what counts
        files = ["without source", module, _providers(module)]
    return digest(files)


def closure(module: str, rooms: tuple[str, ...] = NUMERICAL_ROOMS) -> list[tuple[str, Path]]:
    """``module`` and what it imports, directly or not, from its own top-level package and from ``rooms`` of ours; sorted by name.

    Imports inside functions count, those made by name at run time cannot be seen. Other libraries are not followed: of them a key
    carries torch's version only.
    """
    home = module.partition(".")[0]
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or not _followed(name, home, rooms) or (path := _file(name)) is None:
            continue
        found[name] = path
        waiting += [name.rpartition(".")[0]] if "." in name else []
        waiting += _imports(name, path) if path.suffix == ".py" else ()
    return sorted(found.items())


def _providers(module: str) -> list[str]:
    """The distributions of a module's top-level package, with versions: all that is known of one in an archive or without sources."""
    names = importlib.metadata.packages_distributions().get(module.partition(".")[0], [])
    return sorted(f"{name} {importlib.metadata.version(name)}" for name in set(names))


def _followed(name: str, home: str, rooms: tuple[str, ...]) -> bool:
    parts = name.split(".")
    if parts[0] == "cglsuite":
        return len(parts) > 1 and parts[1] in rooms
    return parts[0] == home


def _file(name: str) -> Path | None:
    """The source of a module, or the compiled extension that it is, found without importing anything."""
    top, *rest = name.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None:
        return None
    if not rest:
        path = Path(spec.origin or "")
        return path if path.name.endswith(_ENDINGS) and path.is_file() else None
    for folder in spec.submodule_search_locations or ():
        place = Path(folder, *rest)
        for path in (place / "__init__.py", *(place.with_name(place.name + ending) for ending in _ENDINGS)):
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
