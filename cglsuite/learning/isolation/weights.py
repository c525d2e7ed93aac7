"""Swap weights temporarily, mask optimiser updates, and broadcast per-unit values against parameters."""

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
    """Replace parameters and buffers of ``model`` within the ``with`` block, and restore them bit for bit afterwards.

    Args:
        values: the new values by their names in the model, with unchanged shapes.

    Raises:
        SpecError: if the model has no parameter or buffer of that name.
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
    """Mask the updates of an optimiser step: ``θ ← θ₀ + mask ⊙ (θ - θ₀)``.

    Masking the gradient alone does not fix a weight, because weight decay and the moments of earlier steps still change it. Call
    :meth:`before` in ``before_step`` and :meth:`after` in ``after_step``.

    Args:
        model: the model that has the masked parameters.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._prepared: dict[str, _Mask] = {}
        self._held: list[_Mask] = []

    @torch.no_grad()
    def before(self, masks: Mapping[str, Tensor]) -> None:
        """Save the parameters named in ``masks`` before an optimiser step. Masks are bool or float32: 1 = free to change, 0 = fixed.

        Masks broadcast to their parameters. Gradients are masked too, so the optimiser's moments accumulate nothing where the mask is 0.
        Omit parameters that are entirely free. Masks are prepared once, so pass the same tensors at every step. Fixed values are reread
        only after a write that autograd counts (any write except an in-place write to ``.data``).
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
        """Undo the step for masked entries. Entries with mask 0 keep their exact bits."""
        for prepared in self._held:
            prepared.after()
        self._held = []


class _Mask:
    """A parameter's mask and the bits of its fixed entries. Entries are selected by bits, which is exact for every value."""

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
        """Return whether this object was created for this parameter and mask, and both are unchanged."""
        same = self.parameter is parameter and self.mask is mask and self.version == mask._version
        return same and self.values.data_ptr() == parameter.data_ptr() and self.values.shape == parameter.shape

    def before(self) -> None:
        """Mask the gradient and save the values that may have to be restored. Fixed entries are saved only if the parameter has changed."""
        if self.parameter.grad is not None:
            self.parameter.grad.mul_(self.weight)
        if self.left != self.parameter._version:
            torch.bitwise_and(_bits(self.values), self.stays, out=_bits(self.held))
        if len(self.part):
            self.start = self.values[self.partly]

    def after(self) -> None:
        """Restore fixed entries and scale back the steps of partly masked ones."""
        if len(self.part):
            self.values[self.partly] = self.start + self.part * (self.values[self.partly] - self.start)
        _bits(self.values).bitwise_and_(self.rest).bitwise_or_(_bits(self.held))
        self.left = self.parameter._version


def _partly_held(mask: Tensor, parameter: Tensor) -> tuple[Tensor, ...]:
    """Return the indices of entries strictly between 0 and 1. Bool masks have none, and checking them needs no device synchronisation."""
    if mask.dtype == torch.bool:
        return ()
    return ((mask != 0) & (mask != 1)).expand_as(parameter).nonzero(as_tuple=True)


def _bits(values: Tensor) -> Tensor:
    """View the same memory as integers of the same size."""
    return values.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[values.element_size()])


def _all_bits(chosen: Tensor, like: Tensor) -> Tensor:
    """Return integers with all bits set where ``chosen`` and none elsewhere, in the entry size of ``like``, shaped like ``chosen``."""
    return -chosen.to(_bits(like.detach()).dtype)


def along(wire: Wire, parameter: Tensor, values: Tensor) -> Tensor:
    """Reshape per-unit values so that they broadcast against a wire's parameter.

    Args:
        parameter: the wire's parameter, of any shape. values: [width], any dtype.

    Returns:
        The values, with the same number of dimensions as the parameter.
    """
    if wire.axis is None:
        return values.view(parameter.shape)
    tiled = values.repeat(wire.tile)
    shape = [1] * parameter.dim()
    shape[wire.axis] = len(tiled)
    return tiled.view(shape)


def output_wires(head: nn.Module) -> tuple[Wire, ...]:
    """Return the head's parameters with their output axes, named as in a model that calls this module ``head``.

    Raises:
        NotApplicable: if the head's outputs are not separable.
    """
    names = {id(parameter): name for name, parameter in head.named_parameters()}
    return tuple(Wire(f"head.{names[id(parameter)]}", axis) for parameter, axis in output_axes(head))
