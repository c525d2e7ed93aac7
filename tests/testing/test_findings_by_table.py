"""What a report says of its findings, in which order checks are made, and what a failed check of a method is advised."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from cglsuite.base.errors import NotApplicable, UsageError
from cglsuite.specs import Hyperparameter
from cglsuite.testing.findings import Check, CheckFailed, CheckReport, Finding, error_text, examined, performed, reported, source_of
from cglsuite.testing.kinds.methods import explained, why_not_learnt


def entry(name: str = "mine", record: Any = None, **spec: Any) -> Any:
    return SimpleNamespace(
        kind="method", name=name, provider="toy 1.0", spec=SimpleNamespace(**spec), record=record or SimpleNamespace(installation="")
    )


def report(*statuses: str) -> CheckReport:
    findings = [Finding(check=f"c{n}", status=cast("Any", s), where="w" * n, message=f"m{n}", fix=f"f{n}") for n, s in enumerate(statuses)]
    return CheckReport(kind="method", name="mine", provider="toy 1.0", findings=tuple(findings), source="a.py:3")


@pytest.mark.parametrize(
    ("statuses", "passed"),
    [(("ok",), True), (("ok", "skipped"), True), (("ok", "failed"), False), (("skipped",), False), ((), False), (("failed",), False)],
)
def test_a_report_passes_with_a_check_that_holds_and_none_that_does_not(statuses: tuple[str, ...], passed: bool) -> None:
    one = report(*statuses)
    assert one.passed is passed
    if passed:
        one.raise_failures()
    else:
        with pytest.raises(CheckFailed):
            one.raise_failures()


def test_failures_are_raised_with_place_and_fix() -> None:
    """Only the failed ones; where no check could be run, the reasons, each once."""
    with pytest.raises(CheckFailed) as failed:
        report("failed", "ok", "failed").raise_failures()
    assert str(failed.value).splitlines() == [
        "method 'mine' of toy 1.0 (a.py:3) does not conform:",
        "c0: m0. To fix it: f0",
        "c2 in ww: m2. To fix it: f2",
    ]
    skipped = [Finding(check=c, status="skipped", message=m) for c, m in (("a", "no data"), ("b", "no data"), ("c", "no GPU"))]
    with pytest.raises(CheckFailed, match=r"'mine' of toy 1\.0 does not conform:\nno check could be run: no data; no GPU$"):
        CheckReport(kind="method", name="mine", provider="toy 1.0", findings=tuple(skipped)).raise_failures()


def test_every_finding_is_told_as_it_comes() -> None:
    seen: list[Finding] = []
    findings = [Finding(check="a", status="ok"), Finding(check="b", status="failed")]
    kept = reported(entry(factory="no:thing"), iter(findings), seen.append)
    assert seen == list(kept) == list(kept.findings) == findings
    assert (kept.kind, kept.name, kept.provider, kept.source) == ("method", "mine", "toy 1.0", "")


def raising(error: BaseException | None, note: object = None) -> Any:
    def action() -> object:
        if error is not None:
            raise error
        return note

    return action


@pytest.mark.parametrize(
    ("error", "note", "status", "message", "fix"),
    [
        (None, None, "ok", "", ""),
        (None, "measured 3", "ok", "measured 3", ""),
        (None, 3, "ok", "", ""),
        (NotApplicable("only for nodes"), None, "skipped", "only for nodes", ""),
        (CheckFailed("wrong", "do it right"), None, "failed", "wrong", "do it right"),
        (UsageError("width = 0: expected at least 1"), None, "failed", "width = 0: expected at least 1", "given"),
    ],
)
def test_how_a_check_ends(error: BaseException | None, note: object, status: str, message: str, fix: str) -> None:
    found = performed("c", raising(error, note), "here", "given")
    assert (found.check, found.where, found.status, found.message, found.fix) == ("c", "here", status, message, fix)


def test_an_error_of_foreign_code_is_told_with_its_type_and_place() -> None:
    found = performed("c", raising(ZeroDivisionError("division by zero")))
    line = raising.__code__.co_firstlineno + 3
    assert found.message == f"ZeroDivisionError: division by zero (at {__file__}:{line} in action)"
    assert found.fix == "fix the error"
    assert error_text(UsageError("plain")) == "plain"


def test_checks_that_depend_on_others() -> None:
    """``a`` fails in one place: what depends on it there is neither made nor told; elsewhere it is. Each check is made once."""
    made: list[str] = []

    def noting(name: str, *, fails: bool = False) -> Any:
        def action() -> None:
            made.append(name)
            if fails:
                raise CheckFailed(f"{name} is wrong", "mend it")

        return action

    checks = [
        Check(name="a", action=noting("a x", fails=True), where="x"),
        Check(name="a", action=noting("a y"), where="y"),
        Check(name="b", action=noting("b x"), where="x", after="a"),
        Check(name="b", action=noting("b y"), where="y", after="a"),
        Check(name="c", action=noting("c x"), where="x", after="b"),
        Check(name="c", action=noting("c z"), where="z", after="b"),
    ]
    whole = examined(entry(factory="no:thing"), checks)
    assert [(f.check, f.where, f.status) for f in whole] == [("a", "x", "failed"), ("a", "y", "ok"), ("b", "y", "ok")]
    assert made == ["a x", "a y", "b y"]  # in place z the first b, that of x, must hold
    assert whole.checks == ("a", "b", "c")
    made.clear()
    some = examined(entry(factory="no:thing"), checks, only=("b",))
    assert [(f.check, f.where, f.status) for f in some] == [("a", "x", "failed"), ("b", "y", "ok")]
    assert (made, some.checks) == (["a x", "a y", "b y"], ("a", "b", "c"))


def test_where_an_entry_is_defined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last definition of the name; the file alone where there is none; nothing for what cannot be found or is no Python file."""
    (tmp_path / "mine_of_source.py").write_text("x = 1\n\n\ndef made():\n    pass\n\n\nclass made:\n    pass\n")
    (tmp_path / "broken_source.py").write_text("def made(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "mine_of_source.py"
    assert source_of(entry(factory="mine_of_source:made")) == f"{file}:8"
    assert source_of(entry(factory="mine_of_source:absent")) == str(file)
    assert source_of(entry(factory="broken_source:made")) == source_of(entry(factory="no_such_module:made")) == ""
    assert source_of(entry(builder="mine_of_source:made")) == f"{file}:8"
    record = SimpleNamespace(source=file)
    assert source_of(entry("made", record, builder="cglsuite.streams:build")) == str(file)
    assert source_of(entry("made", SimpleNamespace(source=None))) == ""
    assert source_of(entry("made", SimpleNamespace(source=tmp_path / "page.ipynb"))) == str(tmp_path / "page.ipynb")


def test_a_failure_is_explained_with_its_matrix_and_command() -> None:
    """Values to three digits under the tasks, a dash where nothing was asked; what passed is left as it is."""
    case: Any = SimpleNamespace(scenario="testing nodes/task-il@testing-1", method="mine", seed=7)
    failed = Finding(check="learns", status="failed", where="w")
    shown = explained(failed, case, {1: [0.25, math.nan], 0: [0.5, 0.125]})
    assert shown.evidence.splitlines() == [
        " after  task 1  task 2",
        "  none   0.500   0.125",
        "     1   0.250       -",
    ]
    assert shown.replay == "cglsuite check --kind method mine --only learns --where 'testing nodes/task-il' --seed 7"
    assert explained(failed, case).evidence == ""
    passed = Finding(check="learns", status="ok")
    assert explained(passed, case, {0: [0.5]}) is passed


def state(weight: float) -> Any:
    return SimpleNamespace(payload={"state": {"method": {"model": {"w": torch.tensor([weight])}}}})


WEIGHT = Hyperparameter(name="lambda", default=1.0, doc="strength")
COUNT = Hyperparameter(name="steps", default=3, doc="how many")


@pytest.mark.parametrize(
    ("losses", "weights", "learnt", "advice"),
    [
        ([2.0, 1.0], [1.0, 2.0], [True, False], "Lower the weight of the penalty (method.lambda), scale"),
        ([2.0, 1.0], [1.0, 1.0], [False, False], "the model is the same after task 1 and after task 2 (loss of task 1: from 2 to 1)"),
        ([-0.5, -3.0], [1.0, 2.0], [False], "the loss of task 1 is negative (from -0.5 to -3): check its sign"),
        ([0.0, -3.0], [1.0, 2.0], [False], "the loss of task 1 falls (from 0 to -3) and the predictions stay wrong"),
        ([2.0, 1.7], [1.0, 2.0], [False, True], "the loss of task 1 falls (from 2 to 1.7) and the predictions stay wrong"),
        ([2.0, 1.8], [1.0, 2.0], [False], "the loss of task 1 does not fall (from 2 to 1.8)"),  # a tenth is the least fall
        ([2.0, 2.5], [1.0], [], "the loss of task 1 does not fall (from 2 to 2.5)"),
        ([], [], [], "the loss of task 1 does not fall (unknown)"),
    ],
)
def test_advice_fits_how_a_method_failed_to_learn(losses: list[float], weights: list[float], learnt: list[bool], advice: str) -> None:
    run: Any = SimpleNamespace(losses=[losses] if losses else [], states=[state(w) for w in weights])
    assert advice in why_not_learnt(run, [WEIGHT, COUNT], learnt)


def test_a_method_without_weights_is_not_told_to_lower_one() -> None:
    run: Any = SimpleNamespace(losses=[[1.0, 0.5]], states=[])
    assert "Lower the weight of the penalty, scale it" in why_not_learnt(run, [COUNT], [True])
