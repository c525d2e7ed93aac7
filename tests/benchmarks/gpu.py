"""What only a GPU can show: equal bits when a cell is run again or resumed, waits by CUDA's own count, and speed. A command, not a test.

    python tests/benchmarks/gpu.py cells [--limit 70] [--workers 8] [--killed]    streams x methods x backbones as whole cells
    python tests/benchmarks/gpu.py waits [--json FILE]                            what a step waits for, by line, as CUDA warns
    python tests/benchmarks/gpu.py speed [--epochs 30]                            time per epoch beside one core, and memory

``cells`` takes the combinations of accelerator.py, or a random ``--limit`` of them. It trains each on the device, then again on the device
where an exception interrupts it after its first task (``--killed``: the process dies by SIGKILL), resumes it, and compares everything that
the two records hold of the method's states and answers, bit for bit; it also trains it on the CPU and prints the largest difference of the
two performance matrices. With ``--device cpu`` or ``--device pretend`` it needs no GPU. Where CUDA has no deterministic kernel torch warns;
such warnings are counted.

``waits`` counts as ``accelerator.py crossings`` does, but what CUDA itself reports; of both the JSON files have one form. ``speed`` prints
the median time from the end of one epoch to that of the next, so evaluations, checkpoints and records are left out.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import accelerator
import overhead
import pretend_device
import torch

from cglsuite import Catalogue, Seeds, load_catalogue
from cglsuite.base.errors import CglsuiteError, NotApplicable
from cglsuite.cells import resolve_cell
from cglsuite.cells.device import check_device
from cglsuite.cells.plan import CellOptions
from cglsuite.cells.records.comparison import compare
from cglsuite.cells.run import build_stream, make_runner, numerics, run_cell
from cglsuite.cells.storage.store import Store
from cglsuite.testing import tiny_catalogue

# --- cells -------------------------------------------------------------------------------------------------------------------------------


@dataclass
class Ran:
    """What became of one combination; ``distance`` is the largest difference of an entry of the performance matrix from the CPU's."""

    trial: accelerator.Trial
    status: str
    reason: str = ""
    resumed: int = 0
    distance: float = 0.0
    nondeterministic: tuple[str, ...] = ()


def _killed(trial: accelerator.Trial, device: str, folder: Path) -> None:
    """In a process of its own, which knows no catalogue yet."""
    catalogue = tiny_catalogue()
    accelerator.killed_after_a_task(trial.cell(catalogue, device), catalogue, folder)


def _interrupted(cell: Any, catalogue: Catalogue, folder: Path) -> None:
    """Train until the first task has been learnt and saved; an exception ends the cell and not the process."""

    def progress(learnt: int, of: int) -> None:
        if learnt:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        run_cell(cell, catalogue, Store(folder), CellOptions(progress=progress, checkpoint_every_s=0))


def _ran(trial: accelerator.Trial, device: str, killed: bool) -> Ran:
    """Twice on the device, once of these resumed, and once on the CPU."""
    catalogue, records, context = tiny_catalogue(), {}, multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as room, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if killed:
            child = context.Process(target=_killed, args=(trial, device, Path(room, "resumed")))
            child.start()
            child.join()
        try:
            if not killed:
                _interrupted(trial.cell(catalogue, device), catalogue, Path(room, "resumed"))
            for name, where in (("resumed", device), ("whole", device), ("cpu", "cpu")):
                records[name] = run_cell(trial.cell(catalogue, where), catalogue, Store(Path(room, name)))
        except NotApplicable as error:
            return Ran(trial, "skipped", str(error))
        except CglsuiteError as error:
            return Ran(trial, "refused", str(error))
    resumed, whole, cpu = records["resumed"], records["whole"], records["cpu"]
    if not whole.done:
        return Ran(trial, whole.status, whole.reason or "")
    unequal = compare(whole, resumed, ("whole", "resumed"))
    entries = [(a, b) for ours, theirs in zip(whole.matrix, cpu.matrix, strict=True) for a, b in zip(ours, theirs, strict=True)]
    return Ran(
        trial,
        "differs" if unequal else "equal",
        ", ".join(unequal),
        resumed.provenance["resumed_from_task"],
        max((abs(a - b) for a, b in entries if a is not None and b is not None), default=0.0),
        tuple(sorted({str(one.message)[:120] for one in warned if "deterministic" in str(one.message)})),
    )


def cells(args: argparse.Namespace) -> int:
    """The command ``cells``; 1 if a resumed cell has other bits than a whole one or none."""
    every = list(accelerator.trials(tiny_catalogue()))
    chosen = random.Random(args.seed).sample(every, min(args.limit or len(every), len(every)))
    outcomes: list[Ran] = []
    with ProcessPoolExecutor(args.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for one in pool.map(_ran, chosen, [args.device] * len(chosen), [args.killed] * len(chosen)):
            outcomes.append(one)
            if one.status != "equal" or one.nondeterministic:
                what = [one.status, one.reason, *one.nondeterministic]
                print(f"{one.trial.stream} × {one.trial.method} × {one.trial.backbone}: {'; '.join(filter(None, what))}", flush=True)
    equal = [one for one in outcomes if one.status == "equal"]
    counted = Counter(one.status for one in outcomes)
    print(f"{len(outcomes)} of {len(every)} combinations: " + ", ".join(f"{n} {status}" for status, n in counted.items()))
    print(f"{sum(one.resumed > 0 for one in equal)} of {len(equal)} resumed after their first task, with the bits of an uninterrupted run")
    apart = sorted((one for one in equal if one.distance > 0.0), key=lambda one: -one.distance)
    print(f"{len(equal) - len(apart)} have the CPU's performance matrix{'; the largest differences of an entry:' if apart else ''}")
    for one in apart[:5]:
        print(f"    {one.distance:.4f} {one.trial.stream} × {one.trial.method} × {one.trial.backbone}")
    return int(any(one.status not in ("equal", "skipped") for one in outcomes))


# --- waits -------------------------------------------------------------------------------------------------------------------------------


@contextmanager
def warned_of() -> Iterator[Counter[pretend_device.Crossing]]:
    """Count what CUDA warns of within the context, by line of the suite."""
    seen = Counter[pretend_device.Crossing]()

    def show(message: Any, *rest: Any, **more: Any) -> None:
        if "synchroniz" in str(message):
            seen.update([pretend_device.Crossing("wait", "of CUDA", pretend_device.line())])

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield seen
        finally:
            torch.cuda.set_sync_debug_mode("default")


def waits(args: argparse.Namespace) -> int:
    """The command ``waits``."""
    catalogue = tiny_catalogue()
    accelerator.write(args.json, accelerator.counted(list(accelerator.trials(catalogue)), catalogue, (), args.device, warned_of))
    return 0


# --- speed -------------------------------------------------------------------------------------------------------------------------------

LARGE = {**overhead.SIZE, "dataset.n_nodes": 200_000, "dataset.avg_degree": 20.0, "dataset.n_features": 128, "dataset.words": 128.0}
# name -> (scenario, backbone, settings)
WORK: dict[str, tuple[str, str, dict[str, Any]]] = {
    "CoraFull's size": (overhead.SCENARIO, "gcn", {**overhead.SIZE, "scenario.n_tasks": 3, "backbone.width": 256}),
    "200,000 nodes": (overhead.SCENARIO, "gcn", {**LARGE, "scenario.n_tasks": 3, "backbone.width": 256}),
    "N-UCLA, GCN": ("nw-ucla/class-il@skeleton-2", "graph-gcn", {"scenario.n_tasks": 2}),
    "N-UCLA, ST-GCN": ("nw-ucla/class-il@skeleton-2", "st-gcn", {"scenario.n_tasks": 2}),
}


def per_epoch(catalogue: Catalogue, work: str, method: str, device: str, epochs: int) -> tuple[float, int]:
    """Median seconds of an epoch after the first task's, and the peak of the device's memory in bytes (0 on a CPU)."""
    scenario, backbone, settings = WORK[work]
    given = {**settings, "training.epochs": epochs}
    cell = resolve_cell(catalogue, scenario, method, backbone, given, Seeds(), device=device)
    ends: list[float] = []
    learnt, intervals = [0], []

    def on_task(k: int) -> None:
        learnt[0] += 1
        ends.clear()

    def on_epoch(loss: float, monitored: float | None) -> None:
        ends.append(time.perf_counter())
        if learnt[0] >= 1 and len(ends) > 2:
            intervals.append(ends[-1] - ends[-2])

    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    with numerics(cell):
        runner = make_runner(cell, catalogue, build_stream(cell, catalogue), on_task=on_task)
        runner.on_epoch = on_epoch
        runner.run()
    return median(intervals), torch.cuda.max_memory_allocated() if device.startswith("cuda") else 0


def speed(args: argparse.Namespace) -> int:
    """The command ``speed``."""
    catalogue = load_catalogue()
    print(f"{'work':18} {'method':6} {args.device + ' ms':>9} {'one core ms':>12} {'ratio':>6} {'peak MB':>8}")
    for work in args.work or WORK:
        if "N-UCLA" in work and not os.environ.get("CGLSUITE_DATA"):
            print(f"{work:18} not run: its data are not here (CGLSUITE_DATA)")
            continue
        for method in args.method or ("bare", "lwf", "twp"):
            ours, peak = per_epoch(catalogue, work, method, args.device, args.epochs)
            theirs, _ = per_epoch(catalogue, work, method, "cpu", max(4, args.epochs // 6))
            print(f"{work:18} {method:6} {1e3 * ours:9.2f} {1e3 * theirs:12.2f} {theirs / ours:6.1f} {peak / 2**20:8.0f}", flush=True)
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cells", "waits", "speed"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--limit", type=int, default=0, help="cells: so many combinations, drawn at random (0: all)")
    parser.add_argument("--seed", type=int, default=0, help="cells: of the draw")
    parser.add_argument("--workers", type=int, default=4, help="cells: processes")
    parser.add_argument("--killed", action="store_true", help="cells: by SIGKILL, in place of an exception")
    parser.add_argument("--epochs", type=int, default=30, help="speed: per task")
    parser.add_argument("--work", action="append", choices=list(WORK), help="speed: only this (repeatable)")
    parser.add_argument("--method", action="append", help="speed: only this (repeatable)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="waits: write the counts")
    args = parser.parse_args()
    torch.set_num_threads(1)
    try:
        with accelerator.known():
            check_device(args.device)
            if args.what == "waits" and not args.device.startswith("cuda"):
                parser.error("waits are CUDA's own: accelerator.py crossings counts those of the pretend device")
            return {"cells": cells, "waits": waits, "speed": speed}[args.what](args)
    except CglsuiteError as error:
        print(error, file=sys.stderr)
        return 3


if __name__ == "__main__":
    raise SystemExit(main())
