"""Small conversions of text for pages and status files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from cglsuite.base.plaintext import plain_text
from cglsuite.campaigns.reference.papers import PAPERS

__all__ = ["listed", "metric_words", "plain_text", "scenario_words", "value_text"]

_PRESET = re.compile(r"([^/@\s]+)/([^/@\s]+)@([^\s,+]+)(\+[0-9a-f]{8})?", re.DOTALL)
_SPELLING = {paper.protocols[0].partition("-")[0]: paper.name for paper in PAPERS}


def listed(names: str | Iterable[str]) -> list[str]:
    """Names, one or several: papermill hands one over as a text (``-p methods bare``)."""
    return [names] if isinstance(names, str) else list(names)


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
    """A preset's name in words: data set, setting and protocol; switches that were overridden become "modified". Other text stays.

    Example:
        >>> scenario_words("bitcoin-otc/class-il@begin-1")
        'bitcoin-otc · class-IL · BeGin 1'
        >>> scenario_words("cora/task-il@cglb-inter-2+16179d3d")
        'cora · task-IL · CGLB inter 2, modified'
        >>> scenario_words("cora/task-il@cglb-2, n_tasks = 3")
        'cora · task-IL · CGLB 2, n_tasks = 3'
    """
    found = _PRESET.match(preset)
    if found is None:
        return preset
    family, _, rest = found[3].partition("-")
    protocol = " ".join(filter(None, (_SPELLING.get(family, family), rest.replace("-", " "))))
    words = " · ".join((found[1], re.sub("-il$", "-IL", found[2]), protocol))
    return f"{words}{', modified' if found[4] else ''}{preset[found.end() :]}"


def metric_words(metric: str, measure: str, percent: bool) -> str:
    """A metric as an axis label: its name in words, the performance measure by its own name.

    Example:
        >>> metric_words("average_performance", "accuracy", True)
        'Average accuracy (%)'
    """
    words = metric.replace("_", " ").replace("performance", measure)
    return f"{words[:1].upper()}{words[1:]}{' (%)' if percent else ''}"
