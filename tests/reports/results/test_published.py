"""Our means beside printed ones: what is comparable, and what the verdict says."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_records import CAMPAIGN, made_record, made_results
from scipy import stats

from cglsuite.campaigns.reference import published_results, values
from cglsuite.campaigns.reference.values import shown_value, unit_note
from cglsuite.cells.storage.store import Store
from cglsuite.reports.kit.tables import as_rows
from cglsuite.reports.results.published import compare
from cglsuite.reports.results.results import CampaignResults, load_campaign_results
from cglsuite.specs import MethodSpec, ScenarioSpec
from cglsuite.stats import AGREEMENTS, adjust

AGALE_METHODS = ["bare", "lwf", "ewc", "mas", "evolve-gcn", "er-gnn", "joint"]


@pytest.fixture(params=["task-il", "class-il"])
def agale(request: pytest.FixtureRequest, finished: Callable[..., CampaignResults]) -> tuple[str, Any]:
    """The setting, and ours beside AGALE's PCG by method and metric; another protocol's preset of the same data runs along."""
    setting, common = request.param, {"summary": "pcg", "dataset": "toy", "labels": "multi", "performance": "average-precision"}
    names = [f"pcg/{setting}@agale-1", f"pcg/{setting}@agale-consistent-1"]
    scenarios = [("scenario", ScenarioSpec(name=name, setting=setting, edge_policy="none", **common)) for name in names]
    new = [name for name in AGALE_METHODS if name not in ("bare", "ewc", "joint")]
    methods = [("method", MethodSpec(name=name, summary=name, factory="json:loads")) for name in new]
    results = finished(*scenarios, *methods, grid={"scenarios": names, "methods": AGALE_METHODS})
    frame = compare(results)
    assert set(frame["preset"]) == {names[0]}
    assert "accuracy" not in " ".join(itertools.chain.from_iterable(frame["remarks"]))
    return setting, frame.set_index(["method", "metric"])


def test_verdicts(results: CampaignResults) -> None:
    """AP of bare is 81.0 against 90.3 ± 1.8 over 10 runs; its three cells are of one order, and BeGin's are not."""
    frame = compare(results).set_index(["method", "metric"])
    row: Any = frame.loc[("bare", "average_performance")]
    assert (row["mean"], row["difference"]) == tuple(map(pytest.approx, (81.0, -9.3)))
    assert (row["verdict"], row["over"]) == ("no verdict", "3 seeds, in one order")
    assert row["reason"].startswith("our cells have one order, but the published mean is over 10 seeds, each with its own order")
    assert math.isnan(row["p_different"])
    assert frame.loc[("bare", "intransigence"), "published"] == 0.1
    assert set(frame["verdict"]) == {"no verdict"}
    assert not frame.index.get_level_values("method").isin(["toy"]).any()


def in_orders(path: Path, shift: dict[str, float], seeds: dict[str, Any]) -> CampaignResults:
    """BeGin's Cora in orders of their own, with the AP of bare and joint about a given level."""
    grid = {"scenarios": ["cora/task-il@begin-1"], "methods": ["bare", "joint"]}
    results, catalogue = made_results(path, grid=grid, seeds=seeds)
    noise = np.random.default_rng(2)
    for cell in results.cells:
        assert cell.record is not None
        Store(path).record_path(cell.record.key).unlink()
        level = shift[cell.record.cell["method"]] + 0.01 * noise.normal()
        Store(path).put(made_record(cell.planned, catalogue, metrics={"average_performance": level}))
    return load_campaign_results(CAMPAIGN | {"grid": grid, "seeds": seeds}, path, catalogue=catalogue)


def test_verdicts_over_orders(tmp_path: Path) -> None:
    """Bare 90.3 ± 1.8 and Joint 92.4 ± 1.5 are published: TOST and Welch by SciPy from the same numbers, Holm over the table."""
    seeds = {"order": [0, 1, 2, 3, 4], "init": [0, 1, 2, 3, 4]}
    frame = compare(in_orders(tmp_path, {"bare": 0.903, "joint": 0.87}, seeds)).set_index(["method", "metric"])
    p = []
    for method, published, std in (("bare", 90.3, 1.8), ("joint", 92.4, 1.5)):
        row: Any = frame.loc[(method, "average_performance")]
        given = (row["mean"], row["std"], 5, published, std, 10)
        p.append(stats.ttest_ind_from_stats(*given, equal_var=False).pvalue)
        above = stats.ttest_ind_from_stats(row["mean"] + 2, *given[1:], equal_var=False, alternative="greater").pvalue
        below = stats.ttest_ind_from_stats(row["mean"] - 2, *given[1:], equal_var=False, alternative="less").pvalue
        assert (row["p_different"], row["p_equivalent"]) == pytest.approx((p[-1], max(above, below)))
        assert (row["over"], row["margin"], row["low"] < row["difference"] < row["high"]) == ("5 orders", 2.0, True)
    for _, part in frame.dropna(subset="p_different").groupby("table"):
        assert part["p_holm"].to_list() == pytest.approx(adjust(part["p_different"]).tolist())
    assert frame.loc[("bare", "average_performance"), "verdict"] == "equivalent"
    assert frame.loc[("joint", "average_performance"), "verdict"] == "different"


def test_an_artefact_is_called_one_and_is_in_no_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the ledger: bare, which agrees, keeps its numbers, and joint is adjusted as if it stood alone."""
    seeds = {"order": [0, 1, 2, 3, 4], "init": [0, 1, 2, 3, 4]}
    results = in_orders(tmp_path, {"bare": 0.903, "joint": 0.87}, seeds)
    before: Any = compare(results).set_index(["method", "metric"])
    row = dict.fromkeys(("problem", "setting", "dataset"), "") | {"paper": "BeGin", "method": "Bare", "metric": "AP"}
    monkeypatch.setattr(values, "_artefacts", lambda: ({**row, "kind": "artefact", "reason": "it was trained on the test nodes"},))
    found: Any = compare(results).set_index(["method", "metric"])
    bare, joint = (found.loc[(method, "average_performance")] for method in ("bare", "joint"))
    assert (bare["verdict"], bare["footnotes"]) == ("published artefact", ("it was trained on the test nodes",))
    assert before.loc[("bare", "average_performance"), "low"] == bare["low"]
    assert math.isnan(bare["p_holm"])
    assert joint["p_holm"] == joint["p_different"] == before.loc[("joint", "average_performance"), "p_different"]
    assert before.loc[("joint", "average_performance"), "p_holm"] == 2 * joint["p_different"]


def test_crossed_cells_count_as_crossed(tmp_path: Path) -> None:
    """Five orders with the same four seeds: the error of our mean is the quasi-F's; one seed in all orders gives no verdict."""
    seeds = {"order": [0, 1, 2, 3, 4], "init": [0, 1, 2, 3], "design": "cross"}
    row: Any = compare(in_orders(tmp_path / "a", {"bare": 0.9, "joint": 0.92}, seeds)).iloc[0]
    assert (row["n"], row["over"]) == (20, "5 orders × 4 seeds, crossed")
    assert row["verdict"] in AGREEMENTS
    one = compare(in_orders(tmp_path / "b", {"bare": 0.9, "joint": 0.92}, seeds | {"init": [0]})).iloc[0]
    assert (one["verdict"], one["reason"].startswith("our cells have one seed, ")) == ("no verdict", True)


PCG = {
    ("task-il", "lwf"): ("58.12", 5.0, "-2.84", 2.0),
    ("task-il", "bare"): ("54.34", 4.0, "-6.11", 3.0),
    ("class-il", "ewc"): ("35.12", 13.0, "2.17", 3.0),
    ("class-il", "evolve-gcn"): ("29.44", 12.0, "0.23", 1.0),
}


def test_agale_in_one_unit(agale: tuple[str, Any]) -> None:
    """Means are printed in percent and deviations on the 0 to 1 scale: both are points here, and the row says so."""
    setting, frame = agale
    assert set(frame.index.get_level_values("method")) == set(AGALE_METHODS)
    for (at, method), (ap, ap_std, af, af_std) in PCG.items():
        if at != setting:
            continue
        for metric, mean, std in (("average_performance", ap, ap_std), ("backward_transfer", af, af_std)):
            row = frame.loc[(method, metric)]
            assert (row["published"], row["published_std"]) == (float(mean), pytest.approx(std))
            assert row["printed"] == f"{mean} ± {std / 100:.2f}"
            assert row["shown"] == f"{mean} ± {std:g}"
            assert "0 to 1 scale" in row["unit_note"]
            assert row["difference"] == pytest.approx(row["mean"] - float(mean))
    # The matrix of every record has AP 0.8 and, where forgetting is negative, a backward transfer of -0.15.
    assert frame.loc[("lwf", "average_performance"), "mean"] == pytest.approx(80.0)
    assert frame.loc[("lwf", "backward_transfer"), "mean"] == pytest.approx(-15.0)


@pytest.mark.parametrize(
    ("dataset", "method", "metric", "printed", "shown"),
    [
        ("SIDER-tIL", "Bare", "AF", "-0.070 ± 0.023", "-7.0 ± 2.3"),
        ("Tox21-tIL", "Joint", "AP", "0.826 ± 0.005", "82.6 ± 0.5"),
        ("Aromaticity-CL", "Bare", "AF", None, None),
    ],
)
def test_fractions_stand_in_percent_beside_ours(dataset: str, method: str, metric: str, printed: str | None, shown: str | None) -> None:
    """With the digits of the paper, and a note; a table in the paper's own unit keeps them, and percent stay as they are."""
    rows = published_results()
    rows = rows[(rows["paper"] == "CGLB") & (rows["dataset"] == dataset) & (rows["method"] == method) & (rows["metric"] == metric)]
    assert len(rows)
    for row in as_rows(rows):
        assert shown_value(row) == row["printed"] == (printed or row["printed"])
        assert unit_note(row) == ""
        assert shown_value(row, percent=True) == (shown or row["printed"])
        assert ("fractions of 1" in unit_note(row, percent=True)) == (shown is not None)


def test_what_is_known_of_agales_rows(agale: tuple[str, Any]) -> None:
    """Footnotes by method and setting; only the rows of the static graph have no verdict."""
    setting, frame = agale
    notes = {method: " / ".join(frame.loc[(method, "average_performance"), "footnotes"]) for method in AGALE_METHODS}
    for method in AGALE_METHODS:
        assert ("never competed" in notes[method]) == (setting == "class-il" and method != "joint")
        assert ("did not hold the new head" in notes[method]) == (method in ("bare", "er-gnn", "evolve-gcn"))
        assert ("dropout stayed on" in notes[method]) == (method == "evolve-gcn")
        assert ("only the latest task" in notes[method]) == (method == "mas")
        assert ("one of the model's tensors" in notes[method]) == (method == "ewc" and setting == "task-il")
        assert ("as if in task-IL" in notes[method]) == (method == "bare" and setting == "class-il")
        row = frame.loc[(method, "average_performance")]
        assert row["comparable"] == (method != "joint")
        assert (method == "joint") == math.isnan(row["difference"])
        assert row["verdict"] == ("published artefact" if notes[method] and row["comparable"] else "no verdict")
    assert setting == "class-il" or not notes["lwf"]
    joint = frame.loc[("joint", "average_performance")]
    assert joint["shown"] == joint["printed"] == "22.47 ± 0.47"  # 47 points about 22.47 cannot be
    assert joint["unit_note"] == ""
