"""Commands on stores and streams: ``store`` (show, prune), ``diff`` (two campaigns or stores) and ``export`` (the splits of a stream)."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cglsuite.base.errors import CglsuiteError, UsageError
from cglsuite.base.hashing import plain
from cglsuite.base.markup import file_size, several
from cglsuite.cells.storage.housekeeping import Wanted, shown
from cglsuite.cli.options import (
    AnyPath,
    FilePath,
    FolderPath,
    Session,
    allow_code_option,
    check_tasks,
    files_options,
    open_store,
    order_seed_option,
    pass_session,
    read_option,
    set_option,
    split_seed_option,
    store_option,
    tasks_option,
    with_tasks,
)
from cglsuite.cli.output import echo, heading, print_json, table
from cglsuite.specs import Seeds, switches
from cglsuite.study.display import shown_value

if TYPE_CHECKING:
    from cglsuite.cells.plan import PlannedCell
    from cglsuite.cells.storage.housekeeping import Item, Prune
    from cglsuite.cells.storage.store import Store
    from cglsuite.commons.merging import Comparison, MeanDifference
    from cglsuite.host import Catalogue

_SHOWN = 20
_campaigns = click.argument("campaigns", metavar="[CAMPAIGN.toml...]", type=FilePath(), nargs=-1)


@click.group()
def store() -> None:
    """Show the contents of a store, and prune files that are no longer needed."""


@store.command()
@_campaigns
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of objects with kind, owner, campaign, files and bytes.")
@allow_code_option
@files_options
@pass_session
def show(session: Session, campaigns: Sequence[Path], store_path: Path | None, as_json: bool, allow_code: bool) -> None:
    """Print the size of a store by kind of file and owner, with separate rows for the files that each CAMPAIGN needs.

    The kinds are records, checkpoints, curves, code of users, caches, left-over (leases, attempts, plans, jobs, unreadable files) and
    trash.
    """
    from cglsuite.cells.storage.housekeeping import usage

    opened = open_store(store_path, must_exist=True)
    cells = _cells(campaigns, session, opened, allow_code)
    keys = {name: {p.key for p in planned if p.ready} for name, planned in cells.items()}
    families = {name: _families(planned, session.catalogue()) for name, planned in cells.items()}
    uses = usage(opened, keys, families)
    if as_json:
        print_json([dataclasses.asdict(use) for use in uses])
        return
    rows = [[use.kind, use.campaign, use.owner, f"{use.files:,}", file_size(use.bytes)] for use in uses]
    total = ["total", "", "", f"{sum(use.files for use in uses):,}", file_size(sum(use.bytes for use in uses))]
    echo(table(["KIND", "CAMPAIGN", "OWNER", "FILES", "SIZE"], [*rows, total]))


@store.command()
@_campaigns
@store_option
@click.option("--records", is_flag=True, help="Also move records to the trash if none of the given campaigns needs them.")
@click.option("--yes", is_flag=True, help="Prune the files. Without this option, only the plan is printed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: files to prune, files to keep and why, and trash to empty.")
@allow_code_option
@files_options
@pass_session
def prune(
    session: Session,
    campaigns: Sequence[Path],
    store_path: Path | None,
    records: bool,
    yes: bool,
    as_json: bool,
    allow_code: bool,
) -> None:
    """Remove checkpoints that no cell needs, failed attempts, and user code that no plan or record uses.

    Checkpoints that are needed by unfinished cells of the given campaigns, stored plans or jobs are kept. Records and curves are moved to
    the store's trash folder, which the next prune empties. Only your own files are affected. Files that a runner holds, that belong to a
    stored job, or that are less than a day old are kept and listed with the reason.
    """
    from cglsuite.cells.storage.housekeeping import Pruning, stored_plans

    if records and not campaigns:
        raise UsageError("--records prunes records that no campaign needs: name the campaigns whose records must be kept")
    opened = open_store(store_path, must_exist=True)
    plans = stored_plans(opened)
    pruning = Pruning(opened, _wanted(campaigns, session, opened, plans, allow_code), plans, records=records)
    plan = pruning.plan()
    if not as_json:
        echo("\n".join(_lines(plan, opened)))
    done = pruning.carry_out(plan) if yes else plan
    if as_json:
        going, staying = ([_json(item, opened) for item in items] for items in (done.going, done.staying))
        trash = [{"path": shown(path, opened.path), "bytes": size} for path, size in done.trash]
        print_json({"store": str(opened.path), "done": yes, "prune": going, "skipped": staying, "trash": trash, "notes": list(done.notes)})
    elif yes:
        planned = {item.path for item in plan.staying}
        for item in done.staying:
            if item.path not in planned:
                echo(f"kept {shown(item.path, opened.path)}: {item.skipped}")
        echo(f"pruned {several(len(done.going), 'file')}, {file_size(sum(item.bytes for item in done.going))}")
    elif plan.going or plan.trash:
        echo("Nothing is changed yet: --yes prunes these.")


def _json(item: Item, opened: Store) -> dict[str, Any]:
    facts = {"path": shown(item.path, opened.path), "kind": item.kind, "bytes": item.bytes, "why": item.why}
    return facts | ({"skipped": item.skipped} if item.skipped else {})


def _lines(plan: Prune, opened: Store) -> Iterable[str]:
    for path, size in plan.trash:
        yield f"deleted permanently, from the trash of an earlier prune: {shown(path, opened.path)} ({file_size(size)})"
    if plan.going:
        yield table(
            ["PRUNE", "KIND", "SIZE", "WHY"],
            [[shown(item.path, opened.path), item.kind, file_size(item.bytes), item.why] for item in plan.going],
        )
        sizes = Counter[str]()
        for item in plan.going:
            sizes[item.kind] += item.bytes
        yield ", ".join(f"{file_size(size)} of {kind}" for kind, size in sorted(sizes.items()))
    else:
        yield f"nothing to prune in {opened.path}"
    for item in plan.staying:
        yield f"kept {shown(item.path, opened.path)}: {item.skipped}"
    yield from plan.notes


def _cells(campaigns: Sequence[Path], session: Session, opened: Store, allow_code: bool) -> dict[str, list[PlannedCell]]:
    """Return the cells of the grid and the searches of each campaign, by campaign file."""
    from cglsuite.campaigns.campaign import load_campaign
    from cglsuite.campaigns.planning import plan_campaign, plan_search

    cells = {}
    for path in campaigns:
        campaign = load_campaign(path, allow_code=allow_code)
        trials = [cell for search in plan_search(campaign, session.catalogue(), store=opened) for cell in search.cells]
        cells[str(path)] = [*plan_campaign(campaign, session.catalogue(), store=opened), *trials]
    return cells


def _families(cells: Iterable[PlannedCell], catalogue: Catalogue) -> set[str]:
    """Return the name prefixes of the checkpoints of cells."""
    from cglsuite.cells import keys

    return {name for planned in cells if planned.cell is not None for name in keys.prefix_keys(planned.cell, catalogue)}


def _wanted(campaigns: Sequence[Path], session: Session, opened: Store, plans: Any, allow_code: bool) -> Wanted:
    """Return what the given campaigns and the stored plans still need."""
    from cglsuite.cells.plan import plan_cells

    catalogue = session.catalogue()
    planned = [cell for cells in _cells(campaigns, session, opened, allow_code).values() for cell in cells]
    keys = {p.key for p in planned if p.ready} if campaigns else None
    unfinished = set(opened.unfinished(p.key for p in planned if p.ready))
    needed = [p for p in planned if p.key in unfinished]
    try:
        for name, plan in plans.items():
            cells = plan_cells([request for _, request in plan.cells], catalogue)
            if any(not cell.ready or cell.key != key for (key, _), cell in zip(plan.cells, cells, strict=True)):
                return Wanted(keys=keys, families=None, reason=f"the cells of {name} have different keys here")
            needed += cells
    except CglsuiteError as error:
        return Wanted(keys=keys, families=None, reason=f"a stored plan cannot be resolved here ({error})")
    return Wanted(keys=keys, families=frozenset(_families(needed, catalogue)))


@click.command()
@click.argument("a", metavar="A", type=AnyPath())
@click.argument("b", metavar="B", type=AnyPath())
@click.option(
    "--store", "store_path", type=FolderPath(), help="Folder of the campaigns' records.  [default: $CGLSUITE_STORE, else ./.cglsuite]"
)
@read_option
@click.option("--metric", "metrics", metavar="NAME", multiple=True, help="Metric to compare; repeatable.  [default: average_performance]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: settings, cells on one side only, means.")
@allow_code_option
@files_options
@pass_session
def diff(session: Session, a: Path, b: Path, store_path: Path | None, metrics: Sequence[str], as_json: bool, allow_code: bool) -> None:
    """Compare two campaigns (files) or two stores (folders): different settings, cells that exist on only one side, and differences between
    means.

    Cells are paired if they have the same scenario, method, backbone, seeds and values on all other axes. A difference is the mean of A
    minus B over the pairs, with a 95% interval from the test that the design of orders and seeds supports. If no interval is possible, the
    reason is printed.
    """
    from cglsuite.base.errors import UnknownNameError
    from cglsuite.commons.merging import compare_rows

    catalogue = session.catalogue()
    metrics = metrics or ("average_performance",)
    for name in metrics:
        if name not in catalogue.names("metric"):
            raise UnknownNameError("metric", name, catalogue.names("metric"))
    for place in (a, b):
        if not place.is_dir() and place.suffix != ".toml":
            raise UsageError(f"{place}: expected a campaign (a .toml file) or a store (a folder that contains cells/)")
    sides = []
    for place in (a, b):
        if place.is_dir():
            opened, keys = open_store(place, must_exist=True), None
        else:
            opened = open_store(store_path, must_exist=True)
            planned = _cells([place], session, opened, allow_code)[str(place)]
            keys = [p.key for p in planned if p.ready]
        sides.append(list(opened.completed_rows(catalogue, keys)))
    found = compare_rows(sides[0], sides[1], metrics, catalogue)
    if as_json:
        print_json({"a": str(a), "b": str(b), **plain(dataclasses.asdict(found))})
        return
    echo("\n".join(_differences(a, b, found)))


def _differences(a: Path, b: Path, comparison: Comparison) -> Iterable[str]:
    only_a, only_b = len(comparison.only_a), len(comparison.only_b)
    yield f"A: {a}\nB: {b}\n{several(comparison.both, 'cell')} in both, {only_a} in A only, {only_b} in B only"
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for s in comparison.settings:
        grouped.setdefault((s.name, shown_value(s.a), shown_value(s.b)), []).append(f"{s.scenario} × {s.method} × {s.backbone}")
    if grouped:
        rows = [[name, x, y, groups[0] if len(groups) == 1 else f"{len(groups)} groups"] for (name, x, y), groups in grouped.items()]
        yield from ("", heading("settings that differ"), table(["SETTING", "A", "B", "OF"], rows, indent="  "))
    for side, labels in (("A", comparison.only_a), ("B", comparison.only_b)):
        if labels:
            more = [f"  and {len(labels) - _SHOWN} more"] if len(labels) > _SHOWN else []
            yield from ("", heading(f"in {side} only"), *(f"  {label}" for label in labels[:_SHOWN]), *more)
    if comparison.means:
        rows = [
            [m.scenario, m.method, m.backbone, _place(m.place), m.metric, str(m.n), f"{m.a:.4g}", f"{m.b:.4g}", _difference(m)]
            for m in comparison.means
        ]
        header = ["SCENARIO", "METHOD", "BACKBONE", "AT", "METRIC", "PAIRS", "A", "B", "A - B, 95%"]
        yield from ("", heading("differences of means"), table(header, rows, indent="  "))
    yield from comparison.unpaired


def _place(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={shown_value(value)}" for name, value in point.items())


def _difference(mean: MeanDifference) -> str:
    interval = f" [{mean.low:+.4g}, {mean.high:+.4g}]" if not math.isnan(mean.low) else ""
    return f"{mean.estimate:+.4g}{interval}" + (f" ({mean.why})" if mean.why else "")


@click.command()
@click.argument("scenario")
@order_seed_option
@split_seed_option
@set_option
@tasks_option
@click.option("--out", type=FolderPath(), default=Path(), help="Folder for the files.  [default: .]")
@click.option("--force", is_flag=True, help="Overwrite existing files that differ.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: paths, their SHA-256, and the description of the splits.")
@files_options
@pass_session
def export(
    session: Session,
    scenario: str,
    order_seed: int,
    split_seed: int,
    assignments: Sequence[str],
    tasks: int | None,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Build the stream of SCENARIO and write the training, validation and test items of each task.

    Writes two files: NAME.npz (the classes, the global item ids of the three parts, and the outputs of each task) and NAME.json
    (every switch, the seeds, the content hash of the data, versions, and a SHA-256 of each array). Equal inputs give equal files.

    Prints "SHA-256 path" for each file, in the format that sha256sum -c reads. The function cglsuite.streams.exported.read_export reads an
    export and checks every hash.
    """
    from cglsuite.cells.export import export_scenario

    overrides = _overrides(session.catalogue(), scenario, assignments, tasks)
    seeds = Seeds(order=order_seed, split=split_seed)
    written, paths = export_scenario(session.catalogue(), scenario, out, overrides=overrides, seeds=seeds, force=force)
    hashes = written.hashes
    if as_json:
        files = [{"path": str(path), "sha256": hashes[path.name]} for path in paths]
        print_json({"name": written.name, "files": files, "metadata": written.metadata})
    else:
        echo("\n".join(f"{hashes[path.name]}  {path}" for path in paths))


def _overrides(catalogue: Catalogue, scenario: str, assignments: Sequence[str], tasks: int | None) -> dict[str, Any]:
    """Merge the overrides of the command line with those of the environment that affect streams; the others affect training."""
    from cglsuite.campaigns.overrides import Overrides, merge_overrides, parse_overrides

    check_tasks(catalogue, scenario, tasks)
    of_streams = _bare_names(catalogue, scenario)
    environment = Overrides.from_environment().values
    values = {k: v for k, v in environment.items() if k in of_streams or k.startswith(("scenario.", "dataset."))}
    return merge_overrides(values, with_tasks(parse_overrides(assignments, "--set"), tasks))


def _bare_names(catalogue: Catalogue, scenario: str) -> set[str]:
    """Return the names of all switches of a scenario and of the parameters of its dataset."""
    spec = catalogue.scenario(scenario)
    dataset = catalogue.dataset(spec.dataset)
    return {*switches(spec, implicit=True), *(h.name for h in dataset.hyperparameters)}
