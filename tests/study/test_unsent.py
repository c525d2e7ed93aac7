"""What is set in a notebook and is not in the workers."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
import torch

from cglsuite.learning import Method
from cglsuite.study.classes import unsent_changes


def mine(*given: object) -> object:
    return given


mine.__module__ = "__main__"


def test_nothing_is_set_where_nothing_was() -> None:
    assert unsent_changes([]) == []


def test_patches_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of torch and its classes, of the suite's modules and classes; also by a function of a user's module."""
    own = types.FunctionType(mine.__code__, {}, "own")
    own.__module__ = "own_module_of_a_user"
    monkeypatch.setitem(sys.modules, own.__module__, types.ModuleType(own.__module__))
    monkeypatch.setattr("cglsuite.study.classes._SEEN", {own.__module__: True})
    monkeypatch.setattr(torch.nn.functional, "relu", mine)
    monkeypatch.setattr(torch.Tensor, "sum", mine)
    monkeypatch.setattr(torch, "softmax", own)
    monkeypatch.setattr(Method, "loss", mine)
    monkeypatch.setattr("cglsuite.learning.method.annotations", mine, raising=False)
    assert unsent_changes([]) == [
        "cglsuite.learning.method.Method.loss",
        "cglsuite.learning.method.annotations",
        "torch.Tensor.sum",
        "torch.nn.functional.relu",
        "torch.softmax",
    ]


@pytest.mark.parametrize(
    ("name", "set_there"),
    [("scipy.special", "expit"), ("builtins", "max"), ("own", "scale"), ("own", "Config.twice"), ("own", "Config.new")],
)
def test_what_a_notebook_set_anywhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, set_there: str) -> None:
    function = types.FunctionType(mine.__code__, {}, "mine")
    function.__module__ = "__main__"
    if name == "own":
        name = f"set_there_{abs(hash(set_there))}"
        (tmp_path / f"{name}.py").write_text("def scale(x): return x\n\nclass Config:\n    def twice(self): return 2\n")
        monkeypatch.syspath_prepend(str(tmp_path))
    __import__(name)
    monkeypatch.setattr(f"{name}.{set_there}", function, raising=False)
    assert unsent_changes([name]) == [f"{name}.{set_there}"]


def test_another_default_dtype_is_named() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert unsent_changes([]) == ["torch's default dtype (torch.float64)"]
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_constant_that_was_set_on_a_module_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "has_constants.py").write_text("A = 1\nB = [1, 2]\nTWICE = 1\nTWICE = 2\nMADE = len(B)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = __import__("has_constants")
    assert unsent_changes(["has_constants", "not_loaded"]) == []
    module.A, module.TWICE, module.MADE = 2, 3, 4
    module.B.append(3)
    assert unsent_changes(["has_constants"]) == ["has_constants.A"]  # lists are filled by code, too
