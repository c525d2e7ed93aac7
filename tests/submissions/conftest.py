"""Honest records of a small campaign, trained once, and a copy of them for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from submission_lab import Submission, fill_honest

from cglsuite import Catalogue, load_catalogue


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue) -> Path:
    """A store with two methods and three orders each."""
    path = tmp_path_factory.mktemp("honest")
    fill_honest(path, catalogue)
    return path


@pytest.fixture
def submission(honest: Path, tmp_path: Path, catalogue: Catalogue) -> Submission:
    shutil.copytree(honest / "cells", tmp_path / "submission" / "cells")
    return Submission(tmp_path / "submission", tmp_path / "results", catalogue)
