"""What cells compute on: the kind of device. CUDA is queried in a child process, so that the parent never initialises it."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Protocol

from cglsuite.base.entry_points import entry_points
from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.base.helpers import run_helper
from cglsuite.base.inputs import DEVICES, device_names, kind_of, read_device


class Accelerator(Protocol):
    """A kind of device beyond CPU and CUDA, as a distribution provides it: ``NAME = "module:object"`` among its entry points of the
    group ``cglsuite.devices``.

    Cells run on it as they are, in worker processes too: their tensors go to ``torch.device(name)``.
    """

    def available(self) -> bool:
        """Whether there is such a device on this machine; without importing torch, if possible."""

    def prepare(self) -> None:
        """Make ``torch.device(name)`` work in this process; called before every cell, so a second call must do nothing."""


def accelerator(name: str) -> Accelerator | None:
    """The accelerator with that name; ``None`` for built-in devices and if no distribution provides it."""
    if name in ("auto", "cpu", "cuda"):
        return None
    for point in entry_points(DEVICES):
        if point.name == name:
            loaded: Accelerator = point.load()
            return loaded
    return None


def resolve_device(device: str) -> str:
    """``device`` (``auto``, ``cpu``, ``cuda`` or an accelerator) resolved to a kind of device, as in a cell's key.

    Raises:
        UsageError: there is no such device here, or another word.
    """
    kind = planned_device(device)
    check_device(kind)
    return kind


def planned_device(device: str) -> str:
    """The kind of device in a cell's key. Only ``auto`` inspects this machine; cells for CUDA may be planned without a GPU.

    Raises:
        UsageError: another word.
    """
    try:
        kind = kind_of(read_device(device))
    except ValueError:
        raise UnknownNameError("device", device, device_names()) from None
    return ("cuda" if has_cuda() else "cpu") if kind == "auto" else kind


def check_device(device: str) -> None:
    """Refuse to run cells for a kind of device on a machine without it.

    Raises:
        UsageError: there is no such device here.
    """
    if device == "cuda" and (reason := _without_cuda()):
        raise UsageError(f"device cuda: {reason}; use auto or cpu")
    if device in ("cpu", "cuda"):
        return
    brought = accelerator(device)
    if brought is None or not brought.available():
        raise UsageError(f"device {device}: there is none here; use auto or cpu")


def prepare_device(device: str) -> None:
    """Make torch support the device of a cell in this process.

    Raises:
        UsageError: no installed distribution brings it.
    """
    if device in ("cpu", "cuda"):
        return
    brought = accelerator(device)
    if brought is None:
        raise UsageError(f"device {device}: no installed distribution brings it; use one of {', '.join(device_names())}")
    brought.prepare()


def restrict_to_gpu(device: str | None) -> str | None:
    """The kind of a device; for ``cuda:N``, also restrict this process and its children to the N-th visible GPU.

    The number stays out of keys and records, as results do not depend on it.

    Raises:
        UsageError: there are fewer GPUs.
    """
    if device is None or kind_of(device) == device:
        return device
    kind, _, number = device.partition(":")
    gpus = visible_gpus()
    if int(number) >= len(gpus):
        available = f"only cuda:0 to cuda:{len(gpus) - 1}" if gpus else "no GPU"
        raise UsageError(f"device {device}: there is {available} here; use auto, cpu or cuda")
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus[int(number)]
    if os.environ.get("CGLSUITE_DEVICE", "").strip() == device:
        os.environ["CGLSUITE_DEVICE"] = kind  # children count from the one GPU that they see
    return kind


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip()]
    return [str(n) for n in range(len([p for p in Path("/dev").glob("nvidia[0-9]*") if p.name[6:].isdigit()]))]


def has_cuda() -> bool:
    """Whether torch finds a CUDA device; starts a child process only if a driver seems to be present."""
    return not _without_cuda()


_PROBE_S = 300.0
_DRIVERS = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")


@cache
def _without_cuda() -> str:
    """Why torch finds no CUDA device; empty if it finds one."""
    if not any(Path(p).exists() for p in _DRIVERS):
        return "torch finds no CUDA device here"
    answer = run_helper("cglsuite.cells.device", limit_s=_PROBE_S)
    if answer.returncode:
        last = next(reversed(answer.stderr.strip().splitlines()), f"exit status {answer.returncode}")
        return f"there is a driver, but asking torch for a CUDA device failed ({last})"
    available, built_for = answer.stdout.split()[-2:]  # other modules may print when torch imports them
    if available == "True":
        return ""
    build = "this torch is built for CPUs" if built_for == "None" else f"this torch is built for CUDA {built_for}"
    return f"there is a driver, but torch finds no CUDA device ({build})"


if __name__ == "__main__":
    import torch

    sys.stdout.write(f"{torch.cuda.is_available()} {torch.version.cuda}\n")
