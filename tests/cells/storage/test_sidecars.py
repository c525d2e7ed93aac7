"""Curves beside records: written first, read where they are, refused if they are others, carried by merges and published on request."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from stored_records import failed, filled, key_of, record, snapshot, source, unlike

from cglsuite.base.errors import StoreError
from cglsuite.cells.records.comparison import compare
from cglsuite.cells.records.record import Curves, NoCurvesError, Record
from cglsuite.cells.storage import store as module
from cglsuite.cells.storage.layout import curves_path, sidecar_names
from cglsuite.cells.storage.store import Store
from cglsuite.cli import main
from cglsuite.commons.exchange import publish, pull
from cglsuite.commons.merging import merge

FORMER = Path(__file__).parents[1] / "data" / "record-schema-3.json"
PRINTS = [{"state": "0" * 64, "answers": "1" * 64}]


def curves(loss: float = 0.25) -> Curves:
    trainings = [{"task": 1, "loss": [1.5, loss], "monitor": [0.5, 0.75], "best_epoch": 1}]
    return Curves.of([*trainings, {"task": 2, "loss": [0.5], "monitor": [], "best_epoch": 0}], PRINTS)


def trained(n: int = 1, loss: float = 0.25, **changes: Any) -> Record:
    """A record with curves beside it."""
    return record(n, beside=curves(loss), **changes)


def sidecar(store: Store, one: Record) -> Path:
    return curves_path(store.path, one.key, one.training["digest"])


def run(*words: str) -> int:
    return main.run(list(words))


# --- written and read ----------------------------------------------------------------------------------------------------------------


def test_a_store_keeps_the_curves_of_its_records(tmp_path: Path) -> None:
    """Whichever way a record is read, its curves are those that it was put with, and its file has none of them."""
    store = filled(tmp_path, trained(1), trained(2, 0.125))
    again = Store(tmp_path)
    for one in (again.get(key_of(1)), next(again.records()), dict(again.find([key_of(1)]))[key_of(1)]):
        assert one is not None
        assert (one.training_curves(), one.fingerprints()) == (curves().trainings, PRINTS)
    assert [r.training_curves()[0]["loss"] for r in again.records()] == [[1.5, 0.25], [1.5, 0.125]]
    assert b"0.75" in gzip.decompress(sidecar(store, trained(1)).read_bytes())
    assert list(sidecar_names(tmp_path)) == [(key_of(n), trained(n, v).training["digest"][:12]) for n, v in ((1, 0.25), (2, 0.125))]


def test_curves_are_written_before_their_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner that is killed between the two leaves an orphan, which its next attempt writes again."""
    store, one = Store(tmp_path), trained()
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_atomic", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            store.put(one)
    assert store.get(one.key) is None
    assert list(snapshot(tmp_path)) == [sidecar(store, one).relative_to(tmp_path).as_posix()]
    sidecar(store, one).write_bytes(b"cut of")
    store.put(one)
    assert store.cached(one.key) == one
    assert Store(tmp_path).curves_of(one.key, one.training["digest"]) == curves()
    assert len(snapshot(tmp_path)) == 2


def test_a_record_without_a_result_has_none(tmp_path: Path) -> None:
    store = filled(tmp_path, failed(1))
    assert not (store.path / "curves").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "its curves are not in .*curves/01/"),
        (b"", "contains curves with the digest"),
        (b"no gzip", "cannot be read"),
        (gzip.compress(curves(0.5).text, mtime=0), "contains curves with the digest .*, but its record says"),
        (gzip.compress(curves().text, mtime=0)[:-9], "cannot be read"),
    ],
)
def test_curves_that_are_absent_or_others_are_refused_by_name(tmp_path: Path, content: bytes | None, says: str) -> None:
    """The record counts all the same."""
    store = filled(tmp_path, trained())
    path = sidecar(store, trained())
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    kept = store.cached(key_of(1))
    assert kept is not None
    with pytest.raises(NoCurvesError, match=says) as error:
        kept.training_curves()
    assert path.name in str(error.value)


def test_discarding_a_record_discards_its_curves_alone(tmp_path: Path) -> None:
    store = filled(tmp_path, trained(1), trained(2))
    store.discard(key_of(1))
    assert [key for key, _ in sidecar_names(tmp_path)] == [key_of(2)]


def test_a_record_that_is_put_under_another_key_takes_its_curves_along(tmp_path: Path) -> None:
    """As re-keying does, also where the old one goes."""
    store = filled(tmp_path, trained(1))
    old = store.cached(key_of(1))
    assert old is not None
    store.put(dataclasses.replace(old, key=key_of(3)))
    store.discard(key_of(1))
    kept = Store(tmp_path).cached(key_of(3))
    assert kept is not None
    assert kept.training_curves() == curves().trainings


# --- compared ------------------------------------------------------------------------------------------------------------------------


def test_results_are_compared_by_all_exact_values(tmp_path: Path) -> None:
    """Where curves are kept, the first place that differs is named; where not, that the digest differs."""
    one, other = trained(1), trained(1, 0.25 + 2**-54)
    assert compare(one, trained(1)) == []
    assert compare(one, other) == ["curves[0].loss[1]: 0.25 then, 0.25000000000000006 now"]
    prints = record(1, beside=Curves.of(curves().trainings, [{**PRINTS[0], "answers": "2" * 64}]))
    (difference,) = compare(one, prints)
    assert difference.startswith("fingerprints[0].answers: ")
    bare = Record.from_json(one.to_json())
    assert compare(bare, one) == []
    assert compare(bare, other) == ["training[0].last_loss: 0.25 then, 0.25000000000000006 now"]
    (difference,) = compare(bare, prints)
    assert difference.startswith("digest of curves and fingerprints: ")
    assert compare(trained(1, 0.0), trained(1, -0.0))


def test_a_record_of_schema_3_and_one_of_schema_4_are_one_result(tmp_path: Path) -> None:
    """Merging either into the other copies nothing; one other bit of a loss is a conflict."""
    text = FORMER.read_text()
    key = json.loads(text)["key"]
    today = Record.from_json(text)
    assert compare(today, Record.from_json(today.to_json())) == []
    old, new = Store(tmp_path / "old"), filled(tmp_path / "new", today)
    old.record_path(key).parent.mkdir(parents=True)
    old.record_path(key).write_text(text)
    assert new.record_path(key).read_text() != text
    for there, here in ((old, new), (new, old)):
        (done,) = merge([Store(there.path, quarantine=False)], Store(here.path))
        assert (done.same, done.conflicts, done.new) == (1, [], [])
    assert old.record_path(key).read_text() == text
    nudged = filled(tmp_path / "nudged", dataclasses.replace(today, beside=Curves.of([*today.training_curves()[:1]], [])))
    (done,) = merge([Store(nudged.path, quarantine=False)], Store(old.path))
    assert len(done.conflicts) == 1


# --- merged and published ------------------------------------------------------------------------------------------------------------


def test_merging_carries_curves(tmp_path: Path) -> None:
    """Of new records, of those that the target had without theirs, and of results kept as conflicts."""
    a = filled(tmp_path / "a", record(1, beside=None), trained(2), Record.from_json(trained(4).to_json()))
    b = source(tmp_path / "b", trained(1), trained(2, 0.125), trained(3), trained(4))
    before = snapshot(b.path)
    (plan,) = merge([b], Store(a.path, quarantine=False), plan=True)
    assert plan.curves == 4
    (done,) = merge([b], a)
    assert (done.curves, done.new, len(done.conflicts), done.unreadable) == (4, [key_of(3)], 2, [])
    kept = {r.key: r for r in Store(a.path).records()}
    assert kept[key_of(3)].training_curves() == kept[key_of(4)].training_curves() == curves().trainings
    assert kept[key_of(2)].training_curves() == curves().trainings
    assert Store(a.path).curves_of(key_of(2), trained(2, 0.125).training["digest"]) == curves(0.125)
    assert snapshot(b.path) == before
    (again,) = merge([b], a)
    assert (again.curves, again.new) == (0, [])


def test_merging_names_curves_that_cannot_be_read(tmp_path: Path) -> None:
    b = source(tmp_path / "b", trained(1))
    sidecar(b, trained(1)).write_bytes(b"damaged")
    a = Store(tmp_path / "a")
    (done,) = merge([b], a)
    assert [Path(p.path).name for p in done.unreadable] == [sidecar(b, trained(1)).name]
    assert done.new == [key_of(1)]
    assert list(sidecar_names(a.path)) == []


def test_a_publication_has_curves_only_on_request(tmp_path: Path) -> None:
    """Without them readers are told so; added later, they cost no second copy of the records."""
    a = source(tmp_path / "a", trained(1), record(2))
    assert publish(a, str(tmp_path / "p")).curves == 0
    entry = json.loads(next((tmp_path / "p" / "manifest").glob("*.json")).read_text())
    assert (entry["format"], "curves" in entry) == (1, False)
    b = Store(tmp_path / "b")
    assert pull(str(tmp_path / "p"), b).clean
    kept = b.cached(key_of(1))
    assert kept is not None
    with pytest.raises(NoCurvesError, match="they were not published with it, or were not stored"):
        kept.training_curves()

    done = publish(a, str(tmp_path / "p"), curves=True)
    assert (done.records, done.curves) == (0, 1)
    assert publish(a, str(tmp_path / "p"), curves=True).entry is None
    assert pull(str(tmp_path / "p"), b).clean
    for store in (b, Store(tmp_path / "b"), Store(tmp_path / "p")):
        kept = store.cached(key_of(1))
        assert kept is not None
        assert (kept.training_curves(), kept.fingerprints()) == (curves().trainings, PRINTS)
    (done_merge,) = merge([Store(tmp_path / "b", quarantine=False)], Store(tmp_path / "c"))
    assert done_merge.curves == 1
    assert Store(tmp_path / "c").curves_of(key_of(1), trained(1).training["digest"]) == curves()


def test_published_curves_that_were_altered_or_lost_are_named(tmp_path: Path) -> None:
    a = source(tmp_path / "a", trained(1))
    publish(a, str(tmp_path / "p"), curves=True)
    (table,) = (tmp_path / "p" / "shards").rglob("*.curves.parquet")
    content = table.read_bytes()
    table.write_bytes(content[:-8] + bytes(8))
    done = pull(str(tmp_path / "p"), Store(tmp_path / "b"))
    assert [Path(p.path).name for p in done.faults] == [table.name]
    assert done.merge.new == [key_of(1)]
    table.unlink()
    lost = Store(tmp_path / "p").cached(key_of(1))
    assert lost is not None
    with pytest.raises(NoCurvesError):
        lost.training_curves()
    assert publish(a, str(tmp_path / "p"), curves=True).curves == 1
    assert table.read_bytes() == content


def test_records_of_schema_3_are_published_as_those_of_today(tmp_path: Path) -> None:
    """From files and from shards; with their curves if these are wanted. What they say stays as it was."""
    text = FORMER.read_text()
    old = Store(tmp_path / "old", quarantine=False)
    path = old.record_path(json.loads(text)["key"])
    path.parent.mkdir(parents=True)
    path.write_text(text)
    expected = Record.from_json(text)
    done = publish(old, str(tmp_path / "p"))
    assert (done.records, done.merge.clean) == (1, True)
    (kept,) = Store(tmp_path / "p").records()
    assert kept == expected
    (copy,) = Store(tmp_path / "p").copies(expected.key)
    assert json.loads(copy.content())["schema"] == 4
    assert publish(old, str(tmp_path / "p")).entry is None
    assert publish(old, str(tmp_path / "p"), curves=True).curves == 1
    (kept,) = Store(tmp_path / "p").records()
    assert kept.training_curves() == expected.training_curves()


# --- commands ------------------------------------------------------------------------------------------------------------------------


def test_results_writes_curves(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A row per epoch; records without curves are named, and the exit status is 1."""
    filled(tmp_path, trained(1))
    assert run("results", "--store", str(tmp_path), "--curves") == 0
    rows = list(csv.DictReader(io.StringIO(capfd.readouterr().out)))
    assert [(r["task"], r["epoch"], r["loss"], r["monitor"], r["best"]) for r in rows] == [
        ("1", "0", "1.5", "0.5", "False"),
        ("1", "1", "0.25", "0.75", "True"),
        ("2", "0", "0.5", "", "True"),
    ]
    assert {r["key"] for r in rows} == {key_of(1)}
    filled(tmp_path, Record.from_json(trained(2).to_json()), unlike(3))
    assert run("results", "--store", str(tmp_path), "--curves", "--format", "json") == 1
    out, err = capfd.readouterr()
    assert len(json.loads(out)) == 3
    assert f"record {key_of(2)[:12]}: its curves are not in" in err
    assert run("results", "--store", str(tmp_path), "--curves", "--verify") == 2
    capfd.readouterr()
    assert run("results", "--store", str(tmp_path), "--long") == 0
    long = list(csv.DictReader(io.StringIO(capfd.readouterr().out)))
    assert list(long[0])[-3:] == ["stage", "task", "performance"]
    assert {r["key"] for r in long} >= {key_of(1), key_of(2)}
    assert run("results", "--store", str(tmp_path), "--curves", "--long") == 2
    assert "--long and --curves each write a different table" in capfd.readouterr().err


def test_publish_and_merge_say_how_many_curves(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    filled(tmp_path / "a", trained(1))
    assert run("publish", str(tmp_path / "a"), str(tmp_path / "p"), "--curves") == 0
    assert "1 record in 1 shard, curves of 1 record, " in capfd.readouterr().out
    assert run("merge", str(tmp_path / "a"), "--into", str(tmp_path / "b"), "--json") == 0
    assert json.loads(capfd.readouterr().out)["sources"][0]["curves"] == 1


# --- records of later versions -------------------------------------------------------------------------------------------------------


def newer(store: Store, n: int = 1) -> Path:
    """A record of a schema that this version cannot read."""
    path = store.record_path(key_of(n))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema": 99, "key": key_of(n), "answer": 42}))
    return path


def test_a_record_of_a_later_schema_is_never_replaced(tmp_path: Path) -> None:
    """Nor removed, nor trained again; listings leave it out, and every refusal names file, schema and remedy."""
    store = Store(tmp_path)
    path = newer(store)
    store.put(record(2))
    before = path.read_bytes()
    says = rf"{path}: the record has schema 99, but this version of cglsuite supports schemas up to 4: upgrade cglsuite; the record is kept"
    for attempt in (
        lambda: store.put(record(1)),
        lambda: store.put(failed(1)),
        lambda: store.cached(key_of(1)),
        lambda: store.outcome(key_of(1)),
        lambda: store.discard(key_of(1)),
        lambda: store.set_aside(key_of(1)).__enter__(),
        lambda: store.unfinished([key_of(2), key_of(1)]),
        lambda: Store(tmp_path).put(record(1)),
        lambda: Store(tmp_path).unfinished([key_of(1)]),
    ):
        with pytest.raises(StoreError, match=says):
            attempt()
    assert store.get(key_of(1)) is None
    assert [r.key for r in store.records()] == [key_of(2)]
    assert store.unfinished([key_of(2)]) == []
    store.sweep()
    assert path.read_bytes() == before
    path.unlink()  # a later version may have finished with it
    assert store.cached(key_of(1)) is None
    store.put(record(1))
    assert store.cached(key_of(1)) == record(1)


def test_beside_a_result_that_can_be_read_it_is_kept_too(tmp_path: Path) -> None:
    """The result counts, and is not replaced by one that would lie in the other's place."""
    store = Store(tmp_path)
    path = newer(store)
    flat = tmp_path / "cells" / f"{key_of(1)}.json"
    flat.write_text(record(1).to_text())
    assert store.cached(key_of(1)) == record(1)
    with pytest.raises(StoreError, match="schema 99"):
        store.put(unlike(1))
    assert json.loads(path.read_text())["schema"] == 99


def test_merging_leaves_it_on_both_sides(tmp_path: Path) -> None:
    there = Store(tmp_path / "there", quarantine=False)
    newer(there)
    here = filled(tmp_path / "here", record(1))
    (done,) = merge([there], here)
    assert [(str(p.path), "upgrade" in p.reason) for p in done.unreadable] == [(str(there.record_path(key_of(1))), True)]
    assert here.cached(key_of(1)) == record(1)
    for plan in (True, False):
        before = snapshot(there.path)
        (done,) = merge([Store(here.path, quarantine=False)], Store(there.path), plan=plan)
        assert done.new == []
        assert str(there.record_path(key_of(1))) in {str(p.path) for p in done.unreadable}
        assert snapshot(there.path) == before
