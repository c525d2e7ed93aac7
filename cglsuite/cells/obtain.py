"""Obtain the record of a cell from the store, or by running the cell under a lease."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from cglsuite.base.errors import NotApplicable, StoreError
from cglsuite.cells import keys
from cglsuite.cells.job import job_facts
from cglsuite.cells.plan import DEFAULT_OPTIONS, CellOptions, PlannedCell
from cglsuite.cells.records.describe import describe, providers
from cglsuite.cells.records.record import Record, Status, recordable
from cglsuite.cells.storage.lease import FIRST_S, MAX_TAKEOVERS, Attempt, Backoff, TaskElsewhere
from cglsuite.cells.storage.store import Store

if TYPE_CHECKING:
    from cglsuite.cells.spec import CellSpec
    from cglsuite.cells.storage.lease import Holder
    from cglsuite.host import Catalogue


def run_if_free(
    planned: PlannedCell,
    catalogue: Catalogue,
    store: Store,
    options: CellOptions = DEFAULT_OPTIONS,
    *,
    rerun: bool = False,
    since_ns: int | None = None,
    on_start: Callable[[], None] = lambda: None,
    on_error: Callable[[Exception], Record] | None = None,
) -> Record | None:
    """Return the cell's finished record, or run the cell and return its outcome. Returns None while another live runner holds the cell.

    Args:
        options: how to run it; a rerun shares no tasks.
        rerun: run from the first task even if there is a result; a result is replaced only by another result.
        since_ns: also accept a record of any status that was written at or after this instant (see :meth:`Store.attempted_since`).
        on_start: called once the lease is held, before the run.
        on_error: called with an error of the run other than those below, while the lease is still held; its return value is the outcome.
            If it is missing, the error is raised.

    Raises:
        StoreError: the record or a checkpoint cannot be written.
        TaskElsewhere: see :func:`cglsuite.cells.run.run_cell`.
    """
    cell = planned.cell
    if cell is None:
        raise NotApplicable(planned.reason or "nothing was resolved")
    if not rerun and (record := store.outcome(planned.key, since_ns)) is not None:
        return record
    lease = store.lease(planned.key)
    if lease is None:
        return None
    with lease:
        # The previous holder may have finished, or failed, between our check of the store and taking the lease.
        if not rerun and (record := store.outcome(planned.key, since_ns)) is not None:
            return record
        with store.attempt(planned.key) as attempt:
            if len(attempt.fallen) > MAX_TAKEOVERS:
                record = _poison_record(planned, catalogue, store, attempt)
                attempt.finished()
                return record

            saved = store.saved

            def advance(learnt: int, n_tasks: int) -> None:
                if store.saved > saved:  # the state learnt since the last checkpoint is lost with this process
                    attempt.progressed()
                if options.progress is not None:
                    options.progress(learnt, n_tasks)

            from cglsuite.cells.run import run_cell  # imports torch

            on_start()
            how = replace(options, progress=advance)
            try:
                if not rerun:
                    record = run_cell(cell, catalogue, store, how)
                else:
                    store.drop_checkpoints(keys.prefix_keys(cell, catalogue))
                    with store.set_aside(planned.key):
                        record = run_cell(cell, catalogue, store, replace(how, shared_tasks=None))
            except (StoreError, TaskElsewhere):
                raise
            except Exception as error:
                if on_error is None:
                    raise
                record = on_error(error)
            attempt.finished()
        # If this process was suspended and another runner took over the cell, the other runner's record counts.
        return record if lease.held else store.cached(planned.key)


def _poison_record(planned: PlannedCell, catalogue: Catalogue, store: Store, attempt: Attempt) -> Record:
    """Return the failure record of a cell in which several runners in succession have died."""
    who = "; ".join(attempt.fallen)
    reason = (
        f"not taken over for the {MAX_TAKEOVERS + 1}th time: {len(attempt.fallen)} runners ended during this cell before saving "
        f"a checkpoint ({who}). The usual cause is running out of memory. The next run tries the cell again"
    )
    if planned.cell is None:
        raise NotApplicable(planned.reason or "nothing was resolved")
    record = failure_record(planned.cell, catalogue, key=planned.key, status="failed", reason=reason)
    store.put(record)
    return record


def obtain_record(
    planned: PlannedCell,
    catalogue: Catalogue,
    store: Store,
    options: CellOptions = DEFAULT_OPTIONS,
    *,
    rerun: bool = False,
    on_wait: Callable[[Holder], None] = lambda holder: None,
    poll_s: float = FIRST_S,
) -> Record:
    """Like :func:`run_if_free`, but wait if another runner holds the cell (``on_wait`` is called once with the holder). The checkpoints of
    a cell that finishes here are removed.

    Raises:
        NotApplicable: the planned cell is N/A.
        StoreError: the record or a checkpoint cannot be written.
    """
    if not rerun and (settled := _settled_record(planned, store)) is not None:
        return settled
    waiting, started, backoff = False, [], Backoff(poll_s)
    store.warn_without_locks()

    def attempt() -> Record | None:
        return run_if_free(planned, catalogue, store, options, rerun=rerun, on_start=lambda: started.append(True))

    while (record := attempt()) is None:
        holder = store.holder(planned.key)
        if not waiting and holder is not None:
            on_wait(holder)
            waiting = True
        time.sleep(backoff.missed(planned.key, near=holder is not None and holder.here))
    if started and record.done and planned.cell is not None:
        store.drop_checkpoints(keys.prefix_keys(planned.cell, catalogue))
    return record


def _settled_record(planned: PlannedCell, store: Store) -> Record | None:
    """Return the record of a cell that diverged or did not apply on the same arithmetic as here, and is therefore not tried again."""
    record = store.get(planned.key) if planned.ready else None
    if record is None or not record.settled_on(None):
        return None
    from cglsuite.cells.portable import arithmetic  # imports torch

    return record if record.settled_on(arithmetic()) else None


# The record of a cell whose process died, timed out, or could not start.


def failure_record(
    cell: CellSpec, catalogue: Catalogue, *, key: str, status: Status, reason: str, elapsed_s: float | None = None
) -> Record:
    """Create a record of ``cell`` that states why it has no result. Does not import torch, since the parent process of workers calls it
    too.

    Args:
        elapsed_s: the cell's run time in seconds, if it had started.
    """
    used = keys.sources(cell, catalogue)
    return Record(
        key=key,
        design=keys.design_key(cell),
        status=status,
        reason=recordable(reason),
        **describe(cell),
        timings_s={} if elapsed_s is None else {"total": elapsed_s},
        provenance={
            **providers(used),
            "resumed_from_task": 0,
        },
        environment={
            "python": platform.python_version(),
            "torch": keys.torch_version(),
            "platform": f"{platform.system()} {platform.machine()}",
            "cpu": None,
            "cuda": None,
            **job_facts(),
        },
    )
