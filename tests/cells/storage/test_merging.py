"""Merging stores: a union by key in which nothing is lost, overwritten silently or moved in a source."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stored_records import failed, filled, record, slower, snapshot, source, unlike

from cglsuite.base.errors import StoreError, UsageError
from cglsuite.cells.records.record import SCHEMA, Record
from cglsuite.cells.storage.store import Store
from cglsuite.cli.main import run
from cglsuite.commons import merging
from cglsuite.commons.merging import Merge, merge


def brought(*stores: Store, plan: bool = False) -> Merge:
    """The merge of the second store into the first."""
    (done,) = merge([stores[1]], stores[0], plan=plan)
    return done


KEY = "01" * 32


def test_the_union_by_key_byte_for_byte(tmp_path: Path) -> None:
    """Whatever the layouts; a second merge finds everything there."""
    a, b = filled(tmp_path / "a", record(1), record(2)), source(tmp_path / "b", record(2), record(3))
    flat = b.path / "cells" / f"{'04' * 32}.json"
    flat.write_bytes(b"\n" + record(4).to_text().encode())  # not quite as it would be written
    before = snapshot(b.path)
    done = brought(a, b)
    assert (sorted(key[:2] for key in done.new), done.same, done.clean) == (["03", "04"], 1, True)
    assert a.keys() == [f"{n:02x}" * 32 for n in (1, 2, 3, 4)]
    assert a.record_path("04" * 32).read_bytes() == flat.read_bytes()
    assert a.record_path("04" * 32).parent.name == "04"
    assert snapshot(b.path) == before
    after = snapshot(a.path)
    again = brought(a, b)
    assert (again.new, again.same, again.clean) == ([], 3, True)
    assert snapshot(a.path) == after


@pytest.mark.parametrize("reverse", [False, True])
def test_a_finished_record_beats_an_unfinished_one(tmp_path: Path, reverse: bool) -> None:
    """In either direction; of two unfinished ones the target's stays."""
    here, there = (record(1), failed(1)) if reverse else (failed(1), record(1))
    a, b = filled(tmp_path / "a", here, failed(2)), source(tmp_path / "b", there, failed(2, "another"))
    done = brought(a, b)
    assert a.cached(KEY) == record(1)
    assert a.get("02" * 32) == failed(2)
    assert [key[:2] for key in done.finished] == ([] if reverse else ["01"])
    assert [key[:2] for key in done.kept] == (["01", "02"] if reverse else ["02"])
    assert done.clean


def test_equal_results_are_one_record(tmp_path: Path) -> None:
    """Times differ from run to run; results do not."""
    a, b = filled(tmp_path / "a", record()), source(tmp_path / "b", slower())
    done = brought(a, b)
    assert (done.same, done.clean, a.get(KEY)) == (1, True, record())
    assert not (a.path / "conflicts").exists()


def test_two_unlike_results_are_both_kept_and_reported(tmp_path: Path) -> None:
    """With what may explain them; as often as the stores are merged, and kept once."""
    a, b = filled(tmp_path / "a", record()), source(tmp_path / "b", unlike())
    for _ in range(2):
        done = brought(a, b)
        (conflict,) = done.conflicts
        assert not done.clean
        assert conflict.key == KEY
        assert len(conflict.differences) == 1
        assert conflict.differences[0].startswith("matrix[")
        assert conflict.differences[0].endswith("here, 0.5 there")
        assert conflict.there["cpu"] == "Another"
        assert {name: conflict.here[name] for name in ("torch", "data", "cpu")} == {
            "torch": record().environment.get("torch"),
            "data": record().provenance.get("data"),
            "cpu": record().environment.get("cpu"),
        }
        assert a.conflict_files() == [conflict.kept]
        assert conflict.kept.read_text() == unlike().to_text()
        assert a.cached(KEY) == record()
    assert [one.key for one in a.records()] == [KEY]


def test_conflicts_travel_and_do_not_multiply(tmp_path: Path) -> None:
    """A store with a conflict brings both results, and a slower record of a known result is no third one."""
    a, b = filled(tmp_path / "a", record()), source(tmp_path / "b", unlike())
    brought(a, b)
    c = filled(tmp_path / "c", unlike())
    done = brought(c, Store(a.path, quarantine=False))
    assert c.cached(KEY) == unlike()
    assert [Record.from_json(path.read_bytes()) for path in c.conflict_files()] == [record()]
    assert (len(done.conflicts), done.same) == (1, 1)
    d = filled(tmp_path / "d")
    assert [len(brought(d, Store(a.path, quarantine=False)).conflicts), len(d.conflict_files())] == [1, 1]
    third = source(tmp_path / "e", unlike(value=0.25))
    assert len(brought(a, third).conflicts) == 1
    assert len(a.conflict_files()) == 2
    alike = dataclasses.replace(unlike(), timings_s={"total": 9.0})
    assert len(brought(a, source(tmp_path / "f", alike)).conflicts) == 1
    assert len(a.conflict_files()) == 2


def test_both_files_of_a_key_are_brought(tmp_path: Path) -> None:
    """The one that does not count in the source may be another result."""
    b = source(tmp_path / "b", record())
    (b.path / "cells" / f"{KEY}.json").write_text(unlike().to_text())
    a = filled(tmp_path / "a")
    done = brought(a, b)
    assert (done.new, len(done.conflicts)) == ([KEY], 1)
    assert (a.cached(KEY), len(a.conflict_files())) == (record(), 1)


def test_what_cannot_be_read_in_a_source_is_named_and_stays(tmp_path: Path) -> None:
    """Damaged, of a newer version, or under another's name; the rest is merged. A good record of the target is not touched."""
    a, b = filled(tmp_path / "a", record(2)), source(tmp_path / "b", record(1), record(2), record(3), record(4), record(5))
    bad = [b.record_path(f"{n:02x}" * 32) for n in (2, 3, 4, 5)]
    for path in bad[:2]:
        path.write_text("{")
    bad[2].write_text(json.dumps(record(4).to_json() | {"schema": SCHEMA + 1}))
    bad[3].write_text(record(1).to_text())
    before = snapshot(b.path)
    done = brought(a, b)
    assert sorted(problem.path for problem in done.unreadable) == bad
    assert all(problem.moved_to is None for problem in done.unreadable)
    assert not done.clean
    assert snapshot(b.path) == before
    assert a.keys() == [KEY, "02" * 32]
    assert a.cached("02" * 32) == record(2)


def test_damaged_and_newer_records_of_the_target(tmp_path: Path) -> None:
    """A damaged one is set aside, as on any reading, and the good one takes its place; a newer one is never replaced."""
    a, b = filled(tmp_path / "a", record(1), record(2)), source(tmp_path / "b", record(1), record(2))
    a.record_path(KEY).write_text("{")
    newer = json.dumps(record(2).to_json() | {"schema": SCHEMA + 1})
    a.record_path("02" * 32).write_text(newer)
    done = brought(a, b)
    assert done.new == [KEY]
    assert a.cached(KEY) == record(1)
    assert (a.path / "corrupt" / f"{KEY}.json").read_text() == "{"
    assert a.record_path("02" * 32).read_text() == newer
    assert {problem.path.stem: problem.moved_to is not None for problem in done.unreadable} == {KEY: True, "02" * 32: False}


def test_a_cell_that_a_runner_is_at_is_left_to_it(tmp_path: Path) -> None:
    """It is named, and comes with the next merge."""
    a, b = filled(tmp_path / "a"), source(tmp_path / "b", record(1), record(2))
    lease = Store(a.path).lease(KEY)
    assert lease is not None
    with lease:
        done = brought(a, b)
    assert [(key, str(os.getpid()) in holder) for key, holder in done.held] == [(KEY, True)]
    assert (done.new, done.clean) == (["02" * 32], False)
    assert brought(a, b).new == [KEY]


def test_searches_come_along(tmp_path: Path) -> None:
    """Of two unlike outcomes both are kept."""
    a, b = filled(tmp_path / "a"), source(tmp_path / "b")
    a.put_search("s1", {"chosen": 1})
    a.put_search("s2", {"chosen": 1})
    for name, chosen in (("s1", 1), ("s2", 2), ("s3", 3)):
        b.put_search(name, {"chosen": chosen})
    done = brought(a, b)
    assert (done.searches, len(done.unlike_searches), done.clean) == (1, 1, False)
    assert [a.get_search(name) for name in ("s1", "s2", "s3")] == [{"chosen": 1}, {"chosen": 1}, {"chosen": 3}]
    assert json.loads(done.unlike_searches[0].read_text()) == {"chosen": 2}
    c = filled(tmp_path / "c")
    assert len(brought(c, Store(a.path, quarantine=False)).unlike_searches) == 1
    assert [path.name for path in c.conflict_files()] == [path.name for path in a.conflict_files()]


def test_a_plan_writes_nothing_and_says_the_same(tmp_path: Path) -> None:
    a = filled(tmp_path / "a", record(1), failed(2))
    sources = [source(tmp_path / "b", unlike(1), record(2), record(3)), source(tmp_path / "c", unlike(3), record(4))]
    before = snapshot(a.path)
    planned = merge(sources, Store(a.path, quarantine=False), plan=True)
    assert snapshot(a.path) == before
    done = merge(sources, a)
    assert [(m.new, m.finished, m.same, m.kept, [c.key for c in m.conflicts]) for m in planned] == [
        (m.new, m.finished, m.same, m.kept, [c.key for c in m.conflicts]) for m in done
    ]
    assert [len(m.conflicts) for m in done] == [1, 1]


def test_stores_that_cannot_be_merged(tmp_path: Path) -> None:
    a = filled(tmp_path / "a", record())
    with pytest.raises(UsageError, match=r"no store at .*absent"):
        merge([Store(tmp_path / "absent")], a)
    (tmp_path / "link").symlink_to(a.path)
    with pytest.raises(UsageError, match="both a source and the target"):
        merge([Store(tmp_path / "link")], a)


def test_a_full_disk_leaves_what_was_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = filled(tmp_path / "a"), source(tmp_path / "b", *map(record, range(1, 6)))
    real, calls = merging.write_atomic, []

    def full(*args: Any, **kwargs: Any) -> bool:
        calls.append(args)
        if len(calls) == 3:
            raise StoreError("cannot write: no space left")
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(merging, "write_atomic", full)
        with pytest.raises(StoreError, match="no space"):
            brought(a, b)
    assert len(a.keys()) == 2
    done = brought(a, b)
    assert (len(done.new), done.same, len(a.keys())) == (3, 2, 5)


KILLED = """
import os, signal, sys
from pathlib import Path
from cglsuite.commons.merging import merge
from cglsuite.cells.storage.store import Store
place, nth, calls = sys.argv[3], int(sys.argv[4]), 0
real = getattr(os, place)
def ending(*args, **kwargs):
    global calls
    calls += ".json" in str(args[0])
    if calls == nth:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **kwargs)
setattr(os, place, ending)
merge([Store(sys.argv[2], quarantine=False)], Store(sys.argv[1]))
"""


@pytest.mark.parametrize("place", ["open", "replace"])
@pytest.mark.parametrize("nth", [1, 3, 6])
def test_kill_9_in_the_middle_and_once_more(tmp_path: Path, place: str, nth: int) -> None:
    """Every record of the target is whole, the source is as it was, and the second merge ends where an uninterrupted one does."""
    records = [record(n) for n in range(2, 9)]
    b = source(tmp_path / "b", unlike(1), *records)
    a, whole = filled(tmp_path / "a", record(1), failed(2)), filled(tmp_path / "whole", record(1), failed(2))
    brought(whole, b)
    before = snapshot(b.path)
    root = str(Path(__file__).parents[3])
    command = [sys.executable, "-c", KILLED, str(a.path), str(b.path), place, str(nth)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert snapshot(b.path) == before
    found = {one.key for one in a.records()}
    assert not a.problems
    assert a.cached(KEY) == record(1)
    done = brought(a, b)
    assert not done.unreadable
    assert {one.key: one for one in a.records()} == {one.key: one for one in whole.records()}
    assert found <= {one.key for one in whole.records()}
    assert [path.name for path in a.conflict_files()] == [path.name for path in whole.conflict_files()]


# --- the command ---------------------------------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Into the first store, or into another; status 1 where results differ."""
    a, b = filled(tmp_path / "a", record(1)), filled(tmp_path / "b", record(2))
    assert run(["merge", str(a.path), str(b.path)]) == 0
    assert "Merged into" in capsys.readouterr().out
    assert (len(a.keys()), len(b.keys())) == (2, 1)
    c = filled(tmp_path / "c", unlike(1))
    assert run(["merge", str(a.path), str(c.path), "--into", str(tmp_path / "new"), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    first, second = told["sources"]
    assert (told["into"], len(first["new"]), second["new"]) == (str(tmp_path / "new"), 2, [])
    (conflict,) = second["conflicts"]
    assert (conflict["there"]["cpu"], Path(conflict["kept"]).parent) == ("Another", tmp_path / "new" / "conflicts")
    assert not (a.path / "conflicts").exists()
    assert run(["merge", str(a.path), str(c.path), "--plan"]) == 1
    out, err = capsys.readouterr()
    assert "Would merge" in out
    assert "the results differ" in out
    assert "Another, torch" in out
    assert "1 cells have two results" in err
    assert not (a.path / "conflicts").exists()


def test_wrong_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = filled(tmp_path / "a", record(1))
    for words, message in (
        (["merge", str(a.path)], "two or more"),
        (["merge", str(tmp_path / "no"), str(a.path)], "no store at"),
        (["merge", str(a.path), str(tmp_path / "no")], "no store at"),
        (["merge", str(a.path), "--into", str(a.path)], "both a source and the target"),
        (["merge", str(a.path), "--into", str(a.path / "cells" / "x")], "is inside the records of"),
        (["submit", str(a.path), "--into", str(a.path / "cells" / "x"), "--check", "none"], "is inside the records of"),
        (["merge"], "STORE"),
    ):
        assert run(words) == 2
        assert message in capsys.readouterr().err


def test_results_verify_names_kept_conflicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Until somebody decides which of the two it is."""
    a, b = filled(tmp_path / "a", record(1)), source(tmp_path / "b", unlike(1))
    brought(a, b)
    assert run(["results", "--store", str(a.path), "--verify"]) == 1
    assert "conflict" in capsys.readouterr().err
    a.conflict_files()[0].unlink()
    assert run(["results", "--store", str(a.path), "--verify"]) == 0


@pytest.mark.parametrize("there", [False, True])
def test_an_outcome_of_a_search_that_cannot_be_read_stays_where_it_is(tmp_path: Path, there: bool) -> None:
    """It is named, neither brought nor held against the target's own."""
    a, b = filled(tmp_path / "a"), source(tmp_path / "b")
    b.put_search("s1", {"chosen": 1})
    (b.path / "searches" / "s1.json").write_text("{")
    if there:
        a.put_search("s1", {"chosen": 2})
    done = brought(a, b)
    assert (done.searches, done.unlike_searches, done.clean) == (0, [], False)
    assert a.get_search("s1") == ({"chosen": 2} if there else None)
    assert (b.path / "searches" / "s1.json").read_text() == "{"
    assert not a.conflict_files()
