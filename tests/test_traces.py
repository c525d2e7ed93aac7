"""The garbage collector of a process of our own; what is left running is tested with cleanliness (tests/cells/process)."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cglsuite.base.traces import pause_collector, resume_collector


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """As it was, with nothing out of its reach."""
    yield
    resume_collector()
    gc.unfreeze()
    gc.enable()


def test_it_rests_until_it_is_woken_and_leaves_alone_what_there_is() -> None:
    pause_collector()
    assert not gc.isenabled()
    resume_collector()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 1000


def test_who_did_not_have_it_rest_does_not_wake_it() -> None:
    """A notebook's own collector stays as its user has it."""
    before = gc.get_freeze_count()
    resume_collector()
    assert gc.isenabled()
    gc.disable()
    pause_collector()
    resume_collector()
    assert not gc.isenabled()
    assert gc.get_freeze_count() == before


COMMAND = """
import gc, sys
from cglsuite.cli import main
from cglsuite.cli.options import Session
seen = {}
catalogue = Session.catalogue
def looked(self):
    seen["planning"] = gc.isenabled()
    return catalogue(self)
Session.catalogue = looked
def build(*given):
    seen["training"] = gc.isenabled()
    return built(*given)
if "cell" in sys.argv:
    import cglsuite.cells.run as run
    built, run.build_stream = run.build_stream, build
main.end_process = lambda status: print(status, seen, gc.isenabled(), file=sys.stderr)
main.main()
"""


def ended(*words: str) -> str:
    """The last words of a process that runs a command and looks at the collector."""
    done = subprocess.run([sys.executable, "-c", COMMAND, *words], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[-1]


@pytest.mark.nightly
def test_a_cell_is_planned_without_and_trained_with_it(tmp_path: Path) -> None:
    words = ("cell", "--scenario", "testing-nodes/class-il", "--method", "testing-fine-tuning", "--store", str(tmp_path), "-q")
    assert ended(*words) == "0 {'planning': False, 'training': True} True"
    assert ended(*words) == "0 {'planning': False} False", "with the record of the first command this one ends at once"


def test_other_commands_have_it_all_the_time() -> None:
    assert ended("list", "metrics") == "0 {'planning': True} True"


ENDING = """
import sys, threading, time
from cglsuite.base.traces import end_process
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
if "left" in sys.argv:
    threading.Thread(target=time.sleep, args=(60,)).start()
end_process(7)
print("returned")
"""


@pytest.mark.parametrize(("words", "status", "out"), [(("left",), 7, ""), ((), 0, "returned\n")])
def test_one_thread_that_would_block_the_exit_is_enough_to_end_at_once(words: tuple[str, ...], status: int, out: str) -> None:
    """A daemon beside it changes nothing; alone it blocks nothing."""
    done = subprocess.run([sys.executable, "-c", ENDING, *words], capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stdout) == (status, out)


_ORPHAN = """
import os, time
from cglsuite.base.traces import end_with_parent

middle = os.fork()
if middle == 0:
    parent = os.getpid()
    if os.fork() == 0:
        while os.getppid() == parent:
            time.sleep(0.001)
        end_with_parent(parent)
        print("lived on", flush=True)
    os._exit(0)
os.waitpid(middle, 0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_process_whose_parent_has_ended_already_ends() -> None:
    """Its pipe stays open until the orphan has ended, so nothing is left to wait for."""
    done = subprocess.run([sys.executable, "-c", _ORPHAN], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
