"""Describe presets with overridden switches. Their names end in a hash, and this module lists the overrides that a hash stands for."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from cglsuite.base.errors import CglsuiteError
from cglsuite.base.hashing import canonical, plain
from cglsuite.campaigns.search import overlap_text, parse_scope, shared_seeds
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.records.record import Record
from cglsuite.cells.spec import CellSpec
from cglsuite.host import Catalogue
from cglsuite.reports.kit.text import value_text
from cglsuite.specs import order_count
from cglsuite.stats import expected_best

_SECTIONS = ("scenario", "stream", "schedule", "training", "dataset", "backbone")


@dataclass(frozen=True, kw_only=True)
class PresetVariant:
    """A preset with overridden switches.

    Args:
        name: including the hash. base: the preset. changes: the values that differ from the preset's, by dotted key.
        distinguishing: the values in which it differs from the campaign's other variants of the same preset; empty for a single variant.
    """

    name: str
    base: str
    changes: Mapping[str, Any]
    distinguishing: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The variant's title, such as ``base, n_tasks = 5``, or ``name`` if it is the only variant of its preset."""
        if not self.distinguishing:
            return self.name
        return ", ".join(
            [self.base, *(f"{name.partition('.')[2]} = {value_as_text(value)}" for name, value in self.distinguishing.items())]
        )

    @property
    def changes_text(self) -> str:
        """All overrides as text, such as ``n_tasks = 5, ...``."""
        return changes_as_text(self.changes)


def changes_as_text(changes: Mapping[str, Any]) -> str:
    """Format settings with their values, as in ``n_tasks = 5, ...``."""
    return ", ".join(f"{name} = {value_as_text(value)}" for name, value in changes.items())


def value_as_text(value: Any) -> str:
    """Format a value in command-line syntax, such as ``none`` or ``true``."""
    return str(value).lower() if value is None or isinstance(value, bool) else value_text(value)


def without_choices(
    planned: Sequence[PlannedCell], outcomes: Sequence[Mapping[str, Any]], catalogue: Catalogue
) -> tuple[list[PlannedCell], dict[str, frozenset[str]]]:
    """Name presets without the values that the campaign's searches chose, so that methods with different choices are compared.

    Args:
        outcomes: of the campaign's searches.

    Returns:
        The cells, and the settings that the searches chose, by the new name of the preset.
    """
    from cglsuite.cells.spec import resolve_cell

    chosen: dict[tuple[Any, ...], Mapping[str, Any]] = {
        (outcome["scenario"], outcome["method"], outcome["backbone"]): outcome["overrides"]
        for outcome in outcomes
        if outcome["chosen"] is not None
    }
    names, tuned, named = dict[str, str](), defaultdict[str, frozenset[str]](frozenset), list[PlannedCell]()
    for cell in planned:
        request, overrides = cell.request, cell.request.overrides
        choice = chosen.get((request.scenario, request.method, request.backbone), {})
        searched = frozenset(name for name, value in choice.items() if canonical(overrides.get(name)) == canonical(value))
        if cell.cell is not None and cell.cell.preset != request.scenario and searched:
            fixed = {name: value for name, value in overrides.items() if name not in searched}
            place = canonical([request.scenario, request.method, request.backbone, fixed])
            if place not in names:
                names[place] = cell.cell.preset
                with contextlib.suppress(CglsuiteError):  # a fixed value may be valid only with a chosen one
                    names[place] = resolve_cell(catalogue, request.scenario, request.method, request.backbone, fixed).preset
            cell = replace(cell, cell=replace(cell.cell, preset=names[place]))
            tuned[names[place]] |= searched
        named.append(cell)
    return named, tuned


def preset_variants(
    cells: Iterable[CellSpec], catalogue: Catalogue, chosen: Mapping[str, frozenset[str]] | None = None
) -> dict[str, PresetVariant]:
    """Return the variants of presets among the cells, by name.

    A key counts as changed if all cells of the variant have the same value and this value differs from that of the preset. Values that the
    preset itself sets for a method, or leaves to a search, are not changes.

    Args:
        chosen: the settings that the campaign's searches chose, by the preset's name. They are not changes either.
    """
    from cglsuite.cells.spec import omitted_defaults

    expected = _expectations(catalogue)
    cells_of: _Members = {}
    for cell in _but_for_seeds(cells):
        base = cell.scenario.name
        if cell.preset != base:
            values = plain(omitted_defaults(catalogue, cell) | cell.configuration)
            searched, usual = expected(base, cell.method, cell.backbone)
            changed = _changes(values, searched | (chosen or {}).get(cell.preset, frozenset()), usual)
            cells_of.setdefault(cell.preset, []).append((base, values, changed))
    return _variants(cells_of)


def _but_for_seeds(cells: Iterable[CellSpec]) -> Iterable[CellSpec]:
    """Return one cell of each set that differs only in seeds.

    Parts are compared by identity, since cells that are planned together share them.
    """
    first: dict[tuple[Any, ...], CellSpec] = {}
    for cell in cells:
        named = cell.preset, cell.method, cell.backbone, cell.pretraining
        shared = cell.scenario, cell.method_hyperparameters, cell.backbone_hyperparameters, cell.dataset_hyperparameters
        first.setdefault((*named, *map(id, shared), id(cell.pretraining_hyperparameters)), cell)
    return first.values()


def record_variants(records: Iterable[Record], catalogue: Catalogue) -> dict[str, PresetVariant]:
    """Return the variants of presets among the records, by name (see :func:`preset_variants` for cells).

    Records whose preset or method is not installed are skipped.
    """
    expected = _expectations(catalogue)
    members: _Members = {}
    for record in _representatives(records):
        cell, values = record.cell, record.cell["configuration"]
        if cell["preset"] != cell["scenario"]:
            with contextlib.suppress(CglsuiteError):
                changed = _changes(values, *expected(cell["scenario"], cell["method"], cell["backbone"]))
                members.setdefault(cell["preset"], []).append((cell["scenario"], values, changed))
    return _variants(members)


def _representatives(records: Iterable[Record]) -> list[Record]:
    """Return one record of each set that differs only in seeds."""
    records, distinct, texts = list(records), dict[tuple[str, ...], Record](), dict[int, str]()
    for record in records:
        cell, configuration = record.cell, record.cell["configuration"]  # records may share it, so its text is computed once
        text = texts[id(configuration)] = texts.get(id(configuration)) or canonical(configuration)
        distinct.setdefault((cell["preset"], cell["method"], cell["backbone"], text), record)
    return list(distinct.values())


_Members = dict[str, list[tuple[str, Mapping[str, Any], dict[str, Any]]]]
"""The base, values and changes of each cell of a variant, by the variant's name."""


def _variants(cells_of: _Members) -> dict[str, PresetVariant]:
    shared = {name: _common_values([changed for _, _, changed in members]) for name, members in cells_of.items()}
    variants = {}
    for name, changes in shared.items():
        base, values, _ = cells_of[name][0]
        differing = _differing_names([shared[other] for other, members in cells_of.items() if members[0][0] == base])
        distinguishing = {setting: values.get(setting) for setting in differing}
        variants[name] = PresetVariant(name=name, base=base, changes=changes, distinguishing=distinguishing)
    return variants


_Expected = Callable[[str, str, str], tuple[frozenset[str], Mapping[str, frozenset[str]]]]


def _expectations(catalogue: Catalogue) -> _Expected:
    """Return a cached function of preset, method and backbone.

    It returns the keys that a search may set, and the values that are not changes as canonical text by key.
    """
    from cglsuite.cells.spec import default_configuration

    @cache
    def expected(base: str, method: str, backbone: str) -> tuple[frozenset[str], Mapping[str, frozenset[str]]]:
        preset = catalogue.scenario(base)
        training = {f"training.{name}": value for name, value in catalogue.method(method).training.items()}
        layers = (default_configuration(catalogue, preset, backbone), training, preset.method_defaults.get(method, {}))
        texts: dict[str, set[str]] = defaultdict(set)
        for name, value in (item for values in layers for item in values.items()):
            texts[name].add(canonical(value))
        return frozenset(preset.searched), {name: frozenset(some) for name, some in texts.items()}

    return expected


def _changes(values: Mapping[str, Any], searched: frozenset[str], expected: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    return {
        name: value
        for name, value in values.items()
        if name.partition(".")[0] in _SECTIONS and name not in searched and canonical(value) not in expected.get(name, ())
    }


def _common_values(changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values that all of the changes share."""
    first, rest = changes[0], changes[1:]
    return {n: v for n, v in sorted(first.items()) if all(n in other and canonical(other[n]) == canonical(v) for other in rest)}


def _differing_names(changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the settings in which some of the changes differ."""
    missing = object()
    names = sorted({name for change in changes for name in change})
    return [n for n in names if len({canonical(change[n]) if n in change else missing for change in changes}) > 1]


# The order of tasks in a record.


def order_of(record: Record) -> str:
    """Return the order in which tasks arrived as text. Two texts are equal if and only if the orders are equal."""
    return " | ".join(name for name, _ in tasks_of(record))


def place_of(record: Record) -> dict[str, str]:
    """Return the order, split and seed of a record.

    For a stream of tasks, the order is the task sequence itself, because several order seeds may draw the same one. For a task-free stream
    it is the order seed.
    """
    seeds = record.cell["seeds"]
    order = str(seeds["order"]) if record.stream else order_of(record)
    return {"order": order, "split": str(seeds["split"]), "seed": str(seeds["init"])}


def orders_in_all(records: Sequence[Record]) -> int | None:
    """Return the number of possible orders if the order seeds enumerate all task orders, or ``None`` otherwise."""
    if any(record.stream or record.scenario.get("class_order") != "all-tasks" for record in records):
        return None
    return order_count("all-tasks", len(records[0].matrix[0])) if records else None


def split_overlap(records: Iterable[Record]) -> float:
    """Return the median ratio of test items to training items over the records, or 0 if no record states both numbers."""
    counts = [[sum(int(task.get(name) or 0) for task in record.tasks) for name in ("n_test", "n_train")] for record in records]
    return float(np.median(shares)) if (shares := [test / train for test, train in counts if train]) else 0.0


def tasks_of(record: Record) -> list[tuple[str, str]]:
    """Return two names for every task, in order of arrival. Only the first name depends on the class order within the task.

    Both list the task's classes, the first in order of arrival and the second sorted. If tasks share their classes (as domains do), both
    are the task's name.
    """
    n_tasks = len(record.matrix[0])
    tasks = list(record.tasks) or [{"classes": [], "name": str(k)} for k in range(n_tasks)]
    sets = [tuple(sorted(task["classes"])) for task in tasks]
    if len(set(sets)) < len(sets):
        names = [str(task.get("name", k)) for k, task in enumerate(tasks)]
        return [(name, name) for name in names]
    return [(_listed(task["classes"]), _listed(classes)) for task, classes in zip(tasks, sets, strict=True)]


def _listed(classes: Iterable[int]) -> str:
    return ",".join(map(str, classes))


# How methods were tuned: trials and scope of the campaign's searches, how certain a choice is, and how much more trials helped.
# Pure functions of results; :mod:`cglsuite.reports.results.runs` renders them.

UNTUNED = "average_performance_untuned"
"""The name of the column for the average performance over the tasks that the search did not use."""


def searches_of(outcomes: Sequence[Mapping[str, Any]], cell: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the searches that chose values for a record's cell."""
    return [
        outcome
        for outcome in outcomes
        if outcome["chosen"] is not None
        and (outcome["scenario"], outcome["method"]) == (cell["scenario"], cell["method"])
        and outcome["backbone"] in (None, cell["backbone"])
    ]


def trials_of(outcomes: Sequence[Mapping[str, Any]], cell: Mapping[str, Any]) -> int:
    """Return the number of settings tried for a cell. It is 1 if no search of the campaign tuned the cell."""
    return max((len(outcome["candidates"]) for outcome in searches_of(outcomes, cell)), default=1)


def overlap_of(outcomes: Sequence[Mapping[str, Any]], records: Iterable[Record]) -> str:
    """Return a remark if searches used seeds of the records that they tuned, or an empty string otherwise."""
    shared = (
        seed
        for record in records
        for outcome in searches_of(outcomes, record.cell)
        for seed in shared_seeds(outcome.get("seeds", ()), [record.cell["seeds"]])
    )
    return overlap_text(list(dict.fromkeys(shared)))


def tuned_tasks(outcomes: Sequence[Mapping[str, Any]], scenario: str) -> int | None:
    """Return the largest number of first tasks that a search used in a scenario, or ``None`` if every search used all tasks."""
    scopes = [parse_scope(outcome.get("scope", "all")).tasks for outcome in outcomes if outcome["scenario"] == scenario]
    return max((k for k in scopes if k is not None), default=None)


def tuning_columns(outcomes: Sequence[Mapping[str, Any]], records: Mapping[str, Record], keys: Sequence[str]) -> pd.DataFrame:
    """Compute the column ``trials`` and, if a search used only the first tasks, :data:`UNTUNED`, with one row per key."""
    columns: dict[str, Any] = {"trials": pd.array([trials_of(outcomes, records[key].cell) for key in keys], dtype="Int64")}
    untuned = [_untuned(records[key], tuned_tasks(outcomes, records[key].cell["scenario"])) for key in keys]
    if any(math.isfinite(value) for value in untuned):
        columns[UNTUNED] = untuned
    return pd.DataFrame(columns, index=range(len(keys)))


def _untuned(record: Record, tasks: int | None) -> float:
    if tasks is None or not record.matrix:
        return math.nan
    later = record.performance()[-1, tasks:]
    later = later[np.isfinite(later)]
    return float(later.mean()) if later.size else math.nan


def note(searches: Sequence[Mapping[str, Any]], records: Mapping[str, Sequence[Record]]) -> str:
    """Describe the trials and the scope of the searches for a leaderboard, or state that there was no search.

    Args:
        records: by method label.
    """
    if not records:
        return ""
    cells = {label: some[0].cell for label, some in records.items()}
    trials = {label: trials_of(searches, cell) for label, cell in cells.items()}
    by_label = {label: searches_of(searches, cell) for label, cell in cells.items()}
    if not any(by_label.values()):
        return "Trials: no search in this campaign; hyperparameters are the preset's, the method's defaults or set by hand."
    if len(set(trials.values())) == 1:
        said = f"Trials: {next(iter(trials.values()))} for every method"
    else:
        said = "Trials: " + ", ".join(f"{label} {n}" for label, n in trials.items())
    outcomes = [outcome for some in by_label.values() for outcome in some]
    scopes = sorted({outcome.get("scope", "all") for outcome in outcomes})
    said += "; scored on validation items of " + " or ".join("all tasks" if s == "all" else f"the {_scope_words(s)}" for s in scopes)
    overlap = overlap_of(searches, [record for some in records.values() for record in some])
    return " ".join(filter(None, [f"{said}.{_reordered_note(outcomes, records, scopes)}", overlap]))


def _scope_words(scope: str) -> str:
    return f"first {parse_scope(scope).tasks} tasks, then restarted from scratch"


def _reordered_note(outcomes: Sequence[Mapping[str, Any]], records: Mapping[str, Sequence[Record]], scopes: Sequence[str]) -> str:
    """Return a remark if the grid has orders in which the tuned tasks may not be the first ones; otherwise the empty text."""
    if scopes == ["all"]:
        return ""
    seen = {seeds["order"] for outcome in outcomes for seeds in outcome.get("seeds", ())}
    others = sorted({record.cell["seeds"]["order"] for some in records.values() for record in some} - seen)
    if not others:
        return ""
    listed = ", ".join(map(str, others[:5])) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
    return f" The search saw no order seed {listed}: in these orders its tasks may come at any place, if the order is random."


def lead(outcome: Mapping[str, Any]) -> tuple[float, float]:
    """Compute the lead of the chosen candidate over the next best candidate, with its standard error.

    The lead is the mean of the differences paired by seed. Both are NaN if no other candidate finished. With one seed, the standard error
    is NaN.
    """
    rows = [row for row in outcome["candidates"] if row["mean"] is not None]
    if outcome["chosen"] is None or len(rows) < 2:
        return math.nan, math.nan
    selected = outcome["candidates"][outcome["chosen"]]
    second = max((row for row in rows if row is not selected), key=lambda row: row["mean"])
    differences = np.subtract(selected["scores"], second["scores"])
    error = float(differences.std(ddof=1) / math.sqrt(differences.size)) if differences.size > 1 else math.nan
    return float(differences.mean()), error


def best_of_n(searches: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Compute the expected best validation score of n trials out of the N trials of a search.

    Candidates that did not finish on every seed are left out and counted in ``excluded``. ``std`` is over the subsets of n trials.

    Returns:
        Columns scenario, label, n, mean, std, trials, excluded.
    """
    frames = []
    for outcome in searches:
        scores = [row["mean"] for row in outcome["candidates"] if row["mean"] is not None]
        if not scores:
            continue
        facts = {"scenario": outcome["scenario"], "label": _label(outcome), "trials": len(outcome["candidates"])}
        frames.append(expected_best(scores).assign(**facts, excluded=len(outcome["candidates"]) - len(scores)))
    columns = ["scenario", "label", "n", "mean", "std", "trials", "excluded"]
    return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)


def trial_values(searches: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """List the validation score of every trial for each searched setting.

    ``std`` is over the search's seeds and NaN for a single seed. Trials that did not finish on every seed are left out, and so are settings
    with only one value.

    Returns:
        Columns scenario, axis, label, value, mean, std, chosen.
    """
    columns = ["scenario", "axis", "label", "value", "mean", "std", "chosen"]
    rows = [
        [outcome["scenario"], axis, _label(outcome), value, row["mean"], _spread(row["scores"]), place == outcome["chosen"]]
        for outcome in searches
        for place, row in enumerate(outcome["candidates"])
        if row["mean"] is not None
        for axis, value in row["overrides"].items()
        if any(canonical(other["overrides"].get(axis)) != canonical(value) for other in outcome["candidates"])
    ]
    return pd.DataFrame(rows, columns=columns).astype({"value": object})


def _label(outcome: Mapping[str, Any]) -> str:
    return " × ".join(filter(None, [outcome["method"], outcome["backbone"]]))


def _spread(scores: Sequence[float]) -> float:
    return float(np.std(scores, ddof=1)) if len(scores) > 1 else math.nan
