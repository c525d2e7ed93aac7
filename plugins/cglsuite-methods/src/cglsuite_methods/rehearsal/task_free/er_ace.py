"""Experience replay with asymmetric cross-entropy."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cglsuite.streams import Batch, TaskView
from cglsuite_methods.rehearsal.task_free.memory import Sampling

__all__ = ["ERACE"]


class ERACE(Sampling):
    """``L(B; classes of B) + L(M_B; all classes)``: new items compete among the classes of their batch, replayed ones among all (Caccia et
    al. 2022).

    New classes then do not push the outputs of earlier ones away; replay alone decides between old and new. M_B are as many items as the
    batch has, drawn from a reservoir memory, to which every item is offered once: in a task-free stream after its batch, in a stream of
    tasks when its task begins. There a task has many epochs, and a memory without its classes could not set them against earlier ones
    before the next task. Where outputs do not compete, with several labels per item, both losses are over all outputs and the method is
    experience replay.
    """

    def before_task(self, view: TaskView) -> None:
        """Every training item of the task has its chance."""
        super().before_task(view)
        self.offer(view.train)

    def after_task(self, view: TaskView) -> None:
        """All were offered before."""

    def loss(self, batch: Batch) -> Tensor:
        """The loss of the batch among its classes, and that of the items drawn."""
        current = self.problem.loss(self.forward(batch), self.among_own(batch))
        replay = self.draw(batch, len(batch))
        return current if replay is None else current + self.problem.loss(self.forward(replay), replay)

    def among_own(self, batch: Batch) -> Batch:
        """The batch, of whose outputs only those compete that are the label of one of its items."""
        if self.problem.kind != "single-label":
            return batch
        own = torch.zeros(self.problem.n_outputs, dtype=torch.bool, device=self.problem.device)
        own[self.problem.labels(batch).unique()] = True
        return replace(batch, allowed=batch.allowed & own, cache={})
