"""Growing heads, whose outputs are initialised when their classes arrive."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from cglsuite.backbones.base import Backbone
from cglsuite.backbones.layers import FeatureLinear, GCNConv, GINConv
from cglsuite.base.errors import NotApplicable


@torch.no_grad()
def redraw_outputs(model: Backbone, fresh: Backbone, outputs: Tensor, optimizer: Optimizer | None = None) -> None:
    """Copy the head's values for ``outputs`` (bool [C]) from ``fresh``, a newly initialised model of the same kind.

    The head always has its full width, so an optimiser over the model's parameters includes outputs of future classes; this replaces the
    values that weight decay has left there. If an ``optimizer`` is carried over, its moments of these outputs are reset.

    Raises:
        NotApplicable: the head's outputs are not separable.
    """
    for (mine, axis), (new, _) in zip(output_axes(model.head), output_axes(fresh.head), strict=True):
        ids = outputs.nonzero().flatten()
        mine.index_copy_(axis, ids, new.index_select(axis, ids))
        for moment in optimizer.state.get(mine, {}).values() if optimizer is not None else ():
            if isinstance(moment, Tensor) and moment.shape == mine.shape:
                moment.index_fill_(axis, ids, 0)


def output_axes(head: nn.Module) -> Iterator[tuple[Tensor, int]]:
    """Iterate over the head's parameters and their output axes."""
    if isinstance(head, nn.Linear):
        yield head.weight, 0
    elif isinstance(head, FeatureLinear):
        yield head.weight, 1
    elif isinstance(head, (GCNConv, GINConv)):
        yield head.linear.weight, 1
    else:
        raise NotApplicable(f"scenario.head = growing: outputs of a {type(head).__name__} head cannot be drawn one by one; expected fixed")
    if isinstance(head.bias, nn.Parameter):
        yield head.bias, 0
