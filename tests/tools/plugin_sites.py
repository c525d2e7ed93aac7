"""Real plugin distributions on disk: modules with their ``*.dist-info`` in a fresh folder, as an installer would leave them."""

from __future__ import annotations

import base64
import hashlib
import importlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import cglsuite
from cglsuite.host import Catalogue, find_entry_points, load_catalogue

__all__ = ["Site", "site"]

SOURCES = Path(__file__).resolve().parents[1] / "distributions"
CORE = Path(cglsuite.__file__).resolve().parents[1]


class Site:
    """A folder like site-packages with the distributions that a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.distributions: list[str] = []

    def add(
        self,
        name: str,
        version: str = "1.0",
        *,
        files: Mapping[str, str] | None = None,
        entry_points: Mapping[str, str] | None = None,
    ) -> Site:
        """Install a distribution.

        Args:
            name: its name; with dashes as underscores, also that of its module in ``tests/distributions`` if no files are given.
            version: its version.
            files: relative path to content of what it installs.
            entry_points: name to value in the group ``cglsuite``; by default ``plugin`` names the module.
        """
        module = name.replace("-", "_")
        if files is None:
            files = {f"{module}.py": (SOURCES / f"{module}.py").read_text(encoding="utf-8")}
        lines = [f"{key} = {value}" for key, value in (entry_points or {"plugin": module}).items()]
        info = f"{module}-{version}.dist-info"
        metadata = {
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nA description.\n",
            f"{info}/entry_points.txt": "\n".join(["[console_scripts]", "x = y:z", "", "[cglsuite]", *lines, ""]),
        }
        record = []
        for path, content in {**files, **metadata}.items():
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")
            digest = base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(content.encode())}")
        (self.folder / info / "RECORD").write_text("\n".join([*record, f"{info}/RECORD,,", ""]), encoding="utf-8")
        self.distributions.append(name)
        return self

    def entry_points(self) -> list[EntryPoint]:
        """The entry points of the distributions here, and of no others."""
        return find_entry_points([str(self.folder)])

    def catalogue(self, **options: Any) -> Catalogue:
        """The catalogue of the distributions here, and of no others."""
        return load_catalogue(entry_points=self.entry_points(), **options)

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run ``cglsuite`` in a process that sees these distributions; whatever else is installed is blocked."""
        return self.python("-m", "cglsuite", *arguments, **environment)

    def python(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python in a process that sees these distributions; whatever else is installed is blocked."""
        return subprocess.run(
            [sys.executable, *arguments],
            env=self._variables() | environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    def call(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """What :meth:`run` does, in this process and without trying plugins in another one: for those that neither end nor change it."""
        from cglsuite.cli.main import run
        from cglsuite.host import catalogue

        out, err = io.StringIO(), io.StringIO()
        importlib.invalidate_caches()  # distributions may have been added
        with (
            patch.dict(os.environ, self._variables() | environment, clear=True),
            patch.object(catalogue, "find_faults", lambda candidates: {}),
            chdir(self.folder),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            status = run(arguments)
        return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())

    def _variables(self) -> dict[str, str]:
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("CGLSUITE_", "COLUMNS"))}
        variables["PYTHONPATH"] = os.pathsep.join([str(self.folder), str(CORE)])
        variables["CGLSUITE_PLUGINS_ALLOW"] = ",".join(self.distributions) or "none-at-all"
        variables["CGLSUITE_PLUGINS_BLOCK"] = "cglsuite"
        variables["CGLSUITE_CACHE"] = str(self.folder.parent / "cache")
        return variables


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty folder on ``sys.path`` for real distributions; modules imported from it are forgotten at the end."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name in [n for n in os.environ if n.startswith(("CGLSUITE_PLUGINS", "CGLSUITE_STRICT"))]:
        monkeypatch.delenv(name)
    monkeypatch.syspath_prepend(str(folder))
    yield Site(folder)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]
