"""Typed parameters of the built-in notebooks, declared in one place.

``cglsuite run`` and ``status`` check every ``[[report]]`` against these declarations before anything trains. Notebooks use them to validate
the values set by papermill or a user, and ``cglsuite show notebook NAME`` lists them. The notebook cells tagged ``parameters`` repeat the
names, defaults and descriptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from cglsuite.reports.rendering.parameters import (
    Content,
    Contents,
    Device,
    Flag,
    Known,
    Names,
    Numbers,
    Parameters,
    Portion,
    Positive,
    SeedNumbers,
    Share,
    Table,
    Text,
    Whole,
    as_structure,
)

__all__ = [
    "CampaignReport",
    "CategoryRanks",
    "Claims",
    "Explore",
    "Findings",
    "Leaderboard",
    "Ledger",
    "MethodComparison",
    "NodeAnalysis",
    "OrderSensitivity",
    "Reproduction",
    "Sensitivity",
    "StreamAnatomy",
    "TaskFreeDynamics",
]

if TYPE_CHECKING:
    from cglsuite.reports.results.results import CampaignResults
    from cglsuite.reports.studies.comparison.compute import Question


_STORE = "folder of records; empty: $CGLSUITE_STORE, else .cglsuite in the current folder"
_Test = Literal["t", "wilcoxon", "welch"]
_TEST = "test for the verdicts: t (paired or quasi-F, depending on the design), wilcoxon, or welch (as if run separately)"
_MISSING = "train cells missing from the store; `cglsuite run` and `cglsuite report` pass False"


class _OfCampaign(Parameters):
    """Parameters shared by all reports on a campaign."""

    campaign: Annotated[Text, Known("campaign")] = Field("", description="path of a campaign file; empty: the campaign below")
    inline: Content = Field({}, description="content of a campaign file; a small demonstration on synthetic data")
    store: Text = Field("", description=_STORE)
    overrides: Table = Field({}, description="overrides of the campaign, as in `cglsuite run --set`")
    only: Names = Field([], description="cells to report on, as KEY=VALUE (see `cglsuite run --only`); empty: all")
    device: Device = Field("", description="auto, cpu or cuda; empty: the campaign's")
    train_missing: Flag = Field(True, description=_MISSING)

    @property
    def how(self) -> dict[str, Any]:
        """The keyword arguments for loading the results."""
        return {"overrides": self.overrides, "only": self.only, "device": self.device or None, "train_missing": self.train_missing}

    def results(self) -> CampaignResults:
        """Register the campaign's data files and plugin files, as ``cglsuite report`` does, and load its results."""
        from cglsuite.reports.results.results import load_campaign_results

        return load_campaign_results(self.campaign or self.inline, self.store or None, **self.how)

    def pooled(self, also: Sequence[Any]) -> list[CampaignResults]:
        """Load the results of this campaign together with those of the campaigns in ``also``."""
        from cglsuite.reports.results.results import load_pooled_results

        return load_pooled_results(self.campaign or self.inline, also, self.store or None, **self.how)


class CampaignReport(_OfCampaign):
    """Parameters of the campaign report, which shows the findings of a campaign."""

    notebook: ClassVar[str] = "campaign_report"

    test: _Test = Field("t", description=_TEST)


class Leaderboard(_OfCampaign):
    """Parameters of the leaderboard, which ranks methods in each scenario."""

    notebook: ClassVar[str] = "leaderboard"


class MethodComparison(_OfCampaign):
    """Parameters of the method comparison, which tests which methods differ."""

    notebook: ClassVar[str] = "method_comparison"

    metric: Annotated[Text, Known("metric")] = Field(
        "", description="name of the metric definition; empty: average performance, or A_AUC of task-free streams"
    )
    methods: Annotated[Names, Known("method")] = Field([], description="methods to compare, a name or a list; empty: all")
    against: Annotated[Text, Known("method")] = Field("", description="compare all others with this method; empty: all pairs")
    test: _Test = Field("t", description=_TEST)
    adjustment: Literal["holm", "benjamini-hochberg"] = Field(
        "holm", description="holm or benjamini-hochberg, over the pairs of a scenario"
    )
    alpha: Share = Field(0.05, description="family-wise level (Holm) or false discovery rate (Benjamini-Hochberg)")
    smallest_difference: Positive = Field(1.0, description="smallest interesting difference; in points for fractions")
    power: Share = Field(0.8, description="probability of detecting it")

    @property
    def question(self) -> Question:
        """The question that is tested in every scenario."""
        from cglsuite.reports.studies.comparison.compute import Question

        same = ("metric", "methods", "against", "test", "adjustment", "alpha")
        return Question(**{name: getattr(self, name) for name in same}, smallest=self.smallest_difference, wanted=self.power)


class CategoryRanks(_OfCampaign):
    """Parameters of the report that ranks methods by category."""

    notebook: ClassVar[str] = "category_ranks"

    metrics: Annotated[Names, Known("metric")] = Field(
        ["average_performance", "forgetting_from_diagonal", "intransigence"], min_length=1, description="names of metric definitions"
    )
    categories: Annotated[dict[str, Names], BeforeValidator(as_structure)] = Field(
        {}, description="methods by category; empty: the categories declared by their plugins"
    )
    ties: Literal["min", "average", "max"] = Field(
        "min", description="rank of tied methods: min (the lowest rank, as in the paper), average or max"
    )


class OrderSensitivity(_OfCampaign):
    """Parameters of the report on how results depend on the task order."""

    notebook: ClassVar[str] = "order_sensitivity"

    also: Contents = Field(
        [],
        description="more campaigns to pool, as files next to it or as content; for class orders, or for one order with many seeds",
    )


class Sensitivity(_OfCampaign):
    """Parameters of the report on how results depend on settings."""

    notebook: ClassVar[str] = "sensitivity"

    also: Contents = Field([], description="more campaigns to pool, as files next to it or as content")
    axes: Annotated[Names, Known("setting")] = Field(
        [], description="dotted keys for the x axes, such as method.lambda; empty: the axes of the campaigns"
    )


class TaskFreeDynamics(_OfCampaign):
    """Parameters of the report on task-free streams."""

    notebook: ClassVar[str] = "task_free_dynamics"

    also: Contents = Field([], description="more campaigns to pool, as files next to it or as content")
    vary: Annotated[dict[str, list[Any]], BeforeValidator(as_structure)] = Field({}, description="values to sweep")
    threshold: Portion = Field(0.9, description="a latent task with at least this share dominates a step")
    targets: Annotated[dict[Literal["overlap", "entropy"], Numbers], BeforeValidator(as_structure)] = Field(
        {"overlap": [0.25, 0.5, 0.75], "entropy": [0.2, 0.4]}, description="target values for which to solve for a schedule setting"
    )
    knob: Text = Field("", description="schedule setting to solve for; empty: its first numeric setting")
    deal: Flag = Field(True, description="regenerate the streams; needs the data")


class StreamAnatomy(_OfCampaign):
    """Parameters of the report on the composition of tasks."""

    notebook: ClassVar[str] = "stream_anatomy"

    subjects: Annotated[Names, Known("subject")] = Field(
        ["synthetic-csbm/class-il@example-1"],
        min_length=1,
        description="scenarios, or data sets without a slash, one or several; not used with a campaign",
    )
    key: Text = Field(
        "", description='for a data set: the attribute that groups its items (year, domain, ...) or "class"; empty: its first attribute'
    )
    orders: SeedNumbers = Field([0], description="order seeds: figures show the tasks of the first; means over tasks use all")
    overrides: Table = Field({}, description="overrides of the switches and the data set, or of the campaign")
    campaign: Annotated[Text, Known("campaign")] = Field(
        "", description="path of a campaign file: its scenarios are the subjects, and its records give scores"
    )
    inline: Content = Field({}, description="content of a campaign file, in place of a path")
    train_missing: Flag = Field(False, description="train the campaign's cells missing from the store")


class Explore(Parameters):
    """Parameters of the interactive notebook for browsing the catalogue and training a small cell."""

    notebook: ClassVar[str] = "explore"

    scenario: Text = Field("synthetic-csbm/class-il@example-1", min_length=1, description="with data: the part after the slash is enough")
    methods: Annotated[Names, Known("method", anywhere=True)] = Field(
        ["bare", "er-gnn", "joint"], min_length=1, description="names, one or several"
    )
    data: Text = Field("", description="your own data file (npz, CSV folder, saved PyG Data); empty: the data set of the scenario")
    backbone: Text = Field("", description="empty: the scenario's own")
    overrides: Table = Field(
        {"dataset.n_nodes": 400, "dataset.n_classes": 6}, description="overrides of the preset, its data set and the methods"
    )
    orders: Whole = Field(2, ge=1, le=1000, description="number of task orders to run")
    store: Text = Field("", description=_STORE)


class NodeAnalysis(Parameters):
    """Parameters of the node analysis, which compares predictions on individual nodes."""

    notebook: ClassVar[str] = "node_analysis"

    scenario: Annotated[Text, Known("subject")] = Field(
        "synthetic-csbm/class-il@example-1", min_length=1, description="a name from `cglsuite list scenarios`"
    )
    methods: Annotated[Names, Known("method", anywhere=True)] = Field(
        ["bare", "er-gnn", "joint"], min_length=1, description="names, one or several"
    )
    overrides: Table = Field(
        {"dataset.n_nodes": 400, "dataset.n_classes": 6},
        description="of the preset; a hyperparameter applies to the methods that declare it",
    )
    seeds: Annotated[dict[Literal["order", "split", "init"], SeedNumbers], BeforeValidator(as_structure)] = Field(
        {"order": [0], "init": [0]}, description="lists, as in a campaign; repetitions are pooled"
    )
    score: Literal["f1", "average-precision"] = Field(
        "f1", description="score of a node: f1 (of the predicted label set) or average-precision (the measure in AGALE's tables)"
    )
    store: Text = Field("", description=_STORE.replace("records", "records and checkpoints"))


class Ledger(Parameters):
    """Parameters of the report on the reproduction ledgers of all papers."""

    notebook: ClassVar[str] = "ledger"

    paper: Text = Field("", description="BeGin, CGLB, AGALE, DRIFT or SkeletonCGL; empty: all")
    dataset: Text = Field("", description="its name in a paper or in this suite; empty: all")
    setting: Text = Field("", description="empty: all")
    method: Text = Field("", description="its name in a paper or in this suite; empty: all")
    seeds: Whole = Field(0, ge=0, description="use only the first repetitions of each protocol; 0: all")
    store: Text = Field("", description=_STORE)
    device: Device = Field("", description="auto, cpu or cuda; empty: $CGLSUITE_DEVICE, else auto")

    @property
    def selection(self) -> dict[str, Any]:
        """The filters that select which published rows to compare with ours."""
        return {name: getattr(self, name) for name in ("paper", "dataset", "setting", "method")} | {"repeats": self.seeds or None}


class Claims(Ledger):
    """Parameters of the report that checks the claims in papers' tables."""

    notebook: ClassVar[str] = "claims"


class Reproduction(Ledger):
    """Parameters of the report on one paper's reproduction ledger."""

    notebook: ClassVar[str] = "reproduction"

    paper: Text = Field("BeGin", min_length=1, description="BeGin, CGLB, AGALE, DRIFT or SkeletonCGL")
    dataset: Text = Field("Cora", description="its name in the paper or in this suite; empty: all")
    setting: Text = Field("task-IL", description="empty: all")
    method: Text = Field("Bare", description="its name in the paper or in this suite; empty: all")
    seeds: Whole = Field(1, ge=0, description="use only the first repetitions of the protocol; 0: all")
    train_missing: Flag = Field(True, description="train cells missing from the store; `cglsuite reproduce` passes False")


class Findings(Parameters):
    """Parameters of the report on a store's findings."""

    notebook: ClassVar[str] = "findings"

    store: Text = Field("", description=_STORE)
