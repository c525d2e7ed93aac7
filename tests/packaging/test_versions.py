"""One version for the core and the built-in plugins, honest metadata, and entry points that resolve."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = sorted([ROOT / "pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml")])
IDS = [path.parent.name if path.parent != ROOT else "cglsuite" for path in PROJECTS]


def read(path: Path) -> dict[str, Any]:
    """A parsed TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


CORE = read(ROOT / "pyproject.toml")["project"]


def test_the_module_says_the_version_of_its_distribution() -> None:
    cglsuite = importlib.import_module("cglsuite")
    assert cglsuite.__version__ == CORE["version"] == importlib.metadata.version("cglsuite")


@pytest.mark.parametrize("path", PROJECTS, ids=IDS)
def test_every_package_has_the_version_python_and_licence_of_the_core(path: Path) -> None:
    project = read(path)["project"]
    for key in ("version", "requires-python", "license", "license-files", "authors"):
        assert project[key] == CORE[key], f"{path}: {key}"
    assert (path.parent / "LICENSE").read_text(encoding="utf-8") == (ROOT / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PROJECTS, ids=IDS)
def test_a_plugin_asks_for_exactly_this_core_and_for_nothing_older_than_the_core_does(path: Path) -> None:
    wanted = {canonicalize_name(r.name): str(r.specifier) for r in map(Requirement, read(path)["project"]["dependencies"])}
    core = {canonicalize_name(r.name): str(r.specifier) for r in map(Requirement, CORE["dependencies"])}
    assert wanted.pop("cglsuite", None) == (None if path.parent == ROOT else f"=={CORE['version']}")
    assert wanted == {name: core.get(name, bound) for name, bound in wanted.items()}


def test_every_plugin_is_an_extra_of_the_core_and_all_is_what_a_checkout_installs() -> None:
    extras = CORE["optional-dependencies"]
    plugins = [path.parent.name for path in PROJECTS if path.parent != ROOT]
    assert {name: extras[name.removeprefix("cglsuite-")] for name in plugins} == {name: [f"{name}=={CORE['version']}"] for name in plugins}
    everything, molecules = map(Requirement, extras["all"])
    assert everything.extras == {name.removeprefix("cglsuite-") for name in plugins}
    assert str(molecules) == f"cglsuite-graph[molecules]=={CORE['version']}"  # tests/packaging/test_readme.py: as in requirements.txt


def test_citation_and_changelog_carry_the_version() -> None:
    assert re.search(rf"^version: {re.escape(CORE['version'])}$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == CORE["version"]


def test_constraints_pin_everything_that_is_asked_for_within_its_bounds() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    for path in PROJECTS:
        content = read(path)
        extras = content["project"].get("optional-dependencies", {}).values()
        asked = [*content["build-system"]["requires"], *content["project"]["dependencies"], *(r for extra in extras for r in extra)]
        for requirement in map(Requirement, asked):
            name = canonicalize_name(requirement.name)
            if not name.startswith("cglsuite"):
                assert requirement.specifier.contains(pins[name]), f"{requirement} against {name}=={pins[name]}"


def test_what_is_pinned_is_what_is_tested() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    for name in ("torch", "torch-geometric", "numpy", "pandas", "pluggy", "papermill"):
        public = importlib.metadata.version(name).partition("+")[0]
        assert public == pins[name], f"{name} {public} is installed and {pins[name]} is pinned: was `-c constraints.txt` left out?"


@pytest.mark.parametrize("path", PROJECTS, ids=IDS)
def test_entry_points_are_installed_as_declared_and_resolve(path: Path) -> None:
    project = read(path)["project"]
    try:
        distribution = importlib.metadata.distribution(project["name"])
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{project['name']} is not installed here")
    declared = {(group, name, value) for group, entries in project["entry-points"].items() for name, value in entries.items()}
    declared |= {("console_scripts", name, value) for name, value in project.get("scripts", {}).items()}
    assert {(e.group, e.name, e.value) for e in distribution.entry_points} == declared
    for entry_point in distribution.entry_points:
        assert entry_point.load() is not None
