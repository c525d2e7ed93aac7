"""iCaRL: exemplars chosen by herding, nearest-mean-of-exemplars classification, and distillation of old outputs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from cglsuite.base.errors import BudgetError
from cglsuite.graphs import counted
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.regularisation.lwf import LwF
from cglsuite_methods.rehearsal.replay_items import kept_as, with_replayed
from cglsuite_methods.single_labels import check_single_labels

_FURTHEST = 4.0  # the largest squared distance of two points of the unit ball


class ICaRL(LwF):
    """Train with stored exemplars and distillation, and predict the class with the nearest mean of exemplars (Rebuffi et al., iCaRL:
    Incremental Classifier and Representation Learning, CVPR 2017).

    With logits ``z_c``, the loss of an item is a sum of binary cross-entropies,

        Σ_{c of the task} BCE(σ(z_c), [y = c]) + Σ_{c of earlier tasks} BCE(σ(z_c), σ(z'_c)),

    where z' are the logits of the model before the task. Items are those of the task and all exemplars, in the same batches. Each of the m
    classes so far has ``⌊k / m⌋`` of the k places in the memory: exemplars of earlier classes are dropped from the end of their order, and
    those of new classes are chosen one at a time so that their mean stays closest to the mean of all training items of the class
    (:func:`herded`). Embeddings h of the backbone's body and their means have unit length. The output for an item is ``-‖h - μ_c‖²``, where
    μ_c is the mean over the exemplars of class c; a class without exemplars has the lowest output, -4.

    Left open by the paper and decided here:

    - Exemplars on graphs. An exemplar is chosen by its embedding in the task's graph. It is stored with its features and seen without edges
      later, also in the means; with ``neighbourhood`` it is stored by reference and embedded in the current graph.
    - Classes that return (domain- and time-IL). They are learnt from labels like new ones. Their earlier exemplars are candidates beside
      the new items and stand for all items of the class so far.
    - Task-IL. Labels are learnt among the outputs of an item's own task.
    - The mean over items, weighted by class where the protocol balances classes. An item is an exemplar once at most.
    - Validation loss or performance, where the protocol monitors them, is that of the logits: new classes have no exemplars yet.

    Cost: one pass of the old model per batch; k items, a copy of the model and one vector per class.
    """

    state = (*LwF.state, "means", "counts")  # type: ignore[assignment]

    def setup(self) -> None:
        """Initialise without any exemplars or means.

        Raises:
            NotApplicable: items do not have a single class each.
            BudgetError: there is less than one place per class.
        """
        super().setup()
        check_single_labels(self, "icarl keeps exemplars of classes")
        budget, n = self.memory.budget, self.problem.n_outputs
        self.capacity: int = self.hyperparameters.memory if budget is None else budget
        if self.capacity < n:
            name = "method.memory" if budget is None else "scenario.memory_budget"
            raise BudgetError(f"icarl: {name} = {self.capacity} is less than one exemplar for each of {n} classes; expected at least {n}")
        self.means: list[Tensor] = []
        """Once there are exemplars, their mean embedding by class, of unit length: float32 [C, d]."""
        self.counts = torch.zeros(n, device=self.problem.device)
        """Training items of each class so far: float32 [C]."""
        self._learnt = torch.ones(n, dtype=torch.bool, device=self.problem.device)
        self._distilled = ~self._learnt

    def before_task(self, view: TaskView) -> None:
        """Select the outputs to learn from labels and those to distil: bool [C] each."""
        self._learnt = view.task_outputs
        past = torch.stack(self.past).any(dim=0) if self.past else torch.zeros_like(self._learnt)
        self._distilled = past & ~self._learnt

    def training_views(self, view: TaskView) -> Sequence[TaskView]:
        """Return the task's view with the exemplars added to its training items. Validation items are unchanged."""
        kept = self.memory.all()
        return (with_replayed(self, view, self.problem.join(kept)) if kept else view,)

    def loss(self, batch: Batch) -> Tensor:
        """Return the binary cross-entropy with the labels and with the outputs of the old model."""
        outputs, y = self.forward(batch), self.problem.labels(batch)
        targets = (y.unsqueeze(1) == torch.arange(outputs.shape[1], device=y.device)).to(outputs.dtype)
        if self.teacher is not None:
            targets = torch.where(self._distilled, torch.sigmoid(self._answers(self.teacher, batch)), targets)
        each = functional.binary_cross_entropy_with_logits(outputs, targets, reduction="none")
        losses = (each * (self._learnt & batch.allowed | self._distilled)).sum(dim=1)
        if not self.problem.class_balanced:
            return losses.mean()
        weights = 1.0 / counted(y, outputs.shape[1])[y]
        return (weights * losses).sum() / weights.sum()

    def after_task(self, view: TaskView) -> None:
        """Keep the model as the next teacher, free memory for new classes, and select exemplars."""
        super().after_task(view)
        self._keep(view)
        self._average(view)

    @torch.no_grad()
    def _keep(self, view: TaskView) -> None:
        y = self.problem.labels(view.train)
        classes = y.unique().tolist()
        places = self.capacity // len({*self.memory, *map(_shelf, classes)})
        for shelf in list(self.memory):
            items = self.memory[shelf]
            if len(items) > places:
                self.memory.put(shelf, items.take(torch.arange(places)))
        embedded = self._embedded(view.train)
        for c in classes:
            self.memory.put(_shelf(c), self._exemplars(view, c, (y == c).nonzero().flatten(), embedded, places))
        self.counts = self.counts + counted(y, len(self.counts)).to(self.counts.dtype)

    def _exemplars(self, view: TaskView, c: int, members: Tensor, embedded: Tensor, places: int) -> MemoryItems:
        """The exemplars of class ``c``, whose training items are at positions ``members`` (int64 [n]), in herding order."""
        new = embedded[members]
        if _shelf(c) not in self.memory:
            order = herded(new, new.sum(dim=0), places)
            return self.problem.sample(view.train, members[order], kept_as(self))
        old = self.memory[_shelf(c)]
        before = self._embedded(self.problem.recall(old, view))
        order = herded(torch.cat([before, new]), self.counts[c] * before.mean(dim=0) + new.sum(dim=0), places)
        stays, comes = (order < len(old)).nonzero().flatten(), (order >= len(old)).nonzero().flatten()
        parts = [old.take(order[stays])] if len(stays) else []
        if len(comes):
            parts.append(self.problem.sample(view.train, members[order[comes] - len(old)], kept_as(self)))
        return self.problem.join(parts).take(torch.cat([stays, comes]).argsort())

    @torch.no_grad()
    def _average(self, view: TaskView) -> None:
        """Compute the means of exemplars under the current model."""
        items = self.problem.join(self.memory.all())
        embedded = self._embedded(self.problem.recall(items, view))
        members = (items.y.unsqueeze(1) == torch.arange(len(self.counts), device=items.y.device)).to(embedded.dtype)
        self.means = [functional.normalize(members.T @ embedded, dim=1)]

    def _embedded(self, batch: Batch) -> Tensor:
        return functional.normalize(self.problem.embed(self.model, batch), dim=1)

    def predict(self, query: Batch) -> Tensor:
        """Return the negative squared distance to every mean, computed class by class so that the result for an item does not depend on the
        other items.
        """
        embedded = self._embedded(query)
        if not self.means:
            return embedded.new_full((len(query), self.problem.n_outputs), -_FURTHEST)
        distances = torch.stack([(embedded - mean).square().sum(dim=1) for mean in self.means[0]], dim=1)
        return torch.where(self.counts > 0, -distances, -_FURTHEST)


def _shelf(c: int) -> str:
    return f"class-{c}"


def herded(points: Tensor, centre: Tensor, budget: int) -> Tensor:
    """Select points one at a time so that their mean stays as close as possible to a centre; the means and the centre are scaled to unit
    length.

    Args:
        points: float32 [n, d]. centre: float32 [d], of any length: only its direction counts.

    Returns:
        The positions of at most ``budget`` different points in the order of choice, int64 [m]; ties go to the lower position.
    """
    direction = functional.normalize(centre, dim=0)
    lengths, along = points.square().sum(dim=1), points @ direction
    left = torch.ones(len(points), dtype=torch.bool, device=points.device)
    total, order = torch.zeros_like(centre), list[Tensor]()
    for _ in range(min(budget, len(points))):
        # ‖μ - s/‖s‖‖ is smallest where the cosine of μ and s is largest; s is the sum of those chosen and the candidate.
        squared = total.square().sum() + 2 * (points @ total) + lengths
        cosines = (total @ direction + along) / squared.clamp(min=torch.finfo(points.dtype).tiny).sqrt()
        best = torch.where(left, cosines, -torch.inf).argmax()
        left[best] = False
        total = total + points[best]
        order.append(best)
    return torch.stack(order) if order else torch.empty(0, dtype=torch.int64, device=points.device)
