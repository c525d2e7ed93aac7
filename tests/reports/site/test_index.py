"""The index of a campaign: complete without a script, equal to the functions behind it, self-contained, and honest about what is absent."""

from __future__ import annotations

import base64
import csv
import dataclasses
import hashlib
import io
import itertools
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from made_records import fill_store, made_catalogue, made_results
from page_elements import text_of
from report_lab import EVIL, PLUGIN, Elements, catalogue_of

from cglsuite.campaigns.campaign import Campaign
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, PluginRecord
from cglsuite.reports.rendering.notebook import LARGEST_PAGE, RenderedReport, current_status, page_fingerprint, surroundings
from cglsuite.reports.results.results import CampaignResults, load_campaign_results
from cglsuite.reports.site.boards import Board, board_frame, boards
from cglsuite.reports.site.downloads import board_downloads
from cglsuite.reports.site.index import dataset_page_name, dataset_pages, site_html
from cglsuite.specs import Citation

Site = tuple[BeautifulSoup, str, CampaignResults, Catalogue]


def report(name: str, **changes: Any) -> RenderedReport:
    facts: dict[str, Any] = {"notebook": name, "path": Path(f"{name}.html"), "status": "done", "reason": "", "seconds": 3.0}
    return RenderedReport(**(facts | changes))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """An index, parsed; its source; and what it was made of."""
    results, catalogue = made_results(tmp_path_factory.mktemp("site"))
    page = site_html(results.campaign, [report("campaign_report"), report("leaderboard")], catalogue, results)
    return BeautifulSoup(page, "html.parser"), page, results, catalogue


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> tuple[CampaignResults, Catalogue]:
    """Results of two methods on one board, for pages whose boards are not looked at."""
    return made_results(tmp_path_factory.mktemp("few"), grid={"scenarios": ["cora/task-il@begin-1"], "methods": ["bare", "si"]})


_BOARDS: dict[str, list[Board]] = {}


def boards_of(site: Site) -> list[Board]:
    """The boards behind a page, computed once."""
    _, page, results, catalogue = site
    if page not in _BOARDS:
        _BOARDS[page] = boards(results, catalogue)
    return _BOARDS[page]


def data_of(soup: BeautifulSoup) -> Any:
    return json.loads(soup.find(id="data").string)


def files_of(section: Any) -> dict[str, str]:
    """What a board's links download, by label."""
    found = {}
    for link in section.select("a[download]"):
        head, _, content = str(link["href"]).partition(",")
        assert head.endswith(";base64")
        found[link.text] = base64.b64decode(content).decode()
    return found


def each_board(site: Site) -> list[tuple[Any, Board]]:
    return list(zip(site[0].select("section.board"), boards_of(site), strict=True))


def test_every_number_is_that_of_the_functions(site: Site) -> None:
    """In the table that needs no script, and in the data that the script sorts by: the same floats, row by row."""
    soup = site[0]
    for (section, board), data in zip(each_board(site), data_of(soup)["boards"], strict=True):
        frame = board_frame(board)
        head = [th.get("data-column") for th in section.select_one("table").select("thead th")]
        shown = section.select_one("table").select("tbody tr[data-row]")
        assert [row["data-row"] for row in shown] == [str(i) for i in range(len(frame))]
        for cells, given, expected in zip(shown, data["rows"], frame.to_dict(orient="records"), strict=True):
            by_name = dict(zip(head, cells.find_all(["th", "td"]), strict=True))
            assert given["method"] == by_name["method"].find("a").text == expected["method"]
            assert given["numbers"]["records"] == float(by_name["records"]["data-value"]) == expected["records"]
            for column in board.columns:
                mean, cell = expected[f"{column.name}_mean"], by_name[column.name]
                if math.isnan(mean):
                    assert given["numbers"][column.name] is None
                    assert not cell.has_attr("data-value")
                    continue
                assert given["numbers"][column.name] == float(cell["data-value"]) == mean
                assert int(cell["data-n"]) == expected[f"{column.name}_n"]
                for part in ("std", "low", "high"):
                    value = expected.get(f"{column.name}_{part}", math.nan)
                    assert (float(cell[f"data-{part}"]) == value) if not math.isnan(value) else not cell.has_attr(f"data-{part}")


def test_reports_are_listed_with_their_state_and_time(few: tuple[CampaignResults, Catalogue], tmp_path: Path) -> None:
    """A head above every column, numbers and names set as such, and a reason where there is one."""
    results, catalogue = few
    rendered = [
        RenderedReport(notebook="good", path=tmp_path / "good.html", status="done", reason="", seconds=3.4),
        RenderedReport(notebook="bad", path=tmp_path / "bad.html", status="failed", reason="cell 2: no", seconds=61.0),
    ]
    table = BeautifulSoup(site_html(results.campaign, rendered, catalogue, results), "html.parser").select_one("#reports table")
    assert table is not None
    heads = [(th.text, th.get("class")) for th in table.select("thead th")]
    assert heads == [("report", ["name"]), ("state", None), ("rendered in", ["number"]), ("reason", None)]
    rows = [[cell.text for cell in row.find_all(["th", "td"])] for row in table.select("tbody tr")]
    assert rows == [["good", "done", "3 s", ""], ["bad", "failed", "61 s", "cell 2: no"]]
    titled = [dataclasses.replace(rendered[0], title="What replay buys")]
    page = BeautifulSoup(site_html(results.campaign, titled, catalogue, results, outdated=["old-2.html"]), "html.parser")
    links = {a.text: a["href"] for a in page.select("#reports a")}
    assert links == {"What replay buys": "good.html", "old-2.html": "old-2.html"}
    assert "no longer includes" in page.select_one("#reports p").text


def test_what_is_shown_is_the_number_rounded(site: Site) -> None:
    """Percent with one digit, thin spaces between thousands, true minus signs."""
    seen = 0
    for section, board in each_board(site):
        for cell in section.select_one("table").select("tbody td[data-n]"):
            text = cell.text.split("±")[0].split("[")[0].split("(")[0].replace(",", "").replace("−", "-").strip()
            column = board.columns[list(cell.parent.select("td[data-n], td.quiet:not(:nth-child(2))")).index(cell)]
            assert float(text) == pytest.approx(float(cell["data-value"]) * column.scale, abs=0.5 * 10**-column.digits + 1e-9)
            seen += 1
    assert seen > 100


def test_csv_is_the_frame(site: Site) -> None:
    """Read back, every float is the same float."""
    for section, board in each_board(site):
        expected = board_frame(board)
        rows = list(csv.DictReader(io.StringIO(files_of(section)["CSV"])))
        assert list(rows[0]) == list(expected.columns)
        for row, wanted in zip(rows, expected.to_dict(orient="records"), strict=True):
            for name, value in wanted.items():
                missing = isinstance(value, float) and math.isnan(value)
                assert row[name] == "" if missing else type(value)(row[name]) == value


def test_latex_has_a_row_per_method(site: Site) -> None:
    """As many cells as the head has, mean and deviation as on the page, rules of booktabs."""
    for section, board in each_board(site):
        lines = [line for line in files_of(section)["LaTeX"].splitlines() if not line.startswith("%")]
        assert [line for line in lines if line.startswith("\\")] == [lines[0], "\\toprule", "\\midrule", "\\bottomrule", "\\end{tabular}"]
        (columns,) = re.findall(r"\{(l+r+)\}", lines[0])
        body = [line for line in lines if line.endswith("\\\\")]
        assert len(body) == 1 + len(board.rows)
        assert {len(line.split(" & ")) for line in body} == {len(columns)}
        for row, line in zip(board.rows, body[1:], strict=True):
            score, identity = row.scores["average_performance"], [row.method, *([row.group.backbone] if len(board.backbones) > 1 else [])]
            assert line.split(" & ")[: len(identity) + 1] == [*identity, str(len(row.records))]
            mean, spread = f"{100 * score.mean:.1f}", f" \\pm {100 * score.std:.1f}"
            assert line.split(" & ")[len(identity) + 1] in (f"${mean}{spread}$", f"$\\mathbf{{{mean}}}{spread}$")


def test_latex_has_the_best_in_bold(site: Site) -> None:
    """In every column of a metric, among the methods that are no bound; nothing else is bold."""
    for section, board in each_board(site):
        lines = [line for line in files_of(section)["LaTeX"].splitlines() if line.endswith("\\\\") and not line.startswith("%")]
        cells = [line.removesuffix(" \\\\").split(" & ")[-len(board.columns) :] for line in lines[1:]]
        assert any(row.method == "joint" for row in board.rows)
        for place, column in enumerate(board.columns):
            bold = {row.method for row, texts in zip(board.rows, cells, strict=True) if "mathbf" in texts[place]}
            scores = {n: r.scores[column.name].mean for n, r in enumerate(board.rows) if column.name in r.scores and r.method != "joint"}
            end = {"up": max, "down": min}.get(column.better) if column.metric else None
            assert bold == {board.rows[n].method for n, mean in scores.items() if end is not None and mean == end(scores.values())}, (
                column.name
            )


def test_bibtex_cites_what_the_plugins_cite(site: Site) -> None:
    """One @misc per unstructured citation, with its text, and the identifier where it can be read off."""
    section, board = each_board(site)[0]
    text = files_of(section)["BibTeX"]
    assert text.count("@misc{method:si,") == 1
    assert "Zenke, Poole \\& Ganguli" in text
    assert "eprint = {1703.04200}" in text
    assert text.count("{") == text.count("}")
    assert "method:bare" not in text  # it cites nothing
    assert [file.name for file in board_downloads(board, site[3])][2] == "cora-task-il@begin-1.bib"


def test_structured_citations_are_entries_with_their_fields(site: Site) -> None:
    """Author, title, year and venue, once for all that cite them; type and key follow from them."""
    attention = Citation(authors=("Serrà", "others"), title="A Hard Attention & the Task", year=2018, booktitle="ICML", arxiv="1801.01423")
    multitask = Citation(authors=("Caruana",), title="Multitask Learning", year=1997, journal="Machine Learning 28", doi="10.1/x")
    twitter = Citation(authors=("Go", "Bhayani"), title="Twitter", year=2009, note="Stanford")
    cites = {"bare": multitask, "si": (attention, twitter), "er-gnn": ("As in", attention)}
    entries = [entry for kind in ("scenario", "dataset", "metric", "method", "backbone") for entry in site[3].entries(kind)]
    changed = [replace(e, spec=replace(e.spec, citation=cites.get(e.name, e.spec.citation))) for e in entries]
    board = each_board(site)[0][1]
    text = board_downloads(board, Catalogue([PLUGIN], changed))[2].text
    bodies = re.findall(r"^@\w+\{(.*?),\n(.*?)^\}$", text, re.M | re.S)
    fields = {key: dict(re.findall(r"^  (\w+) = \{(.*)\},$", body, re.M)) for key, body in bodies}
    assert len(fields) == len(bodies)
    assert {k: v for k, v in fields["serra2018hard"].items() if k != "annote"} == {
        "author": "Serrà and others",
        "title": "A Hard Attention \\& the Task",
        "year": "2018",
        "booktitle": "ICML",
        "eprint": "1801.01423",
        "archiveprefix": "arXiv",
    }
    assert {k: v for k, v in fields["caruana1997multitask"].items() if k != "annote"} == {
        "author": "Caruana",
        "title": "Multitask Learning",
        "year": "1997",
        "journal": "Machine Learning 28",
        "doi": "10.1/x",
    }
    (provider,) = {entry.provider for entry in changed}
    assert fields["serra2018hard"]["annote"] == f"cited by method er-gnn ({provider}); method si ({provider})"
    assert fields["go2009twitter"]["howpublished"] == "Stanford"
    assert fields["method:er-gnn"]["note"] == "As in"
    assert [text.count(f"@{kind}{{") for kind in ("inproceedings", "article")] == [1, 1]


def test_pieces_of_the_data_are_the_files(site: Site) -> None:
    """What the script would put together of all rows is what the links hold."""
    for (section, _), data in zip(each_board(site), data_of(site[0])["boards"], strict=True):
        for text, file in zip(files_of(section).values(), data["files"], strict=True):
            several = len(data["rows"]) and len({row["text"]["backbone"] for row in data["rows"]}) > 1
            hidden = {"category", *([] if several else ["backbone"])}
            best = "\\mathbf"
            head, *rows = ([p for p in pieces if not hidden & set(p[1:2])] for pieces in (file["head"], *file["rows"]))
            assert all(len(piece) == 1 or best in piece[2] for row in rows for piece in row if len(piece) != 2)
            pieces = [piece[0] for row in rows for piece in row]
            whole = "".join(piece[0] for piece in head) + "".join(dict.fromkeys(pieces) if file["once"] else pieces) + file["foot"]
            assert whole == re.sub(r"\\mathbf\{([^}]*)\}", r"\1", text)


def test_a_page_per_data_set_has_its_boards_alone(site: Site) -> None:
    """Facts from the plugin, tasks from the records, the boards of the index, and a link back; the index links it."""
    soup, _, results, catalogue = site
    pages = dataset_pages(results.campaign, catalogue, results)
    links = [str(link["href"]) for link in soup.select("#leaderboards a") if str(link["href"]).startswith("dataset-")]
    assert list(pages) == links == ["dataset-cora.html", "dataset-toy.html"]
    for (name, page), dataset in zip(pages.items(), ("cora", "toy"), strict=True):
        shown = BeautifulSoup(page, "html.parser")
        assert name == dataset_page_name(dataset)
        assert shown.select_one("h1").text == dataset  # type: ignore[union-attr]
        mine = [board for board in boards_of(site) if board.dataset == dataset]
        assert [heading.text for heading in shown.select("section.board > h3")] == [board.title for board in mine]
        index = {section["id"]: section for section in soup.select("section.board")}
        for section in shown.select("section.board"):
            assert section.select_one("tbody").text == index[section["id"]].select_one("tbody").text  # type: ignore[union-attr]
        assert [board["rows"] for board in data_of(shown)["boards"]] == [
            board["rows"] for board in data_of(soup)["boards"] if board["rows"][0]["place"]["dataset"] == dataset
        ]
        assert shown.select_one("header a[href='index.html']") is not None
        assert shown.select("#filter-dataset, #filter-setting") == []  # nothing to choose
        assert shown.select_one("#filter-method") is not None
        rows = [[cell.text for cell in tr.select("th, td")] for tr in shown.select("#tasks tbody tr")]
        assert rows == [[board.title, board.setting, "5", "2", "60", "20", "20"] for board in mine]
        ids = [str(element["id"]) for element in shown.select("[id]")]
        assert {str(a["href"])[1:] for a in shown.select("a[href^='#']")} <= set(ids)
        assert len(ids) == len(set(ids))


def test_the_page_of_a_data_set_leads_to_the_anatomy_of_its_tasks(few: tuple[CampaignResults, Catalogue]) -> None:
    """Where the campaign has that page."""
    results, catalogue = few
    for page in dataset_pages(results.campaign, catalogue, results, "stream_anatomy.html").values():
        assert BeautifulSoup(page, "html.parser").select_one("#tasks a[href='stream_anatomy.html']") is not None
    assert all("stream_anatomy" not in page for page in dataset_pages(results.campaign, catalogue, results).values())


def test_links_resolve_and_ids_are_unique(site: Site) -> None:
    """Every place that is linked exists, once; reports are linked by file name."""
    elements = Elements(site[1]).found
    ids = [a["id"] for _, a in elements if a.get("id")]
    assert len(ids) == len(set(ids))
    links = [str(a["href"]) for tag, a in elements if tag == "a"]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    pages = ["campaign_report.html", "leaderboard.html", "dataset-cora.html", "dataset-toy.html"]
    assert [link for link in links if link.endswith(".html")] == pages
    labels = {a["aria-labelledby"] for _, a in elements if a.get("aria-labelledby")}
    assert labels <= set(ids)


def test_the_page_fetches_nothing_and_runs_one_script(site: Site) -> None:
    """No address of any other place, no handler; the policy names the hash of the one script."""
    soup, page, *_ = site
    policy = str(soup.find("meta", attrs={"http-equiv": "Content-Security-Policy"})["content"])
    scripts = [script.string for script in soup.find_all("script") if not script.get("type")]
    assert len(scripts) == 1
    assert f"script-src 'sha256-{base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()}'" in policy
    assert "default-src 'none'" in policy
    assert not soup.find_all(["link", "iframe", "object", "embed", "base", "form", "video", "audio"])
    assert all(picture["src"].startswith("data:") for picture in soup.find_all("img"))
    assert not re.search(
        r"""(?:src|href|srcset)=["'](?!#|data:text/csv|data:application/x-|data:image/svg\+xml;base64,|[a-z0-9_-]+\.html)""", page
    )
    assert "@import" not in page
    assert "url(" not in page.replace(scripts[0], "")  # the script renames url(#...) within a drawing
    assert len(page.encode()) < LARGEST_PAGE


def test_headings_do_not_skip_a_level(site: Site) -> None:
    """For readers who go by headings."""
    levels = [int(tag[1]) for tag, _ in Elements(site[1]).found if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_controls_are_hidden_until_the_script_runs_and_have_names(site: Site) -> None:
    """Without a script they would do nothing."""
    soup = site[0]
    filters = soup.find(id="filters")
    assert filters.has_attr("hidden")
    assert all(control.find_parent("label") for control in filters.find_all(["input", "select"]))
    assert {option["value"] for option in soup.find(id="filter-category").find_all("option")} == {"", "Reg", "Rep", "other"}
    assert not soup.select("section.board button")


def test_methods_without_a_result_are_named(site: Site) -> None:
    """packnet is not applicable to class-IL, and the board says so."""
    lacking = [(board.preset.partition("+")[0], section.find(class_="lacking")) for section, board in each_board(site)]
    assert [preset for preset, box in lacking if box is None] == ["cora/task-il@begin-1"] * 2
    for box in (box for _, box in lacking if box is not None):
        assert [item.strong.text for item in box.find_all("li")] == ["packnet"]
        assert "n/a: " in box.text


def test_no_results_at_all() -> None:
    """The reason stands in the place of leaderboards, and the page counts as failed."""
    campaign = Campaign.parse({"name": "x", "grid": {"scenarios": ["a/task-il@b-1"], "methods": ["m"]}})
    page = site_html(campaign, [report("n")], catalogue_of(), None, problem=f"unknown scenario {EVIL}")
    soup = BeautifulSoup(page, "html.parser")
    assert "unknown scenario" in soup.find(role="alert").text
    assert soup.find("meta", attrs={"name": "cglsuite:status"})["content"] == "failed"
    assert EVIL not in page


def test_a_failed_report_makes_a_failed_index(few: tuple[CampaignResults, Catalogue]) -> None:
    """With its reason, and the link to its page."""
    results, catalogue = few
    page = site_html(results.campaign, [report("n", status="failed", reason="cell 2: boom")], catalogue, results)
    soup = BeautifulSoup(page, "html.parser")
    assert soup.find("meta", attrs={"name": "cglsuite:status"})["content"] == "failed"
    assert "cell 2: boom" in soup.find(id="reports").text


def test_quarantined_plugins_are_named(few: tuple[CampaignResults, Catalogue]) -> None:
    """What they would have provided is absent, and a reader can know."""
    results, catalogue = few
    broken = PluginRecord(distribution="broken", version="9", entry_point="b", module="b", status="failed", error=f"ImportError: {EVIL}")
    entries = [entry for kind in ("method", "scenario", "dataset", "metric", "backbone") for entry in catalogue.entries(kind)]
    page = site_html(results.campaign, [], Catalogue([*catalogue.records, broken], entries), results)
    assert text_of(page, "li", "broken 9").startswith("broken 9: ImportError: ")
    assert EVIL not in page


# --- fingerprints ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[Path, Path, Catalogue]:
    """A store with records, a notebook file, a catalogue."""
    catalogue = made_catalogue()
    small = {"name": "s", "grid": {"scenarios": ["toy/class-il@cglb-1"], "methods": ["bare"]}, "run": {"device": "cpu"}}
    fill_store(small, catalogue, tmp_path / "store")
    (tmp_path / "n.ipynb").write_text("{}")
    return tmp_path / "store", tmp_path / "n.ipynb", catalogue


def change_record(store: Path, notebook: Path, parameters: dict[str, Any]) -> None:
    path = Store(store).record_files()[0]
    path.write_bytes(path.read_bytes() + b"\n")


def remove_record(store: Path, notebook: Path, parameters: dict[str, Any]) -> None:
    Store(store).record_files()[0].unlink()


def change_notebook(store: Path, notebook: Path, parameters: dict[str, Any]) -> None:
    notebook.write_text('{"cells": []}')


def change_parameter(store: Path, notebook: Path, parameters: dict[str, Any]) -> None:
    parameters["x"] = 2


def change_named_file(store: Path, notebook: Path, parameters: dict[str, Any]) -> None:
    (notebook.parent / "other.toml").write_text("name = 'changed'")


@pytest.mark.parametrize("change", [change_record, remove_record, change_notebook, change_parameter, change_named_file])
def test_a_fingerprint_changes_with_what_it_is_of(
    inputs: tuple[Path, Path, Catalogue], change: Callable[[Path, Path, dict[str, Any]], None]
) -> None:
    """And with nothing else: taken twice, it is the same."""
    store, notebook, catalogue = inputs
    parameters: dict[str, Any] = {"x": 1, "also": ["other.toml"]}
    (notebook.parent / "other.toml").write_text("name = 'other'")

    def taken() -> str:
        return page_fingerprint(surroundings(store, catalogue), notebook, "t", parameters, (notebook.parent,))

    before = taken()
    assert taken() == before
    change(store, notebook, parameters)
    assert taken() != before


def test_a_fingerprint_changes_with_versions_and_plugins(inputs: tuple[Path, Path, Catalogue], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another pandas, another version of a plugin."""
    from cglsuite.reports.rendering import notebook as freshness

    store, _, catalogue = inputs
    before = surroundings(store, catalogue)
    newer = PluginRecord(distribution="toy-plugin", version="1.3", entry_point="toy", module="toy", status="ok")
    assert surroundings(store, Catalogue([newer], [])) != before
    real = freshness.importlib.metadata.version
    monkeypatch.setattr(freshness.importlib.metadata, "version", lambda name: "99" if name == "pandas" else real(name))
    assert surroundings(store, catalogue) != before


@pytest.mark.parametrize("status", ["running", "failed"])
def test_only_a_complete_and_untouched_page_is_kept(tmp_path: Path, status: str) -> None:
    """Not one that was being rendered, that failed, that was edited or removed, nor where the status file is no JSON."""
    page, message = tmp_path / "p.html", tmp_path / "p.html.status.json"
    page.write_text("whole")
    facts = {"status": "done", "fingerprint": "f", "sha256": hashlib.sha256(b"whole").hexdigest(), "seconds": 1.0}
    message.write_text(json.dumps(facts))
    assert current_status(page, message, "f") == facts
    assert current_status(page, message, "g") is None
    message.write_text(json.dumps(facts | {"status": status}))
    assert current_status(page, message, "f") is None
    message.write_text(json.dumps(facts)[:-5])
    assert current_status(page, message, "f") is None
    message.write_text(json.dumps(facts))
    page.write_text("edited")
    assert current_status(page, message, "f") is None
    page.unlink()
    assert current_status(page, message, "f") is None


@pytest.mark.nightly
def test_boards_regenerate_from_records_alone(site: Site) -> None:
    """Loaded once more from the same files: the same page but for the time at its foot."""
    _, page, results, catalogue = site
    again = load_campaign_results(results.campaign, results.store, catalogue=catalogue)
    other = site_html(results.campaign, [report("campaign_report"), report("leaderboard")], catalogue, again)
    stamp = re.compile(r"written \d{4}-\d\d-\d\d \d\d:\d\d UTC")
    assert stamp.sub("", other) == stamp.sub("", page)
