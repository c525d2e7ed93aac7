"""``cglsuite merge A B``: bring the records of stores together."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cglsuite.cli.options import FolderPath
from cglsuite.cli.output import echo, print_json, table
from cglsuite.cli.requests import FAILED
from cglsuite.errors import UsageError

if TYPE_CHECKING:
    from cglsuite.cells.storage.merging import Conflict, Merge

__all__ = ["merge"]

_log = logging.getLogger(__name__)


@click.command()
@click.argument("stores", metavar="STORE...", nargs=-1, required=True, type=FolderPath())
@click.option("--into", "into", metavar="STORE", type=FolderPath(), help="Merge into this store, which may be new.  [default: the first]")
@click.option("--plan", "--dry-run", "plan", is_flag=True, help="Print what would be done, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one object instead of text.")
def merge(stores: Sequence[Path], into: Path | None, plan: bool, as_json: bool) -> int:
    """Merge the records of the second and all further STOREs into the first, or of all into --into.

    A key names the same cell everywhere, so this is a union by key. A finished record counts before an unfinished one, and equal results
    are one record. If two finished records of a cell differ, the target's stays and the other is kept in its folder conflicts/; both
    are reported with CPU, torch and data hash. Sources are only read. What cannot be read is named and left where it is. An interrupted
    merge can be repeated.

    Exit status: 0 all is merged; 1 results differ, a file cannot be read, or a runner holds a cell; 2 wrong request.
    """  # fmt: skip
    from cglsuite.cells.storage.merging import merge as merged
    from cglsuite.cells.storage.store import Store

    if into is None and len(stores) < 2:
        raise UsageError("one store is given; expected two or more, or --into STORE: cglsuite merge A B brings the records of B into A")
    target = Store(stores[0] if into is None else into, quarantine=not plan)
    if into is None and not target.path.is_dir():
        raise UsageError(f"there is no store at {target.path}: name the folder that holds cells/, or a new one with --into")
    sources = [Store(path, quarantine=False) for path in (stores[1:] if into is None else stores)]
    done = merged(sources, target, plan=plan)
    if as_json:
        print_json({"into": str(target.path), "plan": plan, "sources": [_json(one) for one in done]})
    else:
        _print(done, target.path, plan)
    _log_problems(done)
    return 0 if all(one.clean for one in done) else FAILED


def _json(one: Merge) -> dict[str, Any]:
    return {
        "source": str(one.source),
        "new": one.new,
        "finished": one.finished,
        "same": one.same,
        "kept": one.kept,
        "conflicts": [{**vars(conflict), "kept": str(conflict.kept)} for conflict in one.conflicts],
        "held": [{"key": key, "holder": holder} for key, holder in one.held],
        "unreadable": [{"file": str(p.path), "reason": p.reason, "moved_to": p.moved_to and str(p.moved_to)} for p in one.unreadable],
        "searches": one.searches,
        "unlike_searches": [str(path) for path in one.unlike_searches],
    }


def _print(done: Sequence[Merge], target: Path, plan: bool) -> None:
    echo(f"{'Would merge' if plan else 'Merged'} into {target}:")
    header = ["NEW", "FINISHED", "SAME", "KEPT", "UNLIKE", "UNREADABLE", "HELD", "SEARCHES", "SOURCE"]
    counts = [(m.new, m.finished, m.same, m.kept, m.conflicts, m.unreadable, m.held, m.searches) for m in done]
    rows = [[n if isinstance(n, int) else len(n) for n in row] for row in counts]
    echo(table(header, [[*(n or "" for n in row), str(m.source)] for row, m in zip(rows, done, strict=True)]))
    for conflict in (conflict for one in done for conflict in one.conflicts):
        _print_conflict(conflict)


def _print_conflict(conflict: Conflict) -> None:
    echo(f"\n{conflict.key[:12]} {conflict.label}: the results differ")
    for difference in conflict.differences:
        echo(f"  {difference}")
    for name, side in (("here", conflict.here), ("there", conflict.there)):
        if side:
            echo(f"  {name}: {side['cpu']}, torch {side['torch']}, data {str(side['data'])[:12]}: {side['file']}")
    echo(f"  kept as {conflict.kept}")


def _log_problems(done: Sequence[Merge]) -> None:
    for one in done:
        for problem in one.unreadable:
            _log.error("%s: %s (%s)", problem.path, problem.reason, f"moved to {problem.moved_to}" if problem.moved_to else "left there")
        for key, holder in one.held:
            _log.error("%s is being run in the target by %s: merge again once it has ended", key[:12], holder)
        for path in one.unlike_searches:
            _log.error("the outcome of a search differs from the target's: kept as %s", path)
    conflicts = sum(len(one.conflicts) for one in done)
    if conflicts:
        _log.error("%d cells have two results that differ: see conflicts/", conflicts)
