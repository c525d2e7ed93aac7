"""Presets with overridden switches: what their hash stands for, and how a page calls them; and what performance is called."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from report_lab import Tables, page_of

from cglsuite.base.hashing import digest
from cglsuite.reports.results.measures import performance_name
from cglsuite.reports.results.results import CampaignResults
from cglsuite.reports.studies import campaign as show
from cglsuite.specs import MethodSpec, ScenarioSpec

Finished = Callable[..., CampaignResults]
TOY, WORDS = "toy/class-il@cglb-1", "toy · class-IL · CGLB 1"
GRID: dict[str, Any] = {"scenarios": ["toy/class-il@cglb-1"], "methods": ["bare", "ewc"]}
CHANGED: dict[str, Any] = {
    "grid": GRID | {"axes": {"scenario.n_tasks": [2, 5]}},
    "set": {"scenario.classes_per_task": "none", "training.epochs": 7, "method.lambda": 3.0},
}


def test_changes_are_what_the_hash_is_made_of(finished: Finished) -> None:
    """Methods' own settings are no change of the preset."""
    variants = finished(**CHANGED).variants
    assert len(variants) == 2
    for name, variant in variants.items():
        assert name == f"{TOY}+{digest(variant.changes)[:8]}"
        assert variant.base == TOY
        assert set(variant.changes) == {"scenario.n_tasks", "scenario.classes_per_task", "training.epochs"}
        assert set(variant.distinguishing) == {"scenario.n_tasks"}
        assert f"scenario.classes_per_task = none, scenario.n_tasks = {variant.changes['scenario.n_tasks']}" in variant.changes_text
    assert {variant.title for variant in variants.values()} == {f"{TOY}, n_tasks = 2", f"{TOY}, n_tasks = 5"}


def test_a_value_of_the_preset_tells_too(finished: Finished) -> None:
    """One copy is what the preset has; beside two copies it is told all the same, and the unchanged preset keeps its name."""
    changed = finished(grid=GRID | {"axes": {"scenario.replicas": [1, 2]}}, set={"training.epochs": 7})
    assert {v.title for v in changed.variants.values()} == {f"{TOY}, replicas = 1", f"{TOY}, replicas = 2"}
    plain = finished(grid=GRID | {"axes": {"scenario.replicas": [1, 2]}})
    assert len(plain.variants) == 1
    assert plain.preset_title(TOY) == WORDS


def test_what_a_preset_gives_to_a_method_is_no_change(finished: Finished) -> None:
    """A searched setting and a method's default in the preset stay out."""
    spec = ScenarioSpec(
        name="mine/class-il@mine-1",
        summary="mine",
        dataset="toy",
        setting="class-il",
        searched=("training.lr",),
        method_defaults={"ewc": {"training.weight_decay": 0.25}},
    )
    overrides = {"training.epochs": 7, "training.lr": 0.5}
    results = finished(("scenario", spec), grid={"scenarios": [spec.name], "methods": ["ewc"]}, set=overrides)
    (variant,) = results.variants.values()
    assert variant.changes == {"training.epochs": 7}
    assert variant.name.endswith(digest({"training.epochs": 7})[:8])
    assert variant.title == variant.name


def test_a_methods_own_training_default_is_no_change(finished: Finished) -> None:
    calm = ("method", MethodSpec(name="calm", summary="calm", factory="json:loads", training={"norm_statistics": "frozen"}))
    grid = GRID | {"methods": ["calm"]}
    (variant,) = finished(calm, grid=grid, set={"training.epochs": 7}).variants.values()
    assert variant.changes == {"training.epochs": 7}
    assert finished(calm, grid=grid).variants == {}


def test_pages_name_variants_in_words(finished: Finished) -> None:
    """Headings say what tells a variant from the others, captions say all that was changed."""
    results = finished(**CHANGED)
    captions = Tables(page_of(results, "summary")).captions
    assert [caption.split(" – ")[0] for caption in captions] == [f"{WORDS}, n_tasks = 2", f"{WORDS}, n_tasks = 5"]
    for caption, name in zip(captions, results.variants, strict=True):
        assert f"{name} is {TOY} with scenario.classes_per_task = none, scenario.n_tasks =" in caption
        assert "training.epochs = 7" in caption
    for section in ("curves", "matrices", "resources", "configurations"):
        page = page_of(results, section)
        for k in (2, 5):
            assert f"{WORDS}, n_tasks = {k}" in page, section


def test_variants_with_one_row_each_share_a_table(finished: Finished) -> None:
    """With a column for what tells them apart; a second method gives every variant a table of its own."""
    one = {"scenarios": [TOY], "methods": ["bare"], "axes": {"scenario.n_tasks": [2, 5]}}
    results = finished(grid=one, set={"training.epochs": 7})
    (table,) = Tables(page_of(results, "summary")).tables
    assert [[text for text, _ in row[:3]] for row in table] == [["method", "n_tasks", "n"], ["bare", "2", "3"], ["bare", "5", "3"]]
    (caption,) = Tables(page_of(results, "summary")).captions
    assert caption.startswith(f"{WORDS} – backbone gcn")
    assert caption.endswith(f"{', '.join(results.variants)}: {TOY} with the values below and training.epochs = 7")
    two = finished(grid=one | {"methods": ["bare", "joint"]}, set={"training.epochs": 7})
    assert len(Tables(page_of(two, "summary")).tables) == 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ({"performance": "average-precision", "labels": "multi"}, "average precision"),
        ({"performance": "roc-auc", "labels": "multi"}, "ROC-AUC"),
        ({"performance": "micro"}, "accuracy in percent"),
        ({"performance": "macro"}, "accuracy (mean over classes)"),
    ],
)
def test_pages_call_performance_by_its_name(finished: Finished, switches: dict[str, Any], message: str) -> None:
    """Nothing but the scenario's own rule is called accuracy."""
    spec = ScenarioSpec(name="mine/class-il@mine-1", summary="mine", dataset="toy", setting="class-il", **switches)
    results = finished(("scenario", spec), grid={"scenarios": [spec.name], "methods": ["bare", "joint"]})
    sections = ("overview", "progress", "summary", "definitions", "published", "curves", "matrices", "resources", "searches")
    for section in sections:
        text = re.sub(r"<style>.*?</style>|src=.data:[^\"]*.", "", page_of(results, section), flags=re.DOTALL)
        assert message.split(" ")[0].lower() in ("accuracy",) or "accurac" not in text.lower(), section
        if section in ("summary", "curves", "matrices"):
            assert (message.removesuffix(" in percent") if section == "curves" else message) in text, section
    (record, *_) = results.used
    assert performance_name(record.scenario) in str(show.matrix(record))


@pytest.mark.plugins
def test_metrics_speak_of_performance() -> None:
    """Their definitions hold for whatever a scenario measures."""
    from cglsuite.host import load_catalogue

    for entry in load_catalogue().entries("metric"):
        spec: Any = entry.spec
        if spec.performances:
            continue  # holds for these measures only
        assert "accurac" not in f"{spec.summary} {spec.formula} {spec.label}".lower(), entry.name
