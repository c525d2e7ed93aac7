"""Gives these tests a Dask scheduler with two worker processes, a store, and supervisors that find the fake cells."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cglsuite.cells import Store

ROOT = Path(__file__).resolve().parents[3]
TOOLS = ROOT / "tests" / "tools"


class TinyDask:
    """A scheduler and its workers, each a process."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.workers = folder, list[subprocess.Popen[bytes]]()
        self.file = folder / "scheduler.json"
        self.start()

    def start(self) -> None:
        """The scheduler, without workers."""
        self.file.unlink(missing_ok=True)
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file)
        )
        deadline = time.monotonic() + 60
        while not self.file.exists():
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.05)

    def add_worker(self, *words: str) -> subprocess.Popen[bytes]:
        """One more, which the scheduler knows a moment later."""
        more = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--local-directory", str(self.folder))
        worker = self._start("worker", "--scheduler-file", str(self.file), *more, *words)
        self.workers.append(worker)
        return worker

    def _start(self, what: str, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{what}.log").open("ab") as log:
            return subprocess.Popen([sys.executable, "-m", f"distributed.cli.dask_{what}", *words], stdout=log, stderr=log)

    def stop(self) -> None:
        """End all of them."""
        for process in (*self.workers, self.scheduler):
            process.terminate()
        for process in (*self.workers, self.scheduler):
            try:
                process.wait(2)  # a worker that has run a cell may take its time; nothing of it is needed
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.workers.clear()

    def told(self) -> str:
        """The ends of the logs."""
        return "\n".join(p.read_text(errors="replace")[-2000:] for p in self.folder.glob("*.log"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TinyDask]:
    """A scheduler and two workers for all tests that leave them as they are, and one log."""
    with pytest.MonkeyPatch.context() as patch:
        folder = _prepare(tmp_path_factory.mktemp("dask"), patch)
        yield from _running(folder)


@pytest.fixture
def dask(shared: TinyDask) -> TinyDask:
    """The shared cluster with an empty log."""
    (shared.folder / "log").write_text("")
    return shared


@pytest.fixture
def own_dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TinyDask]:
    """A scheduler and two workers to be harmed."""
    yield from _running(_prepare(tmp_path / "dask", monkeypatch))


@pytest.fixture
def real_dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TinyDask]:
    """A scheduler and two workers that run real cells."""
    folder = _prepare(tmp_path / "dask", monkeypatch)
    for name in ("FAKE_CATALOGUE", "FAKE_LOG"):
        monkeypatch.delenv(name)
    yield from _running(folder)


def _prepare(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """What Dask workers, and so supervisors, are to inherit."""
    folder.mkdir(exist_ok=True)
    path = os.pathsep.join([str(ROOT), str(TOOLS), str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    patch.setenv("PYTHONPATH", path)
    patch.setenv("FAKE_CATALOGUE", "fake_cells:FakeCatalogue")
    patch.setenv("FAKE_LOG", str(folder / "log"))
    (folder / "log").touch()
    return folder


def _running(folder: Path) -> Iterator[TinyDask]:
    cluster = TinyDask(folder)
    try:
        for _ in range(2):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


@pytest.fixture
def log(request: pytest.FixtureRequest) -> Path:
    """The file to which every run of a fake cell appends its key."""
    name = "own_dask" if "own_dask" in request.fixturenames else "dask"
    path: Path = request.getfixturevalue(name).folder / "log"
    return path
