"""What task orders of a skeleton stream cost over a plain PyTorch loop with the same model, inputs and shared prefixes. A command.

    python tests/benchmarks/skeleton.py [--methods bare,ewc,...] [--orders 24] [--epochs 100] [--rounds 1] [--clock wall]

Runs the first orders of the 120 (24 begin with the same task and need 65 task trainings) of `nw-ucla/class-il@skeleton-1`, or of the
synthetic stand-in where the data are absent, once as a plain loop and once as the suite's cells, each in a fresh process on one thread,
and prints seconds, task trainings, mean final accuracy, peaks of memory, and the ratio. Loading data and drawing augmented inputs is
inside both. With `--device cuda` it is the command by which a GPU's owner measures; `--backbone st-gcn` does the same for ST-GCN.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from statistics import mean, median

sys.path.insert(0, str(Path(__file__).parent))
from clocks import CLOCKS, go_by

METHODS = ["bare", "ewc", "mas", "twp", "lwf", "gem", "replay"]
LIMIT, N_TASKS = 1.15, 5


def _cells(catalogue, args):
    from cglsuite.cells.spec import resolve_cell
    from cglsuite.specs import Seeds

    overrides = {"scenario.class_order": "all-tasks", "training.epochs": args.epochs}
    backbone = args.backbone or None
    return [
        resolve_cell(catalogue, args.scenario, args.child_method, backbone, overrides, Seeds(order=i), device=args.device)
        for i in range(args.orders)
    ]


def run_cells(args) -> dict:
    """The suite's cells, one after the other as a worker runs them."""
    from cglsuite import load_catalogue
    from cglsuite.cells.plan import CellOptions
    from cglsuite.cells.run import run_cell
    from cglsuite.cells.storage.store import Store

    go_by(args.clock)
    catalogue = load_catalogue()
    with tempfile.TemporaryDirectory() as folder:
        store, started = Store(folder), CLOCKS[args.clock]()
        cells = _cells(catalogue, args)
        shared = [_shared_tasks(i, len(cells)) for i in range(len(cells))]
        records = [run_cell(c, catalogue, store, CellOptions(shared_tasks=lambda n=n: n)) for c, n in zip(cells, shared, strict=True)]
        elapsed = CLOCKS[args.clock]() - started
    if failed := [r.reason for r in records if r.status != "done"]:
        raise SystemExit(failed[0])
    trainings = sum(len(r.tasks) - r.provenance["resumed_from_task"] for r in records)
    return {"seconds": elapsed, "trainings": trainings, "aa": mean(mean(r.matrix[-1]) for r in records)}


def _shared_tasks(i: int, n_orders: int) -> int:
    """With how many of its first tasks the order after the i-th begins too."""
    if i + 1 == n_orders:
        return 0
    one, other = itertools.islice(itertools.permutations(range(N_TASKS)), i, i + 2)
    return next(k for k in range(N_TASKS) if one[k] != other[k])


def run_loop(args) -> dict:
    """The plain loop over the same tasks."""
    import torch
    from plain_skeleton import PlainTask, run_orders

    from cglsuite import load_catalogue
    from cglsuite.cells.run import _keep_freed_memory, _load, build_stream

    catalogue = load_catalogue()
    cell = _cells(catalogue, args)[0]
    torch.set_num_threads(1)
    _keep_freed_memory()
    torch.set_flush_denormal(True)
    started = CLOCKS[args.clock]()
    stream = build_stream(cell, catalogue)
    data = _load(catalogue, cell.scenario.dataset, tuple(sorted(cell.dataset_hyperparameters.items())))
    tasks = []
    for k, facts in enumerate(stream.tasks):
        train, test = stream.members(k, "train"), stream.members(k, "test")
        tasks.append(
            PlainTask(
                train=data.items.training(train, cell.seeds.split, args.device),
                y=data.y[train].to(args.device),
                classes=torch.tensor(facts.classes),
                test=data.items.queries(test, args.device),
                y_test=data.y[test],
            )
        )
    torch.manual_seed(0)
    hyperparameters, lr = dict(cell.method_hyperparameters), cell.scenario.training.lr
    results, trainings = run_orders(
        args.child_method,
        tasks,
        args.orders,
        lambda: _network(cell, catalogue, stream, tasks[0].train).to(args.device),
        hyperparameters,
        args.epochs,
        lr,
    )
    elapsed = CLOCKS[args.clock]() - started
    return {"seconds": elapsed, "trainings": trainings, "aa": mean(mean(row) for row in results.values())}


def _network(cell, catalogue, stream, graphs):
    """The loops' own network; of another backbone or other settings the suite's."""
    import torch
    from plain_network import PlainGCN

    from cglsuite.protocols.cglb import GRAPH_BACKBONE

    if cell.backbone == "graph-gcn" and dict(cell.backbone_hyperparameters) == dict(GRAPH_BACKBONE):
        adjacency = graphs.layout.adjacency() + torch.eye(graphs.layout.n_joints)
        return PlainGCN(stream.n_features, stream.n_outputs, adjacency)
    return catalogue.resolve(catalogue.get("backbone", cell.backbone))(stream.n_features, stream.n_outputs, **cell.backbone_hyperparameters)


def _child(what: str, method: str, args) -> dict:
    given = {n: getattr(args, n) for n in ("orders", "epochs", "clock", "scenario", "backbone", "device")}
    words = [w for name, value in given.items() for w in (f"--{name}", str(value))]
    command = [sys.executable, __file__, "--child", what, "--child-method", method, *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def _scenario() -> str:
    data = os.environ.get("CGLSUITE_DATA")
    real = data is not None and (Path(data) / "nw_ucla").exists()
    return "nw-ucla/class-il@skeleton-1" if real else "synthetic-motion/class-il@skeleton-1"


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--orders", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--scenario", default=_scenario())
    parser.add_argument("--backbone", default="", help="another than the scenario's, such as st-gcn")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="cpu for a machine that is busy")
    parser.add_argument("--child", choices=["cells", "loop"], help=argparse.SUPPRESS)
    parser.add_argument("--child-method", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        warnings.simplefilter("ignore")
        found = (run_cells if args.child == "cells" else run_loop)(args)
        print(json.dumps(found | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
        return
    rows = []
    for method in args.methods.split(","):
        rounds = []
        for number in range(args.rounds):
            both = {what: _child(what, method, args) for what in ("loop", "cells")}
            rounds.append(both)
            for what, f in both.items():
                print(
                    f"round {number + 1}: {method:7s} {what:5s} {f['seconds']:8.2f} s, {f['trainings']} task trainings, "
                    f"AA {f['aa']:.3f}, {f['peak_mb']:.0f} MB",
                    flush=True,
                )
        ratio = median(r["cells"]["seconds"] / r["loop"]["seconds"] for r in rounds)
        rows.append((method, median(r["cells"]["seconds"] for r in rounds), ratio, max(r["cells"]["peak_mb"] for r in rounds)))
    print(f"{args.scenario}, {args.orders} task orders, {args.epochs} epochs, {args.backbone or 'the preset’s backbone'}, {args.device}")
    print(f"{'method':8s} {'cells s':>9s} {'/ loop':>7s} {'peak MB':>8s}")
    for method, seconds, ratio, peak in rows:
        print(f"{method:8s} {seconds:9.2f} {ratio:7.3f} {peak:8.0f}  {'met' if ratio <= LIMIT else 'MISSED'} (at most {LIMIT})")


if __name__ == "__main__":
    main()
