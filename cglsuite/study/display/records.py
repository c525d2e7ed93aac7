"""Rich displays of records and stores."""

from __future__ import annotations

from cglsuite.base.markup import card, fold, grid
from cglsuite.campaigns.reference import queries_note
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store

__all__ = ["record_card", "store_card"]


def record_card(record: Record) -> str:
    """What was run, what came out, and whose code computed it."""
    after = record.stream.get("evaluations") or range(len(record.matrix))
    rows = [[k or "none", *("–" if v is None else f"{v:.4g}" for v in row)] for k, row in zip(after, record.matrix, strict=True)]
    columns = [f"task {j + 1}" for j in range(len(record.matrix[0]) if record.matrix else 0)]
    named = [(p.get("role"), p.get("name") or p.get("names") or "") for p in record.makers]
    makers = [(*n, p.get("distribution"), p["version"], p["source"][:12]) for n, p in zip(named, record.makers, strict=True)]
    metrics = [(name, f"{value:.4g}") for name, value in record.metrics.items() if value is not None]
    total = record.timings_s.get("total")
    facts = [("reason", record.reason)] if record.reason else []
    note = queries_note(record.cell["preset"], record.scenario) if record.matrix else ""
    return card(
        f"{record.label}: {record.status}",
        [*facts, *record.facts, *([("time", f"{total:.1f} s")] if total is not None else []), *([("queries", note)] if note else [])],
        fold("performance", grid(("after step" if record.stream else "after task", *columns), rows)) if 0 < len(columns) <= 30 else None,
        fold("metrics", grid(("metric", "value"), metrics)) if metrics else None,
        fold("code", grid(("role", "name", "distribution", "version", "source"), makers)),
    )


def store_card(store: Store) -> str:
    """What lies there, counted without reading it."""
    folders = (("searches", "*.json"), ("checkpoints", "*.pt"))
    counts = [(name, sum(not p.name.startswith(".") for p in (store.path / name).glob(form))) for name, form in folders]
    set_aside = sum(1 for _ in (store.path / "corrupt").glob("*"))
    found = [("records", len(store.keys())), *counts, *([("unreadable, set aside", set_aside)] if set_aside else [])]
    return card(f"Store {store.path}", found)
