"""Campaigns whose records are made instead of trained: what a report shows of them does not depend on where numbers come from.

Matrices follow from method, scenario and seeds by a hash, so that the same campaign has the same records everywhere.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from report_lab import catalogue_of, record_of

from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.keys import torch_version
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue
from cglsuite.reports.results.results import CampaignResults, load_campaign_results
from cglsuite.specs import BackboneSpec, Hyperparameter, MethodSpec, PluginSpec

__all__ = ["CAMPAIGN", "fill_store", "made_catalogue", "made_record", "made_results"]

CAMPAIGN: dict[str, Any] = {
    "name": "made",
    "title": "Five methods on two backbones",
    "description": "Made-up records.",
    "grid": {
        "scenarios": ["cora/task-il@begin-1", "toy/class-il@cglb-1"],
        "methods": ["bare", "si", "er-gnn", "packnet", "joint"],
        "backbones": ["gcn", "gat"],
    },
    "seeds": {"order": [0, 1, 2, 3, 4], "init": [0, 1, 2, 3, 4]},
    "run": {"device": "cpu"},
}
_TASKS = 5
_SIZES = {"n_train": 60, "n_validation": 20, "n_test": 20}


def made_catalogue(*extra: tuple[str, PluginSpec]) -> Catalogue:
    """The toy catalogue with methods of several categories, and a second backbone."""
    strength = Hyperparameter(name="strength", default=1.0, doc="how much of the old is kept")
    methods = [
        MethodSpec(name="si", summary="keeps weights near", factory="json:loads", category="Reg", hyperparameters=(strength,),
                   citation="Zenke, Poole & Ganguli, Continual Learning Through Synaptic Intelligence, ICML 2017. arXiv:1703.04200"),
        MethodSpec(name="er-gnn", summary="replays nodes", factory="json:loads", category="Rep", citation="Zhou & Cao, AAAI 2021"),
        MethodSpec(name="gem", summary="projects gradients", factory="json:loads", category="Rep", citation="10.5555/3295222.3295393"),
    ]  # fmt: skip
    gat = BackboneSpec(name="gat", summary="gat", factory="json:loads")
    return catalogue_of(*(("method", spec) for spec in methods), ("backbone", gat), *extra)


def made_results(path: Path, *extra: tuple[str, PluginSpec], **changes: Any) -> tuple[CampaignResults, Catalogue]:
    """The results of :data:`CAMPAIGN`, whose tables keyword arguments replace, with records made in a store at ``path``."""
    catalogue = made_catalogue(*extra)
    fill_store(CAMPAIGN | changes, catalogue, path)
    return load_campaign_results(CAMPAIGN | changes, path, catalogue=catalogue), catalogue


def fill_store(campaign: Campaign | Mapping[str, Any], catalogue: Catalogue, path: Path) -> list[PlannedCell]:
    """Put a record of every cell that can be run into a store; returns the plan."""
    campaign = campaign if isinstance(campaign, Campaign) else Campaign.parse(campaign)
    store = Store(path)
    plan = plan_campaign(campaign, catalogue, store=store)
    for planned in plan:
        if planned.ready:
            store.put(made_record(planned, catalogue))
    return plan


def made_record(planned: PlannedCell, catalogue: Catalogue, **changes: Any) -> Record:
    """A finished record with a matrix of five tasks, the classes of each task, an own order for every order seed, and believable costs."""
    cell = planned.cell
    assert cell is not None
    seeds, n_tasks = cell.seeds, _TASKS
    method = np.random.default_rng(zlib.crc32(f"{cell.method} {cell.preset}".encode()))
    noise = np.random.default_rng([seeds.order, seeds.split, seeds.init, zlib.crc32(f"{cell.method} {cell.preset}".encode())])
    first, loss = method.uniform(0.7, 0.95), method.uniform(0.0, 0.12)
    rows, tasks = np.arange(n_tasks + 1)[:, None], np.arange(n_tasks)[None, :]
    age = rows - 1 - tasks
    matrix = np.where(age >= 0, first - loss * np.maximum(age, 0) ** 0.5, 0.2) + noise.normal(0.0, 0.015, (n_tasks + 1, n_tasks))
    order = np.random.default_rng(seeds.order).permutation(2 * n_tasks).reshape(n_tasks, 2)
    entry = catalogue.get("method", cell.method)
    made_by = {"role": "method", "name": cell.method, "distribution": entry.record.distribution, "version": entry.record.version}
    seconds = method.uniform(5.0, 60.0) * noise.uniform(0.9, 1.1)
    kept = int(method.integers(0, 3)) * 60
    matrix = np.clip(matrix, 0.0, 1.0)
    given: dict[str, Any] = {
        "matrix": matrix,
        "metrics": _metrics(matrix, cell.scenario.setting, catalogue),
        "tasks": [{"name": str(k), "classes": sorted(map(int, classes)), **_SIZES} for k, classes in enumerate(order)],
        "timings_s": {"training": 0.8 * seconds, "method": 0.1 * seconds, "evaluation": 0.1 * seconds, "framework": 0.0, "total": seconds},
        "memory": {
            "peak_bytes": int(method.uniform(2e8, 9e8)), "items": kept, "edges": 0, "bytes": kept * 1433 * 4, "budget_items": None,
        },
        "provenance": {
            "plugins": [made_by | {"source": "b" * 64}],
            "core": {"version": "0.1.0", "source": "a" * 64},
            "data": "d" * 64,
            "resumed_from_task": 0,
        },
        "environment": {"python": "3.11.2", "torch": torch_version(), "platform": "Linux", "cpu": "a made-up CPU", "cuda": None},
    }  # fmt: skip
    return record_of(planned, **(given | changes))


def _metrics(matrix: Any, setting: str, catalogue: Catalogue) -> dict[str, float | None]:
    """The catalogue's metrics of a setting; those that need joint training are computed when records are read."""
    found: dict[str, float | None] = {}
    for entry in catalogue.entries("metric"):
        spec: Any = entry.spec
        if setting in spec.settings and not spec.performances:
            found[entry.name] = None if spec.reference else float(catalogue.resolve(entry)(matrix))
    return found
