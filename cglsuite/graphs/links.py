"""An in-memory dataset whose items are links (pairs of nodes), validated on construction."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from cglsuite.base.errors import DataError
from cglsuite.graphs.data import check_label_form, check_label_range


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkData:
    """A dataset of links among N nodes, for link classification or link prediction.

    In link classification, every link has a class or labels. In link prediction, every item is an existing link: ``y`` is bool [M, 1], all
    true, and the stream draws negative pairs.

    Args:
        links: int64 [2, M], sources in row 0 and targets in row 1 (any order if undirected). Duplicates are separate items.
        y: int64 [M], class ids in ``0..n_classes-1``, or -1 for unlabelled links; bool [M, C] for multi-label links.
        n_classes: number of outputs C.
        n_nodes: number of nodes N.
        x: float32 [N, F], dense or sparse CSR; ``None`` if nodes have no features (``scenario.node_features = degrees``).
        base_edges: int64 [2, B], additional edges that always carry messages and are not items.
        known: bool [M, C], which labels of a multi-label link are known. With ``None``, all labels of a link with any label are known.
        node_types: int64 [N], node types such as users and items; ``None`` = one type. The ends of a negative pair have the same types as
            those of some link.
        official_split: int8 [M] with 0 training, 1 validation, 2 test, -1 unused; ``None`` if the source has no split.
        keys: additional int64 [M] attributes by name, such as ``time``.

    Raises:
        DataError: shapes are inconsistent, features are NaN or infinite, nodes or labels are out of range, or there are no links.
    """

    links: Tensor
    y: Tensor
    n_classes: int
    n_nodes: int
    x: Tensor | None = None
    base_edges: Tensor = field(default_factory=lambda: torch.empty(2, 0, dtype=torch.int64))
    known: Tensor | None = None
    node_types: Tensor | None = None
    official_split: Tensor | None = None
    keys: Mapping[str, Tensor] = field(default_factory=dict)
    name: str = "links"

    def __post_init__(self) -> None:
        m = self.y.shape[0]
        check_label_form(self.name, self.y, self.n_classes)
        check_label_range(self.name, self.y, self.n_classes)
        if m == 0:
            raise DataError(f"{self.name}: the dataset has no links; expected at least one")
        for label, edges in (("links", self.links), ("base_edges", self.base_edges)):
            if edges.dtype != torch.int64 or edges.dim() != 2 or edges.shape[0] != 2:
                raise DataError(f"{self.name}: {label} is {edges.dtype} {list(edges.shape)}; expected int64 [2, M]")
            outside = ((edges < 0) | (edges >= self.n_nodes)).any(dim=0).nonzero().flatten()
            if outside.numel():
                raise DataError(
                    f"{self.name}: {label} contains a node outside 0..{self.n_nodes - 1}, the first at position {int(outside[0])} "
                    f"({edges[:, outside[0]].tolist()}): renumber the nodes in the loader, or raise n_nodes"
                )
        per_link = {"links": self.links.T, "known": self.known, "official_split": self.official_split, **self.keys}
        for label, value in per_link.items():
            if value is not None and value.shape[0] != m:
                raise DataError(f"{self.name}: {label} has {value.shape[0]} entries; expected one per link, {m}")
        if self.node_types is not None and self.node_types.shape != (self.n_nodes,):
            raise DataError(f"{self.name}: node_types has shape {list(self.node_types.shape)}; expected [{self.n_nodes}]")
        self._check_features()

    def _check_features(self) -> None:
        if self.x is None:
            return
        if self.x.dim() != 2 or self.x.shape[0] != self.n_nodes or self.x.dtype != torch.float32:
            raise DataError(f"{self.name}: x is {self.x.dtype} {list(self.x.shape)}; expected float32 [{self.n_nodes}, F]")
        if self.x.layout not in (torch.strided, torch.sparse_csr):
            raise DataError(f"{self.name}: x has layout {self.x.layout}; expected dense or sparse CSR")
        values = self.x.values() if self.x.layout == torch.sparse_csr else self.x
        if not bool(torch.isfinite(values).all()):
            raise DataError(f"{self.name}: feature values are NaN or infinite; fix the file, or impute the values in the loader")

    def __repr__(self) -> str:
        features = "no features" if self.x is None else f"{self.n_features:,} features"
        return f"<LinkData {self.name}: {self.n_items:,} links among {self.n_nodes:,} nodes, {features}, {self.n_classes} outputs>"

    @property
    def multi_label(self) -> bool:
        """Whether the dataset is multi-label (``y`` is bool [M, C])."""
        return self.y.dim() == 2

    @property
    def n_items(self) -> int:
        """Number of items M, which are links."""
        return int(self.y.shape[0])

    @property
    def n_features(self) -> int | None:
        """Number of node features F, or ``None`` if nodes have no features."""
        return None if self.x is None else int(self.x.shape[1])

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 hash (hex) of the whole dataset. Equal data have equal hashes on every machine."""
        total = hashlib.sha256(f"links|{self.n_nodes}|{self.n_classes}".encode())
        named = {"y": self.y, "links": self.links, "base_edges": self.base_edges, "known": self.known, "node_types": self.node_types}
        named |= {"official_split": self.official_split, **{f"key {name}": value for name, value in self.keys.items()}}
        if self.x is not None and self.x.layout == torch.sparse_csr:
            named |= {"x rows": self.x.crow_indices(), "x columns": self.x.col_indices(), "x values": self.x.values()}
        else:
            named |= {"x": self.x}
        for name, value in sorted(named.items()):
            if value is not None:
                array = value.contiguous().numpy()
                total.update(f"|{name}{array.dtype.str}{array.shape}|".encode())
                total.update(array.data)
        return total.hexdigest()
