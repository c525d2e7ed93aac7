"""Run one cell and return its record: load the data, build the stream, learn and score. If a method fails, the record states the status and
reason, and no error is raised.
"""

from __future__ import annotations

import ctypes
import dataclasses
import logging
import os
import platform
import re
import resource
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.environment import variable
from cglsuite.base.errors import DivergenceError, NotApplicable, StoreError, UncleanError, UsageError
from cglsuite.base.hashing import digest, plain
from cglsuite.base.traces import random_state_restored, resume_collector
from cglsuite.cells.border import refuse_unknown_nodes, state_bytes, use_plain_answers
from cglsuite.cells.code.inputs import Reading, watching
from cglsuite.cells.device import prepare_device
from cglsuite.cells.job import job_facts
from cglsuite.cells.keys import (
    cell_key,
    design_key,
    dynamic_importers,
    execution,
    foreseen_modules,
    numerics_facts,
    prefix_keys,
    share_key,
    sources,
    torch_version,
    user_modules,
)
from cglsuite.cells.plan import DEFAULT_OPTIONS, CellOptions
from cglsuite.cells.portable import arithmetic, prepare
from cglsuite.cells.process import ROLES, Watch
from cglsuite.cells.records.describe import describe, foreign_code, metric_providers, providers
from cglsuite.cells.records.metric_values import metric_values
from cglsuite.cells.records.record import Curves, Record, reason_of, recordable
from cglsuite.cells.storage.lease import Backoff, TaskElsewhere
from cglsuite.cells.storage.store import Store
from cglsuite.graphs.files.given import cell_warnings
from cglsuite.learning import launch
from cglsuite.learning.reproducibility.numerics import applied, numerics_of
from cglsuite.specs import NO_PRETRAINING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cglsuite.cells.observing import Observation, Observer, Observers
    from cglsuite.cells.spec import CellSpec
    from cglsuite.graphs import NodeData
    from cglsuite.host import Catalogue
    from cglsuite.learning.pretraining.weights import Pretrained
    from cglsuite.learning.result import RunResult
    from cglsuite.learning.task_free_runner import TaskFreeRunner
    from cglsuite.learning.task_runner import TaskRunner
    from cglsuite.specs import ScenarioSpec, Seeds
    from cglsuite.streams import TaskFreeStream, TaskStream


@random_state_restored()
def run_cell(
    cell: CellSpec,
    catalogue: Catalogue,
    store: Store,
    options: CellOptions = DEFAULT_OPTIONS,
) -> Record:
    """Return the cell's record from the store if it is done. Otherwise, train the tasks that no checkpoint covers.

    Raises:
        UsageError: the request itself is wrong (an unknown name, a class order that is not a permutation).
        TaskElsewhere: with ``options.shared_tasks``, a task that this cell begins with is being trained on another machine.
        KeyboardInterrupt: passed on; checkpoints remain.
    """
    resume_collector()  # everything large is imported by now
    key = cell_key(cell, catalogue)
    described = {"key": key, "design": design_key(cell), **describe(cell)}  # before third-party code sees the cell
    if (cached := store.cached(key)) is not None:
        return cached
    prepare(cell.numerics)
    prepare_device(cell.device)  # before the process is watched: the accelerator registers it, not the method
    outcome: RunResult | None = None
    checkpoints = store_checkpoints(cell, catalogue, store, options.checkpoint_every_s)
    inputs = checkpoints.inputs
    observation = _observation(options.observers, cell, key)  # before the process is watched: observers start it, not the method
    watch = Watch(cell, catalogue)
    prefixes: list[str] = []
    facts: list[dict[str, Any]] = []
    status, reason, learnt = "done", "", 0
    data_hash = None
    _keep_freed_memory()
    try:
        inputs.check()
        _load(catalogue, cell.scenario, cell.dataset_hyperparameters)
        _reset_peak(cell.device)  # reading the data may take longer than training, but only once per process
        stream = build_stream(cell, catalogue)
        data_hash = stream.data_hash
        facts = [plain(f) for f in stream.tasks]
        watch.record_changes("dataset", "encoder", "scenario", "schedule")
        length = len(stream)

        def report(k: int) -> None:
            nonlocal learnt
            learnt = k
            if options.progress is not None:
                options.progress(k, length)

        trained = _train(cell, catalogue, stream, watch, checkpoints, prefixes, report, options.shared_tasks, observation)
        inputs.check()
        outcome = trained
    except (KeyboardInterrupt, TaskElsewhere):
        _end(observation, None)
        raise
    except BaseException as error:
        if isinstance(error, UsageError) and not facts:
            _end(observation, None)
            raise  # the stream could not be described, so the request is wrong, not the method
        reason = reason_of(error)
        status = _status(error, reason)
        if status == "diverged" and facts:
            reason = _divergence_text(reason, learnt + 1)
    watch.finish(*ROLES)
    try:
        record = _record(cell, catalogue, described, status, reason or None, outcome, facts, data_hash)
    except KeyboardInterrupt:
        _end(observation, None)
        raise
    except BaseException as error:  # noqa: BLE001 - what the method or the data say of themselves costs this cell alone
        reason = f"its record would be invalid: {reason_of(error)}"
        try:
            record = _record(cell, catalogue, described, "failed", reason, None, facts, data_hash)
        except StoreError:
            record = _record(cell, catalogue, described, "failed", reason, None, [], None)
    if noted := inputs.written(store.path, key):
        record = dataclasses.replace(record, provenance={**record.provenance, "inputs": noted})
    watch.record_changes()  # the metrics have run
    if watch.changes:
        _DATA.clear()
        record = _unclean_record(record, watch.changes)
    store.put(record)
    for prefix in prefixes if watch.changes else ():
        checkpoints.drop(prefix)
    if options.shared_tasks and record.done:
        for prefix in prefixes[options.shared_tasks() + 1 :]:
            checkpoints.drop(prefix)
    _end(observation, record)
    return record


def _observation(observers: Observers | Sequence[Observer], cell: CellSpec, key: str) -> Observation | None:
    if not observers:
        return None
    from cglsuite.cells.observing import Observation

    return Observation(observers, cell, key)


def _end(observation: Observation | None, record: Record | None) -> None:
    if observation is not None:
        observation.ended(record)


def _train(
    cell: CellSpec,
    catalogue: Catalogue,
    stream: TaskStream | TaskFreeStream,
    watch: Watch,
    checkpoints: StoreCheckpoints,
    prefixes: list[str],
    report: Callable[[int], None],
    shared_tasks: Callable[[], int] | None,
    observation: Observation | None,
) -> RunResult:
    """Return the runner's result; states after prefixes of tasks go to ``prefixes``. No reference to the method remains afterwards."""
    data, _ = _load(catalogue, cell.scenario, cell.dataset_hyperparameters)
    with numerics(cell), watch.inside(data, "backbone", "method", "pretraining", "measure") as verify:
        if watch.foreign:
            checkpoints.before_save = verify
        runner = make_runner(cell, catalogue, stream, on_task=report)
        if observation is not None:
            observation.attach(runner)
        prefixes += runner.prefixes
        keep, began = shared_tasks() if shared_tasks else 0, state_bytes(runner.method)
        outcome = runner.run(checkpoints, keep=keep, last=shared_tasks is None, claim=checkpoints.claim, every_s=checkpoints.every_s)
        carried = state_bytes(runner.method)
        carrying = {"state_bytes": carried, "state_bytes_per_task": max(0, carried - began) // len(stream)}
        return dataclasses.replace(outcome, memory={**outcome.memory, **carrying})


def _unclean_record(record: Record, changes: Sequence[str]) -> Record:
    """Return the record with the detected changes as reason. A result is discarded; other outcomes keep their status and reason."""
    changes = list(map(recordable, changes))
    summary = "; ".join(changes)
    provenance = {**record.provenance, "unclean": changes}
    if record.status not in ("done", "unclean"):
        return dataclasses.replace(record, reason=f"{record.reason}. In addition, {summary}", provenance=provenance)
    nothing: dict[str, Any] = dict.fromkeys(("matrix", "validation_matrix", "per_class"), ())
    nothing |= {name: {} for name in ("metrics", "timings_s", "memory", "parameters", "training")}
    return dataclasses.replace(record, beside=None, status="unclean", reason=f"{summary}. {_ADVICE}", provenance=provenance, **nothing)


_ADVICE = (
    "The result was discarded: undo such changes before the method returns, use context.generator, and do not patch the suite or torch"
)


def build_stream(cell: CellSpec, catalogue: Catalogue) -> TaskStream:
    """Build the stream of a cell. The dataset is loaded once per process and cached."""
    stream = build_scenario(catalogue, cell.scenario, cell.dataset_hyperparameters, cell.seeds, cell.device)
    if cell.weighted:
        from cglsuite.problems.weighted import use_weights

        use_weights(stream)
    return stream


def build_scenario(
    catalogue: Catalogue, scenario: ScenarioSpec, dataset_hyperparameters: Mapping[str, Any], seeds: Seeds, device: str = "cpu"
) -> TaskStream:
    """Build the stream of a scenario with resolved switches. Only the order and split seeds matter."""
    prepare_device(device)
    data, _ = _load(catalogue, scenario, dataset_hyperparameters)
    builder = catalogue.resolve(catalogue.get("scenario", scenario.name))
    stream: TaskStream = builder(scenario, data, seeds, device)
    return stream


def make_runner(
    cell: CellSpec, catalogue: Catalogue, stream: TaskStream | TaskFreeStream, on_task: Callable[[int], None] = lambda k: None
) -> TaskRunner | TaskFreeRunner:
    """Create the runner for a cell and its stream. Models start from pre-trained weights if the cell requests them."""
    runner = launch.make_runner(
        stream,
        catalogue.resolve(catalogue.get("method", cell.method)),
        first_backbone(cell, catalogue, stream),
        backbone_hyperparameters=cell.backbone_arguments,
        method_hyperparameters=cell.method_hyperparameters,
        training=cell.scenario.training,
        init_seed=cell.seeds.init,
        identity=digest([share_key(cell, catalogue), stream.data_hash]),
        past_views="past-views" in catalogue.method(cell.method).needs,
        device=cell.device,
        on_task=on_task,
    )
    use_plain_answers(runner, stream)
    refuse_unknown_nodes(runner.problem)
    if cell.weighted:
        from cglsuite.problems.weighted import unite_weights

        unite_weights(runner.problem)
    return runner


logger = logging.getLogger(__name__)
CHECKPOINT_EVERY_S = 10.0
"""Seconds between two checkpoints of a cell that shares none, unless the caller or ``CGLSUITE_CHECKPOINT_EVERY`` sets another value."""
_PLACE = re.compile(r" (?:in (epoch \d+)|at (step \d+))(?=:)")
CLAIM_POLL_S = 0.05
CLAIM_PATIENCE_S = 75.0
"""Longer than a lease outlives its holder, so a lease that is still held by then has a live holder."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_DATA: dict[tuple[Any, ...], tuple[NodeData, dict[str, Any]]] = {}


def _load(catalogue: Catalogue, scenario: ScenarioSpec, hyperparameters: Mapping[str, Any]) -> tuple[NodeData, dict[str, Any]]:
    """Return a scenario's dataset, with encoded texts as features if it asks for them, and facts about these features for records."""
    entry = catalogue.get("dataset", scenario.dataset)
    root = DataRoot.from_environment()
    place = (scenario.dataset, tuple(sorted(hyperparameters.items())), entry.record.distribution, str(root.root), scenario.encoder)
    if place not in _DATA:
        _DATA.clear()  # one dataset at a time: workers receive cells of one dataset back to back
        facts: dict[str, Any] = {}
        data = catalogue.resolve(entry)(root, **dict(hyperparameters))
        if scenario.encoder is not None:
            from cglsuite.cells.text import with_text_features

            data, facts = with_text_features(catalogue, scenario.encoder, data, root)
        _DATA[place] = data, facts
        _return_freed_memory()
    return _DATA[place]


def numerics(cell: CellSpec) -> AbstractContextManager[None]:
    """Set torch's switches as stated in the cell's key, and restore the previous settings afterwards."""
    return applied(numerics_of(cell.device, cell.threads))


def store_checkpoints(cell: CellSpec, catalogue: Catalogue, store: Store, every_s: float | None = None) -> StoreCheckpoints:
    """Return the object that stores a cell's checkpoints in the store."""
    watched = watching() and foreign_code(sources(cell, catalogue))
    first = cell_key(dataclasses.replace(cell, inputs={}), catalogue) if watched else None
    modules = foreseen_modules(cell, catalogue) if watched else ()
    return StoreCheckpoints(store, prefix_keys(cell, catalogue)[0], every_s, Reading(cell.inputs, first, modules))


class StoreCheckpoints:
    """Checkpoints of one family of cells in a store (:class:`cglsuite.learning.result.Checkpoints`)."""

    def __init__(self, store: Store, family: str, every_s: float | None = None, inputs: Reading | None = None) -> None:
        self.store, self.family, self.inputs = store, family, inputs or Reading({}, None)
        self.before_save: Callable[[], None] = lambda: None
        seconds = variable("CGLSUITE_CHECKPOINT_EVERY") if every_s is None else every_s
        self.every_s = CHECKPOINT_EVERY_S if seconds is None else float(seconds)
        """How much finished work an interruption may cost, in seconds."""

    def load(self, prefix: str) -> dict[str, Any] | None:
        payload = self.store.load_checkpoint(f"{self.family}-{prefix}")
        if payload is not None and (payload := self.inputs.unpacked(payload)) is None:
            self.drop(prefix)  # what it depends on has changed
        return payload

    def save(self, prefix: str, payload: dict[str, Any]) -> None:
        self.before_save()
        self.store.save_checkpoint(f"{self.family}-{prefix}", self.inputs.packed(payload))

    def drop(self, prefix: str) -> None:
        self.store.drop_checkpoint(f"{self.family}-{prefix}")

    @contextmanager
    def claim(self, prefix: str) -> Iterator[bool]:
        """Wait until no other runner trains ``prefix``, and acquire its lease. Yields whether it still needs training.

        Raises:
            TaskElsewhere: a runner on another machine holds it for longer than :data:`CLAIM_PATIENCE_S`.
        """
        name, waiting, began = f"{self.family}-{prefix}", False, time.monotonic()
        backoff = Backoff(CLAIM_POLL_S)
        while (lease := self.store.lease(name)) is None:
            holder = self.store.holder(name)
            if holder is not None and not holder.here and time.monotonic() - began > CLAIM_PATIENCE_S:
                raise TaskElsewhere(f"one of the first tasks of this cell is being trained elsewhere: {holder.wait}")
            if holder is not None and not waiting:
                # Waiting for a worker of the same machine is routine; waiting for another machine may take longer.
                level = logging.INFO if holder.here else logging.WARNING
                logger.log(level, "waiting for a shared first task: %s", holder.wait)
                waiting = True
            time.sleep(backoff.missed(name, near=holder is not None and holder.here))
        with lease:
            yield not self.store.checkpoint_path(name).exists()


def _divergence_text(reason: str, task: int) -> str:
    """Explain why a cell diverged, beginning with where: ``at epoch 12 of task 2: the loss became nan: lower ...``."""
    place = _PLACE.search(reason)
    if place is None:
        return f"at task {task}: {reason}"
    rest = reason[: place.start()] + reason[place.end() :]
    return f"at {place[2]}: {rest}" if place[2] else f"at {place[1]} of task {task}: {rest}"


def _status(error: BaseException, reason: str) -> str:
    if isinstance(error, DivergenceError):
        return "diverged"
    if isinstance(error, NotApplicable):
        return "skipped"
    if isinstance(error, UncleanError):
        return "unclean"
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in reason:
        return "oom"
    return "failed"


def metrics_of(
    cell: CellSpec, catalogue: Catalogue, matrix: list[list[float]], joint: Any = None, stream: Mapping[str, Any] | None = None
) -> dict[str, float | None]:
    """Compute every metric in the catalogue. The value is ``None`` if a metric does not apply to the cell's scenario or lacks an input."""
    scenario = {"setting": cell.scenario.setting, "performance": cell.scenario.performance}
    return metric_values(catalogue, scenario, matrix, joint=joint, stream=stream)


def _record(
    cell: CellSpec,
    catalogue: Catalogue,
    described: Mapping[str, Any],
    status: Any,
    reason: str | None,
    outcome: RunResult | None,
    tasks: list[dict[str, Any]],
    data_hash: str | None,
) -> Record:
    used = sources(cell, catalogue)
    metrics = metrics_of(cell, catalogue, outcome.matrix, stream=outcome.stream | {"tasks": tasks}) if outcome else {}
    curves = Curves.of(outcome.curves, outcome.fingerprints) if outcome else None
    warnings = [*cell_warnings(catalogue.dataset(cell.scenario.dataset), weighted=cell.weighted), *(curves.warnings if curves else ())]
    return Record(
        **described,
        status=status,
        reason=reason,
        tasks=tasks,
        matrix=outcome.matrix if outcome else [],
        validation_matrix=outcome.validation_matrix if outcome else [],
        per_class=[outcome.per_class] if outcome else [],
        beside=curves,
        metrics=metrics,
        timings_s=outcome.timings_s if outcome else {},
        memory={**outcome.memory, **_peaks(cell.device)} if outcome else {},
        parameters=outcome.parameters if outcome else {},
        provenance={
            **providers(used),
            "metrics": metric_providers(catalogue, [name for name, value in metrics.items() if value is not None]),
            "data": data_hash,
            "resumed_from_task": outcome.resumed_from_task if outcome else 0,
            # timings_s cover the whole stream; these are the parts spent here and on tasks covered by checkpoints:
            "trained_tasks": outcome.trained_tasks if outcome else 0,
            "trained_s": outcome.trained_s if outcome else 0.0,
            "covered_s": outcome.covered_s if outcome else 0.0,
            **(
                {"features": _load(catalogue, cell.scenario, cell.dataset_hyperparameters)[1]}
                if data_hash and cell.scenario.encoder is not None
                else {}
            ),
            **({"pretraining": facts} if outcome and (facts := pretraining_facts(cell, catalogue, tasks, data_hash)) else {}),
            **({"stream": outcome.stream} if outcome and outcome.stream else {}),
            **({"counters": outcome.counters} if outcome and outcome.counters else {}),
            **({"warnings": list(map(recordable, warnings))} if warnings else {}),
            **({"code": code} if (code := user_modules(cell, catalogue)) else {}),
            **({"dynamic_imports": dynamic} if (dynamic := dynamic_importers(cell, catalogue)) else {}),
        },
        environment=_environment(cell),
    )


def _environment(cell: CellSpec) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "torch": torch_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu": processor(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cuda": torch.version.cuda if cell.device == "cuda" else None,
        **(_gpu() if cell.device == "cuda" else {}),
        "numerics": numerics_facts(cell.device, cell.threads, cell.numerics),
        **({"arithmetic": arithmetic()} if cell.device == "cpu" else {}),
        "hash_seed": os.environ.get("PYTHONHASHSEED", "random"),
        **job_facts(),
    }


@lru_cache
def processor() -> str:
    """Return the model name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


@lru_cache(maxsize=1)
def _keep_freed_memory() -> None:
    """Make glibc keep freed memory. Training frees and allocates the same large blocks at every step, and returning them to the system
    in between costs up to half the time of an epoch."""
    try:
        allocator = ctypes.CDLL("libc.so.6")
        allocator.mallopt(_M_MMAP_THRESHOLD, 32 << 20)
        allocator.mallopt(_M_TRIM_THRESHOLD, 1 << 30)
    except (OSError, AttributeError):
        return  # a different C library: nothing to set


def _return_freed_memory() -> None:
    """Return memory freed after reading a dataset to the system, so that it does not count as the first cell's."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _reset_peak(device: str) -> None:
    if device == "cuda":
        torch.cuda.empty_cache()  # memory used by earlier cells of this worker is not part of this cell's peak
        torch.cuda.reset_peak_memory_stats()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # Linux: reset VmHWM, since one worker runs many cells
    except OSError:
        return


def _gpu() -> dict[str, Any]:
    """Return facts about a GPU and its libraries that may affect a result's bits."""
    return {"gpu": torch.cuda.get_device_name(), "cudnn": torch.backends.cudnn.version()}


def _peaks(device: str) -> dict[str, int]:
    """Return the peak memory since the cell began, in bytes: of the process and, on a GPU, of the device's allocations."""
    if device != "cuda":
        return {"peak_bytes": _resident_peak()}
    return {
        "peak_bytes": int(torch.cuda.max_memory_allocated()),
        "peak_reserved_bytes": int(torch.cuda.max_memory_reserved()),
        "peak_host_bytes": _resident_peak(),
    }


def _resident_peak() -> int:
    try:
        lines = Path(f"/proc/{os.getpid()}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


# The pre-trained weights that a cell's models start from, cached for other cells that share them.

_AFTERWARDS = ("scenario.class_order", "pretraining.transfer", "training.norm_statistics")
_MAX_KEPT = 4
_KEPT: OrderedDict[str, Pretrained] = OrderedDict()
"""The latest pre-trained weights of this process. They do not depend on the method, and a worker runs a scenario's cells in succession."""


def first_backbone(cell: CellSpec, catalogue: Catalogue, stream: TaskStream | TaskFreeStream) -> Callable[..., Any]:
    """Return the factory for a cell's models: that of the backbone, or one that starts models from pre-trained weights.

    Raises:
        what :func:`cglsuite.learning.pretraining.pretrain` raises.
    """
    make_backbone: Callable[..., Any] = catalogue.resolve(catalogue.get("backbone", cell.backbone))
    if cell.pretraining == NO_PRETRAINING:
        return make_backbone
    from cglsuite.learning.pretraining.weights import pretrain, transferred

    name = _identity(cell, catalogue, stream.tasks[0].content, stream.data_hash)
    if name not in _KEPT:
        weights = pretrain(
            stream,  # type: ignore[arg-type]  # a task-free stream has no pre-training: the cell would not have been resolved
            catalogue.resolve(catalogue.get("pretraining", cell.pretraining)),
            make_backbone,
            backbone_hyperparameters=cell.backbone_arguments,
            hyperparameters=cell.pretraining_hyperparameters,
            training=cell.scenario.training,
            init_seed=cell.seeds.init,
            device=cell.device,
        )
        while len(_KEPT) >= _MAX_KEPT:
            _KEPT.popitem(last=False)
        _KEPT[name] = weights
    _KEPT.move_to_end(name)
    return transferred(make_backbone, _KEPT[name], frozen=cell.pretraining_hyperparameters["transfer"] == "frozen")


def pretraining_facts(cell: CellSpec, catalogue: Catalogue, tasks: Sequence[Mapping[str, Any]], data_hash: str | None) -> dict[str, Any]:
    """Return a record's facts about pre-training: its name, epochs, losses, seconds and a digest of the weights. They are empty without
    pre-training.
    """
    if cell.pretraining == NO_PRETRAINING or not tasks:
        return {}
    facts = _KEPT.get(_identity(cell, catalogue, tasks[0]["content"], data_hash))
    if facts is None:
        return {}
    return {
        "scheme": cell.pretraining,
        "epochs": len(facts.curve.loss),
        "best_epoch": facts.curve.best_epoch,
        "loss": [facts.curve.loss[0], facts.curve.loss[facts.curve.best_epoch]],
        "seconds": facts.seconds,
        "state": digest({name: value.flatten().tolist() for name, value in sorted(facts.state.items())}),
    }


def _identity(cell: CellSpec, catalogue: Catalogue, first: str, data_hash: str | None) -> str:
    """Return everything that pre-trained weights depend on: the cell without its method, later tasks, their orders, and the use of the
    weights."""
    settings = {key: value for key, value in cell.configuration.items() if not key.startswith("method.") and key not in _AFTERWARDS}
    inputs = execution(cell, catalogue)
    inputs["sources"] = {role: source for role, source in inputs["sources"].items() if role != "method"}
    return digest([cell.scenario.builder, settings, cell.seeds.split, cell.seeds.init, cell.dtype, inputs, first, data_hash])
