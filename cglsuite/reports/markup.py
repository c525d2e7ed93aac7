"""The fragments of HTML that our pages are made of, under the name that this room uses."""

from __future__ import annotations

from cglsuite.markup import Content, Fragment, element, join

__all__ = ["Content", "Fragment", "element", "join"]
