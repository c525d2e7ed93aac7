"""Alternative weight initialisations, as in ``torch.nn.Linear`` and published implementations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cglsuite.backbones.base import Backbone
from cglsuite.backbones.layers import GATConv, GCNConv, GINConv
from cglsuite.base.errors import SpecError


@torch.no_grad()
def redraw(model: Backbone, how: str) -> None:
    """Re-initialise the weights of a node-level backbone in place, using torch's global generator.

    For a linear map with ``i`` inputs and ``o`` outputs:

    - ``glorot``: keeps the initialisation of the layers (uniform within √(6 / (i + o)), biases 0; a linear head as in ``linear``);
    - ``linear``: weights and biases uniform within 1/√i, like ``torch.nn.Linear``;
    - ``xavier-normal``: weights N(0, 4 / (i + o)), which is Glorot's normal initialisation with gain √2; biases unchanged;
    - ``fan-in-normal``: weights N(0, 1 / i), biases as in ``linear``.

    Each of the two vectors of an attention layer with ``h`` heads and ``d`` units is treated as a map with ``h d`` inputs and ``d``
    outputs. Under ``linear``, each is uniform within 1/√d. ``fan-in-normal`` treats them like ``xavier-normal``, as in the code that it
    reproduces.

    Raises:
        SpecError: if ``how`` is unknown.
    """
    if how == "glorot":
        return
    if how not in ("linear", "xavier-normal", "fan-in-normal"):
        raise SpecError(f"backbone.init = {how!r}: expected 'glorot', 'linear', 'xavier-normal' or 'fan-in-normal'")
    for module in model.modules():
        if isinstance(module, GCNConv | GINConv | GATConv):
            _map(module.linear.weight, module.linear.weight.shape, module.bias, how)
        elif isinstance(module, nn.Linear):
            _map(module.weight, (module.in_features, module.out_features), module.bias, how)
        if isinstance(module, GATConv):
            for vector in (module.target, module.source):
                _attention(vector, how)


def _map(weight: Tensor, shape: Sequence[int], bias: Tensor | None, how: str) -> None:
    """Initialise a linear map of ``shape`` (inputs, outputs), whatever the layout of its weight."""
    inputs, outputs = shape
    bound = 1 / math.sqrt(inputs)
    if how == "linear":
        weight.uniform_(-bound, bound)
    else:
        weight.normal_(0, bound if how == "fan-in-normal" else 2 / math.sqrt(inputs + outputs))
    if bias is not None and how != "xavier-normal":
        bias.uniform_(-bound, bound)


def _attention(vector: Tensor, how: str) -> None:
    """Initialise an attention vector: float32 [heads, units]."""
    heads, units = vector.shape
    if how == "linear":
        vector.uniform_(-1 / math.sqrt(units), 1 / math.sqrt(units))
    else:
        vector.normal_(0, 2 / math.sqrt(heads * units + units))
