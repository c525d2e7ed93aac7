"""The record of a cell whose process died, timed out, or could not start."""

from __future__ import annotations

import platform
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from cglsuite.base.errors import CglsuiteError
from cglsuite.cells.engine import Engine
from cglsuite.cells.job import job_facts
from cglsuite.cells.keys import torch_version
from cglsuite.cells.records.describe import describe, providers
from cglsuite.cells.records.record import Record, Status

if TYPE_CHECKING:
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue

__all__ = ["failure_record", "reason_of", "recordable"]

_MOST_REASON = 10_000


def reason_of(error: BaseException) -> str:
    """``error`` as the reason of a record: what it says, and where an error of others was raised."""
    name = type(error).__name__
    try:
        said = str(error)
    except Exception as second:  # noqa: BLE001 - the text of an error is code of whoever raised it
        said = f"its text cannot be read ({type(second).__name__})"
    if isinstance(error, CglsuiteError):
        return recordable(said if said.strip() else name)
    where = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" (at {Path(frame.filename).name}:{frame.lineno} in {frame.name})" for frame in where)
    return recordable(f"{name}: {_shortened(said, _MOST_REASON // 2)}{place}")


def recordable(text: str) -> str:
    """``text`` as a record can hold it: Unicode, and of a length that tables can show."""
    return _shortened(text.encode(errors="backslashreplace").decode(), _MOST_REASON)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def failure_record(
    cell: CellSpec, catalogue: Catalogue, engine: Engine, *, key: str, status: Status, reason: str, elapsed_s: float | None = None
) -> Record:
    """A record of ``cell`` with the reason for the missing result. Imports no torch: it is created in the parent of the workers.

    Args:
        elapsed_s: the cell's run time in seconds, if it had started.
    """
    used = engine.sources(cell, catalogue)
    return Record(
        key=key,
        design=engine.design_key(cell),
        status=status,
        reason=recordable(reason),
        **describe(cell),
        timings_s={} if elapsed_s is None else {"total": elapsed_s},
        provenance={
            **providers(used),
            "resumed_from_task": 0,
        },
        environment={
            "python": platform.python_version(),
            "torch": torch_version(),
            "platform": f"{platform.system()} {platform.machine()}",
            "cpu": None,
            "cuda": None,
            **job_facts(),
        },
    )
