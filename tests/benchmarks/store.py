"""Processor seconds and memory of ``run``, ``status``, ``results``, ``report``, ``publish`` and ``pull`` over stores of many records. A
command, not a test.

    python tests/benchmarks/store.py [--records 8 2000 20000] [--skip report]
    python tests/benchmarks/store.py --keep stores --records 20000    # the same stores again, for another version of the suite

The campaign is real and small: four methods on a synthetic stream of classes, in task- and class-IL, with as many seeds as it takes. One
cell of every method and scenario is trained; its record serves for all other seeds with accuracies of its own, so that files are as
large as those of real cells. Every command runs in a process of its own, and time is that of the processor, of child processes too. The
time of a store of eight records is what starting and loading plugins costs; the rest, per record, should not grow with their number.

``run`` finds every cell done. Its first call reads the records and fills the index; the others are what a finished campaign costs.
``recognise`` is the store's part of that alone, in this process: which of the keys have no result. ``merge`` goes into an empty store,
``merge again`` finds everything there; so do ``publish`` and ``pull``, which write to a folder. Commands after ``pull`` are the same ones
over the pulled store, whose records lie in shards.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cglsuite.campaigns.campaign import load_campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.keys import design_key, prefix_keys
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.records.record import Record
from cglsuite.cells.run import metrics_of, run_cell
from cglsuite.cells.storage.store import Store
from cglsuite.host import load_catalogue

__all__ = ["main"]

GROUPS = 8
PULLED = ("run", "status", "results", "results CAMPAIGN", "report")
CAMPAIGN = """
name = "many"
[grid]
scenarios = ["synthetic-csbm/task-il@begin-1", "synthetic-csbm/class-il@begin-1"]
methods = ["bare", "ewc", "lwf", "joint"]
[seeds]
design = "cross"
order = {orders}
init = {inits}
[set]
training.epochs = 2
backbone.width = 8
[run]
device = "cpu"
numerics = "native"
[[report]]
notebook = "campaign_report"
"""


def fill(folder: Path, records: int) -> Path:
    """A campaign of ``records`` cells, all done, in ``folder/store``: the path of its file."""
    per_group = max(1, round(records / GROUPS))
    orders = next(n for n in range(math.isqrt(per_group), 0, -1) if per_group % n == 0)
    inits = per_group // orders
    path = folder / "many.toml"
    path.write_text(CAMPAIGN.format(orders=list(range(orders)), inits=list(range(inits))))
    catalogue, store = load_catalogue(), Store(folder / "store")
    trained: dict[tuple[str, str], Record] = {}
    draw = random.Random(0)
    for planned in plan_campaign(load_campaign(path), catalogue, store=store):
        group = (planned.request.scenario, planned.request.method)
        if group not in trained:
            trained[group] = run_cell(planned.cell, catalogue, store)
            store.drop_checkpoints(prefix_keys(planned.cell, catalogue))  # type: ignore[arg-type]
        else:
            _write(store, _another(trained[group], planned, catalogue, draw))
    return path


def _another(record: Record, planned: PlannedCell, catalogue: Any, draw: random.Random) -> Record:
    """``record`` as that of another cell, with accuracies between nine tenths of those that it has and all of them."""
    cell: Any = planned.cell
    data = record.to_json()
    matrix = [[None if v is None else v * draw.uniform(0.9, 1.0) for v in row] for row in data["matrix"]]
    numbers = [[math.nan if v is None else v for v in row] for row in matrix]
    seeds = {"order": cell.seeds.order, "split": cell.seeds.split, "init": cell.seeds.init}
    data |= {"key": planned.key, "design": design_key(cell), "cell": data["cell"] | {"seeds": seeds}}
    data |= {"matrix": matrix, "metrics": metrics_of(cell, catalogue, numbers, stream={"tasks": data["tasks"]})}
    data.pop("schema")
    data.pop("digest", None)
    return Record(**data)


def _write(store: Store, record: Record) -> None:
    path = store.record_path(record.key)  # not Store.put: 20,000 waits for the disk measure the disk
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(record.to_text())


def processor_s(command: list[str], store: Path) -> tuple[float, float]:
    """User and system seconds of ``cglsuite COMMAND`` and its children, and the largest memory of one process in MB."""
    environment = {**os.environ, "CGLSUITE_STORE": str(store), "CGLSUITE_CACHE": str(store.parent / "cache")}
    words = [sys.executable, "-c", _MEASURED, sys.executable, "-m", "cglsuite", *command]
    ended = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    if ended.returncode:
        raise SystemExit(f"cglsuite {' '.join(command)}: exit status {ended.returncode}\n{ended.stderr}")
    seconds, kilobytes = ended.stdout.splitlines()[-1].split()
    return float(seconds), float(kilobytes) / 1e3


# A process in between: the memory that the kernel reports is the largest of all children so far.
_MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print()
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(code)
"""


def recognised_s(path: Path, folder: Path) -> float:
    """Processor seconds until the store in ``folder`` has said which cells of the campaign have no result."""
    store = Store(folder)
    planned = plan_campaign(load_campaign(path), load_catalogue(), store=store)
    began = time.process_time()
    unfinished = store.unfinished(p.key for p in planned)
    if unfinished:
        raise SystemExit(f"{len(unfinished)} of {len(planned)} cells have no result")
    return time.process_time() - began


def commands(path: Path, skip: list[str]) -> dict[str, list[str]]:
    """What is measured, by name."""
    run = ["run", str(path), "--no-reports", "--quiet"]
    merge = ["merge", str(path.parent / "store"), "--into", str(path.parent / "merged")]
    publish = ["publish", str(path.parent / "store"), str(path.parent / "published"), "--quiet"]
    pull = ["pull", str(path.parent / "published"), "--into", str(path.parent / "pulled"), "--quiet"]
    known = {
        "run": run,
        "run again": run,
        "status": ["status", str(path), "--json"],
        "results": ["results", "--output", str(path.with_suffix(".csv"))],
        "results again": ["results", "--output", str(path.with_suffix(".csv"))],
        "results CAMPAIGN": ["results", str(path), "--output", str(path.with_suffix(".csv"))],
        "results --verify": ["results", "--verify"],
        "report": ["report", str(path), "--force"],
        "merge": merge,
        "merge again": merge,
        "publish": publish,
        "publish again": publish,
        "pull": pull,
        "pull again": pull,
    }
    known |= {f"{name}, pulled": known[name] for name in PULLED}
    return {name: words for name, words in known.items() if name not in skip}


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[GROUPS, 2000, 20000])
    parser.add_argument("--skip", nargs="*", default=[], help="commands to leave out")
    parser.add_argument("--json", action="store_true", help="also print one JSON object")
    parser.add_argument("--keep", type=Path, help="a folder to keep the stores in; those of an earlier call are used again")
    args = parser.parse_args()
    seconds: dict[str, dict[int, float]] = {}
    memory: dict[str, dict[int, float]] = {}
    for records in args.records:
        with contextlib.ExitStack() as stack:
            kept = args.keep.absolute() / str(records) if args.keep else None
            folder = kept or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="many-records-")))
            os.environ["CGLSUITE_CACHE"] = str(folder / "cache")
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / "many.toml" if (folder / "filled").exists() else fill(folder, records)
            (folder / "filled").touch()
            shutil.rmtree(folder / "cache", ignore_errors=True)
            for made in ("merged", "published", "pulled"):
                shutil.rmtree(folder / made, ignore_errors=True)
            sizes = [p.stat().st_size for p in (folder / "store" / "cells").rglob("*.json")]
            print(f"{len(sizes)} records of {sum(sizes) / len(sizes) / 1e3:.1f} kB", flush=True)
            for label, words in commands(path, args.skip).items():
                taken, megabytes = processor_s(words, folder / ("pulled" if label.endswith(", pulled") else "store"))
                seconds.setdefault(label, {})[len(sizes)] = taken
                memory.setdefault(label, {})[len(sizes)] = megabytes
                floor = seconds[label].get(GROUPS)
                more = f"  {1e3 * (taken - floor) / (len(sizes) - GROUPS):8.3f} ms per record" if floor and len(sizes) > GROUPS else ""
                print(f"  {label:<24} {taken:8.1f} s  {megabytes:8.0f} MB{more}", flush=True)
            for store in ("store", "pulled") if "recognise" not in args.skip else ():
                print(f"  {'recognise, ' + store:<24} {recognised_s(path, folder / store):8.2f} s", flush=True)
            if (folder / "published").exists():
                published = [p.stat().st_size for p in (folder / "published").rglob("*") if p.is_file()]
                print(f"  published: {len(published)} files, {sum(published) / 1e6:.1f} MB", flush=True)
    if args.json:
        print(json.dumps({"seconds": seconds, "memory_mb": memory}))


if __name__ == "__main__":
    main()
