"""The words for a device: ``auto``, ``cpu``, ``cuda``, ``cuda:N``, and the names of other accelerators that distributions bring."""

from __future__ import annotations

import importlib.metadata
import re
from typing import Protocol

__all__ = ["GROUP", "Accelerator", "accelerator", "device_words", "kind_of", "read_device"]

GROUP = "cglsuite.devices"
"""The group of entry points that name accelerators: ``NAME = "module:object"``, where the object is an :class:`Accelerator`."""
BUILT_IN = ("auto", "cpu", "cuda")
_NUMBERED = re.compile(r"cuda:\d+", re.ASCII)


class Accelerator(Protocol):
    """A kind of device beyond CPU and CUDA, as a distribution provides it; its name is that of its entry point.

    Cells run on it as they are, in worker processes too: their tensors go to ``torch.device(name)``.
    """

    def available(self) -> bool:
        """Whether there is such a device on this machine; without importing torch, if possible."""

    def prepare(self) -> None:
        """Make ``torch.device(name)`` work in this process; called before every cell, so a second call must do nothing."""


def device_words() -> tuple[str, ...]:
    """Every word for a device but ``cuda:N``: the built-in ones, then those of installed distributions."""
    return (*BUILT_IN, *sorted({point.name for point in importlib.metadata.entry_points(group=GROUP)} - set(BUILT_IN)))


def read_device(text: str) -> str:
    """``text``, if it is a word for a device.

    Raises:
        ValueError: it is none; the message says what was expected.
    """
    # Entry points are searched for unknown words only: that reads the metadata of every distribution.
    if text in BUILT_IN or _NUMBERED.fullmatch(text) or text in (words := device_words()):
        return text
    raise ValueError(f"expected one of {', '.join(words)}, or cuda:N for the N-th GPU, from 0")


def kind_of(device: str) -> str:
    """A word for a device without the number of a GPU."""
    return "cuda" if _NUMBERED.fullmatch(device) else device


def accelerator(name: str) -> Accelerator | None:
    """The accelerator of that name; ``None`` for the built-in devices and where no distribution brings it."""
    if name in BUILT_IN:
        return None
    for point in importlib.metadata.entry_points(group=GROUP, name=name):
        made: Accelerator = point.load()
        return made
    return None
