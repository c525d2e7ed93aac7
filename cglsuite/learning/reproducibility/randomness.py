"""Named random generators. A draw depends only on the axis seed, the purpose and the stream so far, never on earlier runs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from cglsuite.base.hashing import digest


def derive(seed: int, *purpose: str) -> int:
    """Derive a 63-bit seed from the seed of an axis and a purpose."""
    return int(digest([seed, *purpose])[:16], 16) >> 1


def generator(seed: int, *purpose: str) -> torch.Generator:
    """Create a CPU generator seeded by :func:`derive`."""
    return torch.Generator().manual_seed(derive(seed, *purpose))


@contextmanager
def scope(seed: int, *purpose: str) -> Iterator[None]:
    """Seed the global generators (torch, NumPy, ``random``) within the ``with`` block, and restore their states afterwards.

    Use it for torch operations that do not accept a generator, such as dropout and layer initialisation.
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
    """The random generators of a method, one per purpose. They are reseeded for every prefix of the stream.

    A purpose always has the same generator object, so a generator that a method stores is reseeded too. Predictions use separate, temporary
    generators and never advance the training generators.

    This is a separate object so that a method cannot access the runner and its oracle.

    Args:
        seed: the init seed. prefix: identifies the part of the stream that has arrived so far.
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
        """Use separate generators for predictions within the ``with`` block. They depend only on the seed, the purpose and ``query``."""
        before, self._query, self._predicting = (self._query, self._predicting), query, {}
        try:
            yield
        finally:
            self._query, self._predicting = before

    def state(self) -> dict[str, Tensor]:
        """Return the states (uint8) of the generators that were used since the current prefix began, by purpose."""
        now = {purpose: one.get_state() for purpose, one in self._training.items()}
        return {p: s for p, s in now.items() if not torch.equal(s, generator(self.seed, *self._name(p)).get_state())}

    def load_state(self, prefix: str, state: Mapping[str, Tensor]) -> None:
        """Restore the generators from a :meth:`state` that was saved at ``prefix``."""
        self.begin(prefix)
        for purpose, one in state.items():
            self(purpose).set_state(one.cpu())
