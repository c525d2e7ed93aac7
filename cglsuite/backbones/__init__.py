"""Backbones: the model protocol, graph layers, and GCN, GAT and GIN. Importing the package imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cglsuite.backbones.base import Backbone

__all__ = ["Backbone"]


def __getattr__(name: str) -> Any:
    if name == "Backbone":
        from cglsuite.backbones.base import Backbone

        return Backbone
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
