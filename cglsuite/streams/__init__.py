"""Streams: what arrives in which order, what may be seen of it, and who holds the answers."""

from __future__ import annotations

from cglsuite.streams.online import BatchStream
from cglsuite.streams.oracle import Oracle, Score
from cglsuite.streams.stream import QueryGroup, TaskFacts, TaskStream
from cglsuite.streams.views import Batch, TaskView

__all__ = ["Batch", "BatchStream", "Oracle", "QueryGroup", "Score", "TaskFacts", "TaskStream", "TaskView"]
