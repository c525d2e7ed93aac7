"""Processor seconds, memory and sizes of pages of ``cglsuite site`` over stores of many records. A command, not a test.

    python tests/benchmarks/board.py [--records 2000 20000 200000]
    python tests/benchmarks/board.py --keep stores --records 20000    # the same store again; the site stays in stores/20000/site

Records are made, not trained: one cell is trained in each of two settings, and its record serves, with accuracies of its own, for presets
and methods of the catalogue, with 5 orders and 5 initialisations each. Of three methods, two have marks of verification. More records
means more scenarios, as on a leaderboard that grows. The command runs in a process of its own, and time is that of the processor. The
time of an empty store is what starting and loading plugins costs; it is taken off before times are related to numbers of records. Growth
is the exponent of time in the number of records: 1 is linear.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cglsuite.base.hashing import digest
from cglsuite.cells.plan import CellRequest, plan_cell
from cglsuite.cells.records.metric_values import metrics_from
from cglsuite.cells.records.record import Record
from cglsuite.cells.run import run_cell
from cglsuite.cells.storage.store import Store
from cglsuite.commons.submissions.staging import Mark, write_marks
from cglsuite.host import load_catalogue
from cglsuite.specs import Seeds

__all__ = ["fill", "main"]

ORDERS = INITS = 5
METHODS = 16
SETTINGS = ("class-il", "task-il")
TINY = {"training.epochs": 2, "backbone.width": 8}


def fill(folder: Path, records: int) -> None:
    """A store of about ``records`` records in ``folder``, with marks."""
    catalogue, store = load_catalogue(), Store(folder)
    templates = {}
    with tempfile.TemporaryDirectory() as scratch:
        for setting in SETTINGS:
            planned = plan_cell(CellRequest(scenario=f"synthetic-csbm/{setting}@begin-1", method="bare", overrides=TINY), catalogue)
            templates[setting] = run_cell(planned.cell, catalogue, Store(scratch))
    draw, marks = random.Random(0), list[Mark]()
    methods = [m for m in catalogue.names("method") if "NC" in (s := catalogue.method(m)).levels and {*SETTINGS} <= {*s.settings}][:METHODS]
    per_scenario = len(methods) * ORDERS * INITS
    for preset in _presets(catalogue, math.ceil(records / per_scenario)):
        template = templates[preset.partition("/")[2].partition("@")[0]]
        names = list(template.metrics)
        for place, method in enumerate(methods):
            for seeds in [Seeds(order=order, init=init) for order in range(ORDERS) for init in range(INITS)]:
                record = _another(template, preset, method, seeds, draw, catalogue, names)
                path = store.record_path(record.key)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(record.to_text())
                if place % 3:
                    rerun = "bits" if seeds == Seeds() else "sample"
                    marks.append(Mark(key=record.key, digest=record.digest, level="verified", rerun=rerun))
    write_marks(folder, "made", {}, marks)


def _presets(catalogue: Any, number: int) -> Iterator[str]:
    """Names of presets, then of variants of presets."""
    names = [name for name in catalogue.names("scenario") if (s := catalogue.scenario(name)).level == "NC" and s.setting in SETTINGS]
    for n in range(number):
        name, turn = names[n % len(names)], n // len(names)
        yield name if turn == 0 else f"{name}+{digest([name, turn])[:8]}"


def _another(template: Record, preset: str, method: str, seeds: Seeds, draw: random.Random, catalogue: Any, names: list[str]) -> Record:
    scale = 0.8 + 0.2 * random.Random(f"{preset} {method}").random()
    matrix = [[None if v is None else v * scale * draw.uniform(0.95, 1.0) for v in row] for row in template.matrix]
    where = {"order": seeds.order, "split": seeds.split, "init": seeds.init}
    order = random.Random(seeds.order).sample(range(len(template.tasks)), len(template.tasks))
    scenario = preset.partition("+")[0]
    cell = {**template.cell, "scenario": scenario, "preset": preset, "method": method, "seeds": where}
    record = template.with_parts(
        key=hashlib.sha256(f"{preset} {method} {seeds}".encode()).hexdigest(),
        design=hashlib.sha256(f"design {preset} {method} {seeds}".encode()).hexdigest(),
        cell=cell,
        scenario={**template.scenario, "dataset": scenario.partition("/")[0]},
        matrix=matrix,
        tasks=[template.tasks[k] for k in order],
    )
    return record.with_parts(metrics=metrics_from(record, catalogue, names))


# A process in between: the memory that the kernel reports is the largest of all children so far.
_MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print()
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(code)
"""


def measured(words: list[str], cache: Path) -> tuple[float, float]:
    """Processor seconds of ``cglsuite WORDS``, and its memory in MB."""
    environment = {**os.environ, "CGLSUITE_CACHE": str(cache)}
    command = [sys.executable, "-c", _MEASURED, sys.executable, "-m", "cglsuite", *words]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if ended.returncode:
        raise SystemExit(f"cglsuite {' '.join(words)}: exit status {ended.returncode}\n{ended.stderr}")
    seconds, kilobytes = ended.stdout.splitlines()[-1].split()
    return float(seconds), float(kilobytes) / 1e3


def empty_s(cache: Path) -> float:
    """Processor seconds of the site of no records, once plugins have been tried."""
    with tempfile.TemporaryDirectory(prefix="board-") as name:
        store = Path(name) / "store"
        (store / "cells").mkdir(parents=True)
        words = ["site", str(store), "--out", str(Path(name) / "site")]
        return [measured(words, cache)[0] for _ in range(2)][1]


def measure(wanted: int, kept: Path | None, cache: Path, floor: float) -> dict[str, float]:
    """Fill a store, unless an earlier call has kept it, make its site, and print what that took."""
    with contextlib.ExitStack() as stack:
        folder = kept or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="board-")))
        store, site = folder / "store", folder / "site"
        if not (folder / "filled").exists():
            fill(store, wanted)
            (folder / "filled").touch()
        sizes = [path.stat().st_size for path in (store / "cells").rglob("*.json")]
        seconds, megabytes = measured(["site", str(store), "--out", str(site)], cache)
        pages = sorted((path.stat().st_size, path.name) for path in site.glob("*.html"))
        feeds = sum(path.stat().st_size for path in (site / "feeds").rglob("*.*") if path.is_file())
        row = {"records": len(sizes), "seconds": seconds - floor, "ms_per_record": 1e3 * (seconds - floor) / len(sizes)}
        row |= {"memory_mb": megabytes, "pages": len(pages), "pages_mb": sum(size for size, _ in pages) / 1e6}
        row |= {"largest_kb": pages[-1][0] / 1e3, "index_kb": (site / "index.html").stat().st_size / 1e3, "feeds_mb": feeds / 1e6}
    print(f"{len(sizes)} records of {sum(sizes) / len(sizes) / 1e3:.1f} kB: {seconds:.1f} s, {megabytes:.0f} MB", flush=True)
    print("  " + ", ".join(f"{name} {value:.4g}" for name, value in row.items()) + f"; largest page {pages[-1][1]}", flush=True)
    return row


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[2000, 20000])
    parser.add_argument("--keep", type=Path, help="a folder to keep stores and sites in; stores of an earlier call are used again")
    parser.add_argument("--json", action="store_true", help="also print one JSON object")
    args = parser.parse_args()
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="board-cache-") as cache:
        floor = empty_s(Path(cache))
        print(f"an empty store: {floor:.1f} s", flush=True)
        for wanted in args.records:
            rows.append(measure(wanted, args.keep and args.keep.absolute() / str(wanted), Path(cache), floor))
            if len(rows) > 1:
                growth = math.log(rows[-1]["seconds"] / rows[-2]["seconds"]) / math.log(rows[-1]["records"] / rows[-2]["records"])
                print(f"  growth of time from {rows[-2]['records']:.0f} records: {growth:.2f}", flush=True)
    if args.json:
        print(json.dumps({"empty_s": floor, "sites": rows}))


if __name__ == "__main__":
    main()
