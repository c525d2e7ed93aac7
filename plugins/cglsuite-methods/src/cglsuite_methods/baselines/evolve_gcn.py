"""EvolveGCN: a recurrent cell evolves the convolution weights from one task to the next."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from cglsuite import Method
from cglsuite.backbones import Backbone
from cglsuite.backbones.layers import GCNConv, GINConv
from cglsuite.base.errors import NotApplicable
from cglsuite.streams import TaskView


class EvolveGCN(Method):
    """Evolve the weights of every convolution of the body by ``W_t = GRU(W_{t-1})``, with tasks as time steps (Pareja et al. 2020, variant
    O; AGALE).

    W_0 is trained in the first task. Later tasks change these weights only through the cells; biases, normalisation layers and the head are
    trained as usual. The method has no other protection against forgetting, because it is a dynamic-graph baseline.

    As benchmarked by AGALE (``start=drawn``), with the version of PyTorch Geometric Temporal that its code requires, W_0 keeps its initial
    values and every forward pass takes one step from it, ``W = GRU(W_0)``. The weights do not evolve, and all tasks train the cells.
    """

    def setup(self) -> None:
        """Replace the convolution weights of the model with evolving weights."""
        evolve(self.model)
        for _, cell in self._weights():
            cell.from_drawn = self.hyperparameters.get("start", "previous") == "drawn"

    def before_task(self, view: TaskView) -> None:
        """Begin a time step, in which the cells update the weights of the previous step."""
        for _, cell in self._weights():
            cell.moving, cell.first = True, int(cell.steps) == 0

    @torch.no_grad()
    def after_task(self, view: TaskView) -> None:
        """End the time step: the next step starts from the current weights. Outputs do not change."""
        for weight, cell in self._weights():
            if not cell.from_drawn:
                weight.original.copy_(weight())
            cell.moving = False
            cell.steps += 1

    def _weights(self) -> Iterator[tuple[parametrize.ParametrizationList, EvolvingWeight]]:
        """Yield each evolving weight with its cell. Calling the weight computes its current value; ``original`` is its value before the
        step.
        """
        for module in self.model.modules():
            if isinstance(module, parametrize.ParametrizationList) and isinstance(cell := module[0], EvolvingWeight):
                yield module, cell


def evolve(model: Backbone) -> None:
    """Replace the convolution weights of the body with evolving ones in place; their cells and initial weights become model parameters.

    Raises:
        NotApplicable: the backbone's body is not a stack of GCN or GIN convolutions.
    """
    body = getattr(model, "body", None)
    if not isinstance(body, nn.ModuleList) or not all(isinstance(layer, GCNConv | GINConv) for layer in body):
        raise NotApplicable(
            f"evolve-gcn requires a stack of GCN or GIN convolutions, but the body of {type(model).__name__} contains other layers; "
            "choose the "
            "backbone gcn or gin"
        )
    for linear in (layer.linear for layer in body if isinstance(layer, GCNConv | GINConv)):
        parametrize.register_parametrization(linear, "weight", EvolvingWeight(linear.weight))


class EvolvingWeight(nn.Module):
    """Compute ``W_t = GRU(x=W_{t-1}, h=W_{t-1})``, where the rows of W (float32 [in, out]) are the batch of the cell.

    The cell of the paper has gates of size [in, in], which act on the columns of W. Here, gates have size [out, out] and act on rows: with
    the thousands of features of a citation graph, [in, in] gates would be about a hundred times as large as the model.

    ``moving`` is true only during training. ``steps`` counts finished time steps: W_0 is trained in the ``first`` step, and later steps
    start from constants. With ``from_drawn``, the weight is always one step from a start that is never trained.
    """

    steps: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.cell = nn.GRUCell(weight.shape[1], weight.shape[1], device=weight.device)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64, device=weight.device))
        self.moving = False
        self.first = True
        self.from_drawn = False

    def forward(self, start: Tensor) -> Tensor:
        """Compute the current weight from the weight at the start of the step: float32 [in, out]."""
        if not self.moving and not self.from_drawn:
            return start
        before = start if self.first and not self.from_drawn else start.detach()
        weight: Tensor = self.cell(before, before)
        return weight
