"""Overrides: settings in layers, from texts and from the environment."""

from __future__ import annotations

import pytest

from cglsuite.campaigns.overrides import Overrides, merge_overrides, parse_overrides
from cglsuite.errors import UsageError


def test_overrides_from_the_environment() -> None:
    environment = {"CGLSUITE_SET": "training.lr=0.1; method.lambda=2;", "CGLSUITE_DEVICE": "cpu", "CGLSUITE_WORKERS": "3"}
    overrides = Overrides.from_environment(environment)
    assert overrides == Overrides(values={"training.lr": "0.1", "method.lambda": "2"}, device="cpu", workers=3)
    for wrong in ({"CGLSUITE_SET": "lr"}, {"CGLSUITE_SET": "a=1;a=2"}, {"CGLSUITE_WORKERS": "many"}, {"CGLSUITE_WORKERS": "0"}):
        with pytest.raises(UsageError, match="CGLSUITE_"):
            Overrides.from_environment(wrong)


def test_settings_texts_and_layers() -> None:
    """Values may hold ``=``; later layers win under either name."""
    assert parse_overrides(["a.b=c=d", " x = 1 "], "--set") == {"a.b": "c=d", "x": "1"}
    assert merge_overrides({"training.lr": 1, "a": 0}, {"lr": 2}) == {"a": 0, "lr": 2}
    assert merge_overrides({"lr": 1}, {"training.lr": 2}) == {"training.lr": 2}
    assert merge_overrides({"method.dropout": 1}, {"backbone.dropout": 2}) == {"method.dropout": 1, "backbone.dropout": 2}
