"""The embedded dataset: a contextual stochastic block model (CSBM), bit-identical on every machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import SpecError
from cglsuite.graphs import NodeData, node_arrays, node_data
from cglsuite.specs import resolve_hyperparameters
from cglsuite_node.datasets.arrays import Array
from cglsuite_node.datasets.specs import CSBM_HYPERPARAMETERS

_ROOM = 2  # a population must be this many times as large as a draw from it, so at most every other draw is a repetition


def synthetic_csbm(root: DataRoot, **given: Any) -> NodeData:
    """Generate a graph with :func:`sample_csbm`. ``root`` is not used.

    Raises:
        UnknownNameError, SpecError: an undeclared parameter, or a value out of range.
    """
    hyperparameters: dict[str, Any] = dict(resolve_hyperparameters(CSBM_HYPERPARAMETERS, given, "synthetic-csbm"))
    return node_data("synthetic-csbm", sample_csbm(**hyperparameters), hyperparameters["n_classes"])


def sample_csbm(
    *,
    n_nodes: int,
    n_classes: int,
    imbalance: float,
    avg_degree: float,
    homophily: float,
    features: str,
    n_features: int,
    words: float,
    signal: float,
    seed: int,
) -> dict[str, Array]:
    """Sample a graph whose edges and features depend on the node classes, and return its arrays (see :func:`cglsuite.graphs.node_arrays`).

    Exactly a share ``homophily`` of the ``round(n_nodes · avg_degree / 2)`` distinct undirected edges joins nodes of the same class, and
    the expected degree is the same in every class. Node features follow Deshpande et al. 2018 (Gaussian: class mean plus noise) or resemble
    a bag of words (binary).

    Only uniform draws of PCG64, comparisons and elementary arithmetic are used (no logarithm, no ziggurat), so the arrays are the same on
    every machine. For the parameters, see ``CSBM_HYPERPARAMETERS``.

    Raises:
        SpecError: impossible sizes: too many classes, edges or words.
    """
    label_draws, edge_draws, feature_draws = (np.random.Generator(np.random.PCG64(s)) for s in np.random.SeedSequence(seed).spawn(3))
    y = _labels(label_draws, n_nodes, n_classes, imbalance)
    pairs = _pairs(edge_draws, y, round(n_nodes * avg_degree / 2), homophily)
    if features == "gaussian":
        x: Any = _gaussian(feature_draws, y, n_features, signal)
    else:
        x = _bag_of_words(feature_draws, y, n_features, words, signal)
    return node_arrays(x=x, edge_index=np.concatenate([pairs, pairs[::-1]], axis=1), y=y)


def _below(draws: np.random.Generator, bound: Array | int, size: int) -> Array:
    """Random integers in ``0..bound-1``, by a product of doubles, so that all versions of NumPy draw the same."""
    return (draws.random(size) * bound).astype(np.int64)


def _distinct(draw: Callable[[Array], Array], n: int) -> Array:
    """``n`` distinct keys; duplicates are redrawn. ``draw`` maps slots (int64 [m]) to keys (int64 [m])."""
    keys = draw(np.arange(n))
    while True:
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        repeated = np.sort(order[1:][ordered[1:] == ordered[:-1]])
        if not repeated.size:
            return keys
        keys[repeated] = draw(repeated)


def _labels(draws: np.random.Generator, n_nodes: int, n_classes: int, imbalance: float) -> Array:
    """Labels, int64 [N]: class sizes decrease geometrically; sizes and nodes are assigned to classes at random."""
    share = imbalance ** -(np.arange(n_classes) / max(n_classes - 1, 1))
    bounds = np.round(np.cumsum(share) / share.sum() * n_nodes).astype(np.int64)
    sizes = np.diff(bounds, prepend=0)
    if sizes.min() < 2:
        raise SpecError(
            f"synthetic-csbm: {n_nodes} nodes are too few for {n_classes} classes with imbalance {imbalance:g}, because a class would "
            "be empty"
        )
    y = np.repeat(np.argsort(draws.random(n_classes), kind="stable"), sizes)
    return y[np.argsort(draws.random(n_nodes), kind="stable")]


def _pairs(draws: np.random.Generator, y: Array, n_pairs: int, homophily: float) -> Array:
    """Distinct pairs of distinct nodes: int64 [2, n_pairs]."""
    n, sizes = len(y), np.bincount(y)
    within = round(homophily * n_pairs)
    _check_room(n, sizes, within, n_pairs - within)
    order = np.argsort(y, kind="stable")  # nodes class by class
    start = np.cumsum(sizes) - sizes
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)

    def key(u: Array, position: Array) -> Array:
        v = order[position]
        return np.minimum(u, v) * n + np.maximum(u, v)

    def same_class(slots: Array) -> Array:
        u = _below(draws, n, len(slots))
        position = start[y[u]] + _below(draws, sizes[y[u]] - 1, len(slots))
        return key(u, position + (position >= place[u]))  # step over u itself

    def other_class(slots: Array) -> Array:
        u = _below(draws, n, len(slots))
        position = _below(draws, n - sizes[y[u]], len(slots))
        return key(u, position + (position >= start[y[u]]) * sizes[y[u]])  # step over the whole class

    keys = np.concatenate([_distinct(same_class, within), _distinct(other_class, n_pairs - within)])
    return np.stack(np.divmod(keys, n))


def _check_room(n: int, sizes: Array, within: int, across: int) -> None:
    smallest = int(sizes.min())
    most_within = n * (smallest - 1) // (2 * _ROOM)
    most_across = (n * n - int((sizes**2).sum())) // (2 * _ROOM)
    for wanted, most, kind in ((within, most_within, "within classes"), (across, most_across, "between classes")):
        if wanted > most:
            raise SpecError(
                f"synthetic-csbm: avg_degree and homophily require {wanted:,} edges {kind}, but {n:,} nodes with a smallest class of "
                f"{smallest:,} have room for only {most:,}; lower avg_degree, or use fewer classes"
            )


def _bag_of_words(draws: np.random.Generator, y: Array, n_features: int, words: float, signal: float) -> scipy.sparse.csr_matrix:
    """Binary features, float32 [N, n_features], with ``words`` ones per row on average (the two integers around it)."""
    if words * _ROOM > n_features:
        raise SpecError(f"synthetic-csbm: words = {words:g}: expected at most half of n_features = {n_features}")
    n, n_classes = len(y), int(y.max()) + 1
    size = min(n_features, max(n_features // n_classes, _ROOM * (int(words) + 1)))
    vocabulary = np.argsort(draws.random((n_classes, n_features)), axis=1, kind="stable")[:, :size]
    counts = int(words) + (draws.random(n) < words - int(words))
    node = np.repeat(np.arange(n), counts)

    def draw(slots: Array) -> Array:
        own = draws.random(len(slots)) < signal
        typical = vocabulary[y[node[slots]], _below(draws, size, len(slots))]
        word = np.where(own, typical, _below(draws, n_features, len(slots)))
        return node[slots] * n_features + word

    keys = np.sort(_distinct(draw, len(node)))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return scipy.sparse.csr_matrix((np.ones(len(keys), dtype=np.float32), keys % n_features, indptr), (n, n_features))


def _gaussian(draws: np.random.Generator, y: Array, n_features: int, signal: float) -> Array:
    """Features, float32 [N, n_features]: a class mean of entries ±signal plus unit noise, a centred sum of twelve uniforms."""
    means = np.where(draws.random((int(y.max()) + 1, n_features)) < 0.5, -signal, signal).astype(np.float32)
    x = means[y] - np.float32(6)
    for _ in range(12):
        x += draws.random(x.shape, dtype=np.float32)
    return x
