"""Pickle support for classes defined in a notebook, which are sent to other processes by value."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

_KEPT: dict[str, Any] = {}


def keep(stem: str, obj: Any) -> None:
    """Register a pickled object in the process that wrote it, where unpickling would bind the class to a copy of its globals."""
    _KEPT[stem] = obj


def given(file: str) -> Any:
    """Load the object that the suite pickled next to a plugin file. The plugin's source, and thus the key, contains the pickle's digest."""
    import cloudpickle

    path = Path(file)
    if path.stem in _KEPT:
        return _KEPT[path.stem]
    try:
        obj, texts = cloudpickle.loads(path.with_suffix(".pkl").read_bytes())
    except AttributeError as error:  # of a module that is asked for a name, it would be taken for the name's absence
        raise ImportError(f"the class cannot be made again in this process: {error}") from error
    for name, lines in texts.items():  # what ``inspect.getsource`` and ``torch.jit.script`` show is what runs, not what was saved since
        linecache.cache[name] = sum(map(len, lines)), None, lines, name
    return obj
