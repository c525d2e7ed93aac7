"""Reservoir sampling into the metered memory. Importing it does not import torch, which keeps listing one-module plugins fast."""

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
    """Keep a uniform random sample of all offered items on one shelf of the metered memory.

    At any time, every subset of the sample's size is equally likely, however the items were split into batches. The result is distributed
    as in Vitter's Algorithm R (ACM Transactions on Mathematical Software, 1985): a reservoir of capacity k stores the t-th item with
    probability k / t, replacing a random item. To support batches and items of different sizes, it draws a priority u ~ U(0, 1) for each
    item and stores the items with the lowest priorities that fit. Whatever an item's size, its chance of being stored then does not depend
    on when it arrived. Rejected items never return, so in addition to the stored items' priorities, only the lowest rejected priority is
    kept (``bar``).

    List it in the method's ``state`` and create it in ``setup``::

        state = ("reservoir",)

        def setup(self):
            self.reservoir = Reservoir(self.context, capacity=200)

        def after_batch(self, batch):
            self.reservoir.offer(batch)

    Args:
        context: the method's context, with its memory, adapter and random generators.
        capacity: the maximum number of items, unless the scenario sets a budget (``scenario.memory_budget``), which then replaces it. An
            item stored with its surroundings counts as its number of nodes. If several reservoirs share a budget, set the attribute
            ``capacity`` of each before the first offer.
        shelf: the memory shelf on which the items are stored.
        centres_only: count an item stored with its surroundings as one, as some benchmarks do.
        purpose: the purpose of the generator that draws priorities (see :class:`cglsuite.learning.MethodContext`).
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
        """The lowest priority rejected so far."""
        self.passed_over = 0
        """The number of items rejected because they are larger than the whole capacity."""
        self._context = context

    def __len__(self) -> int:
        return len(self._context.memory[self.shelf]) if self.shelf in self._context.memory else 0

    @property
    def items(self) -> MemoryItems | None:
        """All stored items, or ``None`` if the reservoir is empty."""
        return self._context.memory[self.shelf] if len(self) else None

    def offer(
        self,
        batch: Batch,
        kind: Literal["reference", "item"] = "item",
        surroundings: Surroundings | None = None,
        *,
        extra: Mapping[str, Tensor] | Callable[[MemoryItems], Mapping[str, Tensor]] | None = None,
    ) -> None:
        """Offer all items of a labelled batch to the reservoir. Each item of a stream must be offered only once.

        Args:
            kind, surroundings: how items are stored; see :meth:`cglsuite.problems.Problem.sample`.
            extra: dense tensors to store with the items, by name, with one row per item of the batch. If they are costly or depend on how
                items are stored, pass a function that maps the items about to be stored to tensors with one row per stored item. It is
                called without gradients.
        """
        import torch

        problem, memory = self._context.problem, self._context.memory
        drawn = torch.rand(len(batch), dtype=torch.float64, generator=self._context.generator(self.purpose))
        chosen, bar = (drawn < self.bar).nonzero().flatten(), self.bar
        if surroundings is None and self.capacity:  # each item counts as one: do not copy items that would be rejected
            stays, lowest_refused = keep_lowest(drawn[chosen], torch.ones_like(chosen), self.capacity)
            chosen, bar = chosen[stays], min(bar, lowest_refused)
        if not chosen.numel():
            return
        items = problem.sample(batch, chosen, kind, surroundings, extra=None if callable(extra) else extra)
        fits = (self._charges(items.sizes) <= self.capacity).nonzero().flatten()  # larger items would block all later ones
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
        """Return how much of the budget items of these sizes (int64 [n]) use."""
        return sizes.new_ones(len(sizes)) if self.centres_only else sizes

    def draw(self, n: int, purpose: str = "draw") -> MemoryItems | None:
        """Draw ``n`` stored items (or all, if there are fewer) uniformly without replacement. Return ``None`` if the reservoir is empty.

        Args:
            purpose: the generator's purpose. Within a task (task-free: within a batch), calls with the same purpose continue the same
                random sequence.
        """
        items = self.items
        return None if items is None else items.draw(n, self._context.generator(purpose))

    def state(self) -> dict[str, Any]:
        """Return the state to save in checkpoints, without the items, which are part of the memory's state."""
        return {"priorities": self.priorities, "bar": self.bar, "passed_over": self.passed_over}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the reservoir from :meth:`state`."""
        self.priorities, self.bar, self.passed_over = state["priorities"], state["bar"], state["passed_over"]


def keep_lowest(priorities: Tensor, sizes: Tensor, room: int) -> tuple[Tensor, float]:
    """Select as many items as fit in ``room``, in ascending order of priority, stopping at the first that does not fit.

    Args:
        priorities: float64 [n]. sizes: int64 [n].

    Returns:
        The ascending positions of the selected items, int64 [m], and the lowest priority of the rejected items (1 if there are none).
    """
    order = priorities.argsort(stable=True)
    fits = sizes[order].cumsum(0) <= room
    refused = priorities[order[~fits]]
    return order[fits].sort().values, float(refused[0]) if refused.numel() else 1.0
