"""The example is small, conforms, and computes what the built-in method computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cglsuite_lwf_mini
import pytest

from cglsuite.testing import check_method


def test_lwf_mini_is_one_module_of_at_most_40_lines() -> None:
    assert len(Path(cglsuite_lwf_mini.__file__).read_text(encoding="utf-8").splitlines()) <= 40


def test_lwf_mini_conforms() -> None:
    """On a stream of each level and setting; ``tox -e conformance`` checks it in all combinations."""
    check_method("lwf-mini", quick=True)


@pytest.mark.plugins
@pytest.mark.parametrize("place", ["nodes/task-il", "graphs/class-il", "links/domain-il", "targets/time-il"])
def test_lwf_mini_equals_the_built_in_method_to_the_last_bit(run_cell: Any, place: str) -> None:
    scenario = f"testing-{place}@testing-1"
    mine = run_cell("lwf-mini", scenario, overrides={"method.weight": 3.0})
    built_in = run_cell("lwf", scenario, overrides={"method.lambda": 3.0, "method.temperature": 2.0})
    assert repr(mine.matrix) == repr(built_in.matrix)
