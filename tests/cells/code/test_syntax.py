"""What of a source text counts: edits that look neutral and are not, beside their neutral likes."""

from __future__ import annotations

import pytest

from cglsuite.cells.code.syntax import cut, parse

LOG = "import logging\nlogger = logging.getLogger(__name__)\n"


def content(text: str) -> str:
    return parse(text.encode(), "house").content


NEUTRAL = {
    "a docstring": ("def f():\n    return 1", "def f():\n    'Says.'\n    return 1"),
    "pass beside code": ("class A:\n    x = 1", "class A:\n    x = 1\n    pass"),
    "a message": ("raise ValueError('a')", "raise ValueError('b')"),
    "what a message shows": ("raise ValueError(f'{x.shape}')", "raise ValueError(f'found {len(x)} of {list(y)}')"),
    "a message put together": ("raise ValueError('a' + f'{b}')", "raise ValueError('c' + f'{d}')"),
    "an assertion's message": ("assert x, 'a'", "assert x, 'b'"),
    "a warning": ("import warnings\nwarnings.warn('a', UserWarning)", "import warnings\nwarnings.warn('b', UserWarning)"),
    "a logged text": (LOG + "logger.info('a %s', b)", LOG + "logger.info('b %s', b)"),
    "the name of a logger": (LOG, LOG.replace("__name__", "'x'")),
    "an annotated variable": ("x: int = 1", "x = 1"),
    "an annotated local": ("def f():\n    x = 1", "def f():\n    x: int = 1"),
    "an annotated local, assigned later": ("def f():\n    x = 1", "def f():\n    x: int\n    x = 1"),
    "an annotated attribute": ("def f(self):\n    self.x = 1", "def f(self):\n    self.x: int = 1"),
    "all parameters": ("def f(a, *b, c=1, **d): ...", "def f(a: int, *b: int, c: int = 1, **d: int) -> int: ..."),
    "a display": ("class A:\n    x = 1", "class A:\n    x = 1\n    def _repr_html_(self):\n        return 'a'"),
    "an import for a type checker": ("x = 1", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import y\nx = 1"),
    "where our names come from": ("from cglsuite.a import f\nf()", "from cglsuite.b import f\nf()"),
    "an exported list": ("x = 1", "__all__ = ['x']\nx = 1"),
}
COUNTED = {
    "a docstring that is read": ("def f():\n    'a'\nprint(f.__doc__)", "def f():\n    'b'\nprint(f.__doc__)"),
    "the kind of error": ("raise ValueError('a')", "raise TypeError('a')"),
    "a call within a message": ("raise ValueError(f'{x}')", "raise ValueError(f'{change(x)}')"),
    "an error's other arguments": ("raise ValueError('a', 1)", "raise ValueError('a', 2)"),
    "the category of a warning": ("import warnings\nwarnings.warn('a', UserWarning)", "import warnings\nwarnings.warn('a', FutureWarning)"),
    "a text for something that only looks like a logger": ("logger = Writer()\nlogger.info('a')", "logger = Writer()\nlogger.info('b')"),
    "a name made local": ("def f():\n    return x", "def f():\n    x: int\n    return x"),
    "a field's annotation": ("class A:\n    x: int", "class A:\n    x: float"),
    "a field's name": ("class A:\n    x: int", "class A:\n    y: int"),
    "the order of fields": ("class A:\n    x: int\n    y: int", "class A:\n    y: int\n    x: int"),
    "a field's default": ("class A:\n    x: int = 1", "class A:\n    x: int = 2"),
    "True for 1": ("x = 1", "x = True"),
    "1.0 for 1": ("x = 1", "x = 1.0"),
    "minus zero": ("x = 0.0", "x = -0.0"),
    "the other branch of a type checker's": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import y\nelse:\n    x = 1",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import y\nelse:\n    x = 2",
    ),
    "a name under another name": ("from cglsuite.a import f\nf()", "from cglsuite.a import f as g\ng()"),
    "another library's function": ("from torch import add as f\nf()", "from torch import sub as f\nf()"),
    "a decorator": ("def f(): ...", "@torch.no_grad()\ndef f(): ..."),
    "a default": ("def f(a=1): ...", "def f(a=2): ..."),
    "__str__": ("class A:\n    x = 1", "class A:\n    x = 1\n    def __str__(self):\n        return 'a'"),
    "an import that nobody uses, of who knows what": ("x = 1", "import someone.patches\nx = 1"),
}


@pytest.mark.parametrize("case", NEUTRAL)
def test_neutral(case: str) -> None:
    before, after = NEUTRAL[case]
    assert content(before) == content(after)


@pytest.mark.parametrize("case", COUNTED)
def test_counted(case: str) -> None:
    before, after = COUNTED[case]
    assert content(before) != content(after)


def test_a_cut_holds_what_its_definition_reaches_and_nothing_else() -> None:
    text = "import math\nUNIT = 2\ndef scale(x):\n    return UNIT * x\ndef use(x):\n    return scale(math.pi)\ndef other():\n    return 1\n"
    before = cut(text.encode(), "house", "use").content
    assert cut(text.replace("return 1", "return 2").encode(), "house", "use").content == before
    assert cut(text.replace("UNIT = 2", "UNIT = 3").encode(), "house", "use").content != before
    assert cut(text.replace("import math", "import cmath as math").encode(), "house", "use").content != before
    assert cut(text.encode(), "house", "absent").content != before


def test_a_cut_is_linked_to_what_it_uses_of_an_import() -> None:
    """One statement imports three names; the definition reads one of them, through another definition."""
    text = "from someone.tools import a, b as c, d\ndef own():\n    return c\ndef use():\n    return own()\ndef other():\n    return a\n"
    assert [(i.bound, i.name) for i in cut(text.encode(), "house", "use").linked] == [("c", "b")]
    assert [(i.bound, i.name) for i in cut(text.encode(), "house", "other").linked] == [("a", "a")]
    before = cut(b"from math import pi, e\ndef use():\n    return pi\n", "house", "use").content
    assert cut(b"from math import pi, tau\ndef use():\n    return pi\n", "house", "use").content == before
    assert cut(b"from math import tau as pi, e\ndef use():\n    return pi\n", "house", "use").content != before


@pytest.mark.parametrize("read", [*("__name__", "__file__", "__package__", "__spec__", "__path__"), "A.__module__", "part.__file__"])
def test_what_reads_its_own_name_depends_on_its_place(read: str) -> None:
    """Wherever it reads it; to mention it in a text is not to read it."""
    place = f"import part\nclass A:\n    pass\ndef f(x):\n    return g(x, {read})\n"
    assert parse(place.encode(), "house").own_name
    assert not parse(place.replace(read, repr(read)).encode(), "house").own_name


def test_a_package_that_offers_names_lazily_is_a_facade() -> None:
    lazily = "__getattr__, __dir__ = lazily(__name__, __file__)\n"
    assert parse(f"from cglsuite.base.lazily import lazily\n{lazily}".encode(), "house").facade
    assert not parse(f"from cglsuite.base.lazily import lazily\n{lazily}one = compute()\n".encode(), "house").facade
    assert not parse(b"one = lazily()\n", "house").facade
