"""Dark experience replay (DER++)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from torch import Tensor

from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch
from cglsuite_methods.rehearsal.replay_items import kept_as
from cglsuite_methods.rehearsal.task_free.memory import Sampling


class DERPlusPlus(Sampling):
    """Minimise ``L(B) + α mean (z - z₀)² + β L(M_B)``, which distils the outputs z₀ stored with the items and replays their labels (Buzzega
    et al. 2020).

    z and z₀ are the raw outputs of as many reservoir items as the batch has; M_B is a second, independent sample. The mean is over the
    outputs that competed when the item was stored; the paper writes the squared norm, but its code uses this mean. β = 0 is DER.

    The paper stores the outputs of the training step in which an item arrives, in one or several passes over a task. Here, every item is
    offered to the reservoir once: after the steps on its batch in task-free streams, and at the end of its task in streams of tasks. z₀ are
    the outputs at that time in evaluation mode, for the item in its stored form: nodes and links without edges, unless ``neighbourhood``
    embeds them in the current graph. The difference between z and z₀ is therefore due to forgetting and not to missing edges.
    """

    def loss(self, batch: Batch) -> Tensor:
        """Return the loss on the batch, plus the distance of one sample to its stored outputs and the loss on another sample."""
        loss = self.problem.loss(self.forward(batch), batch)
        items, replay = self.drawn(len(batch)), self.draw(batch, len(batch))
        if items is None or replay is None:
            return loss
        competed = items.extra["competed"]
        drift = (self.forward(self.problem.recall(items, batch)) - items.extra["outputs"]).square() * competed
        replayed = self.problem.loss(self.forward(replay), replay)
        total: Tensor = loss + self.hyperparameters.alpha * drift.sum() / competed.sum() + self.hyperparameters.beta * replayed
        return total

    def offer(self, batch: Batch) -> None:
        """Offer a labelled batch to the reservoir together with its outputs."""
        self.reservoir.offer(batch, kept_as(self), extra=partial(self._outputs, batch))

    def _outputs(self, where: Batch, items: MemoryItems) -> Mapping[str, Tensor]:
        batch, training = self.problem.recall(items, where), self.model.training
        self.model.eval()
        outputs = self.forward(batch)
        self.model.train(training)
        return {"outputs": outputs, "competed": batch.allowed.expand_as(outputs)}
