"""Numerical settings that affect results. They are declared here, applied to torch and hashed into every key."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Numerics:
    """All torch settings that can change numerical results.

    Args:
        threads: threads per operation. deterministic: whether torch raises (``error``) or warns (``warn``) without a deterministic
            algorithm.
        flush_denormal: treat subnormal numbers as zero. fill_uninitialized: fill new memory with NaN.
        cublas_workspace, matmul_tf32, cudnn_tf32, cudnn_benchmark: CUDA settings, ``None`` on a CPU.
    """

    threads: int
    deterministic: str
    # Moments of parameters without gradient decay into subnormal numbers, which double the CPU time of an Adam step.
    flush_denormal: bool = True
    fill_uninitialized: bool = False  # a debugging aid that doubles the number of memory writes
    cublas_workspace: str | None = None
    matmul_tf32: bool | None = None
    cudnn_tf32: bool | None = None
    cudnn_benchmark: bool | None = None


def numerics_of(device: str, threads: int) -> Numerics:
    """Return the numerical settings for cells that run on ``device``.

    CUDA has no deterministic version of some sparse products. Torch then warns instead of raising, and results may not be bit-identical.
    """
    if device == "cpu":
        return Numerics(threads=threads, deterministic="error")
    return Numerics(
        threads=threads,
        deterministic="warn",
        cublas_workspace=":4096:8",  # required by deterministic matrix products
        matmul_tf32=False,
        cudnn_tf32=True,
        cudnn_benchmark=False,
    )


@contextmanager
def applied(wanted: Numerics) -> Iterator[None]:
    """Apply the settings ``wanted`` to torch within the ``with`` block, and restore the previous ones afterwards."""
    if wanted.cublas_workspace is not None:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", wanted.cublas_workspace)
    before = _read(on_cuda=wanted.matmul_tf32 is not None)
    _set(wanted)
    try:
        yield
    finally:
        _set(before)


def _read(*, on_cuda: bool) -> Numerics:
    """Read the current settings."""
    import torch

    modes = {0: "default", 1: "warn", 2: "error"}
    return Numerics(
        threads=torch.get_num_threads(),
        deterministic=modes[torch.get_deterministic_debug_mode()],
        flush_denormal=float(torch.tensor(1e-310, dtype=torch.float64) * 1.0) == 0.0,
        fill_uninitialized=_deterministic().fill_uninitialized_memory,
        matmul_tf32=torch.backends.cuda.matmul.allow_tf32 if on_cuda else None,
        cudnn_tf32=torch.backends.cudnn.allow_tf32 if on_cuda else None,
        cudnn_benchmark=torch.backends.cudnn.benchmark if on_cuda else None,
    )


def _set(wanted: Numerics) -> None:
    import torch

    torch.set_num_threads(wanted.threads)
    # The same switch as torch.use_deterministic_algorithms, which also imports torch's compiler (5 s).
    torch.set_deterministic_debug_mode(wanted.deterministic)
    _deterministic().fill_uninitialized_memory = wanted.fill_uninitialized
    torch.set_flush_denormal(wanted.flush_denormal)
    if wanted.matmul_tf32 is not None:
        torch.backends.cuda.matmul.allow_tf32 = wanted.matmul_tf32
    if wanted.cudnn_tf32 is not None:
        torch.backends.cudnn.allow_tf32 = wanted.cudnn_tf32
    if wanted.cudnn_benchmark is not None:
        torch.backends.cudnn.benchmark = wanted.cudnn_benchmark


def _deterministic() -> Any:
    import torch

    return torch.utils.deterministic
