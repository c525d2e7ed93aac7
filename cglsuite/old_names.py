"""Names that earlier versions wrote or took: one table, by which files, command lines and notebooks of then are still read.

New files hold new names only. An entry says where the old name stands (:data:`Place`), and the new one. :func:`current` translates a single
name, :func:`current_keys` the keys of a decoded file, :func:`current_overrides` the keys of switches and hyper-parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["OLD_NAMES", "OldName", "Place", "current", "current_keys", "current_overrides"]

Place = Literal["override", "campaign", "request", "search", "record", "notebook", "parameter"]
"""Where a name stands: the dotted key of a switch or hyper-parameter; a key of a campaign file, of a request in a plan file, of a search's
outcome or of a record (dotted path; ``[]`` for every item of a list); a notebook; a notebook's parameter (``notebook.parameter``)."""


@dataclass(frozen=True, kw_only=True)
class OldName:
    """One name that changed. Of a path only the last part does; ``new`` is that part, otherwise the whole name."""

    place: Place
    old: str
    new: str


def _old(place: Place, **names: str) -> tuple[OldName, ...]:
    return tuple(OldName(place=place, old=old, new=new) for old, new in names.items())


OLD_NAMES: tuple[OldName, ...] = (
    *_old("override", **{"scenario.accuracy": "scenario.performance", "accuracy": "performance"}),
    *_old("campaign", **{"settings": "set", "grid.settings": "axes", "override[].settings": "set"}),
    *_old("request", settings="overrides"),
    *_old("search", **{"settings": "overrides", "candidates[].settings": "overrides"}),
    *_old("record", **{"cell.settings": "configuration", "scenario.accuracy": "performance"}),
    *_old("record", **{"scenario.dataset_settings": "dataset_hyperparameters", "scenario.backbone_settings": "backbone_hyperparameters"}),
    *_old("record", **{"scenario.stream.schedule_settings": "schedule_hyperparameters"}),
    *_old("notebook", stream_dynamics="task_free_dynamics", architecture_sensitivity="sensitivity"),
    *_old("parameter", **{"explore.settings": "explore.overrides", "node_analysis.settings": "node_analysis.overrides"}),
)
"""All of them."""

_BY_PLACE: dict[str, dict[str, str]] = {}
for _entry in OLD_NAMES:
    _BY_PLACE.setdefault(_entry.place, {})[_entry.old] = _entry.new


def current(place: Place, name: str) -> str:
    """Today's name of what was called ``name`` in ``place``; ``name`` itself if it never changed."""
    return _BY_PLACE[place].get(name, name)


def current_keys(place: Place, data: Mapping[str, Any]) -> dict[str, Any]:
    """``data`` (a decoded file) with today's keys; it is copied where it changes. Tables of another type than expected stay as they are.

    Raises:
        ValueError: a table has both the old and the new key.
    """
    renamed: Any = dict(data)
    for old, new in _BY_PLACE[place].items():
        renamed = _with_key(renamed, old.split("."), new)
    return dict(renamed)


def current_overrides(values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` by today's keys of switches and hyper-parameters.

    Raises:
        ValueError: a value is given under its old and its new key.
    """
    renamed: Any = values
    for old, new in _BY_PLACE["override"].items():
        renamed = _with_key(renamed, [old], new)
    return dict(renamed)


def _with_key(table: Any, path: list[str], new: str) -> Any:
    """``table`` with the key at the end of ``path`` called ``new``."""
    name, rest = path[0].removesuffix("[]"), path[1:]
    if not isinstance(table, Mapping) or name not in table:
        return table
    if not rest:
        if new in table:
            raise ValueError(f"{name!r} is the old name of {new!r}, and both are given: keep {new!r}")
        return {new if key == name else key: value for key, value in table.items()}
    inner = table[name]
    if not path[0].endswith("[]"):
        return {**table, name: _with_key(inner, rest, new)}
    return {**table, name: [_with_key(item, rest, new) for item in inner]} if isinstance(inner, list) else table
