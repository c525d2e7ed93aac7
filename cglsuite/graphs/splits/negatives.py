"""Negative pairs: fixed lists for evaluation, and random destinations for training."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from cglsuite.base.errors import DataError
from cglsuite.graphs.upload import uploaded

_TRIES = 100


def oriented(pairs: Tensor, undirected: bool) -> Tensor:
    """Return pairs (int64 [2, n]) with the lower node first if undirected, so that the order within a pair carries no information."""
    ordered: Tensor = pairs.sort(dim=0).values if undirected else pairs
    return ordered


def pair_keys(pairs: Tensor, n_nodes: int, undirected: bool) -> Tensor:
    """Encode each pair (int64 [2, n]) as a unique number, the same for both directions if ``undirected``: int64 [n]."""
    source, target = oriented(pairs, undirected)
    keys: Tensor = source * n_nodes + target
    return keys


def by_type(types: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sort the nodes by type (int64 [N], at least 0). Return them with the count and first position of each type: int64 [N], [t], [t]."""
    count = torch.bincount(types)
    return types.argsort(stable=True), count, count.cumsum(0) - count


def random_destinations(
    destinations: Tensor, types: Tensor, generator: torch.Generator, grouped: tuple[Tensor, Tensor, Tensor] | None = None
) -> Tensor:
    """Draw a node of the same type for each node in ``destinations`` (int64 [n]), uniformly with replacement: int64 [n].

    Draws are not filtered, so a pair with the drawn destination may be a link.

    Args:
        types: int64 [N], at least 0. generator: a CPU generator. Equal states give equal draws on every device.
        grouped: :func:`by_type` of ``types``, for repeated draws.
    """
    order, count, start = grouped or by_type(types)
    type_of = types[destinations]
    uniform = uploaded(torch.rand(len(destinations), dtype=torch.float64, generator=generator), types.device)
    return order[start[type_of] + (uniform * count[type_of]).long()]


def draw_negatives(
    links: Tensor,
    count: int,
    n_nodes: int,
    *,
    seed: int,
    others: Tensor | None = None,
    types: Tensor | None = None,
    undirected: bool = True,
    name: str = "links",
) -> Tensor:
    """Draw ``count`` distinct pairs without a link: int64 [2, count], in random order, ``oriented`` if undirected.

    Pairs are drawn with PyG's ``negative_sampling``, uniformly over pairs of distinct nodes that are neither in ``links`` nor in ``others``
    (in either direction if undirected). With node types, each combination of types occurs in proportion to its number of links.

    Args:
        links: int64 [2, M]. others: int64 [2, B], additional pairs that must not be drawn. types: int64 [N], at least 0; ``None`` = one
            type.
        seed: seed of the draw; global random states are left unchanged.

    Raises:
        DataError: there are fewer than ``count`` such pairs. The message contains ``name``.
    """
    taken = links if others is None else torch.cat([links, others], dim=1)
    if undirected:
        taken = torch.cat([taken, taken.flip(0)], dim=1)
    types = torch.zeros(n_nodes, dtype=torch.int64) if types is None else types
    kinds, kind_of = oriented(types[links], undirected).unique(dim=1, return_inverse=True)
    drawn = []
    shuffle = torch.Generator().manual_seed(seed)
    for i, wanted in enumerate(_shares(torch.bincount(kind_of), count)):
        a, b = ((types == kind).nonzero().flatten() for kind in kinds[:, i])
        block = _Block(taken, a, b, n_nodes, undirected)
        if block.free < wanted:
            raise DataError(
                f"{name}: {wanted} negatives are needed, but only {block.free} node pairs"
                f"{' of one combination of types' if len(kinds[0]) > 1 else ''} have no link; lower scenario.negatives, or remove tasks "
                "that link all pairs"
            )
        drawn.append(block.draw(wanted, seed + i, shuffle))
    together = torch.cat(drawn, dim=1)
    return oriented(together[:, torch.randperm(together.shape[1], generator=shuffle)], undirected)


def _shares(counts: Tensor, total: int) -> list[int]:
    """Divide ``total`` in proportion to ``counts`` (int64 [n]) by the largest-remainder method."""
    exact = counts.double() / counts.sum() * total
    shares = exact.floor().long()
    left = total - int(shares.sum())
    shares[(exact - shares).argsort(descending=True, stable=True)[:left]] += 1
    out: list[int] = shares.tolist()
    return out


class _Block:
    """The candidate pairs from nodes ``a`` to nodes ``b`` (int64, ascending; identical or disjoint sets) that are not links."""

    def __init__(self, taken: Tensor, a: Tensor, b: Tensor, n_nodes: int, undirected: bool) -> None:
        self.a, self.b, self.apart = a, b, not torch.equal(a, b)
        self.both_ways = undirected and not self.apart
        places = []
        for nodes, ends in ((a, taken[0]), (b, taken[1])):
            place = torch.full((n_nodes,), -1, dtype=torch.int64)
            place[nodes] = torch.arange(nodes.numel())
            places.append(place[ends])
        local = torch.stack(places)
        self.taken = self._distinct(local[:, (local >= 0).all(dim=0) & (self.apart | (local[0] != local[1]))])
        pairs = a.numel() * (b.numel() if self.apart else b.numel() - 1)
        self.free = (pairs - self.taken.shape[1]) // (2 if self.both_ways else 1)

    def _distinct(self, pairs: Tensor) -> Tensor:
        """Compute ``pairs.unique(dim=1)`` by encoding each pair as one number, which is several times faster."""
        width = self.b.numel()
        key = (pairs[0] * width + pairs[1]).unique()
        return torch.stack([key // width, key % width])

    def draw(self, wanted: int, seed: int, shuffle: torch.Generator) -> Tensor:
        """Draw ``wanted`` free pairs in random order: int64 [2, wanted]."""
        # Imported here because it loads all of PyG, which node and graph streams do not need.
        from torch_geometric.utils import negative_sampling

        size = (self.a.numel(), self.b.numel()) if self.apart else self.a.numel()
        # Draw a surplus and sample from it: if few pairs are free, PyG lists them in ascending order.
        asked = min(self.free, 2 * wanted + 20)
        pairs = torch.empty(2, 0, dtype=torch.int64)
        with _python_random(seed):
            for _ in range(_TRIES):
                if pairs.shape[1] >= wanted:
                    break
                more = negative_sampling(self.taken, size, asked * (2 if self.both_ways else 1), force_undirected=self.both_ways)
                if self.both_ways:
                    more = oriented(more, undirected=True)
                pairs = self._distinct(torch.cat([pairs, more], dim=1))
        pairs = pairs[:, torch.randperm(pairs.shape[1], generator=shuffle)[:wanted]]
        return torch.stack([self.a[pairs[0]], self.b[pairs[1]]])


@contextmanager
def _python_random(seed: int) -> Iterator[None]:
    """Context manager that seeds Python's ``random`` module, which PyG uses, and restores the caller's state on exit."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)
