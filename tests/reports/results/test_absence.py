"""Why a metric has no value: the first reason that applies; and which plugins a campaign's results name."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from report_lab import CAMPAIGN, catalogue_of, with_toy_cells

from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, PluginRecord
from cglsuite.reports.results.measures import why_absent
from cglsuite.reports.results.results import load_campaign_results
from cglsuite.specs import KINDS


def spec(excluded: str = "", reference: str = "", undefined: str = "") -> Any:
    return SimpleNamespace(excluded=lambda scenario: excluded, reference=reference, undefined=undefined)


@pytest.mark.parametrize(
    ("metric", "tasks", "reason"),
    [
        (spec(excluded="does not apply to task-il", reference="joint"), 1, "does not apply to task-il"),
        (spec(reference="joint", undefined="x"), 1, "needs joint in the same scenario, with the same backbone and seeds"),
        (spec(undefined="nothing is forgotten"), 1, "does not apply to a stream of one task"),
        (spec(undefined="nothing is forgotten"), 2, "is undefined here: nothing is forgotten"),
        (spec(), 0, "is undefined here: entries of the performance matrix are missing"),
    ],
)
def test_why_a_metric_has_no_value(metric: Any, tasks: int, reason: str) -> None:
    assert why_absent(metric, SimpleNamespace(scenario={}, tasks=[{}] * tasks)) == reason  # type: ignore[arg-type]


def test_plugins_that_do_not_work_are_not_named(tmp_path: Path) -> None:
    """Sorted, each once: they had no part in the results."""
    toy = catalogue_of()
    entries = [entry for kind in KINDS for entry in toy.entries(kind)]
    broken = PluginRecord(distribution="broken", version="3", entry_point="b", module="b", status="quarantined")
    other = PluginRecord(distribution="another", version="2", entry_point="a", module="a", status="ok")
    whole = with_toy_cells(Catalogue([*toy.records, broken, other, other], entries))
    results = load_campaign_results(CAMPAIGN, Store(tmp_path), catalogue=whole)
    assert results.plugins == (("another", "2"), ("toy-plugin", "1.2"))
