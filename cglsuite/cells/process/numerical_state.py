"""Global state of torch and NumPy: defaults, flags, random states, hooks. Each can be read, described and restored."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from cglsuite.base.traces import PYTHON_RANDOM, Probe, opaque, setting

__all__ = ["NUMERICAL", "RANDOM_STATES"]

_HOOKED = tuple(importlib.import_module(name) for name in ("torch.nn.modules.module", "torch.optim.optimizer"))


def _mode_stacks() -> tuple[int, int]:
    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()


def _restore_default_device(before: str) -> None:
    torch.set_default_device(None if before == "cpu" else before)


def _module_hooks() -> dict[str, list[int]]:
    hooks = vars(_HOOKED[0]) | vars(_HOOKED[1])
    return {n: [id(f) for f in h.values()] for n, h in hooks.items() if n.startswith("_global_") and isinstance(h, dict)}


def _remove_hooks(before: Mapping[str, list[int]]) -> None:
    for owner in _HOOKED:
        for name, kept in before.items():
            hooks = vars(owner).get(name, {})
            for number in [n for n, hook in hooks.items() if id(hook) not in kept]:
                del hooks[number]


def _flags() -> dict[str, Any]:
    return {
        "torch.set_num_threads": torch.get_num_threads(),
        "torch.set_deterministic_debug_mode": torch.get_deterministic_debug_mode(),
        "torch.utils.deterministic.fill_uninitialized_memory": torch.utils.deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
        "torch.set_flush_denormal": float(torch.tensor(1e-310, dtype=torch.float64, device="cpu") * 1.0) == 0.0,
        "torch.set_grad_enabled": torch.is_grad_enabled(),
        "torch.set_float32_matmul_precision": torch.get_float32_matmul_precision(),
        "torch.autograd.set_detect_anomaly": torch.is_anomaly_enabled(),
        "torch.backends.cudnn.enabled": torch.backends.cudnn.enabled,
        "torch.backends.cudnn.benchmark": torch.backends.cudnn.benchmark,
        "torch.backends.cudnn.deterministic": torch.backends.cudnn.deterministic,
        "torch.backends.mkldnn.enabled": torch._C._get_mkldnn_enabled(),
    }


def _restore_flags(before: Mapping[str, Any]) -> None:
    torch.set_num_threads(before["torch.set_num_threads"])
    torch.set_deterministic_debug_mode(before["torch.set_deterministic_debug_mode"])
    filled = before["torch.utils.deterministic.fill_uninitialized_memory"]
    torch.utils.deterministic.fill_uninitialized_memory = filled  # type: ignore[attr-defined]
    torch.set_flush_denormal(before["torch.set_flush_denormal"])
    torch.set_grad_enabled(before["torch.set_grad_enabled"])
    torch.set_float32_matmul_precision(before["torch.set_float32_matmul_precision"])
    torch.autograd.set_detect_anomaly(before["torch.autograd.set_detect_anomaly"])
    torch.backends.cudnn.enabled = before["torch.backends.cudnn.enabled"]
    torch.backends.cudnn.benchmark = before["torch.backends.cudnn.benchmark"]
    torch.backends.cudnn.deterministic = before["torch.backends.cudnn.deterministic"]
    torch._C._set_mkldnn_enabled(before["torch.backends.mkldnn.enabled"])


def _describe_flags(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [f"{name} is now {now[name]} (was {value})" for name, value in before.items() if now[name] != value]


def _autocast() -> dict[str, bool]:
    return {kind: torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")}


def _restore_autocast(before: Mapping[str, bool]) -> None:
    for kind, enabled in before.items():
        torch.set_autocast_enabled(kind, enabled)


def _numpy_state() -> tuple[Any, ...]:
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 - the global generator is watched
    return (name, keys.tobytes(), *rest)  # type: ignore[attr-defined]


def _restore_numpy_state(before: tuple[Any, ...]) -> None:
    np.random.set_state((before[0], np.frombuffer(before[1], dtype=np.uint32), *before[2:]))  # noqa: NPY002


def _restore_torch_state(before: bytes) -> None:
    torch.set_rng_state(torch.frombuffer(bytearray(before), dtype=torch.uint8))


_TORCH_RANDOM = opaque("torch's global random state", lambda: torch.default_generator.get_state().numpy().tobytes(), _restore_torch_state)
_NUMPY_RANDOM = opaque("numpy's global random state", _numpy_state, _restore_numpy_state)
RANDOM_STATES: tuple[Probe, ...] = (PYTHON_RANDOM, _TORCH_RANDOM, _NUMPY_RANDOM)
"""Every global source of randomness."""

NUMERICAL: tuple[Probe, ...] = (
    setting("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype),
    setting("torch's default device", lambda: str(torch.get_default_device()), _restore_default_device),
    _TORCH_RANDOM,
    _NUMPY_RANDOM,
    setting("np.seterr", np.geterr, lambda before: np.seterr(**before)),
    Probe(read=_flags, describe=_describe_flags, restore=_restore_flags),
    setting("autocast", _autocast, _restore_autocast),
    opaque("torch's stacks of modes", _mode_stacks),
    opaque("the list of global hooks", _module_hooks, _remove_hooks),
)
"""The global state of torch and NumPy."""
