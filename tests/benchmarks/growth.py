"""How the cost of a cell grows with the length of its stream. A command, not a test.

    python tests/benchmarks/growth.py [--steps 960,3840] [--tasks 40,80,160] [--method bare] [--profile]

Task-free streams of the same items, in batches of four and of one, evaluated after every fifth step; streams of tasks of equal size. Every
stream runs as a cell in a fresh process, in processor time. Training, the suite around it (bookkeeping, checkpoints, the record) and bytes
of checkpoints are printed per step or per task, evaluation per entry of the performance matrix: a column that rises by as much as the
stream grows is quadratic. The matrix itself has T (T + 1) / 2 entries, so the second column, the seconds of evaluation, may grow with the
square of the number of tasks. ``--profile`` lists the functions that take most time on the longest stream of each kind.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import json
import pstats
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from clocks import go_by

STEPS, TASKS = "synthetic-csbm/gaussian@drift-1", "synthetic-csbm/task-il@cglb-1"
ITEMS, PER_CLASS = 3840, 30
SMALL = {"dataset.n_features": 32, "dataset.avg_degree": 4.0, "dataset.imbalance": 1.0, "backbone.width": 16}


def settings(kind: str, size: int) -> tuple[str, dict[str, Any]]:
    """The scenario and the overrides of one stream."""
    if kind == "steps":
        data = {"dataset.n_nodes": round(ITEMS / 0.6), "dataset.n_classes": 10, "schedule.sigma": 20.0, "stream.evaluate_every": 5}
        return STEPS, SMALL | data | {"training.batch_size": ITEMS // size}
    classes = 2 * size
    return TASKS, SMALL | {"dataset.n_nodes": PER_CLASS * classes, "dataset.n_classes": classes, "training.epochs": 10}


def run(kind: str, size: int, method: str, profile: bool) -> dict[str, Any]:
    """One cell, with processor time by section."""
    from cglsuite import load_catalogue
    from cglsuite.cells.run import _load, run_cell
    from cglsuite.cells.spec import resolve_cell
    from cglsuite.cells.storage.store import Store

    go_by("cpu")
    scenario, overrides = settings(kind, size)
    catalogue = load_catalogue()
    cell = resolve_cell(catalogue, scenario, method, overrides=overrides)
    _load(catalogue, cell.scenario.dataset, tuple(sorted(cell.dataset_hyperparameters.items())))
    written, save = [], Store.save_checkpoint

    def counted(self: Store, prefix: str, payload: Any) -> None:
        save(self, prefix, payload)
        written.append(self.checkpoint_path(prefix).stat().st_size)

    Store.save_checkpoint = counted  # type: ignore[method-assign]
    profiler = cProfile.Profile()
    with tempfile.TemporaryDirectory() as folder:
        if profile:
            profiler.enable()
        started = time.process_time()
        record = run_cell(cell, catalogue, Store(folder))
        elapsed = time.process_time() - started
        profiler.disable()
    if record.status != "done":
        raise SystemExit(record.reason)
    if profile:
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(25)
        print(text.getvalue(), file=sys.stderr)
    timings = dict(record.timings_s)
    units = sum(training["epochs"] for training in record.training["tasks"]) if kind == "steps" else len(record.tasks)
    entries = sum(value is not None and value == value for row in record.matrix for value in row)
    training = timings["training"] + timings["method"]
    return {
        "units": units,
        "seconds": elapsed,
        "training": training / units,
        "around": (elapsed - training - timings["evaluation"]) / units,
        "entries": entries,
        "evaluation": timings["evaluation"],
        "bytes": sum(written) / units,
        "saved": len(written),
    }


def main() -> None:
    """Run every stream and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", default="960,3840")
    parser.add_argument("--tasks", default="40,80,160")
    parser.add_argument("--method", default="bare")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--child", nargs=2, metavar=("KIND", "SIZE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        warnings.simplefilter("ignore")
        print(json.dumps(run(args.child[0], int(args.child[1]), args.method, args.profile)))
        return
    columns = f"{'training':>12s} {'around':>12s} {'evaluation':>14s} {'checkpoints':>22s}"
    print(f"{'stream':>12s} {'seconds':>8s} {'evaluation':>10s} {'entries':>8s} {columns}")
    units = f"{'ms per unit':>12s} {'ms per unit':>12s} {'µs per entry':>14s} {'bytes per unit':>22s}"
    print(f"{'':>12s} {'':>8s} {'seconds':>10s} {'':>8s} {units}")
    for kind in ("steps", "tasks"):
        sizes = [int(size) for size in getattr(args, kind).split(",") if size]
        for size in sizes:
            command = [sys.executable, __file__, "--method", args.method, "--child", kind, str(size)]
            command += ["--profile"] if args.profile and size == max(sizes) else []
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stderr)
            found = json.loads(done.stdout.splitlines()[-1])
            name = f"{found['units']} {kind}"
            print(
                f"{name:>12s} {found['seconds']:8.2f} {found['evaluation']:10.2f} {found['entries']:8d} {1e3 * found['training']:12.2f} "
                f"{1e3 * found['around']:12.2f} {1e6 * found['evaluation'] / found['entries']:14.1f} "
                f"{found['saved']:4d} saved, {found['bytes']:9,.0f}",
                flush=True,
            )
            if done.stderr and args.profile:
                print(done.stderr)


if __name__ == "__main__":
    main()
