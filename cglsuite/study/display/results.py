"""What the results of a campaign show of themselves: its progress, and warnings to read before the numbers."""

from __future__ import annotations

from cglsuite.reports.results.summary import overview

__all__ = ["overview"]
