"""No preset changes by accident: what each gives to each method is what is committed."""

from __future__ import annotations

import json

import pytest
from presets import FILE, built_in, digests

pytestmark = pytest.mark.plugins


def test_presets_give_methods_what_is_committed() -> None:
    """A change that is meant is written by ``python tests/tools/presets.py``, whose output belongs into the commit's message."""
    assert digests(built_in()) == json.loads(FILE.read_text(encoding="utf-8"))
