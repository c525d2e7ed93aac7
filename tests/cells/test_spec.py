"""Cells from names and overrides: precedence, keys that are wrong, names to show, and the keys that results are stored under."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from odd_methods import METHODS, with_specs
from plugin_sites import Site, site

from cglsuite import Catalogue, ScenarioSpec, Seeds, load_catalogue
from cglsuite.base.errors import NotApplicable, SpecError, UnknownNameError
from cglsuite.cells import keys as keys_module
from cglsuite.cells.keys import cell_key, design_key, prefix_keys, share_key, sources
from cglsuite.cells.spec import CellSpec, omitted_defaults, resolve_cell

__all__ = ["site"]

pytestmark = pytest.mark.plugins

BEGIN = "synthetic-csbm/class-il@begin-1"
CGLB = "synthetic-csbm/task-il@cglb-1"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue(allow=["cglsuite", "cglsuite-node", "cglsuite-methods", "cglsuite-metrics"])


def cell(catalogue: Catalogue, method: str = "bare", scenario: str = BEGIN, **options: Any) -> CellSpec:
    return resolve_cell(catalogue, scenario, method, **options)


# --- precedence -------------------------------------------------------------------------------------------------------------------


def test_defaults_then_preset_then_searched_values_then_settings(catalogue: Catalogue) -> None:
    """EWC's λ is 1e4 by its own default; BeGin's presets choose the batch's Fisher information; a setting wins over both."""
    plain = cell(catalogue, "ewc")
    assert plain.configuration["method.lambda"] == 1e4
    assert plain.configuration["method.fisher"] == "batch"  # searched for this preset; the method's own default is "items"
    assert plain.configuration["method.chunk"] == 16
    assert plain.configuration["training.lr"] == 1e-3
    assert plain.configuration["backbone.width"] == 256
    assert plain.configuration["backbone.batch_norm"] is True  # of the preset; the backbone's own default is False
    given = cell(catalogue, "ewc", overrides={"method.fisher": "items", "training.lr": "0.5", "backbone.batch_norm": "false", "width": 8})
    assert given.configuration["method.fisher"] == "items"
    assert given.configuration["training.lr"] == 0.5
    assert given.configuration["backbone.batch_norm"] is False
    assert given.configuration["backbone.width"] == 8
    assert given.scenario.training.lr == 0.5


def test_searched_values_of_training_and_backbone(catalogue: Catalogue) -> None:
    """They win over the preset's own, for their method alone, and give way to settings."""
    preset: Any = catalogue.get("scenario", BEGIN).spec
    searched = {"ewc": {"training.lr": 0.25, "backbone.dropout": 0.125, "method.lambda": 7.0}}
    more = with_specs(catalogue, [dataclasses.replace(preset, name="synthetic-csbm/class-il@own-1", method_defaults=searched)])
    own = "synthetic-csbm/class-il@own-1"
    ewc, bare = cell(more, "ewc", own), cell(more, "bare", own)
    assert [ewc.configuration[k] for k in ("training.lr", "backbone.dropout", "method.lambda")] == [0.25, 0.125, 7.0]
    assert [bare.configuration[k] for k in ("training.lr", "backbone.dropout")] == [1e-3, 0.5]
    assert ewc.preset == own  # a preset's own choice is no override
    assert cell(more, "ewc", own, overrides={"training.lr": 0.5}).configuration["training.lr"] == 0.5
    # Values searched for one backbone say nothing of another.
    other = cell(more, "ewc", own, backbone="gin")
    assert other.configuration["backbone.dropout"] == 0.0
    assert other.configuration["training.lr"] == 0.25


def test_scenario_and_dataset_settings(catalogue: Catalogue) -> None:
    made = cell(
        catalogue,
        overrides={"scenario.classes_per_task": "5", "scenario.split_ratio": "0.5,0.25,0.25", "dataset.n_nodes": 100, "n_tasks": "none"},
    )
    assert made.scenario.classes_per_task == 5
    assert made.scenario.split_ratio == (0.5, 0.25, 0.25)
    assert made.scenario.n_tasks is None
    assert made.dataset_hyperparameters["n_nodes"] == 100
    assert made.configuration["scenario.split_ratio"] == (0.5, 0.25, 0.25)


def test_a_backbone_of_ones_own_begins_from_its_defaults(catalogue: Catalogue) -> None:
    made = cell(catalogue, backbone="gat")
    assert made.backbone == made.scenario.training.backbone == "gat"
    assert made.backbone_hyperparameters["heads"] == 8
    assert made.backbone_hyperparameters["width"] == 32
    for overrides in ({"training.backbone": "gat"}, {"training.backbone": "gat", "backbone.heads": "8"}):
        assert cell(catalogue, overrides=overrides) == made
    assert cell(catalogue, backbone="gat", overrides={"training.backbone": "gat"}) == made


def test_every_setting_is_there_once(catalogue: Catalogue) -> None:
    values = cell(catalogue, "er-gnn").configuration
    sections = {key.partition(".")[0] for key in values}
    assert sections == {"scenario", "training", "dataset", "backbone", "method"}
    for key in ("scenario.edge_policy", "training.epochs", "training.backbone", "dataset.homophily", "backbone.layers", "method.sampler"):
        assert key in values
    json.dumps(values)


# --- keys that are wrong ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "full"),
    [
        ("lr", "0.5", "training.lr"),
        ("epochs", "7", "training.epochs"),
        ("lambda", "3", "method.lambda"),
        ("width", "3", "backbone.width"),
        ("n_nodes", "300", "dataset.n_nodes"),
        ("edge_policy", "none", "scenario.edge_policy"),
    ],
)
def test_a_bare_key_will_do_where_one_section_declares_it(catalogue: Catalogue, key: str, value: str, full: str) -> None:
    assert cell(catalogue, "ewc", overrides={key: value}) == cell(catalogue, "ewc", overrides={full: value})


def test_an_ambiguous_bare_key_names_the_choices(catalogue: Catalogue) -> None:
    """Both the scenario and the backbone have a `head`."""
    with pytest.raises(SpecError, match=r"'head' is ambiguous: write scenario\.head or backbone\.head"):
        cell(catalogue, overrides={"head": "linear"})


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"training.epoch": 3}, r"unknown switch or hyperparameter 'training\.epoch'\. Did you mean 'training\.epochs'"),
        ({"epoch": 3}, r"unknown switch or hyperparameter 'epoch'\. Did you mean 'epochs'"),
        ({"method.lamda": 3}, r"unknown switch or hyperparameter 'method\.lamda'\. Did you mean 'method\.lambda'"),
        ({"scenario.edge_polizy": "none"}, r"Did you mean 'scenario\.edge_policy'"),
        ({"backbone.heads": 3}, r"unknown switch or hyperparameter 'backbone\.heads'"),  # of GAT, not of GCN
        ({"trainning.lr": 3}, r"Did you mean 'training\.lr'"),
        ({"scenario.dataset": "cora"}, r"unknown switch or hyperparameter 'scenario\.dataset'"),
        ({"scenario.setting": "task-il"}, r"unknown switch or hyperparameter 'scenario\.setting'"),
        ({"scenario.searched": "x"}, r"unknown switch or hyperparameter 'scenario\.searched'"),
        ({"": 1}, "unknown switch or hyperparameter ''"),
        ({".": 1}, r"unknown switch or hyperparameter '\.'"),
        ({"method.": 1}, r"unknown switch or hyperparameter 'method\.'"),
    ],
)
def test_unknown_keys_suggest_the_nearest(catalogue: Catalogue, overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        cell(catalogue, "ewc", overrides=overrides)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"training.lr": "fast"}, r"training\.lr = 'fast': expected a finite number"),
        ({"training.lr": 0}, r"training\.lr = 0.*expected a positive number"),
        ({"training.lr": "nan"}, r"training\.lr = 'nan': expected a finite number"),
        ({"training.epochs": "2.5"}, r"training\.epochs = '2\.5': expected a whole number"),
        ({"training.epochs": -1}, r"training\.epochs = -1: expected at least 1"),
        ({"training.weight_decay": -1}, r"training\.weight_decay"),
        ({"training.monitor": "none"}, r"training\.monitor = none, but a plateau schedule and restore_best require a monitored value"),
        ({"scenario.edge_policy": "ful"}, "unknown value of scenario.edge_policy 'ful'. Did you mean 'full'"),
        ({"scenario.classes_per_task": 0}, r"scenario\.classes_per_task = 0: expected at least 1"),
        ({"scenario.n_tasks": 0}, r"scenario\.n_tasks = 0"),
        ({"scenario.n_tasks": -1}, r"scenario\.n_tasks = -1"),
        ({"scenario.split_ratio": "0.5,0.5"}, r"scenario\.split_ratio = .*expected three shares"),
        ({"scenario.split_ratio": "0.5,0.5,0.5"}, r"scenario\.split_ratio = .*sum to 1"),
        ({"scenario.split_ratio": "a,b,c"}, r"scenario\.split_ratio"),
        ({"scenario.split_ratio": "nan,nan,nan"}, r"scenario\.split_ratio"),
        ({"scenario.undirected": "maybe"}, r"scenario\.undirected = 'maybe': expected true or false"),
        ({"backbone.dropout": 1.0}, r"backbone\.gcn\.dropout = 1\.0: expected at most 0\.99"),
        ({"backbone.layers": 0}, r"backbone\.gcn\.layers = 0: expected at least 1"),
        ({"method.fisher": "diag"}, r"method\.ewc\.fisher = 'diag': expected one of items, batch"),
        ({"method.lambda": -1}, r"method\.ewc\.lambda = -1: expected at least 0"),
        ({"dataset.homophily": 2}, r"dataset\.synthetic-csbm\.homophily = 2: expected at most 1"),
    ],
)
def test_values_that_cannot_be_are_refused_before_anything_runs(catalogue: Catalogue, overrides: dict[str, Any], message: str) -> None:
    with pytest.raises((SpecError, UnknownNameError), match=message):
        cell(catalogue, "ewc", overrides=overrides)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            {"scenario": "synthetic-csbm/class-il@begun-1"},
            "unknown scenario 'synthetic-csbm/class-il@begun-1'. Did you mean 'synthetic-csbm/class-il@begin-1'",
        ),
        ({"method": "ewk"}, "unknown method 'ewk'. Did you mean 'ewc'"),
        ({"backbone": "gnn"}, "unknown backbone 'gnn'. Did you mean"),
        ({"overrides": {"training.backbone": "gnn"}}, "unknown backbone 'gnn'. Did you mean"),
    ],
)
def test_unknown_names_suggest_the_nearest(catalogue: Catalogue, names: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        cell(catalogue, **names)


# --- combinations that cannot be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "scenario", "reason"),
    [
        ("needs-task", BEGIN, "method 'needs-task' needs the task at test time, which class-il does not provide"),
        ("task-il-only", BEGIN, "method 'task-il-only' is defined for task-il; 'synthetic-csbm/class-il@begin-1' is class-il"),
        ("graphs-only", CGLB, "method 'graphs-only' supports only GC, but 'synthetic-csbm/task-il@cglb-1' is NC"),
    ],
)
def test_not_applicable_says_why(catalogue: Catalogue, method: str, scenario: str, reason: str) -> None:
    odd = with_specs(catalogue, list(METHODS.values()))
    with pytest.raises(NotApplicable) as raised:
        cell(odd, method, scenario)
    assert str(raised.value) == reason
    assert raised.value.exit_code == 3
    assert cell(odd, "needs-task", CGLB).method == "needs-task"
    assert cell(odd, "task-il-only", CGLB).method == "task-il-only"


def test_a_counterpart_in_the_setting_is_named(catalogue: Catalogue) -> None:
    """Only one that is installed and made for the scenario."""
    er = dataclasses.replace(METHODS["task-il-only"], name="er-elsewhere", elsewhere=("no-such", "graphs-only", "needs-task"))  # type: ignore[call-arg]
    odd = with_specs(catalogue, [*METHODS.values(), er])
    with pytest.raises(NotApplicable, match=r"'synthetic-csbm/class-il@begin-1' is class-il; its counterpart there is 'needs-task'$"):
        cell(odd, "er-elsewhere", BEGIN)
    with pytest.raises(NotApplicable, match=r"its counterpart there is 'replay'$"):
        cell(catalogue, "er", BEGIN)


def test_dataset_and_backbone_have_levels_too(catalogue: Catalogue) -> None:
    for kind, name in (("dataset", "synthetic-csbm"), ("backbone", "gcn")):
        spec: Any = dataclasses.replace(catalogue.get(kind, name).spec, name=f"{name}-gc", levels=("GC",))  # type: ignore[call-arg]
        scenario: Any = catalogue.get("scenario", BEGIN).spec
        changes: dict[str, Any] = {"name": "synthetic-csbm/class-il@own-1"} | ({"dataset": spec.name} if kind == "dataset" else {})
        odd = with_specs(catalogue, [spec, dataclasses.replace(scenario, **changes)])
        with pytest.raises(NotApplicable, match=rf"{kind} '{name}-gc' .* GC, but 'synthetic-csbm/class-il@own-1' is NC"):
            cell(odd, "bare", changes["name"], backbone=spec.name if kind == "backbone" else None)


# --- the name to show -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"training.lr": 0.5, "training.weight_decay": 5e-4, "backbone.dropout": 0.25},  # what the protocol leaves to a search
        {"method.lambda": 3.0},
        {"training.epochs": 1000, "scenario.edge_policy": "full", "backbone.width": 256, "dataset.n_nodes": 2000},  # as the preset has it
    ],
)
def test_a_preset_keeps_its_name_where_its_protocol_is_kept(catalogue: Catalogue, overrides: dict[str, Any]) -> None:
    assert cell(catalogue, "ewc", overrides=overrides).preset == BEGIN


def test_leave_to_drop_classes_is_no_part_of_what_was_run(catalogue: Catalogue) -> None:
    """It decides whether a stream is built at all: where it is, name, settings and keys are the same with and without it."""
    plain, allowed = cell(catalogue), cell(catalogue, overrides={"scenario.drop_last": "true"})
    assert (plain.scenario.drop_last, allowed.scenario.drop_last) == (False, True)
    assert cell(catalogue, overrides={"drop_last": True}).scenario.drop_last
    assert (plain.preset, plain.configuration) == (allowed.preset, allowed.configuration)
    assert "scenario.drop_last" not in plain.configuration
    assert design_key(plain) == design_key(allowed)
    assert cell_key(plain, catalogue) == cell_key(allowed, catalogue)


@pytest.mark.parametrize(
    "overrides",
    [
        {"training.epochs": 10},
        {"scenario.edge_policy": "none"},
        {"backbone.width": 64},
        {"dataset.n_nodes": 300},
        {"training.backbone": "gin"},
        {"training.lr": 0.5, "training.epochs": 10},
    ],
)
def test_an_overridden_preset_shows_a_hash(catalogue: Catalogue, overrides: dict[str, Any]) -> None:
    shown = cell(catalogue, overrides=overrides).preset
    base, plus, suffix = shown.partition("+")
    assert (base, plus, len(suffix)) == (BEGIN, "+", 8)
    assert int(suffix, 16) >= 0


def test_the_hash_is_of_what_was_changed(catalogue: Catalogue) -> None:
    """Neither the order of the settings, nor how a value is written, nor what is searched, nor the method matters."""

    def shown(method: str = "bare", **overrides: Any) -> str:
        return cell(catalogue, method, overrides=overrides).preset

    reference = shown(**{"training.epochs": 10, "backbone.width": 64})
    assert shown(**{"backbone.width": "64", "epochs": "10"}) == reference
    assert shown("ewc", **{"training.epochs": 10, "backbone.width": 64, "training.lr": 0.5, "method.lambda": 2}) == reference
    assert shown(**{"training.epochs": 10, "backbone.width": 64, "scenario.performance": "micro"}) == reference
    assert shown(**{"training.epochs": 11, "backbone.width": 64}) != reference
    assert shown(**{"training.epochs": 10}) != reference


# --- keys -------------------------------------------------------------------------------------------------------------------------


def changed_cells(catalogue: Catalogue) -> dict[str, CellSpec]:
    return {
        "order seed": cell(catalogue, "ewc", seeds=Seeds(order=1)),
        "split seed": cell(catalogue, "ewc", seeds=Seeds(split=1)),
        "init seed": cell(catalogue, "ewc", seeds=Seeds(init=1)),
        "scenario": cell(catalogue, "ewc", "synthetic-csbm/task-il@begin-1"),
        "method": cell(catalogue, "bare"),
        "backbone": cell(catalogue, "ewc", backbone="gin"),
        "a method's setting": cell(catalogue, "ewc", overrides={"method.lambda": 1e4 + 1e-9}),
        "a training setting": cell(catalogue, "ewc", overrides={"training.lr": 1.1e-3}),
        "a searched setting": cell(catalogue, "ewc", overrides={"training.weight_decay": 5e-4}),
        "a backbone setting": cell(catalogue, "ewc", overrides={"backbone.width": 255}),
        "a dataset setting": cell(catalogue, "ewc", overrides={"dataset.seed": 1}),
        "a scenario setting": cell(catalogue, "ewc", overrides={"scenario.leftover": "join-last"}),
    }


def test_keys_differ_on_every_change(catalogue: Catalogue) -> None:
    reference = cell(catalogue, "ewc")
    cells = {"nothing": reference, **changed_cells(catalogue)}
    assert len({cell_key(c, catalogue) for c in cells.values()}) == len(cells)
    assert len({design_key(c) for c in cells.values()}) == len(cells)
    executed = {
        "threads": cell(catalogue, "ewc", threads=2),
        "device": cell(catalogue, "ewc", device="cuda"),
    }
    assert len({cell_key(c, catalogue) for c in (reference, *executed.values())}) == 3
    assert len({design_key(c) for c in (reference, *executed.values())}) == 1
    assert len(cell_key(reference, catalogue)) == 64
    assert int(cell_key(reference, catalogue), 16)


@pytest.mark.parametrize("value", [math.inf, "1e400", -math.inf, "nan", 10**400])
def test_no_setting_is_infinite(catalogue: Catalogue, value: object) -> None:
    """JSON has no infinity, and no method can be trained with one."""
    with pytest.raises(SpecError, match=r"training\.lr = .*: expected a finite number"):
        cell(catalogue, overrides={"training.lr": value})


def test_keys_do_not_depend_on_the_order_or_the_writing_of_settings(catalogue: Catalogue) -> None:
    one = cell(catalogue, "ewc", overrides={"training.lr": 0.5, "method.lambda": 3, "backbone.width": 7})
    other = cell(catalogue, "ewc", overrides={"width": "7", "method.lambda": "3.0", "lr": "5e-1"})
    assert one == other
    assert cell_key(one, catalogue) == cell_key(other, catalogue)
    shuffled = dataclasses.replace(one, method_hyperparameters=dict(reversed(one.method_hyperparameters.items())))
    assert cell_key(shuffled, catalogue) == cell_key(one, catalogue)
    assert design_key(shuffled) == design_key(one)
    given_as_default = cell(catalogue, "ewc", overrides={"training.epochs": 1000})
    assert cell_key(given_as_default, catalogue) == cell_key(cell(catalogue, "ewc"), catalogue)


def test_the_key_changes_with_torch(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cell(catalogue)
    key, design, share = cell_key(before, catalogue), design_key(before), share_key(before, catalogue)
    original = keys_module._version
    monkeypatch.setattr(keys_module, "_version", lambda name: "99.0" if name == "torch" else original(name))
    assert cell_key(before, catalogue) != key
    assert share_key(before, catalogue) != share
    assert design_key(before) == design


def test_checkpoints_are_shared_between_orders_and_nothing_else(catalogue: Catalogue) -> None:
    reference = cell(catalogue, "ewc")
    same = {
        "order seed": cell(catalogue, "ewc", seeds=Seeds(order=1)),
        "order": cell(catalogue, "ewc", overrides={"scenario.class_order": "9,8,7,6,5,4,3,2,1,0"}),
    }
    for name, other in same.items():
        assert share_key(other, catalogue) == share_key(reference, catalogue), name
        assert cell_key(other, catalogue) != cell_key(reference, catalogue)
        assert prefix_keys(other, catalogue) == prefix_keys(reference, catalogue)
    others = [c for name, c in changed_cells(catalogue).items() if name != "order seed"]
    others.append(cell(catalogue, "ewc", threads=2))
    assert share_key(reference, catalogue) not in {share_key(c, catalogue) for c in others}
    assert share_key(reference, catalogue).startswith(prefix_keys(reference, catalogue)[0])


def test_sources_name_everybody_who_computes(catalogue: Catalogue) -> None:
    found = sources(cell(catalogue, "ewc"), catalogue)
    assert {role: (s["name"], s["distribution"]) for role, s in found.items()} == {
        "core": ("core", "cglsuite"),
        "dataset": ("synthetic-csbm", "cglsuite-node"),
        "scenario": (BEGIN, "cglsuite-node"),
        "backbone": ("gcn", "cglsuite"),
        "method": ("ewc", "cglsuite-methods"),
        "measure": ("micro", "cglsuite"),
    }
    for source in found.values():
        assert len(source["source"]) == 64
        assert source["version"]
    # A scenario is provided by a plugin and built by the core: what it says is in the settings.
    assert catalogue.scenario(BEGIN).builder.startswith("cglsuite.streams")


PRINT_KEYS = """
import json, sys
from cglsuite import Seeds, load_catalogue
from cglsuite.cells.keys import cell_key, design_key, sources
from cglsuite.cells.spec import resolve_cell
catalogue = load_catalogue()
scenario, method, overrides = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
cell = resolve_cell(catalogue, scenario, method, overrides=overrides, seeds=Seeds(order=2, split=3, init=4))
print(json.dumps([cell_key(cell, catalogue), design_key(cell), sources(cell, catalogue), sorted({"torch", "pandas"} & set(sys.modules))]))
"""


def in_a_process(method: str, overrides: dict[str, Any], **environment: str) -> Any:
    import os

    command = [sys.executable, "-c", PRINT_KEYS, BEGIN, method, json.dumps(overrides)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return json.loads(ran.stdout)


def test_keys_are_the_same_in_every_process_and_need_no_torch() -> None:
    overrides = {"training.lr": 0.3, "backbone.width": 12}
    found = [in_a_process("ewc", overrides, PYTHONHASHSEED=seed) for seed in ("1", "2")]
    assert found[0] == found[1]
    here = load_catalogue()
    mine = cell(here, "ewc", overrides=overrides, seeds=Seeds(order=2, split=3, init=4))
    assert found[0][:2] == [cell_key(mine, here), design_key(mine)]
    assert found[0][3] == []


METHOD_MODULE = """
from cglsuite import Method, MethodSpec, hookimpl
import keyed_helper
class Keyed(Method):
    pass
@hookimpl
def cglsuite_methods():
    return [MethodSpec(name="keyed", summary="keyed", factory="keyed_method:Keyed")]
"""


def test_the_key_changes_with_the_methods_source(site: Site) -> None:
    """A change in the plugin's module makes its cells anew; one in a module that nobody in the cell uses does not."""
    folder = site.folder
    site.add("keyed", files={"keyed_method.py": METHOD_MODULE, "keyed_helper.py": "", "unused.py": ""}, entry_points={"k": "keyed_method"})
    before = in_a_process("keyed", {}, PYTHONPATH=str(folder))
    Path(folder, "unused.py").write_text("x = 1\n")
    assert in_a_process("keyed", {}, PYTHONPATH=str(folder)) == before
    Path(folder, "keyed_method.py").write_text(METHOD_MODULE.replace("pass", "changed = True"))
    after = in_a_process("keyed", {}, PYTHONPATH=str(folder))
    assert after[0] != before[0]
    assert after[1] == before[1]  # the design is the same
    assert {role for role in after[2] if after[2][role] != before[2][role]} == {"method"}


def test_a_cell_is_a_value(catalogue: Catalogue) -> None:
    made = cell(catalogue)
    assert made == cell(catalogue)
    assert isinstance(made.scenario, ScenarioSpec)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.threads = 3  # type: ignore[misc]


# --- implicit hyperparameters ------------------------------------------------------------------------------------------------------


SECOND = "synthetic-csbm/task-il@cglb-2"


def test_the_default_of_an_implicit_hyper_parameter_is_left_out(catalogue: Catalogue) -> None:
    """Cells from before the hyperparameter keep their configuration, however its default is asked for."""
    plain = cell(catalogue, scenario=CGLB)
    assert "backbone.init" not in plain.configuration
    assert "init" not in plain.backbone_hyperparameters
    asked = cell(catalogue, scenario=CGLB, overrides={"backbone.init": "glorot"})
    assert (asked.preset, design_key(asked)) == (CGLB, design_key(plain))
    assert omitted_defaults(catalogue, plain)["backbone.init"] == "glorot"
    assert omitted_defaults(catalogue, cell(catalogue, "gem", CGLB))["method.memory_outputs"] == "seen"


def test_another_value_is_part_of_the_cell(catalogue: Catalogue) -> None:
    changed = cell(catalogue, scenario=CGLB, overrides={"backbone.init": "linear"})
    assert changed.configuration["backbone.init"] == "linear"
    assert changed.preset.startswith(CGLB + "+")
    assert design_key(changed) != design_key(cell(catalogue, scenario=CGLB))


def test_a_preset_may_state_what_others_leave_out(catalogue: Catalogue) -> None:
    """Overriding it with the default is a change like any other, and the searched value of one method wins over the preset's."""
    preset = cell(catalogue, scenario=SECOND)
    assert (preset.configuration["backbone.init"], preset.preset) == ("linear", SECOND)
    assert cell(catalogue, "lwf", SECOND).configuration["backbone.init"] == "fan-in-normal"
    back = cell(catalogue, scenario=SECOND, overrides={"backbone.init": "glorot"})
    assert "backbone.init" not in back.configuration
    assert back.preset.startswith(SECOND + "+")
