"""``cglsuite site RESULTS --out DIR``: the leaderboard of a results folder as static pages."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from cglsuite.base.errors import UsageError
from cglsuite.cli.options import FAILED, FolderPath, Session, files_options, pass_session
from cglsuite.cli.output import echo, print_json

__all__ = ["site"]

_log = logging.getLogger(__name__)


@click.command()
@click.argument("results", metavar="STORE", type=FolderPath())
@click.option("--out", metavar="DIR", type=FolderPath(), required=True, help="Folder of the site; files of an earlier build are replaced.")
@click.option("--title", default="Continual graph learning: results", show_default=True, help="Title of the site.")
@click.option("--json", "as_json", is_flag=True, help="Print one object instead of the path of the index.")
@files_options
@pass_session
def site(session: Session, results: Path, out: Path, title: str, as_json: bool) -> int:
    """Write the leaderboard of all finished records in STORE as static pages, and print the path of the index.

    STORE is a results folder, or one that was pulled. There is a page per scenario, method, data set and paper, an overview across
    scenarios, and feeds in JSON and CSV. Verified records (`cglsuite submit`) and others are never on the same board. The pages fetch
    nothing, and all links are relative: copy DIR to any web server. No data set is needed.

    Exit status: 0 ok; 1 a record cannot be shown (the others are), or the folder cannot be written; 2 wrong request.
    """
    from cglsuite.cells.storage.store import Store
    from cglsuite.commons.hosted.building import build_site

    store = Store(results, quarantine=False)
    if not store.path.is_dir():
        raise UsageError(f"there is no store at {store.path}: name the folder that holds cells/, or one that was pulled")
    if not title.strip():
        raise UsageError("--title is empty: expected a text")
    built = build_site(store, out, session.catalogue(), title=title, told=lambda text: _log.info("%s", text))
    for problem in store.problems:
        _log.warning("not shown: %s: %s", problem.path, problem.reason)
    for key, reason in built.faults.items():
        _log.warning("not shown: record %s: %s", key[:12], reason)
    if as_json:
        print_json({**vars(built), "index": str(built.index), "unreadable": len(store.problems)})
    else:
        echo(str(built.index))
    return FAILED if store.problems or built.faults else 0
