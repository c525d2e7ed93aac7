"""What is told of the runs behind the numbers is what was computed."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from made_records import made_results
from page_elements import texts
from report_lab import Tables, page_of

from cglsuite.reports.results import tables
from cglsuite.reports.results.results import CampaignResults


def test_resources_numbers_equal_the_computed_ones(results: CampaignResults) -> None:
    """Seconds as they are, parts in percent of them."""
    (table,) = Tables(page_of(results, "resources")).tables
    rows = [row for row in table[1:] if len(row) > 1]
    for shown, row in zip(rows, tables.resources(results).to_dict(orient="records"), strict=True):
        assert shown[2][1] == row["total_s"]
        assert shown[3][1] == pytest.approx(100 * row["training_s"] / row["total_s"])


def test_every_table_names_its_backbone_once(tmp_path: Path) -> None:
    """Backbones have tables of their own: the caption names it, the rows need not."""
    grid = {"scenarios": ["toy/class-il@cglb-1"], "methods": ["bare", "si"], "backbones": ["gcn", "gat"]}
    results, _ = made_results(tmp_path, grid=grid)
    page = page_of(results, "summary")
    captions = [caption.partition(" – ")[2].partition("; ")[0] for caption in texts(page, "figcaption")]
    assert captions == ["backbone gcn", "backbone gat"]
    assert [[row[0][0] for row in table] for table in Tables(page).tables] == [["method", "bare", "si"]] * 2


def test_shared_values_are_folded_below_those_of_each_method(results: CampaignResults) -> None:
    """Every value of a configuration stands once: with its method if it is its own, else in the list of shared ones, which is counted."""
    soup = BeautifulSoup(page_of(results, "configurations"), "html.parser")
    presets = list(dict.fromkeys(group.preset for group in results.groups))
    folded = soup.select("details > details")
    assert len(folded) == len(presets) == len(soup.find_all("table"))
    for preset, details in zip(presets, folded, strict=True):
        shared = tables.common_configuration(results, preset)
        assert shared
        assert details.find("summary").text == f"{len(shared)} shared values"
        assert [dt.text for dt in details.find_all("dt")] == list(shared)
    own = [code.text for code in soup.select("td code")]
    assert any(text.startswith("method.lambda = ") for text in own)
