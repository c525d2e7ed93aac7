"""Plugins that change the process that loads them: each is quarantined and named, and listings stay what they are."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from plugin_sites import Site

from cglsuite.host.discovery import BUILT_IN, Gate
from cglsuite.host.doctor import diagnose
from cglsuite.host.probe import _code

SPEC = """
from cglsuite import MethodSpec, hookimpl
@hookimpl
def cglsuite_methods():
    return [MethodSpec(name="{name}", summary="s", factory="a:b")]
"""
CHILD = "import os, sys\nos.posix_spawn(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)'], os.environ, setsid=True)"
ACTS = {
    "leaves-thread": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), name='mine').start()",
        "1 thread is still running (mine)",
    ),
    "leaves-raw-thread": ("import _thread, time\n_thread.start_new_thread(time.sleep, (600,))", "1 thread is still running (unnamed)"),
    "leaves-child": (CHILD, "1 child process is still running ("),
    "forks": ("import os\nos.fork()", "the process was forked"),
    "forks-tidily": ("import os\npid = os.fork()\nif pid == 0:\n    os._exit(0)\nos.waitpid(pid, 0)", "the process was forked"),
    "writes-to-1": ("import os\nos.write(1, b'hello')", "file descriptor 1 was written to"),
    "writes-by-child": ("import subprocess\nsubprocess.run(['echo', 'hello'])", "file descriptor 1 was written to"),
    "changes-folder": ("import os\nos.chdir('/')", "the working folder is now /"),
    "sets-variable": ("import os\nos.environ['ANY'] = '1'", "environment variables have changed (ANY)"),
    "drops-variable": ("import os\ndel os.environ['HOME_OF_TEST']", "environment variables have changed (HOME_OF_TEST)"),
    "handles-signals": ("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)", "handlers of signals have changed (SIGTERM)"),
    "sets-umask": ("import os\nos.umask(0)", "the umask is now 0"),
    "sets-limit": ("import resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))", "limits of resources have changed (RLIMIT_CORE)"),
    "sets-path": ("import sys\nsys.path.insert(0, '/nowhere')", "sys.path has changed"),
    "sets-excepthook": ("import sys\nsys.excepthook = lambda *a: None", "hooks of Python have changed (sys.excepthook)"),
    "seeds": ("import random\nrandom.seed(0)", "random's global state has changed"),
    "stops-collecting": ("import gc\ngc.disable()", "settings of Python have changed (garbage collection)"),
    "patches-suite": (
        "import cglsuite.base.hashing\ncglsuite.base.hashing.digest = lambda what: '0' * 64",
        "cglsuite.base.hashing.digest was replaced",
    ),
    "patches-class": (
        "from cglsuite.host.discovery import PluginRecord\ndef label(self): return 'all mine'\nPluginRecord.__repr__ = label",
        "cglsuite.host.discovery.PluginRecord.__repr__ was replaced",
    ),
    "patches-python": ("import json\njson.dumps = lambda *a, **k: '{}'", "json.dumps was replaced"),
    "closes": ("import os\nos.closerange(0, 256)", "was closed"),
}
"""What a plugin does when it is imported, and what is said of it."""


def install(site: Site, name: str) -> None:
    module = name.replace("-", "_")
    text = f"{ACTS[name][0]}\n{SPEC.format(name=name)}"
    site.add(name, files={f"{module}.py": text}, entry_points={"p": module})


def test_a_library_that_draws_while_it_loads_is_no_fault_of_the_plugin(site: Site) -> None:
    """As rich does, which scikit-learn loads where it is installed; the plugin itself must not draw (``seeds``)."""
    files = {
        "imports_it.py": "import drawing_library\n" + SPEC.format(name="imports-it"),
        "drawing_library.py": "import random\nrandom.random()\n",
    }
    site.add("imports-it", files=files, entry_points={"p": "imports_it"})
    records = {r["distribution"]: r for r in json.loads(site.run("plugins", "--json").stdout)}
    assert records["imports-it"]["status"] == "ok", records["imports-it"]


@pytest.mark.nightly
def test_whatever_a_plugin_changes_is_found_by_the_trial_and_named(site: Site) -> None:
    """All in one process one after the other, beside one in order; the second listing reads the verdicts."""
    for name in ACTS:
        install(site, name)
    site.add("healthy")
    began = time.monotonic()
    for _ in range(2):
        listed = site.run("plugins", "--json", HOME_OF_TEST="1", CGLSUITE_PLUGINS_TIMEOUT="60")
        records = {r["distribution"]: r for r in json.loads(listed.stdout) if r["distribution"] in site.distributions}
        assert records["healthy"]["status"] == "ok"
        for name, (_, message) in ACTS.items():
            record = records[name]
            assert record["status"] == "failed", name
            assert record["error"].startswith("changes the state of the process that loads it: "), record["error"]
            assert message in record["error"], record["error"]
            assert f"block it (CGLSUITE_PLUGINS_BLOCK={name})" in record["fix"]
            assert "to try it again, delete" in record["fix"]
    assert time.monotonic() - began < 55  # nobody waited for a thread


COPY = """
import os, sys, time
from cglsuite.host.probe import Forks, load_and_find_changes
from cglsuite.host.discovery import PluginRecord

record = PluginRecord(distribution="d", version="1", entry_point="e", module="m", status="ok")
forks, whose = Forks(), os.getpid()

def load():
    os.fork()
    return record, ()

_, _, changes, _ = load_and_find_changes(load, forks)
print("the copy" if os.getpid() != whose else sorted(changes), flush=True)
if os.getpid() == whose:
    os.wait()
"""


def test_a_copy_of_the_process_that_a_plugin_leaves_ends_at_once() -> None:
    """Two processes would go on with the trial otherwise, and answer twice."""
    done = subprocess.run([sys.executable, "-c", COPY], capture_output=True, text=True, check=True, timeout=60)
    assert "the process was forked" in done.stdout
    assert "the copy" not in done.stdout


def test_objects_that_fail_when_they_are_looked_at_are_let_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch has such: whoever imports PyG at the top of a plugin has them in the process."""

    class Lazy:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"not compiled with {name}")

    monkeypatch.setitem(vars(json), "lazy", Lazy())  # setattr of old releases of pytest looks at the value
    names = dict(_code())
    assert "json.dumps" in names
    assert "json.lazy" not in names


def test_the_doctor_finds_it_too(site: Site) -> None:
    install(site, "changes-folder")
    gate = Gate.from_environment(block=["cglsuite"], allow=site.distributions)
    (found,) = [d for d in diagnose(gate=gate) if d.record and d.record.distribution == "changes-folder"]
    (fault,) = found.faults
    assert fault.error.startswith("changes the state of the process that loads it: the working folder is now / (was ")


def test_output_of_a_plugin_stays_out_of_a_listing(site: Site) -> None:
    """Of one, too, that behaved when it was tried."""
    text = f"import os\nif os.environ.get('NOW'):\n    os.write(1, b'noise')\n    print('more')\n{SPEC.format(name='later')}"
    site.add("later", files={"later.py": text}, entry_points={"p": "later"})
    assert "later" in site.run("list", "methods").stdout
    listed = site.run("list", "methods", "--json", NOW="1")
    assert [entry["name"] for entry in json.loads(listed.stdout)] == ["later"]
    assert "noise" in listed.stderr
    assert "more" in listed.stderr


def test_the_list_of_built_in_distributions_is_complete() -> None:
    plugins = {path.name for path in (Path(__file__).parents[2] / "plugins").glob("cglsuite-*") if (path / "pyproject.toml").is_file()}
    assert plugins | {"cglsuite"} == BUILT_IN
