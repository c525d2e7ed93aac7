"""``cglsuite cell`` and ``run``: run a cell or a campaign."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cglsuite.base.errors import NotApplicable, UsageError
from cglsuite.base.inputs import MAX_PROCESSES
from cglsuite.base.markup import file_size, several
from cglsuite.base.traces import resume_collector
from cglsuite.campaigns.reference import queries_note
from cglsuite.cells.records.record import SETTLED, ended
from cglsuite.cli.options import (
    FAILED,
    FilePath,
    FolderPath,
    Session,
    Whole,
    allow_code_option,
    check_tasks,
    checkpoint_option,
    device_option,
    executor_option,
    files_options,
    init_seed_option,
    numerics_option,
    open_store,
    order_seed_option,
    overrides_of,
    pass_session,
    print_derivations,
    quiet_option,
    read_option,
    set_option,
    split_seed_option,
    store_option,
    tasks_option,
    watch_option,
)
from cglsuite.cli.output import echo, heading, paragraph, print_json, properties, table
from cglsuite.reports.results.measures import is_fraction, performance_name, why_absent
from cglsuite.specs import MetricSpec, Seeds
from cglsuite.specs.plugins import PRETRAINING_SCHEME

if TYPE_CHECKING:
    from cglsuite.campaigns.campaign import Campaign
    from cglsuite.campaigns.executors.campaign_run import CampaignOutcome
    from cglsuite.campaigns.overrides import Overrides
    from cglsuite.cells.diagnostics import ForgettingSplit
    from cglsuite.cells.observing import Observer
    from cglsuite.cells.plan import PlannedCell
    from cglsuite.cells.records.record import Record
    from cglsuite.cells.storage.lease import Holder
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue


_log = logging.getLogger(__name__)
NOT_APPLICABLE = 3
TINY_PREFIX = "testing-"
"""The name prefix of the tiny streams used by checks."""


# One cell


@click.command()
@click.option("--scenario", required=True, metavar="NAME", help="A preset listed by `cglsuite list scenarios`, or a tiny stream.")
@click.option("--method", required=True, metavar="NAME", help="A method listed by `cglsuite list methods`.")
@click.option("--backbone", metavar="NAME", help="A backbone listed by `cglsuite list backbones`.  [default: the preset's]")
@click.option("--pretraining", metavar="NAME", help="A scheme for self-supervised pre-training on the first task.  [default: none]")
@set_option
@tasks_option
@order_seed_option
@split_seed_option
@init_seed_option
@device_option
@numerics_option
@click.option(
    "--threads", type=Whole(1, MAX_PROCESSES), default=1, show_default=True, help="Number of threads, which is part of the cell's key."
)
@store_option
@read_option
@checkpoint_option
@click.option("--json", "as_json", is_flag=True, help="Print the whole record as one JSON object.")
@watch_option
@quiet_option
@click.option("--rerun", is_flag=True, help="Train again even if the store has a result.")
@click.option(
    "--split-forgetting", is_flag=True, help="Train once more to split forgetting into graph drift and weight changes (for growing graphs)."
)
@files_options
@pass_session
@click.pass_context
def cell(
    ctx: click.Context,
    session: Session,
    scenario: str,
    method: str,
    backbone: str | None,
    pretraining: str | None,
    assignments: Sequence[str],
    tasks: int | None,
    order_seed: int,
    split_seed: int,
    init_seed: int,
    device: str | None,
    threads: int,
    store_path: Path | None,
    checkpoint_every_s: float | None,
    as_json: bool,
    watch: Sequence[str],
    quiet: bool,
    rerun: bool,
    split_forgetting: bool,
) -> None:
    """Run one cell, unless the store has its result, and print its performance matrix, metrics, times and memory.

    If the graph around old queries grows, --split-forgetting splits forgetting into two parts: the effect of the new graph on the old
    weights (drift), and the effect of replacing the old weights with the new ones. The split is saved in the folder splits of the store.

    Exit status: 0 done, 1 failed (the record gives the reason), 2 invalid request, 3 not applicable.
    """
    from cglsuite.cells.code.inputs import watch as watch_inputs
    from cglsuite.cells.device import check_device
    from cglsuite.cells.plan import CellRequest, plan_cell, with_inputs
    from cglsuite.cells.portable import device_and_numerics

    store = open_store(store_path)
    ctx.with_resource(watch_inputs(store.path))
    catalogue = session.catalogue()
    if scenario.startswith(TINY_PREFIX):
        from cglsuite.testing import tiny_catalogue

        catalogue = tiny_catalogue(catalogue)
        scenario = next((name for name in catalogue.names("scenario") if name.partition("@")[0] == scenario), scenario)
    check_tasks(catalogue, scenario, tasks)
    print_derivations(catalogue, [scenario])
    overrides = overrides_of(assignments, device, tasks=tasks, checkpoint_every_s=checkpoint_every_s)
    device, numerics = device_and_numerics(overrides.device or "auto", overrides.numerics or "auto", in_this_process=True)
    check_device(device)
    request = CellRequest(
        scenario=scenario,
        method=method,
        backbone=backbone,
        overrides=dict(overrides.values) | ({} if pretraining is None else {PRETRAINING_SCHEME: pretraining}),
        seeds=Seeds(order=order_seed, split=split_seed, init=init_seed),
        threads=threads,
        device=device,
        numerics=numerics,
    )
    [planned] = with_inputs([plan_cell(request, catalogue)], store, catalogue, to_run=True)
    if not planned.ready:
        if as_json:
            print_json({"key": None, "status": "skipped", "reason": planned.reason, "request": request.to_json()})
        raise NotApplicable(f"{request.label}: not applicable: {planned.reason}")
    if split_forgetting:
        from cglsuite.reports.studies.findings.compute import keep_split

        _check_split(planned)
    record = _obtain(planned, catalogue, store, rerun, watch, quiet, overrides.checkpoint_every_s)
    split = _split(planned, catalogue) if split_forgetting and record.done else None
    if split is not None:
        keep_split(store.path, record.key, _split_values(split))
    if as_json:
        print_json(record.to_json() | ({} if split is None else {"forgetting": _split_values(split)}))
    else:
        echo(_record_text(record, list(catalogue.specs(MetricSpec).values())))
        if split is not None:
            echo(_split_table(split, is_fraction(record)))
    if not record.done:
        _log.error("%s: %s", record.label, ended(record.status, record.reason))
        ctx.exit(NOT_APPLICABLE if record.status == "skipped" else FAILED)


def _obtain(
    planned: PlannedCell,
    catalogue: Catalogue,
    store: Store,
    rerun: bool,
    watch: Sequence[str],
    quiet: bool,
    checkpoint_every_s: float | None,
) -> Record:
    from cglsuite.campaigns.executors.progress import EpochProgress, say, visible
    from cglsuite.cells.obtain import obtain_record
    from cglsuite.cells.plan import CellOptions

    observers: list[Observer] = []
    if watch:
        from cglsuite.cells.observing import observer_of

        observers += [observer_of(text, store.path / "watched") for text in watch]
        if not rerun and store.cached(planned.key) is not None:
            say("nothing to watch: the store already has the result of this cell (--rerun trains it again)")
    progress = [] if quiet or not visible() else [EpochProgress(planned.request.method)]

    def waits(holder: Holder) -> None:
        resume_collector()  # perhaps for hours
        say(f"waiting: this cell is being run by {holder.wait}")

    with contextlib.ExitStack() as stack:
        for bar in progress:
            stack.callback(bar.close)
        options = CellOptions(observers=[*observers, *progress], checkpoint_every_s=checkpoint_every_s)
        return obtain_record(planned, catalogue, store, options, rerun=rerun, on_wait=waits)


def _check_split(planned: PlannedCell) -> None:
    """Raise an error before training if the forgetting of the cell cannot be split."""
    from cglsuite.cells.diagnostics import why_no_split

    if planned.cell is not None and (reason := why_no_split(planned.cell.scenario)):
        raise NotApplicable(f"{planned.request.label}: --split-forgetting: {reason}")


def _split(planned: PlannedCell, catalogue: Catalogue) -> ForgettingSplit | None:
    from cglsuite.cells.diagnostics import split_forgetting

    return None if planned.cell is None else split_forgetting(planned.cell, catalogue)


def _split_values(split: ForgettingSplit) -> dict[str, Any]:
    by_task = {"by_task": split.by_task, "drift_by_task": split.drift_by_task, "weights_by_task": split.weights_by_task}
    return {
        "forgetting": split.forgetting,
        "drift": split.drift,
        "weights": split.weights,
        **{name: values.tolist() for name, values in by_task.items()},
    }


def _split_table(split: ForgettingSplit, fraction: bool) -> str:
    """Format a table with a row for each task that can be forgotten and a row of means."""

    def shown(values: Sequence[float]) -> list[str]:
        return [f"{100 * value:+.1f}" if fraction else f"{value:+.4g}" for value in values]

    parts = zip(split.by_task, split.drift_by_task, split.weights_by_task, strict=True)
    rows = [[f"task {j}", *shown(part)] for j, part in enumerate(parts, 1)]
    rows.append(["mean", *shown((split.forgetting, split.drift, split.weights))])
    title = f"forgetting from the diagonal{', points' if fraction else ''}, split"
    return "\n".join(["", heading(title), table(["", "FORGETTING", "DRIFT OF THE GRAPH", "CHANGE OF WEIGHTS"], rows, indent="  ")])


def _record_text(record: Record, metrics: Sequence[MetricSpec]) -> str:
    """Format a record as text: fractions in percent, errors unscaled, metrics with definition and direction, shares of time."""
    lines = [heading(f"{record.label}: {record.status}"), properties(record.facts)]
    if record.matrix:
        n_tasks, steps = len(record.matrix[0]), record.stream.get("evaluations")
        kind, entry = "latent task" if steps else "task", _percent if is_fraction(record) else _plain
        header = ["after step" if steps else "after task", *(f"{kind} {j + 1}" for j in range(n_tasks)), ""]
        rows = [["none" if k == 0 else str(steps[k] if steps else k), *map(entry, row), ""] for k, row in enumerate(record.matrix)]
        unit = "%" if is_fraction(record) else performance_name(record.scenario)
        lines += ["", heading(f"performance, {unit}"), table(header, rows, indent="  ")]
        if note := queries_note(record.cell["preset"], record.scenario):
            lines.append(paragraph(note, first="  ", rest="  "))
    if record.metrics:
        by_name = {spec.name: spec for spec in metrics}
        lines += ["", heading("metrics"), table(["METRIC", "VALUE", "BETTER", "DEFINITION"], _metric_rows(record, by_name), indent="  ")]
    if record.warnings:
        lines += ["", heading("read with care"), *(paragraph(text, first="  ", rest="  ") for text in record.warnings)]
    if record.timings_s:
        lines += ["", heading("time"), properties(_shares(record.timings_s))]
    if record.memory:
        lines += ["", heading("memory"), properties((name.replace("_", " "), _amount_text(name, v)) for name, v in record.memory.items())]
    if record.counters:
        lines += ["", heading("counted"), properties((name.replace("_", " "), str(v)) for name, v in record.counters.items())]
    return "\n".join(lines)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _metric_rows(record: Record, specs: dict[str, MetricSpec]) -> Iterator[list[str]]:
    for name, value in record.metrics.items():
        spec = specs.get(name)
        if spec and spec.excluded(record.scenario):
            continue
        low, high = spec.range if spec else (-math.inf, math.inf)
        sign = "+" if low < 0 else ""
        if value is None:
            shown = why_absent(spec, record) if spec else "its metric is not installed"
        else:
            shown = f"{100 * value:{sign}.1f}%" if max(-low, high) <= 1 and is_fraction(record) else f"{value:{sign}.4g}"
        yield [name, shown, spec.better if spec else "", spec.formula if spec else ""]


def _shares(timings: Any) -> Iterator[tuple[str, str]]:
    parts = {name: value for name, value in timings.items() if name != "total" and value is not None}
    parts = dict(sorted(parts.items(), key=lambda part: -part[1]))
    total = timings.get("total") or math.fsum(parts.values())
    for name, value in parts.items():
        yield name, f"{value:.2f} s ({100 * value / total:.1f}%)" if total else f"{value:.2f} s"
    yield "total", f"{total:.2f} s"


def _amount_text(name: str, value: float | None) -> str:
    if value is None:
        return "no limit" if name.startswith("budget") else "-"
    if name.endswith("bytes"):
        return file_size(value)
    return f"{value:,g}"


# Campaigns


@click.command()
@click.argument("campaign_path", metavar="[CAMPAIGN.toml]", type=FilePath(), required=False)
@click.option("--example", metavar="NAME", help="Copy a bundled campaign, such as demo, to this folder and run it.")
@store_option
@read_option
@click.option("--workers", type=Whole(1, MAX_PROCESSES), help="Worker processes.  [default: $CGLSUITE_WORKERS, else the campaign's]")
@device_option
@numerics_option
@executor_option
@checkpoint_option
@click.option("--detach", is_flag=True, help="Return once the cells are submitted to other machines. Run again to wait for them.")
@click.option(
    "--only",
    metavar="KEY=VALUE",
    multiple=True,
    help="Run only cells that match a glob: method=, scenario=, order_seed=, training.lr=, ...",
)
@click.option(
    "--retry",
    type=click.Choice(SETTLED),
    multiple=True,
    help="Also retrain cells whose records have this status; repeatable.",
)
@click.option("--no-reports", is_flag=True, help="Run cells without rendering reports.")
@watch_option
@quiet_option
@set_option
@click.option("--out", type=FolderPath(), help="Folder for reports.  [default: rendered/NAME next to the file]")
@allow_code_option
@files_options
@pass_session
@click.pass_context
def run(
    ctx: click.Context,
    session: Session,
    campaign_path: Path | None,
    example: str | None,
    store_path: Path | None,
    workers: int | None,
    device: str | None,
    executor: str | None,
    checkpoint_every_s: float | None,
    detach: bool,
    only: Sequence[str],
    retry: Sequence[str],
    no_reports: bool,
    watch: Sequence[str],
    quiet: bool,
    assignments: Sequence[str],
    out: Path | None,
    allow_code: bool,
) -> None:
    """Run the missing cells of a campaign, then render its reports and print their paths to stdout.

    Exit status: 0 ok, 1 a cell or a report failed, 2 invalid request, 3 no cell is applicable, 130 interrupted.
    """
    from cglsuite.campaigns.campaign import load_campaign, write_example
    from cglsuite.campaigns.executors.campaign_run import run_campaign, trainings_text
    from cglsuite.campaigns.executors.progress import say
    from cglsuite.reports.rendering.parameters import check_reports

    if example is not None:
        if campaign_path is not None:
            raise click.UsageError(f"expected either --example {example} or {campaign_path}, not both", ctx)
        campaign_path = write_example(example, Path())
        say(f"{example}: wrote the campaign file {campaign_path} to this folder")
    elif campaign_path is None:
        raise click.UsageError("Missing argument 'CAMPAIGN.toml', or --example NAME.", ctx)
    campaign, store = load_campaign(campaign_path, allow_code=allow_code), open_store(store_path)
    campaign.refuse_code(observers=not watch)
    overrides = overrides_of(assignments, device, workers, executor=executor, checkpoint_every_s=checkpoint_every_s)
    if not no_reports:
        check_reports(campaign, session.catalogue())
    print_derivations(session.catalogue(), campaign.grid.scenarios)
    try:
        outcome = run_campaign(
            campaign,
            session.catalogue(),
            store,
            overrides,
            only=only,
            progress=not quiet,
            detach=detach,
            retry=retry,
            watch=watch or None,
        )
    except KeyboardInterrupt:
        say(f"{campaign.name}: interrupted; finished cells are in {store.path}, run the same command to continue")
        raise
    counts = ", ".join(f"{n} {state}" for state, n in outcome.counts.items())
    cells = "; ".join(filter(None, [f"{len(outcome.states):,} cells", trainings_text(outcome.trainings), f"store {store.path}"]))
    say(f"{campaign.name}: {counts} ({cells})")
    _log_reasons(outcome, logging.WARNING if outcome.all_not_applicable else logging.INFO)
    if not quiet:
        for line in _key_results(store, session.catalogue(), [planned.key for planned, _ in outcome.states if planned.ready]):
            say(line)
    if outcome.all_not_applicable:
        ctx.exit(NOT_APPLICABLE)
    if detach and not outcome.complete:
        return
    rendered = no_reports or not campaign.reports or _render(campaign, session.catalogue(), store, out, overrides)
    if not (outcome.complete and rendered):
        ctx.exit(FAILED)


def _log_reasons(outcome: CampaignOutcome, level: int) -> None:
    """Log why cells are N/A or waiting, once per reason. Failures were logged when they happened."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for planned, state in outcome.states:
        if planned.reason:
            reasons.setdefault((state, planned.reason), []).append(f"{planned.request.scenario} × {planned.request.method}")
    for (state, reason), who in reasons.items():
        _log.log(logging.WARNING if state == "waiting" else level, "%s: %s: %s", ", ".join(dict.fromkeys(who)), state, reason)


_MAX_SCENARIOS = 8


def _key_results(store: Store, catalogue: Catalogue, keys: Sequence[str]) -> Iterator[str]:
    """Yield a line per scenario with results: the best method and its lead."""
    from cglsuite.reports.results.results import store_results
    from cglsuite.reports.site.index import findings

    found = findings(store_results(store, catalogue, keys), catalogue)
    for finding in found[:_MAX_SCENARIOS]:
        yield f"{finding.title}: {' '.join(finding.sentences)}"
    if (more := len(found) - _MAX_SCENARIOS) > 0:
        yield f"and {several(more, 'more scenario')}: see the reports, or `cglsuite results`"


def _render(campaign: Campaign, catalogue: Catalogue, store: Store, out: Path | None, overrides: Overrides) -> bool:
    """Render the campaign's reports, print their paths, and return whether all are complete."""
    from cglsuite.reports import render_campaign

    path = campaign.path
    if path is None:
        raise UsageError(f"campaign {campaign.name!r} was not loaded from a file, so its reports cannot be rendered")
    complete = True
    folder = out or path.parent / "rendered" / campaign.name
    for report in render_campaign(path, store=store.path, out=folder, overrides=overrides, catalogue=catalogue):
        echo(str(report.path))
        if report.status != "done":
            _log.error("report %s: %s: %s", report.path, report.status, report.reason)
            complete = False
    return complete
