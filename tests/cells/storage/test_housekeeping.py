"""Keeping house: what lies in a store by kind and owner, and a prune that removes what it announced and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import fake_cells
import pytest
import torch
from campaign_lab import BASE
from lease_files import ELSEWHERE, write_lease
from other_users import ALICE, BOB, as_user, group_folder, needs_root
from stored_records import failed, key_of, record, snapshot

from cglsuite.base.errors import StoreError
from cglsuite.cells.plan import CellRequest, PlanFile
from cglsuite.cells.records.record import Curves
from cglsuite.cells.storage.housekeeping import Prune, Pruning, Wanted, stored_plans, usage
from cglsuite.cells.storage.store import Store
from cglsuite.cli import main

CURVES = Curves.of([{"task": 1, "loss": [1.0, 0.5], "monitor": [], "best_epoch": None}], [])
DAY = 86400.0


def age(folder: Path, days: float = 2.0) -> None:
    for path in (folder, *folder.rglob("*")):
        if path.is_file():
            os.utime(path, (time.time() - days * DAY,) * 2)


@pytest.fixture(autouse=True)
def younger_changes(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Change times cannot be set: a checkpoint counts by its modification time here. No index of the machine is touched."""
    monkeypatch.setattr("cglsuite.cells.storage.housekeeping.changed", lambda status: status.st_mtime)
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Results 1 and 2, a failed 3, a diverged 4; checkpoints, attempts and orphaned curves."""
    store = Store(tmp_path / "store")
    for one in (record(1, beside=CURVES), record(2), failed(3), record(4, status="diverged", reason="r", matrix=[], validation_matrix=[])):
        store.put(one)
    for family in ("aa", "bb"):
        store.save_checkpoint(f"{family}-1", {"x": torch.zeros(3)})
    (store.path / "attempts").mkdir()
    (store.path / "attempts" / f"{key_of(3)}.txt").write_text("process 1 on x, begun\n")
    Store(tmp_path / "other").put(record(9, beside=CURVES))
    shutil.copytree(tmp_path / "other" / "curves" / "09", store.path / "curves" / "09")
    age(store.path)
    return Store(store.path)


def pruned(store: Store, wanted: Wanted | None = None, *, act: bool = True, records: bool = False) -> Prune:
    pruning = Pruning(store, wanted or Wanted(families={"bb"}), stored_plans(store), records=records)
    plan = pruning.plan()
    return pruning.carry_out(plan) if act else plan


def names(prune: Prune) -> set[str]:
    return {f"{item.kind} {item.path.name.partition('.')[0][:4]}" for item in prune.going}


def test_by_default_what_nobody_needs_goes(store: Store) -> None:
    """Checkpoints of no cell to be run, failed attempts, curves of no record; a plan changes nothing, and results and divergence stay."""
    before = snapshot(store.path)
    plan = pruned(store, act=False)
    assert names(plan) == {"checkpoints aa-1", "attempts 0303", "records 0303", "curves 0909"}
    assert snapshot(store.path) == before
    gone = before.keys() - snapshot(pruned(store) and store.path).keys()
    assert gone == {str(item.path.relative_to(store.path)) for item in plan.going}
    assert [key for key, _ in Store(store.path).find([key_of(n) for n in (1, 2, 4)])] == [key_of(n) for n in (1, 2, 4)]
    assert Store(store.path).checkpoint_path("bb-1").exists()


def test_records_go_into_a_trash_that_the_next_prune_empties(store: Store) -> None:
    """Only with ``records``, and only what no named campaign asks for, with its curves."""
    content = store.record_path(key_of(2)).read_bytes()
    assert "records 0202" not in names(pruned(store, Wanted(keys={key_of(1)}), act=False))
    done = pruned(store, Wanted(keys={key_of(1)}), records=True)
    assert {"records 0202", "records 0404"} <= names(done)
    assert Store(store.path).get(key_of(2)) is None
    [trashed] = (store.path / "trash").rglob(f"{key_of(2)}.json")
    assert trashed.read_bytes() == content
    again = pruned(store, Wanted(keys={key_of(1)}), records=True)
    assert [size > 0 for _, size in again.trash] == [True]
    assert not list((store.path / "trash").rglob("*.json"))
    assert Store(store.path).get(key_of(1)) is not None


def skipped(prune: Prune, name: str) -> str:
    return next((item.skipped for item in prune.items if item.path.name.startswith(name)), "no item")


@pytest.mark.parametrize("change", ["young", "leased", "elsewhere", "planned"])
def test_what_may_be_in_use_is_skipped_one_by_one(store: Store, change: str) -> None:
    """The rest goes."""
    place = store.record_path(key_of(3))
    says = {"young": "less than a day", "leased": "leased by process", "elsewhere": "leased by process", "planned": "stored job plans/1-a"}
    if change == "young":
        os.utime(place)
    lease = Store(store.path).lease(key_of(3)) if change == "leased" else None
    if change == "leased":
        file = store.path / "leases" / f"{key_of(3)}.lease"
        file.write_text(file.read_text().replace(f"pid={os.getpid()}", f"pid={os.getppid()}").replace("process=", "process=x\nprocess="))
    if change == "elsewhere":
        write_lease(store.path / "leases" / f"{key_of(3)}.lease", **ELSEWHERE)
    if change == "planned":
        request = CellRequest(scenario="s", method="m")
        PlanFile(cells=[(key_of(3), request)]).write(store.path / "plans" / "1-a.json")
    done = pruned(store)
    if change != "leased":
        assert says[change] in skipped(done, f"{key_of(3)}.json")
        assert place.exists()
    assert not (store.path / "checkpoints" / "aa-1.pt").exists() or change in ("leased", "elsewhere")
    del lease


def test_a_checkpoint_stays_while_a_cell_runs_that_nobody_planned(store: Store) -> None:
    write_lease(store.path / "leases" / f"{key_of(8)}.lease", **ELSEWHERE)
    assert "a running cell may need it" in skipped(pruned(store), "aa-1")
    assert store.checkpoint_path("aa-1").exists()


def test_unknown_needs_keep_every_checkpoint(store: Store) -> None:
    done = pruned(store, Wanted(families=None, reason="a plugin is missing"))
    assert store.checkpoint_path("aa-1").exists()
    assert list(done.notes) == ["no checkpoint is pruned: a plugin is missing"]
    (store.path / "plans").mkdir()
    (store.path / "plans" / "x.json").write_text("no plan")
    with pytest.raises(StoreError, match="Nothing was pruned"):
        stored_plans(store)


def test_a_lease_taken_between_plan_and_act_is_respected(store: Store) -> None:
    pruning = Pruning(store, Wanted(families={"bb"}), {})
    plan = pruning.plan()
    write_lease(store.path / "leases" / f"{key_of(3)}.lease", **ELSEWHERE)
    assert "leased" in skipped(pruning.carry_out(plan), f"{key_of(3)}.json")
    assert store.record_path(key_of(3)).exists()


def test_usage_counts_every_file_once(store: Store) -> None:
    """By kind, owner and campaign: the sum is that of the files."""
    uses = usage(store, {"mine": {key_of(1)}}, {"mine": {"bb"}})
    files = [path for path in store.path.rglob("*") if path.is_file()]
    inside = [use for use in uses if use.kind != "caches"]
    assert sum(use.files for use in inside) == len(files)
    assert sum(use.bytes for use in inside) == sum(path.stat().st_size for path in files)
    assert {(use.kind, use.files) for use in uses if use.campaign == "mine"} == {("records", 1), ("curves", 1), ("checkpoints", 1)}


@needs_root
def test_files_of_others_stay() -> None:
    with group_folder() as path:
        for user, n in ((ALICE, 3), (BOB, 5)):
            as_user(user, lambda n=n: Store(path).put(failed(n)))
        age(path)
        uses = {(use.kind, use.owner) for use in usage(Store(path))}
        assert {("records", f"user {ALICE}"), ("records", f"user {BOB}")} <= uses
        done = as_user(BOB, lambda: [(item.path.stem, item.skipped) for item in pruned(Store(path)).items])
        assert dict(done) == {key_of(3): f"it belongs to user {ALICE}, who can prune it", key_of(5): ""}
        assert Store(path).keys() == [key_of(3)]


def test_fifty_kills_lose_nothing_that_was_not_announced(store: Store) -> None:
    """Killed at any moment, a prune leaves every file that it did not announce, and each record of the plan in the store or the trash."""
    for n in range(16, 56):
        store.put(failed(n))
        store.save_checkpoint(f"c{n}-1", {"x": torch.zeros(3)})
    age(store.path)
    before = snapshot(store.path)
    announced = {str(item.path.relative_to(store.path)) for item in pruned(store, act=False).going}
    drawn, kills, rounds = random.Random(0), 0, 0
    while kills < 50:
        rounds += 1
        child = os.fork()
        if child == 0:
            pruned(Store(store.path))
            os._exit(0)
        time.sleep(drawn.uniform(0.0, 0.03))
        os.kill(child, signal.SIGKILL)
        kills += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        left = snapshot(store.path)
        assert {name: content for name, content in before.items() if name not in announced} == {
            name: content for name, content in left.items() if name in before and name not in announced
        }
        if rounds % 5 == 0:  # what is pruned comes again, so that there is something to kill
            for name in announced:
                place = store.path / name
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(before[name])
            age(store.path)
    left = snapshot(store.path)
    assert all(left[name] == content for name, content in before.items() if name in left)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(path: Path) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    with contextlib.suppress(OSError):
        while os.write(descriptor, b"x" * 4096):
            pass
    os.close(descriptor)


@needs_root
def test_a_full_disk_loses_nothing_and_can_be_pruned(small_disk: Path) -> None:
    """A record is not written, and says why; a prune needs no space for checkpoints, after which there is some."""
    store = Store(small_disk / "store")
    store.put(record(1))
    store.save_checkpoint("aa-1", {"x": torch.zeros(120_000)})
    age(store.path)
    fill(small_disk / "filler")
    with pytest.raises(StoreError, match="the disk or quota is full"):
        store.put(record(2))
    assert Store(store.path).keys() == [key_of(1)]
    assert not list(store.path.rglob("*.tmp"))
    assert names(pruned(store)) == {"checkpoints aa-1"}
    store.put(record(2))
    assert Store(store.path).keys() == [key_of(1), key_of(2)]


# --- the commands ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    from cglsuite.campaigns.campaign import load_campaign
    from cglsuite.campaigns.executors.campaign_run import run_campaign

    tools = str(Path(fake_cells.__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [tools, os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv("FAKE_CATALOGUE", fake_cells.REFERENCE)
    monkeypatch.setattr("cglsuite.host.load_catalogue", lambda **_: fake_cells.FakeCatalogue())
    monkeypatch.chdir(tmp_path)
    for name, text in (("all", BASE), ("one", BASE.replace('"bare", "ewc"', '"bare"'))):
        Path(f"{name}.toml").write_text(text)
    run_campaign(load_campaign(Path("all.toml")), fake_cells.FakeCatalogue(), Store("s"), progress=False)
    age(Path("s"))

    def call(*words: str) -> tuple[int, str, str]:
        status = main.run(["store", words[0], "--store", "s", *words[1:]])
        return status, *capsys.readouterr()

    return call


def test_the_commands_print_a_plan_first(shell: Callable[..., tuple[int, str, str]]) -> None:
    """``show`` by campaign; ``prune --records`` wants campaigns, prints what goes, and acts with ``--yes`` alone."""
    shown = json.loads(shell("show", "one.toml", "--json")[1])
    ours = {use["kind"]: use["files"] for use in shown if use["campaign"] == "one.toml"}
    assert (ours["records"], ours["curves"]) == (2, 2)
    assert "total" in shell("show")[1]
    status, _, err = shell("prune", "--records")
    assert (status, "name the campaigns whose records must be kept" in err) == (2, True)
    status, out, _ = shell("prune", "one.toml", "--records")
    assert status == 0
    assert out.count("no named campaign needs it") == 2
    assert out.endswith("Nothing is changed yet: --yes prunes these.\n")
    assert len(Store("s").keys()) == 4
    status, out, _ = shell("prune", "one.toml", "--records", "--yes")
    assert (status, len(Store("s").keys())) == (0, 2)
    assert "pruned 4 files" in out
    done = json.loads(shell("prune", "one.toml", "--yes", "--json")[1])
    assert [entry["bytes"] > 0 for entry in done["trash"]] == [True]
    assert not list(Path("s/trash").rglob("*.json"))
