"""The local executor: every missing cell once, whatever happens to a worker, and nothing finished is ever lost."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import fake_cells
import pytest
from lease_files import ELSEWHERE, dead_pid, write_lease

from cglsuite.base.errors import StoreError
from cglsuite.campaigns.executors import Executor, ExecutorError, LocalExecutor, RunOptions
from cglsuite.cells.plan import CellRequest, Limits, PlannedCell, plan_cell
from cglsuite.cells.storage.store import Store, plan_lease
from cglsuite.specs import Seeds

CATALOGUE: Any = fake_cells.FakeCatalogue()
ROOT = str(Path(__file__).parents[2])


def cell(seed: int = 0, method: str = "bare", scenario: str = "toy/task-il@begin-1", order: int = 0, **overrides: Any) -> PlannedCell:
    dotted = {f"method.{name}": value for name, value in overrides.items()}
    request = CellRequest(scenario=scenario, method=method, overrides=dotted, seeds=Seeds(init=seed, order=order))
    return plan_cell(request, CATALOGUE)


def options(**changes: Any) -> RunOptions:
    return RunOptions(**({"catalogue": CATALOGUE, "progress": False} | changes))


def run(cells: list[PlannedCell], store: Store, **changes: Any) -> int:
    executor: Executor = LocalExecutor()
    return executor.run(cells, store, options(**changes))


def leftovers(store: Store) -> list[str]:
    folders = ("leases", "plans")
    return [p.name for f in folders for p in (store.path / f).glob("*") if not p.name.startswith(".")]


def test_two_workers_run_every_cell_once_and_nothing_twice(store: Store, log: Path) -> None:
    """N/A cells are left out, cached ones left alone, a repeated cell counts once."""
    cells = [cell(s, seconds=0.02) for s in range(6)] + [cell(0, seconds=0.02), cell(0, "packnet", "toy/class-il@begin-1")]
    assert run(cells, store, workers=2) == 0
    assert Counter(log.read_text().split()) == Counter({c.key: 1 for c in cells[:6]})
    assert all(store.cached(c.key) for c in cells[:6])
    assert leftovers(store) == []
    assert run(cells, store, workers=2) == 0
    assert len(log.read_text().split()) == 6


def test_nothing_to_do_starts_no_worker(store: Store) -> None:
    """An empty plan is done."""
    assert run([], store) == 0
    assert not store.path.exists()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("behave", "says"),
    [
        ("kill", r"worker died with signal 9 \(SIGKILL; sent by a user, or by the kernel because memory ran out"),
        ("exit", r"worker exited with status 0 in the middle of the cell"),
        ("chatty", r"worker exited with status 3 in the middle of the cell\. It printed: a method that prints"),
        ("raise", r"RuntimeError: the core itself broke"),
    ],
)
def test_a_cell_that_takes_its_worker_down_costs_itself_only(
    store: Store, log: Path, caplog: pytest.LogCaptureFixture, behave: str, says: str
) -> None:
    """Its record says what happened, the others are done, nothing runs twice; run again, only that cell is tried again."""
    cells = [cell(0), cell(1, behave=behave), cell(2), cell(3)]
    with caplog.at_level(logging.WARNING):
        assert run(cells, store) == 1
    record = store.get(cells[1].key)
    assert record is not None
    assert record.status == "failed"
    assert record.reason is not None
    assert re.search(says, record.reason)
    assert record.cell["configuration"]["method.behave"] == behave
    assert record.cell["seeds"]["init"] == 1
    assert says.split(" ")[0].replace("\\", "") in caplog.text
    assert all(store.cached(cells[n].key) for n in (0, 2, 3))
    assert leftovers(store) == []
    assert max(Counter(log.read_text().split()).values()) == 1
    assert run(cells, store) == 1
    assert Counter(log.read_text().split()) == Counter({c.key: 1 for c in cells}) + Counter([cells[1].key])


def test_a_diverged_cell_is_recorded_by_its_run(store: Store) -> None:
    """What run_cell returns is kept as it is."""
    cells = [cell(0, behave="diverge"), cell(1)]
    assert run(cells, store) == 1
    record = store.get(cells[0].key)
    assert record is not None
    assert (record.status, record.reason) == ("diverged", "the loss is not finite")


def test_a_cell_over_its_time_is_stopped(store: Store) -> None:
    """The limit is per cell; the others go on."""
    cells = [cell(0, behave="sleep"), cell(1), cell(2)]
    began = time.monotonic()
    assert run(cells, store, limits=Limits(timeout_s=1.0)) == 1
    assert time.monotonic() - began < 90
    record = store.get(cells[0].key)
    assert record is not None
    assert record.status == "timeout"
    assert record.reason is not None
    assert "limit 1 s" in record.reason
    assert record.timings_s["total"] is not None
    assert record.timings_s["total"] >= 1.0
    assert store.cached(cells[1].key)
    assert store.cached(cells[2].key)


def test_a_full_disk_ends_the_run_and_keeps_what_is_done(store: Store) -> None:
    """One clear error instead of one failure per cell."""
    cells = [cell(0), cell(1, behave="full"), cell(2)]
    with pytest.raises(StoreError, match="No space left"):
        run(cells, store)
    assert store.cached(cells[0].key)
    assert store.get(cells[1].key) is None
    assert leftovers(store) == []


def test_workers_that_cannot_start_are_told_of(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not restarted for ever: after three the run ends with what the last one printed."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "sitecustomize.py").write_text("import os\nos.write(2, b'no luck today')\nos._exit(9)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    with pytest.raises(ExecutorError, match=r"3 workers exited before they started a cell.*no luck today"):
        run([cell(0)], store)


def test_a_worker_with_other_plugins_refuses(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell that means something else over there is not run under this key."""
    planned = cell(0)
    monkeypatch.setenv("FAKE_VERSION", "2")
    assert run([planned], store) == 1
    record = store.get(planned.key)
    assert record is not None
    assert record.reason is not None
    assert "another key" in record.reason


@pytest.mark.nightly
def test_cells_that_another_runner_holds_are_waited_for(store: Store, log: Path) -> None:
    """They are not run a second time, and their result counts."""
    held, free = cell(0), cell(1)
    lease = store.lease(held.key)
    assert lease is not None

    def finish() -> None:
        store.put(fake_cells.make_record(held.cell))
        lease.release()

    timer = threading.Timer(2.0, finish)
    timer.start()
    assert run([held, free], store, workers=2) == 0
    timer.join()
    assert log.read_text().split() == [free.key]


HOLD = """
import sys
from cglsuite.cells.storage.store import Store, plan_lease
lease = Store(sys.argv[1]).lease(sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""


def test_cells_of_a_runner_that_died_are_taken_over(store: Store, log: Path) -> None:
    """Its lease is stale as soon as it is dead."""
    planned = cell(0)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store.path), planned.key],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, os.environ["PYTHONPATH"]])},
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        timer = threading.Timer(1.5, holder.kill)
        timer.start()
        assert run([planned], store) == 0
        timer.join()
    assert log.read_text().split() == [planned.key]


@pytest.mark.nightly
def test_cells_of_a_machine_that_died_are_taken_over_and_waiting_is_told_at_once(
    store: Store, log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its lease is watched across polls and runs out, which no single poll could tell; who is waited for is named before, and once."""
    planned, path = cell(0), store.path / "leases" / f"{cell(0).key}.lease"
    write_lease(path, **ELSEWHERE, duration=2.0)
    began = time.time()
    with caplog.at_level(logging.INFO, logger="cglsuite.progress"):
        assert run([planned], store) == 0
    assert log.read_text().split() == [planned.key]
    [message] = [record for record in caplog.records if "waiting for a cell of" in record.getMessage()]
    assert message.created - began < 1
    assert re.search(
        r"process 4194305 on node7 since \S+, last seen \S+; if it is not seen again, it is taken over at", message.getMessage()
    )
    assert leftovers(store) == []


def test_what_killed_runs_left_is_swept(store: Store) -> None:
    """Plans of dead supervisors and leases of dead runners, on cells or on shared tasks; what may be in use stays."""
    planned, plans, leases = cell(0), store.path / "plans", store.path / "leases"
    plans.mkdir(parents=True)
    for name in ("1-dead", "2-alone", "3-live", "4-elsewhere"):
        (plans / f"{name}.json").write_text("{}")
    pid = dead_pid()
    write_lease(leases / f"{plan_lease(plans / '1-dead.json')}.lease", pid=pid)
    write_lease(leases / "family-prefix.lease", pid=pid)
    write_lease(leases / f"{plan_lease(plans / '3-live.json')}.lease")
    write_lease(leases / f"{plan_lease(plans / '4-elsewhere.json')}.lease", **ELSEWHERE)
    for name, age_s in (("ab.lease.break.1.old", 7200.0), ("ab.lease.break.1.new", 60.0)):  # of take-overs by filelock
        (leases / name).touch()
        os.utime(leases / name, (time.time() - age_s,) * 2)
    assert run([planned], store) == 0
    assert sorted(leftovers(store)) == sorted(
        ["3-live.json", "4-elsewhere.json", "plan-3-live.lease", "plan-4-elsewhere.lease", "ab.lease.break.1.new"]
    )


SUPERVISE = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs, and so a test run among them, begin by ignoring it
import fake_cells
from cglsuite.cells.plan import CellRequest, plan_cell
from cglsuite.cells.storage.store import Store, plan_lease
from cglsuite.campaigns.executors import LocalExecutor, RunOptions
from cglsuite.specs import Seeds
catalogue = fake_cells.FakeCatalogue()
cells = [
    plan_cell(CellRequest(scenario="toy/task-il@begin-1", method="bare", overrides={"method.seconds": t}, seeds=Seeds(init=n)), catalogue)
    for n, t in enumerate([0.0, 0.0, 300.0, 0.0])
]
LocalExecutor().run(cells, Store(sys.argv[1]), RunOptions(catalogue=catalogue, workers=2, progress=False))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_an_interrupted_run_leaves_finished_records_and_no_workers(store: Store, how: signal.Signals) -> None:
    """Ctrl-C, kill and kill -9 of the supervisor: its workers end, finished cells stay, the held cell is free again."""
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISE, str(store.path)],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, os.environ["PYTHONPATH"]])},
    )
    with process:
        slow = cell(2, seconds=300.0)
        quick = [cell(n, seconds=0.0) for n in (0, 1, 3)]
        # A lease whose holder has not yet signed it names no process that could be found dead.
        _wait(lambda: (h := store.holder(slow.key)) is not None and h.here and all(store.cached(c.key) for c in quick))
        holder = store.holder(slow.key)
        assert holder is not None
        process.send_signal(how)
        process.wait(60)
        _wait(lambda: store.holder(slow.key) is None)
        _wait(lambda: not _alive(holder.pid))
    assert store.get(slow.key) is None
    assert all(store.cached(c.key) for c in quick)
    store.sweep()
    assert leftovers(store) == []
    assert not store.problems


def test_a_cell_of_a_job_that_is_killed_process_by_process_has_not_failed(store: Store) -> None:
    """As Slurm does with a job that it no longer knows: the worker first, its supervisor a little later."""
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISE, str(store.path)],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, os.environ["PYTHONPATH"]])},
    ) as process:
        slow = cell(2, seconds=300.0)
        _wait(lambda: (h := store.holder(slow.key)) is not None and h.here)
        holder = store.holder(slow.key)
        assert holder is not None
        os.kill(holder.pid, signal.SIGKILL)
        time.sleep(0.5)
        process.kill()
    assert store.get(slow.key) is None


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _wait(condition: Any, limit_s: float = 90.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def test_checkpoints_go_when_no_unfinished_cell_needs_them(store: Store) -> None:
    """Two orders share a family: it goes with the second; the family of a failed cell stays to resume from."""
    shared = [cell(0, order=0), cell(0, order=1)]
    failing = cell(1, behave="diverge")
    foreign = store.checkpoint_path("foreign-0")
    foreign.parent.mkdir(parents=True)
    foreign.write_text("another campaign's")
    assert run([*shared, failing], store) == 1
    family = fake_cells.prefix_keys(failing.cell, None)[0]  # type: ignore[arg-type]
    assert sorted(p.name for p in foreign.parent.iterdir()) == sorted([f"{family}-0.pt", "foreign-0.pt"])
    stale = store.checkpoint_path(fake_cells.prefix_keys(shared[0].cell, None)[0] + "-9")  # type: ignore[arg-type]
    stale.write_text("left by a killed run")
    run(shared, store)
    assert not stale.exists()


def ordered(class_order: str, order: int = 0, seed: int = 0) -> PlannedCell:
    overrides = {"scenario.class_order": class_order}
    request = CellRequest(scenario="toy/task-il@begin-1", method="bare", overrides=overrides, seeds=Seeds(init=seed, order=order))
    return plan_cell(request, CATALOGUE)


@pytest.mark.parametrize("share", [True, False])
def test_cells_of_a_family_are_told_what_they_have_in_common(store: Store, share: bool) -> None:
    """Written-out orders as far as they agree, drawn ones their first task; cells that are alone in their family keep nothing."""
    cells = [ordered("0,1,2,3,4,5,6,7"), ordered("0,1,2,3,6,7,4,5"), ordered("random", order=1), ordered("random", order=2)]
    cells.append(ordered("7,6,5,4,3,2,1,0", seed=1))
    assert run(cells, store, share_prefixes=share) == 0
    message = [(store.path / "common" / c.key).read_text() for c in cells]
    assert message == (["2 2", "0 0", "1 1", "0 0", "0 0"] if share else ["0 0"] * 5)


def test_workers_get_the_threads_and_leave_the_parent_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of threads are in the environment before any library loads; importing and running touches no torch in the parent."""
    from cglsuite.campaigns.executors.supervisor import worker_environment

    environment = worker_environment(3)
    assert environment["OMP_NUM_THREADS"] == environment["MKL_NUM_THREADS"] == "3"
    assert os.environ.get("OMP_NUM_THREADS") != "3"
    assert environment["PYTHONPATH"].split(os.pathsep)[-1] == os.environ["PYTHONPATH"].split(os.pathsep)[-1]


def test_progress_is_a_line_now_and_then_without_a_terminal(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """The last line says how many there are and how they ended."""
    with caplog.at_level(logging.INFO, logger="cglsuite.progress"):
        run([cell(0), cell(1, behave="diverge")], store, progress=True, label="demo")
    lines = [r.getMessage() for r in caplog.records if r.name == "cglsuite.progress"]
    assert lines
    assert lines[-1].startswith("demo: 2 of 2 cells, 1 diverged, 0:0")


def test_progress_is_a_bar_on_a_terminal_that_log_lines_do_not_tear(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar goes to stderr, is cleared before a log line, and handlers are as before when it is done."""
    import io

    from cglsuite.campaigns.executors.progress import CellProgress

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    logger = logging.getLogger("cglsuite")
    handler = logging.StreamHandler(terminal)
    monkeypatch.setattr(logger, "handlers", [handler])
    with CellProgress(3, "demo") as progress:
        progress.finished("done")
        progress.working("a", "ewc task 1/3, epoch 5/10", 0.5)
        logger.warning("a word")
        progress.finished("failed", "b")
        progress.tick()
    assert logger.handlers == [handler]
    text = terminal.getvalue()
    assert "demo" in text
    assert "2 of 3 cells, 1 failed, 0:00, ewc task 1/3, epoch 5/10" in text
    assert " 83% |" in text  # two cells and a half
    assert text[: text.index("a word")].endswith(("\r", "\x1b[A", " \r"))
    assert "\x1b[3" not in text  # no colours, whatever NO_COLOR says
