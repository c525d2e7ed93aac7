"""Every way to break a promise or to cheat is prevented, or noticed under the name of the check that it breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from cglsuite import Catalogue
from cglsuite.testing.findings import CheckFailed, CheckReport
from cglsuite.testing.methods import check_method, examine_method
from cglsuite.testing.streams import FINE_TUNING

SCENARIO = "testing-nodes/class-il@testing-1"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    from faulty_methods import faulty_catalogue

    return faulty_catalogue()


def examined(catalogue: Catalogue, name: str, *, audited: bool = False) -> CheckReport:
    return examine_method(name, catalogue, audited=audited, scenarios=(SCENARIO,))


def test_fine_tuning_breaks_no_promise_but_that_of_a_citation(catalogue: Catalogue) -> None:
    report = examined(catalogue, FINE_TUNING, audited=True)
    assert [(f.check, f.message) for f in report.failed] == [("documentation", "the spec has no citation")]
    assert {f.check for f in report} >= {"learns", "repeatable", "resumable", "no way to answers", "audit", "memory budget"}


@pytest.mark.parametrize(
    ("name", "check", "told"),
    [
        ("never-learns", "learns", "guessing gives"),
        ("restless", "repeatable", "a second run gives other losses"),
        ("forgetful", "resumable", "goes on from the state after the first task gives other losses"),
        ("endless", "runs", "predict returned NaN"),
        ("undocumented", "documentation", "no citation; "),
        ("remembers-runs", "repeatable", "a second run gives other losses"),
        ("reads-attributes", "runs", "label"),
        ("walks-frames", "repeatable", "with other test answers it gives another answer"),
        ("writes-to-tensors", "inputs unchanged", "changed in place"),
        ("hoards-views", "memory budget", "TaskView outside of its memory"),
        ("lifts-budget", "memory budget", "under a budget of 12"),
        ("patches-scorer", "code unchanged", "Oracle.grade"),
    ],
)
def test_named_by_the_check_that_it_breaks(catalogue: Catalogue, name: str, check: str, told: str) -> None:
    found = [f for f in examined(catalogue, name).failed if f.check == check]
    assert found
    assert told in found[0].message
    assert found[0].fix


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("asks-garbage-collector", "the answers differ from those in this process"),
        ("walks-frames", "the answers differ from those in this process"),
        ("looks-up-features", "imports a dataset's loader: cglsuite.testing.data"),
        ("telephones", "connects to a network address"),
        ("patches-scorer", "other scores in this process"),
    ],
)
def test_audit_names_what_one_process_cannot_prevent(catalogue: Catalogue, name: str, told: str) -> None:
    assert told in next(f.message for f in examined(catalogue, name, audited=True).failed if f.check == "audit")


def test_audit_names_files_left_behind(catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTY_METHODS_FOLDER", str(tmp_path))
    told = next(f.message for f in examined(catalogue, "writes-files", audited=True).failed if f.check == "audit")
    assert f"writes the file {tmp_path / 'left-behind.txt'}" in told


def test_a_method_that_patches_its_own_adapter_scores_as_any_other(catalogue: Catalogue) -> None:
    from cglsuite.testing.runs import Subject

    patched, plain = (Subject(catalogue=catalogue, method=m, scenario=SCENARIO).run() for m in ("patches-adapter", FINE_TUNING))
    assert repr(patched.matrix) == repr(plain.matrix)


def test_check_method_raises_with_every_failure_and_its_fix(catalogue: Catalogue) -> None:
    with pytest.raises(CheckFailed, match=r"(?s)method 'undocumented' of faulty 1.0 does not conform:.*To fix it: say what it is"):
        check_method("undocumented", catalogue, audited=False)


def test_code_that_was_replaced_is_put_back(catalogue: Catalogue) -> None:
    from cglsuite.streams import Oracle

    grade = Oracle.grade
    examined(catalogue, "patches-scorer")
    assert Oracle.grade is grade
