"""Task-free streams of real targets and of several labels: nothing leaks, outputs are never hidden, and methods of classes are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from cglsuite_drift.beyond import beyond_presets
from installed import installed

from cglsuite import Seeds
from cglsuite.base.errors import NotApplicable, SpecError
from cglsuite.cells.run import build_scenario
from cglsuite.cells.spec import resolve_cell, resolve_scenario

PRESETS = {preset.name: preset for preset in beyond_presets()}
EMBEDDED = [name for name in PRESETS if name.startswith("synthetic-")]


def stream(name: str, task_free: dict[str, Any] | None = None, order: int = 1) -> Any:
    catalogue = installed()
    resolved = resolve_scenario(catalogue, name)
    spec = resolved.spec
    assert spec.task_free is not None
    spec = replace(spec, task_free=replace(spec.task_free, **(task_free or {})))
    return build_scenario(catalogue, spec, resolved.dataset_hyperparameters, Seeds(order=order, split=1))


@pytest.mark.parametrize("name", EMBEDDED)
def test_training_items_arrive_about_equally_often_and_others_never(name: str) -> None:
    made = stream(name)
    draws = made.items.flatten().bincount(minlength=len(made.data.y))
    for k in range(len(made)):
        arrived = draws[made.members(k, "train")]
        assert int(arrived.max() - arrived.min()) <= 1
        if "/periodic@" in name:  # the last batch of a latent task is filled with items that have arrived before
            assert int(arrived.min()) == 1
            assert int(arrived.sum()) - len(arrived) < made.items.shape[1]
        assert not draws[made.members(k, "test")].any()
        assert not draws[made.members(k, "validation")].any()


@pytest.mark.parametrize("name", EMBEDDED)
def test_queries_have_no_targets_and_batches_all_outputs(name: str) -> None:
    made = stream(name)
    batch = made.make_batch(0)
    assert torch.equal(batch.y, made.data.y[made.items[0]])
    assert batch.allowed.all()
    queries = [group.query for group in made.make_queries(made.n_steps)]
    assert all(query.y is None and query.tasks is None for query in queries)
    assert [len(query) for query in queries] == [
        sum(made.members(k, part).numel() for k in range(len(made))) for part in ("test", "validation")
    ]


def test_the_items_depend_on_the_order_seed() -> None:
    name = "synthetic-node-targets/periodic@task-free-1"
    assert stream(name).content == stream(name).content
    assert stream(name).content != stream(name, order=2).content


@pytest.mark.parametrize("mask", ["seen", "progressive"])
def test_masks_of_classes_are_refused(mask: str) -> None:
    with pytest.raises(SpecError, match=rf"stream.mask = {mask}: real targets have no classes that could be hidden; expected all"):
        stream("synthetic-node-targets/periodic@task-free-1", {"mask": mask})


@pytest.mark.parametrize("method", ["er", "ewc"])
def test_methods_of_classes_or_boundaries_are_refused(method: str) -> None:
    with pytest.raises(NotApplicable, match=f"method '{method}' (supports only NC|needs task boundaries|supports only)"):
        resolve_cell(installed(), "synthetic-node-targets/periodic@task-free-1", method)
