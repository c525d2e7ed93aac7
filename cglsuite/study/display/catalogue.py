"""What catalogues, their kinds and their entries show of themselves."""

from __future__ import annotations

from cglsuite.base.markup import card, element, fold, grid, several, tidy
from cglsuite.host import Catalogue, Entry, PluginRecord
from cglsuite.host.plugin_records import KindView, some_names
from cglsuite.specs import KINDS
from cglsuite.study.display.facts import COLUMNS, spec_card

__all__ = ["catalogue_card", "entry_card", "kind_card", "provided"]


def entry_card(entry: Entry) -> str:
    """A spec and its provider."""
    return spec_card(entry.spec, [("provider", entry.provider)])


def kind_card(view: KindView) -> str:
    """The entries of a kind, a row each."""
    columns = COLUMNS[view.kind]
    header = ("name", *(title.lower() for title in columns), "provider", "summary")
    rows = ((e.name, *(column(e.spec) for column in columns.values()), e.provider, e.spec.summary) for e in view.values())
    return card(f"{len(view)} {view.kind}s", (), grid(header, rows))


def catalogue_card(catalogue: Catalogue) -> str:
    """How many there are of each kind, what is wrong, and who provides them."""
    kinds = [(f"{kind}s", len(names), some_names(names)) for kind in KINDS if (names := catalogue.names(kind))]
    faults = [f"{r.label} is quarantined: {r.error}. To fix it: {r.fix}" for r in catalogue.failed]
    faults += [collision.message for collision in catalogue.collisions]
    records = [(r.distribution, r.version, r.status, r.entry_point, provided(r)) for r in catalogue.records]
    return card(
        f"Catalogue of {len(records)} plugins",
        (),
        grid(("kind", "number", "names"), kinds),
        element("ul", *(element("li", tidy(fault)) for fault in faults)) if faults else None,
        fold("plugins", grid(("distribution", "version", "status", "entry point", "provides"), records)),
    )


def provided(record: PluginRecord) -> str:
    """What a plugin provides, counted by kind: ``2 methods, 1 dataset``."""
    return ", ".join(several(len(names), kind) for kind, names in record.provides.items())
