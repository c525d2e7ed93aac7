"""Shared parts of commands over cells: the store, the device, and overrides of a campaign."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cglsuite.base.errors import UsageError
from cglsuite.cli.options import DeviceWord, FolderPath, Seconds, with_tasks
from cglsuite.cli.session import Session

if TYPE_CHECKING:
    from cglsuite.campaigns.overrides import Overrides
    from cglsuite.cells.plan import PlannedCell
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue


__all__ = [
    "FAILED",
    "checkpoint_option",
    "device_option",
    "executor_option",
    "open_store",
    "overrides_of",
    "planned_cells",
    "store_option",
    "tell_derivations",
]

FAILED = 1
"""Exit status: a cell, a record or a report failed."""
_Command = TypeVar("_Command", bound=Callable[..., Any])


def store_option(command: _Command) -> _Command:
    text = "Folder of results.  [default: $CGLSUITE_STORE, else ./.cglsuite]"
    return click.option("--store", "store_path", type=FolderPath(), help=text)(command)


def device_option(command: _Command) -> _Command:
    text = "Where to train; auto uses a GPU if there is one.  [default: $CGLSUITE_DEVICE, else the campaign's, else auto]"
    return click.option("--device", type=DeviceWord(), help=text)(command)


def checkpoint_option(command: _Command) -> _Command:
    text = (
        "Seconds of finished work that an interruption of a cell may cost; 0 saves every task. No result depends on it.  "
        "[default: $CGLSUITE_CHECKPOINT_EVERY, else the campaign's, else 10]"
    )
    return click.option("--checkpoint-every", "checkpoint_every_s", type=Seconds(zero=True), metavar="SECONDS", help=text)(command)


def executor_option(command: _Command) -> _Command:
    text = "What runs the cells, as `cglsuite list executors` prints it; its options: --set run.NAME.KEY=VALUE.  [default: the campaign's]"
    return click.option("--executor", metavar="NAME", help=text)(command)


def open_store(path: Path | None, must_exist: bool = False) -> Store:
    from cglsuite.cells.storage.store import Store

    store = Store(path)
    if must_exist and not store.path.is_dir():
        raise UsageError(f"there is no store at {store.path}: name one with --store, or run something first")
    return store


def overrides_of(
    assignments: Sequence[str],
    device: str | None = None,
    workers: int | None = None,
    tasks: int | None = None,
    executor: str | None = None,
    checkpoint_every_s: float | None = None,
) -> Overrides:
    """The command line's overrides, on top of the environment's. Those below ``run.`` are options of the executor."""
    from cglsuite.campaigns.overrides import Overrides, parse_overrides

    given = parse_overrides(assignments, "--set")
    run = {key.removeprefix("run."): value for key, value in given.items() if key.startswith("run.") and key.count(".") > 1}
    cells = with_tasks({key: value for key, value in given.items() if key.removeprefix("run.") not in run}, tasks)
    given_here: dict[str, Any] = {"device": device, "workers": workers, "executor": executor, "checkpoint_every_s": checkpoint_every_s}
    return Overrides.of(Overrides(values=cells, run=run, **given_here))


def planned_cells(
    path: Path,
    session: Session,
    store: Store,
    assignments: Sequence[str] = (),
    device: str | None = None,
    executor: str | None = None,
) -> list[PlannedCell]:
    from cglsuite.campaigns.campaign import load_campaign
    from cglsuite.campaigns.planning import plan_campaign

    return plan_campaign(
        load_campaign(path),
        session.catalogue(),
        overrides_of(assignments, device, executor=executor),
        store=store,
    )


def tell_derivations(catalogue: Catalogue, scenarios: Iterable[str]) -> None:
    """One line on stderr for every scenario that no plugin names: which preset it follows, and what of that was left out."""
    from cglsuite.campaigns.executors.progress import say

    for name in dict.fromkeys(scenarios):
        derivation = catalogue.derivation(name)
        if derivation is not None:
            say(derivation.message)
