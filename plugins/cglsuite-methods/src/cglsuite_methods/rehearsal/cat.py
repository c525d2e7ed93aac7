"""Condense and train (CaT): condense every task into a few synthetic items without edges, and train only on those."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from cglsuite import Method
from cglsuite.base.errors import NotApplicable
from cglsuite.learning import Phase
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch, TaskView


class CaT(Method):
    """Condense the graph of each task into a few items without edges, and train only on the condensed items of all tasks (Liu et al., CaT:
    Balanced Continual Graph Learning with Graph Condensation, ICDM 2023).

    A class c with ``n_c`` of the task's n training items gets ``max(1, ⌊b n_c / n⌋)`` condensed items, with remainders given to the largest
    fractions and b = ``per_task`` (at most an equal share of the scenario's budget). Their features X start from those of random items and
    minimise, for an encoder f that is reinitialised in every epoch,

        Σ_c w_c ‖ mean_c norm f(G) - mean_c norm f(X) ‖²,

    where ``norm`` divides an embedding by its length. The model is then trained on the condensed items; the batches of the task itself are
    not used. Design choices that the paper leaves open: f is the backbone without normalisation layers and dropout; rows of X keep their
    initial length; ``w_c = 1``, as in the authors' code. That code uses a separate two-layer encoder, and its number of encoders differs by
    dataset. The rate and epochs are those of the task.

    A backbone with batch norm is fitted to the statistics of isolated items here and then applied to a graph, which lowers the accuracy.
    This also happens in the published rows of BeGin.

    Cost: one pass of the encoder over the graph per epoch in addition to training, which is cheap because it needs no graph; ``b F`` floats
    per task.

    ``as_begin``: the encoder is the backbone with its normalisation layers, in training mode in the first task and in evaluation mode
    later; ``w_c = n_c / n``; the length of the rows of X is free; the loss of an item has weight n / b, summed if the task is known and
    normalised otherwise.
    """

    state = ("weights", "learnt")

    def setup(self) -> None:
        """Initialise without any condensed items.

        Raises:
            NotApplicable: items have several labels, so that they do not fall into classes.
        """
        if self.problem.kind != "single-label":
            raise NotApplicable(
                f"cat condenses class by class and needs exactly one label per item, but the items of this stream are {self.problem.kind}"
            )
        self.weights: dict[str, float] = {}
        self.learnt = 0
        self.condensed: Batch | None = None

    def phases(self, view: TaskView) -> Iterator[Phase]:
        """Condense the task, then train on all condensed items."""
        items, counts = self._start(view)
        x = nn.Parameter(_dense(items).to(self.problem.device))
        lengths = x.detach().norm(dim=1, keepdim=True)
        weights = counts / counts.sum() if self.hyperparameters.as_begin else torch.ones_like(counts)
        real = self.problem.labels(view.train)
        members = [((real == c).nonzero().flatten(), (items.y == c).nonzero().flatten()) for c in real.unique()]

        def distance(_: Batch) -> Tensor:
            if not self.hyperparameters.as_begin:
                _shorten(x, lengths)
            return self._distance(view, replace(items, x=x), weights, members)

        yield Phase(name="condense", parameters=[x], loss=distance, monitor="none")
        if not self.hyperparameters.as_begin:
            _shorten(x, lengths)
        self.memory.put(f"task-{view.position}", replace(items, x=x.detach().cpu()))
        self.weights[str(view.position)] = float(counts.sum()) / len(items)
        self.condensed = self.problem.recall(self.problem.join(self.memory.all()))
        yield Phase()

    def _start(self, view: TaskView) -> tuple[MemoryItems, Tensor]:
        """Random items of each class, and the number of training items of the classes that have any."""
        b, budget = self.hyperparameters.per_task, self.memory.budget
        b = b if budget is None else min(b, max(1, budget // self.context.n_tasks))
        y = self.problem.labels(view.train)
        classes, counts = y.unique(return_counts=True)
        draws = self.context.generator("condense")
        chosen = []
        for c, places in zip(classes.tolist(), places_of(counts.tolist(), b), strict=True):
            members = (y == c).nonzero().flatten()
            chosen.append(members[torch.randperm(len(members), generator=draws)[:places].to(members.device)])
        return self.problem.sample(view.train, torch.cat(chosen), "item"), counts.float()

    def _distance(self, view: TaskView, items: MemoryItems, weights: Tensor, members: list[tuple[Tensor, Tensor]]) -> Tensor:
        """The condensation objective; ``members`` of every class: its training items (int64 [n_c]) and its condensed items."""
        encoder, real = self._encoder(), view.train
        with torch.no_grad():
            here = functional.normalize(self._embedded(encoder, real), dim=1)
        there = functional.normalize(self._embedded(encoder, self.problem.recall(items)), dim=1)
        gaps = [here[own].mean(dim=0) - there[made].mean(dim=0) for own, made in members]
        return (weights * torch.stack([gap.square().sum() for gap in gaps])).sum()

    def _embedded(self, encoder: Any, batch: Batch) -> Tensor:
        hidden = encoder.encode(batch.graph)
        combined: Tensor = encoder.combine(hidden, batch.ids) if batch.ids.dim() == 2 else hidden[batch.ids]
        return combined

    def _encoder(self) -> nn.Module:
        """An encoder with new random weights."""
        model = self.context.build_model().requires_grad_(False)
        if self.hyperparameters.as_begin:
            return model.train(self.learnt == 0)
        for name, module in list(model.named_modules()):
            if isinstance(module, nn.BatchNorm1d):
                parent, _, last = name.rpartition(".")
                setattr(model.get_submodule(parent), last, nn.Identity())
        return model.eval()

    def loss(self, batch: Batch) -> Tensor:
        """Return the loss on the condensed items of all tasks."""
        if self.condensed is None:
            return super().loss(batch)
        outputs = self.forward(self.condensed)
        if not self.hyperparameters.as_begin:
            return self.problem.loss(outputs, self.condensed)
        losses = self.problem.loss(outputs, self.condensed, "none")
        weights = self._item_weights(self.condensed, losses)
        total = (weights * losses).sum()
        return total if self.problem.task_ids else total / weights.sum()

    def _item_weights(self, condensed: Batch, losses: Tensor) -> Tensor:
        if "item weights" not in condensed.cache:
            tasks = [] if condensed.tasks is None else condensed.tasks.tolist()
            condensed.cache["item weights"] = losses.new_tensor([self.weights[str(k)] for k in tasks])
        weights: Tensor = condensed.cache["item weights"]
        return weights

    def after_task(self, view: TaskView) -> None:
        """Mark the task as condensed."""
        self.learnt, self.condensed = view.position + 1, None


def places_of(counts: list[int], b: int) -> list[int]:
    """Compute the number of condensed items per class: proportional to ``counts``, at least one each, with remainders given to the largest
    fractions.
    """
    n = sum(counts)
    places = [b * count // n for count in counts]
    by_fraction = sorted(range(len(counts)), key=lambda i: (-(b * counts[i] % n), i))
    for i in by_fraction[: b - sum(places)]:
        places[i] += 1
    return [max(1, min(place, count)) for place, count in zip(places, counts, strict=True)]


def _dense(items: MemoryItems) -> Tensor:
    x = items.x
    if not isinstance(x, Tensor):
        raise NotApplicable("cat condenses features of nodes or pairs of nodes, but the items of this stream are whole graphs")
    return (x.to_dense() if x.layout != torch.strided else x).clone()


@torch.no_grad()
def _shorten(x: Tensor, lengths: Tensor) -> None:
    """Rescale the rows of ``x`` (float32 [m, F]) to these lengths."""
    x.copy_(functional.normalize(x, dim=1) * lengths)
