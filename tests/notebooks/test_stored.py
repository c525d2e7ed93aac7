"""Notebooks as they are stored: without outputs, with one parameters cell, in step with their reviewable text form."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import pytest

from cglsuite.host import load_catalogue
from cglsuite.reports.rendering.parameters import declared_parameters, model_of, parameter_rows

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(notebook: Any) -> list[tuple[str, str, list[str]]]:
    return [(c.cell_type, c.source, c.metadata.get("tags", [])) for c in notebook.cells]


def test_every_notebook_is_provided() -> None:
    """What is in the folder is in the catalogue, and the catalogue's files exist."""
    catalogue = load_catalogue()
    entries = [e for e in catalogue.entries("notebook") if e.record.distribution == "cglsuite"]
    assert sorted(catalogue.resolve(entry).name for entry in entries) == [path.name for path in NOTEBOOKS]


def test_the_first_cell_installs_what_is_missing() -> None:
    """All notebooks have the same one: on a host without the suite it runs the installer of a checkout beside the notebook."""
    firsts = {next(c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code") for path in NOTEBOOKS}
    (first,) = firsts
    assert 'find_spec("cglsuite") is None' in first
    assert 'run_path("suite/binder/install.py"' in first
    installer = runpy.run_path(str(FOLDER.parent / "binder" / "install.py"))
    listed = installer["packages"]((FOLDER.parent / "requirements.txt").read_text())
    assert listed[0] == "."
    assert {folder.partition("[")[0] for folder in listed[1:]} == {f"plugins/{p.name}" for p in FOLDER.parent.glob("plugins/cglsuite-*")}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_clean_and_in_step(path: Path) -> None:
    """No outputs, no counts, a kernel that everybody has, and the same cells as the text form.

    After editing one: ``jupytext --from py:percent --update --to ipynb --output X.ipynb X.py``, or the other way round.
    """
    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    for cell in stored.cells:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
    assert stored.metadata.kernelspec.name == "python3"
    assert cells(stored) == cells(jupytext.read(path.with_suffix(".py"), fmt="py:percent"))
    assert all(parameter.known for parameter in declared_parameters(stored).values())
    of_code = [cell for cell in stored.cells if "parameters" not in cell.metadata.get("tags", [])]  # these have a line per parameter
    assert all(len(c.source.splitlines()) <= 20 for c in of_code), "a notebook is thin: what is longer belongs into a module"


def assigned(source: str) -> dict[str, tuple[Any, str]]:
    """By name the value that a cell of parameters assigns, and the comment on that line."""
    lines = source.splitlines()
    found = {}
    for statement in ast.parse(source).body:
        assert isinstance(statement, ast.Assign)
        (target,) = statement.targets
        assert isinstance(target, ast.Name)
        found[target.id] = (ast.literal_eval(statement.value), lines[statement.lineno - 1].partition("  # ")[2])
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_head_lists_what_is_declared(path: Path) -> None:
    """The cell of parameters has their names, defaults, sentences and bounds; the demonstrations are the notebooks' own."""
    catalogue = load_catalogue()
    entry = catalogue.get("notebook", path.stem)
    model = model_of(entry)
    assert model is not None
    assert model.notebook == path.stem
    (cell,) = (c.source for c in nbformat.read(path, as_version=4).cells if "parameters" in c.metadata.get("tags", []))
    listed = assigned(cell)
    rows = {name: (takes, default, meaning) for name, takes, default, meaning in parameter_rows(entry, catalogue)}
    assert sorted(listed) == sorted(rows)
    for name, (default, comment) in listed.items():
        takes, declared, meaning = rows[name]
        bounded = any(word in takes for word in ("above", "below", "at least", "at most"))
        assert comment == (f"{meaning}; {takes}" if bounded else meaning), name
        assert name in ("inline", "vary") or default == declared, name
    model.of({name: default for name, (default, _) in listed.items()})
