"""Experience replay with asymmetric cross-entropy (ER-ACE)."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from cglsuite.graphs import counted
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.rehearsal.task_free.memory import Sampling


class ERACE(Sampling):
    """Minimise ``L(B; classes of B) + L(M_B; all classes)``: new items compete only among the classes of their batch, replayed items among
    all classes (Caccia et al. 2022).

    This prevents new classes from pushing down the outputs of earlier ones; only replay trains old classes against new ones. M_B has the
    size of the batch and is drawn from a reservoir, to which every item is offered once: after its batch in task-free streams, and at the
    start of its task in streams of tasks. The reason is that tasks have many epochs, and a memory without the new classes could not train
    them against earlier ones before the next task. Multi-label outputs do not compete, so both losses cover all outputs and the method is
    experience replay.
    """

    def before_task(self, view: TaskView) -> None:
        """Offer every training item of the task to the reservoir."""
        super().before_task(view)
        self.offer(view.train)

    def after_task(self, view: TaskView) -> None:
        """Do nothing, because all items were offered before the task."""

    def loss(self, batch: Batch) -> Tensor:
        """Return the loss on the batch, restricted to its own classes, plus the loss on the replayed items."""
        current = self.problem.loss(self.forward(batch), self.among_own(batch))
        replay = self.draw(batch, len(batch))
        return current if replay is None else current + self.problem.loss(self.forward(replay), replay)

    def among_own(self, batch: Batch) -> Batch:
        """Return the batch with the competing outputs restricted to the labels of its items."""
        if self.problem.kind != "single-label":
            return batch
        own = counted(self.problem.labels(batch), self.problem.n_outputs) > 0
        return replace(batch, allowed=batch.allowed & own, cache={})
