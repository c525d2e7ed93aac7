"""Running times in the ledger: seconds relative to Bare and the share of the framework, both as printed and from our records.

Clocks of different machines are never compared in seconds, only as ratios of cells with the same scenario, backbone, seeds and machine.
Ours is the geometric mean over repetitions of seconds over Bare's; seconds are the whole stream's without saving checkpoints. The share is
that of ``framework`` (see :class:`cglsuite.learning.clock.Clock`) in these seconds.

A printed ratio comes from one run, so it is treated as exact, and a verdict is about the printed number. The tests are those of
:mod:`cglsuite.stats.compare` on logarithms, with the margin of a factor of :data:`MARGIN`, as for ratios in bioequivalence. Times are
skewed, so equivalence needs the signs of the repetitions too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cglsuite import stats
from cglsuite.base.errors import CglsuiteError, UnknownNameError
from cglsuite.campaigns.reference import dataset_statistics, published_results
from cglsuite.campaigns.reference.reproduction import Entry, absent_data
from cglsuite.campaigns.reference.values import ASSUMED_RUNS, MIN_RUNS, REFERENCE, dataset_key, paper_named, preset_key, repetitions_mean
from cglsuite.cells.records.record import Record
from cglsuite.cells.spec import resolve_scenario
from cglsuite.host import Catalogue
from cglsuite.reports.kit.tables import as_rows
from cglsuite.reports.results.costs import machine_of
from cglsuite.reports.results.results import CampaignResults
from cglsuite.reports.results.tables import mean_interval, mean_std
from cglsuite.reports.studies.anatomy.compute import Anatomy, anatomy_of
from cglsuite.reports.studies.anatomy.published import COLUMNS, averaged_over_tasks, counted
from cglsuite.specs import ScenarioSpec

MARGIN = 1.25
"""The factor within which ratios count as equivalent, fixed in advance."""
KINDS = ("seconds relative to Bare", "framework's share")
RATIO_VERDICTS = (*stats.AGREEMENTS, "no verdict", "reference", "not run", "not runnable here")
_LEVEL, _ALPHA = 0.95, 0.05
RATIO_RULE = (
    "equivalent: two one-sided t tests on logarithms place our ratio divided by the printed one between 1/1.25 and 1.25, and so do two "
    "exact sign tests of the median, which are robust to skewed times and need five repetitions; different: not equivalent, and the t test "
    "on logarithms has p ≤ 0.05 after Holm's adjustment over the ratios of a table; undecided: neither; no verdict: fewer than "
    f"{MIN_RUNS} repetitions here. A printed ratio is of one run and is taken as exact"
)
_PLACE = ["paper", "table", "problem", "dataset", "setting", "backbone"]
_PUBLISHED = [*_PLACE, "variant", "method", "kind", "seconds", "published"]
_TESTED = ["factor", "factor_low", "factor_high", "p_equivalent", "p_different", "p_holm"]
_OURS = ["preset", "method_here", "ours", "low", "high", "our_n"]
RATIO_COLUMNS = [*_PUBLISHED, *_OURS, *_TESTED, "verdict", "reason", "records"]
TIMES = ["preset", "overrides", "backbone", "method", "n", "seconds", "ratio", "low", "high", "share", "share_low", "share_high", "reason"]


def seconds_of(record: Record) -> float:
    """Return the seconds for the whole stream of a record, without saving checkpoints, or NaN if the record contains no times."""
    total = record.timings_s.get("total")
    return math.nan if total is None else float(total) - float(record.timings_s.get("checkpoints") or 0.0)


def overhead_share(record: Record) -> float:
    """Return the framework's share of :func:`seconds_of`, or NaN if the record contains no times."""
    framework, seconds = record.timings_s.get("framework"), seconds_of(record)
    return math.nan if framework is None or not seconds > 0.0 else float(framework) / seconds


def published_ratio(row: Mapping[str, Any]) -> tuple[str, float]:
    """Return one of :data:`KINDS` and the ratio for a printed running time. The ratio is NaN if the reference time is not printed.

    The reference is Bare in the same table, data set, setting and size; for a framework's overhead, the same method's execution time.
    """
    table = published_results()
    wanted = {name: row[name] for name in _PLACE}
    share = "time=framework overhead" in row["variant"]
    if share:
        wanted |= {"method": row["method"], "variant": row["variant"].replace("time=framework overhead", "time=execution")}
    else:
        wanted |= {"method": "Bare", "variant": row["variant"]}
    mine = table[(table["unit"] == "s") & (table[list(wanted)] == pd.Series(wanted)).all(axis=1)]
    return KINDS[share], float(row["mean"]) / float(mine["mean"].iloc[0]) if len(mine) else math.nan


# --- ours ------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Times:
    """The running times of a method's repetitions: seconds relative to Bare and the framework's share (by seeds), or why there are none."""

    seconds: tuple[float, ...] = ()
    ratios: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    records: tuple[str, ...] = ()
    reason: str = ""


def times_of(results: CampaignResults, method: str) -> Times:
    """Return a method's times in a campaign relative to those of Bare with the same scenario, backbone, seeds and machine."""
    mine, bare = _by_seeds(results, method), _by_seeds(results, REFERENCE)
    timed = {seeds: record for seeds, record in mine.items() if math.isfinite(seconds_of(record))}
    if not timed:
        return Times(reason="no record of it holds running times" if mine else "none of its cells has a result")
    paired = {s: r for s, r in timed.items() if s in bare and machine_of(r) == machine_of(bare[s]) and seconds_of(bare[s]) > 0.0}
    lacking = "" if paired else f"no record of {REFERENCE} has the same seeds and machine"
    keys = [record.key for record in timed.values()] + [bare[seeds].key for seeds in paired]
    return Times(
        seconds=tuple(map(seconds_of, timed.values())),
        ratios=tuple(seconds_of(record) / seconds_of(bare[seeds]) for seeds, record in paired.items()),
        shares=tuple(share for record in timed.values() if math.isfinite(share := overhead_share(record))),
        records=tuple(dict.fromkeys(keys)),
        reason=lacking,
    )


def _by_seeds(results: CampaignResults, method: str) -> dict[Any, Record]:
    done = (cell.record for cell in results.cells if cell.planned.request.method == method and cell.record is not None and cell.done)
    return {tuple(record.cell["seeds"].get(axis) for axis in ("order", "split", "init")): record for record in done}


def _geometric(values: Sequence[float], *names: str) -> dict[str, float]:
    """A geometric mean over repetitions with its interval, under these names; NaN with too few repetitions."""
    logs = np.log([value for value in values if value > 0.0])
    interval = mean_interval(logs, level=_LEVEL)
    mean = float(np.exp(mean_std(logs)["mean"]))
    return dict(zip(names, (mean, math.exp(interval["low"]), math.exp(interval["high"])), strict=True))


def measured_times(loaded: Mapping[Any, CampaignResults]) -> pd.DataFrame:
    """Tabulate, per method of every campaign with records, mean seconds, seconds relative to Bare, and the framework's share, with 95%
    intervals.
    """
    rows = []
    for (_, _, values, _), results in loaded.items():
        overrides = "; ".join(f"{name}={value}" for name, value in values)
        cells = {cell.planned.request.method: cell for cell in results.cells if cell.done}
        for method, cell in cells.items():
            times = times_of(results, method)
            place = {"preset": cell.planned.request.scenario, "overrides": overrides, "backbone": cell.planned.backbone, "method": method}
            seconds = mean_std(np.array(times.seconds))
            means = _geometric(times.ratios, "ratio", "low", "high") | _geometric(times.shares, "share", "share_low", "share_high")
            rows.append(place | means | {"n": seconds["n"], "seconds": seconds["mean"], "reason": times.reason})
    return pd.DataFrame(rows, columns=TIMES)


# --- beside the published ones ---------------------------------------------------------------------------------------------------


def ratios(entries: Iterable[Entry], loaded: Mapping[Any, CampaignResults], absent: Mapping[str, str]) -> pd.DataFrame:
    """Compare every printed running time with ours.

    Args:
        entries: of running times. loaded: results by the design of the recipes that they serve. absent: by data set, why it is absent.

    Returns:
        ``seconds`` as printed, ``published`` (the ratio), ``ours`` with ``low`` to ``high`` (95%), ``factor`` (ours over published) with
        ``factor_low`` to ``factor_high`` (90%, which decides on equivalence), the p values, verdict (:data:`RATIO_VERDICTS`), reason.
    """
    rows = [_row(entry, loaded, absent) for entry in entries]
    frame = pd.DataFrame(rows, columns=RATIO_COLUMNS)
    numbers = ["seconds", "published", "ours", "low", "high", *_TESTED]
    words = [name for name in RATIO_COLUMNS if name not in (*numbers, "our_n")]
    kinds = dict.fromkeys(numbers, "float64") | {"our_n": "Int64"} | dict.fromkeys(words, "object")
    frame = frame.astype(kinds).fillna(dict.fromkeys(words, ""))
    tested: Any = frame[frame["p_equivalent"].notna()].groupby(["paper", "table"], sort=False)
    for _, part in tested:
        verdicts, p = stats.agreement_verdicts(part["p_equivalent"], part["p_different"])
        frame.loc[part.index, "verdict"] = verdicts
        frame.loc[part.index, "p_holm"] = p
    return frame


def _row(entry: Entry, loaded: Mapping[Any, CampaignResults], absent: Mapping[str, str]) -> dict[str, Any]:
    row, recipe = entry.row, entry.recipe
    kind, published = published_ratio(row)
    facts: dict[str, Any] = {name: row[name] for name in (*_PLACE, "variant", "method")}
    facts |= {"kind": kind, "seconds": float(row["mean"]), "published": published}
    if recipe is None:
        return facts | {"verdict": "not runnable here", "reason": entry.reason}
    facts |= {"preset": recipe.preset, "method_here": recipe.method}
    times = times_of(loaded[recipe.design], recipe.method)
    values = times.shares if kind == KINDS[1] else times.ratios
    if not values:
        return facts | _without(loaded[recipe.design], absent, times)
    facts |= _geometric(values, "ours", "low", "high") | {"our_n": len(values), "records": " ".join(times.records)}
    if kind == KINDS[0] and recipe.method == REFERENCE:
        return facts | {"verdict": "reference", "reason": "1 by definition"}
    return facts | ratio_tests(values, published)


def _without(results: CampaignResults, absent: Mapping[str, str], times: Times) -> dict[str, Any]:
    cell = next((c.planned.cell for c in results.cells if c.planned.cell is not None), None)
    away = absent.get(cell.scenario.dataset, "") if cell is not None else ""
    return {"verdict": "not runnable here" if away else "not run", "reason": away or times.reason}


def ratio_tests(values: Sequence[float], published: float) -> dict[str, Any]:
    """Run the tests on logarithms, treating the printed ratio as exact. Equivalence needs the t tests and the sign tests."""
    logs = np.log(values)
    try:
        agreement = stats.agreement(repetitions_mean(logs.tolist()), math.log(published), 0.0, ASSUMED_RUNS, margin=math.log(MARGIN))
    except stats.Refused as refusal:
        factor = math.exp(float(logs.mean())) / published
        return {"factor": factor, "verdict": "no verdict", "reason": str(refusal)}
    factors = {"factor": agreement.difference, "factor_low": agreement.low, "factor_high": agreement.high}
    by_signs = stats.median_within(logs - math.log(published), math.log(MARGIN))
    tests = {"p_equivalent": max(agreement.p_equivalent, by_signs), "p_different": agreement.p_different}
    lacking = by_signs > _ALPHA >= agreement.p_equivalent
    reason = {"reason": f"equivalent by the t tests, not by the signs of {len(logs)} repetitions (p = {by_signs:.2f})"} if lacking else {}
    return {name: math.exp(value) for name, value in factors.items()} | tests | reason


def ratio_counts(frame: pd.DataFrame) -> dict[str, int]:
    """Count the rows with each verdict, in the order of :data:`RATIO_VERDICTS`."""
    counts = frame["verdict"].value_counts()
    return {verdict: int(counts[verdict]) for verdict in RATIO_VERDICTS if verdict in counts}


# The statistics in the ledger: what papers print about data sets, next to our counts of the data present here.

STATISTICS = [*COLUMNS, "preset", "reason"]


def load_statistics(catalogue: Catalogue, *, paper: str = "", dataset: str = "", setting: str = "") -> pd.DataFrame:
    """Compare every number in ``dataset_statistics`` with our count, in the order of the table.

    Nothing is downloaded. If data are absent, their printed numbers are listed with the reason.

    Args:
        paper, dataset, setting: only rows of these; a data set by its name here or in a paper.

    Returns:
        The columns of :func:`cglsuite.reports.studies.anatomy.published.counted`, ``preset`` (in which ours is counted: the newest of the
        paper's protocols) and ``reason`` (why there is no count).

    Raises:
        UnknownNameError: if no paper prints statistics of this data set; the message suggests the nearest name.
    """
    table = dataset_statistics()
    if dataset and dataset_key(dataset) not in set(table["dataset"].map(dataset_key)):
        raise UnknownNameError("data set of the printed statistics", dataset, list(dict.fromkeys(table["dataset"])))
    published = [
        row
        for row in as_rows(table)
        if (not paper or row["paper"] == paper_named(paper).name)
        and (not dataset or dataset_key(row["dataset"]) == dataset_key(dataset))
        and (not setting or row["setting"].lower() == setting.lower())
    ]
    lines: list[dict[str, Any]] = []
    for row in published:
        preset = _preset(catalogue, row)
        anatomy, reason = _anatomy(catalogue, row, preset)
        lines += [{**line, "preset": preset, "reason": reason} for line in counted(row, anatomy)]
    return pd.DataFrame(lines, columns=STATISTICS)


def statistic_counts(statistics: pd.DataFrame) -> dict[str, int]:
    """Count the printed numbers that equal ours, deviate for a confirmed cause, deviate for another reason, or have no count."""
    known = statistics["equal"].notna()
    equal, holds = statistics["equal"].eq(True), known & statistics["check"].eq("holds")
    groups = {"equal": equal, "explained": holds, "open": known & ~equal & ~holds, "not counted": ~known}
    return {name: int(some.sum()) for name, some in groups.items() if some.any()}


def _preset(catalogue: Catalogue, row: Mapping[str, Any]) -> str:
    """The preset for a row under the newest protocol of its paper; empty if no plugin provides one."""
    place = (row["paper"], dataset_key(row["dataset"]), row["setting"].lower(), row["problem"])
    protocols = paper_named(row["paper"]).protocols
    specs = catalogue.specs(ScenarioSpec).values()
    there = [spec.name for spec in specs if preset_key(spec.name, spec.setting, spec.level) == place]
    return min(there, key=lambda name: protocols.index(name.partition("@")[2]), default="")


def _anatomy(catalogue: Catalogue, row: Mapping[str, Any], preset: str) -> tuple[Anatomy | None, str]:
    """The statistics of a preset's data; ``None`` and the reason if they are unavailable."""
    if not preset:
        return None, f"no plugin provides a preset of {row['paper']} for {row['dataset']} in {row['setting']}"
    orders = paper_named(row["paper"]).seeds.get("order", (0,)) if averaged_over_tasks(row) else (0,)
    try:
        resolved = resolve_scenario(catalogue, preset, {})
        if absent := absent_data(catalogue, resolved.spec.dataset, resolved.dataset_hyperparameters):
            return None, absent
        return anatomy_of(catalogue, preset, orders=orders), ""
    except CglsuiteError as error:
        return None, " ".join(str(error).split())
    except Exception as error:  # noqa: BLE001 - a loader of any plugin; the others are counted all the same
        return None, f"{type(error).__name__}: {error}"
