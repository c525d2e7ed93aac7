"""Randomness by name: every draw follows from (axis seed, what is being drawn, prefix), never from what ran before."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from cglsuite.hashing import digest

__all__ = ["derive", "generator", "scope"]


def derive(seed: int, *purpose: str) -> int:
    """A 63-bit seed from an axis seed and what it is for."""
    return int(digest([seed, *purpose])[:16], 16) >> 1


def generator(seed: int, *purpose: str) -> torch.Generator:
    """A CPU generator seeded by :func:`derive`."""
    return torch.Generator().manual_seed(derive(seed, *purpose))


@contextmanager
def scope(seed: int, *purpose: str) -> Iterator[None]:
    """Global random state (torch, NumPy, ``random``) derived from the arguments inside, and unchanged outside.

    For torch operations that take no generator: dropout, layer initialisation.
    """
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() and torch.cuda.is_initialized() else []
    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002 - third-party methods may use it
    with torch.random.fork_rng(devices=devices):
        derived = derive(seed, *purpose)
        # Not torch.manual_seed: on a machine without CUDA that formats a stack trace per call, which costs more than a small step.
        torch.default_generator.manual_seed(derived)
        if devices:
            torch.cuda.manual_seed_all(derived)
        random.seed(derived)
        np.random.seed(derived % 2**32)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)  # noqa: NPY002
