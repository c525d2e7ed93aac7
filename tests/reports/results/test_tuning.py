"""Tuning in reports: trials beside every result, the tasks a search saw, the best of n, and how certain a choice is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from report_lab import CAMPAIGN, MATRIX, catalogue_of, record_of

from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign, plan_search
from cglsuite.cells.storage.store import Store
from cglsuite.reports.kit.figures import trials_figure
from cglsuite.reports.kit.pictures import LIGHT
from cglsuite.reports.results import costs, runs, variants
from cglsuite.reports.results.guards import guards
from cglsuite.reports.results.results import CampaignResults, load_campaign_results
from cglsuite.reports.site.boards import boards
from cglsuite.reports.site.leaderboard import leaderboard
from cglsuite.reports.studies.comparison import page as comparison_page
from cglsuite.reports.studies.comparison.compute import Question, study
from cglsuite.specs import ScenarioSpec

OPEN = ScenarioSpec(
    name="toy/domain-il@cglb-1", summary="t", dataset="toy", setting="domain-il", task_key="k", searched=("training.lr", "method.lambda")
)
GRID = {"scenarios": [OPEN.name], "methods": ["bare", "ewc"]}
SEARCH = {
    "seeds": {"order": [0, 1], "init": [0, 1]},
    "grid": {"training.lr": [0.001, 0.005, 0.01]},
    "methods": {"ewc": {"method.lambda": [1.0, 2.0]}},
}
Made = Callable[..., tuple[CampaignResults, Any]]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Results of a searched campaign: validation follows from the learning rate and the order."""

    def make(
        preset: ScenarioSpec = OPEN, best: Mapping[str, float] | None = None, sets: Mapping[str, Any] | None = None, **search: Any
    ) -> tuple[CampaignResults, Any]:
        catalogue = catalogue_of(("scenario", preset))
        store, campaign = Store(tmp_path), CAMPAIGN | {"grid": GRID, "search": SEARCH | search, "set": sets or {}}
        parsed = Campaign.parse(campaign)

        def record(planned: Any) -> Any:
            lr, order = planned.cell.configuration["training.lr"], planned.request.seeds.order
            distance = abs(lr - (best or {}).get(planned.cell.method, 0.005))
            validation = np.array(MATRIX) - 10 * distance - 0.25 * order * distance
            validation[np.triu_indices(4, 0, 3)] = np.nan
            return record_of(planned, validation_matrix=validation)

        for search_ in plan_search(parsed, catalogue):
            for planned in search_.cells:
                store.put(record(planned))
        for planned in plan_campaign(parsed, catalogue, store=store):
            store.put(record(planned))
        return load_campaign_results(campaign, store, catalogue=catalogue), catalogue

    return make


def test_trials_stand_beside_every_result(made: Made) -> None:
    """Whole grids are unequal trials, and the page says so; equal trials are one number."""
    results, catalogue = made()
    (board,) = boards(results, catalogue)
    assert {row.method: row.scores["trials"].mean for row in board.rows} == {"bare": 3, "ewc": 6}
    expected = ["Methods were tuned with unequal numbers of trials: bare 3, ewc 6."]
    assert [guard.text for guard in guards(results) if "trials" in guard.text] == expected
    assert "Trials: bare 3, ewc 6" in str(leaderboard(results, catalogue))
    equal, catalogue = made(trials=3)
    assert [guard for guard in guards(equal) if "trials" in guard.text] == []
    (board,) = boards(equal, catalogue)
    assert {row.scores["trials"].mean for row in board.rows} == {3}
    assert variants.UNTUNED not in {column.name for column in board.columns}
    assert "Trials: 3 for every method; scored on validation items of all tasks." in str(comparison_page.means(study(equal, Question())))
    assert "3 of 6" in str(runs.searches(equal))
    assert set(equal.frame["trials"]) == {3}


@pytest.mark.parametrize(("sets", "changes"), [({}, []), ({"training.epochs": 7}, ["training.epochs"])])
def test_methods_with_different_choices_are_in_one_comparison(made: Made, sets: dict[str, Any], changes: list[str]) -> None:
    """A value that a search chose for a method distinguishes no scenario, although the preset leaves nothing to a search."""
    fixed, best = dataclasses.replace(OPEN, searched=()), {"bare": 0.001, "ewc": 0.01}
    results, catalogue = made(fixed, best, sets)
    assert {group.method: group.records[0].cell["configuration"]["training.lr"] for group in results.groups} == best
    (board,) = boards(results, catalogue)
    assert {row.method for row in board.rows} == {"bare", "ewc"}
    assert [*results.overrides_of(results.groups[0].preset)[0].changes] == changes if changes else results.variants == {}
    assert {cell.record.cell["preset"] for cell in results.cells if cell.record is not None} == {results.groups[0].preset}
    assert results.groups[0].preset.startswith(f"{OPEN.name}+" if changes else OPEN.name)


def test_a_value_that_overrides_a_search_is_in_the_name(made: Made, tmp_path: Path) -> None:
    results, catalogue = made(dataclasses.replace(OPEN, searched=()), {"bare": 0.001, "ewc": 0.01})
    campaign = CAMPAIGN | {"grid": GRID, "search": SEARCH}
    by_hand = load_campaign_results(campaign, Store(tmp_path), overrides={"training.lr": 0.002}, catalogue=catalogue)
    assert {cell.planned.cell.preset for cell in results.cells if cell.planned.cell is not None} == {OPEN.name}
    (name,) = {cell.planned.cell.preset for cell in by_hand.cells if cell.planned.cell is not None and cell.planned.cell.method == "bare"}
    assert name != OPEN.name
    assert by_hand.variants[name].changes == {"training.lr": 0.002}


def test_the_tasks_that_the_search_saw(made: Made) -> None:
    """AP over all three tasks is 0.8, over the last one 0.9; the order that the search did not see is named."""
    results, catalogue = made(trials=3, scope="first-tasks(2)")
    (board,) = boards(results, catalogue)
    assert [column.label for column in board.columns][:3] == ["AP", "trials", "AP, tasks after 2"]
    assert {round(row.scores[variants.UNTUNED].mean, 12) for row in board.rows} == {0.9}
    assert {round(row.scores["average_performance"].mean, 12) for row in board.rows} == {0.8}
    text = str(leaderboard(results, catalogue))
    assert "the first 2 tasks, then restarted from scratch" in text
    assert "The search saw no order seed 2:" in text


def test_a_campaign_without_a_search_says_so(made: Made) -> None:
    """No column of ones: how the preset's values came about is not the campaign's to count."""
    results, catalogue = made()
    results = dataclasses.replace(results, searches=())
    (board,) = boards(results, catalogue)
    assert "trials" not in {column.name for column in board.columns}
    assert "Trials: no search in this campaign" in str(leaderboard(results, catalogue))


def test_how_certain_a_choice_is() -> None:
    """By hand: differences 0.25 and 0.5 to the next best; one candidate alone has no lead."""
    rows = [{"scores": [0.5, 0.5], "mean": 0.5}, {"scores": [0.75, 1.0], "mean": 0.875}, {"scores": [None, 1.0], "mean": None}]
    assert variants.lead({"candidates": rows, "chosen": 1}) == (0.375, 0.125)
    assert all(math.isnan(value) for value in variants.lead({"candidates": rows[1:], "chosen": 0}))
    mean, error = variants.lead({"candidates": [{"scores": [0.5], "mean": 0.5}, {"scores": [0.25], "mean": 0.25}], "chosen": 0})
    assert mean == 0.25
    assert math.isnan(error)


def test_the_best_of_n(made: Made) -> None:
    """A curve per method that ends in the score of the choice; the figure says so in words."""
    results, _ = made(trials=3)
    frame = variants.best_of_n(results.searches)
    last = frame[frame["n"] == 3].set_index("label")["mean"]
    chosen = {o["method"]: o["candidates"][o["chosen"]]["mean"] for o in results.searches}
    assert last.to_dict() == chosen
    (picture,) = runs.best_of_n(results).pictures  # type: ignore[union-attr]
    assert "bare " in picture.alt
    assert "no finished" in str(runs.best_of_n(dataclasses.replace(results, searches=())))


def test_a_search_on_seeds_of_the_results_is_named(made: Made) -> None:
    """On the page before the numbers, and below the board; seeds of its own are not worth a word."""
    results, catalogue = made(trials=3)
    shared = (
        "The search used seeds of the grid (order/split/init 0/0/0, 1/0/1), so the settings of these results were chosen on the same seeds."
    )
    assert [guard.text for guard in guards(results) if guard.kind == "search"] == [shared]
    assert shared in str(leaderboard(results, catalogue))
    apart, catalogue = made(trials=3, seeds={"order": [10, 11], "init": [10, 11]})
    assert [guard for guard in guards(apart) if guard.kind == "search"] == []
    assert "used seeds of the grid" not in str(leaderboard(apart, catalogue))


def test_a_picture_of_the_search(made: Made) -> None:
    """By hand: validation is 0.8 - 10 |lr - 0.005| - 0.25 · order · |lr - 0.005|, so 0.005 is chosen; lambda changes nothing."""
    results, _ = made()
    frame = variants.trial_values(results.searches)
    assert frame.groupby(["axis", "label"]).size().to_dict() == {
        ("method.lambda", "ewc"): 6,
        ("training.lr", "bare"): 3,
        ("training.lr", "ewc"): 6,
    }
    bare = frame[frame["label"] == "bare"].set_index("value")
    assert bare.index[bare["chosen"]].tolist() == [0.005]
    assert bare.loc[0.01, "mean"] == pytest.approx(0.8 - 0.05 - 0.125 * 0.005)
    assert bare.loc[0.01, "std"] == pytest.approx(0.25 * 0.005 / math.sqrt(2))
    assert [one.alt for one in runs.trials(results).pictures] == [
        "Validation score of the trials against training.lr in toy · domain-IL · CGLB 1: bare chose 0.005 (80.0); ewc chose 0.005 (80.0).",
        "Validation score of the trials against method.lambda in toy · domain-IL · CGLB 1: ewc chose 1 (80.0).",
    ]
    assert runs.trials(dataclasses.replace(results, searches=())).pictures == ()


def test_a_picture_leaves_out_what_did_not_finish_and_what_was_not_varied() -> None:
    """One seed has no bar; values that are no numbers have places of their own."""

    def row(mean: float | None, **overrides: Any) -> dict[str, Any]:
        return {"overrides": overrides, "scores": [mean], "mean": mean}

    rows = [row(0.5, norm="layer", lr=0.1), row(None, norm="none", lr=0.1), row(0.75, norm="batch", lr=0.1)]
    outcome = {"scenario": "s", "method": "m", "backbone": "b", "candidates": rows, "chosen": 2}
    frame = variants.trial_values([outcome])
    assert frame[["axis", "label", "value", "mean", "chosen"]].to_numpy().tolist() == [
        ["norm", "m × b", "layer", 0.5, False],
        ["norm", "m × b", "batch", 0.75, True],
    ]
    figure = trials_figure(frame, LIGHT, xlabel="norm", order=["m × b"])
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["layer", "batch"]
    wide = trials_figure(frame.assign(value=[1e-4, 1e-1]), LIGHT, xlabel="lr", order=["m × b"])
    assert wide.axes[0].get_xscale() == "log"


def test_the_table_says_how_trials_were_drawn(made: Made) -> None:
    results, _ = made(trials=4, grid={"training.lr": {"log": [1e-3, 2e-2]}}, methods={})
    assert ">4, Sobol<" in str(runs.searches(results))
    assert set(results.frame["trials"]) == {4}


def test_costs_by_hand(made: Made) -> None:
    """The diagonal of the toy matrix is 0.9 throughout; kept bytes are the memory's and the method's parameters'."""
    results, _ = made(trials=3)
    frame = costs.costs(results)
    assert frame["learning_accuracy_mean"].round(12).tolist() == [0.9, 0.9]
    assert frame["forgetting_mean"].round(12).tolist() == [0.15, 0.15]
    assert frame["seconds_mean"].tolist() == [10.0, 10.0]
    record = results.used[0]
    memory = {**record.memory, "bytes": 1000}
    assert costs.memory_bytes(dataclasses.replace(record, memory=memory, parameters={"model": 100, "method": 5})) == 1020.0
    captions = [picture.alt for picture in costs.cost_figures(results).pictures]  # type: ignore[union-attr]
    assert [alt.partition(" in ")[0] for alt in captions] == [
        "Legend: bare, ewc",
        "performance at the end, % against seconds per cell",
        "performance at the end, % against kept, kB",
        "learning accuracy, % against forgetting, points (AF_max, ← less)",
    ]


def test_scenarios_of_a_search_stay_in_the_campaigns_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """One figure each, with the ends of the curves in words, and the trials that did not finish."""
    rows = [
        {"scenario": s, "label": "ewc", "n": n, "mean": 0.1 * n + x, "std": 0.01, "trials": 2, "excluded": e}
        for s, x, e in (("zebra", 0.5, 0), ("ant", 0.25, 3))
        for n in (1, 2)
    ]
    monkeypatch.setattr(variants, "best_of_n", lambda searches: pd.DataFrame(rows))
    shown: Any = runs.best_of_n(cast("Any", SimpleNamespace(searches=())))
    assert [one.alt for one in shown.pictures] == [
        "Expected best validation score by number of trials in zebra: ewc 70.0 with 2.",
        "Expected best validation score by number of trials in ant: ewc 45.0 with 2.",
    ]
    assert [one.caption.partition("needs more trials")[2] for one in shown.pictures] == ["", ". 3 trials that did not finish are left out"]


def seeds(*orders: int) -> list[dict[str, int]]:
    return [{"order": order, "split": 0, "init": 7} for order in orders]


SEARCHED = [{"candidates": [{}, {}, {}], "seeds": seeds(0, 1)}, {"candidates": [{}, {}], "seeds": seeds(0)}]
FIRST = [one | {"scope": "first-tasks(2)"} for one in SEARCHED]
NOT_SEEN = " The search saw no order seed {}: in these orders its tasks may come at any place, if the order is random."


@pytest.mark.parametrize(
    ("of_label", "orders", "said"),
    [
        (
            {"a": [], "b": []},
            (0,),
            "Trials: no search in this campaign; hyperparameters are the preset's, the method's defaults or set by hand.",
        ),
        ({"a": SEARCHED[:1], "b": []}, (0,), "Trials: a 3, b 1; scored on validation items of all tasks."),
        ({"a": SEARCHED[:1], "b": SEARCHED[:1]}, (0, 7), "Trials: 3 for every method; scored on validation items of all tasks."),
        (
            {"a": FIRST[:1], "b": SEARCHED[1:]},
            (0, 1),
            "Trials: a 3, b 2; scored on validation items of all tasks or the first 2 tasks, then restarted from scratch.",
        ),
        (
            {"a": FIRST[1:]},
            tuple(range(7)),
            "Trials: 2 for every method; scored on validation items of the first 2 tasks, then restarted from scratch."
            + NOT_SEEN.format("1, 2, 3, 4, 5 and 1 more"),
        ),
    ],
)
def test_trials_and_scope_in_words(monkeypatch: pytest.MonkeyPatch, of_label: dict[str, Any], orders: tuple[int, ...], said: str) -> None:
    """Of every method where they differ; one that was not searched had one trial; orders that a search did not see are named."""
    monkeypatch.setattr(variants, "searches_of", lambda searches, cell: of_label[cell["method"]])
    monkeypatch.setattr(
        variants, "trials_of", lambda searches, cell: max([len(o["candidates"]) for o in of_label[cell["method"]]], default=1)
    )
    records = {name: [SimpleNamespace(cell={"method": name, "seeds": seeds(o)[0] | {"init": 0}}) for o in orders] for name in of_label}
    assert variants.note([], cast("Any", records)) == said
    assert variants.note([], {}) == ""
