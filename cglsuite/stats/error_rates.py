"""How often the verdicts are wrong, as simulated: what ``python tests/benchmarks/significance.py --write`` stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from cglsuite.base.errors import UnknownNameError


@cache
def error_rates() -> Mapping[str, Any]:
    """All tables by name, each with its caption, the number of replicates, columns, and rows of shares by label."""
    tables: Mapping[str, Any] = json.loads((files("cglsuite.stats") / "error_rates.json").read_text(encoding="utf-8"))
    return tables


def error_rate(table: str, row: str) -> Mapping[str, float]:
    """The shares of one row, by column.

    Raises:
        UnknownNameError: no such table or row.
    """
    tables = error_rates()
    if table not in tables:
        raise UnknownNameError("table of error rates", table, tables)
    rows = tables[table]["rows"]
    if row not in rows:
        raise UnknownNameError(f"row of {table}", row, rows)
    return dict(zip(tables[table]["columns"], rows[row], strict=True))
