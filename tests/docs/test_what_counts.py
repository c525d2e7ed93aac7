"""What changes a key, by the table in docs/how-to/keep-results.md: every change of a row is made, and its effect compared."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from doc_blocks import ROOT

from cglsuite import load_catalogue
from cglsuite.cells.code.objects import hashed
from cglsuite.cells.keys import cell_key
from cglsuite.cells.spec import resolve_cell
from cglsuite.graphs.files.named import naming
from cglsuite.testing.streams import tiny_catalogue

TEXT = (ROOT / "docs" / "how-to" / "keep-results.md").read_text(encoding="utf-8")
TABLE = TEXT.partition("| what changes | effect | details |\n| --- | --- | --- |\n")[2].partition("\n\n")[0]
ROWS = {row.split(" | ")[0].removeprefix("| "): row.split(" | ")[1] for row in TABLE.splitlines()}
KEY, SECOND, NOTHING = "new key", "second key", "nothing"


def test_every_row_is_checked_and_every_check_has_its_row() -> None:
    assert set(ROWS) == {*MODULES, *CLASSES, *READ, *READ_AT_NIGHT}
    assert len(ROWS) == len(TABLE.splitlines())


# --- modules: the key of a cell before and after an edit of one file -------------------------------------------------------------------

PLUGIN = """
from cglsuite import MethodSpec, MetricSpec, hookimpl

@hookimpl
def cglsuite_methods():
    return [MethodSpec(name="counted", summary="s", factory="counted.method:M")]

@hookimpl
def cglsuite_metrics():
    return [MetricSpec(name="counted", summary="s", formula="f", direction="up", factory="counted_metric:value")]
"""
METHOD = '''
import cglsuite as cgl
import counted_library
from . import fast, sealed
from .helper import scale

class M(cgl.Method):
    """Words."""
    def loss(self, batch: object):
        from .late import later
        return scale(super().loss(batch)) + later()
'''
FAST = f"counted/fast{EXTENSION_SUFFIXES[0]}"
FILES = {
    "counted_plugin.py": PLUGIN,
    "counted_metric.py": "def value(matrix):\n    return 1.0\n",
    "counted/__init__.py": "",
    "counted/method.py": METHOD,
    "counted/helper.py": "__all__ = []\n\ndef scale(x):\n    return x * 1.0\n",
    "counted/late.py": "def later():\n    return 0\n",
    "counted/beside.py": "x = 1\n",
    FAST: "bytes",
    "counted/sealed.pyc": "bytes",
    "site/counted_library/__init__.py": "x = 1\n",
    "site/counted_library-1.dist-info/RECORD": "counted_library/__init__.py,,\n",
}
BY_NAME = {"counted/late.py": "import importlib\n\ndef later(name='x'):\n    return importlib.import_module(name)\n"}
MODULES: dict[str, list[tuple[str, str, str]]] = {
    "a module that the method, loader or builder imports, or a package around it": [
        ("counted/helper.py", "1.0", "2.0"),
        ("counted/helper.py", "[]", "['scale']"),
        ("counted/late.py", "0", "1"),
        ("counted/__init__.py", "", "x = 1\n"),
        ("counted/method.py", "Words", "Other words"),
        ("counted/method.py", "object", "int"),
        ("counted/method.py", "    def loss", "    def __repr__(self):\n        return ''\n\n    def loss"),
    ],
    "comments, layout, or a module that nothing imports": [
        ("counted/helper.py", "x * 1.0", "x * 1.0  # as it is"),
        ("counted/helper.py", "x * 1.0", "(\n        x\n        * 1.0\n    )"),
        ("counted/beside.py", "1", "2"),
    ],
    "the module that a plugin's entry point names": [("counted_plugin.py", "@hookimpl", "x = 1\n\n@hookimpl")],
    "any module of a package, if one of its modules imports or runs code by a computed name": [("counted/beside.py", "1", "2")],
    "a compiled extension, or bytecode without source": [(FAST, "bytes", "others"), ("counted/sealed.pyc", "bytes", "others")],
    "Python's minor version, for modules; a library from an index": [("site/counted_library/__init__.py", "1", "2"), ("", "", "")],
    "your own metric": [("counted_metric.py", "1.0", "2.0")],
}


@pytest.mark.parametrize("row", MODULES)
def test_an_edit_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    """An edit of no file is another minor version of Python."""
    files = FILES | (BY_NAME if "computed" in row else {})
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for folder in ("site", ""):
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    importlib.invalidate_caches()
    naming(plugins=[tmp_path / "counted_plugin.py"])
    catalogue = tiny_catalogue(load_catalogue())
    assert "counted" in catalogue.names("metric")
    cell = resolve_cell(catalogue, "testing-nodes/class-il@testing-1", "counted")
    before = cell_key(cell, catalogue)
    for name, old, new in MODULES[row]:
        with monkeypatch.context() as patch:
            if name:
                text = files[name].replace(old, new, 1)
                assert text != files[name]
                (tmp_path / name).write_text(text)
            else:
                patch.setattr(sys, "version_info", (3, 99, 0))
            after = cell_key(cell, catalogue)
        assert (KEY if after != before else NOTHING) == ROWS[row], (name, new)
        if name:
            (tmp_path / name).write_text(files[name])
        assert cell_key(cell, catalogue) == before


# --- classes in memory ------------------------------------------------------------------------------------------------------------------

SCRIPT = """
import numpy as np
RATE = [1.0]

def helper(x, power=2):
    return x ** power * RATE[0]

class Base:
    shift = 1

class Mine(Base):
    def loss(self, batch):
        return helper(batch) + np.pi
"""


def class_digest(old: str = "", new: str = "") -> str:
    """The digest of ``Mine`` of the script, which is executed as a notebook's cell is."""
    module = ModuleType("__main__")
    before, sys.modules["__main__"] = sys.modules["__main__"], module
    try:
        exec(compile(SCRIPT.replace(old, new, 1), "<cell>", "exec", dont_inherit=True), module.__dict__)
        return hashed(module.Mine).digest
    finally:
        sys.modules["__main__"] = before


def edits(patch: pytest.MonkeyPatch) -> list[str]:
    swaps = [("1.0", "2.0"), ("power=2", "power=3"), ("shift = 1", "shift = 2"), ("+ np", "- np")]
    return [class_digest(*swap) for swap in swaps]


def another_python(patch: pytest.MonkeyPatch) -> list[str]:
    patch.setattr(sys, "version_info", (3, 99, 0))
    return [class_digest()]


def patched_library(patch: pytest.MonkeyPatch) -> list[str]:
    patch.setattr(np, "pi", 3.0)
    return [class_digest()]


CLASSES: dict[str, Callable[[pytest.MonkeyPatch], list[str]]] = {
    "a class in a notebook or script, or any function, class or value there that the class uses": edits,
    "Python's minor version, for classes of notebooks and scripts": another_python,
    "attributes that a notebook sets on objects of other packages, such as a function of torch": patched_library,
}


@pytest.mark.parametrize("row", CLASSES)
def test_an_edit_in_a_notebook(monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    before = class_digest()
    assert class_digest() == before
    with monkeypatch.context() as patch:
        after = CLASSES[row](patch)
    assert {KEY if one != before else NOTHING for one in after} == {ROWS[row]}


# --- what code reads: all cases in one process that watches as workers do -------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Case:
    """Code with a function ``value``, and what makes ``new`` content where there was ``old``: both are given as ``content``."""

    code: str
    make: str = "open('FILE', 'w').write(content)"
    old: str | None = "1"
    new: str | None = "22"


def opened(how: str) -> Case:
    return Case(f"import pathlib, subprocess\nimport numpy as np\n\ndef value():\n    return str({how})\n")


ABSENT = "def value():\n    try:\n        return open('FILE').read()\n    except FileNotFoundError:\n        return 'absent'\n"
THREAD = """
import threading

def value():
    found = []
    thread = threading.Thread(target=lambda: found.append(open('FILE').read()))
    thread.start()
    thread.join()
    return found
"""
WRITTEN = """
import os

def value():
    if not os.path.exists('FILE'):
        open('FILE', 'w').write('1')
    return open('FILE').read()
"""
LIBRARY = """
import sys

def value():
    sys.modules.pop('reading', None)
    import reading
    return reading.X
"""
DATABASE = """
import contextlib, sqlite3

def value():
    with contextlib.closing(sqlite3.connect("FILE")) as base:
        return base.execute("select x from t").fetchall()
"""
INTO_A_DATABASE = """
import contextlib, sqlite3
with contextlib.closing(sqlite3.connect("FILE")) as base:
    base.execute("create table if not exists t (x)")
    base.execute("insert into t values (?)", [content])
    base.commit()
"""
VARIABLE = "os.environ['CASE_NAME'] = content"
COMPILED = "a file that C or C++ opens: `torch.jit.load`, `torch.from_file`, `pyarrow.parquet`, `sqlite3`"
READ: dict[str, list[Case]] = {
    "a file that your code opens": [
        opened("open('FILE').read()"),
        opened("pathlib.Path('FILE').read_text()"),
        opened("np.loadtxt('FILE')"),
        Case(THREAD),
    ],
    "a file that did not exist when your code tried to open it": [Case(ABSENT, old=None)],
    "a file that `cgl.input_file(path)` names": [
        opened("(__import__('cglsuite').input_file('FILE'), subprocess.run(['cat', 'FILE'], capture_output=True).stdout)")
    ],
    "an environment variable that your code looks up by name": [
        Case(f"import os\n\ndef value():\n    return {how}\n", VARIABLE)
        for how in ("os.environ['CASE_NAME']", "os.environ.get('CASE_NAME')", "os.getenv('CASE_NAME')", "os.environb[b'CASE_NAME']")
    ],
    COMPILED: [Case(DATABASE, INTO_A_DATABASE)],
    "a file that was read before and is missing now": [Case(ABSENT, new=None)],
    "the existence, size or modification time of a file, or the listing of a folder": [
        opened("(pathlib.Path('FILE').stat().st_size, pathlib.Path('FILE').stat().st_mtime_ns)"),
        Case("import os\n\ndef value():\n    return os.path.exists('FILE'), os.listdir()\n", old=None),
    ],
    "a file that a child process reads": [opened("subprocess.run(['cat', 'FILE'], capture_output=True).stdout")],
    "a file that your code wrote itself": [Case(WRITTEN, old=None)],
    "the environment as a whole, such as `dict(os.environ)`": [
        Case("import os\n\ndef value():\n    return dict(os.environ)['CASE_NAME']\n", VARIABLE),
        Case("import os\n\ndef value():\n    return str(sorted(os.environ.items()))\n", VARIABLE),
    ],
    "variables that the suite sets: `CGLSUITE_*`, `OMP_*`, `MKL_*`, `SLURM_*`": [
        Case(f"import os\n\ndef value():\n    return os.environ['{name}_NAME']\n", f"os.environ['{name}_NAME'] = content")
        for name in ("CGLSUITE", "OMP", "MKL", "SLURM")
    ],
    "files of the system, the store, the cache or the data folder": [
        Case(f"def value():\n    return open('{name}/FILE').read()\n", f"open('{name}/FILE', 'w').write(content)")
        for name in ("store", "cache", "data")
    ]
    + [Case("def value():\n    return open('/proc/self/stat').read()\n", "os.nice(1)")],
    "files that a library reads while it is imported": [Case(LIBRARY, "open('library.txt', 'w').write(content)")],
}
READ_AT_NIGHT = {
    "a file that your code opens": [
        Case(
            "import torch\n\ndef value():\n    return torch.load('FILE').item()\n",
            "import torch; torch.save(torch.tensor(float(content)), 'FILE')",
        ),
        Case("import pandas\n\ndef value():\n    return pandas.read_csv('FILE', header=None).to_numpy().item()\n"),
    ],
    COMPILED: [
        Case(
            "import torch\n\ndef value():\n    return torch.jit.load('FILE')(torch.zeros(1)).item()\n",
            "import torch; torch.jit.trace(torch.nn.Threshold(1.0, float(content)), torch.zeros(1)).save('FILE')",
        ),
        Case(
            "import torch\n\ndef value():\n    return torch.from_file('FILE', size=1, dtype=torch.uint8).item()\n",
            "open('FILE', 'wb').write(bytes([int(content)]))",
        ),
        Case(
            "import pyarrow.parquet as pq\n\ndef value():\n    return pq.read_table('FILE').to_pylist()\n",
            "import pyarrow.parquet as pq, pyarrow; pq.write_table(pyarrow.table({'x': [content]}), 'FILE')",
        ),
    ],
}
WATCHING = """
import importlib, json, os, sys, warnings
from pathlib import Path
from cglsuite.cells.code import inputs as witnesses
from cglsuite.cells.storage.layout import Inputs
from cglsuite.cells.code.user import user_code

warnings.simplefilter("ignore")
sys.path[:0] = [os.getcwd(), os.path.join(os.getcwd(), "site")]
cases = json.loads(Path("cases.json").read_text())

def put(case, content):
    if content is not None:
        exec(case["make"], {"os": os, "content": content})
    elif os.path.exists(case["file"]):
        os.remove(case["file"])

def found():
    values = [str(importlib.import_module(case["module"]).value()) for case in cases]
    seen = witnesses.inputs_read()
    noted, told = Inputs(key="", asked={}, read=seen, written_ns=0), set()
    for case, value in zip(cases, values):
        key = user_code([case["module"]]).digest
        put(case, case["new"])
        changes = set(noted.changes({name: witnesses.present(name) for name in seen})) - told
        told |= changes
        effect = "another key" if user_code([case["module"]]).digest != key else "second key" if changes else "nothing"
        yield effect, sorted(changes), value != str(sys.modules[case["module"]].value())

for case in cases:
    put(case, case["old"])
with witnesses.watch(Path("store")):
    print(json.dumps(list(found())))
"""


def effects(folder: Path, cases: list[Case]) -> list[tuple[str, list[str], bool]]:
    """Of each change its effect, the witnesses that tell of it, and whether another value was computed."""
    written = []
    for name in ("store", "cache", "data", "site/reading-1.dist-info"):
        (folder / name).mkdir(parents=True)
    (folder / "site" / "reading.py").write_text("X = open('library.txt').read()\n")
    (folder / "site" / "reading-1.dist-info" / "RECORD").write_text("reading.py,,\n")
    for number, case in enumerate(cases):
        module, file = f"case_{number}", f"file_{number}.txt"
        named = {n: t.replace("FILE", file).replace("CASE_NAME", f"CASE_{number}") for n, t in (("code", case.code), ("make", case.make))}
        (folder / f"{module}.py").write_text(named["code"])
        written.append({"module": module, "file": file, "make": named["make"], "old": case.old, "new": case.new})
    (folder / "cases.json").write_text(json.dumps(written))
    environment = {**os.environ, "CGLSUITE_CACHE": str(folder / "cache"), "CGLSUITE_DATA": str(folder / "data")}
    done = subprocess.run([sys.executable, "-c", WATCHING], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[tuple[str, list[str], bool]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("rows", [READ, pytest.param(READ_AT_NIGHT, marks=pytest.mark.nightly)], ids=["python", "c++"])
def test_a_change_of_what_code_reads(tmp_path: Path, rows: dict[str, list[Case]]) -> None:
    """The value that is computed changes, too, whether a key says so or not."""
    cases = [(row, case) for row, several in rows.items() for case in several]
    found = effects(tmp_path, [case for _, case in cases])
    told = [(row, case.code, effect, differs) for (row, case), (effect, _, differs) in zip(cases, found, strict=True)]
    assert told == [(row, case.code, ROWS[row], True) for row, case in cases]
    assert all(len(changes) == (ROWS[row] == SECOND) for (row, _), (_, changes, _) in zip(cases, found, strict=True))
