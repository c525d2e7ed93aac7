"""Tiny molecules with kinds of atoms and bonds, and streams over them with real targets or labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from installed import installed

from cglsuite import Seeds
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import GraphData
from cglsuite.graphs.categories import one_hot
from cglsuite.graphs.packed import PackedSource
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.specs import resolve_hyperparameters
from cglsuite.streams import TaskStream
from cglsuite.streams.graphwise import build_graph_stream

__all__ = ["ATOMS", "BONDS", "GRAPH_VARIANTS", "graph_runner", "graph_variant", "loaded_molecules", "tiny_molecules"]

ATOMS, BONDS = (4, 3), (3,)  # categories per column


def tiny_molecules(
    *, targets: str = "real", n: int = 90, outputs: int = 1, edge_features: bool = True, unknown: float = 0.0, seed: int = 0
) -> GraphData:
    """Paths of three to seven atoms, a third of them closed to a ring; as many of each of three domains and years.

    Args:
        targets: ``real`` (the share of bonds of kind 1 and the size, with noise) or ``label`` (whether that is above its median).
        outputs: how many such targets, each about another kind of bond.
        edge_features: whether the source carries the bonds' kinds.
        unknown: the share of labels that are not known (and stored as absent).
    """
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(3, 8, (n,), generator=generator)
    n_nodes, start = int(sizes.sum()), sizes.cumsum(0) - sizes
    of = torch.arange(n).repeat_interleave(sizes)
    child = (torch.arange(n_nodes) > start[of]).nonzero().flatten()
    closed = torch.arange(0, n, 3)
    bonds = torch.stack([torch.cat([child, start[closed]]), torch.cat([child - 1, (start + sizes - 1)[closed]])])
    kinds = torch.randint(0, BONDS[0], (bonds.shape[1], 1), generator=generator)
    atoms = torch.stack([torch.randint(0, k, (n_nodes,), generator=generator) for k in ATOMS], dim=1)
    counted = [torch.zeros(n).index_add(0, of[bonds[0]], (kinds[:, 0] == (1 + c) % BONDS[0]).float()) for c in range(outputs)]
    real = torch.stack(counted, dim=1) / 2 + 0.1 * sizes.unsqueeze(1) + 0.01 * torch.randn(n, outputs, generator=generator)
    known = torch.rand(n, outputs, generator=generator) >= unknown
    label = (real > real.median(dim=0).values) & known
    third = torch.arange(n) % 3
    return GraphData(
        items=PackedSource(
            one_hot(atoms, ATOMS, "tiny"),
            torch.cat([bonds, bonds.flip(0)], dim=1),
            sizes,
            "tiny",
            edge_attr=one_hot(kinds.repeat(2, 1), BONDS, "tiny", sparse=False) if edge_features else None,
        ),
        y=real if targets == "real" else label,
        known=None if targets == "real" else known,
        n_classes=outputs,
        keys={"domain": torch.tensor([3, 5, 9])[third], "year": torch.tensor([2001, 2002, 2004])[third]},
        name="tiny",
    )


def loaded_molecules(root: Any, targets: str, outputs: int, unknown: float) -> GraphData:
    """The same as a dataset's factory gives them: fifty graphs of each domain and year."""
    return tiny_molecules(targets=targets, n=150, outputs=outputs, unknown=unknown)


_REAL = {"level": "GR", "labels": "real", "performance": "negative-mae", "split": "random"}
_LABEL = {"level": "GC", "labels": "multi", "performance": "roc-auc", "split": "random"}
_DOMAINS, _YEARS = {"setting": "domain-il", "task_key": "domain"}, {"setting": "time-il", "task_key": "year"}
#: Data, switches of the scenario, backbone and its settings.
GRAPH_VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any], str, dict[str, Any]]] = {
    "regression domain-il": ({}, _REAL | _DOMAINS, "begin-graph-gcn", {"edge_features": 3}),
    "regression time-il": ({}, _REAL | _YEARS, "gine", {"edge_features": 3}),
    "regression of two targets": ({"outputs": 2, "edge_features": False}, _REAL | _DOMAINS, "graph-gcn", {}),
    "one label domain-il": ({"targets": "label", "n": 180}, _LABEL | _DOMAINS, "begin-graph-gcn", {"edge_features": 3}),
    "one label balanced": (
        {"targets": "label", "n": 180},
        _LABEL | _YEARS | {"training": {"class_balanced": True}},
        "gine",
        {"edge_features": 3},
    ),
    "unknown labels task-il": (
        {"targets": "label", "n": 150, "outputs": 3, "unknown": 0.3},
        _LABEL | {"setting": "task-il", "classes_per_task": 1, "training": {"class_balanced": True}},
        "graph-gcn",
        {},
    ),
}


def graph_variant(name: str, *, seeds: Seeds | None = None, training: Mapping[str, Any] | None = None) -> TaskStream:
    """The stream ``name`` of :data:`GRAPH_VARIANTS`; ``training`` changes how it is trained."""
    from tiny_streams import tiny_spec

    of_data, switches, _, _ = GRAPH_VARIANTS[name]
    trained = {**switches.get("training", {}), **(training or {})}
    return build_graph_stream(tiny_spec(**(switches | {"training": trained})), tiny_molecules(**of_data), seeds or Seeds())


def graph_runner(stream: TaskStream, variant: str, method: Any, hyperparameters: Mapping[str, Any] | None = None) -> TaskRunner:
    """A runner of a method, by its name in the catalogue or by its class, over a stream of :func:`graph_variant`, on its backbone.

    Raises:
        NotApplicable: the method is not for the stream's level.
    """
    catalogue = installed()
    _, _, backbone, given = GRAPH_VARIANTS[variant]
    of_backbone: Any = catalogue.get("backbone", backbone)
    declared = {h.name for h in of_backbone.spec.hyperparameters}
    small = {k: v for k, v in {"layers": 2, "width": 12, "dropout": 0.25, "predictor_width": 5}.items() if k in declared}
    made = resolve_hyperparameters(of_backbone.spec.hyperparameters, small | given, "backbone")
    build: Any = catalogue.resolve(of_backbone)
    resolved, past_views = dict(hyperparameters or {}), False
    if isinstance(method, str):
        entry: Any = catalogue.get("method", method)
        if stream.spec.level not in entry.spec.levels:
            raise NotApplicable(f"{method} is not for {stream.spec.level}")
        resolved, past_views = resolve_hyperparameters(entry.spec.hyperparameters, resolved, "method"), "past-views" in entry.spec.needs
        method = catalogue.resolve(entry)
    n_features, n_outputs = stream.n_features, stream.n_outputs  # not the stream: nothing that a method holds may lead to the oracle
    return TaskRunner(
        stream,
        method,
        lambda: build(n_features, n_outputs, **made),
        hyperparameters=resolved,
        training=stream.spec.training,
        init_seed=0,
        identity="tiny",
        past_views=past_views,
    )
