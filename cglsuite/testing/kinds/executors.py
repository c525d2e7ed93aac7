"""Conformance checks for executors: every cell runs once, failures affect only their own cell, and finished cells are never lost."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from cglsuite.base.errors import NotApplicable
from cglsuite.base.helpers import Helper, module_path
from cglsuite.campaigns.executors.campaign_run import find_executor
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, Entry, load_catalogue
from cglsuite.testing.findings import Check, CheckFailed, CheckReport, OnFinding, examined
from cglsuite.testing.kinds.entries import entry_checks
from cglsuite.testing.staged.executor_cells import CellsRequest

_LIMIT_S, _END_S, _QUIET_S = 240.0, 60.0, 1.5
_OVERLONG_S, _PAUSE_S = 20.0, 6.0
_LAUNCHER = ("launch", "poll", "cancel")
_RESULTS = ("key", "matrix", "validation_matrix", "per_class", "training", "metrics", "cell", "design")


def examine_executor(
    name: str,
    catalogue: Catalogue | None = None,
    *,
    on_finding: OnFinding | None = None,
    only: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> CheckReport:
    """Run all checks of an executor, or those in ``only``, and return the findings.

    Args:
        on_finding: called with each finding immediately. options: values of the executor's options.
    """
    whole = catalogue or load_catalogue()
    entry = whole.get("executor", name)
    with tempfile.TemporaryDirectory(prefix="cglsuite-check-") as folder:
        return examined(entry, _checks(whole, _Trial(entry, Path(folder), dict(options or {}))), on_finding, only)


def _checks(catalogue: Catalogue, trial: _Trial) -> Iterator[Check]:
    entry: Any = trial.entry
    yield from entry_checks(catalogue, entry, entry.spec.options, cited=False)
    yield Check(name="interface", action=partial(_interface, catalogue, trial), after="factory")
    yield Check(name="runs", action=partial(_runs, trial), after="interface")
    yield Check(name="once", action=partial(_once, trial), after="runs")
    yield Check(name="same bits", action=partial(_same_bits, trial), after="runs")
    yield Check(name="keeps", action=partial(_keeps, trial), after="once")
    yield Check(name="failures", action=partial(_failures, trial), after="runs")
    yield Check(name="interrupt", action=partial(_interrupt, trial), after="runs")


@dataclass
class _Trial:
    """An executor, and a folder for the stores of its runs."""

    entry: Entry
    folder: Path
    options: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def first(self) -> _Run:
        """A run of three cells that succeed."""
        return self.run("first", [{}, {}, {}])

    @cached_property
    def local(self) -> _Run:
        """The same cells run by the suite's local executor. The log path is also the same, since it is one of their settings."""
        (self.folder / "first.log").rename(self.folder / "kept.log")
        local = load_catalogue().get("executor", "local")
        run = _Run(self.request("local", [{}, {}, {}], entry=local, log="first"))
        (self.folder / "first.log").unlink()
        (self.folder / "kept.log").rename(self.folder / "first.log")
        return run.waited()

    def request(self, store: str, cells: Sequence[Mapping[str, Any]], **more: Any) -> CellsRequest:
        """Build the request for a run in the form that the separate process reads."""
        entry, log, timeout_s = more.get("entry", self.entry), more.get("log", store), more.get("timeout_s")
        options = self.options if entry is self.entry else {}
        (self.folder / f"{log}.log").touch()
        return CellsRequest(
            entry=entry, store=self.folder / store, log=self.folder / f"{log}.log", answer=self.folder / f"{store}.json",
            planned=self.folder / f"{store}.keys", cells=cells, options=options, timeout_s=timeout_s,
        )  # fmt: skip

    def run(self, store: str, cells: Sequence[Mapping[str, Any]], **more: Any) -> _Run:
        """Run cells with the executor and wait until it has finished."""
        return _Run(self.request(store, cells, **more)).waited()


class _Run:
    """A running executor in a separate process."""

    def __init__(self, task: CellsRequest) -> None:
        self.request = task
        for written in (task.answer, task.planned):
            written.unlink(missing_ok=True)
        request = task.answer.with_suffix(".asked")
        request.write_bytes(pickle.dumps(task))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(module_path())}  # for the workers that the executor starts
        self.output = task.answer.with_suffix(".out")
        with self.output.open("wb") as output:
            self.process = Helper(
                "cglsuite.testing.staged.executor_cells", str(request), limit_s=2 * _LIMIT_S,
                env=environment, cwd=request.parent, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

    def waited(self, limit_s: float = _LIMIT_S) -> _Run:
        """Wait until the process has ended.

        Raises:
            CheckFailed: it does not end.
        """
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise CheckFailed(
                f"run() has not returned after {limit_s:.0f} s (it printed: {self.printed or 'nothing'})",
                "return when every cell has a record; for an engine, make poll() report the parts that have ended",
            ) from None
        return self

    @property
    def printed(self) -> str:
        """The last line of the process's output."""
        lines = self.output.read_text(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else ""

    @property
    def answer(self) -> dict[str, Any]:
        """The outcome written by the process.

        Raises:
            CheckFailed: the process died or the executor raised an error. NotApplicable: the engine cannot be used on this machine.
        """
        if not self.request.answer.exists():
            raise CheckFailed(
                f"the process that calls run() ended with status {self.process.returncode} (it printed: {self.printed or 'nothing'})",
                "raise an ExecutorError that describes the problem; never end the process",
            )
        answer: dict[str, Any] = json.loads(self.request.answer.read_text())
        if "error" in answer:
            if not answer["launched"] and answer["type"] in ("ExecutorError", "UnreachableError", "UsageError", "SpecError"):
                raise NotApplicable(
                    f"the engine cannot be used on this machine: {answer['error']}; set options with --set "
                    f"run.{self.request.entry.name}.OPTION=VALUE"
                )
            raise CheckFailed(
                f"run() raises {answer['type']}: {answer['error']}",
                "write a record for a cell that fails; raise an error only if no worker can be started",
            )
        return answer

    @property
    def begun(self) -> Counter[int]:
        """How often each cell was started, by cell number."""
        return Counter(int(line) for line in self.request.log.read_text().split())

    @property
    def records(self) -> list[Record | None]:
        """The records of the cells, in order."""
        if not self.request.planned.exists():
            return [None for _ in self.request.cells]
        store = Store(self.request.store)
        return [store.get(key) for key in json.loads(self.request.planned.read_text())]

    @property
    def done(self) -> list[bool]:
        """Whether each cell has a result."""
        return [record is not None and record.done for record in self.records]

    @property
    def leases(self) -> list[str]:
        """The leases that were never released."""
        return sorted(path.name for path in (self.request.store / "leases").glob("*.lease"))


def _interface(catalogue: Catalogue, trial: _Trial) -> None:
    """Check that the factory accepts the declared options and returns an object with the methods of an executor or a launcher."""
    spec: Any = trial.entry.spec
    try:
        executor: Any = find_executor(catalogue, spec.name, trial.options)
    except TypeError as error:
        raise CheckFailed(
            f"{spec.factory} does not accept the declared options ({', '.join(o.name for o in spec.options) or 'none'}): {error}",
            "define the factory with one keyword argument per declared option",
        ) from error
    needed, target = (_LAUNCHER, executor.launcher) if spec.remote else (("run",), executor)
    if missing := [call for call in needed if not callable(getattr(target, call, None))]:
        kind = "a launcher (remote=True)" if spec.remote else "an executor (remote=False)"
        raise CheckFailed(
            f"{spec.factory} returns a {type(target).__name__} without {', '.join(missing)}; expected {kind} with {', '.join(needed)}",
            "implement cglsuite.campaigns.executors.Launcher with remote=True, or cglsuite.campaigns.executors.Executor with remote=False",
        )
    if spec.remote and not isinstance(parts := getattr(target, "parts", None), int):
        raise CheckFailed(
            f"{type(target).__name__}.parts is {parts!r}; expected an int, the maximum number of parts", "set self.parts in __init__"
        )


def _runs(trial: _Trial) -> None:
    """Check that three cells get results and that the number of unfinished cells is returned."""
    run = trial.first
    unfinished, done = run.answer["unfinished"], run.done
    if not all(done):
        reasons = "; ".join(f"{r.status}: {r.reason}" for r in run.records if r is not None and not r.done)
        others = len(Store(run.request.store).keys())
        without = f"no record, {others} under other keys; it returned {unfinished!r} and printed: {run.printed or 'nothing'}"
        raise CheckFailed(
            f"{done.count(False)} of {len(done)} cells have no result after run() ({reasons or without})",
            "start job.words(part) for every part, and return when all of them have ended",
        )
    if unfinished != 0:
        raise CheckFailed(
            f"run() returns {unfinished!r} although every cell is done; expected 0", "return the number of cells without a result"
        )
    if run.leases:
        raise CheckFailed(f"leases remain after run(): {', '.join(run.leases[:3])}", "wait for all workers before run() returns")


def _once(trial: _Trial) -> None:
    """Check that no cell is started twice."""
    if twice := {n: times for n, times in trial.first.begun.items() if times > 1}:
        raise CheckFailed(
            f"{len(twice)} of 3 cells were run more than once (at most {max(twice.values())} times)",
            "assign cells with a lease (Store.lease), or start each part only once: launch() returns the ids of running parts",
        )


def _same_bits(trial: _Trial) -> None:
    """Check that results are bit-identical to those of the local executor."""
    mine, local = ([_results(record) for record in run.records] for run in (trial.first, trial.local))
    for n, (a, b) in enumerate(zip(mine, local, strict=True)):
        if differs := [name for name in a if a[name] != b.get(name)]:
            raise CheckFailed(
                f"cell {n} differs from a local run in {', '.join(differs)}",
                "run cells with the engine's run_cell, with the threads and the device of the request, and do not change "
                "environment variables",
            )


def _results(record: Record | None) -> dict[str, Any]:
    if record is None:
        return {}
    whole = record.to_json()
    return {name: whole[name] for name in _RESULTS}


def _keeps(trial: _Trial) -> None:
    """Check that a second run on the same store does not run any cell."""
    begun = trial.first.begun
    again = trial.run("first", [{}, {}, {}])
    if again.answer["unfinished"] != 0 or again.begun != begun:
        raise CheckFailed(
            f"a second run on the same store starts {(again.begun - begun).total()} cells and returns {again.answer['unfinished']!r}; "
            "expected no cells and 0",
            "skip cells with a finished record: store.cached(key) is not None",
        )


def _failures(trial: _Trial) -> None:
    """Check that a cell that fails, kills its process or takes too long is recorded and affects no other cell."""
    cells = [{}, {"behave": "raise"}, {"behave": "kill"}, {"behave": "hang"}, {}]
    run = trial.run("failures", cells, timeout_s=_OVERLONG_S)
    came = ["no record" if r is None else r.status for r in run.records]
    expected = ["done", "failed", "failed", "timeout", "done"]
    names = ("a good cell", "a cell that fails", "a cell that kills its process", "a cell that takes too long", "a good cell after these")
    wrong = [f"{name}: {b}, expected {a}" for name, a, b in zip(names, expected, came, strict=True) if a != b]
    if wrong:
        raise CheckFailed("; ".join(wrong), "run cells in worker processes, monitor them, and write a failure record if a worker dies")
    if run.answer["unfinished"] != 3:
        raise CheckFailed(
            f"run() returns {run.answer['unfinished']!r} although 3 cells have no result", "return the number of cells without a result"
        )


def _interrupt(trial: _Trial) -> None:
    """Check that Ctrl-C ends the run: workers stop, finished cells remain, and the next run computes only the missing cells."""
    cells = [{}, {"seconds": _PAUSE_S}, {"seconds": _PAUSE_S}]
    run, deadline = _Run(trial.request("interrupt", cells)), time.monotonic() + _LIMIT_S
    while not (run.done[0] and run.begun.total() > 1):
        if run.process.poll() is not None or time.monotonic() > deadline:
            run.waited(0.1)
            run.answer  # noqa: B018 - raises what went wrong
            raise CheckFailed("run() returned before all cells were done", "wait for all cells")
        time.sleep(0.1)
    run.process.send_signal(signal.SIGINT)
    try:
        run.waited(_END_S)
    except CheckFailed:
        raise CheckFailed(
            f"run() has not returned {_END_S:.0f} s after Ctrl-C",
            "stop the workers and then re-raise KeyboardInterrupt; for an engine, make cancel() end its parts",
        ) from None
    time.sleep(_QUIET_S)
    begun = run.begun
    if not run.done[0]:
        raise CheckFailed("a cell that was done before Ctrl-C has no result afterwards", "do not remove records")
    time.sleep(_QUIET_S)
    if run.begun != begun:
        raise CheckFailed(
            "cells are still started after run() has returned on Ctrl-C", "stop all workers before re-raising KeyboardInterrupt"
        )
    finished = run.done
    rest = trial.run("interrupt", cells)
    if rest.answer["unfinished"] != 0:
        raise CheckFailed(
            f"the run after Ctrl-C returns {rest.answer['unfinished']!r}; expected 0", "run all cells without a finished record"
        )
    if any(rest.begun[n] != 1 for n, done in enumerate(finished) if done):
        raise CheckFailed("the run after Ctrl-C repeats a finished cell", "skip cells with a finished record")
