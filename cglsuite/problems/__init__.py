"""Problem adapters, one per level: the reason why one implementation of a method serves all levels."""

from __future__ import annotations

from cglsuite.errors import SpecError
from cglsuite.problems.base import Problem
from cglsuite.problems.graphwise import GraphProblem
from cglsuite.problems.kept import MemoryItems
from cglsuite.problems.link import LinkPredictionProblem, LinkProblem
from cglsuite.problems.multilabel import MultiLabelOutputs
from cglsuite.problems.node import NodeProblem
from cglsuite.problems.regression import RealOutputs

__all__ = [
    "GraphProblem",
    "GraphRegressionProblem",
    "LinkPredictionProblem",
    "LinkProblem",
    "MemoryItems",
    "MultiLabelGraphProblem",
    "MultiLabelLinkProblem",
    "MultiLabelNodeProblem",
    "NodeProblem",
    "Problem",
    "problem_class",
]


class MultiLabelNodeProblem(MultiLabelOutputs, NodeProblem):
    """Nodes with any number of labels."""


class MultiLabelGraphProblem(MultiLabelOutputs, GraphProblem):
    """Graphs with any number of labels."""


class MultiLabelLinkProblem(MultiLabelOutputs, LinkProblem):
    """Links with any number of labels."""


class GraphRegressionProblem(RealOutputs, GraphProblem):
    """Graphs with real targets."""


_CLASSES: dict[tuple[str, str], type[Problem]] = {
    ("NC", "single"): NodeProblem,
    ("NC", "multi"): MultiLabelNodeProblem,
    ("LC", "single"): LinkProblem,
    ("LC", "multi"): MultiLabelLinkProblem,
    ("LP", "multi"): LinkPredictionProblem,
    ("GC", "single"): GraphProblem,
    ("GC", "multi"): MultiLabelGraphProblem,
    ("GR", "real"): GraphRegressionProblem,
}


def problem_class(level: str, labels: str) -> type[Problem]:
    """The adapter of a problem level for items with ``single``, ``multi`` or ``real`` labels.

    Raises:
        SpecError: there is none.
    """
    if (level, labels) not in _CLASSES:
        known = ", ".join(sorted({f"{a} with {b} labels" for a, b in _CLASSES}))
        raise SpecError(f"problem level {level} with {labels} labels has no adapter; expected {known}")
    return _CLASSES[level, labels]
