"""The host's data: one record per plugin, one entry per name that a plugin provides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from cglsuite.base.hashing import plain
from cglsuite.base.markup import displayed
from cglsuite.host.installed import installation
from cglsuite.specs import Hyperparameter, PluginSpec
from cglsuite.specs.switch import own_and_level_fields

__all__ = ["FILE", "Entry", "PluginRecord", "Status"]

FILE = "file"
"""The entry point of what comes from a file that the user named, and from no installed distribution."""

Status = Literal["ok", "failed", "blocked"]


@dataclass(frozen=True, kw_only=True)
class PluginRecord:
    """One plugin (one entry point of one distribution): its identity, its state, and how to fix a fault.

    ``error`` is one line that says what is wrong (or why it is blocked), ``fix`` what to do, ``details`` the traceback if there is one.
    ``source`` is the plugin's outermost package folder, or its file where it is a single module. ``provides`` maps a kind to names.
    """

    distribution: str
    version: str
    entry_point: str
    module: str
    status: Status
    hooks: tuple[str, ...] = ()
    error: str | None = None
    fix: str | None = None
    details: str | None = None
    source: Path | None = None
    provides: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    @property
    def label(self) -> str:
        """``"distribution version"``, as shown in messages."""
        return f"{self.distribution} {self.version}"

    @property
    def from_file(self) -> bool:
        """Whether this is a file that the user named (``--plugin``, ``--data``): its version is the hash of its content."""
        return self.entry_point == FILE

    @property
    def installation(self) -> str:
        """``"editable"``, ``"installed"``, ``"plugin file"``, or that the imported code is another copy; empty without a file."""
        if self.from_file or self.source is None:
            return "plugin file" if self.from_file else ""
        return installation(self.distribution, self.source)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON types, one key per field."""
        return {f.name: _json(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> PluginRecord:
        """The inverse of :meth:`as_json`."""
        source, provides = given["source"], given["provides"]
        return cls(
            **{
                **given,
                "hooks": tuple(given["hooks"]),
                "source": None if source is None else Path(source),
                "provides": {kind: tuple(names) for kind, names in provides.items()},
            }
        )


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One name in the catalogue: its kind, its spec, and the plugin that provides it."""

    kind: str
    name: str
    spec: PluginSpec
    record: PluginRecord

    @property
    def provider(self) -> str:
        """``"distribution version"`` of the plugin."""
        return self.record.label

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} of {self.provider}>"

    def _repr_html_(self) -> str:
        return displayed("catalogue:entry_card", self)

    def describe(self) -> dict[str, Any]:
        """Plain JSON types: name, kind, provider, version, summary, then every other field of the spec."""
        head = {"name": self.name, "kind": self.kind, "provider": self.record.distribution, "version": self.record.version}
        spec = {f.name: _json(value) for f, value in own_and_level_fields(self.spec)}
        return {**head, "summary": spec.pop("summary"), **{k: v for k, v in spec.items() if k not in head}}


def _json(value: Any) -> Any:
    if isinstance(value, Hyperparameter):
        shown = {f.name: plain(getattr(value, f.name)) for f in fields(value) if f.name != "kind"}
        return {**shown, "type": value.type.__name__}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        return [_json(v) for v in value]
    return plain(value)
