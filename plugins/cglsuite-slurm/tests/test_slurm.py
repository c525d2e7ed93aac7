"""Campaigns on a real Slurm, and what goes wrong on one: whatever happens, every cell once, and what is finished stays."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_cells
import pytest
from cglsuite_slurm.launcher import SlurmLauncher
from tiny_slurm import TinySlurm

from cglsuite.campaigns.executors import ExecutorError, Job, RemoteExecutor, RunOptions, UnreachableError
from cglsuite.campaigns.executors.remote import stored_jobs
from cglsuite.cells import Store
from cglsuite.cells.plan import CellRequest, Limits, PlannedCell, plan_cell
from cglsuite.specs import Seeds

CATALOGUE: Any = fake_cells.FakeCatalogue()
SMALL = ("--exclusive",)  # a node for each element


def cell(seed: int = 0, **overrides: Any) -> PlannedCell:
    dotted = {f"method.{name}": value for name, value in overrides.items()}
    request = CellRequest(scenario="toy/task-il@begin-1", method="bare", overrides=dotted, seeds=Seeds(init=seed))
    return plan_cell(request, CATALOGUE)


def options(**changes: Any) -> RunOptions:
    return RunOptions(**({"catalogue": CATALOGUE, "progress": False} | changes))


def run(cells: list[PlannedCell], store: Store, array: str = "2", **changes: Any) -> int:
    return RemoteExecutor("slurm", SlurmLauncher(array=array, sbatch=SMALL, python=sys.executable)).run(cells, store, options(**changes))


SUBMIT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from test_slurm import *
logging.basicConfig(level=logging.INFO)
cells = [cell(n, seconds=float(t)) for n, t in enumerate(sys.argv[2].split(","))]
sys.exit(run(cells, Store(sys.argv[1]), *sys.argv[3:4], detach="--detach" in sys.argv))
"""


def submit(store: Store, cells: list[PlannedCell], *words: str) -> subprocess.Popen[bytes]:
    """The same in a process of its own, where it can be interrupted."""
    seconds = ",".join(str(p.request.overrides["method.seconds"]) for p in cells)
    return subprocess.Popen([sys.executable, "-c", SUBMIT, str(store.path), seconds, *words], stderr=subprocess.PIPE)


def slow(*seconds: float) -> list[PlannedCell]:
    return [cell(n, seconds=s) for n, s in enumerate(seconds)]


def once(log: Path, cells: list[PlannedCell]) -> bool:
    return Counter(log.read_text().split()) == Counter({c.key: 1 for c in cells})


def done(store: Store, cells: list[PlannedCell]) -> bool:
    return all(store.cached(c.key) for c in cells)


def running(slurm: TinySlurm, n: int) -> Callable[[], bool]:
    return lambda: Counter(slurm.queue().values())["RUNNING"] == n


def test_every_cell_once_and_a_failing_killed_or_overlong_one_costs_itself(slurm: TinySlurm, store: Store, log: Path) -> None:
    """On both nodes; failures and deaths are recorded under the job that saw them. Nothing is left in the queue or the store."""
    bad = {"raise": "failed", "kill": "failed", "sleep": "timeout", "diverge": "diverged"}
    cells = [cell(n, seconds=0.2) for n in range(8)] + [cell(n, behave=behave) for n, behave in enumerate(bad)]
    assert run(cells, store, limits=Limits(timeout_s=2.0)) == 4
    assert done(store, cells[:8])
    records = [store.get(c.key) for c in cells[8:]]
    assert [r and r.status for r in records] == list(bad.values())
    jobs = [r.environment["job"] for r in records if r is not None and "job" in r.environment]
    assert {job["engine"] for job in jobs} == {"slurm"}
    assert all(re.fullmatch(r"\d+_[01]", job["id"]) for job in jobs)
    assert {job["host"] for job in jobs} <= set(slurm.nodes)
    counts = Counter(log.read_text().split())
    assert all(counts[c.key] == 1 for c in cells[:8])
    assert not slurm.queue()
    assert not any((store.path / "jobs").glob("*"))
    assert not any((store.path / "leases").glob("*.lease"))


@pytest.mark.nightly
def test_a_node_that_fails_costs_time_only(slurm: TinySlurm, store: Store, log: Path) -> None:
    """Its cell is taken over by the other node once its runner is known to be dead."""
    cells = slow(*[1.0] * 8)
    with submit(store, cells) as process:
        slurm.wait(lambda: len(log.read_text().split()) >= 3)
        slurm.power_off("n1")
        assert process.wait(90) == 0
    slurm.start_node("n1")
    slurm.wait(lambda: slurm.run("sinfo", "-h", "-n", "n1", "-p", "low", "-o", "%t").strip() == "idle")
    assert done(store, cells)
    assert 8 <= len(log.read_text().split()) <= 9


@pytest.mark.nightly
def test_a_part_that_is_cancelled_does_not_come_back_and_the_other_goes_on(slurm: TinySlurm, store: Store, log: Path) -> None:
    """``scancel`` of one element means it: no requeue, and no new one in its place."""
    cells = slow(*[0.7] * 10)
    with submit(store, cells) as process:
        slurm.wait(running(slurm, 2))
        slurm.wait(lambda: len(log.read_text().split()) >= 3)
        (first, *_) = sorted(slurm.queue())
        slurm.run("scancel", first)
        slurm.wait(lambda: first not in slurm.queue())
        assert process.wait(90) == 0
    assert done(store, cells)
    assert 10 <= len(log.read_text().split()) <= 11
    assert not any((store.path / "attempts").glob("*"))


@pytest.mark.nightly
def test_a_job_that_is_cancelled_as_a_whole_ends_the_command(slurm: TinySlurm, store: Store) -> None:
    """It says so, and does not submit it again."""
    cells = slow(0.0, 60.0, 60.0)
    with submit(store, cells) as process:
        slurm.wait(lambda: store.cached(cells[0].key) is not None and running(slurm, 2)())
        slurm.run("scancel", "--me")
        assert process.stderr is not None
        text = process.stderr.read().decode()
    assert "was cancelled" in text
    assert process.returncode != 0
    assert not slurm.queue()


@pytest.mark.nightly
def test_ctrl_c_cancels_the_job(slurm: TinySlurm, store: Store) -> None:
    """Nothing is left in the queue; leases are given back, so that the next run need not wait; what is finished stays."""
    cells = slow(0.0, 60.0, 60.0)
    with submit(store, cells) as process:
        slurm.wait(lambda: store.cached(cells[0].key) is not None and all(store.holder(c.key) for c in cells[1:]))
        process.send_signal(signal.SIGINT)
        process.wait(60)
    slurm.wait(lambda: not slurm.queue())
    slurm.wait(lambda: not any(store.holder(c.key) for c in cells))
    assert done(store, cells[:1])
    assert not any(store.get(c.key) for c in cells[1:])  # that it was ended is no failure of a cell
    assert not any((store.path / "attempts").glob("*"))


def test_a_killed_command_is_attached_to_and_no_second_array_is_submitted(slurm: TinySlurm, store: Store, log: Path) -> None:
    """By the same command; the array in the queue stays the only one."""
    cells = slow(*[1.0] * 8)
    with submit(store, cells) as process:
        slurm.wait(running(slurm, 2))
        process.kill()
    before = {name.partition("_")[0] for name in slurm.queue()}
    assert run(cells, store) == 0
    assert len(before) == 1
    assert int(slurm.run("sbatch", *SMALL, "--parsable", "--wrap=true", "-o/dev/null").strip()) == int(before.pop()) + 2  # two elements
    assert once(log, cells)


@pytest.mark.nightly
def test_detached_it_goes_on_by_itself(slurm: TinySlurm, store: Store, log: Path) -> None:
    """The command returns before anything is done; later the same one finds everything finished."""
    cells = slow(*[1.0] * 4)
    began = time.monotonic()
    assert run(cells, store, detach=True) == 4
    assert time.monotonic() - began < 5
    slurm.wait(lambda: done(store, cells))
    slurm.wait(lambda: not slurm.queue())
    assert run(cells, store) == 0
    assert once(log, cells)
    assert not any((store.path / "jobs").glob("*"))


@pytest.mark.nightly
def test_before_its_time_is_up_a_part_requeues_itself_and_goes_on(slurm: TinySlurm, store: Store, log: Path) -> None:
    """USR1 is what Slurm sends then. The job is the same one, detached all the while, and nothing counts against the cells."""
    cells = slow(*[1.0] * 4)
    assert run(cells, store, "1", detach=True) == 4
    slurm.wait(lambda: len(log.read_text().split()) == 2)
    (name,) = slurm.queue()
    slurm.run("scancel", "--batch", "--signal=USR1", name)
    slurm.wait(lambda: slurm.queue().get(name) == "PENDING")
    assert not any(store.holder(c.key) for c in cells)
    slurm.start_now(name)
    slurm.wait(lambda: done(store, cells))
    slurm.wait(lambda: not slurm.queue())
    text = next((store.path / "jobs").rglob("part-0.log")).read_text()
    assert "stopped by SIGUSR1; finished cells are kept" in text
    assert run(cells, store) == 0
    assert max(Counter(log.read_text().split()).values()) == 2  # the cell that was stopped in the middle
    assert len(log.read_text().split()) == 5


@pytest.mark.nightly
def test_a_preempted_part_comes_back_when_the_other_job_is_done(slurm: TinySlurm, store: Store, log: Path) -> None:
    """A job of a higher tier takes both nodes; Slurm requeues the elements, and the command waits."""
    cells = slow(*[1.0] * 4)
    with submit(store, cells) as process:
        slurm.wait(lambda: len(log.read_text().split()) == 2)
        names = sorted(slurm.queue())
        high = slurm.run("sbatch", "--parsable", "-p", "high", "-N2", "--exclusive", "-o/dev/null", "--wrap=sleep 2").strip()
        slurm.wait(lambda: all(slurm.queue().get(name) == "PENDING" for name in names))
        slurm.wait(lambda: f"{high}_N/A" not in slurm.queue())
        slurm.start_now(*names)
        assert process.wait(90) == 0
    assert done(store, cells)
    assert len(log.read_text().split()) <= 6


@pytest.mark.nightly
def test_a_controller_that_is_away_for_a_while_has_ended_nothing(slurm: TinySlurm, store: Store, log: Path) -> None:
    """Nodes go on, the command waits and says so, and no part is started twice."""
    cells = slow(*[1.0] * 16)
    with submit(store, cells) as process:
        slurm.wait(lambda: len(log.read_text().split()) >= 2)
        slurm.kill("slurmctld", signal.SIGTERM)  # in order: it saves what it knows
        with pytest.raises(UnreachableError):
            SlurmLauncher().poll({0: "1_0"})
        assert process.stderr is not None
        lines = iter(process.stderr.readline, b"")
        assert any(b"the job is still running and will be polled again" in line for line in lines)  # it stays away until this is said
        slurm.start_controller()
        process.stderr.read()
        assert process.wait(90) == 0
    assert once(log, cells)


@pytest.mark.nightly
def test_a_controller_that_crashes_and_forgets_running_parts_costs_time_only(slurm: TinySlurm, store: Store, log: Path) -> None:
    """Slurm saves its state now and then only: one that is killed may come back without the job, or with one that is still to start."""
    cells = slow(*[1.0] * 10)
    with submit(store, cells) as process:
        slurm.wait(lambda: len(log.read_text().split()) >= 2)
        slurm.kill("slurmctld")
        slurm.start_controller()
        assert process.stderr is not None
        process.stderr.read()
        assert process.wait(90) == 0
    assert done(store, cells)
    assert max(Counter(log.read_text().split()).values()) <= 2  # cells that were stopped in the middle


@pytest.mark.nightly
def test_a_part_that_fails_without_a_word_is_started_again(slurm: TinySlurm, store: Store, log: Path, tmp_path: Path) -> None:
    """A controller that forgets a running part starts it a second time, and Slurm fails that start before the script begins."""
    mark = tmp_path / "was here"
    cells = slow(0.1)
    engine = SlurmLauncher(sbatch=SMALL, python=sys.executable, setup=[f"[ -e '{mark}' ] || {{ touch '{mark}'; exit 1; }}"])
    assert RemoteExecutor("slurm", engine).run(cells, store, options()) == 0
    assert once(log, cells)


def test_a_part_that_says_why_it_failed_is_not_started_again(slurm: TinySlurm, store: Store) -> None:
    engine = SlurmLauncher(sbatch=SMALL, python=sys.executable, setup=["echo no module cuda", "exit 1"])
    with pytest.raises(ExecutorError, match=r"part 0: exit status 1. It printed: no module cuda"):
        RemoteExecutor("slurm", engine).run(slow(0.1), store, options())


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"partition": "no-such"}, r"sbatch: .*invalid partition"),
        ({"time": "2:00:00"}, r"sbatch: .*[Tt]ime limit"),
        ({"constraint": "avx1024"}, r"sbatch: .*[Ii]nvalid feature"),
    ],
)
def test_what_slurm_refuses_is_told_and_leaves_nothing(slurm: TinySlurm, store: Store, changes: dict[str, Any], error: str) -> None:
    launcher = SlurmLauncher(sbatch=SMALL, **changes)
    with pytest.raises(ExecutorError, match=error):
        RemoteExecutor("slurm", launcher).run([cell()], store, options())
    assert not any((store.path / "jobs").glob("*"))
    assert not slurm.queue()


@pytest.mark.nightly
def test_a_launch_is_found_again_by_the_jobs_name(slurm: TinySlurm, store: Store, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to sbatch was lost: the next command takes the array that is there."""
    cells, launch, calls = slow(*[1.0] * 4), SlurmLauncher.launch, list[Any]()

    def lost(self: SlurmLauncher, job: Any, parts: Any) -> Any:
        ids = launch(self, job, parts)
        calls.append(ids)
        if len(calls) == 1:
            raise UnreachableError("the answer was lost")
        return ids

    monkeypatch.setattr(SlurmLauncher, "launch", lost)
    with pytest.raises(UnreachableError, match="the answer was lost"):
        run(cells, store)
    assert run(cells, store) == 0
    assert calls[0] == calls[1]
    assert once(log, cells)


CAMPAIGN = """
name = "bits"
[grid]
scenarios = ["synthetic-csbm/class-il@begin-1"]
methods = ["bare", "ewc"]
[seeds]
design = "cross"
order = [0, 1, 2, 3]
init = [0, 1, 2]
[set]
dataset.n_nodes = 90
dataset.n_classes = 6
dataset.n_features = 40
backbone.width = 8
training.epochs = 10
[run]
workers = 2
device = "cpu"
[run.slurm]
array = "2"
sbatch = ["--exclusive"]
"""


@pytest.mark.nightly
@pytest.mark.plugins("cglsuite-node", "cglsuite-methods", "cglsuite-metrics", "cglsuite-slurm")
def test_24_cells_are_equal_to_those_of_a_local_run_to_the_last_bit(slurm: TinySlurm, tmp_path: Path) -> None:
    """Through the command line. Shared prefixes are trained once on Slurm too."""
    (tmp_path / "bits.toml").write_text(CAMPAIGN)
    results = {}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FAKE_")}
    for executor in ("local", "slurm"):
        words = [sys.executable, "-m", "cglsuite", "run", "bits.toml", "--no-reports", "--store", executor, "--executor", executor]
        ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100, env=environment)
        assert ended.returncode == 0, ended.stderr
        assert "24 done" in ended.stderr
        records = {record.key: record.to_json() for record in Store(tmp_path / executor).records()}
        names = ("matrix", "validation_matrix", "per_class", "training", "metrics", "cell", "design")
        results[executor] = {k: [r[n] for n in names] for k, r in records.items()}
        assert {"job" in record["environment"] for record in records.values()} == {executor == "slurm"}
    assert len(results["local"]) == 24
    assert results["slurm"] == results["local"]


# Without a cluster


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"array": "0"}, "run.slurm.array = '0': expected a number of supervisors"),
        ({"array": "1-4"}, "run.slurm.array = '1-4'"),
        ({"time": "4 hours"}, "run.slurm.time = '4 hours': expected minutes"),
        ({"partition": "a b"}, "run.slurm.partition = 'a b': expected a single word"),
        ({"sbatch": ["account=lab"]}, "run.slurm.sbatch: 'account=lab': expected an sbatch option"),
        ({"sbatch": ["--array=3"]}, "run.slurm.sbatch: '--array=3'"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_submitted(given: dict[str, Any], says: str) -> None:
    with pytest.raises(Exception, match=re.escape(says)):
        SlurmLauncher(**given)


@pytest.mark.parametrize("time", ["30", "30:00", "4:00:00", "1-12", "1-12:30", "2-00:00:00"])
def test_times_as_slurm_writes_them(time: str) -> None:
    assert f"--time={time}" in SlurmLauncher(time=time).options


def test_the_plugin_declares_what_the_launcher_takes() -> None:
    from cglsuite_slurm.plugin import cglsuite_executors

    (spec,) = cglsuite_executors()
    defaults = {option.name: () if option.name in spec.several else option.default for option in spec.options}
    launcher = SlurmLauncher(**defaults)
    assert (launcher.parts, launcher.options) == (1, ["--signal=B:USR1@120"])


def test_a_machine_without_slurm_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ExecutorError, match="squeue is not installed on this machine; run cglsuite on a machine from which Slurm jobs can be submitted"
    ):
        SlurmLauncher().poll({0: "1_0"})


@pytest.mark.parametrize(
    ("state", "ok", "again"), [("TIMEOUT", False, True), ("NODE_FAIL", False, True), ("OUT_OF_MEMORY", False, True), ("", False, True)]
)
def test_states_of_elements(state: str, ok: bool, again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was stopped from outside is started again; what Slurm no longer knows has ended."""
    from cglsuite_slurm import launcher

    monkeypatch.setattr(launcher, "_answer", lambda *words: f"7_0|0|{state}\n7_1|1|RUNNING\n" if state else "7_1|1|RUNNING\n")
    (end,) = SlurmLauncher().poll({0: "7_0", 1: "7_1"}).values()
    assert (end.ok, end.again) == (ok, again)
    assert end.reason


def test_a_hint_names_unlike_nodes(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    from cglsuite_slurm import launcher

    monkeypatch.setattr(launcher, "_answer", lambda *words: "skylake\nzen3\nzen3\n")
    with caplog.at_level(logging.WARNING):
        SlurmLauncher()._hint()
    assert "nodes differ (features: ['skylake', 'zen3'])" in caplog.text


@pytest.mark.parametrize(("constraint", "asked"), [("", True), ("zen3", False)])
def test_unlike_nodes_are_asked_for_where_no_kind_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, constraint: str, asked: bool
) -> None:
    """On submission only: parts that are alive are left alone."""
    from cglsuite_slurm import launcher

    said: list[tuple[str, ...]] = []
    alive = ""

    def answer(*words: str) -> str:
        said.append(words)
        return {"squeue": alive, "sinfo": "skylake\nzen3\n", "sbatch": "17;cluster\n"}[words[0]]

    monkeypatch.setattr(launcher, "_answer", answer)
    job = Job(name="n", engine="slurm", folder=tmp_path, store=tmp_path, parts=2)
    slurm = SlurmLauncher(constraint=constraint, partition="long")
    with caplog.at_level(logging.WARNING):
        assert slurm.launch(job, [0, 1]) == {0: "17_0", 1: "17_1"}
    assert ("nodes differ" in caplog.text) is asked
    assert [words[0] for words in said] == ["squeue", *(["sinfo"] if asked else []), "sbatch"]
    assert not asked or "--partition=long" in said[1]
    said.clear()
    alive = "16_0|0|RUNNING\n16_1|1|PENDING\n"
    assert slurm.launch(job, [0, 1]) == {0: "16_0", 1: "16_1"}
    assert [words[0] for words in said] == ["squeue"]


def test_pending_is_told_from_running(slurm: TinySlurm, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Elements that are held, and once they are released; the command says what waits."""
    engine = SlurmLauncher(array="2", sbatch=("--hold", *SMALL), python=sys.executable)
    cells = [cell(n, seconds=0.5) for n in range(4)]
    with caplog.at_level(logging.INFO):
        RemoteExecutor("slurm", engine).run(cells, store, options(detach=True))
        [job] = stored_jobs(store.path)
        assert engine.waiting(job.ids) == {0, 1}
        assert engine.poll(job.ids) == {}
        RemoteExecutor("slurm", engine).run(cells, store, options(detach=True))
        assert "has 4 of these cells (2 parts pending); attached to it" in caplog.text
    subprocess.run(["scontrol", "release", job.ids[0].partition("_")[0]], check=True)
    deadline = time.monotonic() + 60
    while engine.waiting(job.ids):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert RemoteExecutor("slurm", engine).run(cells, store, options()) == 0
