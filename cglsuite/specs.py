"""Frozen descriptions shared by all rooms: what plugins declare, and what a cell is keyed by. Imports no torch."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_type_hints

from cglsuite.errors import SpecError, UnknownNameError

__all__ = [
    "API_VERSION",
    "KINDS",
    "LEVELS",
    "SETTINGS",
    "BackboneSpec",
    "DatasetSpec",
    "ExecutorSpec",
    "Hyperparameter",
    "Level",
    "MethodSpec",
    "MetricSpec",
    "NotebookSpec",
    "PluginSpec",
    "ScenarioSpec",
    "Seeds",
    "Setting",
    "Switch",
    "TrainingSpec",
    "Value",
    "parse_switch",
    "resolve_hyperparameters",
    "switches",
]

API_VERSION = 1
Level = Literal["NC", "LC", "LP", "GC", "GR"]
Setting = Literal["task-il", "class-il", "domain-il", "time-il", "task-free"]
LEVELS: tuple[str, ...] = get_args(Level)
SETTINGS: tuple[str, ...] = get_args(Setting)
Value = bool | int | float | str | None
_NAME = re.compile(r"[a-z0-9][a-z0-9._+-]*")
_PRESET = re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9-]+@[a-z0-9.-]+")
_FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True, kw_only=True)
class Hyperparameter:
    """One declared, typed setting of a dataset, backbone or method.

    The type is that of ``default``; ``None`` is allowed only where ``optional`` is true (then ``kind`` names the type).
    """

    name: str
    default: Value
    doc: str
    kind: type | None = None
    choices: tuple[Value, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    optional: bool = False

    @property
    def type(self) -> type:
        """bool, int, float or str."""
        return self.kind or type(self.default)

    def parse(self, given: Any, where: str) -> Value:
        """``given`` (a string from a command line, or a TOML/JSON value) as a checked value of this setting.

        Raises:
            SpecError: wrong type, not among ``choices``, or out of range; the message names ``where``.
        """
        wanted = self.type.__name__ + (" or none" if self.optional else "")
        problem = SpecError(f"{where}.{self.name} = {given!r}: expected {wanted} ({self.doc})")
        if given is None or (isinstance(given, str) and given.lower() in {"none", "null"} and self.type is not str):
            if self.optional:
                return None
            raise problem
        value: Any = _convert(given, self.type, problem)
        if self.choices and value not in self.choices:
            raise SpecError(f"{where}.{self.name} = {given!r}: expected one of {', '.join(map(str, self.choices))} ({self.doc})")
        if self.minimum is not None and value < self.minimum:
            raise SpecError(f"{where}.{self.name} = {given!r}: expected at least {self.minimum} ({self.doc})")
        if self.maximum is not None and value > self.maximum:
            raise SpecError(f"{where}.{self.name} = {given!r}: expected at most {self.maximum} ({self.doc})")
        checked: Value = value
        return checked


def _convert(given: Any, wanted: type, problem: SpecError) -> Any:
    if wanted is bool:
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if isinstance(given, bool):
            return given
        if isinstance(given, str) and given.lower() in words:
            return words[given.lower()]
        raise problem
    if isinstance(given, bool) or not isinstance(given, (str, int, float)):
        raise problem
    try:
        value = wanted(given) if wanted is not int else _as_int(given)
    except ValueError:
        raise problem from None
    if wanted is str and not isinstance(given, str):
        raise problem
    if wanted is float and value != value:
        raise problem
    return value


def _as_int(given: str | int | float) -> int:
    number = float(given)
    if number != int(number):
        raise ValueError(given)
    return int(given) if isinstance(given, (int, str)) and str(given).lstrip("+-").isdigit() else int(number)


@dataclass(frozen=True, kw_only=True)
class PluginSpec:
    """What all specs share. ``factory`` is a lazy ``"package.module:Object"`` string, so that listing imports no torch.

    ``replaces`` names the distribution whose entry of the same name this one overrides on purpose.
    """

    name: str
    summary: str
    citation: str = ""
    api_version: int = API_VERSION
    replaces: str | None = None

    def __post_init__(self) -> None:
        pattern = _PRESET if isinstance(self, ScenarioSpec) else _NAME
        if not isinstance(self.name, str) or not pattern.fullmatch(self.name):
            form = "<dataset>/<setting>@<protocol>-<version>" if pattern is _PRESET else "lower-case letters, digits and . _ + -"
            raise SpecError(f"{type(self).__name__} name {self.name!r}: expected {form}")
        if not isinstance(self.summary, str) or not self.summary.strip():
            raise SpecError(f"{type(self).__name__} {self.name!r}: a one-line summary is needed")
        factory = getattr(self, "factory", None)
        if factory is not None and not (isinstance(factory, str) and _FACTORY.fullmatch(factory)):
            raise SpecError(f'{type(self).__name__} {self.name!r}: factory {factory!r} is not a "package.module:Object" string')
        for level in getattr(self, "levels", ()):
            if level not in LEVELS:
                raise UnknownNameError("problem level", level, LEVELS)
        for setting in getattr(self, "settings", ()):
            if setting not in SETTINGS:
                raise UnknownNameError("incremental setting", setting, SETTINGS)


def resolve_hyperparameters(declared: tuple[Hyperparameter, ...], given: Mapping[str, Any], where: str) -> dict[str, Value]:
    """Defaults overlaid with ``given``, every value checked; unknown names are errors that suggest the nearest."""
    by_name = {h.name: h for h in declared}
    for name in given:
        if name not in by_name:
            raise UnknownNameError(f"setting of {where}", name, by_name)
    return {n: (h.parse(given[n], where) if n in given else h.default) for n, h in sorted(by_name.items())}


@dataclass(frozen=True, kw_only=True)
class DatasetSpec(PluginSpec):
    """A dataset: ``factory(root: DataRoot, **parameters)`` returns a :class:`cglsuite.graphs.NodeData`."""

    factory: str
    levels: tuple[str, ...] = ("NC",)
    licence: str = "not stated"
    home: str = ""
    embedded: bool = False
    parameters: tuple[Hyperparameter, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BackboneSpec(PluginSpec):
    """A backbone: ``factory(in_features: int, outputs: int, **hyperparameters)`` returns a :class:`cglsuite.backbones.Backbone`."""

    factory: str
    levels: tuple[str, ...] = ("NC",)
    hyperparameters: tuple[Hyperparameter, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MethodSpec(PluginSpec):
    """A continual-learning method: ``factory(context: MethodContext)`` returns a :class:`cglsuite.Method`.

    ``needs`` names what the method cannot do without, among ``"past-views"`` (the training views of all earlier tasks: upper
    bounds only), ``"task-id"`` (at prediction), ``"task-boundaries"`` and ``"epochs"`` (several passes over a task).
    """

    factory: str
    levels: tuple[str, ...] = ("NC",)
    settings: tuple[str, ...] = ("task-il", "class-il", "domain-il", "time-il")
    needs: tuple[str, ...] = ()
    category: str = "other"
    hyperparameters: tuple[Hyperparameter, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for need in self.needs:
            if need not in NEEDS:
                raise UnknownNameError(f"need of method {self.name!r}", need, NEEDS)


NEEDS = ("past-views", "task-id", "task-boundaries", "epochs")


@dataclass(frozen=True, kw_only=True)
class MetricSpec(PluginSpec):
    """A metric: ``factory(matrix, joint=None) -> float``, a pure function of the performance matrix.

    ``matrix`` is float64 ``[T + 1, T]``: row 0 before training, row k after task k, NaN where a query could not be asked.
    ``joint`` is the matrix of the ``joint`` method in the same scenario and seeds, given where ``needs_joint``.
    """

    factory: str
    formula: str
    direction: Literal["up", "down"]
    range: tuple[float, float] = (float("-inf"), float("inf"))
    needs_joint: bool = False
    settings: tuple[str, ...] = ("task-il", "class-il", "domain-il", "time-il")
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class NotebookSpec(PluginSpec):
    """A parameterised notebook: ``path`` is ``"package:relative/path.ipynb"``; its cell tagged ``parameters`` declares what it takes."""

    path: str
    interactive: bool = False


@dataclass(frozen=True, kw_only=True)
class ExecutorSpec(PluginSpec):
    """Runs cells: ``factory()`` returns an object with ``run(cells, store, options) -> int`` (see cglsuite.executors)."""

    factory: str


def Switch(default: Any = dataclasses.MISSING, doc: str = "", choices: tuple[Any, ...] = ()) -> Any:
    """A dataclass field of a protocol with what it does; ``choices`` are checked."""
    metadata = {"doc": doc, "choices": choices}
    return field(metadata=metadata) if default is dataclasses.MISSING else field(default=default, metadata=metadata)


def switches(spec: Any) -> dict[str, Any]:
    """Name to value of every documented switch of a protocol dataclass, in declared order."""
    return {f.name: getattr(spec, f.name) for f in dataclasses.fields(spec) if f.metadata.get("doc")}


def parse_switch(owner: type, name: str, given: Any, where: str) -> Any:
    """``given`` (text or a TOML/JSON value) as a value of the switch ``name`` of a protocol dataclass.

    Raises:
        UnknownNameError: no such switch; the nearest are named.
        SpecError: a value of the wrong type.
    """
    fields = {f.name: f for f in dataclasses.fields(owner) if f.metadata.get("doc")}
    if name not in fields:
        raise UnknownNameError(f"switch {where}.", name, fields)
    hint = str(get_type_hints(owner)[name])
    doc = fields[name].metadata["doc"]
    if hint.startswith("tuple["):
        parts = given.split(",") if isinstance(given, str) else given
        if not isinstance(parts, (list, tuple)):
            raise SpecError(f"{where}.{name} = {given!r}: expected a list ({doc})")
        try:
            return tuple(float(p) if "float" in hint else p for p in parts)
        except (TypeError, ValueError):
            raise SpecError(f"{where}.{name} = {given!r}: expected numbers ({doc})") from None
    kind = next(t for t in (bool, int, float, str) if t.__name__ in hint)
    declared = Hyperparameter(name=name, default=None, kind=kind, optional="None" in hint, doc=doc)
    return declared.parse(given, where)


def _check_switches(spec: Any, where: str) -> None:
    for f in dataclasses.fields(spec):
        choices = f.metadata.get("choices") or ()
        value = getattr(spec, f.name)
        if choices and value not in choices:
            raise UnknownNameError(f"value of {where}.{f.name}", str(value), [str(c) for c in choices])


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """How one task is trained: the protocol's own defaults, before any method's searched ones."""

    backbone: str = Switch("gcn", "the backbone's name in the catalogue")
    optimizer: str = Switch("adam", "the optimiser", ("adam", "sgd"))
    lr: float = Switch(1e-3, "initial learning rate")
    weight_decay: float = Switch(0.0, "L2 penalty added to the gradient by the optimiser")
    epochs: int = Switch(200, "passes over the task's training items at most")
    plateau_patience: int | None = Switch(
        None, "epochs without a better monitored value before the rate is cut; none = constant rate, last epoch kept"
    )
    plateau_factor: float = Switch(0.1, "what the rate is multiplied with on a plateau")
    stop_ratio: float = Switch(1e-3, "stop when the rate has fallen to this share of its start")
    monitor: str = Switch("none", "the scalar that steers the schedule", ("none", "validation-loss"))
    restore_best: bool = Switch(False, "after a task, go back to the weights of the best monitored value")
    carry_optimizer: bool = Switch(False, "whether the optimiser's moments survive the end of a task")
    class_balanced: bool = Switch(False, "weigh the loss of an item by 1 / (count of its class in the batch)")

    def __post_init__(self) -> None:
        _check_switches(self, "training")
        if not self.lr > 0:
            raise SpecError(f"training.lr = {self.lr!r}: expected a positive number")
        if self.weight_decay < 0:
            raise SpecError(f"training.weight_decay = {self.weight_decay!r}: expected at least 0")
        if self.epochs < 0:
            raise SpecError(f"training.epochs = {self.epochs!r}: expected at least 0")
        if (self.plateau_patience is not None or self.restore_best) and self.monitor == "none":
            raise SpecError("training.monitor = none: a plateau schedule and restore_best need a monitored value (validation-loss)")


@dataclass(frozen=True, kw_only=True)
class ScenarioSpec(PluginSpec):
    """A scenario: dataset × incremental setting × protocol with every switch explicit; building it yields a stream.

    ``builder`` is a lazy ``"package.module:function"`` called as ``builder(spec, data, seeds)``. ``method_defaults`` maps a method to
    the dotted settings that the preset's search chose for it (``{"ewc": {"method.lambda": 1e4, "training.lr": 5e-3}}``).
    """

    dataset: str = Switch(doc="the dataset's name in the catalogue")
    setting: str = Switch(
        doc="what arrives: classes with the task known at test time, classes without it, domains, or time steps", choices=SETTINGS
    )
    protocol: str = ""
    level: str = Switch("NC", "the problem level", LEVELS)
    builder: str = "cglsuite.streams.classes:build_class_stream"
    dataset_settings: tuple[tuple[str, Value], ...] = Switch((), "parameters of the dataset that differ from its defaults")
    classes_per_task: int = Switch(2, "how many classes arrive with each task")
    n_tasks: int | None = Switch(None, "how many tasks at most; none = as many as the classes allow")
    leftover: str = Switch("drop", "what happens to classes that do not fill a task", ("drop", "join-last"))
    min_class_size: int = Switch(1, "classes with fewer items are removed before tasks are formed")
    class_order: str = Switch("random", "native order, or a permutation drawn with the order seed, or explicit: 3,1,2,0")
    edge_policy: str = Switch(
        "full",
        "which edges carry messages: none = the task's induced subgraph; inter-task = that of all tasks so far; "
        "full = the whole graph at all times",
        ("none", "inter-task", "full"),
    )
    undirected: bool = Switch(True, "whether every edge carries messages both ways")
    feature_normalisation: str = Switch("none", "row = every feature row is scaled to sum 1", ("none", "row"))
    split: str = Switch(
        "per-class", "official = the dataset's own split; per-class = drawn per class with the split seed", ("official", "per-class")
    )
    split_ratio: tuple[float, float, float] = Switch(
        (0.6, 0.2, 0.2), "shares of training, validation and test items; unused by official splits"
    )
    train_outputs: str = Switch(
        "seen", "which outputs compete in training: the task's own, all seen so far, or all", ("task", "seen", "all")
    )
    accuracy: str = Switch("micro", "accuracy of a task: over items (micro) or the mean over its classes (macro)", ("micro", "macro"))
    head: str = Switch("fixed", "fixed = one output per class from the start", ("fixed",))
    memory_budget: int | None = Switch(None, "items that a method may keep in memory in all; none = no limit, metered all the same")
    searched: tuple[str, ...] = Switch((), "settings that the protocol leaves to a search on validation data")
    training: TrainingSpec = TrainingSpec()
    backbone_settings: tuple[tuple[str, Value], ...] = Switch((), "hyper-parameters of the backbone that differ from its defaults")
    method_defaults: Mapping[str, Mapping[str, Value]] = field(default_factory=dict, hash=False, compare=False)
    note: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_switches(self, "scenario")
        ratio = self.split_ratio
        if len(ratio) != 3 or not (min(ratio) >= 0 and abs(sum(ratio) - 1) <= 1e-9):
            raise SpecError(f"scenario.split_ratio = {ratio!r}: expected three shares that sum to 1")
        if self.n_tasks is not None and self.n_tasks < 1:
            raise SpecError(f"scenario.n_tasks = {self.n_tasks!r}: expected at least 1, or none for as many as the classes allow")
        if self.classes_per_task < 1:
            raise SpecError(f"scenario.classes_per_task = {self.classes_per_task!r}: expected at least 1")

    @property
    def task_ids_at_test(self) -> bool:
        """Whether a query carries its task (only in task-IL)."""
        return self.setting == "task-il"


@dataclass(frozen=True, kw_only=True)
class Seeds:
    """The three separate axes of randomness: task/class order, data split, and everything the method draws."""

    order: int = 0
    split: int = 0
    init: int = 0


KINDS: dict[str, type[PluginSpec]] = {
    "dataset": DatasetSpec,
    "scenario": ScenarioSpec,
    "backbone": BackboneSpec,
    "method": MethodSpec,
    "metric": MetricSpec,
    "notebook": NotebookSpec,
    "executor": ExecutorSpec,
}
