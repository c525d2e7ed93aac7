"""Topology-aware embedding memory: a network that needs no edges after feature propagation, and a memory of propagated features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from cglsuite import Method
from cglsuite.base.errors import BudgetError
from cglsuite.graphs import MessageGraph, counted, uploaded
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.rehearsal.condensed import equal_places, propagated
from cglsuite_methods.single_labels import check_single_labels

_COLUMNS = 512
"""Nodes whose reach is counted at a time: N times as many floats are held."""


class PDGNNsTEM(Method):
    """Store propagated features of nodes in place of their neighbourhoods (Zhang, Song, Chen, Tao: Topology-aware Embedding Memory for
    Continual Learning on Expanding Networks, KDD 2024).

    Features are propagated without parameters, as in APPNP: ``H_0 = X, H_{j+1} = (1 - α) S H_j + α X`` with ``S = D^-1/2 (A + I) D^-1/2``,
    k = ``hops`` steps and α = ``restart``. A two-layer network without biases, ``ReLU(H_k W_1) W_2`` of width ``width``, is then trained;
    the cell's backbone is not used. A stored row of H_k summarises the neighbourhood of its node in F numbers, regardless of the degree.

    For each class, ``per_class`` rows are stored, or fewer if the class has fewer items, and at most an equal share of the scenario's
    budget for every task. They are drawn at the start of the task, without replacement. ``sampler`` sets their probabilities, which are
    proportional to the in-degree with the self-loop (the default in the authors' code), proportional to the coverage (the number of nodes
    within k hops that a row depends on), or uniform. In class-IL, the loss is the mean over the task's items and all stored rows of earlier
    tasks; in task-IL, it is the sum of the tasks' means, each among the task's own outputs.

    The authors' code differs in two ways. With ``as_authors``, class-IL also replays the rows that the current task has just stored, from
    the task's second epoch, next to the same items. The code also weights classes by 1 / (number of items) in every loss, whereas here the
    scenario decides this (``training.class_balanced``). Its protocol: 200 epochs, Adam with rate .005 and weight decay 5e-4.

    Cost: k + 1 propagations of X per task and query, then steps of a network without edges; F floats per stored row, which count towards
    the bytes of the memory.
    """

    state = ("weights",)

    def setup(self) -> None:
        """Freeze the backbone. The weights are created later, because their shape depends on the features.

        Raises:
            NotApplicable: items have several labels, so that they do not fall into classes.
            BudgetError: the budget is too small for one row of each task.
        """
        check_single_labels(self, "pdgnns-tem stores rows class by class")
        budget, n_tasks = self.memory.budget, self.context.n_tasks
        if budget is not None and budget < n_tasks:
            raise BudgetError(
                f"a budget of {budget} items (scenario.memory_budget) is too small for {n_tasks} tasks; expected at least {n_tasks}"
            )
        self.model.requires_grad_(False)
        self.weights: list[Tensor] = []
        """W_1 and W_2: float32 [F, width] and [width, C]."""
        self._known: tuple[Batch, Tensor] | None = None
        self._earlier: list[MemoryItems] = []
        self._own: MemoryItems | None = None
        self._epoch = 0

    # --- the network ------------------------------------------------------------------------------------------------------------

    def _rows(self, batch: Batch) -> Tensor:
        """Propagated features of the batch's nodes: float32 [n, F]; those of the batch last asked for are not computed again."""
        if self._known is None or self._known[0] is not batch:
            k, restart = self.hyperparameters.hops, self.hyperparameters.restart
            parts = [restart * (1 - restart) ** j for j in range(k)] + [(1 - restart) ** k]
            rows = sum((part * propagated(batch, j) for j, part in enumerate(parts)), start=torch.zeros((), device=batch.ids.device))
            if not torch.is_grad_enabled():
                return rows
            self._known = batch, rows
        return self._known[1]

    def _outputs(self, rows: Tensor) -> Tensor:
        return functional.relu(rows @ self.weights[0]) @ self.weights[1]

    def forward(self, batch: Batch) -> Tensor:
        """Return the raw outputs of the nodes in the batch: float32 [n, C]; all are 0 before the first task."""
        if not self.weights:
            return torch.zeros(len(batch), self.problem.n_outputs, device=self.problem.device)
        return self._outputs(self._rows(batch))

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        """Return the weights of both layers."""
        yield {"params": self.weights}

    # --- a task -----------------------------------------------------------------------------------------------------------------

    def before_task(self, view: TaskView) -> None:
        """Initialise the weights before the first task, and store feature rows of the task."""
        rows = self._rows(view.train)
        weights = self.weights or self._drawn(rows.shape[1])
        self.weights = [nn.Parameter(weight.detach().clone()) for weight in weights]
        self._earlier = self.memory.all()
        chosen = self._chosen(view)
        self._own = replace(self.problem.sample(view.train, chosen, "reference"), x=rows[uploaded(chosen, rows.device)].cpu())
        self.memory.put(f"task-{view.position}", self._own)

    def _drawn(self, n_features: int) -> list[Tensor]:
        """New weights, uniform within 1/√(inputs)."""
        draws, widths = self.context.generator("weights"), [n_features, self.hyperparameters.width, self.problem.n_outputs]
        shapes = pairwise(widths)
        return [uploaded((2 * torch.rand(*shape, generator=draws) - 1) / shape[0] ** 0.5, self.problem.device) for shape in shapes]

    def _chosen(self, view: TaskView) -> Tensor:
        """Positions of the items to store: int64 [m], class by class."""
        budget = self.memory.budget
        room = None if budget is None else budget // self.context.n_tasks
        y, draws = self.problem.labels(view.train).cpu(), self.context.generator("items")
        classes, counts = y.unique(return_counts=True)
        weight = self._weight(view.train).cpu()
        chosen = []
        for c, places in zip(classes.tolist(), equal_places(counts.tolist(), room, self.hyperparameters.per_class), strict=True):
            members = (y == c).nonzero().flatten()
            if places:
                chosen.append(members[torch.multinomial(weight[members], places, generator=draws)])
        return torch.cat(chosen)

    def _weight(self, batch: Batch) -> Tensor:
        """What the probability of an item is in proportion to: float32 [n], positive."""
        if self.hyperparameters.sampler == "uniform":
            return torch.ones(len(batch))
        if self.hyperparameters.sampler == "degree":
            return counted(batch.graph.edges_with_loops[1], batch.graph.n_nodes)[batch.ids].float()
        return coverage(batch.graph, self.hyperparameters.hops)[batch.ids]

    def before_epoch(self, epoch: int) -> None:
        """Track the epoch of the task."""
        self._epoch = epoch

    def loss(self, batch: Batch) -> Tensor:
        """Return the loss on the batch and the stored rows."""
        rows, replayed = self._rows(batch), list(self._earlier)
        if self.problem.task_ids:
            losses = [self.problem.loss(self._outputs(self._stored(items)), self.problem.recall(items)) for items in replayed]
            return sum(losses, start=self.problem.loss(self._outputs(rows), batch))
        if self.hyperparameters.as_authors and self._epoch and self._own is not None:
            replayed.append(self._own)
        joined = replace(
            batch,
            ids=torch.cat([batch.ids, *(items.ids for items in replayed)]),
            y=torch.cat([self.problem.labels(batch), *(items.y for items in replayed)]),
            tasks=None,
            cache={},
        )
        return self.problem.loss(self._outputs(torch.cat([rows, *map(self._stored, replayed)])), joined)

    def _stored(self, items: MemoryItems) -> Tensor:
        stored: Any = items.x
        return uploaded(stored, self.problem.device)

    def after_task(self, view: TaskView) -> None:
        """Discard the state that belongs to the task."""
        self._known, self._own, self._earlier = None, None, []


def coverage(graph: MessageGraph, hops: int) -> Tensor:
    """Count the nodes from which a message reaches each node within ``hops`` hops, including the node itself: float32 [N]."""
    reached = torch.zeros(graph.n_nodes, device=graph.device)
    for columns in torch.arange(graph.n_nodes, device=graph.device).split(_COLUMNS):
        hidden = torch.zeros(graph.n_nodes, len(columns), device=graph.device)
        hidden[columns, torch.arange(len(columns), device=graph.device)] = 1.0
        for _ in range(hops):
            hidden = (graph.propagate("sum-self", hidden) > 0).float()
        reached += hidden.sum(dim=1)
    return reached
