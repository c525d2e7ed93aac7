"""Shared behaviour of all tests: see tests/tools/suite_pytest.py."""

from __future__ import annotations

import pytest
import suite_pytest


def pytest_configure(config: pytest.Config) -> None:
    """Register what all test folders share."""
    suite_pytest.register(config)
