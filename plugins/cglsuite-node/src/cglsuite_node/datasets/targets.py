"""An embedded graph of nodes with a real target, which grows and drifts, bit-identical on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs import NodeTargetData
from cglsuite.specs import resolve_hyperparameters
from cglsuite_node.datasets.arrays import Array
from cglsuite_node.datasets.specs import TARGET_HYPERPARAMETERS
from cglsuite_node.datasets.synthetic import _below, _gaussian, _labels, _pairs


def synthetic_node_targets(root: DataRoot, **given: Any) -> NodeTargetData:
    """Generate a graph with :func:`sample_targets`. ``root`` is not used.

    Raises:
        UnknownNameError, SpecError: an undeclared parameter, or a value out of range.
    """
    hyperparameters: dict[str, Any] = dict(resolve_hyperparameters(TARGET_HYPERPARAMETERS, given, "synthetic-node-targets"))
    arrays = {name: torch.from_numpy(array) for name, array in sample_targets(**hyperparameters).items()}
    keys = {name: arrays.pop(name) for name in ("year", "domain")}
    return NodeTargetData(**arrays, n_classes=1, keys=keys, name="synthetic-node-targets")


def sample_targets(
    *,
    n_nodes: int,
    years: int,
    domains: int,
    drift: float,
    communities: int,
    avg_degree: float,
    homophily: float,
    n_features: int,
    noise: float,
    seed: int,
) -> dict[str, Array]:
    """Sample a graph and return its arrays: ``x`` float32 [N, F], ``edge_index`` int64 [2, E] in both directions, ``y`` float32 [N, 1], and
    the attributes ``year`` and ``domain``, int64 [N].

    Nodes join in a random year. They belong to communities, and communities to domains. A share ``homophily`` of the edges joins nodes of
    the same community; half of the edges join any nodes and half join nodes of the later years. Features are the community's mean, with
    entries of ±1, plus unit noise. Let h be the mean of the features of a node and of its neighbours that joined no later. The target is
    z + z² / 4 plus noise, where z = Σ w_j h_j / √F. The coefficients w are a vector of ±1, plus ``drift`` times such a vector of the node's
    domain, plus ``drift`` times another one that grows linearly from 0 in the first year to its full size in the last.

    Raises:
        SpecError: impossible sizes: too many communities or edges.
    """
    draws, edges, late_edges, feature_draws, noise_draws, coefficients = (
        np.random.Generator(np.random.PCG64(s)) for s in np.random.SeedSequence(seed).spawn(6)
    )
    community = _labels(draws, n_nodes, communities, 1.0)
    year, domain = _below(draws, years, n_nodes), community % domains
    half, late = round(n_nodes * avg_degree / 4), np.flatnonzero(year >= years // 2)
    pairs = np.concatenate([_pairs(edges, community, half, homophily), late[_pairs(late_edges, community[late], half, homophily)]], axis=1)
    edge_index = np.unique(np.concatenate([pairs, pairs[::-1]], axis=1), axis=1)
    x = _gaussian(feature_draws, community, n_features, 1.0)

    source, target = edge_index[:, year[edge_index[0]] <= year[edge_index[1]]]
    received = x.astype(np.float64)
    np.add.at(received, target, x[source])
    received /= (1 + np.bincount(target, minlength=n_nodes))[:, None]

    signs = np.where(coefficients.random((domains + 2, n_features)) < 0.5, -1.0, 1.0)
    late_share = drift * year / max(years - 1, 1)
    z = np.zeros(n_nodes)
    for j in range(n_features):  # one after another, since the order of summation in a product of matrices depends on the machine
        z += (signs[-1, j] + drift * signs[domain, j] + late_share * signs[-2, j]) * received[:, j]
    z /= np.sqrt(n_features)
    y = z[:, None] + z[:, None] ** 2 / 4 + noise * _gaussian(noise_draws, np.zeros(n_nodes, dtype=np.int64), 1, 0.0)
    return {"x": x, "edge_index": edge_index, "y": y.astype(np.float32), "year": year, "domain": domain}
