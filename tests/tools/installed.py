"""The catalogue of what is installed, loaded once per process: loading it takes as long as many a tiny run."""

from __future__ import annotations

import sys
from functools import lru_cache

from cglsuite import Catalogue, load_catalogue

__all__ = ["installed"]


def installed(*distributions: str) -> Catalogue:
    """The catalogue of these distributions, by default of all that can be imported now; loaded anew where a test has changed the path."""
    return _loaded(distributions, tuple(sys.path))


@lru_cache(maxsize=16)
def _loaded(distributions: tuple[str, ...], path: tuple[str, ...]) -> Catalogue:
    return load_catalogue(allow=list(distributions)) if distributions else load_catalogue()
