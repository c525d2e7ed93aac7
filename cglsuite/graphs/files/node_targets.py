"""Data files of the user whose items are nodes with real-valued targets. Does not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cglsuite.base.errors import DataError
from cglsuite.graphs.files.forms import Form, form_of_arrays
from cglsuite.graphs.files.given import READER, FileDatasetSpec, _size, content_of
from cglsuite.graphs.files.named import name_of, options_of
from cglsuite.graphs.files.options import FileOptions
from cglsuite.graphs.files.tables import Array, read_arrays
from cglsuite.graphs.files.understood import facts_of, warnings_of
from cglsuite.specs import Hyperparameter

FACTORY = "cglsuite.graphs.loading.node_targets:given_node_targets"


def has_node_targets(arrays: Mapping[str, Any], options: FileOptions) -> bool:
    """Return whether the arrays of a file describe nodes with real targets, rather than classes or label sets.

    Labels are targets if the user says ``labels = real``, or if nothing is said and a number has a fraction. Targets without fractions are
    recognised by their form: floats [N, C] that are not just -1, 0 and 1, with ``n_classes`` = C.
    """
    given = {name for name, values in arrays.items() if values is not None}
    if not {"x", "edge_index", "y"} <= given or given & {"links", "graph"} or options.labels not in (None, "real"):
        return False
    y = np.asarray(arrays["y"])
    if options.labels == "real" or y.dtype.kind != "f":
        return options.labels == "real"
    known = y[np.isfinite(y)]
    stated = y.ndim == 2 and "n_classes" in given and np.array_equal(np.ravel(arrays["n_classes"]), [y.shape[1]])
    return bool((known % 1 != 0).any() or (stated and not np.isin(known, (-1, 0, 1)).all()))


def form_of_node_targets(path: Path, arrays: Mapping[str, Any], options: FileOptions = FileOptions()) -> Form:  # noqa: B008 - frozen
    """Build the form of a file whose nodes have real targets: level ``NR``, and ``y`` float32 [N, C].

    Raises:
        DataError: an array is inconsistent with the others, or a target is missing, infinite or no number.
    """
    y = np.asarray(arrays["y"])
    if y.dtype.kind not in "biuf":
        raise DataError(f"{path}: y has type {y.dtype}; expected numbers, the targets of nodes")
    if y.ndim not in (1, 2):
        raise DataError(f"{path}: y has shape {list(y.shape)}; expected [N] or [N, C], the targets of each node")
    targets = y.reshape(len(y), -1).astype(np.float64)
    if (wrong := ~np.isfinite(targets) | (np.abs(targets) > np.finfo(np.float32).max)).any():
        node = int(np.flatnonzero(wrong.any(axis=1))[0])
        raise DataError(
            f"{path}: a target of node {node} is {targets[node][wrong[node]][0]:g}; expected finite float32 numbers for all nodes"
        )
    classes = {"y": np.zeros(len(y), dtype=np.int64), "n_classes": None, "known": None}
    form = form_of_arrays(path, {**arrays, **classes}, replace(options, labels=None, unlabelled=None))
    ignored = set(form.ignored) - set(classes) | ({"edge_weight"} if form.edge_weight is not None else set())
    targets = np.ascontiguousarray(targets, dtype=np.float32)
    return replace(form, level="NR", labels="real", y=targets, edge_weight=None, ignored=tuple(sorted(ignored)))


def node_target_spec(path: Path) -> FileDatasetSpec | None:
    """Return the spec of a data file whose nodes have real targets, or ``None`` if its items are others.

    Raises:
        DataError: the file cannot be read, or its arrays are inconsistent.
    """
    return _spec(path, content_of(path), options_of(path))


@lru_cache(maxsize=32)
def _spec(path: Path, content: str, options: FileOptions) -> FileDatasetSpec | None:
    arrays: Mapping[str, Array | Any] = read_arrays(path, options)
    if not has_node_targets(arrays, options):
        return None
    form = form_of_node_targets(path, arrays, options)
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
        facts=tuple((name, fact.replace("per graph", "per node")) for name, fact in facts_of(form)),
        warnings=tuple(warning.replace("for every graph", "for every node") for warning in warnings_of(form)),
        distinct={name: len(np.unique(values)) for name, values in form.keys.items()},
        deciles={
            name: tuple(np.unique(np.quantile(values, [0.1 * k for k in range(1, 10)], method="higher")).tolist())
            for name, values in form.keys.items()
            if values.size
        },
    )
