"""Streams define the order in which data arrives and what methods can see. Their oracle keeps the hidden labels."""

from __future__ import annotations

from cglsuite.streams.measures.answered import Answered, OutputScores
from cglsuite.streams.oracle import Oracle, Score
from cglsuite.streams.stream import QueryGroup, TaskFacts, TaskStream
from cglsuite.streams.task_free import TaskFreeStream
from cglsuite.streams.views import Batch, TaskView

__all__ = ["Answered", "Batch", "Oracle", "OutputScores", "QueryGroup", "Score", "TaskFacts", "TaskFreeStream", "TaskStream", "TaskView"]
