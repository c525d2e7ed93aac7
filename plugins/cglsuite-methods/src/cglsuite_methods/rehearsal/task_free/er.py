"""Experience replay on a stream."""

from __future__ import annotations

from torch import Tensor

from cglsuite.streams import Batch
from cglsuite_methods.rehearsal.task_free.memory import Sampling


class ER(Sampling):
    """Minimise ``L(B) + L(M_B)``, where every batch B is paired with a replay batch M_B of the same size from a reservoir (Chaudhry et al.
    2019).

    The batch is offered to the reservoir after training. Each pass over a batch draws new items. Stored items are isolated nodes with
    features unless ``neighbourhood`` embeds them in the current graph, in which case one forward pass computes both terms.
    """

    def loss(self, batch: Batch) -> Tensor:
        """Return the sum of the losses on the batch and the replayed items."""
        return self.replayed_loss(batch)
