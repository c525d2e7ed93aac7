"""Two layouts of one store: new records are sharded, flat ones are read, and every listing sees both."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store

GOLDEN = Path(__file__).parents[1] / "data" / "record-schema-4.json"
ONE, TWO = "ab" * 32, "12" * 32


def record(**changes: Any) -> Record:
    return dataclasses.replace(Record.from_json(GOLDEN.read_bytes()), **changes)


def failed(**changes: Any) -> Record:
    return record(status="failed", reason="boom", matrix=[], validation_matrix=[], **changes)


def put_flat(store: Store, one: Record) -> Path:
    path = store.path / "cells" / f"{one.key}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(one.to_text())
    return path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


def test_new_records_are_sharded_and_old_ones_stay_where_they_are(store: Store) -> None:
    """A rerun of an old record replaces its file, so that no key gets a second one."""
    flat = put_flat(store, record(key=TWO))
    store.put(record())
    store.put(record(key=TWO, metrics={"x": 1.0}))
    assert store.record_path(ONE) == store.path / "cells" / "ab" / f"{ONE}.json"
    assert store.record_path(TWO) == flat
    assert store.record_files() == [flat, store.record_path(ONE)]
    assert [one.metrics.get("x") for one in store.records()] == [1.0, None]
    assert store.keys() == store.present({ONE, TWO, "cd" * 32}) == [TWO, ONE]
    assert [key for key, _ in store.digests()] == [TWO, ONE]
    assert store.put(failed(key=TWO)) is False


@pytest.mark.parametrize(("sharded", "flat", "counts"), [("done", "done", "sharded"), ("done", "failed", "sharded")])
@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_files_of_a_key_a_finished_one_counts_and_then_the_sharded_one(
    store: Store, sharded: str, flat: str, counts: str, swapped: bool
) -> None:
    """An older version of the suite may have written the flat one meanwhile. None is removed but by name."""
    made = {"done": record(), "failed": failed()}
    here, there = (made[flat], made[sharded]) if swapped else (made[sharded], made[flat])
    there = dataclasses.replace(there, metrics={"flat": 1.0})
    store.put(here)
    put_flat(store, there)
    expected = there if swapped and flat != sharded else here
    assert store.get(ONE) == expected
    assert list(store.records()) == [expected]
    assert [(key, found.status) for key, found in store.summaries() if found] == [(ONE, "done")]
    assert len(store.record_files()) == 2
    assert store.put(failed()) is False
    newest = record(metrics={"new": 1.0})
    assert store.put(newest)
    assert store.cached(ONE) == newest
    store.discard(ONE)
    assert store.record_files() == []
    store.discard(ONE)


def test_attempts_and_movement_are_seen_in_both_layouts(store: Store) -> None:
    """A new record changes the time of its folder, not that of ``cells``."""
    assert not store.moved_since(0)
    store.put(record())
    put_flat(store, record(key=TWO))
    cells = store.path / "cells"
    for path in (cells, cells / "ab", store.record_path(ONE), store.record_path(TWO)):
        os.utime(path, ns=(1000, 1000))
    assert not store.moved_since(1000)
    os.utime(cells / "ab", ns=(1001, 1001))
    assert store.moved_since(1000)
    for key in (ONE, TWO):
        assert store.attempted_since(key, 1000)
        assert not store.attempted_since(key, 1001)
    store.save_checkpoint("family", {"x": 1})
    os.utime(cells / "ab", ns=(0, 0))
    assert store.moved_since(1001)
    assert store.has_checkpoints()
    store.drop_checkpoints(["family"])
    assert not store.has_checkpoints()


def test_what_is_no_record_is_not_listed_and_a_misplaced_one_is_named(store: Store) -> None:
    """Temporary files are hidden, other folders are not ours, and no key leads into the folder of another."""
    store.put(record())
    cells = store.path / "cells"
    (cells / "ab" / f".{ONE}.json.1-x.tmp").write_text("{")
    (cells / "notes").mkdir()
    (cells / "notes" / f"{TWO}.json").write_text("{")
    wrong = cells / "ab" / f"{TWO}.json"
    wrong.write_text(record(key=TWO).to_text())
    assert store.keys() == [ONE]
    assert [(problem.path, problem.moved_to) for problem in store.problems] == [(wrong, None)]
    assert "move it to 12/" in store.problems[0].reason
    assert wrong.exists()
    assert store.get(TWO) is None


def test_a_store_that_leaves_unreadable_files_where_they_are(store: Store) -> None:
    """They are named all the same, once."""
    store.put(record())
    path = store.record_path(ONE)
    path.write_text("{")
    careful = Store(store.path, quarantine=False)
    assert careful.get(ONE) is None
    assert list(careful.records()) == []
    assert [problem.path for problem in careful.problems] == [path]
    assert path.read_text() == "{"
    assert not (store.path / "corrupt").exists()


@pytest.mark.parametrize("name", ["two words.json", "é.json", "-.json"])
def test_a_file_whose_name_is_no_key_is_named_and_hides_no_record(store: Store, name: str) -> None:
    """The bug: listings ended with an error."""
    store.put(record())
    for folder in ("cells", f"cells/{ONE[:2]}"):
        (store.path / folder / name).write_text("{}")
    assert store.keys() == [ONE]
    assert [one.key for one in store.records()] == [ONE]
    assert [row.key for row in store.rows()] == [ONE]
    assert {problem.reason for problem in store.problems} == {"its name is not the key of a record; rename or remove it"}


def test_a_folder_that_cannot_be_listed_is_named_and_hides_no_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: a store with one such folder looked empty."""
    store.put(record())
    store.put(record(key=TWO))
    (store.path / "cells" / "ff").symlink_to("ff")
    listdir = os.listdir

    def refused(path: Any) -> list[str]:
        if str(path).endswith("/12"):
            raise PermissionError(13, "Permission denied", str(path))
        return listdir(path)

    monkeypatch.setattr(os, "listdir", refused)
    assert store.keys() == [ONE]
    assert store.present({ONE, TWO}) == [ONE]
    said = {Path(problem.path).name: problem.reason for problem in store.problems}
    assert said == {
        "12": "its records cannot be listed: Permission denied",
        "ff": "its records cannot be listed: Too many levels of symbolic links",
    }


def test_links_that_lead_nowhere_are_named(store: Store) -> None:
    """The bug: a record that had been there, or all of them, were missing without a word."""
    store.put(record())
    lost = store.record_path(TWO)
    lost.parent.mkdir(parents=True)
    lost.symlink_to(lost)
    assert [row.key for row in store.rows()] == [ONE]
    assert [(problem.path, problem.reason) for problem in store.problems] == [(lost, "it is a broken link")]
    other = Store(store.path.with_name("other"))
    other.path.mkdir()
    (other.path / "cells").symlink_to("/nowhere/at/all")
    assert other.keys() == []
    assert [problem.reason for problem in other.problems] == ["its records cannot be listed: No such file or directory"]


def test_a_file_of_gigabytes_is_no_record(store: Store) -> None:
    """It is not read, and hides no other."""
    store.put(record())
    store.record_path(TWO).parent.mkdir(parents=True)
    with store.record_path(TWO).open("wb") as file:
        file.truncate(3 * 2**30)
    assert [row.key for row in store.rows()] == [ONE]
    assert ["3,221,225,472 bytes; expected at most" in problem.reason for problem in store.problems] == [True]


def test_cells_that_are_no_folder_are_named(store: Store) -> None:
    """Not an empty store."""
    store.path.mkdir()
    (store.path / "cells").write_text("")
    assert store.keys() == []
    assert [problem.reason for problem in store.problems] == ["its records cannot be listed: Not a directory"]
