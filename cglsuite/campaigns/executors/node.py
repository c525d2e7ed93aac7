"""Supervise one machine's share of a plan: ``python -m cglsuite.campaigns.executors.node PLAN --store DIR --share I N``.

This is the local executor over the whole plan: it starts with its own section and then takes any cell that it can lease. It stops when
there is nothing left to take, when its plan is gone (the job was cancelled), or on a signal; finished cells are always kept.
Engines start it on any number of machines: :mod:`cglsuite.campaigns.executors.remote`.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from cglsuite import host
from cglsuite.base.errors import CglsuiteError, StoreError, UsageError
from cglsuite.campaigns.executors.base import AGAIN, REFUSED, RunOptions
from cglsuite.campaigns.executors.progress import CellProgress, say
from cglsuite.campaigns.executors.supervisor import Share, Supervisor
from cglsuite.cells.device import check_device, visible_gpus
from cglsuite.cells.job import job_environment
from cglsuite.cells.keys import keyed_torch, torch_version
from cglsuite.cells.observing import Observers, observer_of
from cglsuite.cells.plan import PlanFile, PlannedCell, plan_cells
from cglsuite.cells.storage.store import Store
from cglsuite.graphs.files.named import naming
from cglsuite.host import Catalogue

WATCH_S = 2.0
_STORE_FAULT = 74  # EX_IOERR
logger = logging.getLogger("cglsuite.node")


class _Stopped(KeyboardInterrupt):
    """Raised when this machine must stop, because of a signal or because the job is over; ``status`` is the exit status."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


class _Refusal(UsageError):
    """Raised when this machine would produce different numbers, or none."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one machine's share. The exit status is 0 if no cells are left, 69 if this machine cannot run them, 75 after SIGUSR1 (time is
    nearly up), and 128 + n after another signal.
    """
    options = _parser().parse_args(argv)
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("cglsuite").setLevel(options.log_level)
    for number, status in {signal.SIGTERM: 128 + signal.SIGTERM, signal.SIGINT: 128 + signal.SIGINT, signal.SIGUSR1: AGAIN}.items():
        signal.signal(number, _stop_handler(status))
    os.environ.update(job_environment(engine=options.engine, id=options.id, name=options.name))
    index, of = options.share
    try:
        if not 0 <= index < of:
            raise UsageError(f"--share {index} {of}: expected I N with 0 <= I < N")
        return _run_share(options.plan, Store(options.store), index, of, options)
    except _Stopped as stopped:
        say(f"part {index} of {of}: {stopped}; finished cells are kept")
        return stopped.status
    except StoreError as error:
        logger.error("%s", error)
        return _STORE_FAULT
    except _Refusal as error:
        logger.error("%s refuses its share: %s", socket.gethostname(), error)
        return REFUSED
    except CglsuiteError as error:
        logger.error("%s", error)
        return error.exit_code


def _run_share(path: Path, store: Store, index: int, n_machines: int, options: argparse.Namespace) -> int:
    if not path.exists():
        say(f"part {index} of {n_machines}: the plan {path} is gone, so there is nothing to do")
        return 0
    plan, since_ns = PlanFile.read(path), path.stat().st_mtime_ns
    _refuse_different_torch(plan)
    try:
        naming(plugins=plan.plugins, data=plan.data, options=plan.data_options)
    except UsageError as error:
        raise _Refusal(str(error)) from error
    catalogue = host.load_catalogue()
    cells = _resolve_cells(plan, catalogue)
    missing = {key: planned for key, planned in cells.items() if store.outcome(key, since_ns) is None}
    run = RunOptions(
        catalogue=catalogue,
        workers=options.workers or plan.workers,
        limits=plan.limits,
        share_prefixes=bool(plan.sharing),
        label=f"part {index} of {n_machines}",
        observers=_observers(plan),
    )
    store.warn_without_locks()
    on_cuda = any(planned.request.device == "cuda" for planned in missing.values())
    share = Share(plan=path, index=index, of=n_machines, gpus=visible_gpus() if on_cuda else (), watch=_Watch(path, options.with_parent))
    with CellProgress(len(missing), run.label) as progress:
        supervisor = Supervisor(missing, store, run, progress, plan.foreign, share)
        supervisor.families.count(cells.values(), missing)
        supervisor.supervise()
    return 0


def _observers(plan: PlanFile) -> Observers:
    """Return the plan's observers that are available here; a missing observer does not fail a cell."""
    observers = []
    for name in plan.watch:
        try:
            observers.append(observer_of(name, Path()))
        except UsageError as error:
            logger.warning("%s", error)
    return Observers(observers)


def _refuse_different_torch(plan: PlanFile) -> None:
    here, devices = torch_version(), {request.device for _, request in plan.cells}
    if plan.torch and any(keyed_torch(here, device) != keyed_torch(plan.torch, device) for device in devices):
        raise _Refusal(
            f"torch {here} is installed here, but the plan was made with {plan.torch}, and the version is part of every key: "
            f"install torch {plan.torch}"
        )


def _resolve_cells(plan: PlanFile, catalogue: Catalogue) -> dict[str, PlannedCell]:
    """Resolve the plan's cells here; their keys must match those of the machine that made the plan."""
    planned = plan_cells([request for _, request in plan.cells], catalogue)
    for (key, request), cell in zip(plan.cells, planned, strict=True):
        if not cell.ready or cell.key != key:
            how = cell.reason or f"another key ({cell.key[:12]}, planned {key[:12]})"
            raise _Refusal(
                f"{request.label} has {how} here: the versions of the suite, its plugins or a dependency differ. Install the same versions"
            )
    try:
        for device in {request.device for _, request in plan.cells}:
            check_device(device)
    except UsageError as error:
        raise _Refusal(str(error)) from error
    return {cell.key: cell for cell in planned}


class _Watch:
    """Raises when the plan is gone or, with ``parent``, when the parent process has ended."""

    def __init__(self, plan: Path, parent: bool) -> None:
        self.plan, self.parent, self.looked = plan, os.getppid() if parent else 0, time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self.looked < WATCH_S:
            return
        self.looked = time.monotonic()
        if not self.plan.exists():
            raise _Stopped("the plan file is gone, so the job is over", 0)
        if self.parent and os.getppid() != self.parent:
            raise _Stopped("the parent process is gone", AGAIN)


def _stop_handler(status: int) -> Callable[[int, FrameType | None], None]:
    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        raise _Stopped(f"stopped by {signal.Signals(number).name}", status)

    return stop


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cglsuite.campaigns.executors.node", description="Run this machine's part of a shared plan."
    )
    parser.add_argument("plan", type=Path, help="a plan file written by an executor")
    parser.add_argument("--store", type=Path, required=True, help="the folder of records")
    parser.add_argument("--share", type=int, nargs=2, default=(0, 1), metavar=("I", "N"), help="this is machine I of N, from 0")
    parser.add_argument("--workers", type=int, help="worker processes, per GPU on CUDA  [default: the plan's]")
    parser.add_argument("--engine", default="", help="for records: name of the engine that started this process")
    parser.add_argument("--id", default="", help="for records: id of this process in that engine")
    parser.add_argument("--name", default="", help="for records: the job's name")
    parser.add_argument("--with-parent", action="store_true", help="stop when the parent process ends")
    parser.add_argument("--log-level", type=int, default=logging.WARNING, help="lowest log level, as a number")
    return parser


if __name__ == "__main__":
    sys.exit(main())
