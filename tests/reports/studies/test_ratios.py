"""Running times as ratios: printed ones by hand, ours paired by seeds and machine, verdicts on logarithms."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ledger_lab import fill, flat, ledger_of
from report_lab import page_with
from scipy import stats as scipy_stats

from cglsuite.campaigns.reference import published_results
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.records.record import Record
from cglsuite.reports.kit.tables import as_rows
from cglsuite.reports.studies.ledger import page as show_ledger
from cglsuite.reports.studies.ledger.compute import Ledger, write_ledger
from cglsuite.reports.studies.ledger.ratios import KINDS, MARGIN, overhead_share, published_ratio, ratio_counts, ratio_tests, seconds_of

PCG: dict[str, Any] = {"paper": "AGALE", "dataset": "PCG", "setting": "task-IL"}
BARE = {0: 10.0, 1: 20.0, 2: 40.0}
"""Seconds of Bare by repetition."""


def timed(planned: PlannedCell, seconds: float, **more: Any) -> Record:
    """A record whose stream took ``seconds``, a tenth of them the framework's, after 5 s of saving checkpoints."""
    parts = {"training": 0.9 * seconds, "framework": 0.1 * seconds, "method": 0.0, "evaluation": 0.0, "checkpoints": 5.0}
    made: Record = flat(planned, 0.9, timings_s=parts | {"total": seconds + 5.0}, **more)
    return made


def ledger_with(tmp_path: Path, factors: dict[str, Any], repeats: int = 3, **more: Any) -> Ledger:
    """Of records in which a method takes a multiple of Bare's seconds of the same repetition."""

    def made(planned: PlannedCell) -> Record | None:
        method, seeds = planned.request.method, planned.request.seeds
        if method not in factors:
            return None
        given = factors[method]
        factor = given[seeds.init] if isinstance(given, list) else given
        return timed(planned, factor * BARE[seeds.init], **(more.get(method) or {}))

    fill(tmp_path, made, **PCG, repeats=repeats)
    ledger: Ledger = ledger_of(tmp_path, **PCG, repeats=repeats)
    return ledger


def row(ledger: Ledger, method: str) -> Any:
    found = ledger.ratios[ledger.ratios["method"] == method]
    assert len(found) == 1
    return found.iloc[0]


# --- printed ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_every_printed_time_has_a_ratio() -> None:
    """102 times: 72 relative to Bare, of which its own are 1, and 30 shares, as the paper rounds them."""
    table = published_results()
    rows = as_rows(table[(table["unit"] == "s") & table["mean"].notna()])
    found = [(row, *published_ratio(row)) for row in rows]
    assert len(found) == 102
    assert sum(kind == KINDS[0] for _, kind, _ in found) == 72
    assert all(math.isfinite(ratio) and ratio > 0 for _, _, ratio in found)
    assert {ratio for one, kind, ratio in found if kind == KINDS[0] and one["method"] == "Bare"} == {1.0}
    for one, kind, ratio in found:
        said = one["note"].partition("printed as ")[2].partition("% of")[0]
        assert bool(said) == (kind == KINDS[1])
        if said and "suspect" not in one["note"]:
            assert 100 * ratio == pytest.approx(float(said), abs=0.011)


def test_a_printed_ratio_by_hand() -> None:
    """AGALE on PCG in task-IL: EWC 51.32 s over Bare's 43.47 s; BeGin's GEM on the small ogbn-products over the Bare of that size."""
    table = published_results()
    times = table[table["unit"] == "s"]
    (ewc,) = as_rows(
        times[(times["paper"] == "AGALE") & (times["dataset"] == "PCG") & (times["setting"] == "task-IL") & (times["method"] == "EWC")]
    )
    assert published_ratio(ewc)[0] == KINDS[0]
    assert published_ratio(ewc)[1] == pytest.approx(51.32 / 43.47)
    gem = next(one for one in as_rows(times) if one["method"] == "GEM" and one["variant"] == "size=small 1x; time=execution")
    assert published_ratio(gem)[1] == pytest.approx(7965 / 2850)


# --- ours ------------------------------------------------------------------------------------------------------------------------


def test_ratios_by_hand(tmp_path: Path) -> None:
    """EWC takes 1.1, 1.2 and 1.3 of Bare's seconds, which differ fourfold; printed is 1.18. Checkpoints do not count."""
    factors = [1.1, 1.2, 1.3]
    ledger = ledger_with(tmp_path, {"bare": 1.0, "ewc": factors})
    found, logs = row(ledger, "EWC"), np.log(factors)
    assert found["published"] == pytest.approx(51.32 / 43.47)
    assert (found["ours"], found["our_n"]) == (pytest.approx(np.exp(logs.mean())), 3)
    error = scipy_stats.sem(logs)
    inner, outer = scipy_stats.t.ppf(0.95, 2) * error, scipy_stats.t.ppf(0.975, 2) * error
    assert (found["low"], found["high"]) == tuple(map(pytest.approx, np.exp(logs.mean() + np.array([-outer, outer]))))
    factor = np.exp(logs.mean()) / (51.32 / 43.47)
    assert found["factor"] == pytest.approx(factor)
    assert (found["factor_low"], found["factor_high"]) == tuple(map(pytest.approx, factor * np.exp(np.array([-inner, inner]))))
    assert found["verdict"] == "undecided"
    assert found["factor_high"] < MARGIN
    assert found["reason"] == "equivalent by the t tests, not by the signs of 3 repetitions (p = 0.12)"
    assert row(ledger, "Bare")["verdict"] == "reference"
    times: Any = ledger.times.set_index("method")
    assert times.loc["bare", "seconds"] == pytest.approx(70 / 3)
    assert times.loc["ewc", "share"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("factors", "verdict"), [([1.1, 1.2, 1.3], "undecided"), ([2.9, 3.0, 3.1], "different"), ([0.5, 1.2, 3.0], "undecided")]
)
def test_verdicts(tmp_path: Path, factors: list[float], verdict: str) -> None:
    """Too few repetitions, clearly outside the margin, and too uncertain to say."""
    assert row(ledger_with(tmp_path, {"bare": 1.0, "ewc": factors}), "EWC")["verdict"] == verdict


def test_five_repetitions_can_show_equivalence() -> None:
    """All five within a factor of 1.25 of print: p of the sign tests is 1/32."""
    found = ratio_tests([1.1, 1.2, 1.3, 1.15, 1.25], 51.32 / 43.47)
    assert found["p_equivalent"] == pytest.approx(1 / 32)
    assert "reason" not in found


@pytest.mark.parametrize(("factors", "p"), [([1.19, 1.2, 1.21], "0.12"), ([1.17, 1.18, 1.19, 1.18, 1.48], "0.19")])
def test_t_tests_alone_show_no_equivalence(factors: list[float], p: str) -> None:
    """Three repetitions, or one of five beyond the margin: noise may be skewed, and the signs of the repetitions do not suffice."""
    found = ratio_tests(factors, 51.32 / 43.47)
    logs = np.log(np.array(factors) * 43.47 / 51.32)
    assert scipy_stats.ttest_1samp(logs, math.log(MARGIN), alternative="less").pvalue < 0.05
    assert found["p_equivalent"] == pytest.approx(scipy_stats.binomtest(sum(logs > math.log(MARGIN)), len(logs), 0.5, "less").pvalue)
    assert found["reason"] == f"equivalent by the t tests, not by the signs of {len(factors)} repetitions (p = {p})"


@pytest.mark.parametrize("repeats", [1, 2])
def test_no_verdict_over_one_or_two_repetitions(tmp_path: Path, repeats: int) -> None:
    """The ratio stands there, without interval and verdict."""
    found = row(ledger_with(tmp_path, {"bare": 1.0, "ewc": 1.18}, repeats=repeats), "EWC")
    assert (found["ours"], found["verdict"]) == (pytest.approx(1.18), "no verdict")
    assert "a verdict needs at least 3" in found["reason"]
    assert math.isnan(found["low"])
    assert math.isnan(found["p_different"])


def test_clocks_of_other_machines_are_not_compared(tmp_path: Path) -> None:
    """Bare ran on another processor: no ratio, but the share, which needs one clock."""
    ledger = ledger_with(tmp_path, {"bare": 1.0, "ewc": 1.2}, bare={"environment": {"cpu": "another"}})
    found = row(ledger, "EWC")
    assert (found["verdict"], found["reason"]) == ("not run", "no record of bare has the same seeds and machine")
    times: Any = ledger.times.set_index("method")
    assert math.isnan(times.loc["ewc", "ratio"])
    assert times.loc["ewc", "share"] == pytest.approx(0.1)


def test_what_has_no_ratio_says_why(tmp_path: Path) -> None:
    """Not run, not implemented; BeGin's parts of data sets."""
    ledger = ledger_with(tmp_path, {"bare": 1.0})
    assert row(ledger, "EWC")["reason"] == "none of its cells has a result"
    assert row(ledger, "EvolveGCN")["verdict"] == "not runnable here"
    assert sum(ratio_counts(ledger.ratios).values()) == len(ledger.ratios) == 7
    parts = ledger_of(tmp_path, paper="BeGin", dataset="ogbn-products", setting="class-IL").ratios
    assert len(parts) == 24
    assert parts["reason"].str.startswith("a running time on a part of the data set").all()


def test_seconds_of_a_record_without_times(tmp_path: Path) -> None:
    """NaN, not zero."""
    cells = fill(tmp_path, lambda planned: None, **PCG, repeats=1)
    nothing = flat(cells[0], 0.9, timings_s={})
    assert math.isnan(seconds_of(nothing))
    assert math.isnan(overhead_share(nothing))


# --- page and files --------------------------------------------------------------------------------------------------------------


def test_page_and_file(tmp_path: Path) -> None:
    """Both hold the ratios; the page says how they are compared."""
    ledger = ledger_with(tmp_path / "store", {"bare": 1.0, "ewc": [1.1, 1.2, 1.3], "lwf": 2.0})
    page = page_with(show_ledger.running_times(ledger), show_ledger.statistics(ledger))
    assert "Times on different machines are compared only as ratios" in page
    assert "PCG: " in page
    written = json.loads(write_ledger(ledger, tmp_path / "out")[1].read_text())
    assert [one["verdict"] for one in written["ratios"]] == list(ledger.ratios["verdict"])
    assert len(written["statistics"]) == len(ledger.statistics) > 0
    assert "is taken as exact" in written["ratio_rule"]
