"""Import OGB without starting its thread that checks for a newer version over the network."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

# A module that lacks the name OGB looks for: the import raises ImportError, which OGB handles.
_HIDDEN = ModuleType("outdated")


@contextmanager
def without_update_check() -> Iterator[None]:
    """Context manager in which ``ogb`` can be imported without starting the thread.

    Example:
        >>> with without_update_check():
        ...     from ogb.linkproppred.evaluate import Evaluator
    """
    before = sys.modules.get("outdated")
    sys.modules["outdated"] = _HIDDEN
    try:
        yield
    finally:
        if before is None:
            del sys.modules["outdated"]
        else:
            sys.modules["outdated"] = before
