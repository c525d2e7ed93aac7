"""Tiny data for every problem level, in which a label can be learnt: what conformance checks and authors' tests run on."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cglsuite.graphs import GraphData, LinkData, NodeData
from cglsuite.graphs.packed import PackedSource

__all__ = ["graphs", "interactions", "label_sets", "links", "molecules", "nodes", "targets"]

N_CLASSES, PER_CLASS, N_FEATURES = 6, 24, 8


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _features(of: Tensor, generator: torch.Generator, noise: float = 0.5) -> Tensor:
    """float32 [n, F]: a direction per class (int64 [n]) and noise."""
    directions = torch.eye(N_FEATURES)[:N_CLASSES] * 2
    return directions[of] + noise * torch.randn(len(of), N_FEATURES, generator=generator)


def _shuffled_classes(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Classes (int64 [N]) in a random order, and the number of earlier items of the same class."""
    y = torch.arange(N_CLASSES).repeat_interleave(PER_CLASS)[torch.randperm(N_CLASSES * PER_CLASS, generator=generator)]
    return y, (y[:, None] == y).tril(-1).sum(dim=1)


def _keys(turn: Tensor) -> dict[str, Tensor]:
    """A domain and a year per item, each with items of every class."""
    return {"domain": turn % 3, "year": 2001 + turn % 3}


def _edges(y: Tensor, generator: torch.Generator) -> Tensor:
    """int64 [2, E]: three partners per node, two of them of its own class."""
    order = torch.argsort(y, stable=True)
    n, own = len(y), torch.randint(0, PER_CLASS, (2, len(y)), generator=generator)
    partners = torch.cat([order[y * PER_CLASS + row][None] for row in own] + [torch.randint(0, n, (1, n), generator=generator)])
    pairs = torch.stack([torch.arange(n).repeat(3), partners.flatten()])
    pairs = pairs[:, pairs[0] != pairs[1]]
    both: Tensor = torch.cat([pairs, pairs.flip(0)], dim=1).unique(dim=1)
    return both


def nodes(root: Any = None) -> NodeData:
    """Nodes of six classes (NC)."""
    generator = _generator(0)
    y, turn = _shuffled_classes(generator)
    return NodeData(
        x=_features(y, generator),
        edge_index=_edges(y, generator),
        y=y,
        n_classes=N_CLASSES,
        keys=_keys(turn),
        name="testing-nodes",
    )


def label_sets(root: Any = None) -> NodeData:
    """The same nodes, each with every further label with probability 1/5 (NC, several labels)."""
    plain, generator = nodes(), _generator(1)
    y = torch.rand(plain.n_nodes, N_CLASSES, generator=generator) < 0.2
    y[torch.arange(plain.n_nodes), plain.y] = True
    x = plain.x + y.float() @ (torch.eye(N_FEATURES)[:N_CLASSES] * 2)
    return NodeData(x=x, edge_index=plain.edge_index, y=y, n_classes=N_CLASSES, keys=plain.keys, name="testing-label-sets")


def _stars(x: Tensor, generator: torch.Generator) -> PackedSource:
    """A star of two to four nodes around each row of ``x``, whose nodes share its features but for noise."""
    sizes = torch.randint(2, 5, (len(x),), generator=generator)
    spread = x.repeat_interleave(sizes, dim=0)
    spread = spread + 0.1 * torch.randn(spread.shape, generator=generator)
    centre = sizes.cumsum(0) - sizes
    leaves = torch.ones(len(spread), dtype=torch.bool).index_fill(0, centre, False).nonzero().flatten()
    spokes = torch.stack([centre.repeat_interleave(sizes - 1), leaves])
    return PackedSource(spread, torch.cat([spokes, spokes.flip(0)], dim=1), sizes, "testing-graphs")


def graphs(root: Any = None) -> GraphData:
    """Stars of six classes (GC)."""
    generator = _generator(2)
    y, turn = _shuffled_classes(generator)
    items = _stars(_features(y, generator), generator)
    return GraphData(items=items, y=y, n_classes=N_CLASSES, keys=_keys(turn), name="testing-graphs")


def molecules(root: Any = None) -> GraphData:
    """Stars that have one property or not (GC, one label, known for all)."""
    plain = graphs()
    y = (plain.y < N_CLASSES // 2).unsqueeze(1)
    known = torch.ones_like(y)
    return GraphData(items=plain.items, y=y, n_classes=1, known=known, keys=plain.keys, name="testing-molecules")


def targets(root: Any = None) -> GraphData:
    """Stars whose target is a linear function of their features (GR)."""
    generator = _generator(3)
    x = torch.randn(N_CLASSES * PER_CLASS, N_FEATURES, generator=generator)
    y = x[:, :1] - 0.5 * x[:, 1:2]
    turn = torch.arange(len(x))
    return GraphData(items=_stars(x, generator), y=y, n_classes=1, keys=_keys(turn), name="testing-targets")


def _communities(generator: torch.Generator, per_community: int) -> tuple[Tensor, Tensor, Tensor]:
    """Nodes of six communities, their features, and random pairs within communities (int64 [2, M]), every pair once."""
    of = torch.arange(N_CLASSES).repeat_interleave(PER_CLASS)
    ends = torch.randint(0, PER_CLASS, (2, N_CLASSES * per_community), generator=generator)
    pairs = ends + torch.arange(N_CLASSES).repeat_interleave(per_community) * PER_CLASS
    pairs = pairs[:, pairs[0] != pairs[1]].sort(dim=0).values.unique(dim=1)
    pairs = pairs[:, torch.randperm(pairs.shape[1], generator=generator)]
    return of, _features(of, generator), pairs


def links(root: Any = None) -> LinkData:
    """Links within six communities; a link's class is its community (LC)."""
    of, x, pairs = _communities(_generator(4), 60)
    y = of[pairs[0]]
    turn = (y[:, None] == y).tril(-1).sum(dim=1)
    return LinkData(links=pairs, y=y, n_classes=N_CLASSES, n_nodes=len(of), x=x, keys=_keys(turn), name="testing-links")


def interactions(root: Any = None) -> LinkData:
    """Links within six communities, to be told from pairs without a link (LP)."""
    of, x, pairs = _communities(_generator(5), 60)
    y = torch.ones(pairs.shape[1], 1, dtype=torch.bool)
    turn = torch.arange(pairs.shape[1])
    keys = {"domain": of[pairs[0]] // 2, "year": 2001 + turn % 3}
    return LinkData(links=pairs, y=y, n_classes=1, n_nodes=len(of), x=x, keys=keys, name="testing-interactions")
