"""Named random generators. Every draw depends only on (axis seed, purpose, prefix), never on earlier runs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from cglsuite.base.hashing import digest


def derive(seed: int, *purpose: str) -> int:
    """Derive a 63-bit seed from an axis seed and a purpose."""
    return int(digest([seed, *purpose])[:16], 16) >> 1


def generator(seed: int, *purpose: str) -> torch.Generator:
    """Create a CPU generator seeded by :func:`derive`."""
    return torch.Generator().manual_seed(derive(seed, *purpose))


@contextmanager
def scope(seed: int, *purpose: str) -> Iterator[None]:
    """Seed the global generators (torch, NumPy, ``random``) from the arguments within the block, and restore them afterwards.

    This is for torch operations that accept no generator, such as dropout and layer initialisation.
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


class Draws:
    """A method's generators: one per purpose, reseeded for every prefix of the stream and continued within it.

    A purpose always has the same generator object, so a generator that a method holds is reseeded too. Predictions use separate, temporary
    generators and never advance those of training.

    This is a separate object so that a method cannot access the runner and its oracle.

    Args:
        seed: the init seed. prefix: names what the stream has delivered so far.
    """

    def __init__(self, seed: int, prefix: str) -> None:
        self.seed, self.prefix = seed, prefix
        self._training: dict[str, torch.Generator] = {}
        self._query: tuple[str, ...] | None = None
        self._predicting: dict[str, torch.Generator] = {}

    def __call__(self, purpose: str) -> torch.Generator:
        """Return the CPU generator for ``purpose``, in its current state."""
        if self._query is not None:
            if purpose not in self._predicting:
                self._predicting[purpose] = generator(self.seed, "predict", purpose, *self._query)
            return self._predicting[purpose]
        if purpose not in self._training:
            self._training[purpose] = generator(self.seed, *self._name(purpose))
        return self._training[purpose]

    def _name(self, purpose: str) -> tuple[str, ...]:
        return "method", purpose, self.prefix

    def begin(self, prefix: str) -> None:
        """Reseed every generator for a new prefix of the stream."""
        self.prefix = prefix
        for purpose, one in self._training.items():
            one.manual_seed(derive(self.seed, *self._name(purpose)))

    @contextmanager
    def predicting(self, *query: str) -> Iterator[None]:
        """Within the block, make draws depend only on the seed, the purpose and ``query``, for predictions."""
        before, self._query, self._predicting = (self._query, self._predicting), query, {}
        try:
            yield
        finally:
            self._query, self._predicting = before

    def state(self) -> dict[str, Tensor]:
        """Return the states (uint8) of the generators used since the start of their prefix, by purpose."""
        now = {purpose: one.get_state() for purpose, one in self._training.items()}
        return {p: s for p, s in now.items() if not torch.equal(s, generator(self.seed, *self._name(p)).get_state())}

    def load_state(self, prefix: str, state: Mapping[str, Tensor]) -> None:
        """Restore :meth:`state` of ``prefix``."""
        self.begin(prefix)
        for purpose, one in state.items():
            self(purpose).set_state(one.cpu())
