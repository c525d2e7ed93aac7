"""Progress: task, epoch, cells and time left. In a notebook one line of text that changes in place and stays; no flood around it."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from cglsuite.campaigns.executors import progress
from cglsuite.cells.observing import Epoch, ObservedCell

# Fewer messages than a socket of a kernel holds (a thousand): to a slow reader it loses the others, the last one among them.
MANY = """
import logging
from cglsuite.campaigns.executors import progress
from cglsuite.campaigns.executors.progress import CellProgress
progress.NOTEBOOK_EVERY_S = 0.0
log = logging.getLogger("cglsuite.campaigns.executors.supervisor")
with CellProgress(200, "demo") as shown:
    for n in range(200):
        shown.working(str(n), f"ewc task {n % 3}/3", 0.5)
        if n % 2:
            log.warning("cell %s failed", n)
        shown.finished("failed" if n % 2 else "done", str(n))
        shown.tick()
"""
REAL = """
from pathlib import Path
import fake_cells
from cglsuite.cells.plan import CellRequest, plan_cell
from cglsuite.cells.storage.store import Store
from cglsuite.campaigns.executors import LocalExecutor, RunOptions
from cglsuite.specs import Seeds
catalogue = fake_cells.FakeCatalogue()
requests = [CellRequest(scenario="toy/task-il@begin-1", method="bare", overrides={}, seeds=Seeds(init=i)) for i in range(2)]
cells = [plan_cell(request, catalogue) for request in requests]
first = LocalExecutor().run(cells, Store("store"), RunOptions(catalogue=catalogue, label="real"))
again = LocalExecutor().run(cells, Store("store"), RunOptions(catalogue=catalogue, label="again"))
"""
TASKS = """
from cglsuite.cells import CellOptions, run_cell, resolve_cell, Store
from cglsuite.campaigns.executors.progress import EpochProgress
from cglsuite.testing import tiny_catalogue
catalogue = tiny_catalogue()
cell = resolve_cell(catalogue, "testing-nodes/class-il@testing-1", "testing-fine-tuning", overrides={"training.epochs": 2})
record = run_cell(cell, catalogue, Store("cells"), CellOptions(observers=[EpochProgress("ewc")]))
assert record.done, record.reason
"""
SHOWN = """
import sys
from cglsuite import load_catalogue
print("torch" in sys.modules)
load_catalogue(entry_points=[])
"""


LOST = """
kernel = get_ipython().kernel
publish = kernel._publish_status
def lose_the_next_idle(status, *a, **k):
    if status == "idle":
        kernel._publish_status = publish
    else:
        publish(status, *a, **k)
kernel._publish_status = lose_the_next_idle
"""


def executed(folder: Path, *sources: str, patience_s: int = 30) -> list[list[Any]]:
    """The outputs of each cell of a notebook that was run, saved and read again.

    A blocking manager would wait in the event loop: a lost message would then stop the run, and its limits, for ever.
    """
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    with tempfile.TemporaryDirectory(prefix="cgl-") as sockets:  # ports could be taken by another kernel between their choice and their use
        kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=f"{sockets}/k")
        where = {"metadata": {"path": str(folder)}}
        NotebookClient(notebook, km=kernel, timeout=100, iopub_timeout=patience_s, resources=where).execute(cleanup_kc=True)
    nbformat.write(notebook, folder / "saved.ipynb")
    return [cell.outputs for cell in nbformat.read(folder / "saved.ipynb", as_version=4).cells]


@pytest.mark.notebook
def test_progress_in_a_notebook_is_one_line_of_text_that_stays(tmp_path: Path) -> None:
    many, real, shown, tasks = executed(tmp_path, MANY, REAL, SHOWN, TASKS)
    (line,) = [o for o in many if o.output_type == "display_data"]
    assert line.data.keys() == {"text/plain"}
    assert line.data["text/plain"].startswith("demo ████████████████████ 200 of 200 cells, 100 failed, 0:")
    message = "".join(o.text for o in many if o.output_type == "stream").splitlines()
    assert message == [f"cell {n} failed" for n in range(1, 41, 2)] + ["80 further warnings are not shown; the reasons are in the records"]
    # What is cached already is not counted again: the second run has nothing to show.
    (line,) = real
    assert line.data["text/plain"].startswith("real ████████████████████ 2 of 2 cells, 0:")
    (line,) = tasks
    assert line.data["text/plain"].startswith("ewc ████████████████████ task 3/3, 0:")
    printed, catalogue = shown
    assert printed.text == "False\n"  # nor do progress and the executor import torch
    assert "Catalogue of 0 plugins" in catalogue.data["text/html"]


@pytest.mark.notebook
def test_a_lost_message_of_the_kernel_does_not_stop_a_run(tmp_path: Path) -> None:
    lost, after = executed(tmp_path, LOST, "1 + 1", patience_s=2)
    assert lost == []
    assert after[0].data["text/plain"] == "2"


@pytest.mark.notebook
def test_outside_a_kernel_nothing_is_displayed(monkeypatch: pytest.MonkeyPatch) -> None:
    import IPython

    assert not progress._in_notebook_kernel()
    monkeypatch.setattr(IPython, "get_ipython", lambda: object())  # a shell on a terminal has no kernel
    assert not progress._in_notebook_kernel()


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


class Time:
    """A clock that is set by hand."""

    now = 0.0

    @classmethod
    def monotonic(cls) -> float:
        return cls.now


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error is a terminal from here on, and the time is 0. (Pytest replaces it between a fixture and its test.)"""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "time", Time)
    monkeypatch.setattr(Time, "now", 0.0)
    return shown


def observed(*epochs: int, task_free: bool = False) -> ObservedCell:
    spec: Any = SimpleNamespace(scenario=SimpleNamespace(task_free=task_free or None))
    return ObservedCell("0" * 64, spec, epochs)


def test_a_cell_shows_task_epoch_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the epochs behind it; a task that stops early counts as a whole, and what checkpoints cover took no time."""
    terminal = on_a_terminal(monkeypatch)
    cell, shown = observed(0, 10, 10), progress.EpochProgress("ewc")
    shown.stream_built(cell)
    Time.now = 1.0
    shown.epochs_ended(cell, [Epoch(1, 1, 0.5, None)])
    assert terminal.getvalue().rstrip().endswith("| task 1/2, epoch 1/10, 0:01")  # too early to tell
    Time.now = 60.0
    shown.epochs_ended(cell, [Epoch(1, 4, 0.5, None), Epoch(1, 5, 0.5, None)])
    assert "ewc  25% |" in terminal.getvalue()
    assert terminal.getvalue().rstrip().endswith("task 1/2, epoch 5/10, 1:00, about 3:00 left")
    shown.task_ended(cell, 1, [0.5, 0.0])
    assert terminal.getvalue().rstrip().endswith("task 1/2, 1:00, about 1:00 left")
    shown.cell_ended(cell, None)
    resumed, cell.covered, Time.now = progress.EpochProgress("ewc"), 1, 100.0
    resumed.stream_built(cell)
    resumed.task_ended(cell, 1, [0.5, 0.0])
    Time.now = 110.0
    resumed.epochs_ended(cell, [Epoch(2, 5, 0.5, None)])
    assert terminal.getvalue().rstrip().endswith("task 2/2, epoch 5/10, 0:10, about 0:10 left")
    resumed.close()


def test_a_campaign_shows_cells_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of running cells count; a cell that is given back no longer does."""
    terminal = on_a_terminal(monkeypatch)
    with progress.CellProgress(4, "demo") as shown:
        shown.finished("done", "a")
        shown.working("b", "ewc task 1/2, epoch 5/10", 0.5)
        shown.working("c", "bare task 2/2, epoch 5/10", 0.5)
        Time.now = 3600.0
        shown.tick()
        assert terminal.getvalue().rstrip().endswith("1 of 4 cells, 1:00:00, about 1:00:00 left, bare task 2/2, epoch 5/10")
        shown.left("c")
        shown.tick()
        assert "about 1:40:00 left" in terminal.getvalue()


def test_there_is_nothing_to_see_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not progress.visible()
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert progress.visible()


@pytest.mark.parametrize(("columns", "drawn"), [(0, {"ncols": 80}), (100, {"dynamic_ncols": True})])
def test_a_terminal_that_says_no_width_has_eighty_columns(monkeypatch: pytest.MonkeyPatch, columns: int, drawn: dict[str, Any]) -> None:
    """The bug: on a terminal of width 0 nothing was shown."""
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(fileno=lambda: 2))
    monkeypatch.setattr("os.get_terminal_size", lambda descriptor: SimpleNamespace(columns=columns))
    assert progress._width() == drawn
