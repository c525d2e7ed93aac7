"""Words for devices: one GPU of several, and accelerators that other distributions bring."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.base.inputs import device_names, read_device
from cglsuite.campaigns.overrides import Overrides
from cglsuite.cells import device
from cglsuite.cells.device import accelerator, check_device, planned_device, prepare_device, resolve_device, restrict_to_gpu


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution with the accelerators ``here`` and ``gone``, whose preparations are counted in its module."""
    info = tmp_path / "brought_device-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought-device\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[cglsuite.devices]\nhere = brought_device:HERE\ngone = brought_device:GONE\n")
    (tmp_path / "brought_device.py").write_text(
        "class Device:\n"
        "    def __init__(self, here):\n        self.here, self.prepared = here, 0\n"
        "    def available(self):\n        return self.here\n"
        "    def prepare(self):\n        self.prepared += 1\n"
        "HERE, GONE = Device(True), Device(False)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "brought_device", raising=False)
    return tmp_path


@pytest.mark.usefixtures("brought")
def test_a_distribution_brings_an_accelerator() -> None:
    """Its name is a word for a device and part of keys; where there is none on this machine, cells are planned but not run."""
    assert device_names() == ("auto", "cpu", "cuda", "gone", "here")
    assert (read_device("here"), planned_device("gone"), resolve_device("here")) == ("here", "gone", "here")
    with pytest.raises(UsageError, match="device gone: this machine has none; use auto or cpu"):
        check_device("gone")
    prepare_device("here")
    assert accelerator("here").prepared == 1  # type: ignore[union-attr]


def test_other_words_are_refused() -> None:
    """With the words that there are, and a GPU's number."""
    with pytest.raises(ValueError, match="expected one of auto, cpu, cuda, or cuda:N for the N-th GPU, from 0"):
        read_device("cuda:-1")
    with pytest.raises(UnknownNameError, match="cpu"):
        planned_device("cpus")
    with pytest.raises(UsageError, match="device tpu: no installed distribution provides it; use one of auto, cpu, cuda"):
        prepare_device("tpu")


def test_one_gpu_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """``cuda:1`` is the second GPU that this process may use; its number is in no key, and children see that GPU only."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,GPU-abc")
    monkeypatch.setenv("CGLSUITE_DEVICE", "cuda:1")
    assert planned_device("cuda:1") == "cuda"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,GPU-abc", "planning changes nothing"
    assert Overrides.of(None).device == "cuda"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-abc"
    assert os.environ["CGLSUITE_DEVICE"] == "cuda", "a child counts from the one GPU that it sees"
    with pytest.raises(UsageError, match="device cuda:1: this machine has only cuda:0 to cuda:0"):
        restrict_to_gpu("cuda:1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(UsageError, match="device cuda:0: this machine has no GPU"):
        Overrides.of(Overrides(device="cuda:0"))
    assert [restrict_to_gpu(word) for word in (None, "auto", "cpu", "cuda")] == [None, "auto", "cpu", "cuda"]


def test_gpus_are_counted_where_nothing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the device files of the driver."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / name).touch()
    monkeypatch.setattr(device, "Path", lambda folder: tmp_path)
    assert device.visible_gpus() == ["0", "1"]


@pytest.mark.parametrize(
    ("torch", "reason"),
    [
        (
            "raise ImportError('libtorch_cuda.so: undefined symbol')",
            r"a driver is installed, but the check for a CUDA device failed .*ImportError: libtorch_cuda",
        ),
        (
            "class cuda: is_available = staticmethod(lambda: False)\nclass version: cuda = None",
            r"torch finds no CUDA device \(this torch is a CPU-only build",
        ),
        (
            "class cuda: is_available = staticmethod(lambda: False)\nclass version: cuda = '13.0'",
            r"no CUDA device \(this torch is built for CUDA 13.0",
        ),
        ("print('hello')\nclass cuda: is_available = staticmethod(lambda: True)\nclass version: cuda = '13.0'", ""),
    ],
    ids=["broken", "for the CPU", "none visible", "there"],
)
def test_why_there_is_no_gpu(torch: str, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A child process asks torch, here one of a few lines; what it says is told."""
    (tmp_path / "torch.py").write_text(torch)
    monkeypatch.setattr(device, "_DRIVERS", (str(tmp_path),))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(device, "_without_cuda", device._without_cuda.__wrapped__)
    if reason:
        with pytest.raises(UsageError, match=reason):
            check_device("cuda")
    else:
        check_device("cuda")
