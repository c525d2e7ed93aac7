"""Presets for BeGin's protocol (Ko et al. 2025) at every problem level, and their shared parts. Importing it does not import torch."""

from __future__ import annotations

from cglsuite.protocols.begin.presets import (
    CITATION,
    GRAPH_NETWORK,
    TRAINING,
    VERSIONS,
    graph_preset,
    link_classification_preset,
    link_prediction_preset,
    method_defaults,
    node_preset,
)

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
