"""Tiles count in words."""

from __future__ import annotations

import pytest

from cglsuite.reports.kit.text import tile


@pytest.mark.parametrize(
    ("value", "label", "text"),
    [
        (1, "scenarios", "1 scenario"),
        (2, "scenarios", "2 scenarios"),
        (0, "methods", "0 methods"),
        (1, "seeds (split/init)", "1 seed (split/init)"),
        (1, "published values", "1 published value"),
        (1, "cells planned", "1 cell planned"),
        (1, "in use", "1 in use"),
        (1, "values of backbone.layers", "1 value of backbone.layers"),
        ("1 min", "total compute time", "1 min total compute time"),
    ],
)
def test_one_of_a_kind_is_singular(value: int | str, label: str, text: str) -> None:
    assert tile(value, label).source.replace("<li><b>", "").replace("</b> <span>", " ").replace("</span></li>", "") == text
