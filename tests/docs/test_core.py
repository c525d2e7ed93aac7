"""The page of the core table agrees with the records of its campaign: the table, and every sentence with a number."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from doc_tool import tool

from cglsuite.campaigns.campaign import load_campaign
from cglsuite.cells.storage.store import Store

pytestmark = [pytest.mark.nightly, pytest.mark.plugins]
CORA = "cora/class-il@global-1"
core: Any = tool("core")


@cache
def prose() -> str:
    return " ".join(core.PAGE.read_text(encoding="utf-8").split())


@cache
def ahead(one: str, other: str) -> np.ndarray:
    """Differences in AP over the ten repetitions."""
    rows = core.records()[CORA]
    found: np.ndarray = core.differences(rows[one], rows[other])
    assert len(found) == core.ORDERS
    return found


def test_tables_are_those_of_the_records() -> None:
    page = core.PAGE.read_text(encoding="utf-8")
    assert core.with_tables(page) == page, "run: python docs/tools/core.py"
    campaign = load_campaign(core.CAMPAIGN)
    assert len(campaign.grid.methods) == 12 + len(core.REFERENCES)
    for scenario in campaign.grid.scenarios:
        state = "complete" if scenario in core.records() else "ready to run"
        assert f"| `{scenario}` | {state} |" in page
        assert (f"<!-- records of {scenario} -->" in page) == (scenario in core.records())


def test_how_long_the_cells_took() -> None:
    total = [record.timings_s["total"] for record in Store(core.RECORDS).records() if record.cell["scenario"] == CORA]
    assert f"The {len(total)} cells on Cora took {sum(total) / 60:.0f} minutes on one CPU core" in prose()


def test_every_method_has_eight_trials_on_seeds_of_their_own() -> None:
    results = core.load_campaign_results(core.CAMPAIGN, core.RECORDS)
    outcomes = [outcome for outcome in results.searches if outcome["scenario"] == CORA]
    assert len(outcomes) == 15
    assert {(len(outcome["candidates"]), outcome["scope"]) for outcome in outcomes} == {(8, "first-tasks(2)")}
    assert {seeds["order"] for outcome in outcomes for seeds in outcome["seeds"]} == {100}
    assert {seeds for rows in core.records()[CORA].values() for seeds in rows} == {(n, n, n) for n in range(10)}
    own = {outcome["method"] for outcome in outcomes if set(outcome["overrides"]) - {"training.lr", "training.weight_decay"}}
    assert own == {"analytic-ridge", "lwf", "ewc", "mas", "joint"}


def test_propagated_features_lead() -> None:
    rows = core.table(CORA)
    assert list(rows)[:2] == ["pdgnns-tem", "analytic-ridge"]
    stored, ridge = (rows[name] for name in ("pdgnns-tem", "analytic-ridge"))
    assert f"are {stored['ahead'].mean():.1f} and {ridge['ahead'].mean():.1f} points above tuned joint training" in prose()
    assert max(stored["p"], ridge["p"]) < 0.05
    apart = ahead("pdgnns-tem", "analytic-ridge")
    assert f"They are {apart.mean():.1f} points apart (p = {core.closed_form.chance(core.p_value(apart))}, unadjusted)" in prose()


def test_regularisation_does_not_help() -> None:
    most = max(abs(ahead(method, "bare").mean()) for method in ("lwf", "ewc", "si", "twp"))
    assert f"LwF, EWC, SI and TWP differ from fine-tuning by at most {most:.1f} points" in prose()
    assert all(core.p_value(ahead(method, "bare")) > 0.05 for method in ("lwf", "ewc", "si", "twp"))
    assert f"is {ahead('mas', 'bare').mean():.1f} points above fine-tuning" in prose()


def test_replay_is_limited_by_its_buffer() -> None:
    rows = core.table(CORA)
    behind = [-rows[method]["ahead"].mean() for method in ("er-gnn", "er-ace", "der++")]
    assert f"are {min(behind):.1f} to {max(behind):.1f} points below joint training" in prose()
    assert f"which never learns, score {rows['frozen-ncm']['ap'].mean():.1f}" in prose()
    p = [core.p_value(ahead(method, "frozen-ncm")) for method in ("er-ace", "der++")]
    assert min(p) > 0.05
    assert f"(p = {core.closed_form.chance(p[0])} and {core.closed_form.chance(p[1])}, unadjusted)" in prose()
