"""Tables of simulated figures in the documentation are those that the benchmarks stored."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tables_of_claims_are_those_of_the_stored_simulation() -> None:
    """Of at least 2,000 replicates; no shape has false reversals in more than 5% of blocks, nor equivalence at the margin."""
    stored = json.loads((ROOT / "tests" / "benchmarks" / "claims.json").read_text(encoding="utf-8"))
    lines = (ROOT / "docs" / "reference" / "statistics.md").read_text(encoding="utf-8").splitlines()
    assert stored["replicates"] >= 2000
    by_design: dict[tuple[str, int], dict[float, dict[str, float]]] = {}
    for row in stored["claims"]:
        by_design.setdefault((row["shape"], row["runs"]), {})[row["step"]] = row
    for (shape, runs), steps in by_design.items():
        shares = [", ".join(f"{steps[step][verdict]:.1f}" for step in (1.0, 2.0, 4.0)) for verdict in ("confirmed", "opposite sign")]
        false = max(row["false_reversals"] for row in steps.values())
        assert f"| {shape}, {runs} | {shares[0]} | {shares[1]} | {false:.2f} |" in lines
        assert false <= 5.0
    for row in stored["equivalence"]:
        place = f"{row['printed runs']}, {row['runs']}, {row['spread']:g}"
        shares = [f"{row[what]:.1f} ({row[f'{what}, Welch alone']:.1f})" for what in ("nothing differs", "the margin")]
        assert f"| {place} | {shares[0]} | {shares[1]} |" in lines
        assert row["the margin"] <= 6.5
