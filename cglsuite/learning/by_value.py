"""A class that was defined in a notebook, brought to another process by value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["given", "keep"]

_KEPT: dict[str, Any] = {}


def keep(stem: str, obj: Any) -> None:
    """Note the object of a pickle in the process that wrote it. To load it there would bind the class to a copy of its globals."""
    _KEPT[stem] = obj


def given(file: str) -> Any:
    """The object in the pickle beside a plugin file that the suite wrote itself (its digest is in that file, and so in the key)."""
    import cloudpickle

    path = Path(file)
    return _KEPT[path.stem] if path.stem in _KEPT else cloudpickle.loads(path.with_suffix(".pkl").read_bytes())
