"""Exchanged weights, masked updates, and values laid out along the units of a parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from cglsuite.backbones import Wire
from cglsuite.backbones.growth import output_axes
from cglsuite.base.errors import SpecError


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
        self._prepared: dict[str, _Mask] = {}
        self._held: list[_Mask] = []

    @torch.no_grad()
    def before(self, masks: Mapping[str, Tensor]) -> None:
        """Remember the parameters named in ``masks``: bool or float32 masks that broadcast to them, 1 = moves freely, 0 = stays.

        Gradients are masked too, so that moments gather nothing where the mask is 0. A parameter that moves freely as a whole costs nothing
        if it is not named. Masks are laid out once: give the same tensors at every step. What is held is read again only after a write that
        autograd counts (every one but an in-place write to ``.data``).
        """
        parameters = dict(self.model.named_parameters())
        self._held = []
        for name, mask in masks.items():
            prepared = self._prepared.get(name)
            if prepared is None or not prepared.serves(parameters[name], mask):
                prepared = self._prepared[name] = _Mask(parameters[name], mask)
            prepared.before()
            self._held.append(prepared)

    @torch.no_grad()
    def after(self) -> None:
        """Take back what the step did to masked entries; those with mask 0 keep their bits."""
        for prepared in self._held:
            prepared.after()
        self._held = []


class _Mask:
    """A parameter's mask, and the bits of what is held. Entries are chosen by their bits: exact for every value."""

    def __init__(self, parameter: Tensor, mask: Tensor) -> None:
        self.parameter, self.mask, self.version = parameter, mask, mask._version
        self.values = parameter.detach()
        self.weight = mask.to(parameter.dtype)
        self.stays = _all_bits(mask == 0, parameter)
        self.rest = ~self.stays
        self.held, self.left = torch.empty_like(self.values), -1
        self.partly = _partly_held(mask, parameter)
        self.part: Any = self.weight.expand_as(parameter)[self.partly] if self.partly else ()

    def serves(self, parameter: Tensor, mask: Tensor) -> bool:
        """Whether it was made for these, as they are."""
        same = self.parameter is parameter and self.mask is mask and self.version == mask._version
        return same and self.values.data_ptr() == parameter.data_ptr() and self.values.shape == parameter.shape

    def before(self) -> None:
        """Mask the gradient, and keep what may have to be put back: of entries that stay only if somebody has written to the parameter."""
        if self.parameter.grad is not None:
            self.parameter.grad.mul_(self.weight)
        if self.left != self.parameter._version:
            torch.bitwise_and(_bits(self.values), self.stays, out=_bits(self.held))
        if len(self.part):
            self.start = self.values[self.partly]

    def after(self) -> None:
        """Put back what stays, and of the steps of the others what is too much."""
        if len(self.part):
            self.values[self.partly] = self.start + self.part * (self.values[self.partly] - self.start)
        _bits(self.values).bitwise_and_(self.rest).bitwise_or_(_bits(self.held))
        self.left = self.parameter._version


def _partly_held(mask: Tensor, parameter: Tensor) -> tuple[Tensor, ...]:
    """Index of the entries between 0 and 1; a bool mask has none, and no device is asked."""
    if mask.dtype == torch.bool:
        return ()
    return ((mask != 0) & (mask != 1)).expand_as(parameter).nonzero(as_tuple=True)


def _bits(values: Tensor) -> Tensor:
    """The same memory as integers of the same size."""
    return values.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[values.element_size()])


def _all_bits(chosen: Tensor, like: Tensor) -> Tensor:
    """All bits where chosen, none elsewhere: integers of the size of an entry of ``like``, shaped like ``chosen``."""
    return -chosen.to(_bits(like.detach()).dtype)


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
