"""Settings of methods that draw hundreds of networks to condense a task, for tests and benchmarks that are about something else."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["SHORT"]

SHORT: Mapping[str, Mapping[str, int]] = {"delome": {"method.draws": 20}, "puma": {"method.encoders": 5, "method.steps": 2}}
"""By method; they see the same items, only less often."""
