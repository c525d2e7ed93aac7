"""Where two papers print different values of the same thing: one setting crossed with both protocols, from records.

If the papers differ because of that setting, a change of the setting moves either protocol's value, and the protocols agree where they
share it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from cglsuite import stats
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.overrides import Overrides, parse_overrides
from cglsuite.campaigns.reference import disagreements
from cglsuite.campaigns.reference.matching import dataset_key, keyed_results, method_key
from cglsuite.campaigns.reference.papers import paper_named, paper_of
from cglsuite.campaigns.reference.values import known_about
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.results.results import load_results_by_device

if TYPE_CHECKING:
    from cglsuite.cells.engine import Engine
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue

__all__ = ["Crossing", "crossings"]


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """One value that two papers print differently, and ours under either protocol with each value of a setting.

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


def crossings(store: Store, catalogue: Catalogue, *, engine: Engine | None = None, table: pd.DataFrame | None = None) -> list[Crossing]:
    """Every row of :func:`cglsuite.campaigns.reference.disagreements` whose presets this installation has."""
    known = disagreements() if table is None else table
    there = set(catalogue.names("scenario"))
    return [_crossing(row, store, catalogue, engine) for row in as_rows(known) if set(row["presets"].split("|")) <= there]


def _crossing(row: Mapping[str, str], store: Store, catalogue: Catalogue, engine: Engine | None) -> Crossing:
    presets, values = row["presets"].split("|"), row["values"].split("|")
    orders = [int(order) for order in row["orders"].split("|")]
    method = next(name for name in catalogue.names("method") if method_key(name) == method_key(row["method"]))
    content = {
        "name": "disagreement",
        "grid": {"scenarios": presets, "methods": [method], "axes": {row["switch"]: values}},
        "seeds": {"order": orders, "init": orders},
    }
    given = parse_overrides(filter(None, row["given"].split(";")), "disagreements")
    campaign, changed = Campaign.parse(content), Overrides(values=given)
    results = load_results_by_device(campaign, store, overrides=changed, catalogue=catalogue, engine=engine)[0]
    metric = paper_named(_paper(presets[0])).metrics[row["metric"]]
    found: dict[tuple[str, str], dict[Any, tuple[float, str]]] = {(preset, value): {} for preset in presets for value in values}
    for record in results.used:
        place = (record.cell["scenario"], str(record.cell["configuration"][row["switch"]]))
        score = record.metrics.get(metric)
        if place in found and score is not None:
            found[place][record.cell["seeds"]["order"]] = (100.0 * score, record.key)
    return Crossing(
        question=row,
        printed=_printed(row, presets),
        ours=pd.DataFrame([_ours(preset, value, scores) for (preset, value), scores in found.items()]),
        effects=pd.DataFrame([_effect(preset, found[preset, values[0]], found[preset, values[-1]]) for preset in presets]),
        protocols=pd.DataFrame([_between(value, *(found[preset, value] for preset in presets)) for value in values]),
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
        for one in as_rows(table[mine & (table["paper"] == paper.name) & (table["backbone"] == paper.backbone)]):
            scale = 100.0 if one["unit"] == "fraction" else 1.0
            facts = {"paper": paper.name, "preset": preset, "table": one["table"], "printed": one["printed"], "mean": scale * one["mean"]}
            rows.append(facts | {"artefact": "; ".join(known_about(one).artefacts)})
    return pd.DataFrame(rows, columns=["paper", "preset", "table", "printed", "mean", "artefact"])


def _ours(preset: str, value: str, scores: Mapping[Any, tuple[float, str]]) -> dict[str, Any]:
    numbers = pd.Series([score for score, _ in scores.values()], dtype="float64")
    keys = " ".join(key for _, key in scores.values())
    facts = {"preset": preset, "paper": _paper(preset), "value": value, "n": len(numbers), "keys": keys}
    return facts | {"mean": float(numbers.mean()), "std": float(numbers.std(ddof=1))}


def _effect(preset: str, first: Mapping[Any, tuple[float, str]], last: Mapping[Any, tuple[float, str]]) -> dict[str, Any]:
    differences = [last[order][0] - first[order][0] for order in first if order in last]
    facts = {"preset": preset, "paper": _paper(preset), "n": len(differences), "low": math.nan, "high": math.nan}
    facts["effect"] = float(pd.Series(differences, dtype="float64").mean())
    try:
        interval = stats.mean_interval(differences)
    except stats.Refused:
        return facts
    return facts | {"low": interval.low, "high": interval.high}


def _between(value: str, first: Mapping[Any, tuple[float, str]], second: Mapping[Any, tuple[float, str]]) -> dict[str, Any]:
    means = [float(pd.Series([score for score, _ in scores.values()], dtype="float64").mean()) for scores in (first, second)]
    return {"value": value, "difference": means[1] - means[0]}
