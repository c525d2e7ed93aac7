"""A package that imports what it offers on first use: nothing is loaded before, and unknown names are errors as usual."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

PACKAGE = """
from typing import TYPE_CHECKING
from cglsuite.base.lazily import lazily
if TYPE_CHECKING:
    from lazy_one.inner.part import one, two
__all__ = ["one", "two"]
__getattr__, __dir__ = lazily(__name__, __file__)
"""


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with one module two levels down."""
    (tmp_path / "lazy_one" / "inner").mkdir(parents=True)
    (tmp_path / "lazy_one" / "__init__.py").write_text(PACKAGE)
    (tmp_path / "lazy_one" / "inner" / "__init__.py").touch()
    (tmp_path / "lazy_one" / "inner" / "part.py").write_text("one, two = 1, 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    return "lazy_one"


def test_names_are_imported_when_asked_for(name: str) -> None:
    package = __import__(name)
    assert "lazy_one.inner.part" not in sys.modules
    assert dir(package) == ["one", "two"]
    assert (package.one, package.two) == (1, 2)
    with pytest.raises(AttributeError, match=r"module 'lazy_one' has no attribute 'three'"):
        _ = package.three
