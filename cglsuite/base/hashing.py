"""Canonical JSON and its digests, from which all keys in the suite are computed."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["canonical", "digest", "plain"]


def plain(obj: Any) -> Any:
    """Convert ``obj`` to JSON-serialisable values: dataclasses and mappings become dicts, tuples and arrays become lists, and non-finite
    floats become
    ``None``.

    Raises:
        TypeError: a value has no canonical form, such as a function.
    """
    if obj is None or isinstance(obj, (bool, int, str)):
        return obj
    if isinstance(obj, float):
        return float(obj) if math.isfinite(obj) else None
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        return {f.name: plain(getattr(obj, f.name)) for f in dataclasses.fields(obj)}
    if isinstance(obj, Mapping):
        return {str(k): plain(v) for k, v in obj.items()}
    if isinstance(obj, (list, tuple)):
        return [plain(v) for v in obj]
    if isinstance(obj, (set, frozenset)):
        return sorted(plain(v) for v in obj)
    if hasattr(obj, "tolist"):  # a NumPy array or scalar, or a tensor
        return plain(obj.tolist())
    raise TypeError(f"{type(obj).__name__} has no canonical form")


def canonical(obj: Any) -> str:
    """Serialise :func:`plain` of ``obj`` as JSON with sorted keys and no spaces. The text is the same on every machine."""
    return json.dumps(plain(obj), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(obj: Any) -> str:
    """Return the SHA-256 (hex) of the canonical form of ``obj``."""
    return hashlib.sha256(canonical(obj).encode()).hexdigest()
