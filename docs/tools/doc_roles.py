"""Docstrings of the package are plain text with roles (``:class:`Catalogue```) and shapes (``[T + 1][T]``); here they become Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["Roles"]

_SHAPES = re.compile(r"\](?=\[)")
_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`~?([^`]+)`")


class Roles(griffe.Extension):
    """Makes roles code, and keeps shapes from being read as links, in every docstring."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for each module, class, function and attribute, once all are read."""
        if obj.docstring is not None:
            obj.docstring.value = _SHAPES.sub("]&#8203;", _ROLE.sub(r"`\1`", obj.docstring.value))
