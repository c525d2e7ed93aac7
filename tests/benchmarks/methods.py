"""What an epoch of each method costs against one of fine-tuning, and how many lines its module has. A command, not a test.

    python tests/benchmarks/methods.py [--methods packnet hat ...] [--rounds 3] [--epochs 60] [--nodes 2708] [--protocol cglb-1]
    python tests/benchmarks/methods.py --lines

Every round runs the cell of `bare` and then that of each method, in this process, by processor time. An epoch is one of the protocol, on
the method's own loss with its hooks; rounds with a loss of their own (condensation, pre-training, rectification) and what a method does
around a task are given apart, as shares of the time that `bare` takes for the whole stream. Medians of the rounds are printed. The goal of
methods that isolate parameters is 1.3 per epoch; others have none here (`overhead.py` has those of the older ones).

The graph has Cora's size unless ``--nodes`` says otherwise. The protocol is CGLB's, whose epochs ask for no validation, unless
``--protocol`` says otherwise: under ``begin-1`` every epoch is followed by the validation loss, and methods have BeGin's form.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from short_methods import SHORT

ROOT = Path(__file__).resolve().parents[2]
LIMITS = {"Iso": 1.3}
SIZE = {"dataset.n_classes": 6, "dataset.n_features": 1433, "dataset.words": 18.0}
#: Where the general parts are that isolation, condensation and pre-training are made of.
CORE = (
    "cglsuite/backbones/units.py",
    "cglsuite/backbones/wiring.py",
    "cglsuite/cells/run.py",
    "cglsuite/graphs/altered.py",
    "cglsuite/learning/isolation",
    "cglsuite/learning/pretraining",
    "cglsuite/problems/unlabelled.py",
)


def code_lines(path: Path) -> int:
    """Lines with code: without blank ones, comments and docstrings."""
    source = path.read_text(encoding="utf-8")
    held = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False) is not None:
            held |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            held |= set(range(node.lineno, node.end_lineno + 1))
    rows = enumerate(source.splitlines(), 1)
    return sum(1 for n, line in rows if line.strip() and not line.strip().startswith("#") and n not in held)


def print_lines() -> None:
    """Lines of code per method and scheme, and of the core's parts for them."""
    from cglsuite import load_catalogue

    catalogue = load_catalogue()
    for kind in ("method", "pretraining"):
        print(f"{kind:16s}{'module':40s}{'lines':>6s}{'code':>6s}")
        for entry in catalogue.entries(kind):
            if entry.record.distribution != "cglsuite-methods":
                continue
            path = Path(inspect.getfile(catalogue.resolve(entry)))
            total = len(path.read_text(encoding="utf-8").splitlines())
            print(f"{entry.name:16s}{path.name:40s}{total:6d}{code_lines(path):6d}")
    files = [f for name in CORE for f in ([ROOT / name] if name.endswith(".py") else sorted((ROOT / name).glob("*.py")))]
    print(
        f"core: {sum(map(code_lines, files))} lines of code in {len(files)} modules for isolation, units, unlabelled items and pre-training"
    )


def measured(catalogue, method: str, args) -> dict[str, float]:
    """Processor seconds of a cell: per epoch of the protocol, of rounds with their own loss, around tasks, and of all training."""
    from cglsuite.cells.run import run_cell
    from cglsuite.cells.spec import resolve_cell
    from cglsuite.cells.storage.store import Store
    from cglsuite.learning import clock, task_runner

    # Costly rounds apart from the epochs are short; the epochs do not depend on them.
    overrides = {**SIZE, "dataset.n_nodes": args.nodes, "training.epochs": args.epochs, **SHORT.get(method, {})}
    setting = args.setting if args.setting in catalogue.method(method).settings else "class-il"
    cell = resolve_cell(catalogue, f"synthetic-csbm/{setting}@{args.protocol}", method, overrides=overrides)
    spent, epochs = defaultdict(float), defaultdict(int)
    fit, clock.perf_counter = task_runner.fit, time.process_time

    def timed(*given, phase, **named):
        what, began = "epochs" if phase.loss is None else "own", time.process_time()
        curve = fit(*given, phase=phase, **named)
        spent[what] += time.process_time() - began
        epochs[what] += len(curve.loss)
        return curve

    task_runner.fit = timed
    try:
        with tempfile.TemporaryDirectory() as folder:
            record = run_cell(cell, catalogue, Store(folder))
    finally:
        task_runner.fit = fit
    if record.status != "done":
        raise SystemExit(f"{method}: {record.reason}")
    around = record.timings_s["training"] + record.timings_s["method"] - spent["epochs"] - spent["own"]
    return {"epoch": spent["epochs"] / max(epochs["epochs"], 1), "own": spent["own"], "around": around, "all": spent["epochs"]}


def main() -> int:
    """Print a line per method; the exit status is 1 if one misses its goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="*", help="default: all that run on a stream of tasks")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--nodes", type=int, default=2708)
    parser.add_argument("--setting", default="task-il")
    parser.add_argument("--protocol", default="cglb-1", choices=("cglb-1", "begin-1"))
    parser.add_argument("--lines", action="store_true", help="print lines per method instead")
    args = parser.parse_args()
    if args.lines:
        print_lines()
        return 0
    import torch

    from cglsuite import load_catalogue

    torch.set_num_threads(1)
    catalogue = load_catalogue()
    of_tasks = [e.name for e in catalogue.entries("method") if {args.setting, "class-il"} & set(e.spec.settings)]
    methods = args.methods or [name for name in of_tasks if name != "bare"]
    rounds = []
    measured(catalogue, "bare", args)  # imports and the data set are no part of any cell
    for number in range(args.rounds):
        seconds = {name: measured(catalogue, name, args) for name in ("bare", *methods)}
        rounds.append(seconds)
        print(f"round {number + 1} of {args.rounds}: bare {1e3 * seconds['bare']['epoch']:.2f} ms an epoch", file=sys.stderr, flush=True)
    missed = False
    print(f"{'method':16s}{'epoch':>8s}{'own rounds':>12s}{'around tasks':>14s}  against bare's, medians of {args.rounds} rounds")
    for name in methods:
        epoch = median(r[name]["epoch"] / r["bare"]["epoch"] for r in rounds)
        own, around = (median(r[name][part] / r["bare"]["all"] for r in rounds) for part in ("own", "around"))
        limit = LIMITS.get(catalogue.method(name).category)
        late = limit is not None and epoch > limit
        missed |= late
        said = "" if limit is None else f"  goal {limit:g}{': missed' if late else ''}"
        print(f"{name:16s}{epoch:8.2f}{own:12.2f}{around:14.2f}{said}", flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
