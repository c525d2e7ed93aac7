"""A rendering process as its caller sees it: what it is given, and every way in which it can end. A shell script stands for it."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cglsuite.reports.rendering import child, notebook
from cglsuite.reports.rendering import child as execution
from cglsuite.reports.rendering.job import COMPUTED, Job, Outcome, computed, hand_over

JOB = Job(notebook="/n.ipynb", name="report", title="T", output="/o.html", parameters={"x": "é"})
PATIENCE_S = 0.6


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


def rendered(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: threading.Event) -> Outcome:
    """The outcome of a process that runs this script; its arguments and what it reads are in files."""
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\nread -r line\nprintf "%s" "$line" > {tmp_path}/job\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setattr(notebook, "sys", SimpleNamespace(executable=str(program)))
    monkeypatch.setattr(notebook, "_PATIENCE_S", PATIENCE_S)
    return notebook.in_process(JOB, stop)


def test_what_the_caller_has_computed_is_found_by_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is of the kind, and the same; a kernel whose caller computed nothing finds nothing."""
    assert COMPUTED not in child._environment(tmp_path)
    assert computed(Outcome, lambda known: True) is None
    hand_over(Outcome(status="done", reason="mine"), tmp_path)
    monkeypatch.setenv(COMPUTED, child._environment(tmp_path)[COMPUTED])
    assert computed(Outcome, lambda known: known.reason == "mine") == Outcome(status="done", reason="mine")
    assert computed(Outcome, lambda known: known.reason == "another") is None
    assert computed(Job, lambda known: True) is None


def test_what_the_process_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: threading.Event) -> None:
    """The job on one line, with an empty folder of its own that is removed in the end; its last line is the answer."""
    answer = Outcome(status="done", reason="r", details="d")
    script = f"ls -d /proc/self >/dev/null; echo words; echo noise >&2; echo '{answer.to_json()}'"
    assert rendered(script, tmp_path, monkeypatch, stop) == answer
    assert (tmp_path / "words").read_text() == f"-P -c {notebook._START}\n"
    given = Job.from_json((tmp_path / "job").read_text())
    assert given.scratch
    assert len(given.scratch) < 100
    assert not Path(given.scratch).exists()
    assert json.loads(JOB.to_json()) == {**json.loads(given.to_json()), "scratch": ""}


def test_the_process_compiles_no_grammar_of_iris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: threading.Event) -> None:
    """Importing jsonschema does so wherever this module is installed; a page has no IRIs to check, and waited a second for it."""
    (tmp_path / "rfc3987_syntax.py").write_text(
        "import pathlib; pathlib.Path(__file__).with_name('compiled').touch(); is_valid_syntax = None"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    outcome = notebook.in_process(replace(JOB, notebook=str(tmp_path / "absent.ipynb"), output=str(tmp_path / "page.html")), stop)
    assert outcome.status == "failed"
    assert "absent.ipynb" in outcome.reason
    assert not (tmp_path / "compiled").exists()
    subprocess.run([sys.executable, "-c", "import jsonschema"], check=True)
    assert (tmp_path / "compiled").exists()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo boom >&2; exit 3", "the rendering process ended with status 3 before the report was complete"),
        ("echo boom >&2; exit 0", "the rendering process ended with status 0 before the report was complete"),
        ("echo boom >&2; echo 'no answer'", "the rendering process ended with status 0 before the report was complete"),
        ("echo boom >&2; kill -9 $$", "the rendering process was killed by SIGKILL before the report was complete"),
        ("echo boom >&2; kill -15 $$", "the rendering process was killed by SIGTERM before the report was complete"),
    ],
)
def test_a_process_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: threading.Event, script: str, reason: str
) -> None:
    """The reason says how it ended, the details what it printed."""
    assert rendered(script, tmp_path, monkeypatch, stop) == Outcome(status="failed", reason=reason, details="boom")


def test_details_are_the_end_of_what_was_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: threading.Event) -> None:
    line = "a line of some fifty characters, printed many times"
    script = f"i=0; while [ $i -lt 100 ]; do echo '{line}' >&2; i=$((i+1)); done; echo last >&2; exit 1"
    details = rendered(script, tmp_path, monkeypatch, stop).details
    assert len(details) in range(3990, 4001)
    assert details.endswith("last")


@pytest.mark.parametrize(("trap", "how"), [(":", "killed by SIGTERM"), ("trap '' TERM", "killed by SIGKILL")])
def test_a_process_that_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: threading.Event, trap: str, how: str) -> None:
    """Asked first, then killed; the reason says that it was interrupted."""
    ready = tmp_path / "ready"

    def stopping() -> None:
        while not ready.exists():
            time.sleep(0.02)
        stop.set()

    threading.Thread(target=stopping, daemon=True).start()
    outcome = rendered(f"{trap}; touch {ready}; while :; do sleep 0.1; done", tmp_path, monkeypatch, stop)
    assert outcome.reason == f"interrupted before the report was complete; the rendering process was {how}"


@pytest.mark.parametrize(("length", "short"), [(60, False), (61, True)])
def test_a_folder_with_a_long_path_is_not_used_for_sockets(monkeypatch: pytest.MonkeyPatch, length: int, short: bool) -> None:
    """Their paths are limited to about 100 characters."""
    with tempfile.TemporaryDirectory(dir="/tmp") as base:
        parent = Path(base, "x" * (length - len(base) - 1))
        parent.mkdir()
        monkeypatch.setattr(notebook.tempfile, "gettempdir", lambda: str(parent))
        with notebook._scratch() as scratch:
            assert scratch.is_dir()
            assert scratch.parent == (Path("/tmp") if short else parent)
            assert scratch.name.startswith("cgl-")
        assert not scratch.exists()


def test_the_process_reads_a_job_and_answers_with_its_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """What watches its parent must not keep it alive, SIGTERM interrupts it, and it ends with status 0 whatever came of the job."""
    answer, begun, handlers = io.StringIO(), list[dict[str, Any]](), dict[int, Any]()
    job, outcome = SimpleNamespace(name="job", read=()), SimpleNamespace(to_json=lambda: "failed")
    monkeypatch.setattr(child, "_reserved_stdout", lambda: answer)
    monkeypatch.setattr(child.sys, "stdin", io.StringIO("a job\nmore\n"))
    monkeypatch.setattr(child.Job, "from_json", lambda text: job if text == "a job\n" else None)
    monkeypatch.setattr(child.threading, "Thread", lambda **given: begun.append(given) or SimpleNamespace(start=lambda: None))
    monkeypatch.setattr(child.signal, "signal", lambda number, handler: handlers.setdefault(number, handler))
    monkeypatch.setattr(child, "render", lambda given: outcome if given is job else None)
    assert child.main() == 0
    assert answer.getvalue() == "failed\n"
    assert begun == [{"target": child._end_with_parent, "daemon": True}]
    assert handlers == {signal.SIGTERM: child._interrupt}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (None, ""),
        (3, " (exit status 3)"),
        (-signal.SIGKILL, " (killed by SIGKILL, as when memory runs out)"),
        (-signal.SIGTERM, " (killed by SIGTERM)"),
    ],
)
def test_how_a_kernel_ended(status: int | None, said: str) -> None:
    """The system's way to free memory is named where it may have been at work."""
    kernel: Any = SimpleNamespace(provisioner=SimpleNamespace(process=SimpleNamespace(poll=lambda: status)))
    assert execution._exit_status(kernel) == said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(2, "No such file", "n.ipynb"), "No such file: n.ipynb"),
        (OSError(28, "No space left"), "No space left"),
        (OSError("odd"), "odd"),
    ],
)
def test_what_the_system_refused_is_told_with_the_file(monkeypatch: pytest.MonkeyPatch, error: OSError, said: str) -> None:
    def fail(job: Any) -> None:
        raise error

    monkeypatch.setattr(child, "_render", fail)
    assert child.render(SimpleNamespace()) == Outcome(status="failed", reason=said)  # type: ignore[arg-type]
