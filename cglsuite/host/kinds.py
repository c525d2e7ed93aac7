"""The kinds of a catalogue as read-only mappings whose names can be completed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, overload

from cglsuite.base.markup import displayed
from cglsuite.host.plugin_records import Entry

__all__ = ["KindView", "KindViewOf", "some_names"]

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
