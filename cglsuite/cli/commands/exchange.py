"""Commands that exchange records: ``merge``, ``publish``, ``pull`` and ``submit``.

``cglsuite submit STORE --into RESULTS`` reviews the records of a third party and accepts those that pass; the others do not review records.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cglsuite import __version__
from cglsuite.base.errors import CglsuiteError, UsageError
from cglsuite.base.inputs import MAX_PROCESSES, MAX_SEED, read_regular
from cglsuite.base.markup import file_size, several
from cglsuite.cli.options import FAILED, FilePath, FolderPath, Real, Seconds, Session, Whole, files_options, pass_session, quiet_option
from cglsuite.cli.output import echo, print_json, table

if TYPE_CHECKING:
    from cglsuite.cells.storage.packed import Problem
    from cglsuite.commons.merging import Conflict, Merge
    from cglsuite.commons.submissions.checks import Finding
    from cglsuite.commons.submissions.review import Review
    from cglsuite.host import Catalogue


_log = logging.getLogger(__name__)


@click.command()
@click.argument("stores", metavar="STORE...", nargs=-1, required=True, type=FolderPath())
@click.option(
    "--store",
    "--into",
    "into",
    metavar="STORE",
    type=FolderPath(),
    help="Merge into this new or existing store.  [default: the first]",
)
@click.option("--plan", "--dry-run", "plan", is_flag=True, help="Print what would be done without writing anything.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def merge(stores: Sequence[Path], into: Path | None, plan: bool, as_json: bool) -> int:
    """Merge the records of all STOREs into the first one, or into --into.

    A key identifies the same cell everywhere, so the result is a union by key. A finished record takes precedence over an unfinished one,
    and equal results give one record. If two finished records of a cell differ, the target keeps its own and stores the other in its folder
    conflicts/. Both are reported with CPU, arithmetic, torch version and data hash. If their arithmetic differs too, both are correct,
    since results are bit-identical only if key and arithmetic agree. Sources are only read. Unreadable files are reported and left in
    place. An interrupted merge can be repeated.

    Exit status: 0 everything was merged; 1 results with the same arithmetic differ, a file cannot be read, or a runner holds a cell; 2
    invalid request. """  # fmt: skip
    from cglsuite.cells.storage.store import Store
    from cglsuite.commons.merging import merge as merged

    if into is None and len(stores) < 2:
        raise UsageError("expected two or more stores, or --into STORE: cglsuite merge A B merges the records of B into A")
    target = Store(stores[0] if into is None else into, quarantine=not plan, read=())
    if into is None and not target.path.is_dir():
        raise UsageError(f"there is no store at {target.path}: name the folder that contains cells/, or a new one with --into")
    sources = [Store(path, quarantine=False, read=()) for path in (stores[1:] if into is None else stores)]
    done = merged(sources, target, plan=plan)
    if as_json:
        print_json({"into": str(target.path), "plan": plan, "sources": [_json(merged) for merged in done]})
    else:
        _print(done, target.path, plan)
    _log_problems(done)
    return 0 if all(merged.clean for merged in done) else FAILED


@click.command()
@click.argument("store_path", metavar="STORE", type=FolderPath())
@click.argument("url", metavar="DIR|s3://BUCKET/FOLDER")
@click.option("--curves", is_flag=True, help="Also publish curves and fingerprints, which are several times the size of all records.")
@quiet_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def publish(store_path: Path, url: str, curves: bool, quiet: bool, as_json: bool) -> int:
    """Publish the records in STORE to a folder or bucket, from which others can pull them.

    Records that are not published yet are written to shards of many records, each named by the digest of its content, and added to the
    manifest, whose entries never change. Therefore, publishing again writes only records that are new or have finished since, several users
    can publish to the same place at the same time, and an interrupted command can be repeated. The rules are those of `cglsuite merge`: if
    two finished records of a cell differ, both are published and reported. Search outcomes are also published, curves only with --curves,
    and checkpoints never. Records with an earlier schema are converted to the current one. STORE can itself be a publication, which is then
    copied to DIR.

    Buckets require an extra: python -m pip install 'cglsuite[s3]'. Credentials and the server address are read from the usual AWS settings
    (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ...).

    Exit status: 0 everything was published; 1 results with the same arithmetic differ, or a file cannot be read or written; 2 invalid
    request. """  # fmt: skip
    from cglsuite.cells.storage.store import Store
    from cglsuite.commons.exchange import publish as published

    with _bar(quiet) as progress:
        done = published(Store(store_path, quarantine=False, read=()), url, curves=curves, progress=progress)
    facts = {"records": done.records, "shards": done.shards, "curves": done.curves, "bytes": done.written_bytes, "entry": done.entry}
    if as_json:
        print_json({"store": str(store_path), "url": _without_credentials(url), **facts, "merge": _json(done.merge)})
    else:
        what = (
            f"{several(done.records, 'record')} in {several(done.shards, 'shard')}, "
            + (f"curves of {several(done.curves, 'record')}, " if done.curves else "")
            + file_size(done.written_bytes)
            if done.entry
            else "nothing is new"
        )
        echo(f"Published to {_without_credentials(url)}: {what}")
        _print_counts([done.merge])
        _print_conflicts([done.merge])
    _log_problems([done.merge], apart="both are published")
    return 0 if done.merge.clean else FAILED


@click.command()
@click.argument("url", metavar="URL")
@click.option(
    "--store",
    "--into",
    "into",
    metavar="STORE",
    type=FolderPath(),
    help="Store to pull into.  [default: $CGLSUITE_STORE, else ./.cglsuite]",
)
@quiet_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def pull(url: str, into: Path | None, quiet: bool, as_json: bool) -> int:
    """Pull published records into a new or existing store from a folder, s3://, http:// or https://.

    Copies only the shards that the store does not have, and verifies the digest of each shard and the digest, schema and bounds of every
    record. Then `cglsuite run`, `status`, `results` and `report` use the records as if they had been computed here, without needing any
    data. The rules are those of `cglsuite merge`: finished records take precedence over unfinished ones, and if two finished ones differ,
    the store keeps its own and stores the other in its folder conflicts/. An interrupted pull can be repeated. No code from the remote side
    is executed.

    Exit status: 0 everything was pulled; 1 results with the same arithmetic differ, or a shard or an entry cannot be used; 2 invalid
    request. """  # fmt: skip
    from cglsuite.cells.storage.store import Store
    from cglsuite.commons.exchange import pull as pulled

    store = Store(into, read=())
    with _bar(quiet) as progress:
        done = pulled(url, store, progress=progress)
    if as_json:
        facts = {"shards": done.shards, "bytes": done.read_bytes, "entries": done.entries, "faults": _problems_json(done.faults)}
        print_json({"store": str(store.path), "url": _without_credentials(url), **facts, "merge": _json(done.merge)})
    else:
        what = f"{several(done.shards, 'shard')}, {file_size(done.read_bytes)}" if done.shards else "nothing is new"
        echo(f"Pulled into {store.path}: {what}")
        if done.shards:
            _print_counts([done.merge])
            _print_conflicts([done.merge])
    _log_problems([done.merge])
    for fault in done.faults:
        _log.error("%s: %s", fault.path, fault.reason)
    return 0 if done.clean else FAILED


def _without_credentials(url: str) -> str:
    from cglsuite.commons.exchange import shown_url

    return shown_url(url)


@contextlib.contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar on stderr that restarts for each step. Without a terminal, show nothing."""
    from tqdm import tqdm

    bar: Any = None
    current = ""

    def show(what: str, done: int, total: int) -> None:
        nonlocal bar, current
        if bar is None or what != current:
            if bar is not None:
                bar.close()
            current = what
            bar = tqdm(file=sys.stderr, desc=what, total=total, leave=False, dynamic_ncols=True, disable=True if quiet else None)
        bar.update(done - bar.n)

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()


def _json(merged: Merge) -> dict[str, Any]:
    return {
        "source": str(merged.source),
        "new": merged.new,
        "finished": merged.finished,
        "same": merged.same,
        "kept": merged.kept,
        "conflicts": [{**vars(conflict), "kept": str(conflict.kept)} for conflict in merged.conflicts],
        "held": [{"key": key, "holder": holder} for key, holder in merged.held],
        "unreadable": _problems_json(merged.unreadable),
        "searches": merged.searches,
        "curves": merged.curves,
        "unlike_searches": [str(path) for path in merged.unlike_searches],
    }


def _problems_json(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    return [{"file": str(p.path), "reason": p.reason, "moved_to": p.moved_to and str(p.moved_to)} for p in problems]


def _print(done: Sequence[Merge], target: Path, plan: bool) -> None:
    echo(f"{'Would merge' if plan else 'Merged'} into {target}:")
    _print_counts(done)
    _print_conflicts(done)


def _print_counts(done: Sequence[Merge]) -> None:
    header = ["NEW", "FINISHED", "SAME", "KEPT", "DIFFERENT", "UNREADABLE", "HELD", "SEARCHES", "CURVES", "SOURCE"]
    counts = [(m.new, m.finished, m.same, m.kept, m.conflicts, m.unreadable, m.held, m.searches, m.curves) for m in done]
    rows = [[n if isinstance(n, int) else len(n) for n in row] for row in counts]
    echo(table(header, [[*(n or "" for n in row), str(m.source)] for row, m in zip(rows, done, strict=True)]))


def _print_conflicts(done: Sequence[Merge]) -> None:
    for conflict in (conflict for merged in done for conflict in merged.conflicts):
        _print_conflict(conflict)


def _print_conflict(conflict: Conflict) -> None:
    why = ", because their arithmetic differs: both are valid results of this cell" if conflict.other_arithmetic else ""
    echo(f"\n{conflict.key[:12]} {conflict.label}: the results differ{why}")
    for difference in conflict.differences:
        echo(f"  {difference}")
    for name, side in (("here", conflict.here), ("there", conflict.there)):
        if side:
            arithmetic = str(side["arithmetic"] or "unknown")[:12]
            echo(f"  {name}: {side['cpu']}, torch {side['torch']}, arithmetic {arithmetic}, data {str(side['data'])[:12]}: {side['file']}")
    echo(f"  kept as {conflict.kept}")


def _log_problems(done: Sequence[Merge], apart: str = "see conflicts/") -> None:
    for merged in done:
        for problem in merged.unreadable:
            _log.error("%s: %s (%s)", problem.path, problem.reason, f"moved to {problem.moved_to}" if problem.moved_to else "left there")
        for key, holder in merged.held:
            _log.error("%s is being run in the target by %s: merge again when it has finished", key[:12], holder)
        for path in merged.unlike_searches:
            _log.error("the outcome of a search differs from the target's: kept as %s", path)
    if conflicts := sum(len(merged.contradictions) for merged in done):
        _log.error("%d cells have two results that differ: %s", conflicts, apart)


_MAX_REFUSED = 50
_STORED = "checks.json"


@click.command()
@click.argument("submission", metavar="STORE_OR_FOLDER", type=FolderPath())
@click.option(
    "--store",
    "--into",
    "into",
    metavar="RESULTS",
    type=FolderPath(),
    required=True,
    help="The results folder: a new or existing store.",
)
@click.option("--sample", type=Whole(0, 1_000_000), default=3, show_default=True, help="Number of randomly chosen records to rerun.")
@click.option(
    "--tolerance", type=Real(0.0, 1.0), metavar="X",
    help="Largest difference between matrix entries that counts as agreement, in the unit of performance.  [default: bit-identical]",
)  # fmt: skip
@click.option("--check", "checking", type=click.Choice(["full", "quick", "none"]), default="full", show_default=True,
              help="How to run `cglsuite check` for methods that have not passed here yet.")  # fmt: skip
@click.option("--check-report", "reports", type=FilePath(), multiple=True,
              help="Output of `cglsuite check --json` from another of your machines; repeatable.")  # fmt: skip
@click.option("--seed", type=Whole(0, MAX_SEED), help="Seed of the sample, to repeat a review.  [default: a secret seed]")
@click.option("--workers", type=Whole(1, MAX_PROCESSES), default=1, show_default=True, help="Worker processes for reruns.")
@click.option("--timeout", "timeout_s", type=Seconds(), help="Time limit of a rerun in seconds.  [default: none]")
@click.option("--report", "report_folder", type=FolderPath(), help="Also write the full report here, as report.json and report.html.")
@click.option("--plan", "--dry-run", "plan", is_flag=True, help="Check and rerun without writing to the results folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object instead of text.")
@quiet_option
@files_options
@pass_session
def submit(
    session: Session,
    submission: Path,
    into: Path,
    sample: int,
    tolerance: float | None,
    checking: str,
    reports: Sequence[Path],
    seed: int | None,
    workers: int,
    timeout_s: float | None,
    report_folder: Path | None,
    plan: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Check the records in STORE_OR_FOLDER, rerun a sample, and merge accepted records into RESULTS.

    Each record's digest, schema, names, key, settings, bounds, metrics and times are checked against what this machine computes; its
    method must pass `cglsuite check`. A record is refused if anything in it cannot be true, and no part of it enters RESULTS. All others
    are accepted: as verified if all checks agree, otherwise as unverified with the reasons. The verdicts are stored in RESULTS/verification
    with the digests of the records that they apply to, and shown by `cglsuite site`. STORE_OR_FOLDER is only read. If --into is
    STORE_OR_FOLDER itself, its records are checked in place.

    Reruns and checks run the code of installed plugins with your permissions. Install untrusted plugins only in a container.

    Exit status: 0 everything was accepted; 1 a record was refused, or the merge has conflicts; 2 invalid request.
    """
    from cglsuite.commons.submissions.review import Options, accept, review, submission_html, write_report

    catalogue = session.catalogue()
    with ExitStack() as stack:
        examiner = None if checking == "none" and not reports else _Examiner(catalogue, into, checking, reports, stack)
        more: dict[str, Any] = {} if seed is None else {"seed": seed}
        options = Options(
            sample=sample, tolerance=tolerance, workers=workers, timeout_s=timeout_s, progress=not quiet, examine=examiner, **more
        )
        done = review(submission, into, catalogue, options)
    if not plan:
        accept(done)
        if done.accepted:
            shown = done.to_json(accepted_only=True)
            write_report(into / "verification", done.identity, shown, submission_html(shown), "--into")
            if examiner is not None:
                examiner.keep()
    report = done.to_json()
    if report_folder is not None:
        for path in write_report(report_folder, "report", report, submission_html(report), "--report"):
            _log.info("wrote %s", path)
    print_json(report) if as_json else _print_review(done, report, plan)
    return 0 if done.clean else FAILED


class _Examiner:
    """Checks each method once: by a report named by the user, by a stored outcome for the same code, or by running the check."""

    def __init__(self, catalogue: Catalogue, into: Path, how: str, reports: Sequence[Path], stack: ExitStack) -> None:
        self.catalogue, self.how, self.stack = catalogue, how, stack
        self.file = into / "verification" / _STORED
        self.reports = {str(report["name"]): (path, report) for path in reports for report in _check_reports(path)}
        self.stored = _stored_outcomes(self.file)
        self.passed: dict[str, str] = {}
        self._judge: Any = None

    def __call__(self, method: str) -> Finding:
        from cglsuite.cells.code.sources import closure_digest
        from cglsuite.commons.submissions.checks import Finding

        entry = self.catalogue.get("method", method)
        if method in self.reports:
            path, report = self.reports[method]
            if report["provider"] != entry.provider:
                reason = f"{path} is about {method} of {report['provider']}, but {method} of {entry.provider} is installed"
                return Finding(check="check", verdict="unverified", reason=reason)
            return _check_finding(method, bool(report["passed"]), f"by {path}", report["findings"])
        if self.how == "none":
            return Finding(check="check", verdict="unverified", reason="not requested")
        name = f"{method} {closure_digest((self.catalogue.method(method).factory,))} cglsuite {__version__} {self.how}"
        if name in self.stored:
            return Finding(check="check", verdict="verified", reason=f"passed here before ({self.stored[name]})")
        finding = self._examine(method)
        if finding.verdict == "verified":
            self.passed[name] = finding.reason
        return finding

    def _examine(self, method: str) -> Finding:
        from cglsuite.commons.submissions.checks import Finding
        from cglsuite.testing.apart import Judge
        from cglsuite.testing.streams import tiny_catalogue

        _log.info("checking method %s", method)
        try:
            self._judge = self._judge or self.stack.enter_context(Judge())
            report = self._judge.examine(method, tiny_catalogue(self.catalogue), quick=self.how == "quick", only=(), seed=None)
        except CglsuiteError as error:
            return Finding(check="check", verdict="unverified", reason=f"the check cannot run: {error}")
        findings = [vars(finding) for finding in report]
        return _check_finding(method, report.passed, f"cglsuite check{' --quick' if self.how == 'quick' else ''}", findings)

    def keep(self) -> None:
        """Store the names of the methods that passed, for future submissions."""
        from cglsuite.base.atomic import write_atomic

        if self.passed:
            write_atomic(self.file, (json.dumps({**self.stored, **self.passed}, indent=1, sort_keys=True) + "\n").encode(), option="--into")


def _check_finding(method: str, passed: bool, how: str, findings: Sequence[Mapping[str, Any]]) -> Finding:
    from cglsuite.commons.submissions.checks import Finding

    if passed:
        return Finding(check="check", verdict="verified", reason=how)
    failed = [f"{finding['check']}{' in ' + finding['where'] if finding.get('where') else ''}: {finding['message']}" for finding in findings
              if finding["status"] == "failed"]  # fmt: skip
    if not failed:
        return Finding(check="check", verdict="unverified", reason=f"no check of {method} could run ({how})")
    return Finding(check="check", verdict="refused", reason=f"method {method} does not conform ({how}): {failed[0]}")


def _check_reports(path: Path) -> list[dict[str, Any]]:
    try:
        read = json.loads(read_regular(path))
        if not isinstance(read, list):
            raise ValueError(f"expected an array, got {type(read).__name__}")
        reports = [
            report
            for report in read
            if report["kind"] == "method" and isinstance(report["findings"], list) and isinstance(report["passed"], bool)
        ]
        return [report for report in reports if {"name", "provider"} <= report.keys()]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"--check-report {path}: expected the output of `cglsuite check --json`: {error}") from error


def _stored_outcomes(path: Path) -> dict[str, str]:
    try:
        return {str(name): str(how) for name, how in json.loads(read_regular(path)).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        _log.warning("%s is ignored: %s", path, error)
        return {}


def _print_review(done: Review, report: Mapping[str, Any], plan: bool) -> None:
    summary = report["summary"]
    verb = "would be accepted" if plan else "accepted"
    counts = f"{summary['verified']} verified and {summary['unverified']} unverified, {summary['refused']} refused"
    echo(f"{len(done.accepted):,} of {len(done.items):,} records of {done.submission} {verb} into {done.results}: {counts}")
    for note in done.notes:
        echo(f"  {note}")
    by_check: dict[str, Counter[str]] = {}
    for item in done.items:
        for finding in item.findings:
            by_check.setdefault(finding.check, Counter())[finding.verdict] += 1
    verdicts = ("verified", "unverified", "noted", "refused")
    rows = [[name, *(counts[verdict] or "" for verdict in verdicts)] for name, counts in by_check.items()]
    echo("\n" + table(["CHECK", *(verdict.upper() for verdict in verdicts)], rows))
    for verdict, title in (("refused", "Refused"), ("unverified", "Not verified"), ("noted", "Noted")):
        _print_reasons(done, verdict, title)
    if done.merged is not None:
        merged = done.merged
        echo(f"\nmerged: {len(merged.new) + len(merged.finished)} new, {merged.same} known, {len(merged.conflicts)} conflicts")
    if report["options"]["sample"]:
        echo(f"sample: {sum(item.rerun in ('bits', 'tolerance') for item in done.items)} reruns agree (--seed {report['options']['seed']})")


def _print_reasons(done: Review, verdict: str, title: str) -> None:
    """Print refusals one by one and other verdicts grouped by reason."""
    findings = [(finding, item) for item in done.items for finding in item.findings if finding.verdict == verdict]
    if not findings:
        return
    echo(f"\n{title}:")
    if verdict == "refused":
        for finding, item in findings[:_MAX_REFUSED]:
            echo(f"  {item.file}: {finding.check}: {finding.reason}")
        if len(findings) > _MAX_REFUSED:
            echo(f"  and {len(findings) - _MAX_REFUSED} more: --report FOLDER writes them all")
        return
    for (check, reason), n in Counter((finding.check, finding.reason) for finding, _ in findings).most_common(_MAX_REFUSED):
        echo(f"  {n} × {check}: {reason}")
