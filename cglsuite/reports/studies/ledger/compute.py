"""The reproduction ledger: every published row, the records that reproduce it, and a computed verdict.

A verdict compares two means: ours is ``equivalent`` to the published one where two one-sided tests put the difference within the metric's
margin, ``different`` where Welch's test finds a difference (adjusted over the rows of a table), and ``undecided`` otherwise (see
:mod:`cglsuite.stats.equivalence`). With fewer than three repetitions of ours there is ``no verdict``. A row whose value is known to deviate
from the protocol is a ``published artefact``, however close ours is. Rows without two means give a reason: ``not runnable here`` rows lack
something, the cells of ``failed`` rows were run without a result, and the others were ``not run``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from cglsuite.base.atomic import write_atomic
from cglsuite.campaigns.overrides import Overrides
from cglsuite.campaigns.reference.reproduction import (
    Entry,
    Reproduction,
    Selection,
    absences,
    lacking,
    reproduction_of,
    run_missing,
    without_configuration,
)
from cglsuite.campaigns.reference.values import MARGINS, UNITS, printed_deviation, remarks, shown_value, unit_note
from cglsuite.cells.engine import Engine, load_engine
from cglsuite.cells.records.frame import render_frame
from cglsuite.cells.storage.store import Store
from cglsuite.reports.results.results import CampaignResults, load_results_by_device
from cglsuite.reports.studies.ledger.judging import RULE, TESTED, VERDICTS, adjusted, judged, offsets
from cglsuite.reports.studies.ledger.ours import Ours, Value, repetition, side_of, without_result
from cglsuite.reports.studies.ledger.ratios import RATIO_RULE, own_times, ratios
from cglsuite.reports.studies.ledger.statistics import STATISTICS, load_statistics
from cglsuite.reports.studies.ledger.trials import Tuning
from cglsuite.reports.studies.ledger.tuned import choices

if TYPE_CHECKING:
    from cglsuite.campaigns.reference.matching import Recipe
    from cglsuite.host import Catalogue
    from cglsuite.reports.results.results import ReportedCell

__all__ = ["LEDGER", "Ledger", "besides", "load_ledger", "write_ledger"]

LEDGER = 3
"""Version of the ledger's files."""


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """A ledger and what it was made from.

    Args:
        rows: one per published row: see :func:`load_ledger`. values: our repetitions of the compared rows: columns row (its place in
            ``rows``), unit (the repetition's seeds), value (in the printed unit).
        ratios: one row per published running time: see :func:`cglsuite.reports.studies.ledger.ratios.ratios`. times: of our methods, see
            :func:`cglsuite.reports.studies.ledger.ratios.own_times`. statistics: of the data sets, see
            :func:`cglsuite.reports.studies.ledger.statistics.load_statistics`. searches: in the store, that chose the values of a row.
        results: of every campaign that serves a row, once per kind of device that one is taken from. absent: by data set, why its files
            cannot be had here. sides: where a row's value is taken from, by its place in ``rows``.
    """

    reproduction: Reproduction
    rows: pd.DataFrame
    values: pd.DataFrame
    ratios: pd.DataFrame
    times: pd.DataFrame
    statistics: pd.DataFrame
    searches: tuple[Mapping[str, Any], ...]
    results: tuple[CampaignResults, ...]
    store: Path
    absent: Mapping[str, str] = field(default_factory=dict)
    sides: Mapping[int, Ours] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The selection, as a title."""
        return f"Reproduction of {self.reproduction.selection.title}"

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of rows per verdict, in the order of :data:`VERDICTS`."""
        counts = Counter(self.rows["verdict"])
        return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}

    @cached_property
    def offsets(self) -> pd.DataFrame:
        """Whether tables are off as a whole: see :func:`cglsuite.reports.studies.ledger.judging.offsets`."""
        return offsets(self.rows, self.values)


_PUBLISHED = ["paper", "table", "problem", "dataset", "setting", "variant", "backbone", "method", "metric", "unit"]
_PUBLISHED += ["printed", "shown", "published_mean", "published_std", "published_n"]
_OURS = ["preset", "method_here", "backbone_here", "metric_here", "overrides", "our_mean", "our_std", "our_n", "planned_n", "our_trials"]
_VERDICT = ["difference", "points", "low", "high", "df", "margin", "smallest_margin", "p_equivalent", "p_different", "p_holm", "verdict"]
_VERDICT += ["comparable", "reason", "lacking", "remark", "unit_note", "stale", "records"]
COLUMNS = [*_PUBLISHED, *_OURS, *_VERDICT]


def load_ledger(
    selection: Selection | Mapping[str, Any],
    store: Store | str | Path | None = None,
    *,
    overrides: Overrides | Mapping[str, Any] | None = None,
    catalogue: Catalogue | None = None,
    engine: Engine | None = None,
    train_missing: bool = False,
    besides: bool = True,
) -> Ledger:
    """The ledger of a selection from the records in a store.

    Args:
        selection: which published rows; or its fields as a mapping. store: default ``$CGLSUITE_STORE``, else ``./.cglsuite``.
        overrides: device and workers; a ledger uses unchanged presets, so overrides of values are not allowed. Without a device, a row is
            taken from the kind of device with most of its repetitions, among equals from the one with most cells of the preset, then from
            this machine's: a printed value names none, and a mean never mixes two.
        train_missing: first run the cells missing from the store whose data are available.
        besides: also count the data sets that are here, for ``statistics``, which reads them; otherwise that frame is empty.

    Returns:
        A ledger whose ``rows`` have the columns :data:`COLUMNS`. Means, deviations, ``difference`` (ours - published) with its 90 %
        interval ``low`` to ``high``, ``margin`` and ``smallest_margin`` (the smallest with which the row would be equivalent) are in the
        printed ``unit``; ``points`` is the difference in percentage points (NaN where there are none). ``p_holm`` is ``p_different``
        adjusted over the table. ``our_trials`` is the number of settings from which our hyper-parameters were chosen. ``planned_n`` says
        how many repetitions there will be and ``lacking`` why there are fewer; ``records`` holds the keys of our records, separated by
        blanks, including joint training if the metric compares with it. A row is made from runs at what a search in the store chose, if
        these are at least three, or more than those at the preset's own settings; ``lacking`` names the settings. The seeds on which a
        search chose a row's settings are no repetitions of it.

    Raises:
        UnknownNameError, NotApplicable: see :func:`cglsuite.campaigns.reference.reproduction.reproduction_of`.
        UsageError: likewise; or values are overridden.
    """
    engine = engine or load_engine()
    catalogue = catalogue or engine.load_catalogue()
    selection = selection if isinstance(selection, Selection) else Selection(**selection)
    overrides = without_configuration(overrides)
    reproduction = reproduction_of(selection, catalogue)
    store = store if isinstance(store, Store) else Store(store)
    if train_missing:
        cells = reproduction.plan(catalogue, overrides, engine=engine)
        absent = absences(lacking(cells, store), catalogue, fetch=True)
        run_missing(cells, catalogue, store, absent=absent, engine=engine, workers=overrides.workers)
    by_device = partial(load_results_by_device, store=store, overrides=overrides, catalogue=catalogue, engine=engine)
    run = {design: by_device(campaign) for design, campaign in reproduction.campaigns.items()}
    loaded = {design: found[0] for design, found in run.items()}
    missing = [cell.planned for results in loaded.values() for cell in results.cells if cell.state == "missing"]
    absent = absences(missing, catalogue)
    ours = {design: [Ours(results) for results in found] for design, found in run.items()}
    outcomes = store.search_outcomes()
    chosen = choices(reproduction, outcomes)

    @cache
    def tuned(design: tuple[Any, ...], method: str) -> list[Ours]:
        return [Ours(results, choice) for choice in chosen.get((design, method), ()) for results in by_device(choice.campaign)]

    tuning = Tuning.of(outcomes, (cell.planned for results in loaded.values() for cell in results.cells))
    rows, repetitions = [], []
    searches = list(tuning.searches)
    serving = list(loaded.values())
    sides: dict[int, Ours] = {}
    for place, entry in enumerate(reproduction.entries):
        side = None if entry.recipe is None else side_of(entry.recipe, ours[entry.recipe.design], tuned)
        row, value = _row(entry, side, absent, reproduction.paper.repeats)
        if value.n and entry.recipe is not None and side is not None:
            sides[place] = side
            row["our_trials"] = tuning.trials(entry.recipe.preset, entry.recipe.method)
            if side.choice is None:
                serving += [] if any(side.results is one for one in serving) else [side.results]
            else:
                row["our_trials"] = len(side.choice.outcome["candidates"])
                row["lacking"] = "; ".join(filter(None, (side.choice.text, row.get("lacking"))))
                searches += [side.choice.outcome] if side.choice.outcome not in searches else []
        rows.append(row)
        scale = UNITS[entry.row["unit"]].scale if entry.row["unit"] in UNITS else 1.0
        repetitions += [{"row": place, "unit": unit, "value": scale * one} for unit, one in zip(value.units, value.values, strict=True)]
    return Ledger(
        reproduction=reproduction,
        rows=adjusted(_frame(rows)),
        values=pd.DataFrame(repetitions, columns=["row", "unit", "value"]),
        ratios=ratios(reproduction.times, loaded, absent),
        times=own_times(loaded),
        statistics=_statistics(reproduction.selection, catalogue) if besides else pd.DataFrame(columns=STATISTICS),
        searches=tuple(searches),
        results=tuple(serving),
        store=store.path,
        absent=absent,
        sides=sides,
    )


def _statistics(selection: Selection, catalogue: Catalogue) -> pd.DataFrame:
    return load_statistics(catalogue, paper=selection.paper, dataset=selection.dataset, setting=selection.setting)


# --- one row ---------------------------------------------------------------------------------------------------------------------


def _frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=COLUMNS)
    counts = ["published_n", "our_n", "planned_n", "our_trials"]
    numbers = ["published_mean", "published_std", "our_mean", "our_std", "difference", "points", *TESTED, "p_holm"]
    words = [name for name in COLUMNS if name not in (*counts, *numbers, "comparable")]
    kinds = dict.fromkeys(counts, "Int64") | dict.fromkeys(numbers, "float64") | dict.fromkeys(words, "object")
    return frame.astype(kinds).fillna(dict.fromkeys(words, "")).assign(comparable=frame["comparable"].eq(True))


def _row(entry: Entry, side: Ours | None, absent: Mapping[str, str], runs: int | None) -> tuple[dict[str, Any], Value]:
    """A row of the ledger, and our value of it; the verdict of a row that can be tested is left open."""
    row, recipe = entry.row, entry.recipe
    entry_facts: dict[str, Any] = {name: row[name] for name in _PUBLISHED if name in row}
    entry_facts |= {"shown": shown_value(row), "published_mean": row["mean"], "published_std": printed_deviation(row)}
    entry_facts |= {"remark": "; ".join(remarks(row)), "unit_note": unit_note(row), "published_n": runs}
    if recipe is None or side is None:
        return entry_facts | {"verdict": "not runnable here", "reason": entry.reason}, Value()
    cells = side.cells(recipe)
    entry_facts |= _identity(recipe, cells)
    if all(cell.state in _NOT_APPLICABLE for cell in cells):
        return entry_facts | {"verdict": "not runnable here", "reason": cells[0].reason}, Value()
    value = side.value(recipe)
    if not value.n:
        away = absent.get(next((cell.planned.cell.scenario.dataset for cell in cells if cell.planned.cell is not None), ""))
        away = away if value.verdict == "not run" else None
        return entry_facts | {"verdict": "not runnable here" if away else value.verdict, "reason": away or value.reason}, value
    if value.n < entry_facts["planned_n"]:
        entry_facts["lacking"] = without_result([*cells, *(side.joint if recipe.needs_joint else ())])
    stale = sorted({cell.stale for cell in cells if cell.stale and cell.record is not None and cell.record.key in value.records})
    return entry_facts | _compared(row, value) | {"stale": "; ".join(stale)} | judged(row, recipe.metric, value.values, runs), value


def _identity(recipe: Recipe, cells: Sequence[ReportedCell]) -> dict[str, Any]:
    return {
        "preset": recipe.preset,
        "method_here": recipe.method,
        "backbone_here": cells[0].planned.backbone,
        "metric_here": recipe.metric,
        "overrides": "; ".join(f"{name}={'none' if value is None else value}" for name, value in recipe.overrides),
        "planned_n": len({repetition(recipe, cell) for cell in cells}),
    }


_NOT_APPLICABLE = ("n/a", "skipped")


# --- the verdict -----------------------------------------------------------------------------------------------------------------


def _compared(row: Mapping[str, Any], ours: Value) -> dict[str, Any]:
    unit = UNITS[row["unit"]]
    difference = unit.scale * ours.mean - row["mean"]
    return {
        "our_mean": unit.scale * ours.mean,
        "our_std": unit.scale * ours.std,
        "our_n": ours.n,
        "difference": difference,
        "points": difference * unit.to_points,
        "records": " ".join(ours.records),
    }


# --- files -----------------------------------------------------------------------------------------------------------------------


def besides(ledger: Ledger) -> dict[str, Any]:
    """Running times as ratios, and statistics of the data sets, in JSON types."""
    frames = {"ratios": ledger.ratios, "times": ledger.times, "statistics": ledger.statistics}
    return {name: json.loads(render_frame(frame, "json")) for name, frame in frames.items()}


def write_ledger(ledger: Ledger, folder: Path) -> list[Path]:
    """``ledger.csv`` and ``ledger.json`` in a folder, atomically; their paths.

    Raises:
        StoreError: the disk is full or the folder cannot be written.
    """
    selection, paper = ledger.reproduction.selection, ledger.reproduction.paper
    described = {
        "ledger": LEDGER,
        "selection": {name: value for name, value in asdict(selection).items() if value},
        "rule": RULE,
        "margins": dict(MARGINS),
        "repetitions": {
            "published": paper.repeats,
            "seeds": {k: list(v) for k, v in paper.seeds.items()},
            "note": paper.seeds_note,
            "spread": paper.spread,
        },
        "published_trials": paper.trials,
        "verdicts": ledger.counts,
        "offsets": json.loads(render_frame(ledger.offsets, "json")),
        "ratio_rule": RATIO_RULE,
        **besides(ledger),
        "without_a_printed_value": ledger.reproduction.unprinted,
    }
    rows = json.loads(render_frame(ledger.rows, "json"))
    listed = [row | {"records": (row["records"] or "").split()} for row in rows]
    text = json.dumps({**described, "rows": listed}, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n"
    paths = [folder / "ledger.csv", folder / "ledger.json"]
    for path, content in zip(paths, (render_frame(ledger.rows, "csv"), text.encode()), strict=True):
        write_atomic(path, content)
    return paths
