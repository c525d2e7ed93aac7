"""The error raised if data do not support a statistic, and the checks that raise it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cglsuite.base.errors import CglsuiteError, UsageError

if TYPE_CHECKING:
    import pandas as pd


_NAMED = 3


class Refused(CglsuiteError):
    """The data do not support this statistic. The message states what is missing or degenerate, and what would be sufficient."""


def require_frame(frame: pd.DataFrame, keys: Sequence[str], value: str = "value") -> None:
    """Check a tidy frame: its columns exist, no value is NaN, and no combination of ``keys`` occurs twice.

    Raises:
        UsageError: a column is missing.
        Refused: a value is NaN, or two rows describe the same cell. The message lists the first few.
    """
    absent = [name for name in (*keys, value) if name not in frame]
    if absent:
        raise UsageError(f"the frame has the columns {', '.join(map(str, frame.columns))}, but {', '.join(absent)} is also required")
    undefined = frame[frame[value].isna()]
    if len(undefined):
        raise Refused(f"{len(undefined)} of {len(frame)} values are undefined (NaN): {_first_cells(undefined, keys)}")
    twice = frame[frame.duplicated(list(keys))]
    if len(twice):
        raise Refused(f"{len(twice)} cells occur more than once: {_first_cells(twice, keys)}")


def require_complete(table: pd.DataFrame, label: str) -> None:
    """Check that a table with rows ``table.index`` and columns ``table.columns`` has no gaps.

    Raises:
        Refused: an entry is missing. The message states the number of gaps and lists the first few.
    """
    gaps: Any = table.isna().stack()
    missing = [_entry(label) for label in gaps[gaps].index]
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        raise Refused(f"{len(missing)} of {table.size} {label} are missing: {'; '.join(missing[:_NAMED])}{more}")


def _entry(label: Any) -> str:
    return " × ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _first_cells(rows: pd.DataFrame, keys: Sequence[str]) -> str:
    listed = ["(" + ", ".join(f"{key} {row[key]}" for key in keys) + ")" for _, row in rows.head(_NAMED).iterrows()]
    return "; ".join(listed) + (f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else "")
