"""The import strings of the problem adapters, so that a run imports only the adapter of its level."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING

from cglsuite.base.errors import SpecError

if TYPE_CHECKING:
    from cglsuite.problems.base import Problem


ADAPTERS: dict[tuple[str, str], str] = {
    ("NC", "single"): "cglsuite.problems.node:NodeProblem",
    ("NC", "open"): "cglsuite.problems.open_world:OpenNodeProblem",
    ("NC", "multi"): "cglsuite.problems.multilabel_nodes:MultiLabelNodeProblem",
    ("NR", "real"): "cglsuite.problems.node_regression:NodeRegressionProblem",
    ("LC", "single"): "cglsuite.problems.link:LinkProblem",
    ("LC", "open"): "cglsuite.problems.open_world:OpenLinkProblem",
    ("LC", "multi"): "cglsuite.problems.link:MultiLabelLinkProblem",
    ("LP", "multi"): "cglsuite.problems.link:LinkPredictionProblem",
    ("GC", "single"): "cglsuite.problems.graphwise:GraphProblem",
    ("GC", "open"): "cglsuite.problems.open_world:OpenGraphProblem",
    ("GC", "multi"): "cglsuite.problems.multilabel_graphs:MultiLabelGraphProblem",
    ("GR", "real"): "cglsuite.problems.regression:GraphRegressionProblem",
}
"""Maps (level, labels) to ``"module:Class"``. The classes are roots of a cell's key, so the key does not cover this table."""


def adapter_reference(level: str, labels: str) -> str:
    """Return the import string (``"module:Class"``) of the adapter for a level and a kind of labels (``single``, ``multi``, ...).

    Raises:
        SpecError: if there is no such adapter.
    """
    if (level, labels) not in ADAPTERS:
        known = ", ".join(sorted({f"{a} with {b} labels" for a, b in ADAPTERS}))
        raise SpecError(f"there is no adapter for problem level {level} with {labels} labels; expected {known}")
    return ADAPTERS[level, labels]


def problem_class(level: str, labels: str) -> type[Problem]:
    """Import the adapter class for a level and the kind of labels (``single``, ``multi``, ``real`` or ``open``).

    Raises:
        SpecError: if there is no such adapter.
    """
    adapter: type[Problem] = resolve_name(adapter_reference(level, labels))
    return adapter
