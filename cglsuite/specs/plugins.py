"""Plugin specs, with one frozen class per kind of component, and the built-in measures. Scenarios have a separate module.

A measure defines how predictions for a task's queries are scored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

from cglsuite.base.errors import SpecError, UnknownNameError
from cglsuite.base.markup import displayed
from cglsuite.specs.hyperparameters import Hyperparameter, Value
from cglsuite.specs.levels import API_VERSION, LEVELS, SETTINGS
from cglsuite.specs.training import TrainingSpec


@dataclass(frozen=True, kw_only=True)
class Citation:
    """A publication.

    Args:
        authors: family names in order, with ``others`` at the end if the list is abbreviated.
        title: the title as published. year: the year of publication.
        booktitle: the conference, with its track or workshop; journal: the journal, with its volume. One of them, or neither for a preprint
            or a report, which then has ``arxiv`` or ``note``.
        arxiv: the arXiv identifier. doi: the DOI without a resolver. note: any other information, such as the relevant section.

    Raises:
        SpecError: the authors, title or year are missing or malformed, there are both a conference and a journal, or there is no venue.

    Example:
        >>> str(Citation(authors=("Kipf", "Welling"), title="Semi-Supervised Classification with GCNs", booktitle="ICLR", year=2017))
        'Kipf & Welling, Semi-Supervised Classification with GCNs, ICLR 2017'
    """

    authors: tuple[str, ...]
    title: str
    year: int
    booktitle: str = ""
    journal: str = ""
    arxiv: str = ""
    doi: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.authors, tuple) or not self.authors or not all(isinstance(a, str) and a.strip() for a in self.authors):
            raise SpecError(f"citation: authors = {self.authors!r}; expected a tuple of family names")
        if not isinstance(self.title, str) or not self.title.strip():
            raise SpecError(f"citation of {' & '.join(self.authors)}: the title is missing")
        if not isinstance(self.year, int) or not 1600 <= self.year < 2200:
            raise SpecError(f"citation of {self.title!r}: year = {self.year!r}; expected the year of publication")
        if self.booktitle and self.journal:
            raise SpecError(f"citation of {self.title!r}: give a booktitle or a journal, not both")
        if not self.venue:
            raise SpecError(f"citation of {self.title!r}: the venue is missing; give a booktitle, a journal, an arXiv identifier or a note")

    @property
    def venue(self) -> str:
        """The publication's venue."""
        return self.booktitle or self.journal or (f"arXiv:{self.arxiv}" if self.arxiv else self.note)

    def __str__(self) -> str:
        names, rest = list(self.authors), ""
        if names[-1] == "others":
            names, rest = names[:-1], " et al."
        who = " & ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 and not rest else [", ".join(names)])
        more = [f"arXiv:{self.arxiv}"] if self.arxiv and (self.booktitle or self.journal) else []
        more += [self.note] if self.note and self.note != self.venue else []
        when = f"{self.venue}{',' if self.venue[-1] in ')0123456789' else ''} {self.year}"
        return ", ".join([f"{who}{rest}", self.title, when, *more])


_FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
LABEL_KINDS = ("single", "multi", "real", "open")
"""The values of ``scenario.labels``."""
NEEDS = ("past-views", "task-id", "task-boundaries", "epochs")
NO_PRETRAINING = "none"
"""The value of ``pretraining.scheme`` of a cell without pre-training."""

PRETRAINING_SCHEME = "pretraining.scheme"
"""The dotted key that names a cell's scheme."""

PRETRAINING_HYPERPARAMETERS = (
    Hyperparameter(
        name="transfer",
        default="fine-tune",
        choices=("fine-tune", "frozen"),
        doc="fine-tune: methods continue to train the pre-trained weights. frozen: these weights do not change, norm layers use their "
        "statistics from pre-training, and only layers that were not pre-trained, such as the head, are trained (a linear probe)",
    ),
    Hyperparameter(
        name="share",
        default=1.0,
        above=0,
        doc="number of pre-training epochs, as a fraction of the protocol's epochs per task",
    ),
)
"""The hyperparameters that all pre-training schemes share; those of one scheme follow them."""


@dataclass(frozen=True, kw_only=True)
class PluginSpec:
    """Base class of all specs. ``factory`` is a lazy ``"package.module:Object"`` string, so that listing plugins does not import torch.

    ``api_version`` is the version of the plugin interface that the plugin uses (default: the current one). All versions since
    :data:`OLDEST_API_VERSION` are supported. ``replaces`` is the distribution that provides the entry of the same name to be overridden.
    """

    kind: ClassVar[str]
    """The kind of component: a key of :data:`cglsuite.specs.KINDS`."""
    naming: ClassVar[tuple[re.Pattern[str], str]] = (re.compile(r"[a-z0-9][a-z0-9._+-]*"), "lower-case letters, digits and . _ + -")
    """The form of names of that kind: a pattern, and its description."""

    name: str
    summary: str
    citation: str | Citation | tuple[str | Citation, ...] = ""
    api_version: int = API_VERSION
    replaces: str | None = None

    def __post_init__(self) -> None:
        pattern, form = self.naming
        if not isinstance(self.name, str) or not pattern.fullmatch(self.name):
            raise SpecError(f"{type(self).__name__} name {self.name!r}: expected {form}")
        if not isinstance(self.summary, str) or not self.summary.strip():
            raise SpecError(f"{type(self).__name__} {self.name!r}: the summary must be a single line of text")
        if not all(isinstance(part, (str, Citation)) for part in self.citations):
            raise SpecError(f"{type(self).__name__} {self.name!r}: citation {self.citation!r} is neither a string nor a Citation")
        factory = getattr(self, "factory", None)
        if factory is not None and not (isinstance(factory, str) and _FACTORY.fullmatch(factory)):
            raise SpecError(f'{type(self).__name__} {self.name!r}: factory {factory!r} is not a "package.module:Object" string')
        for level in getattr(self, "levels", ()):
            if level not in LEVELS:
                raise UnknownNameError("problem level", level, LEVELS)
        for setting in getattr(self, "settings", ()):
            if setting not in SETTINGS:
                raise UnknownNameError("incremental setting", setting, SETTINGS)

    @property
    def citations(self) -> tuple[str | Citation, ...]:
        """The publications that the component cites, as plain text if they are not structured."""
        parts = self.citation if isinstance(self.citation, tuple) else (self.citation,)
        return tuple(part for part in parts if part != "")

    def _repr_html_(self) -> str:
        return displayed("spec_card", self)


@dataclass(frozen=True, kw_only=True)
class DatasetSpec(PluginSpec):
    """A dataset: ``factory(root: DataRoot, **hyperparameters)`` returns a :class:`cglsuite.graphs.NodeData`, ``LinkData`` or ``GraphData``.

    Its ``labels`` (``single``, ``multi``, ``real``), integer attributes of items (``keys``) and ``official_split`` determine which
    protocols are compatible. If they are ``None``, an incompatible protocol is detected when the data are loaded.
    """

    kind: ClassVar[str] = "dataset"

    factory: str
    levels: tuple[str, ...] = ("NC",)
    labels: str | None = None
    keys: tuple[str, ...] | None = None
    official_split: bool | None = None
    licence: str = "not stated"
    home: str = ""
    embedded: bool = False
    hyperparameters: tuple[Hyperparameter, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BackboneSpec(PluginSpec):
    """A backbone: ``factory(in_features: int, outputs: int, **hyperparameters)`` returns a :class:`cglsuite.backbones.Backbone`."""

    kind: ClassVar[str] = "backbone"

    factory: str
    levels: tuple[str, ...] = ("NC",)
    hyperparameters: tuple[Hyperparameter, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MethodSpec(PluginSpec):
    """A continual-learning method: ``factory(context: MethodContext)`` returns a :class:`cglsuite.Method`.

    ``needs`` lists requirements: ``"past-views"`` (the training views of all earlier tasks, only for upper bounds), ``"task-id"`` (at
    prediction), ``"task-boundaries"`` and ``"epochs"`` (several passes over a task). ``labels`` lists the kinds of labels that the method
    can learn: ``single``, ``multi`` and ``real`` (empty means all). ``elsewhere`` lists equivalent methods for settings that this method
    does not support, which the error for these settings suggests. ``training`` maps training switches to the method's defaults
    (``{"weight_decay": 0.0}``). They override the protocol's defaults and are overridden by a preset's values for the method
    (``ScenarioSpec.method_defaults``) and by user overrides.
    """

    kind: ClassVar[str] = "method"

    factory: str
    levels: tuple[str, ...] = ("NC",)
    settings: tuple[str, ...] = ("task-il", "class-il", "domain-il", "time-il")
    labels: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    category: str = "other"
    elsewhere: tuple[str, ...] = ()
    training: Mapping[str, Value] = field(default_factory=dict, hash=False)
    hyperparameters: tuple[Hyperparameter, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        known = [f.name for f in fields(TrainingSpec) if f.name != "backbone"]
        for name in self.training:
            if name not in known:
                raise UnknownNameError(f"training switch of method {self.name!r}", name, known)
        for need in self.needs:
            if need not in NEEDS:
                raise UnknownNameError(f"need of method {self.name!r}", need, NEEDS)
        for kind in self.labels:
            if kind not in LABEL_KINDS:
                raise UnknownNameError(f"kind of labels of method {self.name!r}", kind, LABEL_KINDS)


@dataclass(frozen=True, kw_only=True)
class PretrainingSpec(PluginSpec):
    """Self-supervised pre-training: ``factory(context: PretrainingContext)`` returns a :class:`cglsuite.learning.Pretraining`.

    The scheme sees the first task's view without labels and trains the model that every method starts from. Cells refer to it by
    ``pretraining.scheme``, and its source code is part of their keys. ``levels`` are the problem levels that it can be used for.
    """

    kind: ClassVar[str] = "pretraining"

    factory: str
    levels: tuple[str, ...] = LEVELS
    hyperparameters: tuple[Hyperparameter, ...] = ()

    @property
    def all_hyperparameters(self) -> tuple[Hyperparameter, ...]:
        """The hyperparameters shared by all schemes, followed by those of this scheme."""
        return (*PRETRAINING_HYPERPARAMETERS, *self.hyperparameters)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.name == NO_PRETRAINING:
            raise SpecError(f"PretrainingSpec name {self.name!r} is reserved for no pre-training; choose another name")
        taken = {h.name for h in PRETRAINING_HYPERPARAMETERS} | {"scheme"}
        for own in self.hyperparameters:
            if own.name in taken:
                raise SpecError(
                    f"pretraining {self.name!r}: the hyperparameter name {own.name!r} is already used by one that all schemes share; "
                    f"expected a name other than {', '.join(sorted(taken))}"
                )


@dataclass(frozen=True, kw_only=True)
class ScheduleSpec(PluginSpec):
    """A schedule for mixing the latent tasks of a task-free stream: ``factory(steps, spans, **hyperparameters) -> mixture``.

    ``steps`` (float64 [T]) are the midpoints of the steps, ``spans`` (float64 [K + 1]) are the boundaries of the latent tasks in sequence,
    and the result (float64 [T, K]) contains non-negative weights (see :mod:`cglsuite.streams.mixing`).
    """

    kind: ClassVar[str] = "schedule"

    factory: str
    hyperparameters: tuple[Hyperparameter, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EncoderSpec(PluginSpec):
    """A text encoder: ``factory(root: DataRoot)`` returns a function that encodes m texts as float [m, d], dense or a scipy.sparse matrix.

    Scenarios refer to it by ``scenario.features = text:NAME``, and its source code is part of the keys of their cells. Vectors are stored
    as float16. Unless it is ``fitted``, texts are encoded once, in parts, and the vectors are cached by texts, encoder, ``revision``,
    ``tokens`` and source code. With ``fitted``, vectors depend on all texts, which are passed at once, and are not cached.

    ``model`` is the name of the language model, ``revision`` identifies its weights, and ``tokens`` is the number of tokens to which texts
    are cut. ``cutoff`` is the date (year, month or day) of the latest text that the model was trained on. All are stored in records.
    """

    kind: ClassVar[str] = "encoder"

    factory: str
    model: str = ""
    revision: str = ""
    tokens: int | None = None
    licence: str = "not stated"
    home: str = ""
    cutoff: str = ""
    fitted: bool = False


@dataclass(frozen=True, kw_only=True)
class NotebookSpec(PluginSpec):
    """A parameterised notebook. ``path`` is ``"package:relative/path.ipynb"``, and the cell tagged ``parameters`` assigns the parameters.

    ``parameters`` is their typed declaration, ``"module:Class"`` (see :mod:`cglsuite.reports.notebooks`). If it is empty, the cell declares
    them.
    """

    kind: ClassVar[str] = "notebook"

    path: str
    interactive: bool = False
    parameters: str = ""


@dataclass(frozen=True, kw_only=True)
class ExecutorSpec(PluginSpec):
    """An executor: ``factory(**options)`` returns an object with ``run(cells, store, options) -> int`` (see cglsuite.campaigns.executors).

    With ``remote``, cells run on other machines, and the factory returns a launcher instead, which is an object with ``launch``, ``poll``
    and ``cancel``. ``options`` are the options allowed in ``[run.NAME]`` of a campaign, and ``several`` lists those that take a list.
    """

    kind: ClassVar[str] = "executor"

    factory: str
    options: tuple[Hyperparameter, ...] = ()
    several: tuple[str, ...] = ()
    remote: bool = False


@dataclass(frozen=True, kw_only=True)
class MeasureSpec(PluginSpec):
    """A measure of performance: ``factory(answered: Answered)`` returns a float, or :class:`cglsuite.streams.OutputScores`.

    It is evaluated on hidden labels inside the oracle, for one part (test or validation) of one task at a time. Scenarios refer to it by
    ``scenario.performance``, its source code is part of the keys of cells, and methods never see its inputs.

    ``labels`` are the kinds of labels that it scores (values of ``scenario.labels``), and ``levels`` are the problem levels. ``direction``
    states whether higher or lower values are better. If lower values are better, performance is the negated value, so that higher
    performance is always better. ``range`` is the range of the value, ``unit`` is its unit if it is not a fraction, and ``label`` is its
    name in reports.
    """

    kind: ClassVar[str] = "measure"

    factory: str
    labels: tuple[str, ...]
    direction: Literal["up", "down"] = "up"
    range: tuple[float, float] = (0.0, 1.0)
    unit: str = ""
    levels: tuple[str, ...] = LEVELS
    label: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for kind in self.labels:
            if kind not in LABEL_KINDS:
                raise UnknownNameError(f"kind of labels of measure {self.name!r}", kind, LABEL_KINDS)
        if self.direction not in ("up", "down"):
            raise UnknownNameError(f"direction of measure {self.name!r}", str(self.direction), ("up", "down"))
        if not self.range[0] < self.range[1]:
            raise SpecError(f"measure {self.name!r}: range = {self.range!r}; expected two ascending bounds")

    @property
    def performance_range(self) -> tuple[float, float]:
        """The bounds of performance: those of the value, or of the negated value if lower values are better."""
        low, high = self.range
        return (low, high) if self.direction == "up" else (-high, -low)


GALKE = Citation(
    authors=("Galke", "Vagliano", "Franke", "Zielke", "Hoffmann", "Scherp"),
    title="Lifelong Learning on Evolving Graphs Under the Constraints of Imbalanced Classes and New Classes",
    year=2023,
    journal="Neural Networks 164",
)

CORE_MEASURES: tuple[MeasureSpec, ...] = (
    MeasureSpec(
        name="micro",
        summary="accuracy over items",
        citation="the share of right answers",
        factory="cglsuite.streams.measures.classes:micro",
        labels=("single",),
        label="accuracy",
    ),
    MeasureSpec(
        name="macro",
        summary="accuracy, averaged over the classes of a task",
        citation=Citation(
            authors=("Brodersen", "others"), title="The Balanced Accuracy and Its Posterior Distribution", year=2010, booktitle="ICPR"
        ),
        factory="cglsuite.streams.measures.classes:macro",
        labels=("single",),
        label="accuracy (mean over classes)",
    ),
    MeasureSpec(
        name="average-precision",
        summary="average precision, averaged over labels; 0 for a label without a positive",
        citation=Citation(
            authors=("Zhao", "others"), title="AGALE: A Graph-Aware Continual Learning Evaluation Framework", year=2024, journal="TMLR"
        ),
        factory="cglsuite.streams.measures.rankings:average_precision",
        labels=("multi",),
        label="average precision (mean over labels)",
    ),
    MeasureSpec(
        name="roc-auc",
        summary="area under the ROC curve, averaged over labels with positives and negatives",
        citation=Citation(
            authors=("Fawcett",), title="An Introduction to ROC Analysis", year=2006, journal="Pattern Recognition Letters 27(8)"
        ),
        factory="cglsuite.streams.measures.rankings:roc_auc",
        labels=("multi",),
        label="ROC-AUC (mean over labels)",
    ),
    MeasureSpec(
        name="hits",
        summary="Hits@K: the share of links that rank above all but K - 1 of the pairs without a link (K: scenario.hits_k)",
        citation=Citation(
            authors=("Hu", "others"), title="Open Graph Benchmark: Datasets for Machine Learning on Graphs", year=2020, booktitle="NeurIPS"
        ),
        factory="cglsuite.streams.measures.links:hits",
        labels=("multi",),
        levels=("LP",),
        label="Hits@K",
    ),
    MeasureSpec(
        name="negative-mae",
        summary="minus the mean absolute error, averaged over targets",
        citation=Citation(authors=("Dwivedi", "others"), title="Benchmarking Graph Neural Networks", year=2023, journal="JMLR 24(43)"),
        factory="cglsuite.streams.measures.targets:negative_mae",
        labels=("real",),
        range=(-math.inf, 0.0),
        unit="of the target",
        label="minus the mean absolute error",
    ),
    MeasureSpec(
        name="negative-rmse",
        summary="minus the root mean squared error over items, averaged over targets",
        citation=Citation(
            authors=("Hyndman", "Koehler"),
            title="Another look at measures of forecast accuracy",
            year=2006,
            journal="International Journal of Forecasting 22(4)",
        ),
        factory="cglsuite.streams.measures.rmse:negative_rmse",
        labels=("real",),
        range=(-math.inf, 0.0),
        unit="of the target",
        label="minus the root mean squared error",
    ),
    MeasureSpec(
        name="open-f1",
        summary="macro F1 over the seen classes and the class of unknown items (Open-F1)",
        citation=GALKE,
        factory="cglsuite.streams.measures.open_world:open_f1",
        labels=("open",),
        label="Open-F1",
    ),
    MeasureSpec(
        name="rejection-mcc",
        summary="Matthews' correlation coefficient between being unknown and being rejected; 0 if all items are treated alike",
        citation=GALKE,
        factory="cglsuite.streams.measures.open_world:rejection_mcc",
        labels=("open",),
        range=(-1.0, 1.0),
        label="MCC of rejection",
    ),
    MeasureSpec(
        name="rejection-auroc",
        summary="probability that an unknown item has a lower confidence than a known one; it depends on no threshold",
        citation=Citation(
            authors=("Hendrycks", "Gimpel"),
            title="A Baseline for Detecting Misclassified and Out-of-Distribution Examples in Neural Networks",
            year=2017,
            booktitle="ICLR",
        ),
        factory="cglsuite.streams.measures.open_world:rejection_auroc",
        labels=("open",),
        label="AUROC of rejection",
    ),
)
"""The core's measures, which are in every catalogue."""

MEASURES = {kind: tuple(spec.name for spec in CORE_MEASURES if kind in spec.labels) for kind in LABEL_KINDS}
"""The core's measures by the kind of labels."""

PERFORMANCE_RANGES = {spec.name: spec.performance_range for spec in CORE_MEASURES}
"""The bounds of performance under the core's measures."""


CORE_ENCODERS: tuple[EncoderSpec, ...] = (
    EncoderSpec(
        name="tf-idf",
        summary="TF-IDF of the 5,000 terms that occur most often in all texts, unit rows",
        citation=Citation(
            authors=("Sparck Jones",),
            title="A Statistical Interpretation of Term Specificity and Its Application in Retrieval",
            year=1972,
            journal="Journal of Documentation 28(1)",
        ),
        factory="cglsuite.graphs.encoders:tf_idf",
        licence="none needed",
        fitted=True,
    ),
    EncoderSpec(
        name="hashing",
        summary="counts of words, hashed to 4,096 columns with signs, unit rows; no text depends on another",
        citation=Citation(
            authors=("Weinberger", "Dasgupta", "Langford", "Smola", "Attenberg"),
            title="Feature Hashing for Large Scale Multitask Learning",
            year=2009,
            booktitle="ICML",
        ),
        factory="cglsuite.graphs.encoders:hashing",
        licence="none needed",
        fitted=True,
    ),
    EncoderSpec(
        name="random",
        summary="384 normal numbers per item regardless of its text: a control",
        citation="a control: what remains of a result without any text",
        factory="cglsuite.graphs.encoders:random",
        licence="none needed",
        fitted=True,
    ),
)
"""The core's encoders, which are in every catalogue."""


@dataclass(frozen=True, kw_only=True)
class CommandSpec(PluginSpec):
    """A subcommand of ``cglsuite``. ``factory`` refers to a click command in a module that is imported when the command is used.

    ``name`` is the subcommand, and ``summary`` is its line in ``cglsuite --help``. The names of the suite's own commands are reserved.
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
        ("check", "check:check", "Check that an entry of the catalogue fulfils its contract."),
        ("data", "data:data", "List data sets, download missing ones, and verify their files."),
        ("diff", "store:diff", "Compare two campaigns or stores: settings, cells, and differences between means."),
        ("export", "store:export", "Write the splits of a scenario's stream as npz with hashes, for use in other programs."),
        ("list", "catalogue:list_names", "List what plugins provide: datasets, scenarios, methods, ..."),
        ("merge", "exchange:merge", "Merge the records of several stores. If two results differ, both are kept."),
        ("migrate", "migrate:migrate", "Re-key records after source changes that do not affect results."),
        ("new", "check:new", "Create a package for your own method, dataset or any other kind of plugin."),
        ("notebook", "catalogue:notebook", "Copy an installed notebook, so that you can edit it in Jupyter."),
        ("plugins", "catalogue:plugins", "List installed plugins with their status, and diagnose faults."),
        ("publish", "exchange:publish", "Publish the records of a store to a folder or bucket, from which others can pull them."),
        ("pull", "exchange:pull", "Pull published records into a store, and verify them."),
        ("report", "report:report", "Render the reports of a campaign from stored records."),
        ("reproduce", "reproduce:reproduce", "Reproduce published experiments, and write a ledger that compares the results."),
        ("results", "results:results", "Write stored results as CSV, JSON or Parquet."),
        ("run", "cells:run", "Run the missing cells of a campaign, then render its reports."),
        ("scenarios", "catalogue:scenarios", "Compare scenario presets, and audit their queries."),
        ("show", "catalogue:show", "Show one dataset, scenario, method, ... with all its hyperparameters or switches."),
        ("site", "report:site", "Write the leaderboards of a results folder as static pages, ready to host."),
        ("status", "results:status", "Count a campaign's finished, missing and failed cells."),
        ("store", "store:store", "Show the contents of a store, and prune files that are no longer needed."),
        ("submit", "exchange:submit", "Check third-party records, rerun a sample, and accept valid ones."),
        ("table", "report:table", "Write a table of several scenarios for a paper, as LaTeX, Markdown or CSV."),
    )
)
"""The suite's own commands. Every catalogue has them, even without plugins, and no plugin can replace one."""
