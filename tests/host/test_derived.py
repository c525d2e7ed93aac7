"""Scenarios that no plugin names follow a preset of the same setting and protocol, without what belongs to that preset's data set."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cglsuite.base.errors import SpecError, UnknownNameError
from cglsuite.graphs.files.given import FileDatasetSpec
from cglsuite.host import load_catalogue
from cglsuite.host.catalogue import derivable, derive, form_of, needs_protocol
from cglsuite.specs import DatasetSpec, Hyperparameter, ScenarioSpec
from cglsuite.specs.levels import LinkPredictionSpec

PHOTO = DatasetSpec(name="photo", summary="a graph", factory="a.b:c", labels="single", keys=(), official_split=False)


def preset(dataset: str, **changes: Any) -> ScenarioSpec:
    given: dict[str, Any] = {"name": f"{dataset}/class-il@x-1", "summary": "s", "dataset": dataset, "setting": "class-il", **changes}
    return ScenarioSpec(**given)


def test_the_parent_is_the_most_typical_preset() -> None:
    """A protocol's exceptions for one data set are not taken for its rule, whatever the order of names."""
    presets = [preset("a", classes_per_task=5, edge_policy="none"), preset("b"), preset("c", memory_budget=7), preset("d")]
    made = derive("photo/class-il@x-1", PHOTO, presets)
    assert (made.parent.dataset, made.spec.classes_per_task, made.spec.edge_policy) == ("b", 2, "full")
    assert (made.spec.dataset, made.spec.derived_from, made.left_out) == ("photo", "b/class-il@x-1", ())
    assert "derived from b/class-il@x-1" in made.spec.summary


def test_a_switch_at_its_default_counts_as_much_as_one_that_is_set() -> None:
    """Also one that presets need not state: the only one that pools its queries is the exception, though it states more than the others."""
    presets = [preset("a", edge_policy="none", query_grouping="pooled"), preset("b", edge_policy="none"), preset("c", edge_policy="none")]
    made = derive("photo/class-il@x-1", PHOTO, presets)
    assert (made.parent.dataset, made.spec.query_grouping) == ("b", "task")


def test_what_was_searched_and_budgets_stay_behind() -> None:
    searched = {"searched": ("training.lr",), "method_defaults": {"ewc": {"training.lr": 0.1, "method.fisher": "batch", "method.k": 3}}}
    other = {**searched, "method_defaults": {"ewc": {"training.lr": 0.2, "method.fisher": "batch", "method.k": 4}}}
    made = derive("photo/class-il@x-1", PHOTO, [preset("a", memory_budget=9, **searched), preset("b", memory_budget=9, **other)])
    assert made.spec.method_defaults == {"ewc": {"method.fisher": "batch"}}
    assert made.spec.memory_budget == 9  # every preset of the protocol has it
    assert made.left_out == ("what was searched on a per method (method.k, training.lr: defaults apply)",)
    alone = derive("photo/class-il@x-1", PHOTO, [preset("a", memory_budget=9, **searched)])
    assert (alone.spec.memory_budget, alone.spec.method_defaults) == (None, {"ewc": {"method.fisher": "batch"}})
    assert "the memory budget of 9 items" in alone.message


def test_orders_splits_and_times_of_another_data_set() -> None:
    written = preset("a", class_order="0,1,2,3", split="official")
    made = derive("photo/class-il@x-1", PHOTO, [written])
    assert (made.spec.class_order, made.spec.split) == ("random", "per-class")
    has_masks = dataclasses.replace(PHOTO, official_split=True)
    assert derive("photo/class-il@x-1", has_masks, [written]).spec.split == "official"
    timed = preset("a", name="a/time-il@x-1", setting="time-il", task_key="year", task_bins=(1999, 2005))
    with pytest.raises(SpecError, match="its tasks are the values of an item attribute such as 'year'.*it has none"):
        derive("photo/time-il@x-1", PHOTO, [timed])
    made = derive("photo/time-il@x-1", dataclasses.replace(PHOTO, keys=("time",)), [timed])
    assert (made.spec.task_key, made.spec.task_bins) == ("time", ())
    assert "the bins of year of a" in made.message


def test_what_can_be_derived_over_a_data_set() -> None:
    """Neither its own presets, nor other levels, nor what needs an attribute that it may not have."""
    presets = [
        preset("a"),
        preset("a", name="a/task-il@x-1", setting="task-il"),
        preset("photo", name="photo/task-il@x-1", setting="task-il"),
        preset("b", name="b/class-il@graphs-1", level="GC"),
        preset("c", name="c/time-il@x-1", setting="time-il", task_key="year"),
    ]
    assert derivable(PHOTO, presets) == ["photo/class-il@x-1"]
    assert derivable(dataclasses.replace(PHOTO, keys=("year",)), presets) == ["photo/class-il@x-1", "photo/time-il@x-1"]
    assert derivable(dataclasses.replace(PHOTO, keys=None), presets) == ["photo/class-il@x-1"]
    few, large = preset("a", classes_per_task=2), preset("a", name="a/class-il@y-1", classes_per_task=2, min_class_size=50)
    assert derivable(file_spec(class_sizes=(30, 30, 30)), [few, large]) == ["mine/class-il@x-1"]
    assert derivable(file_spec(class_sizes=(30,)), [few, large]) == []
    assert needs_protocol(PHOTO, presets).endswith("Presets: photo/task-il@x-1. Derived from other presets: photo/class-il@x-1.")


def test_what_does_not_fit() -> None:
    of_graphs, multi = preset("a", level="GC"), preset("b", labels="multi", performance="roc-auc")
    with pytest.raises(SpecError, match="photo is of level NC, but class-il@x-1 is of level GC"):
        derive("photo/class-il@x-1", PHOTO, [of_graphs])
    with pytest.raises(SpecError, match="labels of photo are single, but class-il@x-1 exists only for multi labels"):
        derive("photo/class-il@x-1", PHOTO, [multi])
    with pytest.raises(UnknownNameError, match="unknown scenario .photo.class-il@y-1"):
        derive("photo/class-il@y-1", PHOTO, [of_graphs])
    assert form_of("photo") is form_of("photo/task-il") is form_of("/x@1") is None


def file_spec(**changes: Any) -> FileDatasetSpec:
    return FileDatasetSpec(**{"name": "mine", "summary": "s", "factory": "a:b", "keys": (), "official_split": False} | changes)


def test_a_file_with_several_attributes() -> None:
    """Time steps are times, domains another attribute."""
    dataset = file_spec(labels="single", keys=("domain", "region", "time"))
    times, domains = preset("a", setting="time-il", task_key="year"), preset("a", setting="domain-il", task_key="community")
    assert derive("mine/class-il@x-1", dataset, [times]).spec.task_key == "time"
    made = derive("mine/class-il@x-1", dataset, [domains])
    assert made.spec.task_key == "domain"
    assert made.left_out == ("the attribute community: tasks are the values of domain (or --set scenario.task_key=region)",)


@pytest.mark.parametrize(
    ("given", "links", "pairs", "negatives", "hits_k"),
    [
        (100_000, 9, 400_000, 100_000, 50),
        (100_000, 9, 399_999, 99_999, 50),
        (100_000, 9, 400, 100, 25),
        (100_000, 9, 4, 1, 1),
        (None, 1000, 4000, None, 50),  # as many as test links, of which there are enough
        (None, 999, 4000, 200, 50),
        (None, 1000, 200, 50, 12),
        (None, 20, 40, 10, 2),
    ],
)
def test_negatives_follow_the_graph(given: int | None, links: int, pairs: int, negatives: int | None, hits_k: int) -> None:
    """A quarter of the pairs without a link at most, for test and validation each with room to be drawn; and enough to rank among."""
    ranking = LinkPredictionSpec(hits_k=50, negatives=given)
    parent = preset(
        "a", level="LP", labels="multi", setting="time-il", task_key="time", edge_policy="snapshot", level_spec=ranking, performance="hits"
    )
    spec = file_spec(levels=("LP",), labels="multi", keys=("time",), absent_pairs=pairs, links=links)
    assert derive("mine/class-il@x-1", spec, [parent]).spec.level_spec == LinkPredictionSpec(hits_k=hits_k, negatives=negatives)


@pytest.mark.parametrize(
    ("sizes", "parent", "leftover", "n_tasks"),
    [
        ((5, 5, 5, 5), {}, "drop", None),
        ((5, 5, 5), {}, "join-last", None),
        ((5, 5, 5, 1), {"min_class_size": 2}, "join-last", None),
        ((5, 5, 5, 1, 0, 0), {}, "drop", None),
        ((5,), {}, "drop", None),  # too few for a task, which is refused
        ((5, 5, 5), {"drop_last": True}, "drop", None),
        ((5,) * 6, {"base_classes": 3}, "join-last", None),
        ((5,) * 7, {"base_classes": 3}, "drop", None),
        ((5,) * 6, {"n_tasks": 5}, "drop", None),
        ((5,) * 7, {"n_tasks": 5}, "join-last", None),
        ((5,) * 11, {"n_tasks": 5}, "drop", 5),  # a fixed number of classes is asked for
        ((5,) * 11, {"n_tasks": 5, "classes_per_task": None}, "join-last", 5),
        ((), {"labels": "multi", "performance": "roc-auc"}, "drop", None),
    ],
)
def test_tasks_take_all_classes_of_a_file(sizes: tuple[int, ...], parent: dict[str, Any], leftover: str, n_tasks: int | None) -> None:
    """As many tasks as they fill, the last with those that fill none."""
    spec = file_spec(labels=parent.get("labels", "single"), class_sizes=sizes)
    made = derive("mine/class-il@x-1", spec, [preset("a", **parent)])
    assert (made.spec.leftover, made.spec.n_tasks) == (leftover, n_tasks)
    assert len(made.left_out) == (leftover == "join-last") + (n_tasks != parent.get("n_tasks"))


def test_edges_of_a_file_have_the_features_that_they_have() -> None:
    parent = preset("a", level="GC", backbone_hyperparameters=(("edge_features", 4), ("width", 8)))
    for features in (0, 4, 2):
        made = derive("mine/class-il@x-1", file_spec(levels=("GC",), labels="single", edge_features=features), [parent]).spec
        assert dict(made.backbone_hyperparameters) == {"edge_features": features, "width": 8}


def test_two_classes_of_links_are_one_label() -> None:
    """Where a protocol has labels only: the file is read with ``labels = multi``."""
    options = Hyperparameter(name="options", default='{"unlabelled": "none"}', doc="d")
    parent = preset("a", level="LC", labels="multi", setting="time-il", task_key="time", performance="average-precision")
    spec = file_spec(levels=("LC",), labels="single", keys=("time",), binary=True, hyperparameters=(options,))
    made = derive("mine/class-il@x-1", spec, [parent]).spec
    assert (made.labels, made.dataset_hyperparameters) == ("multi", (("options", '{"labels": "multi", "unlabelled": "none"}'),))
    with pytest.raises(SpecError, match="labels of mine are single"):
        derive("mine/class-il@x-1", dataclasses.replace(spec, binary=False), [parent])


@pytest.mark.plugins
@pytest.mark.parametrize(
    ("name", "parent"),
    [
        ("actor/class-il@cglb-1", "amazon-clothing20/class-il@cglb-1"),
        ("actor/task-il@begin-1", "cora/task-il@begin-1"),
        ("cora/hard@drift-1", "actor/hard@drift-1"),
        ("synthetic-motifs/class-il@skeleton-1", "ntu-rgbd/class-il@skeleton-1"),
    ],
)
def test_every_protocol_takes_data_of_its_level(name: str, parent: str) -> None:
    catalogue = load_catalogue()
    entry = catalogue.get("scenario", name)
    assert isinstance(entry.spec, ScenarioSpec)
    assert (entry.name, entry.spec.derived_from) == (name, parent)
    assert entry.provider == catalogue.get("scenario", parent).provider
    assert name not in catalogue.names("scenario")  # it is made on demand, not listed
    assert catalogue.derivation(parent) is None
    assert catalogue.get("scenario", name) is entry


@pytest.mark.plugins
def test_a_typing_error_is_still_one() -> None:
    catalogue = load_catalogue()
    with pytest.raises(UnknownNameError, match="did you mean|Did you mean"):
        catalogue.get("scenario", "cora/class-il@cgbl-1")
    with pytest.raises(UnknownNameError):
        catalogue.get("scenario", "cra/class-il@cglb-1")
