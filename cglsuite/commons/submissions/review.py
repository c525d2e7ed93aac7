"""The review of a submission: every record is checked, a sample is rerun, and what is accepted is merged into a results folder.

Trust: a submitter controls every byte of a record - digest, key, matrix, times, the code and machine that it names. A digest shows damage,
not authorship. So a review takes nothing from a record as evidence of itself. It recomputes what can be recomputed, reruns a sample that
the submitter cannot foresee, and writes down what it has verified in marks of its own (:mod:`cglsuite.commons.submissions.marks`).
"""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cglsuite import __version__
from cglsuite.base.atomic import write_atomic
from cglsuite.campaigns.migrate import machine
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.commons.merging import Merge, merge
from cglsuite.commons.submissions.checks import Finding, Replanner, checked
from cglsuite.commons.submissions.marks import Level, Mark, write_marks
from cglsuite.commons.submissions.orders import incomplete
from cglsuite.commons.submissions.reruns import Candidate, compared, draw, group_of, may_rerun, rerun
from cglsuite.commons.submissions.staging import stage

if TYPE_CHECKING:
    from cglsuite.cells.engine import Engine
    from cglsuite.host import Catalogue

__all__ = ["Examine", "Options", "Review", "Reviewed", "accept", "review", "write_report"]

SCHEMA = 1
"""Of the report."""
_NEEDED = ("names", "digest", "key", "cell", "bounds", "metrics", "timings", "check", "rerun")
Examine = Callable[[str], Finding]
"""What ``cglsuite check`` says of a method, by its name."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to review.

    Args:
        sample: the number of records to rerun. seed: of the sample; secret until the review is done. tolerance: see
            :func:`cglsuite.commons.submissions.reruns.compared`. workers, timeout_s, progress: of the reruns.
        examine: checks a method; ``None`` leaves the check out, and no record is verified.
    """

    sample: int = 3
    seed: int = field(default_factory=lambda: secrets.randbits(63))
    tolerance: float | None = None
    workers: int = 1
    timeout_s: float | None = None
    progress: bool = False
    examine: Examine | None = None


@dataclass(kw_only=True)
class Reviewed:
    """A file of the submission and what was found about it; without a record if none could be read from it."""

    file: str
    findings: list[Finding]
    record: Record | None = None
    planned: PlannedCell | None = None
    rerun: str = ""

    @property
    def refused(self) -> bool:
        """Whether anything in it cannot be true."""
        return any(finding.verdict == "refused" for finding in self.findings)

    @property
    def level(self) -> Level:
        """Of an accepted record: verified if all checks that a result needs agree."""
        verdicts = {finding.check: finding.verdict for finding in self.findings}
        return "verified" if all(verdicts.get(check) == "verified" for check in _NEEDED) else "unverified"

    @property
    def outcome(self) -> str:
        """``refused``, ``verified`` or ``unverified``; the last two are accepted."""
        return "refused" if self.refused else self.level

    def mark(self) -> Mark:
        """The mark of an accepted record."""
        if self.record is None or self.refused:
            raise ValueError(f"{self.file} was refused: it has no mark")
        reasons = {finding.check: finding.reason for finding in self.findings if finding.verdict in ("unverified", "noted")}
        return Mark(key=self.record.key, digest=self.record.digest, level=self.level, rerun=self.rerun, reasons=reasons)


@dataclass(kw_only=True)
class Review:
    """All that was found about a submission; ``merged`` is what the merge of the accepted records did."""

    identity: str
    submission: Path
    results: Path
    facts: dict[str, Any]
    items: list[Reviewed]
    notes: list[str]
    merged: Merge | None = None

    @property
    def accepted(self) -> list[Reviewed]:
        """Those that were not refused."""
        return [item for item in self.items if not item.refused]

    @property
    def clean(self) -> bool:
        """Whether nothing was refused and everything accepted is in the results folder."""
        return len(self.accepted) == len(self.items) and (self.merged is None or self.merged.clean)

    def to_json(self, *, accepted_only: bool = False) -> dict[str, Any]:
        """The report as JSON types; ``accepted_only``: without a word of what was refused, but its number."""
        shown = self.accepted if accepted_only else self.items
        outcomes = Counter(item.outcome for item in self.items)
        merged = self.merged
        return {
            "report": SCHEMA,
            "review": self.identity,
            "submission": str(self.submission),
            "into": str(self.results),
            **self.facts,
            "summary": {name: outcomes[name] for name in ("verified", "unverified", "refused")},
            "notes": self.notes,
            "merge": None if merged is None else _merge_json(merged),
            "records": [_item_json(item) for item in shown],
        }


def _item_json(item: Reviewed) -> dict[str, Any]:
    record = item.record
    return {
        "file": item.file,
        "key": record.key if record is not None else "",
        "digest": record.digest if record is not None else "",
        "label": record.label if record is not None else "",
        "outcome": item.outcome,
        "rerun": item.rerun,
        "findings": [{"check": f.check, "verdict": f.verdict, "reason": f.reason} for f in item.findings],
    }


def _merge_json(merged: Merge) -> dict[str, Any]:
    return {
        "new": len(merged.new),
        "finished": len(merged.finished),
        "same": merged.same,
        "conflicts": [{"key": one.key, "differences": one.differences, "kept": str(one.kept)} for one in merged.conflicts],
        "held": [{"key": key, "holder": holder} for key, holder in merged.held],
        "unreadable": [{"file": str(one.path), "reason": one.reason} for one in merged.unreadable],
    }


def review(submission: Path, results: Path, catalogue: Catalogue, engine: Engine, options: Options) -> Review:
    """Check every record of ``submission``; nothing is written to ``results``.

    Raises:
        UsageError: there is no submission.
    """
    staged, refusals, notes = stage(submission)
    items = [Reviewed(file=one.file, findings=[Finding(check=one.check, verdict="refused", reason=one.reason)]) for one in refusals]
    replanner = Replanner(catalogue, engine)
    for one in staged:
        findings, planned = checked(one.record, catalogue, replanner)
        items.append(Reviewed(file=one.file, record=one.record, planned=planned, findings=findings))
    here = machine()
    _examine(items, catalogue, engine, options.examine)
    _rerun(items, catalogue, options, here)
    missing = incomplete(item.record for item in items if item.record is not None and not item.refused)
    for item in items:
        if item.record is not None and (reason := missing.get(item.record.key)):
            item.findings.append(Finding(check="orders", verdict="noted", reason=reason))
    now = time.gmtime()
    return Review(
        identity=f"{time.strftime('%Y%m%dT%H%M%SZ', now)}-{secrets.token_hex(4)}",
        submission=submission,
        results=results,
        facts={
            "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", now),
            "cglsuite": __version__,
            "here": here,
            "options": {"sample": options.sample, "seed": options.seed, "tolerance": options.tolerance},
        },
        items=items,
        notes=notes,
    )


def _examine(items: Sequence[Reviewed], catalogue: Catalogue, engine: Engine, examine: Examine | None) -> None:
    """Whether the methods pass their check here; that says something of records by the same source of the method only."""
    found: dict[str, Finding] = {}
    for item in items:
        record, planned = item.record, item.planned
        if record is None or item.refused:
            continue
        method = str(record.cell["method"])
        if planned is None or planned.cell is None:
            finding = Finding(check="check", verdict="unverified", reason="its cell cannot be planned here")
        elif not _same_method(record, engine.sources(planned.cell, catalogue)):
            finding = Finding(check="check", verdict="unverified", reason=f"the installed code of {method} is not that of the record")
        elif examine is None:
            finding = Finding(check="check", verdict="unverified", reason="not asked for")
        else:
            finding = found[method] if method in found else found.setdefault(method, examine(method))
        item.findings.append(finding)


def _same_method(record: Record, used: Mapping[str, Mapping[str, str]]) -> bool:
    stated = {part.get("role"): part.get("source") for part in record.makers}
    return "method" in used and stated.get("method") == used["method"]["source"]


def _rerun(items: Sequence[Reviewed], catalogue: Catalogue, options: Options, here: Mapping[str, Any]) -> None:
    """Rerun the sample, and tell every record what that says of it."""
    able: dict[str, tuple[Reviewed, Candidate]] = {}
    for item in items:
        if item.record is None or item.refused:
            continue
        if item.planned is None:
            item.findings.append(Finding(check="rerun", verdict="unverified", reason="its cell cannot be planned here"))
            continue
        candidate = Candidate(record=item.record, planned=item.planned)
        if reason := may_rerun(candidate):
            item.findings.append(Finding(check="rerun", verdict="unverified", reason=reason))
        else:
            able[item.record.key] = item, candidate
    chosen = draw([candidate for _, candidate in able.values()], options.sample, options.seed)
    with tempfile.TemporaryDirectory(prefix="cglsuite-submit-") as folder:
        how = {"workers": options.workers, "timeout_s": options.timeout_s, "progress": options.progress}
        made = rerun(chosen, Store(folder), catalogue, **how) if chosen else {}
    equal, refuted = Counter[str](), dict[str, str]()
    drawn = {candidate.record.key for candidate in chosen}
    for key in drawn:
        item, candidate = able[key]
        finding = compared(candidate.record, made.get(key), options.tolerance, here)
        item.findings.append(finding)
        if finding.verdict == "verified":
            item.rerun = "bits" if finding.reason == "equal to the bit" else "tolerance"
            equal[group_of(candidate.record)] += 1
        elif finding.verdict == "refused":
            refuted[str(candidate.record.cell["method"])] = key
    for key, (item, candidate) in able.items():
        if key not in drawn:
            item.findings.append(_by_sample(candidate.record, equal, refuted))
            item.rerun = "sample" if item.findings[-1].verdict == "verified" else ""


def _by_sample(record: Record, equal: Mapping[str, int], refuted: Mapping[str, str]) -> Finding:
    """What the reruns of others say of a record that was not drawn."""
    if (other := refuted.get(str(record.cell["method"]))) is not None:
        return Finding(check="rerun", verdict="refused", reason=f"a rerun contradicts {other[:12]}, of the same method")
    if (n := equal.get(group_of(record), 0)) > 0:
        return Finding(check="rerun", verdict="verified", reason=f"{n} of the records that differ from it in their seeds alone")
    return Finding(check="rerun", verdict="unverified", reason="not in the sample, and no record of its group was rerun")


def accept(done: Review) -> Review:
    """Merge the accepted records into the results folder, and write their marks and the report of them beside.

    Nothing is written if nothing was accepted. Records that are in the results folder already only get their marks.

    Raises:
        StoreError: the folder cannot be written; what was copied is kept and has no marks.
    """
    if not done.accepted:
        return done
    target = Store(done.results)
    if not (target.path.exists() and done.submission.samefile(target.path)):
        with tempfile.TemporaryDirectory(prefix="cglsuite-submit-") as folder:
            accepted = Store(folder, quarantine=False)
            for item in done.accepted:
                if item.record is not None:
                    path = accepted.record_path(item.record.key)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(item.record.to_text(), encoding="utf-8")
            (done.merged,) = merge([accepted], target)
        _tell(done)
    write_marks(target.path, done.identity, done.facts, [item.mark() for item in done.accepted])
    return done


def _tell(done: Review) -> None:
    """What the merge found, as findings of the records."""
    merged = done.merged
    if merged is None:
        return
    reasons = {
        one.key: f"the results folder has another result ({one.differences[0]}): kept in {Path(one.kept).name}" for one in merged.conflicts
    }
    reasons |= {key: f"a runner is at this cell in the results folder ({holder}): submit again later" for key, holder in merged.held}
    for item in done.accepted:
        if item.record is not None and item.record.key in reasons:
            item.findings.append(Finding(check="merge", verdict="noted", reason=reasons[item.record.key]))


def write_report(folder: Path, stem: str, report: Mapping[str, Any], page: str, option: str) -> list[Path]:
    """Write a report as ``STEM.json`` and ``STEM.html``."""
    files = {folder / f"{stem}.json": json.dumps(report, indent=1, sort_keys=True) + "\n", folder / f"{stem}.html": page}
    for path, text in files.items():
        write_atomic(path, text.encode(), option=option)
    return list(files)
