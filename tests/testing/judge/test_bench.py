"""What is said of a trial by the way it ends, without processes."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from cglsuite.testing.findings import CheckFailed
from cglsuite.testing.judge import sandbox as module
from cglsuite.testing.judge.fork_server import ForkServerGone
from cglsuite.testing.judge.sandbox import Sandbox


class Fake:
    """A nursery whose trial ends with a wait status and leaves so many processes; it may be gone."""

    def __init__(self, status: int = 0, left: int = 0, gone: bool = False) -> None:
        self.status, self.left, self.gone = status, left, gone
        self.sent, self.ended, self.closed = list[bytes](), list[bool](), 0

    def begin(self) -> Any:
        return SimpleNamespace(connection=SimpleNamespace(send_bytes=self.sent.append))

    def ready(self, trial: Any, timeout_s: float) -> bool:
        return 0.0 <= timeout_s <= 5.0

    def end(self, trial: Any, *, patient: bool) -> tuple[int, int]:
        self.ended.append(patient)
        if self.gone:
            raise ForkServerGone("gone")
        return self.status, self.left

    def close(self) -> None:
        self.closed += 1


CATALOGUE: Any = SimpleNamespace(
    entries=lambda kind: [SimpleNamespace(spec=SimpleNamespace(factory=f)) for f in ("a.data:load", "mine.module:load", "")]
)


def talked(nursery: Fake, error: BaseException | None = None) -> list[bool]:
    """What two dialogues heard of being ready; the second one raises."""
    method_sandbox = object.__new__(Sandbox)
    method_sandbox.limit_s, method_sandbox.path, method_sandbox._fork_server, method_sandbox._elsewhere = 5.0, ["/p"], nursery, None  # type: ignore[assignment]
    heard: list[bool] = []

    def talk(near: Any, ready: Any) -> None:
        heard.append(ready())
        if error is not None and len(heard) == 2:
            raise error

    method_sandbox._talk(CATALOGUE, [("method 'a'", "mine.module:A", talk), ("method 'b'", "mine.module:B", talk)])
    return heard


def test_a_trial_that_ends_well() -> None:
    """It is told once where to look, and which loaders it must not use: those of data sets but its own module."""
    nursery = Fake()
    assert talked(nursery) == [True, True]
    assert nursery.ended == [False]
    first = pickle.loads(nursery.sent[1])
    assert (len(nursery.sent), first["path"], first["loaders"]) == (2, ["/p"], ["a.data"])


@pytest.mark.parametrize(
    ("nursery", "error", "patient", "said"),
    [
        (Fake(status=3 << 8), EOFError(), True, "method 'b' ends its process (exit status 3)"),
        (Fake(status=9), ConnectionResetError(), True, "method 'b' ends its process (signal SIGKILL)"),
        (Fake(status=9), ValueError("no list"), False, "method 'b' returns data that cannot be read: ValueError: no list"),
        (Fake(), ValueError("x" * 300), False, f"method 'b' returns data that cannot be read: ValueError: {'x' * 200}"),
        (Fake(left=1), None, False, "method 'b' leaves a process running"),
        (Fake(left=2), None, False, "method 'b' leaves 2 processes running"),
        (Fake(left=2), CheckFailed("it hangs", "x"), False, "it hangs"),
    ],
)
def test_a_trial_that_ends_badly(nursery: Fake, error: BaseException | None, patient: bool, said: str) -> None:
    """Its process is waited for where it has ended by itself; the method of the dialogue at hand is named."""
    with pytest.raises(CheckFailed) as failed:
        talked(nursery, error)
    assert (str(failed.value), nursery.ended, nursery.closed) == (said, [patient], 0)


def test_a_nursery_that_is_gone_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old one is closed, so that nothing of it is left."""
    made: list[Fake] = []
    monkeypatch.setattr(module, "ForkServer", lambda: made.append(Fake()) or made[-1])
    nursery = Fake(gone=True)
    with pytest.raises(CheckFailed, match="method 'b' ends the process that started it"):
        talked(nursery, EOFError())
    assert (nursery.closed, len(made)) == (1, 1)
