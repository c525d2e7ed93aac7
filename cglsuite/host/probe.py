"""The child process of ``plugins doctor``: loads the chosen plugins and logs each step and the side effects of each plugin.

Each line of the report file is one JSON object, written before the step it announces, so that a process that exits, crashes or
hangs leaves the name of the step. Run with its three arguments by :mod:`cglsuite.host.doctor`; its standard
output is a file that should stay empty, so that direct writes to it are detected.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from json import dumps  # plugins may replace json's functions functions
from pathlib import Path
from typing import Any

from cglsuite.base.errors import PluginError
from cglsuite.base.helpers import another_step
from cglsuite.base.traces import end_process, random_kept
from cglsuite.host.catalogue import Catalogue
from cglsuite.host.discovery import Candidate, find_candidates
from cglsuite.host.left import Forks, loaded_and_left
from cglsuite.host.loading import load_plugin
from cglsuite.host.plugin_records import Entry, PluginRecord
from cglsuite.specs import KINDS

__all__ = ["HEAVY", "main"]

HEAVY = ("torch", "torch_geometric")
"""Modules that listing must not import: they cost seconds."""


def main(report: str, plugins: str, deep: str) -> None:
    """Load plugins and report on them.

    Args:
        report: the file to write.
        plugins: JSON list of candidate keys (distribution, entry-point name, value).
        deep: ``"1"`` to import every factory as well.
    """
    chosen = {tuple(key) for key in json.loads(plugins)}
    place, forks = Path(report).resolve(), Forks()

    def write(**what: Any) -> None:
        if not forks.is_copy:
            with place.open("a", encoding="utf-8") as file:  # opened for each line: a plugin may close open files
                file.write(dumps(what) + "\n")

    before = set(sys.modules)
    records: list[PluginRecord] = []
    entries: list[Entry] = []
    left: list[tuple[tuple[str, ...], list[str]]] = []
    tried: list[tuple[str, ...]] = []
    for candidate in (c for c in find_candidates() if c.key in chosen):
        load = partial(load_plugin, candidate, partial(_announce, write, candidate))
        with random_kept(but=candidate.module.partition(".")[0]):  # what it imports may draw, itself it may not
            record, provided, changes, usable = loaded_and_left(load, forks)
        records.append(record)
        entries.extend(provided)
        left += [(candidate.key, changes)] if changes else []
        tried.append(candidate.key)
        if not usable:
            break
    heavy = [name for name in HEAVY if name in sys.modules and name not in before]
    catalogue = Catalogue(records, entries)
    write(
        records=[record.as_json() for record in records],
        tried=tried,
        left=left,
        collisions=[(collision.problem, collision.remedy) for collision in catalogue.collisions],
        heavy=heavy,
        factories=_examined_factories(catalogue, write) if deep == "1" else [],
    )
    end_process(0)


def _announce(write: Callable[..., None], candidate: Candidate, stage: str) -> None:
    another_step()
    write(stage=stage, plugin=candidate.key)


def _examined_factories(catalogue: Catalogue, write: Callable[..., None]) -> list[str]:
    """What is wrong with the factories."""
    messages = []
    for kind in KINDS:
        for entry in catalogue.entries(kind):
            another_step()
            write(stage=f"factory of {kind} {entry.name}")
            try:
                catalogue.resolve(entry)
            except PluginError as error:
                messages.append(str(error))
    return messages


if __name__ == "__main__":
    main(*sys.argv[1:])
