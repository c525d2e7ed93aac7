"""Records under new keys: only what reruns speak for, never over a result, and nothing at all where one bit differs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cglsuite import Catalogue, Seeds, load_catalogue
from cglsuite.base.hashing import digest
from cglsuite.campaigns import migrate
from cglsuite.campaigns.search import Candidate as SearchCandidate
from cglsuite.campaigns.search import Search
from cglsuite.cells import keys as keys_module
from cglsuite.cells.code import sources
from cglsuite.cells.code.sources import former_digest
from cglsuite.cells.code.user import is_ours
from cglsuite.cells.plan import CellRequest, plan_cell
from cglsuite.cells.records import comparison
from cglsuite.cells.records.record import Curves, Record
from cglsuite.cells.run import run_cell
from cglsuite.cells.storage.store import Store
from cglsuite.cli import main
from cglsuite.graphs.files.named import naming

pytestmark = pytest.mark.plugins

NODES, GRAPHS = "synthetic-csbm/class-il@begin-1", "synthetic-motifs/class-il@begin-1"
TINY = {
    "dataset.n_nodes": 48,
    "dataset.n_classes": 4,
    "dataset.n_features": 20,
    "dataset.words": 4,
    "dataset.avg_degree": 4,
    "training.epochs": 1,
    "backbone.width": 4,
}
REQUESTS = [
    CellRequest(scenario=NODES, method="bare", overrides=TINY),
    CellRequest(scenario=NODES, method="bare", overrides=TINY, seeds=Seeds(init=1)),
    CellRequest(scenario=NODES, method="ewc", overrides=TINY),
    CellRequest(scenario=NODES, method="ewc", overrides=TINY, seeds=Seeds(init=1)),
]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue) -> Path:
    """A store with the records of REQUESTS, by today's sources."""
    store = Store(tmp_path_factory.mktemp("filled"))
    for request in REQUESTS:
        planned = plan_cell(request, catalogue)
        assert planned.cell is not None
        assert run_cell(planned.cell, catalogue, store).done
    return store.path


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Store:
    import shutil

    for folder in ("cells", "curves"):
        shutil.copytree(filled / folder, tmp_path / "store" / folder)
    return Store(tmp_path / "store")


def edited(monkeypatch: pytest.MonkeyPatch, *part: str) -> None:
    """From now on sources whose references contain one of ``part`` have other digests, although they compute the same."""
    before = sources.closure_digest

    def after(roots: tuple[str, ...]) -> str:
        return digest([before(roots), "moved"]) if any(p in root for p in part for root in roots) else before(roots)

    monkeypatch.setattr(keys_module, "closure_digest", after)


def call(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main.run(["migrate", *words])
    return status, capfd.readouterr().out


def report(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    status, out = call(capfd, *words, "--json")
    found: dict[str, Any] = json.loads(out)
    return status, found


def keys_today(catalogue: Catalogue) -> list[str]:
    return [plan_cell(request, catalogue).key for request in REQUESTS]


def test_records_of_today_stay_as_they_are(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    status, found = report(capfd, str(store.path))
    assert status == 0
    assert (found["current"], found["candidates"], found["written"]) == (4, 0, [])


def test_equal_reruns_give_every_record_that_they_speak_for_its_key_of_today(
    store: Store, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {r.key: r for r in store.records()}
    edited(monkeypatch, "cglsuite.learning")
    assert not set(keys_today(catalogue)) & set(before)
    status, found = report(capfd, str(store.path), "--sample", "2")
    assert status == 0
    assert [s["outcome"] for s in found["sample"]] == ["equal", "equal"]
    assert {w["to"] for w in found["written"]} == set(keys_today(catalogue))
    for key in keys_today(catalogue):
        record = store.cached(key)
        assert record is not None
        (entry,) = record.provenance["migrated"]
        former = before[entry["from"]]
        assert entry["to"] == key
        assert entry["rerun"] == sorted(s["key"] for s in found["sample"])
        assert {c["role"] for c in entry["changes"]} == {"core"}
        same = {f.name for f in dataclasses.fields(Record)} - {"key", "provenance", "schema", "beside"}
        assert all(getattr(record, name) == getattr(former, name) for name in same)
        assert record.training_curves() == former.training_curves()
        assert record.provenance["core"]["source"] != former.provenance["core"]["source"]
        assert store.cached(former.key) == former  # nothing is removed unasked
    status, found = report(capfd, str(store.path))
    assert (status, found["current"], found["written"]) == (0, 4, [])
    assert {entry["reason"][:40] for entry in found["left"]} == {"a finished record already exists under the current key"[:40]}


def test_a_record_of_a_later_version_under_the_key_of_today_is_kept(
    store: Store, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The former record stays too, although it was to be removed."""
    edited(monkeypatch, "cglsuite.learning")
    key = keys_today(catalogue)[0]
    path = store.record_path(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema": 99, "key": key}))
    status, found = report(capfd, str(store.path), "--sample", "1", "--remove-old")
    assert status == 0
    assert len(found["written"]) == 3
    (left,) = found["left"]
    assert f"{path}: the record has schema 99" in left["reason"]
    assert json.loads(path.read_text()) == {"schema": 99, "key": key}
    assert len(store.keys()) == 5


def test_a_change_that_no_rerun_met_moves_no_record(
    store: Store, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """EWC's sources changed too, and the one cell that is run again is another method's."""
    edited(monkeypatch, "cglsuite_methods.regularisation.ewc", "cglsuite.problems")
    monkeypatch.setattr(
        migrate, "choose", lambda candidates, most, seconds: [c for c in candidates if c.record.cell["method"] == "bare"][:1]
    )
    status, found = report(capfd, str(store.path))
    assert status == 0
    assert {store.cached(w["to"]).cell["method"] for w in found["written"]} == {"bare"}  # type: ignore[union-attr]
    assert len(found["written"]) == 2
    assert [e["reason"] for e in found["left"]] == ["no rerun covers the changes of: method ewc"] * 2
    shown = {(c["role"], c["name"]): c["rerun"] for c in found["coverage"]}
    assert shown == {("core", "NC, single, class-il"): 1, ("method", "ewc"): 0}


@pytest.mark.parametrize("part", ["matrix", "validation_matrix", "per_class", "curves", "fingerprints"])
def test_one_other_bit_and_nothing_is_written(
    store: Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], part: str
) -> None:
    edited(monkeypatch, "cglsuite.learning")
    for record in list(store.records()):
        facts = {f.name: getattr(record, f.name) for f in dataclasses.fields(Record)}
        trainings, prints = json.loads(json.dumps([record.training_curves(), record.fingerprints()]))
        if part == "fingerprints":
            prints[-1]["state"] = "0" * 64
        elif part == "curves":
            trainings[-1]["loss"][-1] *= 1 + 2**-52
        else:
            facts[part] = json.loads(json.dumps(facts[part]))
            facts[part][-1][-1] = (facts[part][-1][-1] or 0.5) * (1 - 2**-53)
        facts["beside"] = Curves(trainings=trainings, fingerprints=prints)
        store.put(Record(**facts))
    before = sorted(store.path.rglob("*.json"))
    status, out = call(capfd, str(store.path), "--sample", "1")
    assert status == 1
    assert "A rerun differs: the change is not neutral, and nothing was written." in out
    assert f" {part}" in out
    assert "then, " in out
    assert sorted(store.path.rglob("*.json")) == before


@pytest.mark.nightly
def test_records_of_another_processor_are_compared_with_what_the_former_code_gave_here(
    store: Store, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rounding there is no change of the code. The results that are kept are those of the store."""
    for record in list(store.records()):
        facts = {f.name: getattr(record, f.name) for f in dataclasses.fields(Record)}
        trainings = json.loads(json.dumps(record.training_curves()))
        trainings[-1]["loss"][-1] *= 1 + 2**-20
        facts["beside"] = Curves(trainings=trainings, fingerprints=record.fingerprints())
        facts["environment"] = {**record.environment, "cpu": "another processor"}
        store.put(Record(**facts))
    kept = {record.label: record.training_curves() for record in store.records()}
    before = sorted(store.path.rglob("*.json"))
    edited(monkeypatch, "cglsuite.learning")
    status, out = call(capfd, str(store.path), "--sample", "2")
    assert status == 1
    assert "was computed on another processor (another processor), whose rounding differs: see --against" in out
    assert sorted(store.path.rglob("*.json")) == before

    (tmp_path / "empty").mkdir()
    assert call(capfd, str(store.path), "--against", str(tmp_path / "empty"))[0] == 2
    assert call(capfd, str(store.path), "--against", str(tmp_path / "nowhere"))[0] == 2

    status, found = report(capfd, str(store.path), "--against", str(filled), "--remove-old")
    assert status == 0
    assert [part["outcome"] for part in found["sample"]] == ["equal"] * 4
    assert len(found["written"]) == 4
    assert {record.label: record.training_curves() for record in store.records()} == kept


def test_a_plan_runs_and_writes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    edited(monkeypatch, "cglsuite.learning")
    monkeypatch.setattr(migrate, "rerun_and_compare", lambda *_: pytest.fail("something was run"))
    before = sorted(store.path.rglob("*"))
    status, out = call(capfd, str(store.path), "--plan")
    assert status == 0
    assert "to be run" in out
    assert "Nothing was run or written" in out
    assert sorted(store.path.rglob("*")) == before


def test_former_files_go_where_asked(
    store: Store, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    edited(monkeypatch, "cglsuite.learning")
    assert report(capfd, str(store.path), "--sample", "2", "--remove-old")[0] == 0
    assert {r.key for r in store.records()} == set(keys_today(catalogue))


def test_a_finished_record_under_todays_key_is_never_overwritten(
    store: Store, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    edited(monkeypatch, "cglsuite.learning")
    (other,) = [r for r in store.records() if r.cell["method"] == "bare" and r.cell["seeds"]["init"] == 0]
    facts = {f.name: getattr(other, f.name) for f in dataclasses.fields(Record)}
    mine = Record(**{**facts, "key": keys_today(catalogue)[0], "parameters": {"model": 1, "method": 0}})
    store.put(mine)
    status, found = report(capfd, str(store.path), "--sample", "2")
    assert status == 0
    assert len(found["written"]) == 3
    assert store.cached(mine.key) == mine


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"environment": {"torch": "1.0"}}, "was computed with torch 1.0"),
        ({"environment": {"cpu_capability": "ABACUS", "arithmetic": None}}, "was computed with cpu_capability ABACUS"),
        ({"environment": {"arithmetic": "0" * 64}}, "was computed with arithmetic 000000"),
        ({"cell": {"method": "unheard-of"}}, "cannot be planned now: "),
        ({"design": "0" * 64}, "is a different cell now"),
        ({"status": "failed", "reason": "x"}, "its status is failed"),
    ],
)
def test_what_cannot_be_shown_here_is_left_with_its_reason(
    store: Store, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], reason: str
) -> None:
    edited(monkeypatch, "cglsuite.learning")
    (first, *_) = store.records()
    facts = {f.name: getattr(first, f.name) for f in dataclasses.fields(Record)}
    for name, value in changes.items():
        facts[name] = {**facts[name], **value} if isinstance(value, dict) else value
    store.put(Record(**facts)) if "status" not in changes else store.record_path(first.key).write_text(Record(**facts).to_text())
    found = migrate.survey(store, catalogue, current=migrate.machine())
    assert len(found.candidates) == 3
    ((left, message),) = found.left
    assert left.key == first.key
    assert message.startswith(reason)


def candidate(name: str, seconds: float, *changes: str, scenario: str = "s", method: str = "m") -> migrate.Candidate:
    record = Record(
        key=digest(name),
        design=digest("design"),
        status="done",
        cell={
            "scenario": scenario,
            "preset": scenario,
            "method": method,
            "backbone": "b",
            "seeds": {"order": 0, "split": 0, "init": 0},
            "configuration": {},
            "threads": 1,
            "device": "cpu",
            "dtype": "float32",
        },
        scenario={"level": "NC"},
        provenance={"plugins": [], "core": {"version": "1", "source": "0" * 64}, "resumed_from_task": 0},
        environment={},
        matrix=[[0.5], [0.5]],
        timings_s={"total": seconds},
    )
    made = frozenset(migrate.Change("method", change, "old", "new") for change in changes)
    return migrate.Candidate(record=record, planned=plan_cell(REQUESTS[0], load_catalogue()), used={}, changes=made)


def test_a_sample_meets_many_changes_first_then_the_cheapest_and_keeps_to_its_time() -> None:
    cells = [
        candidate("cheap", 1, "core"),
        candidate("rare", 50, "core", "twp"),
        candidate("dear", 500, "core", "ewc"),
        candidate("cheap too", 2, "core", scenario="t"),
        candidate("cheap again", 2.5, "core"),
    ]
    seconds = [c.seconds for c in migrate.choose(cells, 10, 60)]
    assert seconds == [50, 2, 1, 2.5]  # both changes at once; then another scenario before more of the same
    assert migrate.choose(list(reversed(cells)), 10, 60) == migrate.choose(cells, 10, 60)
    assert [c.seconds for c in migrate.choose(cells, 2, 1000)] == [50, 500]
    assert migrate.choose(cells, 10, 0.5) == []


def test_outcomes_of_searches_follow_their_cells(
    store: Store, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def search() -> Search:
        cells = [[plan_cell(r, catalogue) for r in REQUESTS if r.method == "ewc"]]
        return Search(scenario=NODES, method="ewc", backbone=None, candidates=[SearchCandidate(overrides={}, cells=c) for c in cells])

    before = search()
    assert before.choose_and_store(store) is not None
    edited(monkeypatch, "cglsuite.learning")
    assert search().digest != before.digest
    assert report(capfd, str(store.path), "--sample", "2")[1]["searches"] == 1
    stored = store.get_search(search().digest)
    assert stored is not None
    assert stored["candidates"][0]["keys"] == [p.key for p in search().cells]
    assert stored["candidates"][0]["mean"] == store.get_search(before.digest)["candidates"][0]["mean"]  # type: ignore[index]


def test_a_store_that_is_not_there_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main.run(["migrate", str(tmp_path / "nowhere")]) == 2
    assert "there is no store at" in capfd.readouterr().err


def test_a_record_that_leaves_out_what_its_preset_states_is_planned_again_as_it_was(catalogue: Catalogue, tmp_path: Path) -> None:
    """A default that is left out of configurations is an override of a preset with another value."""
    request = CellRequest(scenario="synthetic-csbm/task-il@cglb-2", method="bare", overrides=TINY | {"backbone.init": "glorot"})
    planned = plan_cell(request, catalogue)
    assert planned.cell is not None
    record = run_cell(planned.cell, catalogue, Store(tmp_path))
    assert "backbone.init" not in record.cell["configuration"]
    again, reason = migrate.replanned(record, catalogue)
    assert (again and again.key, reason) == (record.key, "")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, "x.b: 2 then, 3 now"),
        ({"a": 1}, {"a": 1, "b": 3}, "x.b: None then, 3 now"),
        ({"a": 1, "b": 2}, {"b": 2}, "x.a: 1 then, None now"),
        ({"a": {"c": [1, 2]}}, {"a": {"c": [1, 4]}}, "x.a.c[1]: 2 then, 4 now"),
        ([[1, 2], [3]], [[1, 2], [3, 4]], "x[1] (length): 1 then, 2 now"),
        ([1], [], "x: present then, absent now"),
        (None, {"a": 1}, "x: absent then, present now"),
        ({"a": 1}, [1], "x: {'a': 1} then, [1] now"),
        ([1], {"a": 1}, "x: [1] then, {'a': 1} now"),
        ([[1], 2], [3, 2], "x[0]: [1] then, 3 now"),
        ("a" * 90, "b", f"x: '{'a' * 59} then, 'b' now"),
    ],
)
def test_the_first_difference_is_named_whatever_the_shapes(old: Any, new: Any, told: str) -> None:
    assert comparison._difference_text("x", old, new, ("then", "now")) == told


def rekeyed(tmp_path: Path, *names: str, **more: Any) -> tuple[Store, list[migrate.Candidate], Any]:
    """Candidates whose records are in a store, and what became of them; the first one was run again and is equal."""
    store, made = Store(tmp_path), []
    for name in names:
        one = candidate(name, 1, *more.get("changes", {}).get(name, ("core",)))
        planned = dataclasses.replace(one.planned, key=digest(["today", name]))
        made.append(dataclasses.replace(one, planned=planned, used={"core": {"version": "2", "source": "1" * 64}}))
        store.put(one.record)
    more.get("before", lambda store, made: None)(store, made)
    written, left = migrate.rekey(made, made[:1], store, date="2020-01-02", versions={"torch": "3"}, **more.get("how", {}))
    return store, made, (written, [(c.record.key, why) for c, why in left])


def test_a_record_under_its_new_key_says_what_speaks_for_it(tmp_path: Path) -> None:
    """All else is as it was; the old record stays unless it is to go."""
    store, made, (written, left) = rekeyed(tmp_path, "a", "b")
    assert left == []
    assert [r.key for r in written] == [c.planned.key for c in made]
    for one, record in zip(made, written, strict=True):
        assert store.cached(record.key) == record
        assert store.cached(one.record.key) == one.record
        assert record.provenance["core"] == {"version": "2", "source": "1" * 64}
        assert record.provenance["plugins"] == []
        assert record.provenance["migrated"] == [
            {
                "from": one.record.key,
                "to": one.planned.key,
                "date": "2020-01-02",
                "versions": {"torch": "3"},
                "changes": [{"role": "method", "name": "core", "old": "old", "new": "new"}],
                "rerun": [made[0].record.key],
            }
        ]
        same = dataclasses.replace(record, key=one.record.key, provenance=one.record.provenance)
        assert same == one.record
    again = dataclasses.replace(made[0], record=written[0], planned=dataclasses.replace(made[0].planned, key=digest("later")))
    ((twice,), _) = migrate.rekey([again], [again], store, date="d", versions={})
    assert [entry["to"] for entry in twice.provenance["migrated"]] == [made[0].planned.key, digest("later")]

    def with_another(store: Store, made: list[migrate.Candidate]) -> None:
        content = made[0].record.to_text().encode()
        path = store.conflict_path(made[0].record.key, content)
        path.parent.mkdir()
        path.write_bytes(content)

    store, made, (written, left) = rekeyed(tmp_path / "other", "a", "b", before=with_another, how={"remove_old": True})
    assert {r.key for r in store.records()} == {*(c.planned.key for c in made), made[0].record.key}  # of which another result is kept


def test_what_is_not_written_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that no rerun met, a cell that is running, a result that is there."""

    def before(store: Store, made: list[migrate.Candidate]) -> None:
        facts = {f.name: getattr(made[2].record, f.name) for f in dataclasses.fields(Record)}
        store.put(Record(**{**facts, "key": made[2].planned.key}))
        free = Store.lease
        monkeypatch.setattr(Store, "lease", lambda self, key, *more: None if key == made[3].planned.key else free(self, key, *more))

    changes = {"b": ("core", "ewc", "abc")}
    store, made, (written, left) = rekeyed(tmp_path, "a", "b", "c", "d", changes=changes, before=before)
    assert [r.key for r in written] == [made[0].planned.key]
    assert left == [
        (made[1].record.key, "no rerun covers the changes of: method abc, method ewc"),
        (made[2].record.key, f"a finished record already exists under the current key {made[2].planned.key[:12]}"),
        (made[3].record.key, "another runner is running it"),
    ]
    written, left = migrate.rekey(made[:1], [], store, date="d", versions={})
    assert (written, [why for _, why in left]) == ([], ["no rerun covers the changes of: method core"])
    same = dataclasses.replace(made[0], changes=frozenset())
    assert [why for _, why in migrate.rekey([same], [], store, date="d", versions={})[1]] == [
        "no rerun covers the changes of: the key's form"
    ]


def test_a_rerun_that_ended_otherwise_is_a_difference() -> None:
    """It says how; times, peak memory and resumption are none, and neither is where parameters are counted."""
    then = candidate("a", 1).record
    assert migrate.compare(then, then) == []
    alike = dataclasses.replace(then, timings_s={"total": 9.0}, memory={"peak_bytes": 7}, reason="said why")
    assert migrate.compare(then, alike) == []
    counted = dataclasses.replace(then, parameters={"model": 3, "method": 2})
    assert migrate.compare(counted, dataclasses.replace(then, parameters={"model": 5, "method_bytes": 8})) == []
    assert migrate.compare(counted, dataclasses.replace(then, parameters={"model": 6})) == ["parameters: 5 then, 6 now"]
    failed = dataclasses.replace(then, status="diverged", reason="not finite", matrix=[])
    *differing, how = migrate.compare(then, failed)
    assert differing == ["status: 'done' then, 'diverged' now", "matrix: present then, absent now"]
    assert how == "the rerun ended as diverged: not finite"


@pytest.mark.parametrize(
    ("device", "unlike", "comparable"),
    [
        ("cpu", "torch", False),
        ("cpu", "cpu_capability", False),
        ("cpu", "cuda", True),  # of no matter to what the CPU computed
        ("cuda", "cuda", False),
        ("cuda", "", True),
    ],
)
def test_where_bits_can_be_compared(device: str, unlike: str, comparable: bool) -> None:
    """With the same torch and kind of processor, and for a GPU the same CUDA."""
    here = {"torch": "2.4", "cpu_capability": "AVX2", "cuda": "12.1"}
    record: Any = SimpleNamespace(cell={"device": device}, environment=here | ({unlike: "other"} if unlike else {}))
    said = migrate.why_not_comparable(record, here)
    assert bool(said) is not comparable
    if said:
        assert said == f"was computed with {unlike} other, but here it is {here[unlike]}: a rerun here cannot be compared bit by bit"


# --- user code -----------------------------------------------------------------------------------------------------------------------

PLUGIN = """
from cglsuite import MethodSpec, hookimpl

@hookimpl
def cglsuite_methods():
    return [MethodSpec(name="migrated", factory="migrated_method:M", summary="Scales.", levels=("NC",), settings=("class-il",))]
"""
METHOD = '''
import cglsuite as cgl

class M(cgl.Method):
    """Words."""

    def loss(self, batch):
        return super().loss(batch) * 1.0
'''


def test_a_record_of_user_code_keeps_its_place_where_the_former_rule_says_that_the_code_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its record is listed before. Another docstring was free; another number needs a rerun, and so does what another rule digested."""
    monkeypatch.syspath_prepend(str(tmp_path))
    method = tmp_path / "migrated_method.py"
    method.write_text(METHOD)
    (tmp_path / "migrated_plugin.py").write_text(PLUGIN)
    plugin = ("--plugin", str(tmp_path / "migrated_plugin.py"))
    naming(plugins=plugin[1:])
    catalogue, store = load_catalogue(), Store(tmp_path / "store")
    request = CellRequest(scenario=NODES, method="migrated", overrides=TINY)
    today = keys_module.closure_digest

    def former(roots: tuple[str, ...]) -> str:
        return today(roots) if is_ours(roots[0]) else str(former_digest(roots))

    with monkeypatch.context() as then:
        then.setattr(keys_module, "closure_digest", former)
        planned = plan_cell(request, catalogue)
        assert planned.cell is not None
        old = run_cell(planned.cell, catalogue, store)
        assert old.done
    assert plan_cell(request, catalogue).key != old.key
    assert main.run(["results", "--store", str(store.path), *plugin]) == 0
    assert old.key in capfd.readouterr().out

    def planned_again() -> list[str]:
        return [s["key"] for s in report(capfd, str(store.path), *plugin, "--plan")[1]["sample"]]

    method.write_text(METHOD.replace("* 1.0", "* 2.0"))
    assert planned_again() == [old.key]
    method.write_text(METHOD.replace("Words", "Other words"))
    assert planned_again() == []
    with monkeypatch.context() as other:
        other.setattr(migrate, "claimed_key", lambda *_: digest("another form"))
        assert planned_again() == [old.key]
    assert (
        "1 of them need no rerun: under the former digest rule, their user code has not changed."
        in call(capfd, str(store.path), *plugin, "--plan")[1]
    )
    monkeypatch.setattr(migrate, "rerun_and_compare", lambda *_: pytest.fail("something was run"))
    status, found = report(capfd, str(store.path), *plugin)
    key = plan_cell(request, catalogue).key
    assert (status, found["written"]) == (0, [{"from": old.key, "to": key}])
    moved = store.cached(key)
    assert moved is not None
    (entry,) = moved.provenance["migrated"]
    assert (entry["changes"], entry["rerun"]) == ([], [])
    assert [(part["role"], part["name"]) for part in entry["same_by_former_rule"]] == [("method", "migrated")]
    assert moved.matrix == old.matrix
    assert store.cached(old.key) == old
