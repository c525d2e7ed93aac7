"""Fake cells for tests of everything around cells: a catalogue of two scenarios and a few methods, cells that run in no time.

What a cell does is told by its settings, so that workers in other processes do as a test says:

- ``training.lr``: the accuracies follow from it (validation and test by different rules);
- ``method.behave``: ``ok``, ``raise``, ``diverge``, ``inapplicable`` (as the cell finds), ``exit`` (``os._exit``), ``kill`` (SIGKILL to
  itself), ``machine`` (and to its supervisor), ``sleep``, ``full`` (disk), ``chatty`` (prints, then exits);
- ``method.seconds``: how long it takes.

Every run of a cell appends a line to ``$FAKE_LOG``, and leaves in the store's folder ``common`` what it was told to have in common with
others before and after. Importing this puts them in place (:mod:`fakes`); workers get them by ``$FAKE_CATALOGUE``.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import fakes

from cglsuite.base.errors import NotApplicable, SpecError, StoreError, UnknownNameError, UsageError
from cglsuite.base.hashing import digest, plain
from cglsuite.cells.keys import torch_version
from cglsuite.cells.plan import DEFAULT_OPTIONS, CellOptions
from cglsuite.cells.records.record import Curves, Record
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, Entry, PluginRecord
from cglsuite.specs import (
    BackboneSpec,
    DatasetSpec,
    ExecutorSpec,
    Hyperparameter,
    MethodSpec,
    MetricSpec,
    ScenarioSpec,
    Seeds,
    TrainingSpec,
    switches,
)

__all__ = ["REFERENCE", "FakeCatalogue", "FakeCell", "make_record"]

REFERENCE = "fake_cells:FakeCatalogue"
"""For ``$FAKE_CATALOGUE``."""
_BEHAVE = Hyperparameter(name="behave", default="ok", doc="what the cell does")
_SECONDS = Hyperparameter(name="seconds", default=0.0, doc="how long it takes")
_LAMBDA = Hyperparameter(name="lambda", default=1.0, doc="strength")


def _method(name: str, *more: Hyperparameter, settings: tuple[str, ...] = ("task-il", "class-il")) -> MethodSpec:
    return MethodSpec(name=name, summary=name, factory="fake_cells:none", hyperparameters=(_BEHAVE, _SECONDS, *more), settings=settings)


SPECS: dict[str, list[Any]] = {
    "scenario": [
        ScenarioSpec(name=f"toy/{setting}@begin-1", summary="toy", dataset="toy", setting=setting) for setting in ("task-il", "class-il")
    ],
    "method": [_method("bare"), _method("ewc", _LAMBDA), _method("joint"), _method("packnet", settings=("task-il",))],
    "backbone": [
        BackboneSpec(
            name="gcn", summary="gcn", factory="fake_cells:none", hyperparameters=(Hyperparameter(name="width", default=8, doc="width"),)
        ),
        BackboneSpec(
            name="gat", summary="gat", factory="fake_cells:none", hyperparameters=(Hyperparameter(name="heads", default=2, doc="heads"),)
        ),
    ],
    "dataset": [
        DatasetSpec(name="toy", summary="toy", factory="fake_cells:none", hyperparameters=(Hyperparameter(name="n", default=9, doc="n"),))
    ],
    "metric": [
        MetricSpec(
            name="average_performance", summary="AP", formula="mean_j M[T,j]", direction="up", range=(0, 1), factory="fake_cells:average"
        ),
        MetricSpec(
            name="intransigence",
            summary="INT",
            formula="mean_j (J[j,j] - M[j,j])",
            direction="down",
            range=(-1, 1),
            needs_joint=True,
            factory="fake_cells:intransigence",
        ),
    ],
    "executor": [ExecutorSpec(name="local", summary="local", factory="cglsuite.campaigns.executors.supervisor:LocalExecutor")],
    "notebook": [],
}


def average(matrix: Any, joint: Any = None) -> float:
    """Mean of the last row."""
    return sum(matrix[-1]) / len(matrix[-1])


def intransigence(matrix: Any, joint: Any = None) -> float:
    """Mean difference of the diagonals."""
    n = len(matrix[0])
    return sum(joint[j + 1][j] - matrix[j + 1][j] for j in range(n)) / n


class FakeCatalogue(Catalogue):
    """A catalogue of these specs alone."""

    fakes = sys.modules[__name__]

    def __init__(self) -> None:
        record = PluginRecord(distribution="fake", version="1", entry_point="fake", module=__name__, status="ok")
        super().__init__([record], [Entry(kind=kind, name=s.name, spec=s, record=record) for kind, specs in SPECS.items() for s in specs])


@dataclass(frozen=True, kw_only=True)
class FakeCell:
    """The same fields as a real one."""

    fakes: ClassVar[Any] = sys.modules[__name__]

    scenario: ScenarioSpec
    preset: str
    method: str
    method_hyperparameters: dict[str, Any]
    backbone: str
    backbone_hyperparameters: dict[str, Any]
    dataset_hyperparameters: dict[str, Any]
    seeds: Seeds
    threads: int
    device: str
    dtype: str = "float32"
    numerics: str = "native"

    @property
    def configuration(self) -> dict[str, Any]:
        """All settings by dotted key."""
        sections = {
            "training": switches(self.scenario.training),
            "dataset": self.dataset_hyperparameters,
            "backbone": self.backbone_hyperparameters,
            "method": self.method_hyperparameters,
        }
        return {f"{section}.{name}": value for section, values in sections.items() for name, value in values.items()}


def resolve_cell(
    catalogue: Any, scenario: str, method: str, backbone: str | None, overrides: Any, seeds: Seeds, threads: int, device: str, numerics: str
) -> FakeCell:
    """Defaults overlaid with settings; unknown keys are errors."""
    preset, spec = catalogue.get("scenario", scenario).spec, catalogue.get("method", method).spec
    net = catalogue.get("backbone", backbone or "gcn").spec
    if preset.setting not in spec.settings:
        raise NotApplicable(f"method {method!r} is defined for {', '.join(spec.settings)}")
    values = {
        "scenario": {"class_order": preset.class_order, "n_tasks": preset.n_tasks or 0},
        "training": switches(TrainingSpec()),
        "dataset": {"n": 9},
        "backbone": {h.name: h.default for h in net.hyperparameters},
        "method": {h.name: h.default for h in spec.hyperparameters},
    }
    for key, value in overrides.items():
        section, dot, name = key.partition(".")
        if not dot:
            section, name = next((s for s in values if key in values[s]), ""), key
        if name not in values.get(section, {}):
            raise UnknownNameError("switch or hyperparameter", key, [f"{s}.{n}" for s in values for n in values[s]])
        try:
            values[section][name] = type(values[section][name])(value)
        except ValueError:
            raise SpecError(f"{key} = {value!r}: wrong type") from None
    return FakeCell(
        scenario=replace(preset, class_order=values["scenario"]["class_order"], n_tasks=values["scenario"]["n_tasks"] or None),
        preset=preset.name,
        method=method,
        method_hyperparameters=values["method"],
        backbone=net.name,
        backbone_hyperparameters=values["backbone"] | {f"_{k}": v for k, v in values["training"].items()},
        dataset_hyperparameters=values["dataset"],
        seeds=seeds,
        threads=threads,
        device=device,
        numerics=numerics,
    )


def design_key(cell: FakeCell) -> str:
    """A key of what was asked."""
    return digest(["design", cell])


def cell_key(cell: FakeCell, catalogue: Any) -> str:
    """A key of what was asked, and of the version of this fake."""
    return digest(["cell", cell, os.environ.get("FAKE_VERSION", "1")])


def seeded_keys(cell: FakeCell, catalogue: Any) -> Callable[[Seeds], str]:
    """The keys by seeds."""
    return lambda seeds: cell_key(replace(cell, seeds=seeds), catalogue)


def prefix_keys(cell: FakeCell, catalogue: Any) -> list[str]:
    """Cells that differ in the order seed only share checkpoints."""
    return [
        digest(["prefix", cell.scenario.name, cell.method, cell.method_hyperparameters, cell.backbone_hyperparameters, cell.seeds.init])[
            :32
        ]
    ]


def sources(cell: FakeCell, catalogue: Any) -> dict[str, dict[str, str]]:
    """The core alone."""
    return {"core": {"name": "core", "distribution": "cglsuite", "version": "0.1.0", "source": "0" * 64}}


def planned_code(cells: Any, catalogue: Any) -> dict[str, Any]:
    """None."""
    return {}


def run_cell(
    cell: FakeCell,
    catalogue: Any,
    store: Store,
    options: CellOptions = DEFAULT_OPTIONS,
) -> Record:
    """Do as the settings say."""
    key = cell_key(cell, catalogue)
    if intervals := os.environ.get("FAKE_INTERVALS"):
        with open(intervals, "a") as file:
            file.write(f"{options.checkpoint_every_s}\n")
    if log := os.environ.get("FAKE_LOG"):
        with open(log, "a") as file:
            file.write(f"{key}\n")
    for name in prefix_keys(cell, catalogue):
        path = store.checkpoint_path(f"{name}-{cell.seeds.order}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("state")
    shared = "alone" if options.shared_tasks is None else str(options.shared_tasks())
    time.sleep(float(cell.method_hyperparameters["seconds"]))
    behave = cell.method_hyperparameters["behave"]
    if options.progress is not None:
        options.progress(1, 2)
    if behave == "exit":
        os._exit(0)
    if behave == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if behave == "machine":  # the supervisor first, so that nobody is left to tell
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    if behave == "sleep":
        time.sleep(600)
    if behave == "chatty":
        print("a method that prints", flush=True)
        os._exit(3)
    if behave == "raise":
        raise RuntimeError("the core itself broke")
    if behave == "refuse":
        raise UsageError("of 15 classes 1 would fill no task")
    if behave == "full":
        raise StoreError(f"cannot write {store.path}: {os.strerror(errno.ENOSPC)}")
    if behave in ("diverge", "inapplicable"):
        status = {"diverge": "diverged", "inapplicable": "skipped"}[behave]
        reason = "at epoch 12 of task 2: the loss became nan" if _numbers() else "the loss is not finite"
        record = make_record(cell, status=status, reason=reason)
    else:
        record = make_record(cell)
    store.put(record)
    message = store.path / "common" / key
    message.parent.mkdir(exist_ok=True)
    message.write_text(shared if options.shared_tasks is None else f"{shared} {options.shared_tasks()}")
    return record


def make_record(cell: Any, **changes: Any) -> Record:
    """A finished record of two tasks whose accuracies follow from the learning rate and the seeds."""
    rate, seed = float(cell.backbone_hyperparameters["_lr"]), cell.seeds.init
    validation, test = 1 / (1 + abs(rate - 5e-3) * 100 + seed / 1000), 1 / (1 + abs(rate - 1e-3) * 100 + seed / 1000)
    matrix = [[0.5, 0.5], [test, 0.5], [test / 2, test]]
    facts: dict[str, Any] = {
        "key": cell_key(cell, None),
        "design": design_key(cell),
        "status": "done",
        "cell": {
            "scenario": cell.scenario.name,
            "preset": cell.preset,
            "method": cell.method,
            "backbone": cell.backbone,
            "seeds": {"order": cell.seeds.order, "split": cell.seeds.split, "init": cell.seeds.init},
            "configuration": plain(cell.configuration) | {"training.lr": rate},
            "threads": cell.threads,
            "device": cell.device,
            "dtype": cell.dtype,
        },
        "scenario": plain({**switches(cell.scenario), "training": {**switches(cell.scenario.training), "lr": rate}}),
        "matrix": matrix,
        "validation_matrix": [[None, None], [validation, None], [validation / 2, validation]],
        "per_class": [[test, test, test, test]],
        "tasks": [{"classes": [2 * j, 2 * j + 1], "n_train": 6, "n_validation": 2, "n_test": 2} for j in range(2)],
        "beside": Curves(trainings=[{"task": 1, "loss": [1.0, 0.5], "monitor": [], "best_epoch": 2}]),
        "metrics": {"average_performance": average(matrix), "intransigence": None},
        "timings_s": {"training": 0.8, "method": 0.1, "evaluation": 0.05, "framework": 0.05, "total": 1.0},
        "memory": {"peak_bytes": 10**8, "items": 0, "edges": 0, "bytes": 0, "budget_items": None},
        "parameters": {"model": 100, "method": 0},
        "provenance": {"plugins": [], "core": {"version": "0.1.0", "source": "0" * 64}, "resumed_from_task": 0},
        "environment": {"python": "3.11", "torch": torch_version(), "platform": "Linux", "cpu": _cpu(cell), "cuda": None, **_numbers()},
    }
    if changes.get("status", "done") != "done":
        facts |= {"matrix": [], "validation_matrix": [], "per_class": [], "metrics": {}}
    return Record(**(facts | changes))


def _numbers() -> dict[str, str]:
    """With ``$FAKE_ARITHMETIC`` how this machine computes; records name none without it."""
    return {"arithmetic": os.environ["FAKE_ARITHMETIC"]} if "FAKE_ARITHMETIC" in os.environ else {}


def _cpu(cell: Any) -> str:
    """With ``$FAKE_CPU`` another one for every initialisation."""
    return f"model {cell.seeds.init}" if "FAKE_CPU" in os.environ else "x"


fakes.install()
