"""Export a scenario for use outside the suite: build its stream, and write its splits with a description."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import UsageError
from cglsuite.base.hashing import plain
from cglsuite.cells.run import build_scenario
from cglsuite.cells.spec import ResolvedScenario, resolve_scenario
from cglsuite.specs import Seeds, switches
from cglsuite.streams import TaskStream
from cglsuite.streams.exported import FORMAT, describe_arrays, npz_bytes, stream_arrays

if TYPE_CHECKING:
    from cglsuite.host import Catalogue


_NOT_OF_SPLITS = (
    "dataset_hyperparameters",
    "backbone_hyperparameters",
)  # the first is among the dataset's hyperparameters, the second part of training


@dataclass(frozen=True, kw_only=True)
class Export:
    """The two files of an export in memory: the npz and the JSON description. ``name`` is their name without suffix."""

    name: str
    npz: bytes
    description: bytes

    @property
    def files(self) -> dict[str, bytes]:
        """The content of each file by name."""
        return {f"{self.name}.npz": self.npz, f"{self.name}.json": self.description}

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 (hex) of each file by name."""
        return {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}

    @property
    def metadata(self) -> dict[str, Any]:
        """The description as JSON-serialisable values."""
        described: dict[str, Any] = json.loads(self.description)
        return described


def export_scenario(
    catalogue: Catalogue,
    scenario: str,
    folder: Path,
    *,
    overrides: Mapping[str, Any] | None = None,
    seeds: Seeds = Seeds(),  # noqa: B008 - frozen
    force: bool = False,
) -> tuple[Export, list[Path]]:
    """Build a scenario's stream and write its splits to ``<name>.npz`` and ``<name>.json`` (read by :mod:`cglsuite.streams.exported`).

    Args:
        overrides: values for the scenario's switches and its dataset's hyperparameters, by dotted or bare key.
        seeds: only order and split matter.
        force: replace files of the same name that differ.

    Returns:
        The export and the paths of its files.

    Raises:
        UsageError: a name or key is unknown, a value is out of range, or a different file of that name exists and ``force`` is not set.
        DataError: the dataset is missing or cannot be split this way.
        StoreError: the folder cannot be written.
    """
    export = make_export(catalogue, resolve_scenario(catalogue, scenario, overrides), seeds)
    return export, write_export(export, folder, force=force)


def make_export(catalogue: Catalogue, scenario: ResolvedScenario, seeds: Seeds) -> Export:
    """Create the files of a scenario's stream in memory. Equal inputs give equal bytes."""
    stream = build_scenario(catalogue, scenario.spec, scenario.dataset_hyperparameters, seeds)
    arrays = stream_arrays(stream)
    npz = npz_bytes(arrays)
    name = f"{scenario.preset.replace('/', '-')}-order{seeds.order}-split{seeds.split}"
    described = {
        "format": FORMAT,
        **_inputs(catalogue, scenario, seeds, stream),
        "tasks": [plain(facts) for facts in stream.tasks],
        "n_outputs": stream.n_outputs,
        "arrays": describe_arrays(arrays),
        "file": {"name": f"{name}.npz", "sha256": hashlib.sha256(npz).hexdigest()},
    }
    return Export(name=name, npz=npz, description=(json.dumps(described, indent=1, sort_keys=True) + "\n").encode())


def write_export(export: Export, folder: Path, *, force: bool = False) -> list[Path]:
    """Write both files to ``folder`` atomically, the description last. Existing files with equal content are left unchanged.

    Raises:
        UsageError: a file of that name has different content and ``force`` is false; nothing is written.
        StoreError: the folder cannot be written.
    """
    files = {folder / name: content for name, content in export.files.items()}
    present = {path: path.read_bytes() for path in files if path.is_file()}
    different = [str(path) for path, content in present.items() if content != files[path]]
    if different and not force:
        raise UsageError(
            f"{' and '.join(different)}: already present with different content (from different data or another version, or edited); "
            "choose a different folder with --out, or replace it with --force"
        )
    for path, content in files.items():
        if present.get(path) != content:
            write_atomic(path, content, option="--out")
    return list(files)


def _inputs(catalogue: Catalogue, scenario: ResolvedScenario, seeds: Seeds, stream: TaskStream) -> dict[str, Any]:
    """Return the inputs of the splits: every switch, the relevant seeds, the data, and the code's provenance."""
    spec = scenario.spec
    entries = [catalogue.get("scenario", spec.name), catalogue.get("dataset", spec.dataset)]
    versions = {entry.record.distribution: entry.record.version for entry in entries}
    core = {name: importlib.metadata.version(name) for name in ("cglsuite", "numpy", "torch")}
    return {
        "scenario": spec.name,
        "preset": scenario.preset,
        "switches": plain({name: value for name, value in switches(spec).items() if name not in _NOT_OF_SPLITS}),
        "builder": spec.builder,
        "seeds": {axis: seed for axis, seed in dataclasses.asdict(seeds).items() if axis != "init"},
        "dataset": {"name": spec.dataset, "hyperparameters": plain(scenario.dataset_hyperparameters), "content_hash": stream.data_hash},
        "versions": {"python": platform.python_version(), **core, **versions},
    }
