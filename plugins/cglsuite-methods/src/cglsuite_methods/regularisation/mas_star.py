"""Task-free memory aware synapses."""

from __future__ import annotations

import math
from statistics import fmean, pvariance

import torch
from torch import Tensor

from cglsuite.streams import Batch
from cglsuite_methods.regularisation.penalty import gradients, mean_over, pull
from cglsuite_methods.rehearsal.replay_items import both_losses
from cglsuite_methods.rehearsal.task_free.memory import MEMORY, Rehearsing


class MASStar(Rehearsing):
    """Minimise ``L(B) + L(H) + λ Σ_i Ω_i (θ_i - θ*_i)²``, updating Ω and θ* whenever the loss plateaus (Aljundi et al. 2019, task-free).

    A plateau is a window of the last ``window`` batch losses with a mean below ``mean_threshold`` and a variance below
    ``variance_threshold``. The detector fires at the first plateau. It fires again only at a plateau that follows a peak, which is a window
    whose mean exceeds mean + standard deviation of the last plateau's window. Ω then becomes the mean importance over all plateaus (each a
    mean over items of ``|∂‖z‖²/∂θ|``), and θ* the current weights. If the detector never fires, the method is fine-tuning with replay of H;
    ``triggers`` counts how often it fired.

    H is the hard buffer: the ``hard_buffer`` items with the highest losses among the buffer and each batch. It is replayed with every
    batch, and importance is estimated on it. As benchmarked (DRIFT): with ``hard_buffer=0``, importance is estimated on the batch at which
    the detector fires; with ``importance=batch``, it is the absolute gradient of the mean of z² over items and competing outputs, in which
    items cancel.
    """

    state = ("omega", "weighted", "window", "rest", "peaked", "triggers")

    def setup(self) -> None:
        """Initialise the importance and the plateau detector."""
        super().setup()
        self.omega: dict[str, Tensor] = {}
        self.weighted: dict[str, Tensor] = {}
        self.window: list[float] = []
        self.rest: list[float] = [math.inf, 0.0]
        self.peaked = True
        self.triggers = 0
        self._losses: list[Tensor] = []

    @property
    def capacity(self) -> int:
        """The number of items in the hard buffer."""
        wanted: int = self.hyperparameters.hard_buffer
        return wanted if self.memory.budget is None else min(wanted, self.memory.budget)

    def before_batch(self, batch: Batch) -> None:
        """Reset the loss of the batch."""
        self._losses = []

    def loss(self, batch: Batch) -> Tensor:
        """Return the loss on the batch and the hard buffer, without the penalty."""
        items = self.kept()
        if items is None:
            loss = super().loss(batch)
            self._losses.append(loss.detach())
            return loss
        current, hard = both_losses(self, batch, self.problem.recall(items, batch))
        self._losses.append(current.detach())
        return current + hard

    def before_step(self) -> None:
        """Add the gradient of the penalty."""
        weight: float = self.hyperparameters["lambda"]
        if self.omega and weight != 0:
            pull(self.problem.parameters(self.model), self.omega, self.weighted, weight)

    def after_batch(self, batch: Batch) -> None:
        """Track the first-pass loss of the batch, update the hard buffer, and consolidate if the loss has reached a plateau."""
        training = self.model.training
        self.model.eval()
        if self.capacity:
            self._keep_hardest(batch)
        self.window = [*self.window, float(self._losses[0])][-self.hyperparameters.window :]
        if len(self.window) == self.hyperparameters.window:
            self._watch(batch)
        self.model.train(training)

    @torch.no_grad()
    def _keep_hardest(self, batch: Batch) -> None:
        items, before = self.sampled(batch, torch.arange(len(batch))), self.kept()
        pool = items if before is None else self.problem.join([before, items])
        asked = self.problem.recall(pool, batch)
        losses = self.problem.loss(self.problem.forward(self.model, asked), asked, "none")
        hardest = losses.argsort(descending=True, stable=True)[: self.capacity]
        self.memory.put(MEMORY, pool.take(hardest.sort().values))

    def _watch(self, batch: Batch) -> None:
        """Detect a peak, or a plateau after one."""
        mean, variance = fmean(self.window), pvariance(self.window)
        if not self.peaked:
            self.peaked = mean > self.rest[0] + math.sqrt(self.rest[1])
        if self.peaked and mean < self.hyperparameters.mean_threshold and variance < self.hyperparameters.variance_threshold:
            self.triggers += 1
            self._consolidate(batch)
            self.rest, self.window, self.peaked = [mean, variance], [], False

    def _consolidate(self, batch: Batch) -> None:
        """Update the importance and the anchor."""
        items = self.kept()
        asked = batch if items is None else self.problem.recall(items, batch)
        added = self._importance(asked)
        for name, parameter in self.problem.parameters(self.model).items():
            before = self.omega.get(name)
            self.omega[name] = added[name] if before is None else before.lerp(added[name], 1 / self.triggers)
            self.weighted[name] = self.omega[name] * parameter.detach()

    def _importance(self, batch: Batch) -> dict[str, Tensor]:
        if self.hyperparameters.get("importance", "items") == "items":
            return mean_over(self, batch, self._norms, lambda gradient: gradient.abs().sum(dim=0))
        norms = self._norms(batch)
        outputs = int(batch.allowed.expand(len(norms), -1).sum())
        return {n: g.abs() for n, g in gradients(norms.sum() / outputs, self.problem.parameters(self.model)).items()}

    def _norms(self, batch: Batch) -> Tensor:
        return self.problem.squared_norm(self.forward(batch), batch)

    def counters(self) -> dict[str, int]:
        """Return the number of times the plateau detector fired."""
        return {"triggers": self.triggers}
