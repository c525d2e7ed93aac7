"""Data files specified by the user: their catalogue specs, and the lookup of the file that a cell refers to. Does not import torch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.base.inputs import check_regular
from cglsuite.graphs.files.named import data_files, name_of, options_of
from cglsuite.graphs.files.options import FileOptions
from cglsuite.specs import DatasetSpec, Hyperparameter

if TYPE_CHECKING:
    from cglsuite.graphs.files.forms import Form


FACTORY = "cglsuite.graphs.loading.given:given_data"
READER = 4
"""The version of the reader. Raise it when files are interpreted differently, so that earlier results are not reused."""


def content_of(path: Path) -> str:
    """Return the SHA-256 hash (hex) of a data file, or of the file names and hashes in a data folder. Cached until a file changes.

    Raises:
        DataError: the file cannot be read.
    """
    root = DataRoot.from_environment()
    files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    for file in files:
        try:
            check_regular(file)
        except FileNotFoundError:
            pass  # said below
        except OSError as error:
            raise DataError(f"{file} cannot be read: {error.strerror or error}") from error
    if not path.is_dir():
        return root.sha256(path)
    parts = [(file.name, root.sha256(file)) for file in files]
    return hashlib.sha256("".join(f"{name}\0{content}\n" for name, content in parts).encode()).hexdigest()


def file_with_content(content: str) -> Path:
    """Return the user's data file whose :func:`content_of` is ``content``.

    Raises:
        DataError: no file has this content, because the file has changed since it was specified or was not specified in this process.
    """
    files = data_files()
    for path in files:
        if path.exists() and content_of(path) == content:
            return path
    there = ", ".join(map(str, files)) or "none"
    raise DataError(
        f"none of the data files passed with --data ({there}) has SHA-256 {content[:12]}...; the file may have changed since it was passed"
    )


@dataclass(frozen=True, kw_only=True)
class FileDatasetSpec(DatasetSpec):
    """The catalogue spec of a data set in a user's file, with facts about its contents.

    Attributes:
        facts: (name, value) pairs of strings. warnings: what a user should know before trusting a result.
        weights: the smallest and largest edge weight if the items are nodes; ``None`` if edges have no weights.
        edge_features: number of features per edge. links: number of links that are items.
        absent_pairs: number of node pairs without a link; ``None`` unless the task is link prediction.
        binary: whether links or graphs have two classes, which ``labels = multi`` treats as a single binary label.
        distinct: number of distinct values of each attribute. deciles: the nine deciles of each attribute over the items, without
            duplicates.
    """

    facts: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    weights: tuple[float, float] | None = None
    edge_features: int = 0
    absent_pairs: int | None = None
    links: int = 0
    binary: bool = False
    distinct: Mapping[str, int] = field(default_factory=dict, hash=False)
    deciles: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)
    class_sizes: tuple[int, ...] = ()


def data_spec(path: Path) -> FileDatasetSpec:
    """Return the spec of a data file. The data set is named after the file, and the file's content and options are part of every key.

    Raises:
        DataError: the file cannot be read, or its arrays are inconsistent.
        UsageError: an option is unknown.
    """
    return _spec(path, content_of(path), options_of(path))


def cell_warnings(spec: DatasetSpec, *, weighted: bool = False) -> list[str]:
    """Return the warnings about a data set; ``weighted`` tells whether its edge weights are used."""
    if not isinstance(spec, FileDatasetSpec):
        return []
    unused = spec.weights is not None and not weighted
    return [*(["the weights of edges are used only by gcn and gin with backbone.edge_weight = true"] if unused else []), *spec.warnings]


def data_warnings(specs: Iterable[DatasetSpec]) -> list[str]:
    """Return the warnings about these data sets, one per line, each starting with the file's name."""
    return [f"{spec.summary.partition(':')[0]}: {text}" for spec in specs for text in cell_warnings(spec)]


@lru_cache(maxsize=32)
def _spec(path: Path, content: str, options: FileOptions) -> FileDatasetSpec:
    import numpy as np

    from cglsuite.graphs.files.forms import form_of_arrays
    from cglsuite.graphs.files.tables import read_arrays
    from cglsuite.graphs.files.understood import facts_of, warnings_of

    form = form_of_arrays(path, read_arrays(path, options), options)
    tenths = [0.1 * k for k in range(1, 10)]
    return FileDatasetSpec(
        name=name_of(path),
        summary=f"{path.name}: {_size(form)}",
        factory=FACTORY,
        levels=(form.level,),
        labels=form.labels,
        keys=tuple(sorted(form.keys)),
        official_split=form.split is not None,
        embedded=True,
        hyperparameters=(
            Hyperparameter(name="content", default=content, doc="SHA-256 hash (hex) of the file, independent of its path"),
            Hyperparameter(name="options", default=options.text, doc="options for the file (--data-option), as JSON"),
            Hyperparameter(name="reader", default=READER, doc="version of the data file reader", choices=(READER,)),
        ),
        facts=facts_of(form),
        warnings=warnings_of(form),
        weights=None if form.edge_weight is None else (float(form.edge_weight.min(initial=0)), float(form.edge_weight.max(initial=0))),
        edge_features=0 if form.edge_attr is None else form.edge_attr.shape[1],
        absent_pairs=_absent_pairs(form) if form.level == "LP" else None,
        links=form.n_items if form.level in ("LC", "LP") else 0,
        binary=form.level in ("LC", "GC") and form.labels == "single" and form.n_classes == 2,
        class_sizes=tuple(np.bincount(form.y[form.y >= 0], minlength=form.n_classes).tolist()) if form.labels == "single" else (),
        distinct={name: len(np.unique(values)) for name, values in form.keys.items()},
        deciles={
            name: tuple(np.unique(np.quantile(values, tenths, method="higher")).tolist())
            for name, values in form.keys.items()
            if values.size
        },
    )


def _absent_pairs(form: Form) -> int:
    """Count the unordered pairs of distinct nodes without a link."""
    import numpy as np

    ends = np.sort(form.edges, axis=0)
    pairs = np.unique(ends[0] * max(form.n_nodes, 1) + ends[1])[None]
    proper = int((pairs // max(form.n_nodes, 1) != pairs % max(form.n_nodes, 1)).sum())
    if form.node_types is None:
        return form.n_nodes * (form.n_nodes - 1) // 2 - proper
    counts = np.bincount(form.node_types - form.node_types.min())
    joined = np.unique(np.sort((form.node_types - form.node_types.min())[form.edges], axis=0), axis=1).T.tolist()
    return sum(int(counts[a] * counts[b] if a != b else counts[a] * (counts[a] - 1) // 2) for a, b in joined) - proper


def _size(form: Form) -> str:
    items = {"NC": "", "LC": f"{form.edges.shape[1]:,} links to be classified, ", "LP": f"{form.edges.shape[1]:,} links to be predicted, "}
    graphs = "" if form.graph is None else f"{int(form.graph.max(initial=-1)) + 1:,} graphs, "
    features = "no features" if form.x is None else f"{form.x.shape[1]:,} features"
    outputs = {"single": "classes", "multi": "labels", "real": "targets"}[form.labels]
    edges = "" if form.level in ("LC", "LP") else f"{form.edges.shape[1]:,} edges, "
    return f"{items.get(form.level, graphs)}{form.n_nodes:,} nodes, {edges}{features}, {form.n_classes} {outputs}"
