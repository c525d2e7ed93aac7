"""Compute the reproduction ledger: every published row with the records that reproduce it and a verdict.

A verdict compares two means: ours is ``equivalent`` to the published one where two one-sided tests put the difference within the metric's
margin, ``different`` where Welch's test finds a difference (adjusted over the rows of a table), and ``undecided`` otherwise (see
:mod:`cglsuite.stats.compare`). With fewer than three of our repetitions, there is ``no verdict``. A row whose value is known to deviate
from the protocol is a ``published artefact``, however close ours is. Rows without two means give a reason: ``not runnable here`` rows lack
something, the cells of ``failed`` rows were run without a result, and the others were ``not run``.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cglsuite import stats
from cglsuite.base.atomic import write_atomic
from cglsuite.campaigns.campaign import Campaign, order_designs
from cglsuite.campaigns.overrides import Overrides
from cglsuite.campaigns.reference.reproduction import (
    Entry,
    Reproduction,
    Selection,
    absences,
    campaign_of,
    lacking,
    reproduction_of,
    run_missing,
    without_configuration,
)
from cglsuite.campaigns.reference.values import (
    ARTEFACT,
    ASSUMED_RUNS,
    MARGINS,
    MIN_RUNS,
    UNITS,
    Recipe,
    known_about,
    paper_named,
    printed_deviation,
    published_error,
    remarks,
    repetitions_mean,
    shown_value,
    skew_note,
    unit_note,
    verdict_on,
)
from cglsuite.cells.keys import design_key
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.records.frame import UPPER_BOUND, render_frame
from cglsuite.cells.spec import CellSpec
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, load_catalogue
from cglsuite.reports.rendering.job import computed
from cglsuite.reports.results.results import CampaignResults, ReportedCell, load_results_by_device
from cglsuite.reports.studies.ledger.ratios import RATIO_RULE, STATISTICS, load_statistics, measured_times, ratios
from cglsuite.reports.studies.orders.compute import pool, repeat_totals
from cglsuite.specs import Seeds

# Our side of a ledger's row: the records of a campaign or of a search's choice on one kind of device, and the value that they give.


@dataclass(frozen=True, kw_only=True)
class Value:
    """Our value for a row: one number per repetition (in stored units) with seeds and keys, or the reason why there is no value.

    ``verdict``: the verdict of a row without a value.
    """

    values: tuple[float, ...] = ()
    units: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    reason: str = ""
    verdict: str = "not run"

    @property
    def n(self) -> int:
        """The number of our repetitions."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """The mean over repetitions."""
        return float(np.mean(self.values)) if self.values else math.nan

    @property
    def std(self) -> float:
        """The sample standard deviation over repetitions, which is NaN for a single one."""
        return float(np.std(self.values, ddof=1)) if self.n > 1 else math.nan


class Ours:
    """Our results of one campaign on one kind of device, for the rows that use it."""

    def __init__(self, results: CampaignResults, choice: Choice | None = None) -> None:
        """``choice``: the search result that chose these settings. The runs on which it was tuned do not count as repetitions."""
        if choice is not None:
            results = replace(results, cells=tuple(c for c in results.cells if c.planned.request.seeds not in choice.tuned_on))
        self.results, self.choice = results, choice
        self._values: dict[Recipe, Value] = {}

    @property
    def device(self) -> str:
        """The kind of device on which the cells ran."""
        return self.results.cells[0].planned.request.device

    def cells(self, recipe: Recipe) -> list[ReportedCell]:
        """Return the cells from which the value of a recipe is computed, without joint training."""
        mine = [cell for cell in self.results.cells if cell.planned.request.method == recipe.method]
        if not recipe.orders:
            return mine
        rules = {design.rule for design in order_designs(list(recipe.orders))}
        return [cell for cell in mine if cell.planned.cell is None or cell.planned.cell.scenario.class_order in rules]

    def keys(self, recipe: Recipe) -> set[str | None]:
        """Return the keys of the recipe's cells, without joint training."""
        return {cell.planned.key for cell in self.cells(recipe)}

    def value(self, recipe: Recipe) -> Value:
        """Return the mean of a metric over records, or the mean over repetitions of a spread over orders."""
        if recipe not in self._values:
            cells = self.cells(recipe)
            if not any(cell.done for cell in cells):
                self._values[recipe] = _why_none(cells)
            else:
                self._values[recipe] = self._spread(recipe, cells) if recipe.orders else self._mean(recipe)
        return self._values[recipe]

    def _mean(self, recipe: Recipe) -> Value:
        """The mean of a metric; one that compares with joint training is averaged over records with a joint counterpart."""
        frame = self.results.frame
        rows = frame[frame["method"] == recipe.method]
        measured = rows[rows[recipe.metric].notna()] if recipe.metric in rows.columns else rows.iloc[:0]
        if measured.empty:
            return self._undefined(recipe)
        seeds = ["order_seed", "split_seed", "init_seed"]
        keys = list(measured["key"])
        if recipe.needs_joint:
            keys += list(frame[frame["method"] == UPPER_BOUND].merge(measured[seeds], on=seeds)["key"])
        units = tuple("/".join(map(str, place)) for place in measured[seeds].itertuples(index=False))
        return Value(values=tuple(map(float, measured[recipe.metric])), units=units, records=tuple(dict.fromkeys(keys)))

    def _undefined(self, recipe: Recipe) -> Value:
        """The reason why a metric has no value although the method has records."""
        if not recipe.needs_joint:
            return Value(reason=f"{recipe.metric} is undefined", verdict="failed")
        if any(cell.done for cell in self.joint):
            return Value(reason=f"{recipe.metric} compares with joint training, but no joint record has the same seeds")
        why = _why_none(self.joint)
        return replace(why, reason=f"{recipe.metric} compares with joint training: {why.reason}")

    def _spread(self, recipe: Recipe, cells: Sequence[ReportedCell]) -> Value:
        """The mean spread over repetitions with all orders, since a maximum over fewer orders is another quantity."""
        whole = {repetition(recipe, cell) for cell in cells} - {repetition(recipe, cell) for cell in cells if not cell.done}
        if not whole:
            return Value(reason=f"{sum(cell.done for cell in cells)} of its {len(cells)} cells are done: no repetition has all orders")
        table, unit = self._repeats, "task" if len(recipe.orders) == 1 else "class"
        rows = table[(table["unit"] == unit) & (table["method"] == recipe.method)]
        if rows.empty or rows["refused"].iloc[0]:
            return Value(reason=rows["refused"].iloc[0] if len(rows) else f"no {unit} was scored in every order")
        keys = tuple(c.record.key for c in cells if c.record is not None and repetition(recipe, c) in whole)
        return Value(values=tuple(map(float, rows[recipe.metric])), units=tuple(map(str, rows["seed"])), records=keys)

    @cached_property
    def joint(self) -> list[ReportedCell]:
        """The cells of joint training."""
        return [cell for cell in self.results.cells if cell.planned.request.method == UPPER_BOUND]

    @cached_property
    def _repeats(self) -> pd.DataFrame:
        return repeat_totals(pool([self.results]))


def side_of(recipe: Recipe, devices: Sequence[Ours], tuned: Callable[[tuple[Any, ...], str], Sequence[Ours]]) -> Ours:
    """Select the results for a row: those with settings tuned by a search, like printed values, or those with the preset's settings.

    The preset's settings are used, on the device with most repetitions, if the tuned ones have too few runs and these have more.

    A search that chose the preset's own settings has used some of their runs, so these count as repetitions of neither.
    """
    preset_side = devices[0] if len(devices) == 1 else max(devices, key=lambda side: side.value(recipe).n)
    selected = tuned(recipe.design, recipe.method)
    preset_side = next((side for side in selected if side.keys(recipe) <= preset_side.keys(recipe)), preset_side)
    enough = [side for side in selected if side.value(recipe).n >= MIN_RUNS]
    return max(enough or (preset_side, *selected), key=lambda side: side.value(recipe).n)


def _why_none(cells: Sequence[ReportedCell]) -> Value:
    """The states of cells without any result, in words."""
    ended = any(cell.record is not None for cell in cells)
    reason = f"none of its {len(cells)} cells has a result: {_ends(cells)}" if ended else f"none of its {len(cells)} cells has been run"
    return Value(reason=reason, verdict="failed" if ended else "not run")


def repetition(recipe: Recipe, cell: ReportedCell) -> Any:
    """Return what counts as a cell's repetition in a mean: the cell itself or, for a spread over orders, the seeds shared by all orders."""
    seeds = cell.planned.request.seeds
    return (seeds.split, seeds.init) if recipe.orders else seeds


def without_result(cells: Sequence[ReportedCell]) -> str:
    """List the cells that are missing from a mean, with reasons. The text is empty if none are missing."""
    without = [cell for cell in cells if not cell.done]
    return f"{len(without)} of {len(cells)} cells have no result: {_ends(without)}" if without else ""


def _ends(cells: Sequence[ReportedCell]) -> str:
    """The distinct reasons why cells have no result, most frequent first."""
    ways = Counter("not run" if cell.state == "missing" else f"{cell.state}: {cell.reason}" for cell in cells)
    return "; ".join(f"{n} {way}" for way, n in ways.most_common())


LEDGER = 3
"""Version of the ledger's files."""


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """A ledger and the data from which it was computed.

    Args:
        rows: one per published row: see :func:`load_ledger`. values: our repetitions of the compared rows: columns row (its place in
            ``rows``), unit (the repetition's seeds), value (in the printed unit).
        ratios: one row per published running time: see :func:`cglsuite.reports.studies.ledger.ratios.ratios`. times: of our methods, see
            :func:`cglsuite.reports.studies.ledger.ratios.measured_times`. statistics: of the data sets, see
            :func:`cglsuite.reports.studies.ledger.ratios.load_statistics`. searches: those in the store that chose the values of a row.
        results: those of every campaign that a row uses, once per kind of device used. absent: by data set, why its files are not
            available. sides: the source of a row's value, by its position in ``rows``.
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
        """A title that describes the selection."""
        return f"Reproduction of {self.reproduction.selection.title}"

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of rows with each verdict, in the order of :data:`VERDICTS`."""
        counts = Counter(self.rows["verdict"])
        return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}

    @cached_property
    def offsets(self) -> pd.DataFrame:
        """The systematic deviations of whole tables (see :func:`cglsuite.reports.studies.ledger.compute.offsets`)."""
        return offsets(self.rows, self.values)


_PUBLISHED = ["paper", "table", "problem", "dataset", "setting", "variant", "backbone", "method", "metric", "unit"]
_PUBLISHED += ["printed", "shown", "published_mean", "published_std", "published_n"]
_OURS = ["preset", "method_here", "backbone_here", "metric_here", "overrides", "our_mean", "our_std", "our_n", "planned_n", "our_trials"]
_VERDICT = ["difference", "points", "low", "high", "df", "margin", "smallest_margin", "p_equivalent", "p_different", "p_holm"]
_VERDICT += [
    "p_equivalent_holm",
    "verdict",
    "precision",
    "runs_needed",
    "comparable",
    "reason",
    "lacking",
    "remark",
    "unit_note",
    "stale",
    "records",
]
_ON_ORDERS = ["orders_seeds", "orders_low", "orders_high", "orders_verdict"]
COLUMNS = [*_PUBLISHED, *_OURS, *_VERDICT, *_ON_ORDERS]


def load_ledger(
    selection: Selection | Mapping[str, Any],
    store: Store | str | Path | None = None,
    *,
    overrides: Overrides | Mapping[str, Any] | None = None,
    catalogue: Catalogue | None = None,
    train_missing: bool = False,
    extras: bool = True,
) -> Ledger:
    """Compute the ledger of a selection from the records in a store.

    Args:
        selection: which published rows; or its fields as a mapping. store: default ``$CGLSUITE_STORE``, else ``./.cglsuite``.
        overrides: device and workers; a ledger uses unchanged presets, so overrides of values are not allowed. Without a device, a row
            uses the kind of device with most of its repetitions. Ties go to the kind with most cells of the preset, then to this
            machine's kind. A printed value names no device, and a mean never mixes two kinds.
        train_missing: first run the cells missing from the store whose data are available.
        extras: also read and count the available data sets for ``statistics``; otherwise that frame is empty.

    Returns:
        A ledger whose ``rows`` have the columns :data:`COLUMNS`. Means, deviations, ``difference`` (ours - published) with its 90%
        interval ``low`` to ``high``, ``margin`` and ``smallest_margin`` (the smallest with which the row would be equivalent) are in the
        printed ``unit``; ``points`` is the difference in percentage points (NaN where there are none). ``p_holm`` is ``p_different``
        adjusted over the table. ``our_trials`` is the number of settings from which our hyperparameters were chosen. ``planned_n`` says
        how many repetitions there will be and ``lacking`` why there are fewer; ``records`` holds the keys of our records, separated by
        blanks, including joint training if the metric compares with it. A row uses runs at the settings that a search in the store chose,
        if there are at least three of them, or more than at the preset's settings; ``lacking`` names the settings. The seeds on which a
        search chose a row's settings do not count as its repetitions.

    Raises:
        UnknownNameError, NotApplicable: see :func:`cglsuite.campaigns.reference.reproduction.reproduction_of`.
        UsageError: likewise; or values are overridden.
    """
    catalogue = catalogue or load_catalogue()
    selection = selection if isinstance(selection, Selection) else Selection(**selection)
    overrides = without_configuration(overrides)
    reproduction = reproduction_of(selection, catalogue)
    store = store if isinstance(store, Store) else Store(store)
    folder = store.path.resolve()
    ledger = computed(Ledger, lambda known: (known.reproduction.selection, known.store.resolve(), extras) == (selection, folder, True))
    if ledger is not None and not train_missing:
        return ledger
    if train_missing:
        cells = reproduction.plan(catalogue, overrides)
        absent = absences(lacking(cells, store), catalogue, fetch=True)
        run_missing(cells, catalogue, store, absent=absent, workers=overrides.workers)
    by_device = partial(load_results_by_device, store=store, overrides=overrides, catalogue=catalogue)
    run = {design: by_device(campaign) for design, campaign in reproduction.campaigns.items()}
    loaded = {design: loads[0] for design, loads in run.items()}
    missing = [cell.planned for results in loaded.values() for cell in results.cells if cell.state == "missing"]
    absent = absences(missing, catalogue)
    ours = {design: [Ours(results) for results in loads] for design, loads in run.items()}
    outcomes = store.search_outcomes()
    selected = choices(reproduction, outcomes)

    @cache
    def tuned(design: tuple[Any, ...], method: str) -> list[Ours]:
        return [Ours(results, choice) for choice in selected.get((design, method), ()) for results in by_device(choice.campaign)]

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
                serving += [] if any(side.results is served for served in serving) else [side.results]
            else:
                row["our_trials"] = len(side.choice.outcome["candidates"])
                row["lacking"] = "; ".join(filter(None, (side.choice.text, row.get("lacking"))))
                searches += [side.choice.outcome] if side.choice.outcome not in searches else []
        rows.append(row)
        scale = UNITS[entry.row["unit"]].scale if entry.row["unit"] in UNITS else 1.0
        repetitions += [
            {"row": place, "unit": unit, "value": scale * served} for unit, served in zip(value.units, value.values, strict=True)
        ]
    of_data = {name: getattr(reproduction.selection, name) for name in ("paper", "dataset", "setting")}
    return Ledger(
        reproduction=reproduction,
        rows=on_orders(adjusted(_frame(rows)), reproduction, sides, store),
        values=pd.DataFrame(repetitions, columns=["row", "unit", "value"]),
        ratios=ratios(reproduction.times, loaded, absent),
        times=measured_times(loaded),
        statistics=load_statistics(catalogue, **of_data) if extras else pd.DataFrame(columns=STATISTICS),
        searches=tuple(searches),
        results=tuple(serving),
        store=store.path,
        absent=absent,
        sides=sides,
    )


# --- one row ---------------------------------------------------------------------------------------------------------------------


def _frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=COLUMNS)
    counts = ["published_n", "our_n", "planned_n", "our_trials", "runs_needed", "orders_seeds"]
    numbers = [
        "published_mean",
        "published_std",
        "our_mean",
        "our_std",
        "difference",
        "points",
        *TESTED,
        "p_holm",
        "p_equivalent_holm",
        *_ON_ORDERS[1:3],
    ]
    words = [name for name in COLUMNS if name not in (*counts, *numbers, "comparable")]
    kinds = dict.fromkeys(counts, "Int64") | dict.fromkeys(numbers, "float64") | dict.fromkeys(words, "object")
    return frame.astype(kinds).fillna(dict.fromkeys(words, "")).assign(comparable=frame["comparable"].eq(True))


def _row(entry: Entry, side: Ours | None, absent: Mapping[str, str], runs: int | None) -> tuple[dict[str, Any], Value]:
    """A row of the ledger with our value; the verdict of a testable row stays open until rows are adjusted together."""
    row, recipe = entry.row, entry.recipe
    entry_facts: dict[str, Any] = {name: row[name] for name in _PUBLISHED if name in row}
    entry_facts |= {"shown": shown_value(row), "published_mean": row["mean"], "published_std": printed_deviation(row)}
    entry_facts |= {"remark": "; ".join(remarks(row)), "unit_note": unit_note(row), "published_n": runs}
    if recipe is None or side is None:
        return entry_facts | {"verdict": "not runnable here", "reason": entry.reason}, Value()
    cells = side.cells(recipe)
    entry_facts |= {"preset": recipe.preset, "method_here": recipe.method, "metric_here": recipe.metric}
    entry_facts["overrides"] = "; ".join(f"{name}={'none' if value is None else value}" for name, value in recipe.overrides)
    entry_facts |= {"backbone_here": cells[0].planned.backbone, "planned_n": len({repetition(recipe, cell) for cell in cells})}
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


_NOT_APPLICABLE = ("n/a", "skipped")


# --- the verdict -----------------------------------------------------------------------------------------------------------------


def _compared(row: Mapping[str, Any], ours: Value) -> dict[str, Any]:
    unit = UNITS[row["unit"]]
    difference = unit.scale * ours.mean - row["mean"]
    means = {"our_mean": unit.scale * ours.mean, "our_std": unit.scale * ours.std, "our_n": ours.n}
    return means | {"difference": difference, "points": difference * unit.to_points, "records": " ".join(ours.records)}


# --- files -----------------------------------------------------------------------------------------------------------------------


def extras(ledger: Ledger) -> dict[str, Any]:
    """Return the running times (as ratios) and the statistics of the data sets as JSON-serialisable values."""
    frames = {"ratios": ledger.ratios, "times": ledger.times, "statistics": ledger.statistics}
    return {name: plain(frame) for name, frame in frames.items()}


def plain(frame: pd.DataFrame) -> Any:
    """Convert the rows of a data frame to JSON-serialisable values."""
    return json.loads(render_frame(frame, "json")) if len(frame.columns) else []


def write_ledger(ledger: Ledger, folder: Path) -> list[Path]:
    """Write ``ledger.csv`` and ``ledger.json`` into a folder, atomically, and return their paths.

    Raises:
        StoreError: if the disk is full or the folder cannot be written.
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
        "offsets": plain(ledger.offsets),
        "margins_tried": plain(margins(ledger.rows)),
        "ratio_rule": RATIO_RULE,
        **extras(ledger),
        "without_a_printed_value": ledger.reproduction.unprinted,
    }
    listed = [row | {"records": (row["records"] or "").split()} for row in plain(ledger.rows)]
    return write_files(ledger.rows, {**described, "rows": listed}, folder)


def write_files(rows: pd.DataFrame, described: Mapping[str, Any], folder: Path, name: str = "ledger") -> list[Path]:
    """Write the rows and description of one or several ledgers into a folder, atomically, and return the paths.

    Raises:
        StoreError: if the disk is full or the folder cannot be written.
    """
    text = json.dumps(described, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n"
    paths = [folder / f"{name}.csv", folder / f"{name}.json"]
    for path, content in zip(paths, (render_frame(rows, "csv"), text.encode()), strict=True):
        write_atomic(path, content)
    return paths


# Verdicts of the reproduction ledger: on rows, over the rows of a table, and on tables as a whole.

JUDGED = (*stats.AGREEMENTS, "no verdict", ARTEFACT)
"""The verdicts on rows with two means."""
VERDICTS = (*JUDGED, "failed", "not run", "not runnable here")
TESTED = ("low", "high", "df", "margin", "smallest_margin", "p_equivalent", "p_different")
"""The numbers of a tested row (see :class:`cglsuite.stats.Agreement`)."""
_ALPHA = 0.05
_OPEN = "to be judged"
_MAXIMA = ("mopd",)
"""Metrics that are maxima of differences of fractions."""
RULE = (
    f"equivalent: two one-sided tests put the difference of the means within the margin (its {100 * (1 - 2 * _ALPHA):g}% interval lies "
    "within ±margin), which is 2 points for performance and 3 points for differences and ranges of performance (0.02 and 0.03 for values "
    f"that are not percentages); different: not equivalent, and Welch's test has p ≤ {_ALPHA:g} after Holm's adjustment over the rows of a "
    "table; undecided: neither, and the smallest margin shows what the records can establish (print too imprecise: its own 90% interval "
    "exceeds ±margin, so no number of runs could show equivalence; needs more runs: the number for a power of 80% if nothing differs; not "
    f"worth it: more than {stats.MAX_WORTHWHILE_UNITS}); if the paper has two or three runs, its own interval must leave the difference "
    f"within the margin; no verdict: fewer than {MIN_RUNS} repetitions here, no spread on either side, or nothing printed to test against"
)


def judged(row: Mapping[str, Any], metric: str, values: Sequence[float], runs: int | None) -> dict[str, Any]:
    """Test a published row against our repetitions. Return its verdict, unless the verdict depends on other rows of the table.

    Args:
        metric: its name here. values: our repetitions, in stored units. runs: of the published mean.

    Returns:
        verdict, reason (of an artefact or a missing verdict), comparable, and where there is a test the numbers of :data:`TESTED`, and
        what equivalence needs (see :func:`cglsuite.stats.precision_of`), which :func:`adjusted` leaves to undecided rows.
    """
    known = known_about(row)
    facts: dict[str, Any] = {"verdict": _OPEN, "reason": "", "comparable": known.comparable}
    try:
        ours = repetitions_mean(values)
        if metric in _MAXIMA and (full := sum(value >= 1.0 for value in values)):
            raise stats.Refused(f"{full} of {len(values)} repetitions are at 100 points, the bound of a maximum, which has no t interval")
        verdict = verdict_on(row, metric, ours, runs)
        facts |= {name: getattr(verdict, name) for name in TESTED}
        spread = UNITS[row["unit"]].scale * ours.spread
        facts["precision"], facts["runs_needed"] = stats.precision_of(spread, *published_error(row, runs), verdict.margin)
    except stats.Refused as refusal:
        facts |= {"verdict": "no verdict", "reason": str(refusal)}
    return facts | ({"verdict": ARTEFACT, "reason": "; ".join(known.artefacts)} if known.artefacts else {})


def adjusted(rows: pd.DataFrame) -> pd.DataFrame:
    """Complete the verdicts. Rows that :func:`judged` left open are adjusted over the tested rows of their table.

    Each row's equivalence is decided without adjustment; ``p_equivalent_holm`` shows whether it survives Holm's adjustment over the table.
    """
    tables: Any = rows[rows["verdict"] == _OPEN].groupby(["paper", "table"], sort=False)
    for _, part in tables:
        verdicts, p = stats.agreement_verdicts(part["p_equivalent"], part["p_different"], alpha=_ALPHA)
        rows.loc[part.index, "verdict"] = verdicts
        rows.loc[part.index, "p_holm"] = p
        rows.loc[part.index, "p_equivalent_holm"] = stats.adjust(part["p_equivalent"])
    for place, row in rows[rows["verdict"] == "equivalent"].iterrows():
        rows.loc[place, "reason"] = skew_note(int(row["our_n"]), None if pd.isna(row["published_n"]) else int(row["published_n"]))
    rows.loc[rows["verdict"] != "undecided", "precision"] = ""
    rows.loc[rows["verdict"] != "undecided", "runs_needed"] = pd.NA
    return rows


def offsets(rows: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    """Test whether whole tables deviate, by the mean difference over the rows of a table and metric with a joint bootstrap interval.

    Rows of a preset share orders, splits and seeds, so these are drawn once for all of them (see :func:`cglsuite.stats.joint_offset`).
    Artefacts and rows without a verdict are left out.

    Args:
        rows, values: of a :class:`cglsuite.reports.studies.ledger.compute.Ledger`.

    Returns:
        Columns paper, table, metric, unit, rows, higher (of how many rows ours is higher), mean (ours - published), low, high, reason
        (why there is no interval).
    """
    compared, place = rows[rows["verdict"].isin(stats.AGREEMENTS)], ["paper", "table", "metric", "unit"]
    offset_rows = []
    tables: Any = compared.groupby(place, sort=False)
    for where, part in tables:
        runs = part["published_n"].astype("float64").fillna(ASSUMED_RUNS)
        spread = [stats.sample_deviation(s, int(n), paper_named(where[0]).ddof) for s, n in zip(part["published_std"], runs, strict=True)]
        error = np.nan_to_num(np.array(spread)) / np.sqrt(runs)
        errors = {"mean": part["published_mean"], "error": error, "df": runs - 1.0}
        published = pd.DataFrame({"row": part.index, "block": part["preset"] + " " + part["overrides"], **errors})
        offset = asdict(stats.joint_offset(values[values["row"].isin(part.index)], published))
        offset_rows.append(dict(zip(place, where, strict=True)) | offset)
    return pd.DataFrame(offset_rows, columns=[*place, "rows", "higher", "mean", "low", "high", "reason"])


def shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Estimate the share of a table's rows within the margin, regardless of each row's verdict (see :func:`cglsuite.stats.share_within`).

    Args:
        rows: of a :class:`cglsuite.reports.studies.ledger.compute.Ledger`; those that have a test and a difference in points take part. An
            error that few runs estimate is widened to the standard deviation of its t distribution.

    Returns:
        Columns paper, table, metric, rows, equivalent (how many of them), scale (of the priors, points), mean, low, high, reason (why there
        is no share): a line per scale.
    """
    from scipy.stats import t

    compared, place = rows[rows["verdict"].isin(stats.AGREEMENTS) & rows["points"].notna()], ["paper", "table", "metric"]
    parts: Any = compared.groupby(place, sort=False)
    lines = []
    for where, part in parts:
        facts = dict(zip(place, where, strict=True)) | {"rows": len(part), "equivalent": int((part["verdict"] == "equivalent").sum())}
        to_points = _to_points(part)
        df = part["df"].to_numpy()
        wider = np.sqrt(np.where(df > 3.0, df / (np.maximum(df, 3.0) - 2.0), 3.0))
        error = wider * to_points * ((part["high"] - part["low"]) / 2.0 / t.ppf(1.0 - _ALPHA, df)).to_numpy()
        try:
            for scale in stats.PRIOR_SCALES:
                (share,) = stats.share_within(part["points"], error, part["margin"] * to_points, list(part["preset"]), scale=scale)
                lines.append(facts | share._asdict() | {"reason": ""})
        except stats.Refused as refusal:
            lines.append(facts | {"reason": str(refusal)})
    return pd.DataFrame(lines, columns=[*place, "rows", "equivalent", "scale", "mean", "low", "high", "reason"])


_MORE_SEEDS = (1, 2)
"""What is added to the protocol's init seeds for further ones within an order."""


def on_orders(rows: pd.DataFrame, reproduction: Reproduction, sides: Mapping[int, Ours], store: Store) -> pd.DataFrame:
    """Add a second verdict, conditional on the orders, to rows of papers that print means over the orders of the protocol.

    It needs three init seeds per order: the protocol's and the next two (see :func:`cglsuite.stats.agreement_on_orders`).

    Returns:
        The rows with orders_seeds (init seeds per order), orders_low, orders_high and orders_verdict, of rows that have them.
    """
    found: dict[int, stats.Agreement] = {}
    tested = {place: side for place, side in sides.items() if rows.at[place, "verdict"] in stats.AGREEMENTS}
    for place, by_order in (_by_order(reproduction, tested, store) if reproduction.paper.own_orders else {}).items():
        row, seeds = reproduction.entries[place].row, min(map(len, by_order.values()))
        std, n = published_error(row, reproduction.paper.repeats)
        values = UNITS[row["unit"]].scale * np.array([some[:seeds] for some in by_order.values()])
        with suppress(stats.Refused):
            found[place] = one = stats.agreement_on_orders(
                values, float(row["mean"]), std, n, margin=float(rows["margin"].loc[place]), alpha=_ALPHA
            )
            rows.loc[place, _ON_ORDERS[:3]] = [seeds, one.low, one.high]
    tables: Any = rows.loc[list(found)].groupby(["paper", "table"], sort=False)
    for _, part in tables:
        tests = [found[place] for place in part.index]
        verdicts, _ = stats.agreement_verdicts([one.p_equivalent for one in tests], [one.p_different for one in tests], alpha=_ALPHA)
        rows.loc[part.index, "orders_verdict"] = verdicts
    return rows


def _by_order(reproduction: Reproduction, sides: Mapping[int, Ours], store: Store) -> dict[int, dict[int, list[float]]]:
    """By row with a test of its own and by order seed, the values of all init seeds; only rows with further seeds in the store."""
    values: dict[int, dict[int, list[float]]] = {}
    places: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for place, side in sides.items():
        recipe = reproduction.entries[place].recipe
        if recipe is None or recipe.orders or recipe.needs_joint:
            continue
        ours = side.value(recipe)
        values[place] = {int(unit.partition("/")[0]): [value] for unit, value in zip(ours.units, ours.values, strict=True)}
        for cell in [reported.planned.cell for reported in side.cells(recipe)]:
            if cell is None or cell.seeds.order not in values[place]:
                continue
            for more in _MORE_SEEDS:
                design = design_key(replace(cell, seeds=replace(cell.seeds, init=cell.seeds.init + more)))
                places[design].append((place, cell.seeds.order, recipe.metric))
    for record in {record.design: record for record in store.with_designs(places.keys()) if record.done}.values():
        for place, order, metric in places[record.design]:
            if (value := record.metrics.get(metric)) is not None and record.cell["device"] == sides[place].device:
                values[place][order].append(float(value))
    return {place: by_order for place, by_order in values.items() if any(len(some) > 1 for some in by_order.values())}


def survivors(rows: pd.DataFrame) -> int:
    """Count the equivalent rows that remain equivalent after Holm's adjustment of their two one-sided tests over the table."""
    return int(((rows["verdict"] == "equivalent") & (rows["p_equivalent_holm"] <= _ALPHA)).sum())


def margins(rows: pd.DataFrame) -> pd.DataFrame:
    """Measure, by table and metric, how wide the margins are and how much verdicts depend on them. Values are in points.

    Args:
        rows: of a :class:`cglsuite.reports.studies.ledger.compute.Ledger`.

    Returns:
        Columns paper, table, metric, rows (with a test), margin, gap (the median, over rankings of printed means, of the median difference
        between neighbours), equivalent (of the rows), survive (of these, after Holm's adjustment over the table), and the share of rows
        that would be equivalent with each of :data:`MARGINS_TRIED` (``within 0.5`` and so on).
    """
    compared, place = rows[rows["verdict"].isin(stats.AGREEMENTS) & rows["points"].notna()], ["paper", "table", "metric"]
    ranking = ["dataset", "setting", "variant", "backbone"]
    lines = []
    parts: Any = compared.groupby(place, sort=False)
    for where, part in parts:
        printed = rows[(rows[place] == list(where)).all(axis=1) & rows["published_mean"].notna()]
        gaps = [stats.neighbour_gap(one["published_mean"]) * _to_points(one)[0] for _, one in printed.groupby(ranking, sort=False)]
        known = [gap for gap in gaps if not math.isnan(gap)]
        line = dict(zip(place, where, strict=True)) | {"rows": len(part), "margin": float((part["margin"] * _to_points(part)).max())}
        line |= {"gap": float(np.median(known)) if known else math.nan, "equivalent": int((part["verdict"] == "equivalent").sum())}
        line |= {"survive": survivors(part)}
        shares = stats.equivalence_curve(part["smallest_margin"] * _to_points(part), MARGINS_TRIED)
        lines.append(line | dict(zip(_WITHIN, shares.tolist(), strict=True)))
    return pd.DataFrame(lines, columns=[*place, "rows", "margin", "gap", "equivalent", "survive", *_WITHIN])


def _to_points(rows: pd.DataFrame) -> np.ndarray:
    return np.array([UNITS[name].to_points for name in rows["unit"]])


MARGINS_TRIED = (0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0)
"""Points."""
_WITHIN = [f"within {margin:g}" for margin in MARGINS_TRIED]


# Runs at settings that a search in the store chose, of which rows are made before those at a preset's own settings.

Place = tuple[tuple[Any, ...], str]
"""A recipe's design and method."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The outcome of a search for one method in a preset.

    Args:
        outcome: the search's result. campaign: the protocol's repetitions at the chosen settings.
    """

    outcome: Mapping[str, Any]
    campaign: Campaign

    @property
    def tuned_on(self) -> frozenset[Seeds]:
        """The seeds of the runs used for tuning, which do not count as repetitions."""
        return frozenset(Seeds(**seeds) for seeds in self.outcome["seeds"])

    @property
    def text(self) -> str:
        """The selected settings and how they were selected, as text."""
        settings = ", ".join(f"{name} = {value}" for name, value in self.outcome["overrides"].items())
        return f"at the best of {len(self.outcome['candidates'])} settings, by validation on other seeds: {settings}"


def choices(reproduction: Reproduction, outcomes: Sequence[Mapping[str, Any]]) -> dict[Place, list[Choice]]:
    """Return the search results for the rows of a reproduction. Joint training has a separate search."""
    by_place: dict[Place, list[Recipe]] = defaultdict(list)
    for entry in reproduction.entries:
        if entry.recipe is not None and not entry.recipe.orders:
            by_place[entry.recipe.design, entry.recipe.method].append(entry.recipe)
    places: dict[Place, list[Choice]] = {}
    for (design, method), recipes in by_place.items():
        mine = list(_searches_with_choice(outcomes, recipes[0], method))
        joint = next((outcome["overrides"] for outcome in _searches_with_choice(outcomes, recipes[0], UPPER_BOUND)), None)
        for outcome in mine:
            overrides = {method: outcome["overrides"]}
            if joint is not None and any(recipe.needs_joint for recipe in recipes):
                overrides.setdefault(UPPER_BOUND, joint)
            campaign = campaign_of(reproduction.selection, reproduction.paper, recipes, overrides)
            places.setdefault((design, method), []).append(Choice(outcome=outcome, campaign=campaign))
    return places


def _searches_with_choice(outcomes: Iterable[Mapping[str, Any]], recipe: Recipe, method: str) -> Iterable[Mapping[str, Any]]:
    """The searches with a choice for a method in the recipe's preset and on its backbone."""
    place = (recipe.preset, method, recipe.backbone)
    return (
        outcome for outcome in outcomes if outcome["overrides"] and (outcome["scenario"], outcome["method"], outcome["backbone"]) == place
    )


# The number of settings from which the hyperparameters of the ledger's rows were chosen.


@dataclass(frozen=True)
class Tuning:
    """The searches that chose the settings of a ledger's cells, and the numbers of trials that presets declare.

    Args:
        searches: their outcomes. declared: by preset and method, the number of settings from which the preset's values were chosen.
    """

    searches: tuple[Mapping[str, Any], ...]
    declared: Mapping[tuple[str, str], int]

    @classmethod
    def of(cls, outcomes: Sequence[Mapping[str, Any]], cells: Iterable[PlannedCell]) -> Tuning:
        """Return the tuning of the given cells. A search counts if its choice matches a planned cell of its scenario and method."""
        first: dict[tuple[str, str], CellSpec] = {}
        for planned in cells:
            if planned.cell is not None:
                first.setdefault((planned.request.scenario, planned.request.method), planned.cell)
        configurations = {place: cell.configuration for place, cell in first.items()}
        used = [o for o in outcomes if o["overrides"] and _holds(o["overrides"], configurations.get((o["scenario"], o["method"]), {}))]
        return cls(tuple(used), {place: cell.scenario.method_trials.get(place[1], 1) for place, cell in first.items()})

    def trials(self, preset: str, method: str) -> int:
        """Return the number of settings from which a method's values were chosen, which is 1 without a search."""
        counts = [len(o["candidates"]) for o in self.searches if (o["scenario"], o["method"]) == (preset, method)]
        return max(counts, default=self.declared.get((preset, method), 1))


def _holds(overrides: Mapping[str, Any], configuration: Mapping[str, Any]) -> bool:
    """Whether a cell has all the values that a search chose; short names match those of any section."""
    full = {name: next((key for key in configuration if name in (key, key.partition(".")[2])), None) for name in overrides}
    return all(key is not None and configuration[key] == overrides[name] for name, key in full.items())
