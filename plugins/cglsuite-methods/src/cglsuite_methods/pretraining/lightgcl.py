"""LightGCL: contrastive learning between a graph and its low-rank approximation."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from cglsuite.learning import Pretraining
from cglsuite.streams import Batch
from cglsuite_methods.pretraining.contrast import noise_contrast


class LightContrast(Pretraining):
    """Train node embeddings aggregated over neighbours to agree with those from a low-rank approximation of the graph (Cai et al., ICLR
    2023).

    The loss is InfoNCE between ``Â h`` and ``U S Vᵀ h``, where ``Â = D^-1/2 A D^-1/2``, ``U S Vᵀ`` is its truncated singular value
    decomposition of rank ``rank``, and h are the model's node embeddings, for at most ``items`` nodes per step. The paper adds this to the
    recommendation loss (BPR) and divides by a temperature of 0.2; ``recommend`` is the weight of that loss, which covers the edges of the
    graph and the same number of random pairs.
    """

    def setup(self) -> None:
        """Create an empty cache of decompositions, keyed by graph. Only the model itself is trained."""
        self._of: tuple[object, Tensor, Tensor, Tensor] | None = None

    def loss(self, batch: Batch) -> Tensor:
        """Compute the InfoNCE loss over the endpoints of the links in the batch."""
        graph = batch.graph
        edges, left, right = self._decomposed(batch)
        hidden = self.model.encode(graph)
        ends = batch.ids.flatten().unique()
        chosen = ends[self.items.chosen(len(ends), self.hyperparameters["items"], self.generator)]
        exact = _heard(edges, hidden)
        loss = noise_contrast(exact[chosen], (left @ (right @ hidden))[chosen], self.hyperparameters["temperature"], positives_compete=True)
        weight = self.hyperparameters["recommend"]
        return loss if not weight else loss + weight * self._ranked(hidden, batch)

    def _ranked(self, hidden: Tensor, batch: Batch) -> Tensor:
        """The loss of Bayesian personalised ranking: a linked node ranks above a random one."""
        source, target = batch.ids.T
        wrong = torch.randint(len(hidden), (len(batch),), generator=self.generator).to(target.device)
        margin = (hidden[source] * (hidden[target] - hidden[wrong])).sum(dim=1)
        return -functional.logsigmoid(margin).mean()

    def _decomposed(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """The normalised adjacency, sparse [N, N], and the two factors of its approximation: float32 [N, q] and [q, N]."""
        if self._of is None or self._of[0] is not batch.graph:
            n, (source, target) = batch.graph.n_nodes, self.items.edges(batch)
            ones = torch.ones(source.numel(), device=source.device)
            degree_in, degree_out = (ones.new_zeros(n).index_add_(0, ends, ones).clamp(min=1) for ends in (target, source))
            values = (degree_in[target] * degree_out[source]).rsqrt()
            adjacency = torch.sparse_coo_tensor(torch.stack([target, source]), values, (n, n), check_invariants=True).coalesce()
            u, s, v = torch.svd_lowrank(adjacency, q=min(int(self.hyperparameters["rank"]), n))
            self._of = (batch.graph, adjacency, u * s, v.T.contiguous())
        return self._of[1:]


def _heard(adjacency: Tensor, hidden: Tensor) -> Tensor:
    """The weighted sum of every node's neighbours: float32 [N, d]."""
    out: Tensor = torch.sparse.mm(adjacency, hidden)
    return out
