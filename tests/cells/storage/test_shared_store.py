"""A store that several users share: modes and groups, locks and records of others, and stores that are read through."""

from __future__ import annotations

import dataclasses
import logging
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from lease_files import dead_pid, write_lease
from other_users import ALICE, BOB, LAB, STUDENT, as_user, group_folder, modes, needs_root
from stored_records import failed, key_of, record

from cglsuite.base.atomic import make_folder
from cglsuite.base.errors import StoreError, UsageError
from cglsuite.cells.plan import PlanFile
from cglsuite.cells.records.record import Curves
from cglsuite.cells.storage import lease as lease_module
from cglsuite.cells.storage.lease import has_locks
from cglsuite.cells.storage.store import Store, UnreadableRecordError, plan_lease

_LEFT: list[Any] = []
CURVES = Curves.of([{"task": 1, "loss": [1.0, 0.5], "monitor": [], "best_epoch": None}], [])


def of_shard(n: int, shard: str = "ab") -> str:
    """A key in a shard that others share."""
    return shard + key_of(n)[2:]


def in_shard(n: int, **changes: Any) -> Any:
    return dataclasses.replace(record(n, **changes), key=of_shard(n))


def use(path: Path, n: int) -> None:
    """Whatever a run leaves in a store: a record with curves, a checkpoint, a search, a plan; a lease taken over; attempts."""
    store = Store(path)
    store.warn_without_locks()
    lease = store.lease(of_shard(n))
    assert lease is not None
    with lease, store.attempt(of_shard(n)):
        store.save_checkpoint(f"family-{n}", {"n": torch.tensor([n])})
        assert store.put(in_shard(n, beside=CURVES))
    plan = store.path / "plans" / f"{n}-a.json"
    with store.lease(plan_lease(plan)) or pytest.fail("another plan"):
        PlanFile(cells=[]).write(plan, store.path)
    store.put_search(of_shard(n, "cd"), {"candidates": []})
    left = store.lease(f"left{n}")
    assert left is not None
    _LEFT.append(left)  # as of a process that is killed


@needs_root
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o007])
def test_a_group_works_in_one_store_whatever_the_umask(umask: int) -> None:
    """Folders keep mode and group of the top folder, and hand the group on; files are as readable and writable as it says."""
    with group_folder() as path:
        as_user(ALICE, lambda: use(path, 1), umask=umask)
        as_user(BOB, lambda: use(path, 2), umask=umask)
        for name, (mode, group) in modes(path).items():
            folder = (path / name).is_dir()
            lease = name.endswith(".lease")
            assert (mode, group) == ("2770" if folder else "0640" if lease else "0660", LAB), name
        seen = as_user(BOB, lambda: [r.key for r in Store(path).records()], umask=umask)
        assert seen == [of_shard(1), of_shard(2)]
        assert as_user(BOB, lambda: Store(path).put(in_shard(1, reason=None)), umask=umask)
        assert as_user(ALICE, lambda: Store(path).load_checkpoint("family-2") is not None, umask=umask)


@needs_root
@pytest.mark.parametrize(("top", "file", "folder"), [(0o755, "0644", "0755"), (0o700, "0600", "0700"), (0o2775, "0664", "2775")])
def test_the_top_folder_says_who_may(top: int, file: str, folder: str) -> None:
    with group_folder(top) as path:
        as_user(ALICE, lambda: Store(path).put(in_shard(1)), umask=0o027)
        found = modes(path)
        assert {mode for name, (mode, _) in found.items() if (path / name).is_file()} == {file}
        assert {mode for name, (mode, _) in found.items() if (path / name).is_dir()} == {folder}


def test_a_folder_appears_with_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody meets it closed; that another process makes it at the same moment is no matter."""
    tmp_path.chmod(0o2770)
    renamed = os.rename

    def rename(old: Any, new: Any) -> None:
        assert stat.S_IMODE(os.stat(old).st_mode) == 0o2770
        os.mkdir(new)
        (Path(new) / "of another").touch()
        renamed(old, new)

    monkeypatch.setattr(os, "rename", rename)
    make_folder(tmp_path / "cells" / "ab", tmp_path)
    assert [path.name for path in (tmp_path / "cells").iterdir()] == ["ab", "of another"] or (tmp_path / "cells" / "ab").is_dir()
    assert not list(tmp_path.rglob("*.tmp"))


@needs_root
def test_a_lock_of_another_owner_is_a_lock(caplog: pytest.LogCaptureFixture) -> None:
    """0644, as in older stores, is locked by reading; one that cannot be read is named with its owner, and nothing else is said."""
    with group_folder() as path:
        as_user(ALICE, lambda: has_locks(path / "leases", path))
        lock = path / "leases" / ".lock"
        lock.chmod(0o644)

        def warned() -> list[str]:
            with caplog.at_level(logging.WARNING):
                caplog.clear()
                lease_module._SAID.clear()
                Store(path).warn_without_locks()
                return [entry.getMessage() for entry in caplog.records]

        assert as_user(BOB, warned) == []
        lock.chmod(0o600)
        [said] = as_user(BOB, warned)
        assert f"belongs to user {ALICE} (group {LAB}, mode 0600)" in said
        assert f"chmod g+r {lock}" in said
        assert "no file locks" not in said


@needs_root
def test_a_lock_of_another_owner_excludes() -> None:
    """What one holds, the other waits for."""
    with group_folder() as path:
        as_user(ALICE, lambda: has_locks(path / "leases", path))
        (path / "leases" / ".lock").chmod(0o644)

        def waited() -> float:
            lease_module._GUARD_S = 0.3
            began = time.monotonic()
            with lease_module._guard(path / "leases", path):
                return time.monotonic() - began

        with lease_module._guard(path / "leases", path):
            assert as_user(BOB, waited) >= 0.3
        assert as_user(BOB, waited) < 0.3


@needs_root
def test_a_dead_users_lease_is_taken_over() -> None:
    with group_folder() as path:
        as_user(ALICE, lambda: Store(path).put(in_shard(1)))
        pid = dead_pid()
        as_user(ALICE, lambda: (make_folder(path / "leases", path), write_lease(path / "leases" / "ab.lease", pid=pid)))
        assert as_user(BOB, lambda: Store(path).lease("ab") is not None)


def refusal(work: Any) -> str:
    try:
        work()
    except StoreError as error:
        return f"{type(error).__name__}: {error}"
    return "no refusal"


@needs_root
@pytest.mark.parametrize("what", ["record", "shard"])
def test_what_cannot_be_read_is_neither_replaced_nor_run(what: str) -> None:
    """A 0600 record, or a 0700 shard: every way to run or replace it says whose it is and what chmod helps. Others are not held up."""
    with group_folder() as path:
        as_user(ALICE, lambda: Store(path).put(in_shard(1)))
        place = path / "cells" / "ab" / (f"{of_shard(1)}.json" if what == "record" else "")
        place.chmod(0o600 if what == "record" else 0o700)
        before = place.stat().st_mtime_ns
        store = lambda: Store(path)  # noqa: E731
        for attempt in (
            lambda: store().unfinished([of_shard(1)]),
            lambda: store().cached(of_shard(1)),
            lambda: store().outcome(of_shard(1)),
            lambda: store().put(in_shard(1)),
            lambda: store().put(dataclasses.replace(failed(1), key=of_shard(1))),
            lambda: store().discard(of_shard(1)),
        ):
            said = as_user(BOB, lambda attempt=attempt: refusal(attempt))
            assert said.startswith("UnreadableRecordError: "), said
            assert f"{place} belongs to user {ALICE} (group {LAB}, mode {'0600' if what == 'record' else '0700'})" in said
            assert f"chmod g+{'r' if what == 'record' else 'x'} {place}" in said
        assert place.stat().st_mtime_ns == before
        assert as_user(BOB, lambda: store().unfinished([key_of(9)])) == [key_of(9)]
        assert as_user(BOB, lambda: dict(store().summaries([of_shard(1)]))) == {of_shard(1): None}
        assert as_user(ALICE, lambda: store().cached(of_shard(1)) is not None)


@needs_root
def test_a_folder_that_cannot_be_written_says_whose_it_is() -> None:
    """As a second user met it in a store of ordinary umasks; a stranger is told of the group."""
    with group_folder() as path:
        as_user(ALICE, lambda: Store(path).put(in_shard(1)))
        shard = path / "cells" / "ab"
        shard.chmod(0o755)
        said = as_user(BOB, lambda: refusal(lambda: Store(path).put(in_shard(2))))
        assert f"{shard} belongs to user {ALICE} (group {LAB}, mode 0755)" in said
        assert f"chmod g+wx {shard}" in said
        path.chmod(0o2775)
        said = as_user(STUDENT, lambda: refusal(lambda: Store(path).put(record(3))), group=STUDENT)
        assert f"join the group {LAB}" in said


@needs_root
def test_a_damaged_record_that_cannot_be_moved_stays() -> None:
    with group_folder() as path:
        as_user(ALICE, lambda: Store(path).put(in_shard(1)))
        place = path / "cells" / "ab" / f"{of_shard(1)}.json"
        place.write_bytes(b"{}")
        for folder in (path, place.parent):
            folder.chmod(0o755)
        said = as_user(BOB, lambda: refusal(lambda: Store(path).unfinished([of_shard(1)])))
        assert "is damaged" in said
        assert place.read_bytes() == b"{}"


def test_an_unreadable_disk_is_no_reason_to_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(tmp_path).put(record(1))

    def broken(*_: Any, **__: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("cglsuite.cells.storage.layout.read_regular", broken)
    with pytest.raises(UnreadableRecordError, match="Input/output error"):
        Store(tmp_path).unfinished([key_of(1)])


# --- read through --------------------------------------------------------------------------------------------------------------------


def shared(tmp_path: Path) -> Path:
    path = tmp_path / "shared"
    Store(path).put(record(1, beside=CURVES))
    Store(path).put(failed(2))
    Store(path).put_search(key_of(7), {"candidates": []})
    return path


def test_finished_records_of_another_store_count(tmp_path: Path) -> None:
    """Results only, with their curves, rows and digests; own ones come first; nothing is written there."""
    path = shared(tmp_path)
    before = modes(path)
    mine = Store(tmp_path / "mine", read=[path])
    mine.put(record(3))
    assert mine.unfinished([key_of(n) for n in (1, 2, 3, 4)]) == [key_of(2), key_of(4)]
    assert mine.cached(key_of(1)) == record(1, beside=CURVES)
    assert mine.get(key_of(2)) is None
    assert [row.key for row in mine.rows([key_of(1), key_of(3)])] == [key_of(3), key_of(1)]
    assert (mine.get(key_of(1)) or pytest.fail("absent")).training_curves() == CURVES.trainings
    assert mine.keys() == [key_of(n) for n in (1, 2, 3)]
    assert mine.searches() == [key_of(7)]
    assert mine.get_search(key_of(7)) == {"candidates": []}
    assert {key for key, _ in mine.digests()} == {key_of(n) for n in (1, 2, 3)}
    mine.put(failed(2))
    with mine.set_aside(key_of(1)):
        assert mine.get(key_of(1)) is None
        assert dict(mine.summaries([key_of(1)])) == {key_of(1): None}
        mine.put(record(1))
    mine.discard(key_of(2))
    assert modes(path) == before
    assert Store(tmp_path / "mine").keys() == [key_of(1), key_of(3)]


def test_the_environment_names_stores_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_READ", str(shared(tmp_path)))
    assert Store(tmp_path / "mine").cached(key_of(1)) is not None
    assert Store(tmp_path / "mine", read=()).cached(key_of(1)) is None
    mine = Store(tmp_path / "shared")
    assert mine.read == []  # itself


def test_a_store_to_read_must_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no store to read at .*/nowhere: name the folder that contains cells/"):
        Store(tmp_path / "mine", read=[tmp_path / "nowhere"])


@needs_root
def test_a_student_reads_a_store_that_only_a_group_writes() -> None:
    """Nothing is written there, not even a lock or a lease; what is missing goes to the student's own store."""
    with group_folder(0o2775) as path:
        as_user(ALICE, lambda: Store(path).put(in_shard(1)))
        before = modes(path)

        def work() -> list[str]:
            mine = Store(path.parent / "student", read=[path])
            left = mine.unfinished([of_shard(1), of_shard(2)])
            mine.put(in_shard(2))
            mine.sweep()
            return left

        (path.parent / "student").mkdir()
        os.chown(path.parent / "student", STUDENT, STUDENT)
        assert as_user(STUDENT, work, group=STUDENT) == [of_shard(2)]
        assert modes(path) == before
        assert Store(path).keys() == [of_shard(1)]


def test_a_folder_that_another_process_has_just_made_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: two workers made cells/f0 at once, and the first one's record could not be written into the folder that was gone."""
    place, mkdir, made = tmp_path / "cells" / "f0", os.mkdir, []

    def second(folder: Path, mode: int) -> None:
        mkdir(folder, mode)
        if folder.parent.name == "cells" and not made:
            mkdir(place)
            made.append(os.open(place, os.O_DIRECTORY))

    monkeypatch.setattr(os, "mkdir", second)
    make_folder(place, tmp_path)
    with open(os.open("record", os.O_CREAT | os.O_WRONLY, dir_fd=made[0]), "w") as file:
        file.write("{}")
    os.close(made[0])
    assert [path.name for path in place.parent.iterdir()] == ["f0"]
    assert [path.name for path in place.iterdir()] == ["record"]
