"""``cell``, ``run``, ``status`` and ``results``: data on stdout, the rest on stderr, and exit statuses that scripts can rely on."""

from __future__ import annotations

import io
import json
import math
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import fake_cells
import pandas as pd
import pytest
from lease_files import ELSEWHERE, write_lease

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.executors import Ended, RemoteExecutor, UnreachableError, campaign_run
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.cli import main
from cglsuite.cli.commands import cells
from cglsuite.cli.commands.results import COLUMNS
from cglsuite.cli.options import Session
from cglsuite.specs import MetricSpec, ScenarioSpec

TOOLS = Path(__file__).parents[2] / "tools"
CAMPAIGN = """
name = "x"
[grid]
scenarios = ["toy/task-il@begin-1", "toy/class-il@begin-1"]
methods = ["bare", "joint", "packnet"]
[seeds]
init = [0, 1]
"""


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fake cells behind the commands and in workers; every run of a cell appends its key to this file."""
    for name in ("CGLSUITE_SET", "CGLSUITE_DEVICE", "CGLSUITE_WORKERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CGLSUITE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(TOOLS), os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("FAKE_CATALOGUE", fake_cells.REFERENCE)
    monkeypatch.setattr(Session, "catalogue", lambda self: fake_cells.FakeCatalogue())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").touch()
    (tmp_path / "x.toml").write_text(CAMPAIGN)
    return tmp_path / "log"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The store of these tests."""
    return Store(tmp_path / "store")


def call(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of one command line."""
    capfd.readouterr()
    status = main.run(words)
    out, err = capfd.readouterr()
    return status, out, err


CELL = ("cell", "--scenario", "toy/task-il@begin-1", "--method", "ewc")


# cell


def test_cell_prints_one_json_object(capfd: pytest.CaptureFixture[str], log: Path) -> None:
    """All of the record; a second call runs nothing and prints the same."""
    status, out, err = call(capfd, *CELL, "--json", "--init-seed", "3", "--set", "lambda=2.5", "--threads", "2")
    found = json.loads(out)
    assert status == 0
    assert err == ""
    assert found["status"] == "done"
    assert set(found) >= {"key", "status", "metrics", "matrix", "timings_s", "memory", "provenance"}
    assert len(found["matrix"]) == 3
    assert 0 < found["metrics"]["average_performance"] < 1
    assert found["cell"]["seeds"] == {"order": 0, "split": 0, "init": 3}
    assert found["cell"]["configuration"]["method.lambda"] == 2.5
    assert found["cell"]["threads"] == 2
    assert call(capfd, *CELL, "--json", "--init-seed", "3", "--set", "lambda=2.5", "--threads", "2") == (0, out, "")
    assert log.read_text().split() == [found["key"]]


@pytest.mark.parametrize("words", [(), ("--rerun",)])
def test_cell_leaves_a_record_of_a_later_schema(capfd: pytest.CaptureFixture[str], store: Store, log: Path, words: tuple[str, ...]) -> None:
    """It says so by name, and trains nothing."""
    key = json.loads(call(capfd, *CELL, "--json")[1])["key"]
    store.record_path(key).write_text(json.dumps({"schema": 99, "key": key}))
    status, out, err = call(capfd, *CELL, *words)
    assert (status != 0, out) == (True, "")
    assert f"{store.record_path(key)}: the record has schema 99" in err
    assert "upgrade cglsuite" in err
    assert json.loads(store.record_path(key).read_text()) == {"schema": 99, "key": key}
    assert log.read_text().split() == [key]


def test_run_leaves_a_record_of_a_later_schema(capfd: pytest.CaptureFixture[str], store: Store, log: Path) -> None:
    """Of one cell among others: nothing is trained before somebody looks."""
    call(capfd, "run", "x.toml", "--only", "method=bare")
    first, second, *_ = store.keys()
    store.record_path(first).write_text(json.dumps({"schema": 99, "key": first}))
    store.discard(second)
    runs = log.read_text()
    status, _, err = call(capfd, "run", "x.toml", "--only", "method=bare")
    assert status != 0
    assert f"{store.record_path(first)}: the record has schema 99" in err
    assert json.loads(store.record_path(first).read_text()) == {"schema": 99, "key": first}
    assert log.read_text() == runs
    totals = json.loads(call(capfd, "status", "x.toml", "--json")[1])["totals"]
    assert (totals["done"], totals["failed"], totals["missing"]) == (2, 1, 7)


class Queue:
    """A launcher whose parts all wait in the queue, until it does not answer."""

    parts = 2
    answers = True

    def launch(self, job: Any, parts: Sequence[int]) -> dict[int, str]:
        return {part: f"7_{part}" for part in parts}

    def poll(self, ids: Mapping[int, str]) -> dict[int, Ended]:
        if not self.answers:
            raise UnreachableError("no controller")
        return {}

    def waiting(self, ids: Mapping[int, str]) -> set[int]:
        return {part for part in ids if part != 1}


def test_status_asks_the_engine_which_parts_of_a_job_wait(
    capfd: pytest.CaptureFixture[str], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launched is not running: of the two parts one waits. Without an answer it says so, and counts as before."""
    queue = Queue()
    monkeypatch.setattr(campaign_run, "find_executor", lambda *_, **__: RemoteExecutor("queue", queue))
    assert call(capfd, "run", "x.toml", "--detach")[0] == 0
    _, out, _ = call(capfd, "status", "x.toml")
    assert "queue job 7 (2 parts, submitted by " in out
    assert out.splitlines()[-1].endswith("): 1 part pending, 1 part running")
    [job] = json.loads(call(capfd, "status", "x.toml", "--json")[1])["jobs"]
    assert job["parts"] == {"pending": 1, "running": 1, "over": 0}
    queue.answers = False
    status, out, _ = call(capfd, "status", "x.toml")
    assert (status, out.splitlines()[-1].partition("): ")[2]) == (0, "its engine cannot be reached from here; `cglsuite run` tries again")
    [job] = json.loads(call(capfd, "status", "x.toml", "--json")[1])["jobs"]
    assert job["parts"] is None


def test_cell_prints_a_table_for_the_eye(capfd: pytest.CaptureFixture[str]) -> None:
    """Percent, definitions, signs, shares."""
    status, out, _ = call(capfd, *CELL)
    assert status == 0
    for text in (
        "toy/task-il@begin-1 × ewc",
        "after task",
        "50.0",
        "average_performance",
        "mean_j M[T,j]",
        "80.0%",
        "100.0 MB",
        "no limit",
    ):
        assert text in out, text
    assert "intransigence" in out
    assert "needs joint" in out


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [("bytes", 4328, "4.3 kB"), ("peak_bytes", 2.5e8, "250.0 MB"), ("items", 5250, "5,250"), ("budget_items", None, "no limit")],
)
def test_amounts_of_memory_are_in_units_that_show_them(name: str, value: float | None, shown: str) -> None:
    from cglsuite.cli.commands.cells import _amount_text

    assert _amount_text(name, value) == shown


def test_cell_reruns_on_request_and_leaves_no_checkpoints(capfd: pytest.CaptureFixture[str], store: Store, log: Path) -> None:
    """The former result is replaced by the new one, and stays if the new run fails."""
    for times in (1, 2):
        assert call(capfd, *CELL, *(["--rerun"] if times == 2 else []))[0] == 0
        assert len(log.read_text().split()) == times
        assert list((store.path / "checkpoints").iterdir()) == []


def test_the_interval_of_checkpoints_reaches_the_cell(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From either command, over the environment and the campaign."""
    file = tmp_path / "intervals"
    monkeypatch.setenv("FAKE_INTERVALS", str(file))
    monkeypatch.setenv("CGLSUITE_CHECKPOINT_EVERY", "5")
    (tmp_path / "x.toml").write_text(CAMPAIGN + "[run]\ncheckpoint_every_s = 9\n")
    one = ("--only", "method=bare", "--only", "scenario=toy/task*", "--only", "init_seed=0")
    assert call(capfd, *CELL)[0] == 0
    assert call(capfd, *CELL, "--rerun", "--checkpoint-every", "0")[0] == 0
    assert call(capfd, "run", "x.toml", "--checkpoint-every", "2.5", *one)[0] == 0
    assert file.read_text().split() == ["5.0", "0.0", "2.5"]
    status, _, err = call(capfd, *CELL, "--checkpoint-every", "-1")
    assert status == 2
    assert "--checkpoint-every" in err


def test_cell_that_fails(capfd: pytest.CaptureFixture[str], store: Store) -> None:
    """Exit 1; the JSON object has status and reason, stderr says it too."""
    status, out, err = call(capfd, *CELL, "--json", "--set", "method.behave=diverge")
    found = json.loads(out)
    assert status == 1
    assert (found["status"], found["reason"]) == ("diverged", "the loss is not finite")
    assert "diverged: the loss is not finite" in err
    status, out, err = call(capfd, *CELL, "--set", "method.behave=full")
    assert status == 1
    assert out == ""
    assert "No space left" in err


def test_cell_that_is_not_applicable(capfd: pytest.CaptureFixture[str]) -> None:
    """Exit 3 with the reason."""
    words = ("cell", "--scenario", "toy/class-il@begin-1", "--method", "packnet")
    status, out, err = call(capfd, *words)
    assert (status, out) == (3, "")
    assert "not applicable: method 'packnet' is defined for task-il" in err
    status, out, _ = call(capfd, *words, "--json")
    assert status == 3
    assert json.loads(out)["status"] == "skipped"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--method", "ewd"), "unknown method 'ewd'. Did you mean 'ewc'?"),
        (("--scenario", "toy/task@begin-1"), "Did you mean 'toy/task-il@begin-1'"),
        (("--backbone", "gcm"), "unknown backbone 'gcm'. Did you mean 'gcn'?"),
        (("--set", "method.lamda=1"), "Did you mean 'method.lambda'"),
        (("--set", "method.lambda"), "expected key=value"),
        (("--set", "lambda=x"), "wrong type"),
        (("--set", "a=1", "--set", "a=2"), "given twice"),
        (("--threads", "0"), "threads"),
        (("--device", "tpu"), "device"),
        (("--tasks", "0"), "tasks"),
        (("--order-seed", "first"), "order-seed"),
    ],
)
def test_cell_with_a_wrong_request(capfd: pytest.CaptureFixture[str], words: tuple[str, ...], says: str, store: Store) -> None:
    """Exit 2, nothing on stdout, nothing stored."""
    status, out, err = call(capfd, *CELL, *words)
    assert (status, out) == (2, "")
    assert says in err
    assert not store.path.exists()


def test_cell_settings_from_the_environment_are_below_the_command_line(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Command line over environment over preset."""
    monkeypatch.setenv("CGLSUITE_SET", "method.lambda=7; backbone.width=4")
    found = json.loads(call(capfd, *CELL, "--json", "--set", "lambda=2")[1])
    assert found["cell"]["configuration"]["method.lambda"] == 2.0
    assert found["cell"]["configuration"]["backbone.width"] == 4


def overrides_asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The settings of every request that is planned from now on; each is refused, so that nothing runs."""
    asked: list[dict[str, Any]] = []

    def resolve(*args: Any, overrides: dict[str, Any], **more: Any) -> Any:
        asked.append(dict(overrides))
        raise UsageError("refused")

    monkeypatch.setattr(fake_cells, "resolve_cell", resolve)
    return asked


def test_tasks_stands_for_two_settings(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes over the environment like every option."""
    asked = overrides_asked(monkeypatch)
    monkeypatch.setenv("CGLSUITE_SET", "classes_per_task=3; scenario.n_tasks=2; lr=1")
    for words in ((), ("--tasks", "5", "--set", "method.lambda=2")):
        assert call(capfd, *CELL, *words)[0] == 2
    assert asked == [
        {"classes_per_task": "3", "scenario.n_tasks": "2", "lr": "1"},
        {"lr": "1", "method.lambda": "2", "scenario.n_tasks": 5, "scenario.classes_per_task": None},
    ]


@pytest.mark.parametrize("pair", ["n_tasks=2", "scenario.n_tasks=2", "classes_per_task=2", "scenario.classes_per_task=none"])
def test_tasks_and_a_setting_of_the_same_contradict(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, pair: str) -> None:
    """Even where they agree: one of the two is a mistake."""
    asked = overrides_asked(monkeypatch)
    status, out, err = call(capfd, *CELL, "--tasks", "5", "--set", pair)
    assert (status, out, asked) == (2, "", [])
    assert f"--tasks 5 and --set {pair}" in err


@pytest.mark.parametrize("command", [("cell", "--method", "ewc", "--scenario"), ("export",)])
def test_tasks_is_for_scenarios_in_which_classes_arrive(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """The tasks of domains and time steps follow from the data."""
    spec = ScenarioSpec(name="toy/domain-il@test-1", summary="toy", dataset="toy", setting="domain-il", task_key="place")
    monkeypatch.setitem(fake_cells.SPECS, "scenario", [*fake_cells.SPECS["scenario"], spec])
    status, out, err = call(capfd, *command, spec.name, "--tasks", "3")
    assert (status, out) == (2, "")
    assert "come from the data and are not groups of classes" in err
    assert "use --set scenario.n_tasks=3 to run only the first 3" in err


# run


def test_run_runs_what_is_missing(capfd: pytest.CaptureFixture[str], store: Store, log: Path) -> None:
    """Nothing on stdout without reports; a summary on stderr; the second time nothing runs."""
    status, out, err = call(capfd, "run", "x.toml", "--workers", "2")
    assert (status, out) == (0, ""), err
    assert "x: 10 done, 2 n/a (12 cells" in err
    assert len(log.read_text().split()) == len(list(store.records())) == 10
    assert call(capfd, "run", "x.toml")[0] == 0
    assert len(log.read_text().split()) == 10


def test_an_example_runs_as_its_file_in_the_current_folder(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log: Path
) -> None:
    """A file that someone has changed is not run under the example's name; without a campaign, or with two, nothing runs."""
    monkeypatch.setattr("cglsuite.campaigns.campaign.examples", lambda: {"x": tmp_path / "x.toml"})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for _ in range(2):
        assert call(capfd, "run", "--example", "x", "--only", "method=bare")[0] == 0
        assert len(log.read_text().split()) == 4
    assert Path("x.toml").read_text() == CAMPAIGN
    Path("x.toml").write_text(CAMPAIGN.replace("joint", "ewc"))
    for words, says in (
        (("--example", "x"), "x.toml already exists and differs from the example: run it with `cglsuite run x.toml`"),
        (("--example", "y"), "unknown example 'y'. Known: x."),
        (("--example", "x", "x.toml"), "expected either --example x or x.toml, not both"),
        ((), "Missing argument 'CAMPAIGN.toml', or --example NAME."),
    ):
        status, out, err = call(capfd, "run", *words)
        assert (status, out) == (2, ""), words
        assert says in err, words
    assert len(log.read_text().split()) == 4


@pytest.mark.nightly
def test_run_with_failures_and_with_nothing_applicable(capfd: pytest.CaptureFixture[str], log: Path) -> None:
    """Exit 1 and 3."""
    status, _, err = call(capfd, "run", "x.toml", "--set", "method.behave=diverge", "--only", "method=bare")
    assert status == 1
    assert "4 diverged" in err
    assert "toy/task-il@begin-1 × bare (order 0, split 0, init 0): diverged: the loss is not finite" in err
    status, _, err = call(capfd, "run", "x.toml", "--only", "method=packnet", "--only", "scenario=*class*")
    assert status == 3
    assert "toy/class-il@begin-1 × packnet: n/a: method 'packnet' is defined for task-il" in err
    log.write_text("")
    assert call(capfd, "run", "x.toml", "--only", "init_seed=1", "--only", "method=joint")[0] == 0
    assert len(log.read_text().split()) == 2


def test_run_with_wrong_requests(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Exit 2, each with its advice."""
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "demo.toml").write_text(CAMPAIGN)
    (tmp_path / "bad.toml").write_text(CAMPAIGN + "[run]\nworkres = 2")
    for words, says in (
        (("dmo.toml",), "Did you mean reports/demo.toml?"),
        (("bad.toml",), "bad.toml: run.workres: unknown key. Did you mean 'workers'?"),
        (("x.toml", "--only", "methd=bare"), "Did you mean 'method'"),
        (("x.toml", "--only", "method=nobody"), "no cell matches"),
        (("x.toml", "--set", "method.lamda=1"), "--set"),
        (("x.toml", "--workers", "0"), "workers"),
    ):
        status, out, err = call(capfd, "run", *words)
        assert (status, out) == (2, ""), words
        assert says in err, words


class Renderer:
    """Stands for the reports' renderer."""

    def __init__(self, status: str = "done") -> None:
        self.status = status
        self.given: list[Any] = []

    def __call__(self, path: Path, *, store: Path, out: Path, overrides: Any, catalogue: Any) -> list[Any]:
        self.given.append((path, store, out, overrides))
        return [SimpleNamespace(path=out / "report.html", status=self.status, reason="a cell of the notebook failed")]


def test_run_renders_the_campaigns_reports(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Their paths are what stdout is for; a failed one is exit 1; none on request."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "y.toml").write_text(CAMPAIGN + '[[report]]\nnotebook = "campaign_report"\n')
    for state, code in (("done", 0), ("failed", 1)):
        renderer = Renderer(state)
        monkeypatch.setattr("cglsuite.reports.render_campaign", renderer, raising=False)
        monkeypatch.setattr("cglsuite.reports.rendering.parameters.check_reports", lambda *_: None)  # the catalogue has no notebook
        status, out, err = call(capfd, "run", "folder/y.toml", "--set", "training.epochs=3", "--device", "cpu")
        assert (status, out) == (code, "folder/rendered/x/report.html\n")
        assert ("a cell of the notebook failed" in err) == (code == 1)
        ((path, store, folder, overrides),) = renderer.given
        assert (path, store, folder) == (Path("folder/y.toml"), tmp_path / "store", Path("folder/rendered/x"))
        assert (overrides.values, overrides.device) == ({"training.epochs": "3"}, "cpu")
    assert call(capfd, "run", "folder/y.toml", "--set", "training.epochs=3", "--out", str(tmp_path / "o"))[1].strip() == str(
        tmp_path / "o" / "report.html"
    )
    renderer.given.clear()
    assert call(capfd, "run", "folder/y.toml", "--set", "training.epochs=3", "--no-reports")[:2] == (0, "")
    assert renderer.given == []


def test_run_interrupted(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 130, and what to do is said."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cglsuite.campaigns.executors.supervisor.LocalExecutor.run", interrupt)
    status, _, err = call(capfd, "run", "x.toml")
    assert status == 130
    assert "run the same command to continue" in err


# status and results


def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each record was parsed since now, by key."""
    counted: Counter[str] = Counter()
    parse = Record.from_json

    def counting(given: Any) -> Record:
        record = parse(given)
        counted[record.key] += 1
        return record

    monkeypatch.setattr(Record, "from_json", staticmethod(counting))
    return counted


@pytest.mark.sampled(1)
@pytest.mark.parametrize("words", [("status", "x.toml"), ("results", "x.toml"), ("results",)])
def test_whoever_looks_at_records_reads_each_once(
    capfd: pytest.CaptureFixture[str], store: Store, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Finished ones and failed ones: for a store of thousands reading is what a command spends its time on."""
    call(capfd, "run", "x.toml", "--only", "method=bare")
    call(capfd, "run", "x.toml", "--only", "method=joint", "--set", "method.behave=diverge")
    keys = [record.key for record in store.records()]
    counted = reads(monkeypatch)
    assert call(capfd, *words, *(["--set", "method.behave=diverge"] if "x.toml" in words else []))[0] == 0
    assert set(counted.values()) == {1}
    assert set(counted) <= set(keys)
    assert len(counted) == (4 if "x.toml" in words else 8)


@pytest.mark.nightly
def test_status_counts_by_scenario_and_method(capfd: pytest.CaptureFixture[str], store: Store) -> None:
    """Done, running, failed, missing and N/A side by side."""
    call(capfd, "run", "x.toml", "--only", "method=bare", "--only", "scenario=*task*")
    call(capfd, "run", "x.toml", "--only", "method=joint", "--only", "scenario=*task*", "--only", "init_seed=0")
    status, out, _ = call(capfd, "status", "x.toml", "--json")
    assert status == 0
    found = json.loads(out)
    rows = {(r["scenario"].split("@")[0], r["method"]): r for r in found["rows"]}
    assert {c: rows["toy/task-il", "bare"][c] for c in COLUMNS} == {
        "done": 2,
        "settled": 0,
        "running": 0,
        "failed": 0,
        "missing": 0,
        "n/a": 0,
    }
    assert (rows["toy/task-il", "joint"]["done"], rows["toy/task-il", "joint"]["missing"]) == (1, 1)
    assert rows["toy/class-il", "packnet"]["n/a"] == 2
    assert rows["toy/class-il", "packnet"]["reasons"] == ["method 'packnet' is defined for task-il"]
    assert found["totals"] == {"done": 3, "settled": 0, "running": 0, "failed": 0, "missing": 7, "n/a": 2}
    status, out, _ = call(capfd, "status", "x.toml")
    assert status == 0
    assert out.splitlines()[0].split()[:8] == ["SCENARIO", "METHOD", "DONE", "SETTLED", "RUNNING", "FAILED", "MISSING", "N/A"]
    assert "packnet" in out
    assert found["trainings"] == {"tasks": 6, "trained": 6}
    assert "shared" not in out


def test_status_and_run_say_how_many_trainings_were_shared(capfd: pytest.CaptureFixture[str], store: Store) -> None:
    """A record says how many of its tasks were trained for it; one without that word, from which task it was resumed."""
    status, _, err = call(capfd, "run", "x.toml", "--only", "method=bare", "--only", "scenario=*task*")
    assert (status, "shared" in err) == (0, False)
    first, second = list(store.records())
    for record, facts in ((first, {"trained_tasks": 1}), (second, {"resumed_from_task": 2})):
        store.put(replace(record, provenance={**record.provenance, **facts}))
    assert json.loads(call(capfd, "status", "x.toml", "--json")[1])["trainings"] == {"tasks": 4, "trained": 1}
    assert call(capfd, "status", "x.toml")[1].splitlines()[-1] == "trained 1 of 4 tasks, the other 3 were shared"
    err = call(capfd, "run", "x.toml", "--only", "method=bare", "--only", "scenario=*task*")[2]
    assert "2 done (2 cells; trained 1 of 4 tasks, the other 3 were shared; store" in err


def test_status_sees_failures_and_leases(capfd: pytest.CaptureFixture[str], store: Store, log: Path) -> None:
    """A failed cell has its reason; a held one is running."""
    words = ("--set", "method.behave=diverge")
    call(capfd, "run", "x.toml", "--only", "method=bare", "--only", "scenario=*task*", *words)
    lease = store.lease(log.read_text().split()[0])
    assert lease is not None
    with lease:
        found = json.loads(call(capfd, "status", "x.toml", "--json", *words)[1])
        shown = call(capfd, "status", "x.toml", *words)[1]
    assert found["totals"] == {"done": 0, "settled": 0, "running": 1, "failed": 1, "missing": 8, "n/a": 2}
    [held] = found["held"]
    assert (held["key"], held["pid"], held["silent"]) == (log.read_text().split()[0], os.getpid(), False)
    assert abs(held["refreshed"] - time.time()) < 60
    assert f"{held['label']}: running: process {os.getpid()} on {held['host']} since " in shown
    assert "last seen" in shown
    assert found["rows"][0]["reasons"] == ["diverged: the loss is not finite"]


def test_status_tells_a_runner_that_went_silent(capfd: pytest.CaptureFixture[str], store: Store, log: Path) -> None:
    """A machine that died is named with its last sign of life; its cell does not count as running."""
    words = ("--set", "method.behave=diverge")
    call(capfd, "run", "x.toml", "--only", "method=bare", "--only", "scenario=*task*", *words)
    write_lease(store.path / "leases" / f"{log.read_text().split()[0]}.lease", **ELSEWHERE, age_s=7200.0)
    found = json.loads(call(capfd, "status", "x.toml", "--json", *words)[1])
    assert found["totals"]["running"] == 0
    assert [(held["host"], held["silent"]) for held in found["held"]] == [("node7", True)]
    text = call(capfd, "status", "x.toml", *words)[1]
    assert f"lease no longer renewed; the next run takes the cell over: process {ELSEWHERE['pid']} on node7 since" in text


def test_results_in_every_format(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The campaign's rows with intransigence filled, or the whole store; to stdout or a file."""
    call(capfd, "run", "x.toml")
    call(capfd, *CELL)
    rows = json.loads(call(capfd, "results", "x.toml", "--format", "json")[1])
    assert len(rows) == 10
    assert all(r["intransigence"] == 0 for r in rows)
    whole = pd.read_csv(io.StringIO(call(capfd, "results")[1]))
    assert len(whole) == 11
    assert whole.set_index("method").loc["ewc", "intransigence"] == 0
    rate = whole["configuration.training.lr"].iloc[0]
    for given, words in (([], [f"training.lr={rate:e}"]), (["x.toml"], ["method=b*", "order_seed=0"])):
        filters = [word for pair in words for word in ("--where", pair)]
        chosen = json.loads(call(capfd, "results", *given, *filters, "--format", "json")[1])
        kept = (
            whole[whole["method"].str.startswith("b") & (whole["order_seed"] == 0)]
            if given
            else whole[whole["configuration.training.lr"] == rate]
        )
        assert {r["key"] for r in chosen} == set(kept["key"]) != set()
    assert "unknown key of --where 'training.epoch'" in call(capfd, "results", "--where", "training.epoch=2")[2]
    assert call(capfd, "results", "--where", "method=nobody", "--format", "json")[1] == "[]\n"
    status, out, _ = call(capfd, "results", "--format", "parquet", "--output", "r.parquet")
    assert (status, out) == (0, "")
    assert len(pd.read_parquet(tmp_path / "r.parquet")) == 11


SEARCHED = """
name = "x"
[grid]
scenarios = ["toy/task-il@begin-1"]
methods = ["ewc"]
[seeds]
init = [0, 1]
[search]
seeds = { init = [1, 2] }
grid = { "training.lr" = [1e-3, 5e-3] }
"""


def test_trials_are_told_from_results(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Trials are not among a campaign's rows unless they are asked for; the cell that is both is a result there, a trial in the store."""
    (tmp_path / "x.toml").write_text(SEARCHED)
    call(capfd, "run", "x.toml")

    def roles(*words: str) -> list[tuple[int, str]]:
        frame = pd.read_csv(io.StringIO(call(capfd, "results", *words)[1]))
        return sorted(zip(frame["init_seed"], frame["role"], strict=True))

    assert roles("x.toml") == [(0, "final"), (1, "final")]
    assert roles("x.toml", "--trials") == [(0, "final"), (1, "final"), (1, "trial"), (2, "trial"), (2, "trial")]
    assert roles() == [(0, "final"), (1, "trial"), (1, "trial"), (2, "trial"), (2, "trial")]
    status, _, err = call(capfd, "results", "--trials")
    assert status == 2
    assert "--trials needs a campaign file; without one, the table already includes the trials" in err


def test_status_says_that_a_search_uses_seeds_of_the_grid(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(SEARCHED)
    printed = " ".join(call(capfd, "status", "x.toml")[1].split())
    assert "The search used seeds of the grid (order/split/init 0/0/1), so the settings" in printed
    assert json.loads(call(capfd, "status", "x.toml", "--json")[1])["shared_seeds"] == ["0/0/1"]
    (tmp_path / "x.toml").write_text(SEARCHED.replace("[1, 2]", "[2, 3]"))
    assert "seeds of the grid" not in call(capfd, "status", "x.toml")[1]


def test_results_name_metrics_of_plugins_that_are_not_here(capfd: pytest.CaptureFixture[str], store: Store) -> None:
    call(capfd, *CELL)
    assert "no installed plugin" not in call(capfd, "results")[2]
    record = next(store.records())
    store.put(replace(record, metrics={**record.metrics, "fancy": 0.5}))
    status, out, err = call(capfd, "results")
    assert status == 0
    assert pd.read_csv(io.StringIO(out))["fancy"].tolist() == [0.5]
    assert "no installed plugin provides these metrics, so the stored values are shown, perhaps by different formulas: fancy" in err


def test_results_without_a_store_or_records(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A mistyped store is an error, an empty one a warning."""
    status, out, err = call(capfd, "results", "--store", str(tmp_path / "absent"))
    assert (status, out) == (2, "")
    assert "there is no store" in err
    (tmp_path / "empty").mkdir()
    status, out, err = call(capfd, "results", "--store", str(tmp_path / "empty"), "--format", "json")
    assert (status, out) == (0, "[]\n")
    assert "no records" in err


@pytest.mark.parametrize("command", ["cell", "run", "status", "results"])
def test_help(capfd: pytest.CaptureFixture[str], command: str) -> None:
    """Every option has a word of explanation."""
    status, out, _ = call(capfd, command, "--help")
    assert status == 0
    assert "--store" in out


# progress


@pytest.mark.nightly
def test_quiet_hides_progress_and_nothing_else(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar of a cell on a terminal; the lines of a campaign elsewhere."""
    from cglsuite.campaigns.executors import progress

    bars: list[str] = []

    class Bar(progress.EpochProgress):
        def __init__(self, label: str) -> None:
            super().__init__(label)
            bars.append(label)

    monkeypatch.setattr(progress, "visible", lambda: True)
    monkeypatch.setattr(progress, "EpochProgress", Bar)
    shown = call(capfd, *CELL)
    assert bars == ["ewc"]
    assert call(capfd, *CELL, "--quiet", "--rerun")[1].splitlines()[0] == shown[1].splitlines()[0]
    assert bars == ["ewc"]
    _, _, told = call(capfd, "run", "x.toml", "--no-reports", "--only", "method=bare")
    assert told.startswith("x: 4 of 4 cells, 0:")
    _, _, told = call(capfd, "run", "x.toml", "--no-reports", "--only", "method=joint", "-q")
    assert told.startswith("x: 4 done (4 cells; ")


def test_a_watched_cell_of_the_store_says_that_it_does_not_run(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "nothing to watch" not in call(capfd, *CELL, "--watch", "csv")[2]
    assert (
        "nothing to watch: the store already has the result of this cell (--rerun trains it again)"
        in call(capfd, *CELL, "--watch", "csv")[2]
    )
    status, _, message = call(capfd, "run", "x.toml", "--watch", "cvs")
    assert (status, "unknown observer 'cvs': did you mean csv?" in message) == (2, True)


@pytest.mark.parametrize(
    ("bounds", "value", "shown"),
    [
        ((0.0, 1.0), 0.5, "50.0%"),
        ((-1.0, 1.0), 0.25, "+25.0%"),
        ((-1.0, 1.0), -0.25, "-25.0%"),
        ((-math.inf, 1.0), 0.25, "+0.25"),  # it may be below -1, so it is no share
        ((-1.0, math.inf), 0.25, "+0.25"),
        ((0.0, math.inf), 123.456, "123.5"),
    ],
)
def test_a_metric_is_shown_in_percent_where_it_is_a_share(bounds: tuple[float, float], value: float, shown: str) -> None:
    """With a sign where it may be negative, and the direction in which it is better."""
    spec = MetricSpec(name="m", summary="s", formula="f(M)", direction="down", factory="a:b", range=bounds)
    record: Any = SimpleNamespace(metrics={"m": value}, scenario={"performance": "micro", "setting": "task-il"}, stream={})
    assert list(cells._metric_rows(record, {"m": spec})) == [["m", shown, "lower", "f(M)"]]
    unknown: Any = SimpleNamespace(metrics={"m": value, "none": None}, scenario=record.scenario, stream={})
    assert list(cells._metric_rows(unknown, {})) == [["m", f"{value:+.4g}", "", ""], ["none", "its metric is not installed", "", ""]]
    errors: Any = SimpleNamespace(metrics={"m": 0.5}, scenario={"performance": "negative-mae", "setting": "task-il"}, stream={})
    assert next(cells._metric_rows(errors, {"m": spec}))[1] == ("0.5" if bounds[0] == 0.0 else "+0.5")


def test_on_a_terminal_results_are_a_table_after_the_finding(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    """Who is best and by how much, then a row per method; the end of a run says the same; with a format it is the table of records."""
    err = call(capfd, "run", "x.toml")[2]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = call(capfd, "results", "x.toml")
    assert status == 0
    first = out.splitlines()[0]
    assert first.startswith("toy · ")
    assert "bare and packnet are best with average_performance " in first
    assert any(first.startswith(line.partition(": ")[0]) and first[:60] in line for line in err.splitlines())
    head = next(line for line in out.splitlines() if "METHOD" in line)
    assert click.unstyle(head).split()[:3] == ["METHOD", "RANK", "N"]
    assert "joint (reference)  –" in out
    assert call(capfd, "results", "x.toml", "--format", "csv")[1].startswith("scenario,preset,")
