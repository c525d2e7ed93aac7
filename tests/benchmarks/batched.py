"""Time of cells that train as one stacked model against that of the same cells one by one. A command, not a test.

    python tests/benchmarks/batched.py [--widths 16,64,256] [--cells 1,5,16] [--epochs 60] [--tasks 2] [--method bare]
                                       [--protocols BeGin,CGLB] [--device cuda]

On a synthetic graph of Cora's size (2,708 nodes, 1,433 sparse features, 10,556 directed edges, 7 classes), and on Cora where CGLSUITE_DATA
names a data folder; under BeGin's protocol (batch norm, dropout, one graph) and CGLB's (neither, a graph per task). The cells differ in
their seeds. Times are processor time, on a GPU the wall clock's, of whole cells, each with its stream, evaluations and record, in one
process after a short warm-up, which imports everything; of several cells one by one, two are timed. The gain is their time per cell over
that of the stack.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial

from cglsuite import Catalogue, Seeds, load_catalogue
from cglsuite.cells import CellSpec, Store, resolve_cell, run_cell
from cglsuite.cells.batching.companies import side_by_side

SIZE = {
    "dataset.n_nodes": 2708,
    "dataset.n_classes": 7,
    "dataset.n_features": 1433,
    "dataset.avg_degree": 10556 / 2708,
    "dataset.words": 49216 / 2708,
}
PROTOCOLS = {"BeGin": ("task-il@begin-1", {}), "CGLB": ("task-il@cglb-1", {"scenario.class_order": "native"})}


def cells(catalogue: Catalogue, dataset: str, protocol: str, width: int, n: int, args: argparse.Namespace) -> list[CellSpec]:
    """``n`` cells that differ in their seeds."""
    name, settings = PROTOCOLS[protocol]
    given = {**(SIZE if dataset == "synthetic-csbm" else {}), **settings, "backbone.width": width}
    given |= {"training.epochs": args.epochs, "scenario.n_tasks": args.tasks, "training.backbone": "gcn"}
    given |= {"training.plateau_patience": "none"}  # as many epochs for all
    seeds = [Seeds(order=seed, init=seed) for seed in range(n)]
    return [resolve_cell(catalogue, f"{dataset}/{name}", args.method, overrides=given, seeds=one, device=args.device) for one in seeds]


def seconds(chosen: Sequence[CellSpec], catalogue: Catalogue, slots: int) -> float:
    """Seconds of the cells, one by one (0 slots) or in one stack."""
    clock = time.process_time if chosen[0].device == "cpu" else time.perf_counter
    with tempfile.TemporaryDirectory() as folder:
        store, started = Store(folder), clock()
        if slots:
            stacked = [dataclasses.replace(cell, slots=slots) for cell in chosen]
            records = side_by_side(stacked[0], [partial(run_cell, cell, catalogue, store) for cell in stacked])
        else:
            records = [run_cell(cell, catalogue, store) for cell in chosen]
        elapsed = clock() - started
    if bad := [record.reason for record in records if record.status != "done"]:
        raise SystemExit(bad[0])
    return elapsed


def rows(catalogue: Catalogue, dataset: str, protocol: str, args: argparse.Namespace) -> Iterator[tuple[int, int, float, float]]:
    """Width, cells, and seconds per cell one by one and in a stack."""
    for width in args.widths:
        short = argparse.Namespace(**{**vars(args), "epochs": 1})
        for slots in (0, 2):
            seconds(cells(catalogue, dataset, protocol, width, 2, short), catalogue, slots)
        for n in args.cells:
            chosen = cells(catalogue, dataset, protocol, width, n, args)
            timed = chosen[:2]
            yield width, n, seconds(timed, catalogue, 0) / len(timed), seconds(chosen, catalogue, n) / n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    parser.add_argument("--widths", type=numbers, default=[16, 64, 256])
    parser.add_argument("--cells", type=numbers, default=[1, 5, 16])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--method", default="bare")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--protocols", type=lambda text: text.split(","), default=list(PROTOCOLS))
    args = parser.parse_args()
    catalogue = load_catalogue()
    datasets = ["synthetic-csbm", *(["cora"] if os.environ.get("CGLSUITE_DATA") else [])]
    print(f"{'dataset':16s} {'protocol':9s} {'width':>5s} {'cells':>5s} {'alone s':>9s} {'stacked s':>9s} {'gain':>6s}  (seconds per cell)")
    for dataset in datasets:
        for protocol in args.protocols:
            for width, n, alone, stacked in rows(catalogue, dataset, protocol, args):
                print(
                    f"{dataset:16s} {protocol:9s} {width:5d} {n:5d} {alone:9.3f} {stacked:9.3f} {alone / stacked:6.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
