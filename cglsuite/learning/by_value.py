"""Pickle classes defined in a notebook by value, so that other processes can load them."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

_KEPT: dict[str, Any] = {}


def keep(stem: str, obj: Any) -> None:
    """Register an object in the process that pickled it. Unpickling it there would bind the class to a copy of its globals."""
    _KEPT[stem] = obj


def given(file: str) -> Any:
    """Load the object pickled next to a plugin file. The plugin's source contains the pickle's digest, so the key depends on it."""
    import cloudpickle

    path = Path(file)
    if path.stem in _KEPT:
        return _KEPT[path.stem]
    try:
        obj, texts = cloudpickle.loads(path.with_suffix(".pkl").read_bytes())
    except AttributeError as error:  # an AttributeError from a module would mean that the requested name does not exist
        raise ImportError(f"the pickled class cannot be recreated in this process: {error}") from error
    for name, lines in texts.items():  # ``inspect.getsource`` and ``torch.jit.script`` see the code that runs, not later edits
        linecache.cache[name] = sum(map(len, lines)), None, lines, name
    return obj
