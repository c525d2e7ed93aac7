"""Studies: what the notebooks compute, draw and show, by subject."""

from __future__ import annotations
