"""Tiny cells of everything built in, natively and on emulated processors: are they equal in every bit? A command.

    python tests/benchmarks/processors.py                              portable, this processor and three emulated ones
    python tests/benchmarks/processors.py --numerics native            what portable numerics are against
    python tests/benchmarks/processors.py --cells "method *" --processors EPYC
    python tests/benchmarks/processors.py --keep FOLDER                a line per cell as it ends; stopped, it resumes from them

Every method once per level, every problem level and setting, backbone, task-free schedule and pre-training is one cell of a few epochs.
Each processor runs all of them in one process, the emulated ones under QEMU's user emulation (Debian's ``qemu-user``; it has AVX2 but no
AVX512). Matrices, curves, metrics, and the fingerprints of states and answers are compared. Prints a row per kind of cell and per
operation that differs; exits with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from cglsuite.cells.portable import NumericsWord, environment_of

EMULATOR = shutil.which("qemu-x86_64")
PROCESSORS = ("Haswell", "Skylake-Client", "EPYC")
SHORT: dict[str, Any] = {"training.epochs": 2}
NARROW = {"backbone.width": 8}
ON: dict[str, str] = {  # the tiny stream of a level, and of methods without task boundaries
    "NC": "testing-nodes/task-il@testing-1",
    "LC": "testing-links/task-il@testing-1",
    "LP": "testing-interactions/domain-il@testing-1",
    "GC": "testing-graphs/task-il@testing-1",
    "GR": "testing-targets/domain-il@testing-1",
}
FREE = {"NC": "testing-nodes/task-free@testing-1", "GC": "testing-graphs/task-free@testing-1"}
SKELETONS, TASK_GUESSES = "synthetic-motion/class-il@skeleton-1", "testing-nodes/class-il@testing-1"

Cell = tuple[str, str, str | None, dict[str, Any]]
"""Scenario, method, backbone, settings."""


def cells(names: str = "*") -> dict[str, Cell]:
    """The cells by name, ``KIND NAME, LEVEL``; those whose name matches a pattern."""
    from cglsuite import load_catalogue
    from cglsuite.specs import BackboneSpec, MethodSpec, PretrainingSpec, ScheduleSpec
    from cglsuite.testing import TINY_SCENARIOS, tiny_catalogue

    catalogue = tiny_catalogue(load_catalogue())
    found: dict[str, Cell] = {}
    for name, spec in catalogue.specs(MethodSpec).items():
        for level in spec.levels:
            scenario = ON[level] if "task-il" in spec.settings else TASK_GUESSES if "class-il" in spec.settings else FREE.get(level)
            if scenario is not None:
                found[f"method {name}, {level}"] = (scenario, name, None, SHORT)
    for scenario in TINY_SCENARIOS:
        found[f"stream {scenario.partition('@')[0]}"] = (scenario, "bare", None, SHORT)
    for name, backbone in catalogue.specs(BackboneSpec).items():
        for level in backbone.levels:
            if name == "st-gcn":
                found["backbone st-gcn, GC"] = (SKELETONS, "bare", name, {"training.epochs": 1})
            elif name != "pyg":
                found[f"backbone {name}, {level}"] = (ON[level], "bare", name, SHORT)
    for name in catalogue.specs(ScheduleSpec):
        preset = f"synthetic-csbm/{name}@drift-1"
        if preset in catalogue.names("scenario"):
            found[f"schedule {name}, NC"] = (preset, "er", None, {})
    for name, pretraining in catalogue.specs(PretrainingSpec).items():
        for level in pretraining.levels:
            found[f"pre-training {name}, {level}"] = (ON[level], "bare", None, {**SHORT, "pretraining.scheme": name})
    return {name: cell for name, cell in found.items() if wanted(name, names)}


def wanted(name: str, names: str) -> bool:
    """Whether a cell's name matches one of the patterns, which ``|`` separates."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in names.split("|"))


def train(numerics: NumericsWord, names: str, out: IO[str], leave_out: Collection[str] = ()) -> None:
    """Run the cells in this process; a line with the name and nothing as each begins, then one with what it came to."""
    from bits import outcome

    from cglsuite import load_catalogue
    from cglsuite.base.errors import NotApplicable
    from cglsuite.cells.run import run_cell
    from cglsuite.cells.spec import resolve_cell
    from cglsuite.cells.storage.store import Store
    from cglsuite.testing import tiny_catalogue

    catalogue = tiny_catalogue(load_catalogue())
    with tempfile.TemporaryDirectory() as room:
        for name, (scenario, method, backbone, settings) in cells(names).items():
            if name in leave_out:
                continue
            try:
                cell = resolve_cell(catalogue, scenario, method, backbone, settings, numerics=numerics)
            except NotApplicable:
                continue
            print(json.dumps([name, {}]), file=out, flush=True)
            record = run_cell(cell, catalogue, Store(Path(room)))
            what = {**outcome(record), "reason": record.reason, "arithmetic": record.environment["arithmetic"]}
            print(json.dumps([name, what]), file=out, flush=True)


def run(processor: str, numerics: NumericsWord, names: str, file: Path) -> dict[str, dict[str, Any]]:
    """What each cell came to on a processor ("" = this one): nothing if it killed the process. ``file`` has a line of JSON for each, and
    those in it are not run again."""
    file.touch()
    words = [sys.executable, "-W", "ignore", __file__, "--numerics", numerics, "--cells", names, "--here", str(file)]
    if processor:
        assert EMULATOR is not None
        words = [EMULATOR, "-cpu", processor, *words]
    while True:
        begun = len(read(file))
        done = subprocess.run(
            words, env=environment_of(numerics) | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE, text=True, check=False
        )
        if done.returncode and len(read(file)) == begun:
            raise RuntimeError(f"{processor or 'this processor'} ended with {done.returncode}: {done.stderr[-2000:]}")
        if not done.returncode:
            return {name: what for name, what in read(file).items() if wanted(name, names)}


def read(file: Path) -> dict[str, dict[str, Any]]:
    """The lines of a file, by cell."""
    return dict(json.loads(line) for line in file.read_text().splitlines())


def outcomes(processors: Sequence[str], numerics: NumericsWord, names: str, folder: Path) -> dict[str, dict[str, Any]]:
    """By processor, what each cell came to; a file for each processor in ``folder``."""
    found: dict[str, dict[str, Any]] = {}
    for processor in processors:
        found[processor] = run(processor, numerics, names, folder / f"{numerics}-{processor or 'here'}.jsonl")
        print(f"{processor or 'this processor':16} {len(found[processor])} cells", file=sys.stderr, flush=True)
    return found


def differences(found: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """By cell, the parts in which processors differ from the first."""
    first, *others = found
    unequal: dict[str, str] = {}
    for name, expected in found[first].items():
        for other in others:
            there = found[other].get(name, {})
            if parts := [part for part, value in expected.items() if there.get(part) != value]:
                unequal[name] = f"{', '.join(parts)} on {other}" if there else f"did not run on {other}"
    return unequal


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--numerics", choices=("native", "portable"), default="portable")
    parser.add_argument("--cells", default="*", help="patterns of names of cells, separated by |")
    parser.add_argument("--processors", nargs="*", default=list(PROCESSORS), help="processors that QEMU knows")
    parser.add_argument("--keep", type=Path, help="folder of outcomes, a file per processor; cells that it has are not run again")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here is not None:
        with options.here.open("a") as out:
            train(options.numerics, options.cells, out, read(options.here))
        return 0
    with tempfile.TemporaryDirectory() as room:
        folder = options.keep or Path(room)
        folder.mkdir(parents=True, exist_ok=True)
        found = outcomes(["", *options.processors], options.numerics, options.cells, folder)
    unequal = differences(found)
    kinds = sorted({name.partition(" ")[0] for name in found[""]})
    for kind in kinds:
        of_kind = [name for name in found[""] if name.startswith(f"{kind} ")]
        print(f"{kind:14} {sum(name not in unequal for name in of_kind):4} of {len(of_kind):4} cells equal")
    for name, what in unequal.items():
        print(f"  {name}: {what}")
    return int(bool(unequal))


if __name__ == "__main__":
    sys.exit(main())
