"""Every installed method over streams of every kind: it finishes, its numbers are finite, and an interruption changes no bit."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch
from installed import installed
from tiny_streams import VARIANTS, KeptCheckpoints, assert_same_run, catalogue_runner, variant_stream

from cglsuite.errors import NotApplicable
from cglsuite.learning.task_runner import TaskRunner

pytestmark = pytest.mark.plugins
TRAINING = {"lr": 1e-3, "epochs": 2, "monitor": "validation-loss", "restore_best": True}
CATALOGUE = installed()
METHODS: list[Any] = [e for e in CATALOGUE.entries("method") if set(e.spec.settings) - {"task-free"}]  # type: ignore[attr-defined]
#: Memories smaller than a task, so that there is something to choose.
SETTINGS = {
    "continual-gnn": {"memory": 12, "replayed": 6},
    "gem": {"per_task": 5},
    "er-gnn": {"per_class": 2},
    "der++": {"memory": 12},
    "er-ace": {"memory": 12},
    "gdumb": {"memory": 12},
    "icarl": {"memory": 12},
    "ssrm": {"per_class": 2},
    **{name: {"memory": 40, "fan_out": 2} for name in ("ssm", "sem")},
    "delome": {"per_class": 3, "draws": 4, "hidden": 8},
    "puma": {"per_task": 6, "encoders": 2, "steps": 2, "width": 16},
}


#: Streams for which methods are not defined: EvolveGCN's cells replace convolutions over nodes; CaT, PUMA and DeLoMe condense class by
#: class what features describe; NCM and iCaRL compare classes; SSRM is for graphs that grow around items, TPP's profiles are of nodes;
#: PackNet, Piggyback and HAT need to know the task.
REFUSED = {
    "evolve-gcn": "graph",
    **dict.fromkeys(("cat", "puma", "delome"), "graph|multi"),
    **dict.fromkeys(("frozen-ncm", "icarl"), "multi"),
    **dict.fromkeys(("ssrm", "tpp"), "graph"),
    **dict.fromkeys(("packnet", "piggyback", "hat"), "class|domain|time"),
}
#: For class-incremental streams of nodes with single labels alone, of which there is none here; its own tests interrupt it.
ELSEWHERE = {"task-guesser"}


def runner_of(name: str, method: str) -> TaskRunner:
    return catalogue_runner(variant_stream(name, training=TRAINING), method, SETTINGS.get(method))


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("method", [entry.name for entry in METHODS])
def test_a_method_runs_and_can_be_interrupted(method: str, name: str) -> None:
    """From the first task's checkpoint, with other global randomness, it gives what it gave in one go."""
    kept = KeptCheckpoints()
    try:
        runner = runner_of(name, method)
    except NotApplicable as reason:
        pytest.skip(str(reason))
    whole = runner.run(kept, keep=99)
    assert whole.trained_tasks == 3
    full = runner.stream.spec.edge_policy == "full"
    for k, row in enumerate(whole.matrix):
        assert [math.isfinite(v) for v in row] == [j < k or full for j in range(3)]
        assert all(0 <= v <= 1 for j, v in enumerate(row) if j < k or full)
    for k, row in enumerate(whole.validation_matrix):
        assert [math.isfinite(v) for v in row] == [j < k for j in range(3)]
    assert all(math.isfinite(loss) for curve in whole.curves for loss in (*curve["loss"], *curve["monitor"]))
    only = KeptCheckpoints()
    only.files[kept.saved[0]] = kept.files[kept.saved[0]]
    torch.manual_seed(12345)
    resumed = runner_of(name, method).run(only)
    assert resumed.trained_tasks == 2
    assert_same_run(resumed, whole)
    assert resumed.fingerprints == whole.fingerprints


@pytest.mark.parametrize("method", [e.name for e in METHODS if e.record.distribution == "cglsuite-methods" and e.name not in ELSEWHERE])
def test_built_in_methods_are_for_every_kind_of_stream(method: str) -> None:
    """None of them is refused with a reason, which the tests above would skip, but where the method is not defined."""
    kinds = {name for name in VARIANTS if not re.search(REFUSED.get(method, "^$"), name)}
    made = {name: type(runner_of(name, method).method) for name in kinds}
    assert set(made.values()) == {CATALOGUE.resolve(CATALOGUE.get("method", method))}
