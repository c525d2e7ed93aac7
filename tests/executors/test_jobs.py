"""A job's folder in the store, and a worker process as its supervisor reads it: every field comes back, every word is cut as it says."""

from __future__ import annotations

import io
import json
import math
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cglsuite.campaigns.executors import supervisor as process
from cglsuite.campaigns.executors.base import Job
from cglsuite.campaigns.executors.remote import StoredJob, new_job, stored_jobs
from cglsuite.campaigns.executors.supervisor import WorkerProcess, worker_environment
from cglsuite.cells.plan import CellRequest, PlanFile


def job(folder: Path, **changes: Any) -> StoredJob:
    made = {"name": "n", "engine": "grid", "folder": folder / "jobs" / "n", "store": folder, "parts": 2, "cpus": 3, "python": "py"}
    made["folder"].mkdir(parents=True, exist_ok=True)  # type: ignore[attr-defined]
    stored = StoredJob(job=Job(**made), where="here", ids={0: "17_0", 1: "17_1"}, submitted="me")  # type: ignore[arg-type]
    for name, value in changes.items():
        setattr(stored, name, value)
    return stored


def test_a_job_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Every field; and what another process has written since."""
    stored = job(tmp_path)
    stored.write()
    (read,) = stored_jobs(tmp_path)
    assert read == stored
    job(tmp_path, ids={1: "18"}).write()
    assert stored.reread()
    assert stored.ids == {1: "18"}
    (stored.job.folder / "job.json").unlink()
    assert not stored.reread()
    assert stored.ids == {1: "18"}


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"ids": 3}'])
def test_a_damaged_job_is_none(tmp_path: Path, text: str) -> None:
    stored = job(tmp_path)
    stored.write()
    facts = json.loads((stored.job.folder / "job.json").read_text())
    (stored.job.folder / "job.json").write_text(json.dumps(facts | json.loads(text)) if text.startswith('{"') else text)
    assert list(stored_jobs(tmp_path)) == []


def test_the_plan_of_a_job(tmp_path: Path) -> None:
    """It is there until the job is over; its time separates attempts."""
    stored = job(tmp_path)
    assert stored.plan() is None
    PlanFile(cells=[("k" * 64, CellRequest(scenario="s", method="m"))]).write(stored.job.plan)
    plan = stored.plan()
    assert plan is not None
    assert plan.cells[0][0] == "k" * 64
    os.utime(stored.job.plan, ns=(5, 1_700_000_000_123_456_789))
    assert stored.since_ns == 1_700_000_000_123_456_789


@pytest.mark.parametrize("keep", [True, False])
def test_a_job_that_is_closed(tmp_path: Path, keep: bool) -> None:
    """Its plan goes first; its output stays where it is needed."""
    stored = job(tmp_path)
    stored.write()
    stored.job.plan.write_text("{}")
    stored.job.log(0).write_text("x")
    stored.close(keep_output=keep)
    assert not stored.job.plan.exists()
    assert not (stored.job.folder / "job.json").exists()
    assert stored.job.log(0).exists() is keep
    stored.close(keep_output=keep)  # twice is no fault


def test_the_output_of_ended_jobs_goes_after_a_week(tmp_path: Path) -> None:
    """Not that of a job whose plan is there, and not a file."""
    week = 7 * 24 * 3600
    folders = {name: tmp_path / "jobs" / name for name in ("old", "new", "planned")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    (folders["planned"] / "plan.json").write_text("{}")
    now = time.time()
    for name, age in (("old", week + 60), ("new", week - 60), ("planned", week + 60)):
        os.utime(folders[name], (now - age, now - age))
    assert list(stored_jobs(tmp_path)) == []
    assert {name: folder.exists() for name, folder in folders.items()} == {"old": False, "new": True, "planned": True}


@pytest.mark.parametrize(
    ("label", "words"),
    [("My Run: 2", "my-run-2"), ("--", "cells"), ("", "cells"), ("x" * 50, "x" * 40), ("ä-b", "b")],
)
def test_a_new_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: str, words: str) -> None:
    monkeypatch.setenv("USER", "ada")
    made = new_job(tmp_path, "grid", label, parts=4, cpus=2, where="there")
    assert re.fullmatch(f"cglsuite-{words}-[0-9a-f]{{8}}", made.job.name)
    assert made.job == Job(
        name=made.job.name, engine="grid", folder=tmp_path / "jobs" / made.job.name, store=tmp_path, parts=4, cpus=2, python=sys.executable
    )
    assert (made.where, made.ids) == ("there", {})
    assert made.submitted.startswith(f"ada@{socket.gethostname()} at 20")
    assert not made.job.folder.exists()
    monkeypatch.delenv("USER")
    assert new_job(tmp_path, "grid", label, parts=1, cpus=1, python="py").submitted.startswith(f"user {os.getuid()}@")
    assert new_job(tmp_path, "grid", label, parts=1, cpus=1, python="py").job.python == "py"


def test_a_job_in_words(tmp_path: Path) -> None:
    assert str(job(tmp_path)) == "grid job 17 (2 parts, submitted by me)"
    assert str(job(tmp_path, ids={0: "9", 1: "7_2"})) == "grid job 7, 9 (2 parts, submitted by me)"
    one = job(tmp_path, ids={})
    one.job = Job(**{**vars(one.job), "parts": 1})
    assert str(one) == "grid job (1 part, submitted by me)"


LINES = [f"line {n}" for n in range(9)]


def test_the_last_words_of_a_part(tmp_path: Path) -> None:
    """Six lines, without blank ones, at most 400 characters; whatever bytes they are."""
    stored = job(tmp_path)
    assert stored.output_tail(0) == ""
    stored.job.log(0).write_text("\n".join([*LINES, ""]))
    assert stored.output_tail(0) == " | ".join(LINES[3:])
    stored.job.log(0).write_text("a\n\n  \n b \n")
    assert stored.output_tail(0) == "a | b"
    stored.job.log(0).write_text("x" * 500 + "y")
    assert stored.output_tail(0) == "x" * 399 + "y"
    assert stored.output_tail(0, 3) == "xxy"
    stored.job.log(0).write_bytes("é".encode() * 3000 + b"z")  # cut in the middle of a character
    assert stored.output_tail(0).endswith("éz")


# --- worker processes ---------------------------------------------------------------------------------------------------------------


def worker(output: bytes = b"", returncode: int | None = None) -> WorkerProcess:
    """A worker that has printed this and ended so."""
    made = WorkerProcess.__new__(WorkerProcess)
    made.output = io.BytesIO(output)  # type: ignore[assignment]
    made.process = SimpleNamespace(returncode=returncode, stdin=None)  # type: ignore[assignment]
    made._partial = b""
    return made


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (b"", ""),
        ("\n".join(LINES).encode(), " | ".join(LINES[3:])),
        (b"a\n\n  \n b \n", "a | b"),
        (b"x" * 500 + b"y", "x" * 399 + "y"),
        (b"first\n" + b"\n" * 5000 + b"last", "last"),
        ("é".encode() * 3000 + b"z", "é" * 399 + "z"),
        (b"\xff\xfe end", "\ufffd\ufffd end"),
    ],
)
def test_the_last_words_of_a_worker(output: bytes, words: str) -> None:
    assert worker(output).output_tail() == words


def test_how_a_worker_died() -> None:
    assert worker(returncode=3).exit_reason() == "worker exited with status 3 in the middle of the cell"
    assert worker(returncode=0).exit_reason() == "worker exited with status 0 in the middle of the cell"
    assert worker(returncode=-signal.SIGSEGV).exit_reason() == "worker died with signal 11 (SIGSEGV)"
    killed = "worker died with signal 9 (SIGKILL; sent by a user, or by the kernel because memory ran out: see the kernel's log)"
    assert worker(returncode=-9).exit_reason() == killed
    assert worker(returncode=-127).exit_reason() == "worker died with signal 127 (unknown)"


def test_events_may_come_in_pieces() -> None:
    """A line is read once it is whole; the others wait; the end of the pipe is no event."""
    made = worker()
    made.events_descriptor, writing = os.pipe()
    os.set_blocking(made.events_descriptor, False)
    assert list(made.events()) == []
    os.write(writing, b'{"a": 1}\n{"b"')
    assert list(made.events()) == [{"a": 1}]
    assert list(made.events()) == []
    os.write(writing, b': 2}\n{"c": 3}\n')
    assert list(made.events()) == [{"b": 2}, {"c": 3}]
    os.write(writing, b'{"d": 4}\n')
    os.close(writing)
    assert list(made.events()) == [{"d": 4}]
    assert list(made.events()) == []
    os.close(made.events_descriptor)


def test_a_worker_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its command says, that it leads a session of its own, and that it ends with all it has started."""
    script = tmp_path / "python"
    script.write_text('#!/bin/sh\necho "$@" ends\nsleep 60 &\ncat\n')
    script.chmod(0o755)
    monkeypatch.setattr(process.sys, "executable", str(script))
    made = WorkerProcess(tmp_path / "plan", tmp_path / "store", 1, 2, 5, {"PATH": os.environ["PATH"]})
    assert (made.index, made.held, made.since, made.overdue, made.finished_s, made.foreign) == (1, None, 0.0, False, math.inf, "")
    assert not made.has_ended()
    assert os.getsid(made.process.pid) == made.process.pid
    deadline = time.monotonic() + 20
    while "ends" not in made.output_tail(9999) and time.monotonic() < deadline:
        time.sleep(0.01)
    said = made.output_tail(9999)
    module = "-P -m cglsuite.campaigns.executors.worker"
    pattern = f"{module} {tmp_path}/plan --store {tmp_path}/store --index 2 --of 5 --events [0-9]+ --log-level [0-9]+ ends"
    assert re.fullmatch(pattern, said), said
    made.kill()
    assert made.process.returncode == -signal.SIGKILL
    assert made.has_ended()
    made.kill()
    made.close()


def test_a_worker_ends_when_it_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexec cat\n")
    script.chmod(0o755)
    monkeypatch.setattr(process.sys, "executable", str(script))
    made = WorkerProcess(tmp_path / "plan", tmp_path / "store", 0, 0, 1, {"PATH": os.environ["PATH"]})
    made.close_lifeline()
    assert made.process.wait(20) == 0
    assert made.has_ended()
    made.close()
    made.close_lifeline()


def test_the_environment_of_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of both libraries, everything else as here, and the suite importable from where it is."""
    root = str(Path(process.__file__).resolve().parents[3])
    monkeypatch.setenv("PYTHONPATH", "/a")
    monkeypatch.setenv("OTHER", "kept")
    monkeypatch.setattr(process.site, "getsitepackages", list)
    monkeypatch.setattr(process.site, "getusersitepackages", lambda: "/none")
    made = worker_environment(3)
    assert (made["OMP_NUM_THREADS"], made["MKL_NUM_THREADS"], made["OTHER"]) == ("3", "3", "kept")
    assert made["PYTHONHASHSEED"] == os.environ.get("PYTHONHASHSEED", "0")
    assert made["PYTHONPATH"] == os.pathsep.join([root, "/a"])
    monkeypatch.delenv("PYTHONPATH")
    assert worker_environment(1)["PYTHONPATH"] == root
    monkeypatch.setattr(process.site, "getsitepackages", lambda: [root])
    assert "PYTHONPATH" not in worker_environment(1)
