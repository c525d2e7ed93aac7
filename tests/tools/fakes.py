"""Fakes of the functions that resolve, key and run cells, for catalogues and cells that bring their own.

After :func:`install`, the suite's functions in :data:`PLACES` give way to those of the same names in the attribute ``fakes`` of a
catalogue or a cell that they are called with. Everything else is resolved, keyed and run as ever. Tools that have such catalogues call it
when they are imported. Worker processes find the catalogue by ``$FAKE_CATALOGUE``: see ``sitecustomize.py``.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["PLACES", "install", "install_in_worker"]

PLACES = {
    "cglsuite.cells.plan": ("resolve_cell",),
    "cglsuite.cells.keys": ("cell_key", "seeded_keys", "design_key", "prefix_keys", "sources", "planned_code"),
    "cglsuite.cells.run": ("run_cell",),
}


def install() -> None:
    """Put the fakes in place, once per process. Outside of pytest, no torch is imported before a real cell is run."""
    if "pytest" not in sys.modules and "cglsuite.cells.run" not in sys.modules:
        sys.modules["cglsuite.cells.run"] = _Run("cglsuite.cells.run")
    for place, names in PLACES.items():
        module = importlib.import_module(place)
        for name in names:
            if not hasattr(real := getattr(module, name), "gives_way"):
                setattr(module, name, _giving_way(name, real))


def install_in_worker(catalogue: str) -> None:
    """In a worker, whose catalogue is what ``"module:function"`` returns."""
    install()
    module, _, function = catalogue.partition(":")
    host: Any = importlib.import_module("cglsuite.host")
    host.load_catalogue = getattr(importlib.import_module(module), function)


def _giving_way(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def call(*args: Any, **more: Any) -> Any:
        fakes = next((fakes for given in (*args, *more.values()) if (fakes := getattr(given, "fakes", None)) is not None), None)
        return getattr(fakes, name, real)(*args, **more)

    call.gives_way = True  # type: ignore[attr-defined]
    return call


class _Run(ModuleType):
    """Stands where the module that imports torch belongs, until a real cell is run or something else of the module is needed."""

    def run_cell(self, *args: Any, **more: Any) -> Any:
        return self._real().run_cell(*args, **more)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._real(), name)

    def _real(self) -> Any:
        if sys.modules[self.__name__] is self:
            del sys.modules[self.__name__]
        real: Any = importlib.import_module(self.__name__)
        if not hasattr(real.run_cell, "gives_way"):
            real.run_cell = _giving_way("run_cell", real.run_cell)
        return real
