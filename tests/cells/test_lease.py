"""Leases: one holder at a time, taken over when the holder is gone, and never taken from one who lives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from cglsuite.cells import lease as lease_module
from cglsuite.cells.lease import Holder, Lease, discard_if_stale, read_holder
from cglsuite.cells.store import Store
from cglsuite.errors import StoreError

SOURCE = str(Path(__file__).parents[2])


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")])}


def write(path: Path, **changes: Any) -> Holder:
    """A lease of this very process, with changes."""
    own = lease_module._self_as_holder(60)
    holder = Holder(**(asdict(own) | changes))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(holder.to_bytes())
    return holder


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    """Held once, refused meanwhile, free afterwards; the file says who."""
    store = Store(tmp_path)
    lease = store.lease("ab")
    assert lease is not None
    with lease:
        assert store.lease("ab") is None
        holder = store.holder("ab")
        assert holder is not None
        assert (holder.pid, holder.token) == (os.getpid(), lease.holder.token)
        assert set(json.loads((tmp_path / "leases" / "ab.json").read_text())) >= {"host", "pid", "started", "expires"}
        with store.lease("cd") or pytest.fail("another key is another lease"):
            pass
    assert store.holder("ab") is None
    assert not (tmp_path / "leases" / "ab.json").exists()
    lease.release()


@pytest.mark.parametrize(
    ("changes", "live"),
    [
        ({}, True),
        ({"expires": 0.0}, False),
        ({"process_start": "1"}, False),
        ({"pid": 2**22 + 1}, False),
        ({"machine": "elsewhere", "pid": 2**22 + 1}, True),
        ({"machine": "elsewhere", "expires": 1.0}, False),
    ],
)
def test_who_counts_as_alive(tmp_path: Path, changes: dict[str, Any], live: bool) -> None:
    """Expired, or dead on this machine: stale. On another machine only the clock can tell."""
    path = tmp_path / "x.json"
    write(path, **changes)
    assert (read_holder(path) is not None) == live
    taken = Lease.acquire(path)
    assert (taken is None) == live
    if taken is not None:
        taken.release()


def test_a_dead_process_holds_nothing(tmp_path: Path) -> None:
    """Its lease is free at once, long before it expires."""
    path = tmp_path / "x.json"
    write(path, pid=dead_pid())
    discard_if_stale(path)
    assert not path.exists()
    write(path)
    discard_if_stale(path)
    assert path.exists()


def test_a_zombie_holds_nothing(tmp_path: Path) -> None:
    """Killed but not yet reaped by its parent."""
    process = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.DEVNULL)
    path = tmp_path / "x.json"
    write(path, pid=process.pid, process_start=lease_module._process_start(process.pid))
    deadline = time.monotonic() + 20
    while read_holder(path) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert read_holder(path) is None
    process.wait()


def test_a_half_written_lease_counts_for_one_lifetime(tmp_path: Path) -> None:
    """It may be being written this moment; later it is rubbish."""
    path = tmp_path / "x.json"
    path.write_text("{")
    assert Lease.acquire(path) is None
    os.utime(path, (0, 0))
    lease = Lease.acquire(path)
    assert lease is not None
    lease.release()


def test_the_heartbeat_keeps_a_lease(tmp_path: Path) -> None:
    """A lease much longer than its lifetime stays its holder's."""
    path = tmp_path / "x.json"
    lease = Lease.acquire(path, lifetime_s=0.4)
    assert lease is not None
    with lease:
        for _ in range(10):
            time.sleep(0.1)
            assert read_holder(path) is not None
    assert not path.exists()


def test_a_holder_that_slept_does_not_touch_its_successor(tmp_path: Path) -> None:
    """After a take-over neither the old heartbeat nor the old release does anything to the new lease."""
    path = tmp_path / "x.json"
    sleeper = Lease.acquire(path, lifetime_s=0.2)
    assert sleeper is not None
    path.unlink()
    successor = Lease.acquire(path)
    assert successor is not None
    time.sleep(0.3)
    sleeper.release()
    holder = read_holder(path)
    assert holder is not None
    assert holder.token == successor.holder.token
    successor.release()
    assert not path.exists()


def test_a_full_disk_leaves_no_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is kept off a cell by a lease that could not be written."""

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreError, match="full"):
        Lease.acquire(tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


COMPETE = """
import os, sys
from pathlib import Path
from cglsuite.cells.store import Store
store, log, n = Store(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
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


@pytest.mark.parametrize("stale", [False, True])
def test_competing_processes_run_each_cell_once(tmp_path: Path, stale: bool) -> None:
    """Three processes go for the same forty leases at once, fresh or left behind by a dead process: each cell is run exactly once."""
    n, log = 40, tmp_path / "log"
    if stale:
        pid = dead_pid()
        for i in range(n):
            write(tmp_path / "store" / "leases" / f"cell{i}.json", pid=pid)
    words = [sys.executable, "-c", COMPETE, str(tmp_path / "store"), str(log), str(n)]
    runners = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) for _ in range(3)]
    for runner in runners:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"ready\n"
    for runner in runners:
        runner.communicate(b"go\n")
        assert runner.returncode == 0
    assert Counter(log.read_text().split()) == Counter(map(str, range(n)))
    assert not list((tmp_path / "store" / "leases").glob("*.json"))


HOLD = """
import sys, time
from cglsuite.cells.store import Store
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
