"""Gives these tests the fixture ``no_kernel``."""

from __future__ import annotations

from no_kernel import no_kernel

__all__ = ["no_kernel"]
