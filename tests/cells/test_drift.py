"""Forgetting in two parts: the drift of the graph and the change of weights, against brute force."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from installed import installed

from cglsuite import Catalogue, Seeds
from cglsuite.base.errors import NotApplicable
from cglsuite.cells.diagnostics import ForgettingSplit, split_forgetting, why_no_split
from cglsuite.cells.run import build_stream, make_runner, numerics, run_cell
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.cells.storage.store import Store
from cglsuite.cli import main
from cglsuite.testing import tiny_catalogue

pytestmark = pytest.mark.plugins

BRIEF = {"training.epochs": 6, "backbone.width": 8}
GROWING = [
    ("testing-nodes/time-il@testing-1", {}),
    ("testing-links/time-il@testing-1", {}),
    ("testing-nodes/class-il@testing-1", {"scenario.edge_policy": "inter-task"}),
    ("testing-nodes/class-il@testing-1", {"scenario.edge_policy": "none", "scenario.query_edges": "seen"}),
    ("testing-label-sets/class-il@testing-1", {"scenario.edge_policy": "inter-task"}),
]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return tiny_catalogue(installed())


def cell_of(catalogue: Catalogue, scenario: str, overrides: dict[str, Any], method: str = "bare") -> CellSpec:
    return resolve_cell(catalogue, scenario=scenario, method=method, overrides=BRIEF | overrides, seeds=Seeds(order=1, split=2, init=3))


@pytest.mark.parametrize(("scenario", "overrides"), GROWING)
def test_the_additional_queries_change_no_score(catalogue: Catalogue, tmp_path: Path, scenario: str, overrides: dict[str, Any]) -> None:
    cell = cell_of(catalogue, scenario, overrides)
    split = split_forgetting(cell, catalogue)
    record = run_cell(cell, catalogue, Store(tmp_path))
    assert record.done, record.reason
    np.testing.assert_array_equal(split.matrix, record.performance())
    np.testing.assert_array_equal(split.later[-1], split.matrix[-1])
    assert split.forgetting == pytest.approx(record.metrics["forgetting_from_diagonal"])
    assert split.drift + split.weights == pytest.approx(split.forgetting)
    assert np.isnan(split.later[np.triu_indices(len(split.later), 1)]).all()


def test_what_weights_that_hardly_move_forget_is_drift(catalogue: Catalogue) -> None:
    cell = cell_of(catalogue, "testing-nodes/time-il@testing-1", {"training.lr": 1e-12})
    split = split_forgetting(cell, catalogue)
    assert abs(split.drift_by_task).max() > 0
    assert split.weights_by_task == pytest.approx(0.0, abs=1e-12)


class _Kept:
    """Checkpoints in memory."""

    def __init__(self) -> None:
        self.states: dict[str, Any] = {}

    def load(self, prefix: str) -> Any:
        return None

    def save(self, prefix: str, payload: dict[str, Any]) -> None:
        import copy

        self.states[prefix] = copy.deepcopy(payload["state"])

    def drop(self, prefix: str) -> None:
        pass


def test_old_weights_answer_the_last_queries(catalogue: Catalogue) -> None:
    """In task-IL the outputs that compete never change, so that restored weights can simply be asked the last queries."""
    cell = cell_of(catalogue, "testing-nodes/task-il@testing-1", {"scenario.edge_policy": "inter-task"})
    split, kept = split_forgetting(cell, catalogue), _Kept()
    with numerics(cell):
        stream = build_stream(cell, catalogue)
        make_runner(cell, catalogue, stream).run(kept, keep=len(stream))  # type: ignore[arg-type]
        for learnt in range(1, len(stream) + 1):
            runner: Any = make_runner(cell, catalogue, stream)
            runner._restore(kept.states[runner.prefixes[learnt]])
            for group, answers in runner.answers():
                asked = stream.asked(group.token)
                for j in range(learnt):
                    chosen = (asked.tasks == j) & asked.test
                    right = (answers == asked.y)[chosen].double().mean()
                    assert split.later[learnt - 1, j] == pytest.approx(float(right))


def test_parts_of_a_matrix_by_hand() -> None:
    matrix = np.array([[0.5, 0.5, 0.5], [0.9, 0.5, 0.5], [0.8, 0.7, 0.5], [0.6, 0.3, 1.0]])
    later = np.array([[0.7, np.nan, np.nan], [0.65, 0.8, np.nan], [0.6, 0.3, 1.0]])
    split = ForgettingSplit(matrix=matrix, later=later)
    assert split.by_task == pytest.approx([0.3, 0.4])
    assert split.drift_by_task == pytest.approx([0.2, -0.1])
    assert split.weights_by_task == pytest.approx([0.1, 0.5])
    assert (split.forgetting, split.drift, split.weights) == pytest.approx((0.35, 0.05, 0.3))


@pytest.mark.parametrize(
    ("scenario", "overrides", "reason"),
    [
        ("testing-nodes/class-il@testing-1", {"scenario.edge_policy": "full"}, "edge_policy is full"),
        ("testing-nodes/class-il@testing-1", {"scenario.edge_policy": "none"}, "edge_policy is none"),
        ("testing-graphs/class-il@testing-1", {}, "edge_policy is full"),
        ("testing-nodes/task-free@testing-1", {}, "a task-free stream"),
    ],
)
def test_where_the_graph_does_not_grow_there_is_nothing_to_split(
    catalogue: Catalogue, scenario: str, overrides: dict[str, Any], reason: str
) -> None:
    cell = cell_of(catalogue, scenario, overrides)
    assert reason in why_no_split(cell.scenario)
    with pytest.raises(NotApplicable, match=reason):
        split_forgetting(cell, catalogue)


def test_a_single_task_is_never_old(catalogue: Catalogue) -> None:
    with pytest.raises(NotApplicable, match="1 task"):
        split_forgetting(cell_of(catalogue, "testing-nodes/time-il@testing-1", {"scenario.n_tasks": 1}), catalogue)


COMMAND = ["cell", "--method", "bare", "--set", "training.epochs=3", "--quiet", "--split-forgetting"]


def test_the_command_prints_both_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [*COMMAND, "--scenario", "testing-nodes/time-il", "--store", str(tmp_path)]
    assert main.run([*given, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    found = printed["forgetting"]
    assert found["drift"] + found["weights"] == pytest.approx(found["forgetting"])
    assert found["forgetting"] == pytest.approx(printed["metrics"]["forgetting_from_diagonal"])
    assert json.loads((tmp_path / "splits" / f"{printed['key']}.json").read_text()) == found  # kept beside the record
    assert main.run(given) == 0
    last = capsys.readouterr().out.rstrip().splitlines()[-1]
    assert last.split() == ["mean", *(f"{100 * found[name]:+.1f}" for name in ("forgetting", "drift", "weights"))]


def test_the_command_refuses_before_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([*COMMAND, "--scenario", "testing-graphs/class-il", "--store", str(tmp_path)]) == 3
    assert "edge_policy is full" in capsys.readouterr().err
    assert not list(Store(tmp_path).record_files())
