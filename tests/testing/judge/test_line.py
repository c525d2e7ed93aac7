"""The judge's side of a run: when a trial has said something, and what it answers to a method's questions about validation items."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cglsuite.testing.findings import CheckFailed
from cglsuite.testing.judge.fork_server import ForkServer
from cglsuite.testing.judge.session import JudgeSession

Line = tuple[ForkServer, Any, Any, socket.socket]


@pytest.fixture
def line() -> Iterator[Line]:
    """A nursery without a process, a trial, the trial's end of its connection, and the nursery's."""
    mine, theirs = socket.socketpair()
    here, there = Pipe()
    nursery = object.__new__(ForkServer)
    nursery._control = mine
    yield nursery, SimpleNamespace(connection=here), there, theirs
    for one in (mine, theirs, here, there):
        one.close()


def test_a_trial_has_said_something_or_not(line: Line) -> None:
    """In time: true; not in time: false, and not an end."""
    nursery, trial, there, _ = line
    assert nursery.ready(trial, 0.0) is False
    there.send("x")
    assert nursery.ready(trial, 5.0) is True


def test_the_last_messages_of_a_trial_that_has_ended_are_read_first(line: Line) -> None:
    nursery, trial, there, theirs = line
    there.send("x")
    theirs.send(b'{"status": 0, "left": 0}\n')
    assert nursery.ready(trial, 5.0) is True
    assert trial.connection.recv() == "x"
    with pytest.raises(EOFError):
        nursery.ready(trial, 5.0)


def heard(monitor: str) -> Any:
    """A hearing under a monitor, whose oracle gives a quarter."""
    hearing = object.__new__(JudgeSession)
    asked: list[Any] = []

    def performance(*given: Any) -> float:
        asked.append(given)
        return 0.25

    hearing.cell = SimpleNamespace(scenario=SimpleNamespace(training=SimpleNamespace(monitor=monitor)), method="mine")  # type: ignore[assignment]
    hearing.stream = SimpleNamespace(  # type: ignore[assignment]
        validation_token=lambda position, stage: f"{position} after {stage}", oracle=SimpleNamespace(performance=performance)
    )
    hearing.scorer = SimpleNamespace(decode=lambda logits, allowed: logits.argmax(dim=1))  # type: ignore[assignment]
    hearing._forbidden_request = lambda what: CheckFailed(f"asks for {what}", "x")  # type: ignore[method-assign]
    return hearing, asked


def test_a_cost_is_minus_the_performance() -> None:
    """Of the decoded outputs on the items of these tokens, as early stopping takes less for better."""
    hearing, asked = heard("validation-performance")
    allowed = torch.ones(2, dtype=torch.bool)
    assert hearing._cost({"tokens": ["t"], "logits": torch.tensor([[0.0, 1.0], [1.0, 0.0]]), "allowed": allowed}) == -0.25
    ((tokens, decoded, given),) = asked
    assert (tokens, decoded.tolist(), given is allowed) == (["t"], [1, 0], True)


def test_a_token_is_of_a_task_at_a_stage() -> None:
    for monitor in ("validation-loss", "validation-performance"):
        assert heard(monitor)[0]._token({"position": 1, "stage": 3}) == "1 after 3"


@pytest.mark.parametrize(("monitor", "what"), [("none", "_token"), ("validation-loss", "_cost"), ("validation-performance", "_loss")])
def test_what_training_does_not_monitor_is_not_answered(monitor: str, what: str) -> None:
    asked = {"position": 1, "stage": 3, "tokens": ["t"], "logits": torch.zeros(1, 2), "allowed": torch.ones(2, dtype=torch.bool)}
    with pytest.raises(CheckFailed, match=r"asks for a validation (loss|performance), although its training has no monitor"):
        getattr(heard(monitor)[0], what)(asked)
