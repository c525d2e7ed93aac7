"""What methods that rehearse along a stream share: a uniform memory of all that came, draws from it, a replayed loss."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from cglsuite import Method
from cglsuite.errors import NotApplicable
from cglsuite.learning import Reservoir
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.rehearsal.kept import both_losses, kept_as

__all__ = ["MEMORY", "Rehearsing", "Sampling"]

MEMORY = "memory"
"""The shelf of a memory that is one whole."""


class Rehearsing(Method):
    """A memory on one shelf, and draws from it.

    The capacity is the scenario's budget, or the setting ``memory`` where the scenario has none. Items are kept by reference where
    ``neighbourhood`` is set, else with what they consist of.
    """

    def setup(self) -> None:
        """Nothing is kept yet.

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
        """How much the memory may hold."""
        budget = self.memory.budget
        capacity: int = self.hyperparameters.memory if budget is None else budget
        return capacity

    def kept(self) -> MemoryItems | None:
        """Everything in memory; ``None`` where that is nothing."""
        return self.memory[MEMORY] if MEMORY in self.memory and len(self.memory[MEMORY]) else None

    def sampled(self, batch: Batch, chosen: Tensor) -> MemoryItems:
        """The items at positions ``chosen`` (int64 [m]) of a batch as they are kept."""
        return self.problem.sample(batch, chosen, kept_as(self))

    def before_batch(self, batch: Batch) -> None:
        """The draws of this step begin; each pass over the batch goes on with them."""
        self._generator = self.context.generator("draw")

    def drawn(self, n: int) -> MemoryItems | None:
        """``n`` items of the memory (all where it holds fewer), drawn uniformly without replacement; ``None`` without any."""
        items = self.kept()
        return None if items is None else items.draw(n, self._generator)

    def draw(self, batch: Batch, n: int) -> Batch | None:
        """:meth:`drawn` as a batch, in the graph of ``batch`` where items are kept by reference."""
        items = self.drawn(n)
        return None if items is None else self.problem.recall(items, batch)

    def replayed_loss(self, batch: Batch) -> Tensor:
        """``L + L_B`` on the batch and on as many items of the memory; ``L`` while that is empty."""
        replay = self.draw(batch, len(batch))
        if replay is None:
            return self.problem.loss(self.forward(batch), batch)
        current, replayed = both_losses(self, batch, replay)
        return current + replayed


def _of_the_reservoir(name: str) -> Any:
    return property(lambda method: getattr(method.reservoir, name), lambda method, value: setattr(method.reservoir, name, value))


class Sampling(Rehearsing):
    """A memory that at all times is a uniform sample of everything that has come: a :class:`cglsuite.learning.Reservoir`."""

    # The reservoir's state under names of its own, which checkpoints and fingerprints of these methods have always had.
    state: ClassVar[tuple[str, ...]] = ("priorities", "bar", "passed_over")
    priorities, bar, passed_over = (_of_the_reservoir(name) for name in state)

    def setup(self) -> None:
        """Nothing came yet."""
        super().setup()
        wanted = self.hyperparameters
        self.reservoir = Reservoir(
            self.context, capacity=wanted.memory, shelf=MEMORY, centres_only=wanted.get("centres_only", False), purpose="priorities"
        )

    def before_task(self, view: TaskView) -> None:
        """The draws of this task begin.

        Raises:
            NotApplicable: memory by reference is combined with views that do not keep earlier nodes.
        """
        self._generator = self.context.generator("draw")
        if (items := self.kept()) is not None:
            self.problem.recall(items.take(torch.arange(1)), view)

    def after_batch(self, batch: Batch) -> None:
        """Every item of the batch has its chance."""
        self.offer(batch)

    def after_task(self, view: TaskView) -> None:
        """Every training item of the task has its chance."""
        self.offer(view.train)

    def offer(self, batch: Batch) -> None:
        """Offer a labelled batch to the reservoir."""
        self.reservoir.offer(batch, kept_as(self))

    def counters(self) -> dict[str, int]:
        """Items that were passed over because they alone are larger than the memory, if there were any."""
        return {"passed_over": self.passed_over} if self.passed_over else {}
