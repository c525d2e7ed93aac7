"""What CGLB's protocol fixes at every problem level."""

from __future__ import annotations

from collections.abc import Mapping

from cglsuite.specs import Citation, Value

__all__ = ["CITATION", "VERSIONS", "graph_method_defaults", "method_defaults", "node_method_defaults"]

CITATION = Citation(
    authors=("Zhang", "Song", "Tao"),
    title="CGLB: Benchmark Tasks for Continual Graph Learning",
    year=2022,
    booktitle="NeurIPS Datasets and Benchmarks",
)
"""The paper."""
VERSIONS = (1, 2)
"""Versions of the presets. The second follows the published code where the first left what it does to the methods' own forms."""


def method_defaults() -> dict[str, dict[str, Value]]:
    """Hyper-parameters that the published code fixes for a method."""
    return {
        "ewc": {"method.fisher": "batch"},
        "mas": {"method.importance": "batch-squared"},
        "gem": {"method.per_task": 100},
    }


_TWP: dict[str, Value] = {
    "method.lambda_l": 1e4,
    "method.lambda_t": 1e4,
    "method.detach_beta": True,
    "method.topology_accumulates": True,
    "method.attention_norm": "norm",
    "method.double_loss": True,
}


def node_method_defaults() -> dict[str, dict[str, Value]]:
    """Of the second version at node level: also initial weights of LwF, the outputs among which GEM's memories compete, and TWP's form."""
    return _extended(
        {
            "er-gnn": {"method.per_class": 100},
            "gem": {"method.memory_outputs": "until-task"},
            "lwf": {"backbone.init": "fan-in-normal"},
            "twp": _TWP | {"method.attention_from": "propagated"},
        }
    )


def graph_method_defaults() -> dict[str, dict[str, Value]]:
    """Of the second version at graph level: also LwF's loss, GEM's outputs, TWP's form, and importance in training mode."""
    training: dict[str, Value] = {"method.importance_mode": "training"}
    return _extended(
        {
            "ewc": training,
            "mas": training,
            "twp": _TWP | training,
            "gem": {"method.memory_outputs": "until-task"},
            "lwf": {"method.own_task_loss": True},
        }
    )


def _extended(more: Mapping[str, Mapping[str, Value]]) -> dict[str, dict[str, Value]]:
    first = method_defaults()
    return {method: {**first.get(method, {}), **more.get(method, {})} for method in {**first, **more}}
