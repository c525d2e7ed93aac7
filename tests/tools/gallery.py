"""Render the gallery: every page whose records are in it, from these records alone.

    python tests/tools/gallery.py                    # all pages
    python tests/tools/gallery.py findings ledger    # some, by their names in gallery.toml
    python tests/tools/gallery.py --check            # what is out of date, and nothing else

``reports/gallery/gallery.toml`` says which page comes from what. The table in its README is written from it, and ``pages.json`` says what
each page was made from: the number of records and a digest of their keys and contents, and a digest of the page. A page is out of date if
these records have changed, or it was changed by hand. Nothing new is trained; the page about single nodes trains its synthetic cells once
more, since records hold no answers to single items, and reports of some campaigns read data sets too, from ``CGLSUITE_DATA``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cglsuite.host import Catalogue

__all__ = ["GALLERY", "Entry", "entries", "made_from", "outdated", "readme", "recorded"]

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "reports" / "gallery"
STORE = Path("reports") / "gallery" / "records"
"""Relative to the checkout, so that no page names a folder of this machine."""
NOT_KEPT = "its records were not kept"
_HEAD = "| page | made from | what it shows |"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of ``gallery.toml``.

    Args:
        name: on this command's line. shows: what a reader sees there. pages: by a report's file name, where it is kept below the gallery.
        campaigns: the first is rendered; the others are pooled into its reports. reproduce: words of ``cglsuite reproduce``; notebook: over
            the whole store. board: the leaderboard of the whole store, with its feeds. kept: whether its records are in the gallery.
            site: keep every page of the campaign, with its index.
    """

    name: str
    shows: str
    pages: Mapping[str, str]
    campaigns: Sequence[str] = ()
    reproduce: Sequence[str] | None = None
    notebook: str = ""
    board: bool = False
    kept: bool = True
    site: bool = False

    @property
    def source(self) -> str:
        """What the page is made from, as Markdown."""
        if self.campaigns:
            return ", ".join(f"[{name}](../{name})" for name in self.campaigns)
        if self.reproduce is not None:
            return f"`{' '.join(['cglsuite reproduce', *self.reproduce])}`"
        return "`cglsuite site`" if self.board else f"the notebook `{self.notebook}`"

    def files(self) -> list[Path]:
        """Its pages on disk: those that are named, and of a site all in its folder."""
        named = [GALLERY / place for place in self.pages.values()]
        return sorted({*named, *(page for path in named if self.site for page in path.parent.glob("*.html"))})


def entries() -> list[Entry]:
    """All entries, in the order of the file."""
    return [Entry(**one) for one in tomllib.loads((GALLERY / "gallery.toml").read_text(encoding="utf-8"))["page"]]


# --- the table -------------------------------------------------------------------------------------------------------------------


def readme(text: str) -> str:
    """The README with its table written anew."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| page | "))
    last = next(i for i in range(first, len(lines)) if not lines[i].startswith("|"))
    rows = [f"| {_links(one)} | {one.source} | {one.shows}{'' if one.kept else f' ({NOT_KEPT})'} |" for one in entries()]
    return "\n".join([*lines[:first], _HEAD, "| --- | --- | --- |", *rows, *lines[last:]]) + "\n"


def _links(one: Entry) -> str:
    return ", ".join(f"[{place}]({place})" for place in one.pages.values())


# --- what pages are made from ----------------------------------------------------------------------------------------------------


def recorded() -> dict[str, dict[str, object]]:
    """The content of ``pages.json``: by page its entry, its digest, and the number and digest of its records."""
    content: dict[str, dict[str, object]] = json.loads((GALLERY / "pages.json").read_text(encoding="utf-8"))
    return content


def made_from(one: Entry, catalogue: Catalogue) -> dict[str, object]:
    """The number of records that a page is made from, and a digest of their keys and contents."""
    from cglsuite.cells.storage.store import Store

    digests = dict(Store(GALLERY / "records").digests())
    keys = sorted(set(_keys(one, catalogue, digests)))
    total = hashlib.sha256("".join(f"{key} {digests[key]}\n" for key in keys).encode())
    return {"n": len(keys), "records": total.hexdigest()}


def _keys(one: Entry, catalogue: Catalogue, digests: Mapping[str, str]) -> Iterator[str]:
    from cglsuite.reports.results.results import load_campaign_results

    for name in one.campaigns:
        results = load_campaign_results(ROOT / "reports" / name, GALLERY / "records", catalogue=catalogue)
        yield from (cell.record.key for cell in results.cells if cell.record is not None)
    if one.notebook or one.board or one.reproduce == []:
        yield from digests
    elif one.reproduce:
        yield from _reproduced(one.reproduce, catalogue)


def _reproduced(words: Sequence[str], catalogue: Catalogue) -> Iterable[str]:
    """The records of a selection of published rows."""
    from cglsuite.reference.reproduction import Selection
    from cglsuite.reports.studies.ledger.compute import load_ledger

    given = dict(zip((word.removeprefix("--") for word in words[::2]), words[1::2], strict=True))
    repeats = int(given.pop("seeds")) if "seeds" in given else None
    ledger = load_ledger(Selection(**given, repeats=repeats), GALLERY / "records", catalogue=catalogue, besides=False)
    return [cell.record.key for results in ledger.results for cell in results.cells if cell.record is not None]


def outdated(one: Entry, catalogue: Catalogue) -> list[str]:
    """Why the pages of an entry are not what its records give; empty if they are up to date or its records were not kept."""
    if not one.kept:
        return []
    known, now, found = recorded(), made_from(one, catalogue), []
    for path in one.files():
        place = path.relative_to(GALLERY).as_posix()
        facts = known.get(place)
        if facts is None or not path.is_file():
            found.append(f"{place} was not rendered")
        elif {name: facts[name] for name in now} != now:
            found.append(f"{place} is of {facts['n']} records, and there are {now['n']}, or others")
        elif facts["sha256"] != _sha256(path):
            found.append(f"{place} is not the page that was rendered")
    return found


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- rendering -------------------------------------------------------------------------------------------------------------------


def _render(one: Entry, catalogue: Catalogue) -> bool:
    """Render an entry into a temporary folder, and keep its pages if all are complete."""
    with tempfile.TemporaryDirectory(prefix="cglsuite-gallery-") as folder:
        out = Path(folder)
        failed = _rendered(one, out, catalogue)
        if failed:
            print(f"{one.name}: {failed}", file=sys.stderr)
            return False
        places = dict(one.pages)
        home = Path(next(iter(one.pages.values()))).parent
        if one.board:  # the whole folder is the command's
            shutil.rmtree(GALLERY / home, ignore_errors=True)
            shutil.copytree(out, GALLERY / home)
            return True
        if one.site:
            places |= {page.name: (home / page.name).as_posix() for page in out.glob("*.html")}
        for name, place in places.items():
            (GALLERY / place).parent.mkdir(exist_ok=True)
            shutil.copyfile(out / name, GALLERY / place)
    return True


def _rendered(one: Entry, out: Path, catalogue: Catalogue) -> str:
    """Render into a folder; why not, if it failed."""
    from cglsuite.cli.main import run
    from cglsuite.reports.rendering.notebook import render_notebook
    from cglsuite.reports.site.render import render_campaign

    if one.campaigns:
        checkpoints = STORE / "checkpoints"
        there = checkpoints.exists()
        reports = render_campaign(Path("reports") / one.campaigns[0], store=STORE, out=out, catalogue=catalogue, workers=1)
        if not there:  # what trained once more left its state
            shutil.rmtree(checkpoints, ignore_errors=True)
        return "; ".join(report.reason for report in reports if not report.done)
    if one.notebook:
        page = out / next(iter(one.pages))
        report = render_notebook(one.notebook, {"store": str(STORE)}, page, catalogue=catalogue, title=one.name.capitalize())
        return report.reason
    words = ["reproduce", *(one.reproduce or []), "--plan-only", "--store", str(STORE)]
    if one.board:
        words = ["site", str(STORE), "--title", "Continual graph learning: the gallery's records"]
    status = run([*words, "--out", str(out)])
    return f"cglsuite {words[0]} ended with status {status}" if status else ""


def _note(one: Entry, catalogue: Catalogue) -> None:
    """Write into ``pages.json`` what the pages of an entry are made from now."""
    path = GALLERY / "pages.json"
    known = recorded() if path.is_file() else {}
    facts = made_from(one, catalogue)
    known |= {page.relative_to(GALLERY).as_posix(): {"entry": one.name, "sha256": _sha256(page), **facts} for page in one.files()}
    there = {page.relative_to(GALLERY).as_posix() for entry in entries() for page in entry.files() if entry.kept}
    kept = {place: known[place] for place in sorted(known) if place in there}
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    """Render what is asked for, and print what became of it."""
    from cglsuite.host import load_catalogue

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="names in gallery.toml; default: all")
    parser.add_argument("--check", action="store_true", help="print what is out of date, and render nothing")
    given = parser.parse_args()
    os.chdir(ROOT)
    known = {one.name: one for one in entries()}
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"{', '.join(unknown)}: not in gallery.toml, which has {', '.join(known)}")
    chosen = [known[name] for name in given.names] or [one for one in known.values() if one.kept]
    catalogue, failed = load_catalogue(), 0
    if given.check:
        found = [reason for one in chosen for reason in outdated(one, catalogue)]
        print("\n".join(found) or "every page is up to date")
        return int(bool(found))
    path = GALLERY / "README.md"
    path.write_text(readme(path.read_text(encoding="utf-8")), encoding="utf-8")
    for one in chosen:
        if not one.kept:
            print(f"{one.name}: {NOT_KEPT}")
        elif _render(one, catalogue):
            _note(one, catalogue)
            print(f"{one.name}: {', '.join(page.relative_to(GALLERY).as_posix() for page in one.files())}", flush=True)
        else:
            failed += 1
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
