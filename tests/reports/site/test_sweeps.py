"""Sweeps on leaderboards: one row per method with a range and a picture, nothing selected on test data in silence, downloads with axes."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup
from report_lab import assert_holds_together, catalogue_of, raised_results

from cglsuite.cells.storage.store import Store
from cglsuite.commons.hosted.standings import Marked, _standings
from cglsuite.commons.submissions.staging import Marks
from cglsuite.reports.results.results import CampaignResults, drawn
from cglsuite.reports.results.summary import summary
from cglsuite.reports.site.boards import Board, Family, across, boards, standings
from cglsuite.reports.site.downloads import board_downloads, results_table
from cglsuite.reports.site.leaderboard import board_section, sweep_picture
from cglsuite.reports.studies.comparison import compute
from cglsuite.reports.studies.comparison import page as show_comparison
from cglsuite.stats import Refused, selected

BY = {"bare": 0.0, "ewc": 0.1, "joint": 0.2}
LAMBDAS = (5.0, 1.0, 2.0)


def board_of(results: CampaignResults) -> Board:
    (board,) = boards(results, catalogue_of())
    return board


def section(results: CampaignResults, board: Board) -> BeautifulSoup:
    shown = str(board_section(results, board, plot=True, number=0))
    assert_holds_together(shown)
    return BeautifulSoup(shown, "html.parser")


@pytest.mark.parametrize("validated", [False, True])
def test_the_settings_of_a_method_share_a_row_and_unfold(tmp_path: Path, validated: bool) -> None:
    """The row has the range; below the table, each setting has its own numbers, in the order of the axis."""
    results = raised_results(tmp_path, BY, lambdas=LAMBDAS, validated=validated)
    board = board_of(results)
    page = section(results, board)
    rows = page.select("section > .scroll tbody tr:is([data-row], [data-rows])")
    assert [row.a.text for row in rows] == ["ewc", "bare", "joint"]
    ewc = rows[0]
    value = {row.settings["method.lambda"]: row.scores["average_performance"].mean for row in board.rows if row.method == "ewc"}
    cell = ewc.select_one("td[data-low]")
    assert (float(cell["data-low"]), float(cell["data-high"])) == (min(value.values()), max(value.values()))
    assert cell.text.startswith(f"{100 * value[1.0]:.1f} to {100 * value[5.0]:.1f}")
    said = ewc.select_one(".why").text
    assert said == ("lambda=1 chosen by validation" if validated else "best of 3 by test performance (optimistic): lambda=5")
    assert len(ewc.select("svg.sweep circle")) == 3
    fold = page.select_one("details.settings")
    assert [row.th.text for row in fold.select("tbody tr")] == ["1", "2", "5"]
    shown = [row.find_all("td")[1].text.partition(" ±")[0] for row in fold.select("tbody tr")]
    assert shown == [f"{100 * value[weight]:.1f}" for weight in (1.0, 2.0, 5.0)]
    keys = {code.text.partition(" ")[2] for code in page.select("details.provenance p code")}
    assert keys == {record.key for record in results.used if record.cell["method"] == "ewc"}


def test_no_test_against_a_row_that_test_data_selected(tmp_path: Path) -> None:
    """Without validation the sweep is compared with nothing; with it, the setting that validation chose is."""
    unchosen = board_of(raised_results(tmp_path / "a", BY, lambdas=LAMBDAS))
    assert [row.method for row in unchosen.compared] == ["bare", "joint"]
    assert all(row.verdict is None for row in unchosen.rows if row.method == "ewc")
    chosen = board_of(raised_results(tmp_path / "b", BY, lambdas=LAMBDAS, validated=True))
    assert [row.group.label for row in chosen.compared] == ["ewc (lambda=1)", "bare", "joint"]
    assert [row.group.label for row in chosen.rows if row.verdict is not None] == ["bare", "joint"]


def test_downloads_have_a_row_per_setting_and_a_column_per_axis(tmp_path: Path) -> None:
    board = board_of(raised_results(tmp_path, BY, lambdas=LAMBDAS))
    table, latex, _ = board_downloads(board, catalogue_of())
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert sorted((row["method"], row["method.lambda"]) for row in rows) == [
        ("bare", ""), ("ewc", "1.0"), ("ewc", "2.0"), ("ewc", "5.0"), ("joint", ""),
    ]  # fmt: skip
    assert "method & lambda & " in latex.text
    assert "ewc & 5.0 & 5 & " in latex.text
    assert "\\mathbf" not in next(line for line in latex.text.splitlines() if line.startswith("ewc & 5.0"))


def test_only_the_chosen_setting_is_bold_marked_and_ranked(tmp_path: Path) -> None:
    """In LaTeX, in the table of ``cglsuite table``, and across scenarios."""
    scenarios = ["toy/class-il@cglb-1", "cora/task-il@begin-1"]
    results = raised_results(tmp_path, BY, lambdas=LAMBDAS, validated=True, scenarios=scenarios)
    shown = boards(results, catalogue_of())
    latex = board_downloads(shown[0], catalogue_of())[1].text
    bold = [line for line in latex.splitlines() if "\\mathbf" in line and line.startswith("ewc")]
    assert [line.split(" & ")[1] for line in bold] == ["1.0"]
    grid = results_table(results, catalogue_of())
    assert {row for (row, _, _), entry in grid.entries.items() if entry.mark == "best"} == {"ewc (lambda=1)"}
    assert [(one.name, one.mean_rank) for one in standings(shown)] == [("ewc", 1.0), ("bare", 2.0), ("joint", math.inf)]


def test_a_sweep_without_validation_has_no_rank(tmp_path: Path) -> None:
    """It stands in the table across scenarios with its range."""
    scenarios = ["toy/class-il@cglb-1", "cora/task-il@begin-1"]
    results = raised_results(tmp_path, BY, lambdas=LAMBDAS, scenarios=scenarios)
    shown = boards(results, catalogue_of())
    assert [(one.name, dict(one.ranks)) for one in standings(shown)][-2:] == [("ewc", {}), ("joint", {})]
    table = BeautifulSoup(str(across(shown)), "html.parser")
    cells = [cell.text for cell in table.select("tbody tr:not(.group)")[-2].find_all(["th", "td"])]
    assert cells[:2] == ["ewc", "–"]
    assert all(" to " in text for text in cells[2:])


def test_a_hosted_board_ranks_no_setting_that_test_data_selected(tmp_path: Path) -> None:
    results = raised_results(tmp_path, BY, lambdas=LAMBDAS)
    board, marks = board_of(results), Marks(Store(tmp_path).path)
    marked = {r.key: Marked(record=r, digest=r.digest, mark=marks.of(r.key, r.digest)) for r in results.used}
    ranks = {one.row.group.label: one.rank for one in _standings(board, marked)}
    assert ranks == {"bare": 1, "joint": None, "ewc (lambda=1)": None, "ewc (lambda=2)": None, "ewc (lambda=5)": None}


def test_two_axes_are_a_heat_map(tmp_path: Path) -> None:
    """A field per pair of values, in the order of the values, with the mean in it where it is large."""
    board = board_of(raised_results(tmp_path, BY, lambdas=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    pairs = [{"training.epochs": epochs, "training.lr": lr} for epochs in (20, 5, 10) for lr in (0.1, 0.001)]
    own = next(family for family in board.families if family.swept)
    rows = tuple(replace(row, settings=pair) for row, pair in zip(own.rows, pairs, strict=True))
    family = Family(rows=rows, numbers=own.numbers)
    picture = BeautifulSoup(str(sweep_picture(family, board.first, labelled=True)), "html.parser")
    means = [f"{100 * row.scores['average_performance'].mean:.1f}" for row in rows]
    texts = [text.text for text in picture.select("text")]
    assert len(picture.select("rect")) == 6
    assert texts == [*means, "epochs ↓  lr →", "0.001", "0.1", "5", "10", "20"]
    at = {text: (float(rect["x"]), float(rect["y"])) for text, rect in zip(means, picture.select("rect"), strict=True)}
    assert at[means[0]][1] > at[means[4]][1] > at[means[2]][1]  # 20, 10 and 5 epochs, from below
    assert at[means[0]][0] > at[means[1]][0]


def test_pictures_show_one_setting_of_each_sweep(tmp_path: Path) -> None:
    """Of many settings the one that validation chose, or the middle one: never the best by test performance."""
    lambdas = [0.1 * place for place in range(1, 16)]
    for validated, chosen in ((True, "ewc (lambda=0.1) of 15, by validation"), (False, "ewc (lambda=0.8) of 15, the middle one")):
        results = raised_results(tmp_path / str(validated), BY, orders=3, lambdas=lambdas, validated=validated, ewc=0.0)
        shown, said = drawn(results)
        assert [group.label for group in shown.groups] == ["bare", "ewc", "joint"]
        assert chosen in said
        assert len(shown.frame) == 9
        page = BeautifulSoup(str(summary(results)), "html.parser")
        first, single = page.select("tbody")
        assert [row.th.text for row in first.select("tr")][1].startswith("ewc 15 settings of lambda")
        assert len(single.select("tr")) == 15
        assert chosen in page.text
    few = raised_results(tmp_path / "few", BY, orders=3, lambdas=LAMBDAS)
    assert drawn(few) == (few, "")


def test_a_comparison_of_many_settings_is_summarised(tmp_path: Path) -> None:
    """A row per pair of methods, the single pairs folded; ranks compare what validation chose, or are refused."""
    lambdas = [0.1 * place for place in range(1, 46)]
    results = raised_results(tmp_path / "a", BY, orders=4, lambdas=lambdas, validated=True, ewc=0.0)
    asked = compute.study(results)
    (one,) = asked.comparisons
    assert one.representatives == ["bare", "ewc (lambda=0.1)", "joint"]
    assert list(compute.friedman(one).average_ranks.index) == ["bare", "ewc (lambda=0.1)", "joint"]
    page = BeautifulSoup(str(show_comparison.differences(asked)), "html.parser")
    rows = page.select("tbody")[0].select("tr")
    assert [(row.th.text, row.td.text) for row in rows] == [("bare − ewc", "45"), ("bare − joint", "1"), ("ewc − joint", "45")]
    assert len(page.select("details tbody tr")) == 91
    means = BeautifulSoup(str(show_comparison.means(asked)), "html.parser")
    ewc = means.select("tbody")[0].select("tr")[1]
    assert (ewc.th.text, ewc.td.text) == ("ewc", "45")
    family = next(family for family in one.families if len(family) > 1)
    table = one.cells[one.cells["method"].isin([group.label for group in family])].pivot_table(
        index="method", columns="seed", values="value"
    )
    weights = np.array([float(str(label).partition("=")[2].rstrip(")")) for label in table.index])[:, None]
    found = selected(table, table - 0.02 * weights)
    assert (found.low, found.high) == pytest.approx((compute.selection(one, family).low, compute.selection(one, family).high))
    ends = f"{100 * found.low:.1f} to {100 * found.high:.1f}"
    said = f"lambda=0.1: {100 * found.mean:.1f} (95% interval {ends}; chosen again in {100 * found.again:.0f}% of draws)"
    assert ewc.find_all("td")[-1].text == said
    unvalidated = compute.study(raised_results(tmp_path / "b", BY, orders=4, lambdas=LAMBDAS)).comparisons[0]
    with pytest.raises(Refused, match="ewc has several settings, and validation performance was not recorded"):
        compute.friedman(unvalidated)


@pytest.mark.parametrize(
    ("validated", "said"),
    [
        (True, r"of 3 chosen by validation: ewc \(lambda=1\) with 70\.\d"),
        (False, r"best of 3 by test performance \(optimistic\): ewc \(lambda=5\)"),
    ],
)
def test_a_printed_study_says_how_a_setting_was_chosen(tmp_path: Path, validated: bool, said: str) -> None:
    results = raised_results(tmp_path, BY, lambdas=LAMBDAS, validated=validated)
    (one,) = compute.study(results).comparisons
    line = next(line for line in compute.summary(one) if line.startswith("  ewc"))
    assert re.search(said, line)
