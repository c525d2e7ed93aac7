"""What `cglsuite cell` takes before its first epoch, in a fresh process. A command, not a test.

    python tests/benchmarks/startup.py [--scenario synthetic-csbm/class-il@begin-1] [--method bare] [--rounds 5]

Processor time from the start of the process, interpreter included: until the catalogue is there, the cell has its key, the data are loaded,
the first epoch begins, and the command ends (with one epoch per task). In turn with it a process that imports torch and nothing else. With
``CGLSUITE_DATA``, try ``--scenario cora/task-il@begin-1``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

LIMIT_S = 2.0
HEAVY = ("pandas", "sklearn", "torch_geometric", "ogb", "matplotlib", "seaborn", "statsmodels", "sympy", "torch._dynamo", "IPython")
ALONE = "import time, torch; print(time.process_time())"


def child(scenario: str, method: str) -> None:
    """Run the command in this process; print when it passed what."""
    marks: dict[str, float] = {}

    def mark(name: str) -> None:
        marks.setdefault(name, time.process_time())

    def marked(owner: Any, name: str, as_: str) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        def around(*given: Any, **named: Any) -> Any:
            found = function(*given, **named)
            mark(as_)
            return found

        setattr(owner, name, around)

    from cglsuite.base.traces import pause_collector
    from cglsuite.cli import main, options
    from cglsuite.learning import clock

    section = clock.Clock.section

    def entered(self: clock.Clock, name: str) -> Any:
        if name == "training":
            mark("first epoch")
        return section(self, name)

    clock.Clock.section = entered  # type: ignore[method-assign]
    marked(options.Session, "catalogue", "catalogue")
    import cglsuite.cells.run as running

    marked(running, "cell_key", "key")
    marked(running, "build_stream", "data")
    pause_collector()  # as main() does, which ends the process
    with tempfile.TemporaryDirectory() as store:
        words = ["cell", "--scenario", scenario, "--method", method, "--set", "training.epochs=1", "--store", store, "--quiet", "--json"]
        status = main.run(words)
    mark("end")
    if status:
        raise SystemExit(status)
    print(json.dumps({"marks": marks, "heavy": [name for name in HEAVY if name in sys.modules]}), file=sys.stderr)


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done


def main() -> None:
    """Take the rounds and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="synthetic-csbm/class-il@begin-1")
    parser.add_argument("--method", default="bare")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.scenario, args.method)
        return
    found, alone, heavy = [], [], set[str]()
    for _ in range(args.rounds):
        told = json.loads(_run(__file__, "--child", "--scenario", args.scenario, "--method", args.method).stderr.splitlines()[-1])
        found.append(told["marks"])
        heavy.update(told["heavy"])
        alone.append(float(_run("-c", ALONE).stdout))
    print(f"{args.scenario}, {args.method}; seconds of processor time, medians of {args.rounds}")
    print(f"{'import torch, alone':22} {median(alone):6.2f}")
    for name in found[0]:
        print(f"{name:22} {median(marks[name] for marks in found):6.2f}")
    first = median(marks["first epoch"] for marks in found)
    verdict = "met" if first <= LIMIT_S else "MISSED"
    print(f"first epoch after {first:.2f} s (at most {LIMIT_S}) {verdict}, {first / median(alone):.2f} x import torch")
    print(f"heavy libraries imported: {', '.join(sorted(heavy)) or 'none'}")


if __name__ == "__main__":
    main()
