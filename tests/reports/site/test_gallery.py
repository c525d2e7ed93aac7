"""The gallery can be rendered again from the records that are committed with it, and its numbers are theirs.

``reports/gallery/gallery.toml`` says which page comes from what. A page that is out of date fails here with the command that renders it.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from gallery import NOT_KEPT, Entry, entries, made_from, outdated, readme, recorded
from report_lab import assert_holds_together

from cglsuite.cells.records.frame import results_frame
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, load_catalogue
from cglsuite.reference.reproduction import Selection, planned_groups, reproduction_of
from cglsuite.reports.studies.findings.compute import load_findings
from cglsuite.reports.studies.findings.message import headlines
from cglsuite.reports.studies.papers.disagreements import crossings
from cglsuite.reports.studies.papers.page import answer

GALLERY = Path(__file__).parents[3] / "reports" / "gallery"
PAGES = sorted(GALLERY.rglob("*.html"))


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def records() -> list[object]:
    return list(Store(GALLERY / "records").records())


def test_every_record_can_be_read() -> None:
    """Those in files of their own, and those in shards."""
    files = Store(GALLERY / "records").record_files()
    manifest = [json.loads(path.read_text(encoding="utf-8")) for path in (GALLERY / "records" / "manifest").glob("*.json")]
    packed = sum(shard["records"] for entry in manifest for shard in entry["shards"])
    assert len(records()) == len(files) + packed >= 1500


# --- the list, the table, the pages and the records ---------------------------------------------------------------------------------


def test_every_page_is_in_the_list_and_every_listed_page_is_there() -> None:
    listed = {path for one in entries() for path in one.files()}
    assert listed == set(PAGES)
    assert len({one.name for one in entries()}) == len(entries())
    for one in entries():
        assert all((GALLERY.parent / name).is_file() for name in one.campaigns)


def test_the_table_is_that_of_the_list() -> None:
    text = (GALLERY / "README.md").read_text(encoding="utf-8")
    assert readme(text) == text, "run: python tests/tools/gallery.py"
    rows = {line for line in text.splitlines() if line.startswith("| [")}
    for one in entries():
        (row,) = [row for row in rows if f"[{next(iter(one.pages.values()))}]" in row]
        assert (NOT_KEPT in row) == (not one.kept)


def test_what_is_recorded_is_of_pages_with_records() -> None:
    kept = {path.relative_to(GALLERY).as_posix(): one.name for one in entries() if one.kept for path in one.files()}
    assert {page: facts["entry"] for page, facts in recorded().items()} == kept


@pytest.mark.plugins
@pytest.mark.parametrize("one", [one for one in entries() if one.kept], ids=lambda one: one.name)
def test_pages_are_of_the_records_that_are_there(one: Entry, catalogue: Catalogue) -> None:
    reasons = outdated(one, catalogue)
    assert not reasons, f"{'; '.join(reasons)}; run: python tests/tools/gallery.py {one.name}"
    assert all(facts["n"] for facts in recorded().values())


@pytest.mark.plugins
@pytest.mark.parametrize("one", [one for one in entries() if not one.kept], ids=lambda one: one.name)
def test_pages_whose_records_were_not_kept_have_none(one: Entry, catalogue: Catalogue) -> None:
    """As soon as there are some, the page is to be rendered from them."""
    assert made_from(one, catalogue)["n"] == 0


@pytest.mark.nightly
@pytest.mark.plugins
def test_findings_are_those_of_the_records(catalogue: Catalogue) -> None:
    """Every sentence, to the last digit, and the table of 28.6 or 77.2."""
    store = Store(GALLERY / "records")
    page = BeautifulSoup((GALLERY / "findings.html").read_text(encoding="utf-8"), "html.parser")
    shown = [" ".join(item.get_text().split()) for item in page.select(".key-results li")]
    said = [" ".join(text.split()) for _, text in headlines(load_findings(store, catalogue=catalogue))]
    assert [text.partition(": ")[2] for text in shown] == said, "run: python tests/tools/gallery.py findings"
    ledger = BeautifulSoup((GALLERY / "ledger.html").read_text(encoding="utf-8"), "html.parser")
    lines = [item.get_text() for item in ledger.select(".key-results li")]
    assert {answer(one) for one in crossings(store, catalogue)} <= set(lines), "run: python tests/tools/gallery.py ledger"


@pytest.mark.plugins
def test_a_plan_counts_the_cells_of_the_gallery_as_done(catalogue: Catalogue) -> None:
    """``cglsuite reproduce --plan-only --store reports/gallery/records`` in a clean clone, by exact keys and not by designs alone.

    After a change of numerical code, ``cglsuite migrate`` gives the records that reruns reproduce their new keys.
    """
    store = Store(GALLERY / "records")
    (words,) = (one.reproduce for one in entries() if one.name == "reproduction")
    assert words == ["--paper", "BeGin", "--dataset", "Cora"]
    wanted = reproduction_of(Selection(paper="BeGin", dataset="Cora"), catalogue)
    groups = planned_groups(wanted.plan(catalogue), store, absent={})
    made = {record.environment.get("torch") for record in store.records() if record.cell["scenario"].endswith("@begin-2")}
    if made != {version("torch")}:
        pytest.skip(
            f"records are of torch {', '.join(map(str, sorted(made)))}, whose keys have that version: {version('torch')} is installed"
        )
    assert sum(group.counts.get("done", 0) for group in groups) == recorded()["reproduction.html"]["n"]


# --- numbers -----------------------------------------------------------------------------------------------------------------------


def test_the_page_prints_what_the_records_say() -> None:
    frame = results_frame(records())  # type: ignore[arg-type]
    frame = frame[frame.protocol == "drift-honest-1"]
    assert set(frame.status) == {"done"}
    text = re.sub(r"<[^>]+>", "", (GALLERY / "drift-sigma" / "campaign_report.html").read_text(encoding="utf-8"))
    text = " ".join(text.split())
    groups = frame.groupby(["scenario", "configuration.schedule.sigma", "method"]).a_auc
    assert len(groups) == 36
    missing = [key for key, values in groups if f"{100 * values.mean():.1f} ± {100 * values.std():.1f}" not in text]
    assert not missing


def test_isolation_forgets_nothing_on_real_data() -> None:
    """BeGin keeps the whole graph, so answers to an old task keep their bits: AF is 0 in every run, not only in the mean."""
    frame = results_frame(records())  # type: ignore[arg-type]
    frame = frame[(frame.protocol == "begin-1") & (frame.setting == "task-il") & (frame.status == "done")]
    isolated = frame[frame.method.isin(["packnet", "piggyback", "pi-gnn"])]
    assert set(isolated.method) == {"packnet", "piggyback", "pi-gnn"}
    assert set(isolated["configuration.scenario.edge_policy"]) == {"full"}
    assert (isolated.forgetting_from_diagonal == 0).all()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(GALLERY)))
def test_pages_are_self_contained(page: Path) -> None:
    content = page.read_text(encoding="utf-8")
    assert content.rstrip().endswith("</html>")
    assert not re.search(r"""<(?:script|link|img)[^>]+(?:src|href)=["']https?:""", content)
    assert not re.search(r"(?<![\w.])/(?:home|root|tmp|work|Users)/", content)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(GALLERY)))
def test_tables_hold_together(page: Path) -> None:
    assert_holds_together(page.read_text(encoding="utf-8"))
