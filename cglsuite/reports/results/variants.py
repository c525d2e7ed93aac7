"""Presets with overridden switches: their names end in a hash, and this module lists the overrides behind it."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from cglsuite.base.errors import CglsuiteError
from cglsuite.base.hashing import canonical, plain
from cglsuite.reports.kit.text import value_text

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue

__all__ = ["PresetVariant", "changes_as_text", "preset_variants", "record_variants", "value_as_text"]

_SECTIONS = ("scenario", "stream", "schedule", "training", "dataset", "backbone")


@dataclass(frozen=True, kw_only=True)
class PresetVariant:
    """A preset with overridden switches.

    Args:
        name: with the hash. base: the preset. changes: by dotted key, the values that differ from the preset's.
        distinguishing: values in which it differs from the campaign's other variants of the same preset; empty for a single variant.
    """

    name: str
    base: str
    changes: Mapping[str, Any]
    distinguishing: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its name among the variants: ``base, n_tasks = 5``; ``name`` if it is the only one."""
        if not self.distinguishing:
            return self.name
        return ", ".join(
            [self.base, *(f"{name.partition('.')[2]} = {value_as_text(value)}" for name, value in self.distinguishing.items())]
        )

    @property
    def changes_text(self) -> str:
        """All changes as text: ``n_tasks = 5, ...``."""
        return changes_as_text(self.changes)


def changes_as_text(changes: Mapping[str, Any]) -> str:
    """Settings with their values: ``n_tasks = 5, ...``."""
    return ", ".join(f"{name} = {value_as_text(value)}" for name, value in changes.items())


def value_as_text(value: Any) -> str:
    """A value in command-line syntax: ``none``, ``true``."""
    return str(value).lower() if value is None or isinstance(value, bool) else value_text(value)


def preset_variants(cells: Iterable[CellSpec], catalogue: Catalogue) -> dict[str, PresetVariant]:
    """Preset variants among the cells, by name.

    A key counts as changed if all cells of the variant agree on a value that differs from the preset's. A value that the preset
    itself gives to a method, or leaves to a search, is not a change.
    """
    from cglsuite.cells.spec import left_out

    expected = _expectations(catalogue)
    cells_of: _Members = {}
    for cell in _but_for_seeds(cells):
        base = cell.scenario.name
        if cell.preset != base:
            values = plain(left_out(catalogue, cell) | cell.configuration)
            changed = _changes(values, *expected(base, cell.method, cell.backbone))
            cells_of.setdefault(cell.preset, []).append((base, values, changed))
    return _variants(cells_of)


def _but_for_seeds(cells: Iterable[CellSpec]) -> Iterable[CellSpec]:
    """The first of the cells that differ in their seeds alone, by their parts: cells that are planned together share these."""
    first: dict[tuple[Any, ...], CellSpec] = {}
    for cell in cells:
        named = cell.preset, cell.method, cell.backbone, cell.pretraining
        shared = cell.scenario, cell.method_hyperparameters, cell.backbone_hyperparameters, cell.dataset_hyperparameters
        first.setdefault((*named, *map(id, shared), id(cell.pretraining_hyperparameters)), cell)
    return first.values()


def record_variants(records: Iterable[Record], catalogue: Catalogue) -> dict[str, PresetVariant]:
    """:func:`preset_variants` among the cells of records, by what the records say; those of presets or methods that are not installed
    are left out."""
    expected = _expectations(catalogue)
    members: _Members = {}
    for record in records:
        cell, values = record.cell, record.cell["configuration"]
        if cell["preset"] != cell["scenario"]:
            with contextlib.suppress(CglsuiteError):
                changed = _changes(values, *expected(cell["scenario"], cell["method"], cell["backbone"]))
                members.setdefault(cell["preset"], []).append((cell["scenario"], values, changed))
    return _variants(members)


_Members = dict[str, list[tuple[str, Mapping[str, Any], dict[str, Any]]]]
"""By preset: the base, the values and the changes of its cells."""


def _variants(cells_of: _Members) -> dict[str, PresetVariant]:
    shared = {name: _shared([changed for _, _, changed in members]) for name, members in cells_of.items()}
    variants = {}
    for name, changes in shared.items():
        base, values, _ = cells_of[name][0]
        differing = _differing_names([shared[other] for other, members in cells_of.items() if members[0][0] == base])
        distinguishing = {setting: values.get(setting) for setting in differing}
        variants[name] = PresetVariant(name=name, base=base, changes=changes, distinguishing=distinguishing)
    return variants


_Expected = Callable[[str, str, str], tuple[frozenset[str], Mapping[str, frozenset[str]]]]


def _expectations(catalogue: Catalogue) -> _Expected:
    """By preset, method and backbone, looked up once each: what a search may set, and the values that are no change, as canonical text."""
    from cglsuite.cells.spec import default_configuration

    @cache
    def expected(base: str, method: str, backbone: str) -> tuple[frozenset[str], Mapping[str, frozenset[str]]]:
        preset = catalogue.scenario(base)
        own = {f"training.{name}": value for name, value in catalogue.method(method).training.items()}
        given = (default_configuration(catalogue, preset, backbone), own, preset.method_defaults.get(method, {}))
        texts: dict[str, set[str]] = defaultdict(set)
        for name, value in (item for values in given for item in values.items()):
            texts[name].add(canonical(value))
        return frozenset(preset.searched), {name: frozenset(some) for name, some in texts.items()}

    return expected


def _changes(values: Mapping[str, Any], searched: frozenset[str], expected: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    return {
        name: value
        for name, value in values.items()
        if name.partition(".")[0] in _SECTIONS and name not in searched and canonical(value) not in expected.get(name, ())
    }


def _shared(changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Values that all of them share."""
    first, rest = changes[0], changes[1:]
    return {n: v for n, v in sorted(first.items()) if all(n in other and canonical(other[n]) == canonical(v) for other in rest)}


def _differing_names(changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Values in which some of them differ."""
    missing = object()
    names = sorted({name for one in changes for name in one})
    return [n for n in names if len({canonical(one[n]) if n in one else missing for one in changes}) > 1]
