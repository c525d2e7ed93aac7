"""The record of a cell whose process died, timed out, or could not start."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from cglsuite.cells.engine import Engine
from cglsuite.cells.job import job_facts
from cglsuite.cells.keys import torch_version
from cglsuite.cells.records.describe import describe, providers
from cglsuite.cells.records.record import Record, Status

if TYPE_CHECKING:
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue

__all__ = ["failure_record"]


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
        reason=reason,
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
