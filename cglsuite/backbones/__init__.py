"""Backbones: the base class of models, graph layers, and GCN, GAT and GIN. Importing this package does not import torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.backbones.units import Units, Wire
from cglsuite.base.lazily import lazily

if TYPE_CHECKING:
    from cglsuite.backbones.base import Backbone
    from cglsuite.backbones.stock import StockBackbone

__all__ = ["Backbone", "StockBackbone", "Units", "Wire"]

__getattr__, __dir__ = lazily(__name__, __file__)
