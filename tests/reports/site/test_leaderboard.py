"""The leaderboard: hand-computed entries, intervals against SciPy, one table per preset, and pages that say the same to the last digit."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from made_records import CAMPAIGN, fill_store, made_record, made_results
from page_elements import texts
from report_lab import catalogue_of, page_with
from scipy import stats

from cglsuite.base.errors import UnknownNameError
from cglsuite.campaigns.campaign import load_campaign
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, load_catalogue
from cglsuite.reports.kit.sentences import p_text
from cglsuite.reports.results import tables
from cglsuite.reports.results.results import CampaignResults, load_campaign_results
from cglsuite.reports.site import leaderboard as show_leaderboard
from cglsuite.reports.site.boards import LEVEL, Board, _Designs, board_frame, boards
from cglsuite.reports.site.downloads import board_downloads
from cglsuite.reports.site.index import render_campaign
from cglsuite.specs import PretrainingSpec
from cglsuite.stats import Refused, compare_methods, layout, quasi_f

Results = Callable[..., CampaignResults]
ONE_BOARD = {"scenarios": ["cora/task-il@begin-1"], "methods": ["bare", "si", "joint"]}


def board_of(results: CampaignResults, catalogue: Catalogue, preset: str) -> Board:
    return next(board for board in boards(results, catalogue) if board.preset == preset)


def shown_entries(page: str) -> list[dict[str, dict[str, float]]]:
    """Per board section of a page: the exact numbers of each entry by row and column name."""
    soup = BeautifulSoup(page, "html.parser")
    found = []
    for section in soup.select("section.board"):
        table = section.find("table")
        names = [th.get("data-column") for th in table.select("thead th")]
        rows = {}
        for row in table.select("tbody tr[data-row]"):
            cells = dict(zip(names, row.find_all(["th", "td"]), strict=True))
            key = " × ".join([cells["method"].find("a").text, cells["backbone"].text])
            for name, cell in cells.items():
                parts = [part for part in ("value", "std", "n", "low", "high") if cell.has_attr(f"data-{part}")]
                if parts:
                    rows[f"{key} × {name}"] = {part: float(cell[f"data-{part}"]) for part in parts}
        found.append(rows)
    return found


def test_entries_of_the_toy_campaign(results: CampaignResults) -> None:
    """Of ewc one record failed, so that two stand behind its row; AP is the mean of the last row of a matrix."""
    board = board_of(results, catalogue_of(), "cora/task-il@begin-1")
    assert [row.method for row in board.rows] == ["packnet", "bare", "ewc", "joint"]
    # MATRIX's last row is 0.7, 0.8, 0.9; ewc adds 0.02 and 0.01 per init seed, of which 1 is missing.
    ewc = next(row for row in board.rows if row.method == "ewc").scores["average_performance"]
    assert ewc.mean == pytest.approx((0.82 + 0.84) / 2)
    assert ewc.std == pytest.approx(0.02 / math.sqrt(2))
    assert (ewc.n, ewc.units) == (2, 2)
    assert math.isnan(ewc.low)
    assert ewc.refusal == "2 seeds: an interval needs at least 3"
    bare = next(row for row in board.rows if row.method == "bare").scores
    assert bare["intransigence"].mean == pytest.approx(0.05)  # joint's diagonal is 0.05 higher, for the same seeds
    assert bare["total_s"].mean == 10.0
    assert bare["peak_bytes"].mean == 1e8
    assert board.column("average_performance").label == "AP"
    with pytest.raises(UnknownNameError, match="average_perf"):
        board.column("average_perf")


def test_intervals_are_students(results: CampaignResults) -> None:
    """Three values: SciPy's t interval."""
    board = board_of(results, catalogue_of(), "cora/task-il@begin-1")
    bare = next(row for row in board.rows if row.method == "bare").scores["average_performance"]
    low, high = stats.t.interval(LEVEL, 2, loc=0.81, scale=stats.sem([0.80, 0.81, 0.82]))
    assert (bare.low, bare.high, bare.kind) == (pytest.approx(low), pytest.approx(high), "t")


@pytest.mark.nightly
def test_intervals_over_crossed_orders_and_seeds(tmp_path: Path) -> None:
    """Five orders with three seeds each: the interval of the quasi-F over all 15 cells, and the page names the design."""
    seeds = {"order": [0, 1, 2, 3, 4], "init": [0, 1, 2], "design": "cross"}
    results, catalogue = made_results(tmp_path, seeds=seeds)
    board = boards(results, catalogue)[0]
    assert board.design == "5 orders × 3 seeds, crossed"
    row = board.rows[-1]
    score = row.scores["average_performance"]
    assert (score.n, score.units, score.kind, score.over) == (15, 15, "quasi-F", board.design)
    values = np.empty((5, 3))
    for record in row.records:
        values[record.cell["seeds"]["order"], record.cell["seeds"]["init"]] = record.metrics["average_performance"]
    mean, error, df = (float(one) for one in quasi_f(values))
    low, high = stats.t.interval(LEVEL, df, loc=mean, scale=error)
    assert (score.low, score.high) == (pytest.approx(low), pytest.approx(high))
    assert score.mean == pytest.approx(values.mean())
    page = page_with(show_leaderboard.leaderboard(results, catalogue))
    assert any("intervals and tests: 5 orders × 3 seeds, crossed" in text for text in texts(page, "p.note"))


def test_order_seeds_that_give_the_same_order_are_no_replicates_of_orders(tmp_path: Path) -> None:
    """All records learnt the same tasks in the same sequence: seeds are the unit, and the page says of one order."""
    tasks = [{"name": "a", "classes": [0], "n_train": 1, "n_validation": 1, "n_test": 1}] * 5
    results, catalogue = made_results(tmp_path / "a", grid=ONE_BOARD)
    store = Store(tmp_path / "a")
    for cell in results.cells:
        if cell.record is not None:
            changed = [dict(task, classes=[k], name=str(k)) for k, task in enumerate(tasks)]
            store.record_path(cell.record.key).unlink()
            store.put(made_record(cell.planned, catalogue, tasks=changed))
    again = boards(load_again(results, catalogue, tmp_path / "a"), catalogue)[0]
    assert again.design == "5 seeds, in one order"
    assert again.rows[0].scores["average_performance"].units == 5


def load_again(results: CampaignResults, catalogue: Catalogue, path: Path) -> CampaignResults:
    return load_campaign_results(results.campaign, path, catalogue=catalogue)


def test_unlike_presets_never_share_a_board(finished: Results) -> None:
    """Another number of epochs makes another preset, hence another board, with what was changed told above it."""
    grid = {"scenarios": ["toy/class-il@cglb-1"], "methods": ["bare", "ewc"], "axes": {"training.epochs": [10, 20]}}
    results = finished(grid=grid)
    found = boards(results, catalogue_of())
    assert len(found) == 2
    assert len({board.preset for board in found}) == 2
    assert [board.scenario for board in found] == ["toy/class-il@cglb-1"] * 2
    assert [{record.cell["preset"] for row in board.rows for record in row.records} for board in found] == [{b.preset} for b in found]
    page = page_with(show_leaderboard.leaderboard(results, catalogue_of()))
    assert texts(page, "section.board > h3") == [f"toy · class-IL · CGLB 1, epochs = {epochs}" for epochs in (10, 20)]
    changes = [text for board in found for text in (board.preset, f"training.epochs = {10 if board is found[0] else 20}")]
    assert texts(page, "p.note > code") == changes


def test_verdicts_are_those_of_all_pairs(tmp_path: Path) -> None:
    """The same family, tested directly: which rows differ significantly from the best, and with which p value."""
    results, catalogue = made_results(tmp_path, grid={"scenarios": ["toy/class-il@cglb-1"], "methods": ["bare", "si", "gem", "joint"]})
    (board,) = boards(results, catalogue)
    rows = [(row.method, r) for row in board.rows for r in row.records]
    frame = pd.DataFrame(
        {"method": m, "value": r.metrics["average_performance"], "order": r.cell["seeds"]["order"], "seed": r.cell["seeds"]["init"]}
        for m, r in rows
    )
    tests = compare_methods(frame)
    best = board.rows[0]
    assert best.verdict is None
    for row in board.rows[1:]:
        assert row.verdict is not None
        (test,) = [t for t in tests.to_dict(orient="records") if {t["first"], t["second"]} == {best.method, row.method}]
        assert row.verdict.best == best.method
        assert row.verdict.significant == (test["p_adjusted"] <= 0.05)
        assert p_text(test["p_adjusted"]) in row.verdict.summary
    assert any(row.verdict.significant for row in board.rows[1:] if row.verdict)


def test_no_winner_where_nothing_can_be_tested(finished: Results) -> None:
    """Two seeds per method: no interval, no test, no mark, and the reason instead."""
    results = finished(seeds={"order": [0, 1], "init": [0, 1]}, grid={"scenarios": ["toy/class-il@cglb-1"], "methods": ["bare", "ewc"]})
    (board,) = boards(results, catalogue_of())
    assert [row.verdict.significant if row.verdict else None for row in board.rows] == [None, None]
    page = page_with(show_leaderboard.leaderboard(results, catalogue_of()))
    reason = "No method can be tested: no test against bare: 2 seeds: a test needs at least 3 in each sample"
    assert reason in texts(page, "section.board > p.note")
    assert "not significant" not in texts(page, "span.badge")


def test_rows_without_a_significant_difference_are_marked(tmp_path: Path) -> None:
    """si is bare up to noise of its seeds, and marked; gem is far from both, and is not."""
    results, catalogue = made_results(tmp_path, grid={"scenarios": ["toy/class-il@cglb-1"], "methods": ["bare", "si", "gem"]})
    level, noise = {"bare": 0.8, "si": 0.8, "gem": 0.3}, np.random.default_rng(0)
    for cell in results.cells:
        assert cell.record is not None
        matrix = level[cell.record.cell["method"]] + 0.01 * noise.standard_normal((6, 5))
        Store(tmp_path).record_path(cell.record.key).unlink()
        Store(tmp_path).put(made_record(cell.planned, catalogue, matrix=matrix, metrics={"average_performance": float(matrix[-1].mean())}))
    results = load_again(results, catalogue, tmp_path)
    (board,) = boards(results, catalogue)
    assert [(row.method, row.verdict.significant if row.verdict else None) for row in board.rows[1:]] in (
        [("si", False), ("gem", True)],
        [("bare", False), ("gem", True)],
    )
    soup = BeautifulSoup(page_with(show_leaderboard.leaderboard(results, catalogue)), "html.parser")
    marks = [[mark.text for mark in row.select("th .badge")] for row in soup.select("section.board > .scroll tbody tr[data-row]")]
    assert marks == [[], ["not significant"], []]
    best = board.rows[0].method
    assert sentence_of(soup) == f"{best} beats 1 of 2 other methods in AP (paired t, Holm over all pairs, α = 0.05)."


def test_no_method_differs_significantly(tmp_path: Path) -> None:
    """Three methods that are the same up to the noise of their seeds."""
    results, catalogue = made_results(tmp_path, grid={"scenarios": ["toy/class-il@cglb-1"], "methods": ["bare", "si", "gem"]})
    noise = np.random.default_rng(0)
    for cell in results.cells:
        assert cell.record is not None
        matrix = 0.8 + 0.01 * noise.standard_normal((6, 5))
        Store(tmp_path).record_path(cell.record.key).unlink()
        Store(tmp_path).put(made_record(cell.planned, catalogue, matrix=matrix, metrics={"average_performance": float(matrix[-1].mean())}))
    results = load_again(results, catalogue, tmp_path)
    (board,) = boards(results, catalogue)
    assert [row.verdict.significant if row.verdict else None for row in board.rows] == [None, False, False]
    soup = BeautifulSoup(page_with(show_leaderboard.leaderboard(results, catalogue)), "html.parser")
    best = board.rows[0].method
    assert sentence_of(soup) == f"{best} beats none of 2 other methods in AP (paired t, Holm over all pairs, α = 0.05)."


def sentence_of(soup: BeautifulSoup) -> str:
    """What a board says about its tests: the last note above the table."""
    return soup.select("section.board > p.note.quiet")[-1].text


def test_times_of_unlike_machines_are_not_compared_silently(tmp_path: Path) -> None:
    """One record of another CPU, and the board says so."""
    results, catalogue = made_results(tmp_path, grid=ONE_BOARD)
    cell = next(c for c in results.cells if c.record is not None)
    assert cell.record is not None
    store = Store(tmp_path)
    store.record_path(cell.record.key).unlink()
    store.put(made_record(cell.planned, catalogue, environment={**cell.record.environment, "cpu": "another CPU"}))
    board = boards(load_again(results, catalogue, tmp_path), catalogue)[0]
    assert board.machines == 2
    assert "times and peak memory are not comparable" in str(show_leaderboard.board_caption(results, board))


@pytest.mark.nightly
def test_means_are_those_of_the_campaign_report(tmp_path: Path) -> None:
    """One number, however a report came to it."""
    results, catalogue = made_results(tmp_path)
    summary = tables.summary(results).set_index(["preset", "method", "backbone", "metric"])
    compared = 0
    for board in boards(results, catalogue):
        for row in board.rows:
            for column in board.columns:
                if column.metric and column.name in row.scores:
                    other = summary.loc[(board.preset, row.method, row.group.backbone, column.name)]
                    score = row.scores[column.name]
                    np.testing.assert_array_equal([score.mean, score.std, score.n], [other["mean"], other["std"], other["n"]])
                    compared += 1
    assert compared == len(summary) > 40


def test_the_page_says_what_the_functions_compute(tmp_path: Path) -> None:
    """Every number on a notebook's page, to the last bit, and none beside them."""
    results, catalogue = made_results(tmp_path)
    page = page_with(show_leaderboard.leaderboard(results, catalogue))
    assert_entries(shown_entries(page), boards(results, catalogue))


def assert_entries(shown: list[dict[str, dict[str, float]]], found: list[Board]) -> None:
    assert len(shown) == len(found)
    for entries, board in zip(shown, found, strict=True):
        expected: dict[str, Any] = {}
        for row in board_frame(board).to_dict(orient="records"):
            key = f"{row['method']} × {row['backbone']}"
            expected[f"{key} × n"] = {"value": float(row["records"])}
            expected |= {f"{key} × rank": {"value": float(row["rank"])}} if row["rank"] != "" else {}
            for column in board.columns:
                parts = {"value": "mean", "std": "std", "n": "n", "low": "low", "high": "high"}
                numbers = {k: float(row[f"{column.name}_{part}"]) for k, part in parts.items() if f"{column.name}_{part}" in row}
                if not math.isnan(numbers["value"]):
                    expected[f"{key} × {column.name}"] = {k: v for k, v in numbers.items() if not math.isnan(v)}
        renamed = {key.replace(" × records", " × n"): value for key, value in entries.items()}
        assert renamed == expected


@pytest.mark.nightly
def test_every_record_stands_in_the_provenance_of_its_row(tmp_path: Path) -> None:
    """Keys, seeds and sources of all records; the link of a row's n leads to them."""
    results, catalogue = made_results(tmp_path)
    soup = BeautifulSoup(page_with(show_leaderboard.leaderboard(results, catalogue)), "html.parser")
    for section, board in zip(soup.select("section.board"), boards(results, catalogue), strict=True):
        folded = section.select_one("details.provenance")
        for number, (row, shown) in enumerate(zip(board.rows, section.find("table").select("tbody tr[data-row]"), strict=True)):
            target = str(shown.find_all("a")[1]["href"])[1:]
            assert target.endswith(f"-{number}")
            listed = folded.find(id=target).find_next("table")
            assert [code.text for code in listed.select("td.key code")] == [record.key for record in row.records]
            assert "a" * 64 in str(listed)
        assert "a made-up CPU" in folded.text


def test_cards_tell_what_a_method_is_and_was_run_with(tmp_path: Path) -> None:
    """Citation, provider, category, and the value of a setting in the records beside its default."""
    results, catalogue = made_results(tmp_path, set={"method.strength": 4.0})
    soup = BeautifulSoup(str(show_leaderboard.method_cards(results, catalogue)), "html.parser")
    card = soup.find(id="method-si")
    assert "Zenke, Poole & Ganguli" in card.text
    assert "toy-plugin 1.2" in card.text
    assert card.find(class_="badge").text == "Reg"
    assert [td.text for td in card.select("tbody td")] == ["1", "4", "how much of the old is kept"]


def test_pretraining_has_a_column_where_a_row_has_some(tmp_path: Path) -> None:
    """Two rows per method with and without a scheme; a campaign without any has no such column, on the page and in the table."""
    dgi = PretrainingSpec(name="dgi", summary="contrast", factory="json:loads")
    grid = CAMPAIGN["grid"] | {"methods": ["si"], "backbones": ["gcn"], "pretraining": ["none", "dgi"]}
    results, catalogue = made_results(tmp_path / "with", ("pretraining", dgi), grid=grid)
    board = boards(results, catalogue)[0]
    assert sorted(board_frame(board)["pretraining"]) == ["dgi", "none"]
    soup = BeautifulSoup(str(show_leaderboard.board_table(board)), "html.parser")
    place = [th.get("data-column") for th in soup.select("thead th")].index("pretraining")
    assert [row.find_all(["th", "td"])[place].text for row in soup.select("tbody tr")] == [row.group.pretraining for row in board.rows]
    latex = next(file for file in board_downloads(board, catalogue) if file.label == "LaTeX")
    assert "pretraining" in latex.text
    assert "& dgi" in latex.text
    results, catalogue = made_results(tmp_path / "without", grid=ONE_BOARD)
    plain = boards(results, catalogue)[0]
    assert "pretraining" not in board_frame(plain)
    assert "pretraining" not in str(show_leaderboard.board_table(plain))


def test_nothing_is_finished(load: Results, tmp_path: Path) -> None:
    """An empty store: a sentence, no table."""
    results = load(store=Store(tmp_path / "empty"))
    assert boards(results, catalogue_of()) == []
    assert "No cell of this campaign is finished yet." in str(show_leaderboard.leaderboard(results, catalogue_of()))


@pytest.mark.nightly
@pytest.mark.notebook
@pytest.mark.plugins("cglsuite-node", "cglsuite-methods", "cglsuite-metrics")
@pytest.mark.usefixtures("no_kernel")
def test_the_rendered_notebook_and_the_index_say_it_too(tmp_path: Path) -> None:
    """Records in a store, `cglsuite report`, two pages: the numbers on both are those that the functions compute without Jupyter."""
    campaign, out, catalogue = tmp_path / "made.toml", tmp_path / "out", load_catalogue()
    campaign.write_text(
        'name = "made"\n[grid]\nscenarios = ["synthetic-csbm/class-il@begin-1"]\nmethods = ["bare", "er-gnn", "joint"]\n'
        '[seeds]\norder = [0, 1, 2]\ninit = [0, 1, 2]\n[run]\ndevice = "cpu"\n[[report]]\nnotebook = "leaderboard"\n'
    )
    fill_store(load_campaign(campaign), catalogue, tmp_path / "store")
    rendered = render_campaign(campaign, store=tmp_path / "store", out=out, catalogue=catalogue)
    assert [(report.path.name, report.reason) for report in rendered] == [("leaderboard.html", "")]
    found = boards(load_campaign_results(campaign, tmp_path / "store", catalogue=catalogue), catalogue)
    assert [len(board.rows) for board in found] == [3]
    for page in ("leaderboard.html", "index.html"):
        assert_entries(shown_entries((out / page).read_text()), found)


@pytest.mark.parametrize("absent", [(), (1,), (0, 3, 6)])
@pytest.mark.parametrize(("splits", "in_all"), [(1, None), (2, None), (1, 3)])
def test_a_design_made_once_is_that_of_every_column(absent: tuple[int, ...], splits: int, in_all: int | None) -> None:
    """Bit for bit the layout of the column's own cells, also with missing values and with several cells per value; or the same refusal."""
    rng = np.random.default_rng(0)
    places = pd.DataFrame([{"order": o, "split": str(s), "seed": str(i)} for o in ("b", "a", "c") for i in range(3) for s in range(splits)])
    designs = _Designs(places, in_all)
    for _ in range(3):
        values = rng.normal(size=len(places))
        values[list(absent)] = np.nan
        known = ~np.isnan(values)
        try:
            expected = layout(places.assign(value=values)[known], in_all)
        except Refused as refusal:
            with pytest.raises(Refused, match=re.escape(str(refusal))):
                designs.of(values)
            continue
        found = designs.of(values)
        assert found.values.tobytes() == expected.values.tobytes()
        # Arrays have no single truth value, and from Python 3.13 on, == of dataclasses compares them even if they are the same object.
        facts = [{field.name: getattr(one, field.name) for field in dataclasses.fields(one)} for one in (found, expected)]
        assert facts[0] | {"values": ""} == facts[1] | {"values": ""}
    assert len(designs._places_of) == 1
