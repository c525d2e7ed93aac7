"""BeGin (Ko et al. 2025): presets of its protocol at every problem level, and what they share. Importing the package imports no torch."""

from __future__ import annotations

from cglsuite.protocols.begin.graphs import GRAPH_NETWORK, graph_preset
from cglsuite.protocols.begin.links import link_classification_preset, link_prediction_preset
from cglsuite.protocols.begin.nodes import node_preset
from cglsuite.protocols.begin.table import CITATION, TRAINING, VERSIONS, method_defaults

__all__ = [
    "CITATION",
    "GRAPH_NETWORK",
    "TRAINING",
    "VERSIONS",
    "graph_preset",
    "link_classification_preset",
    "link_prediction_preset",
    "method_defaults",
    "node_preset",
]
