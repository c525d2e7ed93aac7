"""What it costs to keep workers clean: the watch over one cell of the suite's own code and of foreign code, and a fresh worker process.

``python tests/benchmarks/clean_workers.py [REPEATS]`` prints milliseconds of processor time per cell, and seconds for a process that is
ready to train. Numbers of one machine: compare them with nothing else.
"""

from __future__ import annotations

import dataclasses
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from cglsuite import Seeds, load_catalogue
from cglsuite.cells import resolve_cell
from cglsuite.cells.process import ROLES, Watch
from cglsuite.host import Catalogue, Entry
from cglsuite.specs import KINDS

READY = "import cglsuite.cells.run; from cglsuite import load_catalogue; load_catalogue()"


def as_foreign(catalogue: Catalogue) -> Catalogue:
    """The same plugins, as if strangers had written the methods."""
    entries = [entry for kind in KINDS for entry in catalogue.entries(kind)]
    stranger = {"record": dataclasses.replace(entries[0].record, distribution="strangers")}
    made: list[Entry] = [dataclasses.replace(e, **stranger) if e.kind == "method" else e for e in entries]
    return Catalogue(catalogue.records, made)


def watched(catalogue: Catalogue, n_tasks: int) -> None:
    """All that is done for one cell, without the cell."""
    cell = resolve_cell(catalogue, "synthetic-csbm/class-il@begin-1", "bare", seeds=Seeds())
    began = time.process_time()
    watch = Watch(cell, catalogue)
    watch.look("dataset")
    with watch.inside((), "method") as verify:
        for _ in range(n_tasks if watch.foreign else 0):
            verify()
    watch.finish(*ROLES)
    watch.look()
    TIMES.append(time.process_time() - began)
    assert not watch.changes, watch.changes


TIMES: list[float] = []


def median(run: Callable[[], object], repeats: int) -> float:
    """Median of what ``run`` noted, the first one, which takes the census, aside."""
    TIMES.clear()
    for _ in range(repeats + 1):
        run()
    return statistics.median(TIMES[1:])


def main() -> None:
    """Measure and print."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    catalogue = load_catalogue()
    foreign = as_foreign(catalogue)
    print(f"own code           {1e3 * median(lambda: watched(catalogue, 5), repeats):6.1f} ms a cell")
    print(f"foreign, 5 tasks   {1e3 * median(lambda: watched(foreign, 5), repeats):6.1f} ms a cell")
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", READY], check=True)
    print(f"a fresh worker     {time.perf_counter() - began:6.2f} s")


if __name__ == "__main__":
    main()
