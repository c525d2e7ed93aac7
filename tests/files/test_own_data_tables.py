"""The table of protocols in docs/reference/own-data.md is what derivation and training make of data of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_data_lab import PAGE, protocol_table, table_of

TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))


@pytest.mark.plugins
def test_protocols() -> None:
    """As they are derived; `python tests/tools/own_data_lab.py` writes the table anew."""
    assert table_of(TEXT, "protocols") == protocol_table(train=False)


@pytest.mark.plugins
@pytest.mark.nightly
def test_protocols_run() -> None:
    """A cell of each entry is trained."""
    assert table_of(TEXT, "protocols") == protocol_table()
