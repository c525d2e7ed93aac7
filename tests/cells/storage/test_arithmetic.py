"""Two records of one key and different arithmetic are two results of one cell: both are kept, one counts, and neither is wrong."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from stored_records import filled, key_of, record, source, unlike

from cglsuite.cells.records.comparison import may_differ, promise
from cglsuite.cells.records.frame import Row
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.cli.main import run
from cglsuite.commons.merging import merge
from cglsuite.commons.submissions.staging import stage
from cglsuite.reports.results.results import results_of
from cglsuite.testing import tiny_catalogue

KEY = key_of()
HERE, THERE = "a" * 64, "b" * 64


def made(one: Record, arithmetic: str | None, **changes: Any) -> Record:
    """A record with this arithmetic."""
    return dataclasses.replace(one, environment={**one.environment, "arithmetic": arithmetic}, **changes)


def test_which_results_may_differ() -> None:
    one = made(record(), HERE)
    assert may_differ(one, made(unlike(), THERE))
    assert not may_differ(one, made(unlike(), HERE))
    assert not may_differ(one, unlike())  # the other does not state it
    assert not may_differ(record(), unlike())
    assert not may_differ(one, made(unlike(), THERE, provenance={**one.provenance, "data": "other"}))
    assert not may_differ(one, made(unlike(), THERE, tasks=[{**task, "n_test": task["n_test"] + 1} for task in one.tasks]))


def test_promises_are_what_the_record_states() -> None:
    one = made(record(), HERE)
    assert promise(one) == "where the arithmetic is aaaaaaaaaaaa (native numerics)"
    assert promise(record()) == "on the same kind of processor (native numerics, arithmetic not recorded)"
    assert "portable" in promise(dataclasses.replace(one, cell={**one.cell, "numerics": "portable"}))
    assert promise(dataclasses.replace(one, cell={**one.cell, "device": "cuda"})).endswith("deterministic (cuda)")


@pytest.mark.parametrize("stated", [True, False])
def test_a_merge_keeps_both_and_says_which_is_no_contradiction(tmp_path: Path, capsys: pytest.CaptureFixture[str], stated: bool) -> None:
    """Exit status and verification with it; the number of results of the cell stays one, however often it is merged."""
    ours, theirs = made(record(), HERE), made(unlike(), THERE if stated else None)
    a, b = filled(tmp_path / "a", ours), source(tmp_path / "b", theirs)
    for _ in range(2):
        (done,) = merge([b], a)
        assert [c.other_arithmetic for c in done.conflicts] == [stated]
        assert done.clean == stated
    assert a.keys() == [KEY]
    assert a.get(KEY) == ours
    assert len(a.conflict_files()) == 1
    assert run(["merge", str(a.path), str(b.path)]) == (0 if stated else 1)
    out = capsys.readouterr().out
    assert ("because their arithmetic differs" in out) == stated
    assert f"arithmetic {HERE[:12]}" in out
    assert run(["results", "--store", str(a.path), "--verify"]) == (0 if stated else 1)
    said = capsys.readouterr()
    assert ("with different arithmetic, so both are correct" in said.out) == stated
    assert ("conflict" in said.err) != stated


def test_two_kept_results_of_the_same_arithmetic_contradict_each_other(tmp_path: Path) -> None:
    """Although each may differ from the one that counts: when they are merged, published, pulled and verified."""
    ours, theirs, false = made(record(), HERE), made(unlike(), THERE), made(unlike(value=0.25), THERE)
    a = filled(tmp_path / "a", ours)
    b, c = filled(tmp_path / "b", theirs), filled(tmp_path / "c", false)
    place = str(tmp_path / "published")
    assert [run(["merge", str(a.path), str(b.path)]), run(["results", "--store", str(a.path), "--verify"])] == [0, 0]
    assert [run(["merge", str(a.path), str(c.path)]) for _ in range(2)] == [1, 1]
    assert run(["results", "--store", str(a.path), "--verify"]) == 1
    assert (a.keys(), a.get(KEY), len(a.conflict_files())) == ([KEY], ours, 2)
    first = filled(tmp_path / "first", ours)
    assert [run(["publish", str(one.path), place]) for one in (first, b, c, c)] == [0, 0, 1, 1]
    assert run(["pull", place, "--into", str(tmp_path / "new")]) == 1
    new = Store(tmp_path / "new")
    assert (new.keys(), len(list(new.records()))) == ([KEY], 1)
    (done,) = merge([a], filled(tmp_path / "d", ours))  # with what it keeps apart
    assert len(done.contradictions) == 1


def test_equal_bits_are_one_result_whatever_the_arithmetic(tmp_path: Path) -> None:
    a, b = filled(tmp_path / "a", made(record(), HERE)), source(tmp_path / "b", made(record(), THERE))
    (done,) = merge([b], a)
    assert (done.same, done.conflicts, done.clean) == (1, [], True)


def test_publishing_and_pulling_keep_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = filled(tmp_path / "a", made(record(), HERE)), filled(tmp_path / "b", made(unlike(), THERE))
    place = str(tmp_path / "published")
    assert [run(["publish", str(one.path), place]) for one in (a, b)] == [0, 0]
    assert run(["pull", place, "--into", str(a.path)]) == 0
    assert a.get(KEY) == made(record(), HERE)
    assert len(a.conflict_files()) == 1
    capsys.readouterr()
    assert run(["pull", place, "--into", str(tmp_path / "new"), "--json"]) == 0
    (conflict,) = json.loads(capsys.readouterr().out)["merge"]["conflicts"]
    assert conflict["other_arithmetic"]
    assert Store(tmp_path / "new").keys() == [KEY]


def test_a_rerun_with_other_arithmetic_keeps_the_former_result(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """There and back again: one counts, the other is kept, and none is kept twice."""
    ours, theirs = made(record(), HERE), made(unlike(), THERE)
    store = filled(tmp_path / "store", ours)
    for now, former in ((theirs, ours), (ours, theirs), (theirs, ours)):
        store.put(now)
        assert store.get(KEY) == now
        (path,) = store.conflict_files()
        assert Record.from_json(path.read_bytes()) == former
    caplog.clear()
    store.put(made(unlike(value=0.25), THERE))
    assert "a different result on the same arithmetic" in caplog.text
    assert len(store.conflict_files()) == 1
    silent = filled(tmp_path / "silent", record())
    silent.put(unlike())  # of earlier versions nothing is known
    assert not silent.conflict_files()


def test_a_submission_with_two_results_is_that_of_its_cells_folder(tmp_path: Path) -> None:
    ours, theirs = made(record(), HERE), made(unlike(), THERE)
    a = filled(tmp_path / "a", ours)
    merge([source(tmp_path / "b", theirs)], a)
    staged, refused, notes = stage(a.path)
    assert ([item.record for item in staged], refused) == ([ours], [])
    assert any(note.endswith("has a result with different arithmetic") and ": left out, since " in note for note in notes)
    merge([source(tmp_path / "c", made(unlike(value=0.25), HERE))], a)
    staged, refused, _ = stage(a.path)
    assert not staged
    assert {item.check for item in refused} == {"duplicates"}


def test_native_and_portable_records_of_a_cell_are_never_in_one_mean(tmp_path: Path) -> None:
    """They are of one design, so they meet in a group; nor is one the joint partner of the other."""
    native = [record(n, cell={**record().cell, "seeds": {"order": n, "split": 0, "init": n}}) for n in (1, 2, 3)]
    portable = [dataclasses.replace(one, key=key_of(i), cell={**one.cell, "numerics": "portable"}) for i, one in enumerate(native[:2], 4)]
    results = results_of([*portable, *native], tiny_catalogue(), tmp_path)
    (group,) = results.groups
    assert [one.key for one in group.records] == [one.key for one in native]
    assert len(results.left_out) == 2
    assert Row.of(native[0]).made_by != Row.of(portable[0]).made_by
