"""What it costs to watch a cell. A command, not a test.

    python tests/benchmarks/observers.py [--rounds 7] [--epochs 400]

The same small cell, whose epochs take about a millisecond, is trained in turn without observers, with one that writes CSV files, and with
one of a user's that looks at every epoch. Printed are the medians of the processor times, their ratios to the runs without observers, and
whether all fingerprints are equal. The last line is the price where nobody observes: one call of an empty function per epoch.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from statistics import median

from cglsuite.cells import CellOptions, CellSpec, Observer, Store, resolve_cell, run_cell
from cglsuite.cells.observing import CsvObserver
from cglsuite.host import Catalogue
from cglsuite.learning.loop import unheard
from cglsuite.testing import tiny_catalogue


class Looks(Observer):
    """Keeps the last loss."""

    def epoch_ended(self, cell: object, task: int, epoch: int, loss: float, monitored: float | None) -> None:
        self.last = loss


def trained(cell: CellSpec, catalogue: Catalogue, folder: Path, observers: list[Observer]) -> tuple[float, object]:
    """Seconds of processor time, and the fingerprints."""
    began = time.process_time()
    record = run_cell(cell, catalogue, Store(folder / "store"), CellOptions(observers=observers))
    assert record.done, record.reason
    return time.process_time() - began, record.fingerprints()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=400)
    options = parser.parse_args()
    catalogue = tiny_catalogue()
    overrides = {"training.epochs": options.epochs}
    cell = resolve_cell(catalogue, "testing-nodes/class-il@testing-1", "testing-fine-tuning", overrides=overrides)
    ways: dict[str, Callable[[Path], list[Observer]]] = {
        "nobody": lambda folder: [],
        "nobody, again": lambda folder: [],
        "csv": lambda folder: [CsvObserver(folder)],
        "a class of one's own": lambda folder: [Looks()],
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    prints = []
    for turn in range(options.rounds + 1):
        for name, made in ways.items():
            with tempfile.TemporaryDirectory() as room:
                seconds, fingerprints = trained(cell, catalogue, Path(room), made(Path(room)))
            prints.append(fingerprints)
            if turn:  # the first round loads modules
                spent[name].append(seconds)
    alone = median(spent["nobody"])
    for name, seconds in spent.items():
        print(f"{name:22} {median(seconds):7.3f} s   ratio {median(seconds) / alone:.3f}")
    print(f"fingerprints: {'all equal' if all(one == prints[0] for one in prints) else 'THEY DIFFER'} ({len(prints)} runs)")
    epochs = 3 * options.epochs
    call_s = timeit.timeit(lambda: unheard(0.5, None), number=200_000) / 200_000
    print(f"an epoch takes {1e6 * alone / epochs:.0f} µs; without observers it calls an empty function: {1e9 * call_s:.0f} ns")


if __name__ == "__main__":
    main()
