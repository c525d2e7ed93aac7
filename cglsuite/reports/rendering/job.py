"""The input and output of a rendering process: a JSON object on stdin, another on stdout, and values computed by the caller."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

COMPUTED = "CGLSUITE_COMPUTED"
"""The environment variable with the path of the file of computed values for a kernel, which is in the private scratch folder."""
_Kind = TypeVar("_Kind")


def hand_over(value: object, scratch: Path) -> None:
    """Store a value for :func:`computed`, so that the notebook need not compute it again."""
    (scratch / "computed.pickle").write_bytes(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))


def handed_over(scratch: Path) -> dict[str, str]:
    """Return the environment variables that let a kernel call :func:`computed`."""
    path = scratch / "computed.pickle"
    return {COMPUTED: str(path)} if path.exists() else {}


def computed(kind: type[_Kind], same: Callable[[_Kind], bool]) -> _Kind | None:
    """Return the value that the rendering process has computed, or ``None`` if it has a different type or ``same`` returns false for it."""
    path = os.environ.get(COMPUTED)
    value = pickle.loads(Path(path).read_bytes()) if path else None
    return value if isinstance(value, kind) and same(value) else None


@dataclass(frozen=True, kw_only=True)
class Job:
    """The description of one notebook to render.

    Args:
        notebook: path of the notebook. name: its display name. title: the page's title.
        heading: the page's first heading, which replaces the notebook's own.
        read: further stores to read from, for ``CGLSUITE_READ``.
        parameters: validated values. output: path of the page. scratch: an empty folder with a short absolute path.
    """

    notebook: str
    name: str
    title: str
    output: str
    heading: str = ""
    scratch: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    read: Sequence[str] = ()
    cell_timeout_s: float | None = None

    def to_json(self) -> str:
        """The object as one line of JSON."""
        return json.dumps(asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Job:
        """The inverse of :meth:`to_json`."""
        return cls(**json.loads(text))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of rendering one notebook. ``details`` is the failing cell's code and traceback in plain text, if a cell failed."""

    status: Literal["done", "failed"]
    reason: str = ""
    details: str = ""

    def to_json(self) -> str:
        """The object as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Outcome:
        """The inverse of :meth:`to_json`."""
        return cls(**json.loads(text))
