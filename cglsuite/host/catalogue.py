"""The catalogue: the entries of all loaded plugins, sorted, without collisions. It is passed as an argument, not a global registry."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar, cast

from cglsuite.base.errors import CollisionError, PluginError, SpecError, UnknownNameError, UsageError, nearest
from cglsuite.base.markup import displayed
from cglsuite.graphs.files.given import content_of, data_spec
from cglsuite.graphs.files.named import data_files
from cglsuite.graphs.files.shipped import shipped
from cglsuite.host.derived import Derivation, derive, form_of, needs_protocol
from cglsuite.host.discovery import BLOCK, BUILT_IN, CORE, Gate, find_candidates, normalised, strict_by_environment
from cglsuite.host.doctor import dangerous
from cglsuite.host.loading import blocked, load_plugin, one_line, output_to_stderr
from cglsuite.host.plugin_records import FILE, Entry, KindViewOf, PluginRecord
from cglsuite.specs import (
    CORE_COMMANDS,
    CORE_MEASURES,
    KINDS,
    BackboneSpec,
    CommandSpec,
    DatasetSpec,
    ExecutorSpec,
    MeasureSpec,
    MethodSpec,
    MetricSpec,
    NotebookSpec,
    PluginSpec,
    PretrainingSpec,
    ScenarioSpec,
    ScheduleSpec,
)

__all__ = ["Catalogue", "Collision", "core_entry", "load_catalogue", "load_leniently"]

Spec = TypeVar("Spec", bound=PluginSpec)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Collision:
    """A name that several plugins provide without an explicit override."""

    kind: str
    name: str
    entries: tuple[Entry, ...]

    @property
    def reserved(self) -> bool:
        """Whether the name is that of a command of the suite itself, which comes first and keeps it."""
        return self.kind == "command" and self.entries[0].record.distribution == CORE

    @property
    def problem(self) -> str:
        """Who provides the name, with versions."""
        records = [entry.record for entry in self.entries]
        if self.reserved:
            others = ", ".join(record.label for record in records[1:])
            return f"{self.kind} {self.name!r} of {others} has the name of a {self.kind} of cglsuite itself"
        labels = [f"{r.label} (entry point {r.entry_point})" if _same_label(r, records) else r.label for r in records]
        return f"{self.kind} {self.name!r} is provided by {len(records)} plugins: {', '.join(labels)}"

    @property
    def remedy(self) -> str:
        """How to resolve it."""
        names = sorted({entry.record.distribution for entry in self.entries[self.reserved :]})
        if self.reserved:
            return f"its authors must choose another name; the rest of {' and '.join(names)} works"
        if len(names) == 1:
            return f"use another release of {names[0]}, or block it ({BLOCK}={names[0]})"
        override = f'or, to override on purpose, set replaces="{names[0]}" in the {KINDS[self.kind].__name__} of {names[1]}'
        return f"keep one: block the others ({BLOCK}={','.join(names[1:])}) or uninstall them; {override}"

    @property
    def message(self) -> str:
        """The problem and the remedy, with the plugins' files."""
        files = sorted({str(entry.record.source) for entry in self.entries if entry.record.source is not None})
        return f"{self.problem}. To resolve it, {self.remedy}." + (f" The plugins are in {' and '.join(files)}." if files else "")


def _same_label(record: PluginRecord, records: Sequence[PluginRecord]) -> bool:
    return sum(r.label == record.label for r in records) > 1


class Catalogue:
    """The entries of the loaded plugins.

    A name that several plugins provide is withheld: it is in neither :meth:`names` nor :meth:`entries`, and :meth:`get` raises
    :class:`CollisionError`. An entry whose ``replaces`` names another entry's distribution replaces that entry.

    Every kind is also a read-only mapping from names to entries: ``catalogue.methods["ewc"]``, ``catalogue.datasets``, ...

    Args:
        records: one per plugin, loaded or not.
        entries: all entries of the loaded plugins, in any order.
    """

    datasets = KindViewOf("dataset")
    scenarios = KindViewOf("scenario")
    backbones = KindViewOf("backbone")
    methods = KindViewOf("method")
    pretrainings = KindViewOf("pretraining")
    measures = KindViewOf("measure")
    metrics = KindViewOf("metric")
    schedules = KindViewOf("schedule")
    notebooks = KindViewOf("notebook")
    executors = KindViewOf("executor")
    commands = KindViewOf("command")

    def __init__(self, records: Iterable[PluginRecord], entries: Iterable[Entry]) -> None:
        self._records = tuple(records)
        self._entries: dict[str, dict[str, Entry]] = {kind: {} for kind in KINDS}
        self._collisions: dict[tuple[str, str], Collision] = {}
        self._derivations: dict[str, Entry] = {}
        for (kind, name), group in _grouped(entries).items():
            kept = _without_replaced(group)
            if kind == "command" and (core := core_entry(kind, name)) is not None:
                self._collisions[kind, name] = Collision(kind=kind, name=name, entries=(core, *group))
            elif len(kept) == 1:
                self._entries[kind][name] = kept[0]
            else:
                self._collisions[kind, name] = Collision(kind=kind, name=name, entries=tuple(kept or group))

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(names)} {kind}s" for kind, names in self._entries.items() if names)
        return f"<Catalogue of {len(self._records)} plugins: {counts or 'empty'}>"

    def _repr_html_(self) -> str:
        return displayed("catalogue:catalogue_card", self)

    @property
    def records(self) -> list[PluginRecord]:
        """One record per plugin, sorted by distribution and entry-point name."""
        return list(self._records)

    @property
    def failed(self) -> list[PluginRecord]:
        """The quarantined plugins."""
        return [record for record in self._records if record.status == "failed"]

    @property
    def collisions(self) -> list[Collision]:
        """The names that are withheld, sorted by kind and name."""
        return [self._collisions[key] for key in sorted(self._collisions)]

    def raise_faults(self) -> None:
        """Raise on any fault, as in strict mode.

        Raises:
            PluginError: a plugin failed; names all that did, and all collisions.
            CollisionError: no plugin failed, but a name is provided twice.
        """
        collisions = [collision.message for collision in self.collisions]
        faults = [f"plugin {r.label} failed: {r.error}. To fix it: {r.fix}." for r in self.failed]
        if faults:
            raise PluginError("\n".join(["strict mode accepts no fault:", *faults, *collisions]))
        if collisions:
            raise CollisionError("\n".join(["strict mode accepts no collision:", *collisions]))

    def names(self, kind: str) -> list[str]:
        """The names of a kind (``"method"``, ``"dataset"``, ...), sorted."""
        return list(self._of(kind))

    def entries(self, kind: str) -> list[Entry]:
        """The entries of a kind, sorted by name."""
        return list(self._of(kind).values())

    def get(self, kind: str, name: str) -> Entry:
        """The entry of that name.

        Raises:
            UnknownNameError: no plugin provides it; suggests the nearest, and says if plugins are quarantined or blocked.
            CollisionError: several plugins provide it; names all of them with their versions.
            UsageError: a scenario was asked for by the name of a dataset; lists the scenarios over it.
        """
        known = self._of(kind)
        if (kind, name) in self._collisions:
            raise CollisionError(self._collisions[kind, name].message)
        if name not in known and kind == "scenario" and (entry := self._derived(name)) is not None:
            return entry
        if name not in known and (core := core_entry(kind, name)) is not None:
            return core
        if name not in known and kind == "scenario" and name in self._of("dataset"):
            raise UsageError(needs_protocol(self.dataset(name), self.specs(ScenarioSpec).values()))
        if name not in known:
            raise UnknownNameError(kind, name, known, self._absent())
        return known[name]

    def scenario(self, name: str) -> ScenarioSpec:
        """The spec of the scenario of that name. This and the nine below raise what :meth:`get` raises."""
        return self._spec(ScenarioSpec, name)

    def dataset(self, name: str) -> DatasetSpec:
        """The spec of the dataset of that name."""
        return self._spec(DatasetSpec, name)

    def backbone(self, name: str) -> BackboneSpec:
        """The spec of the backbone of that name."""
        return self._spec(BackboneSpec, name)

    def method(self, name: str) -> MethodSpec:
        """The spec of the method of that name."""
        return self._spec(MethodSpec, name)

    def pretraining(self, name: str) -> PretrainingSpec:
        """The spec of the pre-training of that name."""
        return self._spec(PretrainingSpec, name)

    def measure(self, name: str) -> MeasureSpec:
        """The spec of the measure of that name; those of the core are in every catalogue."""
        return self._spec(MeasureSpec, name)

    def metric(self, name: str) -> MetricSpec:
        """The spec of the metric of that name."""
        return self._spec(MetricSpec, name)

    def schedule(self, name: str) -> ScheduleSpec:
        """The spec of the schedule of that name."""
        return self._spec(ScheduleSpec, name)

    def executor(self, name: str) -> ExecutorSpec:
        """The spec of the executor of that name."""
        return self._spec(ExecutorSpec, name)

    def command(self, name: str) -> CommandSpec:
        """The spec of the command of that name; those of the suite itself are in every catalogue."""
        return self._spec(CommandSpec, name)

    def specs(self, of: type[Spec]) -> dict[str, Spec]:
        """The specs of one class (``MetricSpec``, ``MethodSpec``, ...) by name, sorted."""
        return {name: cast("Spec", entry.spec) for name, entry in self._of(of.kind).items()}

    def _spec(self, kind: type[Spec], name: str) -> Spec:
        return cast("Spec", self.get(kind.kind, name).spec)  # a plugin whose hook returns specs of another class is not loaded

    def derivation(self, name: str) -> Derivation | None:
        """How a scenario that no plugin names follows from one that is there; ``None`` where a plugin names it, or no data set is meant.

        Raises:
            UnknownNameError: no preset has this setting and protocol.
            SpecError: the protocol does not fit the data set.
        """
        form = form_of(name)
        if form is None or form[0] not in self.names("dataset") or name in self.names("scenario"):
            return None
        return derive(name, self.dataset(form[0]), self.specs(ScenarioSpec).values())

    def _derived(self, name: str) -> Entry | None:
        if name not in self._derivations:
            made = self.derivation(name)
            if made is None:
                return None
            parent = self.get("scenario", made.parent.name)
            self._derivations[name] = Entry(kind="scenario", name=name, spec=made.spec, record=parent.record)
            _log.info("%s", made.message)
        return self._derivations[name]

    def resolve(self, target: Entry | PluginSpec) -> Any:
        """Import the object that an entry's or spec's ``factory`` or ``builder`` names; for a notebook, return its file.

        Raises:
            PluginError: it cannot be imported; names the spec, its provider and version, what failed, and what to do.
        """
        spec = target.spec if isinstance(target, Entry) else target
        entry = target if isinstance(target, Entry) else self._of(target.kind).get(target.name)
        try:
            return _notebook(spec) if isinstance(spec, NotebookSpec) else _imported(_reference(spec), command=spec.kind == "command")
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            provider = entry.provider if entry else "no plugin of this catalogue"
            reason = str(error) if isinstance(error, PluginError) else one_line(error)
            raise PluginError(
                f"{spec.kind} {spec.name!r} of {provider}: {_reference(spec)!r} cannot be loaded: {reason}. {_remedy(error, entry)}"
            ) from error

    def _of(self, kind: str) -> dict[str, Entry]:
        if kind not in self._entries:
            raise UnknownNameError("kind", kind, self._entries)
        return self._entries[kind]

    def _absent(self) -> str:
        """Why a name may be missing although its plugin is installed."""
        states = [(len(self.failed), "quarantined"), (sum(r.status == "blocked" for r in self._records), "blocked")]
        parts = [f"{n} {'plugin is' if n == 1 else 'plugins are'} {state}" for n, state in states if n]
        return f"({' and '.join(parts)}: see `cglsuite plugins`.)" if parts else ""


def core_entry(kind: str, name: str) -> Entry | None:
    """The core's measure or command of that name, which needs no plugin."""
    specs: tuple[PluginSpec, ...] = {"measure": CORE_MEASURES, "command": CORE_COMMANDS}.get(kind, ())
    spec = next((spec for spec in specs if spec.name == name), None)
    if spec is None:
        return None
    record = PluginRecord(
        distribution=CORE,
        version=_core_version(),
        entry_point=f"core-{kind}s",
        module=f"cglsuite.specs.{kind}",
        status="ok",
        source=Path(__file__).resolve().parents[1],
    )
    return Entry(kind=kind, name=name, spec=spec, record=record)


@cache
def _core_version() -> str:
    try:
        return version("cglsuite")
    except PackageNotFoundError:
        return "unknown"


def load_catalogue(
    *,
    block: Iterable[str] = (),
    allow: Iterable[str] | None = None,
    strict: bool = False,
    entry_points: Iterable[EntryPoint] | None = None,
) -> Catalogue:
    """Load every installed plugin that is neither blocked nor faulty.

    Args:
        block: distributions whose plugins are not imported; ``CGLSUITE_PLUGINS_BLOCK`` (comma-separated) adds to them.
        allow: if given, only plugins of these distributions are imported; default ``CGLSUITE_PLUGINS_ALLOW``, else all.
        strict: raise if any plugin failed or names collide; ``CGLSUITE_STRICT=1`` does the same.
        entry_points: loaded instead of the installed entry points of the group ``cglsuite``.

    Returns:
        The catalogue; the records of faulty plugins hold their error and fix.

    Raises:
        PluginError: in strict mode, if any plugin failed.
        CollisionError: in strict mode, if no plugin failed but a name is provided twice.

    Example:
        >>> load_catalogue(entry_points=[]).names("method")
        []
    """
    catalogue = load_leniently(block=block, allow=allow, entry_points=entry_points)
    for record in catalogue.failed:
        if record.from_file:  # named on purpose: nobody wants to go on without it
            raise PluginError(f"plugin file {record.source or record.distribution}: {record.error}. To fix it: {record.fix}.")
    if strict or strict_by_environment():
        catalogue.raise_faults()
    return catalogue


def load_leniently(
    *,
    block: Iterable[str] = (),
    allow: Iterable[str] | None = None,
    entry_points: Iterable[EntryPoint] | None = None,
    built_in: bool = True,
) -> Catalogue:
    """:func:`load_catalogue` for callers that handle faults themselves: never strict, regardless of the environment.

    Args:
        built_in: whether the plugins of the suite are loaded too; those of others alone take a fifth of the time.
    """
    candidates = find_candidates(entry_points)
    gate = Gate.from_environment(block, allow)
    gate.warn_of_unknown(c.distribution for c in candidates)
    if not built_in:
        candidates = [c for c in candidates if normalised(c.distribution) not in BUILT_IN]
    records: list[PluginRecord] = []
    entries: list[Entry] = []
    admitted = [c for c in candidates if gate.refusal(c.distribution) is None]
    faults = dangerous(admitted) if entry_points is None else {}  # given entry points may belong to no installed distribution
    provided: tuple[Entry, ...]
    for candidate in candidates:
        if refusal := gate.refusal(candidate.distribution):
            record, provided = blocked(candidate, *refusal), ()
        elif fault := faults.get(candidate.key):
            record, provided = replace(blocked(candidate, fault.error, fault.fix), status="failed"), ()
        else:
            with output_to_stderr():
                record, provided = load_plugin(candidate)
        records.append(record)
        entries.extend(provided)
    for record, entry in _from_data_files(entries) if entry_points is None else ():
        records.append(record)
        entries.append(entry)
    return Catalogue(records, entries)


def _from_data_files(entries: Iterable[Entry]) -> Iterator[tuple[PluginRecord, Entry]]:
    """The data sets of the files that were named (``--data``), each with a record of its own.

    Raises:
        DataError: a file cannot be read, or its arrays do not fit together.
        UsageError: a data set of that name is there already.
    """
    taken = {entry.name: entry.provider for entry in entries if entry.kind == "dataset"}
    for path in data_files():
        spec = data_spec(path)
        if spec.name in taken:
            raise UsageError(f"{path} would make the data set {spec.name!r}, which {taken[spec.name]} provides: rename the file")
        record = PluginRecord(
            distribution=path.name,
            version=f"sha256-{content_of(path)[:12]}",
            entry_point=FILE,
            module=spec.factory.partition(":")[0],
            status="ok",
            source=path,
            provides={"dataset": (spec.name,)},
        )
        taken[spec.name] = record.label
        yield record, Entry(kind="dataset", name=spec.name, spec=spec, record=record)


def _grouped(entries: Iterable[Entry]) -> dict[tuple[str, str], list[Entry]]:
    """Entries by (kind, name), sorted by that and then by provider, so that the loading order does not matter."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in sorted(entries, key=lambda e: (e.kind, e.name, normalised(e.record.distribution), e.record.entry_point)):
        groups.setdefault((entry.kind, entry.name), []).append(entry)
    return groups


def _without_replaced(group: list[Entry]) -> list[Entry]:
    replaced = {normalised(entry.spec.replaces) for entry in group if entry.spec.replaces}
    return [entry for entry in group if normalised(entry.record.distribution) not in replaced]


def _reference(spec: PluginSpec) -> str:
    """The import string of a spec."""
    for attribute in ("factory", "builder", "path"):
        if text := getattr(spec, attribute, None):
            return str(text)
    raise SpecError(f"{type(spec).__name__} {spec.name!r} has no import string")


def _imported(reference: str, *, command: bool = False) -> Any:
    module_name, _, attribute = reference.partition(":")
    module = importlib.import_module(module_name)
    try:
        imported = getattr(module, attribute)
    except AttributeError:
        close = nearest(attribute, vars(module), 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise PluginError(f"module {module_name!r} has no {attribute!r}{hint}") from None
    if not callable(imported):
        raise PluginError(f"{attribute!r} is a {type(imported).__name__}, which cannot be called")
    if command:
        import click

        if not isinstance(imported, click.Command):
            raise PluginError(f"{attribute!r} is a {type(imported).__name__}; expected a click command, as @click.command() makes it")
    return imported


def _notebook(spec: NotebookSpec) -> Path:
    package, _, relative = spec.path.partition(":")
    path = shipped(package, relative)
    if not path.is_file():
        raise PluginError(f"there is no file {relative} in the package {package}")
    return path


def _remedy(error: BaseException, entry: Entry | None) -> str:
    name = entry.record.distribution if entry else "the distribution that provides it"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"Install the distribution that provides the module {error.name!r}, or another version of {name}."
    return f"Reinstall {name}, try another version of it, or tell its authors."
