"""Gives these tests a Slurm of two nodes, a store, and supervisors that find the fake cells."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_slurm import TinySlurm, what_is_missing

from cglsuite.cells import Store

ROOT = Path(__file__).resolve().parents[3]
TOOLS = ROOT / "tests" / "tools"


@pytest.fixture(scope="module")
def cluster() -> Iterator[TinySlurm]:
    """Started once, and stopped at the end."""
    if reason := what_is_missing():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        slurm = TinySlurm(Path(folder) / "c")
        try:
            slurm.start()
            yield slurm
        finally:
            slurm.stop()


@pytest.fixture
def slurm(cluster: TinySlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TinySlurm]:
    """The cluster with an empty queue and idle nodes; commands of this process and its children find it."""
    path = os.pathsep.join([str(ROOT), str(TOOLS), str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    fakes = {"FAKE_CATALOGUE": "fake_cells:FakeCatalogue", "FAKE_LOG": str(tmp_path / "log")}
    for name, value in {**cluster.environment, "PYTHONPATH": path, **fakes}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "log").touch()
    yield cluster
    cluster.run("scancel", "--me")
    cluster.wait(lambda: not cluster.queue())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The file to which every run of a fake cell appends its key."""
    return tmp_path / "log"
