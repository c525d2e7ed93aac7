"""Write the workflow of continuous integration from ``tox.ini``: one job per environment, so that none is forgotten.

python tests/tools/workflow.py            # writes .github/workflows/test.yml
python tests/tools/workflow.py --check    # ends with status 1 if it is not what tox.ini says
"""

from __future__ import annotations

import argparse
import configparser
import itertools
import re
from pathlib import Path

__all__ = ["FILE", "environments", "expanded", "label", "main", "workflow"]

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(".github/workflows/test.yml")
DEFAULT_PYTHON = "3.11"
FULL = "full"
HEAD = """\
# Written by tests/tools/workflow.py from tox.ini: one job per environment. Do not edit it; run that instead.
name: test

on:
  push:
    branches: [main]
  pull_request:
  schedule:
    - cron: "0 4 * * 1" # weekly: new releases of dependencies are tried without a push

permissions:
  contents: read

concurrency:
  group: ${{ github.workflow }}-${{ github.ref }}
  cancel-in-progress: true

jobs:
"""
JOB = """\
  {name}:
    name: {name}
    runs-on: ubuntu-latest
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "{python}"
          cache: pip
          cache-dependency-path: constraints.txt
{more}      - run: python -m pip install -c constraints.txt tox
      - run: tox run -e {name}
"""
SLURM = """\
      - run: sudo apt-get update && sudo apt-get install --yes --no-install-recommends slurm-wlm munge
"""


def expanded(text: str) -> list[str]:
    """The names of a comma-separated list with braces, as tox expands them: ``a-{b,c}, d`` is a-b, a-c, d."""
    names = []
    for part in re.findall(r"(?:\{[^}]*\}|[^,{}\s])+", text):
        pieces = [piece[1:-1].split(",") if piece.startswith("{") else [piece] for piece in re.findall(r"\{[^}]*\}|[^{}]+", part)]
        names += ["".join(choice.strip() for choice in choices) for choices in itertools.product(*pieces)]
    return names


def _ini(root: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(root / "tox.ini", encoding="utf-8")
    return parser


def environments(root: Path = ROOT) -> list[str]:
    """Every environment that ``tox.ini`` describes, in its order."""
    sections = [s.removeprefix("testenv:") for s in _ini(root).sections() if s.startswith("testenv:")]
    return [name for section in sections for name in expanded(section)]


def label(name: str, root: Path = ROOT) -> list[str]:
    """The environments of a label of ``tox.ini``."""
    labels = dict(line.split(" = ", 1) for line in _ini(root)["tox"]["labels"].strip().splitlines())
    return expanded(labels[name])


def workflow(root: Path = ROOT) -> str:
    """The text of the workflow: a job for each environment of the label ``full``."""
    jobs = []
    for name in label(FULL, root):
        newer = re.fullmatch(r"py(\d)(\d+)", name)
        python = f"{newer[1]}.{newer[2]}" if newer else DEFAULT_PYTHON
        jobs.append(JOB.format(name=name, python=python, more=SLURM if name in {"slurm", "nightly"} else ""))
    return HEAD + "\n".join(jobs)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()
    file, text = ROOT / FILE, workflow()
    if options.check:
        raise SystemExit(0 if file.is_file() and file.read_text(encoding="utf-8") == text else f"{FILE} is old: run {Path(__file__).name}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
