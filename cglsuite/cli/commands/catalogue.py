"""``cglsuite list KIND``, ``show KIND NAME`` and ``notebook NAME``: what plugins provide, as text or JSON, and copies of notebooks."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from cglsuite.base.errors import UsageError, nearest
from cglsuite.campaigns.reference import leak_of, queries_note
from cglsuite.cli.options import FolderPath, Session, files_options, open_store, pass_session, store_option, tell_derivations
from cglsuite.cli.output import descriptions, echo, heading, paragraph, print_json, properties, table, terminal_width, tidy
from cglsuite.host import Catalogue, Entry
from cglsuite.host.derived import derivable, form_of
from cglsuite.specs import KINDS, DatasetSpec, ExecutorSpec, Hyperparameter, ScenarioSpec
from cglsuite.study.display.facts import COLUMNS, allowed, declared, shown_value, spec_facts, switch_rows

__all__ = ["kind_of", "list_names", "notebook", "show"]

_log = logging.getLogger(__name__)
_COUNTED_WIDTH = 120


def kind_of(ctx: click.Context, param: click.Parameter, given: str | None) -> str | None:
    """Callback of an argument KIND: accepts singular and plural (``method``, ``methods``), and suggests the nearest.

    Raises:
        click.BadParameter: no such kind.
    """
    if given is None:
        return None
    kind = given.lower()
    if kind.removesuffix("s") in KINDS:
        return kind.removesuffix("s")
    plurals = [f"{k}s" for k in KINDS]
    close = nearest(kind, plurals, 1)
    raise click.BadParameter(f"unknown kind {given!r}. " + (f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(plurals)}."))


@click.command("list")
@click.argument("kind", callback=kind_of, required=False)
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects with all fields of the specs.")
@files_options
@pass_session
def list_names(session: Session, kind: str | None, as_json: bool) -> None:
    """List the datasets, scenarios, backbones, methods, metrics, schedules, notebooks, executors or commands that plugins provide.

    Without KIND, count them (with --json: list them all). The table is cut to the terminal's width; output to a pipe is not cut.
    """
    catalogue = session.catalogue()
    if as_json:
        print_json([entry.describe() for k in ([kind] if kind else KINDS) for entry in catalogue.entries(k)])
        return
    if not any(catalogue.entries(k) for k in ([kind] if kind else KINDS)):
        _log.warning("there are no %ss: is a plugin that provides them installed? (see `cglsuite plugins`)", kind or "name")
    elif kind:
        echo(_listing(kind, catalogue.entries(kind)))
    else:
        rows = [(f"{k}s", len(names), ", ".join(names)) for k in KINDS if (names := catalogue.names(k))]
        echo(table(("KIND", "NUMBER", "NAMES (cglsuite list KIND)"), rows, width=min(terminal_width(), _COUNTED_WIDTH)))
    if kind in (None, "scenario"):
        from cglsuite.campaigns.executors.progress import say

        for spec in catalogue.specs(DatasetSpec).values():
            if catalogue.get("dataset", spec.name).record.from_file:
                say(f"{spec.name}: a data file has no presets; `cglsuite show dataset {spec.name} --data FILE` lists what can be derived")


@click.command()
@click.argument("kind_and_name", metavar="[KIND] NAME", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one object with all fields of the spec.")
@store_option
@files_options
@pass_session
@click.pass_context
def show(ctx: click.Context, session: Session, kind_and_name: tuple[str, ...], as_json: bool, store_path: Path | None) -> None:
    """Show one dataset, scenario, backbone, method, metric, schedule, notebook, executor or command.

    Includes its switches or hyper-parameters and their meaning, its provider, citation and licence. Without KIND, the name is looked up
    among all kinds. `cglsuite show code KEY` prints the user's code that made a record of --store, and with two keys how it differs.
    """
    if kind_and_name[0] == "code" and len(kind_and_name) in (2, 3) and not as_json:
        from cglsuite.cells.code.shown import code_of

        echo("\n".join(code_of(open_store(store_path, must_exist=True), kind_and_name[1:])))
        return
    if len(kind_and_name) > 2:
        raise click.UsageError(f"expected [KIND] NAME (given: {' '.join(kind_and_name)})", ctx)
    if len(kind_and_name) == 1 and kind_and_name[0].lower().removesuffix("s") in KINDS:
        raise click.UsageError(f"Missing argument 'NAME' (`cglsuite list {kind_and_name[0]}` lists the names)", ctx)
    name, catalogue = kind_and_name[-1], session.catalogue()
    kind = kind_of(ctx, ctx.command.params[0], kind_and_name[0]) if len(kind_and_name) == 2 else None
    kind = kind or _kind_with(catalogue, name)
    entry = catalogue.get(kind, name)
    if kind == "scenario":
        tell_derivations(catalogue, [name])
    if as_json:
        print_json(entry.describe())
        return
    echo("\n".join([*_page(entry, catalogue), *_scenarios_on(catalogue, entry)]))


@click.command()
@click.argument("name")
@click.option("--to", type=FolderPath(), default=".", show_default=True, help="The folder for the copy.")
@pass_session
def notebook(session: Session, name: str, to: Path) -> None:
    """Copy an installed notebook, to open and change in Jupyter, and print the path of the copy.

    `cglsuite list notebooks` prints the names. A file that exists is not overwritten.
    """
    from cglsuite.base.atomic import write_atomic

    catalogue = session.catalogue()
    source: Path = catalogue.resolve(catalogue.get("notebook", name))
    path = to / source.name
    if path.exists():
        raise UsageError(f"{path} exists: move it, or name another folder with --to")
    write_atomic(path, source.read_bytes(), option="--to")
    echo(str(path))


def _kind_with(catalogue: Catalogue, name: str) -> str:
    """The one kind that has an entry of that name.

    Raises:
        UsageError: none has one (suggests the nearest), or several.
    """
    if form_of(name) is not None:
        return "scenario"
    withheld = {(c.kind, c.name) for c in catalogue.collisions}  # catalogue.get says by whom
    kinds = [k for k in KINDS if name in catalogue.names(k) or (k, name) in withheld]
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        raise UsageError(f"{name!r} is the name of a {' and of a '.join(kinds)}: `cglsuite show {kinds[0]} {name}`")
    by_name = {n: k for k in reversed(KINDS) for n in catalogue.names(k)}
    close = [f"{n} ({by_name[n]})" for n in nearest(name, by_name)]
    advice = f"Did you mean {' or '.join(close)}?" if close else "`cglsuite list` counts what there is."
    raise UsageError(f"nothing is named {name!r}. {advice}")


def _scenarios_on(catalogue: Catalogue, entry: Entry) -> Iterable[str]:
    """The scenarios over a dataset: presets, and what can be derived from presets of other datasets."""
    spec = entry.spec
    if not isinstance(spec, DatasetSpec):
        return
    presets = catalogue.specs(ScenarioSpec).values()
    own = [p.name for p in presets if p.dataset == spec.name]
    for title, names in (("presets", own), ("scenarios that can be derived", derivable(spec, presets))):
        if names:
            yield from ("", heading(title), paragraph(", ".join(names), first="  ", rest="  "))


def _listing(kind: str, entries: Sequence[Entry]) -> str:
    columns = COLUMNS[kind]
    header = ("NAME", *columns, "PROVIDER", "SUMMARY")
    rows = [(e.name, *(column(e.spec) for column in columns.values()), e.record.distribution, e.spec.summary) for e in entries]
    return table(header, rows)


def _page(entry: Entry, catalogue: Catalogue) -> Iterable[str]:
    spec: Any = entry.spec
    yield heading(f"{entry.kind} {entry.name}")
    yield paragraph(tidy(spec.summary), first="  ", rest="  ")
    yield ""
    revealed = leak_of(spec.name) if isinstance(spec, ScenarioSpec) else ""
    facts = [("task found by a probe", revealed)] if revealed else []
    if isinstance(spec, ScenarioSpec) and (note := queries_note(spec.name, vars(spec))):
        facts.append(("queries", note))
    yield properties([("provider", entry.provider), *spec_facts(spec), *facts])
    if understood := getattr(spec, "facts", ()):
        yield from ("", heading("what was understood"), properties(understood))
    if isinstance(spec, ScenarioSpec):
        yield from _scenario(spec)
    if entry.kind == "notebook":
        from cglsuite.reports.rendering.parameters import parameter_rows

        rows = [(name, takes, tidy(default) or "empty", meaning) for name, takes, default, meaning in parameter_rows(entry, catalogue)]
        described = descriptions(("NAME", "TAKES", "DEFAULT", "MEANING"), rows)
        yield from ("", heading("parameters (-p NAME VALUE of papermill, parameters of a [[report]])"), described)
    prefix = f"run.{spec.name}" if isinstance(spec, ExecutorSpec) else entry.kind
    for title, hyperparameters in declared(spec):
        yield from ("", heading(f"{title} (--set {prefix}.NAME=VALUE)"), _declared(prefix, hyperparameters))


def _declared(prefix: str, hyperparameters: Sequence[Hyperparameter]) -> str:
    rows = [(f"{prefix}.{h.name}", h.type.__name__, tidy(h.default), allowed(h), h.doc) for h in hyperparameters]
    return descriptions(("NAME", "TYPE", "DEFAULT", "ALLOWED", "MEANING"), rows)


def _scenario(spec: ScenarioSpec) -> Iterable[str]:
    """Every switch of the protocol with its value and meaning, training, and the choices of the preset's search."""
    for title, prefix, part in (("protocol", "scenario", spec), ("training", "training", spec.training)):
        described = descriptions(("SWITCH", "VALUE", "MEANING"), switch_rows(part, prefix))
        yield from ("", heading(f"{title} (--set {prefix}.NAME=VALUE)"), described)
    if spec.method_defaults:
        rows = [(m, k, shown_value(v)) for m, overrides in sorted(spec.method_defaults.items()) for k, v in sorted(overrides.items())]
        yield from ("", heading("hyper-parameters of this preset per method"), table(("METHOD", "KEY", "VALUE"), rows, indent="  "))
