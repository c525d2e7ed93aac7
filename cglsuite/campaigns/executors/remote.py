"""Run cells on other machines. All engines share this code.

An engine's plugin provides three calls (:class:`cglsuite.campaigns.executors.base.Launcher`). This module does the rest: the plan and its
job in the store, waiting, restarting parts, and attaching a second command to a job that the first command launched.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import re
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import UsageError
from cglsuite.base.inputs import read_regular
from cglsuite.base.markup import several
from cglsuite.campaigns.executors.base import Ended, ExecutorError, Families, Job, Launcher, RunOptions, UnreachableError
from cglsuite.campaigns.executors.progress import CellProgress, say
from cglsuite.campaigns.executors.supervisor import frozen, held_signals, outstanding
from cglsuite.cells.code.inputs import declared
from cglsuite.cells.keys import torch_version
from cglsuite.cells.plan import PlanFile, PlannedCell
from cglsuite.cells.records.record import ended
from cglsuite.cells.storage.lease import Backoff, Lease
from cglsuite.cells.storage.store import Store
from cglsuite.graphs.files.named import data_files, data_options, plugin_files

TICK_S = 0.5
FIRST_POLL_S, LAST_POLL_S = 1.0, 15.0
FINISH_S = 10.0
"""How long parts may take to exit by themselves once every cell is accounted for."""
MAX_BARREN = 3
"""The number of times a job is restarted without finishing a cell or task in between."""
logger = logging.getLogger(__name__)


class RemoteExecutor:
    """An :class:`cglsuite.campaigns.executors.base.Executor` over any :class:`cglsuite.campaigns.executors.base.Launcher`.

    Args:
        name: the executor's name. launcher: its engine. Optional attributes of the launcher: ``python``, the interpreter on the other
            machines, and ``where``, the cluster that runs its jobs.
    """

    def __init__(self, name: str, launcher: Launcher) -> None:
        self.name, self.launcher = name, launcher

    def run(self, cells: Sequence[PlannedCell], store: Store, options: RunOptions) -> int:
        """Run the missing cells; see :class:`cglsuite.campaigns.executors.base.Executor`.

        If a live job of the same store is already running some of the cells, this command attaches to that job and launches no second one.

        Raises:
            ExecutorError: the engine refuses the job, or its parts fail without having finished anything.
            UsageError: an observer has no name, so other machines cannot create it.
        """
        if options.observers is not None and len(options.observers) > len(options.watch):
            raise UsageError(
                f"executor {self.name}: an observer that is a Python object or class works only with workers on this machine; "
                'pass its name ("csv", "package.module:Class"), or use the executor local'
            )
        wanted, missing, foreign = outstanding(cells, store, options, anywhere=True)
        store.sweep()
        if missing:
            store.warn_without_locks()
        families = Families(store, options)
        families.count(wanted.values(), missing)
        with CellProgress(len(missing), options.label, options.progress and not options.detach) as progress:
            run = _Run(self.name, self.launcher, missing, store, options, progress, families, foreign)
            run.supervise()
        self._compare_processors(missing, store)
        return len(store.unfinished(missing))

    def _compare_processors(self, keys: Mapping[str, PlannedCell], store: Store) -> None:
        """Warn if cells of this run were trained on different processor models."""
        processors = {
            r.environment.get("cpu") for key in keys if keys[key].request.device == "cpu" and (r := store.cached(key)) is not None
        }
        models = sorted(str(model) for model in processors if model)
        if len(models) > 1:
            logger.warning(
                "cells ran on %d processor models (%s), whose results may differ in the last bits: request a single model (slurm: "
                "constraint) if you need bit-identical results",
                len(models),
                "; ".join(models),
            )


class _LiveJob:
    """A job that this command waits for: which parts run or are queued, how the others ended, and whether this command may restart it."""

    def __init__(self, stored: StoredJob, keys: set[str], since_ns: int) -> None:
        self.stored, self.keys, self.since_ns = stored, keys, since_ns
        self.ends: dict[int, Ended] = {}
        self.lease: Lease | None = None
        self.barren = 0
        self.launched_ns = time.time_ns()

    @property
    def live(self) -> dict[int, str]:
        return {part: name for part, name in self.stored.ids.items() if part not in self.ends}

    @property
    def faults(self) -> list[str]:
        """Explain why parts failed in a way that a restart would not fix, with the end of their output."""
        failed = {part: end for part, end in self.ends.items() if not end.ok and not end.again}
        messages = []
        for part, end in sorted(failed.items()):
            words = self.stored.output_tail(part)
            messages.append(f"part {part}: {end.reason}" + (f". It printed: {words}" if words else ""))
        return messages


class _Run:
    """One call of the executor: the cells without an outcome and the jobs that run them."""

    def __init__(
        self,
        name: str,
        launcher: Launcher,
        cells: Mapping[str, PlannedCell],
        store: Store,
        options: RunOptions,
        progress: CellProgress,
        families: Families,
        foreign: Mapping[str, str],
    ) -> None:
        self.name, self.launcher, self.store, self.options, self.progress = name, launcher, store, options, progress
        self.pending, self.families, self.foreign = dict(cells), families, foreign
        self.where = str(getattr(launcher, "where", ""))
        self.jobs: list[_LiveJob] = []
        self.backoff = Backoff()
        self.unreachable = False
        self.poll_s, self.polled = FIRST_POLL_S, -math.inf

    # Supervision

    def supervise(self) -> None:
        """Attach to live jobs, launch a job for the remaining cells and, unless detached, wait until every cell has an outcome."""
        try:
            self._attach_or_launch()
            if self.options.detach:
                for job in self.jobs:
                    say(f"{self.options.label}: {job.stored} continues; run the same command without --detach to wait for it")
                return
            self._until_done()
            self._finish()
        except (KeyboardInterrupt, ExecutorError):
            with held_signals():
                self._cancel()
            raise
        finally:
            for job in self.jobs:
                if job.lease is not None:
                    job.lease.release()

    def _attach_or_launch(self) -> None:
        """Under a lock, attach to live jobs and launch another job for the rest."""
        with self._turn():
            covered: set[str] = set()
            for stored in stored_jobs(self.store.path):
                if stored.job.engine == self.name and stored.where == self.where and (live := self._attach(stored)) is not None:
                    covered |= live.keys
            left = {key: planned for key, planned in self.pending.items() if key not in covered}
            if left:
                self._launch_new(left)

    def _turn(self) -> Lease:
        while (lease := self.store.lease(f"launching-{self.name}")) is None:
            time.sleep(self.backoff.missed("launching"))
        return lease

    def _attach(self, stored: StoredJob) -> _LiveJob | None:
        """Return the live job if it runs any of our cells. An ended job is closed; if a job's state cannot be determined, the command
        ends."""
        plan = stored.plan()
        if plan is None:
            stored.close(keep_output=True)
            return None
        keys = {key for key, _ in plan.cells} & self.pending.keys()
        if not stored.ids:  # the command that launched it never received the reply
            if not keys:
                return None
            stored.ids = dict(self.launcher.launch(stored.job, range(stored.job.parts)))
            stored.write()
        job = _LiveJob(stored, keys, stored.since_ns)
        job.ends = dict(self.launcher.poll(stored.ids))
        if not job.live:
            stored.close(keep_output=not all(end.ok for end in job.ends.values()))
            return None
        if not keys:
            return None
        self.jobs.append(job)
        self._may_restart(job)
        waiting = self._queue_text([job])
        how = f"has {len(keys)} of these cells ({', '.join(waiting)})" if waiting else f"is running {len(keys)} of these cells"
        say(f"{self.options.label}: {stored} {how}; attached to it")
        return job

    def _launch_new(self, cells: Mapping[str, PlannedCell]) -> None:
        parts = max(1, min(self.launcher.parts, math.ceil(len(cells) / self.options.workers)))
        stored = new_job(
            self.store.path,
            self.name,
            self.options.label,
            parts=parts,
            cpus=self.options.workers * max(planned.request.threads for planned in cells.values()),
            python=str(getattr(self.launcher, "python", "")),
            where=self.where,
        )
        sharing = {key: family for key, family in self.families.sharing().items() if key in cells}
        foreign = {key: names for key, names in self.foreign.items() if key in cells}
        run = {
            "code": frozen(cells.values(), foreign, self.store, self.options),
            "declared": declared(),
            "torch": torch_version(),
            "limits": self.options.limits,
            "workers": self.options.workers,
            "watch": self.options.watch,
        }
        files: dict[str, Any] = {
            "plugins": list(map(str, plugin_files())),
            "data": list(map(str, data_files())),
            "data_options": data_options(),
        }
        PlanFile.of(cells.values(), sharing, foreign, **run, **files).write(stored.job.plan, self.store.path)
        stored.write()
        job = _LiveJob(stored, set(cells), stored.since_ns)
        try:
            with held_signals():  # so that a launched job is always registered, whatever happens next
                stored.ids = dict(self.launcher.launch(stored.job, range(parts)))
                stored.write()
                self.jobs.append(job)
                self._may_restart(job)
        except UnreachableError:
            raise  # it may have been launched: the next command looks it up by name
        except ExecutorError:
            stored.close(keep_output=False)
            raise
        say(f"{self.options.label}: launched {stored} for {len(cells):,} cells; output in {stored.job.folder}")

    def _may_restart(self, job: _LiveJob) -> bool:
        """Return whether this command, rather than another one waiting for the same job, restarts its parts."""
        job.lease = job.lease or self.store.lease(f"job-{job.stored.job.name}")
        return job.lease is not None

    # Polling

    def _until_done(self) -> None:
        while True:
            self._account_for_records()
            if not self.pending:
                return
            if time.monotonic() - self.polled >= self.poll_s:
                for job in list(self.jobs):
                    self._poll_and_restart(job)
                waiting = self._queue_text(self.jobs)
                self.progress.queued(waiting[0] if len(waiting) == 1 else "")
                self.polled, self.poll_s = time.monotonic(), min(LAST_POLL_S, 1.25 * self.poll_s)
            self.progress.tick()
            time.sleep(TICK_S)

    def _account_for_records(self) -> None:
        """Account for cells that have a record. The folder is listed once, and only new records are read."""
        for job in self.jobs:
            for key in self.store.present(self.pending.keys() & job.keys):
                record = self.store.outcome(key, job.since_ns)
                if record is None:
                    continue
                planned = self.pending.pop(key)
                if record.done:
                    self.families.release(key)
                else:
                    logger.warning("%s: %s", planned.request.label, ended(record.status, record.reason))
                self.progress.finished(record.status)

    def _queue_text(self, jobs: Sequence[_LiveJob]) -> Sequence[str]:
        """Return how many parts are queued and how many run, as text; empty if none is queued, or the engine does not say."""
        try:
            queued = sum(len(pending_parts(self.launcher, job.live)) for job in jobs)
        except ExecutorError as error:
            logger.debug("%s", error)
            return ()
        running = sum(len(job.live) for job in jobs) - queued
        return in_words({"pending": queued, "running": running}) if queued else ()

    def _poll_and_restart(self, job: _LiveJob) -> None:
        """Poll a job's parts; restart those that were stopped, and the whole job if it ended with cells left."""
        owned = self._may_restart(job)
        if not owned and not job.stored.reread():
            self.jobs.remove(job)
            raise ExecutorError(f"{job.stored} was ended by the command that launched it; run this command again")
        ended = self._poll(job)
        if ended is None:
            return
        for part, end in ended.items():
            job.ends[part] = end
            level = logging.INFO if end.ok else logging.WARNING
            how = "ended" if end.ok else "will be started again" if end.again and owned else "ended"
            logger.log(
                level, "%s: part %d of %s %s: %s", self.options.label, part, job.stored.job.engine, how, end.reason or "nothing left to do"
            )
        if not owned:
            return
        stopped = [part for part, end in job.ends.items() if end.again]
        if job.live and not stopped:
            return
        if not any(self._is_free(key) for key in job.keys & self.pending.keys()):
            return  # what is pending is held by a live runner, as far as is known
        if stopped:
            self._restart(job, stopped)
        elif job.faults and len(job.faults) == len(job.ends):
            raise ExecutorError(f"{job.stored} ended with {len(self.pending):,} cells left. " + "; ".join(job.faults))
        else:
            self._restart(job, range(min(job.stored.job.parts, len(job.keys & self.pending.keys()))))

    def _poll(self, job: _LiveJob) -> Mapping[int, Ended] | None:
        try:
            ended = self.launcher.poll(job.live) if job.live else {}
        except UnreachableError as error:
            if not self.unreachable:
                logger.warning("%s: %s; the job is still running and will be polled again", self.options.label, error)
            self.unreachable = True
            return None
        if self.unreachable:
            say(f"{self.options.label}: {self.name} responds again")
        self.unreachable = False
        if ended:
            self.poll_s = FIRST_POLL_S
        return ended

    def _is_free(self, key: str) -> bool:
        if not self.backoff.due(key):
            return False
        if self.store.discard_stale_lease(key):
            return True
        self.backoff.missed(key)
        return False

    def _restart(self, job: _LiveJob, parts: Sequence[int]) -> None:
        job.barren = 0 if self.store.moved_since(job.launched_ns) else job.barren + 1
        reasons = "; ".join(dict.fromkeys(end.reason for end in job.ends.values() if end.reason))
        if job.barren > MAX_BARREN:
            words = next(filter(None, map(job.stored.output_tail, job.ends)), "nothing")
            raise ExecutorError(f"{job.stored} was started {job.barren} times but finished nothing ({reasons}). It printed: {words}")
        try:
            with held_signals():
                job.launched_ns = time.time_ns()
                job.stored.ids |= self.launcher.launch(job.stored.job, parts)
                job.stored.write()
        except UnreachableError as error:
            logger.warning("%s: cannot start part %s again now: %s", self.options.label, ", ".join(map(str, parts)), error)
            return
        for part in parts:
            job.ends.pop(part, None)

    # Clean-up

    def _finish(self) -> None:
        """Let parts end by themselves, cancel those that do not or that never started, and clean up."""
        deadline = time.monotonic() + FINISH_S
        for job in self._leased_jobs():
            while job.live and time.monotonic() < deadline:
                job.ends |= self._poll(job) or {}
                time.sleep(TICK_S)
            self._end(job, keep_output=bool(job.faults))

    def _cancel(self) -> None:
        for job in self._leased_jobs():
            self._end(job, keep_output=bool(job.faults))
        for job in self.jobs:
            if job.lease is None:
                say(f"{self.options.label}: {job.stored} is still running: another command is waiting for it")

    def _leased_jobs(self) -> Iterator[_LiveJob]:
        return (job for job in self.jobs if job.lease is not None)

    def _end(self, job: _LiveJob, keep_output: bool) -> None:
        try:
            if job.live:
                self.launcher.cancel(job.live)
        except UnreachableError as error:
            logger.warning("%s: %s: its parts will exit when they see that the plan is gone", self.options.label, error)
        job.stored.close(keep_output=keep_output)


# A store's records of jobs on other machines: a folder per job with its plan, the output of its parts, and the launcher to query.

_FACTS = ("name", "engine", "parts", "cpus", "python")
_KEEP_LOGS_S = 7 * 24 * 3600.0


@dataclass(kw_only=True)
class StoredJob:
    """A job that was launched or is about to be launched.

    Args:
        where: the cluster that runs it. ids: the engine's id for each part; empty if the reply to its submission was lost.
        submitted: who submitted it and when, for display.
    """

    job: Job
    where: str = ""
    ids: dict[int, str] = field(default_factory=dict)
    submitted: str = ""

    def write(self) -> None:
        """Write the job's description next to the plan."""
        facts = {
            **{name: getattr(self.job, name) for name in _FACTS},
            "where": self.where,
            "submitted": self.submitted,
            "ids": {str(part): name for part, name in self.ids.items()},
        }
        write_atomic(self.job.folder / "job.json", (json.dumps(facts, sort_keys=True, indent=1) + "\n").encode(), top=self.job.store)

    def reread(self) -> bool:
        """Reload the ids if another process has written new ones, and return whether the job still exists."""
        job = _read(self.job.folder, self.job.store)
        if job is not None:
            self.ids = job.ids
        return job is not None

    def plan(self) -> PlanFile | None:
        """Return the job's plan, or None once the job is over."""
        with contextlib.suppress(UsageError):
            return PlanFile.read(self.job.plan)
        return None

    @property
    def since_ns(self) -> int:
        """The time after which records count as attempts of this job, on the clock of the store's file system."""
        return self.job.plan.stat().st_mtime_ns

    def close(self, *, keep_output: bool) -> None:
        """Close the job by removing its plan. Supervisors that are still running or start later find no plan and exit."""
        self.job.plan.unlink(missing_ok=True)
        (self.job.folder / "job.json").unlink(missing_ok=True)
        if not keep_output:
            shutil.rmtree(self.job.folder, ignore_errors=True)

    def output_tail(self, part: int, limit: int = 400) -> str:
        """Return the end of a part's output."""
        try:
            text = self.job.log(part).read_bytes()[-4096:].decode(errors="replace")
        except OSError:
            return ""
        return " | ".join(line.strip() for line in text.splitlines()[-6:] if line.strip())[-limit:]

    def __str__(self) -> str:
        ids = sorted({name.partition("_")[0] for name in self.ids.values()})
        suffix = f" {', '.join(ids)}" if ids else ""
        return f"{self.job.engine} job{suffix} ({several(self.job.parts, 'part')}, submitted by {self.submitted})"


def new_job(store: Path, engine: str, label: str, *, parts: int, cpus: int, python: str = "", where: str = "") -> StoredJob:
    """Create a job with a new name and a path for its folder, without writing anything."""
    words = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:40] or "cells"
    name = f"cglsuite-{words}-{secrets.token_hex(4)}"
    job = Job(name=name, engine=engine, folder=store / "jobs" / name, store=store, parts=parts, cpus=cpus, python=python or sys.executable)
    user = os.environ.get("USER") or f"user {os.getuid()}"
    return StoredJob(job=job, where=where, submitted=f"{user}@{socket.gethostname()} at {time.strftime('%Y-%m-%d %H:%M:%S')}")


def pending_parts(launcher: Launcher, ids: Mapping[int, str]) -> set[int]:
    """Return the live parts in ``ids`` that are in the engine's queue. An engine without a queue has none.

    Raises:
        UnreachableError: the engine does not answer.
    """
    ask = getattr(launcher, "waiting", None)
    return set(ask(ids)) if ask is not None and ids else set()


def part_counts(launcher: Launcher, job: StoredJob) -> dict[str, int]:
    """Return the number of pending, running and ended parts of a job, according to its engine.

    Raises:
        UnreachableError: the engine does not answer.
    """
    over = launcher.poll(job.ids)
    live = {part: name for part, name in job.ids.items() if part not in over}
    queued = len(pending_parts(launcher, live))
    return {"pending": queued, "running": len(live) - queued, "over": len(over)}


def in_words(counts: Mapping[str, int]) -> list[str]:
    """Format counts of parts by state: "2 parts pending", "1 part running". States without parts are omitted."""
    return [f"{several(n, 'part')} {state}" for state, n in counts.items() if n]


def stored_jobs(store: Path) -> Iterator[StoredJob]:
    """Yield the jobs in a store that are not known to have ended, and remove the output of jobs that ended more than a week ago."""
    for folder in sorted((store / "jobs").glob("*")):
        job = _read(folder, store)
        if job is not None:
            yield job
        elif not (folder / "plan.json").exists():
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime > _KEEP_LOGS_S:
                    shutil.rmtree(folder, ignore_errors=True)


def _read(folder: Path, store: Path) -> StoredJob | None:
    try:
        facts: Mapping[str, Any] = json.loads(read_regular(folder / "job.json"))
        named = {name: facts[name] for name in _FACTS}
        ids = {int(part): str(name) for part, name in facts["ids"].items()}
        return StoredJob(job=Job(folder=folder, store=store, **named), where=facts["where"], ids=ids, submitted=facts["submitted"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
