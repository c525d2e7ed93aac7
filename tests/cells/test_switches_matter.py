"""A switch that is given another value changes what a cell gives, or is refused because nothing would read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from installed import installed

from cglsuite import Catalogue
from cglsuite.base.errors import CglsuiteError, SpecError
from cglsuite.cells.run import run_cell
from cglsuite.cells.spec import resolve_cell
from cglsuite.cells.storage.store import Store

pytestmark = pytest.mark.plugins

SMALL: dict[str, Any] = {"training.epochs": 4, "backbone.width": 8}
STEEP = SMALL | {"training.plateau_patience": 0, "training.lr": 0.5}
NODES = {"dataset.n_nodes": 280, "dataset.n_classes": 7, "dataset.n_features": 30, "dataset.words": 5, "dataset.imbalance": 3.0}
ODD = NODES | {"scenario.drop_last": True}
BASES: dict[str, dict[str, Any]] = {
    "synthetic-csbm/class-il@begin-1": STEEP | ODD,
    "synthetic-csbm/task-il@cglb-1": SMALL | ODD | {"backbone.batch_norm": True},
    "synthetic-csbm/hard@drift-1": {"backbone.width": 8, **ODD},
    "synthetic-motifs/class-il@begin-1": STEEP,
    "synthetic-graph-regression/domain-il@begin-1": STEEP,
    "synthetic-signed-links/class-il@begin-1": STEEP,
    "synthetic-signed-links/time-il@begin-1": STEEP,
    "synthetic-temporal-links/domain-il@begin-1": STEEP,
}
OTHER: dict[str, tuple[Any, ...]] = {
    "scenario.classes_per_task": (3, 1),
    "scenario.base_classes": (3,),
    "scenario.shots": (2,),
    "scenario.n_tasks": (2,),
    "scenario.leftover": ("join-last", "drop"),
    "scenario.task_key": ("other",),
    "scenario.task_bins": ((3, 6),),
    "scenario.min_class_size": (30,),
    "scenario.class_order": ("native", "random"),
    "scenario.edge_policy": ("none", "full", "inter-task"),
    "scenario.query_grouping": ("pooled",),
    "scenario.query_edges": ("seen",),
    "scenario.undirected": (False, True),
    "scenario.feature_normalisation": ("row", "none"),
    "scenario.split": ("random", "per-class"),
    "scenario.split_ratio": ((0.5, 0.25, 0.25),),
    "scenario.train_outputs": ("task", "seen", "all"),
    "scenario.performance": ("macro", "micro"),
    "scenario.hits_k": (3,),
    "scenario.negatives": (2,),
    "scenario.exclude_targets": (False, True),
    "scenario.node_features": ("degrees", "log-degrees"),
    "scenario.head": ("growing", "fixed"),
    "scenario.replicas": (2,),
    "training.optimizer": ("sgd", "adam"),
    "training.lr": (0.03,),
    "training.weight_decay": (0.1,),
    "training.epochs": (1,),
    "training.plateau_patience": (None, 1),
    "training.plateau_factor": (0.5,),
    "training.stop_ratio": (0.5,),
    "training.monitor": ("validation-performance", "validation-loss"),
    "training.restore_best": (True, False),
    "training.carry_optimizer": (True, False),
    "training.class_balanced": (True, False),
    "training.norm_statistics": ("frozen", "per-task"),
    "training.batch_size": (7,),
    "training.fan_out": ((2, 2),),
    "stream.draw": ("with-replacement",),
    "stream.evaluate_every": (7,),
    "stream.mask": ("seen", "progressive", "all"),
    "stream.query_graph": ("merged", "own"),
}
"""Values to try; a value that the base has already is passed over."""
OF_THE_DATA = {
    "synthetic-csbm/class-il@begin-1": {"scenario.undirected"},
    "synthetic-csbm/task-il@cglb-1": {"scenario.undirected"},
    "synthetic-csbm/hard@drift-1": {"scenario.undirected"},
    "synthetic-motifs/class-il@begin-1": {"scenario.leftover", "scenario.min_class_size", "scenario.performance"},
    "synthetic-signed-links/class-il@begin-1": {"scenario.leftover", "scenario.min_class_size"},
    "synthetic-signed-links/time-il@begin-1": {"scenario.edge_policy"},
    "synthetic-temporal-links/domain-il@begin-1": {"training.class_balanced"},
}
"""What changes nothing for these data: they are symmetric, their classes are of one size and fill the tasks, every link is of the time
step with which it arrives, and there are as many pairs without a link as with one."""


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return installed()


def outcome(catalogue: Catalogue, name: str, overrides: dict[str, Any], folder: Path) -> Any:
    """What a cell of fine-tuning gives, times aside."""
    record = run_cell(resolve_cell(catalogue, name, "bare", overrides=overrides), catalogue, Store(folder))
    if not record.done:
        return record.status, record.reason
    curves = [{k: v for k, v in curve.items() if not k.endswith("_s")} for curve in record.training_curves()]
    return repr((record.matrix, record.validation_matrix, curves, [dict(task) for task in record.tasks]))


@pytest.mark.nightly
@pytest.mark.parametrize("name", list(BASES))
def test_every_value_changes_something_or_is_refused(name: str, catalogue: Catalogue, tmp_path: Path) -> None:
    base = BASES[name]
    before = outcome(catalogue, name, base, tmp_path)
    idle = []
    for switch, values in OTHER.items():
        for value in values if switch not in OF_THE_DATA.get(name, ()) else ():
            given = base | {switch: value}
            try:
                cell = resolve_cell(catalogue, name, "bare", overrides=given)
                if cell.configuration == resolve_cell(catalogue, name, "bare", overrides=base).configuration:
                    continue
                after = outcome(catalogue, name, given, tmp_path)
            except CglsuiteError:
                continue
            if after == before:
                idle.append((switch, value))
    assert not idle, idle


@pytest.mark.parametrize(
    ("name", "switch", "value", "reason"),
    [
        ("synthetic-csbm/class-il@begin-1", "scenario.node_features", "degrees", "nodes are items with features of their own"),
        ("synthetic-csbm/class-il@begin-1", "scenario.task_key", "year", "tasks are groups of classes"),
        ("synthetic-csbm/task-il@cglb-1", "training.plateau_factor", 0.5, "the rate is constant"),
        ("synthetic-csbm/hard@drift-1", "training.carry_optimizer", True, "no end of a task"),
        ("synthetic-csbm/hard@drift-1", "scenario.head", "growing", "one head from the start"),
        ("synthetic-motifs/class-il@begin-1", "scenario.undirected", False, "whole graphs come with their features"),
        ("synthetic-motifs/domain-il@begin-1", "scenario.classes_per_task", 3, "tasks are the values of domain"),
        ("synthetic-motifs/domain-il@begin-1", "scenario.train_outputs", "all", "share their outputs"),
    ],
)
def test_a_value_that_nothing_reads_is_refused_with_the_reason(
    catalogue: Catalogue, name: str, switch: str, value: Any, reason: str
) -> None:
    with pytest.raises(SpecError, match=rf"{switch} = .* would have no effect: .*{reason}.*remove it"):
        resolve_cell(catalogue, name, "bare", overrides={switch: value})


def test_the_value_of_the_preset_may_be_repeated(catalogue: Catalogue) -> None:
    name = "synthetic-csbm/class-il@cglb-1"
    plain = resolve_cell(catalogue, name, "bare")
    assert resolve_cell(catalogue, name, "bare", overrides={"training.plateau_factor": 0.1}) == plain


def test_a_switch_that_another_makes_effective_is_read(catalogue: Catalogue) -> None:
    changes = {"training.plateau_patience": 5, "training.plateau_factor": 0.5, "training.monitor": "validation-loss"}
    assert resolve_cell(catalogue, "synthetic-csbm/class-il@cglb-1", "bare", overrides=changes).scenario.training.plateau_factor == 0.5
