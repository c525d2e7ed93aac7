"""One cell from the store or by running it: what is called, what is kept and what is removed, in every way that a run can end."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_cells
import pytest

from cglsuite.base.errors import NotApplicable, StoreError
from cglsuite.cells.obtain import obtain_record, run_if_free
from cglsuite.cells.plan import CellOptions, CellRequest, PlannedCell, plan_cell
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage import lease as attempts
from cglsuite.cells.storage.lease import FAR_S, FIRST_S, MAX_TAKEOVERS, NEAR_S, Attempt, Backoff, TaskElsewhere
from cglsuite.cells.storage.store import Store
from cglsuite.specs import Seeds

CATALOGUE: Any = fake_cells.FakeCatalogue()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def planned(seed: int = 0) -> PlannedCell:
    request = CellRequest(scenario="toy/task-il@begin-1", method="bare", seeds=Seeds(init=seed))
    return plan_cell(request, CATALOGUE)


def outcome(cell: PlannedCell, **changes: Any) -> Record:
    return fake_cells.make_record(cell.cell, **changes)


class Ran:
    """A run that notes what it was given, and ends as ``end`` says."""

    def __init__(self, end: Callable[[], Any] | None = None, saving: tuple[int, ...] = ()) -> None:
        self.end, self.saving = end, saving
        self.options: list[CellOptions] = []

    def __call__(self, cell: Any, catalogue: Any, store: Store, options: CellOptions) -> Record:
        self.options.append(options)
        assert options.progress is not None
        for learnt in range(3):
            if learnt in self.saving:
                store.save_checkpoint("c" * 32, {"learnt": learnt})
            options.progress(learnt, 2)
        made = self.end() if self.end is not None else None
        record = made if isinstance(made, Record) else fake_cells.make_record(cell)
        store.put(record)
        return record

    def obtain(self, cell: PlannedCell, store: Store, by: Callable[..., Any] = run_if_free, **more: Any) -> Any:
        """The outcome where this runs cells."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fake_cells, "run_cell", self)
            names = {field.name for field in dataclasses.fields(CellOptions)} & more.keys()
            return by(cell, CATALOGUE, store, CellOptions(**{name: more.pop(name) for name in names}), **more)


def failing(error: Exception) -> Ran:
    def end() -> None:
        raise error

    return Ran(end)


def test_a_cell_that_was_not_resolved_has_no_record(store: Store) -> None:
    request = CellRequest(scenario="s", method="m")
    for reason, says in (("no such setting", "no such setting"), ("", "nothing was resolved")):
        with pytest.raises(NotApplicable, match=f"^{says}$"):
            Ran().obtain(PlannedCell(request=request, state="n/a", reason=reason), store)


def test_a_missing_cell_is_run_once(store: Store) -> None:
    """What is passed on: what it has in common, and observers where there are any."""
    cell, ran, steps, started = planned(), Ran(), [], []
    record = ran.obtain(
        cell,
        store,
        shared_tasks=lambda: 3,
        on_start=lambda: started.append(store.holder(cell.key)),
        progress=lambda learnt, n: steps.append((learnt, n)),
    )
    assert record == store.get(cell.key) == outcome(cell)
    assert ran.options[0].shared_tasks is not None
    assert ran.options[0].shared_tasks() == 3
    assert steps == [(0, 2), (1, 2), (2, 2)]
    assert [holder is not None and holder.pid for holder in started] == [os.getpid()]
    assert store.holder(cell.key) is None
    assert ran.obtain(cell, store, on_start=lambda: started.append(None)) == record
    assert (len(ran.options), len(started)) == (1, 1)
    other, watcher = planned(1), object()
    ran.obtain(other, store, observers=[watcher])  # type: ignore[list-item]
    assert ran.options[1] == CellOptions(progress=ran.options[1].progress, observers=[watcher])  # type: ignore[list-item]


def test_a_rerun_begins_with_the_first_task(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checkpoints go; its result is replaced by another result only."""
    cell, keys = planned(), []
    store.put(outcome(cell, timings_s={"total": 9.0}))
    ran = Ran()
    monkeypatch.setattr(fake_cells, "prefix_keys", lambda cell, catalogue: keys.append(cell) or ["p" * 32])
    record = ran.obtain(cell, store, rerun=True, shared_tasks=lambda: 3)
    assert record == store.get(cell.key) == outcome(cell)
    assert ran.options == [CellOptions(progress=ran.options[0].progress)]
    assert keys == [cell.cell]
    failed = Ran(lambda: outcome(cell, status="diverged", reason="boom"))
    assert failed.obtain(cell, store, rerun=True).status == "diverged"  # type: ignore[union-attr]
    assert store.get(cell.key) == outcome(cell)


@pytest.mark.parametrize(("later", "runs"), [(-1, False), (0, False), (1, True)])
def test_a_failure_of_this_attempt_is_the_outcome_and_an_earlier_one_is_not(store: Store, later: int, runs: bool) -> None:
    """By the time at which its record was written; without an instant any failure is tried again."""
    cell, ran = planned(), Ran()
    store.put(outcome(cell, status="failed", reason="boom"))
    written = store.record_path(cell.key).stat().st_mtime_ns
    record = ran.obtain(cell, store, since_ns=written + later)
    assert record is not None
    assert (record.status, len(ran.options)) == (("done", 1) if runs else ("failed", 0))
    again = Ran()
    store.put(outcome(planned(1), status="failed", reason="boom"))
    assert again.obtain(planned(1), store).done  # type: ignore[union-attr]


def test_a_cell_that_another_runner_has_is_left_to_it(store: Store) -> None:
    cell, ran = planned(), Ran()
    lease = store.lease(cell.key)
    assert lease is not None
    with lease:
        assert ran.obtain(cell, store) is None
    assert ran.options == []
    assert ran.obtain(cell, store) is not None


def test_what_another_has_finished_before_the_lease_is_taken_counts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the lease."""
    cell, ran, take = planned(), Ran(), Store.lease

    def late(self: Store, key: str, *more: Any) -> Any:
        self.put(outcome(cell))
        return take(self, key, *more)

    monkeypatch.setattr(Store, "lease", late)
    assert ran.obtain(cell, store) == outcome(cell)
    assert ran.options == []
    ran.obtain(cell, store, rerun=True)
    assert len(ran.options) == 1


def test_errors_are_raised_or_told(store: Store) -> None:
    """While the lease is held; those of the store and of waiting always pass."""
    cell, boom, held = planned(), RuntimeError("boom"), []

    def told(error: Exception) -> Record:
        held.append((error, store.holder(cell.key) is not None))
        return outcome(cell, status="failed", reason="told")

    with pytest.raises(RuntimeError, match="boom"):
        failing(boom).obtain(cell, store)
    record = failing(boom).obtain(cell, store, on_error=told)
    assert record is not None
    assert (record.reason, held) == ("told", [(boom, True)])
    for error in (StoreError("full"), TaskElsewhere("there")):
        with pytest.raises(type(error)):
            failing(error).obtain(cell, store, on_error=told)
    assert len(held) == 1
    assert store.holder(cell.key) is None


def fall(store: Store, key: str, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runners that ended in the middle of a cell: their lines stay."""
    for n in range(times):
        with monkeypatch.context() as other:
            other.setattr(attempts, "runner", lambda pid, n=n: f"process {n} on another")
            store.attempt(key).__enter__()


@pytest.mark.parametrize(("fallen", "runs"), [(MAX_TAKEOVERS, True), (MAX_TAKEOVERS + 1, False)])
def test_a_cell_that_nobody_survives_is_given_up(store: Store, monkeypatch: pytest.MonkeyPatch, fallen: int, runs: bool) -> None:
    """After three takeovers; the next run tries it again."""
    cell, ran = planned(), Ran()
    fall(store, cell.key, fallen, monkeypatch)
    record = ran.obtain(cell, store)
    assert record is not None
    assert (record.done, len(ran.options)) == ((True, 1) if runs else (False, 0))
    if not runs:
        assert record == store.get(cell.key)
        assert record.status == "failed"
        assert record.reason is not None
        assert record.reason.startswith(
            "not taken over for the 4th time: 4 runners ended during this cell before saving a checkpoint (process 0 on"
        )
        assert "process 3 on another, begun 20" in record.reason
        assert record.reason.endswith("The usual cause is running out of memory. The next run tries the cell again")
        assert ran.obtain(cell, store).done  # type: ignore[union-attr]


@pytest.mark.parametrize(("saving", "cleared"), [((), False), ((1,), True), ((2,), True)])
def test_only_what_is_saved_clears_those_who_fell_before(
    store: Store, monkeypatch: pytest.MonkeyPatch, saving: tuple[int, ...], cleared: bool
) -> None:
    """What was learnt since is lost with the process; a checkpoint of an earlier cell is none of this one."""
    cell = planned()
    fall(store, cell.key, 2, monkeypatch)
    store.save_checkpoint("d" * 32, {"learnt": 1})
    ran = Ran(failing(RuntimeError("boom")).end, saving)
    with pytest.raises(RuntimeError):
        ran.obtain(cell, store)
    with store.attempt(cell.key) as attempt:
        assert len(attempt.fallen) == (0 if cleared else 2)


def test_lines_of_an_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is written on entry and taken away in the end; with a record, all are."""
    path = tmp_path / "a"
    monkeypatch.setattr(attempts, "job_name", lambda: "j-1")
    with Attempt(path) as attempt:
        (line,) = path.read_text().splitlines()
        assert line.startswith(f"process {os.getpid()} on ")
        assert " of j-1, begun 20" in line
        assert not attempt.fallen
    assert not path.exists()
    path.write_text("process 1 on a, begun x\nprocess 2 on b, begun y\n")
    with Attempt(path) as attempt:
        assert list(attempt.fallen) == ["process 1 on a, begun x", "process 2 on b, begun y"]
        assert len(path.read_text().splitlines()) == 3
    assert path.read_text() == "process 1 on a, begun x\nprocess 2 on b, begun y\n"
    with Attempt(path) as attempt:
        attempt.finished()
    assert not path.exists()


def test_obtaining_waits_for_another_runner(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its holder is told of once; a cell that this process did not run keeps its checkpoints."""
    cell, told, slept, dropped = planned(), [], [], []
    lease = store.lease(cell.key)
    assert lease is not None
    assert lease.held

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            store.put(outcome(cell))

    monkeypatch.setattr("cglsuite.cells.run.time.sleep", sleep)
    monkeypatch.setattr(Store, "drop_checkpoints", lambda self, names: dropped.append(list(names)))
    record = Ran().obtain(cell, store, obtain_record, on_wait=told.append, poll_s=0.1)
    assert record == outcome(cell)
    assert slept == pytest.approx([0.1, 0.15, 0.225])
    assert [holder.pid for holder in told] == [os.getpid()]
    assert dropped == []
    lease.release()


def test_obtaining_a_cell_by_running_it_leaves_no_checkpoints(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one that failed stay: the next run goes on from them."""
    dropped: list[list[str]] = []
    monkeypatch.setattr(Store, "drop_checkpoints", lambda self, names: dropped.append(list(names)))
    cell, steps = planned(), []
    assert Ran().obtain(cell, store, obtain_record, progress=lambda *step: steps.append(step)).done
    assert dropped == [fake_cells.prefix_keys(cell.cell, CATALOGUE)]
    assert steps == [(0, 2), (1, 2), (2, 2)]
    other = planned(1)
    failed = Ran(lambda: outcome(other, status="diverged", reason="boom"))
    assert not failed.obtain(other, store, obtain_record).done
    assert len(dropped) == 1
    assert Ran().obtain(cell, store, obtain_record).done
    assert len(dropped) == 1
    assert Ran().obtain(cell, store, obtain_record, rerun=True).done
    assert len(dropped) == 3


def test_delays_grow_up_to_a_bound() -> None:
    """Half as long again each time; on this machine at most a second, elsewhere a sixth of a lease's lifetime."""
    now = [0.0]
    backoff = Backoff(clock=lambda: now[0])
    assert backoff.due("a")
    assert [backoff.missed("a") for _ in range(4)] == pytest.approx([FIRST_S * 1.5**n for n in range(4)])
    assert not backoff.due("a")
    assert backoff.due("b")
    now[0] += FIRST_S * 1.5**3
    assert backoff.due("a")
    assert [backoff.missed("far") for _ in range(20)][-1] == FAR_S == 10.0
    assert [backoff.missed("near", near=True) for _ in range(20)][-1] == NEAR_S == 1.0
    assert backoff.missed("far", near=True) == NEAR_S
    backoff.forget("far")
    backoff.forget("never met")
    assert backoff.due("far")
    assert backoff.missed("far") == FIRST_S == 0.25
