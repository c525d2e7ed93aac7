"""The training loop of a phase: epochs, batches, hooks and the learning-rate schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from cglsuite.base.errors import DivergenceError
from cglsuite.learning.clock import Clock
from cglsuite.learning.method import Method, Phase
from cglsuite.specs import TrainingSpec
from cglsuite.streams import Batch

OnEpoch = Callable[[float, float | None], object]
"""Called at the end of each epoch with the mean loss and the monitored value, if any. The loop computes both anyway."""


def unheard(loss: float, monitored: float | None) -> None:
    """Do nothing. This is the :data:`OnEpoch` callback of a run without observers."""


@dataclass(kw_only=True)
class Curve:
    """The training curve: the loss and monitored value of each epoch, and the epoch whose weights are used (0-based; -1 before the
    first)."""

    loss: list[float] = field(default_factory=list)
    monitor: list[float] = field(default_factory=list)
    best_epoch: int = -1


def _undecorated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the plain function behind one of torch's decorated methods, whose decorator would import ``torch._dynamo``."""
    return getattr(function, "__wrapped__", function)


class FusedAdam(Adam):
    """Fused Adam that avoids importing torch's compiler, which would take one second per process.

    Results and state are bit-identical to :class:`torch.optim.Adam` with ``fused=True``. Hooks and gradient scaling are not supported.

    Args:
        groups: parameter groups, as in ``torch.optim``. lr, weight_decay: defaults for groups that do not set them.
    """

    def __init__(self, groups: Any, *, lr: float, weight_decay: float) -> None:
        super().__init__(groups, lr=lr, weight_decay=weight_decay, fused=True)

    add_param_group = _undecorated(Optimizer.add_param_group)
    state_dict = _undecorated(Optimizer.state_dict)
    load_state_dict = _undecorated(Optimizer.load_state_dict)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset all gradients, to ``None`` by default or else to 0."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter.grad = None
                elif parameter.grad is not None:
                    parameter.grad = torch.zeros_like(parameter.grad)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient."""
        for group in self.param_groups:
            lists: tuple[list[Tensor], ...] = ([], [], [], [], [], [])
            self._init_group(group, *lists)  # type: ignore[no-untyped-call]
            for parameters, gradients, means, squares, largest, steps in _by_place(lists):
                torch._foreach_add_(steps, 1)
                torch._fused_adam_(
                    parameters,
                    gradients,
                    means,
                    squares,
                    largest,
                    steps,
                    lr=group["lr"],
                    beta1=group["betas"][0],
                    beta2=group["betas"][1],
                    weight_decay=group["weight_decay"],
                    eps=group["eps"],
                    amsgrad=group["amsgrad"],
                    maximize=group["maximize"],
                )

    step.hooked = True  # type: ignore[attr-defined]  # torch wraps the others to profile every step


def _by_place(lists: tuple[list[Tensor], ...]) -> list[tuple[list[Tensor], ...]]:
    """Group parallel lists of tensors by the device and dtype of the first list, because a kernel accepts only one of each."""
    places = [(parameter.device, parameter.dtype) for parameter in lists[0]]
    if len(found := dict.fromkeys(places)) <= 1:
        return [lists] if found else []
    chosen = [[i for i, there in enumerate(places) if there == place] for place in found]
    return [tuple([part[i] for i in rows] if part else [] for part in lists) for rows in chosen]


def make_optimizer(groups: Iterable[Mapping[str, Any]], training: TrainingSpec) -> Optimizer:
    """Create the optimiser that the protocol specifies, for the given parameter groups (see :meth:`cglsuite.Method.parameter_groups`)."""
    given = [dict(group) for group in groups]
    if training.optimizer == "sgd":
        return SGD(given, lr=training.lr, weight_decay=training.weight_decay)
    return FusedAdam(given, lr=training.lr, weight_decay=training.weight_decay)


def fit(
    method: Method,
    batches: Iterable[Batch],
    training: TrainingSpec,
    optimizer: Optimizer,
    *,
    epochs: int,
    monitor: Callable[[], float] | None,
    clock: Clock,
    train_mode: Callable[[nn.Module], object] = nn.Module.train,
    on_epoch: OnEpoch = unheard,
    phase: Phase = Phase(),  # noqa: B008 - frozen
) -> Curve:
    """Minimise the loss of a phase over ``batches`` for at most ``epochs`` epochs.

    Args:
        batches: iterated once per epoch. A list yields the same batches every time; other iterables may draw new ones.
        monitor: computes the value that the protocol monitors, if any. The phase determines whether it is used.
        train_mode: called before each epoch to put the model into training mode.

    Raises:
        DivergenceError: if a loss or a monitored value is not finite.
    """
    curve, schedule = Curve(), _Schedule(method.model, training, optimizer)
    for epoch in range(epochs):
        train_mode(method.model)
        if phase.loss is None:
            with clock.section("method"):
                method.before_epoch(epoch)
            losses = [train_step(method, batch, optimizer, clock) for batch in batches]
        else:
            losses = [_plain_step(phase.loss, batch, optimizer) for batch in batches]
        curve.loss.append(float(losses[0] if len(losses) == 1 else torch.stack(losses).mean()))
        if not math.isfinite(curve.loss[-1]):
            raise DivergenceError(f"the loss became {curve.loss[-1]} in epoch {epoch + 1}: lower training.lr or the method's weights")
        stopped = phase.stop is not None and phase.stop(epoch, {"loss": curve.loss[-1]})
        value = None
        if phase.monitor == "loss":
            value = curve.loss[-1]
        elif phase.monitor == "protocol" and monitor is not None:
            value = monitor()
        if value is not None:
            curve.monitor.append(value)
        on_epoch(curve.loss[-1], value)
        if (value is not None and schedule.finished(value, epoch)) or stopped:
            break
    curve.best_epoch = schedule.restore(len(curve.loss) - 1)
    return curve


def train_step(method: Method, batch: Batch, optimizer: Optimizer, clock: Clock) -> Tensor:
    """Run one optimiser step on a batch, including the method's hooks, and return the loss."""
    optimizer.zero_grad(set_to_none=True)
    loss = method.loss(batch)
    loss.backward()
    before = clock.switch("method")
    method.before_step()
    clock.switch(before)
    optimizer.step()
    before = clock.switch("method")
    method.after_step()
    clock.switch(before)
    return loss.detach()


def _plain_step(objective: Callable[[Batch], Tensor], batch: Batch, optimizer: Optimizer) -> Tensor:
    """Run one optimiser step on the loss that a phase defines, without hooks, and return the loss."""
    optimizer.zero_grad(set_to_none=True)
    loss = objective(batch)
    loss.backward()
    optimizer.step()
    return loss.detach()


class _Schedule:
    """Reduces the learning rate on a plateau, stops at its lower bound, and remembers the best weights."""

    def __init__(self, model: nn.Module, training: TrainingSpec, optimizer: Optimizer) -> None:
        self.model, self.training, self.optimizer = model, training, optimizer
        self.best = math.inf
        self.best_epoch = -1
        self.kept: dict[str, Tensor] = {}
        known = {id(p) for p in model.parameters()}
        self.beside = [p for group in optimizer.param_groups for p in group["params"] if id(p) not in known]
        """Parameters that are optimised but lie outside the model."""
        self.kept_beside: list[Tensor] = []
        self.rates = [group["lr"] for group in optimizer.param_groups]
        self.plateau = None
        if training.plateau_patience is not None:
            self.plateau = ReduceLROnPlateau(optimizer, factor=training.plateau_factor, patience=training.plateau_patience, eps=0.0)

    def finished(self, value: float, epoch: int) -> bool:
        """Record the monitored value of an epoch and return whether training should stop."""
        if not math.isfinite(value):
            raise DivergenceError(f"the monitored value became {value} in epoch {epoch + 1}: lower training.lr or the method's weights")
        if self.training.restore_best and value < self.best:
            self.best, self.best_epoch = value, epoch
            self.kept = _copy(self.model, self.kept)
            self.kept_beside = [p.detach().clone() for p in self.beside]
        if self.plateau is None:
            return False
        self.plateau.step(value)
        rate: float = self.optimizer.param_groups[0]["lr"]
        initial: float = self.rates[0]
        return rate <= initial * self.training.stop_ratio * (1 + 1e-9)

    def restore(self, last: int) -> int:
        """Restore the best weights if the protocol says so, and return the epoch whose weights are used."""
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate
        if not self.kept:
            return last
        self.model.load_state_dict(self.kept)
        with torch.no_grad():
            for parameter, best in zip(self.beside, self.kept_beside, strict=True):
                parameter.copy_(best)
        return self.best_epoch


def _copy(model: nn.Module, kept: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copy the model's state, reusing the tensors of an earlier copy."""
    current = model.state_dict()
    if not kept:
        return {k: v.clone() for k, v in current.items()}
    for name, value in current.items():
        kept[name].copy_(value)
    return kept
