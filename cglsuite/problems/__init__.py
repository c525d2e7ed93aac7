"""Problem adapters, one per problem level. They allow a single implementation of a method to work at every level.

Modules are imported when a name is first used, so that a run imports only the adapter of its level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.base.lazily import lazily

if TYPE_CHECKING:
    from cglsuite.problems.adapters import problem_class
    from cglsuite.problems.base import Problem
    from cglsuite.problems.graphwise import GraphProblem
    from cglsuite.problems.link import LinkPredictionProblem, LinkProblem, MultiLabelLinkProblem
    from cglsuite.problems.multilabel_graphs import MultiLabelGraphProblem
    from cglsuite.problems.multilabel_nodes import MultiLabelNodeProblem
    from cglsuite.problems.node import NodeProblem
    from cglsuite.problems.regression import GraphRegressionProblem
    from cglsuite.problems.replay_items import MemoryItems
    from cglsuite.problems.unlabelled import Unlabelled

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
    "Unlabelled",
    "problem_class",
]

__getattr__, __dir__ = lazily(__name__, __file__)
