"""Settings that several published protocols share."""

from __future__ import annotations

TOPOLOGY_NOTE = "Queries arrive inside their own task's subgraph, so in class-IL the topology alone can give the task away."
"""The note for presets in which a node has neighbours only in its own task."""


def trained_outputs(setting: str) -> str:
    """Return which outputs compete in training (``scenario.train_outputs``): the task's own in task-IL, otherwise all seen so far."""
    return "task" if setting == "task-il" else "seen"
