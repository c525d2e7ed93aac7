"""Partitions of the neighbourhood of a joint, which define the adjacency matrices that a spatial graph convolution sums over."""

from __future__ import annotations

import torch
from torch import Tensor

from cglsuite.base.errors import SpecError, UnknownNameError
from cglsuite_skeleton.layouts import Layout

PARTITIONS = ("uniform", "distance", "spatial", "spatial-truncated")


def adjacency_stack(layout: Layout, strategy: str, max_hop: int = 1) -> Tensor:
    """Build the adjacency matrices A_k of a skeleton, one per subset of the neighbours of a joint (Yan et al. 2018, "Partition
    Strategies").

    The neighbours of joint w are the joints v within ``max_hop`` bones, w itself included. ``A_k[v, w]`` is one over their number if v is
    in the k-th subset, else 0, so the columns of ``Σ_k A_k`` sum to 1. With d(v, w) the distance in bones and r(v) that to
    the centre, the subsets are

    - ``uniform``: one, of all neighbours;
    - ``distance``: one for each d(v, w) in 0..max_hop;
    - ``spatial``: w itself; others with r(v) ≥ r(w); others with r(v) < r(w). Others with r(v) = r(w), which acyclic skeletons have only
      from ``max_hop`` 2, are with w in the paper's formula but with the farther ones in its text, as here;
    - ``spatial-truncated``: as in the paper's code. All joints beyond ``max_hop`` bones from the centre count as equally far, so most limb
      bones are in the second subset in both directions. Every distance d(v, w) has its own second and third subset.

    Args:
        layout: the skeleton, V joints.
        strategy: one of ``PARTITIONS``.
        max_hop: reach of a convolution in bones.

    Returns:
        float32 [K, V, V], from v (second axis) to w (third axis), with K = 1, ``max_hop`` + 1, 3 and 2 ``max_hop`` + 1.

    Raises:
        UnknownNameError: unknown strategy.
        SpecError: ``max_hop`` below 1.
    """
    if strategy not in PARTITIONS:
        raise UnknownNameError("partition", strategy, PARTITIONS)
    if max_hop < 1:
        raise SpecError(f"max_hop = {max_hop}: expected at least 1, which covers the nearest neighbours of a joint")
    hops = layout.hops()
    near = hops <= max_hop
    subsets = torch.stack(_subsets(hops, hops[layout.centre], strategy, max_hop)) & near
    return subsets / near.sum(dim=0).float()


def _subsets(hops: Tensor, radius: Tensor, strategy: str, max_hop: int) -> list[Tensor]:
    """Each subset of neighbours as bool [V, V], regardless of ``max_hop``; ``radius`` (int64 [V]) is the distance to the centre."""
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
