"""An embedded graph that grows and drifts: a contextual stochastic block model (CSBM) with years and domains, bit-identical on every
machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs import NodeData, node_arrays, node_data
from cglsuite.specs import resolve_hyperparameters
from cglsuite_node.datasets.arrays import Array
from cglsuite_node.datasets.specs import GROWING_HYPERPARAMETERS
from cglsuite_node.datasets.synthetic import _bag_of_words, _below, _gaussian, _labels, _pairs


def synthetic_growing(root: DataRoot, **given: Any) -> NodeData:
    """Generate a graph with :func:`sample_growing`. ``root`` is not used.

    Raises:
        UnknownNameError, SpecError: an undeclared parameter, or a value out of range.
    """
    hyperparameters: dict[str, Any] = dict(resolve_hyperparameters(GROWING_HYPERPARAMETERS, given, "synthetic-growing"))
    return node_data("synthetic-growing", sample_growing(**hyperparameters), hyperparameters["n_classes"])


def sample_growing(
    *,
    n_nodes: int,
    n_classes: int,
    years: int,
    domains: int,
    drift: float,
    imbalance: float,
    avg_degree: float,
    homophily: float,
    features: str,
    n_features: int,
    words: float,
    signal: float,
    seed: int,
) -> dict[str, Array]:
    """Sample a graph like :func:`cglsuite_node.datasets.synthetic.sample_csbm`, with the additional node attributes ``year`` and
    ``domain``, and return its arrays (see :func:`cglsuite.graphs.node_arrays`).

    A class exists from the first year on, or appears in a later year up to the middle; its nodes are spread over the years from then on.
    Half of the edges join any nodes and half join nodes of the later years, so later nodes have more edges. Every class has different
    features in each domain and different features again in the last year. With probability ``drift``, a node has the features of its class
    in its domain, otherwise those of the first domain. With a probability that grows linearly over the years to ``drift``, these are
    replaced by the features of the last year.

    Raises:
        SpecError: impossible sizes: too many classes, edges or words.
    """
    seeds = np.random.SeedSequence(seed).spawn(5 + domains)
    draws, edges, late_edges, places, *looks = (np.random.Generator(np.random.PCG64(s)) for s in seeds)
    y = _labels(draws, n_nodes, n_classes, imbalance)
    first = (np.arange(n_classes) * years // (2 * n_classes))[y]
    year = first + _below(places, years - first, n_nodes)
    domain = _below(places, domains, n_nodes)

    half = round(n_nodes * avg_degree / 4)
    late = np.flatnonzero(year >= years // 2)
    pairs = np.concatenate([_pairs(edges, y, half, homophily), late[_pairs(late_edges, y[late], half, homophily)]], axis=1)

    look = np.where(places.random(n_nodes) < drift, domain, 0)
    look[places.random(n_nodes) < drift * year / max(years - 1, 1)] = domains
    if features == "gaussian":
        x: Any = np.stack([_gaussian(of, y, n_features, signal) for of in looks])[look, np.arange(n_nodes)]
    else:
        x = scipy.sparse.vstack([_bag_of_words(of, y, n_features, words, signal) for of in looks], format="csr")[
            look * n_nodes + np.arange(n_nodes)
        ]
    return node_arrays(x=x, edge_index=np.concatenate([pairs, pairs[::-1]], axis=1), y=y, keys={"year": year, "domain": domain})
