"""What a study refuses, with what is expected; a study without results says why; a report replaces only what a report wrote."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cglsuite as cgl
from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.cli import main

pytestmark = pytest.mark.plugins
WHERE = ("synthetic-csbm", "class-il@example-1")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture(scope="module")
def study(store: Path) -> cgl.Study:
    return cgl.run(["bare", "er-gnn"], *WHERE, orders=2, overrides={"training.epochs": 2}, store=store, progress=False)


@pytest.fixture(scope="module")
def failed(store: Path) -> cgl.Study:
    changes = {"training.epochs": 2, "training.lr": 1e6, "training.optimizer": "sgd"}
    return cgl.run("bare", *WHERE, overrides=changes, store=store, progress=False)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"methods": None}, r"methods = None: expected the name of a method, a class derived from cglsuite\.Method, or a list of them"),
        ({"methods": {"bare": 1}}, r"methods = \{'bare': 1\}: expected the name"),
        ({"protocol": None}, r"protocol = None: expected text such as 'class-il@cglb-1'"),
        ({"protocol": 3}, r"protocol = 3: expected text"),
        ({"store": 3}, r"the store 3: expected the path of a folder"),
        ({"orders": 1.5}, r"orders = 1\.5: expected a whole number from 1"),
        ({"seeds": True}, r"seeds = True: expected a whole number from 1"),
        ({"workers": 0}, r"workers = 0: expected a whole number from 1"),
        ({"overrides": [1]}, r"overrides = \[1\]: expected values by dotted name"),
        ({"overrides": {3: 1}}, r"overrides = \{3: 1\}: expected values by dotted name"),
        ({"observers": 3}, r"observers = 3: expected an observer"),
        ({"name": 3}, r"name = 3: expected text"),
    ],
)
def test_an_argument_of_another_kind_is_named(given: dict[str, Any], says: str) -> None:
    options: dict[str, Any] = {"methods": "bare", "data": WHERE[0], "protocol": WHERE[1], "progress": False}
    with pytest.raises(UsageError, match=says):
        cgl.run(**(options | given))


def test_scalars_of_numpy_are_numbers(study: cgl.Study, store: Path) -> None:
    """The cells are those of Python's numbers."""
    scalars: dict[str, Any] = {"orders": np.int64(2), "seeds": np.uint8(1), "overrides": {"training.epochs": np.int32(2)}}
    again = cgl.run(("bare", "er-gnn"), *WHERE, store=store, progress=False, **scalars)
    assert set(again.frame["key"]) == set(study.frame["key"])


def test_a_study_can_be_pickled(study: cgl.Study) -> None:
    copy = pickle.loads(pickle.dumps(study))
    assert str(copy) == str(study)
    assert copy.means().equals(study.means())


@pytest.mark.parametrize("ask", [cgl.Study.means, cgl.Study.compare, cgl.Study.plot])
@pytest.mark.parametrize("metric", ["nope", None, "a_auc"])
def test_an_unknown_metric_is_refused_with_those_there_are(study: cgl.Study, ask: Callable[..., Any], metric: Any) -> None:
    with pytest.raises(UsageError, match=r"these results have no metric .*: expected one of average_performance, .*forgetting_max"):
        ask(study, metric)


def test_curves_of_another_metric_are_refused_with_those_there_are(study: cgl.Study) -> None:
    with pytest.raises(UsageError, match="there are no curves of 'nope'; expected one of average_performance, forgetting_from_diagonal"):
        study.curves("nope")


def test_a_study_without_results_says_why(failed: cgl.Study) -> None:
    reason = r"bare: at epoch \d of task \d: the monitored value became (nan|inf): lower training\.lr or the method's weights"
    for ask in (failed.means, failed.compare, failed.plot):
        with pytest.raises(UsageError, match=rf"^no cell of this study has a result\n{reason}"):
            ask()
    (said,) = failed.reasons
    assert str(failed).endswith(f"1 diverged\n\n{said}")
    assert "lower training.lr" in failed._repr_html_()


def test_a_frame_has_a_row_for_every_cell(study: cgl.Study, failed: cgl.Study) -> None:
    assert study.frame["status"].tolist() == ["done"] * 4
    frame = failed.frame
    assert frame[["status", "order_seed"]].to_numpy().tolist() == [["diverged", 0]]
    assert frame["reason"].str.contains("lower training.lr").all()


def test_a_cell_that_cannot_be_is_in_the_frame_with_its_reason(store: Path) -> None:
    """GEM has no task-free form: it has no record either."""
    frame = cgl.run(["bare", "gem"], protocol="synthetic-csbm/hard@drift-1", store=store, progress=False).frame
    row = frame[frame["method"] == "gem"].iloc[0]
    assert row["status"] == "n/a"
    assert "needs task boundaries" in row["reason"]


class Shouting(cgl.Method):
    """Raises an error with a long text that would steer a terminal."""

    def loss(self, batch: Any) -> Any:
        raise ValueError("\x1b[31mred" + "!" * 5000)


def test_the_text_of_an_error_is_cleaned_and_cut(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    study = cgl.run(Shouting, *WHERE, overrides={"training.epochs": 1}, orders=2, store=store, progress=False)
    said = [*study.reasons, *study.frame["reason"], *(record.message for record in caplog.records if "red!" in record.message)]
    assert len(said) == 1 + 2 + 2
    assert all("ValueError: red!!!" in text and len(text) < 1200 for text in said)


def test_settings_that_fit_no_task_are_refused_once_before_anything_is_trained(store: Path) -> None:
    settings: dict[str, Any] = {"orders": 3, "overrides": {"scenario.classes_per_task": 4}, "store": store, "progress": False}
    with pytest.raises(UsageError, match=r"'study': synthetic-csbm/class-il@cglb-1: scenario\.classes_per_task = 4: of 10 classes 2 would"):
        cgl.run(["bare", "er-gnn"], "synthetic-csbm", "class-il@cglb-1", **settings)


def test_status_says_so_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    campaign = tmp_path / "c.toml"
    text = '[grid]\nscenarios = ["synthetic-csbm/class-il@cglb-1"]\nmethods = ["bare", "ewc"]\n[set]\n"scenario.classes_per_task" = 4\n'
    campaign.write_text(f'name = "c"\n{text}')
    assert main.run(["status", str(campaign), "--store", str(tmp_path / "store")]) == 0
    assert capfd.readouterr().err.count("c.toml: synthetic-csbm/class-il@cglb-1: scenario.classes_per_task = 4: of 10 classes") == 1


def test_a_stream_of_one_task_and_orders_that_are_seeds_are_named_at_launch(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    few = {"training.epochs": 1, "scenario.classes_per_task": 10}
    cgl.run(["bare", "lwf"], "synthetic-csbm", "class-il@cglb-1", orders=2, overrides=few, store=store, progress=False)
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "synthetic-csbm/class-il@cglb-1: the stream has a single task, so there is no continual learning: lower scenario.classes_per_task",
        "synthetic-csbm/class-il@cglb-1: tasks have a fixed order, so the 2 orders repeat the same order with different seeds",
    ]


def test_a_method_of_single_labels_does_not_apply_to_several(store: Path) -> None:
    y = np.eye(4, dtype=bool)[np.arange(40) % 4] | np.eye(4, dtype=bool)[np.arange(40) // 10]
    data = {"x": np.ones((40, 2), np.float32), "y": y, "edge_index": np.zeros((2, 1), np.int64)}
    (reason,) = cgl.run("icarl", data, "class-il@agale-1", name="several", store=store, progress=False).frame["reason"]
    assert reason == "method 'icarl' learns single labels; those of 'several/class-il@agale-1' are multi"


def test_a_report_replaces_only_what_a_report_wrote(study: cgl.Study, tmp_path: Path) -> None:
    for name in ("study.toml", "index.html", "method_comparison.html"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("mine")
        with pytest.raises(UsageError, match=rf"{name} was not written by .*will not be replaced: move it, or choose a different folder"):
            study.report(folder)
        assert (folder / name).read_text() == "mine"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="cannot write reports to .*file"):
        study.report(tmp_path / "file")


def test_a_report_is_of_known_notebooks(study: cgl.Study, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown notebook 'nope'"):
        study.report(tmp_path / "out", notebooks="nope")
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="notebooks = 3: expected the name of a notebook"):
        study.report(tmp_path / "out", notebooks=3)  # type: ignore[arg-type]


@pytest.mark.nightly
def test_pages_of_an_earlier_study_are_replaced_or_named(study: cgl.Study, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (page,) = study.report(out, notebooks="method_comparison")
    assert page.done
    (out / "notes.txt").write_text("mine")
    (out / "dataset-other.html").write_text("mine")
    small = cgl.run("bare", "synthetic-csbm-edges", "class-il@cglb-1", overrides={"training.epochs": 1}, store=store, progress=False)
    (page,) = small.report(out, notebooks=["campaign_report"])
    assert page.done
    assert not (out / "dataset-synthetic-csbm.html").exists()
    assert (out / "dataset-other.html").read_text() == (out / "notes.txt").read_text() == "mine"
    index = (out / "index.html").read_text()
    assert "Left over from earlier runs (the campaign no longer includes these reports):" in index
    assert "method_comparison.html" in index
