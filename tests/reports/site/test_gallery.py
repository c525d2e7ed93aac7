"""The gallery's pages in git are of the records that are committed with them, and their numbers are theirs.

``reports/gallery/gallery.toml`` says which page comes from what. A page that is out of date fails here with the command that renders it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import gallery
import pytest
from bs4 import BeautifulSoup
from gallery import RENDERED, Entry, entries, outdated, readme, recorded
from report_lab import assert_holds_together

from cglsuite.campaigns.reference.reproduction import Selection, planned_groups, reproduction_of
from cglsuite.cells.records.frame import results_frame
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, load_catalogue
from cglsuite.reports.studies.findings.compute import load_findings
from cglsuite.reports.studies.findings.page import headlines
from cglsuite.reports.studies.papers.compute import crossings
from cglsuite.reports.studies.papers.page import answer

GALLERY = Path(__file__).parents[3] / "reports" / "gallery"
KEPT = [one for one in entries() if one.kept]
PAGES = sorted(path for path in GALLERY.rglob("*.html") if RENDERED not in path.parents)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def records() -> list[object]:
    return list(Store(GALLERY / "records").records())


# --- the list, the table, the pages and the records ---------------------------------------------------------------------------------


def test_every_page_is_in_the_list_and_every_listed_page_is_there() -> None:
    assert [path.relative_to(GALLERY).as_posix() for path in PAGES] == sorted(place for one in KEPT for place in one.places)
    assert len({one.name for one in entries()}) == len(entries())
    for one in entries():
        assert all((GALLERY.parent / name).is_file() for name in one.campaigns)
        assert {*one.kept, *one.data} <= {*one.pages}


def test_every_clone_stays_small() -> None:
    """Each version of a page stays in every clone: few are in git, and the others are rendered."""
    assert len(PAGES) <= 8
    assert sum(page.stat().st_size for page in PAGES) <= 8_000_000


def test_the_tables_are_those_of_the_list() -> None:
    """Pages in git are links that lead to a file; the others are named beside the command."""
    text = (GALLERY / "README.md").read_text(encoding="utf-8")
    assert readme(text) == text, "run: python tests/tools/gallery.py"
    linked = re.findall(r"^\| \[(\S+\.html)\]\((\S+)\) \|", text, re.MULTILINE)
    assert linked == [(place, place) for one in KEPT for place in one.places]
    assert all((GALLERY / target).exists() for target in re.findall(r"\]\(([^)]+)\)", text))
    named = re.findall(r"^\| `(\S+)` \| `", text, re.MULTILINE)
    assert named == [one.name for one in entries() if {*one.pages} - {*one.kept}]


def test_what_is_recorded_is_of_pages_in_git() -> None:
    assert {page: facts["entry"] for page, facts in recorded().items()} == {place: one.name for one in KEPT for place in one.places}
    assert all(facts["n"] for facts in recorded().values())


@pytest.mark.plugins
@pytest.mark.parametrize(
    "one",
    [pytest.param(one, marks=[] if one.name in ("demo", "findings") else [pytest.mark.nightly]) for one in KEPT],
    ids=lambda one: one.name,
)
def test_pages_are_of_the_records_that_are_there(one: Entry, catalogue: Catalogue) -> None:
    reasons = outdated(one, catalogue)
    assert not reasons, f"{'; '.join(reasons)}; run: python tests/tools/gallery.py {one.name}"


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


@pytest.mark.nightly
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


@pytest.mark.nightly
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


@pytest.mark.nightly
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(GALLERY)))
def test_tables_hold_together(page: Path) -> None:
    assert_holds_together(page.read_text(encoding="utf-8"))


# --- the command -------------------------------------------------------------------------------------------------------------------

Command = Callable[..., tuple[int, set[str]]]
LIST = """
[[page]]
name = "both"
campaigns = ["both.toml"]
pages = { "a.html" = "both/a.html", "b.html" = "both/b.html" }
kept = ["a.html"]
data = ["b.html"]
shows = "one page in git, one that reads data"

[[page]]
name = "site"
campaigns = ["site.toml"]
site = true
pages = { "index.html" = "site/index.html" }
shows = "a folder"
"""


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command over a small gallery whose pages say what was rendered; it returns the status and the pages that are there."""
    there: dict[str, object] = {"n": 2, "records": "x"}
    (tmp_path / "gallery.toml").write_text(LIST, encoding="utf-8")
    tables = "\n".join(f"{head}\n| --- |\n" for head in (gallery._KEPT, gallery._OTHERS))
    (tmp_path / "README.md").write_text(f"# Pages\n\n{tables}", encoding="utf-8")
    (tmp_path / "pages.json").write_text("{}", encoding="utf-8")

    def rendered(one: Entry, out: Path, catalogue: object, skipped: Sequence[str]) -> str:
        for name in ("a.html", "b.html") if one.name == "both" else ("index.html", "more.html", "index.html.status.json"):
            (out / name).write_text(f"{one.name} of {there['n']}", encoding="utf-8")
        return "a cell failed" if there["n"] == 13 else ""

    def call(*words: str, records: int = 2, data: str = "") -> tuple[int, set[str]]:
        there["n"] = records
        monkeypatch.setenv("CGLSUITE_DATA", data)
        monkeypatch.setattr("sys.argv", ["gallery.py", *words])
        status = gallery.main()
        return status, {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html*")}

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gallery, "GALLERY", tmp_path)
    monkeypatch.setattr(gallery, "RENDERED", tmp_path / "rendered")
    monkeypatch.setattr(gallery, "_rendered", rendered)
    monkeypatch.setattr(gallery, "made_from", lambda one, catalogue: dict(there))
    monkeypatch.setattr("cglsuite.host.load_catalogue", lambda: None)
    return call


def test_the_command_renders_what_is_not_in_git_and_renews_what_is_out_of_date(command: Command, tmp_path: Path) -> None:
    site = {"rendered/site/index.html", "rendered/site/more.html"}
    assert command(data="here") == (0, {"both/a.html", "rendered/both/b.html", *site})
    assert command("--check") == (0, {"both/a.html", "rendered/both/b.html", *site})
    (tmp_path / "rendered" / "both" / "b.html").unlink()
    before = (tmp_path / "pages.json").read_bytes()
    command(data="here")
    assert (tmp_path / "rendered" / "both" / "b.html").read_text(encoding="utf-8") == "both of 2"
    assert (tmp_path / "pages.json").read_bytes() == before
    command(records=3, data="here")
    assert (tmp_path / "both" / "a.html").read_text(encoding="utf-8") == "both of 3"
    assert json.loads((tmp_path / "pages.json").read_text(encoding="utf-8"))["both/a.html"]["n"] == 3


def test_pages_that_read_data_are_skipped_by_name(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("both") == (0, {"both/a.html"})
    assert capsys.readouterr().out.splitlines() == ["both: both/b.html skipped, since CGLSUITE_DATA is not set", "both: both/a.html"]


def test_a_check_names_what_is_out_of_date(command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--check")[0] == 1
    assert "both/a.html was not rendered" in capsys.readouterr().out
    command("both")
    capsys.readouterr()
    assert command("--check", records=3)[0] == 1
    assert capsys.readouterr().out == "both/a.html is of 2 records, and there are 3, or others\n"
    (tmp_path / "both" / "a.html").write_text("by hand", encoding="utf-8")
    assert command("--check")[0] == 1
    assert capsys.readouterr().out == "both/a.html is not the page that was rendered\n"


def test_what_cannot_be_rendered_stays_as_it_is(command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command("both")
    assert command("both", records=13)[0] == 1
    assert "both: a cell failed" in capsys.readouterr().err
    assert (tmp_path / "both" / "a.html").read_text(encoding="utf-8") == "both of 2"
    with pytest.raises(SystemExit):
        command("neither")
    assert "neither: not in gallery.toml, which has both, site" in capsys.readouterr().err
