"""The store: atomic whatever happens, honest about what it cannot read, and never counting what is not done."""

from __future__ import annotations

import dataclasses
import errno
import json
import logging
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from report_lab import CAMPAIGN, catalogue_of, record_of

from cglsuite.base.errors import StoreError
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.records.record import SCHEMA, Record
from cglsuite.cells.storage.store import Store, default_store
from cglsuite.specs import METRICS

GOLDEN = Path(__file__).parents[1] / "data" / "record-schema-4.json"


def record(**changes: Any) -> Record:
    return dataclasses.replace(Record.from_json(GOLDEN.read_bytes()), **changes)


def failed(**changes: Any) -> Record:
    return record(status="failed", reason="boom", matrix=[], validation_matrix=[], **changes)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


def files(store: Store) -> list[str]:
    return sorted(p.relative_to(store.path).as_posix() for p in store.path.rglob("*") if p.is_file())


def test_opening_writes_nothing_and_default_is_environment_then_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at a store leaves no traces."""
    store = Store(tmp_path / "absent")
    assert store.get("ab" * 32) is None
    assert list(store.records()) == []
    assert not store.path.exists()
    monkeypatch.delenv("CGLSUITE_STORE", raising=False)
    assert default_store() == Path(".cglsuite")
    monkeypatch.setenv("CGLSUITE_STORE", str(tmp_path / "elsewhere"))
    assert Store().path == tmp_path / "elsewhere"


def test_put_and_get(store: Store) -> None:
    """One sorted-key file per record; all of them are found again."""
    one, two = record(), record(key="12" * 32)
    store.put(one)
    store.put(two)
    assert store.get(one.key) == one
    assert list(store.records()) == [two, one]
    assert files(store) == [f"cells/12/{two.key}.json", f"cells/ab/{one.key}.json"]
    assert store.record_path(one.key).read_text() == one.to_text()


def test_only_done_counts_and_is_never_replaced_by_less(store: Store) -> None:
    """A failure is remembered but not cached; a result survives a later failure."""
    store.put(failed())
    assert store.get(failed().key) == failed()
    assert store.cached(failed().key) is None
    store.put(record())
    store.put(failed())
    assert store.cached(record().key) == record()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        GOLDEN.read_bytes()[:500],
        b"\x80\x04.",
        GOLDEN.read_bytes().replace(b"0.875", b"NaN"),
        GOLDEN.read_bytes().replace(b"0.875]", b"0.885]", 1),
    ],
)
def test_unreadable_records_are_set_aside_and_reported_once(store: Store, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing damaged counts, nothing is thrown away, everything else is still there."""
    good, key = record(key="12" * 32), record().key
    store.put(good)
    store.record_path(key).parent.mkdir()
    store.record_path(key).write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert list(store.records()) == [good]
        assert store.get(key) is None
    assert len(caplog.records) == len(store.problems) == 1
    assert key in caplog.text
    assert (store.path / "corrupt" / f"{key}.json").read_bytes() == content
    assert not store.record_path(key).exists()
    store.record_path(key).write_bytes(b"again")
    assert store.get(key) is None
    assert (store.path / "corrupt" / f"{key}.1.json").read_bytes() == b"again"


def test_a_record_that_may_not_be_read_is_reported_and_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is another user's, perhaps, and no damage: it lies where it lay, and the problem names it."""
    store.put(record())
    path = store.record_path(record().key)

    def refuse(path: Path) -> Record:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr("cglsuite.cells.storage.store.read_record", refuse)
        assert store.get(record().key) is None
        assert list(store.records()) == []
    assert [(p.path, p.reason) for p in store.problems][:1] == [(path, "cannot be read: Permission denied")]
    assert record().key in caplog.text
    assert path.exists()
    assert Store(store.path).get(record().key) == record()


def test_a_record_under_another_key_does_not_count(store: Store) -> None:
    """A file copied under a foreign name would answer for a cell that was never run."""
    store.put(record())
    foreign = store.record_path("12" * 32)
    foreign.parent.mkdir()
    foreign.write_bytes(store.record_path(record().key).read_bytes())
    assert store.get("12" * 32) is None
    assert "another key" in store.problems[0].reason
    assert store.cached(record().key) == record()


def test_a_newer_record_is_left_where_it_is(store: Store) -> None:
    """It is not corrupt: a newer suite wrote it."""
    path = store.record_path(record().key)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(json.loads(GOLDEN.read_text()) | {"schema": SCHEMA + 1}))
    assert store.get(record().key) is None
    assert store.get(record().key) is None
    assert path.exists()
    assert len(store.problems) == 1
    assert store.problems[0].moved_to is None


def test_only_records_that_lack_a_newer_metric_are_read_for_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of settings to which the metric does not apply: tables of thousands of records are made of their rows."""
    newer = METRICS["forgetting_max_any_stage"]
    for planned in plan_campaign(Campaign.parse(CAMPAIGN), catalogue_of()):
        if planned.ready:
            store.put(record_of(planned))
    plain, read = Store._counting_record, list[str]()

    def stored(self: Store, key: str) -> Record | None:
        read.append(key)
        return plain(self, key)

    monkeypatch.setattr(Store, "_counting_record", stored)
    rows = list(store.completed_rows(catalogue_of(("metric", newer))))
    assert {row.setting for row in rows} == {"task-il", "class-il"}
    assert set(read) == {row.key for row in rows if row.setting == "task-il"}
    assert [row.metrics[newer.name] for row in rows if row.setting == "task-il"] == pytest.approx([(0.2 + 0.1) / 2] * len(set(read)))


def test_keys_cannot_leave_the_store(store: Store) -> None:
    """A key is no path."""
    for key in ("../x", "a/b", "", ".hidden", "a\0b"):
        with pytest.raises(StoreError, match="is not a key"):
            store.get(key)


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_full_disk_says_so_and_loses_nothing(store: Store, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """The old record is still there, no temporary file is left, and the message says where and what to do."""
    store.put(failed())
    before = files(store)
    with monkeypatch.context() as patch:
        patch.setattr(os, broken, _full)
        with pytest.raises(StoreError, match=r"cells.*full.*free some space.*--store"):
            store.put(record())
        if broken == "replace":
            with pytest.raises(StoreError, match="checkpoints"):
                store.save_checkpoint("ab", {"x": 1})
        with pytest.raises(StoreError, match="searches"):
            store.put_search("ab", {})
    assert files(store) == before
    assert store.get(failed().key) == failed()
    store.put(record())
    assert store.cached(record().key) == record()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs the device /dev/full")
def test_a_disk_that_is_full_on_write(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with the kernel's own error instead of a simulated one."""
    real = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *a, **k: real("/dev/full", os.O_WRONLY) if str(path).endswith(".tmp") else real(path, *a, **k)
    )
    with pytest.raises(StoreError, match="full"):
        store.put(record())
    monkeypatch.undo()
    assert files(store) == []


def test_a_store_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """Said at once, not at the first record."""
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(StoreError, match="is a file"):
        Store(path)


PUT_FOREVER = """
import dataclasses, sys
from cglsuite.cells.records.record import Curves
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
store, one = Store(sys.argv[1]), Record.from_json(open(sys.argv[2]).read())
n = 0
while True:
    curves = Curves(trainings=[{"task": 1, "loss": [0.1] * (n % 50) * 1000, "monitor": [], "best_epoch": 0}])
    store.put(dataclasses.replace(one, reason="x" * (n % 50) * 1000, beside=curves))
    if n == 0:
        print("ready", flush=True)
    n += 1
"""


def test_kill_9_in_the_middle_of_puts_never_leaves_half_a_record(store: Store) -> None:
    """Ten processes that do nothing but put are killed at different moments; after each the record is whole, and has its curves."""
    source = str(Path(__file__).parents[3])
    for attempt in range(10):
        process = subprocess.Popen(
            [sys.executable, "-c", PUT_FOREVER, str(store.path), str(GOLDEN)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])},
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.001 * attempt**2)
            process.send_signal(signal.SIGKILL)
        kept = store.cached(record().key)
        assert kept is not None
        assert [len(c["loss"]) for c in kept.training_curves()] == [len(kept.reason or "")]
        assert [r.key for r in store.records()] == [record().key]
        assert not store.problems


def test_what_killed_writers_leave_is_swept_once_it_is_old(store: Store) -> None:
    """Only hidden temporary files, only old ones."""
    store.put(record())
    old, new = store.path / "cells" / ".a.json.1-x.tmp", store.path / "cells" / ".b.json.1-x.tmp"
    sharded = store.path / "cells" / "ab" / ".c.json.1-x.tmp"
    for path in (old, new, sharded):
        path.write_text("half")
    os.utime(old, (0, 0))
    os.utime(sharded, (0, 0))
    assert list(store.records()) == [record()]
    store.sweep()
    assert files(store) == ["cells/.b.json.1-x.tmp", f"cells/ab/{record().key}.json"]


def test_attempts_of_finished_cells_are_swept(store: Store) -> None:
    """A runner may be killed after its record is written and before it takes its attempt back; nobody begins that cell again."""
    store.put(record())
    other, busy = record(key="f" * 64), record(key="e" * 64)
    store.put(busy)
    attempts = [store.path / "attempts" / f"{one.key}.txt" for one in (record(), other, busy)]
    attempts[0].parent.mkdir()
    for path in attempts:
        path.write_text("process 1 on gone, begun 2026-01-01 00:00:00\n")
    lease = Store(store.path).lease(busy.key)
    assert lease is not None
    with lease:  # somebody runs it again
        store.sweep()
    assert [path.exists() for path in attempts] == [False, True, True]
    store.sweep()
    assert [path.exists() for path in attempts] == [False, True, False]


@pytest.mark.parametrize("holder", ["filelock/2\npid=1\n", "filelock/2\npid=12\nhost=node7\nmode=lease\ntoken=ab\nduration=60.0\n"])
def test_old_leases_of_finished_cells_are_swept(store: Store, holder: str) -> None:
    """A runner may be killed while it writes a lease on a cell that has a record; nobody waits for that cell, so nobody takes it over."""
    store.put(record())
    leases = [store.path / "leases" / f"{key}.lease" for key in (record().key, "e" * 64)]
    leases[0].parent.mkdir(exist_ok=True)
    for path in leases:
        path.write_text(holder)
    store.sweep()
    assert [path.exists() for path in leases] == [True, True]
    for path in leases:
        os.utime(path, (time.time() - 7200,) * 2)
    store.sweep()
    assert [path.exists() for path in leases] == [False, True]


def test_checkpoints_come_back_and_damaged_ones_are_absent(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Tensors and plain values, exactly; one flipped bit, a cut file or another's checkpoint is no checkpoint."""
    import torch

    payload = {"state": {"w": torch.arange(6.0).reshape(2, 3)}, "task": 2, "curve": [0.5, None]}
    assert store.load_checkpoint("family-1") is None
    store.save_checkpoint("family-1", payload)
    found = store.load_checkpoint("family-1")
    assert found is not None
    assert torch.equal(found["state"]["w"], payload["state"]["w"])
    assert (found["task"], found["curve"]) == (2, [0.5, None])
    whole = store.checkpoint_path("family-1").read_bytes()
    flipped = bytearray(whole)
    flipped[-200] ^= 1
    for damaged in (b"", whole[:-10], bytes(flipped), whole.replace(b"family-1", b"family-2", 1)):
        store.checkpoint_path("family-1").write_bytes(damaged)
        assert store.load_checkpoint("family-1") is None
        assert not store.checkpoint_path("family-1").exists()
    assert caplog.text.count("is ignored") == 4


def test_checkpoints_of_earlier_versions_are_read(store: Store) -> None:
    """Their first line has no leading zeros."""
    store.save_checkpoint("family-1", {"task": 2})
    path = store.checkpoint_path("family-1")
    header, _, body = path.read_bytes().partition(b"\n")
    size = f"{len(body):020d}".encode()
    assert size in header
    path.write_bytes(header.replace(size, str(len(body)).encode()) + b"\n" + body)
    assert store.load_checkpoint("family-1") == {"task": 2}


def test_a_checkpoint_is_written_as_it_is_made(store: Store) -> None:
    """Not first put together in memory, which for a large model would be the peak of the whole cell."""
    import torch

    weights = {str(i): torch.full((2**20,), float(i)) for i in range(4)}
    tracemalloc.start()
    store.save_checkpoint("family-1", weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < weights["0"].nbytes + 2**20 < sum(w.nbytes for w in weights.values()) / 2
    found = store.load_checkpoint("family-1")
    assert found is not None
    assert all(torch.equal(found[name], w) for name, w in weights.items())


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs the device /dev/full")
def test_a_disk_that_fills_up_within_a_checkpoint(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch reports a failed write in words of its own; the message is the disk's."""
    import torch

    real = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *a, **k: real("/dev/full", os.O_WRONLY) if str(path).endswith(".tmp") else real(path, *a, **k)
    )
    with pytest.raises(StoreError, match=r"checkpoints.*full.*free some space"):
        store.save_checkpoint("ab", {"x": torch.zeros(2**20)})
    assert store.saved == 0


def test_checkpoints_are_never_unpickled(store: Store, tmp_path: Path) -> None:
    """A checkpoint that carries code is refused even with the right checksum."""
    import torch

    from cglsuite.cells.storage import store as module

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "pwned",))

    store.save_checkpoint("evil", {"x": 1})
    path = store.checkpoint_path("evil")
    body = module._CountingStream()
    with path.open("wb") as body.file:
        torch.save({"x": Evil()}, body)
    path.write_bytes(module._checkpoint_header("evil", body) + path.read_bytes())
    assert store.load_checkpoint("evil") is None
    assert not (tmp_path / "pwned").exists()


def test_dropping_checkpoints_takes_a_family_and_nothing_else(store: Store) -> None:
    """A key stands for itself and for the names that go on from it."""
    for name in ("abc", "abc-1", "abc-2", "abcd-1", "other"):
        store.checkpoint_path(name).parent.mkdir(parents=True, exist_ok=True)
        store.checkpoint_path(name).write_text("")
    store.drop_checkpoints(["abc", "absent"])
    assert files(store) == ["checkpoints/abcd-1.pt", "checkpoints/other.pt"]


def test_a_record_set_aside_is_not_seen_and_stays_until_a_finished_one_replaces_it(store: Store) -> None:
    """Running again never costs a result: other readers have it all the time."""
    key, newer = record().key, record(metrics={"x": 1.0})
    store.put(record())
    with store.set_aside(key):
        assert store.get(key) is None
        assert store.cached(key) is None
        assert Store(store.path).cached(key) == record()
        assert store.put(failed()) is False
    assert store.cached(key) == record()
    with store.set_aside(key):
        assert store.put(newer) is True
    assert store.cached(key) == newer


RERUN = """
import sys
sys.path.insert(0, sys.argv[2])
import fake_cells
from cglsuite.cells.obtain import obtain_record
from cglsuite.cells.plan import CellRequest, plan_cell
from cglsuite.cells.storage.store import Store
catalogue = fake_cells.FakeCatalogue()
planned = plan_cell(CellRequest(scenario="toy/task-il@begin-1", method="bare", overrides={"method.behave": "kill"}), catalogue)
store = Store(sys.argv[1])
store.put(fake_cells.make_record(planned.cell))
print(planned.key, flush=True)
obtain_record(planned, catalogue, store, rerun=True)
"""


def test_kill_9_in_the_middle_of_a_rerun_leaves_the_former_record(store: Store) -> None:
    """A finished record is only ever replaced by a finished one, whatever becomes of the process that runs the cell again."""
    tests = Path(__file__).parents[2]
    path = os.pathsep.join([str(tests.parent), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, "-c", RERUN, str(store.path), str(tests / "tools")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    found = store.cached(ended.stdout.strip())
    assert found is not None
    assert found.done


def test_a_runner_without_a_permit_replaces_nothing(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """It is asked when the file is written already; nothing of it is left over."""
    store.put(record())
    seen: list[list[str]] = []

    def permit() -> bool:
        seen.append([name for name in files(store) if name.endswith(".tmp")])
        return False

    assert store.put(record(metrics={"x": 1.0}), permit=permit) is False
    assert [len(names) for names in seen] == [1]
    assert files(store) == [f"cells/ab/{record().key}.json"]
    assert store.cached(record().key) == record()
    assert "taken over its lease" in caplog.text
    assert store.put(record(metrics={"x": 1.0}), permit=lambda: True) is True
    assert store.cached(record().key) == record(metrics={"x": 1.0})


def test_a_runner_without_a_permit_still_fills_an_empty_place(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it computed is worth keeping as long as nobody else has a record; where there are no links it is let go."""
    assert store.put(record(), permit=lambda: False) is True
    assert files(store) == [f"cells/ab/{record().key}.json"]
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, "no links")))
    assert store.put(record(key="12" * 32), permit=lambda: False) is False
    assert files(store) == [f"cells/ab/{record().key}.json"]


@pytest.mark.parametrize("damaged", ["{", "[1]", "null"])
def test_searches_are_stored_and_a_damaged_one_is_absent(store: Store, damaged: str) -> None:
    """Like records, and it is told."""
    assert store.get_search("ab") is None
    path = store.put_search("ab", {"chosen": 1})
    assert store.get_search("ab") == {"chosen": 1}
    path.write_text(damaged)
    assert store.get_search("ab") is None
    assert files(store) == ["corrupt/ab.json"]
    assert len(store.problems) == 1
