"""``cglsuite reproduce``: the plan before anything runs, what runs and what does not run again, files, wrong requests, exit statuses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import ledger_lab
import pytest

from cglsuite.campaigns.overrides import Overrides
from cglsuite.campaigns.reference.reproduction import Selection, reproduction_of
from cglsuite.cells.storage.store import Store
from cglsuite.cli import main
from cglsuite.cli.options import Session
from cglsuite.reports.rendering import notebook
from cglsuite.reports.rendering.notebook import RenderedReport

TOOLS = Path(__file__).parents[2] / "tools"
CORA = ("reproduce", "--paper", "begin", "--dataset", "cora", "--setting", "task-il")


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cells of ``ledger_lab`` behind the command and in its workers, which append a line to this file for every run of a cell."""
    for name in ("CGLSUITE_SET", "CGLSUITE_DEVICE", "CGLSUITE_WORKERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CGLSUITE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("CGLSUITE_OFFLINE", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(TOOLS), os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv("LEDGER_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("FAKE_CATALOGUE", "ledger_lab:catalogue")
    monkeypatch.setattr(Session, "catalogue", lambda self: ledger_lab.catalogue())
    monkeypatch.setattr(notebook, "render_notebook", no_kernel)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").touch()
    return tmp_path / "log"


def no_kernel(notebook: str, given: Any, path: Path, **_: Any) -> RenderedReport:
    """A page that holds what the notebook would be given."""
    path.write_text(json.dumps({"notebook": notebook, **given}))
    return RenderedReport(notebook=notebook, path=path, status="done", reason="", seconds=0.1)


def call(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of one command line."""
    capfd.readouterr()
    status = main.run(words)
    out, err = capfd.readouterr()
    return status, out, err


def verdicts(folder: Path) -> dict[tuple[str, str], str]:
    """By method and metric."""
    return {(row["method"], row["metric"]): row["verdict"] for row in json.loads((folder / "ledger.json").read_text())["rows"]}


# --- the plan --------------------------------------------------------------------------------------------------------------------


def test_the_plan_runs_and_writes_nothing(capfd: pytest.CaptureFixture[str], tmp_path: Path, log: Path) -> None:
    """Bare and, for intransigence, joint training: ten cells each, of unknown time before there is any record."""
    status, out, err = call(capfd, *CORA, "--method", "bare", "--plan-only")
    lines = [line.split() for line in out.splitlines()]
    assert (status, err) == (0, "")
    assert lines[1:4] == [
        ["cora/task-il@begin-1", "bare", "10", "gcn"],
        ["cora/task-il@begin-1", "joint", "10", "gcn"],
        ["total", "20"],
    ]
    assert "expected: 20 cells of unknown time (no record of their preset and method)" in out
    assert log.read_text() == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]


def test_the_plan_counts_what_is_done_and_what_the_rest_takes(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Records say 10 s a cell: of bare seven are left, of joint training ten of unknown time."""
    ledger_lab.fill(tmp_path / "store", lambda p: ledger_lab.flat(p, 0.9) if p.request.method == "bare" else None, method="Bare", repeats=3)
    status, out, _ = call(capfd, *CORA, "--method", "Bare", "--plan-only", "--json", "--workers", "2")
    plan = json.loads(out)
    assert status == 0
    groups = {group["method"]: group for group in plan["groups"]}
    assert (groups["bare"]["done"], groups["bare"]["missing"], groups["bare"]["expected_s"]) == (3, 7, 70.0)
    assert (groups["joint"]["done"], groups["joint"]["missing"], groups["joint"]["expected_s"]) == (0, 10, None)
    assert (plan["expected_s"], plan["cells_of_unknown_time"]) == (35.0, 10)
    assert plan["published_values"] == 3
    assert plan["selection"] == {"paper": "BeGin", "dataset": "Cora", "setting": "task-IL", "method": "Bare", "repeats": None}
    message = call(capfd, *CORA, "--method", "Bare", "--plan-only", "--workers", "2")[1]
    assert "expected: about 35 s with 2 workers, and 10 cells of unknown time" in message


def test_the_plan_counts_what_another_device_has_done(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """They are missing here, and the times of a GPU say nothing of this machine; the ledger reads them."""
    known = ledger_lab.catalogue()
    chosen = Selection(**(ledger_lab.CORA | {"method": "Bare", "repeats": 3}))
    for planned in reproduction_of(chosen, known).plan(known, Overrides(device="cuda")):
        Store(tmp_path / "store").put(ledger_lab.flat(planned, 0.9))
    status, out, _ = call(capfd, *CORA, "--method", "Bare", "--plan-only", "--json")
    plan = json.loads(out)
    assert (status, plan["totals"]["done"], plan["totals"]["missing"], plan["expected_s"]) == (0, 0, 20, None)
    assert plan["done_elsewhere"] == {"cuda": 6}
    assert "6 of the missing cells are done on cuda; a ledger" in call(capfd, *CORA, "--method", "Bare", "--plan-only")[1]


def test_the_plan_says_why_things_cannot_be_run(capfd: pytest.CaptureFixture[str]) -> None:
    """A data set that is absent, methods that nothing provides; where nothing at all can be run, the status says so."""
    status, out, err = call(capfd, "reproduce", "--paper", "BeGin", "--dataset", "Citeseer", "--setting", "task-IL", "--plan-only")
    assert status == 3
    assert "the data file CiteSeer/raw/ind.citeseer.x is absent; put it below" in " ".join(out.split())
    assert "method CaT is not implemented here: no plugin provides it" in out
    assert "nothing of BeGin, Citeseer, task-IL can be run here" in err
    status, out, err = call(capfd, *CORA, "--method", "CaT", "--plan-only")
    assert (status, out.splitlines()[0]) == (3, "3 of 3 published values have no cell here:")


def test_without_a_paper_all_that_have_such_rows_are_planned(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A plan per paper and one of all; Cora is in BeGin's tables alone, CoraFull in those of four papers, and not here."""
    ledger_lab.fill(tmp_path / "store", lambda p: ledger_lab.flat(p, 0.9) if p.request.method == "bare" else None, method="Bare", repeats=3)
    chosen = ("--dataset", "cora", "--setting", "task-il", "--method", "bare")
    status, out, _ = call(capfd, "reproduce", *chosen, "--plan-only", "--json")
    plan = json.loads(out)
    assert status == 0
    assert [one["selection"]["paper"] for one in plan["papers"]] == ["BeGin"]
    assert plan["totals"] == plan["papers"][0]["totals"] == {"done": 3, "missing": 17, "no data": 0, "n/a": 0}
    assert (plan["published_values"], plan["expected_s"], plan["cells_of_unknown_time"]) == (3, 70.0, 10)
    status, out, err = call(capfd, "reproduce", "--method", "Bare", "--setting", "task-IL", "--plan-only")
    shown = [line.split() for line in out.splitlines()]
    (header,) = [i for i, line in enumerate(shown) if line[:2] == ["PAPER", "VALUES"]]
    assert [line[0] for line in shown[header + 1 : header + 4]] == ["BeGin", "CGLB", "AGALE"]
    assert status == 0
    assert "published values have no cell here:" in out
    status, _, err = call(capfd, "reproduce", "--dataset", "CoraFull", "--plan-only")
    assert (status, "nothing of all papers, CoraFull can be run here" in err) == (3, True)


# --- running ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_what_is_missing_is_run_once(capfd: pytest.CaptureFixture[str], tmp_path: Path, log: Path) -> None:
    """Two repetitions, then three, which have verdicts: only the third is new; the ledger and its page are written, their paths printed."""
    words = (*CORA, "--method", "bare", "--out", "ledger")
    status, out, err = call(capfd, *words, "--seeds", "2")
    assert status == 0
    assert out.splitlines() == ["ledger/ledger.csv", "ledger/ledger.json", "ledger/reproduction.html"]
    assert "Reproduction of BeGin, Cora, task-IL, Bare: 3 no verdict (3 published values)" in err
    assert sorted(log.read_text().splitlines()) == ["bare 0", "bare 1000", "joint 0", "joint 1000"]
    assert verdicts(tmp_path / "ledger") == {("Bare", "AP"): "no verdict", ("Bare", "AF"): "no verdict", ("Bare", "INT"): "no verdict"}
    before = (tmp_path / "ledger" / "ledger.json").read_bytes()
    assert call(capfd, *words, "--seeds", "2")[0] == 0
    assert len(log.read_text().splitlines()) == 4
    assert (tmp_path / "ledger" / "ledger.json").read_bytes() == before
    status, out, _ = call(capfd, *words, "--seeds", "3", "--json")
    assert (status, json.loads(out)["verdicts"], json.loads(out)["page"]) == (0, {"equivalent": 2, "different": 1}, "done")
    said = json.loads(out)
    assert (said["ratios"], {one["method"] for one in said["times"]}) == ([], {"bare", "joint"})
    assert {one["quantity"] for one in said["statistics"]} == {"nodes", "edges", "features", "edge features", "classes", "tasks"}
    assert sorted(log.read_text().splitlines()[4:]) == ["bare 2000", "joint 2000"]
    given = json.loads((tmp_path / "ledger" / "reproduction.html").read_text())
    expected = {"paper": "BeGin", "dataset": "Cora", "setting": "task-IL", "method": "Bare", "seeds": 3, "train_missing": False}
    assert expected.items() <= given.items()
    assert given["store"] == "store"  # relative: pages do not reveal paths of the machine that rendered them


@pytest.mark.nightly
def test_a_failed_cell_stands_in_the_ledger(capfd: pytest.CaptureFixture[str], tmp_path: Path, log: Path) -> None:
    """Status 1 with the reason once; the rows of the method have failed; the next call tries these cells again and no others."""
    words = (*CORA, "--method", "EWC", "--seeds", "2", "--out", "ledger")
    status, _, err = call(capfd, *words)
    assert status == 1
    assert [line for line in err.splitlines() if line.startswith("error: ")] == [
        "error: cora/task-il@begin-1 × ewc (order 0, split 0, init 0) and 1 more: diverged: the loss is not finite"
    ]
    assert verdicts(tmp_path / "ledger") == {("EWC", "AP"): "failed", ("EWC", "AF"): "failed", ("EWC", "INT"): "failed"}
    rows = json.loads((tmp_path / "ledger" / "ledger.json").read_text())["rows"]
    assert {row["reason"] for row in rows} == {"none of its 2 cells has a result: 2 diverged: the loss is not finite"}
    assert call(capfd, *words)[0] == 1
    assert sorted(log.read_text().splitlines()) == sorted(["joint 0", "joint 1000", *["ewc 0", "ewc 1000"] * 2])


def test_what_cannot_be_run_is_in_the_ledger_too(capfd: pytest.CaptureFixture[str], tmp_path: Path, log: Path) -> None:
    """A data set without its files: status 3, every row with the reason."""
    words = ("reproduce", "--paper", "BeGin", "--dataset", "Citeseer", "--setting", "task-IL", "--method", "Bare", "--out", "ledger")
    status, _, err = call(capfd, *words)
    assert status == 3
    assert "nothing of BeGin, Citeseer, task-IL, Bare can be run here: the data file CiteSeer/raw/ind.citeseer.x" in err
    assert set(verdicts(tmp_path / "ledger").values()) == {"not runnable here"}
    assert log.read_text() == ""


def test_a_ledger_from_records_alone(capfd: pytest.CaptureFixture[str], tmp_path: Path, log: Path) -> None:
    """``--plan-only --out``: the ledger of what is there, and nothing is run."""
    ledger_lab.fill(tmp_path / "store", lambda p: ledger_lab.flat(p, 0.9) if p.request.method == "bare" else None, method="Bare", repeats=3)
    status, _, _ = call(capfd, *CORA, "--method", "Bare", "--plan-only", "--out", "ledger")
    assert status == 0
    assert verdicts(tmp_path / "ledger") == {("Bare", "AP"): "equivalent", ("Bare", "AF"): "different", ("Bare", "INT"): "not run"}
    assert log.read_text() == ""


def test_claims_from_records_alone(capfd: pytest.CaptureFixture[str], tmp_path: Path, log: Path) -> None:
    """Nothing is run; with a folder there are files and a page too, and without a store the request is wrong."""
    assert call(capfd, *CORA, "--claims")[0] == 2
    ledger_lab.fill(tmp_path / "store", lambda planned: ledger_lab.flat(planned, ledger_lab.ACCURACY.get(planned.request.method, 0.5)))
    status, out, err = call(capfd, *CORA, "--claims", "--json", "--out", "claims")
    told = json.loads(out)
    assert (status, err) == (0, "")
    assert [Path(name).name for name in told["files"]] == ["claims.csv", "claims.json", "claims.html"]
    assert told["claims"] == json.loads((tmp_path / "claims" / "claims.json").read_text())["claims"]
    assert told["counts"][0]["printed"] == sum(claim["kind"] == "between learners" for claim in told["claims"])
    page = json.loads((tmp_path / "claims" / "claims.html").read_text())
    assert (page["notebook"], page["paper"], page["dataset"]) == ("claims", "begin", "cora")
    status, out, err = call(capfd, *CORA, "--claims", "--method", "packnet")
    assert (status, err) == (0, "")
    assert out == "no claim of these tables has runs of both methods in the store\n"
    assert log.read_text() == ""


def test_a_ledger_of_all_papers_from_records_alone(capfd: pytest.CaptureFixture[str], tmp_path: Path, log: Path) -> None:
    """Its files and its page; nothing is run."""
    ledger_lab.fill(tmp_path / "store", lambda p: ledger_lab.flat(p, 0.9) if p.request.method == "bare" else None, method="Bare", repeats=3)
    words = ("reproduce", "--dataset", "Cora", "--setting", "task-IL", "--method", "Bare", "--plan-only", "--out", "ledger")
    status, out, err = call(capfd, *words)
    assert status == 0
    assert out.splitlines()[-3:] == ["ledger/ledger.csv", "ledger/ledger.json", "ledger/ledger.html"]
    assert "Reproduction of all papers, Cora, task-IL, Bare: 3 reachable, 2 run, 1 equivalent" in err
    totals = json.loads((tmp_path / "ledger" / "ledger.json").read_text())["totals"]
    assert (totals["printed"], totals["equivalent"], totals["different, without"]) == (3, 1, 1)
    given = json.loads((tmp_path / "ledger" / "ledger.html").read_text())
    assert (given["notebook"], given["paper"], given["method"], "train_missing" in given) == ("ledger", "", "Bare", False)
    assert log.read_text() == ""


@pytest.mark.nightly
def test_a_page_that_is_not_finished(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 1 and the reason; the ledger's files are there all the same."""

    def fails(notebook: str, given: Any, path: Path, **_: Any) -> RenderedReport:
        return RenderedReport(notebook=notebook, path=path, status="failed", reason="the kernel died", seconds=0.1)

    monkeypatch.setattr(notebook, "render_notebook", fails)
    status, _, err = call(capfd, *CORA, "--method", "bare", "--seeds", "1", "--out", "ledger")
    assert (status, "failed: the kernel died" in err) == (1, True)
    assert (tmp_path / "ledger" / "ledger.csv").is_file()


# --- wrong requests --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("--paper", "BeGn"), 2, "unknown paper 'BeGn'. Did you mean 'BeGin'?"),
        (("--paper", "BeGin", "--dataset", "Coraa"), 2, "unknown data set of BeGin 'Coraa'. Did you mean 'Cora'"),
        (("--paper", "BeGin", "--method", "Bear"), 2, "unknown method of BeGin 'Bear'. Did you mean 'Bare'?"),
        (("--paper", "BeGin", "--setting", "task"), 2, "unknown setting of BeGin 'task'."),
        (("--paper", "AGALE", "--method", "PackNet"), 2, "unknown method of AGALE 'PackNet'. Known: Bare, ER-GNN, EWC,"),
        (
            ("--paper", "BeGin", "--dataset", "Cora", "--setting", "time-IL"),
            3,
            "no table of BeGin has Cora, time-IL: Cora appears in task-IL",
        ),
        (("--paper", "BeGin", "--seeds", "11"), 2, "11 seeds: the protocol of BeGin has 10 repetitions"),
        (("--paper", "BeGin", "--seeds", "0"), 2, "Invalid value for '--seeds'"),
        (("--dataset", "Coraa"), 2, "unknown data set of the papers 'Coraa'. Did you mean 'Cora'"),
        (("--seeds", "0"), 2, "Invalid value for '--seeds'"),
        (("--paper", "BeGin", "--dataset", "Cora", "--plan-only", "--out", "x", "--store", "nowhere"), 2, "there is no store at"),
        (("--paper", "BeGin", "--dataset", "Cora", "--store", "log"), 2, "is a file"),
    ],
)
def test_wrong_requests(capfd: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[str, ...], status: int, says: str) -> None:
    """Named, with what is known; nothing is written."""
    found, out, err = call(capfd, "reproduce", *words)
    assert (found, out) == (status, "")
    assert says in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]


def test_settings_of_the_environment_are_refused(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Printed values are compared with unchanged presets."""
    monkeypatch.setenv("CGLSUITE_SET", "training.epochs=5")
    status, _, err = call(capfd, *CORA, "--plan-only")
    assert status == 2
    assert "training.epochs=5 is set (CGLSUITE_SET?): published values can be compared only with unchanged presets" in err


def test_a_plan_of_a_store_that_is_not_there_says_so(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Whoever names a folder may have mistyped it."""
    status, out, err = call(capfd, *CORA, "--method", "Bare", "--plan-only", "--store", "nowhere")
    assert status == 0
    assert f"there is no store at {tmp_path / 'nowhere'} yet" in err
    assert "20 cells of unknown time" in out
    assert not Store(tmp_path / "nowhere").path.exists()
