"""Data files that the user named: what each declares to the catalogue, and which one a cell means. Imports no torch."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs.files.named import data_files
from cglsuite.specs import DatasetSpec, Hyperparameter

if TYPE_CHECKING:
    from cglsuite.graphs.files.forms import Form

__all__ = ["content_of", "data_spec", "file_with_content"]

FACTORY = "cglsuite.graphs.loading.given:given_data"


def content_of(path: Path) -> str:
    """SHA-256 (hex) of a data file, or over the names and hashes of the files of a folder; remembered while they stay as they are.

    Raises:
        DataError: it cannot be read.
    """
    root = DataRoot.from_environment()
    if not path.is_dir():
        return root.sha256(path)
    parts = [(file.name, root.sha256(file)) for file in sorted(path.glob("*.csv"))]
    return hashlib.sha256("".join(f"{name}\0{content}\n" for name, content in parts).encode()).hexdigest()


def file_with_content(content: str) -> Path:
    """The named data file with this :func:`content_of`.

    Raises:
        DataError: none has it: the file changed after it was named, or is not named in this process.
    """
    files = data_files()
    for path in files:
        if path.exists() and content_of(path) == content:
            return path
    there = ", ".join(map(str, files)) or "none"
    raise DataError(f"no data file that was named has sha256 {content[:12]}...: named with --data are {there}. Did it change meanwhile?")


def data_spec(path: Path) -> DatasetSpec:
    """What a data file declares: a data set named after it, whose content is part of every key.

    Raises:
        DataError: it cannot be read, or its arrays do not fit together.
    """
    from cglsuite.graphs.files.forms import form_of_arrays  # with NumPy
    from cglsuite.graphs.files.tables import read_arrays

    form = form_of_arrays(path, read_arrays(path))
    return DatasetSpec(
        name=_name(path),
        summary=f"{path.name}: {_size(form)}",
        factory=FACTORY,
        levels=(form.level,),
        labels=form.labels,
        keys=tuple(sorted(form.keys)),
        official_split=form.split is not None,
        embedded=True,
        hyperparameters=(
            Hyperparameter(name="content", default=content_of(path), doc="SHA-256 (hex) of the file, which names it wherever it lies"),
        ),
    )


def _size(form: Form) -> str:
    items = {"NC": "", "LC": f"{form.edges.shape[1]:,} links to be classified, ", "LP": f"{form.edges.shape[1]:,} links to be predicted, "}
    graphs = "" if form.graph is None else f"{int(form.graph.max(initial=-1)) + 1:,} graphs, "
    features = "no features" if form.x is None else f"{form.x.shape[1]:,} features"
    outputs = {"single": "classes", "multi": "labels", "real": "targets"}[form.labels]
    edges = "" if form.level in ("LC", "LP") else f"{form.edges.shape[1]:,} edges, "
    return f"{items.get(form.level, graphs)}{form.n_nodes:,} nodes, {edges}{features}, {form.n_classes} {outputs}"


def _name(path: Path) -> str:
    name = re.sub(r"[^a-z0-9._+-]+", "-", path.stem.lower() if path.is_file() else path.name.lower()).strip("-._+")
    if not name:
        raise DataError(f"{path}: a data set is named after its file; expected letters or digits in it")
    return name
