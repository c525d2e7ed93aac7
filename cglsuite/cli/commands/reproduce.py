"""``cglsuite reproduce``: run the missing cells behind published values, and write the ledger."""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cglsuite.base.errors import UsageError
from cglsuite.base.inputs import MAX_PROCESSES
from cglsuite.base.markup import several
from cglsuite.cells.records.record import ended
from cglsuite.cli.options import DEVICE_WORDS, DeviceWord, FolderPath, Session, Whole, pass_session
from cglsuite.cli.output import echo, paragraph, print_json, table

if TYPE_CHECKING:
    from cglsuite.campaigns.overrides import Overrides
    from cglsuite.campaigns.reference.reproduction import PlannedGroup, Reproduction, Selection
    from cglsuite.cells.plan import PlannedCell
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue


_log = logging.getLogger(__name__)
FAILED, NOT_APPLICABLE = 1, 3
_COLUMNS = ("done", "missing", "no data", "n/a")
"""The states that the plan counts. Every cell that a run would train counts as missing."""


@click.command()
@click.option("--paper", default="", metavar="NAME", help="BeGin, CGLB, AGALE, DRIFT or SkeletonCGL.  [default: all]")
@click.option("--dataset", default="", metavar="NAME", help="Only rows of this data set, by its name in the suite or in a paper.")
@click.option("--setting", default="", metavar="NAME", help="Only rows of this setting: task-IL, class-IL, domain-IL, time-IL, task-free.")
@click.option("--method", default="", metavar="NAME", help="Only rows of this method, by its name in the suite or in a paper.")
@click.option("--seeds", type=Whole(1, 1_000_000), metavar="N", help="Run only the first N repetitions of the protocol.  [default: all]")
@click.option("--workers", type=Whole(1, MAX_PROCESSES), help="Worker processes.  [default: $CGLSUITE_WORKERS, else 1]")
@click.option("--device", type=DeviceWord(), metavar=DEVICE_WORDS, help="Where to train.  [default: $CGLSUITE_DEVICE, else auto]")
@click.option("--plan-only", is_flag=True, help="Print what would be run, without running it. The ledger is written only with --out.")
@click.option("--claims", is_flag=True,
              help="Print which methods the tables separate and whether records agree, without a run. --out writes a page.")  # fmt: skip
@click.option("--out", type=FolderPath(), help="Folder for the ledger.  [default: rendered/reproduction-NAME]")
@click.option("--store", "store_path", type=FolderPath(),
              help="Folder of records.  [default: $CGLSUITE_STORE, else ./.cglsuite]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True,
              help="Print one JSON object: the plan with --plan-only, claims with --claims, else ledger files and counts.")  # fmt: skip
@pass_session
def reproduce(
    session: Session,
    paper: str,
    dataset: str,
    setting: str,
    method: str,
    seeds: int | None,
    workers: int | None,
    device: str | None,
    plan_only: bool,
    claims: bool,
    out: Path | None,
    store_path: Path | None,
    as_json: bool,
) -> int:
    """Run the missing cells behind published values, and write a ledger that compares our results with theirs.

    The ledger consists of a CSV file, a JSON file and a page, whose paths are printed. Its verdicts are computed from records. Without
    --paper, all papers with matching rows share one plan and one ledger. Its page counts the verdicts for each table and explains why
    values differ.

    Exit status: 0 ok, 1 a cell or the page failed, 2 invalid request, 3 nothing can be run here.
    """
    from cglsuite.campaigns.overrides import Overrides
    from cglsuite.campaigns.reference.reproduction import (
        Selection,
        absences,
        lacking,
        planned_groups,
        reproduction_of,
        results_on_other_devices,
        run_missing,
        selections_of,
        without_configuration,
    )
    from cglsuite.cells.storage.store import Store

    catalogue, store = session.catalogue(), Store(store_path)
    selection = Selection(paper=paper, dataset=dataset, setting=setting, method=method, repeats=seeds)
    overrides = without_configuration(Overrides(device=device, workers=workers))
    if claims:
        _check_store(store, named=store_path is not None, needed=True, planning=False)
        return 0 if _claims(selection, store, out, catalogue, overrides, as_json) else FAILED
    wanted = [reproduction_of(reproduction, catalogue) for reproduction in selections_of(selection)]
    _check_store(store, named=store_path is not None, needed=plan_only and out is not None, planning=plan_only)
    plans = [reproduction.plan(catalogue, overrides) for reproduction in wanted]
    cells = _distinct(plans)
    missing = lacking(cells, store)
    absent = absences(missing, catalogue, fetch=not plan_only)
    records = list(store.records())
    groups = [planned_groups(plan, store, absent, records) for plan in plans]
    if plan_only:
        _print_plan(selection, wanted, groups, results_on_other_devices(missing, records), overrides.workers or 1, as_json)
    else:
        run_missing(missing, catalogue, store, absent=absent, workers=overrides.workers)
    written = plan_only and out is None
    if not written:
        written = _write(selection, store, out, catalogue, overrides, as_json)
    if not any(group.to_run or group.counts.get("done") for some in groups for group in some):
        _log.warning("nothing of %s can be run here: %s", selection.title, "; ".join(_reasons(wanted, groups)))
        return NOT_APPLICABLE
    failed = not plan_only and _log_failures(missing, absent, store)
    return FAILED if failed or not written else 0


def _distinct(plans: Sequence[Sequence[PlannedCell]]) -> list[PlannedCell]:
    """Return every cell once, even if several papers need it."""
    return list({planned.key or planned.request.label: planned for plan in plans for planned in plan}.values())


def _check_store(store: Store, *, named: bool, needed: bool, planning: bool) -> None:
    """Check that the store exists. A run may create it, but a ledger needs its records, and its name may be mistyped."""
    if store.path.is_dir():
        return
    if needed:
        raise UsageError(
            f"there is no store at {store.path}: name one with --store, or run the cells first (without --plan-only or --claims)"
        )
    if named and planning:
        _log.warning("there is no store at %s yet: all cells are missing", store.path)


# --- the plan --------------------------------------------------------------------------------------------------------------------


def _print_plan(
    selection: Selection,
    reproductions: Sequence[Reproduction],
    groups: Sequence[Sequence[PlannedGroup]],
    elsewhere: Mapping[str, int],
    workers: int,
    as_json: bool,
) -> None:
    plans = [_plan(reproduction, some, workers) for reproduction, some in zip(reproductions, groups, strict=True)]
    every = [group for some in groups for group in some]
    totals = {column: sum(plan["totals"][column] for plan in plans) for column in _COLUMNS}
    known, untimed = _expected_seconds(every, workers), _cells_without_estimate(every)
    whole = {"totals": totals, "done_elsewhere": elsewhere, "expected_s": known, "cells_of_unknown_time": untimed}
    if as_json:
        together = {"selection": asdict(selection), "papers": plans, "published_values": sum(plan["published_values"] for plan in plans)}
        print_json(plans[0] | {"done_elsewhere": elsewhere} if selection.paper else together | whole)
        return
    rows = [row for plan in plans for row in plan["groups"]]
    if rows:
        header = ["PRESET", "METHOD", *(c.upper() for c in _COLUMNS), "BACKBONE", "EXPECTED"]
        shown = [[r["preset"], r["method"], *(r[c] or "" for c in _COLUMNS), r["backbone"], _duration(r["expected_s"])] for r in rows]
        echo(table(header, [*shown, ["total", "", *(n or "" for n in totals.values()), "", _duration(known)]]))
    if len(plans) > 1:
        echo(table(["PAPER", "VALUES", *(c.upper() for c in _COLUMNS), "EXPECTED"], [_paper_row(plan) for plan in plans]))
    if totals["missing"]:
        timed = f"about {_duration(known)} with {several(workers, 'worker')}" if known is not None else ""
        unknown = f"{untimed:,} cells of unknown time (no record of their preset and method)" if untimed else ""
        echo("expected: " + ", and ".join(filter(None, (timed, unknown))))
    for device, n in elsewhere.items():
        echo(f"{n} of the missing cells are done on {device}; a ledger uses the device with the most repetitions of each row")
    hindered: Counter[str] = Counter()
    for group in every:
        hindered.update({reason: group.counts.get("no data", 0) + group.counts.get("n/a", 0) for reason in group.reasons})
    _print_reasons("cells cannot be run here:", hindered)
    refused = Counter(entry.reason for reproduction in reproductions for entry in reproduction.entries if entry.reason)
    _print_reasons(f"of {sum(plan['published_values'] for plan in plans):,} published values have no cell here:", refused)


def _plan(reproduction: Reproduction, groups: Sequence[PlannedGroup], workers: int) -> dict[str, Any]:
    """Return the plan of one paper in JSON types."""
    rows = [_planned_row(group) for group in groups]
    refused = Counter(entry.reason for entry in reproduction.entries if entry.reason)
    facts = {"selection": asdict(reproduction.selection), "published_values": len(reproduction.entries), "without_a_cell": dict(refused)}
    totals = {column: sum(row[column] for row in rows) for column in _COLUMNS}
    times = {"expected_s": _expected_seconds(groups, workers), "cells_of_unknown_time": _cells_without_estimate(groups)}
    return {**facts, "groups": rows, "totals": totals, **times}


def _paper_row(plan: dict[str, Any]) -> list[Any]:
    counts = [plan["totals"][column] or "" for column in _COLUMNS]
    return [plan["selection"]["paper"], plan["published_values"], *counts, _duration(plan["expected_s"])]


def _expected_seconds(groups: Sequence[PlannedGroup], workers: int) -> float | None:
    """Return the expected time in seconds of the missing cells that have a similar record."""
    known = [group.expected_s for group in groups if group.to_run and group.expected_s is not None]
    return math.fsum(known) / workers if known else None


def _cells_without_estimate(groups: Sequence[PlannedGroup]) -> int:
    return sum(group.to_run for group in groups if group.to_run and group.expected_s is None)


def _print_reasons(subject: str, counts: Counter[str]) -> None:
    if counts:
        echo(f"{sum(counts.values())} {subject}")
    for reason, n in counts.most_common():
        echo(paragraph(reason, first=f"  {n:>4}  ", rest=" " * 8))


def _planned_row(group: PlannedGroup) -> dict[str, Any]:
    counts = {"done": group.counts.get("done", 0), "missing": group.to_run}
    counts |= {column: group.counts.get(column, 0) for column in ("no data", "n/a")}
    expected = group.expected_s if group.to_run else None
    facts = {"preset": group.preset, "method": group.method, "backbone": group.backbone}
    return {**facts, **counts, "expected_s": expected, "reasons": list(group.reasons)}


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _reasons(reproductions: Sequence[Reproduction], groups: Sequence[Sequence[PlannedGroup]]) -> list[str]:
    reasons = [entry.reason for reproduction in reproductions for entry in reproduction.entries if entry.reason]
    reasons += [reason for some in groups for group in some for reason in group.reasons]
    common = [reason for reason, _ in Counter(reasons).most_common()]
    return common[:3] + ([f"and {len(common) - 3} more"] if len(common) > 3 else [])


# --- claims ----------------------------------------------------------------------------------------------------------------------

_CLAIM = [
    "PAPER",
    "TABLE",
    "WHERE",
    "METRIC",
    "BETTER",
    "WORSE",
    "VERDICT",
    "PRINTED",
    "OURS",
    "95% INTERVAL",
    "N",
    "POWER/AT HALF, %",
    "RUNS",
    "SWITCH",
]


def _claims(selection: Selection, store: Store, out: Path | None, catalogue: Catalogue, overrides: Overrides, as_json: bool) -> bool:
    """Print the claims of a selection, write them if a folder is named, and return whether the page is complete."""
    from cglsuite.reports.studies.ledger.claims import RULE, counts, headlines, load_claims, text_rows, write_claims
    from cglsuite.reports.studies.ledger.compute import plain

    found = load_claims(selection, store, overrides=overrides, catalogue=catalogue)
    files, done = (write_claims(found, out), True) if out else ([], True)
    if out:
        page, done = _page(
            "claims", selection, store, out, overrides, catalogue, f"Claims of {selection.title}", _selection_parameters(selection)
        )
        files.append(page)
    if as_json:
        print_json({"rule": RULE, "counts": counts(found), "claims": plain(found), "files": [str(path) for path in files]})
        return done
    if rows := list(text_rows(found)):
        echo(table(_CLAIM, rows))
    echo("\n".join(headlines(found) or ["no claim of these tables has runs of both methods in the store"]))
    if files:
        echo("\n".join(map(str, files)))
    return done


def _page(
    notebook: str,
    selection: Selection,
    store: Store,
    folder: Path,
    overrides: Overrides,
    catalogue: Catalogue,
    title: str,
    given: Mapping[str, Any],
    computed: object = None,
) -> tuple[Path, bool]:
    """Render a notebook over a selection into a folder. Return its path and whether it is complete."""
    from cglsuite.reports.rendering.notebook import render_notebook
    from cglsuite.reports.rendering.parameters import shown_path

    values = {**given, "seeds": selection.repeats or 0, "store": shown_path(store.path), "device": overrides.device or ""}
    page = render_notebook(notebook, values, folder / f"{notebook}.html", catalogue=catalogue, title=title, computed=computed)
    if not page.done:
        _log.error("page %s: %s: %s", page.path, page.status, page.reason)
    return page.path, page.done


# --- the ledger ------------------------------------------------------------------------------------------------------------------


def _write(selection: Selection, store: Store, out: Path | None, catalogue: Catalogue, overrides: Overrides, as_json: bool) -> bool:
    """Write the ledger's files and its page, print their paths, and return whether the page is complete."""
    from cglsuite.campaigns.executors.progress import say

    folder = out or Path("rendered") / f"reproduction-{_slug(selection)}"
    written = _write_ledger if selection.paper else _all_ledgers
    paths, facts, parameters, (title, said), computed = written(selection, store, folder, catalogue, overrides)
    given: dict[str, Any] = {**parameters, "train_missing": False} if selection.paper else dict(parameters)
    notebook = "reproduction" if selection.paper else "ledger"
    page, done = _page(notebook, selection, store, folder, overrides, catalogue, title, given, computed)
    files = [str(path) for path in (*paths, page)]
    if as_json:
        print_json({"files": files, "page": "done" if done else "failed", **facts})
    else:
        echo("\n".join(files))
    say(f"{title}: {said}")
    return done


_Written = tuple[list[Path], dict[str, Any], dict[str, str], tuple[str, str], object]
"""Paths, further JSON values, the selected rows, the title with a summary, and the content of the page."""


def _write_ledger(selection: Selection, store: Store, folder: Path, catalogue: Catalogue, overrides: Overrides) -> _Written:
    from cglsuite.reports.studies.ledger.compute import extras, load_ledger, write_ledger

    ledger = load_ledger(selection, store, overrides=overrides, catalogue=catalogue)
    said = f"{_counts_text(ledger.counts)} ({len(ledger.rows):,} published values)"
    parameters = _selection_parameters(ledger.reproduction.selection)
    return write_ledger(ledger, folder), {"verdicts": ledger.counts, **extras(ledger)}, parameters, (ledger.title, said), ledger


def _all_ledgers(selection: Selection, store: Store, folder: Path, catalogue: Catalogue, overrides: Overrides) -> _Written:
    from cglsuite.reports.studies.papers.compute import load_papers, write_papers

    papers = load_papers(selection, store, overrides=overrides, catalogue=catalogue)
    said = (
        f"{_counts_text({name: n for name, n in papers.totals.items() if n and name != 'printed'})} ({len(papers.rows):,} published values)"
    )
    paths = write_papers(papers, folder)
    return paths, {"totals": papers.totals}, _selection_parameters(selection), (papers.title, said), papers


def _selection_parameters(selection: Selection) -> dict[str, str]:
    return {"paper": selection.paper, "dataset": selection.dataset, "setting": selection.setting, "method": selection.method}


def _counts_text(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {name}" for name, n in counts.items())


def _slug(selection: Selection) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", selection.title.lower()).strip("-")


def _log_failures(cells: Sequence[PlannedCell], absent: Any, store: Store) -> bool:
    """Log why cells failed, once per reason, and return whether any did."""
    failures: dict[str, list[str]] = {}
    for planned in cells:
        record = store.get(planned.key)
        if record is None and planned.cell is not None and planned.cell.scenario.dataset in absent:
            continue
        if record is None or (not record.done and record.status != "skipped"):
            why = "it was not run" if record is None else ended(record.status, record.reason)
            failures.setdefault(why, []).append(planned.request.label)
    for why, who in failures.items():
        _log.error("%s%s: %s", who[0], f" and {len(who) - 1} more" if len(who) > 1 else "", why)
    return bool(failures)
