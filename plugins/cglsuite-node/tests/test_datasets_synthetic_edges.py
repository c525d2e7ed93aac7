"""The edges of the embedded graph as items of its line graph."""

from __future__ import annotations

import pytest
import torch
from cglsuite_node.datasets.synthetic import synthetic_csbm
from cglsuite_node.datasets.synthetic_edges import synthetic_csbm_edges
from installed import installed

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import UnknownNameError

SMALL = {"n_nodes": 60, "n_classes": 4, "avg_degree": 5.0, "n_features": 20, "words": 5.0, "seed": 3}


def test_an_edges_class_is_the_pair_of_communities_that_it_joins() -> None:
    root = DataRoot.from_environment()
    nodes, edges = synthetic_csbm(root, **SMALL), synthetic_csbm_edges(root, **SMALL)
    pairs = [(a, b) for a in range(4) for b in range(a, 4)]
    assert edges.n_classes == len(pairs) == 10
    assert 2 * edges.n_nodes == nodes.edge_index.shape[1]
    ends = torch.stack([edges.keys["u"], edges.keys["v"]])
    expected = [pairs.index(tuple(sorted((int(a), int(b))))) for a, b in nodes.y[ends].T]  # type: ignore[arg-type]
    assert edges.y.tolist() == expected


def test_edges_are_neighbours_where_they_share_an_end() -> None:
    edges = synthetic_csbm_edges(DataRoot.from_environment(), **SMALL)
    ends = [{int(a), int(b)} for a, b in zip(edges.keys["u"], edges.keys["v"], strict=True)]
    expected = {(i, j) for i in range(len(ends)) for j in range(len(ends)) if i != j and ends[i] & ends[j]}
    assert set(map(tuple, edges.edge_index.T.tolist())) == expected


def test_unknown_parameters_are_errors() -> None:
    with pytest.raises(UnknownNameError, match="n_node"):
        synthetic_csbm_edges(DataRoot.from_environment(), n_node=3)


@pytest.mark.plugins("cglsuite-methods")
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_edge_classification_runs_as_a_scenario(setting: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Pairs of communities that have none in common are easily told apart."""
    from cglsuite.cells import Store, resolve_cell, run_cell

    catalogue = installed("cglsuite", "cglsuite-node", "cglsuite-methods")
    overrides = {"training.epochs": 40, "backbone.width": 32}
    cell = resolve_cell(catalogue, f"synthetic-csbm-edges/{setting}@agale-1", "bare", overrides=overrides)
    record = run_cell(cell, catalogue, Store(tmp_path_factory.mktemp("store")))
    assert record.status == "done", record.reason
    assert len(record.tasks) == 3
    assert max(float(record.matrix[k + 1][k]) for k in range(3)) > 0.9  # type: ignore[arg-type]
