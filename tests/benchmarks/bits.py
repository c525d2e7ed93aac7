"""Every built-in method on streams of every level: what a refactoring must leave as it is, bit for bit. A command.

    python tests/benchmarks/bits.py write before.json          at the commit before
    python tests/benchmarks/bits.py write after.json           at the commit after
    python tests/benchmarks/bits.py compare before.json after.json

``write`` trains the cells of a small campaign over the embedded streams (nodes under three edge policies, nodes with several labels, links,
pairs of nodes, graphs, real targets, skeleton sequences on a GCN and on ST-GCN, and task-free streams; with mini-batches and two task
orders where they matter) and writes what each came to: matrices, accuracies per class, curves, metrics, the method's memory and
the fingerprints of its answers and of its state. ``compare`` prints a row per stream and exits with 1 where anything differs. It uses the
command line and the stored records only, so that any two commits can be compared. About three minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from cglsuite.campaigns.campaign import RunSection
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store

# name -> (scenario, settings). The settings are short trainings of narrow networks: equality needs no accuracy.
STREAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "nodes, whole graph": ("synthetic-csbm/class-il@begin-1", {"training.epochs": 4, "backbone.width": 16}),
    "nodes, task-IL": ("synthetic-csbm/task-il@begin-1", {"training.epochs": 4, "backbone.width": 16}),
    "nodes, own subgraphs": ("synthetic-csbm/class-il@cglb-1", {"training.epochs": 4}),
    "nodes, sampled": ("synthetic-csbm/task-il@cglb-inter-1", {"training.epochs": 2, "training.batch_size": 64, "training.fan_out": "5,5"}),
    "nodes, several labels": ("synthetic-csbm-edges/class-il@agale-1", {"training.epochs": 3}),
    "links": ("synthetic-signed-links/class-il@begin-1", {"training.epochs": 3, "backbone.width": 16}),
    "links over time": ("synthetic-signed-links/time-il@begin-1", {"training.epochs": 3, "backbone.width": 16}),
    "pairs": ("synthetic-temporal-links/time-il@begin-1", {"training.epochs": 2, "backbone.width": 16}),
    "graphs": ("synthetic-motifs/class-il@begin-1", {"training.epochs": 3, "backbone.width": 16}),
    "real targets": ("synthetic-graph-regression/domain-il@begin-1", {"training.epochs": 3, "backbone.width": 16}),
    "skeletons": ("synthetic-motion/class-il@skeleton-1", {"training.epochs": 2}),
    "task-free nodes": ("synthetic-csbm/gaussian@drift-1", {}),
    "task-free graphs": ("synthetic-motifs/hard@drift-honest-1", {}),
}
METHODS = (
    *("bare", "joint", "replay", "ewc", "mas", "lwf", "twp", "gem", "er-gnn", "continual-gnn", "evolve-gcn", "der++", "er-ace"),
    *("er", "a-gem", "gss", "mas-star", "ssm", "sem", "dmsg"),
)
ORDERS = {"nodes, whole graph": [0, 1], "graphs": [0, 1]}
FURTHER = {
    "skeletons on ST-GCN": (
        "synthetic-motion/class-il@skeleton-1",
        {"training.epochs": 1, "training.backbone": "st-gcn"},
        ("bare", "lwf", "gem"),
    )
}
COMPARED = (
    "status",
    "matrix",
    "validation_matrix",
    "per_class",
    "curves",
    "metrics",
    "memory",
    "parameters",
    "answers",
    "state",
    "counters",
)
VARIES = {"peak_bytes"}


def campaign(scenario: str, settings: dict[str, Any], methods: tuple[str, ...], orders: list[int]) -> str:
    """A campaign file over one stream."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    grid = f"[grid]\nscenarios = [{json.dumps(scenario)}]\nmethods = {json.dumps(list(methods))}\n"
    run = "[run]\ntimeout_s = 900\n" + ('numerics = "native"\n' if "numerics" in RunSection.model_fields else "")  # as versions without it
    return f'name = "bits"\n{grid}\n[seeds]\norder = {orders}\n\n[set]\n' + "\n".join(lines) + f"\n\n{run}"


def outcome(record: Record) -> dict[str, Any]:
    """What a stored record says came out of its cell, times aside."""
    curves = record.curves()
    return {
        **{name: getattr(record, name) for name in ("status", "matrix", "validation_matrix", "per_class", "metrics", "parameters")},
        "curves": curves.trainings,
        "memory": {name: value for name, value in record.memory.items() if name not in VARIES},
        "answers": [p["answers"] for p in curves.fingerprints],
        "state": [p["state"] for p in curves.fingerprints],
        "counters": record.counters,
    }


def write(target: Path, workers: int, wanted: tuple[str, ...]) -> int:
    """Train every cell of the ``wanted`` methods and write what it came to."""
    plan = {name: (*stream, wanted) for name, stream in STREAMS.items()}
    plan |= {name: (*stream, tuple(m for m in methods if m in wanted)) for name, (*stream, methods) in FURTHER.items()}
    cells: dict[str, Any] = {}
    for name, (scenario, settings, methods) in plan.items():
        with tempfile.TemporaryDirectory() as room:
            file, store = Path(room, "bits.toml"), Path(room, "store")
            file.write_text(campaign(scenario, settings, methods, ORDERS.get(name, [0])))
            words = [sys.executable, "-m", "cglsuite", "run", str(file), "--store", str(store), "--no-reports", "--device", "cpu"]
            done = subprocess.run([*words, "--workers", str(workers)], capture_output=True, text=True, check=False)
            records = list(Store(store).records())
            if not records:
                print(done.stderr, file=sys.stderr)
                return 1
            for record in records:
                cells[f"{name} | {record.cell['method']} | order {record.cell['seeds']['order']}"] = outcome(record)
        counted = Counter(record.status for record in records)
        print(f"{name:24} {scenario:46} " + ", ".join(f"{n} {status}" for status, n in sorted(counted.items())), flush=True)
    target.write_text(json.dumps(cells, sort_keys=True, indent=0) + "\n")
    print(f"{len(cells)} cells in {target}")
    return 0


def compare(before: Path, after: Path) -> int:
    """Print a row per stream, and the facts that only the later commit records; 1 where anything else differs."""
    one, other = json.loads(before.read_text()), json.loads(after.read_text())
    rows: dict[str, Counter[str]] = {}
    added: Counter[str] = Counter()
    for cell in sorted(one.keys() | other.keys()):
        row = rows.setdefault(cell.partition(" | ")[0], Counter())
        row["cells"] += 1
        if cell not in one or cell not in other:
            row[f"only {'before' if cell in one else 'after'}: {cell}"] += 1
            continue
        unequal = []
        for part in COMPARED:
            was, now = one[cell][part], other[cell][part]
            if isinstance(was, dict) and isinstance(now, dict):
                added.update(f"{part}.{name}" for name in now.keys() - was.keys())
                now = {name: value for name, value in now.items() if name in was}
            unequal += [part] if was != now else []
        row["equal"] += not unequal
        if unequal:
            row[f"{cell}: {', '.join(unequal)}"] += 1
    for name, row in rows.items():
        print(f"{name:24} {row.pop('equal'):3} of {row.pop('cells'):3} cells equal")
        for fault in row:
            print(f"    {fault}")
    for fact, n in sorted(added.items()):
        print(f"only after, in {n} cells: {fact}")
    return int(any(row for row in rows.values()))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    writing = actions.add_parser("write")
    writing.add_argument("target", type=Path)
    writing.add_argument("--workers", type=int, default=2)
    writing.add_argument("--methods", default=",".join(METHODS), help="some of them, separated by commas")
    comparing = actions.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.action == "write":
        return write(given.target, given.workers, tuple(given.methods.split(",")))
    return compare(given.before, given.after)


if __name__ == "__main__":
    sys.exit(main())
