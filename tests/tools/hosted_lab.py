"""A results folder for hosted leaderboards: made records, some of them with marks of verification, and the site of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from made_records import CAMPAIGN, fill_store, made_catalogue

from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.commons.hosted.building import BuildResult, build_site
from cglsuite.commons.submissions.staging import Mark, write_marks
from cglsuite.host import Catalogue

__all__ = ["ONE_BOARD", "REASON", "SMALL", "UNVERIFIED", "hosted", "mark_of", "results_folder"]

UNVERIFIED = ("er-gnn", "packnet")
"""The methods without a mark of verification: one has none at all, the other says why."""
REASON = "made by other code than is installed here"
SMALL: dict[str, Any] = {"seeds": {"order": [0, 1, 2], "init": [0, 1], "design": "cross"}}
ONE_BOARD: dict[str, Any] = {"grid": CAMPAIGN["grid"] | {"scenarios": CAMPAIGN["grid"]["scenarios"][:1], "backbones": ["gcn"]}}
"""For sites of which one board is enough: all methods on one scenario and backbone."""


def mark_of(record: Record) -> Mark | None:
    """Verified, but for two methods; one record of each group was rerun."""
    seeds, method = record.cell["seeds"], record.cell["method"]
    if method == "er-gnn":
        return None
    if method == "packnet":
        return Mark(key=record.key, digest=record.digest, level="unverified", reasons={"key": REASON})
    rerun = "bits" if seeds["order"] == seeds["init"] == 0 else "sample"
    return Mark(key=record.key, digest=record.digest, level="verified", rerun=rerun)


def results_folder(path: Path, mark: Callable[[Record], Mark | None] = mark_of, **changes: Any) -> tuple[Store, Catalogue]:
    """A store with the records of the made campaign, and their marks."""
    catalogue = made_catalogue()
    fill_store(CAMPAIGN | SMALL | changes, catalogue, path)
    store = Store(path)
    marks = [one for record in store.records() if (one := mark(record)) is not None]
    write_marks(path, "20260101T000000Z-0", {"when": "2026-01-01"}, marks)
    return store, catalogue


def hosted(folder: Path, **changes: Any) -> tuple[BuildResult, Store]:
    """A site in ``folder/site`` of a results folder in ``folder/results``."""
    store, catalogue = results_folder(folder / "results", **changes)
    return build_site(store, folder / "site", catalogue, title="A public board"), store
