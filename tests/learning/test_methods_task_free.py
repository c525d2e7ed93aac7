"""Every installed method for task-free streams, over streams of every kind: it finishes, an interruption changes no bit, it learns."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from installed import installed
from tiny_streams import KeptCheckpoints, assert_same_run, tiny_data, tiny_graphs
from tiny_task_free import catalogue_task_free_runner, tiny_task_free_stream

from cglsuite.learning.task_free_runner import TaskFreeRunner
from cglsuite.streams import TaskFreeStream

pytestmark = pytest.mark.plugins
CATALOGUE = installed()
METHODS: list[Any] = [e for e in CATALOGUE.entries("method") if "task-free" in e.spec.settings]  # type: ignore[attr-defined]
NAMES = [e.name for e in METHODS]
#: Data and switches of the streams.
STREAMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nodes": ({}, {}),
    "sparse nodes, a budget": ({"sparse": True}, {"memory_budget": 40}),
    "nodes in sampled graphs": ({}, {"training": {"fan_out": (3, 5)}}),
    "nodes, several passes": ({}, {"training": {"epochs": 2}}),
    "nodes with several labels": (
        {"multi_label": True},
        {"labels": "multi", "split": "random", "performance": "average-precision", "task_key": "domain"},
    ),
    "graphs": ({"graphs": True}, {}),
}
#: Memories smaller than the stream, so that there is something to choose, and events that would be rare in so short a stream.
SETTINGS: dict[str, dict[str, Any]] = {
    "joint": {"offline_epochs": 2, "offline_batch": 16},
    **{name: {"memory": 24} for name in ("er", "a-gem", "der++", "er-ace", "gss", "ssm", "sem", "dmsg")},
    "mas-star": {"hard_buffer": 8, "mean_threshold": 10.0, "variance_threshold": 10.0},
}

#: Streams for which a method is not defined: it compares classes.
REFUSED = {"frozen-ncm": ("nodes with several labels",)}


def small_stream(name: str) -> TaskFreeStream:
    of_data, switches = STREAMS[name]
    asked = {"per_class": 20} | of_data
    if "task_key" in switches:
        asked["keys"] = {"domain": [3, 5, 9]}
    make: Any = tiny_graphs if asked.pop("graphs", False) else tiny_data
    return tiny_task_free_stream(make(**asked), **switches)


def runner_of(method: str, stream: TaskFreeStream) -> TaskFreeRunner:
    return catalogue_task_free_runner(stream, method, SETTINGS.get(method))


class Stops(KeptCheckpoints):
    """The power fails at the third evaluation."""

    def save(self, prefix: str, payload: dict[str, Any]) -> None:
        """Save, and stop."""
        super().save(prefix, payload)
        if len(self.saved) == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("method", "name"), [(m, s) for m in NAMES for s in STREAMS if s not in REFUSED.get(m, ())])
def test_a_method_runs_and_can_be_interrupted(method: str, name: str) -> None:
    """Resumed with other global randomness it gives what it gave in one go; rates and counters stay what they are."""
    stream = small_stream(name)
    runner = runner_of(method, stream)
    whole = runner.run()
    assert all(0 <= v <= 1 for row in whole.matrix for v in row)
    assert all(math.isfinite(loss) for loss in whole.curves[0]["loss"])
    budget = stream.spec.memory_budget
    assert budget is None or (whole.memory["items"] or 0) <= budget
    kept = Stops()
    with pytest.raises(KeyboardInterrupt):
        runner_of(method, stream).run(kept)
    torch.manual_seed(999)
    resumed = runner_of(method, stream).run(kept)
    assert resumed.stream["resumed_from_evaluation"] == 3
    assert_same_run(resumed, whole)
    assert resumed.fingerprints == whole.fingerprints
    assert resumed.counters == whole.counters


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("graphs", [False, True])
def test_a_method_learns(graphs: bool, method: str) -> None:
    """On a stream that shows every class from beginning to end, in which a class is read off the features."""
    make: Any = tiny_graphs if graphs else tiny_data
    stream = tiny_task_free_stream(
        make(per_class=60),
        task_free={"schedule_factory": "tiny_task_free:blended", "schedule_hyperparameters": (("width", 100.0),), "evaluate_every": 20},
        training={"batch_size": 8, "epochs": 3, "lr": 0.02},
    )
    hyperparameters = {"offline_epochs": 60} if method == "joint" else {}
    row = catalogue_task_free_runner(stream, method, hyperparameters).run().matrix[-1]
    assert sum(row) / len(row) > 0.34, "twice what guessing among six classes gives"


def test_what_needs_tasks_is_refused_with_the_reason() -> None:
    """A method is either for streams without tasks, or says what it lacks in them."""
    for entry in CATALOGUE.entries("method"):
        spec: Any = entry.spec
        if entry.record.distribution == "cglsuite-methods":
            assert ("task-free" in spec.settings) != ("task-boundaries" in spec.needs), entry.name
