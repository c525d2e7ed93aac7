"""Open-world streams: after each task of a class-incremental stream, queries also contain test items of the next task's classes.

A method should predict the class of the items that it can know and reject the others (Galke et al., Lifelong Learning on Evolving Graphs
Under the Constraints of Imbalanced Classes and New Classes, Neural Networks 164, 2023).

Row k of the performance matrix holds the accuracy on each task learnt, without rejection as in class-IL, so AP and AF keep their meaning.
In the column of the next task it holds the scenario's measure over *all* test items of the stage. Nothing is unknown after the last task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from cglsuite.base.errors import LeakError, SpecError
from cglsuite.graphs import GraphData, LinkData, NodeData
from cglsuite.specs import ScenarioSpec, Seeds
from cglsuite.streams.assembly import TaskAssembly
from cglsuite.streams.build import _Nodes, build_task_stream
from cglsuite.streams.graphwise import _Graphs, build_graph_stream
from cglsuite.streams.link_graphs import LinkClassification
from cglsuite.streams.links import build_link_stream
from cglsuite.streams.measures.open_world import UNKNOWN
from cglsuite.streams.oracle import Oracle, Score
from cglsuite.streams.stream import TaskStream

__all__ = ["build_open_stream"]


def build_open_stream(spec: ScenarioSpec, data: NodeData | LinkData | GraphData, seeds: Seeds, device: str = "cpu") -> TaskStream:
    """Build the class-incremental stream of the level, with the next task's test items among the queries of each stage.

    The stream depends only on (data, spec, seeds.order, seeds.split). Views are those of the stream with ``labels = single``.

    Raises:
        SpecError: ``labels`` is not ``open``; links under the edge policy ``none``; nodes under the edge policy ``none`` without
            ``query_grouping = pooled`` and ``query_edges = seen``; the same errors as for other streams of the level.
        DataError: the same errors as for other streams of the level.
    """
    if spec.labels != "open":
        raise SpecError(
            f"{spec.name}: scenario.labels = {spec.labels!r}, but this builder creates only open-world streams; expected 'open'"
        )
    queries = spec.query_grouping, spec.query_edges
    if spec.level == "NC" and spec.edge_policy == "none" and queries != ("pooled", "seen"):
        raise SpecError(
            f"{spec.name}: query_grouping = {queries[0]!r} and query_edges = {queries[1]!r} would reveal which items are unknown, because "
            "queries would be grouped by task; expected query_grouping = 'pooled' and query_edges = 'seen'"
        )
    if spec.level == "LC" and spec.edge_policy == "none":
        raise SpecError(
            f"{spec.name}: edge_policy = 'none' would give the links of the next task a separate graph, which reveals that they are "
            "unknown; choose another edge policy"
        )
    builders: dict[str, tuple[Any, Any]] = {
        "NC": (build_task_stream, _OpenNodes),
        "LC": (build_link_stream, _OpenLinks),
        "GC": (build_graph_stream, _OpenGraphs),
    }
    build, kind = builders[spec.level]
    closed = build(replace(spec, labels="single", performance="micro", measure=None), data, seeds, device)
    stream: TaskStream = kind(spec, closed.data, closed.layout, seeds, device)
    return stream


class _OpenQueries(TaskAssembly):
    """Mixin for the queries of an open world: after each task, the test items of the tasks learnt and of the next one, in one group."""

    def make_oracle(self) -> Oracle:
        return _OpenOracle.of(self.spec, self.data.n_classes)

    def plan(self, learnt: int) -> list[tuple[tuple[int, ...], int]]:
        last = min(learnt, len(self.layout) - 1)
        return [(tuple(range(last + 1)), last)] if learnt else []


class _OpenNodes(_OpenQueries, _Nodes):
    """An open-world stream of nodes. Queries are in the graph of the next stage, where the new items have arrived."""


class _OpenLinks(_OpenQueries, LinkClassification):
    """An open-world stream of links."""


class _OpenGraphs(_OpenQueries, _Graphs):
    """An open-world stream of whole graphs."""


class _OpenOracle(Oracle):
    """An oracle that scores tasks learnt by accuracy, and all test items of a stage by the scenario's measure."""

    threshold = 0.0

    @classmethod
    def of(cls, spec: ScenarioSpec, n_outputs: int, hits_k: int = 50) -> Oracle:
        oracle = super().of(spec, n_outputs, hits_k)
        oracle.threshold = spec.reject_below  # type: ignore[attr-defined]
        return oracle

    def grade(
        self, answers: Mapping[str, Tensor], allowed: Mapping[str, Tensor] | None = None
    ) -> tuple[dict[int, Score], dict[int, Score]]:
        """Score the predictions of a stage. ``answers`` are float32 [n, 3] per token, as decoded by the level's open adapter."""
        if allowed is None:
            raise LeakError("open-world predictions cannot be scored without the set of competing outputs")
        ((token, given),) = answers.items()
        sheet, outputs = self._sheets[token], allowed[token].cpu()
        y, tasks, test, decoded = sheet.y.cpu(), sheet.tasks.cpu(), sheet.test.cpu(), given.cpu()
        if len(decoded) != len(y):
            raise LeakError(f"got predictions of shape {list(given.shape)} for {len(y)} queries: predict() must return one per query")
        unknown = ~outputs[y]
        right = decoded[:, 0].long() == y
        scores: tuple[dict[int, Score], dict[int, Score]] = ({}, {})
        for part, which in ((0, test & ~unknown), (1, ~test & ~unknown)):
            for k in tasks[which].unique().tolist():
                own = which & (tasks == k)
                counts = torch.bincount(y[own], minlength=self._n_outputs).double()
                hits = torch.bincount(y[own & right], minlength=self._n_outputs).double()
                scores[part][k] = Score(performance=float(hits.sum() / counts.sum()), hits=hits, counts=counts)
        if bool(unknown.any()):
            rejected = torch.where(decoded[:, 2].isnan(), decoded[:, 1] < self.threshold, decoded[:, 2] == 0)
            found = torch.stack([decoded[:, 0].masked_fill(rejected, UNKNOWN), decoded[:, 1]], dim=1)
            scores[0][int(tasks[unknown][0])] = self._score(y[test], found[test], outputs)
        return scores

    def performance(self, tokens: Sequence[str], answers: Tensor, allowed: Tensor) -> float:
        """Compute the accuracy on validation items, all of whose classes have arrived, without rejection."""
        y = torch.cat([self._sheets[token].y for token in tokens])
        return float((answers[:, 0].long().to(y.device) == y).double().mean())
