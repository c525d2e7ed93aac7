"""The problem adapter for multi-label graphs."""

from __future__ import annotations

from cglsuite.problems.graphwise import GraphProblem
from cglsuite.problems.multilabel import MultiLabelOutputs

__all__ = ["MultiLabelGraphProblem"]


class MultiLabelGraphProblem(MultiLabelOutputs, GraphProblem):
    """Graphs with any number of labels."""
