"""Cells: their specifications, keys and records, and the store that contains the records.

``code`` determines which source code is part of a key and what user code reads. ``records`` defines the contents of a record, and
``storage`` where it is stored (store, index, shards, leases). ``observing`` notifies observers of a cell's events. ``process`` restores
global state after a cell.

Importing the package does not import torch, pandas or pydantic. The names below load their modules on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.base.lazily import lazily

if TYPE_CHECKING:
    from cglsuite.cells.diagnostics import ForgettingSplit, split_forgetting
    from cglsuite.cells.keys import cell_key, design_key
    from cglsuite.cells.observing import Epoch, ObservedCell, Observer, Observers
    from cglsuite.cells.plan import CellOptions
    from cglsuite.cells.records.frame import results_frame
    from cglsuite.cells.records.record import Record
    from cglsuite.cells.run import run_cell
    from cglsuite.cells.spec import CellSpec, resolve_cell
    from cglsuite.cells.storage.store import Store

__all__ = [
    "CellOptions",
    "CellSpec",
    "Epoch",
    "ForgettingSplit",
    "ObservedCell",
    "Observer",
    "Observers",
    "Record",
    "Store",
    "cell_key",
    "design_key",
    "resolve_cell",
    "results_frame",
    "run_cell",
    "split_forgetting",
]

__getattr__, __dir__ = lazily(__name__, __file__)
