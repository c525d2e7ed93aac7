"""Whether a backbone names its hidden units truly: which entries of which parameters write and read each, and that gates scale them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from cglsuite.backbones import Backbone
from cglsuite.learning.isolation import along
from cglsuite.testing.findings import CheckFailed

__all__ = ["check_units"]


def check_units(model: Backbone, outputs: Callable[[], Tensor]) -> None:
    """With a unit's gate at 0 nothing that writes or reads it affects the outputs; with gates of 1 outputs are as without.

    Args:
        model: its parameters are put back.
        outputs: the model's outputs in evaluation, float32 [n, C].

    Raises:
        CheckFailed: a parameter or size that is not the model's, a gate that is not applied, an entry of another unit.
        NotApplicable: the backbone does not name its units.
    """
    units, parameters = model.units(), dict(model.named_parameters())
    advice = "in units(), name every parameter with the axis along which the units lie; apply self.gated(name, hidden) in encode()"
    for u in units:
        wires = [*u.writers, *u.readers]
        if missing := [w.parameter for w in wires if w.parameter not in parameters]:
            raise CheckFailed(f"units {u.name} are wired to {', '.join(missing)}, which the model does not have", advice)
        for w in wires:
            shape = parameters[w.parameter].shape
            size = parameters[w.parameter].numel() if w.axis is None else shape[w.axis]
            if size != u.width * w.tile or u.width % u.together:
                raise CheckFailed(f"{w.parameter} has {size} entries for the {u.width} units {u.name}; expected {u.width * w.tile}", advice)
    plain = outputs()
    model.gates = {u.name: torch.ones(u.width) for u in units}
    if not torch.equal(plain, outputs()):
        raise CheckFailed("gates of 1 change the outputs", advice)
    for u in units:
        model.gates = {u.name: torch.zeros(u.width)}
        if torch.equal(outputs(), plain):
            raise CheckFailed(f"a gate of 0 on all units {u.name} changes no output", advice)
        closed = torch.arange(u.width) >= u.width - u.together
        model.gates = {u.name: (~closed).float()}
        before = outputs()
        for w in (*u.writers, *u.readers):
            _unmoved(parameters[w.parameter], along(w, parameters[w.parameter], closed), outputs, before, f"{w.parameter} of {u.name}")
    model.gates = {}
    if not torch.equal(outputs(), plain):
        raise CheckFailed("removing the gates leaves other outputs than before", "keep nothing of self.gates between calls")


@torch.no_grad()
def _unmoved(parameter: Tensor, entries: Tensor, outputs: Callable[[], Tensor], before: Tensor, what: str) -> None:
    kept = parameter.clone()
    parameter.add_(entries.to(parameter.dtype))
    after = outputs()
    parameter.copy_(kept)
    if not torch.equal(before, after):
        raise CheckFailed(
            f"the gate of a unit is 0, but changing its entries in {what} changes outputs",
            "name the axis along which the units lie, and `together` where consecutive units depend on each other",
        )
