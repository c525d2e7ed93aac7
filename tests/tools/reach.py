"""A pytest plugin that notes which lines of the suite each test runs, for :mod:`mutants`.

    PYTHONPATH=tests/tools MUTANTS_REACH=/tmp/reach python -m pytest -p reach -n 2 -m "not notebook" tests plugins

coverage.py records lines under the test's node id as context, in this process and in the Python processes that a test starts. ``times.*``
files hold a test's seconds, and whether it starts processes: one that is killed records nothing. ``texts.json`` keeps the modules and tests
as they were, so that the record can be read when they have moved on (see :class:`reached.Reached`).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import coverage
import pytest

__all__ = ["pytest_configure", "pytest_runtest_protocol", "pytest_unconfigure"]

ROOT = Path(__file__).resolve().parents[2]
#: The context of a child process is read from the environment when it starts: pytest keeps the running test's id there.
SETTINGS = """[run]
data_file = {folder}/lines
parallel = true
sigterm = true
disable_warnings = no-data-collected, module-not-imported, already-imported, couldnt-parse, no-ctracer
include = {root}/cglsuite/*, {root}/plugins/*/src/*
context = {context}
"""

_folder = Path(os.environ.get("MUTANTS_REACH", "reach"))
_times: dict[str, tuple[float, bool]] = {}
_starts: list[str] = []
_written = [time.monotonic()]
#: Seconds between two writings of the times.
WRITE_S = 10.0


def _write() -> None:
    """Times so far, whole at every moment: a run that is interrupted keeps those of the tests that it finished."""
    file = _folder / f"times.{os.getpid()}"
    part = _folder / f".{file.name}"
    part.write_text(json.dumps(_times))
    part.replace(file)
    _written[0] = time.monotonic()


def _noted(event: str, _args: tuple[Any, ...]) -> None:
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.forkpty"):
        _starts.append(event)


def pytest_configure(config: pytest.Config) -> None:
    """Begin, in each process of pytest."""
    _folder.mkdir(parents=True, exist_ok=True)
    if not (_folder / "texts.json").exists():
        files = sorted(p for p in (*ROOT.glob("cglsuite/**/*.py"), *ROOT.glob("plugins/**/*.py"), *ROOT.glob("tests/**/*.py")))
        texts = {str(p.relative_to(ROOT)): p.read_text() for p in files}
        (_folder / "texts.json").write_text(json.dumps({"root": str(ROOT), "texts": texts}))
    own, children = _folder / "own.ini", _folder / "children.ini"
    own.write_text(SETTINGS.format(folder=_folder, root=ROOT, context=""))
    children.write_text(SETTINGS.format(folder=_folder, root=ROOT, context="${PYTEST_CURRENT_TEST-}"))
    recorder = coverage.Coverage(config_file=str(own))
    recorder.start()
    config.stash[_RECORDER] = recorder
    sys.addaudithook(_noted)
    if os.environ.get("PYTEST_XDIST_WORKER") or not config.getoption("numprocesses", None):  # xdist's own workers begin here, not by it
        os.environ["COVERAGE_PROCESS_START"] = str(children)


_RECORDER = pytest.StashKey[coverage.Coverage]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Lines belong to the test that runs, its fixtures among them."""
    item.config.stash[_RECORDER].switch_context(item.nodeid)
    _starts.clear()
    started, failed = time.monotonic(), item.session.testsfailed
    try:
        return (yield)
    finally:
        if item.session.testsfailed == failed:
            _times[item.nodeid] = (round(time.monotonic() - started, 3), bool(_starts))
            if time.monotonic() - _written[0] > WRITE_S:
                _write()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write what was recorded."""
    recorder = config.stash[_RECORDER]
    recorder.stop()
    recorder.save()
    _write()
