"""User code: which modules it is, what of them counts, and that an edit is seen at once."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import shutil
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from cglsuite.cells.code.sources import closure_digest, closure_facts
from cglsuite.cells.code.user import is_ours, is_user_module, user_code

_NUMBERS = itertools.count()


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a package that no test before had: Python remembers modules by name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return f"own_{os.getpid()}_{next(_NUMBERS)}"


def put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    importlib.invalidate_caches()


METHOD = """import cglsuite as cgl
from .helper import scale
class M(cgl.Method):
    '''Words.'''
    def loss(self, b: int): return scale(b)
"""


def package(folder: Path, top: str, **changed: str) -> None:
    files = {"__init__": "from . import effects\nfrom .method import M\n", "method": METHOD, "helper": "def scale(x): return x * 1.0\n"}
    files |= {"effects": "applied = [1.0]\n", "beside": "x = 1\n"} | changed
    put(folder, {f"{top}/{name}.py": text for name, text in files.items()})


NEUTRAL = {
    "a comment": ("method", METHOD + "# more\n"),
    "layout": ("method", METHOD.replace("return scale(b)", "return scale(\n        b\n    )")),
    "a module that nothing imports": ("beside", "x = 2\n"),
}
COUNTS = {
    "a docstring": ("method", METHOD.replace("Words.", "Other words.")),
    "an annotation": ("method", METHOD.replace("b: int", "b: float")),
    "a number of a helper": ("helper", "def scale(x): return x * 2.0\n"),
    "what __init__ imports for its effects": ("effects", "applied = [2.0]\n"),
    "an import's alias": ("method", METHOD.replace("cglsuite as cgl", "cglsuite as c").replace("cgl.M", "c.M")),
    "__all__": ("helper", "__all__ = ['scale']\ndef scale(x): return x * 1.0\n"),
    "a repr": ("helper", "def scale(x): return x * 1.0\nclass C:\n    def __repr__(self): return '1'\n"),
    "the words of an error": ("helper", "def scale(x):\n    return x * 1.0\n    raise ValueError('no')\n"),
}


@pytest.mark.parametrize("edit", [*NEUTRAL, *COUNTS])
def test_of_user_code_comments_and_layout_are_free_and_all_else_counts(tmp_path: Path, top: str, edit: str) -> None:
    """In one process, without any cache to clear."""
    package(tmp_path, top)
    before = closure_digest(f"{top}.method:M")
    assert closure_digest(f"{top}.method:M") == before
    name, text = (NEUTRAL | COUNTS)[edit]
    package(tmp_path, top, **{name: text})
    assert (closure_digest(f"{top}.method:M") == before) is (edit in NEUTRAL)
    package(tmp_path, top)
    assert closure_digest(f"{top}.method:M") == before


def test_an_edit_of_equal_size_at_an_equal_time_counts(tmp_path: Path, top: str) -> None:
    path = tmp_path / f"{top}.py"
    put(tmp_path, {path.name: "x = 1\n"})
    os.utime(path, ns=(10**18, 10**18))
    before = closure_digest(top)
    path.write_text("x = 2\n")
    os.utime(path, ns=(10**18, 10**18))
    assert closure_digest(top) != before


def test_the_same_sources_have_one_digest_wherever_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, top: str) -> None:
    package(tmp_path / "one", top)
    package(tmp_path / "two" / "deeper", top)
    found = []
    for folder in ("one", "two/deeper"):
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(tmp_path / folder))
            importlib.invalidate_caches()
            found.append(user_code([f"{top}.method:M"]).digest)
    assert found[0] == found[1]


def test_a_module_that_is_added_in_front_of_another_counts(tmp_path: Path, top: str) -> None:
    """A package's submodule that was absent, and one that shadows a name of its ``__init__``."""
    put(tmp_path, {f"{top}/__init__.py": "", f"{top}/m.py": "try:\n    from . import extra\nexcept ImportError:\n    extra = None\n"})
    before = user_code([f"{top}.m"])
    assert f"{top}.extra" not in before.files
    put(tmp_path, {f"{top}/extra.py": "x = 1\n"})
    assert f"{top}.extra" in user_code([f"{top}.m"]).files


def test_a_module_that_appears_in_another_folder_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, top: str) -> None:
    (tmp_path / "later").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "later"))
    put(tmp_path, {f"{top}.py": f"try:\n    import {top}_fast\nexcept ImportError:\n    pass\n"})
    assert list(user_code([top]).files) == [top]
    put(tmp_path, {f"later/{top}_fast.py": "x = 1\n"})
    assert list(user_code([top]).files) == [top, f"{top}_fast"]


def test_imports_are_followed_wherever_they_stand(tmp_path: Path, top: str) -> None:
    text = f"""
def late():
    import {top}.a
    from .b import *
    from . import c as see
    from .d.e import f
    import importlib; importlib.import_module("{top}.g")
    import numpy, json, torch.nn
"""
    names = ["a", "b", "c", "d/__init__", "d/e", "d/f", "g", "unused"]
    put(tmp_path, {f"{top}/__init__.py": "", f"{top}/m.py": text, **{f"{top}/{name}.py": "" for name in names}})
    found = user_code([f"{top}.m:late"])
    assert sorted(found.files) == sorted([top, *(f"{top}.{n}" for n in ("m", "a", "b", "c", "d", "d.e", "g"))])
    assert found.by_name == ()


@pytest.mark.parametrize("call", ["importlib.import_module(name)", "__import__(name)", "pkgutil.resolve_name(name)", "exec(name)"])
def test_what_imports_by_computed_names_brings_its_whole_package(tmp_path: Path, top: str, call: str) -> None:
    put(tmp_path, {f"{top}/__init__.py": "", f"{top}/m.py": f"def f(name): return {call}\n", f"{top}/deep/unused.py": "x = 1\n"})
    found = user_code([f"{top}.m"])
    assert f"{top}.deep.unused" in found.files
    assert closure_facts(f"{top}.m").by_name == (f"{top}.m",)


def test_portions_of_a_namespace_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, top: str) -> None:
    put(tmp_path, {f"one/{top}/a.py": f"from {top}.b import x\n", f"two/{top}/b.py": "x = 1\n"})
    monkeypatch.syspath_prepend(str(tmp_path / "one"))
    monkeypatch.syspath_prepend(str(tmp_path / "two"))
    assert sorted(user_code([f"{top}.a"]).files) == [f"{top}.a", f"{top}.b"]


def test_what_it_uses_of_the_suite_counts_too(tmp_path: Path, top: str) -> None:
    put(tmp_path, {f"{top}.py": "from cglsuite.graphs import NodeData\nfrom cglsuite import Method\nimport cglsuite.learning.loop\n"})
    found = user_code([top])
    assert found.ours == ("cglsuite.graphs:NodeData", "cglsuite.learning.loop", "cglsuite:Method")
    put(tmp_path, {f"{top}.py": "from cglsuite import Method\n"})
    assert user_code([top]).ours == ("cglsuite:Method",)


@pytest.mark.parametrize("where", ["package", "module"])
def test_a_compiled_part_counts_by_its_bytes(tmp_path: Path, top: str, where: str) -> None:
    ending = EXTENSION_SUFFIXES[0]
    files = (
        {f"{top}/__init__.py": f"from {top} import core", f"{top}/core{ending}": "first"}
        if where == "package"
        else {f"{top}{ending}": "first"}
    )
    put(tmp_path, files)
    before = closure_digest(top)
    put(tmp_path, {list(files)[-1]: "second"})
    assert closure_digest(top) != before


def test_bytecode_without_source_counts_by_its_bytes(tmp_path: Path, top: str) -> None:
    put(tmp_path, {f"{top}/__init__.py": "from . import sealed\n", f"{top}/sealed.pyc": "first"})
    before = closure_digest(top)
    put(tmp_path, {f"{top}/sealed.pyc": "second"})
    assert closure_digest(top) != before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(x, *, k=None): return k\n", "def f(x, *, k): return k\n"),
        ("def f(x): return {None: x}\n", "def f(x): return {**x}\n"),
        (f"X = {' + '.join(['1'] * 2000)}\n", f"X = {' + '.join(['1'] * 2001)}\n"),
    ],
)
def test_texts_of_one_tree_are_told_apart(tmp_path: Path, top: str, one: str, other: str) -> None:
    put(tmp_path, {f"{top}.py": one})
    before = user_code([top]).digest
    put(tmp_path, {f"{top}.py": other})
    assert user_code([top]).digest != before


def test_a_module_with_the_name_of_one_of_pythons_is_the_users_where_it_is_found_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, {"this.py": "x = 1\n"})
    assert not is_user_module("this")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert is_user_module("this")


def test_imports_under_another_name_and_by_stars_are_followed(tmp_path: Path, top: str) -> None:
    text = f"from importlib import import_module as load\nload('{top}.a')\nfrom {top}.stars import *\n"
    put(tmp_path, {f"{top}/__init__.py": "", f"{top}/m.py": text, f"{top}/a.py": "", f"{top}/stars/__init__.py": "__all__ = ['sub']\n"})
    put(tmp_path, {f"{top}/stars/sub.py": ""})
    assert {f"{top}.a", f"{top}.stars.sub"} <= user_code([f"{top}.m"]).files.keys()


def test_an_extension_comes_before_a_source_of_its_name(tmp_path: Path, top: str) -> None:
    put(tmp_path, {f"{top}/__init__.py": "", f"{top}/fast.py": "x = 1\n", f"{top}/fast{EXTENSION_SUFFIXES[0]}": "binary"})
    assert user_code([f"{top}.fast"]).files[f"{top}.fast"].name.endswith(EXTENSION_SUFFIXES[0])


def test_a_module_for_another_python_counts_by_its_bytes(tmp_path: Path, top: str) -> None:
    put(tmp_path, {f"{top}.py": f"import sys\nif sys.version_info > (9,):\n    import {top}_new\n", f"{top}_new.py": "type X[T: (] = 1\n"})
    assert f"{top}_new" in user_code([top]).files


def test_a_module_that_is_no_python_is_named(tmp_path: Path, top: str) -> None:
    put(tmp_path, {f"{top}.py": "def f(:\n"})
    with pytest.raises(SyntaxError, match=rf"{top}\.py: .*line 1"):
        user_code([top])


# --- which modules ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["json", "sys", "numpy", "torch.nn", "pytest", "absent_from_everywhere", "__main__", "cglsuite.graphs"])
def test_what_is_no_user_code(name: str) -> None:
    assert not is_user_module(name)


@pytest.mark.parametrize(
    ("name", "ours"),
    [("cglsuite", True), ("cglsuite:M", True), ("cglsuite_node.a:B", True), ("cglsuite_mine.a", False), ("cglsuites", False)],
)
def test_what_is_of_the_suite(name: str, ours: bool) -> None:
    assert is_ours(name) is ours


@pytest.mark.parametrize(
    ("url", "user"),
    [
        (None, False),
        ({"url": "file:///somewhere", "dir_info": {"editable": True}}, True),
        ({"url": "file:///somewhere", "dir_info": {}}, True),
        ({"url": "https://example.org/a.zip", "archive_info": {}}, True),
        ({"url": "https://example.org/a.git", "vcs_info": {"vcs": "git", "commit_id": "0"}}, True),
    ],
)
def test_what_is_installed_counts_unless_it_came_from_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, top: str, url: object, user: bool
) -> None:
    site = tmp_path / "site-packages"
    info = site / f"{top}-1.0.dist-info"
    put(site, {f"{top}/__init__.py": "x = 1\n", "stray.py": "x = 1\n"})
    info.mkdir()
    (info / "RECORD").write_text(f"{top}/__init__.py,sha256=x,5\n{top}-1.0.dist-info/RECORD,,\n")
    if url is not None:
        (info / "direct_url.json").write_text(json.dumps(url))
    monkeypatch.syspath_prepend(str(site))
    assert is_user_module(top) is user
    assert is_user_module("stray"), "nobody installed it"


def test_code_in_an_archive_counts_by_its_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, top: str) -> None:
    found = []
    for number, version in enumerate(["1.0", "1.0", "2.0"]):
        folder = tmp_path / str(number)
        put(
            folder,
            {f"{top}.py": "VALUE = 1", f"{top}-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {top}\nVersion: {version}\n"},
        )
        (folder / f"{top}-{version}.dist-info" / "top_level.txt").write_text(f"{top}\n")
        archive = shutil.make_archive(str(tmp_path / f"archive-{number}"), "zip", folder)
        with monkeypatch.context() as patch:
            patch.syspath_prepend(archive)
            importlib.invalidate_caches()
            assert user_code([top]).files == {}
            found.append(closure_digest(top))
    assert found[0] == found[1] != found[2]
