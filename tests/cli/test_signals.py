"""SIGTERM and SIGQUIT end a command as SIGINT does; a full or closed stdout ends it quietly or with one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

CAMPAIGN = """
name = "x"
[grid]
scenarios = ["synthetic-csbm/task-il@begin-1"]
methods = ["bare"]
[seeds]
init = [0, 1]
[set]
training.epochs = 100000
training.plateau_patience = 100000
dataset.n_nodes = 200
"""


def start(*words: str, folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "CGLSUITE_STORE": "store", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-m", "cglsuite", *words]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment, preexec_fn=_as_in_a_terminal, **pipes)


def _as_in_a_terminal() -> None:
    """A shell without a terminal has what it starts in the background ignore these."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.sampled(1)
@pytest.mark.plugins
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_a_campaign_and_its_workers_with_a_message(tmp_path: Path, number: signal.Signals) -> None:
    """Leases are given back, no worker is left, and what is in the store can still be read."""
    (tmp_path / "x.toml").write_text(CAMPAIGN)
    leases, limit = tmp_path / "store" / "leases", time.monotonic() + 60
    with start("run", "x.toml", "--no-reports", "--workers", "1", folder=tmp_path) as process:
        workers: list[int] = []
        while not (workers and any(leases.glob("*"))):  # a cell is being trained
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < limit
            time.sleep(0.05)
            workers = children_of(process.pid)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert "x: interrupted; finished cells are in" in err
    assert err.splitlines()[-1] == (
        "error: interrupted" if number == signal.SIGINT else f"error: ended by {number.name}; finished work is kept"
    )
    assert "Traceback" not in err
    assert not any(map(alive, workers))
    status = start("status", "x.toml", "--json", folder=tmp_path)
    out, _ = status.communicate(timeout=60)
    assert json.loads(out)["totals"] == {"done": 0, "settled": 0, "running": 0, "failed": 0, "missing": 2, "n/a": 0}
    assert not any((tmp_path / "store" / "plans").glob("*"))


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    script = (
        "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); sys.argv = ['cglsuite', '--version']\n"
        "from cglsuite.cli import main\ntry:\n    main.main()\nexcept SystemExit: print(signal.getsignal(signal.SIGTERM).name)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "SIG_IGN"


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs the device /dev/full")
@pytest.mark.parametrize("words", [("list",), ("list", "methods", "--json"), ("--help",)], ids=" ".join)
def test_a_full_disk_behind_stdout_is_told_once(tmp_path: Path, words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "cglsuite", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path
        )
    assert done.returncode == 1
    assert done.stderr == "error: cannot write to standard output: No space left on device; free some space or redirect the output\n"


@pytest.mark.plugins
def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    script = f"{sys.executable} -m cglsuite list | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "KIND          NUMBER  NAMES (cglsuite list KIND)\n")


def test_no_stdout_at_all_is_no_error(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m cglsuite --version >&-"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
