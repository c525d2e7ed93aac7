"""Tiny data, streams over them and runners, for tests of the numerical rooms: six classes of ten nodes (or graphs) unless asked otherwise.

Feature 0 of every node is its own number (in units of 1/1024), so that a test can say which node of the dataset an item is, wherever it
meets it.
"""

from __future__ import annotations

import copy
import io
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from installed import installed
from torch import Tensor

from cglsuite import Method, ScenarioSpec, Seeds, TrainingSpec
from cglsuite.backbones.convolutional import gcn
from cglsuite.backbones.graphwise import graph_gcn
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import GraphData, GraphSet, MessageGraph, NodeData
from cglsuite.graphs.packed import PackedSource
from cglsuite.learning.result import RunResult
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.specs import resolve_hyperparameters, with_switches
from cglsuite.specs.levels import LEVEL_OF
from cglsuite.streams import Batch, TaskStream, TaskView
from cglsuite.streams.build import build_task_stream
from cglsuite.streams.graphwise import build_graph_stream

__all__ = [
    "VARIANTS",
    "BusyMethod",
    "KeptCheckpoints",
    "assert_same_run",
    "catalogue_runner",
    "node_numbers",
    "tiny_data",
    "tiny_graphs",
    "tiny_model",
    "tiny_runner",
    "tiny_spec",
    "tiny_stream",
    "variant_stream",
    "without_steps",
]

_UNIT = 1024  # a power of two: numbers come back exactly


def tiny_data(
    *,
    n_classes: int = 6,
    per_class: int = 10,
    class_ids: list[int] | None = None,
    sparse: bool = False,
    official: bool = False,
    multi_label: bool = False,
    keys: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
) -> NodeData:
    """Shuffled labels, features in which classes show, random directed edges with some self-loops, and a last node without edges.

    Args:
        class_ids: the global ids that the classes have; ``0..n_classes-1`` by default.
        official: give the data an official split, 6/2/2 of ten nodes of each class.
        multi_label: every node has each further class with probability 1/4.
        keys: attribute to values; the nodes of each class take the values in turn, so that every value has items of every class.
    """
    generator = torch.Generator().manual_seed(seed)
    ids = torch.tensor(class_ids if class_ids is not None else list(range(n_classes)))
    n = len(ids) * per_class
    place = torch.arange(len(ids)).repeat_interleave(per_class)[torch.randperm(n, generator=generator)]
    x = (torch.rand(n, 8, generator=generator) < 0.3).float()
    x[torch.arange(n), 1 + place % 7] = 2.0
    x[:, 0] = torch.arange(n) / _UNIT
    edges = torch.randint(0, n - 1, (2, 3 * n), generator=generator).unique(dim=1)
    edges = torch.cat([edges, torch.arange(0, n - 1, 7).expand(2, -1)], dim=1).unique(dim=1)
    split = torch.empty(n, dtype=torch.int8)
    for c in range(len(ids)):
        members = (place == c).nonzero().flatten()
        split[members] = torch.tensor([(0, 0, 0, 1, 2)[i % 5] for i in range(per_class)], dtype=torch.int8)
    turn = (place[:, None] == place).tril(-1).sum(dim=1)  # how many earlier nodes have the same class
    y = ids[place]
    if multi_label:
        y = torch.zeros(n, int(ids.max()) + 1, dtype=torch.bool)
        y[:, ids] = torch.rand(n, len(ids), generator=generator) < 0.25
        y[torch.arange(n), ids[place]] = True
    return NodeData(
        x=x.to_sparse_csr() if sparse else x,
        edge_index=edges,
        y=y,
        n_classes=int(ids.max()) + 1,
        official_split=split if official else None,
        keys={name: torch.tensor(values)[turn % len(values)] for name, values in (keys or {}).items()},
        name="tiny",
    )


def tiny_graphs(**options: Any) -> GraphData:
    """The nodes of :func:`tiny_data`, each the centre of a star of two to four nodes that share its features but for noise."""
    nodes = tiny_data(**options)
    generator = torch.Generator().manual_seed(options.get("seed", 0) + 1)
    sizes = torch.randint(2, 5, (nodes.n_nodes,), generator=generator)
    x = nodes.x.repeat_interleave(sizes, dim=0)
    x[:, 1:] += 0.1 * torch.rand(len(x), 7, generator=generator)
    centre = sizes.cumsum(0) - sizes
    leaves = torch.ones(len(x), dtype=torch.bool).index_fill(0, centre, False).nonzero().flatten()
    spokes = torch.stack([centre.repeat_interleave(sizes - 1), leaves])
    return GraphData(
        items=PackedSource(x, torch.cat([spokes, spokes.flip(0)], dim=1), sizes, "tiny"),
        y=nodes.y,
        n_classes=nodes.n_classes,
        official_split=nodes.official_split,
        keys=nodes.keys,
        name="tiny",
    )


def tiny_spec(**changes: Any) -> ScenarioSpec:
    """Class-IL in native order, two classes a task, four epochs; ``training`` may be a mapping of changes.

    Several labels (``labels="multi"``) are split task by task and scored by average precision.
    """
    setting = changes.setdefault("setting", "class-il")
    training = TrainingSpec(**({"lr": 0.05, "epochs": 4} | dict(changes.pop("training", {}))))
    defaults = {
        "name": f"tiny/{setting}@test-1",
        "summary": "tiny",
        "dataset": "tiny",
        "class_order": "native",
        "train_outputs": "task" if setting == "task-il" else "seen",
        "training": training,
    }
    if changes.get("labels") == "multi":
        defaults |= {"split": "task-wise", "performance": "average-precision"}
    level_changes = {name: changes.pop(name) for name in LEVEL_OF.keys() & changes.keys()}
    return with_switches(ScenarioSpec(**(defaults | changes)), level_changes, "scenario")


def tiny_stream(data: NodeData | GraphData | None = None, *, seeds: Seeds | None = None, **changes: Any) -> TaskStream:
    """The stream of :func:`tiny_spec` over ``data``."""
    if isinstance(data, GraphData):
        return build_graph_stream(tiny_spec(level="GC", **changes), data, seeds or Seeds())
    return build_task_stream(tiny_spec(**changes), data if data is not None else tiny_data(), seeds or Seeds())


def without_steps(stream: TaskStream) -> TaskStream:
    """``stream``, whose tasks are trained for no epoch: what no request can say, and what shows a method apart from training."""
    object.__setattr__(stream.spec.training, "epochs", 0)
    return stream


#: Streams of every kind that is not a class-incremental one of nodes with single labels: data (``graphs``: items are graphs) and switches.
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "domain-il": ({"keys": {"domain": [3, 5, 9]}}, {"setting": "domain-il", "task_key": "domain", "edge_policy": "full"}),
    "domain-il apart": ({"keys": {"domain": [3, 5, 9]}}, {"setting": "domain-il", "task_key": "domain", "edge_policy": "none"}),
    "time-il": ({"keys": {"year": [2001, 2002, 2004]}}, {"setting": "time-il", "task_key": "year", "edge_policy": "snapshot"}),
    "multi task-il": ({"multi_label": True}, {"setting": "task-il", "labels": "multi", "edge_policy": "none"}),
    "multi class-il": ({"multi_label": True}, {"setting": "class-il", "labels": "multi", "edge_policy": "inter-task"}),
    "multi class-il consistent": (
        {"multi_label": True},
        {"setting": "class-il", "labels": "multi", "edge_policy": "full", "split": "node-consistent"},
    ),
    "multi domain-il": (
        {"multi_label": True, "keys": {"domain": [3, 5, 9]}},
        {"setting": "domain-il", "labels": "multi", "task_key": "domain", "split": "random", "performance": "roc-auc"},
    ),
    "graph task-il": ({"graphs": True}, {"setting": "task-il"}),
    "graph class-il": ({"graphs": True}, {"setting": "class-il", "performance": "macro"}),
    "graph domain-il": ({"graphs": True, "keys": {"domain": [3, 5, 9]}}, {"setting": "domain-il", "task_key": "domain"}),
    "graph multi task-il": ({"graphs": True, "multi_label": True}, {"setting": "task-il", "labels": "multi"}),
}


def variant_stream(name: str, *, data: Mapping[str, Any] | None = None, seeds: Seeds | None = None, **changes: Any) -> TaskStream:
    """The stream ``name`` of :data:`VARIANTS` over fifteen nodes of each class; ``data`` changes what :func:`tiny_data` is asked for."""
    of_data, switches = VARIANTS[name]
    asked = {"per_class": 15} | of_data | dict(data or {})
    make: Any = tiny_graphs if asked.pop("graphs", False) else tiny_data
    return tiny_stream(make(**asked), seeds=seeds, **(switches | changes))


def tiny_model(stream: TaskStream, **hyperparameters: Any) -> Any:
    """A function that draws a GCN with batch norm and dropout, so that nothing random or stateful is left out."""
    n_features, n_outputs = stream.n_features, stream.n_outputs
    if stream.spec.level == "GC":
        of_graphs: dict[str, Any] = {
            "layers": 2,
            "width": 6,
            "normalisation": "symmetric",
            "residual": True,
            "batch_norm": True,
            "dropout": 0.25,
            "readout": "weighted-sum-and-max",
            "predictor_width": 5,
        }
        return lambda: graph_gcn(n_features, n_outputs, **(of_graphs | hyperparameters))
    defaults: dict[str, Any] = {
        "layers": 2,
        "width": 6,
        "normalisation": "symmetric",
        "bias": True,
        "batch_norm": True,
        "dropout": 0.25,
        "input_dropout": 0.0,
        "head": "linear",
    }
    return lambda: gcn(n_features, n_outputs, **(defaults | hyperparameters))


def tiny_runner(
    stream: TaskStream,
    method: Any = Method,
    hyperparameters: Mapping[str, Any] | None = None,
    *,
    backbone: Mapping[str, Any] | None = None,
    init_seed: int = 0,
    past_views: bool = False,
    **more: Any,
) -> TaskRunner:
    """A runner of ``method`` over ``stream``."""
    return TaskRunner(
        stream,
        method,
        tiny_model(stream, **dict(backbone or {})),
        hyperparameters=dict(hyperparameters or {}),
        training=stream.spec.training,
        init_seed=init_seed,
        identity="tiny",
        past_views=past_views,
        **more,
    )


def catalogue_runner(stream: TaskStream, name: str, hyperparameters: Mapping[str, Any] | None = None, **more: Any) -> TaskRunner:
    """A runner of the installed method ``name`` with its defaults over ``stream``.

    Raises:
        NotApplicable: the method is not for the stream's setting or level.
    """
    catalogue = installed()
    entry = catalogue.get("method", name)
    spec: Any = entry.spec
    if stream.spec.setting not in spec.settings:
        raise NotApplicable(f"{name} is not for {stream.spec.setting}")
    if stream.spec.level not in spec.levels:
        raise NotApplicable(f"{name} is not for {stream.spec.level}")
    resolved = resolve_hyperparameters(spec.hyperparameters, hyperparameters or {}, "method")
    return tiny_runner(stream, catalogue.resolve(entry), resolved, past_views="past-views" in spec.needs, **more)


class BusyMethod(Method):
    """Uses everything that a method may: state of every kind, the memory, a generator of its own, and global randomness."""

    state = ("seen", "history", "teacher", "table")

    def setup(self) -> None:
        """Nothing seen yet."""
        self.seen, self.teacher = 0, None
        self.history: list[float] = []
        self.table: dict[str, Any] = {}
        self._replay: Batch | None = None

    def before_task(self, view: TaskView) -> None:
        """Lay the memory out."""
        items = self.memory.all()
        self._replay = self.problem.recall(self.problem.join(items), view) if items else None

    def loss(self, batch: Batch) -> Tensor:
        """The task's loss, made noisy by every global source, and that of the memory."""
        loss = super().loss(batch) * (1 + 0.1 * (torch.rand(()) + np.random.rand() + random.random()))  # noqa: NPY002
        if self._replay is not None:
            loss = loss + self.problem.loss(self.forward(self._replay), self._replay)
        if self.teacher is not None:
            loss = loss + 0.01 * (self.forward(batch) - self.problem.forward(self.teacher, batch).detach()).pow(2).mean()
        return loss

    def after_task(self, view: TaskView) -> None:
        """Remember some of everything."""
        self._replay = None
        batch = self.problem.batch([view])
        chosen = torch.randperm(len(batch), generator=self.context.generator("choose"))[:3]
        self.memory.put(f"task-{view.position}", self.problem.sample(batch, chosen, "item"))
        self.teacher = copy.deepcopy(self.model).requires_grad_(False).eval()
        self.seen += 1
        self.history.append(float(torch.rand(())))
        self.table[str(view.classes.tolist())] = {"mean": self.problem.features(batch).mean(dim=0), "of": len(batch), "note": "kept"}


class KeptCheckpoints:
    """Checkpoints in memory that pass through ``torch.save`` and a ``weights_only`` load, as those on disk do."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.saved: list[str] = []

    def load(self, prefix: str) -> dict[str, Any] | None:
        """The payload; ``None`` where there is none, or where a test has put rubbish."""
        try:
            payload: dict[str, Any] = torch.load(io.BytesIO(self.files[prefix]), weights_only=True)
        except (KeyError, RuntimeError, ValueError, EOFError):
            return None
        return payload

    def save(self, prefix: str, payload: dict[str, Any]) -> None:
        """Serialise and keep."""
        buffer = io.BytesIO()
        torch.save(payload, buffer)
        self.files[prefix] = buffer.getvalue()
        self.saved.append(prefix)

    def drop(self, prefix: str) -> None:
        """Let go."""
        self.files.pop(prefix, None)


def node_numbers(graph: MessageGraph | GraphSet, ids: Tensor | None = None) -> list[int]:
    """Which items of the dataset the items ``ids`` of a graph (or set of graphs) are (all of them by default), read off feature 0."""
    if isinstance(graph, GraphSet):
        of_graphs = graph.pool(graph.features, "max")[:, 0]
        return [round(float(v) * _UNIT) for v in (of_graphs if ids is None else of_graphs[ids])]
    rows = graph.rows(torch.arange(graph.n_nodes) if ids is None else ids)
    column = rows[:, 0] if isinstance(rows, Tensor) else torch.from_numpy(rows.toarray()[:, 0])
    return [round(float(v) * _UNIT) for v in column]


def assert_same_run(one: RunResult, other: RunResult) -> None:
    """Same matrices, curves and states, bit for bit."""
    for name in ("matrix", "validation_matrix"):
        for mine, theirs in zip(getattr(one, name), getattr(other, name), strict=True):
            assert [None if math.isnan(v) else v for v in mine] == [None if math.isnan(v) else v for v in theirs]
    assert one.curves == other.curves
    assert one.memory == other.memory
    assert [f["state"] for f in one.fingerprints] == [f["state"] for f in other.fingerprints]
