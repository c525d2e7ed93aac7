"""Commands of the command line: the spec for plugins' commands, and the suite's own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from cglsuite.specs.plugins import PluginSpec


@dataclass(frozen=True, kw_only=True)
class CommandSpec(PluginSpec):
    """A subcommand of ``cglsuite``: ``factory`` names a click command, whose module is imported when the command is used.

    The command is started by ``name``; ``summary`` is its line in ``cglsuite --help``. The suite's own names are taken.
    """

    kind: ClassVar[str] = "command"
    naming: ClassVar[tuple[re.Pattern[str], str]] = (
        re.compile(r"[a-z][a-z0-9-]*"),
        "lower-case letters, digits and -, beginning with a letter",
    )

    factory: str


CORE_COMMANDS: tuple[CommandSpec, ...] = tuple(
    CommandSpec(name=name, summary=summary, factory=f"cglsuite.cli.commands.{place}")
    for name, place, summary in (
        ("cell", "cells:cell", "Run one cell and print its metrics."),
        ("check", "check:check", "Check that anything in the catalogue keeps its contract."),
        ("data", "data:data", "Say which data sets are here, download what is missing, verify what is here."),
        ("diff", "store:diff", "Compare two campaigns or stores: settings, cells, and differences of means."),
        ("export", "export:export", "Write the splits of a scenario's stream as npz with hashes, for use elsewhere."),
        ("list", "catalogue:list_names", "List what plugins provide: datasets, scenarios, methods, ..."),
        ("merge", "exchange:merge", "Merge the records of several stores; where two results differ, both are kept."),
        ("migrate", "migrate:migrate", "Re-key records after source changes that leave results bit-identical."),
        ("new", "check:new", "Write a package for your own method, dataset, or any other kind."),
        ("notebook", "catalogue:notebook", "Copy an installed notebook, to open and change in Jupyter."),
        ("plugins", "catalogue:plugins", "List installed plugins and their state; diagnose them."),
        ("publish", "exchange:publish", "Publish the records of a store in a folder or a bucket, for others to pull."),
        ("pull", "exchange:pull", "Pull published records into a store, verified."),
        ("report", "report:report", "Render the reports of a campaign from stored records."),
        ("reproduce", "reproduce:reproduce", "Rerun published experiments; write a ledger that compares the results."),
        ("results", "results:results", "Write stored results as CSV, JSON or Parquet."),
        ("run", "cells:run", "Run the missing cells of a campaign, then render its reports."),
        ("scenarios", "catalogue:scenarios", "Compare scenario presets field by field."),
        ("show", "catalogue:show", "Show one dataset, scenario, method, ... with all its hyper-parameters or switches."),
        ("site", "report:site", "Write the leaderboard of a results folder as static pages, ready to host."),
        ("status", "results:status", "Count a campaign's finished, missing and failed cells."),
        ("store", "store:store", "Show what lies in a store, and prune what nobody needs."),
        ("submit", "exchange:submit", "Check the records of a third party, rerun a sample, and accept what holds."),
        ("table", "report:table", "Write one table of several scenarios for a paper: LaTeX, Markdown or CSV."),
    )
)
"""The suite's own commands. Every catalogue has them, even without plugins, and no plugin can replace one."""
