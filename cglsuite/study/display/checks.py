"""What the report of a conformance check shows of itself."""

from __future__ import annotations

from typing import Any

from cglsuite.base.markup import card, grid

__all__ = ["report_card"]


def report_card(report: Any) -> str:
    """The verdict of a :class:`cglsuite.testing.CheckReport`, and a row per finding, failures first."""
    verdict = "conforms" if report.passed else "does not conform"
    order = sorted(report.findings, key=lambda f: ("failed", "skipped", "ok").index(f.status))
    rows = [(f.status, f.check, f.where.partition("@")[0], f.message, f.fix) for f in order]
    table = grid(("status", "check", "where", "message", "fix"), rows)
    return card(f"{report.kind} {report.name} {verdict}", [("provider", report.provider)], table)
