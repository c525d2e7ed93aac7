"""Notebooks rendered in this process, without a kernel: for tests of what a notebook shows, and of what is done with pages.

A kernel and its rendering process take seconds, most of them for imports that this process has behind it. They have tests of their own, in
``tests/reports/rendering/test_faults.py``.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import threading
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from cglsuite.reports.rendering import child, notebook
from cglsuite.reports.rendering.job import Job, Outcome

if TYPE_CHECKING:
    from nbformat import NotebookNode

__all__ = ["no_kernel"]

_ONE = threading.Lock()
"""What cells print goes to the stdout of the process: one notebook at a time."""


@pytest.fixture
def no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notebooks are rendered here."""
    from cglsuite.reports.rendering import child as execution

    monkeypatch.setattr(notebook, "in_process", _render)
    monkeypatch.setattr(execution, "execute", _execute)


def _render(job: Job, _: threading.Event, computed: object = None) -> Outcome:
    """Here a page computes for itself what a command had ready."""
    with _ONE:
        return child.render(Job.from_json(job.to_json()))


def _execute(stored: NotebookNode, parameters: Mapping[str, Any], **_: Any) -> NotebookNode:
    from papermill.iorw import load_notebook_node
    from papermill.parameterize import parameterize_notebook

    from cglsuite.reports.rendering import child as execution

    whole = load_notebook_node(stored)
    executed: NotebookNode = parameterize_notebook(whole, dict(parameters), kernel_name=execution.KERNEL, language="python")
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate((c for c in executed.cells if c.cell_type == "code" and c.source.strip()), 1):
        try:
            cell.outputs = _run(cell.source, names)
        except Exception as error:
            raise execution.NotebookFailure(f"{type(error).__name__}: {error}", number, cell.source, traceback.format_exc()) from error
    return executed


def _run(source: str, names: dict[str, Any]) -> list[NotebookNode]:
    """The outputs of a cell: what it prints, and its last line if that is an expression."""
    from IPython.core.formatters import DisplayFormatter
    from nbformat.v4 import new_output

    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    said, value = io.StringIO(), None
    with contextlib.redirect_stdout(said):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    printed = [new_output("stream", name="stdout", text=said.getvalue())] if said.getvalue() else []  # type: ignore[no-untyped-call]
    if value is None:
        return printed
    data, metadata = DisplayFormatter().format(value)  # type: ignore[no-untyped-call]
    data = {kind: base64.b64encode(one).decode() if isinstance(one, bytes) else one for kind, one in data.items()}
    return [*printed, new_output("display_data", data=data, metadata=metadata)]  # type: ignore[no-untyped-call]
