"""Notebooks and reference data are found wherever the core runs from: the repository, or a wheel."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCATE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from importlib import resources
from cglsuite.host import load_catalogue
catalogue = load_catalogue(allow=["cglsuite"], strict=True)
notebooks = {entry.name: str(catalogue.resolve(entry)) for entry in catalogue.entries("notebook")}
_FOLDER = resources.files("cglsuite.campaigns").joinpath("reference")
reference = sorted(str(path) for path in _FOLDER.iterdir() if path.name.endswith(".csv"))
print(json.dumps([notebooks, reference]))
"""


def located(first_on_path: Path) -> tuple[dict[str, Path], list[Path]]:
    """Notebooks by name, and reference files, as a fresh process finds them when the core is imported from a folder."""
    command = [sys.executable, "-c", LOCATE, str(first_on_path)]
    done = subprocess.run(command, cwd=first_on_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    notebooks, reference = json.loads(done.stdout)
    return {name: Path(path) for name, path in notebooks.items()}, [Path(path) for path in reference]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an installer unpacks from the core's wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist"], cwd=ROOT, check=True, capture_output=True
    )
    (wheel,) = (folder / "dist").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_the_repository_serves_its_own_files() -> None:
    notebooks, reference = located(ROOT)
    assert {path.parent for path in notebooks.values()} == {ROOT / "notebooks"}
    assert {path.parent for path in reference} == {ROOT / "cglsuite" / "campaigns" / "reference"}


@pytest.mark.nightly
def test_a_wheel_serves_the_same_files_from_inside_the_package(unpacked: Path) -> None:
    notebooks, reference = located(unpacked)
    here, reference_here = located(ROOT)
    assert {path.parent for path in notebooks.values()} == {unpacked / "cglsuite" / "_notebooks"}
    assert {name: path.read_bytes() for name, path in notebooks.items()} == {name: path.read_bytes() for name, path in here.items()}
    assert [(p.name, p.read_bytes()) for p in reference] == [(p.name, p.read_bytes()) for p in reference_here]
    analyses = {"category_ranks", "method_comparison", "node_analysis", "order_sensitivity", "sensitivity", "stream_anatomy"}
    overviews = {"campaign_report", "claims", "explore", "findings", "leaderboard", "ledger", "reproduction", "task_free_dynamics"}
    assert set(notebooks) == overviews | analyses
    assert "published_results.csv" in {path.name for path in reference}
