"""What the package lists: complete, honest about sources, free of heavy imports; and presets that are the published protocol."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from typing import Any

import pytest
from cglsuite_skeleton.datasets.specs import DATASETS, SIZES
from cglsuite_skeleton.protocols import skeleton_presets
from installed import installed

from cglsuite.specs import DatasetSpec

PRESETS = {preset.name: preset for preset in skeleton_presets()}


def test_listing_imports_nothing_heavy() -> None:
    heavy = {"torch", "numpy", "scipy", "pandas", "torch_geometric"}
    code = (
        "import sys, cglsuite_skeleton.plugin as p; p.cglsuite_datasets(); p.cglsuite_scenarios(); p.cglsuite_backbones(); "
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_which_datasets_and_presets_there_are() -> None:
    names = {"nw-ucla", "ntu-rgbd", "synthetic-motion"}
    assert {spec.name for spec in DATASETS} == names
    assert set(PRESETS) == {f"{name}/class-il@skeleton-{version}" for name in names for version in (1, 2)}


@pytest.mark.parametrize("spec", DATASETS, ids=lambda spec: spec.name)
def test_a_datasets_spec_is_complete_and_its_factory_exists(spec: DatasetSpec) -> None:
    assert spec.levels == ("GC",)
    assert spec.citation
    assert spec.licence
    assert spec.embedded == spec.name.startswith("synthetic-")
    assert "No official split" in spec.summary
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
    backbones = importlib.import_module("cglsuite_skeleton.backbones").backbones()
    for parameter in [h for spec in (*DATASETS, *backbones) for h in getattr(spec, "parameters", getattr(spec, "hyperparameters", ()))]:
        assert parameter.doc, parameter.name
        assert parameter.effect, parameter.name


def test_the_skeleton_benchmarks_protocol() -> None:
    for preset in PRESETS.values():
        assert (preset.level, preset.setting, preset.labels) == ("GC", "class-il", "single")
        assert (preset.classes_per_task, preset.class_order, preset.performance, preset.train_outputs) == (2, "native", "macro", "seen")
        assert (preset.split, preset.split_ratio, preset.memory_budget, preset.head) == ("per-class", (0.8, 0.1, 0.1), None, "fixed")
        training = preset.training
        assert (training.backbone, training.optimizer, training.lr, training.weight_decay) == ("graph-gcn", "adam", 1e-3, 0.0)
        assert (training.epochs, training.batch_size, training.monitor, training.restore_best) == (100, None, "none", False)
        assert (training.carry_optimizer, training.class_balanced) == (True, True)
        backbone = dict(preset.backbone_hyperparameters)
        assert (backbone["layers"], backbone["width"], backbone["predictor_width"]) == (2, 64, 64)
        assert (backbone["readout"], backbone["normalisation"]) == ("weighted-sum-and-max", "none")
        assert preset.citation
        assert preset.note


def test_the_grid_searchs_choices() -> None:
    """Wei et al. 2024: the same for both datasets but for TWP's weight of the loss and LwF's of the distillation."""
    ucla, ntu = (PRESETS[f"{name}/class-il@skeleton-1"].method_defaults for name in ("nw-ucla", "ntu-rgbd"))
    assert {k: dict(v) for k, v in ucla.items()} == {
        "ewc": {"method.lambda": 1e6, "method.fisher": "batch"},
        "mas": {"method.lambda": 100.0, "method.importance": "batch-squared"},
        "twp": {"method.lambda_l": 1e4, "method.lambda_t": 1e4, "method.beta": 0.01},
        "lwf": {"method.lambda": 1.0, "method.temperature": 2.0},
        "gem": {"method.margin": 5.0, "method.fraction": 0.2},
        "replay": {"method.fraction": 0.2},
    }
    differing = {(m, k): v for m, values in ntu.items() for k, v in values.items() if v != ucla[m][k]}
    assert differing == {("twp", "method.lambda_l"): 100.0, ("lwf", "method.lambda"): 0.1}


@pytest.mark.plugins("cglsuite-methods")
def test_the_second_version_follows_the_paper_and_its_code() -> None:
    """No augmentation, and per method what CGLB's code at graph level does; nothing else differs, and each difference has its effect."""
    from cglsuite.cells.spec import preset_differences

    catalogue = installed("cglsuite", "cglsuite-skeleton", "cglsuite-methods")
    rows = preset_differences(catalogue, "nw-ucla/class-il@skeleton-1", "nw-ucla/class-il@skeleton-2")
    assert {row.field: (row.a, row.b) for row in rows} == {
        "dataset.augmentation": ("views", "none"),
        **{f"method_defaults.{m}.method.importance_mode": ("evaluation", "training") for m in ("ewc", "mas", "twp")},
        "method_defaults.gem.method.memory_outputs": ("seen", "until-task"),
        "method_defaults.lwf.method.own_task_loss": (False, True),
        "method_defaults.twp.method.attention_norm": ("squared", "norm"),
        **{f"method_defaults.twp.method.{n}": (False, True) for n in ("detach_beta", "double_loss", "topology_accumulates")},
    }
    assert all(row.effect for row in rows)
    assert "skeleton-2" in PRESETS["nw-ucla/class-il@skeleton-1"].note


@pytest.mark.plugins("cglsuite-methods")
def test_every_preset_resolves_with_st_gcn_and_every_method_of_its_level() -> None:
    """What a preset gives to a method it gives on the other backbone too."""
    from cglsuite.cells.spec import resolve_cell

    catalogue = installed("cglsuite", "cglsuite-skeleton", "cglsuite-methods")
    entries: list[Any] = catalogue.entries("method")  # type: ignore[assignment]
    methods = [e.name for e in entries if "GC" in e.spec.levels and "class-il" in e.spec.settings]
    for name, preset in PRESETS.items():
        for method in methods:
            cell, given = resolve_cell(catalogue, name, method, backbone="st-gcn"), preset.method_defaults.get(method, {})
            assert cell.backbone == "st-gcn"
            assert {key: cell.configuration[key] for key in given} == given, (name, method)
