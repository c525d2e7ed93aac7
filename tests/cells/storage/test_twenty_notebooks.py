"""Twenty notebooks at once over one store that none of them may write."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from other_users import STUDENT, as_user, group_folder, modes, needs_root
from stored_records import key_of, record

from cglsuite.cells.records.record import Curves
from cglsuite.cells.storage.store import Store

NOTEBOOKS = 20
RECORDS = 12
CURVES = Curves.of([{"task": 1, "loss": [1.0, 0.5], "monitor": [], "best_epoch": None}], [])
SEEN = [(key_of(n), "done", [[1.0, 0.5]]) for n in range(1, RECORDS + 1)]


def look(mine: Path, shared: Path) -> list[Any]:
    """What a notebook of the course does: list, tabulate, read records with their curves, and put one of its own."""
    store = Store(mine, read=[shared])
    keys = [key_of(n) for n in range(1, RECORDS + 1)]
    assert store.unfinished([*keys, key_of(99)]) == [key_of(99)]
    assert len(list(store.rows(keys))) == RECORDS
    store.sweep()
    store.warn_without_locks()
    lease = store.lease(key_of(99))
    assert lease is not None
    with lease:
        store.put(record(99))
    found = dict(store.find(keys))
    return [(key, one.status, [curve["loss"] for curve in one.training_curves()]) for key, one in found.items() if one is not None]


@pytest.fixture
def course() -> Iterator[Path]:
    """A store that its group writes and everybody reads."""
    with group_folder(0o2755) as path:
        for n in range(1, RECORDS + 1):
            Store(path).put(record(n, beside=CURVES))
        yield path


@needs_root
def test_twenty_students_read_one_store_at_once(course: Path) -> None:
    """Each sees every result with its curves and trains into a store of its own; the shared one is untouched."""
    before = modes(course)
    for n in range(NOTEBOOKS):
        (mine := course.parent / f"student-{n}").mkdir()
        os.chown(mine, STUDENT + n, STUDENT + n)
    with ThreadPoolExecutor(NOTEBOOKS) as pool:
        # Forks of one process, since a kernel each would take minutes: those are below.
        work = lambda n: as_user(STUDENT + n, lambda: look(course.parent / f"student-{n}", course), group=STUDENT + n)  # noqa: E731
        assert list(pool.map(work, range(NOTEBOOKS))) == [SEEN] * NOTEBOOKS
    assert modes(course) == before
    assert all(Store(course.parent / f"student-{n}").keys() == [key_of(99)] for n in range(NOTEBOOKS))


@pytest.fixture
def read_only(course: Path) -> Iterator[Path]:
    """The same on a file system that is mounted read-only, which binds root as well."""
    place = course.parent / "mounted"
    place.mkdir()
    commands = (["mount", "--bind", str(course), str(place)], ["mount", "-o", "remount,bind,ro", str(place)])
    if any(subprocess.run(command, check=False, capture_output=True).returncode for command in commands):
        subprocess.run(["umount", "-l", str(place)], check=False, capture_output=True)
        pytest.skip("nothing can be mounted read-only here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def in_kernel(n: int, shared: Path) -> str:
    """What :func:`look` sees in a kernel of its own."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import KernelManager

    code = f"""
    import sys
    sys.path[:0] = {[str(Path(__file__).parent), *sys.path]!r}
    from pathlib import Path
    from test_twenty_notebooks import look
    seen = look(Path({str(shared.parent)!r}, "kernel-{n}"), Path({str(shared)!r}))
    print(len(seen), {{status for _, status, _ in seen}}, {{str(losses) for *_, losses in seen}})
    """
    manager = KernelManager()
    manager._kernel_spec = KernelSpec(argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], display_name="Python")
    manager.start_kernel()
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=600)
        printed: list[str] = []
        hook = lambda message: printed.append(str(message["content"].get("text", message["content"].get("traceback", ""))))  # noqa: E731
        client.execute_interactive(textwrap.dedent(code), timeout=600, output_hook=hook)
        return "".join(printed).strip()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@needs_root
@pytest.mark.nightly
def test_twenty_kernels_read_one_store_at_once(read_only: Path) -> None:
    """The same in real kernels, started together by a process of their own."""
    before, path = modes(read_only), os.pathsep.join(sys.path)
    command = [sys.executable, "-W", "ignore", __file__, str(read_only)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    *answers, seconds = done.stdout.splitlines()
    print(f"{NOTEBOOKS} kernels: {seconds} s")
    assert answers == [f"{RECORDS} {{'done'}} {{'[[1.0, 0.5]]'}}"] * NOTEBOOKS
    assert modes(read_only) == before


if __name__ == "__main__":
    began = time.monotonic()
    with ThreadPoolExecutor(NOTEBOOKS) as kernels:
        for answer in kernels.map(in_kernel, range(NOTEBOOKS), [Path(sys.argv[1])] * NOTEBOOKS):
            print(answer)
    print(f"{time.monotonic() - began:.1f}")
