"""What a campaign and its report find in a pulled store is what they find where the cells were run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from made_records import CAMPAIGN, fill_store, made_catalogue

from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.executors.campaign_run import cell_states
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.storage.store import Store
from cglsuite.commons.exchange import publish, pull
from cglsuite.reports.results.results import load_campaign_results

SMALL = CAMPAIGN | {"seeds": {"order": [0, 1], "init": [0, 1]}}


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Store]:
    """The store of a campaign, the folder that it was published to, and a store that pulled from there."""
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))
    catalogue = made_catalogue()
    fill_store(SMALL, catalogue, tmp_path / "own")
    publish(Store(tmp_path / "own", quarantine=False), str(tmp_path / "published"))
    pull(str(tmp_path / "published"), Store(tmp_path / "pulled"))
    return {name: Store(tmp_path / name) for name in ("own", "published", "pulled")}


def test_a_campaign_is_finished(stores: dict[str, Store]) -> None:
    """State by state; nothing is left to run."""
    catalogue = made_catalogue()
    plan = plan_campaign(Campaign.parse(SMALL), catalogue, store=stores["own"])
    expected = list(cell_states(plan, stores["own"]))
    assert {state.state for state in expected} >= {"done"}
    for store in stores.values():
        assert list(cell_states(plan, store)) == expected
        assert store.unfinished(p.key for p in plan if p.ready) == []


def test_a_report_has_the_same_records_and_tables(stores: dict[str, Store]) -> None:
    catalogue = made_catalogue()
    results = {n: load_campaign_results(SMALL, store, catalogue=catalogue) for n, store in stores.items()}
    expected = results["own"]
    assert len(expected.used) > 10
    for found in results.values():
        assert [cell.record for cell in found.cells] == [cell.record for cell in expected.cells]
        assert found.counts() == expected.counts()
        pd.testing.assert_frame_equal(found.frame, expected.frame)
