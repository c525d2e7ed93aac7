"""A package that `cglsuite new` writes passes its own tests, untouched."""

from __future__ import annotations

import ast
import configparser
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cglsuite
from cglsuite.cli.commands.check import template_folder
from cglsuite.cli.main import run
from cglsuite.host import Catalogue
from cglsuite.specs import API_VERSION

NAMES = {
    "method": "pulls-back",
    "dataset": "ring-of-four",
    "scenario": "photo/time-il@mine-1",
    "pretraining": "hides-half",
    "measure": "worst-class",
    "metric": "worst_task",
    "backbone": "mean-of-neighbours",
    "schedule": "fades",
    "encoder": "counts-letters",
    "notebook": "one-table",
    "executor": "beside-us",
    "command": "count-cells",
}


def made(kind: str, folder: Path) -> Path:
    package = folder / "package"
    assert run(["new", kind, NAMES[kind], "--into", str(package), "--author", "A. Nother"]) == 0
    return package


@pytest.mark.nightly
@pytest.mark.plugins
@pytest.mark.parametrize("kind", NAMES)
def test_generated_package_passes_its_own_tests(kind: str, tmp_path: Path) -> None:
    package, site = made(kind, tmp_path), tmp_path / "site"
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "install", *options, str(package)], check=True)
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=package, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", NAMES)
def test_generated_code_is_formatted_and_holds_no_placeholder(kind: str, tmp_path: Path) -> None:
    package = made(kind, tmp_path)
    files = [p for p in package.rglob("*") if p.is_file()]
    assert {p.suffix for p in files} - {".ipynb"} == {".py", ".toml", ".md", ".ini", ".yml"}
    assert [p.suffix for p in files].count(".ipynb") == (kind == "notebook")
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "{{" not in text.replace("${{ matrix.environment }}", "").replace("${{ vars.PIP_FIND_LINKS }}", "")
        assert "{%" not in text
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        if path.suffix == ".py":
            compile(text, str(path), "exec")
    assert f"\nAPI_VERSION = {API_VERSION}  # " in next(
        p for p in package.rglob("*.py") if p.parent.name != "tests" and p.name != "page.py"
    ).read_text(encoding="utf-8")


@pytest.mark.parametrize(("kind", "name"), [("method", "My Method"), ("scenario", "no-protocol"), ("metric", "Mean-Of")])
def test_a_name_of_the_wrong_form_is_refused_with_an_example(kind: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["new", kind, name]) == 2
    assert "expected" in capsys.readouterr().err


@pytest.mark.plugins
def test_a_name_that_is_taken_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["new", "method", "bare"]) == 2
    assert "already provides the method 'bare'" in capsys.readouterr().err


def test_a_folder_in_use_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert run(["new", "method", "another", "--into", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert run(["new", "method", "another", "--into", "/dev/null"]) == 2
    assert "/dev/null is not a folder" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_the_template_is_found() -> None:
    assert (template_folder() / "copier.yml").is_file()


def test_dependencies_admit_this_suite_and_end_before_the_next_interface(tmp_path: Path) -> None:
    project = tomllib.loads((made("method", tmp_path) / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    major, minor, *_ = cglsuite.__version__.split(".")
    below = f"0.{int(minor) + 1}" if major == "0" else str(int(major) + 1)
    assert project["dependencies"] == [f"cglsuite>={cglsuite.__version__},<{below}"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("core", "below"), [("0.1.0", "0.2"), ("0.9.3", "0.10"), ("1.4.2", "2")])
def test_the_upper_bound_follows_semantic_versioning(core: str, below: str, tmp_path: Path) -> None:
    from copier import run_copy

    run_copy(str(template_folder()), tmp_path, data={"kind": "method", "name": "m", "core": core}, defaults=True, quiet=True)
    assert f'"cglsuite>={core},<{below}"' in (tmp_path / "pyproject.toml").read_text(encoding="utf-8")
    tox = (tmp_path / "tox.ini").read_text(encoding="utf-8")
    assert f"    oldest: cglsuite=={core}\n    newest: cglsuite<{below}\n" in tox


def test_every_environment_of_the_generated_package_is_a_job(tmp_path: Path) -> None:
    package = made("method", tmp_path)
    ini = configparser.ConfigParser(interpolation=None)
    ini.read(package / "tox.ini", encoding="utf-8")
    alone, age = re.fullmatch(r"\{(.+)\}-\{(.+)\}", ini["tox"]["env_list"]).groups()  # type: ignore[union-attr]
    environments = [f"{a}-{b}" for a in alone.split(",") for b in age.split(",")]
    assert environments == ["alone-oldest", "alone-newest", "with-methods-oldest", "with-methods-newest"]
    workflow = (package / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    assert re.findall(r"^          - (\S+)$", workflow, re.M) == environments
    assert "      PIP_FIND_LINKS: ${{ vars.PIP_FIND_LINKS }} #" in workflow
    assert workflow.endswith("tox -e ${{ matrix.environment }}\n")


@pytest.mark.nightly
@pytest.mark.plugins
def test_the_categories_that_are_named_are_those_of_the_suites_methods(tmp_path: Path, suite_catalogue: Catalogue) -> None:
    package = made("method", tmp_path)
    known = {suite_catalogue.method(name).category for name in suite_catalogue.names("method")} - {"testing"}
    (line,) = [x for x in next(package.glob("*.py")).read_text(encoding="utf-8").splitlines() if "category=" in x]
    named = {re.sub(r" \(.*\)", "", part).strip() for part in line.partition("#")[2].partition(";")[0].split(",")}
    assert named == known | {"other"}
    readme = (package / "README.md").read_text(encoding="utf-8")
    assert all(f"`{category}`" in readme for category in named)


@pytest.mark.nightly
@pytest.mark.plugins
def test_a_scenario_over_a_data_set_that_exists_depends_on_its_provider(tmp_path: Path) -> None:
    package = tmp_path / "package"
    assert run(["new", "scenario", "synthetic-csbm/class-il@mine-1", "--into", str(package)]) == 0
    project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "cglsuite-node" in project["dependencies"]
    text = next(package.glob("*.py")).read_text(encoding="utf-8")
    assert "cglsuite_datasets" not in text
    assert 'dataset="synthetic-csbm"' in text


@pytest.mark.sampled(1)
@pytest.mark.parametrize("setting", ["class-il", "task-il", "domain-il", "time-il"])
def test_a_scenario_over_new_data_brings_them_along(setting: str, tmp_path: Path) -> None:
    package = tmp_path / "package"
    assert run(["new", "scenario", f"7-photos/{setting}@mine-1", "--into", str(package)]) == 0
    text = next(package.glob("*.py")).read_text(encoding="utf-8")
    assert {n.name for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)} == {
        *("make_7_photos", "cglsuite_datasets", "cglsuite_scenarios")
    }
    assert f'setting="{setting}"' in text
    assert 'dataset="7-photos"' in text
    assert 'check_dataset("7-photos")' in (package / "tests" / "test_conformance.py").read_text(encoding="utf-8")


@pytest.mark.sampled(1)
@pytest.mark.plugins
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("facebook/class-il@mine-1", "facebook is of level LP"),
        ("photo/task-free@mine-1", "class-il, task-il, domain-il, time-il, not 'task-free'"),
    ],
)
def test_a_scenario_that_the_template_cannot_write_is_refused(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["new", "scenario", name]) == 2
    assert message in capsys.readouterr().err


# --- under tox ---------------------------------------------------------------------------------------------------------------------


def third_parties(folder: Path) -> Path:
    """Links to all that is installed here but the suite: what pip finds there it need not install."""
    folder.mkdir()
    for site in (Path(p) for p in sys.path if p.endswith("site-packages")):
        for entry in sorted(site.iterdir()):
            if not re.match(r"_*(cglsuite|editable_)|.*\.pth$", entry.name) and not (folder / entry.name).exists():
                (folder / entry.name).symlink_to(entry)
    return folder


INSTALL = """
import pathlib, subprocess, sys, sysconfig
pathlib.Path(sysconfig.get_path("purelib"), "third_parties.pth").write_text({folder!r} + "\\n")
sys.exit(subprocess.call([sys.executable, "-I", "-m", "pip", "install", "--no-build-isolation", *sys.argv[1:]]))
"""


@pytest.mark.nightly
@pytest.mark.parametrize("environment", ["alone-oldest", "with-methods-newest", "with-methods-checkout"])
def test_the_generated_package_passes_under_tox(environment: str, tmp_path: Path) -> None:
    """No package index: the suite comes from a folder of wheels or from this checkout, by the variables that the generated README names."""
    pytest.importorskip("tox", reason="tox is not installed here: tox -e template has it")
    root, package = Path(cglsuite.__file__).resolve().parents[1], made("metric", tmp_path)
    build = (
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    )
    if "checkout" in environment:
        suite = {"CGLSUITE_CHECKOUT": str(root)}
    else:
        suite = {"PIP_FIND_LINKS": "wheels"}
        packages = [root, root / "plugins" / "cglsuite-node", root / "plugins" / "cglsuite-methods"]
        subprocess.run([*build, "--wheel-dir", str(package / "wheels"), *map(str, packages)], check=True)
    subprocess.run([*build, "--wheel-dir", str(tmp_path), str(package)], check=True)
    (tmp_path / "install.py").write_text(INSTALL.format(folder=str(third_parties(tmp_path / "third"))), encoding="utf-8")
    options = [
        "--installpkg",
        str(next(tmp_path.glob("*.whl"))),
        "-x",
        f"testenv.install_command=python {tmp_path}/install.py {{packages}}",
    ]
    environment_of_a_user = {name: value for name, value in os.environ.items() if not name.startswith("TOX_")}  # TOX_WORK_DIR, ...
    done = subprocess.run(
        [sys.executable, "-m", "tox", "run", "-e", environment, *options], cwd=package, capture_output=True, text=True, check=False,
        env=environment_of_a_user | {"PIP_NO_INDEX": "1"} | suite,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b2 passed\b", done.stdout), done.stdout
    installed = {p.name.partition("-")[0] for p in package.glob(f".tox/{environment}/lib/python*/site-packages/cglsuite*.dist-info")}
    assert installed == {"cglsuite", "cglsuite_worst_task", *(["cglsuite_methods", "cglsuite_node"] if "methods" in environment else [])}
