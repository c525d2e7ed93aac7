"""A submission of honest records to spoil, and a review without the minutes that a method's check takes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cglsuite import Catalogue, Seeds
from cglsuite.cells.plan import CellRequest, plan_cell
from cglsuite.cells.run import run_cell
from cglsuite.cells.storage.store import Store
from cglsuite.commons.submissions.checks import Finding
from cglsuite.commons.submissions.review import Options, Review, review

__all__ = ["SCENARIO", "TINY", "Submission", "fill_honest", "passes"]

SCENARIO = "synthetic-csbm/class-il@begin-1"
TINY = {
    "dataset.n_nodes": 48,
    "dataset.n_classes": 4,
    "dataset.n_features": 20,
    "dataset.words": 4,
    "dataset.avg_degree": 4,
    "training.epochs": 1,
    "backbone.width": 4,
}
Spoil = Callable[[dict[str, Any]], None]


def passes(method: str) -> Finding:
    return Finding(check="check", verdict="verified", reason=f"{method}: taken for granted in this test")


def fill_honest(path: Path, catalogue: Catalogue) -> None:
    """Train two methods with three orders each into a store."""
    store = Store(path)
    for method in ("bare", "ewc"):
        for order in range(3):
            planned = plan_cell(CellRequest(scenario=SCENARIO, method=method, overrides=TINY, seeds=Seeds(order=order)), catalogue)
            assert planned.cell is not None
            assert run_cell(planned.cell, catalogue, store).done


class Submission:
    """A copy of the honest store, whose records can be spoiled; ``results`` is where it is submitted."""

    def __init__(self, path: Path, results: Path, catalogue: Catalogue) -> None:
        self.path, self.results, self.catalogue = path, results, catalogue
        self.keys = Store(path, quarantine=False).keys()

    def file(self, key: str) -> Path:
        return Store(self.path, quarantine=False).record_path(key)

    def read(self, key: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.file(key).read_text())
        return found

    def key_of(self, method: str, order: int = 0) -> str:
        return next(k for k in self.keys if (c := self.read(k)["cell"])["method"] == method and c["seeds"]["order"] == order)

    def spoil(self, change: Spoil, key: str | None = None, *, rename: bool = True) -> str:
        """Change a record and give it the digest of what it then holds, as its author can; returns its key."""
        key = key or self.keys[0]
        data, path = self.read(key), self.file(key)
        data.pop("digest")
        change(data)
        self.write(data, path)
        if rename and data["key"] != key:
            target = path.parent.parent / str(data["key"])[:2] / f"{data['key']}.json"
            target.parent.mkdir(exist_ok=True)
            path.rename(target)
        return str(data["key"])

    def write(self, data: dict[str, Any], path: Path) -> None:
        text = json.dumps(data, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(text.encode()).hexdigest()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**data, "digest": digest}, sort_keys=True, separators=(",", ":")) + "\n")

    def review(self, **options: Any) -> Review:
        given = Options(**{"sample": 0, "examine": passes, **options})
        return review(self.path, self.results, self.catalogue, given)
