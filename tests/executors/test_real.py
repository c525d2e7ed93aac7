"""The executor with real cells: what a cell gives does not depend on where, beside what, or after which accident it ran."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from tiny_slurm import TinySlurm, what_is_missing

from cglsuite.campaigns.executors.supervisor import arithmetic_of_workers
from cglsuite.cells.storage.store import Store

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.plugins

CAMPAIGN = """
name = "small"
[grid]
scenarios = ["synthetic-csbm/class-il@begin-1"]
methods = ["bare", "joint"]
[seeds]
order = [0, 1]
init = [0, 1]
[set]
dataset.n_nodes = 90
dataset.n_classes = 6
dataset.n_features = 40
backbone.width = 8
training.epochs = 40
[run]
workers = 2
"""


def outcome(store: Store, key: str) -> dict[str, Any]:
    """Everything in a record that is a result."""
    record = store.cached(key)
    assert record is not None
    found = record.to_json()
    return {name: found[name] for name in ("matrix", "validation_matrix", "per_class", "training", "metrics", "cell", "design")}


def start(campaign: Path, store: Store) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "cglsuite", "run", str(campaign), "--store", str(store.path), "--no-reports", "--device", "cpu"]
    return subprocess.Popen(words, env={k: v for k, v in os.environ.items() if not k.startswith("FAKE_")}, cwd=campaign.parent)


def test_alone_or_in_workers_or_killed_and_resumed_a_cell_gives_the_same_bits(tmp_path: Path) -> None:
    """In this process one by one; in two workers whose supervisor is killed with signal 9 in the middle, and started again."""
    from cglsuite import load_catalogue
    from cglsuite.campaigns.campaign import load_campaign
    from cglsuite.campaigns.planning import plan_campaign
    from cglsuite.cells import run_cell

    path = tmp_path / "small.toml"
    path.write_text(CAMPAIGN + 'numerics = "native"\n')  # those of this process
    catalogue = load_catalogue()
    cells = plan_campaign(load_campaign(path), catalogue, None)
    alone, killed = Store(tmp_path / "alone"), Store(tmp_path / "killed")
    for planned in reversed(cells):
        assert planned.cell is not None
        assert run_cell(planned.cell, catalogue, alone).reason is None
    with start(path, killed) as process:
        deadline = time.monotonic() + 100
        while not any(killed.cached(p.key) for p in cells) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    with start(path, killed) as process:
        assert process.wait(100) == 0
    assert [outcome(killed, p.key) for p in cells] == [outcome(alone, p.key) for p in cells]
    assert not killed.problems
    assert not list((killed.path / "leases").glob("*.lease"))


@pytest.mark.nightly
@pytest.mark.notebook
@pytest.mark.plugins("cglsuite-dask", "cglsuite-slurm")
@pytest.mark.parametrize("route", ["dask", "slurm", "papermill"])
def test_portable_cells_are_portable_wherever_they_run(tmp_path: Path, route: str) -> None:
    """On Dask, on Slurm and from a notebook's kernel, none of which is portable itself: the bits and the arithmetic of local workers."""
    path, local, there = tmp_path / "small.toml", Store(tmp_path / "local"), Store(tmp_path / "there")
    path.write_text(CAMPAIGN.replace("epochs = 40", "epochs = 2") + 'numerics = "portable"\n[run.dask]\nlocal_workers = 1\n')
    assert start(path, local).wait() == 0
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FAKE_")}
    words = ["cglsuite", "run", str(path), "--store", str(there.path), "--no-reports", "--device", "cpu", "--executor", route]
    if route == "papermill":
        words = ["papermill", str(ROOT / "notebooks" / "campaign_report.ipynb"), str(tmp_path / "out.ipynb"), "--kernel", "python3"]
        words += ["-p", "campaign", str(path), "-p", "store", str(there.path)]
    with contextlib.ExitStack() as stack:
        if route == "slurm":
            if reason := what_is_missing():
                pytest.skip(reason)
            slurm = TinySlurm(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True))) / "c")
            stack.callback(slurm.stop)
            slurm.start()
            environment |= slurm.environment
        done = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    keys = local.keys()
    assert len(keys) == 4
    for key in keys:
        assert outcome(there, key) == outcome(local, key)
        for record in (there.get(key), local.get(key)):
            assert record is not None
            assert record.environment["arithmetic"] == arithmetic_of_workers("portable") != arithmetic_of_workers("native")
