"""Hard attention to the task (HAT): learnable gates on units, and protection of weights according to their use in earlier tasks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from cglsuite import Method
from cglsuite.backbones import Units
from cglsuite.learning import Phase
from cglsuite.learning.isolation import Held, along, by_task, output_wires
from cglsuite.streams import Batch, TaskView

_LARGEST = 6.0  # of an embedding, as in the authors' code
_CLIP = 50.0  # of s·e in the compensation, likewise


class HAT(Method):
    """Learn one gate per unit and task, ``g = σ(s e_t)`` with learnable e, so that a unit outputs ``g ⊙ h`` (Serrà et al., ICML 2018).

    The loss is ``L + c Σ g (1 - a) / Σ (1 - a)``, where a is the largest gate of the unit in earlier tasks, so a task pays only for units
    that earlier tasks do not use. A weight between units i and j receives ``1 - min(a_i, a_j)`` of the optimiser's update; biases,
    normalisation layers and weights of input features receive ``1 - a_j``. In the head, a task changes only its own outputs. Parameters
    that write to no unit are trained only in the first task. Units of one attention head share a gate.

    s rises once from 1/s_max to s_max during a ``share`` of the epochs without a schedule, and training then continues at s_max. The paper
    raises it over the batches of each epoch, which is undefined for full batches. Gradients of e are compensated for s as in the paper, and
    e stays within ±6. Gates at s_max are nearly, but not exactly, 0 or 1, so forgetting is small but not 0. With ``gates=binary`` they are
    exactly 0 or 1 (straight-through gradient), and outputs for old tasks are bit-identical if the graph does not change.

    Cost: the time of fine-tuning plus ``share``; T numbers per unit, and one number per unit for a.

    ``as_begin``: as in BeGin's code, embeddings keep their random initial values (no optimiser updates them, so c has no effect), s is
    s_max from the start, and only the latest task is protected. Its graph-level code computes gates but does not apply them
    (``gates=none``).
    """

    state = ("used", "learnt")

    def setup(self) -> None:
        """Initialise the embeddings of all tasks and mark all units as unused."""
        self.units = self.model.units()
        self.wires = output_wires(self.model.head)
        trained = not self.hyperparameters.as_begin and self.hyperparameters.gates != "none"
        device = next(self.model.parameters()).device
        self.embeddings = [
            nn.Parameter(torch.randn(self.context.n_tasks, u.width // u.together, device=device), trained) for u in self.units
        ]
        self.model.hat = nn.ParameterList(self.embeddings)
        self.used: dict[str, Tensor] = {u.name: torch.zeros(u.width, device=device) for u in self.units}
        self.learnt = 0
        self.task, self.scale, self.rises = 0, self.hyperparameters.s_max, 0
        self.held = Held(self.model)
        self.masks: dict[str, Tensor] = {}

    def before_task(self, view: TaskView) -> None:
        """Select the gates of the task and protect the weights that earlier tasks use."""
        self.task = view.position
        self.masks = self._free(view)

    def phases(self, view: TaskView) -> Iterator[Phase]:
        """Yield two phases: one that gradually closes the gates, and one that trains the task at s_max."""
        share = self.hyperparameters.share
        if not self.hyperparameters.as_begin:
            self.rises = math.ceil(share * self.context.epochs)
            yield Phase(share=share, name="close gates", monitor="none")
        self.rises, self.scale = 0, self.hyperparameters.s_max
        yield Phase()

    def before_epoch(self, epoch: int) -> None:
        """Set s for this epoch on its linear schedule from 1/s_max to s_max."""
        if self.rises:
            low, high = 1 / self.hyperparameters.s_max, self.hyperparameters.s_max
            self.scale = high if self.rises == 1 else low + (high - low) * epoch / (self.rises - 1)

    def forward(self, batch: Batch) -> Tensor:
        """Compute the raw outputs with the gates of the current task."""
        if self.hyperparameters.gates == "none":
            return super().forward(batch)
        self.model.gates = {u.name: self._gate(i, self.task, self.scale) for i, u in enumerate(self.units)}
        try:
            return super().forward(batch)
        finally:
            self.model.gates = {}

    def loss(self, batch: Batch) -> Tensor:
        """Compute the loss, including a penalty on the share of unused units that the task occupies."""
        loss = super().loss(batch)
        if self.hyperparameters.as_begin or self.hyperparameters.gates == "none":
            return loss
        unused = [1 - self.used[u.name] for u in self.units]
        gates = [self._gate(i, self.task, self.scale) for i in range(len(self.units))]
        taken = torch.stack([(g * f).sum() for g, f in zip(gates, unused, strict=True)]).sum()
        room = torch.stack([f.sum() for f in unused]).sum().clamp(min=1e-6)
        c: float = self.hyperparameters.c
        return loss + c * taken / room

    def before_step(self) -> None:
        """Compensate the embedding gradients for s, and save the weights that earlier tasks use."""
        high = self.hyperparameters.s_max
        for e in self.embeddings:
            if e.grad is not None:
                inner = (self.scale * e.detach()).clamp(-_CLIP, _CLIP)
                e.grad.mul_(high / self.scale * (inner.cosh() + 1) / (e.detach().cosh() + 1))
        self.held.before(self.masks)

    @torch.no_grad()
    def after_step(self) -> None:
        """Restore the protected weights after the step and clip the embeddings."""
        self.held.after()
        for e in self.embeddings:
            e[self.task].clamp_(-_LARGEST, _LARGEST)

    @torch.no_grad()
    def after_task(self, view: TaskView) -> None:
        """Mark the units of the task as used."""
        for i, u in enumerate(self.units):
            gate = self._gate(i, view.position, self.hyperparameters.s_max)
            self.used[u.name] = gate if self.hyperparameters.as_begin else torch.maximum(self.used[u.name], gate)
        self.learnt = view.position + 1

    def predict(self, query: Batch) -> Tensor:
        """Return the raw outputs of each item with the gates of its task."""
        return by_task(self, query, self._of_task, self.learnt)

    @contextmanager
    def _of_task(self, k: int) -> Iterator[None]:
        before = self.task, self.scale
        self.task, self.scale = max(k, 0), self.hyperparameters.s_max
        try:
            yield
        finally:
            self.task, self.scale = before

    def _gate(self, i: int, task: int, scale: float) -> Tensor:
        """The gates of the i-th units: float32 [width]."""
        soft = (scale * self.embeddings[i][task]).sigmoid()
        if self.hyperparameters.gates == "binary":
            soft = (soft > 0.5).to(soft.dtype) + soft - soft.detach() if soft.requires_grad else (soft > 0.5).to(soft.dtype)
        return soft.repeat_interleave(self.units[i].together)

    def _free(self, view: TaskView) -> dict[str, Tensor]:
        """The share of an update that is applied to each parameter: float32 that broadcasts to it, bool for the head and the embeddings.

        In the first task only these two are held: no unit is used yet.
        """
        parameters = dict(self.model.named_parameters())
        own = torch.arange(self.context.n_tasks, device=self.problem.device) == view.position
        masks = {f"hat.{i}": own.unsqueeze(1) for i in range(len(self.embeddings))}
        masks |= {w.parameter: along(w, parameters[w.parameter], view.task_outputs) for w in self.wires}
        if view.first:
            return masks
        body = {name: p for name, p in parameters.items() if not name.startswith("hat.")}
        return free_of(self.units, body, self.used) | masks


def free_of(units: tuple[Units, ...], parameters: Mapping[str, Tensor], used: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Compute ``1 - min(a_out, a_in)`` for every entry of each parameter that units write or read, and 0 for all other parameters."""
    outer: dict[str, Tensor] = {}
    inner: dict[str, Tensor] = {}
    for u in units:
        for side, wires in ((outer, u.writers), (inner, u.readers)):
            for w in wires:
                side[w.parameter] = along(w, parameters[w.parameter], used[u.name])
    masks = {}
    for name, parameter in parameters.items():
        sides = [side[name] for side in (outer, inner) if name in side]
        if not sides:
            masks[name] = torch.zeros_like(parameter)
        else:
            masks[name] = 1 - (sides[0] if len(sides) == 1 else torch.minimum(*sides))
    return masks
