"""``cglsuite migrate STORE``: re-key records after source changes that leave results bit-identical."""

from __future__ import annotations

import logging
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cglsuite import __version__
from cglsuite.base.errors import UsageError
from cglsuite.cli.options import FolderPath, Seconds, Session, Whole, files_options, pass_session
from cglsuite.cli.output import heading, print_json, table

if TYPE_CHECKING:
    from cglsuite.campaigns.migrate import Candidate, Coverage, Survey
    from cglsuite.cells.records.record import Record


_log = logging.getLogger(__name__)
FAILED = 1


@click.command()
@click.argument("store_path", metavar="STORE", type=FolderPath())
@click.option(
    "--plan",
    "--dry-run",
    "plan_only",
    is_flag=True,
    help="Print what would be rerun and what that would show. Nothing is run or written.",
)
@click.option("--sample", type=Whole(1, 1_000_000), default=10, show_default=True, help="Maximum number of cells to rerun.")
@click.option(
    "--seconds",
    type=Seconds(zero=True),
    default=900.0,
    show_default=True,
    help="Maximum total time of the cells to rerun, according to their records.",
)
@click.option("--scenario", "scenarios", metavar="NAME", multiple=True, help="Only records of this scenario; repeatable.")
@click.option("--method", "methods", metavar="NAME", multiple=True, help="Only records of this method; repeatable.")
@click.option(
    "--against",
    "against_path",
    metavar="STORE",
    type=FolderPath(),
    help="Compare with records of the same keys in this store, computed on this machine by the code before the change.",
)
@click.option("--remove-old", is_flag=True, help="Delete each old file once its record is written under the current key.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@files_options
@pass_session
def migrate(
    session: Session,
    store_path: Path,
    plan_only: bool,
    sample: int,
    seconds: float,
    scenarios: Sequence[str],
    methods: Sequence[str],
    against_path: Path | None,
    remove_old: bool,
    as_json: bool,
) -> int:
    """Re-key records in STORE whose sources have changed, if reruns show that results are still bit-identical.

    Keys include a digest of the sources. After a change that does not alter the arithmetic, such as moving a function to another module,
    the records of all cells that use it have stale keys. This command draws a sample that covers as many of the changes as possible, reruns
    it in a scratch store, and compares matrices, validation results, curves and the fingerprints of states and predictions bit by bit. If
    all are equal, every record whose changes are all covered is written under its current key, with a note on the comparison. If one
    differs, it is reported and nothing is written. Records from another torch version or CPU capability are left alone, as are cells that
    the current plugins plan differently. Old files are kept.

    User code needs no rerun if its digest under the former key rule still matches the record.

    Rounding differs between processors. To migrate records from another processor, use --against with a store that contains some of the
    same cells, computed on this machine by the code before the change (tests/tools/rerun.py in the repository does that).

    Exit status: 0 done, or nothing to do; 1 a rerun differs.
    """  # fmt: skip
    from cglsuite.campaigns import migrate as core
    from cglsuite.cells.storage.store import Store

    store, catalogue = Store(store_path, read=()), session.catalogue()
    if not store.path.is_dir():
        raise UsageError(f"there is no store at {store.path}: name the folder that contains cells/")
    here = core.machine()
    survey = core.survey(store, catalogue, current=here, scenarios=scenarios, methods=methods)
    comparable = unshown = [candidate for candidate in survey.candidates if candidate.changes or not candidate.same]
    if against_path is not None:
        if not against_path.is_dir():
            raise UsageError(f"--against {against_path} is not a store; expected the folder that contains cells/")
        comparable = core.against(unshown, Store(against_path, read=()), here)
        if unshown and not comparable:
            raise UsageError(
                f"--against {against_path} has no record that was computed on this machine and shares its key with one in {store.path}; "
                "compute some of the same cells with the code before the change"
            )
    sampled = core.choose(comparable, sample, seconds)
    differing: list[tuple[Candidate, list[str]]] = []
    if not plan_only:
        with tempfile.TemporaryDirectory(prefix="cglsuite-migrate-") as folder:
            for number, candidate in enumerate(sampled, 1):
                _log.info("%d of %d: %s (%.0f s then)", number, len(sampled), candidate.record.label, candidate.seconds)
                differences = core.rerun_and_compare(candidate, catalogue, Store(folder, read=()))
                if differences:
                    differing.append((candidate, differences))
    refuted = {id(candidate) for candidate, _ in differing}
    equal = [candidate for candidate in sampled if id(candidate) not in refuted]
    written: list[Record] = []
    left: list[tuple[Candidate, str]] = []
    searches = 0
    if not plan_only and not differing:
        date = time.strftime("%Y-%m-%d", time.gmtime())
        versions = {"cglsuite": __version__, **core.machine()}
        written, left = core.rekey(survey.candidates, equal, store, date=date, versions=versions, remove_old=remove_old)
        searches = core.rekey_searches(store, written)
    report = _report(survey, here, sampled, core.coverage(survey.candidates, equal), differing, plan_only)
    report |= {"written": [{"from": r.provenance["migrated"][-1]["from"], "to": r.key} for r in written], "searches": searches}
    report["left"] += [{"key": c.record.key, "label": c.record.label, "reason": reason} for c, reason in left]
    print_json(report) if as_json else _print(report, plan_only)
    return FAILED if differing else 0


def _report(
    survey: Survey,
    here: dict[str, Any],
    sampled: Sequence[Candidate],
    met: Sequence[Coverage],
    differing: Sequence[tuple[Candidate, list[str]]],
    plan_only: bool,
) -> dict[str, Any]:
    differences = {candidate.record.key: words for candidate, words in differing}
    return {
        "current": survey.current,
        "candidates": len(survey.candidates),
        "same_by_former_rule": sum(not candidate.changes for candidate in survey.candidates if candidate.same),
        "sample": [
            {
                "key": c.record.key,
                "label": c.record.label,
                "seconds": c.seconds,
                "outcome": "to be run" if plan_only else "differs" if c.record.key in differences else "equal",
                "differences": differences.get(c.record.key, []),
                "processor": "" if (cpu := (c.former or c.record).environment.get("cpu")) == here["cpu"] else str(cpu),
            }
            for c in sampled
        ],
        "coverage": [{**vars(c.change), "records": c.records, "rerun": c.shown} for c in met],
        "left": [{"key": record.key, "label": record.label, "reason": reason} for record, reason in survey.left],
    }


def _print(report: dict[str, Any], plan_only: bool) -> None:
    click.echo(
        f"{report['current']:,} records have current keys; {report['candidates']:,} have old keys of cells that can still be planned."
    )
    if same := report["same_by_former_rule"]:
        click.echo(f"{same} of them need no rerun: under the former digest rule, their user code has not changed.")
    if report["sample"]:
        click.echo(f"\n{heading('Run again')}")
        rows = [(s["outcome"], f"{s['seconds']:.1f} s", s["key"][:12], s["label"]) for s in report["sample"]]
        click.echo(table(("outcome", "took", "record", "cell"), rows))
        for s in report["sample"]:
            for words in s["differences"]:
                click.echo(f"  {s['key'][:12]} {words}")
            if s["differences"] and s["processor"]:
                click.echo(f"  {s['key'][:12]} was computed on another processor ({s['processor']}), whose rounding differs: see --against")
    if report["coverage"]:
        click.echo(f"\n{heading('What the sample ' + ('would show' if plan_only else 'shows'))}")
        met = [
            (
                c["role"],
                f"{c['old'] or 'none'} -> {c['new'] or 'none'}",
                str(c["records"]),
                str(c["rerun"]) if c["rerun"] else "0: not shown",
                c["name"],
            )
            for c in report["coverage"]
        ]
        click.echo(table(("part", "sources", "records", "run again", "name"), met))
    if report["left"]:
        click.echo(f"\n{heading('Left as they are')}")
        reasons = Counter(entry["reason"] for entry in report["left"])
        click.echo(table(("records", "reason"), [(str(n), reason) for reason, n in reasons.most_common()]))
    click.echo()
    if plan_only:
        click.echo("Nothing was run or written (--plan).")
    elif any(s["differences"] for s in report["sample"]):
        click.echo("A rerun differs: the change is not neutral, and nothing was written.")
    else:
        searches = f", with the outcomes of {report['searches']} searches" if report["searches"] else ""
        click.echo(f"{len(report['written']):,} records were written under current keys{searches}.")
