"""The parameters that a notebook declares in its cell tagged ``parameters``, and a check of given values before anything runs."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cglsuite.base.errors import ReportError, UnknownNameError

if TYPE_CHECKING:
    from nbformat import NotebookNode

__all__ = ["TAG", "Parameter", "check_parameters", "declared_parameters", "shown_path"]

TAG = "parameters"
_UNKNOWN = object()


@dataclass(frozen=True)
class Parameter:
    """One declared parameter; ``known`` says whether its default is a literal, which ``default`` then holds."""

    name: str
    default: Any
    known: bool


def declared_parameters(notebook: NotebookNode) -> dict[str, Parameter]:
    """The names that the cell tagged ``parameters`` assigns, in order.

    Raises:
        ReportError: the notebook has no such cell or several of them, or the cell is not Python.
    """
    cells = [c for c in notebook.cells if c.cell_type == "code" and TAG in c.metadata.get("tags", [])]
    if len(cells) != 1:
        raise ReportError(f"the notebook has {len(cells)} code cells tagged {TAG!r}: expected exactly one, which declares its parameters")
    try:
        body = ast.parse(cells[0].source).body
    except SyntaxError as error:
        raise ReportError(f"the cell tagged {TAG!r} is not Python: {error}") from error
    declared = {}
    for statement in body:
        for name, value in _assignments(statement):
            default = _literal(value)
            declared[name] = Parameter(name, None if default is _UNKNOWN else default, default is not _UNKNOWN)
    return declared


def _assignments(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
        return [(statement.target.id, statement.value)]
    if isinstance(statement, ast.Assign):
        return [(t.id, statement.value) for t in statement.targets if isinstance(t, ast.Name)]
    return []


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return _UNKNOWN


def check_parameters(declared: Mapping[str, Parameter], given: Mapping[str, Any], notebook: str) -> dict[str, Any]:
    """The given parameters, if ``notebook`` declares them, they are JSON, and of the type of their defaults.

    One text where a list of texts is expected becomes a list of one (``-p methods bare``).

    Papermill only logs a misspelt parameter and runs with the default, so the report would show something else than requested.

    Raises:
        UnknownNameError: an undeclared name; the message suggests the nearest.
        ReportError: a value that JSON cannot represent, or of another type than the default.
    """
    checked = dict(given)
    for name, value in given.items():
        where = f"parameter {name!r} of notebook {notebook!r}"
        if name not in declared:
            raise UnknownNameError(f"parameter of notebook {notebook!r}", name, declared)
        _require_json(value, where)
        parameter = declared[name]
        if parameter.known and isinstance(value, str) and _of_texts(parameter.default):
            checked[name] = [value]
        elif parameter.known and not _fits(value, parameter.default):
            wanted = type(parameter.default).__name__
            raise ReportError(f"{where} = {value!r}: expected {wanted}, like its default {parameter.default!r}")
    return checked


def _of_texts(default: Any) -> bool:
    return isinstance(default, list) and bool(default) and all(isinstance(item, str) for item in default)


def _require_json(value: Any, where: str) -> None:
    if value is None or isinstance(value, (bool, int, str)):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ReportError(f"{where} is {value}: JSON cannot represent it")
        return
    if isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _require_json(item, f"{where}, item {i}")
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ReportError(f"{where} has the key {key!r}: the keys of a table are text")
            _require_json(item, f"{where}, key {key!r}")
        return
    known = "text, numbers, true or false, null, lists, tables"
    raise ReportError(f"{where} is a {type(value).__name__} ({value!r:.80}): expected a JSON value ({known})")


def _fits(value: Any, default: Any) -> bool:
    if default is None or value is None:
        return True
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, (int, float))
    if isinstance(default, (list, tuple)):
        return isinstance(value, (list, tuple))
    return isinstance(value, type(default))


def shown_path(path: Path) -> str:
    """Relative to the current folder if inside it: pages should not reveal paths of the machine that rendered them."""
    absolute = path.absolute()
    return str(absolute.relative_to(Path.cwd())) if absolute.is_relative_to(Path.cwd()) else str(absolute)
