"""Task-free streams: their properties and the performance of methods on them."""

from __future__ import annotations
