"""What is inside the built wheels: the code, its types, the notebooks, the examples, the data, the licence, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from cglsuite.campaigns.campaign import examples

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "cglsuite": (ROOT, "cglsuite"),
    "cglsuite-node": (ROOT / "plugins" / "cglsuite-node", "cglsuite_node"),
    "cglsuite-methods": (ROOT / "plugins" / "cglsuite-methods", "cglsuite_methods"),
    "cglsuite-metrics": (ROOT / "plugins" / "cglsuite-metrics", "cglsuite_metrics"),
    "cglsuite-skeleton": (ROOT / "plugins" / "cglsuite-skeleton", "cglsuite_skeleton"),
    "cglsuite-graph": (ROOT / "plugins" / "cglsuite-graph", "cglsuite_graph"),
    "cglsuite-drift": (ROOT / "plugins" / "cglsuite-drift", "cglsuite_drift"),
    "cglsuite-link": (ROOT / "plugins" / "cglsuite-link", "cglsuite_link"),
    "cglsuite-slurm": (ROOT / "plugins" / "cglsuite-slurm", "cglsuite_slurm"),
    "cglsuite-dask": (ROOT / "plugins" / "cglsuite-dask", "cglsuite_dask"),
    "cglsuite-text": (ROOT / "plugins" / "cglsuite-text", "cglsuite_text"),
}


def build(folder: Path, target: str, into: Path) -> Path:
    """The path of the one archive that hatchling makes of ``folder``."""
    into.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (archive,) = into.iterdir()
    return archive


def names(wheel: Path) -> set[str]:
    """The files inside a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def sources(folder: Path) -> set[str]:
    """Files of a source folder that belong into a wheel, relative to its parent."""
    found = (p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {p.relative_to(folder.parent).as_posix() for p in found}


@pytest.fixture(scope="module")
def wheel_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The wheel of a distribution's folder, built once."""
    return cache(lambda name: build(PACKAGES[name][0], "wheel", tmp_path_factory.mktemp(name)))


@pytest.mark.parametrize("name", PACKAGES)
def test_a_wheel_holds_the_whole_package_and_the_licence(name: str, wheel_of: Callable[[str], Path]) -> None:
    folder, module = PACKAGES[name]
    inside = names(wheel_of(name))
    package = folder / module if name == "cglsuite" else folder / "src" / module
    expected = sources(package)
    if name == "cglsuite":
        expected |= {f"cglsuite/_{path}" for path in sources(ROOT / "notebooks") if ".ipynb_checkpoints" not in path}
        expected |= {f"cglsuite/_plugins/{path}" for path in sources(ROOT / "plugins" / "template")}
        expected |= {f"cglsuite/_reports/{path.relative_to(ROOT / 'reports')}" for path in examples().values()}
    metadata = {path for path in inside if ".dist-info/" in path}
    assert inside - metadata == expected
    assert f"{module}/py.typed" in inside
    assert any(path.endswith(".dist-info/licenses/LICENSE") for path in metadata)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PACKAGES)
def test_a_wheel_built_from_the_source_archive_is_the_same(name: str, wheel_of: Callable[[str], Path], tmp_path: Path) -> None:
    folder, _ = PACKAGES[name]
    with tarfile.open(build(folder, "sdist", tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    again = build(source, "wheel", tmp_path / "again")
    assert names(again) == names(wheel_of(name))
    with zipfile.ZipFile(again) as wheel:
        licence = next(path for path in wheel.namelist() if path.endswith("licenses/LICENSE"))
        assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
