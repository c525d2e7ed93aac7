"""Cells with behaviour prescribed by a check of executors, and the process in which an executor runs them.

The process is separate, so that the check can interrupt it and survives an executor that hangs. It receives the executor's spec as data.
Cells are real cells on a tiny stream. This module is also the plugin file that provides the stream and the cells' method to workers, since
plans list plugin files.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cglsuite import DatasetSpec, Hyperparameter, MethodSpec, ScenarioSpec, hookimpl, load_catalogue
from cglsuite.base.atomic import write_atomic
from cglsuite.campaigns.executors import RunOptions
from cglsuite.campaigns.executors.campaign_run import find_executor
from cglsuite.cells.plan import CellRequest, Limits, PlannedCell, plan_cells
from cglsuite.cells.storage.store import Store
from cglsuite.graphs.files.named import naming
from cglsuite.host import Catalogue, Entry
from cglsuite.learning.method import Method
from cglsuite.specs import KINDS, Seeds
from cglsuite.testing.streams import tiny_scenarios, tiny_specs

_NAME = "testing-obedient"
_STREAM = "testing-nodes/task-il@testing-1"


class Obedient(Method):
    """Plain training that records its start in a file and then waits, fails, dies or hangs, depending on its hyperparameters."""

    def setup(self) -> None:
        values = self.hyperparameters
        with open(str(values["log"]), "a") as log:
            log.write(f"{values['number']}\n")
        time.sleep(float(values["seconds"]))
        behave = values["behave"]
        if behave == "raise":
            raise RuntimeError("this cell fails on purpose")
        if behave == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if behave == "hang":
            time.sleep(3600.0)


@hookimpl
def cglsuite_datasets() -> list[DatasetSpec]:
    """The datasets of the tiny scenarios."""
    return [spec for spec in tiny_specs() if isinstance(spec, DatasetSpec)]


@hookimpl
def cglsuite_scenarios() -> list[ScenarioSpec]:
    """The scenario of the cells."""
    return [spec for spec in tiny_scenarios() if spec.name == _STREAM]


@hookimpl
def cglsuite_methods() -> list[MethodSpec]:
    """The method with prescribed behaviour."""
    return [
        MethodSpec(
            name=_NAME,
            summary="plain training that waits, fails, dies or hangs as it is asked",
            factory="cglsuite.testing.staged.executor_cells:Obedient",
            hyperparameters=(
                Hyperparameter(name="number", default=0, doc="what it writes to the log"),
                Hyperparameter(name="log", default="", doc="path of the log"),
                Hyperparameter(name="seconds", default=0.0, minimum=0, doc="how long it waits before it trains"),
                Hyperparameter(name="behave", default="ok", choices=("ok", "raise", "kill", "hang"), doc="what it does then"),
            ),
        )
    ]


@dataclass(frozen=True, kw_only=True)
class CellsRequest:
    """The description of one run of an executor.

    Args:
        entry: the executor's entry. options: arguments for its factory. store: the folder of records. log: the file that cells write to.
        cells: the hyperparameters of :class:`Obedient` for each cell. The index of a cell is its number.
        answer: path of the JSON file for the outcome. planned: path of the file with the cells' keys, written before the run.
    """

    entry: Entry
    store: Path
    log: Path
    answer: Path
    planned: Path
    cells: Sequence[Mapping[str, Any]]
    options: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 2
    timeout_s: float | None = None


def catalogue_with(entry: Entry) -> Catalogue:
    """Return a catalogue with this entry and this plugin file. The file is registered for this process and its children."""
    naming(plugins=[__file__])
    whole = load_catalogue()
    entries = [e for kind in KINDS for e in whole.entries(kind) if (kind, e.name) != (entry.kind, entry.name)]
    return Catalogue([*whole.records, entry.record], [*entries, entry])


def cells_of(request: CellsRequest, catalogue: Catalogue) -> list[PlannedCell]:
    """Return the planned cells. The same settings give the same keys."""
    requests = [
        CellRequest(
            scenario=_STREAM,
            method=_NAME,
            overrides={"training.epochs": 2, "method.number": n, "method.log": str(request.log)}
            | {f"method.{name}": value for name, value in settings.items()},
            seeds=Seeds(init=n),
        )
        for n, settings in enumerate(request.cells)
    ]
    return plan_cells(requests, catalogue)


def main() -> None:
    """Run the request from the file given by the first argument and write the outcome: the number of unfinished cells, or the error."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    request: CellsRequest = pickle.loads(Path(sys.argv[1]).read_bytes())  # written by the check itself
    launched: list[object] = []
    answer: dict[str, Any]
    try:
        whole = catalogue_with(request.entry)
        cells = cells_of(request, whole)
        write_atomic(request.planned, json.dumps([cell.key for cell in cells]).encode())
        executor = find_executor(whole, request.entry.name, request.options)
        with _record_launches(executor, launched):
            limits = Limits(timeout_s=request.timeout_s)
            options = RunOptions(catalogue=whole, workers=request.workers, limits=limits, share_prefixes=False, progress=False)
            answer = {"unfinished": executor.run(cells, Store(request.store), options)}
    except KeyboardInterrupt:
        answer = {"interrupted": True}
    except Exception as error:  # noqa: BLE001 - the check detects errors of executors
        from cglsuite.testing.findings import error_text

        answer = {"error": error_text(error), "type": type(error).__name__, "launched": bool(launched)}
    request.answer.write_text(json.dumps(answer))


@contextlib.contextmanager
def _record_launches(executor: Any, launched: list[object]) -> Iterator[None]:
    """Record whether an engine's launcher has started anything."""
    launcher = getattr(executor, "launcher", None)
    if launcher is None:
        launched.append(executor)
        yield
        return
    launch = launcher.launch

    def noted(*args: Any, **kwargs: Any) -> Any:
        ids = launch(*args, **kwargs)
        launched.append(ids)
        return ids

    launcher.launch = noted
    yield


if __name__ == "__main__":
    main()
