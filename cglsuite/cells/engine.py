"""The functions that resolve, key and run cells, imported when first called.

Planning, searching and executing go through an :class:`Engine`, which has a name (``"package.module:function"``) so that worker processes
can find the same one.
"""

# ruff: noqa: RUF009 - the defaults are functions

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from cglsuite.base.errors import NotApplicable, UsageError
from cglsuite.base.hashing import canonical
from cglsuite.cells.plan import CellRequest, PlannedCell
from cglsuite.specs import Seeds

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue

__all__ = ["DEFAULT_ENGINE", "Engine", "default_engine", "load_engine"]

DEFAULT_ENGINE = "cglsuite.cells.engine:default_engine"


def _late(reference: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return resolve_name(reference)(*args, **kwargs)

    return call


_CELL_KEY = _late("cglsuite.cells.keys:cell_key")


@dataclass(frozen=True, kw_only=True)
class Engine:
    """How cells are resolved, keyed and run: the suite's own functions (:mod:`cglsuite.cells.spec` and :mod:`cglsuite.cells.run`), unless
    others are given.

    ``run_cell`` also stores the record that it returns. ``foreseen``: a name for every task of a cell in order of arrival, or ``None``
    if that is unknown before the run.
    """

    reference: str = DEFAULT_ENGINE
    load_catalogue: Callable[[], Catalogue] = _late("cglsuite.host:load_catalogue")
    resolve_cell: Callable[..., CellSpec] = _late("cglsuite.cells.spec:resolve_cell")
    cell_key: Callable[[CellSpec, Catalogue], str] = _CELL_KEY
    design_key: Callable[[CellSpec], str] = _late("cglsuite.cells.keys:design_key")
    prefix_keys: Callable[[CellSpec, Catalogue], Sequence[str]] = _late("cglsuite.cells.keys:prefix_keys")
    foreseen: Callable[[CellSpec], Sequence[str] | None] = _late("cglsuite.cells.sharing.tasks:foreseen_tasks")
    sources: Callable[[CellSpec, Catalogue], Mapping[str, Mapping[str, str]]] = _late("cglsuite.cells.keys:sources")
    planned_code: Callable[[Iterable[CellSpec], Catalogue], Mapping[str, tuple[Path, bytes]]] = _late("cglsuite.cells.keys:planned_code")
    run_cell: Callable[..., Record] = _late("cglsuite.cells.run:run_cell")

    def plan(self, request: CellRequest, catalogue: Catalogue) -> PlannedCell:
        """``request`` resolved and keyed, or N/A with its reason.

        Raises:
            UnknownNameError, SpecError: the request itself is wrong.
        """
        try:
            cell = self.resolve_cell(
                catalogue,
                scenario=request.scenario,
                method=request.method,
                backbone=request.backbone,
                overrides=request.overrides,
                seeds=request.seeds,
                threads=request.threads,
                device=request.device,
            )
        except NotApplicable as error:
            return PlannedCell(request=request, state="n/a", reason=str(error))
        if request.inputs:
            cell = dataclasses.replace(cell, inputs=request.inputs)
        return PlannedCell(request=request, state="ready", cell=cell, key=self.cell_key(cell, catalogue))

    def plan_all(self, requests: Iterable[CellRequest], catalogue: Catalogue) -> list[PlannedCell]:
        """:meth:`plan` for each of ``requests``; requests that differ only in their seeds are resolved once.

        Raises:
            UnknownNameError, SpecError: a request itself is wrong.
        """
        requests = list(requests)
        first: dict[str, PlannedCell] = {}
        keyed: dict[str, Callable[[Seeds], str]] = {}
        texts: dict[tuple[Any, ...], str] = {}
        plans = []
        for request in requests:
            # The requests of a group share one mapping of overrides, whose text is made once; the inputs of each may be its own.
            same = (
                request.scenario,
                request.method,
                request.backbone,
                id(request.overrides),
                request.threads,
                request.device,
                id(request.inputs) if request.inputs else 0,
            )
            if (name := texts.get(same, "")) == "":
                name = texts[same] = canonical(dataclasses.replace(request, seeds=Seeds()))
            if name not in first:
                planned = first[name] = self.plan(request, catalogue)
            elif (cell := first[name].cell) is None:
                planned = dataclasses.replace(first[name], request=request)
            else:
                if name not in keyed:
                    keyed[name] = self.keys_of(cell, catalogue)
                cell = dataclasses.replace(cell, seeds=request.seeds)
                planned = PlannedCell(request=request, state="ready", cell=cell, key=keyed[name](request.seeds))
            plans.append(planned)
        return plans

    def keys_of(self, cell: CellSpec, catalogue: Catalogue) -> Callable[[Seeds], str]:
        """The keys of ``cell`` by seeds."""
        if self.cell_key is _CELL_KEY:
            seeded: Callable[[Seeds], str] = resolve_name("cglsuite.cells.keys:seeded_keys")(cell, catalogue)
            return seeded
        return lambda seeds: self.cell_key(dataclasses.replace(cell, seeds=seeds), catalogue)


def default_engine() -> Engine:
    """The suite's own."""
    return Engine()


def load_engine(reference: str = DEFAULT_ENGINE) -> Engine:
    """The engine that ``"package.module:function"`` returns.

    Raises:
        UsageError: there is none.
    """
    try:
        engine = resolve_name(reference)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise UsageError(f"no engine {reference!r}: {error}") from error
    if not isinstance(engine, Engine):
        raise UsageError(f"{reference!r} returns {type(engine).__name__}, not an Engine")
    return engine
