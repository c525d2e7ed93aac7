"""Tables of simulated figures in the documentation are those that the benchmarks stored."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "statistics.md"


def test_the_tables_of_claims_are_those_of_the_stored_simulation() -> None:
    """Of at least 2,000 replicates; no shape has false reversals in more than 5% of blocks, nor equivalence at the margin; intervals of
    shares cover with outliers and with correlated errors."""
    spec = importlib.util.spec_from_file_location("claims", ROOT / "tests" / "benchmarks" / "claims.py")
    assert spec is not None
    assert spec.loader is not None
    claims = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(claims)
    stored, page = json.loads(claims.STORED.read_text(encoding="utf-8")), PAGE.read_text(encoding="utf-8")
    assert claims.with_section(page, stored) == page
    assert stored["replicates"] >= 2000
    assert {row["shape"] for row in stored["claims"]} == set(claims.SHAPES)
    assert max(row["false_reversals"] for row in stored["claims"]) <= 5.0
    assert max(row["the margin"] for row in stored["equivalence"]) <= 6.5
    assert {row["rows"] for row in stored["shares"]} == {name for name, *_ in claims.TABLES}
    assert min(row["covered"] for row in stored["shares"]) >= 95.0
