"""The presets are the published protocols: every switch that a protocol fixes is what the protocol says."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any

import pytest
from cglsuite_node.datasets.specs import CSBM_HYPERPARAMETERS, DATASETS, DEBIAN_SIZES, SIZES
from cglsuite_node.plugin import presets
from cglsuite_node.protocols.begin import SEARCHED

from cglsuite.specs import switches

PRESETS = {p.name: p for p in presets()}
BEGIN = [p for p in PRESETS.values() if p.protocol in ("begin-1", "begin-2")]
BEGIN_CLASSES = [p for p in BEGIN if p.setting in ("task-il", "class-il")]
BEGIN_KEYS = [p for p in BEGIN if p not in BEGIN_CLASSES]
AGALE = [p for p in PRESETS.values() if p.protocol in ("agale-1", "agale-2", "agale-consistent-1")]
CGLB_PROTOCOLS = ("cglb-1", "cglb-inter-1", "cglb-2", "cglb-inter-2")
CGLB = [p for p in PRESETS.values() if p.protocol in CGLB_PROTOCOLS]
GLOBAL = [p for p in PRESETS.values() if p.protocol in ("global-1", "global-agale-1", "few-shot-1", "open-1")]
EXAMPLES = [p for p in PRESETS.values() if p.protocol == "example-1"]
TEXT = [p for p in PRESETS.values() if p.protocol.startswith("text-")]
N_CLASSES = {name: sizes.classes for name, sizes in SIZES.items()} | {
    "synthetic-csbm": next(int(str(h.default)) for h in CSBM_HYPERPARAMETERS if h.name == "n_classes"),
    "synthetic-csbm-edges": 6,
    "synthetic-growing": 10,
    "debian-packages": DEBIAN_SIZES.classes,
}

# BeGin, node classification: whole graph, random orders, official residues, plateau schedule on the task's validation loss, micro accuracy.
BEGIN_SWITCHES: dict[str, Any] = {
    "level": "NC",
    "n_tasks": None,
    "leftover": "drop",
    "undirected": True,
    "head": "fixed",
    "replicas": 1,
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
    "performance": "macro",
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


def test_begins_protocol() -> None:
    for preset in BEGIN:
        assert differences(switches(preset), BEGIN_SWITCHES) == ({"level": "NR"} if preset.labels == "real" else {})
        assert differences(switches(preset.training), BEGIN_TRAINING) == {}
        assert differences(dict(preset.backbone_hyperparameters), BEGIN_BACKBONE) == {}
        assert dict(preset.backbone_hyperparameters)["dropout"] == (
            0.25 if preset.dataset in ("ogbn-mag", "ogbn-products") and preset in BEGIN_CLASSES else 0.5
        )
        assert preset.training.plateau_patience == (50 if preset.dataset == "citeseer" else 20)
        sampled = preset.dataset == "ogbn-products"  # the only one that BeGin trains by mini-batches
        assert (preset.training.batch_size is not None, bool(preset.training.fan_out)) == (sampled, sampled)


def test_begins_classes_arrive() -> None:
    for preset in BEGIN_CLASSES:
        fives = preset.dataset in ("ogbn-arxiv", "ogbn-products")
        assert (preset.classes_per_task, preset.class_order, preset.edge_policy) == (5 if fives else 2, "random", "full")
        assert (preset.labels, preset.performance) == ("single", "micro")
        assert preset.feature_normalisation == ("none" if preset.dataset.startswith("ogbn") else "row")
        assert preset.split == ("per-class" if preset.dataset == "synthetic-csbm" else "official")


def test_begins_domains_and_years_arrive() -> None:
    by_name = {p.name: p for p in BEGIN_KEYS}
    real = {"ogbn-arxiv/time-il", "ogbn-mag/time-il", "ogbn-proteins/domain-il", "twitch/domain-il", "twitch-musae/domain-il"}
    scenarios = real | {f"synthetic-{what}/{setting}" for what in ("growing", "node-targets") for setting in ("time-il", "domain-il")}
    assert set(by_name) == {f"{name}@begin-{version}" for name in scenarios for version in (1, 2)}
    for preset in by_name.values():
        time = preset.setting == "time-il"
        assert (preset.edge_policy, preset.class_order) == (("snapshot", "native") if time else ("full", "random"))
        assert preset.task_key == ("year" if time else "domain")
        assert preset.memory_budget is None  # the memory grows with the domains and years; it is metered all the same
    arxiv = by_name["ogbn-arxiv/time-il@begin-1"]
    assert len(arxiv.task_bins) + 1 == 24
    assert (arxiv.task_bins[0], arxiv.task_bins[-1]) == (1998, 2020)
    assert dict(arxiv.dataset_hyperparameters) == {"split_source": "begin"}
    proteins = by_name["ogbn-proteins/domain-il@begin-1"]
    assert (proteins.labels, proteins.performance) == ("multi", "roc-auc")
    for setting in ("domain-il", "time-il"):
        targets = by_name[f"synthetic-node-targets/{setting}@begin-2"]
        assert (targets.labels, targets.performance, targets.level) == ("real", "negative-mae", "NR")
    for stand_in in ("ogbn-mag/time-il@begin-1", "twitch-musae/domain-il@begin-1"):  # no split is published for these
        assert (by_name[stand_in].split, by_name[stand_in].split_ratio) == ("random", (0.4, 0.1, 0.5))


def test_agales_protocol() -> None:
    for preset in AGALE:
        multi = preset.dataset not in ("cora", "citeseer", "corafull", "synthetic-csbm-edges")
        assert (preset.labels, preset.performance) == (("multi", "average-precision") if multi else ("single", "micro"))
        assert (preset.classes_per_task, preset.leftover, preset.min_class_size) == (2, "join-last", 50)
        assert (preset.edge_policy, preset.head, preset.split_ratio) == ("none", "growing", (0.6, 0.1, 0.3))
        assert preset.split == ("node-consistent" if preset.protocol == "agale-consistent-1" else "task-wise")
        training = preset.training
        assert (training.lr, training.weight_decay, training.epochs, training.plateau_patience) == (1e-2, 5e-4, 999, 100)
        assert (training.plateau_factor, training.restore_best, training.carry_optimizer) == (0.0, True, False)
        plain = {"layers": 2, "width": 256, "normalisation": "symmetric", "bias": True, "batch_norm": False, "dropout": 0.0}
        assert dict(preset.backbone_hyperparameters) == plain | {"input_dropout": 0.0, "head": "convolution"}
        assert preset.class_order.count("|") == (2 if preset.dataset in ("pcg", "dblp-multilabel") else 0)


def test_cglbs_protocol() -> None:
    for preset in CGLB:
        assert differences(switches(preset), CGLB_SWITCHES) == {}
        assert differences(switches(preset.training), CGLB_TRAINING) == {}
        as_torch_starts = {"init": "linear"} if preset.protocol.endswith("-2") else {}
        assert dict(preset.backbone_hyperparameters) == CGLB_BACKBONE | as_torch_starts
        large = preset.dataset in ("ogbn-arxiv", "reddit", "ogbn-products")
        assert (preset.training.batch_size, preset.training.fan_out) == ((2000, (10, 25)) if large else (None, ()))
        assert preset.edge_policy == ("inter-task" if preset.protocol.startswith("cglb-inter-") else "none")
        assert preset.undirected is (preset.dataset != "ogbn-arxiv")
        assert preset.classes_per_task == (1 if preset.dataset == "pubmed" else 2)


def test_presets_of_text() -> None:
    """Items of one source are in one part, and queries of class-IL do not reveal their task."""
    assert {p.name for p in TEXT} == {f"debian-packages/{s}" for s in ("task-il@text-1", "class-il@text-1", "class-il@text-few-shot-1")}
    for preset in TEXT:
        assert (preset.split, preset.dataset_hyperparameters) == ("official", ())  # grouped by source, see the dataset's defaults
        assert (preset.class_order, preset.classes_per_task, preset.performance) == ("random", 4, "micro")
        queries = preset.edge_policy, preset.query_grouping, preset.query_edges
        assert queries == (("none", "task", "own") if preset.setting == "task-il" else ("none", "pooled", "seen"))
        few = preset.protocol == "text-few-shot-1"
        assert (preset.base_classes, preset.shots, preset.leftover) == ((13, 5, "drop") if few else (None, None, "join-last"))


def test_every_preset() -> None:
    """Names say dataset, setting and protocol; task-IL trains a task's outputs, class-IL all seen; sources are cited."""
    for preset in PRESETS.values():
        shown = "twitch" if preset.dataset == "twitch-gamers" else preset.dataset
        assert preset.name == f"{shown}/{preset.setting}@{preset.protocol}"
        assert any(preset in family for family in (BEGIN, CGLB, AGALE, GLOBAL, EXAMPLES, TEXT)) or preset.protocol == "open-1"
        assert preset.dataset in {d.name for d in DATASETS}
        assert preset.train_outputs == {"task-il": "task"}.get(preset.setting, "seen")
        assert preset.summary
        assert preset.citation
        assert preset.classes_per_task is not None
        assert preset in BEGIN_KEYS or N_CLASSES[preset.dataset] >= 2 * preset.classes_per_task


def test_presets_say_that_they_leave_classes_out() -> None:
    """Or that the last task takes them; a preset whose classes fill its tasks says nothing. BeGin takes 257 of ogbn-mag's classes."""
    for preset in [p for p in PRESETS.values() if p not in BEGIN_KEYS]:
        assert preset.classes_per_task is not None
        n_classes = 257 if preset.dataset == "ogbn-mag" else N_CLASSES[preset.dataset]
        n_classes -= preset.base_classes or 0
        assert (n_classes % preset.classes_per_task > 0) <= (preset.drop_last or preset.leftover == "join-last")
        assert preset.drop_last <= (n_classes % preset.classes_per_task > 0)


def test_which_presets_there_are() -> None:
    names = set(PRESETS)
    assert len(presets()) == len(names)
    for dataset in ("cora", "citeseer", "synthetic-csbm"):
        for setting in ("task-il", "class-il"):
            assert {f"{dataset}/{setting}@{protocol}" for protocol in ("begin-1", *CGLB_PROTOCOLS)} <= names
    large = ("corafull", "ogbn-arxiv", "reddit", "ogbn-products")
    assert {f"{d}/{s}@cglb-{v}" for d in large for s in ("task-il", "class-il") for v in (1, 2)} <= names
    # one class a task: nothing to tell apart in task-IL
    assert sorted(n for n in names if n.startswith("pubmed")) == [
        f"pubmed/class-il@{p}" for p in ("cglb-1", "cglb-2", "global-1", "open-1")
    ]


def test_the_card_warns_where_the_topology_gives_the_task_away() -> None:
    for preset in PRESETS.values():
        assert ("give the task away" in preset.note) is (preset.edge_policy == "none" and preset.query_edges == "own")


def test_begins_memory() -> None:
    """The budget is divided by the number of classes (12 // 7 = 1 for Cora, 12 // 6 = 2 for CiteSeer), so that it is never exceeded."""
    for preset in BEGIN_CLASSES:
        per_class = preset.method_defaults["er-gnn"]["method.per_class"]
        assert preset.memory_budget is not None
        kept = 257 if preset.dataset == "ogbn-mag" else N_CLASSES[preset.dataset]
        assert per_class == preset.memory_budget // kept
        published = {"cora": 12, "citeseer": 12, "corafull": 210, "ogbn-arxiv": 2000, "ogbn-mag": 8000, "ogbn-products": 25000}
        assert preset.memory_budget == published.get(preset.dataset, 60)


def test_methods_as_benchmarked() -> None:
    """What the protocols do, not what they got wrong: sampling, budgets and loss weights."""
    for preset in BEGIN:
        assert preset.method_defaults["ewc"]["method.fisher"] == "batch"
        replay = preset.method_defaults["er-gnn"]
        assert (replay["method.swap_weights"], replay["method.neighbourhood"], replay["method.sampler"]) == (True, True, "cm")
        assert preset.method_defaults["mas"]["method.importance"] == "batch"
        assert preset.method_defaults["gem"]["method.neighbourhood"] is True
    for preset in BEGIN + CGLB + AGALE:  # what is a fault and not protocol is in no preset of a first version
        if preset.protocol.endswith("-2"):
            continue
        for method, option in (("twp", "detach_beta"), ("twp", "topology_accumulates"), ("continual-gnn", "without_ewc")):
            assert f"method.{option}" not in preset.method_defaults.get(method, {})
    for preset in CGLB:
        assert preset.method_defaults["ewc"] == {"method.fisher": "batch"}
        assert preset.method_defaults["mas"] == {"method.importance": "batch-squared"}
        assert preset.method_defaults["er-gnn"] == {"method.per_class": 100}
        second = preset.protocol.endswith("-2")
        assert preset.method_defaults["gem"] == {"method.per_task": 100} | ({"method.memory_outputs": "until-task"} if second else {})
        assert preset.method_defaults.get("lwf", {}) == ({"backbone.init": "fan-in-normal"} if second else {})
        assert ("cglb-2" in preset.note) is not second


def test_second_version_of_begin_has_twp_as_implemented_and_nothing_else_of_its_own() -> None:
    for first in (p for p in BEGIN if p.protocol == "begin-1"):
        second = PRESETS[first.name.removesuffix("1") + "2"]
        differing = {
            s for s in switches(first) if s not in ("name", "protocol", "note") and getattr(first, s, None) != getattr(second, s, None)
        }
        assert differing <= {"method_defaults"}
        changed = {m for m, values in first.method_defaults.items() if second.method_defaults[m] != values}
        assert changed == {"twp"}
        assert second.method_defaults.keys() == first.method_defaults.keys()
        twp = second.method_defaults["twp"]
        assert {k.removeprefix("method."): v for k, v in twp.items() if k.startswith("method.") and k != "method.beta"} == {
            "lambda_l": 1e4,
            "lambda_t": 1e3,
            "detach_beta": True,
            "topology_accumulates": True,
            "attention_norm": "norm",
            "attention_from": "degree-normalised",
            "double_loss": True,
        }
        assert "begin-2" in first.note
        assert "begin-2" not in second.note


def test_second_version_of_agale_has_the_importances_of_its_code() -> None:
    for first in (p for p in AGALE if p.protocol == "agale-1"):
        second = PRESETS[first.name.removesuffix("1") + "2"]
        added = {m: dict(v.items() - first.method_defaults.get(m, {}).items()) for m, v in second.method_defaults.items()}
        assert added == {
            "ewc": {"method.fisher": "last-step"},
            "mas": {"method.importance": "batch-squared"},
            "evolve-gcn": {"method.start": "drawn"},
            "er-gnn": {},
        }
        assert "agale-2" in first.note


def test_searched_values_belong_to_presets_and_to_what_the_protocol_leaves_open() -> None:
    for name, by_method in SEARCHED.items():
        preset = PRESETS[name]
        for method, values in by_method.items():
            assert preset.method_defaults[method].items() >= values.items()
            for key in values:
                assert key in preset.searched or key.startswith("method."), f"{name}, {method}: {key} is not left to a search"


def test_listing_imports_nothing_heavy() -> None:
    heavy = {"torch", "numpy", "scipy", "pandas", "torch_geometric", "ogb"}
    code = (
        f"import sys, cglsuite_node.plugin as p; p.cglsuite_datasets(); p.cglsuite_scenarios(); print(sorted({heavy} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_presets_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        PRESETS["cora/task-il@begin-1"].edge_policy = "none"  # type: ignore[misc]
