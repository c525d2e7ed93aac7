"""No preset changes by accident: what each gives to each method is what is committed, and what it names is a setting of somebody's."""

from __future__ import annotations

import json

import pytest
from presets import FILE, built_in, cells, digests

pytestmark = pytest.mark.plugins


def test_presets_give_methods_what_is_committed() -> None:
    """A change that is meant is written by ``python tests/tools/presets.py``, whose output belongs into the commit's message.

    Every default that a preset names is set, for a method that there is, and counts as the preset's own: a cell without overrides has its
    name.
    """
    catalogue, found = built_in(), {}
    for scenario in catalogue.names("scenario"):
        defaults, resolved = catalogue.scenario(scenario).method_defaults, cells(catalogue, scenario)
        assert {"bare", "joint"} <= resolved.keys()
        assert set(defaults) <= set(catalogue.names("method")), scenario
        for method, cell in resolved.items():
            assert cell.preset == scenario, method
            given = defaults.get(method, {})
            assert {key: cell.configuration[key] for key in given} == given, (scenario, method)
        found[scenario] = digests(resolved)
    assert found == json.loads(FILE.read_text(encoding="utf-8"))
