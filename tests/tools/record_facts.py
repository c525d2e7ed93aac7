"""A digest of everything that the records of a store say, whatever schema and files they are in: what a rewriting must leave as it is.

    python tests/tools/record_facts.py STORE

prints the number of records, the digest of all parts but the schema and ``training``, and the digest of ``training``.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from cglsuite.cells.storage.store import Store

PARTS = (
    *("key", "design", "status", "reason", "cell", "scenario", "matrix", "validation_matrix", "per_class", "tasks", "metrics"),
    *("timings_s", "memory", "parameters", "provenance", "environment"),
)


def facts_of(store: Path) -> tuple[int, str, str]:
    """The number of records, and both digests."""
    facts, training, number = hashlib.sha256(), hashlib.sha256(), 0
    for record in Store(store, quarantine=False).records():
        facts.update(_canonical([getattr(record, name) for name in PARTS]))
        training.update(_canonical([record.key, record.training]))
        number += 1
    return number, facts.hexdigest(), training.hexdigest()


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


if __name__ == "__main__":
    print(*facts_of(Path(sys.argv[1])))
