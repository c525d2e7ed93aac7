"""Experience replay along a stream."""

from __future__ import annotations

from torch import Tensor

from cglsuite.streams import Batch
from cglsuite_methods.rehearsal.task_free.memory import Sampling

__all__ = ["ER"]


class ER(Sampling):
    """``L(B) + L(M_B)``: with every batch B as many items M_B of a reservoir memory are learnt again (Chaudhry et al. 2019).

    The batch joins the memory after it was learnt. Several passes over a batch draw other items each. Kept items stand alone with their
    features unless ``neighbourhood`` reads them in the current graph, where one forward pass serves both terms.
    """

    def loss(self, batch: Batch) -> Tensor:
        """The loss of the batch, and that of the items drawn."""
        return self.replayed_loss(batch)
