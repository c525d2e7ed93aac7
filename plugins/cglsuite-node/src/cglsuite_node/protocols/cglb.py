"""CGLB's node-classification scenarios: its protocol on the datasets of this package."""

from __future__ import annotations

from cglsuite import ScenarioSpec
from cglsuite.protocols.cglb import VERSIONS, node_preset

_ODD = ("cora", "reddit", "ogbn-products")  # with a class that fills no task, which CGLB omits
_LARGE = ("ogbn-arxiv", "reddit", "ogbn-products")
_DATASETS = ("cora", "citeseer", "corafull", "amazon-clothing20", "ogbn-arxiv", "reddit", "ogbn-products", "synthetic-csbm")


def cglb_presets() -> list[ScenarioSpec]:
    """Build the presets of CGLB in task-IL and class-IL, with and without edges between tasks."""
    # Three classes arrive one at a time, so task-IL would have one class per task.
    out = [node_preset("pubmed", "class-il", classes_per_task=1, version=version) for version in VERSIONS]
    for setting in ("task-il", "class-il"):
        for dataset in _DATASETS:
            out += [
                node_preset(
                    dataset,
                    setting,
                    edge_policy=edge_policy,
                    undirected=dataset != "ogbn-arxiv",
                    drop_last=dataset in _ODD,
                    sampled=dataset in _LARGE,
                    version=version,
                )
                for edge_policy in ("none", "inter-task")
                for version in VERSIONS
            ]
    return out
