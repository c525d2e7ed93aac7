"""The presets are the published protocols: every switch that a protocol fixes is what the protocol says."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any

import pytest
from cglsuite_node.chosen import CHOSEN
from cglsuite_node.datasets.specs import CSBM_PARAMETERS, DATASETS, SIZES
from cglsuite_node.presets import presets

from cglsuite import ScenarioSpec, load_catalogue
from cglsuite.specs import switches

PRESETS = {p.name: p for p in presets()}
BEGIN = [p for p in PRESETS.values() if p.protocol == "begin-1"]
CGLB = [p for p in PRESETS.values() if p.protocol in ("cglb-1", "cglb-inter-1")]
N_CLASSES = {name: sizes.classes for name, sizes in SIZES.items()} | {
    "synthetic-csbm": next(int(str(h.default)) for h in CSBM_PARAMETERS if h.name == "n_classes")
}

# BeGin, node classification: whole graph, random orders, official residues, plateau schedule on the task's validation loss, micro accuracy.
BEGIN_SWITCHES: dict[str, Any] = {
    "level": "NC",
    "classes_per_task": 2,
    "n_tasks": None,
    "leftover": "drop",
    "class_order": "random",
    "edge_policy": "full",
    "undirected": True,
    "feature_normalisation": "row",
    "accuracy": "micro",
    "head": "fixed",
    "searched": ("training.lr", "training.weight_decay", "backbone.dropout"),
}
BEGIN_TRAINING: dict[str, Any] = {
    "backbone": "gcn",
    "optimizer": "adam",
    "lr": 1e-3,
    "weight_decay": 0.0,
    "epochs": 1000,
    "plateau_factor": 0.1,
    "stop_ratio": 1e-3,
    "monitor": "validation-loss",
    "restore_best": True,
    "carry_optimizer": False,
    "class_balanced": False,
}
BEGIN_BACKBONE = {
    "layers": 3,
    "width": 256,
    "normalisation": "symmetric",
    "bias": False,
    "batch_norm": True,
    "dropout": 0.5,
    "input_dropout": None,
    "head": "linear",
}

# CGLB: native order, per-class 60/20/20, un-normalised sums without bias, 200 epochs of Adam with its moments kept, macro accuracy.
CGLB_SWITCHES: dict[str, Any] = {
    "level": "NC",
    "n_tasks": None,
    "leftover": "drop",
    "class_order": "native",
    "min_class_size": 5,
    "feature_normalisation": "none",
    "split": "per-class",
    "split_ratio": (0.6, 0.2, 0.2),
    "accuracy": "macro",
    "memory_budget": None,
}
CGLB_TRAINING: dict[str, Any] = {
    "backbone": "gcn",
    "optimizer": "adam",
    "lr": 5e-3,
    "weight_decay": 5e-4,
    "epochs": 200,
    "plateau_patience": None,
    "monitor": "none",
    "restore_best": False,
    "carry_optimizer": True,
    "class_balanced": True,
}
CGLB_BACKBONE = {
    "layers": 2,
    "width": 256,
    "normalisation": "none",
    "bias": False,
    "batch_norm": False,
    "dropout": 0.0,
    "input_dropout": 0.0,
    "head": "convolution",
}


def differences(values: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    return {name: values.get(name, "absent") for name, value in expected.items() if values.get(name, "absent") != value}


@pytest.mark.parametrize("preset", BEGIN, ids=lambda p: p.name)
def test_begins_protocol(preset: ScenarioSpec) -> None:
    assert differences(switches(preset), BEGIN_SWITCHES) == {}
    assert differences(switches(preset.training), BEGIN_TRAINING) == {}
    assert dict(preset.backbone_settings) == BEGIN_BACKBONE
    assert preset.training.plateau_patience == (50 if preset.dataset == "citeseer" else 20)
    assert preset.split == ("per-class" if preset.dataset == "synthetic-csbm" else "official")


@pytest.mark.parametrize("preset", CGLB, ids=lambda p: p.name)
def test_cglbs_protocol(preset: ScenarioSpec) -> None:
    assert differences(switches(preset), CGLB_SWITCHES) == {}
    assert differences(switches(preset.training), CGLB_TRAINING) == {}
    assert dict(preset.backbone_settings) == CGLB_BACKBONE
    assert preset.edge_policy == ("inter-task" if preset.protocol == "cglb-inter-1" else "none")
    assert preset.undirected is (preset.dataset != "ogbn-arxiv")
    assert preset.classes_per_task == (1 if preset.dataset == "pubmed" else 2)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda p: p.name)
def test_every_preset(preset: ScenarioSpec) -> None:
    """Names say dataset, setting and protocol; task-IL trains a task's outputs, class-IL all seen; sources are cited."""
    assert preset.name == f"{preset.dataset}/{preset.setting}@{preset.protocol}"
    assert preset in BEGIN or preset in CGLB
    assert preset.dataset in {d.name for d in DATASETS}
    assert preset.setting in ("task-il", "class-il")
    assert preset.train_outputs == {"task-il": "task", "class-il": "seen"}[preset.setting]
    assert preset.summary
    assert preset.citation
    assert N_CLASSES[preset.dataset] >= 2 * preset.classes_per_task


def test_which_presets_there_are() -> None:
    names = set(PRESETS)
    assert len(presets()) == len(names)
    for dataset in ("cora", "citeseer", "synthetic-csbm"):
        for setting in ("task-il", "class-il"):
            assert {f"{dataset}/{setting}@{protocol}" for protocol in ("begin-1", "cglb-1", "cglb-inter-1")} <= names
    assert {f"{d}/{s}@cglb-1" for d in ("corafull", "ogbn-arxiv", "reddit", "ogbn-products") for s in ("task-il", "class-il")} <= names
    assert [n for n in names if n.startswith("pubmed")] == ["pubmed/class-il@cglb-1"]  # one class a task: nothing to tell apart in task-IL


def test_the_card_warns_where_the_topology_gives_the_task_away() -> None:
    for preset in PRESETS.values():
        assert ("give the task away" in preset.note) is (preset.edge_policy == "none")


@pytest.mark.parametrize("preset", BEGIN, ids=lambda p: p.name)
def test_begins_memory(preset: ScenarioSpec) -> None:
    """The budget is divided by the number of classes (12 // 7 = 1 for Cora, 12 // 6 = 2 for CiteSeer), so that it is never exceeded."""
    per_class = preset.method_defaults["er-gnn"]["method.per_class"]
    assert preset.memory_budget is not None
    assert per_class == preset.memory_budget // N_CLASSES[preset.dataset]
    if preset.dataset in ("cora", "citeseer"):
        assert preset.memory_budget == 12


def test_methods_as_benchmarked() -> None:
    """What the protocols do, not what they got wrong: sampling, budgets and loss weights."""
    for preset in BEGIN:
        assert preset.method_defaults["ewc"]["method.fisher"] == "batch"
        replay = preset.method_defaults["er-gnn"]
        assert (replay["method.swap_weights"], replay["method.neighbourhood"], replay["method.sampler"]) == (True, True, "cm")
    for preset in CGLB:
        assert preset.method_defaults["ewc"] == {"method.fisher": "batch"}
        assert preset.method_defaults["er-gnn"] == {"method.per_class": 100}


def test_searched_values_belong_to_presets_and_to_what_the_protocol_leaves_open() -> None:
    for name, by_method in CHOSEN.items():
        preset = PRESETS[name]
        for method, values in by_method.items():
            assert preset.method_defaults[method].items() >= values.items()
            for key in values:
                assert key in preset.searched or key.startswith("method."), f"{name}, {method}: {key} is not left to a search"


@pytest.mark.plugins("cglsuite-methods")
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_resolves_with_every_built_in_method(name: str) -> None:
    """Every default that a preset names is a setting that somebody declares, with a value that is allowed; nothing counts as overridden."""
    from cglsuite.cells.spec import resolve_cell

    catalogue = load_catalogue(allow=["cglsuite", "cglsuite-node", "cglsuite-methods"])
    for method in ("bare", "joint", "ewc", "er-gnn"):
        cell = resolve_cell(catalogue, name, method)
        assert cell.preset == name
        for key, value in PRESETS[name].method_defaults.get(method, {}).items():
            assert cell.settings[key] == value


def test_listing_imports_nothing_heavy() -> None:
    heavy = {"torch", "numpy", "scipy", "pandas", "torch_geometric", "ogb"}
    code = (
        f"import sys, cglsuite_node.plugin as p; p.cglsuite_datasets(); p.cglsuite_scenarios(); print(sorted({heavy} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_presets_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        PRESETS["cora/task-il@begin-1"].edge_policy = "none"  # type: ignore[misc]
