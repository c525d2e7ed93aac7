"""Scenario specs: a dataset, an incremental setting and a protocol with explicit values for all switches.

This module also defines the switches of task-free streams, the seeds of a cell, and which switches have no effect in a scenario because of
the values of other switches.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import ClassVar

from cglsuite.base.errors import SpecError
from cglsuite.base.inputs import quoted, seed_number
from cglsuite.specs.hyperparameters import Value
from cglsuite.specs.levels import LEVEL_SPECS, LEVELS, SETTINGS, LevelSpec
from cglsuite.specs.plugins import MEASURES, PERFORMANCE_RANGES, MeasureSpec, PluginSpec
from cglsuite.specs.switch import ByLevel, Switch, check_switches, declared_switches
from cglsuite.specs.training import TrainingSpec

_SCOPES = re.compile(r"all|first-tasks\((?:[2-9]|[1-9][0-9]{1,5})\)")
_ASKED_ONCE = "cglsuite.streams.asked_once:build_asked_once"


_WHOLE = dict.fromkeys(("GC", "GR"), "items are whole graphs without edges between them")
_FREE = {"task-free": "task-free streams train on the whole graph, and stream.query_graph says where queries arrive"}


@dataclass(frozen=True, kw_only=True)
class EdgePolicy:
    """A value of ``scenario.edge_policy``, with its meaning and its scope. :mod:`cglsuite.streams.build` builds the graphs.

    Args:
        doc: describes the message graph. effect: describes how the policy affects results.
        refused: maps a level, a setting or both (``"LP time-il"``) to the reason why the policy cannot be used there.
        apart: whether every task has a separate graph, so that a query's graph can reveal its task.
        unchanged: the reason why later tasks do not change the graph around a task's queries; empty if the graph grows.
    """

    name: str
    doc: str
    effect: str
    refused: Mapping[str, str] = field(default_factory=dict, hash=False)
    apart: bool = False
    unchanged: str = ""

    def allows(self, level: str, setting: str) -> bool:
        """Return whether the policy can be used in a setting for a problem level."""
        return not self.refused.keys() & {level, setting, f"{level} {setting}"}

    def refusal(self, level: str, setting: str) -> str:
        """Explain why the policy cannot be used there and which policies can; an empty string if it can be used."""
        reason = next((self.refused[where] for where in (level, setting, f"{level} {setting}") if where in self.refused), "")
        allowed = [policy.name for policy in EDGE_POLICIES.values() if policy.allows(level, setting)]
        return f"{reason}; expected {' or '.join(filter(None, (', '.join(allowed[:-1]), *allowed[-1:])))}" if reason else ""


EDGE_POLICIES: Mapping[str, EdgePolicy] = {
    policy.name: policy
    for policy in (
        EdgePolicy(
            name="none",
            doc="the task's induced subgraph",
            effect="each query is evaluated in the subgraph of its task, whose topology can reveal the task in class-IL",
            refused=_WHOLE | _FREE,
            apart=True,
            unchanged="the graph of a task's queries stays as it was",
        ),
        EdgePolicy(
            name="inter-task",
            doc="the induced subgraph of all tasks so far",
            effect="the graph grows with each task, so items of earlier tasks are tested with neighbours from later tasks",
            refused=_WHOLE | _FREE,
        ),
        EdgePolicy(
            name="snapshot",
            doc="the induced subgraph of all nodes up to the task's time",
            effect="only nodes and edges that exist by the task's time are visible, so nothing leaks from the future into training",
            refused=_WHOLE | {setting: f"{setting} has no time steps" for setting in ("task-il", "class-il", "domain-il")},
        ),
        EdgePolicy(
            name="full",
            doc="the whole graph at all times",
            effect="all nodes and edges are visible at all times, without labels, so features of later tasks reach earlier ones",
            refused={"LP time-il": "in time-il it carries messages along links before their time"},
            unchanged="the graph is the same at all times",
        ),
    )
}
"""The edge policies by name. Scenarios refuse what an entry does not allow, and so do builders, whose code is part of keys."""


@dataclass(frozen=True, kw_only=True)
class ScenarioSpec(PluginSpec):
    """A scenario: dataset × incremental setting × protocol, with explicit values for all switches. Building it yields a stream.

    ``builder`` is a lazy ``"package.module:function"`` that is called as ``builder(spec, data, seeds)``. ``method_defaults`` maps a method
    to the values chosen by the preset's search, by dotted key (``{"ewc": {"method.lambda": 1e4, "training.lr": 5e-3}}``). ``level_spec``
    contains the switches that only scenarios of this level have (default: their defaults, or ``None`` if the level has none).
    ``method_trials`` is the number of settings that the search tried for each method (1 for methods not listed). ``search_scope`` is the
    default of ``[search] scope`` in campaigns, which limits the tasks that a search sees: ``all``, as in papers, or ``first-tasks(k)`` with
    k >= 2. The catalogue sets ``measure`` to the spec of ``performance`` when it resolves a scenario.
    """

    kind: ClassVar[str] = "scenario"
    naming: ClassVar[tuple[re.Pattern[str], str]] = (
        re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9-]+@[a-z0-9.-]+"),
        "<dataset>/<setting>@<protocol>-<version>",
    )

    dataset: str = Switch(
        doc="the dataset's name in the catalogue", effect="values on different data are not comparable; at best, the ranks of methods are"
    )
    setting: str = Switch(
        doc="the kind of increment: classes with the task known at test time, classes without it, domains, time steps, or no boundaries",
        choices=SETTINGS,
        effect={
            "task-il": "each query names its task and only that task's outputs compete, which is the easiest setting",
            "class-il": "the task is unknown at test time and all classes seen so far compete, so chance decreases with every task",
            "domain-il": "all tasks share the same outputs, and only the domain of the items changes",
            "time-il": "items arrive in chronological order, and forgetting is due to drift",
            "task-free": "there are no task boundaries, so methods cannot consolidate at the end of a task",
        },
    )
    protocol: str = ""
    level: str = Switch(
        "NC",
        "the problem level",
        LEVELS,
        effect="items are nodes, edges or whole graphs; each is a different problem, so values are not comparable",
    )
    builder: str = "cglsuite.streams.build:build_task_stream"
    dataset_hyperparameters: tuple[tuple[str, Value], ...] = Switch((), "hyperparameters of the dataset that differ from its defaults")
    labels: str = Switch(
        "single",
        "single = one class per item; multi = any number of labels per item (link or no link: one label); real = real numbers; open = one "
        "class per item, and queries also contain items of the next task's classes",
        ("single", "multi", "real", "open"),
        effect={
            "single": "exactly one class is correct, and predictions are scored by accuracy",
            "multi": "any number of labels may be correct; scored by average precision, ROC-AUC or Hits@K; items may be in several tasks",
            "real": "targets are real numbers, and predictions are scored by their error",
            "open": "items of unseen classes should be rejected; training does not change",
        },
    )
    classes_per_task: int | None = Switch(
        2,
        "number of classes per task; none = all classes spread evenly over n_tasks",
        effect="more classes per task make tasks fewer but harder, with fewer steps in which to forget",
        minimum=1,
        maximum=1_000_000,
    )
    base_classes: int | None = Switch(
        None,
        "number of classes of the first task where it differs from the others', as in few-shot class-IL; none = classes_per_task",
        effect="a larger first task has more classes learnt at once from many items; averages over tasks weight it like any other",
        minimum=1,
        maximum=1_000_000,
        implicit=True,
    )
    shots: int | None = Switch(
        None,
        "training items per class of every task after the first (few-shot class-IL); the others stay in the graph, unlabelled; none = all",
        effect="with fewer items, later classes are harder to learn and easier to forget",
        minimum=1,
        maximum=1_000_000,
        implicit=True,
    )
    n_tasks: int | None = Switch(
        None,
        "maximum number of tasks; none = as many as the classes allow",
        effect="more tasks give more steps in which to forget; averages over different numbers of tasks are not comparable",
        minimum=1,
        maximum=1_000_000,
    )
    leftover: str = Switch(
        "drop",
        "treatment of classes that do not fill a task",
        ("drop", "join-last"),
        effect={
            "drop": "classes that do not fill a task are left out",
            "join-last": "no class is lost, but the last task has more classes than the others and is harder",
        },
    )
    drop_last: bool = Switch(
        False,
        "whether classes that do not fill a task may be left out; otherwise such a scenario is refused",
        effect={
            "true": "results do not change; the switch documents that classes are missing from the stream",
            "false": "results do not change; the switch ensures that no class is missing from the stream",
        },
        guard=True,
    )
    task_key: str | None = Switch(
        None,
        "the node attribute whose values are the tasks of a domain- or time-incremental stream",
        effect="a different attribute groups the same items into different tasks",
    )
    task_bins: tuple[int, ...] = Switch(
        (),
        "boundaries of time steps in task_key: a step begins at each number; () = one step per value",
        effect="fewer boundaries give fewer and longer time steps, with more data and more drift within each",
        minimum=-(2**53),
        maximum=2**53,
    )
    min_class_size: int = Switch(
        1,
        "classes with fewer items are removed before tasks are formed",
        effect="a higher bound removes small classes, which are the hardest, and changes which classes share a task",
        minimum=0,
    )
    class_order: str = Switch(
        "random",
        "classes (or domains) in native order, permuted by the order seed (random), or explicit: 3,1,2,0 (several orders, separated by |: "
        "the order seed selects one). For tasks of the native order: all-tasks = the order seed enumerates their permutations, "
        "random-tasks = it draws one, latin-tasks = it selects a row of a balanced Latin square; latin-classes = the same for classes",
        effect={
            "native": "every repetition has the same tasks, so the spread over seeds is due to initialisation alone",
            "random": "every order seed forms different tasks, so the spread over seeds includes differences in their difficulty",
            "all-tasks": "repetitions have the same tasks in all possible orders, so the spread over order seeds is due to order alone",
            "random-tasks": "repetitions have the same tasks in random orders, so the spread over order seeds is due to order alone",
            "latin-tasks": "repetitions have the same tasks in a few orders, which place each task equally often at each position and "
            "after each other task",
            "latin-classes": "a few orders place each class equally often at each position and after each other class, so tasks differ "
            "between orders",
            "*": "every repetition has exactly these tasks; with several orders, the spread over order seeds covers only these",
        },
    )
    edge_policy: str = Switch(
        "full",
        f"the message graph: {'; '.join(f'{policy.name} = {policy.doc}' for policy in EDGE_POLICIES.values())}",
        tuple(EDGE_POLICIES),
        effect={policy.name: policy.effect for policy in EDGE_POLICIES.values()},
    )
    query_grouping: str = Switch(
        "task",
        "where edges are none, how queries are grouped: task = the items of one task at a time; pooled = the items of all tasks seen, "
        "shuffled, at once, an item of several tasks once. Performance is per task in both cases",
        ("task", "pooled"),
        effect={
            "task": "all items of a group belong to the same task, so a method that averages over a group can infer it; methods that "
            "predict each item separately are not affected",
            "pooled": "statistics of a group do not reveal an item's task; without edges between tasks, the item's neighbours still may",
        },
        implicit=True,
    )
    query_edges: str = Switch(
        "own",
        "where edges are none, the edges around queries: own = those within each task; seen = also those between the tasks seen",
        ("own", "seen"),
        effect={
            "own": "neighbourhoods are the same as in training, and each component of the graph belongs to one task",
            "seen": "the topology no longer separates tasks, but items have neighbours that were not visible in training",
        },
        implicit=True,
    )
    undirected: bool = Switch(
        True,
        "whether every edge carries messages both ways",
        effect={
            "true": "messages pass in both directions along every edge, so neighbourhoods are larger",
            "false": "messages follow the direction of the edge only, so an item without incoming edges sees only itself",
        },
    )
    feature_normalisation: str = Switch(
        "none",
        "row = every feature row is scaled to sum to 1",
        ("none", "row"),
        effect={
            "none": "items with many or large features outweigh the others",
            "row": "all items have equal weight regardless of their number of features, and the best learning rate changes",
        },
    )
    split: str = Switch(
        "per-class",
        "official = the dataset's own split; per-class = drawn class by class with the split seed; random = over all items; task-wise = "
        "AGALE's Algorithm 2 in each task; node-consistent = that algorithm once, so that an item keeps its part in all tasks",
        ("official", "per-class", "random", "task-wise", "node-consistent"),
        effect={
            "official": "test items are the same in every repetition and in every paper that uses this split",
            "per-class": "every class has the same share in each part, and results vary with the split seed",
            "random": "a part may lack rare classes, and results vary with the split seed",
            "task-wise": "parts are disjoint only within a task, so an item with several labels may be a test item of one task and a "
            "training item of another",
            "node-consistent": "an item belongs to the same part in all tasks, so no test item is ever trained on",
        },
    )
    split_ratio: tuple[float, float, float] = Switch(
        (0.6, 0.2, 0.2),
        "shares of training, validation and test items; unused by official splits",
        effect="more training items raise performance, and fewer test items raise its variance; official splits ignore this switch",
        minimum=0,
        maximum=1,
    )
    train_outputs: str = Switch(
        "seen",
        "which outputs compete in training: the task's own, all seen so far, or all",
        ("task", "seen", "all"),
        effect={
            "task": "only the task's own outputs compete in training, so outputs of earlier classes are not affected",
            "seen": "training suppresses the outputs of all earlier classes, which are forgotten fast unless rehearsed",
            "all": "training suppresses the outputs of both earlier and future classes",
        },
    )
    performance: str = Switch(
        "micro",
        "performance on a task: accuracy over items (micro) or averaged over its classes (macro); for multi-label items average precision "
        "or ROC-AUC, averaged over labels; for predicted links the share ranked above all but hits_k - 1 of the pairs without a link "
        "(hits); for real targets minus the mean absolute or root mean squared error; in an open world the measure of rejection, over all "
        "items of a stage; or the measure of a plugin, by its name",
        effect={
            "micro": "classes are weighted by size",
            "macro": "all classes have equal weight, so the value is lower than micro if rare classes are hard",
            "average-precision": "chance level is a label's prevalence, which differs between tasks",
            "roc-auc": "chance level is 0.5 for every label, regardless of prevalence",
            "hits": "only the top of the ranking counts, and chance level is hits_k over the number of pairs without a link",
            "negative-mae": "0 is perfect and there is no lower bound; the unit is that of the target",
            "negative-rmse": "like negative-mae, but a few large errors weigh more than many small ones",
            "open-f1": "rejection and classification count together, and rare classes count as much as common ones",
            "rejection-mcc": "only the decision to reject counts; 0 is chance",
            "rejection-auroc": "only the ranking by confidence counts, without a threshold; 0.5 is chance",
            "*": "the measure comes from a plugin, and its values are comparable only with values of the same measure",
        },
    )
    reject_below: float = Switch(
        0.5,
        "in an open world, an item is rejected if the method's confidence is below this number, unless the method decides by itself",
        effect="a higher threshold rejects more items, known and unknown",
        minimum=0,
        maximum=1,
        implicit=True,
    )
    level_spec: LevelSpec | None = ByLevel(LEVEL_SPECS)  # noqa: RUF009 - a field
    features: str = Switch(
        "given",
        "features of nodes with texts: given = the dataset's own; text:NAME = the vectors of their texts by an encoder of the catalogue",
        effect={
            "given": "features are the dataset's own",
            "*": "features are the encoder's vectors; what its model learnt before the stream, possibly from the benchmark, counts as the "
            "method's",
        },
        implicit=True,
    )
    node_features: str = Switch(
        "given",
        "features of the nodes: the dataset's own, or in- and out-degree in the current message graph, either raw (degrees) or as a "
        "constant "
        "1 and their logarithms (log-degrees)",
        ("given", "degrees", "log-degrees"),
        effect={
            "given": "features are the same at all times",
            "degrees": "features are recounted from the edges that carry messages, so they reveal no later or hidden edge; hubs stand out, "
            "so training is faster but forgetting increases",
            "log-degrees": "features are recounted from the edges that carry messages, so they reveal no later or hidden edge; most nodes "
            "look similar, so training is slower",
        },
    )
    head: str = Switch(
        "fixed",
        "fixed = one output per class from the start; growing = a class's output is initialised when the class arrives",
        ("fixed", "growing"),
        effect={
            "fixed": "outputs of later classes exist from the start but are untrained",
            "growing": "an output is initialised when its class arrives, and enters the optimiser only then",
        },
    )
    replicas: int = Switch(
        1,
        "disjoint copies of the graph, for scaling studies",
        effect="time and memory grow with the number of copies, but tasks are equally difficult",
        minimum=1,
        maximum=1_000_000,
    )
    memory_budget: int | None = Switch(
        None,
        "total number of items that a method may keep in memory; none = no limit, but still metered",
        effect="with more memory, replay methods forget less; methods without memory are not affected",
        minimum=0,
    )
    searched: tuple[str, ...] = Switch(
        (),
        "keys that the protocol leaves to a search on validation data",
        effect="a search may choose the values of these keys per method on validation data; with more keys, each method can perform better",
    )
    training: TrainingSpec = TrainingSpec()  # noqa: RUF009 - frozen
    task_free: TaskFreeSpec | None = None
    backbone_hyperparameters: tuple[tuple[str, Value], ...] = Switch((), "hyperparameters of the backbone that differ from its defaults")
    method_defaults: Mapping[str, Mapping[str, Value]] = field(default_factory=dict, hash=False, compare=False)
    note: str = ""
    derived_from: str = ""
    search_scope: str = "all"
    method_trials: Mapping[str, int] = field(default_factory=dict, hash=False, compare=False)
    measure: MeasureSpec | None = field(default=None, hash=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_switches(self, "scenario")
        self._check_level()
        ratio = self.split_ratio
        if len(ratio) != 3 or abs(sum(ratio) - 1) > 1e-9:
            raise SpecError(f"scenario.split_ratio = {ratio!r}; expected three shares that sum to 1")
        if self.class_order not in NAMED_ORDERS and not WRITTEN_ORDERS.fullmatch(self.class_order):
            raise SpecError(
                f"scenario.class_order = {quoted(self.class_order)}: expected {', '.join(NAMED_ORDERS)}, or an order such as 3,1,2,0 "
                "(several, separated by |)"
            )
        if self.performance in PERFORMANCE_RANGES and self.performance not in MEASURES[self.labels]:
            measures_by_kind = "; ".join(f"{', '.join(measures)} for {kind} labels" for kind, measures in MEASURES.items())
            raise SpecError(
                f"scenario.performance = {self.performance} does not apply to {self.labels} labels; expected {measures_by_kind}"
            )
        if self.labels == "open" and (self.setting != "class-il" or self.level not in ("NC", "LC", "GC")):
            raise SpecError(
                f"scenario.labels = open: {self.name} is {self.level}, {self.setting}; expected level 'NC', 'LC' or 'GC' and setting "
                "'class-il'"
            )
        if self.labels == "real" and self.training.class_balanced:
            raise SpecError("training.class_balanced = true, but real targets have no classes to balance; expected false")
        if (self.setting == "task-free") != (self.task_free is not None):
            raise SpecError(
                f"{self.name}: setting = {self.setting}, but task_free=TaskFreeSpec(...) must be given for task-free scenarios and "
                "only for these"
            )
        if self.task_free is not None and self.training.batch_size is None:
            raise SpecError("training.batch_size = none; a task-free stream requires a number of items per step")
        if refusal := EDGE_POLICIES[self.edge_policy].refusal(self.level, self.setting):
            raise SpecError(f"scenario.edge_policy = {self.edge_policy}: {refusal}")
        self._check_queries()
        self._check_few_shot()
        if not _SCOPES.fullmatch(self.search_scope):
            raise SpecError(
                f"{self.name}: search_scope = {quoted(self.search_scope)}; expected 'all', or 'first-tasks(k)' with k at least 2"
            )
        if self.task_free is not None and self.search_scope != "all":
            raise SpecError(f"{self.name}: search_scope = {quoted(self.search_scope)}; expected 'all' for a task-free stream")
        if self.level == "NR" and self.replicas > 1:
            raise SpecError(f"scenario.replicas = {self.replicas}: graphs whose nodes have real targets cannot be copied; expected 1")
        if self.features != "given" and (self.encoder is None or self.level != "NC"):
            raise SpecError(
                f"scenario.features = {quoted(self.features)}: expected given, or text:NAME (for NC; {self.name} is {self.level}), for "
                "example text:tf-idf"
            )
        if list(self.task_bins) != sorted(set(self.task_bins)):
            raise SpecError(f"scenario.task_bins = {self.task_bins!r}; expected strictly ascending numbers")

    def _check_queries(self) -> None:
        """Check that the query switches are changed only if tasks are separate (nodes in class-, domain- and time-IL, edge policy
        ``none``).

        Nodes with several labels, which may belong to several tasks, are pooled by a builder that queries each of them once.
        """
        switches_of_queries = ("query_grouping", self.query_grouping, "task"), ("query_edges", self.query_edges, "own")
        changed = [f"scenario.{name} = {value}" for name, value, default in switches_of_queries if value != default]
        if not changed:
            return
        reasons = {
            f"level is {self.level}, and it is for NC": self.level != "NC",
            f"labels are {self.labels}, and an item of several tasks is asked once only with both switches and builder = {_ASKED_ONCE}, as "
            "in the presets @global-agale-1": self.labels not in ("single", "open") and (self.builder != _ASKED_ONCE or len(changed) < 2),
            "a query of task-IL names its task": self.setting == "task-il",
            "stream.query_graph says where queries of a task-free stream arrive": self.task_free is not None,
            f"edge_policy is {self.edge_policy}, under which queries of all tasks share a graph already": not EDGE_POLICIES[
                self.edge_policy
            ].apart,
        }
        for reason, holds in reasons.items():
            if holds:
                raise SpecError(f"{self.name}: {', '.join(changed)}: {reason}; expected query_grouping = 'task' and query_edges = 'own'")

    def _check_few_shot(self) -> None:
        """Check that base tasks and few-shot tasks are used only in streams with class-based tasks and one label per item."""
        settings = [f"scenario.{name} = {value}" for name in ("base_classes", "shots") if (value := getattr(self, name)) is not None]
        if not settings:
            return
        reasons = {
            f"setting is {self.setting}, and it is for task-il and class-il": self.setting not in ("task-il", "class-il"),
            f"labels are {self.labels}, and it is for single labels": self.labels not in ("single", "open"),
            "classes_per_task is none: expected the number of classes of the other tasks": self.classes_per_task is None,
            f"class_order is {self.class_order}, which moves the first task; expected native, random, latin-classes or a written order": (
                self.class_order in TASK_ORDERS
            ),
            f"split is {self.split}: expected per-class, random or official": self.split in ("task-wise", "node-consistent"),
        }
        for reason, holds in reasons.items():
            if holds:
                raise SpecError(f"{self.name}: {', '.join(settings)}: {reason}")

    def _check_level(self) -> None:
        expected_class = LEVEL_SPECS.get(self.level)
        if self.level_spec is None and expected_class is not None:
            object.__setattr__(self, "level_spec", expected_class())
        elif not isinstance(self.level_spec, expected_class or NoneType):
            actual = type(self.level_spec)
            theirs = f" (switches of {actual.level}: {', '.join(declared_switches(actual))})" if issubclass(actual, LevelSpec) else ""
            expected = f"{expected_class.__name__}(...)" if expected_class else "none, for this level has no switches of its own"
            raise SpecError(f"{self.name}: scenario.level = {self.level}, level_spec = {actual.__name__}(...){theirs}; expected {expected}")
        for level, others in LEVEL_SPECS.items():
            if self.performance in others.measures and level != self.level:
                raise SpecError(
                    f"scenario.performance = {self.performance} applies only to {level} scenarios, but {self.name} is {self.level}"
                )

    @property
    def encoder(self) -> str | None:
        """The name of the text encoder that computes the features, or ``None`` if features are the dataset's own."""
        return (self.features.startswith("text:") and self.features.removeprefix("text:")) or None

    @property
    def task_ids_at_test(self) -> bool:
        """Whether queries carry their task id (only in task-IL)."""
        return self.setting == "task-il"


@dataclass(frozen=True, kw_only=True)
class TaskFreeSpec:
    """Switches for how a task-free stream arrives and is evaluated.

    ``schedule_hyperparameters`` are the values that differ from the schedule's defaults. When a cell is resolved, they are completed and
    ``schedule_factory`` is set.
    """

    schedule: str = Switch(
        "hard",
        "the mixing schedule's name in the catalogue",
        effect="the schedule sets how long latent tasks overlap; harder transitions cause more forgetting but are easier to detect",
    )
    draw: str = Switch(
        "without-replacement",
        "whether items of a latent task come from shuffled decks or are drawn independently",
        ("without-replacement", "with-replacement"),
        effect={
            "without-replacement": "every item of a task arrives about equally often",
            "with-replacement": "some items arrive several times and others never",
        },
    )
    evaluate_every: int = Switch(
        100,
        "steps between evaluations; the first is before training, the last after the last step",
        effect="more evaluations give a finer curve, whose mean weights the stream more evenly; training does not change",
        minimum=1,
    )
    mask: str = Switch(
        "seen",
        "the outputs that compete for a query: classes seen in the stream; classes of the latent tasks up to the query's own; all classes",
        ("seen", "progressive", "all"),
        effect={
            "seen": "chance level falls as the stream shows more classes",
            "progressive": "queries of early latent tasks have few competing classes (two for the first), which leaks their latent task",
            "all": "classes that have not appeared yet also compete",
        },
    )
    query_graph: str = Switch(
        "own",
        "the message graph of test items: their latent task's own subgraph, or the subgraph of all latent tasks",
        ("own", "merged"),
        effect={
            "own": "test items have no neighbours from other latent tasks, so the topology can reveal the task",
            "merged": "test items have all their neighbours, as in training",
        },
    )
    schedule_hyperparameters: tuple[tuple[str, Value], ...] = ()
    schedule_factory: str = ""

    def __post_init__(self) -> None:
        check_switches(self, "stream")


@dataclass(frozen=True, kw_only=True)
class Seeds:
    """The three independent seeds of a cell: for the task or class order, the data split, and all randomness of the method."""

    order: int = 0
    split: int = 0
    init: int = 0

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            try:
                seed_number(value)
            except ValueError as error:
                raise SpecError(f"seeds.{f.name} = {quoted(value)}: {error} (a seed is a whole number from 0 to 2^63 - 1)") from None


_OF_CLASSES = ("classes_per_task", "leftover", "drop_last", "min_class_size")
_OF_PLATEAUS = ("training.plateau_factor", "training.stop_ratio")
_BETWEEN_TASKS = ("plateau_patience", "plateau_factor", "stop_ratio", "monitor", "restore_best", "carry_optimizer", "norm_statistics")


def inert(spec: ScenarioSpec) -> dict[str, str]:
    """Return the switches that have no effect in a scenario with these values, and the reason for each, by dotted name."""
    by_key = spec.setting in ("domain-il", "time-il") or (spec.setting == "task-free" and spec.task_key is not None)
    by_class = spec.setting in ("task-il", "class-il")
    free = spec.setting == "task-free"
    shared = f"all tasks of {spec.setting} share their outputs from the start"
    rules: Iterable[tuple[bool, str, Iterable[str]]] = (
        (by_key, f"tasks are the values of {spec.task_key}, not groups of classes", (f"scenario.{name}" for name in _OF_CLASSES)),
        (by_class, "tasks are groups of classes", ("scenario.task_key",)),
        (by_class or (free and spec.task_key is None), "tasks are no steps of time", ("scenario.task_bins",)),
        (by_key and not free, shared, ("scenario.train_outputs", "scenario.head")),
        (spec.split == "official", "the split is the dataset's own", ("scenario.split_ratio",)),
        (spec.level in ("NC", "NR"), "nodes are items with features of their own", ("scenario.node_features",)),
        (
            spec.level in ("GC", "GR"),
            "whole graphs come with their features and directed edges",
            ("scenario.node_features", "scenario.undirected"),
        ),
        (free, "a stream without tasks has one head from the start", ("scenario.head",)),
        (free, "task-free streams are over the graph once", ("scenario.replicas",)),
        (free, "a stream without tasks has no end of a task", (f"training.{name}" for name in _BETWEEN_TASKS)),
        (spec.labels != "open", "nothing is rejected outside an open world (scenario.labels = open)", ("scenario.reject_below",)),
        (spec.training.plateau_patience is None, "the rate is constant (training.plateau_patience)", _OF_PLATEAUS),
    )
    reasons: dict[str, str] = {}
    for holds, reason, names in rules:
        if holds:
            reasons |= {name: reason for name in names if name not in reasons}
    return reasons


def check_effective(spec: ScenarioSpec, preset: ScenarioSpec, sections: Mapping[str, Mapping[str, object]]) -> None:
    """Raise an error if an overridden switch has no effect.

    Args:
        spec: the resolved scenario. preset: the original preset. sections: the overridden names by section (``scenario``, ``training``).

    Raises:
        SpecError: an overridden switch has no effect. The message states the switch, the value, the reason, and what to do.
    """
    for name, reason in inert(spec).items():
        section, _, switch = name.partition(".")
        if switch not in sections.get(section, ()):
            continue
        value, before = (getattr(part if section == "scenario" else part.training, switch) for part in (spec, preset))
        if value != before:
            raise SpecError(
                f"{preset.name}: {name} = {_shown(value)} would have no effect: {reason}; remove it (the preset has {_shown(before)})"
            )


def _shown(value: object) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


NAMED_ORDERS = ("native", "random", "all-tasks", "random-tasks", "latin-tasks", "latin-classes")
WRITTEN_ORDERS = re.compile(r" *[0-9]{1,9} *(, *[0-9]{1,9} *)*(\| *[0-9]{1,9} *(, *[0-9]{1,9} *)*)*")

TASK_ORDERS = ("all-tasks", "random-tasks", "latin-tasks")
"""The values of ``scenario.class_order`` that keep the tasks of the native order and change only their sequence."""


def order_count(design: str, n: int) -> int | None:
    """Return the number of orders of ``n`` tasks (or classes) for a ``scenario.class_order``; ``None`` if every seed gives an order."""
    if design == "all-tasks":
        return math.factorial(n)
    if design in ("latin-tasks", "latin-classes"):
        return n if n % 2 == 0 else 2 * n
    return None
