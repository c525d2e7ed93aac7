"""The README's two commands, and the CI entry point that runs the second one exactly as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```bash\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_readme_has_the_demonstration_and_the_tests_one_line_each() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    demonstration, tests = FENCE.findall(text)[:2]
    assert len(demonstration.splitlines()) == len(tests.splitlines()) == 1
    assert demonstration.strip() == "python -m pip install -r requirements.txt && cglsuite run reports/demo.toml"
    assert tests.rstrip().endswith("&& tox -p auto")


def test_the_requirements_are_the_core_and_every_plugin_at_tested_versions() -> None:
    lines = [line for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines[0] == "-c constraints.txt"
    # Without extras: pip does not satisfy what one plugin needs of another with "-e plugins/other[extra]".
    plugins = [f"-e plugins/{p.name}" for p in ROOT.glob("plugins/cglsuite-*")]
    molecules = tomllib.loads((ROOT / "plugins/cglsuite-graph/pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert sorted(lines[1:]) == sorted(["-e .", *plugins, *molecules["molecules"]])


def test_paths_that_the_readme_names_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)\)", text)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_method_that_the_readme_shows_is_the_example_package() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Adding a method")[2]
    shown = re.findall(r"^```(?:python|toml)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    package = ROOT / "tests" / "example-plugin"
    real = "".join((package / name).read_text(encoding="utf-8") for name in ("cglsuite_l2_anchor.py", "pyproject.toml"))
    assert len(shown) == 2
    assert [line for block in shown for line in block.splitlines() if line not in real.splitlines()] == []


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with .ci/run and a README whose second block reports what it sees and fails with status 7."""
    folder = tmp_path / "project"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    second = 'printf "%s\\n" "data=${CGLSUITE_DATA:-}" "at=$PWD"\nexit 7'
    blocks = "".join(f"text\n\n```bash\n{body}\n```\n\n" for body in ("exit 1", second, "exit 2"))
    (folder / "README.md").write_text(blocks, encoding="utf-8")
    return folder


@pytest.mark.parametrize("beside", [True, False])
def test_the_ci_entry_point_runs_the_second_block_with_the_data_beside_the_checkout(checkout: Path, beside: bool, tmp_path: Path) -> None:
    if beside:
        (tmp_path / "shared" / "data").mkdir(parents=True)
    environment = {"PATH": os.environ["PATH"], "VIRTUAL_ENV": "active"}
    done = subprocess.run([checkout / ".ci" / "run"], cwd="/", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    expected = str(tmp_path / "shared" / "data") if beside else ""
    assert done.stdout.splitlines()[-2:] == [f"data={expected}", f"at={checkout}"]


def test_the_ci_entry_point_keeps_data_that_the_caller_names(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "shared" / "data").mkdir(parents=True)
    environment = {"PATH": os.environ["PATH"], "VIRTUAL_ENV": "active", "CGLSUITE_DATA": "/elsewhere"}
    done = subprocess.run([checkout / ".ci" / "run"], env=environment, capture_output=True, text=True, check=False)
    assert "data=/elsewhere" in done.stdout.splitlines()
