"""What the package lists: complete, honest about sources, free of heavy imports; and presets that are the published protocols."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest
from cglsuite_graph.datasets.specs import DATASETS, SIZES
from cglsuite_graph.protocols import begin_presets, cglb_presets

from cglsuite.specs import DatasetSpec

BEGIN = {preset.name: preset for preset in begin_presets()}
CGLB = {preset.name: preset for preset in cglb_presets()}
PRESETS = BEGIN | CGLB


def test_listing_imports_nothing_heavy() -> None:
    heavy = {"torch", "numpy", "scipy", "pandas", "pyarrow", "rdkit", "spacy", "torch_geometric"}
    code = (
        f"import sys, cglsuite_graph.plugin as p; p.cglsuite_datasets(); p.cglsuite_scenarios(); print(sorted({heavy} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("spec", DATASETS, ids=lambda spec: spec.name)
def test_a_datasets_spec_is_complete_and_its_factory_exists(spec: DatasetSpec) -> None:
    assert spec.levels in (("GC",), ("GR",))
    assert spec.citation
    assert spec.licence
    assert spec.embedded == (spec.name.startswith("synthetic-"))
    assert "fficial split" in spec.summary
    if not spec.embedded:
        assert spec.home.startswith("https://")
    if spec.name in SIZES:
        assert str(SIZES[spec.name]) in spec.summary
    module, _, name = spec.factory.partition(":")
    factory = getattr(importlib.import_module(module), name)
    taken = inspect.signature(factory).parameters
    assert next(iter(taken)) == "root"
    assert factory.__doc__
    if not spec.embedded:
        assert {n: p.default for n, p in taken.items() if n != "root"} == {h.name: h.default for h in spec.hyperparameters}


def test_every_parameter_says_what_it_is_and_what_changing_it_does() -> None:
    for spec in DATASETS:
        for parameter in spec.hyperparameters:
            assert parameter.doc, (spec.name, parameter.name)
            assert parameter.effect, (spec.name, parameter.name)


def test_every_dataset_has_a_preset_and_the_other_way_round() -> None:
    assert {preset.dataset for preset in PRESETS.values()} == {spec.name for spec in DATASETS}


def test_begins_protocol() -> None:
    for preset in BEGIN.values():
        training, backbone = preset.training, dict(preset.backbone_hyperparameters)
        assert (training.backbone, training.optimizer, training.batch_size, training.epochs) == ("begin-graph-gcn", "adam", 128, 100)
        assert (training.plateau_patience, training.plateau_factor, training.stop_ratio) == (10, 0.1, 1e-2)
        assert (training.monitor, training.restore_best, training.carry_optimizer) == ("validation-loss", True, False)
        assert (backbone["layers"], backbone["width"], backbone["readout"], backbone["predictor_layers"]) == (4, 146, "mean", 2)
        assert preset.class_order == ("native" if preset.setting == "time-il" else "random")
        assert preset.train_outputs == ("task" if preset.setting == "task-il" else "seen")
        assert preset.performance == {"GR": "negative-mae"}.get(preset.level, "roc-auc" if preset.dataset == "ogbg-molhiv" else "micro")
        memories = {
            "mnist": 500,
            "cifar10": 500,
            "aromaticity": 50,
            "nyc-taxi": 800,
            "sentiment140": 60,
            "ogbg-molhiv": 500,
            "ogbg-ppa": 500,
        }
        if not preset.dataset.startswith("synthetic-"):
            assert preset.memory_budget == memories.get(preset.dataset)
        assert preset.citation


def test_begins_hyper_parameters() -> None:
    """Table of the paper: LwF λ 1, EWC λ 10,000, MAS λ 1, GEM's margin 0.5, the memory shared by the tasks; isolation as in the code."""
    assert {k: dict(v) for k, v in BEGIN["aromaticity/class-il@begin-1"].method_defaults.items()} == {
        "ewc": {"method.fisher": "batch", "method.lambda": 1e4},
        "lwf": {"method.lambda": 1.0, "method.temperature": 2.0},
        "mas": {"method.importance": "batch", "method.lambda": 1.0},
        "twp": {"method.lambda_l": 1e4, "method.lambda_t": 100.0, "method.beta": 0.01},
        "gem": {"method.margin": 0.5, "method.per_task": 5},
        "packnet": {"method.as_begin": True},
        "piggyback": {"method.as_begin": True, "method.threshold": 0.01},
        "hat": {"method.as_begin": True, "method.gates": "none", "training.norm_statistics": "shared"},
        "pi-gnn": {"method.beta": 1.0, "method.per_task": 5},
        "cat": {"method.as_begin": True, "method.per_task": 5},
    }


def test_cglbs_protocol() -> None:
    for preset in CGLB.values():
        training, backbone = preset.training, dict(preset.backbone_hyperparameters)
        assert (training.backbone, training.lr, training.epochs, training.batch_size) == ("graph-gcn", 1e-3, 100, 128)
        assert (training.carry_optimizer, training.class_balanced, training.plateau_patience) == (True, True, None)
        assert (backbone["layers"], backbone["width"], backbone["residual"], backbone["batch_norm"]) == (2, 64, True, True)
        assert (backbone["normalisation"], backbone["readout"]) == ("none", "weighted-sum-and-max")
        assert (preset.class_order, preset.split_ratio, preset.memory_budget) == ("native", (0.8, 0.1, 0.1), None)
        labels = preset.dataset in ("sider", "tox21")
        assert (preset.classes_per_task, preset.performance, preset.split) == (
            (1, "roc-auc", "random") if labels else (2, "macro", "per-class")
        )


def test_aromaticity_has_two_protocols_that_say_why() -> None:
    begin, cglb = BEGIN["aromaticity/class-il@begin-1"], CGLB["aromaticity/class-il@cglb-1"]
    assert dict(begin.dataset_hyperparameters)["features"] == "degrees"
    assert "features" not in dict(cglb.dataset_hyperparameters), "the dataset's default: canonical features"
    for preset in (begin, cglb):
        assert "77.2" in preset.note


def test_the_presets_that_are_listed() -> None:
    """Listed by name: a preset that can be derived for any dataset is found even if the list forgets it."""
    listed = [
        "aromaticity/class-il",
        "aromaticity/task-il",
        "sider/task-il",
        "synthetic-motifs/class-il",
        "synthetic-motifs/task-il",
        "tox21/task-il",
    ]
    assert sorted(CGLB) == [f"{name}@cglb-{version}" for name in listed for version in (1, 2)]
