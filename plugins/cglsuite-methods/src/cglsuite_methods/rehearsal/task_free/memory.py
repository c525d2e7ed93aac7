"""Base classes for task-free rehearsal: a memory of the stream, random samples from it, and the replay loss."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from cglsuite import Method
from cglsuite.base.errors import NotApplicable
from cglsuite.learning import Reservoir
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.rehearsal.replay_items import both_losses, kept_as

MEMORY = "memory"
"""The shelf of an undivided memory."""


class Rehearsing(Method):
    """Base class for methods with a single memory, from which they sample items.

    The capacity is the scenario's budget, or the hyperparameter ``memory`` if the scenario has none. Items are stored by reference if
    ``neighbourhood`` is set, otherwise with their features.
    """

    def setup(self) -> None:
        """Initialise an empty memory.

        Raises:
            NotApplicable: memory by reference is combined with a new sampled graph in every step.
        """
        self._generator: torch.Generator | None = None
        if self.hyperparameters.get("neighbourhood") and self.problem.fan_out:
            raise NotApplicable(
                "items stored by reference are embedded in the graph of the step, but training.fan_out samples a new graph for every step; "
                "store items with their features instead (method.neighbourhood=false), or set training.fan_out=()"
            )

    @property
    def capacity(self) -> int:
        """The capacity of the memory."""
        budget = self.memory.budget
        capacity: int = self.hyperparameters.memory if budget is None else budget
        return capacity

    def kept(self) -> MemoryItems | None:
        """Return all items in memory, or ``None`` if it is empty."""
        return self.memory[MEMORY] if MEMORY in self.memory and len(self.memory[MEMORY]) else None

    def sampled(self, batch: Batch, chosen: Tensor) -> MemoryItems:
        """Return the items at positions ``chosen`` (int64 [m]) of a batch in the form in which the method stores them."""
        return self.problem.sample(batch, chosen, kept_as(self))

    def before_batch(self, batch: Batch) -> None:
        """Start the random draws of this step; further passes over the batch continue them."""
        self._generator = self.context.generator("draw")

    def drawn(self, n: int) -> MemoryItems | None:
        """Draw ``n`` memory items (all if there are fewer) uniformly without replacement; return ``None`` if the memory is empty."""
        items = self.kept()
        return None if items is None else items.draw(n, self._generator)

    def draw(self, batch: Batch, n: int) -> Batch | None:
        """Return the result of :meth:`drawn` as a batch, in the graph of ``batch`` if items are stored by reference."""
        items = self.drawn(n)
        return None if items is None else self.problem.recall(items, batch)

    def replayed_loss(self, batch: Batch) -> Tensor:
        """Compute ``L + L_B`` on the batch and the same number of memory items, or ``L`` while the memory is empty."""
        replay = self.draw(batch, len(batch))
        if replay is None:
            return self.problem.loss(self.forward(batch), batch)
        current, replayed = both_losses(self, batch, replay)
        return current + replayed


def _of_the_reservoir(name: str) -> Any:
    return property(lambda method: getattr(method.reservoir, name), lambda method, value: setattr(method.reservoir, name, value))


class Sampling(Rehearsing):
    """Base class for methods whose memory is always a uniform sample of the stream so far, a :class:`cglsuite.learning.Reservoir`."""

    # The reservoir's state has names of its own because checkpoints and fingerprints of these methods use them.
    state: ClassVar[tuple[str, ...]] = ("priorities", "bar", "passed_over")
    priorities, bar, passed_over = (_of_the_reservoir(name) for name in state)

    def setup(self) -> None:
        """Initialise an empty reservoir."""
        super().setup()
        wanted = self.hyperparameters
        self.reservoir = Reservoir(
            self.context, capacity=wanted.memory, shelf=MEMORY, centres_only=wanted.get("centres_only", False), purpose="priorities"
        )

    def before_task(self, view: TaskView) -> None:
        """Start the random draws of this task.

        Raises:
            NotApplicable: memory by reference is combined with views that do not keep earlier nodes.
        """
        self._generator = self.context.generator("draw")
        if (items := self.kept()) is not None:
            self.problem.recall(items.take(torch.arange(1)), view)

    def after_batch(self, batch: Batch) -> None:
        """Offer every item of the batch to the reservoir."""
        self.offer(batch)

    def after_task(self, view: TaskView) -> None:
        """Offer every training item of the task to the reservoir."""
        self.offer(view.train)

    def offer(self, batch: Batch) -> None:
        """Offer a labelled batch to the reservoir."""
        self.reservoir.offer(batch, kept_as(self))

    def counters(self) -> dict[str, int]:
        """Return the number of items skipped because each one alone exceeds the memory, if any."""
        return {"passed_over": self.passed_over} if self.passed_over else {}
