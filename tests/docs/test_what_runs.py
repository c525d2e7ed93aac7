"""The table of docs/reference/what-runs.md is what the catalogue has, and every preset in it trains and evaluates."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("cglsuite_graph")
pytest.importorskip("cglsuite_node")

import what_runs

pytestmark = pytest.mark.plugins
_EMBEDDED, _REAL, _TINY = what_runs.SOURCES


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))


def test_table() -> None:
    """`python tests/tools/what_runs.py` writes it anew."""
    assert what_runs.table_of(what_runs.PAGE.read_text(encoding="utf-8"), "what runs") == what_runs.table()


@pytest.mark.nightly
@pytest.mark.parametrize("source", [_EMBEDDED, _TINY, pytest.param(_REAL, marks=pytest.mark.realdata)])
def test_every_preset_of_the_table_runs(source: str) -> None:
    outcomes = what_runs.outcomes(source)
    assert len(outcomes) >= 15
    assert {place: said for place, said in outcomes.items() if said != "runs"} == {}
