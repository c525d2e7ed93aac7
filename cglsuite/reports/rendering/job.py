"""A rendering process's input and output: one JSON object each way over its standard streams."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


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
