"""Interpret the labels of a data file as classes, label sets or regression targets. Ambiguous labels raise an error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from cglsuite.base.errors import DataError
from cglsuite.base.inputs import quoted, real_number
from cglsuite.graphs.files.options import NONE, FileOptions, advice

Array = np.ndarray[Any, Any]
Items = Literal["nodes", "links", "graphs"]
_SMALLEST_SHARE = 1 / 3
"""The least share of the numbers up to the largest class that must occur as classes."""
_MANY = 10
"""Graph labels with more distinct whole numbers than this, and than half of the graphs, may be counts as targets."""


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Labels in canonical form.

    Attributes:
        kind: ``single``, ``multi`` or ``real``.
        y: int64 [M] (-1 = no label), bool [M, C], or float32 [M, C].
        known: bool [M, C], which labels of a multi-label item are known; ``None`` if all are.
        classes: the class names in the file, ordered by class number; () if the file uses class numbers.
    """

    kind: str
    y: Array
    known: Array | None = None
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Given:
    where: str
    name: str
    of: Items
    options: FileOptions
    y: Array
    missing: Array
    declared: bool  # whether the file itself marks unknown labels
    n_classes: int | None

    @property
    def values(self) -> Array:
        return np.asarray(self.y[~self.missing])

    def ask(self, reason: str, *choices: str) -> DataError:
        return DataError(f"{self.where}: {reason}: {advice(self.name, *choices)}")


def read_labels(
    where: str, name: str, given: Any, items: int, of: Items, options: FileOptions, known: Any = None, n_classes: int | None = None
) -> Labels:
    """Interpret the labels ``y`` of a file.

    Args:
        where: prefix for error messages. name: the data set's name, used to suggest options.
        given: [M], [M, 1] or [M, L]: numbers, truth values or words. An empty word or NaN means no label.
        items: number of items M.
        known: bool, shaped like ``y``, if the file marks the known labels. n_classes: number of outputs if the file specifies it.

    Raises:
        DataError: the labels match no kind, or more than one.
    """
    y = np.asarray(given)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim not in (1, 2) or len(y) != items:
        raise DataError(
            f"{where}: y has shape {list(y.shape)}; expected [{items}] (one class per item) or [{items}, L] (L labels per item)"
        )
    if y.dtype.kind not in "biufU":
        raise DataError(f"{where}: y has dtype {y.dtype}; expected whole numbers from 0 (with -1 for no label), or class names")
    of_file = _Given(where, name, of, options, y, _missing(where, y, options, known), known is not None, n_classes)
    if not of_file.values.size:
        raise DataError(f"{where}: y has no labels: every entry is {'-1 or ' if options.unlabelled == '-1' else ''}empty or NaN")
    if y.dtype.kind == "f" and np.isinf(of_file.values).any():
        raise DataError(f"{where}: y contains {of_file.values[np.isinf(of_file.values)][0]}; expected finite numbers")
    kind = options.labels or _kind(of_file)
    return {"single": _single, "multi": _multi, "real": _real}[kind](of_file)


def _missing(where: str, y: Array, options: FileOptions, known: Any) -> Array:
    """Return a mask of the labels that are unknown according to the file or the options: bool, shaped like ``y``."""
    missing = y == "" if y.dtype.kind == "U" else np.isnan(y) if y.dtype.kind == "f" else np.zeros(y.shape, np.bool_)
    if known is not None:
        given = np.asarray(known)
        given = given.reshape(y.shape) if given.size == y.size else given
        if given.shape != y.shape or given.dtype != np.bool_:
            raise DataError(f"{where}: known is {given.dtype} {list(given.shape)}; expected bool {list(y.shape)}, the shape of y")
        missing = missing | ~given
    if options.unlabelled in (None, NONE):
        return np.asarray(missing)
    if y.dtype.kind == "U":
        return np.asarray(missing | (y == options.unlabelled))
    try:
        return np.asarray(missing | (y == real_number(options.unlabelled)))
    except ValueError:
        raise DataError(
            f"{where}: unlabelled = {quoted(options.unlabelled)}, but y contains numbers; expected a number or 'none'"
        ) from None


def _kind(given: _Given) -> str:
    """Determine the kind of the labels. Raise an error if it is ambiguous."""
    values, graphs = given.values, given.of == "graphs"
    if values.dtype.kind == "U":
        return "single"
    if values.dtype.kind == "b":
        return "multi" if given.y.ndim == 2 or given.n_classes == 1 else "single"
    if graphs and given.n_classes is not None and values.dtype.kind == "f":
        return "real"
    if graphs and values.dtype.kind == "f" and (np.abs(values) > 2**53).any():
        return "real"  # every float of this size is a whole number
    if (values % 1 != 0).any():
        if not graphs:
            what = "class numbers" if given.y.ndim == 1 else "0 and 1"
            raise DataError(
                f"{given.where}: y contains {values[values % 1 != 0][0]}; expected {what} (only whole graphs can have real targets)"
            )
        return "real"
    if given.y.ndim == 2:
        strange = values[~np.isin(values, (-1, 0, 1))]
        if strange.size and not graphs:
            raise DataError(f"{given.where}: y contains {strange[0]}; expected 0 and 1 (only whole graphs can have real targets)")
        return "real" if strange.size else "multi"
    if not graphs or given.n_classes is not None:
        return "single"
    distinct = np.unique(values)
    counts = len(distinct) > _MANY and len(distinct) > len(given.y) / 2
    if counts or (values.dtype.kind == "f" and not np.isin(distinct, (-1, 0, 1)).all()) or distinct[0] < -1 or _sparse(distinct):
        raise given.ask(
            f"y contains {len(distinct)} distinct whole numbers from {distinct[0]:g} to {distinct[-1]:g}, which could be classes or "
            "real targets",
            "labels=single",
            "labels=real",
        )
    return "single"


def _sparse(distinct: Array) -> bool:
    return bool(len(distinct[distinct >= 0]) < _SMALLEST_SHARE * (distinct[-1] + 1))


def _single(given: _Given) -> Labels:
    if given.y.ndim == 2:
        if given.options.labels is None:
            raise DataError(
                f"{given.where}: y contains words in {given.y.shape[1]} columns; expected one class name per item, or a column of "
                "0 and 1 per label"
            )
        raise DataError(
            f"{given.where}: labels = single, but y has shape {list(given.y.shape)}; expected [{len(given.y)}], one class per item"
        )
    if given.values.dtype.kind == "U":
        return _numbered(given, given.missing)
    values = given.values
    if values.dtype.kind == "f" and ((wrong := (values % 1 != 0) | (np.abs(values) > 2**53)).any()):
        raise DataError(f"{given.where}: y contains {values[wrong][0]}, which is not a class number (labels = single)")
    missing = given.missing
    if given.options.unlabelled is None and not given.declared and (values == -1).any():
        missing = missing | _minus_one(given, np.unique(values[values != -1]))
    distinct = np.unique(given.y[~missing]).astype(np.int64)
    stated = given.options.labels == "single" or given.options.unlabelled == NONE
    if distinct[0] < 0 and not stated:
        raise _negative(given, distinct[0])
    if distinct[0] < 0 or (stated and _sparse(distinct)):
        return _numbered(given, missing)
    if given.n_classes is None and _sparse(distinct):
        raise DataError(
            f"{given.where}: y has {len(distinct)} classes with numbers up to {distinct[-1]}; expected numbers from 0 to "
            f"{len(distinct) - 1}. Use y = numpy.unique(y, return_inverse=True)[1], or {advice(given.name, 'labels=single')}"
        )
    if given.n_classes is not None and distinct[-1] >= given.n_classes:
        raise DataError(
            f"{given.where}: y contains class {distinct[-1]}; expected 0 to {given.n_classes - 1}, since n_classes is {given.n_classes}"
        )
    y = np.where(missing, -1, np.where(missing, 0, given.y).astype(np.int64))
    return Labels(kind="single", y=np.ascontiguousarray(y))


def _negative(given: _Given, value: Any) -> DataError:
    return given.ask(
        f"y holds {value:g}; expected classes from 0, and -1 where there is no label; where every value is a class", "unlabelled=none"
    )


def _minus_one(given: _Given, others: Array) -> Array:
    """Return a mask of the items without a label. -1 means "no label" if the other classes are 0, 1, 2, ... without gaps."""
    if not others.size:
        raise DataError(f"{given.where}: y has no labels: every entry is -1")
    if others[0] < -1:
        raise _negative(given, others[0])
    if len(others) < 3 or len(others) != others[-1] + 1:
        listed = ", ".join(f"{value:g}" for value in others[:4]) + (", ..." if len(others) > 4 else "")
        raise given.ask(
            f"y contains -1, {listed}, where -1 could be a class or mark items without a label", "unlabelled=none", "unlabelled=-1"
        )
    return np.asarray(given.y == -1)


def _numbered(given: _Given, missing: Array) -> Labels:
    """Number the classes in the sorted order of their names or values."""
    names, numbers = np.unique(given.y[~missing], return_inverse=True)
    y = np.full(len(given.y), -1, dtype=np.int64)
    y[~missing] = numbers
    return Labels(kind="single", y=y, classes=tuple(name if isinstance(name, str) else f"{name:g}" for name in names.tolist()))


def _multi(given: _Given) -> Labels:
    if given.y.ndim == 1:
        return _truth(given)
    y, missing = given.y.reshape(len(given.y), -1), given.missing.reshape(len(given.y), -1)
    values = given.values
    if values.dtype.kind == "U" or not np.isin(values, (-1, 0, 1)).all():
        strange = values[0] if values.dtype.kind == "U" else values[~np.isin(values, (0, 1))][0]
        raise DataError(
            f"{given.where}: y contains {quoted(strange.item())}; expected 1 for the labels that an item has and 0 for all others"
        )
    if (values == -1).any():
        if given.options.unlabelled is None:
            false = "-1, 0 and 1: -1 may" if (values == 0).any() else "-1 and 1: write 0 for -1 where it is false; it may also"
            raise given.ask(f"y contains {false} mark unknown labels", "unlabelled=-1")
        raise DataError(f"{given.where}: y contains -1, but unlabelled = {given.options.unlabelled}; expected 0 or 1 for every known label")
    if given.n_classes is not None and given.n_classes != y.shape[1]:
        raise DataError(f"{given.where}: y has {y.shape[1]} columns; expected {given.n_classes}, one per label (n_classes)")
    if given.of == "nodes" and (partly := missing.any(axis=1) & ~missing.all(axis=1)).any():
        raise DataError(
            f"{given.where}: node {int(np.flatnonzero(partly)[0])} has both known and unknown labels, but a node's labels must be "
            "all known or "
            "all unknown: remove the unknown labels or the nodes that have them"
        )
    if given.of == "nodes" and not (y == 1).any():
        raise DataError(f"{given.where}: y is 0 everywhere, so no node has a label; expected 1 for the labels that a node has")
    return Labels(kind="multi", y=np.ascontiguousarray((y == 1) & ~missing), known=None if given.of == "nodes" else ~missing)


def _truth(given: _Given) -> Labels:
    """Convert two classes to one binary label per item: whether it has the second class."""
    classes = _single(replace(given, n_classes=None))
    if given.of == "nodes" or classes.y.max() > 1:
        what = f"y has {classes.y.max() + 1} classes" if classes.y.max() > 1 else "nodes have one class each"
        raise DataError(
            f"{given.where}: labels = multi, but {what}; expected one column of 0 and 1 per label, or links or graphs with two classes"
        )
    return Labels(kind="multi", y=(classes.y == 1)[:, None], known=(classes.y >= 0)[:, None], classes=classes.classes)


def _real(given: _Given) -> Labels:
    if given.of != "graphs":
        raise DataError(f"{given.where}: labels = real, but the items are {given.of}; only whole graphs can have real targets")
    if given.values.dtype.kind == "U":
        raise DataError(f"{given.where}: labels = real, but y contains {quoted(str(given.values[0]))}; expected numbers")
    if given.missing.any():
        item = int(np.flatnonzero(given.missing.reshape(len(given.y), -1).any(axis=1))[0])
        raise DataError(f"{given.where}: graph {item} has no target; remove graphs without a target")
    y = given.y.reshape(len(given.y), -1).astype(np.float64)
    if (wrong := np.abs(y) > np.finfo(np.float32).max).any():
        raise DataError(f"{given.where}: y contains {y[wrong][0]:g}, which float32 cannot represent; scale the targets")
    return Labels(kind="real", y=np.ascontiguousarray(y, dtype=np.float32))
