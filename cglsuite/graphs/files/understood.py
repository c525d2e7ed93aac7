"""Describe how a data file was interpreted: its graph, labels, times, splits, unused parts and suspicious values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from cglsuite.base.markup import several
from cglsuite.graphs.files.forms import Form
from cglsuite.graphs.files.tables import MASKS

Array = np.ndarray[Any, Any]
_SHOWN = 12
_MANY_CONSTANT = 100
_FEW_ROWS = 3
"""With this few nodes, a feature may count up by chance."""
_LARGEST_SQUARE = float(np.sqrt(np.finfo(np.float32).max))
_WHY = {
    "edge_weight": "weights of edges: one finite number per edge, between nodes as items, can be used",
    "train": "training nodes alone are no split: a split is drawn",
    "node_types": "types of nodes: only links have them",
}


def facts_of(form: Form) -> tuple[tuple[str, str], ...]:
    """Return (name, value) pairs that describe what was read from the file."""
    return tuple(_facts(form))


def _facts(form: Form) -> Iterator[tuple[str, str]]:
    of_links = form.level in ("LC", "LP")
    if form.graph is not None:
        sizes = np.bincount(form.graph)
        yield "graphs", f"{len(sizes):,} of {sizes.min():,} to {sizes.max():,} nodes" if len(sizes) else "0"
    features = "no features" if form.x is None else several(form.x.shape[1], "feature")
    yield "nodes", f"{form.n_nodes:,}, {features}"
    yield "links" if of_links else "edges", _edges(form)
    if form.base_edges is not None and form.base_edges.size:
        yield "further edges", f"{form.base_edges.shape[1]:,}, which are no items"
    if form.node_types is not None:
        yield "types of nodes", _counted(*np.unique(form.node_types, return_counts=True))
    if form.y is not None:
        yield from _labels(form)
    for name, values in form.keys.items():
        yield ("times" if name == "time" else f"attribute {name}"), _values(values, form.time_unit if name == "time" else "")
    if form.split is not None:
        yield "official split", ", ".join(f"{int((form.split == part).sum()):,} {name}" for part, name in enumerate(MASKS))
    yield "not used", ", ".join(form.ignored) or "nothing"


def _edges(form: Form) -> str:
    source, target = form.edges
    count = form.edges.shape[1]
    loops = int((source == target).sum())
    keys = np.unique(source * max(form.n_nodes, 1) + target)
    both = count and len(keys) and np.array_equal(keys, np.unique(target * max(form.n_nodes, 1) + source))
    parts = [f"{count:,}", "in both directions" if both else "directed", _weights(form)]
    if form.edge_attr is not None:
        parts.append(several(form.edge_attr.shape[1], "feature"))
    return ", ".join([*parts, several(loops, "self-loop"), several(count - len(keys), "duplicate")])


def _weights(form: Form) -> str:
    if form.edge_weight is not None:
        return f"weights of {form.edge_weight.min(initial=np.inf):g} to {form.edge_weight.max(initial=-np.inf):g}"
    return "weights not used" if any(name.rpartition(" ")[2] in ("edge_weight", "weight") for name in form.ignored) else "not weighted"


def _labels(form: Form) -> Iterator[tuple[str, str]]:
    y, items = form.y, f"{form.n_items:,}"
    if form.labels == "real":
        low, high = y.min(axis=0), y.max(axis=0)
        ranges = [f"{a:g} to {b:g}" for a, b in zip(low[:_SHOWN], high[:_SHOWN], strict=True)]
        yield "targets", f"{several(y.shape[1], 'real number')} per graph: {', '.join(ranges)}"
        return
    if form.labels == "single":
        counts = np.bincount(y[y >= 0], minlength=form.n_classes)
        yield "labelled", f"{int((y >= 0).sum()):,} of {items}"
        yield "classes", f"{form.n_classes:,}: {_counted(form.classes or range(form.n_classes), counts)}"
        return
    known = np.ones(y.shape, np.bool_) if form.known is None else form.known
    labelled = known.any(axis=1) if form.known is not None else y.any(axis=1)
    yield "labelled", f"{int(labelled.sum()):,} of {items}"
    unknown = f"; {int((~known).sum()):,} unknown" if not known.all() else ""
    yield "labels", f"{y.shape[1]:,}: {_counted(range(y.shape[1]), y.sum(axis=0), ' true')}{unknown}"


def _counted(names: Iterable[Any], counts: Iterable[Any], word: str = "") -> str:
    """Summarise counts, as in ``a (12), b (30)``, followed by the number of entries left out."""
    pairs = [(name, int(count)) for name, count in zip(names, counts, strict=True)]
    shown = ", ".join(f"{name} ({count:,}{word})" for name, count in pairs[:_SHOWN])
    if len(pairs) <= _SHOWN:
        return shown
    rest = [count for _, count in pairs[_SHOWN:]]
    return f"{shown} and {len(rest):,} more ({min(rest):,} to {max(rest):,}{word})"


def _values(values: Array, unit: str) -> str:
    distinct = np.unique(values)
    low, high = (distinct[0], distinct[-1]) if distinct.size else (0, 0)
    shown = f"{_date(low, unit)} to {_date(high, unit)} ({unit}s)" if unit else f"{low} to {high}"
    return f"{len(distinct):,} distinct, {shown}"


def _date(value: Any, unit: str) -> str:
    from cglsuite.graphs.files.options import UNITS

    return str(np.datetime64(int(value), UNITS[unit]))  # type: ignore[call-overload]


def warnings_of(form: Form) -> tuple[str, ...]:
    """Return warnings to read before trusting results on a data file."""
    return tuple(_warnings(form))


def _warnings(form: Form) -> Iterator[str]:
    if form.ignored:
        of_edges = "only whole graphs have them" if form.graph is None else "every graph needs them, and as many in each"
        why = _WHY | {"edge_attr": f"features of edges: {of_edges}"}
        reasons = [f"{name} ({why[name]})" if name in why else name for name in form.ignored]
        yield f"not used: {', '.join(reasons)}"
    if form.x is not None:
        yield from _features(form.x)
    if form.labels == "real":
        if constant := np.flatnonzero((form.y == form.y[:1]).all(axis=0)).tolist():
            which = ", ".join(map(str, constant[:_SHOWN]))
            yield f"{several(len(constant), 'target')} of {form.y.shape[1]} the same for every graph: {which}"
        if (largest := float(np.abs(form.y).max(initial=0))) > _LARGEST_SQUARE:
            yield f"targets are as large as {largest:.3g}, and float32 cannot hold their squares, the loss: scale them"
    if form.labels == "multi" and form.y is not None:
        known = np.ones(form.y.shape, np.bool_) if form.known is None else form.known
        if same := np.flatnonzero((form.y | ~known).all(axis=0) | ~form.y.any(axis=0)).tolist():
            yield f"{several(len(same), 'label')} of {form.y.shape[1]} the same for every item: {', '.join(map(str, same[:_SHOWN]))}"
    if form.labels != "single" or form.y is None:
        return
    counts = np.bincount(form.y[form.y >= 0], minlength=form.n_classes)
    if (counts > 0).sum() == 1:
        yield "all labels are of one class: every method scores 100%"
    elif empty := np.flatnonzero(counts == 0).tolist():
        hint = "; are the classes counted from 1?" if empty == [0] else ""
        yield f"{several(len(empty), 'class', 'classes')} without an item: {', '.join(map(str, empty[:_SHOWN]))}{hint}"
    if form.split is not None:
        trained, tested = (set(form.y[(form.split == part) & (form.y >= 0)].tolist()) for part in (0, 2))
        if untrained := sorted(tested - trained):
            names = ", ".join(str(form.classes[c] if form.classes else c) for c in untrained[:_SHOWN])
            yield f"the official split has no training item of {several(len(untrained), 'class', 'classes')} that it tests: {names}"


def _features(x: Any) -> Iterator[str]:
    sparse = hasattr(x, "tocsc")
    values = x.data if sparse else x
    largest = float(np.abs(values).max(initial=0)) if values.dtype.kind != "b" else 1.0
    if largest > _LARGEST_SQUARE:
        yield f"features are as large as {largest:.3g}, and float32 cannot hold their squares: nothing can be learnt from them; scale them"
    if x.shape[0] < 2:
        return
    if sparse:
        stored = x.tocsc()
        stored.eliminate_zeros()
        constant = int((np.diff(stored.indptr) == 0).sum())
    else:
        constant = int((x == x[:1]).all(axis=0).sum())
        for column in np.flatnonzero(x[1].astype(np.float64) - x[0] == 1)[:_SHOWN] if x.shape[0] > _FEW_ROWS else ():
            if (np.diff(x[:, column].astype(np.float64)) == 1).all():
                yield f"feature {column} counts the nodes, as an index does, and in a file sorted by class holds the labels: delete it"
    if constant >= _MANY_CONSTANT or constant == x.shape[1]:
        yield f"{constant:,} of {several(x.shape[1], 'feature')} are the same for every node"
