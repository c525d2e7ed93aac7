"""Commands that list what is installed: ``list``, ``show``, ``notebook``, ``scenarios`` and ``plugins``.

``cglsuite list KIND`` and ``show KIND NAME`` print what plugins provide, as text or JSON. ``notebook NAME`` copies a notebook.
``scenarios`` compares two presets, or measures what the queries of a scenario reveal. ``plugins`` and ``plugins doctor`` print the state of
installed plugins, their faults and how to fix them.
"""

from __future__ import annotations

import dataclasses
import difflib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cglsuite.base.errors import PluginError, UsageError, nearest
from cglsuite.base.markup import several
from cglsuite.campaigns.reference import leak_of, queries_note
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.cli.options import (
    FolderPath,
    Seconds,
    Session,
    Whole,
    files_options,
    open_store,
    order_seed_option,
    pass_session,
    print_derivations,
    set_option,
    split_seed_option,
    store_option,
)
from cglsuite.cli.output import descriptions, echo, fits_terminal, heading, paragraph, print_json, properties, table, terminal_width, tidy
from cglsuite.host import Catalogue, Entry, PluginRecord
from cglsuite.host.catalogue import derivable, form_of, load_leniently
from cglsuite.host.discovery import strict_by_environment
from cglsuite.host.doctor import Diagnosis, Fault, diagnose
from cglsuite.host.frozen import stored_source
from cglsuite.specs import KINDS, DatasetSpec, ExecutorSpec, Hyperparameter, ScenarioSpec, Seeds
from cglsuite.study.display import COLUMNS, allowed, declared, provided, shown_value, spec_facts, switch_rows

if TYPE_CHECKING:
    from cglsuite.cells.spec import Difference

_log = logging.getLogger(__name__)
_COUNTED_WIDTH = 120
_LEVELS = {
    "NC": "node classification",
    "NR": "node regression",
    "LC": "link classification",
    "LP": "link prediction",
    "GC": "graph classification",
    "GR": "graph regression",
}
_ABBREVIATIONS = {
    "LEVEL": _LEVELS,
    "LEVELS": _LEVELS,
    "CATEGORY": {"Reg": "regularisation", "Rep": "replay", "Iso": "parameter isolation", "dynamic": "networks for dynamic graphs"},
}
"""Abbreviations used in table columns, with their meanings."""


def kind_of(ctx: click.Context, param: click.Parameter, word: str | None) -> str | None:
    """Click callback for the argument KIND, which returns the kind in the singular (``methods`` becomes ``method``).

    Raises:
        click.BadParameter: the kind is unknown. The message suggests the closest one.
    """
    if word is None:
        return None
    kind = word.lower()
    if kind.removesuffix("s") in KINDS:
        return kind.removesuffix("s")
    plurals = [f"{k}s" for k in KINDS]
    close = nearest(kind, plurals, 1)
    raise click.BadParameter(f"unknown kind {word!r}. " + (f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(plurals)}."))


@click.command("list")
@click.argument("kind", callback=kind_of, required=False)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of objects with all fields of the specs.")
@files_options
@pass_session
def list_names(session: Session, kind: str | None, as_json: bool) -> None:
    """List the datasets, scenarios, backbones, methods, metrics, schedules, notebooks, executors or commands provided by plugins.

    Without KIND, print the number of entries of each kind (with --json, list all entries). The table is cut to the width of the terminal,
    unless it is piped.
    """
    catalogue = session.catalogue()
    if as_json:
        print_json([entry.describe() for k in ([kind] if kind else KINDS) for entry in catalogue.entries(k)])
        return
    if not any(catalogue.entries(k) for k in ([kind] if kind else KINDS)):
        _log.warning("there are no %ss: is a plugin that provides them installed? (see `cglsuite plugins`)", kind or "name")
    elif kind:
        echo(_entry_table(kind, catalogue.entries(kind)))
        if fits_terminal():
            echo("\n".join(_legend(COLUMNS[kind])))
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all fields of the spec.")
@store_option
@files_options
@pass_session
@click.pass_context
def show(ctx: click.Context, session: Session, kind_and_name: tuple[str, ...], as_json: bool, store_path: Path | None) -> None:
    """Show one dataset, scenario, backbone, method, metric, schedule, notebook, executor or command.

    Prints the switches or hyperparameters with their meaning, the provider, the citation and the licence. Without KIND, the name is looked
    up in all kinds. `cglsuite show code KEY` prints the user code that produced a record in --store. With two keys, it prints the diff
    between them.
    """
    if kind_and_name[0] == "code" and len(kind_and_name) in (2, 3) and not as_json:
        echo("\n".join(code_of(open_store(store_path, must_exist=True), kind_and_name[1:])))
        return
    if len(kind_and_name) > 2:
        raise click.UsageError(f"expected [KIND] NAME, got: {' '.join(kind_and_name)}", ctx)
    if len(kind_and_name) == 1 and kind_and_name[0].lower().removesuffix("s") in KINDS:
        raise click.UsageError(f"Missing argument 'NAME' (`cglsuite list {kind_and_name[0]}` lists the names)", ctx)
    name, catalogue = kind_and_name[-1], session.catalogue()
    kind = kind_of(ctx, ctx.command.params[0], kind_and_name[0]) if len(kind_and_name) == 2 else None
    kind = kind or _kind_with(catalogue, name)
    entry = catalogue.get(kind, name)
    if kind == "scenario":
        print_derivations(catalogue, [name])
    if as_json:
        print_json(entry.describe())
        return
    echo("\n".join([*_page(entry, catalogue), *_scenarios_on(catalogue, entry)]))


@click.command()
@click.argument("name")
@click.option("--to", type=FolderPath(), default=".", show_default=True, help="Folder for the copy.")
@pass_session
def notebook(session: Session, name: str, to: Path) -> None:
    """Copy an installed notebook, so that you can edit it in Jupyter, and print the path of the copy.

    `cglsuite list notebooks` prints the names. Existing files are not overwritten.
    """
    from cglsuite.base.atomic import write_atomic

    catalogue = session.catalogue()
    source: Path = catalogue.resolve(catalogue.get("notebook", name))
    path = to / source.name
    if path.exists():
        raise UsageError(f"{path} already exists: move it, or choose another folder with --to")
    write_atomic(path, source.read_bytes(), option="--to")
    echo(str(path))


def _kind_with(catalogue: Catalogue, name: str) -> str:
    """Return the only kind that has an entry with that name.

    Raises:
        UsageError: no kind has such an entry (the message suggests the nearest), or several have.
    """
    if form_of(name) is not None:
        return "scenario"
    withheld = {(c.kind, c.name) for c in catalogue.collisions}  # catalogue.get names the providers
    kinds = [k for k in KINDS if name in catalogue.names(k) or (k, name) in withheld]
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        raise UsageError(f"{name!r} is the name of a {' and of a '.join(kinds)}: `cglsuite show {kinds[0]} {name}`")
    by_name = {n: k for k in reversed(KINDS) for n in catalogue.names(k)}
    close = [f"{n} ({by_name[n]})" for n in nearest(name, by_name)]
    advice = f"Did you mean {' or '.join(close)}?" if close else "`cglsuite list` shows what is installed."
    raise UsageError(f"nothing is named {name!r}. {advice}")


def _scenarios_on(catalogue: Catalogue, entry: Entry) -> Iterable[str]:
    """List the scenarios over a dataset: its presets, and those that can be derived from presets of other datasets."""
    spec = entry.spec
    if not isinstance(spec, DatasetSpec):
        return
    presets = catalogue.specs(ScenarioSpec).values()
    preset_names = [p.name for p in presets if p.dataset == spec.name]
    for title, names in (("presets", preset_names), ("scenarios that can be derived", derivable(spec, presets))):
        if names:
            yield from ("", heading(title), paragraph(", ".join(names), first="  ", rest="  "))


def _entry_table(kind: str, entries: Sequence[Entry]) -> str:
    columns = COLUMNS[kind]
    header = ("NAME", *columns, "PROVIDER", "SUMMARY")
    rows = [(e.name, *(column(e.spec) for column in columns.values()), e.record.distribution, e.spec.summary) for e in entries]
    return table(header, rows)


def _legend(columns: Iterable[str]) -> Iterable[str]:
    """Explain the abbreviations in a table."""
    for name in columns:
        if words := _ABBREVIATIONS.get(name):
            yield ""
            yield paragraph(f"{name}: " + ", ".join(f"{short} = {long}" for short, long in words.items()))


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
        yield from ("", heading(f"{title} (--set {prefix}.NAME=VALUE)"), _hyperparameter_table(prefix, hyperparameters))


def _hyperparameter_table(prefix: str, hyperparameters: Sequence[Hyperparameter]) -> str:
    rows = [(f"{prefix}.{h.name}", h.type.__name__, tidy(h.default), allowed(h), h.doc) for h in hyperparameters]
    return descriptions(("NAME", "TYPE", "DEFAULT", "ALLOWED", "MEANING"), rows)


def _scenario(spec: ScenarioSpec) -> Iterable[str]:
    """List every switch of the protocol and of training with its value and meaning, and the hyperparameters set per method."""
    for title, prefix, part in (("protocol", "scenario", spec), ("training", "training", spec.training)):
        described = descriptions(("SWITCH", "VALUE", "MEANING"), switch_rows(part, prefix))
        yield from ("", heading(f"{title} (--set {prefix}.NAME=VALUE)"), described)
    if spec.method_defaults:
        rows = [(m, k, shown_value(v)) for m, overrides in sorted(spec.method_defaults.items()) for k, v in sorted(overrides.items())]
        yield from ("", heading("hyperparameters of this preset per method"), table(("METHOD", "KEY", "VALUE"), rows, indent="  "))


_EFFECT, _LONG = "EFFECT OF THE DIFFERENCE", 24
_TITLES = {
    "scenario": "protocol (--set scenario.NAME=VALUE)",
    "training": "training (--set training.NAME=VALUE)",
    "backbone": "backbone (--set backbone.NAME=VALUE)",
    "dataset": "dataset (--set dataset.NAME=VALUE)",
    "method_defaults": "hyperparameters per method, where they differ from the above",
}


@click.group()
def scenarios() -> None:
    """Compare scenario presets and audit their queries."""


@scenarios.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of objects with field, a, b and effect.")
@files_options
@pass_session
def diff(session: Session, a: str, b: str, as_json: bool) -> None:
    """Print the fields in which the presets A and B differ, with both values and the effect of the difference.

    Compares the switches of the protocol, the training, the hyperparameters of the backbone and the dataset (including defaults), and the
    hyperparameters set for each method. Presets with different datasets can be compared too. A dash means that a preset does not have the
    key.
    """
    from cglsuite.cells.spec import preset_differences

    differences = preset_differences(session.catalogue(), a, b)
    if as_json:
        print_json([difference.to_json() for difference in differences])
    elif not differences:
        echo(f"{a} and {b} do not differ in any field" if a != b else f"{a} is compared with itself: no field differs")
    else:
        echo("\n".join(_comparison(a, b, differences)))


@scenarios.command()
@click.argument("name", metavar="NAME")
@order_seed_option
@split_seed_option
@set_option
@click.option("--permutations", type=Whole(1, 1_000_000), default=39, show_default=True, help="Number of permutations for the p-value.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as one JSON object.")
@files_options
@pass_session
def audit(
    session: Session, name: str, order_seed: int, split_seed: int, assignments: Sequence[str], permutations: int, as_json: bool
) -> None:
    """Measure how well the task of a query in scenario NAME can be inferred from the query's group.

    A linear probe predicts the task of each test item, first from the item's neighbourhood alone and then also from the mean over its query
    group. The leak is the difference between the balanced accuracies, with an interval over bootstrapped groups and a permutation test.
    Works for nodes in class-, domain- and time-IL. Use --set scenario.query_grouping=pooled to close a leak.
    """
    from cglsuite.campaigns.overrides import parse_overrides
    from cglsuite.cells.diagnostics import measure_leak
    from cglsuite.cells.run import build_scenario
    from cglsuite.cells.spec import resolve_scenario

    catalogue = session.catalogue()
    scenario = resolve_scenario(catalogue, name, parse_overrides(assignments, "--set"))
    seeds = Seeds(order=order_seed, split=split_seed)
    leak = measure_leak(build_scenario(catalogue, scenario.spec, scenario.dataset_hyperparameters, seeds), permutations=permutations)
    if as_json:
        print_json({"scenario": scenario.preset, **dataclasses.asdict(leak)})
        return
    low, high = leak.interval
    grouped = f"{leak.group_size} items of one task" if leak.by_task else f"{leak.group_size} items of all tasks"
    rows = [
        ("scenario", scenario.preset),
        ("query groups", grouped),
        ("task from an item alone", f"{leak.alone:.1%} (chance {leak.chance:.1%})"),
        ("task with its group's mean", f"{leak.grouped:.1%}"),
        ("leak", f"{100 * leak.leak:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}], permutation p = {leak.p:.3f}"),
    ]
    echo(properties(rows))


def _comparison(a: str, b: str, differences: Sequence[Difference]) -> Iterable[str]:
    yield heading(several(len(differences), "field differs", "fields differ"))
    yield properties((("A", a), ("B", b)))
    for section, title in _TITLES.items():
        if rows := [difference for difference in differences if difference.section == section]:
            yield from ("", heading(title), _methods(rows) if section == "method_defaults" else _values(rows))


def _values(rows: Sequence[Difference]) -> str:
    return descriptions(("SWITCH", "A", "B", _EFFECT), [(d.field, *_cells(d)) for d in rows])


def _methods(rows: Sequence[Difference]) -> str:
    return descriptions(("METHOD", "KEY", "A", "B", _EFFECT), [(*d.field.split(".", 2)[1:], *_cells(d)) for d in rows])


def _cells(difference: Difference) -> tuple[str, str, str]:
    """Return both values and the effect. A value too long for its column is placed before the effect."""
    values = {"A": shown_value(difference.a), "B": shown_value(difference.b)}
    long = [f"{side} is {value}." for side, value in values.items() if len(value) > _LONG]
    a, b = ("…" if len(value) > _LONG else value for value in values.values())
    return a, b, " ".join([*long, difference.effect])


_COLOURS = {"ok": "green", "failed": "red", "blocked": "yellow"}


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of plugin records.")
@click.option("--failed", is_flag=True, help="List only quarantined plugins.")
@pass_session
@click.pass_context
def plugins(ctx: click.Context, session: Session, as_json: bool, failed: bool) -> None:
    """List the installed plugins with their version, status, number of hooks and entries.

    With --strict, the exit status is 4 if any plugin failed or several plugins provide the same name.
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
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array with one object per plugin.")
@click.option("--timeout", "timeout_s", type=Seconds(), default=60.0, show_default=True, help="Time limit per plugin in seconds.")
@click.option("--deep", is_flag=True, help="Also import every factory that plugins name, which imports torch.")
def doctor(as_json: bool, timeout_s: float, deep: bool) -> int:
    """Load every plugin in a separate process, and report each fault with its distribution and a fix.

    Finds faults that cannot be detected within one process: plugins that exit, crash, hang, or import torch when they are listed. The exit
    status is 4 if there are any faults.
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
    rows = [(r.distribution, r.version, r.status, len(r.hooks), r.entry_point, _provided_counts(r)) for r in records]
    echo(table(header, rows))
    for record in records:
        if record.status == "failed":
            echo("\n" + "\n".join(_fault_lines(record.label, [Fault(error=record.error or "", fix=record.fix or "")])))


def _provided_counts(record: PluginRecord) -> str:
    if record.status != "ok":
        return record.error or ""
    return provided(record) or "nothing"


def _lines(diagnoses: list[Diagnosis]) -> Iterable[str]:
    """Format the doctor's report: a line per healthy plugin, a paragraph per fault, and a closing line."""
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


def code_of(store: Store, keys: Sequence[str]) -> Iterator[str]:
    """Return the source lines of all user modules of a record, or the diff between the user code of two records.

    Args:
        keys: one or two keys, or the first digits of them.

    Raises:
        UsageError: a key matches no record or several, or no record has user code.
    """
    records = [_record(store, key) for key in keys]
    codes = [dict(record.provenance.get("code") or {}) for record in records]
    if not any(codes):
        named = " and ".join(f"{record.key[:12]} ({record.cell['method']})" for record in records)
        raise UsageError(f"record {named} has no user code, only code of the suite. The record's provenance states its version")
    if len(records) == 1:
        for number, (module, sha256) in enumerate(codes[0].items()):
            yield from ("",) * (number > 0)
            yield from (f"# {module}  {sha256[:12]}", *_text(store.path, module, sha256))
        return
    same = True
    for module in sorted(codes[0].keys() | codes[1].keys()):
        sides = [code.get(module, "") for code in codes]
        if sides[0] != sides[1]:
            same = False
            first, second = (_text(store.path, module, sha256) if sha256 else [] for sha256 in sides)
            before, after = (f"{record.key[:12]}/{module}" for record in records)
            yield from difflib.unified_diff(first, second, before, after, lineterm="")
    if same:
        yield "both records have the same user code"


def _record(store: Store, key: str) -> Record:
    keys = [candidate for candidate in list(store.keys()) if candidate.startswith(key)]
    if len(keys) != 1:
        raise UsageError(
            f"expected one record in {store.path} with a key that begins with {key!r}, found {len(keys)}: `cglsuite results` lists the keys"
        )
    if (record := store.get(keys[0])) is None:
        raise UsageError(f"the record {keys[0][:12]} in {store.path} cannot be read")
    return record


def _text(store: Path, module: str, sha256: str) -> list[str]:
    content = stored_source(store, sha256)
    if content is None:
        return [f"(the source of {module} is not in {store}: its digest is {sha256})"]
    try:
        return content.decode().splitlines()
    except UnicodeDecodeError:
        return [f"({len(content):,} bytes that are not text)"]
