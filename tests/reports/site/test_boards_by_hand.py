"""Rankings across scenarios and sentences of key results, by hand from boards of a few rows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from made_records import made_results

from cglsuite.reports.site import boards as site_boards
from cglsuite.reports.site import downloads, index
from cglsuite.reports.site import leaderboard as site_leaderboard
from cglsuite.reports.site.boards import Board, Column, Row, Score, _sorted, _verdict, across, board_frame, standings
from cglsuite.reports.site.index import _datasets_range

AP = Column(name="ap", label="AP", summary="", better="up", unit="%", scale=100.0, digits=1)
MAE = Column(name="mae", label="MAE", summary="", better="down", unit="eV", scale=1.0, digits=3)


def board(preset: str, column: Column, values: dict[str, float | None], backbones: tuple[str, ...] = ("gcn",), **more: Any) -> Board:
    """A board with a row per method and backbone, as given; ``None``: without a value."""
    rows = []
    for backbone in backbones:
        for name, value in values.items():
            group: Any = SimpleNamespace(label=name, method=name, backbone=backbone, variant="", pretraining="none", records=[1, 2])
            scores = {} if value is None else {column.name: Score(mean=value, std=0.1, n=3, **more)}
            rows.append(Row(group=group, category="Rep", scores=scores))
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
    """Equal scores share their mean rank, a lower error is better, and a method without a score does not stand anywhere."""
    found = standings([UP, DOWN])
    assert [one.name for one in found] == ["m1", "m2", "m3"]
    assert [dict(one.ranks) for one in found] == [{"a": 1.0, "b": 2.0}, {"a": 2.5, "b": 1.0}, {"a": 2.5}]
    assert [one.mean_rank for one in found] == [1.5, 1.75, 2.5]
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
    assert rows == [["m1", "1.5", "90.0", "2.000"], ["m2", "1.8", "70.0", "1.000"], ["m3", "2.5 (1 of 2)", "70.0", "–"]]
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
    """At the level and below it; the replicates, a population and what is given are named."""
    test = {"refused": "", "p_adjusted": p, "replicates": "4 seeds", "population": "all 6 orders", "given": "", "test": "paired t"}
    said = _verdict(test, "ewc")
    assert (said.significant, said.best, said.test) == (significant, "ewc", "paired t")
    start = "differs significantly from ewc" if significant else "no significant difference from ewc"
    assert said.summary == f"{start}: paired t over 4 seeds, all 6 orders, p = {p:.3g} (Holm, all pairs)"
    refused = _verdict(test | {"refused": "2 orders"}, "ewc")
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


# --- key results ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "text"),
    [("a", "a"), ("ab", "a and b"), ("abc", "a, b and c"), ("abcdef", "a, b, c, d, e and f"), ("abcdefg", "a, b, c, d, e and 2 more")],
)
def test_up_to_six_names_are_listed(names: str, text: str) -> None:
    assert index._join_names(list(names)) == text


def test_a_score_in_a_sentence() -> None:
    """With its interval, or why there is none; in the board's unit."""
    (row,) = (one := board("a", AP, {"m": 0.5}, low=0.4, high=0.61)).rows
    assert index._score(one, row) == "AP 50.0\N{NO-BREAK SPACE}% (95% interval 40.0 to 61.0, n = 3)"
    (row,) = (one := board("a", MAE, {"m": 0.5}, refusal="2 orders")).rows
    assert index._score(one, row) == "MAE 0.500\N{NO-BREAK SPACE}eV (3 records, no interval)"


@pytest.mark.parametrize(
    ("column", "best", "bound", "text"),
    [
        (AP, 0.5, 0.75, ", 25.0 points below joint (75.0\N{NO-BREAK SPACE}%)"),
        (AP, 0.5, 0.25, ", 25.0 points above joint (25.0\N{NO-BREAK SPACE}%)"),
        (AP, 0.5, 0.5, ", 0.0 points below joint (50.0\N{NO-BREAK SPACE}%)"),
        (MAE, 0.5, 0.25, ", 0.250 eV below joint (0.250\N{NO-BREAK SPACE}eV)"),
        (MAE, 0.5, 0.75, ", 0.250 eV above joint (0.750\N{NO-BREAK SPACE}eV)"),
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
    bounds = index._finding(results, board("a", AP, {"bare": 0.25, "joint": 0.5}), "gcn")
    assert bounds.sentences == ("AP: joint 50.0\N{NO-BREAK SPACE}%, bare 25.0\N{NO-BREAK SPACE}%.",)
    alone = index._finding(results, board("a", AP, {"m": 0.5}, ("gcn", "gat"), refusal="x"), "gat")
    assert (alone.title, alone.best) == ("A × gat", "m")
    assert alone.sentences == ("m has AP 50.0\N{NO-BREAK SPACE}% (3 records, no interval).",)


def against(monkeypatch: pytest.MonkeyPatch, tests: dict[str, tuple[str, float]]) -> list[str]:
    """The sentences about differences of ``m`` from others with these refusals and adjusted p values."""
    found = {name: {"refused": refused, "p_adjusted": p} for name, (refused, p) in tests.items()}
    monkeypatch.setattr(index, "_tests", lambda *_: found)
    one = board("a", AP, {"m": 0.9} | dict.fromkeys(tests, 0.5))
    results: Any = None
    return index._significance(results, one, one.rows[0], one.rows[1:], one.rows)


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ({"x": ("", 0.05), "y": ("", 0.051)}, "It differs significantly from x, not from y."),
        ({"x": ("", 0.2)}, "It does not differ significantly from x."),
        ({"x": ("", 0.01), "y": ("no order", 1.0)}, "It differs significantly from x, cannot be tested against y."),
        ({"x": ("no order", 1.0), "y": ("no seed", 1.0)}, "No difference can be tested: no order."),
    ],
)
def test_from_which_methods_the_best_one_differs(monkeypatch: pytest.MonkeyPatch, tests: Any, said: str) -> None:
    assert against(monkeypatch, tests) == [said]


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
    assert "".join(BeautifulSoup(_datasets_range([1200, 80, None, 0]).source, "html.parser").stripped_strings) == "80–1\u202f200"
    assert 'data-low="7.0" data-high="7.0">7<' in _datasets_range([7, 7]).source
    assert "–</td>" in _datasets_range([None, 0]).source
