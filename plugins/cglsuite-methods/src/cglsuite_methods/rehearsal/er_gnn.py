"""Experience replay for graph neural networks (ER-GNN), with all samplers of the paper."""

from __future__ import annotations

import torch
from torch import Tensor

from cglsuite import Method
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.rehearsal.replay_items import both_losses, kept_as


class ERGNN(Method):
    """Minimise ``β L + (1 - β) L_B`` with ``β = |B| / (|B| + n)``, where the memory holds ``per_class`` nodes of each class (Zhou & Cao
    2021).

    Samplers: ``mf`` selects the nodes nearest to the class mean of the features; ``cm`` selects those with the fewest nodes of other
    classes within distance d; ``mf+`` and ``cm+`` use embeddings instead; ``random`` draws uniformly. Replayed nodes have no edges.

    As benchmarked by BeGin: ``swap_weights`` (``(1 - β) L + β L_B``) and ``neighbourhood`` (replayed nodes are embedded in the current
    graph).
    """

    def setup(self) -> None:
        """Initialise the replay batch."""
        self._replay: Batch | None = None

    def before_task(self, view: TaskView) -> None:
        """Collect the memory into one batch, which stays fixed during a task."""
        items = self.memory.all()
        self._replay = self.problem.recall(self.problem.join(items), view) if items else None

    def loss(self, batch: Batch) -> Tensor:
        """Return the weighted sum of the losses on the task and the memory."""
        if self._replay is None:
            return super().loss(batch)
        beta = len(self._replay) / (len(self._replay) + len(batch))
        if self.hyperparameters.swap_weights:
            beta = 1 - beta
        current, replayed = both_losses(self, batch, self._replay)
        return beta * current + (1 - beta) * replayed

    def after_task(self, view: TaskView) -> None:
        """Select nodes of the task to store, one class at a time."""
        self._replay = None
        batch = self.problem.batch([view])
        points = self._points(batch)
        for c in view.classes.tolist():
            own = self.problem.has_output(batch, c)
            if bool(own.any()):  # a domain or a year may lack a class
                chosen = self._choose(points, own, c)
                self.memory.put(f"task-{view.position}-class-{c}", self.problem.sample(batch, chosen, kept_as(self)))

    def _points(self, batch: Batch) -> Tensor:
        """The space of distances: input features, or embeddings for the + samplers."""
        if self.hyperparameters.sampler == "random":
            return torch.empty(len(batch), 0)
        if self.hyperparameters.sampler.endswith("+"):
            with torch.no_grad():
                return self.problem.embed(self.model, batch)
        return self.problem.features(batch)

    def _choose(self, points: Tensor, own: Tensor, c: int) -> Tensor:
        """Positions (int64 [≤ per_class]) of the nodes of class ``c`` (bool [n] ``own``) to store."""
        members = own.nonzero().flatten()
        budget = min(self.hyperparameters.per_class, members.numel())
        generator = self.context.generator(f"sample class {c}")
        shuffled = members[torch.randperm(members.numel(), generator=generator)]
        if self.hyperparameters.sampler == "random":
            return shuffled[:budget]
        if self.hyperparameters.sampler.startswith("mf"):
            return mean_of_feature(points, members, budget)
        candidates = shuffled[: self.hyperparameters.candidates]
        return coverage_maximization(points, ~own, candidates, budget, self.hyperparameters.distance)


def mean_of_feature(points: Tensor, members: Tensor, budget: int) -> Tensor:
    """Return the ``budget`` members (int64 [m]) nearest to their mean in ``points`` (float32 [n, d]). Ties go to the lower position."""
    own = points[members]
    distance = (own - own.mean(dim=0)).norm(dim=1)
    return members[distance.argsort(stable=True)[:budget]]


def coverage_maximization(points: Tensor, other: Tensor, candidates: Tensor, budget: int, distance: float) -> Tensor:
    """Return the ``budget`` candidates (int64 [m]) that have the fewest items of other classes (bool [n] ``other``) within ``distance``."""
    others = points[other]
    if others.shape[0] == 0:
        return candidates[:budget]
    crowd = (torch.cdist(points[candidates], others) < distance).sum(dim=1)
    return candidates[crowd.argsort(stable=True)[:budget]]
