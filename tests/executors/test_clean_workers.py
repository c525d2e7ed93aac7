"""Workers with methods of strangers: what one does to its process reaches no cell of another, and nothing that it leaves keeps anybody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import fake_cells
import pytest
from plugin_sites import Site

from cglsuite.campaigns.executors import worker
from cglsuite.campaigns.executors.base import AGAIN
from cglsuite.cells.plan import CellRequest, PlanFile, PlannedCell, plan_cell
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.specs import Seeds

CATALOGUE: Any = fake_cells.FakeCatalogue()
HOOKS = """
from cglsuite import MethodSpec, hookimpl
@hookimpl
def cglsuite_methods():
    return [MethodSpec(name="{name}", summary="s", factory="{module}_method:M")]
"""
METHODS = {
    # Seeds what all share, and leaves a thread for which Python waits and a process of a session of its own.
    "lingers": """
import os, sys, threading, time, torch
from cglsuite import Method
class M(Method):
    def counters(self):
        torch.set_default_dtype(torch.float64)
        threading.Thread(target=time.sleep, args=(3600,), name="forever").start()
        child = os.posix_spawn(sys.executable, [sys.executable, "-c", "import time; time.sleep(3600)"], os.environ, setsid=True)
        with open(os.environ["CHILDREN"], "a") as file:
            file.write(f"{child} ")
        return {}
""",
    # Praises everybody, hides that from the process's own look, and has the worker go on.
    "tricks": """
from dataclasses import replace
from cglsuite import Method
from cglsuite.cells.process import CodeCensus
from cglsuite.campaigns.executors import worker
from cglsuite.streams.oracle import Oracle
import sys
grade = Oracle.grade
def generous(self, *args):
    tested, validated = grade(self, *args)
    return {k: replace(s, performance=1.0) for k, s in tested.items()}, validated
class M(Method):
    def setup(self):
        CodeCensus.undo = lambda self: []
        CodeCensus.renew = lambda self: None
        sys.modules["__main__"].Worker._is_strange = lambda self, key: False
        Oracle.grade = generous
""",
    "untouched": "from cglsuite import Method\nclass M(Method):\n    pass\n",
}
CAMPAIGN = """
name = "strangers"
[grid]
scenarios = ["synthetic-csbm/class-il@begin-1"]
methods = ["untouched", "lingers", "bare", "tricks"]
[seeds]
init = [0, 1]
[set]
dataset.n_nodes = 90
dataset.n_classes = 6
dataset.n_features = 40
backbone.width = 8
training.epochs = 2
"""


@pytest.fixture
def strangers(tmp_path: Path) -> Site:
    """A distribution per method."""
    found = Site(tmp_path / "site")
    for name, text in METHODS.items():
        found.add(
            f"of-{name}", files={f"{name}.py": HOOKS.format(name=name, module=name), f"{name}_method.py": text}, entry_points={"p": name}
        )
    return found


def command(site: Site, *words: str) -> subprocess.CompletedProcess[str]:
    folder = site.folder.parent
    path = os.pathsep.join(filter(None, [str(site.folder), os.environ.get("PYTHONPATH")]))
    message = {"PYTHONPATH": path, "CGLSUITE_CACHE": str(folder / "cache"), "CHILDREN": str(folder / "children")}
    return subprocess.run(
        [sys.executable, "-m", "cglsuite", *words, "--store", str(folder / "store"), "--device", "cpu"],
        env={**os.environ, **message},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def records(folder: Path) -> dict[tuple[str, int], Record]:
    return {(r.cell["method"], r.cell["seeds"]["init"]): r for r in Store(folder / "store").records()}


def are_gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


@pytest.mark.nightly
@pytest.mark.plugins
def test_what_a_method_does_to_its_process_reaches_no_cell_of_another(strangers: Site, tmp_path: Path) -> None:
    """One that leaves threads, processes and another dtype; one that patches the scorer, hides it, and has its worker go on."""
    (tmp_path / "c.toml").write_text(CAMPAIGN)
    outcome = command(strangers, "run", "c.toml", "--no-reports", "--workers", "1")
    assert outcome.returncode == 1, outcome.stderr
    found = records(tmp_path)
    for init in (0, 1):
        record = found["lingers", init]
        assert record.status == "unclean"
        for part in (
            "method 'lingers' of of-lingers 1.0",
            "torch's default dtype",
            "1 thread is still running (forever)",
            "1 child process is",
        ):
            assert part in str(record.reason)
        assert found["bare", init].done
        assert found["tricks", init].done  # nothing in its own process can prevent that: see the docs
        assert found["tricks", init].matrix[-1] == [1.0, 1.0, 1.0]
    assert are_gone([int(pid) for pid in (tmp_path / "children").read_text().split()])
    assert found["untouched", 0].status == "unclean"
    assert "it started this cell after running code of of-tricks" in str(found["untouched", 0].reason)
    assert found["untouched", 1].matrix == found["bare", 1].matrix


@pytest.mark.plugins
def test_a_thread_that_a_method_leaves_does_not_keep_the_command(strangers: Site, tmp_path: Path) -> None:
    """Python would wait for it when it ends."""
    overrides = [f"--set={line.replace(' ', '')}" for line in CAMPAIGN.partition("[set]\n")[2].split("\n") if line]
    outcome = command(strangers, "cell", "--scenario", "synthetic-csbm/class-il@begin-1", "--method", "lingers", "--json", *overrides)
    assert outcome.returncode == 1, outcome.stderr
    record = json.loads(outcome.stdout)
    assert record["status"] == "unclean"
    assert "method 'lingers' of of-lingers 1.0" in outcome.stderr


def cell(seed: int) -> PlannedCell:
    request = CellRequest(scenario="toy/task-il@begin-1", method="bare", seeds=Seeds(init=seed))
    return plan_cell(request, CATALOGUE)


def test_cells_of_one_foreign_code_share_a_process_and_those_of_another_wait(store: Store, tmp_path: Path, log: Path) -> None:
    """The suite's own may come before, not after."""
    plan, cells = tmp_path / "plan.json", [cell(n) for n in range(6)]
    foreign = dict(zip((c.key for c in cells), ["", "one", "two", "", "one", "one,two"], strict=True))
    PlanFile.of(cells, foreign={key: names for key, names in foreign.items() if names}).write(plan)
    ran: list[list[str]] = []
    statuses = []
    while not ran or ran[-1]:
        before = log.read_text().split()
        statuses.append(worker.main([str(plan), "--store", str(store.path)]))
        ran.append([foreign[key] for key in log.read_text().split()[len(before) :]])
    assert ran == [["", "one", "one"], ["two"], ["", "one,two"], []]
    assert statuses == [AGAIN, AGAIN, 0, 0]
    assert max(Counter(log.read_text().split()).values()) == 1
