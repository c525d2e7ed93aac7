"""``cglsuite notebook``: a copy of an installed notebook, never over another file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cglsuite.cli.main import run

INSTALLED = Path(__file__).parents[3] / "notebooks"


def test_a_notebook_is_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert [run(["notebook", "ledger"]), run(["notebook", "ledger", "--to", "new/folder"])] == [0, 0]
    assert capsys.readouterr().out == "ledger.ipynb\nnew/folder/ledger.ipynb\n"
    copies = sorted(tmp_path.rglob("*.ipynb"))
    assert [path.read_bytes() for path in copies] == 2 * [(INSTALLED / "ledger.ipynb").read_bytes()]
    copies[0].write_text("mine")
    assert run(["notebook", "ledger"]) == 2
    assert "ledger.ipynb already exists: move it, or choose another folder with --to" in capsys.readouterr().err
    assert copies[0].read_text() == "mine"


def test_an_unknown_notebook_is_answered_with_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["notebook", "leger", "--to", str(tmp_path / "new")]) == 2
    assert "unknown notebook 'leger'. Did you mean 'ledger'?" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_copying_imports_no_torch(tmp_path: Path) -> None:
    words = ["notebook", "explore", "--to", str(tmp_path)]
    code = f"import sys; from cglsuite.cli.main import run; print(run({words}), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 False"
