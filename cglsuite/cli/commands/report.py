"""Commands that write pages from stored records, without training: ``report``, ``table`` and ``site``.

``cglsuite report`` renders the reports of campaigns, ``table`` writes one table for a paper, and ``site RESULTS --out DIR`` writes the
leaderboard of a results folder as static pages.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cglsuite.base.errors import UsageError
from cglsuite.cli.options import (
    FAILED,
    AnyPath,
    FilePath,
    FolderPath,
    Seconds,
    Session,
    allow_code_option,
    files_options,
    open_store,
    overrides_of,
    pass_session,
    read_option,
    set_option,
    shown_campaign,
)
from cglsuite.cli.output import echo, print_json

_log = logging.getLogger(__name__)


@click.command()
@click.argument("campaigns", metavar="CAMPAIGN.toml...", type=FilePath(), nargs=-1, required=True)
@click.option("--out", type=FolderPath(),
              help="Folder for the pages; several campaigns get a subfolder each.  [default: rendered/NAME next to the file]")  # fmt: skip
@click.option("--store", type=FolderPath(), help="Folder of records.  [default: $CGLSUITE_STORE, else ./.cglsuite]")
@read_option
@click.option(
    "--only", metavar="KEY=VALUE", multiple=True,
    help="Report only on cells that match a glob: method=, scenario=, order_seed=, training.lr=, ... Needs --out.",
)  # fmt: skip
@click.option(
    "--cell-timeout", "cell_timeout_s", type=Seconds(zero=True), default=3600.0, show_default=True,
    help="Time limit in seconds for one notebook cell; 0 means no limit.",
)  # fmt: skip
@click.option("--all", "every", is_flag=True, help="Also render all other notebooks that can report on a campaign.")
@click.option("--force", is_flag=True, help="Render every page, even if it is up to date.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array with one object per report.")
@allow_code_option
@files_options
@pass_session
def report(
    session: Session,
    campaigns: tuple[Path, ...],
    out: Path | None,
    store: Path | None,
    only: tuple[str, ...],
    cell_timeout_s: float,
    every: bool,
    force: bool,
    as_json: bool,
    allow_code: bool,
) -> int:
    """Render all reports of campaigns as self-contained pages, with an index.html of links and leaderboards for each campaign.

    A complete page is not rendered again if its records, notebook, parameters and code are unchanged. Prints the path of each page. If a
    report fails, its page states the reason and the exit status is 1.
    """
    from cglsuite.cli.output import echo, print_json
    from cglsuite.reports.site.index import render_campaign

    if only and out is None:
        raise UsageError("--only needs --out: pages about some cells would overwrite the pages about all cells; choose another folder")
    loaded = [shown_campaign(path, allow_code) for path in campaigns]  # registers the files that they name before the catalogue is loaded
    parents = [out if out is not None else path.parent / "rendered" for path in campaigns]
    folders = [parent / campaign.name for parent, campaign in zip(parents, loaded, strict=True)] if len(campaigns) > 1 else [out]
    if twice := next((folder for n, folder in enumerate(folders) if folder in folders[:n]), None):
        raise UsageError(f"two campaigns are named {twice.name!r} and would both write to {twice}: render them one at a time with --out")
    how: dict[str, Any] = {"store": store, "only": only, "cell_timeout_s": cell_timeout_s or None, "every": every, "force": force}
    rendered = []
    for path, folder in zip(campaigns, folders, strict=True):
        rendered += render_campaign(path, out=folder, catalogue=session.catalogue(), **how)
    if as_json:
        print_json([{**dataclasses.asdict(r), "path": str(r.path)} for r in rendered])
    else:
        echo("\n".join(str(r.path) for r in rendered))
    for failed in (r for r in rendered if not r.done):
        _log.error("report %s: %s: %s", failed.path, failed.status, failed.reason)
    return 0 if all(r.done for r in rendered) else 1


@click.command()
@click.argument("source", metavar="STORE|CAMPAIGN.toml", type=AnyPath())
@click.option("--store", type=FolderPath(), help="Folder of the campaign's records.  [default: $CGLSUITE_STORE, else ./.cglsuite]")
@read_option
@click.option("--rows", type=click.Choice(["method", "scenario"]), default="method", show_default=True, help="Contents of the rows.")
@click.option("--columns", type=click.Choice(["method", "scenario"]), help="Contents of the columns.  [default: the other one]")
@click.option("--metrics", metavar="NAMES", default="", help="Metrics by name or label: `ap,af`.  [default: the leaderboards' first]")
@click.option(
    "--spread", type=click.Choice(["std", "interval", "none"]), default="std", show_default=True,
    help="Meaning of ±: the sample standard deviation, or half the width of the 95% interval.",
)  # fmt: skip
@click.option("--format", "form", type=click.Choice(["latex", "csv", "md"]), default="md", show_default=True, help="Format of the table.")
@click.option("--only", metavar="KEY=VALUE", multiple=True, help="Include only matching cells: method=, scenario=, training.lr=, ...")
@set_option
@click.option("--output", type=FilePath(), help="File to write.  [default: stdout]")
@allow_code_option
@files_options
@pass_session
def table(
    session: Session,
    source: Path,
    store: Path | None,
    rows: str,
    columns: str | None,
    metrics: str,
    spread: str,
    form: str,
    only: tuple[str, ...],
    assignments: Sequence[str],
    output: Path | None,
    allow_code: bool,
) -> int:
    """Write the results of several scenarios as one table for a paper, with the numbers and tests of the leaderboards.

    For each scenario and metric, the best mean among the learners is marked, as is every learner that does not differ significantly from
    it. Joint training is not marked. The table states what ± shows and where no test was possible.
    """
    from cglsuite.base.atomic import write_atomic
    from cglsuite.reports.results.results import load_campaign_results, store_results
    from cglsuite.reports.site.downloads import results_table

    catalogue = session.catalogue
    if source.is_dir():
        if store is not None or only or assignments:
            raise UsageError(f"{source} is a store, but --store, --only and --set apply only to a campaign: name a campaign file instead")
        results = store_results(open_store(source), catalogue())
    else:
        campaign = shown_campaign(source, allow_code)
        results = load_campaign_results(campaign, store, overrides=overrides_of(assignments), only=only, catalogue=catalogue())
    across = columns or ("scenario" if rows == "method" else "method")
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    text = results_table(results, catalogue(), rows=rows, columns=across, metrics=names, spread=spread).render(form)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_atomic(output, text.encode(), option="--output")
    return 0


@click.command()
@click.argument("results", metavar="STORE", type=FolderPath())
@click.option("--out", metavar="DIR", type=FolderPath(), required=True, help="Folder for the site. Files of an earlier build are replaced.")
@click.option("--title", default="Continual graph learning: results", show_default=True, help="Title of the site.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the path of the index.")
@files_options
@pass_session
def site(session: Session, results: Path, out: Path, title: str, as_json: bool) -> int:
    """Write the leaderboard of all finished records in STORE as static pages, and print the path of the index.

    STORE is a results folder or a pulled store. The site has a page per scenario, method, data set and paper, an overview of all
    scenarios, and feeds in JSON and CSV. Verified records (`cglsuite submit`) and unverified ones are never on the same leaderboard. The
    pages load nothing from other sites and all links are relative, so you can copy DIR to any web server. No data set is needed.

    Exit status: 0 ok; 1 a record cannot be shown (the others are) or the folder cannot be written; 2 invalid request.
    """
    from cglsuite.cells.storage.store import Store
    from cglsuite.commons.hosted.building import build_site

    store = Store(results, quarantine=False)
    if not store.path.is_dir():
        raise UsageError(f"there is no store at {store.path}: name the folder that contains cells/, or a pulled store")
    if not title.strip():
        raise UsageError("--title is empty: expected some text")
    built = build_site(store, out, session.catalogue(), title=title, notify=lambda text: _log.info("%s", text))
    for problem in store.problems:
        _log.warning("not shown: %s: %s", problem.path, problem.reason)
    for key, reason in built.faults.items():
        _log.warning("not shown: record %s: %s", key[:12], reason)
    if as_json:
        print_json({**vars(built), "index": str(built.index), "unreadable": len(store.problems)})
    else:
        echo(str(built.index))
    return FAILED if store.problems or built.faults else 0
