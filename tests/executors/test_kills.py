"""A few of the kills of ``tests/benchmarks/kills.py``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.plugins

COMMAND = Path(__file__).parents[1] / "benchmarks" / "kills.py"


def test_five_kills_lose_nothing_and_change_no_bit(tmp_path: Path) -> None:
    """Each at random, most of them in the middle of writing something; then everything is run to its end."""
    words = [sys.executable, str(COMMAND), "--kills", "5", "--seed", "3", "--keep", str(tmp_path), "--json"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=100)
    found = json.loads(ended.stdout)
    assert found["faults"] == []
    assert ended.returncode == 0
    assert sum(row["kills"] for row in found["rows"]) == 5
    assert {row["lost"] for row in found["rows"]} == {row["unlike"] for row in found["rows"]} == {0}
