"""One table of several scenarios: the numbers of the frame, the marks of the design's test, and the same content in every format."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from made_records import CAMPAIGN, made_catalogue, made_results

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.cells.storage.store import Store
from cglsuite.cli.main import run
from cglsuite.cli.options import Session
from cglsuite.host import Catalogue
from cglsuite.reports.results.results import CampaignResults, store_results
from cglsuite.reports.site.boards import LEVEL, boards
from cglsuite.reports.site.downloads import results_table
from cglsuite.stats import compare_methods

SMALL: dict[str, Any] = {"grid": {**CAMPAIGN["grid"], "backbones": ["gcn"]}, "seeds": {"order": [0, 1, 2, 3, 4], "init": [0]}}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[CampaignResults, Catalogue]:
    return made_results(tmp_path_factory.mktemp("made"), **SMALL)


def test_numbers_are_those_of_the_frame(made: tuple[CampaignResults, Catalogue]) -> None:
    results, catalogue = made
    table = results_table(results, catalogue, metrics=["ap", "forgetting_from_diagonal"])
    (name, other), frame = (metric.name for metric in table.metrics), table.frame
    assert (name, other) == ("average_performance", "forgetting_from_diagonal")
    titles = {board.title: board.preset for board in boards(results, catalogue)}
    assert list(table.columns) == list(titles)
    for row in frame.to_dict("records"):
        of = results.frame[(results.frame["method"] == row["method"]) & (results.frame["preset"] == titles[row["scenario"]])][row["metric"]]
        assert row["n"] == len(of) == 5
        assert [row["mean"], row["std"]] == pytest.approx([of.mean(), of.std(ddof=1)], abs=1e-15)
    assert len(frame) == len(results.frame.groupby(["preset", "method"])) * 2


def test_marks_are_the_designs_test(made: tuple[CampaignResults, Catalogue]) -> None:
    """By hand: the best mean without joint, and whoever Holm's adjusted p over all pairs does not tell from it."""
    results, catalogue = made
    frame = results_table(results, catalogue).frame
    for preset, title in ((board.preset, board.title) for board in boards(results, catalogue)):
        of = results.frame[results.frame["preset"] == preset]
        marks = frame[frame["scenario"] == title].set_index("method")["mark"]
        means = of[of["method"] != "joint"].groupby("method")["average_performance"].mean()
        best = str(means.idxmax())
        cells = of.rename(columns={"average_performance": "value"})[["method", "value", "order_seed", "init_seed", "split_seed"]]
        cells = cells.rename(columns={"order_seed": "order", "init_seed": "init", "split_seed": "split"})
        pairs = compare_methods(cells.reset_index(drop=True), higher_is_better=True, alpha=1 - LEVEL)
        told = {frozenset((p["first"], p["second"])): p["p_adjusted"] for p in pairs.to_dict("records")}
        for method in means.index:
            expected = "best" if method == best else "tied" if told[frozenset((method, best))] > 1 - LEVEL else ""
            assert marks[method] == expected, (title, method)
        assert marks["joint"] == ""
    assert {"best", ""} <= set(frame["mark"])


def test_formats_say_the_same(made: tuple[CampaignResults, Catalogue]) -> None:
    results, catalogue = made
    for rows, columns in (("method", "scenario"), ("scenario", "method")):
        table = results_table(results, catalogue, rows=rows, columns=columns, metrics=["average_performance", "forgetting_from_diagonal"])
        whole = pd.read_csv(io.StringIO(table.to_csv()), keep_default_na=False, na_values=[""])
        np.testing.assert_array_equal(whole["mean"], table.frame["mean"])
        lines = [line for line in str(table).splitlines() if line[:1] == "|"]
        shown = [[cell.strip().replace("*", "") for cell in line.strip("|").split("|")] for line in lines]
        latex = [line for line in table.to_latex().splitlines() if line.count("&") == len(shown[0]) - 1][1:]
        plain = [[_plain(cell) for cell in line.replace(r" \\", "").split(" & ")] for line in latex]
        assert [row[1:] for row in plain] == [row[1:] for row in shown[2:]]
        assert table.to_latex().count(r"\multicolumn{2}{c}") == len(table.columns)
        for row, column, metric in itertools.product(table.rows, table.columns, table.metrics):
            entry = table.entries.get((row, column, metric.name))
            if entry is not None:
                text = shown[2 + table.rows.index(row)][1 + table.columns.index(column) * 2 + table.metrics.index(metric)]
                mean, std = (f"{value * metric.scale:.{metric.digits}f}" for value in (entry.score.mean, entry.score.std))
                assert text.replace("−", "-") == f"{mean} ± {std}"


def _plain(latex: str) -> str:
    text = re.sub(r"\\(?:mathbf|underline)\{([^}]*)\}|\$", r"\1", latex).replace(r"\pm", "±")
    return "–" if text == "--" else text.replace("-", "−")


def test_what_stands_behind_the_sign_is_said(made: tuple[CampaignResults, Catalogue]) -> None:
    results, catalogue = made
    table = results_table(results, catalogue, spread="interval")
    (entry, *_) = table.entries.values()
    half = (entry.score.high - entry.score.low) / 2 * 100
    assert f"± {half:.1f}" in str(table)
    assert "half of the 95% interval" in str(table)
    assert "±" not in str(results_table(results, catalogue, spread="none"))


def test_of_a_sweep_nothing_is_named_best(tmp_path: Path) -> None:
    results, catalogue = made_results(
        tmp_path, **SMALL | {"grid": {**SMALL["grid"], "methods": ["si", "bare"], "axes": {"method.strength": [0.1, 0.2]}}}
    )
    table = results_table(results, catalogue)
    assert set(table.frame["mark"]) == {""}
    assert "the best variant of a method would be selected on test data" in str(table)


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"metrics": ["app"]}, UnknownNameError, "metric of these results 'app'"),
        ({"rows": "methods"}, UnknownNameError, "Did you mean 'method'"),
        ({"columns": "method"}, UsageError, "both 'method'"),
        ({"spread": "sem"}, UnknownNameError, "value of spread 'sem'"),
    ],
)
def test_what_is_not_there_is_named(
    made: tuple[CampaignResults, Catalogue], asked: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        results_table(*made, **asked)


def test_the_command(made: tuple[CampaignResults, Catalogue], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Of a store, whatever campaigns filled it: the same table as of the campaign; a campaign's options are refused there."""
    results, catalogue = made
    monkeypatch.setattr(Session, "catalogue", lambda self: made_catalogue())
    assert run(["table", str(results.store), "--metrics", "ap", "--format", "csv"]) == 0
    assert capsys.readouterr().out == results_table(store_results(Store(results.store), catalogue), catalogue, metrics=["ap"]).to_csv()
    assert run(["table", str(results.store), "--output", str(tmp_path / "t.tex"), "--format", "latex", "--rows", "scenario"]) == 0
    assert r"\begin{tabular}" in (tmp_path / "t.tex").read_text()
    assert run(["table", str(results.store), "--only", "method=bare"]) == 2
    assert "is a store" in capsys.readouterr().err
