"""Tiny cells of everything built in, natively and on emulated processors: are they equal in every bit? A command.

    python tests/benchmarks/processors.py                              portable, this processor and three emulated ones
    python tests/benchmarks/processors.py --numerics native            what portable numerics are against
    python tests/benchmarks/processors.py --cells "method *" --processors EPYC
    python tests/benchmarks/processors.py --keep FOLDER                a line per cell as it ends; stopped, it resumes from them
    python tests/benchmarks/processors.py --keep FOLDER --write        no run: processors.json, and the table of the documentation, of these
    python tests/benchmarks/processors.py --campaign reports/demo.toml --processors Haswell EPYC

Every method once per level, every problem level and setting, backbone, task-free schedule and pre-training is one cell of a few epochs.
Each processor runs all of them in one process, the emulated ones under QEMU's user emulation (Debian's ``qemu-user``; it has AVX2 but no
AVX512). Matrices, curves, metrics, and the fingerprints of states and answers are compared. With ``--campaign`` the cells are those of a
campaign, whose reports from the records of each processor are compared as well, byte for byte: with times, memory and the processor's name
those of the first, and without the date. Prints a row per kind of cell and per cell that differs; exits with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fnmatch
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cglsuite.base.hashing import digest
from cglsuite.cells.portable import NumericsWord, arithmetic, environment_of

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue

FILE = Path(__file__).with_suffix(".json")
EMULATOR = shutil.which("qemu-x86_64")
PROCESSORS = ("Haswell", "Skylake-Client", "EPYC")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from short_methods import SHORT as SHORT_METHODS  # noqa: E402

SHORT: dict[str, Any] = {"training.epochs": 2}
ARITHMETIC = "arithmetic"  # the first outcome of a processor: the digest of its probe operations
NARROW = {"backbone.width": 8}
ON: dict[str, str] = {  # the tiny stream of a level, and of methods without task boundaries
    "NC": "testing-nodes/task-il@testing-1",
    "NR": "testing-node-targets/domain-il@testing-1",
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
                found[f"method {name}, {level}"] = (scenario, name, None, {**SHORT, **SHORT_METHODS.get(name, {})})
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


def resolved(catalogue: Catalogue, numerics: NumericsWord, names: str, campaign: str) -> Iterator[tuple[str, CellSpec]]:
    """The cells that apply, by name: those of a campaign if there is one."""
    from cglsuite.base.errors import NotApplicable
    from cglsuite.campaigns.campaign import load_campaign
    from cglsuite.campaigns.overrides import Overrides
    from cglsuite.campaigns.planning import plan_campaign
    from cglsuite.cells.spec import resolve_cell

    if campaign:
        for planned in plan_campaign(load_campaign(campaign), catalogue, Overrides(numerics=numerics)):
            if planned.cell is not None and wanted(planned.request.label, names):
                yield planned.request.label, planned.cell
        return
    for name, (scenario, method, backbone, settings) in cells(names).items():
        with contextlib.suppress(NotApplicable):
            yield name, resolve_cell(catalogue, scenario, method, backbone, settings, numerics=numerics)


def train(numerics: NumericsWord, names: str, file: Path, campaign: str = "") -> None:
    """Run the cells in this process; to the file, a line with the name and nothing as each begins, then one with what it came to."""
    from bits import outcome

    from cglsuite import load_catalogue
    from cglsuite.cells.run import run_cell
    from cglsuite.cells.storage.store import Store
    from cglsuite.testing import tiny_catalogue

    catalogue, begun = tiny_catalogue(load_catalogue()), read(file)
    with file.open("a") as out, tempfile.TemporaryDirectory() as room:
        if not campaign and ARITHMETIC not in begun and wanted(ARITHMETIC, names):
            print(json.dumps([ARITHMETIC, {"digest": arithmetic()}]), file=out, flush=True)
        store = Store(file.with_suffix("") if campaign else Path(room))
        for name, cell in resolved(catalogue, numerics, names, campaign):
            if name in begun:
                continue
            print(json.dumps([name, {}]), file=out, flush=True)
            record = run_cell(cell, catalogue, store)
            if campaign:
                store.put(record)
            what = outcome(record)
            defined = {metric: value for metric, value in what["metrics"].items() if value is not None}
            print(json.dumps([name, {**what, "metrics": defined, "reason": record.reason}]), file=out, flush=True)


def run(processor: str, numerics: NumericsWord, names: str, file: Path, campaign: str = "") -> dict[str, dict[str, Any]]:
    """What each cell came to on a processor ("" = this one): nothing if it killed the process. ``file`` has a line of JSON for each, and
    those in it are not run again."""
    file.touch()
    words = [sys.executable, "-W", "ignore", __file__, "--numerics", numerics, "--cells", names, "--campaign", campaign]
    words += ["--here", str(file)]
    if processor:
        assert EMULATOR is not None
        words = [EMULATOR, "-cpu", processor, *words]
    while True:
        begun = len(read(file))
        environment = environment_of(numerics) | {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        done = subprocess.run(words, env=environment, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode and len(read(file)) == begun:
            raise RuntimeError(f"{processor or 'this processor'} ended with {done.returncode}: {done.stderr[-2000:]}")
        if not done.returncode:
            return {name: what for name, what in read(file).items() if wanted(name, names)}


def read(file: Path) -> dict[str, dict[str, Any]]:
    """The lines of a file, by cell."""
    return dict(json.loads(line) for line in file.read_text().splitlines())


def outcomes(
    processors: Sequence[str], numerics: NumericsWord, names: str, folder: Path, campaign: str = ""
) -> dict[str, dict[str, dict[str, Any]]]:
    """By processor, what each cell came to; a file for each processor in ``folder``, and a store if they are of a campaign."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for processor in processors:
        found[processor] = run(processor, numerics, names, stored(folder, numerics, processor), campaign)
        print(f"{processor or 'this processor':16} {len(found[processor])} cells", file=sys.stderr, flush=True)
    return found


def stored(folder: Path, numerics: str, processor: str) -> Path:
    """The file of a processor's outcomes; without its suffix, the store of its records."""
    return folder / f"{numerics}-{processor or 'here'}.jsonl"


def reports(campaign: str, stores: Mapping[str, Path], room: Path) -> dict[str, dict[str, dict[str, str]]]:
    """By processor and file name, the campaign's pages from the records of each: times, memory and processor as in the first store's."""
    from cglsuite.cells.storage.store import Store
    from cglsuite.reports.site.index import render_campaign

    pages: dict[str, dict[str, dict[str, str]]] = {}
    first = {record.key: record for record in Store(stores[""]).records()}
    for processor, path in stores.items():
        folder = room / (processor or "here")
        folder.mkdir()
        shutil.copy(campaign, folder / "campaign.toml")
        target = Store(folder / "store")
        for record in Store(path).records():
            target.put(timed_as(record, first[record.key]))
        with contextlib.chdir(folder):  # pages name the store as it is named here
            done = render_campaign("campaign.toml", store="store", out="out", workers=1)
        texts = {one.path.name: (folder / one.path).read_text(encoding="utf-8") for one in done}
        pages[processor] = {name: {"bytes": re.sub(r"Rendered \S+ \S+ UTC in \d+ s", "", text)} for name, text in texts.items()}
    return pages


def timed_as(record: Record, first: Record) -> Record:
    """The record with the times, the memory and the processor's name of another."""
    took = {name: first.provenance[name] for name in ("trained_s", "covered_s")}
    machine = {name: first.environment[name] for name in ("cpu", "cpu_capability")}
    return dataclasses.replace(
        record,
        timings_s=first.timings_s,
        memory={**record.memory, "peak_bytes": first.memory["peak_bytes"]},
        provenance={**record.provenance, **took},
        environment={**record.environment, **machine},
        beside=record.curves(),
    )


def differences(found: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """By cell, the parts in which processors differ from the first."""
    first, *others = found
    unequal: dict[str, list[str]] = {}
    for name, expected in found[first].items():
        for other in others:
            there = found[other].get(name, {})
            if parts := [part for part, value in expected.items() if there.get(part) != value]:
                unequal.setdefault(name, []).append(f"{', '.join(parts)} on {other}" if there else f"did not run on {other}")
    return {name: "; ".join(where) for name, where in unequal.items()}


def digests(folder: Path) -> dict[str, dict[str, dict[str, str]]]:
    """By numerics, processor and cell, a digest of every outcome in a folder."""
    return {
        numerics: {
            processor: {name: digest(what)[:16] for name, what in sorted(read(file).items()) if what}
            for processor in ("", *PROCESSORS)
            if (file := stored(folder, numerics, processor)).is_file()
        }
        for numerics in ("native", "portable")
    }


def table(found: Mapping[str, Mapping[str, Mapping[str, str]]]) -> list[str]:
    """Markdown: per kind of cell, how many of those that ran on a processor have the outcome of the first processor."""
    columns = [(numerics, processor) for numerics in found for processor in found[numerics] if processor]
    lines = ["| cells | all | " + " | ".join(", ".join(column) for column in columns) + " |", "|" + " --- |" * (len(columns) + 2)]
    for kind in sorted({name.partition(" ")[0] for name in found["portable"][""]}):
        cells = [str(sum(name.partition(" ")[0] == kind for name in found["portable"][""]))]
        for numerics, processor in columns:
            of_kind = {name: what for name, what in found[numerics][processor].items() if name.partition(" ")[0] == kind}
            equal = sum(found[numerics][""].get(name) == what for name, what in of_kind.items())
            cells.append(f"{equal} of {len(of_kind)}" if of_kind else "–")
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return lines


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--numerics", choices=("native", "portable"), default="portable")
    parser.add_argument("--cells", default="*", help="patterns of names of cells, separated by |")
    parser.add_argument("--processors", nargs="*", default=list(PROCESSORS), help="processors that QEMU knows")
    parser.add_argument("--keep", type=Path, help="folder of outcomes, a file per processor; cells that it has are not run again")
    parser.add_argument("--campaign", default="", help="a campaign file: its cells and its reports instead")
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name} of the outcomes in --keep, and run nothing")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here is not None:
        train(options.numerics, options.cells, options.here, options.campaign)
        return 0
    if options.write and options.keep is not None:
        FILE.write_text(json.dumps(digests(options.keep), indent=1, sort_keys=True) + "\n")
        print("\n".join(table(json.loads(FILE.read_text()))))
        return 0
    with tempfile.TemporaryDirectory() as room:
        folder = (options.keep or Path(room, "outcomes")).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        processors = ["", *options.processors]
        found = outcomes(processors, options.numerics, options.cells, folder, options.campaign)
        unequal = differences(found)
        if options.campaign:
            stores = {processor: stored(folder, options.numerics, processor).with_suffix("") for processor in processors}
            unequal |= differences(reports(options.campaign, stores, Path(room)))
    kinds = sorted({name.partition(" ")[0] for name in found[""]})
    for kind in kinds:
        of_kind = [name for name in found[""] if name.partition(" ")[0] == kind]
        print(f"{kind:14} {sum(name not in unequal for name in of_kind):4} of {len(of_kind):4} cells equal")
    for name, what in unequal.items():
        print(f"  {name}: {what}")
    return int(bool(unequal))


if __name__ == "__main__":
    sys.exit(main())
