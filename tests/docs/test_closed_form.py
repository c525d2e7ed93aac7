"""The page on closed forms says what records say: tables, picture, and every sentence with a number."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from doc_tool import tool
from PIL import Image

pytestmark = [pytest.mark.nightly, pytest.mark.plugins]
BEGIN, CGLB = ("cora/class-il@begin-2", "citeseer/class-il@begin-2"), ("cora/class-il@cglb-2", "citeseer/class-il@cglb-2")
GLOBAL = "cora/class-il@global-1"
OTHER, ROWS = ", recipe of Kipf and Welling", "analytic-ridge, kept as rows"
RECIPE, SOFTMAX = f"joint{OTHER}", "joint, softmax regression"
closed_form: Any = tool("closed_form")


@cache
def table(scenario: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = closed_form.table(scenario)
    return found


@cache
def prose() -> str:
    return " ".join(closed_form.PAGE.read_text(encoding="utf-8").split())


def between(scenario: str, one: str, other: str, n: int) -> np.ndarray:
    """Differences in AP over the repetitions that both rows have, of which there are n."""
    rows = closed_form.TABLES[scenario]
    found: np.ndarray = closed_form.differences(*(closed_form.records(scenario, rows[name]) for name in (one, other)))
    assert len(found) == n
    return found


def test_tables_are_those_of_the_records() -> None:
    page = closed_form.PAGE.read_text(encoding="utf-8")
    assert closed_form.with_tables(page) == page, "run: python docs/tools/closed_form.py"
    assert all(f"<!-- records of {scenario} -->" in page for scenario in closed_form.TABLES)


def test_the_picture_shows_the_records() -> None:
    with Image.open(closed_form.PICTURE) as picture:
        assert json.loads(picture.info["Description"]) == closed_form.shown(), "run: python docs/tools/closed_form.py"


def test_the_finding() -> None:
    ahead = [table(scenario)["analytic-ridge"]["ahead"] for scenario in BEGIN]
    assert [len(one) for one in ahead] == [10, 10]
    rest = [between(scenario, "analytic-ridge", RECIPE, 5).mean() for scenario in BEGIN]
    assert (
        f"is {ahead[0].mean():.1f} points above the joint training of BeGin's preset on Cora and {ahead[1].mean():.1f} above it on "
        "CiteSeer (class-IL, ten class orders)"
    ) in prose()
    assert f"over five shared orders the ridge is {-rest[0]:.1f} points below it on Cora and {rest[1]:.1f} above it on CiteSeer" in prose()
    pairs = [[between(scenario, f"joint{recipe}", f"bare{recipe}", n).mean() for recipe, n in (("", 10), (OTHER, 5))] for scenario in BEGIN]
    assert "from {:.1f} to {:.1f} points on Cora and from {:.1f} to {:.1f} on CiteSeer".format(*pairs[0], *pairs[1]) in prose()


def test_what_forgets_nothing_still_has_af() -> None:
    af, excess = ([table(scenario)["analytic-ridge"][key].mean() for scenario in BEGIN] for key in ("af", "excess"))
    assert f"its AF is {af[0]:.1f} on Cora and {af[1]:.1f} on CiteSeer, since new classes compete" in prose()
    assert f"it is {-excess[0]:.1f} and {-excess[1]:.1f} points below zero" in prose()


def test_what_joint_training_bounds() -> None:
    rows = table(BEGIN[1])
    ahead, p = rows["frozen-ncm"]["ahead"].mean(), closed_form.chance(rows["frozen-ncm"]["p"])
    assert f"class means under a random network ({ahead:+.1f} points, p = {p})" in prose()
    moved = between(BEGIN[1], RECIPE, "joint", 5).mean()
    assert f"and another recipe lifts joint training by {moved:.1f} points" in prose()


def test_what_the_closed_form_adds() -> None:
    score = [table(scenario)[SOFTMAX]["ap"].mean() for scenario in BEGIN]
    above = [between(scenario, "analytic-ridge", SOFTMAX, 5).mean() for scenario in BEGIN]
    assert f"trained jointly on all items, scores {score[0]:.1f} on Cora and {score[1]:.1f} on CiteSeer" in prose()
    assert f"the ridge is {above[0]:.1f} and {above[1]:.1f} points above it" in prose()


def test_the_gap() -> None:
    gap, ridge, means = (np.array([table(s)[name]["gain"].mean() for s in BEGIN]) for name in ("joint", "analytic-ridge", "frozen-ncm"))
    assert (gap >= 5).all()
    assert f"it is {gap[0]:.1f} points on Cora and {gap[1]:.1f} on CiteSeer; the ridge is {ridge[0]:.1f} and {ridge[1]:.1f}" in prose()
    assert "above fine-tuning, {:.0f}% and {:.0f}% of it".format(*100 * ridge / gap) in prose()
    assert "Class means under a random network alone close {:.0f}% and {:.0f}%".format(*100 * means / gap) in prose()


def test_what_the_ridge_owes_to_the_graph_and_to_test_nodes() -> None:
    lost = [-between(scenario, "analytic-ridge, no graph", "analytic-ridge", 5).mean() for scenario in BEGIN]
    assert f"Without it the ridge loses {lost[0]:.1f} points on Cora and {lost[1]:.1f} on CiteSeer (five orders)" in prose()
    alone = "analytic-ridge, no test node in the sums"
    moved = [between(scenario, alone, "analytic-ridge", 5).mean() for scenario in BEGIN]
    assert f"the ridge moves by {moved[0]:+.1f} points on Cora and {moved[1]:+.1f} on CiteSeer" in prose()
    row, behind = table(BEGIN[0])[alone], between(BEGIN[0], alone, RECIPE, 5).mean()
    assert row["p"] > 0.05
    assert (
        f"is then gone ({row['ahead'].mean():+.1f} points, p = {closed_form.chance(row['p'])}), and it is {-behind:.1f} points" in prose()
    )


def test_bytes() -> None:
    sums, rows = ([closed_form.amount(table(scenario)[name]["bytes"]) for scenario in BEGIN] for name in ("analytic-ridge", ROWS))
    assert (
        f"The sums take {sums[0]} on Cora and {sums[1]} on CiteSeer, where all training rows are {rows[0]} and {rows[1]}. Kept as rows"
    ) in prose()
    assert not any(between(scenario, ROWS, "analytic-ridge", 10).any() for scenario in BEGIN)
    few = [table(scenario)["analytic-ridge, 100 random features"] for scenario in BEGIN]
    assert all(one["bytes"] < table(scenario)[ROWS]["bytes"] and one["gain"].mean() < 0 for one, scenario in zip(few, BEGIN, strict=True))
    assert f"100 of them score {few[0]['ap'].mean():.1f} and {few[1]['ap'].mean():.1f}, below fine-tuning" in prose()


def test_queries_of_all_tasks_at_once() -> None:
    own, pooled = (table(scenario)["analytic-ridge"]["ap"] for scenario in (CGLB[0], GLOBAL))
    assert f"Queried globally, the ridge loses {(own - pooled).mean():.1f} points on Cora" in prose()
    stored = table(CGLB[0])["pdgnns-tem"]
    assert stored["ap"].mean() == max(row["ap"].mean() for row in table(CGLB[0]).values())
    assert (
        f"is best on Cora ({stored['ap'].mean():.1f}): propagated features again, with a memory of {closed_form.amount(stored['bytes'])}"
    ) in prose()
    for scenario in (*CGLB, GLOBAL):
        assert between(scenario, "analytic-ridge, weighted by class", "analytic-ridge", 3).mean() < 0


def test_when_it_fails() -> None:
    row = table(CGLB[1])["analytic-ridge"]
    assert (
        f"on CiteSeer under `@cglb-2` it is {abs(row['ahead'].mean()):.1f} points from it (p = {closed_form.chance(row['p'])})" in prose()
    )
    assert all(table(scenario)["analytic-ridge"]["p"] > 0.05 for scenario in (CGLB[0], GLOBAL))
    rows = table("amazon-clothing20/class-il@cglb-2")
    amazon, er = rows["analytic-ridge"], rows["er-gnn"]
    assert f"on the Amazon graph {abs(amazon['ahead'].mean()):.1f} (p = {closed_form.chance(amazon['p'])})" in prose()
    assert (
        f"at 9,034 features of the Amazon graph the sums take {8 * 9034**2 / 1e6:.0f} MB, the rows {closed_form.amount(amazon['bytes'])}, "
        f"where ER stores {closed_form.amount(er['bytes'])} and is {-er['ahead'].mean():.1f} points below joint training"
    ) in prose()
