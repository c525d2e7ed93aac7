"""The observers of the page on trackers log every epoch and task of a cell, each cell in a run of its own; clients are fakes."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from doc_blocks import ROOT, blocks

from cglsuite import load_catalogue
from cglsuite.cells import CellOptions, Store, resolve_cell, run_cell

pytestmark = pytest.mark.plugins
PAGE = ROOT / "docs" / "how-to" / "trackers.md"


class Logs:
    """What a fake client was sent, by run."""

    def __init__(self) -> None:
        self.sent: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.ended: list[str] = []


def fake_wandb(logs: Logs) -> ModuleType:
    class Run:
        def __init__(self, name: str) -> None:
            self.name = name

        def log(self, values: dict[str, float]) -> None:
            for metric, value in values.items():
                logs.sent[self.name][metric].append(value)

        def finish(self) -> None:
            logs.ended.append(self.name)

    module: Any = ModuleType("wandb")
    module.init = lambda project, name, reinit: Run(name)
    return module


def fake_mlflow(logs: Logs) -> ModuleType:
    class MlflowClient:
        def create_run(self, experiment_id: str, run_name: str) -> Any:
            return SimpleNamespace(info=SimpleNamespace(run_id=run_name))

        def log_metric(self, run_id: str, key: str, value: float, step: int) -> None:
            logs.sent[run_id][key].append(value)

        def set_terminated(self, run_id: str) -> None:
            logs.ended.append(run_id)

    module: Any = ModuleType("mlflow")
    module.MlflowClient = MlflowClient
    return module


@pytest.mark.parametrize(
    ("name", "fake", "loss", "performance"),
    [("WandB", fake_wandb, "loss/task {}", "performance/task {}"), ("MLflow", fake_mlflow, "loss_task_{}", "performance_task_{}")],
)
def test_observers_of_the_page(name: str, fake: Any, loss: str, performance: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = Logs()
    monkeypatch.setitem(sys.modules, name.lower(), fake(logs))
    namespace: dict[str, Any] = {}
    exec(next(block.text for block in blocks(PAGE) if block.title == "trackers.py"), namespace)
    observer, catalogue, store = namespace[name](), load_catalogue(), Store(tmp_path)
    changes = {"training.epochs": 2, "dataset.n_nodes": 60, "dataset.n_classes": 4}
    for method in ("bare", "lwf"):
        cell = resolve_cell(catalogue, scenario="synthetic-csbm/class-il@example-1", method=method, overrides=changes)
        record = run_cell(cell, catalogue, store, CellOptions(observers=[observer]))
        assert record.done
        assert logs.ended[-1].startswith(f"synthetic-csbm/class-il@example-1 × {method} × ")
        sent = logs.sent[logs.ended[-1]]
        assert [len(sent[loss.format(task)]) for task in (1, 2)] == [2, 2]
        matrix = record.performance()
        assert sent[performance.format(1)] == [matrix[1, 0], matrix[2, 0]]
        assert sent[performance.format(2)] == [matrix[2, 1]]
    assert len(logs.sent) == len(logs.ended) == 2
