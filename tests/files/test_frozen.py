"""Bundles of user code: what was planned is imported, from the store, and nothing else of its packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cglsuite.base.errors import StoreError
from cglsuite.cells.code.user import files_to_freeze, user_code
from cglsuite.host.frozen import Bundle, serve

FILES = {
    "frozen_pkg/__init__.py": "",
    "frozen_pkg/method.py": "from .helper import scale\nfrom frozen_space.inner import SHIFT\ndef value():\n    return scale(1) + SHIFT\n",
    "frozen_pkg/helper.py": "FACTOR = 1\ndef scale(x): return x * FACTOR\n",
    "frozen_pkg/absent.py": "x = 1\n",
    "frozen_space/inner.py": "SHIFT = 10\n",
}
ROOTS = ["frozen_pkg.method:value"]
IN_A_WORKER = """
import json, sys
from pathlib import Path
from cglsuite.cells.code.user import is_user_module
from cglsuite.host.frozen import Bundle, serve
sys.path.insert(0, {folder!r})
serve(Bundle.from_json(json.loads({bundle!r}), Path({store!r})), is_user_module)
{code}
"""


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bundle:
    """The bundle of a package, whose helper is edited afterwards."""
    folder = tmp_path / "site"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    bundle = Bundle.keep(files_to_freeze(ROOTS), tmp_path / "store")
    (folder / "frozen_pkg" / "helper.py").write_text("FACTOR = 5\ndef scale(x): return x * FACTOR\n")
    return bundle


def worker(bundle: Bundle, tmp_path: Path, code: str) -> Any:
    """What code prints (JSON) in a process that imports from the bundle."""
    words = {"folder": str(tmp_path / "site"), "bundle": json.dumps(bundle.to_json()), "store": str(tmp_path / "store"), "code": code}
    done = subprocess.run([sys.executable, "-c", IN_A_WORKER.format(**words)], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.splitlines()[-1]


WHILE_A_CELL_RUNS = """
import importlib
from cglsuite.base.traces import random_state_restored
with random_state_restored():
    VALUE = importlib.import_module('frozen_' + 'other').VALUE
"""


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("import importlib\nVALUE = importlib.import_module('frozen_' + 'other').VALUE\n", "a name that is known only at run time"),
        ("VALUE = __import__('frozen_' + 'other').VALUE\n", "a name that is known only at run time"),
        (WHILE_A_CELL_RUNS, "a name that is known only at run time"),
        ("try:\n    import frozen_not_there\nexcept ModuleNotFoundError:\n    VALUE = 3\n", 3),
        ("import importlib\nVALUE = importlib.import_module('colo' + 'rsys').rgb_to_hsv(0, 0, 0)[2]\n", 0),
    ],
    ids=["import-module", "dunder", "while-a-cell-runs", "absent", "library"],
)
def test_planned_code_finds_no_user_module_that_was_not_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, seen: Any
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "frozen_by_name.py").write_text(text)
    (tmp_path / "site" / "frozen_other.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    bundle = Bundle.keep(files_to_freeze(["frozen_by_name"]), tmp_path / "store")
    found = worker(bundle, tmp_path, "import frozen_by_name; print(json.dumps(frozen_by_name.VALUE))")
    assert seen in found if isinstance(seen, str) else found == seen


def test_a_bundle_holds_what_is_imported_each_file_once(planned: Bundle, tmp_path: Path) -> None:
    assert sorted(planned.modules) == ["frozen_pkg", "frozen_pkg.helper", "frozen_pkg.method", "frozen_space.inner"]
    files = sorted(p.name for p in (tmp_path / "store" / "code").glob("??/*"))
    assert files == sorted(f"{one.sha256}.py" for one in planned.modules.values())
    assert Bundle.from_json(planned.to_json(), tmp_path / "store").modules == planned.modules
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "store" / "code").glob("??/*")}
    Bundle.keep({"again": (Path("x.py"), FILES["frozen_space/inner.py"].encode())}, tmp_path / "store")
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "store" / "code").glob("??/*")} == before


def test_a_planned_module_that_no_key_holds_is_an_input_where_it_was_imported(planned: Bundle, tmp_path: Path) -> None:
    """Something named it that is no import statement, such as a pickle."""
    code = """
import pydoc
from cglsuite.cells.code.inputs import Reading
keyed = Reading({}, "its first key", ["frozen_pkg"])
before = keyed.read()
pydoc.locate("frozen_pkg.helper.scale")
print(json.dumps([before, keyed.read(), Reading({}, "another", ["frozen_pkg.helper"]).read()]))
"""
    (tmp_path / "site" / "frozen_pkg" / "__init__.py").write_text("")
    assert worker(planned, tmp_path, code) == [{}, {"frozen_pkg:helper.py": planned.modules["frozen_pkg.helper"].sha256}, {}]


def test_a_worker_runs_what_was_planned(planned: Bundle, tmp_path: Path) -> None:
    """Though the file is another by now; tracebacks, ``inspect`` and the digest agree with what runs, and no bytecode is written."""
    code = """
import inspect, linecache
from frozen_pkg import helper, method
linecache.checkcache()
from cglsuite.cells.code.user import user_code
texts = [inspect.getsource(helper.scale), inspect.getsource(helper)[:10]]
print(json.dumps([method.value(), helper.__file__, *texts, user_code(["frozen_pkg.method"]).digest]))
"""
    value, file, function, source, digest = worker(planned, tmp_path, code)
    site = tmp_path / "site"
    assert (value, file) == (11, str(site / "frozen_pkg" / "helper.py"))
    assert (function, source) == ("def scale(x): return x * FACTOR\n", "FACTOR = 1")
    assert list(site.rglob("*.pyc")) == []
    assert user_code(ROOTS).digest != digest
    (site / "frozen_pkg" / "helper.py").write_text(FILES["frozen_pkg/helper.py"])
    assert user_code(ROOTS).digest == digest


def test_stale_bytecode_is_not_read(planned: Bundle, tmp_path: Path) -> None:
    code = "from frozen_pkg import method\nprint(json.dumps(method.value()))"
    plain = [sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1]); from frozen_pkg import method; print(method.value())"]
    done = subprocess.run([*plain, str(tmp_path / "site")], capture_output=True, text=True, check=True, env={})
    assert done.stdout == "15\n"
    assert list((tmp_path / "site").rglob("*.pyc"))
    assert worker(planned, tmp_path, code) == 11


@pytest.mark.parametrize("module", ["frozen_pkg.absent", "frozen_pkg.nowhere", "frozen_space.other"])
def test_what_was_not_planned_is_never_taken_from_the_disk(planned: Bundle, tmp_path: Path, module: str) -> None:
    assert worker(planned, tmp_path, f"import {module}") == f"ModuleNotFoundError: No module named '{module}' in the code that was planned"


def test_a_library_may_share_a_namespace(planned: Bundle, tmp_path: Path) -> None:
    library = tmp_path / "lib" / "site-packages" / "frozen_space" / "installed.py"
    library.parent.mkdir(parents=True)
    library.write_text("x = 3\n")
    code = "from frozen_space import inner, installed\nprint(json.dumps([inner.SHIFT, installed.x]))"
    assert worker(planned, tmp_path, f"sys.path.append({str(library.parents[1])!r})\n{code}") == [10, 3]


def test_another_content_in_the_store_is_not_imported(planned: Bundle, tmp_path: Path) -> None:
    place = tmp_path / "store" / "code" / planned.modules["frozen_pkg.helper"].sha256[:2]
    (file,) = place.glob(f"{planned.modules['frozen_pkg.helper'].sha256}.py")
    file.write_text("def scale(x): return 0\n")
    said = worker(planned, tmp_path, "import frozen_pkg.method")
    reason = f"{file} has changed and no longer matches its digest, so the module frozen_pkg.helper is not imported"
    assert said == f"cglsuite.base.errors.StoreError: {reason}"
    file.unlink()
    assert "it contains the module frozen_pkg.helper of this plan" in worker(planned, tmp_path, "import frozen_pkg.method")


def test_a_process_serves_one_bundle_and_none_that_it_has_imported(planned: Bundle, tmp_path: Path) -> None:
    said = worker(planned, tmp_path, "serve(Bundle.from_json({'other': ['0', 'other.py']}, Path('.')))")
    assert said == "cglsuite.base.errors.StoreError: this process has already imported modules from another bundle; use a new process"
    with pytest.raises(StoreError, match="this process has already imported json"):
        serve(Bundle.from_json({"json.decoder": ("0", "decoder.py")}, tmp_path))
