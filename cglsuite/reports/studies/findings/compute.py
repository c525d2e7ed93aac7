"""Every finished record of a store as findings: differences between methods within scenarios, and with data sets as the unit.

Within a scenario methods are compared in pairs over shared orders and seeds (:mod:`cglsuite.reports.studies.comparison`), adjusted by
Holm's method. Over scenarios the unit is the data set: each gives one mean per method, whatever its number of orders. Data that are made up
say nothing of the field, and are left out.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cglsuite import stats
from cglsuite.base.hashing import canonical
from cglsuite.cells.records.metric_values import completed
from cglsuite.cells.storage.store import Store
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.results.results import CampaignResults, results_of
from cglsuite.reports.results.variants import record_variants
from cglsuite.reports.studies.comparison.compute import Comparison, needs, study
from cglsuite.reports.studies.findings.forgetting import kept_splits
from cglsuite.reports.studies.findings.rankings import changes, rankings
from cglsuite.reports.studies.findings.worth import competes, method_of, worth

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.host import Catalogue

__all__ = ["ALPHA", "DATASET_PAIRS", "DIFFERENCES", "Findings", "findings_of", "load_findings"]

ALPHA = 0.05
_LEAST = 2
DIFFERENCES = ["scenario", "preset", "setting", "first", "second", "n", "estimate", "low", "high", "p", "p_adjusted", "better", "verdict"]
DIFFERENCES += ["detectable", "given", "refused"]
DATASET_PAIRS = ["setting", "first", "second", "datasets", "wins", "losses", "estimate", "smallest_p", "p", "verdict"]


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the finished records of a store say.

    Args:
        results: all of them. comparisons: one per scenario and backbone with two methods, by the metric of its kind of stream; one whose
            values are those of another (as where answers do not depend on how queries are asked) is left out.
        repeated: those that were left out. facts: by preset its dataset, setting, level, protocol, and whether switches were overridden.
        splits: see :func:`cglsuite.reports.studies.findings.forgetting.kept_splits`.
    """

    results: CampaignResults
    comparisons: tuple[Comparison, ...]
    repeated: tuple[Comparison, ...]
    facts: Mapping[str, Mapping[str, Any]]
    splits: pd.DataFrame

    @cached_property
    def differences(self) -> pd.DataFrame:
        """Every declared pair of every scenario, with the columns :data:`DIFFERENCES`.

        ``estimate`` (first - second) with its 95 % interval and ``detectable`` (found with a power of 80 % at the family's level) are in
        the metric's unit; ``better`` is the better method of a pair that differs, ``given`` the one order or seed that a claim is about,
        ``refused`` why there is no test.
        """
        return pd.DataFrame(list(itertools.chain.from_iterable(map(self._pairs, self.comparisons))), columns=DIFFERENCES)

    @cached_property
    def scenarios(self) -> pd.DataFrame:
        """By scenario: columns scenario, preset, methods, labels (methods with their settings), unit, n, pairs, tested, different,
        detectable (median, in the metric's unit), percent."""
        rows = []
        for one in self.comparisons:
            part = self.differences[self.differences["scenario"] == one.name]
            tested = part[part["refused"] == ""]
            facts = {"scenario": one.name, "preset": one.preset, "labels": len(one.methods), "pairs": len(part), "tested": len(tested)}
            facts["methods"] = len({method_of(label) for label in one.methods})
            median = tested["detectable"].median() if len(tested) else float("nan")
            unit = one.unit if len(tested) else ""
            facts |= {"different": int((tested["better"] != "").sum()), "detectable": median, "percent": one.percent, "unit": unit}
            rows.append(facts | {"n": tested["n"].max() if len(tested) else float("nan")})
        columns = ["scenario", "preset", "methods", "labels", "unit", "n", "pairs", "tested", "different", "detectable", "percent"]
        return pd.DataFrame(rows, columns=columns)

    @cached_property
    def means(self) -> pd.DataFrame:
        """One mean per method and data set: columns setting, dataset, preset, method, value.

        Of several presets of one data set in one setting, the one with most methods counts, of these the last by name. Presets with
        overridden switches and joint training, which does not compete, are left out.
        """
        chosen: dict[tuple[str, str], Comparison] = {}
        for one in sorted(self.comparisons, key=lambda c: (len(c.methods), c.preset)):
            facts = self.facts[one.preset]
            if not facts["modified"] and one.percent:
                chosen[facts["setting"], facts["dataset"]] = one
        rows = []
        for (setting, dataset), one in chosen.items():
            means = one.cells.groupby("method", sort=False)["value"].mean()
            rows += [
                {"setting": setting, "dataset": dataset, "preset": one.preset, "method": method, "value": value}
                for method, value in means.items()
                if competes(str(method))
            ]
        return pd.DataFrame(rows, columns=["setting", "dataset", "preset", "method", "value"])

    @cached_property
    def dataset_pairs(self) -> pd.DataFrame:
        """Pairs of methods with data sets as the unit, adjusted within a setting: columns :data:`DATASET_PAIRS`.

        ``wins`` and ``losses`` of the first; ``estimate``: Hodges and Lehmann's, with the direction of the ranks; ``smallest_p`` is the
        least that Wilcoxon's test can give with so many data sets; ``verdict``
        the better method, that there is no significant difference, or why there is no test.
        """
        rows: list[dict[str, Any]] = []
        for setting, part in self.means.groupby("setting", sort=False):
            table = part.pivot(index="dataset", columns="method", values="value")
            has = table.notna().to_numpy().astype(int)
            shared = has.T @ has
            pairs = [(a, b) for (i, a), (j, b) in itertools.combinations(enumerate(table.columns), 2) if shared[i, j] >= _LEAST]
            rows += _verdicts([_dataset_pair(str(setting), a, b, table[[a, b]].dropna()) for a, b in pairs])
        return pd.DataFrame(rows, columns=DATASET_PAIRS).astype({"estimate": "float64", "smallest_p": "float64", "p": "float64"})

    def friedman(self, setting: str) -> stats.Friedman:
        """Friedman's test over the data sets of a setting, of the methods that all of them have.

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
        """Pairs of presets that ask the same methods: see :func:`cglsuite.reports.studies.findings.rankings.rankings`."""
        return rankings(self.comparisons, self.facts)

    @cached_property
    def changes(self) -> pd.DataFrame:
        """What the change of a preset does to each method: see :func:`cglsuite.reports.studies.findings.rankings.changes`."""
        return changes(self.comparisons, self.facts, alpha=ALPHA)

    @cached_property
    def worth(self) -> pd.DataFrame:
        """What seconds and bytes buy over fine-tuning: see :func:`cglsuite.reports.studies.findings.worth.worth`."""
        return worth(self.results, self.comparisons, self.differences)

    def _pairs(self, one: Comparison) -> Iterable[dict[str, Any]]:
        try:
            tests = one.tests
            found = needs(one, numbers=False)
        except stats.Refused:
            return
        for row, need in zip(as_rows(tests), as_rows(found), strict=True):
            facts = {"scenario": one.name, "preset": one.preset, "setting": self.facts[one.preset]["setting"]}
            yield facts | {name: row[name] for name in DIFFERENCES if name in row} | {"detectable": need["detectable"]}


def _dataset_pair(setting: str, first: str, second: str, table: pd.DataFrame) -> dict[str, Any]:
    differences = (table[first] - table[second]).to_numpy(dtype=np.float64)
    row: dict[str, Any] = {"setting": setting, "first": first, "second": second, "datasets": len(table), "verdict": ""}
    row |= {
        "estimate": np.nan,
        "p": np.nan,
        "wins": int((differences > 0).sum()),
        "losses": int((differences < 0).sum()),
        "smallest_p": 2.0 ** (1 - len(table)),
    }
    try:
        found = stats.wilcoxon(table[first], table[second], level=1.0 - ALPHA, unit="data sets")
        row |= {"estimate": found.estimate, "p": found.p}
    except stats.Refused as refusal:
        row["verdict"] = f"refused: {refusal}"
    return row


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
    """The findings of all finished records in a store; nothing is run.

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
    """The findings of finished records whose metrics are complete; splits of forgetting are looked for in the folder of the store."""
    records = [record for record in records if not _made_up(record, catalogue)]
    distinct: dict[tuple[str, ...], Record] = {}
    for record in records:
        cell = record.cell
        distinct.setdefault((cell["preset"], cell["method"], cell["backbone"], canonical(cell["configuration"])), record)
    variants = record_variants(distinct.values(), catalogue)
    results = results_of(records, catalogue, store, variants=variants)
    comparisons: list[Comparison] = []
    for task_free in (False, True):
        some = [record for record in records if bool(record.stream) == task_free]
        if some:
            part = replace(results_of(some, catalogue, store, variants=variants), joint={})
            comparisons += [one for one in study(part).comparisons if len(one.methods) > 1]
    facts = {record.cell["preset"]: _facts(record) for record in distinct.values()}
    splits = kept_splits(store, {record.key: record for record in records})
    kept, repeated = _distinct(comparisons, facts)
    return Findings(results=results, comparisons=kept, repeated=repeated, facts=facts, splits=splits)


def _made_up(record: Record, catalogue: Catalogue) -> bool:
    dataset = str(record.cell["scenario"]).partition("/")[0]
    return dataset in catalogue.names("dataset") and catalogue.dataset(dataset).embedded


def _distinct(
    comparisons: Sequence[Comparison], facts: Mapping[str, Mapping[str, Any]]
) -> tuple[tuple[Comparison, ...], tuple[Comparison, ...]]:
    """Comparisons whose values no earlier one has, presets without overridden switches first; and the others."""
    seen: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    kept: list[Comparison] = []
    repeated: list[Comparison] = []
    for one in sorted(comparisons, key=lambda c: (facts[c.preset]["modified"], -len(c.cells))):
        columns = ["method", "order", "split", "seed", "value"]
        values = {tuple(row) for row in one.cells[columns].itertuples(index=False)}
        known = seen[facts[one.preset]["dataset"]]
        (repeated if values <= known else kept).append(one)
        known |= values
    return tuple(sorted(kept, key=lambda c: (c.preset, c.backbone))), tuple(repeated)


def _facts(record: Record) -> dict[str, Any]:
    name, preset = str(record.cell["scenario"]), str(record.cell["preset"])
    facts = {
        "dataset": name.partition("/")[0],
        "setting": str(record.scenario.get("setting") or ""),
        "level": str(record.scenario.get("level") or ""),
    }
    return facts | {"protocol": name.partition("@")[2], "modified": preset != name}
