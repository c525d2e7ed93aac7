"""The inputs of user code in keys: a cell whose files or variables have changed since its record was made gets a second key.

The first key is of design and code alone. What a cell of user code has read (:mod:`cglsuite.cells.code.witnesses`) is noted in the store,
in ``inputs/ab/FIRST/KEY.json``, before its record. Whoever runs the cell again compares: where something differs, the cell is planned
under the digest of its first key and of what is there now. So nothing is replaced, and flipping back finds the old record. Where a file
is absent, as on another machine, the record stands. Reading a store takes the record whose inputs are as they are now, and
otherwise the one that was made last. Digests of variables never leave the store; records name the variables.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cglsuite.base.errors import UsageError
from cglsuite.base.hashing import digest
from cglsuite.cells.code import witnesses
from cglsuite.cells.code.noted import Digests, Inputs, noted_keys, read_inputs, write_inputs
from cglsuite.cells.records.describe import foreign_code

if TYPE_CHECKING:
    from cglsuite.cells.engine import Engine
    from cglsuite.cells.plan import PlannedCell
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue

__all__ = ["Reading", "second_key", "with_inputs"]

logger = logging.getLogger(__name__)
_READ = "read"


def second_key(first: str, asked: Digests) -> str:
    """The key of a cell whose inputs are not those of its first key: of names without folders, and digests."""
    return digest([first, sorted([re.split("[/:]", name)[-1], content] for name, content in asked.items())])


def with_inputs(cells: Sequence[PlannedCell], store: Store, engine: Engine, catalogue: Catalogue, *, to_run: bool) -> list[PlannedCell]:
    """The cells under the keys of records whose inputs are as they are now.

    Args:
        to_run: where there is none, a cell gets a second key, and this is logged; otherwise it is read as it was run last.
    """
    declared_names = witnesses.declared()
    now: dict[str, str | None] = {}
    changed, absent = Counter[str](), Counter[str]()

    def asked(noted: Sequence[Inputs]) -> Digests:
        names = {*declared_names, *(name for one in noted for name in one.read)}
        now.update({name: witnesses.present(name) for name in names if name not in now})
        changes = {one.key: one.changes(now, declared_names) for one in noted}
        fitting = sorted((one for one in noted if not changes[one.key]), key=lambda one: len(one.absent(now)))
        if not fitting and to_run:
            changed.update(sorted(changes.values(), key=len)[0])
            return {name: now[name] for name in names}
        best = next((one for one in fitting or noted if store.cached(one.key) is not None), (fitting or noted)[0])
        absent.update(best.absent(now))
        return best.asked

    noted = {key: read_inputs(store.path, key) for key in noted_keys(store.path, (p.key for p in cells if p.ready))}
    for planned in cells if declared_names else ():  # of results that were made before anything was declared
        known = planned.cell is None or planned.key in noted or store.cached(planned.key) is None
        if not known and foreign_code(engine.sources(planned.cell, catalogue)):  # type: ignore[arg-type]
            noted[planned.key] = [Inputs(key=planned.key, asked={}, read={}, written_ns=0)]
    chosen = {key: asked(found) for key, found in noted.items() if found}
    requests = [dataclasses.replace(p.request, inputs=chosen[p.key]) for p in cells if chosen.get(p.key)]
    replanned = iter(engine.plan_all(requests, catalogue))
    for name, number in changed.items():
        what = f"environment variable {name[1:]}" if witnesses.variable_name(name) else name
        logger.warning("%s has changed since %s read it: trained again, beside the old results", what, _cells(number))
    for name, number in absent.items() if to_run else ():
        logger.info("%s is not here: the results of %s that read it stand", name, _cells(number))
    return [next(replanned) if chosen.get(p.key) else p for p in cells]


def _cells(number: int) -> str:
    return "a cell" if number == 1 else f"{number} cells"


# --- while a cell runs -----------------------------------------------------------------------------------------------------------------


class Reading:
    """What one cell reads besides code.

    Args:
        asked: what it was planned with; empty under its first key.
        first: its first key, or ``None`` where nothing is noted: its code is not the user's, or nobody watches this process.
        modules: the user's modules that its key holds. Another one of the plan that is imported for it is noted as a file; not one that is
            in the key of a cell which this process has run before.
    """

    _foreseen: ClassVar[set[str]] = set()

    def __init__(self, asked: Digests, first: str | None, modules: Iterable[str] = ()) -> None:
        self.asked, self.first = asked, first
        self._foreseen.update(modules)
        self._before: dict[str, str | None] = {}

    def check(self) -> None:
        """Check that what was read is what the cell was planned with.

        Raises:
            UsageError: a file or variable has changed since, or between two readings.
        """
        if self.first is None:
            return
        if unlike := _unlike(self.asked, self.read()):
            raise UsageError(f"{shown(unlike[0])} changed after the cells were planned: run the same command again")

    def read(self) -> dict[str, str | None]:
        """Everything that the cell depends on: what this process has read since its start, and what made the state it began with."""
        return {} if self.first is None else {**self._before, **witnesses.imported(self._foreseen), **witnesses.witnessed()}

    def packed(self, payload: dict[str, Any]) -> dict[str, Any]:
        """A checkpoint with what it depends on."""
        return payload | {_READ: read} if (read := self.read()) else payload

    def unpacked(self, payload: dict[str, Any]) -> dict[str, Any] | None:
        """The checkpoint, ``None`` if it was made with other inputs than there are now."""
        before = payload.pop(_READ, {})
        if self.first is None:
            return payload
        if _unlike(before, self.read()):
            return None
        self._before |= before
        return payload

    def written(self, store: Path, key: str) -> dict[str, Any]:
        """Note in the store what was read, before the record of ``key`` is there; the part of its provenance that says so.

        Returns:
            files with their digests, the names of environment variables, the files that user code has itself written, and the first key
            where the record has a second; without what is empty.
        """
        if self.first is None:
            return {}
        read = self.read()
        if read or self.asked:
            write_inputs(store, self.first, key, self.asked, read)
        files = {shown(name): content for name, content in sorted(read.items()) if witnesses.variable_name(name) is None}
        facts = {
            "files": files,
            "variables": sorted(filter(None, map(witnesses.variable_name, read))),
            "own_files": [shown(name) for name in witnesses.written()],
            "first_key": self.first if self.asked else None,
        }
        return {name: value for name, value in facts.items() if value}


def _unlike(then: Digests, read: Digests) -> list[str]:
    """The witnesses that this process has read, or would read now, with another content than then."""
    return [name for name, content in then.items() if (read[name] if name in read else witnesses.present(name)) != content]


def shown(name: str) -> str:
    """A witness as records name it."""
    home = str(Path.home())
    return f"~{name.removeprefix(home)}" if name.startswith(f"{home}/") else name
