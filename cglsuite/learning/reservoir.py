"""A uniform sample of a stream, in a metered memory. Importing it imports no torch, so that a one-module plugin lists quickly."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

    from cglsuite.learning.method import MethodContext
    from cglsuite.problems import MemoryItems
    from cglsuite.problems.base import Surroundings
    from cglsuite.streams import Batch


class Reservoir:
    """A uniform sample of all offered items, on one shelf of the metered memory.

    At any time every subset of its size is equally likely, however the items were cut into batches. Items are kept and replaced as by
    Vitter's Algorithm R (ACM Transactions on Mathematical Software, 1985): of capacity k it keeps the t-th item with probability k / t, in
    place of a random one. To work in batches and with items of different sizes it draws a priority u ~ U(0, 1) for each item and holds the
    longest run of lowest priorities that fits. An item's chance then does not depend on when it came, whatever its size. Items that were
    refused never return, so besides the priorities only the lowest refused one is remembered, ``bar``.

    List it in the method's ``state`` and create it in ``setup``::

        state = ("reservoir",)

        def setup(self):
            self.reservoir = Reservoir(self.context, capacity=200)

        def after_batch(self, batch):
            self.reservoir.offer(batch)

    Args:
        context: of the method: its memory, its adapter and its random generators.
        capacity: most items to hold where the scenario sets no budget (``scenario.memory_budget``); where it does, the budget. Items that
            are kept with their surroundings count as many as these have nodes. Several reservoirs share a budget: set the attribute
            ``capacity`` of each before the first offer.
        shelf: where in the memory the items are.
        centres_only: count items kept with their surroundings as one, as some benchmarks do.
        purpose: of the generator that draws priorities (see :class:`cglsuite.learning.MethodContext`).
    """

    def __init__(
        self, context: MethodContext, *, capacity: int, shelf: str = "memory", centres_only: bool = False, purpose: str = "reservoir"
    ) -> None:
        import torch

        budget = context.memory.budget
        self.capacity = capacity if budget is None else budget
        self.shelf, self.centres_only, self.purpose = shelf, centres_only, purpose
        self.priorities = torch.empty(0, dtype=torch.float64)
        """float64 [n], in the order of the items."""
        self.bar = 1.0
        """The lowest priority that was refused so far."""
        self.passed_over = 0
        """The number of items refused because each alone is larger than the capacity."""
        self._context = context

    def __len__(self) -> int:
        return len(self._context.memory[self.shelf]) if self.shelf in self._context.memory else 0

    @property
    def items(self) -> MemoryItems | None:
        """All stored items; ``None`` if there are none."""
        return self._context.memory[self.shelf] if len(self) else None

    def offer(
        self,
        batch: Batch,
        kind: Literal["reference", "item"] = "item",
        surroundings: Surroundings | None = None,
        *,
        extra: Mapping[str, Tensor] | Callable[[MemoryItems], Mapping[str, Tensor]] | None = None,
    ) -> None:
        """Offer every item of a labelled batch to the reservoir.

        Offer each item of a stream once.

        Args:
            kind, surroundings: how items are kept, see :meth:`cglsuite.problems.Problem.sample`.
            extra: what to keep of each item besides, by name: dense tensors with one row per item of the batch; or a function from the
                items about to be kept to tensors with one row per item of those, for what is costly or depends on how items are kept. It
                is called without gradients.
        """
        import torch

        problem, memory = self._context.problem, self._context.memory
        drawn = torch.rand(len(batch), dtype=torch.float64, generator=self._context.generator(self.purpose))
        chosen, bar = (drawn < self.bar).nonzero().flatten(), self.bar
        if surroundings is None and self.capacity:  # every item costs one: do not copy items that cannot stay
            stays, lowest_refused = keep_lowest(drawn[chosen], torch.ones_like(chosen), self.capacity)
            chosen, bar = chosen[stays], min(bar, lowest_refused)
        if not chosen.numel():
            return
        items = problem.sample(batch, chosen, kind, surroundings, extra=None if callable(extra) else extra)
        fits = (self._charges(items.sizes) <= self.capacity).nonzero().flatten()  # larger ones would block the run forever
        passed_over, items = len(items) - len(fits), items.take(fits)
        if callable(extra):
            with torch.no_grad():
                rows = extra(items)
            items = replace(items, extra={name: kept.detach().to(items.ids.device) for name, kept in rows.items()})
        before = self.items
        pool = items if before is None else problem.join([before, items])
        everyone = torch.cat([self.priorities.cpu(), drawn[chosen][fits]])
        stays, lowest_refused = keep_lowest(everyone, self._charges(pool.sizes), self.capacity)
        memory.put(self.shelf, pool.take(stays), surroundings_free=self.centres_only)
        self.priorities, self.bar = everyone[stays], min(bar, lowest_refused)
        self.passed_over += passed_over

    def _charges(self, sizes: Tensor) -> Tensor:
        """The budget cost of items of these sizes (int64 [n])."""
        return sizes.new_ones(len(sizes)) if self.centres_only else sizes

    def draw(self, n: int, purpose: str = "draw") -> MemoryItems | None:
        """``n`` stored items (or all if there are fewer), uniformly without replacement; ``None`` if the reservoir is empty.

        Args:
            purpose: of the generator; draws of one purpose continue from call to call within a task (task-free: within a batch).
        """
        items = self.items
        return None if items is None else items.draw(n, self._context.generator(purpose))

    def state(self) -> dict[str, Any]:
        """The state for checkpoints; the items are part of the memory's state."""
        return {"priorities": self.priorities, "bar": self.bar, "passed_over": self.passed_over}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore :meth:`state`."""
        self.priorities, self.bar, self.passed_over = state["priorities"], state["bar"], state["passed_over"]


def keep_lowest(priorities: Tensor, sizes: Tensor, room: int) -> tuple[Tensor, float]:
    """Select the longest run of items, in ascending order of priority, whose sizes sum to at most ``room``.

    Args:
        priorities: float64 [n]. sizes: int64 [n].

    Returns:
        Their positions, int64 [m], ascending; and the lowest priority of the others (1 where all stay).
    """
    order = priorities.argsort(stable=True)
    fits = sizes[order].cumsum(0) <= room
    refused = priorities[order[~fits]]
    return order[fits].sort().values, float(refused[0]) if refused.numel() else 1.0
