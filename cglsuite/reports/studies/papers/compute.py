"""Combine the ledgers of all papers: printed, runnable, run and matching values, cells and hours, and causes of deviations."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cglsuite import stats
from cglsuite.base.errors import CglsuiteError
from cglsuite.base.hashing import canonical
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.overrides import Overrides, parse_overrides
from cglsuite.campaigns.reference import disagreements, mechanisms
from cglsuite.campaigns.reference.reproduction import Selection, campaign_of, selections_of
from cglsuite.campaigns.reference.values import (
    ARTEFACT,
    MIN_RUNS,
    UNITS,
    dataset_key,
    keyed_results,
    known_about,
    method_key,
    paper_named,
    paper_of,
)
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, load_catalogue
from cglsuite.reports.kit.tables import as_rows
from cglsuite.reports.rendering.job import computed
from cglsuite.reports.results.results import ReportedCell, load_campaign_results, load_results_by_device
from cglsuite.reports.results.tables import mean_interval, mean_std
from cglsuite.reports.studies.ledger.claims import claims_of, counts
from cglsuite.reports.studies.ledger.compute import (
    COLUMNS,
    JUDGED,
    LEDGER,
    RULE,
    VERDICTS,
    Ledger,
    Ours,
    load_ledger,
    margins,
    plain,
    shares,
    write_files,
)

# Where two papers print different values of the same thing: one setting crossed with both protocols, from records.
# If the papers differ because of that setting, a change of the setting moves either protocol's value, and the protocols agree where they
# share it.


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """A value that two papers print differently, with our values under both protocols for every value of a setting.

    Args:
        question: dataset, setting, method, metric (label), switch, given: as in :func:`cglsuite.campaigns.reference.disagreements`.
        printed: columns paper, preset, table, printed (text), mean (percent), artefact.
        ours: columns preset, paper, value (of the switch), n, mean, std (percent; NaN where there are too few), keys.
        effects: per preset the last value of the switch minus the first, paired over repetitions: columns preset, paper, n, effect, low,
            high. protocols: per value of the switch the second preset minus the first, over means: columns value, difference.
    """

    question: Mapping[str, str]
    printed: pd.DataFrame
    ours: pd.DataFrame
    effects: pd.DataFrame
    protocols: pd.DataFrame

    def to_json(self) -> dict[str, Any]:
        """Convert the crossing to JSON-serialisable values."""
        return {name: dict(value) if name == "question" else plain(value) for name, value in vars(self).items()}


def crossings(store: Store, catalogue: Catalogue, *, table: pd.DataFrame | None = None) -> list[Crossing]:
    """Return every row of :func:`cglsuite.campaigns.reference.disagreements` for which the presets are installed."""
    known = disagreements() if table is None else table
    there = set(catalogue.names("scenario"))
    return [_crossing_kinds(row, store, catalogue) for row in as_rows(known) if set(row["presets"].split("|")) <= there]


def _crossing_kinds(row: Mapping[str, str], store: Store, catalogue: Catalogue) -> Crossing:
    presets, values = row["presets"].split("|"), row["values"].split("|")
    orders = [int(order) for order in row["orders"].split("|")]
    method = next(name for name in catalogue.names("method") if method_key(name) == method_key(row["method"]))
    content = {
        "name": "disagreement",
        "grid": {"scenarios": presets, "methods": [method], "axes": {row["switch"]: values}},
        "seeds": {"order": orders, "init": orders},
        "run": {"numerics": "native"},  # those of the gallery's records
    }
    overrides = parse_overrides(filter(None, row["given"].split(";")), "disagreements")
    campaign, changed = Campaign.parse(content), Overrides(values=overrides)
    results = load_results_by_device(campaign, store, overrides=changed, catalogue=catalogue)[0]
    metric = paper_named(_paper(presets[0])).metrics[row["metric"]]
    scored = []
    for record in results.used:
        if (score := record.metrics.get(metric)) is not None:
            cell, value = record.cell, str(record.cell["configuration"][row["switch"]])
            scored.append((cell["scenario"], value, cell["seeds"]["order"], 100.0 * score, record.key))
    scores = pd.DataFrame(scored, columns=["preset", "value", "order", "score", "key"]).set_index("order")
    by_preset = {(p, v): scores[(scores["preset"] == p) & (scores["value"] == v)] for p in presets for v in values}
    means = {place: mean_std(part["score"].to_numpy(dtype=np.float64)) for place, part in by_preset.items()}
    effects = []
    for preset in presets:
        first, last = (by_preset[preset, value]["score"] for value in (values[0], values[-1]))
        both = first.index.intersection(last.index, sort=False)
        differences = (last[both] - first[both]).to_numpy(dtype=np.float64)
        effect = mean_interval(differences) | {"n": len(differences), "effect": mean_std(differences)["mean"]}
        effects.append({"preset": preset, "paper": _paper(preset), **effect})
    ours = [
        {"preset": preset, "paper": _paper(preset), "value": value, "keys": " ".join(by_preset[preset, value]["key"]), **numbers}
        for (preset, value), numbers in means.items()
    ]
    return Crossing(
        question=row,
        printed=_printed(row, presets),
        ours=pd.DataFrame(ours),
        effects=pd.DataFrame(effects).drop(columns="interval"),
        protocols=pd.DataFrame([{"value": v, "difference": means[presets[1], v]["mean"] - means[presets[0], v]["mean"]} for v in values]),
    )


def _paper(preset: str) -> str:
    paper = paper_of(preset.partition("@")[2])
    return "" if paper is None else paper.name


def _printed(row: Mapping[str, str], presets: list[str]) -> pd.DataFrame:
    table = keyed_results()
    mine = (table["setting"] == row["setting"]) & (table["problem"] == row["problem"]) & (table["metric"] == row["metric"])
    mine &= (table["method_key"] == method_key(row["method"])) & (table["variant"] == "") & table["mean"].notna()
    mine &= table["dataset"].map(dataset_key) == dataset_key(row["dataset"])
    rows = []
    for preset in presets:
        paper = paper_named(_paper(preset))
        for line in as_rows(table[mine & (table["paper"] == paper.name) & (table["backbone"] == paper.backbone)]):
            scale = 100.0 if line["unit"] == "fraction" else 1.0
            facts = {
                "paper": paper.name,
                "preset": preset,
                "table": line["table"],
                "printed": line["printed"],
                "mean": scale * line["mean"],
            }
            rows.append(facts | {"artefact": "; ".join(known_about(line).artefacts)})
    return pd.DataFrame(rows, columns=["paper", "preset", "table", "printed", "mean", "artefact"])


DIFFERENT = ("different, with a mechanism", "different, without")
SUMMARY = ["paper", "table", "printed", "reachable", "run", "equivalent", *DIFFERENT]
SUMMARY += ["undecided", *stats.PRECISIONS, "no verdict", "artefact", "failed", "n = 1"]
"""The columns of :attr:`Papers.summary`. ``no verdict``: one or two repetitions. ``n = 1``: one repetition; these rows also count in other
columns.
"""
_CELLS = ["paper", "dataset", "planned", "done", "missing", "absent", "hours", "expected_hours", "untimed"]


@dataclass(frozen=True, kw_only=True)
class Papers:
    """The ledgers of a selection of several papers.

    Args:
        ledgers: one per paper. checks: the result of :func:`cglsuite.reports.studies.papers.compute.checked` per paper.
        crossings: values that two papers print differently.
    """

    selection: Selection
    ledgers: tuple[Ledger, ...]
    checks: Mapping[str, pd.DataFrame]
    crossings: tuple[Crossing, ...]
    store: Path

    @property
    def title(self) -> str:
        """A title that describes the selection."""
        return f"Reproduction of {self.selection.title}"

    @cached_property
    def rows(self) -> pd.DataFrame:
        """All rows of the ledgers, with the columns of a ledger and ``mechanism``: the mechanisms that explain a difference."""
        frames = []
        for ledger in self.ledgers:
            checks = self.checks[ledger.reproduction.paper.name]
            good = explained(ledger, checks)
            names = {row: "; ".join(dict.fromkeys(part["mechanism"])) for row, part in checks.groupby("row") if row in good}
            frames.append(ledger.rows.assign(mechanism=[names.get(place, "") for place in ledger.rows.index]))
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=[*COLUMNS, "mechanism"])

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The counts of printed values per paper and table, with the columns :data:`SUMMARY`."""
        parts: Any = self.rows.groupby(["paper", "table"], sort=False)
        return pd.DataFrame([_counted(part) | {"paper": paper, "table": table} for (paper, table), part in parts], columns=SUMMARY)

    @cached_property
    def totals(self) -> dict[str, int]:
        """The counts of the summary over all tables."""
        return {name: int(self.summary[name].sum()) for name in SUMMARY[2:]}

    @cached_property
    def offsets(self) -> pd.DataFrame:
        """The deviations of tables by metric (see :func:`cglsuite.reports.studies.ledger.compute.offsets`)."""
        frames = [ledger.offsets for ledger in self.ledgers if len(ledger.offsets)]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    @cached_property
    def shares(self) -> pd.DataFrame:
        """The shares of rows within the margin, by table and metric (see :func:`cglsuite.reports.studies.ledger.compute.shares`)."""
        return shares(self.rows)

    @cached_property
    def margins(self) -> pd.DataFrame:
        """The margins by table and metric (see :func:`cglsuite.reports.studies.ledger.compute.margins`)."""
        return margins(self.rows)

    @cached_property
    def claims(self) -> pd.DataFrame:
        """The claims of the tables with our verdicts (see :func:`cglsuite.reports.studies.ledger.claims.claims_of`)."""
        return claims_of(self.ledgers, self.store)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The numbers of planned, finished and missing cells by paper and data set, with the hours of records and estimated hours of
        missing cells.

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
                    planned = canonical(cell.planned.request.to_json() | {"device": ""})  # the same on any device
                    known = by_dataset[cell.planned.cell.scenario.dataset]
                    if planned not in known or not known[planned].done:
                        known[planned] = cell
            paper = ledger.reproduction.paper.name
            rows += [{"paper": paper, "dataset": name} | _hours(cells.values(), means, ledger.absent) for name, cells in by_dataset.items()]
        return pd.DataFrame(rows, columns=_CELLS)

    @cached_property
    def records(self) -> list[str]:
        """The sorted keys of all records that the rows and the checks use."""
        keys = {key for text in self.rows["records"] for key in text.split()}
        keys |= {key for checks in self.checks.values() for text in checks["records"] for key in text.split()}
        return sorted(keys | {key for crossing in self.crossings for text in crossing.ours["keys"] for key in text.split()})


def load_papers(
    selection: Selection | Mapping[str, Any] | None = None,
    store: Store | str | Path | None = None,
    *,
    overrides: Overrides | Mapping[str, Any] | None = None,
    catalogue: Catalogue | None = None,
    mechanisms: pd.DataFrame | None = None,
) -> Papers:
    """Load the ledgers of all papers with rows in a selection from the records in a store. No cell is run.

    Args:
        selection: data set, setting, method and repetitions as for :func:`cglsuite.reports.studies.ledger.compute.load_ledger`; if it
            names a paper, only that paper is loaded. mechanisms: default :func:`cglsuite.campaigns.reference.mechanisms`.

    Raises:
        UnknownNameError, NotApplicable, UsageError: see :func:`cglsuite.campaigns.reference.reproduction.selections_of` and
            ``load_ledger``.
    """
    catalogue = catalogue or load_catalogue()
    store = store if isinstance(store, Store) else Store(store)
    wanted = selection if isinstance(selection, Selection) else Selection(**(selection or {}))
    place = store.path.resolve()
    papers = computed(Papers, lambda known: (known.selection, known.store.resolve(), mechanisms is None) == (wanted, place, True))
    if papers is not None:
        return papers
    ledgers = tuple(load_ledger(part, store, overrides=overrides, extras=False, catalogue=catalogue) for part in selections_of(wanted))
    checks = {ledger.reproduction.paper.name: checked(ledger, store, catalogue, table=mechanisms) for ledger in ledgers}
    whole = not (wanted.paper or wanted.dataset or wanted.setting or wanted.method)
    disagreeing = tuple(crossings(store, catalogue)) if whole else ()
    return Papers(selection=wanted, ledgers=ledgers, checks=checks, crossings=disagreeing, store=store.path)


def plain_reason(reason: str) -> str:
    """Return the reason why something cannot be run, without the paths of this machine.

    Example:
        >>> plain_reason("the data file a/b.npz is absent; put it below /data")
        'the data file a/b.npz is absent'
    """
    return reason.partition("; ")[0] if " is absent; " in reason else reason


def _counted(part: pd.DataFrame) -> dict[str, int]:
    verdict, different, unexplained = part["verdict"], part["verdict"] == "different", part["mechanism"] == ""
    some = {"printed": verdict.notna(), "reachable": verdict != "not runnable here", "run": verdict.isin(JUDGED)}
    some |= {DIFFERENT[0]: different & ~unexplained, DIFFERENT[1]: different & unexplained}
    some |= {name: verdict == name for name in ("equivalent", "undecided", "no verdict", "failed")}
    some |= {name: part["precision"] == name for name in stats.PRECISIONS}
    some |= {"artefact": verdict == ARTEFACT, "n = 1": part["our_n"].eq(1)}
    return {name: int(rows.sum()) for name, rows in some.items()}


def _mean_seconds(records: Iterable[Record]) -> dict[tuple[str, str], float]:
    """By preset and method, the mean duration of a cell."""
    times: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for record in records:
        if (seconds := record.timings_s.get("total")) is not None:
            times[record.cell["scenario"], record.cell["method"]][record.key] = float(seconds)
    return {place: math.fsum(known.values()) / len(known) for place, known in times.items()}


def _hours(cells: Iterable[ReportedCell], means: Mapping[tuple[str, str], float], absent: Mapping[str, str]) -> dict[str, Any]:
    shown = list(cells)
    done = [cell for cell in shown if cell.done]
    lacking = [(c, c.planned.cell is not None and c.planned.cell.scenario.dataset in absent) for c in shown if not c.done]
    missing = [cell for cell, away in lacking if not away]
    known = [means.get((cell.planned.request.scenario, cell.planned.request.method)) for cell in missing]
    timed = [seconds for seconds in known if seconds is not None]
    hours = math.fsum(float(cell.record.timings_s.get("total") or 0.0) for cell in done if cell.record is not None) / 3600
    counts = {
        "planned": len(shown),
        "done": len(done),
        "missing": len(missing),
        "absent": len(lacking) - len(missing),
        "untimed": len(missing) - len(timed),
    }
    return counts | {"hours": hours, "expected_hours": math.fsum(timed) / 3600}


# --- files -----------------------------------------------------------------------------------------------------------------------


def write_papers(papers: Papers, folder: Path) -> list[Path]:
    """Write ``ledger.csv`` (all rows) and ``ledger.json`` (rules, counts, checks) into a folder, atomically. Return their paths.

    Raises:
        StoreError: if the disk is full or the folder cannot be written.
    """
    described = {
        "ledger": LEDGER,
        "papers": [ledger.reproduction.paper.name for ledger in papers.ledgers],
        "rule": RULE,
        "least_repetitions": MIN_RUNS,
        "totals": papers.totals,
        "share_equivalent": share(papers.totals),
        "claims": {"counts": counts(papers.claims), "rows": plain(papers.claims)},
        "tables": plain(papers.summary),
        "cells": plain(papers.cells),
        "offsets": plain(papers.offsets),
        "shares": plain(papers.shares),
        "margins": plain(papers.margins),
        "mechanisms": {name: plain(checks) for name, checks in papers.checks.items()},
        "disagreements": [crossing.to_json() for crossing in papers.crossings],
        "verdicts": {verdict: int((papers.rows["verdict"] == verdict).sum()) for verdict in VERDICTS},
    }
    return write_files(papers.rows, described, folder)


def share(counts: Mapping[str, int]) -> float | None:
    """Return the share of equivalent rows among those with a test, or ``None`` if no row has a test."""
    tested = sum(counts[name] for name in ("equivalent", *DIFFERENT, "undecided"))
    return counts["equivalent"] / tested if tested else None


def misses(papers: Papers, verdicts: Sequence[str] = stats.AGREEMENTS[1:2]) -> pd.DataFrame:
    """Return the rows with the given verdicts (default: those that are different), with the largest difference in points first."""
    rows = papers.rows[papers.rows["verdict"].isin(verdicts)]
    return rows.sort_values("points", key=lambda points: -points.abs(), kind="stable")


# Why values here differ from printed ones: named changes of settings, each checked against records.
# A mechanism says under which settings the printed value is expected (:func:`cglsuite.campaigns.reference.mechanisms`). It was found on
# some orders or data sets and has to hold on others. The change is on top of the settings of a row, those that a search chose where its
# value has these. On repetitions that have a record with the change and one without, with values ``w`` and ``v``, it *closes the gap* to a
# printed value ``p`` where ``|p - mean(w)| <= |p - mean(v)| / 2``. A row of the ledger is then
# - *confirmed* if the gap closes on all repetitions and on at least three that are held out, whose differences ``w - v`` have a 95%
# interval without 0; - *refuted* if the gap does not close, or not on those that are held out; - *named* if it closes and fewer than three
# repetitions are held out; - *no records* if no record has the change.

STATES = ("confirmed", "refuted", "named", "no records")
CHECKS = ["mechanism", "row", "change", "reason", "state", "n", "held_out", "gap", "left", "effect", "low", "high", "why", "records"]
_PLACE = ("paper", "problem", "setting", "dataset", "method", "metric")
_LEVEL = 0.95


def concerns(mechanism: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Return whether a mechanism applies to a published row. An empty field matches everything, and ``|`` separates several values."""
    return all(not mechanism[name] or row[name] in mechanism[name].split("|") for name in _PLACE)


def closes(published: float, without: Sequence[float], changed: Sequence[float]) -> bool:
    """Return whether a change removes at least half of the distance to a printed value.

    Example:
        >>> closes(90.0, [80.0, 82.0], [88.0, 89.0])
        True
    """
    return abs(published - float(np.mean(changed))) <= abs(published - float(np.mean(without))) / 2


def checked(ledger: Ledger, store: Store, catalogue: Catalogue, *, table: pd.DataFrame | None = None) -> pd.DataFrame:
    """Check every mechanism that applies to a row of the ledger with a value.

    Args:
        table: of mechanisms; default :func:`cglsuite.campaigns.reference.mechanisms`.

    Returns:
        A row per mechanism and ledger row, with the columns :data:`CHECKS`: ``row`` is its index in ``ledger.rows``, ``n`` the number of
        repetitions with both records, ``held_out`` of them; ``gap`` (published - ours) and what is ``left`` of it over all of them; the
        ``effect`` of the change over those held out, with its 95% interval, all in the printed unit; ``why`` there is no check.
    """
    known = mechanisms() if table is None else table
    rows: list[dict[str, Any]] = []
    for mechanism in as_rows(known):
        for place, entry in enumerate(ledger.reproduction.entries):
            ours = ledger.values[ledger.values["row"] == place]
            if entry.recipe is None or ours.empty or not concerns(mechanism, entry.row):
                continue
            facts = {"mechanism": mechanism["mechanism"], "row": place, "change": mechanism["change"], "reason": mechanism["reason"]}
            without = dict(zip(ours["unit"], ours["value"], strict=True))
            rows.append(facts | _check(ledger, place, mechanism, without, store, catalogue))
    frame = pd.DataFrame(rows, columns=CHECKS)
    numbers = dict.fromkeys(("gap", "left", "effect", "low", "high"), "float64")
    return frame.astype(numbers).astype({"why": "object", "records": "object"}).fillna({"why": "", "records": ""})


def explained(ledger: Ledger, checks: pd.DataFrame) -> set[int]:
    """Return the ledger's rows with a mechanism that was confirmed on them, or that closes their gap and was confirmed elsewhere."""
    places: set[int] = set()
    datasets = ledger.rows["dataset"]
    for _, part in checks.groupby("mechanism", sort=False):
        confirmed = part[part["state"] == "confirmed"]
        places |= set(confirmed["row"])
        elsewhere = set(datasets.loc[list(confirmed["row"])])
        named = part[part["state"] == "named"]
        places |= {row for row in named["row"] if elsewhere - {datasets.loc[row]}}
    return places


def _check(
    ledger: Ledger,
    place: int,
    mechanism: Mapping[str, Any],
    without: Mapping[str, float],
    store: Store,
    catalogue: Catalogue,
) -> dict[str, Any]:
    entry = ledger.reproduction.entries[place]
    if entry.recipe is None:
        raise ValueError(f"row {place} has no recipe, so it cannot have a value")
    side = ledger.sides[place]
    choice = side.choice
    campaign = choice.campaign if choice else campaign_of(ledger.reproduction.selection, ledger.reproduction.paper, [entry.recipe])
    values = parse_overrides(mechanism["change"].split(";"), f"mechanism {mechanism['mechanism']}")
    try:
        overrides = Overrides(values=values, device=side.device)
        results = load_campaign_results(campaign, store, overrides=overrides, catalogue=catalogue, same_device=True)
    except CglsuiteError as error:
        return {"state": "no records", "n": 0, "held_out": 0, "why": str(error)}
    value = Ours(results, choice).value(entry.recipe)
    scale = UNITS[entry.row["unit"]].scale
    changed = {unit: scale * repetition for unit, repetition in zip(value.units, value.values, strict=True)}
    units = [unit for unit in without if unit in changed]
    if not units:
        return {
            "state": "no records",
            "n": 0,
            "held_out": 0,
            "why": value.reason or "no repetition has records with and without the change",
        }
    held_out = list(_held_out(units, entry.row["dataset"], mechanism["named"].split("|") if mechanism["named"] else []))
    published = float(entry.row["mean"])
    v, w = np.array([without[unit] for unit in units]), np.array([changed[unit] for unit in units])
    facts = {"n": len(units), "held_out": len(held_out), "gap": published - v.mean(), "left": published - w.mean()}
    facts |= {"records": " ".join(value.records)}
    if not closes(published, v.tolist(), w.tolist()):
        return facts | {"state": "refuted", "why": "the gap does not close"}
    if len(held_out) < MIN_RUNS:
        return facts | {"state": "named", "why": f"{len(held_out)} repetitions are held out; at least {MIN_RUNS} are needed"}
    return facts | confirmation(published, [without[unit] for unit in held_out], [changed[unit] for unit in held_out])


def _held_out(units: Sequence[str], dataset: str, used: Sequence[str]) -> Iterator[str]:
    """Repetitions that were not used to find a mechanism: neither they nor their order are among the named ones."""
    if any(dataset_key(name) == dataset_key(dataset) for name in used):
        return
    yield from (unit for unit in units if not {unit, unit.partition("/")[0]} & set(used))


def confirmation(published: float, without: Sequence[float], changed: Sequence[float]) -> dict[str, Any]:
    """Test whether a change of settings has an effect on held-out repetitions and closes their gap to a printed value."""
    differences = np.array(changed) - np.array(without)
    effect, interval = float(differences.mean()), mean_interval(differences, level=_LEVEL)
    low, high = (effect if math.isnan(interval[end]) else interval[end] for end in ("low", "high"))  # refused without any spread
    sure = (low > 0.0) == (high > 0.0) and effect != 0.0 and low * high > 0.0
    held = sure and closes(published, without, changed)
    why = (
        "" if held else "the effect on held-out repetitions is uncertain" if not sure else "the gap does not close on held-out repetitions"
    )
    return {"state": "confirmed" if held else "refuted", "effect": effect, "low": low, "high": high, "why": why}
