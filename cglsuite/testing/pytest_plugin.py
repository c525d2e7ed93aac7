"""Pytest fixtures that run cells on tiny streams. Loading this module does not import torch or other slow packages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.host import Catalogue
    from cglsuite.specs import Seeds

    RunCell = Callable[..., Record]


def pytest_report_header() -> list[str]:
    """Return header lines that show which copy of each third-party plugin the tests import, without importing the plugins."""
    from cglsuite.base.entry_points import entry_points
    from cglsuite.cells.code.user import places
    from cglsuite.host.discovery import BUILT_IN, GROUP, installation, normalised

    lines = set()
    for point in entry_points(GROUP):
        if point.dist is not None and normalised(point.dist.name) not in BUILT_IN:
            for place in places(point.module.partition(".")[0])[:1]:
                lines.add(f"plugin {point.dist.name} {point.dist.version}, {installation(point.dist.name, place)}: {place}")
    return sorted(lines)


@pytest.fixture(scope="session")
def suite_catalogue() -> Catalogue:
    """Return the catalogue of all installed plugins and the tiny scenarios of :mod:`cglsuite.testing`."""
    from cglsuite.testing.streams import tiny_catalogue

    return tiny_catalogue()


@pytest.fixture
def run_cell(suite_catalogue: Catalogue, tmp_path: Path) -> RunCell:
    """Return a function ``(method, scenario="testing-nodes/class-il@testing-1", *, overrides=None, seeds=None) -> Record``.

    The function runs a cell as ``cglsuite cell`` does, in the store ``tmp_path / "store"``, and fails the test if the cell fails::

        def test_it_forgets_less(run_cell):
            assert run_cell("my-method").metrics["average_performance"] > run_cell("bare").metrics["average_performance"]
    """
    from cglsuite.cells.run import run_cell as run
    from cglsuite.cells.spec import resolve_cell
    from cglsuite.cells.storage.store import Store
    from cglsuite.specs import Seeds

    store = Store(tmp_path / "store")

    def run_one(
        method: str,
        scenario: str = "testing-nodes/class-il@testing-1",
        *,
        overrides: dict[str, Any] | None = None,
        seeds: Seeds | None = None,
    ) -> Record:
        record = run(resolve_cell(suite_catalogue, scenario, method, overrides=overrides, seeds=seeds or Seeds()), suite_catalogue, store)
        if not record.done:
            pytest.fail(f"{record.label} ended as {record.status}: {record.reason}", pytrace=False)
        return record

    return run_one
