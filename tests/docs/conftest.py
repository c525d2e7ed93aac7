"""What the tests of the documentation share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from doc_blocks import Reader
from plugin_sites import Site, site

__all__ = ["reader", "site"]


@pytest.fixture(autouse=True)
def files_of_this_test_alone(tmp_path: Path) -> Iterator[None]:
    """Plugin files of two pages may have the same name: what a test imports from its own folder goes with it."""
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def reader(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], Reader]:
    """A reader in an empty folder, without settings, data or network of the caller's."""
    for name in [n for n in os.environ if n.startswith("CGLSUITE_") and n != "CGLSUITE_CACHE"]:
        monkeypatch.delenv(name)
    folder = tmp_path / "page"
    folder.mkdir()
    monkeypatch.setenv("CGLSUITE_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "nowhere")  # a page that sets them sets them for itself alone
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site.folder), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(folder)
    return lambda whole: Reader(folder=folder, site=site, whole=whole)
