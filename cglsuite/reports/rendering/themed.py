"""A figure's light and dark version as one SVG, which takes the colours of the reader's preference."""

from __future__ import annotations

import re

__all__ = ["themed"]

_STYLE = re.compile(r'(?<=style=")[^"]*')
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_IDENTIFIER = re.compile(r'(?<=[#"])[pm][0-9a-f]{10}\b')
"""Of clip paths and markers; Matplotlib derives a marker's from its colours as well."""


def themed(light: str, dark: str) -> str | None:
    """Both versions in one SVG about as large as either, or ``None`` if they differ in more than colours.

    Every pair of a light and a dark colour becomes a CSS variable; ``prefers-color-scheme`` chooses its value.
    """
    pairs: dict[tuple[str, str], str] = {}
    versions = [_IDENTIFIER.sub(_Names(), text) for text in (light, dark)]
    if len({_STYLE.sub(lambda style: _COLOUR.sub("#", style[0]), text) for text in versions}) > 1:
        return None
    others = iter([colour for style in _STYLE.findall(versions[1]) for colour in _COLOUR.findall(style)])

    def variable(found: re.Match[str]) -> str:
        pair = (found[0], next(others))
        return pair[0] if pair[0] == pair[1] else f"var({pairs.setdefault(pair, f'--{len(pairs)}')})"

    text = _STYLE.sub(lambda style: _COLOUR.sub(variable, style[0]), versions[0])
    values = ["".join(f"{name}:{pair[version]};" for pair, name in pairs.items()) for version in (0, 1)]
    sheet = f"<style>:root{{{values[0]}}}@media (prefers-color-scheme:dark){{:root{{{values[1]}}}}}</style>"
    return re.sub(r"<svg\b[^>]*>", lambda tag: tag[0] + sheet, text, count=1) if pairs else text


class _Names(dict[str, str]):
    """Identifiers by order of first use."""

    def __call__(self, found: re.Match[str]) -> str:
        return self.setdefault(found[0], f"{found[0][0]}{len(self)}")
