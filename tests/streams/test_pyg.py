"""Views as PyG ``Data``: labels only where the view has them, and a plain PyG training loop runs on a stream."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional
from torch_geometric.nn import GCNConv, global_mean_pool

import cglsuite as cgl
from cglsuite.base.errors import SpecError

pytestmark = pytest.mark.plugins
SMALL = {"dataset.n_nodes": 300, "dataset.n_classes": 6}


class GCN(torch.nn.Module):
    """As in PyG's first tutorial."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = GCNConv(features, 16), GCNConv(16, classes)

    def forward(self, data: Any) -> torch.Tensor:
        x = functional.relu(self.conv1(data.x, data.edge_index))
        return self.conv2(x, data.edge_index)


def test_a_plain_training_loop_runs_on_a_stream() -> None:
    """But for the line that gets the data it is the loop of PyG's introduction."""
    torch.manual_seed(0)
    stream = cgl.build_stream("synthetic-csbm/class-il@cglb-1", overrides=SMALL)
    data = stream.view(0).as_pyg()  # type: ignore[union-attr]
    model = GCN(data.num_node_features, stream.n_outputs)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    model.train()
    for _ in range(60):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(data)[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
    model.eval()
    right = (model(data).argmax(dim=1) == data.y)[data.train_mask]
    assert float(right.float().mean()) > 0.9


def test_labels_only_where_the_view_has_them() -> None:
    stream = cgl.build_stream("synthetic-csbm/class-il@cglb-1", overrides=SMALL)
    view = stream.view(1)  # type: ignore[union-attr]
    data = view.as_pyg()
    assert torch.equal(data.train_mask.nonzero().flatten(), view.train.ids.sort().values)
    assert torch.equal(data.val_mask.nonzero().flatten(), view.validation.ids.sort().values)
    assert torch.equal(data.y[view.train.ids], view.train.y)
    assert set(data.y[~data.train_mask].tolist()) == {-1}
    assert data.x.layout == torch.strided
    assert torch.equal(data.edge_index, view.graph.edge_index)
    assert "y" not in view.validation.as_pyg()


def test_links_and_whole_graphs() -> None:
    links = cgl.build_stream("synthetic-signed-links/class-il@begin-1").view(0)  # type: ignore[union-attr]
    data = links.as_pyg()
    assert torch.equal(data.edge_label_index, links.train.ids.T)
    assert torch.equal(data.edge_label, links.train.y)
    assert torch.equal(data.val_edge_label_index, links.validation.ids.T)
    graphs = cgl.build_stream("synthetic-motifs/class-il@cglb-1").view(0)  # type: ignore[union-attr]
    with pytest.raises(SpecError, match=r"use view\.train\.as_pyg\(\)"):
        graphs.as_pyg()
    data = graphs.train.as_pyg()
    assert torch.equal(data.y, graphs.train.y)
    assert global_mean_pool(data.x, data.batch).shape[0] == len(graphs.train)
    some = graphs.train.graph.take(graphs.train.ids)
    assert torch.allclose(global_mean_pool(data.x, data.batch).sum(), some.mean_features().sum(), atol=1e-3)
