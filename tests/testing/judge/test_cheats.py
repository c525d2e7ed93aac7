"""Every way to break a promise or to cheat is prevented, or noticed under the name of the check that it breaks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from cheating_methods import BRIEF, CHEATS, cheating_catalogue, name_of

from cglsuite import Catalogue, Method
from cglsuite.testing.findings import CheckFailed, CheckReport
from cglsuite.testing.judge.sandbox import Sandbox
from cglsuite.testing.kinds.methods import examine_method, judged
from cglsuite.testing.streams import FINE_TUNING

SCENARIO = "testing-nodes/class-il@testing-1"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    from faulty_methods import faulty_catalogue

    return faulty_catalogue()


@pytest.fixture(scope="module")
def cheats() -> Catalogue:
    return cheating_catalogue()


@pytest.fixture(scope="module")
def method_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    raw = tmp_path_factory.mktemp("raw")
    (raw / "labels.csv").write_text("0")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as resources:
        patch.setenv("CGLSUITE_DATA", f"{tmp_path_factory.mktemp('empty')}{os.pathsep}{raw}")
        patch.setenv("CHEATS_RAW_DATA", str(raw))
        patch.setenv("CHEATS_SHARED", str(shared := tmp_path_factory.mktemp("shared")))
        (shared / "victim").touch()
        deep = resources.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp"))
        Path(deep, "a", "b", "c").mkdir(parents=True)
        patch.setenv("CHEATS_DEEP", deep)
        patch.chdir(shared)
        with Sandbox() as made:
            yield made


def examined(catalogue: Catalogue, name: str, method_sandbox: Sandbox, *only: str) -> CheckReport:
    return judged(name, catalogue, method_sandbox, quick=True, scenarios=(SCENARIO,), only=only, seed=20_261)


@pytest.mark.nightly
def test_fine_tuning_breaks_no_promise_but_that_of_a_citation(catalogue: Catalogue, method_sandbox: Sandbox) -> None:
    report = examined(catalogue, FINE_TUNING, method_sandbox)
    assert [(f.check, f.message) for f in report.failed] == [("documentation", "the spec has no citation")]
    assert {f.check for f in report} >= {"learns", "repeatable", "resumable", "independent answers", "no way to answers", "memory budget"}


def test_an_honest_method_with_memory_state_and_draws_is_certified(cheats: Catalogue, method_sandbox: Sandbox) -> None:
    report = examined(cheats, "honest", method_sandbox)
    assert report.passed, [(f.check, f.message) for f in report.failed]
    (message, *_) = [f.message for f in report if f.check == "memory budget"]
    # An item has 8 features of 4 bytes, an id, a label and a task of 8; a shelf has the names of its 4 parts and its own: 16 letters. A
    # table takes 8, and so do the kind and each dimension and stride of a tensor: 5 of the features, 3 of ids, labels and tasks each.
    shelves = 3 * (16 + 8 + 8 * (5 + 3 * 3)) + 8
    assert message.startswith(f"memory 6 items, {6 * (8 * 4 + 3 * 8) + shelves} bytes; outside it ")
    assert "per task" in message


@pytest.mark.sampled(1)
@pytest.mark.parametrize("items", ["nodes", "graphs"])
def test_a_reservoir_is_not_a_hoard(cheats: Catalogue, method_sandbox: Sandbox, items: str) -> None:
    """Graphs that lie in the metered memory are not held outside it, though the method refers to the memory twice."""
    report = judged("honest-sample", cheats, method_sandbox, quick=True, scenarios=(f"testing-{items}/class-il@testing-1",), seed=20_261)
    assert report.passed, [(f.check, f.message) for f in report.failed]


def cheats_in_rounds() -> Iterator[Any]:
    """All of them; in the quick round one of each check, and those that are after hidden labels or the oracle."""
    begun: set[str] = set()
    for method, check, message in CHEATS:
        quick = check not in begun or re.search("label|oracle", message, re.IGNORECASE)
        begun.add(check)
        yield pytest.param(method, check, message, id=name_of(method), marks=[] if quick else [pytest.mark.nightly])


@pytest.mark.parametrize(("method", "check", "message"), [*cheats_in_rounds()])
def test_caught_by_name(
    cheats: Catalogue, method_sandbox: Sandbox, method: type[Method], check: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if method.__name__ == "Hangs":
        monkeypatch.setattr(method_sandbox, "limit_s", 2.0)
    report = judged(name_of(method), cheats, method_sandbox, quick=True, scenarios=(BRIEF,), only=(check,), seed=20_261)
    assert not report.passed
    found = [f for f in report.failed if f.check == check]
    assert found, [(f.check, f.message) for f in report.failed]
    assert message in found[0].message
    assert found[0].fix
    with pytest.raises(CheckFailed, match=rf"method '{name_of(method)}' of cheats 1.0 \(.*\.py:\d+\) does not conform"):
        report.raise_failures()


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("name", "check", "message"),
    [
        ("never-learns", "learns", "chance is"),
        ("restless", "repeatable", "a second run gives different losses"),
        ("hashed", "repeatable", "and another parent process, it gives different losses"),
        ("forgetful", "resumable", "in another process gives different losses"),
        ("endless", "runs", "predict returned NaN"),
        ("undocumented", "documentation", "no citation; "),
        ("remembers-runs", "repeatable", "a second run in the same process gives different losses"),
        ("reads-attributes", "runs", "label"),
        ("walks-frames", "repeatable", "with other hidden labels in the process, it gives a different prediction"),
        ("asks-garbage-collector", "repeatable", "with other hidden labels in the process, it gives a different prediction"),
        ("writes-to-tensors", "inputs unchanged", "in place: features"),
        ("hoards-views", "memory budget", "items outside its memory"),
        ("lifts-budget", "memory budget", "with a budget of 12"),
        ("patches-scorer", "code unchanged", "Oracle.grade"),
        ("looks-up-features", "acts", "imports a dataset's loader: cglsuite.testing.kinds.cases"),
        ("telephones", "acts", "connects to a network address"),
    ],
)
def test_named_by_the_check_that_it_breaks(catalogue: Catalogue, method_sandbox: Sandbox, name: str, check: str, message: str) -> None:
    found = [f for f in examined(catalogue, name, method_sandbox, check).failed if f.check == check]
    assert found
    assert message in found[0].message
    assert found[0].fix


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("never-learns", "the model is the same after task 1 and after task 2"),
        ("rigid", "Lower the weight of the penalty"),
        ("answers-backwards", "and the predictions stay wrong: check that predict()"),
        ("climbs", "check its sign"),
    ],
)
def test_a_method_that_does_not_learn_gets_advice_that_fits(catalogue: Catalogue, method_sandbox: Sandbox, name: str, advice: str) -> None:
    """The finding shows the matrix that it is about and the command that repeats it; only what is asked for is checked."""
    report = judged(name, catalogue, method_sandbox, quick=True, scenarios=(SCENARIO,), only=("learns",), seed=20_261)
    (finding,) = report
    assert advice in finding.fix
    rows = [line.split() for line in finding.evidence.splitlines()]
    assert rows[0] == ["after", "task", "1", "task", "2", "task", "3"]
    assert [row[0] for row in rows[1:]] == ["none", "1", "2", "3"]
    assert finding.replay == f"cglsuite check --kind method {name} --only learns --where testing-nodes/class-il --seed 20261"


def test_only_what_is_asked_for_and_a_run_that_fails_in_any_case(catalogue: Catalogue, method_sandbox: Sandbox) -> None:
    """Checks of the entry need no run; a check of a run tells why there was none."""
    documented = judged("undocumented", catalogue, method_sandbox, scenarios=(SCENARIO,), only=("documentation",))
    assert [(f.check, f.status) for f in documented] == [("documentation", "failed")]
    endless = judged("endless", catalogue, method_sandbox, scenarios=(SCENARIO,), only=("resumable",), seed=1)
    assert [(f.check, f.status) for f in endless] == [("runs", "failed")]
    assert endless.failed[0].replay.endswith("--only runs --where testing-nodes/class-il --seed 1")
    undeclared = judged("endless", catalogue, method_sandbox, scenarios=("testing-links/class-il@testing-1",), only=("learns",))
    assert [f.status for f in undeclared] == ["skipped"]


def test_files_left_behind_are_named(catalogue: Catalogue, method_sandbox: Sandbox) -> None:
    message = next(f.message for f in examined(catalogue, "writes-files", method_sandbox, "acts").failed if f.check == "acts")
    assert "writes the file /" in message
    assert "left-behind.txt" in message


@pytest.mark.nightly
def test_a_method_that_patches_its_own_adapter_scores_as_any_other(catalogue: Catalogue) -> None:
    from cglsuite.testing.streams import Subject

    patched, plain = (Subject(catalogue=catalogue, method=m, scenario=SCENARIO).run() for m in ("patches-adapter", FINE_TUNING))
    assert repr(patched.matrix) == repr(plain.matrix)


@pytest.mark.nightly
def test_the_judge_is_a_process_that_imports_nothing_of_the_method(cheats: Catalogue) -> None:
    """A method of a module that changes the scorer when it is imported finds no scorer to change."""
    report = examine_method(
        "patches-when-imported", cheats, quick=True, scenarios=(SCENARIO,), only=("code unchanged", "learns"), seed=20_261
    )
    message = {f.check: f.message for f in report.failed}
    assert "Oracle.grade" in message["code unchanged"]
    assert message["learns"].startswith("mean performance right after training on a task is 0.")


_TRIAL_WITHOUT_ITS_NURSERY = """
import os, signal, sys, time
from cglsuite.testing.judge.fork_server import ForkServer
from cglsuite.base.traces import adopt_orphans

adopt_orphans()  # as a worker does: what the nursery leaves behind becomes a child of this process
with ForkServer() as nursery:
    trial = nursery.begin()
    os.kill(nursery._process.pid, signal.SIGKILL)
    nursery._process.wait()
    deadline = time.monotonic() + 10
    while os.waitpid(trial.pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            sys.exit("the trial outlived its nursery")
        time.sleep(0.01)
"""


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="processes end with their parent on Linux alone")
def test_a_trial_ends_with_its_nursery() -> None:
    """Else a method that ends its parent would go on and end whoever adopts it: the judge, or the one who called."""
    done = subprocess.run([sys.executable, "-c", _TRIAL_WITHOUT_ITS_NURSERY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
