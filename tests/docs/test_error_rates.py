"""How often verdicts are wrong: the tables of docs/reference/statistics.md are those that the command stored, and pages quote them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cglsuite import stats
from cglsuite.base.errors import UnknownNameError

COMMAND = Path(__file__).parents[1] / "benchmarks" / "significance.py"


@pytest.fixture(scope="module")
def command() -> ModuleType:
    spec = importlib.util.spec_from_file_location("significance", COMMAND)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["significance"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_stored_tables(command: ModuleType) -> None:
    page = command.PAGE.read_text(encoding="utf-8")
    stored = command.stored()
    assert list(stored) == list(command.TABLES)
    assert command.with_section(page, stored) == page, "run: python tests/benchmarks/significance.py --write"
    assert command.as_stored(stored) == command.STORED.read_text(encoding="utf-8")


def test_sizes_and_reversals_are_in_bounds(command: ModuleType) -> None:
    """Sizes at most 6.5%, reversals at most 5%, from at least 2,000 replicates each; inadmissible designs refused."""
    stored = command.stored()
    assert not list(command.missed(stored))
    assert min(table.replicates for table in stored.values()) >= 2000


def test_the_command_makes_what_is_stored(command: ModuleType) -> None:
    """Tables that take a moment, with the seed and the replicates of the stored ones."""
    stored = command.stored()
    for name in ("sharing", "offsets"):
        assert command.TABLES[name](stored[name].replicates, 0) == stored[name], name


def test_a_share_is_found_by_its_names() -> None:
    assert stats.error_rate("collapses", "5")["t covers"] < 95
    with pytest.raises(UnknownNameError, match="table of error rates"):
        stats.error_rate("colapses", "5")
    with pytest.raises(UnknownNameError, match="row of collapses"):
        stats.error_rate("collapses", "4")
