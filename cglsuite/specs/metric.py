"""Specs of metrics: formula, direction, range, unit and names. The functions are in :mod:`cglsuite.stats.metrics`.

Tables, figures, verdicts and the documentation use these specs. Names identify the definition; labels from papers are only shown next to
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.specs.plugins import GALKE, MEASURES, Citation, PluginSpec


class Direction(NamedTuple):
    """A direction of improvement, with its arrow, its word, and the sign that makes better values larger."""

    arrow: str
    better: str
    sign: float


DIRECTIONS = {"up": Direction("↑", "higher", 1.0), "down": Direction("↓", "lower", -1.0)}
"""The directions, by the ``direction`` of a metric or the ``better`` of a column."""


@dataclass(frozen=True, kw_only=True)
class MetricSpec(PluginSpec):
    """A metric: ``factory(matrix, joint=None) -> float``, a pure function of the performance matrix.

    ``matrix`` is float64 ``[T + 1, T]``: row 0 is before training and row k is after task k, with NaN if there was no query. ``joint`` is
    the matrix of the method ``reference`` for the same scenario and seeds, if the metric declares one (``needs_joint`` declares the method
    ``joint``). The value is NaN if it cannot be computed. ``undefined`` describes the complete matrices for which it is undefined, if any.

    In the setting ``task-free``, the matrix is ``[E + 1, K]``, with one row per evaluation and one column per latent task, and the factory
    also receives ``stream``: the ``evaluations`` (number of steps), the number of items ``delivered`` of each latent task by then ([E +
    1][K]), and facts about the ``tasks``. With ``needs_tasks``, the factory receives ``stream`` with facts about the ``tasks`` in other
    settings as well. ``performances`` restricts the metric to scenarios with one of these values of ``scenario.performance``; () = any.
    ``unit`` is the unit of values other than performance (``"steps"``).

    ``label`` is the name in papers, ``short`` is the name in figures, and ``aliases`` are other names that users may type (``ap``).
    ``quantity`` is the name of the measured quantity, regardless of its sign.
    """

    kind: ClassVar[str] = "metric"

    factory: str
    formula: str
    direction: Literal["up", "down"]
    range: tuple[float, float] = (float("-inf"), float("inf"))
    needs_joint: bool = False
    reference: str = ""
    needs_tasks: bool = False
    settings: tuple[str, ...] = ("task-il", "class-il", "domain-il", "time-il")
    performances: tuple[str, ...] = ()
    label: str = ""
    unit: str = ""
    undefined: str = ""
    short: str = ""
    aliases: tuple[str, ...] = ()
    quantity: Literal["performance", "forgetting", "transfer", "intransigence", "time", "rejection", ""] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.direction not in DIRECTIONS:
            raise UnknownNameError(f"direction of metric {self.name!r}", str(self.direction), tuple(DIRECTIONS))
        if self.needs_joint:
            object.__setattr__(self, "reference", "joint")

    @property
    def title(self) -> str:
        """The title of the metric in papers, or its name if papers do not use a title."""
        return self.label or self.name

    @property
    def symbol(self) -> str:
        """The symbol of the metric in figures, such as ``AA``."""
        return self.short or self.title

    @property
    def arrow(self) -> str:
        """↑ if higher is better, otherwise ↓."""
        return DIRECTIONS[self.direction].arrow

    @property
    def better(self) -> str:
        """The word for better values: ``higher`` or ``lower``."""
        return DIRECTIONS[self.direction].better

    @property
    def axis(self) -> str:
        """The symbol and arrow of the metric, such as ``AA ↑``."""
        return f"{self.symbol} {self.arrow}"

    @property
    def heading(self) -> str:
        """The title, unit and arrow of the metric, such as ``time to recover, steps ↓``."""
        return f"{self.title}{f', {self.unit}' if self.unit else ''} {self.arrow}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names that users may type for the metric. If ``short`` and ``aliases`` are empty, they include the first word of the
        label.
        """
        typed = (self.short, *self.aliases) if self.short or self.aliases else self.title.split()[:1]
        return (self.name, self.title, *filter(None, typed))

    def loss(self, value: float) -> float:
        """Convert a value so that larger values are worse. Forgetting is positive regardless of the metric's sign."""
        return -DIRECTIONS[self.direction].sign * value

    def excluded(self, scenario: Mapping[str, object]) -> str:
        """Explain why the metric does not apply to a scenario with this setting and performance. Returns an empty string if it applies."""
        setting, performance = scenario.get("setting", self.settings[0]), scenario.get("performance")
        if setting not in self.settings:
            return f"does not apply to {setting}, only to {', '.join(self.settings)}"
        if self.performances and performance not in self.performances:
            return f"does not apply where performance is {performance}, only to {', '.join(self.performances)}"
        return ""


# The metrics of the suite, which cglsuite-metrics provides, in the order of tables.

_BEGIN = Citation(
    authors=("Ko", "others"),
    title="BeGin: Extensive Benchmark Scenarios and An Easy-to-use Framework for Graph Continual Learning",
    year=2025,
    journal="ACM TIST 16(1)",
)
_CHAUDHRY = Citation(authors=("Chaudhry", "others"), title="Riemannian Walk for Incremental Learning", year=2018, booktitle="ECCV")
_LOPEZ_PAZ = Citation(
    authors=("Lopez-Paz", "Ranzato"), title="Gradient Episodic Memory for Continual Learning", year=2017, booktitle="NeurIPS"
)
_DRIFT = Citation(
    authors=("Sun", "others"),
    title="DRIFT: A Benchmark for Task-Free Continual Graph Learning with Continuous Distribution Shifts",
    year=2026,
    arxiv="2605.12998",
)
_LLM4GCL = Citation(
    authors=("Cheng", "Li", "Li", "others"),
    title="Can LLMs Alleviate Catastrophic Forgetting in Graph Continual Learning? A Systematic Study",
    year=2025,
    arxiv="2505.18697",
)
_SKELETON = Citation(
    authors=("Wei", "De Schepper", "Mets"),
    title="Benchmarking Sensitivity of Continual Graph Learning for Skeleton-Based Action Recognition",
    year=2024,
    arxiv="2401.18054",
)
_SHARE, _DIFFERENCE = (0.0, 1.0), (-1.0, 1.0)


def _metric(name: str, label: str, summary: str, **more: Any) -> MetricSpec:
    return MetricSpec(name=name, label=label, summary=summary, factory=f"cglsuite.stats.metrics:{name}", **more)


_OF_TASKS = (
    _metric(
        "average_performance", "AP (AA)", "mean performance over all tasks after the last one",
        formula="mean_j M[T,j]", direction="up", range=_SHARE, quantity="performance", short="AA", aliases=("AP",), citation=_LOPEZ_PAZ,
    ),
    _metric(
        "forgetting_from_diagonal", "AF (BeGin)", "performance lost since a task was learnt; positive = forgetting",
        formula="mean_{j<T} (M[j,j] - M[T,j])", direction="down", range=_DIFFERENCE, quantity="forgetting", short="AF", citation=_BEGIN,
    ),
    _metric(
        "forgetting_max", "AF_max (Chaudhry)", "performance lost since a task was at its best; positive = forgetting",
        formula="mean_{j<T} (max_{j<=l<T} M[l,j] - M[T,j])", direction="down", range=_DIFFERENCE, quantity="forgetting", short="AF_max",
        citation=_CHAUDHRY,
    ),
    _metric(
        "forgetting_max_any_stage", "AF_max (skeleton)",
        "performance lost since a task was at its best, before it was learnt or after; positive = forgetting",
        formula="mean_{j<T} (max_{l<T} M[l,j] - M[T,j])", direction="down", range=_DIFFERENCE, quantity="forgetting", short="AF_any",
        settings=("task-il", "domain-il", "time-il"), citation=_SKELETON,
    ),
    _metric(
        "backward_transfer", "AF (CGLB, AGALE), BWT", "performance gained since a task was learnt; negative = forgetting",
        formula="mean_{j<T} (M[T,j] - M[j,j])", direction="up", range=_DIFFERENCE, quantity="transfer", short="BWT", aliases=("AF",),
        citation=_LOPEZ_PAZ,
    ),
    _metric(
        "forward_transfer", "FWT", "performance on the next task before learning it, relative to the untrained model",
        formula="mean_{j>=2} (M[j-1,j] - M[0,j])", direction="up", range=_DIFFERENCE, quantity="transfer", short="FWT",
        settings=("domain-il", "time-il"), citation=_LOPEZ_PAZ,
    ),
    _metric(
        "intransigence", "INT", "shortfall on each new task against joint training; lower is better",
        formula="mean_j (M_joint[j,j] - M[j,j])", direction="down", range=_DIFFERENCE, quantity="intransigence", short="INT",
        needs_joint=True, citation=_CHAUDHRY,
    ),
    _metric(
        "excess_forgetting", "excess AF", "forgetting beyond that of frozen-ncm, which never changes a weight; positive = forgetting",
        formula="AF - AF_frozen, AF = mean_{j<T} (M[j,j] - M[T,j])", direction="down", range=(-2.0, 2.0), quantity="forgetting",
        reference="frozen-ncm", citation="cglsuite, 2026 (defined here: see the formula)",
    ),
)  # fmt: skip
_ACCURACY: dict[str, Any] = {
    "direction": "up", "range": _SHARE, "quantity": "performance", "citation": _LLM4GCL,
    "settings": ("class-il", "domain-il", "time-il"), "performances": ("micro",), "needs_tasks": True,
}  # fmt: skip
_POOLED = (
    _metric(
        "pooled_accuracy", "pooled accuracy", "accuracy over the test items of all tasks after the last one",
        formula="sum_j n_j M[T,j] / sum_j n_j", **_ACCURACY,
    ),
    _metric(
        "pooled_accuracy_mean", "pooled accuracy, averaged",
        "accuracy over the test items of the tasks learnt, averaged over the stages of the stream",
        formula="mean_k sum_{j<=k} n_j M[k,j] / sum_{j<=k} n_j", **_ACCURACY,
    ),
)  # fmt: skip
_OPEN_WORLD = _metric(
    "open_world_mean", "open world", "the measure of rejection over all test items of a stage, averaged over the stages before the last",
    formula="mean_{k<T} M[k,k+1], the column of the next task", direction="up", range=_DIFFERENCE, quantity="rejection",
    settings=("class-il",), performances=MEASURES["open"], citation=GALKE,
)  # fmt: skip
_CURVE: dict[str, Any] = {"settings": ("task-free",), "direction": "up", "citation": _DRIFT}
_LEVEL: dict[str, Any] = _CURVE | {"range": _SHARE, "quantity": "performance"}
_TASK_FREE = (
    _metric(
        "a_auc", "A_AUC", "mean performance over latent tasks and evaluations, including the one before training",
        formula="mean_{i>=0} mean_k A[i,k]", **_LEVEL,
    ),
    _metric(
        "a_auc_trained", "A_AUC (from step 1)", "mean performance over latent tasks and evaluations, excluding the one before training",
        formula="mean_{i>=1} mean_k A[i,k]", **_LEVEL,
    ),
    _metric(
        "a_auc_node_weighted", "A_AUC (DRIFT's code)",
        "performance on all test items pooled, averaged over evaluations, including the one before training",
        formula="mean_{i>=0} sum_k n_k A[i,k] / sum_k n_k", **_LEVEL,
    ),
    _metric(
        "a_end", "AA, A_end", "mean performance over latent tasks after the last step", formula="mean_k A[E,k]", short="AA", **_LEVEL,
    ),
    _metric(
        "af_s", "AF_s (DRIFT)", "final performance minus the best over the stream; negative = forgetting, never positive",
        formula="mean_k (A[E,k] - max_i A[i,k])", range=(-1.0, 0.0), quantity="forgetting", short="AF_s", **_CURVE,
    ),
    _metric(
        "af_hard", "AF (DRIFT, hard streams)", "performance gained since the last item of a latent task arrived; negative = forgetting",
        formula="mean_k (A[E,k] - A[e_k,k]), e_k: all of k has arrived", range=_DIFFERENCE, quantity="forgetting", short="AF", **_CURVE,
    ),
    _metric(
        "time_to_recover", "time to recover", "steps until a latent task that fell below 90% of its best recovers",
        formula="median over dips of (step back - step of the fall)", range=(0.0, float("inf")), unit="steps", quantity="time",
        undefined="nothing falls, or at least half of the falls never recover",
        **_CURVE | {"direction": "down", "citation": "cglsuite, 2026 (defined here: see the formula)"},
    ),
)  # fmt: skip
METRICS: Mapping[str, MetricSpec] = {spec.name: spec for spec in (*_OF_TASKS, *_TASK_FREE, *_POOLED, _OPEN_WORLD)}
"""The metrics by name, in the order of tables."""


def metric_named(word: str, metrics: Mapping[str, MetricSpec], what: str = "metric") -> MetricSpec:
    """Look up a metric by name, label, symbol or alias, ignoring case.

    Raises:
        UnknownNameError: there is no such metric. The message suggests the closest name. UsageError: the name is ambiguous.
    """
    if word in metrics:
        return metrics[word]
    called = [spec for spec in metrics.values() if word.lower() in map(str.lower, spec.names)]
    if len(called) > 1:
        raise UsageError(f"the metric name {word!r} is ambiguous; expected one of {', '.join(spec.name for spec in called)}")
    if not called:
        raise UnknownNameError(what, word, list(dict.fromkeys([*metrics, *(name for spec in metrics.values() for name in spec.names)])))
    return called[0]
