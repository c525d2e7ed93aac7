"""AGALE: tasks with overlapping nodes, splits class by class from the smallest, growing heads, average precision."""

from __future__ import annotations

from cglsuite import ScenarioSpec, TrainingSpec
from cglsuite.protocols import TOPOLOGY_NOTE, trained_outputs
from cglsuite_node.datasets.specs import AGALE_ORDERS

__all__ = ["agale", "agale_presets"]

_AGALE = "Zhao, Bartos & Khosla, AGALE: A Graph-Aware Continual Learning Evaluation Framework, TMLR 2024"
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


def agale(dataset: str, setting: str, *, multi: bool, consistent: bool = False) -> ScenarioSpec:
    """A preset of AGALE's protocol: Algorithms 1 and 2, growing heads, no edges between tasks.

    ``consistent`` splits nodes once for all tasks, so no node is training data in one task and test data in another.
    """
    return ScenarioSpec(
        name=f"{dataset}/{setting}@{'agale-consistent-1' if consistent else 'agale-1'}",
        summary=f"classes of {dataset} arrive two at a time, each task in its own subgraph, "
        + ("every node in one part throughout" if consistent else "split task by task")
        + " (AGALE)",
        citation=_AGALE,
        dataset=dataset,
        setting=setting,
        protocol="agale-consistent-1" if consistent else "agale-1",
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
        method_defaults={
            "ewc": {"method.lambda": 1e4},
            "mas": {"method.lambda": 1e4},
            "er-gnn": {"method.per_class": 1000, "method.sampler": "cm"},
        },
        note=TOPOLOGY_NOTE
        + (" A multi-label node may be training data in one task and test data in another." if multi and not consistent else ""),
    )


def agale_presets() -> list[ScenarioSpec]:
    multi = dict.fromkeys(("pcg", "dblp-multilabel", "humango", "blogcatalog", "yelp"), True)
    datasets = multi | dict.fromkeys(("cora", "citeseer", "synthetic-csbm-edges"), False)
    pairs = [(d, m, s, c) for d, m in datasets.items() for s in ("task-il", "class-il") for c in (False, True) if m or not c]
    return [agale(dataset, setting, multi=multi, consistent=consistent) for dataset, multi, setting, consistent in pairs]
