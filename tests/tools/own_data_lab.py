"""Data of every kind as a user brings them, what becomes of each under every protocol, and the tables of docs/reference/own-data.md.

``python tests/tools/own_data_lab.py`` writes the tables anew (minutes: it trains a cell for each entry).
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cglsuite.base.errors import CglsuiteError
from cglsuite.cells.run import run_cell
from cglsuite.cells.spec import resolve_cell
from cglsuite.cells.storage.store import Store
from cglsuite.graphs.files.named import named
from cglsuite.host import Catalogue, load_catalogue
from cglsuite.host.catalogue import derive
from cglsuite.specs import ScenarioSpec, Seeds
from cglsuite.study.data import as_data_file

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "own-data.md"
Arrays = dict[str, Any]


def nodes(n: int = 240, classes: int = 6, seed: int = 0, **changes: Any) -> Arrays:
    """Arrays of a graph whose nodes are items."""
    rng = np.random.default_rng(seed)
    plain = {"x": rng.normal(size=(n, 3)), "edge_index": rng.integers(0, max(n, 1), (2, 3 * n)), "y": np.arange(n) % max(classes, 1)}
    return plain | changes


def links(n: int = 40, m: int = 300, seed: int = 0, **changes: Any) -> Arrays:
    """Arrays of a graph whose links are items; ``time`` has three values."""
    rng = np.random.default_rng(seed)
    source = rng.integers(0, n, m)
    plain = {"links": np.stack([source, (source + rng.integers(1, n, m)) % n]), "x": rng.normal(size=(n, 3)), "time": np.arange(m) % 3}
    return plain | changes


def graphs(n: int = 90, size: int = 4, seed: int = 0, **changes: Any) -> Arrays:
    """Arrays of whole graphs, rings of ``size`` nodes; ``domain`` has three values."""
    rng, ends = np.random.default_rng(seed), np.arange(n * size)
    ring = np.stack([ends, ends // size * size + (ends + 1) % size])
    plain = {"x": rng.normal(size=(n * size, 3)), "edge_index": ring, "graph": ends // size, "y": np.arange(n) % 6}
    return plain | {"domain": np.arange(n) // 2 % 3} | changes


@cache
def presets() -> tuple[ScenarioSpec, ...]:
    """All presets of the installed plugins."""
    return tuple(load_catalogue().specs(ScenarioSpec).values())


@contextmanager
def own_data(data: Any, **options: Any) -> Iterator[Catalogue]:
    """The catalogue with the data as the data set ``mine``."""
    path = as_data_file(data, "mine")
    with named(data=[path], options={"mine": options} if options else None):
        yield load_catalogue()


_SMALLER = {"@text-few-shot-": {"scenario.base_classes": 2}, "@task-free-": {"training.batch_size": 10}}
"""What protocols need to be changed in for data as small as those of this page."""


def outcome(catalogue: Catalogue, protocol: str, **overrides: Any) -> str:
    """What becomes of one cell of Bare over ``mine``, trained for one epoch: ``done``, or the message."""
    return trained(catalogue, f"mine/{protocol}", **overrides)


def trained(catalogue: Catalogue, scenario: str, **overrides: Any) -> str:
    """What becomes of one cell of Bare, trained for one epoch: ``done``, or the message."""
    epochs = {} if "drift" in scenario else {"training.epochs": 1}
    smaller = next((changes for part, changes in _SMALLER.items() if part in scenario and scenario.startswith("mine/")), {})
    try:
        cell = resolve_cell(
            catalogue, scenario, "bare", overrides={**epochs, **smaller, **overrides}, seeds=Seeds(order=0, split=0, init=0)
        )
        record = run_cell(cell, catalogue, Store(Path(tempfile.mkdtemp())))
    except CglsuiteError as error:
        return str(error)
    return record.status if record.done else f"{record.status}: {record.reason}"


# --- the table of the docs --------------------------------------------------------------------------------------------------------

_ITEMS, _GRAPHS = np.arange(300), np.arange(360)
KINDS: dict[str, Arrays] = {
    "nodes, classes": nodes(1200, time=np.arange(1200) // 6 % 3, domain=np.arange(1200) // 18 % 3),
    "nodes, labels": nodes(y=(np.arange(240)[:, None] >> np.arange(4)) % 2, time=np.arange(240) // 16 % 3, domain=np.arange(240) // 48 % 3),
    "nodes, targets": nodes(y=np.linspace(-1, 1, 240), time=np.arange(240) // 16 % 3, domain=np.arange(240) // 48 % 3),
    "links, classes": links(y=_ITEMS // 3 % 6, domain=_ITEMS // 18 % 3),
    "links, true or false": links(y=_ITEMS // 3 % 2, domain=_ITEMS // 6 % 3),
    "links, to predict": links(domain=_ITEMS // 3 % 3),
    "graphs, classes": graphs(360, y=_GRAPHS // 3 % 6, time=_GRAPHS % 3, domain=_GRAPHS // 18 % 3),
    "graphs, labels": graphs(360, y=(_GRAPHS[:, None] >> np.arange(3)) % 2, time=_GRAPHS // 8 % 3, domain=_GRAPHS // 16 % 3),
    "graphs, targets": graphs(360, y=np.linspace(-1, 1, 360), time=_GRAPHS % 3, domain=_GRAPHS // 3 % 3),
}


def protocols() -> list[str]:
    """What follows a data set's name in the names of presets, without those of examples."""
    return sorted({preset.name.partition("/")[2] for preset in presets() if "@example" not in preset.name})


def column(kind: str, *, train: bool = True) -> dict[str, str]:
    """By protocol ``runs``, ``needs time`` or ``needs an attribute`` (and runs with it), or why it does not."""
    with own_data(KINDS[kind]) as catalogue:
        return {protocol: _entry(catalogue, protocol, train) for protocol in protocols()}


def _entry(catalogue: Catalogue, protocol: str, train: bool) -> str:
    try:
        scenario = derive(f"mine/{protocol}", catalogue.dataset("mine"), presets()).spec
    except CglsuiteError as error:
        return "level" if " is of level " in str(error) else "labels" if "labels of mine are" in str(error) else str(error)
    if train and (said := outcome(catalogue, protocol)) != "done":
        return said
    return {None: "runs", "time": "needs time"}.get(scenario.task_key, "needs an attribute")


def protocol_table(*, train: bool = True) -> str:
    """Rows are protocols, those that agree in every entry together; columns are kinds of data."""
    columns = [column(kind, train=train) for kind in KINDS]
    rows: dict[tuple[str, ...], list[str]] = {}
    for protocol in protocols():
        setting = "task-free" if "drift" in protocol or "@task-free-" in protocol else protocol.partition("@")[0]
        rows.setdefault((setting, *(made[protocol] for made in columns)), []).append(protocol)
    header = [["setting", "protocols", *KINDS], ["---"] * (len(KINDS) + 2)]
    body = [[entries[0], ", ".join(f"`{name}`" for name in names), *entries[1:]] for entries, names in rows.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in header + body)


def written(page: str, name: str, table: str) -> str:
    """The page with a table between its markers."""
    before, start, rest = page.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    return f"{before}{start}{table}\n{end}{after}"


def table_of(page: str, name: str) -> str:
    """The table between markers."""
    return page.partition(f"<!-- {name} -->\n")[2].partition(f"\n<!-- end of {name} -->")[0]


def tables() -> Mapping[str, str]:
    """All tables that are computed."""
    return {"protocols": protocol_table()}


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    text = PAGE.read_text(encoding="utf-8")
    for name, table in tables().items():
        text = written(text, name, table)
    PAGE.write_text(text, encoding="utf-8")
