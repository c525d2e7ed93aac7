"""Functions shared by methods that learn synthetic items: feature propagation, equal class shares, and steps with a separate rate."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from cglsuite.graphs import MessageGraph
from cglsuite.learning import Phase
from cglsuite.streams import Batch

_COLUMNS = 512  # features propagated at a time: N times as many floats are held


def equal_places(counts: list[int], room: int | None, most: int) -> list[int]:
    """Divide ``room`` places (``None`` = no limit) equally among classes that have ``counts`` items each. No class gets more than ``most``
    places or more places than it has items. Remaining places go to larger classes first, also if there are fewer places than classes.
    """
    ceilings = [min(most, count) for count in counts]
    room = sum(ceilings) if room is None else min(room, sum(ceilings))
    by_size = sorted(range(len(counts)), key=lambda i: (-counts[i], i))
    places = [0] * len(counts)
    while room:
        for i in by_size:
            if room and places[i] < ceilings[i]:
                places[i] += 1
                room -= 1
    return places


def propagated(batch: Batch, hops: int) -> Tensor:
    """Compute ``S^hops X`` for the nodes of the batch, with S = D^-1/2 (A + I) D^-1/2: dense float32 [n, F]. For pairs, both endpoints are
    concatenated: [n, 2F].
    """
    graph: MessageGraph = batch.graph
    nodes, blocks = batch.ids.flatten(), []
    for columns in torch.arange(graph.n_features, device=graph.device).split(_COLUMNS):
        if isinstance(graph.features, Tensor):
            hidden = graph.features[:, columns]
        else:
            chosen = torch.zeros(graph.n_features, len(columns), device=graph.device)
            chosen[columns, torch.arange(len(columns), device=graph.device)] = 1.0
            hidden = graph.features @ chosen
        for _ in range(hops):
            hidden = graph.propagate("sym", hidden)
        blocks.append(hidden[nodes])
    return torch.cat(blocks, dim=1).view(len(batch), -1)


def optimised(
    x: nn.Parameter, objective: Callable[[int], Tensor], *, lr: float, steps: int, epochs: int, restart: int | None = None
) -> Phase:
    """Build a phase of exactly ``steps`` Adam steps on ``x`` with a separate learning rate, regardless of the protocol's optimiser and
    rate.

    The steps are applied as soon as gradients arrive. The gradients are then discarded, so the optimiser of the phase finds none and
    changes nothing. In protocols with mini-batches, one batch is one step; the remaining batches of the last epoch have a loss of 0.

    Args:
        objective: number of steps taken so far to the scalar to minimise. epochs: the protocol's. restart: steps after which the moments
            start anew.
    """
    mean, square = torch.zeros_like(x), torch.zeros_like(x)
    taken = since = 0

    @torch.no_grad()
    def step(_: Tensor) -> None:
        nonlocal taken, since
        gradient, x.grad = x.grad, None
        if taken == steps or gradient is None:
            return
        if restart is not None and taken % restart == 0:
            mean.zero_()
            square.zero_()
            since = 0
        taken, since = taken + 1, since + 1
        adam_step(x, gradient, mean, square, lr=lr, t=since)

    x.register_post_accumulate_grad_hook(step)
    return Phase(
        name="condense",
        share=steps / epochs,
        parameters=[x],
        loss=lambda _: objective(taken) if taken < steps else 0.0 * x.sum(),
        monitor="none",
        stop=lambda *_: taken >= steps,
    )


@torch.no_grad()
def adam_step(x: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, *, lr: float, t: int) -> None:
    """Apply the t-th step of Adam (Kingma & Ba 2015) to ``x`` in place, like :class:`torch.optim.Adam` with default settings.

    That class imports torch's compiler, which takes longer than condensing a small task.

    Args:
        mean, square: moving averages of the gradient and of its square, updated in place; shapes of all tensors are equal.
    """
    mean.lerp_(gradient, 0.1)
    square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    scale = (square / (1 - 0.999**t)).sqrt_().add_(1e-8)
    x.addcdiv_(mean, scale, value=-lr / (1 - 0.9**t))
