"""The problem adapter for multi-label graphs."""

from __future__ import annotations

from cglsuite.problems.graphwise import GraphProblem
from cglsuite.problems.multilabel import MultiLabelOutputs


class MultiLabelGraphProblem(MultiLabelOutputs, GraphProblem):
    """Adapter for graphs with any number of labels."""
