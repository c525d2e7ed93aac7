"""Gives these tests a store, and workers that find the fake cells."""

from __future__ import annotations

import os
from pathlib import Path

import fake_cells
import pytest

from cglsuite.cells.storage.store import Store

TOOLS = Path(__file__).parents[1] / "tools"


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """The file to which every run of a fake cell appends its key. Tests that need plugins have real cells."""
    for name in ("CGLSUITE_SET", "CGLSUITE_DEVICE", "CGLSUITE_WORKERS", "CGLSUITE_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(TOOLS), os.environ.get("PYTHONPATH")])))
    if request.node.get_closest_marker("plugins") is None:
        monkeypatch.setenv("FAKE_CATALOGUE", fake_cells.REFERENCE)
        monkeypatch.setattr("cglsuite.host.load_catalogue", fake_cells.FakeCatalogue)
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    (tmp_path / "log").touch()
    return tmp_path / "log"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")
