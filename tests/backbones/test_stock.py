"""Stock layers of PyG as backbones: one class for nodes, links and whole graphs, with dense features."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn.utils import parametrize
from torch_geometric.nn import APPNP, TransformerConv

import cglsuite as cgl
from cglsuite import load_catalogue
from cglsuite.backbones.stock import CONVOLUTIONS, StockBackbone, pyg
from cglsuite.base.errors import SpecError
from cglsuite.cells import Store, resolve_cell, run_cell


@pytest.mark.plugins
@pytest.mark.parametrize("layer", [TransformerConv(1433, 8), APPNP(2, 0.1)], ids=lambda layer: type(layer).__name__)
def test_layers_that_take_dense_features_run_on_sparse_data(layer: torch.nn.Module, tmp_path: Path) -> None:
    """They failed with "must be Tensor, not SparseMatrix"; a message graph offers its features dense."""
    stream = cgl.build_stream(
        "synthetic-csbm/class-il@cglb-1", overrides={"dataset.n_nodes": 300, "dataset.n_features": 1433, "dataset.words": 5.0}
    )
    graph = stream.view(0).graph  # type: ignore[union-attr]
    assert not isinstance(graph.features, torch.Tensor)
    width = 8 if isinstance(layer, TransformerConv) else 1433
    out = StockBackbone([layer], width, outputs=3)(graph)
    assert out.shape == (graph.n_nodes, 3)
    assert torch.isfinite(out).all()


@pytest.mark.sampled(3)
@pytest.mark.plugins
@pytest.mark.parametrize(
    ("scenario", "convolution"),
    [
        ("synthetic-csbm/class-il@cglb-1", "transformer"),
        ("synthetic-signed-links/task-il@begin-1", "gat"),
        ("synthetic-temporal-links/time-il@begin-1", "sage"),
        ("synthetic-motifs/class-il@cglb-1", "gin"),
        ("synthetic-graph-regression/domain-il@begin-1", "gatv2"),
        ("synthetic-csbm/hard@drift-1", "gcn"),
    ],
)
def test_every_level_trains_with_it(scenario: str, convolution: str, tmp_path: Path) -> None:
    changes = {"training.epochs": 2, "backbone.convolution": convolution, "backbone.width": 16}
    catalogue = load_catalogue()
    record = run_cell(resolve_cell(catalogue, scenario, "bare", "pyg", changes), catalogue, Store(tmp_path))
    assert record.done, record.reason


@pytest.mark.parametrize("convolution", CONVOLUTIONS)
def test_every_convolution_can_be_built(convolution: str) -> None:
    model = pyg(5, 3, convolution=convolution, layers=2, width=8, heads=4, dropout=0.1)
    assert (model.hops, model.head.weight.shape) == (2, (3, 8))  # type: ignore[union-attr]
    tags = {tag for tag, _, _ in model.tagged_parameters()}
    assert tags == {"body", "head"}


@pytest.mark.parametrize("convolution", CONVOLUTIONS)
def test_a_masked_network_can_be_saved_and_read_again(convolution: str) -> None:
    """PyG's linear maps write their weight by its name even where a parametrisation computes it, which no masked network can read."""

    class Mask(torch.nn.Module):
        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return weight * 0.5

    model, other = (pyg(5, 3, convolution=convolution, layers=2, width=8, heads=4, dropout=0.0) for _ in range(2))
    for made in (model, other):
        for _, name, parameter in list(made.tagged_parameters()):
            if parameter.dim() > 1 and not name.startswith("head"):
                module, _, attribute = name.rpartition(".")
                parametrize.register_parametrization(made.get_submodule(module), attribute, Mask())
    other.load_state_dict(model.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))
    assert any("parametrizations" in name for name in model.state_dict())


def test_heads_share_the_width() -> None:
    with pytest.raises(SpecError, match=r"backbone\.width = 10 with backbone\.heads = 4: expected the width to be a multiple"):
        pyg(5, 3, convolution="gat", layers=2, width=10, heads=4, dropout=0.0)
