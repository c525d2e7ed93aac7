"""Node regression: every method that is for it learns both embedded presets, and its scores are errors of its own predictions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from installed import installed
from short_methods import SHORT

from cglsuite.base.errors import NotApplicable, SpecError
from cglsuite.cells.run import build_stream, make_runner
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.specs import MethodSpec

pytestmark = pytest.mark.plugins
PRESETS = ("synthetic-node-targets/domain-il@begin-2", "synthetic-node-targets/time-il@begin-2")
TINY: dict[str, Any] = {
    "training.epochs": 2,
    "backbone.width": 8,
    "backbone.layers": 2,
    "dataset.n_nodes": 300,
    "dataset.communities": 5,
    "dataset.domains": 3,
    "dataset.years": 3,
    "dataset.avg_degree": 4.0,
}
#: All methods for several settings and levels, less those that need classes, whole graphs or streams without tasks.
METHODS = sorted(
    "bare continual-gnn der++ er-gnn evolve-gcn ewc gdumb gem joint joint-budgeted lwf mas pi-gnn replay si ssrm twp".split()  # noqa: SIM905
)


def cell(preset: str, method: str, **more: Any) -> CellSpec:
    settings = {name: value for name, value in SHORT.get(method, {}).items() if name.startswith("method.")}
    return resolve_cell(installed(), preset, method, overrides={**TINY, **settings, **more})


def test_the_methods_for_node_regression() -> None:
    specs = installed().specs(MethodSpec).values()
    assert sorted(s.name for s in specs if "NR" in s.levels and "domain-il" in s.settings) == METHODS


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns(method: str, preset: str) -> None:
    made = cell(preset, method)
    result = make_runner(made, installed(), build_stream(made, installed())).run()
    last = result.matrix[-1]
    assert len(last) == 3
    assert all(math.isfinite(value) and value < 0 for value in last)
    assert last != result.matrix[1]


@pytest.mark.parametrize(("measure", "of"), [("negative-mae", torch.abs), ("negative-rmse", torch.square)])
def test_scores_are_errors_over_all_test_items_of_a_task(measure: str, of: Any) -> None:
    """With the predictions of the trained model, by hand."""
    made = cell(PRESETS[0], "bare", **{"scenario.performance": measure})
    stream = build_stream(made, installed())
    runner = make_runner(made, installed(), stream)
    result = runner.run()
    (group,) = stream.make_queries(len(stream))
    items = stream.asked(group.token)
    with torch.no_grad():
        answers = runner.method.predict(group.query)
    errors = of((answers - items.y).double())[:, 0]
    for k, performance in enumerate(result.matrix[-1]):
        mean = float(errors[(items.tasks == k) & items.test].mean())
        assert performance == pytest.approx(-(mean if measure == "negative-mae" else math.sqrt(mean)), rel=1e-6)


def test_a_method_that_learns_classes_is_refused() -> None:
    with pytest.raises(NotApplicable, match="supports only NC"):
        cell(PRESETS[0], "cat")


def test_copies_of_the_graph_are_refused() -> None:
    with pytest.raises(SpecError, match=r"scenario.replicas = 2: graphs whose nodes have real targets cannot be copied; expected 1"):
        cell(PRESETS[0], "bare", **{"scenario.replicas": 2})


def test_settings_of_classes_are_refused() -> None:
    made = cell(PRESETS[0], "bare")
    classes = replace(made, scenario=replace(made.scenario, setting="class-il"))
    with pytest.raises(SpecError, match="has no classes; expected 'domain-il' or 'time-il'"):
        build_stream(classes, installed())
