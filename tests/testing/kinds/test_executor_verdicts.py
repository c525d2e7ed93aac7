"""Verdicts on runs of an executor that are made up: what each check takes for conforming, and what it says otherwise."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cglsuite.base.errors import NotApplicable
from cglsuite.testing.findings import CheckFailed
from cglsuite.testing.kinds import executors


def message(check: Any, *given: Any) -> str:
    """What a check says; empty where it holds."""
    try:
        check(*given)
    except CheckFailed as failed:
        return str(failed) if failed.fix else "a failure without a fix"
    return ""


def record(status: str = "done", **more: Any) -> Any:
    whole = dict.fromkeys(executors._RESULTS, 1) | more
    return SimpleNamespace(status=status, reason="boom", done=status == "done", to_json=lambda: whole)


def run(tmp_path: Path, *statuses: str | None, unfinished: Any = 0, **more: Any) -> Any:
    """A run whose cells ended so; ``None``: without a record."""
    records = [None if s is None else record(s) for s in statuses]
    given = {
        "begun": Counter(range(len(statuses))),
        "leases": [],
        "printed": "bye",
        "request": SimpleNamespace(store=tmp_path / "store"),
    } | more
    return SimpleNamespace(answer={"unfinished": unfinished}, records=records, done=[r is not None and r.done for r in records], **given)


def test_three_cells_have_results(tmp_path: Path) -> None:
    def said(one: Any) -> str:
        return message(executors._runs, SimpleNamespace(first=one))

    assert said(run(tmp_path, "done", "done", "done")) == ""
    assert said(run(tmp_path, "done", "failed", None)) == "2 of 3 cells have no result after run() (failed: boom)"
    nothing = "1 of 2 cells have no result after run() (no record, 0 under other keys; it returned 0 and printed: bye)"
    assert said(run(tmp_path, "done", None)) == nothing
    assert said(run(tmp_path, "done", None, printed="")) == nothing.replace("bye", "nothing")
    assert said(run(tmp_path, "done", unfinished=1)) == "run() returns 1 although every cell is done; expected 0"
    assert said(run(tmp_path, "done", leases=list("abcd"))) == "leases remain after run(): a, b, c"


def test_no_cell_is_begun_twice(tmp_path: Path) -> None:
    def said(begun: dict[int, int]) -> str:
        return message(executors._once, SimpleNamespace(first=run(tmp_path, "done", begun=Counter(begun))))

    assert said({0: 1, 1: 1, 2: 1}) == ""
    assert said({0: 2, 1: 3, 2: 1}) == "2 of 3 cells were run more than once (at most 3 times)"


def test_results_equal_those_of_the_local_executor() -> None:
    """In matrices, metrics and keys, and in the digest of curves and states; times may differ."""
    local = SimpleNamespace(records=[record(), record(timings_s=5)])

    def said(*mine: Any) -> str:
        return message(executors._same_bits, SimpleNamespace(first=SimpleNamespace(records=list(mine)), local=local))

    assert said(record(timings_s=3), record()) == ""
    assert said(record(), record(matrix=2, training=2)) == "cell 1 differs from a local run in matrix, training"
    assert executors._results(None) == {}


@pytest.mark.parametrize(
    ("unfinished", "begun", "said"),
    [
        (0, {0: 1, 1: 1}, ""),
        (0, {0: 2, 1: 3}, "starts 3 cells and returns 0; expected no cells and 0"),
        (1, {0: 1, 1: 1}, "starts 0 cells and returns 1; expected no cells and 0"),
    ],
)
def test_a_second_run_makes_nothing(tmp_path: Path, unfinished: int, begun: dict[int, int], said: str) -> None:
    asked: list[Any] = []

    def again(store: str, cells: Any) -> Any:
        asked.append((store, len(cells)))
        return run(tmp_path, "done", "done", unfinished=unfinished, begun=Counter(begun))

    trial = SimpleNamespace(first=run(tmp_path, "done", "done"), run=again)
    assert message(executors._keeps, trial).removeprefix("a second run on the same store ") == said
    assert asked == [("first", 3)]


@pytest.mark.parametrize(
    ("statuses", "unfinished", "said"),
    [
        (("done", "failed", "failed", "timeout", "done"), 3, ""),
        (("done", "failed", "failed", "timeout", "done"), 2, "run() returns 2 although 3 cells have no result"),
        (
            ("done", "failed", None, "done", "failed"),
            3,
            "a cell that kills its process: no record, expected failed; a cell that takes too long: done, expected timeout; "
            "a good cell after these: failed, expected done",
        ),
    ],
)
def test_a_cell_that_ends_badly_costs_itself(tmp_path: Path, statuses: Any, unfinished: int, said: str) -> None:
    asked: list[Any] = []

    def made(store: str, cells: Any, *, timeout_s: float) -> Any:
        asked.append((store, [cell.get("behave") for cell in cells], timeout_s))
        return run(tmp_path, *statuses, unfinished=unfinished)

    assert message(executors._failures, SimpleNamespace(run=made)) == said
    assert asked == [("failures", [None, "raise", "kill", "hang", None], 20.0)]


class Interrupted:
    """A run that has finished one of three cells; what it does on Ctrl-C is given."""

    def __init__(self, *, done: list[list[bool]], begun: list[dict[int, int]], ends: bool = True) -> None:
        self._done, self._begun, self._ends = done, begun, ends
        self.signals: list[int] = []
        self.process = SimpleNamespace(poll=lambda: None, send_signal=self.signals.append)
        self.answer: dict[str, Any] = {"interrupted": True}

    @property
    def done(self) -> list[bool]:
        return self._done.pop(0) if len(self._done) > 1 else self._done[0]

    @property
    def begun(self) -> Counter[int]:
        return Counter(self._begun.pop(0) if len(self._begun) > 1 else self._begun[0])

    def waited(self, limit_s: float) -> Any:
        if not self._ends:
            raise CheckFailed("hangs", "x")
        return self


ONE, TWO = [True, False, False], {0: 1, 1: 1}


@pytest.mark.parametrize(
    ("one", "rest", "said"),
    [
        (Interrupted(done=[ONE], begun=[TWO]), {}, ""),
        (Interrupted(done=[ONE], begun=[TWO], ends=False), {}, "run() has not returned 60 s after Ctrl-C"),
        (Interrupted(done=[ONE, [False] * 3], begun=[TWO]), {}, "a cell that was done before Ctrl-C has no result afterwards"),
        (Interrupted(done=[ONE], begun=[TWO, TWO, {0: 1, 1: 2}]), {}, "cells are still started after run() has returned on Ctrl-C"),
        (Interrupted(done=[ONE], begun=[TWO]), {"unfinished": 2}, "the run after Ctrl-C returns 2; expected 0"),
        (Interrupted(done=[ONE], begun=[TWO]), {"begun": Counter({0: 2, 1: 2})}, "the run after Ctrl-C repeats a finished cell"),
    ],
)
def test_what_remains_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: Interrupted, rest: dict[str, Any], said: str
) -> None:
    """It is interrupted once a cell is done and another has begun; afterwards finished cells are kept, and nothing is begun."""
    monkeypatch.setattr(executors.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(executors, "_Run", lambda asked: one)
    after = run(tmp_path, "done", "done", "done", **({"begun": Counter({0: 1, 1: 2, 2: 1})} | rest))
    trial = SimpleNamespace(request=lambda store, cells: (store, cells), run=lambda store, cells: after)
    assert message(executors._interrupt, trial) == said
    assert one.signals == [signal.SIGINT]


def test_a_run_that_ends_before_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own error, or without one."""
    ended = Interrupted(done=[[False] * 3], begun=[{}])
    ended.process.poll = lambda: 0
    monkeypatch.setattr(executors, "_Run", lambda asked: ended)
    trial = SimpleNamespace(request=lambda store, cells: None)
    assert message(executors._interrupt, trial) == "run() returned before all cells were done"


# --- the process that runs it ----------------------------------------------------------------------------------------------------------


def process(tmp_path: Path, answer: Any = None, keys: Any = None, log: str = "", output: str = "") -> Any:
    """A run whose process has ended and left these files."""
    asked = SimpleNamespace(
        answer=tmp_path / "a.json", planned=tmp_path / "a.keys", log=tmp_path / "a.log", store=tmp_path / "store", cells=[{}, {}],
        entry=SimpleNamespace(name="slurm"),
    )  # fmt: skip
    made = object.__new__(executors._Run)
    made.request, made.output, made.process = asked, tmp_path / "a.out", SimpleNamespace(returncode=-9)  # type: ignore[assignment]
    for path, value in ((asked.answer, answer), (asked.planned, keys)):
        if value is not None:
            path.write_text(json.dumps(value))
    asked.log.write_text(log)
    made.output.write_text(output)
    return made


def test_what_a_process_leaves(tmp_path: Path) -> None:
    one = process(tmp_path, {"unfinished": 1}, log="0\n1\n1\n", output="first\n" + "x" * 400 + "\n")
    assert one.answer == {"unfinished": 1}
    assert one.begun == Counter({0: 1, 1: 2})
    assert (one.printed, one.records, one.done) == ("x" * 300, [None, None], [False, False])
    (tmp_path / "store" / "leases").mkdir(parents=True)
    for name in ("b.lease", "a.lease", "a.tmp"):
        (tmp_path / "store" / "leases" / name).touch()
    assert one.leases == ["a.lease", "b.lease"]
    planned = process(tmp_path, {"unfinished": 2}, keys=["0" * 64, "1" * 64])
    assert (planned.records, planned.done, planned.printed) == ([None, None], [False, False], "")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "the process that calls run() ended with status -9 (it printed: killed)"),
        ({"error": "no", "type": "ValueError", "launched": False}, "run() raises ValueError: no"),
        ({"error": "no", "type": "ExecutorError", "launched": True}, "run() raises ExecutorError: no"),
    ],
)
def test_a_run_that_comes_to_nothing(tmp_path: Path, answer: Any, said: str) -> None:
    one = process(tmp_path, answer, output="killed\n")
    assert message(lambda: one.answer) == said


@pytest.mark.parametrize("kind", ["ExecutorError", "UnreachableError", "UsageError", "SpecError"])
def test_an_engine_that_cannot_be_used_from_here_is_skipped(tmp_path: Path, kind: str) -> None:
    one = process(tmp_path, {"error": "no sbatch", "type": kind, "launched": False})
    with pytest.raises(
        NotApplicable, match=r"^the engine cannot be used on this machine: no sbatch; set options with --set run\.slurm\.OPTION=VALUE$"
    ):
        _ = one.answer


def test_a_run_that_does_not_end_is_killed(tmp_path: Path) -> None:
    one = process(tmp_path, output="waiting\n")
    calls: list[Any] = []

    def wait(limit_s: float | None = None) -> None:
        calls.append(limit_s)
        if limit_s is not None:
            raise subprocess.TimeoutExpired("x", limit_s)

    one.process = SimpleNamespace(wait=wait, kill=lambda: calls.append("kill"))
    assert message(one.waited, 7.0) == "run() has not returned after 7 s (it printed: waiting)"
    assert calls == [7.0, "kill", None]
    one.process = SimpleNamespace(wait=lambda limit_s: None)
    assert one.waited() is one


def spec(**more: Any) -> Any:
    return SimpleNamespace(
        **({"name": "mine", "factory": "mine:Mine", "options": (SimpleNamespace(name="hours"),), "remote": False} | more)
    )


@pytest.mark.parametrize(
    ("made", "remote", "said"),
    [
        (SimpleNamespace(run=print), False, ""),
        (SimpleNamespace(run=3), False, "mine:Mine returns a SimpleNamespace without run; expected an executor (remote=False) with run"),
        (SimpleNamespace(launch=print, poll=print, cancel=print, parts=4), True, ""),
        (
            SimpleNamespace(launch=print, parts=4),
            True,
            "mine:Mine returns a SimpleNamespace without poll, cancel; expected a launcher (remote=True) with launch, poll, cancel",
        ),
        (
            SimpleNamespace(launch=print, poll=print, cancel=print),
            True,
            "SimpleNamespace.parts is None; expected an int, the maximum number of parts",
        ),
    ],
)
def test_interfaces(monkeypatch: pytest.MonkeyPatch, made: Any, remote: bool, said: str) -> None:
    asked: list[Any] = []

    def find(catalogue: Any, name: str, options: Any) -> Any:
        asked.append((catalogue, name, options))
        return SimpleNamespace(launcher=made) if remote else made

    monkeypatch.setattr(executors, "find_executor", find)
    trial = SimpleNamespace(entry=SimpleNamespace(spec=spec(remote=remote)), options={"hours": 2})
    assert message(executors._interface, "the catalogue", trial) == said
    assert asked == [("the catalogue", "mine", {"hours": 2})]


def test_a_factory_that_does_not_take_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(*_: Any) -> Any:
        raise TypeError("unexpected keyword 'hours'")

    monkeypatch.setattr(executors, "find_executor", find)
    for options, listed in (((SimpleNamespace(name="hours"), SimpleNamespace(name="queue")), "hours, queue"), ((), "none")):
        trial = SimpleNamespace(entry=SimpleNamespace(spec=spec(options=options)), options={})
        expected = f"mine:Mine does not accept the declared options ({listed}): unexpected keyword 'hours'"
        assert message(executors._interface, None, trial) == expected
