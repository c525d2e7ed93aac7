"""The catalogue: the sorted entries of all loaded plugins, without collisions. It is always passed as an argument and never global.

It also derives scenarios that no plugin defines: any protocol on any data set with a matching level and fields, such as
``photo/class-il@cglb-1``. The parent is the preset of the same setting and protocol that differs least from the other presets of that
protocol, so that exceptions for one data set are not taken for the protocol's rule. Values specific to the parent's data set are not
inherited: searched hyperparameters, memory budgets, listed class orders, time bins, and official splits that the data set lacks.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar, cast

from cglsuite.base.errors import CollisionError, DataError, PluginError, SpecError, UnknownNameError, UsageError, nearest
from cglsuite.base.markup import displayed
from cglsuite.graphs.files.given import FileDatasetSpec, content_of, data_spec
from cglsuite.graphs.files.named import data_files
from cglsuite.graphs.files.shipped import shipped
from cglsuite.host.discovery import (
    BLOCK,
    BUILT_IN,
    CORE,
    FILE,
    Entry,
    Gate,
    KindViewOf,
    PluginRecord,
    find_candidates,
    normalised,
    strict_by_environment,
)
from cglsuite.host.doctor import find_faults
from cglsuite.host.loading import blocked, error_line, load_plugin, output_to_stderr
from cglsuite.specs import (
    CORE_COMMANDS,
    CORE_ENCODERS,
    CORE_MEASURES,
    KINDS,
    BackboneSpec,
    CommandSpec,
    DatasetSpec,
    EncoderSpec,
    ExecutorSpec,
    MeasureSpec,
    MethodSpec,
    MetricSpec,
    NotebookSpec,
    PluginSpec,
    PretrainingSpec,
    ScenarioSpec,
    ScheduleSpec,
    Value,
    switches,
)
from cglsuite.specs.levels import LinkPredictionSpec

Spec = TypeVar("Spec", bound=PluginSpec)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Collision:
    """A name that several plugins provide without an explicit override between them."""

    kind: str
    name: str
    entries: tuple[Entry, ...]

    @property
    def reserved(self) -> bool:
        """Whether the name belongs to one of the suite's commands, which takes precedence."""
        return self.kind == "command" and self.entries[0].record.distribution == CORE

    @property
    def problem(self) -> str:
        """A description of the collision that lists the plugins that provide the name, with their versions."""
        records = [entry.record for entry in self.entries]
        if self.reserved:
            others = ", ".join(record.label for record in records[1:])
            return f"{self.kind} {self.name!r} of {others} has the same name as a built-in {self.kind} of cglsuite"
        labels = [f"{r.label} (entry point {r.entry_point})" if _same_label(r, records) else r.label for r in records]
        return f"{self.kind} {self.name!r} is provided by {len(records)} plugins: {', '.join(labels)}"

    @property
    def remedy(self) -> str:
        """Instructions for resolving the collision."""
        names = sorted({entry.record.distribution for entry in self.entries[self.reserved :]})
        if self.reserved:
            return f"its authors must choose another name; everything else in {' and '.join(names)} works"
        if len(names) == 1:
            return f"use another release of {names[0]}, or block it ({BLOCK}={names[0]})"
        override = f'or, if the override is intended, set replaces="{names[0]}" in the {KINDS[self.kind].__name__} of {names[1]}'
        return f"keep one: block the others ({BLOCK}={','.join(names[1:])}) or uninstall them; {override}"

    @property
    def message(self) -> str:
        """A message that states the problem, the remedy and the plugins' files."""
        files = sorted({str(entry.record.source) for entry in self.entries if entry.record.source is not None})
        return f"{self.problem}. To resolve it, {self.remedy}." + (f" The plugins are in {' and '.join(files)}." if files else "")


def _same_label(record: PluginRecord, records: Sequence[PluginRecord]) -> bool:
    return sum(r.label == record.label for r in records) > 1


class Catalogue:
    """The entries of the loaded plugins.

    A name that several plugins provide is withheld: :meth:`names` and :meth:`entries` omit it, and :meth:`get` raises
    :class:`CollisionError`. An entry whose ``replaces`` names another entry's distribution replaces that entry.

    Each kind is also available as a read-only mapping from names to entries: ``catalogue.methods["ewc"]``, ``catalogue.datasets``, ...

    Args:
        records: one record per plugin, whether or not it was loaded.
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
    encoders = KindViewOf("encoder")
    notebooks = KindViewOf("notebook")
    executors = KindViewOf("executor")
    commands = KindViewOf("command")

    def __init__(self, records: Iterable[PluginRecord], entries: Iterable[Entry]) -> None:
        self._records = tuple(records)
        self._entries: dict[str, dict[str, Entry]] = {kind: {} for kind in KINDS}
        self._collisions: dict[tuple[str, str], Collision] = {}
        self._derivations: dict[str, Entry] = {}
        for (kind, name), group in _grouped(entries).items():
            remaining = _without_replaced(group)
            if kind == "command" and (core := core_entry(kind, name)) is not None:
                self._collisions[kind, name] = Collision(kind=kind, name=name, entries=(core, *group))
            elif len(remaining) == 1:
                self._entries[kind][name] = remaining[0]
            else:
                self._collisions[kind, name] = Collision(kind=kind, name=name, entries=tuple(remaining or group))

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(names)} {kind}s" for kind, names in self._entries.items() if names)
        return f"<Catalogue of {len(self._records)} plugins: {counts or 'empty'}>"

    def _repr_html_(self) -> str:
        return displayed("catalogue_card", self)

    @property
    def records(self) -> list[PluginRecord]:
        """The records of all plugins, sorted by distribution and entry-point name."""
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
        """Raise an error if any plugin failed or names collide, as in strict mode.

        Raises:
            PluginError: a plugin failed. The message lists all failed plugins and all collisions.
            CollisionError: no plugin failed, but a name is provided twice.
        """
        collisions = [collision.message for collision in self.collisions]
        faults = [f"plugin {r.label} failed: {r.error}. To fix it: {r.fix}." for r in self.failed]
        if faults:
            raise PluginError("\n".join(["strict mode requires every plugin to load without faults:", *faults, *collisions]))
        if collisions:
            raise CollisionError("\n".join(["strict mode requires every name to be provided by only one plugin:", *collisions]))

    def names(self, kind: str) -> list[str]:
        """Return the sorted names of a kind (``"method"``, ``"dataset"``, ...)."""
        return list(self._of(kind))

    def entries(self, kind: str) -> list[Entry]:
        """Return the entries of a kind, sorted by name."""
        return list(self._of(kind).values())

    def get(self, kind: str, name: str) -> Entry:
        """Return the entry with this name.

        Raises:
            UnknownNameError: no plugin provides it. The message suggests similar names, and mentions quarantined or blocked plugins.
            CollisionError: several plugins provide it. The message lists them with their versions.
            UsageError: ``name`` is a dataset, not a scenario; the message lists the scenarios on it.
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
            raise UnknownNameError(kind, name, known, self._why_missing())
        return known[name]

    def scenario(self, name: str) -> ScenarioSpec:
        """Return the spec of a scenario. This method and the next nine raise the same errors as :meth:`get`."""
        return self._spec(ScenarioSpec, name)

    def dataset(self, name: str) -> DatasetSpec:
        """Return the spec of a dataset."""
        return self._spec(DatasetSpec, name)

    def backbone(self, name: str) -> BackboneSpec:
        """Return the spec of a backbone."""
        return self._spec(BackboneSpec, name)

    def method(self, name: str) -> MethodSpec:
        """Return the spec of a method."""
        return self._spec(MethodSpec, name)

    def pretraining(self, name: str) -> PretrainingSpec:
        """Return the spec of a pre-training scheme."""
        return self._spec(PretrainingSpec, name)

    def measure(self, name: str) -> MeasureSpec:
        """Return the spec of a measure. Every catalogue includes the core's measures."""
        return self._spec(MeasureSpec, name)

    def metric(self, name: str) -> MetricSpec:
        """Return the spec of a metric."""
        return self._spec(MetricSpec, name)

    def schedule(self, name: str) -> ScheduleSpec:
        """Return the spec of a mixing schedule."""
        return self._spec(ScheduleSpec, name)

    def encoder(self, name: str) -> EncoderSpec:
        """Return the spec of a text encoder. Every catalogue includes the core's encoders."""
        return self._spec(EncoderSpec, name)

    def executor(self, name: str) -> ExecutorSpec:
        """Return the spec of an executor."""
        return self._spec(ExecutorSpec, name)

    def command(self, name: str) -> CommandSpec:
        """Return the spec of a command. Every catalogue includes the suite's own commands."""
        return self._spec(CommandSpec, name)

    def specs(self, of: type[Spec]) -> dict[str, Spec]:
        """Return the specs of one class (``MetricSpec``, ``MethodSpec``, ...) by name, sorted by name."""
        return {name: cast("Spec", entry.spec) for name, entry in self._of(of.kind).items()}

    def _spec(self, kind: type[Spec], name: str) -> Spec:
        return cast("Spec", self.get(kind.kind, name).spec)  # a plugin whose hook returns specs of another class is not loaded

    def derivation(self, name: str) -> Derivation | None:
        """Derive a scenario from an existing preset. Return ``None`` if a plugin provides the name or no data set matches it.

        Raises:
            UnknownNameError: no preset has this setting and protocol.
            SpecError: the protocol cannot be applied to the data set.
        """
        form = form_of(name)
        if form is None or form[0] not in self.names("dataset") or name in self.names("scenario"):
            return None
        return derive(name, self.dataset(form[0]), self.specs(ScenarioSpec).values())

    def _derived(self, name: str) -> Entry | None:
        if name not in self._derivations:
            derivation = self.derivation(name)
            if derivation is None:
                return None
            parent = self.get("scenario", derivation.parent.name)
            self._derivations[name] = Entry(kind="scenario", name=name, spec=derivation.spec, record=parent.record)
            _log.info("%s", derivation.message)
        return self._derivations[name]

    def resolve(self, target: Entry | PluginSpec) -> Any:
        """Import the object named by the ``factory`` or ``builder`` of an entry or spec. For a notebook, return its file.

        Raises:
            PluginError: it cannot be imported. The message names the spec, its provider and version, the failure, and a remedy.
        """
        spec = target.spec if isinstance(target, Entry) else target
        entry = target if isinstance(target, Entry) else self._of(target.kind).get(target.name)
        try:
            return _notebook(spec) if isinstance(spec, NotebookSpec) else _imported(_reference(spec), command=spec.kind == "command")
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            provider = entry.provider if entry else "no plugin of this catalogue"
            reason = str(error) if isinstance(error, PluginError) else error_line(error)
            raise PluginError(
                f"{spec.kind} {spec.name!r} of {provider}: {_reference(spec)!r} cannot be loaded: {reason}. {_remedy(error, entry)}"
            ) from error

    def _of(self, kind: str) -> dict[str, Entry]:
        if kind not in self._entries:
            raise UnknownNameError("kind", kind, self._entries)
        return self._entries[kind]

    def _why_missing(self) -> str:
        """Return the reasons why a name may be missing although its plugin is installed."""
        states = [(len(self.failed), "quarantined"), (sum(r.status == "blocked" for r in self._records), "blocked")]
        parts = [f"{n} {'plugin is' if n == 1 else 'plugins are'} {state}" for n, state in states if n]
        return f"({' and '.join(parts)}: see `cglsuite plugins`.)" if parts else ""


def core_entry(kind: str, name: str) -> Entry | None:
    """Return the built-in measure, encoder or command with this name, which needs no plugin, or ``None``."""
    specs: tuple[PluginSpec, ...] = {"measure": CORE_MEASURES, "encoder": CORE_ENCODERS, "command": CORE_COMMANDS}.get(kind, ())
    spec = next((spec for spec in specs if spec.name == name), None)
    if spec is None:
        return None
    record = PluginRecord(
        distribution=CORE,
        version=_core_version(),
        entry_point=f"core-{kind}s",
        module="cglsuite.specs.plugins",
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
        block: distributions whose plugins are not imported, in addition to those in ``CGLSUITE_PLUGINS_BLOCK`` (comma-separated).
        allow: the only distributions whose plugins are imported. Default: those in ``CGLSUITE_PLUGINS_ALLOW`` if set, else all.
        strict: raise if any plugin failed or names collide; ``CGLSUITE_STRICT=1`` does the same.
        entry_points: load these instead of the installed entry points of the group ``cglsuite``.

    Returns:
        The catalogue. The records of faulty plugins contain the error and how to fix it.

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
    """Load the catalogue like :func:`load_catalogue`, but never in strict mode, for callers that handle faults themselves.

    Args:
        built_in: whether to load the suite's own plugins as well. Loading only third-party plugins takes a fifth of the time.
    """
    candidates = find_candidates(entry_points)
    gate = Gate.from_environment(block, allow)
    gate.warn_of_unknown(c.distribution for c in candidates)
    if not built_in:
        candidates = [c for c in candidates if normalised(c.distribution) not in BUILT_IN]
    records: list[PluginRecord] = []
    entries: list[Entry] = []
    admitted = [c for c in candidates if gate.refusal(c.distribution) is None]
    faults = find_faults(admitted) if entry_points is None else {}  # given entry points may belong to no installed distribution
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
    """Yield the data sets of files passed with ``--data``, each with a plugin record.

    Raises:
        DataError: a file cannot be read, or its arrays are inconsistent.
        UsageError: a data set of that name already exists.
    """
    taken = {entry.name: entry.provider for entry in entries if entry.kind == "dataset"}
    for path in data_files():
        spec = _spec_of_file(path)
        if spec.name in taken:
            raise UsageError(f"{path} would define the data set {spec.name!r}, which {taken[spec.name]} already provides; rename the file")
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


def _spec_of_file(path: Path) -> FileDatasetSpec:
    """Return the spec of a data file. Nodes with real targets have their own reader; the other one refuses them."""
    try:
        return data_spec(path)
    except DataError:
        from cglsuite.graphs.files.node_targets import node_target_spec

        if (spec := node_target_spec(path)) is None:
            raise
        return spec


def _grouped(entries: Iterable[Entry]) -> dict[tuple[str, str], list[Entry]]:
    """Group entries by (kind, name), sorted by that and then by provider, so that the loading order does not matter."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in sorted(entries, key=lambda e: (e.kind, e.name, normalised(e.record.distribution), e.record.entry_point)):
        groups.setdefault((entry.kind, entry.name), []).append(entry)
    return groups


def _without_replaced(group: list[Entry]) -> list[Entry]:
    replaced = {normalised(entry.spec.replaces) for entry in group if entry.spec.replaces}
    return [entry for entry in group if normalised(entry.record.distribution) not in replaced]


def _reference(spec: PluginSpec) -> str:
    """Return the import string of a spec."""
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
        raise PluginError(f"{attribute!r} is of type {type(imported).__name__}, which is not callable")
    if command:
        import click

        if not isinstance(imported, click.Command):
            raise PluginError(
                f"{attribute!r} is of type {type(imported).__name__}; expected a click command, as created by @click.command()"
            )
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


_OWN = frozenset({"dataset", "dataset_hyperparameters"})
"""The switches that are expected to differ between presets of one protocol."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Derivation:
    """A derived scenario: its ``spec``, its ``parent`` preset, and descriptions of everything that was ``left_out``."""

    spec: ScenarioSpec
    parent: ScenarioSpec
    left_out: tuple[str, ...]

    @property
    def message(self) -> str:
        """A one-line description for users."""
        left = f"; left out: {', '.join(self.left_out)}" if self.left_out else ""
        return f"{self.spec.name} is derived from {self.parent.name}{left} (cglsuite scenarios diff {self.parent.name} {self.spec.name})"


def form_of(name: str) -> tuple[str, str] | None:
    """Split ``"photo/class-il@cglb-1"`` into ``("photo", "class-il@cglb-1")``; return ``None`` for names in any other form."""
    dataset, slash, rest = name.partition("/")
    return (dataset, rest) if slash and "@" in rest and dataset and rest else None


def derive(name: str, dataset: DatasetSpec, presets: Iterable[ScenarioSpec]) -> Derivation:
    """Derive the scenario ``name`` on ``dataset`` from the presets of the same setting and protocol.

    Args:
        name: ``"<dataset>/<setting>@<protocol>"``.
        dataset: the data set that the name begins with.
        presets: all presets of the catalogue, on any data set.

    Raises:
        UnknownNameError: no preset has this setting and protocol.
        SpecError: the presets with this setting and protocol have a different level or kind of labels, or need an attribute that the data
        set lacks.
    """
    form = form_of(name)
    if form is None:
        raise SpecError(f"scenario {name!r}: expected <dataset>/<setting>@<protocol>")
    presets = list(presets)
    alike = [p for p in presets if p.name.partition("/")[2] == form[1]]
    if not alike:
        raise UnknownNameError("scenario", name, {f"{form[0]}/{p.name.partition('/')[2]}" for p in presets} | {p.name for p in presets})
    parents = _matching(name, dataset, alike, [p for p in presets if p.dataset == dataset.name])
    parent = _most_similar_preset(parents)
    defaults, dropped = _shared_defaults(parents, parent)
    changes: dict[str, Any] = {"dataset_hyperparameters": (), "method_defaults": defaults, "method_trials": {}}
    left = [dropped] if dropped else []
    shared = len({p.dataset for p in parents}) > 1 and len({p.memory_budget for p in parents}) == 1
    if parent.memory_budget is not None and not shared:
        changes["memory_budget"] = None
        left.append(f"the memory budget of {parent.memory_budget} items (no limit; --set scenario.memory_budget=N)")
    if "," in parent.class_order:
        changes["class_order"] = "random"
        left.append(f"the class orders written for {parent.dataset} (random)")
    changes |= _split(dataset, parent, left) | _task_attribute(name, dataset, parent, left)
    changes |= _node_features([p for p in presets if p.dataset == dataset.name and p.level == parent.level], parent, left)
    if isinstance(dataset, FileDatasetSpec):
        changes |= _of_file(dataset, parent, left)
    spec = dataclasses.replace(
        parent,
        name=name,
        dataset=dataset.name,
        summary=f"{form[1].partition('@')[0]} on {dataset.name}, derived from {parent.name}: no published preset",
        note=" ".join(filter(None, [parent.note, f"Derived from {parent.name}; nobody has published values under this name."])),
        derived_from=parent.name,
        **changes,
    )
    return Derivation(spec=spec, parent=parent, left_out=tuple(left))


def derivable(dataset: DatasetSpec, presets: Iterable[ScenarioSpec]) -> list[str]:
    """Return the sorted names of all scenarios on ``dataset`` that :func:`derive` can create and that are not presets.

    For a data file, only scenarios are included for which it has enough classes of the required size.
    """
    presets, names = list(presets), []
    known = {p.name for p in presets}
    for rest in {p.name.partition("/")[2] for p in presets}:
        name = f"{dataset.name}/{rest}"
        if form_of(name) is None or name in known:
            continue
        try:
            derivation = derive(name, dataset, presets)
        except (SpecError, UnknownNameError):
            continue
        if derivation.spec.task_key is None:
            works = not isinstance(dataset, FileDatasetSpec) or not dataset.class_sizes or _fills_a_task(derivation.spec, dataset)
        else:
            works = dataset.keys is not None  # whether a dataset has an attribute that it does not declare is unknown
        if works:
            names.append(name)
    return sorted(names)


def _fills_a_task(spec: ScenarioSpec, dataset: FileDatasetSpec) -> bool:
    """Return whether a file has enough sufficiently large classes for the first task, and for a second one after base classes."""
    return _usable_classes(spec, dataset) >= (spec.classes_per_task or spec.n_tasks or 1)


def _usable_classes(spec: ScenarioSpec, dataset: FileDatasetSpec) -> int:
    """Return the number of classes that are divided into tasks of equal size."""
    return sum(size >= spec.min_class_size for size in dataset.class_sizes) - (spec.base_classes or 0)


def needs_protocol(dataset: DatasetSpec, presets: Iterable[ScenarioSpec]) -> str:
    """Return the message for a data set that was named in place of a scenario. It lists the scenarios on this data set."""
    presets = list(presets)
    names = sorted(p.name for p in presets if p.dataset == dataset.name)
    more = derivable(dataset, presets)
    parts = [f"{dataset.name!r} is a dataset: expected a scenario over it, with a setting and a protocol."]
    parts += [f"Presets: {', '.join(names)}."] if names else []
    parts += [f"{'Derived from other presets' if names else 'Derived from presets of other datasets'}: {', '.join(more)}."] if more else []
    return " ".join(parts)


def _matching(name: str, dataset: DatasetSpec, alike: Sequence[ScenarioSpec], of_dataset: Sequence[ScenarioSpec]) -> list[ScenarioSpec]:
    """Return the presets that match the data set's level and kind of labels."""
    levels = dataset.levels
    fitting = [p for p in alike if p.level in levels]
    if not fitting:
        there = ", ".join(sorted({p.level for p in alike}))
        classless = alike[0].setting in ("task-il", "class-il") and not {"NC", "LC", "GC"} & set(levels)
        reason = ", whose items have no classes that could arrive" if classless else ""
        raise SpecError(
            f"{name} cannot be derived: {dataset.name} is of level {', '.join(levels)}{reason}, but {name.partition('/')[2]} is of level "
            f"{there}; choose a protocol of that level (cglsuite list scenarios)"
        )
    labels = {dataset.labels} if dataset.labels is not None else {p.labels for p in of_dataset}
    queried = labels | {"open"} if "single" in labels else labels  # an open world learns single labels
    matching = [p for p in fitting if not labels or p.labels in queried]
    if not matching and isinstance(dataset, FileDatasetSpec) and dataset.binary:
        matching = [p for p in fitting if p.labels == "multi"]  # two classes are one label, see _of_file
    if not matching:
        there = ", ".join(sorted({p.labels for p in fitting}))
        raise SpecError(
            f"{name} cannot be derived: labels of {dataset.name} are {', '.join(sorted(labels))}, but {name.partition('/')[2]} exists only "
            f"for {there} labels; choose another protocol (cglsuite list scenarios)"
        )
    if len({p.labels for p in matching}) > 1 and not labels:
        matching = [p for p in matching if p.labels == "single"] or matching
    return matching


def _most_similar_preset(presets: Sequence[ScenarioSpec]) -> ScenarioSpec:
    """Return the preset that differs from the others in the fewest switches. Ties go to the first by name."""
    every = [_values_by_switch(p) for p in presets]
    counts = {key: Counter(flat.get(key) for flat in every) for key in set().union(*every)}
    shared = [sum(counts[key][value] for key, value in flat.items() if key not in _OWN) for flat in every]
    return min(zip(presets, shared, strict=True), key=lambda pair: (-pair[1], pair[0].name))[0]


def _values_by_switch(preset: ScenarioSpec) -> dict[str, str]:
    parts = {"": preset, "training.": preset.training, "stream.": preset.task_free}
    return {
        f"{prefix}{key}": repr(value)
        for prefix, part in parts.items()
        if part is not None
        for key, value in switches(part, implicit=True).items()
    }


def _shared_defaults(presets: Sequence[ScenarioSpec], parent: ScenarioSpec) -> tuple[dict[str, dict[str, Value]], str]:
    """Return the parent's defaults per method that belong to its protocol, and a description of those specific to its data set.

    A value belongs to the protocol if presets on several data sets share it, or if the protocol searches nothing. Otherwise, numbers in a
    protocol with only one data set, and hyperparameters that the protocol searches, are specific to the data set.
    """
    several = len({p.dataset for p in presets}) > 1 or not parent.searched
    shared: dict[str, dict[str, Value]] = {}
    dropped: set[str] = set()
    for method, values in parent.method_defaults.items():
        for key, value in values.items():
            same = all(p.method_defaults.get(method, {}).get(key, value) == value for p in presets)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if key in parent.searched or not same or (number and not several):
                dropped.add(key)
            else:
                shared.setdefault(method, {})[key] = value
    words = f"what was searched on {parent.dataset} per method ({', '.join(sorted(dropped))}: defaults apply)" if dropped else ""
    return shared, words


def _split(dataset: DatasetSpec, parent: ScenarioSpec, omitted: list[str]) -> dict[str, Any]:
    if parent.split != "official" or dataset.official_split is not False:
        return {}
    split = "per-class" if parent.labels in ("single", "open") and parent.setting != "time-il" else "random"
    omitted.append(f"the official split, which {dataset.name} does not have ({split})")
    return {"split": split}


def _node_features(of_dataset: Sequence[ScenarioSpec], parent: ScenarioSpec, omitted: list[str]) -> dict[str, Any]:
    """Return the node features that the data set's own presets of this level use if the parent expects features that it may lack."""
    theirs = {p.node_features for p in of_dataset}
    if parent.node_features != "given" or len(theirs) != 1 or "given" in theirs:
        return {}
    (features,) = theirs
    omitted.append(f"the node features of {parent.dataset} (scenario.node_features = {features})")
    return {"node_features": features}


def _of_file(dataset: FileDatasetSpec, parent: ScenarioSpec, omitted: list[str]) -> dict[str, Any]:
    """Return the settings that follow from a user's graph: its classes, its edge features, and the possible number of negatives."""
    changes: dict[str, Any] = _classes(dataset, parent, omitted)
    if dataset.labels == "single" and parent.labels == "multi":
        options = next(str(h.default) for h in dataset.hyperparameters if h.name == "options")
        changes["dataset_hyperparameters"] = (("options", json.dumps(json.loads(options) | {"labels": "multi"}, sort_keys=True)),)
        omitted.append("several labels (the two classes are one label, true or false: labels = multi)")
    hyperparameters = dict(parent.backbone_hyperparameters)
    if (theirs := hyperparameters.get("edge_features", dataset.edge_features)) != dataset.edge_features:
        changes["backbone_hyperparameters"] = tuple((hyperparameters | {"edge_features": dataset.edge_features}).items())
        omitted.append(f"{theirs} features of an edge (backbone.edge_features = {dataset.edge_features})")
    ranking = parent.level_spec
    if isinstance(ranking, LinkPredictionSpec) and dataset.absent_pairs is not None:
        # By default there are as many as test links, about a tenth of all: of few links too few to rank among.
        enough = ranking.negatives or (None if dataset.links // 10 >= 2 * ranking.hits_k else 4 * ranking.hits_k)
        # Test and validation have their own, and each of them needs room to be drawn at random.
        negatives = min(enough or dataset.links // 10, max(1, dataset.absent_pairs // 4))
        if negatives != (enough or dataset.links // 10) or (enough and ranking.negatives is None):
            hits_k = min(ranking.hits_k, max(1, negatives // 4))
            changes["level_spec"] = dataclasses.replace(ranking, negatives=negatives, hits_k=hits_k)
            values = f"scenario.negatives = {negatives}, scenario.hits_k = {hits_k}"
            omitted.append(f"the number of negatives, which follows the size of the graph ({values})")
    return changes


def _classes(dataset: FileDatasetSpec, parent: ScenarioSpec, omitted: list[str]) -> dict[str, Any]:
    """Divide all classes of the file into as many tasks as possible. The last task also takes the remaining classes."""
    classes = _usable_classes(parent, dataset)
    size, tasks = parent.classes_per_task, parent.n_tasks
    if parent.task_key is not None or classes < (size or tasks or 1):
        return {}  # tasks are of something else, or there are too few classes for one, which is said where tasks are formed
    changes: dict[str, Any] = {}
    if size is not None and tasks is not None and tasks - (parent.base_classes is not None) > classes // size:
        changes["n_tasks"] = tasks = None
        omitted.append(f"the {parent.n_tasks} tasks of {parent.dataset} ({classes} classes fill fewer)")
    alone = classes % (size or tasks or 1) if size is None or tasks is None else 0
    if alone and parent.leftover == "drop" and not parent.drop_last:
        changes["leftover"] = "join-last"
        which = "class that fills" if alone == 1 else "classes that fill"
        omitted.append(f"tasks of equal size: the last also takes the {alone} {which} no task (scenario.leftover = join-last)")
    return changes


def _task_attribute(name: str, dataset: DatasetSpec, parent: ScenarioSpec, omitted: list[str]) -> dict[str, Any]:
    """Choose the data set's attribute for tasks if the parent's tasks come from one. The parent's bins are dropped."""
    if parent.task_key is None:
        return {}
    changes: dict[str, Any] = {}
    if parent.task_bins:
        changes["task_bins"] = ()
        omitted.append(f"the bins of {parent.task_key} of {parent.dataset} (one step per value; --set scenario.task_bins=...)")
    keys, timed = dataset.keys, parent.setting == "time-il" or parent.edge_policy == "snapshot"
    if keys is not None and parent.task_key not in keys:
        fitting = [key for key in keys if (key == "time") == timed] or list(keys)
        if len(fitting) > 1 and not timed:
            omitted.append(
                f"the attribute {parent.task_key}: tasks are the values of {fitting[0]} (or --set scenario.task_key={fitting[1]})"
            )
            fitting = fitting[:1]
        if len(fitting) != 1:
            there = f"it has {', '.join(keys)}" if keys else "it has none"
            raise SpecError(
                f"{name} cannot be derived: its tasks are the values of an item attribute such as {parent.task_key!r}, and "
                f"{dataset.name} must have exactly one such attribute ({there}); add the array, or choose another protocol"
            )
        changes["task_key"] = fitting[0]
    if keys is not None and (stream := parent.task_free) is not None:
        schedule = dict(stream.schedule_hyperparameters)
        if "key" in schedule and schedule["key"] not in keys:
            schedule["key"] = changes.get("task_key", parent.task_key)
            changes["task_free"] = dataclasses.replace(stream, schedule_hyperparameters=tuple(schedule.items()))
    return changes
