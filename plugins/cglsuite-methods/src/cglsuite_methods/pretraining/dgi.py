"""Deep Graph Infomax (DGI)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from cglsuite.learning import Pretraining
from cglsuite.streams import Batch
from cglsuite_methods.pretraining.contrast import discriminated


class DeepGraphInfomax(Pretraining):
    """Learn to distinguish items of the graph from items of a corrupted graph by comparing them with a graph summary (Veličković et al.,
    ICLR 2019).

    ``BCE(hᵢ B s, 1) + BCE(h̃ᵢ B s, 0)``, where h are the embeddings of the items, h̃ are those of the same items after the features are
    shuffled among nodes, ``s = σ(mean_i hᵢ)`` is the summary and B is a learnt matrix. Items that are links are embedded as pairs, as in
    BeGin.
    """

    def setup(self) -> None:
        """Initialise B uniformly in ±1/√d."""
        width = self.width()
        self.bilinear = nn.Parameter(torch.empty(width, width).uniform_(-1 / math.sqrt(width), 1 / math.sqrt(width)))

    def loss(self, batch: Batch) -> Tensor:
        """Return the discriminator loss on a batch."""
        own = self.items.embed(self.model, batch)
        corrupted = self.items.embed(self.model, self.items.corrupted(batch, self.generator))
        summary = self.bilinear @ own.mean(dim=0).sigmoid()
        return discriminated(own @ summary, corrupted @ summary)
