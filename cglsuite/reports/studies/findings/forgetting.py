"""Forgetting and drift where they were split: what ``cglsuite cell --split-forgetting`` keeps beside the records of a store.

A record has no performance of old weights in the new graph. The split trains once more, and its parts are kept in ``splits/<key>.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cglsuite.base.atomic import write_atomic

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.cells.records.record import Record

__all__ = ["SPLITS", "keep_split", "kept_splits"]

SPLITS = "splits"
"""The folder of a store that holds splits of forgetting, a file per record."""
_PARTS = ("forgetting", "drift", "weights")
_COLUMNS = ["preset", "method", "order", "init", *_PARTS, "key"]


def keep_split(store: Path, key: str, parts: Mapping[str, Any]) -> Path:
    """Keep the parts of a record's forgetting in its store; the path of the file.

    Args:
        parts: forgetting, drift and weights, in the unit of performance, and whatever else is known of them.

    Raises:
        StoreError: the disk is full or the folder cannot be written.
    """
    path = store / SPLITS / f"{key}.json"
    write_atomic(path, (json.dumps(dict(parts), indent=1, sort_keys=True) + "\n").encode())
    return path


def kept_splits(store: Path, records: Mapping[str, Record]) -> pd.DataFrame:
    """A row per record of the store whose forgetting was split, in its unit.

    A file that is no split, or of no record of the store, is left out.

    Returns:
        Columns preset, method, order, init (seeds), forgetting, drift, weights, key.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for path in sorted((store / SPLITS).glob("*.json")):
        record = records.get(path.stem)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            numbers = {name: float(content[name]) for name in _PARTS}
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if record is not None:
            cell = record.cell
            facts = {"preset": cell["preset"], "method": cell["method"], "order": cell["seeds"]["order"], "init": cell["seeds"]["init"]}
            rows.append(facts | numbers | {"key": record.key})
    return pd.DataFrame(rows, columns=_COLUMNS)
