"""Running on other machines: the launcher that the documentation writes, with subprocesses in place of hosts, and what can happen to it."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fake_cells
import pytest
from doc_blocks import ROOT, blocks

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.executors import Ended, ExecutorError, Job, LocalExecutor, RemoteExecutor, RunOptions, UnreachableError, remote
from cglsuite.campaigns.executors.campaign_run import executor_options
from cglsuite.campaigns.executors.remote import stored_jobs
from cglsuite.cells.plan import CellRequest, Limits, PlannedCell, plan_cell
from cglsuite.cells.storage.store import Store
from cglsuite.specs import Seeds

CATALOGUE: Any = fake_cells.FakeCatalogue()
PAGE = ROOT / "docs" / "how-to" / "write-an-executor.md"
(CODE,) = (block.text for block in blocks(PAGE) if block.title == "cglsuite_hosts.py")
HERE = "env STANDS_FOR={host} sh -c"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often; supervisors find the suite in this tree."""
    monkeypatch.setattr(remote, "TICK_S", 0.05)
    monkeypatch.setattr(remote, "FIRST_POLL_S", 0.1)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]]))


def cell(seed: int = 0, **settings: Any) -> PlannedCell:
    dotted = {f"method.{name}": value for name, value in settings.items()}
    request = CellRequest(scenario="toy/task-il@begin-1", method="bare", overrides=dotted, seeds=Seeds(init=seed))
    return plan_cell(request, CATALOGUE)


def hosts(*names: str) -> Any:
    """The documentation's launcher."""
    namespace: dict[str, Any] = {"__name__": "cglsuite_hosts"}
    exec(compile(CODE, str(PAGE), "exec"), namespace)
    (spec,) = namespace["cglsuite_executors"]()
    return namespace["Hosts"](**executor_options(spec, {"hosts": list(names), "command": HERE}, "run.hosts"))


def options(**changes: Any) -> RunOptions:
    return RunOptions(**({"catalogue": CATALOGUE, "progress": False} | changes))


def run(cells: list[PlannedCell], store: Store, launcher: Any = None, **changes: Any) -> int:
    return RemoteExecutor("hosts", launcher or hosts("alpha", "beta")).run(cells, store, options(**changes))


def wait(condition: Any, limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_the_launcher_of_the_documentation_is_short() -> None:
    assert len([line for line in CODE.splitlines() if line.strip()]) <= 60


def test_every_cell_is_run_once_on_two_hosts_and_its_record_names_the_job(store: Store, log: Path) -> None:
    """Leases, plan and folder of the job are gone afterwards; a second run launches nothing."""
    cells = [cell(n, seconds=0.3) for n in range(8)]
    assert run(cells, store) == 0
    assert Counter(log.read_text().split()) == Counter({c.key: 1 for c in cells})
    records = [store.cached(c.key) for c in cells]
    assert not list(stored_jobs(store.path))
    assert not any((store.path / "jobs").glob("*"))
    assert not any((store.path / "leases").glob("*.lease"))
    assert not any((store.path / "attempts").glob("*"))
    assert all(record is not None for record in records)

    class Nothing:
        parts = 1

    assert run(cells, store, Nothing()) == 0


@pytest.mark.parametrize("behave", ["raise", "kill", *(pytest.param(late, marks=pytest.mark.nightly) for late in ("sleep", "diverge"))])
def test_a_bad_cell_costs_itself_only(store: Store, log: Path, behave: str) -> None:
    """Its death is recorded by its own machine's supervisor, and it is tried once per run."""
    cells = [cell(0), cell(1, behave=behave), cell(2), cell(3)]
    # Where two "hosts" are one machine, the second sees the dead worker's lease before the first has recorded the death.
    launcher = hosts("alpha") if behave == "kill" else hosts("alpha", "beta")
    assert run(cells, store, launcher, limits=Limits(timeout_s=1.5)) == 1
    record = store.get(cells[1].key)
    assert record is not None
    assert record.status == {"diverge": "diverged", "sleep": "timeout"}.get(behave, "failed")
    assert all(store.cached(cells[n].key) for n in (0, 2, 3))
    assert max(Counter(log.read_text().split()).values()) == 1
    if behave == "kill":
        assert record.environment["job"]["engine"] == "hosts"
        assert record.environment["job"]["id"] == "alpha"


def test_a_killed_part_is_started_again_and_its_cells_are_done(store: Store, log: Path) -> None:
    """The first part is killed in the middle of a cell: with both of its machine's processes at once, as when the power fails."""
    launcher, cells = hosts("alpha"), [cell(n, seconds=1.0) for n in range(4)]
    launch, launched = launcher.launch, list[tuple[int, ...]]()

    def launch_and_kill(job: Job, parts: Sequence[int]) -> Mapping[int, str]:
        ids: Mapping[int, str] = launch(job, parts)
        launched.append(tuple(parts))
        if len(launched) == 1:
            wait(lambda: store.record_files() and log.read_text().count("\n") == 2)
            holder = next(h for c in cells if (h := store.holder(c.key)) is not None)
            for pid in (int(ids[0]), holder.pid):
                os.kill(pid, signal.SIGKILL)
        return ids

    launcher.launch = launch_and_kill
    assert run(cells, store, launcher) == 0
    assert launched == [(0,), (0,)]
    assert sorted(Counter(log.read_text().split()).values()) == [1, 1, 1, 2]


@pytest.mark.nightly
def test_a_cell_that_takes_its_machine_down_is_given_up_after_three_takeovers(
    store: Store, log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody lives to record its death: the lines that its runners left do. The next run tries it again."""
    poison, cells = cell(0, behave="machine"), [cell(0, behave="machine"), cell(1), cell(2)]
    with caplog.at_level(logging.WARNING):
        assert run(cells, store, hosts("alpha")) == 1
    counts = Counter(log.read_text().split())
    assert counts == {poison.key: 4, cells[1].key: 1, cells[2].key: 1}
    record = store.get(poison.key)
    assert record is not None
    assert record.status == "failed"
    assert (record.reason or "").startswith(
        "not taken over for the 4th time: 4 runners ended during this cell before saving a checkpoint (process "
    )
    assert (record.reason or "").count("of hosts alpha, begun") == 4
    assert not any((store.path / "attempts").glob("*"))


def test_a_job_whose_parts_all_fail_is_given_up_with_what_they_printed(store: Store) -> None:
    """A broken installation over there: what would fail again is not started again."""
    launcher = hosts("alpha", "beta")
    launcher.command = "sh -c 'echo no such interpreter; exit 3'"
    with pytest.raises(ExecutorError, match=r"2 cells left\. part 0: exit status 3\. It printed: no such interpreter"):
        run([cell(0), cell(1)], store, launcher)
    assert not list(stored_jobs(store.path))


def test_a_job_that_is_stopped_again_and_again_without_progress_is_given_up(store: Store) -> None:
    """Started three more times, and no oftener."""
    launcher, launch, launched = hosts("alpha"), None, list[int]()
    launcher.command = "sh -c 'echo out of time; exit 75'"
    launch = launcher.launch

    def counted(job: Job, parts: Sequence[int]) -> Mapping[int, str]:
        launched.append(len(parts))
        ids: Mapping[int, str] = launch(job, parts)
        return ids

    launcher.launch = counted
    with pytest.raises(ExecutorError, match=r"was started 4 times but finished nothing .* It printed: out of time"):
        run([cell(0)], store, launcher)
    assert launched == [1, 1, 1, 1]


@pytest.mark.parametrize(("variable", "says"), [("FAKE_VERSION=2", "another key"), ("PYTHONPATH", "torch 1.0 is installed here, but")])
def test_a_machine_that_differs_refuses_its_share_by_name(store: Store, tmp_path: Path, variable: str, says: str) -> None:
    """It writes no record for what it refuses: the other machine runs it."""
    (tmp_path / "old" / "torch-1.0.dist-info").mkdir(parents=True)
    (tmp_path / "old" / "torch-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 1.0\n")
    launcher, cells = hosts("alpha", "beta"), [cell(n) for n in range(4)]
    given = f"PYTHONPATH={tmp_path / 'old'}:$PYTHONPATH" if variable == "PYTHONPATH" else variable
    launcher.command = f"sh -c 'test {{host}} = beta && export {given}; eval \"$0\"'"
    assert run(cells, store, launcher) == 0
    (folder,) = (store.path / "jobs").glob("*")  # kept for a look, since a part failed
    text = (folder / "part-1.log").read_text()
    assert f"{socket.gethostname()} refuses its share: " in text
    assert says in text
    assert all(store.cached(c.key) for c in cells)


SUBMIT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from test_remote import cell, hosts, options, remote
from cglsuite.cells.storage.store import Store
remote.TICK_S = remote.FIRST_POLL_S = 0.05
cells = [cell(n, seconds=t) for n, t in enumerate([0.0, 0.0, 3.0, 0.0])]
sys.exit(remote.RemoteExecutor("hosts", hosts("alpha", "beta")).run(cells, Store(sys.argv[1]), options(detach="--detach" in sys.argv)))
"""


def submit(store: Store, *words: str) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(Path(__file__).parent), os.environ["PYTHONPATH"]])
    return subprocess.Popen([sys.executable, "-c", SUBMIT, str(store.path), *words], env={**os.environ, "PYTHONPATH": path})


def test_a_killed_command_is_attached_to_by_the_same_command(store: Store, log: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its job goes on; the second command launches nothing beside it."""
    cells = [cell(n, seconds=t) for n, t in enumerate([0.0, 0.0, 3.0, 0.0])]
    with submit(store) as process:
        wait(lambda: store.holder(cells[2].key) is not None)
        process.kill()
    launcher = hosts("alpha", "beta")
    with caplog.at_level(logging.INFO, logger="cglsuite.progress"):
        assert run(cells, store, launcher) == 0
    assert "; attached to it" in caplog.text
    assert launcher.started == {}
    assert Counter(log.read_text().split()) == Counter({c.key: 1 for c in cells})
    assert not list(stored_jobs(store.path))


@pytest.mark.nightly
def test_two_commands_at_once_launch_one_job(store: Store, log: Path) -> None:
    """The second waits for the first one's job; both end when it is done."""
    with submit(store) as first, submit(store) as second:
        assert [first.wait(60), second.wait(60)] == [0, 0]
    assert set(Counter(log.read_text().split()).values()) == {1}


@pytest.mark.nightly
def test_ctrl_c_ends_the_job_and_keeps_what_is_finished(store: Store) -> None:
    """No supervisor and no worker is left, nothing is held, and no job is known."""
    slow = cell(2, seconds=3.0)
    with submit(store) as process:
        wait(lambda: (h := store.holder(slow.key)) is not None and h.here and store.cached(cell(0, seconds=0.0).key) is not None)
        holder = store.holder(slow.key)
        assert holder is not None
        process.send_signal(signal.SIGINT)
        assert process.wait(30) != 0
    wait(lambda: not alive(holder.pid))
    assert store.holder(slow.key) is None
    assert store.cached(slow.key) is None
    assert not list(stored_jobs(store.path))
    assert not any((store.path / "attempts").glob("*"))


@pytest.mark.nightly
def test_detached_it_returns_at_once_and_the_same_command_collects(store: Store, log: Path) -> None:
    """A later command finds the job over, or waits for it."""
    cells, local = [cell(n, seconds=t) for n, t in enumerate([0.0, 0.0, 3.0, 0.0])], LocalExecutor()
    with submit(store, "--detach") as process:
        assert process.wait(30) == 4  # cells that are still to be done
    assert len(list(stored_jobs(store.path))) == 1
    assert run(cells, store) == 0
    assert not list(stored_jobs(store.path))
    assert Counter(log.read_text().split()) == Counter({c.key: 1 for c in cells})
    with pytest.raises(UsageError, match="executor local: cannot detach, since workers end with this command"):
        local.run([cell(9)], store, options(detach=True))


class Deaf:
    """A launcher whose engine does not answer some of the questions."""

    def __init__(self, inner: Any, silent: set[int]) -> None:
        self.inner, self.silent, self.asked, self.parts = inner, silent, 0, inner.parts

    def launch(self, job: Job, parts: Sequence[int]) -> Mapping[int, str]:
        ids: Mapping[int, str] = self.inner.launch(job, parts)
        return ids

    def poll(self, ids: Mapping[int, str]) -> Mapping[int, Ended]:
        self.asked += 1
        if self.asked in self.silent:
            raise UnreachableError("the controller does not answer")
        ended: Mapping[int, Ended] = self.inner.poll(ids)
        return ended

    def cancel(self, ids: Mapping[int, str]) -> None:
        self.inner.cancel(ids)


@pytest.mark.nightly
def test_an_engine_that_does_not_answer_has_ended_nothing(store: Store, log: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Said once, and again when it answers; no part is started a second time."""
    cells, launcher = [cell(n, seconds=1.0) for n in range(4)], Deaf(hosts("alpha", "beta"), set(range(1, 6)))
    with caplog.at_level(logging.INFO):
        assert run(cells, store, launcher) == 0
    assert caplog.text.count("the controller does not answer; the job is still running") == 1
    assert caplog.text.count("hosts responds again") == 1
    assert Counter(log.read_text().split()) == Counter({c.key: 1 for c in cells})


@pytest.mark.nightly
def test_a_job_whose_launch_was_never_answered_is_asked_for_by_name(store: Store, log: Path) -> None:
    """The command died between the launch and writing down its answer: the launcher is asked again with the same job."""
    cells, launcher = [cell(n) for n in range(2)], hosts("alpha")
    launch, names = launcher.launch, list[str]()

    def lost(job: Job, parts: Sequence[int]) -> Mapping[int, str]:
        names.append(job.name)
        if len(names) == 1:
            raise UnreachableError("the answer was lost")
        ids: Mapping[int, str] = launch(job, parts)
        return ids

    launcher.launch = lost
    with pytest.raises(UnreachableError, match="the answer was lost"):
        run(cells, store, launcher)
    assert run(cells, store, launcher) == 0
    assert len(names) == 2
    assert len(set(names)) == 1


@pytest.mark.nightly
def test_processors_of_several_models_are_named(store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their last bits may differ, and only whoever asks for machines can prevent it."""
    monkeypatch.setenv("FAKE_CPU", "1")
    with caplog.at_level(logging.WARNING):
        assert run([cell(n) for n in range(2)], store, hosts("alpha", "beta")) == 0
    assert "2 processor models (model 0; model 1)" in caplog.text
