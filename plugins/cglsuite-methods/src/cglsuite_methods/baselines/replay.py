"""Replay of a random sample from every task."""

from __future__ import annotations

from collections.abc import Sequence

from cglsuite import Method
from cglsuite.streams import TaskView
from cglsuite_methods.rehearsal.replay_items import keep_at_random, share_of, with_replayed


class Replay(Method):
    """Train on the union of the current training items C and the stored items B of all past tasks: ``mean over C ∪ B of ℓ``.

    A random ``fraction`` of each task's training items is stored: at least one item, and at most an equal share of the scenario's budget.
    This is the rehearsal baseline of the skeleton benchmark, which uses fractions of 0.05, 0.1 and 0.2. Stored items have no edges unless
    ``neighbourhood`` embeds them in the current graph, so that one forward pass covers all items.
    """

    def training_views(self, view: TaskView) -> Sequence[TaskView]:
        """Return the task's view with the stored items added to its training items. Validation items are unchanged."""
        items = self.memory.all()
        return (with_replayed(self, view, self.problem.join(items)) if items else view,)

    def after_task(self, view: TaskView) -> None:
        """Store a random sample of the task."""
        keep_at_random(self, view, share_of(view, self.hyperparameters.fraction))
