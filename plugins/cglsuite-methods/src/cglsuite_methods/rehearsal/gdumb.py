"""GDumb: a greedy class-balanced memory and a model trained on it from scratch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from cglsuite import Method
from cglsuite.base.errors import BudgetError
from cglsuite.learning import Phase
from cglsuite.streams import TaskView
from cglsuite_methods.rehearsal.replay_items import kept_as

_SHELF = "memory"


class GDumb(Method):
    """Maintain a class-balanced memory and train a new model on it after each task (Prabhu et al., GDumb: A Simple Approach that Questions
    Our Progress in Continual Learning, ECCV 2020).

    An item of class y is added if the class has fewer than ``k / |classes so far|`` of k places; if the memory is full, a random item of
    the largest class is removed. The training items of the task arrive in random order. The model learns nothing from the stream itself, so
    the gain of a method with the same memory over this score is the value of its continual learning.

    Design choices that the paper leaves open: the same class in another task counts as another class, because in settings where classes
    recur the rule would otherwise keep the items of the first task forever. Items with several labels form two classes per task (with and
    without a label), and items with real targets form one class per task. Training uses the epochs of the protocol. If the protocol has a
    plateau schedule or restores the best epoch, both follow the training loss, because nothing outside the memory is used. The cosine
    schedule and CutMix of the paper are not used.

    Cost: one training run on at most k items per task, which is cheap on a large graph because stored items have no edges
    (``neighbourhood`` embeds them in the current graph); k items with their features.
    """

    def setup(self) -> None:
        """Initialise an empty memory.

        Raises:
            BudgetError: there is no room for a single item.
        """
        budget = self.memory.budget
        self.capacity: int = self.hyperparameters.memory if budget is None else budget
        if self.capacity < 1:
            raise BudgetError(
                "gdumb trains only on its memory, but the memory budget is 0 items (scenario.memory_budget); expected at least 1"
            )

    def before_task(self, view: TaskView) -> None:
        """Offer the items of the task to the memory and initialise a new model."""
        self._keep(view)
        if not view.first:
            self.model = self.context.build_model()

    def _keep(self, view: TaskView) -> None:
        draws = self.context.generator("memory")
        before = self.memory[_SHELF] if self.memory else None
        order = torch.randperm(len(view.train), generator=draws)
        kept = [] if before is None else list(zip(before.tasks.tolist(), self._classes(before.y), strict=True))
        classes = self._classes(self.problem.labels(view.train))
        arriving = [(view.position, classes[i]) for i in order.tolist()]
        stays = torch.tensor(greedily_balanced([*kept, *arriving], len(kept), self.capacity, draws))
        old, new = stays[stays < len(kept)], stays[stays >= len(kept)] - len(kept)
        parts = [self.problem.sample(view.train, order[new], kept_as(self))] if len(new) else []
        if before is not None and len(old):
            parts.insert(0, before.take(old))
        self.memory.put(_SHELF, self.problem.join(parts))

    def _classes(self, y: Tensor) -> list[int]:
        """The class of each item within its task."""
        if self.problem.kind == "single-label":
            return list(y.tolist())
        return list(y.any(dim=1).int().tolist()) if self.problem.kind == "multi-label" else [0] * len(y)

    def training_views(self, view: TaskView) -> Sequence[TaskView]:
        """Return a view that contains the memory in place of the training items of the task."""
        return (replace(view, train=self.problem.recall(self.memory[_SHELF], view)),)

    def phases(self, view: TaskView) -> Iterator[Phase]:
        """Yield one phase that trains on the memory and monitors only the training loss."""
        yield Phase(name="train on the memory", monitor="loss")


def greedily_balanced(groups: Sequence[tuple[int, int]], n_kept: int, room: int, draws: torch.Generator) -> list[int]:
    """Select the items that are in memory after all have arrived; the first ``n_kept`` were there before.

    Args:
        groups: the class of each item, in the order in which they come. room: the number of places, at least 1.

    Returns:
        Their positions, ascending.
    """
    members: dict[tuple[int, int], list[int]] = {}
    for i, group in enumerate(groups[:n_kept]):
        members.setdefault(group, []).append(i)
    total = n_kept
    for i in range(n_kept, len(groups)):
        own = members.setdefault(groups[i], [])
        if own and len(own) >= room / len(members):
            continue
        if total >= room:
            largest = max(members.values(), key=len)
            largest.pop(int(torch.randint(len(largest), (1,), generator=draws)))
            total -= 1
        own.append(i)
        total += 1
    return sorted(i for own in members.values() for i in own)
