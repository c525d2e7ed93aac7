"""Settings that several published protocols share."""

from __future__ import annotations

TOPOLOGY_NOTE = "Queries arrive inside their own task's subgraph, so in class-IL the topology alone can give the task away."
"""The note of presets in which a node's neighbours are limited to its own task."""


def trained_outputs(setting: str) -> str:
    """Return the outputs that compete in training: the task's in task-IL, otherwise all seen so far (``scenario.train_outputs``)."""
    return "task" if setting == "task-il" else "seen"
