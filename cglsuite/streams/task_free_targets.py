"""Build task-free streams whose items have real-valued targets: nodes (NR) or whole graphs (GR)."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from cglsuite.base.errors import SpecError
from cglsuite.graphs import GraphData, NodeData
from cglsuite.specs import ScenarioSpec, Seeds
from cglsuite.streams import build_task_free
from cglsuite.streams.assembly import check_labels
from cglsuite.streams.layout import layout_of
from cglsuite.streams.task_free import TaskFreeStream

__all__ = ["build_task_free_targets"]


def build_task_free_targets(spec: ScenarioSpec, data: NodeData | GraphData, seeds: Seeds, device: str = "cpu") -> TaskFreeStream:
    """Mix the latent tasks of ``data``, which has real targets, into a stream of batches according to ``spec``.

    Targets have no classes, so every output exists from the first step. All else is as in
    :func:`cglsuite.streams.build_task_free.build_task_free_stream`.

    Raises:
        SpecError: if there is no schedule, the mask is not ``all``, a hyperparameter is out of range, a batch is larger than a latent task,
            or the data has labels.
        DataError: if a latent task has no training or test items.
    """
    if spec.task_free is None:
        raise SpecError(f"scenario {spec.name!r} does not define a task-free stream: expected task_free=TaskFreeSpec(...)")
    if spec.task_free.mask != "all":
        raise SpecError(f"stream.mask = {spec.task_free.mask}: real targets have no classes that could be hidden; expected all")
    check_labels(spec, data)
    kind = _Nodes if isinstance(data, NodeData) else _Graphs
    by_domain = replace(spec, setting="domain-il", task_free=None)  # for task-free scenarios, layouts look for classes
    return kind(spec, data, layout_of(by_domain, data, seeds), seeds, device, spec.task_free)


class _Targets(build_task_free.TaskFreeAssembly):
    """Mixin for real-valued targets. List it before the class of a level."""

    @cached_property
    def _first_shown(self) -> Tensor:
        """The step at which the stream first shows each output, which is the first for all: int64 [C]."""
        return torch.zeros(self.n_outputs, dtype=torch.int64)


class _Nodes(_Targets, build_task_free._Nodes):
    """A task-free stream of nodes with real targets."""


class _Graphs(_Targets, build_task_free._Graphs):
    """A task-free stream of whole graphs with real targets."""
