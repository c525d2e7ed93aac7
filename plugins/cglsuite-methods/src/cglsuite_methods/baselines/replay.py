"""Replay of a random part of every task."""

from __future__ import annotations

from collections.abc import Sequence

from cglsuite import Method
from cglsuite.streams import TaskView
from cglsuite_methods.rehearsal.kept import keep_at_random, share_of, with_replayed

__all__ = ["Replay"]


class Replay(Method):
    """``mean over C ∪ B of ℓ``: the current training items C and the kept items B of all past tasks are learnt as one set.

    Of each task a random ``fraction`` of the training items is kept, at least one, and at most an equal share of the scenario's budget.
    This is the rehearsal baseline of the skeleton benchmark, whose fractions are 0.05, 0.1 and 0.2. Kept items carry no edges unless
    ``neighbourhood`` reads them in the current graph, where one forward pass serves all.
    """

    def training_views(self, view: TaskView) -> Sequence[TaskView]:
        """The task's view with the kept items among its training items; its validation items are its own."""
        items = self.memory.all()
        return (with_replayed(self, view, self.problem.join(items)) if items else view,)

    def after_task(self, view: TaskView) -> None:
        """Keep the task's part."""
        keep_at_random(self, view, share_of(view, self.hyperparameters.fraction))
