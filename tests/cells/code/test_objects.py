"""Digests of classes in memory: what counts is what runs, and nothing else. Edits are made to the text of a script and executed anew."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from cglsuite.cells.code.objects import Hashed, hashed, is_importable

SCRIPT = '''
import abc, collections, dataclasses, enum, functools, math, typing
import numpy as np, torch
import cglsuite as cgl

LIMIT, FAR, NAMES, TABLE = 3, float("inf"), {"b", "a", "c"}, {"b": [1, (2,)], "a": None}
WEIGHTS, HALF, GROWN = np.array([1.0, 2.0]), torch.tensor([0.5]), torch.nn.Parameter(torch.tensor([0.25]))
Point = collections.namedtuple("Point", "x y")
HERE = Point(1, 2)

@dataclasses.dataclass
class Config:
    rate: float = 0.5
    def twice(self): return self.rate * 2
CONFIG = Config()

class Mode(enum.Enum):
    FAST = 1

def helper(value, power=2, *, root=False):
    """Twice."""
    return inner(value) ** power * LIMIT

def inner(value):
    return math.sqrt(value)

def unused(value): return value

@functools.lru_cache(maxsize=8)
def remembered(value): return value + 1

def twice(function):
    @functools.wraps(function)
    def wrapped(*given): return function(*given) * 2
    return wrapped

@functools.singledispatch
def shown(value): return 1
@shown.register
def _(value: int): return 2

class Base(abc.ABC):
    shared = [1, 2]
    def before(self): return TABLE["a"]

class Mine(Base, cgl.Method):
    """Does nothing new."""
    rate: float = 1.0
    _rate = 1
    loop = functools.partial(helper, power=3)

    def loss(self, batch, alpha=LIMIT):
        data = self.data if hasattr(self, "data") else 0
        return helper(alpha) + CONFIG.twice() + len(NAMES) + shown(1) + remembered(2) + HERE.x + (alpha in {1, 2, 3})

    @property
    def half(self): return HALF + GROWN
    @classmethod
    def weights(cls): return [w * WEIGHTS for w in (1, 2)]
    @staticmethod
    def far(): return FAR if Mode.FAST else None
    @functools.cached_property
    def kept(self): return (lambda x: x + LIMIT)(1)
    @twice
    def decorated(self): return 1
'''


def made(*swaps: tuple[str, str], after: str = "", name: str = "Mine") -> Hashed:
    """The digests of the class after some edits of the script, which is executed as ``__main__`` is."""
    text = SCRIPT
    for old, new in swaps:
        assert old in text, old
        text = text.replace(old, new, 1)
    module = ModuleType("__main__")
    before, sys.modules["__main__"] = sys.modules["__main__"], module
    try:
        exec(compile(text + after, "<cell>", "exec", dont_inherit=True), module.__dict__)
        return hashed(getattr(module, name))
    finally:
        sys.modules["__main__"] = before


PLAIN = made()


def test_the_same_script_has_one_digest_and_a_part_for_every_global() -> None:
    assert made() == PLAIN
    assert PLAIN.unstable == ()
    named = {"Base", "CONFIG", "Config", "FAR", "GROWN", "HALF", "HERE", "LIMIT", "Mine", "Mode", "NAMES", "Point", "TABLE", "WEIGHTS"}
    functions = {"_", "helper", "inner", "remembered", "shown"}
    assert {name for name in PLAIN.parts if "." not in name} == named | functions
    assert {"cglsuite.learning.method:Method", "math"} <= set(PLAIN.modules)


FREE = {
    "a comment": ("return value + 1", "return value + 1  # one more"),
    "layout": ("def inner(value):\n    return", "\n\ndef inner(\n    value,\n):\n\n    return"),
    "what is not used": ("def unused(value): return value", "def unused(value): return -value"),
    "a global of an attribute's name": ("Point = ", "data = 5\nPoint = "),
    "another order of a set": ('{"b", "a", "c"}', '{"c", "b", "a"}'),
    "another order of definitions": ('LIMIT, FAR, NAMES, TABLE = 3, float("inf"), ', 'FAR, LIMIT, NAMES, TABLE = float("inf"), 3, '),
}


@pytest.mark.parametrize("edit", FREE)
def test_what_is_free(edit: str) -> None:
    assert made(FREE[edit]).digest == PLAIN.digest


COUNTS = {
    "a number": ("* LIMIT", "+ LIMIT", "helper"),
    "a number's type": ("value + 1", "value + 1.0", "remembered"),
    "a sign of zero": ("else 0\n", "else -0.0\n", "Mine"),
    "a default": ("power=2", "power=3", "helper"),
    "a keyword's default": ("root=False", "root=True", "helper"),
    "a default that is a global": ("alpha=LIMIT", "alpha=4", "Mine"),
    "a docstring": ("Twice.", "Once.", "helper"),
    "a class's docstring": ("Does nothing new.", "Does something.", "Mine"),
    "an annotation": ("rate: float = 1.0", "rate: int = 1.0", "Mine"),
    "an attribute": ("_rate = 1", "_rate = 2", "Mine"),
    "an attribute of a base": ("[1, 2]", "[1, 3]", "Base"),
    "a function of a base": ('TABLE["a"]', 'TABLE["b"]', "Base"),
    "the bases": ("class Mine(Base, cgl.Method)", "class Mine(cgl.Method, Base)", "Mine"),
    "a metaclass": ("class Base(abc.ABC)", "class Base", "Base"),
    "a property": ("HALF + GROWN", "HALF - GROWN", "Mine"),
    "a class method": ("w * WEIGHTS", "w + WEIGHTS", "Mine"),
    "a static method": ("FAR if", "-FAR if", "Mine"),
    "a cached property": ("x + LIMIT", "x - LIMIT", "Mine"),
    "a decorator": ("* 2\n    return wrapped", "* 3\n    return wrapped", "Mine"),
    "a decorated function": ("def decorated(self): return 1", "def decorated(self): return 2", "Mine"),
    "a partial": ("power=3)", "power=4)", "Mine"),
    "a cached function": ("value + 1", "value + 2", "remembered"),
    "a registered function": ("(value: int): return 2", "(value: int): return 3", "_"),
    "a member of a set": ("{1, 2, 3})", "{1, 2, 4})", "Mine"),
    "a function's function": ("math.sqrt(value)", "math.sqrt(value) * 2", "inner"),
    "a module's attribute": ("math.sqrt", "math.log", "inner"),
    "a global number": ("= 3, float", "= 4, float", "LIMIT"),
    "a global's type": ("= 3, float", "= 3.0, float", "LIMIT"),
    "infinity": ('float("inf")', 'float("-inf")', "FAR"),
    "not a number": ('float("inf")', 'float("nan")', "FAR"),
    "a set": ('{"b", "a", "c"}', '{"b", "a"}', "NAMES"),
    "a nested value": ("(2,)", "(3,)", "TABLE"),
    "the order of a mapping": ('{"b": [1, (2,)], "a": None}', '{"a": None, "b": [1, (2,)]}', "TABLE"),
    "an array's value": ("[1.0, 2.0]", "[1.0, 3.0]", "WEIGHTS"),
    "an array's shape": ("[1.0, 2.0]", "[[1.0, 2.0]]", "WEIGHTS"),
    "an array's type": ("[1.0, 2.0]", "[1, 2]", "WEIGHTS"),
    "a tensor": ("torch.tensor([0.5])", "torch.tensor([0.75])", "HALF"),
    "a tensor's type": ("torch.tensor([0.5])", "torch.tensor([0.5], dtype=torch.float64)", "HALF"),
    "a parameter": ("[0.25]", "[0.5]", "GROWN"),
    "whether it has a gradient": ("torch.nn.Parameter(torch.tensor([0.25]))", "torch.nn.Parameter(torch.tensor([0.25]), False)", "GROWN"),
    "a field of an instance": ("CONFIG = Config()", "CONFIG = Config(0.75)", "CONFIG"),
    "a method of an instance's class": ("self.rate * 2", "self.rate * 4", "Config"),
    "a field of a namedtuple": ("Point(1, 2)", "Point(1, 3)", "HERE"),
    "a member of an enumeration": ("FAST = 1", "FAST = 2", "Mode"),
}


@pytest.mark.parametrize("edit", COUNTS)
def test_what_counts_and_what_is_told_of_it(edit: str) -> None:
    """Another digest, by the part that was edited."""
    old, new, part = COUNTS[edit]
    found = made((old, new))
    assert found.digest != PLAIN.digest
    assert found.parts[part] != PLAIN.parts[part], {n for n in found.parts if found.parts[n] != PLAIN.parts.get(n)}
    assert found.unstable == ()


@pytest.mark.parametrize(
    "after",
    [
        *("Mine.loss = lambda self, batch: 0", "Mine.extra = 1", "helper.note = 1", "CONFIG.rate = 3", "HALF.mul_(2)"),
        *("TABLE['b'].append(1)", "remembered.note = 1", "Base.register(int)"),
    ],
)
def test_what_is_set_later_counts(after: str) -> None:
    assert made(after=after).digest != PLAIN.digest


def test_state_that_use_leaves_behind_is_free() -> None:
    """Caches of functions and of ABCs are no part of a class."""
    assert made(after="remembered(1); isinstance(3, Base); shown(1); shown('a')\n").digest == PLAIN.digest


@pytest.mark.parametrize("kind", ["property", "staticmethod", "functools.cached_property"])
def test_a_descriptor_of_an_own_kind_is_not_taken_for_a_plain_one(kind: str) -> None:
    """Its class has methods of its own."""
    own = f"class Own({kind}):\n    def __get__(self, *given): return %d\nMine.own = Own(inner)"
    first, second = made(after=own % 1), made(after=own % 2)
    assert first.digest != second.digest


def test_another_class_of_the_same_name_is_not_taken_for_the_global() -> None:
    after = "Former = Mine\nclass Mine(Base, cgl.Method):\n    def loss(self, batch): return Former, Mine\n"
    found = made(after=after)
    former = made(after=after.replace("Former, Mine", "Mine, Former"), name="Former")
    assert "Former" in found.parts
    assert former.digest != found.digest
    assert "Mine, as given" in former.parts


@pytest.mark.parametrize("value", ["threading.Lock()", "(i for i in range(3))", "sys._getframe()"])
def test_a_value_without_content_is_named_and_new_each_time(value: str) -> None:
    edits = [("LIMIT, FAR", f"import sys, threading\nODD = [{value}]\nLIMIT, FAR"), ("return value + 1", "return value + 1 + len(ODD)")]
    first, second = made(*edits), made(*edits)
    assert first.digest != second.digest
    (one,) = first.unstable
    assert str(one).startswith("Mine, global remembered, global ODD is a ")
    assert one.path == "Mine, global remembered, global ODD"
    assert {name for name in first.parts if first.parts[name] != second.parts[name]} == {"ODD"}


def test_a_sentinel_has_the_content_of_its_type() -> None:
    edits = [("LIMIT, FAR", "ODD = object()\nLIMIT, FAR"), ("return value + 1", "return ODD")]
    assert made(*edits) == made(*edits)
    assert made(*edits).unstable == ()


def test_values_that_lead_to_themselves_end() -> None:
    loops = "RING = []\nRING.append(RING)\nclass Node:\n    def __init__(self): self.near = {self}\nNODE = Node()\n"
    edits = [("LIMIT, FAR", f"{loops}LIMIT, FAR"), ("return value + 1", "return RING, NODE, remembered")]
    assert made(*edits) == made(*edits)


def test_deep_values_end() -> None:
    edits = [("LIMIT, FAR", "DEEP = []\nfor _ in range(10**5): DEEP = [DEEP]\nLIMIT, FAR"), ("return value + 1", "return DEEP")]
    assert "global DEEP" in str(made(*edits).unstable[0])


def test_a_tensor_is_read_once_per_run(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from cglsuite.cells.code import objects

    read: list[Any] = []
    original = objects._tensor_digest
    monkeypatch.setattr(objects, "_tensor_digest", lambda tensor: read.append(tensor) or original(tensor))
    monkeypatch.setitem(globals(), "SHARED", torch.ones(3))
    memory: dict[Any, str] = {}
    first = hashed(uses_shared, memory)
    assert hashed(also_uses_shared, memory).parts["SHARED"] == first.parts["SHARED"]
    assert len(read) == 1
    SHARED.add_(1)
    assert hashed(uses_shared, memory).parts["SHARED"] != first.parts["SHARED"]
    assert len(read) == 2


SHARED: Any = None


def uses_shared() -> Any:
    return SHARED


def also_uses_shared() -> Any:
    return SHARED + 1


uses_shared.__module__ = also_uses_shared.__module__ = "__main__"


def test_what_another_process_finds_by_name() -> None:
    import json

    assert is_importable(json.JSONDecoder.decode)
    assert not is_importable(lambda: 1)
    assert not is_importable(uses_shared)


# --- what a reader found that tried to break it --------------------------------------------------------------------------------------


def of_cell(text: str) -> Hashed:
    """The digest of the class ``Mine`` of a cell of its own."""
    module = ModuleType("__main__")
    before, sys.modules["__main__"] = sys.modules["__main__"], module
    try:
        exec(compile(text, "<cell>", "exec", dont_inherit=True), module.__dict__)
        return hashed(module.Mine)
    finally:
        sys.modules["__main__"] = before


UNLIKE = {
    "a module made by hand": "import types\nconf = types.ModuleType('conf_')\nconf.K = {K}\nclass Mine:\n    def f(self): return conf.K",
    "two namespaces of one name": """
ns1, ns2 = {{}}, {{}}
exec("SCALE = 1.0\\ndef one(x): return x * SCALE", ns1)
exec("SCALE = {K}\\ndef two(x): return x * SCALE", ns2)
one, two = ns1["one"], ns2["two"]
class Mine:
    def f(self): return one(two(1))""",
    "a member of an enumeration with attributes": """
import enum
class Mode(enum.Enum):
    A = (1, {K})
    def __new__(cls, v, k):
        o = object.__new__(cls)
        o._value_, o.k = v, k
        return o
class Mine:
    def f(self): return Mode.A.k""",
    "what a mask covers": "import numpy as np\nX = np.ma.array([{K}], mask=[True])\nclass Mine:\n    def f(self): return X.data",
    "a long number": "N = (1 << 20000) + {K}\nclass Mine:\n    def f(self): return N",
    "a conjugated tensor": "import torch\nN = torch.tensor([1j * {K}]).conj()\nclass Mine:\n    def f(self): return N",
}


@pytest.mark.parametrize("what", UNLIKE)
def test_it_counts(what: str) -> None:
    first, again, other = (of_cell(UNLIKE[what].format(K=value)) for value in (1, 1, 50))
    assert first == again
    assert first.unstable == ()
    assert other.digest != first.digest


def test_the_docstring_that_dataclass_writes_is_free() -> None:
    """It has the addresses of functions."""
    text = "import dataclasses\ndef act(x): return x\n@dataclasses.dataclass\nclass Mine:\n    act: object = act\n"
    assert of_cell(text) == of_cell(f"spare = [object() for _ in range(1000)]\n{text}")


def test_a_mapping_that_answers_for_every_name_is_hashed() -> None:
    text = "class Cfg(dict):\n    __getattr__ = dict.__getitem__\nCFG = Cfg(k={K})\nclass Mine:\n    def f(self): return CFG.k"
    assert of_cell(text.format(K=1)).digest != of_cell(text.format(K=2)).digest


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("from json import decoder", "json.decoder"),
        ("import json.scanner", "json.scanner"),
        ("import importlib; importlib.import_module('json.tool')", "json.tool"),
        ("return xml.dom", "xml.dom"),
    ],
)
def test_modules_that_a_method_imports_or_reaches(line: str, module: str) -> None:
    import xml.dom

    assert xml.dom
    assert module in of_cell(f"import xml\nclass Mine:\n    def f(self):\n        {line}\n").modules
