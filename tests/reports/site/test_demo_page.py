"""The first page of the demonstration shows both tests of every pair, and the numbers of Welch's are SciPy's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests

from cglsuite import stats
from cglsuite.cells.storage.store import Store
from cglsuite.host import load_catalogue
from cglsuite.reports.results.results import load_campaign_results

REPORTS = Path(__file__).parents[3] / "reports"
TITLES = ["The design's test", "Welch's test, as if run separately (as in papers)"]
pytestmark = pytest.mark.plugins


def test_both_tests_stand_in_one_table_and_welchs_numbers_are_scipys() -> None:
    """Read off the rendered page, to every digit that it keeps, and compared with the matrices of the records."""
    results = load_campaign_results(REPORTS / "demo.toml", Store(REPORTS / "gallery" / "demo" / "records"), catalogue=load_catalogue())
    page = BeautifulSoup((REPORTS / "gallery" / "demo" / "campaign_report.html").read_text(encoding="utf-8"), "html.parser")
    tables = [t for t in page.select("table") if [th.get_text() for th in t.select("thead tr")[0].select("th")] == TITLES]
    assert [t.find_parent("figure").select_one("strong").get_text() for t in tables] == [  # type: ignore[union-attr]
        f"{results.preset_title(preset)} × gcn" for preset in dict.fromkeys(g.preset for g in results.groups)
    ]
    for table, preset in zip(tables, dict.fromkeys(g.preset for g in results.groups), strict=True):
        values = {
            g.label: np.array([np.mean(r.performance()[-1]) for r in sorted(g.records, key=lambda r: r.cell["seeds"]["order"])])
            for g in results.groups
            if g.preset == preset
        }
        rows = table.select("tbody tr")
        pairs = [row.select_one("th").get_text().split(" − ") for row in rows]  # type: ignore[union-attr]
        assert len(rows) == 6
        tested = [scipy_stats.ttest_ind(values[a], values[b], equal_var=False) for a, b in pairs]
        adjusted = multipletests([one.pvalue for one in tested], method="holm")[1]
        own = int(table.select("thead tr")[0].select("th")[0]["colspan"])
        for row, (a, b), one, p in zip(rows, pairs, tested, adjusted, strict=True):
            cells = row.select("td")[own:]
            assert not row.select(".badge")[1:], "one badge, of the design's test"
            shown = [float(cells[k]["data-value"]) for k in (0, 2, 3, 4, 5)]
            assert shown == pytest.approx([values[a].mean() - values[b].mean(), one.statistic, one.df, one.pvalue, p])
            interval = one.confidence_interval(0.95)
            assert [float(cells[1][f"data-{end}"]) for end in ("low", "high")] == pytest.approx([interval.low, interval.high])
            effect = stats.hedges_g(values[a], values[b], paired=False)
            assert float(cells[6]["data-value"]) == pytest.approx(effect.g)
            paired = scipy_stats.ttest_rel(values[a], values[b])
            design = row.select("td")[:own]
            assert float(design[4]["data-value"]) == pytest.approx(paired.statistic)


def test_no_p_of_a_pair_is_near_the_level() -> None:
    """Of either test, adjusted or not: none between .005 and .2, so that no verdict hangs on a digit."""
    page = BeautifulSoup((REPORTS / "gallery" / "demo" / "campaign_report.html").read_text(encoding="utf-8"), "html.parser")
    tables = [t for t in page.select("table") if [th.get_text() for th in t.select("thead tr")[0].select("th")] == TITLES]
    shown = []
    for table in tables:
        names = [th.get_text() for th in table.select("thead tr")[1].select("th")]
        for row in table.select("tbody tr"):
            shown += [float(cell["data-value"]) for name, cell in zip(names[1:], row.select("td"), strict=True) if name.startswith("p")]
    assert len(shown) == 2 * 6 * 4
    assert [p for p in shown if 0.005 <= p <= 0.2] == []


def test_the_page_says_what_sharing_orders_costs_welchs_test() -> None:
    """With the shares that the simulation stored."""
    page = BeautifulSoup((REPORTS / "gallery" / "demo" / "campaign_report.html").read_text(encoding="utf-8"), "html.parser")
    shares = stats.error_rate("sharing", "4")
    welch, paired = shares["power, Welch"], shares["power, paired"]
    said = f"a true difference of 2 points in {welch:.0f}% of cases; the paired test detects it in {paired:.0f}%."
    assert said in " ".join(page.get_text().split())
