"""Build wheels of the core and the plugins, install ``cglsuite[all]`` from them, and do what a newcomer does, outside the repository.

Run by the Python of an environment that holds the third-party distributions and none of ours (see overlay.py), in a scratch folder: what
works here works for someone who has only the wheels.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[2]
WHERE = """
import json
from importlib.metadata import distributions
from importlib.util import find_spec
names = [d.name for d in distributions() if d.name.startswith("cglsuite")]
print(json.dumps({name: find_spec(name.replace("-", "_")).origin for name in names}))
"""
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
PACKAGES = (ROOT, *sorted(ROOT.glob("plugins/cglsuite-*")))
SMALL = "training.epochs=1;dataset.n_nodes=400"
COMMAND = Path(sys.executable).with_name("cglsuite")


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
    """Build every package's wheel and install the core with the extra ``all``, which brings the others, from the folder of wheels."""
    run(*PIP, "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "-w", dist, *PACKAGES)
    names = sorted(wheel.name.partition("-")[0].replace("_", "-") for wheel in dist.glob("*.whl"))
    check(len(names) == len(PACKAGES), f"{len(PACKAGES)} packages made {names}")
    run(*PIP, "uninstall", "-qq", "--yes", *names)  # of an earlier run
    run(*PIP, "install", "--quiet", "--no-index", "--find-links", dist, "cglsuite[all]")
    where = json.loads(run(sys.executable, "-c", WHERE))
    check(sorted(where) == names, f"cglsuite[all] brought {sorted(where)}")
    here = sysconfig.get_path("purelib")
    check(all(path.startswith(here) for path in where.values()), f"not all modules come from wheels: {where}")


def catalogue() -> None:
    """Every plugin loads, and everything is listed."""
    plugins = json.loads(run(COMMAND, "plugins", "--json"))
    check(all(p["status"] == "ok" for p in plugins), f"plugins at fault: {plugins}")
    kinds = {entry["kind"] for entry in json.loads(run(COMMAND, "list", "--json"))}
    check(kinds >= {"dataset", "scenario", "backbone", "method", "metric", "notebook", "executor"}, f"only {kinds} are listed")
    run(COMMAND, "list", "nonsense", expected=2)


def demonstration() -> None:
    """The demonstration runs by its name and leaves reports here that stand alone; the second time nothing is trained."""
    command = (COMMAND, "run", "--example", "demo")
    printed = run(*command)
    reports = [Path(line) for line in printed.splitlines()]
    check([r.parent for r in reports] == 2 * [Path("rendered/demo")], f"expected the paths of two reports here: {printed!r}")
    for report in reports:
        text = report.read_text(encoding="utf-8")
        check(len(text) > 10_000 and "<html" in text, f"{report} is no report")
        check("<script src=" not in text and 'rel="stylesheet" href="http' not in text, f"{report} fetches something")
    records = {path: path.stat().st_mtime_ns for path in Path(".cglsuite/cells").rglob("*.json")}
    check(len(records) >= 40, f"expected forty records: {sorted(records)}")
    run(*command, "--no-reports")
    changed = [str(path) for path, written in records.items() if path.stat().st_mtime_ns != written]
    check(not changed, f"the second run of the demonstration wrote {changed} again")


def notebook() -> None:
    """A notebook is handed out, unexecuted, once; it runs in Jupyter's kernel, on the demonstration's records."""
    words = (COMMAND, "notebook", "method_comparison", "--to", "mine")
    path = Path(run(*words).strip())
    run(*words, expected=2)
    check(path == Path("mine/method_comparison.ipynb") and not outputs(path), f"{path} has outputs, or is not where it was asked for")
    done = path.with_name("done.ipynb")
    parameters = ("-p", "campaign", "demo.toml", "-p", "methods", "er-gnn", "-p", "against", "bare", "-p", "train_missing", "False")
    run(sys.executable, "-m", "papermill", "--no-progress-bar", "--log-level", "ERROR", path, done, *parameters)
    check("er-gnn" in outputs(done), f"{done} shows no method of the demonstration")


def outputs(path: Path) -> str:
    """What the cells of a notebook have put out, as JSON; empty where it was not executed."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "".join(json.dumps(cell["outputs"]) for cell in cells if cell.get("outputs"))


def main() -> None:
    """Entry point."""
    here = Path.cwd()
    if here == ROOT:
        raise SystemExit("wheel: run this outside the repository's root, where nothing of it can be imported by accident")
    scratch = here / "outside"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    os.chdir(scratch)
    os.environ.update(CGLSUITE_CACHE=str(scratch / "cache"), CGLSUITE_STRICT="1", CGLSUITE_SET=SMALL)
    for step, job in (
        ("wheels built and installed", lambda: install(scratch / "dist")),
        ("catalogue listed", catalogue),
        ("the demonstration run and its reports rendered", demonstration),
        ("a notebook handed out and run", notebook),
    ):
        start = time.monotonic()
        job()
        say(step, start)


if __name__ == "__main__":
    main()
