"""Items that a method keeps for replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import scipy.sparse
import torch
from torch import Tensor

from cglsuite.graphs import GraphSet
from cglsuite.graphs.message import scipy_features

__all__ = ["MemoryItems", "torch_csr"]


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryItems:
    """Items kept for replay: by reference (``x`` is ``None``: read from the current permitted graph) or with what they consist of.

    Args:
        ids: int64 [n], ids in the graph the items were sampled from.
        y: int64 [n] or bool [n, C], their labels when they were taken. tasks: int64 [n], the positions of the tasks they came with.
        x: features of nodes (float32 [n, F], dense or sparse CSR), a set of n graphs, or ``None``.
    """

    ids: Tensor
    y: Tensor
    tasks: Tensor
    x: Tensor | GraphSet | None = None

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    def bytes(self) -> int:
        """Memory held, in bytes."""
        own = 8 * 2 * len(self) + self.y.numel() * self.y.element_size()
        if self.x is None:
            return own
        if isinstance(self.x, GraphSet):
            return own + self.x.bytes()
        if self.x.layout == torch.sparse_csr:
            return own + 12 * int(self.x.values().shape[0]) + 8 * (len(self) + 1)
        return own + 4 * self.x.numel()

    def take(self, chosen: Tensor) -> MemoryItems:
        """The items at positions ``chosen`` (int64 [m])."""
        x = self.x
        if isinstance(x, GraphSet):
            x = x.take(chosen)
        elif x is not None:
            place = chosen.cpu()
            x = torch_csr(scipy_features(x)[place.numpy()]) if x.layout == torch.sparse_csr else x[place]
        return MemoryItems(ids=self.ids[chosen], y=self.y[chosen], tasks=self.tasks[chosen], x=x)

    @classmethod
    def joined(cls, parts: Sequence[MemoryItems]) -> MemoryItems:
        """The items of several samples, of one kind, as one."""
        if len(parts) == 1:
            return parts[0]
        stored = [p.x for p in parts if p.x is not None]
        x: Tensor | GraphSet | None = None
        if stored and isinstance(stored[0], GraphSet):
            x = stored[0].merged(stored[1:])  # type: ignore[arg-type]
        elif stored:
            tensors = [s for s in stored if isinstance(s, Tensor)]
            sparse = tensors[0].layout == torch.sparse_csr
            x = torch_csr(scipy.sparse.vstack([scipy_features(s) for s in tensors], format="csr")) if sparse else torch.cat(tensors)
        return cls(ids=torch.cat([p.ids for p in parts]), y=torch.cat([p.y for p in parts]), tasks=torch.cat([p.tasks for p in parts]), x=x)

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"ids": self.ids, "y": self.y, "tasks": self.tasks, "x": self.x.payload() if isinstance(self.x, GraphSet) else self.x}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], device: torch.device, like: GraphSet | None = None) -> MemoryItems:
        """The items that :meth:`state` describes; ids and labels on ``device``, features of nodes stay on the CPU.

        Args:
            like: any set of graphs of the dataset, by which kept graphs are rebuilt.
        """
        ids, y, tasks = (state[name].to(device) for name in ("ids", "y", "tasks"))
        x = state["x"]
        return cls(ids=ids, y=y, tasks=tasks, x=like.rebuilt(x) if like is not None and isinstance(x, Mapping) else x)


def torch_csr(rows: scipy.sparse.csr_matrix) -> Tensor:
    """A SciPy CSR matrix as a torch CSR tensor with 64-bit indices."""
    parts = (torch.from_numpy(rows.indptr.astype("int64")), torch.from_numpy(rows.indices.astype("int64")), torch.from_numpy(rows.data))
    return torch.sparse_csr_tensor(*parts, size=rows.shape, check_invariants=False)
