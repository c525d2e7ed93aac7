"""What a supervisor makes of its workers' reports: outcomes, replacements, limits, foreign code, shares."""

from __future__ import annotations

import dataclasses
import logging
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_cells
import pytest

from cglsuite.base.errors import StoreError
from cglsuite.campaigns.executors import ExecutorError, RunOptions, supervisor
from cglsuite.campaigns.executors.progress import CellProgress
from cglsuite.campaigns.executors.supervisor import Share, Supervisor, foreign_distributions, in_order
from cglsuite.cells.observing import Observer, Observers
from cglsuite.cells.plan import CellRequest, Limits, PlanFile, PlannedCell, plan_cell
from cglsuite.cells.storage.store import Store
from cglsuite.specs import Seeds

CATALOGUE: Any = fake_cells.FakeCatalogue()


def planned(seed: int = 0, **request: Any) -> PlannedCell:
    made = {"scenario": "toy/task-il@begin-1", "method": "bare", "seeds": Seeds(init=seed), **request}
    return plan_cell(CellRequest(**made), CATALOGUE)


CELLS = [planned(seed) for seed in range(4)]
KEYS = [cell.key for cell in CELLS]


class Worker:
    """Reports one list of events at a time, then has ended."""

    def __init__(self, script: list[list[dict[str, Any]]], index: int, log: list[tuple[str, int]]) -> None:
        self.script, self.index, self.log = [list(events) for events in script], index, log
        self.held: str | None = None
        self.since, self.overdue, self.finished_s, self.foreign = 0.0, False, math.inf, ""
        self.events_descriptor, writing = os.pipe()
        os.write(writing, b"x")
        os.close(writing)
        self.process = type("Process", (), {"pid": 4000 + index, "returncode": -9})()
        self.killed = False

    def events(self) -> list[dict[str, Any]]:
        found = self.script.pop(0) if self.script else []
        for event in found:
            for action in [event.pop("do", None)]:
                if action is not None:
                    action()
        return [dict(event) for event in found if event]

    def has_ended(self) -> bool:
        return self.killed or not self.script

    def kill(self) -> None:
        self.killed = True
        self.log.append(("kill", self.index))

    def close_lifeline(self) -> None:
        self.log.append(("let go", self.index))

    def close(self) -> None:
        os.close(self.events_descriptor)
        self.log.append(("close", self.index))

    def output_tail(self) -> str:
        return "boom | bang"

    def exit_reason(self) -> str:
        return "worker died with signal 9"


class Stage:
    """A supervisor whose workers follow ``scripts``, one after the other."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.log, self.made, self.scripts = store, [], [], []
        self.progress: list[Any] = []
        monkeypatch.setattr(supervisor, "WorkerProcess", self._worker)
        monkeypatch.setattr(supervisor, "KILLED_TOGETHER_S", 0.0)
        monkeypatch.setattr(supervisor, "POLL_S", 0.0)
        monkeypatch.setattr(supervisor, "FOREIGN_POLL_S", 0.0)
        monkeypatch.setattr(supervisor, "GRACE_S", 0.05)
        monkeypatch.setattr(supervisor.time, "sleep", lambda seconds: None)

    def _worker(self, plan: Path, store: Path, index: int, place: int, of: int, environment: dict[str, str]) -> Worker:
        worker = Worker(self.scripts.pop(0) if self.scripts else [[FINISHED]], index, self.log)
        self.made.append((index, place, of, environment))
        return worker

    def run(self, *scripts: list[list[dict[str, Any]]], cells: list[PlannedCell] = CELLS[:2], **how: Any) -> Supervisor:
        self.scripts = list(scripts)
        options = {"workers": 1, "progress": False, **how.pop("options", {})}
        made = Supervisor(
            {cell.key: cell for cell in cells},
            self.store,
            RunOptions(catalogue=CATALOGUE, **options),
            self._noted(len(cells)),
            how.pop("foreign", {}),
            how.pop("share", None),
        )
        for name, value in how.items():
            setattr(made, name, value)
        made.supervise()
        return made

    def _noted(self, n: int) -> CellProgress:
        shown, noted = CellProgress(n, "x", False), self.progress
        real = shown.finished
        shown.finished = lambda status, key="": (noted.append(("finished", status, key)), real(status, key))[1]  # type: ignore[method-assign]
        shown.working = lambda key, current, share=None: noted.append(("working", key, current, share))  # type: ignore[method-assign]
        shown.left = lambda key: noted.append(("left", key))  # type: ignore[method-assign]
        return shown

    def status(self, key: str) -> tuple[str, str | None]:
        record = self.store.get(key)
        return ("none", None) if record is None else (record.status, record.reason)


@pytest.fixture
def stage(store: Store, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(store, monkeypatch)


def start(key: str, **more: Any) -> dict[str, Any]:
    return {"event": "start", "key": key, **more}


def end(key: str, status: str = "done", reason: str | None = None) -> dict[str, Any]:
    return {"event": "end", "key": key, "status": status, "reason": reason}


FINISHED = {"event": "finished"}


def test_a_worker_that_runs_every_cell(stage: Stage) -> None:
    """The plan is written for it and removed in the end; checkpoints go with the cells."""
    plans: list[PlanFile] = []

    def look() -> None:
        (path,) = (stage.store.path / "plans").glob("*.json")
        plans.append(PlanFile.read(path))

    made = stage.run([[start(KEYS[0], do=look), end(KEYS[0])], [start(KEYS[1]), end(KEYS[1]), FINISHED]])
    assert [key for key, _ in plans[0].cells] == KEYS[:2]
    assert list((stage.store.path / "plans").glob("*.json")) == []
    assert [entry for entry in stage.progress if entry[0] == "finished"] == [("finished", "done", key) for key in KEYS[:2]]
    assert (made.pending, made.workers, made.stillborn) == ({}, [], 0)
    assert [name for name, _ in stage.log].count("close") == 1


def test_what_workers_say_is_shown_and_logged(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """Tasks with the method's name; log lines under their logger and level; a failure with its reason."""
    log = {"event": "log", "key": KEYS[0], "name": "cglsuite.a", "level": logging.WARNING, "message": "100 % of it"}
    task = {"event": "task", "key": KEYS[0], "task": 1, "of": 2}
    unknown = {"event": "task", "key": "f" * 64, "task": 1, "of": 2}
    stage.run([[start(KEYS[0]), task, unknown, log, end(KEYS[0], "diverged", "not finite")]], cells=CELLS[:1])
    assert ("working", KEYS[0], "bare task 1/2", None) in stage.progress
    assert [entry for entry in stage.progress if entry[0] == "working"] == [("working", KEYS[0], "bare task 1/2", None)]
    assert ("cglsuite.a", logging.WARNING, "100 % of it") in caplog.record_tuples
    assert f"{CELLS[0].request.label}: diverged: not finite" in caplog.text
    assert "times" not in caplog.text


def test_a_failure_of_many_cells_is_said_once_and_counted(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    events = [event for key in KEYS[:2] for event in (start(key), end(key, "failed", "of 15 classes 1 fills no task"))]
    stage.run([events], cells=CELLS[:2])
    said = [record.getMessage() for record in caplog.records if "fills no task" in record.getMessage()]
    assert said == [
        f"{CELLS[0].request.label}: failed: of 15 classes 1 fills no task",
        "cells: failed, 2 times: of 15 classes 1 fills no task",
    ]


@pytest.mark.parametrize(
    ("ended", "status", "reason"),
    [
        ([], "failed", "worker died with signal 9. It printed: boom | bang"),
        ([{"event": "refused", "key": KEYS[0], "reason": "other torch"}], "failed", "other torch"),
        ([end(KEYS[0], "timeout", "slow")], "none", None),
    ],
)
def test_a_cell_whose_worker_ends_in_the_middle(stage: Stage, ended: list[Any], status: str, reason: str | None) -> None:
    """It is recorded, unless the worker did so itself; another worker goes on with the rest."""
    stage.run([[start(KEYS[0]), *ended]], [[start(KEYS[1]), end(KEYS[1])]])
    assert stage.status(KEYS[0]) == (status, reason)
    assert len(stage.made) == 2
    assert [entry[1] for entry in stage.progress if entry[0] == "finished"] == ["timeout" if status == "none" else "failed", "done"]


def test_a_result_that_came_at_the_last_moment_counts(stage: Stage) -> None:
    """The worker died after it had written the record."""
    stage.run([[start(KEYS[0], do=lambda: stage.store.put(fake_cells.make_record(CELLS[0].cell)))]], cells=CELLS[:1])
    assert stage.status(KEYS[0]) == ("done", None)
    assert [entry for entry in stage.progress if entry[0] == "finished"] == [("finished", "done", KEYS[0])]


@pytest.mark.parametrize(("limit", "status"), [(10.0, "timeout"), (None, "none"), (1000.0, "none")])
def test_a_cell_over_its_time(stage: Stage, monkeypatch: pytest.MonkeyPatch, limit: float | None, status: str) -> None:
    now = [100.0]
    monkeypatch.setattr(supervisor.time, "monotonic", lambda: now[0])

    def later() -> None:
        now[0] += 10.5

    stage.run([[start(KEYS[0])], [{"do": later}], [], [end(KEYS[0])]], cells=CELLS[:1], options={"limits": Limits(timeout_s=limit)})
    assert stage.status(KEYS[0]) == (status, "stopped after 10 s (limit 10 s)" if status == "timeout" else None)
    if status == "timeout":
        record = stage.store.get(KEYS[0])
        assert record is not None
        assert record.timings_s == {"total": 10.5}


def test_three_workers_that_never_start_a_cell_end_the_run(stage: Stage) -> None:
    """Their last words are told; the plan is removed all the same. One that said that it is finished is none of them."""
    with pytest.raises(ExecutorError, match=r"^3 workers exited before they started a cell\. Output of the last worker: boom \| bang$"):
        stage.run([[]], [[]], [[]], [[start(KEYS[0])]])
    assert len(stage.made) == 3
    assert list((stage.store.path / "plans").glob("*.json")) == []
    stage.run([[FINISHED]], [[FINISHED]], [[FINISHED]], [[start(KEYS[0]), end(KEYS[0]), start(KEYS[1]), end(KEYS[1])]])


def test_a_fault_of_the_store_ends_the_run_and_all_workers(stage: Stage) -> None:
    with pytest.raises(StoreError, match="^disk full$"):
        stage.run([[start(KEYS[0])], [{"event": "store-fault", "reason": "disk full"}], [end(KEYS[0])]])
    assert stage.log[-3:] == [("let go", 0), ("kill", 0), ("close", 0)]


def test_a_cell_that_another_has_is_looked_at_later(stage: Stage) -> None:
    """The worker goes on; whoever has the cell writes the record."""
    first = [[start(KEYS[0])], [{"event": "held", "key": KEYS[0]}], [start(KEYS[1]), end(KEYS[1]), FINISHED]]
    stage.run(first, [[end(KEYS[0], "failed", "elsewhere"), FINISHED]])
    assert ("left", KEYS[0]) in stage.progress
    assert [entry[1:] for entry in stage.progress if entry[0] == "finished"] == [("done", KEYS[1]), ("failed", KEYS[0])]
    assert stage.status(KEYS[0]) == ("none", None)  # whoever has the cell writes its record


# --- foreign code -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "clean"), [("a", "a", True), ("", "a", True), ("a", "b", False), ("a", "", False), ("a,b", "b", False)]
)
def test_a_worker_keeps_to_one_foreign_code(stage: Stage, first: str, second: str, clean: bool) -> None:
    """One that starts a cell of another is stopped, and what it made of that cell does not count."""
    foreign = {key: names for key, names in zip(KEYS, (first, second), strict=False) if names}
    put = {"do": lambda: stage.store.put(fake_cells.make_record(CELLS[1].cell))}
    stage.run([[start(KEYS[0]), end(KEYS[0])], [put, start(KEYS[1])], [end(KEYS[1])]], foreign=foreign)
    status, reason = stage.status(KEYS[1])
    if clean:
        assert status == "done"
        return
    said = f"the worker was stopped: it started this cell after running code of {first}, which must have modified the suite's own code"
    assert [entry[1] for entry in stage.progress if entry[0] == "finished"] == ["done", "unclean"]
    assert ("kill", 0) in stage.log
    assert (status, reason) == ("unclean", said) or status == "done"


def test_cells_of_one_foreign_code_and_one_data_set_are_adjacent() -> None:
    """Otherwise they keep their order; cells that cannot run are left out."""
    cells = [*CELLS, planned(4, overrides={"dataset.n": 8}), planned(5), PlannedCell(request=CELLS[0].request, state="n/a")]
    ordered = list(in_order(cells, {cells[0].key: "z", cells[2].key: "b", cells[3].key: "b"}))
    assert ordered == [cells[n].key for n in (4, 1, 5, 2, 3, 0)]
    assert foreign_distributions(CELLS, RunOptions(catalogue=CATALOGUE)) == {}


def test_foreign_distributions_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those that have any; a cell that was not resolved has none."""
    mine, ours = {"method": {"distribution": "Mine_x"}}, {"core": {"distribution": "cglsuite"}}
    monkeypatch.setattr(fake_cells, "sources", lambda cell, catalogue: mine if cell is CELLS[0].cell else ours)
    cells = [CELLS[0], CELLS[1], PlannedCell(request=CELLS[0].request, state="waiting")]
    assert foreign_distributions(cells, RunOptions(catalogue=CATALOGUE)) == {KEYS[0]: "mine-x"}


# --- how many workers, and where ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("workers", "cells", "size"), [(1, 4, 1), (3, 4, 3), (9, 4, 4), (9, 1, 1)])
def test_no_more_workers_than_cells(stage: Stage, workers: int, cells: int, size: int) -> None:
    scripts = [[[start(KEYS[n]), end(KEYS[n]), FINISHED]] for n in range(cells)]
    stage.run(*scripts, cells=CELLS[:cells], options={"workers": workers})
    assert [made[:3] for made in stage.made[:size]] == [(index, index, size) for index in range(size)]


def test_threads_of_workers_are_the_most_of_any_cell(stage: Stage) -> None:
    cells = [planned(0), planned(1, threads=3)]
    keys = [cell.key for cell in cells]
    stage.run([[start(keys[0]), end(keys[0]), start(keys[1]), end(keys[1])]], cells=cells)
    assert stage.made[0][3]["OMP_NUM_THREADS"] == "3"


def test_gpus_are_taken_in_turn(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this machine alone, as many workers as the campaign says; of a share, so many for each GPU."""
    monkeypatch.setattr(supervisor, "visible_gpus", lambda: ["g0", "g1"])
    cells = [planned(seed, device="cuda") for seed in range(4)]
    ends = [[[start(cell.key), end(cell.key), FINISHED]] for cell in cells]
    stage.run(*ends, cells=cells, options={"workers": 3})
    assert [made[3]["CUDA_VISIBLE_DEVICES"] for made in stage.made[:3]] == ["g0", "g1", "g0"]
    stage.made.clear()
    plan = stage.store.path / "plan.json"
    plan.write_text("{}")
    stage.run(*ends, cells=cells, options={"workers": 2}, share=Share(plan=plan, index=1, of=3, gpus=("a", "b")))
    assert [(made[:3], made[3]["CUDA_VISIBLE_DEVICES"]) for made in stage.made[:4]] == [
        *(((0, 4, 12), "a"), ((1, 5, 12), "b"), ((2, 6, 12), "a"), ((3, 7, 12), "b")),
    ]
    assert plan.exists()  # it belongs to another process


def test_a_share_ends_when_there_is_no_more_to_take(stage: Stage) -> None:
    """Cells that others have are left to them; an outcome since the plan was written counts; the watch may end it at any time."""
    plan, looked = stage.store.path.parent / "plan.json", []
    plan.write_text("{}")
    share = Share(plan=plan, index=0, of=2, watch=lambda: looked.append(1))
    lease = stage.store.lease(KEYS[1])
    assert lease is not None
    with lease:
        made = stage.run([[start(KEYS[0]), end(KEYS[0]), FINISHED]], share=share)
        assert list(made.pending) == [KEYS[1]]
        assert looked
        stage.store.put(fake_cells.make_record(CELLS[1].cell, status="failed", reason="there"))
        made = stage.run(cells=CELLS[1:2], share=share, backoff=supervisor.Backoff(first_s=0.0))
        assert made.pending == {}

        def stop() -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            stage.run([[start(KEYS[0])], [end(KEYS[0])]], share=dataclasses.replace(share, watch=stop))
        assert stage.log[-3:] == [("let go", 0), ("kill", 0), ("close", 0)]


def test_who_holds_pending_cells_is_told_once(stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """With the number of cells; until there are records."""
    leases = [stage.store.lease(key) for key in KEYS[:2]]
    rounds: list[float] = []

    def sleep(seconds: float) -> None:
        rounds.append(seconds)
        if len(rounds) == 3:
            for cell in CELLS[:2]:
                stage.store.put(fake_cells.make_record(cell.cell))

    monkeypatch.setattr(supervisor.time, "sleep", sleep)
    with caplog.at_level(logging.INFO):
        made = stage.run(backoff=supervisor.Backoff(first_s=0.0), options={"label": "mine"})
    assert made.pending == {}
    assert caplog.text.count("mine: waiting for 2 cells of process") == 1
    assert stage.made == []
    for lease in leases:
        assert lease is not None
        lease.release()


def test_workers_that_are_stopped_take_back_their_attempts(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the cell that each was at."""
    withdrawn: list[tuple[str, int]] = []
    monkeypatch.setattr(Store, "withdraw_attempt", lambda self, key, pid: withdrawn.append((key, pid)))
    with pytest.raises(StoreError):
        stage.run(
            [[start(KEYS[0])], [{"event": "store-fault", "reason": "x"}], []],
            [[start(KEYS[1]), end(KEYS[1])], [], []],
            options={"workers": 2},
        )
    assert withdrawn == [(KEYS[0], 4000)]
    assert [name for name, _ in stage.log].count("let go") == [name for name, _ in stage.log].count("close") == 2


def test_cells_of_a_family_share_in_the_plan(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless sharing is off."""
    shared: list[Any] = []

    def look() -> None:
        (path,) = (stage.store.path / "plans").glob("*.json")
        shared.append(PlanFile.read(path).sharing)

    script: Callable[[], Any] = lambda: [[start(KEYS[0], do=look), end(KEYS[0]), start(KEYS[1]), end(KEYS[1])]]  # noqa: E731
    for share in (True, False):
        monkeypatch.setattr(supervisor.Families, "sharing", lambda self: {KEYS[0]: "f"} if self.options.share_prefixes else {})
        stage.run(script(), options={"share_prefixes": share})
    assert shared == [{KEYS[0]: "f"}, {}]


class Watching(Observer):
    """Notes what it hears."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Any] = []

    def cell_started(self, cell: Any) -> None:
        self.heard.append(("started", cell.key))

    def stream_built(self, cell: Any) -> None:
        self.heard.append(("stream", cell.epochs))

    def epochs_ended(self, cell: Any, epochs: Any) -> None:
        self.heard.append(("epochs", [tuple(epoch) for epoch in epochs]))

    def task_ended(self, cell: Any, task: int, performance: Any) -> None:
        self.heard.append(("row", task, [None if math.isnan(value) else value for value in performance], cell.covered))

    def cell_ended(self, cell: Any, record: Any) -> None:
        self.heard.append(("ended", None if record is None else record.status))


def test_observers_hear_what_workers_report(stage: Stage) -> None:
    """In order; a cell that was given back ends without a record, and so does one that was interrupted."""
    mine = Watching()
    spec: Any = type("Spec", (), {"scenario": type("Scenario", (), {"task_free": None})(), "method": "bare"})()
    cell = dataclasses.replace(CELLS[0], cell=spec)
    put = {"do": lambda: stage.store.put(fake_cells.make_record(CELLS[0].cell))}
    script = [
        [
            start(KEYS[0]),
            {"event": "stream", "key": KEYS[0], "epochs": [0, 10, 10]},
            {"event": "epochs", "key": KEYS[0], "epochs": [[1, 4, 0.5, None], [1, 5, 0.25, 0.75]]},
            {"event": "row", "key": KEYS[0], "task": 1, "performance": [0.5, None], "validation": [0.25, None], "covered": 1},
            put,
            end(KEYS[0]),
            FINISHED,
        ]
    ]
    stage.run(script, cells=[cell], options={"observers": Observers([mine])})
    assert mine.heard == [
        ("started", KEYS[0]),
        ("stream", (0, 10, 10)),
        ("epochs", [(1, 4, 0.5, None), (1, 5, 0.25, 0.75)]),
        ("row", 1, [0.5, None], 1),
        ("ended", "done"),
    ]
    assert ("working", KEYS[0], "bare task 1/2, epoch 5/10", 0.25) in stage.progress
