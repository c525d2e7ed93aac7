"""Tiny scenarios for every problem level and incremental setting, their cells, and a catalogue that adds them to the installed entries."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cglsuite import DatasetSpec, Hyperparameter, MethodSpec, ScenarioSpec, TaskFreeSpec, TrainingSpec, __version__, load_catalogue
from cglsuite.cells.run import build_stream, make_runner, numerics
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.graphs import GraphData, GraphSet, LinkData, NodeData, SparseMatrix
from cglsuite.host import Catalogue, Entry, PluginRecord
from cglsuite.learning.result import RunResult
from cglsuite.learning.task_free_runner import TaskFreeRunner
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.specs import KINDS, LEVELS, SETTINGS, LinkPredictionSpec, PluginSpec, ScheduleSpec, Seeds
from cglsuite.streams import Batch, Oracle, QueryGroup, TaskFreeStream, TaskStream
from cglsuite.testing.findings import CheckFailed

_GRAPHWISE, _LINKWISE = "cglsuite.streams.graphwise:build_graph_stream", "cglsuite.streams.links:build_link_stream"


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """A kind of data, with its problem level and the switches for its labels."""

    data: str
    level: str
    summary: str
    settings: tuple[str, ...]
    switches: dict[str, Any]
    backbone: tuple[str, dict[str, Any]]


_SCHEDULE = "testing-overlap"
FINE_TUNING = "testing-fine-tuning"
"""The method of the tiny catalogue: plain sequential training (fine-tuning)."""
_FOUR = ("task-il", "class-il", "domain-il", "time-il")
_ALL = (*_FOUR, "task-free")
_NODES: tuple[str, dict[str, Any]] = ("gcn", {"layers": 2, "width": 16})
_GRAPHS: tuple[str, dict[str, Any]] = ("graph-gcn", {"layers": 2, "width": 16, "predictor_width": 0, "batch_norm": False})
_LINKS: tuple[str, dict[str, Any]] = ("link-gcn", {"layers": 2, "width": 16})
_KINDS = (
    _Kind(data="nodes", level="NC", summary="nodes of six classes", settings=_ALL, switches={}, backbone=_NODES),
    _Kind(
        data="label_sets",
        level="NC",
        summary="nodes with several of six labels",
        settings=("task-il", "class-il"),
        switches={"labels": "multi", "performance": "average-precision", "split": "node-consistent"},
        backbone=_NODES,
    ),
    _Kind(
        data="node_targets",
        level="NR",
        summary="nodes with a real target",
        settings=("domain-il", "time-il"),
        switches={"labels": "real", "performance": "negative-mae", "split": "random"},
        backbone=_NODES,
    ),
    _Kind(data="graphs", level="GC", summary="graphs of six classes", settings=_ALL, switches={"builder": _GRAPHWISE}, backbone=_GRAPHS),
    _Kind(
        data="molecules",
        level="GC",
        summary="graphs with or without one property",
        settings=("domain-il", "time-il"),
        switches={"builder": _GRAPHWISE, "labels": "multi", "performance": "roc-auc", "split": "random"},
        backbone=_GRAPHS,
    ),
    _Kind(
        data="targets",
        level="GR",
        summary="graphs with a real target",
        settings=("domain-il", "time-il"),
        switches={"builder": _GRAPHWISE, "labels": "real", "performance": "negative-mae", "split": "random"},
        backbone=_GRAPHS,
    ),
    _Kind(data="links", level="LC", summary="links of six classes", settings=_FOUR, switches={"builder": _LINKWISE}, backbone=_LINKS),
    _Kind(
        data="interactions",
        level="LP",
        summary="links to be distinguished from pairs without one",
        settings=("domain-il", "time-il"),
        switches={
            "builder": _LINKWISE,
            "labels": "multi",
            "performance": "hits",
            "level_spec": LinkPredictionSpec(hits_k=20),
            "split": "random",
        },
        backbone=_LINKS,
    ),
)
_BY_SETTING: dict[str, dict[str, Any]] = {
    "task-il": {"class_order": "native", "train_outputs": "task"},
    "class-il": {"class_order": "native"},
    "domain-il": {"class_order": "native", "task_key": "domain"},
    "time-il": {"class_order": "native", "task_key": "year"},
    "task-free": {"class_order": "native", "train_outputs": "seen", "split": "per-class"},
}


def _scenario(kind: _Kind, setting: str) -> ScenarioSpec:
    dataset = f"testing-{kind.data.replace('_', '-')}"
    switches = {"split_ratio": (0.5, 0.25, 0.25), **_BY_SETTING[setting], **kind.switches}
    if setting == "time-il" and kind.level in ("NC", "NR", "LC", "LP"):
        switches["edge_policy"] = "snapshot"
    backbone, hyperparameters = kind.backbone
    free = setting == "task-free"
    if free:
        switches["builder"] = "cglsuite.streams.build_task_free:build_task_free_stream"
    training = TrainingSpec(backbone=backbone, lr=0.02, epochs=4 if free else 30, batch_size=4 if free else None)
    return ScenarioSpec(
        name=f"{dataset}/{setting}@testing-1",
        summary=f"{kind.summary}, embedded, in seconds",
        dataset=dataset,
        setting=setting,
        protocol="testing-1",
        level=kind.level,
        training=training,
        task_free=TaskFreeSpec(schedule=_SCHEDULE, evaluate_every=6) if free else None,
        backbone_hyperparameters=tuple(hyperparameters.items()),
        **switches,
    )


def overlapping(steps: NDArray[np.float64], spans: NDArray[np.float64]) -> NDArray[np.float64]:
    """Schedule of the tiny task-free streams. The share of a latent task decreases linearly with distance from the middle of its span.

    Args:
        steps: mid-points of the steps, float64 [T].
        spans: boundaries of the latent tasks, float64 [K + 1].

    Returns:
        The shares of the latent tasks, float64 [T, K]. Rows sum to 1.
    """
    middles, widths = (spans[1:] + spans[:-1]) / 2, np.diff(spans)
    near = np.clip(1 - np.abs(steps[:, None] - middles) / widths, 0, None)
    shares: NDArray[np.float64] = near / near.sum(axis=1, keepdims=True)
    return shares


def tiny_scenarios() -> list[ScenarioSpec]:
    """Return one tiny scenario for each kind of item and supported setting. Training on a task takes well under a second."""
    return [_scenario(kind, setting) for kind in _KINDS for setting in kind.settings]


TINY_SCENARIOS: tuple[str, ...] = tuple(f"testing-{k.data.replace('_', '-')}/{s}@testing-1" for k in _KINDS for s in k.settings)
"""The names of :func:`tiny_scenarios`."""


def _datasets() -> list[DatasetSpec]:
    return [
        DatasetSpec(
            name=f"testing-{kind.data.replace('_', '-')}",
            summary=f"{kind.summary}, embedded",
            factory=f"cglsuite.testing.kinds.cases:{kind.data}",
            levels=(kind.level,),
            licence="CC0-1.0",
            embedded=True,
            hyperparameters=(
                Hyperparameter(name="seed", default=0, minimum=0, doc="of the drawn data; what `cglsuite check --seed` takes"),
            ),
        )
        for kind in _KINDS
    ]


def tiny_catalogue(catalogue: Catalogue | None = None) -> Catalogue:
    """Return ``catalogue`` (default: the installed plugins) with the tiny datasets and scenarios added."""
    record = PluginRecord(distribution="cglsuite", version=__version__, entry_point="testing", module="cglsuite.testing", status="ok")
    whole = catalogue or load_catalogue()
    if FINE_TUNING in whole.names("method"):
        return whole
    return with_specs(whole, tiny_specs(), record)


def tiny_specs() -> list[PluginSpec]:
    """Return the specs that :func:`tiny_catalogue` adds: datasets, scenarios, fine-tuning and the schedule of task-free streams."""
    method = MethodSpec(
        name=FINE_TUNING,
        summary="plain training on one task after another",
        factory="cglsuite.learning.method:Method",
        levels=LEVELS,
        settings=SETTINGS,
    )
    schedule = ScheduleSpec(
        name=_SCHEDULE,
        summary="neighbouring latent tasks overlap",
        citation="The cglsuite authors, 2026 (unpublished)",
        factory="cglsuite.testing.streams:overlapping",
    )
    return [*_datasets(), *tiny_scenarios(), method, schedule]


def with_specs(catalogue: Catalogue, specs: list[Any], record: PluginRecord) -> Catalogue:
    """Return a catalogue with additional specs, as if the plugin of ``record`` provided them."""
    entries = [entry for kind in KINDS for entry in catalogue.entries(kind)]
    return Catalogue([*catalogue.records, record], [*entries, *(_entry(spec, record) for spec in specs)])


def _entry(spec: PluginSpec, record: PluginRecord) -> Entry:
    return Entry(kind=next(k for k, t in KINDS.items() if isinstance(spec, t)), name=spec.name, spec=spec, record=record)


FORBIDDEN = (Oracle, NodeData, LinkData, GraphData, TaskStream, TaskFreeStream, QueryGroup, TaskRunner, TaskFreeRunner)
"""Types that give access to hidden labels. Methods must not be able to reach them."""


@dataclass(kw_only=True)
class Subject:
    """A method in one scenario of a catalogue. Every run starts from scratch in this process."""

    catalogue: Catalogue
    method: str
    scenario: str
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def cell(self, *, device: str = "cpu", **overrides: Any) -> CellSpec:
        """Return the cell, with overrides by dotted key (written with ``__`` instead of dots).

        Raises:
            NotApplicable: the method does not support this scenario.
        """
        more = {name.replace("__", "."): value for name, value in overrides.items()}
        settings = {**self.overrides, **more}
        return resolve_cell(self.catalogue, self.scenario, self.method, overrides=settings, seeds=Seeds(), device=device)

    def run(self, cell: CellSpec | None = None) -> RunResult:
        """Run the cell on a new stream."""
        cell = cell or self.cell()
        with numerics(cell):
            return make_runner(cell, self.catalogue, build_stream(cell, self.catalogue)).run()


def disturb_randomness() -> None:
    """Change the state of every global random generator."""
    seed = random.SystemRandom().randrange(2**31)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the global generator is intended
    torch.manual_seed(seed)


def decoy_answers(stream: Any, groups: Sequence[QueryGroup], generator: torch.Generator) -> dict[str, tuple[Tensor, Tensor, Tensor]]:
    """Return decoys for the answers of the oracle, by token: wrong labels, task positions and test flags."""
    sheets = {group.token: stream.oracle._sheets[group.token] for group in groups}
    return {token: (_wrong_labels(s.y, stream.n_outputs, generator), s.tasks.clone(), s.test.clone()) for token, s in sheets.items()}


def _wrong_labels(y: Tensor, n_outputs: int, generator: torch.Generator) -> Tensor:
    """Return labels that all differ from ``y`` if each item has a single label, otherwise the rows of ``y`` in another order."""
    if y.dim() == 1:
        return (y + torch.randint(1, n_outputs, y.shape, generator=generator)) % n_outputs
    return y[torch.randperm(len(y), generator=generator)]


def decoy_data(data: Any, generator: torch.Generator) -> Any:
    """Return a copy of ``data`` with wrong labels, or with wrong links for link prediction."""
    if isinstance(data, LinkData) and data.multi_label:
        return replace(data, links=torch.stack([data.links[0], data.links[1][torch.randperm(data.links.shape[1], generator=generator)]]))
    return replace(data, y=_wrong_labels(data.y, data.n_classes, generator))


def chance(stream: TaskStream | TaskFreeStream) -> list[float]:
    """Return chance performance per task under the scenario's measure if the outputs of a task compete with those of earlier tasks."""
    spec, table = stream.spec, stream.task_outputs
    seen = table.cumsum(dim=0) > 0
    allowed = (table if spec.task_ids_at_test else seen).sum(dim=1).tolist()
    if spec.performance in ("micro", "macro"):
        return [1.0 / n for n in allowed]
    if spec.performance == "roc-auc":
        return [0.5] * len(stream)
    if spec.performance == "hits":
        return [0.0] * len(stream)
    return [_of_targets(_targets(stream, k), spec.performance) for k in range(len(stream))]


def _targets(stream: Any, k: int) -> Tensor:
    stream.make_queries(len(stream))
    for sheet in stream.oracle._sheets.values():
        rows = (sheet.tasks == k) & sheet.test
        if bool(rows.any()):
            targets: Tensor = sheet.y[rows].cpu()
            return targets
    return torch.zeros(0, stream.n_outputs)


def _of_targets(y: Tensor, measure: str) -> float:
    """Return the mean prevalence of the labels that occur, or the negated mean deviation from the mean target."""
    if measure == "average-precision":
        shares = y.float().mean(dim=0)
        return float(shares[shares > 0].mean()) if bool((shares > 0).any()) else 0.0
    return -float((y - y.mean(dim=0)).abs().mean()) if len(y) else math.nan


def finite(result: RunResult) -> None:
    """Check that the results of a run are finite.

    Raises:
        CheckFailed: a loss is not finite, or no entry of the performance matrix is.
    """
    if not any(math.isfinite(v) for row in result.matrix for v in row):
        raise CheckFailed("no entry of the performance matrix is finite", "return finite outputs from predict")
    if not all(math.isfinite(v) for curve in result.curves for v in curve["loss"]):
        raise CheckFailed("a loss is not finite", "lower the learning rate, or guard logarithms and divisions")


def stream_content(stream: Any) -> list[tuple[str, bytes]]:
    """Return the contents of a stream's views and queries, without derived data."""
    if isinstance(stream, TaskFreeStream):
        batches = [stream.make_batch(0), *(g.query for g in stream.make_queries(stream.evaluations[-1]))]
    else:
        view = stream.view(0)
        batches = [view.train, view.validation, *(g.query for g in stream.make_queries(len(stream)))]
        stream.forget()
    return [(name, tensor.numpy().tobytes()) for batch in batches for name, tensor in _tensors(batch)]


def _tensors(batch: Batch) -> Iterator[tuple[str, torch.Tensor]]:
    graph = batch.graph
    named = {"ids": batch.ids, "y": batch.y, "allowed": batch.allowed, "tasks": batch.tasks, "features": graph.features}
    named |= graph.payload() if isinstance(graph, GraphSet) else {"edges": graph.edge_index}
    for name, value in named.items():
        if isinstance(value, SparseMatrix):
            yield name, value.values.cpu().contiguous()
        elif isinstance(value, torch.Tensor) and value.layout == torch.strided:
            yield name, value.detach().cpu().contiguous()
