"""``cglsuite status``: the progress of a campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cglsuite.cli.options import (
    FilePath,
    Session,
    allow_code_option,
    device_option,
    executor_option,
    files_options,
    open_store,
    pass_session,
    planned_cells,
    set_option,
    store_option,
)
from cglsuite.cli.output import echo, print_json, table, tidy

if TYPE_CHECKING:
    from cglsuite.cells.storage.lease import Holder


__all__ = ["COLUMNS", "status"]

COLUMNS = ("done", "running", "failed", "missing", "n/a")
"""The states that ``status`` counts; cells that wait for a search count as missing."""


_COLUMN_OF = {"done": "done", "running": "running", "missing": "missing", "waiting": "missing", "n/a": "n/a", "skipped": "n/a"}


@click.command()
@click.argument("campaign_path", metavar="CAMPAIGN.toml", type=FilePath())
@store_option
@device_option
@executor_option
@set_option
@click.option("--json", "as_json", is_flag=True, help="Print one object: rows by scenario, method and backbone, and totals.")
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
    """Count a campaign's cells that are done, running, failed, missing or not applicable."""
    from cglsuite.campaigns.campaign import load_campaign
    from cglsuite.campaigns.executors.campaign_run import all_trainings, cell_states, trainings_text
    from cglsuite.campaigns.executors.remote import stored_jobs
    from cglsuite.campaigns.search import overlap_text, shared_seeds
    from cglsuite.reports.rendering.parameters import check_reports

    store = open_store(store_path)
    campaign = load_campaign(campaign_path, allow_code=allow_code)
    check_reports(campaign, session.catalogue())
    states = list(cell_states(planned_cells(campaign_path, session, store, assignments, device, executor, allow_code), store))
    counts: dict[tuple[Any, ...], Counter[str]] = {}
    reasons: dict[tuple[Any, ...], set[str]] = {}
    axes = list(dict.fromkeys(name for known in states for name in known.planned.request.point))
    for known in states:
        column = _COLUMN_OF.get(known.state, "failed")
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
    jobs = [job for job in stored_jobs(store.path) if (plan := job.plan()) is not None and wanted & dict(plan.cells).keys()]
    holders = [(known.planned, known.holder) for known in states if known.holder is not None]
    if as_json:
        facts = {"campaign": str(campaign_path), "store": str(store.path), "trainings": {"tasks": tasks, "trained": trained}}
        held = [_held_json(planned.key, planned.request.label, holder) for planned, holder in holders]
        launched = [{"engine": j.job.engine, "name": j.job.name, "ids": sorted(j.ids.values()), "submitted": j.submitted} for j in jobs]
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
    for planned, holder in holders:
        how = "no longer renewed; the next run takes it over" if holder.silent else "running"
        echo(f"{planned.request.label}: {how}: {holder}")
    for job in jobs:
        echo(f"{job} was launched and is not known to be over: `cglsuite run` asks, and waits for it")
    if overlap := overlap_text(shared):
        echo(f"{overlap} Give [search] seeds of its own")
    if sharing := trainings_text(trainings):
        echo(sharing)


def _held_json(key: str, label: str, holder: Holder) -> dict[str, Any]:
    """A cell under a lease: its holder, and when it was taken and last renewed (seconds since the epoch)."""
    facts = {name: getattr(holder, name) for name in ("host", "pid", "since", "refreshed", "lifetime_s", "silent")}
    return {"key": key, "label": label, **facts}
