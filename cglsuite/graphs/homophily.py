"""Label homophily of edges, nodes and graphs with single-label or multi-label nodes.

The label homophily of an edge is the Jaccard index of the label sets of its ends, ``h(u, v) = |Y_u ∩ Y_v| / |Y_u ∪ Y_v|`` (Zhao et al.,
TMLR 2023 and 2024). The homophily of a graph is the mean over its edges, and the homophily of a node is the mean over its incident edges.
``outputs`` selects the labels that count: the labels of the task in task-IL, or the labels seen so far in class-IL.

Conventions: if neither end has a label that counts (0/0), the value is NaN and the edge is excluded from every mean. An edge counts as
often as it appears in ``edge_index``, so listing every edge in both directions does not change the homophily. Self-loops are the exception:
their value is 1, and they are listed only once. Remove them, or use only the columns with ``source <= target``.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cglsuite.base.errors import DataError

_CHUNK_EDGES = 1 << 18  # chunks fit in the processor's cache


def edge_homophily(y: Tensor, edge_index: Tensor, outputs: Tensor | None = None) -> Tensor:
    """Compute the Jaccard index of the label sets of each edge's two ends.

    Label sets are packed into bits and edges are processed in chunks, so temporary memory does not grow with E·C.

    Args:
        y: bool [N, C], or int64 [N] with -1 for unlabelled nodes.
        edge_index: int64 [2, E].
        outputs: bool [C], the labels that count; ``None`` for all.

    Returns:
        float64 [E], NaN where neither end has a label that counts.

    Raises:
        DataError: ``y`` or ``outputs`` has the wrong dtype or shape, or ``y`` contains labels beyond ``outputs``.

    Example:
        >>> y = torch.tensor([[True, True, True, False], [True, True, False, False]])
        >>> edge_homophily(y, torch.tensor([[0], [1]])).item()
        0.6666666666666666
    """
    _check(y, outputs)
    source, target = edge_index.numpy()
    if y.dim() == 1:
        labels = _counting(y, outputs)
        a, b = labels[source], labels[target]
        return torch.from_numpy(np.where((a < 0) & (b < 0), np.nan, (a == b).astype(np.float64)))
    words = _packed(y if outputs is None else y & outputs)
    result = np.empty(len(source), dtype=np.float64)
    for start in range(0, len(source), _CHUNK_EDGES):
        here = slice(start, start + _CHUNK_EDGES)
        shared, either = np.zeros((2, len(source[here])), dtype=np.int32)
        for word in words:
            a, b = word[source[here]], word[target[here]]
            shared += np.bitwise_count(a & b)
            either += np.bitwise_count(a | b)
        result[here] = np.where(either > 0, shared / np.maximum(either, 1), np.nan)
    return torch.from_numpy(result)


def graph_homophily(y: Tensor, edge_index: Tensor, outputs: Tensor | None = None) -> float:
    """Compute the mean of ``edge_homophily`` over the edges where it is defined; NaN if there are none. Same arguments and errors."""
    return float(edge_homophily(y, edge_index, outputs).nanmean())


def node_homophily(y: Tensor, edge_index: Tensor, outputs: Tensor | None = None) -> Tensor:
    """Compute the mean of ``edge_homophily`` over each node's incident edges, in either direction.

    Arguments and errors are the same as for ``edge_homophily``.

    Returns:
        float64 [N], NaN if no incident edge has a value, for example at isolated nodes.
    """
    values = edge_homophily(y, edge_index, outputs)
    valued = ~values.isnan()
    ends, values = edge_index[:, valued].flatten(), values[valued].repeat(2)
    total = torch.zeros(y.shape[0], dtype=torch.float64).index_add_(0, ends, values)
    return total / ends.bincount(minlength=y.shape[0])  # 0/0 is NaN


def _check(y: Tensor, outputs: Tensor | None) -> None:
    single, several = y.dtype == torch.int64 and y.dim() == 1, y.dtype == torch.bool and y.dim() == 2
    if not single and not several:
        raise DataError(f"y is {y.dtype} {list(y.shape)}; expected int64 [N], or bool [N, C] for multi-label")
    if outputs is None:
        return
    if outputs.dtype != torch.bool or outputs.dim() != 1 or (several and outputs.numel() != y.shape[1]):
        raise DataError(
            f"outputs is {outputs.dtype} {list(outputs.shape)}; expected bool [{y.shape[1] if several else 'C'}], one per label"
        )
    if single and y.numel() and int(y.max()) >= outputs.numel():
        raise DataError(f"y contains label {int(y.max())}, but outputs covers only labels 0..{outputs.numel() - 1}")


def _counting(y: Tensor, outputs: Tensor | None) -> np.ndarray:
    """Replace the labels that do not count by -1."""
    if outputs is not None:
        y = torch.where((y >= 0) & outputs[y.clamp(min=0)], y, -1) if outputs.numel() else torch.full_like(y, -1)
    return y.numpy()


def _packed(y: Tensor) -> np.ndarray:
    """Pack the label sets into bits: uint64 [ceil(C / 64), N]."""
    n, c = y.shape
    words = -(-c // 64)
    out = np.zeros((n, words * 8), dtype=np.uint8)
    out[:, : -(-c // 8)] = np.packbits(y.numpy(), axis=1)
    return np.ascontiguousarray(out.view(np.uint64).reshape(n, words).T)
