"""Give a tox environment the suite's packages on top of one shared, fully resolved set of third-party distributions.

The whole stack takes about a minute and 2 GB to install. It is installed once, into ``<work-dir>/base-<python>-<fingerprint>``, from what
all ``pyproject.toml`` files of the repository ask for and ``constraints.txt`` pins. Every environment is then a tiny one of its own whose
``.pth`` file adds the base's site-packages behind its own, so that environments differ only in which of our packages they hold and nothing
is resolved twice. A base is never changed after it is complete: other requirements or constraints make another fingerprint.

Run by the environment's own Python, with nothing but the standard library::

    python tests/tools/overlay.py --work-dir .tox . plugins/cglsuite-node      # these packages, editable
    python tests/tools/overlay.py --work-dir .tox                              # third-party distributions only
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

from warm import LIBRARIES

__all__ = ["all_but", "attach", "compile_by_import", "ensure_base", "fingerprint", "install", "main", "requirements"]

ROOT = Path(__file__).resolve().parents[2]
OURS = re.compile(r"cglsuite\b", re.IGNORECASE)
COMPLETE = "complete.json"
PYTHON = f"py{sys.version_info[0]}{sys.version_info[1]}"  # each version has a base of its own, side by side
PTH = "_shared_base.pth"


def requirements(root: Path, leave_out: tuple[str, ...] = ("dev", "jupyter")) -> list[str]:
    """What every package of the repository needs from third parties: to run, to be built, to be tested; ``leave_out`` names extras."""
    found: set[str] = set()
    for path in sorted([root / "pyproject.toml", *root.glob("plugins/*/pyproject.toml")]):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        project = content["project"]
        found.update(content["build-system"]["requires"], project.get("dependencies", ()))
        for name, extra in project.get("optional-dependencies", {}).items():
            if name not in leave_out:  # dev adds tox, which is outside of every environment; jupyter has one of its own
                found.update(extra)
    return sorted(r for r in found if not OURS.match(r))


def all_but(root: Path, name: str) -> list[Path]:
    """The folders of the core and of every built-in plugin but ``name`` and those that need it."""
    projects = {}
    for path in sorted(root.glob("plugins/*/pyproject.toml")):
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        needs = {re.split(r"[^A-Za-z0-9-]", d, maxsplit=1)[0] for d in project.get("dependencies", ())}
        projects[project["name"]] = (path.parent, needs)
    if name not in projects:
        raise SystemExit(f"overlay: no plugin {name!r}; there are {', '.join(projects)}")
    dropped = {name}
    while more := {n for n, (_, needs) in projects.items() if n not in dropped and needs & dropped}:
        dropped |= more
    return [root, *(folder for n, (folder, _) in projects.items() if n not in dropped)]


def fingerprint(wanted: list[str], constraints: str) -> str:
    """Twelve hex digits that change with anything that could change what is installed in the base."""
    pins = [line for line in constraints.splitlines() if line.strip() and not line.startswith("#")]
    parts = [wanted, pins, platform.python_version(), sys.base_prefix, sys.platform, platform.machine()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock: environments may be made side by side (``tox -p``). The system frees it if the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def pip(*arguments: str) -> None:
    """Run this environment's pip; a failure ends the program with pip's own message and status."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    status = subprocess.run(command, check=False).returncode
    if status:
        raise SystemExit(status)


def compile_by_import(python: str, *groups: list[str]) -> None:
    """Import modules, each group in a process of its own, so that their byte-code is there: environments that begin side by side, with
    several workers each, would all compile the same. What is not installed is left out."""
    script = (
        "import contextlib, importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    with contextlib.suppress(ImportError):\n"
        "        importlib.import_module(name)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = [subprocess.Popen([python, "-W", "ignore", "-c", script, *names], env=environment) for names in groups]
    for process in begun:
        process.wait()


def ensure_base(work_dir: Path, root: Path) -> Path:
    """The folder of a complete base; made if it is absent, and older ones removed, under a lock."""
    constraints = root / "constraints.txt"
    wanted = requirements(root)
    base = work_dir / f"base-{PYTHON}-{fingerprint(wanted, constraints.read_text(encoding='utf-8'))}"
    with locked(work_dir / "base.lock"):
        if (base / COMPLETE).is_file():
            return base
        for old in work_dir.glob(f"base-{PYTHON}-*"):  # an interrupted one, or one that nothing will use again
            shutil.rmtree(old)
        print(f"overlay: making {base.name} with {len(wanted)} requirements and what they need; later runs reuse it", flush=True)
        start = time.monotonic()
        venv.create(base, with_pip=False, symlinks=True)
        listing = base / "requirements.txt"
        listing.write_text("\n".join(wanted) + "\n", encoding="utf-8")
        python = str(base / "bin" / "python")
        # Compiling all of it would take two thirds of the time, and most of it is never imported.
        pip("--python", python, "install", "--quiet", "--no-compile", "-c", str(constraints), "-r", str(listing))
        compile_by_import(python, *([n for n in LIBRARIES if n.startswith("torch") is first] for first in (True, False)))
        seconds = round(time.monotonic() - start, 1)
        (base / COMPLETE).write_text(json.dumps({"requirements": wanted, "seconds": seconds}, indent=1) + "\n", encoding="utf-8")
        print(f"overlay: {base.name} is complete after {seconds} s", flush=True)
    return base


def attach(base: Path) -> None:
    """Put the base's modules behind this environment's own, and its data files (nbconvert's templates) under this environment's prefix."""
    own = Path(sysconfig.get_path("purelib"))
    variables = {"base": str(base), "platbase": str(base)}
    sites = dict.fromkeys(sysconfig.get_path(name, vars=variables) for name in ("purelib", "platlib"))
    lines = [f"import site; site.addsitedir({site!r})\n" for site in sites]  # addsitedir also reads the base's own .pth files
    (own / PTH).write_text("".join(lines), encoding="utf-8")
    share = Path(sys.prefix) / "share"
    share.mkdir(exist_ok=True)
    link = share / "jupyter"
    if link.is_symlink():
        link.unlink()
    link.symlink_to(base / "share" / "jupyter")


def _ours() -> list[str]:
    """Names of our distributions installed in this environment."""
    installed = importlib.metadata.distributions(path=[sysconfig.get_path("purelib")])
    return sorted({d.name for d in installed if OURS.match(d.name)})


def install(base: Path, packages: list[Path]) -> None:
    """Install our packages as editable ones without touching anything else; does nothing where that has been done already."""
    texts = [(str(p), (p / "pyproject.toml").read_text(encoding="utf-8")) for p in packages]
    state = json.dumps([base.name, texts])
    stamp = Path(sys.prefix) / "overlay.json"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == state:
        return
    stamp.unlink(missing_ok=True)
    if stale := _ours():
        pip("uninstall", "--quiet", "--yes", *stale)
    if packages:
        editable = [word for p in packages for word in ("-e", str(p))]
        pip("install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", *editable)
    pip("check")
    stamp.write_text(state, encoding="utf-8")


def main(argv: list[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("packages", nargs="*", type=Path, help="folders of our packages to install, editable")
    parser.add_argument("--work-dir", type=Path, default=ROOT / ".tox", help="where the shared base lives")
    parser.add_argument("--all-but", metavar="NAME", help="install the core and all plugins but this one (without-NAME also names it)")
    options = parser.parse_args(argv)
    if options.all_but:
        options.packages = all_but(ROOT, "cglsuite-" + options.all_but.removeprefix("without-").removeprefix("cglsuite-"))
    if sys.prefix == sys.base_prefix:
        raise SystemExit("overlay: run this with the Python of a virtual environment; it changes the environment it runs in")
    base = ensure_base(options.work_dir.resolve(), ROOT)
    attach(base)
    install(base, [p.resolve() for p in options.packages])


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)  # what is installed here must not depend on what the caller could import
    main()
