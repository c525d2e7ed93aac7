"""GraphCL: graph contrastive learning with augmentations."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from cglsuite.graphs import GraphSet
from cglsuite.learning import Pretraining
from cglsuite.streams import Batch
from cglsuite_methods.pretraining.contrast import discriminated, noise_contrast, projection


class GraphContrast(Pretraining):
    """Train the model so that two augmented views of one item are more similar than views of different items (You et al., NeurIPS 2020).

    The loss is NT-Xent over projected embeddings, with the cosine similarity divided by a temperature. As in equation 3 of the paper, the
    denominator does not include the item's own pair. A view is the subgraph around a random node with ``keep`` of the nodes, or the same
    graph with the features of a share ``1 - keep`` of the nodes set to 0.

    The paper contrasts whole graphs. For one large graph, nodes or links that are in both views are contrasted with each other, at most
    ``items`` per step. ``as_begin`` does not do this: as in BeGin, the summary of each of two subgraphs is discriminated from corrupted
    items, as in Deep Graph Infomax, and graphs are contrasted with the original instead of a second view.
    """

    def setup(self) -> None:
        """Initialise the projection or the discriminator matrix."""
        width, values = self.width(), self.hyperparameters
        self.as_begin = bool(values["as_begin"])
        self.whole_graphs = isinstance(self.context.example.graph, GraphSet)
        if self.as_begin and not self.whole_graphs:
            self.bilinear = nn.Parameter(torch.empty(width, width).uniform_(-1 / math.sqrt(width), 1 / math.sqrt(width)))
        else:
            self.projection = projection(width)

    def loss(self, batch: Batch) -> Tensor:
        """Compute the contrastive loss between two views of a batch."""
        if self.as_begin and not self.whole_graphs:
            return self._of_summaries(batch)
        (one, first), (other, second) = self._view(batch), (batch, None) if self.as_begin else self._view(batch)
        shared = first if second is None else first[torch.isin(first, second)]
        if not len(shared):
            return 0.0 * self.items.embed(self.model, one).sum()
        shared = shared[self.items.chosen(len(shared), self.hyperparameters["items"], self.generator)]
        left, right = (self._projected(view, places, shared, len(batch)) for view, places in ((one, first), (other, second)))
        return noise_contrast(left, right, self.hyperparameters["temperature"], positives_compete=False)

    def _view(self, batch: Batch) -> tuple[Batch, Tensor]:
        """A view, and the positions of its items in the batch."""
        keep = self.hyperparameters["keep"]
        if self.hyperparameters["augmentation"] == "subgraph":
            return self.items.subgraph(batch, keep, self.generator)
        return self.items.masked(batch, 1 - keep, self.generator), torch.arange(len(batch), device=batch.ids.device)

    def _projected(self, view: Batch, places: Tensor | None, shared: Tensor, n: int) -> Tensor:
        """The projections of the items ``shared`` of the batch."""
        embedded = self.items.embed(self.model, view)
        if places is None:
            return self.projection(embedded[shared])  # type: ignore[no-any-return]
        row = torch.full((n,), -1, dtype=torch.int64, device=places.device)
        row[places] = torch.arange(len(places), device=places.device)
        return self.projection(embedded[row[shared]])  # type: ignore[no-any-return]

    def _of_summaries(self, batch: Batch) -> Tensor:
        own = self.items.embed(self.model, batch)
        corrupted = self.items.embed(self.model, self.items.corrupted(batch, self.generator))
        total = own.new_zeros(())
        for _ in range(2):
            part, _places = self.items.subgraph(batch, self.hyperparameters["keep"], self.generator)
            summary = self.bilinear @ self.items.embed(self.model, part).mean(dim=0).sigmoid()
            total = total + discriminated(own @ summary, corrupted @ summary)
        return total
