"""Commands for plugin authors: ``check`` and ``new``.

``cglsuite check NAME`` checks that an entry of the catalogue fulfils its contract, and explains how to fix what fails.
``cglsuite new KIND NAME`` creates a package with one plugin of any kind and passing tests.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cglsuite import __version__
from cglsuite.base.errors import PluginError, UnknownNameError, UsageError
from cglsuite.base.markup import several
from cglsuite.cli.options import FolderPath, Session, Whole, files_options, pass_session
from cglsuite.cli.output import echo, paragraph, print_json
from cglsuite.graphs.files.shipped import shipped
from cglsuite.host import Catalogue
from cglsuite.host.catalogue import core_entry
from cglsuite.specs import KINDS

if TYPE_CHECKING:
    from cglsuite.testing import CheckReport, Finding


_KINDS = tuple(KINDS)
_COLOURS = {"ok": "green", "failed": "red", "skipped": "yellow"}
_MAX_NAMES = 5
_log = logging.getLogger(__name__)


@click.command()
@click.argument("name", required=False)
@click.option("--kind", type=click.Choice(_KINDS), help="Check only entries of this kind.  [default: every kind]")
@click.option("--all", "everything", is_flag=True, help="Check all installed entries instead of NAME.")
@click.option("--provider", metavar="DISTRIBUTION", help="Check everything that one distribution provides instead of NAME.")
@click.option("--only", metavar="CHECK", multiple=True, help="Run only this check, for example `learns`; repeatable.")
@click.option(
    "--where",
    metavar="STREAM",
    multiple=True,
    help="Run methods only on matching tiny streams (a glob), for example `testing-links/class-il`; repeatable.",
)
@click.option("--failed", "failed_only", is_flag=True, help="Print only failures.")
@click.option("--quick", is_flag=True, help="Run methods on one stream per level and setting instead of all combinations, in seconds.")
@click.option("--seed", type=Whole(1, 2**31), help="Data seed for methods, to reproduce a finding.  [default: a new seed]")
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set an executor option, for example `run.slurm.partition=short`; repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of reports with all findings.")
@files_options
@pass_session
def check(
    session: Session,
    name: str | None,
    kind: str | None,
    everything: bool,
    provider: str | None,
    only: Sequence[str],
    where: Sequence[str],
    failed_only: bool,
    quick: bool,
    seed: int | None,
    settings: Sequence[str],
    as_json: bool,
) -> int:
    """Run the checks in cglsuite.testing on an entry of the catalogue.

    A method runs on tiny streams of every level and setting that it declares, in processes without hidden labels or scores. It must learn,
    be bit-reproducible, resume in another process, predict every item independently, and respect the memory budget. This takes about a
    minute, or a few seconds with --quick. An executor runs cells that fail, die and hang, and is interrupted, which takes about as long. A
    failed check prints what was measured and the command that repeats the check. The first line shows the distribution, its version,
    whether it is editable or installed, and the imported file. The exit status is 4 if a check fails.
    """
    if (name is not None) + everything + (provider is not None) != 1:
        raise UsageError("expected exactly one of NAME, --all and --provider DISTRIBUTION")
    catalogue = session.catalogue()
    if name is not None:
        wanted = [(k, name) for k in _kinds(catalogue, name, kind)]
    else:
        wanted = _entries_of(catalogue, _KINDS if kind is None else (kind,), provider)
    selection = _Selection(only=tuple(only), where=tuple(where))
    reports = list["CheckReport"]()
    options: dict[str, dict[str, Any]] = {"method": {"quick": quick, "seed": seed}, "executor": _executor_options(settings)}
    for report in _examine_all(catalogue, wanted, selection, options):
        reports.append(report)
        if not as_json and (report.failed or not failed_only):
            echo("\n".join(_lines(report, failed_only)) + ("\n" if len(wanted) > 1 else ""))
    failed = [report for report in reports if report.failed]
    if as_json:
        print_json([_as_json(report, failed_only) for report in reports])
    else:
        _show_totals(reports, failed, _not_checked(catalogue, wanted, provider) if provider else [])
    return PluginError.exit_code if failed else 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Selection:
    """The names of the checks to run and of the streams to run them on; empty selects all."""

    only: tuple[str, ...] = ()
    where: tuple[str, ...] = ()

    def scenarios(self) -> tuple[str, ...]:
        """Return the names of the selected tiny scenarios.

        Raises:
            UnknownNameError: a pattern matches no tiny scenario.
        """
        from cglsuite.testing import TINY_SCENARIOS

        short = {name.partition("@")[0]: name for name in TINY_SCENARIOS}
        for pattern in self.where:
            if not _names_matching(pattern, short):
                raise UnknownNameError("stream of the checks", pattern, short)
        return tuple(
            name for label, name in short.items() if not self.where or any(_names_matching(pattern, [label]) for pattern in self.where)
        )

    def of(self, report: CheckReport) -> CheckReport:
        """Return a report restricted to the selected checks and streams."""
        selected = [
            f for f in report if not self.where or not f.where or any(_names_matching(p, [f.where.partition("@")[0]]) for p in self.where)
        ]
        return dataclasses.replace(report, findings=tuple(selected))


def _executor_options(settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Group ``run.NAME.OPTION=VALUE`` settings by executor. The values of a repeated option become a list.

    Raises:
        UsageError: a setting has a different form.
    """
    options: dict[str, dict[str, Any]] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        parts = key.split(".")
        if not equals or len(parts) != 3 or parts[0] != "run":
            raise UsageError(f"--set {setting}: expected an executor option such as run.slurm.partition=short")
        of = options.setdefault(parts[1], {})
        of[parts[2]] = [*([of[parts[2]]] if isinstance(of[parts[2]], str) else of[parts[2]]), value] if parts[2] in of else value
    return options


def _names_matching(pattern: str, names: Iterable[str]) -> list[str]:
    return fnmatch.filter(names, pattern.partition("@")[0])


def _examine_all(
    catalogue: Catalogue, entries: Iterable[tuple[str, str]], selection: _Selection, options: Mapping[str, Mapping[str, Any]]
) -> Iterator[CheckReport]:
    """Yield a report for each kind and name that has a selected check. One judge examines all methods.

    Args:
        options: the options of methods, and those of each executor by its name.

    Raises:
        UnknownNameError: no check of these kinds has a selected name.
    """
    from cglsuite.testing.apart import Examiner, Judge
    from cglsuite.testing.streams import tiny_catalogue

    whole, count, known = tiny_catalogue(catalogue), 0, set[str]()
    with ExitStack() as stack:
        judge = examiner = None
        for kind, name in entries:
            if kind == "method":
                from cglsuite.testing.kinds.methods import METHOD_CHECKS

                known |= set(METHOD_CHECKS)
                if selection.only and not known & set(selection.only):
                    continue
                options_of = {"scenarios": selection.scenarios(), "only": selection.only}
                judge = judge or stack.enter_context(Judge())
                report = judge.examine(name, whole, on_finding=_print_finding, **options_of, **options["method"])
            else:
                examiner = examiner or stack.enter_context(Examiner())
                more = {"options": options["executor"].get(name, {})} if kind == "executor" else {}
                report = selection.of(
                    examiner.examine(whole.get(kind, name), whole, on_finding=_print_finding, only=selection.only, **more)
                )
                known |= set(report.checks)
            if report.findings:
                count += 1
                yield report
    if not count:
        missing = next((check for check in selection.only if check not in known), None)
        if missing is not None:
            raise UnknownNameError("check", missing, known)
        raise UsageError("nothing to check: no check matches --only and --where")


def _show_totals(reports: Sequence[CheckReport], failed: Sequence[CheckReport], unchecked: Sequence[str]) -> None:
    """Print how many entries conform, which do not, and what was not checked."""
    if len(reports) > 1:
        failures = "" if not failed else f", {len(failed)} not: " + ", ".join(f"{r.kind} {r.name}" for r in failed)
        echo(f"{len(reports) - len(failed)} of {len(reports)} conform{failures}")
    lines = [*unchecked, *(line for report in reports if len(reports) > 1 for line in _skipped_lines(report))]
    if lines:
        echo("not checked:")
        for line in lines:
            echo(paragraph(line, first="  ", rest="    "))


def _skipped_lines(report: CheckReport) -> Iterator[str]:
    """Yield a line for each reason why checks of a report were skipped."""
    reasons: dict[str, list[str]] = {}
    for finding in report:
        if finding.status == "skipped":
            reasons.setdefault(finding.message, []).append(finding.check)
    for reason, checks in reasons.items():
        yield f"{report.kind} {report.name}, {', '.join(dict.fromkeys(checks))}: {reason}"


def _not_checked(catalogue: Catalogue, entries: Sequence[tuple[str, str]], provider: str) -> list[str]:
    """Return what a distribution provides beyond the checked entries, and why it was not checked."""
    lines = []
    for kind in KINDS:
        names = [entry.name for entry in catalogue.entries(kind) if entry.record.distribution == provider]
        if left := [name for name in names if (kind, name) not in entries]:
            listed = ", ".join(left[:_MAX_NAMES]) + (f" and {len(left) - _MAX_NAMES} more" if left[_MAX_NAMES:] else "")
            lines.append(f"{kind}{'s' if left[1:] else ''} {listed}: excluded by --kind")
    broken = [record for record in catalogue.records if record.status != "ok" and record.distribution == provider]
    return [*lines, *(f"plugin {record.entry_point}: {record.status}: {record.error}" for record in broken)]


def _entries_of(catalogue: Catalogue, kinds: Iterable[str], provider: str | None) -> list[tuple[str, str]]:
    """Return all entries of these kinds as (kind, name), restricted to a distribution if ``provider`` is set."""
    by = {(kind, entry.spec.name): entry.record.distribution for kind in _KINDS for entry in catalogue.entries(kind)}
    if provider is not None and provider not in by.values():
        raise UnknownNameError("distribution", provider, set(by.values()))
    components = [(kind, name) for (kind, name), distribution in by.items() if kind in kinds and provider in (None, distribution)]
    if not components:
        raise UsageError(f"nothing to check: {provider or 'no installed plugin'} provides {'no' if provider else 'a'} {' or '.join(kinds)}")
    return components


def _kinds(catalogue: Catalogue, name: str, kind: str | None) -> list[str]:
    """Return the kinds under which to check a name."""
    if kind is not None:
        catalogue.get(kind, name)
        return [kind]
    kinds = [k for k in _KINDS if name in catalogue.names(k)]
    if not kinds:
        collided = next((c for c in catalogue.collisions if c.name == name), None)
        if collided is not None:
            catalogue.get(collided.kind, name)  # raises an error that says what to do
        raise UnknownNameError("name", name, [n for k in _KINDS for n in catalogue.names(k)])
    return kinds


def _print_finding(finding: Finding) -> None:
    _log.info("%s %s%s", finding.status, finding.check, f" in {finding.where}" if finding.where else "")


def _lines(report: CheckReport, failed_only: bool = False) -> Iterator[str]:
    """Format a report: a line per passed check, a paragraph per failed check, and a closing line."""
    imported = f", {report.installation}: {report.source}" if report.source else ""
    yield click.style(f"{report.kind} {report.name}", bold=True) + f"  {report.provider}{imported}"
    shown = report.failed if failed_only else report
    for name, group in groupby(sorted(shown, key=_group_by_check(report)), key=lambda f: f.check):
        yield from _check_lines(name, list(group))
    counts = {status: sum(f.status == status for f in report) for status in _COLOURS}
    summary = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    verdict = click.style("does not conform", fg="red") if report.failed else click.style("was not checked", fg="yellow")
    verdict = click.style("conforms", fg="green") if report.passed else verdict
    yield f"{report.kind} {report.name} {verdict}: {summary}"


def _group_by_check(report: CheckReport) -> Any:
    order = {name: place for place, name in enumerate(dict.fromkeys(f.check for f in report))}
    return lambda finding: order[finding.check]


def _check_lines(name: str, findings: Iterable[Finding]) -> Iterator[str]:
    findings = list(findings)
    fine = [f for f in findings if f.status == "ok"]
    if fine:
        where = f"in {several(len(fine), 'stream')}" if fine[0].where else ""
        yield f"  {click.style('ok', fg='green')}       {name:<19}  {where}".rstrip()
        if explained := [f for f in fine if f.message]:
            most = max(explained, key=_evidence_size)
            place = f"the most in {most.where.partition('@')[0]}: " if most.where else ""
            yield paragraph(place + most.message, first=" " * 11, rest=" " * 11)
    for message, alike in groupby((f for f in findings if f.status == "skipped"), key=lambda f: f.message):
        text = paragraph(f"{name} ({_stream_names(alike)}): {message}".replace(" ()", ""), first=" " * 11, rest=" " * 11)
        yield "  " + click.style("skipped", fg="yellow") + text.removeprefix(" " * 9)
    for (message, fix), group in groupby((f for f in findings if f.status == "failed"), key=lambda f: (f.message, f.fix)):
        yield from _failure_lines(name, message, fix, list(group))


def _failure_lines(name: str, message: str, fix: str, alike: Sequence[Finding]) -> Iterator[str]:
    """Format where and why a check fails, the measurement on the first of these streams, the fix, and the command that repeats it."""
    indent = " " * 11
    text = paragraph(f"{name} ({_stream_names(alike)}): {message}".replace(" ()", ""), first=indent, rest=indent)
    yield "  " + click.style("FAILED", fg="red") + text.removeprefix(" " * 8)
    first = alike[0]
    if first.evidence:
        yield from (indent + line for line in (f"performance in {_stream_names(alike[:1])}", *first.evidence.splitlines()))
    yield paragraph(fix, first=indent + "fix: ", rest=" " * 16)
    if first.replay:
        yield f"{indent}again: {first.replay}"


def _evidence_size(finding: Finding) -> int:
    """Return the sort key that selects which passed finding to show: the sum of the numbers in its message."""
    return sum(map(int, re.findall(r"\d+", finding.message)))


def _stream_names(findings: Iterable[Finding]) -> str:
    return ", ".join(f.where.partition("@")[0] for f in findings if f.where)


def _as_json(report: CheckReport, failed_only: bool = False) -> dict[str, Any]:
    return {
        "kind": report.kind,
        "name": report.name,
        "provider": report.provider,
        "source": report.source,
        "installation": report.installation,
        "passed": report.passed,
        "findings": [dataclasses.asdict(f) for f in (report.failed if failed_only else report)],
    }


_WRITABLE = (
    "method",
    "dataset",
    "scenario",
    "backbone",
    "pretraining",
    "measure",
    "metric",
    "schedule",
    "encoder",
    "notebook",
    "executor",
    "command",
)
_FORMS = {
    "scenario": (
        re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9._-]+@[a-z0-9._-]+-\d+"),
        "DATASET/SETTING@PROTOCOL-1, for example cora/class-il@mine-1",
    ),
    "metric": (re.compile(r"[a-z][a-z0-9_]*"), "lower-case letters, digits and _, for example worst_task"),
    "command": (re.compile(r"[a-z][a-z0-9-]*"), "lower-case letters, digits and -, beginning with a letter, for example slowest"),
}
_FORM = (re.compile(r"[a-z][a-z0-9.-]*"), "lower-case letters, digits, - and ., beginning with a letter, for example my-method")
_TASK_KEYS = {"class-il": (), "task-il": (), "domain-il": ("domain",), "time-il": ("year", "time")}
"""The settings that the template supports, and the node attributes that usually define their tasks."""


@click.command()
@click.argument("kind", type=click.Choice(_WRITABLE))
@click.argument("name")
@click.option("--into", type=FolderPath(), help="New folder for the package.  [default: ./ and the name of the distribution]")
@click.option("--author", default="Its authors", show_default=True, help="Author of the package.")
@pass_session
def new(session: Session, kind: str, name: str, into: Path | None, author: str) -> None:
    """Create a package that provides one plugin of any KIND, with a module, an entry point, tests, a tox.ini, a workflow for continuous
    integration and a README. For a scenario on an unknown data set, it also provides a data set of that name.

    Once the package is installed, `cglsuite check NAME` and its tests pass. Then replace the example with your own code.
    """
    pattern, form = _FORMS.get(kind, _FORM)
    if not pattern.fullmatch(name):
        raise UsageError(f"{kind} name {name!r}: expected {form}")
    catalogue = session.catalogue()
    if name in catalogue.names(kind) or core_entry(kind, name) is not None:
        raise UsageError(f"{catalogue.get(kind, name).provider} already provides the {kind} {name!r}: choose a different name")
    distribution = _distribution(name)
    folder = into or Path(distribution)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: choose another one with --into")
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty: choose another folder with --into")
    answers = {"kind": kind, "name": name, "author": author, "core": __version__}
    _copy_template(folder, answers | (_data_provider(catalogue, name) if kind == "scenario" else {}))
    echo(f"{folder}/ contains the package {distribution}, which provides the {kind} {name}. It works out of the box:\n")
    for line in (f"cd {folder}", 'pip install -e ".[test]"', f"cglsuite check --kind {kind} {name}", "pytest"):
        echo(f"  {line}")


def template_folder() -> Path:
    """Return the folder of the template that ``cglsuite new`` fills in."""
    return shipped("cglsuite", "_plugins/template")


def _distribution(name: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", name).strip("-")
    return slug if slug.startswith("cglsuite-") else f"cglsuite-{slug}"


def _data_provider(catalogue: Catalogue, name: str) -> dict[str, str]:
    """Return the provider of a new scenario's data set and the attribute that defines its tasks; the new package provides unknown data.

    Raises:
        UsageError: the template does not support the setting or the data set.
    """
    dataset, _, rest = name.partition("/")
    setting = rest.partition("@")[0]
    if setting not in _TASK_KEYS:
        raise UsageError(f"scenario name {name!r}: the template supports the settings {', '.join(_TASK_KEYS)}, not {setting!r}")
    wanted = _TASK_KEYS[setting]
    if dataset not in catalogue.names("dataset"):
        return {"provider": "", "task_key": wanted[0] if wanted else ""}
    entry, spec = catalogue.get("dataset", dataset), catalogue.dataset(dataset)
    if "NC" not in spec.levels or spec.labels not in {None, "single"}:
        raise UsageError(
            f"scenario name {name!r}: the template is for nodes with one class each, but {dataset} is of level {', '.join(spec.levels)} "
            f"with labels {spec.labels or 'of unknown kind'}: see docs/how-to/links-and-graphs.md, or choose another data set"
        )
    keys = spec.keys if spec.keys is not None else wanted
    fitting = [key for key in wanted if key in keys] or list(keys)
    if wanted and not fitting:
        raise UsageError(f"scenario name {name!r}: {setting} needs a node attribute, and the data set {dataset} has none")
    return {"provider": entry.record.distribution, "task_key": fitting[0] if wanted else ""}


def _copy_template(folder: Path, answers: dict[str, str]) -> None:
    from copier import run_copy

    run_copy(str(template_folder()), folder, data=answers, defaults=True, quiet=True)
