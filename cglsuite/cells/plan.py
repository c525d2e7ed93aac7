"""Plans: requests by name, the cells they resolve to, and plan files that workers on any machine can read."""

# ruff: noqa: RUF009 - the defaults of an engine are functions

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import NotApplicable, UsageError
from cglsuite.base.hashing import canonical
from cglsuite.base.inputs import read_regular
from cglsuite.specs import Seeds

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue

__all__ = ["DEFAULT_ENGINE", "CellRequest", "Engine", "PlanFile", "PlannedCell", "PlannedState", "default_engine", "load_engine"]

_VERSION = 7
PlannedState = Literal["ready", "n/a", "waiting"]


@dataclass(frozen=True, kw_only=True)
class CellRequest:
    """One cell as requested on the command line or by a campaign: names, overrides of the preset by dotted key, seeds, device.

    ``backbone=None`` means the preset's. ``inputs``: see :class:`cglsuite.cells.CellSpec`. ``point``: those of the overrides that are the
    cell's place on its campaign's axes, for display. Workers receive requests and resolve them with their own catalogue.
    """

    scenario: str
    method: str
    backbone: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    seeds: Seeds = Seeds()
    threads: int = 1
    device: str = "cpu"
    inputs: Mapping[str, str | None] = field(default_factory=dict)
    point: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """One line for display."""
        backbone = f" × {self.backbone}" if self.backbone else ""
        place = "".join(f"{name.partition('.')[2] or name}={value}, " for name, value in self.point.items())
        seeds = f"order {self.seeds.order}, split {self.seeds.split}, init {self.seeds.init}"
        return f"{self.scenario} × {self.method}{backbone} ({place}{seeds})"

    def to_json(self) -> dict[str, Any]:
        """JSON types only."""
        return {name: value for name, value in asdict(self).items() if value or name not in ("inputs", "point")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CellRequest:
        """The inverse of :meth:`to_json`."""
        return cls(**{**data, "seeds": Seeds(**data["seeds"])})


@dataclass(frozen=True, kw_only=True)
class PlannedCell:
    """A request and the result of resolving it.

    ``ready``: ``cell`` and ``key`` are set. ``n/a``: the combination is impossible, ``reason`` says why. ``waiting``: a search that
    chooses its hyper-parameters has not finished.
    """

    request: CellRequest
    state: PlannedState
    cell: CellSpec | None = None
    key: str = ""
    reason: str = ""

    @property
    def ready(self) -> bool:
        """Whether this can be run."""
        return self.state == "ready"

    @property
    def backbone(self) -> str:
        """The name of the resolved backbone; as requested if the request was not resolved."""
        return self.cell.backbone if self.cell is not None else self.request.backbone or ""


@dataclass(frozen=True, kw_only=True)
class PlanFile:
    """A list of cells for workers: keys and requests, and the engine that resolves and runs them.

    ``sharing`` names the family of every cell that may share the states after its first tasks with other cells of the plan.
    ``foreign`` names the foreign distributions whose code a cell runs: cells with different ones must not share a process.
    ``torch`` is the version of the planning machine, ``timeout_s`` the limit of one cell, ``workers`` the processes of one machine (per
    GPU on CUDA): what a supervisor on another machine must know. ``watch``: observers by name, which that supervisor tells.
    ``plugins``, ``data``: files that were named where the plan was made, and whose code may run on that machine too. ``data_options``: what
    was said of the data files, by data set.
    ``code``: the user code of the cells, as :meth:`cglsuite.host.frozen.Bundle.to_json` gives it. ``declared``: files that it depends on
    by :func:`cglsuite.input_file`.
    ``checkpoint_every_s`` is what an interruption of a cell may cost; None = as the worker's environment says.
    """

    engine: str
    cells: Sequence[tuple[str, CellRequest]]
    sharing: Mapping[str, str] = field(default_factory=dict)
    foreign: Mapping[str, str] = field(default_factory=dict)
    code: Mapping[str, Sequence[str]] = field(default_factory=dict)
    declared: Sequence[str] = ()
    torch: str = ""
    timeout_s: float | None = None
    workers: int = 1
    watch: Sequence[str] = ()
    plugins: Sequence[str] = ()
    data: Sequence[str] = ()
    data_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    checkpoint_every_s: float | None = None

    @classmethod
    def of(
        cls,
        cells: Iterable[PlannedCell],
        engine: str,
        sharing: Mapping[str, str] | None = None,
        foreign: Mapping[str, str] | None = None,
        **run: Any,
    ) -> PlanFile:
        """The plan of all ``cells`` that are ready; ``run``: the fields from ``code`` on."""
        requests = [(p.key, p.request) for p in cells if p.ready]
        return cls(engine=engine, cells=requests, sharing=dict(sharing or {}), foreign=dict(foreign or {}), **run)

    def write(self, path: Path) -> None:
        """Write atomically. The file's modification time separates attempts of this plan from earlier ones."""
        cells = [{"key": key, "request": request.to_json()} for key, request in self.cells]
        tables = {"sharing": dict(self.sharing), "foreign": dict(self.foreign), "code": dict(self.code)}
        limits = {"timeout_s": self.timeout_s, "checkpoint_every_s": self.checkpoint_every_s}
        run: dict[str, Any] = {
            "torch": self.torch,
            **limits,
            "workers": self.workers,
            "watch": list(self.watch),
            "declared": list(self.declared),
        }
        run |= {"plugins": list(self.plugins), "data": list(self.data), "data_options": dict(self.data_options)}
        plan = {"plan": _VERSION, "engine": self.engine, "cells": cells, **tables, "run": run}
        write_atomic(path, json.dumps(plan, sort_keys=True).encode())

    @classmethod
    def read(cls, path: Path) -> PlanFile:
        """The plan in a file.

        Raises:
            UsageError: it cannot be read or is not a plan.
        """
        try:
            data = json.loads(read_regular(path))
            if data["plan"] != _VERSION:
                raise ValueError(f"plan version {data['plan']!r}; expected {_VERSION}")
            cells = [(c["key"], CellRequest.from_json(c["request"])) for c in data["cells"]]
            tables: dict[str, Any] = {name: dict(data[name]) for name in ("sharing", "foreign", "code")}
            return cls(engine=data["engine"], cells=cells, **tables, **data["run"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} is not a plan of cells: {type(error).__name__}: {error}") from error


# The functions that resolve, key and run cells, imported when first called.
# Planning, searching and executing go through an :class:`Engine`, which has a name (``"package.module:function"``) so that worker processes
# can find the same one.

DEFAULT_ENGINE = "cglsuite.cells.plan:default_engine"


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
