"""Publish and pull: shards named by digests, a manifest that only grows, and the rules of a merge."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from stored_records import failed, filled, key_of, record, slower, snapshot, source, unlike

from cglsuite.base.errors import StoreError, UsageError
from cglsuite.cells.records.frame import Row, results_frame
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage import shards
from cglsuite.cells.storage.packed import LocalFolder
from cglsuite.cells.storage.shards import read_manifest
from cglsuite.cells.storage.store import Store
from cglsuite.cli.main import run
from cglsuite.commons import exchange as publishing
from cglsuite.commons.exchange import Publication, Pull, publish, pull

ROOT = Path(__file__).parents[3]
OUTCOME = {"trials": [{"value": 1.5}], "chosen": 0}


def published(store: Store, place: Path) -> Publication:
    return publish(Store(store.path, quarantine=False), str(place))


def pulled(place: Path, store: Path) -> Pull:
    return pull(str(place), Store(store))


def records(path: Path) -> dict[str, Record]:
    store = Store(path, quarantine=False)
    found = {one.key: one for one in store.records()}
    assert store.problems == []
    return found


def files(place: Path, ending: str) -> list[Path]:
    return sorted(p for p in place.rglob(f"*{ending}") if p.is_file())


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of two records, frames of one."""
    monkeypatch.setattr(publishing, "MAX_RECORDS", 2)
    monkeypatch.setattr("cglsuite.cells.storage.shards.FRAME_BYTES", 1)


# --- what is written, and what it is read as -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_shards")
def test_records_are_the_same_after_the_way(tmp_path: Path) -> None:
    """Published, read in place, and pulled: every record, digest, listing and table."""
    a = filled(tmp_path / "a", record(1), record(2), failed(3), record(4), record(5))
    a.put_search("ab" * 8, OUTCOME)
    before = snapshot(a.path)
    done = published(a, tmp_path / "p")
    assert snapshot(a.path) == before
    assert (len(done.merge.new), done.records, done.shards, done.merge.searches, done.merge.clean) == (5, 5, 3, 1, True)
    taken = pulled(tmp_path / "p", tmp_path / "b")
    assert (sorted(taken.merge.new), taken.shards, taken.merge.searches, taken.clean) == (a.keys(), 3, 1, True)
    assert not (tmp_path / "b" / "cells").exists()
    frame = results_frame(a.rows())
    for path in (tmp_path / "p", tmp_path / "b"):
        other = Store(path)
        assert records(path) == records(a.path)
        assert other.keys() == a.keys()
        assert list(other.summaries()) == list(a.summaries())
        assert list(other.digests()) == list(a.digests())
        assert other.unfinished(a.keys()) == [key_of(3)]
        assert other.present({key_of(1), key_of(9)}) == [key_of(1)]
        assert other.cached(key_of(3)) is None
        assert [one.key for one in other.with_designs({record().design})] == a.keys()
        assert other.get_search("ab" * 8) == OUTCOME
        assert results_frame(other.rows()).equals(frame)
        assert results_frame(other.records()).equals(frame)
    assert results_frame(a.records()).equals(frame)


def test_every_file_is_named_by_its_content_and_none_is_written_twice(tmp_path: Path) -> None:
    a = filled(tmp_path / "a", record(1))
    published(a, tmp_path / "p")
    first = snapshot(tmp_path / "p")
    again = published(a, tmp_path / "p")
    assert (again.records, again.entry, again.written_bytes, again.merge.same) == (0, None, 0, 1)
    assert snapshot(tmp_path / "p") == first
    a.put(record(2))
    a.put(slower(1))  # the same result
    more = published(a, tmp_path / "p")
    assert (more.records, more.shards, more.merge.new, more.merge.same) == (1, 1, [key_of(2)], 1)
    after = snapshot(tmp_path / "p")
    assert {name: after[name] for name in first} == first
    for name, content in after.items():
        if "numbers" not in name:
            assert Path(name).name.partition(".")[0] == hashlib.sha256(content).hexdigest()
    entries = read_manifest(LocalFolder(tmp_path / "p")).entries
    assert [entry.model.parents for entry in entries] == [[], [entries[0].name]]


@pytest.mark.usefixtures("small_shards")
def test_the_files_are_what_common_tools_read(tmp_path: Path) -> None:
    """One zstd stream of JSON lines; a Parquet table with the scalars."""
    import pandas as pd

    a = filled(tmp_path / "a", record(1), record(2))
    published(a, tmp_path / "p")
    (lines,), (table,) = files(tmp_path / "p", ".jsonl.zst"), files(tmp_path / "p", ".parquet")
    text = pa.CompressedInputStream(pa.memory_map(str(lines)), "zstd").read()
    assert text.decode() == "".join(one.to_text() for one in a.records())
    frame = pd.read_parquet(table)
    assert list(frame["key"]) == a.keys()
    assert list(frame["metrics.average_performance"]) == [one.metrics["average_performance"] for one in a.records()]
    assert [json.loads(text) for text in frame["configuration"]] == [one.cell["configuration"] for one in a.records()]


def test_rows_in_shards_are_those_of_the_records(tmp_path: Path) -> None:
    """Absent names stay absent, whole numbers whole, and a metric that is newer than a record is computed from it."""
    one, bare = record(1), record(2, metrics={}, memory={"peak_bytes": 2**40, "share": 0.5}, timings_s={"total": 3})
    a = filled(tmp_path / "a", one, bare, failed(3))
    published(a, tmp_path / "p")
    digests = dict(Store(tmp_path / "p").digests())
    expected = {key: Row.of(made, digests[key]) for key, made in records(a.path).items()}
    for path in (a.path, tmp_path / "p"):
        rows = {row.key: row for row in Store(path).rows()}
        assert rows == expected
        assert (rows[key_of(2)].metrics, rows[key_of(2)].memory) == ({}, {"peak_bytes": 2**40, "share": 0.5})
        assert isinstance(rows[key_of(2)].timings_s["total"], (int, float))


@pytest.mark.nightly
@pytest.mark.plugins
def test_results_of_a_pulled_store_read_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table is that of the store that was published, byte for byte."""
    full = record(1)
    assert run(["results", "--store", str(filled(tmp_path / "one", full).path)]) == 0
    capsys.readouterr()
    a = filled(tmp_path / "a", full, failed(2))
    published(a, tmp_path / "p")
    pulled(tmp_path / "p", tmp_path / "b")
    tables = []
    for store in ("a", "p", "b"):
        assert run(["results", "--store", str(tmp_path / store)]) == 0
        tables.append(capsys.readouterr().out)
    assert len(set(tables)) == 1
    assert len(tables[0].splitlines()) == 3

    def refuse(*args: Any) -> None:
        raise AssertionError("a record was read")

    rows = list(Store(tmp_path / "b").rows())
    monkeypatch.setattr(Record, "from_json", refuse)
    assert list(Store(tmp_path / "b").rows()) == rows
    assert [key for key, one in Store(tmp_path / "b").summaries() if one is not None and one.done] == [key_of(1)]


def test_only_what_is_new_is_pulled(tmp_path: Path) -> None:
    a = filled(tmp_path / "a", record(1))
    published(a, tmp_path / "p")
    pulled(tmp_path / "p", tmp_path / "b")
    before = snapshot(tmp_path / "b")
    again = pulled(tmp_path / "p", tmp_path / "b")
    assert (again.shards, again.read_bytes, again.entries, again.merge.new, again.clean) == (0, 0, [], [], True)
    assert snapshot(tmp_path / "b") == before
    a.put(record(2))
    published(a, tmp_path / "p")
    more = pulled(tmp_path / "p", tmp_path / "b")
    assert (more.shards, more.merge.new) == (1, [key_of(2)])
    assert records(tmp_path / "b") == records(a.path)


def test_a_pulled_store_can_be_published_merged_and_pulled_again(tmp_path: Path) -> None:
    a = filled(tmp_path / "a", record(1), failed(2))
    a.put_search("ab" * 8, OUTCOME)
    published(a, tmp_path / "p")
    pulled(tmp_path / "p", tmp_path / "b")
    assert published(Store(tmp_path / "b"), tmp_path / "q").records == 2
    assert pulled(tmp_path / "q", tmp_path / "c").clean
    assert run(["merge", str(tmp_path / "c"), "--into", str(tmp_path / "d")]) == 0
    assert len(files(tmp_path / "d" / "cells", ".json")) == 2
    for path in ("c", "d"):
        assert records(tmp_path / path) == records(a.path)
        assert Store(tmp_path / path).get_search("ab" * 8) == OUTCOME
    assert published(Store(tmp_path / "d"), tmp_path / "q").entry is None


def test_an_earlier_record_and_one_that_was_reformatted(tmp_path: Path) -> None:
    """Old schemas and lines that are not as the suite writes them go the same way."""
    a = filled(tmp_path / "a", record(2))
    golden = json.loads((ROOT / "tests" / "cells" / "data" / "record-schema-3.json").read_text())
    a.record_path(golden["key"]).parent.mkdir(parents=True, exist_ok=True)
    a.record_path(golden["key"]).write_text(json.dumps(golden, indent=2))
    assert published(a, tmp_path / "p").records == 2
    assert pulled(tmp_path / "p", tmp_path / "b").clean
    assert records(tmp_path / "b") == records(a.path)
    assert published(a, tmp_path / "p").entry is None


# --- merging ---------------------------------------------------------------------------------------------------------------------------


def test_finished_beats_unfinished_in_both_directions(tmp_path: Path) -> None:
    a = filled(tmp_path / "a", failed(1), record(2))
    published(a, tmp_path / "p")
    b = filled(tmp_path / "b", record(1), failed(2), failed(3))
    done = published(b, tmp_path / "p")
    assert (done.merge.finished, done.merge.kept, done.merge.new, done.records) == ([key_of(1)], [key_of(2)], [key_of(3)], 2)
    assert {key: one.done for key, one in records(tmp_path / "p").items()} == {key_of(1): True, key_of(2): True, key_of(3): False}
    taken = pulled(tmp_path / "p", b.path)
    assert (taken.merge.finished, taken.merge.new, taken.clean) == ([key_of(2)], [], True)
    assert records(b.path) == records(tmp_path / "p")
    assert Store(b.path).cached(key_of(2)) == record(2)


@pytest.mark.parametrize("way", ["pull", "publish"])
def test_unlike_results_are_both_kept_and_reported(tmp_path: Path, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where they meet: in the store that pulls, or in the folder that two publish to; the first one counts."""
    a, b = filled(tmp_path / "a", record(1)), filled(tmp_path / "b", unlike(1), record(2))
    published(a, tmp_path / "p")
    words = ["pull", str(tmp_path / "p"), "--into", str(b.path)] if way == "pull" else ["publish", str(b.path), str(tmp_path / "p")]
    assert run(words) == 1
    out, err = capsys.readouterr()
    assert "the results differ" in out
    assert "Another, torch" in out
    assert "1 cells have two results that differ" in err
    if way == "publish":
        assert records(tmp_path / "p") == {key_of(1): record(1), key_of(2): record(2)}
        assert published(b, tmp_path / "p").entry is None, "an unlike result is published once"
        c = tmp_path / "c"
        assert [one.key for one in pulled(tmp_path / "p", c).merge.conflicts] == [key_of(1)]
        kept, counts, other = Store(c), record(1), unlike(1)
    else:
        kept, counts, other = Store(b.path), unlike(1), record(1)
    assert kept.get(key_of(1)) == counts
    assert [Record.from_json(path.read_bytes()) for path in kept.conflict_files()] == [other]
    assert run(["results", "--store", str(kept.path), "--verify"]) == 1
    kept.conflict_files()[0].unlink()
    assert run(["results", "--store", str(kept.path), "--verify"]) == 0


def test_the_first_pulled_result_stays_whatever_comes_later(tmp_path: Path) -> None:
    for name, one in (("a", unlike(1)), ("b", record(1))):
        published(filled(tmp_path / name, one), tmp_path / f"p{name}")
    for first, second, counts in (("pa", "pb", unlike(1)), ("pb", "pa", record(1))):
        store = tmp_path / f"{first}-{second}"
        assert pulled(tmp_path / first, store).clean
        assert len(pulled(tmp_path / second, store).merge.conflicts) == 1
        assert Store(store).get(key_of(1)) == counts


def test_a_record_of_ones_own_replaces_a_pulled_one(tmp_path: Path) -> None:
    """As after ``--rerun``; an unfinished one does not."""
    published(filled(tmp_path / "a", record(1)), tmp_path / "p")
    pulled(tmp_path / "p", tmp_path / "b")
    b = Store(tmp_path / "b")
    assert not b.put(failed(1))
    assert b.put(slower(1))
    assert b.get(key_of(1)) == slower(1)
    with b.set_aside(key_of(1)):
        assert b.get(key_of(1)) is None
        assert b.unfinished([key_of(1)]) == [key_of(1)]
    b.discard(key_of(1))
    assert b.get(key_of(1)) == record(1)


def test_an_open_store_notices_a_pull(tmp_path: Path) -> None:
    published(filled(tmp_path / "a", record(1)), tmp_path / "p")
    b = filled(tmp_path / "b", record(2))
    assert b.cached(key_of(1)) is None
    pulled(tmp_path / "p", b.path)
    assert b.cached(key_of(1)) == record(1)
    assert b.keys() == [key_of(1), key_of(2)]


@pytest.mark.nightly
def test_every_frame_is_decompressed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty shards of two records whose keys are far apart, read by key; where only one fits, it is read for every record."""
    for one in range(20):
        published(filled(tmp_path / str(one), record(one), record(one + 20)), tmp_path / "p")
    counted, read = [], shards.read_frame
    monkeypatch.setattr(shards, "read_frame", lambda *given: counted.append(given) or read(*given))
    assert set(records(tmp_path / "p")) == {key_of(one) for one in range(40)}
    assert len(counted) == 20
    monkeypatch.setattr("cglsuite.cells.storage.packed._KEPT_BYTES", 1)
    assert records(tmp_path / "p")[key_of(39)] == record(39)
    assert len(counted) == 20 + 40


# --- faults ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".jsonl.zst", ".parquet"])
@pytest.mark.parametrize("fault", ["truncated", "altered", "missing"])
@pytest.mark.usefixtures("small_shards")
def test_a_shard_that_cannot_be_used(tmp_path: Path, ending: str, fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named and left out, the others are pulled, and the next pull brings what was missing."""
    published(filled(tmp_path / "a", *map(record, range(1, 6))), tmp_path / "p")
    broken = files(tmp_path / "p", ending)[1]
    whole = broken.read_bytes()
    damage(broken, fault)
    taken = pulled(tmp_path / "p", tmp_path / "b")
    assert (taken.shards, taken.clean, len(taken.faults), taken.merge.unreadable) == (2, False, 1, [])
    assert {"truncated": "truncated", "altered": "altered", "missing": "missing"}[fault] in taken.faults[0].reason
    assert run(["pull", str(tmp_path / "p"), "--into", str(tmp_path / "b")]) == 1
    assert "records are skipped" in capsys.readouterr().err or fault == "missing"
    left = Store(tmp_path / "b", quarantine=False)
    assert len(left.keys()) in (3, 4)
    assert [problem.reason for problem in left.problems]
    broken.write_bytes(whole)
    assert pulled(tmp_path / "p", tmp_path / "b").clean
    assert records(tmp_path / "b") == records(tmp_path / "a")


def damage(path: Path, fault: str) -> None:
    content = path.read_bytes()
    if fault == "missing":
        path.unlink()
    elif fault == "truncated":
        path.write_bytes(content[:-7])
    else:
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])


@pytest.mark.parametrize("ending", [".jsonl.zst", ".parquet"])
@pytest.mark.parametrize("fault", ["truncated", "altered", "missing"])
@pytest.mark.usefixtures("small_shards")
def test_damage_after_a_pull_is_told_and_the_next_pull_mends_it(tmp_path: Path, ending: str, fault: str) -> None:
    published(filled(tmp_path / "a", *map(record, range(1, 6))), tmp_path / "p")
    pulled(tmp_path / "p", tmp_path / "b")
    damage(files(tmp_path / "b", ending)[0], fault)
    store = Store(tmp_path / "b", quarantine=False)
    found = {one.key: one for one in store.records()}
    assert found.items() <= records(tmp_path / "a").items()
    if not (fault == "altered" and ending == ".parquet"):  # one bit of a column that no listing reads
        assert store.problems
        assert len(found) in (3, 4)
    mended = pulled(tmp_path / "p", tmp_path / "b")
    assert (mended.shards, mended.clean) == (1, True)
    assert records(tmp_path / "b") == records(tmp_path / "a")


@pytest.mark.parametrize("ending", [".parquet", ".jsonl.zst"])
@pytest.mark.timeout(60)
def test_a_pipe_in_place_of_a_shard_is_not_waited_for(tmp_path: Path, ending: str) -> None:
    published(filled(tmp_path / "a", record(1)), tmp_path / "b")
    (shard,) = files(tmp_path / "b", ending)
    shard.unlink()
    os.mkfifo(shard)
    store = Store(tmp_path / "b", quarantine=False)
    assert list(store.records()) == []
    assert "missing" in store.problems[0].reason


@pytest.mark.usefixtures("small_shards")
def test_records_of_a_lost_shard_are_published_again(tmp_path: Path) -> None:
    a = filled(tmp_path / "a", *map(record, range(1, 6)))
    published(a, tmp_path / "p")
    damage(files(tmp_path / "p", ".jsonl.zst")[0], "truncated")
    done = published(a, tmp_path / "p")
    assert not done.merge.clean
    assert "but the manifest lists" in done.merge.unreadable[0].reason
    assert done.records in (1, 2)
    assert pulled(tmp_path / "p", tmp_path / "b").clean
    assert records(tmp_path / "b") == records(a.path)


@pytest.mark.parametrize("lie", ["digest of a record", "bounds", "scalar", "key"])
def test_a_shard_whose_digest_is_right_and_whose_content_is_wrong(tmp_path: Path, lie: str) -> None:
    """Whoever can write a manifest can state any digest: records are checked all the same, and rows against records."""
    from cglsuite.cells.storage import shards
    from cglsuite.cells.storage.shards import Piece, ShardPieces

    line = record(1).to_text().encode()
    row = Row.of(record(1), hashlib.sha256(line).hexdigest())
    expected = {"digest of a record": "digest", "bounds": "expected 0 to 1", "scalar": "its row says", "key": "its row says key"}[lie]
    if lie == "digest of a record":
        line = line.replace(b'"failed"', b'"passed"', 1).replace(b'"status":"done"', b'"status":"skip"', 1)
    elif lie == "bounds":
        data = {**json.loads(line), "matrix": [[7.0 for _ in r] for r in record(1).matrix]}
        data["digest"] = hashlib.sha256(
            json.dumps({k: v for k, v in data.items() if k != "digest"}, sort_keys=True, separators=(",", ":")).encode()
        ).hexdigest()
        line = json.dumps(data, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    changes: dict[str, Any] = {"sha256": hashlib.sha256(line).hexdigest()}
    changes |= {"scalar": {"metrics": {**row.metrics, "average_performance": 0.999}}, "key": {"key": "ff" * 32}}.get(lie, {})
    import dataclasses

    packed = shards.pack([dataclasses.replace(row, **changes)], [line])
    place, store = LocalFolder(tmp_path / "p"), Store(tmp_path / "b")
    pieces = ShardPieces(records=1, jsonl=piece(place, packed.jsonl, shards.JSONL), parquet=piece(place, packed.parquet, shards.PARQUET))
    assert isinstance(pieces.jsonl, Piece)
    write_entry(tmp_path / "p", shards=[pieces.model_dump()])
    taken = pull(str(tmp_path / "p"), store)
    assert expected in taken.faults[0].reason
    assert store.keys() == []


def piece(place: LocalFolder, data: bytes, ending: str) -> Any:
    from cglsuite.cells.storage.shards import Piece, place_of

    made = Piece(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
    place.write(place_of(made, ending), data)
    return made


def write_entry(place: Path, **changes: Any) -> Path:
    """An entry as its author likes it, named by its digest."""
    entry = {"format": 1, "suite": "0.1.0", "written": "2026-01-01T00:00:00Z", "parents": [], "shards": [], "searches": None, **changes}
    content = json.dumps(entry).encode()
    path = place / "manifest" / f"{hashlib.sha256(content).hexdigest()}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_an_entry_of_a_later_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What this version can read is pulled; nothing is published beside what it cannot."""
    a = filled(tmp_path / "a", record(1))
    published(a, tmp_path / "p")
    write_entry(tmp_path / "p", format=3, novelty=True)
    assert run(["pull", str(tmp_path / "p"), "--into", str(tmp_path / "b")]) == 1
    assert "the entry has format 3, but this version of cglsuite supports formats up to 2: upgrade cglsuite" in capsys.readouterr().err
    assert records(tmp_path / "b") == records(a.path)
    a.put(record(2))
    before = snapshot(tmp_path / "p")
    assert run(["publish", str(a.path), str(tmp_path / "p")]) == 1
    assert "upgrade cglsuite; nothing was published" in capsys.readouterr().err
    assert snapshot(tmp_path / "p") == before


PIECE = {"sha256": "0" * 64, "bytes": 10}


@pytest.mark.parametrize(
    "changes",
    [
        {"shards": [{"records": 1, "jsonl": {**PIECE, "sha256": "../../../etc/passwd"}, "parquet": PIECE}]},
        {"shards": [{"records": 1, "jsonl": {**PIECE, "path": "../../outside"}, "parquet": PIECE}]},
        {"shards": [{"records": 1, "jsonl": {**PIECE, "sha256": "0" * 64 + "\n"}, "parquet": PIECE}]},
        {"shards": [{"records": 1, "jsonl": {**PIECE, "bytes": 2**40}, "parquet": PIECE}]},
        {"searches": {**PIECE, "sha256": "/etc/passwd"}},
        {"parents": ["../../../../tmp/x"]},
        {"parents": [["a"]]},
        {"shards": "all"},
        {"format": "1"},
    ],
)
def test_no_path_of_a_manifest_leaves_the_folder(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Places follow from digests, and an entry that states anything else is refused whole."""
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    write_entry(tmp_path / "p", **changes)
    taken = pulled(tmp_path / "p", tmp_path / "b")
    assert len(taken.faults) == 1
    assert "not an entry of a manifest" in taken.faults[0].reason
    assert outside.read_text() == "untouched"
    assert {p.name for p in tmp_path.iterdir()} == {"outside", "p", "b"}
    assert not files(tmp_path / "b", ".json")


@pytest.mark.parametrize("text", ["../../../../etc/passwd", "", "x" * 64, "\0"])
def test_a_number_that_names_no_entry_leads_nowhere(tmp_path: Path, text: str) -> None:
    published(filled(tmp_path / "a", record(1)), tmp_path / "p")
    (tmp_path / "p" / "manifest" / "numbers" / "00000002").write_text(text)
    assert pulled(tmp_path / "p", tmp_path / "b").clean
    assert records(tmp_path / "b") == records(tmp_path / "a")


def test_an_entry_that_was_altered_and_one_that_is_missing(tmp_path: Path) -> None:
    a = filled(tmp_path / "a", record(1))
    published(a, tmp_path / "p")
    a.put(record(2))
    published(a, tmp_path / "p")
    first, second = (tmp_path / "p" / "manifest" / f"{e.name}.json" for e in read_manifest(LocalFolder(tmp_path / "p")).entries)
    whole = first.read_bytes()
    first.write_bytes(whole.replace(b"0.1.0", b"0.1.1"))
    (fault,) = pulled(tmp_path / "p", tmp_path / "b").faults
    assert "does not match the digest in its name" in fault.reason
    first.unlink()
    for number in (tmp_path / "p" / "manifest" / "numbers").iterdir():
        if number.read_text().strip() == first.stem:
            number.unlink()
    (fault,) = pulled(tmp_path / "p", tmp_path / "b").faults
    assert (first.name in str(fault.path), "it is missing" in fault.reason) == (True, True)
    assert second.exists()
    first.write_bytes(whole)
    assert pulled(tmp_path / "p", tmp_path / "b").clean
    assert records(tmp_path / "b") == records(a.path)


def test_a_frame_that_claims_to_be_huge_is_not_decompressed(tmp_path: Path) -> None:
    from cglsuite.cells.storage.shards import MAX_FRAME_BYTES, read_frame

    bomb = pa.Codec("zstd").compress(b"\0" * 2**24, asbytes=True)
    with pytest.raises(StoreError):
        read_frame(bomb, 100)
    with pytest.raises(StoreError, match="expected at most"):
        read_frame(bomb, MAX_FRAME_BYTES + 1)


# --- interruptions and company ---------------------------------------------------------------------------------------------------------


KILLED = """
import os, signal, sys
from cglsuite.commons import exchange as publishing
from cglsuite.commons.exchange import pull
from cglsuite.cells.storage import shards
from cglsuite.cells.storage.store import Store
publishing.MAX_RECORDS, shards.FRAME_BYTES = 2, 1
what, one, other, place, nth, calls = *sys.argv[1:5], int(sys.argv[5]), 0
real = getattr(os, place)
def ending(*args, **kwargs):
    global calls
    calls += any(part in str(args[0]) for part in ("/shards/", "/manifest/"))
    if calls == nth:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **kwargs)
setattr(os, place, ending)
publishing.publish(Store(one, quarantine=False), other) if what == "publish" else pull(one, Store(other))
"""


def killed(what: str, one: Path, other: Path, place: str, nth: int) -> int:
    command = [sys.executable, "-c", KILLED, what, str(one), str(other), place, str(nth)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(command, capture_output=True, env=environment, check=False).returncode


POINTS = [("open", 1), ("open", 3), ("open", 9), ("replace", 2), ("replace", 6), ("replace", 7), ("link", 1)]


@pytest.mark.parametrize(("place", "nth"), POINTS)
@pytest.mark.usefixtures("small_shards")
def test_kill_9_while_publishing_and_once_more(tmp_path: Path, place: str, nth: int) -> None:
    """Readers see nothing of the interrupted call, or all of it; the second call ends where an uninterrupted one does."""
    a = filled(tmp_path / "a", *map(record, range(1, 7)))
    assert killed("publish", a.path, tmp_path / "p", place, nth) == -signal.SIGKILL
    visible = Store(tmp_path / "p", quarantine=False)
    assert len(visible.keys()) == (6 if place == "link" else 0)
    assert published(a, tmp_path / "p").merge.clean
    assert records(tmp_path / "p") == records(a.path)
    manifest = read_manifest(LocalFolder(tmp_path / "p"))
    assert (len(manifest.entries), len(manifest.numbered), manifest.problems) == (1, 1, [])
    published(a, tmp_path / "whole")
    names = {path.name for path in (tmp_path / "p" / "shards").rglob("*.*") if not path.name.startswith(".")}
    assert names == {path.name for path in (tmp_path / "whole" / "shards").rglob("*.*")}
    assert pulled(tmp_path / "p", tmp_path / "b").clean


@pytest.mark.parametrize(("place", "nth"), POINTS)
@pytest.mark.usefixtures("small_shards")
def test_kill_9_while_pulling_and_once_more(tmp_path: Path, place: str, nth: int) -> None:
    a = filled(tmp_path / "a", *map(record, range(1, 7)))
    published(a, tmp_path / "p")
    before = snapshot(tmp_path / "p")
    assert killed("pull", tmp_path / "p", tmp_path / "b", place, nth) == -signal.SIGKILL
    assert snapshot(tmp_path / "p") == before
    assert len(Store(tmp_path / "b", quarantine=False).keys()) in (0, 6)
    there = len(files(tmp_path / "b", ".parquet"))
    taken = pulled(tmp_path / "p", tmp_path / "b")
    assert (taken.clean, taken.shards) == (True, 3 - there), "what was verified is not copied again"
    assert records(tmp_path / "b") == records(a.path)
    assert read_manifest(LocalFolder(tmp_path / "b")).problems == []


def test_two_publishers_at_once_both_survive(tmp_path: Path) -> None:
    """Neither has seen the other's entry."""
    stores = [filled(tmp_path / str(n), *(record(4 * n + i) for i in range(1, 4))) for n in range(4)]
    barrier = threading.Barrier(4)
    faults: list[BaseException] = []

    def work(store: Store) -> None:
        def together(what: str, done: int, total: int) -> None:
            if what == "packing records" and done == 0:  # all have read the manifest, and none has written an entry
                barrier.wait(30)

        try:
            publish(Store(store.path, quarantine=False), str(tmp_path / "p"), progress=together)
        except BaseException as error:  # noqa: BLE001 - told by the assertion
            faults.append(error)

    threads = [threading.Thread(target=work, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    manifest = read_manifest(LocalFolder(tmp_path / "p"))
    assert (len(manifest.entries), len(manifest.numbered), manifest.last) == (4, 4, 4)
    assert len(pulled(tmp_path / "p", tmp_path / "b").merge.new) == 12


def test_an_entry_whose_number_was_taken_gets_one_from_the_next_call(tmp_path: Path) -> None:
    """On a store that cannot create exclusively: one of two entries loses its number, and is listed all the same."""
    for name, one in (("a", record(1)), ("b", record(2))):
        published(filled(tmp_path / name, one), tmp_path / "p")
    numbers = tmp_path / "p" / "manifest" / "numbers"
    (numbers / "00000001").write_text((numbers / "00000002").read_text())
    (numbers / "00000002").unlink()
    assert len(records(tmp_path / "p")) == 2
    assert pulled(tmp_path / "p", tmp_path / "c").clean
    published(Store(tmp_path / "a"), tmp_path / "p")
    manifest = read_manifest(LocalFolder(tmp_path / "p"))
    assert len(manifest.numbered) == 2
    assert len(records(tmp_path / "c")) == 2


def test_a_folder_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are created exclusively in another way."""

    def refused(*args: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    for n in (1, 2):
        published(filled(tmp_path / str(n), record(n)), tmp_path / "p")
    assert not LocalFolder(tmp_path / "p").create("manifest/numbers/00000001", b"x")
    assert len(read_manifest(LocalFolder(tmp_path / "p")).numbered) == 2
    assert pulled(tmp_path / "p", tmp_path / "b").clean
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_second_pull_into_a_store_waits_for_its_turn(tmp_path: Path) -> None:
    published(filled(tmp_path / "a", record(1)), tmp_path / "p")
    with Store(tmp_path / "b").lease("pull"), pytest.raises(StoreError, match="another pull into .* is running"):
        pulled(tmp_path / "p", tmp_path / "b")
    assert pulled(tmp_path / "p", tmp_path / "b").clean


# --- requests --------------------------------------------------------------------------------------------------------------------------


def test_wrong_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = source(tmp_path / "a", record(1))
    b = filled(tmp_path / "b", record(2))
    published(a, tmp_path / "p")
    (tmp_path / "file").write_text("")
    for words, status, message in (
        (["publish", str(tmp_path / "no"), str(tmp_path / "q")], 2, "no store at"),
        (["publish", str(a.path), str(a.path)], 2, "both the store and the place"),
        (["publish", str(a.path), str(b.path)], 2, "is itself a store with records"),
        (["publish", str(a.path), str(tmp_path / "file")], 2, "is a file"),
        (["publish", str(a.path), "https://example.org/results"], 2, "cannot publish to a web server"),
        (["publish", str(a.path), "ftp://example.org/results"], 2, "expected a folder, s3://"),
        (["publish", str(a.path), "s3://"], 2, "expected a folder, s3://"),
        (["publish", str(a.path), ""], 2, "expected a value"),
        (["pull", str(tmp_path / "no")], 1, "nothing is published at"),
        (["pull", str(b.path)], 1, "nothing is published at"),
        (["pull", str(tmp_path / "p"), "--into", str(tmp_path / "p")], 2, "both the publication and the store"),
        (["publish", str(a.path)], 2, "Missing"),
    ):
        assert run(words) == status, words
        assert message in capsys.readouterr().err, words
    assert not (tmp_path / "no").exists()
    with pytest.raises(UsageError):
        publish(a, "s3:///nobucket")


def test_the_commands_say_what_they_did(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    a = filled(tmp_path / "a", record(1), failed(2))
    assert run(["publish", str(a.path), str(tmp_path / "p")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"2 records in 1 shard, \d+\.\d kB$", out, re.M)
    assert run(["publish", str(a.path), str(tmp_path / "p"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["records"], told["entry"], told["merge"]["same"]) == (0, None, 2)
    monkeypatch.setenv("CGLSUITE_STORE", str(tmp_path / "b"))
    assert run(["pull", f"file://{tmp_path / 'p'}", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["store"], told["shards"], sorted(told["merge"]["new"]), told["faults"]) == (str(tmp_path / "b"), 1, a.keys(), [])
    assert run(["pull", str(tmp_path / "p")]) == 0
    assert capsys.readouterr().out == f"Pulled into {tmp_path / 'b'}: nothing is new\n"


def test_the_page_says_how_large_shards_are() -> None:
    page = (ROOT / "docs" / "how-to" / "publish-results.md").read_text(encoding="utf-8")
    assert f"up to {publishing.MAX_RECORDS:,} records, one JSON object per line" in page


@pytest.mark.nightly
def test_neither_command_loads_torch(tmp_path: Path) -> None:
    filled(tmp_path / "a", record(1))
    code = "import sys; from cglsuite.cli.main import run; print(run(sys.argv[1:]), 'torch' in sys.modules)"
    for words in (["publish", str(tmp_path / "a"), str(tmp_path / "p")], ["pull", str(tmp_path / "p"), "--into", str(tmp_path / "b")]):
        ended = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        assert ended.stdout.splitlines()[-1] == "0 False"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path_factory.mktemp("cache")))
