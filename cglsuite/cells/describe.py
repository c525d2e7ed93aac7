"""The parts of a record that say what was run and by whose code; the same for a result and for a failure. Imports no torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cglsuite.hashing import plain
from cglsuite.specs import switches

if TYPE_CHECKING:
    from cglsuite.cells.spec import CellSpec
    from cglsuite.specs import OnlineSpec

__all__ = ["describe", "providers"]


def describe(cell: CellSpec) -> dict[str, Any]:
    """A record's ``cell`` (names, seeds, every resolved setting) and ``scenario`` (every switch of the protocol)."""
    return {
        "cell": {
            "scenario": cell.scenario.name,
            "preset": cell.preset,
            "method": cell.method,
            "backbone": cell.backbone,
            "seeds": dataclasses.asdict(cell.seeds),
            "settings": plain(cell.settings),
            "threads": cell.threads,
            "device": cell.device,
            "dtype": cell.dtype,
        },
        "scenario": plain({**switches(cell.scenario), "training": switches(cell.scenario.training), **_stream(cell.scenario.online)}),
    }


def _stream(online: OnlineSpec | None) -> dict[str, Any]:
    """What a record says of how a task-free stream arrives; nothing for a stream of tasks."""
    return {} if online is None else {"stream": {**switches(online), "schedule_settings": dict(online.schedule_settings)}}


def providers(used: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """A record's ``plugins`` and ``core`` from :func:`cglsuite.cells.spec.sources`."""
    return {"plugins": [{**source, "role": role} for role, source in used.items() if role != "core"], "core": used["core"]}
