"""The page on closed-form baselines agrees with the records: tables, figure, and every sentence with a number."""

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
GLOBAL, MOLECULES = "cora/class-il@global-1", "aromaticity/class-il@begin-2"
OTHER, ROWS = ", Kipf and Welling's recipe", "analytic-ridge, dual form"
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
    """Differences in AP over the n repetitions that both rows have."""
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
    assert f"its AF is {af[0]:.1f} on Cora and {af[1]:.1f} on CiteSeer, because new classes compete" in prose()
    assert f"a nearest-class-mean classifier that cannot forget, is {excess[0]:.1f} and {excess[1]:.1f} points" in prose()


def test_what_joint_training_bounds() -> None:
    rows = table(BEGIN[1])
    ahead, p = rows["frozen-ncm"]["ahead"].mean(), closed_form.chance(rows["frozen-ncm"]["p"])
    assert f"not significantly below the preset's joint training ({ahead:+.1f} points, p = {p})" in prose()
    moved = between(BEGIN[1], RECIPE, "joint", 5).mean()
    assert f"and another recipe improves joint training by {moved:.1f} points" in prose()


def test_what_the_closed_form_adds() -> None:
    score = [table(scenario)[SOFTMAX]["ap"].mean() for scenario in BEGIN]
    above = [between(scenario, "analytic-ridge", SOFTMAX, 5).mean() for scenario in BEGIN]
    assert f"trained jointly on all items, scores {score[0]:.1f} on Cora and {score[1]:.1f} on CiteSeer" in prose()
    assert f"the ridge is {above[0]:.1f} and {above[1]:.1f} points above it" in prose()


def test_the_gap() -> None:
    gap, ridge, means = (np.array([table(s)[name]["gain"].mean() for s in BEGIN]) for name in ("joint", "analytic-ridge", "frozen-ncm"))
    assert (gap >= 5).all()
    assert (
        f"joint training is {gap[0]:.1f} points on Cora and {gap[1]:.1f} on CiteSeer. The ridge is {ridge[0]:.1f} and {ridge[1]:.1f} points"
        in prose()
    )
    assert "above fine-tuning, which is {:.0f}% and {:.0f}% of the gap".format(*100 * ridge / gap) in prose()
    assert "Random-network class means alone close {:.0f}% and {:.0f}%".format(*100 * means / gap) in prose()


def test_what_the_ridge_owes_to_the_graph_and_to_test_nodes() -> None:
    lost = [-between(scenario, "analytic-ridge, no graph", "analytic-ridge", 5).mean() for scenario in BEGIN]
    assert f"Without the graph, the ridge loses {lost[0]:.1f} points on Cora and {lost[1]:.1f} on CiteSeer (five orders)" in prose()
    alone = "analytic-ridge, training nodes only"
    moved = [between(scenario, alone, "analytic-ridge", 5).mean() for scenario in BEGIN]
    assert f"the AP of the ridge changes by {moved[0]:+.1f} points on Cora and {moved[1]:+.1f} on CiteSeer" in prose()
    row, behind = table(BEGIN[0])[alone], between(BEGIN[0], alone, RECIPE, 5).mean()
    assert row["p"] > 0.05
    words = f"({row['ahead'].mean():+.1f} points, p = {closed_form.chance(row['p'])}) and is {-behind:.1f} points below joint training"
    assert f"no longer beats the preset's joint training {words} with the other recipe" in prose()


def test_bytes() -> None:
    sums, rows = ([closed_form.amount(table(scenario)[name]["bytes"]) for scenario in BEGIN] for name in ("analytic-ridge", ROWS))
    assert (
        f"The sums take {sums[0]} on Cora and {sums[1]} on CiteSeer, whereas all training rows take {rows[0]} and {rows[1]}. The dual form"
    ) in prose()
    assert not any(between(scenario, ROWS, "analytic-ridge", 10).any() for scenario in BEGIN)
    few = [table(scenario)["analytic-ridge, 100 random features"] for scenario in BEGIN]
    assert all(one["bytes"] < table(scenario)[ROWS]["bytes"] and one["gain"].mean() < 0 for one, scenario in zip(few, BEGIN, strict=True))
    assert (
        f"with 100 of them, AP is {few[0]['ap'].mean():.1f} on Cora and {few[1]['ap'].mean():.1f} on CiteSeer, below fine-tuning" in prose()
    )


def test_random_features_of_acils_width_and_replay_of_all_items() -> None:
    wide, all_rows = "analytic-ridge, 8,192 random features", "replay, all rows"
    score = [table(scenario)[wide]["ap"].mean() for scenario in BEGIN]
    lost = [between(scenario, "analytic-ridge", wide, 5).mean() for scenario in BEGIN]
    assert f"With 8,192, the width of ACIL's buffer, AP is {score[0]:.1f} and {score[1]:.1f}" in prose()
    assert f"that is {lost[0]:.1f} and {lost[1]:.1f} points below the ridge without them" in prose()
    score = [table(scenario)[all_rows]["ap"].mean() for scenario in BEGIN]
    behind = [between(scenario, "analytic-ridge", all_rows, 5).mean() for scenario in BEGIN]
    assert (
        f"Replay of all of them scores {score[0]:.1f} on Cora and {score[1]:.1f} on CiteSeer, {behind[0]:.1f} and {behind[1]:.1f}"
        in prose()
    )
    ahead = table(BEGIN[1])[all_rows]["ahead"]
    low, high = closed_form.interval(ahead)
    assert low < 0 < high
    assert f"as much as the preset's joint training ({ahead.mean():.1f} points)" in prose()
    assert all(table(scenario)[all_rows]["bytes"] < table(scenario)[ROWS]["bytes"] / 100 for scenario in BEGIN)


def test_molecules_whose_classes_are_counts() -> None:
    rows = table(MOLECULES)
    ridge = rows["analytic-ridge"]
    assert (
        f"Its AP of {ridge['ap'].mean():.1f} is close to the {100 / 30:.1f} of a random guess among 30 classes and "
        f"{-ridge['gain'].mean():.1f} points below fine-tuning"
    ) in prose()
    low, high = closed_form.interval(ridge["ap"])
    assert low < 100 / 30 < high
    assert rows["joint"]["gain"].mean() >= 5
    assert closed_form.interval(ridge["gain"])[1] < 0


def test_queries_of_all_tasks_at_once() -> None:
    own, pooled = (table(scenario)["analytic-ridge"]["ap"] for scenario in (CGLB[0], GLOBAL))
    assert f"With global queries, the ridge loses {(own - pooled).mean():.1f} points on Cora" in prose()
    stored = table(CGLB[0])["pdgnns-tem"]
    assert stored["ap"].mean() == max(row["ap"].mean() for row in table(CGLB[0]).values())
    assert (
        f"is the best method on Cora ({stored['ap'].mean():.1f}). It uses propagated features too, and its memory takes "
        f"{closed_form.amount(stored['bytes'])}"
    ) in prose()
    for scenario in (*CGLB, GLOBAL):
        assert between(scenario, "analytic-ridge, class weights", "analytic-ridge", 3).mean() < 0


def test_when_it_fails() -> None:
    row = table(CGLB[1])["analytic-ridge"]
    assert f"by {abs(row['ahead'].mean()):.1f} points on CiteSeer under `@cglb-2` (p = {closed_form.chance(row['p'])})" in prose()
    assert all(table(scenario)["analytic-ridge"]["p"] > 0.05 for scenario in (CGLB[0], GLOBAL))
    rows = table("amazon-clothing20/class-il@cglb-2")
    amazon, er = rows["analytic-ridge"], rows["er-gnn"]
    assert f"by {abs(amazon['ahead'].mean()):.1f} points on the Amazon graph (p = {closed_form.chance(amazon['p'])})" in prose()
    assert (
        f"With the 9,034 features of the Amazon graph, the sums take {8 * 9034**2 / 1e6:.0f} MB and the rows "
        f"{closed_form.amount(amazon['bytes'])}. ER stores {closed_form.amount(er['bytes'])} there and is {-er['ahead'].mean():.1f} points"
    ) in prose()
