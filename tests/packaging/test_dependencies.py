"""What a distribution declares, it uses: every dependency is imported somewhere in its own code."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECTS = [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]
USED_BY_OTHERS = {"pyarrow": "to_parquet"}
"""Dependencies that no module of ours imports, with the call that needs them."""
MODULES = {"pot": "ot"}
"""Names of modules where the distribution may be missing and its name does not say it."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def owners_of_modules() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


def modules_of(distribution: str) -> set[str]:
    """The top-level modules of a distribution; a guess from its name if it is not installed."""
    found = {module for module, owners in owners_of_modules().items() if distribution in map(normal, owners)}
    return found or {MODULES.get(distribution, distribution.replace("-", "_"))}


def imported(source: str) -> set[str]:
    """The top-level modules that a module imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_every_declared_dependency_is_used(path: Path) -> None:
    declared = tomllib.loads(path.read_text())["project"].get("dependencies", [])
    names = {normal(re.match(r"[A-Za-z0-9._-]+", text)[0]) for text in declared}  # type: ignore[index]
    folder = path.parent / ("cglsuite" if path.parent == ROOT else "src")
    sources = [file.read_text() for file in folder.rglob("*.py")]
    used = set().union(*map(imported, sources))
    foreign = {name for name in names if name.partition("-")[0] != "cglsuite"}  # data of a plugin of ours are used by their names
    idle = {name for name in foreign if not modules_of(name) & used}
    assert {name for name in idle if not any(USED_BY_OTHERS.get(name, "\0") in source for source in sources)} == set()
