"""Build a hosted leaderboard. Every record is read once, and each preset's files are written before the next preset is read.

Feeds provide the content of the pages as JSON and CSV for programs. The documentation describes every field; any change to a field
increments :data:`FEED`. ``feeds/index.json`` lists the scenarios and the files of each: ``feeds/boards/NAME.json`` has the rows of its
boards with unrounded numbers, and ``feeds/records/NAME.csv`` has one row per record. ``feeds/boards.csv`` has the rows of all boards, with
one line per metric.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cglsuite import __version__
from cglsuite.base.atomic import new_file, store_error, write_atomic
from cglsuite.base.errors import StoreError, UsageError
from cglsuite.base.inputs import read_regular
from cglsuite.base.markup import csv_text
from cglsuite.campaigns.reference.values import PAPERS
from cglsuite.cells.storage.store import Store
from cglsuite.commons.hosted import pages
from cglsuite.commons.hosted.pages import Names, Site, method_page, methods_page, paper_page, papers_page
from cglsuite.commons.hosted.standings import LEVELS, Marked, Part, RecordsByPreset, Scenario, Standing, scenario_of
from cglsuite.host import Catalogue
from cglsuite.reports.site.index import written

LISTING = "feeds/files.json"
"""The file that lists a site's files, so that the next build can remove those that it no longer writes."""
_OURS = re.compile(r"(feeds/)?(boards/|records/)?[A-Za-z0-9][A-Za-z0-9._+@-]*\.(html|json|csv)")


@dataclass(frozen=True, kw_only=True)
class BuildResult:
    """The outcome of a build: the ``files`` relative to the site, the number of records shown per level, and, by key, why the others are
    not shown.
    """

    index: Path
    files: tuple[str, ...]
    scenarios: int
    verified: int
    unverified: int
    removed: tuple[str, ...]
    faults: Mapping[str, str]


def build_site(
    store: Store, out: Path, catalogue: Catalogue, *, title: str = "Results", notify: Callable[[str], None] = lambda text: None
) -> BuildResult:
    """Build a site from the finished records of a store.

    Args:
        store: a results folder, live or pulled; verification marks are read from it (:mod:`cglsuite.commons.submissions.staging`).
        out: the folder of the site. Files of an earlier build that this build does not write are removed; other files stay.
        notify: called with a one-line progress message.

    Raises:
        UsageError: ``out`` is inside the store. StoreError: ``out`` cannot be written.
    """
    if out.absolute() == store.path or store.path in out.absolute().parents:
        raise UsageError(f"--out {out} is inside the store {store.path}; name another folder")
    footer, when = f"{title}; {written()}.", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    earlier, writer = _previous_files(out), _Writer(out)
    scenarios: list[Scenario] = []
    files: dict[str, dict[str, str]] = {}
    notify(f"reading the records of {store.path}")
    with RecordsByPreset(store, catalogue) as gathered:
        site = Site(title=title, names=Names(), footer=footer, catalogue=catalogue, own=gathered.unmarked)
        for number, preset in enumerate(gathered.presets, start=1):
            notify(f"{number} of {len(gathered.presets)}: {preset}")
            records = list(gathered.of(preset))
            built = _scenario(preset, records, catalogue, store, gathered)
            if built is None:
                continue
            scenario, records = built
            stem = site.names.stem("scenario", preset)
            files[preset] = {"page": f"{stem}.html", "board": f"feeds/boards/{stem}.json", "records": f"feeds/records/{stem}.csv"}
            metrics = sorted({name for some in records for name in some.record.metrics})
            writer.write(files[preset]["page"], pages.scenario_page(site, scenario, files[preset]["records"]))
            writer.write(files[preset]["board"], board_json(scenario, when))
            writer.write_lines(files[preset]["records"], records_csv(records, metrics))
            scenario.parts = {level: part.without_records() for level, part in scenario.parts.items()}
            scenarios.append(scenario)
        _overviews(site, writer, scenarios, gathered)
    lines = (line for scenario in scenarios for line in boards_csv(scenario))
    writer.write_lines("feeds/boards.csv", _with_heading(csv_line(BOARD_COLUMNS), lines))
    writer.write("feeds/index.json", index_json(title, when, scenarios, files))
    writer.write("feeds.html", pages.feeds_page(site, scenarios, files))
    writer.write(LISTING, json.dumps({"files": [*writer.files, LISTING]}, indent=1) + "\n")
    return BuildResult(
        index=out / "index.html",
        files=tuple(writer.files),
        scenarios=len(scenarios),
        verified=sum(scenario.count("verified") for scenario in scenarios),
        unverified=sum(scenario.count("unverified") for scenario in scenarios),
        faults=gathered.faults,
        removed=tuple(_remove_files(out, earlier - set(writer.files))),
    )


def _scenario(
    preset: str, records: list[Marked], catalogue: Catalogue, store: Store, gathered: RecordsByPreset
) -> tuple[Scenario, list[Marked]] | None:
    """Return a preset with its boards. If an unverified record cannot be shown, none is, and ``gathered.faults`` lists them."""
    verified = [record for record in records if record.mark.verified]
    for some in (records, verified):
        try:
            if some:
                return scenario_of(preset, some, catalogue, store.path, is_board_store=gathered.unmarked), some
        except Exception as error:  # noqa: BLE001 - what strangers write into records must not take the site down
            lost = [record for record in records if some is verified or not record.mark.verified]
            gathered.faults.update((record.record.key, f"{preset}: {type(error).__name__}: {error}") for record in lost)
    return None


def _overviews(site: Site, writer: _Writer, scenarios: list[Scenario], gathered: RecordsByPreset) -> None:
    """Write the overview pages of all scenarios, methods, data sets and papers."""
    by_method: dict[str, list[Scenario]] = {}
    by_dataset: dict[str, list[Scenario]] = {}
    for scenario in scenarios:
        by_dataset.setdefault(scenario.dataset, []).append(scenario)
        for name in scenario.methods:
            by_method.setdefault(name, []).append(scenario)
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
    """Writes the files of a site into ``out``, each atomically."""

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


def _with_heading(head: str, lines: Iterable[str]) -> Iterable[str]:
    yield head
    yield from lines


def _previous_files(out: Path) -> set[str]:
    """Return the files of the last build in this folder, or an empty set if its list cannot be read."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        names = json.loads(read_regular(out / LISTING))["files"]
        return {name for name in names if isinstance(name, str) and _OURS.fullmatch(name)}
    return set()


def _remove_files(out: Path, names: Iterable[str]) -> Iterable[str]:
    for name in sorted(names):
        with contextlib.suppress(FileNotFoundError):
            try:
                (out / name).unlink()
            except IsADirectoryError as error:
                raise StoreError(f"{out / name} is a folder, but the build needs to write a file with this name") from error
            yield name


FEED = 1
"""The format version of the feeds."""
BOARD_COLUMNS = (
    *("preset", "dataset", "setting", "level", "protocol", "verification", "rank", "method", "backbone", "variant", "category"),
    *("records", "rerun", "missing", "metric", "mean", "std", "n", "low", "high", "units"),
)
RECORD_COLUMNS = (
    *("key", "digest", "verification", "rerun", "not_verified", "preset", "method", "backbone", "order_seed", "split_seed", "init_seed"),
    *("total_s", "peak_bytes", "device", "threads", "cpu", "torch", "core_version", "core_source", "method_source", "data"),
)
"""The first columns of a table of records. One column per metric follows."""
_SCORE = ("mean", "std", "n", "low", "high", "units")


def csv_line(cells: Iterable[Any]) -> str:
    """Format a CSV line. Numbers are exact, NaN and infinity are empty cells, and no text can run as a formula in a spreadsheet."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow([_cell(cell) for cell in cells])
    return buffer.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value) if math.isfinite(value) else ""
    return csv_text(value)


def index_json(title: str, when: str, scenarios: Sequence[Scenario], files: Mapping[str, Mapping[str, str]]) -> str:
    """Return the index of a site's feeds. ``files`` maps a preset to the paths of its ``page``, ``board`` and ``records`` in the site."""
    rows = [
        {
            **_scenario_json(scenario),
            "verified": scenario.count("verified"),
            "unverified": scenario.count("unverified"),
            "methods": {level: list(dict.fromkeys(s.row.method for s in part.standings)) for level, part in scenario.parts.items()},
            **files[scenario.preset],
        }
        for scenario in scenarios
    ]
    return _text({"feed": FEED, "title": title, "written": when, "cglsuite": __version__, "boards": "feeds/boards.csv", "scenarios": rows})


def board_json(scenario: Scenario, when: str) -> str:
    """Return the boards of one preset as JSON."""
    return _text(
        {
            "feed": FEED,
            "written": when,
            **_scenario_json(scenario),
            "boards": {level: _part_json(part) for level, part in scenario.parts.items()},
        }
    )


def _scenario_json(scenario: Scenario) -> dict[str, Any]:
    names = {
        "preset": scenario.preset,
        "title": scenario.title,
        "dataset": scenario.dataset,
        "setting": scenario.setting,
        "level": scenario.problem,
    }
    return names | {"protocol": scenario.protocol, "paper": scenario.paper or None}


def _part_json(part: Part) -> dict[str, Any]:
    board = part.board
    columns = [
        {"name": c.name, "label": c.label, "formula": c.formula, "better": c.better or None, "metric": c.metric} for c in board.columns
    ]
    return {
        "performance": board.performance,
        "design": board.design or None,
        "left_out": part.left_out,
        "columns": columns,
        "rows": [_row_json(standing) for standing in part.standings],
    }


def _row_json(standing: Standing) -> dict[str, Any]:
    row = standing.row
    verdict = (
        None if row.verdict is None else {"best": row.verdict.best, "significant": row.verdict.significant, "test": row.verdict.summary}
    )
    return {
        "rank": standing.rank,
        "method": row.method,
        "backbone": row.group.backbone,
        "variant": row.group.variant,
        "category": row.category,
        "records": standing.records,
        "rerun": standing.rerun,
        "missing": standing.missing,
        "not_verified": [{"reason": reason, "records": n} for reason, n in standing.reasons],
        "verdict": verdict,
        "scores": {name: {part: _number(getattr(score, part)) for part in _SCORE} for name, score in row.scores.items()},
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def boards_csv(scenario: Scenario) -> Iterator[str]:
    """Yield the lines of a preset for the CSV table of all boards."""
    for level in LEVELS:
        for standing in scenario.parts[level].standings if level in scenario.parts else ():
            row = standing.row
            who = [
                scenario.preset,
                scenario.dataset,
                scenario.setting,
                scenario.problem,
                scenario.protocol,
                level,
                standing.rank,
                row.method,
            ]
            who += [row.group.backbone, row.group.variant, row.category, standing.records, standing.rerun, standing.missing]
            for name, score in row.scores.items():
                yield csv_line([*who, name, *(getattr(score, part) for part in _SCORE)])


def records_csv(records: Iterable[Marked], metrics: Sequence[str]) -> Iterator[str]:
    """Yield the records of a preset as CSV lines."""
    yield csv_line([*RECORD_COLUMNS, *metrics])
    for marked in records:
        record, mark = marked.record, marked.mark
        cell, seeds, core = record.cell, record.cell["seeds"], record.provenance["core"]
        method = next((part["source"] for part in record.provenance["plugins"] if part.get("role") == "method"), None)
        why = "; ".join(f"{name}: {reason}" if name else reason for name, reason in mark.reasons.items())
        values = [record.key, marked.digest, mark.level, mark.rerun, why, cell["preset"], cell["method"], cell["backbone"]]
        values += [seeds["order"], seeds["split"], seeds["init"], record.timings_s.get("total"), record.memory.get("peak_bytes")]
        values += [cell["device"], cell["threads"], record.environment.get("cpu"), record.environment.get("torch")]
        values += [core["version"], core["source"], method, record.provenance.get("data")]
        yield csv_line([*values, *(record.metrics.get(name) for name in metrics)])


def _text(data: Any) -> str:
    return json.dumps(data, allow_nan=False, separators=(",", ":"), sort_keys=False) + "\n"
