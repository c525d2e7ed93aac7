"""The table of docs/reference/what-runs.md: level x setting x source of data, and which preset runs in each of its cells.

``python tests/tools/what_runs.py`` writes it anew, with CGLSUITE_DATA set (minutes: it trains a cell for each entry).
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from unittest.mock import patch

from graph_files import Files
from link_files import lenient, write_all
from node_files import write_arxiv, write_cora, write_musae
from own_data_lab import presets, table_of, trained, written

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import CglsuiteError
from cglsuite.host import Catalogue, load_catalogue
from cglsuite.specs import LEVELS, SETTINGS, ScenarioSpec

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "what-runs.md"
#: Settings as users look for them: those of the suite, and two kinds of class-IL.
ROWS: Mapping[str, Callable[[ScenarioSpec], bool]] = {
    **{setting: lambda p, setting=setting: p.setting == setting and p.shots is None and p.labels != "open" for setting in SETTINGS},
    "class-il, few-shot": lambda p: p.shots is not None,
    "class-il, open world": lambda p: p.labels == "open",
}
#: The datasets of each source, those that are preferred first. Those of the second are small and have files that anyone can obtain.
SOURCES: Mapping[str, tuple[str, ...]] = {
    "embedded": (
        *("synthetic-csbm", "synthetic-growing", "synthetic-node-targets", "synthetic-signed-links", "synthetic-temporal-links"),
        *("synthetic-motifs", "synthetic-graph-regression"),
    ),
    "real files": (
        "cora",
        "twitch-musae",
        "bitcoin-otc",
        "bitcoin-alpha",
        "college-msg",
        "facebook",
        "aromaticity",
        "ogbg-molhiv",
        "aqsol",
    ),
    "tiny files in the published format": (
        *("cora", "twitch-musae", "ogbn-arxiv", "bitcoin-otc", "college-msg", "wiki-cs", "aromaticity", "ogbg-molhiv", "nyc-taxi"),
        "zinc",
    ),
}
_EMBEDDED, _REAL, _TINY = SOURCES
_LARGE = {_EMBEDDED: (), _REAL: ("ogbg-molhiv/", "facebook/"), _TINY: ("nyc-taxi/",)}
_PROTOCOLS = ("begin-2", "cglb-2", "drift-honest-2", "drift-honest-1")
REASONS = {
    "no classes arrive": "Link prediction and regression have no classes, so no classes can arrive.",
    "no preset yet": "No protocol in the suite has this level and setting, so no scenario can be derived.",
    "no such attribute": "None of these datasets has an attribute, such as a domain or a time, that forms tasks of this setting.",
    "not trained here": "`nyc-taxi/time-il@begin-2` (even from small files) and `ogbg-molhiv/domain-il@begin-2` take too long to train in "
    "a test, and `facebook/domain-il@begin-2` needs files that the tests' data lack.",
    "no public data": "No public dataset of this level is part of the suite. Your own data run here.",
}


def entry(level: str, row: str, source: str) -> str:
    """The preset of a cell of the table: a name with a slash, or one of :data:`REASONS`."""
    alike = [p for p in presets() if p.level == level and ROWS[row](p) and "@example" not in p.name]
    if not alike:
        return "no classes arrive" if level in ("NR", "LP", "GR") and row.startswith(("task-il", "class-il")) else "no preset yet"
    datasets = [name for name in SOURCES[source] if level in installed().dataset(name).levels]
    if not datasets:
        return "no public data"
    rests = sorted({p.name.partition("/")[2] for p in alike}, key=_preference)
    named = {p.name for p in alike}
    derived = [f"{dataset}/{rest}" for dataset in datasets for rest in rests]
    for name in sorted(derived, key=lambda name: name not in named):
        if _fits(name, ROWS[row], level):
            return "not trained here" if name.startswith(_LARGE[source]) else name
    return "no such attribute"


def _preference(rest: str) -> tuple[int, int, str]:
    protocol = rest.rpartition("@")[2]
    return _PROTOCOLS.index(protocol) if protocol in _PROTOCOLS else len(_PROTOCOLS), not rest.startswith("gaussian"), rest


@cache
def installed() -> Catalogue:
    """The catalogue, read once."""
    return load_catalogue()


def _fits(name: str, row: Callable[[ScenarioSpec], bool], level: str) -> bool:
    """Whether the name is a preset, or a scenario is derived with this name and its data have what forms its tasks."""
    try:
        spec = installed().scenario(name)
    except CglsuiteError:
        return False
    return spec.level == level and row(spec) and (not spec.derived_from or spec.task_key is None)


@contextmanager
def data_of(source: str) -> Iterator[Catalogue]:
    """A catalogue over the data of a source: none, those of CGLSUITE_DATA, or tiny files whose checksums are not compared."""
    if source != _TINY:
        yield installed()
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for write in (write_cora, write_musae, write_all, write_arxiv):
            write(folder)
        Files(folder).everything()
        with patch.object(DataRoot, "from_environment", lambda *_: lenient(folder)):
            yield installed()


def outcomes(source: str) -> dict[tuple[str, str], str]:
    """Level and setting to ``runs``, or what a cell of the preset ended with; of those with a preset."""
    found = {(level, row): entry(level, row, source) for level in LEVELS for row in ROWS}
    with data_of(source) as catalogue:
        made = {place: trained(catalogue, name) for place, name in found.items() if "/" in name}
    return {place: "runs" if said == "done" else said for place, said in made.items()}


def table() -> str:
    """Rows are levels and settings, columns are sources; reasons have numbers that :func:`notes` explains."""
    header = [["level", "setting", *SOURCES], ["---"] * (2 + len(SOURCES))]
    number = {reason: k for k, reason in enumerate(REASONS, start=1)}
    rows = []
    for level in LEVELS:
        for row in ROWS:
            cells = [entry(level, row, source) for source in SOURCES]
            rows.append([level, row, *(f"`{cell}`" if "/" in cell else f"{cell} ({number[cell]})" for cell in cells)])
    notes = "\n".join(f"{k}. {words}" for k, words in enumerate(REASONS.values(), start=1))
    return "\n".join(f"| {' | '.join(row)} |" for row in header + rows) + f"\n\n{notes}"


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), "what runs", table()), encoding="utf-8")
    for source in SOURCES:
        if source != _REAL or os.environ.get("CGLSUITE_DATA"):
            failed = {place: said for place, said in outcomes(source).items() if said != "runs"}
            print(f"{source}: {failed or 'every preset runs'}")

__all__ = ["PAGE", "outcomes", "table", "table_of"]
