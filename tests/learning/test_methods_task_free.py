"""Every installed method for task-free streams: it learns, and what needs tasks is refused."""

from __future__ import annotations

from typing import Any

import pytest
from installed import installed
from tiny_streams import tiny_data, tiny_graphs
from tiny_task_free import catalogue_task_free_runner, tiny_task_free_stream

pytestmark = pytest.mark.plugins
CATALOGUE = installed()
METHODS: list[Any] = [e for e in CATALOGUE.entries("method") if "task-free" in e.spec.settings]  # type: ignore[attr-defined]
NAMES = [e.name for e in METHODS]


@pytest.mark.sampled(8)
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
