"""The problem adapter for node regression (NR)."""

from __future__ import annotations

from cglsuite.problems.node import NodeProblem
from cglsuite.problems.regression import RealOutputs


class NodeRegressionProblem(RealOutputs, NodeProblem):
    """Adapter for nodes with real-valued targets."""
