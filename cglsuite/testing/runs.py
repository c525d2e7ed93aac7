"""Shared by checks of methods and scenarios: cells on tiny streams, decoys, random states, and chance performance."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cglsuite.cells.run import build_stream, make_runner, numerics
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.graphs import GraphData, GraphSet, LinkData, NodeData, SparseMatrix
from cglsuite.host import Catalogue
from cglsuite.learning.result import RunResult
from cglsuite.learning.task_free_runner import TaskFreeRunner
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.specs import Seeds
from cglsuite.streams import Batch, Oracle, QueryGroup, TaskFreeStream, TaskStream
from cglsuite.testing.findings import CheckFailed

FORBIDDEN = (Oracle, NodeData, LinkData, GraphData, TaskStream, TaskFreeStream, QueryGroup, TaskRunner, TaskFreeRunner)
"""The types that give access to hidden labels, which must be unreachable for methods."""


@dataclass(kw_only=True)
class Subject:
    """A method in one scenario of a catalogue; every run starts anew in this process."""

    catalogue: Catalogue
    method: str
    scenario: str
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def cell(self, *, device: str = "cpu", **overrides: Any) -> CellSpec:
        """The cell, with further overrides by dotted key (``__`` for the dot).

        Raises:
            NotApplicable: the method does not support this scenario.
        """
        more = {name.replace("__", "."): value for name, value in overrides.items()}
        settings = {**self.overrides, **more}
        return resolve_cell(self.catalogue, self.scenario, self.method, overrides=settings, seeds=Seeds(), device=device)

    def run(self, cell: CellSpec | None = None) -> RunResult:
        """One run on a new stream."""
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
    """Answer sheets with wrong labels, task positions and test flags in the oracle's format, by token."""
    sheets = {group.token: stream.oracle._sheets[group.token] for group in groups}
    return {token: (_wrong_labels(s.y, stream.n_outputs, generator), s.tasks.clone(), s.test.clone()) for token, s in sheets.items()}


def _wrong_labels(y: Tensor, n_outputs: int, generator: torch.Generator) -> Tensor:
    """Labels that differ from ``y`` for single labels; otherwise the rows of ``y`` in another order."""
    if y.dim() == 1:
        return (y + torch.randint(1, n_outputs, y.shape, generator=generator)) % n_outputs
    return y[torch.randperm(len(y), generator=generator)]


def decoy_data(data: Any, generator: torch.Generator) -> Any:
    """A dataset like ``data`` with wrong labels, or wrong links in link prediction."""
    if isinstance(data, LinkData) and data.multi_label:
        return replace(data, links=torch.stack([data.links[0], data.links[1][torch.randperm(data.links.shape[1], generator=generator)]]))
    return replace(data, y=_wrong_labels(data.y, data.n_classes, generator))


def chance(stream: TaskStream | TaskFreeStream) -> list[float]:
    """Chance performance per task under the scenario's measure, when its outputs compete with those of earlier tasks."""
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
    """Mean prevalence of the labels that occur, or minus the mean deviation from the mean target."""
    if measure == "average-precision":
        shares = y.float().mean(dim=0)
        return float(shares[shares > 0].mean()) if bool((shares > 0).any()) else 0.0
    return -float((y - y.mean(dim=0)).abs().mean()) if len(y) else math.nan


def finite(result: RunResult) -> None:
    """Check that a run has results.

    Raises:
        CheckFailed: a loss, or the whole performance matrix, is not finite.
    """
    if not any(math.isfinite(v) for row in result.matrix for v in row):
        raise CheckFailed("no entry of the performance matrix is finite", "return finite outputs from predict")
    if not all(math.isfinite(v) for curve in result.curves for v in curve["loss"]):
        raise CheckFailed("a loss is not finite", "lower the learning rate, or guard logarithms and divisions")


def stream_content(stream: Any) -> list[tuple[str, bytes]]:
    """The contents of views and queries, without derived data."""
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
