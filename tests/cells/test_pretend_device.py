"""Cells on an accelerator without a GPU: tests/tools/pretend_device.py. In processes of their own, since torch keeps a device for good."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pretend_device
import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "accelerator.py"
pytestmark = pytest.mark.skipif(bool(pretend_device.absence()), reason=pretend_device.absence() or "never")


def run(*words: str, folder: Path, limit_s: float = 300.0) -> subprocess.CompletedProcess[str]:
    """A Python process that knows the device by an entry point in ``folder``."""
    pretend_device.built()  # half a minute, once: not within the process's time
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=limit_s,
        cwd=folder,
        env=pretend_device.entry_point(folder / "site"),
    )


STRICT = """
import pretend_device, torch
pretend_device.install()
there = torch.arange(6.0, device="pretend").view(3, 2)
refused = []
for attempt in (
    lambda: there + torch.ones(3, 2),
    lambda: torch.ones(3, 2).index_add(0, torch.arange(3), there),
    lambda: torch.ones(3, 2)[torch.arange(3, device="pretend")],
    lambda: torch.randperm(4, device="pretend", generator=torch.Generator()),
):
    try:
        attempt()
    except RuntimeError as error:
        refused.append("device" in str(error))
assert refused == [True] * 4, refused
with pretend_device.crossings() as seen:
    there.sum().item()
    there.cpu()
    there.nonzero()
    there[there > 1]
    there[there > 1] = torch.zeros(4, device="pretend")
    there[there > 1] = 0.0
    there[torch.arange(2, device="pretend")] = 1.0
    there[torch.arange(1, device="pretend"), 0] = there[:1, 0]
    there[torch.tensor([0, 2])]
    there * 2.0 + there.sum()
    torch.ones(2).to("pretend")
    torch.ones(2).to("pretend", non_blocking=True)
    torch.ones(2).pin_memory().to("pretend")
    torch.ones(4).pin_memory()[2:].to("pretend", non_blocking=True)
print(sorted((c.kind, c.operator, n) for c, n in seen.items()))
from cglsuite.graphs import counted, uploaded
with pretend_device.crossings() as seen:
    counts = counted(uploaded(torch.tensor([2, 0, 2]), "pretend"), 4)
assert {c.kind for c in seen} == {"upload"}, seen
assert counts.tolist() == [1, 0, 2, 0], counts
"""


@pytest.mark.nightly
def test_the_device_is_as_strict_as_cuda(tmp_path: Path) -> None:
    """Mixed devices and CPU generators raise; what the host waits for is reported, and what it does not wait for is not."""
    done = run("-c", STRICT, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == str(
        [
            ("blocking-upload", "_index_put_impl_[number]", 1),  # and not of a tensor with one value
            ("blocking-upload", "copy_", 4),  # of the index, and of all tensors but the one that is pinned and queued
            ("cpu-index", "index", 1),
            ("download", "copy_", 1),
            ("download", "item", 1),
            ("upload", "copy_", 1),
            ("wait", "_index_put_impl_[mask]", 1),
            ("wait", "nonzero", 2),  # one of them for the mask that is read
        ]
    )


@pytest.mark.nightly
@pytest.mark.plugins
def test_the_command_line_trains_on_it(tmp_path: Path) -> None:
    """By its word, in workers as well, with the numbers of the CPU, whose key is another."""
    campaign = '[grid]\nscenarios = ["synthetic-csbm/class-il@cglb-1"]\nmethods = ["ewc"]\n[set]\n"training.epochs" = 2\n'
    (tmp_path / "c.toml").write_text('name = "pretend"\n' + campaign)
    records = {}
    for device in ("cpu", "pretend"):
        words = ("run", "c.toml", "--store", device, "--device", device, "--numerics", "native", "--no-reports")
        done = run("-m", "cglsuite", *words, folder=tmp_path)
        assert done.returncode == 0, done.stderr[-2000:]
        (path,) = (tmp_path / device).glob("cells/**/*.json")
        records[device] = json.loads(path.read_text())
    assert records["pretend"]["cell"]["device"] == "pretend"
    assert records["pretend"]["key"] != records["cpu"]["key"]
    for part in ("matrix", "validation_matrix", "per_class", "training", "metrics"):
        assert records["pretend"][part] == records["cpu"][part], part


TOGETHER = """
import json, tempfile
import pretend_device, torch
from cglsuite.cells import Store, resolve_cell, run_cell
from cglsuite.learning import runner
from cglsuite.learning.method import Method
from cglsuite.learning.norms import NormStatistics
from cglsuite.testing import tiny_catalogue
from cglsuite import load_catalogue

pretend_device.install()
catalogue = tiny_catalogue(load_catalogue())
asked, predict = [], Method.predict
def counted(self, query):
    asked[-1].append(len(query))
    return predict(self, query)
Method.predict = counted
evaluate = runner.Runner._evaluate
def evaluated(self, k):
    asked.append([])
    with pretend_device.crossings() as seen:
        scores = evaluate(self, k)
    waits.append(sum(n for c, n in seen.items() if c.kind != pretend_device.UPLOAD))
    return scores
runner.Runner._evaluate = evaluated
found = {}
for name, device, further in (
    ("cpu", "cpu", {}),
    ("device", "pretend", {}),
    ("small", "pretend", {}),
    ("norms", "pretend", {"training.norm_statistics": "per-task", "backbone.batch_norm": True}),
):
    asked.clear()
    waits = []
    runner._LARGEST_PASS = 1 if name == "small" else 2**20
    given = {"scenario.edge_policy": "none", "training.epochs": 2} | further
    cell = resolve_cell(catalogue, "testing-nodes/task-il@testing-1", "bare", "gcn", given, device=device)
    with tempfile.TemporaryDirectory() as folder:
        record = run_cell(cell, catalogue, Store(folder))
    assert record.status == "done", record.reason
    found[name] = {"asked": list(asked), "waits": waits, "prints": record.fingerprints(), "matrix": record.matrix}
print(json.dumps(found))
"""


@pytest.mark.plugins
@pytest.mark.nightly
def test_tasks_that_keep_apart_are_evaluated_in_one_pass(tmp_path: Path) -> None:
    """On an accelerator, once per stage and with the CPU's answers; apart if their graphs are large, or norms have statistics per task."""
    done = run("-c", TOGETHER, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    passes = {name: [len(stage) for stage in one["asked"]] for name, one in found.items()}
    stages = len(found["cpu"]["asked"])
    assert stages > 2
    assert passes["cpu"] == passes["small"] == list(range(stages))
    assert passes["device"] == [min(k, 1) for k in range(stages)]
    assert [sum(stage) for stage in found["device"]["asked"]] == [sum(stage) for stage in found["cpu"]["asked"]]
    assert max(passes["norms"]) >= stages - 1
    for part in ("prints", "matrix"):
        assert found["device"][part] == found["small"][part] == found["cpu"][part], part
    assert found["device"]["waits"][-1] < found["small"]["waits"][-1]
    assert max(found["device"]["waits"][2:]) == found["device"]["waits"][1], "waits do not grow with the number of tasks"


@pytest.mark.plugins
@pytest.mark.nightly
def test_a_pairwise_cover_has_the_numbers_of_the_cpu(tmp_path: Path) -> None:
    """Every (stream, method), (stream, backbone) and (method, backbone) of the streams that are covered here."""
    done = run(str(BENCHMARK), "cover", "--json", str(tmp_path / "cover.json"), folder=tmp_path, limit_s=540.0)
    outcomes: list[dict[str, Any]] = json.loads((tmp_path / "cover.json").read_text())
    wrong = [f"{one['trial']}: {one['status']}: {one['reason']}" for one in outcomes if one["status"] not in ("equal", "skipped")]
    assert not wrong, "\n".join(wrong)
    assert done.returncode == 0, done.stderr[-2000:]
    equal = [one["trial"] for one in outcomes if one["status"] == "equal"]
    assert len(equal) > 80
    assert {"evolve-gcn"} <= {trial["method"] for trial in equal}
    assert {"st-gcn"} <= {trial["backbone"] for trial in equal}


PAGE = Path(__file__).parents[2] / "docs" / "contributing" / "crossings.md"
COLUMNS = {
    "nodes": "full batch",
    "nodes, task-IL": "full batch",
    "pairs": "full batch",
    "nodes, sampled": "mini-batches",
    "nodes, task-free": "task-free",
    "graphs, task-free": "task-free",
}


def budget() -> dict[str, dict[str, int]]:
    """Method to the further waits per step that the page admits, by column, of every method with a reason."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text(encoding="utf-8").splitlines() if "|" in line]
    (method, *columns, why), _, *rows = rows
    assert (method, why) == ("method", "what it waits for")
    assert all(row[-1] for row in rows)
    return {row[0].strip("`"): {c: int(n or 0) for c, n in zip(columns, row[1:-1], strict=True)} for row in rows}


@pytest.mark.plugins
@pytest.mark.nightly
def test_no_step_waits_more_often_than_the_documentation_says(tmp_path: Path) -> None:
    """Bare and penalties once per epoch, or per step where a stream has no tasks; every further wait has a reason."""
    streams = [word for stream in COLUMNS for word in ("--stream", stream)]
    done = run(str(BENCHMARK), "crossings", "--json", str(tmp_path / "crossings.json"), *streams, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    seen: dict[str, dict[str, float]] = {}
    for one in json.loads((tmp_path / "crossings.json").read_text()):
        if one["status"] == "counted":
            of_method = seen.setdefault(one["trial"]["method"], dict.fromkeys(COLUMNS.values(), 0.0))
            column = COLUMNS[one["trial"]["stream"]]
            waits = [n for kind, places in one["crossings"].items() if kind != pretend_device.UPLOAD for n in places.values()]
            of_method[column] = max(of_method[column], sum(waits))
    assert len(seen) > 20
    further = {method: {c: math.ceil(round(max(0.0, n - 1), 6)) for c, n in columns.items()} for method, columns in seen.items()}
    assert {method: columns for method, columns in further.items() if any(columns.values())} == budget()
