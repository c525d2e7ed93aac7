"""A node-level dataset in memory, validated on construction."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from cglsuite.base.errors import DataError

_PIECE = 2**16  # rows checked at a time
_KINDS = {(torch.int64, 1): "single", (torch.bool, 2): "multi", (torch.float32, 2): "real"}


def label_kind(y: Tensor) -> str:
    """Return the kind of labels: ``single`` (int64 [N]), ``multi`` (bool [N, C]) or ``real`` (float32 [N, C])."""
    return _KINDS[y.dtype, y.dim()]


def labelled_items(y: Tensor, known: Tensor | None) -> Tensor:
    """Return which items may belong to a task: bool [N].

    These are the items with a class (int64 [N], -1 = none), with regression targets, or with at least one known label. If ``known`` (bool
    [N, C]) is not given, a multi-label item without any label counts as unlabelled.
    """
    if known is not None:
        return known.any(dim=1)
    kind = label_kind(y)
    return y >= 0 if kind == "single" else y.any(dim=1) if kind == "multi" else torch.ones(len(y), dtype=torch.bool)


def check_label_form(name: str, y: Tensor, n_classes: int, *, real: bool = False) -> None:
    """Check that labels are int64 [N] or bool [N, C], or float32 [N, C] if regression targets are allowed (``real``).

    Raises:
        DataError: the dtype, shape or number of columns is wrong, or a target is not finite. The message contains ``name``.
    """
    kind = _KINDS.get((y.dtype, y.dim()))
    if kind is None or (kind == "real" and not real):
        also = ", or float32 [N, C] for real targets" if real else ""
        raise DataError(f"{name}: y is {y.dtype} {list(y.shape)}; expected int64 [N], or bool [N, C] for multi-label{also}")
    if kind != "single" and y.shape[1] != n_classes:
        what = "target" if kind == "real" else "label"
        raise DataError(f"{name}: y has {y.shape[1]} columns; expected one per {what}, {n_classes}")
    if kind == "real" and bool((bad := ~torch.isfinite(y).all(dim=1)).any()):
        raise DataError(
            f"{name}: {int(bad.sum())} targets are NaN or infinite, the first at item {int(bad.nonzero()[0])}; "
            "remove these items in the loader"
        )


def check_label_range(name: str, y: Tensor, n_classes: int) -> None:
    """Check that class ids (int64 [N]) lie in ``-1..n_classes-1``; bool labels [N, C] always pass.

    Raises:
        DataError: an id is out of range. The message contains ``name``.
    """
    if y.dim() == 1 and y.numel() and (int(y.min()) < -1 or int(y.max()) >= n_classes):
        raise DataError(f"{name}: labels range over {int(y.min())}..{int(y.max())}; expected -1..{n_classes - 1}")


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeData:
    """A graph with node features and node labels, single-label or multi-label.

    Args:
        x: float32 [N, F], dense or sparse CSR.
        edge_index: int64 [2, E], sources in row 0 and targets in row 1.
        y: int64 [N], class ids in ``0..n_classes-1``, or -1 for unlabelled nodes; bool [N, C] for multi-label nodes.
        n_classes: number of classes C.
        official_split: int8 [N] with 0 training, 1 validation, 2 test, -1 unused; ``None`` if the source has no split.
        keys: additional int64 [N] attributes by name, such as ``year``.

    Raises:
        DataError: shapes are inconsistent, features are NaN or infinite, or labels or edges are out of range.
    """

    x: Tensor
    edge_index: Tensor
    y: Tensor
    n_classes: int
    official_split: Tensor | None = None
    keys: Mapping[str, Tensor] = field(default_factory=dict)
    name: str = "graph"

    def __post_init__(self) -> None:
        n = self.y.shape[0]
        check_label_form(self.name, self.y, self.n_classes)
        if self.x.dim() != 2 or self.x.shape[0] != n or self.x.dtype != torch.float32:
            raise DataError(f"{self.name}: x is {self.x.dtype} {list(self.x.shape)}; expected float32 [{n}, F]")
        if self.x.layout not in (torch.strided, torch.sparse_csr):
            raise DataError(f"{self.name}: x has layout {self.x.layout}; expected dense or sparse CSR")
        if self.edge_index.dtype != torch.int64 or self.edge_index.dim() != 2 or self.edge_index.shape[0] != 2:
            raise DataError(f"{self.name}: edge_index is {self.edge_index.dtype} {list(self.edge_index.shape)}; expected int64 [2, E]")
        self._check_values(n)

    def _check_values(self, n: int) -> None:
        values = self.x.values() if self.x.layout == torch.sparse_csr else self.x
        pieces = values.split(_PIECE) if len(values) else ()
        if not all(torch.isfinite(piece).all() for piece in pieces):
            bad = ~torch.isfinite(values)
            position = int(bad.flatten().nonzero()[0])
            if self.x.layout == torch.sparse_csr:
                row = int(torch.searchsorted(self.x.crow_indices(), position, right=True)) - 1
            else:
                row = position // self.x.shape[1]
            raise DataError(
                f"{self.name}: {int(bad.sum())} feature values are NaN or infinite, the first at node {row}; "
                "fix the file, or "
                "impute the values in the loader"
            )
        if self.edge_index.numel() and (int(self.edge_index.min()) < 0 or int(self.edge_index.max()) >= n):
            raise DataError(f"{self.name}: an edge refers to a node outside 0..{n - 1}")
        check_label_range(self.name, self.y, self.n_classes)
        for label, value in {"official_split": self.official_split, **self.keys}.items():
            if value is not None and value.shape[:1] != (n,):
                raise DataError(f"{self.name}: {label} has shape {list(value.shape)}; expected [{n}]")

    def __repr__(self) -> str:
        kind = "labels" if self.multi_label else "classes"
        keys = f", keys {', '.join(sorted(self.keys))}" if self.keys else ""
        edges = self.edge_index.shape[1]
        return (
            f"<NodeData {self.name}: {self.n_nodes:,} nodes, {edges:,} edges, {self.n_features:,} features, {self.n_classes} {kind}{keys}>"
        )

    @property
    def multi_label(self) -> bool:
        """Whether the dataset is multi-label (``y`` is bool [N, C])."""
        return self.y.dim() == 2

    @property
    def known(self) -> Tensor | None:
        """Always ``None``, because all labels of a node are known."""
        return None

    @property
    def n_nodes(self) -> int:
        """Number of nodes N."""
        return self.y.shape[0]

    @property
    def n_items(self) -> int:
        """Number of items, which are nodes."""
        return self.n_nodes

    @property
    def n_features(self) -> int:
        """Number of node features F."""
        return self.x.shape[1]

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 hash (hex) of the whole dataset. Equal data have equal hashes on every machine."""
        total = hashlib.sha256(f"{self.n_nodes}|{self.n_features}|{self.n_classes}".encode())
        sparse = self.x.layout == torch.sparse_csr
        parts = [self.x.crow_indices(), self.x.col_indices(), self.x.values()] if sparse else [self.x]
        parts += [self.edge_index, self.y]
        named = {"official_split": self.official_split, **self.keys}
        for part in parts + [v for _, v in sorted(named.items()) if v is not None]:
            array = part.contiguous().numpy()
            total.update(f"|{array.dtype.str}{array.shape}|".encode())
            total.update(array.data)
        total.update("|".join(k for k, v in sorted(named.items()) if v is not None).encode())
        return total.hexdigest()
