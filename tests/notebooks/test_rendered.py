"""The suite's own notebooks, executed as they are and as reports of a small campaign that is trained here."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from page_elements import text_of, texts
from report_lab import Elements, assert_harmless

from cglsuite.campaigns.campaign import load_campaign
from cglsuite.campaigns.executors.campaign_run import run_campaign
from cglsuite.cells.storage.store import Store
from cglsuite.cli.main import run
from cglsuite.host import load_catalogue
from cglsuite.reports import load_pooled_results
from cglsuite.reports.rendering.notebook import LARGEST_PAGE, render_notebook
from cglsuite.reports.results import tables
from cglsuite.reports.results.results import load_campaign_results
from cglsuite.reports.site.index import render_campaign
from cglsuite.reports.studies.orders import compute as orders
from cglsuite.reports.studies.orders.compute import pool
from cglsuite.reports.studies.task_free import compute as stream_tables
from cglsuite.reports.studies.task_free.compute import campaigns_per_axis, task_free_study

pytestmark = [pytest.mark.notebook, pytest.mark.plugins]
CAMPAIGN = """
name = "tiny"
title = "Tiny"
[grid]
scenarios = ["synthetic-csbm/task-il@begin-1", "synthetic-csbm/class-il@begin-1"]
methods = ["bare", "joint"]
[seeds]
order = [0, 1]
[set]
dataset.n_nodes = 120
dataset.n_classes = 4
backbone.width = 16
training.epochs = 5
[run]
device = "cpu"
"""


@pytest.mark.nightly
@pytest.mark.usefixtures("no_kernel")
def test_campaign_report(tmp_path: Path) -> None:
    """Every mean of the summary stands on the page with its exact value; the page is self-contained and of moderate size."""
    (tmp_path / "tiny.toml").write_text(CAMPAIGN)
    store, catalogue = Store(tmp_path / "store"), load_catalogue()
    outcome = run_campaign(load_campaign(tmp_path / "tiny.toml"), catalogue, store, progress=False)
    assert outcome.complete
    (report,) = render_campaign(tmp_path / "tiny.toml", store=store.path, catalogue=catalogue)
    assert report.done, report.reason
    page = report.path.read_text()
    assert_harmless(page)
    assert len(page.encode()) < LARGEST_PAGE
    shown = {float(str(a["data-value"])) for _, a in Elements(page).found if a.get("data-value")}
    results = load_campaign_results(tmp_path / "tiny.toml", store, catalogue=catalogue)
    assert results.counts() == {"done": 8}
    computed = tables.summary(results)
    assert len(computed) > 12
    assert set(computed["mean"]) <= shown
    assert set(tables.resources(results)["total_s"]) <= shown
    assert "Campaign tiny: 8 records of 8 planned cells." in texts(page, "footer > p")
    assert re.search(r"Rendered \d{4}-\d\d-\d\d \d\d:\d\d UTC", page)


@pytest.mark.nightly
def test_campaign_report_alone_trains_what_is_missing(tmp_path: Path) -> None:
    """As in Jupyter, by a kernel: an inline campaign, nothing in the store."""
    inline = {
        "name": "inline",
        "grid": {"scenarios": ["synthetic-csbm/task-il@begin-1"], "methods": ["bare"]},
        "set": {"dataset.n_nodes": 120, "dataset.n_classes": 4, "backbone.width": 16, "training.epochs": 3},
        "run": {"device": "cpu"},
    }
    given = {"inline": inline, "store": str(tmp_path / "store")}
    report = render_notebook("campaign_report", given, tmp_path / "report.html", catalogue=load_catalogue())
    assert report.done, report.reason
    assert "Campaign inline: 1 records of 1 planned cells." in report.path.read_text()


@pytest.mark.nightly
@pytest.mark.usefixtures("no_kernel")
def test_explore(tmp_path: Path) -> None:
    """The catalogue is listed, a study is run and its matrices drawn; ``methods`` may be one name."""
    small = {"dataset.n_nodes": 120, "dataset.n_classes": 4, "backbone.width": 16, "training.epochs": 3}
    given = {"store": str(tmp_path / "store"), "overrides": small, "methods": "bare", "orders": 1}
    report = render_notebook("explore", given, tmp_path / "explore.html", catalogue=load_catalogue())
    assert report.done, report.reason
    page = report.path.read_text()
    assert_harmless(page)
    assert len(list(Store(tmp_path / "store").records())) == 1
    assert sum(t == "img" for t, _ in Elements(page).found) == 3, "a matrix, a curve, every cell of the study"
    assert any(cell.startswith("a-gem, ") for cell in texts(page, "td")), "the methods that are installed"


@pytest.mark.nightly
@pytest.mark.usefixtures("no_kernel")
def test_node_analysis(tmp_path: Path) -> None:
    """Two methods are trained, and their better and worse answered nodes stand in a table and in a figure each."""
    small = {"dataset.n_nodes": 120, "dataset.n_classes": 4, "backbone.width": 16, "training.epochs": 3}
    given = {"store": str(tmp_path / "store"), "overrides": small, "methods": ["bare", "joint"]}
    report = render_notebook("node_analysis", given, tmp_path / "nodes.html", catalogue=load_catalogue())
    assert report.done, report.reason
    page = report.path.read_text()
    assert_harmless(page)
    assert sum(t == "img" for t, _ in Elements(page).found) == 4, "groups and embeddings of two methods"
    assert "worse than the mean" in texts(page, "td")
    assert "all methods" in texts(page, "th")


@pytest.mark.nightly
@pytest.mark.usefixtures("no_kernel")
def test_stream_anatomy(tmp_path: Path) -> None:
    """Tasks of a scenario, and those of a campaign beside every method's scores on them."""
    small = {"dataset.n_nodes": 120, "dataset.n_classes": 4}
    alone = render_notebook("stream_anatomy", {"overrides": small}, tmp_path / "alone.html", catalogue=load_catalogue())
    assert alone.done, alone.reason
    page = alone.path.read_text()
    assert_harmless(page)
    assert text_of(page, "li", "2 tasks of 60 nodes")
    assert "There are no records." in page
    inline = {
        "name": "parts",
        "grid": {"scenarios": ["synthetic-csbm/class-il@begin-1"], "methods": ["bare", "joint"]},
        "set": small | {"backbone.width": 16, "training.epochs": 3},
        "run": {"device": "cpu"},
    }
    given = {"inline": inline, "store": str(tmp_path / "store"), "train_missing": True}
    scored = render_notebook("stream_anatomy", given, tmp_path / "scored.html", catalogue=load_catalogue())
    assert scored.done, scored.reason
    page = scored.path.read_text()
    shown = {float(str(a["data-value"])) for _, a in Elements(page).found if a.get("data-value")}
    records = list(Store(tmp_path / "store").records())
    assert len(records) == 2
    assert {float(value) for record in records for value in record.performance()[-1]} <= shown


@pytest.mark.nightly
@pytest.mark.usefixtures("no_kernel")
def test_order_sensitivity(tmp_path: Path) -> None:
    """All orders of two tasks and a null of its own are trained; what the page shows is what the functions compute."""
    small = {"scenario.n_tasks": 2, "dataset.n_nodes": 120, "dataset.n_classes": 4, "backbone.width": 16, "training.epochs": 3}
    grid = {"scenarios": ["synthetic-csbm/class-il@begin-1"], "methods": ["bare", "joint"]}
    common = {"grid": grid, "set": small, "run": {"device": "cpu"}}
    inline = common | {"name": "orders", "seeds": {"orders": "all-tasks", "init": [0]}}
    null = common | {"name": "null", "seeds": {"orders": "native", "init": [0, 1, 2]}}
    given = {"inline": inline, "also": [null], "store": str(tmp_path / "store")}
    report = render_notebook("order_sensitivity", given, tmp_path / "orders.html", catalogue=load_catalogue())
    assert report.done, report.reason
    page = report.path.read_text()
    assert_harmless(page)
    study = pool(load_pooled_results(inline, [null], tmp_path / "store"))
    assert len(study.cells) == 2 * (2 + 2)
    assert study.contradicting == 0
    shown = {float(str(a["data-value"])) for _, a in Elements(page).found if a.get("data-value")}
    assert set(orders.sensitivity(study)["aopd"]) <= shown
    assert text_of(page, "p", "satisfy the bound").startswith("8 of 8 cells satisfy the bound")


@pytest.mark.nightly
@pytest.mark.usefixtures("no_kernel")
def test_sensitivity(tmp_path: Path) -> None:
    """Two widths are trained and drawn, under a title that names the axis."""
    inline = {
        "name": "widths",
        "grid": {"scenarios": ["synthetic-csbm/class-il@begin-1"], "methods": ["bare"], "axes": {"backbone.width": [8, 16]}},
        "set": {"dataset.n_nodes": 120, "dataset.n_classes": 4, "training.epochs": 3},
        "run": {"device": "cpu"},
    }
    given = {"inline": inline, "store": str(tmp_path / "store")}
    report = render_notebook("sensitivity", given, tmp_path / "widths.html", catalogue=load_catalogue())
    assert report.done, report.reason
    page = report.path.read_text()
    assert_harmless(page)
    assert sum(t == "img" for t, _ in Elements(page).found) == 2
    assert "Sensitivity to backbone.width: widths" in page


@pytest.mark.nightly
@pytest.mark.usefixtures("no_kernel")
def test_task_free_dynamics(tmp_path: Path) -> None:
    """A stream, another σ and another draw are dealt and trained; what the page shows is what the functions compute."""
    inline = {
        "name": "flows",
        "grid": {"scenarios": ["synthetic-csbm/gaussian@drift-honest-1"], "methods": ["bare"]},
        "set": {
            "dataset.n_nodes": 160,
            "dataset.n_classes": 4,
            "backbone.width": 8,
            "stream.evaluate_every": 3,
            "schedule.sigma": 2.0,
        },
        "seeds": {"order": [0, 1, 2], "init": [0, 1, 2]},
        "run": {"device": "cpu"},
    }
    vary = {"schedule.sigma": [6.0], "stream.draw": ["with-replacement"]}
    given = {"inline": inline, "vary": vary, "store": str(tmp_path / "store")}
    report = render_notebook("task_free_dynamics", given, tmp_path / "streams.html", catalogue=load_catalogue())
    assert report.done, report.reason
    page = report.path.read_text()
    assert_harmless(page)
    assert len(page.encode()) < LARGEST_PAGE
    study = task_free_study(load_pooled_results(inline, campaigns_per_axis(inline, vary), tmp_path / "store"))
    assert len(study.records) == 3 * 3
    frame = stream_tables.streams(study)
    assert frame["same"].all()
    assert frame["overlap"].nunique() == 2
    shown = {float(str(a["data-value"])) for _, a in Elements(page).found if a.get("data-value")}
    assert set(frame["overlap"]) | set(frame["entropy"]) | set(frame["never"]) <= shown
    means = (
        pd.DataFrame([{"preset": r.cell["preset"], "a_auc": r.metrics["a_auc"]} for r in study.records]).groupby("preset")["a_auc"].mean()
    )
    assert all(any(abs(value - one) < 1e-12 for one in shown) for value in means)


OWN = """
from cglsuite import MethodSpec, hookimpl

@hookimpl
def cglsuite_methods():
    return [MethodSpec(name="mine-as-well", summary="fine-tuning", factory="cglsuite_methods.baselines.bare:Bare", category="baseline")]
"""


@pytest.mark.usefixtures("no_kernel")
def test_titles_own_plugins_and_pages_left_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook runs the plugin file that was allowed, as `cglsuite report` does; a page that is no longer asked for is named."""
    (tmp_path / "own_method.py").write_text(OWN)
    monkeypatch.setenv("CGLSUITE_PLUGIN_FILES", str(tmp_path / "own_method.py"))
    titled = CAMPAIGN.replace('"joint"', '"mine-as-well"').replace("[grid]", 'plugins = ["own_method.py"]\n[grid]')
    path = tmp_path / "tiny.toml"
    path.write_text(titled + '[[report]]\nnotebook = "leaderboard"\ntitle = "Who leads"\n[[report]]\nnotebook = "method_comparison"\n')
    store = tmp_path / "store"
    results = load_campaign_results(path, store)  # as a notebook does
    assert {cell.planned.request.method for cell in results.cells} == {"bare", "mine-as-well"}
    first, second = render_campaign(path, store=store)
    assert (first.done, first.title, second.title) == (True, "Who leads", ""), first.reason
    assert "<title>Tiny – Who leads</title>" in first.path.read_text()
    index = (first.path.parent / "index.html").read_text()
    assert ">Who leads</a>" in index
    assert "no longer includes" not in index
    path.write_text(titled + '[[report]]\nnotebook = "leaderboard"\n')
    render_campaign(path, store=store)
    index = (first.path.parent / "index.html").read_text()
    assert 'no longer includes these reports): <a href="method_comparison.html"' in index


@pytest.mark.usefixtures("no_kernel")
def test_a_report_on_some_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By value, as `run --only`; in a folder of its own, and never by a notebook that would show all."""
    path, store, out = tmp_path / "tiny.toml", tmp_path / "store", tmp_path / "some"
    path.write_text(CAMPAIGN)
    words = ["report", str(path), "--store", str(store), "--only", "method=bare", "--only", "training.epochs=5.0"]
    assert run(words) == 2
    assert "--only needs --out" in capsys.readouterr().err
    assert run([*words, "--out", str(out)]) == 0
    assert "Campaign tiny: 0 records of 4 planned cells." in texts((out / "campaign_report.html").read_text(), "footer > p")
    results = load_campaign_results(path, store, only=["method=bare", "training.epochs=5.0"])
    assert {(cell.planned.request.method, cell.done) for cell in results.cells} == {("bare", False)}
    path.write_text(CAMPAIGN + '[[report]]\nnotebook = "explore"\n')
    assert run([*words, "--out", str(out)]) == 1
    assert "notebook 'explore' has no parameter 'only'" in capsys.readouterr().err
