"""Rankings across scenarios and sentences of key results, by hand from boards of a few rows."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from made_records import made_results

from cglsuite.reports.kit.sentences import join_names, p_text
from cglsuite.reports.site import boards as site_boards
from cglsuite.reports.site import downloads, index
from cglsuite.reports.site import leaderboard as site_leaderboard
from cglsuite.reports.site.boards import Board, Column, Row, Score, _sorted, _verdict, across, board_frame, standings
from cglsuite.reports.site.index import _datasets_range

AP = Column(name="ap", label="AP", summary="", better="up", unit="%", scale=100.0, digits=1)
MAE = Column(name="mae", label="MAE", summary="", better="down", unit="eV", scale=1.0, digits=3)


def board(preset: str, column: Column, values: dict[str, float | None], backbones: tuple[str, ...] = ("gcn",), **more: Any) -> Board:
    """A board with a row per method and backbone, as given; ``None``: without a value. ``missing``: repetitions, by method."""
    rows, missing = [], more.pop("missing", {})
    for backbone in backbones:
        for name, value in values.items():
            group: Any = SimpleNamespace(label=name, method=name, backbone=backbone, variant="", pretraining="none", records=[1, 2])
            scores = {} if value is None else {column.name: Score(mean=value, std=0.1, n=3, **more)}
            rows.append(Row(group=group, category="Rep", scores=scores, reference=name == "joint", missing=missing.get(name, 0)))
    words = dict.fromkeys(("scenario", "dataset", "setting", "performance", "design"), "x")
    return Board(preset=preset, title=preset.upper(), machines=1, columns=(column,), rows=tuple(_sorted(rows, column)), **words)


def test_a_column_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own values it is on the board, in the table's head and in downloads, and nothing else names it."""
    share = Column(
        name="training_share", label="training", unit="%", scale=100.0, better="down", metric=False, shown_first=True,
        summary="share of the time", value=lambda frame: frame["training_s"] / frame["total_s"],
    )  # fmt: skip
    assert share.heading == "training, % ↓"
    monkeypatch.setattr(site_boards, "RESOURCES", (share, *site_boards.RESOURCES))
    results, catalogue = made_results(tmp_path)
    made = site_boards.boards(results, catalogue)[0]
    assert share in made.columns
    for row in made.rows:
        of = results.frame[results.frame["key"].isin([record.key for record in row.records])]
        assert row.scores["training_share"].mean == pytest.approx((of["training_s"] / of["total_s"]).mean())
    assert "training_share_mean" in board_frame(made)
    assert "training, % ↓" in site_leaderboard.board_table(made).source
    latex = next(file for file in downloads.board_downloads(made, catalogue) if file.label == "LaTeX")
    assert r"training (\%) $\downarrow$" in "".join(piece.text for piece in latex.head)
    assert "training_share" in list(index._first_columns(made))


UP = board("a", AP, {"m3": 0.7, "m1": 0.9, "m2": 0.7, "none": None})
DOWN = board("b", MAE, {"m1": 2.0, "m2": 1.0})


def test_standings() -> None:
    """A lower error is better; ranks are over the scenarios that methods share, so one that lacks a scenario changes no rank of others."""
    found = standings([UP, DOWN])
    assert [one.name for one in found] == ["m1", "m2", "m3"]
    assert [dict(one.ranks) for one in found] == [{"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 1.0}, {}]
    assert [one.mean_rank for one in found] == [1.5, 1.5, math.inf]
    both = board("c", AP, {"m3": 0.5}, ("gcn", "gat"))
    assert [one.name for one in standings([both])] == ["m3 × gcn", "m3 × gat"]


def test_of_equal_ranks_the_one_with_more_scenarios_comes_first() -> None:
    first, second = board("a", AP, {"rare": 0.5, "often": 0.5}), board("b", AP, {"often": 0.5, "other": 0.5})
    assert [one.name for one in standings([first, second])] == ["often", "rare", "other"]


def test_the_table_across_scenarios() -> None:
    """Scores in each board's unit and digits, shaded from the worst to the best; a dash where a method was not run."""
    shown = across([UP, DOWN])
    assert shown is not None
    soup = BeautifulSoup(shown.source, "html.parser")
    assert [h.text for h in soup.select("thead th")] == ["method", "mean rank ↓", "A, AP %", "B, MAE eV"]
    rows = [[cell.text for cell in row.find_all(["th", "td"])] for row in soup.select("tbody tr")]
    assert rows == [["m1", "1.5", "90.0", "2.000"], ["m2", "1.5", "70.0", "1.000"], ["m3", "–", "70.0", "–"]]
    shades = [[cell.get("class") for cell in row.find_all("td")[1:]] for row in soup.select("tbody tr")]
    assert shades == [
        [["number", "shade-4"], ["number", "shade-0"]],
        [["number", "shade-0"], ["number", "shade-4"]],
        [["number", "shade-0"], ["number", "quiet"]],
    ]
    assert across([UP]) is None
    assert across([board("a", AP, {"m": 0.5}), board("b", AP, {"m": 0.5})]) is None


@pytest.mark.parametrize(("values", "shade"), [((0.0, 1.0, 0.79), 3), ((0.0, 1.0, 0.8), 4), ((0.0, 1.0, 0.19), 0), ((0.5, 0.5, 0.5), 2)])
def test_shades_are_five_equal_steps(values: tuple[float, ...], shade: int) -> None:
    shown = across([board("a", AP, dict(zip("xyz", values, strict=True))), UP])
    assert shown is not None
    cells = BeautifulSoup(shown.source, "html.parser").select("tbody tr")
    (row,) = [one for one in cells if one.th is not None and one.th.text == "z"]
    assert row.find_all("td")[1]["class"] == ["number", f"shade-{shade}"]


def test_rows_without_a_value_come_last() -> None:
    """And lower is first where lower is better."""
    assert [row.method for row in UP.rows] == ["m1", "m3", "m2", "none"]
    assert [row.method for row in DOWN.rows] == ["m2", "m1"]


def test_a_board_as_a_frame() -> None:
    """No value: NaN, and a count of 0; resources have no interval."""
    made = board("a", AP, {"m1": 0.5, "none": None}, low=0.4, high=0.6, units=3)
    frame = board_frame(made).set_index("method")
    identity = ["preset", "backbone", "category", "records"]
    assert frame.loc["m1", identity].tolist() == ["a", "gcn", "Rep", 2]
    numbers = [f"ap_{part}" for part in ("mean", "std", "n", "low", "high", "units")]
    assert frame.loc["m1", numbers].tolist() == [0.5, 0.1, 3, 0.4, 0.6, 3]
    assert frame.loc["none", ["ap_n", "ap_units"]].tolist() == [0, 0]
    assert frame.loc["none", ["ap_mean", "ap_low"]].isna().all()
    time = Column(name="t", label="time", summary="", metric=False)
    assert [c for c in board_frame(board("a", time, {"m": 1.0})) if c.startswith("t_")] == ["t_mean", "t_std", "t_n"]


@pytest.mark.parametrize(("p", "significant"), [(0.05, True), (0.0501, False), (1.0, False)])
def test_verdicts_in_words(p: float, significant: bool) -> None:
    """By how much it is below the best; at the level and below it; the replicates, a population and what is given are named."""
    test = {"refused": "", "p_adjusted": p, "replicates": "4 seeds", "population": "all 6 orders", "given": "", "test": "paired t"}
    test |= {"first": "ewc", "second": "bare", "estimate": 0.125}
    said = _verdict(test, "ewc", AP)
    assert (said.significant, said.best, said.test) == (significant, "ewc", "paired t")
    start = "12.5 points below ewc" if significant else "no significant difference from ewc, 12.5 points below ewc"
    assert said.summary == f"{start}: paired t over 4 seeds, all 6 orders, {p_text(p)} (Holm, all pairs)"
    assert _verdict(test | {"first": "joint", "second": "ewc", "p_adjusted": 0.01}, "ewc", AP).summary.startswith("12.5 points above ewc: ")
    assert _verdict(test | {"estimate": -0.125, "p_adjusted": 0.01}, "ewc", MAE).summary.startswith("0.125 eV below ewc: ")
    refused = _verdict(test | {"refused": "2 orders"}, "ewc", AP)
    assert (refused.significant, refused.test, refused.summary) == (None, "", "no test against ewc: 2 orders")


@pytest.mark.parametrize(
    ("column", "values", "best"),
    [
        (AP, {"a": 0.5, "b": 0.7, "c": 0.6}, ["b"]),
        (AP, {"a": 0.7, "b": 0.7, "c": 0.6}, ["a", "b"]),
        (MAE, {"a": 0.5, "b": 0.7, "c": 0.6}, ["a"]),
        (AP, {"joint": 0.9, "b": 0.7, "c": None}, ["b"]),  # the upper bound does not compete
        (AP, {"a": None}, []),
    ],
)
def test_the_best_mean_of_a_column(column: Column, values: dict[str, float | None], best: list[str]) -> None:
    """All rows that share it."""
    one = board("a", column, values)
    assert sorted(one.rows[n].method for n in downloads._best(one, column)) == best


def test_learners_have_ranks_and_others_stand_below() -> None:
    """Equal means share a rank; an incomplete method and a reference have none, whatever their means, on the board and in its CSV."""
    values = {"joint": 0.99, "part": 0.95, "bare": 0.9, "ewc": 0.8 + 0.1, "er": 0.8, "none": None}
    one = board("a", AP, values, missing={"part": 2})
    assert [row.method for row in one.rows] == ["bare", "ewc", "er", "none", "part", "joint"]
    assert one.ranks == {0: 1, 1: 1, 2: 3}
    assert board_frame(one)["rank"].tolist() == [1, 1, 3, "", "", ""]
    assert board_frame(one)["missing"].tolist() == [0, 0, 0, 0, 2, 0]
    soup = BeautifulSoup(site_leaderboard.board_table(one).source, "html.parser")
    bodies = [[row.find_all(["th", "td"])[:2] for row in body.find_all("tr")] for body in soup.select("tbody")]
    assert [[cell.text for cell in row[1:]] for row in bodies[0]] == [["1="], ["1="], ["3"], ["–"]]
    assert [body[0][0].text for body in bodies[1:]] == list(site_boards.SECTIONS[1:])
    assert "2 of 4 repetitions missing" in bodies[1][1][0].text
    assert downloads._best(one, AP) == {0, 1}


def test_the_axis_of_intervals_has_round_numbers_and_survives_an_outlier() -> None:
    """Two ticks at least; a mean far from all others is an arrow at the edge, and does not squeeze the rest."""
    one = board("a", AP, {"a": 0.90, "b": 0.91, "c": 0.92, "d": 0.93, "e": 0.94, "outlier": 0.05})
    axis = site_leaderboard._Axis(one)
    assert axis.ends == (0.90, 0.94)
    ticks = [text.text for text in BeautifulSoup(axis.scale().source, "html.parser").select("text")]
    assert ticks == ["90", "92", "94"]
    cells = [axis.cell(row.scores["ap"]).source for row in one.rows]
    assert [("polygon" in cell, "circle" in cell) for cell in cells] == [(False, True)] * 5 + [(True, False)]


@pytest.mark.parametrize(("low", "high", "ticks", "digits"), [(0, 100, [0, 100], 0), (95.2, 96.1, [95.5, 96.0], 1), (3, 3, [3], 1)])
def test_ticks_are_round_and_two_at_least(low: float, high: float, ticks: list[float], digits: int) -> None:
    assert site_leaderboard._ticks(low, high) == (pytest.approx(ticks), digits)


# --- key results ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "text"),
    [("a", "a"), ("ab", "a and b"), ("abc", "a, b and c"), ("abcdef", "a, b, c, d, e and f"), ("abcdefg", "a, b, c, d, e and 2 more")],
)
def test_up_to_six_names_are_listed(names: str, text: str) -> None:
    assert join_names(list(names)) == text


def test_a_score_in_a_sentence() -> None:
    """With its interval, or why there is none; in the board's unit."""
    (row,) = (one := board("a", AP, {"m": 0.5}, low=0.4, high=0.61)).rows
    assert (index._value(one, row), index._statistics(one, row)) == ("50.0%", "95% interval 40.0 to 61.0, n = 3")
    (row,) = (one := board("a", MAE, {"m": 0.5}, refusal="2 orders")).rows
    assert (index._value(one, row), index._statistics(one, row)) == ("0.500 eV", "3 records, no interval")


@pytest.mark.parametrize(
    ("column", "best", "bound", "text"),
    [
        (AP, 0.5, 0.75, ", 25.0 points below joint (75.0%)"),
        (AP, 0.5, 0.25, ", 25.0 points above joint (25.0%)"),
        (AP, 0.5, 0.5, ", 0.0 points below joint (50.0%)"),
        (MAE, 0.5, 0.25, ", 0.250 eV below joint (0.250 eV)"),
        (MAE, 0.5, 0.75, ", 0.250 eV above joint (0.750 eV)"),
    ],
)
def test_the_gap_to_joint_training(column: Column, best: float, bound: float, text: str) -> None:
    """Below is worse, whichever direction is better."""
    one = board("a", column, {"m": best, "joint": bound})
    rows = {row.method: row for row in one.rows}
    assert index._gap(one, rows["m"], rows["joint"]) == text


def test_findings_without_a_method_to_praise() -> None:
    results: Any = None
    nothing = index._finding(results, board("a", AP, {"m": None}), "gcn")
    assert nothing == index.Finding(title="A", best="", sentences=("No method has a value of AP.",))
    bounds = index._finding(results, board("a", AP, {"joint": 0.5}), "gcn")
    assert bounds.sentences == ("No learner has a value of AP; for reference: joint 50.0%.",)


def said(monkeypatch: pytest.MonkeyPatch, one: Board, tests: dict[str, tuple[str, float]]) -> list[str]:
    """The finding of a board, with these refusals and adjusted p values of the best row against others."""
    found = {name: {"refused": refused, "p_adjusted": p} for name, (refused, p) in tests.items()}
    monkeypatch.setattr(index, "_tests", lambda *_: found)
    results: Any = None
    return list(index._finding(results, one, "gcn").sentences)


@pytest.mark.parametrize(
    ("values", "tests", "text"),
    [
        ({"m": 0.9}, {}, "m has AP 90.0%"),
        ({"m": 0.9, "x": 0.5}, {"x": ("", 0.05)}, "m is best with AP 90.0%: it beats x by 40.0 points (p = .050)"),
        (
            {"m": 0.9, "x": 0.5, "y": 0.898},
            {"x": ("", 0.0001), "y": ("", 0.06)},
            "m is best with AP 90.0%: it beats x by 40.0 points (p < .001), and shows no significant difference from y (0.2 points behind)",
        ),
        (
            {"m": 0.9, "x": 0.5, "y": 0.4, "joint": 0.95},
            {"x": ("", 0.001), "y": ("", 0.004), "joint": ("", 0.03)},
            "m is best with AP 90.0%: it beats y by 50.0 points and x by 40.0 (both p ≤ .004), and is 5.0 points below joint (p = .030)",
        ),
        (
            {"m": 0.9, "a": 0.8, "b": 0.7, "c": 0.6, "d": 0.5},
            dict.fromkeys("abcd", ("", 0.0001)),
            "m is best with AP 90.0%: it beats 4 methods by 10.0 (a) to 40.0 points (d) (all p < .001)",
        ),
        (
            {"m": 0.9, "x": 0.5, "y": 0.4},
            {"x": ("", 0.01), "y": ("no order", 1.0)},
            "m is best with AP 90.0%: it beats x by 40.0 points (p = .010), and is 50.0 points above y (not tested)",
        ),
        (
            {"m": 1.0, "n": 1.0, "o": 1.0, "x": 0.5},
            {"n": ("no", 1.0), "o": ("no", 1.0), "x": ("", 0.01)},
            "m, n and o are best with AP 100.0%: m beats x by 50.0 points (p = .010)",
        ),
    ],
)
def test_who_is_best_and_by_how_much(monkeypatch: pytest.MonkeyPatch, values: Any, tests: Any, text: str) -> None:
    (sentence,) = said(monkeypatch, board("a", AP, values, low=0.4, high=0.6), tests)
    assert sentence == f"{text} [95% interval 40.0 to 60.0, n = 3]."


def test_what_cannot_be_tested_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = said(monkeypatch, board("a", AP, {"m": 0.9, "x": 0.5}, refusal="2 orders"), {"x": ("2 orders", 1.0)})
    assert first == "m is best with AP 90.0%: it is 40.0 points above x (not tested) [3 records, no interval]."
    assert second == "No difference can be tested: 2 orders."


def test_an_incomplete_method_is_named_and_is_not_best(monkeypatch: pytest.MonkeyPatch) -> None:
    one = board("a", AP, {"part": 0.95, "m": 0.9, "x": 0.5}, low=0.4, high=0.6, missing={"part": 3})
    first, second = said(monkeypatch, one, {"part": ("", 0.2), "x": ("", 0.01)})
    assert first.startswith("m is best with AP 90.0%: ")
    assert second == "Incomplete, and not ranked: part (3 of 5 repetitions missing)."


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ({"equivalent": 3}, ["3 of 3 comparable values published by CGLB are reproduced (equivalent)."]),
        (
            {"equivalent": 1, "different": 2, "no verdict": 4},
            ["1 of 3 comparable values published by CGLB are reproduced (equivalent); 2 are different."],
        ),
        (
            {"undecided": 1, "different": 2},
            ["0 of 3 comparable values published by CGLB are reproduced (equivalent); 2 are different, 1 is undecided."],
        ),
        ({"no verdict": 2}, []),
        ({}, []),
    ],
)
def test_published_values_are_counted_by_verdict(monkeypatch: pytest.MonkeyPatch, verdicts: dict[str, int], said: list[str]) -> None:
    """Those with a verdict and without a known artefact alone; kinds that do not occur are not named."""
    rows = [{"verdict": name, "paper": "CGLB", "footnotes": ()} for name, n in verdicts.items() for _ in range(n)]
    rows += [row | {"footnotes": ("it was not trained",)} for row in rows]
    monkeypatch.setattr(index, "compare", lambda results: pd.DataFrame(rows, columns=["verdict", "paper", "footnotes"]))
    results: Any = None
    assert list(index.published_line(results)) == said


def test_ranges_of_sizes() -> None:
    """One number where both ends are equal; thousands apart; nothing known is a dash, and 0 is not known."""
    assert "".join(BeautifulSoup(_datasets_range([1200, 80, None, 0]).source, "html.parser").stripped_strings) == "80–1,200"
    assert 'data-low="7.0" data-high="7.0">7<' in _datasets_range([7, 7]).source
    assert "–</td>" in _datasets_range([None, 0]).source
