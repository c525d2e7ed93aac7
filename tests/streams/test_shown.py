"""No stream changes by accident: what each of 165 tiny ones shows of tasks, items, graphs and queries is what is committed."""

from __future__ import annotations

import json

from shown_streams import FILE, shown


def test_streams_show_what_is_committed() -> None:
    """A change that is meant is written by ``python tests/tools/shown_streams.py``. Numbers move with it, so keys must too."""
    assert shown() == json.loads(FILE.read_text(encoding="utf-8"))
