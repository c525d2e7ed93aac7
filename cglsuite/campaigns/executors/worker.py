"""Run every cell in a plan that no other process has run or is running.

``python -m cglsuite.campaigns.executors.worker PLAN --store DIR``

Any number of workers can run, on any machine that has access to the store; the store's leases are their only coordination. A supervisor
(:mod:`cglsuite.campaigns.executors.supervisor`) reads events about every cell from a pipe, and holds the worker's standard input as a
lifeline.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import itertools
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cglsuite import host
from cglsuite.base.errors import CglsuiteError, StoreError, UsageError
from cglsuite.base.traces import adopt_orphans, end_process, end_with_parent
from cglsuite.campaigns.executors.base import AGAIN
from cglsuite.cells.code.inputs import declare, watch
from cglsuite.cells.code.user import is_user_module
from cglsuite.cells.job import job_facts
from cglsuite.cells.observing import Observers, Sender
from cglsuite.cells.obtain import failure_record, run_if_free
from cglsuite.cells.plan import CellOptions, CellRequest, PlanFile, PlannedCell, plan_cell
from cglsuite.cells.portable import in_force
from cglsuite.cells.records.record import Record, reason_of
from cglsuite.cells.storage.lease import TaskElsewhere
from cglsuite.cells.storage.store import Store
from cglsuite.cells.task_sharing import Family, depth_first, foreseen_tasks
from cglsuite.host.frozen import Bundle, serve

if TYPE_CHECKING:
    from cglsuite.host import Catalogue


Emit = Callable[..., None]
STORE_FAULT = 74  # EX_IOERR
GUARD_S = 3.0
logger = logging.getLogger("cglsuite.worker")


class _Worn(Exception):
    """Raised when this process must not run another cell."""


class Worker:
    """Runs cells from a plan until none is left that it can lease and that may run in this process.

    A method can change anything in its process and thereby corrupt later cells. Therefore, cells with third-party code run only after cells
    that use the suite's code alone or the same third-party distributions, and no cell runs after one that left the process in an unclean
    state.

    Args:
        share: ``(i, n)``: this is the i-th of n workers. It starts with its own part of the plan, where neighbouring cells share datasets
            and task prefixes, and then helps with the other parts, starting from their ends.
        since_ns: cells with a record later than this time have already been attempted in this run.
    """

    def __init__(self, plan: PlanFile, store: Store, emit: Emit, *, share: tuple[int, int] = (0, 1), since_ns: int = 0) -> None:
        self.plan, self.store, self.emit, self.share, self.since_ns = plan, store, emit, share, since_ns
        self.requests = dict(plan.cells)
        self.planned: dict[str, PlannedCell] = {}
        self.families: dict[str, Family] = {}
        self.foreign = ""
        self.worn: set[str] = set()

    def run(self) -> bool:
        """Go through the plan repeatedly until a pass runs no cell. Return whether another process must be started for the remaining
        cells."""
        catalogue = host.load_catalogue()
        left = self._route(catalogue)
        try:
            while left:
                held = [key for key in left if not self._take(catalogue, key, self.requests[key])]
                if len(held) == len(left):
                    return any(self._is_strange(key) for key in held)
                left = held
        except _Worn:
            return True
        return False

    def _is_strange(self, key: str) -> bool:
        """Return whether this process has run foreign code other than the cell's, or has different numerics."""
        unlike = in_force() != (self.requests[key].numerics == "portable")
        return unlike or self.foreign not in ("", self.plan.foreign.get(key, ""))

    def _route(self, catalogue: Catalogue) -> list[str]:
        """Return the keys of the plan in this worker's order: its own part first, families depth first."""
        paths = {key: self._foreseen(catalogue, key) for key in self.plan.sharing}
        for key, name in self.plan.sharing.items():
            self.families.setdefault(name, Family({})).paths[key] = paths[key]
        keys = depth_first([key for key, _ in self.plan.cells], self.plan.sharing, paths)
        index, n_workers = self.share
        bounds = [len(keys) * i // n_workers for i in range(n_workers + 1)]
        stretches = [keys[a:b] for a, b in itertools.pairwise(bounds)]
        others = [key for stretch in stretches[index + 1 :] + stretches[:index] for key in reversed(stretch)]
        return stretches[index] + others

    def _foreseen(self, catalogue: Catalogue, key: str) -> Sequence[str] | None:
        """Return the tasks of a cell of a family, and keep the resolved cell. Its errors are reported when it is run."""
        _limit_threads(self.requests[key])
        with contextlib.suppress(CglsuiteError):
            planned = self.planned[key] = plan_cell(self.requests[key], catalogue)
            return None if planned.cell is None else foreseen_tasks(planned.cell)
        return None

    def _shared_tasks(self, key: str) -> Callable[[], int]:
        """Return a function for the length of the longest task prefix shared with an unfinished cell of the plan; 0 for cells without a
        family."""
        name = self.plan.sharing.get(key)
        if name is None:
            return lambda: 0
        return lambda: self.families[name].shared_tasks(key, lambda other: not self.store.attempted_since(other, self.since_ns))

    def _take(self, catalogue: Catalogue, key: str, request: CellRequest) -> bool:
        """Return whether ``key`` is settled because it has been run, here or elsewhere. False while another runner holds it, or if it must
        not run in this process."""
        record = self.store.outcome(key, self.since_ns)
        if record is None:
            if self._is_strange(key) or not self.store.discard_stale_lease(key):
                return False
            try:
                record = self._run(catalogue, key, request)
            except StoreError:
                raise
            except CglsuiteError as error:
                # The planner resolved the same request, so a different result means that the plugins differ.
                self.emit("refused", key=key, reason=str(error))
                return True
            if record is None:
                return False
        self.emit("end", key=key, status=record.status, reason=record.reason)
        if key in self.worn:
            raise _Worn
        return True

    def _run(self, catalogue: Catalogue, key: str, request: CellRequest) -> Record | None:
        planned = self.planned.pop(key, None) or plan_cell(request, catalogue)
        cell = planned.cell
        if cell is None or planned.key != key:
            raise CglsuiteError(
                planned.reason or f"this worker's plugins or versions give the cell another key ({planned.key[:12]}, planned {key[:12]})"
            )
        _limit_threads(request)

        def begin() -> None:
            self.foreign = self.plan.foreign.get(key, "") or self.foreign
            self.emit("start", key=key)

        def failed(error: Exception) -> Record:
            # The cell boundary: an error that run_cell does not expect affects only this cell.
            logger.info("cell %s", key, exc_info=error)
            record = failure_record(cell, catalogue, key=key, status="failed", reason=reason_of(error, place=False))
            self.store.put(record)
            if not isinstance(error, UsageError) or self.plan.foreign.get(key):
                self.worn.add(key)  # the process may be in any state now, unless the suite refused to build a stream
            return record

        try:
            record = run_if_free(
                planned,
                catalogue,
                self.store,
                CellOptions(
                    progress=lambda task, n_tasks: self.emit("task", key=key, task=task, of=n_tasks),
                    observers=Observers([Sender(self.emit)]),
                    checkpoint_every_s=self.plan.limits.checkpoint_every_s,
                    shared_tasks=self._shared_tasks(key),
                ),
                since_ns=self.since_ns,
                on_start=begin,
                on_error=failed,
            )
        except TaskElsewhere as held:
            logger.info("cell %s is left for later: %s", key[:12], held)
            self.emit("held", key=key)
            if self.plan.foreign.get(key):  # code that was interrupted may have left anything in the process
                raise _Worn from None
            return None
        if record is not None and record.provenance.get("unclean"):
            self.worn.add(key)
        return record


def _limit_threads(request: CellRequest) -> None:
    """Limit the threads of numerical libraries, which read their limits when they are loaded, that is, by the first cell."""
    os.environ.update({name: str(request.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one worker. The exit status is 0 if no cell is left for it, and 75 if the remaining cells need another process."""
    options = _parser().parse_args(argv)
    faulthandler.enable()
    adopt_orphans()
    if options.events is not None:
        _guard_lifeline()
    emit: Emit = lambda event, **facts: logger.info("%s %s", event, facts)  # noqa: E731
    if options.events is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if job_facts():  # engines signal all processes of a job at once, and the supervisor decides how to react
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        emit = _event_writer(options.events)
    _configure_logging(emit if options.events is not None else None, options.log_level)
    try:
        plan = PlanFile.read(options.plan)
        store, since_ns = Store(options.store), options.plan.stat().st_mtime_ns
        serve(Bundle.from_json(plan.code, store.path), is_user_module)
        if options.events is not None:
            threading.Thread(target=_hold_lifeline, args=(store,), name="lifeline", daemon=True).start()
        with watch(store.path) if plan.foreign else contextlib.nullcontext():
            declare(plan.declared if plan.foreign else ())
            worker = Worker(plan, store, emit, share=(options.index, options.of), since_ns=since_ns)
            again = worker.run()
    except StoreError as error:
        emit("store-fault", reason=str(error))
        logger.error("%s", error)
        return STORE_FAULT
    except CglsuiteError as error:
        logger.error("%s", error)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    emit("finished")
    return AGAIN if again else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cglsuite.campaigns.executors.worker", description="Run every cell of a plan that no other worker runs."
    )
    parser.add_argument("plan", type=Path, help="a plan file, as written by an executor")
    parser.add_argument("--store", type=Path, required=True, help="the folder of records")
    parser.add_argument("--index", type=int, default=0, help="index of this worker, from 0")
    parser.add_argument("--of", type=int, default=1, help="number of workers")
    parser.add_argument(
        "--events", type=int, help="file descriptor for events; standard input is then a lifeline: the worker stops when it closes"
    )
    parser.add_argument("--log-level", type=int, default=logging.WARNING, help="lowest log level, as a number")
    return parser


def _event_writer(descriptor: int) -> Emit:
    os.set_inheritable(descriptor, False)
    lock = threading.Lock()

    def emit(event: str, **facts: Any) -> None:
        line = (json.dumps({"event": event, **facts}) + "\n").encode()
        try:
            with lock:
                while line:
                    line = line[os.write(descriptor, line) :]
        except BrokenPipeError:
            os._exit(1)  # the supervisor is gone

    return emit


def _hold_lifeline(store: Store) -> None:
    """End this process at once when the lifeline closes. Nothing is lost: checkpoints and finished cells are in the store."""
    while os.read(0, 4096):
        pass
    store.withdraw_attempts()
    _end_group(os.getpid())


def _guard_lifeline() -> None:
    """Start a process that ends this one if the lifeline has closed and no thread reacts, since foreign code may hold the GIL."""
    worker = os.getpid()
    if os.fork():
        return
    end_with_parent(worker)
    while os.read(0, 4096):
        pass
    time.sleep(GUARD_S)
    _end_group(worker)


def _end_group(worker: int) -> None:
    """End a worker and the processes that its cells have started; a worker started by hand shares its group with other processes."""
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if os.getpgid(worker) == worker else os.kill)(worker, signal.SIGKILL)
    os._exit(1)


class _EventHandler(logging.Handler):
    """Sends log records to the supervisor, which owns the terminal."""

    def __init__(self, emit: Emit) -> None:
        super().__init__()
        self._emit = emit

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._emit("log", name=record.name, level=record.levelno, message=self.format(record))
        except Exception:  # noqa: BLE001 - logging must not end the program
            self.handleError(record)


def _configure_logging(emit: Emit | None, level: int) -> None:
    root = logging.getLogger("cglsuite")
    root.addHandler(_EventHandler(emit) if emit else logging.StreamHandler(sys.stderr))
    root.setLevel(level)
    root.propagate = False


if __name__ == "__main__":
    status = main()
    end_process(status)
    sys.exit(status)
