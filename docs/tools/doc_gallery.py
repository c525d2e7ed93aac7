"""The gallery of the documentation: every report with its key results, embedded; and figures drawn while the site is built.

``reports/gallery/gallery.toml`` says which pages there are and what they show. Titles and key results are read from the pages; those that
are not in git are there once ``python tests/tools/gallery.py`` has rendered them.
"""

from __future__ import annotations

import base64
import html
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from doc_text import text

__all__ = ["FOLDER", "figures", "gallery_files", "gallery_records", "gallery_repetitions", "gallery_sections", "listed", "repetitions"]

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "reports" / "gallery"


def listed() -> list[dict[str, Any]]:
    """The entries of ``gallery.toml``."""
    found: list[dict[str, Any]] = tomllib.loads((FOLDER / "gallery.toml").read_text(encoding="utf-8"))["page"]
    return found


def gallery_files() -> dict[str, Path]:
    """By its place in the gallery, every page that is here and what belongs to it: those in git, and what was rendered besides."""
    rendered = FOLDER / "rendered"
    files = {path.relative_to(rendered).as_posix(): path for path in sorted(rendered.rglob("*")) if path.is_file()}
    return files | {path.relative_to(FOLDER).as_posix(): path for path in sorted(FOLDER.rglob("*.html")) if rendered not in path.parents}


@cache
def gallery_records() -> Any:
    """All records of the gallery as one table, read once."""
    from cglsuite.cells.records.frame import results_frame
    from cglsuite.cells.storage.store import Store

    return results_frame(Store(FOLDER / "records").records())


@cache
def gallery_repetitions() -> Any:
    """The records without those of the seeds on which a search of the gallery chose their settings, as a ledger counts."""
    from cglsuite.cells.storage.store import Store

    return repetitions(gallery_records(), Store(FOLDER / "records").search_outcomes())


def repetitions(frame: Any, outcomes: Iterable[Mapping[str, Any]]) -> Any:
    """The records that are no basis of the choice of their own settings, by the outcomes of searches."""
    for outcome in outcomes:
        chosen = {"scenario": outcome["scenario"], "method": outcome["method"]}
        chosen |= {f"configuration.{name}": value for name, value in outcome["overrides"].items()}
        for seeds in outcome["seeds"]:
            basis = chosen | {f"{name}_seed": value for name, value in seeds.items()}
            frame = frame[~(frame[list(basis)] == list(basis.values())).all(axis=1)]
    return frame


def gallery_sections() -> str:
    """A section per entry, with its pages, as Markdown."""
    files, parts = gallery_files(), []
    for entry in listed():
        pages = [_embedded(place, files[place], first=not parts) for place in entry["pages"].values() if place in files]
        away = f"Not rendered here: `python tests/tools/gallery.py {entry['name']}`."
        parts += [f"## {entry['shows'][:1].upper()}{entry['shows'][1:]}", *(pages or [away])]
    return "\n\n".join(parts) + "\n"


def _embedded(page: str, path: Path, *, first: bool) -> str:
    """A page's title with a link, its key results, and the page itself; only the first is unfolded."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    heading, kind = soup.find("h1"), soup.find("p", class_="kind")
    for anchor in soup.find_all("a", class_="anchor-link"):
        anchor.decompose()
    title = " ".join(part.get_text().strip() for part in (heading,) if part) or page
    said = f" ({text(kind.get_text().strip().lower())})" if kind else ""
    results = [text(item.get_text()) for item in soup.select("section.key-results > ul > li")]
    name = html.escape(title, quote=True)
    return "\n".join(
        [
            f"**[{text(title)}]({page})**{said}\n",
            *(f"- {result}" for result in results),
            "",
            f'<details class="report"{" open" if first else ""}><summary>{html.escape(page)}</summary>',
            f'<iframe src="{html.escape(page)}" title="{name}" loading="lazy"></iframe></details>',
        ]
    )


# --- figures -----------------------------------------------------------------------------------------------------------------------


def figures(words: list[str]) -> str:
    """``figure VIEW SOURCE [PART]``: figures drawn from the gallery's records, or from data that are built in.

    VIEW is ``matrices`` or ``curves`` of a campaign (``reports/demo.toml``), or ``shares``, ``drift``, ``homophily`` or ``degrees`` of a
    scenario's tasks. PART selects figures by a part of their text alternative, with ``_`` for spaces.

    Raises:
        KeyError: there is no such view.
        ValueError: there is no such figure.
    """
    view, source, *part = words
    gallery = _of_campaign(source)[view]() if source.endswith(".toml") else _of_scenario(source)[view]()
    wanted = " ".join(part).replace("_", " ")
    chosen = [picture for picture in getattr(gallery, "pictures", ()) if wanted in picture.alt]
    if not chosen:
        raise ValueError(f"figure {' '.join(words)}: nothing to show")
    return '<div class="figures" markdown="0">' + "".join(_image(picture) for picture in chosen) + "</div>\n"


def _image(picture: Any) -> str:
    """Both versions; the theme hides one by the end of its address."""
    sources = [(picture.light, "light", picture.alt), (picture.dark, "dark", picture.alt)]
    return "".join(f'<img src="{_address(svg)}#only-{theme}" alt="{html.escape(alt, quote=True)}">' for svg, theme, alt in sources)


def _address(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


@cache
def _of_campaign(path: str) -> dict[str, Any]:
    from cglsuite.reports.results.results import load_campaign_results
    from cglsuite.reports.studies import campaign as show

    pages = tomllib.loads((FOLDER / "gallery.toml").read_text(encoding="utf-8"))["page"]
    records = {ROOT / "reports" / name: page.get("records", "records") for page in pages for name in page.get("campaigns", ())}
    results = load_campaign_results(ROOT / path, FOLDER / records.get(ROOT / path, "records"))
    return {"matrices": lambda: show.matrices(results), "curves": lambda: show.curves(results)}


@cache
def _of_scenario(name: str) -> dict[str, Any]:
    from cglsuite import load_catalogue
    from cglsuite.reports.studies.anatomy import page as show
    from cglsuite.reports.studies.anatomy.compute import anatomies

    found = anatomies(load_catalogue(), name)
    views = {"shares": show.shares, "drift": show.drift, "homophily": show.homophily, "degrees": show.degrees}
    return {view: lambda draw=draw: draw(found) for view, draw in views.items()}
