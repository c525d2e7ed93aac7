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
    """A folder with .ci/run and a README whose second block reports what it sees and fails with the status in FIRST; a tox that does so."""
    folder = tmp_path / "project"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    second = 'printf "%s\\n" "data=${CGLSUITE_DATA:-}" "at=$PWD"\nexit ${FIRST:-0}'
    blocks = "".join(f"text\n\n```bash\n{body}\n```\n\n" for body in ("exit 1", second, "exit 2"))
    (folder / "README.md").write_text(blocks, encoding="utf-8")
    tox = tmp_path / "bin" / "tox"
    tox.parent.mkdir()
    tox.write_text('#!/bin/sh\necho "given: $*"\nexit ${SECOND:-0}\n', encoding="utf-8")
    tox.chmod(0o755)
    return folder


def ci_run(checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(checkout.parent / "bin"), os.environ["PATH"]])
    environment = {"PATH": path, "VIRTUAL_ENV": "active", **variables}
    return subprocess.run([checkout / ".ci" / "run"], cwd="/", env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("beside", [True, False])
def test_the_ci_entry_point_runs_the_second_block_with_the_data_beside_the_checkout(checkout: Path, beside: bool, tmp_path: Path) -> None:
    if beside:
        (tmp_path / "shared" / "data").mkdir(parents=True)
    done = ci_run(checkout)
    assert done.returncode == 0, done.stderr
    expected = str(tmp_path / "shared" / "data") if beside else ""
    assert done.stdout.splitlines()[-4:-2] == [f"data={expected}", f"at={checkout}"]


def test_the_ci_entry_point_keeps_data_that_the_caller_names(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "shared" / "data").mkdir(parents=True)
    assert "data=/elsewhere" in ci_run(checkout, CGLSUITE_DATA="/elsewhere").stdout.splitlines()


def test_the_ci_entry_point_runs_the_eighth_of_the_nightly_tests_that_head_selects(checkout: Path) -> None:
    assert ci_run(checkout).stdout.splitlines()[-1] == "given: -e nightly -- --eighth=0"  # no repository, no HEAD
    day = {f"GIT_{role}_{what}": "x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    day |= {f"GIT_{role}_DATE": "2026-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")}  # always the same hashes
    for n in range(3):
        for words in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--no-gpg-sign", "-m", str(n)]):
            subprocess.run(["git", "-C", str(checkout), *words], env={**os.environ, **day}, check=True)
        head = subprocess.run(["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
        assert ci_run(checkout).stdout.splitlines()[-1] == f"given: -e nightly -- --eighth={int(head, 16) % 8}"


@pytest.mark.parametrize(("first", "second", "status"), [("7", "0", 7), ("0", "3", 3), ("7", "3", 7)])
def test_the_ci_entry_point_fails_if_either_part_does_and_runs_both(checkout: Path, first: str, second: str, status: int) -> None:
    done = ci_run(checkout, FIRST=first, SECOND=second)
    assert done.returncode == status
    assert "given: -e nightly" in done.stdout
