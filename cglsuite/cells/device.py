"""The kind of device that a cell runs on. CUDA is queried in a child process, so that the parent process never initialises it."""

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
    """A kind of device other than CPU and CUDA. A distribution provides it through an entry point ``NAME = "module:object"`` in the group
    ``cglsuite.devices``.

    Cells need no changes to run on it, also in worker processes: their tensors are moved to ``torch.device(name)``.
    """

    def available(self) -> bool:
        """Return whether this machine has such a device, if possible without importing torch."""

    def prepare(self) -> None:
        """Make ``torch.device(name)`` work in this process. It is called before every cell, so repeated calls must do nothing."""


def accelerator(name: str) -> Accelerator | None:
    """Return the accelerator with this name; ``None`` for built-in devices or if no distribution provides it."""
    if name in ("auto", "cpu", "cuda"):
        return None
    for point in entry_points(DEVICES):
        if point.name == name:
            loaded: Accelerator = point.load()
            return loaded
    return None


def resolve_device(device: str) -> str:
    """Resolve ``device`` (``auto``, ``cpu``, ``cuda`` or an accelerator) to the kind of device used in a cell's key.

    Raises:
        UsageError: the device is unknown, or this machine has none.
    """
    kind = planned_device(device)
    check_device(kind)
    return kind


def planned_device(device: str) -> str:
    """Return the kind of device used in a cell's key. Only ``auto`` inspects this machine, so cells for CUDA can be planned without a GPU.

    Raises:
        UsageError: the device is unknown.
    """
    try:
        kind = kind_of(read_device(device))
    except ValueError:
        raise UnknownNameError("device", device, device_names()) from None
    return ("cuda" if has_cuda() else "cpu") if kind == "auto" else kind


def check_device(device: str) -> None:
    """Raise an error if this machine does not have the kind of device that cells are to run on.

    Raises:
        UsageError: this machine has no such device.
    """
    if device == "cuda" and (reason := _without_cuda()):
        raise UsageError(f"device cuda: {reason}; use auto or cpu")
    if device in ("cpu", "cuda"):
        return
    brought = accelerator(device)
    if brought is None or not brought.available():
        raise UsageError(f"device {device}: this machine has none; use auto or cpu")


def prepare_device(device: str) -> None:
    """Make a cell's device available to torch in this process.

    Raises:
        UsageError: no installed distribution provides it.
    """
    if device in ("cpu", "cuda"):
        return
    brought = accelerator(device)
    if brought is None:
        raise UsageError(f"device {device}: no installed distribution provides it; use one of {', '.join(device_names())}")
    brought.prepare()


def restrict_to_gpu(device: str | None) -> str | None:
    """Return the kind of a device. For ``cuda:N``, also restrict this process and its children to the N-th visible GPU.

    The number is not part of keys and records, as results do not depend on it.

    Raises:
        UsageError: there are fewer GPUs.
    """
    if device is None or kind_of(device) == device:
        return device
    kind, _, number = device.partition(":")
    gpus = visible_gpus()
    if int(number) >= len(gpus):
        available = f"only cuda:0 to cuda:{len(gpus) - 1}" if gpus else "no GPU"
        raise UsageError(f"device {device}: this machine has {available}; use auto, cpu or cuda")
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus[int(number)]
    if os.environ.get("CGLSUITE_DEVICE", "").strip() == device:
        os.environ["CGLSUITE_DEVICE"] = kind  # children see only this GPU and count from it
    return kind


def visible_gpus() -> list[str]:
    """Return the GPUs that this process may use, in the form of ``CUDA_VISIBLE_DEVICES``."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip()]
    return [str(n) for n in range(len([p for p in Path("/dev").glob("nvidia[0-9]*") if p.name[6:].isdigit()]))]


def has_cuda() -> bool:
    """Return whether torch finds a CUDA device. A child process is started only if a driver seems to be present."""
    return not _without_cuda()


_PROBE_S = 300.0
_DRIVERS = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")


@cache
def _without_cuda() -> str:
    """Explain why torch finds no CUDA device. Returns an empty string if it finds one."""
    if not any(Path(p).exists() for p in _DRIVERS):
        return "torch finds no CUDA device here"
    answer = run_helper("cglsuite.cells.device", limit_s=_PROBE_S)
    if answer.returncode:
        last = next(reversed(answer.stderr.strip().splitlines()), f"exit status {answer.returncode}")
        return f"a driver is installed, but the check for a CUDA device failed ({last})"
    available, built_for = answer.stdout.split()[-2:]  # other modules may print when torch imports them
    if available == "True":
        return ""
    build = "this torch is a CPU-only build" if built_for == "None" else f"this torch is built for CUDA {built_for}"
    return f"a driver is installed, but torch finds no CUDA device ({build})"


if __name__ == "__main__":
    import torch

    sys.stdout.write(f"{torch.cuda.is_available()} {torch.version.cuda}\n")
