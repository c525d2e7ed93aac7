"""How the doctor reads what a child process left: its last stage, its end, its report, and what each report says of a plugin."""

from __future__ import annotations

import sys
import textwrap
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from cglsuite.host import doctor
from cglsuite.host.discovery import Candidate, Gate, PluginRecord
from cglsuite.host.doctor import Diagnosis, Examiner, Fault, diagnose

OPEN = Gate(block=frozenset(), allow=None)
GOOD: dict[str, Any] = {"records": [], "left": [], "heavy": [], "factories": [], "collisions": [], "tried": []}


def candidate(name: str) -> Candidate:
    return Candidate(distribution=name, version="1.0", entry_point=EntryPoint("plugin", name.replace("-", "_"), "cglsuite"))


def record(name: str, status: str = "ok", **changes: Any) -> PluginRecord:
    given: dict[str, Any] = {"distribution": name, "version": "1.0", "entry_point": "plugin", "module": name, "status": status, **changes}
    return PluginRecord(**given)


@dataclass(frozen=True, kw_only=True)
class StagedRecord(Examiner):
    """An examiner whose child processes end as ``visits`` say, one after the other."""

    timeout_s: float = 7.0
    deep: bool = True
    gate: Gate = OPEN
    stop: threading.Event = field(default_factory=threading.Event)
    visits: list[Any] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)

    def visit(self, candidates: Sequence[Candidate], timeout_s: float, deep: bool) -> Any:
        self.asked.append(([c.distribution for c in candidates], timeout_s, deep))
        return self.visits.pop(0)


def ended(stage: str = "import", ending: str = "ends the process (exit code 3)", report: Any = None, stderr: str = "") -> Any:
    return doctor._Visit(report=report, stage=stage, plugin=None, ending=ending, stderr=stderr)


def reported(*records: PluginRecord, **more: Any) -> Any:
    return ended(report={**GOOD, "records": [r.as_json() for r in records], **more})


@pytest.mark.parametrize(
    ("stage", "where"),
    [
        ("import", "at import"),
        ("start", "at start"),
        ("cglsuite_methods", "while calling cglsuite_methods"),
        ("factory of x", "at factory of x"),
    ],
)
def test_a_child_without_a_report_is_a_fault_at_its_last_stage(stage: str, where: str) -> None:
    examiner = StagedRecord(visits=[ended(stage, stderr="Fatal error")])
    found = examiner.examine(candidate("bad-one"))
    fault = Fault(
        error=f"ends the process (exit code 3) {where}",
        fix="block it (CGLSUITE_PLUGINS_BLOCK=bad-one) or uninstall it, and tell its authors",
    )
    assert found.faults == (fault,)
    made = replace(record("bad-one", "failed", module="bad_one"), error=fault.error, fix=fault.fix, details="Fatal error")
    assert found.record == made
    assert examiner.asked == [(["bad-one"], 7.0, True)]


def test_a_blocked_plugin_has_a_record_and_no_child() -> None:
    examiner = StagedRecord(gate=Gate(block=frozenset({"bad-one"}), allow=None))
    found = examiner.examine(candidate("bad-one"))
    assert found.faults == ()
    assert found.record is not None
    assert (found.record.status, found.record.error) == ("blocked", "blocked: it is in the block list")
    assert examiner.asked == []


def test_a_healthy_plugin_has_its_record_and_no_fault() -> None:
    made = record("good", provides={"method": ("m",)}, hooks=("cglsuite_methods",), source=Path("/x"))
    assert StagedRecord(visits=[reported(made)]).examine(candidate("good")) == Diagnosis(record=made, faults=())


@pytest.mark.parametrize(
    ("made", "more", "faults"),
    [
        (record("p", "failed", error="E", fix="F"), {}, [("E", "F")]),
        (record("p", "failed"), {}, [("failed", "")]),
        (record("p", error="E", fix="F"), {}, []),
        (
            record("p"),
            {"left": [[["p", "plugin", "p"], ["a thread", "a file"]]]},
            [
                (
                    "changes the state of the process that loads it: a thread; a file",
                    "its authors should make such changes only when they are needed, not on import; until then, block it "
                    "(CGLSUITE_PLUGINS_BLOCK=p)",
                )
            ],
        ),
        (
            record("p"),
            {"heavy": ["torch", "torch_geometric"]},
            [
                (
                    "listing it imports torch and torch_geometric, which slows down every command by seconds",
                    "its authors should import it in the module that the factory string names, not in the module with the hooks",
                )
            ],
        ),
        (
            record("p"),
            {"factories": ["no a", "no b"]},
            [(f"no {x}", "install another version of p, or the missing module named above") for x in "ab"],
        ),
    ],
)
def test_each_part_of_a_report_is_a_fault(made: PluginRecord, more: dict[str, Any], faults: list[tuple[str, str]]) -> None:
    found = StagedRecord(visits=[reported(made, **more)]).examine(candidate("p"))
    assert [(f.error, f.fix) for f in found.faults] == faults
    assert found.record == made


def test_healthy_plugins_together() -> None:
    """One alone cannot disturb another; two are loaded in one process, without their factories."""
    two = [candidate("a"), candidate("b")]
    for few in ([], two[:1]):
        examiner = StagedRecord()
        assert examiner.examine_together(few) == Diagnosis(record=None)
        assert examiner.asked == []
    examiner = StagedRecord(visits=[reported(record("a"), record("b"))])
    assert examiner.examine_together(two) == Diagnosis(record=None, faults=())
    assert examiner.asked == [(["a", "b"], 7.0, False)]


def test_what_plugins_do_to_each_other() -> None:
    """A crash has no owner; a failure has one; collisions come last."""
    two = [candidate("a"), candidate("b")]
    crash = StagedRecord(visits=[ended("cglsuite_metrics", "is killed by SIGSEGV")]).examine_together(two)
    assert crash == Diagnosis(
        record=None,
        faults=(
            Fault(
                error="is killed by SIGSEGV while calling cglsuite_metrics",
                fix="block it (CGLSUITE_PLUGINS_BLOCK=one of them) or uninstall it, and tell its authors",
            ),
        ),
    )
    broken = [record("a"), record("b", "failed", error="E", fix="F"), record("c", "failed", error="G"), record("d", "blocked", error="H")]
    found = StagedRecord(visits=[reported(*broken, collisions=[["C", "R"]])]).examine_together(two)
    assert [(f.error, f.fix) for f in found.faults] == [
        ("b 1.0 fails only together with the others: E", "F"),
        ("c 1.0 fails only together with the others: G", ""),
        ("C", "R"),
    ]


@pytest.mark.parametrize("together", [(), (Fault(error="E", fix="F"),)])
def test_the_healthy_ones_are_examined_together_at_the_end(monkeypatch: pytest.MonkeyPatch, together: tuple[Fault, ...]) -> None:
    """In the order of the catalogue; the joint diagnosis is there only if it found something."""
    names = ["a", "b", "c", "d"]
    status = {"a": "ok", "b": "failed", "c": "blocked", "d": "ok"}
    seen: list[Any] = []
    monkeypatch.setattr(doctor, "find_candidates", lambda: [candidate(name) for name in names])

    def examine(self: Examiner, one: Candidate) -> Diagnosis:
        seen.append((self.timeout_s, self.deep, self.gate))
        return Diagnosis(record=record(one.distribution, status[one.distribution]))

    def examine_together(self: Examiner, healthy: Sequence[Candidate]) -> Diagnosis:
        assert [c.distribution for c in healthy] == ["a", "d"]
        return Diagnosis(record=None, faults=together)

    monkeypatch.setattr(Examiner, "examine", examine)
    monkeypatch.setattr(Examiner, "examine_together", examine_together)
    found = diagnose(timeout_s=5, deep=True, gate=OPEN)
    assert [d.record.distribution if d.record else None for d in found] == names + ([None] if together else [])
    assert seen == [(5, True, OPEN)] * 4
    monkeypatch.setenv("CGLSUITE_PLUGINS_BLOCK", "x")
    diagnose()
    assert seen[-1] == (60.0, False, Gate(frozenset({"x"}), None))


def test_an_interrupted_diagnosis_ends_the_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have sessions of their own, which Ctrl-C does not reach."""
    stopped: list[bool] = []
    monkeypatch.setattr(doctor, "find_candidates", lambda: [candidate("a"), candidate("b")])

    def examine(self: Examiner, one: Candidate) -> Diagnosis:
        if one.distribution == "a":
            raise KeyboardInterrupt
        stopped.append(self.stop.wait(20))
        return Diagnosis(record=None)

    monkeypatch.setattr(Examiner, "examine", examine)
    with pytest.raises(KeyboardInterrupt):
        diagnose(gate=OPEN)
    assert stopped in ([], [True])  # not begun on a single core, else told to stop


HEAD = """
import json, os, signal, subprocess, sys, time
report = sys.argv[1]
def say(**what):
    open(report, "a").write(json.dumps(what) + "\\n")
"""


@pytest.fixture(autouse=True)
def _probe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Children run a script in the first folder of the module path."""
    monkeypatch.setattr(doctor, "_PROBE", "probe_script")
    monkeypatch.syspath_prepend(tmp_path)


def visited(script: str, timeout_s: float = 20.0, deep: bool = False) -> Any:
    """How a visit reads a child process that runs this script; ``report`` is the path of its report."""
    Path(sys.path[0], "probe_script.py").write_text(HEAD + textwrap.dedent(script))
    examiner = Examiner(timeout_s=timeout_s, deep=deep, gate=OPEN, stop=threading.Event())
    return examiner.visit([candidate("a-b")], timeout_s, deep)


def test_what_a_child_is_given() -> None:
    """The report, the keys, whether to go deep; no input, and a folder of its own."""
    script = """
    say(stage='seen', plugin=json.loads(sys.argv[2])[0])
    here, alone = os.path.samefile(os.getcwd(), os.path.dirname(report)), os.getsid(0) == os.getpid()
    say(records=[1], deep=sys.argv[3], read=sys.stdin.read(), here=here, alone=alone)
    print('out'), print('err', file=sys.stderr)
    """
    for deep, word in ((False, "0"), (True, "1")):
        visit = visited(script, deep=deep)
        assert visit.report == {"records": [1], "deep": word, "read": "", "here": True, "alone": True}
        assert visit.plugin == ("a-b", "plugin", "a_b")
        assert (visit.stage, visit.ending, visit.stderr) == ("seen", "ends the process (exit code 0)", "err\n")


@pytest.mark.parametrize(
    ("script", "stage", "plugin", "ending"),
    [
        ("sys.exit(4)", "start", None, "ends the process (exit code 4)"),
        ("say(stage='import', plugin=['p', 'q', 'r']); os._exit(0)", "import", ("p", "q", "r"), "ends the process (exit code 0)"),
        ("say(stage='a', plugin=['p']); say(stage='b'); os._exit(1)", "b", None, "ends the process (exit code 1)"),
        ("say(stage='a'); os.kill(os.getpid(), signal.SIGTERM)", "a", None, "is killed by SIGTERM"),
        ("say(stage='a', records=[1]); say(stage='b'); os._exit(1)", "b", None, "ends the process (exit code 1)"),
        ("say(stage='a'); say(records=[]); os._exit(1)", "a", None, "ends the process (exit code 1)"),
    ],
)
def test_a_child_that_ends_early_leaves_its_last_stage(script: str, stage: str, plugin: Any, ending: str) -> None:
    visit = visited(script)
    assert (visit.report, visit.stage, visit.plugin, visit.ending) == (None, stage, plugin, ending)


def test_only_the_end_of_long_messages_is_kept() -> None:
    visit = visited("sys.stderr.buffer.write(b'x' * 5000 + b'\\xff' + b'y' * 3000)")
    assert visit.stderr == "x" * 999 + "\ufffd" + "y" * 3000


def test_time_counts_from_the_last_step() -> None:
    """A child that goes on may take longer in all than one step may take."""
    visit = visited("[(say(stage=str(i)), time.sleep(0.6)) for i in range(6)]; say(records=[1])", timeout_s=2.5)
    assert visit.report == {"records": [1]}


def test_a_child_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = f"say(stage='import'); open({str(note)!r}, 'w').write(str(subprocess.Popen(['sleep', '60']).pid)); time.sleep(60)"
    began = time.monotonic()
    visit = visited(script, timeout_s=1.25)
    assert (visit.report, visit.stage, visit.ending) == (None, "import", "hangs: no progress for 1.25 s")
    assert time.monotonic() - began < 20
    grandchild = Path("/proc", note.read_text(), "cmdline")
    if sys.platform == "linux":
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and grandchild.exists() and b"sleep" in grandchild.read_bytes():
            time.sleep(0.05)
        assert not (grandchild.exists() and b"sleep" in grandchild.read_bytes())


def test_a_diagnosis_that_was_stopped_waits_for_no_child() -> None:
    Path(sys.path[0], "probe_script.py").write_text("import time; time.sleep(60)")
    examiner = Examiner(timeout_s=60, deep=False, gate=OPEN, stop=threading.Event())
    examiner.stop.set()
    began = time.monotonic()
    assert examiner.visit([candidate("a")], 60, False).report is None
    assert time.monotonic() - began < 20
