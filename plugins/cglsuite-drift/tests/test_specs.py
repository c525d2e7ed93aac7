"""What the package lists: complete, honest about sources, free of heavy imports; and presets that are the published protocol."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cglsuite_drift.datasets.specs import DATASETS, SIZES
from cglsuite_drift.plugin import cglsuite_schedules
from cglsuite_drift.protocols import SIGMAS, drift_presets
from installed import installed

from cglsuite import ScenarioSpec, Seeds
from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import UnknownNameError
from cglsuite.cells.spec import preset_differences, resolve_cell, resolve_scenario
from cglsuite.specs import DatasetSpec, TaskFreeSpec

PRESETS = {preset.name: preset for preset in drift_presets()}
SCHEDULES = ("gaussian", "hard", "global", "boundary-local")
PUBLISHED = {"corafull": 20, "ogbn-arxiv": 60, "reddit": 120, "roman-empire": 40}
GRAPHS = {"nw-ucla": "skeleton-1", "synthetic-motion": "skeleton-1", "aromaticity": "cglb-1", "synthetic-motifs": "cglb-1"}
EMBEDDED = {"synthetic-csbm", "synthetic-motion", "synthetic-motifs"}
INSTALLED = ("cglsuite", "cglsuite-drift", "cglsuite-node", "cglsuite-skeleton", "cglsuite-graph", "cglsuite-methods")


def task_free(preset: ScenarioSpec) -> TaskFreeSpec:
    assert preset.task_free is not None
    return preset.task_free


def test_listing_imports_nothing_heavy() -> None:
    heavy = {"torch", "numpy", "scipy", "pandas", "torch_geometric"}
    code = (
        "import sys, cglsuite_drift.plugin as p; p.cglsuite_datasets(); p.cglsuite_scenarios(); p.cglsuite_schedules(); "
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_schedules_need_no_torch() -> None:
    code = "import sys, cglsuite_drift.schedules; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_what_there_is() -> None:
    assert {spec.name for spec in DATASETS} == set(SIZES) == {"roman-empire", "actor", "uai2010"}
    assert [spec.name for spec in cglsuite_schedules()] == [
        *("hard", "boundary-local", "global", "gaussian", "linear", "periodic", "real-time")
    ]
    first, second = ("drift-1", "drift-honest-1"), ("drift-2", "drift-honest-2")
    expected = {f"{d}/{s}@{p}" for d in SIGMAS for s in SCHEDULES for p in (first if d in GRAPHS else first + second)}
    assert set(PRESETS) == expected
    assert set(PUBLISHED) < set(SIGMAS)
    assert "synthetic-csbm/gaussian@drift-1" in PRESETS


@pytest.mark.parametrize("spec", DATASETS, ids=lambda spec: spec.name)
def test_a_datasets_spec_is_complete_and_its_factory_exists(spec: DatasetSpec) -> None:
    assert spec.levels == ("NC",)
    assert spec.citation
    assert spec.licence
    assert spec.home.startswith("https://")
    assert str(SIZES[spec.name]) in spec.summary
    assert "hecksum" in spec.summary
    assert "fficial split" in spec.summary
    module, _, name = spec.factory.partition(":")
    factory = getattr(importlib.import_module(module), name)
    taken = inspect.signature(factory).parameters
    assert next(iter(taken)) == "root"
    assert factory.__doc__
    assert {n: p.default for n, p in taken.items() if n != "root"} == {h.name: h.default for h in spec.hyperparameters}
    assert all(h.doc and h.effect for h in spec.hyperparameters)


def test_drifts_protocol() -> None:
    for preset in PRESETS.values():
        nodes = preset.dataset not in GRAPHS
        assert (preset.level, preset.setting, preset.labels) == ("NC" if nodes else "GC", "task-free", "single")
        assert preset.performance == "micro"
        assert (preset.classes_per_task, preset.class_order, preset.leftover, preset.edge_policy) == (2, "native", "drop", "full")
        assert (preset.split, preset.split_ratio, preset.train_outputs) == ("per-class", (0.6, 0.2, 0.2), "seen")
        assert (preset.undirected, preset.feature_normalisation, preset.head, preset.memory_budget) == (True, "none", "fixed", 100)
        training = preset.training
        assert (training.optimizer, training.lr, training.weight_decay) == ("adam", 5e-3, 5e-4)
        assert (training.batch_size, training.epochs) == (10, 1)
        assert (training.backbone, training.fan_out) == (("gcn", (10, 25)) if nodes else ("graph-gcn", ()))
        assert (training.class_balanced, training.monitor, training.plateau_patience) == (False, "none", None)
        if nodes:
            backbone = dict(preset.backbone_hyperparameters)
            assert (backbone["layers"], backbone["width"], backbone["batch_norm"]) == (2, 256, False)
            assert (backbone["dropout"], backbone["input_dropout"]) == (0.0, 0.0)
        assert (task_free(preset).draw, task_free(preset).query_graph) == ("without-replacement", "own")
        assert preset.citation
        assert preset.note


@pytest.mark.plugins("cglsuite-skeleton", "cglsuite-graph")
@pytest.mark.parametrize("dataset", sorted(GRAPHS))
def test_graphs_meet_the_backbone_of_their_benchmark(dataset: str) -> None:
    catalogue = installed(*INSTALLED)
    theirs: Any = catalogue.get("scenario", f"{dataset}/class-il@{GRAPHS[dataset]}").spec
    for preset in PRESETS.values():
        if preset.dataset == dataset:
            assert preset.backbone_hyperparameters == theirs.backbone_hyperparameters
            assert preset.training.backbone == theirs.training.backbone
            assert preset.level == theirs.level == "GC"


def test_schedules_and_masks() -> None:
    for preset in PRESETS.values():
        schedule = preset.name.partition("/")[2].partition("@")[0]
        assert task_free(preset).schedule == schedule
        sigma = SIGMAS[preset.dataset].value
        expected: dict[str, Any] = {"gaussian": {"sigma": sigma}, "global": {"p": 0.1}, "boundary-local": {"window": 5.0}}
        assert dict(task_free(preset).schedule_hyperparameters) == expected.get(schedule, {})
        if preset.protocol.startswith("drift-honest-"):
            assert task_free(preset).mask == "seen"
            assert "as in the published code" not in preset.summary.lower() + preset.note.lower()
        else:
            assert task_free(preset).mask == ("all" if schedule == "global" else "progressive")
            assert "As in the published code" in preset.note
        assert ("discards nodes" in preset.note) is (schedule == "boundary-local")
        assert ("is ours; the paper does not" in preset.note) is (schedule == "gaussian" and preset.dataset not in PUBLISHED)


def test_the_papers_widths_and_evaluations() -> None:
    for dataset, sigma in PUBLISHED.items():
        assert SIGMAS[dataset] == (sigma, True, 100)
    assert not any(sigma.published for dataset, sigma in SIGMAS.items() if dataset not in PUBLISHED)


@pytest.mark.parametrize("version", [1, 2])
def test_what_the_mask_changes_is_all_that_the_honest_preset_changes_but_for_methods(version: int) -> None:
    catalogue = installed(*INSTALLED)
    rows = preset_differences(catalogue, f"uai2010/gaussian@drift-{version}", f"uai2010/gaussian@drift-honest-{version}")
    assert [row.field for row in rows if not row.field.startswith("method")] == ["stream.mask"]


@pytest.mark.parametrize("of", ["drift", "drift-honest"])
def test_the_second_version_has_the_backbone_of_the_published_code(of: str) -> None:
    """Sums without bias, weights as torch's linear maps start; each difference says what it does."""
    catalogue = installed(*INSTALLED)
    rows = preset_differences(catalogue, f"uai2010/gaussian@{of}-1", f"uai2010/gaussian@{of}-2")
    found = {row.field: (row.a, row.b) for row in rows if row.section == "backbone"}
    assert found == {
        "backbone.normalisation": ("symmetric", "none"),
        "backbone.bias": (True, False),
        "backbone.init": ("glorot", "linear"),
    }
    assert {row.section for row in rows} <= {"backbone", "method_defaults"}
    assert all(row.effect for row in rows)
    assert f"{of}-2" in PRESETS[f"uai2010/gaussian@{of}-1"].note


def test_methods_as_benchmarked() -> None:
    """Departures from the algorithms are in the benchmarked presets alone; all other values are the paper's."""
    for preset in PRESETS.values():
        defaults = preset.method_defaults
        second = preset.protocol == "drift-2"
        assert defaults["mas-star"]["method.lambda"] == (0.25 if second else 0.5)
        assert defaults["gss"]["method.compared"] == 10
        for method in ("ssm", "sem"):
            assert (defaults[method]["method.fan_out"], defaults[method]["method.hops"]) == (5, 2)
        departures = {
            "mas-star": {"method.hard_buffer": 0},
            "sem": {
                "method.centres_only": True,
                "method.curvature": "overlap-with-larger" if second else "overlap",
                "scenario.memory_budget": 10,
            },
            "ssm": {"method.centres_only": True} | ({"scenario.memory_budget": 10} if second else {}),
        }
        assert ("dmsg" in defaults) is second
        in_turn = {"method.compared_batches": 5, "method.separate_steps": True, "training.epochs": 2} if second else {}
        assert defaults["gss"] == {"method.compared": 10} | in_turn
        for method, values in departures.items():
            found = {key: defaults[method][key] for key in values if key in defaults[method]}
            assert found == (values if preset.protocol in ("drift-1", "drift-2") else {})


@pytest.mark.plugins("cglsuite-node", "cglsuite-methods")
def test_a_schedules_setting_is_set_by_its_bare_name() -> None:
    catalogue = installed(*INSTALLED)
    cell = resolve_cell(catalogue, "corafull/gaussian@drift-1", "bare", overrides={"sigma": 3})
    assert cell.configuration["schedule.sigma"] == 3
    assert cell.preset.startswith("corafull/gaussian@drift-1+")
    other = resolve_cell(catalogue, "corafull/gaussian@drift-1", "bare", overrides={"stream.schedule": "periodic", "period": 100})
    assert other.configuration["schedule.period"] == 100
    assert "schedule.sigma" not in other.configuration


def test_presets_of_a_dataset_that_is_not_installed_are_listed_and_say_so_when_used() -> None:
    catalogue = installed("cglsuite", "cglsuite-drift", "cglsuite-methods")
    assert set(PRESETS) <= set(catalogue.names("scenario"))
    assert {spec.name for spec in DATASETS} == set(catalogue.names("dataset"))
    for entry in catalogue.entries("scenario"):
        assert entry.describe()["name"] == entry.name
    if "bare" in catalogue.names("method"):
        with pytest.raises(UnknownNameError, match="unknown dataset 'corafull'"):
            resolve_cell(catalogue, "corafull/gaussian@drift-1", "bare")


# --- σ where the paper has none ------------------------------------------------------------------------------------------------


def overlap_of(dataset: str, root: DataRoot) -> float:
    """The overlap index of the Gaussian preset of ``dataset``."""
    from cglsuite.streams.build_task_free import build_task_free_stream
    from cglsuite.streams.mixing import overlap_index

    catalogue = installed(*INSTALLED)
    scenario = resolve_scenario(catalogue, f"{dataset}/gaussian@drift-1")
    data = catalogue.resolve(catalogue.get("dataset", dataset))(root, **scenario.dataset_hyperparameters)
    return overlap_index(build_task_free_stream(scenario.spec, data, Seeds()).mixture)


@pytest.mark.plugins("cglsuite-node", "cglsuite-skeleton", "cglsuite-graph")
@pytest.mark.parametrize("dataset", sorted(EMBEDDED))
def test_widths_for_embedded_data(dataset: str, tmp_path: Path) -> None:
    assert overlap_of(dataset, DataRoot(None, tmp_path)) == pytest.approx(0.3, abs=0.05)


@pytest.mark.realdata
@pytest.mark.plugins("cglsuite-node", "cglsuite-skeleton", "cglsuite-graph")
@pytest.mark.parametrize(
    "dataset",
    [
        pytest.param(name, marks=[pytest.mark.nightly] if name in ("aromaticity", "citationfull-dblp") else [])
        for name, sigma in SIGMAS.items()
        if not sigma.published and name not in EMBEDDED
    ],
)
def test_widths_that_are_not_the_papers(dataset: str, tmp_path: Path) -> None:
    assert overlap_of(dataset, DataRoot(DataRoot.from_environment().root, tmp_path, offline=True)) == pytest.approx(0.3, abs=0.06)


@pytest.mark.plugins("cglsuite-node", "cglsuite-methods")
def test_a_cell_runs(tmp_path: Path) -> None:
    from cglsuite.cells.run import run_cell
    from cglsuite.cells.storage.store import Store

    catalogue = installed(*INSTALLED)
    small = {"dataset.n_nodes": 300, "dataset.n_classes": 4, "backbone.width": 16, "sigma": 2}
    for schedule in SCHEDULES:
        overrides = {key: value for key, value in small.items() if key != "sigma" or schedule == "gaussian"}
        record = run_cell(
            resolve_cell(catalogue, f"synthetic-csbm/{schedule}@drift-honest-1", "bare", overrides=overrides), catalogue, Store(tmp_path)
        )
        assert record.status == "done", record.reason
        assert len(record.matrix[-1]) == 2


@pytest.mark.plugins("cglsuite-skeleton", "cglsuite-methods")
@pytest.mark.parametrize("method", ["bare", "er", "ssm", "dmsg", "joint"])
def test_a_cell_over_sequences_runs(method: str, tmp_path: Path) -> None:
    from cglsuite.cells.run import run_cell
    from cglsuite.cells.storage.store import Store

    catalogue = installed(*INSTALLED)
    small = {"dataset.per_class": 20, "dataset.n_classes": 4, "dataset.frames": 8, "backbone.width": 8, "stream.evaluate_every": 2}
    more = {"scenario.memory_budget": 7} | ({"method.offline_epochs": 3} if method == "joint" else {})
    cell = resolve_cell(catalogue, "synthetic-motion/gaussian@drift-honest-1", method, overrides=small | more)
    record = run_cell(cell, catalogue, Store(tmp_path))
    assert record.status == "done", record.reason
    assert record.stream["evaluations"] == [0, 2, 4, 6]
    assert [sum(row) for row in record.stream["delivered"]] == [0, 20, 40, 60]
    assert len(record.matrix) == 4
    assert record.memory["items"] == (0 if method in ("bare", "joint") else 7)
    assert all(value is not None and 0 <= value <= 1 for row in record.matrix for value in row)


@pytest.mark.plugins("cglsuite-graph", "cglsuite-methods")
@pytest.mark.parametrize("method", ["bare", "a-gem"])
def test_a_cell_over_motifs_runs(method: str, tmp_path: Path) -> None:
    from cglsuite.cells.run import run_cell
    from cglsuite.cells.storage.store import Store

    catalogue = installed(*INSTALLED)
    cell = resolve_cell(catalogue, "synthetic-motifs/gaussian@drift-honest-1", method, overrides={"backbone.width": 8})
    record = run_cell(cell, catalogue, Store(tmp_path))
    assert record.status == "done", record.reason
    assert record.stream["evaluations"] == [0, 5, 10, 15, 20, 25]
    assert len(record.matrix[-1]) == 5
