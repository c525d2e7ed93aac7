"""A pretend accelerator: the device ``pretend``, in host memory, as strict as CUDA; see pretend_device.cpp.

It runs the CPU's kernels, so that cells end with the CPU's numbers. It shows that code is free of mixed devices and of draws from the wrong
generator, and where the host would wait for the device. It says nothing of CUDA's own kernels, memory and speed.

Its kernels are compiled once per source and version of torch, in a quarter of a minute, into a folder that processes share. As an
:class:`~cglsuite.cells.device.Accelerator` it reaches the command line by an entry point, as those of other distributions do::

    subprocess.run([sys.executable, "-m", "cglsuite", "cell", ..., "--device", "pretend"], env=entry_point(folder))
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["PRETEND", "Crossing", "PretendDevice", "absence", "built", "crossings", "entry_point", "install", "line"]

SOURCE = Path(__file__).with_name("pretend_device.cpp")
NAME = "_pretend_device"
UPLOAD = "upload"
"""The kind of crossing that the host does not wait for: a copy from pinned memory that may be queued, or a single number. The others are
``blocking-upload``, ``download``, ``wait`` and ``cpu-index``."""


class Crossing(NamedTuple):
    """Where host and device met: what happened, by which operator, and the line of the suite that caused it."""

    kind: str
    operator: str
    line: str


def absence() -> str:
    """Why there can be no pretend device here; empty where there can."""
    if not sys.platform.startswith("linux"):
        return "the pretend device is compiled on Linux only"
    return "" if shutil.which("g++") else "no compiler: g++ is not installed"


def built() -> Path:
    """The compiled extension; the first process that asks compiles it, others wait."""
    flags = ["-O0", "-std=c++20", "-fPIC", "-shared", f"-DTORCH_EXTENSION_NAME={NAME}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
    made_of = [SOURCE.read_text(encoding="utf-8"), importlib.metadata.version("torch"), sys.version, *flags]
    name = hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:16]
    # Of this user alone: what lies there is loaded into the process.
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cglsuite-tests" / name
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{NAME}.so"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return target
        from torch.utils import cpp_extension

        include = [f"-I{path}" for path in (*cpp_extension.include_paths(), sysconfig.get_path("include"))]
        libraries = [word for path in cpp_extension.library_paths() for word in (f"-L{path}", f"-Wl,-rpath,{path}")]
        linked = ["-ltorch", "-ltorch_cpu", "-ltorch_python", "-lc10"]
        with tempfile.TemporaryDirectory(dir=folder) as room:
            fresh = Path(room, target.name)
            words = ["g++", *flags, *include, str(SOURCE), "-o", str(fresh), *libraries, *linked]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{SOURCE.name} does not compile:\n{done.stderr[-4000:]}")
            fresh.replace(target)
    return target


def install() -> Any:
    """Make ``torch.device("pretend")`` work in this process, once; returns the extension."""
    if NAME in sys.modules:
        return sys.modules[NAME]
    import torch

    spec = importlib.util.spec_from_file_location(NAME, built())
    assert spec is not None
    assert spec.loader is not None
    extension = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(extension)
    sys.modules[NAME] = extension
    torch.utils.rename_privateuse1_backend("pretend")
    module: Any = types.ModuleType("torch.pretend")
    module.is_available = module.is_initialized = lambda: True
    module.device_count = lambda: 1
    module.current_device = lambda: 0
    module._is_in_bad_fork = lambda: False
    module.manual_seed = module.manual_seed_all = lambda seed: None
    module.synchronize = lambda *device: None
    module.get_rng_state = lambda device=None: torch.random.get_rng_state()
    module.set_rng_state = lambda state, device=None: None
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    torch._register_device_module("pretend", module)
    return extension


class PretendDevice:
    """The :class:`~cglsuite.cells.device.Accelerator`."""

    def available(self) -> bool:
        """Whether it can be compiled here."""
        return not absence()

    def prepare(self) -> None:
        """Compile it, if need be, and make torch know it."""
        install()


PRETEND = PretendDevice()


@contextmanager
def crossings() -> Iterator[Counter[Crossing]]:
    """Count the crossings within the context, by kind, operator and line."""
    extension, seen = install(), Counter[Crossing]()
    extension.listen(lambda kind, operator, n_bytes: seen.update([Crossing(kind, operator.removeprefix("aten::"), line())]))
    try:
        yield seen
    finally:
        extension.listen(None)


def line() -> str:
    """``module:line`` of the innermost frame of the suite or a plugin; autograd's threads have none."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.partition(".")[0].startswith("cglsuite"):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return "no line of the suite (a backward pass)"


def entry_point(folder: Path) -> dict[str, str]:
    """The environment of a process to whose command line ``--device pretend`` is known, by a distribution in ``folder``."""
    info = folder / "pretend_device-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pretend-device\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[cglsuite.devices]\npretend = pretend_device:PRETEND\n", encoding="utf-8")
    path = [str(folder), str(SOURCE.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
