"""Experience replay along a stream."""

from __future__ import annotations

from torch import Tensor

from cglsuite.streams import Batch
from cglsuite_methods.rehearsal.task_free.memory import Sampling


class ER(Sampling):
    """``L(B) + L(M_B)``: every batch B is joined by an equally sized replay batch M_B from a reservoir (Chaudhry et al. 2019).

    The batch is offered to the reservoir after training. Each pass over a batch draws new items. Stored items are isolated nodes with
    features, unless ``neighbourhood`` embeds them in the current graph; then one forward pass serves both terms.
    """

    def loss(self, batch: Batch) -> Tensor:
        """The losses on the batch and on the replayed items."""
        return self.replayed_loss(batch)
