"""The explorer: what it shows with and without widgets, and what its controls do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import cglsuite as cgl
from cglsuite.base.errors import UsageError
from cglsuite.cells.storage.store import Store
from cglsuite.study.explorer import VIEWS, Explorer

pytestmark = pytest.mark.plugins
SMALL = {"dataset.n_nodes": 120, "dataset.n_classes": 4, "backbone.width": 8, "training.epochs": 2}
TASKS, CLASSES = "synthetic-csbm/task-il@begin-1", "synthetic-csbm/class-il@begin-1"
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What most tests only read: starting a worker takes longer than training these cells."""
    folder = tmp_path_factory.mktemp("store")
    cgl.run(["bare", "joint"], "synthetic-csbm", ["task-il@begin-1", "class-il@begin-1"], orders=2, overrides=SMALL, store=folder)
    return folder


@pytest.fixture
def explorer(store: Path) -> Explorer:
    return cgl.explore(TASKS, "bare", overrides=SMALL, store=store)


def controls(explorer: Explorer) -> Any:
    """The panel of an explorer that was shown; skips where there are no widgets."""
    pytest.importorskip("ipywidgets", reason='the controls need widgets: pip install "cglsuite[jupyter]"')
    assert WIDGET in explorer._repr_mimebundle_()
    return explorer.panel


@pytest.mark.nightly
def test_without_widgets_the_same_figures_are_shown(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices, curves and the numbers as HTML, and words for front ends that show neither."""
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    shown = explorer._repr_mimebundle_()
    assert WIDGET not in shown
    assert shown["text/html"].count("<img ") == 2
    assert "average performance, %" in shown["text/html"]
    assert "Mean performance matrix" in shown["text/plain"]
    assert repr(explorer) == f"<Study of bare on {TASKS}: 1 done>"


def test_a_choice_keeps_what_is_left_out(explorer: Explorer, store: Path) -> None:
    """Another scenario or more orders have the same settings: their cells are in the store."""
    before = len(list(Store(store).records()))
    assert explorer.choose(orders=2) is explorer
    assert list(explorer.frame["order_seed"]) == [0, 1]
    assert explorer.choose(scenario=CLASSES, methods=["bare", "joint"]).study.outcome.counts == {"done": 4}
    assert set(explorer.study.frame["scenario"]) == {CLASSES}
    assert len(list(Store(store).records())) == before
    with pytest.raises(UsageError, match="unknown options of the explorer: order; expected any of scenario, methods, orders, seeds"):
        explorer.choose(order=3)
    with pytest.raises(UsageError, match="bear"):
        explorer.choose(methods=["bear"])
    assert explorer.choice["methods"] == ["bare", "joint"]


def test_a_cell_that_does_not_apply_has_its_reason(tmp_path: Path) -> None:
    """No figure, and the reason in its place."""
    explorer = cgl.explore(CLASSES, "packnet", overrides={k: v for k, v in SMALL.items() if k[0] == "d"}, store=tmp_path / "store")
    assert explorer.status().startswith("1 cell: 1 n/a. packnet: ")
    assert "packnet: " in explorer._repr_mimebundle_()["text/plain"]


def test_controls_offer_what_is_installed(explorer: Explorer) -> None:
    panel = controls(explorer)
    assert {TASKS, CLASSES} <= set(panel.found.options)
    assert (panel.scenario.value, panel.found.value) == (TASKS, TASKS)
    assert {"bare", "er-gnn"} <= set(panel.methods.options)
    assert panel.methods.options[0] == "bare", "the chosen ones come first, where they are seen"
    assert (panel.methods.value, panel.orders.value, panel.seeds.value) == (("bare",), 1, 1)
    assert panel.said.value == "1 cell: 1 done"
    shown = {}
    for view in VIEWS:
        panel.views.value = view
        shown[view] = panel.shown.value
    assert len(set(shown.values())) == len(VIEWS)
    assert "<img " in shown["matrices"]
    assert "<table" in shown["numbers"]
    assert explorer._repr_mimebundle_()[WIDGET]["model_id"] == panel.box.model_id


def test_typed_words_filter_the_scenarios(explorer: Explorer) -> None:
    """Those that contain every word; a choice among them is the scenario, and all are listed again."""
    panel = controls(explorer)
    every = panel.found.options
    panel.scenario.value = "csbm class-il"
    assert CLASSES in panel.found.options
    assert all("csbm" in name and "class-il" in name for name in panel.found.options)
    assert len(panel.found.options) < len(every)
    panel.found.value = CLASSES
    assert panel.scenario.value == CLASSES
    assert panel.found.options == every


@pytest.mark.nightly
def test_run_trains_and_shows_the_choice(explorer: Explorer) -> None:
    panel = controls(explorer)
    panel.scenario.value, panel.methods.value, panel.orders.value = CLASSES, ("bare", "er-gnn"), 2
    said: list[str] = []
    panel.said.observe(lambda change: said.append(change["new"]), names="value")
    panel.views.value = "numbers"
    panel.button.click()
    assert explorer.study.outcome.counts == {"done": 4}
    assert "er-gnn" in panel.shown.value
    assert panel.said.value == "4 cells: 4 done"
    assert any("task 2/2" in text for text in said), "progress of training is shown"
    assert not panel.button.disabled


def test_a_run_says_how_far_it_is_in_the_panel_alone(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    """No bars below the cell."""
    asked: list[Any] = []
    monkeypatch.setattr("cglsuite.study.explorer.run", lambda *_, **given: asked.append(given["progress"]) or explorer.study)
    explorer.choose(orders=1)
    assert asked == [False]


@pytest.mark.nightly
def test_a_choice_that_cannot_run_says_so_and_leaves_the_rest(explorer: Explorer) -> None:
    panel = controls(explorer)
    before, shown = explorer.study, panel.shown.value
    panel.scenario.value = "synthetic-csmb/<b>"
    panel.button.click()
    assert panel.said.value.startswith("<b>Not run.</b> ")
    assert "synthetic-csmb/&lt;b&gt;" in panel.said.value
    panel.scenario.value, panel.methods.value = TASKS, ()
    panel.button.click()
    assert "methods is empty" in panel.said.value
    assert explorer.study is before
    assert panel.shown.value == shown
    assert not panel.button.disabled
