"""Shared behaviour of all tests: see tests/tools/suite_pytest.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import suite_pytest
from suite_pytest import pytest_addoption, pytest_xdist_auto_num_workers

from cglsuite.graphs.files.named import named

__all__ = ["pytest_addoption", "pytest_configure", "pytest_xdist_auto_num_workers"]


def pytest_configure(config: pytest.Config) -> None:
    """Register what all test folders share."""
    suite_pytest.register(config)


@pytest.fixture(autouse=True)
def _no_named_files() -> Iterator[None]:
    """A campaign that a test loads names its data and plugin files for the whole process: not for the next test."""
    with named():
        yield
