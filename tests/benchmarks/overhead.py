"""How much a cell costs over a plain PyTorch loop of the same arithmetic on the same subgraphs. A command, not a test.

    python tests/benchmarks/overhead.py [--method bare | --all] [--epochs 200] [--rounds 3] [--tasks 35]

The graph has CoraFull's size (19,793 nodes, 8,710 sparse features, 126,842 directed edges, 70 classes); the protocol is CGLB's task-IL.
Loop and cell run in turn in fresh processes; the ratio of their times is printed round by round, with the cell's own account of where
its time went and both peaks of memory, and at the end one line per method with the median ratios: of all, of the epochs (training and the
method's own part), and of the evaluations. The goals of LwF, MAS and TWP are ratios to the cell of `bare` in the same round; the ratio of
their loops to that of `bare` is what the arithmetic alone costs. Times include making the tasks' subgraphs, and exclude imports and making
the graph; the loop asks the test items, the cell those for validation too.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))
from clocks import CLOCKS, go_by

SIZE = {
    "dataset.n_nodes": 19793,
    "dataset.n_classes": 70,
    "dataset.n_features": 8710,
    "dataset.avg_degree": 126842 / 19793,
    "dataset.homophily": 0.6,
    "dataset.words": 1.1e6 / 19793,
    "dataset.imbalance": 60.0,
}
SCENARIO = "synthetic-csbm/task-il@cglb-1"


@dataclass(frozen=True)
class Target:
    """What a method's cell may cost, as a ratio to its loop or to the cell of ``bare``, and its settings beside the preset's."""

    limit: float
    against: str = "loop"
    overrides: dict = field(default_factory=dict)


TARGETS = {
    "bare": Target(1.10),
    "ewc": Target(1.15, overrides={"method.fisher": "batch"}),
    "er-gnn": Target(1.15, overrides={"method.per_class": 100}),
    "gem": Target(1.3, overrides={"method.per_task": 100}),
    "joint": Target(1.0),
    "lwf": Target(1.5, "bare"),
    "mas": Target(1.5, "bare", {"method.importance": "batch-squared"}),
    "twp": Target(2.0, "bare"),
}
EVALUATION_LIMIT = MEMORY_LIMIT = 1.2


def _cell(catalogue, args):
    from cglsuite.cells.spec import resolve_cell

    overrides = SIZE | TARGETS[args.method].overrides | {"training.epochs": args.epochs}
    overrides |= {"scenario.n_tasks": args.tasks} if args.tasks else {}
    return resolve_cell(catalogue, SCENARIO, args.method, overrides=overrides)


def run_cell(args) -> dict:
    """The suite's cell, through the same call that a worker makes."""
    from cglsuite import load_catalogue
    from cglsuite.cells.run import _load, run_cell
    from cglsuite.cells.storage.store import Store

    go_by(args.clock)
    catalogue = load_catalogue()
    cell = _cell(catalogue, args)
    _load(catalogue, cell.scenario.dataset, tuple(sorted(cell.dataset_hyperparameters.items())))
    with tempfile.TemporaryDirectory() as folder:
        started = CLOCKS[args.clock]()
        record = run_cell(cell, catalogue, Store(folder))
        elapsed = CLOCKS[args.clock]() - started
    if record.status != "done":
        raise SystemExit(record.reason)
    sections = dict(record.timings_s)
    sections["epochs"] = sections["training"] + sections["method"]
    return {"seconds": elapsed, "sections": sections, "ap": record.metrics["average_performance"]}


def run_loop(args) -> dict:
    """The plain loop over the same tasks."""
    import numpy as np
    import torch
    from plain_methods import LOOPS

    from cglsuite import load_catalogue
    from cglsuite.cells.run import _keep_freed_memory, _load, build_stream

    catalogue = load_catalogue()
    cell = _cell(catalogue, args)
    torch.set_num_threads(1)
    _keep_freed_memory()  # the cell does both, so that neither the allocator nor subnormal numbers are part of the comparison
    torch.set_flush_denormal(True)
    data = _load(catalogue, cell.scenario.dataset, tuple(sorted(cell.dataset_hyperparameters.items())))
    facts = build_stream(cell, catalogue).tasks
    parts = split_of(cell, data, facts)
    torch.manual_seed(0)
    started = CLOCKS[args.clock]()
    tasks = plain_tasks(data, facts, parts)
    prepared = CLOCKS[args.clock]()
    with torch.no_grad():
        run = LOOPS[args.method](tasks, data.n_classes, args.epochs, cell.method_hyperparameters)
    ended = CLOCKS[args.clock]()
    sections = {"evaluation": run.evaluation_s, "epochs": ended - prepared - run.evaluation_s}
    return {"seconds": ended - started, "sections": sections, "ap": float(np.mean(run.matrix[-1]))}


def plain_tasks(data, facts, split) -> list:
    """The tasks as the plain loop has them; ``split``: see :func:`split_of`."""
    import numpy as np
    import plain

    from cglsuite.graphs.message import scipy_features

    x, edges, y, tasks = scipy_features(data.x), data.edge_index.numpy(), data.y.numpy(), []
    for fact in facts:
        nodes = np.flatnonzero(np.isin(y, fact.classes))
        position = np.full(len(y), -1)
        position[nodes] = np.arange(len(nodes))
        inner = position[edges]
        inner = inner[:, (inner >= 0).all(axis=0)]
        train, test = nodes[split[nodes] == 0], nodes[split[nodes] == 2]
        tasks.append(plain.task_of(x[nodes], inner, position[train], y[train], position[test], y[test], list(fact.classes)))
    return tasks


def split_of(cell, data, facts):
    """The part of every node: 0 training, 1 validation, 2 test."""
    import torch

    from cglsuite.graphs.splits.partition import per_class_split

    classes = torch.tensor(sorted(c for f in facts for c in f.classes))
    return per_class_split(data.y, classes, cell.scenario.split_ratio, cell.seeds.split).numpy()


def _child(what: str, method: str, args) -> dict:
    given = {"child": what, "method": method, "epochs": args.epochs, "tasks": args.tasks, "clock": args.clock}
    command = [sys.executable, __file__, *(word for name, value in given.items() for word in (f"--{name}", str(value)))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def _round(number: int, methods: list[str], looped: set[str], args) -> dict[tuple[str, str], dict]:
    """Loop and cell of every method, in turn."""
    out = {}
    for method in methods:
        for what in ("loop", "cell"):
            if what == "loop" and method not in looped:
                continue
            found = out[method, what] = _child(what, method, args)
            print(
                f"round {number}: {method:7s} {what} {found['seconds']:7.2f} s (AP {found['ap']:.3f}, {found['peak_mb']:.0f} MB)",
                flush=True,
            )
    return out


def _ratio(rounds: list[dict], one: tuple[str, str], other: tuple[str, str], section: str | None = None) -> float | None:
    """The median over rounds of the seconds (of one section) that ``one`` (a method's loop or cell) takes over those of ``other``."""
    if one not in rounds[0] or other not in rounds[0]:
        return None

    def seconds(found: dict) -> float:
        return found["seconds"] if section is None else found["sections"][section]

    return median(seconds(r[one]) / seconds(r[other]) for r in rounds)


def _table(rounds: list[dict], methods: list[str]) -> None:
    print(
        f"{'method':8s} {'cell s':>8s} {'/ loop':>7s} {'/ bare':>7s} {'target':>14s}      {'loops / bare':>14s} {'epochs / loop':>14s} "
        f"{'evaluation / loop':>18s} {'MB':>5s} {'/ loop':>6s}"
    )
    for method in methods:
        target, cell, loop = TARGETS[method], (method, "cell"), (method, "loop")
        ratios = {"loop": _ratio(rounds, cell, loop), "bare": _ratio(rounds, cell, ("bare", "cell"))}
        measured, epochs, evaluation = ratios[target.against], *(_ratio(rounds, cell, loop, part) for part in ("epochs", "evaluation"))
        verdict = "" if measured is None else "met" if measured <= target.limit else "MISSED"
        cells, loops = ([r[method, what] for r in rounds] for what in ("cell", "loop"))
        peaks = [max(found["peak_mb"] for found in those) for those in (cells, loops)]
        print(
            f"{method:8s} {median(c['seconds'] for c in cells):8.2f} {_number(ratios['loop'])} {_number(ratios['bare'])} "
            f"{target.limit:6.2f} x {target.against:5s} {verdict:6s} {_number(_ratio(rounds, loop, ('bare', 'loop')))} {_number(epochs)} "
            f"{_number(evaluation)} (target {EVALUATION_LIMIT}) "
            f"{peaks[0]:5.0f} {peaks[0] / peaks[1]:6.2f} (target {MEMORY_LIMIT})"
        )


def _number(value: float | None) -> str:
    return f"{'-':>7s}" if value is None else f"{value:7.3f}"


def _chosen(args) -> list[str]:
    """The methods to run: the one asked for (with `bare` before it where that is its measure), or all that are installed."""
    if not args.all:
        return ["bare", args.method] if TARGETS[args.method].against == "bare" else [args.method]
    from cglsuite import load_catalogue

    installed = load_catalogue().names("method")
    return [method for method in TARGETS if method in installed]


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=0, help="tasks at most; 0 = all 35")
    parser.add_argument("--method", choices=list(TARGETS), default="bare")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="cpu for a machine that is busy")
    parser.add_argument("--all", action="store_true", help="every method that is installed, one line each")
    parser.add_argument("--child", choices=["cell", "loop"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        warnings.simplefilter("ignore")
        outcome = (run_cell if args.child == "cell" else run_loop)(args)
        print(json.dumps(outcome | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
        return
    from plain_methods import LOOPS

    methods = _chosen(args)
    rounds = [_round(i + 1, methods, set(LOOPS), args) for i in range(args.rounds)]
    _table(rounds, methods)
    for method in methods:
        last = rounds[-1][method, "cell"]
        sections = last["sections"]
        parts = ("training", "method", "evaluation", "checkpoints", "framework")
        shares = ", ".join(f"{name} {sections[name] / sections['total']:.1%}" for name in parts)
        outside = f"; outside the runner {1 - sections['total'] / last['seconds']:.1%}" if args.clock == "wall" else ""
        print(f"{method}: {shares}{outside}")


if __name__ == "__main__":
    main()
