"""Runs at settings that a search in the store chose, of which rows are made before those at a preset's own settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cglsuite.campaigns.reference.reproduction import Reproduction, campaign_of
from cglsuite.cells.records.frame import UPPER_BOUND
from cglsuite.specs import Seeds

if TYPE_CHECKING:
    from cglsuite.campaigns.campaign import Campaign
    from cglsuite.campaigns.reference.matching import Recipe

__all__ = ["Choice", "choices"]

Place = tuple[tuple[Any, ...], str]
"""The design of a recipe, and its method."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a search chose for a method of a preset.

    Args:
        outcome: of the search. campaign: the protocol's repetitions at the chosen settings.
    """

    outcome: Mapping[str, Any]
    campaign: Campaign

    @property
    def tuned_on(self) -> frozenset[Seeds]:
        """The seeds of the runs that the choice was made on: they are no repetitions."""
        return frozenset(Seeds(**seeds) for seeds in self.outcome["seeds"])

    @property
    def text(self) -> str:
        """How the settings were chosen, and what they are."""
        settings = ", ".join(f"{name} = {value}" for name, value in self.outcome["overrides"].items())
        return f"at the best of {len(self.outcome['candidates'])} settings, by validation on other seeds: {settings}"


def choices(reproduction: Reproduction, outcomes: Sequence[Mapping[str, Any]]) -> dict[Place, list[Choice]]:
    """The choices of searches for the rows of a reproduction; joint training has those of its own search."""
    by_place: dict[Place, list[Recipe]] = defaultdict(list)
    for entry in reproduction.entries:
        if entry.recipe is not None and not entry.recipe.orders:
            by_place[entry.recipe.design, entry.recipe.method].append(entry.recipe)
    found: dict[Place, list[Choice]] = {}
    for (design, method), recipes in by_place.items():
        mine = list(_of(outcomes, recipes[0], method))
        joint = next((outcome["overrides"] for outcome in _of(outcomes, recipes[0], UPPER_BOUND)), None)
        for outcome in mine:
            chosen = {method: outcome["overrides"]}
            if joint is not None and any(recipe.needs_joint for recipe in recipes):
                chosen.setdefault(UPPER_BOUND, joint)
            campaign = campaign_of(reproduction.selection, reproduction.paper, recipes, chosen)
            found.setdefault((design, method), []).append(Choice(outcome=outcome, campaign=campaign))
    return found


def _of(outcomes: Iterable[Mapping[str, Any]], recipe: Recipe, method: str) -> Iterable[Mapping[str, Any]]:
    """The searches for a method in the recipe's preset and on its backbone that chose something."""
    place = (recipe.preset, method, recipe.backbone)
    return (one for one in outcomes if one["overrides"] and (one["scenario"], one["method"], one["backbone"]) == place)
