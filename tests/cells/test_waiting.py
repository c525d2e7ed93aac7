"""Waiting costs nothing, and a cell that nobody survives is given up."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

import fake_cells
import pytest
from lease_files import ELSEWHERE, write_lease

from cglsuite.cells.obtain import run_if_free
from cglsuite.cells.plan import CellOptions, CellRequest, PlannedCell, plan_cell
from cglsuite.cells.storage.lease import FAR_S, Attempt, Backoff, Lease, withdraw
from cglsuite.cells.storage.store import Store
from cglsuite.specs import Seeds

CATALOGUE: Any = fake_cells.FakeCatalogue()


def cell(seed: int = 0, **overrides: Any) -> PlannedCell:
    dotted = {f"method.{name}": value for name, value in overrides.items()}
    request = CellRequest(scenario="toy/task-il@begin-1", method="bare", overrides=dotted, seeds=Seeds(init=seed))
    return plan_cell(request, CATALOGUE)


def test_delays_grow_to_a_bound_and_begin_again_when_forgotten() -> None:
    now = [0.0]
    backoff = Backoff(0.5, clock=lambda: now[0])
    assert backoff.due("x")
    delays = [backoff.missed("x") for _ in range(20)]
    assert delays[:3] == [0.5, 0.75, 1.125]
    assert delays[-1] == FAR_S
    assert not backoff.due("x")
    assert backoff.due("y")
    now[0] = FAR_S
    assert backoff.due("x")
    assert backoff.missed("x", near=True) == 1.0  # a death on this machine is known at once
    backoff.forget("x")
    assert backoff.missed("x") == 0.5


def test_a_supervisor_that_waits_for_twenty_cells_of_others_hardly_looks(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty leases of another machine, looked at less and less often; without delays that is twenty times a second."""
    from cglsuite.campaigns.executors import LocalExecutor, RunOptions, supervisor

    cells = [cell(n) for n in range(20)]
    for planned in cells:
        write_lease(store.path / "leases" / f"{planned.key}.lease", **ELSEWHERE)
    looks, acquire = list[float](), Lease.acquire

    class Enough(Exception):
        pass

    def counted(self: Lease) -> bool:
        looks.append(time.monotonic() - began)
        return acquire(self)

    def sleep(_: float) -> None:
        if time.monotonic() - began > 3:
            raise Enough
        real(0.02)

    real, began = time.sleep, time.monotonic()
    monkeypatch.setattr(Lease, "acquire", counted)
    monkeypatch.setattr(supervisor.time, "sleep", sleep)
    with pytest.raises(Enough):
        LocalExecutor().run(cells, store, RunOptions(catalogue=CATALOGUE, progress=False))
    assert len([t for t in looks if t > 1]) <= 3 * len(cells)  # in two seconds; of a hundred rounds


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    return Store(tmp_path / "store")


def fall(store: Store, key: str, times: int) -> Path:
    """The lines of as many runners that were killed."""
    path = store.path / "attempts" / f"{key}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"process {n} on node{n}, begun then\n" for n in range(times)))
    return path


@pytest.mark.parametrize(("fallen", "runs"), [(0, True), (3, True), (4, False)])
def test_a_cell_is_taken_over_three_times(store: Store, tmp_path: Path, fallen: int, runs: bool) -> None:
    planned = cell()
    path = fall(store, planned.key, fallen)
    record = run_if_free(planned, CATALOGUE, store)
    assert record is not None
    assert record.done == runs
    assert (tmp_path / "log").exists() == runs
    assert not path.exists()  # there is a record: the next run begins with nothing against the cell
    if not runs:
        assert "process 3 on node3, begun then" in (record.reason or "")
        assert run_if_free(planned, CATALOGUE, store)


def test_a_saved_checkpoint_clears_those_who_fell_before(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that is lost with this process too does not: a cell that always dies before it saves anything is given up."""
    planned = cell()
    path, seen = fall(store, planned.key, 3), list[int]()

    def run_cell(cell: Any, catalogue: Any, store: Store, options: CellOptions) -> Any:
        for learnt in (1, 2, 3):
            if learnt == 3:
                store.save_checkpoint("some", {})
            assert options.progress is not None
            options.progress(learnt, 4)
            seen.append(len(path.read_text().splitlines()))
        raise KeyboardInterrupt

    monkeypatch.setattr(fake_cells, "run_cell", run_cell)
    with pytest.raises(KeyboardInterrupt):
        run_if_free(planned, CATALOGUE, store)
    assert seen == [4, 4, 1]
    assert not path.exists()


def test_who_stops_in_order_leaves_only_the_lines_of_others(tmp_path: Path) -> None:
    """Ctrl-C, and a supervisor that lets go; a process whose number begins alike is another one."""
    path, attempt = tmp_path / "x.txt", Attempt(tmp_path / "x.txt")
    other = f"process {os.getpid()}9 on {socket.gethostname()}, begun then\n"
    path.write_text(other)

    def stopped() -> None:
        with attempt:
            assert len(path.read_text().splitlines()) == 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert path.read_text() == other
    attempt.__enter__()
    withdraw(path, os.getpid())
    assert path.read_text() == other
    withdraw(path, os.getpid(), keep=False)
    assert not path.exists()
