"""The review of a submission: every record is checked, a sample is rerun, and accepted records are merged into a results folder.

Trust: a submitter controls every byte of a record, including its digest, key, matrix and times, and the code and machine that it names. A
digest detects damage but does not prove authorship. A review therefore never trusts a record's statements about itself. It recomputes
everything that can be recomputed, reruns a sample that the submitter cannot predict, and writes its own marks of what it has verified
(:mod:`cglsuite.commons.submissions.staging`).
"""

from __future__ import annotations

import json
import math
import random
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from cglsuite import __version__
from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import CglsuiteError
from cglsuite.base.hashing import canonical
from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.campaigns.migrate import machine, rerun, why_not_comparable
from cglsuite.campaigns.reference.values import Paper, paper_of
from cglsuite.cells.device import check_device
from cglsuite.cells.keys import sources
from cglsuite.cells.plan import Limits, PlannedCell
from cglsuite.cells.records.comparison import compare, data_differences
from cglsuite.cells.records.record import Matrix, Record
from cglsuite.cells.storage.store import Store
from cglsuite.commons.merging import Merge, merge, refuse_inside
from cglsuite.commons.submissions.checks import Finding, Replanner, checked
from cglsuite.commons.submissions.staging import Level, Mark, stage, write_marks
from cglsuite.host import Catalogue
from cglsuite.reports.kit.tables import definition_list, framed, label, number, words
from cglsuite.reports.kit.text import badge, notice, tile
from cglsuite.reports.rendering.page import Page, asset, document_html
from cglsuite.reports.site.index import part

SCHEMA = 1
"""The schema of the report."""
_NEEDED = ("names", "digest", "key", "cell", "bounds", "metrics", "timings", "check", "rerun")
Examine = Callable[[str], Finding]
"""A function that checks a method by name and returns the finding of ``cglsuite check``."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a review.

    Args:
        sample: the number of records to rerun. seed: the seed for drawing the sample, secret until the review is done. tolerance: see
            :func:`cglsuite.commons.submissions.review.compared`. workers, timeout_s, progress: options of the reruns.
        examine: a function that checks a method. With ``None`` the check is skipped, and no record is verified.
    """

    sample: int = 3
    seed: int = field(default_factory=lambda: secrets.randbits(63))
    tolerance: float | None = None
    workers: int = 1
    timeout_s: float | None = None
    progress: bool = False
    examine: Examine | None = None


@dataclass(kw_only=True)
class ReviewedFile:
    """A file of the submission with its findings, and its record if one could be read."""

    file: str
    findings: list[Finding]
    record: Record | None = None
    planned: PlannedCell | None = None
    rerun: str = ""

    @property
    def refused(self) -> bool:
        """Whether a check refused the file."""
        return any(finding.verdict == "refused" for finding in self.findings)

    @property
    def level(self) -> Level:
        """The level of an accepted record: verified if it passes all required checks, otherwise unverified."""
        verdicts = {finding.check: finding.verdict for finding in self.findings}
        return "verified" if all(verdicts.get(check) == "verified" for check in _NEEDED) else "unverified"

    @property
    def outcome(self) -> str:
        """``refused``, ``verified`` or ``unverified``. The last two mean that the record was accepted."""
        return "refused" if self.refused else self.level

    def mark(self) -> Mark:
        """Return the mark of an accepted record."""
        if self.record is None or self.refused:
            raise ValueError(f"{self.file} was refused, so it has no mark")
        reasons = {finding.check: finding.reason for finding in self.findings if finding.verdict in ("unverified", "noted")}
        return Mark(key=self.record.key, digest=self.record.digest, level=self.level, rerun=self.rerun, reasons=reasons)


@dataclass(kw_only=True)
class Review:
    """All findings about a submission. ``merged`` is the outcome of merging the accepted records."""

    identity: str
    submission: Path
    results: Path
    facts: dict[str, Any]
    items: list[ReviewedFile]
    notes: list[str]
    merged: Merge | None = None

    @property
    def accepted(self) -> list[ReviewedFile]:
        """The items that were not refused."""
        return [item for item in self.items if not item.refused]

    @property
    def clean(self) -> bool:
        """Whether nothing was refused and all accepted records are in the results folder."""
        return len(self.accepted) == len(self.items) and (self.merged is None or self.merged.clean)

    def to_json(self, *, accepted_only: bool = False) -> dict[str, Any]:
        """Return the report as JSON-serialisable values. With ``accepted_only``, refused records are counted but not listed."""
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


def _item_json(item: ReviewedFile) -> dict[str, Any]:
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
        "conflicts": [{"key": problem.key, "differences": problem.differences, "kept": str(problem.kept)} for problem in merged.conflicts],
        "held": [{"key": key, "holder": holder} for key, holder in merged.held],
        "unreadable": [{"file": str(problem.path), "reason": problem.reason} for problem in merged.unreadable],
    }


def review(submission: Path, results: Path, catalogue: Catalogue, options: Options) -> Review:
    """Check every record of ``submission``, without writing to ``results``.

    Raises:
        UsageError: the submission does not exist, or ``results`` is inside the folders of its records.
    """
    refuse_inside(submission, results)
    staged, refusals, notes = stage(submission)
    items = [
        ReviewedFile(file=refusal.file, findings=[Finding(check=refusal.check, verdict="refused", reason=refusal.reason)])
        for refusal in refusals
    ]
    replanner = Replanner(catalogue)
    for candidate in staged:
        findings, planned = checked(candidate.record, catalogue, replanner)
        items.append(ReviewedFile(file=candidate.file, record=candidate.record, planned=planned, findings=findings))
    here = machine()
    _examine(items, catalogue, options.examine)
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


def _examine(items: Sequence[ReviewedFile], catalogue: Catalogue, examine: Examine | None) -> None:
    """Check whether the methods pass their check here. This applies only to records computed with the same source code of the method."""
    findings: dict[str, Finding] = {}
    for item in items:
        record, planned = item.record, item.planned
        if record is None or item.refused:
            continue
        method = str(record.cell["method"])
        if planned is None or planned.cell is None:
            finding = Finding(check="check", verdict="unverified", reason="its cell cannot be planned here")
        elif not _same_method(record, sources(planned.cell, catalogue)):
            finding = Finding(check="check", verdict="unverified", reason=f"the installed code of {method} is not that of the record")
        elif examine is None:
            finding = Finding(check="check", verdict="unverified", reason="this review did not run cglsuite check")
        else:
            finding = findings[method] if method in findings else findings.setdefault(method, examine(method))
        item.findings.append(finding)


def _same_method(record: Record, used: Mapping[str, Mapping[str, str]]) -> bool:
    recorded = {part.get("role"): part.get("source") for part in record.makers}
    return "method" in used and recorded.get("method") == used["method"]["source"]


def _rerun(items: Sequence[ReviewedFile], catalogue: Catalogue, options: Options, current: Mapping[str, Any]) -> None:
    """Rerun the sample, and add a finding to every record."""
    able: dict[str, tuple[ReviewedFile, Candidate]] = {}
    for item in items:
        if item.record is None or item.refused:
            continue
        if item.planned is None:
            item.findings.append(Finding(check="rerun", verdict="unverified", reason="its cell cannot be planned here"))
            continue
        candidate = Candidate(record=item.record, planned=item.planned)
        if reason := why_not_rerunnable(candidate):
            item.findings.append(Finding(check="rerun", verdict="unverified", reason=reason))
        else:
            able[item.record.key] = item, candidate
    sample = draw([candidate for _, candidate in able.values()], options.sample, options.seed)
    with tempfile.TemporaryDirectory(prefix="cglsuite-submit-") as folder:
        how = {"workers": options.workers, "limits": Limits(timeout_s=options.timeout_s), "progress": options.progress}
        reruns = rerun([candidate.planned for candidate in sample], Store(folder, read=()), catalogue, **how) if sample else {}
    equal, refuted = Counter[str](), dict[str, str]()
    drawn = {candidate.record.key for candidate in sample}
    for key in drawn:
        item, candidate = able[key]
        now = reruns.get(key)
        finding = compared(candidate.record, now, options.tolerance, current if now is None else now.environment)
        item.findings.append(finding)
        if finding.verdict == "verified":
            item.rerun = "bits" if finding.reason == "bit-identical" else "tolerance"
            equal[group_of(candidate.record)] += 1
        elif finding.verdict == "refused":
            refuted[str(candidate.record.cell["method"])] = key
    for key, (item, candidate) in able.items():
        if key not in drawn:
            item.findings.append(_by_sample(candidate.record, equal, refuted))
            item.rerun = "sample" if item.findings[-1].verdict == "verified" else ""


def _by_sample(record: Record, equal: Mapping[str, int], refuted: Mapping[str, str]) -> Finding:
    """Return the finding for a record that was not drawn, based on the reruns of other records."""
    if (other := refuted.get(str(record.cell["method"]))) is not None:
        return Finding(check="rerun", verdict="refused", reason=f"a rerun contradicts {other[:12]}, of the same method")
    if (n := equal.get(group_of(record), 0)) > 0:
        return Finding(check="rerun", verdict="verified", reason=f"{n} of the records that differ from it only in their seeds")
    return Finding(check="rerun", verdict="unverified", reason="not in the sample, and no record of its group was rerun")


def accept(done: Review) -> Review:
    """Merge the accepted records into the results folder, and write their marks and the report.

    Nothing is written if no record was accepted. Records that are already in the results folder only receive their marks.

    Raises:
        StoreError: the folder cannot be written. Records that were already copied stay there, without marks.
    """
    if not done.accepted:
        return done
    target = Store(done.results, read=())
    if not (target.path.exists() and done.submission.samefile(target.path)):
        with tempfile.TemporaryDirectory(prefix="cglsuite-submit-") as folder:
            accepted = Store(folder, quarantine=False, read=())
            for item in done.accepted:
                if item.record is not None:
                    path = accepted.record_path(item.record.key)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(item.record.to_text(), encoding="utf-8")
            (done.merged,) = merge([accepted], target)
        _add_merge_findings(done)
    write_marks(target.path, done.identity, done.facts, [item.mark() for item in done.accepted])
    return done


def _add_merge_findings(done: Review) -> None:
    """Add the merge's outcomes to the findings of the records."""
    merged = done.merged
    if merged is None:
        return
    reasons = {
        conflict.key: f"the results folder has another result ({conflict.differences[0]}"
        + (", which other arithmetic explains" if conflict.other_arithmetic else "")
        + f"): kept in {Path(conflict.kept).name}"
        for conflict in merged.conflicts
    }
    reasons |= {key: f"a runner in the results folder is computing this cell ({holder}): submit again later" for key, holder in merged.held}
    for item in done.accepted:
        if item.record is not None and item.record.key in reasons:
            item.findings.append(Finding(check="merge", verdict="noted", reason=reasons[item.record.key]))


def write_report(folder: Path, stem: str, report: Mapping[str, Any], page: str, option: str) -> list[Path]:
    """Write a report as ``STEM.json`` and ``STEM.html``."""
    files = {folder / f"{stem}.json": json.dumps(report, indent=1, sort_keys=True) + "\n", folder / f"{stem}.html": page}
    for path, text in files.items():
        write_atomic(path, text.encode(), option=option)
    return list(files)


# Rerun a sample of a submission: results must be bit-identical, or within a tolerance set by the reviewer.
# The sample is drawn with a seed that the submitter cannot know, over groups of records that differ in their seeds alone, so that no group
# can count on being left out. Nothing in a record decides how likely it is to be drawn, its stated run time included.


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A record that passed all other checks, with its cell as planned here."""

    record: Record
    planned: PlannedCell


def group_of(record: Record) -> str:
    """Return the group that one rerun represents. Records of a group share everything except their seeds, including code and class of
    machine.
    """
    makers = [(part.get("role"), part.get("source")) for part in record.makers if part.get("role") != "metric"]
    return canonical([{**record.cell, "seeds": None}, sorted(map(str, makers)), record.environment.get("torch")])


def why_not_rerunnable(candidate: Candidate) -> str:
    """Return why a record cannot be rerun here, or an empty string. Missing data are only detected by the rerun itself."""
    record, planned = candidate.record, candidate.planned
    if planned.key != record.key:
        return "computed with different code from the code installed here"
    try:
        check_device(record.cell["device"])
    except CglsuiteError as error:
        return f"computed on {record.cell['device']}, which this machine does not have ({error})"
    return ""


def draw(candidates: Sequence[Candidate], max_records: int, seed: int) -> list[Candidate]:
    """Draw at most ``max_records`` candidates at random, one from every group before a second from any group."""
    source = random.Random(seed)
    groups: dict[str, list[Candidate]] = {}
    for candidate in sorted(candidates, key=lambda drawn_item: drawn_item.record.key):
        groups.setdefault(group_of(candidate.record), []).append(candidate)
    for members in groups.values():
        source.shuffle(members)
    rounds = []
    for turn in range(max(map(len, groups.values()), default=0)):
        row = [members[turn] for members in groups.values() if turn < len(members)]
        source.shuffle(row)
        rounds += row
    return rounds[:max_records]


def compared(record: Record, now: Record | None, tolerance: float | None, current: Mapping[str, Any]) -> Finding:
    """Compare a record with its rerun, and return the finding.

    Args:
        now: the record of the rerun, or ``None`` if it left no record. tolerance: the largest difference between two matrix entries that
            count as equal, in the unit of performance; with ``None``, entries must be bit-identical. current: the environment of the
            rerun, as its record states it, or :func:`cglsuite.campaigns.migrate.machine`. Bit-identical results are expected only if both
            have the same arithmetic.
    """
    if now is None or not now.done:
        reason = f"the rerun ended as {now.status}: {now.reason}" if now is not None else "the rerun left no record"
        return Finding(check="rerun", verdict="unverified", reason=reason)
    differences = compare(record, now, ("submitted", "here"))
    if not differences:
        return Finding(check="rerun", verdict="verified", reason="bit-identical")
    if other := data_differences(record, now):
        reason = f"{' and '.join(other)} differ: it was computed on other data, or on another division into tasks"
        return Finding(check="rerun", verdict="refused", reason=reason)
    off = max(_apart(getattr(record, name), getattr(now, name)) for name in ("matrix", "validation_matrix"))
    apart, where = f"{differences[0]}; entries differ by up to {off:.3g}", why_not_comparable(record, current)
    if tolerance is not None and off <= tolerance:
        reason = f"within {tolerance:g}: entries differ by at most {off:.3g}" + (f"; it {where}" if where else "")
        return Finding(check="rerun", verdict="verified", reason=reason)
    if tolerance is not None:
        return Finding(check="rerun", verdict="refused", reason=f"{apart}, more than the tolerance of {tolerance:g}")
    stated = "arithmetic" if record.environment.get("arithmetic") is not None else "cpu"
    if not where and record.cell["device"] == "cpu" and record.environment.get(stated) == current.get(stated):
        name = {"arithmetic": "arithmetic", "cpu": "processor"}[stated]
        return Finding(check="rerun", verdict="refused", reason=f"{apart}, although torch and {name} are the same as here")
    where = where or f"another processor ({record.environment.get('cpu')}) or a GPU rounds differently"
    return Finding(check="rerun", verdict="unverified", reason=f"{apart}; {where}. Set --tolerance to decide")


def _apart(first: Matrix, second: Matrix) -> float:
    """Return the largest difference between entries, or infinity if an entry exists in only one of the matrices."""
    if len(first) != len(second) or any(len(a) != len(b) for a, b in zip(first, second, strict=True)):
        return math.inf
    pairs = [pair for rows in zip(first, second, strict=True) for pair in zip(*rows, strict=True)]
    if any((a is None) != (b is None) for a, b in pairs):
        return math.inf
    return max((abs(a - b) for a, b in pairs if a is not None and b is not None), default=0.0)


# Which repetitions a submission leaves out: a mean over chosen seeds is biased, however true every record is.

_AXES = ("order", "split", "init")
_MAX_NAMED = 8
Place = tuple[int, int, int]


def incomplete(records: Iterable[Record]) -> dict[str, str]:
    """Describe, by key, which repetitions are missing from each record's group. Records of complete groups are omitted.

    A repetition is missing if another method of the submission has it in the same preset, if the protocol's paper has it, or if it is a
    gap in a range of seeds.
    """
    groups: dict[tuple[str, str, str, str], dict[Place, str]] = {}
    for record in records:
        cell = record.cell
        group = (cell["preset"], cell["backbone"], cell["method"], canonical(cell["configuration"]))
        groups.setdefault(group, {})[_place(cell["seeds"])] = record.key
    beside: dict[tuple[str, str], set[Place]] = {}
    for (preset, backbone, *_), places in groups.items():
        beside.setdefault((preset, backbone), set()).update(places)
    missing: dict[str, str] = {}
    for (preset, backbone, *_), places in groups.items():
        paper = None if "+" in preset else paper_of(preset.partition("@")[2])
        reasons = list(_reasons(set(places), beside[preset, backbone], paper))
        missing |= dict.fromkeys(places.values(), "; ".join(reasons)) if reasons else {}
    return missing


def _place(seeds: Mapping[str, int]) -> Place:
    return seeds["order"], seeds["split"], seeds["init"]


def _reasons(places: set[Place], beside: set[Place], paper: Paper | None) -> Iterable[str]:
    if left := beside - places:
        yield f"{len(left)} of {len(beside)} repetitions that other methods of the submission have are missing ({_listed(left)})"
    if paper is not None and not places >= (protocol := _repetitions(paper)):
        left = protocol - places
        yield f"{len(left)} of the {len(protocol)} repetitions of {paper.name} are missing ({_listed(left)})"
    for axis, name in enumerate(_AXES):
        seeds = sorted({place[axis] for place in places})
        gaps = sorted(set(range(seeds[0], seeds[-1])) - set(seeds)) if seeds[-1] - seeds[0] < 10 * len(seeds) else []
        if gaps:
            yield f"{name} seeds {', '.join(map(str, gaps[:_MAX_NAMED]))} are missing between {seeds[0]} and {seeds[-1]}"


def _repetitions(paper: Paper) -> set[Place]:
    """Return the seeds of a paper's repetitions, whose lists are combined element by element."""
    return {_place({axis: paper.seeds[axis][n % len(paper.seeds[axis])] if axis in paper.seeds else 0 for axis in _AXES})
            for n in range(paper.max_repeats)}  # fmt: skip


def _listed(places: Iterable[Place]) -> str:
    texts = ["/".join(map(str, place)) for place in sorted(places)]
    return "order/split/init " + ", ".join(texts[:_MAX_NAMED]) + (" ..." if len(texts) > _MAX_NAMED else "")


_BADGES = {"verified": "good", "unverified": "note", "noted": "note", "refused": "bad"}
_MAX_ROWS = 2000
_CHECKS = {
    "file": "a regular file of bounded size that is named after its key",
    "schema": "every field has its type, and this version knows the schema",
    "digest": "the content matches its digest",
    "names": "names are valid, and no text controls a terminal or hides other text",
    "status": "the cell has finished",
    "duplicates": "one result per cell",
    "key": "the key follows from the names, settings and seeds of the record",
    "cell": "the shown preset and the switches of the scenario follow from the settings",
    "bounds": "every entry of the matrix is possible",
    "metrics": "the metrics follow from the matrix",
    "timings": "times and sizes are plausible, but they cannot be verified",
    "check": "the method passes cglsuite check here",
    "rerun": "this record, or one that differs from it only in its seeds, was rerun here with the same result",
    "orders": "no repetition is missing",
    "merge": "the results folder has no other result of the cell",
}


def submission_html(report: Mapping[str, Any]) -> str:
    """Render a report as an HTML page (see :meth:`cglsuite.commons.submissions.review.Review.to_json`)."""
    records: Sequence[Mapping[str, Any]] = report["records"]
    summary = report["summary"]
    options = report["options"]
    facts: dict[Content, Content] = {
        "submission": report["submission"],
        "into": report["into"],
        "reviewed": f"{report['when']}, by cglsuite {report['cglsuite']}",
        "on": "; ".join(f"{name} {value}" for name, value in report["here"].items() if value is not None),
        "reruns": f"a sample of {options['sample']}, drawn with seed {options['seed']}; "
        + ("bit-identical matrices" if options["tolerance"] is None else f"entries of the matrix within {options['tolerance']:g}"),
    }
    tiles = [tile(summary[name], name) for name in ("verified", "unverified", "refused")]
    head = element(
        "header",
        element("h1", "Report on a submission"),
        element("ul", *tiles, class_="tiles"),
        definition_list(facts.items()),
        *(notice(text) for text in report["notes"]),
    )
    parts = [head, part("checks", "What was checked", _checks(records)), part("records", "Record by record", _records(records))]
    return document_html(Page(title="Report on a submission", footer=(f"Review {report['review']}",)), join(parts), css=asset("site.css"))


def _checks(records: Iterable[Mapping[str, Any]]) -> Fragment:
    counts: dict[str, Counter[str]] = {}
    for record in records:
        for finding in record["findings"]:
            counts.setdefault(finding["check"], Counter())[finding["verdict"]] += 1
    columns = [
        label("check", lambda row: row[0]),
        *(number(verdict, partial(_counted, verdict=verdict), zero=False) for verdict in _BADGES),
        words("what it says", lambda row: _CHECKS.get(row[0], ""), "long"),
    ]
    return framed(counts.items(), columns)


def _counted(row: tuple[str, Counter[str]], verdict: str) -> int:
    return row[1][verdict]


def _records(records: Sequence[Mapping[str, Any]]) -> Fragment:
    """Return a table with one row per record, refused records first, and every finding that needs attention."""
    order = list(_BADGES)[::-1]
    shown = sorted(records, key=lambda record: order.index(record["outcome"]))[:_MAX_ROWS]
    left = len(records) - len(shown)
    caption = f"The first {_MAX_ROWS:,} of {len(records):,} records; report.json has them all." if left else None
    columns = [
        label("record", lambda record: record["label"] or "no record"),
        words("outcome", lambda record: badge(record["outcome"], _BADGES[record["outcome"]])),
        words("rerun", lambda record: record["rerun"] or "–", "nowrap"),
        words("file", lambda record: element("code", record["file"]), "long"),
        words("findings", _findings, "long"),
    ]
    return framed(shown, columns, caption)


def _findings(record: Mapping[str, Any]) -> Fragment:
    findings = [finding for finding in record["findings"] if finding["verdict"] != "verified"]
    badges = (
        (badge(finding["check"], _BADGES[finding["verdict"]]), f" {finding['reason']}" if finding["reason"] else None)
        for finding in findings
    )
    return join(element("div", *content) for content in badges)
