"""Render the gallery from its records.

    python tests/tools/gallery.py                    # pages in git that are out of date, and all others into rendered/
    python tests/tools/gallery.py findings ledger    # some, by their names in gallery.toml
    python tests/tools/gallery.py --check            # which pages in git are out of date, and nothing else

``reports/gallery/gallery.toml`` says which page comes from what, and which are in git. The tables in its README are written from it, and
``pages.json`` says what each page in git was made from: the number of records and a digest of their keys and contents, and a digest of the
page. It is out of date if these records have changed, or it was changed by hand. The other pages go to ``reports/gallery/rendered``, which
git ignores. Nothing new is trained; the page about single nodes trains its synthetic cells once more, since records hold no answers to
single items. Pages that read data sets are skipped without ``CGLSUITE_DATA``.
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

__all__ = ["GALLERY", "RENDERED", "Entry", "entries", "made_from", "outdated", "readme", "recorded"]

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "reports" / "gallery"
STORE = Path("reports") / "gallery"
"""Relative to the checkout, so that no page names a folder of this machine: in it are the folders of records."""
RENDERED = GALLERY / "rendered"
"""Pages that are not in git."""
_KEPT = "| page | made from | what it shows |"
_OTHERS = "| name | pages | made from | what they show |"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of ``gallery.toml``.

    Args:
        name: on this command's line. shows: what a reader sees there. pages: by a report's file name, where it goes below its folder.
        kept: the file names of pages that are in git; data: of those that read data sets.
        campaigns: the first is rendered; the others are pooled into its reports. reproduce: words of ``cglsuite reproduce``; notebook: over
            the whole store. board: the leaderboard of the whole store, with its feeds. site: every page of the campaign, with its index.
        records: the folder of its records, below the gallery.
    """

    name: str
    shows: str
    pages: Mapping[str, str]
    kept: Sequence[str] = ()
    data: Sequence[str] = ()
    campaigns: Sequence[str] = ()
    reproduce: Sequence[str] | None = None
    notebook: str = ""
    board: bool = False
    site: bool = False
    records: str = "records"

    @property
    def source(self) -> str:
        """What the page is made from, as Markdown."""
        if self.campaigns:
            return ", ".join(f"[{Path(name).name}](../{name})" for name in self.campaigns)
        if self.reproduce is not None:
            return f"`{' '.join(['cglsuite reproduce', *self.reproduce])}`"
        return "`cglsuite site`" if self.board else f"the notebook `{self.notebook}`"

    @property
    def places(self) -> list[str]:
        """Its pages in git, below the gallery."""
        return [self.pages[name] for name in self.kept]

    @property
    def others(self) -> list[str]:
        """Its other pages, below ``rendered``; a site is its folder."""
        named = [Path(place) for name, place in self.pages.items() if name not in self.kept]
        return [place.as_posix() for place in named] if not self.site else [f"{named[0].parent}/"]


def entries() -> list[Entry]:
    """All entries, in the order of the file."""
    return [Entry(**one) for one in tomllib.loads((GALLERY / "gallery.toml").read_text(encoding="utf-8"))["page"]]


# --- the tables ------------------------------------------------------------------------------------------------------------------


def readme(text: str) -> str:
    """The README with its tables written anew: pages in git, and what else there is."""
    kept = [f"| [{place}]({place}) | {one.source} | {one.shows} |" for one in entries() for place in one.places]
    others = [
        f"| `{one.name}` | {', '.join(f'`{place}`' for place in one.others)} | {one.source} | {one.shows} |"
        for one in entries()
        if one.others
    ]
    return _with_table(_with_table(text, _KEPT, kept), _OTHERS, others)


def _with_table(text: str, head: str, rows: Sequence[str]) -> str:
    lines = text.splitlines()
    first = lines.index(head)
    last = next((i for i in range(first, len(lines)) if not lines[i].startswith("|")), len(lines))
    return "\n".join([*lines[: first + 2], *rows, *lines[last:]]) + "\n"


# --- what pages are made from ----------------------------------------------------------------------------------------------------


def recorded() -> dict[str, dict[str, object]]:
    """The content of ``pages.json``: by page its entry, its digest, and the number and digest of its records."""
    content: dict[str, dict[str, object]] = json.loads((GALLERY / "pages.json").read_text(encoding="utf-8"))
    return content


def made_from(one: Entry, catalogue: Catalogue) -> dict[str, object]:
    """The number of records that a page is made from, and a digest of their keys and contents."""
    from cglsuite.cells.storage.store import Store

    digests = dict(Store(GALLERY / one.records).digests())
    keys = sorted(set(_keys(one, catalogue, digests)))
    total = hashlib.sha256("".join(f"{key} {digests[key]}\n" for key in keys).encode())
    return {"n": len(keys), "records": total.hexdigest()}


def _keys(one: Entry, catalogue: Catalogue, digests: Mapping[str, str]) -> Iterator[str]:
    from cglsuite.reports.results.results import load_campaign_results

    for name in one.campaigns:
        results = load_campaign_results(ROOT / "reports" / name, GALLERY / one.records, catalogue=catalogue)
        yield from (cell.record.key for cell in results.cells if cell.record is not None)
    if one.notebook or one.board or one.reproduce == []:
        yield from digests
    elif one.reproduce:
        yield from _reproduced(one.reproduce, catalogue)


def _reproduced(words: Sequence[str], catalogue: Catalogue) -> Iterable[str]:
    """The records of a selection of published rows."""
    from cglsuite.campaigns.reference.reproduction import Selection
    from cglsuite.reports.studies.ledger.compute import load_ledger

    given = dict(zip((word.removeprefix("--") for word in words[::2]), words[1::2], strict=True))
    repeats = int(given.pop("seeds")) if "seeds" in given else None
    ledger = load_ledger(Selection(**given, repeats=repeats), GALLERY / "records", catalogue=catalogue, extras=False)
    return [cell.record.key for results in ledger.results for cell in results.cells if cell.record is not None]


def outdated(one: Entry, catalogue: Catalogue) -> list[str]:
    """Why the pages of an entry that are in git are not what its records give; empty if they are up to date."""
    if not one.kept:
        return []
    known, now, found = recorded(), made_from(one, catalogue), []
    for place in one.places:
        path, facts = GALLERY / place, known.get(place)
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


def _render(one: Entry, catalogue: Catalogue, *, renew: bool) -> bool:
    """Render an entry into a temporary folder, and put its pages where they belong if all are complete; print what became of it.

    Args:
        renew: write its pages in git, too.
    """
    skipped = [] if os.environ.get("CGLSUITE_DATA") else list(one.data)
    wanted = {name: place for name, place in one.pages.items() if renew or name not in one.kept}
    if away := [place for name, place in wanted.items() if name in skipped]:
        print(f"{one.name}: {', '.join(away)} skipped, since CGLSUITE_DATA is not set", flush=True)
    pages = {name: place for name, place in wanted.items() if name not in skipped}
    if not pages:
        return True
    with tempfile.TemporaryDirectory(prefix="cglsuite-gallery-") as folder:
        out = Path(folder)
        failed = _rendered(one, out, catalogue, skipped)
        if failed:
            print(f"{one.name}: {failed}", file=sys.stderr)
            return False
        home = RENDERED / Path(next(iter(pages.values()))).parent
        if one.board or one.site:
            shutil.rmtree(home, ignore_errors=True)
            shutil.copytree(out, home, ignore=shutil.ignore_patterns(".rendering", "*.status.json"))
        for name, place in pages.items():
            target = (GALLERY if name in one.kept else RENDERED) / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(out / name, target)
    _note(one, [place for name, place in pages.items() if name in one.kept], catalogue)
    print(f"{one.name}: {', '.join(pages.values())}", flush=True)
    return True


def _rendered(one: Entry, out: Path, catalogue: Catalogue, skipped: Sequence[str]) -> str:
    """Render into a folder; why not, if a page failed that is not to be skipped."""
    from cglsuite.cli.main import run
    from cglsuite.reports.rendering.notebook import render_notebook
    from cglsuite.reports.site.index import render_campaign

    store = STORE / one.records
    if one.campaigns:
        checkpoints = store / "checkpoints"
        there = checkpoints.exists()
        reports = render_campaign(Path("reports") / one.campaigns[0], store=store, out=out, catalogue=catalogue, workers=1)
        if not there:  # what trained once more left its state
            shutil.rmtree(checkpoints, ignore_errors=True)
        return "; ".join(report.reason for report in reports if not report.done and report.path.name not in skipped)
    if one.notebook:
        page = out / next(iter(one.pages))
        report = render_notebook(one.notebook, {"store": str(store)}, page, catalogue=catalogue, title=one.name.capitalize())
        return report.reason
    words = ["reproduce", *(one.reproduce or []), "--plan-only", "--store", str(store)]
    if one.board:
        words = ["site", str(store), "--title", "Continual graph learning: the gallery's records"]
    status = run([*words, "--out", str(out)])
    return f"cglsuite {words[0]} ended with status {status}" if status else ""


def _note(one: Entry, renewed: Sequence[str], catalogue: Catalogue) -> None:
    """Write into ``pages.json`` what pages in git are made from now."""
    known = recorded()
    if renewed:
        facts = made_from(one, catalogue)
        known |= {place: {"entry": one.name, "sha256": _sha256(GALLERY / place), **facts} for place in renewed}
    there = {place for entry in entries() for place in entry.places}
    kept = {place: known[place] for place in sorted(known) if place in there}
    (GALLERY / "pages.json").write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    """Render what is asked for, and print what became of it."""
    from cglsuite.host import load_catalogue

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="names in gallery.toml; default: all that is out of date or not in git")
    parser.add_argument("--check", action="store_true", help="print which pages in git are out of date, and render nothing")
    given = parser.parse_args()
    os.chdir(ROOT)
    known = {one.name: one for one in entries()}
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"{', '.join(unknown)}: not in gallery.toml, which has {', '.join(known)}")
    chosen = [known[name] for name in given.names] or list(known.values())
    catalogue = load_catalogue()
    if given.check:
        found = [reason for one in chosen for reason in outdated(one, catalogue)]
        print("\n".join(found) or "every page in git is up to date")
        return int(bool(found))
    path = GALLERY / "README.md"
    path.write_text(readme(path.read_text(encoding="utf-8")), encoding="utf-8")
    renewed = {one.name: bool(one.kept) and (bool(given.names) or bool(outdated(one, catalogue))) for one in chosen}
    done = [_render(one, catalogue, renew=renewed[one.name]) for one in chosen]
    return int(not all(done))


if __name__ == "__main__":
    sys.exit(main())
