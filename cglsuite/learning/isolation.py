"""For methods that give every task a part of the network: outputs by task, exchanged weights, masked updates, norms of frozen units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from cglsuite.backbones import Wire
from cglsuite.backbones.growth import output_axes
from cglsuite.errors import SpecError
from cglsuite.learning.method import Method
from cglsuite.streams import Batch

__all__ = ["Held", "along", "by_task", "frozen_units", "output_wires", "swapped"]


def by_task(method: Method, query: Batch, use: Callable[[int], AbstractContextManager[object]], learnt: int) -> Tensor:
    """Outputs of a query's items, each under its own task.

    Args:
        use: position of a task to a context within which the model answers for that task.
        learnt: number of tasks learnt. An item of an unknown task, or of one that was not learnt, is answered under the latest one.

    Returns:
        float32 [n, C].
    """
    latest = learnt - 1
    if query.tasks is None:
        with use(latest):
            return method.forward(query)
    tasks = torch.where(query.tasks < learnt, query.tasks, latest)
    parts, places = list[Tensor](), list[Tensor]()
    for k in tasks.unique().tolist():
        chosen = (tasks == k).nonzero().flatten()
        allowed = query.allowed if query.allowed.dim() == 1 else query.allowed[chosen]
        with use(k):
            parts.append(
                method.forward(replace(query, ids=query.ids[chosen], tasks=query.tasks[chosen], allowed=allowed, y=None, cache={}))
            )
        places.append(chosen)
    joined = torch.cat(parts)
    return torch.empty_like(joined).index_copy(0, torch.cat(places), joined)


@contextmanager
def swapped(model: nn.Module, values: Mapping[str, Tensor]) -> Iterator[None]:
    """Within the context parameters and buffers of ``model`` have other values; afterwards their own, bit for bit.

    Args:
        values: by name in the model, in the shape of what they replace.

    Raises:
        SpecError: a name that the model does not have.
    """
    known = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    if unknown := sorted(set(values) - set(known)):
        raise SpecError(f"{type(model).__name__} has no parameter or buffer {', '.join(unknown)}")
    own = {name: known[name].data for name in values}
    for name, value in values.items():
        known[name].data = value.to(own[name])
    try:
        yield
    finally:
        for name, value in own.items():
            known[name].data = value


class Held:
    """Masks an optimiser's updates: ``θ ← θ₀ + mask ⊙ (θ - θ₀)`` around its step.

    A masked gradient alone does not hold a weight: weight decay and the moments of earlier steps move it all the same. Call :meth:`before`
    in ``before_step`` and :meth:`after` in ``after_step``.

    Args:
        model: whose parameters are held.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._before: dict[str, tuple[Tensor, Tensor, Tensor]] = {}

    @torch.no_grad()
    def before(self, masks: Mapping[str, Tensor]) -> None:
        """Remember the parameters named in ``masks``: bool or float32 masks that broadcast to them, 1 = moves freely, 0 = stays.

        Gradients are masked too, so that moments gather nothing where the mask is 0.
        """
        parameters = dict(self.model.named_parameters())
        self._before = {}
        for name, mask in masks.items():
            parameter = parameters[name]
            if parameter.grad is not None:
                parameter.grad.mul_(mask)
            self._before[name] = (parameter, parameter.detach().clone(), mask)

    @torch.no_grad()
    def after(self) -> None:
        """Take back what the step did to masked entries; those with mask 0 keep their bits."""
        for parameter, start, mask in self._before.values():
            if mask.dtype == torch.bool:
                parameter.copy_(torch.where(mask, parameter, start))
            else:
                moved = start + mask * (parameter - start)
                parameter.copy_(torch.where(mask == 0, start, torch.where(mask == 1, parameter, moved)))
        self._before = {}


def along(wire: Wire, parameter: Tensor, values: Tensor) -> Tensor:
    """One value per unit, laid out to broadcast against the parameter that a wire names.

    Args:
        parameter: of any shape. values: [width], any dtype.

    Returns:
        values of the parameter's number of dimensions.
    """
    if wire.axis is None:
        return values.view(parameter.shape)
    tiled = values.repeat(wire.tile)
    shape = [1] * parameter.dim()
    shape[wire.axis] = len(tiled)
    return tiled.view(shape)


def output_wires(head: nn.Module) -> tuple[Wire, ...]:
    """The head's parameters with the axis along which outputs lie; names as in a model that calls it ``head``.

    Raises:
        NotApplicable: a head without separable outputs.
    """
    names = {id(parameter): name for name, parameter in head.named_parameters()}
    return tuple(Wire(f"head.{names[id(parameter)]}", axis) for parameter, axis in output_axes(head))


@contextmanager
def frozen_units(norms: Mapping[str, tuple[nn.Module, Tensor]]) -> Iterator[None]:
    """Within the context some units of batch norms keep and use their running statistics in training.

    Args:
        norms: by any name a norm and bool [width], true for units that are frozen.
    """
    hooks = [norm.register_forward_hook(_Frozen(norm, mask)) for norm, mask in norms.values() if isinstance(norm, _BatchNorm)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class _Frozen:
    """A forward hook: frozen units are normalised by the running statistics, which it puts back after the pass has updated them."""

    def __init__(self, norm: _BatchNorm, mask: Tensor) -> None:
        self.norm, self.mask = norm, mask
        self.start = [b.clone() for b in (norm.running_mean, norm.running_var) if b is not None]

    def __call__(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        norm = self.norm
        if not norm.training or norm.running_mean is None or norm.running_var is None:
            return output
        mean, var = self.start
        with torch.no_grad():
            norm.running_mean.copy_(torch.where(self.mask, mean, norm.running_mean))
            norm.running_var.copy_(torch.where(self.mask, var, norm.running_var))
        fixed = (inputs[0] - mean) * (var + norm.eps).rsqrt()
        if norm.affine:
            fixed = fixed * norm.weight + norm.bias
        return torch.where(self.mask, fixed, output)
