"""What counts as an input of user code: files that it opens and variables that it looks up, and nothing that others read."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ASKING = """
import json, os, sys
sys.path.insert(0, os.getcwd())
from pathlib import Path
here = Path.cwd()
from cglsuite.cells.code import inputs as witnesses
from cglsuite.cells.code.user import files_to_freeze, is_user_module
from cglsuite.host.frozen import Bundle, serve
serve(Bundle.keep(files_to_freeze(["mine"]), Path("store")), is_user_module)  # as a worker does
with witnesses.watch(Path("store")):
    import mine
    try:
        seen = witnesses.inputs_read()
    except Exception as error:
        seen = str(error)
    print(json.dumps([seen, witnesses.written()]))
open(here / "mine.py").close()
assert not witnesses.watching() and not any("mine.py" in name for name in witnesses.inputs_read())
"""


def reads(tmp_path: Path, code: str, **files: str) -> tuple[Any, list[str]]:
    """What a process saw that imported this user module: by name; and the files that count as its own."""
    for name, content in {"mine.py": textwrap.dedent(code), **files}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    environment = {**os.environ, "MODE": "fast", "CGLSUITE_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", ASKING], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen, own = json.loads(done.stdout)
    return seen, own


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "code",
    [
        "VALUE = open('a.txt').read()",
        "from pathlib import Path\nVALUE = Path('a.txt').read_text()",
        "import json, helper\nVALUE = helper.read('a.txt')",
        "import os\nVALUE = os.read(os.open('a.txt', os.O_RDONLY), 9)",
        "import numpy\nVALUE = numpy.loadtxt('a.txt', ndmin=1)",
        "import threading\ndef read():\n    open('a.txt').close()\nt = threading.Thread(target=read)\nt.start()\nt.join()",
        "import cglsuite\nVALUE = cglsuite.input_file('a.txt')",
        "import os\nos.mkdir('x')\nos.chdir('x')\nopen('../a.txt').close()",
        "import ctypes, os\ntry:\n    ctypes.CDLL(os.path.abspath('a.txt'))\nexcept OSError:\n    pass",
    ],
    ids=["open", "pathlib", "helper", "descriptor", "numpy", "thread", "declared", "elsewhere", "library"],
)
def test_a_file_counts_however_user_code_opens_it(tmp_path: Path, code: str) -> None:
    helper = "def read(name):\n    with open(name) as stream:\n        return stream.read()\n"
    by = "helper" if "helper" in code else "mine"
    assert reads(tmp_path, code, **{"a.txt": "12", "helper.py": helper}) == ({f"{by}:a.txt": sha256("12")}, [])


def test_data_in_a_package_counts_and_its_modules_do_not(tmp_path: Path) -> None:
    files = {"pack/data.json": "[1]", "pack/__init__.py": "import pkgutil\nVALUE = pkgutil.get_data('pack', 'data.json')"}
    assert reads(tmp_path, "import pack, wave", **files)[0] == {"pack:data.json": sha256("[1]")}


LOADED = """
import importlib.util
def load():
    spec = importlib.util.spec_from_file_location("by_its_path", "x/by_its_path.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
load()
"""


@pytest.mark.parametrize("times", [1, 2], ids=["source", "bytecode"])
def test_a_module_that_is_loaded_by_its_path_counts_by_its_source_as_do_the_files_that_it_reads(tmp_path: Path, times: int) -> None:
    files = {"x/by_its_path.py": "open('b.txt').close()", "b.txt": "3"}
    seen, own = reads(tmp_path, LOADED * times, **files)
    assert seen == {"mine:x/by_its_path.py": sha256("open('b.txt').close()"), "./b.txt": sha256("3")}
    assert own == []


def test_a_file_below_a_folder_that_code_went_to_has_its_path(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    (tmp_path / "y" / "a.txt").write_text("12")
    seen, _ = reads(tmp_path / "x", "import contextlib\nwith contextlib.chdir('../y'):\n    open('a.txt').close()")
    assert seen == {str(tmp_path / "y" / "a.txt"): sha256("12")}


def test_a_file_elsewhere_has_its_path_and_one_below_the_current_folder_is_relative(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "a.txt").write_text("12")
    code = "open('../a.txt').close()\nimport pack.inner"
    files = {"pack/__init__.py": "", "pack/inner.py": "open('b.txt').close()", "b.txt": "3"}
    seen, _ = reads(tmp_path / "x", code, **files)
    assert seen == {str(tmp_path / "a.txt"): sha256("12"), "./b.txt": sha256("3")}


def test_an_absent_file_counts_as_absent(tmp_path: Path) -> None:
    code = "try:\n    open('a.txt')\nexcept FileNotFoundError:\n    pass"
    assert reads(tmp_path, code) == ({"mine:a.txt": None}, [])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "code",
    [
        "open('a.txt', 'w').write('x')\nopen('a.txt').read()",
        "open('a.txt').read()\nopen('a.txt', 'a').write('x')",
        "try:\n    open('b.txt')\nexcept FileNotFoundError:\n    open('b.txt', 'w').close()",
        "import os\nopen('b.new', 'w').close()\nos.replace('b.new', 'b.txt')\nopen('b.txt').read()",
    ],
    ids=["written", "written-later", "made", "moved"],
)
def test_what_user_code_writes_is_its_own(tmp_path: Path, code: str) -> None:
    seen, own = reads(tmp_path, code, **{"a.txt": "12"})
    assert seen == {}
    assert {"mine:a.txt", "mine:b.txt"} & set(own)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "code",
    [
        "open('/proc/self/status').read()",
        "open('/dev/null').read()",
        "import matplotlib.font_manager, mimetypes\nmimetypes.init()",
        "import sysconfig, os\nopen(os.path.join(sysconfig.get_paths()['stdlib'], 'LICENSE.txt')).read()",
        "import os\nopen('store/x').close()",
        "import os\nopen('cache/x').close()",
    ],
    ids=["proc", "dev", "library", "stdlib", "store", "cache"],
)
def test_folders_of_others_do_not_count(tmp_path: Path, code: str) -> None:
    assert reads(tmp_path, code, **{"store/x": "", "cache/x": ""})[0] == {}


def test_what_the_suite_reads_is_not_its_callers(tmp_path: Path) -> None:
    """A script that runs cells is below the suite on the stack, and no method's code."""
    code = """
        from cglsuite.cells import Store
        from cglsuite.cells.storage.store import read_regular
        Store("elsewhere").sweep()
        from cglsuite.cells.storage.layout import read_inputs, write_inputs
        write_inputs(Path("elsewhere"), "a" * 64, "a" * 64, {}, {})
        read_inputs(Path("elsewhere"), "a" * 64)
    """
    assert reads(tmp_path, "from pathlib import Path\n" + textwrap.dedent(code))[0] == {}


def test_a_file_that_changes_between_two_readings_is_named(tmp_path: Path) -> None:
    code = "import subprocess\nopen('a.txt').read()\nsubprocess.run(['sh', '-c', 'echo 3 > a.txt'])\nopen('a.txt').read()"
    seen, _ = reads(tmp_path, code, **{"a.txt": "12"})
    assert "a.txt changed during training" in seen


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "code",
    [
        "import os\nVALUE = os.environ['MODE']",
        "import os\nVALUE = os.environ.get('MODE', 'slow')",
        "from os import getenv\nVALUE = getenv('MODE')",
        "import os\nVALUE = 'MODE' in os.environ",
        "import os\nVALUE = os.environ.__getitem__('MODE')",
        "import operator, os\nVALUE = operator.itemgetter('MODE')(os.environ)",
        "import os\nVALUE = '{MODE}'.format_map(os.environ)",
        "import os\nVALUE = [*map(os.environ.__getitem__, dict(os.environ).keys() & {'MODE'})]",
        "import os\nVALUE = os.environb[b'MODE']",
        "import os\nVALUE = os.getenvb(b'MODE')",
        "import collections, os\nVALUE = collections.ChainMap({}, os.environ)['MODE']",
        "import os\nVALUE = os.path.expandvars('$MODE')",
        "import os, string\nVALUE = string.Template('$MODE').substitute(os.environ)",
    ],
    ids=["subscript", "get", "getenv", "in", "method", "getter", "format", "map", "bytes", "getenvb", "chained", "expanded", "template"],
)
def test_a_variable_counts_that_user_code_looks_up(tmp_path: Path, code: str) -> None:
    assert reads(tmp_path, code) == ({"$MODE": sha256("fast")}, [])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "code",
    [
        "import os\nVALUE = dict(os.environ)",
        "import os\nVALUE = {**os.environ}",
        "import os\nVALUE = {}\nVALUE.update(os.environ)",
        "import os\nVALUE = dict(os.environb)",
        "import os\nVALUE = os.environ.copy()",
        "import os\nVALUE = [v for _, v in os.environ.items()]",
        "import os\nos.environ['MODE'] = 'x'\nVALUE = os.environ['MODE']",
        "import os.path\nVALUE = os.path.expanduser('~')",
        "import os\nVALUE = os.environ.get('OMP_NUM_THREADS')",
    ],
    ids=["dict", "unpacked", "updated", "bytes", "copy", "items", "set", "library", "suite"],
)
def test_variables_that_nobody_asked_for_do_not_count(tmp_path: Path, code: str) -> None:
    assert reads(tmp_path, code)[0] == {}


def test_only_a_file_can_be_declared(tmp_path: Path) -> None:
    import cglsuite
    from cglsuite.base.errors import UsageError

    with pytest.raises(UsageError, match=r"input_file\('.*nothing'\): the file does not exist"):
        cglsuite.input_file(tmp_path / "nothing")
