"""What portable numerics cost: cells and products of matrices with native and with portable numerics, side by side. A command.

    python tests/benchmarks/numerics.py                               five methods on embedded data, three rounds
    python tests/benchmarks/numerics.py --rounds 5 --scenario cora/class-il@begin-2 --methods bare ewc

In each round every cell is trained once natively and once portably, in processes of their own that take turns (native first in one round,
portable first in the next), with one thread. Times are of the processor, which other processes disturb less than the clock. Prints medians
and the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cglsuite.cells.portable import NumericsWord, environment_of, prepare

WORDS: tuple[NumericsWord, NumericsWord] = ("native", "portable")
SCENARIO = "synthetic-csbm/class-il@begin-1"
METHODS = ("bare", "ewc", "er-gnn", "gem", "twp")
SHAPES = ((2708, 1433, 256), (1000, 500, 64), (256, 256, 256))


def cell_seconds(numerics: NumericsWord, scenario: str, method: str, epochs: int) -> float:
    """Processor seconds of a cell in this process."""
    from cglsuite import load_catalogue
    from cglsuite.cells.run import run_cell
    from cglsuite.cells.spec import resolve_cell
    from cglsuite.cells.storage.store import Store

    catalogue = load_catalogue()
    cell = resolve_cell(catalogue, scenario, method, overrides={"training.epochs": epochs} if epochs else {}, numerics=numerics)
    with tempfile.TemporaryDirectory() as room:
        begun = time.process_time()
        record = run_cell(cell, catalogue, Store(Path(room)))
        seconds = time.process_time() - begun
    if not record.done:
        raise RuntimeError(f"{record.label}: {record.status}: {record.reason}")
    return seconds


def product_seconds(numerics: NumericsWord) -> list[float]:
    """Processor seconds of a product of each of :data:`SHAPES`, float32: the fastest of some."""
    prepare(numerics)
    import torch

    seconds = []
    for n, k, m in SHAPES:
        a, b, times = torch.randn(n, k), torch.randn(k, m), []
        for _ in range(20):
            begun = time.process_time()
            a @ b
            times.append(time.process_time() - begun)
        seconds.append(min(times))
    return seconds


def measured(numerics: NumericsWord, *words: str) -> list[float]:
    """The seconds that a new process with these numerics prints."""
    command = [sys.executable, "-W", "ignore", __file__, "--here", numerics, *words]
    environment = environment_of(numerics) | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    seconds: list[float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def row(name: str, native: list[float], portable: list[float]) -> str:
    """A line of the table; seconds of each round."""
    ratio = statistics.median(b / a for a, b in zip(native, portable, strict=True))
    return f"{name:44} {statistics.median(native):10.4f} {statistics.median(portable):10.4f} {ratio:8.2f}"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scenario", default=SCENARIO)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--epochs", type=int, default=0, help="epochs per task; 0: the scenario's")
    parser.add_argument("--here", choices=WORDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        (method,) = options.methods
        products = method == "products"
        seconds = product_seconds(options.here) if products else [cell_seconds(options.here, options.scenario, method, options.epochs)]
        print(json.dumps(seconds))
        return 0
    print(f"{'processor seconds':44} {'native':>10} {'portable':>10} {'ratio':>8}")
    for method in ("products", *options.methods):
        rounds: dict[str, list[list[float]]] = {word: [] for word in WORDS}
        for number in range(options.rounds):
            for word in WORDS if number % 2 == 0 else WORDS[::-1]:
                arguments = ("--scenario", options.scenario, "--methods", method, "--epochs", str(options.epochs))
                rounds[word].append(measured(word, *arguments))
        names = [f"{n} x {k} by {k} x {m}" for n, k, m in SHAPES] if method == "products" else [f"{options.scenario} × {method}"]
        for place, name in enumerate(names):
            print(row(name, *([seconds[place] for seconds in rounds[word]] for word in WORDS)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
