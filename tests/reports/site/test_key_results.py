"""Key results: computed sentences on the best learner, by how much it is ahead or behind, published values and warnings."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bs4 import BeautifulSoup
from report_lab import EVIL, catalogue_of, raised_results
from scipy import stats

from cglsuite.base.markup import element
from cglsuite.reports.kit.text import key_box
from cglsuite.reports.rendering.page import Page, page_html
from cglsuite.reports.results.results import CampaignResults, load_campaign_results
from cglsuite.reports.results.summary import overview
from cglsuite.reports.site.index import Finding, _best_line, findings, key_results

Made = Callable[..., CampaignResults]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Results of one scenario: see :func:`report_lab.raised_results`."""
    return partial(raised_results, tmp_path / "store")


def only(results: CampaignResults) -> Finding:
    (finding,) = findings(results, catalogue_of())
    return finding


def finals(results: CampaignResults, method: str) -> list[float]:
    return [float(np.mean(record.performance()[-1])) for record in results.used if record.cell["method"] == method]


def test_the_best_learner_first(made: Made) -> None:
    """By how much it beats others and is below joint training, with the p values of all pairs; then its interval."""
    results = made({"bare": 0.0, "ewc": 0.1, "joint": 0.2})
    finding = only(results)
    assert (finding.title, finding.best) == ("toy · class-IL · CGLB 1", "ewc")
    (sentence,) = finding.sentences
    value = {method: 100.0 * np.mean(finals(results, method)) for method in ("ewc", "joint", "bare")}
    low, high = stats.t.interval(0.95, 4, value["ewc"], stats.sem([100.0 * final for final in finals(results, "ewc")]))
    assert sentence == (
        f"ewc is best with AP {value['ewc']:.1f}%: it beats bare by {value['ewc'] - value['bare']:.1f} points (p < .001), "
        f"and is {value['joint'] - value['ewc']:.1f} points below joint (p < .001) [95% interval {low:.1f} to {high:.1f}, n = 5]."
    )


def test_a_difference_within_chance_is_none(made: Made) -> None:
    """A method between noise and joint training: what is not significant is said."""
    (sentence,) = only(made({"bare": 0.0, "ewc": 0.002, "joint": 0.2}, ewc=0.05)).sentences
    assert "points below joint (p " in sentence
    assert "shows no significant difference from " in sentence


def test_a_method_above_joint_training(made: Made) -> None:
    """The gap has its sign in words, and the warning of an under-trained joint stands below."""
    results = made({"bare": 0.0, "ewc": 0.2, "joint": 0.1})
    assert " and joint by 10." in only(results).sentences[0]
    section = key_results(results, catalogue_of())
    assert section is not None
    assert "joint training is below another method (1 of 1 comparisons)." in section.source


def test_too_few_orders_to_test(made: Made) -> None:
    finding = only(made({"bare": 0.0, "ewc": 0.1}, orders=2))
    assert "no interval" in finding.sentences[0]
    assert "above bare (not tested)" in finding.sentences[0]
    assert finding.sentences[1].startswith("No difference can be tested: ")


def test_variants_of_a_method_are_a_sweep(made: Made) -> None:
    """No setting is best by its test performance without being called so, and joint training is that of the same settings."""
    results = made({"bare": 0.0, "ewc": 0.1, "joint": 0.2}, lambdas=(1.0, 2.0, 5.0))
    finding = only(results)
    assert finding.best == ""
    first, second = finding.sentences
    assert first.startswith("AP over 3 settings of lambda: ")
    assert re.search(r"ewc 7\d\.\d to 7\d\.\d%", first)
    assert second.startswith("Best of 3 settings of ewc by test performance (optimistic): ewc (lambda=5) with 7")
    assert " points below joint (" in second
    assert "is best with" not in " ".join(finding.sentences)
    assert "interval" not in " ".join(finding.sentences)


def test_validation_may_choose_among_variants(made: Made) -> None:
    """Validation is best where test performance is worst: the chosen variant is compared, among chosen ones alone."""
    results = made({"bare": 0.0, "ewc": 0.1, "joint": 0.2}, lambdas=(1.0, 2.0, 5.0), validated=True)
    finding = only(results)
    assert finding.best == "ewc (lambda=1)"
    first, second = finding.sentences
    assert first.startswith("ewc (lambda=1) is best with AP 7")
    assert "it beats bare by " in first
    assert "points below joint (p < .001) [setting chosen by validation out of 3; 95% interval" in first
    assert second.startswith("AP over 3 settings of lambda: ")


def test_fine_tuning_is_a_learner(made: Made) -> None:
    finding = only(made({"bare": 0.0, "joint": 0.2}))
    assert finding.best == "bare"
    assert finding.sentences[0].startswith("bare has AP 5")
    assert " points below joint (p < .001) [" in finding.sentences[0]


def test_without_records_there_is_no_section(made: Made, tmp_path: Path) -> None:
    results = made({"bare": 0.0})
    empty = load_campaign_results(results.campaign, tmp_path / "empty", catalogue=catalogue_of())
    assert key_results(empty, catalogue_of()) is None


def test_the_section_comes_first(made: Made) -> None:
    """Before tiles and warnings."""
    results = made({"bare": 0.0, "ewc": 0.1, "joint": 0.2})
    soup = BeautifulSoup(overview(results, key_results(results, catalogue_of())).source, "html.parser")
    names = [" ".join(tag.get("class", [])) for tag in soup.find_all(["section", "ul"])]
    assert names.index("key-results") < names.index("tiles")


def notebook() -> Any:
    import nbformat

    lead = {"output_type": "display_data", "data": {"text/html": '<p class="lead"><strong>What a &amp; b do</strong></p>'}, "metadata": {}}
    cells = [
        nbformat.v4.new_markdown_cell("# Campaign report\n\nText."),
        nbformat.v4.new_code_cell("1", outputs=[nbformat.from_dict(lead)]),
    ]
    return nbformat.v4.new_notebook(cells=cells)


def test_the_title_of_a_campaign_heads_its_page() -> None:
    """The notebook's own heading stands below it, and the title is not said twice."""
    page = BeautifulSoup(page_html(notebook(), Page(title="t", heading="What a & b do")), "html.parser")
    assert [h.text for h in page.find_all("h1")] == ["What a & b do"]
    assert page.select_one("p.kind").text == "Campaign report"
    assert page.select_one("p.lead") is None
    own = BeautifulSoup(page_html(notebook(), Page(title="t")), "html.parser")
    assert [h.text.rstrip("#") for h in own.find_all("h1")] == ["Campaign report"]
    assert own.select_one("p.lead").text == "What a & b do"


def test_a_hostile_title_is_text() -> None:
    page = page_html(notebook(), Page(title="t", heading=EVIL))
    assert EVIL not in page


def test_many_scenarios_are_folded_below_who_is_best_how_often(made: Made) -> None:
    """The first five are shown."""
    scenarios = ["toy/class-il@cglb-1", "cora/task-il@begin-1"]
    results = made({"bare": 0.0, "ewc": 0.1}, scenarios=scenarios)
    found = findings(results, catalogue_of())
    section = key_box([element("li", "all")], [element("li", f"scenario {n}") for n in range(7)])
    page = BeautifulSoup(section.source, "html.parser")
    assert [item.text for item in page.select("section > ul > li")] == [*(f"scenario {n}" for n in range(5)), "all"]
    assert [item.text for item in page.select("details li")] == ["scenario 5", "scenario 6"]
    assert page.summary.text == "2 more scenarios"
    assert list(_best_line(found)) == []
    assert list(_best_line(found * 2)) == ["Best learner: ewc in 4 of 4 scenarios."]
