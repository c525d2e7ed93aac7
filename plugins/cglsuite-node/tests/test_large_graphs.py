"""Graphs in the raw format of ogbn-products, of any size: the generator and the command of ``tests/benchmarks/large_graphs.py``."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_node.datasets import ogbn
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader

from cglsuite.base.datafiles import DataRoot

COMMAND = Path(__file__).parents[3] / "tests" / "benchmarks" / "large_graphs.py"
SIZES = {"nodes": 3000, "degree": 12.0, "features": 7, "classes": 5}
needs_checkout = pytest.mark.skipif(not COMMAND.exists(), reason="the benchmarks are in a checkout only")


def command() -> Any:
    spec = importlib.util.spec_from_file_location("large_graphs", COMMAND)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_checkout
def test_generated_files_are_those_of_a_loader_in_the_true_format(tmp_path: Path) -> None:
    """The sizes asked for; both directions; a split of 8 : 2 : 90; neighbours mostly of the same class; some nodes with many neighbours."""
    command().write_raw(tmp_path / "data/ogbn_products", **SIZES)
    data = ogbn.products(DataRoot(tmp_path / "data", tmp_path / "cache", offline=True, verify=False))
    assert (data.n_nodes, data.n_features) == (3000, 7)
    source, target = data.edge_index
    assert 0.9 * 3000 * 12 < len(source) <= 3000 * 12
    assert not (source == target).any()
    key = source * 3000 + target
    assert torch.equal(key.sort().values, (target * 3000 + source).sort().values)
    assert data.official_split is not None
    shares = torch.bincount(data.official_split.long(), minlength=3) / 3000
    assert shares.tolist() == pytest.approx([0.08, 0.02, 0.90], abs=0.01)
    for part in range(3):
        assert len(data.y[data.official_split == part].unique()) == 5
    assert 0.7 < (data.y[source] == data.y[target]).float().mean() < 0.95
    degrees = torch.bincount(source)
    assert degrees.max() > 4 * degrees.float().mean()
    assert np.array_equal((data.x * 1000).round() / 1000, data.x)
    assert data.x.std() > 0.1


@needs_checkout
@pytest.mark.plugins("cglsuite-methods")
@pytest.mark.nightly
def test_the_command_measures_every_step(tmp_path: Path) -> None:
    """One size through the whole command: it trains by samples, evaluates in the whole graph after each task, and prints a table."""
    options = [f"--{name}={value}" for name, value in SIZES.items()] + ["--tasks=2", "--batch-size=50", "--batches=2", "--width=8"]
    words = [sys.executable, str(COMMAND), *options, f"--folder={tmp_path}", f"--json={tmp_path / 'out.json'}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    (result,) = json.loads((tmp_path / "out.json").read_text()).values()
    n_edges, cell = result["raw"]["n_edges"], result["cell"]
    assert cell["n_edges"] == n_edges
    assert cell["data_gb"] == pytest.approx((3000 * 7 * 4 + n_edges * 16 + 3000 * 8) / 1e9)
    train = round(3000 * 0.08 * 4 / 5)  # of the classes of two tasks, four of five
    assert 2 * train / 50 * 0.6 < cell["batches"] < 2 * train / 50 * 1.8 + 4
    assert {"reading the cache", "views", "operators", "sampling", "training", "evaluation", "content hash"} <= cell["parts"].keys()
    assert "transposes" in cell["parts"]  # of batches
    assert sum(cell["parts"].values()) <= 1.2 * cell["seconds"]
    assert 0.25 < cell["average_performance"] <= 1
    assert "peak / data" in done.stdout
    ours = result["loaders"]["loaders"]["cglsuite, sample_neighbours"]
    assert 50 < ours["nodes"] <= 3000


@pytest.mark.filterwarnings("ignore:Using 'NeighborSampler' without a 'pyg-lib' installation")
def test_what_pygs_loader_says_without_its_extensions() -> None:
    """The documentation says what runs without pyg-lib and torch-sparse."""
    if any(importlib.util.find_spec(name) for name in ("pyg_lib", "torch_sparse")):
        pytest.skip("an extension with PyG's compiled sampler is installed")
    data = Data(x=torch.zeros(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
    with pytest.raises(ImportError, match="requires either 'pyg-lib' or 'torch-sparse'"):
        next(iter(NeighborLoader(data, [2], input_nodes=torch.tensor([2]), batch_size=1)))
