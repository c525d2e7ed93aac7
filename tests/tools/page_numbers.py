"""The numbers of pages and of frames, to be compared: what stands behind a page's texts, and what was computed."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from bs4 import BeautifulSoup

__all__ = ["exact_numbers", "numbers"]

_ATTRIBUTES = ("data-value", "data-low", "data-high", "data-std", "data-n")


def exact_numbers(page: str) -> set[float]:
    """The exact numbers behind what a page shows."""
    tags = BeautifulSoup(page, "html.parser").find_all(True)
    return {float(str(tag[name])) for tag in tags for name in _ATTRIBUTES if tag.has_attr(name)}


def numbers(frame: pd.DataFrame) -> set[float]:
    """The numbers of a frame but NaN."""
    return {float(value) for value in frame.to_numpy(dtype=np.float64).ravel() if not math.isnan(value)}
