"""Every setting of every level can be tried without data: some preset on embedded data trains in it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from presets import built_in

from cglsuite.cells.run import run_cell
from cglsuite.cells.spec import resolve_cell
from cglsuite.cells.storage.store import Store

pytestmark = pytest.mark.plugins
CATALOGUE = built_in()
EMBEDDED = {e.name for e in CATALOGUE.entries("dataset") if e.spec.embedded}


def presets() -> dict[tuple[str, str], str]:
    """Level and setting to the newest preset on embedded data, or to nothing if there are presets on real data alone."""
    found = dict[tuple[str, str], str]()
    for entry in CATALOGUE.entries("scenario"):
        here = found.get((entry.spec.level, entry.spec.setting), "")
        found[entry.spec.level, entry.spec.setting] = max(here, entry.name if entry.spec.dataset in EMBEDDED else "")
    return found


def test_no_setting_needs_real_data() -> None:
    assert len(presets()) >= 17
    assert all(presets().values())


@pytest.mark.nightly
@pytest.mark.parametrize("scenario", presets().values())
def test_a_method_trains_in_it(scenario: str, tmp_path: Path) -> None:
    record = run_cell(resolve_cell(CATALOGUE, scenario, "bare", overrides={"training.epochs": 1}), CATALOGUE, Store(tmp_path))
    assert record.status == "done", record.reason
    score = record.metrics["average_performance"] if record.metrics["average_performance"] is not None else record.metrics["a_auc"]
    assert score is not None
    assert math.isfinite(score)
