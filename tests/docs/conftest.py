"""What the tests of the documentation share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from doc_blocks import Reader
from plugin_sites import Site, site

__all__ = ["reader", "site"]


@pytest.fixture
def reader(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], Reader]:
    """A reader in an empty folder, without settings, data or network of the caller's."""
    for name in [n for n in os.environ if n.startswith("CGLSUITE_") and n != "CGLSUITE_CACHE"]:
        monkeypatch.delenv(name)
    folder = tmp_path / "page"
    folder.mkdir()
    monkeypatch.setenv("CGLSUITE_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site.folder), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(folder)
    return lambda whole: Reader(folder=folder, site=site, whole=whole)
