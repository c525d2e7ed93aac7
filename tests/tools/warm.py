"""Runs pytest again and again without importing libraries each time: a process that has them forks one per run. For :mod:`mutants`.

    python tests/tools/warm.py

Reads one JSON object per line: ``{"words": [...], "folder": ..., "environment": {...}, "out": path}``. Answers with the number of the
child's process, which leads a group of its own, and with its exit status.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import traceback
import warnings

#: What most tests import; nothing of the suite, and no plugin of pytest, which wants to import those itself. Compiled by :mod:`overlay`.
LIBRARIES = (
    "pytest",
    "xdist",
    "pytest_timeout",
    "hypothesis",
    "numpy",
    "pandas",
    "scipy.stats",
    "scipy.sparse",
    "torch",
    "torch_geometric",
)
LIBRARIES += (
    "torch_geometric.utils",
    "matplotlib.figure",
    "matplotlib.backends.backend_svg",
    "sklearn.metrics",
    "pyarrow.parquet",
    "click",
)
LIBRARIES += ("nbformat", "nbclient", "bs4", "pydantic", "filelock", "copier", "statsmodels.api", "scikit_posthocs", "seaborn")


def run(words: list[str], folder: str, environment: dict[str, str], out: str) -> int:
    """pytest in this process, as ``python -m pytest`` would be with this environment."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [folder, *environment["PYTHONPATH"].split(os.pathsep)]
    descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    null = os.open(os.devnull, os.O_RDONLY)
    for ours, theirs in ((null, 0), (descriptor, 1), (descriptor, 2)):
        os.dup2(ours, theirs)
    sys.argv = ["pytest", *words]
    import pytest

    return int(pytest.main(words))


def main() -> None:
    """Serve until the input ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in LIBRARIES:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    sys.path[:] = [p for p in sys.path if os.path.realpath(p or ".") != os.path.dirname(os.path.realpath(__file__))]
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            status = 3
            try:
                status = run(**asked)
            except BaseException:  # noqa: BLE001 - whatever ends a run is written where its output goes
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
