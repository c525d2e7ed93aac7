"""Augmented skeleton inputs: milliseconds per epoch to draw them anew, to draw and keep them, and to take what is kept. Not a test.

    CGLSUITE_DATA=<data root> python tests/benchmarks/augmentation.py [--sequences 237] [--epochs 100]

237 sequences are the training part of a task of UCLA-CIL; without N-UCLA in the data root, embedded motions of its size stand in. One
thread. The last line compares with a training step of the preset's backbone on the same sequences, which every epoch pays besides.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

import torch
from cglsuite_skeleton.datasets.nw_ucla import nw_ucla
from cglsuite_skeleton.datasets.synthetic import synthetic_motion
from cglsuite_skeleton.epochs import KEPT

from cglsuite.backbones.graphwise import graph_gcn
from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs import GraphData, GraphSet

__all__ = ["main"]

_VARIABLE = "CGLSUITE_AUGMENTATION_CACHE_MB"


def dataset() -> GraphData:
    """N-UCLA where it is, else motions of as many sequences and frames per input."""
    root = DataRoot.from_environment()
    if root.find("nw_ucla/nw_ucla_skeleton.npz") is not None:
        return nw_ucla(root)
    return synthetic_motion(root, per_class=148, frames=52, max_angle=60)


def median_ms(job: Callable[[int], object], times: int) -> float:
    """Median wall time of ``job(0)``, ``job(1)``, ... in milliseconds."""
    taken = []
    for number in range(times):
        started = time.perf_counter()
        job(number)
        taken.append(time.perf_counter() - started)
    return 1e3 * statistics.median(taken)


def step_ms(graphs: GraphSet, n_classes: int, times: int) -> float:
    """A forward and backward pass and an optimiser's step of the preset's backbone."""
    model = graph_gcn(
        graphs.n_features, n_classes, layers=2, width=64, normalisation="none", residual=True, batch_norm=True, dropout=0.0,
        readout="weighted-sum-and-max", predictor_width=64,
    )  # fmt: skip
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    y = torch.arange(len(graphs)) % n_classes

    def step(_: int) -> None:
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(graphs), y).backward()
        optimiser.step()

    return median_ms(step, times)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=237)
    parser.add_argument("--epochs", type=int, default=100)
    args = parser.parse_args()
    torch.set_num_threads(1)
    data = dataset()
    ids = torch.arange(data.n_items)[:: max(data.n_items // args.sequences, 1)][: args.sequences]
    graphs = data.items.training(ids, 0, "cpu")
    print(f"{data.name}: {len(graphs)} sequences, {data.n_features} features per joint, {args.epochs} epochs, median per epoch")
    os.environ[_VARIABLE] = "0"
    print(f"  drawn anew         {median_ms(graphs.epoch, args.epochs):8.3f} ms")
    os.environ[_VARIABLE] = str(2**20)
    print(f"  drawn and kept     {median_ms(graphs.epoch, args.epochs):8.3f} ms  ({KEPT.bytes() / 2**20:,.0f} MB)")
    print(f"  taken from there   {median_ms(graphs.epoch, args.epochs):8.3f} ms")
    print(f"  a training step    {step_ms(graphs.epoch(0), data.n_classes, min(args.epochs, 30)):8.3f} ms")


if __name__ == "__main__":
    main()
