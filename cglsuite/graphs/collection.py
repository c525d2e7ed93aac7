"""Graph-level data: sets of graphs that a model processes in one pass, and datasets whose items are graphs."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol, Self

import torch
from torch import Tensor

from cglsuite.base.errors import DataError
from cglsuite.graphs.data import check_label_form, check_label_range
from cglsuite.graphs.message import Operator, stored_bytes
from cglsuite.graphs.sparse import SparseMatrix

Pooling = Literal["sum", "mean", "max"]
"""How node embeddings are pooled into one graph embedding."""


class GraphSet(ABC):
    """A batch of n graphs as model input: their disjoint union, with nodes in an implementation-defined order.

    Graph layers see a message graph (``features``, ``propagate``, ``edges_with_loops``, ``n_nodes``, ``device``); :meth:`pool` maps node
    rows to graph rows. Labels and graphs outside the set are not accessible from this object.
    """

    features: Tensor | SparseMatrix
    """float32 [N, F], features of all nodes, sparse if the dataset stores them sparse."""
    device: torch.device
    edge_features: Tensor | None = None
    """float32 [E, D], one row for each of the first E columns of :attr:`edges_with_loops`; ``None`` if edges have no features."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of graphs n."""

    @property
    def n_nodes(self) -> int:
        """Total number of nodes N."""
        return int(self.features.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features F per node."""
        return int(self.features.shape[1])

    @property
    def n_edges(self) -> int:
        """Number of directed edges E without self-loops."""
        return int(self.edges_with_loops.shape[1]) - self.n_nodes

    @property
    def n_edge_features(self) -> int:
        """Number of edge features D; 0 if there are none."""
        return 0 if self.edge_features is None else int(self.edge_features.shape[1])

    @property
    def edge_index(self) -> Tensor:
        """The edges (source, target) without self-loops: int64 [2, E]."""
        return self.edges_with_loops[:, : self.n_edges]

    @property
    def dense(self) -> Tensor:
        """Dense node features: float32 [N, F]."""
        return self.features if isinstance(self.features, Tensor) else self.features.csr.to_dense()

    @property
    @abstractmethod
    def edges_with_loops(self) -> Tensor:
        """Edges (source, target) without self-loops, followed by one self-loop per node: int64 [2, E']."""

    @abstractmethod
    def propagate(self, kind: Operator, hidden: Tensor) -> Tensor:
        """Propagate messages within the graphs: float32 [N, d] to [N, d]; operators as in :class:`cglsuite.graphs.MessageGraph`."""

    @abstractmethod
    def pool(self, hidden: Tensor, how: Pooling) -> Tensor:
        """Pool over the nodes of each graph: float32 [N, d] to [n, d]."""

    def mean_features(self) -> Tensor:
        """Mean node features of each graph, dense: float32 [n, F]."""
        if isinstance(self.features, SparseMatrix):
            raise NotImplementedError(f"{type(self).__name__} has sparse features and must implement mean_features()")
        return self.pool(self.features, "mean")

    @abstractmethod
    def take(self, ids: Tensor) -> Self:
        """Return the graphs at positions ``ids`` (int64 [m]). The result contains no data from other graphs."""

    @abstractmethod
    def merged(self, others: Sequence[Self]) -> Self:
        """Return a set with the graphs of this set followed by those of ``others``."""

    def epoch(self, number: int) -> Self:
        """Return the training graphs for epoch ``number`` (0-based), augmented if the dataset uses augmentation."""
        return self

    @abstractmethod
    def payload(self) -> dict[str, Tensor]:
        """Return the CPU tensors in which a replay memory stores these graphs. :meth:`rebuilt` is the inverse."""

    @abstractmethod
    def rebuilt(self, payload: Mapping[str, Tensor]) -> Self:
        """Rebuild a set of graphs from ``payload`` with this set's type, device and augmentation."""

    def bytes(self) -> int:
        """Size of the payload in bytes."""
        return sum(map(stored_bytes, self.payload().values()))


class GraphSource(Protocol):
    """The graphs of a dataset, used to build model inputs."""

    def __len__(self) -> int:
        """Number of graphs."""

    @property
    def n_features(self) -> int:
        """Number of features F per node."""

    @property
    def content_hash(self) -> str:
        """SHA-256 hash (hex) of everything that determines the inputs."""

    def training(self, ids: Tensor, seed: int, device: str) -> GraphSet:
        """Return the graphs ``ids`` (int64 [n]) for training. Augmentation depends only on (seed, graph, epoch)."""

    def queries(self, ids: Tensor, device: str) -> GraphSet:
        """Return the graphs ``ids`` (int64 [n]) as queries, without augmentation and without their ids."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphData:
    """A dataset whose items are graphs.

    Args:
        items: the graphs.
        y: int64 [N], class ids in ``0..n_classes-1``, or -1 for unlabelled graphs; bool [N, C] for multi-label graphs; float32 [N, C] for
            regression targets.
        n_classes: number of outputs C.
        known: bool [N, C], which labels of a multi-label graph are known. With ``None``, all labels of a graph with any label are known.
        official_split: int8 [N] with 0 training, 1 validation, 2 test, -1 unused; ``None`` if the source has no split.
        keys: additional int64 [N] attributes by name, such as ``subject``.
        notes: counts to report in a record, such as the number of degenerate items.

    Raises:
        DataError: shapes are inconsistent, labels are out of range, or a target is not finite.
    """

    items: GraphSource
    y: Tensor
    n_classes: int
    known: Tensor | None = None
    official_split: Tensor | None = None
    keys: Mapping[str, Tensor] = field(default_factory=dict)
    name: str = "graphs"
    notes: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.items)
        check_label_form(self.name, self.y, self.n_classes, real=True)
        check_label_range(self.name, self.y, self.n_classes)
        known = self.known
        if known is not None and (known.dtype != torch.bool or known.shape != self.y.shape or self.y.dtype != torch.bool):
            raise DataError(
                f"{self.name}: known is {known.dtype} {list(known.shape)}; expected bool with the shape of y (multi-label graphs only)"
            )
        for label, value in {"y": self.y, "official_split": self.official_split, **self.keys}.items():
            if value is not None and value.shape[:1] != (n,):
                raise DataError(f"{self.name}: {label} has shape {list(value.shape)}; expected [{n}], one entry per graph")

    def __repr__(self) -> str:
        return f"<GraphData {self.name}: {self.n_items:,} graphs, {self.n_features:,} features, {self.n_classes} outputs>"

    @property
    def multi_label(self) -> bool:
        """Whether the dataset is multi-label (``y`` is bool [N, C])."""
        return self.y.dtype == torch.bool

    @property
    def n_items(self) -> int:
        """Number of graphs N."""
        return int(self.y.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features F per node."""
        return self.items.n_features

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 hash (hex) of the whole dataset. Equal data have equal hashes on every machine."""
        total = hashlib.sha256(f"{self.items.content_hash}|{self.n_classes}".encode())
        for name, value in sorted({"y": self.y, "known": self.known, "official_split": self.official_split, **self.keys}.items()):
            if value is not None:
                array = value.contiguous().numpy()
                total.update(f"|{name}{array.dtype.str}{array.shape}|".encode())
                total.update(array.data)
        return total.hexdigest()
