"""Growing heads, which initialise outputs only when their classes arrive."""

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
    """Re-initialise some outputs of the head by copying them from ``fresh``, a newly initialised model of the same type.

    The head always has its full width, so the optimiser also updates the outputs of future classes. This replaces the values that weight
    decay has changed in the meantime. If an ``optimizer`` is carried over, its moments for these outputs are reset.

    Args:
        outputs: bool [C], the outputs to re-initialise.

    Raises:
        NotApplicable: if the head's outputs are not separable.
    """
    for (mine, axis), (new, _) in zip(output_axes(model.head), output_axes(fresh.head), strict=True):
        ids = outputs.nonzero().flatten()
        mine.index_copy_(axis, ids, new.index_select(axis, ids))
        for moment in optimizer.state.get(mine, {}).values() if optimizer is not None else ():
            if isinstance(moment, Tensor) and moment.shape == mine.shape:
                moment.index_fill_(axis, ids, 0)


def output_axes(head: nn.Module) -> Iterator[tuple[Tensor, int]]:
    """Iterate over (parameter, output axis) for the parameters of a head.

    Raises:
        NotApplicable: if the head's outputs are not separable.
    """
    if isinstance(head, nn.Linear):
        yield head.weight, 0
    elif isinstance(head, FeatureLinear):
        yield head.weight, 1
    elif isinstance(head, (GCNConv, GINConv)):
        yield head.linear.weight, 1
    else:
        raise NotApplicable(f"scenario.head = growing: a {type(head).__name__} head cannot initialise outputs one by one; expected 'fixed'")
    if isinstance(head.bias, nn.Parameter):
        yield head.bias, 0
