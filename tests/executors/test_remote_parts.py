"""What the executor for other machines does with what an engine answers, with an engine that only answers and a clock set by hand."""

from __future__ import annotations

import dataclasses
import itertools
import json
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_cells
import pytest

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.executors import Ended, ExecutorError, Job, RemoteExecutor, RunOptions, UnreachableError, remote
from cglsuite.campaigns.executors.remote import StoredJob, stored_jobs
from cglsuite.cells.plan import CellRequest, Limits, PlanFile, PlannedCell, plan_cell
from cglsuite.cells.storage.store import Store
from cglsuite.graphs.files.named import DATA, OPTIONS
from cglsuite.specs import Seeds

CATALOGUE: Any = fake_cells.FakeCatalogue()
OK, AGAIN, BAD = Ended(ok=True), Ended(ok=False, again=True, reason="preempted"), Ended(ok=False, reason="exit status 3")


def planned(seed: int = 0, **request: Any) -> PlannedCell:
    made = {"scenario": "toy/task-il@begin-1", "method": "bare", "seeds": Seeds(init=seed), **request}
    return plan_cell(CellRequest(**made), CATALOGUE)


CELLS = [planned(seed) for seed in range(4)]
KEYS = [cell.key for cell in CELLS]


class Engine:
    """Answers ``polls`` one after the other; ``{}`` afterwards. An entry may be an error to raise, or a function to call first."""

    def __init__(self, store: Store, *polls: Any, parts: int = 2) -> None:
        self.store, self.polls, self.parts = store, list(polls), parts
        self.launched: list[tuple[Job, list[int]]] = []
        self.polled: list[dict[int, str]] = []
        self.cancelled: list[dict[int, str]] = []
        self.launches: list[Any] = []

    def launch(self, job: Job, parts: Sequence[int]) -> Mapping[int, str]:
        self.launched.append((job, list(parts)))
        if self.launches and isinstance(error := self.launches.pop(0), Exception):
            raise error
        return {part: f"{len(self.launched)}_{part}" for part in parts}

    def poll(self, ids: Mapping[int, str]) -> Mapping[int, Ended]:
        self.polled.append(dict(ids))
        answer = self.polls.pop(0) if self.polls else {}
        if isinstance(answer, tuple):
            action, answer = answer
            action()
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    def cancel(self, ids: Mapping[int, str]) -> None:
        self.cancelled.append(dict(ids))

    def finish(self, *cells: PlannedCell, **changes: Any) -> Callable[[], None]:
        """A function that puts the records of cells."""
        return lambda: [self.store.put(fake_cells.make_record(cell.cell, **changes)) for cell in cells] and None  # type: ignore[func-returns-value]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that pass while the executor sleeps; real time stands still for it."""
    now = [1000.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        assert now[0] < 5000, "it never ends"

    monkeypatch.setattr(remote, "time", SimpleNamespace(**{**vars(time), "monotonic": lambda: now[0], "sleep": sleep}))
    return now


def run(engine: Engine, cells: Sequence[PlannedCell] = CELLS[:2], **options: Any) -> int:
    given = {"catalogue": CATALOGUE, "progress": False, "label": "mine", **options}
    return RemoteExecutor("grid", engine).run(list(cells), engine.store, RunOptions(**given))


def test_a_job_from_launch_to_end(store: Store, clock: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the plan and the job say, and that nothing of them is left."""
    mine, said = tmp_path / "mine.npz", {"mine": {"unlabelled": "none"}}
    mine.touch()
    for variable, value in ((DATA, str(mine)), (OPTIONS, json.dumps(said))):
        monkeypatch.setenv(variable, value)
    plans: list[Any] = []
    engine = Engine(store, parts=7)

    def look() -> None:
        (stored,) = stored_jobs(store.path)
        plans.extend([stored.plan(), stored])
        engine.finish(*CELLS[:3])()

    engine.polls = [(look, {}), {0: OK, 1: OK}]
    engine.python, engine.where = "py3", "cluster"  # type: ignore[attr-defined]
    cells = [*CELLS[:2], planned(2, threads=3)]
    engine.polls[0] = (lambda: (look(), engine.finish(*cells)()), {})
    assert run(engine, cells, workers=2, limits=Limits(timeout_s=5.0, checkpoint_every_s=30.0), share_prefixes=False) == 0
    ((job, parts),) = engine.launched
    assert (parts, job.parts, job.cpus, job.python, job.engine, job.store) == ([0, 1], 2, 6, "py3", "grid", store.path)
    plan, stored = plans
    assert {key for key, _ in plan.cells} == {cell.key for cell in cells}
    assert (plan.limits, plan.workers, plan.sharing, plan.foreign) == (Limits(timeout_s=5.0, checkpoint_every_s=30.0), 2, {}, {})
    assert (plan.data, plan.data_options) == ([str(mine)], said)
    assert plan.torch
    assert (stored.where, stored.ids) == ("cluster", {0: "1_0", 1: "1_1"})
    assert not job.folder.exists()
    assert engine.cancelled == []


@pytest.mark.parametrize(("offered", "workers", "cells", "parts"), [(9, 1, 4, 4), (9, 2, 3, 2), (2, 1, 4, 2), (0, 1, 4, 1), (9, 9, 4, 1)])
def test_how_many_parts(store: Store, clock: list[float], offered: int, workers: int, cells: int, parts: int) -> None:
    """No more than the engine has, nor than there are cells for; at least one."""
    engine = Engine(store, parts=offered)
    engine.polls = [(engine.finish(*CELLS), {})]
    assert run(engine, CELLS[:cells], workers=workers) == 0
    assert engine.launched[0][1] == list(range(parts))


def test_nothing_to_do_launches_nothing(store: Store, clock: list[float]) -> None:
    engine = Engine(store)
    engine.finish(*CELLS[:2])()
    assert run(engine) == 0
    assert (engine.launched, engine.polled) == ([], [])


def test_polls_come_less_often_while_nothing_happens(store: Store, clock: list[float]) -> None:
    """A quarter longer each time, up to 15 s; soon again after something has ended."""
    times: list[float] = []
    engine = Engine(store)

    def note() -> None:
        times.append(clock[0])

    engine.polls = [(note, {}) for _ in range(25)] + [(note, {1: OK}), (note, {}), (lambda: (note(), engine.finish(*CELLS)()), {})]
    run(engine)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert gaps[0] == pytest.approx(1.5, abs=0.51)
    assert gaps[:25] == sorted(gaps[:25])
    assert max(gaps) == pytest.approx(15.25, abs=0.26)
    assert gaps[24] > 14
    assert gaps[25] < 2


def test_cells_without_a_result_are_counted_and_told(store: Store, clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine(store)
    fail = engine.finish(CELLS[0], status="failed", reason="boom")
    engine.polls = [(lambda: (fail(), engine.finish(CELLS[1])()), {})]
    assert run(engine) == 1
    assert f"{CELLS[0].request.label}: failed: boom" in caplog.text


def test_an_earlier_failure_is_tried_again(store: Store, clock: list[float]) -> None:
    """Only a record since the job was planned counts."""
    engine = Engine(store)
    engine.finish(CELLS[0], status="failed", reason="then")()
    engine.polls = [{}, {}, (engine.finish(*CELLS[:2]), {})]
    assert run(engine) == 0
    assert len(engine.polled) >= 3


# --- parts that end ------------------------------------------------------------------------------------------------------------------


def test_a_part_that_was_stopped_is_started_again(store: Store, clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    """That part alone, while the others go on."""
    engine = Engine(store)
    engine.polls = [{1: AGAIN}, {}, (engine.finish(*CELLS[:2]), {})]
    assert run(engine) == 0
    assert [parts for _, parts in engine.launched] == [[0, 1], [1]]
    assert engine.polled[1] == {0: "1_0", 1: "2_1"}
    assert "mine: part 1 of grid will be started again: preempted" in caplog.text


def test_a_job_that_ended_with_cells_left_is_started_again(store: Store, clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    """No more parts than cells are left; a part that failed is not the whole job."""
    engine = Engine(store)
    engine.polls = [(engine.finish(CELLS[0]), {}), {0: OK, 1: BAD}, (engine.finish(CELLS[1]), {})]
    with caplog.at_level(logging.INFO):
        assert run(engine) == 0
    assert [parts for _, parts in engine.launched] == [[0, 1], [0]]
    assert "mine: part 0 of grid ended: nothing left to do" in caplog.text
    assert "mine: part 1 of grid ended: exit status 3" in caplog.text


def test_a_job_whose_parts_all_fail_is_over(store: Store, clock: list[float]) -> None:
    """Its faults are told with what each printed, and its output is kept."""
    engine = Engine(store)

    def printed() -> None:
        engine.launched[0][0].log(1).write_text("first\nboom\n")

    engine.polls = [(printed, {0: BAD, 1: BAD})]
    with pytest.raises(ExecutorError) as error:
        run(engine)
    assert str(error.value).endswith("ended with 2 cells left. part 0: exit status 3; part 1: exit status 3. It printed: first | boom")
    assert engine.launched[0][0].log(1).exists()
    assert not engine.launched[0][0].plan.exists()
    assert engine.cancelled == []


def test_a_job_that_is_stopped_again_and_again_is_given_up(store: Store, clock: list[float]) -> None:
    """After three restarts without a cell; a cell in between begins the count again."""
    engine = Engine(store, parts=1)
    engine.polls = [{0: AGAIN}] * 9
    with pytest.raises(ExecutorError, match=r"was started 4 times but finished nothing \(preempted\)\. It printed: nothing$"):
        run(engine)
    assert len(engine.launched) == 4
    other = Engine(store, parts=1)
    other.polls = [{0: AGAIN}, {0: AGAIN}, (other.finish(CELLS[0]), {0: AGAIN}), {0: AGAIN}, {0: AGAIN}, (other.finish(CELLS[1]), {})]
    assert run(other) == 0
    assert len(other.launched) == 6


def test_cells_that_somebody_has_are_waited_for(store: Store, clock: list[float]) -> None:
    """A stopped part is not started again as long as what is pending is with others."""
    leases = [store.lease(key) for key in KEYS[:2]]
    engine = Engine(store)
    engine.polls = [{0: AGAIN}, {}, {}, (engine.finish(*CELLS[:2]), {})]
    assert run(engine) == 0
    assert len(engine.launched) == 1
    for lease in leases:
        assert lease is not None
        lease.release()


def test_an_engine_that_does_not_answer(store: Store, clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    """Told once, and again when it answers; nothing has ended meanwhile."""
    away = UnreachableError("no answer")
    engine = Engine(store, away, away, {}, away)
    engine.polls.append((engine.finish(*CELLS[:2]), {}))
    with caplog.at_level(logging.INFO):
        assert run(engine) == 0
    assert caplog.text.count("mine: no answer; the job is still running and will be polled again") == 2
    assert caplog.text.count("mine: grid responds again") == 2
    assert len(engine.launched) == 1


def test_a_restart_that_cannot_be_had_now_is_tried_again(store: Store, clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine(store, parts=1)
    engine.launches = [None, UnreachableError("no answer"), None]
    engine.polls = [{0: AGAIN}, (engine.finish(*CELLS[:2]), {})]
    assert run(engine) == 0
    assert "mine: cannot start part 0 again now: no answer" in caplog.text
    assert [parts for _, parts in engine.launched] == [[0], [0], [0]]


def test_a_launch_that_fails(store: Store, clock: list[float]) -> None:
    """Where it was refused nothing is left; where nobody answered, it may have been heard."""
    engine = Engine(store)
    engine.launches = [ExecutorError("no such queue")]
    with pytest.raises(ExecutorError, match="^no such queue$"):
        run(engine)
    assert list(stored_jobs(store.path)) == []
    assert not engine.launched[0][0].folder.exists()
    engine.launches = [UnreachableError("no answer")]
    with pytest.raises(UnreachableError):
        run(engine)
    (stored,) = stored_jobs(store.path)
    assert stored.ids == {}
    # The next command asks for it by name, and waits for it.
    engine.polls = [{}, (engine.finish(*CELLS[:2]), {})]
    assert run(engine) == 0
    assert engine.launched[-1] == (stored.job, [0, 1])
    assert len(engine.launched) == 3


# --- attaching ----------------------------------------------------------------------------------------------------------------------


def left_behind(
    store: Store, cells: Sequence[PlannedCell], engine: str = "grid", where: str = "", ids: Any = None, name: str = "n"
) -> StoredJob:
    """A job that another command launched."""
    job = Job(name=name, engine=engine, folder=store.path / "jobs" / name, store=store.path, parts=2)
    job.folder.mkdir(parents=True)
    PlanFile.of(cells).write(job.plan)
    stored = StoredJob(job=job, where=where, ids={0: "a", 1: "b"}, submitted="ada")
    stored.write()
    return stored


def test_a_live_job_is_attached_to_and_the_rest_is_launched(store: Store, clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    left_behind(store, CELLS[:2])
    engine = Engine(store)
    engine.polls = [{0: OK}, {}, (engine.finish(*CELLS[:3]), {})]
    with caplog.at_level(logging.INFO):
        assert run(engine, CELLS[:3]) == 0
    assert engine.polled[0] == {0: "a", 1: "b"}
    assert engine.polled[1] == {1: "b"}
    (_, parts), *_ = engine.launched
    assert parts == [0]  # for the one cell that is left
    assert "mine: grid job a, b (2 parts, submitted by ada) is running 2 of these cells; attached to it" in caplog.text
    assert "for 1 cells; output in" in caplog.text
    assert list(stored_jobs(store.path)) == []


@pytest.mark.parametrize(
    ("engine", "where", "cells"), [("other", "", CELLS[:2]), ("grid", "elsewhere", CELLS[:2]), ("grid", "", CELLS[2:])]
)
def test_jobs_of_others_are_left_alone(store: Store, clock: list[float], engine: str, where: str, cells: list[PlannedCell]) -> None:
    """Of another engine, of another cluster, of other cells."""
    left_behind(store, cells, engine, where)
    mine = Engine(store)
    mine.polls = [{}] * (engine == "grid" and not where) + [(mine.finish(*CELLS[:2]), {})]
    assert run(mine) == 0
    assert len(mine.launched) == 1
    assert [stored.job.name for stored in stored_jobs(store.path)] == ["n"]
    assert mine.cancelled == [{0: "1_0", 1: "1_1"}]


@pytest.mark.parametrize(("ends", "kept"), [({0: OK, 1: OK}, False), ({0: OK, 1: BAD}, True)])
def test_a_job_that_has_ended_is_closed(store: Store, clock: list[float], ends: dict[int, Ended], kept: bool) -> None:
    """Its output stays where a part failed; its cells are launched again."""
    stored = left_behind(store, CELLS[:2])
    stored.job.log(0).write_text("x")
    engine = Engine(store)
    engine.polls = [ends, (engine.finish(*CELLS[:2]), {})]
    assert run(engine) == 0
    assert stored.job.log(0).exists() is kept
    assert not stored.job.plan.exists()
    assert len(engine.launched) == 1


def test_a_job_without_a_plan_is_closed(store: Store, clock: list[float]) -> None:
    stored = left_behind(store, CELLS[:2])
    stored.job.plan.unlink()
    stored.job.log(0).write_text("x")
    engine = Engine(store)
    engine.polls = [(engine.finish(*CELLS[:2]), {})]
    assert run(engine) == 0
    assert stored.job.log(0).exists()
    assert not (stored.job.folder / "job.json").exists()


def test_two_commands_at_one_job(store: Store, clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    """Only the one that holds its lease starts parts again, cancels and cleans up."""
    stored = left_behind(store, CELLS[:2])
    lease = store.lease(f"job-{stored.job.name}")
    assert lease is not None
    engine = Engine(store)
    engine.polls = [{}, {0: AGAIN}, (engine.finish(*CELLS[:2]), {})]
    with caplog.at_level(logging.INFO):
        assert run(engine) == 0
    assert "part 0 of grid ended: preempted" in caplog.text
    assert (engine.launched, engine.cancelled) == ([], [])
    assert stored.job.plan.exists()
    other = Engine(store)
    store.record_path(KEYS[0]).unlink()
    other.polls = [{}, (stored.job.plan.unlink, {}), {}]
    (stored.job.folder / "job.json").unlink()
    stored.write()

    def ended() -> None:
        stored.close(keep_output=False)

    other.polls = [{}, (ended, {}), {}, {}]
    with pytest.raises(ExecutorError, match="was ended by the command that launched it; run this command again$"):
        run(other, CELLS[:1])
    lease.release()


# --- the end ------------------------------------------------------------------------------------------------------------------------


def test_parts_have_a_while_to_end_by_themselves(store: Store, clock: list[float]) -> None:
    """Ten seconds; then they are cancelled."""
    engine = Engine(store)
    engine.polls = [(engine.finish(*CELLS[:2]), {}), {0: OK}]
    began = clock[0]
    assert run(engine) == 0
    assert engine.cancelled == [{1: "1_1"}]
    assert clock[0] - began == pytest.approx(10.0, abs=1.5)
    patient = Engine(store)
    patient.polls = [(patient.finish(*CELLS[2:]), {}), {}, {0: OK, 1: OK}]
    began = clock[0]
    assert run(patient, CELLS[2:]) == 0
    assert (patient.cancelled, clock[0] - began < 4) == ([], True)


def test_an_interrupted_command_cancels_its_job(store: Store, clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    """One that another command owns continues."""
    engine = Engine(store)
    engine.polls = [KeyboardInterrupt()]  # type: ignore[list-item]

    def stop() -> None:
        raise KeyboardInterrupt

    engine.polls = [(stop, {})]
    with pytest.raises(KeyboardInterrupt):
        run(engine)
    assert engine.cancelled == [{0: "1_0", 1: "1_1"}]
    assert list(stored_jobs(store.path)) == []
    stored = left_behind(store, CELLS[:2], name="theirs")
    lease = store.lease("job-theirs")
    assert lease is not None
    other = Engine(store)
    other.polls = [{}, (stop, {})]
    with caplog.at_level(logging.INFO), pytest.raises(KeyboardInterrupt):
        run(other)
    assert other.cancelled == []
    assert "(2 parts, submitted by ada) is still running: another command is waiting for it" in caplog.text
    assert stored.job.plan.exists()
    lease.release()


def test_a_detached_command_returns_at_once(store: Store, clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine(store)
    with caplog.at_level(logging.INFO):
        assert run(engine, detach=True) == 2
    assert (len(engine.launched), engine.polled, engine.cancelled) == (1, [], [])
    assert "continues; run the same command without --detach to wait for it" in caplog.text
    engine.polls = [{}, (engine.finish(*CELLS[:2]), {}), {0: OK, 1: OK}]
    assert run(engine) == 0
    assert len(engine.launched) == 1


def test_observers_without_a_name_cannot_travel(store: Store) -> None:
    options: dict[str, Any] = {"observers": [object()]}
    with pytest.raises(
        UsageError, match="^executor grid: an observer that is a Python object or class works only with workers on this machine"
    ):
        run(Engine(store), **options)
    with pytest.raises(UsageError, match="^executor grid"):
        run(Engine(store), observers=[object(), object()], watch=["csv=/x"])


@pytest.mark.parametrize(("models", "told"), [(("a", "b"), True), (("a", "a"), False), (("a", None), False)])
def test_unlike_processors_are_told(store: Store, clock: list[float], caplog: pytest.LogCaptureFixture, models: Any, told: bool) -> None:
    """Of cells on the CPU."""
    engine = Engine(store)

    def finish() -> None:
        for cell, model in zip(CELLS[:2], models, strict=True):
            record = fake_cells.make_record(cell.cell)
            store.put(dataclasses.replace(record, environment={**record.environment, "cpu": model}))

    engine.polls = [(finish, {})]
    assert run(engine) == 0
    assert ("cells ran on 2 processor models (a; b), whose results may differ in the last bits" in caplog.text) is told
    assert math.isfinite(clock[0])


def test_a_queue_is_told_from_running(store: Store, clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """While every part waits, progress says so instead of a time left; once one runs, it is as before."""
    shown: list[str] = []
    monkeypatch.setattr(remote.CellProgress, "queued", lambda self, text: shown.append(text))
    engine = Engine(store)
    waiting = iter([{0, 1}, {0, 1}, {1}, set(), set()])
    engine.waiting = lambda ids: next(waiting) & ids.keys()  # type: ignore[attr-defined]
    engine.polls = [{}, {}, {}, (engine.finish(*CELLS[:2]), {}), {0: OK, 1: OK}]
    assert run(engine) == 0
    assert shown[:4] == ["2 parts pending", "2 parts pending", "", ""]


def test_an_attached_command_says_what_waits(store: Store, clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    """Not that cells run whose parts are all in the queue."""
    left_behind(store, CELLS[:2])
    engine = Engine(store)
    engine.polls = [{}, (engine.finish(*CELLS[:2]), {}), {0: OK, 1: OK}]
    engine.waiting = set  # type: ignore[attr-defined]
    with caplog.at_level(logging.INFO):
        assert run(engine, CELLS[:2]) == 0
    assert "has 2 of these cells (2 parts pending); attached to it" in caplog.text


def test_an_engine_that_does_not_answer_waits_for_nothing(store: Store, clock: list[float]) -> None:
    engine = Engine(store)

    def waiting(ids: Mapping[int, str]) -> set[int]:
        raise UnreachableError("no answer")

    engine.waiting = waiting  # type: ignore[attr-defined]
    engine.polls = [{}, (engine.finish(*CELLS[:2]), {}), {0: OK, 1: OK}]
    assert run(engine, CELLS[:2]) == 0
