"""The index: what it knows is right or read again, and without it everything is as it is with it."""

from __future__ import annotations

import dataclasses
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cglsuite.cells.records.frame import Row, Summary
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage import index as module
from cglsuite.cells.storage import layout
from cglsuite.cells.storage import store as storage
from cglsuite.cells.storage.index import index_folder, on_network
from cglsuite.cells.storage.store import Store

GOLDEN = Path(__file__).parents[1] / "data" / "record-schema-4.json"
OLD_S = time.time() - 3600


def record(n: int, **changes: Any) -> Record:
    return dataclasses.replace(Record.from_json(GOLDEN.read_bytes()), key=f"{n:02x}" * 32, **changes)


def failed(n: int) -> Record:
    return record(n, status="failed", reason="boom", matrix=[], validation_matrix=[])


def settle(store: Store) -> None:
    """Make all files old enough to be indexed."""
    for path in store.record_files():
        os.utime(path, (OLD_S, OLD_S))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the record files that are read."""
    names: list[str] = []
    read = layout.read_record_file

    def noting(path: Path, key: str | None = None) -> tuple[bytes, Record]:
        names.append(path.stem[:2])
        return read(path, key)

    monkeypatch.setattr(layout, "read_record_file", noting)
    return names


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Three results and a failure, an index from one record on, and files that need not be old by their change time, which cannot be
    set."""
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(storage, "_FEW", 1)
    monkeypatch.setattr(module, "_RACY_NS", -(10**10))
    store = Store(tmp_path / "store")
    for n in (1, 2, 3):
        store.put(record(n))
    store.put(failed(4))
    settle(store)
    return store


def found(store: Store) -> dict[str, str | None]:
    return {key[:2]: summary and summary.status for key, summary in Store(store.path).summaries()}


def index_file(store: Store) -> Path:
    (path,) = (store.path.parent / "cache" / "index").glob("*.sqlite")
    return path


ALL = {"01": "done", "02": "done", "03": "done", "04": "failed"}


def test_records_are_read_once_by_all_processes(store: Store, reads: list[str]) -> None:
    """The second look reads nothing; what changed is read again, whatever changed it."""
    assert found(store) == ALL
    assert sorted(reads) == ["01", "02", "03", "04"]
    reads.clear()
    assert found(store) == ALL
    assert reads == []
    store.put(record(4))
    store.record_path("02" * 32).write_text(failed(2).to_text())
    os.utime(store.record_path("03" * 32))
    store.discard("01" * 32)
    store.put(record(5))
    reads.clear()
    assert found(store) == {"02": "failed", "03": "done", "04": "done", "05": "done"}
    assert sorted(reads) == ["02", "03", "04", "05"]


def test_a_summary_says_what_its_record_says(store: Store) -> None:
    """Read or from the index."""
    for _ in range(2):
        for key, summary in Store(store.path).summaries():
            one = store.get(key)
            assert one is not None
            assert summary == Summary.of(one, summary.sha256 if summary else "")
            assert summary.reason == one.reason
    assert dict(store.digests()) == {key: summary.sha256 for key, summary in store.summaries() if summary}
    assert Store(store.path).unfinished(["04" * 32, "05" * 32, "01" * 32]) == ["04" * 32, "05" * 32]


def test_only_records_of_wanted_designs_are_read(store: Store, reads: list[str]) -> None:
    """A report reads what it shows."""
    store.put(record(6, design="d" * 64))
    settle(store)
    found(store)
    reads.clear()
    assert [one.key for one in Store(store.path).with_designs({"d" * 64})] == ["06" * 32]
    assert reads == ["06"]


@pytest.mark.parametrize("damage", ["removed", "garbage", "empty", "cut", "other table", "wrong rows", "folder", "version"])
def test_an_index_that_is_no_good_is_made_anew(store: Store, reads: list[str], damage: str) -> None:
    """Silently: the same summaries, and afterwards an index again."""
    found(store)
    path = index_file(store)
    if damage == "removed":
        path.unlink()
    elif damage == "garbage":
        path.write_bytes(os.urandom(8192))
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:5000])
    elif damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        connection = sqlite3.connect(path)
        if damage == "other table":
            connection.execute("DROP TABLE records")
            connection.execute("CREATE TABLE records (x)")
        elif damage == "wrong rows":
            connection.execute("UPDATE records SET status = 'done'")
        else:
            connection.execute("PRAGMA user_version = 1")
            connection.execute("UPDATE records SET status = 'done'")
        connection.commit()
        connection.close()
    assert found(store) == ALL
    assert found(store) == ALL
    reads.clear()
    assert found(store) == ALL
    assert len(reads) == (4 if damage == "folder" else 0)


def test_a_busy_index_is_left_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever holds it goes on; records are read meanwhile."""
    monkeypatch.setattr(module, "_PATIENCE_S", 0.05)
    found(store)
    path = index_file(store)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    store.put(record(7))
    assert found(store) == {**ALL, "07": "done"}
    connection.execute("COMMIT")
    connection.close()
    assert path.exists()
    assert found(store) == {**ALL, "07": "done"}


def test_files_that_may_change_unseen_are_not_indexed(store: Store, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A second write within the resolution of the clock leaves the times as they are."""
    monkeypatch.setattr(module, "_RACY_NS", 2 * 10**9)
    assert found(store) == found(store) == ALL
    assert sorted(reads) == sorted(2 * ["01", "02", "03", "04"])  # their change times are of this moment


def test_few_records_make_no_index(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_FEW", 5)
    assert found(store) == ALL
    assert not (store.path.parent / "cache").exists()


def test_no_index_lies_on_a_network_file_system_or_in_a_foreign_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next folder is taken, and where there is none, one process still reads each record once."""
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))
    assert index_folder() == tmp_path / "cache" / "index"
    assert (tmp_path / "cache" / "index").stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(module, "on_network", lambda folder: "cache" in str(folder))
    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    last = index_folder()
    assert last is not None
    assert last.parent == tmp_path / "tmp"
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert index_folder() is None


def test_without_a_folder_a_store_object_remembers(store: Store, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "index_folder", lambda: None)
    one = Store(store.path)
    first = list(one.summaries())
    reads.clear()
    assert list(one.summaries()) == first
    assert reads == []
    assert found(store) == ALL


MOUNTS = """\
22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:44 / /home rw,relatime - nfs4 server:/home rw
31 30 0:45 / /home/ada/local\\040disk rw - xfs /dev/sdb rw
32 22 0:46 / /mnt/ssh rw - fuse.sshfs ada@x: rw
33 22 0:47 / /mnt/overlay rw - fuse.fuse-overlayfs overlay rw
34 22 0:48 / /twice rw - nfs server:/a rw
35 22 0:49 / /twice rw - tmpfs tmpfs rw
broken line
"""


@pytest.mark.parametrize(
    ("folder", "network"),
    [
        ("/var/cache", False),
        ("/home/ada/.cache", True),
        ("/home", True),
        ("/homes", False),
        ("/home/ada/local disk/x", False),
        ("/mnt/ssh/x", True),
        ("/mnt/overlay/x", False),
        ("/twice", False),
    ],
)
def test_network_file_systems_are_known_by_the_table_of_mounts(tmp_path: Path, folder: str, network: bool) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)
    assert on_network(Path(folder), table) is network
    assert on_network(Path(folder), tmp_path / "absent") is False


LOOK = """
import sys
from cglsuite.cells.storage import index, store
store._FEW, index._RACY_NS = 1, -(10**10)
from cglsuite.cells.storage.store import Store
for _ in range(5):
    print(sorted((key[:2], summary.status) for key, summary in Store(sys.argv[1]).summaries()))
"""


@pytest.mark.nightly
def test_many_processes_share_an_index(store: Store) -> None:
    """They start together on a store without one."""
    source = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", LOOK, str(store.path)]
    looks = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) for _ in range(4)]
    for process in looks:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert out.splitlines() == 5 * [str(sorted(ALL.items()))]
    with sqlite3.connect(index_file(store)) as connection:
        assert connection.execute("SELECT count(*) FROM records").fetchone() == (4,)
    connection.close()


def test_indexes_that_nobody_uses_are_removed(store: Store, tmp_path: Path) -> None:
    """Their stores are gone, or will be read once."""
    folder = tmp_path / "cache" / "index"
    folder.mkdir(parents=True)
    for name, age_s in (("old", 100 * 86400), ("new", 86400)):
        (folder / f"{name}.sqlite").write_text("")
        os.utime(folder / f"{name}.sqlite", (time.time() - age_s, time.time() - age_s))
    found(store)
    assert not (folder / "old.sqlite").exists()
    assert (folder / "new.sqlite").exists()


def table(store: Store) -> dict[str, Row]:
    return {row.key[:2]: row for row in Store(store.path).rows()}


def test_scalars_are_read_once_by_all_processes(store: Store, reads: list[str]) -> None:
    """A second table of results reads nothing but what has changed; a configuration that records share is kept once."""
    expected = {one.key[:2]: Row.of(one, dict(store.digests())[one.key]) for one in store.records()}
    reads.clear()
    assert table(store) == expected
    assert sorted(reads) == ["01", "02", "03", "04"]
    reads.clear()
    assert table(store) == expected
    assert reads == []
    with sqlite3.connect(index_file(store)) as connection:
        assert connection.execute("SELECT count(*) FROM texts").fetchone() == (1,)
    connection.close()
    store.put(record(4))
    store.discard("01" * 32)
    reads.clear()
    assert {name: row.status for name, row in table(store).items()} == {"02": "done", "03": "done", "04": "done"}
    assert reads == ["04"]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE scalars SET row = replace(row, 'done', 'lost')",
        "UPDATE scalars SET configuration = ''",
        "UPDATE texts SET text = '{}'",
        "DELETE FROM texts",
        "DROP TABLE texts",
        "DROP TABLE scalars",
    ],
)
def test_damaged_scalars_are_read_again(store: Store, reads: list[str], damage: str) -> None:
    expected = table(store)
    connection = sqlite3.connect(index_file(store))
    connection.execute(damage)
    connection.commit()
    connection.close()
    for _ in range(2):
        assert table(store) == expected
    reads.clear()
    assert table(store) == expected
    assert reads == []


@pytest.mark.parametrize(
    ("error", "stays"),
    [("file is not a database", False), ("database is locked", True), ("the file is busy", True), ("disk I/O error", False)],
)
def test_an_index_that_cannot_be_used_is_removed_unless_somebody_writes_to_it(tmp_path: Path, error: str, stays: bool) -> None:
    """The connection is closed either way; one that is not there, or that has no place, is no matter."""
    path = tmp_path / "index.sqlite"
    path.write_bytes(b"x")
    connection = sqlite3.connect(":memory:")
    module._remove_unusable(connection, path, sqlite3.DatabaseError(error))
    assert path.exists() is stays
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("select 1")
    path.unlink(missing_ok=True)
    module._remove_unusable(None, path, sqlite3.DatabaseError(error))
    module._remove_unusable(None, None, sqlite3.DatabaseError(error))
