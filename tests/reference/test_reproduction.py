"""What is missing behind published rows is run as a campaign is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cglsuite.campaigns.reference import reproduction
from cglsuite.cells.storage.store import Store


def test_missing_cells_are_run_with_progress_where_their_data_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def planned(dataset: str | None) -> Any:
        return SimpleNamespace(cell=None if dataset is None else SimpleNamespace(scenario=SimpleNamespace(dataset=dataset)))

    here, away, unresolved = planned("here"), planned("away"), planned(None)
    executor = SimpleNamespace(run=lambda cells, store, options: asked.append((list(cells), options)))
    monkeypatch.setattr(reproduction, "find_executor", lambda catalogue, name: executor if name == "local" else None)
    reproduction.run_missing([here, away, unresolved], SimpleNamespace(), Store(tmp_path), absent={"away": "no file"})  # type: ignore[arg-type]
    ((cells, options),) = asked
    assert cells == [here]
    assert (options.progress, options.workers, options.label) == (True, 1, "reproduction")
