"""Build wheels of the core and the plugins, install them, and run the main jobs from a folder outside the repository.

Run by the Python of an environment that holds the third-party distributions and none of ours (see overlay.py), in a scratch folder: what
works here works for someone who has only the wheels.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (ROOT, *sorted(ROOT.glob("plugins/cglsuite-*")))
COMMAND = Path(sys.executable).with_name("cglsuite")
SMALL = ("--set", "training.epochs=3")


def say(step: str, start: float) -> None:
    """One line per finished step, with its time."""
    print(f"wheel: {step} ({time.monotonic() - start:.1f} s)", flush=True)


def run(*command: str | Path, expected: int = 0) -> str:
    """The standard output of a command that must end with status ``expected``."""
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != expected:
        raise SystemExit(f"wheel: status {done.returncode}, expected {expected}: {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def check(condition: bool, failure: str) -> None:
    """End the program with ``failure`` unless the condition holds."""
    if not condition:
        raise SystemExit(f"wheel: {failure}")


def install(dist: Path) -> None:
    """Build every package's wheel and install them all, offline and without resolving anything."""
    shutil.rmtree(dist, ignore_errors=True)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "-w", dist, *PACKAGES)
    wheels = sorted(dist.glob("*.whl"))
    check(len(wheels) == len(PACKAGES), f"{len(PACKAGES)} packages made {[w.name for w in wheels]}")
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", "--force-reinstall", *wheels)
    run(*pip, "check")
    where = run(sys.executable, "-c", "import cglsuite; print(cglsuite.__file__)").strip()
    check(ROOT / "cglsuite" not in Path(where).parents and "site-packages" in where, f"cglsuite comes from {where}, not from its wheel")


def listed(*words: str) -> Any:
    """What a command prints as JSON."""
    return json.loads(run(COMMAND, *words, "--json"))


def catalogue() -> None:
    """Every plugin loads, and every kind of thing is listed."""
    plugins = listed("plugins")
    check(all(p["status"] == "ok" for p in plugins), f"plugins at fault: {plugins}")
    for kind in ("datasets", "scenarios", "backbones", "methods", "metrics", "notebooks"):
        check(bool(listed("list", kind)), f"no {kind} are listed")
    run(COMMAND, "list", "nonsense", expected=2)


def cell(store: Path) -> None:
    """One cell trains, and the second time comes from the store with the same key and matrix."""
    words = ("cell", "--scenario", "synthetic-csbm/class-il@cglb-1", "--method", "er-gnn", *SMALL, "--store", str(store))
    first, second = listed(*words), listed(*words)
    check(first["status"] == "done", f"the cell is {first['status']}: {first.get('reason')}")
    check((first["key"], first["matrix"]) == (second["key"], second["matrix"]), "the same cell gave two results")


def campaign(store: Path, folder: Path) -> None:
    """The demonstration campaign, with few epochs, runs from a copy of its file and leaves a report that stands alone."""
    shutil.copy(ROOT / "reports" / "demo.toml", folder / "demo.toml")
    printed = run(COMMAND, "run", folder / "demo.toml", *SMALL, "--store", store)
    reports = [Path(line) for line in printed.splitlines() if line.endswith(".html")]
    check(bool(reports), f"no path of an HTML report was printed: {printed!r}")
    for report in reports:
        text = report.read_text(encoding="utf-8")
        check(len(text) > 10_000 and "<html" in text, f"{report} is no report")
        check("<script src=" not in text and 'rel="stylesheet" href="http' not in text, f"{report} fetches something")


def main() -> None:
    """Entry point."""
    here = Path.cwd()
    if here == ROOT:
        raise SystemExit("wheel: run this outside the repository's root, where nothing of it can be imported by accident")
    scratch = here / "outside"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    os.chdir(scratch)
    os.environ.update(CGLSUITE_CACHE=str(scratch / "cache"), CGLSUITE_STRICT="1")
    for step, job in (
        ("wheels built and installed", lambda: install(scratch / "dist")),
        ("catalogue listed", catalogue),
        ("a cell trained", lambda: cell(scratch / "store")),
        ("a campaign run and its report rendered", lambda: campaign(scratch / "store", scratch)),
    ):
        start = time.monotonic()
        job()
        say(step, start)


if __name__ == "__main__":
    main()
