"""No default, range, level or flag of a built-in plugin changes by accident: what each declares is what is committed."""

from __future__ import annotations

import json

import pytest
from declared import FILE, declarations

pytestmark = pytest.mark.plugins


def test_plugins_declare_what_is_committed() -> None:
    """A change that is meant is written by ``python tests/tools/declared.py``. What is new may be written later."""
    committed, now = json.loads(FILE.read_text(encoding="utf-8")), declarations()
    assert len(now) >= 7
    for distribution, entries in now.items():
        known = committed.get(distribution, {})
        assert {name: entries.get(name) for name in known} == known, distribution
