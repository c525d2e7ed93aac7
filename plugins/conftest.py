"""Shared behaviour of all tests: see tests/tools/suite_pytest.py."""

from __future__ import annotations

import pytest
import suite_pytest
from suite_pytest import pytest_addoption, pytest_xdist_auto_num_workers

__all__ = ["pytest_addoption", "pytest_configure", "pytest_xdist_auto_num_workers"]


def pytest_configure(config: pytest.Config) -> None:
    """Register what all test folders share."""
    suite_pytest.register(config)
