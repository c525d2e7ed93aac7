"""Small graphs stored one after the other, used for sets of graphs and for memories of subgraphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from cglsuite.graphs.message import scipy_features, torch_csr


@dataclass(frozen=True, kw_only=True, eq=False)
class Pack:
    """n graphs stored one after the other, on the CPU.

    Args:
        x: float32 [N, F], the features of all nodes, graph by graph; dense or sparse CSR.
        edge_index: int64 [2, E], edges ordered by graph, with node ids within the pack.
        node_start: int64 [n + 1], where each graph's nodes begin. edge_start: int64 [n + 1], where each graph's edges begin.
        edge_attr: float32 [E, D], edge features; ``None`` if there are none.
    """

    x: Tensor
    edge_index: Tensor
    node_start: Tensor
    edge_start: Tensor
    edge_attr: Tensor | None = None

    def __len__(self) -> int:
        return int(self.node_start.shape[0]) - 1

    @property
    def sizes(self) -> Tensor:
        """Number of nodes of each graph: int64 [n]."""
        return self.node_start.diff()

    @property
    def n_edges(self) -> int:
        """Number of directed edges of all graphs."""
        return int(self.edge_index.shape[1])

    def take(self, ids: Tensor) -> Pack:
        """Return the graphs at positions ``ids`` (int64 [m])."""
        nodes, node_start = ranges(self.node_start, ids)
        edges, edge_start = ranges(self.edge_start, ids)
        shift = (node_start[:-1] - self.node_start[ids]).repeat_interleave(edge_start.diff())
        return Pack(
            x=taken_rows(self.x, nodes),
            edge_index=self.edge_index[:, edges] + shift,
            node_start=node_start,
            edge_start=edge_start,
            edge_attr=None if self.edge_attr is None else self.edge_attr[edges],
        )

    def joined(self, others: Sequence[Pack]) -> Pack:
        """Return a pack with these graphs followed by the graphs of ``others``."""
        packs = [self, *others]
        nodes, edges = _offsets([p.x.shape[0] for p in packs]), _offsets([p.n_edges for p in packs])
        zero = torch.zeros(1, dtype=torch.int64)
        return Pack(
            x=stacked_rows([p.x for p in packs]),
            edge_index=torch.cat([p.edge_index + o for p, o in zip(packs, nodes, strict=True)], dim=1),
            node_start=torch.cat([zero, *(p.node_start[1:] + o for p, o in zip(packs, nodes, strict=True))]),
            edge_start=torch.cat([zero, *(p.edge_start[1:] + o for p, o in zip(packs, edges, strict=True))]),
            edge_attr=None if self.edge_attr is None else torch.cat([p.edge_attr for p in packs if p.edge_attr is not None]),
        )

    def payload(self) -> dict[str, Tensor]:
        """All tensors by name."""
        parts = {"x": self.x, "edge_index": self.edge_index, "node_start": self.node_start, "edge_start": self.edge_start}
        return parts if self.edge_attr is None else parts | {"edge_attr": self.edge_attr}

    @classmethod
    def of(cls, payload: Mapping[str, Tensor]) -> Pack:
        """Build a pack from the tensors of :meth:`payload`."""
        return cls(**{k: v.cpu() for k, v in payload.items()})


def taken_rows(x: Tensor, rows: Tensor) -> Tensor:
    """Select rows (int64 [m]) of a dense or sparse CSR matrix on the CPU. The result has the same layout."""
    place = rows.cpu()
    if x.layout != torch.sparse_csr:
        return x[place]
    slots, begins = ranges(x.crow_indices(), place)
    return torch.sparse_csr_tensor(begins, x.col_indices()[slots], x.values()[slots], size=(len(place), x.shape[1]), check_invariants=False)


def stacked_rows(parts: Sequence[Tensor]) -> Tensor:
    """Stack matrices that are all dense or all sparse CSR vertically."""
    if parts[0].layout != torch.sparse_csr:
        return torch.cat(list(parts))
    return torch_csr(scipy.sparse.vstack([scipy_features(p) for p in parts], format="csr"))


def _offsets(sizes: Sequence[int]) -> list[int]:
    return np.concatenate([[0], np.cumsum(sizes[:-1], dtype=np.int64)]).tolist()  # type: ignore[no-any-return]


def ranges(start: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Concatenate the positions in the ranges ``ids`` of ``start`` (int64), and return where each range begins (int64 [m + 1])."""
    sizes = start.diff()[ids]
    begins = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    return torch.arange(int(begins[-1])) + (start[ids] - begins[:-1]).repeat_interleave(sizes), begins
