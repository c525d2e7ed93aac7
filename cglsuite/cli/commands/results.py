"""Commands that read records: ``results`` writes or verifies records, and ``status`` shows the progress of a campaign."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cglsuite.base.errors import DataError, SpecError, UsageError
from cglsuite.cli.options import (
    FAILED,
    FilePath,
    Session,
    allow_code_option,
    device_option,
    executor_option,
    files_options,
    numerics_option,
    open_store,
    overrides_of,
    pass_session,
    read_option,
    set_option,
    shown_campaign,
    store_option,
)
from cglsuite.cli.output import echo, paragraph, print_json, table, tidy

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.cells.records.frame import Row
    from cglsuite.cells.records.record import Record
    from cglsuite.cells.records.verify import Check
    from cglsuite.cells.storage.lease import Holder
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue


_log = logging.getLogger(__name__)
_SHOWN = 3


def write_table(frame: pd.DataFrame, form: str, output: Path | None) -> None:
    """Write a table to a file, or to stdout."""
    from cglsuite.cells.records.frame import render_frame, write_frame

    if output is not None:
        write_frame(frame, form, output)
    else:
        click.echo(render_frame(frame, form), nl=False)


def write_checks(records: Iterable[Record], catalogue: Catalogue, store: Store, form: str | None, output: Path | None) -> bool:
    """Verify records, print or write the findings, and return whether everything agrees."""
    from cglsuite.cells.records.verify import conflicting, damaged, verify

    checks = [*verify(records, catalogue), *damaged(store.problems), *conflicting(store)]
    if form is not None or output is not None:
        import pandas as pd

        columns = ["key", "label", "check", "verdict", "reason", "recorded", "computed"]
        write_table(pd.DataFrame([[getattr(c, name) for name in columns] for c in checks], columns=columns), form or "csv", output)
    else:
        echo(_summary(checks))
    differing = [c for c in checks if c.verdict == "differs"]
    for check in differing:
        _log.error("%s", " ".join(filter(None, [check.key[:12], check.label, f"{check.check}: {check.reason}"])))
    return not differing


def _summary(checks: Sequence[Check]) -> str:
    """Format one line per kind of check, with the reasons why checks were skipped."""
    counts: dict[str, Counter[str]] = {}
    reasons: dict[str, Counter[str]] = {}
    for check in checks:
        counts.setdefault(check.check, Counter())[check.verdict] += 1
        if check.verdict == "unchecked":
            reasons.setdefault(check.check, Counter())[check.reason] += 1
    why = {name: "; ".join(f"{reason} ({n})" for reason, n in counted.most_common()) for name, counted in reasons.items()}
    rows = [[name, *(n[verdict] or "" for verdict in ("agrees", "differs", "unchecked")), why.get(name, "")] for name, n in counts.items()]
    return table(["CHECK", "AGREES", "DIFFERS", "NOT CHECKED", "WHY NOT"], rows)


@click.command()
@click.argument("campaign_path", metavar="[CAMPAIGN.toml]", type=FilePath(), required=False)
@store_option
@read_option
@device_option
@numerics_option
@set_option
@click.option("--trials", "with_trials", is_flag=True, help="Include the trials of the campaign's hyperparameter searches.")
@click.option(
    "--where",
    metavar="KEY=VALUE",
    multiple=True,
    help="Only records that match a glob: method=, scenario=, order_seed=, training.lr=, ...",
)
@click.option("--verify", "verifying", is_flag=True, help="Verify records instead: check digests, and recompute metrics.")
@click.option("--long", is_flag=True, help="Write the performance on each task instead, one row per record, stage and task.")
@click.option("--curves", is_flag=True, help="Write loss curves instead, one row per epoch for each record with stored curves.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json", "parquet"]),
    help="Format of the table.  [default: text on a terminal and with --verify, else csv]",
)
@click.option("--output", type=FilePath(), help="File to write.  [default: stdout]")
@allow_code_option
@files_options
@pass_session
@click.pass_context
def results(
    ctx: click.Context,
    session: Session,
    campaign_path: Path | None,
    store_path: Path | None,
    device: str | None,
    assignments: Sequence[str],
    with_trials: bool,
    where: Sequence[str],
    verifying: bool,
    long: bool,
    curves: bool,
    form: str | None,
    output: Path | None,
    allow_code: bool,
) -> None:
    """Write results as a tidy table with one row per record in a campaign's grid or, without a campaign, in the store.

    On a terminal, without --format and --output, prints the best method of each scenario and its lead, with one row per method. The column
    "role" distinguishes trials of hyperparameter searches (trial) from other records (final). Cells in the campaign's grid are final.
    Without a campaign, only the cells of finished searches count as trials. Intransigence compares with the joint record for the same
    scenario and seeds among these rows. With --verify, the table has one row per check instead. Metrics are recomputed if their provider,
    version and source are the same as in the record.

    Exit status: 0 ok; 1 a record is damaged, inconsistent (--verify) or has no curves here (--curves), and the others are shown; 2 invalid
    request.
    """
    from cglsuite.campaigns.overrides import selected
    from cglsuite.campaigns.planning import plan_campaign, plan_search
    from cglsuite.cells.records.frame import compared_metrics, curves_frame, long_frame, results_frame

    store = open_store(store_path, must_exist=True)
    if output is None and form == "parquet" and sys.stdout.isatty():
        raise UsageError("parquet cannot be written to a terminal: name a file with --output")
    tables = [name for name, given in (("--verify", verifying), ("--long", long), ("--curves", curves)) if given]
    if len(tables) > 1:
        raise UsageError(f"{' and '.join(tables)} each write a different table: choose only one")
    keys, trials = None, None
    if campaign_path is not None:
        arguments = shown_campaign(campaign_path, allow_code), session.catalogue(), overrides_of(assignments, device)
        keys, trials = [p.key for p in plan_campaign(*arguments, store=store) if p.ready], set()
        if with_trials:
            trials = {p.key for search in plan_search(*arguments, store=store) for p in search.cells if p.ready} - {*keys}
        keys += sorted(trials)
    elif with_trials:
        raise UsageError("--trials needs a campaign file; without one, the table already includes the trials in the store")
    if where:
        keys = [row.key for row in selected(store.rows(keys), where, _facts, "--where")]
    records = store.records() if keys is None else (record for _, record in store.find(keys) if record is not None)
    if curves:
        frame, absent = curves_frame(records)
        write_table(frame, form or "csv", output)
        for reason in absent[:_SHOWN]:
            _log.error("%s", reason)
        if absent:
            _log.error("the curves of %d records are missing from the table", len(absent))
        ctx.exit(FAILED if absent or store.problems else 0)
    if long:
        write_table(long_frame(records), form or "csv", output)
        ctx.exit(FAILED if store.problems else 0)
    if verifying:
        ctx.exit(0 if write_checks(records, session.catalogue(), store, form, output) else FAILED)
    catalogue = session.catalogue()
    if form is None and output is None and not with_trials and sys.stdout.isatty():
        echo("\n\n".join(_scenario_texts(store, catalogue, keys)) or f"no finished record in {store.path}")
        ctx.exit(FAILED if store.problems else 0)
    rows = list(store.completed_rows(catalogue, keys))
    if not rows:
        _log.warning("no records in %s", store.path)
    foreign = sorted({name for row in rows for name, value in row.metrics.items() if value is not None} - set(catalogue.names("metric")))
    if foreign:
        what = "no installed plugin provides these metrics, so the stored values are shown, perhaps by different formulas"
        _log.warning("%s: %s; install their plugins to compute them from the matrices", what, ", ".join(foreign))
    trials = store.trials() if trials is None else trials
    write_table(results_frame(rows, compared=compared_metrics(catalogue), trials=trials), form or "csv", output)
    ctx.exit(FAILED if store.problems else 0)  # each problem was logged when it occurred


def _scenario_texts(store: Store, catalogue: Catalogue, keys: Sequence[str] | None) -> Iterator[str]:
    """Yield the key results and the leaderboard of each scenario: the first columns, with means ± standard deviations."""
    from cglsuite.reports.results.results import store_results
    from cglsuite.reports.site.boards import boards
    from cglsuite.reports.site.index import findings

    found = store_results(store, catalogue, keys)
    for board in boards(found, catalogue):
        columns = [column for column in board.columns if column is board.first or column.shown_first]
        header = ["METHOD", "RANK", "N", *(column.heading for column in columns), ""]
        rows = [
            [
                f"{board.name_of(row)}{' (reference)' if row.reference else ''}",
                board.ranks.get(number, "–"),
                f"{len(row.records)} of {len(row.records) + row.missing}" if row.missing else len(row.records),
                *(column.text(row.scores[column.name]) if column.name in row.scores else "–" for column in columns),
                "",
            ]
            for number, row in enumerate(board.rows)
        ]
        said = [paragraph(f"{finding.title}: {' '.join(finding.sentences)}") for finding in findings(found, catalogue, [board])]
        yield "\n".join([*said, table(header, rows, indent="  ")])


def _facts(row: Row) -> dict[str, Any]:
    """Return the values that filters compare: names, seeds as text, and settings by dotted key."""
    from cglsuite.campaigns.overrides import FILTERS
    from cglsuite.cells.records.frame import settings

    return {**settings(row.configuration), **{name: str(getattr(row, name)) for name in FILTERS}}


COLUMNS = ("done", "settled", "running", "failed", "missing", "n/a")
"""The states that ``status`` counts. Settled cells diverged or did not apply, and are not run again. Cells that wait for a search count
as missing."""


_COLUMN_OF = {"done": "done", "running": "running", "missing": "missing", "waiting": "missing", "n/a": "n/a", "skipped": "n/a"}


@click.command()
@click.argument("campaign_path", metavar="CAMPAIGN.toml", type=FilePath())
@store_option
@read_option
@device_option
@numerics_option
@executor_option
@set_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: rows by scenario, method and backbone, and totals.")
@allow_code_option
@files_options
@pass_session
def status(
    session: Session,
    campaign_path: Path,
    store_path: Path | None,
    device: str | None,
    executor: str | None,
    assignments: Sequence[str],
    as_json: bool,
    allow_code: bool,
) -> None:
    """Count the cells of a campaign by state: done, settled (diverged or did not apply), running, failed, missing or not applicable."""
    from cglsuite.campaigns.executors.campaign_run import all_trainings, cell_states, parts_of_job, trainings_text
    from cglsuite.campaigns.executors.remote import in_words, stored_jobs
    from cglsuite.campaigns.planning import check_feasible, plan_campaign
    from cglsuite.campaigns.search import overlap_text, shared_seeds
    from cglsuite.reports.rendering.parameters import check_reports

    store, overrides = open_store(store_path), overrides_of(assignments, device, executor=executor)
    campaign = shown_campaign(campaign_path, allow_code)
    check_reports(campaign, session.catalogue())
    states = list(cell_states(plan_campaign(campaign, session.catalogue(), overrides, store=store), store))
    counts: dict[tuple[Any, ...], Counter[str]] = {}
    reasons: dict[tuple[Any, ...], set[str]] = {}
    axes = list(dict.fromkeys(name for known in states for name in known.planned.request.point))
    for known in states:
        column = "settled" if known.settled else _COLUMN_OF.get(known.state, "failed")
        request = known.planned.request
        place = tuple(None if name not in request.point else tidy(request.point[name]) for name in axes)
        group = (request.scenario, request.method, known.planned.backbone, place)
        counts.setdefault(group, Counter())[column] += 1
        reasons.setdefault(group, set()).update([known.reason] if known.reason else [])
    rows: list[dict[str, Any]] = [
        {
            "scenario": s,
            "method": m,
            "backbone": b,
            **({"settings": dict(zip(axes, place, strict=True))} if axes else {}),
            **{c: n[c] for c in COLUMNS},
            "reasons": sorted(reasons[s, m, b, place]),
        }
        for (s, m, b, place), n in counts.items()
    ]
    totals = {column: sum(n[column] for n in counts.values()) for column in COLUMNS}
    tasks, trained = trainings = all_trainings(states)
    searched = campaign.search.seeds.expand() if campaign.search else []
    shared = shared_seeds(map(asdict, searched), (asdict(known.planned.request.seeds) for known in states))
    wanted = {known.planned.key for known in states}
    jobs = [
        (job, parts_of_job(job, campaign, session.catalogue(), overrides))
        for job in stored_jobs(store.path)
        if (plan := job.plan()) is not None and wanted & dict(plan.cells).keys()
    ]
    holders = [(known.planned, known.holder) for known in states if known.holder is not None]
    if as_json:
        facts = {"campaign": str(campaign_path), "store": str(store.path), "trainings": {"tasks": tasks, "trained": trained}}
        held = [_held_json(planned.key, planned.request.label, holder) for planned, holder in holders]
        launched = [
            {"engine": j.job.engine, "name": j.job.name, "ids": sorted(j.ids.values()), "submitted": j.submitted, "parts": parts}
            for j, parts in jobs
        ]
        print_json({**facts, "rows": rows, "totals": totals, "held": held, "jobs": launched, "shared_seeds": shared})
        return
    header = [
        "SCENARIO",
        "METHOD",
        *(name.partition(".")[2].upper() or name.upper() for name in axes),
        *(c.upper() for c in COLUMNS),
        "BACKBONE",
        "WHY",
    ]
    places = [["" if value is None else value for value in r["settings"].values()] if axes else [] for r in rows]
    shown = [
        [r["scenario"], r["method"], *place, *(r[c] or "" for c in COLUMNS), r["backbone"], "; ".join(r["reasons"])]
        for r, place in zip(rows, places, strict=True)
    ]
    total = ["total", "", *("" for _ in axes), *(n or "" for n in totals.values()), "", ""]
    echo(table(header, [*shown, total]))
    try:
        check_feasible((known.planned for known in states if known.state == "missing"), session.catalogue(), campaign.where)
    except (SpecError, DataError) as error:
        _log.error("%s", error)
    for planned, holder in holders:
        how = "lease no longer renewed; the next run takes the cell over" if holder.silent else "running"
        echo(f"{planned.request.label}: {how}: {holder}")
    for job, parts in jobs:
        state = ", ".join(in_words(parts)) if parts else "its engine cannot be reached from here; `cglsuite run` tries again"
        echo(f"{job}: {state}")
    if overlap := overlap_text(shared):
        echo(f"{overlap} Give [search] its own seeds")
    if sharing := trainings_text(trainings):
        echo(sharing)


def _held_json(key: str, label: str, holder: Holder) -> dict[str, Any]:
    """Describe a leased cell: its holder, and when the lease was taken and last renewed (Unix time in seconds)."""
    facts = {name: getattr(holder, name) for name in ("host", "pid", "since", "refreshed", "lifetime_s", "silent")}
    return {"key": key, "label": label, **facts}
