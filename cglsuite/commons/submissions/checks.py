"""Checks of one record that need no data. Nothing in a submitted record is trusted, so everything computable is recomputed.

A check has one of three verdicts. ``verified``: the record agrees with our computation. ``refused``: the record cannot be true.
``unverified``: this cannot be decided here, for example because a plugin is not installed; the reason is stored and shown.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cglsuite.base.hashing import canonical, plain
from cglsuite.base.markup import plain_text
from cglsuite.campaigns.migrate import replanned
from cglsuite.cells.keys import claimed_key, design_key, seeded_keys, sources
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.records.describe import describe
from cglsuite.cells.records.metric_values import metrics_from
from cglsuite.cells.records.record import Record
from cglsuite.cells.records.schema import performance_bounds
from cglsuite.cells.spec import CellSpec
from cglsuite.host import Catalogue
from cglsuite.learning.reproducibility.numerics import numerics_of
from cglsuite.specs import MetricSpec, Seeds

Verdict = Literal["verified", "refused", "unverified", "noted"]
_NAME = r"[a-z0-9][a-z0-9._+-]*"
_NAMES: Mapping[str, re.Pattern[str]] = {
    "scenario": re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9-]+@[a-z0-9.-]+"),
    "preset": re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9-]+@[a-z0-9.-]+(\+[0-9a-f]{8})?"),
    "method": re.compile(_NAME),
    "backbone": re.compile(_NAME),
    "device": re.compile(_NAME),
    "dtype": re.compile(_NAME),
}
_KEY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,199}")
_LONGEST_NAME = 200
_LONGEST_TEXT = 20_000
_CLOSE = {"rel_tol": 1e-9, "abs_tol": 1e-12}
_A_YEAR_S = 366 * 86400.0
_SHORTEST_EPOCH_S = 1e-5
"""The shortest plausible epoch with a forward and a backward pass, in seconds."""
_COUNTED = 1e-6
_FORGED = "the design does not follow from the names, settings and seeds stored with it"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The outcome of one check of a record. ``reason`` explains how the record was verified, or why it was not."""

    check: str
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Replanned:
    """A record's cell as planned here, or the reason why it cannot be planned."""

    planned: PlannedCell | None
    reason: str = ""
    forged: bool = False


class Replanner:
    """Re-plans the cells of records from their configurations. Records that differ only in their seeds are planned once."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._planned: dict[str, Replanned] = {}
        self._keys: dict[str, Callable[[Seeds], str]] = {}

    def of(self, record: Record) -> Replanned:
        """Plan the cell that the record claims to be a result of."""
        group = canonical({**record.cell, "seeds": None})
        first = self._planned.get(group) or self._first(record)
        if first.planned is None or first.planned.cell is None:
            return first  # not kept: it may be the fault of this record alone
        self._planned[group] = first
        seeds = Seeds(**{axis: record.cell["seeds"][axis] for axis in ("order", "split", "init")})
        cell = dataclasses.replace(first.planned.cell, seeds=seeds)
        if design_key(cell) != record.design:
            return Replanned(planned=None, forged=True, reason=_FORGED)
        request = dataclasses.replace(first.planned.request, seeds=seeds)
        return Replanned(planned=PlannedCell(request=request, state="ready", cell=cell, key=self._key_of(group, cell, seeds)))

    def _key_of(self, group: str, cell: CellSpec, seeds: Seeds) -> str:
        if group not in self._keys:
            self._keys[group] = seeded_keys(cell, self.catalogue)
        return self._keys[group](seeds)

    def _first(self, record: Record) -> Replanned:
        try:
            planned, reason = replanned(record, self.catalogue)
        except Exception as error:  # noqa: BLE001 - whatever a stranger's values do to a plugin's code is a finding
            return Replanned(planned=None, reason=f"its cell cannot be planned: {type(error).__name__}: {error}")
        if planned is not None:
            return Replanned(planned=planned)
        if reason.startswith("is a different cell now: its switches"):  # every name and value is as here
            return Replanned(planned=None, forged=True, reason=_FORGED)
        return Replanned(planned=None, reason=f"its cell {reason}")


def checked(record: Record, catalogue: Catalogue, replanner: Replanner) -> tuple[list[Finding], PlannedCell | None]:
    """Check one record, and return the findings and its cell as planned here, or None."""
    findings = [_verdict("names", list(_names(record)))]
    if findings[0].verdict == "refused":
        return findings, None  # nothing else looks at such names
    if not record.done:
        reason = f"its status is {record.status}: only finished records are results"
        return [*findings, Finding(check="status", verdict="refused", reason=reason)], None
    again = replanner.of(record)
    planned = again.planned
    expected = describe(planned.cell) if planned is not None and planned.cell is not None else None
    findings += [_digest(record), _key(record, again, replanner), _cell(record, expected, again.reason)]
    findings += [_bounds(record, expected), _metrics(record, catalogue), _timings(record)]
    return findings, planned


def _verdict(check: str, faults: list[str]) -> Finding:
    return Finding(check=check, verdict="refused" if faults else "verified", reason="; ".join(faults[:3]))


# --- text ------------------------------------------------------------------------------------------------------------------------


def _names(record: Record) -> Iterator[str]:
    """Yield invalid names, and texts with characters that control a terminal, or hide or reorder text."""
    for name, pattern in _NAMES.items():
        text = str(record.cell[name])
        if len(text) > _LONGEST_NAME or not pattern.fullmatch(text):
            yield f"cell.{name}: {plain_text(text)[:60]!r} is not a valid {name} name"
    for where, text, names in _texts(record.to_json(), ""):
        if names and not _KEY_NAME.fullmatch(text):
            yield f"{where}: {plain_text(text)[:60]!r} is not a valid field name"
        elif len(text) > _LONGEST_TEXT:
            yield f"{where}: {len(text):,} characters; expected at most {_LONGEST_TEXT:,}"
        elif plain_text(text) != text:
            yield f"{where}: it has control characters, or characters that hide or reorder text"


def _texts(value: Any, place: str) -> Iterator[tuple[str, str, bool]]:
    """Yield every text in a record: its place, the text, and whether it is a field name."""
    if isinstance(value, str):
        yield place, value, False
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield place or "record", name, True
            yield from _texts(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, place)


# --- what it says it is ----------------------------------------------------------------------------------------------------------


def _digest(record: Record) -> Finding:
    return Finding(check="digest", verdict="verified")


def _key(record: Record, replanned: Replanned, replanner: Replanner) -> Finding:
    """Check the key against the record's names, settings and seeds, using the installed code or the code that the record names."""
    planned = replanned.planned
    if planned is None or planned.cell is None:
        return Finding(check="key", verdict="refused" if replanned.forged else "unverified", reason=replanned.reason)
    first = (record.provenance.get("inputs") or {}).get("first_key", record.key)
    if first != record.key and planned.key == first:
        reason = "files or variables that its code reads had changed: its second key depends on digests that records do not hold"
        return Finding(check="key", verdict="unverified", reason=reason)
    if planned.key == record.key:
        return Finding(check="key", verdict="verified")
    used = sources(planned.cell, replanner.catalogue)
    recorded = {part["role"]: str(part.get("source")) for part in record.makers if part.get("role") not in (None, "metric")}
    claims = record.environment.get("numerics") or dataclasses.asdict(numerics_of(planned.cell.device, planned.cell.threads))
    torch = str(record.environment.get("torch"))
    if claimed_key(planned.cell, recorded, torch, claims) == first:
        unlike = sorted(role for role in {*recorded, *used} if recorded.get(role) != used.get(role, {}).get("source"))
        other = f"made by code that differs from what is installed here ({', '.join(unlike)})" if unlike else f"made with torch {torch}"
        return Finding(check="key", verdict="unverified", reason=f"{other}: the key is right for the code that the record names")
    reason = f"its content gives {planned.key[:12]} here, and another key with the code that it names: it is not the key of this cell"
    return Finding(check="key", verdict="refused", reason=f"{reason}. If an earlier version wrote it, `cglsuite migrate` re-keys it")


def _cell(record: Record, expected: Mapping[str, Any] | None, reason: str) -> Finding:
    """Check the displayed preset name and the scenario's switches, by which pages group and bound records. ``expected``: the description
    that a record of the cell as planned here would have; None, with a ``reason``, if the cell cannot be planned."""
    if expected is None:
        return Finding(check="cell", verdict="unverified", reason=reason)
    faults = [
        f"{name}: {str(record.cell[name])[:60]!r}, but its settings give {expected['cell'][name]!r}"
        for name in ("scenario", "preset", "method", "backbone")
        if record.cell[name] != expected["cell"][name]
    ]
    now, then = plain(expected["scenario"]), record.scenario
    differing = sorted(name for name in {*now, *then} if now.get(name) != then.get(name) or (name in now) != (name in then))
    faults += [f"scenario.{name}: {str(then.get(name))[:40]!r}, but its settings give {str(now.get(name))[:40]!r}" for name in differing]
    return _verdict("cell", faults)


# --- numbers ---------------------------------------------------------------------------------------------------------------------


def _bounds(record: Record, expected: Mapping[str, Any] | None) -> Finding:
    """Check the matrix against the bounds of our scenario, and check that accuracies are possible for the number of test items.

    An accuracy over n items is a multiple of 1/n (Brown & Heathers, The GRIM Test, Social Psychological and Personality Science 2017). The
    entries of an altered matrix often are not, even if everything else was recomputed from it.
    """
    low, high = performance_bounds(record.scenario if expected is None else expected["scenario"])
    faults = [
        f"matrix[{k}][{j}]: {value:g}; expected {low:g} to {high:g}"
        for k, row in enumerate(record.matrix)
        for j, value in enumerate(row)
        if value is not None and not low - 1e-9 <= value <= high + 1e-9
    ]
    if record.scenario.get("performance") == "micro" and record.scenario.get("labels") == "single":
        for k, row in enumerate(record.matrix):
            for j, (value, task) in enumerate(zip(row, record.tasks, strict=False)):
                items = (value or 0.0) * task["n_test"]
                if abs(items - round(items)) > _COUNTED * max(1.0, task["n_test"]):
                    faults.append(f"matrix[{k}][{j}]: {value:.9g} is not a possible share of the {task['n_test']} test items of its task")
    if faults or expected is not None:
        return _verdict("bounds", faults)
    return Finding(check="bounds", verdict="unverified", reason="within the bounds that the record states itself")


def _metrics(record: Record, catalogue: Catalogue) -> Finding:
    """Check every metric by recomputing it from the matrix, regardless of the code that the record names."""
    specs = catalogue.specs(MetricSpec)
    faults: list[str] = []
    known = [name for name in record.metrics if name in specs and not specs[name].reference]
    again = metrics_from(record, catalogue, known)
    for name in known:
        computed, recorded = again.get(name), record.metrics[name]
        if computed is not None and not math.isfinite(computed):
            computed = None
        same = recorded == computed if recorded is None or computed is None else math.isclose(recorded, computed, **_CLOSE)
        if not same:
            shown = ["none" if value is None else f"{value:.9g}" for value in (recorded, computed)]
            faults.append(f"{name}: {shown[0]}, but the matrix gives {shown[1]}")
    of_two = [name for name, value in record.metrics.items() if value is not None and name in specs and specs[name].reference]
    faults += [f"{name}: a value, although it takes the matrix of {specs[name].reference} too" for name in of_two]
    if faults:
        return _verdict("metrics", faults)
    foreign = [name for name, value in record.metrics.items() if value is not None and name not in specs]
    if foreign:
        return Finding(check="metrics", verdict="unverified", reason=f"no installed plugin computes {', '.join(sorted(foreign))}")
    return Finding(check="metrics", verdict="verified")


def _timings(record: Record) -> Finding:
    """Check for impossible times and sizes. Plausible values cannot be verified on another machine."""
    times = {name: value for name, value in record.timings_s.items() if value is not None}
    faults: list[str] = []
    if (total := times.pop("total", None)) is None:
        faults.append("timings_s.total: none")
    else:
        epochs = sum(training["epochs"] for training in record.training.get("tasks", ()))
        if total <= epochs * _SHORTEST_EPOCH_S:
            faults.append(f"timings_s.total: {total:g} s for {epochs} epochs")
        if total > _A_YEAR_S:
            faults.append(f"timings_s.total: {total:g} s, more than a year")
        if (parts := math.fsum(times.values())) > 1.01 * total + 0.01:
            faults.append(f"timings_s: the parts take {parts:g} s, the total is {total:g} s")
    peak, model = record.memory.get("peak_bytes"), record.parameters.get("model")
    if peak is not None and model is not None and peak < 4 * model:
        faults.append(f"memory.peak_bytes: {peak:g}, less than the {model:g} parameters of the model take")
    items, budget = record.memory.get("items"), record.memory.get("budget_items")
    if items is not None and budget is not None and items > budget:
        faults.append(f"memory.items: {items:g}, over the budget of {budget:g}")
    return _verdict("timings", faults)
