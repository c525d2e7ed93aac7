"""What a campaign's cells are said to be, and what an executor is told: every state and every option by itself."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fake_cells
import pytest

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.campaign import Campaign, load_campaign
from cglsuite.campaigns.executors import CampaignOutcome, RunOptions, run_campaign
from cglsuite.campaigns.executors.base import Ended, Families, Job
from cglsuite.campaigns.executors.campaign_run import CellState, all_trainings, cell_states, find_executor, trainings_text
from cglsuite.campaigns.overrides import Overrides
from cglsuite.cells.observing import Observer
from cglsuite.cells.plan import CellRequest, Limits, PlannedCell, plan_cell
from cglsuite.cells.storage.lease import Holder
from cglsuite.cells.storage.store import Store
from cglsuite.specs import Seeds

CATALOGUE: Any = fake_cells.FakeCatalogue()


def planned(seed: int = 0, method: str = "bare") -> PlannedCell:
    request = CellRequest(scenario="toy/task-il@begin-1", method=method, seeds=Seeds(init=seed))
    return plan_cell(request, CATALOGUE)


def recorded(cell: PlannedCell, **changes: Any) -> Any:
    return fake_cells.make_record(cell.cell, **changes)


def holder(silent: bool) -> Holder:
    return Holder(host="h", machine="other", pid=7, process="p", since=0.0, refreshed=0.0 if silent else 4e9, lifetime_s=60.0)


@pytest.mark.parametrize("silent", [None, False, True])
@pytest.mark.parametrize("status", [None, "done", "failed"])
def test_the_state_of_a_cell(store: Store, monkeypatch: pytest.MonkeyPatch, status: str | None, silent: bool | None) -> None:
    """A result counts first, then a live holder, then what went wrong. A silent holder is named and holds nothing up."""
    cell, there = planned(), None if silent is None else holder(silent)
    if status is not None:
        store.put(recorded(cell, **({} if status == "done" else {"status": status, "reason": "boom"})))
    monkeypatch.setattr(Store, "holder", lambda self, key: there if key == cell.key else None)
    (state,) = cell_states([cell], store)
    if status == "done":
        assert state == CellState(planned=cell, state="done", trainings=(2, 2))
    elif silent is False:
        assert state == CellState(planned=cell, state="running", holder=there)
    elif status is None:
        assert state == CellState(planned=cell, state="missing", holder=there)
    else:
        assert state == CellState(planned=cell, state="failed", reason="failed: boom", holder=there)


def test_states_come_in_the_order_of_the_cells(store: Store) -> None:
    """One that is asked for twice is read once; one that cannot be run says why."""
    first, second = planned(0), planned(1)
    impossible = PlannedCell(request=first.request, state="n/a", reason="no such setting")
    waiting = PlannedCell(request=first.request, state="waiting", reason="a search")
    store.put(recorded(first))
    (store.path / "cells" / f"{second.key}.json").write_text(recorded(second).to_text())
    found = list(cell_states([second, impossible, first, waiting, second], store))
    assert [(s.state, s.reason) for s in found] == [
        *(("done", ""), ("n/a", "no such setting"), ("done", ""), ("waiting", "a search"), ("done", "")),
    ]
    assert found[0] is found[4]
    assert [s.planned for s in found] == [second, impossible, first, waiting, second]


def test_trainings_are_counted_once_per_cell() -> None:
    """And said only where some were shared."""
    states = [CellState(planned=planned(seed), state="done", trainings=(3, n)) for seed, n in ((0, 3), (1, 1), (0, 3), (2, 2))]
    assert all_trainings(states) == (9, 6)
    assert all_trainings([]) == (0, 0)
    assert trainings_text((9, 6)) == "trained 6 of 9 tasks, the other 3 were shared"
    assert trainings_text((9, 9)) == trainings_text((0, 0)) == ""


@pytest.mark.parametrize(
    ("states", "complete", "nothing", "counts"),
    [
        ([], True, True, {}),
        (["n/a", "skipped"], True, True, {"n/a": 1, "skipped": 1}),
        (["done", "n/a", "done"], True, False, {"done": 2, "n/a": 1}),
        (["skipped", "done"], True, False, {"done": 1, "skipped": 1}),
        (["done", "missing"], False, False, {"done": 1, "missing": 1}),
        (["running"], False, False, {"running": 1}),
        (["waiting"], False, False, {"waiting": 1}),
        (["failed", "n/a"], False, False, {"failed": 1, "n/a": 1}),
    ],
)
def test_an_outcome(states: list[str], complete: bool, nothing: bool, counts: dict[str, int]) -> None:
    outcome = CampaignOutcome(states=[(planned(), state) for state in states])
    assert (outcome.complete, outcome.all_not_applicable, outcome.counts, outcome.trainings) == (complete, nothing, counts, (0, 0))
    assert list(outcome.counts) == sorted(outcome.counts)


# --- what an executor is told -------------------------------------------------------------------------------------------------------


TEXT = """
name = "x"
[grid]
scenarios = ["toy/task-il@begin-1"]
methods = ["bare", "ewc"]
"""
SEARCH = '[search]\nseeds = { init = [0, 1] }\ngrid = { "training.lr" = [1e-3, 5e-3] }\n'


class Noting:
    """An executor that runs nothing unless told to, and says how many cells are left."""

    def __init__(self, works: bool = True) -> None:
        self.works = works
        self.options: list[RunOptions] = []
        self.cells: list[list[PlannedCell]] = []

    def run(self, cells: Sequence[PlannedCell], store: Store, options: RunOptions) -> int:
        self.options.append(options)
        self.cells.append(list(cells))
        if self.works:
            for cell in cells:
                if cell.ready and store.cached(cell.key) is None:
                    store.put(fake_cells.run_cell(cell.cell, CATALOGUE, store))  # type: ignore[arg-type]
            return 0
        return len(cells)


def run(store: Store, text: str, executor: Noting, forced: Any = None, **more: Any) -> CampaignOutcome:
    return run_campaign(Campaign.parse(tomllib.loads(text)), CATALOGUE, store, forced, executor=executor, **more)


def test_defaults_of_the_options(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CGLSUITE_CHECKPOINT_EVERY", raising=False)
    executor = Noting()
    assert run(store, TEXT, executor).trainings == (4, 4)
    assert executor.options == [RunOptions(catalogue=CATALOGUE, workers=1, share_prefixes=True, label="x", watch=[])]


def test_every_option_is_passed_on(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the campaign, of the command and of the caller."""
    monkeypatch.delenv("CGLSUITE_CHECKPOINT_EVERY", raising=False)
    executor = Noting()
    text = TEXT + f"[run]\nworkers = 2\ntimeout_s = 5\ncheckpoint_every_s = 60\nshare_prefixes = false\nwatch = ['csv={tmp_path / 'w'}']\n"
    run(store, text, executor, progress=False)
    (options,) = executor.options
    assert (options.workers, options.share_prefixes, options.progress, options.detach) == (2, False, False, False)
    assert options.limits == Limits(timeout_s=5, checkpoint_every_s=60)
    assert options.watch == [f"csv={tmp_path / 'w'}"]
    assert options.observers is not None
    run(store, text, executor, Overrides(workers=3), detach=True, watch=[])
    assert (executor.options[1].workers, executor.options[1].detach) == (3, True)
    assert (executor.options[1].watch, executor.options[1].observers) == ([], None)


def test_observers_by_name_and_as_objects(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names get the store's folder, or that of the campaign's file; objects stay in this process."""
    executor = Noting()

    class Mine(Observer):
        pass

    run(store, TEXT, executor, watch=["csv", Mine(), Mine])
    (options,) = executor.options
    assert options.watch == [f"csv={store.path / 'watched' / 'csv'}"]
    assert options.observers is not None
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    file = elsewhere / "x.toml"
    file.write_text(TEXT + '[run]\nwatch = ["csv=seen"]\n')
    monkeypatch.chdir(tmp_path)
    run_campaign(load_campaign(file), CATALOGUE, store, executor=executor)
    assert executor.options[1].watch == [f"csv={elsewhere / 'seen'}"]
    run(store, TEXT, executor, watch=["csv=seen"])
    assert executor.options[2].watch == [f"csv={tmp_path / 'seen'}"]


def test_a_detached_search_is_all_that_is_asked_for(store: Store) -> None:
    """The grid waits for it; once nothing of the search is left, the grid follows."""
    executor = Noting(works=False)
    outcome = run(store, TEXT + SEARCH, executor, detach=True)
    assert [o.label for o in executor.options] == ["x search"]
    assert outcome.counts == {"waiting": 2}
    assert len(executor.cells[0]) == 8
    ready = Noting()
    assert run(store, TEXT + SEARCH, ready, detach=True).counts == {"done": 2}
    assert [o.label for o in ready.options] == ["x search", "x"]
    assert run(store, TEXT + SEARCH, Noting(works=False)).counts == {"done": 2}


def test_a_search_that_is_not_detached_is_followed_by_the_grid(store: Store) -> None:
    executor = Noting(works=False)
    assert run(store, TEXT + SEARCH, executor).counts == {"waiting": 2}
    assert [(o.label, o.detach) for o in executor.options] == [("x search", False), ("x", False)]


def test_only_searches_of_wanted_cells_run(store: Store) -> None:
    executor = Noting()
    run(store, TEXT + SEARCH, executor, only=["method=ewc"])
    assert {cell.request.method for cells in executor.cells for cell in cells} == {"ewc"}
    with pytest.raises(UsageError, match="no cell matches --only method=z init_seed=1"):
        run(store, TEXT, executor, only=["method=z", "init_seed=1"])


def test_options_for_another_executor_are_refused(store: Store) -> None:
    with pytest.raises(UsageError, match=r"^--set run\.slurm\.hours: the cells are run by the executor 'local'$"):
        run_campaign(Campaign.parse(tomllib.loads(TEXT)), CATALOGUE, store, Overrides(run={"slurm.hours": 1}))
    with pytest.raises(UsageError, match=r"unknown option in \[run.local\]"):
        find_executor(CATALOGUE, "local", {"hours": 1})


# --- checkpoints --------------------------------------------------------------------------------------------------------------------


class Dropping:
    """A store that notes which checkpoints are removed."""

    def __init__(self) -> None:
        self.dropped: list[list[str]] = []

    def has_checkpoints(self) -> bool:
        return True

    def drop_checkpoints(self, names: Sequence[str]) -> None:
        self.dropped.append(list(names))


def families(monkeypatch: pytest.MonkeyPatch, share: bool = True) -> tuple[Families, Dropping]:
    """Cells are named by what they share: ``ab`` needs the checkpoints a and b."""
    store = Dropping()
    monkeypatch.setattr(fake_cells, "prefix_keys", lambda cell, catalogue: list(cell))
    return Families(store, RunOptions(catalogue=CATALOGUE, share_prefixes=share)), store  # type: ignore[arg-type]


def named(*names: str) -> list[PlannedCell]:
    request = CellRequest(scenario="s", method="m")
    cells: list[Any] = [PlannedCell(request=request, state="ready", cell=list(name), key=name) for name in names]  # type: ignore[arg-type]
    return [*cells, PlannedCell(request=request, state="n/a")]


def test_checkpoints_go_with_the_last_cell_that_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    made, store = families(monkeypatch)
    made.count(named("ab", "ac", "db", "e"), {"ab", "ac"})
    assert store.dropped == [["d", "e"]]  # b is still needed
    assert made.sharing() == {"ab": "a", "ac": "a"}
    made.release("ab")
    assert store.dropped[1:] == [["b"]]
    made.release("ab")
    made.release("never counted")
    assert store.dropped[1:] == [["b"]]
    assert made.sharing() == {}
    made.release("ac")
    assert store.dropped[2:] == [["a"], ["c"]]


def test_a_family_of_one_shares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does any where sharing is off, or a cell without a family."""
    made, _ = families(monkeypatch)
    made.count(named("a", "b", "bc", ""), {"a", "b", "bc", ""})
    assert made.sharing() == {"b": "b", "bc": "b"}
    made, _ = families(monkeypatch, share=False)
    made.count(named("a", "ab"), {"a", "ab"})
    assert made.sharing() == {}


# --- jobs and ends ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        (0, Ended(ok=True)),
        (1, Ended(ok=False, reason="exit status 1")),
        (69, Ended(ok=False, reason="exit status 69")),
        (75, Ended(ok=False, again=True, reason="stopped before it finished")),
        (128, Ended(ok=False, reason="exit status 128")),
        (137, Ended(ok=False, again=True, reason="ended by SIGKILL")),
        (143, Ended(ok=False, again=True, reason="ended by SIGTERM")),
        (-9, Ended(ok=False, again=True, reason="ended by SIGKILL")),
        (-1, Ended(ok=False, again=True, reason="ended by SIGHUP")),
        (255, Ended(ok=False, again=True, reason="ended by signal 127")),
    ],
)
def test_what_an_exit_status_means(status: int, ended: Ended) -> None:
    assert Ended.by_status(status) == ended


def test_the_command_of_a_part(tmp_path: Path) -> None:
    job = Job(name="n", engine="e", folder=tmp_path / "j", store=tmp_path, parts=3, python="py")
    words = [
        "py",
        "-P",
        "-m",
        "cglsuite.campaigns.executors.node",
        f"{tmp_path}/j/plan.json",
        "--store",
        str(tmp_path),
        "--share",
        "1",
        "3",
    ]
    assert list(job.words(1)) == [*words, "--engine", "e", "--name", "n"]
    assert list(job.words(1, id="77")) == [*words, "--engine", "e", "--name", "n", "--id", "77"]
    assert (job.plan, job.log(2), job.cpus) == (tmp_path / "j" / "plan.json", tmp_path / "j" / "part-2.log", 1)
