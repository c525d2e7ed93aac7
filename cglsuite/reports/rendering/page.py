"""Convert notebooks to self-contained HTML pages with nbconvert and our template.

A page makes no network request: images are embedded, and a content security policy forbids scripts, style sheets, fonts and images from
elsewhere. Markdown and HTML outputs of notebooks and plugins are filtered by an allow-list of tags and attributes, so nothing in them can
run. A page with our figures, or one built from fragments, contains one script of ours, which its policy allows by hash. Other pages have no
script.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import itertools
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors.sanitize import SanitizeHTML

from cglsuite import __version__
from cglsuite.base.markup import Fragment, element, plain_text, several
from cglsuite.reports.kit.pictures import FACTS, FIGURES, Gallery

if TYPE_CHECKING:
    from nbformat import NotebookNode


# fmt: off
_TAGS = [
    "a", "abbr", "b", "blockquote", "br", "caption", "code", "col", "colgroup", "dd", "del", "details", "div", "dl", "dt", "em",
    "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "ins", "kbd", "li", "mark", "ol", "p", "pre", "q", "s",
    "samp", "section", "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u",
    "ul", "var", "wbr",
]
# fmt: on
_ANYWHERE = {"class", "id", "title", "lang", "dir", "role", "tabindex"} | {
    f"data-{name}" for name in ("value", "std", "n", "low", "high", "column", "row")
}
_BY_TAG = {
    "a": {"href"},
    "img": {"alt"},  # no source attribute: pictures are image outputs, and nothing may be fetched
    "td": {"colspan", "rowspan", "headers"},
    "th": {"colspan", "rowspan", "headers", "scope"},
    "col": {"span"},
    "details": {"open"},
    "ol": {"start"},
}
_STYLE_ELEMENT = re.compile(r"<style\b.*?(?:</style\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)(?:<a class="anchor-link"|</h2>)', re.DOTALL)
_FIRST_HEADING = re.compile(r'<h1[^>]*>(.*?)(?:<a class="anchor-link"[^>]*>.*?</a>)?</h1>', re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_CONTENTS = "<!--contents-->"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page's title, heading, status and footer.

    ``heading`` replaces the notebook's first heading, which moves to a line below it; if empty, the notebook's heading is used. The
    ``footer`` lines follow those of the notebook.
    """

    title: str
    heading: str = ""
    status: Literal["done", "failed"] = "done"
    footer: tuple[str, ...] = ()
    generator: str = field(default=f"cglsuite {__version__}")


def page_html(notebook: NotebookNode, page: Page) -> str:
    """Convert an executed notebook to a complete HTML document. Results come first; code, parameters and logs are collapsed at the end.

    Args:
        notebook: the notebook with its outputs. page: title, heading, status and footer.

    Returns:
        HTML without references to anything outside it.
    """
    described = _described(page) | {"footer": [*_footer(notebook), *page.footer], "css": asset("report.css")}
    outputs = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ())]
    drawings = [figure["light"] for data in outputs if FIGURES in data for figure in data[FIGURES]["figures"]]
    if drawings:
        described |= _script_tag(asset("figures.js")) | {"fonts": json.dumps(fonts_of(drawings))}
    text, _ = _exporter().from_notebook_node(notebook, {"page": described | {"arranged": arrange(notebook.cells)}})
    text = _with_heading(str(text), page.heading)
    return text.replace(_CONTENTS, _contents(text), 1)


def _with_heading(text: str, heading: str) -> str:
    """Replace the page's first heading by ``heading``, and remove the line that repeats it."""
    if not heading:
        return text
    said = html.escape(plain_text(heading))
    headed = _FIRST_HEADING.sub(lambda match: f'<h1>{said}</h1>\n<p class="kind">{match[1]}</p>', text, count=1)
    return headed.replace(element("p", element("strong", heading), class_="lead").source, "", 1)


def document_html(page: Page, body: Fragment, *, css: str = "", script: str = "", data: Any = None) -> str:
    """Build a complete HTML document from fragments with escaped text, and add our script.

    Args:
        css: rules to add after the common style sheet. script: the only script that the page's policy allows. If the page has figures,
            their script is appended to it. data: values of JSON types for the script, stored as text in the element ``data``.
    """
    drawings = [base64.b64decode(text).decode() for text in _DRAWING.findall(body.source)]
    fonts = {"fonts": json.dumps(fonts_of(drawings))} if drawings else {}
    script += asset("figures.js") if drawings else ""
    described = _described(page) | _script_tag(script) | fonts
    described |= {"css": asset("report.css") + css, "body": body.source, "data": script_json(data)}
    text = _exporter().environment.get_template("site.html.j2").render(resources={"page": described})
    return str(text).replace(_CONTENTS, _contents(body.source), 1)


def script_json(data: Any) -> str:
    """Return the data as JSON that is safe in a script element: it can neither end the element nor begin a comment."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))  # ASCII only, so that U+2028 and U+2029 are escaped too
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _described(page: Page) -> dict[str, Any]:
    return {
        "title": " ".join(plain_text(page.title).split()),
        "status": page.status,
        "generator": page.generator,
        "footer": list(page.footer),
    }


def _script_tag(script: str) -> dict[str, str]:
    """Return the script and its hash for the page's security policy."""
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"script": script, "script_hash": f"sha256-{allowed}"}


_FONT_FILES = {"regular": "DejaVuSans", "bold": "DejaVuSans-Bold"}
_SVG = "data:image/svg+xml;base64,"
_DRAWING = re.compile(rf'<img alt="[^"]*" src="{re.escape(_SVG)}([^"]*)"></picture>')
_DRAWN_TEXT = re.compile(r"<text\b([^>]*)>([^<]*)</text>")


def fonts_of(drawings: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Extract the glyphs of Matplotlib's font that the SVGs use. The page's script needs them to export figures as PDF.

    Returns:
        For each weight that occurs (regular, bold), the TrueType ``file`` (zlib, Base64), its ``size`` in bytes, its metrics, and for each
        character its glyph and its width in thousandths of the font size.
    """
    shown = [(style, html.unescape(text)) for drawing in drawings for style, text in _DRAWN_TEXT.findall(drawing)]
    letters: dict[str, set[str]] = {"regular": set(), "bold": set()}
    for style, text in shown:
        letters["bold" if "bold" in style or " 700" in style else "regular"] |= set(text)
    return {weight: _font(_FONT_FILES[weight], used) for weight, used in letters.items() if used}


def _font(name: str, letters: Iterable[str]) -> dict[str, Any]:
    import matplotlib as mpl
    from fontTools import subset  # a requirement of matplotlib

    options = subset.Options(hinting=False, layout_features=[], name_IDs=[], notdef_outline=True, drop_tables=["FFTM"])
    with subset.load_font(str(Path(mpl.get_data_path()) / "fonts" / "ttf" / f"{name}.ttf"), options) as font:
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes=map(ord, letters))
        subsetter.subset(font)
        buffer = io.BytesIO()
        font.save(buffer)
        head, line, advances = font["head"], font["hhea"], font["hmtx"]
        unit, known = 1000 / head.unitsPerEm, font.getBestCmap() or {}
        return {
            "name": name,
            "file": base64.b64encode(zlib.compress(buffer.getvalue(), 9)).decode(),
            "size": len(buffer.getvalue()),
            "box": [round(unit * side) for side in (head.xMin, head.yMin, head.xMax, head.yMax)],
            "ascent": round(unit * line.ascent),
            "descent": round(unit * line.descent),
            "glyphs": {chr(code): [font.getGlyphID(glyph), round(unit * advances[glyph][0])] for code, glyph in known.items()},
        }


def sanitize(fragment: str) -> str:
    """Keep only harmless tags and attributes of an HTML fragment. Other tags are shown as text."""
    cleaner = SanitizeHTML(tags=_TAGS, attributes=_allowed, styles=[])
    return str(cleaner.sanitize_html_tags(_STYLE_ELEMENT.sub("", fragment)))


def _allowed(tag: str, name: str, value: str) -> bool:
    return name in _ANYWHERE or name.startswith("aria-") or name in _BY_TAG.get(tag, ())


def _exporter() -> HTMLExporter:
    # An explicit template folder: nbconvert would also search folders of the user and the current directory.
    return HTMLExporter(
        template_paths=[str(resources.files("cglsuite.reports.rendering") / "assets")],
        template_file="report.html.j2",
        anchor_link_text="#",
        filters={"sanitized": sanitize, "shown": _output_html, "plain": plain_text},
    )


def asset(name: str) -> str:
    """Return the text of one of our asset files."""
    return (Path(str(resources.files("cglsuite.reports.rendering"))) / "assets" / name).read_text(encoding="utf-8")


_INNERMOST = re.compile(r"<details\b(?:(?!<details\b).)*?</details>", re.DOTALL)
_BROAD = 600.0
"""The width of a figure in points above which it scrolls on a phone instead of shrinking to fit."""
_LONG = 1000
"""The height in pixels, about one screen, above which an output is collapsed."""


def _output_html(output: Mapping[str, Any]) -> str:
    """Return one output of a cell in its richest safe form, collapsed if it is long."""
    return _folded(_unfolded_output(output), always=bool(output.get("metadata", {}).get("fold")))


def _folded(shown: str, *, always: bool = False) -> str:
    """Collapse a long output, or any with ``always``, under a line that describes its content.

    Key results are never collapsed. A collapsed part of the output counts as one line.
    """
    outside, folds = _INNERMOST.subn("", shown)
    while _INNERMOST.search(outside):
        outside = _INNERMOST.sub("", outside)
    tables, rows, pictures = (outside.count(tag) for tag in ("<table", "<tr", "<picture"))
    short = 60 * tables + 34 * rows + 170 * pictures + 30 * folds <= _LONG and not (always and tables + pictures)
    if short or 'class="key-results"' in shown:
        return shown
    groups = _first_of(_GROUP.findall(outside))
    figures = several(pictures, "figure") + (f": {groups}" if groups else "") if pictures else ""
    holds = [_named_tables(outside, tables), figures, _first_of(_FOLD_TITLE.findall(_TABLE.sub("", shown)))]
    return f'<details class="output"><summary>{" – ".join(filter(None, holds))}</summary>{shown}</details>'


_SUBJECT = re.compile(r"<figcaption><strong>(.*?)</strong>", re.DOTALL)
_GROUP = re.compile(r'<p class="gallery-title">(.*?)</p>', re.DOTALL)
_TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
_ROW_HEAD = re.compile(r"<thead\b.*?<th\b[^>]*>(.*?)</th>", re.DOTALL)
_BODY = re.compile(r"<tbody\b.*?</tbody>", re.DOTALL)
_FOLD_TITLE = re.compile(r"<summary>(?:<strong>)?(.*?)(?:</strong>|</summary>)", re.DOTALL)


def _named_tables(shown: str, n_tables: int) -> str:
    """Describe the tables: a single one by its row heads and number of rows, several by their subjects."""
    if n_tables != 1:
        subjects = _first_of(_SUBJECT.findall(shown))
        return several(n_tables, "table") + (f": {subjects}" if subjects else "") if n_tables else ""
    by = next((_TAG.sub(" ", head).strip() for head in _ROW_HEAD.findall(shown)), "")
    n_rows = sum(body.count("<tr") for body in _BODY.findall(shown))
    return f"Table{f' by {by}' if by else ''}, {several(n_rows, 'row')}"


def _first_of(titles: Sequence[str]) -> str:
    """Return the first two of ``titles``, and the number of the others."""
    names = [_TAG.sub(" ", title).strip() for title in titles]
    return "; ".join([*names[:2], f"and {len(names) - 2} more"] if len(names) > 2 else names)


def _unfolded_output(output: Mapping[str, Any]) -> str:
    data = output["data"]
    if FIGURES in data:
        return _gallery(data[FIGURES])
    if "text/html" in data:
        return sanitize(_text(data["text/html"]))
    if "text/markdown" in data:
        from nbconvert.filters import markdown2html

        return f'<div class="prose">{sanitize(markdown2html(_text(data["text/markdown"])))}</div>'
    alt = _text(data.get("text/plain", "")) or "figure without description"
    if "image/svg+xml" in data:
        return f"<figure>{_image(_svg(_text(data['image/svg+xml'])), alt)}</figure>"
    for kind in ("image/png", "image/jpeg"):
        if kind in data:
            return f"<figure>{_image(f'data:{kind};base64,{_base64(_text(data[kind]))}', alt)}</figure>"
    return f'<pre class="stream" tabindex="0">{html.escape(plain_text(_text(data.get("text/plain", ""))))}</pre>'


def gallery_html(gallery: Gallery) -> Fragment:
    """Convert figures to HTML for :func:`document_html`. They follow the reader's preference for light or dark colours."""
    return Fragment(_gallery(gallery._repr_mimebundle_()[FIGURES]))


def _gallery(content: Mapping[str, Any]) -> str:
    parts = []
    for group, figures in itertools.groupby(content["figures"], key=lambda figure: figure.get("group", "")):
        title = f'<p class="gallery-title">{html.escape(group)}</p>' if group else ""
        parts.append(f'{title}<div class="gallery">{"".join(map(_figure, figures))}</div>')
    return "".join(parts)


def _figure(figure: Mapping[str, Any]) -> str:
    light, dark = figure["light"], figure.get("dark")
    picture = themed(light, dark) if dark else light
    other = "" if picture or not dark else f'<source media="(prefers-color-scheme: dark)" srcset="{_svg(dark)}">'
    caption = f"<figcaption>{html.escape(figure['caption'])}</figcaption>" if figure.get("caption") else ""
    width = re.search(r'width="([\d.]+)pt"', light)
    scrolls = width is not None and float(width[1]) > _BROAD
    wide = ' class="wide broad" tabindex="0"' if scrolls else ' class="wide"' if figure.get("wide") else ""
    return f"<figure{wide}><picture>{other}{_image(_svg(picture or light), figure['alt'])}</picture>{caption}</figure>"


def _image(source: str, alt: str) -> str:
    return f'<img alt="{html.escape(alt)}" src="{source}">'


def _svg(text: str) -> str:
    # As an image, an SVG runs no script and fetches nothing.
    return _SVG + base64.b64encode(text.encode()).decode()


def _base64(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9+/=]", "", text)


def _text(value: Any) -> str:
    return "".join(value) if isinstance(value, list) else value if isinstance(value, str) else json.dumps(value)


def _contents(page: str) -> str:
    """Return the list of the page's sections, or the empty text if there are fewer than three."""
    headings = _HEADING.findall(page)
    if len(headings) < 3:
        return ""
    items = "".join(f'<li><a href="#{anchor}">{_TAG.sub("", text)}</a></li>' for anchor, text in headings)
    return f'<nav class="contents" aria-label="Contents"><details><summary>Contents</summary><ol>{items}</ol></details></nav>'


def _footer(notebook: NotebookNode) -> Iterable[str]:
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            facts = output.get("data", {}).get(FACTS)
            if facts:
                yield from map(str, facts.get("footer", ()))


# A page's reading order: results first, and how they were produced at the end.
# Code, parameters and log lines move to the end. Sections with nothing to show are left out and listed there with the reason.

_MARKDOWN_HEADING = re.compile(r"\A\s*(#{1,6})\s+(.+?)\s*#*\s*$", re.MULTILINE)
_EMPTY = re.compile(r'\A\s*<p class="quiet empty">(.*?)</p>\s*\Z', re.DOTALL)
_PARAMETERS = {"parameters": "default parameters", "injected-parameters": "parameters of this page"}


@dataclass(frozen=True, kw_only=True)
class Source:
    """The code of one cell. ``title`` is the title of its section, or states that the cell sets parameters."""

    title: str
    cell: NotebookNode


@dataclass(frozen=True, kw_only=True)
class Log:
    """The standard error output of one cell. ``number`` counts from 1."""

    number: int
    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A section without content. ``reason`` is HTML from its cells and can be empty."""

    title: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Arranged:
    """The parts of a notebook in reading order.

    Args:
        body: text, outputs and references to :class:`Log` entries, in the notebook's order.
        sources, logs, left_out: what the end of the page shows.
    """

    body: tuple[NotebookNode | Log, ...]
    sources: tuple[Source, ...]
    logs: tuple[Log, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(kw_only=True)
class _Section:
    level: int
    title: str
    cells: list[NotebookNode]


def arrange(cells: Iterable[NotebookNode]) -> Arranged:
    """Separate the results of an executed notebook from the code that produced them. Outputs of cells tagged ``fold`` are collapsed.

    A section extends from a Markdown cell that begins with a heading to the next such cell. It is left out if its code cells show only
    notes that there is nothing to show, and no subsection has content. Errors and printed text count as content.
    """
    sections = list(_sections(cells))
    shown = [_shows(sections, at) for at in range(len(sections))]
    logs = list[Log]()
    body: list[NotebookNode | Log] = []
    for section, keep in zip(sections, shown, strict=True):
        for cell in section.cells if keep else ():
            if cell.cell_type == "markdown":
                body.append(cell)
            for output in cell.get("outputs", ()):
                if _is_log(output):
                    logs.append(Log(number=len(logs) + 1, title=section.title, text="".join(output.text)))
                    body.append(logs[-1])
                else:
                    folds = {"metadata": {"fold": True}} if "fold" in cell.metadata.get("tags", []) else {}
                    body.append(type(output)(output | folds))
    left_out = [_omission(section) for section, keep in zip(sections, shown, strict=True) if not keep]
    return Arranged(body=tuple(body), sources=tuple(_sources(sections)), logs=tuple(logs), left_out=tuple(left_out))


def _sections(cells: Iterable[NotebookNode]) -> Iterator[_Section]:
    section = _Section(level=1, title="", cells=[])
    for cell in cells:
        heading = _MARKDOWN_HEADING.match(cell.source) if cell.cell_type == "markdown" else None
        if heading:
            if section.cells:
                yield section
            section = _Section(level=len(heading[1]), title=heading[2], cells=[])
        section.cells.append(cell)
    if section.cells:
        yield section


def _shows(sections: Sequence[_Section], at: int) -> bool:
    """Return whether a section or one of its subsections has content, as the page's head and sections of text always do."""
    section = sections[at]
    if section.level == 1 or _has_content(section):
        return True
    below = next((i for i in range(at + 1, len(sections)) if sections[i].level <= section.level), len(sections))
    return any(_has_content(inner) for inner in sections[at + 1 : below])


def _has_content(section: _Section) -> bool:
    code = [cell for cell in section.cells if cell.cell_type == "code" and cell.source.strip()]
    outputs = [output for cell in code for output in cell.get("outputs", ())]
    return not code or any(not _is_log(output) and _empty_reason(output) is None for output in outputs)


def _omission(section: _Section) -> LeftOut:
    outputs = [output for cell in section.cells for output in cell.get("outputs", ())]
    reasons = dict.fromkeys(reason for output in outputs if (reason := _empty_reason(output)))
    return LeftOut(title=section.title, reason=" ".join(reasons))


def _sources(sections: Iterable[_Section]) -> Iterator[Source]:
    for section in sections:
        for cell in section.cells:
            tags = cell.metadata.get("tags", [])
            if cell.cell_type == "code" and cell.source.strip() and "hide-input" not in tags:
                named = next((_PARAMETERS[tag] for tag in tags if tag in _PARAMETERS), "")
                yield Source(title=named or section.title or "code", cell=cell)


def _is_log(output: Any) -> bool:
    return bool(output.output_type == "stream" and output.name == "stderr")


def _empty_reason(output: Any) -> str | None:
    """Return why an output has nothing to show (empty for a gallery without figures), or ``None`` if it shows something."""
    if not output.get("data", {}).get(FIGURES, {"figures": True})["figures"]:
        return ""
    shown = output.get("data", {}).get("text/html", "") if output.output_type in {"display_data", "execute_result"} else ""
    match = _EMPTY.match("".join(shown))
    return match[1].strip() if match else None


# A figure's light and dark versions as one SVG, which uses the colours that the reader prefers.

_STYLE = re.compile(r'(?<=style=")[^"]*')
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_IDENTIFIER = re.compile(r'(?<=[#"])[pm][0-9a-f]{10}\b')
"""Identifiers of clip paths and markers. Matplotlib derives a marker's identifier partly from its colours."""


def themed(light: str, dark: str) -> str | None:
    """Combine both versions into a single SVG of about the same size, or return ``None`` if they differ in more than their colours.

    Every pair of a light and a dark colour becomes a CSS variable whose value depends on ``prefers-color-scheme``.
    """
    pairs: dict[tuple[str, str], str] = {}
    versions = [_IDENTIFIER.sub(_Names(), text) for text in (light, dark)]
    if len({_STYLE.sub(lambda style: _COLOUR.sub("#", style[0]), text) for text in versions}) > 1:
        return None
    others = iter([colour for style in _STYLE.findall(versions[1]) for colour in _COLOUR.findall(style)])

    def variable(match: re.Match[str]) -> str:
        pair = (match[0], next(others))
        return pair[0] if pair[0] == pair[1] else f"var({pairs.setdefault(pair, f'--{len(pairs)}')})"

    text = _STYLE.sub(lambda style: _COLOUR.sub(variable, style[0]), versions[0])
    values = ["".join(f"{name}:{pair[version]};" for pair, name in pairs.items()) for version in (0, 1)]
    sheet = f"<style>:root{{{values[0]}}}@media (prefers-color-scheme:dark){{:root{{{values[1]}}}}}</style>"
    return re.sub(r"<svg\b[^>]*>", lambda tag: tag[0] + sheet, text, count=1) if pairs else text


class _Names(dict[str, str]):
    """Replaces identifiers by short ones, numbered in order of first use."""

    def __call__(self, match: re.Match[str]) -> str:
        return self.setdefault(match[0], f"{match[0][0]}{len(self)}")
