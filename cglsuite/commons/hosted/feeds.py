"""Feeds: what the pages show as JSON and CSV, for programs. The documentation describes every field; a change raises :data:`FEED`.

``feeds/index.json`` lists the scenarios with the files of each: ``feeds/boards/NAME.json``, a board's rows with unrounded numbers, and
``feeds/records/NAME.csv``, a row per record. ``feeds/boards.csv`` has the rows of all boards, a line per metric.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cglsuite import __version__
from cglsuite.base.markup import csv_text
from cglsuite.commons.hosted.standings import LEVELS, Marked, Part, Scenario, Standing

__all__ = ["BOARD_COLUMNS", "FEED", "board_json", "boards_csv", "csv_line", "index_json", "records_csv"]

FEED = 1
"""The version of the feeds."""
BOARD_COLUMNS = (
    *("preset", "dataset", "setting", "level", "protocol", "verification", "rank", "method", "backbone", "variant", "category"),
    *("records", "rerun", "missing", "metric", "mean", "std", "n", "low", "high", "units"),
)
RECORD_COLUMNS = (
    *("key", "digest", "verification", "rerun", "not_verified", "preset", "method", "backbone", "order_seed", "split_seed", "init_seed"),
    *("total_s", "peak_bytes", "device", "threads", "cpu", "torch", "core_version", "core_source", "method_source", "data"),
)
"""Then a column per metric, by its name."""
_SCORE = ("mean", "std", "n", "low", "high", "units")


def csv_line(cells: Iterable[Any]) -> str:
    """A line of a CSV file: numbers exact, what is not a number empty, and no text that a spreadsheet takes for a formula."""
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
    """The index. ``files``: by preset, the paths of its ``page``, ``board`` and ``records`` relative to the site."""
    rows = [
        {
            **_scenario_json(one),
            "verified": one.count("verified"),
            "unverified": one.count("unverified"),
            "methods": {level: list(dict.fromkeys(s.row.method for s in part.standings)) for level, part in one.parts.items()},
            **files[one.preset],
        }
        for one in scenarios
    ]
    return _text({"feed": FEED, "title": title, "written": when, "cglsuite": __version__, "boards": "feeds/boards.csv", "scenarios": rows})


def board_json(one: Scenario, when: str) -> str:
    """The boards of one preset."""
    return _text(
        {"feed": FEED, "written": when, **_scenario_json(one), "boards": {level: _part_json(part) for level, part in one.parts.items()}}
    )


def _scenario_json(one: Scenario) -> dict[str, Any]:
    names = {"preset": one.preset, "title": one.title, "dataset": one.dataset, "setting": one.setting, "level": one.problem}
    return names | {"protocol": one.protocol, "paper": one.paper or None}


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
        "rows": [_row_json(one) for one in part.standings],
    }


def _row_json(one: Standing) -> dict[str, Any]:
    row = one.row
    verdict = (
        None if row.verdict is None else {"best": row.verdict.best, "significant": row.verdict.significant, "test": row.verdict.summary}
    )
    return {
        "rank": one.rank,
        "method": row.method,
        "backbone": row.group.backbone,
        "variant": row.group.variant,
        "category": row.category,
        "records": one.records,
        "rerun": one.rerun,
        "missing": one.missing,
        "not_verified": [{"reason": reason, "records": n} for reason, n in one.reasons],
        "verdict": verdict,
        "scores": {name: {part: _number(getattr(score, part)) for part in _SCORE} for name, score in row.scores.items()},
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def boards_csv(one: Scenario) -> Iterator[str]:
    """The lines of a preset in the table of all boards."""
    for level in LEVELS:
        for standing in one.parts[level].standings if level in one.parts else ():
            row = standing.row
            who = [one.preset, one.dataset, one.setting, one.problem, one.protocol, level, standing.rank, row.method]
            who += [row.group.backbone, row.group.variant, row.category, standing.records, standing.rerun, standing.missing]
            for name, score in row.scores.items():
                yield csv_line([*who, name, *(getattr(score, part) for part in _SCORE)])


def records_csv(records: Iterable[Marked], metrics: Sequence[str]) -> Iterator[str]:
    """The records of a preset, line by line."""
    yield csv_line([*RECORD_COLUMNS, *metrics])
    for one in records:
        record, mark = one.record, one.mark
        cell, seeds, core = record.cell, record.cell["seeds"], record.provenance["core"]
        method = next((part["source"] for part in record.provenance["plugins"] if part.get("role") == "method"), None)
        why = "; ".join(f"{name}: {reason}" if name else reason for name, reason in mark.reasons.items())
        values = [record.key, one.digest, mark.level, mark.rerun, why, cell["preset"], cell["method"], cell["backbone"]]
        values += [seeds["order"], seeds["split"], seeds["init"], record.timings_s.get("total"), record.memory.get("peak_bytes")]
        values += [cell["device"], cell["threads"], record.environment.get("cpu"), record.environment.get("torch")]
        values += [core["version"], core["source"], method, record.provenance.get("data")]
        yield csv_line([*values, *(record.metrics.get(name) for name in metrics)])


def _text(data: Any) -> str:
    return json.dumps(data, allow_nan=False, separators=(",", ":"), sort_keys=False) + "\n"
