"""A quadratic penalty around anchors, applied directly to gradients, and estimates of parameter importance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from cglsuite import Method
from cglsuite.learning.gradients import per_item_gradients
from cglsuite.streams import Batch, TaskView

_PIECE = 2**17  # numbers


@torch.no_grad()
def pull(
    parameters: Mapping[str, nn.Parameter], importance: Mapping[str, Tensor], weighted: Mapping[str, Tensor], weight: float = 1.0
) -> None:
    """Add the gradient of ``λ Σ_i W_i θ_i² - 2 V_i θ_i`` to ``.grad``. With ``W = Σ_s W_s`` and ``V = Σ_s W_s θ*_s`` this equals ``λ Σ_s
    Σ_i W_s,i (θ_i - θ*_s,i)²`` up to a constant, for any number of anchors θ*_s.

    Use it in :meth:`~cglsuite.Method.before_step`. Computing the penalty by autograd would take more than twice as long. The loss and its
    curve do not include the penalty.

    Args:
        parameters: θ by name, float32 of any shape; parameters that the loss does not reach get a ``.grad``.
        importance: W by name, shaped like the parameters. weighted: V by name, likewise. weight: λ.
    """
    for name, parameter in parameters.items():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        whole = (parameter, parameter.grad, importance[name], weighted[name])
        for theta, gradient, w, v in zip(*map(_pieces, whole), strict=True):
            # Subtract first: adding two large terms to the gradient one by one would leave their rounding errors in it.
            gradient.add_(torch.addcmul(v, w, theta, value=-1).mul_(-2 * weight))


def _pieces(tensor: Tensor) -> tuple[Tensor, ...]:
    """Views of rows small enough for the processor's cache; the whole tensor on other devices and for scalars."""
    if tensor.dim() == 0 or tensor.device.type != "cpu":
        return (tensor,)
    pieces: tuple[Tensor, ...] = tensor.split(max(1, _PIECE * len(tensor) // max(1, tensor.numel())))
    return pieces


def protect(
    importance: MutableMapping[str, Tensor], weighted: MutableMapping[str, Tensor], of_task: Mapping[str, Tensor], at: Mapping[str, Tensor]
) -> None:
    """Add an anchor to the sums W and V: the importance of a task (shaped like the parameters) at the weights ``at``."""
    for name, parameter in at.items():
        for total, added in ((importance, of_task[name]), (weighted, of_task[name] * parameter.detach())):
            total[name] = added + total[name] if name in total else added


def gradients(value: Tensor, parameters: Mapping[str, Tensor], *, create_graph: bool = False) -> dict[str, Tensor]:
    """Compute the gradient of a scalar with respect to each parameter, with zeros where it does not depend on the parameter; ``.grad`` is
    left empty.
    """
    derivatives = torch.autograd.grad(
        value, list(parameters.values()), create_graph=create_graph, materialize_grads=True, allow_unused=True
    )
    return dict(zip(parameters, derivatives, strict=True))


@contextmanager
def in_importance_mode(method: Method) -> Iterator[None]:
    """Put the model into the mode for estimating importance inside the ``with`` block (hyperparameter ``importance_mode``; evaluation mode
    by default).

    In training mode, dropout applies and batch norm uses the items' statistics. Mode and buffers are restored afterwards.
    """
    if method.hyperparameters.get("importance_mode", "evaluation") == "evaluation":
        yield
        return
    model = method.model
    training, buffers = model.training, {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.train()
    try:
        yield
    finally:
        model.train(training)
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])


def mean_over_items(
    method: Method, view: TaskView, values: Callable[[Batch], Tensor], total: Callable[[Tensor], Tensor]
) -> dict[str, Tensor]:
    """Average a function of per-item gradients over the training items of a task, for each parameter; see :func:`mean_over`."""
    return mean_over(method, method.problem.batch([view]), values, total)


def mean_over(method: Method, batch: Batch, values: Callable[[Batch], Tensor], total: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
    """Average a function of per-item gradients over the items of a batch, for each parameter.

    Args:
        values: maps a batch to one scalar per item, float32 [n]. total: maps gradients (float32 [m, *shape]) to the function's sum over m.
    """
    parameters = method.problem.parameters(method.model)
    out = {n: torch.zeros_like(p) for n, p in parameters.items()}
    per_item = values(batch)
    for rows in per_item_gradients(per_item, list(parameters.values()), chunk=method.hyperparameters.chunk):
        for name, gradient in zip(parameters, rows, strict=True):
            out[name] += total(gradient)
    return {n: t / len(per_item) for n, t in out.items()}
