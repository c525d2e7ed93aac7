"""What a catalogue shows of itself in a notebook, and its kinds as read-only mappings whose names can be completed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, overload

from cglsuite.facts import COLUMNS
from cglsuite.host.records import Entry, PluginRecord
from cglsuite.markup import card, element, fold, grid, tidy
from cglsuite.specs import KINDS

if TYPE_CHECKING:
    from cglsuite.host.catalogue import Catalogue

__all__ = ["KindView", "KindViewOf", "catalogue_card"]

_MOST_NAMES = 8


class KindView(Mapping[str, Entry]):
    """One kind of a catalogue: name to entry, sorted by name. ``catalogue.methods["`` and the tabulator key complete names in IPython.

    ``view[name]`` raises what :meth:`cglsuite.Catalogue.get` raises.
    """

    def __init__(self, catalogue: Catalogue, kind: str) -> None:
        self._catalogue, self._kind = catalogue, kind

    def __getitem__(self, name: str) -> Entry:
        return self._catalogue.get(self._kind, name)

    def __contains__(self, name: object) -> bool:
        return name in self._catalogue.names(self._kind)

    def get(self, name: str, default: Any = None) -> Any:
        """The entry of that name, or ``default`` where there is none or several plugins provide it."""
        return self[name] if name in self else default  # noqa: SIM401 - this is that method

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalogue.names(self._kind))

    def __len__(self) -> int:
        return len(self._catalogue.names(self._kind))

    def __repr__(self) -> str:
        return f"<{len(self)} {self._kind}s: {_some(list(self)) or 'none'}>"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def _repr_html_(self) -> str:
        columns = COLUMNS[self._kind]
        header = ("name", *(title.lower() for title in columns), "provider", "summary")
        rows = ((e.name, *(column(e.spec) for column in columns.values()), e.provider, e.spec.summary) for e in self.values())
        return card(f"{len(self)} {self._kind}s", (), grid(header, rows))


class KindViewOf:
    """Gives a catalogue an attribute that is the view of a kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.__doc__ = f"The {kind}s by name."

    @overload
    def __get__(self, catalogue: None, owner: type) -> KindViewOf: ...

    @overload
    def __get__(self, catalogue: Catalogue, owner: type) -> KindView: ...

    def __get__(self, catalogue: Catalogue | None, owner: type) -> KindView | KindViewOf:
        return self if catalogue is None else KindView(catalogue, self.kind)


def catalogue_card(catalogue: Catalogue) -> str:
    """How many there are of each kind, what is wrong, and who provides them."""
    kinds = [(f"{kind}s", len(names), _some(names)) for kind in KINDS if (names := catalogue.names(kind))]
    faults = [f"{r.label} is quarantined: {r.error}. To fix it: {r.fix}" for r in catalogue.failed]
    faults += [collision.message for collision in catalogue.collisions]
    records = [(r.distribution, r.version, r.status, r.entry_point, _provided(r)) for r in catalogue.records]
    return card(
        f"Catalogue of {len(records)} plugins",
        (),
        grid(("kind", "number", "names"), kinds),
        element("ul", *(element("li", tidy(fault)) for fault in faults)) if faults else None,
        fold("plugins", grid(("distribution", "version", "status", "entry point", "provides"), records)),
    )


def _some(names: list[str]) -> str:
    left = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {left} more" if left > 0 else "")


def _provided(record: PluginRecord) -> str:
    return ", ".join(f"{len(names)} {kind}{'s' if len(names) > 1 else ''}" for kind, names in record.provides.items())
