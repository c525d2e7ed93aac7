"""One figure in a light and a dark version, as SVG, and several of them side by side."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from cglsuite.base.markup import element, join
from cglsuite.reports.kit.marks import held_back, written
from cglsuite.reports.kit.mime import FIGURES

__all__ = ["DARK", "LIGHT", "Gallery", "Picture", "Theme", "house_style", "picture", "svg"]

_FONTS = "'DejaVu Sans', Verdana, 'Liberation Sans', Arial, Helvetica, sans-serif"


@dataclass(frozen=True)
class Theme:
    """Colours of one version of a figure; ``lines`` is the palette of Okabe and Ito, in shades that stand out from the ground."""

    ground: str
    ink: str
    quiet: str
    rule: str
    lines: tuple[str, ...]


LIGHT = Theme("#ffffff", "#1b1f24", "#57606a", "#d8dee4", ("#0072b2", "#d55e00", "#009e73", "#b0578d", "#a87900", "#3a93c9", "#444444"))


DARK = Theme("#14171b", "#e4e8ec", "#a3adb8", "#363d46", ("#56b4e9", "#ff8f45", "#2fd0a3", "#e59ac6", "#f0c04a", "#9fd4f5", "#cfcfcf"))


@dataclass(frozen=True)
class Picture:
    """One figure in both versions, with a text alternative; neighbours of a ``group`` share its title, ``wide`` ones have a row alone."""

    light: str
    dark: str
    alt: str
    caption: str = ""
    group: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Gallery:
    """Figures side by side, as many as fit. Pages follow the reader's light or dark preference; Jupyter shows the light version."""

    pictures: tuple[Picture, ...]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {
            FIGURES: {"figures": [asdict(p) for p in self.pictures]},
            "text/html": "".join(_row(group, list(pictures)) for group, pictures in groupby(self.pictures, key=lambda p: p.group)),
            "text/plain": "\n".join(p.alt for p in self.pictures),
        }


def _row(group: str, pictures: Sequence[Picture]) -> str:
    """Pictures of one group side by side below its name, for a front end without a style sheet of ours."""
    flat = "margin:0 0 1rem 0"
    captions = [element("figcaption", p.caption) if p.caption else None for p in pictures]
    images = [element("img", src=_data_uri(p.light), alt=p.alt) for p in pictures]
    shown = [element("figure", image, caption, style=flat) for image, caption in zip(images, captions, strict=True)]
    title = element("p", element("strong", group)).source if group else ""
    return title + element("div", join(shown), style="display:flex;flex-wrap:wrap;gap:1rem;align-items:start").source


def picture(draw: Callable[[Theme], Figure], alt: str, caption: str = "", group: str = "", *, wide: bool = False) -> Picture:
    """Draw both versions of a figure."""
    with mpl.rc_context(house_style(LIGHT)):
        light = svg(draw(LIGHT))
    with mpl.rc_context(house_style(DARK)):
        dark = svg(draw(DARK))
    return Picture(light, dark, alt, caption, group, wide)


def svg(figure: Figure) -> str:
    """The figure as SVG text, deterministic."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text, marks = held_back(text[text.index("<svg") :])
    text = _TAG.sub(lambda tag: _LONG_NUMBER.sub(r"\1", tag[0]), text)
    for pattern, replacement in _COMPACT:
        text = re.sub(pattern, replacement, text)
    return written(text.replace("<svg ", f'<svg font-family="{_FONTS}" ', 1), marks)


_TAG = re.compile(r"<[^>]*>")
_LONG_NUMBER = re.compile(r"(\d\.\d\d)\d+")
"""In tags only: the same in a figure's text is a value."""
# Matplotlib's SVG says most things in every element: this makes a heat map a third of its size without changing how it looks.
_COMPACT = (
    (r"<metadata>[\s\S]*?</metadata>", ""),
    (r"font-family: [^;\"]*(?:; )?", ""),  # once for all
    (r' transform="rotate\(-0 [^"]*"', ""),
    (r' id="(?![pm][0-9a-f]{8}|image|mark-)[^"]*"', ""),  # except of clip paths, markers, images and marks
    (r'd="M (\S+) (\S+) \nL (\S+) \2 \nL \3 (\S+) \nL \1 \4 \nL \1 \2 \n"', r'd="M\1 \2H\3V\4H\1Z"'),  # rectangles
    (r"\n\s*", "\n"),
    (r"<g>\n(<text .*?</text>)\n</g>", r"\1"),
)


def house_style(theme: Theme) -> Any:
    """Settings of Matplotlib for every figure, also those that seaborn draws."""
    return {
        "svg.fonttype": "none",  # text as text, not as paths: sharp at any size, and small
        "svg.hashsalt": "cglsuite",
        "text.parse_math": False,  # names come from plugins, so a dollar sign must not start a formula
        "font.family": "sans-serif",
        "font.size": 9.0,
        "figure.facecolor": theme.ground,
        "savefig.facecolor": theme.ground,
        "axes.facecolor": theme.ground,
        "axes.edgecolor": theme.rule,
        "axes.labelcolor": theme.quiet,
        "text.color": theme.ink,
        "xtick.color": theme.quiet,
        "ytick.color": theme.quiet,
        "axes.labelsize": 9.0,
    }


def _data_uri(text: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()
