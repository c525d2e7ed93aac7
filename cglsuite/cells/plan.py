"""Plans: requests by name, the cells they resolve to, and plan files that workers on any machine can read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import UsageError
from cglsuite.specs import Seeds

if TYPE_CHECKING:
    from cglsuite.cells.spec import CellSpec

__all__ = ["CellRequest", "PlanFile", "PlannedCell", "PlannedState"]

_VERSION = 6
PlannedState = Literal["ready", "n/a", "waiting"]


@dataclass(frozen=True, kw_only=True)
class CellRequest:
    """One cell as requested on the command line or by a campaign: names, overrides of the preset by dotted key, seeds, device.

    ``backbone=None`` means the preset's. ``inputs``: see :class:`cglsuite.cells.CellSpec`. Workers receive requests and resolve them with
    their own catalogue.
    """

    scenario: str
    method: str
    backbone: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    seeds: Seeds = Seeds()  # noqa: RUF009 - frozen
    threads: int = 1
    device: str = "cpu"
    inputs: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """One line for display."""
        backbone = f" × {self.backbone}" if self.backbone else ""
        return f"{self.scenario} × {self.method}{backbone} (order {self.seeds.order}, split {self.seeds.split}, init {self.seeds.init})"

    def to_json(self) -> dict[str, Any]:
        """JSON types only."""
        return {name: value for name, value in asdict(self).items() if value or name != "inputs"}

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
        run = {"torch": self.torch, **limits, "workers": self.workers, "watch": list(self.watch), "declared": list(self.declared)}
        plan = {"plan": _VERSION, "engine": self.engine, "cells": cells, **tables, "run": run}
        write_atomic(path, json.dumps(plan, sort_keys=True).encode())

    @classmethod
    def read(cls, path: Path) -> PlanFile:
        """The plan in a file.

        Raises:
            UsageError: it cannot be read or is not a plan.
        """
        try:
            data = json.loads(path.read_bytes())
            if data["plan"] != _VERSION:
                raise ValueError(f"plan version {data['plan']!r}; expected {_VERSION}")
            cells = [(c["key"], CellRequest.from_json(c["request"])) for c in data["cells"]]
            tables: dict[str, Any] = {name: dict(data[name]) for name in ("sharing", "foreign", "code")}
            return cls(engine=data["engine"], cells=cells, **tables, **data["run"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} is not a plan of cells: {type(error).__name__}: {error}") from error
