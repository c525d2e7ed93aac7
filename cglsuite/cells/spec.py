"""The specification of a cell: a scenario, a method and a backbone, with all switches and hyperparameters resolved and all seeds set."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cglsuite.base.errors import NotApplicable, SpecError, UnknownNameError
from cglsuite.base.hashing import digest
from cglsuite.cells.portable import NumericsWord
from cglsuite.graphs.files.given import FileDatasetSpec
from cglsuite.specs import (
    NO_PRETRAINING,
    BackboneSpec,
    DatasetSpec,
    Hyperparameter,
    MethodSpec,
    PretrainingSpec,
    ScenarioSpec,
    Seeds,
    TaskFreeSpec,
    TrainingSpec,
    Value,
    effect_of,
    parse_switch,
    resolve_hyperparameters,
    switches,
    with_switches,
)
from cglsuite.specs.hyperparameters import implicit_defaults
from cglsuite.specs.plugins import PRETRAINING_SCHEME
from cglsuite.specs.scenario import check_effective

if TYPE_CHECKING:
    from cglsuite.host import Catalogue


_MAX_TASKS = 200
"""The largest number of values of a data file's attribute that become tasks without an explicit request."""
_WEIGHTED = ("gcn", "gin")
"""The backbones whose message graphs may have edge weights."""
_SECTIONS = ("scenario", "stream", "schedule", "training", "dataset", "backbone", "method", "pretraining")


@dataclass(frozen=True, kw_only=True)
class CellSpec:
    """The specification of one cell. ``scenario`` contains the resolved switches and training. ``preset`` is its display name.

    ``numerics``: see :mod:`cglsuite.cells.portable`.
    ``inputs``: digests of what user code reads, if they differ from those of an earlier result (:mod:`cglsuite.cells.code.inputs`).
    """

    scenario: ScenarioSpec
    preset: str
    method: str
    method_hyperparameters: Mapping[str, Value]
    backbone: str
    backbone_hyperparameters: Mapping[str, Value]
    dataset_hyperparameters: Mapping[str, Value]
    pretraining: str = NO_PRETRAINING
    pretraining_hyperparameters: Mapping[str, Value] = field(default_factory=dict)
    seeds: Seeds = field(default_factory=Seeds)
    threads: int = 1
    device: str = "cpu"
    dtype: str = "float32"
    numerics: NumericsWord = "native"
    inputs: Mapping[str, str | None] = field(default_factory=dict)

    def __repr__(self) -> str:
        seeds = f"order {self.seeds.order}, split {self.seeds.split}, init {self.seeds.init}"
        return f"<CellSpec {self.preset} × {self.method} × {self.backbone} ({seeds})>"

    @property
    def configuration(self) -> dict[str, Any]:
        """The value of every switch and hyperparameter by dotted key. Implicit ones are included only if they differ from their
        defaults.
        """
        scenario = {k: v for k, v in switches(self.scenario).items() if k not in ("dataset_hyperparameters", "backbone_hyperparameters")}
        sections: dict[str, Mapping[str, Any]] = {
            "scenario": scenario,
            **_of_stream(self.scenario),
            "training": switches(self.scenario.training),
            "dataset": self.dataset_hyperparameters,
            "backbone": self.backbone_hyperparameters,
            "method": self.method_hyperparameters,
        }
        if self.pretraining != NO_PRETRAINING:
            sections["pretraining"] = {"scheme": self.pretraining, **self.pretraining_hyperparameters}
        return _sections(sections)

    @property
    def weighted(self) -> bool:
        """Whether message graphs use the data's edge weights (the hyperparameter ``edge_weight`` of a built-in backbone)."""
        return self.backbone in _WEIGHTED and bool(self.backbone_hyperparameters.get("edge_weight"))

    @property
    def backbone_arguments(self) -> dict[str, Value]:
        """The hyperparameters that the backbone's factory receives. ``edge_weight`` is not one of them, since it is for the message
        graphs.
        """
        return {n: v for n, v in self.backbone_hyperparameters.items() if n != "edge_weight" or self.backbone not in _WEIGHTED}


def _of_stream(scenario: ScenarioSpec) -> dict[str, dict[str, Any]]:
    """Return the sections of a task-free stream; empty for streams of tasks."""
    task_free = scenario.task_free
    return {} if task_free is None else {"stream": switches(task_free), "schedule": dict(task_free.schedule_hyperparameters)}


def _sections(values: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{section}.{name}": value for section, inner in values.items() for name, value in inner.items()}


def resolve_cell(
    catalogue: Catalogue,
    scenario: str,
    method: str,
    backbone: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    seeds: Seeds = Seeds(),  # noqa: B008 - frozen
    threads: int = 1,
    device: str = "cpu",
    numerics: NumericsWord = "native",
) -> CellSpec:
    """Resolve names and overrides to a cell. Precedence: ``overrides`` > the preset's tuned defaults for the method > the method's training
    defaults > preset.

    Keys of ``overrides`` are dotted (``scenario.classes_per_task``, ``training.lr``, ``method.lambda``), or bare if only one section
    declares the name.

    Raises:
        UnknownNameError: a name is not in the catalogue, or a key is not declared; the message suggests the nearest ones.
        SpecError: a value has the wrong type or range, or a bare key is ambiguous.
        NotApplicable: the combination is impossible; the message is the reason.
    """
    if numerics == "portable" and device != "cpu":
        raise SpecError(f"portable numerics need a CPU; device = {device!r}: choose cpu, or native numerics")
    preset = catalogue.scenario(scenario)
    method_spec = catalogue.method(method)
    dataset_spec = catalogue.dataset(preset.dataset)
    values = dict(overrides or {})
    requested_backbone = values.pop("training.backbone", None)
    if backbone is not None and requested_backbone is not None and backbone != requested_backbone:
        raise SpecError(f"backbone {backbone!r} and training.backbone = {requested_backbone!r}: set only one of them")
    values = {PRETRAINING_SCHEME if key == "pretraining" else key: value for key, value in values.items()}
    pretraining_spec = _requested_pretraining(catalogue, values)
    scheme, of_scheme = (NO_PRETRAINING, ()) if pretraining_spec is None else (pretraining_spec.name, pretraining_spec.all_hyperparameters)
    backbone_name = next(name for name in (backbone, requested_backbone, preset.training.backbone) if name is not None)
    backbone_spec = catalogue.backbone(str(backbone_name))
    declared = {
        "scenario": _open_switches(preset),
        **_declared_of_stream(catalogue, preset, values),
        "training": [n for n in switches(preset.training) if n != "backbone"],
        "dataset": [h.name for h in dataset_spec.hyperparameters],
        "backbone": [h.name for h in backbone_spec.hyperparameters],
        "method": [h.name for h in method_spec.hyperparameters],
        "pretraining": ["scheme", *(h.name for h in of_scheme)],
    }
    if {"edge_weight", "backbone.edge_weight"} & values.keys() and "edge_weight" not in declared["backbone"]:
        raise NotApplicable(f"backbone {backbone_name!r} cannot use edge weights (backbone.edge_weight); {' and '.join(_WEIGHTED)} can")
    own_backbone = backbone_name == preset.training.backbone
    of_method = {f"training.{name}": value for name, value in method_spec.training.items()}
    chosen_for_method = of_method | dict(preset.method_defaults.get(method, {}))
    defaults = _by_section(chosen_for_method if own_backbone else _without(chosen_for_method, "backbone"), declared)
    sections = _by_section(values, declared)
    sections["pretraining"].pop("scheme", None)
    of_pretraining = resolve_hyperparameters(of_scheme, sections["pretraining"], f"pretraining.{scheme}")
    if of_pretraining.get("transfer") == "frozen":
        defaults["training"] = {"norm_statistics": "frozen", **defaults["training"]}
    resolved_scenario = _scenario(catalogue, preset, str(backbone_name), defaults, sections)
    _check_applicable(preset, method_spec, backbone_spec, dataset_spec, _counterparts(catalogue, preset, method_spec))
    if pretraining_spec is not None:
        _check_pretraining(preset, method_spec, pretraining_spec)
    base_backbone = dict(preset.backbone_hyperparameters) if own_backbone else {}
    cell = CellSpec(
        scenario=resolved_scenario,
        preset=preset.name,
        method=method,
        method_hyperparameters=resolve_hyperparameters(
            method_spec.hyperparameters, {**defaults["method"], **sections["method"]}, f"method.{method}"
        ),
        backbone=str(backbone_name),
        backbone_hyperparameters=resolve_hyperparameters(
            backbone_spec.hyperparameters, {**base_backbone, **defaults["backbone"], **sections["backbone"]}, f"backbone.{backbone_name}"
        ),
        dataset_hyperparameters=resolve_hyperparameters(
            dataset_spec.hyperparameters, {**dict(preset.dataset_hyperparameters), **sections["dataset"]}, f"dataset.{preset.dataset}"
        ),
        pretraining=scheme,
        pretraining_hyperparameters=of_pretraining,
        seeds=seeds,
        threads=threads,
        device=device,
        numerics=numerics,
    )
    if cell.weighted:
        _check_weights(cell.scenario, dataset_spec)
    return dataclasses.replace(cell, preset=_shown_name(catalogue, cell, preset, sections, own_backbone))


def _requested_pretraining(catalogue: Catalogue, values: Mapping[str, Any]) -> PretrainingSpec | None:
    """Return the spec of the pre-training scheme that the overrides name; ``None`` for no pre-training.

    Raises:
        SpecError: pre-training is configured but no scheme is named.
    """
    scheme = values.get(PRETRAINING_SCHEME)
    if scheme not in (None, NO_PRETRAINING):
        return catalogue.pretraining(str(scheme))
    if idle := sorted(key for key in values if key.startswith("pretraining.") and key != PRETRAINING_SCHEME):
        known = ", ".join(catalogue.names("pretraining")) or "none is installed"
        raise SpecError(f"{', '.join(idle)}: no pre-training scheme is selected; select one with --pretraining NAME ({known})")
    return None


def _check_pretraining(scenario: ScenarioSpec, method: MethodSpec, spec: PretrainingSpec) -> None:
    """Raise NotApplicable if there is no first task to pre-train on, or the method would not use pre-trained weights."""
    if scenario.level not in spec.levels:
        raise NotApplicable(f"pre-training {spec.name!r} supports only {', '.join(spec.levels)}, but {scenario.name!r} is {scenario.level}")
    if scenario.setting == "task-free":
        raise NotApplicable(f"pre-training {spec.name!r} trains on the first task, but {scenario.name!r} is a stream without tasks")
    if "past-views" in method.needs:
        raise NotApplicable(
            f"method {method.name!r} trains a fresh model on all tasks so far, so pre-training on the first task does not apply"
        )


def _check_weights(scenario: ScenarioSpec, dataset: DatasetSpec) -> None:
    """Raise NotApplicable if edge weights are missing or negative, or would be lost."""
    weights = dataset.weights if isinstance(dataset, FileDatasetSpec) else None
    if weights is None:
        reason = f"edges of {dataset.name!r} have no weights; for your own data, use array edge_weight or column weight of edges.csv"
    elif weights[0] < 0:
        reason = f"an edge of {dataset.name!r} has the weight {weights[0]:g}; expected 0 or more, since degrees are sums of weights"
    elif scenario.training.fan_out:
        reason = "sampled neighbours cannot have weights; set training.fan_out = ()"
    elif scenario.replicas != 1:
        reason = "copies of a graph cannot have weights; set scenario.replicas = 1"
    else:
        return
    raise NotApplicable(f"backbone.edge_weight = true: {reason}")


@dataclass(frozen=True, kw_only=True)
class ResolvedScenario:
    """A scenario without a method. ``spec`` contains the resolved switches, and ``preset`` is its display name."""

    spec: ScenarioSpec
    preset: str
    dataset_hyperparameters: Mapping[str, Value]


def resolve_scenario(catalogue: Catalogue, scenario: str, overrides: Mapping[str, Any] | None = None) -> ResolvedScenario:
    """Resolve a scenario from the name of its preset and from overrides, by dotted or bare key, of its switches and its dataset's
    hyperparameters.

    Raises:
        UnknownNameError: a name is not in the catalogue, or a key is not declared by the scenario or its dataset.
        SpecError: a value has the wrong type or range.
    """
    preset = catalogue.scenario(scenario)
    dataset_spec = catalogue.dataset(preset.dataset)
    declared = {
        "scenario": _open_switches(preset),
        **_declared_of_stream(catalogue, preset, overrides or {}),
        "dataset": [h.name for h in dataset_spec.hyperparameters],
    }
    nothing: dict[str, list[str]] = {section: [] for section in _SECTIONS}
    sections = _by_section(overrides or {}, nothing | declared)
    spec = _scenario(catalogue, preset, preset.training.backbone, {section: {} for section in _SECTIONS}, sections)
    of_dataset = {**dict(preset.dataset_hyperparameters), **sections["dataset"]}
    hyperparameters = resolve_hyperparameters(dataset_spec.hyperparameters, of_dataset, f"dataset.{preset.dataset}")
    hyperparameter_values = implicit_defaults(dataset_spec.hyperparameters) | hyperparameters
    values = _sections({"scenario": switches(spec, implicit=True), **_of_stream(spec), "dataset": hyperparameter_values})
    plain = _sections({"scenario": switches(preset, implicit=True), **_of_stream(_with_schedule(catalogue, preset, {}, {}))})
    plain |= _dataset_defaults(catalogue, preset)
    return ResolvedScenario(spec=spec, preset=_name_of(preset, values, plain, sections), dataset_hyperparameters=hyperparameters)


def _open_switches(preset: ScenarioSpec) -> list[str]:
    """Return the switches of a scenario that may be overridden."""
    fixed = ("dataset_hyperparameters", "backbone_hyperparameters", "searched", "dataset", "level", "setting")
    return [name for name in switches(preset, guards=True, implicit=True) if name not in fixed]


def _without(values: dict[str, Value], section: str) -> dict[str, Value]:
    return {k: v for k, v in values.items() if not k.startswith(section + ".")}


def _by_section(values: Mapping[str, Any], declared: Mapping[str, list[str]]) -> dict[str, dict[str, Any]]:
    """Sort values into sections; a bare key must be declared by exactly one section."""
    out: dict[str, dict[str, Any]] = {section: {} for section in _SECTIONS}
    everything = [f"{section}.{name}" for section, names in declared.items() for name in names]
    for key, value in values.items():
        section, dot, name = key.partition(".")
        if not dot:
            owners = [s for s in _SECTIONS if key in declared[s]]
            if len(owners) > 1:
                raise SpecError(f"{key!r} is ambiguous: write " + " or ".join(f"{s}.{key}" for s in owners))
            section, name = (owners[0] if owners else ""), key
        if section not in out or name not in declared[section]:
            raise UnknownNameError(
                "switch or hyperparameter", key, everything + [e.partition(".")[2] for e in everything] if not dot else everything
            )
        out[section][name] = value
    return out


def _declared_of_stream(catalogue: Catalogue, preset: ScenarioSpec, values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the declared names in a task-free stream's sections, for the schedule in ``values`` or the preset's."""
    if preset.task_free is None:
        return {"stream": [], "schedule": []}
    schedule = catalogue.schedule(str(values.get("stream.schedule", values.get("schedule", preset.task_free.schedule))))
    return {"stream": list(switches(preset.task_free)), "schedule": [h.name for h in schedule.hyperparameters]}


def _with_schedule(catalogue: Catalogue, preset: ScenarioSpec, stream: Mapping[str, Any], schedule: Mapping[str, Any]) -> ScenarioSpec:
    """Return the preset with its stream's overrides and resolved schedule; a stream of tasks is unchanged.

    Hyperparameters that a preset sets for its schedule apply only to that schedule.
    """
    if preset.task_free is None:
        return preset
    task_free = dataclasses.replace(preset.task_free, **{n: parse_switch(TaskFreeSpec, n, v, "stream") for n, v in stream.items()})
    spec = catalogue.schedule(task_free.schedule)
    defaults = dict(preset.task_free.schedule_hyperparameters) if task_free.schedule == preset.task_free.schedule else {}
    hyperparameters = resolve_hyperparameters(spec.hyperparameters, {**defaults, **schedule}, f"schedule.{spec.name}")
    task_free = dataclasses.replace(task_free, schedule_hyperparameters=tuple(hyperparameters.items()), schedule_factory=spec.factory)
    return dataclasses.replace(preset, task_free=task_free)


def _scenario(
    catalogue: Catalogue, preset: ScenarioSpec, backbone: str, defaults: Mapping[str, Any], sections: Mapping[str, Any]
) -> ScenarioSpec:
    values = {**defaults["training"], **sections["training"], "backbone": backbone}
    training = dataclasses.replace(preset.training, **{n: parse_switch(TrainingSpec, n, v, "training") for n, v in values.items()})
    changes = {n: parse_switch(ScenarioSpec, n, v, "scenario") for n, v in {**defaults["scenario"], **sections["scenario"]}.items()}
    preset = _with_schedule(
        catalogue, preset, {**defaults["stream"], **sections["stream"]}, {**defaults["schedule"], **sections["schedule"]}
    )
    resolved = with_switches(dataclasses.replace(preset, training=training), changes, "scenario")
    check_effective(resolved, preset, sections)
    _check_task_count(catalogue, resolved)
    return _with_measure(catalogue, resolved)


def _check_task_count(catalogue: Catalogue, scenario: ScenarioSpec) -> None:
    """Require bins if an attribute of a data file has too many values to make each a task."""
    dataset, key = catalogue.dataset(scenario.dataset), scenario.task_key
    if not isinstance(dataset, FileDatasetSpec) or key is None or scenario.task_bins or scenario.n_tasks is not None:
        return
    if (count := dataset.distinct.get(key, 0)) > _MAX_TASKS:
        raise SpecError(
            f"{scenario.name}: {key} of {dataset.name} has {count:,} values, and each would become a task; use bins, such as the "
            f"deciles: --set scenario.task_bins={','.join(map(str, dataset.deciles[key]))} (or the first N: --set scenario.n_tasks=N)"
        )


def _with_measure(catalogue: Catalogue, scenario: ScenarioSpec) -> ScenarioSpec:
    """Return the scenario with the spec of its performance measure.

    Raises:
        UnknownNameError: there is no such measure. SpecError: the measure is for different labels or levels.
    """
    spec = catalogue.measure(scenario.performance)
    for what, value, known in (("labels", scenario.labels, spec.labels), ("level", scenario.level, spec.levels)):
        if value not in known:
            provider = catalogue.get("measure", spec.name).provider
            expected = f"it scores {what} {', '.join(known)}; {scenario.name} has {value}"
            raise SpecError(f"scenario.performance = {spec.name}, a measure of {provider}: {expected}")
    return dataclasses.replace(scenario, measure=spec)


def _counterparts(catalogue: Catalogue, scenario: ScenarioSpec, method: MethodSpec) -> str:
    """Return methods that fill the same role in this scenario, as the end of a sentence."""
    counterparts = [name for name in method.elsewhere if name in catalogue.names("method")]
    fit: list[Any] = [catalogue.get("method", name).spec for name in counterparts]
    names = [spec.name for spec in fit if scenario.setting in spec.settings and scenario.level in spec.levels]
    return f"; its counterpart there is {' or '.join(map(repr, names))}" if names else ""


def _check_applicable(scenario: ScenarioSpec, method: MethodSpec, backbone: BackboneSpec, dataset: DatasetSpec, counterparts: str) -> None:
    if scenario.level not in dataset.levels:
        raise NotApplicable(
            f"dataset {dataset.name!r} supports only {', '.join(dataset.levels)}, but {scenario.name!r} is {scenario.level}"
        )
    if scenario.level not in backbone.levels:
        raise NotApplicable(
            f"backbone {backbone.name!r} supports only {', '.join(backbone.levels)}, but {scenario.name!r} is {scenario.level}"
        )
    if scenario.level not in method.levels:
        raise NotApplicable(f"method {method.name!r} supports only {', '.join(method.levels)}, but {scenario.name!r} is {scenario.level}")
    learnt = "single" if scenario.labels == "open" else scenario.labels  # an open world changes queries, not training
    if method.labels and learnt not in method.labels:
        raise NotApplicable(
            f"method {method.name!r} learns {' or '.join(method.labels)} labels; those of {scenario.name!r} are {scenario.labels}"
        )
    if scenario.setting == "task-free" and (needs := [n for n in ("task-boundaries", "epochs") if n in method.needs]):
        raise NotApplicable(
            f"method {method.name!r} needs {needs[0].replace('-', ' ')}, which a task-free stream does not have{counterparts}"
        )
    if scenario.setting not in method.settings:
        raise NotApplicable(
            f"method {method.name!r} is defined for {', '.join(method.settings)}; {scenario.name!r} is {scenario.setting}{counterparts}"
        )
    if "task-id" in method.needs and not scenario.task_ids_at_test:
        raise NotApplicable(f"method {method.name!r} needs the task at test time, which {scenario.setting} does not provide")


def _shown_name(catalogue: Catalogue, cell: CellSpec, preset: ScenarioSpec, sections: Mapping[str, Any], is_preset_backbone: bool) -> str:
    """Return the preset's name, with a hash if switches were overridden that its protocol does not leave to search."""
    changes: dict[str, Any] = {} if is_preset_backbone else {"training.backbone": cell.backbone}
    values = omitted_defaults(catalogue, cell) | cell.configuration
    return _name_of(preset, values, default_configuration(catalogue, preset, cell.backbone), sections, changes)


def _name_of(
    preset: ScenarioSpec,
    values: Mapping[str, Any],
    plain: Mapping[str, Any],
    sections: Mapping[str, Any],
    further: Mapping[str, Any] | None = None,
) -> str:
    changed = {
        f"{section}.{name}": values[f"{section}.{name}"]
        for section in ("scenario", "stream", "schedule", "training", "dataset", "backbone")
        for name in sections[section]
        if f"{section}.{name}" not in preset.searched
        and f"{section}.{name}" in values  # guards are not part of the cell
        and values[f"{section}.{name}"] != plain.get(f"{section}.{name}", object())
    } | dict(further or {})
    return f"{preset.name}+{digest(changed)[:8]}" if changed else preset.name


def omitted_defaults(catalogue: Catalogue, cell: CellSpec) -> dict[str, Any]:
    """Return the implicit switches and hyperparameters that a configuration omits, with their defaults, by dotted key."""
    declared: dict[str, tuple[Hyperparameter, ...]] = {
        "dataset": catalogue.dataset(cell.scenario.dataset).hyperparameters,
        "backbone": catalogue.backbone(cell.backbone).hyperparameters,
        "method": catalogue.method(cell.method).hyperparameters,
    }
    values = switches(cell.scenario)
    unstated = {name: value for name, value in switches(cell.scenario, implicit=True).items() if name not in values}
    return _sections({"scenario": unstated, **{section: implicit_defaults(of_section) for section, of_section in declared.items()}})


def default_configuration(catalogue: Catalogue, preset: ScenarioSpec, backbone: str | None = None) -> dict[str, Any]:
    """Return the value of every switch and hyperparameter of a preset, by dotted key, without overrides or methods.

    Args:
        backbone: a backbone other than the preset's, which starts from its own defaults.
    """
    name = backbone or preset.training.backbone
    declared = catalogue.backbone(name)
    values: dict[str, Any] = {f"scenario.{n}": v for n, v in switches(preset, implicit=True).items()}
    values |= _sections(_of_stream(_with_schedule(catalogue, preset, {}, {})))
    values |= {f"training.{n}": v for n, v in switches(preset.training).items()}
    values |= {f"backbone.{h.name}": h.default for h in declared.hyperparameters}
    if name == preset.training.backbone:
        values |= {f"backbone.{n}": v for n, v in preset.backbone_hyperparameters}
    return values | _dataset_defaults(catalogue, preset)


def _dataset_defaults(catalogue: Catalogue, preset: ScenarioSpec) -> dict[str, Any]:
    dataset = catalogue.dataset(preset.dataset)
    values = {h.name: h.default for h in dataset.hyperparameters} | dict(preset.dataset_hyperparameters)
    return {f"dataset.{name}": value for name, value in values.items()}


# Compare two scenario presets field by field: every switch and hyperparameter in which they differ, and the effect. Does not import torch.


class _Absent:
    def __repr__(self) -> str:
        return "-"


ABSENT: Any = _Absent()
"""The value of a key that only one preset has, because the other's backbone or dataset does not declare it."""
_EXPANDED = ("scenario.dataset_hyperparameters", "scenario.backbone_hyperparameters")  # their content has separate rows
_BUILDER = "the code that forms tasks and queries; further differences may follow from it"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One field in which two presets differ.

    Args:
        field: the dotted key, as in ``--set``; a preset's default for a method is ``method_defaults.METHOD.KEY``.
        a, b: the two values; :data:`ABSENT` if a preset has no such key.
        effect: one line that describes the effect on results.
    """

    field: str
    a: Any
    b: Any
    effect: str

    @property
    def section(self) -> str:
        """The part of the preset that contains the field: ``scenario``, ``stream``, ``schedule``, ``training``, ``backbone``,
        ``dataset`` or ``method_defaults``.
        """
        return self.field.partition(".")[0]

    def to_json(self) -> dict[str, Any]:
        """Return the difference as plain types; an absent value is null."""
        return {
            "field": self.field,
            "a": None if self.a is ABSENT else self.a,
            "b": None if self.b is ABSENT else self.b,
            "effect": self.effect,
        }


def preset_differences(catalogue: Catalogue, a: str, b: str) -> list[Difference]:
    """Return the fields in which presets ``a`` and ``b`` differ, among their switches, training, backbone, dataset and defaults per method.

    A method's hyperparameter is omitted if both presets set it in the same way for all methods.

    Raises:
        UnknownNameError: a preset, or a component of it, is not in the catalogue; the message suggests the nearest ones.

    Example:
        >>> from cglsuite import load_catalogue
        >>> preset_differences(load_catalogue(), "cora/task-il@begin-1", "cora/task-il@cglb-1")[0].field  # doctest: +SKIP
        'scenario.class_order'
    """
    sides = (_Side(catalogue, a), _Side(catalogue, b))
    return [*_of_values(*sides), *_of_methods(*sides)]


_OWNERS = {"scenario": ScenarioSpec, "stream": TaskFreeSpec, "training": TrainingSpec}


class _Side:
    """One of two compared presets with all its values."""

    def __init__(self, catalogue: Catalogue, name: str) -> None:
        spec = catalogue.scenario(name)
        self.catalogue, self.spec = catalogue, spec
        self.values = {k: v for k, v in default_configuration(catalogue, spec).items() if k not in _EXPANDED} | {
            "scenario.builder": spec.builder
        }
        self.effects: dict[str, str] = {}
        self._declare("backbone", catalogue.backbone(spec.training.backbone).hyperparameters)
        self._declare("dataset", catalogue.dataset(spec.dataset).hyperparameters)
        self.owners = {"backbone": spec.training.backbone, "dataset": spec.dataset, "schedule": ""}
        if spec.task_free is not None:
            self._declare("schedule", catalogue.schedule(spec.task_free.schedule).hyperparameters)
            self.owners["schedule"] = spec.task_free.schedule

    def _declare(self, section: str, declared: tuple[Hyperparameter, ...]) -> None:
        self.effects |= {f"{section}.{h.name}": h.effect or h.doc for h in declared}

    def of_method(self, method: str) -> Mapping[str, Any]:
        """Return the preset's values that are specific to a method, by dotted key. All other values are in :attr:`values`."""
        declared = {f"method.{h.name}": h for h in self.hyperparameters(method)}
        return {key: h.default for key, h in declared.items()} | dict(self.spec.method_defaults.get(method, {}))

    def hyperparameters(self, method: str) -> tuple[Hyperparameter, ...]:
        """Return the hyperparameters of a method. There are none if it is not installed, because presets may mention such methods."""
        return self.catalogue.method(method).hyperparameters if method in self.catalogue.names("method") else ()


def _of_values(a: _Side, b: _Side) -> Iterator[Difference]:
    keys = dict.fromkeys([*a.values, *b.values])
    for section in ("scenario", "stream", "schedule", "training", "backbone", "dataset"):
        for key in (k for k in keys if k.startswith(f"{section}.")):
            values = a.values.get(key, ABSENT), b.values.get(key, ABSENT)
            if values[0] != values[1]:
                yield Difference(field=key, a=values[0], b=values[1], effect=_effect(key, a, b, values))


def _of_methods(a: _Side, b: _Side) -> Iterator[Difference]:
    for method in sorted({*a.spec.method_defaults, *b.spec.method_defaults}):
        mine, theirs = a.of_method(method), b.of_method(method)
        documents = {f"method.{h.name}": h.effect or h.doc for h in a.hyperparameters(method)}
        for key in sorted({*mine, *theirs}):
            general = a.values.get(key, ABSENT), b.values.get(key, ABSENT)
            values = mine.get(key, general[0]), theirs.get(key, general[1])
            if values[0] != values[1] and values != general:
                effect = documents.get(key) or _effect(key, a, b, values)
                yield Difference(field=f"method_defaults.{method}.{key}", a=values[0], b=values[1], effect=effect)


def _effect(key: str, a: _Side, b: _Side, values: tuple[Any, Any]) -> str:
    section, _, name = key.partition(".")
    if key == "scenario.builder":
        return _BUILDER
    if section in _OWNERS:
        return effect_of(_OWNERS[section], name, *values)
    text = a.effects.get(key) or b.effects.get(key, "")
    owners = [side.owners.get(section, side.spec.dataset) for side in (a, b)]
    for value, other, side in ((values[0], values[1], 0), (values[1], values[0], 1)):
        if other is ABSENT and value is not ABSENT:
            text = f"{owners[side]} only: {text}" if text else f"{owners[side]} only"
    return text or "not declared by any installed plugin"
