"""EvolveGCN: the weights of the convolutions evolve from task to task through a recurrent cell."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from cglsuite import Method
from cglsuite.backbones import Backbone
from cglsuite.backbones.layers import GCNConv, GINConv
from cglsuite.errors import NotApplicable
from cglsuite.streams import TaskView

__all__ = ["EvolveGCN", "EvolvingWeight", "evolve"]


class EvolveGCN(Method):
    """``W_t = GRU(W_{t-1})`` for every convolution of the body, tasks being the time steps (Pareja et al. 2020, the O variant; AGALE).

    In the first task W_0 is learnt as well; from then on a task moves these weights only through the cells, while biases, norms and the
    head are trained as ever. There is no other measure against forgetting: it is a dynamic-graph baseline.
    """

    def setup(self) -> None:
        """Let the built model's convolutions evolve."""
        evolve(self.model)

    def before_task(self, view: TaskView) -> None:
        """A time step begins: weights are those of the last one, moved by the cells."""
        for _, cell in self._weights():
            cell.moving = True

    @torch.no_grad()
    def after_task(self, view: TaskView) -> None:
        """The time step ends: its weights become those that the next one starts from, which changes no output."""
        for weight, cell in self._weights():
            weight.original.copy_(weight())
            cell.moving = False
            cell.steps += 1

    def _weights(self) -> Iterator[tuple[parametrize.ParametrizationList, EvolvingWeight]]:
        """Every weight that evolves, and its cell: called, it is the weight of this moment; ``original`` is what the step started from."""
        for module in self.model.modules():
            if isinstance(module, parametrize.ParametrizationList) and isinstance(cell := module[0], EvolvingWeight):
                yield module, cell


def evolve(model: Backbone) -> None:
    """Make the weights of the body's convolutions evolve, in place: cells and starts become parameters of the model.

    Raises:
        NotApplicable: a backbone whose body is no stack of GCN or GIN convolutions.
    """
    body = getattr(model, "body", None)
    if not isinstance(body, nn.ModuleList) or not all(isinstance(layer, GCNConv | GINConv) for layer in body):
        raise NotApplicable(
            f"evolve-gcn evolves the linear maps of GCN and GIN convolutions; the body of {type(model).__name__} holds others: choose the "
            "backbone gcn or gin"
        )
    for linear in (layer.linear for layer in body if isinstance(layer, GCNConv | GINConv)):
        parametrize.register_parametrization(linear, "weight", EvolvingWeight(linear.weight))


class EvolvingWeight(nn.Module):
    """``W_t = GRU(x=W_{t-1}, h=W_{t-1})`` with the rows of W (float32 [in, out]) as the cell's batch.

    The paper's cell has gates of [in, in], which act on the columns of W. Here they are [out, out] and act on its rows, whatever the
    size: for the thousands of features of a citation graph the former alone would be some hundred times as large as the model.

    ``moving`` is true only while a task is learnt. ``steps`` counts the time steps that have ended: in the first the start W_0 is learnt,
    the starts of later ones are constants.
    """

    steps: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.cell = nn.GRUCell(weight.shape[1], weight.shape[1], device=weight.device)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64, device=weight.device))
        self.moving = False

    def forward(self, start: Tensor) -> Tensor:
        """The weight of this moment from what it starts from: float32 [in, out]."""
        if not self.moving:
            return start
        before = start.detach() if self.steps > 0 else start
        weight: Tensor = self.cell(before, before)
        return weight
