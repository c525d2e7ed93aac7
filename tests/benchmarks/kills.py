"""Kill a campaign again and again with signal 9, resume it, and compare its records with those of an uninterrupted run. A command.

    python tests/benchmarks/kills.py [--kills 200] [--seed 0] [--keep FOLDER]

A campaign of ten cells (six task orders that share prefixes, two cells by themselves, two task-free ones) runs in two workers. Killed are,
in turn and at random: the supervisor, a worker, both, a ``cell --rerun`` of a finished cell, each at a random moment or in the middle of
writing a checkpoint, a record, a lease or a plan. After every kill the finished records must still be there; a campaign that got to its end
must have the bits of the uninterrupted one, and must have left no lease, plan, checkpoint or temporary file, and nothing set aside as
damaged. The exit status is 0 if all that holds.

Moments in the middle of a write are found by audit events of the interpreter, so the suite runs as it is. Processes are forked from one
that has imported torch already, which is much quicker than starting two hundred campaigns, and safe with one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # read when torch loads
os.environ["CGLSUITE_CHECKPOINT_EVERY"] = "0"  # its cells are quick, and writing a checkpoint is what is interrupted

from cglsuite import host, load_catalogue
from cglsuite.campaigns.executors import LocalExecutor, RunOptions, supervisor, worker
from cglsuite.campaigns.executors import supervisor as process
from cglsuite.cells.obtain import obtain_record
from cglsuite.cells.plan import CellRequest, PlannedCell, plan_cell
from cglsuite.cells.storage.layout import curves_path
from cglsuite.cells.storage.store import Store

__all__ = ["Harness", "Strike", "main", "strikes"]

SMALL = {"dataset.n_nodes": 72, "dataset.n_classes": 6, "dataset.n_features": 40, "backbone.width": 6}
TASKS = SMALL | {"training.epochs": 10}
TASK_FREE = SMALL | {"dataset.words": 5, "dataset.avg_degree": 4, "training.batch_size": 4, "training.fan_out": "3,3"}
TASK_FREE |= {"stream.evaluate_every": 6, "schedule.sigma": 3.0, "scenario.memory_budget": 30}
ORDERS = ("0,1,2,3,4,5", "0,1,4,5,2,3", "2,3,0,1,4,5", "2,3,4,5,0,1", "4,5,0,1,2,3", "4,5,2,3,0,1")
STAGES = ("opened", "moments later", "half written", "before the rename", "after the rename")
RESULTS = ("matrix", "validation_matrix", "per_class", "training", "metrics", "tasks", "parameters", "cell", "design")
LIMIT_S = 120.0
HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Strike:
    """Who is killed, and when: at the ``nth`` write of a file in ``folder``, in this ``stage``; without a folder after ``delay`` of a run.

    Args:
        victim: ``parent``, ``worker``, ``both`` or ``rerun``.
        delay: share of the time that an uninterrupted run takes; for a stage of "moments later", of two milliseconds.
    """

    victim: str
    folder: str = ""
    stage: str = ""
    nth: int = 1
    delay: float = 0.5

    @property
    def row(self) -> tuple[str, str]:
        """Where it belongs in the table."""
        what = {"checkpoints": "checkpoint", "cells": "record", "leases": "lease", "plans": "plan"}
        return self.victim, f"writing a {what[self.folder]}" if self.folder else "any time"


def strikes(rng: random.Random, table: Mapping[tuple[str, str], Counter[str]], rerun: bool) -> Strike:
    """A strike drawn at random, on a rerun or on a campaign; what has been struck often is drawn less often."""
    places = [("rerun", "", 3), ("rerun", "checkpoints", 2), ("rerun", "cells", 5), ("rerun", "leases", 1)]
    if not rerun:
        places = [("parent", "", 4), ("worker", "", 4), ("both", "", 3), ("parent", "plans", 1), ("parent", "leases", 1)]
        places += [("worker", "checkpoints", 5), ("worker", "cells", 5), ("worker", "leases", 3)]
    had = [table.get(Strike(victim=victim, folder=folder).row, Counter())["kills"] for victim, folder, _ in places]
    victim, folder, _ = rng.choices(places, weights=[weight / (1 + n) for (*_, weight), n in zip(places, had, strict=True)])[0]
    stage = rng.choice(STAGES[:2] if folder == "leases" else STAGES) if folder else ""
    # A run writes one plan and a rerun one record; everything else is written several times.
    nth = 1 if folder == "plans" or (victim, folder) == ("rerun", "cells") or rerun else rng.randint(1, 4)
    return Strike(victim=victim, folder=folder, stage=stage, nth=nth, delay=rng.random())


class _Hook:
    """Kills this process where a strike says, by the interpreter's audit events."""

    def __init__(self, strike: Strike, kill: Callable[[], None]) -> None:
        self.strike, self.kill, self.met, self.over, self.soon = strike, kill, 0, False, threading.Event()
        threading.Thread(target=self._later, daemon=True).start()
        sys.addaudithook(self)

    def _later(self) -> None:
        self.soon.wait()
        time.sleep(0.002 * self.strike.delay)
        self.kill()

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if self.over:
            self.over = False  # killing is an event, too
            self.kill()
        if event == "open" and isinstance(args[0], str | os.PathLike):
            self._opened(Path(args[0]), args[2] or 0)
        elif event == "os.rename":
            self._renamed(Path(args[0]), Path(args[1]))

    def _struck(self, path: Path) -> bool:
        """Whether a file is in the folder of the strike, or in a shard of it."""
        return self.strike.folder in (path.parent.name, path.parent.parent.name)

    def _opened(self, path: Path, flags: int) -> None:
        if self.strike.stage not in STAGES[:2] or not self._struck(path) or not flags & os.O_EXCL:
            return
        self.met += 1
        if self.met == self.strike.nth:
            self.soon.set() if self.strike.stage == STAGES[1] else self.kill()

    def _renamed(self, source: Path, target: Path) -> None:
        if self.strike.stage in STAGES[:2] or not self._struck(target) or source.suffix != ".tmp":
            return
        self.met += 1
        if self.met != self.strike.nth:
            return
        if self.strike.stage == "after the rename":
            self.over = True
            return
        if self.strike.stage == "half written":
            os.truncate(source, source.stat().st_size // 2)
        self.kill()


class _Forked:
    """As much of :class:`subprocess.Popen` as the executor uses, for a worker that is forked: nothing is imported anew."""

    struck = False

    def __init__(self, words: Sequence[str], *, stdout: Any, pass_fds: tuple[int], strike: Strike | None, **_: Any) -> None:
        lifeline, self._held = os.pipe()
        self.stdin = io.FileIO(self._held, "w")
        self.returncode: int | None = None
        strike, _Forked.struck = (None if _Forked.struck else strike), True
        self.pid = os.fork()
        if self.pid:
            os.close(lifeline)
            return
        with _no_return():
            os.setsid()
            for source, target in ((lifeline, 0), (stdout.fileno(), 1), (stdout.fileno(), 2)):
                os.dup2(source, target)
            os.closerange(3, pass_fds[0])
            os.closerange(pass_fds[0] + 1, 4096)
            _arm(strike, "worker")
            os._exit(worker.main(words[words.index("cglsuite.campaigns.executors.worker") + 1 :]))

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = time.monotonic() + (LIMIT_S if timeout is None else timeout)
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise process.subprocess.TimeoutExpired("worker", timeout or LIMIT_S)
            time.sleep(0.005)
        assert self.returncode is not None
        return self.returncode


@contextlib.contextmanager
def _no_return() -> Any:
    """The code of a forked child, which never comes back into its parent's."""
    try:
        yield
    except BaseException as error:  # noqa: BLE001 - whatever it was, this process ends here
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(99)


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def _arm(strike: Strike | None, role: str) -> None:
    """Have this process killed as the strike says, if it is meant."""
    if strike is None or strike.victim != role:
        return
    if strike.folder:
        _Hook(strike, _die)
    else:
        timer = threading.Timer(strike.delay, _die)
        timer.daemon = True
        timer.start()


def _die_together() -> None:
    for pid in [w.process.pid for w in WORKERS if w.process.returncode is None]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    _die()


class Harness:
    """Runs campaigns, strikes, and looks at what is left.

    Args:
        folder: where stores lie. seed: of all that is drawn.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng, self.catalogue = folder, random.Random(seed), load_catalogue()
        self.cells = self._cells()
        self._import_all()
        self.table: dict[tuple[str, str], Counter[str]] = {}
        self.faults: list[str] = []
        self.campaigns = 0
        began = time.monotonic()
        self._child(self._campaign, Store(folder / "whole"), None)
        self.whole_s = time.monotonic() - began
        self.whole = self.results(Store(folder / "whole"))
        if len(self.whole) != len(self.cells):
            raise SystemExit("the uninterrupted campaign did not get to its end")

    def _cells(self) -> list[PlannedCell]:
        tasks, task_free = "synthetic-csbm/class-il@begin-1", "synthetic-csbm/gaussian@drift-honest-1"
        requests = [
            *(CellRequest(scenario=tasks, method="er-gnn", overrides=TASKS | {"scenario.class_order": order}) for order in ORDERS),
            *(CellRequest(scenario=tasks, method=method, overrides=TASKS) for method in ("ewc", "lwf")),
            *(CellRequest(scenario=task_free, method=method, overrides=TASK_FREE) for method in ("er", "bare")),
        ]
        return [plan_cell(request, self.catalogue) for request in requests]

    def _import_all(self) -> None:
        """Load in this process what cells need, so that those that are forked need not."""
        for cell in self.cells:
            names = {"method": cell.request.method, "backbone": cell.backbone, "scenario": cell.request.scenario}
            entries = [self.catalogue.get(kind, name) for kind, name in names.items()] + list(self.catalogue.entries("metric"))
            for entry in entries:
                self.catalogue.resolve(entry)
        for name in WARM:
            importlib.import_module(name)
        host.load_catalogue = lambda: self.catalogue
        supervisor.FOREIGN_POLL_S = 0.1

    def results(self, store: Store) -> dict[str, Any]:
        """What of every finished record must not depend on accidents, by key."""
        records = [record for cell in self.cells if (record := store.cached(cell.key)) is not None]
        return {record.key: {name: getattr(record, name) for name in RESULTS} for record in records}

    def kill(self, kills: int) -> None:
        """Strike until so many processes have been killed, and see the last campaign to its end."""
        while (done := sum(row["kills"] for row in self.table.values())) < kills:
            self.campaigns += 1
            store = Store(self.folder / f"store{self.campaigns}")
            left = kills - done
            while len(self.results(store)) < len(self.cells):
                left -= self._strike(store, strikes(self.rng, self.table, rerun=False) if left else None)
            for _ in range(min(left, self.rng.randint(0, 3))):
                self._strike(store, strikes(self.rng, self.table, rerun=True))
            if self._settled(store):
                shutil.rmtree(store.path)
            print(f"campaign {self.campaigns}: {sum(row['kills'] for row in self.table.values())} kills", file=sys.stderr)

    def _strike(self, store: Store, strike: Strike | None) -> bool:
        """One run with its strike: whether somebody was killed by it."""
        before = {key: store.record_path(key).read_bytes() for key in self.results(store)}
        mark = store.path.with_suffix(".struck")
        mark.unlink(missing_ok=True)
        if strike is not None and strike.victim == "rerun":
            struck = self._child(self._rerun, store, strike) == -signal.SIGKILL
        else:
            struck = self._child(self._campaign, store, strike) == -signal.SIGKILL or mark.exists()
        if strike is None or not struck:
            return False
        after = self.results(Store(store.path))
        row = self.table.setdefault(strike.row, Counter())
        lost = [key for key in before if key not in after]
        unlike = [key for key in after if after[key] != self.whole[key]]
        if strike.victim != "rerun":
            unlike += [key for key in before if key in after and store.record_path(key).read_bytes() != before[key]]
        row.update({"kills": 1, "records": len(before), "lost": len(lost), "unlike": len(unlike)})
        self.faults += [f"{strike}: {what} {key}" for what, keys in (("lost", lost), ("changed", unlike)) for key in keys]
        return True

    def _settled(self, store: Store) -> bool:
        """Whether a campaign at its end has the bits of the whole one, and left nothing behind after one more run."""
        for path in store.path.rglob("*"):
            if path.is_file() and (path.suffix in (".tmp", ".lease") or ".break." in path.name):
                os.utime(path, (time.time() - 2 * HOUR,) * 2)  # as if it had been left some time ago: younger ones may be in use
        self._child(self._campaign, store, None)
        found = self.results(Store(store.path))
        faults = [f"unlike the uninterrupted run: {key}" for key in self.whole if found.get(key) != self.whole[key]]
        curves = {
            curves_path(store.path, record.key, record.training["digest"]) for record in Store(store.path).records() if record.training
        }
        faults += [f"curves are missing: {path.relative_to(store.path)}" for path in curves if not path.exists()]
        known = curves.union(store.record_files())
        rest = [p for p in store.path.rglob("*") if p.is_file() and p.name != ".lock" and p not in known]
        faults += [f"left behind: {path.relative_to(store.path)}" for path in rest]
        self.faults += [f"campaign {self.campaigns}: {fault}" for fault in faults]
        return not faults

    # Processes

    def _child(self, run: Callable[[Store, Strike | None], int], store: Store, strike: Strike | None) -> int:
        """Run in a forked process; its exit status, minus the signal's number where one ended it."""
        pid = os.fork()
        if not pid:
            with _no_return():
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os._exit(run(Store(store.path), strike))
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.005)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.faults.append(f"{strike}: hung for {LIMIT_S:g} s in {store.path}")
        return -signal.SIGALRM

    def _timed(self, strike: Strike | None) -> Strike | None:
        """The strike with its delay in seconds."""
        if strike is None or strike.folder:
            return strike
        return Strike(**{**vars(strike), "delay": strike.delay * (1.0 if strike.victim != "rerun" else 0.3) * self.whole_s})

    def _campaign(self, store: Store, strike: Strike | None) -> int:
        strike, mark = self._timed(strike), store.path.with_suffix(".struck")

        class Watched(_Forked):
            def __init__(self, words: Sequence[str], **options: Any) -> None:
                super().__init__(words, strike=strike, **options)

            def poll(self) -> int | None:
                if super().poll() == -signal.SIGKILL:
                    mark.touch()
                return self.returncode

        if strike is not None and strike.victim == "both":  # a machine that loses its power: supervisor and workers at once
            timer = threading.Timer(strike.delay, _die_together)
            timer.daemon = True
            timer.start()
        made = process.WorkerProcess.__init__

        def remember(self: Any, *args: Any) -> None:
            made(self, *args)
            WORKERS.append(self)

        process.WorkerProcess.__init__ = remember  # type: ignore[method-assign]
        process.subprocess.Popen = Watched  # type: ignore[misc, assignment]
        _arm(strike, "parent")
        options = RunOptions(catalogue=self.catalogue, workers=2, progress=False)
        return LocalExecutor().run(self.cells, store, options)

    def _rerun(self, store: Store, strike: Strike | None) -> int:
        planned = self.rng.choice(self.cells)
        _arm(self._timed(strike), "rerun")
        return 0 if obtain_record(planned, self.catalogue, store, rerun=True).done else 1


WORKERS: list[Any] = []
WARM = ("cglsuite.cells.run", "cglsuite.cells.records.record", "cglsuite_drift.schedules", "cglsuite_node.datasets.synthetic", "filelock")


def tell(table: Mapping[tuple[str, str], Counter[str]]) -> str:
    """The table: where, how many kills, how many records were there, how many were lost, how many had other bits."""
    header = ["killed", "moment", "kills", "records there", "lost", "other bits"]
    names = ("kills", "records", "lost", "unlike")
    rows = [[*row, *(str(n[name]) for name in names)] for row, n in sorted(table.items())]
    rows.append(["all", "", *(str(sum(n[name] for n in table.values())) for name in names)])
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    return "\n".join("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in [header, *rows])


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Kill a campaign again and again, and compare its records with an uninterrupted run's.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the stores; those of campaigns in which something was wrong stay there")
    parser.add_argument("--json", action="store_true", help="print one object instead of the table")
    options = parser.parse_args()
    began = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as temporary:
        harness = Harness(options.keep or Path(temporary), options.seed)
        with contextlib.suppress(KeyboardInterrupt):  # the table of what has been done by then
            harness.kill(options.kills)
    facts = {"campaigns": harness.campaigns, "cells": len(harness.cells), "whole_s": harness.whole_s, "seconds": time.monotonic() - began}
    if options.json:
        rows = [{"killed": row[0], "moment": row[1], **counts} for row, counts in sorted(harness.table.items())]
        print(json.dumps({**facts, "rows": rows, "faults": harness.faults}))
    else:
        print(tell(harness.table))
        print(", ".join(f"{name} {value:.4g}" for name, value in facts.items()))
        print("\n".join(harness.faults) or "nothing lost, every bit equal, nothing left behind")
    return 1 if harness.faults else 0


if __name__ == "__main__":
    sys.exit(main())
