"""AGALE on the datasets of this package: tasks with overlapping nodes, task-wise splits, growing heads, and average precision."""

from __future__ import annotations

from cglsuite import ScenarioSpec
from cglsuite.protocols.agale import node_preset
from cglsuite_node.datasets.specs import AGALE_ORDERS


def agale_presets() -> list[ScenarioSpec]:
    multi = dict.fromkeys(("pcg", "dblp-multilabel", "humango", "blogcatalog", "yelp"), True)
    datasets = multi | dict.fromkeys(("cora", "citeseer", "corafull", "synthetic-csbm-edges"), False)
    out = []
    for dataset, several in datasets.items():
        orders = "|".join(",".join(map(str, order)) for order in AGALE_ORDERS.get(dataset, ())) or "random"
        for setting in ("task-il", "class-il"):
            out += [node_preset(dataset, setting, multi=several, version=version, class_order=orders) for version in (1, 2)]
            out += [node_preset(dataset, setting, multi=several, consistent=True, class_order=orders)] if several else []
    return out
