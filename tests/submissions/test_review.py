"""An honest submission: checked, rerun, merged by the rules of merging, and marked beside the records."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from submission_lab import SCENARIO, TINY, Submission, passes

from cglsuite import Seeds
from cglsuite.base.errors import UsageError
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.cli.main import run
from cglsuite.commons.submissions.review import Candidate, accept, compared, draw, group_of, incomplete
from cglsuite.commons.submissions.staging import FOLDER, Mark, Marks, write_marks

pytestmark = pytest.mark.plugins


def digests(path: Path) -> dict[str, str]:
    return {record.key: record.digest for record in Store(path, quarantine=False).records()}


def test_every_check_agrees_and_the_records_arrive_as_they_are(submission: Submission) -> None:
    done = accept(submission.review(sample=2))
    assert [item.outcome for item in done.items] == ["verified"] * 6
    assert sorted(item.rerun for item in done.items) == ["bits"] * 2 + ["sample"] * 4
    assert digests(submission.results) == digests(submission.path)
    marks = Marks(submission.results)
    assert len(marks) == 6
    assert all(marks.of(key, digest).verified for key, digest in digests(submission.results).items())
    again = accept(submission.review())
    assert again.merged is not None
    assert (again.merged.same, len(again.merged.new)) == (6, 0)
    assert all(Marks(submission.results).of(key, digest).verified for key, digest in digests(submission.path).items())


@pytest.mark.nightly
def test_what_was_not_rerun_is_not_verified(submission: Submission) -> None:
    """Nor what no check of a method was asked for."""
    assert {item.level for item in submission.review().items} == {"unverified"}
    assert {item.level for item in submission.review(sample=6, examine=None).items} == {"unverified"}
    one = submission.review(sample=1)
    assert sorted(item.level for item in one.items) == ["unverified"] * 3 + ["verified"] * 3  # the group of the one, not the other


def test_a_review_writes_nothing(submission: Submission) -> None:
    before = {path: path.stat().st_mtime_ns for path in submission.path.rglob("*")}
    submission.review()
    assert {path: path.stat().st_mtime_ns for path in submission.path.rglob("*")} == before
    assert not submission.results.exists()


def test_nothing_is_written_if_nothing_is_accepted(submission: Submission) -> None:
    for key in submission.keys:
        submission.spoil(lambda data: data["metrics"].update(average_performance=0.99), key)
    accept(submission.review())
    assert not submission.results.exists()


@pytest.mark.nightly
def test_another_result_in_the_results_folder_is_kept_and_told(submission: Submission) -> None:
    """By the rules of merging: the one that is there stays, the other is kept apart, and its mark is not the other's."""
    record = Record.from_json(submission.read(submission.keys[0]))
    matrix = [list(row) for row in record.matrix]
    matrix[-1][0] = 0.0 if matrix[-1][0] else 1.0
    there = dataclasses.replace(record, matrix=matrix)
    Store(submission.results).put(there)
    done = accept(submission.review(sample=6))
    assert not done.clean
    assert Store(submission.results).get(record.key) == there
    assert len(Store(submission.results).conflict_files()) == 1
    assert not Marks(submission.results).of(record.key, there.digest).verified
    (item,) = [item for item in done.items if item.record and item.record.key == record.key]
    assert "the results folder has another result" in next(f.reason for f in item.findings if f.check == "merge")


@pytest.mark.nightly
def test_records_are_verified_where_they_are(submission: Submission) -> None:
    """A store that is its own results folder: records stay, marks are added."""
    before = digests(submission.path)
    submission.results = submission.path
    accept(submission.review(sample=6))
    assert digests(submission.path) == before
    assert all(Marks(submission.path).of(key, digest).verified for key, digest in before.items())


def test_a_folder_of_record_files(submission: Submission, tmp_path: Path) -> None:
    """What a download of records unpacks to."""
    folder = tmp_path / "flat"
    folder.mkdir()
    for key in submission.keys:
        (folder / f"{key}.json").write_bytes(submission.file(key).read_bytes())
    (folder / "README.json.txt").write_text("read me")
    submission.path = folder
    done = submission.review()
    assert len(done.accepted) == len(done.items) == 6


def test_what_is_no_submission(submission: Submission, tmp_path: Path) -> None:
    submission.path = tmp_path / "absent"
    with pytest.raises(UsageError, match="there is no folder"):
        submission.review()
    submission.path.mkdir()
    with pytest.raises(UsageError, match="holds no record"):
        submission.review()


# --- the sample -------------------------------------------------------------------------------------------------------------------


def candidates(submission: Submission) -> list[Candidate]:
    done = submission.review()
    return [Candidate(record=item.record, planned=item.planned) for item in done.items if item.record and item.planned]


def test_the_sample_meets_every_group_before_a_second_of_any_and_no_record_has_a_say(submission: Submission) -> None:
    made = candidates(submission)
    drawn = [draw(made, 2, seed) for seed in range(60)]
    assert all(len({group_of(one.record) for one in sample}) == 2 for sample in drawn)
    counts = {key: sum(one.record.key == key for sample in drawn for one in sample) for key in submission.keys}
    assert all(5 <= n <= 35 for n in counts.values()), counts  # 20 expected of each
    assert [one.record.key for one in draw(made, 4, 7)] == [one.record.key for one in draw(made[::-1], 4, 7)]
    slow = [
        Candidate(record=dataclasses.replace(one.record, timings_s={**one.record.timings_s, "total": 1e6}), planned=one.planned)
        for one in made[:1]
    ]
    assert [one.record.key for one in draw([*slow, *made[1:]], 3, 3)] == [one.record.key for one in draw(made, 3, 3)]
    assert draw(made, 0, 1) == []


def changed(record: Record, by: float, **more: Any) -> Record:
    matrix = [list(row) for row in record.matrix]
    matrix[-1][0] = abs((matrix[-1][0] or 0.0) - by)
    return dataclasses.replace(record, matrix=matrix, **more)


def test_verdicts_of_a_rerun(submission: Submission) -> None:
    record = Record.from_json(submission.read(submission.key_of("bare")))
    here = {name: record.environment.get(name) for name in ("torch", "cpu_capability", "arithmetic", "cuda", "cpu")}
    assert compared(record, record, None, here).reason == "bit-identical"
    near = changed(record, 0.01)
    assert compared(near, record, None, here).verdict == "refused"
    assert compared(near, record, 0.02, here).verdict == "verified"
    assert compared(near, record, 0.005, here).verdict == "refused"
    assert compared(near, record, None, {**here, "cpu": "another"}).verdict == "refused"  # it computes as the record says
    other = {**here, "arithmetic": "0" * 64}
    assert compared(near, record, None, other).verdict == "unverified"
    judged = compared(near, record, 0.02, other)
    assert judged.verdict == "verified"
    assert "was computed with arithmetic" in judged.reason
    assert compared(near, record, 0.005, other).verdict == "refused"
    unstated = dataclasses.replace(near, environment={**near.environment, "arithmetic": None})
    assert compared(unstated, record, None, here).verdict == "refused"
    assert compared(unstated, record, None, {**here, "cpu": "another"}).verdict == "unverified"
    assert compared(record, None, None, here).verdict == "unverified"
    shorter = dataclasses.replace(record, matrix=[], validation_matrix=[], status="failed", reason="no data")
    assert "no data" in compared(record, shorter, 1.0, here).reason
    hidden = [[None, *row[1:]] for row in record.matrix]
    assert compared(dataclasses.replace(record, matrix=hidden), record, 1.0, here).verdict == "refused"
    data = dataclasses.replace(record, provenance={**record.provenance, "data": "0" * 64})
    assert "other data" in compared(data, record, 1.0, here).reason


@pytest.mark.nightly
def test_a_record_of_a_gpu_is_marked(submission: Submission) -> None:
    """Its key is right for CUDA, and no CUDA is here: nothing is rerun, and the record says so."""
    from cglsuite.cells.plan import CellRequest, plan_cell
    from cglsuite.learning.reproducibility.numerics import numerics_of

    request = CellRequest(scenario=SCENARIO, method="bare", overrides=TINY, seeds=Seeds(), device="cuda")
    planned = plan_cell(request, submission.catalogue)

    def change(data: dict[str, Any]) -> None:
        data["cell"]["device"] = "cuda"
        data["environment"]["numerics"] = json.loads(json.dumps(dataclasses.asdict(numerics_of("cuda", 1))))
        data["key"] = planned.key

    key = submission.spoil(change, submission.key_of("bare"))
    done = submission.review(sample=6)
    (item,) = [item for item in done.items if item.record and item.record.key == key]
    assert item.outcome == "unverified"
    assert "which this machine does not have" in next(f.reason for f in item.findings if f.check == "rerun")


# --- orders -----------------------------------------------------------------------------------------------------------------------


def test_the_repetitions_of_a_paper_are_asked_for_by_its_own_presets_only(submission: Submission) -> None:
    record = Record.from_json(submission.read(submission.key_of("bare")))
    assert incomplete([record]) == {}  # its preset is a variant
    plain = dataclasses.replace(record, cell={**record.cell, "preset": "cora/task-il@begin-1"})
    assert "9 of the 10 repetitions of BeGin are missing" in incomplete([plain])[record.key]


# --- marks ------------------------------------------------------------------------------------------------------------------------


def test_the_stronger_mark_counts_and_damage_counts_as_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    weak = Mark(key="a", digest="1", level="unverified", reasons={"rerun": "no data"})
    strong = Mark(key="a", digest="1", level="verified", rerun="bits")
    write_marks(tmp_path, "2", {}, [weak])
    write_marks(tmp_path, "1", {}, [strong])
    write_marks(tmp_path, "0", {}, [dataclasses.replace(strong, rerun="sample")])
    assert Marks(tmp_path).of("a", "1") == strong
    (tmp_path / FOLDER / "0.jsonl").unlink()
    (tmp_path / FOLDER / "1.jsonl").write_text('{"verification": 1}\n{"key": "a"')
    assert Marks(tmp_path).of("a", "1") == weak
    (tmp_path / FOLDER / "2.jsonl").write_text('{"verification": 2}\n')
    assert not Marks(tmp_path).marked("a", "1")
    assert "version 2" in caplog.text


# --- the command ------------------------------------------------------------------------------------------------------------------


def test_the_command(submission: Submission, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 1 with a refusal, everything named in text, JSON and on the page; the results hold what was accepted."""
    submission.spoil(lambda data: data["metrics"].update(average_performance=0.99), submission.key_of("bare"))
    words = ["submit", str(submission.path), "--into", str(submission.results), "--sample", "0", "--check", "none"]
    assert run([*words, "--plan"]) == 1
    assert "5 of 6 records" in (out := capsys.readouterr().out)
    assert "metrics: average_performance: 0.99, but the matrix gives" in out
    assert not submission.results.exists()
    assert run([*words, "--json", "--report", str(tmp_path / "report")]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "report" / "report.json").read_text())
    assert printed["summary"] == {"verified": 0, "unverified": 5, "refused": 1}
    assert "average_performance: 0.99" in (tmp_path / "report" / "report.html").read_text()
    stored = sorted(path.suffix for path in (submission.results / FOLDER).iterdir())
    assert stored == [".html", ".json", ".jsonl"]
    assert len(Store(submission.results).keys()) == 5
    assert run(["submit", str(tmp_path / "no"), "--into", str(submission.results)]) == 2


def _check_report(name: str, provider: str, *, passed: bool) -> dict[str, Any]:
    """As ``cglsuite check NAME --json`` prints it."""
    finding = {"check": "learns", "status": "ok" if passed else "failed", "message": "it does not", "where": ""}
    return {"kind": "method", "name": name, "provider": provider, "passed": passed, "findings": [finding]}


def test_reports_of_checks(submission: Submission, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One by the same provider counts, passed or failed; another provider's does not; what is no report is a usage error."""
    provider = submission.catalogue.get("method", "bare").provider
    report = [_check_report(name, provider, passed=name == "bare") for name in ("bare", "ewc")]
    path = tmp_path / "checks.json"
    path.write_text(json.dumps(report))
    words = ["submit", str(submission.path), "--into", str(submission.results), "--sample", "0", "--check", "none", "--plan", "--json"]
    assert run([*words, "--check-report", str(path)]) == 1
    found = {row["label"].split(" × ")[1].split()[0]: row for row in json.loads(capsys.readouterr().out)["records"]}
    verdicts = {name: next(f for f in row["findings"] if f["check"] == "check") for name, row in found.items()}
    assert verdicts["bare"]["verdict"] == "verified"
    assert "ewc does not conform" in verdicts["ewc"]["reason"]
    path.write_text(json.dumps([{**one, "provider": "another 1.0"} for one in report]))
    assert run([*words, "--check-report", str(path)]) == 0
    path.write_text("{}")
    assert run([*words, "--check-report", str(path)]) == 2


@pytest.mark.nightly
def test_the_check_is_run_once_per_code(submission: Submission, capsys: pytest.CaptureFixture[str]) -> None:
    """The first submission examines the method; the next one has that stored beside the records."""
    for key in submission.keys:
        if submission.read(key)["cell"]["method"] == "ewc":
            submission.file(key).unlink()
    words = ["submit", str(submission.path), "--into", str(submission.results), "--sample", "1", "--check", "quick", "--json", "-q"]
    reasons = []
    for _ in range(2):
        assert run(words) == 0
        row = json.loads(capsys.readouterr().out)["records"][0]
        reasons.append(next(f["reason"] for f in row["findings"] if f["check"] == "check"))
        assert row["outcome"] == "verified"
    assert reasons == ["cglsuite check --quick", "passed here before (cglsuite check --quick)"]
    assert passes("bare").verdict == "verified"
