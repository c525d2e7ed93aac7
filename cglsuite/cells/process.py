"""Check that a cell leaves its process unchanged, and attribute changes to the code that made them. A record from an unclean process is
refused.

The process checks itself. This finds accidental changes, such as a seed, a default, a thread or a patched function. Malicious code can
evade the check, so two third-party distributions never share a worker process (:mod:`cglsuite.campaigns.executors.worker`).
"""

from __future__ import annotations

import builtins
import copy
import dataclasses
import gc
import hashlib
import importlib
import importlib.util
import json
import math
import os
import pathlib
import random
import sys
import time
import types
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
import torch
import torch.library
from torch import Tensor

from cglsuite.base.errors import UncleanError
from cglsuite.base.traces import LEFT_RUNNING, PYTHON_RANDOM, SHARED, Probe, Traces, opaque, setting, still_running
from cglsuite.cells.keys import sources
from cglsuite.cells.records.describe import foreign_code
from cglsuite.host.discovery import BUILT_IN

if TYPE_CHECKING:
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue


ROLES = ("dataset", "scenario", "schedule", "encoder", "backbone", "method", "pretraining", "measure")
"""The roles whose code runs in a cell, in addition to the core and the metrics."""

_LOADED_LATE = ("cglsuite.learning.task_runner", "cglsuite.learning.task_free_runner", "cglsuite.streams.oracle")
_DEPTH = 4  # a dataset is a dataclass of tensors, lists of tensors, and dataclasses such as splits


class Watch:
    """Compares a process with its initial state while a cell runs in it.

    Changes are undone where possible, reported once, and collected in :attr:`changes`.

    Args:
        cell: the running cell. catalogue: identifies the providers of its code.
    """

    def __init__(self, cell: CellSpec, catalogue: Catalogue) -> None:
        self._used = sources(cell, catalogue)
        self._census = _census()
        self._census.renew()
        self._before, self._running = Traces((*SHARED, *NUMERICAL)), Traces(LEFT_RUNNING)
        metrics = {f"metric {entry.name}": {"distribution": entry.record.distribution} for entry in catalogue.entries("metric")}
        self._foreign = bool(foreign_code({**self._used, **metrics}))
        self.changes: list[str] = []

    @property
    def foreign(self) -> bool:
        """Whether the cell runs third-party code, including metrics."""
        return self._foreign

    def record_changes(self, *roles: str) -> None:
        """Compare settings, random states and code if the cell runs third-party code.

        Args:
            roles: the roles for which code has run: ``"dataset"``, ``"scenario"``, ``"backbone"``, ``"method"``, ...
        """
        if self._foreign:
            self._note(self._changes(self._before), roles)

    @contextmanager
    def inside(self, data: Any, *roles: str) -> Iterator[Callable[[], None]]:
        """Compare the settings at the start and at the end of the block, whether or not the cell runs third-party code.

        Yields a function to call before a state is saved for other cells; it raises :class:`UncleanError` if something has changed.

        Args:
            data: the dataset, which is shared by cells, so third-party code must not change its tensors and arrays in place.
        """
        self._census.extend()
        before = Traces((*SHARED, *NUMERICAL))
        versions = list(_versions(data)) if self._foreign else []

        def compare_hooks() -> None:
            in_place = self._foreign and list(_versions(data)) != versions
            self._note(self._changes(before) + (["the dataset was changed in place"] if in_place else []), roles)

        def verify() -> None:
            compare_hooks()
            if self.changes:
                raise UncleanError(self.changes[-1])

        try:
            yield verify
        finally:
            compare_hooks()

    def finish(self, *roles: str) -> None:
        """Compare settings and random states, and end remaining threads and child processes. The method must no longer be
        referenced."""
        changes = self._before.changes()
        if left := still_running(self._running):
            self._running.restore()
        if changes:
            self._before.restore()
        self._note(changes + left, roles)

    def _changes(self, before: Traces) -> list[str]:
        replaced, changes = [f"{name} was replaced" for name in self._census.undo()], before.changes()
        if changes:
            before.restore()
        return replaced + changes

    def _note(self, changes: list[str], roles: tuple[str, ...]) -> None:
        if changes and (sentence := self._sentence(changes, roles)) not in self.changes:
            self.changes.append(sentence)

    def _sentence(self, changes: list[str], roles: tuple[str, ...]) -> str:
        parties = {role: self._used[role] for role in roles if role in self._used}
        foreign = {role: source for role, source in parties.items() if foreign_code({role: source})}
        named = [f"{r} {s['name']!r} of {s['distribution']} {s['version']}" for r, s in (foreign or parties).items()]
        return f"{' or '.join(named) or 'a plugin'} changed global state of the process: {'; '.join(changes)}"


@cache
def _census() -> CodeCensus:
    """Return the census of this process's code, taken once; all cells are compared with what was loaded before the first."""
    for name in _LOADED_LATE:
        importlib.import_module(name)
    return CodeCensus()


def _versions(data: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """Yield the version counter of every tensor in ``data``, and a checksum of every array."""
    if isinstance(data, Tensor):
        yield -1 if data.is_inference() else data._version
    elif isinstance(data, np.ndarray):
        yield zlib.crc32(np.ascontiguousarray(data).view(np.uint8).data) if data.size and data.dtype != object else 0
    elif depth and scipy.sparse.issparse(data):
        yield from _versions(getattr(data, "data", None), depth - 1)
    elif depth and dataclasses.is_dataclass(data):
        for field in dataclasses.fields(data):
            yield from _versions(getattr(data, field.name, None), depth - 1)
    elif depth and isinstance(data, (list, tuple, Mapping)):
        for part in data.values() if isinstance(data, Mapping) else data:
            yield from _versions(part, depth - 1)


# Global state of torch and NumPy: defaults, flags, random states, hooks. Each can be read, described and restored.

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
        for name, hooks_before in before.items():
            hooks = vars(owner).get(name, {})
            for number in [n for n, hook in hooks.items() if id(hook) not in hooks_before]:
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


# Detect replaced code of the suite, torch and NumPy since a census, such as a rigged scorer or loss.

_MODULES: tuple[Any, ...] = (
    *(builtins, copy, dataclasses, hashlib, json, json.decoder, json.encoder, math, os, os.path, pathlib, random, time),
    *(np, np.linalg, np.random),
)
_CLASSES: tuple[Any, ...] = (
    *(json.JSONDecoder, json.JSONEncoder, pathlib.Path, pathlib.PosixPath, pathlib.PurePath, pathlib.PurePosixPath, random.Random),
)
_TORCH_MODULES: tuple[Any, ...] = (torch, torch.nn.functional, torch.nn.init, torch.autograd, torch.library, torch.linalg, torch.sparse)
_TORCH_CLASSES: tuple[Any, ...] = (
    torch.Tensor,
    torch.Generator,
    torch.nn.Module,
    torch.nn.Parameter,
    torch.nn.Linear,
    torch.nn.BatchNorm1d,
    torch.nn.Dropout,
    torch.optim.Optimizer,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.SGD,
)
_CODE = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, classmethod, staticmethod, property, type)
_LIBRARIES = tuple(
    folder + os.sep
    for name in ("torch", "torch_geometric")
    if (spec := importlib.util.find_spec(name)) is not None
    for folder in spec.submodule_search_locations or ()
)
_OWN = frozenset(name.replace("-", "_") for name in BUILT_IN)
_KEPT_BY_PYTHON = frozenset({"__annotations__", "__annotations_cache__", "__slotnames__", "__warningregistry__", "__abstractmethods__"})
_NO_CODE = frozenset({"Storage"})  # torch.Storage depends on torch's default dtype
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The content of a module or class; in a class (``closed``), a new name may replace an inherited one."""

    owner: Any
    names: tuple[str, ...]
    values: tuple[Any, ...]
    size: int
    every: bool
    closed: bool


class CodeCensus:
    """The names and objects in every module and class of the suite's distributions, and in the most used ones of torch and NumPy.

    A census takes 15 ms, a comparison 1 ms. New names in a module do not count as a change, since modules import lazily.
    """

    def __init__(self) -> None:
        self._held: list[_Snapshot] = []
        self._functions: dict[int, tuple[types.FunctionType, tuple[Any, ...]]] = {}
        self._known: set[str] = set()
        self._seen = 0
        self._kernels = _kernels()
        owners = [_snapshot(owner) for owner in (*_MODULES, *_TORCH_MODULES)]
        self._add(owners + [_snapshot(cls, closed=True) for cls in (*_CLASSES, *_TORCH_CLASSES)])
        self.extend()

    def renew(self) -> None:
        """Add modules of the suite that were loaded since the census, and accept deliberate replacements, such as a reload in a
        notebook."""
        self._held = [_snapshot(h.owner, every=h.every, closed=h.closed) if any(_differences(h)) else h for h in self._held]
        self._note([f for f, before in self._functions.values() if _inside(f) != before])
        self._kernels = _kernels()
        self.extend()

    def extend(self) -> None:
        """Add modules of the suite that were loaded since the census."""
        if len(sys.modules) == self._seen:
            return
        self._seen = len(sys.modules)
        new = [n for n in list(sys.modules) if n not in self._known and n.partition(".")[0] in _OWN]
        self._known.update(new)
        modules = [m for n in new if isinstance(m := sys.modules.get(n), types.ModuleType)]
        classes = [v for m in modules for v in list(vars(m).values()) if isinstance(v, type) and v.__module__ == m.__name__]
        self._add([_snapshot(m, every=True) for m in modules] + [_snapshot(cls, every=True, closed=True) for cls in classes])

    def _add(self, held: list[_Snapshot]) -> None:
        self._held += held
        self._note([f for holder in held for value in holder.values for f in _functions(value)])

    def _note(self, functions: list[types.FunctionType]) -> None:
        self._functions.update({id(f): (f, _inside(f)) for f in functions})

    def undo(self) -> list[str]:
        """Restore everything that was replaced, and return the sorted dotted names."""
        replaced: set[str] = set()
        for function, before in self._functions.values():
            if _inside(function) != before:
                function.__code__, function.__defaults__, function.__kwdefaults__ = before
                replaced.add(f"{function.__module__}.{function.__qualname__}")
        for held in self._held:
            for name, value in _differences(held):
                replaced.add(f"{_name(held.owner)}.{name}")
                if value is _NOTHING:
                    delattr(held.owner, name)
                else:
                    setattr(held.owner, name, value)
        if new := _without_kernels_of_torch(_kernels() - self._kernels):
            replaced |= {f"torch.ops.{name.replace('/', '.')}" for name in new}
            _unregister(new)
        return sorted(replaced)


@contextmanager
def replacements_undone() -> Iterator[list[str]]:
    """Allow code of the suite, torch and NumPy to be replaced within the block. It is restored at the end.

    Yields:
        The dotted names of what was replaced, complete at the end of the block.
    """
    census, replaced = CodeCensus(), list[str]()
    try:
        yield replaced
    finally:
        replaced += census.undo()


def _kernels() -> frozenset[str]:
    """Return the implementations of torch's operators that Python code has registered, as ``aten/NAME/DISPATCH KEY``.

    Torch itself registers some for abstract tensors while it is loaded.
    """
    return frozenset(name for name in torch.library._impls if name.startswith("aten/") and not name.endswith("/Meta"))


def _without_kernels_of_torch(kernels: frozenset[str]) -> frozenset[str]:
    """Return ``kernels`` without those that torch itself registers on first use, such as rules for ``vmap``."""
    if not kernels:
        return kernels
    modules = [m for name, m in list(sys.modules.items()) if name.partition(".")[0] == "torch" and isinstance(m, types.ModuleType)]
    libraries = [v for module in modules for v in list(vars(module).values()) if type(v) is torch.library.Library]
    return kernels.difference(*(library._op_impls for library in libraries))


def _unregister(kernels: frozenset[str]) -> None:
    """Remove kernels together with everything else that their libraries have registered."""
    for library in [library for library in gc.get_objects() if type(library) is torch.library.Library]:
        if kernels & library._op_impls:
            library._destroy()


_inside = attrgetter("__code__", "__defaults__", "__kwdefaults__")


def _snapshot(owner: Any, *, every: bool = False, closed: bool = False) -> _Snapshot:
    """Snapshot all names of an owner, or only those bound to code."""
    whole = dict(vars(owner))
    values = {n: v for n, v in whole.items() if n not in _KEPT_BY_PYTHON and (every or (isinstance(v, _CODE) and n not in _NO_CODE))}
    return _Snapshot(owner, tuple(values), tuple(values.values()), len(whole), every, closed)


def _differences(held: _Snapshot) -> Iterator[tuple[str, Any]]:
    """Yield (name, former value) of everything that changed."""
    present = vars(held.owner)
    if all(map(is_, map(present.get, held.names), held.values)) and not (held.closed and len(present) > held.size):
        return
    changed = [(n, v) for n, v in zip(held.names, held.values, strict=True) if present.get(n) is not v]
    yield from ((name, value) for name, value in changed if not _by_library(present.get(name)))
    if held.closed and len(present) > held.size:
        added = set(present) - set(held.names) - _KEPT_BY_PYTHON
        yield from ((name, _NOTHING) for name in added if isinstance(present[name], _CODE) and not _by_library(present[name]))


def _by_library(value: Any) -> bool:
    """Return whether the function was wrapped by torch (its compiler does so on import) or by PyTorch Geometric (for its hash tensors)."""
    return getattr(getattr(value, "__code__", None), "co_filename", "").startswith(_LIBRARIES)


def _functions(value: Any) -> Iterator[types.FunctionType]:
    if isinstance(value, (classmethod, staticmethod)):
        value = value.__func__
    parts = (value.fget, value.fset) if isinstance(value, property) else (value,)
    yield from (part for part in parts if isinstance(part, types.FunctionType))


def _name(owner: Any) -> str:
    return f"{owner.__module__}.{owner.__qualname__}" if isinstance(owner, type) else str(owner.__name__)
