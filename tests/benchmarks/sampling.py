"""A large graph trained by neighbour sampling: peak memory, time per epoch, and what of it the sampler takes. A command, not a test.

    python tests/benchmarks/sampling.py [--nodes 200000] [--edges 10000000] [--epochs 2] [--method bare] [--cpu-time]

The graph has 200,000 nodes and 10 million undirected edges (messages run both ways: 20 million directed edges), 500 sparse features and
ten classes; the protocol is CGLB's class-IL with edges between tasks, two tasks of five classes, batches of 2,000 items that hear 25
neighbours, each of which hears 10. Everything runs in this process, from making the graph to the last evaluation in the whole graph, and
counts towards the peak. The target is 6 GB.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

from clocks import CLOCKS, go_by

SCENARIO = "synthetic-csbm/class-il@cglb-inter-1"
TARGET_GB = 6


def overrides(args: argparse.Namespace) -> dict[str, Any]:
    """What differs from the preset."""
    return {
        "dataset.n_nodes": args.nodes,
        "dataset.avg_degree": 2 * args.edges / args.nodes,
        "scenario.classes_per_task": 5,
        "scenario.split_ratio": (args.train_share, 0.2, 0.8 - args.train_share),
        "training.epochs": args.epochs,
        "training.batch_size": args.batch_size,
        "training.fan_out": args.fan_out,
    }


class Meter:
    """Times every call of the sampler and counts what it returns."""

    def __init__(self, sampler: Any, now: Callable[[], float]) -> None:
        self.sampler, self.now = sampler, now
        self.calls, self.seconds, self.items, self.nodes, self.edges = 0, 0.0, 0, 0, 0

    def __call__(self, graph: Any, ids: Any, fan_out: Any, generator: Any) -> Any:
        """The sampler's answer."""
        _ = graph.in_neighbours  # prepared once per graph: no part of a sample
        started = self.now()
        sampled, positions = self.sampler(graph, ids, fan_out, generator)
        self.seconds += self.now() - started
        self.calls, self.items = self.calls + 1, self.items + len(ids)
        self.nodes, self.edges = self.nodes + sampled.n_nodes, self.edges + sampled.n_edges
        return sampled, positions


def peak_gb() -> float:
    """Peak resident memory since the cell began (which starts the system's count again), or of the process before that."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    """Make the graph, run the cell, print the account."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=10_000_000, help="undirected edges")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=2000)
    parser.add_argument("--fan-out", default="10,25")
    parser.add_argument("--method", default="bare")
    parser.add_argument("--train-share", type=float, default=0.6, help="training items; fewer make fewer steps of the same size")
    parser.add_argument("--cpu-time", action="store_true", help="CPU seconds (of one thread), for a machine that is busy with other work")
    args = parser.parse_args()
    warnings.simplefilter("ignore")

    from cglsuite import load_catalogue
    from cglsuite.cells.plan import CellOptions
    from cglsuite.cells.run import _keep_freed_memory, _load, run_cell
    from cglsuite.cells.spec import resolve_cell
    from cglsuite.cells.storage.store import Store
    from cglsuite.problems import minibatch

    name = "cpu" if args.cpu_time else "wall"
    now = CLOCKS[name]
    go_by(name)
    print("seconds are CPU seconds" if args.cpu_time else "seconds are of the clock on the wall")
    catalogue = load_catalogue()
    cell = resolve_cell(catalogue, SCENARIO, args.method, overrides=overrides(args))
    _keep_freed_memory()
    started = now()
    data = _load(catalogue, cell.scenario.dataset, tuple(sorted(cell.dataset_hyperparameters.items())))
    made, before = now() - started, peak_gb()
    print(
        f"graph: {data.n_nodes:,} nodes, {data.edge_index.shape[1]:,} directed edges, made in {made:.1f} s (peak {peak_gb():.2f} GB)",
        flush=True,
    )
    meter = minibatch.sample_neighbours = Meter(minibatch.sample_neighbours, now)  # type: ignore[assignment]

    def progress(learnt: int, n_tasks: int) -> None:
        print(f"  {learnt} of {n_tasks} tasks after {now() - started:.1f} s (peak {peak_gb():.2f} GB)", flush=True)

    started = now()
    with tempfile.TemporaryDirectory() as folder:
        record = run_cell(cell, catalogue, Store(folder), CellOptions(progress=progress))
    elapsed = now() - started
    if record.status != "done":
        raise SystemExit(record.reason)
    times = {name: value or 0.0 for name, value in record.timings_s.items()}
    epochs = sum(training["epochs"] for training in record.training["tasks"])
    print(f"cell: {elapsed:.1f} s; " + ", ".join(f"{name} {value:.1f} s" for name, value in times.items() if name != "total"))
    print(f"epoch: {times['training'] / epochs:.2f} s on average of {epochs}, {meter.calls / epochs:.0f} steps each")
    if meter.calls:
        print(
            f"sampler: {meter.seconds / times['training']:.1%} of training, {meter.seconds / meter.calls:.3f} s a batch of "
            f"{meter.nodes / meter.calls:,.0f} nodes and {meter.edges / meter.calls:,.0f} edges on average; "
            f"{meter.items / meter.seconds:,.0f} items sampled per second, {meter.items / times['training']:,.0f} trained"
        )
    training = record.training["tasks"][0]
    losses = f"{training['first_loss']:.3f}, {training['last_loss']:.3f}"
    print(f"average performance {record.metrics['average_performance']:.3f}; first and last loss {losses}")
    peak = max(before, peak_gb())
    print(f"peak memory {peak:.2f} GB (target {TARGET_GB}): {'met' if peak < TARGET_GB else 'MISSED'}")


if __name__ == "__main__":
    main()
