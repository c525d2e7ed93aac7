"""A method class as a plugin file: what the spec says of it, what of its source counts, and how the file reads."""

from __future__ import annotations

import functools
import math
import runpy
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import cglsuite as cgl
from cglsuite.errors import UsageError
from cglsuite.specs import LEVELS, SETTINGS, Hyperparameter, MethodSpec
from cglsuite.study.classes import as_plugin_file, source_with_globals, spec_of


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path))


LIMIT, WEIGHTS, TABLE, HALF, FAR = 3, np.array([1.0, 2.0]), {"b": [1, (2,)], "a": None}, torch.tensor([0.5]), float("inf")
GROWN = torch.tensor([0.25], requires_grad=True)


def helper(value: float) -> float:
    """Twice."""  # a docstring is no code
    return value * LIMIT + inner(value)


def inner(value: float) -> float:
    return math.sqrt(value)


def unused(value: float) -> float:
    return value


class Base(cgl.Method):
    """What both share."""

    def before_step(self) -> None:
        TABLE.get("a")


class MyHTTPMethod2_x(Base):
    """
    Does nothing new.

    And says so at length.
    """

    hyperparameters: ClassVar[dict[str, Any]] = {"weight": 0.5, "kind": "a"}

    def loss(self, batch: Any) -> Any:
        return super().loss(batch) + helper(1.0)

    @property
    def half(self) -> Any:
        return HALF + GROWN

    @classmethod
    def weights(cls) -> Any:
        return [w for w in WEIGHTS]  # noqa: C416 - a comprehension is a code object of its own

    @staticmethod
    def far() -> float:
        return FAR


class Bare(cgl.Method):
    hyperparameters: ClassVar[Any] = (Hyperparameter(name="k", default=2, doc="how many", minimum=1),)


class Declared(cgl.Method):
    spec = MethodSpec(name="mine", summary="own words", factory="x:y", levels=("NC",))


def test_the_spec_of_a_class() -> None:
    """Named after it, described by its first line, for every level and setting; its defaults are its hyper-parameters."""
    assert spec_of(MyHTTPMethod2_x, "a:b") == MethodSpec(
        name="my-httpmethod2-x",
        summary="Does nothing new.",
        factory="a:b",
        levels=LEVELS,
        settings=SETTINGS,
        hyperparameters=(
            Hyperparameter(name="weight", default=0.5, doc="weight of MyHTTPMethod2_x"),
            Hyperparameter(name="kind", default="a", doc="kind of MyHTTPMethod2_x"),
        ),
    )
    bare = spec_of(Bare, "a:b")
    assert (bare.name, bare.summary, bare.hyperparameters) == ("bare", "Bare, defined in Python", Bare.hyperparameters)
    assert spec_of(Declared, "a:b") == MethodSpec(name="mine", summary="own words", factory="a:b", levels=("NC",))


def test_the_source_of_a_class_with_what_it_uses() -> None:
    """Its bases, functions and values in this module, by name; not what it does not use, and neither comments nor docstrings."""
    source, stable = source_with_globals(MyHTTPMethod2_x)
    assert stable
    lines = source.splitlines()
    for part in (
        "class MyHTTPMethod2_x(Base):",
        "class Base(cgl.Method):",
        "def helper(value):",
        "def inner(value):",
        "LIMIT = 3",
        "math = module math",
        "Method = cglsuite.learning.method:Method",
        "TABLE = {'b': [1, [2]], 'a': None}",
        "FAR = {'float': 'inf'}",
    ):
        assert part in lines, (part, source)
    for name, value in (("WEIGHTS", WEIGHTS), ("HALF", HALF.numpy()), ("GROWN", GROWN.detach().numpy())):
        (line,) = (line for line in lines if line.startswith(f"{name} = "))
        assert line.startswith(f"{name} = {value.dtype.str}{value.shape}")
    for absent in ("Twice", "Does nothing", "a docstring", "unused", "Bare"):
        assert absent not in source
    assert len({line.rpartition(")")[2] for line in lines if line.startswith(("WEIGHTS", "HALF", "GROWN"))}) == 3


def variant(name: str, value: Any) -> tuple[str, bool]:
    """The source of a class with another value of a global."""
    before = globals()[name]
    globals()[name] = value
    try:
        return source_with_globals(MyHTTPMethod2_x)
    finally:
        globals()[name] = before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LIMIT", 4),
        ("LIMIT", 3.0),
        ("WEIGHTS", np.array([1.0, 3.0])),
        ("WEIGHTS", np.array([[1.0, 2.0]])),
        ("WEIGHTS", np.array([1.0, 2.0], dtype=np.float32)),
        ("HALF", torch.tensor([0.75])),
        ("TABLE", {"b": [1, (3,)], "a": None}),
        ("FAR", float("-inf")),
        ("FAR", float("nan")),
        ("FAR", None),
        ("FAR", "inf"),
        ("TABLE", {"b": [1, (float("nan"),)], "a": None}),
        ("TABLE", {"b": [1, (2,)], "a": float("nan")}),
        ("inner", unused),
        ("math", functools),
    ],
)
def test_every_global_counts(name: str, value: Any) -> None:
    """Its value, type and shape: another is another cell."""
    text, stable = variant(name, value)
    assert stable
    assert text != source_with_globals(MyHTTPMethod2_x)[0]


@pytest.mark.parametrize("value", [object(), [object()], {"a": object()}, functools.partial(helper, 1.0)])
def test_a_value_without_a_text_is_never_stable(value: Any) -> None:
    assert not variant("TABLE", value)[1]


def test_a_class_of_a_module_is_named_by_it(tmp_path: Path) -> None:
    path, name, folder = as_plugin_file(MyHTTPMethod2_x)
    assert (name, folder) == ("my-httpmethod2-x", Path(__file__).parents[len(__name__.split(".")) - 1])
    assert path.parent.parent == tmp_path / "given" / "methods"
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert path.stem == path.parent.name
    assert path.stem.startswith("myhttpmethod2_x_")
    (spec,) = runpy.run_path(str(path))["cglsuite_methods"]()
    assert spec == spec_of(MyHTTPMethod2_x, f"{__name__}:MyHTTPMethod2_x")
    written = path.stat().st_mtime_ns
    assert as_plugin_file(MyHTTPMethod2_x)[0] == path
    assert path.stat().st_mtime_ns == written
    (bare,) = runpy.run_path(str(as_plugin_file(Bare)[0]))["cglsuite_methods"]()
    assert bare.hyperparameters == Bare.hyperparameters


@pytest.mark.parametrize("regular", [(), ("", "inner"), ("inner",)])
@pytest.mark.parametrize("file", ["inner/module.py", "inner/module/__init__.py"])
def test_a_class_of_a_package_needs_the_folder_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, regular: tuple[str, ...], file: str
) -> None:
    """And not that of its module, nor the current one: also where folders have no ``__init__.py``."""
    top = f"own_package_{len(regular)}_{len(file)}"
    package = tmp_path / "site" / top
    (package / file).parent.mkdir(parents=True)
    for place in regular:
        (package / place / "__init__.py").write_text("")
    (package / file).write_text("import cglsuite as cgl\nclass Mine(cgl.Method):\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    module = __import__(f"{top}.inner.module", fromlist=["Mine"])
    _, name, folder = as_plugin_file(module.Mine)
    assert (name, folder) == ("mine", tmp_path / "site")


def test_a_class_of_a_notebook_is_pickled_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its source is in the file; where a global has no text, the file is new each time."""
    line = vars(Bare).get("__firstlineno__")
    monkeypatch.setattr(Bare, "__module__", "__main__")
    if line is not None:
        Bare.__firstlineno__ = line  # type: ignore[attr-defined] # Python 3.13 drops it with the module
    monkeypatch.setitem(sys.modules, "__main__", sys.modules[__name__])  # where its source is looked for
    path, name, folder = as_plugin_file(Bare)
    assert (name, folder) == ("bare", None)
    assert sorted(p.suffix for p in path.parent.iterdir()) == [".pkl", ".py"]
    made = runpy.run_path(str(path))
    source, stable = source_with_globals(Bare)
    assert stable
    assert made["SOURCE"] == source
    assert made["Bare"].hyperparameters == Bare.hyperparameters
    (spec,) = made["cglsuite_methods"]()
    assert spec == spec_of(Bare, f"{path.stem}:Bare")
    assert as_plugin_file(Bare)[0] == path
    monkeypatch.setattr(Bare, "extra", functools.partial(helper, 1.0), raising=False)
    monkeypatch.setattr(Bare, "uses", lambda self: ODD, raising=False)
    first, second = as_plugin_file(Bare)[0], as_plugin_file(Bare)[0]
    assert len({path, first, second}) == 3
    assert runpy.run_path(str(first))["SOURCE"].partition("\n# ")[2]


ODD = object()


@pytest.mark.parametrize("given", [int, 3, "bare", Bare.loss])
def test_what_is_no_method(given: Any) -> None:
    with pytest.raises(UsageError, match="expected the name of a method, or a class derived from cglsuite.Method"):
        as_plugin_file(given)


def test_a_class_inside_a_function_cannot_be_found_again() -> None:
    class Local(cgl.Method):
        pass

    with pytest.raises(UsageError, match=r"^test_a_class_inside.*<locals>\.Local is defined inside a function: define the class at"):
        as_plugin_file(Local)
