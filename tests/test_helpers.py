"""Helper processes end with their parent, however it ends and whatever they are doing, and the current folder shadows nothing in them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cglsuite.base import helpers
from cglsuite.base.helpers import Helper

COMMAND = str(Path(sys.executable).with_name("cglsuite"))
SECONDS = 10.0
HOLDS_THE_LOCK = "import itertools; sum(itertools.count())"
PLUGIN = """
from cglsuite import Method, MethodSpec, hookimpl

class Endless(Method):
    '''Begins, and never ends; no other thread of its process runs.'''
    def setup(self):
        from pathlib import Path
        Path({sign!r}).touch()
        import itertools; sum(itertools.count())

@hookimpl
def cglsuite_methods():
    return [MethodSpec(name="endless", summary="endless", citation="none", factory="{stem}:Endless")]
"""
CAMPAIGN = """
name = "endless"
[grid]
scenarios = ["synthetic-csbm/class-il@begin-1"]
methods = ["endless"]
"""
RENDER = """
import nbformat, sys, threading
from cglsuite.reports.rendering.job import Job
from cglsuite.reports.rendering.notebook import in_process

notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("from pathlib import Path; Path({sign!r}).touch(); {code}")])
nbformat.write(notebook, "endless.ipynb")
in_process(Job(notebook="endless.ipynb", name="endless", title="T", output="page.html"), threading.Event())
"""


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A word in the environment of this test's child processes; those that are left are ended."""
    word = f"{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv("TEST_HELPERS", word)
    yield word
    for pid in _marked(word) - {os.getpid()}:
        os.kill(pid, signal.SIGKILL)


def _marked(word: str) -> set[int]:
    """The processes that run with a word in their environment."""
    found = set[int]()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            ended = (place / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
            if not ended and word.encode() in (place / "environ").read_bytes():
                found.add(int(place.name))
        except OSError:
            continue
    return found


def _outlived(words: list[str], mark: str, sign: Path, limit_s: float = 200.0) -> set[int]:
    """The processes that still run some seconds after the death of the one that started them, which comes once ``sign`` exists."""
    parent = subprocess.Popen(words, cwd=sign.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + limit_s
    while not sign.exists():
        assert parent.poll() is None, "it ended before its helper was at work"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(_marked(mark)) > 1
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + SECONDS
    while (left := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _plugin(folder: Path, name: str) -> Path:
    path = folder / f"{name}.py"
    path.write_text(PLUGIN.format(sign=str(folder / "sign"), stem=name))
    return path


linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


@linux
@pytest.mark.parametrize("code", [HOLDS_THE_LOCK, "while True: pass", "import time; time.sleep(3600)"])
def test_a_helper_ends_with_its_parent(code: str, mark: str, tmp_path: Path) -> None:
    (tmp_path / "endless_helper.py").write_text(f"from pathlib import Path; Path('sign').touch()\n{code}")
    parent = f"import sys; sys.path.append({str(tmp_path)!r}); from cglsuite.base.helpers import Helper; Helper('endless_helper').wait()"
    assert _outlived([sys.executable, "-c", parent], mark, tmp_path / "sign") == set()


@linux
def test_a_helper_ends_with_the_processes_of_its_group(mark: str, tmp_path: Path) -> None:
    code = "import os, time; os.fork(); from pathlib import Path; Path('sign').touch(); time.sleep(3600)"
    (tmp_path / "forking_helper.py").write_text(code)
    start = "Helper('forking_helper', start_new_session=True).wait()"
    parent = f"import sys; sys.path.append({str(tmp_path)!r}); from cglsuite.base.helpers import Helper; {start}"
    assert _outlived([sys.executable, "-c", parent], mark, tmp_path / "sign") == set()


@linux
def test_a_plugin_on_trial_ends_with_the_command(mark: str, tmp_path: Path) -> None:
    plugin = tmp_path / "endless_trial.py"
    plugin.write_text(f"from pathlib import Path; Path({str(tmp_path / 'sign')!r}).touch(); {HOLDS_THE_LOCK}")
    assert _outlived([COMMAND, "list", "methods", "--plugin", str(plugin)], mark, tmp_path / "sign") == set()


@linux
@pytest.mark.nightly
def test_judge_and_method_end_with_the_command(mark: str, tmp_path: Path) -> None:
    plugin = str(_plugin(tmp_path, "endless_judged"))
    words = [COMMAND, "check", "endless", "--plugin", plugin, "--where", "testing-nodes/class-il"]
    assert _outlived(words, mark, tmp_path / "sign") == set()


@linux
@pytest.mark.nightly
def test_workers_end_with_the_command(mark: str, tmp_path: Path) -> None:
    plugin = str(_plugin(tmp_path, "endless_cell"))
    (tmp_path / "endless.toml").write_text(CAMPAIGN)
    words = [COMMAND, "run", "endless.toml", "--store", "store", "--no-reports", "--plugin", plugin]
    assert _outlived(words, mark, tmp_path / "sign") == set()


@linux
@pytest.mark.nightly
def test_kernels_end_with_the_command(mark: str, tmp_path: Path) -> None:
    parent = RENDER.format(sign=str(tmp_path / "sign"), code=HOLDS_THE_LOCK)
    assert _outlived([sys.executable, "-c", parent], mark, tmp_path / "sign") == set()


def test_a_helper_has_a_limit_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_helper.py").write_text("import time; time.sleep(3600)")
    monkeypatch.syspath_prepend(tmp_path)
    assert Helper("slow_helper", limit_s=0.5).wait(60) == -signal.SIGALRM


def test_a_step_restarts_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "_limit_s", 1000.0)
    try:
        helpers.restart_time_limit()
        assert 990 < signal.getitimer(signal.ITIMER_REAL)[0] <= 1000
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_the_current_folder_of_a_session_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", "/a", "b"])
    assert helpers.module_path() == ["/a", str(tmp_path / "b"), str(tmp_path)]


# The current folder

SHADOWS = (
    *("cglsuite", "torch", "random", "json", "runpy", "numpy", "pickle", "subprocess", "click", "pluggy", "nbformat"),
    *("ipykernel_launcher", "sitecustomize"),
)
TINY = """
name = "tiny"
[grid]
scenarios = ["synthetic-csbm/class-il@begin-1"]
methods = ["bare"]
[set]
training.epochs = 1
scenario.n_tasks = 2
[[report]]
notebook = "campaign_report"
"""


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("plugins doctor", marks=pytest.mark.nightly),
        "list methods --plugin ../plug_in.py",
        pytest.param("check --kind method bare --quick --where testing-nodes/class-il", marks=pytest.mark.nightly),
        pytest.param("check --kind metric average_performance", marks=pytest.mark.nightly),
        pytest.param("check --kind notebook campaign_report --only runs", marks=pytest.mark.nightly),
        pytest.param("check --kind executor local --only runs", marks=pytest.mark.nightly),
        pytest.param("run ../tiny.toml --store ../store", marks=pytest.mark.nightly),
        pytest.param(
            "cell --scenario synthetic-csbm/class-il@begin-1 --method bare --set training.epochs=1 --store ../store",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_the_current_folder_shadows_no_module(words: str, tmp_path: Path) -> None:
    """A file ``random.py`` in the folder that is being looked at is run by no process that a command starts."""
    folder, ran = tmp_path / "folder", tmp_path / "ran"
    folder.mkdir()
    (tmp_path / "tiny.toml").write_text(TINY)
    (tmp_path / "plug_in.py").write_text(PLUGIN.format(sign="", stem="plug_in"))
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write({name!r} + ' ')\nraise SystemExit({name!r})\n")
    done = subprocess.run([COMMAND, *words.split()], cwd=folder, capture_output=True, text=True, check=False)
    assert not ran.exists(), ran.read_text()
    assert done.returncode == 0, done.stdout + done.stderr
