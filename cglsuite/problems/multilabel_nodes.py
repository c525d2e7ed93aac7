"""The problem adapter for multi-label nodes."""

from __future__ import annotations

from cglsuite.problems.multilabel import MultiLabelOutputs
from cglsuite.problems.node import NodeProblem


class MultiLabelNodeProblem(MultiLabelOutputs, NodeProblem):
    """Adapter for nodes with any number of labels."""
