"""The keys of a cell: the design key identifies the request, and the cell key covers everything that the result depends on. Does not import
torch.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cglsuite.base.hashing import canonical, digest
from cglsuite.cells.code.inputs import second_key
from cglsuite.cells.code.sources import closure_digest, closure_facts
from cglsuite.cells.code.user import files_to_freeze, is_ours, user_code
from cglsuite.host.discovery import BUILT_IN, normalised
from cglsuite.learning.launch import runner_reference
from cglsuite.learning.reproducibility.numerics import numerics_of
from cglsuite.problems.adapters import adapter_reference
from cglsuite.specs import KINDS, NO_PRETRAINING

if TYPE_CHECKING:
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue
    from cglsuite.specs import Seeds


_CORE = ("cglsuite.learning.launch:make_runner", "cglsuite.learning.reproducibility.numerics:applied")
_PRETRAINING = "cglsuite.learning.pretraining.weights:pretrain"
_WEIGHTS = "cglsuite.problems.weighted:use_weights"
_TEXT = "cglsuite.graphs.attributed:encoded"


def design_key(cell: CellSpec) -> str:
    """Return the SHA-256 (hex) of the request: names, every resolved value, and seeds. It does not depend on code versions or hardware."""
    return digest(_design(cell))


def _design(cell: CellSpec) -> dict[str, Any]:
    return {
        "scenario": cell.scenario.name,
        "builder": cell.scenario.builder,
        "method": cell.method,
        "backbone": cell.backbone,
        "configuration": cell.configuration,
        "seeds": cell.seeds,
        "dtype": cell.dtype,
    }


def cell_key(cell: CellSpec, catalogue: Catalogue) -> str:
    """Return the SHA-256 (hex) of the design, the sources of all numerical code, torch's version, the kind of device, the numerics and
    changed inputs.
    """
    first = digest([_design(cell), execution(cell, catalogue)])
    return second_key(first, cell.inputs) if cell.inputs else first


def claimed_key(cell: CellSpec, sources: Mapping[str, str], torch: str, numerics: Mapping[str, Any]) -> str:
    """Return the :func:`cell_key` that a record claims, computed from its own source digests (by role), torch version and numerics."""
    return digest(
        [_design(cell), {"sources": sources, "torch": keyed_torch(torch, cell.device), "device": cell.device, "numerics": numerics}]
    )


def seeded_keys(cell: CellSpec, catalogue: Catalogue) -> Callable[[Seeds], str]:
    """Return a function that maps seeds to :func:`cell_key`. With many seeds this is faster, because the rest of the key's text is built
    once.
    """
    design = {name: value for name, value in _design(cell).items() if name != "seeds"}
    before, after = canonical(design).removesuffix("}"), canonical(execution(cell, catalogue))
    # The name "seeds" sorts after all others, so this is the canonical form of the whole.

    def first(seeds: Seeds) -> str:
        return hashlib.sha256(f'[{before},"seeds":{canonical(seeds)}}},{after}]'.encode()).hexdigest()

    return (lambda seeds: second_key(first(seeds), cell.inputs)) if cell.inputs else first


def share_key(cell: CellSpec, catalogue: Catalogue) -> str:
    """Return the key that cells with shared checkpoints have in common. It covers everything except the order in which classes arrive."""
    design = _design(cell)
    design["configuration"] = {k: v for k, v in design["configuration"].items() if k != "scenario.class_order"}
    design["seeds"] = {"split": cell.seeds.split, "init": cell.seeds.init}
    return digest([design, execution(cell, catalogue), *([cell.inputs] if cell.inputs else [])])


def prefix_keys(cell: CellSpec, catalogue: Catalogue) -> list[str]:
    """Return the prefixes of the names of this cell's checkpoints. Cells with a common prefix may share checkpoints."""
    return [share_key(cell, catalogue)[:32]]


def execution(cell: CellSpec, catalogue: Catalogue) -> dict[str, Any]:
    """Return everything other than the design that determines the exact bits of a result."""
    return {
        "sources": {name: s["source"] for name, s in sources(cell, catalogue).items()},
        "torch": keyed_torch(torch_version(), cell.device),
        "device": cell.device,
        "numerics": numerics_facts(cell.device, cell.threads, cell.numerics),
    }


def torch_version() -> str:
    """Return the version of the installed torch distribution, with the build label (``2.13.0+cpu``) if there is one."""
    return _version("torch")


def keyed_torch(version: str, device: str) -> str:
    """Return the part of torch's version that belongs in the key of a cell on ``device``. On CUDA, the build label is removed.

    A CPU build (``2.13.0+cpu``) has different CPU kernels, so the label counts on a CPU. Cells for GPUs may be planned on a machine without
    a GPU, with a build that cannot run them, and not all CUDA builds have a label. The record states the CUDA version that was used.
    """
    return version.partition("+")[0] if device == "cuda" else version


def numerics_facts(device: str, threads: int, numerics: str = "native") -> dict[str, Any]:
    """Return a cell's numerical settings as they appear in its key and record. ``form`` is present only if they are not native."""
    return dataclasses.asdict(numerics_of(device, threads)) | ({} if numerics == "native" else {"form": numerics})


def references(cell: CellSpec, catalogue: Catalogue) -> dict[str, tuple[str, ...]]:
    """Return the ``"module:Object"`` references, by role, from which all numerical code of a cell is reached."""
    factories = {
        "dataset": catalogue.dataset(cell.scenario.dataset).factory,
        "backbone": catalogue.backbone(cell.backbone).factory,
        "method": catalogue.method(cell.method).factory,
        "measure": catalogue.measure(cell.scenario.performance).factory,
    }
    core: tuple[str, ...] = ()
    if cell.pretraining != NO_PRETRAINING:
        factories["pretraining"] = catalogue.pretraining(cell.pretraining).factory
        core = (_PRETRAINING,)
    if cell.weighted:
        core = (*core, _WEIGHTS)
    if cell.scenario.encoder is not None:
        factories["encoder"] = catalogue.encoder(cell.scenario.encoder).factory
        core = (*core, _TEXT)
    if cell.scenario.task_free is not None:
        factories["schedule"] = catalogue.schedule(cell.scenario.task_free.schedule).factory
    factories["scenario"] = cell.scenario.builder
    names = _roles(cell)
    return {
        "core": (*_CORE, *core, runner_reference(cell.scenario), adapter_reference(cell.scenario.level, cell.scenario.labels)),
        # The plugin's module that names user code is part of it.
        **{r: (f,) if is_ours(f) else (f, catalogue.get(r, names[r]).record.module) for r, f in factories.items()},
    }


def sources(cell: CellSpec, catalogue: Catalogue) -> dict[str, dict[str, str]]:
    """Return the provider and source digest of a cell's numerical code as ``{"distribution", "version", "source", "name"}`` by role.

    The core is the runner, the numerics and the adapter of the cell's level.
    """
    digests = {role: closure_digest(names) for role, names in references(cell, catalogue).items()}
    out = {"core": {"name": "core", "distribution": "cglsuite", "version": _version("cglsuite"), "source": digests["core"]}}
    for role, name in _roles(cell).items():
        record = catalogue.get(role, name).record
        out[role] = {"name": name, "distribution": record.distribution, "version": record.version, "source": digests[role]}
    return out


def foreseen_modules(cell: CellSpec, catalogue: Catalogue) -> set[str]:
    """Return the user modules that a cell's key covers, and those that belong to the plugins themselves."""
    plugins = {entry.record.module for kind in KINDS for entry in catalogue.entries(kind) if not is_ours(entry.record.module)}
    return {*user_modules(cell, catalogue), *user_code(plugins).files}


def planned_code(cells: Iterable[CellSpec], catalogue: Catalogue) -> dict[str, tuple[Path, bytes]]:
    """Return the user code that a process must be able to import to run these cells: that of the cells, and that of all third-party
    plugins.

    Returns:
        The path and content of each module, by name, as they are in the keys at this moment.
    """
    mine = {root for cell in cells for roots in references(cell, catalogue).values() for root in roots}
    entries = [entry for kind in KINDS for entry in catalogue.entries(kind) if normalised(entry.record.distribution) not in BUILT_IN]
    named = {getattr(entry.spec, field, None) for entry in entries for field in ("factory", "builder")}
    roots = {root for root in (*mine, *named, *(entry.record.module for entry in entries)) if root and not is_ours(root)}
    return files_to_freeze(roots)


def user_modules(cell: CellSpec, catalogue: Catalogue) -> dict[str, str]:
    """Return the user modules that a cell's key covers, by name, with the SHA-256 (hex) of their files."""
    roots = {root for names in references(cell, catalogue).values() if not all(map(is_ours, names)) for root in names}
    return {name: hashlib.sha256(source).hexdigest() for name, source in user_code(roots).sources.items()} if roots else {}


def dynamic_importers(cell: CellSpec, catalogue: Catalogue) -> list[str]:
    """Return the modules of a cell's plugins that import or execute code by names known only at run time. The key does not cover that
    code."""
    return sorted({name for roots in references(cell, catalogue).values() for name in closure_facts(roots).by_name})


def _roles(cell: CellSpec) -> dict[str, str]:
    names = {"dataset": cell.scenario.dataset, "scenario": cell.scenario.name, "backbone": cell.backbone, "method": cell.method}
    names["measure"] = cell.scenario.performance
    if cell.pretraining != NO_PRETRAINING:
        names["pretraining"] = cell.pretraining
    if cell.scenario.encoder is not None:
        names["encoder"] = cell.scenario.encoder
    return names if cell.scenario.task_free is None else {**names, "schedule": cell.scenario.task_free.schedule}


@lru_cache
def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
