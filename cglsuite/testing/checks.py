"""Check any catalogue entry by its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cglsuite.base.errors import UsageError
from cglsuite.host import Catalogue, Entry
from cglsuite.testing.findings import Check, CheckReport, OnFinding, examined
from cglsuite.testing.kinds import backbones, commands, datasets, encoders, metrics, scenarios
from cglsuite.testing.kinds.executors import examine_executor
from cglsuite.testing.kinds.methods import examine_method
from cglsuite.testing.kinds.notebooks import examine_notebook
from cglsuite.testing.streams import tiny_catalogue

CHECKS: dict[str, Callable[[Catalogue, Entry], Iterator[Check]]] = {
    "backbone": backbones.checks,
    "command": commands.checks,
    "dataset": datasets.checks,
    "encoder": encoders.checks,
    "measure": metrics.measure_checks,
    "metric": metrics.checks,
    "pretraining": backbones.pretraining_checks,
    "scenario": scenarios.checks,
    "schedule": scenarios.schedule_checks,
}
"""For each kind, the function that yields the checks of an entry."""

EXAMINED: dict[str, Callable[..., CheckReport]] = {"executor": examine_executor, "method": examine_method, "notebook": examine_notebook}
"""For each of the other kinds, whose checks share a folder or a process, the function that runs all checks of an entry."""

OUTCOMES: dict[str, Callable[[Catalogue, Entry], Iterator[tuple[str, str]]]] = {
    "backbone": backbones.outcomes,
    "dataset": datasets.outcomes,
    "encoder": encoders.outcomes,
    "measure": metrics.measure_outcomes,
    "metric": metrics.outcomes,
    "pretraining": backbones.pretraining_outcomes,
    "scenario": scenarios.outcomes,
    "schedule": scenarios.schedule_outcomes,
}
"""For each kind, the function that yields an entry's results as (description, digest). They must be the same in every process."""


def examine(
    kind: str,
    name: str,
    catalogue: Catalogue | None = None,
    *,
    on_finding: OnFinding | None = None,
    only: Sequence[str] = (),
    **options: Any,
) -> CheckReport:
    """Run all checks of one entry and return the findings.

    Args:
        kind: a key of :data:`CHECKS` or :data:`EXAMINED`.
        on_finding: called with each finding immediately. only: names of the checks to run; empty for all.
        options: the options for this kind (methods: ``quick``, ``scenarios`` and ``seed``; executors: ``options``).

    Raises:
        UnknownNameError: the catalogue has no such name.
        UsageError: there are no checks for this kind.
    """
    if kind in EXAMINED:
        return EXAMINED[kind](name, catalogue, on_finding=on_finding, only=tuple(only), **options)
    if kind not in CHECKS:
        raise UsageError(f"unknown kind {kind!r}; expected one of {', '.join(sorted({*CHECKS, *EXAMINED}))}")
    whole = tiny_catalogue(catalogue)
    entry = whole.get(kind, name)
    return examined(entry, CHECKS[kind](whole, entry), on_finding, only)


def check_backbone(name: str, catalogue: Catalogue | None = None) -> None:
    """Check a backbone of the catalogue, for use in a test.

    Raises:
        CheckFailed: names every failed check and its fix. UnknownNameError: there is no such backbone.
    """
    examine("backbone", name, catalogue).raise_failures()


def check_command(name: str, catalogue: Catalogue | None = None) -> None:
    """Check the help and error messages of a command of the catalogue in separate processes, for use in a test. The command is not run.

    Raises:
        CheckFailed: names every failed check and its fix. UnknownNameError: there is no such command.
    """
    examine("command", name, catalogue).raise_failures()


def check_dataset(name: str, catalogue: Catalogue | None = None) -> None:
    """Check a dataset of the catalogue, for use in a test. Raw files are located as the loaders do.

    Raises:
        CheckFailed: names every failed check and its fix. UnknownNameError: there is no such dataset.
    """
    examine("dataset", name, catalogue).raise_failures()


def check_encoder(name: str, catalogue: Catalogue | None = None) -> None:
    """Check a text encoder of the catalogue, for use in a test. If its weights are missing, checks that encode are skipped.

    Raises:
        CheckFailed: names every failed check and its fix. UnknownNameError: there is no such encoder.
    """
    examine("encoder", name, catalogue).raise_failures()


def check_measure(name: str, catalogue: Catalogue | None = None) -> None:
    """Check a measure of the catalogue, for use in a test.

    Raises:
        CheckFailed: names every failed check and its fix. UnknownNameError: there is no such measure.
    """
    examine("measure", name, catalogue).raise_failures()


def check_metric(name: str, catalogue: Catalogue | None = None) -> None:
    """Check a metric of the catalogue, for use in a test.

    Raises:
        CheckFailed: names every failed check and its fix. UnknownNameError: there is no such metric.
    """
    examine("metric", name, catalogue).raise_failures()


def check_notebook(name: str, catalogue: Catalogue | None = None) -> None:
    """Check a notebook of the catalogue, for use in a test.

    Raises:
        CheckFailed: names every failed check and its fix. UnknownNameError: there is no such notebook.
    """
    examine("notebook", name, catalogue).raise_failures()


def check_pretraining(name: str, catalogue: Catalogue | None = None) -> None:
    """Check a pre-training scheme of the catalogue, for use in a test.

    Raises:
        CheckFailed: names every failed check and its fix. UnknownNameError: there is no such scheme.
    """
    examine("pretraining", name, catalogue).raise_failures()


def check_scenario(name: str, catalogue: Catalogue | None = None) -> None:
    """Check a scenario of the catalogue, for use in a test. Checks whose raw files are missing are skipped.

    Raises:
        CheckFailed: names every failed check and its fix. UnknownNameError: there is no such scenario.
    """
    examine("scenario", name, catalogue).raise_failures()


def check_schedule(name: str, catalogue: Catalogue | None = None) -> None:
    """Check a schedule of the catalogue, for use in a test.

    Raises:
        CheckFailed: names every failed check and its fix. UnknownNameError: there is no such schedule.
    """
    examine("schedule", name, catalogue).raise_failures()


def check_executor(name: str, catalogue: Catalogue | None = None, options: Mapping[str, Any] | None = None) -> None:
    """Check an executor of the catalogue, for use in a test. This takes about a minute, since cells run in workers and are interrupted.

    Args:
        options: values for the executor's options, as in ``[run.NAME]`` of a campaign.

    Raises:
        CheckFailed: names every failed check and its fix. UnknownNameError: there is no such executor.
    """
    examine("executor", name, catalogue, options=options).raise_failures()


def check_method(name: str, catalogue: Catalogue | None = None, *, quick: bool = False) -> None:
    """Check a method of the catalogue, for use in a test.

    Args:
        quick: run only one tiny stream per level and per setting instead of all combinations.

    Raises:
        CheckFailed: names every failed check and its fix. UnknownNameError: there is no such method.
    """
    examine("method", name, catalogue, quick=quick).raise_failures()
