"""Records for tests of stores: cell ``n`` with its result, without one, with another result, and with the same one after a longer time."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store

GOLDEN = Path(__file__).parents[1] / "cells" / "data" / "record-schema-4.json"


def key_of(n: int = 1) -> str:
    return f"{n:02x}" * 32


def record(n: int = 1, **changes: Any) -> Record:
    return dataclasses.replace(Record.from_json(GOLDEN.read_bytes()), key=key_of(n), **changes)


def failed(n: int = 1, reason: str = "boom") -> Record:
    return record(n, status="failed", reason=reason, matrix=[], validation_matrix=[])


def unlike(n: int = 1, value: float = 0.5) -> Record:
    """A record with another result, from another processor."""
    one = record(n)
    matrix = [list(row) for row in one.matrix]
    matrix[-1][0] = value
    return record(n, matrix=matrix, environment={**one.environment, "cpu": "Another"})


def slower(n: int = 1) -> Record:
    """A record with the same result, which took longer."""
    return record(n, timings_s={"total": 1e6})


def filled(path: Path, *records: Record) -> Store:
    store = Store(path)
    for one in records:
        store.put(one)
    return store


def source(path: Path, *records: Record) -> Store:
    return Store(filled(path, *records).path, quarantine=False)


def snapshot(folder: Path) -> dict[str, bytes]:
    """All files below a folder but those of locks."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != ".lock"}
