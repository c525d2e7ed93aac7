"""From how many settings the hyper-parameters behind the ledger's rows were chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cglsuite.cells.plan import PlannedCell

__all__ = ["Tuning"]


@dataclass(frozen=True)
class Tuning:
    """Searches in the store that chose the values with which a ledger's cells are run, and what presets say of earlier ones.

    Args:
        searches: their outcomes. declared: by preset and method, the number of settings from which the preset's values were chosen.
    """

    searches: tuple[Mapping[str, Any], ...]
    declared: Mapping[tuple[str, str], int]

    @classmethod
    def of(cls, outcomes: Sequence[Mapping[str, Any]], cells: Iterable[PlannedCell]) -> Tuning:
        """A search counts if the values that it chose are those of a planned cell of its scenario and method."""
        configurations: dict[tuple[str, str], Mapping[str, Any]] = {}
        declared: dict[tuple[str, str], int] = {}
        for planned in cells:
            if planned.cell is not None:
                place = planned.request.scenario, planned.request.method
                if place not in declared:
                    configurations[place] = planned.cell.configuration
                    declared[place] = planned.cell.scenario.method_trials.get(planned.request.method, 1)
        used = [o for o in outcomes if o["overrides"] and _holds(o["overrides"], configurations.get((o["scenario"], o["method"]), {}))]
        return cls(tuple(used), declared)

    def trials(self, preset: str, method: str) -> int:
        """The number of settings from which a method's values were chosen; 1 if nobody chose."""
        found = [len(o["candidates"]) for o in self.searches if (o["scenario"], o["method"]) == (preset, method)]
        return max(found, default=self.declared.get((preset, method), 1))


def _holds(chosen: Mapping[str, Any], configuration: Mapping[str, Any]) -> bool:
    """Whether a cell has all the values that a search chose; short names stand for those of any section."""
    full = {name: next((key for key in configuration if name in (key, key.partition(".")[2])), None) for name in chosen}
    return all(key is not None and configuration[key] == chosen[name] for name, key in full.items())
