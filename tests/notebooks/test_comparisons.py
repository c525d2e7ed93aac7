"""The notebooks on comparing methods, executed on a small campaign that is trained here: their pages equal what records alone give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from page_elements import text_of, texts
from page_numbers import exact_numbers, numbers
from report_lab import Elements, assert_harmless

from cglsuite.host import load_catalogue
from cglsuite.reports.rendering.notebook import LARGEST_PAGE, render_notebook
from cglsuite.reports.results.results import load_campaign_results
from cglsuite.reports.studies.categories import category_study
from cglsuite.reports.studies.comparison import compute as comparison

pytestmark = [pytest.mark.notebook, pytest.mark.plugins, pytest.mark.usefixtures("no_kernel")]
SMALL = {"dataset.n_nodes": 120, "dataset.n_classes": 4, "backbone.width": 16, "training.epochs": 3}


def test_method_comparison(tmp_path: Path) -> None:
    """Six orders of three tasks, two methods against a third; the page is of moderate size."""
    inline: dict[str, Any] = {
        "name": "comparison",
        "grid": {"scenarios": ["synthetic-csbm/class-il@begin-1"], "methods": ["bare", "er-gnn", "joint"]},
        "set": SMALL | {"scenario.n_tasks": 3, "dataset.n_classes": 6, "training.epochs": 25, "training.lr": 0.02},
        "seeds": {"order": [0, 1, 2, 3, 4, 5], "init": [0, 1, 2, 3, 4, 5]},
        "run": {"device": "cpu"},
    }
    given = {"inline": inline, "store": str(tmp_path / "store"), "against": "bare", "smallest_difference": 2.0}
    report = render_notebook("method_comparison", given, tmp_path / "comparison.html", catalogue=load_catalogue())
    assert report.done, report.reason
    page = report.path.read_text()
    assert_harmless(page)
    assert len(page.encode()) < LARGEST_PAGE
    study = comparison.study(load_campaign_results(inline, tmp_path / "store"), comparison.Question(against="bare", smallest=2.0))
    (one,), shown = study.comparisons, exact_numbers(page)
    pairs = comparison.pairs(one)
    assert (one.unit, pairs["n"].to_list()) == ("order", [6, 6])
    assert not pairs["refused"].iloc[1]  # joint training against fine-tuning
    assert set(filter(None, pairs["refused"])) <= set(texts(page, "td.quiet"))
    assert numbers(pairs[["estimate", "low", "high", "p", "p_adjusted", "g"]]) <= shown
    assert numbers(comparison.means(one)[["mean", "std"]]) <= shown
    assert numbers(comparison.needs(one)[["std", "detectable", "needed"]]) <= shown
    assert comparison.friedman(one).p in shown
    drawn = [str(attributes["alt"]).partition(" in ")[0] for tag, attributes in Elements(page).found if tag == "img"]
    assert drawn == ["AP (AA), %", "Differences between methods", "Average ranks", "rank, 1 = best"]
    assert texts(page, "td.quiet").count("refused: every order has its own seed, so order and seed effects cannot be separated") == 2


@pytest.mark.nightly
def test_category_ranks(tmp_path: Path) -> None:
    """Figure 7 and a campaign of two categories."""
    inline: dict[str, Any] = {
        "name": "categories",
        "grid": {"scenarios": ["synthetic-csbm/task-il@begin-1"], "methods": ["bare", "lwf", "ewc", "er-gnn"]},
        "set": SMALL,
        "run": {"device": "cpu"},
    }
    given = {"inline": inline, "store": str(tmp_path / "store"), "metrics": ["average_performance"]}
    report = render_notebook("category_ranks", given, tmp_path / "categories.html", catalogue=load_catalogue())
    assert report.done, report.reason
    page = report.path.read_text()
    assert_harmless(page)
    assert len(page.encode()) < LARGEST_PAGE
    assert text_of(page, "figcaption", "tests agree").startswith("12 of 15 tests agree to every printed digit;")
    study = category_study(load_campaign_results(inline, tmp_path / "store"), load_catalogue(), ["average_performance"])
    (panel,) = study.ranked
    assert panel.ranks[["category", "method"]].to_numpy().tolist() == [
        ["regularization-based", "lwf"],
        ["regularization-based", "ewc"],
        ["replay-based", "er-gnn"],
    ]
    assert numbers(panel.averages[["rank"]]) <= exact_numbers(page)
    assert text_of(page, "td.quiet", "a test needs").endswith("a test needs at least 3 in each sample")
    assert sum(tag == "img" for tag, _ in Elements(page).found) == 3 + 1
