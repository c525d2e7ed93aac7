"""Campaigns on a real Dask: a scheduler and two worker processes, and what goes wrong with them."""

from __future__ import annotations

import logging
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import fake_cells
import pytest
from cglsuite_dask.launcher import DaskLauncher

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.executors import Job, RemoteExecutor, RunOptions, UnreachableError
from cglsuite.campaigns.executors.remote import stored_jobs
from cglsuite.cells import Store
from cglsuite.cells.plan import CellRequest, Limits, PlannedCell, plan_cell
from cglsuite.specs import Seeds

CATALOGUE: Any = fake_cells.FakeCatalogue()


def cell(seed: int = 0, **overrides: Any) -> PlannedCell:
    dotted = {f"method.{name}": value for name, value in overrides.items()}
    request = CellRequest(scenario="toy/task-il@begin-1", method="bare", overrides=dotted, seeds=Seeds(init=seed))
    return plan_cell(request, CATALOGUE)


def options(**changes: Any) -> RunOptions:
    return RunOptions(**({"catalogue": CATALOGUE, "progress": False} | changes))


def launcher(dask: Any, **changes: Any) -> DaskLauncher:
    return DaskLauncher(scheduler_file=str(dask.file), **{"parts": 2, **changes})


def run(cells: list[PlannedCell], store: Store, engine: DaskLauncher, **changes: Any) -> int:
    try:
        return RemoteExecutor("dask", engine).run(cells, store, options(**changes))
    finally:
        engine.client.close()


SUBMIT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from types import SimpleNamespace
from test_dask import *
if __name__ == "__main__":
    cells = [cell(n, seconds=float(t)) for n, t in enumerate(sys.argv[2].split(","))]
    engine = launcher(SimpleNamespace(file=sys.argv[3])) if sys.argv[3] else DaskLauncher()
    sys.exit(run(cells, Store(sys.argv[1]), engine, detach="--detach" in sys.argv))
"""


def submit(store: Store, cells: list[PlannedCell], file: Path | str, *words: str) -> subprocess.Popen[bytes]:
    seconds = ",".join(str(p.request.overrides["method.seconds"]) for p in cells)
    script = store.path.parent / "submit.py"  # a cluster of its own begins its workers with the main module
    script.write_text(SUBMIT)
    return subprocess.Popen([sys.executable, str(script), str(store.path), seconds, str(file), *words], stderr=subprocess.PIPE)


def slow(*seconds: float) -> list[PlannedCell]:
    return [cell(n, seconds=s) for n, s in enumerate(seconds)]


def wait(condition: Any, limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def once(log: Path, cells: list[PlannedCell]) -> bool:
    return Counter(log.read_text().split()) == Counter({c.key: 1 for c in cells})


def done(store: Store, cells: list[PlannedCell]) -> bool:
    return all(store.cached(c.key) for c in cells)


def test_every_cell_once_and_a_failing_killed_or_overlong_one_costs_itself(dask: Any, store: Store, log: Path) -> None:
    """Failures and deaths are recorded under the job that saw them; nothing is left in the store, and nothing on the cluster."""
    bad = {"raise": "failed", "kill": "failed", "sleep": "timeout", "diverge": "diverged"}
    cells = [cell(n, seconds=0.2) for n in range(8)] + [cell(n, behave=behave) for n, behave in enumerate(bad)]
    engine = launcher(dask, parts=0)
    with engine.client:
        wait(lambda: engine.parts == 2)
        assert RemoteExecutor("dask", engine).run(cells, store, options(limits=Limits(timeout_s=2.0))) == 4
        assert done(store, cells[:8])
        records = [store.get(c.key) for c in cells[8:]]
        assert [r and r.status for r in records] == list(bad.values())
        jobs = [r.environment["job"] for r in records if r is not None and "job" in r.environment]
        assert jobs
        assert {job["engine"] for job in jobs} == {"dask"}
        assert all(job["id"].startswith("cglsuite-cells-") for job in jobs)
        counts = Counter(log.read_text().split())
        assert all(counts[c.key] == 1 for c in cells[:8])
        assert engine.client.list_datasets() == ()
        assert not any((store.path / "leases").glob("*.lease"))


def test_a_dask_worker_that_is_killed_takes_its_supervisor_along_and_dask_starts_it_again(own_dask: Any, store: Store, log: Path) -> None:
    """On the other worker, or on one that comes later; the cell that was running is taken over."""
    cells = slow(*[1.0] * 8)
    with submit(store, cells, own_dask.file) as process:
        wait(lambda: len(log.read_text().split()) >= 3)
        own_dask.workers[0].kill()
        own_dask.workers[0].wait()
        own_dask.add_worker()
        assert process.wait(90) == 0
    assert done(store, cells)
    assert len(log.read_text().split()) <= 9


@pytest.mark.nightly
def test_ctrl_c_ends_what_dask_itself_would_not_stop(dask: Any, store: Store, log: Path) -> None:
    """A task that has begun runs on in Dask; the supervisor sees that the plan is gone."""
    cells = slow(0.0, 60.0, 60.0)
    with submit(store, cells, dask.file) as process:
        wait(lambda: store.cached(cells[0].key) is not None and all(store.holder(c.key) for c in cells[1:]))
        process.send_signal(signal.SIGINT)
        process.wait(60)
    wait(lambda: not any(store.holder(c.key) for c in cells))
    assert done(store, cells[:1])
    assert not any(store.get(c.key) for c in cells[1:])
    assert not any((store.path / "attempts").glob("*"))


def test_a_killed_command_is_attached_to(dask: Any, store: Store, log: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Tasks are published, and so outlive the client that sent them."""
    cells = slow(*[1.0] * 8)
    with submit(store, cells, dask.file) as process:
        wait(lambda: len(log.read_text().split()) >= 3)
        process.kill()
    with caplog.at_level(logging.INFO):
        assert run(cells, store, launcher(dask)) == 0
    assert "; attached to it" in caplog.text
    assert once(log, cells)


@pytest.mark.nightly
def test_detached_it_goes_on_by_itself(dask: Any, store: Store, log: Path) -> None:
    cells = slow(*[0.5] * 4)
    with submit(store, cells, dask.file, "--detach") as process:
        assert process.wait(60) == 4
    wait(lambda: done(store, cells))
    assert run(cells, store, launcher(dask)) == 0
    assert once(log, cells)


@pytest.mark.nightly
def test_a_scheduler_that_goes_away_ends_the_supervisors_but_no_cell_is_lost(own_dask: Any, store: Store, tmp_path: Path) -> None:
    """The command says that it does not answer; run against another cluster, the campaign is finished there."""
    cells = slow(0.0, 0.0, 2.0, 2.0)
    with submit(store, cells, own_dask.file) as process:
        wait(lambda: done(store, cells[:2]))
        own_dask.stop()
        wait(lambda: not any(store.holder(c.key) for c in cells))
        assert process.stderr is not None
        said = b""
        while b"is not responding" not in said:
            said += process.stderr.readline() or pytest.fail(f"it ended: {said.decode()}")
        process.send_signal(signal.SIGINT)
        process.wait(60)
    own_dask.start()
    own_dask.add_worker()
    assert run(cells, store, launcher(own_dask, parts=1)) == 0


@pytest.mark.nightly
def test_resources_place_the_supervisor(own_dask: Any, store: Store, log: Path) -> None:
    """Only a Dask worker that has them gets one; until one comes, the task waits."""
    cells, engine = slow(0.0, 0.0), launcher(own_dask, resources=["GPU=1"])
    assert run(cells, store, engine, detach=True) == 2
    time.sleep(1.5)
    assert log.read_text() == ""
    own_dask.add_worker("--resources", "GPU=1", "--name", "gpu-worker")
    assert run(cells, store, launcher(own_dask, resources=["GPU=1"])) == 0
    assert once(log, cells)


@pytest.mark.nightly
def test_a_cluster_of_its_own_grows_with_the_work_and_ends_with_the_command(tmp_path: Path, dask: Any, store: Store, log: Path) -> None:
    cells = slow(*[0.3] * 4)
    with submit(store, cells, "") as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()
    assert b"dask dashboard: http://" in err
    assert once(log, cells)


def test_only_functions_of_the_standard_library_are_sent(dask: Any, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the scheduler and the Dask workers unpickle must be there without the suite."""
    engine, sent = launcher(dask), list[tuple[Any, ...]]()
    monkeypatch.setattr(engine.client, "submit", lambda *given, **named: sent.append(given))
    monkeypatch.setattr(engine.client, "publish_dataset", lambda *given, **named: None)
    job = Job(name="x", engine="dask", folder=store.path, store=store.path, parts=1)
    engine.launch(job, [0])
    ((function, command),) = sent
    assert function is subprocess.call
    assert b"cglsuite_dask" not in pickle.dumps((function, command))
    assert {type(word) for word in command} == {str}
    engine.client.close()


def test_an_address_without_a_scheduler_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from cglsuite_dask import launcher as module

    monkeypatch.setattr(module, "ANSWER_S", 1.0)
    with pytest.raises(UnreachableError, match=r"Dask at tcp://127\.0\.0\.1:9 is not responding"):
        RemoteExecutor("dask", DaskLauncher(address="tcp://127.0.0.1:9")).run([cell()], store, options())
    assert not any((store.path / "jobs").glob("*"))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"resources": ["GPU"]}, "run.dask.resources: 'GPU': expected a name and a number"),
        ({"address": "tcp://x:1", "scheduler_file": "f"}, "run.dask: address and scheduler_file are mutually exclusive"),
        ({"address": "tcp://x:1", "adapt": True}, "run.dask.adapt: adapt scales only a local cluster"),
    ],
)
def test_a_wrong_option_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        DaskLauncher(**given)


def test_the_plugin_declares_what_the_launcher_takes() -> None:
    from cglsuite_dask.plugin import cglsuite_executors

    (spec,) = cglsuite_executors()
    assert DaskLauncher(**{option.name: () if option.name in spec.several else option.default for option in spec.options}).parts == 2


def test_without_a_scheduler_each_local_worker_has_a_supervisor() -> None:
    engine = DaskLauncher(local_workers=3)
    assert engine.parts == 3
    assert "client" not in vars(engine)  # the number is known before a cluster exists


def test_a_number_of_parts_is_taken_as_given() -> None:
    assert DaskLauncher(local_workers=3, parts=1).parts == 1


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
"""


@pytest.mark.nightly
@pytest.mark.plugins("cglsuite-node", "cglsuite-methods", "cglsuite-metrics", "cglsuite-dask")
def test_24_cells_are_equal_to_those_of_a_local_run_to_the_last_bit(real_dask: Any, tmp_path: Path) -> None:
    """Through the command line."""
    (tmp_path / "bits.toml").write_text(CAMPAIGN)
    results = {}
    for words in (("local",), ("dask", "--set", f"run.dask.scheduler_file={real_dask.file}", "--set", "run.dask.parts=2")):
        store = tmp_path / f"store-{words[0]}"
        command = [sys.executable, "-m", "cglsuite", "run", "bits.toml", "--no-reports", "--store", str(store), "--executor", *words]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
        assert ended.returncode == 0, ended.stderr
        assert "24 done" in ended.stderr
        records = {record.key: record.to_json() for record in Store(store).records()}
        names = ("matrix", "validation_matrix", "per_class", "training", "metrics", "cell", "design")
        results[words[0]] = {k: [r[n] for n in names] for k, r in records.items()}
    assert len(results["local"]) == 24
    assert results["dask"] == results["local"]


def test_pending_is_told_from_running(dask: Any, store: Store) -> None:
    """Tasks whose resources no Dask worker has wait; those that a worker was given do not."""
    held = launcher(dask, resources=("GPU=1",))
    cells = slow(1.0, 1.0)
    with held.client:  # an open one connects again in the background, with random pauses that later cells would notice
        RemoteExecutor("dask", held).run(cells, store, options(detach=True))
        [job] = stored_jobs(store.path)
        assert held.waiting(job.ids) == {0, 1}
        assert held.poll(job.ids) == {}
        dask.add_worker("--resources", "GPU=2")
        wait(lambda: held.waiting(job.ids) != {0, 1})
        assert RemoteExecutor("dask", held).run(cells, store, options()) == 0
