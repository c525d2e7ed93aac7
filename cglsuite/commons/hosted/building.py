"""Builds a hosted leaderboard: reads every record once, writes a preset's files before the next one is read, then the other pages."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cglsuite.base.atomic import new_file, store_error, write_atomic
from cglsuite.base.errors import StoreError, UsageError
from cglsuite.base.inputs import read_regular
from cglsuite.campaigns.reference.values import PAPERS
from cglsuite.cells.storage.store import Store
from cglsuite.commons.hosted import feeds, pages
from cglsuite.commons.hosted.pages import method_page, methods_page, paper_page, papers_page
from cglsuite.commons.hosted.parts import Names, Site
from cglsuite.commons.hosted.standings import Gathered, Marked, Scenario, scenario_of
from cglsuite.host import Catalogue
from cglsuite.reports.site.index import written

__all__ = ["Built", "build_site"]

LISTING = "feeds/files.json"
"""The files of a site, so that the next build removes those that it does not write."""
_OURS = re.compile(r"(feeds/)?(boards/|records/)?[A-Za-z0-9][A-Za-z0-9._+@-]*\.(html|json|csv)")


@dataclass(frozen=True, kw_only=True)
class Built:
    """What was written: ``files`` relative to the site, how many records were shown by level, and by key why others are not."""

    index: Path
    files: tuple[str, ...]
    scenarios: int
    verified: int
    unverified: int
    removed: tuple[str, ...]
    faults: Mapping[str, str]


def build_site(
    store: Store, out: Path, catalogue: Catalogue, *, title: str = "Results", told: Callable[[str], None] = lambda text: None
) -> Built:
    """Write the site of a store's finished records.

    Args:
        store: a results folder, live or pulled; verification marks are read from it (:mod:`cglsuite.commons.submissions.staging`).
        out: the folder of the site. Files of an earlier build that are not written again are removed; other files stay.
        told: called with a line about what is being done.

    Raises:
        UsageError: the site would be in the store. StoreError: ``out`` cannot be written.
    """
    if out.absolute() == store.path or store.path in out.absolute().parents:
        raise UsageError(f"--out {out} is inside the store {store.path}; name another folder")
    footer, when = f"{title}; {written()}.", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    earlier, writer = _earlier(out), _Writer(out)
    scenarios: list[Scenario] = []
    files: dict[str, dict[str, str]] = {}
    told(f"reading the records of {store.path}")
    with Gathered(store, catalogue) as gathered:
        site = Site(title=title, names=Names(), footer=footer, catalogue=catalogue, own=gathered.unmarked)
        for number, preset in enumerate(gathered.presets, start=1):
            told(f"{number} of {len(gathered.presets)}: {preset}")
            records = list(gathered.of(preset))
            found = _scenario(preset, records, catalogue, store, gathered)
            if found is None:
                continue
            one, records = found
            stem = site.names.stem("scenario", preset)
            files[preset] = {"page": f"{stem}.html", "board": f"feeds/boards/{stem}.json", "records": f"feeds/records/{stem}.csv"}
            metrics = sorted({name for some in records for name in some.record.metrics})
            writer.write(files[preset]["page"], pages.scenario_page(site, one, files[preset]["records"]))
            writer.write(files[preset]["board"], feeds.board_json(one, when))
            writer.write_lines(files[preset]["records"], feeds.records_csv(records, metrics))
            one.parts = {level: part.without_records() for level, part in one.parts.items()}
            scenarios.append(one)
        _overviews(site, writer, scenarios, gathered)
    lines = (line for one in scenarios for line in feeds.boards_csv(one))
    writer.write_lines("feeds/boards.csv", _after(feeds.csv_line(feeds.BOARD_COLUMNS), lines))
    writer.write("feeds/index.json", feeds.index_json(title, when, scenarios, files))
    writer.write("feeds.html", pages.feeds_page(site, scenarios, files))
    writer.write(LISTING, json.dumps({"files": [*writer.files, LISTING]}, indent=1) + "\n")
    return Built(
        index=out / "index.html",
        files=tuple(writer.files),
        scenarios=len(scenarios),
        verified=sum(one.count("verified") for one in scenarios),
        unverified=sum(one.count("unverified") for one in scenarios),
        faults=gathered.faults,
        removed=tuple(_removed(out, earlier - set(writer.files))),
    )


def _scenario(
    preset: str, records: list[Marked], catalogue: Catalogue, store: Store, gathered: Gathered
) -> tuple[Scenario, list[Marked]] | None:
    """A preset with the records on its boards. If one that is not verified has something that no board can show, verified ones alone are
    shown; ``gathered.faults`` gets the others."""
    verified = [one for one in records if one.mark.verified]
    for some in (records, verified):
        try:
            if some:
                return scenario_of(preset, some, catalogue, store.path, own=gathered.unmarked), some
        except Exception as error:  # noqa: BLE001 - what strangers write into records must not take the site down
            lost = [one for one in records if some is verified or not one.mark.verified]
            gathered.faults.update((one.record.key, f"{preset}: {type(error).__name__}: {error}") for one in lost)
    return None


def _overviews(site: Site, writer: _Writer, scenarios: list[Scenario], gathered: Gathered) -> None:
    """The pages over all scenarios, of methods, data sets and papers."""
    by_method: dict[str, list[Scenario]] = {}
    by_dataset: dict[str, list[Scenario]] = {}
    for one in scenarios:
        by_dataset.setdefault(one.dataset, []).append(one)
        for name in one.methods:
            by_method.setdefault(name, []).append(one)
    writer.write("index.html", pages.index_page(site, scenarios, gathered))
    writer.write("across.html", pages.across_page(site, scenarios))
    writer.write("methods.html", methods_page(site, by_method))
    writer.write("datasets.html", pages.datasets_page(site, scenarios))
    writer.write("papers.html", papers_page(site, scenarios))
    for name, some in by_method.items():
        writer.write(site.names.page("method", name), method_page(site, name, some))
    for name, some in by_dataset.items():
        writer.write(site.names.page("dataset", name), pages.dataset_page(site, name, some))
    for paper in PAPERS:
        writer.write(site.names.page("paper", paper.name), paper_page(site, paper, scenarios))


class _Writer:
    """Writes the files of a site into ``out``, each in one rename."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.files: list[str] = []

    def write(self, name: str, text: str) -> None:
        write_atomic(self.out / name, text.encode(), durable=False, option="--out")
        self.files.append(name)

    def write_lines(self, name: str, lines: Iterable[str]) -> None:
        path = self.out / name
        try:
            with new_file(path, durable=False) as file:
                file.writelines(line.encode() for line in lines)
        except OSError as error:
            raise store_error(error, path, "--out") from error
        self.files.append(name)


def _after(head: str, lines: Iterable[str]) -> Iterable[str]:
    yield head
    yield from lines


def _earlier(out: Path) -> set[str]:
    """The files of the last build in this folder; nothing if its list cannot be read."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        names = json.loads(read_regular(out / LISTING))["files"]
        return {name for name in names if isinstance(name, str) and _OURS.fullmatch(name)}
    return set()


def _removed(out: Path, names: Iterable[str]) -> Iterable[str]:
    for name in sorted(names):
        with contextlib.suppress(FileNotFoundError):
            try:
                (out / name).unlink()
            except IsADirectoryError as error:
                raise StoreError(f"{out / name} is a folder; expected a file of an earlier build") from error
            yield name
