"""What is said of a spec: in the order of the columns, without what it does not have, and with values as people write them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cglsuite.specs import BackboneSpec, Hyperparameter, MethodSpec, MetricSpec, NotebookSpec, ScenarioSpec, TrainingSpec
from cglsuite.study.display import COLUMNS, allowed, declared, report_card, shown_value, spec_card, spec_facts, switch_rows


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"default": "a", "choices": ("a", "b")}, "a | b"),
        ({"default": "a"}, "any"),
        ({"default": 1.5, "minimum": 0.25}, ">= 0.25"),
        ({"default": 1, "maximum": 8}, "<= 8"),
        ({"default": 1, "minimum": 0, "maximum": 8}, ">= 0, <= 8"),
        ({"default": 0, "minimum": 0}, ">= 0"),
        ({"default": 0, "maximum": 0}, "<= 0"),
        ({"default": 0.5, "above": 0, "maximum": 1}, "> 0, <= 1"),
    ],
)
def test_what_a_hyperparameter_may_be(limits: dict[str, Any], words: str) -> None:
    assert allowed(Hyperparameter(name="x", doc="d", **limits)) == words


def test_training_defaults_of_a_method_are_among_its_facts() -> None:
    spec = MethodSpec(name="m", summary="s", factory="m:M", training={"weight_decay": 0.0, "norm_statistics": "per-task"})
    assert ("training defaults", ("weight_decay = 0.0", "norm_statistics = per-task")) in list(spec_facts(spec))
    assert "norm_statistics = per-task" in spec_card(spec)
    assert "training defaults" not in dict(spec_facts(MethodSpec(name="m", summary="s", factory="m:M")))


def test_none_may_be_a_value() -> None:
    optional = SimpleNamespace(choices=(), above=None, minimum=1, maximum=None, optional=True)
    assert allowed(optional) == ">= 1 or none"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((("a", 1), ("b", 2.5)), "a=1, b=2.5"),
        ((), "none"),
        ((1, 2), "1, 2"),
        ((("a", 1, 2),), "a, 1, 2"),
        ((("a", 1), "b"), "a, 1, b"),
        ((("a", 1), ("b", 2, 3)), "a, 1, b, 2, 3"),
        ("x", "x"),
        (0.1, "0.1"),
        (("ab", "cd"), "ab, cd"),
    ],
)
def test_pairs_are_shown_as_assignments(value: Any, text: str) -> None:
    """Tuples of other lengths, and texts of two letters, are no pairs."""
    assert shown_value(value) == text


def test_switches_are_those_with_a_meaning() -> None:
    rows = {name: (value, doc) for name, value, doc in switch_rows(TrainingSpec(epochs=7), "training")}
    assert rows["training.epochs"][0] == "7"
    assert all(doc for _, doc in rows.values())
    scenario = ScenarioSpec(name="toy/class-il@cglb-1", summary="toy", dataset="toy", setting="class-il", edge_policy="none")
    assert {name: value for name, value, _ in switch_rows(scenario, "scenario")}["scenario.edge_policy"] == "none"


def test_facts_leave_out_what_is_empty() -> None:
    method = MethodSpec(name="m", summary="s", factory="json:loads", settings=("task-il",))
    facts = dict(spec_facts(method))
    assert facts["settings"] == ("task-il",)
    assert facts["factory"] == "json:loads"
    assert not {"needs", "citation", "note", "range"} & set(facts)
    up = MetricSpec(name="m", summary="s", formula="f", label="M", direction="up", factory="json:loads")
    assert dict(spec_facts(up))["range"].endswith("higher is better")
    down = MetricSpec(name="m", summary="s", formula="f", label="M", direction="down", factory="json:loads")
    assert dict(spec_facts(down))["range"].endswith("lower is better")
    assert [COLUMNS["metric"]["BETTER"](m) for m in (up, down)] == ["higher", "lower"]


def test_columns_of_the_lists() -> None:
    notebook = NotebookSpec(name="n", summary="n", path="a:b.ipynb")
    assert COLUMNS["notebook"]["FOR"](notebook) == "reports"
    assert COLUMNS["notebook"]["FOR"](SimpleNamespace(interactive=True)) == "exploring"


def test_what_can_be_set_is_on_the_card() -> None:
    strength = Hyperparameter(name="lambda", default=1.0, doc="how strong", minimum=0.0)
    spec = MethodSpec(name="m", summary="what it does", factory="json:loads", hyperparameters=(strength,))
    assert [(title, [h.name for h in found]) for title, found in declared(spec)] == [("hyperparameters", ["lambda"])]
    assert list(declared(BackboneSpec(name="b", summary="s", factory="json:loads"))) == []
    card = spec_card(spec, [("provider", "toy 1.0")])
    assert card.index("provider") < card.index("factory") < card.index("how strong")
    for text in ("method m", "what it does", "lambda", "float", "&gt;= 0", "toy 1.0"):
        assert text in card


@pytest.mark.parametrize("passed", [True, False])
def test_findings_are_listed_failures_first(passed: bool) -> None:
    findings = [SimpleNamespace(status=s, check=f"{s}-check", where="s@b", message="", fix="") for s in ("ok", "skipped", "failed", "ok")]
    report = SimpleNamespace(kind="method", name="m", provider="toy", passed=passed, findings=findings)
    card = report_card(report)  # type: ignore[arg-type]
    assert card.index("failed-check") < card.index("skipped-check") < card.index("ok-check")
    assert ("does not conform" in card) is not passed
