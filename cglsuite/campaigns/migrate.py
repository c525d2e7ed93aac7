"""Re-key records after a source change if reruns of sampled cells show that results are bit-identical.

A record's key includes a digest of the sources that computed it. A change that does not affect the arithmetic (for example, moving a
function to another module) changes the key although the numbers stay the same. :func:`survey` finds the affected records, :func:`choose`
draws a sample that covers as many of the changed sources as possible, ``compare`` compares reruns bit by bit, and :func:`rekey` writes
the records that the sample covers under their new keys.

A record is covered if *each* change between its sources and the current ones was part of a rerun with identical results. A change in
``twp.py`` is covered only by cells of TWP, a change in the core by cells of the same level. User code needs no rerun if its digest by the
former rule (:mod:`cglsuite.cells.code.sources`) still equals the record's, since it has not changed.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cglsuite.base.errors import CglsuiteError, UsageError
from cglsuite.base.hashing import digest, plain
from cglsuite.cells.code.sources import former_digest
from cglsuite.cells.code.user import is_ours
from cglsuite.cells.keys import claimed_key, design_key, numerics_facts, references, sources, torch_version
from cglsuite.cells.plan import CellRequest, PlannedCell, plan_cell
from cglsuite.cells.portable import arithmetic, process_numerics
from cglsuite.cells.records.comparison import compare
from cglsuite.cells.records.record import NewerSchemaError, Record
from cglsuite.cells.spec import omitted_defaults
from cglsuite.specs import Seeds

if TYPE_CHECKING:
    from cglsuite.cells.spec import CellSpec
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue


_WHERE_RUN = ("torch", "cpu_capability", "cuda")


@dataclass(frozen=True, order=True)
class Change:
    """A source change in one part of a cell: the part's ``role`` and ``name``, and the first digits of the old and the new digest.

    For the core and for the builder of a scenario, the name is the kind of cell: level, labels and incremental setting.
    """

    role: str
    name: str
    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A finished record whose cell can still be planned, but now has a different key.

    Attributes:
        changes: the changes that reruns have to cover. same: parts whose digest differs today but equals the record's by the former
            rule for user code.
        former: the record to compare a rerun with, if it is not ``record``.
    """

    record: Record
    planned: PlannedCell
    used: Mapping[str, Mapping[str, str]]
    changes: frozenset[Change]
    same: frozenset[Change] = frozenset()
    former: Record | None = None

    @property
    def seconds(self) -> float:
        """The cell's run time in seconds."""
        return float(self.record.timings_s.get("total") or 0.0)


@dataclass(kw_only=True)
class Survey:
    """A comparison of a store's records with the current sources. ``left`` contains the records that cannot be re-keyed, as (record,
    reason).
    """

    current: int = 0
    candidates: list[Candidate] = field(default_factory=list)
    left: list[tuple[Record, str]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """A change with the number of records that it affects, and how many of those were rerun with identical results."""

    change: Change
    records: int
    shown: int


def survey(
    store: Store,
    catalogue: Catalogue,
    *,
    current: Mapping[str, Any],
    scenarios: Sequence[str] = (),
    methods: Sequence[str] = (),
) -> Survey:
    """Survey the records in a store, optionally restricted to some scenarios and methods.

    Args:
        current: :func:`machine` of this process: bits are comparable only under the same torch and CPU capability.
    """
    result, candidates = Survey(), dict[str, Candidate]()
    for record in store.records():
        if (scenarios and record.cell["scenario"] not in scenarios) or (methods and record.cell["method"] not in methods):
            continue
        if not record.done:
            result.left.append((record, f"its status is {record.status}: only finished records are results"))
            continue
        planned, reason = replanned(record, catalogue)
        if planned is None:
            result.left.append((record, reason))
        elif planned.key == record.key:
            result.current += 1
        elif reason := _why_not_writable(store, planned.key) or why_not_comparable(record, _facts_of_rerun(record, current)):
            result.left.append((record, reason))
        else:
            used = sources(_cell(planned), catalogue)
            changes = frozenset(_changes(record, used))
            same = frozenset(_changes_of_rule_only(record, changes, _cell(planned), catalogue))
            candidate = Candidate(record=record, planned=planned, used=used, changes=changes - same, same=same)
            other = candidates.get(planned.key)
            if other is not None:
                candidate, lost = (candidate, other) if len(candidate.changes) < len(other.changes) else (other, candidate)
                result.left.append((lost.record, f"record {candidate.record.key[:12]} of the same cell is closer to the current sources"))
            candidates[planned.key] = candidate
    result.candidates = sorted(candidates.values(), key=lambda c: c.record.key)
    return result


def _why_not_writable(store: Store, key: str) -> str:
    """Explain why no record can be written under the current key. Returns an empty string if one can."""
    try:
        return "" if store.cached(key) is None else f"a finished record already exists under the current key {key[:12]}"
    except NewerSchemaError as error:
        return str(error)


def _cell(planned: PlannedCell) -> CellSpec:
    if planned.cell is None:
        raise UsageError(f"{planned.request.label} is {planned.state}: {planned.reason}")
    return planned.cell


def machine() -> dict[str, Any]:
    """Describe this process and this machine as records do, with the arithmetic of the numerics in use."""
    import torch

    from cglsuite.cells.run import processor

    return {
        "torch": torch_version(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "arithmetic": arithmetic(),
        "cuda": torch.version.cuda if torch.cuda.is_available() else None,
        "cpu": processor(),
    }


def replanned(record: Record, catalogue: Catalogue) -> tuple[PlannedCell | None, str]:
    """Plan the record's cell with the current code. Return it, or the reason why it is now a different cell."""
    cell = record.cell
    seeds = Seeds(**{axis: cell["seeds"][axis] for axis in ("order", "split", "init")})
    request = CellRequest(
        scenario=cell["scenario"],
        method=cell["method"],
        backbone=cell["backbone"],
        seeds=seeds,
        threads=cell["threads"],
        device=cell["device"],
        numerics=cell.get("numerics", "native"),
    )
    try:
        preset = plan_cell(request, catalogue)
        if not preset.ready or preset.cell is None:
            return None, f"cannot be planned now: {preset.reason}"
        defaults = plain(preset.cell.configuration)
        changed = {k: v for k, v in cell["configuration"].items() if k not in defaults or defaults[k] != v}
        # A record omits hyperparameters that are implicit and have default values, although its preset may state them.
        implicit = plain(omitted_defaults(catalogue, preset.cell))
        changed |= {k: v for k, v in implicit.items() if k in defaults and k not in cell["configuration"]}
        overrides = {k: ",".join(map(str, v)) if isinstance(v, list) else v for k, v in changed.items()}
        planned = plan_cell(dataclasses.replace(request, overrides=overrides), catalogue) if overrides else preset
    except CglsuiteError as error:
        return None, f"cannot be planned now: {error}"
    if planned.cell is None or not planned.ready:
        return None, f"cannot be planned now: {planned.reason}"
    if design_key(planned.cell) != record.design:
        now = plain(planned.cell.configuration)
        differing = sorted(k for k in {*now, *cell["configuration"]} if now.get(k) != cell["configuration"].get(k))
        return None, "is a different cell now" + (
            f": {', '.join(differing[:4])}" if differing else ": its switches or hyperparameters have different names"
        )
    return planned, ""


def _facts_of_rerun(record: Record, current: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the facts of the process that reruns a record's cell: this one, or a worker with the cell's numerics."""
    from cglsuite.campaigns.executors.supervisor import arithmetic_of_workers

    numerics = record.cell.get("numerics", "native")
    return current if numerics == process_numerics() else {**current, "arithmetic": arithmetic_of_workers(numerics)}


def why_not_comparable(record: Record, current: Mapping[str, Any]) -> str:
    """Explain why a record cannot be compared bit by bit on this machine. Returns an empty string if it can.

    Args:
        current: :func:`machine`, or the environment of a rerun.
    """
    for name in _WHERE_RUN[: 2 if record.cell["device"] == "cpu" else 3]:
        if name == "cpu_capability" and record.environment.get("arithmetic") is not None:
            name = "arithmetic"  # the computed fingerprint is more precise than the name of the processor
        then = record.environment.get(name)
        if then != current.get(name):
            return f"was computed with {name} {then}, but here it is {current.get(name)}: a rerun here cannot be compared bit by bit"
    return ""


def _changes(record: Record, used: Mapping[str, Mapping[str, str]]) -> Iterator[Change]:
    numerics = numerics_facts(record.cell["device"], record.cell["threads"], record.cell.get("numerics", "native"))
    if (former := record.environment.get("numerics", numerics)) != numerics:
        yield Change("numerics", _kind(record), digest(former)[:12], digest(numerics)[:12])
    then = {part["role"]: part for part in record.makers if part["role"] != "metric"}
    for role in sorted({*then, *used}):
        old, new = then.get(role, {}).get("source", ""), used.get(role, {}).get("source", "")
        if old != new:
            name = _kind(record) if role in ("core", "scenario") else str(used.get(role, then.get(role, {})).get("name", role))
            yield Change(role, name, old[:12], new[:12])


def _changes_of_rule_only(record: Record, changes: Iterable[Change], cell: CellSpec, catalogue: Catalogue) -> Iterator[Change]:
    """Yield the changes in user code that come only from the new rule, in records whose keys have the current form."""
    then = {part["role"]: part["source"] for part in record.makers if part["role"] != "metric"}
    numerics = record.environment.get("numerics", {})
    if claimed_key(cell, then, record.environment.get("torch", ""), numerics) == record.key:
        for change in changes:
            roots = references(cell, catalogue).get(change.role, ())
            if roots and not is_ours(roots[0]) and former_digest(roots) == then.get(change.role):
                yield change


def _kind(record: Record) -> str:
    return f"{record.scenario.get('level')}, {record.scenario.get('labels', 'single')}, {record.scenario.get('setting')}"


# --- the sample ----------------------------------------------------------------------------------------------------------------------


def choose(candidates: Sequence[Candidate], max_cells: int, seconds: float) -> list[Candidate]:
    """Choose at most ``max_cells`` cells that took at most ``seconds`` in total. Cells that cover additional changes come first, the
    cheapest of them first. The others are spread over methods, levels and scenarios. The choice is deterministic.
    """
    sample: list[Candidate] = []
    met: set[Change] = set()
    spread: Counter[str] = Counter()
    waiting = sorted(candidates, key=lambda c: (c.seconds, c.record.key))
    budget = seconds
    while waiting and len(sample) < max_cells:
        affordable = [c for c in waiting if c.seconds <= budget]
        if not affordable:
            break
        # max() returns the first of several equal items: the cheapest.
        best = max(affordable, key=lambda c: (len(c.changes - met), -sum(spread[s] for s in _strata(c))))
        sample.append(best)
        met |= best.changes
        spread.update(_strata(best))
        budget -= best.seconds
        waiting.remove(best)
    return sample


def _strata(candidate: Candidate) -> list[str]:
    cell = candidate.record.cell
    return [f"method {cell['method']}", f"scenario {cell['scenario']}", f"level {candidate.record.scenario.get('level')}"]


def coverage(candidates: Iterable[Candidate], equal: Iterable[Candidate]) -> list[Coverage]:
    """Count, for each change, the records that it affects and those with identical reruns. Sorted by change."""
    have, shown = (Counter(change for c in group for change in c.changes) for group in (candidates, equal))
    return [Coverage(change=change, records=have[change], shown=shown[change]) for change in sorted(have)]


# --- comparison ----------------------------------------------------------------------------------------------------------------------


def rerun_and_compare(candidate: Candidate, catalogue: Catalogue, scratch: Store) -> list[str]:
    """Rerun a candidate's cell in another store, and :func:`compare` the result with the ``former`` one."""
    from cglsuite.cells.run import run_cell  # imports torch

    cell = _cell(candidate.planned)
    now: Record | None
    try:
        if cell.numerics == process_numerics():
            now = run_cell(cell, catalogue, scratch)
        else:
            now = rerun([candidate.planned], scratch, catalogue, progress=False).get(candidate.planned.key)
    except CglsuiteError as error:
        return [f"it cannot be run: {error}"]
    if now is None:
        return ["the rerun left no record"]
    return compare(candidate.former or candidate.record, now)


def rerun(cells: Sequence[PlannedCell], store: Store, catalogue: Catalogue, **how: Any) -> dict[str, Record]:
    """Run cells in worker processes, with their numerics and an empty store. Return the records by key, with any status.

    Args:
        how: ``workers``, ``limits`` and ``progress`` of :class:`cglsuite.campaigns.executors.base.RunOptions`.
    """
    from cglsuite.campaigns.executors.base import RunOptions
    from cglsuite.campaigns.executors.supervisor import LocalExecutor

    LocalExecutor().run(cells, store, RunOptions(catalogue=catalogue, label="reruns", share_prefixes=False, **how))
    return {key: record for key, record in store.find(planned.key for planned in cells) if record is not None}


def against(candidates: Sequence[Candidate], store: Store, current: Mapping[str, Any]) -> list[Candidate]:
    """Select the candidates for which another store contains a record with the same key and this machine's arithmetic, and set that record
    as their ``former``.

    This compares the code before a change with the code after it on one processor, wherever the records themselves were computed,
    because rounding differs between processors.
    """
    reasons = []
    for candidate in candidates:
        former = store.cached(candidate.record.key)
        if former is None or why_not_comparable(former, _facts_of_rerun(former, current)):
            continue
        if former.environment.get("arithmetic") is not None or former.environment.get("cpu") == current.get("cpu"):
            reasons.append(dataclasses.replace(candidate, former=former))
    return reasons


# --- writing -------------------------------------------------------------------------------------------------------------------------


def rekey(
    candidates: Sequence[Candidate],
    equal: Sequence[Candidate],
    store: Store,
    *,
    date: str,
    versions: Mapping[str, str],
    remove_old: bool = False,
) -> tuple[list[Record], list[tuple[Candidate, str]]]:
    """Write the records that the ``equal`` cells or the former rule cover under their current keys. ``remove_old`` removes the old records.

    Returns:
        The records written, and the candidates left unchanged, with the reason.
    """
    shown = {change for c in equal for change in c.changes}
    rerun = sorted(c.record.key for c in equal)
    written: list[Record] = []
    left: list[tuple[Candidate, str]] = []
    for candidate in candidates:
        open_changes = sorted(candidate.changes - shown)
        if open_changes or not (rerun or candidate.same):
            names = ", ".join(f"{c.role} {c.name}" for c in open_changes) or "the key's form"
            left.append((candidate, f"no rerun covers the changes of: {names}"))
            continue
        lease = store.lease(candidate.planned.key)
        if lease is None:
            left.append((candidate, "another runner is running it"))
            continue
        with lease:
            if reason := _why_not_writable(store, candidate.planned.key):
                left.append((candidate, reason))
                continue
            record = _record_under_new_key(candidate, rerun, date, versions)
            store.put(record)
        written.append(record)
        if remove_old and not any(store.conflicts(candidate.record.key)):  # the cell's other result keeps its key
            store.discard(candidate.record.key)
    return written, left


def _record_under_new_key(candidate: Candidate, rerun: Sequence[str], date: str, versions: Mapping[str, str]) -> Record:
    from cglsuite.cells.records.describe import providers

    old = candidate.record
    entry = {
        "from": old.key,
        "to": candidate.planned.key,
        "date": date,
        "versions": dict(versions),
        "changes": [dataclasses.asdict(change) for change in sorted(candidate.changes)],
        "rerun": list(rerun),
        **({"same_by_former_rule": [dataclasses.asdict(change) for change in sorted(candidate.same)]} if candidate.same else {}),
    }
    provenance = {**old.provenance, **providers(candidate.used), "migrated": [*(old.provenance.get("migrated") or ()), entry]}
    fields = {f.name: getattr(old, f.name) for f in dataclasses.fields(Record) if f.name != "schema"}
    return Record(**{**fields, "key": candidate.planned.key, "provenance": provenance})


def rekey_searches(store: Store, written: Sequence[Record]) -> int:
    """For every search whose cells were all re-keyed, store the outcome under a name derived from the current keys. Return the number of
    these searches.
    """
    from cglsuite.campaigns.search import search_digest

    keys = {entry["from"]: record.key for record in written for entry in record.provenance["migrated"][-1:]}
    moved = 0
    for path in sorted((store.path / "searches").glob("*.json")):
        outcome = store.get_search(path.stem)
        rows = (outcome or {}).get("candidates") or []
        known = {key for row in rows for key in row["keys"] if key}
        if outcome is None or not known or not known <= set(keys):
            continue
        outcome = {**outcome, "candidates": [{**row, "keys": [keys.get(key, key) for key in row["keys"]]} for row in rows]}
        grid = [(row["overrides"], row["keys"]) for row in outcome["candidates"]]
        name = search_digest(outcome["scenario"], outcome["method"], outcome["backbone"], grid, outcome.get("scope", "all"))
        if store.get_search(name) is None:
            store.put_search(name, outcome)
            moved += 1
    return moved
