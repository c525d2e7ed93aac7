"""Joint training: the upper bound that every task is learnt with all earlier data at hand."""

from __future__ import annotations

from collections.abc import Sequence

from cglsuite import Method
from cglsuite.streams import TaskView

__all__ = ["Joint"]


class Joint(Method):
    """For every task t a freshly initialised model is trained on the union of tasks 1..t.

    Of a stream without tasks one model learns all training items offline, in ``offline_epochs`` passes over batches of ``offline_batch``;
    every evaluation along the stream asks that model.
    """

    def before_task(self, view: TaskView) -> None:
        """Start again from new weights."""
        if not view.first:
            self.model = self.context.build_model()

    def training_views(self, view: TaskView) -> Sequence[TaskView]:
        """All tasks so far."""
        return (*view.past, view)
