"""The neutral tree of a module line by line, and every fact of a module's source, over one text with each construct in it."""

from __future__ import annotations

import ast

import pytest

from cglsuite.cells.code.syntax import cut, imports_by_name, named, normalised, parse, walk

WRITTEN = '''
"""Doc."""
from __future__ import annotations
import logging, warnings
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import a
if typing.TYPE_CHECKING:
    import b
else:
    c = 1
    "text"
__all__ = ["f"]
__all__: list[str] = []
log = logging.getLogger("name")
x.__all__ = [1]
other, log2 = 1, 2
value: int = 3
bare: int
x[0]: int = 4
@decorated("a")
def f(a: int, /, b: str = "b", *args: int, c: float = 1.0, **kw: int) -> int:
    """Doc."""
    local: int
    kept: int
    kept = 1
    late: int = 2
    self.x: int
    self.y: int = 5
    def inner():
        nested: int
        nested = 2
    pass
    ...
    1
    log.info("words %s", a, extra="more")
    log.write("words")
    logging.warning("words" % (a, b))
    print("words")
    warnings.warn("words", stacklevel=2)
    warnings.warn(message="words")
    warnings.warn()
    raise ValueError("words", f"{a} {change(b)}", key="w")
    raise ValueError
    raise make("words")("kept") from error
    assert a, "words"
    assert a
    assert a, f"{a.b[1:2]} {len(a)} {'x'.join(a)} {pop(a)}"
    raise E("a" + "b" + name)
    raise E("a %s" % change(b))
    raise E("a" if b else "c")
    raise E(1, b"x", "a" * 2)
    raise E(f"{a!r:>{width}} {-a + b} {a and b} {[i for i in a]} {(lambda: 1)} {(yield)} {a if b else c} {a[0]} {not a} {sorted(a)}")
    return Hyperparameter(name="n", doc="d", effect="e", default=1)
async def g(a: int) -> int:
    """Doc."""
class A(B):
    """Doc."""
    x: int
    y: int = 1
    pass
    __all__ = [1]
    __all__: int = 2
    def __repr__(self): return 1
    def _repr_html_(self): return 1
    def _ipython_key_completions_(self): return 1
    def __str__(self): return 1
    def _repr(self): return 1
    async def __repr__(self): return 2
    class Inner:
        z: int
def __repr__(): return 3
with_doc = spec.Hyperparameter(doc="kept")
'''
NEUTRAL = """
from __future__ import annotations
import logging, warnings
from typing import TYPE_CHECKING
c = 1
log = logging.getLogger()
other, log2 = (1, 2)
value = 3
x[0] = 4

@decorated('a')
def f(a, /, b='b', *args, c=1.0, **kw):
    local: None
    kept = 1
    late = 2
    self.y = 5

    def inner():
        nested = 2
    log.info('', a, extra='')
    log.write('words')
    logging.warning('' % (a, b))
    print('words')
    warnings.warn('', stacklevel=2)
    warnings.warn(message='words')
    warnings.warn()
    raise ValueError('', (change(b),), key='')
    raise ValueError
    raise make('words')('') from error
    assert a, ''
    assert a
    assert a, (pop(a),)
    raise E('' + name)
    raise E('' % change(b))
    raise E('' if b else '')
    raise E(1, b'x', 'a' * 2)
    raise E((lambda: 1, (yield)))
    return Hyperparameter(name='n', default=1)

async def g(a):

class A(B):
    x: int
    y: int = 1
    __all__ = [1]
    __all__: int = 2

    def __str__(self):
        return 1

    def _repr(self):
        return 1

    class Inner:
        z: int

def __repr__():
    return 3
with_doc = spec.Hyperparameter(doc='kept')
"""
DOCS = {
    "c = 1": "c = 1\n'text'",
    "    local: None\n": '    """Doc."""\n    local: None\n',
    "async def g(a):": 'async def g(a):\n    """Doc."""',
    "class A(B):": 'class A(B):\n    """Doc."""',
}


def test_the_neutral_tree() -> None:
    """Left out: words, annotations, displays and what runs for type checkers only; all else stays in its place."""
    assert ast.unparse(normalised(ast.parse(WRITTEN), keeps_docs=False)) == NEUTRAL.strip()


def test_a_program_that_reads_its_docstrings_keeps_them() -> None:
    expected = '"""Doc."""' + NEUTRAL
    for before, after in DOCS.items():
        assert expected.count(before) == 1
        expected = expected.replace(before, after)
    assert ast.unparse(normalised(ast.parse(WRITTEN), keeps_docs=True)) == expected.strip()


def test_a_walk_meets_what_pythons_own_does_but_for_contexts_and_operators() -> None:
    tree = ast.parse(WRITTEN)
    left_out = (ast.expr_context, ast.operator, ast.cmpop, ast.unaryop, ast.boolop)
    assert {id(node) for node in walk(tree)} == {id(node) for node in ast.walk(tree) if not isinstance(node, left_out)}


@pytest.mark.parametrize(("text", "name"), [("a", "a"), ("a.b.c", "c"), ("a()", None), ("a[0]", None), ("1", None), ("a().b", "b")])
def test_the_last_part_of_a_name(text: str, name: str | None) -> None:
    assert named(ast.parse(text, mode="eval").body) == name


MODULE = """
from __future__ import annotations
import math, numpy as np, torch.nn as nn, os.path
import someone.tools, someone.more as more
import cglsuite.graphs, cglsuite.base.hashing as hashing
from typing import TYPE_CHECKING, Any
from cglsuite.specs import Seeds, Value as V, Idle
from . import sibling
from .near import one, two as deux
from ..far import three
from torch import Tensor, add
from other import *
if TYPE_CHECKING:
    from typed.only import T
    import cglsuite.typed as typed
__all__ = ["use", "A"]
LIMIT = 3
LIMIT2: int = 4
TWICE = 1
TWICE = 2
a, b = 1, 2
for i in range(3):
    pass
class A:
    x: Seeds
    y: V = hashing.digest("z")
def use(x: Tensor) -> Any:
    import inner.one
    from importlib import import_module
    import_module("named.one")
    __import__("named.two")
    return more, someone, np, one, "deux", nn.Linear, LIMIT
"""
LINKED = [
    ("*", "named.one", ""),
    ("*", "named.two", ""),
    ("*", "other", "*"),
    ("deux", "house.room.near", "two"),
    ("hashing", "cglsuite.base.hashing", ""),
    ("inner.one", "inner.one", ""),
    ("more", "someone.more", ""),
    ("one", "house.room.near", "one"),
    ("sibling", "house.room", "sibling"),
    ("someone.tools", "someone.tools", ""),
    ("three", "house.far", "three"),
]
ONLY_TYPED = [("T", "typed.only", "T"), ("typed", "cglsuite.typed", "")]
INERT = [
    ("import_module", "importlib", "import_module"),
    ("Tensor", "torch", "Tensor"),
    ("add", "torch", "add"),
    ("Seeds", "cglsuite.specs", "Seeds"),
    ("V", "cglsuite.specs", "Value"),
    ("Idle", "cglsuite.specs", "Idle"),
    ("TYPE_CHECKING", "typing", "TYPE_CHECKING"),
    ("Any", "typing", "Any"),
    ("cglsuite.graphs", "cglsuite.graphs", ""),
    ("math", "math", ""),
    ("np", "numpy", ""),
    ("nn", "torch.nn", ""),
    ("os.path", "os.path", ""),
]


def test_the_facts_of_a_module() -> None:
    """What it links to, what it offers, and what it is."""
    found = parse(MODULE.encode(), "house.room")
    assert [(i.bound, i.module, i.name) for i in found.linked] == LINKED
    assert sorted((i.bound, i.module, i.name) for i in found.exports) == sorted([*LINKED, *ONLY_TYPED, *INERT])
    assert (found.facade, found.effects, found.own_name) == (False, True, False)
    assert found.listed == ("use", "A")
    assert found.constants == {"LIMIT", "LIMIT2", "a", "b"}
    # Where annotations are read at once, names in those of fields count.
    at_once = parse(MODULE.replace("from __future__ import annotations", "").encode(), "house.room")
    assert {i.bound for i in at_once.linked} - {i.bound for i in found.linked} == {"Seeds", "V"}


@pytest.mark.parametrize(
    ("name", "linked"),
    [
        ("use", ["deux", "more", "one", "someone.tools"]),
        ("A", ["Seeds", "V", "hashing"]),
        ("LIMIT", []),
        ("TWICE", []),
        ("absent", ["*", "Idle", "Seeds", "V", "cglsuite.graphs", "deux", "hashing", "more", "one", "sibling", "someone.tools", "three"]),
    ],
)
def test_what_a_cut_links_to(name: str, linked: list[str]) -> None:
    """A name that is not there is the whole module."""
    assert [i.bound for i in cut(MODULE.encode(), "house.room", name).linked] == linked


def test_every_assignment_of_a_name_counts_in_its_cut() -> None:
    text = "TWICE = 1\nTWICE = 2\ndef use():\n    return TWICE\n"
    before = cut(text.encode(), "h", "use").content
    for edit in (("TWICE = 1", "TWICE = 3"), ("TWICE = 2", "TWICE = 3"), ("return TWICE", "return -TWICE")):
        assert cut(text.replace(*edit).encode(), "h", "use").content != before
    assert cut((text + "OTHER = 1\n").encode(), "h", "use").content == before
    assert (
        cut(b"import math as m\ndef use(): return m", "h", "use").content
        != cut(b"import cmath as m\ndef use(): return m", "h", "use").content
    )


@pytest.mark.parametrize(("level", "base"), [("", "near"), (".", "house.room.near"), ("..", "house.near"), ("...", "near")])
def test_relative_imports(level: str, base: str) -> None:
    (found,) = parse(f"from {level}near import a\na()".encode(), "house.room").exports
    assert (found.module, found.name, found.bound) == (base, "a", "a")


BY_NAME = """
    import_module(name) | import_module(".b") | import_module() | exec("a") | eval(x) | importlib.import_module(x) | runpy.run_path("a")
    spec_from_file_location("a", "b") | resolve_name("a") | __import__(x) | find_loader(x) | load_module(x) | run_module(x)
"""
NOT_BY_NAME = 'import_module("a.b") | __import__("a") | model.eval() | m.exec(x) | "import_module(x)" | import_module | f(import_module)'


@pytest.mark.parametrize(("texts", "so"), [(BY_NAME.replace("\n", "|"), True), (NOT_BY_NAME, False)])
def test_imports_by_a_name_that_only_the_run_knows(texts: str, so: bool) -> None:
    for text in filter(None, map(str.strip, texts.split("|"))):
        assert any(map(imports_by_name, ast.walk(ast.parse(text)))) is so, text


@pytest.mark.parametrize(
    ("text", "facade", "effects"),
    [
        ("", True, False),
        ("import a", True, False),
        ("x = 1", False, False),
        ("_x = 1", True, False),
        ("_x: int = 1", True, False),
        ("_x, y = 1, 2", False, True),
        ("_x = f()", False, False),
        ("x = y = f()", False, False),
        ('__all__ = ["a"]', True, False),
        ("def __getattr__(n): ...", True, False),
        ("async def __dir__(): ...", False, False),
        ("def f(): ...", False, False),
        ("__getattr__ = lazily()", True, False),
        ("__getattr__, other = lazily()", False, True),
        ("if x:\n  import a", False, False),
        ("x.y = f()", False, True),
        ("x[0] = f()", False, True),
        ("x += 1", False, True),
        ("f()", False, True),
        ("@dataclass(frozen=True)\nclass A: ...", False, False),
        ("@functools.cache\ndef f(): ...", False, False),
        ("@no_grad()\nasync def f(): ...", False, False),
        ("@register\nclass A: ...", False, True),
        ("@cache\n@x.setter\ndef f(): ...", False, True),
        ("try:\n  import a\nexcept E:\n  a = None", False, False),
        ("try:\n  f()\nexcept E:\n  a = None", False, True),
        ("try:\n  import a\nexcept E:\n  f()", False, True),
        ("try:\n  import a\nfinally:\n  f()", False, True),
        ("try:\n  import a\nexcept E:\n  a = 1\nelse:\n  f()", False, True),
        ("if x:\n  a = 1", False, False),
        ("if x:\n  f()", False, True),
        ("if x:\n  a = 1\nelse:\n  f()", False, True),
        ("for i in x:\n  a = 1", False, True),
        ("with a:\n  b = 1", False, True),
        ("del x", False, True),
    ],
)
def test_what_kind_of_module(text: str, facade: bool, effects: bool) -> None:
    """One that only offers what others define; one whose import does more than define names."""
    found = parse(text.encode(), "h")
    assert (found.facade, found.effects) == (facade, effects)


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ('__all__ = ("a", "b")', ("a", "b")),
        ("__all__ = []", ()),
        ("__all__ = x", None),
        ('__all__ += ["a"]', None),
        ('__all__ = ["a"] + ["b"]', None),
        ('x = __all__ = ["a"]', None),
        ("x = 1", None),
    ],
)
def test_what_a_module_lists(text: str, listed: tuple[str, ...] | None) -> None:
    assert parse(text.encode(), "h").listed == listed
