"""Leases: one holder at a time, taken over when the holder is gone, and never taken from one who lives."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fake_cells
import pytest
from filelock import FileLock, SoftFileLease
from lease_files import ELSEWHERE, dead_pid, facts_of, write_lease

from cglsuite.base.errors import StoreError
from cglsuite.cells.plan import CellRequest, plan_cell
from cglsuite.cells.storage import lease as lease_module
from cglsuite.cells.storage.lease import Lease, has_locks, read_holder
from cglsuite.cells.storage.store import Store

SOURCE = str(Path(__file__).parents[3])
HOUR = 3600.0


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")])}


def had(path: Path) -> bool:
    """Whether the lease can be had at once."""
    lease = Lease(path)
    with lease:
        return lease.acquire()


def seconds_until(take: Callable[[], object], limit_s: float = 10.0) -> float:
    began = time.monotonic()
    while not take():
        assert time.monotonic() - began < limit_s, "waited in vain"
        time.sleep(0.02)
    return time.monotonic() - began


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    """Held once, refused meanwhile, free afterwards; the file says who, where and since when."""
    store = Store(tmp_path)
    began = time.time()
    lease = store.lease("ab")
    assert lease is not None
    with lease:
        assert store.lease("ab") is None
        assert Store(tmp_path).lease("ab") is None
        assert lease.acquire() is False
        assert lease.held
        holder = store.holder("ab")
        assert holder is not None
        assert (holder.pid, holder.here, holder.dead, holder.silent) == (os.getpid(), True, False, False)
        assert began - 1 <= holder.since <= time.time() + 1
        assert str(holder).startswith(f"process {os.getpid()} on {holder.host} since ")
        assert "taken over at" in holder.wait
        assert facts_of(tmp_path / "leases" / "ab.lease")["duration"] == "60.0"
        with store.lease("cd") or pytest.fail("another key is another lease"):
            pass
    assert store.holder("ab") is None
    assert not (tmp_path / "leases" / "ab.lease").exists()
    assert [lease.held, lease.taken] == [False, False]
    lease.release()


@pytest.mark.parametrize(
    ("changes", "free"),
    [
        ({}, False),
        ({"process": "1"}, True),
        ({"pid": 2**22 + 1}, True),
        (ELSEWHERE, False),
        ({"age_s": HOUR}, False),
        (ELSEWHERE | {"age_s": HOUR}, False),
        # A container of the same host and boot with processes of its own.
        ({"host": "{host}?pidns-f000000a", "machine": "{machine}0", "pid": 2**22 + 1}, False),
    ],
)
def test_who_counts_as_alive(tmp_path: Path, changes: dict[str, Any], free: bool) -> None:
    """Dead on this machine: free at once. On another machine, or in another container, no single look can tell, whatever the clock says."""
    path = tmp_path / "x.lease"
    write_lease(path)
    own = facts_of(path)
    write_lease(path, **{name: value.format(**own) if isinstance(value, str) else value for name, value in changes.items()})
    holder = read_holder(path)
    assert (holder is None) == free
    if holder is not None:
        assert holder.silent == ("age_s" in changes)
        assert "?" not in holder.host
    assert had(path) == free


def test_a_lease_that_may_not_be_read_is_somebodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whose files are private holds it like any other."""
    path, real = tmp_path / "x.lease", Path.open
    write_lease(path, **ELSEWHERE)

    def private(self: Path, *args: Any, **more: Any) -> Any:
        if self == path:
            raise PermissionError(13, "Permission denied")
        return real(self, *args, **more)

    monkeypatch.setattr(Path, "open", private)
    monkeypatch.setattr(lease_module, "GRACE_S", 0.0)
    assert not had(path)
    holder = read_holder(path)
    assert holder is not None
    assert (holder.host, holder.dead) == ("unknown", False)


def test_a_dead_process_holds_nothing(tmp_path: Path) -> None:
    """Its lease is free at once, long before it expires; a live one's stays."""
    store, path = Store(tmp_path), tmp_path / "leases" / "x.lease"
    assert store.discard_stale_lease("x")
    write_lease(path, pid=dead_pid())
    assert store.discard_stale_lease("x")
    assert not path.exists()
    write_lease(path)
    assert not store.discard_stale_lease("x")
    assert path.exists()


def test_a_zombie_holds_nothing(tmp_path: Path) -> None:
    """Killed but not yet reaped by its parent."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    path = tmp_path / "x.lease"
    write_lease(path, pid=process.pid, process=lease_module._process_start(process.pid))
    assert not had(path)
    process.kill()
    seconds_until(lambda: read_holder(path) is None)
    assert had(path)
    process.communicate()


def test_the_heartbeat_keeps_a_lease(tmp_path: Path) -> None:
    """A lease much longer than its lifetime stays its holder's, however often another asks."""
    path = tmp_path / "x.lease"
    lease, other = Lease(path, lifetime_s=0.4), Lease(path, lifetime_s=0.4)
    assert lease.acquire()
    with lease:
        for _ in range(15):
            time.sleep(0.1)
            assert not other.acquire()
        assert lease.held
    assert not path.exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ahead_s", [0.0, HOUR, -90.0, -HOUR])
@pytest.mark.parametrize("exchange", [True, False])
def test_a_runner_of_another_machine_that_is_gone_is_known_by_its_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_s: float, exchange: bool
) -> None:
    """Whoever keeps looking takes over after a lifetime of its own clock, whatever the other clock says; one look is never enough."""
    if not exchange:  # NFS and SMB cannot swap two names, and there filelock takes nothing over
        monkeypatch.setattr(SoftFileLease, "_try_break_stale_lock", lambda self: None)
    path = tmp_path / "x.lease"
    write_lease(path, age_s=-ahead_s, **ELSEWHERE, duration=0.5)
    lease = Lease(path, lifetime_s=0.5)
    assert not any(Lease(path, lifetime_s=0.5).acquire() for _ in range(3))
    assert 0.4 <= seconds_until(lease.acquire) < 3
    with lease:
        assert lease.held
    assert [p.name for p in tmp_path.iterdir() if p.name != ".lock"] == []


@pytest.mark.parametrize("ahead_s", [HOUR, -90.0])
def test_a_live_runner_whose_clock_is_wrong_keeps_its_lease(tmp_path: Path, ahead_s: float) -> None:
    """Only that the file changes counts, not to what."""
    path, stop = tmp_path / "x.lease", threading.Event()
    write_lease(path, age_s=-ahead_s, **ELSEWHERE, duration=0.5)

    def renew() -> None:
        while not stop.wait(0.1):
            os.utime(path, (time.time() + ahead_s,) * 2)

    thread = threading.Thread(target=renew)
    thread.start()
    lease = Lease(path, lifetime_s=0.5)
    for _ in range(30):
        assert not lease.acquire()
        time.sleep(0.05)
    stop.set()
    thread.join()
    holder = read_holder(path)
    assert holder is not None
    assert holder.silent == (ahead_s < 0)  # for people: their clocks disagree, and the text names the last sign of life


@pytest.mark.parametrize(("duration", "longest_s"), [(0.3, HOUR), (1e9, 0.3)])
def test_a_lease_of_other_settings_is_waited_for_as_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, duration: float, longest_s: float
) -> None:
    """By its own lifetime, not by ours; but not for ever."""
    monkeypatch.setattr(lease_module, "LONGEST_S", longest_s)
    path = tmp_path / "x.lease"
    write_lease(path, **ELSEWHERE, duration=duration)
    lease = Lease(path)
    assert 0.2 <= seconds_until(lease.acquire) < 3
    lease.release()


ODD = {
    "empty": b"",
    "cut short": b"filelock/2\npid=12\nhost=node7\nmode=lea",
    "of an older suite": b'{"expires": 1e12, "host": "node7", "pid": 12}',
    "bytes": b"\xff\xfe\x00\x01",
    "no number": b"filelock/2\npid=true\nhost=node7\nmode=lease\ntoken=ab\nduration=60.0\n",
    "no process": b"filelock/2\npid=-1\nhost=node7\nmode=lease\ntoken=ab\nduration=60.0\n",
    "a lifetime of words": b"filelock/2\npid=12\nhost=node7\nmode=lease\ntoken=ab\nduration=long\n",
    "a lifetime below zero": b"filelock/2\npid=12\nhost=node7\nmode=lease\ntoken=ab\nduration=-60.0\n",
    "a lifetime without end": b"filelock/2\npid=12\nhost=node7\nmode=lease\ntoken=ab\nduration=1e400\n",
    "since never": b"filelock/2\npid=12\nhost=node7\nmode=lease\ntoken=ab\nduration=60.0\nsince=nan\n",
    "a list": b"[]",
    "large": b"x" * 100_000,
}


@pytest.mark.parametrize("ahead_s", [0.0, HOUR])
def test_a_file_that_names_nobody_counts_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_s: float) -> None:
    """Half-written, empty, of wrong types, however far in the future it is dated: it may be being written now, and soon it is rubbish."""
    monkeypatch.setattr(lease_module, "GRACE_S", 0.5)
    waiting: dict[str, Lease] = {}
    for name, content in ODD.items():
        path = tmp_path / f"{name}.lease"
        path.write_bytes(content)
        os.utime(path, (time.time() + ahead_s,) * 2)
        waiting[name] = Lease(path)
        assert read_holder(path) is None
        assert not waiting[name].acquire()
    (tmp_path / "folder.lease").mkdir()
    (tmp_path / "full.lease" / "more").mkdir(parents=True)
    waiting |= {name: Lease(tmp_path / f"{name}.lease") for name in ("folder", "full")}
    seconds_until(lambda: sum(lease.taken or lease.acquire() for lease in waiting.values()) == len(waiting))
    for lease in waiting.values():
        assert lease.held
        lease.release()
    # A folder that somebody put things into is not ours to remove.
    assert [p.name.startswith(".full.lease.") for p in tmp_path.iterdir() if p.name != ".lock"] == [True]


def test_a_holder_that_slept_does_not_touch_its_successor(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After a take-over neither the old heartbeat nor the old release does anything to the new lease, and the sleeper is told."""
    path = tmp_path / "x.lease"
    sleeper, successor = Lease(path, lifetime_s=0.3), Lease(path)
    assert sleeper.acquire()
    path.unlink()
    assert successor.acquire()
    assert not sleeper.held
    seconds_until(lambda: "lost the lease" in caplog.text)
    sleeper.release()
    assert successor.held
    successor.release()
    assert not path.exists()


def test_a_full_disk_leaves_no_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is kept off a cell by a lease that could not be written."""

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match="full"):
        Lease(tmp_path / "x.lease").acquire()
    assert not (tmp_path / "x.lease").exists()


def test_a_file_that_came_after_the_judged_one_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another contender was quicker: its lease is put back even if it was moved already."""
    path = tmp_path / "x.lease"
    write_lease(path, pid=dead_pid())
    mark = lease_module._content_with_mark(path)[0]
    path.rename(tmp_path / "old")
    quicker = Lease(path)
    assert quicker.acquire()
    unmoved = path.stat().st_ctime_ns
    assert not lease_module._remove_marked(path, mark)
    assert path.stat().st_ctime_ns == unmoved  # a file that is seen to be another is not even moved
    with monkeypatch.context() as patch:
        patch.setattr(lease_module, "_content_with_mark", lambda path: (mark, None))
        assert not lease_module._remove_marked(path, mark)
    assert quicker.held
    quicker.release()


def test_a_file_that_changed_after_it_was_judged_is_left_alone(tmp_path: Path) -> None:
    """Each part of the mark tells: the same file with other content, and with another state alone."""
    path = tmp_path / "x.lease"
    write_lease(path, pid=dead_pid())
    mark = lease_module._content_with_mark(path)[0]
    os.utime(path, ns=(0, mark[1] + 1))
    assert not lease_module._remove_marked(path, mark)
    os.utime(path, ns=(0, mark[1]))  # the time of a change of state is the kernel's, and stays another
    assert lease_module._content_with_mark(path)[0][:2] == mark[:2]
    assert not lease_module._remove_marked(path, mark)
    assert path.exists()
    assert lease_module._remove_marked(path, lease_module._content_with_mark(path)[0])
    assert list(tmp_path.iterdir()) == []


def test_a_file_swapped_between_the_look_and_the_move_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer file in its place, and a touch of the same file, are both noticed once it is moved; what was moved is back under its name."""
    path = tmp_path / "x.lease"
    for swap in (True, False):
        write_lease(path, pid=dead_pid())
        mark = lease_module._content_with_mark(path)[0]
        if swap:
            path.rename(tmp_path / "old")
            write_lease(path, pid=dead_pid())
            os.utime(path, ns=(mark[1], mark[1]))  # of the same age
        else:
            os.utime(path, ns=(0, mark[1] + 1))
        text = path.read_text()
        with monkeypatch.context() as patch:
            patch.setattr(lease_module, "_content_with_mark", lambda path, mark=mark: (mark, None))
            assert not lease_module._remove_marked(path, mark)
        assert path.read_text() == text
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["x.lease", "old"])


COMPETE = """
import os, sys
from pathlib import Path
from filelock import FileLock, SoftFileLease
from cglsuite.cells.storage.store import Store
store, log, n, lacks = Store(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if lacks:
    SoftFileLease._try_break_stale_lock = lambda self: None
def no_locks(self):
    raise OSError(37, "No locks available")
if lacks == "locks":
    FileLock._acquire = no_locks
print("ready", flush=True)
sys.stdin.readline()
for i in range(n):
    lease = store.lease(f"cell{i}")
    if lease is None:
        continue
    with lease:
        done = store.path / f"done{i}"
        if not done.exists():
            with log.open("a") as file:
                file.write(f"{i}\\n")
            done.touch()
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("stale", "lacks"), [(False, ""), (True, ""), (True, "exchange"), (True, "locks")])
def test_competing_processes_run_each_cell_once(tmp_path: Path, stale: bool, lacks: str) -> None:
    """Three processes go for the same forty leases at once, fresh or left behind by a dead process: each cell is run exactly once; where
    the file system has no locks, at least once."""
    n, log = 40, tmp_path / "log"
    log.touch()
    if stale:
        pid = dead_pid()
        write_lease(tmp_path / "first.lease", pid=pid)
        (tmp_path / "store" / "leases").mkdir(parents=True)
        for i in range(n):
            (tmp_path / "store" / "leases" / f"cell{i}.lease").write_bytes((tmp_path / "first.lease").read_bytes())
    words = [sys.executable, "-c", COMPETE, str(tmp_path / "store"), str(log), str(n), lacks]
    runners = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) for _ in range(3)]
    for runner in runners:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"ready\n"
    for runner in runners:
        assert runner.stdin is not None
        runner.stdin.write(b"go\n")
        runner.stdin.flush()
    for runner in runners:
        runner.communicate()
        assert runner.returncode == 0
    ran = Counter(log.read_text().split())
    assert set(ran) == set(map(str, range(n)))
    assert lacks == "locks" or set(ran.values()) == {1}
    assert not list((tmp_path / "store" / "leases").glob("*.lease*"))


HOLD = """
import sys, time
from cglsuite.cells.storage.store import Store
lease = Store(sys.argv[1]).lease("ab")
print("held", flush=True)
time.sleep(600)
"""


def test_the_lease_of_a_killed_process_is_taken_over_at_once(tmp_path: Path) -> None:
    """Killed with signal 9 while holding."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, env=environment())
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        store = Store(tmp_path)
        assert store.lease("ab") is None
        process.kill()
    lease = store.lease("ab")
    assert lease is not None
    lease.release()


SLEEP = """
import sys
sys.path.insert(0, sys.argv[2])
import fake_cells
from cglsuite.cells.obtain import obtain_record
from cglsuite.cells.plan import CellRequest, plan_cell
from cglsuite.cells.storage.store import Store
from dataclasses import replace
catalogue, store = fake_cells.FakeCatalogue(), Store(sys.argv[1])
planned = plan_cell(CellRequest(scenario="toy/task-il@begin-1", method="bare"), catalogue)
def run_cell(cell, catalogue, store, options):
    print(planned.key, flush=True)
    sys.stdin.readline()
    record = fake_cells.make_record(cell)
    store.put(record)
    return record
lease = store.lease
store.lease = lambda key: lease(key, 0.5)
fake_cells.run_cell = run_cell
record = obtain_record(planned, catalogue, store)
print(record.metrics["x"], flush=True)
"""


def test_a_runner_that_slept_past_its_lease_does_not_overwrite(tmp_path: Path) -> None:
    """Stopped, overtaken, woken: what the successor stored stays, and is what the sleeper returns."""
    words = [sys.executable, "-c", SLEEP, str(tmp_path), str(Path(SOURCE) / "tests" / "tools")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as sleeper:
        assert sleeper.stdout is not None
        key = sleeper.stdout.readline().decode().strip()
        os.kill(sleeper.pid, signal.SIGSTOP)
        store, path = Store(tmp_path), tmp_path / "leases" / f"{key}.lease"
        assert store.holder(key) is not None
        successor = Lease(path, 0.5)
        assert seconds_until(successor.acquire) >= 0.4
        with successor:
            request = CellRequest(scenario="toy/task-il@begin-1", method="bare")
            planned = plan_cell(request, fake_cells.FakeCatalogue())
            store.put(replace(fake_cells.make_record(planned.cell), metrics={"x": 0.75}))
            before = store.record_path(key).read_bytes()
            os.kill(sleeper.pid, signal.SIGCONT)
            out, err = sleeper.communicate(b"\n")
            assert successor.held
    assert (sleeper.returncode, out) == (0, b"0.75\n"), err
    assert b"kept the record of" in err
    assert store.record_path(key).read_bytes() == before


def test_a_file_system_without_locks_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Work may be done twice there, and nothing else happens."""
    store = Store(tmp_path / "store")
    assert has_locks(tmp_path)
    store.warn_without_locks()
    assert caplog.text == ""

    def no_locks(self: FileLock) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(FileLock, "_acquire", no_locks)
    assert not has_locks(tmp_path)
    other = Store(tmp_path / "store")
    other.warn_without_locks()
    other.warn_without_locks()
    assert caplog.text.count("does not support file locks") == 1
    write_lease(tmp_path / "store" / "leases" / "ab.lease", pid=dead_pid())
    lease = other.lease("ab")
    assert lease is not None
    lease.release()


def test_a_file_that_only_exists_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file system refuses locks, nothing stands in for them: it would outlive a runner that is killed."""
    import fcntl

    def refused(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", refused)
    assert not has_locks(tmp_path)


def test_whether_a_process_lives_is_asked_without_disturbing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the kernel's files where there are any; elsewhere by a signal that is none."""
    child = subprocess.Popen(["sleep", "60"])
    try:
        start = lease_module._process_start(child.pid)
        assert start.isdigit() or start == "alive"

        class Nowhere(type(Path())):  # type: ignore[misc]
            def __new__(cls, *parts: str) -> Path:
                return Path("/nonexistent", *(str(part).lstrip("/") for part in parts))

        monkeypatch.setattr(lease_module, "Path", Nowhere)
        assert lease_module._process_start(child.pid) == "alive"
        assert lease_module._process_start(1) == "alive"
        time.sleep(0.1)
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()
    assert lease_module._process_start(child.pid) == ""
