"""A rendering process's input and output: one JSON object each way over its standard streams, and what its caller has computed already."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

COMPUTED = "CGLSUITE_COMPUTED"
"""The variable that names, for a kernel, the file with what its caller has computed; it lies in the private scratch folder."""
_Kind = TypeVar("_Kind")


def hand_over(value: object, scratch: Path) -> None:
    """Put what a notebook would compute again where :func:`computed` finds it."""
    (scratch / "computed.pickle").write_bytes(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))


def handed_over(scratch: Path) -> dict[str, str]:
    """What a kernel's environment needs for :func:`computed`."""
    path = scratch / "computed.pickle"
    return {COMPUTED: str(path)} if path.exists() else {}


def computed(kind: type[_Kind], same: Callable[[_Kind], bool]) -> _Kind | None:
    """What the process that renders this notebook has computed already, if it is of this kind and the ``same``; else None."""
    path = os.environ.get(COMPUTED)
    value = pickle.loads(Path(path).read_bytes()) if path else None
    return value if isinstance(value, kind) and same(value) else None


@dataclass(frozen=True, kw_only=True)
class Job:
    """The description of one notebook to render.

    Args:
        notebook: path of the notebook; ``name`` is its display name. title: of the page.
        heading: what its first heading says in place of the notebook's name.
        read: stores that are read as well, for ``CGLSUITE_READ``.
        parameters: already checked. output: where the page goes. scratch: an empty folder with a short absolute path.
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
    """The outcome of a rendering. ``details``: the failing cell's code and traceback in plain text, if there is one."""

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
