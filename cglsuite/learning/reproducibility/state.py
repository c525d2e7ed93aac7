"""Convert a method's state to plain values for checkpoints and fingerprints, without pickle."""

from __future__ import annotations

import copy
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from cglsuite.base.errors import LeakError, PluginError
from cglsuite.learning.method import Method
from cglsuite.learning.reproducibility.randomness import Draws

_MODULE = "__module__"


@runtime_checkable
class Stateful(Protocol):
    """Protocol for objects that save and restore their own state, such as :class:`cglsuite.learning.Reservoir`."""

    def state(self) -> dict[str, Any]:
        """Return the state, built from tensors, str, int, float, bool, None, and lists or dicts of those."""

    def load_state(self, state: Any) -> None:
        """Restore the object from :meth:`state`."""


def collect(method: Method) -> dict[str, Any]:
    """Collect the state of a method's model, ``state`` attributes and memory as plain values and tensors. Tensors are not copied."""
    return {
        "model": dict(method.model.state_dict()),
        "attributes": {name: _pack(_plain(getattr(method, name)), f"{type(method).__name__}.{name}") for name in method.state},
        "memory": method.memory.state(),
    }


def restore(method: Method, state: dict[str, Any]) -> None:
    """Restore a method from the state returned by :func:`collect`."""
    method.model.load_state_dict(state["model"])
    device = method.problem.device
    for name, value in state["attributes"].items():
        current = getattr(method, name, None)
        if isinstance(current, Stateful):
            current.load_state(_unpack(value, method.model, device))
        else:
            setattr(method, name, _unpack(value, method.model, device, current))
    method.memory.load_state(state["memory"], device, method.problem.like)


def _plain(value: Any) -> Any:
    """Return an attribute's value, or its state if the attribute is :class:`Stateful`."""
    return value.state() if isinstance(value, Stateful) else value


def _pack(value: Any, where: str) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, nn.Module):
        return {_MODULE: dict(value.state_dict())}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_pack(v, where) for v in value]
    if isinstance(value, dict) and all(isinstance(k, (str, int)) for k in value):
        return {k: _pack(v, where) for k, v in value.items()}
    raise PluginError(
        f"{where} contains a {type(value).__name__}, which cannot be saved. A method's state may contain tensors, modules, str, int, "
        "float, bool, None, and lists or dicts of those. An attribute (but not an entry of a list or dict) may also be an object "
        "with state() and load_state(), such as a Reservoir"
    )


def _unpack(value: Any, model: nn.Module, device: torch.device, current: Any = None) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, dict) and set(value) == {_MODULE}:
        # Load into the module that setup() created, if any. Otherwise, the attribute is a copy of the model (a teacher), created here.
        made = isinstance(current, nn.Module)
        module: nn.Module = current if made else copy.deepcopy(model).requires_grad_(False).eval()
        module.load_state_dict(value[_MODULE])
        return module.to(device)
    if isinstance(value, dict):
        return {k: _unpack(v, model, device) for k, v in value.items()}
    if isinstance(value, list):
        return [_unpack(v, model, device) for v in value]
    return value


def fingerprint(method: Method) -> str:
    """Compute a hash (hex) of a method's state. Changing any bit of the state changes the hash, which is SHA-256 over tensor CRC-32s.

    It is fast enough to check for accidental changes several times per task. It is not a cryptographic signature.
    """
    total = hashlib.sha256()
    _absorb(total, dict(method.model.state_dict()))
    _absorb(total, {name: _plain(getattr(method, name)) for name in method.state})
    _absorb(total, method.memory.state())
    return total.hexdigest()


@contextmanager
def untouched(method: Method, draws: Draws) -> Iterator[str]:
    """Check that predictions within the ``with`` block do not change the method's state. Yields the method's fingerprint.

    Raises:
        LeakError: if, at the end of the block, the state has changed or a training generator was used.
    """
    before, drawn = fingerprint(method), draws.state()
    yield before
    if fingerprint(method) != before:
        raise LeakError(f"{type(method).__name__}.predict changed the method's state; predictions must leave it unchanged")
    now = draws.state()
    if moved := sorted(p for p in {*drawn, *now} if p not in drawn or p not in now or not torch.equal(drawn[p], now[p])):
        raise LeakError(
            f"{type(method).__name__}.predict drew from the training generator {moved[0]!r}; "
            f"call self.context.generator({moved[0]!r}) within predict to get a separate generator for predictions"
        )


def _absorb(total: Any, value: Any) -> None:
    if isinstance(value, Tensor):
        if value.layout == torch.sparse_csr:
            _absorb(total, [value.crow_indices(), value.col_indices(), value.values()])
        else:
            array = value.detach().cpu().contiguous().numpy()
            total.update(f"{array.dtype.str}{array.shape}".encode())
            total.update(zlib.crc32(array.data).to_bytes(4, "little"))
    elif isinstance(value, nn.Module):
        _absorb(total, dict(value.state_dict()))
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            total.update(str(key).encode())
            _absorb(total, value[key])
    elif isinstance(value, (list, tuple)):
        total.update(f"[{len(value)}]".encode())
        for item in value:
            _absorb(total, item)
    else:
        total.update(repr(value).encode())
