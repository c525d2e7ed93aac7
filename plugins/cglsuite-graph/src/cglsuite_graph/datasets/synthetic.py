"""The embedded datasets: classification of planted motifs, and regression of a known function of the structure. Both are bit-identical on
every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs import GraphData
from cglsuite.specs import resolve_hyperparameters
from cglsuite_graph.datasets.assemble import Array, both_ways, graph_data, start_of
from cglsuite_graph.datasets.specs import MOTIF_HYPERPARAMETERS, REGRESSION_HYPERPARAMETERS

#: Motifs as edges between their nodes 0, 1, ...: triangle, square, hexagon, cliques of 4 and 5, star, wheel, K3,3, house, ladder.
MOTIFS: tuple[tuple[tuple[int, int], ...], ...] = (
    ((0, 1), (1, 2), (0, 2)),
    ((0, 1), (1, 2), (2, 3), (0, 3)),
    ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)),
    tuple((i, j) for j in range(4) for i in range(j)),
    tuple((i, j) for j in range(5) for i in range(j)),
    tuple((0, j) for j in range(1, 6)),
    (*((0, j) for j in range(1, 6)), (1, 2), (2, 3), (3, 4), (4, 5), (1, 5)),
    tuple((i, j) for i in range(3) for j in range(3, 6)),
    ((0, 1), (1, 2), (2, 3), (0, 3), (0, 4), (1, 4)),
    ((0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)),
)
_DOMAINS = 5
_SMALLEST, _STEP = 6, 3  # nodes of the tree in domain 0, and the increment per domain
_DEGREES = 8  # one-hot degrees 0..6, and 7 or more
_EDGE_KINDS = 3

#: Values of the four node kinds and three edge kinds in the target function.
KIND_VALUES = np.array([-1.0, -0.5, 0.5, 1.0])
BOND_WEIGHTS = np.array([0.0, 1.0, 2.0])


def synthetic_motifs(root: DataRoot, **given: Any) -> GraphData:
    """Generate the graphs of :func:`sample_motifs`. ``root`` is not used.

    Raises:
        UnknownNameError, SpecError: an undeclared parameter, a value out of range.
    """
    hyperparameters: dict[str, Any] = dict(resolve_hyperparameters(MOTIF_HYPERPARAMETERS, given, "synthetic-motifs"))
    arrays = sample_motifs(**hyperparameters)
    edge_index = both_ways(arrays["pairs"])
    degree = np.bincount(edge_index[1], minlength=int(arrays["sizes"].sum()))
    return graph_data(
        "synthetic-motifs",
        x=np.eye(_DEGREES)[np.minimum(degree, _DEGREES - 1)],
        edge_index=edge_index,
        edge_attr=np.eye(_EDGE_KINDS)[np.repeat(arrays["kinds"], 2)],
        sizes=arrays["sizes"],
        y=arrays["y"],
        n_classes=len(MOTIFS),
        keys={name: arrays[name] for name in ("domain", "year") if name in arrays},
    )


def sample_motifs(*, per_class: int, copies: int, signal: float, seed: int, years: int = 1, drift: float = 0.0) -> dict[str, Array]:
    """Sample random trees with ``copies`` copies of one motif attached to random nodes. The motif is the class.

    A tree has ``6 + 3 d`` nodes in domain ``d``; domains alternate within a class. Edges have one of three kinds: a motif edge has the kind
    of its class (``y % 3``) with probability ``signal``; all other edges have a random kind. With ``years``, each graph belongs to a random
    year, and the kind of a class is replaced by the next one with a probability that grows linearly to ``drift`` in the last year.

    Returns:
        ``sizes``, ``y``, ``domain`` and, with years, ``year`` int64 [n]; ``pairs`` int64 [2, B], each edge once, nodes numbered over all
        graphs; ``kinds`` int64 [B].
    """
    seeds = np.random.SeedSequence(seed).spawn(4)
    tree_draws, place_draws, kind_draws, drift_draws = (np.random.Generator(np.random.PCG64(s)) for s in seeds)
    y = np.repeat(np.arange(len(MOTIFS)), per_class)
    domain = np.tile(np.arange(per_class) % _DOMAINS, len(MOTIFS))
    trees = _SMALLEST + _STEP * domain
    nodes_of, edges_of = np.array([1 + max(map(max, motif)) for motif in MOTIFS]), np.array([len(motif) for motif in MOTIFS])
    sizes = trees + copies * nodes_of[y]
    begin = start_of(sizes)[:-1]

    which = np.repeat(np.arange(len(y)), copies)  # the graph of each planted copy
    root = (begin + trees)[which] + np.tile(np.arange(copies), len(y)) * nodes_of[y[which]]
    joint = np.stack([root + _below(place_draws, nodes_of[y[which]]), begin[which] + _below(place_draws, trees[which])])
    of_edge = np.repeat(np.arange(len(which)), edges_of[y[which]])
    place = np.arange(len(of_edge)) - np.repeat(start_of(edges_of[y[which]])[:-1], edges_of[y[which]])
    table = np.zeros((len(MOTIFS), int(edges_of.max()), 2), dtype=np.int64)
    for c, motif in enumerate(MOTIFS):
        table[c, : len(motif)] = motif
    motif_edges = table[y[which[of_edge]], place].T + root[of_edge]

    pairs = np.concatenate([motif_edges, joint, _trees(tree_draws, trees, begin)], axis=1)
    own = np.full(pairs.shape[1], -1)
    of_motif = which[of_edge]
    keys = _years(drift_draws, len(y), years)
    moved = (drift_draws.random(len(of_motif)) < drift * _progress(keys, years)[of_motif]) if keys else 0
    own[: motif_edges.shape[1]] = (y[of_motif] + moved) % _EDGE_KINDS
    drawn = _below(kind_draws, np.full(len(own), _EDGE_KINDS))
    kinds = np.where((own >= 0) & (kind_draws.random(len(own)) < signal), own, drawn)
    return {"sizes": sizes, "y": y, "domain": domain, "pairs": pairs, "kinds": kinds, **keys}


def synthetic_graph_regression(root: DataRoot, **given: Any) -> GraphData:
    """Generate the graphs of :func:`sample_regression`. ``root`` is not used.

    Raises:
        UnknownNameError, SpecError: an undeclared parameter, a value out of range.
    """
    hyperparameters: dict[str, Any] = dict(resolve_hyperparameters(REGRESSION_HYPERPARAMETERS, given, "synthetic-graph-regression"))
    arrays = sample_regression(**hyperparameters)
    edge_index = both_ways(arrays["pairs"])
    return graph_data(
        "synthetic-graph-regression",
        x=np.eye(len(KIND_VALUES))[arrays["nodes"]],
        edge_index=edge_index,
        edge_attr=np.eye(_EDGE_KINDS)[np.repeat(arrays["kinds"], 2)],
        sizes=arrays["sizes"],
        y=arrays["y"][:, None],
        n_classes=1,
        keys={name: arrays[name] for name in ("domain", "year") if name in arrays},
    )


def sample_regression(*, n_graphs: int, noise: float, seed: int, years: int = 1, drift: float = 0.0) -> dict[str, Array]:
    """Sample random trees with additional edges, four kinds of nodes and three kinds of edges. The target is a function of the graph.

    With a(v) the value of a node's kind and w(e) the value of an edge's kind, a graph of n nodes has the target ``y = 1/n Σ_v a(v) + 1/n
    Σ_{e = uv} w(e) a(u) a(v)`` plus uniform noise in ``[-noise, noise)``. Graphs of domain ``d`` have ``6 + 3 d`` to ``8 + 3 d`` nodes;
    domains alternate. With ``years``, each graph belongs to a random year, and the second sum has a weight that falls linearly from 1 in
    the first year to ``1 - 2 drift`` in the last.

    Returns:
        ``sizes``, ``domain`` and, with years, ``year`` int64 [n], ``y`` float64 [n], ``nodes`` int64 [N], the kinds of nodes; ``pairs``
        int64 [2, B], each edge once, nodes numbered over all graphs; ``kinds`` int64 [B].
    """
    seeds = np.random.SeedSequence(seed).spawn(4)
    draws, tree_draws, noise_draws, drift_draws = (np.random.Generator(np.random.PCG64(s)) for s in seeds)
    domain = np.arange(n_graphs) % _DOMAINS
    sizes = _SMALLEST + _STEP * domain + _below(draws, np.full(n_graphs, _STEP))
    begin, total = start_of(sizes)[:-1], int(sizes.sum())
    of = np.repeat(np.arange(n_graphs), sizes)
    nodes = _below(draws, np.full(total, len(KIND_VALUES)))
    further = np.arange(total)[draws.random(total) < 1 / 3]
    more = np.stack([further, begin[of[further]] + _below(draws, sizes[of[further]])])
    pairs = np.sort(np.concatenate([_trees(tree_draws, sizes, begin), more], axis=1), axis=0)
    pairs = np.stack(np.divmod(np.unique(pairs[0] * total + pairs[1]), total))
    pairs = pairs[:, pairs[0] != pairs[1]]
    kinds = _below(draws, np.full(pairs.shape[1], _EDGE_KINDS))
    value = KIND_VALUES[nodes]
    of_nodes = np.bincount(of, weights=value, minlength=n_graphs)
    of_edges = np.bincount(of[pairs[0]], weights=BOND_WEIGHTS[kinds] * value[pairs[0]] * value[pairs[1]], minlength=n_graphs)
    keys = _years(drift_draws, n_graphs, years)
    weight = 1 - 2 * drift * _progress(keys, years) if keys else 1.0
    y = (of_nodes + weight * of_edges) / sizes + noise * (2 * noise_draws.random(n_graphs) - 1)
    return {"sizes": sizes, "domain": domain, "y": y, "nodes": nodes, "pairs": pairs, "kinds": kinds, **keys}


def _years(draws: np.random.Generator, n_graphs: int, years: int) -> dict[str, Array]:
    """``year`` of each graph, int64 [n], at random; nothing if there is one year only."""
    return {"year": _below(draws, np.full(n_graphs, years))} if years > 1 else {}


def _progress(keys: dict[str, Array], years: int) -> Array:
    """How far each graph's year is from the first to the last: float64 [n], 0 to 1."""
    return keys["year"] / (years - 1)


def _trees(draws: np.random.Generator, sizes: Array, begin: Array) -> Array:
    """A random recursive tree on the first ``sizes`` nodes (int64 [n]) of each graph: int64 [2, sum(sizes) - n]."""
    of = np.repeat(np.arange(len(sizes)), sizes - 1)
    node = 1 + np.arange(len(of)) - np.repeat(start_of(sizes - 1)[:-1], sizes - 1)
    return np.stack([begin[of] + node, begin[of] + _below(draws, node)])


def _below(draws: np.random.Generator, bound: Array) -> Array:
    """Random integers in ``0..bound-1``, by a product of doubles, so that all versions of NumPy draw the same."""
    return (draws.random(len(bound)) * bound).astype(np.int64)
