"""A sample of a submission, run again here: to the bit, or within a tolerance that the receiver states.

The sample is drawn with a seed that the submitter cannot know, over groups of records that differ in their seeds alone, so that no group
can count on being left out. Nothing in a record decides how likely it is to be drawn, its stated run time included.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cglsuite.base.errors import CglsuiteError
from cglsuite.base.hashing import canonical
from cglsuite.campaigns.migrate import elsewhere
from cglsuite.cells.device import check_device
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.records.comparison import compare
from cglsuite.cells.records.record import Matrix, Record
from cglsuite.commons.submissions.checks import Finding

if TYPE_CHECKING:
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue

__all__ = ["Candidate", "compared", "draw", "group_of", "may_rerun", "rerun"]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A record that passed all other checks, and its cell as planned here."""

    record: Record
    planned: PlannedCell


def group_of(record: Record) -> str:
    """What records share that one rerun speaks for: everything but their seeds, and the code and machine class that made them."""
    makers = [(part.get("role"), part.get("source")) for part in record.makers if part.get("role") != "metric"]
    return canonical([{**record.cell, "seeds": None}, sorted(map(str, makers)), record.environment.get("torch")])


def may_rerun(candidate: Candidate) -> str:
    """Why a record cannot be rerun here; empty if it can. Whether data are absent shows when it is tried."""
    record, planned = candidate.record, candidate.planned
    if planned.key != record.key:
        return "made by other code than is installed here"
    try:
        check_device(record.cell["device"])
    except CglsuiteError as error:
        return f"made on {record.cell['device']}, which this machine does not have ({error})"
    return ""


def draw(candidates: Sequence[Candidate], most: int, seed: int) -> list[Candidate]:
    """At most ``most`` of the candidates at random: one of every group before a second one of any."""
    source = random.Random(seed)
    groups: dict[str, list[Candidate]] = {}
    for candidate in sorted(candidates, key=lambda one: one.record.key):
        groups.setdefault(group_of(candidate.record), []).append(candidate)
    for members in groups.values():
        source.shuffle(members)
    rounds = []
    for turn in range(max(map(len, groups.values()), default=0)):
        row = [members[turn] for members in groups.values() if turn < len(members)]
        source.shuffle(row)
        rounds += row
    return rounds[:most]


def compared(record: Record, now: Record | None, tolerance: float | None, here: Mapping[str, Any]) -> Finding:
    """What a rerun says of a record.

    Args:
        now: the record of the rerun; ``None`` if there is none. tolerance: the largest difference of two entries of the matrix that counts
            as equal, in the unit of performance; ``None``: bit for bit. here: :func:`cglsuite.campaigns.migrate.machine`.
    """
    if now is None or not now.done:
        reason = f"the rerun ended as {now.status}: {now.reason}" if now is not None else "the rerun left no record"
        return Finding(check="rerun", verdict="unverified", reason=reason)
    differences = compare(record, now, ("submitted", "here"))
    if not differences:
        return Finding(check="rerun", verdict="verified", reason="equal to the bit")
    if other := [name for name in ("data", "tasks") if _stated(record, name) != _stated(now, name)]:
        reason = f"{' and '.join(other)} differ: it was computed on other data, or on another division into tasks"
        return Finding(check="rerun", verdict="refused", reason=reason)
    off = max(_apart(getattr(record, name), getattr(now, name)) for name in ("matrix", "validation_matrix"))
    if tolerance is not None and off <= tolerance:
        return Finding(check="rerun", verdict="verified", reason=f"within {tolerance:g}: entries differ by at most {off:.3g}")
    apart = f"{differences[0]}; entries differ by up to {off:.3g}"
    if tolerance is not None:
        return Finding(check="rerun", verdict="refused", reason=f"{apart}, more than the tolerance of {tolerance:g}")
    where = elsewhere(record, here)
    if not where and record.cell["device"] == "cpu" and record.environment.get("cpu") == here.get("cpu"):
        return Finding(check="rerun", verdict="refused", reason=f"{apart}, although torch and processor are the same as here")
    where = where or f"another processor ({record.environment.get('cpu')}) or a GPU rounds differently"
    return Finding(check="rerun", verdict="unverified", reason=f"{apart}; {where}. State a --tolerance to judge it")


def _stated(record: Record, name: str) -> Any:
    return record.provenance.get("data") if name == "data" else record.tasks


def _apart(one: Matrix, other: Matrix) -> float:
    """The largest difference of two entries; infinite where one of them has an entry and the other has none."""
    if len(one) != len(other) or any(len(a) != len(b) for a, b in zip(one, other, strict=True)):
        return math.inf
    pairs = [pair for rows in zip(one, other, strict=True) for pair in zip(*rows, strict=True)]
    if any((a is None) != (b is None) for a, b in pairs):
        return math.inf
    return max((abs(a - b) for a, b in pairs if a is not None and b is not None), default=0.0)


def rerun(candidates: Iterable[Candidate], store: Store, catalogue: Catalogue, **how: Any) -> dict[str, Record]:
    """Run cells in worker processes into an empty store; the records by key, whatever their status.

    Args:
        how: ``workers``, ``timeout_s`` and ``progress`` of :class:`cglsuite.campaigns.executors.base.RunOptions`.
    """
    from cglsuite.campaigns.executors.base import RunOptions
    from cglsuite.campaigns.executors.local import LocalExecutor

    chosen = [candidate.planned for candidate in candidates]
    options = RunOptions(catalogue=catalogue, label="reruns", share_prefixes=False, **how)
    LocalExecutor().run(chosen, store, options)
    return {key: record for key, record in store.find(planned.key for planned in chosen) if record is not None}
