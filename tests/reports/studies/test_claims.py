"""Claims of tables: which pairs print separates, what ours says of them, families, references apart, switches, files and the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ledger_lab import CORA, catalogue, fill, flat, ledger_of
from page_elements import texts
from report_lab import assert_harmless, page_with
from scipy import stats as scipy_stats

from cglsuite.campaigns.overrides import Overrides
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.campaigns.reference import published_results
from cglsuite.campaigns.reference.reproduction import Selection, reproduction_of
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.storage.store import Store
from cglsuite.reports.studies.ledger import claims as show_claims
from cglsuite.reports.studies.ledger.claims import (
    AGAINST_REFERENCES,
    COLUMNS,
    LEARNERS,
    claims_of,
    counts,
    headlines,
    judged,
    load_claims,
    write_claims,
)
from cglsuite.reports.studies.ledger.compute import Ledger

GALLERY = Path(__file__).parents[3] / "reports" / "gallery" / "records"
PRINTED = {"Bare": 70.0, "LwF": 80.0, "PackNet": 90.0, "Joint": 60.0}
"""Apart by far more than the printed deviations of 1 or 2 points: six claims."""
LEVEL = {"bare": 0.70, "lwf": 0.80, "packnet": 0.75, "joint": 0.90}


def accuracy(planned: PlannedCell, levels: Mapping[str, float] = LEVEL) -> float:
    """An order moves all methods by the same amount of several points, and each by a little of its own."""
    seeds, method = planned.request.seeds, planned.request.method
    generator = np.random.default_rng([seeds.order, len(method)])
    return levels.get(method, 0.5) + 0.04 * np.sin(seeds.order) + 0.002 * generator.normal()


def printing(ledger: Ledger, means: Mapping[str, float] = PRINTED) -> Ledger:
    """The ledger as if the paper printed these means of AP, with its own deviations; all other rows print nothing."""
    entries, rows = [], ledger.rows.copy()
    for place, entry in enumerate(ledger.reproduction.entries):
        mean = means.get(entry.row["method"], float("nan")) if entry.row["metric"] == "AP" else float("nan")
        entries.append(replace(entry, row=entry.row | {"mean": mean}))
        rows.loc[place, "published_mean"] = mean
    return replace(ledger, reproduction=replace(ledger.reproduction, entries=tuple(entries)), rows=rows)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    fill(tmp_path, lambda planned: flat(planned, accuracy(planned)) if planned.request.method in LEVEL else None)
    return printing(ledger_of(tmp_path))


def test_a_paper_whose_tables_claim_nothing_has_an_empty_frame(tmp_path: Path) -> None:
    """AGALE's tables separate no two methods; its claims are counted and shown as none, with or without a method."""
    for method in ("", "LwF"):
        claims = load_claims(Selection(paper="AGALE", dataset="PCG", setting="task-IL", method=method), tmp_path, catalogue=catalogue())
        assert list(claims.columns) == COLUMNS
        assert (len(claims), counts(claims), headlines(claims)) == (0, [], [])


def named(claims: pd.DataFrame) -> dict[tuple[str, str], str]:
    return {(row.better, row.worse): row.verdict for row in claims.itertuples()}


def test_every_pair_that_print_separates_is_a_claim_with_a_verdict(ledger: Ledger) -> None:
    """Ours has PackNet below LwF, and joint training above all: one claim between learners is reversed, three against references are."""
    claims = claims_of([ledger])
    assert named(claims) == {
        ("LwF", "Bare"): "confirmed",
        ("PackNet", "Bare"): "confirmed",
        ("PackNet", "LwF"): "reversed",
        ("Bare", "Joint"): "reversed",
        ("LwF", "Joint"): "reversed",
        ("PackNet", "Joint"): "reversed",
    }
    assert list(claims["kind"]) == [LEARNERS] + [AGAINST_REFERENCES] * 5  # those between learners first
    assert set(claims["claims_in_block"]) == {6}
    assert set(claims["spread"]) == {"over n − 1"}


def test_ours_is_the_paired_test_over_shared_repetitions(ledger: Ledger) -> None:
    """Orders move both methods by 4 points: differences of means are uncertain, paired ones are not."""
    claims = claims_of([ledger]).set_index(["better", "worse"])
    values = {
        ledger.rows["method"][place]: part.set_index("unit")["value"]
        for place, part in ledger.values.groupby("row")
        if ledger.rows["metric"][place] == "AP"
    }
    p = {}
    for better, worse in claims.index:
        differences = (values[better] - values[worse]).to_numpy()
        test = scipy_stats.ttest_1samp(differences, 0.0)
        low, high = test.confidence_interval(0.95)
        row = claims.loc[(better, worse)]
        assert (row["n"], row["difference"]) == (10, pytest.approx(differences.mean()))
        assert (row["low"], row["high"], row["p"]) == (pytest.approx(low), pytest.approx(high), pytest.approx(test.pvalue))
        p[better, worse] = float(test.pvalue)
        assert row["power"] >= row["power_half"] > 0.0
    smallest = min(p, key=p.__getitem__)
    assert claims.loc[smallest, "p_holm"] == pytest.approx(6 * p[smallest])
    assert claims.loc[smallest, "p_ledger"] == pytest.approx(6 * p[smallest])


def test_power_and_runs_are_at_the_printed_difference_whatever_ours_is(tmp_path: Path) -> None:
    """The same spread with another difference of ours: the same power."""
    stores = {"near": {"bare": 0.70, "lwf": 0.70}, "far": {"bare": 0.70, "lwf": 0.90}}
    found = {}
    for name, levels in stores.items():
        fill(tmp_path / name, lambda p, levels=levels: flat(p, accuracy(p, levels)) if p.request.method in levels else None)
        claims = claims_of([printing(ledger_of(tmp_path / name), {"Bare": 70.0, "LwF": 80.0})])
        found[name] = claims.iloc[0]
    assert found["near"]["difference"] != pytest.approx(found["far"]["difference"])
    for column in ("power", "power_half", "runs", "runs_half"):
        assert found["near"][column] == pytest.approx(found["far"][column])


def test_claims_without_runs_or_with_too_few_say_why(tmp_path: Path) -> None:
    fill(tmp_path, lambda p: flat(p, accuracy(p)) if p.request.method == "bare" else None)
    fill(tmp_path, lambda p: flat(p, accuracy(p)) if p.request.method == "lwf" else None, repeats=2)
    claims = claims_of([printing(ledger_of(tmp_path), {"Bare": 70.0, "LwF": 80.0, "PackNet": 90.0})])
    rows = {(row.better, row.worse): row for row in claims.itertuples()}
    assert (rows["LwF", "Bare"].verdict, rows["LwF", "Bare"].n) == ("no verdict", 2)
    assert rows["LwF", "Bare"].reason == "2 shared repetitions: a verdict needs at least 3"
    assert rows["PackNet", "LwF"].verdict == "not run"
    assert len(judged(claims)) == 1
    assert "1 printed claim against a reference" in headlines(claims)[0]


def test_a_published_artefact_claims_nothing(tmp_path: Path) -> None:
    """CGNN's values are known artefacts; the same means of PackNet would be a claim."""
    fill(tmp_path, lambda p: flat(p, accuracy(p)))
    assert claims_of([printing(ledger_of(tmp_path), {"Bare": 70.0, "CGNN": 95.0})]).empty
    assert len(claims_of([printing(ledger_of(tmp_path), {"Bare": 70.0, "PackNet": 95.0})])) == 1


def test_the_switch_that_flips_a_claim_is_named(tmp_path: Path, ledger: Ledger) -> None:
    """With another rate Bare is above LwF in three repetitions; with a third one in two, which is too few."""
    store, known = Store(tmp_path), catalogue()
    wanted = reproduction_of(Selection(**CORA), known)
    levels = {"bare": 0.90, "lwf": 0.60, "packnet": 0.75}
    for rate, repeats in (("0.5", 3), ("0.25", 2)):
        for campaign in wanted.campaigns.values():
            cells = plan_campaign(campaign, known, Overrides(values={"training.lr": float(rate)}))
            for planned in [cell for cell in cells if cell.ready and cell.request.method in levels]:
                if planned.request.seeds.order < 1000 * repeats:
                    store.put(flat(planned, accuracy(planned, levels)))
    claims = claims_of([ledger], store).set_index(["better", "worse"])
    assert claims.loc[("LwF", "Bare"), "switch"] == "training.lr = 0.5"
    assert claims.loc[("PackNet", "LwF"), "switch"] == "training.lr = 0.5"  # reversed here, and as printed there
    assert claims.loc[("LwF", "Joint"), "switch"] == ""
    assert "training.lr = 0.5" in texts(page_with(show_claims.every(claims.reset_index())), "td.quiet.long")


def test_reversals_in_the_headline_survive_the_adjustment_over_the_whole_ledger(ledger: Ledger) -> None:
    claims = claims_of([ledger])
    learners, references, reversals = headlines(claims)
    assert learners == "None of 1 printed claim between learners (“A beats B”) is confirmed [1 reversed]."
    assert references == "2 of 5 printed claims against a reference (“A beats B”) are confirmed [3 reversed]."
    assert reversals.startswith("4 claims are reversed: PackNet over LwF, Cora task-IL AP; ")
    assert reversals.endswith(" [Holm over all 6].")
    weak = claims.assign(p_ledger=0.2)
    assert headlines(weak)[-1] == "No claim is reversed [Holm over all 6]."


def test_counts_and_files_and_the_page(tmp_path: Path, ledger: Ledger) -> None:
    claims = claims_of([ledger])
    assert counts(claims)[0] == {
        "kind": LEARNERS, "paper": "BeGin", "printed": 1, "run": 1,
        "confirmed": 0, "same sign": 0, "opposite sign": 0, "reversed": 1, "no verdict": 0,
    }  # fmt: skip
    table, described = write_claims(claims, tmp_path / "out")
    assert named(pd.read_csv(table)) == named(claims)
    written = json.loads(described.read_text())
    assert set(written["claims"][0]) == set(COLUMNS)
    page = page_with(show_claims.overview(claims), show_claims.contradicted(claims), show_claims.every(claims))
    assert_harmless(page)
    assert sum("reversed" in cell for cell in texts(page, "td.nowrap")) == 8  # four of them, once in each table
    empty = claims.iloc[:0]
    assert "so there are no claims" in page_with(show_claims.overview(empty))
    assert headlines(empty) == []


def test_of_one_method_the_tables_are_read_whole(tmp_path: Path) -> None:
    """Holm's family does not shrink to the pairs of the method that was asked for."""
    fill(tmp_path, lambda p: flat(p, accuracy(p)) if p.request.method in LEVEL else None)
    whole = load_claims(CORA, tmp_path, catalogue=catalogue())
    some = load_claims(CORA | {"method": "packnet"}, tmp_path, catalogue=catalogue())
    mine = whole[(whole["better"] == "PackNet") | (whole["worse"] == "PackNet")].reset_index(drop=True)
    assert 0 < len(some) < len(whole)
    pd.testing.assert_frame_equal(some, mine)


@pytest.mark.nightly
def test_ten_claims_of_the_gallery_recomputed_with_scipy() -> None:
    """From the published table and the records themselves: print's pairs and Holm, ours and its Holm, all by hand."""
    claims = load_claims({"paper": "BeGin", "dataset": "Cora", "setting": "task-IL"}, GALLERY)
    block = claims[(claims["table"].astype(str) == "4") & (claims["metric"] == "AP") & (claims["verdict"] != "not run")]
    table = published_results()
    table = table[(table["paper"] == "BeGin") & (table["table"].astype(str) == "4") & (table["dataset"] == "Cora")]
    table = table[(table["setting"] == "task-IL") & (table["metric"] == "AP") & table["mean"].notna()]
    usable = table[~table["method"].isin(["CGNN", "HAT"])]  # published artefacts
    p = {
        (one.method, two.method): scipy_stats.ttest_ind_from_stats(one.mean, one.std, 10, two.mean, two.std, 10, equal_var=False).pvalue
        for one, two in combinations(usable.rename(columns=str).itertuples(), 2)
    }
    ranked = sorted(p, key=p.__getitem__)
    separated, highest = set(), 0.0
    for rank, pair in enumerate(ranked):
        highest = max(highest, (len(p) - rank) * p[pair])
        if highest <= 0.05:
            separated.add(frozenset(pair))
    assert {frozenset((row.better, row.worse)) for row in block.itertuples()} == separated
    store = Store(GALLERY)
    ours = []
    for row in block.itertuples():
        values: dict[str, dict[int, float]] = {}
        for key in row.records.split():
            record = store.get(key)
            assert record is not None
            values.setdefault(record.cell["method"], {})[record.cell["seeds"]["order"]] = 100 * record.metrics["average_performance"]
        names = [name.lower() for name in (row.better, row.worse)]
        orders = sorted(values[names[0]].keys() & values[names[1]].keys())
        test = scipy_stats.ttest_rel([values[names[0]][o] for o in orders], [values[names[1]][o] for o in orders])
        assert row.n == len(orders)
        assert row.p == pytest.approx(float(test.pvalue))
        low, high = test.confidence_interval(0.95)
        assert (row.low, row.high) == (pytest.approx(low), pytest.approx(high))
        ours.append((float(test.pvalue), float(test.statistic), row.p_holm, row.verdict))
    assert len(ours) >= 10
    highest = 0.0
    for rank, (value, statistic, adjusted, verdict) in enumerate(sorted(ours)):
        highest = max(highest, min(1.0, (len(ours) - rank) * value))
        assert adjusted == pytest.approx(highest)
        assert verdict == (
            ("confirmed" if statistic > 0 else "reversed") if highest <= 0.05 else "same sign" if statistic > 0 else "opposite sign"
        )
