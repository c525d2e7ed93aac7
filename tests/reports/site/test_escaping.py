"""A hostile plugin tries script, formulas and TeX through every text that it may give: all of it ends as text."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from hostile_plugin import HOSTILE, MARK, attacked_results, attacked_site, hostile_catalogue
from hypothesis import given
from hypothesis import strategies as st
from made_records import CAMPAIGN, fill_store
from report_lab import Elements, assert_harmless, page_with

from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue
from cglsuite.reports.rendering.job import Outcome
from cglsuite.reports.rendering.notebook import failure_html
from cglsuite.reports.rendering.page import script_json
from cglsuite.reports.results import runs as show_runs
from cglsuite.reports.results.results import CampaignResults
from cglsuite.reports.results.summary import definitions, overview, summary
from cglsuite.reports.site import leaderboard as show_leaderboard
from cglsuite.reports.site.downloads import csv_text, latex_text
from cglsuite.reports.site.index import dataset_pages
from cglsuite.reports.studies import campaign as show


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> tuple[CampaignResults, Catalogue]:
    """Results of the hostile campaign."""
    return attacked_results(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def page(attacked: tuple[CampaignResults, Catalogue]) -> str:
    """The index."""
    return attacked_site(*attacked)


def test_the_attack_is_on_the_page(page: str) -> None:
    """Otherwise the other tests would show nothing: the text is there, many times, as text."""
    assert page.count(f"&lt;script&gt;{MARK}(1)&lt;/script&gt;") > 30
    soup = BeautifulSoup(page, "html.parser")
    shown = soup.get_text()
    for place in ("#leaderboards", "#methods", "#definitions", "#problems", "#provenance", "#reports", "header"):
        assert f"<script>{MARK}(1)</script>" in soup.select_one(place).get_text(), place
    assert MARK in shown


def test_html_holds_no_element_of_the_attacker(page: str) -> None:
    """Two scripts, both ours; no handler, no picture, no link but to places on the page, to our other pages and to downloads."""
    assert_ours(page)


def test_pages_of_data_sets_hold_no_element_of_the_attacker(attacked: tuple[CampaignResults, Catalogue]) -> None:
    """Nor do those, whose names are plain."""
    results, catalogue = attacked
    pages = dataset_pages(results.campaign, catalogue, results)
    assert pages
    assert all(re.fullmatch(r"dataset-[A-Za-z0-9._+@-]+\.html", name) for name in pages)
    for page in pages.values():
        assert_ours(page)
        assert MARK in page


def assert_ours(page: str) -> None:
    elements = Elements(page).found
    assert [attributes for tag, attributes in elements if tag == "script"] == [{"type": "application/json", "id": "data"}, {}]
    assert not [tag for tag, _ in elements if tag in {"img", "iframe", "form", "base", "object", "link"}]
    assert not [name for _, attributes in elements for name in attributes if name.startswith("on") or name == "style"]
    links = [str(attributes["href"]) for tag, attributes in elements if tag == "a"]
    assert all(re.match(r"#|(?:n|index|dataset-[A-Za-z0-9._+@-]+)\.html$|data:(?:text/csv|application/x-)", link) for link in links)
    assert not [a for _, a in elements if any(MARK in str(a.get(name) or "") for name in ("id", "class", "href", "data-column"))]


def test_json_cannot_end_its_element(page: str) -> None:
    """Between the tags of the data there is no angle bracket at all, and it reads back as what was meant."""
    content = page.partition('id="data">')[2].partition("</script>")[0]
    assert not set("<>&\u2028\u2029") & set(content)
    assert MARK in json.dumps(json.loads(content))


def files_of(page: str) -> dict[str, str]:
    soup = BeautifulSoup(page, "html.parser")
    links = soup.select("a[download]")
    assert all(re.fullmatch(r"[A-Za-z0-9._+@-]+", str(link["download"])) for link in links)
    return {link.text: base64.b64decode(str(link["href"]).partition(",")[2]).decode() for link in links}


def test_csv_has_no_formula(page: str) -> None:
    """No cell begins as one; rows are not broken by line ends within cells."""
    rows = list(csv.reader(io.StringIO(files_of(page)["CSV"])))
    assert len({len(row) for row in rows}) == 1
    texts = [cell for row in rows for cell in row if not re.fullmatch(r"-?[\d.e+-]+", cell)]
    assert any(MARK in cell for cell in texts)
    assert not [cell for cell in texts if cell.lstrip()[:1] in set("=+-@")]


def test_latex_prints_the_attack(page: str) -> None:
    """No command of the attacker's, no line of his own."""
    text = files_of(page)["LaTeX"]
    code = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert MARK in code
    known = {"begin", "end", "toprule", "midrule", "bottomrule", "uparrow", "downarrow", "pm", "mathbf"}
    known |= {
        f"text{name}" for name in ("backslash", "braceleft", "braceright", "asciitilde", "asciicircum", "less", "greater", "quotedbl")
    }
    assert set(re.findall(r"\\([A-Za-z]+)", code)) <= known
    assert len(text.splitlines()) == len([line for line in text.splitlines() if line.startswith("%")]) + 5 + 1 + 2


def test_bibtex_entries_are_ours(page: str) -> None:
    """Braces are in balance, every entry is one that we began, and nothing ends one early."""
    text = files_of(page)["BibTeX"]
    entries = re.findall(r"^@misc\{([a-z]+:[A-Za-z0-9.+-]+),$(.*?)^\}$", text, re.MULTILINE | re.DOTALL)
    assert {key.partition(":")[0] for key, _ in entries} <= {"scenario", "dataset", "metric", "method", "backbone"}
    assert text.count("{") == text.count("}")
    for _, body in entries:
        fields = [line for line in body.splitlines() if line]
        assert all(re.fullmatch(r"  [a-z]+ = \{.*\},", line) for line in fields)
        for line in fields:
            inner = line.partition("{")[2]
            depth = [inner[:i].count("{") - inner[:i].count("}") for i in range(len(inner) - 1)]
            assert min(depth) >= 0


def test_notebook_pages_are_harmless(attacked: tuple[CampaignResults, Catalogue]) -> None:
    """The same tables on pages of notebooks, which have no script but that of figures."""
    results, catalogue = attacked
    parts = [overview(results), show_leaderboard.leaderboard(results, catalogue), show_leaderboard.method_cards(results, catalogue)]
    parts += [summary(results), definitions(results)]
    parts += [show_runs.problems(results), show_runs.provenance(results), show_runs.configurations(results)]
    parts += [show.names(catalogue, kind) for kind in ("method", "metric", "dataset", "scenario", "backbone")]
    shown = page_with(*parts)
    assert_harmless(shown)
    assert shown.count(MARK) > 30


def test_a_failure_page_is_harmless() -> None:
    """Reason, traceback, title and name of the notebook."""
    shown = failure_html(HOSTILE, HOSTILE, Outcome(status="failed", reason=HOSTILE, details=HOSTILE))
    assert_harmless(shown)
    assert f"&lt;script&gt;{MARK}(1)" in shown


@given(st.text())
def test_any_text_in_json_reads_back(text: str) -> None:
    """And has nothing in it that a parser of HTML would look at."""
    shown = script_json({"x": text})
    assert json.loads(shown) == {"x": text}
    assert not re.search(r"[<>&\u2028\u2029]", shown)


@given(st.text())
def test_any_text_in_csv_is_no_formula(text: str) -> None:
    """What a spreadsheet sees first is not one of the characters with which formulas begin."""
    assert csv_text(text).lstrip()[:1] not in set("=+-@\uff1d\uff0b\uff0d\uff20") - {""} or not csv_text(text).strip()


@given(st.text())
def test_any_text_in_latex_is_one_line_in_balance(text: str) -> None:
    """Every special character is escaped, every brace closed again within the text."""
    shown = latex_text(text)
    assert len(shown.splitlines()) <= 1
    bare = re.sub(r"\\text[a-z]+\{\}|\\[$&#%_]|\$\\?[a-z]+\$|\$-\$", "", shown)
    assert not set(bare) & set("\\{}$&#%_~^<>")
    assert shown.count("{") == shown.count("}")


def test_store_of_the_attack_is_ordinary(tmp_path: Path) -> None:
    """The factory makes records that the store takes, so that the attack came through the same door as any plugin's text."""
    catalogue = hostile_catalogue()
    grid = {"scenarios": ["cora/task-il@begin-1"], "methods": ["bare"]}
    plan = fill_store(CAMPAIGN | {"grid": grid}, catalogue, tmp_path)
    assert len(list(Store(tmp_path).records())) == len(plan) == 5
