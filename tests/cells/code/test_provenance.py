"""Records name whose code made them, and results of different releases of a plugin never mix in silence."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from pathlib import Path

import pytest
from plugin_sites import Site

from cglsuite import Catalogue, load_catalogue
from cglsuite.cells.code.sources import NUMERICAL_ROOMS, closure_digest
from cglsuite.cells.keys import cell_key
from cglsuite.cells.records.record import Record
from cglsuite.cells.run import run_cell
from cglsuite.cells.spec import resolve_cell
from cglsuite.cells.storage.store import Store
from cglsuite.host import find_entry_points
from cglsuite.reports.results import tables
from cglsuite.reports.results.results import CampaignResults, load_campaign_results
from cglsuite.reports.results.summary import notices

pytestmark = pytest.mark.plugins

BUILT_IN = ("cglsuite", "cglsuite-node", "cglsuite-methods", "cglsuite-metrics")
PRESET = "synthetic-csbm/class-il@begin-1"
TINY = {
    "dataset.n_nodes": 48,
    "dataset.n_classes": 4,
    "dataset.n_features": 20,
    "dataset.words": 4,
    "dataset.avg_degree": 4,
    "training.epochs": 1,
    "backbone.width": 4,
}
CAMPAIGN = {"name": "x", "grid": {"scenarios": [PRESET], "methods": ["pulled"]}, "set": TINY, "run": {"numerics": "native"}}
HOOKS = """
from cglsuite import MethodSpec, MetricSpec, hookimpl

@hookimpl
def cglsuite_methods():
    return [MethodSpec(name="pulled", summary="s", factory="pulled.method:Pulled")]

@hookimpl
def cglsuite_metrics():
    return [MetricSpec(name="last", summary="s", formula="M[T,T]", direction="up", range=(0, 1), factory="pulled.metric:last")]
"""
METHOD = "from cglsuite import Method\n\nclass Pulled(Method):\n    remark = {remark!r}\n"
METRIC = "def last(matrix, joint=None):\n    return {scale} * matrix[-1][-1]\n"


def release(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str, remark: str = "one", scale: int = 1) -> Catalogue:
    """What is built in, and this release of the distribution ``pulled`` in place of any other."""
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    for name in [n for n in sys.modules if n.split(".")[0] == "pulled"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    files = {"__init__": "", "plugin": HOOKS, "method": METHOD.format(remark=remark), "metric": METRIC.format(scale=scale)}
    site = Site(folder).add(
        "pulled",
        version,
        files={f"pulled/{name}.py": source for name, source in files.items()},
        entry_points={"plugin": "pulled.plugin"},
    )
    installed = [e for e in find_entry_points() if e.dist is not None and e.dist.name in BUILT_IN]
    return load_catalogue(entry_points=[*installed, *site.entry_points()])


def run(catalogue: Catalogue, store: Store) -> Record:
    """The record of the one cell, run where the store lacks it."""
    cell = resolve_cell(catalogue, PRESET, "pulled", overrides=TINY)
    return store.cached(cell_key(cell, catalogue)) or run_cell(cell, catalogue, store)


def report(catalogue: Catalogue, store: Store) -> tuple[CampaignResults, str]:
    """The campaign's results, and the text of a report's notices about them."""
    results = load_campaign_results(CAMPAIGN, store, catalogue=catalogue)
    return results, " ".join(map(str, notices(results)))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_a_record_names_every_plugin_that_had_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    catalogue = release(tmp_path / "one", monkeypatch, "1.0")
    record = run(catalogue, store)
    made = {part["role"]: part for part in record.provenance["plugins"]}
    assert {role: (part["name"], part["distribution"]) for role, part in made.items()} == {
        "dataset": ("synthetic-csbm", "cglsuite-node"),
        "scenario": (PRESET, "cglsuite-node"),
        "backbone": ("gcn", "cglsuite"),
        "measure": ("micro", "cglsuite"),
        "method": ("pulled", "pulled"),
    }
    assert made["method"]["version"] == "1.0"
    assert made["method"]["source"] == closure_digest(("pulled.method:Pulled", "pulled.plugin"))
    metrics = {part["distribution"]: part for part in record.provenance["metrics"]}
    assert metrics["pulled"] == {
        "distribution": "pulled",
        "version": "1.0",
        "source": closure_digest("pulled.metric:last", (*NUMERICAL_ROOMS, "stats.metrics")),
        "names": ["last"],
    }
    named = sorted(name for part in record.provenance["metrics"] for name in part["names"])
    assert named == sorted(name for name, value in record.metrics.items() if value is not None)
    assert len({part["source"] for part in record.makers}) >= 4
    assert record.makers[0]["role"] == "core"


def test_another_release_with_other_code_is_run_anew_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    first = run(release(tmp_path / "one", monkeypatch, "1.0"), store)
    newer = release(tmp_path / "two", monkeypatch, "2.0", remark="two")
    results, message = report(newer, store)
    assert [cell.record for cell in results.cells] == [first]
    assert "1 of 1 records are stale" in message
    assert f"method by pulled 1.0 ({first.makers[4]['source'][:8]}), now 2.0 (" in message
    second = run(newer, store)
    assert second.key != first.key
    assert second.design == first.design
    results, message = report(newer, store)
    assert [cell.record for cell in results.cells] == [second]
    assert "stale" not in message
    listed = tables.sources(results)
    assert sorted(listed.loc[listed["version"] == "2.0", "provides"]) == ["method pulled", "metric"]
    assert len(list(store.records())) == 2


def test_a_release_with_the_same_code_is_the_same_result_and_keeps_its_makers_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    first = run(release(tmp_path / "one", monkeypatch, "1.0"), store)
    renamed = release(tmp_path / "two", monkeypatch, "1.1")
    assert run(renamed, store) == first
    results, message = report(renamed, store)
    assert "stale" not in message
    listed = tables.sources(results)
    assert listed.loc[listed["distribution"] == "pulled", "version"].unique().tolist() == ["1.0"]


def test_a_users_metric_is_that_of_its_formula_now_and_nothing_is_trained_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    """In tables and listings too; the record in the store stays as it is."""
    first = run(release(tmp_path / "one", monkeypatch, "1.0"), store)
    doubled = release(tmp_path / "two", monkeypatch, "1.1", scale=2)
    assert run(doubled, store) == first
    results, message = report(doubled, store)
    (shown,) = results.records
    assert shown.metrics["last"] == 2 * first.metrics["last"]
    assert {name: value for name, value in shown.metrics.items() if name != "last"} == {
        name: value for name, value in first.metrics.items() if name != "last"
    }
    assert results.frame["last"].tolist() == [shown.metrics["last"]]
    assert [row.metrics["last"] for row in store.completed_rows(doubled)] == [shown.metrics["last"]]
    maker = next(part for part in shown.provenance["metrics"] if part["distribution"] == "pulled")
    assert (maker["version"], maker["names"]) == ("1.1", ["last"])
    assert "stale" not in message


def test_a_users_metric_that_needs_joint_training_is_told_where_its_formula_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setitem(globals(), "HOOKS", HOOKS.replace('direction="up", range', 'direction="up", needs_joint=True, range'))
    first = run(release(tmp_path / "one", monkeypatch, "1.0"), store)
    makers = [*first.provenance["metrics"], {"distribution": "pulled", "version": "1.0", "source": "0" * 64, "names": ["last"]}]
    store.put(dataclasses.replace(first, metrics={**first.metrics, "last": 0.5}, provenance={**first.provenance, "metrics": makers}))
    results, message = report(release(tmp_path / "two", monkeypatch, "1.1", scale=2), store)
    assert [record.metrics["last"] for record in results.records] == [0.5]
    assert "metric last by pulled 1.0 (00000000), now 1.1 (" in message


def test_records_that_do_not_say_whose_metrics_they_hold_are_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    catalogue = release(tmp_path / "one", monkeypatch, "1.0")
    new = run(catalogue, store)
    old = dataclasses.replace(new, provenance={k: v for k, v in new.provenance.items() if k != "metrics"})
    store.put(old)
    results, message = report(catalogue, store)
    assert [cell.record for cell in results.cells] == [old]
    assert "stale" not in message


def test_a_record_says_where_a_plugin_imports_by_a_name_that_only_the_run_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    assert "dynamic_imports" not in run(release(tmp_path / "one", monkeypatch, "1.0"), store).provenance
    by_name = "import importlib\n" + METHOD + "    def part(self, name):\n        return importlib.import_module(name)\n"
    monkeypatch.setitem(globals(), "METHOD", by_name)
    record = run(release(tmp_path / "two", monkeypatch, "2.0"), store)
    assert record.provenance["dynamic_imports"] == ["pulled.method"]
