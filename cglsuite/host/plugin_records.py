"""The host's data: one record per plugin, one entry per name that a plugin provides."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Protocol, overload
from urllib.parse import urlsplit
from urllib.request import url2pathname

from cglsuite.base.hashing import plain
from cglsuite.base.markup import displayed
from cglsuite.specs import Hyperparameter, PluginSpec
from cglsuite.specs.switch import own_and_level_fields

__all__ = ["FILE", "Entry", "KindView", "KindViewOf", "PluginRecord", "Status", "installation", "some_names"]

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


# The kinds of a catalogue as read-only mappings whose names can be completed.

_MOST_NAMES = 8


class _Catalogue(Protocol):
    def get(self, kind: str, name: str) -> Entry: ...

    def names(self, kind: str) -> list[str]: ...


class KindView(Mapping[str, Entry]):
    """One kind of a catalogue: name to entry, sorted by name. ``catalogue.methods["`` and the tabulator key complete names in IPython.

    ``view[name]`` raises what :meth:`cglsuite.Catalogue.get` raises.
    """

    def __init__(self, catalogue: _Catalogue, kind: str) -> None:
        self._catalogue, self.kind = catalogue, kind

    def __getitem__(self, name: str) -> Entry:
        return self._catalogue.get(self.kind, name)

    def __contains__(self, name: object) -> bool:
        return name in self._catalogue.names(self.kind)

    def get(self, name: str, default: Any = None) -> Any:
        """The entry of that name, or ``default`` if no plugin or several plugins provide it."""
        return self[name] if name in self else default  # noqa: SIM401 - this is the implementation of get

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalogue.names(self.kind))

    def __len__(self) -> int:
        return len(self._catalogue.names(self.kind))

    def __repr__(self) -> str:
        return f"<{len(self)} {self.kind}s: {some_names(list(self)) or 'none'}>"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def _repr_html_(self) -> str:
        return displayed("catalogue:kind_card", self)


class KindViewOf:
    """A catalogue's attribute for one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.__doc__ = f"The {kind}s by name."

    @overload
    def __get__(self, catalogue: None, owner: type) -> KindViewOf: ...

    @overload
    def __get__(self, catalogue: _Catalogue, owner: type) -> KindView: ...

    def __get__(self, catalogue: _Catalogue | None, owner: type) -> KindView | KindViewOf:
        return self if catalogue is None else KindView(catalogue, self.kind)


def some_names(names: list[str]) -> str:
    """The first names, and how many more there are."""
    left = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {left} more" if left > 0 else "")


# Where a distribution's code was imported from: its installed copy, the folder of an editable install, or another copy in front of it.


def installation(distribution: str, source: Path) -> str:
    """How the code of a distribution came to be at ``source``: ``"editable"``, ``"installed"``, or in front of which copy it lies."""
    copies = [_home(copy) for copy in importlib.metadata.distributions(name=distribution)]
    for word, home in sorted(copies):
        if source.resolve().is_relative_to(home):
            return word
    return f"not the {copies[0][0]} copy in {copies[0][1]}" if copies else "not installed"


def _home(copy: importlib.metadata.Distribution) -> tuple[str, Path]:
    facts = json.loads(copy.read_text("direct_url.json") or "{}")
    if facts.get("dir_info", {}).get("editable"):
        return "editable", Path(url2pathname(urlsplit(facts["url"]).path)).resolve()
    return "installed", Path(str(copy.locate_file(""))).resolve()
