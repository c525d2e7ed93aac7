"""Which kind of device cells run on. CUDA is asked in a child process, so that the parent never touches it."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

from cglsuite.errors import UnknownNameError, UsageError

__all__ = ["DEVICES", "has_cuda", "resolve_device"]

DEVICES = ("auto", "cpu", "cuda")


def resolve_device(wanted: str) -> str:
    """``cpu`` or ``cuda``: what ``wanted`` (``auto``, ``cpu`` or ``cuda``) means on this machine.

    Raises:
        UsageError: ``cuda`` where there is none, or another word.
    """
    if wanted not in DEVICES:
        raise UnknownNameError("device", wanted, DEVICES)
    if wanted == "cpu":
        return "cpu"
    if has_cuda():
        return "cuda"
    if wanted == "cuda":
        raise UsageError("device cuda: torch finds no CUDA device here; use auto or cpu")
    return "cpu"


@cache
def has_cuda() -> bool:
    """Whether torch finds a CUDA device; the question costs a child process only where a driver seems to be there."""
    if not any(Path(p).exists() for p in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")):
        return False
    question = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)"
    return subprocess.run([sys.executable, "-c", question], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0
