"""Compute findings from all finished records of a store: differences between methods within scenarios and across data sets.

Within a scenario methods are compared in pairs over shared orders and seeds (:mod:`cglsuite.reports.studies.comparison`), adjusted by
Holm's method. Over scenarios the unit is the data set: each gives one mean per method, whatever its number of orders. Synthetic
data are left out, because they say nothing about the field.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cglsuite import stats
from cglsuite.base.atomic import write_atomic
from cglsuite.base.inputs import read_regular
from cglsuite.cells.records.metric_values import completed
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue
from cglsuite.reports.kit.tables import as_rows
from cglsuite.reports.results.costs import machine_of, memory_bytes
from cglsuite.reports.results.results import Results, results_of
from cglsuite.reports.results.tables import mean_interval
from cglsuite.reports.results.variants import record_variants
from cglsuite.reports.studies.comparison.compute import Comparison, needs, study
from cglsuite.specs import METRICS

ALPHA = 0.05
_MIN_SHARED = 2
DIFFERENCES = ["scenario", "preset", "setting", "first", "second", "n", "estimate", "low", "high", "p", "p_adjusted", "better", "verdict"]
DIFFERENCES += ["detectable", "given", "refused", "claimed"]
DATASET_PAIRS = ["setting", "first", "second", "datasets", "wins", "losses", "estimate", "smallest_p", "p", "verdict"]


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The findings from the finished records of a store.

    Args:
        results: all results. comparisons: one per scenario and backbone with two methods, by the metric of its kind of stream; one whose
            values equal another's (for example, because predictions do not depend on the query protocol) is left out.
        repeated: the comparisons that were left out.
        facts: by preset its dataset, setting, level, protocol, and whether switches were overridden.
        splits: see :func:`cglsuite.reports.studies.findings.compute.stored_splits`.
    """

    results: Results
    comparisons: tuple[Comparison, ...]
    repeated: tuple[Comparison, ...]
    facts: Mapping[str, Mapping[str, Any]]
    splits: pd.DataFrame

    @cached_property
    def differences(self) -> pd.DataFrame:
        """All declared pairs of every scenario, with the columns :data:`DIFFERENCES`.

        ``estimate`` (first - second) with its 95% interval and ``detectable`` (found with a power of 80% at the family's level) are in
        the metric's unit; ``better`` is the better method of a pair that differs, ``given`` the one order or seed that a claim is about,
        ``refused`` why there is no test, ``claimed`` whether it
        differs among all scenarios (:func:`cglsuite.stats.across_families`).
        """
        frame = pd.DataFrame(list(itertools.chain.from_iterable(map(self._pairs, self.comparisons))), columns=DIFFERENCES)
        p_of = {scenario: part["p_adjusted"].astype(float) for scenario, part in frame.groupby("scenario", sort=False)}
        selected, level = stats.across_families(list(p_of.values()), ALPHA)
        chosen = frame["scenario"].map(dict(zip(p_of, selected, strict=True))).astype(bool)
        return frame.assign(claimed=chosen & (frame["better"] != "") & (frame["p_adjusted"].astype(float) <= level))

    @cached_property
    def scenarios(self) -> pd.DataFrame:
        """One row per scenario: columns scenario, preset, methods, labels (methods with their settings), unit, n, pairs, tested,
        different, detectable (median, in the metric's unit), percent.
        """
        rows = []
        for comparison in self.comparisons:
            part = self.differences[self.differences["scenario"] == comparison.name]
            tested = part[part["refused"] == ""]
            methods = {"methods": len({method_of(label) for label in comparison.methods}), "labels": len(comparison.methods)}
            counts = {"pairs": len(part), "tested": len(tested), "different": int((tested["better"] != "").sum())}
            facts = {
                "scenario": comparison.name,
                "preset": comparison.preset,
                "percent": comparison.percent,
                "unit": comparison.unit if len(tested) else "",
            }
            rows.append(facts | methods | counts | {"n": tested["n"].max(), "detectable": tested["detectable"].median()})
        columns = ["scenario", "preset", "methods", "labels", "unit", "n", "pairs", "tested", "different", "detectable", "percent"]
        return pd.DataFrame(rows, columns=columns)

    @cached_property
    def means(self) -> pd.DataFrame:
        """One mean per method and data set. Columns: setting, dataset, preset, method, value.

        If a data set has several presets in one setting, the one with most methods counts; ties go to the last by name. Presets with
        overridden switches are left out, and so are references, which do not compete.
        """
        largest: dict[tuple[str, str], Comparison] = {}
        for comparison in sorted(self.comparisons, key=lambda c: (len(c.methods), c.preset)):
            facts = self.facts[comparison.preset]
            if not facts["modified"] and comparison.percent:
                largest[facts["setting"], facts["dataset"]] = comparison
        rows = []
        for (setting, dataset), comparison in largest.items():
            means = comparison.cells.groupby("method", sort=False)["value"].mean()
            rows += [
                {"setting": setting, "dataset": dataset, "preset": comparison.preset, "method": method, "value": value}
                for method, value in means.items()
                if self.results.competes(str(method))
            ]
        return pd.DataFrame(rows, columns=["setting", "dataset", "preset", "method", "value"])

    @cached_property
    def dataset_pairs(self) -> pd.DataFrame:
        """Pairs of methods tested with data sets as the unit and adjusted within a setting. Columns: :data:`DATASET_PAIRS`.

        ``wins`` and ``losses`` of the first; ``estimate``: Hodges and Lehmann's, with the direction of the ranks; ``smallest_p`` is the
        smallest p value that Wilcoxon's test can give with this number of data sets; ``verdict`` is
        the better method, that there is no significant difference, or why there is no test.
        """
        rows: list[dict[str, Any]] = []
        for setting, part in self.means.groupby("setting", sort=False):
            table = part.pivot(index="dataset", columns="method", values="value")
            has = table.notna().to_numpy().astype(int)
            shared = has.T @ has
            pairs = [(a, b) for (i, a), (j, b) in itertools.combinations(enumerate(table.columns), 2) if shared[i, j] >= _MIN_SHARED]
            rows += _verdicts([_dataset_pair(str(setting), a, b, table[[a, b]].dropna()) for a, b in pairs])
        return pd.DataFrame(rows, columns=DATASET_PAIRS).astype({"estimate": "float64", "smallest_p": "float64", "p": "float64"})

    def friedman(self, setting: str) -> stats.Friedman:
        """Run Friedman's test over the data sets of a setting, for the methods that have a mean on all of them.

        Raises:
            Refused: as :func:`cglsuite.stats.friedman`.
        """
        part = self.means[self.means["setting"] == setting]
        counts = part.groupby("method")["dataset"].nunique()
        common = counts[counts == part["dataset"].nunique()].index
        shared = part[part["method"].isin(common)].rename(columns={"dataset": "order"})
        return stats.friedman(shared[["method", "order", "value"]], alpha=ALPHA)

    @cached_property
    def rankings(self) -> pd.DataFrame:
        """Pairs of presets with the same methods (see :func:`cglsuite.reports.studies.findings.compute.rankings`)."""
        return rankings(self.comparisons, self.facts)

    @cached_property
    def changes(self) -> pd.DataFrame:
        """The effect of a change of preset on each method (see :func:`cglsuite.reports.studies.findings.compute.changes`)."""
        return changes(self.comparisons, self.facts, alpha=ALPHA)

    @cached_property
    def worth(self) -> pd.DataFrame:
        """The gain over fine-tuning and its cost in seconds and bytes (see :func:`cglsuite.reports.studies.findings.compute.worth`)."""
        return worth(self.results, self.comparisons, self.differences)

    def _pairs(self, comparison: Comparison) -> Iterable[dict[str, Any]]:
        try:
            tests = comparison.tests
            replication = needs(comparison, numbers=False)
        except stats.Refused:
            return
        for row, need in zip(as_rows(tests), as_rows(replication), strict=True):
            facts = {"scenario": comparison.name, "preset": comparison.preset, "setting": self.facts[comparison.preset]["setting"]}
            yield facts | {name: row[name] for name in DIFFERENCES if name in row} | {"detectable": need["detectable"]}


def _dataset_pair(setting: str, first: str, second: str, table: pd.DataFrame) -> dict[str, Any]:
    differences = table[first] - table[second]
    row = {"setting": setting, "first": first, "second": second, "datasets": len(table), "smallest_p": 2.0 ** (1 - len(table))}
    row |= {"wins": int((differences > 0).sum()), "losses": int((differences < 0).sum())}
    try:
        test = stats.wilcoxon(table[first], table[second], level=1.0 - ALPHA, unit="data sets")
    except stats.Refused as refusal:
        return row | {"estimate": np.nan, "p": np.nan, "verdict": f"refused: {refusal}"}
    return row | {"estimate": test.estimate, "p": test.p, "verdict": ""}


def _verdicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Holm's adjustment over the pairs of a setting that have a test."""
    adjusted: Any = stats.adjust([row["p"] for row in rows], "holm") if rows else []
    for row, p in zip(rows, adjusted, strict=True):
        if not row["verdict"]:
            better = row["first"] if row["estimate"] > 0.0 else row["second"]
            row["verdict"] = f"{better} is better" if p <= ALPHA and row["estimate"] else stats.NO_DIFFERENCE
    return rows


# --- from a store ----------------------------------------------------------------------------------------------------------------


def load_findings(store: Store | str | Path | None = None, *, catalogue: Catalogue | None = None) -> Findings:
    """Compute findings from all finished records in a store. No cell is run.

    Args:
        store: default ``$CGLSUITE_STORE``, else ``./.cglsuite``.
    """
    if catalogue is None:
        from cglsuite.host import load_catalogue

        catalogue = load_catalogue()
    store = store if isinstance(store, Store) else Store(store)
    records = [completed(record, catalogue) for record in store.records() if record.done]
    return findings_of(records, catalogue, store.path)


def findings_of(records: Sequence[Record], catalogue: Catalogue, store: Path) -> Findings:
    """Compute findings from finished records with complete metrics. The parts of forgetting are read from the store's folder."""
    records = [record for record in records if not _is_synthetic(record, catalogue)]
    variants = record_variants(records, catalogue)
    results = results_of(records, catalogue, store, variants=variants)
    comparisons: list[Comparison] = []
    for task_free in (False, True):
        some = [record for record in records if bool(record.stream) == task_free]
        if some:
            part = replace(results_of(some, catalogue, store, variants=variants), compared={})
            # For a whole store, all pairs are compared. Pairs of one method in two settings are counted separately.
            comparisons += [replace(comparison, groups=()) for comparison in study(part).comparisons if len(comparison.methods) > 1]
    facts = {record.cell["preset"]: _facts(record) for record in records}
    splits = stored_splits(store, {record.key: record for record in records})
    distinct, repeated = _distinct(comparisons, facts)
    return Findings(results=results, comparisons=distinct, repeated=repeated, facts=facts, splits=splits)


def _is_synthetic(record: Record, catalogue: Catalogue) -> bool:
    dataset = str(record.cell["scenario"]).partition("/")[0]
    return dataset in catalogue.names("dataset") and catalogue.dataset(dataset).embedded


def _distinct(
    comparisons: Sequence[Comparison], facts: Mapping[str, Mapping[str, Any]]
) -> tuple[tuple[Comparison, ...], tuple[Comparison, ...]]:
    """Comparisons with values that no earlier one has, unmodified presets first; and the remaining comparisons."""
    seen: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    distinct: list[Comparison] = []
    repeated: list[Comparison] = []
    for comparison in sorted(comparisons, key=lambda c: (facts[c.preset]["modified"], -len(c.cells))):
        columns = ["method", "order", "split", "seed", "value"]
        values = {tuple(row) for row in comparison.cells[columns].itertuples(index=False)}
        known = seen[facts[comparison.preset]["dataset"]]
        (repeated if values <= known else distinct).append(comparison)
        known |= values
    return tuple(sorted(distinct, key=lambda c: (c.preset, c.backbone))), tuple(repeated)


def _facts(record: Record) -> dict[str, Any]:
    name = str(record.cell["scenario"])
    facts = {"dataset": name.partition("/")[0], "protocol": name.partition("@")[2], "modified": record.cell["preset"] != name}
    return facts | {switch: str(record.scenario.get(switch) or "") for switch in ("setting", "level")}


# The effect of a change of protocol on rankings: Kendall's tau between two presets, next to that between repetitions of one preset.
# Two presets of one data set and setting rank the same methods in the same repetitions (order, split and init seed). A tau of 1 says that
# they rank alike. Rankings also change between two repetitions of one preset, which is what a change of the protocol has to be compared
# with.

RANKINGS = ["first", "second", "kind", "methods", "n", "tau", "low", "high", "within", "reason"]
CHANGES = ["first", "second", "kind", "method", "n", "effect", "low", "high", "p", "p_adjusted", "different", "rank_first", "rank_second"]
_MIN_METHODS = 3
_MIN_REPETITIONS = 2


def rankings(comparisons: Sequence[Comparison], facts: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Compare the rankings of every pair of presets that share at least three methods and two repetitions.

    Returns:
        Columns :data:`RANKINGS`: first, second (presets), kind (what differs), methods and n (shared), tau (the mean over repetitions of
        Kendall's tau-b between both rankings of the same repetition) with its 95% interval (Student's t over repetitions), within (the
        mean tau between two repetitions of one preset), reason (why there is no interval).
    """
    rows = []
    for first_comparison, other, first, second in _shared(comparisons, facts):
        taus = np.array([tau for a, b in zip(first, second, strict=True) if math.isfinite(tau := _tau(a, b))])
        inner = [_tau(a, b) for table in (first, second) for a, b in itertools.combinations(table, 2)]
        within = [tau for tau in inner if math.isfinite(tau)]
        row: dict[str, Any] = {"first": first_comparison.preset, "second": other.preset, "kind": _contrast(first_comparison, other, facts)}
        row |= {"methods": first.shape[1], "n": first.shape[0], "tau": float(taus.mean()) if taus.size else math.nan}
        interval = mean_interval(taus, bounds=(-1.0, 1.0), unit="repetitions")
        reason = interval["interval"] if math.isnan(interval["low"]) else ""
        rows.append(row | interval | {"within": float(np.mean(within)) if within else math.nan, "reason": reason})
    return pd.DataFrame(rows, columns=RANKINGS)


def changes(comparisons: Sequence[Comparison], facts: Mapping[str, Mapping[str, Any]], *, alpha: float = 0.05) -> pd.DataFrame:
    """Test the effect of a pair's second preset, compared with the first, on each method. Tests are paired over repetitions and adjusted
    over methods.

    Returns:
        Columns :data:`CHANGES`: effect (second - first, in the metric's unit) with its 95% interval, p, p_adjusted (Holm), different,
        rank_first and rank_second (mean rank among the shared methods, 1 = best).
    """
    frames = []
    for comparison, other, first, second in _shared(comparisons, facts):
        methods = _methods(comparison, other)
        ranks = [pd.DataFrame(-table).rank(axis=1).mean().to_numpy() for table in (first, second)]
        rows = []
        for place, method in enumerate(methods):
            row: dict[str, Any] = {
                "first": comparison.preset,
                "second": other.preset,
                "kind": _contrast(comparison, other, facts),
                "method": method,
            }
            row |= {"n": first.shape[0], "effect": float((second[:, place] - first[:, place]).mean())}
            row |= {"rank_first": ranks[0][place], "rank_second": ranks[1][place], "low": math.nan, "high": math.nan, "p": math.nan}
            try:
                test = stats.paired_t(second[:, place], first[:, place], unit="repetitions")
                row |= {"low": test.low, "high": test.high, "p": test.p}
            except stats.Refused:
                pass
            rows.append(row)
        frame = pd.DataFrame(rows, columns=CHANGES)
        frame["p_adjusted"] = stats.adjust(frame["p"].astype(float), "holm")
        frames.append(frame.assign(different=frame["p_adjusted"] <= alpha))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=CHANGES)


def _shared(comparisons: Sequence[Comparison], facts: Mapping[str, Mapping[str, Any]]) -> list[tuple[Comparison, Comparison, Any, Any]]:
    """Pairs of comparisons with the values of shared methods (columns) in shared repetitions (rows)."""
    shared = []
    for comparison, other in itertools.combinations(sorted(comparisons, key=lambda c: c.preset), 2):
        a, b = facts[comparison.preset], facts[other.preset]
        if any(a[name] != b[name] for name in ("dataset", "setting", "level")) or comparison.backbone != other.backbone:
            continue
        methods = _methods(comparison, other)
        if len(methods) < _MIN_METHODS:
            continue
        tables = [c.by_repetition[methods].dropna() for c in (comparison, other)]
        places = tables[0].index.intersection(tables[1].index)
        if len(places) >= _MIN_REPETITIONS:
            first, second = (table.loc[places].to_numpy(dtype=np.float64) for table in tables)
            shared.append((comparison, other, first, second))
    return shared


def _methods(comparison: Comparison, second: Comparison) -> list[str]:
    return [method for method in comparison.methods if method in second.methods]


def _tau(a: Any, b: Any) -> float:
    """Kendall's tau-b of two rankings of the same methods; NaN if all are tied."""
    from scipy import stats as scipy_stats

    return float(scipy_stats.kendalltau(np.round(a, 12), np.round(b, 12)).statistic)


def _contrast(comparison: Comparison, counterpart: Comparison, facts: Mapping[str, Mapping[str, Any]]) -> str:
    """The difference between two presets in words."""
    a, b = facts[comparison.preset], facts[counterpart.preset]
    if a["modified"] or b["modified"]:
        return "overridden switches"
    first, second = a["protocol"], b["protocol"]
    family, _, version = first.rpartition("-")
    if family == second.rpartition("-")[0]:
        return f"version {version} to {second.rpartition('-')[2]}"
    return "task by task to global" if second.startswith("global") else f"{first} to {second}"


# The gain of every method over fine-tuning, next to its cost in memory and seconds.

WORTH = ["scenario", "preset", "method", "n", "gain", "low", "high", "p_adjusted", "better", "seconds", "bytes", "frontier", "percent"]
_REFERENCE = "bare"


def worth(results: Results, comparisons: Sequence[Comparison], differences: pd.DataFrame) -> pd.DataFrame:
    """Compare every method with fine-tuning in every scenario: its gain and its cost.

    Args:
        differences: :attr:`cglsuite.reports.studies.findings.compute.Findings.differences`.

    Returns:
        Columns :data:`WORTH`: gain over fine-tuning in the metric's unit with its 95% interval, p_adjusted (Holm, over the pairs of the
        scenario), better (whether the gain is significant), seconds (over fine-tuning's, geometric mean over shared repetitions on the same
        class of machine), bytes (mean memory beyond the model), frontier (no method of the scenario gains more for no more seconds and
        bytes; references are left out of it), percent (whether the unit is a fraction).
    """
    records = {record.key: record for record in results.used}
    frames = []
    for comparison in comparisons:
        mine = {str(method): part for method, part in comparison.cells.groupby("method", sort=False)}
        if _REFERENCE not in mine:
            continue
        pairs = differences[differences["scenario"] == comparison.name]
        rows = []
        for row in as_rows(pairs):
            if _REFERENCE not in (row["first"], row["second"]):
                continue
            method = row["second"] if row["first"] == _REFERENCE else row["first"]
            sign = (1.0 if comparison.higher_is_better else -1.0) * (-1.0 if row["first"] == _REFERENCE else 1.0)
            low, high = sorted((sign * row["low"], sign * row["high"]))
            facts = {
                "scenario": comparison.name,
                "preset": comparison.preset,
                "method": method,
                "n": row["n"],
                "percent": comparison.percent,
            }
            facts |= {"low": low, "high": high, "p_adjusted": row["p_adjusted"], "better": row["better"] == method}
            facts["gain"] = _gain(sign * row["estimate"], comparison, mine[method], mine[_REFERENCE])
            facts["seconds"] = _seconds(records, mine[method], mine[_REFERENCE])
            facts["bytes"] = float(np.mean([memory_bytes(records[key]) for key in mine[method]["key"] if key in records]))
            rows.append(facts)
        frames.append(pd.DataFrame([row | {"frontier": _is_efficient(row, rows, results)} for row in rows], columns=WORTH))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=WORTH)


def method_of(label: str) -> str:
    """Return the method in a label that may include its settings: ``ewc (lr=0.01)``."""
    return label.partition(" (")[0]


def _gain(tested: float, comparison: Comparison, method: pd.DataFrame, reference: pd.DataFrame) -> float:
    """The tested difference over shared repetitions; without a test, the difference of the means."""
    if tested == tested:
        return float(tested)
    difference = float(method["value"].mean() - reference["value"].mean())
    return difference if comparison.higher_is_better else -difference


def _seconds(records: Any, method: pd.DataFrame, reference: pd.DataFrame) -> float:
    places = ["order", "split", "seed"]
    shared = method.merge(reference, on=places, suffixes=("", "_reference"))
    logs = []
    for row in as_rows(shared):
        mine, theirs = records.get(row["key"]), records.get(row["key_reference"])
        if mine is None or theirs is None or machine_of(mine) != machine_of(theirs):
            continue
        a, b = mine.timings_s.get("total"), theirs.timings_s.get("total")
        if a and b:
            logs.append(math.log(a / b))
    return math.exp(float(np.mean(logs))) if logs else math.nan


def _is_efficient(row: dict[str, Any], alternatives: list[dict[str, Any]], results: Results) -> bool:
    """Whether no other learner is as good in gain, seconds and bytes and better in one; fine-tuning has 0, 1, 0."""
    if not results.competes(row["method"]):
        return False
    mine = _efficiency_point(row)
    rivals = [_efficiency_point(other) for other in alternatives if other["method"] != row["method"] and results.competes(other["method"])]
    return not any(all(r >= m for r, m in zip(rival, mine, strict=True)) and rival != mine for rival in [*rivals, (0.0, -1.0, 0.0)])


def _efficiency_point(row: dict[str, Any]) -> tuple[float, float, float]:
    """Gain, minus seconds and minus bytes, for comparison; unknown seconds are infinite."""
    seconds = row["seconds"] if row["seconds"] == row["seconds"] else math.inf
    return row["gain"], -seconds, -row["bytes"]


# The two parts of forgetting, which ``cglsuite cell --split-forgetting`` stores next to the records of a store.
# A record has no performance of old weights in the new graph. The split trains once more, and its parts are kept in ``splits/<key>.json``.

SPLITS = "splits"
"""The folder of a store with splits of forgetting, a file per record."""
_PARTS = ("forgetting", "drift", "weights")
_REPETITION = ["preset", "backbone", "order", "split", "init"]
_COLUMNS = [*_REPETITION, "method", *_PARTS, "key"]
_UNFORGETTING = METRICS["excess_forgetting"].reference


def keep_split(store: Path, key: str, parts: Mapping[str, Any]) -> Path:
    """Write the two parts of a record's forgetting into its store, and return the path of the file.

    Args:
        parts: forgetting, drift and weights, in the unit of performance, and any further information about them.

    Raises:
        StoreError: if the disk is full or the folder cannot be written.
    """
    path = store / SPLITS / f"{key}.json"
    write_atomic(path, (json.dumps(dict(parts), indent=1, sort_keys=True) + "\n").encode(), top=store)
    return path


def stored_splits(store: Path, records: Mapping[str, Record]) -> pd.DataFrame:
    """Return one row for each record of the store with split forgetting, in the record's unit.

    A file that is not a split, or that belongs to no record of the store, is left out.

    Returns:
        Columns preset, backbone, order, split, init (seeds), method, forgetting, drift, weights, key, excess (change of weights minus that
        of ``frozen-ncm`` in the same preset, backbone and seeds; NaN where that was not split).
    """
    rows: list[dict[str, Any]] = []
    for path in sorted((store / SPLITS).glob("*.json")):
        record = records.get(path.stem)
        try:
            content = json.loads(read_regular(path))
            numbers = {name: float(content[name]) for name in _PARTS}
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if record is not None:
            facts = {name: record.cell[name] for name in ("preset", "backbone", "method")} | record.cell["seeds"]
            rows.append(facts | numbers | {"key": record.key})
    frame = pd.DataFrame(rows, columns=_COLUMNS)
    frozen = frame[frame["method"] == _UNFORGETTING].groupby(_REPETITION)["weights"].mean()
    return frame.merge(frozen.rename("excess"), "left", on=_REPETITION).assign(excess=lambda both: both["weights"] - both["excess"])
