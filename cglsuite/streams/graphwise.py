"""Task streams whose items are whole graphs."""

from __future__ import annotations

import torch
from torch import Tensor

from cglsuite.base.errors import DataError, SpecError
from cglsuite.graphs import GraphData, GraphSet
from cglsuite.specs import ScenarioSpec, Seeds
from cglsuite.streams.assembly import TaskAssembly, check_labels
from cglsuite.streams.layout import Layout, layout_of
from cglsuite.streams.stream import TaskStream

__all__ = ["build_graph_stream"]


def build_graph_stream(spec: ScenarioSpec, data: GraphData, seeds: Seeds, device: str = "cpu") -> TaskStream:
    """Partition ``data`` into a stream of tasks according to ``spec``.

    The stream depends only on (data, spec, seeds.order, seeds.split). No messages pass between graphs, so a task's view contains only its
    training and (unlabelled) validation graphs, and test items of every task can be queried at any time.

    Raises:
        SpecError: if an order is not a permutation, there are too many tasks for the data, the official split does not exist, or a switch
            does not support the kind of labels or applies only to a single large graph.
        DataError: if a class is too small to split, a class has no training items, a task has no items in some part, a key is missing, a
            label is unknown where it would be queried or learnt, or a monitored performance is undefined.
    """
    check_labels(spec, data)
    if spec.edge_policy != "full":
        raise SpecError(
            f"scenario.edge_policy = {spec.edge_policy!r}, but items are whole graphs, with no edges between them; expected 'full'"
        )
    if spec.replicas != 1:
        raise SpecError(
            f"scenario.replicas = {spec.replicas}: items are whole graphs, but only a single large graph can be copied; expected 1"
        )
    if spec.feature_normalisation != "none":
        raise SpecError(
            f"scenario.feature_normalisation = {spec.feature_normalisation}: a dataset of whole graphs prepares its own features; "
            "expected none"
        )
    layout = layout_of(spec, data, seeds)
    _check_known(spec, data, layout)
    _check_monitored(spec, data, layout)
    return _Graphs(spec, data, layout, seeds, device)


def _check_known(spec: ScenarioSpec, data: GraphData, layout: Layout) -> None:
    """Check that every competing label is known for all graphs of a task, because unknown labels would count as absent."""
    if data.known is None:
        return
    apart = spec.task_ids_at_test and spec.train_outputs == "task"
    for k, parts in enumerate(layout.parts):
        competing = layout.outputs[k] if apart else layout.outputs.any(dim=0)
        for part, ids in parts.items():
            if bool((missing := competing & ~data.known[ids]).any()):
                item, output = missing.nonzero()[0].tolist()
                raise DataError(
                    f"scenario {spec.name!r}: label {output} of graph {int(ids[item])}, a {part} graph of task {k + 1} "
                    f"({layout.names[k]}), is unknown, but competes in the task; use data without unknown labels, or task-il "
                    "with scenario.classes_per_task = 1 and scenario.train_outputs = task, where tasks contain only labelled graphs"
                )


def _check_monitored(spec: ScenarioSpec, data: GraphData, layout: Layout) -> None:
    """Check that ROC-AUC is defined if training monitors it."""
    if spec.training.monitor != "validation-performance" or spec.performance != "roc-auc":
        return
    for k, parts in enumerate(layout.parts):
        y = data.y[parts["validation"]][:, layout.outputs[k]]
        positives = y.sum(dim=0)
        if not bool(((positives > 0) & (positives < len(y))).any()):
            raise DataError(
                f"scenario {spec.name!r}: ROC-AUC is undefined on the {len(y)} validation graphs of task {k + 1} ({layout.names[k]}): "
                "no label has both positives and negatives; set training.monitor to validation-loss, or change the split"
            )


class _Graphs(TaskAssembly):
    """A task stream whose items are whole graphs. Each batch is a separate set of graphs."""

    data: GraphData

    def placed(self, ids: Tensor, k: int, stage: int, part: str) -> tuple[GraphSet, Tensor]:
        items = self.data.items
        graphs = items.training(ids, self.seeds.split, self.device) if part == "train" else items.queries(ids, self.device)
        return graphs, torch.arange(ids.numel())

    def placed_queries(self, ids: Tensor, stage: int) -> tuple[GraphSet, Tensor]:
        return self.data.items.queries(ids, self.device), torch.arange(ids.numel())

    def plan(self, learnt: int) -> list[tuple[tuple[int, ...], int]]:
        return [(tuple(range(len(self.layout))), max(learnt - 1, 0))]
