"""The records of the gallery: one small publication, and what was written before they lost their curves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from record_facts import facts_of

from cglsuite.cells.storage.store import Store

RECORDS = Path(__file__).parents[3] / "reports" / "gallery" / "records"
FACTS = (
    10556,
    "a5a6782457ee7f02dc501d62813b618afc6c0542ff0aa2ca48cb4212b1a1b793",
    "f7b8ce12bf3ab3c83735bdea191b3b0bfe0a5a373f93a85c051ff730daf6ee70",
)
"""What ``python tests/tools/record_facts.py`` prints of the records at commit 1bf7b60e, which held their curves (schema 3, 58 MB). Records
that are added need new digests; those that are there must not change."""


@pytest.mark.nightly
def test_no_number_was_touched() -> None:
    """Keys, matrices, results per class, metrics, times, memory, provenance; and what they say of curves and fingerprints."""
    assert facts_of(RECORDS) == FACTS


def test_they_are_one_publication_without_curves() -> None:
    files = [path for path in RECORDS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 10e6
    (entry,) = (json.loads(path.read_text()) for path in (RECORDS / "manifest").glob("*.json"))
    named = [piece["sha256"] for shard in entry["shards"] for piece in (shard["jsonl"], shard["parquet"])] + [entry["searches"]["sha256"]]
    assert sorted(path.name.partition(".")[0] for path in (RECORDS / "shards").rglob("*.*")) == sorted(named)
    store = Store(RECORDS, quarantine=False)
    assert list(store.stored_curves()) == []
    content = store.copies(store.keys()[0])[0].content()
    assert json.loads(content)["schema"] == 4
