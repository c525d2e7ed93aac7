"""Tiny links and streams over them, for tests of the link levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from installed import installed
from tiny_streams import tiny_spec

from cglsuite import Method, Seeds
from cglsuite.backbones.linkwise import LinkGCN, link_gcn
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import LinkData
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.specs import resolve_hyperparameters
from cglsuite.streams import TaskStream
from cglsuite.streams.links import build_link_stream

__all__ = ["LINK_VARIANTS", "link_model", "link_runner", "link_stream", "link_variant", "tiny_links"]


def tiny_links(
    *,
    n_nodes: int = 30,
    n_links: int = 240,
    n_classes: int = 6,
    kind: str = "classes",
    sparse: bool = False,
    featureless: bool = False,
    types: bool = False,
    repeated: int = 0,
    base: int = 20,
    seed: int = 0,
) -> LinkData:
    """Distinct undirected pairs of thirty nodes, given either way round, in random order.

    Args:
        kind: ``classes`` (y int64, by the two ends' groups), ``signs`` (y bool [M, 1], known for all) or ``existing`` (all true).
        types: even nodes are users, odd ones items, and a link leads from a user to an item.
        repeated: how many of the first links come again at the end, the other way round, in the part and with the keys of their own place.
        base: further pairs that are no items.

    The keys ``domain`` (3, 5, 9) and ``time`` (10, 20, 30) go round from link to link, the official split (6/2/2 of ten) in threes.
    """
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.combinations(torch.arange(n_nodes), 2)
    if types:
        pairs = pairs[(pairs[:, 0] + pairs[:, 1]) % 2 == 1]
        pairs = torch.where((pairs[:, :1] % 2 == 0), pairs, pairs.flip(1))
    chosen = pairs[torch.randperm(len(pairs), generator=generator)[: n_links + base]].T
    if not types:
        turned = torch.rand(chosen.shape[1], generator=generator) < 0.5
        chosen = torch.where(turned, chosen.flip(0), chosen)
    links = torch.cat([chosen[:, :n_links], chosen[:, :repeated].flip(0)], dim=1)
    m = links.shape[1]
    of = (links.min(dim=0).values * 7 + links.max(dim=0).values) % n_classes
    y: dict[str, Any] = {"classes": of, "signs": (of % 2 == 0).unsqueeze(1), "existing": torch.ones(m, 1, dtype=torch.bool)}
    turn = torch.arange(m)
    x = torch.rand(n_nodes, 5, generator=generator).round(decimals=1)
    split = torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, 2, 2], dtype=torch.int8)[turn // 3 % 10]
    return LinkData(
        links=links,
        y=y[kind],
        n_classes=n_classes if kind == "classes" else 1,
        n_nodes=n_nodes,
        x=None if featureless else x.to_sparse_csr() if sparse else x,
        base_edges=chosen[:, n_links:],
        known=torch.ones(m, 1, dtype=torch.bool) if kind == "signs" else None,
        node_types=torch.arange(n_nodes) % 2 * 4 if types else None,
        official_split=split,
        keys={"domain": torch.tensor([3, 5, 9])[turn % 3], "time": torch.tensor([10, 20, 30])[turn % 3]},
        name="tiny",
    )


#: Streams of every kind of links: what :func:`tiny_links` is asked for, and switches.
LINK_VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "LC task-il": ({}, {"level": "LC", "setting": "task-il", "undirected": False}),
    "LC class-il": ({"sparse": True}, {"level": "LC", "setting": "class-il", "undirected": False}),
    "LC apart": ({}, {"level": "LC", "setting": "class-il", "edge_policy": "none"}),
    "LC growing": ({}, {"level": "LC", "setting": "class-il", "edge_policy": "inter-task", "split": "random"}),
    "LC time-il": (
        {"kind": "signs", "featureless": True},
        {
            "level": "LC", "setting": "time-il", "labels": "multi", "performance": "roc-auc", "task_key": "time", "edge_policy": "snapshot",
            "split": "official", "undirected": False, "node_features": "log-degrees",
        },
    ),
    "LP domain-il": ({}, {"level": "LP", "setting": "domain-il", "task_key": "domain", "edge_policy": "full"}),
    "LP apart": ({}, {"level": "LP", "setting": "domain-il", "task_key": "domain", "edge_policy": "none"}),
    "LP growing": (
        {"sparse": True},
        {"level": "LP", "setting": "domain-il", "task_key": "domain", "edge_policy": "inter-task", "exclude_targets": True},
    ),
    "LP time-il": (
        {"featureless": True},
        {
            "level": "LP", "setting": "time-il", "task_key": "time", "edge_policy": "snapshot", "node_features": "log-degrees",
            "exclude_targets": True,
        },
    ),
    "LP bipartite": (
        {"types": True, "n_links": 120},
        {"level": "LP", "setting": "time-il", "task_key": "time", "edge_policy": "snapshot", "training": {"batch_size": 7}},
    ),
}  # fmt: skip


def link_stream(data: LinkData | None = None, *, seeds: Seeds | None = None, **changes: Any) -> TaskStream:
    """A stream over ``data``; of link prediction Hits@5 on the official split unless asked otherwise."""
    if changes.get("level") == "LP":
        changes = {"labels": "multi", "performance": "hits", "hits_k": 5, "negatives": 40, "split": "official"} | changes
        data = tiny_links(kind="existing") if data is None else data
    spec = tiny_spec(**({"level": "LC"} | changes))
    return build_link_stream(spec, data if data is not None else tiny_links(), seeds or Seeds())


def link_variant(name: str, *, data: Mapping[str, Any] | None = None, seeds: Seeds | None = None, **changes: Any) -> TaskStream:
    """The stream ``name`` of :data:`LINK_VARIANTS`; ``data`` changes what :func:`tiny_links` is asked for."""
    of_data, switches = LINK_VARIANTS[name]
    kind = {"kind": "existing"} if name.startswith("LP") else {}
    training = {"training": {**switches.get("training", {}), **changes.pop("training", {})}}
    return link_stream(tiny_links(**(kind | of_data | dict(data or {}))), seeds=seeds, **(switches | changes | training))


def link_model(stream: TaskStream, **hyperparameters: Any) -> Any:
    """A function that draws a small link GCN with batch norm and dropout."""
    n_features, n_outputs = stream.n_features, stream.n_outputs
    defaults: dict[str, Any] = {
        "layers": 2, "width": 6, "normalisation": "symmetric", "bias": False, "batch_norm": True, "dropout": 0.0, "input_dropout": 0.0,
        "predictor_layers": 3, "predictor_width": 5, "predictor_dropout": 0.25,
    }  # fmt: skip

    def draw() -> LinkGCN:
        return link_gcn(n_features, n_outputs, **(defaults | hyperparameters))

    return draw


def link_runner(
    stream: TaskStream,
    method: Any = Method,
    hyperparameters: Mapping[str, Any] | None = None,
    *,
    model: Mapping[str, Any] | None = None,
    **more: Any,
) -> TaskRunner:
    """A runner of a method's class, or of the installed method of that name with its defaults, over ``stream``.

    Raises:
        NotApplicable: the method is not for the stream's setting or level.
    """
    resolved = dict(hyperparameters or {})
    if isinstance(method, str):
        catalogue = installed()
        entry = catalogue.get("method", method)
        spec: Any = entry.spec
        if stream.spec.setting not in spec.settings or stream.spec.level not in spec.levels:
            raise NotApplicable(f"{method} is not for {stream.spec.setting} on {stream.spec.level}")
        resolved = resolve_hyperparameters(spec.hyperparameters, resolved, "method")
        more = {"past_views": "past-views" in spec.needs} | more
        method = catalogue.resolve(entry)
    return TaskRunner(
        stream,
        method,
        link_model(stream, **dict(model or {})),
        hyperparameters=resolved,
        training=stream.spec.training,
        identity="tiny",
        **({"init_seed": 0} | more),
    )
