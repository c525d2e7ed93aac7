"""What is missing behind published rows is run as a campaign is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cglsuite import load_catalogue
from cglsuite.campaigns.overrides import Overrides
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


@pytest.mark.plugins
def test_published_rows_are_reproduced_by_the_records_of_the_gallery() -> None:
    """Which have native numerics, whatever campaigns that name none have."""
    catalogue = load_catalogue()
    (selection,) = reproduction.selections_of(reproduction.Selection(dataset="Cora", setting="task-il", method="EWC", paper="BeGin"))
    planned = reproduction.reproduction_of(selection, catalogue).plan(catalogue, Overrides(device="cpu"))
    assert planned
    assert {p.request.numerics for p in planned} == {"native"}
