"""Debiased lossless memory replay (DeLoMe): synthetic items that reproduce gradients, and a loss that accounts for rare classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from cglsuite import Method
from cglsuite.base.errors import BudgetError
from cglsuite.graphs import counted, uploaded
from cglsuite.learning import Phase
from cglsuite.problems import MemoryItems, Problem
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.rehearsal.condensed import equal_places, optimised, propagated
from cglsuite_methods.single_labels import check_single_labels

_RAREST = 1e-12


class DeLoMe(Method):
    """Learn a memory whose items reproduce the gradients of real ones, and replay it with a debiased loss (Niu et al., Graph Continual
    Learning with Debiased Lossless Memory Replay, ECAI 2024).

    For each class c, ``m_c`` synthetic items X_c without edges are learnt: ``per_class``, or fewer if a class has fewer items, and at most
    an equal share of the scenario's budget for every task and class. They start from random real items of the class. For weights W of an
    SGC that are redrawn for each of ``draws`` steps, they minimise

        Σ_c (m_c / max m) ‖ ∇_W L_c(S^k X_G) - ∇_W L_c(X_c) ‖²,

    with ``S = D^-1/2 (A + I) D^-1/2``, k = ``hops`` and L_c the mean cross-entropy of class c. The method then minimises ``L(C) + Σ_j
    L(M_j)`` over the task's items C and the synthetic items M_j of every earlier task, using the outputs ``z + τ log π``, where π_c is the
    share of class c in all of these items. Predictions use z.

    As in the authors' code: the feature learning rate, the number of synthetic items, the ReLU layer of the SGC (``hidden``; 0 = linear),
    squared distances, and one term per earlier task. Design choices: all neighbours instead of sampled ones, one step for all classes
    together, and no class weights in addition to π if the scenario has them.

    A backbone with batch norm receives items without edges here, as with every memory of features.

    Cost: ``draws`` passes of a two-layer network over the task's items per task; ``m_c`` vectors of F floats per class.
    """

    def setup(self) -> None:
        """Initialise without any synthetic items.

        Raises:
            NotApplicable: items have several labels, so that they do not fall into classes.
            BudgetError: the budget is too small for one item of each task.
        """
        check_single_labels(self, "delome condenses class by class")
        budget, n_tasks = self.memory.budget, self.context.n_tasks
        if budget is not None and budget < n_tasks:
            raise BudgetError(
                f"a budget of {budget} items (scenario.memory_budget) is less than one for each of {n_tasks} tasks; "
                f"expected at least {n_tasks}, or none for no limit"
            )
        self._replay: Batch | None = None
        self._shares: Tensor | None = None
        self._shift: Tensor | float = 0.0

    def before_task(self, view: TaskView) -> None:
        """Collect the memory of earlier tasks, and count the items of each class in the memory and the task."""
        counts = counted(self.problem.labels(view.train), self.problem.n_outputs)
        if self.memory:
            items = self.problem.join(self.memory.all())
            self._replay = self.problem.recall(items)
            self._shares = 1.0 / counted(items.tasks, self.context.n_tasks)[items.tasks]
            counts = counts + counted(items.y, self.problem.n_outputs)
        self._shift = self.hyperparameters.tau * log_prior(counts)

    def phases(self, view: TaskView) -> Iterator[Phase]:
        """Learn the synthetic items of the task, then train on the task."""
        items = self._start(view)
        recalled = self.problem.recall(items)
        x = nn.Parameter(self.problem.features(recalled).clone())
        real = propagated(view.train, self.hyperparameters.hops)
        classes, counts = items.y.unique(return_counts=True)
        own, rows = _members(self.problem.labels(view.train), classes), _members(items.y, classes)
        shares: Tensor = counts / counts.max()

        def distance(_: int) -> Tensor:
            weights = self._weights(real.shape[1])
            wanted = class_gradients(real, view.train, own, weights)
            given = class_gradients(x, recalled, rows, weights)
            gaps = [(a - b).square().sum(dim=(1, 2)) for a, b in zip(wanted, given, strict=True)]
            return (shares * torch.stack(gaps).sum(dim=0)).sum()

        steps, lr = self.hyperparameters.draws, self.hyperparameters.feature_lr
        yield optimised(x, distance, lr=lr, steps=steps, epochs=self.context.epochs)
        self.memory.put(f"task-{view.position}", replace(items, x=x.detach().cpu()))
        yield Phase()

    def _start(self, view: TaskView) -> MemoryItems:
        """Random items of each class of the task."""
        budget = self.memory.budget
        room = None if budget is None else budget // self.context.n_tasks
        y = self.problem.labels(view.train)
        classes, counts = y.unique(return_counts=True)
        draws = self.context.generator("items")
        chosen = []
        for c, places in zip(classes.tolist(), equal_places(counts.tolist(), room, self.hyperparameters.per_class), strict=True):
            members = (y == c).nonzero().flatten()
            chosen.append(members[uploaded(torch.randperm(len(members), generator=draws)[:places], members.device)])
        return self.problem.sample(view.train, torch.cat(chosen), "item")

    def _weights(self, n_features: int) -> list[Tensor]:
        """New random weights of the SGC, uniform within 1/√(inputs)."""
        draws = self.context.generator("draws")
        hidden: int = self.hyperparameters.hidden
        widths = [n_features, *([hidden] if hidden else []), self.problem.n_outputs]
        drawn = [(2 * torch.rand(a, b, generator=draws) - 1) / a**0.5 for a, b in pairwise(widths)]
        return [uploaded(w, self.problem.device) for w in drawn]

    def loss(self, batch: Batch) -> Tensor:
        """Return the debiased loss on the batch and on the synthetic items of every earlier task."""
        loss = self._debiased(batch).mean()
        if self._replay is not None and self._shares is not None:
            loss = loss + (self._shares * self._debiased(self._replay)).sum()
        return loss

    def _debiased(self, batch: Batch) -> Tensor:
        return self.problem.loss(self.forward(batch) + self._shift, batch, "none")

    def after_task(self, view: TaskView) -> None:
        """Reset the class prior of the task."""
        self._replay, self._shares, self._shift = None, None, 0.0


def class_gradients(x: Tensor, batch: Batch, members: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
    """Compute the gradient of the mean cross-entropy of each class with respect to the weights of an SGC without biases, ``x W`` or
    ``ReLU(x W_1) W_2``.

    With the errors ``E = softmax(z) - onehot(y)``, ``∂L_c/∂W_2 = mean_c h e^T`` and ``∂L_c/∂W_1 = mean_c x ((W_2 e) ⊙ [h > 0])^T``: closed
    forms, so that they can be differentiated in ``x`` without a second backward pass.

    Args:
        x: propagated features of the batch's items, float32 [n, F]. batch: says their labels and which outputs compete.
        members: positions of the items of each class, int64 [n_c].
        weights: W, float32 [F, C]; or W_1 [F, h] and W_2 [h, C].

    Returns:
        One tensor per weight, with a row per class: float32 [K, F, C]; or [K, F, h] and [K, h, C].
    """
    hidden = functional.relu(x @ weights[0]) if len(weights) > 1 else x
    outputs = (hidden @ weights[-1]).masked_fill(~batch.allowed, -torch.inf)
    right = Problem.labels(batch)[:, None] == torch.arange(outputs.shape[1], device=x.device)
    errors = functional.softmax(outputs, dim=1) - right.float()
    flows = [(hidden, errors)]
    if len(weights) > 1:
        flows.insert(0, (x, (errors @ weights[-1].T) * (hidden > 0)))
    return [torch.stack([a[own].T @ b[own] / len(own) for own in members]) for a, b in flows]


def log_prior(counts: Tensor) -> Tensor:
    """Compute the logarithm of each class's share of ``counts`` (int64 [C]): float32 [C]. For a class without items, the share is taken as
    1e-12.
    """
    shares = counts / counts.sum()
    return shares.clamp(min=_RAREST).log()


def _members(y: Tensor, classes: Tensor) -> list[Tensor]:
    """The positions of the items of each class: int64 [n_c]."""
    return [(y == c).nonzero().flatten() for c in classes]
