"""Shared by task-free rehearsal methods: a uniform memory of the stream, draws from it, and the replay loss."""

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
    """Base of methods with a memory on one shelf and draws from it.

    The capacity is the scenario's budget, or the hyper-parameter ``memory`` if the scenario has none. Items are stored by reference if
    ``neighbourhood`` is set, otherwise with their features.
    """

    def setup(self) -> None:
        """Start with an empty memory.

        Raises:
            NotApplicable: memory by reference is combined with a new sampled graph in every step.
        """
        self._generator: torch.Generator | None = None
        if self.hyperparameters.get("neighbourhood") and self.problem.fan_out:
            raise NotApplicable(
                "memory by reference embeds old nodes in the graph of the step, but training.fan_out samples a new graph for every step: "
                "keep items with their features instead (method.neighbourhood=false), or set training.fan_out=()"
            )

    @property
    def capacity(self) -> int:
        """The capacity of the memory."""
        budget = self.memory.budget
        capacity: int = self.hyperparameters.memory if budget is None else budget
        return capacity

    def kept(self) -> MemoryItems | None:
        """All items in memory; ``None`` if it is empty."""
        return self.memory[MEMORY] if MEMORY in self.memory and len(self.memory[MEMORY]) else None

    def sampled(self, batch: Batch, chosen: Tensor) -> MemoryItems:
        """The items at positions ``chosen`` (int64 [m]) of a batch, in stored form."""
        return self.problem.sample(batch, chosen, kept_as(self))

    def before_batch(self, batch: Batch) -> None:
        """Start this step's random draws; passes over the batch continue them."""
        self._generator = self.context.generator("draw")

    def drawn(self, n: int) -> MemoryItems | None:
        """``n`` memory items (all if there are fewer), drawn uniformly without replacement; ``None`` if the memory is empty."""
        items = self.kept()
        return None if items is None else items.draw(n, self._generator)

    def draw(self, batch: Batch, n: int) -> Batch | None:
        """:meth:`drawn` as a batch, in the graph of ``batch`` if items are stored by reference."""
        items = self.drawn(n)
        return None if items is None else self.problem.recall(items, batch)

    def replayed_loss(self, batch: Batch) -> Tensor:
        """``L + L_B`` on the batch and on equally many memory items; ``L`` while the memory is empty."""
        replay = self.draw(batch, len(batch))
        if replay is None:
            return self.problem.loss(self.forward(batch), batch)
        current, replayed = both_losses(self, batch, replay)
        return current + replayed


def _of_the_reservoir(name: str) -> Any:
    return property(lambda method: getattr(method.reservoir, name), lambda method, value: setattr(method.reservoir, name, value))


class Sampling(Rehearsing):
    """Base of methods whose memory is always a uniform sample of the stream so far: a :class:`cglsuite.learning.Reservoir`."""

    # The reservoir's state has names of its own because checkpoints and fingerprints of these methods use them.
    state: ClassVar[tuple[str, ...]] = ("priorities", "bar", "passed_over")
    priorities, bar, passed_over = (_of_the_reservoir(name) for name in state)

    def setup(self) -> None:
        """Start with an empty reservoir."""
        super().setup()
        wanted = self.hyperparameters
        self.reservoir = Reservoir(
            self.context, capacity=wanted.memory, shelf=MEMORY, centres_only=wanted.get("centres_only", False), purpose="priorities"
        )

    def before_task(self, view: TaskView) -> None:
        """Start this task's random draws.

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
        """The number of items skipped because each alone exceeds the memory, if any."""
        return {"passed_over": self.passed_over} if self.passed_over else {}
