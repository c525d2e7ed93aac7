"""Frozen dataclasses shared by all packages, with the declarations of plugins and the contents of cell keys. Does not import torch.

The names below are public, but the modules that define them may change.
"""

from cglsuite.specs.hyperparameters import Hyperparameter, Value, resolve_hyperparameters
from cglsuite.specs.kinds import KINDS
from cglsuite.specs.levels import API_VERSION, LEVELS, OLDEST_API_VERSION, SETTINGS, Level, LevelSpec, LinkPredictionSpec, Setting
from cglsuite.specs.metric import METRICS, MetricSpec, metric_named
from cglsuite.specs.plugins import (
    CORE_COMMANDS,
    CORE_ENCODERS,
    CORE_MEASURES,
    LABEL_KINDS,
    MEASURES,
    NO_PRETRAINING,
    PERFORMANCE_RANGES,
    PRETRAINING_HYPERPARAMETERS,
    BackboneSpec,
    Citation,
    CommandSpec,
    DatasetSpec,
    EncoderSpec,
    ExecutorSpec,
    MeasureSpec,
    MethodSpec,
    NotebookSpec,
    PluginSpec,
    PretrainingSpec,
    ScheduleSpec,
)
from cglsuite.specs.scenario import TASK_ORDERS, ScenarioSpec, Seeds, TaskFreeSpec, order_count
from cglsuite.specs.switch import Switch, effect_of, parse_switch, switches, with_switches
from cglsuite.specs.training import TrainingSpec

__all__ = [
    "API_VERSION",
    "CORE_COMMANDS",
    "CORE_ENCODERS",
    "CORE_MEASURES",
    "KINDS",
    "LABEL_KINDS",
    "LEVELS",
    "MEASURES",
    "METRICS",
    "NO_PRETRAINING",
    "OLDEST_API_VERSION",
    "PERFORMANCE_RANGES",
    "PRETRAINING_HYPERPARAMETERS",
    "SETTINGS",
    "TASK_ORDERS",
    "BackboneSpec",
    "Citation",
    "CommandSpec",
    "DatasetSpec",
    "EncoderSpec",
    "ExecutorSpec",
    "Hyperparameter",
    "Level",
    "LevelSpec",
    "LinkPredictionSpec",
    "MeasureSpec",
    "MethodSpec",
    "MetricSpec",
    "NotebookSpec",
    "PluginSpec",
    "PretrainingSpec",
    "ScenarioSpec",
    "ScheduleSpec",
    "Seeds",
    "Setting",
    "Switch",
    "TaskFreeSpec",
    "TrainingSpec",
    "Value",
    "effect_of",
    "metric_named",
    "order_count",
    "parse_switch",
    "resolve_hyperparameters",
    "switches",
    "with_switches",
]
