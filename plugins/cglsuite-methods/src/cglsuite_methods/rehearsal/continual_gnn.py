"""ContinualGNN: replay a class-proportional memory and the old items most affected by new data, with an EWC penalty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from cglsuite.problems import MemoryItems
from cglsuite.streams import TaskView
from cglsuite_methods.regularisation.ewc import EWC
from cglsuite_methods.rehearsal.replay_items import kept_as, with_replayed


class ContinualGNN(EWC):
    """Minimise ``mean over C ∪ B of ℓ + λ Σ_s Σ_i F_s,i (θ_i - θ*_s,i)²`` over the current items C and the replayed items B (Wang et al.
    2020).

    The memory stores ``memory`` training items of past tasks (at most the scenario's budget), in proportion to the size of every class of
    every task and uniformly within each class. Each task replays ``replayed`` of them: a share of ``changed_share`` whose embeddings
    changed most through new data, and the rest drawn uniformly.

    The change of an item is the distance between its embeddings in the last task's graph and in the new graph, both computed with the final
    weights of the last task. The paper approximates this by diffusing changes over two hops, which is the reach of two convolutions. Only
    stored items are compared, because only their labels may be used. If the old nodes are not in the new graph (edge policy `none`) or the
    graph does not grow (`full`), nothing changes and all items are drawn uniformly.

    Items are stored with their features and replayed without edges or, with ``neighbourhood``, embedded in the current graph.

    As benchmarked by BeGin: ``without_ewc`` (no penalty).
    """

    state = (*EWC.state, "sizes", "embedded")

    def setup(self) -> None:
        """Initialise the memory."""
        super().setup()
        self.sizes: dict[str, int] = {}
        self.embedded = torch.empty(0, 0, device=self.problem.device)

    def training_views(self, view: TaskView) -> Sequence[TaskView]:
        """Return the task's view with the replayed items added to its training items. Validation items are unchanged."""
        if len(self.memory) == 0:
            return (view,)
        items = self.problem.join(self.memory.all())
        return (with_replayed(self, view, items.take(self._choose(items, view))),)

    def _choose(self, items: MemoryItems, view: TaskView) -> Tensor:
        """Positions in memory of the items to replay: int64 [≤ replayed]."""
        wanted = min(self.hyperparameters.replayed, len(items))
        changed = most_changed(self.embedded, self._embed(items, view), int(self.hyperparameters.changed_share * wanted))
        order = torch.randperm(len(items), generator=self.context.generator("replay")).to(changed.device)
        drawn = order[~torch.isin(order, changed)]
        return torch.cat([changed, drawn[: wanted - changed.numel()]])

    @torch.no_grad()
    def _embed(self, items: MemoryItems, view: TaskView) -> Tensor:
        """Embeddings of the items in the view's graph, in evaluation mode: float32 [n, d]; [0, 0] if they are not in it."""
        if not view.keeps_nodes or len(items) == 0:
            return torch.empty(0, 0, device=self.problem.device)
        training = self.model.training
        self.model.eval()
        embedded = self.problem.embed(self.model, self.problem.recall(replace(items, x=None), view))
        self.model.train(training)
        return embedded

    def after_task(self, view: TaskView) -> None:
        """Update the penalty and the memory, and store the current embeddings of the memory items."""
        if not self.hyperparameters.without_ewc:
            super().after_task(view)
        self._remember(view)
        self.embedded = self._embed(self.problem.join(self.memory.all()), view)

    def _remember(self, view: TaskView) -> None:
        """Resize the share of every class of every task. Shelves are in random order, so that each remains a uniform sample."""
        arriving = self._by_class(view)
        self.sizes |= {shelf: chosen.numel() for shelf, chosen in arriving.items()}
        room = self.hyperparameters.memory if self.memory.budget is None else min(self.hyperparameters.memory, self.memory.budget)
        shares = dict(zip(self.sizes, proportional(list(self.sizes.values()), room), strict=True))
        for shelf in list(self.memory):
            self._shorten(shelf, shares[shelf])
        for shelf, chosen in arriving.items():
            if shares[shelf]:
                self.memory.put(shelf, self.problem.sample(view.train, chosen[: shares[shelf]], kept_as(self)))

    def _shorten(self, shelf: str, length: int) -> None:
        items = self.memory[shelf]
        if length == 0:
            self.memory.drop(shelf)
        elif length < len(items):
            self.memory.put(shelf, items.take(torch.arange(length, device=items.ids.device)))

    def _by_class(self, view: TaskView) -> dict[str, Tensor]:
        """Positions of the training items by shelf, in random order. A multi-label item counts for its first label, an unlabelled one for
        none."""
        left = torch.ones(len(view.train), dtype=torch.bool, device=self.problem.device)
        out: dict[str, Tensor] = {}
        for c in view.task_outputs.nonzero().flatten().tolist():
            own = left & self.problem.has_output(view.train, c)
            left &= ~own
            self._shelve(out, f"task-{view.position}-class-{c}", own)
        self._shelve(out, f"task-{view.position}-class-none", left)
        return out

    def _shelve(self, out: dict[str, Tensor], shelf: str, own: Tensor) -> None:
        members = own.nonzero().flatten()
        if members.numel():
            order = torch.randperm(members.numel(), generator=self.context.generator(f"shuffle {shelf}"))
            out[shelf] = members[order.to(members.device)]


def most_changed(before: Tensor, now: Tensor, n: int) -> Tensor:
    """Return the positions (int64 [≤ n]) of the rows that differ most between ``before`` and ``now`` (float32 [m, d]), most changed first.
    Ties go to the lower position. Rows that differ only by rounding are excluded; the result is empty if the two cannot be compared.
    """
    if before.shape != now.shape or now.numel() == 0:
        return torch.empty(0, dtype=torch.int64, device=now.device)
    change = (now - before).norm(dim=1)
    order = change.argsort(descending=True, stable=True)
    chosen: Tensor = order[change[order] > 1e-5 * before.norm(dim=1)[order]][:n]
    return chosen


def proportional(sizes: Sequence[int], budget: int) -> list[int]:
    """Divide ``budget`` among groups in proportion to ``sizes`` by the largest-remainder method. If the budget suffices, every group gets
    its full size.
    """
    total = sum(sizes)
    if total <= budget:
        return list(sizes)
    places = [budget * size // total for size in sizes]
    by_fraction = sorted(range(len(sizes)), key=lambda i: (-(budget * sizes[i] % total), i))
    for i in by_fraction[: budget - sum(places)]:
        places[i] += 1
    return places
