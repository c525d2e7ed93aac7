"""AGALE: tasks with overlapping nodes, per-class splits starting with the smallest class, growing heads, and average precision."""

from __future__ import annotations

from cglsuite import ScenarioSpec, TrainingSpec
from cglsuite.protocols import TOPOLOGY_NOTE, trained_outputs
from cglsuite.specs import Citation, Value
from cglsuite_node.datasets.specs import AGALE_ORDERS

_AGALE = Citation(
    authors=("Zhao", "Bartos", "Khosla"), title="AGALE: A Graph-Aware Continual Learning Evaluation Framework", year=2024, journal="TMLR"
)
_AGALE_TRAINING = TrainingSpec(
    backbone="gcn",
    lr=1e-2,
    weight_decay=5e-4,
    epochs=999,
    plateau_patience=100,
    plateau_factor=0.0,  # the first plateau ends the task
    monitor="validation-loss",
    restore_best=True,
)
_AGALE_BACKBONE = (
    ("batch_norm", False),
    ("bias", True),
    ("dropout", 0.0),
    ("head", "convolution"),
    ("input_dropout", 0.0),
    ("layers", 2),
    ("normalisation", "symmetric"),
    ("width", 256),
)


_METHODS: dict[str, dict[str, Value]] = {
    "ewc": {"method.lambda": 1e4},
    "mas": {"method.lambda": 1e4},
    "er-gnn": {"method.per_class": 1000, "method.sampler": "cm"},
}
_METHODS_AS_IMPLEMENTED: dict[str, dict[str, Value]] = _METHODS | {
    "ewc": {"method.lambda": 1e4, "method.fisher": "last-step"},
    "mas": {"method.lambda": 1e4, "method.importance": "batch-squared"},
    "evolve-gcn": {"method.start": "drawn"},
}
_FIRST = (
    "agale-2 follows the published code where this version does not: the importances of EWC and MAS, and EvolveGCN, whose weights do not "
    "evolve there."
)


def agale(dataset: str, setting: str, *, multi: bool, consistent: bool = False, version: int = 1) -> ScenarioSpec:
    """Build a preset of the AGALE protocol: Algorithms 1 and 2, growing heads, and no edges between tasks.

    Args:
        consistent: split nodes once for all tasks, so that none is training data in one and test data in another.
        version: the second has the importances of EWC and MAS, and EvolveGCN, as the published code implements them.
    """
    protocol = "agale-consistent-1" if consistent else f"agale-{version}"
    return ScenarioSpec(
        name=f"{dataset}/{setting}@{protocol}",
        summary=f"classes of {dataset} arrive two at a time, each task in its own subgraph, "
        + ("every node in one part throughout" if consistent else "split task by task")
        + " (AGALE)",
        citation=_AGALE,
        dataset=dataset,
        setting=setting,
        protocol=protocol,
        search_scope="first-tasks(2)" if consistent else "all",
        labels="multi" if multi else "single",
        performance="average-precision" if multi else "micro",
        classes_per_task=2,
        leftover="join-last",
        min_class_size=50,
        class_order="|".join(",".join(map(str, order)) for order in AGALE_ORDERS[dataset]) if dataset in AGALE_ORDERS else "random",
        edge_policy="none",
        split="node-consistent" if consistent else "task-wise",
        split_ratio=(0.6, 0.1, 0.3),
        train_outputs=trained_outputs(setting),
        head="growing",
        training=_AGALE_TRAINING,
        backbone_hyperparameters=_AGALE_BACKBONE,
        method_defaults=_METHODS if version == 1 else _METHODS_AS_IMPLEMENTED,
        note=TOPOLOGY_NOTE
        + (" A multi-label node may be training data in one task and test data in another." if multi and not consistent else "")
        + (f" {_FIRST}" if version == 1 and not consistent else ""),
    )


def agale_presets() -> list[ScenarioSpec]:
    multi = dict.fromkeys(("pcg", "dblp-multilabel", "humango", "blogcatalog", "yelp"), True)
    datasets = multi | dict.fromkeys(("cora", "citeseer", "corafull", "synthetic-csbm-edges"), False)
    out = []
    for dataset, several in datasets.items():
        for setting in ("task-il", "class-il"):
            out += [agale(dataset, setting, multi=several, version=version) for version in (1, 2)]
            out += [agale(dataset, setting, multi=several, consistent=True)] if several else []
    return out
