"""Learning without forgetting (LwF): distillation from the previous model."""

from __future__ import annotations

import copy
from dataclasses import replace

import torch
from torch import Tensor

from cglsuite import Method
from cglsuite.backbones import Backbone
from cglsuite.streams import Batch, TaskView


class LwF(Method):
    """Minimise ``L + λ D``, where D distils the old outputs from the previous model on current items (Li & Hoiem 2016).

    ``D = -mean Σ softmax(z_old / τ) log softmax(z_new / τ)``, where z_old are the outputs of the teacher, which is the model after the last
    task. In task-IL, D is the sum of one such term per past task, over the outputs of that task; otherwise it is a single term over all
    outputs seen before this task. Multi-label outputs are distilled with sigmoids; the problem adapter chooses the form.

    As benchmarked (CGLB's graph level): with ``own_task_loss``, L covers the task's own outputs and D is the sum over past tasks in
    class-IL as well.

    Both terms use the same student outputs. The teacher is evaluated once per batch, in evaluation mode.
    """

    state = ("teacher", "past")

    def setup(self) -> None:
        """Initialise the teacher; there is none before the first task."""
        self.teacher: Backbone | None = None
        self.past: list[Tensor] = []
        self._known: Tensor | None = None
        self._own: Tensor | None = None

    def before_task(self, view: TaskView) -> None:
        """Select the groups of outputs to distil from the teacher: bool [past tasks, C], or bool [C]."""
        as_if_named = self.hyperparameters.get("own_task_loss", False) and not self.problem.task_ids
        self._own = view.task_outputs if as_if_named else None
        if self.past:
            of_tasks = torch.stack(self.past)
            self._known = of_tasks if self.problem.task_ids or as_if_named else of_tasks.any(dim=0)

    def loss(self, batch: Batch) -> Tensor:
        """Return the task loss plus the distillation loss."""
        outputs = self.forward(batch)
        loss = self.problem.loss(outputs, self._asked(batch))
        weight: float = self.hyperparameters["lambda"]
        if self.teacher is None or self._known is None or weight == 0:
            return loss
        taught = self._answers(self.teacher, batch)
        return loss + weight * self.problem.distill(taught, outputs, self._known, self.hyperparameters.temperature)

    def _asked(self, batch: Batch) -> Batch:
        """The batch, or (``own_task_loss``) its items with only the task's own outputs competing; cached with the batch."""
        if self._own is None:
            return batch
        if "own task" not in batch.cache:
            batch.cache["own task"] = replace(batch, allowed=self._own, cache={})
        asked: Batch = batch.cache["own task"]
        return asked

    def _answers(self, teacher: Backbone, batch: Batch) -> Tensor:
        """The teacher's outputs: float32 [n, C], cached with the batch for later epochs."""
        kept = batch.cache.get("teacher")
        if kept is None or kept[0] is not teacher:
            with torch.no_grad():
                kept = batch.cache["teacher"] = (teacher, self.problem.forward(teacher, batch))
        answers: Tensor = kept[1]
        return answers

    def after_task(self, view: TaskView) -> None:
        """Keep the trained model as the teacher for the next task."""
        self.teacher = copy.deepcopy(self.model).requires_grad_(False).eval()
        self.past.append(view.task_outputs)
