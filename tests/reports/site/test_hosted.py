"""The hosted leaderboard: verified and unverified results apart, a page per method, data set and paper, and feeds, from records alone."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup
from hosted_lab import ONE_BOARD, REASON, SMALL, UNVERIFIED, hosted, mark_of, results_folder
from made_records import CAMPAIGN, made_catalogue
from report_lab import Elements

from cglsuite.base.errors import UsageError
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.cli.main import run
from cglsuite.commons.hosted import standings
from cglsuite.commons.hosted.building import BOARD_COLUMNS, FEED, LISTING, RECORD_COLUMNS, BuildResult, build_site, csv_line
from cglsuite.commons.hosted.pages import Names
from cglsuite.commons.hosted.standings import RecordsByPreset
from cglsuite.reports.results.results import load_campaign_results
from cglsuite.reports.site.boards import boards

DOCS = Path(__file__).parents[3] / "docs" / "how-to" / "host-a-leaderboard.md"
CORA = "scenario-cora-task-il@begin-1"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BuildResult, Store]:
    """The folder of a site, what was built, and the store."""
    folder = tmp_path_factory.mktemp("hosted")
    built, store = hosted(folder)
    return folder / "site", built, store


def soup(made: tuple[Path, BuildResult, Store], name: str) -> BeautifulSoup:
    return BeautifulSoup((made[0] / name).read_text(), "html.parser")


def methods(section: Any) -> list[str]:
    return [row.th.a.text for row in section.select(".board tbody tr[data-row]")]


def feed(made: tuple[Path, BuildResult, Store], name: str) -> Any:
    return json.loads((made[0] / "feeds" / name).read_text())


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_line_of_a_feed() -> None:
    """Numbers to their last digit, nothing for what is none, and no formula."""
    row = [0.1 + 0.2, 7, math.nan, math.inf, None, True, "=1+1", "a,b"]
    assert csv_line(row) == '0.30000000000000004,7,,,,true,\'=1+1,"a,b"\n'


# --- verified and unverified ------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_no_board_has_verified_and_other_records(made: tuple[Path, BuildResult, Store]) -> None:
    page = soup(made, f"{CORA}.html")
    verified, unverified = page.select_one("section#verified"), page.select_one("section#unverified")
    assert verified is not None
    assert unverified is not None
    assert set(methods(unverified)) == set(UNVERIFIED)
    assert set(methods(verified)) == set(CAMPAIGN["grid"]["methods"]) - set(UNVERIFIED)
    assert "1 of 6 rerun" in verified.text
    assert "rerun" not in unverified.select_one(".board tbody").text
    assert f"key: {REASON}" in unverified.text
    assert "nothing was verified here" in unverified.text


def test_counts_are_those_of_the_marks(made: tuple[Path, BuildResult, Store]) -> None:
    _, built, store = made
    marks = {record.key: mark_of(record) for record in store.records()}
    verified = [key for key, mark in marks.items() if mark is not None and mark.verified]
    assert (built.verified, built.unverified) == (len(verified), len(marks) - len(verified))
    tiles = soup(made, "index.html").select(".tiles b")
    assert [int(tile.text) for tile in tiles[:2]] == [built.verified, built.unverified]


@pytest.mark.nightly
def test_the_numbers_are_those_of_a_campaign_over_the_same_records(tmp_path: Path) -> None:
    """One implementation: with every record verified, boards, intervals and tests are the ones of the campaign's own page."""

    def all_verified(record: Record) -> Any:
        return dataclasses.replace(mark_of(record) or _verified(record), level="verified", reasons={})

    grid = CAMPAIGN["grid"] | {"backbones": ["gcn"]}
    store, catalogue = results_folder(tmp_path / "results", all_verified, grid=grid)
    built = build_site(store, tmp_path / "site", catalogue)
    assert built.unverified == 0
    results = load_campaign_results(CAMPAIGN | SMALL | {"grid": grid}, store, catalogue=catalogue)
    for board in boards(results, catalogue):
        name = f"scenario-{board.preset.replace('/', '-')}"
        shown = json.loads((tmp_path / "site" / "feeds" / "boards" / f"{name}.json").read_text())["boards"]["verified"]
        assert [(r["method"], r["backbone"]) for r in shown["rows"]] == [(r.method, r.group.backbone) for r in board.rows]
        for got, row in zip(shown["rows"], board.rows, strict=True):
            for column, score in row.scores.items():
                expected = {part: getattr(score, part) for part in ("mean", "std", "n", "low", "high", "units")}
                numbers = {p: v for p, v in got["scores"][column].items() if v is not None}
                assert numbers == pytest.approx({p: v for p, v in expected.items() if math.isfinite(v)}, rel=1e-9)
            verdict = row.verdict
            said = None if verdict is None else {"best": verdict.best, "significant": verdict.significant, "test": verdict.summary}
            assert got["verdict"] == said


def _verified(record: Record) -> Any:
    from cglsuite.commons.submissions.staging import Mark

    return Mark(key=record.key, digest=record.digest, level="verified")


@pytest.mark.nightly
def test_a_folder_to_which_nobody_submitted_says_so_once_a_page(tmp_path: Path) -> None:
    """Its best methods stand in the overview, and no row and no heading repeats that nothing was verified."""
    store, catalogue = results_folder(tmp_path / "results", lambda record: None, **ONE_BOARD)
    build_site(store, tmp_path / "site", catalogue)
    index, page = (BeautifulSoup((tmp_path / "site" / f"{name}.html").read_text(), "html.parser") for name in ("index", CORA))
    for one in (index, page):
        assert one.text.count("Nothing was submitted to this folder") == 1
        said = [text for text in one.find_all(string=re.compile("verified")) if text.parent.name != "script"]
        assert len(said) == 2  # the badge, and that sentence
    best = page.select_one(".board tbody tr[data-row]")
    row = next(row for row in index.select("tbody tr") if row.th.a["href"] == f"{CORA}.html")
    assert best is not None
    assert row.select("td")[1].text == best.th.a.text
    titles = {name: [h.text for h in one.select("h2")] for name, one in (("index", index), ("page", page))}
    assert "Results" in titles["page"]
    assert all("nothing was verified here" not in path.read_text() for path in (tmp_path / "site").glob("*.html"))


def test_a_record_that_was_replaced_since_is_not_verified(tmp_path: Path) -> None:
    """A mark is bound to a digest: a better matrix under the same key loses it."""
    store, catalogue = results_folder(tmp_path / "results", **ONE_BOARD)
    record = next(r for r in store.records() if r.cell["method"] == "si")
    matrix = [[1.0 for _ in row] for row in record.matrix]
    store.put(dataclasses.replace(record, matrix=matrix))
    with RecordsByPreset(store, catalogue) as gathered:
        (one,) = [one for one in gathered.of(record.cell["preset"]) if one.record.key == record.key]
    assert not one.mark.verified
    assert one.record.metrics["average_performance"] == 1.0  # and its metrics are those of the matrix


def test_metrics_that_nobody_checked_are_computed_here(tmp_path: Path) -> None:
    """A record without a mark may say anything: its board shows what the matrix gives."""
    store, catalogue = results_folder(tmp_path / "results", lambda record: None, **ONE_BOARD)
    record = next(iter(store.records()))
    store.put(dataclasses.replace(record, metrics={**record.metrics, "average_performance": 0.999}))
    with RecordsByPreset(store, catalogue) as gathered:
        (one,) = [one for one in gathered.of(record.cell["preset"]) if one.record.key == record.key]
    assert one.record.metrics["average_performance"] == pytest.approx(record.metrics["average_performance"], abs=1e-12)


@pytest.mark.nightly
def test_a_modified_preset_says_what_was_modified(tmp_path: Path) -> None:
    built, _ = hosted(tmp_path, **ONE_BOARD, set=dict(CAMPAIGN.get("set", {})) | {"training.epochs": 7})
    index = BeautifulSoup(built.index.read_text(), "html.parser")
    said = [row.select_one(".changes").text for row in index.select("tbody tr")]  # type: ignore[union-attr]
    assert said
    assert all("training.epochs = 7" in text for text in said)
    page = index.select_one("tbody th a")
    assert page is not None
    assert "training.epochs = 7" in (built.index.parent / unquote(str(page["href"]))).read_text()


@pytest.mark.nightly
def test_missing_repetitions_are_told(tmp_path: Path) -> None:
    """A method with the good half of its seeds says so."""
    store, catalogue = results_folder(tmp_path / "results", **ONE_BOARD)
    gone = [r.key for r in store.records() if r.cell["method"] == "si" and r.cell["backbone"] == "gcn" and r.cell["seeds"]["order"] == 2]
    for key in gone:
        store.discard(key)
    build_site(store, tmp_path / "site", catalogue)
    page = BeautifulSoup((tmp_path / "site" / f"{CORA}.html").read_text(), "html.parser")
    told = [row.th.text for row in page.select(".board tbody tr[data-row]") if "repetitions missing" in row.th.text]
    assert len(told) == 1
    assert told[0].startswith("si")
    assert "2 of 6 repetitions missing" in told[0]


# --- pages ------------------------------------------------------------------------------------------------------------------------


def test_every_page_is_linked_and_every_link_leads_somewhere(made: tuple[Path, BuildResult, Store]) -> None:
    """Relative links alone, to files and places that exist; nothing is fetched."""
    folder, built, _ = made
    assert sorted(built.files) == sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    reached, waiting = set(), ["index.html"]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        if not name.endswith(".html"):
            continue
        text = (folder / name).read_text()
        page = BeautifulSoup(text, "html.parser")
        assert not page.select("[src]:not([src^='data:']), link")
        for link in page.select("a[href]"):
            target, _, place = unquote(link["href"]).partition("#")
            if target.startswith(("data:", "https://")):
                continue
            assert not target.startswith(("/", "http:", ".."))
            assert not target or (folder / target).is_file(), (name, target)
            if place:
                where = page if not target else BeautifulSoup((folder / target).read_text(), "html.parser")
                assert where.find(id=place) is not None, (name, place)
            waiting += [target] if target else []
        ids = [e["id"] for e in page.select("[id]")]
        assert len(ids) == len(set(ids)), name
    assert reached == set(built.files) - {LISTING}


def test_a_page_per_method_data_set_and_paper(made: tuple[Path, BuildResult, Store]) -> None:
    files = set(made[1].files)
    assert {f"method-{name}.html" for name in CAMPAIGN["grid"]["methods"]} <= files
    assert {"dataset-cora.html", "dataset-toy.html", "paper-BeGin.html", "paper-DRIFT.html"} <= files
    page = soup(made, "method-si.html")
    ranks = [row.select("td")[0].text for row in page.select("#verified tbody tr")]
    assert len(ranks) == 4  # two scenarios, two backbones
    assert all(re.fullmatch(r"\d of \d", rank) for rank in ranks)
    assert "strength" in page.select_one("#settings").text
    assert not page.select("#unverified")
    assert soup(made, "method-er-gnn.html").select("#unverified")


def test_published_values_stand_beside_ours(made: tuple[Path, BuildResult, Store]) -> None:
    """Those of the paper's own protocol; verified and unverified apart; the rest is listed as without a result."""
    page = soup(made, "paper-BeGin.html")
    ours = page.select("#verified tbody tr")
    assert ours
    bare = next(row for row in ours if row.th.text == "bare" and "AP" in row.text)
    assert "90.3 ± 1.8" in bare.text
    for fold in page.select("#verified details"):  # one per verdict, which stands behind the method
        rows = fold.select("tbody tr")
        verdict = rows[0].td.text
        assert {row.td.text for row in rows} == {verdict}
        assert fold.summary.text.startswith(f"{verdict}: {len(rows)} value")
        assert fold.has_attr("open") == (verdict == "different")
    assert {row.th.text for row in ours} & set(UNVERIFIED) == set()
    left = page.select("#left tbody tr")
    total = int(re.search(r"(\d+) published, (\d+) with", page.select_one("header").text)[1])  # type: ignore[index]
    shown = {(r.th.text, r.select("td")[3].text) for r in [*ours, *page.select("#unverified tbody tr")]}
    assert len(left) + len(shown) == total
    assert "No result here is comparable" in soup(made, "paper-DRIFT.html").text


@pytest.mark.nightly
def test_ranks_across_scenarios(made: tuple[Path, BuildResult, Store], tmp_path: Path) -> None:
    """Of settings with several scenarios; verified ranks know nothing of other rows."""
    page = soup(made, "across.html")
    tables = page.select("#verified figure.table")
    assert tables
    verified = set(CAMPAIGN["grid"]["methods"]) - set(UNVERIFIED) - {"joint"}
    assert {row.th.text for row in tables[0].select("tbody tr")} == verified
    assert "2 shared scenarios of 2." in tables[0].text  # a preset per backbone
    means = [float(row.td["data-value"]) for row in tables[0].select("tbody tr")]
    assert means == sorted(means)
    assert sum(means) == pytest.approx(1 + 2)
    assert {row.th.text for row in page.select("#unverified tbody tr")} == set(UNVERIFIED)
    store, catalogue = results_folder(tmp_path / "results", grid={**CAMPAIGN["grid"], "backbones": ["gcn"]})
    build_site(store, tmp_path / "site", catalogue)
    assert "Fewer than two scenarios of a setting have verified results." in (tmp_path / "site" / "across.html").read_text()


@pytest.mark.nightly
def test_a_rank_in_one_scenario_alone_is_no_mean_rank(tmp_path: Path) -> None:
    one_setting = ONE_BOARD["grid"] | {"backbones": ["gcn", "gat"]}
    store, catalogue = results_folder(tmp_path / "results", lambda record: None, grid=one_setting)
    name = CAMPAIGN["grid"]["methods"][0]
    preset = next(record.cell["preset"] for record in store.records() if record.cell["method"] == name)
    for record in list(store.records()):
        if record.cell["method"] == name and record.cell["preset"] == preset:
            store.discard(record.key)
    build_site(store, tmp_path / "site", catalogue)
    tables = BeautifulSoup((tmp_path / "site" / "across.html").read_text(), "html.parser").select("figure.table")
    (cut,) = [one for one in tables if f"Left out because of missing scenarios or repetitions: {name}." in one.text]
    shown = {row.th.text for row in cut.select("tbody tr")}
    assert shown
    assert name not in shown


def test_an_empty_folder_has_a_site(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    build_site(Store(tmp_path / "results"), tmp_path / "site", made_catalogue())
    assert "No finished record is in this folder yet." in (tmp_path / "site" / "index.html").read_text()


def test_a_method_that_is_not_installed(tmp_path: Path) -> None:
    store, catalogue = results_folder(tmp_path / "results", **ONE_BOARD)
    record = next(r for r in store.records() if r.cell["method"] == "si")
    store.put(dataclasses.replace(record, key="ab" * 32, cell={**record.cell, "method": "gone", "scenario": "nowhere/class-il@none-1"}))
    build_site(store, tmp_path / "site", catalogue)
    assert "No installed plugin provides this method" in (tmp_path / "site" / "method-gone.html").read_text()


# --- feeds ------------------------------------------------------------------------------------------------------------------------


def test_feeds_hold_what_the_pages_show(made: tuple[Path, BuildResult, Store]) -> None:
    folder, built, store = made
    index = feed(made, "index.json")
    assert (index["feed"], len(index["scenarios"])) == (FEED, built.scenarios)
    records = {record.key: record for record in store.records()}
    seen: dict[str, dict[str, str]] = {}
    for one in index["scenarios"]:
        table = rows((folder / one["records"]).read_text())
        assert len(table) == one["verified"] + one["unverified"]
        seen |= {row["key"]: row for row in table}
        board = json.loads((folder / one["board"]).read_text())
        for level, part in board["boards"].items():
            assert sum(row["records"] for row in part["rows"]) == one[level]
    assert set(seen) == set(records)
    for key, row in seen.items():
        record, mark = records[key], mark_of(records[key])
        assert float(row["average_performance"]) == record.metrics["average_performance"]
        assert row["digest"] == record.digest
        assert row["verification"] == (mark.level if mark else "unverified")
        assert int(row["order_seed"]) == record.cell["seeds"]["order"]
    lines = rows((folder / index["boards"]).read_text())
    assert {line["verification"] for line in lines} == {"verified", "unverified"}
    assert sum(int(x["records"]) for x in lines if x["metric"] == "average_performance") == len(records)


def test_the_documentation_describes_every_field_of_the_feeds(made: tuple[Path, BuildResult, Store]) -> None:
    """Names in code style, in the page on hosting."""
    text = DOCS.read_text()
    named = set(re.findall(r"`([\w.]+)`", text))
    assert set(BOARD_COLUMNS) | set(RECORD_COLUMNS) <= named
    index = feed(made, "index.json")
    board = feed(made, f"boards/{CORA}.json")
    part = board["boards"]["verified"]
    objects = [index, index["scenarios"][0], board, part, part["columns"][0], part["rows"][0], part["rows"][1]["verdict"]]
    objects += [part["rows"][0]["scores"]["average_performance"], board["boards"]["unverified"]["rows"][0]["not_verified"][0]]
    assert {name for one in objects for name in one} - named == set()


# --- strangers' names, files and faults -------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_names_of_strangers_are_text(tmp_path: Path) -> None:
    """A folder that was pulled may hold records that nobody checked: names end neither on the page as markup nor in a path."""
    store, catalogue = results_folder(tmp_path / "results", **ONE_BOARD)
    record = next(iter(store.records()))
    names = [SCRIPT, "../../../etc/passwd", "=cmd()", "x" * 3000, "CON", "a/b", "a-b", "A-B"]
    for n, name in enumerate(names):
        cell = {**record.cell, "method": name, "preset": f"{name}/class-il@x-1", "scenario": f"{name}/class-il@x-1"}
        environment = {**record.environment, "cpu": SCRIPT}
        store.put(dataclasses.replace(record, key=f"{n:02x}" * 32, cell=cell, environment=environment))
    built = build_site(store, tmp_path / "site", catalogue, title=f"A {SCRIPT} board")
    files = [p for p in (tmp_path / "site").rglob("*") if p.is_file()]
    assert sorted(str(p.relative_to(tmp_path / "site")) for p in files) == sorted(built.files)
    lower = [name.lower() for name in built.files]
    assert len(set(lower)) == len(lower)
    assert all(re.fullmatch(r"[\w./+@-]{1,160}", name) and ".." not in name for name in built.files)
    for page in files:
        if page.suffix == ".html":
            found = Elements(page.read_text()).found
            assert [attributes for tag, attributes in found if tag == "script"] == [{"type": "application/json", "id": "data"}, {}]
            assert not [tag for tag, _ in found if tag in {"img", "iframe", "form", "base", "object", "link"}]
        elif page.suffix == ".csv":
            assert not [cell for line in csv.reader(page.read_text().splitlines()) for cell in line if re.match(r"[=+@]", cell)]


@pytest.mark.nightly
def test_odd_records_cost_no_other_record_its_place(tmp_path: Path) -> None:
    """A record that is valid but that no board can show, in a preset of its own."""
    store, catalogue = results_folder(tmp_path / "results", **ONE_BOARD)
    record = next(r for r in store.records() if r.cell["preset"] == "cora/task-il@begin-1")
    odd: dict[str, Any] = {"scenario": {}, "tasks": [], "matrix": [[0.5], [0.5]], "validation_matrix": [], "metrics": {}}
    alone = {**record.cell, "preset": "odd/class-il@begin-1", "scenario": "odd/class-il@begin-1"}
    store.put(dataclasses.replace(record, key="bb" * 32, **{**odd, "cell": alone}))
    built = build_site(store, tmp_path / "site", catalogue)
    assert "bb" * 32 in built.faults
    page = BeautifulSoup((tmp_path / "site" / f"{CORA}.html").read_text(), "html.parser")
    assert set(methods(page.select_one("#verified"))) == set(CAMPAIGN["grid"]["methods"]) - set(UNVERIFIED)
    assert built.verified == sum(bool((mark := mark_of(r)) and mark.verified) for r in store.records())
    assert "1 record that no board can show" in (tmp_path / "site" / "index.html").read_text()
    assert len(built.faults) == 1


def test_names_are_short_and_apart() -> None:
    names = Names()
    made = [names.page("method", name) for name in ("a/b", "a-b", "A-b", "x" * 500, "x" * 501, "..", "")]
    assert len({name.lower() for name in made}) == len(made)
    assert max(map(len, made)) < 130
    assert names.page("method", "a/b") == made[0]


@pytest.mark.nightly
def test_the_next_build_removes_its_own_old_files_and_no_others(tmp_path: Path) -> None:
    built, store = hosted(tmp_path, **ONE_BOARD)
    site = tmp_path / "site"
    (site / "CNAME").write_text("example.org")
    (site / "mine.html").write_text("mine")
    listing = json.loads((site / LISTING).read_text())
    listing["files"] += ["../results/cells", "CNAME", "/etc/passwd"]
    (site / LISTING).write_text(json.dumps(listing))
    for record in list(store.records()):
        if record.cell["method"] == "si":
            store.discard(record.key)
    again = build_site(store, site, made_catalogue())
    assert again.removed == ("method-si.html",)
    assert "method-si.html" in built.files
    assert not (site / "method-si.html").exists()
    assert (site / "CNAME").exists()
    assert (site / "mine.html").exists()
    assert (tmp_path / "results" / "cells").is_dir()


def test_a_site_is_no_part_of_its_store(tmp_path: Path) -> None:
    store, catalogue = results_folder(tmp_path / "results", **ONE_BOARD)
    for out in (store.path, store.path / "site"):
        with pytest.raises(UsageError, match="inside the store"):
            build_site(store, out, catalogue)


def test_records_of_many_batches_come_back_as_they_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory holds one batch; the rest is in a temporary folder, which is gone afterwards."""
    store, catalogue = results_folder(tmp_path / "results", **ONE_BOARD)
    with RecordsByPreset(store, catalogue) as whole:
        expected = {preset: list(whole.of(preset)) for preset in whole.presets}
    monkeypatch.setattr(standings, "_BATCH", 7)
    with RecordsByPreset(store, catalogue) as batched:
        folder = Path(batched._folder.name)
        assert any(folder.iterdir())
        assert {preset: list(batched.of(preset)) for preset in batched.presets} == expected
    assert not folder.exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the path of the index; a store that is not there is a wrong request."""
    (tmp_path / "results" / "cells").mkdir(parents=True)
    assert run(["site", str(tmp_path / "results"), "--out", str(tmp_path / "site")]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "site" / "index.html")
    assert run(["site", str(tmp_path / "results"), "--out", str(tmp_path / "site"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenarios"] == 0
    assert run(["site", str(tmp_path / "no"), "--out", str(tmp_path / "site")]) == 2
    assert run(["site", str(tmp_path / "results"), "--out", str(tmp_path / "site"), "--title", " "]) == 2
    assert not (tmp_path / "site" / "CNAME").exists()
