"""A method class as a plugin file: what the spec says of it, what of its source counts, and how the file reads."""

from __future__ import annotations

import importlib
import itertools
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import cloudpickle
import pytest

import cglsuite as cgl
from cglsuite.base.errors import UsageError
from cglsuite.cells.code.objects import hashed, is_importable
from cglsuite.learning import by_value
from cglsuite.specs import LEVELS, SETTINGS, Hyperparameter, MethodSpec
from cglsuite.study.classes import _dumped, as_plugin_file, spec_of, unsent_changes


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path))


def helper(value: float) -> float:
    return 2 * value


class MyHTTPMethod2_x(cgl.Method):
    """
    Does nothing new.

    And says so at length.
    """

    hyperparameters: ClassVar[dict[str, Any]] = {"weight": 0.5, "kind": "a"}

    def loss(self, batch: Any) -> Any:
        return super().loss(batch) + helper(1.0)


class Bare(cgl.Method):
    hyperparameters: ClassVar[Any] = (Hyperparameter(name="k", default=2, doc="how many", minimum=1),)


class Declared(cgl.Method):
    spec = MethodSpec(name="mine", summary="own words", factory="x:y", levels=("NC",))


def test_the_spec_of_a_class() -> None:
    """Named after it, described by its first line, for every level and setting; its defaults are its hyperparameters."""
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


def test_a_class_of_a_module_is_named_by_it(tmp_path: Path) -> None:
    found = as_plugin_file(MyHTTPMethod2_x)
    path = found.path
    assert (found.name, found.folders[0]) == ("my-httpmethod2-x", Path(__file__).parents[len(__name__.split(".")) - 1])
    assert path.parent.parent == tmp_path / "given" / "methods"
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert path.stem == path.parent.name
    assert path.stem.startswith("myhttpmethod2_x_")
    (spec,) = runpy.run_path(str(path))["cglsuite_methods"]()
    assert spec == spec_of(MyHTTPMethod2_x, f"{__name__}:MyHTTPMethod2_x")
    written = path.stat().st_mtime_ns
    assert as_plugin_file(MyHTTPMethod2_x).path == path
    assert path.stat().st_mtime_ns == written
    (bare,) = runpy.run_path(str(as_plugin_file(Bare).path))["cglsuite_methods"]()
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
    found = as_plugin_file(module.Mine)
    assert (found.name, found.folders) == ("mine", (tmp_path / "site",))


class Cells:
    """Cells of a notebook: code that is executed in ``__main__``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.module = ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", self.module)

    def __call__(self, code: str) -> Any:
        exec(compile(f"import cglsuite as cgl\n{code}", "<cell>", "exec", dont_inherit=True), self.module.__dict__)
        return self.module.__dict__.get("Mine")


CELL = """
SCALE = 1.0
def scaled(x): return x * SCALE
class Mine(cgl.Method):
    def loss(self, batch): return scaled(super().loss(batch))
"""


def test_a_class_of_a_notebook_travels_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the digest of what it is now. The process that wrote the pickle has the class itself, which keeps its globals."""
    cells = Cells(monkeypatch)
    method = cells(CELL)
    first = as_plugin_file(method)
    assert (first.name, first.folders, first.news) == ("mine", (), "given for the first time")
    assert sorted(p.suffix for p in first.path.parent.iterdir()) == [".pkl", ".py"]
    made = runpy.run_path(str(first.path))
    assert list(made["CODE"]) == ["Mine", "SCALE", "scaled"]
    (spec,) = made["cglsuite_methods"]()
    assert spec == spec_of(method, f"{first.path.stem}:Mine")
    assert made["__getattr__"]("Mine") is method
    assert method.loss.__globals__ is cells.module.__dict__
    with pytest.raises(AttributeError):
        made["__getattr__"]("other")


def test_an_unchanged_class_has_its_file_and_a_change_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = Cells(monkeypatch)
    first = as_plugin_file(cells(CELL))
    again = as_plugin_file(cells(CELL))
    assert (again.path, again.news) == (first.path, "")
    cells("SCALE = 2.0")
    other = as_plugin_file(cells.module.Mine)
    assert other.path != first.path
    assert other.news == "SCALE changed"
    more = as_plugin_file(cells(CELL.replace("x * SCALE", "x * OTHER").replace("SCALE = ", "OTHER = ")))
    assert more.news == "scaled changed; OTHER new; SCALE no longer used"


def test_the_text_of_a_class_travels_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What torch.jit.script compiles in a worker is the code that was sent, whatever the file says by then."""
    script = tmp_path / "script.py"
    code = "import cglsuite as cgl\ndef f(x): return x\nclass Mine(cgl.Method):\n    def setup(self): return f\n"
    script.write_text(code)
    cells = Cells(monkeypatch)
    exec(compile(code, str(script), "exec"), cells.module.__dict__)
    path = as_plugin_file(cells.module.Mine).path
    script.write_text(code.replace("return x", "return -x"))
    reader = "import sys, inspect; from cglsuite.learning.by_value import given; print(inspect.getsource(given(sys.argv[1]).setup(0)))"
    done = subprocess.run([sys.executable, "-c", reader, str(path)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "def f(x): return x", done.stderr


def test_a_pickle_that_lies_there_is_never_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = Cells(monkeypatch)
    path = as_plugin_file(cells(CELL)).path.with_suffix(".pkl")
    path.write_bytes(b"stale")
    method = as_plugin_file(cells(CELL)).path
    monkeypatch.setattr(by_value, "_KEPT", {})
    assert by_value.given(str(method)) is cells.module.Mine  # of the class that is there now


def test_modules_that_a_class_uses_are_in_its_file_and_on_the_path_of_workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its own, and what it builds on; not libraries. An edit of one is another class."""
    helper = tmp_path / "site" / "own_helper.py"
    helper.parent.mkdir()
    helper.write_text("def scale(x): return x\n")
    monkeypatch.syspath_prepend(str(helper.parent))
    monkeypatch.delitem(sys.modules, "own_helper", raising=False)
    cells = Cells(monkeypatch)
    code = """
import json
from own_helper import scale
class Mine(cgl.Method):
    def loss(self, batch):
        import torch
        return scale(super().loss(batch)) + torch.tensor(len(json.dumps(1)))
"""
    first = as_plugin_file(cells(code))
    assert first.folders == (helper.parent,)
    lines = [line.strip() for line in first.path.read_text().splitlines() if line.startswith("    ")]
    assert {"from own_helper import scale", "from cglsuite.learning.method import Method"} <= set(lines)
    assert not any("json" in line or "torch" in line for line in lines)
    helper.write_text("def scale(x): return -x\n")
    second = as_plugin_file(cells.module.Mine)
    assert second.path != first.path
    assert second.news == "module own_helper changed"


def test_modules_go_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are no plain modules, as torch.backends.cudnn, which pickle refuses."""
    code = (
        "import torch\nclass Mine(cgl.Method):\n    def setup(self): torch.backends.cudnn.benchmark = torch.backends.mps.is_available()\n"
    )
    path = as_plugin_file(Cells(monkeypatch)(code)).path
    monkeypatch.setattr(by_value, "_KEPT", {})
    import torch

    assert by_value.given(str(path)).setup.__globals__["torch"] is torch


def test_a_cached_function_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import functools\n@functools.lru_cache(maxsize=7)\ndef k(): return 3\nclass Mine(cgl.Method):\n    def loss(self, b): return k()\n"
    )
    path = as_plugin_file(Cells(monkeypatch)(code)).path
    script = (
        "import sys, cloudpickle as c; k = c.load(open(sys.argv[1], 'rb'))[0].loss.__globals__['k']; print(k(), k.cache_info().maxsize)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path.with_suffix(".pkl"))], capture_output=True, text=True, check=False)
    assert done.stdout == "3 7\n", done.stderr


@pytest.mark.parametrize(("name", "called"), [("_Mine", "mine"), ("MyBest_", "my-best")])
def test_a_name_with_underlines_at_its_ends_is_named_without(name: str, called: str) -> None:
    assert spec_of(type(name, (cgl.Method,), {}), "a:b").name == called


def test_no_warning_where_nothing_was_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Setters have the name of their property, registries are filled by code, and a constant may be bound twice."""
    text = """
import cglsuite as cgl
REGISTRY, SCALE = {}, 1.0
LIMIT = 1
if True:
    LIMIT = 2
def registered(f):
    REGISTRY[f.__name__] = f
    return f
class Mine(cgl.Method):
    @property
    def k(self): return 1
    @k.setter
    def k(self, value): pass
    @registered
    def other(self): return SCALE
"""
    (tmp_path / "quiet_module.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    as_plugin_file(__import__("quiet_module").Mine)
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("code", "where"),
    [
        (
            "import threading\nLOCK = threading.Lock()\nclass Mine(cgl.Method):\n    def loss(self, b): return LOCK",
            "Mine.loss reads the global LOCK",
        ),
        (
            "OPEN = [(i for i in 'ab')]\ndef deep(): return OPEN\nclass Mine(cgl.Method):\n  @property\n  def x(self): return deep()",
            "Mine.x reads the global deep reads the global OPEN, a builtins.list",
        ),
        ("class Mine(cgl.Method):\n    kept = (i for i in range(3))", "Mine.kept, a builtins.generator"),
    ],
)
def test_what_cannot_travel_is_named(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: str, where: str) -> None:
    """By class, method and global; and that nothing can be reused is said."""
    with pytest.raises(
        UsageError, match=rf"^method Mine cannot be sent to a worker process: {re.escape(where)}.*, which cannot be pickled"
    ):
        as_plugin_file(Cells(monkeypatch)(code))
    assert "so this class gets a new key in every run, and no result is reused" in caplog.text


@pytest.mark.parametrize("given", [int, 3, "bare", Bare.loss])
def test_what_is_no_method(given: Any) -> None:
    with pytest.raises(UsageError, match="expected the name of a method, or a class derived from cglsuite.Method"):
        as_plugin_file(given)


def test_a_class_inside_a_function_cannot_be_found_again() -> None:
    class Local(cgl.Method):
        pass

    with pytest.raises(UsageError, match=r"^test_a_class_inside.*<locals>\.Local is defined inside a function: define the class at"):
        as_plugin_file(Local)


MODULE = """# x
import dataclasses, functools
import cglsuite as cgl

ALPHA = 1.0

def scale(x, by=1.0): return x * by

@functools.cache
def cached(): return 1.0

@dataclasses.dataclass
class Config:
    rate: float = 1.0
    used: int = 0
    def twice(self): return self.rate * 2

class Mine(cgl.Method):
    factor = 1.0
    @property
    def half(self): return 0.5
    def loss(self, batch):
        Config.used += 1
        return super().loss(batch) * ALPHA
"""


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (("# x\n", ""), None),
        (("ALPHA = 1.0", "ALPHA = 2.0"), "ALPHA"),
        (("* ALPHA", "/ ALPHA"), "Mine.loss"),
        (("def loss", "def loss_of"), "Mine.loss"),
        (("x * by", "x / by"), "scale"),
        (("by=1.0", "by=2.0"), "scale"),
        (("rate: float = 1.0", "rate: float = 2.0"), "Config.rate"),
        (("rate * 2", "rate * 3"), "Config.twice"),
        (("factor = 1.0", "factor = 2.0"), "Mine.factor"),
        (("return 0.5", "return 0.25"), "Mine.half"),
    ],
)
def test_a_module_that_was_edited_but_not_loaded_again_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: tuple[str, str], named: str | None
) -> None:
    """The file is what is trained: its digest is in the key, whatever is in memory."""
    path = tmp_path / f"edited_{os.getpid()}_{next(_EDITED)}.py"
    path.write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    method = __import__(path.stem).Mine
    before = as_plugin_file(method)
    sys.modules[path.stem].Config.used = 3
    assert unsent_changes(before.modules) == []
    path.write_text(MODULE.replace(*edit))
    after = as_plugin_file(method)
    assert bool(after.news) is (named is not None)
    assert unsent_changes(after.modules) == ([] if named is None else [f"{path.stem}.{named}"])
    assert after.path == before.path  # the key holds the module itself


_EDITED = itertools.count()


def test_what_a_module_had_before_it_was_loaded_again_stands_for_what_it_has_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The suite itself loads edited modules again, so a second run would train the old class."""
    path = tmp_path / f"edited_{os.getpid()}_{next(_EDITED)}.py"
    path.write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = __import__(path.stem)
    former, scale, cached = module.Mine, module.scale, module.cached
    before = as_plugin_file(former)
    assert caplog.text == ""
    path.write_text(MODULE.replace("* ALPHA", "* ALPHA * 3").replace("x * by", "x / by"))
    importlib.reload(module)
    again = as_plugin_file(former)
    assert again.path == before.path == as_plugin_file(module.Mine).path
    assert caplog.text.count("has been reloaded since this class was imported") == 1
    assert [cloudpickle.loads(_dumped(one)) for one in (former, scale)] == [module.Mine, module.scale]
    assert hashed(scale).modules == (f"{path.stem}:scale",)
    assert not is_importable(cached.__wrapped__)  # the module has another object under this name
