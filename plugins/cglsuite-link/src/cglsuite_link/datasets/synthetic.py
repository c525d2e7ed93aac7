"""The embedded datasets: links in drifting communities, and signed links. Both are bit-identical on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import SpecError
from cglsuite.graphs import LinkData
from cglsuite.specs import resolve_hyperparameters
from cglsuite_link.datasets.assemble import Array, link_data
from cglsuite_link.datasets.specs import SIGNED_HYPERPARAMETERS, TEMPORAL_HYPERPARAMETERS

_ROOM = 4  # a community needs room for this many times its links, so distinct ones are found quickly


def synthetic_temporal_links(root: DataRoot, **given: Any) -> LinkData:
    """Generate a link-prediction dataset with :func:`sample_temporal_links`. ``root`` is not used.

    Raises:
        UnknownNameError, SpecError: an undeclared parameter, a value out of range, too many links.
    """
    hyperparameters: dict[str, Any] = dict(resolve_hyperparameters(TEMPORAL_HYPERPARAMETERS, given, "synthetic-temporal-links"))
    return link_data("synthetic-temporal-links", sample_temporal_links(**hyperparameters))


def synthetic_signed_links(root: DataRoot, **given: Any) -> LinkData:
    """Generate a link-classification dataset with :func:`sample_signed_links`. ``root`` is not used.

    Raises:
        UnknownNameError, SpecError: an undeclared parameter, a value out of range, too many links.
    """
    hyperparameters: dict[str, Any] = dict(resolve_hyperparameters(SIGNED_HYPERPARAMETERS, given, "synthetic-signed-links"))
    n_classes = hyperparameters["n_groups"] * (hyperparameters["n_groups"] + 1) // 2 if hyperparameters["labels"] == "classes" else 1
    return link_data("synthetic-signed-links", sample_signed_links(**hyperparameters), n_classes)


def sample_temporal_links(
    *,
    n_nodes: int,
    n_groups: int,
    n_communities: int,
    steps: int,
    links_per_step: int,
    homophily: float,
    drift: float,
    signal: float,
    seed: int,
) -> dict[str, Array]:
    """Sample links that appear over time within drifting communities, and return their arrays (see
    :func:`cglsuite_link.datasets.assemble.link_data`).

    A node has a fixed group and a community. Before every step except the first, a share ``drift`` of the nodes moves to a random
    community. In each step, ``links_per_step`` new undirected links appear: a share ``homophily`` of them within communities, regardless of
    group, and the rest between any two nodes. No pair is linked twice. Features are one-hot indicators of the group and of the first
    community, the latter multiplied by ``signal``, plus noise of unit variance; later communities are visible only in the links.

    Raises:
        SpecError: more links than the communities have room for.
    """
    node_draws, link_draws, noise_draws = _generators(seed)
    group, community = _below(node_draws, n_groups, n_nodes), _below(node_draws, n_communities, n_nodes)
    _check_room("synthetic-temporal-links", steps * links_per_step, n_nodes * n_nodes // (2 * n_communities))
    x = np.concatenate([np.eye(n_groups)[group], signal * np.eye(n_communities)[community]], axis=1)
    x[:, n_groups:] += _bell(noise_draws, (n_nodes, n_communities))
    keys = np.empty(0, dtype=np.int64)
    for step in range(steps):
        if step:
            community = _moved(node_draws, community, n_communities, drift)
        keys = _with_new(link_draws, keys, community, links_per_step, homophily)
    links = np.stack(np.divmod(keys, n_nodes))
    low, high = np.sort(group[links], axis=0)
    return {
        "links": links,
        "n_nodes": np.array(n_nodes),
        "x": x.astype(np.float32),
        "key.step": np.repeat(np.arange(steps), links_per_step),
        "key.domain": low * (2 * n_groups - low - 1) // 2 + high,
    }


def sample_signed_links(
    *,
    n_nodes: int,
    n_groups: int,
    steps: int,
    links_per_step: int,
    homophily: float,
    drift: float,
    label_noise: float,
    signal: float,
    labels: str,
    seed: int,
) -> dict[str, Array]:
    """Sample directed links whose labels depend on the groups of their endpoints, and return their arrays (see
    :func:`cglsuite_link.datasets.assemble.link_data`).

    Before every step except the first, a share ``drift`` of the nodes moves to a random group. In each step, ``links_per_step`` new links
    appear: a share ``homophily`` of them within groups and the rest between any two nodes, with random direction. The class of a link is
    the unordered pair of its endpoints' groups at that step; its sign is negative between different groups. A share ``label_noise`` of the
    links has the label of another random link. Features are a one-hot indicator of the first group multiplied by ``signal``, plus noise of
    unit variance. The key ``step`` numbers the steps. For the parameters, see ``SIGNED_HYPERPARAMETERS``.

    Raises:
        SpecError: more links than the groups have room for.
    """
    node_draws, link_draws, noise_draws = _generators(seed)
    group = _below(node_draws, n_groups, n_nodes)
    total = steps * links_per_step
    _check_room("synthetic-signed-links", total, n_nodes * n_nodes // (2 * n_groups))
    x = signal * np.eye(n_groups)[group] + _bell(noise_draws, (n_nodes, n_groups))
    keys, pairs = np.empty(0, dtype=np.int64), []
    for step in range(steps):
        if step:
            group = _moved(node_draws, group, n_groups, drift)
        keys = _with_new(link_draws, keys, group, links_per_step, homophily)
        pairs.append(np.sort(group[np.stack(np.divmod(keys[-links_per_step:], n_nodes))], axis=0))
    low, high = np.concatenate(pairs, axis=1)
    noisy, other = noise_draws.random(total) < label_noise, _below(noise_draws, total, total)
    low, high = np.where(noisy, low[other], low), np.where(noisy, high[other], high)
    links = np.stack(np.divmod(keys, n_nodes))
    return {
        "links": np.where(link_draws.random(total) < 0.5, links, links[::-1]),
        "n_nodes": np.array(n_nodes),
        "x": x.astype(np.float32),
        "y": low * (2 * n_groups - low - 1) // 2 + high if labels == "classes" else (low != high)[:, None],
        "key.step": np.repeat(np.arange(steps), links_per_step),
    }


def _generators(seed: int) -> list[np.random.Generator]:
    return [np.random.Generator(np.random.PCG64(child)) for child in np.random.SeedSequence(seed).spawn(3)]


def _below(draws: np.random.Generator, bound: Array | int, size: int) -> Array:
    """Random integers in ``0..bound-1``, by a product of doubles, so that all versions of NumPy draw the same."""
    return (draws.random(size) * bound).astype(np.int64)


def _bell(draws: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Noise of unit variance: a centred sum of twelve uniforms, which needs no logarithm."""
    noise: Array = draws.random((12, *shape)).sum(axis=0) - 6
    return noise


def _moved(draws: np.random.Generator, block: Array, n_blocks: int, drift: float) -> Array:
    moves, new = draws.random(len(block)) < drift, _below(draws, n_blocks, len(block))
    return np.where(moves, new, block)


def _with_new(draws: np.random.Generator, keys: Array, block: Array, count: int, homophily: float) -> Array:
    """``keys`` (int64, low end · N + high end) followed by the keys of ``count`` new links."""
    n, wanted = len(block), len(keys) + count
    order = np.argsort(block, kind="stable")  # nodes block by block
    sizes = np.bincount(block)
    start = np.cumsum(sizes) - sizes
    while len(keys) < wanted:
        source = _below(draws, n, 2 * count)
        inside = order[start[block[source]] + _below(draws, sizes[block[source]], 2 * count)]
        target = np.where(draws.random(2 * count) < homophily, inside, _below(draws, n, 2 * count))
        drawn = (np.minimum(source, target) * n + np.maximum(source, target))[source != target]
        together = np.concatenate([keys, drawn])
        _, first = np.unique(together, return_index=True)
        keys = together[np.sort(first)][:wanted]
    return keys


def _check_room(name: str, wanted: int, room: int) -> None:
    if wanted * _ROOM > room:
        raise SpecError(
            f"{name}: steps * links_per_step = {wanted:,} links, but the nodes have room for only {room // _ROOM:,}. Use fewer links or "
            "more nodes"
        )
