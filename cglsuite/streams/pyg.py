"""Convert views and batches to PyG ``Data``, for training loops and models written for PyG. Only visible labels are included."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cglsuite.base.errors import SpecError
from cglsuite.graphs import MessageGraph, Pack


def view_as_pyg(view: Any) -> Any:
    """Convert a task to a single ``Data`` with training labels and masks for training and validation items (see
    :meth:`TaskView.as_pyg`)."""
    train, validation = view.train, view.validation
    if not isinstance(train.graph, MessageGraph):
        raise SpecError(
            "items are whole graphs, so the task is not a single graph with masks: use view.train.as_pyg() and view.validation.as_pyg()"
        )
    if train.graph is not validation.graph:
        raise SpecError(
            "training and validation items are in different message graphs: use view.train.as_pyg() and view.validation.as_pyg()"
        )
    data = batch_as_pyg(train)
    if train.ids.dim() == 2:
        data.val_edge_label_index = validation.ids.T
        return data
    data.val_mask = _mask(validation.ids, data.num_nodes)
    return data


def batch_as_pyg(batch: Any) -> Any:
    """Convert a batch to a single ``Data`` (see :meth:`Batch.as_pyg`)."""
    from torch_geometric.data import Data

    graph = batch.graph
    if not isinstance(graph, MessageGraph):
        return _of_graphs(batch)
    data = Data(x=graph.dense, edge_index=graph.edge_index)
    if batch.ids.dim() == 2:
        data.edge_label_index = batch.ids.T
        if batch.y is not None:
            data.edge_label = batch.y
        return data
    data.train_mask = _mask(batch.ids, graph.n_nodes)
    if batch.y is not None:
        data.y = _spread(batch.y, batch.ids, graph.n_nodes)
    return data


def _of_graphs(batch: Any) -> Any:
    from torch_geometric.data import Data

    payload = batch.graph.take(batch.ids.cpu()).payload() if hasattr(batch.graph, "take") else {}
    if not {"x", "edge_index", "node_start"} <= payload.keys():
        raise SpecError(
            f"{type(batch.graph).__name__} cannot be converted to PyG Data, because it does not consist of node features and edges"
        )
    pack = Pack.of(payload)
    x = pack.x.to_dense() if pack.x.layout == torch.sparse_csr else pack.x
    data = Data(x=x, edge_index=pack.edge_index, batch=torch.arange(len(pack)).repeat_interleave(pack.sizes), edge_attr=pack.edge_attr)
    if batch.y is not None:
        data.y = batch.y
    return data


def _mask(ids: Tensor, n: int) -> Tensor:
    mask = torch.zeros(n, dtype=torch.bool, device=ids.device)
    mask[ids] = True
    return mask


def _spread(y: Tensor, ids: Tensor, n: int) -> Tensor:
    """Place labels at their nodes, and -1 (no class), false or NaN at all other nodes."""
    nothing: Any = {torch.int64: -1, torch.bool: False}.get(y.dtype, float("nan"))
    out = torch.full((n, *y.shape[1:]), nothing, dtype=y.dtype, device=y.device)
    out[ids] = y
    return out
