"""Conformance checks for notebooks: no stored outputs, a paired text form, no unused parameters, and a page without errors."""

from __future__ import annotations

import ast
import os
import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from cglsuite.base.errors import NotApplicable, ReportError
from cglsuite.base.helpers import module_path, run_helper
from cglsuite.graphs.files.named import named
from cglsuite.host import Catalogue, Entry, load_catalogue
from cglsuite.reports.rendering.notebook import RenderedReport, render_notebook
from cglsuite.reports.rendering.parameters import TAG, declared_parameters, model_of
from cglsuite.testing.findings import Check, CheckFailed, CheckReport, OnFinding, examined
from cglsuite.testing.kinds.entries import entry_checks
from cglsuite.testing.staged import notebook_study

_CELL_S, _STUDY_S = 300.0, 300.0
_TEXT_FORM = "create it with `jupytext --to py:percent {name}.ipynb`, and keep both files in sync with `jupytext --sync`"


def examine_notebook(
    name: str, catalogue: Catalogue | None = None, *, on_finding: OnFinding | None = None, only: Sequence[str] = ()
) -> CheckReport:
    """Run all checks of a notebook, or those in ``only``, and return the findings. ``on_finding`` is called with each one immediately."""
    whole = catalogue or load_catalogue()
    entry = whole.get("notebook", name)
    with tempfile.TemporaryDirectory(prefix="cglsuite-check-") as folder:
        return examined(entry, _checks(_Trial(whole, entry, Path(folder))), on_finding, only)


def _checks(trial: _Trial) -> Iterator[Check]:
    yield from entry_checks(trial.catalogue, trial.entry, cited=False)
    yield Check(name="file", action=partial(_file, trial), after="factory")
    yield Check(name="stored clean", action=partial(_clean, trial), after="file")
    yield Check(name="text form", action=partial(_text_form, trial), after="file")
    yield Check(name="parameters", action=partial(_parameters, trial), after="file")
    yield Check(name="runs", action=partial(_runs, trial), after="parameters")
    yield Check(name="page", action=partial(_page, trial), after="runs")


class _Trial:
    """A notebook and a folder for the results of a tiny campaign."""

    def __init__(self, catalogue: Catalogue, entry: Entry, folder: Path) -> None:
        self.catalogue, self.entry, self.folder = catalogue, entry, folder

    @cached_property
    def path(self) -> Path:
        """The notebook's file."""
        path: Path = self.catalogue.resolve(self.entry)
        return path

    @cached_property
    def notebook(self) -> Any:
        """The notebook's content."""
        import nbformat

        return nbformat.read(self.path, as_version=4)  # type: ignore[no-untyped-call]

    @cached_property
    def study(self) -> dict[str, Any]:
        """The inputs for a report on a tiny campaign: the campaign file and a store with its records.

        Raises:
            CheckFailed: the campaign cannot be run.
        """
        campaign, store = self.folder / "tiny.toml", self.folder / "store"
        campaign.write_text(notebook_study.CAMPAIGN.format(plugin=notebook_study.__file__))
        words = ("cglsuite", "run", str(campaign), "--allow-code", "--store", str(store), "--no-reports")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(module_path())}  # for the campaign's workers
        done = run_helper(*words, limit_s=_STUDY_S, cwd=self.folder, env=environment)
        if done.returncode:
            raise CheckFailed(
                f"the tiny campaign cannot be run: {done.stderr.strip()[-300:]}", "make sure that `cglsuite plugins` reports no failures"
            )
        return {"campaign": str(campaign), "store": str(store), "overrides": {}, "device": "cpu", "train_missing": False}

    @cached_property
    def rendered(self) -> RenderedReport:
        """The page for the tiny campaign, or for the default parameters if the notebook does not report on a campaign."""
        offered: dict[str, Any] = {"store": str(self.folder / "store")}
        if "campaign" in declared_parameters(self.notebook):
            offered = self.study
        with named(plugins=[notebook_study.__file__]):  # for the kernel, whenever it loads the catalogue
            page = self.folder / "page.html"
            return render_notebook(self.entry.name, {}, page, catalogue=self.catalogue, offered=offered, cell_timeout_s=_CELL_S)


def _file(trial: _Trial) -> None:
    """Check that the file is a notebook with a Python kernel."""
    import nbformat

    nbformat.validate(trial.notebook)
    kernel = trial.notebook.metadata.get("kernelspec", {}).get("name")
    if kernel != "python3":
        raise CheckFailed(
            f"{trial.path}: the kernel is {kernel!r}; expected 'python3'",
            "select the Python 3 kernel and save the notebook, or write it again with jupytext --update, which keeps the kernel",
        )


def _clean(trial: _Trial) -> None:
    """Check that the notebook is stored without outputs, so that a page shows only results that were computed for it."""
    for number, cell in enumerate(trial.notebook.cells, start=1):
        if cell.get("outputs") or cell.get("execution_count") is not None:
            raise CheckFailed(
                f"{trial.path}: cell {number} has stored outputs; expected none",
                "clear all outputs before saving, or write it with jupytext",
            )


def _text_form(trial: _Trial) -> None:
    """Check that a ``.py`` file with the same name and cells exists next to the notebook, so that changes can be reviewed."""
    text = trial.path.with_suffix(".py")
    advice = _TEXT_FORM.format(name=trial.path.stem)
    if not text.exists():
        raise CheckFailed(f"{text} is missing; expected the cells of {trial.path.name} as Python (py:percent)", advice)
    try:
        import jupytext
    except ImportError:
        raise NotApplicable("jupytext is not installed, which is needed to read the .py file of the notebook") from None
    stored, read = (_cells(notebook) for notebook in (trial.notebook, jupytext.read(text, fmt="py:percent")))
    for number, (a, b) in enumerate(zip(stored, read, strict=False), start=1):
        if a != b:
            raise CheckFailed(f"cell {number} of {trial.path.name} differs from that of {text}", advice)
    if len(stored) != len(read):
        raise CheckFailed(f"{trial.path.name} has {len(stored)} cells and {text} has {len(read)}", advice)


def _cells(notebook: Any) -> list[tuple[str, str, list[str]]]:
    return [(c.cell_type, c.source, c.metadata.get("tags", [])) for c in notebook.cells]


def _parameters(trial: _Trial) -> None:
    """Check that one cell declares parameters as literals, and that later cells use each parameter or read all of them through the spec."""
    try:
        declared = declared_parameters(trial.notebook)
    except ReportError as error:
        raise CheckFailed(
            f"{trial.path}: {error}", f"add the tag {TAG!r} to the cell that assigns the inputs, and to no other cell"
        ) from None
    if computed := [name for name, parameter in declared.items() if not parameter.known]:
        raise CheckFailed(
            f"{trial.path}: the default of {', '.join(computed)} is computed; expected a literal",
            "assign only strings, numbers, lists or dictionaries in the parameters cell, and compute from them in the next cell",
        )
    used = set[str]()
    for cell in trial.notebook.cells:
        if cell.cell_type == "code" and TAG not in cell.metadata.get("tags", []):
            used |= _names(cell.source)
    if (model := model_of(trial.entry)) is not None:
        if model.__name__ not in used:
            fix = f"asked = {model.__name__}.read(globals()) in the next cell"
            raise CheckFailed(f"{trial.path}: no cell reads the parameters with {model.__name__}, which declares them", fix)
        if different := sorted(declared.keys() ^ model.model_fields.keys()):
            raise CheckFailed(
                f"{trial.path}: {', '.join(different)} must be in both the parameters cell and {model.__name__}, but one of them lacks it",
                "use the same names in both",
            )
    elif unused := [name for name in declared if name not in used]:
        raise CheckFailed(f"{trial.path}: no cell uses the parameter {', '.join(unused)}", "use the parameter or remove it")


def _names(source: str) -> set[str]:
    """Return the names that a cell reads, without magics."""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    try:
        tree = ast.parse("\n".join(lines))
    except SyntaxError:
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _runs(trial: _Trial) -> str:
    """Check that Papermill runs the whole notebook, on a tiny campaign if it has a parameter ``campaign``, otherwise with its defaults."""
    if not trial.rendered.done:
        raise CheckFailed(
            f"{trial.path}: {trial.rendered.reason}",
            "run it in Jupyter with `campaign` and `store` set to a small campaign; the page of a failed run shows the traceback",
        )
    return f"{trial.rendered.seconds:.0f} s"


def _page(trial: _Trial) -> None:
    """Check that the page has outputs and none of them is an error."""
    page = trial.rendered.path.read_text(encoding="utf-8")
    if "Traceback (most recent call last)" in page:
        raise CheckFailed(f"{trial.path}: the page shows a traceback", "catch the error in the cell and explain what it means")
    if not any(marker in page for marker in ("<table", "<svg", "<img", "<pre")):
        raise CheckFailed(
            f"{trial.path}: the page has no output", "end a cell with the value that it should show: a table, a figure or text"
        )
