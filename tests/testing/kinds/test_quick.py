"""Which streams a quick check takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from odd_methods import with_specs

from cglsuite.specs import LEVELS, SETTINGS, MethodSpec
from cglsuite.testing import check_method
from cglsuite.testing.findings import Finding
from cglsuite.testing.kinds import methods
from cglsuite.testing.kinds.methods import examine_method, judged, quick_scenarios
from cglsuite.testing.streams import TINY_SCENARIOS, tiny_catalogue


def test_few_streams_cover_every_level_and_every_setting() -> None:
    catalogue = tiny_catalogue()
    chosen = [catalogue.get("scenario", s).spec for s in quick_scenarios(catalogue, list(TINY_SCENARIOS))]
    assert len(chosen) <= 7
    assert {s.level for s in chosen} == set(LEVELS)  # type: ignore[attr-defined]
    assert {s.setting for s in chosen} == set(SETTINGS)  # type: ignore[attr-defined]


def test_one_is_enough_for_one_level_and_setting() -> None:
    assert quick_scenarios(tiny_catalogue(), ["testing-nodes/class-il@testing-1", "testing-label-sets/class-il@testing-1"]) == [
        "testing-nodes/class-il@testing-1"
    ]


@pytest.mark.parametrize("function", [check_method, examine_method, judged], ids=lambda function: function.__name__)
def test_a_check_is_complete_unless_asked_to_be_quick(function: Callable[..., Any]) -> None:
    assert inspect.signature(function).parameters["quick"].default is False


@pytest.mark.parametrize("quick", [False, True])
def test_the_judge_hears_what_was_asked(quick: bool) -> None:
    """By default all tiny streams and all checks, on data that nobody knows."""
    catalogue, heard = tiny_catalogue(), list[Any]()

    def examine(name: str, given: Any, **asked: Any) -> str:
        heard.append((name, given, asked))
        return "a report"

    judge: Any = SimpleNamespace(examine=examine)
    report: Any = examine_method("m", catalogue, judge=judge, **({"quick": True} if quick else {}))
    assert report == "a report"
    asked = {"quick": quick, "scenarios": TINY_SCENARIOS, "only": (), "on_finding": None, "seed": None}
    assert heard == [("m", catalogue, asked)]


def test_a_method_is_tried_in_the_streams_that_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both the level and the setting are declared; no other stream is run."""
    spec = MethodSpec(name="narrow", summary="n", factory="json:loads", levels=("NC", "GC"), settings=("task-il",))
    catalogue = tiny_catalogue(with_specs(tiny_catalogue(), [spec]))
    tried = list[str]()

    def run(case: Any, quick: bool, wanted: Any) -> Any:
        tried.append(case.scenario)
        return iter([Finding(check="runs", status="ok", where=case.scenario)])

    monkeypatch.setattr(methods, "_of_the_case", run)
    method_sandbox: Any = SimpleNamespace(describe=lambda *_: None)
    judged("narrow", catalogue, method_sandbox, only=("runs",))
    of = {name: catalogue.scenario(name) for name in TINY_SCENARIOS}
    assert tried == [name for name in TINY_SCENARIOS if of[name].setting == "task-il" and of[name].level in ("NC", "GC")]
    assert 1 < len(tried) < len(TINY_SCENARIOS)


def test_a_check_of_the_declaration_alone_runs_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = tiny_catalogue(with_specs(tiny_catalogue(), [MethodSpec(name="narrow", summary="n", factory="json:loads")]))

    def run(case: Any, quick: bool, wanted: Any) -> Any:
        raise AssertionError(f"a stream is run for {wanted}")

    monkeypatch.setattr(methods, "_of_the_case", run)
    method_sandbox: Any = SimpleNamespace(describe=lambda *_: None)
    report = judged("narrow", catalogue, method_sandbox, only=("declaration",))
    assert [(finding.check, finding.status) for finding in report.findings] == [("declaration", "ok")]
