"""A measure: how the answers to a task's queries are scored, and the measures that the core provides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from cglsuite.base.errors import SpecError, UnknownNameError
from cglsuite.specs.citation import Citation
from cglsuite.specs.plugins import PluginSpec
from cglsuite.specs.vocabulary import LEVELS

__all__ = ["CORE_MEASURES", "LABEL_KINDS", "MEASURES", "PERFORMANCE_RANGES", "MeasureSpec"]

LABEL_KINDS = ("single", "multi", "real")
"""The values of ``scenario.labels``."""


@dataclass(frozen=True, kw_only=True)
class MeasureSpec(PluginSpec):
    """A measure of performance: ``factory(answered: Answered)`` returns a float, or :class:`cglsuite.streams.OutputScores`.

    It scores hidden answers inside the oracle: one part (test or validation) of one task at a time. A scenario names it
    (``scenario.performance``), its source is part of the cell's key, and no method sees what it is given.

    ``labels`` are the kinds of labels that it scores (values of ``scenario.labels``), ``levels`` the problem levels. ``direction`` says
    whether higher or lower values are better; where lower ones are, performance is minus the value, so that higher performance is
    always better. ``range`` bounds the value, ``unit`` names it where it is not a fraction, ``label`` is its name in reports.
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
            raise SpecError(f"measure {self.name!r}: range = {self.range!r}: expected two ascending bounds")

    @property
    def performance_range(self) -> tuple[float, float]:
        """The bounds of performance: those of the value, or of minus the value where lower values are better."""
        low, high = self.range
        return (low, high) if self.direction == "up" else (-high, -low)


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
)
"""The measures of the core, which every catalogue knows."""

MEASURES = {kind: tuple(spec.name for spec in CORE_MEASURES if kind in spec.labels) for kind in LABEL_KINDS}
"""The core's measures by the kind of labels that they score."""

PERFORMANCE_RANGES = {spec.name: spec.performance_range for spec in CORE_MEASURES}
"""The bounds of performance by the core's measures."""
