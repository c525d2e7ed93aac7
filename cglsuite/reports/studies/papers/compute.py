"""The ledgers of all papers as one: by table what is printed, reached, run and agrees; cells and hours; misses with their mechanisms."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from cglsuite import stats
from cglsuite.base.atomic import write_atomic
from cglsuite.campaigns.overrides import Overrides
from cglsuite.campaigns.reference.reproduction import Selection, selections_of
from cglsuite.campaigns.reference.values import ARTEFACT, LEAST_RUNS
from cglsuite.cells.engine import Engine, load_engine
from cglsuite.cells.records.frame import render_frame
from cglsuite.cells.storage.store import Store
from cglsuite.reports.studies.ledger.compute import COLUMNS, LEDGER, Ledger, load_ledger
from cglsuite.reports.studies.ledger.judging import JUDGED, RULE, VERDICTS
from cglsuite.reports.studies.papers.disagreements import Crossing, crossings
from cglsuite.reports.studies.papers.mechanisms import checked, explained

if TYPE_CHECKING:
    from cglsuite.cells.plan import CellRequest
    from cglsuite.cells.records.record import Record
    from cglsuite.host import Catalogue
    from cglsuite.reports.results.results import ReportedCell

__all__ = ["DIFFERENT", "SUMMARY", "Papers", "load_papers", "misses", "plain_reason", "share", "write_papers"]

DIFFERENT = ("different, with a mechanism", "different, without")
SUMMARY = ["paper", "table", "printed", "reachable", "run", "equivalent", *DIFFERENT]
SUMMARY += ["undecided", "no verdict", "artefact", "failed", "n = 1"]
"""Columns of :attr:`Papers.summary`; ``no verdict``: one or two repetitions, ``n = 1``: one, whatever else the row is."""
_CELLS = ["paper", "dataset", "planned", "done", "missing", "absent", "hours", "expected_hours", "untimed"]


@dataclass(frozen=True, kw_only=True)
class Papers:
    """The ledgers of a selection of several papers.

    Args:
        ledgers: one per paper. checks: per paper what :func:`cglsuite.reports.studies.papers.mechanisms.checked` returns.
        crossings: values that two papers print differently.
    """

    selection: Selection
    ledgers: tuple[Ledger, ...]
    checks: Mapping[str, pd.DataFrame]
    crossings: tuple[Crossing, ...]
    store: Path

    @property
    def title(self) -> str:
        """The selection, as a title."""
        return f"Reproduction of {self.selection.title}"

    @cached_property
    def rows(self) -> pd.DataFrame:
        """All rows of the ledgers, with the columns of a ledger and ``mechanism``: the names of those that explain a difference."""
        frames = []
        for ledger in self.ledgers:
            checks = self.checks[ledger.reproduction.paper.name]
            good = explained(ledger, checks)
            names = {row: "; ".join(dict.fromkeys(part["mechanism"])) for row, part in checks.groupby("row") if row in good}
            frames.append(ledger.rows.assign(mechanism=[names.get(place, "") for place in ledger.rows.index]))
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=[*COLUMNS, "mechanism"])

    @cached_property
    def summary(self) -> pd.DataFrame:
        """A row per paper and table, with the columns :data:`SUMMARY`: counts of printed values."""
        parts: Any = self.rows.groupby(["paper", "table"], sort=False)
        return pd.DataFrame([_counted(part) | {"paper": paper, "table": table} for (paper, table), part in parts], columns=SUMMARY)

    @cached_property
    def totals(self) -> dict[str, int]:
        """The summary's counts over all tables."""
        return {name: int(self.summary[name].sum()) for name in SUMMARY[2:]}

    @cached_property
    def offsets(self) -> pd.DataFrame:
        """By table and metric: see :func:`cglsuite.reports.studies.ledger.judging.offsets`."""
        frames = [ledger.offsets for ledger in self.ledgers if len(ledger.offsets)]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    @cached_property
    def cells(self) -> pd.DataFrame:
        """By paper and data set: cells planned, done and missing, hours of the records, and hours that the missing ones will take.

        Returns:
            Columns paper, dataset (by its name here), planned, done, missing, absent (their data are not here), hours, expected_hours (of
            the missing cells whose preset and method have a record), untimed (missing cells without such a record).
        """
        means = _mean_seconds(record for ledger in self.ledgers for results in ledger.results for record in results.used)
        rows = []
        for ledger in self.ledgers:
            by_dataset: dict[str, dict[str, ReportedCell]] = defaultdict(dict)
            for cell in (cell for results in ledger.results for cell in results.cells):
                if cell.planned.cell is not None:
                    planned, known = _on_any_device(cell.planned.request), by_dataset[cell.planned.cell.scenario.dataset]
                    if planned not in known or not known[planned].done:
                        known[planned] = cell
            paper = ledger.reproduction.paper.name
            rows += [{"paper": paper, "dataset": name} | _hours(cells.values(), means, ledger.absent) for name, cells in by_dataset.items()]
        return pd.DataFrame(rows, columns=_CELLS)

    @cached_property
    def records(self) -> list[str]:
        """The keys of all records behind the rows and the checks, sorted."""
        keys = {key for text in self.rows["records"] for key in text.split()}
        keys |= {key for checks in self.checks.values() for text in checks["records"] for key in text.split()}
        return sorted(keys | {key for one in self.crossings for text in one.ours["keys"] for key in text.split()})


def load_papers(
    selection: Selection | Mapping[str, Any] | None = None,
    store: Store | str | Path | None = None,
    *,
    overrides: Overrides | Mapping[str, Any] | None = None,
    catalogue: Catalogue | None = None,
    engine: Engine | None = None,
    mechanisms: pd.DataFrame | None = None,
) -> Papers:
    """The ledgers of all papers that have rows of a selection, from the records in a store; nothing is run.

    Args:
        selection: data set, setting, method and repetitions as for :func:`cglsuite.reports.studies.ledger.compute.load_ledger`; a paper
            named in it is the only one. mechanisms: default :func:`cglsuite.campaigns.reference.mechanisms`.

    Raises:
        UnknownNameError, NotApplicable, UsageError: see :func:`cglsuite.campaigns.reference.reproduction.selections_of` and
            ``load_ledger``.
    """
    engine = engine or load_engine()
    catalogue = catalogue or engine.load_catalogue()
    store = store if isinstance(store, Store) else Store(store)
    asked = selection if isinstance(selection, Selection) else Selection(**(selection or {}))
    how: dict[str, Any] = {"catalogue": catalogue, "engine": engine}
    ledgers = tuple(load_ledger(one, store, overrides=overrides, besides=False, **how) for one in selections_of(asked))
    checks = {ledger.reproduction.paper.name: checked(ledger, store, table=mechanisms, **how) for ledger in ledgers}
    whole = not (asked.paper or asked.dataset or asked.setting or asked.method)
    found = tuple(crossings(store, **how)) if whole else ()
    return Papers(selection=asked, ledgers=ledgers, checks=checks, crossings=found, store=store.path)


def plain_reason(reason: str) -> str:
    """Why something cannot be run, without where this machine keeps its data.

    Example:
        >>> plain_reason("the data file a/b.npz is absent; put it below /data")
        'the data file a/b.npz is absent'
    """
    return reason.partition("; ")[0] if " is absent; " in reason else reason


def _counted(part: pd.DataFrame) -> dict[str, int]:
    verdict, explained_rows = part["verdict"], part["mechanism"] != ""
    different = verdict == "different"
    counts = {
        "printed": len(part),
        "reachable": (verdict != "not runnable here").sum(),
        "run": verdict.isin(JUDGED).sum(),
        "equivalent": (verdict == "equivalent").sum(),
        DIFFERENT[0]: (different & explained_rows).sum(),
        DIFFERENT[1]: (different & ~explained_rows).sum(),
        "undecided": (verdict == "undecided").sum(),
        "no verdict": (verdict == "no verdict").sum(),
        "artefact": (verdict == ARTEFACT).sum(),
        "failed": (verdict == "failed").sum(),
        "n = 1": part["our_n"].eq(1).sum(),
    }
    return {name: int(n) for name, n in counts.items()}


def _on_any_device(request: CellRequest) -> str:
    """What a cell's requests for two kinds of device have in common."""
    return json.dumps(request.to_json() | {"device": ""}, sort_keys=True)


def _mean_seconds(records: Iterable[Record]) -> dict[tuple[str, str], float]:
    """By preset and method, how long a cell took."""
    times: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for record in records:
        if (seconds := record.timings_s.get("total")) is not None:
            times[record.cell["scenario"], record.cell["method"]][record.key] = float(seconds)
    return {place: math.fsum(known.values()) / len(known) for place, known in times.items()}


def _hours(cells: Iterable[ReportedCell], means: Mapping[tuple[str, str], float], absent: Mapping[str, str]) -> dict[str, Any]:
    shown = list(cells)
    done = [cell for cell in shown if cell.done]
    away = [c for c in shown if not c.done and c.planned.cell is not None and c.planned.cell.scenario.dataset in absent]
    missing = [cell for cell in shown if not cell.done and cell not in away]
    known = [means.get((cell.planned.request.scenario, cell.planned.request.method)) for cell in missing]
    timed = [seconds for seconds in known if seconds is not None]
    hours = math.fsum(float(cell.record.timings_s.get("total") or 0.0) for cell in done if cell.record is not None) / 3600
    counts = {"planned": len(shown), "done": len(done), "missing": len(missing), "absent": len(away), "untimed": len(missing) - len(timed)}
    return counts | {"hours": hours, "expected_hours": math.fsum(timed) / 3600}


# --- files -----------------------------------------------------------------------------------------------------------------------


def write_papers(papers: Papers, folder: Path) -> list[Path]:
    """``ledger.csv`` (all rows) and ``ledger.json`` (rules, counts, checks) in a folder, atomically; their paths.

    Raises:
        StoreError: the disk is full or the folder cannot be written.
    """
    described = {
        "ledger": LEDGER,
        "papers": [ledger.reproduction.paper.name for ledger in papers.ledgers],
        "rule": RULE,
        "least_repetitions": LEAST_RUNS,
        "totals": papers.totals,
        "share_equivalent": share(papers.totals),
        "tables": _plain(papers.summary),
        "cells": _plain(papers.cells),
        "offsets": _plain(papers.offsets),
        "mechanisms": {name: _plain(checks) for name, checks in papers.checks.items()},
        "disagreements": [_crossing(one) for one in papers.crossings],
        "verdicts": {verdict: int((papers.rows["verdict"] == verdict).sum()) for verdict in VERDICTS},
    }
    text = json.dumps(described, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n"
    paths = [folder / "ledger.csv", folder / "ledger.json"]
    for path, content in zip(paths, (render_frame(papers.rows, "csv"), text.encode()), strict=True):
        write_atomic(path, content)
    return paths


def share(counts: Mapping[str, int]) -> float | None:
    """Of the rows with a test, the share that is equivalent; ``None`` where there is none."""
    tested = sum(counts[name] for name in ("equivalent", *DIFFERENT, "undecided"))
    return counts["equivalent"] / tested if tested else None


def _crossing(one: Crossing) -> dict[str, Any]:
    frames = {"printed": one.printed, "ours": one.ours, "effects": one.effects, "protocols": one.protocols}
    return {"question": dict(one.question)} | {name: _plain(frame) for name, frame in frames.items()}


def _plain(frame: pd.DataFrame) -> Any:
    """The rows of a frame in JSON types."""
    return json.loads(render_frame(frame, "json")) if len(frame.columns) else []


def misses(papers: Papers, verdicts: Sequence[str] = stats.AGREEMENTS[1:2]) -> pd.DataFrame:
    """The rows of some verdicts, largest differences in points first; default those that are different."""
    rows = papers.rows[papers.rows["verdict"].isin(verdicts)]
    return rows.sort_values("points", key=lambda points: -points.abs(), kind="stable")
