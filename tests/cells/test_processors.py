"""Portable numerics on emulated processors: a few tiny cells are equal to those of this one in every bit.

``tests/benchmarks/processors.py`` and ``operations.py`` compare all; what they found is in the documentation.
"""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "tests" / "benchmarks"
CELLS = ("method twp, NC", "method er-gnn, NC", "stream testing-links/task-il", "schedule gaussian, NC")
"""Second derivatives, replay that sorts, links, a task-free stream."""


@pytest.mark.nightly
@pytest.mark.plugins
@pytest.mark.parametrize("processor", ["Haswell", "Skylake-Client", "EPYC"])
def test_a_few_cells_are_equal_on_an_emulated_processor(processor: str) -> None:
    if shutil.which("qemu-x86_64") is None:
        pytest.skip("qemu-x86_64 is not installed (Debian's qemu-user)")
    command = [sys.executable, str(BENCHMARKS / "processors.py"), "--cells", "|".join(CELLS), "--processors", processor]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(int(line.split()[1]) for line in done.stdout.splitlines()) == len(CELLS)


@pytest.mark.parametrize("name", ["operations", "processors"])
def test_the_tables_of_the_documentation_are_those_of_the_stored_outcomes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    command: Any = importlib.import_module(name)
    stored = json.loads((BENCHMARKS / f"{name}.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "how-to" / "keep-results.md").read_text(encoding="utf-8")
    assert "\n".join(command.table(stored)) in page
