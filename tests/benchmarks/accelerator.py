"""Whole cells on the pretend accelerator, with the CPU's numbers: where code would fail or wait on CUDA. A command.

    python tests/benchmarks/accelerator.py cells             every level, method and backbone, killed and resumed on the device
    python tests/benchmarks/accelerator.py cover             a part of them that meets every (stream, method) and (stream, backbone)
    python tests/benchmarks/accelerator.py crossings         what every method makes host and device exchange, by line

``cells`` trains every cell three times on the tiny streams of ``cglsuite.testing``: on the CPU; on the device, where the process is
killed after its first task; and on the device from the checkpoint of that process. The fingerprints of the method's state and of its
answers must be the CPU's after every task. ``cover`` trains a cell once per device. Dropout of networks is off: the CPU draws its masks in
a way of its own. With ``--json FILE`` both write every outcome as it is known, and go on where an earlier run with this file stopped: what
has been found equal is not trained again as long as the cell's key and the device are the same.

``crossings`` counts, within training, what the host waits for (downloads, operators whose output size depends on values, CPU indices), and
what it uploads. The device is described in tests/tools/pretend_device.py. About a quarter of an hour (``cells``), a minute (``cover``) and
half a minute on one core.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import pretend_device
from short_methods import SHORT

from cglsuite.base.errors import CglsuiteError, NotApplicable
from cglsuite.base.hashing import digest
from cglsuite.cells import resolve_cell
from cglsuite.cells.device import accelerator
from cglsuite.cells.keys import cell_key
from cglsuite.cells.plan import CellOptions
from cglsuite.cells.run import build_stream, make_runner, numerics, run_cell
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue
from cglsuite.specs import Seeds
from cglsuite.testing import tiny_catalogue

SAMPLED = {"training.batch_size": 16, "training.fan_out": "3,3"}
FEW = {"dataset.n_classes": 6, "scenario.n_tasks": 3, "dataset.per_class": 10, "dataset.frames": 8}
"""Three tasks of twenty short sequences."""
# name -> (scenario, settings): one stream or more of every level, kind of label and way to train.
STREAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "nodes": ("testing-nodes/class-il@testing-1", {}),
    "nodes, task-IL": ("testing-nodes/task-il@testing-1", {}),
    "nodes, own subgraphs": ("testing-nodes/class-il@testing-1", {"scenario.edge_policy": "none"}),
    "nodes over time": ("testing-nodes/time-il@testing-1", {"training.monitor": "validation-loss"}),
    "nodes, sampled": ("testing-nodes/class-il@testing-1", SAMPLED),
    "nodes, several labels": ("testing-label-sets/class-il@testing-1", {}),
    "nodes, real targets": ("testing-node-targets/domain-il@testing-1", {}),
    "nodes, task-free": ("testing-nodes/task-free@testing-1", {}),
    "nodes, task-free, sampled": ("testing-nodes/task-free@testing-1", {"training.fan_out": "3,3"}),
    "links": ("testing-links/class-il@testing-1", {}),
    "pairs": ("testing-interactions/domain-il@testing-1", {}),
    "graphs": ("testing-graphs/class-il@testing-1", {}),
    "graphs, task-free": ("testing-graphs/task-free@testing-1", {}),
    "graphs, properties": ("testing-molecules/domain-il@testing-1", {}),
    "real targets": ("testing-targets/domain-il@testing-1", {}),
    "skeletons": ("synthetic-motion/class-il@skeleton-1", {"backbone.dropout": 0.0, **FEW}),
}
COVERED = (
    *("nodes", "nodes, sampled", "nodes, several labels", "nodes, task-free"),
    *("links", "pairs", "graphs", "real targets", "skeletons"),
)
SMALL = {"training.epochs": 2}
NARROW = {"width": 16, "layers": 2, "dropout": 0.0}


@dataclass(frozen=True)
class Trial:
    """A stream, a method and a backbone."""

    stream: str
    method: str
    backbone: str

    def cell(self, catalogue: Catalogue, device: str, settings: dict[str, Any] | None = None) -> Any:
        """The resolved cell on a device.

        Raises:
            NotApplicable: the method or the backbone is not for this stream.
        """
        scenario, own = STREAMS[self.stream]
        declared = {h.name for h in catalogue.backbone(self.backbone).hyperparameters}
        narrow = {f"backbone.{name}": value for name, value in NARROW.items() if name in declared}
        given = {**SMALL, **SHORT.get(self.method, {}), **narrow, **own, **(settings or {})}
        given = {k: v for k, v in given.items() if not k.startswith("backbone.") or k.removeprefix("backbone.") in declared}
        return resolve_cell(catalogue, scenario, self.method, self.backbone, given, Seeds(), device=device)


@dataclass
class Outcome:
    """What became of a cell on both devices."""

    trial: Trial
    status: str
    reason: str = ""
    resumed: int = 0
    key: str = ""
    """Of everything that the outcome depends on."""
    crossings: dict[str, dict[str, float]] = field(default_factory=dict)


def trials(catalogue: Catalogue, left_out: list[tuple[Trial, str]] | None = None) -> Iterator[Trial]:
    """Every combination that the specs admit; the others of its level are added to ``left_out``, with the reason."""
    for stream, (scenario, _) in STREAMS.items():
        try:
            preset = catalogue.scenario(scenario)
        except CglsuiteError:
            continue  # its distribution is not installed
        for method in catalogue.names("method"):
            for backbone in catalogue.names("backbone"):
                if preset.level not in catalogue.method(method).levels or preset.level not in catalogue.backbone(backbone).levels:
                    continue
                trial, reason = Trial(stream, method, backbone), ""
                if backbone == "st-gcn" and stream != "skeletons":
                    reason = "its graphs are sequences of joints"
                else:
                    try:
                        trial.cell(catalogue, "cpu")
                    except NotApplicable as error:
                        reason = str(error)
                if not reason:
                    yield trial
                elif left_out is not None:
                    left_out.append((trial, reason))


def cover(every: Sequence[Trial]) -> list[Trial]:
    """A few trials that meet every (stream, method) and every (method, backbone) and (stream, backbone), chosen greedily."""
    missing = {pair for trial in every for pair in _pairs(trial)}
    chosen: list[Trial] = []
    while missing:
        best = max(every, key=lambda trial: len(missing & _pairs(trial)))
        chosen.append(best)
        missing -= _pairs(best)
    return chosen


def _pairs(trial: Trial) -> set[tuple[str, ...]]:
    return {("sm", trial.stream, trial.method), ("sb", trial.stream, trial.backbone), ("mb", trial.method, trial.backbone)}


# --- a cell on both devices --------------------------------------------------------------------------------------------------------------


def compared(trial: Trial, catalogue: Catalogue, *, killed: bool) -> Outcome:
    """Train a cell on the CPU and on the device and compare their fingerprints."""
    with tempfile.TemporaryDirectory() as room:
        results = {}
        for device in ("cpu", "pretend"):
            cell, folder = trial.cell(catalogue, device), Path(room, device)
            if killed and device == "pretend":
                _in_child(lambda cell=cell, folder=folder: killed_after_a_task(cell, catalogue, folder))
            if killed:  # in a process of its own: threads that torch starts for a device do not outlive a fork
                _in_child(lambda cell=cell, folder=folder: run_cell(cell, catalogue, Store(folder)))
                found = list(Store(folder).records())
                if not found:
                    return Outcome(trial, "died", f"no record on {device}")
                results[device] = found[0]
            else:
                results[device] = run_cell(cell, catalogue, Store(folder))
        cpu, pretend = results["cpu"], results["pretend"]
    resumed = pretend.provenance["resumed_from_task"]
    if cpu.status != pretend.status:
        return Outcome(
            trial, "differs", f"{cpu.status} on the CPU ({cpu.reason}), {pretend.status} on the device ({pretend.reason})", resumed
        )
    if not cpu.done:
        return Outcome(trial, cpu.status, cpu.reason or "", resumed)
    unequal = [
        name
        for name in ("matrix", "validation_matrix", "per_class")
        if json.dumps(getattr(cpu, name)) != json.dumps(getattr(pretend, name))
    ]
    ours, theirs = cpu.fingerprints(), pretend.fingerprints()
    unequal += [f"{part} after task {k + 1}" for k, (a, b) in enumerate(zip(ours, theirs, strict=True)) for part in a if a[part] != b[part]]
    return Outcome(trial, "differs" if unequal else "equal", ", ".join(unequal), resumed)


def _imported_as_by(trial: Trial, catalogue: Catalogue) -> None:
    """Import what a cell imports, once: it takes longer than a tiny cell, and children inherit it."""
    with tempfile.TemporaryDirectory() as room:
        names = Path(room, "names")

        def work() -> None:
            run_cell(trial.cell(catalogue, "cpu"), catalogue, Store(Path(room, "store")))
            names.write_text("\n".join(sys.modules))

        if _in_child(work) == 0:
            for name in names.read_text().split():
                with suppress(ImportError):
                    importlib.import_module(name)


def killed_after_a_task(cell: Any, catalogue: Catalogue, folder: Path) -> None:
    """Train until the first task has been learnt and saved; the process ends by SIGKILL."""

    def progress(learnt: int, of: int) -> None:
        if learnt:
            os.kill(os.getpid(), signal.SIGKILL)

    run_cell(cell, catalogue, Store(folder), CellOptions(progress=progress, checkpoint_every_s=0))


def _in_child(work: Callable[[], object]) -> int:
    """Run ``work`` in a forked process; its exit status."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:  # noqa: BLE001 - a child must not run on in the parent's code
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1]


# --- crossings ---------------------------------------------------------------------------------------------------------------------------


Counting = Callable[[], AbstractContextManager[Counter[pretend_device.Crossing]]]


def per_step(
    trial: Trial, catalogue: Catalogue, device: str = "pretend", crossings: Counting = pretend_device.crossings
) -> dict[str, dict[str, float]]:
    """Crossings of one step of training after the first task, by kind and line; of a full batch a step is an epoch."""
    cell = trial.cell(catalogue, device, {"training.epochs": 4 if "task-free" not in trial.stream else 1})
    stream = build_stream(cell, catalogue)
    with numerics(cell), crossings() as seen:
        intervals: list[Counter[pretend_device.Crossing]] = []
        last: list[Counter[pretend_device.Crossing] | None] = [None]
        learnt, steps = [0], [0]

        def on_task(k: int) -> None:
            learnt[0], last[0] = learnt[0] + 1, None

        def on_epoch(loss: float, monitored: float | None) -> None:
            before, last[0] = last[0], Counter(seen)
            if before is not None and learnt[0] > 1:
                intervals.append(last[0] - before)
                steps[0] += taken[0] or 1  # a phase with a loss of its own: its epoch
            taken[0] = 0

        runner, taken = make_runner(cell, catalogue, stream, on_task=on_task), [0]
        runner.on_epoch = on_epoch
        made = runner.method.loss

        def loss(batch: Any) -> Any:
            taken[0] += 1
            return made(batch)

        runner.method.loss = loss  # type: ignore[method-assign]
        runner.run()
    if not intervals:
        return {}
    # A method may call its own loss several times a step; a full batch and a task-free stream have one step per interval.
    n_steps = steps[0] if "sampled" in trial.stream and "task-free" not in trial.stream else len(intervals)
    total: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for crossing, count in sum(intervals, Counter[pretend_device.Crossing]()).items():
        place = f"{crossing.operator} at {crossing.line}"
        total[crossing.kind][place] = total[crossing.kind].get(place, 0.0) + count / n_steps
    return dict(total)


COUNTED = (
    *("nodes", "nodes, task-IL", "nodes, sampled", "nodes, several labels", "nodes, task-free", "nodes, task-free, sampled"),
    *("links", "pairs", "graphs", "graphs, task-free", "skeletons"),
)


def waits(found: dict[str, dict[str, float]]) -> float:
    """How often the host waits for the device in a step."""
    return sum(sum(places.values()) for kind, places in found.items() if kind != pretend_device.UPLOAD)


# --- the command -------------------------------------------------------------------------------------------------------------------------


@contextmanager
def known() -> Iterator[None]:
    """The device is known by its word, as by an installed distribution."""
    with tempfile.TemporaryDirectory() as room:
        pretend_device.entry_point(Path(room))
        sys.path.insert(0, room)
        try:
            assert accelerator("pretend") is not None
            yield
        finally:
            sys.path.remove(room)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cells", "cover", "crossings"])
    parser.add_argument("--method", action="append", help="only this method (repeatable)")
    parser.add_argument("--stream", action="append", help="only this stream (repeatable)")
    parser.add_argument("--backbone", action="append", help="only this backbone (repeatable)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcomes")
    options = parser.parse_args()
    if reason := pretend_device.absence():
        print(reason, file=sys.stderr)
        return 3
    if options.what == "cells":
        pretend_device.built()  # children load it, each before its first backward pass
        importlib.import_module("torch._dynamo")  # Adam imports it
    else:
        pretend_device.install()  # torch counts its devices at the first backward pass of the process
    left_out: list[tuple[Trial, str]] = []
    with known():
        catalogue = tiny_catalogue()
        every = [
            trial
            for trial in trials(catalogue, left_out)
            if all(
                not chosen or name in chosen
                for chosen, name in zip((options.stream, options.method, options.backbone), _names(trial), strict=True)
            )
        ]
        if options.what == "crossings":
            outcomes = counted(every, catalogue, options.backbone or ())
            write(options.json, outcomes)
        else:
            outcomes = _trained(every, catalogue, options.what, options.json)
    if options.what == "cells" and not (options.stream or options.method or options.backbone):
        _show_left_out(left_out)
    return int(any(o.status not in ("equal", "counted", "skipped") for o in outcomes))


def _names(trial: Trial) -> tuple[str, str, str]:
    return trial.stream, trial.method, trial.backbone


def _trained(every: list[Trial], catalogue: Catalogue, what: str, file: Path | None) -> list[Outcome]:
    chosen = cover([trial for trial in every if trial.stream in COVERED]) if what == "cover" else every
    for stream in {trial.stream: trial for trial in chosen}.values() if what == "cells" else ():
        _imported_as_by(stream, catalogue)
    known_equal = {one.key: one for one in _read(file) if one.status == "equal"}
    outcomes = []
    for trial in chosen:
        key = _key(trial, catalogue, what)
        try:
            outcome = known_equal.get(key) or compared(trial, catalogue, killed=what == "cells")
        except CglsuiteError as error:
            outcome = Outcome(trial, "refused", str(error))
        outcome.key = key
        outcomes.append(outcome)
        write(file, outcomes, [one for one in known_equal.values() if one not in outcomes])
        if outcome.status != "equal":
            print(f"{' × '.join(_names(trial))}: {outcome.status}: {outcome.reason}", flush=True)
    write(file, outcomes)
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in outcomes:
        rows[one.trial.stream][one.status] += 1
        rows[one.trial.stream]["resumed"] += one.resumed > 0
    for stream, row in rows.items():
        print(f"{stream:28} " + ", ".join(f"{n} {status}" for status, n in row.items()))
    counted = Counter(one.status for one in outcomes)
    print(f"{len(outcomes)} of {len(every)} combinations: " + ", ".join(f"{n} {status}" for status, n in counted.items()))
    equal = {(_level(one.trial, catalogue), one.trial.method, one.trial.backbone) for one in outcomes if one.status == "equal"}
    print(f"{len(equal)} different (level, method, backbone) with equal fingerprints")
    return outcomes


def _level(trial: Trial, catalogue: Catalogue) -> str:
    return catalogue.scenario(STREAMS[trial.stream][0]).level


def _key(trial: Trial, catalogue: Catalogue, what: str) -> str:
    """A digest of the cell on both devices, of the device, and of this command's settings."""
    cells = [cell_key(trial.cell(catalogue, device), catalogue) for device in ("cpu", "pretend")]
    return digest([what, *cells, pretend_device.SOURCE.read_text(encoding="utf-8")])


def _read(file: Path | None) -> list[Outcome]:
    if file is None or not file.exists():
        return []
    return [Outcome(**{**found, "trial": Trial(**found["trial"])}) for found in json.loads(file.read_text())]


def write(file: Path | None, outcomes: Sequence[Outcome], others: Sequence[Outcome] = ()) -> None:
    """Write the outcomes in one go, so that a process that is killed leaves a whole file."""
    if file is not None:
        fresh = file.with_name(f"{file.name}.{os.getpid()}")
        fresh.write_text(json.dumps([{**vars(one), "trial": vars(one.trial)} for one in (*outcomes, *others)], indent=1) + "\n")
        fresh.replace(file)


def _show_left_out(left_out: Sequence[tuple[Trial, str]]) -> None:
    """What no cell can be resolved for, by reason."""
    by_reason: defaultdict[str, list[Trial]] = defaultdict(list)
    for trial, reason in left_out:
        by_reason[reason].append(trial)
    print(f"{len(left_out)} combinations of a level are not for each other:")
    for reason, those in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        print(f"    {len(those):4} {reason}")


def _default_backbone(trial: Trial, catalogue: Catalogue) -> str:
    return catalogue.scenario(STREAMS[trial.stream][0]).training.backbone


def counted(
    every: Sequence[Trial],
    catalogue: Catalogue,
    backbones: Sequence[str] = (),
    device: str = "pretend",
    crossings: Counting = pretend_device.crossings,
) -> list[Outcome]:
    """Count and print the crossings of a step of every trial, with the preset's backbone unless ``backbones`` names some."""
    outcomes = []
    for trial in every:
        if trial.stream not in COUNTED or trial.backbone not in (backbones or [_default_backbone(trial, catalogue)]):
            continue
        try:
            found = per_step(trial, catalogue, device, crossings)
        except NotApplicable as error:  # which some methods only see in the stream
            outcomes.append(Outcome(trial, "skipped", str(error)))
            continue
        outcomes.append(Outcome(trial, "counted", crossings=found))
        uploads = sum(found.get(pretend_device.UPLOAD, {}).values())
        print(f"{trial.stream:20} {trial.method:16} {waits(found):7.2f} waits, {uploads:7.2f} uploads a step", flush=True)
        for kind, places in sorted(found.items()):
            for place, count in sorted(places.items(), key=lambda item: -item[1]):
                print(f"    {count:7.2f} {kind:10} {place}")
    return outcomes


if __name__ == "__main__":
    raise SystemExit(main())
