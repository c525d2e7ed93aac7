"""Learning: the method base class and its hooks, the loop, metered memory, checkpoints. Importing the package imports no torch."""

from __future__ import annotations

from cglsuite.learning.method import Method, MethodContext, Phase, Settings

__all__ = ["Method", "MethodContext", "Phase", "Settings"]
