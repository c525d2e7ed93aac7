"""Supervise the workers on one machine: start and monitor them, enforce time limits, and replace those that die. The local executor is a
single supervisor.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import re
import secrets
import selectors
import signal
import site
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

import cglsuite.cells.keys as keys
from cglsuite.base.errors import StoreError, UsageError
from cglsuite.base.hashing import canonical
from cglsuite.campaigns.executors.base import ExecutorError, Families, RunOptions
from cglsuite.campaigns.executors.progress import CellProgress, say
from cglsuite.cells.code.inputs import declared
from cglsuite.cells.device import check_device, visible_gpus
from cglsuite.cells.observing import ObserverHub
from cglsuite.cells.obtain import failure_record
from cglsuite.cells.plan import PlanFile, PlannedCell
from cglsuite.cells.portable import NumericsWord, environment_of
from cglsuite.cells.records.describe import foreign_code
from cglsuite.cells.records.record import Record, Status, ended, shown_reason
from cglsuite.cells.storage.lease import Backoff
from cglsuite.cells.storage.store import Store, plan_lease
from cglsuite.host.frozen import Bundle

POLL_S = 0.25
FOREIGN_POLL_S = 1.0
MAX_FAILED_STARTS = 3
STOP_POLL_S = 0.02
GRACE_S = 3.0
"""How long a worker may take to exit after it has reported that it is finished or its lifeline was closed."""
KILLED_TOGETHER_S = 1.0
"""How far apart a scheduler may kill the processes of one job: within this time, a killed worker does not count as a failure of its
cell."""
logger = logging.getLogger(__name__)


def foreign_distributions(cells: Sequence[PlannedCell], options: RunOptions) -> dict[str, str]:
    """Return the third-party distributions that each cell runs code from, by key. This is determined in the supervisor, which never runs
    methods.
    """
    distributions = {p.key: foreign_code(keys.sources(p.cell, options.catalogue)) for p in cells if p.cell is not None}
    return {key: names for key, names in distributions.items() if names}


def in_order(cells: Sequence[PlannedCell], foreign: Mapping[str, str]) -> dict[str, PlannedCell]:
    """Return the ready cells by key, grouped by third-party code and, within each group, by dataset, since a worker keeps one dataset in
    memory. The order is otherwise unchanged.
    """
    return {p.key: p for p in sorted((p for p in cells if p.ready), key=lambda p: (foreign.get(p.key, ""), _affinity(p)))}


@lru_cache(maxsize=2)
def arithmetic_of_workers(numerics: NumericsWord) -> str:
    """Return the digest of how workers on this machine compute (see :func:`cglsuite.cells.portable.arithmetic`); ``""`` if it cannot be
    determined.

    It is determined in a child process, because this process does not import torch and already has its own numerics.
    """
    command = [sys.executable, "-P", "-c", "from cglsuite.cells.portable import arithmetic; print(arithmetic())"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=worker_environment(1, numerics))
    return done.stdout.strip() if done.returncode == 0 else ""


def settled_cells(cells: Iterable[PlannedCell], store: Store, options: RunOptions, *, anywhere: bool = False) -> set[str]:
    """Return the keys of cells that have no result but are not tried again, because they diverged or do not apply and ``retry`` does not
    include that status.

    Args:
        anywhere: the cells run on other machines, whose arithmetic is not known here.
    """
    kept: dict[str, Record] = {}
    numerics = {p.key: p.request.numerics for p in cells}
    for key, summary in store.summaries(numerics):
        if summary is not None and summary.settled and summary.status not in options.retry:
            record = store.settled(key)
            if record is not None and (anywhere or record.settled_on(arithmetic_of_workers(numerics[key]))):
                kept[key] = record
    if kept:
        counts = ", ".join(f"{n} {status}" for status, n in sorted(Counter(record.status for record in kept.values()).items()))
        first = next(iter(kept.values()))
        words = " and ".join(f"--retry {status}" for status in sorted({record.status for record in kept.values()}))
        say(f"{options.label}: not tried again: {counts} ({first.label}: {ended(first.status, first.reason)}); {words} trains them again")
    return set(kept)


def outstanding(
    cells: Sequence[PlannedCell], store: Store, options: RunOptions, *, anywhere: bool = False
) -> tuple[dict[str, PlannedCell], dict[str, PlannedCell], dict[str, str]]:
    """Return the ready cells by key, the cells to run in the order of :func:`in_order`, and the :func:`foreign_distributions` of the
    latter.

    Args:
        anywhere: see :func:`settled_cells`.
    """
    wanted = {p.key: p for p in cells if p.ready}
    unfinished = [wanted[key] for key in store.unfinished(wanted)]
    settled = settled_cells(unfinished, store, options, anywhere=anywhere)
    unfinished = [planned for planned in unfinished if planned.key not in settled]
    foreign = foreign_distributions(unfinished, options)
    return wanted, in_order(unfinished, foreign), foreign


def frozen(cells: Iterable[PlannedCell], foreign: Mapping[str, str], store: Store, options: RunOptions) -> dict[str, list[str]]:
    """Copy the user code of planned cells into the store (the ``code`` of a plan), so that workers import exactly the code that the keys
    cover.

    Raises:
        UsageError: a file was edited after the keys were computed.
    """
    of_users = {p.key: p for p in cells if p.key in foreign and p.cell is not None}
    if not of_users:
        return {}
    files = keys.planned_code([p.cell for p in of_users.values() if p.cell is not None], options.catalogue)
    groups = {(p.request.scenario, p.request.method, p.request.backbone): p for p in of_users.values()}
    for planned in groups.values():
        if planned.cell is not None and keys.cell_key(planned.cell, options.catalogue) != planned.key:
            raise UsageError(f"the code of {planned.request.label} was edited during planning: run the same command again")
    return Bundle.keep(files, store.path).to_json()


def _affinity(planned: PlannedCell) -> str:
    cell = planned.cell
    return "" if cell is None else canonical([cell.scenario.dataset, cell.dataset_hyperparameters])


@dataclass(frozen=True, kw_only=True)
class Share:
    """One machine's share of a plan that several machines work through.

    Args:
        plan: the plan file, owned by another process. index, of: this is machine ``index`` of ``of``.
        gpus: the GPUs to spread workers over, as in ``CUDA_VISIBLE_DEVICES``; empty: unchanged.
        watch: called several times a second; an exception ends the share.
    """

    plan: Path
    index: int
    of: int
    gpus: Sequence[str] = ()
    watch: Callable[[], None] = lambda: None


class Supervisor:
    """The live workers on this machine, their plan file, and the cells without an outcome.

    Without a ``share``, the supervisor writes the plan and returns when every cell is accounted for, whichever runner ran it. With a share,
    it returns when this machine can take no more cells, and leaves cells held by other runners to them.
    """

    def __init__(
        self,
        cells: Mapping[str, PlannedCell],
        store: Store,
        options: RunOptions,
        progress: CellProgress,
        foreign: Mapping[str, str],
        share: Share | None = None,
    ) -> None:
        self.pending, self.store, self.options, self.progress = dict(cells), store, options, progress
        self.foreign = {key: names for key, names in foreign.items() if key in cells}
        self.share = share
        self.plan_path = share.plan if share else store.path / "plans" / f"{os.getpid()}-{secrets.token_hex(4)}.json"
        self.workers: list[WorkerProcess] = []
        self.selector = selectors.DefaultSelector()
        self.stillborn = 0
        self.named: set[tuple[str, int]] = set()
        self.failures = Counter[tuple[str, str | None]]()
        self.warnings: dict[str, list[str]] = {}
        self.backoff = Backoff()
        on_cuda = any(planned.request.device == "cuda" for planned in cells.values())
        self.gpus = share.gpus if share else visible_gpus() if on_cuda else ()
        per_gpu = max(1, len(self.gpus)) if share else 1  # for a single machine, the campaign sets the number of workers
        self.size = min(options.workers * per_gpu, len(cells))
        self.families = Families(store, options)
        self.audience = ObserverHub(options.observers)
        self.threads = max((p.request.threads for p in cells.values()), default=1)

    # Supervision

    def supervise(self) -> None:
        """Keep workers running until every cell has an outcome or, with a share, until no cells are left for this machine."""
        if self.share is not None:
            self.since_ns = self.plan_path.stat().st_mtime_ns
            self._until_done()
            return
        shared = self.families.sharing()
        code = frozen(self.pending.values(), self.foreign, self.store, self.options)
        run = {"code": code, "declared": declared(), "limits": self.options.limits}
        plan = PlanFile.of(self.pending.values(), shared, self.foreign, **run)
        with self.store.lease(plan_lease(self.plan_path)) or contextlib.nullcontext():
            plan.write(self.plan_path, self.store.path)
            self.since_ns = self.plan_path.stat().st_mtime_ns
            self._until_done()

    def _until_done(self) -> None:
        try:
            self._start_workers()
            while self.pending:
                if self.workers:
                    self._wait_for_events()
                elif self.share is None:
                    self._all_held_elsewhere()
                elif not self._has_more_work():
                    break
                self.progress.tick()
                if self.share is not None:
                    self.share.watch()
        finally:
            for (status, reason), n_cells in self.failures.items():
                if n_cells > 1:
                    logger.warning("%s: %s, %d times: %s", self.options.label, status, n_cells, shown_reason(reason or ""))
            for alike in self.warnings.values():
                if len(alike) > 1:
                    logger.warning("%s: %d warnings like this: %s", self.options.label, len(alike), alike[0])
            with held_signals():  # a second Ctrl-C still stops the remaining workers
                self._stop()
                if self.share is None:
                    self.plan_path.unlink(missing_ok=True)

    def _start_workers(self) -> None:
        """Start workers while there are cells that no runner holds."""
        held = {w.held for w in self.workers}
        indices = sorted(set(range(self.size)) - {w.index for w in self.workers})
        free = (key for key in self.pending if key not in held and self._is_free(key))
        for index, key in zip(indices, free, strict=False):
            with held_signals():  # so that a started worker is always registered, whatever happens next
                worker = self._worker(index, self.pending[key].request.numerics)
                self.workers.append(worker)
                self.selector.register(worker.events_descriptor, selectors.EVENT_READ, worker)

    def _worker(self, index: int, numerics: NumericsWord) -> WorkerProcess:
        first, of = (self.share.index, self.share.of) if self.share else (0, 1)
        gpu = {"CUDA_VISIBLE_DEVICES": self.gpus[index % len(self.gpus)]} if self.gpus else {}
        places = index, first * self.size + index, of * self.size
        return WorkerProcess(self.plan_path, self.store.path, *places, worker_environment(self.threads, numerics) | gpu)

    def _is_free(self, key: str) -> bool:
        """Return whether no runner holds ``key``. A key that was held a moment ago is not checked again yet."""
        if not self.backoff.due(key):
            return False
        if self.store.discard_stale_lease(key):
            self.backoff.forget(key)
            return True
        holder = self.store.holder(key)
        self.backoff.missed(key, near=holder is not None and holder.here)
        return False

    def _wait_for_events(self) -> None:
        for ready, _ in self.selector.select(POLL_S):
            self._handle_events(ready.data)
        for worker in list(self.workers):
            limit = self.options.limits.timeout_s
            if limit is not None and worker.held is not None and time.monotonic() - worker.since > limit:
                worker.overdue = True
                worker.kill()
            if worker.has_ended() or time.monotonic() - worker.finished_s > GRACE_S:
                self._handle_events(worker)
                worker.kill()
                self._replace_ended(worker)

    def _handle_events(self, worker: WorkerProcess) -> None:
        for event in worker.events():
            kind, key = event.pop("event"), event.get("key", "")
            if kind == "start":
                worker.held, worker.since = key, time.monotonic()
                if (planned := self.pending.get(key)) is not None and planned.cell is not None:
                    self.audience.started(key, planned.cell)
                self._check_foreign(worker, key)
            elif kind == "end":
                worker.held = None
                self._report_end(key, event["status"], event["reason"])
            elif kind == "held":
                worker.held = None
                self.backoff.missed(key)
                self.audience.ended(key, lambda: None)
                self.progress.left(key)
            elif kind == "refused":
                self._record_failure(key, "failed", event["reason"])
            elif kind == "task" and key in self.pending:
                self.progress.working(key, f"{self.pending[key].request.method} task {event['task']}/{event['of']}")
            elif kind in ("stream", "epochs", "row"):
                self.audience.handle_event(kind, event)
                if kind == "epochs" and (cell := self.audience.cells.get(key)) is not None:
                    task, epoch, *_ = event["epochs"][-1]
                    self.progress.working(key, f"{cell.spec.method} {cell.position(task, epoch)}", cell.share(task, epoch))
            elif kind == "log":
                self._log(event)
            elif kind == "store-fault":
                raise StoreError(event["reason"])
            elif kind == "finished":
                worker.finished_s = time.monotonic()

    def _log(self, event: Mapping[str, Any]) -> None:
        """Log a worker's message. Of warnings that differ only in numbers, only the first is shown; their count follows at the end."""
        if event["level"] >= logging.WARNING:
            alike = self.warnings.setdefault(re.sub(r"\d+", "#", event["message"]), [])
            alike.append(event["message"])
            if len(alike) > 1:
                return
        logging.getLogger(event["name"]).log(event["level"], "%s", event["message"])

    def _check_foreign(self, worker: WorkerProcess, key: str) -> None:
        """Kill a worker that starts a cell whose foreign code differs from what it has already run; a correct worker refuses such a
        cell."""
        foreign = self.foreign.get(key, "")
        if worker.foreign not in ("", foreign):
            worker.kill()
            worker.held = None
            worker.finished_s = time.monotonic()
            reason = f"the worker was stopped: it started this cell after running code of {worker.foreign}, which must have modified "
            reason += "the suite's own code"
            self._record_failure(key, "unclean", reason, despite_result=True)
        worker.foreign = foreign or worker.foreign

    def _replace_ended(self, worker: WorkerProcess) -> None:
        """Handle the end of a worker: account for its cell, and start another worker if cells are left."""
        self.workers.remove(worker)
        self.selector.unregister(worker.events_descriptor)
        key, words = worker.held, worker.output_tail()
        if key is not None:
            elapsed = time.monotonic() - worker.since
            if worker.process.returncode == -signal.SIGKILL and not worker.overdue:
                time.sleep(KILLED_TOGETHER_S)  # the kernel may kill this process next
            if worker.overdue:
                self._record_failure(key, "timeout", f"stopped after {elapsed:.0f} s (limit {self.options.limits.timeout_s:g} s)", elapsed)
            else:
                self._record_failure(key, "failed", worker.exit_reason() + (f". It printed: {words}" if words else ""), elapsed)
        elif worker.finished_s == math.inf:
            self.stillborn += 1
        worker.close()
        if self.stillborn >= MAX_FAILED_STARTS:
            raise ExecutorError(f"{self.stillborn} workers exited before they started a cell. Output of the last worker: {words or 'none'}")
        self._start_workers()

    def _all_held_elsewhere(self) -> None:
        """Return whether other runners hold all pending cells, or held them a moment ago."""
        self._count_finished_elsewhere()
        self._start_workers()
        if self.pending and not self.workers:
            self._log_holders()
            time.sleep(FOREIGN_POLL_S)

    def _has_more_work(self) -> bool:
        """Return whether this machine has more cells to run, now that its workers have ended."""
        self._count_finished_elsewhere()
        self._start_workers()
        return bool(self.workers)

    def _count_finished_elsewhere(self) -> None:
        """Account for cells that other runners have finished or tried."""
        for key in [key for key in self.pending if self.backoff.due(key)]:
            if (record := self.store.outcome(key, self.since_ns)) is not None:
                self._report_end(key, record.status, record.reason)

    def _log_holders(self) -> None:
        """Log every runner that holds pending cells, once."""
        holders = [holder for key in self.pending if (holder := self.store.holder(key)) is not None]
        cells = Counter((holder.host, holder.pid) for holder in holders)
        for holder in holders:
            if (who := (holder.host, holder.pid)) not in self.named:
                self.named.add(who)
                say(f"{self.options.label}: waiting for {'a cell' if cells[who] == 1 else f'{cells[who]} cells'} of {holder.wait}")

    # Outcomes

    def _report_end(self, key: str, status: str, reason: str | None) -> None:
        planned = self.pending.pop(key, None)
        if planned is None:
            return
        if status == "done":
            self.families.release(key)
        else:
            self.failures[status, reason] += 1
            if self.failures[status, reason] == 1:
                logger.warning("%s: %s", planned.request.label, ended(status, reason))
        self.audience.ended(key, lambda: self.store.get(key))
        self.progress.finished(status, key)

    def _record_failure(
        self, key: str, status: Status, reason: str, elapsed_s: float | None = None, *, despite_result: bool = False
    ) -> None:
        planned = self.pending.get(key)
        if planned is None or planned.cell is None:
            return
        record: Record | None = None if despite_result else self.store.cached(key)  # it may have finished at the last moment
        if record is None:
            record = failure_record(planned.cell, self.options.catalogue, key=key, status=status, reason=reason, elapsed_s=elapsed_s)
            self.store.put(record)
        self.store.forget_attempts(key)
        self.store.discard_stale_lease(key)
        self._report_end(key, record.status, record.reason)

    def _stop(self) -> None:
        """End all workers: close their lifelines, then kill those that remain."""
        for worker in self.workers:
            worker.close_lifeline()
        deadline = time.monotonic() + GRACE_S
        for worker in self.workers:
            while not worker.has_ended() and time.monotonic() < deadline:
                time.sleep(STOP_POLL_S)
            worker.kill()
            if worker.held is not None:
                self.store.withdraw_attempt(worker.held, worker.process.pid)
                self.store.discard_stale_lease(worker.held)
            worker.close()
        self.workers.clear()
        self.audience.stopped()
        self.selector.close()


# The local executor: worker processes on this machine.


class LocalExecutor:
    """Runs cells in worker processes on this machine (an :class:`cglsuite.campaigns.executors.base.Executor`)."""

    def run(self, cells: Sequence[PlannedCell], store: Store, options: RunOptions) -> int:
        """Run the missing cells; see :class:`cglsuite.campaigns.executors.base.Executor`.

        Raises:
            UsageError: cells need CUDA but this machine has none, or ``detach`` was requested.
        """
        if options.detach:
            raise UsageError("executor local: cannot detach, since workers end with this command; use nohup or tmux instead")
        wanted, missing, foreign = outstanding(cells, store, options)
        for device in {p.request.device for p in missing.values()}:
            check_device(device)
        store.sweep()
        with CellProgress(len(missing), options.label, options.progress) as progress:
            supervisor = Supervisor(missing, store, options, progress, foreign)
            supervisor.families.count(wanted.values(), missing)
            if missing:
                store.warn_without_locks()
                supervisor.supervise()
        store.sweep()  # only now may it be known that runners on other machines are gone
        return len(store.unfinished(missing))


class WorkerProcess:
    """A worker: its process, the pipe through which it reports events, its output, and its current cell.

    Args:
        index: its number on this machine. place, of: its starting point in the plan, among all workers of all machines.
    """

    def __init__(self, plan: Path, store: Path, index: int, place: int, of: int, environment: Mapping[str, str]) -> None:
        self.index = index
        self.held: str | None = None
        self.since = 0.0
        """The time at which the current cell began (``time.monotonic()``)."""
        self.overdue = False
        self.finished_s = math.inf
        self.foreign = ""
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._partial = b""
        reading, writing = os.pipe()
        level = logging.getLogger("cglsuite").getEffectiveLevel()
        facts = {"store": store, "index": place, "of": of, "events": writing, "log-level": level}
        words = [str(plan), *(word for name, value in facts.items() for word in (f"--{name}", str(value)))]
        try:
            # The worker gets its own session, since the supervisor handles Ctrl-C on the terminal. It is never a fork of this process.
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "cglsuite.campaigns.executors.worker", *words],
                stdin=subprocess.PIPE,
                stdout=self.output,
                stderr=subprocess.STDOUT,
                pass_fds=(writing,),
                start_new_session=True,
                env=dict(environment),
            )
        except OSError as error:
            os.close(reading)
            self.output.close()
            raise ExecutorError(f"cannot start a worker process: {error}") from error
        finally:
            os.close(writing)
        os.set_blocking(reading, False)
        self.events_descriptor = reading

    def events(self) -> Iterator[dict[str, Any]]:
        """Return the events since the last call."""
        while True:
            try:
                chunk = os.read(self.events_descriptor, 65536)
            except BlockingIOError:
                return
            if not chunk:
                return
            *lines, self._partial = (self._partial + chunk).split(b"\n")
            for line in lines:
                yield json.loads(line)

    def has_ended(self) -> bool:
        """Return whether the process has ended. The process is not reaped, so that its pid and group id are not reused before
        :meth:`kill`."""
        if self.process.returncode is not None:
            return True
        if not hasattr(os, "waitid"):  # macOS before Python 3.13: children of an ended worker are not ended
            return self.process.poll() is not None
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return True

    def kill(self) -> None:
        """End the worker and every process that it started."""
        if self.process.returncode is None:  # once the process is reaped, its pid may be reused
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def close_lifeline(self) -> None:
        """Close the lifeline, so that the worker ends itself."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def close(self) -> None:
        """Release the worker's resources in this process."""
        self.close_lifeline()
        os.close(self.events_descriptor)
        self.output.close()

    def output_tail(self, limit: int = 400) -> str:
        """Return the end of the worker's output."""
        self.output.seek(0, os.SEEK_END)
        self.output.seek(max(0, self.output.tell() - 4096))
        lines = [line.strip() for line in self.output.read().decode(errors="replace").splitlines() if line.strip()]
        text = " | ".join(lines[-6:])
        return text[-limit:]

    def exit_reason(self) -> str:
        """Describe how the process ended in one sentence."""
        code = self.process.returncode
        if code >= 0:
            return f"worker exited with status {code} in the middle of the cell"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = "unknown"
        hint = ""
        if -code == signal.SIGKILL:
            hint = "; sent by a user, or by the kernel because memory ran out: see the kernel's log"
        return f"worker died with signal {-code} ({name}{hint})"


def worker_environment(threads: int, numerics: NumericsWord = "native") -> dict[str, str]:
    """Return this process's environment, changed to set the number of threads, the numerics and a fixed hash seed, and to import the suite
    from the same place, such as a source tree.
    """
    environment = environment_of(numerics) | {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    environment.setdefault("PYTHONHASHSEED", "0")  # sets of strings have the same order in all workers; records name the seed
    root = str(Path(__file__).resolve().parents[3])
    installed = {str(Path(folder).resolve()) for folder in (*site.getsitepackages(), site.getusersitepackages())}
    if root not in installed:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return environment


# Hold signals while processes are started or ended, so that no process is leaked.

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1)


@contextlib.contextmanager
def held_signals() -> Iterator[None]:
    """Defer SIGINT, SIGTERM, SIGQUIT and SIGUSR1 to the end of the block, where they are raised under the previous handlers.

    An ignored signal stays ignored. Nothing is held outside the main thread, since only the main thread runs handlers. Handlers are
    replaced instead of blocking the signals, because a child process would inherit a blocked signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        came.append(number)

    formers = {number: signal.getsignal(number) for number in _ENDING}
    held = {number: former for number, former in formers.items() if former not in (None, signal.SIG_IGN)}
    # Signals are blocked during the exchange: a handler that raises in the middle would leave the other handlers exchanged.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    for number in held:
        signal.signal(number, note)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, held)
        for number, former in held.items():
            signal.signal(number, former)
        for noted in dict.fromkeys(came):
            signal.raise_signal(noted)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
