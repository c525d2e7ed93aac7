"""Self-contained HTML pages from notebooks, by nbconvert with our template.

A page makes no request: images are embedded, and a content security policy forbids scripts, style sheets, fonts and images from elsewhere.
Markdown and HTML outputs of notebooks and plugins pass an allow-list of tags and attributes, so nothing in them can run. A page with our
figures, or one made of fragments, has one script of ours, which its policy names by hash; other pages have none.
"""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors.sanitize import SanitizeHTML

from cglsuite import __version__
from cglsuite.base.markup import Fragment, element
from cglsuite.reports.kit.mime import FACTS, FIGURES
from cglsuite.reports.kit.text import plain_text
from cglsuite.reports.rendering.sections import arrange
from cglsuite.reports.rendering.themed import themed

if TYPE_CHECKING:
    from nbformat import NotebookNode

__all__ = ["Page", "asset", "document_html", "page_html", "sanitize", "script_json"]

# fmt: off
_TAGS = [
    "a", "abbr", "b", "blockquote", "br", "caption", "code", "col", "colgroup", "dd", "del", "details", "div", "dl", "dt", "em",
    "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "ins", "kbd", "li", "mark", "ol", "p", "pre", "q", "s",
    "samp", "section", "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u",
    "ul", "var",
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
    """A page's title, status and footer; ``footer`` lines follow the notebook's own.

    ``heading``: the first heading, in place of the notebook's, which becomes a line below it; empty: the notebook's own.
    """

    title: str
    heading: str = ""
    status: Literal["done", "failed"] = "done"
    footer: tuple[str, ...] = ()
    generator: str = field(default=f"cglsuite {__version__}")


def page_html(notebook: NotebookNode, page: Page) -> str:
    """A complete HTML document from an executed notebook: results first; code, parameters and logs folded at the end.

    Args:
        notebook: with outputs. page: title, status and foot.

    Returns:
        HTML that refers to nothing outside itself.
    """
    described = _described(page) | {"footer": [*_footer(notebook), *page.footer], "css": asset("report.css")}
    if any(FIGURES in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ())):
        described |= _scripted(asset("figures.js"))
    text, _ = _exporter().from_notebook_node(notebook, {"page": described | {"arranged": arrange(notebook.cells)}})
    text = _headed(str(text), page.heading)
    return text.replace(_CONTENTS, _contents(text), 1)


def _headed(text: str, heading: str) -> str:
    """The page under a heading of its own; the same words below it are left out."""
    if not heading:
        return text
    said = html.escape(heading)
    headed = _FIRST_HEADING.sub(lambda found: f'<h1>{said}</h1>\n<p class="kind">{found[1]}</p>', text, count=1)
    return headed.replace(element("p", element("strong", heading), class_="lead").source, "", 1)


def document_html(page: Page, body: Fragment, *, css: str = "", script: str = "", data: Any = None) -> str:
    """A complete HTML document from fragments (whose text is already escaped), with one script of our own.

    Args:
        css: added after the common style sheet. script: the only one that the page's policy allows. data: JSON types for the script,
            stored as text in the element ``data``.
    """
    described = _described(page) | _scripted(script) | {"css": asset("report.css") + css, "body": body.source, "data": script_json(data)}
    text = _exporter().environment.get_template("site.html.j2").render(resources={"page": described})
    return str(text).replace(_CONTENTS, _contents(body.source), 1)


def script_json(data: Any) -> str:
    """JSON that is safe in a script element: nothing in it can end the element or begin a comment."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))  # ASCII only, so that U+2028 and U+2029 are escaped too
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _described(page: Page) -> dict[str, Any]:
    return {"title": page.title, "status": page.status, "generator": page.generator, "footer": list(page.footer)}


def _scripted(script: str) -> dict[str, str]:
    """A script of ours, and its hash for the page's policy."""
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"script": script, "script_hash": f"sha256-{allowed}"}


def sanitize(fragment: str) -> str:
    """HTML with only harmless tags and attributes; anything else is shown as text."""
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
        filters={"sanitized": sanitize, "shown": _shown, "plain": plain_text},
    )


def asset(name: str) -> str:
    """The text of a file among our assets."""
    return (Path(str(resources.files("cglsuite.reports.rendering"))) / "assets" / name).read_text(encoding="utf-8")


def _shown(output: Mapping[str, Any]) -> str:
    """One output of a cell in its richest safe form."""
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


def _gallery(content: Mapping[str, Any]) -> str:
    parts = []
    for group, figures in itertools.groupby(content["figures"], key=lambda figure: figure.get("group", "")):
        title = f'<p class="gallery-title">{html.escape(group)}</p>' if group else ""
        parts.append(f'{title}<div class="gallery">{"".join(map(_figure, figures))}</div>')
    return "".join(parts)


def _figure(figure: Mapping[str, Any]) -> str:
    light, dark = figure["light"], figure.get("dark")
    one = themed(light, dark) if dark else light
    other = "" if one or not dark else f'<source media="(prefers-color-scheme: dark)" srcset="{_svg(dark)}">'
    caption = f"<figcaption>{html.escape(figure['caption'])}</figcaption>" if figure.get("caption") else ""
    wide = ' class="wide"' if figure.get("wide") else ""
    return f"<figure{wide}><picture>{other}{_image(_svg(one or light), figure['alt'])}</picture>{caption}</figure>"


def _image(source: str, alt: str) -> str:
    return f'<img alt="{html.escape(alt)}" src="{source}">'


def _svg(text: str) -> str:
    # As an image, an SVG runs no script and fetches nothing.
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


def _base64(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9+/=]", "", text)


def _text(value: Any) -> str:
    return "".join(value) if isinstance(value, list) else value if isinstance(value, str) else json.dumps(value)


def _contents(page: str) -> str:
    """A list of the page's sections; nothing for a page with fewer than three."""
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
