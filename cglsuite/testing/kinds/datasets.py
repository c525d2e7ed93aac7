"""Conformance checks for datasets, covering the guarantees that scenarios rely on."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataAbsentError, NotApplicable
from cglsuite.base.traces import Traces
from cglsuite.cells.process import RANDOM_STATES
from cglsuite.graphs import GraphData, LinkData, NodeData, NodeTargetData
from cglsuite.host import Catalogue, Entry
from cglsuite.testing.apart import same_everywhere
from cglsuite.testing.findings import Check, CheckFailed
from cglsuite.testing.judge.session import digest_of
from cglsuite.testing.kinds.entries import entry_checks
from cglsuite.testing.streams import disturb_randomness

_FORMS = {NodeTargetData: ("NR",), NodeData: ("NC",), GraphData: ("GC", "GR"), LinkData: ("LC", "LP")}


def checks(catalogue: Catalogue, entry: Entry) -> Iterator[Check]:
    """Yield the checks of a dataset. Raw files are located as the loaders do; if they are missing, checks of the content are skipped."""
    spec: Any = entry.spec
    yield from entry_checks(catalogue, entry, spec.hyperparameters, cited=not spec.embedded)
    yield Check(name="licence", action=partial(_licensed, spec))
    loaded = cache(partial(load_offline, catalogue, entry))
    yield Check(name="loads", action=loaded)
    yield Check(name="form", after="loads", action=lambda: _well_formed(spec, loaded()))
    yield Check(name="repeatable", after="form", action=lambda: _repeatable(catalogue, entry, loaded()))
    yield Check(name="processes", after="form", action=partial(same_everywhere, catalogue, entry, outcomes))
    yield Check(name="writes nothing", after="loads", action=lambda: _writes_nothing(catalogue, entry))


def outcomes(catalogue: Catalogue, entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the dataset's content, so that two processes can be compared."""
    data = load_offline(catalogue, entry)
    yield "its content", f"{data.content_hash} {digest_of(dict(data.keys))}"


def _licensed(spec: Any) -> None:
    if spec.licence in ("", "not stated") and not spec.home:
        raise CheckFailed(
            "the spec states neither the licence nor the source of the data",
            "set licence=... and home=..., or only home if the publisher does not state a licence",
        )


def load_offline(catalogue: Catalogue, entry: Entry, hyperparameters: Mapping[str, Any] | None = None) -> Any:
    """Load a dataset from files on this machine, without downloads.

    Args:
        hyperparameters: the dataset's hyperparameters; ``None`` for the defaults.

    Raises:
        NotApplicable: its raw files are not available.
    """
    spec: Any = entry.spec
    root = DataRoot.from_environment()
    offline = DataRoot(root=root.folders, cache=root.cache, offline=True)
    values = {p.name: p.default for p in spec.hyperparameters} if hyperparameters is None else dict(hyperparameters)
    try:
        return catalogue.resolve(entry)(offline, **values)
    except DataAbsentError as error:
        if spec.embedded:
            raise
        raise NotApplicable(_absent(spec.name, str(error))) from None


def _absent(name: str, error: str) -> str:
    """Summarise the missing raw files in one line. The loader's own error message has one line per file, with its source."""
    files = [line.strip() for line in error.splitlines() if line.startswith("  ")]
    listed = f" ({files[0]}{f' and {len(files) - 1} more' if files[1:] else ''})" if files else ""
    where = "" if "CGLSUITE_DATA" not in os.environ else "; the folder searched is $CGLSUITE_DATA"
    return f"the raw files of {name} are not on this machine{listed}{where or '; set CGLSUITE_DATA to the folder that holds them'}"


def _well_formed(spec: Any, data: Any) -> None:
    levels = next((levels for form, levels in _FORMS.items() if isinstance(data, form)), None)
    if levels is None:
        forms = ", ".join(form.__name__ for form in _FORMS)
        raise CheckFailed(f"the factory returns a {type(data).__name__}", f"return one of {forms} (cglsuite.graphs)")
    if wrong := [level for level in spec.levels if level not in levels]:
        raise CheckFailed(
            f"the spec declares {', '.join(wrong)}, but a {type(data).__name__} is for {' or '.join(levels)}",
            f"declare levels={levels[:1]!r}, or return a dataset of the declared level",
        )
    if data.y.is_floating_point() != bool({"NR", "GR"} & set(spec.levels)):
        raise CheckFailed(
            "real-valued labels must be used if and only if the level is NR or GR",
            "return int64 classes or bool label sets, or declare NR or GR",
        )


def _repeatable(catalogue: Catalogue, entry: Entry, first: Any) -> None:
    disturb_randomness()
    before = Traces(RANDOM_STATES)
    again = load_offline(catalogue, entry)
    if before.changes():
        raise CheckFailed("loading changes global random states", "draw from a torch.Generator with a fixed seed")
    if again.content_hash != first.content_hash or not _same_keys(first, again):
        raise CheckFailed("two loads differ", "use fixed seeds, and sort the contents of sets, dictionaries and folders")


def _same_keys(first: Any, second: Any) -> bool:
    first_keys, other = dict(first.keys), dict(second.keys)
    return first_keys.keys() == other.keys() and all(isinstance(v, Tensor) and torch.equal(v, other[k]) for k, v in first_keys.items())


def _writes_nothing(catalogue: Catalogue, entry: Entry) -> None:
    """Check that loading does not write to the current folder or the raw files."""
    root = DataRoot.from_environment().root
    before, here = _listing(root), Path.cwd()
    with tempfile.TemporaryDirectory(prefix="cglsuite-check-") as folder:
        os.chdir(folder)
        try:
            load_offline(catalogue, entry)
            left = sorted(p.name for p in Path(folder).iterdir())
        finally:
            os.chdir(here)
    if left or _listing(root) != before:
        raise CheckFailed(f"loading writes to {left[0] if left else root}", "write derived data only to the cache of the DataRoot")


def _listing(root: Path | None) -> list[tuple[str, int]]:
    """Return the names and modification times of the top-level raw files, to detect new or rewritten files."""
    return sorted((p.name, p.stat().st_mtime_ns) for p in root.iterdir()) if root and root.is_dir() else []
