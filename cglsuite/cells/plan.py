"""Plans: requests for cells by name, the cells that they resolve to, and plan files that workers on any machine can read."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import NotApplicable, UsageError
from cglsuite.base.hashing import canonical
from cglsuite.base.inputs import read_regular
from cglsuite.cells import keys
from cglsuite.cells.code.inputs import declared, present, variable_name
from cglsuite.cells.portable import NumericsWord
from cglsuite.cells.records.describe import foreign_code
from cglsuite.cells.spec import resolve_cell
from cglsuite.cells.storage.layout import Digests, Inputs, noted_keys, read_inputs
from cglsuite.specs import Seeds

if TYPE_CHECKING:
    from cglsuite.cells.observing import Observer, Observers
    from cglsuite.cells.spec import CellSpec
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue


logger = logging.getLogger(__name__)
_VERSION = 9
PlannedState = Literal["ready", "n/a", "waiting"]


@dataclass(frozen=True, kw_only=True)
class CellRequest:
    """A requested cell: names, overrides of the preset by dotted key, seeds, device.

    ``backbone=None`` selects the preset's backbone. ``inputs``: see :class:`cglsuite.cells.CellSpec`. ``point``: the overrides that
    identify the cell's position on its campaign's axes, for display. Workers receive requests and resolve them with their own catalogue.
    """

    scenario: str
    method: str
    backbone: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    seeds: Seeds = field(default_factory=Seeds)
    threads: int = 1
    device: str = "cpu"
    numerics: NumericsWord = "native"
    inputs: Mapping[str, str | None] = field(default_factory=dict)
    point: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """A one-line label for display."""
        backbone = f" × {self.backbone}" if self.backbone else ""
        place = "".join(f"{name.partition('.')[2] or name}={value}, " for name, value in self.point.items())
        seeds = f"order {self.seeds.order}, split {self.seeds.split}, init {self.seeds.init}"
        return f"{self.scenario} × {self.method}{backbone} ({place}{seeds})"

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON-serialisable values."""
        return {name: value for name, value in asdict(self).items() if value or name not in ("inputs", "point")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CellRequest:
        """Create the object from the output of :meth:`to_json`."""
        return cls(**{**data, "seeds": Seeds(**data["seeds"])})


@dataclass(frozen=True, kw_only=True)
class PlannedCell:
    """A request together with the cell that it resolves to, or the reason why it cannot be run.

    ``ready``: ``cell`` and ``key`` are set. ``n/a``: the combination is impossible, and ``reason`` explains why. ``waiting``: the search
    that chooses its hyperparameters has not finished.
    """

    request: CellRequest
    state: PlannedState
    cell: CellSpec | None = None
    key: str = ""
    reason: str = ""

    @property
    def ready(self) -> bool:
        """Whether this cell can be run."""
        return self.state == "ready"

    @property
    def backbone(self) -> str:
        """The name of the resolved backbone, or of the requested backbone if the request was not resolved."""
        return self.cell.backbone if self.cell is not None else self.request.backbone or ""


@dataclass(frozen=True, kw_only=True)
class CellOptions:
    """Options for running a cell. None of them affects the result.

    Args:
        progress: called with the number of tasks learnt and the total number of tasks.
        observers: called with the events of the run, if the cell is run.
        checkpoint_every_s: how much finished work an interruption may cost, in seconds; ``None``: the value of
            ``CGLSUITE_CHECKPOINT_EVERY``, or else :data:`cglsuite.cells.run.CHECKPOINT_EVERY_S`.
        shared_tasks: length of the task prefix shared with an unfinished cell. The states after these tasks are saved for that cell, and
            no two runners train one of these tasks at the same time; all other states are removed with the cell. If it is not set, only
        the latest state is saved.
    """

    progress: Callable[[int, int], None] | None = None
    observers: Observers | Sequence[Observer] = ()
    checkpoint_every_s: float | None = None
    shared_tasks: Callable[[], int] | None = None


DEFAULT_OPTIONS = CellOptions()


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Time limits of one cell, in seconds.

    Args:
        timeout_s: maximum run time; ``None`` = no limit.
        checkpoint_every_s: how much finished work an interruption may cost; ``None`` = the value in the worker's environment.
    """

    timeout_s: float | None = None
    checkpoint_every_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class PlanFile:
    """A list of cells for workers, with the keys, the requests and everything else that is needed to run them.

    ``sharing`` names the family of every cell that may share the states after its first tasks with other cells of the plan.
    ``foreign`` names the third-party distributions that a cell runs code from. Cells with different ones must not share a process.
    A supervisor on another machine also needs ``torch``, the version on the planning machine; ``limits``, the limits of one cell;
    ``workers``, the number of processes on one machine (per GPU on CUDA); and ``watch``, the names of its observers.
    ``plugins``, ``data``: files named by the user on the planning machine, whose code may also run on that machine. ``data_options``: the
    options of the data files, by data set. ``code``: the user code of the cells in the form of
    :meth:`cglsuite.host.frozen.Bundle.to_json`. ``declared``: files on which it depends, as declared by :func:`cglsuite.input_file`.
    """

    cells: Sequence[tuple[str, CellRequest]]
    sharing: Mapping[str, str] = field(default_factory=dict)
    foreign: Mapping[str, str] = field(default_factory=dict)
    code: Mapping[str, Sequence[str]] = field(default_factory=dict)
    declared: Sequence[str] = ()
    torch: str = ""
    limits: Limits = Limits()
    workers: int = 1
    watch: Sequence[str] = ()
    plugins: Sequence[str] = ()
    data: Sequence[str] = ()
    data_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        cells: Iterable[PlannedCell],
        sharing: Mapping[str, str] | None = None,
        foreign: Mapping[str, str] | None = None,
        **run: Any,
    ) -> PlanFile:
        """Return the plan of the ready cells among ``cells``; ``run`` contains the fields from ``code`` on."""
        requests = [(p.key, p.request) for p in cells if p.ready]
        return cls(cells=requests, sharing=dict(sharing or {}), foreign=dict(foreign or {}), **run)

    def write(self, path: Path, store: Path | None = None) -> None:
        """Write the plan to ``path`` atomically, with the mode and group of ``store``.

        The file's modification time separates attempts of this plan from earlier ones.
        """
        cells = [{"key": key, "request": request.to_json()} for key, request in self.cells]
        tables = {"sharing": dict(self.sharing), "foreign": dict(self.foreign), "code": dict(self.code)}
        run: dict[str, Any] = {
            "torch": self.torch,
            "limits": dataclasses.asdict(self.limits),
            "workers": self.workers,
            "watch": list(self.watch),
            "declared": list(self.declared),
        }
        run |= {"plugins": list(self.plugins), "data": list(self.data), "data_options": dict(self.data_options)}
        plan = {"plan": _VERSION, "cells": cells, **tables, "run": run}
        write_atomic(path, json.dumps(plan, sort_keys=True).encode(), top=store)

    @classmethod
    def read(cls, path: Path) -> PlanFile:
        """Read a plan from a file.

        Raises:
            UsageError: the file cannot be read or is not a plan.
        """
        try:
            data = json.loads(read_regular(path))
            if data["plan"] != _VERSION:
                raise ValueError(f"plan version {data['plan']!r}; expected {_VERSION}")
            cells = [(c["key"], CellRequest.from_json(c["request"])) for c in data["cells"]]
            tables: dict[str, Any] = {name: dict(data[name]) for name in ("sharing", "foreign", "code")}
            return cls(cells=cells, **tables, **data["run"] | {"limits": Limits(**data["run"]["limits"])})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} is not a plan of cells: {type(error).__name__}: {error}") from error


def plan_cell(request: CellRequest, catalogue: Catalogue) -> PlannedCell:
    """Resolve ``request`` to a cell with its key, or mark it as N/A with a reason.

    Raises:
        UnknownNameError, SpecError: the request itself is wrong.
    """
    try:
        cell = resolve_cell(
            catalogue,
            scenario=request.scenario,
            method=request.method,
            backbone=request.backbone,
            overrides=request.overrides,
            seeds=request.seeds,
            threads=request.threads,
            device=request.device,
            numerics=request.numerics,
        )
    except NotApplicable as error:
        return PlannedCell(request=request, state="n/a", reason=str(error))
    if request.inputs:
        cell = dataclasses.replace(cell, inputs=request.inputs)
    return PlannedCell(request=request, state="ready", cell=cell, key=keys.cell_key(cell, catalogue))


def plan_cells(requests: Iterable[CellRequest], catalogue: Catalogue) -> list[PlannedCell]:
    """Apply :func:`plan_cell` to every request. Requests that differ only in their seeds are resolved once.

    Raises:
        UnknownNameError, SpecError: a request itself is wrong.
    """
    first: dict[str, PlannedCell] = {}
    keyed: dict[str, Callable[[Seeds], str]] = {}
    texts: dict[tuple[Any, ...], str] = {}
    plans = []
    for request in (requests := list(requests)):
        # The requests of a group share one mapping of overrides, whose text is built once; each may have different inputs.
        same = (
            request.scenario,
            request.method,
            request.backbone,
            id(request.overrides),
            request.threads,
            request.device,
            request.numerics,
            id(request.inputs) if request.inputs else 0,
        )
        if (name := texts.get(same, "")) == "":
            name = texts[same] = canonical(dataclasses.replace(request, seeds=Seeds()))
        if name not in first:
            planned = first[name] = plan_cell(request, catalogue)
        elif (cell := first[name].cell) is None:
            planned = dataclasses.replace(first[name], request=request)
        else:
            if name not in keyed:
                keyed[name] = keys.seeded_keys(cell, catalogue)
            cell = dataclasses.replace(cell, seeds=request.seeds)
            planned = PlannedCell(request=request, state="ready", cell=cell, key=keyed[name](request.seeds))
        plans.append(planned)
    return plans


def with_inputs(cells: Sequence[PlannedCell], store: Store, catalogue: Catalogue, *, to_run: bool) -> list[PlannedCell]:
    """Return the cells under the keys that match the current content of their inputs.

    Args:
        to_run: if no key matches, plan the cell under a second key; otherwise read its latest run. Both are logged.
    """
    declared_names = declared()
    now: dict[str, str | None] = {}
    changed, absent = Counter[str](), Counter[str]()

    def digests_for(noted: Sequence[Inputs]) -> Digests:
        names = {*declared_names, *(name for inputs in noted for name in inputs.read)}
        now.update({name: present(name) for name in names if name not in now})
        changes = {inputs.key: inputs.changes(now, declared_names) for inputs in noted}
        fitting = sorted((inputs for inputs in noted if not changes[inputs.key]), key=lambda inputs: len(inputs.absent(now)))
        if not fitting:
            changed.update(sorted(changes.values(), key=len)[0])
            if to_run:
                return {name: now[name] for name in names}
        best = next((inputs for inputs in fitting or noted if store.cached(inputs.key) is not None), (fitting or noted)[0])
        absent.update(best.absent(now))
        return best.asked

    noted: dict[str, list[Inputs]] = {}
    for place in (store.path, *store.read):
        for key in noted_keys(place, (p.key for p in cells if p.ready)):
            noted.setdefault(key, []).extend(read_inputs(place, key))
    for planned in cells if declared_names else ():  # for results computed before anything was declared
        known = planned.cell is None or planned.key in noted or store.cached(planned.key) is None
        if not known and foreign_code(keys.sources(planned.cell, catalogue)):  # type: ignore[arg-type]
            noted[planned.key] = [Inputs(key=planned.key, asked={}, read={}, written_ns=0)]
    selected = {key: digests_for(entries) for key, entries in noted.items() if entries}
    requests = [dataclasses.replace(p.request, inputs=selected[p.key]) for p in cells if selected.get(p.key)]
    replanned = iter(plan_cells(requests, catalogue))
    follows = "trained again; old results are kept" if to_run else "the results predate the change; run the same command again"
    for name, number in changed.items():
        what = f"environment variable {name[1:]}" if variable_name(name) else name
        logger.warning("%s has changed since %s read it: %s", what, _cells(number), follows)
    for name, number in absent.items() if to_run else ():
        logger.info("%s is missing here: the results of %s that read it remain valid", name, _cells(number))
    return [next(replanned) if selected.get(p.key) else p for p in cells]


def _cells(number: int) -> str:
    return "a cell" if number == 1 else f"{number:,} cells"
