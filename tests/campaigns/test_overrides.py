"""Overrides: settings in layers, from texts and from the environment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.overrides import Overrides, merge_overrides, parse_overrides, same_key


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


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("lr", "lr", True), ("training.lr", "lr", True), ("lr", "training.lr", True), ("lr", "flr", False), ("a.lr", "b.lr", False)],
)
def test_keys_that_name_one_value(one: str, other: str, same: bool) -> None:
    assert same_key(one, other) is same


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        (["a"], "--set 'a': expected key=value, for example training.epochs=50"),
        (["=1"], "--set '=1': expected key=value, for example training.epochs=50"),
        (["a=1", "a=2"], "--set: 'a' is given twice ('1' and '2')"),
        (["lr=1", "training.lr=2"], "--set: 'lr' or 'training.lr' is given twice ('1' and '2')"),
    ],
)
def test_texts_that_are_no_overrides(pairs: list[str], says: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_overrides(pairs, "--set")
    assert str(error.value) == says


def test_a_later_layer_wins_key_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line over the environment; what neither says is left to the campaign."""
    for name in ("SET", "DEVICE", "WORKERS", "CHECKPOINT_EVERY"):
        monkeypatch.delenv(f"CGLSUITE_{name}", raising=False)
    assert Overrides.of(None) == Overrides.of({}) == Overrides()
    assert (Overrides().device, Overrides().workers, Overrides().executor, Overrides().run, Overrides().values) == (
        None,
        None,
        None,
        {},
        {},
    )
    monkeypatch.setenv("CGLSUITE_SET", "training.lr=1;method.a=2; ;")
    monkeypatch.setenv("CGLSUITE_DEVICE", "cpu")
    monkeypatch.setenv("CGLSUITE_WORKERS", "3")
    monkeypatch.setenv("CGLSUITE_CHECKPOINT_EVERY", "5")
    lower = Overrides(values={"training.lr": "1", "method.a": "2"}, device="cpu", workers=3, checkpoint_every_s=5)
    assert Overrides.of(None) == Overrides.of(Overrides()) == lower
    assert Overrides.of({"lr": 5}) == Overrides(values={"method.a": "2", "lr": 5}, device="cpu", workers=3, checkpoint_every_s=5)
    upper = Overrides(values={"b": 1}, device="cuda", workers=7, executor="grid", checkpoint_every_s=0, run={"grid.x": 1})
    assert Overrides.of(upper) == replace(upper, values={"training.lr": "1", "method.a": "2", "b": 1})
    assert merge_overrides() == {}
    assert merge_overrides({"a": 1}, {}, {"a": None}) == {"a": None}
