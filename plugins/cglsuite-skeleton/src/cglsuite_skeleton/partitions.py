"""Partitions of a joint's neighbourhood: the adjacency matrices over which a spatial graph convolution sums."""

from __future__ import annotations

import torch
from torch import Tensor

from cglsuite.errors import SpecError, UnknownNameError
from cglsuite_skeleton.layouts import Layout

__all__ = ["PARTITIONS", "adjacency_stack"]

PARTITIONS = ("uniform", "distance", "spatial", "spatial-truncated")


def adjacency_stack(layout: Layout, strategy: str, max_hop: int = 1) -> Tensor:
    """The adjacency matrices A_k of a skeleton, one per subset of a joint's neighbours (Yan et al. 2018, "Partition Strategies").

    The neighbours of joint w are the joints v within ``max_hop`` bones, w itself included. ``A_k[v, w]`` is one over their number where v
    is in the k-th subset, else 0: all A_k sum to an adjacency whose columns sum to 1. With d(v, w) the distance in bones and r(v) that to
    the centre, the subsets are

    - ``uniform``: one, of all neighbours;
    - ``distance``: one for each d(v, w) in 0..max_hop;
    - ``spatial``: w itself; others with r(v) ≥ r(w); others with r(v) < r(w). The paper's formula puts others with r(v) = r(w), which a
      skeleton without cycles has only from ``max_hop`` 2, with w itself, its text with the farther ones: here, the text decides;
    - ``spatial-truncated``: as the paper's code has it. All joints beyond ``max_hop`` bones from the centre count as equally far, so that
      most bones of the limbs are in the second subset in both directions; and every distance d(v, w) has a second and a third subset of
      its own.

    Args:
        layout: the skeleton, V joints.
        strategy: one of ``PARTITIONS``.
        max_hop: how many bones a convolution reaches.

    Returns:
        float32 [K, V, V], from v (second axis) to w (third axis), with K = 1, ``max_hop`` + 1, 3 and 2 ``max_hop`` + 1.

    Raises:
        UnknownNameError: a strategy that is not known.
        SpecError: ``max_hop`` below 1.
    """
    if strategy not in PARTITIONS:
        raise UnknownNameError("partition", strategy, PARTITIONS)
    if max_hop < 1:
        raise SpecError(f"max_hop = {max_hop}: expected at least 1, a joint's nearest neighbours")
    hops = layout.hops()
    near = hops <= max_hop
    subsets = torch.stack(_subsets(hops, hops[layout.centre], strategy, max_hop)) & near
    return subsets / near.sum(dim=0).float()


def _subsets(hops: Tensor, radius: Tensor, strategy: str, max_hop: int) -> list[Tensor]:
    """Each subset as bool [V, V], whatever lies beyond ``max_hop`` aside; ``radius`` (int64 [V]) is the distance to the centre."""
    if strategy == "uniform":
        return [hops >= 0]
    rings = [hops == hop for hop in range(max_hop + 1)]
    if strategy == "distance":
        return rings
    if strategy == "spatial":
        rings = [hops == 0, hops > 0]
    else:
        radius = radius.clamp(max=max_hop + 1)
    closer = radius.unsqueeze(1) < radius
    return [rings[0]] + [ring & side for ring in rings[1:] for side in (~closer, closer)]
