"""Switches of one problem level: they stand apart, count among the scenario's own where they belong, and are refused elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest

from cglsuite.base.errors import SpecError, UnknownNameError, UsageError
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.spec import resolve_cell, resolve_scenario
from cglsuite.specs import LEVELS, LevelSpec, LinkPredictionSpec, ScenarioSpec, Switch, switches, with_switches
from cglsuite.specs.levels import LEVEL_SPECS
from cglsuite.specs.switch import ByLevel, declared_switches, effect_of, parse_switch
from cglsuite.testing.streams import FINE_TUNING, tiny_catalogue

NODES, PAIRS = "testing-nodes/class-il@testing-1", "testing-interactions/time-il@testing-1"


def scenario(level: str, **changes: Any) -> ScenarioSpec:
    edges = {"edge_policy": "snapshot" if level == "LP" else "full"}
    return ScenarioSpec(name="tiny/time-il@test-1", summary="tiny", dataset="tiny", setting="time-il", level=level, **(edges | changes))


def test_a_level_without_a_class_has_no_switches_of_its_own_and_one_with_a_class_has_its_defaults() -> None:
    for level in LEVELS:
        assert scenario(level).level_spec == (LEVEL_SPECS[level]() if level in LEVEL_SPECS else None)
    assert set(LEVEL_SPECS) <= set(LEVELS)
    names = [name for level_class in LEVEL_SPECS.values() for name in declared_switches(level_class)]
    assert len(names) == len(set(names))


def test_switches_of_the_level_stand_among_the_others() -> None:
    spec = scenario("LP", level_spec=LinkPredictionSpec(hits_k=20, exclude_targets=True))
    found = switches(spec)
    assert (found["hits_k"], found["negatives"], found["exclude_targets"]) == (20, None, True)
    assert list(found).index("hits_k") == list(found).index("performance") + 1
    assert set(found) == set(switches(scenario("NC")))


@pytest.mark.parametrize(
    ("level", "changes", "message"),
    [
        (
            "NC",
            {"level_spec": LinkPredictionSpec()},
            r"level_spec = LinkPredictionSpec\(...\) \(switches of LP: hits_k, negatives, ",
        ),
        ("GR", {"level_spec": LinkPredictionSpec()}, r"expected none, for this level has no switches of its own"),
        ("LP", {"level_spec": 3}, r"level_spec = int\(...\); expected LinkPredictionSpec\(...\)"),
        (
            "NC",
            {"labels": "multi", "performance": "hits"},
            r"performance = hits applies only to LP scenarios, but tiny/time-il@test-1 is NC",
        ),
    ],
)
def test_what_is_of_another_level_is_refused(level: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        scenario(level, **changes)


def test_a_level_checks_its_own_switches() -> None:
    with pytest.raises(SpecError, match=r"scenario.hits_k = 0: expected at least 1"):
        LinkPredictionSpec(hits_k=0)


def test_settings_reach_the_switches_of_the_level_alone() -> None:
    catalogue = tiny_catalogue()
    cell = resolve_cell(catalogue, PAIRS, FINE_TUNING, overrides={"scenario.hits_k": "7", "negatives": 40})
    assert cell.scenario.level_spec == LinkPredictionSpec(hits_k=7, negatives=40)
    assert (cell.configuration["scenario.hits_k"], cell.configuration["scenario.negatives"]) == (7, 40)
    assert resolve_scenario(catalogue, PAIRS, {"negatives": 30}).spec.level_spec == LinkPredictionSpec(hits_k=20, negatives=30)
    for key in ("scenario.negatives", "negatives"):
        with pytest.raises(SpecError, match=rf"scenario.negatives = 10 applies only to LP scenarios, but {NODES} is NC; remove it"):
            resolve_cell(catalogue, NODES, FINE_TUNING, overrides={key: "10"})
    with pytest.raises(SpecError, match=r"scenario.negatives = '-1': expected at least 1"):
        resolve_cell(catalogue, PAIRS, FINE_TUNING, overrides={"negatives": "-1"})


def test_a_campaign_gives_a_switch_to_the_scenarios_of_its_level() -> None:
    def planned(*scenarios: str) -> dict[str, Any]:
        grid = {"scenarios": list(scenarios), "methods": [FINE_TUNING], "axes": {"scenario.hits_k": [5, 6]}}
        campaign = Campaign.parse({"name": "x", "grid": grid, "set": {"negatives": 40}})
        cells = [p.cell for p in plan_campaign(campaign, tiny_catalogue())]
        return {name: [dict(c.configuration) for c in cells if c is not None and c.scenario.name == name] for name in scenarios}

    found = planned(NODES, PAIRS)
    assert [s["scenario.hits_k"] for s in found[PAIRS]] == [5, 6]
    assert [s["scenario.negatives"] for s in found[PAIRS]] == [40, 40]
    assert [s["scenario.hits_k"] for s in found[NODES]] == [50]
    with pytest.raises(UsageError, match=r"negatives: this switch is only for LP scenarios; remove it"):
        planned(NODES)


# --- a level of somebody else ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Walks(LevelSpec):
    """The switches of a level that is new."""

    level: ClassVar[str] = "GC"
    lengths: tuple[int, ...] = Switch((3, 4), "lengths of the walks", effect="longer walks see more", minimum=1)


@dataclass(frozen=True, kw_only=True)
class Whole:
    """As a scenario, with another table of levels."""

    name: str = "whole"
    level: str = "GC"
    seed: int = Switch(0, "a seed", minimum=0)
    own: LevelSpec | None = ByLevel({"GC": Walks, "LP": LinkPredictionSpec})  # noqa: RUF009 - a field
    settings: dict[str, Any] = field(default_factory=dict)


def test_a_new_level_adds_switches_without_changing_what_others_have() -> None:
    walks, nodes = Whole(own=Walks(lengths=(2,))), Whole(level="NC")
    assert switches(walks) == {"seed": 0, "lengths": (2,), "hits_k": 50, "negatives": None, "exclude_targets": False}
    assert switches(nodes) == {"seed": 0, "hits_k": 50, "negatives": None, "exclude_targets": False}
    assert with_switches(walks, {"lengths": (5, 6), "seed": 3}, "scenario") == Whole(seed=3, own=Walks(lengths=(5, 6)))
    assert with_switches(walks, {}, "scenario") == walks
    assert parse_switch(Whole, "lengths", "7,8", "scenario") == (7, 8)
    assert effect_of(Whole, "lengths", (3,), (4,)) == "longer walks see more"
    with pytest.raises(SpecError, match=r"scenario.lengths = \(5,\) applies only to GC scenarios, but whole is NC"):
        with_switches(nodes, {"lengths": (5,)}, "scenario")
    with pytest.raises(UnknownNameError, match=r"Did you mean 'lengths'"):
        with_switches(walks, {"length": (5,)}, "scenario")
    with pytest.raises(SpecError, match=r"scenario.lengths = 0: expected at least 1"):
        replace(walks, own=Walks(lengths=(0,)))
