"""A signal that comes while workers are started or ended leaves none of them behind."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import fake_cells
import pytest

from cglsuite.campaigns.executors import LocalExecutor, RunOptions
from cglsuite.campaigns.executors.supervisor import WorkerProcess, held_signals
from cglsuite.cells.plan import CellRequest, PlannedCell, plan_cell
from cglsuite.cells.storage.store import Store
from cglsuite.specs import Seeds

CATALOGUE: Any = fake_cells.FakeCatalogue()
ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT]


class Came(BaseException):
    """What the handlers of these tests raise."""


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Each of the signals raises, as under the command line."""

    def end(number: int, frame: object) -> None:
        del frame
        raise Came(number)

    formers = {number: signal.signal(number, end) for number in ENDING}
    yield
    for number, former in formers.items():
        signal.signal(number, former)


def cells(n: int, **overrides: Any) -> list[PlannedCell]:
    dotted = {f"method.{name}": value for name, value in overrides.items()}
    requests = [CellRequest(scenario="toy/task-il@begin-1", method="bare", overrides=dotted, seeds=Seeds(init=i)) for i in range(n)]
    return [plan_cell(request, CATALOGUE) for request in requests]


def run(planned: list[PlannedCell], store: Store) -> int:
    return LocalExecutor().run(planned, store, RunOptions(catalogue=CATALOGUE, progress=False, workers=2))


@pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)
def test_a_signal_right_after_the_fork_leaves_no_worker(store: Store, monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    """The worker is registered first, so that the end of the run ends and reaps it; no second one is started."""
    started: list[subprocess.Popen[bytes]] = []

    class Signalled(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            started.append(self)
            signal.raise_signal(number)

    monkeypatch.setattr(subprocess, "Popen", Signalled)
    with pytest.raises(Came):
        run(cells(2, behave="sleep"), store)
    assert [process.returncode is not None for process in started] == [True]


def test_a_second_signal_while_workers_are_ended_leaves_none(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An impatient second Ctrl-C comes after all of them are gone."""
    workers: list[WorkerProcess] = []
    close_lifeline, handle_event = WorkerProcess.close_lifeline, WorkerProcess.events

    def events(worker: WorkerProcess) -> Iterator[dict[str, Any]]:
        for event in handle_event(worker):
            workers.extend([worker] if event["event"] == "start" else [])
            if len(workers) == 2:
                signal.raise_signal(signal.SIGINT)
            yield event

    def let_go_and_signal(worker: WorkerProcess) -> None:
        signal.raise_signal(signal.SIGTERM)
        close_lifeline(worker)

    monkeypatch.setattr(WorkerProcess, "events", events)
    monkeypatch.setattr(WorkerProcess, "close_lifeline", let_go_and_signal)
    with pytest.raises(Came, match=str(int(signal.SIGTERM))):
        run(cells(2, behave="sleep"), store)
    assert [worker.process.returncode is not None for worker in workers] == [True, True]
    assert not any((store.path / "plans").glob("*"))


def test_held_signals_are_raised_afterwards_and_ignored_ones_are_not() -> None:
    """Under the handlers of before; what was done inside is finished."""
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    former, done = signal.getsignal(signal.SIGTERM), []

    def work() -> None:
        with held_signals():
            signal.raise_signal(signal.SIGQUIT)
            signal.raise_signal(signal.SIGTERM)
            done.append("all")

    with pytest.raises(Came, match=str(int(signal.SIGTERM))):
        work()
    assert done == ["all"]
    assert signal.getsignal(signal.SIGTERM) is former
    assert signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN
    with held_signals():
        pass  # nothing came, nothing is raised


def test_in_another_thread_nothing_is_held() -> None:
    """Only the main thread may set handlers."""
    seen: list[Any] = []

    def look() -> None:
        with held_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]


def test_handlers_are_exchanged_while_their_signals_are_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that came in the middle of an exchange would leave the rest exchanged. What was blocked before stays so, and nothing else."""
    exchange, seen = signal.signal, []

    def watched(number: int, handler: Any) -> Any:
        seen.append((number, number in signal.pthread_sigmask(signal.SIG_BLOCK, [])))
        return exchange(number, handler)

    monkeypatch.setattr(signal, "signal", watched)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with held_signals():
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
        assert seen
        assert all(blocked for _, blocked in seen)
        n = len(seen)
    assert sorted(seen[:n]) == sorted(seen[n:])
    assert {number for number, _ in seen} >= set(ENDING)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
