"""The published protocols of graph classification and regression, one module each: every switch explicit."""

from __future__ import annotations

__all__ = ["BUILDER", "trained_outputs"]

BUILDER = "cglsuite.streams.graphwise:build_graph_stream"


def trained_outputs(setting: str) -> str:
    """Which outputs compete in training: the task's own in task-IL, else all seen."""
    return "task" if setting == "task-il" else "seen"
