"""Check any catalogue entry by its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from cglsuite.base.errors import UsageError
from cglsuite.host import Catalogue, Entry, load_catalogue
from cglsuite.testing.findings import CheckReport
from cglsuite.testing.kinds import backbones, datasets, metrics, scenarios
from cglsuite.testing.kinds.backbones import examine_backbone, examine_pretraining
from cglsuite.testing.kinds.commands import examine_command
from cglsuite.testing.kinds.datasets import examine_dataset
from cglsuite.testing.kinds.executors import examine_executor
from cglsuite.testing.kinds.methods import examine_method
from cglsuite.testing.kinds.metrics import examine_measure, examine_metric
from cglsuite.testing.kinds.notebooks import examine_notebook
from cglsuite.testing.kinds.scenarios import examine_scenario, examine_schedule

CHECKED: dict[str, Callable[..., CheckReport]] = {
    "backbone": examine_backbone,
    "command": examine_command,
    "dataset": examine_dataset,
    "executor": examine_executor,
    "measure": examine_measure,
    "method": examine_method,
    "metric": examine_metric,
    "notebook": examine_notebook,
    "pretraining": examine_pretraining,
    "scenario": examine_scenario,
    "schedule": examine_schedule,
}
"""The function that examines an entry, by kind."""

OUTCOMES: dict[str, Callable[[Catalogue, Entry], Iterator[tuple[str, str]]]] = {
    "backbone": backbones.outcomes,
    "dataset": datasets.outcomes,
    "measure": metrics.measure_outcomes,
    "metric": metrics.outcomes,
    "pretraining": backbones.pretraining_outcomes,
    "scenario": scenarios.outcomes,
    "schedule": scenarios.schedule_outcomes,
}
"""By kind, the function that yields an entry's results as (words, digest), which must be the same in every process."""


def examine(kind: str, name: str, catalogue: Catalogue | None = None, **options: Any) -> CheckReport:
    """The findings of all checks of one entry.

    Args:
        kind: a key of :data:`CHECKED`.
        options: ``on_finding``, ``only``, and those of the kind (methods: ``quick``, ``scenarios`` and ``seed``; executors: ``options``).

    Raises:
        UnknownNameError: there is no such name.
        UsageError: there are no checks for that kind.
    """
    if kind not in CHECKED:
        raise UsageError(f"kind {kind!r}: expected one of {', '.join(CHECKED)}")
    return CHECKED[kind](name, catalogue or load_catalogue(), **options)
