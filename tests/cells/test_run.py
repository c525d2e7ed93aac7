"""Cells end to end on a tiny synthetic graph: what a record holds, what becomes of failures, and the same bits every time."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import os
import random
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lease_files import ELSEWHERE, write_lease
from odd_methods import METHODS, METRICS, RAISED, SAID, with_specs
from short_methods import SHORT

from cglsuite import Catalogue, Seeds, load_catalogue
from cglsuite.base.errors import NotApplicable, SpecError, UsageError
from cglsuite.cells import run as run_module
from cglsuite.cells.code.inputs import watch
from cglsuite.cells.keys import cell_key, design_key, prefix_keys
from cglsuite.cells.plan import CellOptions
from cglsuite.cells.records.record import Record
from cglsuite.cells.records.verify import verify
from cglsuite.cells.run import build_stream, make_runner, metrics_of, run_cell
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.cells.storage.store import Store
from cglsuite.learning.task_runner import TaskRunner

pytestmark = pytest.mark.plugins

CLASS_IL = "synthetic-csbm/class-il@begin-1"
TASK_IL = "synthetic-csbm/task-il@cglb-1"
TINY = {
    "dataset.n_nodes": 72,
    "dataset.n_classes": 6,
    "dataset.n_features": 40,
    "dataset.words": 5,
    "dataset.avg_degree": 4,
    "training.epochs": 4,
    "training.lr": 0.01,
    "backbone.width": 6,
}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """What is built in, and methods that go wrong."""
    installed = load_catalogue(allow=["cglsuite", "cglsuite-node", "cglsuite-methods", "cglsuite-metrics"])
    return with_specs(installed, list(METHODS.values()))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def make(catalogue: Catalogue, method: str = "bare", scenario: str = CLASS_IL, *, seeds: Seeds | None = None, **overrides: Any) -> CellSpec:
    given = TINY | {key.replace("__", "."): value for key, value in overrides.items()}
    return resolve_cell(catalogue, scenario, method, overrides=given, seeds=seeds or Seeds())


def numbers(record: Record) -> dict[str, Any]:
    """What must be the same to the bit whenever a cell is run."""
    return {
        "matrix": record.matrix,
        "validation_matrix": record.validation_matrix,
        "per_class": record.per_class,
        "curves": record.training_curves(),
        "tasks": record.tasks,
        "metrics": record.metrics,
        "memory": {k: v for k, v in record.memory.items() if k != "peak_bytes"},
        "parameters": record.parameters,
        "fingerprints": record.fingerprints(),
        "data": record.provenance["data"],
    }


# --- the record -------------------------------------------------------------------------------------------------------------------


def test_a_done_record(catalogue: Catalogue, store: Store) -> None:
    cell = make(catalogue, "er-gnn", seeds=Seeds(order=1, split=2, init=3), method__per_class=2)
    text: list[tuple[int, int]] = []
    record = run_cell(cell, catalogue, store, CellOptions(progress=lambda k, n: text.append((k, n))))
    assert text == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert (record.status, record.reason, record.done) == ("done", None, True)
    assert (record.key, record.design) == (cell_key(cell, catalogue), design_key(cell))
    assert record.cell["scenario"] == CLASS_IL
    assert record.cell["preset"] == cell.preset != CLASS_IL
    assert (record.cell["method"], record.cell["backbone"]) == ("er-gnn", "gcn")
    assert record.cell["seeds"] == {"order": 1, "split": 2, "init": 3}
    assert record.cell["configuration"] == json.loads(json.dumps(cell.configuration))
    assert (record.cell["threads"], record.cell["device"], record.cell["dtype"]) == (1, "cpu", "float32")
    assert record.scenario["edge_policy"] == "full"
    assert record.scenario["training"]["lr"] == 0.01

    matrix = record.performance()
    assert matrix.shape == (4, 3)
    assert ((matrix >= 0) & (matrix <= 1)).all()
    validation = record.validation()
    np.testing.assert_array_equal(np.isnan(validation), ~np.tri(4, 3, -1, dtype=bool))
    (per_class,) = record.per_class
    assert len(per_class) == 6
    assert sorted(c for task in record.tasks for c in task["classes"]) == [0, 1, 2, 3, 4, 5]
    assert all(task["n_train"] > task["n_test"] > 0 < task["n_validation"] for task in record.tasks)
    assert [c["task"] for c in record.training_curves()] == [1, 2, 3]
    assert all(len(c["loss"]) == len(c["monitor"]) == 4 for c in record.training_curves())

    assert record.metrics["average_performance"] == pytest.approx(matrix[3].mean())
    diagonal = [matrix[1, 0], matrix[2, 1]]
    assert record.metrics["forgetting_from_diagonal"] == pytest.approx(np.mean(diagonal - matrix[3, :2]))
    assert record.metrics["forward_transfer"] is None  # class-IL: not defined
    assert record.metrics["intransigence"] is None  # needs joint training

    parts = {k: v for k, v in record.timings_s.items() if k != "total"}
    assert set(parts) == {"training", "method", "evaluation", "checkpoints", "framework"}
    assert sum(v or 0 for v in parts.values()) == pytest.approx(record.timings_s["total"])
    assert record.memory["items"] == 12
    assert record.memory["budget_items"] == 60
    assert (record.memory["peak_bytes"] or 0) > 10 * 2**20
    assert record.parameters["model"] == 40 * 6 + 6 * 6 + 6 * 6 + 3 * 12 + 6 * 6 + 6  # three convolutions, three norms, the head
    assert record.parameters["method"] == 0

    roles = {p["role"]: p for p in record.provenance["plugins"]}
    assert roles["method"]["distribution"] == "cglsuite-methods"
    assert set(roles) == {"dataset", "scenario", "backbone", "method", "measure"}
    assert all(p["version"] and len(p["source"]) == 64 for p in (*roles.values(), record.provenance["core"]))
    assert record.provenance["resumed_from_task"] == 0
    assert len(record.fingerprints()) == 3
    assert record.environment["torch"] == torch.__version__
    assert record.environment["cuda"] is None
    assert Record.from_json(store.record_path(record.key).read_bytes()) == record


BUILT_IN = ["bare", "joint", "replay", "ewc", "lwf", "mas", "twp", "er-gnn", "gem", "continual-gnn", "evolve-gcn", "der++", "er-ace"]
BUILT_IN += ["packnet", "piggyback", "hat", "pi-gnn", "cat", "puma", "delome", "si", "gdumb", "frozen-ncm"]
BUILT_IN += ["icarl", "ssrm", "task-guesser", "tpp", "joint-budgeted", "ssm", "sem"]
BUILT_IN += ["analytic-ridge", "simple-cil", "pdgnns-tem"]
FOR_TASK_IL = ("packnet", "piggyback", "hat")
FOR_CLASS_IL = ("task-guesser",)
FEW_SHOT = ["teen"]  # needs a base session
OPEN_WORLD = ["gdoc"]  # class-IL alone
TASK_FREE = ["er", "a-gem", "gss", "mas-star", "dmsg"]  # for task-free streams only


def test_these_are_all_built_in_methods(catalogue: Catalogue) -> None:
    built_in = [e.name for e in catalogue.entries("method") if e.record.distribution == "cglsuite-methods"]
    assert sorted(built_in) == sorted(BUILT_IN + FEW_SHOT + OPEN_WORLD + TASK_FREE)


@pytest.mark.sampled(45)
@pytest.mark.parametrize("method", BUILT_IN)
@pytest.mark.parametrize(
    "scenario", [f"synthetic-csbm/{s}@{p}" for s in ("task-il", "class-il") for p in ("begin-1", "cglb-1", "cglb-inter-1")]
)
def test_every_built_in_method_runs_everywhere(catalogue: Catalogue, store: Store, scenario: str, method: str) -> None:
    for setting, only in (("task-il", FOR_TASK_IL), ("class-il", FOR_CLASS_IL)):
        if method in only and setting not in scenario:
            with pytest.raises(NotApplicable, match=f"method '{method}' is defined for {setting}"):
                make(catalogue, method, scenario)
            return
    record = run_cell(make(catalogue, method, scenario, **SHORT.get(method, {})), catalogue, store)
    assert record.status == "done", record.reason
    asked = np.isfinite(record.performance())
    expected = np.ones((4, 3), dtype=bool) if "begin" in scenario else np.tri(4, 3, -1, dtype=bool)
    np.testing.assert_array_equal(asked, expected)


def test_the_second_call_reads_the_first_ones_record(catalogue: Catalogue, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = make(catalogue)
    first = run_cell(cell, catalogue, store)
    monkeypatch.setattr(run_module, "build_stream", lambda *a: pytest.fail("a cached cell was built again"))
    assert run_cell(cell, catalogue, Store(store.path)) == first


def test_only_done_counts_as_cached(catalogue: Catalogue, store: Store) -> None:
    cell = make(catalogue)
    failed = dataclasses.replace(run_cell(cell, catalogue, store), status="failed", reason="a power cut")
    store.record_path(failed.key).write_text(failed.to_text())
    assert run_cell(cell, catalogue, store).status == "done"
    assert store.get(failed.key).status == "done"  # type: ignore[union-attr]


@pytest.mark.parametrize(("before", "after", "kept"), [(2, 2, 2), (2, 1, 1), (1, 1, 1), (2, 0, 0), (0, 0, 0), (3, 3, 3)])
def test_states_are_kept_for_as_long_as_another_cell_begins_with_their_tasks(
    catalogue: Catalogue, store: Store, before: int, after: int, kept: int
) -> None:
    """So many tasks in common when the cell begins, and so many when it ends; alone, it leaves its last state."""
    text = iter([before, after])
    record = run_cell(make(catalogue), catalogue, store, CellOptions(shared_tasks=lambda: next(text)))
    runner = make_runner(make(catalogue), catalogue, build_stream(make(catalogue), catalogue))
    family = prefix_keys(make(catalogue), catalogue)[0]
    expected = [f"{family}-{prefix}.pt" for prefix in runner.prefixes[1 : kept + 1]]
    assert sorted(p.name for p in (store.path / "checkpoints").iterdir()) == sorted(expected)
    assert list((store.path / "leases").glob("*.lease")) == []
    alone = Store(store.path.with_name("alone"))
    assert numbers(run_cell(make(catalogue), catalogue, alone)) == numbers(record)
    assert [p.name for p in (alone.path / "checkpoints").iterdir()] == [f"{family}-{runner.prefixes[3]}.pt"]


def test_a_task_that_another_runner_trains_is_waited_for(catalogue: Catalogue, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runners begin with the same task at the same time: one trains it, the other takes it over and trains the rest."""
    orders = [make(catalogue, scenario__class_order=o) for o in ("0,1,2,3,4,5", "0,1,4,5,2,3")]
    alone = [numbers(run_cell(cell, catalogue, Store(store.path.with_name(f"alone{n}")))) for n, cell in enumerate(orders)]
    first = make_runner(orders[0], catalogue, build_stream(orders[0], catalogue)).prefixes[1]
    checkpoints = run_module.store_checkpoints(orders[0], catalogue, store)
    lease = store.lease(f"{checkpoints.family}-{first}")
    assert lease is not None
    waited: list[float] = []
    other: list[bool] = []  # code must not be replaced while a cell runs, so that the other runner has its claim from the start
    claim = run_module.StoreCheckpoints.claim
    monkeypatch.setattr(
        run_module.StoreCheckpoints, "claim", lambda self, prefix: contextlib.nullcontext(True) if other else claim(self, prefix)
    )

    def meanwhile(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:  # the other runner finishes the task
            other.append(True)
            with contextlib.suppress(KeyboardInterrupt):
                run_cell(
                    orders[0], catalogue, store, CellOptions(shared_tasks=lambda: 1, progress=lambda k, n: _raise() if k == 1 else None)
                )
            other.clear()
            lease.release()

    monkeypatch.setattr(run_module.time, "sleep", meanwhile)
    record = run_cell(orders[1], catalogue, store, CellOptions(shared_tasks=lambda: 1))
    assert len(waited) == 2
    assert (record.provenance["resumed_from_task"], record.provenance["trained_tasks"]) == (0, 2)
    assert numbers(record) == alone[1]
    assert numbers(run_cell(orders[0], catalogue, store, CellOptions(shared_tasks=lambda: 0))) == alone[0]
    assert list((store.path / "checkpoints").iterdir()) == []


def test_waiting_for_a_task_that_another_machine_trains_is_told_at_once(
    catalogue: Catalogue, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Before the first pause, once, with the machine's name."""
    asked = make(catalogue)
    checkpoints = run_module.store_checkpoints(asked, catalogue, store)
    first = make_runner(asked, catalogue, build_stream(asked, catalogue)).prefixes[1]
    path = store.path / "leases" / f"{checkpoints.family}-{first}.lease"
    write_lease(path, **ELSEWHERE)
    text: list[int] = []

    def pause(seconds: float) -> None:
        text.append(caplog.text.count("waiting for a shared first task: process 4194305 on node7 since"))
        if len(text) == 3:
            path.unlink()

    monkeypatch.setattr(run_module.time, "sleep", pause)
    with checkpoints.claim(first) as mine:
        assert mine
    assert text == [1, 1, 1]


def test_what_a_shared_prefix_took_is_told_apart(catalogue: Catalogue, store: Store) -> None:
    """Times are those of the whole stream, wherever its first tasks were trained; what was spent here is beside them."""
    orders = [make(catalogue, scenario__class_order=o) for o in ("0,1,2,3,4,5", "0,1,4,5,2,3")]
    first, second = (run_cell(cell, catalogue, store, CellOptions(shared_tasks=lambda: 1)) for cell in orders)
    assert (first.provenance["resumed_from_task"], first.provenance["trained_tasks"], first.provenance["covered_s"]) == (0, 3, 0.0)
    assert 0 < first.provenance["trained_s"] <= (first.timings_s["total"] or 0)
    assert (second.provenance["resumed_from_task"], second.provenance["trained_tasks"]) == (1, 2)
    assert second.provenance["trained_s"] > 0 < second.provenance["covered_s"]
    assert second.provenance["trained_s"] + second.provenance["covered_s"] == pytest.approx(second.timings_s["total"])


# --- failures ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lr", [1e4, 1e6])
@pytest.mark.parametrize("scenario", [CLASS_IL, TASK_IL])
def test_a_loss_that_is_not_finite_is_diverged(catalogue: Catalogue, store: Store, scenario: str, lr: Any) -> None:
    record = run_cell(make(catalogue, scenario=scenario, training__lr=lr, training__optimizer="sgd"), catalogue, store)
    assert record.status == "diverged"
    assert record.reason is not None
    assert re.match(r"at epoch [0-9]+ of task [0-9]+: the (loss|monitored value) became (nan|inf)", record.reason)
    assert record.settled_on(record.environment["arithmetic"])
    assert not record.settled_on("0" * 64)
    assert "lower training.lr" in record.reason
    assert record.matrix == []


@pytest.mark.parametrize(
    ("method", "status", "reason"),
    [
        ("raises", "failed", r"ValueError: no second task, please \(at odd_methods\.py:\d+ in before_task\)"),
        ("fails-to-begin", "failed", r"KeyError: 'lambda' \(at odd_methods\.py:\d+ in setup\)"),
        ("exits", "failed", "SystemExit: had enough"),
        ("looks-up-answers", "failed", "this batch is a query, so it has no labels: only the oracle has them"),
        ("forgets-itself", "failed", r"ForgetsItself\.predict changed the method's state"),
        ("too-much-memory", "failed", r"the scenario's budget is 60 \(scenario\.memory_budget\)"),
        ("absent", "failed", r"method 'absent' of odd 1\.0: 'odd_methods:Absent' cannot be loaded"),
        ("takes-all-memory", "oom", "can't allocate memory"),
        ("runs-out", "oom", "MemoryError"),
        ("device-runs-out", "oom", "CUDA out of memory"),
        ("not-here", "skipped", "this method needs edges, and there are none"),
    ],
)
def test_a_failing_method_becomes_a_status_with_its_reason(
    catalogue: Catalogue, store: Store, method: str, status: str, reason: str
) -> None:
    import re

    cell = make(catalogue, method, training__epochs=2, dataset__n_nodes=144)
    record = run_cell(cell, catalogue, store)
    assert record.status == status
    assert record.reason is not None
    assert re.search(reason, record.reason), record.reason
    assert record.matrix == []
    assert record.metrics == {}
    assert [t["classes"] for t in record.tasks]  # the stream had been built
    assert record.provenance["data"]
    assert store.get(record.key) == record
    assert store.cached(record.key) is None


@pytest.mark.parametrize("method", ["answers-by-looking", "answers-by-dispatch"])
@pytest.mark.parametrize("monitor", ["validation-loss", "validation-performance"])
def test_answers_of_a_subclass_meet_no_label(catalogue: Catalogue, store: Store, method: str, monitor: str) -> None:
    """The bug: ``__torch_function__`` saw answers and labels side by side, and every answer was right."""
    honest, disguised = (run_cell(make(catalogue, name, training__monitor=monitor), catalogue, store) for name in ("bare", method))
    assert (disguised.status, disguised.reason) == ("done", None)
    assert disguised.matrix == honest.matrix
    assert disguised.training_curves() == honest.training_curves()


def test_answers_that_are_no_tensor_are_named(catalogue: Catalogue, store: Store) -> None:
    record = run_cell(make(catalogue, "answers-in-text"), catalogue, store)
    assert record.status == "failed"
    assert record.reason is not None
    assert "the method returned an object of type str; expected a tensor with one row per item" in record.reason


def test_a_record_says_what_the_method_carries(catalogue: Catalogue, store: Store) -> None:
    """Beside model and metered memory, as `check` counts it: the penalty of EWC has two tensors of each parameter, from every task."""
    bare, er, ewc = (run_cell(make(catalogue, name), catalogue, store).memory for name in ("bare", "er-gnn", "ewc"))
    assert bare["state_bytes_per_task"] == er["state_bytes_per_task"] == 0
    parameters = 4 * (40 * 6 + 6 * 6 + 6 * 6 + 3 * 12 + 6 * 6 + 6)
    assert (ewc["state_bytes"] or 0) - (bare["state_bytes"] or 0) > 2 * parameters
    assert (ewc["state_bytes_per_task"] or 0) > 2 * parameters / 3


def test_no_method_takes_the_file_system_from_its_process(catalogue: Catalogue, store: Store) -> None:
    """The bug: the record could not be written, and the campaign ended with a full disk. Limits that may not be raised again stay."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with watch(store.path):
        record = run_cell(make(catalogue, "limits-files"), catalogue, store)
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == before
    assert record.status == "unclean"
    assert "lowering a hard resource limit" in str(record.reason)


@pytest.mark.parametrize("said", SAID)
def test_what_a_method_says_of_itself_costs_its_cell_alone(catalogue: Catalogue, store: Store, said: str) -> None:
    """The bug: an error of the store, which ends the campaign."""
    record = run_cell(make(catalogue, "says-of-itself", training__epochs=2, method__said=said), catalogue, store)
    assert record.status == "failed"
    assert record.reason is not None
    assert record.reason.startswith("its record would be invalid: ")
    assert [t["classes"] for t in record.tasks]
    assert store.get(record.key) == record


@pytest.mark.parametrize("raised", RAISED)
def test_no_error_of_a_method_is_one_of_the_store(catalogue: Catalogue, store: Store, raised: str) -> None:
    """Nor does its text end the run, whatever that is."""
    record = run_cell(make(catalogue, "says-of-itself", training__epochs=2, method__said=raised), catalogue, store)
    assert record.status == ("skipped" if raised == "wordless" else "failed")
    assert record.reason is not None
    assert 10 < len(record.reason) <= 10_000
    assert Store(store.path).get(record.key) == record


def test_replay_that_needs_old_nodes_is_skipped_where_they_are_gone(catalogue: Catalogue, store: Store) -> None:
    record = run_cell(make(catalogue, "er-gnn", TASK_IL, method__neighbourhood=True), catalogue, store)
    assert record.status == "skipped"
    assert record.reason is not None
    assert "method.neighbourhood=false" in record.reason


def test_data_that_cannot_be_split_fail_with_what_to_do(catalogue: Catalogue, store: Store) -> None:
    record = run_cell(make(catalogue, dataset__n_nodes=18, dataset__avg_degree=1), catalogue, store)
    assert record.status == "failed"
    assert record.reason is not None
    assert "has 3 items, too few for a" in record.reason
    assert record.tasks == []


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"scenario__class_order": "0,1,2,3,4,9"}, "scenario.class_order: 9 is not a class of this scenario"),
        ({"scenario__n_tasks": 4}, r"scenario\.n_tasks = 4, but 6 classes form at most 3 tasks of 2"),
        ({"scenario__split": "official"}, "the dataset 'synthetic-csbm' has no official split"),
        ({"dataset__avg_degree": 60}, "synthetic-csbm: avg_degree and homophily require"),
    ],
)
def test_a_wrong_request_is_the_callers_error(catalogue: Catalogue, store: Store, overrides: dict[str, Any], message: str) -> None:
    """Nothing is stored: it is not the cell that failed."""
    with pytest.raises(SpecError, match=message):
        run_cell(make(catalogue, **overrides), catalogue, store)
    assert list(store.records()) == []


def test_an_interruption_is_passed_on_and_loses_nothing(catalogue: Catalogue, store: Store, tmp_path: Path) -> None:
    cell = make(catalogue, "er-gnn", method__per_class=2)
    whole = run_cell(cell, catalogue, Store(tmp_path / "whole"))

    def interrupt(learnt: int, of: int) -> None:
        if learnt == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_cell(cell, catalogue, store, CellOptions(progress=interrupt))
    assert list(store.records()) == []
    resumed = run_cell(cell, catalogue, store)
    assert resumed.provenance["resumed_from_task"] == 2
    assert numbers(resumed) == numbers(whole)


def test_a_cell_that_is_quick_saves_nothing_but_what_others_begin_with(
    catalogue: Catalogue, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its last state, for analyses; an interval of 0 saves every task, and what is no number of seconds is refused."""
    cell = make(catalogue, "ewc")

    def saved(every: str | None, **options: Any) -> tuple[int, Record]:
        if every is None:
            monkeypatch.delenv("CGLSUITE_CHECKPOINT_EVERY", raising=False)
        else:
            monkeypatch.setenv("CGLSUITE_CHECKPOINT_EVERY", every)
        there = Store(tmp_path / str(random.random()))
        record = run_cell(cell, catalogue, there, CellOptions(**options))
        return there.saved, record

    (quick, record), (shared, _), (alone, _) = saved(None, shared_tasks=lambda: 0), saved(None, shared_tasks=lambda: 1), saved(None)
    assert (quick, shared, alone) == (0, 1, 1)
    assert record.timings_s["checkpoints"] == 0
    every, other = saved("0", shared_tasks=lambda: 0)
    assert every == 2
    assert (other.timings_s["checkpoints"] or 0) > 0
    assert numbers(other) == numbers(record)
    assert saved("1000", shared_tasks=lambda: 0, checkpoint_every_s=0.0)[0] == 2  # the caller's precedes the environment's
    with pytest.raises(UsageError, match="CGLSUITE_CHECKPOINT_EVERY"):
        saved("often")


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the system keeps no peak that can be reset")
def test_the_peak_is_the_cells_and_not_that_of_reading_the_data(
    catalogue: Catalogue, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, times = run_module._load, list[int]()

    def converted(*given: Any) -> Any:
        if not times:
            torch.ones(600 * 2**18)
        times.append(1)
        return load(*given)

    before = run_module._resident_peak()
    monkeypatch.setattr(run_module, "_load", converted)
    record = run_cell(make(catalogue), catalogue, store)
    assert times
    assert run_module._resident_peak() - before < 300 * 2**20
    assert 10 * 2**20 < (record.memory["peak_bytes"] or 0) < before + 300 * 2**20


def test_a_damaged_checkpoint_is_a_loss_of_time_only(catalogue: Catalogue, store: Store, tmp_path: Path) -> None:
    cell = make(catalogue, "ewc")
    whole = run_cell(cell, catalogue, Store(tmp_path / "whole"))
    with pytest.raises(KeyboardInterrupt):
        run_cell(cell, catalogue, store, CellOptions(progress=lambda k, n: _raise() if k == 2 else None))
    (checkpoint,) = (store.path / "checkpoints").iterdir()
    body = bytearray(checkpoint.read_bytes())
    body[len(body) // 2] ^= 1
    checkpoint.write_bytes(body)
    resumed = run_cell(cell, catalogue, store)
    assert resumed.provenance["resumed_from_task"] == 0
    assert numbers(resumed) == numbers(whole)
    assert len(store.problems) == 1


def _raise() -> None:
    raise KeyboardInterrupt


def test_an_interrupt_from_within_a_method_is_one_too(catalogue: Catalogue, store: Store) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_cell(make(catalogue, "interrupts"), catalogue, store)
    assert list(store.records()) == []


@pytest.mark.parametrize("name", ["failing", "absent", "leaves", "raises"])
def test_a_broken_metric_does_not_cost_the_result(catalogue: Catalogue, store: Store, name: str) -> None:
    """The matrix is what was paid for; a metric can be computed again once its plugin is repaired."""
    broken = with_specs(catalogue, [METRICS[name], METRICS["half"]])
    record = run_cell(make(catalogue), broken, store)
    assert record.status == "done"
    assert record.performance().shape == (4, 3)
    assert record.metrics[name] is None
    assert record.metrics["half"] == 0.5
    assert record.metrics["average_performance"] is not None


@pytest.mark.parametrize("name", ["sorts", "clears", "unlocks"])
def test_no_metric_changes_what_the_record_stores(catalogue: Catalogue, store: Store, tmp_path: Path, name: str) -> None:
    """Nor what the metrics after it compute; neither when a cell is run nor when its record is verified."""
    odd = with_specs(catalogue, [METRICS[name], METRICS["half"]])
    record, plain = (run_cell(make(catalogue), which, Store(tmp_path / f"{n}")) for n, which in enumerate((odd, catalogue)))
    assert record.matrix == plain.matrix
    assert record.tasks == plain.tasks
    assert {n: v for n, v in record.metrics.items() if n in plain.metrics} == plain.metrics
    before = record.to_text()
    assert {check.verdict for check in verify([record], odd)} == {"agrees"}
    assert record.to_text() == before


def test_metrics_where_they_are_defined(catalogue: Catalogue) -> None:
    matrix = [[0.5, 0.5], [1.0, 0.5], [0.75, 1.0]]
    joint = [[0.5, 0.5], [1.0, 0.5], [1.0, 1.0]]
    found = metrics_of(make(catalogue), catalogue, matrix)
    assert found["average_performance"] == 0.875
    assert found["forgetting_from_diagonal"] == 0.25
    assert found["backward_transfer"] == -0.25
    assert found["intransigence"] is None
    assert found["forward_transfer"] is None
    assert metrics_of(make(catalogue), catalogue, matrix, joint)["intransigence"] == 0.0


# --- the same bits ----------------------------------------------------------------------------------------------------------------


def test_twice_alone_or_after_others_in_one_process(catalogue: Catalogue, tmp_path: Path) -> None:
    """And whatever state the process's random numbers are in."""
    cell = make(catalogue, "er-gnn", method__sampler="random", method__per_class=2)
    alone = numbers(run_cell(cell, catalogue, Store(tmp_path / "0")))
    assert numbers(run_cell(cell, catalogue, Store(tmp_path / "1"))) == alone
    for i, other in enumerate((make(catalogue, "joint", TASK_IL), make(catalogue, "ewc"), make(catalogue, "raises")), start=2):
        torch.manual_seed(i)
        np.random.seed(i)  # noqa: NPY002
        random.seed(i)
        run_cell(other, catalogue, Store(tmp_path / str(i)))
        assert numbers(run_cell(cell, catalogue, Store(tmp_path / str(i)))) == alone
    assert (
        numbers(
            run_cell(
                make(catalogue, "er-gnn", method__sampler="random", method__per_class=2, seeds=Seeds(init=1)),
                catalogue,
                Store(tmp_path / "9"),
            )
        )
        != alone
    )


@pytest.mark.parametrize("method", ["bare", "raises"])
def test_global_state_is_as_it_was(catalogue: Catalogue, store: Store, method: str) -> None:
    """Random numbers, threads and deterministic algorithms; inside, the cell's own."""
    inside: list[tuple[int, bool]] = []
    threads = torch.get_num_threads()
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # type: ignore[index] # noqa: NPY002

    def look(learnt: int, of: int) -> None:
        inside.append((torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()))

    run_cell(make(catalogue, method), catalogue, store, CellOptions(progress=look))
    assert set(inside) == {(1, True)}
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # type: ignore[index] # noqa: NPY002
    assert random.getstate() == before[2]


@pytest.mark.parametrize("scenario", [CLASS_IL, TASK_IL])
def test_orders_share_prefixes_without_a_trace(catalogue: Catalogue, tmp_path: Path, scenario: str) -> None:
    """Two orders with a common first task: one training less, the same numbers."""
    shared, trained = Store(tmp_path / "shared"), []
    original = TaskRunner._stage
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskRunner, "_stage", lambda self, k, before: (trained.append(k), original(self, k, before))[1])
        for n, order in enumerate(("0,1,2,3,4,5", "0,1,4,5,2,3", "0,1,4,2,3,5")):
            cell = make(catalogue, "ewc", scenario, scenario__class_order=order)
            together = run_cell(cell, catalogue, shared, CellOptions(shared_tasks=lambda: 1))
            count = len(trained)
            alone = run_cell(cell, catalogue, Store(tmp_path / str(n)))
            assert count == (3 if n == 0 else 2)
            trained.clear()
            mine, theirs = numbers(together), numbers(alone)
            for found in (mine, theirs):  # the hash of the answers covers the order of the questions, which is another
                found["fingerprints"] = [f["state"] for f in found["fingerprints"]]
            assert mine == theirs


def test_a_dataset_is_loaded_once_for_many_cells(catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cglsuite_node.datasets import synthetic

    loaded: list[Any] = []
    original = synthetic.synthetic_csbm
    monkeypatch.setattr(synthetic, "synthetic_csbm", lambda root, **p: (loaded.append(p), original(root, **p))[1])
    monkeypatch.setattr(run_module, "_DATA", {})
    for n, cell in enumerate(
        (make(catalogue), make(catalogue, "ewc"), make(catalogue, scenario=TASK_IL), make(catalogue, seeds=Seeds(split=1)))
    ):
        assert run_cell(cell, catalogue, Store(tmp_path / str(n))).done
    assert len(loaded) == 1
    run_cell(make(catalogue, dataset__seed=1), catalogue, Store(tmp_path / "other"))
    assert len(loaded) == 2


def test_a_dataset_is_left_as_it_was(catalogue: Catalogue, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "_DATA", {})
    for method in ("ewc", "er-gnn", "joint"):
        run_cell(make(catalogue, method), catalogue, store)
    ((data, _),) = run_module._DATA.values()
    before = data.content_hash
    again = copy.copy(data)
    del again.__dict__["content_hash"]
    assert again.content_hash == before


KILLER = """
import json, os, random, select, shutil, signal, sys, time, traceback
from pathlib import Path
import torch._dynamo, torch._inductor.config  # else imported when a cell first trains, in every process
import cglsuite.cells.records.record
from cglsuite import load_catalogue
from cglsuite.cells.plan import CellOptions
from cglsuite.cells.run import build_stream, run_cell
from cglsuite.cells.keys import cell_key
from cglsuite.cells.spec import resolve_cell
from cglsuite.cells.storage.store import Store

folder, scenario, method, overrides = Path(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
catalogue = load_catalogue()
cell = resolve_cell(catalogue, scenario, method, overrides=overrides)
key = cell_key(cell, catalogue)
build_stream(cell, catalogue)
T, rng = 3, random.Random(int(sys.argv[5]))

def run(path):
    # A process of its own, forked before torch has computed anything; it tells how many tasks are learnt.
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            run_cell(cell, catalogue, Store(path), CellOptions(progress=lambda k, n: os.write(write, bytes([k]))))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(write)
    return pid, read

def finish(path):
    pid, read = run(path)
    _, status = os.waitpid(pid, 0)
    os.close(read)
    assert status == 0, status
    return Store(path).get(key)

def described(record):
    return [record.matrix, record.validation_matrix, record.per_class, record.training_curves(), record.fingerprints()]

def files_are_whole(path):
    store = Store(path)
    records = list(store.records())
    names = [p.stem for p in (path / "checkpoints").glob("[!.]*")] if (path / "checkpoints").exists() else []
    loaded = [store.load_checkpoint(name) for name in names]
    return store.problems == [] and None not in loaded and all(r.done and described(r) == whole for r in records)

begun = time.perf_counter()
whole = described(finish(folder / "whole"))
per_task = (time.perf_counter() - begun) / (T + 1)
kills, rounds, sound, resumed = 0, 0, True, []
path = folder / "killed"
while kills < 10:
    pid, read = run(path)
    first = os.read(read, 1)
    learnt = first[0] if first else T
    target = rng.randint(learnt, T)
    while learnt < target and (more := os.read(read, 1)):
        learnt = more[0]
    select.select([read], [], [], rng.uniform(0, 1.2 * per_task) if learnt < T else rng.uniform(0, 0.005))
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(read)
    kills += os.WIFSIGNALED(status)
    sound = sound and files_are_whole(path)
    if Store(path).get(key) is not None:  # it was done before the kill: begin again
        rounds += 1
        shutil.rmtree(path)
last = finish(path)
left = sorted(p.name for p in path.rglob("*") if p.is_file() and p.suffix not in (".json", ".pt"))
print(json.dumps({"kills": kills, "sound": sound, "same": described(last) == whole, "resumed": last.provenance["resumed_from_task"],
                  "matrix": last.matrix, "left": left}))
"""


@pytest.mark.parametrize("seed", [0])
def test_a_cell_that_is_killed_ten_times_gives_the_same_bits(catalogue: Catalogue, tmp_path: Path, seed: int) -> None:
    """SIGKILL at random moments: no file that counts is ever half written, and what is resumed ends in the same matrix."""
    overrides = TINY | {"training.epochs": 15, "method.per_class": 2}
    command = [sys.executable, "-c", KILLER, str(tmp_path), CLASS_IL, "er-gnn", json.dumps(overrides), str(seed)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert ran.returncode == 0, ran.stderr
    outcome = json.loads(ran.stdout)
    assert outcome["kills"] == 10
    assert outcome["sound"], ran.stderr
    assert outcome["same"]
    here = run_cell(resolve_cell(catalogue, CLASS_IL, "er-gnn", overrides=overrides), catalogue, Store(tmp_path / "here"))
    assert outcome["matrix"] == here.matrix  # in this process, among other cells
