"""What a CUDA cell sets, keys and measures, without a GPU: torch's functions are replaced where they would need one."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from cglsuite import Seeds
from cglsuite.cells import keys, resolve_cell
from cglsuite.cells import run as run_module
from cglsuite.learning.reproducibility.numerics import Numerics, applied, numerics_of
from cglsuite.testing import tiny_catalogue

SWITCHES = ("cublas_workspace", "matmul_tf32", "cudnn_tf32", "cudnn_benchmark")


def flags() -> dict[str, bool]:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return {"matmul_tf32": matmul.allow_tf32, "cudnn_tf32": cudnn.allow_tf32, "cudnn_benchmark": cudnn.benchmark}


def put(wanted: dict[str, bool]) -> None:
    torch.backends.cuda.matmul.allow_tf32 = wanted["matmul_tf32"]
    torch.backends.cudnn.allow_tf32 = wanted["cudnn_tf32"]
    torch.backends.cudnn.benchmark = wanted["cudnn_benchmark"]


@pytest.fixture
def contrary(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bool]]:
    """A process whose switches are the opposite of a cell's."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    before, opposite = flags(), {"matmul_tf32": True, "cudnn_tf32": False, "cudnn_benchmark": True}
    put(opposite)
    yield opposite
    put(before)


def test_its_switches_are_set_whatever_they_were_and_restored(contrary: dict[str, bool]) -> None:
    with applied(numerics_of("cuda", torch.get_num_threads())):
        assert flags() == {"matmul_tf32": False, "cudnn_tf32": True, "cudnn_benchmark": False}
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert flags() == contrary


def test_a_cpu_cell_leaves_them_alone(contrary: dict[str, bool]) -> None:
    with applied(numerics_of("cpu", torch.get_num_threads())):
        assert flags() == contrary
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_of_them_is_in_the_key_of_a_cuda_cell_alone(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = tiny_catalogue()
    cells = {
        device: resolve_cell(catalogue, "testing-nodes/class-il@testing-1", "testing-fine-tuning", seeds=Seeds(), device=device)
        for device in ("cpu", "cuda")
    }
    before = {device: keys.cell_key(cell, catalogue) for device, cell in cells.items()}
    assert getattr(numerics_of("cpu", 1), switch) is None

    def other(device: str, threads: int) -> Numerics:
        made = numerics_of(device, threads)
        value = getattr(made, switch)
        changed: Any = None if value is None else not value if isinstance(value, bool) else ":16:8"
        return dataclasses.replace(made, **{switch: changed})

    monkeypatch.setattr(keys, "numerics_of", other)
    after = {device: keys.cell_key(cell, catalogue) for device, cell in cells.items()}
    assert after["cpu"] == before["cpu"]
    assert after["cuda"] != before["cuda"]


def test_its_key_holds_nothing_of_the_label_of_a_build_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is planned where there may be no GPU, by a build for the CPU; the key of a CPU cell tells builds apart."""
    catalogue = tiny_catalogue()
    cells = {
        device: resolve_cell(catalogue, "testing-nodes/class-il@testing-1", "testing-fine-tuning", seeds=Seeds(), device=device)
        for device in ("cpu", "cuda")
    }
    found: dict[str, dict[str, str]] = {}
    versions = ("2.13.0", "2.13.0+cpu", "2.13.0+cu130", "2.14.0+cu130")
    for version in versions:
        monkeypatch.setattr(keys, "torch_version", lambda version=version: version)
        found[version] = {device: keys.cell_key(cell, catalogue) for device, cell in cells.items()}
        numerics = keys.numerics_facts("cuda", cells["cuda"].threads)
        stated = {role: facts["source"] for role, facts in keys.sources(cells["cuda"], catalogue).items()}
        assert keys.claimed_key(cells["cuda"], stated, version, numerics) == found[version]["cuda"]
    assert len({found[version]["cuda"] for version in versions[:3]}) == 1
    assert found["2.14.0+cu130"]["cuda"] != found["2.13.0+cu130"]["cuda"]
    assert len({of["cpu"] for of in found.values()}) == len(versions)


def test_its_record_holds_the_memory_of_the_device_and_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what earlier cells of the worker have left in torch's cache."""
    calls: list[str] = []
    for name in ("empty_cache", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda name=name: calls.append(name))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 3000)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda: 4096)
    run_module._reset_peak("cuda")
    assert calls == ["empty_cache", "reset_peak_memory_stats"]
    found = run_module._peaks("cuda")
    assert (found["peak_bytes"], found["peak_reserved_bytes"]) == (3000, 4096)
    assert found["peak_host_bytes"] > 10 * 2**20
    assert found.keys() == {"peak_bytes", "peak_reserved_bytes", "peak_host_bytes"}


def test_a_cpu_cell_asks_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("empty_cache", "reset_peak_memory_stats", "max_memory_allocated", "max_memory_reserved"):
        monkeypatch.setattr(torch.cuda, name, lambda name=name: pytest.fail(f"torch.cuda.{name} was called"))
    run_module._reset_peak("cpu")
    assert run_module._peaks("cpu").keys() == {"peak_bytes"}
