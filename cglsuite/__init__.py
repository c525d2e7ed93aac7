"""A benchmark suite for continual graph learning: published protocols, methods as small plugins, and statistically sound reports.

This is the public interface for plugins and scripts. Importing it imports neither torch nor pandas; ``Method``, ``Catalogue`` and
``load_catalogue`` are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.base.lazily import lazily
from cglsuite.host.hookspecs import hookimpl
from cglsuite.specs import (
    BackboneSpec,
    CommandSpec,
    DatasetSpec,
    EncoderSpec,
    ExecutorSpec,
    Hyperparameter,
    MeasureSpec,
    MethodSpec,
    MetricSpec,
    NotebookSpec,
    PretrainingSpec,
    ScenarioSpec,
    ScheduleSpec,
    Seeds,
    TaskFreeSpec,
    TrainingSpec,
)

if TYPE_CHECKING:
    from cglsuite.cells.code.inputs import input_file
    from cglsuite.host.catalogue import Catalogue, load_catalogue
    from cglsuite.learning.method import Method
    from cglsuite.study import Explorer, Study, build_stream, explore, load_dataset, run

__all__ = [
    "BackboneSpec",
    "Catalogue",
    "CommandSpec",
    "DatasetSpec",
    "EncoderSpec",
    "ExecutorSpec",
    "Explorer",
    "Hyperparameter",
    "MeasureSpec",
    "Method",
    "MethodSpec",
    "MetricSpec",
    "NotebookSpec",
    "PretrainingSpec",
    "ScenarioSpec",
    "ScheduleSpec",
    "Seeds",
    "Study",
    "TaskFreeSpec",
    "TrainingSpec",
    "__version__",
    "build_stream",
    "explore",
    "hookimpl",
    "input_file",
    "load_catalogue",
    "load_dataset",
    "run",
]

__version__ = "0.1.0"
"""The version of the core."""

__getattr__, __dir__ = lazily(__name__, __file__)
