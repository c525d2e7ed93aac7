"""``cglsuite merge``, ``publish`` and ``pull``: bring the records of stores together, here and elsewhere."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cglsuite.base.errors import UsageError
from cglsuite.base.markup import file_size, several
from cglsuite.cli.options import FAILED, FolderPath, quiet_option
from cglsuite.cli.output import echo, print_json, table

if TYPE_CHECKING:
    from cglsuite.cells.storage.packed import Problem
    from cglsuite.commons.merging import Conflict, Merge

__all__ = ["merge", "publish", "pull"]

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
    from cglsuite.cells.storage.store import Store
    from cglsuite.commons.merging import merge as merged

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


@click.command()
@click.argument("store_path", metavar="STORE", type=FolderPath())
@click.argument("url", metavar="DIR|s3://BUCKET/FOLDER")
@click.option("--curves", is_flag=True, help="Publish curves and fingerprints too: several times the bytes of all records.")
@quiet_option
@click.option("--json", "as_json", is_flag=True, help="Print one object instead of text.")
def publish(store_path: Path, url: str, curves: bool, quiet: bool, as_json: bool) -> int:
    """Publish the records of STORE in a folder or a bucket, for others to pull.

    Records that are not published yet are written as shards, many in a file, each named by the digest of its content, and are added to the
    manifest, in which no entry is ever changed. So publishing again writes only what is new or finished since, several may publish to one
    place at once, and a command that was interrupted can be repeated. The rules are those of `cglsuite merge`: of two finished records of a
    cell that differ, both are published and reported. Outcomes of searches are published too, checkpoints are not, curves with --curves.
    Records of an earlier schema are published in today's; STORE may be a publication, which DIR then holds anew, as one.

    Buckets need the extra: python -m pip install 'cglsuite[s3]'. Credentials and the server's address are read as AWS's own tools read
    them (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ...).

    Exit status: 0 all is published; 1 results differ, or a file cannot be read or written; 2 wrong request.
    """  # fmt: skip
    from cglsuite.cells.storage.store import Store
    from cglsuite.commons.publish import publish as published

    with _bar(quiet) as progress:
        done = published(Store(store_path, quarantine=False), url, curves=curves, progress=progress)
    facts = {"records": done.records, "shards": done.shards, "curves": done.curves, "bytes": done.written_bytes, "entry": done.entry}
    if as_json:
        print_json({"store": str(store_path), "url": _shown(url), **facts, "merge": _json(done.merge)})
    else:
        what = (
            f"{several(done.records, 'record')} in {several(done.shards, 'shard')}, "
            + (f"curves of {several(done.curves, 'record')}, " if done.curves else "")
            + file_size(done.written_bytes)
            if done.entry
            else "nothing is new"
        )
        echo(f"Published to {_shown(url)}: {what}")
        _print_counts([done.merge])
        _print_conflicts([done.merge])
    _log_problems([done.merge], apart="both are published")
    return 0 if done.merge.clean else FAILED


@click.command()
@click.argument("url", metavar="URL")
@click.option("--into", "into", metavar="STORE", type=FolderPath(), help="Store to pull into.  [default: $CGLSUITE_STORE or .cglsuite]")
@quiet_option
@click.option("--json", "as_json", is_flag=True, help="Print one object instead of text.")
def pull(url: str, into: Path | None, quiet: bool, as_json: bool) -> int:
    """Pull published records into a store, which may be new: from a folder, s3://, http:// or https://.

    Only shards that the store lacks are copied. Each is verified: its digest, and the digest, schema and bounds of every record in it.
    Then `cglsuite run`, `status`, `results` and `report` use the records as if they had been computed here; no data are needed. The rules
    are those of `cglsuite merge`: finished records count before unfinished ones, and of two finished ones that differ, the store's own
    counts and the other is kept in its folder conflicts/. An interrupted pull can be repeated. Nothing from the other side is executed.

    Exit status: 0 all is pulled; 1 results differ, or a shard or an entry cannot be used; 2 wrong request.
    """  # fmt: skip
    from cglsuite.cells.storage.store import Store
    from cglsuite.commons.pull import pull as pulled

    store = Store(into)
    with _bar(quiet) as progress:
        done = pulled(url, store, progress=progress)
    if as_json:
        facts = {"shards": done.shards, "bytes": done.read_bytes, "entries": done.entries, "faults": _problems_json(done.faults)}
        print_json({"store": str(store.path), "url": _shown(url), **facts, "merge": _json(done.merge)})
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


def _shown(url: str) -> str:
    from cglsuite.commons.places import shown_url

    return shown_url(url)


@contextlib.contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr that begins anew with each kind of work; nothing where stderr is no terminal."""
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


def _json(one: Merge) -> dict[str, Any]:
    return {
        "source": str(one.source),
        "new": one.new,
        "finished": one.finished,
        "same": one.same,
        "kept": one.kept,
        "conflicts": [{**vars(conflict), "kept": str(conflict.kept)} for conflict in one.conflicts],
        "held": [{"key": key, "holder": holder} for key, holder in one.held],
        "unreadable": _problems_json(one.unreadable),
        "searches": one.searches,
        "curves": one.curves,
        "unlike_searches": [str(path) for path in one.unlike_searches],
    }


def _problems_json(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    return [{"file": str(p.path), "reason": p.reason, "moved_to": p.moved_to and str(p.moved_to)} for p in problems]


def _print(done: Sequence[Merge], target: Path, plan: bool) -> None:
    echo(f"{'Would merge' if plan else 'Merged'} into {target}:")
    _print_counts(done)
    _print_conflicts(done)


def _print_counts(done: Sequence[Merge]) -> None:
    header = ["NEW", "FINISHED", "SAME", "KEPT", "UNLIKE", "UNREADABLE", "HELD", "SEARCHES", "CURVES", "SOURCE"]
    counts = [(m.new, m.finished, m.same, m.kept, m.conflicts, m.unreadable, m.held, m.searches, m.curves) for m in done]
    rows = [[n if isinstance(n, int) else len(n) for n in row] for row in counts]
    echo(table(header, [[*(n or "" for n in row), str(m.source)] for row, m in zip(rows, done, strict=True)]))


def _print_conflicts(done: Sequence[Merge]) -> None:
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


def _log_problems(done: Sequence[Merge], apart: str = "see conflicts/") -> None:
    for one in done:
        for problem in one.unreadable:
            _log.error("%s: %s (%s)", problem.path, problem.reason, f"moved to {problem.moved_to}" if problem.moved_to else "left there")
        for key, holder in one.held:
            _log.error("%s is being run in the target by %s: merge again once it has ended", key[:12], holder)
        for path in one.unlike_searches:
            _log.error("the outcome of a search differs from the target's: kept as %s", path)
    conflicts = sum(len(one.conflicts) for one in done)
    if conflicts:
        _log.error("%d cells have two results that differ: %s", conflicts, apart)
