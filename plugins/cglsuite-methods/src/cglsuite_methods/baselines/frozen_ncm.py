"""A nearest-class-mean baseline on a random encoder that is never trained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from cglsuite import Method
from cglsuite.base.errors import NotApplicable
from cglsuite.learning import Phase
from cglsuite.streams import Batch, TaskView

_FURTHEST = 4.0  # the largest squared distance of two points of the unit ball


class FrozenNCM(Method):
    """Predict the class with the nearest mean embedding, using a network that keeps its random initial weights.

    With unit embeddings h of the backbone's body, ``z_c = -‖h - μ_c‖²``, where μ_c is the mean over all training items of class c so far. A
    class without items has the lowest output, -4. Only sums and counts are stored, so nothing is trained and nothing is forgotten; the only
    things that change are the graph in which items are embedded and the classes to choose from. A method that scores below this baseline
    has not learnt a representation that makes up for its forgetting. The nearest class mean is the classifier of iCaRL (Rebuffi et al.
    2017), and Pelosin (2022) reports how strong it is on frozen features.

    Normalisation layers of the body are in evaluation mode with the statistics of a new model (mean 0, variance 1). The items of a task are
    added after the task, in the graph at that time; in task-free streams, items are added after each batch.

    Cost: one pass without gradients per task, and one vector per class. The epochs and learning rate of the protocol have no effect.
    """

    state = ("sums", "counts")

    def setup(self) -> None:
        """Initialise without any class means.

        Raises:
            NotApplicable: items do not have a single class each.
        """
        if self.problem.kind != "single-label":
            raise NotApplicable(
                "frozen-ncm compares class means and needs exactly one label per item, but the items of this stream are "
                f"{self.problem.kind}, expected a single label each"
            )
        self.model.requires_grad_(False)
        self.sums: list[Tensor] = []
        """Once there are items, the sum of the unit embeddings of each class: float32 [C, d]."""
        self.counts = torch.zeros(self.problem.n_outputs, device=self.problem.device)
        self._idle = nn.Parameter(torch.zeros((), device=self.problem.device))

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        """Return a dummy parameter, because an optimiser needs one and no part of the network is trained."""
        yield {"params": [self._idle]}

    def phases(self, view: TaskView) -> Iterator[Phase]:
        """Yield a single epoch that has no effect, because nothing is trained."""
        yield Phase(name="nothing to train", monitor="none", stop=lambda epoch, values: True)

    def loss(self, batch: Batch) -> Tensor:
        """Return 0, with no gradient for the network."""
        return 0.0 * self._idle

    def after_task(self, view: TaskView) -> None:
        """Add the items of the task to the class means."""
        self._add(view.train)

    def after_batch(self, batch: Batch) -> None:
        """Add the items of the batch to the class means."""
        training = self.model.training
        self.model.eval()
        self._add(batch)
        self.model.train(training)

    @torch.no_grad()
    def _add(self, batch: Batch) -> None:
        embedded, y = self._embedded(batch), self.problem.labels(batch)
        members = (y.unsqueeze(1) == torch.arange(self.problem.n_outputs, device=y.device)).to(embedded.dtype)
        added = members.T @ embedded
        self.sums = [self.sums[0] + added if self.sums else added]
        self.counts = self.counts + members.sum(dim=0)

    def _embedded(self, batch: Batch) -> Tensor:
        return functional.normalize(self.problem.embed(self.model, batch), dim=1)

    def predict(self, query: Batch) -> Tensor:
        """Return the negative squared distance to every class mean, computed class by class so that the result for an item does not depend
        on the other items.
        """
        embedded = self._embedded(query)
        if not self.sums:
            return embedded.new_full((len(query), self.problem.n_outputs), -_FURTHEST)
        means = self.sums[0] / self.counts.clamp(min=1).unsqueeze(1)
        distances = torch.stack([(embedded - mean).square().sum(dim=1) for mean in means], dim=1)
        return torch.where(self.counts > 0, -distances, -_FURTHEST)
