"""Problem levels, incremental settings, and the version of the plugin interface."""

from __future__ import annotations

from typing import Literal, get_args

API_VERSION = 1
"""The plugin interface of this version of the suite."""
OLDEST_API_VERSION = 1
"""The oldest supported plugin interface."""
Level = Literal["NC", "LC", "LP", "GC", "GR"]
"""A problem level: node classification, link classification, link prediction, graph classification, graph regression."""
Setting = Literal["task-il", "class-il", "domain-il", "time-il", "task-free"]
"""An incremental setting."""
LEVELS: tuple[str, ...] = get_args(Level)
"""Every value of :data:`Level`."""
SETTINGS: tuple[str, ...] = get_args(Setting)
"""Every value of :data:`Setting`."""
