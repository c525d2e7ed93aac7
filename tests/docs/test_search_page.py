"""The page on hyperparameter search: a study of one's own drives the suite, and prunes by validation performance of the tasks seen so far.

With Optuna where it is installed, else with a stand-in of the same interface.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stand_in_optuna
from doc_blocks import ROOT, blocks

from cglsuite.cells import resolve_cell

pytestmark = pytest.mark.plugins
PAGE = ROOT / "docs" / "how-to" / "search-hyperparameters.md"


@pytest.fixture
def tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What ``tune.py`` defines, on a smaller data set."""
    if importlib.util.find_spec("optuna") is None:
        monkeypatch.setitem(sys.modules, "optuna", stand_in_optuna.module())
    monkeypatch.chdir(tmp_path)
    (block,) = (b for b in blocks(PAGE) if b.title == "tune.py")
    names: dict[str, Any] = {"__name__": "tune"}
    exec(compile(block.text, "tune.py", "exec"), names)
    small = {"training.epochs": 2, "dataset.n_nodes": 200}
    names["resolve_cell"] = lambda catalogue, overrides, **cell: resolve_cell(catalogue, overrides=overrides | small, **cell)
    return names


def test_a_study_drives_the_suite(tune: dict[str, Any]) -> None:
    """The objective is the records' validation performance; what is reported is its mean over the tasks so far."""
    study = tune["search"](2)
    store, seeds = tune["store"], tune["SEEDS"]
    records = {(r.cell["configuration"]["training.lr"], r.cell["seeds"]["order"]): r for r in store.records()}
    assert len(records) == len(study.trials) * len(seeds)
    for trial in study.trials:
        of_trial = [records[trial.params["training.lr"], s.order] for s in seeds]
        assert trial.value == pytest.approx(np.mean([r.validation_average_performance() for r in of_trial]))
        rows = [np.array(r.validation_matrix, dtype=float)[1:] for r in of_trial]
        expected = [float(np.nanmean(row[: k + 1])) for matrix in rows for k, row in enumerate(matrix)]
        assert list(trial.intermediate_values.values()) == pytest.approx(expected)
    assert study.best_params == max(study.trials, key=lambda trial: trial.value).params


def test_a_pruned_trial_ends_at_its_task(tune: dict[str, Any]) -> None:
    """Without a record, and without a word of the observer; the same cell can be trained to its end later."""

    steps: list[int] = []

    class Trial:
        def suggest_float(self, name: str, low: float, high: float, *, log: bool) -> float:
            return low

        def report(self, value: float, step: int) -> None:
            assert not math.isnan(value)
            steps.append(step)

        def should_prune(self) -> bool:
            return steps[-1] == 2

    with pytest.raises(sys.modules["optuna"].TrialPruned):
        tune["objective"](Trial())
    assert steps == [1, 2]
    assert list(tune["store"].records()) == []
