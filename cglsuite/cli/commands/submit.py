"""``cglsuite submit STORE --into RESULTS``: check a third party's records, and accept what holds."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cglsuite import __version__
from cglsuite.base.errors import CglsuiteError, UsageError
from cglsuite.base.inputs import MOST_PROCESSES, MOST_SEED, read_regular
from cglsuite.cli.options import FAILED, FilePath, FolderPath, Real, Seconds, Session, Whole, files_options, pass_session, quiet_option
from cglsuite.cli.output import echo, print_json, table

if TYPE_CHECKING:
    from cglsuite.commons.submissions.checks import Finding
    from cglsuite.commons.submissions.review import Review
    from cglsuite.host import Catalogue

__all__ = ["submit"]

_log = logging.getLogger(__name__)
_MOST_REFUSED = 50
_STORED = "checks.json"


@click.command()
@click.argument("submission", metavar="STORE_OR_FOLDER", type=FolderPath())
@click.option("--into", "into", metavar="RESULTS", type=FolderPath(), required=True, help="The results folder, a store; it may be new.")
@click.option("--sample", type=Whole(0, 1_000_000), default=3, show_default=True, help="Rerun this many records, drawn at random.")
@click.option(
    "--tolerance", type=Real(0.0, 1.0), metavar="X",
    help="A rerun agrees if no entry of the matrix differs by more, in the unit of performance.  [default: to the bit]",
)  # fmt: skip
@click.option("--check", "checking", type=click.Choice(["full", "quick", "none"]), default="full", show_default=True,
              help="How `cglsuite check` examines methods that have not passed here yet.")  # fmt: skip
@click.option("--check-report", "reports", type=FilePath(), multiple=True,
              help="What `cglsuite check --json` printed on a machine of yours; repeatable.")  # fmt: skip
@click.option("--seed", type=Whole(0, MOST_SEED), help="Seed of the sample, to repeat a review; default: a secret one.")
@click.option("--workers", type=Whole(1, MOST_PROCESSES), default=1, show_default=True, help="Worker processes for reruns.")
@click.option("--timeout", "timeout_s", type=Seconds(), help="Seconds that a rerun may take.  [default: any time]")
@click.option("--report", "report_folder", type=FolderPath(), help="Also write the whole report here, as report.json and report.html.")
@click.option("--plan", "--dry-run", "plan", is_flag=True, help="Check and rerun, and write nothing into the results folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one object instead of text.")
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
    """Check the records in STORE_OR_FOLDER, rerun a sample, and merge what is accepted into RESULTS.

    Each record's digest, schema, names, key, settings, bounds, metrics and times are checked against what this machine computes; its
    method must pass `cglsuite check`. A record is refused if anything in it cannot be true, and nothing of it gets into RESULTS. Others
    are accepted: as verified if all checks agree, else as unverified with the reasons. Marks of that are kept in RESULTS/verification,
    bound to the records' digests; `cglsuite site` shows them. STORE_OR_FOLDER is only read. With --into STORE_OR_FOLDER itself, its
    records are checked where they are.

    Reruns and checks run the code of installed plugins with your rights. Install a stranger's plugin in a container only.

    Exit status: 0 everything is accepted; 1 a record is refused, or the merge has conflicts; 2 wrong request.
    """
    from cglsuite.commons.submissions.review import Options, accept, review, write_report
    from cglsuite.reports.site.submission import submission_html

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
    print_json(report) if as_json else _print(done, report, plan)
    return 0 if done.clean else FAILED


class _Examiner:
    """Checks methods, each once: by a report that the user names, by one stored here for the same code, or by running the check."""

    def __init__(self, catalogue: Catalogue, into: Path, how: str, reports: Sequence[Path], stack: ExitStack) -> None:
        self.catalogue, self.how, self.stack = catalogue, how, stack
        self.file = into / "verification" / _STORED
        self.given = {str(one["name"]): (path, one) for path in reports for one in _check_reports(path)}
        self.stored = _stored(self.file)
        self.passed: dict[str, str] = {}
        self._judge: Any = None

    def __call__(self, method: str) -> Finding:
        from cglsuite.cells.code.sources import closure_digest
        from cglsuite.commons.submissions.checks import Finding

        entry = self.catalogue.get("method", method)
        if method in self.given:
            path, one = self.given[method]
            if one["provider"] != entry.provider:
                reason = f"{path} is about {method} of {one['provider']}; installed is that of {entry.provider}"
                return Finding(check="check", verdict="unverified", reason=reason)
            return _finding(method, bool(one["passed"]), f"by {path}", one["findings"])
        if self.how == "none":
            return Finding(check="check", verdict="unverified", reason="not asked for")
        name = f"{method} {closure_digest((self.catalogue.method(method).factory,))} cglsuite {__version__} {self.how}"
        if name in self.stored:
            return Finding(check="check", verdict="verified", reason=f"passed here before ({self.stored[name]})")
        finding = self._examined(method)
        if finding.verdict == "verified":
            self.passed[name] = finding.reason
        return finding

    def _examined(self, method: str) -> Finding:
        from cglsuite.commons.submissions.checks import Finding
        from cglsuite.testing.judging import Judge
        from cglsuite.testing.streams import tiny_catalogue

        _log.info("checking method %s", method)
        try:
            self._judge = self._judge or self.stack.enter_context(Judge())
            report = self._judge.examine(method, tiny_catalogue(self.catalogue), quick=self.how == "quick", only=(), seed=None)
        except CglsuiteError as error:
            return Finding(check="check", verdict="unverified", reason=f"cannot be made: {error}")
        findings = [vars(finding) for finding in report]
        return _finding(method, report.passed, f"cglsuite check{' --quick' if self.how == 'quick' else ''}", findings)

    def keep(self) -> None:
        """Store which methods have passed, for later submissions."""
        from cglsuite.base.atomic import write_atomic

        if self.passed:
            write_atomic(self.file, (json.dumps({**self.stored, **self.passed}, indent=1, sort_keys=True) + "\n").encode(), option="--into")


def _finding(method: str, passed: bool, how: str, findings: Sequence[Mapping[str, Any]]) -> Finding:
    from cglsuite.commons.submissions.checks import Finding

    if passed:
        return Finding(check="check", verdict="verified", reason=how)
    failed = [f"{one['check']}{' in ' + one['where'] if one.get('where') else ''}: {one['message']}" for one in findings
              if one["status"] == "failed"]  # fmt: skip
    if not failed:
        return Finding(check="check", verdict="unverified", reason=f"no check of {method} could be made ({how})")
    return Finding(check="check", verdict="refused", reason=f"method {method} does not conform ({how}): {failed[0]}")


def _check_reports(path: Path) -> list[dict[str, Any]]:
    try:
        read = json.loads(read_regular(path))
        if not isinstance(read, list):
            raise ValueError(f"it is no array but {type(read).__name__}")
        found = [one for one in read if one["kind"] == "method" and isinstance(one["findings"], list) and isinstance(one["passed"], bool)]
        return [one for one in found if {"name", "provider"} <= one.keys()]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"--check-report {path}: expected what `cglsuite check --json` prints: {error}") from error


def _stored(path: Path) -> dict[str, str]:
    try:
        return {str(name): str(how) for name, how in json.loads(read_regular(path)).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        _log.warning("%s is ignored: %s", path, error)
        return {}


def _print(done: Review, report: Mapping[str, Any], plan: bool) -> None:
    summary = report["summary"]
    verb = "would be accepted" if plan else "accepted"
    counts = f"{summary['verified']} verified and {summary['unverified']} unverified, {summary['refused']} refused"
    echo(f"{len(done.accepted)} of {len(done.items)} records of {done.submission} {verb} into {done.results}: {counts}")
    for note in done.notes:
        echo(f"  {note}")
    by_check: dict[str, Counter[str]] = {}
    for item in done.items:
        for finding in item.findings:
            by_check.setdefault(finding.check, Counter())[finding.verdict] += 1
    verdicts = ("verified", "unverified", "noted", "refused")
    rows = [[name, *(found[verdict] or "" for verdict in verdicts)] for name, found in by_check.items()]
    echo("\n" + table(["CHECK", *(verdict.upper() for verdict in verdicts)], rows))
    for verdict, title in (("refused", "Refused"), ("unverified", "Not verified"), ("noted", "Noted")):
        _print_reasons(done, verdict, title)
    if done.merged is not None:
        merged = done.merged
        echo(f"\nmerged: {len(merged.new) + len(merged.finished)} new, {merged.same} known, {len(merged.conflicts)} conflicts")
    if report["options"]["sample"]:
        echo(f"sample: {sum(item.rerun in ('bits', 'tolerance') for item in done.items)} reruns agree (--seed {report['options']['seed']})")


def _print_reasons(done: Review, verdict: str, title: str) -> None:
    """Refusals one by one, other verdicts by reason."""
    found = [(finding, item) for item in done.items for finding in item.findings if finding.verdict == verdict]
    if not found:
        return
    echo(f"\n{title}:")
    if verdict == "refused":
        for finding, item in found[:_MOST_REFUSED]:
            echo(f"  {item.file}: {finding.check}: {finding.reason}")
        if len(found) > _MOST_REFUSED:
            echo(f"  and {len(found) - _MOST_REFUSED} more: --report FOLDER writes them all")
        return
    for (check, reason), n in Counter((finding.check, finding.reason) for finding, _ in found).most_common(_MOST_REFUSED):
        echo(f"  {n} × {check}: {reason}")
