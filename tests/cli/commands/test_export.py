"""``cglsuite export``: real streams as files with hashes, equal bytes for equal inputs, and nothing overwritten by accident."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cglsuite import Seeds, load_catalogue
from cglsuite.cells.run import build_scenario
from cglsuite.cells.spec import resolve_cell, resolve_scenario
from cglsuite.cli import main
from cglsuite.streams.exported import PARTS, read_export

PRESET = "synthetic-csbm/class-il@begin-1"
pytestmark = pytest.mark.plugins("cglsuite-node")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of one command line."""
    capfd.readouterr()
    status = main.run(["export", *words])
    out, err = capfd.readouterr()
    return status, out, err


def exported(capfd: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What ``--json`` prints."""
    status, out, err = call(capfd, *words, "--json")
    assert (status, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def test_the_files_hold_the_stream(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    """Every id is that of the stream that a cell of the same seeds trains on; the description says what it follows from."""
    found = exported(capfd, PRESET, "--order-seed", "3", "--split-seed", "2")
    assert found["name"] == "synthetic-csbm-class-il@begin-1-order3-split2"
    for file in found["files"]:
        assert hashlib.sha256(Path(file["path"]).read_bytes()).hexdigest() == file["sha256"]
    splits = read_export(found["files"][0]["path"])
    scenario = resolve_scenario(load_catalogue(), PRESET)
    stream = build_scenario(load_catalogue(), scenario.spec, scenario.dataset_hyperparameters, Seeds(order=3, split=2, init=99))
    assert len(splits) == len(stream) == 5
    assert splits.task_outputs.tolist() == stream.task_outputs.tolist()
    for k in range(len(stream)):
        assert splits.classes(k).tolist() == list(stream.tasks[k].classes)
        for part in PARTS:
            assert splits.members(k, part).tolist() == stream.members(k, part).tolist()
    message = splits.metadata
    assert message == found["metadata"]
    assert (message["scenario"], message["preset"], message["seeds"]) == (PRESET, PRESET, {"order": 3, "split": 2})
    assert (message["switches"]["edge_policy"], message["switches"]["classes_per_task"]) == ("full", 2)
    assert message["dataset"]["content_hash"] == stream.data_hash
    assert message["dataset"]["hyperparameters"]["n_classes"] == 10
    assert {"python", "cglsuite", "cglsuite-node", "numpy", "torch"} <= set(message["versions"])
    assert [t["n_train"] for t in message["tasks"]] == [f.n_train for f in stream.tasks]


def test_numpy_alone_reads_it(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    npz = exported(capfd, PRESET)["files"][0]["path"]
    with np.load(npz, allow_pickle=False) as archive:
        assert archive["train_0"].dtype == np.int64
        assert archive["task_outputs"].dtype == np.bool_


def test_it_prints_what_sha256sum_reads(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    status, out, err = call(capfd, PRESET, "--out", "deep/er")
    assert (status, err) == (0, "")
    lines = [line.split("  ") for line in out.splitlines()]
    assert [Path(path).parent for _, path in lines] == [Path("deep/er")] * 2
    assert [Path(path).suffix for _, path in lines] == [".npz", ".json"]
    assert [hashlib.sha256((folder / path).read_bytes()).hexdigest() for _, path in lines] == [digest for digest, _ in lines]


@pytest.mark.nightly
def test_equal_inputs_give_equal_bytes_in_another_process(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    here = exported(capfd, PRESET, "--out", "here")
    command = [sys.executable, "-m", "cglsuite", "export", PRESET, "--out", "there"]
    environment = {**os.environ, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "CGLSUITE_SET": "training.epochs=3;method.lambda=1"}
    there = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in there.stdout.splitlines()] == [file["sha256"] for file in here["files"]]
    names = sorted(path.name for path in Path("here").iterdir())
    assert names == sorted(path.name for path in Path("there").iterdir())  # and no temporary file is left
    assert all((Path("here") / name).read_bytes() == (Path("there") / name).read_bytes() for name in names)


@pytest.mark.nightly
def test_seeds_and_settings_make_other_files(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = [(), ("--order-seed", "1"), ("--split-seed", "1"), ("--set", "scenario.class_order=native"), ("--set", "n_nodes=500")]
    found = [exported(capfd, PRESET, *w) for w in words]
    assert len({f["name"] for f in found}) == len({f["files"][0]["sha256"] for f in found}) == len(words)
    monkeypatch.setenv("CGLSUITE_SET", "class_order=native")
    assert exported(capfd, PRESET) == found[3]
    assert exported(capfd, PRESET, "--set", "scenario.class_order=random")["files"] == found[0]["files"]


def test_the_name_is_that_of_a_cell_with_the_same_settings(capfd: pytest.CaptureFixture[str]) -> None:
    overrides = {"scenario.class_order": "native", "dataset.n_nodes": 500}
    found = exported(capfd, PRESET, *(word for key, value in overrides.items() for word in ("--set", f"{key}={value}")))
    catalogue = load_catalogue()
    methods = [e.name for e in catalogue.entries("method") if "class-il" in e.spec.settings]  # type: ignore[attr-defined]
    if methods:
        assert resolve_cell(catalogue, PRESET, methods[0], overrides=overrides).preset == found["metadata"]["preset"]
    assert found["metadata"]["preset"].startswith(f"{PRESET}+")


def test_tasks_spreads_the_classes(capfd: pytest.CaptureFixture[str]) -> None:
    """BeGin's Table 8: the same classes in the same order, over another number of tasks."""
    two = exported(capfd, PRESET, "--tasks", "2")
    assert [len(t["classes"]) for t in two["metadata"]["tasks"]] == [5, 5]
    assert two["metadata"]["switches"]["classes_per_task"] is None
    usual = exported(capfd, PRESET)["metadata"]["tasks"]
    first_two = {c for t in usual[:2] for c in t["classes"]}
    assert first_two < set(two["metadata"]["tasks"][0]["classes"])
    same = exported(capfd, PRESET, "--set", "scenario.n_tasks=2", "--set", "scenario.classes_per_task=none")
    assert same["files"] == two["files"]


@pytest.mark.nightly
def test_another_file_is_not_overwritten_unless_forced(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    npz, description = (folder / Path(f["path"]).name for f in exported(capfd, PRESET)["files"])
    good = npz.read_bytes()
    before = npz.stat().st_mtime_ns, npz.stat().st_ino
    assert call(capfd, PRESET)[0] == 0
    assert (npz.stat().st_mtime_ns, npz.stat().st_ino) == before  # equal files are left alone
    for path in (npz, description):
        kept = path.read_bytes()
        path.write_bytes(b"mine")
        status, out, err = call(capfd, PRESET)
        assert (status, out) == (2, "")
        assert path.name in err
        assert "--force" in err
        assert path.read_bytes() == b"mine"
        assert call(capfd, PRESET, "--force")[0] == 0
        assert path.read_bytes() == kept
    assert npz.read_bytes() == good
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("synthetic-csbm/class-il@begin-99",), "unknown scenario 'synthetic-csbm/class-il@begin-99'. Did you mean"),
        ((PRESET, "--set", "scenario.edge_polcy=none"), "Did you mean 'scenario.edge_policy'"),
        ((PRESET, "--set", "training.epochs=3"), "unknown switch or hyperparameter 'training.epochs'"),
        ((PRESET, "--set", "scenario.edge_policy=nine"), "unknown value of scenario.edge_policy"),
        ((PRESET, "--set", "dataset.n_classes=many"), "expected a whole number"),
        ((PRESET, "--tasks", "3", "--set", "n_tasks=2"), "--tasks 3 and --set n_tasks=2"),
        ((PRESET, "--tasks", "3", "--set", "scenario.classes_per_task=2"), "--tasks 3 and --set scenario.classes_per_task=2"),
        ((PRESET, "--tasks", "99"), "scenario.n_tasks = 99"),
        ((PRESET, "--tasks", "0"), "tasks"),
        ((PRESET, "--order-seed", "first"), "order-seed"),
        ((), "Missing argument 'SCENARIO'"),
    ],
)
def test_a_wrong_request_ends_with_2_and_writes_nothing(
    capfd: pytest.CaptureFixture[str], folder: Path, words: tuple[str, ...], message: str
) -> None:
    status, out, err = call(capfd, *words)
    assert (status, out) == (2, "")
    assert message in err
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_written(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "file").touch()
    status, out, err = call(capfd, PRESET, "--out", "file/below")
    assert (status, out) == (2, "")
    assert "--out" in err
    assert "--store" not in err


def test_data_that_are_absent(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.delenv("CGLSUITE_DATA", raising=False)
    monkeypatch.setenv("CGLSUITE_CACHE", str(folder / "cache"))
    monkeypatch.setenv("CGLSUITE_OFFLINE", "1")
    status, out, err = call(capfd, "cora/task-il@begin-1", "--out", "out")
    assert (status, out) == (1, "")
    assert "Traceback" not in err
    assert not (folder / "out").exists()
