"""Exchanged weights, masked updates, and values laid out along the units of a parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from cglsuite.backbones import Wire
from cglsuite.backbones.growth import output_axes
from cglsuite.errors import SpecError

__all__ = ["Held", "along", "output_wires", "swapped"]


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
