"""Convert values and names to text for pages and status files, and build notice boxes and badges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from cglsuite.base.markup import Content, Fragment, element, plain_text, several
from cglsuite.campaigns.reference.values import ARTEFACT, PAPERS

__all__ = [
    "Notes",
    "badge",
    "change_words",
    "key_box",
    "listed",
    "metric_name",
    "metric_words",
    "notice",
    "plain_text",
    "scenario_words",
    "tile",
    "value_text",
    "verdict_badge",
]

_PRESET = re.compile(r"([^/@\s]+)/([^/@\s]+)@([^\s,+]+)(\+[0-9a-f]{8})?", re.DOTALL)
_SPELLING = {paper.protocols[0].partition("-")[0]: paper.name for paper in PAPERS}


def listed(names: str | Iterable[str]) -> list[str]:
    """Return the names as a list, because papermill passes a single name as a string (``-p methods bare``)."""
    return [names] if isinstance(names, str) else list(names)


def value_text(value: Any) -> str:
    """Format the value of a setting as text."""
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(value_text(v) for v in value) if isinstance(value, (list, tuple)) else str(value)


def scenario_words(preset: str) -> str:
    """Return a preset's name in words: its data set, setting and protocol, and "modified" if switches were overridden.

    Text that is not part of a preset's name is left unchanged.

    Example:
        >>> scenario_words("bitcoin-otc/class-il@begin-1")
        'bitcoin-otc · class-IL · BeGin 1'
        >>> scenario_words("cora/task-il@cglb-inter-2+16179d3d")
        'cora · task-IL · CGLB inter 2, modified'
        >>> scenario_words("cora/task-il@cglb-2, n_tasks = 3")
        'cora · task-IL · CGLB 2, n_tasks = 3'
    """
    match = _PRESET.match(preset)
    return preset if match is None else " · ".join(_words_of(match)) + preset[match.end() :]


def change_words(first: str, second: str) -> str:
    """Describe what changes between two scenarios of the same data set, as a clause that follows "when".

    Example:
        >>> change_words("uai2010/gaussian@drift-2+16179d3d", "uai2010/global@drift-2")
        'gaussian · DRIFT 2 (modified) is replaced by global · DRIFT 2'
        >>> change_words("cora/task-il@begin-1", "cora/task-il@begin-2")
        'BeGin 1 is replaced by BeGin 2'
    """
    matches = [_PRESET.match(preset) for preset in (first, second)]
    parts = [_words_of(match) if match is not None else ("", preset) for match, preset in zip(matches, (first, second), strict=True)]
    same = next((n for n, (a, b) in enumerate(zip(*parts, strict=False)) if a != b), 0)
    before, after = (" · ".join(part[same:]).replace(", modified", " (modified)") for part in parts)
    return f"{before} is replaced by {after}"


def _words_of(match: re.Match[str]) -> tuple[str, str, str]:
    """Data set, setting and protocol of a preset in words."""
    family, _, rest = match[3].partition("-")
    protocol = " ".join(filter(None, (_SPELLING.get(family, family), rest.replace("-", " "))))
    return match[1], re.sub("-il$", "-IL", match[2]), f"{protocol}{', modified' if match[4] else ''}"


def metric_words(metric: str, measure: str, percent: bool) -> str:
    """Return a metric's axis label, in which the name of the measure replaces "performance".

    Example:
        >>> metric_words("average_performance", "accuracy", True)
        'Average accuracy (%)'
    """
    words = metric_name(metric).replace("performance", measure)
    return f"{words[:1].upper()}{words[1:]}{' (%)' if percent else ''}"


_SYMBOL = re.compile(r"^a (auc|end)\b")


def metric_name(metric: str) -> str:
    """Return a metric's name as written in a sentence.

    Example:
        >>> metric_name("average_performance"), metric_name("a_auc")
        ('average performance', 'A_AUC')
    """
    return _SYMBOL.sub(lambda match: {"auc": "A_AUC", "end": "A_end"}[match[1]], metric.replace("_", " "))


# Notice boxes, the box of key results, tiles with a number, and badges of verdicts.

_COUNTED = re.compile(r"\b(cell|method|order|scenario|seed|stream|value)s\b")


def tile(value: Content, label: str) -> Fragment:
    """Return a number with its label. The label of 1 is singular: ``1, "methods"`` becomes "1 method"."""
    shown = f"{value:,}" if isinstance(value, int) else value
    return element("li", element("b", shown), " ", element("span", _COUNTED.sub(r"\1", label) if value == 1 else label))


def key_box(
    lines: Iterable[Fragment], scenarios: Sequence[Fragment] = (), first: Iterable[Fragment] = (), more: str = "more scenario"
) -> Fragment:
    """Build the box at the top of a page that lists its key results.

    Args:
        scenarios: one item per scenario, shown before ``lines``. Items after the fifth are collapsed under a count labelled ``more``.
        first: items that apply to all scenarios.
    """
    head, rest = element("h2", "Key results", id="key-results"), scenarios[5:]
    folded = element("details", element("summary", several(len(rest), more)), element("ul", *rest)) if rest else None
    return element(
        "section", head, element("ul", *first, *scenarios[:5], *lines), folded, class_="key-results", aria_labelledby="key-results"
    )


def notice(first: str, *rest: Content) -> Fragment:
    """Return a notice box with a sentence and an optional list."""
    listed = element("ul", *(element("li", text) for text in rest)) if rest else None
    return element("div", element("p", first), listed, class_="notice", role="note")


def badge(text: str, kind: str, title: str | None = None) -> Fragment:
    """Return a badge with this text; ``kind`` is ``good``, ``bad``, ``note`` or ``plain``."""
    return element("span", text, class_=f"badge {kind}", title=title)


_VERDICTS = {"equivalent": "good", "different": "bad", ARTEFACT: "note"}


def verdict_badge(verdict: str, shown: str = "", title: str | None = None) -> Fragment:
    """Return a badge that shows whether our value agrees with the published one.

    Args:
        shown: text to display instead of the verdict.
    """
    return badge(shown or verdict, _VERDICTS.get(verdict, "plain"), title)


class Notes:
    """Collect the footnotes of a table without duplicates."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, content: Content, text: str) -> list[Content]:
        """Return the content, followed by a reference to the note if ``text`` is not empty."""
        if not text:
            return [content]
        if text not in self.texts:
            self.texts.append(text)
        return [content, element("sup", f" {self.texts.index(text) + 1}")]

    def listed(self) -> Fragment | None:
        """Return all notes as a numbered list, or ``None`` if there are none."""
        return element("ol", *(element("li", f"{text.rstrip('.')}.") for text in self.texts), class_="footnotes") if self.texts else None
