"""``cglsuite plugins``: installed plugins and their state; ``cglsuite plugins doctor``: faults and how to fix them."""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Iterable

import click

from cglsuite.base.errors import PluginError
from cglsuite.base.markup import several
from cglsuite.cli.options import Seconds, Session, pass_session
from cglsuite.cli.output import echo, paragraph, print_json, table
from cglsuite.host import PluginRecord
from cglsuite.host.catalogue import load_leniently
from cglsuite.host.discovery import strict_by_environment
from cglsuite.host.doctor import Diagnosis, Fault, diagnose
from cglsuite.study.display.catalogue import provided

__all__ = ["doctor", "plugins"]

_log = logging.getLogger(__name__)
_COLOURS = {"ok": "green", "failed": "red", "blocked": "yellow"}


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print an array of plugin records.")
@click.option("--failed", is_flag=True, help="Only plugins that are quarantined.")
@pass_session
@click.pass_context
def plugins(ctx: click.Context, session: Session, as_json: bool, failed: bool) -> None:
    """List installed plugins: version, state, how many hooks they implement and what they provide.

    With --strict, the exit status is 4 if any plugin failed or a name is provided twice.
    """
    if ctx.invoked_subcommand is not None:
        return
    catalogue = load_leniently()
    records = [r for r in catalogue.records if r.status == "failed" or not failed]
    if as_json:
        print_json([record.as_json() for record in records])
    else:
        _print_records(records)
    for collision in catalogue.collisions:
        _log.warning("%s", collision.message)
    if session.strict or strict_by_environment():
        catalogue.raise_faults()


@plugins.command()
@click.option("--json", "as_json", is_flag=True, help="Print an array with one object per plugin.")
@click.option("--timeout", "timeout_s", type=Seconds(), default=60.0, show_default=True, help="Seconds per plugin.")
@click.option("--deep", is_flag=True, help="Also import every factory that plugins name (imports torch).")
def doctor(as_json: bool, timeout_s: float, deep: bool) -> int:
    """Load every plugin in a separate process and report each fault with its distribution and the fix.

    Finds faults that cannot be caught in process: plugins that end the process, crash or hang, and plugins whose listing imports torch.
    The exit status is 4 if there is any fault.
    """
    diagnoses = diagnose(timeout_s=timeout_s, deep=deep)
    if as_json:
        print_json([_as_json(d) for d in diagnoses])
    else:
        echo("\n".join(_lines(diagnoses)))
    return PluginError.exit_code if any(d.faults for d in diagnoses) else 0


def _print_records(records: list[PluginRecord]) -> None:
    if not records:
        echo("no plugins")
        return
    header = ("DISTRIBUTION", "VERSION", "STATUS", "HOOKS", "ENTRY POINT", "PROVIDES")
    rows = [(r.distribution, r.version, r.status, len(r.hooks), r.entry_point, _provided(r)) for r in records]
    echo(table(header, rows))
    for record in records:
        if record.status == "failed":
            echo("\n" + "\n".join(_fault_lines(record.label, [Fault(error=record.error or "", fix=record.fix or "")])))


def _provided(record: PluginRecord) -> str:
    if record.status != "ok":
        return record.error or ""
    return provided(record) or "nothing"


def _lines(diagnoses: list[Diagnosis]) -> Iterable[str]:
    """The doctor's report: one line per healthy plugin, a paragraph per fault and per notice, a closing line."""
    labels = Counter(d.record.label for d in diagnoses if d.record)
    for diagnosis in diagnoses:
        record = diagnosis.record
        label = record.label if record else "all plugins together"
        if record and labels[record.label] > 1:
            label += f" ({record.entry_point})"
        if diagnosis.faults:
            yield from _fault_lines(label, diagnosis.faults)
        elif record and record.status == "blocked":
            yield f"{click.style('blocked', fg='yellow')}  {label}: not examined"
        else:
            yield f"{click.style('ok', fg='green')}       {label}"
    faults = sum(len(d.faults) for d in diagnoses)
    examined = sum(d.record is not None and d.record.status != "blocked" for d in diagnoses)
    yield ""
    yield f"{several(examined, 'plugin')} examined, {several(faults, 'fault') if faults else 'no faults'}"


def _fault_lines(label: str, faults: Iterable[Fault]) -> Iterable[str]:
    for fault in faults:
        text = paragraph(f"{label}: {fault.error}", first="FAULT    ", rest=" " * 9)
        yield click.style("FAULT", fg="red") + text.removeprefix("FAULT")
        yield paragraph(fault.fix, first="    fix: ", rest=" " * 9)


def _as_json(diagnosis: Diagnosis) -> dict[str, object]:
    record = diagnosis.record.as_json() if diagnosis.record else {"distribution": None}
    return {**record, "faults": [dataclasses.asdict(fault) for fault in diagnosis.faults]}
