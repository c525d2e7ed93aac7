"""Two presets field by field: every difference once, with what it does, and nothing that merely follows from another row."""

from __future__ import annotations

import json
from typing import Any

import pytest
from plugin_sites import Site, site

from cglsuite.base.errors import UnknownNameError
from cglsuite.base.hashing import plain
from cglsuite.cells.spec import ABSENT, Difference, preset_differences
from cglsuite.specs import ScenarioSpec, TrainingSpec, effect_of
from cglsuite.specs.switch import declared_switches

__all__ = ["site"]
ONE, TWIN, TWO, OTHER_NET = "one/task-il@test-1", "one/task-il@test-2", "two/class-il@test-1", "one/task-il@net-1"


def compared(site: Site, a: str, b: str) -> dict[str, Difference]:
    found = preset_differences(site.add("comparable").catalogue(), a, b)
    assert len({d.field for d in found}) == len(found)
    return {d.field: d for d in found}


def test_every_field_that_differs_and_no_other(site: Site) -> None:
    found = compared(site, ONE, TWO)
    assert {field: (d.a, d.b) for field, d in found.items()} == {
        "scenario.dataset": ("one", "two"),
        "scenario.setting": ("task-il", "class-il"),
        "scenario.class_order": ("random", "3,1,2,0"),
        "scenario.edge_policy": ("full", "none"),
        "scenario.train_outputs": ("task", "seen"),
        "scenario.searched": (("training.lr", "training.weight_decay", "backbone.width"), ()),
        "training.lr": (1e-3, 5e-3),
        "training.plateau_patience": (None, 20),
        "training.monitor": ("none", "validation-loss"),
        "backbone.width": (16, 8),  # a default against a setting
        "dataset.noise": (ABSENT, 0.5),
        "method_defaults.pull.method.lambda": (5.0, 1.0),  # the method's own default where a preset says nothing
        "method_defaults.pull.training.epochs": (200, 50),  # what the preset says for all, where it says nothing for the method
        "method_defaults.absent.method.strength": (2, ABSENT),  # a method that is not installed; its learning rate is training.lr's row
    }


def test_sections_come_in_order(site: Site) -> None:
    sections = [d.section for d in compared(site, ONE, TWO).values()]
    assert list(dict.fromkeys(sections)) == ["scenario", "training", "backbone", "dataset", "method_defaults"]
    assert sections == sorted(sections, key=list(dict.fromkeys(sections)).index)


def test_the_effect_is_of_these_two_values(site: Site) -> None:
    found = compared(site, ONE, TWO)
    assert found["scenario.edge_policy"].effect == (
        "full: all nodes and edges are visible at all times, without labels, so features of later tasks reach earlier ones; "
        "none: each query is evaluated in the subgraph of its task, whose topology can reveal the task in class-IL"
    )
    assert "; as given: every repetition has exactly these tasks" in found["scenario.class_order"].effect
    assert found["backbone.width"].effect == "more units: more room"
    assert found["dataset.noise"].effect == "two only: standard deviation of the noise"
    assert found["method_defaults.pull.method.lambda"].effect == "weight of the penalty"
    assert found["method_defaults.pull.training.epochs"].effect == effect_of(TrainingSpec, "epochs")
    for difference in found.values():
        assert difference.effect.strip() == difference.effect != ""
        assert "\n" not in difference.effect


def test_a_setting_that_only_one_backbone_has(site: Site) -> None:
    found = compared(site, ONE, OTHER_NET)
    assert {field: (d.a, d.b) for field, d in found.items()} == {
        "training.backbone": ("flat", "round"),
        "backbone.width": (16, 8),
        "backbone.heads": (ABSENT, 2),
    }
    assert found["backbone.heads"].effect == "round only: attention heads"
    assert found["backbone.heads"].to_json() == {"field": "backbone.heads", "a": None, "b": 2, "effect": "round only: attention heads"}


def test_words_are_no_difference_and_a_comparison_turns_round(site: Site) -> None:
    assert compared(site, ONE, TWIN) == {}
    catalogue = site.catalogue()
    forth, back = preset_differences(catalogue, ONE, TWO), preset_differences(catalogue, TWO, ONE)
    assert sorted((d.field, repr(d.a), repr(d.b)) for d in forth) == sorted((d.field, repr(d.b), repr(d.a)) for d in back)
    json.dumps([plain(d.to_json()) for d in forth], allow_nan=False)


def test_an_unknown_preset_suggests_the_nearest(site: Site) -> None:
    catalogue = site.add("comparable").catalogue()
    for a, b in ((ONE, "two/class-il@test-2"), ("two/class-il@test-2", ONE)):
        with pytest.raises(UnknownNameError, match="unknown scenario 'two/class-il@test-2'. Did you mean 'two/class-il@test-1'"):
            preset_differences(catalogue, a, b)


@pytest.mark.parametrize("owner", [ScenarioSpec, TrainingSpec])
def test_every_switch_says_what_changing_it_does(owner: Any) -> None:
    """Each allowed value has a clause of its own where clauses are per value, and each clause belongs to an allowed value."""
    message = 0
    for field in declared_switches(owner).values():
        if field.name in ("dataset_hyperparameters", "backbone_hyperparameters"):
            continue
        effect = field.metadata["effect"]
        assert effect, f"{owner.__name__}.{field.name} has no effect text"
        message += 1
        if isinstance(effect, str):
            continue
        values = field.metadata["choices"] or ([True, False] if isinstance(field.default, bool) else [])
        words = [str(v).lower() if isinstance(v, bool) else str(v) for v in values]
        assert set(effect) == set(words) or "*" in effect, f"{owner.__name__}.{field.name}"
        for value, word in zip(values, words, strict=True):
            assert effect_of(owner, field.name, value) == f"{word}: {effect[word]}"
    assert message > 10


def test_where_no_effect_is_known_the_meaning_stands_in() -> None:
    assert effect_of(ScenarioSpec, "dataset_hyperparameters", (), ()) == "hyperparameters of the dataset that differ from its defaults"
