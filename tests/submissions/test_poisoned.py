"""Poisoned submissions: each is refused under the name of its poison, the rest is accepted, and nothing refused gets into the results."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from submission_lab import Submission

from cglsuite.cells.keys import claimed_key
from cglsuite.cells.records.metric_values import metrics_from
from cglsuite.cells.records.record import SCHEMA, Record
from cglsuite.cells.storage.store import Store
from cglsuite.commons.submissions import staging
from cglsuite.commons.submissions.checks import Finding, Replanner
from cglsuite.commons.submissions.review import Review, ReviewedFile, accept, submission_html
from cglsuite.commons.submissions.staging import FOLDER, Marks

pytestmark = pytest.mark.plugins
SCRIPT = "<script>alert(1)</script>"


def refused(done: Review) -> dict[str, dict[str, str]]:
    """By file, the checks that refuse it, with their reasons."""
    return {item.file: {f.check: f.reason for f in item.findings if f.verdict == "refused"} for item in done.items if item.refused}


def the_one(done: Review, check: str, words: str = "") -> ReviewedFile:
    """The only refused record, which must be refused by this check with these words, and by name in every form of the report."""
    found = [item for item in done.items if item.refused]
    assert len(found) == 1, refused(done)
    reasons = [f.reason for f in found[0].findings if f.verdict == "refused" and f.check == check]
    assert reasons, refused(done)
    assert words in reasons[0]
    report = done.to_json()
    (row,) = [row for row in report["records"] if row["outcome"] == "refused"]
    assert check in [f["check"] for f in row["findings"] if f["verdict"] == "refused"]
    assert f'<span class="badge bad">{check}</span>' in submission_html(report)
    return found[0]


def assert_kept_out(submission: Submission, done: Review, *names: str) -> None:
    """After accepting the rest: no file of the results folder holds the refused record, its name or its words."""
    accept(done)
    store = Store(submission.results, quarantine=False)
    assert store.keys() == sorted(item.record.key for item in done.accepted if item.record is not None)
    assert len(store.keys()) == len(submission.keys) - sum(item.refused for item in done.items)
    for path in submission.results.rglob("*"):
        if path.is_file():
            assert not [name for name in names if name in path.read_text()], path


# --- what a record says of itself -------------------------------------------------------------------------------------------------


def altered(data: dict[str, Any], value: float | None = None) -> None:
    """Another last row, in steps of one test item, with every metric recomputed."""
    for j, task in enumerate(data["tasks"]):
        data["matrix"][-1][j] = (task["n_test"] - 1) / task["n_test"] if value is None else value


def recomputed(submission: Submission, data: dict[str, Any]) -> None:
    record = Record(**{k: v for k, v in data.items() if k != "schema"})
    names = [name for name, value in data["metrics"].items() if value is not None]
    data["metrics"] |= metrics_from(record, submission.catalogue, names)


def test_a_damaged_record(submission: Submission) -> None:
    """A digit changed after the digest was made."""
    path = submission.file(submission.keys[0])
    text = path.read_text()
    path.write_text(text.replace('"threads":1', '"threads":2'))
    done = submission.review()
    the_one(done, "digest", "damaged or edited")
    assert_kept_out(submission, done, '"threads":2')


def test_an_altered_matrix_with_recomputed_digest_and_metrics_that_no_number_of_items_gives(submission: Submission) -> None:
    def change(data: dict[str, Any]) -> None:
        altered(data, 0.98765)
        recomputed(submission, data)

    key = submission.spoil(change)
    done = submission.review()
    the_one(done, "bounds", "is not a possible share of the")
    assert_kept_out(submission, done, key)


@pytest.mark.nightly
def test_an_altered_matrix_that_only_a_rerun_reveals(submission: Submission) -> None:
    """Digest, metrics and shares are right. The rerun is not equal, and refuses all records of the method in the submission."""

    def change(data: dict[str, Any]) -> None:
        altered(data)
        recomputed(submission, data)

    key = submission.spoil(change, submission.key_of("ewc"))
    done = submission.review(sample=6)
    found = refused(done)
    assert len(found) == 1
    (reasons,) = found.values()
    assert "although torch and arithmetic are the same" in reasons["rerun"]
    assert all(item.rerun == "bits" for item in done.accepted)
    only = submission.review(sample=6, tolerance=0.001)
    assert "more than the tolerance of 0.001" in next(iter(refused(only).values()))["rerun"]
    assert_kept_out(submission, done, key)


def test_a_rerun_that_contradicts_one_record_refuses_those_of_its_method(submission: Submission) -> None:
    for order in range(3):
        submission.spoil(altered_with_metrics(submission), submission.key_of("ewc", order))
    done = submission.review(sample=2, seed=1)
    reasons = [reason["rerun"] for reason in refused(done).values()]
    assert len(reasons) == 3
    assert sum("a rerun contradicts" in reason for reason in reasons) == 2
    assert {item.record.cell["method"] for item in done.accepted if item.record} == {"bare"}


def altered_with_metrics(submission: Submission) -> Any:
    def change(data: dict[str, Any]) -> None:
        altered(data)
        recomputed(submission, data)

    return change


def test_metrics_that_do_not_match_the_matrix(submission: Submission) -> None:
    key = submission.spoil(lambda data: data["metrics"].update(average_performance=0.99))
    done = submission.review()
    the_one(done, "metrics", "average_performance: 0.99, but the matrix gives")
    assert_kept_out(submission, done, key)


def test_a_metric_that_is_hidden(submission: Submission) -> None:
    """None in place of a value would leave the forgetting off the board."""
    submission.spoil(lambda data: data["metrics"].update(forgetting_max=None), submission.key_of("bare"))
    the_one(submission.review(), "metrics", "forgetting_max: none, but the matrix gives")


def test_metrics_by_code_of_the_submitter(submission: Submission) -> None:
    """Another source of the metric is no excuse for another value."""

    def change(data: dict[str, Any]) -> None:
        data["metrics"]["average_performance"] = 0.99
        for part in data["provenance"]["metrics"]:
            part["source"] = "f" * 64

    submission.spoil(change)
    the_one(submission.review(), "metrics", "average_performance")


def test_values_out_of_bounds(submission: Submission) -> None:
    key = submission.spoil(lambda data: data["matrix"][-1].__setitem__(0, 1.5))
    done = submission.review()
    assert refused(done)
    assert "an entry of 1.5; expected 0 to 1" in next(iter(refused(done).values()))["schema"]
    assert_kept_out(submission, done, key)


def test_bounds_that_the_record_brings_along(submission: Submission) -> None:
    """A measure of its own, whose range admits anything."""

    def change(data: dict[str, Any]) -> None:
        data["scenario"]["measure"] = {"label": "accuracy", "direction": "up", "range": [0, 100], "unit": ""}
        altered(data, 99.0)
        recomputed(submission, data)

    submission.spoil(change)
    found = the_one(submission.review(), "bounds", "99; expected 0 to 1")
    assert "scenario.measure" in next(f.reason for f in found.findings if f.check == "cell")


def test_numbers_that_are_not_finite(submission: Submission) -> None:
    path = submission.file(submission.keys[0])
    data = submission.read(submission.keys[0])
    data["matrix"][-1][0] = 12345.5
    path.write_text(json.dumps(data).replace("12345.5", "1e999"))
    found = refused(submission.review())
    assert any("expected a finite number" in reason for reasons in found.values() for reason in reasons.values())


# --- whose record it is -----------------------------------------------------------------------------------------------------------


def test_a_forged_key(submission: Submission) -> None:
    key = submission.spoil(lambda data: data.update(key="ab" * 32))
    done = submission.review()
    the_one(done, "key", "it is not the key of this cell")
    assert_kept_out(submission, done, key)


def test_the_key_of_another_cell(submission: Submission) -> None:
    """A result under the key of a cell that it is not of would take that cell's place."""
    one, other = submission.key_of("bare"), submission.key_of("ewc")
    submission.file(other).unlink()
    submission.spoil(lambda data: data.update(key=other), one)
    done = submission.review()
    the_one(done, "key", f"its content gives {one[:12]} here")
    accept(done)
    assert Store(submission.results).get(other) is None


def test_a_record_under_another_name(submission: Submission) -> None:
    one = submission.file(submission.keys[0])
    one.rename(one.with_name(f"{one.name[:2]}{'0' * 62}.json"))
    the_one(submission.review(), "file", "its name is not the key of its record")


def test_a_forged_design(submission: Submission) -> None:
    """The design finds records by request; one that does not follow from the settings beside it is forged."""
    for key in submission.keys[:2], submission.keys[4:5]:  # the first of a group, too
        submission.spoil(lambda data: data.update(design="cd" * 32), key[0])
    found = refused(submission.review())
    assert len(found) == 2
    assert all("design does not follow" in reasons["key"] for reasons in found.values())


def test_settings_that_do_not_give_the_key(submission: Submission) -> None:
    """More epochs than the key says."""
    submission.spoil(lambda data: data["cell"]["configuration"].update({"training.epochs": 2}))
    assert "key" in next(iter(refused(submission.review()).values()))


def test_an_altered_protocol_under_the_plain_name_of_the_preset(submission: Submission) -> None:
    """A preset with overridden switches has a name that ends in a hash: without it, it would be on the board of the published one."""

    def change(data: dict[str, Any]) -> None:
        assert "+" in data["cell"]["preset"]
        data["cell"]["preset"] = data["cell"]["preset"].partition("+")[0]

    submission.spoil(change)
    the_one(submission.review(), "cell", "preset")


@pytest.mark.nightly
def test_other_code_is_accepted_as_unverified_and_marked(submission: Submission) -> None:
    """A key that is right for the code that the record names, of which nothing can be said here."""
    from cglsuite.cells.records.metric_values import metrics_from  # noqa: F401 - what follows needs the room loaded

    old = submission.key_of("bare")
    planned = Replanner(submission.catalogue).of(Record.from_json(submission.read(old))).planned
    assert planned is not None
    assert planned.cell is not None

    def change(data: dict[str, Any]) -> None:
        method = next(part for part in data["provenance"]["plugins"] if part["role"] == "method")
        method["source"] = "e" * 64
        stated = {part["role"]: part["source"] for part in data["provenance"]["plugins"]} | {"core": data["provenance"]["core"]["source"]}
        data["key"] = claimed_key(planned.cell, stated, data["environment"]["torch"], data["environment"]["numerics"])  # type: ignore[arg-type]

    key = submission.spoil(change, old)
    done = submission.review(sample=6)
    assert not refused(done)
    (item,) = [item for item in done.items if item.record and item.record.key == key]
    assert item.level == "unverified"
    assert {f.check for f in item.findings if f.verdict == "unverified"} == {"key", "check", "rerun"}
    accept(done)
    mark = Marks(submission.results).of(key, item.record.digest)  # type: ignore[union-attr]
    assert not mark.verified
    assert "made by code that differs" in mark.reasons["key"]


@pytest.mark.nightly
def test_a_method_that_is_not_installed(submission: Submission) -> None:
    submission.spoil(lambda data: data["cell"].update(method="no-such-method"))
    done = submission.review(sample=6)
    (item,) = [item for item in done.items if item.record and item.record.cell["method"] == "no-such-method"]
    assert (item.outcome, item.rerun) == ("unverified", "")
    assert "unknown method" in next(f.reason for f in item.findings if f.check == "key")


# --- marks ------------------------------------------------------------------------------------------------------------------------


def test_forged_marks_are_ignored(submission: Submission) -> None:
    """Whatever a submission says of its own verification is left out, and told."""
    key = submission.key_of("bare")
    digest = submission.read(key)["digest"]
    folder = submission.path / FOLDER
    folder.mkdir()
    mark = {"key": key, "digest": digest, "level": "verified", "rerun": "bits", "reasons": {}}
    (folder / "forged.jsonl").write_text(json.dumps({"verification": 1}) + "\n" + json.dumps(mark) + "\n")
    done = submission.review(examine=None)
    assert any("never taken from a submission" in note for note in done.notes)
    accept(done)
    assert not (submission.results / FOLDER / "forged.jsonl").exists()
    found = Marks(submission.results).of(key, digest)
    assert (found.level, found.rerun) == ("unverified", "")


def test_a_field_of_the_record_that_claims_verification(submission: Submission) -> None:
    """Open parts of a record may have further names; nothing reads them as marks, and unknown parts are refused."""
    submission.spoil(lambda data: data["provenance"].update(verified=True, level="verified"))
    submission.spoil(lambda data: data.update(verified=True), submission.keys[1])
    done = submission.review(examine=None)
    the_one(done, "schema", "verified: not a field of a record")
    assert {item.level for item in done.accepted} == {"unverified"}


def test_a_mark_is_of_one_digest_only(submission: Submission) -> None:
    """A record that takes the place of a verified one, or is edited, has no mark."""
    done = accept(submission.review(sample=6))
    item = done.accepted[0]
    assert item.record is not None
    marks = Marks(submission.results)
    assert marks.of(item.record.key, item.record.digest).verified
    assert not marks.of(item.record.key, "0" * 64).verified
    assert not marks.marked(item.record.key, "0" * 64)


# --- text and files ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [SCRIPT, "\x1b[31mred", "a\u202eb", "../../etc", "a b", "", "x" * 500])
def test_names_that_are_no_names(submission: Submission, name: str) -> None:
    submission.spoil(lambda data: data["cell"].update(method=name))
    done = submission.review()
    found = refused(done)
    assert len(found) == 1
    (reasons,) = found.values()
    assert "cell.method" in reasons.get("names", reasons.get("schema", ""))
    page = submission_html(done.to_json())
    assert SCRIPT not in page
    assert "\x1b" not in page
    assert_kept_out(submission, done, *([name] if len(name) > 3 else []))


def test_control_bytes_and_script_in_other_texts(submission: Submission) -> None:
    """Bytes that steer a terminal are refused wherever they are; markup in a text such as the processor's name is shown as text."""
    submission.spoil(lambda data: data["environment"].update(cpu="a\x1b]0;title\x07b"), submission.keys[0])
    submission.spoil(lambda data: data["environment"].update({SCRIPT: "x"}), submission.keys[1])
    submission.spoil(lambda data: data["environment"].update(cpu=SCRIPT), submission.keys[2])
    found = refused(submission.review())
    assert len(found) == 2
    assert {"environment.cpu" in reasons["names"] or "is not a valid field name" in reasons["names"] for reasons in found.values()} == {
        True
    }
    assert SCRIPT not in submission_html(submission.review().to_json())


def test_a_huge_file(submission: Submission, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read."""
    monkeypatch.setattr(staging, "MAX_BYTES", 10_000_000)
    path = submission.file(submission.keys[0])
    with open(path, "wb") as file:
        file.truncate(1 << 40)  # a sparse file of a tebibyte
    the_one(submission.review(), "file", "1,099,511,627,776 bytes; expected at most")


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deeply_nested_json(submission: Submission, opening: str) -> None:
    submission.file(submission.keys[0]).write_text(opening * 100_000)
    the_one(submission.review(), "file", "nested 100000 levels deep")


def test_a_link_to_a_private_file(submission: Submission, tmp_path: Path) -> None:
    """Neither a linked file nor a linked folder of records is followed, even if a good record is at its end."""
    private = tmp_path / "private" / "cells"
    shutil.copytree(submission.path / "cells", private)
    path = submission.file(submission.keys[0])
    shard = submission.file(submission.keys[1]).parent
    path.unlink()
    path.symlink_to(private / path.parent.name / path.name)
    if shard != path.parent:
        shutil.rmtree(shard)
        shard.symlink_to(private / shard.name)
    done = submission.review()
    assert {reason for reasons in refused(done).values() for reason in reasons.values()} == {"it is a link; expected a file of its own"}
    assert submission.keys[0] not in {item.record.key for item in done.items if item.record}


def test_a_fifo_and_a_folder_among_the_files(submission: Submission) -> None:
    """A FIFO would block whoever reads it."""
    path = submission.file(submission.keys[0])
    path.unlink()
    os.mkfifo(path)
    the_one(submission.review(), "file", "it is not a regular file")


def test_a_path_in_place_of_a_key(submission: Submission) -> None:
    submission.spoil(lambda data: data.update(key="../../../escaped"), rename=False)
    done = submission.review()
    the_one(done, "schema", "key")
    accept(done)
    assert not list(submission.results.parent.rglob("*escaped*"))


# --- schema, duplicates, choices, times -------------------------------------------------------------------------------------------


def test_a_record_of_a_newer_schema(submission: Submission) -> None:
    submission.spoil(lambda data: data.update(schema=SCHEMA + 1))
    the_one(submission.review(), "schema", "upgrade")


@pytest.mark.parametrize("schema", [1, SCHEMA])
def test_a_record_without_a_digest(submission: Submission, schema: int) -> None:
    """The first schema had none; a submitter could choose it to have nothing to be bound to."""
    path, data = submission.file(submission.keys[0]), submission.read(submission.keys[0])
    data.pop("digest")
    path.write_text(json.dumps({**data, "schema": schema}))
    the_one(submission.review(), "digest" if schema == SCHEMA else "schema", "digest: missing" if schema == SCHEMA else "expected 3 or 4")


@pytest.mark.parametrize("text", ["", "not json", "[]", "null", '{"schema": 3}', "\xff\xfe"])
def test_no_record_at_all(submission: Submission, text: str) -> None:
    submission.file(submission.keys[0]).write_text(text, encoding="latin-1")
    the_one(submission.review(), "schema")


def test_an_unfinished_record(submission: Submission) -> None:
    submission.spoil(lambda data: data.update(status="failed", reason="boom", matrix=[], validation_matrix=[], metrics={}))
    the_one(submission.review(), "status", "only finished records are results")


def test_duplicate_keys_with_unlike_results(submission: Submission) -> None:
    """A flat file and a sharded one of the same key: neither is taken."""
    key = submission.keys[0]
    flat = submission.path / "cells" / f"{key}.json"
    shutil.copy(submission.file(key), flat)
    data = submission.read(key)
    data.pop("digest")
    altered(data)
    recomputed(submission, data)
    submission.write(data, submission.file(key))
    done = submission.review()
    found = refused(done)
    assert {f"{key[:2]}/{key}.json", f"{key}.json"} == set(found)
    assert all("two results of this cell that differ" in reasons["duplicates"] for reasons in found.values())
    accept(done)
    assert Store(submission.results).get(key) is None


def test_a_method_that_fails_its_check(submission: Submission) -> None:
    def examine(method: str) -> Finding:
        verdict: Any = "refused" if method == "ewc" else "verified"
        return Finding(check="check", verdict=verdict, reason="does not conform: repeatable: two runs differ")

    done = submission.review(examine=examine)
    found = refused(done)
    assert len(found) == 3
    assert all("does not conform" in reasons["check"] for reasons in found.values())
    assert {item.record.cell["method"] for item in done.accepted if item.record} == {"bare"}


def test_seeds_that_were_picked(submission: Submission) -> None:
    """Two of three orders, the worst left out: every record is true, and the gap is told."""
    submission.file(submission.key_of("ewc", 1)).unlink()
    done = submission.review()
    assert not refused(done)
    noted = {item.record.cell["method"]: f.reason for item in done.items if item.record for f in item.findings if f.check == "orders"}
    assert set(noted) == {"ewc"}
    assert "1 of 3 repetitions that other methods of the submission have are missing (order/split/init 1/0/0)" in noted["ewc"]
    assert "order seeds 1 are missing between 0 and 2" in noted["ewc"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["timings_s"].update(total=0.0), "s for "),
        (lambda d: d["timings_s"].update(training=d["timings_s"]["total"] * 5), "the parts take"),
        (lambda d: d["timings_s"].update(total=1e12), "more than a year"),
        (lambda d: d["timings_s"].pop("total"), "total: none"),
        (lambda d: d["memory"].update(peak_bytes=8), "less than the"),
        (lambda d: d["memory"].update(items=50, budget_items=10), "over the budget"),
    ],
)
def test_impossible_times_and_sizes(submission: Submission, change: Any, words: str) -> None:
    submission.spoil(change)
    the_one(submission.review(), "timings", words)
