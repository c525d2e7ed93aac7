"""Findings over a store: pairs and their tests, data sets as the unit, rankings by hand, what memory buys, and their sentences."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from page_elements import texts
from report_lab import CAMPAIGN, assert_harmless, catalogue_of, page_with, record_of
from scipy import stats as scipy_stats

from cglsuite import stats
from cglsuite.base.hashing import digest
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.records.metric_values import completed
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue
from cglsuite.reports.studies.comparison.compute import Comparison, Question
from cglsuite.reports.studies.findings import page as show_findings
from cglsuite.reports.studies.findings.compute import (
    SPLITS,
    Findings,
    changes,
    keep_split,
    load_findings,
    rankings,
    stored_splits,
)
from cglsuite.reports.studies.findings.page import headlines
from cglsuite.specs import DatasetSpec, ScenarioSpec

N = 5
NOISE = np.random.default_rng(3).normal(0.0, 0.01, (4, N))
LEVELS = {"bare": 0.5, "ewc": 0.52, "packnet": 0.8, "joint": 0.9}
SECTIONS = show_findings.__all__


def catalogue(*extra: Any) -> Catalogue:
    """The toy catalogue with a second preset of Cora, and a data set that is made up."""
    specs = [
        ("scenario", ScenarioSpec(name="cora/task-il@begin-2", summary="Cora", dataset="cora", setting="task-il", edge_policy="none")),
        ("scenario", ScenarioSpec(name="made/task-il@example-1", summary="made", dataset="made", setting="task-il")),
        ("dataset", DatasetSpec(name="made", summary="made up", factory="json:loads", embedded=True)),
    ]
    return catalogue_of(*specs, *extra)


def value_of(planned: PlannedCell) -> float:
    """By method and repetition; in the second preset of Cora EWC and PackNet change places."""
    request = planned.request
    swapped = request.scenario == "cora/task-il@begin-2"
    method = {"ewc": "packnet", "packnet": "ewc"}.get(request.method, request.method) if swapped else request.method
    return LEVELS[method] + (-1 if swapped else 1) * float(NOISE[list(LEVELS).index(request.method), request.seeds.init])


def made(planned: PlannedCell, **changes: Any) -> Record:
    """A record whose average performance is that value; packnet keeps 1,000 bytes and takes twice as long as the others."""
    value, packnet = value_of(planned), planned.request.method == "packnet"
    matrix = np.where(np.vstack([np.zeros((1, 3)), np.tril(np.ones((3, 3)))]) > 0, value, 0.1)
    memory = {"peak_bytes": 10**8, "items": 0, "edges": 0, "bytes": 1000 if packnet else 0, "budget_items": None}
    times = {"training": 8.0, "method": 1.0, "evaluation": 0.5, "framework": 0.5, "total": 20.0 if packnet else 10.0}
    return record_of(planned, matrix=matrix, memory=memory, timings_s=times, **changes)


def planned(known: Catalogue, *scenarios: str) -> list[PlannedCell]:
    seeds = {"order": list(range(N)), "split": list(range(N)), "init": list(range(N))}
    content = CAMPAIGN | {"grid": CAMPAIGN["grid"] | {"scenarios": list(scenarios)}, "seeds": seeds}
    return [cell for cell in plan_campaign(Campaign.parse(content), known) if cell.ready]


ALL = ("cora/task-il@begin-1", "cora/task-il@begin-2", "toy/class-il@cglb-1", "made/task-il@example-1")


def findings_in(path: Path, *scenarios: str) -> Findings:
    known, store = catalogue(), Store(path)
    for cell in planned(known, *(scenarios or ALL)):
        store.put(made(cell))
    return load_findings(store, catalogue=known)


# --- pairs of methods ------------------------------------------------------------------------------------------------------------


def test_pairs_are_tested_within_scenarios_and_made_up_data_are_left_out(tmp_path: Path) -> None:
    """The paired t-tests of SciPy, adjusted over the six pairs of a scenario."""
    found = findings_in(tmp_path)
    assert [one.preset for one in found.comparisons] == ["cora/task-il@begin-1", "cora/task-il@begin-2", "toy/class-il@cglb-1"]
    part = found.differences[found.differences["preset"] == "cora/task-il@begin-1"]
    assert len(part) == 6
    values = {m: LEVELS[m] + NOISE[list(LEVELS).index(m)] for m in LEVELS}
    p = [scipy_stats.ttest_rel(values[a], values[b]).pvalue for a, b in zip(part["first"], part["second"], strict=True)]
    assert part["p"].to_list() == pytest.approx(p)
    assert part["p_adjusted"].to_list() == pytest.approx(stats.adjust(p, "holm").tolist())
    for row in part.to_dict(orient="records"):
        higher = max(row["first"], row["second"], key=lambda m: values[m].mean())
        assert row["better"] == (higher if row["p_adjusted"] <= 0.05 else "")
        assert row["n"] == N
    scenario = found.scenarios.set_index("preset").loc["cora/task-il@begin-1"]
    assert scenario["different"] == (part["p_adjusted"] <= 0.05).sum() > 0
    assert scenario["detectable"] == pytest.approx(part["detectable"].median())
    assert 0.0 < scenario["detectable"] < 0.2


def test_a_scenario_that_repeats_the_values_of_another_counts_once(tmp_path: Path) -> None:
    """As where pooled queries get the same answers as queries task by task."""
    known, store = catalogue(), Store(tmp_path)
    for cell in planned(known, "cora/task-il@begin-1"):
        store.put(made(cell))
        record = made(cell)
        other = record.with_parts(cell={**record.cell, "preset": "cora/task-il@begin-1+0123abcd"})
        store.put(Record(**{**{f: getattr(other, f) for f in other.__dataclass_fields__}, "key": "f" * 32 + record.key[:32]}))
    found = load_findings(store, catalogue=known)
    assert [one.preset for one in found.comparisons] == ["cora/task-il@begin-1"]
    assert [one.preset for one in found.repeated] == ["cora/task-il@begin-1+0123abcd"]
    assert "exactly the same values" in " ".join(texts(page_with(show_findings.differences(found)), "figcaption"))


# --- data sets -------------------------------------------------------------------------------------------------------------------


def test_data_sets_are_the_unit_of_claims_about_methods(tmp_path: Path) -> None:
    """One mean per data set and setting, of the preset with most methods; joint training and too few data sets take no part."""
    found = findings_in(tmp_path)
    cora = found.means[found.means["dataset"] == "cora"].set_index("method")
    assert set(cora["preset"]) == {"cora/task-il@begin-2"}
    assert set(cora.index) == {"bare", "ewc", "packnet"}
    assert cora.loc["ewc", "value"] == pytest.approx(0.8 - NOISE[1].mean())
    assert found.dataset_pairs.empty
    with pytest.raises(stats.Refused):
        found.friedman("task-il")


def test_six_data_sets_are_enough_for_a_test(tmp_path: Path) -> None:
    """All in favour of one method: the smallest p that Wilcoxon's test has, 2 / 2⁶; with five data sets there is no test."""
    rows = [
        {"setting": "task-il", "dataset": f"d{i}", "preset": f"d{i}/task-il@x-1", "method": method, "value": value + 0.001 * i * (i + j)}
        for i in range(6)
        for j, (method, value) in enumerate({"a": 0.9, "b": 0.5}.items())
    ]
    for n, verdict in ((6, "a is better"), (5, "refused")):
        found = findings_in(tmp_path / str(n), "cora/task-il@begin-1")
        object.__setattr__(found, "means", pd.DataFrame(rows[: 2 * n]))
        (pair,) = found.dataset_pairs.to_dict(orient="records")
        assert (pair["datasets"], pair["wins"], pair["losses"], pair["smallest_p"]) == (n, n, 0, 2.0 ** (1 - n))
        assert pair["verdict"].startswith(verdict)
        assert pair["p"] == pytest.approx(2.0**-5) if n == 6 else np.isnan(pair["p"])


# --- rankings --------------------------------------------------------------------------------------------------------------------


def comparison(preset: str, values: dict[str, list[float]], up: bool = True) -> Comparison:
    """A value per method and repetition."""
    rows = [{"method": m, "order": str(i), "split": "0", "seed": "0", "value": v} for m, some in values.items() for i, v in enumerate(some)]
    return Comparison(
        preset=preset, title=preset, backbone="gcn", performance="accuracy", percent=True, question=Question(),
        higher_is_better=up, cells=pd.DataFrame(rows), lacking={},
    )  # fmt: skip


FACTS = {
    f"cora/class-il@{name}": {"dataset": "cora", "setting": "class-il", "level": "NC", "protocol": name, "modified": False}
    for name in ("cglb-1", "cglb-2", "global-1")
}
FIRST = {"a": [0.9, 0.8, 0.9, 0.7], "b": [0.5, 0.6, 0.4, 0.8], "c": [0.1, 0.2, 0.3, 0.1], "d": [0.0, 0.1, 0.2, 0.0]}
SECOND = FIRST | {"a": [0.3, 0.3, 0.35, 0.25]}


def test_taus_by_hand() -> None:
    """Kendall's tau of the same repetition by SciPy, Student's interval over repetitions, and the tau between repetitions of one preset."""
    one, two = comparison("cora/class-il@cglb-1", FIRST), comparison("cora/class-il@cglb-2", SECOND)
    (row,) = rankings([two, one], FACTS).to_dict(orient="records")
    taus = [scipy_stats.kendalltau([v[i] for v in FIRST.values()], [v[i] for v in SECOND.values()]).statistic for i in range(4)]
    assert (row["first"], row["second"], row["kind"]) == ("cora/class-il@cglb-1", "cora/class-il@cglb-2", "version 1 to 2")
    assert (row["methods"], row["n"], row["tau"]) == (4, 4, pytest.approx(np.mean(taus)))
    low, high = scipy_stats.t.interval(0.95, 3, loc=np.mean(taus), scale=scipy_stats.sem(taus))
    assert (row["low"], row["high"]) == (pytest.approx(max(low, -1.0)), pytest.approx(min(high, 1.0)))
    inner = [
        scipy_stats.kendalltau([v[i] for v in some.values()], [v[j] for v in some.values()]).statistic
        for some in (FIRST, SECOND)
        for i in range(4)
        for j in range(i)
    ]
    assert row["within"] == pytest.approx(np.mean(inner))


def test_what_moves_between_two_presets() -> None:
    """A paired t-test per method; three methods do not move at all, and have no test."""
    one, two = comparison("cora/class-il@cglb-1", FIRST), comparison("cora/class-il@cglb-2", SECOND)
    frame = changes([one, two], FACTS).set_index("method")
    expected = scipy_stats.ttest_rel(SECOND["a"], FIRST["a"])
    assert (frame.loc["a", "effect"], frame.loc["a", "p"]) == (pytest.approx(np.mean(SECOND["a"]) - 0.825), pytest.approx(expected.pvalue))
    assert bool(frame.loc["a", "different"])
    assert not frame.loc[["b", "c", "d"], "different"].any()
    assert (frame.loc["a", "rank_first"], frame.loc["a", "rank_second"]) == (1.25, pytest.approx(2.0))
    assert frame.loc["b", "effect"] == 0.0


def test_rankings_need_three_methods_and_two_repetitions() -> None:
    few = {name: FIRST[name] for name in ("a", "b")}
    once = {name: values[:1] for name, values in FIRST.items()}
    one = comparison("cora/class-il@cglb-1", FIRST)
    assert rankings([one, comparison("cora/class-il@cglb-2", few)], FACTS).empty
    assert rankings([one, comparison("cora/class-il@cglb-2", once)], FACTS).empty
    other = FACTS | {"cora/class-il@cglb-2": FACTS["cora/class-il@cglb-2"] | {"setting": "task-il"}}
    assert rankings([one, comparison("cora/class-il@cglb-2", SECOND)], other).empty
    twin = comparison("cora/class-il@global-1", SECOND)
    (row,) = rankings([comparison("cora/class-il@cglb-2", FIRST), twin], FACTS).to_dict(orient="records")
    assert row["kind"] == "task by task to global"


# --- costs and forgetting --------------------------------------------------------------------------------------------------------


def test_what_memory_and_seconds_buy(tmp_path: Path) -> None:
    """PackNet gains 30 points for 1,000 bytes and twice the seconds; EWC costs nothing here; joint training is on no frontier."""
    frame = findings_in(tmp_path, "cora/task-il@begin-1").worth.set_index("method")
    assert set(frame.index) == {"ewc", "packnet", "joint"}
    assert frame.loc["packnet", "gain"] == pytest.approx(0.3 + (NOISE[2] - NOISE[0]).mean())
    assert frame.loc["packnet", "low"] < frame.loc["packnet", "gain"] < frame.loc["packnet", "high"]
    assert (frame.loc["packnet", "seconds"], frame.loc["packnet", "bytes"]) == (pytest.approx(2.0), 1000.0)
    assert frame.loc["ewc", "seconds"] == pytest.approx(1.0)
    assert frame["frontier"].to_dict() == {"ewc": True, "packnet": True, "joint": False}
    assert frame["better"].to_dict()["packnet"] is True


def test_references_are_no_learners(tmp_path: Path) -> None:
    """By the category that a method declares, whatever its settings: on no frontier, and in no ranking of means."""
    found = findings_in(tmp_path)
    control = dataclasses.replace(found, results=dataclasses.replace(found.results, references=found.results.references | {"packnet"}))
    competing = {label: control.results.competes(label) for label in ("ewc", "joint", "joint (warm_start=yes)", "packnet (budget=2)")}
    assert competing == {"ewc": True, "joint": False, "joint (warm_start=yes)": False, "packnet (budget=2)": False}
    worth = control.worth[control.worth["scenario"] == control.worth["scenario"].iloc[0]].set_index("method")
    assert worth["frontier"].to_dict() == {"ewc": True, "packnet": False, "joint": False}
    assert set(control.means["method"]) == {"bare", "ewc"}
    assert set(found.means["method"]) == {"bare", "ewc", "packnet"}


def test_splits_of_forgetting_are_read_beside_the_records(tmp_path: Path) -> None:
    """Parts by method; a file of no record, and one that is no split, are left out."""
    assert findings_in(tmp_path, "cora/task-il@begin-1").splits.empty
    keys = [record.key for record in Store(tmp_path).records() if record.cell["method"] == "ewc"]
    for place, key in enumerate(keys):
        keep_split(tmp_path, key, {"forgetting": 0.3, "drift": 0.01 * place, "weights": 0.3 - 0.01 * place})
    keep_split(tmp_path, "0" * 64, {"forgetting": 1.0, "drift": 1.0, "weights": 0.0})
    (tmp_path / SPLITS / f"{keys[0]}x.json").write_text(json.dumps([1]))
    found = load_findings(tmp_path, catalogue=catalogue())
    assert sorted(found.splits["drift"]) == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04])
    said = dict(headlines(found))["forgetting"]
    assert said == "Drift of the graph is the larger part of forgetting in 0 of 5 runs where it was split: on average, 2.0 of 30.0 points."
    assert "+2.0" in texts(page_with(show_findings.forgetting(found)), "td")


def test_excess_of_the_change_of_weights(tmp_path: Path) -> None:
    """By hand: beyond that of frozen-ncm in the same repetition; unknown where frozen-ncm was not split."""
    records = {}
    for method, order, weights in (("ewc", 0, 0.5), ("frozen-ncm", 0, 0.125), ("ewc", 1, 0.25)):
        key = f"{method}{order}"
        seeds = {"order": order, "split": 0, "init": 0}
        records[key] = SimpleNamespace(key=key, cell={"preset": "a/class-il@b-1", "backbone": "gcn", "method": method, "seeds": seeds})
        keep_split(tmp_path, key, {"forgetting": weights, "drift": 0.0, "weights": weights})
    excess = stored_splits(tmp_path, records).set_index("key")["excess"]  # type: ignore[arg-type]
    assert excess.loc[["ewc0", "frozen-ncm0"]].tolist() == [0.375, 0.0]
    assert math.isnan(excess["ewc1"])


# --- sentences and the page ------------------------------------------------------------------------------------------------------


def test_sentences_are_the_numbers(tmp_path: Path) -> None:
    found = findings_in(tmp_path)
    said = dict(headlines(found))
    tested = found.differences[found.differences["refused"] == ""]
    n, different = len(tested), int((tested["better"] != "").sum())
    assert said["differences"].startswith(f"{different} of {n} pairs of methods ({100 * different / n:.0f}%) differ")
    assert f"[3 scenarios; paired tests over {N} repetitions; " in said["differences"]
    moved = found.changes.loc[found.changes["effect"].abs().idxmax()]
    how = "gains" if moved["effect"] > 0 else "loses"
    assert f"The largest effect: {moved['method']} {how} {100 * abs(moved['effect']):.1f} points on " in said["rankings"]
    worth = found.worth[(found.worth["method"] != "joint") & (found.worth["bytes"] > 0)]
    assert said["worth"].startswith("Methods that keep data in addition to the model beat fine-tuning in ")
    assert f" in {int(worth['better'].sum())} of {len(worth)} cases" in said["worth"]


def test_a_method_in_two_settings_is_one_method(tmp_path: Path) -> None:
    """Its settings are compared like methods; the sentence and the tile do not count them as such."""
    known, store = catalogue(), Store(tmp_path)
    for cell in planned(known, ALL[0]):
        record = made(cell)
        store.put(record)
        if cell.request.method == "ewc":
            configuration = record.cell["configuration"] | {"training.lr": 0.5}
            shifted = [[value + 0.01 * cell.request.seeds.init**2 for value in row] for row in record.matrix]
            other = {"key": digest(record.key), "cell": record.cell | {"configuration": configuration}, "matrix": shifted}
            store.put(completed(replace(record, **other, metrics={}), known))
    found = load_findings(store, catalogue=known)
    (row,) = found.scenarios.to_dict(orient="records")
    assert (row["methods"], row["labels"], row["pairs"]) == (4, 5, 10)
    tested = found.differences[found.differences["refused"] == ""]
    same = tested[tested["first"].str.startswith("ewc") & tested["second"].str.startswith("ewc")]
    assert (len(tested), len(same), set(same["better"])) == (10, 1, {""})
    said = dict(headlines(found))["differences"]
    different = int((tested["better"] != "").sum())
    assert said.startswith(f"{different} of 9 pairs of methods ({100 * different / 9:.0f}%) differ")
    assert ", and 0 of 1 pair of one method in two settings. To be detected" in said
    assert "4 methods" in texts(page_with(show_findings.overview(found)), ".tiles li")


@pytest.mark.nightly
def test_the_page(tmp_path: Path) -> None:
    found = findings_in(tmp_path)
    page = page_with(*(getattr(show_findings, section)(found) for section in SECTIONS))
    assert_harmless(page)
    assert len(texts(page, ".key-results li")) == len(headlines(found))


def test_an_empty_store_has_no_findings(tmp_path: Path) -> None:
    found = load_findings(tmp_path, catalogue=catalogue())
    page = page_with(*(getattr(show_findings, section)(found) for section in SECTIONS))
    assert headlines(found) == []
    assert len(texts(page, "p.empty")) >= 8
