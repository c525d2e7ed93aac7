"""Small conversions of text for pages and status files."""

from __future__ import annotations

import re
from typing import Any

from cglsuite.plaintext import plain_text

__all__ = ["metric_words", "plain_text", "scenario_words", "value_text"]

_SETTING = re.compile(r"([^/@]+)/([^/@]+)@(.+)", re.DOTALL)


def value_text(value: Any) -> str:
    """Any setting as text."""
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(value_text(v) for v in value) if isinstance(value, (list, tuple)) else str(value)


def scenario_words(preset: str) -> str:
    """A preset's name as a figure's title; any other text stays.

    Example:
        >>> scenario_words("bitcoin-otc/class-il@begin-1")
        'bitcoin-otc · class-IL · begin-1'
    """
    found = _SETTING.fullmatch(preset)
    return " · ".join((found[1], re.sub("-il$", "-IL", found[2]), found[3])) if found else preset


def metric_words(metric: str, measure: str, percent: bool) -> str:
    """A metric as an axis label: its name in words, the performance measure by its own name.

    Example:
        >>> metric_words("average_performance", "accuracy", True)
        'Average accuracy (%)'
    """
    words = metric.replace("_", " ").replace("performance", measure)
    return f"{words[:1].upper()}{words[1:]}{' (%)' if percent else ''}"
